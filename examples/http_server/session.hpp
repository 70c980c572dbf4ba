// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// One connection of http_server.
//
// The session is a template on its stream. Every time limit is an expires_at() of the stream, which
// ends any pending operation. The phases differ only in how far away the limit is, and in whether the
// next operation moves it:
//
//   handshake   from accept(), for TLS                          not moved: slow bytes do not help
//   header      from accept(), from the end of the handshake,   not moved
//               or from the first byte of a later request
//   body        from the end of the header                      not moved
//   idle        from a response to the first byte that follows  the wait for one byte
//   write       from each progress of a response                moved
//   request     from the end of the header, above all others    not moved
//
// On Pawl, an alarm keeps the limit of an idle connection. It is scaled: the limit shrinks if connections run short. It is
// armed as long as the connection lasts, and each idle phase moves it, so that no request has to set
// the system timer. When the server drains, expire_all() on these alarms ends the idle connections;
// busy ones continue.
//
// Ends: if a limit, or the client in the middle of something, ends a session, the access log and the
// tally show it. An invalid request is answered with an error. A session that throws, for lack of
// memory for instance, ends with a line on stderr. When the server ends the connection after a
// response, it closes its own direction and waits a moment for the client to close the other. Closing a
// socket with unread bytes would reset the connection, and the client might lose the response.
//
// A connection that asks for /timers/events becomes a tab (timer_watch.hpp). It receives the state of
// the timers once a second, until it or the server ends, or it takes nothing for the limit of a write.
//
// Threads: everything runs on the connection's executor, a strand if there are several threads.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_SESSION_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_SESSION_HPP

#include "http_server/access_log.hpp"
#include "http_server/answer.hpp"
#include "http_server/connections.hpp"
#include "http_server/files.hpp"
#include "http_server/settings.hpp"
#include "http_server/target.hpp"
#include "http_server/timer_watch.hpp"
#include "http_server/timers_summary.hpp"

#include <pawl/alarm.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/pressure.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace example {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// State shared by all sessions.
struct environment {
    const settings& options;
    connections& list;
    access_log* log = nullptr;    ///< optional
    timer_watch* watch = nullptr; ///< watches Pawl's timers; null on Asio's
    std::atomic<bool> stopping = false;

    [[nodiscard]] bool ending() const noexcept {
        return stopping.load(std::memory_order_acquire); // pairs with server::stop()
    }
};

/// The clock of all limits of a stream.
template <class Stream>
using lowest_layer =
    std::remove_reference_t<decltype(beast::get_lowest_layer(std::declval<Stream&>()))>;

template <class Stream>
inline constexpr bool is_secure = false;
template <class Stream>
inline constexpr bool is_secure<beast::ssl_stream<Stream>> = true;

/// @tparam Stream beast::tcp_stream or one with its interface, or a beast::ssl_stream on one.
/// @tparam Timer  for waits outside the stream.
template <class Stream, class Timer>
class session final : public connection,
                      public std::enable_shared_from_this<session<Stream, Timer>> {
    using clock = std::chrono::steady_clock;
    using request_type = http::request<http::string_body>;
    using parser_type = http::request_parser<http::string_body>;

    static constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);
    static constexpr bool secure = is_secure<Stream>;
    /// Whether the stream survives a limit: Beast's closes its socket.
    static constexpr bool survives = requires(lowest_layer<Stream>& s) { s.set_limits({}); };

    /// The function of the alarm. It runs on the connection's executor, so never without the session.
    struct on_idle {
        session* self;
        void operator()(error_code) const { self->idle_is_over(); } // early if the server drains
    };
    struct no_alarm {
        no_alarm(const asio::any_io_executor&, on_idle) {}
    };
    using idle_alarm =
        std::conditional_t<survives, pawl::basic_alarm<on_idle, pawl::scaled_clock<>>, no_alarm>;

public:
    /// @param arguments for the stream, after its socket.
    template <class... Arguments>
    session(environment& e, tcp::socket accepted, Arguments&... arguments)
        : environment_(e), options_(e.options), stream_(std::move(accepted), arguments...),
          timer_(stream_.get_executor()), idle_(stream_.get_executor(), on_idle{this}) {
        error_code ignored; // a client that has already gone is noticed by a read
        lowest().socket().set_option(tcp::no_delay(true), ignored);
        if (environment_.log != nullptr)
            client_ = lowest().socket().remote_endpoint(ignored).address().to_string();
        if constexpr (survives)
            lowest().set_limits({.action = pawl::on_limit::cancel});
    }

    [[nodiscard]] auto get_executor() { return stream_.get_executor(); }

    /// Spawn it on get_executor().
    static asio::awaitable<void> run(std::shared_ptr<session> self) {
        const connections::membership m(self->environment_.list, *self, self->tally_);
        try {
            if constexpr (survives)
                self->watch();
            bool open = co_await self->handshake();
            while (open)
                open = co_await self->exchange();
        } catch (const std::exception& failure) { // no memory, for instance: the others continue
            ++self->tally_.broken_off;
            std::cerr << "a connection is given up: " << failure.what() << std::endl;
        }
        self->lowest().close();
        self->phase_ = phase::leaving;
        if constexpr (survives)
            self->idle_.disarm();
        if (self->environment_.log != nullptr)
            self->environment_.log->flush();
    }

    /// Ends idle connections. May miss one that is about to wait: call it again.
    static void drain_idle(asio::io_context& context, connections& list) {
        if constexpr (survives)
            pawl::expire_all<pawl::scaled_timer>(context);
        else
            list.drain_all();
    }

    void drain() override {
        asio::post(get_executor(), [self = this->shared_from_this()] {
            if (self->is_idle())
                self->end_idle();
        });
    }

    void cut_off() override {
        asio::post(get_executor(), [self = this->shared_from_this()] {
            if (self->phase_ == phase::busy)
                ++self->tally_.forced;
            self->cut_off_ = true;
            self->lowest().close();
            self->timer_.cancel();
        });
    }

private:
    enum class phase {
        handshake, ///< or not started yet
        waiting,   ///< for the first byte of a request
        busy,      ///< with a request
        leaving    ///< only has to close
    };

    /// Whether the server owes the client nothing.
    [[nodiscard]] bool is_idle() const {
        return phase_ == phase::handshake || phase_ == phase::waiting;
    }

    [[nodiscard]] lowest_layer<Stream>& lowest() { return beast::get_lowest_layer(stream_); }

    /// The next stream operations end at `at`, or at the request's deadline.
    void expect(limit why, clock::time_point at) {
        limit_ = deadline_ < at ? limit::request : why;
        lowest().expires_at(std::min(at, deadline_));
    }

    /// A connection is closed because it is silent, or the server drains.
    void end_idle() {
        idle_over_ = true;
        drained_ = environment_.ending();
        lowest().close();
    }

    void watch() {
        environment_.watch->name(idle_, "idle connection");
        idle_.arm_within(options_.idle / 10, options_.idle);
    }
    void idle_is_over() {
        if (is_idle() && (environment_.ending() || limit_ == limit::idle))
            end_idle();
        else
            watch();
    }

    void expect_idle() {
        if constexpr (survives) {
            // The stream keeps a limit that expires after this one: without any, the system timer would have to
            // be set for each request.
            expect(limit::idle, began_ + 2 * options_.idle);
            idle_.arm_within(options_.idle / 10, options_.idle);
        } else {
            expect(limit::idle, began_ + options_.idle);
        }
    }

    asio::awaitable<bool> handshake() {
        if (environment_.ending()) // before drain() could reach this connection
            co_return false;
        if constexpr (secure) {
            expect(limit::handshake, began_ + options_.header);
            const auto [ec] =
                co_await stream_.async_handshake(asio::ssl::stream_base::server, use_tuple);
            if (ec) {
                broke_off(ec);
                co_return false;
            }
            began_ = clock::now();
        }
        co_return true;
    }

    /// One request and its response.
    /// @return whether another may follow.
    asio::awaitable<bool> exchange() {
        parser_type parser;
        parser.header_limit(options_.max_header);
        parser.body_limit(options_.max_body);
        parser.eager(true); // also takes body bytes that came with the header
        error_code ec = co_await read_header(parser);
        if (ec)
            co_return co_await refuse(ec, parser);

        ++tally_.requests;
        deadline_ = clock::now() + options_.request;
        // The parser knows no coding but "chunked", and takes the body of any other one for the next request.
        if (parser.get().count(http::field::transfer_encoding) != 0 && !parser.chunked())
            co_return co_await refuse(http::error::bad_transfer_encoding, parser);
        if (!parser.is_done())
            ec = co_await read_body(parser);
        if (ec)
            co_return co_await refuse(ec, parser);

        request_type& request = parser.get();
        reply_form form{request.version(), request.keep_alive() && !environment_.ending(),
                        request.method() == http::verb::head};
        const auto where = parse_target(request.target());
        if (!where || (form.version == 11 && request.count(http::field::host) != 1)) {
            ++tally_.malformed;
            form.keep_alive = false;
            co_return co_await send(sorry(http::status::bad_request, form), &request);
        }
        if (where->path == "/slow")
            co_return co_await send(co_await slow(*where, request, form), &request);
        if (where->path == "/echo")
            co_return co_await send(echo(request, form), &request);
        if (timer_watch::serves(where->path))
            co_return co_await about_timers(*where, request, form);
        if (request.method() != http::verb::get && !form.head)
            co_return co_await send(only("GET, HEAD", form), &request);
        co_return co_await send(file_answer(options_.root, where->path, form), &request);
    }

    /// Reads until the parser has the header. Later bytes stay in the buffer.
    asio::awaitable<error_code> read_header(parser_type& parser) {
        deadline_ = clock::time_point::max();
        phase_ = phase::waiting;
        if (!first_)
            began_ = clock::now();

        // Most requests come in one piece and need no limit for the header, except the first: the limit is set
        // only if there is something to wait for.
        bool limited = false;
        for (;;) {
            if (buffer_.size() != 0) {
                if (phase_ == phase::waiting && !first_)
                    began_ = clock::now();
                phase_ = phase::busy;
                error_code ec;
                buffer_.consume(parser.put(buffer_.data(), ec));
                if (parser.is_header_done() && ec == http::error::need_more)
                    ec = {};
                if (ec != http::error::need_more) {
                    first_ = false;
                    co_return ec;
                }
            } else if (environment_.ending()) {
                co_return asio::error::operation_aborted;
            }

            if (!first_ && phase_ == phase::waiting)
                expect_idle();
            else if (!std::exchange(limited, true))
                expect(limit::header, began_ + options_.header);
            const auto [ec, size] =
                co_await stream_.async_read_some(buffer_.prepare(2048), use_tuple);
            if (ec)
                co_return ec;
            buffer_.commit(size);
        }
    }

    /// While it lives, a client that drips is ended.
    struct rate_limit {
        explicit rate_limit(session& s) : self(s) { set(self.options_.min_rate); }
        rate_limit& operator=(rate_limit&&) = delete;
        ~rate_limit() { set(0); }

        void set(std::uint32_t rate) const {
            if constexpr (survives) {
                if (self.options_.min_rate != 0)
                    self.lowest().set_limits(
                        {.min_rate = {.bytes_per_second = rate, .grace = self.options_.grace},
                         .action = pawl::on_limit::cancel});
            }
        }
        session& self;
    };

    /// Reads until the parser has the rest.
    asio::awaitable<error_code> read_body(parser_type& parser) {
        expect(limit::body, clock::now() + options_.body);
        const rate_limit rate(*this);
        const request_type& header = parser.get();
        if (header.version() == 11 && beast::iequals(header[http::field::expect], "100-continue")) {
            static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
            const auto [ec, size] =
                co_await asio::async_write(stream_, asio::buffer(go_on), use_tuple);
            if (ec)
                co_return ec;
        }
        for (;;) {
            const auto [ec, size] =
                co_await stream_.async_read_some(buffer_.prepare(16'384), use_tuple);
            if (ec)
                co_return ec;
            buffer_.commit(size);
            error_code bad;
            buffer_.consume(parser.put(buffer_.data(), bad));
            if (parser.is_done() || (bad && bad != http::error::need_more))
                co_return bad;
            if (buffer_.size() >
                options_.max_header) // the parser waits for the end of a line, without a limit
                co_return http::error::header_limit;
        }
    }

    /// POST /echo: returns the body.
    static answer echo(request_type& request, const reply_form& form) {
        if (request.method() != http::verb::post)
            return only("POST", form);
        const std::string type(request[http::field::content_type]);
        return in_memory(form, type.empty() ? "application/octet-stream" : type,
                         std::move(request.body()));
    }

    /// GET /slow?ms=N: answers after N milliseconds, or with 503 when the request's time is up. Does not
    /// notice that the client leaves.
    asio::awaitable<answer> slow(const target& where, const request_type& request,
                                 reply_form form) {
        if (request.method() != http::verb::get && !form.head)
            co_return only("GET, HEAD", form);
        const auto number = number_in(where.query, "ms");
        if (!number)
            co_return plain_text(http::status::bad_request, form,
                                 "400 Bad Request: /slow?ms=N, N of 0 to 4294967295\n");

        const auto done = clock::now() + std::chrono::milliseconds(*number);
        lowest().expires_never();
        timer_.expires_at(std::min(done, deadline_));
        if constexpr (survives)
            environment_.watch->name(timer_, "GET /slow");
        if (!cut_off_)
            co_await timer_.async_wait(use_tuple);
        form.keep_alive = form.keep_alive && !environment_.ending();
        if (done <= deadline_ || cut_off_) // otherwise it is not sent
            co_return plain_text(http::status::ok, form, std::to_string(*number) + " ms\n");

        limit_ = limit::request;
        co_return too_late(http::status::service_unavailable, form);
    }

    /// /timers, its parts, and /metrics.
    asio::awaitable<bool> about_timers(const target& where, const request_type& request,
                                       const reply_form& form) {
        if constexpr (survives) {
            if (auto a = environment_.watch->answer_to(where, request, form))
                co_return co_await send(std::move(*a), &request);
            co_return co_await show_timers(request, form);
        } else {
            co_return co_await send(plain_text(http::status::not_found, form,
                                               "404 Not Found: " + where.path +
                                                   " tells of Pawl's timers, and this server runs "
                                                   "on Asio's\n"),
                                    &request);
        }
    }

    /// Sends the state of the timers once a second, until the client leaves.
    asio::awaitable<bool> show_timers(const request_type& request, const reply_form& form) {
        constexpr std::chrono::seconds interval{1};
        constexpr std::chrono::milliseconds look{25}; // the feed keeps 65,536 events
        constexpr std::chrono::seconds sign_of_life{15};

        timer_watch& watch = *environment_.watch;
        const auto tab = watch.open(get_executor());
        if (!tab)
            co_return co_await send(
                plain_text(http::status::service_unavailable, form,
                           "503 Service Unavailable: " + std::to_string(options_.tabs) +
                               " tabs are open already\n"),
                &request);
        const timer_watch::membership m(watch, *tab);
        pawl::event_feed::reader reader = watch.join();
        timers_summary summary;

        // From here on each write has a limit. The read, which notices that the client leaves, has none.
        limit_ = limit::write;
        lowest().expires_never();
        lowest().set_limits({.write = options_.write, .action = pawl::on_limit::cancel});
        // Without this it would take an hour until a write to a tab that does not read blocks.
        error_code ec;
        lowest().socket().set_option(tcp::socket::send_buffer_size(4096), ec);
        buffer_.clear();
        stream_.async_read_some(buffer_.prepare(1), [self = this->shared_from_this(),
                                                     tab](error_code, std::size_t) { tab->end(); });

        http::response<http::empty_body> header;
        header.version(form.version);
        header.keep_alive(false);
        header.set(http::field::date, http_date());
        header.set(http::field::content_type, "text/event-stream");
        header.set(http::field::cache_control, "no-store");
        answer log_line{http::response<http::empty_body>(), 200, 0};
        http::response_serializer<http::empty_body> begin(header);
        std::tie(ec, std::ignore) = co_await http::async_write_header(stream_, begin, use_tuple);
        std::string text = "retry: 1000\nevent: tab\ndata: " + std::to_string(tab->id) + "\n\n";
        for (auto last = clock::now(); !ec && !tab->over && !environment_.ending();) {
            if (!text.empty()) {
                log_line.size += text.size();
                std::tie(ec, std::ignore) = co_await asio::async_write(
                    stream_, asio::buffer(text),
                    asio::bind_cancellation_slot(tab->stop.slot(), use_tuple));
                last = clock::now();
                text.clear();
                continue;
            }
            if (tab->hidden != reader.suspended()) {
                if (tab->hidden)
                    reader.suspend();
                else
                    reader.resume();
                summary.begin();
            }
            tab->pause.expires_after(tab->hidden ? asio::steady_timer::duration(sign_of_life)
                                                 : look);
            co_await tab->pause.async_wait(use_tuple);
            if (reader.suspended()) {
                if (clock::now() - last >= sign_of_life)
                    text = ":\n\n";
                continue;
            }
            summary.take(reader);
            if (summary.age() >= interval)
                text = "data: " + summary.tell(watch.context(), watch.up(), watch.tabs()) + "\n\n";
        }
        if (cut_off_ || ec == beast::error::timeout) { // otherwise a client may leave at any time
            broke_off(ec, &request, &log_line);
            co_return false;
        }
        ++tally_.answers[2];
        log(&request, &log_line, {});
        if (environment_.ending())
            ++tally_.drained_busy;
        co_return false;
    }

    /// The answer to a request that is invalid, too large or too slow.
    asio::awaitable<bool> refuse(error_code ec, const parser_type& parser) {
        const request_type* const request = parser.is_header_done() ? &parser.get() : nullptr;
        if (survives && phase_ == phase::busy && ec == beast::error::timeout)
            co_return co_await send(too_late(http::status::request_timeout, {}), request);
        if (ec.category() != make_error_code(http::error::need_more).category()) {
            broke_off(ec, request);
            co_return false;
        }
        ++tally_.malformed;
        auto status = http::status::bad_request;
        if (ec == http::error::header_limit)
            status = http::status::request_header_fields_too_large;
        else if (ec == http::error::body_limit)
            status = http::status::payload_too_large;
        co_return co_await send(sorry(status, {}), request);
    }

    /// A limit has expired, and the client can still be told.
    [[nodiscard]] answer too_late(http::status status, const reply_form& form) {
        answer a = sorry(status, form);
        a.trouble = count_timeout();
        deadline_ = clock::time_point::max(); // of the request; its answer has its own
        return a;
    }

    /// @param request for the log; none if it was invalid.
    /// @return whether another request may follow.
    asio::awaitable<bool> send(answer a, const request_type* request) {
        const bool keep_alive = a.message.keep_alive();
        bool begun = false;
        error_code ec;
        while (!a.message.is_done()) {
            const auto buffers = a.message.prepare(ec);
            if (ec) // the file has shrunk, or is unreadable
                break;
            expect(limit::write, clock::now() + options_.write);
            std::size_t size = 0;
            std::tie(ec, size) = co_await stream_.async_write_some(buffers, use_tuple);
            if (ec)
                break;
            begun = true;
            a.message.consume(size);
        }

        if (ec) {
            broke_off(ec, request, begun ? &a : nullptr);
            co_return false;
        }
        ++tally_.answers[a.status / 100];
        log(request, &a, a.trouble);
        if (environment_.ending())
            ++tally_.drained_busy;
        if (keep_alive)
            co_return true;
        co_await leave();
        co_return false;
    }

    /// Ends the stream, and lets the client read what was sent.
    asio::awaitable<void> leave() {
        constexpr std::chrono::seconds patience{1};
        constexpr std::size_t most = 1'048'576; // no more can be in transit

        phase_ = phase::leaving;
        lowest().expires_after(patience);
        if constexpr (secure)
            co_await stream_.async_shutdown(use_tuple);
        error_code ec;
        lowest().socket().shutdown(tcp::socket::shutdown_send, ec);
        for (std::size_t total = 0, size = 0; !ec && total < most; total += size) {
            buffer_.clear();
            std::tie(ec, size) =
                co_await lowest().async_read_some(buffer_.prepare(16'384), use_tuple);
        }
    }

    /// The connection ends with `ec`: counts it, and logs it if it is of interest.
    /// @param a the partly sent answer; none if nothing was sent.
    void broke_off(error_code ec, const request_type* request = nullptr,
                   const answer* a = nullptr) {
        if (drained_) {
            ++tally_.drained_idle;
        } else if (idle_over_ || ec == beast::error::timeout) {
            log(request, a, count_timeout());
        } else if (cut_off_) { // counted already
            log(request, a, "cut off");
        } else if (phase_ == phase::handshake || phase_ == phase::busy) {
            ++tally_.broken_off;
            log(request, a, ec.message());
        } // otherwise both sides may end
    }

    /// @return the text for the log.
    std::string count_timeout() {
        const auto which = static_cast<std::size_t>(limit_);
        ++tally_.timeouts[which];
        return std::string(limit_names[which]) + " timeout";
    }

    void log(const request_type* request, const answer* a, std::string_view trouble) {
        if (environment_.log == nullptr)
            return;
        std::string line;
        if (request != nullptr) {
            line.append(request->method_string()).append(" ").append(request->target());
            line.append(request->version() == 10 ? " HTTP/1.0" : " HTTP/1.1");
        }
        environment_.log->write({.client = client_,
                                 .request = line,
                                 .status = a == nullptr ? 0 : a->status,
                                 .size = a == nullptr ? 0 : a->size,
                                 .took = clock::now() - began_,
                                 .trouble = trouble});
    }

    environment& environment_;
    const settings& options_;
    Stream stream_;
    Timer timer_;
    [[no_unique_address]] idle_alarm idle_;
    beast::flat_buffer buffer_;
    tally tally_;
    std::string client_; ///< its address, if there is a log

    phase phase_ = phase::handshake;
    bool first_ = true; ///< no header yet
    bool cut_off_ = false;
    bool idle_over_ = false;                 ///< closed while the server owed nothing
    bool drained_ = false;                   ///< closed because the server ends
    limit limit_ = limit::header;            ///< the running limit
    clock::time_point began_ = clock::now(); ///< begin of the current step
    clock::time_point deadline_ = clock::time_point::max(); ///< of the request
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_SESSION_HPP
