// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The counts of stats() agree with the events, and others can read its output.

#define BOOST_TEST_MODULE stats
#include <boost/test/unit_test.hpp>

#include "../support/typed_cases.hpp"
#include "watch_support.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace watch_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using pawl::duration_histogram;
using std::chrono::nanoseconds;

constexpr auto ignore = [](error_code) {};

void check_identity(const pawl::service_stats& s) {
    BOOST_TEST(s.started == s.pending + s.expired + s.cancelled);
    BOOST_TEST(s.armed <= s.pending);
}

using every_timer = pawl_test::types<pawl::steady_timer, pawl::system_timer, pawl::compact_timer,
                                     pawl::coarse_timer>;

PAWL_TYPED_CASE(each_wait_is_counted_once, Timer, every_timer) {
    asio::io_context context;
    int expired = 0, aborted = 0;
    const auto count = [&](error_code ec) { ++(ec ? aborted : expired); };
    std::vector<std::unique_ptr<Timer>> timers;
    for (int i = 0; i != 10; ++i) {
        timers.push_back(std::make_unique<Timer>(context, i < 4 ? 1ms : 30min));
        timers.back()->async_wait(count);
        timers.back()->async_wait(count);
    }
    BOOST_TEST(timers[9]->rearm_after(20min) == 2U);
    timers[8]->cancel_one();
    while (expired < 8)
        context.run_one();
    const pawl::context_stats all = pawl::stats(context);
    BOOST_TEST(all.services.size() == 1U);
    const pawl::service_stats& s = all.services.at(0);
    check_identity(s);
    BOOST_TEST(s.started == 20U);
    BOOST_TEST(s.expired == 8U);
    BOOST_TEST(s.cancelled == static_cast<std::uint64_t>(aborted));
    BOOST_TEST(s.armed == 11U);
    BOOST_TEST(s.pending == 11U);
    BOOST_TEST(s.moved == 2U);
    BOOST_TEST(s.filed == 6U);
    BOOST_TEST(s.shards == 1U);
    BOOST_TEST(s.wake_ups >= 1U);
    std::size_t on_levels = 0;
    for (const std::size_t n : s.levels)
        on_levels += n;
    BOOST_TEST(on_levels == (s.backend == "binary_wheel" ? 0 : s.filed)); // it has no levels
    pawl::expire_all(context);
    context.run();
    check_identity(pawl::stats(context).total());
    BOOST_TEST(pawl::stats(context).total().cancelled == 12U);
    BOOST_TEST(expired == 19);
    BOOST_TEST(aborted == 1); // expire_all() reports success
}

BOOST_AUTO_TEST_CASE(services_have_the_names_of_clock_and_structure) {
    asio::io_context context;
    BOOST_TEST(pawl::stats(context).services.empty());
    const pawl::steady_timer a(context);
    const pawl::system_timer b(context);
    const pawl::compact_timer c(context);
    const pawl::ring_timer d(context);
    const pawl::coarse_timer e(context);
    const pawl::manual_timer f(context);
    std::set<std::string> names;
    for (const auto& s : pawl::stats(context).services)
        names.insert(s.clock + ' ' + s.backend);
    BOOST_TEST(names == (std::set<std::string>{
                            "steady_clock hierarchical_wheel", "system_clock hierarchical_wheel",
                            "steady_clock binary_wheel", "steady_clock timeout_rings",
                            "coarse_clock hierarchical_wheel", "manual_clock hierarchical_wheel"}),
               boost::test_tools::per_element());
}

/// A clock whose label is not one of Pawl's.
struct odd_clock : std::chrono::steady_clock {
    using time_point = std::chrono::time_point<odd_clock>;
    static constexpr int label = 7;
    static time_point now() {
        return time_point(std::chrono::steady_clock::now().time_since_epoch());
    }
};

BOOST_AUTO_TEST_CASE(a_label_that_is_no_text_is_not_one) {
    asio::io_context context;
    pawl::basic_waitable_timer<odd_clock> timer(context);
    BOOST_TEST(pawl::stats(context).services.at(0).clock == "steady");
}

BOOST_AUTO_TEST_CASE(shards_are_added_up) {
    asio::io_context context;
    pawl::options o;
    o.shards = 4;
    pawl::make_timer_service(context, o);
    std::vector<std::unique_ptr<pawl::steady_timer>> timers(4);
    for (auto& t : timers)
        std::thread([&] {
            t = std::make_unique<pawl::steady_timer>(context, 1h);
            t->async_wait(ignore);
        }).join();
    const auto s = pawl::stats(context).total();
    BOOST_TEST(s.shards == 4U);
    BOOST_TEST(s.armed == 4U);
    BOOST_TEST(s.started == 4U);
}

/// All counts of a service, except those of wake-ups and shards.
std::map<std::string, std::uint64_t> counts(const pawl::service_stats& s) {
    std::map<std::string, std::uint64_t> all;
    for (const auto& c : pawl::detail::named_counts)
        all[c.name] = s.*c.value;
    all.erase("wake_ups");
    for (std::size_t i = 0; i != s.levels.size(); ++i)
        all["level " + std::to_string(i)] = s.levels[i];
    return all;
}

/// Three threads, each with a shard of its own if there are several, call `use` one after the other.
template <class Use>
void in_three_threads(Use use) {
    for (int i = 0; i != 3; ++i)
        std::thread(use).join();
}

BOOST_AUTO_TEST_CASE(each_count_is_that_of_all_shards) {
    std::vector<std::map<std::string, std::uint64_t>> seen;
    for (const unsigned shards : {1U, 3U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        o.precision = 1ms;
        pawl::make_timer_service<pawl::manual_timer>(context, o);
        std::vector<std::unique_ptr<pawl::manual_timer>> timers;
        in_three_threads([&] {
            const auto make = [&](std::chrono::seconds delay) -> pawl::manual_timer& {
                timers.push_back(std::make_unique<pawl::manual_timer>(context, delay));
                timers.back()->async_wait(ignore);
                return *timers.back();
            };
            make(1s); // expires
            make(90s);
            make(91s).cancel();
            make(92s).rearm_after(80s);
        });
        pawl::manual_clock::advance(context, 2s);
        context.poll();
        pawl::manual_clock::advance(context, 77s); // the others move to lower levels
        const auto s = pawl::stats(context);
        BOOST_TEST(s.services.at(0).shards == shards);
        BOOST_TEST((s.services.at(0).precision == 1ms));
        check_identity(s.services.at(0));
        seen.push_back(counts(s.services.at(0)));
    }
    for (const auto& [name, count] : seen.at(0))
        BOOST_TEST(seen.at(1).at(name) == count, name);
    for (const char* name :
         {"pending", "armed", "filed", "started", "expired", "cancelled", "moved", "level_moves"})
        BOOST_TEST(seen.at(0).at(name) >= 3U, name);
    BOOST_TEST(seen.at(0).size() == seen.at(1).size());
}

BOOST_AUTO_TEST_CASE(waits_without_room_are_counted_in_all_shards) {
    asio::io_context context;
    pawl::options o;
    o.shards = 3;
    o.rings.delays = {{.delay = 1h, .capacity = 1}};
    o.rings.marks = 1;
    o.rings.round_up = true;
    o.rings.when_full = pawl::ring_overflow::reject;
    pawl::make_timer_service<pawl::ring_timer>(context, o);
    std::vector<std::unique_ptr<pawl::ring_timer>> timers;
    std::uint64_t refused = 0;
    in_three_threads([&] {
        for (int i = 0; i != 5; ++i) {
            timers.push_back(std::make_unique<pawl::ring_timer>(context, 30min));
            timers.back()->async_wait([&](error_code ec) { refused += ec.failed() ? 1 : 0; });
        }
    });
    context.poll();
    BOOST_TEST(refused >= 12U); // of fifteen, at most one fits in each shard
    BOOST_TEST(pawl::stats(context).total().overflowed == refused);
}

BOOST_AUTO_TEST_CASE(services_are_added_up_in_each_field) {
    pawl::service_stats a;
    a.clock = "clock";
    a.shards = 2;
    a.precision = 1ms;
    pawl::service_stats b = a;
    std::uint64_t n = 1;
    for (const auto& c : pawl::detail::named_counts) {
        a.*c.value = n;
        b.*c.value = 100 * n;
        ++n;
    }
    a.levels = {1, 2};
    b.levels = {10, 20, 30};
    b.shards = 3;
    for (const auto& services : {std::vector{a, b}, std::vector{b, a}}) {
        pawl::context_stats all;
        all.services = services;
        const pawl::service_stats total = all.total();
        n = 1;
        for (const auto& c : pawl::detail::named_counts)
            BOOST_TEST((total.*c.value) == 101 * n++, c.name);
        BOOST_TEST(total.levels == (std::vector<std::size_t>{11, 22, 30}),
                   boost::test_tools::per_element());
        BOOST_TEST(total.shards == 5U);
        BOOST_TEST(total.clock.empty());
        BOOST_TEST(total.precision.count() == 0);
    }
}

// ---- times --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(times_are_measured_when_asked_for) {
    asio::io_context context;
    pawl::manual_timer timer(context, 1s);
    const auto once = [&] {
        timer.expires_after(1s);
        timer.async_wait([](error_code) { std::this_thread::sleep_for(2ms); });
        pawl::manual_clock::advance(context, 3s);
        context.restart();
        context.run();
        return pawl::stats(context);
    };
    BOOST_TEST(!once().measured);
    BOOST_TEST(once().lateness.count() == 0U);
    pawl::measure_times(context);
    const auto s = once();
    BOOST_TEST(s.measured);
    BOOST_TEST(s.lateness.count() == 1U);
    BOOST_TEST(s.lateness.sum.count() == nanoseconds(2s).count());
    BOOST_TEST(s.handler_time.count() == 1U);
    BOOST_TEST(s.handler_time.sum.count() >= nanoseconds(2ms).count());
    BOOST_TEST(s.events == 0U); // there is no reader
    pawl::measure_times(context, false);
    BOOST_TEST(once().lateness.count() == 1U);
}

BOOST_AUTO_TEST_CASE(times_are_measured_and_not_measured_whoever_reads_events) {
    asio::io_context context;
    pawl::event_feed feed(context);
    std::optional<pawl::event_feed::reader> reader(feed.join());
    pawl::manual_timer timer(context);
    std::uint64_t events = 0;
    std::chrono::seconds step = 1h; // in the last bucket
    const auto once = [&] {
        timer.expires_after(1s);
        timer.async_wait(ignore);
        pawl::manual_clock::advance(context, step);
        context.restart();
        context.run();
        if (reader)
            events += read_all(*reader).all.size();
    };
    const auto check = [&](std::uint64_t measured, std::uint64_t read) {
        const auto s = pawl::stats(context);
        BOOST_TEST(s.lateness.count() == measured);
        BOOST_TEST(s.handler_time.count() == measured);
        BOOST_TEST(s.lateness.counts.back() == measured);
        BOOST_TEST((s.lateness.sum == static_cast<int>(measured) * (1h - 1s)));
        BOOST_TEST(events == read);
    };
    once();
    check(0, 3);
    pawl::measure_times(context);
    once();
    check(1, 6);
    pawl::measure_times(context, false); // while observed
    once();
    check(1, 9);
    BOOST_TEST(!pawl::stats(context).measured);
    pawl::measure_times(context);
    reader->suspend(); // while measured
    once();
    check(2, 9);
    reader->resume();
    once();
    check(3, 12);
    reader.reset();
    once();
    check(4, 12);
    BOOST_TEST(pawl::stats(context).readers == 0U);
    pawl::measure_times(context, false);
    once();
    check(4, 12);
    pawl::measure_times(context);
    step = 1s; // not late
    once();
    const auto s = pawl::stats(context);
    BOOST_TEST(s.lateness.counts.front() == 1U);
    BOOST_TEST((s.lateness.sum == 4 * (1h - 1s)));
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_is_measured) {
    asio::io_context context;
    pawl::measure_times(context);
    pawl::steady_timer timer(context, 0s);
    timer.async_wait([](error_code) { throw std::runtime_error("a handler"); });
    BOOST_CHECK_THROW(context.run(), std::runtime_error);
    BOOST_TEST(pawl::stats(context).handler_time.count() == 1U);
}

BOOST_AUTO_TEST_CASE(the_longest_handler_is_told_with_the_name_of_its_timer) {
    asio::io_context context;
    pawl::measure_times(context);
    BOOST_TEST(pawl::stats(context).longest_handler.time.count() == 0);
    // Each runs longer than all before.
    const auto run = [&](std::string_view name, bool cancels) {
        auto timer = std::make_unique<pawl::steady_timer>(context, cancels ? 1h : 0s);
        pawl::set_name(*timer, name);
        timer->async_wait([&](error_code) {
            timer.reset();
            const auto before = pawl::stats(context).longest_handler.time;
            for (const auto begin = std::chrono::steady_clock::now();
                 std::chrono::steady_clock::now() - begin <= before;) {
            }
        });
        if (cancels)
            timer->cancel();
        context.restart();
        context.run();
        const auto longest = pawl::stats(context).longest_handler;
        BOOST_TEST(longest.time.count() > 0);
        return std::string(longest.name.view());
    };
    BOOST_TEST(run("first", false) == "first");
    BOOST_TEST(run("", false).empty());
    BOOST_TEST(run("second", false) == "second");
    BOOST_TEST(run("third", true).empty()); // a cancelled wait no longer knows its timer
    pawl::measure_times(context, false);
    BOOST_TEST(pawl::stats(context).longest_handler.time.count() > 0);
    pawl::measure_times(context); // anew
    BOOST_TEST(pawl::stats(context).longest_handler.time.count() == 0);
    BOOST_TEST(run("fourth", false) == "fourth");
}

namespace {
struct failing_clock : std::chrono::steady_clock {
    using time_point = std::chrono::time_point<failing_clock, duration>;
    static inline bool fails = false;
    static time_point now() {
        if (fails)
            throw std::runtime_error("no time");
        return time_point(std::chrono::steady_clock::now().time_since_epoch());
    }
};
} // namespace

BOOST_AUTO_TEST_CASE(a_clock_that_throws_does_not_end_the_program_because_it_is_watched) {
    asio::io_context context;
    pawl::basic_waitable_timer<failing_clock> timer(context, 5ms);
    error_code seen = asio::error::would_block;
    timer.async_wait([&](error_code ec) { seen = ec; });
    failing_clock::fails = true;
    pawl::measure_times(context);
    timer.cancel();
    failing_clock::fails = false;
    context.run();
    BOOST_TEST(seen == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(the_longest_turn_is_told_with_the_number_of_its_handlers) {
    asio::io_context context;
    pawl::make_timer_service<pawl::manual_timer>(context, {.completions_per_turn = 4});
    pawl::measure_times(context);
    // The first turn takes longer than the second.
    std::deque<pawl::manual_timer> timers;
    for (int i = 0; i != 4; ++i) {
        timers.emplace_back(context, 1ms).async_wait([](error_code) {
            for (const auto begin = std::chrono::steady_clock::now();
                 std::chrono::steady_clock::now() - begin < 1ms;) {
            }
        });
    }
    pawl::manual_clock::advance(context, 1ms);
    context.run();
    auto all = pawl::stats(context);
    BOOST_TEST(all.longest_turn.handlers == 4U);
    BOOST_TEST((all.longest_turn.time >= all.handler_time.sum));

    pawl::measure_times(context); // anew
    BOOST_TEST(pawl::stats(context).longest_turn.handlers == 0U);
    timers.front().expires_after(1ms);
    timers.front().async_wait(ignore);
    pawl::manual_clock::advance(context, 1ms);
    context.restart();
    context.run();
    all = pawl::stats(context);
    BOOST_TEST(all.longest_turn.handlers == 1U);
    BOOST_TEST((all.longest_turn.time >= all.longest_handler.time));
}

BOOST_AUTO_TEST_CASE(a_handler_that_runs_the_context_is_measured_as_each_within_it) {
    asio::io_context context;
    pawl::measure_times(context);
    pawl::steady_timer outer(context, 0s), inner(context, 0s);
    bool ran = false;
    outer.async_wait([&](error_code) {
        while (!ran)
            context.run_one();
    });
    inner.async_wait([&](error_code) { ran = true; });
    context.run();
    BOOST_TEST(pawl::stats(context).handler_time.count() == 2U);
}

BOOST_AUTO_TEST_CASE(cancelled_waits_are_timed_but_not_late) {
    asio::io_context context;
    pawl::measure_times(context);
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    timer.cancel();
    context.run();
    const auto s = pawl::stats(context);
    BOOST_TEST(s.lateness.count() == 0U);
    BOOST_TEST(s.handler_time.count() == 1U);
}

BOOST_AUTO_TEST_CASE(on_a_strand_lateness_is_measured_and_handler_time_is_not) {
    asio::io_context context;
    pawl::measure_times(context);
    auto strand = asio::make_strand(context);
    pawl::steady_timer timer(context, 0s);
    timer.async_wait(asio::bind_executor(strand, ignore));
    context.run();
    const auto s = pawl::stats(context);
    BOOST_TEST(s.lateness.count() == 1U);
    BOOST_TEST(s.handler_time.count() == 0U);
}

BOOST_AUTO_TEST_CASE(readers_and_events_are_counted) {
    asio::io_context context;
    pawl::event_feed feed(context);
    auto reader = feed.join();
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(read_all(reader).all.size() == 1U);
    BOOST_TEST(pawl::stats(context).readers == 1U);
    BOOST_TEST(pawl::stats(context).events == 1U);
}

// ---- histograms ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(buckets_follow_each_other_without_gaps) {
    BOOST_TEST(duration_histogram::bucket_of(nanoseconds::min()) == 0U);
    BOOST_TEST(duration_histogram::bucket_of(0ns) == 0U);
    BOOST_TEST(duration_histogram::bucket_of(nanoseconds::max()) == duration_histogram::size - 1);
    for (std::size_t i = 0; i != duration_histogram::size - 1; ++i) {
        const nanoseconds end = duration_histogram::end_of(i);
        BOOST_TEST(duration_histogram::bucket_of(end - 1ns) == i);
        BOOST_TEST(duration_histogram::bucket_of(end) == i + 1);
    }
    BOOST_TEST((duration_histogram::end_of(duration_histogram::size - 1) == nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE(a_bucket_is_at_most_a_quarter_wide) {
    for (std::size_t i = 1; i != duration_histogram::size - 1; ++i) {
        const auto begin = duration_histogram::end_of(i - 1).count();
        BOOST_TEST(duration_histogram::end_of(i).count() - begin <= begin / 4);
    }
}

BOOST_AUTO_TEST_CASE(a_quantile_covers_its_share) {
    duration_histogram h;
    BOOST_TEST(h.quantile(0.5).count() == 0);
    for (int i = 0; i != 10; ++i)
        h.add(std::chrono::microseconds(10 << i));
    for (int percent = 0; percent <= 100; ++percent) {
        const double q = percent / 100.0;
        const nanoseconds limit = h.quantile(q);
        int within = 0;
        for (int i = 0; i != 10; ++i)
            within += std::chrono::microseconds(10 << i) <= limit;
        BOOST_TEST(within >= q * 10);
        BOOST_TEST(within <= q * 10 + 1.0001);
    }
    BOOST_TEST((h.quantile(-1) == h.quantile(0)));
    BOOST_TEST((h.quantile(2) == h.quantile(1)));
}

BOOST_AUTO_TEST_CASE(quantiles_of_few_durations_are_those_of_their_buckets) {
    const auto end = [](nanoseconds d) {
        return duration_histogram::end_of(duration_histogram::bucket_of(d));
    };
    duration_histogram h;
    h.add(10us);
    h.add(1ms);
    h.add(1s);
    h.add(1h); // in the last bucket, which has no end
    for (const double q : {-1.0, 0.0, 0.01, 0.25})
        BOOST_TEST((h.quantile(q) == end(10us)));
    for (const double q : {0.26, 0.5})
        BOOST_TEST((h.quantile(q) == end(1ms)));
    for (const double q : {0.51, 0.75})
        BOOST_TEST((h.quantile(q) == end(1s)));
    for (const double q : {0.76, 1.0, 2.0})
        BOOST_TEST((h.quantile(q) == nanoseconds::max()));
    BOOST_TEST(h.counts.back() == 1U);

    duration_histogram first;
    first.add(0ns);
    first.add(nanoseconds(1023));
    BOOST_TEST(first.counts.front() == 2U);
    BOOST_TEST(first.quantile(0).count() == 1024);
    BOOST_TEST(first.quantile(1).count() == 1024);
}

BOOST_AUTO_TEST_CASE(the_bounds_of_buckets_are_four_for_each_power_of_two) {
    BOOST_TEST(duration_histogram::end_of(0).count() == 1024);
    BOOST_TEST(duration_histogram::end_of(1).count() == 1280);
    BOOST_TEST(duration_histogram::end_of(2).count() == 1536);
    BOOST_TEST(duration_histogram::end_of(3).count() == 1792);
    BOOST_TEST(duration_histogram::end_of(4).count() == 2048);
    BOOST_TEST(duration_histogram::end_of(5).count() == 2560);
    BOOST_TEST(duration_histogram::end_of(duration_histogram::size - 2).count() ==
               7 * (std::int64_t{1} << 34)); // the last quarter below 137 s belongs to the last one
    BOOST_TEST(duration_histogram::bucket_of(1h) == duration_histogram::size - 1);
}

BOOST_AUTO_TEST_CASE(durations_are_written_in_seconds_exactly) {
    const auto text = [](nanoseconds d) {
        std::string out;
        pawl::detail::stats_writer(out) << d;
        return out;
    };
    BOOST_TEST(text(-1ns) == "0");
    BOOST_TEST(text(1ns) == "0.000000001");
    BOOST_TEST(text(999'999'999ns) == "0.999999999");
    BOOST_TEST(text(1s) == "1");
    BOOST_TEST(text(1s + 1ns) == "1.000000001");
    BOOST_TEST(text(1500ms) == "1.5");
    BOOST_TEST(text(100'000'000s) == "100000000");
    BOOST_TEST(text(nanoseconds::max()) == "9223372036.854775807");
}

BOOST_AUTO_TEST_CASE(histograms_add_up) {
    duration_histogram a, b;
    a.add(1ms);
    b.add(2ms);
    b.add(-1ms); // counts as zero
    a += b;
    BOOST_TEST(a.count() == 3U);
    BOOST_TEST((a.sum == 3ms));
    BOOST_TEST(a.counts.front() == 1U);
    b.add(1h);
    a += b;
    BOOST_TEST(a.counts.front() == 2U);
    BOOST_TEST(a.counts.back() == 1U);
    BOOST_TEST(a.counts[duration_histogram::bucket_of(2ms)] == 2U);
    BOOST_TEST((a.sum == 5ms + 1h));
}

// ---- texts --------------------------------------------------------------------------------------

/// Samples of the text format of Prometheus, by name and labels.
std::map<std::string, double> parse(const std::string& text) {
    static const std::regex sample(
        R"(([a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z]+="([^"\\\n]|\\.)*",?)*\})?) (\S+))");
    static const std::regex comment(R"(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)");
    std::map<std::string, double> samples;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::smatch parts;
        if (std::regex_match(line, comment))
            continue;
        BOOST_REQUIRE_MESSAGE(std::regex_match(line, parts, sample), line);
        BOOST_TEST(samples.emplace(parts[1], std::stod(parts[5])).second, line);
    }
    return samples;
}

/// Another service on the same clock and structure.
struct other_traits : asio::wait_traits<std::chrono::steady_clock> {};
using other_timer = pawl::basic_waitable_timer<std::chrono::steady_clock, other_traits>;

BOOST_AUTO_TEST_CASE(prometheus_reads_each_sample_once) {
    asio::io_context context;
    pawl::measure_times(context);
    pawl::steady_timer a(context, 0s), c(context, 1h);
    other_timer b(context, 1h);
    pawl::ring_timer d(context);
    a.async_wait(ignore);
    b.async_wait(ignore);
    c.async_wait(ignore);
    while (pawl::stats(context).handler_time.count() == 0)
        context.run_one();
    const auto stats = pawl::stats(context);
    const std::string text = pawl::to_prometheus(stats);
    auto samples = parse(text);
    const std::string wheel = "{clock=\"steady_clock\",backend=\"hierarchical_wheel\"}";
    BOOST_TEST(samples["pawl_timer_started_total" + wheel] == 3);
    BOOST_TEST(samples["pawl_timer_armed" + wheel] == 2);
    BOOST_TEST(samples["pawl_timer_expired_total" + wheel] == 1);
    BOOST_TEST(
        samples.count("pawl_timer_armed{clock=\"steady_clock\",backend=\"timeout_rings\"}") == 1U);
    BOOST_TEST(samples["pawl_timer_handler_seconds_count"] == 1);
    BOOST_TEST(samples["pawl_timer_handler_seconds_bucket{le=\"+Inf\"}"] == 1);
    BOOST_TEST(samples["pawl_timer_handler_seconds_sum"] ==
                   static_cast<double>(stats.handler_time.sum.count()) * 1e-9,
               boost::test_tools::tolerance(1e-12));
    double before = 0;
    for (std::size_t power = 10; power != 37; ++power) {
        const nanoseconds end(std::int64_t{1} << power);
        std::string le = std::to_string(end.count() / 1'000'000'000);
        std::string rest = std::to_string(1'000'000'000 + end.count() % 1'000'000'000).substr(1);
        rest.erase(rest.find_last_not_of('0') + 1);
        if (!rest.empty())
            le += '.' + rest;
        const auto bucket = samples.find("pawl_timer_handler_seconds_bucket{le=\"" + le + "\"}");
        BOOST_REQUIRE_MESSAGE(bucket != samples.end(), le);
        BOOST_TEST(bucket->second >= before);
        before = bucket->second;
    }
    BOOST_TEST(text.ends_with('\n'));
    a.cancel();
}

BOOST_AUTO_TEST_CASE(each_sample_has_help_and_type_before_it) {
    asio::io_context context;
    const pawl::steady_timer a(context);
    std::istringstream lines(pawl::to_prometheus(pawl::stats(context)));
    std::string help, type;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first, second, third;
        words >> first >> second >> third;
        if (second == "HELP") {
            help = third;
        } else if (second == "TYPE") {
            BOOST_TEST(third == help);
            type = third;
        } else {
            BOOST_TEST(first.starts_with(type));
        }
    }
}

BOOST_AUTO_TEST_CASE(prometheus_is_told_of_each_number) {
    pawl::context_stats s;
    for (const nanoseconds d :
         {nanoseconds(1023), nanoseconds(1024), nanoseconds(1h), nanoseconds(2h)})
        s.lateness.add(d);
    s.lateness.add(duration_histogram::end_of(duration_histogram::size - 2) - 1ns);
    s.handler_time.add(1500ms);
    s.longest_handler = {1500ms, pawl::timer_name("a\"b\"\\")};
    s.longest_turn = {2500ms, 3};
    s.readers = 7;
    s.events = 8;
    std::uint64_t n = 11;
    for (const char* clock : {"c", "c", "d"}) {
        auto& service = s.services.emplace_back();
        service.clock = clock;
        service.backend = "b";
        service.levels = {1, n};
        for (const auto& c : pawl::detail::named_counts)
            service.*c.value = n++;
    }
    auto& other = s.services.emplace_back();
    other.clock = "c";
    other.backend = "other";
    other.pending = 100;
    const std::string text = pawl::to_prometheus(s);
    for (const char* lines :
         {"# HELP pawl_timer_pending Waits whose handlers have not begun.\n"
          "# TYPE pawl_timer_pending gauge\n"
          "pawl_timer_pending{clock=\"c\",backend=\"b\"} 33\n",
          "# HELP pawl_timer_started_total Waits that were started.\n"
          "# TYPE pawl_timer_started_total counter\n",
          "# TYPE pawl_timer_level_filed gauge\n", "# TYPE pawl_timer_lateness_seconds histogram\n",
          "_bucket{le=\"0.000001024\"} 1\n", "pawl_timer_handler_seconds_sum 1.5\n",
          "pawl_timer_longest_handler_seconds{name=\"a\\\"b\\\"\\\\\"} 1.5\n",
          "pawl_timer_longest_turn_seconds 2.5\n", "# TYPE pawl_timer_feed_readers gauge\n",
          "# TYPE pawl_timer_feed_events_total counter\n"})
        BOOST_TEST(text.find(lines) != std::string::npos, lines);
    auto samples = parse(text);
    n = 11;
    for (const auto& c : pawl::detail::named_counts) {
        const std::string name =
            std::string("pawl_timer_") + c.name + (c.counter ? "_total" : "") + "{clock=";
        BOOST_TEST(samples[name + "\"c\",backend=\"b\"}"] == static_cast<double>(2 * n + 11));
        BOOST_TEST(samples[name + "\"d\",backend=\"b\"}"] == static_cast<double>(n + 22));
        ++n;
    }
    BOOST_TEST(samples["pawl_timer_pending{clock=\"c\",backend=\"other\"}"] == 100);
    const std::string level = "pawl_timer_level_filed{clock=\"c\",backend=\"b\",level=";
    BOOST_TEST(samples[level + "\"0\"}"] == 2);
    BOOST_TEST(samples[level + "\"1\"}"] == 11 + 22);
    const std::string late = "pawl_timer_lateness_seconds_";
    BOOST_TEST(samples[late + "bucket{le=\"0.000001024\"}"] == 1);
    BOOST_TEST(samples[late + "bucket{le=\"0.000002048\"}"] == 2);
    BOOST_TEST(samples.count(late + "bucket{le=\"68.719476736\"}") == 1U);
    BOOST_TEST(samples[late + "bucket{le=\"68.719476736\"}"] == 2);
    BOOST_TEST(samples[late + "bucket{le=\"+Inf\"}"] == 5);
    BOOST_TEST(samples[late + "count"] == 5);
    BOOST_TEST(samples[late + "sum"] == static_cast<double>(s.lateness.sum.count()) * 1e-9,
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST(samples["pawl_timer_handler_seconds_count"] == 1);
    BOOST_TEST(samples["pawl_timer_feed_readers"] == 7);
    BOOST_TEST(samples["pawl_timer_feed_events_total"] == 8);
    BOOST_TEST(samples.size() == 3U * 11 + 4 + 2U * (27 + 3) + 2 + 2);

    const std::string none = pawl::to_prometheus({});
    BOOST_TEST(none.find("pawl_timer_longest_handler_seconds{") == std::string::npos);
    BOOST_TEST(none.find("pawl_timer_lateness_seconds_sum 0\n") != std::string::npos);
    BOOST_TEST(none.find("pawl_timer_feed_readers 0\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(json_is_one_line_of_numbers_and_words) {
    pawl::context_stats s;
    BOOST_TEST(
        pawl::to_json(s) ==
        R"({"services":[],"measured":false,"lateness":{"sum":0,"count":0,"buckets":[]},)"
        R"("handler_time":{"sum":0,"count":0,"buckets":[]},)"
        R"("longest_handler":{"time":0,"name":""},"longest_turn":{"time":0,"handlers":0},"readers":0,"events":0})");
    s.measured = true;
    s.longest_turn = {4ns, 2};
    s.longest_handler = {3ns, pawl::timer_name("a \"b\"\\\n")};
    s.lateness.add(1us);
    s.lateness.add(1h);
    s.services.push_back(
        {.clock = "c", .backend = "b", .shards = 2, .precision = 1ms, .levels = {3, 4}});
    s.services.emplace_back().clock = "d";
    BOOST_TEST(
        pawl::to_json(s) ==
        R"({"services":[{"clock":"c","backend":"b","shards":2,"precision":1000000,"pending":0,"armed":0,)"
        R"("filed":0,"started":0,"expired":0,"cancelled":0,"moved":0,"overflowed":0,"refused":0,)"
        R"("wake_ups":0,"level_moves":0,"levels":[3,4]},{"clock":"d","backend":"","shards":0,"precision":0,"pending":0,)"
        R"("armed":0,"filed":0,"started":0,"expired":0,"cancelled":0,"moved":0,"overflowed":0,"refused":0,)"
        R"("wake_ups":0,"level_moves":0,"levels":[]}],"measured":true,"lateness":{"sum":3600000001000,)"
        R"("count":2,"buckets":[[1024,1],[null,1]]},"handler_time":{"sum":0,"count":0,"buckets":[]},)"
        R"("longest_handler":{"time":3,"name":"a \"b\"\\ "},"longest_turn":{"time":4,"handlers":2},"readers":0,"events":0})");
}

} // namespace
} // namespace watch_test
