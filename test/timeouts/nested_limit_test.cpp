// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Operations under limits with nested events: the limit, the end of the operation and
//   cancellation within the initiating function, within a signal, and within each other; results
//   that are stored in the meantime.

#define BOOST_TEST_MODULE nested_limit
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include "../support/graveyard.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace timeouts;
using pawl_test::graveyard;
using pawl_test::graveyard_allocator;

/// An operation under a limit of a second, which its caller may cancel.
struct limited {
    explicit limited(operation::obedience o) : op(context.get_executor(), o, aborted, 0) {}

    void start() {
        op.async_run(
            pawl::timeout(timer, 1s,
                          asio::bind_cancellation_slot(
                              signal.slot(), asio::bind_allocator(graveyard_allocator<void>(memory),
                                                                  record(result)))));
    }
    void reach_the_limit() {
        manual_clock::advance(context, 1s);
        context.poll();
    }
    void cancel() { signal.emit(cancellation_type::total); }

    graveyard memory;
    asio::io_context context;
    manual_timer timer{context};
    asio::cancellation_signal signal;
    operation op;
    outcome result;
};

using obedience = operation::obedience;

} // namespace

// ---- a signal that exists for longer -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_signal_outlives_the_operations_whose_slots_it_had) {
    for (const bool completes : {true, false}) {
        limited l(obedience::ignores);
        l.start();
        if (completes)
            l.op.complete({}, 7);
        else
            l.op.abandon();
        poll(l.context);
        BOOST_TEST(l.result.calls == (completes ? 1 : 0));
        BOOST_TEST(l.memory.buried() == l.memory.allocations());

        l.signal.slot().clear();
        BOOST_TEST(l.memory.undisturbed());
    }
}

// ---- while the initiating function runs ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_operation_that_ended_behind_its_limit_within_its_start_is_not_signalled) {
    limited l(obedience::ignores);
    l.op.at_start = [&] {
        l.reach_the_limit();
        l.op.complete({}, 7);
        BOOST_TEST(l.result.pending()); // its handler waits for the end of the initiating function
    };

    l.start();
    poll(l.context);

    BOOST_TEST(l.op.signals().empty());
    BOOST_TEST(l.result.ended_with({}, 7));
}

BOOST_AUTO_TEST_CASE(an_operation_whose_limit_was_reached_within_its_start_is_signalled_after_it) {
    limited l(obedience::posts);
    bool started = false;
    l.op.at_start = [&] { l.reach_the_limit(); };
    l.op.at_signal = [&] { BOOST_TEST(started); };

    l.start();
    started = true;
    poll(l.context);

    BOOST_TEST(l.op.signals().size() == one);
    BOOST_TEST(l.result.ended_with(timed_out, 0));
}

namespace {

/// The events in the initiating function, in this order.
enum class event { limit, cancel, end };

std::vector<std::vector<event>> orders() {
    std::vector<std::vector<event>> all;
    std::array<event, 3> e{event::limit, event::cancel, event::end};
    do {
        for (std::size_t n = 0; n <= e.size(); ++n) {
            const std::vector<event> some(e.begin(), e.begin() + static_cast<std::ptrdiff_t>(n));
            if (std::find(all.begin(), all.end(), some) == all.end())
                all.push_back(some);
        }
    } while (std::next_permutation(e.begin(), e.end()));
    return all;
}

/// The events until the operation has ended, by itself or by its reaction to a cancellation.
void expect_one_end(obedience o, const std::vector<event>& within_start) {
    limited l(o);
    std::vector<event> before; // the end of the operation
    l.op.at_start = [&] {
        for (const event e : within_start) {
            const bool pending = l.op.pending();
            if (e == event::limit)
                l.reach_the_limit();
            else if (e == event::cancel)
                l.cancel();
            else if (pending)
                l.op.complete({}, 7);
            if (pending && e != event::end)
                before.push_back(e);
            BOOST_TEST(l.result.pending()); // the initiating function is running
        }
    };

    l.start();
    poll(l.context);
    const bool was_cancelled = !l.op.pending() && l.result.value == 0;
    if (l.op.pending())
        l.op.complete({}, 7);
    poll(l.context);

    BOOST_TEST(l.result.calls == 1);
    if (was_cancelled)
        BOOST_TEST(l.result.code == (before.front() == event::limit ? timed_out : aborted));
    else
        BOOST_TEST(l.result.ended_with({}, 7));
    BOOST_TEST(l.op.signals().size() <= before.size()); // one for each event that found it pending
    BOOST_TEST(l.memory.buried() == l.memory.allocations());
    l.cancel();
    l.signal.slot().clear();
    BOOST_TEST(l.memory.undisturbed());
    BOOST_TEST(l.context.stopped()); // P9
}

} // namespace

BOOST_AUTO_TEST_CASE(whatever_comes_within_the_start_of_an_operation_it_ends_once) {
    BOOST_TEST(orders().size() == 16U);
    for (const auto& order : orders()) {
        for (const auto o :
             {obedience::ignores, obedience::completes_in_the_signal, obedience::posts})
            expect_one_end(o, order);
    }
}

// ---- emission within emission -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_signal_that_is_emitted_within_itself_ends_the_operation_once) {
    for (const int depth : {1, 2, 5}) {
        limited l(obedience::completes_in_the_signal);
        int left = depth;
        l.op.at_signal = [&] {
            if (left-- > 0)
                l.cancel();
        };
        l.start();

        l.cancel();
        poll(l.context);

        BOOST_TEST(l.result.ended_with(aborted, 0));
        BOOST_TEST(l.memory.buried() == l.memory.allocations());
        BOOST_TEST(l.context.stopped());
    }
}

BOOST_AUTO_TEST_CASE(a_signal_that_is_emitted_within_itself_and_ignored_loses_no_result) {
    limited l(obedience::ignores);
    int left = 3;
    l.op.at_signal = [&] {
        if (left-- > 0)
            l.cancel();
    };
    l.start();
    l.cancel();
    poll(l.context);
    BOOST_TEST(l.op.signals().size() == 4U);
    BOOST_TEST(l.result.pending());

    l.op.complete({}, 7);
    poll(l.context);

    BOOST_TEST(l.result.ended_with({}, 7));
    BOOST_TEST(l.memory.buried() == l.memory.allocations());
    BOOST_TEST(l.context.stopped());
}

// The handler is invoked when the outermost emission is over, and the memory of the operation
// exists until then.
BOOST_AUTO_TEST_CASE(an_operation_that_ends_within_two_emissions_is_told_after_both) {
    for (const bool limit_first : {true, false}) {
        limited l(obedience::ignores);
        int depth = 0;
        l.op.at_signal = [&] {
            if (++depth == 1) {
                if (limit_first)
                    l.cancel();
                else
                    l.reach_the_limit();
                BOOST_TEST(l.result.pending());
                BOOST_TEST(l.memory.buried() == none);
            } else {
                l.op.complete(aborted, 0);
                BOOST_TEST(l.result.pending());
            }
        };
        l.start();

        if (limit_first)
            l.reach_the_limit();
        else
            l.cancel();
        poll(l.context);

        BOOST_TEST(l.op.signals().size() == 2U);
        BOOST_TEST(l.result.ended_with(limit_first ? timed_out : aborted, 0));
        BOOST_TEST(l.memory.buried() == l.memory.allocations());
        BOOST_TEST(l.context.stopped());
    }
}

// ---- results that are stored ----------------------------------------------------------------------------

namespace {

/// An operation of one context, whose limit is in another one, where it is due and queued.
struct two_contexts {
    two_contexts() {
        op.async_run(
            pawl::timeout(timer, 1s, asio::bind_executor(mine.get_executor(), record(result))));
        manual_clock::advance(timers, 1s); // falls due; that context does not run
    }

    asio::io_context timers;
    asio::io_context mine;
    manual_timer timer{timers};
    operation op{mine.get_executor()};
    outcome result;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(P9_a_context_runs_until_the_handler_of_a_stored_result_has_been_invoked,
                        two_contexts) {
    asio::post(mine, [this] { op.complete({}, 7); });

    poll(mine);
    BOOST_TEST(result.pending()); // the limit may still decide
    BOOST_TEST(!mine.stopped());  // so run() does not return
    poll(timers);
    poll(mine);

    BOOST_TEST(result.ended_with({}, 7));
    poll(mine);
    BOOST_TEST(mine.stopped());
    BOOST_TEST(timers.stopped());
}

BOOST_FIXTURE_TEST_CASE(
    P9_a_result_that_is_stored_while_its_limit_travels_keeps_its_context_at_work, two_contexts) {
    poll(timers); // hands over
    BOOST_TEST(timers.stopped());

    op.complete({}, 7);
    BOOST_TEST(result.pending());
    poll(mine);

    BOOST_TEST(result.ended_with({}, 7));
    poll(mine);
    BOOST_TEST(mine.stopped());
}

BOOST_AUTO_TEST_CASE(
    P9_a_result_that_is_stored_in_the_initiating_function_keeps_its_context_at_work) {
    asio::io_context context;
    asio::io_context elsewhere;
    manual_timer timer(context);
    operation op(elsewhere.get_executor());
    outcome result;
    op.at_start = [&] { op.complete({}, 7); };

    op.async_run(
        pawl::timeout(timer, 1s, asio::bind_executor(elsewhere.get_executor(), record(result))));
    BOOST_TEST(result.pending());
    elsewhere.run(); // returns when nothing is left, including the handler

    BOOST_TEST(result.ended_with({}, 7));
    poll(context);
    BOOST_TEST(context.stopped());
}
