// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::stats: counters of the timers of a context.
#ifndef PAWL_STATS_HPP
#define PAWL_STATS_HPP

#include <pawl/config.hpp>

#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/service_registry.hpp>

#include <pawl/detail/watch/event_hub.hpp>
#include <pawl/duration_histogram.hpp>

#include <boost/asio/execution_context.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

/// Counters of one service: of the timers with one clock and one time structure.
struct service_stats {
    std::string clock;                    ///< such as "steady_clock"
    std::string backend;                  ///< such as "hierarchical_wheel"
    std::size_t shards = 0;               ///< number of shards
    std::chrono::nanoseconds precision{}; ///< options::precision

    std::uint64_t pending = 0; ///< waits whose handlers have not begun
    std::uint64_t armed = 0;   ///< of these, waits for their deadline
    std::uint64_t filed = 0;   ///< timers in the time structure, including recently cancelled ones

    // Since the service was made. Each wait is pending, expired or cancelled.
    std::uint64_t started = 0;     ///< waits that were started
    std::uint64_t expired = 0;     ///< waits whose handlers began with success
    std::uint64_t cancelled = 0;   ///< waits that ended in any other way, also by shutdown
    std::uint64_t moved = 0;       ///< waits whose deadline was moved by a re-arm
    std::uint64_t overflowed = 0;  ///< waits for which a ring had no room
    std::uint64_t refused = 0;     ///< waits and armings beyond options::max_pending
    std::uint64_t wake_ups = 0;    ///< wake-ups of the service by the system
    std::uint64_t level_moves = 0; ///< timers moved to a lower level of a wheel

    /// Timers per level of a wheel, the lowest first. Empty for a structure without levels.
    std::vector<std::size_t> levels;

    /// Adds the counts of another service.
    /// @throws std::bad_alloc
    service_stats& operator+=(const service_stats& s);
};

namespace detail {

/// A counter of a service, with its name.
struct named_count {
    const char* name;
    const char* help;
    bool counter; ///< whether it only grows
    std::uint64_t service_stats::*value;
    std::uint64_t shard_counts::*of_shard = nullptr; ///< null: counted once for all shards
};
inline constexpr named_count named_counts[] = {
    {"pending", "Waits whose handlers have not begun.", false, &service_stats::pending,
     &shard_counts::pending},
    {"armed", "Waits that wait for their deadline.", false, &service_stats::armed,
     &shard_counts::armed},
    {"filed", "Timers in the time structure.", false, &service_stats::filed, &shard_counts::filed},
    {"started", "Waits that were started.", true, &service_stats::started, &shard_counts::started},
    {"expired", "Waits that expired, and whose handlers have begun.", true, &service_stats::expired,
     &shard_counts::expired},
    {"cancelled", "Waits that ended before they expired.", true, &service_stats::cancelled,
     &shard_counts::cancelled},
    {"moved", "Waits whose deadline was moved.", true, &service_stats::moved, &shard_counts::moved},
    {"overflowed", "Waits for which a ring had no room.", true, &service_stats::overflowed,
     &shard_counts::overflowed},
    {"refused", "Waits and armings beyond max_pending.", true, &service_stats::refused,
     &shard_counts::refused},
    {"wake_ups", "Times that the timer service was woken by the system.", true,
     &service_stats::wake_ups},
    {"level_moves", "Timers that were moved to a lower level of a wheel.", true,
     &service_stats::level_moves, &shard_counts::level_moves},
};

} // namespace detail

inline service_stats& service_stats::operator+=(const service_stats& s) {
    shards += s.shards;
    for (const detail::named_count& c : detail::named_counts)
        this->*c.value += s.*c.value;
    levels.resize(std::max(levels.size(), s.levels.size()));
    std::transform(s.levels.begin(), s.levels.end(), levels.begin(), levels.begin(), std::plus<>());
    return *this;
}

/// Counters of the timers of a context.
struct context_stats {
    std::vector<service_stats> services; ///< in no particular order
    bool measured = false;               ///< whether measure_times() is on
    duration_histogram
        lateness; ///< from the begin of the tick in which a wait was due to its handler
    duration_histogram handler_time;       ///< how long handlers of waits took
    pawl::longest_handler longest_handler; ///< since the latest call of measure_times(context)
    pawl::longest_turn longest_turn;       ///< the same
    std::size_t readers = 0;               ///< readers of event_feed that are not suspended
    std::uint64_t events = 0;              ///< events published for readers so far

    /// The sum of all services. `clock`, `backend` and `precision` are left empty.
    [[nodiscard]] service_stats total() const {
        service_stats all;
        for (const service_stats& s : services)
            all += s;
        return all;
    }
};

/// Turns the measuring of lateness and handler times on or off for all waits of `context`. It is
/// off by default. Handler times are measured only for handlers that run on the executor of the
/// timers, not on a strand or another executor. Measuring costs two clock reads per completed wait,
/// two locks and the look-up of a name.
/// Values measured so far are kept, except the longest handler and turn: each call with `on` begins anew.
/// @throws std::bad_alloc
/// @par Thread safety
/// May be called from any thread.
/// @par Complexity
/// O(shards)
inline void measure_times(boost::asio::execution_context& context, bool on = true) {
    detail::hub_service::of(context)->measure(on);
}

/// A snapshot. The counters of one shard are consistent with each other. Shards are read one after
/// the other, each under its lock for a short time. Changes nothing.
/// @throws std::bad_alloc
/// @par Thread safety
/// May be called from any thread.
/// @par Complexity
/// O(slots of the wheels): some microseconds per shard.
[[nodiscard]] inline context_stats stats(boost::asio::execution_context& context) {
    context_stats all;
    if (!boost::asio::has_service<detail::service_registry>(context))
        return all;
    boost::asio::use_service<detail::service_registry>(context).for_each(
        [&](detail::registered_service& service) {
            const auto shards = service.observed_shards();
            if (shards.empty())
                return; // no reader, nothing measured
            const auto about = service.describe();
            service_stats s;
            s.clock = about.clock;
            s.backend = about.backend;
            s.wake_ups = about.wake_ups;
            s.shards = shards.size();
            s.precision = shards.front()->precision();
            s.levels.resize(shards.front()->count_levels(nullptr));
            for (detail::observed_shard* const shard : shards) {
                const std::scoped_lock lock(shard->mutex());
                const detail::shard_counts c = shard->counts();
                shard->count_levels(s.levels.data());
                for (const detail::named_count& n : detail::named_counts)
                    s.*n.value += n.of_shard ? c.*n.of_shard : 0;
            }
            all.services.push_back(std::move(s));
        });
    if (boost::asio::has_service<detail::hub_service>(context)) {
        const auto& hub = detail::hub_service::of(context);
        all.measured = hub->measuring();
        all.readers = hub->readers();
        all.events = hub->published();
        const auto longest = hub->add_to(all.lateness, all.handler_time);
        all.longest_handler = longest.handler;
        all.longest_turn = longest.turn;
    }
    return all;
}

namespace detail {

/// Appends the text of statistics to a string.
class stats_writer {
public:
    explicit stats_writer(std::string& out) noexcept : out_(out) {}

    stats_writer& operator<<(std::string_view text) {
        out_ += text;
        return *this;
    }
    stats_writer& operator<<(std::uint64_t n) {
        char digits[20];
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
        return *this;
    }
    /// Writes the duration in seconds, exactly.
    stats_writer& operator<<(std::chrono::nanoseconds d) {
        const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0));
        *this << ns / 1'000'000'000;
        if (const std::uint64_t rest = ns % 1'000'000'000; rest != 0) {
            std::string digits = std::to_string(rest + 1'000'000'000);
            digits.erase(digits.find_last_not_of('0') + 1);
            digits[0] = '.';
            out_ += digits;
        }
        return *this;
    }

    /// Writes text of the program's in quotes: control characters as spaces.
    stats_writer& quote(std::string_view text) {
        out_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\')
                out_ += '\\';
            out_ += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
        out_ += '"';
        return *this;
    }

private:
    std::string& out_;
};

} // namespace detail

/// The snapshot in the text format of Prometheus, version 0.0.4. Serve it for `GET /metrics` with
/// the content type `text/plain; version=0.0.4; charset=utf-8`. Durations are in seconds;
/// histograms have one bucket per power of two of nanoseconds. Services with the same clock and
/// backend are added up.
/// @throws std::bad_alloc
[[nodiscard]] inline std::string to_prometheus(const context_stats& all) {
    // Two services may have the same labels, but each sample must be unique.
    std::vector<service_stats> services;
    for (const service_stats& s : all.services) {
        const auto same = std::find_if(services.begin(), services.end(), [&](const auto& other) {
            return other.clock == s.clock && other.backend == s.backend;
        });
        if (same == services.end())
            services.push_back(s);
        else
            *same += s;
    }
    std::string text;
    detail::stats_writer out(text);
    const auto head = [&](std::string_view name, std::string_view help, std::string_view type) {
        out << "# HELP pawl_" << name << " " << help << "\n# TYPE pawl_" << name << " " << type
            << "\n";
    };
    const auto labels = [&](std::string_view name, const service_stats& s) -> auto& {
        (out << "pawl_" << name << "{clock=").quote(s.clock);
        return (out << ",backend=").quote(s.backend);
    };
    for (const detail::named_count& c : detail::named_counts) {
        const std::string name = std::string("timer_") + c.name + (c.counter ? "_total" : "");
        head(name, c.help, c.counter ? "counter" : "gauge");
        for (const service_stats& s : services)
            labels(name, s) << "} " << s.*c.value << "\n";
    }
    head("timer_level_filed", "Timers on each level of a wheel, from 0 on.", "gauge");
    for (const service_stats& s : services)
        for (std::size_t i = 0; i != s.levels.size(); ++i)
            labels("timer_level_filed", s) << ",level=\"" << i << "\"} " << s.levels[i] << "\n";
    const auto histogram = [&](std::string_view name, std::string_view help,
                               const duration_histogram& h) {
        head(name, help, "histogram");
        std::uint64_t below = 0;
        for (std::size_t i = 0; i != h.size - 1; ++i) {
            below += h.counts[i];
            if (i % 4 == 0)
                out << "pawl_" << name << "_bucket{le=\"" << h.end_of(i) << "\"} " << below << "\n";
        }
        const std::uint64_t count = below + h.counts[h.size - 1];
        out << "pawl_" << name << "_bucket{le=\"+Inf\"} " << count << "\npawl_" << name << "_sum "
            << h.sum << "\npawl_" << name << "_count " << count << "\n";
    };
    histogram("timer_lateness_seconds", "From the tick in which a wait was due to its handler.",
              all.lateness);
    histogram("timer_handler_seconds", "How long handlers of waits took.", all.handler_time);
    head("timer_longest_handler_seconds", "The longest of these, and the name of its timer.",
         "gauge");
    if (all.longest_handler.time != std::chrono::nanoseconds::zero())
        (out << "pawl_timer_longest_handler_seconds{name=").quote(all.longest_handler.name.view())
            << "} " << all.longest_handler.time << "\n";
    head("timer_longest_turn_seconds", "The longest turn of the loop that ran handlers of waits.",
         "gauge");
    out << "pawl_timer_longest_turn_seconds " << all.longest_turn.time << "\n";
    head("timer_feed_readers", "Readers of events that are not suspended.", "gauge");
    out << "pawl_timer_feed_readers " << all.readers << "\n";
    head("timer_feed_events_total", "Events that were published for readers.", "counter");
    out << "pawl_timer_feed_events_total " << all.events << "\n";
    return text;
}

/// The snapshot as one line of JSON. Durations are in nanoseconds. A histogram lists its non-empty
/// buckets as [end, count]; the end of the last bucket is null.
/// @throws std::bad_alloc
[[nodiscard]] inline std::string to_json(const context_stats& all) {
    std::string text;
    detail::stats_writer out(text);
    const auto count = [](std::chrono::nanoseconds d) {
        return static_cast<std::uint64_t>(d.count());
    };
    out << "{\"services\":[";
    std::string_view comma = "";
    for (const service_stats& s : all.services) {
        (out << comma << "{\"clock\":").quote(s.clock);
        (out << ",\"backend\":").quote(s.backend);
        out << ",\"shards\":" << s.shards << ",\"precision\":" << count(s.precision);
        for (const detail::named_count& c : detail::named_counts)
            out << ",\"" << c.name << "\":" << s.*c.value;
        out << ",\"levels\":[";
        for (std::size_t i = 0; i != s.levels.size(); ++i)
            out << (i != 0 ? "," : "") << s.levels[i];
        out << "]}";
        comma = ",";
    }
    const auto histogram = [&](const duration_histogram& h) {
        out << "{\"sum\":" << count(h.sum) << ",\"count\":" << h.count() << ",\"buckets\":[";
        std::string_view between = "";
        for (std::size_t i = 0; i != h.size; ++i) {
            if (h.counts[i] == 0)
                continue;
            out << between << "[";
            if (i == h.size - 1)
                out << "null";
            else
                out << count(h.end_of(i));
            out << "," << h.counts[i] << "]";
            between = ",";
        }
        out << "]}";
    };
    out << "],\"measured\":" << (all.measured ? "true" : "false") << ",\"lateness\":";
    histogram(all.lateness);
    out << ",\"handler_time\":";
    histogram(all.handler_time);
    (out << ",\"longest_handler\":{\"time\":" << count(all.longest_handler.time) << ",\"name\":")
        .quote(all.longest_handler.name.view());
    out << "},\"longest_turn\":{\"time\":" << count(all.longest_turn.time)
        << ",\"handlers\":" << all.longest_turn.handlers << "},\"readers\":" << all.readers
        << ",\"events\":" << all.events << "}";
    return text;
}

} // namespace pawl

#endif // PAWL_STATS_HPP
