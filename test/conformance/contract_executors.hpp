// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C26-C30: allocation, executors, outstanding work, units of work.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_EXECUTORS_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_EXECUTORS_HPP

#include "contract_support.hpp"

#include "../support/copying_executors.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <future>
#include <new>
#include <optional>
#include <thread>

namespace contract {

BOOST_AUTO_TEST_SUITE(executors)

// ---- C26 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C26_without_memory_for_the_wait_the_timer_is_as_it_was) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    const auto when = t.expiry();
    allocation_log memory;
    handler_log log;
    fate earlier{};
    t.async_wait(record(earlier));

    memory.fail = true;
    BOOST_CHECK_THROW(
        t.async_wait(asio::bind_allocator(counting_allocator<char>(memory), counting_handler(log))),
        std::bad_alloc);
    BOOST_TEST(log.live == 0);
    BOOST_TEST(log.calls == 0);
    BOOST_TEST(memory.live() == none);
    BOOST_TEST((t.expiry() == when));
    BOOST_TEST(earlier == fate::pending);
    BOOST_TEST(t.cancel() == one);
    run_to_end(io);
    BOOST_TEST(earlier == fate::aborted);
    BOOST_TEST(log.calls == 0);

    memory.fail = false;
    t.expires_after(1ms);
    t.async_wait(asio::bind_allocator(counting_allocator<char>(memory), counting_handler(log)));
    run_to_end(io);
    BOOST_TEST(log.calls == 1);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C26_the_first_wait_of_a_context_may_lack_memory_too) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    allocation_log memory;
    memory.fail = true;

    BOOST_CHECK_THROW(t.async_wait(asio::bind_allocator(counting_allocator<char>(memory), ignore)),
                      std::bad_alloc);

    BOOST_TEST(t.cancel() == none);
    BOOST_TEST(run_to_end(io) == none);
}

struct copy_error {};

/// A handler whose copies fail.
struct uncooperative_handler {
    explicit uncooperative_handler(handler_log& log) : inner(log) {}
    uncooperative_handler(const uncooperative_handler& other) : inner(other.inner) {
        throw copy_error();
    }
    uncooperative_handler(uncooperative_handler&&) = default;
    void operator()(error_code code) const { inner(code); }

    counting_handler inner;
};

BOOST_AUTO_TEST_CASE(C26_a_handler_whose_copy_throws_leaves_the_timer_as_it_was) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    handler_log log;
    fate earlier{};
    const uncooperative_handler handler(log);
    t.async_wait(record(earlier));

    BOOST_CHECK_THROW(t.async_wait(handler), copy_error);

    BOOST_TEST(log.live == 1);
    BOOST_TEST(t.cancel() == one);
    run_to_end(io);
    BOOST_TEST(earlier == fate::aborted);
    BOOST_TEST(log.calls == 0);
}

// ---- C27 ----------------------------------------------------------------------------------------

template <typename Timer>
void check_one_allocation(asio::io_context& io, Timer& t, bool cancel) {
    allocation_log memory;
    std::size_t after_start = 99, during_call = 99;
    fate f{};

    t.async_wait(asio::bind_allocator(counting_allocator<char>(memory), [&](error_code code) {
        settle(f, code);
        during_call = memory.live();
    }));
    after_start = memory.live();
    if (cancel)
        t.cancel();
    run_to_end(io);

    BOOST_TEST(f == (cancel ? fate::aborted : fate::success));
    BOOST_TEST(after_start == one);
    BOOST_TEST(during_call == none);
    BOOST_TEST(memory.allocations == one);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C27_a_wait_allocates_once_and_frees_before_the_handler_runs) {
    asio::io_context io;
    tut::steady_timer erased(io, 1ms);
    timer_on<asio::io_context::executor_type> native(io, 1ms);

    check_one_allocation(io, erased, false);
    check_one_allocation(io, native, false);
}

BOOST_AUTO_TEST_CASE(C27_a_cancelled_wait_allocates_once_and_frees_before_the_handler_runs) {
    asio::io_context io;
    tut::steady_timer erased(io, 1h);
    timer_on<asio::io_context::executor_type> native(io, 1h);

    check_one_allocation(io, erased, true);
    check_one_allocation(io, native, true);
}

BOOST_AUTO_TEST_CASE(C27_an_expired_wait_allocates_once_too) {
    asio::io_context io;
    tut::steady_timer t(io, past());

    check_one_allocation(io, t, false);
}

BOOST_AUTO_TEST_CASE(C27_many_waits_allocate_once_each) {
    asio::io_context io;
    allocation_log memory;
    std::deque<tut::steady_timer> timers;
    int calls = 0;

    for (int i = 0; i < 50; ++i) {
        timers.emplace_back(io, i % 2 == 0 ? past() : future());
        timers.back().async_wait(
            asio::bind_allocator(counting_allocator<char>(memory), [&](error_code) { ++calls; }));
    }
    for (std::size_t i = 1; i < timers.size(); i += 2)
        timers[i].cancel();
    run_to_end(io);

    BOOST_TEST(calls == 50);
    BOOST_TEST(memory.allocations == 50u);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C27_on_the_way_to_another_executor_there_may_be_a_second_allocation) {
    asio::io_context io, other;
    allocation_log memory;
    tut::steady_timer expiring(io, 1ms), cancelled(io, 1h);
    fate f{}, g{};
    std::size_t during_call = 99;
    const auto bound = [&](auto handler) {
        return asio::bind_executor(
            other.get_executor(),
            asio::bind_allocator(counting_allocator<char>(memory), std::move(handler)));
    };

    expiring.async_wait(bound([&](error_code code) {
        settle(f, code);
        during_call = memory.live();
    }));
    run_to_end(io);
    run_to_end(other);
    const auto allocations = memory.allocations;
    cancelled.async_wait(bound(record(g)));
    cancelled.cancel();
    run_to_end(io);
    run_to_end(other);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::aborted);
    BOOST_TEST(allocations >= 1u);
    BOOST_TEST(allocations <= 2u);
    BOOST_TEST(during_call == none);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C27_what_was_allocated_is_freed_when_the_context_dies) {
    allocation_log memory;
    int calls = 0;
    {
        asio::io_context io;
        tut::steady_timer pending(io, 1h), expired(io, past()), cancelled(io, 1h);
        for (auto* t : {&pending, &expired, &cancelled})
            t->async_wait(asio::bind_allocator(counting_allocator<char>(memory),
                                               [&](error_code) { ++calls; }));
        cancelled.cancel();
    }

    BOOST_TEST(calls == 0);
    BOOST_TEST(memory.allocations == 3u);
    BOOST_TEST(memory.live() == none);
}

// ---- C28 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C28_an_unbound_handler_runs_in_the_strand_of_its_timer) {
    asio::io_context io;
    auto strand = asio::make_strand(io);
    timer_on<decltype(strand)> expiring(strand, clock::duration(1ms));
    tut::steady_timer cancelled(asio::any_io_executor(strand), clock::duration(1h));
    int in_strand = 0;
    const auto handler = [&](error_code) { in_strand += strand.running_in_this_thread(); };

    expiring.async_wait(handler);
    cancelled.async_wait(handler);
    cancelled.cancel();
    run_to_end(io);

    BOOST_TEST(in_strand == 2);
}

BOOST_AUTO_TEST_CASE(C28_a_bound_handler_runs_in_its_own_strand_and_not_in_that_of_the_timer) {
    asio::io_context io;
    auto own = asio::make_strand(io);
    auto bound = asio::make_strand(io);
    timer_on<decltype(own)> t(own, clock::duration(1ms));
    bool in_own = true, in_bound = false;

    t.async_wait(asio::bind_executor(bound, [&](error_code) {
        in_own = own.running_in_this_thread();
        in_bound = bound.running_in_this_thread();
    }));
    run_to_end(io);

    BOOST_TEST(in_bound);
    BOOST_TEST(!in_own);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C28_handlers_of_one_strand_do_not_overlap_in_a_thread_pool) {
    asio::thread_pool pool(4);
    auto strand = asio::make_strand(pool);
    std::deque<timer_on<decltype(strand)>> timers;
    int inside = 0, overlaps = 0, calls = 0; // guarded by the strand

    for (int i = 0; i < 100; ++i)
        timers.emplace_back(strand, clock::duration(std::chrono::microseconds(50 * i)));
    std::promise<void> started;
    asio::post(strand, [&] {
        for (auto& t : timers)
            t.async_wait([&](error_code) {
                overlaps += inside++;
                ++calls;
                --inside;
            });
        started.set_value();
    });
    started.get_future().wait();
    pool.join();

    BOOST_TEST(calls == 100);
    BOOST_TEST(overlaps == 0);
}

BOOST_AUTO_TEST_CASE(C28_a_handler_bound_to_another_context_runs_there) {
    asio::io_context io, other;
    tut::steady_timer expiring(io, 1ms), cancelled(io, 1h);
    fate f{}, g{};

    expiring.async_wait(asio::bind_executor(other.get_executor(), record(f)));
    cancelled.async_wait(asio::bind_executor(other.get_executor(), record(g)));
    cancelled.cancel();
    run_to_end(io);
    const bool ran_here = f != fate::pending || g != fate::pending;
    const auto units = run_to_end(other);

    BOOST_TEST(!ran_here);
    BOOST_TEST(units == 2u);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C28_a_handler_bound_to_the_system_executor_runs_inline_in_run) {
    asio::io_context io;
    tut::steady_timer expiring(io, 1ms), cancelled(io, 1h);
    std::thread::id expired_in, cancelled_in;

    expiring.async_wait(asio::bind_executor(
        asio::system_executor(), [&](error_code) { expired_in = std::this_thread::get_id(); }));
    cancelled.async_wait(asio::bind_executor(
        asio::system_executor(), [&](error_code) { cancelled_in = std::this_thread::get_id(); }));
    cancelled.cancel();
    const bool inline_call = cancelled_in != std::thread::id();
    run_to_end(io);

    BOOST_TEST(!inline_call);
    BOOST_TEST((expired_in == std::this_thread::get_id()));
    BOOST_TEST((cancelled_in == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(C28_a_composed_operation_without_io_objects_continues_in_the_run_thread) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    std::thread::id seen;

    const auto handler = [&](error_code code) {
        settle(f, code);
        seen = std::this_thread::get_id();
    };
    asio::async_compose<decltype(handler), void(error_code)>(
        [&t, state = 0](auto& self, error_code code = {}) mutable {
            if (state++ < 3) {
                t.expires_after(1ms);
                t.async_wait(std::move(self));
            } else {
                self.complete(code);
            }
        },
        handler);
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST((seen == std::this_thread::get_id()));
}

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
BOOST_AUTO_TEST_CASE(C28_handlers_with_priorities_run_when_and_as_their_executor_says) {
    asio::io_context io;
    priority_context priorities;
    tut::steady_timer low(io, 1ms), high(io, 2ms), middle(io, 3ms), cancelled(io, 1h);
    std::string order;

    low.async_wait(asio::bind_executor(priorities.at(0), record(order, 'l')));
    high.async_wait(asio::bind_executor(priorities.at(100), record(order, 'h')));
    middle.async_wait(asio::bind_executor(priorities.at(42), record(order, 'm')));
    cancelled.async_wait(asio::bind_executor(priorities.at(7), record(order, 'c')));
    cancelled.cancel();
    run_to_end(io);
    const std::string before = order;
    priorities.run_all();

    BOOST_TEST(before == "");
    BOOST_TEST(order == "hmcl");
}
#endif

/// The executor stores a function in a std::function, which copies it.
template <typename Executor>
void check_executor_that_copies() {
    asio::io_context io;
    prioritised_functions functions;
    const auto at = [&](int priority) { return Executor(io, functions, priority); };
    tut::steady_timer low(io, 1ms), high(io, 2ms), cancelled(io, 1h);
    timer_on<Executor> expiring(at(42), 3ms), ended(at(3), 1h);
    std::string order;
    const auto records = [&order](char name) {
        return [&order, name](error_code code) {
            order += code == asio::error::operation_aborted ? '-' : '+';
            order += name;
        };
    };

    low.async_wait(asio::bind_executor(at(0), records('l')));
    high.async_wait(asio::bind_executor(at(100), records('h')));
    cancelled.async_wait(asio::bind_executor(at(7), records('c')));
    expiring.async_wait(records('e'));
    ended.async_wait(records('d'));
    cancelled.cancel();
    ended.cancel();
    // A TS executor counts a wait until its handler has run.
    while (functions.size() != 5u) {
        io.restart();
        io.run_one_for(patience);
    }
    const std::string before = order;
    functions.run_all();

    BOOST_TEST(before == "");
    BOOST_TEST(order == "+h+e-c-d+l");
}

BOOST_AUTO_TEST_CASE(C28_an_executor_may_copy_what_it_is_given) {
    check_executor_that_copies<executor_with_properties>();
}

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
BOOST_AUTO_TEST_CASE(C28_a_TS_executor_may_copy_what_it_is_given) {
    check_executor_that_copies<networking_ts_executor>();
}
#endif

template <typename Executor>
void check_copies_that_are_never_called() {
    asio::io_context io;
    prioritised_functions functions;
    const auto alive = std::make_shared<int>();
    int calls = 0;
    tut::steady_timer t(io, past());
    t.async_wait(asio::bind_executor(Executor(io, functions), [&, alive](error_code) { ++calls; }));
    while (functions.size() == 0) {
        io.restart();
        io.run_one_for(patience);
    }

    BOOST_TEST(alive.use_count() >= 2);
    functions.clear();

    BOOST_TEST(alive.use_count() == 1);
    BOOST_TEST(calls == 0);
}

BOOST_AUTO_TEST_CASE(C28_a_handler_goes_with_the_last_copy_that_its_executor_destroys) {
    check_copies_that_are_never_called<executor_with_properties>();
#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
    check_copies_that_are_never_called<networking_ts_executor>();
#endif
}

// ---- C29 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C29_a_pending_wait_is_work_and_a_timer_is_not) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);

    BOOST_TEST(!busy_after_poll(io));
    t.async_wait(ignore);
    BOOST_TEST(busy_after_poll(io));
    t.async_wait(ignore);
    t.cancel_one();
    BOOST_TEST(busy_after_poll(io));
    t.cancel();
    BOOST_TEST(!busy_after_poll(io));
    t.async_wait(ignore);
    BOOST_TEST(busy_after_poll(io));
    t.expires_after(1h);
    BOOST_TEST(!busy_after_poll(io));
    BOOST_TEST(run_to_end(io) == none);
}

BOOST_AUTO_TEST_CASE(C29_run_returns_when_the_last_wait_is_over) {
    asio::io_context io;
    tut::steady_timer t(io, 3ms), u(io, 1h);
    fate f{}, g{};
    t.async_wait([&](error_code code) {
        settle(f, code);
        u.cancel();
    });
    u.async_wait(record(g));

    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C29_a_wait_is_no_work_for_another_context) {
    asio::io_context io, other;
    tut::steady_timer t(io, 1h), u(other, 1h);

    t.async_wait(ignore);
    BOOST_TEST(!busy_after_poll(other));
    u.async_wait(ignore);
    t.cancel();
    BOOST_TEST(!busy_after_poll(io));
    BOOST_TEST(busy_after_poll(other));
    u.cancel();
    BOOST_TEST(!busy_after_poll(other));
}

BOOST_AUTO_TEST_CASE(C29_a_wait_is_work_for_the_context_of_its_handler_until_it_is_called) {
    asio::io_context io, other;
    tut::steady_timer t(io, 1ms);
    fate f{};

    t.async_wait(asio::bind_executor(other.get_executor(), record(f)));
    BOOST_TEST(busy_after_poll(other));
    run_to_end(io); // returns: waits that were handed over no longer count as work here
    BOOST_TEST(f == fate::pending);
    BOOST_TEST(!busy_after_poll(other));
    BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C29_cancellation_ends_the_work_of_both_contexts) {
    asio::io_context io, other;
    tut::steady_timer t(io, 1h);
    fate f{};

    t.async_wait(asio::bind_executor(other.get_executor(), record(f)));
    t.cancel();
    BOOST_TEST(busy_after_poll(other));
    run_to_end(io);
    BOOST_TEST(!busy_after_poll(other));
    BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C29_the_executor_of_the_handler_is_tracked_while_the_wait_is_pending) {
    asio::io_context io;
    pawl_test::manual_context queue; // needs no rings
    tut::steady_timer t(io, 1h);
    fate f{};

    t.async_wait(asio::bind_executor(queue.get_executor(), record(f)));
    const int pending = queue.work();
    t.cancel();
    run_to_end(io);
    queue.poll();

    BOOST_TEST(pending >= 1);
    BOOST_TEST(queue.work() == 0);
    BOOST_TEST(f == fate::aborted);
}

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
BOOST_AUTO_TEST_CASE(C29_a_TS_executor_is_told_of_the_work) {
    asio::io_context io, other;
    executor_log own, bound;
    timer_on<ts_executor> t(ts_executor(io, own), clock::duration(1h));
    fate f{}, g{};

    BOOST_TEST(own.work.load() == 0);
    t.async_wait(record(g));
    BOOST_TEST(own.work.load() >= 1);
    t.async_wait(asio::bind_executor(ts_executor(other, bound), record(f)));
    BOOST_TEST(bound.work.load() >= 1);
    BOOST_TEST(busy_after_poll(other));
    t.cancel();
    run_to_end(io);
    run_to_end(other);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::aborted);
    BOOST_TEST(own.work.load() == 0);
    BOOST_TEST(bound.work.load() == 0);
}
#endif

PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN
BOOST_AUTO_TEST_CASE(C29_the_context_of_the_timer_counts_a_wait_whose_handler_is_bound_elsewhere) {
    asio::io_context io;
    manual_context context;
    timer_on<manual_context::executor_type> t(context, 1h);
    fate f{};

    t.async_wait(asio::bind_executor(io.get_executor(), record(f)));
    const int pending = context.work();
    t.cancel();
    // The service of a user-defined context may run in a thread of its own.
    const auto limit = clock::now() + patience;
    while (f == fate::pending && clock::now() < limit) {
        context.poll();
        busy_after_poll(io);
    }

    BOOST_TEST(pending >= 1);
    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(context.work() == 0);
}

// ---- C30 ----------------------------------------------------------------------------------------

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C30_a_lone_expiry_is_one_unit) {
    asio::io_context io;
    tut::steady_timer t(io, 2ms);
    fate f{};
    t.async_wait(record(f));

    const auto units = run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(units == one);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C30_a_lone_expiry_is_one_unit_again_and_again) {
    asio::io_context io;
    tut::steady_timer t(io);
    std::size_t units = 0;

    for (int i = 0; i < 5; ++i) {
        t.expires_after(1ms);
        t.async_wait(ignore);
        units += run_to_end(io);
    }

    BOOST_TEST(units == 5u);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C30_a_lone_wait_that_had_expired_is_one_unit) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    fate f{};
    t.async_wait(record(f));

    const auto units = run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(units == one);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C30_a_lone_cancel_is_one_unit) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate f{};
    t.async_wait(record(f));
    t.cancel();

    const auto first = io.poll_one();
    const fate after_one = f;
    const auto second = io.poll_one();

    BOOST_TEST(first == one);
    BOOST_TEST(after_one == fate::aborted);
    BOOST_TEST(second == none);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C30_a_lone_emission_is_one_unit) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1h);
    fate f{};
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));
    signal.emit(asio::cancellation_type::terminal);

    const auto units = run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(units == one);
}

BOOST_AUTO_TEST_CASE(C30_each_unit_completes_one_wait_at_most) {
    asio::io_context io;
    tut::steady_timer same(io, past()), cancelled(io, 1h);
    std::deque<tut::steady_timer> several;
    int calls = 0;
    const auto count = [&](error_code) { ++calls; };
    for (int i = 0; i < 10; ++i) {
        same.async_wait(count);
        cancelled.async_wait(count);
        several.emplace_back(io, past());
        several.back().async_wait(count);
    }
    cancelled.cancel();

    std::size_t units = 0;
    int most = 0;
    for (int before = calls; io.run_one_for(patience) == 1; before = calls) {
        ++units;
        most = std::max(most, calls - before);
    }

    BOOST_TEST(calls == 30);
    BOOST_TEST(most == 1);
    // Wake-ups of Pawl's driver that complete nothing may be units of their own.
    if constexpr (under_test_is_pawl)
        BOOST_TEST(units >= 30u);
    else
        BOOST_TEST(units == 30u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_EXECUTORS_HPP
