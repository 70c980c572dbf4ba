// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The whole service in an execution context: options, P4 wherever a wait can be queued, counts,
//   allocations, the end of the context, and clocks under control.
//
// Model
//   manual_clock wherever possible: what must not happen is seen not to happen without waiting for it.

#define BOOST_TEST_MODULE service
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "service_support.hpp"

#include "../support/sanitized.hpp"
#include "../support/seed.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;

/// How often the program has called operator new.
std::size_t allocations() { return counted_new::calls.load(); }

constexpr std::size_t million = pawl_test::sanitized ? 100'000 : 1'000'000;
constexpr std::size_t small_stack = (pawl_test::sanitized ? 1024 : 128) * 1024; // frames are larger

/// Lets time pass, and runs what is due.
void pass(asio::io_context& context, manual_clock::duration d) {
    manual_clock::advance(context, d);
    poll(context);
}

/// poll() that gives up after more units than anything here takes.
std::size_t units_of_poll(asio::io_context& context) {
    constexpr std::size_t many = 20;
    context.restart();
    std::size_t units = 0;
    while (units < many && context.poll_one() != 0)
        ++units;
    BOOST_REQUIRE_MESSAGE(units < many, "poll() does not end");
    return units;
}

/// Runs `f` on a thread whose stack a recursion over many waits would overflow.
void with_small_stack(std::function<void()> f) {
    pthread_attr_t attributes;
    BOOST_REQUIRE_EQUAL(pthread_attr_init(&attributes), 0);
    BOOST_REQUIRE_EQUAL(pthread_attr_setstacksize(&attributes, small_stack), 0);
    pthread_t thread;
    const auto body = [](void* p) -> void* {
        (*static_cast<std::function<void()>*>(p))();
        return nullptr;
    };
    BOOST_REQUIRE_EQUAL(pthread_create(&thread, &attributes, body, &f), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

/// A second thread that is busy inside a handler until told to go on.
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
    std::latch begun_{1};
    std::latch end_{1};
    std::latch done_{1};
};

pawl::options per_turn(unsigned n) {
    pawl::options o;
    o.precision = 1ns;
    o.completions_per_turn = n;
    return o;
}

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

const std::array<bad_option, 12> bad_options{{
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = 0ns; }},
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = -1ms; }},
    {"precision", "1 ns and 3600 s", [](pawl::options& o) { o.precision = 1h + 1ns; }},
    {"shards", "0 and 256", [](pawl::options& o) { o.shards = 257; }},
    {"shards", "0 and 256", [](pawl::options& o) { o.shards = ~0U; }},
    {"batch_limit", "1 and 65536", [](pawl::options& o) { o.batch_limit = 0; }},
    {"batch_limit", "1 and 65536", [](pawl::options& o) { o.batch_limit = 65537; }},
    {"completions_per_turn", "1 and 64", [](pawl::options& o) { o.completions_per_turn = 0; }},
    {"completions_per_turn", "1 and 64", [](pawl::options& o) { o.completions_per_turn = 65; }},
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
    pawl::make_timer_service(low, o);
    o.precision = 1h;
    o.level_bits = pawl::time::geometry({12});
    o.shards = 256;
    o.batch_limit = 65536;
    o.completions_per_turn = 64;
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

BOOST_AUTO_TEST_CASE(a_service_is_made_once_and_before_its_first_use) {
    asio::io_context made;
    asio::io_context used;
    pawl::make_timer_service(made, {});
    pawl::steady_timer first(used);

    BOOST_CHECK_THROW(pawl::make_timer_service(made, {}), asio::service_already_exists);
    BOOST_CHECK_THROW(pawl::make_timer_service(used, {}), asio::service_already_exists);
    BOOST_CHECK_NO_THROW(pawl::make_timer_service<manual_clock>(used, {})); // each clock its own
}

BOOST_AUTO_TEST_CASE(the_options_are_in_force) {
    asio::io_context context;
    pawl::options o;
    o.precision = 50ns;
    o.shards = 3;
    pawl::make_timer_service<manual_clock>(context, o);
    manual_timer timer(context);

    const auto& s = asio::use_service<pawl::timer_service<manual_clock>>(context).settings();

    BOOST_CHECK(s.precision == 50ns);
    BOOST_CHECK_EQUAL(s.shards, 3u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P4 ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(cancel_wins)

BOOST_DATA_TEST_CASE(P4_a_handler_cancels_a_peer_of_its_own_batch,
                     boost::unit_test::data::make({1u, 64u}), completions) {
    asio::io_context context;
    pawl::make_timer_service<manual_clock>(context, per_turn(completions));
    manual_timer first(context, 10ms);
    std::deque<manual_timer> peers;
    std::deque<outcome> outcomes(5);
    std::size_t cancelled = 0;
    first.async_wait([&](error_code) {
        for (manual_timer& p : peers)
            cancelled += p.cancel();
    });
    for (outcome& o : outcomes)
        peers.emplace_back(context, 10ms).async_wait(record(o));

    pass(context, 10ms);

    BOOST_CHECK_EQUAL(cancelled, 5u);
    for (const outcome& o : outcomes)
        BOOST_CHECK(o.aborted());
}

BOOST_DATA_TEST_CASE(P4_a_handler_rearms_a_peer_of_its_own_batch,
                     boost::unit_test::data::make({1u, 64u}), completions) {
    asio::io_context context;
    pawl::make_timer_service<manual_clock>(context, per_turn(completions));
    manual_timer first(context, 10ms);
    manual_timer peer(context, 10ms);
    outcome o;
    std::size_t moved = 0;
    first.async_wait([&](error_code) { moved = peer.rearm_after(5ms); });
    peer.async_wait(record(o));

    pass(context, 10ms);
    BOOST_CHECK_EQUAL(moved, one);
    BOOST_CHECK(o.pending());
    pass(context, 5ms - 1ns);
    BOOST_CHECK(o.pending());
    pass(context, 1ns);

    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(P4_a_wait_queued_on_the_context_is_cancelled_from_outside) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    outcome o;
    timer.async_wait(record(o));
    manual_clock::advance(context, 10ms); // queued, not run

    BOOST_CHECK_EQUAL(timer.cancel(), one);
    poll(context);

    BOOST_CHECK(o.aborted());
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

namespace {

/// A timer whose handler is queued in a strand that is occupied by a second thread.
struct occupied_strand {
    occupied_strand() : strand(asio::make_strand(context)), timer(context, 10ms), block(strand) {
        thread = std::thread([this] { block.run_until_busy(context); });
        block.wait_until_busy();
        timer.async_wait(asio::bind_executor(strand, record(o)));
        manual_clock::advance(context, 10ms);
        poll(context); // hands over
        BOOST_REQUIRE(o.pending());
    }
    void let_go() {
        block.let_go();
        thread.join();
        poll(context);
    }

    asio::io_context context;
    asio::strand<asio::io_context::executor_type> strand;
    manual_timer timer;
    outcome o;
    blocker block;
    std::thread thread;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(P4_a_wait_in_the_queue_of_a_strand_completes_when_the_strand_is_free,
                        occupied_strand) {
    let_go();

    BOOST_CHECK(o.succeeded());
}

BOOST_FIXTURE_TEST_CASE(P4_a_wait_in_the_queue_of_a_strand_is_cancelled, occupied_strand) {
    BOOST_CHECK_EQUAL(timer.cancel(), one);
    BOOST_CHECK_EQUAL(timer.cancel(), none);
    let_go();

    BOOST_CHECK(o.aborted());
}

BOOST_FIXTURE_TEST_CASE(P4_a_wait_in_the_queue_of_a_strand_is_pulled_back, occupied_strand) {
    BOOST_CHECK_EQUAL(timer.rearm_after(7ms), one);
    let_go();
    BOOST_CHECK(o.pending());
    BOOST_CHECK(!context.stopped()); // C29: it waits, so there is work

    pass(context, 7ms);

    BOOST_CHECK(o.succeeded());
}

BOOST_FIXTURE_TEST_CASE(P4_a_wait_pulled_back_in_a_strand_and_due_again_there_completes_once,
                        occupied_strand) {
    BOOST_CHECK_EQUAL(timer.rearm_after(7ms), one);
    manual_clock::advance(context, 7ms);
    poll(context);
    let_go();

    BOOST_CHECK(o.succeeded());
}

BOOST_FIXTURE_TEST_CASE(P4_a_wait_in_the_queue_of_a_strand_moves_with_its_timer, occupied_strand) {
    manual_timer other(std::move(timer));

    BOOST_CHECK_EQUAL(timer.cancel(), none);
    BOOST_CHECK_EQUAL(other.cancel(), one);
    let_go();

    BOOST_CHECK(o.aborted());
}

BOOST_AUTO_TEST_CASE(P4_a_timer_is_destroyed_while_its_wait_is_in_the_queue_of_a_strand) {
    occupied_strand s;
    { const manual_timer doomed(std::move(s.timer)); }
    s.let_go();

    BOOST_CHECK(s.o.aborted());
}

BOOST_AUTO_TEST_CASE(P4_a_slot_cancels_a_wait_in_the_queue_of_a_strand) {
    asio::io_context context;
    auto strand = asio::make_strand(context);
    manual_timer timer(context, 10ms);
    asio::cancellation_signal signal;
    outcome o;
    blocker block(strand);
    std::thread thread([&] { block.run_until_busy(context); });
    block.wait_until_busy();
    timer.async_wait(
        asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(strand, record(o))));
    manual_clock::advance(context, 10ms);
    poll(context);

    signal.emit(asio::cancellation_type::partial);
    BOOST_CHECK_EQUAL(timer.cancel(), none);
    block.let_go();
    thread.join();
    poll(context);

    BOOST_CHECK(o.aborted());
}

// The executor of the timer and that of the handler are strands: both have work of their own.
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

BOOST_AUTO_TEST_CASE(P3_a_second_context_that_dies_with_a_queued_wait_destroys_it_uncalled) {
    asio::io_context first;
    auto second = std::make_unique<asio::io_context>();
    manual_timer timer(first, 10ms);
    outcome o;
    auto alive = std::make_shared<int>();
    timer.async_wait(asio::bind_executor(*second, [&o, alive](error_code ec) { record(o)(ec); }));
    pass(first, 10ms);
    BOOST_REQUIRE_EQUAL(alive.use_count(), 2);

    second.reset();

    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    BOOST_CHECK(o.pending());
    BOOST_CHECK_EQUAL(timer.cancel(), none);
    outcome again;
    timer.expires_after(1ms);
    timer.async_wait(record(again));
    pass(first, 1ms);
    BOOST_CHECK(again.succeeded());
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
        BOOST_CHECK_EQUAL(timer->rearm_after(1h), none); // the service is gone: nothing moves
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
    BOOST_CHECK_LE(poll(context), 100u); // nor does it leave a wake-up for every one
}

BOOST_AUTO_TEST_CASE(P8_the_end_of_a_wait_on_a_strand_returns_all_its_memory) {
    allocation_log memory;
    {
        asio::io_context context;
        auto strand = asio::make_strand(context);
        std::deque<manual_timer> timers;
        std::deque<outcome> outcomes(30);
        for (std::size_t i = 0; i < 30; ++i) {
            timers.emplace_back(context, std::chrono::milliseconds(1 + i / 10))
                .async_wait(asio::bind_executor(
                    strand,
                    asio::bind_allocator(counting_allocator<void>(memory), record(outcomes[i]))));
        }
        pass(context, 1ms);                  // completed
        manual_clock::advance(context, 1ms); // queued
        timers.pop_front();
        timers[12].cancel();
        BOOST_CHECK_GE(memory.live(), 20u);
    }

    BOOST_CHECK_EQUAL(memory.live(), 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- P9 ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(run_returns)

BOOST_AUTO_TEST_CASE(P2_an_earlier_deadline_that_comes_later_wakes_the_context) {
    asio::io_context context;
    pawl::steady_timer late(context, 1h);
    pawl::steady_timer early(context, 1ms);
    std::deque<outcome> o(2);
    late.async_wait(record(o[0]));
    early.async_wait(record(o[1]));

    while (o[1].pending() && context.run_one_for(patience) != 0) {
    }

    BOOST_CHECK(o[1].succeeded());
    BOOST_CHECK(o[0].pending());
}

BOOST_AUTO_TEST_CASE(P9_a_timer_without_a_wait_is_no_work) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);

    BOOST_CHECK_EQUAL(run_to_end(context), 0u);
}

BOOST_AUTO_TEST_CASE(P9_run_returns_after_the_last_wait_was_cancelled_in_whatever_way) {
    using timer = pawl::steady_timer;
    const std::array<std::function<void(std::optional<timer>&)>, 6> ends{
        [](auto& t) { t->cancel(); },
        [](auto& t) { t->cancel_one(); },
        [](auto& t) { t->expires_after(2h); },
        [](auto& t) { t.reset(); },
        [](auto& t) { *t = timer(t->get_executor()); },
        [](auto& t) { pawl::expire_all(asio::query(t->get_executor(), asio::execution::context)); },
    };
    for (const auto& end : ends) {
        asio::io_context context;
        std::optional<timer> t(std::in_place, context, 1h);
        outcome o;
        t->async_wait(record(o));
        asio::post(context, [&] { end(t); });

        run_to_end(context);

        BOOST_CHECK_EQUAL(o.calls, 1);
    }
}

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

BOOST_AUTO_TEST_CASE(C29_a_pending_wait_is_work_and_a_completed_one_is_none) {
    asio::io_context context;
    manual_timer timer(context, 10ms);
    outcome o;
    timer.async_wait(record(o));

    BOOST_CHECK(busy(context));
    pass(context, 10ms);

    BOOST_CHECK(o.succeeded());
    BOOST_CHECK(!busy(context));
}

BOOST_AUTO_TEST_CASE(C30_a_lone_expiry_and_a_last_cancel_are_one_unit) {
    asio::io_context context;
    pawl::steady_timer timer(context, 2ms);
    outcome o;
    timer.async_wait(record(o));
    BOOST_CHECK_EQUAL(run_to_end(context), 1u);
    timer.expires_after(1h);
    timer.async_wait(record(o));
    timer.cancel();
    BOOST_CHECK_EQUAL(run_to_end(context), 1u);
    timer.async_wait(record(o));
    timer.expires_after(2h);
    BOOST_CHECK_EQUAL(run_to_end(context), 1u);

    BOOST_CHECK_EQUAL(o.calls, 3);
}

BOOST_AUTO_TEST_CASE(C30_a_lone_expiry_is_one_unit_on_clocks_that_are_moved_or_set) {
    asio::io_context context;
    manual_timer moved(context, 10ms);
    outcome o[2];
    moved.async_wait(record(o[0]));
    BOOST_CHECK_EQUAL(poll(context), none);
    manual_clock::advance(context, 10ms);
    BOOST_CHECK_EQUAL(poll(context), 1u);

    asio::io_context other;
    pawl::system_timer set(other, 2ms);
    set.async_wait(record(o[1]));
    BOOST_CHECK_EQUAL(run_to_end(other), 1u);

    BOOST_CHECK(o[0].succeeded() && o[1].succeeded());
}

BOOST_AUTO_TEST_CASE(C30_a_last_cancel_is_one_unit_on_clocks_that_are_moved_or_set) {
    asio::io_context context;
    manual_timer moved(context, 1h);
    pawl::system_timer set(context, 1h);
    outcome o[2];
    moved.async_wait(record(o[0]));
    moved.cancel();
    BOOST_CHECK_EQUAL(poll(context), 1u);
    set.async_wait(record(o[1]));
    set.cancel();
    BOOST_CHECK_EQUAL(poll(context), 1u);

    BOOST_CHECK(o[0].aborted() && o[1].aborted());
    BOOST_CHECK(context.stopped());
}

BOOST_AUTO_TEST_CASE(C36_waits_survive_stop_and_complete_after_restart) {
    asio::io_context context;
    manual_timer t1(context, 10ms);
    manual_timer t2(context, 10ms);
    manual_timer t3(context, 20ms);
    std::deque<outcome> o(3);
    t1.async_wait([&](error_code ec) {
        record(o[0])(ec);
        context.stop();
    });
    t2.async_wait(record(o[1]));
    t3.async_wait(record(o[2]));

    pass(context, 10ms);
    BOOST_CHECK(o[0].succeeded() && o[1].pending());
    pass(context, 10ms);

    BOOST_CHECK(o[1].succeeded() && o[2].succeeded());
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
    // 64 units at most are queued at a time, the successors of those that ran included.
    BOOST_CHECK_LE(most, 2 * 64 * completions);
}

BOOST_AUTO_TEST_CASE(P6_P7_a_jump_of_a_day_expires_in_order_and_in_bounded_batches) {
    constexpr std::size_t n = 20'000;
    asio::io_context context;
    pawl::options o;
    o.precision = 1ns;
    o.batch_limit = 100;
    pawl::make_timer_service<manual_clock>(context, o);
    auto& service = asio::use_service<pawl::timer_service<manual_clock>>(context);
    std::mt19937_64 random(seed());
    std::deque<manual_timer> timers;
    std::vector<manual_clock::time_point> seen;
    for (std::size_t i = 0; i < n; ++i) {
        manual_timer& t =
            timers.emplace_back(context, std::chrono::nanoseconds(random() % 86'400'000'000'000));
        t.async_wait([&seen, &t](error_code) { seen.push_back(t.expiry()); });
    }

    manual_clock::advance(context, 24h);
    std::size_t most = service.due_count();
    while (context.poll_one() != 0)
        most = std::max(most, service.due_count());

    BOOST_CHECK_EQUAL(seen.size(), n);
    BOOST_CHECK(std::is_sorted(seen.begin(), seen.end()));
    BOOST_CHECK_LE(most, 100u);
}

BOOST_AUTO_TEST_CASE(P7_equal_deadlines_complete_in_start_order_however_they_were_made) {
    asio::io_context context;
    std::deque<manual_timer> timers;
    std::vector<int> order;
    const auto at = manual_clock::now() + 500ms;
    for (int i = 0; i < 300; ++i) {
        manual_timer& t = timers.emplace_back(context, at);
        t.async_wait([&order, i](error_code) { order.push_back(i); });
        if (i % 100 == 99)
            pass(context, 100ms);
    }

    pass(context, 200ms);

    BOOST_CHECK_EQUAL(order.size(), 300u);
    BOOST_CHECK(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- expire_all ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(expire_all)

BOOST_AUTO_TEST_CASE(P10_expire_all_ends_the_waits_of_every_clock_and_of_this_context_only) {
    asio::io_context context;
    asio::io_context other;
    pawl::steady_timer steady(context, 1h);
    pawl::system_timer system(context, 1h);
    manual_timer manual(context, 1h);
    pawl::steady_timer elsewhere(other, 1h);
    std::deque<outcome> o(5);
    steady.async_wait(record(o[0]));
    steady.async_wait(record(o[1]));
    system.async_wait(record(o[2]));
    manual.async_wait(record(o[3]));
    elsewhere.async_wait(record(o[4]));

    BOOST_CHECK_EQUAL(pawl::expire_all(context, asio::error::shut_down), 4u);

    BOOST_CHECK(o[0].pending()); // none is invoked within the call
    run_to_end(context);
    for (int i = 0; i < 4; ++i)
        BOOST_CHECK_EQUAL(o[static_cast<std::size_t>(i)].code, error_code(asio::error::shut_down));
    poll(other);
    BOOST_CHECK(o[4].pending());
}

BOOST_AUTO_TEST_CASE(P10_expire_all_completes_with_success_by_default) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);
    outcome o;
    timer.async_wait(record(o));
    const auto expiry = timer.expiry();

    BOOST_CHECK_EQUAL(pawl::expire_all(context), one);
    run_to_end(context);

    BOOST_CHECK(o.succeeded());
    BOOST_CHECK(timer.expiry() == expiry);
    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
}

BOOST_AUTO_TEST_CASE(P10_expire_all_passes_on_an_error_of_any_category) {
    for (const error_code& ec : {error_code(pawl::error::timed_out), error_code(asio::error::eof),
                                 error_code(asio::error::shut_down)}) {
        asio::io_context context;
        pawl::steady_timer timer(context, 1h);
        outcome o;
        timer.async_wait(record(o));

        BOOST_CHECK_EQUAL(pawl::expire_all(context, ec), one);
        run_to_end(context);

        BOOST_CHECK_EQUAL(o.calls, 1);
        BOOST_CHECK_EQUAL(o.code, ec);
    }
}

BOOST_AUTO_TEST_CASE(P10_handlers_start_new_waits_and_a_second_expire_all_ends_those) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> second(1000);
    for (outcome& o : second) {
        pawl::steady_timer& t = timers.emplace_back(context, 1h);
        t.async_wait([&t, &o](error_code) { t.async_wait(record(o)); });
    }

    BOOST_CHECK_EQUAL(pawl::expire_all(context), 1000u);
    BOOST_CHECK(busy(context));
    BOOST_CHECK(second[0].pending());
    BOOST_CHECK_EQUAL(pawl::expire_all(context), 1000u);
    run_to_end(context);

    for (const outcome& o : second)
        BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(P10_a_context_without_timers_has_nothing_to_expire) {
    asio::io_context context;

    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
    pawl::steady_timer timer(context, 1h);
    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
}

BOOST_AUTO_TEST_CASE(P10_a_million_waits_expire_at_once) {
    asio::io_context context;
    pawl::make_timer_service(context, per_turn(64));
    std::deque<pawl::steady_timer> timers;
    std::size_t completed = 0;
    for (std::size_t i = 0; i < million; ++i)
        timers.emplace_back(context, 1h + std::chrono::microseconds(i)).async_wait([&](error_code) {
            ++completed;
        });

    BOOST_CHECK_EQUAL(pawl::expire_all(context), million);
    run_to_end(context);

    BOOST_CHECK_EQUAL(completed, million);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the end of a context -----------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(end_of_context)

BOOST_AUTO_TEST_CASE(P10_C37_pending_and_queued_handlers_are_destroyed_uncalled) {
    auto alive = std::make_shared<int>();
    int calls = 0;
    {
        asio::io_context context;
        auto strand = asio::make_strand(context);
        std::deque<manual_timer> timers;
        for (int i = 0; i < 300; ++i) {
            manual_timer& t = timers.emplace_back(context, std::chrono::milliseconds(1 + i % 3));
            if (i % 2 == 0)
                t.async_wait([alive, &calls](error_code) { ++calls; });
            else
                t.async_wait(asio::bind_executor(strand, [alive, &calls](error_code) { ++calls; }));
        }
        manual_clock::advance(context, 1ms); // due and queued
        timers[100].cancel();
        timers[101].rearm_after(1h);
    }

    BOOST_CHECK_EQUAL(calls, 0);
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_every_handler_is_told_operation_aborted_here) {
    const auto me = std::this_thread::get_id();
    std::deque<outcome> outcomes(300);
    bool elsewhere = false;
    std::deque<manual_timer> timers; // outlive the context
    {
        asio::io_context context;
        pawl::options o;
        o.precision = 1ns;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service<manual_clock>(context, o);
        auto strand = asio::make_strand(context);
        for (std::size_t i = 0; i < 300; ++i) {
            manual_timer& t = timers.emplace_back(context, std::chrono::milliseconds(1 + i));
            auto handler = [&, i](error_code ec) {
                record(outcomes[i])(ec);
                elsewhere |= std::this_thread::get_id() != me;
                timers[i].async_wait([](error_code) { BOOST_ERROR("started after the end"); });
            };
            if (i % 2 == 0)
                t.async_wait(handler);
            else
                t.async_wait(asio::bind_executor(strand, handler));
        }
        timers[7].cancel();
    }

    for (const outcome& o : outcomes)
        BOOST_CHECK(o.aborted());
    BOOST_CHECK(!elsewhere);
}

// They were destroyed: only the carrier in the queue of the strand knew them. Found by ./dev simulate threads.
BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_handlers_that_a_strand_holds_are_invoked_too) {
    std::deque<outcome> outcomes(3);
    std::deque<manual_timer> timers; // outlive the context
    {
        asio::io_context context;
        pawl::options o;
        o.precision = 1ns;
        o.completions_per_turn = 3;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service<manual_clock>(context, o);
        auto strand = asio::make_strand(context);
        for (outcome& out : outcomes)
            timers.emplace_back(context, 1ms).async_wait(asio::bind_executor(strand, record(out)));
        asio::post(strand, [&] {
            std::jthread([&] { // it hands them over to a strand that is busy
                manual_clock::advance(context, 1ms);
                context.poll_one();
            });
            timers[1].cancel();
            timers[2].rearm_after(1h);
        });
        context.run_one();
    }

    BOOST_CHECK(outcomes[0].succeeded());
    BOOST_CHECK(outcomes[1].aborted());
    BOOST_CHECK(outcomes[2].aborted());
}

BOOST_AUTO_TEST_CASE(P10_C37_a_million_handlers_that_own_their_timers_end_without_recursion) {
    auto alive = std::make_shared<int>();
    with_small_stack([&] {
        auto context = std::make_unique<asio::io_context>();
        for (std::size_t i = 0; i < million; ++i) {
            auto t = std::make_shared<pawl::steady_timer>(*context, 1h + std::chrono::seconds(i));
            pawl::steady_timer& timer = *t;
            timer.async_wait([t = std::move(t), alive](error_code) {});
        }
        context.reset();
    });

    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

// Each handler owns the timer of the next: destroying the first must not destroy all, one in the other.
BOOST_AUTO_TEST_CASE(
    P10_C37_a_chain_of_handlers_that_own_each_others_timers_ends_without_recursion) {
    for (const bool forward : {true, false}) {
        auto alive = std::make_shared<int>();
        with_small_stack([&] {
            auto context = std::make_unique<asio::io_context>();
            auto next = std::make_shared<pawl::steady_timer>(*context, 1h);
            for (std::size_t i = 0; i < million / 4; ++i) {
                const auto d = std::chrono::milliseconds(forward ? i : million - i);
                auto t = std::make_shared<pawl::steady_timer>(*context, 1h + d);
                t->async_wait([next = std::move(next), alive](error_code) {});
                next = std::move(t);
            }
            next.reset();
            context.reset();
        });

        BOOST_CHECK_EQUAL(alive.use_count(), 1);
    }
}

namespace {
/// Starts a wait when it is destroyed, with another of its kind.
struct phoenix {
    phoenix(manual_timer& t, std::size_t& l) : timer(&t), left(&l) {}
    phoenix(phoenix&& other) noexcept
        : timer(std::exchange(other.timer, nullptr)), left(other.left) {}
    ~phoenix() {
        if (timer && *left != 0) {
            --*left;
            timer->async_wait(phoenix(*timer, *left));
        }
    }
    void operator()(error_code) {}

    manual_timer* timer;
    std::size_t* left;
};
} // namespace

BOOST_AUTO_TEST_CASE(C38_waits_that_are_started_by_dying_handlers_are_destroyed_as_well) {
    std::size_t left = 100;
    std::optional<manual_timer> timer;
    {
        asio::io_context context;
        timer.emplace(context, 1h);
        timer->async_wait(phoenix(*timer, left));
    }

    BOOST_CHECK_EQUAL(left, 0u);
}

// As long as the chain is, the end of the context is a loop.
BOOST_AUTO_TEST_CASE(P10_C38_a_long_chain_of_waits_started_by_dying_handlers_does_not_recurse) {
    std::size_t left = 20'000;
    with_small_stack([&] {
        std::optional<manual_timer> timer;
        asio::io_context context;
        timer.emplace(context, 1h);
        timer->async_wait(phoenix(*timer, left));
    });

    BOOST_CHECK_EQUAL(left, 0u);
}

// The scheduler goes last, and destroys its handlers when all services have been shut down: what such a
// handler makes then is destroyed before the scheduler, which still holds the wait of its driver.
BOOST_AUTO_TEST_CASE(C38_a_service_that_a_dying_handler_makes_is_emptied_and_leaves_nothing) {
    std::optional<pawl::steady_timer> timer;
    auto alive = std::make_shared<int>();
    bool started = false;
    {
        asio::io_context context;
        const auto last_wish = [&](int*) {
            timer.emplace(context, 1h);
            timer->async_wait([alive](error_code) {});
            started = true;
        };
        static int anything;
        asio::post(context,
                   [wish = std::unique_ptr<int, decltype(last_wish)>(&anything, last_wish)] {});
    }

    BOOST_CHECK(started);
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    BOOST_CHECK_EQUAL(timer->cancel(), 0u);
}

/// Counts the work that its context counts when all services that are younger have been shut down.
class work_counter : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;

    explicit work_counter(asio::execution_context& context)
        : asio::execution_context::service(context) {}

    int* result = nullptr;

private:
    void shutdown() override {
        auto& context = static_cast<asio::io_context&>(this->context());
        const auto ex = context.get_executor();
        context.restart();
        ex.on_work_started();
        int taken = 0;
        for (; !context.stopped(); ++taken) // which it is when its count becomes zero
            ex.on_work_finished();
        for (int i = 1; i < taken; ++i)
            ex.on_work_started();
        *result = taken - 1;
    }
};

// On Windows the destructor of an io_context destroys queued operations until it counts no work. It hung where waits
// were due, since the shard was still counted, and could leave handlers behind, since the driver was not.
BOOST_AUTO_TEST_CASE(P10_a_service_that_is_shut_down_leaves_the_count_of_what_is_still_queued) {
    struct situation {
        const char* name;
        std::function<void(asio::io_context&, std::deque<pawl::steady_timer>&)> make;
        int queued; ///< operations that the context will destroy
    };
    const auto wait = [](asio::io_context& context, std::deque<pawl::steady_timer>& timers,
                         pawl::steady_timer::time_point at) {
        timers.emplace_back(context, at).async_wait([](error_code) {});
    };
    const auto now = pawl::steady_timer::clock_type::now();
    const std::array<situation, 4> situations{{
        {"no wait", [](auto& c, auto& timers) { timers.emplace_back(c); }, 0},
        {"a pending wait, and the driver", [&](auto& c, auto& t) { wait(c, t, now + 1h); }, 1},
        {"the driver of a shard that is quiet",
         [&](auto& c, auto& timers) {
             wait(c, timers, now + 1h);
             timers.front().cancel();
             poll(c);
         },
         1},
        {"two due waits, and a runner for each",
         [&](auto& c, auto& timers) {
             for (int i = 0; i < 3; ++i)
                 wait(c, timers, now);
             c.run_one();
         },
         2},
    }};
    for (const situation& s : situations) {
        int counted = -1;
        std::deque<pawl::steady_timer> timers;
        {
            asio::io_context context;
            asio::use_service<work_counter>(context).result = &counted;
            s.make(context, timers);
        }
        BOOST_TEST_CONTEXT(s.name)
        BOOST_CHECK_EQUAL(counted, s.queued);
    }
}

BOOST_AUTO_TEST_CASE(timers_that_outlive_their_context_can_be_used_and_do_nothing) {
    std::optional<asio::io_context> context(std::in_place);
    pawl::steady_timer never_used(*context, 1h);
    pawl::steady_timer used(*context, 1h);
    pawl::steady_timer pending(*context, 1h);
    outcome o;
    auto alive = std::make_shared<int>();
    used.async_wait(record(o));
    used.cancel();
    poll(*context);
    pending.async_wait([alive](error_code) {});

    context.reset();

    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    BOOST_CHECK_EQUAL(pending.cancel(), none);
    BOOST_CHECK_EQUAL(pending.expires_after(2h), none);
    BOOST_CHECK_EQUAL(pending.rearm_after(2h), none);
    pawl::steady_timer moved(std::move(pending));
    BOOST_CHECK_EQUAL(moved.cancel(), none);
    used = std::move(moved);
    BOOST_CHECK_EQUAL(never_used.cancel(), none);
}

// The wait ends at once, and with it the timer and the last trace of the service.
BOOST_AUTO_TEST_CASE(a_wait_that_outlives_its_context_may_own_its_timer) {
    std::optional<asio::io_context> context(std::in_place);
    auto owner = std::make_unique<pawl::steady_timer>(*context, 1h);
    pawl::steady_timer& timer = *owner;
    outcome o;
    timer.async_wait(record(o));
    timer.cancel();
    poll(*context);
    context.reset();
    bool called = false;

    timer.async_wait([&called, owner = std::move(owner)](error_code) { called = true; });

    BOOST_CHECK(o.aborted());
    BOOST_CHECK(!called);
}

BOOST_AUTO_TEST_CASE(C32_a_signal_may_be_emitted_after_the_context_is_gone) {
    std::optional<asio::io_context> context(std::in_place);
    asio::cancellation_signal signal;
    outcome o;
    pawl::steady_timer timer(*context, 1h);
    timer.async_wait(asio::bind_cancellation_slot(signal.slot(), record(o)));

    context.reset();
    signal.emit(asio::cancellation_type::all);

    BOOST_CHECK(o.pending());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- clocks -------------------------------------------------------------------------------------------

namespace {

/// Like a system clock: it can be set.
template <int Tag>
using wall = stepped_clock<std::integral_constant<int, Tag>, false>;

template <class Clock>
using timer_of = pawl::basic_waitable_timer<Clock>;

/// Has the services of the context look at the clock, as the driver does once a second.
void look(asio::io_context& context) {
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { s.clock_moved(); });
    poll(context);
}

constexpr auto noon = std::chrono::nanoseconds(1000h);

} // namespace

BOOST_AUTO_TEST_SUITE(clocks)

BOOST_AUTO_TEST_CASE(manual_clock_advance_is_exact_to_the_nanosecond) {
    asio::io_context context;
    manual_timer timer(context, 12'345'678ns);
    outcome o;
    timer.async_wait(record(o));

    pass(context, 12'345'677ns);
    BOOST_CHECK(o.pending());
    pass(context, -1h); // the clock is steady
    BOOST_CHECK(o.pending());
    pass(context, 1ns);

    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(manual_clock_a_blocking_wait_ends_when_another_thread_has_moved_the_clock) {
    asio::io_context context;
    manual_timer timer(context, 1h);
    manual_clock::time_point seen;
    std::thread waiting([&] {
        timer.wait();
        seen = manual_clock::now();
    });

    manual_clock::advance(context, 30min);
    manual_clock::advance(context, 30min);
    waiting.join();

    BOOST_CHECK(seen >= timer.expiry());
}

// The driver is still set for the time of the waits that are due, and Asio does not know that the clock
// has passed it.
BOOST_AUTO_TEST_CASE(
    manual_clock_P2_what_is_overdue_when_a_handler_starts_it_needs_no_other_advance) {
    for (const unsigned shards : {1U, 2U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        pawl::make_timer_service<manual_clock>(context, o);
        manual_timer timer(context, 1ms);
        manual_timer other(context, 2ms);
        int ticks = 0;
        std::function<void(error_code)> again = [&](error_code) {
            if (++ticks == 10)
                return;
            timer.expires_at(timer.expiry() + 1ms);
            timer.async_wait(again);
        };
        timer.async_wait(again);
        other.async_wait([](error_code) {});

        manual_clock::advance(context, 1h);
        context.poll();

        BOOST_CHECK_EQUAL(ticks, 10);
        BOOST_CHECK(context.stopped());
    }
}

BOOST_AUTO_TEST_CASE(manual_clock_sums_up_steps_smaller_than_a_tick) {
    asio::io_context context;
    pawl::options o;
    o.precision = 1ms;
    pawl::make_timer_service<manual_clock>(context, o);
    manual_timer timer(context, 10ms);
    const auto expiry = timer.expiry();
    outcome result;
    timer.async_wait(record(result));

    while (result.pending() && manual_clock::now() < expiry + 1ms) {
        BOOST_REQUIRE(manual_clock::now() < expiry || result.pending());
        pass(context, 300us);
    }

    BOOST_CHECK(result.succeeded());
    BOOST_CHECK(manual_clock::now() >= expiry);      // P1
    BOOST_CHECK(manual_clock::now() < expiry + 2ms); // P2
}

// P2: its tick is rounded down, not up to a tick that begins almost one precision later.
BOOST_AUTO_TEST_CASE(P2_what_is_overdue_is_due_at_once_also_when_its_timer_has_moved) {
    asio::io_context context;
    pawl::options o;
    o.precision = 1s;
    pawl::make_timer_service<manual_clock>(context, o);
    pass(context, 1500ms - manual_clock::now().time_since_epoch() % 1s);
    manual_timer timer(context, 0ns);
    manual_timer from(context, 0ns);
    manual_timer moved(std::move(from));
    std::deque<outcome> results(2);

    timer.async_wait(record(results[0]));
    moved.async_wait(record(results[1]));
    pass(context, 0ns);

    BOOST_CHECK(results[0].succeeded());
    BOOST_CHECK(results[1].succeeded());
}

// Was: it stayed where it was until poll() had met what is left of the old deadline.
BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_does_not_wait_for_what_was_pulled_back) {
    asio::io_context context;
    pawl::manual_timer timer(context, 1ms);
    outcome o;
    timer.async_wait(record(o));
    manual_clock::advance(context, 1ms); // it is due

    timer.rearm_after(20ms);
    BOOST_CHECK(manual_clock::advance_to_next(context) == 20ms);

    context.poll();
    BOOST_CHECK(o.succeeded());
}

// Was: a wait on any other clock that fell due meanwhile ended the search.
BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_is_not_held_up_by_another_clock) {
    asio::io_context context;
    pawl::steady_timer due(context, 0ms);
    due.async_wait([](error_code) {});
    pawl::manual_timer idle(context, 1ms);
    idle.async_wait([](error_code) {});
    idle.cancel(); // leaves its place behind, which is looked at on the way
    pawl::manual_timer timer(context, 20ms);
    timer.async_wait([](error_code) {});
    context.poll_one();
    due.expires_after(0ms);
    due.async_wait([](error_code) {});

    BOOST_CHECK(manual_clock::advance_to_next(context) == 20ms);

    timer.cancel();
    context.poll();
}

BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_stops_at_each_deadline) {
    asio::io_context context;
    manual_timer a(context, 5ms);
    manual_timer b(context, 3ms);
    manual_timer moved(context, 1ms);
    manual_timer cancelled(context, 2ms);
    manual_timer never(context, manual_clock::time_point::max());
    std::deque<outcome> o(5);
    a.async_wait(record(o[0]));
    b.async_wait(record(o[1]));
    moved.async_wait(record(o[2]));
    cancelled.async_wait(record(o[3]));
    never.async_wait(record(o[4]));
    moved.rearm_after(4ms);
    cancelled.cancel();
    poll(context);

    BOOST_CHECK(manual_clock::advance_to_next(context) == 3ms);
    BOOST_CHECK(manual_clock::advance_to_next(context) == 0ns); // it is due and has not run yet
    poll(context);
    BOOST_CHECK(o[1].succeeded() && o[2].pending());
    BOOST_CHECK(manual_clock::advance_to_next(context) == 1ms);
    poll(context);
    BOOST_CHECK(o[2].succeeded() && o[0].pending());
    BOOST_CHECK(manual_clock::advance_to_next(context) == 1ms);
    poll(context);
    BOOST_CHECK(o[0].succeeded());
    BOOST_CHECK(manual_clock::advance_to_next(context) == 0ns); // never() is no deadline
    BOOST_CHECK(o[4].pending());
}

BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_stops_whichever_service_had_the_wait) {
    asio::io_context context;
    using traits = asio::wait_traits<manual_clock>;
    pawl::basic_waitable_timer<manual_clock, pawl::on_backend<pawl::time::binary_wheel, traits>>
        other(context, 1h); // its service is the first, and is looked at last
    manual_timer a(context, 1s);
    manual_timer b(context, 2s);
    std::deque<outcome> o(2);
    a.async_wait(record(o[0]));
    b.async_wait(record(o[1]));

    BOOST_CHECK(manual_clock::advance_to_next(context) == 1s);

    poll(context);
    BOOST_CHECK(o[0].succeeded());
    BOOST_CHECK(o[1].pending());
}

BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_of_a_context_that_another_one_has_left_behind) {
    asio::io_context context;
    asio::io_context other;
    manual_timer timer(context, 5ms);
    outcome o;
    timer.async_wait(record(o));
    manual_clock::advance(other, 10ms);

    BOOST_CHECK(manual_clock::advance_to_next(context) == 0ns);
    poll(context);

    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(manual_clock_advance_to_next_stops_there_while_another_thread_runs_the_waits) {
    for (int round = 0; round < 500; ++round) {
        asio::io_context context;
        auto work = asio::make_work_guard(context);
        std::deque<manual_timer> timers;
        for (int i = 1; i <= 5; ++i)
            timers.emplace_back(context, std::chrono::hours(i)).async_wait([](error_code) {});
        std::thread running([&] { context.run(); });

        BOOST_REQUIRE(manual_clock::advance_to_next(context) == 1h);

        timers.clear();
        work.reset();
        running.join();
    }
}

BOOST_AUTO_TEST_CASE(manual_clock_runs_are_the_same_twice_over) {
    const std::uint64_t s = seed();
    const auto run = [s] {
        asio::io_context context;
        std::mt19937_64 random(s);
        std::deque<manual_timer> timers;
        std::vector<std::pair<int, manual_clock::duration>> events;
        const auto begin = manual_clock::now();
        std::function<void(int)> start = [&](int i) {
            timers[static_cast<std::size_t>(i)].expires_after(
                std::chrono::microseconds(random() % 5000));
            timers[static_cast<std::size_t>(i)].async_wait([&, i](error_code ec) {
                events.emplace_back(ec ? -i : i, manual_clock::now() - begin);
                if (!ec && events.size() < 2000)
                    start(i);
            });
        };
        for (int i = 0; i < 50; ++i)
            timers.emplace_back(context);
        for (int i = 0; i < 50; ++i)
            start(i);
        while (events.size() < 2000) {
            if (random() % 4 == 0)
                timers[random() % 50].rearm_after(std::chrono::microseconds(random() % 7000));
            else
                manual_clock::advance_to_next(context);
            poll(context);
        }
        return events;
    };

    const auto first = run();

    BOOST_CHECK(first == run());
}

BOOST_AUTO_TEST_CASE(P1_C41_a_clock_that_is_set_back_delays_its_waits_and_loses_none) {
    using clock = wall<1>;
    clock::set(noon);
    asio::io_context context;
    timer_of<clock> before(context, 10ms);
    timer_of<clock> kept(context, 20ms);
    std::deque<outcome> o(3);
    before.async_wait(record(o[0]));
    kept.async_wait(record(o[1]));
    clock::set(noon + 10ms);
    look(context);
    BOOST_REQUIRE(o[0].succeeded());

    clock::set(noon - 1h);
    timer_of<clock> after(context, 5ms);
    after.async_wait(record(o[2]));
    look(context);
    BOOST_CHECK(o[1].pending() && o[2].pending());
    clock::set(noon - 1h + 5ms);
    look(context);
    BOOST_CHECK(o[1].pending());
    BOOST_CHECK(o[2].succeeded());
    clock::set(noon + 19ms);
    look(context);
    BOOST_CHECK(o[1].pending());
    clock::set(noon + 20ms);
    look(context);

    BOOST_CHECK(o[1].succeeded());
}

// The expiry had passed when it was set, and has not any more when the wait is started.
BOOST_AUTO_TEST_CASE(P1_a_clock_that_is_set_back_by_less_than_a_tick_makes_no_wait_early) {
    using clock = wall<2>;
    clock::set(noon + 800us);
    asio::io_context context;
    timer_of<clock> timer(context);
    timer.expires_at(clock::time_point(noon + 700us));
    clock::set(noon + 200us);
    outcome o;
    timer.async_wait(record(o));

    look(context);
    BOOST_CHECK(o.pending());
    clock::set(noon + 1ms);
    look(context);

    BOOST_CHECK(o.succeeded());
}

// A wait whose expiry has passed when it is set is filed by the tick in which that lies, to be due at
// once. A clock that was set back into that tick found it due, before its expiry.
BOOST_DATA_TEST_CASE(P1_a_wait_that_was_overdue_is_not_early_when_the_clock_is_set_back,
                     boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({false, true}),
                     noticed, with_another) {
    using clock = wall<93>;
    clock::set(100s + 500ms);
    asio::io_context context;
    pawl::options options;
    options.precision = 1s;
    pawl::make_timer_service<clock>(context, options);
    timer_of<clock> timer(context);
    std::deque<outcome> o(2);
    timer.expires_at(clock::time_point(100s + 427ms));
    timer.async_wait(record(o[0]));

    clock::set(60s);
    if (noticed)
        look(context);
    clock::set(100s + 67ms);
    if (with_another)
        timer.async_wait(record(o[1]));
    look(context);
    BOOST_CHECK(o[0].pending() && o[1].pending());
    clock::set(101s);
    look(context);

    BOOST_CHECK(o[0].succeeded());
    BOOST_CHECK_EQUAL(o[1].succeeded(), with_another);
}

BOOST_AUTO_TEST_CASE(P2_a_wait_that_is_overdue_completes_at_once_also_after_a_clock_was_set_back) {
    using clock = wall<94>;
    clock::set(100s + 500ms);
    asio::io_context context;
    pawl::options options;
    options.precision = 1s;
    pawl::make_timer_service<clock>(context, options);
    timer_of<clock> timer(context);
    const auto overdue_wait = [&](std::chrono::nanoseconds expiry) {
        outcome o;
        timer.expires_at(clock::time_point(expiry));
        timer.async_wait(record(o));
        poll(context);
        return o.succeeded();
    };

    BOOST_CHECK(overdue_wait(100s + 427ms));
    clock::set(60s + 500ms); // nothing is filed
    BOOST_CHECK(overdue_wait(60s + 427ms));
    clock::set(60s + 400ms); // in the same tick
    BOOST_CHECK(overdue_wait(60s + 300ms));
    BOOST_CHECK(overdue_wait(60s + 400ms));
}

BOOST_AUTO_TEST_CASE(C41_a_clock_that_is_set_forward_makes_waits_due_in_order) {
    using clock = wall<3>;
    clock::set(noon);
    asio::io_context context;
    std::vector<int> order;
    std::deque<timer_of<clock>> timers;
    for (int i = 0; i < 100; ++i) {
        timers.emplace_back(context, std::chrono::minutes(100 - i))
            .async_wait([&order, i](error_code) { order.push_back(i); });
    }

    clock::set(noon + 1h);
    look(context);
    BOOST_CHECK_EQUAL(order.size(), 60u);
    clock::set(noon + 24h);
    look(context);

    BOOST_CHECK_EQUAL(order.size(), 100u);
    BOOST_CHECK(std::is_sorted(order.rbegin(), order.rend()));
}

// C41: nobody tells the service; it looks by itself.
BOOST_AUTO_TEST_CASE(C41_a_clock_that_is_set_forward_is_noticed_without_being_told) {
    using clock = wall<4>;
    clock::set(noon);
    asio::io_context context;
    timer_of<clock> timer(context, 1h);
    outcome o;
    timer.async_wait(record(o));
    poll(context);

    clock::set(noon + 2h);
    run_to_end(context);

    BOOST_CHECK(o.succeeded());
}

namespace {

/// A clock that a test moves, and whose traits have Asio look again after `sleep`, whatever is left:
/// how many programs fake the time of Asio's timers.
template <int Tag>
struct mocked : wall<100 + Tag> {
    using duration = typename wall<100 + Tag>::duration;

    static duration to_wait_duration(duration) {
        ++looks;
        return sleep;
    }

    static inline duration sleep{0};
    static inline int looks = 0;
};

} // namespace

// The driver was armed for a time that had come, by a steady clock, although nothing was due: it woke up
// again and again, and poll() did not return.
BOOST_DATA_TEST_CASE(poll_returns_and_looks_at_the_clock_however_short_wait_traits_make_the_sleep,
                     boost::unit_test::data::make({std::int64_t{0}, std::int64_t{1},
                                                   std::int64_t{-1},
                                                   std::numeric_limits<std::int64_t>::min()}),
                     sleep) {
    using clock = mocked<1>;
    clock::sleep = std::chrono::nanoseconds(sleep);
    clock::set(noon);
    asio::io_context context;
    pawl::basic_waitable_timer<wall<101>, clock> timer(context, 10s);
    outcome o;
    timer.async_wait(record(o));

    BOOST_CHECK_EQUAL(units_of_poll(context), 0u);
    clock::set(noon + 10s - 1ns);
    BOOST_CHECK_EQUAL(units_of_poll(context), 0u);
    BOOST_CHECK(o.pending());
    clock::set(noon + 10s);
    std::this_thread::sleep_for(1ms); // the shortest sleep of a reactor
    BOOST_CHECK_EQUAL(units_of_poll(context), 1u);

    BOOST_CHECK(o.succeeded());
    BOOST_CHECK(context.stopped()); // P9
}

BOOST_AUTO_TEST_CASE(P8_a_clock_that_is_looked_at_often_is_not_once_the_last_wait_has_ended) {
    using clock = mocked<3>;
    clock::set(noon);
    asio::io_context context;
    pawl::basic_waitable_timer<wall<103>, clock> timer(context, 10s);
    outcome o;
    timer.async_wait(record(o));
    const auto looks = [&] {
        const int before = clock::looks;
        context.restart();
        context.run_for(1ms); // not poll(), for which select() need not know how long it may sleep
        return clock::looks - before;
    };
    int seen = 0;
    for (int i = 0; i < 1000 && seen == 0; ++i) // a busy machine may give it no time
        seen = looks();
    BOOST_CHECK_NE(seen, 0);

    timer.cancel();
    units_of_poll(context);
    const auto other_work = asio::make_work_guard(context);

    BOOST_CHECK(o.aborted());
    BOOST_CHECK_EQUAL(looks(), 0);
}

BOOST_AUTO_TEST_CASE(P9_a_driver_on_a_clock_of_its_own_is_cancelled_with_the_last_wait) {
    using clock = mocked<2>;
    clock::set(noon);
    asio::io_context context;
    pawl::basic_waitable_timer<wall<102>, clock> timer(context, 10s);
    outcome o[2];
    timer.async_wait(record(o[0]));
    units_of_poll(context);

    timer.cancel();
    run_to_end(context);
    timer.expires_after(5s);
    timer.async_wait(record(o[1]));
    clock::set(noon + 5s);
    run_to_end(context);

    BOOST_CHECK(o[0].aborted());
    BOOST_CHECK(o[1].succeeded());
}

namespace {

/// A clock that a test moves; any `Rep`, and so any range.
template <class Rep, class Period, int Tag>
struct moved_clock {
    using rep = Rep;
    using period = Period;
    using duration = std::chrono::duration<rep, period>;
    using time_point = std::chrono::time_point<moved_clock>;
    static constexpr bool is_steady = false;

    static time_point now() { return present; }
    static duration to_wait_duration(duration) { return duration::zero(); } // poll() looks

    static inline time_point present{};
};

/// A wait of `delay` from `begin` on completes when that has passed, and not before.
template <class Clock>
void check_a_wait(typename Clock::time_point begin, typename Clock::duration delay,
                  typename Clock::duration precision) {
    Clock::present = begin;
    asio::io_context context;
    pawl::basic_waitable_timer<Clock, Clock> timer(context, delay);
    pawl::basic_waitable_timer<Clock, Clock> within(context);
    within.expires_within(delay, delay + precision * 5);
    outcome o[2];
    timer.async_wait(record(o[0]));
    within.async_wait(record(o[1]));

    units_of_poll(context);
    Clock::present = begin + delay - precision;
    units_of_poll(context);
    BOOST_CHECK(o[0].pending() && o[1].pending());
    Clock::present = begin + delay + precision;
    units_of_poll(context);
    BOOST_CHECK(o[0].succeeded());
    Clock::present = begin + delay + precision * 6;
    units_of_poll(context);

    BOOST_CHECK(o[1].succeeded());
    BOOST_CHECK(context.stopped());
}

} // namespace

// Ticks were shifted by half the range, and saturated: waits above were lost, and those below early.
BOOST_AUTO_TEST_CASE(P1_P2_waits_are_exact_over_the_whole_range_of_a_clock_that_can_be_set) {
    using clock = moved_clock<std::int64_t, std::nano, 1>;
    using time_point = clock::time_point;
    constexpr std::chrono::nanoseconds quarter(std::int64_t{1} << 62);

    for (const time_point begin :
         {time_point(quarter + 1h), time_point(quarter) - 30s, time_point::max() - 2min,
          time_point(-quarter - 1h), time_point(-quarter) - 30s, time_point::min(),
          time_point(-30s), time_point()})
        check_a_wait<clock>(begin, 60s, 1ms);
}

BOOST_AUTO_TEST_CASE(P1_P2_waits_are_exact_on_a_clock_of_any_representation) {
    using narrow = moved_clock<std::int32_t, std::milli, 2>;
    using natural = moved_clock<std::uint64_t, std::micro, 3>;
    using small = moved_clock<std::uint32_t, std::milli, 4>;
    using real = moved_clock<double, std::ratio<1>, 5>;

    check_a_wait<narrow>(narrow::time_point::min(), 60s, 1ms);
    check_a_wait<narrow>(narrow::time_point::max() - 2min, 60s, 1ms);
    check_a_wait<natural>(natural::time_point(), std::chrono::seconds(60),
                          std::chrono::milliseconds(1));
    check_a_wait<natural>(natural::time_point::max() - std::chrono::minutes(2),
                          std::chrono::seconds(60), std::chrono::milliseconds(1));
    check_a_wait<natural>(natural::time_point(natural::duration(std::uint64_t{1} << 63)) -
                              std::chrono::seconds(30),
                          std::chrono::seconds(60), std::chrono::milliseconds(1));
    check_a_wait<small>(small::time_point::max() - std::chrono::minutes(2),
                        std::chrono::seconds(60), std::chrono::milliseconds(1));
    check_a_wait<real>(real::time_point(real::duration(-30)), real::duration(60),
                       real::duration(0.001));
    check_a_wait<real>(real::time_point(real::duration(1e9)), real::duration(60),
                       real::duration(0.001));
}

namespace {

/// Waits that are started at the end of the range, or before, and then find themselves there.
template <class Timer>
void check_that_poll_ends(std::chrono::nanoseconds precision) {
    using clock = typename Timer::clock_type;
    constexpr auto end = clock::time_point::max();
    for (const std::chrono::nanoseconds before : {0ns, 1ns, 500'000'000ns, 2'000'000'000ns}) {
        for (const std::chrono::nanoseconds delay :
             {1ns, 499'999'999ns, 500'000'000ns, 3'000'000'000ns}) {
            clock::set(end - before);
            asio::io_context context;
            pawl::options o;
            o.precision = precision;
            o.rings.delays = {{1ns}, {500ms}, {3s}};
            o.rings.round_up = true;
            pawl::make_timer_service<Timer>(context, o);
            Timer timer(context, delay);
            outcome told;
            timer.async_wait(record(told));

            units_of_poll(context);
            clock::set(end);
            look(context);
            units_of_poll(context);
            if (told.pending()) // its tick does not begin
                timer.cancel();

            run_to_end(context);
            BOOST_CHECK_EQUAL(told.calls, 1);
        }
    }
}

} // namespace

// The clock cannot say when the next tick begins. The driver was set for the end of the range, which
// had come, and woke up for ever.
BOOST_DATA_TEST_CASE(P8_poll_ends_when_a_clock_has_come_to_the_end_of_its_range,
                     boost::unit_test::data::make({1ns, 1'000'000ns, 1'000'000'000ns}), precision) {
    using steady = stepped_clock<struct end_of_range>;
    using pawl::on_backend;
    using traits = asio::wait_traits<steady>;

    check_that_poll_ends<timer_of<steady>>(precision);
    check_that_poll_ends<timer_of<wall<95>>>(precision);
    check_that_poll_ends<
        pawl::basic_waitable_timer<steady, on_backend<pawl::time::binary_wheel, traits>>>(
        precision);
    check_that_poll_ends<
        pawl::basic_waitable_timer<steady, on_backend<pawl::time::timeout_rings, traits>>>(
        precision);
}

BOOST_AUTO_TEST_CASE(P1_P7_many_waits_keep_their_order_when_the_clock_is_set_back) {
    using clock = wall<5>;
    clock::set(noon);
    asio::io_context context;
    std::vector<int> order;
    std::deque<timer_of<clock>> timers;
    for (int i = 0; i < 2000; ++i) {
        timers.emplace_back(context, std::chrono::seconds(10 + i / 100))
            .async_wait([&order, i](error_code) { order.push_back(i); });
    }
    clock::set(noon + 5s);
    look(context);
    clock::set(noon - 48h);
    look(context);
    BOOST_CHECK(order.empty());

    clock::set(noon + 9s);
    look(context);
    BOOST_CHECK(order.empty());
    clock::set(noon + 1h);
    look(context);

    BOOST_CHECK_EQUAL(order.size(), 2000u);
    BOOST_CHECK(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(
    P1_a_wait_that_starts_or_moves_before_anybody_notices_a_set_back_is_not_early) {
    using clock = wall<91>;
    clock::set(1h);
    asio::io_context context;
    timer_of<clock> started(context);
    timer_of<clock> moved(context);
    outcome a;
    outcome b;
    moved.expires_after(5h);
    moved.async_wait(record(b));
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { (void)s.clock_moved(); }); // sees one hour

    clock::set(30min);
    started.expires_after(15min);
    started.async_wait(record(a));
    moved.rearm_after(15min);
    poll(context);

    BOOST_CHECK(a.pending());
    BOOST_CHECK(b.pending());
    clock::set(45min);
    poll(context);
    run_to_end(context);
    BOOST_CHECK(a.succeeded());
    BOOST_CHECK(b.succeeded());
}

BOOST_AUTO_TEST_CASE(P10_expire_all_reaches_the_timers_that_a_set_back_is_filing_anew) {
    using clock = wall<90>;
    for (int round = 0; round < 20; ++round) {
        clock::set(1h);
        asio::io_context context;
        pawl::options o;
        o.batch_limit = 4; // many steps, between which the other thread comes
        pawl::make_timer_service<clock>(context, o);
        std::deque<timer_of<clock>> timers;
        constexpr std::size_t n = 5'000;
        for (std::size_t i = 0; i < n; ++i)
            timers.emplace_back(context, 5h + std::chrono::seconds(i)).async_wait([](error_code) {
            });
        const auto look = [&] {
            asio::use_service<pawl::detail::service_registry>(context).for_each(
                [](pawl::detail::registered_service& s) { (void)s.clock_moved(); });
        };
        clock::set(2h);
        look();
        clock::set(30min);

        std::atomic<bool> begun{false};
        std::thread driver([&] {
            begun = true;
            look();
        });
        while (!begun) {
        }
        const std::size_t count = pawl::expire_all(context);
        driver.join();

        BOOST_REQUIRE_EQUAL(count, n);
        context.poll();
    }
}

BOOST_AUTO_TEST_CASE(P1_a_clock_before_its_epoch_makes_no_wait_early) {
    using clock = wall<6>;
    clock::set(-10s);
    asio::io_context context;
    timer_of<clock> timer(context, 5s);
    outcome o;
    timer.async_wait(record(o));

    look(context);
    BOOST_CHECK(o.pending());
    clock::set(-5s - 1ns);
    look(context);
    BOOST_CHECK(o.pending());
    clock::set(-5s + 1ms);
    look(context);

    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- executors --------------------------------------------------------------------------------------

namespace {
/// Made of an io_context's executor without being asked; counts what it is given.
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

// The executor of the new timer does more than that of the old one: handlers go through it.
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

// ---- shards and locks -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(shards)

BOOST_AUTO_TEST_CASE(with_several_shards_every_wait_completes_and_the_driver_is_shared) {
    asio::io_context context;
    pawl::options o;
    o.precision = 1ns;
    o.shards = 4;
    pawl::make_timer_service<manual_clock>(context, o);
    constexpr std::size_t threads = 8;
    std::array<std::deque<manual_timer>, threads> timers;
    std::vector<std::thread> makers;
    for (auto& mine : timers) {
        makers.emplace_back([&] {
            for (int i = 0; i < 50; ++i)
                mine.emplace_back(context, std::chrono::milliseconds(1 + i));
        });
    }
    for (std::thread& t : makers)
        t.join();
    std::size_t completed = 0;
    for (auto& mine : timers)
        for (manual_timer& t : mine)
            t.async_wait([&](error_code ec) { completed += !ec; });

    for (std::size_t ms = 1; ms <= 25; ++ms) {
        BOOST_CHECK(manual_clock::advance_to_next(context) == 1ms);
        poll(context);
        BOOST_CHECK_EQUAL(completed, threads * ms);
    }
    // A timer moves between shards.
    manual_timer target(context, 1h);
    target.async_wait([](error_code) {});
    target = std::move(timers[3].back());
    BOOST_CHECK_EQUAL(target.cancel(), one);
    BOOST_CHECK_EQUAL(pawl::expire_all(context), threads * 25 - 1);
    run_to_end(context); // P9

    BOOST_CHECK_EQUAL(completed, threads * 50 - 1);
}

BOOST_AUTO_TEST_CASE(threads_take_the_shards_in_turn) {
    using service = pawl::timer_service<manual_clock>;
    asio::io_context context;
    pawl::options o;
    o.shards = 2;
    pawl::make_timer_service<manual_clock>(context, o);
    auto& shards = asio::use_service<service>(context);
    service::dispatcher* const mine = &shards.enter();
    service::dispatcher* other = nullptr;

    std::thread([&] { other = &shards.enter(); }).join();

    BOOST_CHECK(other != mine);
    BOOST_CHECK(&shards.enter() == mine);
}

BOOST_AUTO_TEST_CASE(P9_with_several_shards_run_returns_when_the_last_of_all_is_cancelled) {
    asio::io_context context;
    pawl::options o;
    o.shards = 4;
    pawl::make_timer_service(context, o);
    std::array<std::optional<pawl::steady_timer>, 8> timers;
    std::vector<std::thread> makers;
    for (auto& t : timers)
        makers.emplace_back([&] { t.emplace(context, 1h); });
    for (std::thread& t : makers)
        t.join();
    int calls = 0;
    for (auto& t : timers)
        t->async_wait([&](error_code) { ++calls; });
    for (auto& t : timers)
        asio::post(context, [&] { t->cancel(); });

    run_to_end(context);

    BOOST_CHECK_EQUAL(calls, 8);
}

namespace {

/// Makes a timer in the shard of another thread than the first one that made a timer here.
template <class Timer>
void make_in_another_shard(std::optional<Timer>& timer, asio::io_context& context) {
    std::thread([&] { timer.emplace(context); }).join();
}

/// Two shards, each with a timer.
template <class Timer>
struct two_shards {
    explicit two_shards(std::chrono::nanoseconds precision = 1ns) {
        pawl::options o;
        o.precision = precision;
        o.shards = 2;
        pawl::make_timer_service<Timer>(context, o);
        first.emplace(context);
        make_in_another_shard(second, context);
    }

    /// Starts `a` in the first shard and `b` in the second one.
    void start(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
        first->expires_after(a);
        first->async_wait(record(in_first));
        second->expires_after(b);
        second->async_wait(record(in_second));
    }

    asio::io_context context;
    std::optional<Timer> first, second;
    outcome in_first, in_second;
};

} // namespace

// The driver was set for the shards one after the other: a nearer deadline in a later shard cancelled
// it, so that it woke up at once, for ever.
BOOST_AUTO_TEST_CASE(P8_the_driver_sleeps_until_the_earliest_wait_of_all_shards) {
    two_shards<manual_timer> t;
    t.start(10s, 1s);

    BOOST_CHECK_LE(units_of_poll(t.context), 1u); // the nearer deadline came second
    BOOST_CHECK_EQUAL(units_of_poll(t.context), 0u);
    BOOST_CHECK(manual_clock::advance_to_next(t.context) == 1s);
    BOOST_CHECK_LE(units_of_poll(t.context), 2u);
    BOOST_CHECK(t.in_second.succeeded());
    BOOST_CHECK(t.in_first.pending());
    BOOST_CHECK_EQUAL(units_of_poll(t.context), 0u);
    BOOST_CHECK(manual_clock::advance_to_next(t.context) == 9s);
    BOOST_CHECK_LE(units_of_poll(t.context), 2u);

    BOOST_CHECK(t.in_first.succeeded());
    BOOST_CHECK(t.context.stopped()); // P9
}

BOOST_AUTO_TEST_CASE(P8_a_steady_clock_with_several_shards_takes_no_units_while_nothing_is_due) {
    two_shards<pawl::steady_timer> t;
    t.start(1h, 30min);

    BOOST_CHECK_LE(units_of_poll(t.context), 1u);
    BOOST_CHECK_EQUAL(units_of_poll(t.context), 0u);
    t.first->cancel();
    t.second->cancel();
    run_to_end(t.context);

    BOOST_CHECK(t.in_first.aborted() && t.in_second.aborted());
}

// To file its timers anew when the clock was set back, a shard needs memory. That one shard has none
// must not keep another one from its waits, of which the wake-up has claimed one already.
BOOST_AUTO_TEST_CASE(
    P3_a_shard_without_memory_to_follow_its_clock_leaves_no_wait_of_another_behind) {
    using clock = wall<92>;
    for (long n = 0;; ++n) {
        clock::set(100s);
        two_shards<timer_of<clock>> t;
        t.start(10s, 20s);
        outcome passed[2];
        timer_of<clock> first(t.context);
        std::optional<timer_of<clock>> second;
        make_in_another_shard(second, t.context);
        look(t.context); // sees 100 s
        clock::set(50s);
        first.expires_at(clock::time_point(40s)); // has passed, and is due at once
        first.async_wait(record(passed[0]));
        second->expires_at(clock::time_point(40s));
        second->async_wait(record(passed[1]));

        counted_new::fuse = n;
        bool failed = false;
        try {
            t.context.run_one_for(patience);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        counted_new::fuse = counted_new::never;
        units_of_poll(t.context); // tries again

        BOOST_CHECK(passed[0].succeeded());
        BOOST_CHECK(passed[1].succeeded());
        BOOST_CHECK(t.in_first.pending() && t.in_second.pending());
        BOOST_CHECK_EQUAL(units_of_poll(t.context), 0u);
        clock::set(120s);
        look(t.context);
        BOOST_CHECK(t.in_first.succeeded() && t.in_second.succeeded());
        BOOST_CHECK(failed || n > 1); // each shard needs memory
        if (!failed)
            break;
    }
}

// A handler that is alone in its unit holds up none that is started while it runs.
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

// The same in one thread: a handler runs the context until what it has just started is over.
BOOST_AUTO_TEST_CASE(a_handler_that_runs_the_context_gets_what_it_has_started) {
    asio::io_context context;
    pawl::options o;
    o.completions_per_turn = 64;
    pawl::make_timer_service(context, o);
    pawl::steady_timer outer(context, 1ms);
    pawl::steady_timer inner(context);
    bool done = false;
    outer.async_wait([&](error_code) {
        inner.expires_after(1ms);
        inner.async_wait([&](error_code) { done = true; });
        while (!done && context.run_one_for(60s) != 0) {
        }
    });

    context.run();

    BOOST_CHECK(done);
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

// --- what threads remember of services -----------------------------------------------------------

/// A context that lies where another one was before.
class same_place {
public:
    asio::io_context& anew() {
        context_.reset();
        return context_.emplace();
    }

private:
    std::optional<asio::io_context> context_;
};

/// A timer in `context` that expires at once does so there, and nowhere else.
void check_at_home(asio::io_context& context) {
    outcome o;
    pawl::steady_timer timer(context, 0ms);
    BOOST_TEST(&asio::query(timer.get_executor(), asio::execution::context) == &context);
    timer.async_wait(record(o));
    run_to_end(context);
    BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(a_context_where_a_dead_one_was_has_services_of_its_own) {
    same_place place;
    for (int i = 0; i < 3; ++i)
        check_at_home(place.anew());
}

BOOST_AUTO_TEST_CASE(a_context_where_a_dead_one_was_has_services_of_its_own_in_every_thread) {
    same_place place;
    asio::thread_pool other(1); // keeps its thread, and what that remembers
    for (int i = 0; i < 3; ++i) {
        asio::io_context& context = place.anew();
        asio::post(other, asio::use_future([&] { check_at_home(context); })).get();
        check_at_home(context);
    }
}

BOOST_AUTO_TEST_CASE(a_thread_may_take_turns_between_contexts) {
    asio::io_context a;
    asio::io_context b;
    for (int i = 0; i < 3; ++i) {
        check_at_home(a);
        check_at_home(b);
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
