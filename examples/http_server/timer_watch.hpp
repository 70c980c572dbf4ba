// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The server's own timers, made visible:
//
//   GET /timers          the page, with /timers/page.css and /timers/page.js
//   GET /timers/events   the data of the page, once a second, as server-sent events; see session::show_timers()
//   POST /timers/suspend?tab=N, /timers/resume?tab=N   the tab N was hidden, or shown again
//   GET /metrics         the same counts for Prometheus
//
// They show counts and names. They are answered in two cases: the server was started with --expose-timers; or it listens on a
// loopback address and the request uses a name of that address (a foreign page may point its own name to it).
//
// Each tab is a reader of the feed for the lifetime of its connection. Without a tab nothing is measured.
//
// Threads: any. A tab lives on the executor of its connection.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_TIMER_WATCH_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_TIMER_WATCH_HPP

#include "http_server/answer.hpp"
#include "http_server/settings.hpp"
#include "http_server/target.hpp"
#include "http_server/timers_page.hpp"

#include <pawl/event_feed.hpp>
#include <pawl/stats.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace example {

/// An open page. Everything except the id is used on its executor only.
struct timers_tab {
    timers_tab(const boost::asio::any_io_executor& ex, std::uint32_t number)
        : id(number), pause(ex) {}

    /// The connection ends.
    void end() {
        over = true;
        pause.cancel();
        stop.emit(boost::asio::cancellation_type::terminal);
    }

    const std::uint32_t id; ///< random, so that a foreign page cannot guess it
    /// Asio's, so that watching Pawl's timers adds none.
    boost::asio::steady_timer pause;
    boost::asio::cancellation_signal stop; ///< stops the pending write
    bool hidden = false;
    bool over = false;
};

class timer_watch {
    using clock = std::chrono::steady_clock;

public:
    timer_watch(boost::asio::io_context& context, const settings& s)
        : context_(context), settings_(s) {
        if (s.measure_times)
            pawl::measure_times(context);
    }

    [[nodiscard]] boost::asio::io_context& context() const noexcept { return context_; }
    [[nodiscard]] clock::duration up() const { return clock::now() - began_; }
    [[nodiscard]] std::size_t tabs() const noexcept {
        return count_.load(std::memory_order_relaxed); // relaxed: it may change at any time
    }

    /// Gives a timer a name while there is a tab to show it.
    template <class Timer>
    void name(Timer& timer, std::string_view text) {
        if (tabs() != 0)
            pawl::set_name(timer, text);
    }

    // --- tabs -----------------------------------------------------------------------------------

    /// A tab exists from open() to the end of this object.
    class membership {
    public:
        membership(timer_watch& watch, const timers_tab& tab) : watch_(watch), id_(tab.id) {}
        membership(const membership&) = delete;
        membership& operator=(const membership&) = delete;
        ~membership() {
            const std::lock_guard lock(watch_.mutex_);
            watch_.tabs_.erase(id_);
            watch_.count_.store(watch_.tabs_.size(), std::memory_order_relaxed);
        }

    private:
        timer_watch& watch_;
        const std::uint32_t id_;
    };

    /// The caller must give it a membership at once. Null if there are already too many.
    [[nodiscard]] std::shared_ptr<timers_tab> open(const boost::asio::any_io_executor& ex) {
        const std::lock_guard lock(mutex_);
        if (tabs_.size() >= settings_.tabs)
            return nullptr;
        std::uint32_t id = 0;
        do
            id = random_();
        while (tabs_.contains(id));
        const auto tab = std::make_shared<timers_tab>(ex, id);
        tabs_.emplace(id, tab);
        count_.store(tabs_.size(), std::memory_order_relaxed);
        return tab;
    }

    [[nodiscard]] pawl::event_feed::reader join() {
        const std::lock_guard lock(mutex_);
        if (!feed_) // 4 MiB, only for a watched server
            feed_.emplace(context_, pawl::event_feed_options{
                                        .capacity = 65'536,
                                        .readers = std::bit_ceil(std::size_t{settings_.tabs})});
        return feed_->join();
    }

    /// The server ends, and with it the tabs.
    void end_all() {
        const std::lock_guard lock(mutex_);
        for (const auto& entry : tabs_)
            boost::asio::post(entry.second->pause.get_executor(),
                              [tab = entry.second] { tab->end(); });
    }

    // --- immediate answers ----------------------------------------------------------------------

    /// Whether a decoded path is one of these.
    [[nodiscard]] static bool serves(std::string_view path) {
        return path == "/timers" || path.starts_with("/timers/") || path == "/metrics";
    }

    /// @return nothing if the request is for the stream of events.
    template <class Request>
    [[nodiscard]] std::optional<answer> answer_to(const target& where, const Request& request,
                                                  const reply_form& form) {
        if (!settings_.expose_timers) {
            if (!settings_.endpoint.address().is_loopback())
                return plain_text(http::status::forbidden, form,
                                  "403 Forbidden: timers are shown on loopback addresses, or "
                                  "anywhere with --expose-timers\n");
            if (!is_of_this_machine(request[http::field::host]))
                return plain_text(http::status::forbidden, form,
                                  "403 Forbidden: timers are shown as those of localhost, or by "
                                  "any name with --expose-timers\n");
        }
        if (climbs(where.path))
            return sorry(http::status::forbidden, form);

        const std::string_view path = where.path;
        if (path == "/timers/suspend" || path == "/timers/resume") {
            if (request.method() != http::verb::post)
                return only("POST", form);
            return hide(where.query, path.ends_with("suspend"), form);
        }
        if (path == "/timers/events")
            return request.method() == http::verb::get ? std::nullopt
                                                       : std::optional(only("GET", form));
        const bool reads = request.method() == http::verb::get || form.head;
        if (path == "/metrics")
            return reads ? in_memory(form, "text/plain; version=0.0.4; charset=utf-8",
                                     pawl::to_prometheus(pawl::stats(context_)))
                         : only("GET, HEAD", form);
        for (const auto& file : timers_page)
            if (path == file.path)
                return reads ? page(file, form) : only("GET, HEAD", form);
        return plain_text(http::status::not_found, form,
                          "404 Not Found: the page of timers is /timers\n");
    }

private:
    /// Whether the Host of a request means this machine. A browser always sends one.
    [[nodiscard]] static bool is_of_this_machine(std::string_view host) {
        if (host.empty())
            return true;
        if (host.starts_with('['))
            host = host.substr(1, host.find(']') - 1);
        else
            host = host.substr(0, host.find(':'));
        boost::system::error_code bad;
        const auto address = boost::asio::ip::make_address(std::string(host), bad);
        return host == "localhost" || (!bad && address.is_loopback());
    }

    [[nodiscard]] answer hide(std::string_view query, bool hidden, const reply_form& form) {
        const auto id = number_in(query, "tab");
        if (!id)
            return plain_text(http::status::bad_request, form,
                              "400 Bad Request: ?tab=N, N as /timers/events told it\n");
        const std::lock_guard lock(mutex_);
        const auto found = tabs_.find(*id);
        if (found == tabs_.end())
            return plain_text(http::status::not_found, form, "404 Not Found: no such tab\n");
        boost::asio::post(found->second->pause.get_executor(), [tab = found->second, hidden] {
            tab->hidden = hidden;
            tab->pause.cancel();
        });
        return plain_text(http::status::ok, form, hidden ? "suspended\n" : "resumed\n");
    }

    [[nodiscard]] static answer page(const page_file& file, const reply_form& form) {
        http::response<http::string_body> response;
        response.body() = file.text;
        response.set(http::field::cache_control, "no-cache");
        response.set("Content-Security-Policy",
                     "default-src 'self'; img-src data:; base-uri 'none'; "
                     "form-action 'none'; frame-ancestors 'none'");
        response.set("X-Content-Type-Options", "nosniff");
        return finish(std::move(response), form, file.type);
    }

    boost::asio::io_context& context_;
    const settings& settings_;
    const clock::time_point began_ = clock::now();
    std::atomic<std::size_t> count_{0};
    std::mutex mutex_;
    std::optional<pawl::event_feed> feed_;
    std::map<std::uint32_t, std::shared_ptr<timers_tab>> tabs_;
    std::random_device random_;
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_TIMER_WATCH_HPP
