// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The data for a tab with the page of timers: what has happened since the last message, and the present state. Counts and
// names, no addresses. The size is bounded for any number of timers: names are grouped, and only the first ten are sent.
//
// Threads: one at a time.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_TIMERS_SUMMARY_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_TIMERS_SUMMARY_HPP

#include <pawl/event_feed.hpp>
#include <pawl/stats.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace example {

/// Appends `text` as a JSON string.
inline void append_json(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') {
            out += c;
        } else {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x",
                          unsigned{static_cast<unsigned char>(c)});
            out += escaped;
        }
    }
    out += '"';
}

class timers_summary {
    using clock = std::chrono::steady_clock;

public:
    timers_summary() : buffer_(512) {}

    /// Counts what the reader has; later events may wait for the next call.
    void take(pawl::event_feed::reader& reader) {
        constexpr std::size_t most = 1U << 20;
        for (std::size_t taken = 0; taken < most;) {
            const auto got = reader.try_read(buffer_);
            missed_ += got.missed;
            if (got.count == 0)
                return;
            taken += got.count;
            for (std::size_t i = 0; i != got.count; ++i) {
                const pawl::timer_event& e = buffer_[i];
                events_[static_cast<std::size_t>(e.kind)] += e.waits;
                if (e.kind == pawl::timer_event_kind::started)
                    lateness_.add(e.lateness);
            }
        }
    }

    /// Resets the counts.
    void begin() {
        events_ = {};
        missed_ = 0;
        lateness_ = {};
        since_ = clock::now();
    }

    /// Since begin().
    [[nodiscard]] clock::duration age() const { return clock::now() - since_; }

    /// Everything as one line of JSON; resets the counts.
    /// @param up how long the server has been running.
    [[nodiscard]] std::string tell(boost::asio::execution_context& context, clock::duration up,
                                   std::size_t tabs) {
        const auto now = pawl::stats(context);
        const auto total = now.total();
        std::string out = "{";
        number(out, "up", milliseconds(up));
        number(out, "span", milliseconds(age()));
        number(out, "pending", total.pending);
        number(out, "armed", total.armed);
        number(out, "wake_ups", total.wake_ups);
        number(out, "missed", missed_);
        number(out, "tabs", tabs);
        number(out, "readers", now.readers);
        out += "\"events\":{";
        for (std::size_t kind = 0; kind != events_.size(); ++kind)
            number(out, pawl::to_string(static_cast<pawl::timer_event_kind>(kind)), events_[kind]);
        out.back() = '}';
        out += ",\"lateness\":[";
        for (std::size_t i = 0; i != lateness_.size; ++i) {
            if (lateness_.counts[i] == 0)
                continue;
            // The last bucket has no end; the page shows where it begins.
            const auto end = lateness_.end_of(std::min(i, lateness_.size - 2));
            out += '[' + std::to_string(end.count()) + ',' + std::to_string(lateness_.counts[i]) +
                   "],";
        }
        close(out, ']');
        out += ",\"services\":[";
        for (std::size_t i = 0; i != std::min<std::size_t>(now.services.size(), 16); ++i)
            append_service(out, now.services[i]);
        close(out, ']');
        out += ",\"names\":[";
        append_names(out, context);
        close(out, ']');
        out += '}';
        begin();
        return out;
    }

private:
    [[nodiscard]] static std::uint64_t milliseconds(clock::duration d) {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
    }

    static void number(std::string& out, std::string_view name, std::uint64_t value) {
        append_json(out, name);
        out += ':' + std::to_string(value) + ',';
    }

    /// Ends a list: `bracket` replaces the comma after the last element.
    static void close(std::string& out, char bracket) {
        if (out.back() == ',')
            out.pop_back();
        out += bracket;
    }

    static void append_service(std::string& out, const pawl::service_stats& s) {
        out += '{';
        for (const auto& [name, value] : {std::pair("clock", &s.clock), {"backend", &s.backend}}) {
            append_json(out, name);
            out += ':';
            append_json(out, *value);
            out += ',';
        }
        number(out, "pending", s.pending);
        out += "\"levels\":[";
        for (const std::size_t n : s.levels)
            out += std::to_string(n) + ',';
        close(out, ']');
        out += "},";
    }

    /// For each name the most overdue timer; the most overdue names first.
    static void append_names(std::string& out, boost::asio::execution_context& context) {
        constexpr std::size_t most = 10;
        struct group {
            std::chrono::nanoseconds left = std::chrono::nanoseconds::max();
            std::size_t timers = 0;
        };
        std::map<std::string, group, std::less<>> groups;
        for (const pawl::named_timer& t : pawl::named_timers(context)) {
            if (t.waits == 0)
                continue;
            group& g = groups[std::string(t.name.view())];
            g.left = std::min(g.left, t.left);
            ++g.timers;
        }
        std::vector<std::pair<std::string, group>> all(groups.begin(), groups.end());
        std::sort(all.begin(), all.end(),
                  [](const auto& a, const auto& b) { return a.second.left < b.second.left; });
        all.resize(std::min(all.size(), most));
        for (const auto& [name, g] : all) {
            out += "{\"name\":";
            append_json(out, name);
            out += ",\"timers\":" + std::to_string(g.timers) +
                   ",\"left\":" + std::to_string(g.left.count()) + "},";
        }
    }

    std::vector<pawl::timer_event> buffer_;
    std::array<std::uint64_t, pawl::timer_event_kinds> events_{};
    std::uint64_t missed_ = 0;
    pawl::duration_histogram lateness_;
    clock::time_point since_ = clock::now();
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_TIMERS_SUMMARY_HPP
