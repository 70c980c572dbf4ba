// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A service in an execution context: options, waits that are moved wherever they are queued, P6 to
//   P9, and the caches of threads. conformance/ tests what Asio's timers promise as well.
//
// Model
//   manual_clock wherever possible, so that the absence of an event shows without waiting for it.

#define BOOST_TEST_MODULE service
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "whole_service.hpp"

#include "../support/asio_configuration.hpp"
#include "../support/meeting.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/mpl/list.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace late_test {

/// Moved by handlers. Passes for the steady clock: how late the driver is counts only for clocks
/// that keep time.
using late_clock = pawl_test::stepped_clock<struct late>;
using late_timer = pawl::basic_waitable_timer<late_clock>;
template <class Backend>
using late_timer_on =
    pawl::basic_waitable_timer<late_clock,
                               pawl::on_backend<Backend, boost::asio::wait_traits<late_clock>>>;

} // namespace late_test

using namespace late_test;

template <>
inline constexpr bool pawl::detail::tells_steady_time<late_clock> = true;

namespace {

using namespace service_test;

/// Number of calls of operator new in the program.
std::size_t allocations() { return counted_new::calls.load(); }

/// A second thread that is busy inside a handler until it is released.
class blocker {
public:
    template <class Executor>
    explicit blocker(const Executor& ex) {
        asio::post(ex, [this] {
            begun_.count_down();
            end_.wait();
            done_.count_down();
        });
    }
    /// Runs `context` until this handler has run in it. One unit may be io_uring's own.
    void run_until_busy(asio::io_context& context) {
        do
            context.run_one();
        while (!begun_.try_wait());
    }
    void wait_until_busy() { begun_.wait(); }
    void let_go() {
        end_.count_down();
        done_.wait();
    }

private:
    pawl_test::latch begun_{1};
    pawl_test::latch end_{1};
    pawl_test::latch done_{1};
};

} // namespace

// ---- options ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(options)

namespace {
struct bad_option {
    const char* name;
    const char* range;
    void (*spoil)(pawl::options&);
};
std::ostream& operator<<(std::ostream& out, const bad_option& b) { return out << b.name; }

const std::array<bad_option, 13> bad_options{{
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = 0ns; }},
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = -1ms; }},
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = 1h + 1ns; }},
    {"shards", "0 and 256", [](pawl::options& o) { o.shards = 257; }},
    {"shards", "0 and 256", [](pawl::options& o) { o.shards = ~0U; }},
    {"batch_limit", "1 and 65536", [](pawl::options& o) { o.batch_limit = 0; }},
    {"batch_limit", "1 and 65536", [](pawl::options& o) { o.batch_limit = 65537; }},
    {"completions_per_turn", "1 and 64", [](pawl::options& o) { o.completions_per_turn = 0; }},
    {"completions_per_turn", "1 and 64", [](pawl::options& o) { o.completions_per_turn = 65; }},
    {"max_pending", "between 1 and", [](pawl::options& o) { o.max_pending = 0; }},
    {"on_shutdown", "destroy or deliver",
     [](pawl::options& o) { o.on_shutdown = static_cast<pawl::shutdown_policy>(7); }},
    {"level_bits", "1 to 12", [](pawl::options& o) { o.level_bits = pawl::time::geometry({13}); }},
    {"level_bits", "must cover 64",
     [](pawl::options& o) { o.level_bits = pawl::time::geometry({6}, 44); }},
}};
} // namespace

BOOST_DATA_TEST_CASE(a_bad_option_is_refused_with_its_name_and_its_range, bad_options, bad) {
    asio::io_context context;
    std::string text;

    try {
        pawl::options o;
        bad.spoil(o);
        pawl::make_timer_service(context, o);
    } catch (const std::invalid_argument& e) {
        text = e.what();
    }

    BOOST_CHECK_MESSAGE(text.find(bad.name) != std::string::npos, text);
    BOOST_CHECK_MESSAGE(text.find(bad.range) != std::string::npos, text);
    BOOST_CHECK_NO_THROW(pawl::make_timer_service(context, {})); // nothing was started
}

BOOST_AUTO_TEST_CASE(the_ends_of_the_ranges_are_accepted) {
    asio::io_context low;
    asio::io_context high;
    pawl::options o;
    o.precision = 1ns;
    o.level_bits = pawl::time::geometry({1});
    o.shards = o.batch_limit = o.completions_per_turn = 1;
    o.max_pending = 1;
    pawl::make_timer_service(low, o);
    o.precision = 1h;
    o.level_bits = pawl::time::geometry({12});
    o.shards = 256;
    o.batch_limit = 65536;
    o.completions_per_turn = 64;
    o.max_pending = pawl::options::no_bound;
    pawl::make_timer_service<std::chrono::system_clock>(high, o);

    pawl::steady_timer t1(low, 1h);
    pawl::system_timer t2(high, 1h);
    outcome o1;
    outcome o2;
    t1.async_wait(record(o1));
    t2.async_wait(record(o2));

    BOOST_CHECK_EQUAL(t1.cancel(), one);
    BOOST_CHECK_EQUAL(t2.cancel(), one);
    run_to_end(low);
    run_to_end(high);
    BOOST_CHECK(o1.aborted());
    BOOST_CHECK(o2.aborted());
}

BOOST_AUTO_TEST_CASE(the_defaults_are_those_of_the_manual) {
    const pawl::options o;

    BOOST_CHECK(o.precision == 1ms);
    BOOST_CHECK_EQUAL(o.shards, 1u);
    BOOST_CHECK_EQUAL(o.batch_limit, 256u);
    BOOST_CHECK_EQUAL(o.completions_per_turn, 1u);
    BOOST_CHECK(o.locking);
    BOOST_CHECK_EQUAL(o.max_pending, pawl::options::no_bound);
    BOOST_CHECK(o.on_shutdown == pawl::shutdown_policy::destroy);
    BOOST_CHECK_EQUAL(o.rings.marks, 8u);
    BOOST_CHECK(o.rings.when_full == pawl::ring_overflow::grow);
    BOOST_CHECK(!o.rings.round_up);
    BOOST_CHECK_EQUAL(pawl::ring_options::ring{}.capacity, 1024u);
}

BOOST_AUTO_TEST_CASE(a_service_is_made_once_and_before_its_first_use) {
    asio::io_context made;
    asio::io_context used;
    pawl::make_timer_service(made, {});
    pawl::steady_timer first(used);

    BOOST_CHECK_THROW(pawl::make_timer_service(made, {}), asio::service_already_exists);
    BOOST_CHECK_EXCEPTION(
        pawl::make_timer_service(used, {}), asio::service_already_exists, [](const auto& e) {
            return std::string_view(e.what()).find("call it once, before the first") !=
                   std::string_view::npos;
        });
    BOOST_CHECK_NO_THROW(pawl::make_timer_service<manual_clock>(used, {})); // each clock its own
}

BOOST_AUTO_TEST_CASE(the_options_are_in_force) {
    asio::io_context context;
    pawl::options o;
    o.precision = 50ns;
    o.shards = 3;
    pawl::make_timer_service<manual_clock>(context, o);
    manual_timer timer(context);

    const auto shards =
        asio::use_service<pawl::timer_service<manual_clock>>(context).observed_shards();

    BOOST_REQUIRE_EQUAL(shards.size(), 3u);
    BOOST_CHECK(shards[0]->precision() == 50ns);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P4 ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(cancel_wins)

BOOST_DATA_TEST_CASE(P4_a_handler_cancels_and_moves_peers_of_its_own_batch,
                     boost::unit_test::data::make({1u, 64u}), completions) {
    asio::io_context context;
    pawl::make_timer_service<manual_clock>(context, per_turn(completions));
    manual_timer first(context, 10ms);
    std::deque<manual_timer> peers;
    std::deque<outcome> outcomes(5);
    manual_timer moved(context, 10ms);
    outcome o;
    std::size_t answers = 0;
    first.async_wait([&](error_code) {
        for (manual_timer& p : peers)
            answers += p.cancel();
        answers += moved.rearm_after(5ms);
    });
    for (outcome& each : outcomes)
        peers.emplace_back(context, 10ms).async_wait(record(each));
    moved.async_wait(record(o));

    pass(context, 10ms);

    BOOST_CHECK_EQUAL(answers, 6u);
    for (const outcome& each : outcomes)
        BOOST_CHECK(each.aborted());
    pass(context, 5ms - 1ns);
    BOOST_CHECK(o.pending());
    pass(context, 1ns);
    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(P4_a_wait_pulled_back_and_due_again_before_its_unit_runs_completes_once) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    outcome o;
    timer.async_wait(record(o));
    for (int i = 0; i < 5; ++i) {
        manual_clock::advance(context, 10ms);
        BOOST_CHECK_EQUAL(timer.rearm_after(10ms), one);
    }
    manual_clock::advance(context, 10ms);

    poll(context);

    BOOST_CHECK(o.succeeded());
}

// The executors of the timer and of the handler are strands: both have work of their own.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P4_a_wait_between_strands_is_pulled_back_again_and_again) {
    asio::io_context context;
    auto strand = asio::make_strand(context);
    manual_timer timer(asio::make_strand(context), 10ms);
    outcome o;
    timer.async_wait(asio::bind_executor(strand, record(o)));
    for (int i = 0; i < 3; ++i) {
        blocker block(strand);
        std::thread thread([&] { block.run_until_busy(context); });
        block.wait_until_busy();
        pass(context, 10ms); // its carrier is in the queue of the strand
        BOOST_CHECK_EQUAL(timer.rearm_after(10ms), one);
        block.let_go();
        thread.join();
        poll(context);
        BOOST_CHECK(o.pending());
        BOOST_CHECK(!context.stopped());
    }

    pass(context, 10ms);

    BOOST_CHECK(o.succeeded());
    run_to_end(context);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P4_on_a_thread_pool_cancel_wins_until_a_thread_takes_the_wait) {
    asio::thread_pool pool(1);
    manual_timer timer(pool, 10ms);
    manual_timer second(pool, 10ms);
    std::atomic<int> aborted{0};
    std::atomic<int> succeeded{0};
    const auto count = [&](error_code ec) { ++(ec ? aborted : succeeded); };
    blocker block(pool.get_executor());
    block.wait_until_busy();
    timer.async_wait(count);
    second.async_wait(count);
    manual_clock::advance(pool, 10ms);

    BOOST_CHECK_EQUAL(timer.cancel(), one);
    BOOST_CHECK_EQUAL(second.rearm_after(5ms), one);
    block.let_go();
    manual_clock::advance(pool, 5ms);
    pool.join();

    BOOST_CHECK_EQUAL(aborted, 1);
    BOOST_CHECK_EQUAL(succeeded, 1);
}

BOOST_AUTO_TEST_CASE(P4_a_wait_queued_in_a_second_context_is_cancelled_and_pulled_back) {
    asio::io_context first;
    asio::io_context second;
    manual_timer t1(first, 10ms);
    manual_timer t2(first, 10ms);
    outcome o1;
    outcome o2;
    t1.async_wait(asio::bind_executor(second, record(o1)));
    t2.async_wait(asio::bind_executor(second, record(o2)));
    pass(first, 10ms);
    BOOST_REQUIRE(o1.pending() && o2.pending());

    BOOST_CHECK_EQUAL(t1.cancel(), one);
    BOOST_CHECK_EQUAL(t2.rearm_after(10ms), one);
    poll(second);
    BOOST_CHECK(o1.aborted());
    BOOST_CHECK(o2.pending());
    BOOST_CHECK(!second.stopped()); // C29: work of both
    BOOST_CHECK(busy(first));
    pass(first, 10ms);
    poll(second);

    BOOST_CHECK(o2.succeeded());
    BOOST_CHECK(!busy(first));
    BOOST_CHECK(!busy(second));
}

BOOST_DATA_TEST_CASE(a_wait_queued_in_a_second_context_outlives_the_first,
                     boost::unit_test::data::make({0, 1, 2}), what) {
    auto first = std::make_unique<asio::io_context>();
    auto second = std::make_unique<asio::io_context>();
    std::optional<manual_timer> timer(std::in_place, *first, 10ms);
    outcome o;
    timer->async_wait(asio::bind_executor(*second, record(o)));
    pass(*first, 10ms);

    first.reset();
    if (what == 1)
        BOOST_CHECK_EQUAL(timer->cancel(), one);
    else if (what == 2)
        BOOST_CHECK_EQUAL(timer->rearm_after(1h), none); // the service has ended: nothing moves
    poll(*second);
    second.reset();
    timer.reset();

    BOOST_CHECK(what == 1 ? o.aborted() : o.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- rearm ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(rearm)

BOOST_AUTO_TEST_CASE(rearm_with_nothing_pending_returns_0_and_sets_the_expiry) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    const auto base = manual_clock::now();

    BOOST_CHECK_EQUAL(timer.rearm_after(20ms), none);
    BOOST_CHECK(timer.expiry() == base + 20ms);
    BOOST_CHECK_EQUAL(timer.rearm_at(base + 30ms), none);
    BOOST_CHECK(timer.expiry() == base + 30ms);
    outcome o;
    timer.async_wait(record(o));
    pass(context, 30ms);
    BOOST_CHECK(o.succeeded());
    BOOST_CHECK_EQUAL(timer.rearm_after(1ms), none); // all have completed
}

BOOST_AUTO_TEST_CASE(rearm_moves_all_waits_earlier_and_later_and_completes_none) {
    asio::io_context context;
    manual_timer timer(context, 50ms);
    std::deque<outcome> outcomes(3);
    for (outcome& o : outcomes)
        timer.async_wait(record(o));

    BOOST_CHECK_EQUAL(timer.rearm_after(100ms), 3u);
    pass(context, 99ms);
    BOOST_CHECK(outcomes[0].pending());
    BOOST_CHECK_EQUAL(timer.rearm_at(manual_clock::now() + 10ms), 3u);
    BOOST_CHECK_EQUAL(timer.rearm_after(2ms), 3u);
    pass(context, 2ms - 1ns);
    BOOST_CHECK(outcomes[0].pending());
    pass(context, 1ns);

    for (const outcome& o : outcomes)
        BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(C24_rearm_saturates_and_max_is_never) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    outcome o;
    timer.async_wait(record(o));

    BOOST_CHECK_EQUAL(timer.rearm_after(manual_clock::duration::max()), one);
    BOOST_CHECK(timer.expiry() == manual_clock::time_point::max());
    pass(context, 1h * 24 * 365);
    BOOST_CHECK(o.pending());
    BOOST_CHECK(busy(context)); // C24: it keeps work
    BOOST_CHECK_EQUAL(timer.rearm_at(manual_clock::time_point::min()), one);
    manual_clock::advance(context, 0ns);
    poll(context);

    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(a_wait_rearmed_to_the_past_completes_but_not_within_the_call) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);
    outcome o;
    timer.async_wait(record(o));

    BOOST_CHECK_EQUAL(timer.rearm_after(-1s), one);

    BOOST_CHECK(o.pending());
    run_to_end(context);
    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(a_timer_that_is_rearmed_before_each_deadline_never_completes) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    outcome o;
    timer.async_wait(record(o));

    for (int i = 0; i < 1000; ++i) {
        pass(context, 9ms);
        BOOST_REQUIRE_EQUAL(timer.rearm_after(10ms), one);
    }

    BOOST_CHECK(o.pending());
    pass(context, 10ms);
    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P8 ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(P8_a_wait_makes_one_allocation_and_it_is_through_its_own_allocator) {
    asio::io_context context;
    manual_timer timer(context);
    allocation_log memory;
    const auto wait = [&](outcome& o) {
        timer.expires_after(1ms);
        timer.async_wait(asio::bind_allocator(counting_allocator<void>(memory), record(o)));
    };
    outcome warm_up;
    wait(warm_up);
    pass(context, 1ms);
    memory = {};
    const auto in_100_passes = [&](auto first) {
        const std::size_t before = allocations();
        for (int i = 0; i < 100; ++i) {
            outcome o;
            first(o);
            pass(context, 1ms);
        }
        return allocations() - before;
    };

    const std::size_t of_the_clock = in_100_passes([](outcome&) {});
    BOOST_CHECK_EQUAL(in_100_passes(wait), of_the_clock + 100u);
    BOOST_CHECK_EQUAL(memory.allocations, 100u);
    BOOST_CHECK_EQUAL(memory.live(), 0u);
}

// A wait keeps an executor only if its handler must be handed over to it.
BOOST_AUTO_TEST_CASE(P8_a_wait_takes_less_memory_on_the_executor_of_its_own_context) {
    asio::io_context context;
    asio::io_context other;
    allocation_log memory;
    const auto bytes = [&](const asio::any_io_executor& ex, const auto&... of_handler) {
        manual_timer timer(ex, 1h);
        outcome o;
        auto handler = asio::bind_allocator(counting_allocator<void>(memory), record(o));
        const std::size_t before = counted_new::asked;
        if constexpr (sizeof...(of_handler) == 0)
            timer.async_wait(std::move(handler));
        else
            timer.async_wait(asio::bind_executor(of_handler..., std::move(handler)));
        const std::size_t asked = counted_new::asked - before;
        timer.cancel();
        poll(context);
        poll(other);
        BOOST_CHECK(o.aborted());
        return asked;
    };
    const auto own = context.get_executor();
    const auto foreign = other.get_executor();
    const auto strand = asio::make_strand(context);
    (void)bytes(own); // makes room in the shard

    BOOST_CHECK_LT(bytes(own), bytes(strand));
    BOOST_CHECK_LT(bytes(own, own), bytes(own, foreign));
    BOOST_CHECK_LT(bytes(own, foreign), bytes(strand, foreign));
}

BOOST_AUTO_TEST_CASE(P8_inside_the_context_a_wait_reuses_the_block_of_the_one_before) {
    asio::io_context context;
    pawl::steady_timer timer(context);
    std::size_t before = 0;
    int left = 1000;
    std::function<void(error_code)> again = [&](error_code) {
        if (left == 900)
            before = allocations();
        if (--left == 0)
            return;
        timer.expires_after(0ns);
        timer.async_wait([&again](error_code ec) { again(ec); });
    };
    asio::post(context, [&] { again({}); });

    run_to_end(context);

    BOOST_CHECK_EQUAL(left, 0);
    BOOST_CHECK_EQUAL(allocations() - before, 0u);
}

BOOST_AUTO_TEST_CASE(P8_cancel_and_rearm_do_not_allocate) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> outcomes(1000);
    const auto start = [&] {
        for (std::size_t i = 0; i < 1000; ++i) {
            timers[i].expires_after(1h + std::chrono::seconds(i));
            timers[i].async_wait(record(outcomes[i]));
        }
    };
    for (int i = 0; i < 1000; ++i)
        timers.emplace_back(context);
    start();
    for (auto& t : timers)
        t.cancel();
    poll(context);
    start();
    poll(context);

    const std::size_t before = allocations();
    for (std::size_t i = 0; i < 1000; ++i) {
        timers[i].rearm_after(2h + std::chrono::seconds(i * 7919 % 1000));
        timers[i].rearm_after(90min);
    }
    for (auto& t : timers)
        t.cancel();
    poll(context);

    BOOST_CHECK_EQUAL(allocations() - before, 0u);
}

// Each call makes the earliest deadline of the context earlier still.
BOOST_AUTO_TEST_CASE(P8_rearming_to_ever_earlier_deadlines_does_not_allocate) {
    asio::io_context context;
    pawl::steady_timer timer(context, 100h);
    outcome o;
    timer.async_wait(record(o));
    for (int i = 0; i < 100; ++i) // warm up
        timer.rearm_after(99h - std::chrono::seconds(i));
    poll(context);

    const std::size_t before = allocations();
    for (int i = 0; i < 10'000; ++i)
        timer.rearm_after(98h - std::chrono::seconds(i));

    BOOST_CHECK_EQUAL(allocations() - before, 0u);
    BOOST_CHECK_LE(poll(context), 100u); // nor does it leave a wake-up for each of them
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P9 ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(run_returns)

// The system timer stays set when the last wait has ended, and is no work of the context then.
BOOST_AUTO_TEST_CASE(P9_work_is_counted_right_whatever_becomes_of_a_system_timer_that_rests) {
    for (const auto next : {1ms, 5ms, 40ms}) { // before, at and after the time that it is set for
        for (const auto meanwhile : {0ms, 10ms}) {
            asio::io_context context;
            pawl::steady_timer timer(context);
            for (int round = 0; round < 3; ++round) {
                outcome cancelled;
                timer.expires_after(5ms);
                timer.async_wait(record(cancelled));
                timer.cancel();
                outcome other;
                asio::steady_timer keeps_running(context, meanwhile);
                keeps_running.async_wait(record(other));
                run_to_end(context);
                BOOST_CHECK(cancelled.aborted());
                BOOST_CHECK(other.succeeded());

                outcome o;
                timer.expires_after(next);
                timer.async_wait(record(o));
                BOOST_CHECK(busy(context) || o.succeeded());
                run_to_end(context);
                BOOST_CHECK(o.succeeded());
                BOOST_CHECK(!busy(context));
            }
        }
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P9_a_thread_pool_is_joined_while_its_system_timer_rests) {
    asio::thread_pool pool(2);
    pawl::steady_timer timer(pool, 1h);
    outcome first;
    timer.async_wait(record(first));
    timer.cancel();
    pool.join();
    BOOST_CHECK(first.aborted());
}

BOOST_AUTO_TEST_CASE(P9_each_of_two_services_rests_for_itself) {
    asio::io_context context;
    pawl::steady_timer a(context, 1h);
    pawl::compact_timer b(context, 1h);
    outcome of_a;
    outcome of_b;
    a.async_wait(record(of_a));
    b.async_wait(record(of_b));
    a.cancel();
    BOOST_CHECK(busy(context));
    b.cancel();
    BOOST_CHECK(!busy(context));
    BOOST_CHECK(of_a.aborted() && of_b.aborted());
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(
    C30_a_lone_expiry_and_a_last_cancel_are_one_unit_on_clocks_that_are_moved_or_set) {
    asio::io_context context[4];
    manual_timer moved(context[0], 10ms);
    pawl::system_timer set(context[1], 2ms);
    manual_timer moved_late(context[2], 1h);
    pawl::system_timer set_late(context[3], 1h);
    outcome o[4];
    moved.async_wait(record(o[0]));
    BOOST_CHECK_EQUAL(poll(context[0]), none);
    manual_clock::advance(context[0], 10ms);
    BOOST_CHECK_EQUAL(poll(context[0]), 1u);
    set.async_wait(record(o[1]));
    BOOST_CHECK_EQUAL(run_to_end(context[1]), 1u);
    moved_late.async_wait(record(o[2]));
    moved_late.cancel();
    BOOST_CHECK_EQUAL(poll(context[2]), 1u);
    set_late.async_wait(record(o[3]));
    set_late.cancel();
    BOOST_CHECK_EQUAL(poll(context[3]), 1u);

    BOOST_CHECK(o[0].succeeded() && o[1].succeeded());
    BOOST_CHECK(o[2].aborted() && o[3].aborted());
    BOOST_CHECK(context[2].stopped() && context[3].stopped());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P6, P7 -----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(fairness)

BOOST_DATA_TEST_CASE(P6_io_is_served_while_100000_waits_expire,
                     boost::unit_test::data::make({1u, 8u}), completions) {
    constexpr std::size_t n = 100'000;
    asio::io_context context;
    pawl::make_timer_service<manual_clock>(context, per_turn(completions));
    std::deque<manual_timer> timers;
    std::size_t completed = 0;
    std::size_t since_io = 0;
    std::size_t most = 0;
    for (std::size_t i = 0; i < n; ++i) {
        timers.emplace_back(context, std::chrono::microseconds(i % 1000))
            .async_wait([&](error_code) {
                ++completed;
                most = std::max(most, ++since_io);
            });
    }
    std::function<void()> io = [&] { // stands for a socket that is always ready
        since_io = 0;
        if (completed < n)
            asio::post(context, [&] { io(); });
    };
    manual_clock::advance(context, 1ms);
    io();
    poll(context);

    BOOST_CHECK_EQUAL(completed, n);
    // At most 64 units are queued at a time, including the successors of those that ran.
    BOOST_CHECK_LE(most, 2 * 64 * completions);
}

/// A crowd that has been due for `late` when its context looks: what wakes it up is queued, and
/// `later` behind it.
template <class Timer>
struct late_crowd {
    late_crowd(std::size_t n, late_clock::duration late,
               int hint = BOOST_ASIO_CONCURRENCY_HINT_DEFAULT, unsigned shards = 1)
        : context(hint) {
        pawl::options o;
        o.shards = shards;
        o.rings.delays = {{1ms}};
        pawl::make_timer_service<Timer>(context, o);
        late_clock::set(1s);
        for (unsigned s = 0; s != shards; ++s) { // a thread for each shard
            std::thread([&] {
                for (std::size_t i = 0; i != n; ++i) {
                    timers.emplace_back(context, 1ms).async_wait([this](error_code ec) {
                        ++completed;
                        aborted += ec == asio::error::operation_aborted;
                        handler();
                    });
                }
            }).join();
        }
        // Asio's reactor sleeps in real time, and takes all that are due by the clock at once.
        asio::basic_waitable_timer<late_clock> before(context, late_clock::now());
        before.async_wait([&](error_code) { asio::post(context, [&] { later(); }); });
        late_clock::set(1s + 1ms + late);
        context.run_one();
    }

    static void advance(late_clock::duration d) { late_clock::set(late_clock::now() + d); }

    asio::io_context context;
    std::deque<Timer> timers;
    std::size_t completed = 0;
    std::size_t aborted = 0;
    std::function<void()> handler = [] {}; ///< of each wait
    std::function<void()> later = [] {};
};

using late_timers = boost::mpl::list<late_timer, late_timer_on<pawl::time::binary_wheel>,
                                     late_timer_on<pawl::time::timeout_rings>>;

struct late_case {
    std::size_t crowd;
    late_clock::duration late;
    late_clock::duration each; ///< how long each handler takes
    std::size_t ahead;         ///< of later work
};

// As Asio's timers do. But it is not to hold up the others for longer than they have held it up.
PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE_TEMPLATE(P6_a_crowd_goes_ahead_of_later_work_for_as_long_as_it_is_late, Timer,
                              late_timers) {
    for (const late_case& c : std::initializer_list<late_case>{
             {65, 1ms, 0us, 65},
             {5000, 1ms, 0us, 5000},
             {1000, 1ms, 10us, 101},    // the last one begins when the time is over
             {1000, 20ms, 100us, 101},  // 10 ms
             {1000, 200ms, 100us, 501}, // a quarter
             {5000, 1h, 100us, 1001},   // 100 ms
             {1000, 999us, 0us, 0},     // within the precision
             {64, 1h, 0us, 0}}) {       // C30: a unit for each
        BOOST_TEST_CONTEXT(c.crowd << " waits, late by " << c.late.count()) {
            late_crowd<Timer> crowd(c.crowd, c.late);
            std::size_t ahead = 0;
            crowd.handler = [&] { crowd.advance(c.each); };
            crowd.later = [&] { ahead = crowd.completed; };
            poll(crowd.context);

            BOOST_CHECK_EQUAL(ahead, c.ahead);
            BOOST_CHECK_EQUAL(crowd.completed, c.crowd);
        }
    }
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(
    P6_a_crowd_that_has_yielded_goes_ahead_again_after_others_have_taken_their_time) {
    late_crowd<late_timer> crowd(1000, 1ms);
    std::size_t ahead = 0;
    crowd.handler = [&] { crowd.advance(10us); };
    crowd.later = [&] {
        crowd.advance(2ms);
        asio::post(crowd.context, [&] { ahead = crowd.completed; });
    };
    poll(crowd.context);

    // 1 ms and one, then 64 units, then 2 ms.
    BOOST_CHECK_GE(ahead, 101u + 64u + 200u);
    BOOST_CHECK_LE(ahead, 101u + 64u + 201u + 64u);
    BOOST_CHECK_EQUAL(crowd.completed, 1000u);
}

// With io_context(1) the units that a handler queues are held until it returns.
PAWL_NOT_ON_IO_URING
BOOST_DATA_TEST_CASE(P2_a_loop_in_a_handler_of_a_late_crowd_runs_the_others,
                     (boost::unit_test::data::make({BOOST_ASIO_CONCURRENCY_HINT_DEFAULT,
                                                    BOOST_ASIO_CONCURRENCY_HINT_DEFAULT,
                                                    BOOST_ASIO_CONCURRENCY_HINT_DEFAULT, 1}) ^
                      boost::unit_test::data::make({1u, 2u, 4u, 1u})) *
                         boost::unit_test::data::make({200u, 300u}) * // a batch, or more
                         boost::unit_test::data::make({0, 1, 64, 70}),
                     hint, shards, n, at) {
    late_crowd<late_timer> crowd(n, 1ms, hint, shards);
    std::size_t nested = 0;
    crowd.handler = [&] {
        if (crowd.completed != static_cast<std::size_t>(at) + 1)
            return;
        while (crowd.completed != crowd.timers.size() && crowd.context.run_one_for(2s) != 0) {
        }
        nested = crowd.completed;
        crowd.context.stop();
    };
    crowd.context.run();

    BOOST_CHECK_EQUAL(nested, crowd.timers.size());
}

PAWL_NOT_ON_IO_URING
BOOST_DATA_TEST_CASE(P6_a_handler_that_stops_the_context_or_throws_is_the_last_of_the_unit,
                     boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({1u, 2u}),
                     throws, shards) {
    late_crowd<late_timer> crowd(300, 1ms, BOOST_ASIO_CONCURRENCY_HINT_DEFAULT, shards);
    crowd.handler = [&] {
        if (crowd.completed != 10)
            return;
        crowd.context.stop();
        if (throws)
            throw std::runtime_error("a handler");
    };
    if (throws) {
        BOOST_CHECK_THROW(crowd.context.run(), std::runtime_error);
    } else {
        crowd.context.run();
    }
    BOOST_CHECK_EQUAL(crowd.completed, 10u);

    crowd.context.restart();
    crowd.context.run();
    BOOST_CHECK_EQUAL(crowd.completed, 300u * shards);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P4_P6_a_cancel_wins_over_a_late_crowd_until_the_handler_starts) {
    late_crowd<late_timer> crowd(300, 1ms);
    crowd.handler = [&] {
        if (crowd.completed == 1) {
            for (auto& t : crowd.timers)
                t.cancel();
        }
    };
    poll(crowd.context);

    BOOST_CHECK_EQUAL(crowd.aborted, 299u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- executors --------------------------------------------------------------------------------------

namespace {
/// Made implicitly from an io_context's executor; counts the functions that it gets.
struct counting_executor {
    counting_executor(const asio::io_context::executor_type& e) noexcept : inner(e) {}
    asio::execution_context& query(asio::execution::context_t) const noexcept {
        return asio::query(inner, asio::execution::context);
    }
    template <class F>
    void execute(F&& f) const {
        ++executed;
        inner.execute(std::forward<F>(f));
    }
    bool operator==(const counting_executor& other) const noexcept { return inner == other.inner; }

    asio::io_context::executor_type inner;
    static inline int executed = 0;
};
} // namespace

// The executor of the new timer wraps that of the old one: handlers go through it.
BOOST_AUTO_TEST_CASE(C8_C28_after_a_converting_move_handlers_run_through_the_new_executor) {
    using clock = std::chrono::steady_clock;
    using traits = asio::wait_traits<clock>;
    asio::io_context context;
    pawl::basic_waitable_timer<clock, traits, asio::io_context::executor_type> from(context, 1ms);
    pawl::basic_waitable_timer<clock, traits, counting_executor> constructed(std::move(from));
    pawl::basic_waitable_timer<clock, traits, asio::io_context::executor_type> again(context, 1ms);
    pawl::basic_waitable_timer<clock, traits, counting_executor> assigned(context);
    assigned = std::move(again);
    std::deque<outcome> o(2);
    counting_executor::executed = 0;

    constructed.async_wait(record(o[0]));
    assigned.async_wait(record(o[1]));
    run_to_end(context);

    BOOST_CHECK(o[0].succeeded() && o[1].succeeded());
    BOOST_CHECK_EQUAL(counting_executor::executed, 2);
}

// ---- turns and locks --------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(turns_and_locks)

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P6_a_unit_completes_completions_per_turn_waits_at_most) {
    asio::io_context context;
    pawl::make_timer_service<pawl::manual_timer>(context, {.completions_per_turn = 4});
    std::deque<pawl::manual_timer> timers;
    std::size_t completed = 0;
    for (int i = 0; i != 10; ++i)
        timers.emplace_back(context, 1s).async_wait([&](error_code) { ++completed; });
    pawl::manual_clock::advance(context, 1s);
    for (const std::size_t most : {4U, 8U, 10U}) {
        BOOST_CHECK_EQUAL(context.run_one(), one);
        BOOST_CHECK_EQUAL(completed, most);
    }
}

// If a handler is alone in its unit, it does not delay waits that start while it runs.
PAWL_NEEDS_THREADS
BOOST_DATA_TEST_CASE(a_handler_that_blocks_does_not_hold_up_what_falls_due_meanwhile,
                     boost::unit_test::data::make({1u, 2u, 64u}), per_turn) {
    asio::io_context context;
    pawl::options o;
    o.completions_per_turn = per_turn;
    pawl::make_timer_service(context, o);
    std::promise<void> second_has_run;
    bool waited_in_vain = true;
    pawl::steady_timer first(context, 1ms);
    pawl::steady_timer second(context);
    first.async_wait([&](error_code) {
        second.expires_after(1ms);
        second.async_wait([&](error_code) { second_has_run.set_value(); });
        waited_in_vain = second_has_run.get_future().wait_for(60s) != std::future_status::ready;
    });

    std::thread other([&] { context.run(); });
    context.run();
    other.join();

    BOOST_CHECK(!waited_in_vain);
}

BOOST_AUTO_TEST_CASE(without_locks_one_thread_has_all_the_same) {
    asio::io_context context(1);
    pawl::options o;
    o.locking = false;
    o.completions_per_turn = 64;
    pawl::make_timer_service(context, o);
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> outcomes(900);
    for (std::size_t i = 0; i < 900; ++i)
        timers.emplace_back(context, i % 3 == 0 ? std::chrono::milliseconds(i % 5) : 1h)
            .async_wait(record(outcomes[i]));
    for (std::size_t i = 1; i < 900; i += 3)
        BOOST_CHECK_EQUAL(timers[i].cancel(), one);
    for (std::size_t i = 2; i < 900; i += 3)
        BOOST_CHECK_EQUAL(timers[i].rearm_after(3ms), one);

    run_to_end(context);

    for (std::size_t i = 0; i < 900; ++i)
        BOOST_CHECK(i % 3 == 1 ? outcomes[i].aborted() : outcomes[i].succeeded());
}

// --- the threads' cache of services --------------------------------------------------------------

/// Counts how often it is asked for a dispatcher.
class asked_service final : public asio::execution_context::service {
public:
    using key_type = asked_service;
    struct dispatcher {};
    static inline asio::execution_context::id id;
    explicit asked_service(asio::execution_context& context) : service(context) {}
    ~asked_service() {
        life_.end();
        life_.leave();
    }

    pawl::detail::service_life& life() { return life_; }
    dispatcher& enter() {
        ++asked;
        return dispatcher_;
    }
    std::size_t asked = 0;

private:
    void shutdown() override {}
    dispatcher dispatcher_;
    pawl::detail::service_life& life_ = pawl::detail::service_life::begin();
};

BOOST_AUTO_TEST_CASE(P8_a_thread_asks_a_service_once_until_it_uses_another) {
    asio::io_context a;
    asio::io_context b;
    const auto& of_a = asio::use_service<asked_service>(a);
    const auto& of_b = asio::use_service<asked_service>(b);
    const auto find = [](asio::io_context& context) {
        return &pawl::detail::service_cache<asked_service>::find(context);
    };
    std::thread([&] {
        const auto* const home = find(a);
        BOOST_CHECK(find(a) == home);
        BOOST_CHECK_EQUAL(of_a.asked, 1u);
        BOOST_CHECK(find(b) != home);
        BOOST_CHECK(find(a) == home);
        BOOST_CHECK(find(a) == home);
        BOOST_CHECK_EQUAL(of_a.asked, 2u);
        BOOST_CHECK_EQUAL(of_b.asked, 1u);
    }).join();
    find(a);
    BOOST_CHECK_EQUAL(of_a.asked, 3u); // each thread for itself
}

/// A timer in `context` that expires at once does so there, and in no other context.
void check_at_home(asio::io_context& context) {
    outcome o;
    pawl::steady_timer timer(context, 0ms);
    BOOST_TEST(&asio::query(timer.get_executor(), asio::execution::context) == &context);
    timer.async_wait(record(o));
    run_to_end(context);
    BOOST_CHECK(o.succeeded());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_context_where_a_dead_one_was_has_services_of_its_own_in_every_thread) {
    std::optional<asio::io_context> place;
    asio::io_context beside;    // threads take turns between contexts
    asio::thread_pool other(1); // keeps its thread, and the thread's cache
    for (int i = 0; i < 3; ++i) {
        place.reset();
        asio::io_context& context = place.emplace();
        asio::post(other, asio::use_future([&] { check_at_home(context); })).get();
        check_at_home(context);
        check_at_home(beside);
        check_at_home(context);
    }
}

/// Makes and uses a timer when its thread ends.
struct last_words {
    asio::io_context* context = nullptr;
    std::size_t* told = nullptr;

    ~last_words() {
        if (!context)
            return;
        for (int i = 0; i < 2; ++i) {
            pawl::steady_timer timer(*context, 1h);
            timer.async_wait([](error_code) {});
            *told += timer.cancel();
        }
    }
};

BOOST_AUTO_TEST_CASE(a_timer_may_be_made_by_a_thread_that_destroys_its_thread_local_objects) {
    asio::io_context context;
    std::size_t told = 0;
    std::thread([&] {
        static thread_local last_words words; // made first, destroyed last
        words.told = &told;
        words.context = &context;
        check_at_home(context);
    }).join();
    BOOST_CHECK_EQUAL(told, 2u);
    context.restart();
    run_to_end(context);
}

BOOST_AUTO_TEST_SUITE_END()
