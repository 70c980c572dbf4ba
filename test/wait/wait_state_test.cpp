// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   One wait: its state word, transition by transition, and its handler with allocator, executor
//   and cancellation slot. A arbiter that records its calls plays the shard.
//
// Model
//   Where forbidden transitions are tested, PAWL_ASSERT counts instead of ending the program.

#include <cstdio>
#include <cstdlib>

namespace {
bool counts_violations = false;
int violations = 0;
void note_violation(const char* what) noexcept {
    ++violations;
    if (!counts_violations) {
        std::fprintf(stderr, "Assertion `%s' failed\n", what);
        std::abort();
    }
}
} // namespace
#define PAWL_ASSERT(...) ((__VA_ARGS__) ? void() : note_violation(#__VA_ARGS__))

#define BOOST_TEST_MODULE wait
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <pawl/detail/limit/limited_operation.hpp>
#include <pawl/detail/wait/timer_core.hpp>
#include <pawl/detail/wait/wait_handler.hpp>
#include <pawl/detail/wait/wait_operation.hpp>
#include <pawl/detail/wait/wait_state.hpp>

#include "../support/archetypes.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>

#include <array>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace pawl::detail {
std::ostream& operator<<(std::ostream& out, wait_phase p) {
    constexpr const char* names[] = {"idle", "armed", "due", "cancelled", "started"};
    return out << names[static_cast<int>(p)];
}
} // namespace pawl::detail

namespace {

using namespace pawl::detail;
using namespace pawl_test;

// ---- the state word -----------------------------------------------------------------------------

/// A state and a legal way to reach it.
struct place {
    const char* name;
    wait_phase phase;
    bool carried;
    void (*go)(wait_state&);
};

std::ostream& operator<<(std::ostream& out, const place& p) { return out << p.name; }

const std::array<place, 9> places{{
    {"idle", wait_phase::idle, false, [](wait_state&) {}},
    {"armed", wait_phase::armed, false, [](wait_state& s) { s.arm(); }},
    {"due", wait_phase::due, true,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
     }},
    {"pulled back", wait_phase::armed, true,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
         s.pull_back();
     }},
    {"due again", wait_phase::due, true,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
         s.pull_back();
         (void)s.fall_due();
     }},
    {"parked", wait_phase::armed, false,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
         s.pull_back();
         (void)s.arrive();
         s.park();
     }},
    {"cancelled", wait_phase::cancelled, true,
     [](wait_state& s) {
         s.arm();
         (void)s.cancel();
     }},
    {"started", wait_phase::started, false,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
         (void)s.arrive();
     }},
    {"disarmed when due", wait_phase::idle, true,
     [](wait_state& s) {
         s.arm();
         (void)s.fall_due();
         s.disarm();
     }},
}};

wait_state at(const place& p) {
    wait_state s;
    p.go(s);
    BOOST_REQUIRE_EQUAL(s.phase(), p.phase);
    BOOST_REQUIRE_EQUAL(s.carried(), p.carried);
    return s;
}

/// Whether the transition passes its assertions.
template <typename Move>
bool legal(const place& from, Move move) {
    wait_state s = at(from);
    violations = 0;
    counts_violations = true;
    move(s);
    counts_violations = false;
    return violations == 0;
}

} // namespace

BOOST_AUTO_TEST_SUITE(state)

BOOST_DATA_TEST_CASE(no_move_but_those_in_the_table_is_possible_from, places, from) {
    const bool armed = from.phase == wait_phase::armed;
    const bool due = from.phase == wait_phase::due;
    const bool cancelled = from.phase == wait_phase::cancelled;

    const bool idle = from.phase == wait_phase::idle;

    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { s.arm(); }), !armed && !due);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { (void)s.fall_due(); }), armed);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { s.pull_back(); }), due);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { (void)s.cancel(); }), armed || due);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { (void)s.arrive(); }),
                      due || cancelled || ((armed || idle) && from.carried));
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { s.park(); }),
                      (armed || idle) && from.carried);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { s.disarm(); }), armed || due);
    BOOST_CHECK_EQUAL(legal(from, [](wait_state& s) { (void)s.condemn(); }), !armed && !due);
}

// The wait of an alarm: what was started begins once, unless the alarm was armed again or has gone.
BOOST_DATA_TEST_CASE(only_a_started_wait_begins_and_it_does_so_once, places, from) {
    wait_state s = at(from);
    wait_state gone = s;
    const bool started = from.phase == wait_phase::started;

    BOOST_CHECK_EQUAL(s.begin(), started);
    BOOST_CHECK(!s.begin());
    BOOST_CHECK_EQUAL(s.phase(), started ? wait_phase::idle : from.phase);
    if (gone.pending())
        gone.disarm();
    BOOST_CHECK_EQUAL(gone.condemn(), from.carried);
    BOOST_CHECK_EQUAL(gone.phase(), from.carried ? wait_phase::cancelled : wait_phase::idle);
    BOOST_CHECK(!gone.begin());
}

// One-carrier invariant: a wait has at most one carrier, so falling due or being cancelled requests
// an entry in the due queue only if there is none.
BOOST_DATA_TEST_CASE(a_carrier_is_made_only_if_none_is_left, places, from) {
    wait_state s = at(from);
    if (!s.pending())
        return;

    if (s.phase() == wait_phase::armed) {
        wait_state falling = s;
        BOOST_CHECK_EQUAL(falling.fall_due(), !from.carried);
        BOOST_CHECK(falling.carried());
        BOOST_CHECK_EQUAL(falling.phase(), wait_phase::due);
    }
    BOOST_CHECK_EQUAL(s.cancel(), !from.carried);
    BOOST_CHECK(s.carried());
    BOOST_CHECK_EQUAL(s.phase(), wait_phase::cancelled);
}

// Carrier-ownership invariant: only a wait without a carrier can be withdrawn; otherwise nothing
// changes.
BOOST_DATA_TEST_CASE(a_wait_is_withdrawn_if_nobody_is_on_the_way_to_run_it, places, from) {
    wait_state s = at(from);
    const bool can_be = from.phase == wait_phase::armed && !from.carried;

    BOOST_CHECK_EQUAL(s.withdraw(), can_be);

    BOOST_CHECK_EQUAL(s.phase(), can_be ? wait_phase::idle : from.phase);
    BOOST_CHECK_EQUAL(s.carried(), from.carried);
}

// Carrier-ownership invariant: from the arrival until park() the carrier of a pulled back wait
// still counts, so no other thread frees the wait or makes a second carrier.
BOOST_AUTO_TEST_CASE(a_pulled_back_wait_is_pinned_until_its_carrier_has_parked) {
    wait_state s = at(places[3]);

    BOOST_CHECK(!s.arrive());

    BOOST_CHECK_EQUAL(s.phase(), wait_phase::armed);
    BOOST_CHECK(s.carried());
    s.park();
    BOOST_CHECK(!s.carried());
    BOOST_CHECK(s.fall_due());
}

// Between the arrival and park() the wait falls due again: the same carrier must complete it.
BOOST_AUTO_TEST_CASE(a_wait_that_falls_due_while_its_carrier_parks_is_run_by_that_carrier) {
    wait_state s = at(places[3]);
    BOOST_REQUIRE(!s.arrive());

    BOOST_CHECK(!s.fall_due());

    BOOST_CHECK(s.arrive());
    BOOST_CHECK_EQUAL(s.phase(), wait_phase::started);
}

// Finality invariant, P4: until the carrier arrives, cancel wins over expiry.
BOOST_AUTO_TEST_CASE(P4_a_due_wait_can_be_cancelled_and_a_started_one_cannot) {
    wait_state due = at(places[2]);
    wait_state started = at(places[7]);

    BOOST_CHECK(due.pending());
    BOOST_CHECK(!due.cancel());
    BOOST_CHECK(due.arrive());

    BOOST_CHECK(!started.pending());
    BOOST_CHECK_EQUAL(due.phase(), wait_phase::started);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the handler --------------------------------------------------------------------------------

namespace {

/// Plays the shard for one wait at a time.
struct scripted_arbiter final : wait_arbiter {
    const boost::asio::execution_context& context() const noexcept override { return home; }
    bool arrive(wait_operation& op) noexcept override {
        ++arrivals;
        if (pulled_back)
            return false;
        end(op);
        return true;
    }
    bool arrive_or_park(wait_operation& op) noexcept override {
        ++parkings;
        const bool owned = due_again || !pulled_back;
        if (owned)
            end(op);
        return owned;
    }
    void abandon(wait_operation& op) noexcept override {
        ++abandoned;
        if (pulled_back)
            return;
        end(op);
        op.destroy();
    }
    void cancel(slot_link& link) override {
        ++emissions;
        last = link.operation();
    }
    void forget(slot_link& link) noexcept override {
        ++forgotten;
        if (link.operation())
            link.unlink();
    }

    static void end(wait_operation& op) noexcept {
        if (op.slot())
            op.slot()->unlink();
    }

    boost::asio::execution_context home;
    bool pulled_back = false;
    bool due_again = false;
    int arrivals = 0;
    int parkings = 0;
    int abandoned = 0;
    int emissions = 0;
    int forgotten = 0;
    wait_operation* last = nullptr;
};

template <typename Handler, typename Executor = native_executor>
wait_operation& make_wait(wait_arbiter& arbiter, Handler&& h, const Executor& ex = {}) {
    return wait_handler<std::decay_t<Handler>, Executor>::make(std::forward<Handler>(h), ex,
                                                               arbiter);
}

/// A handler that throws when it is moved for the `fuse`-th time.
struct burning_handler {
    using allocator_type = counting_allocator<void>;

    burning_handler(int& f, handler_log& l, allocation_log& m) : fuse(&f), log(&l), memory(&m) {
        ++log->live;
    }
    burning_handler(burning_handler&& other)
        : fuse(other.fuse), log(other.log), memory(other.memory) {
        if (--*fuse == 0)
            throw std::runtime_error("burnt");
        ++log->live;
    }
    ~burning_handler() { --log->live; }
    void operator()(error_code) { ++log->calls; }
    allocator_type get_allocator() const noexcept { return allocator_type(*memory); }

    int* fuse;
    handler_log* log;
    allocation_log* memory;
};

using manual_executor = manual_context::executor_type;

} // namespace

BOOST_AUTO_TEST_SUITE(handler)

BOOST_AUTO_TEST_CASE(C26_a_handler_that_throws_when_it_is_stored_leaves_nothing_behind) {
    scripted_arbiter arbiter;
    allocation_log memory;
    handler_log log;
    int fuse = 1;
    {
        burning_handler handler(fuse, log, memory);

        BOOST_CHECK_THROW((void)make_wait(arbiter, std::move(handler)), std::runtime_error);
    }

    BOOST_CHECK_EQUAL(memory.allocations, 1u);
    BOOST_CHECK_EQUAL(memory.live(), 0u);
    BOOST_CHECK_EQUAL(log.live, 0);
}

BOOST_AUTO_TEST_CASE(
    C34_a_handler_that_throws_when_it_is_fetched_frees_its_wait_and_is_not_called) {
    scripted_arbiter arbiter;
    allocation_log memory;
    handler_log log;
    int fuse = 2;
    wait_operation& op = make_wait(arbiter, burning_handler(fuse, log, memory));

    BOOST_CHECK_THROW(op.complete(), std::runtime_error);

    BOOST_CHECK_EQUAL(memory.live(), 0u);
    BOOST_CHECK_EQUAL(log.live, 0);
    BOOST_CHECK_EQUAL(log.calls, 0);
}

// ---- hand-over ----

BOOST_AUTO_TEST_CASE(C29_work_of_the_executor_is_held_from_the_start_to_the_hand_over) {
    // The context is destroyed first: it still holds a carrier, and the carrier its handler.
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    wait_operation& op = make_wait(arbiter, counting_handler(log), context.get_executor());
    BOOST_CHECK_EQUAL(context.work(), 1);

    op.hand_over(arbiter);

    BOOST_CHECK_EQUAL(context.work(), 0);
    BOOST_CHECK_EQUAL(context.size(), 1u);
    BOOST_CHECK_EQUAL(log.calls, 0);
}

BOOST_AUTO_TEST_CASE(P4_a_wait_starts_where_its_carrier_arrives_and_not_where_it_is_handed_over) {
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    wait_operation& op = make_wait(arbiter, counting_handler(log), context.get_executor());
    op.hand_over(arbiter);
    BOOST_CHECK_EQUAL(arbiter.arrivals, 0);

    op.set_result(asio::error::operation_aborted); // cancelled in flight
    context.poll();

    BOOST_CHECK_EQUAL(arbiter.arrivals, 1);
    BOOST_CHECK_EQUAL(log.calls, 1);
    BOOST_CHECK_EQUAL(log.last, error_code(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(a_wait_that_was_pulled_back_on_its_way_has_work_again_and_is_not_called) {
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    wait_operation& op = make_wait(arbiter, counting_handler(log), context.get_executor());
    op.hand_over(arbiter);
    arbiter.pulled_back = true;

    context.poll();

    BOOST_CHECK_EQUAL(arbiter.parkings, 1);
    BOOST_CHECK_EQUAL(log.calls, 0);
    BOOST_CHECK_EQUAL(context.work(), 1);
    arbiter.pulled_back = false;
    op.hand_over(arbiter);
    context.poll();
    BOOST_CHECK_EQUAL(log.calls, 1);
    BOOST_CHECK_EQUAL(context.work(), 0);
}

namespace {
/// Can be asked for tracked work a limited number of times.
struct tiring_executor : manual_executor {
    tiring_executor(const manual_executor& ex, int& f) : manual_executor(ex), fuse(&f) {}

    using manual_executor::require;
    manual_executor require(asio::execution::outstanding_work_t::tracked_t t) const {
        if (--*fuse < 0)
            throw std::runtime_error("no more work");
        return manual_executor::require(t);
    }
    bool operator==(const tiring_executor&) const noexcept = default;

    int* fuse;
};
} // namespace

BOOST_AUTO_TEST_CASE(a_wait_that_was_pulled_back_goes_on_although_work_for_it_is_refused) {
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    int fuse = 1;
    wait_operation& op =
        make_wait(arbiter, counting_handler(log), tiring_executor(context.get_executor(), fuse));
    op.hand_over(arbiter);
    arbiter.pulled_back = true;

    BOOST_CHECK_THROW(context.poll(), std::runtime_error);

    BOOST_CHECK_EQUAL(arbiter.parkings, 1);
    BOOST_CHECK_EQUAL(arbiter.abandoned, 0);
    BOOST_CHECK_EQUAL(log.calls, 0);
    BOOST_CHECK_EQUAL(context.work(), 0);
    arbiter.pulled_back = false;
    op.hand_over(arbiter);
    context.poll();
    BOOST_CHECK_EQUAL(log.calls, 1);
    BOOST_CHECK_EQUAL(context.work(), 0);
}

BOOST_AUTO_TEST_CASE(P3_a_wait_that_is_due_again_completes_although_work_for_it_is_refused) {
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    int fuse = 1;
    make_wait(arbiter, counting_handler(log), tiring_executor(context.get_executor(), fuse))
        .hand_over(arbiter);
    arbiter.pulled_back = arbiter.due_again = true;

    BOOST_CHECK_THROW(context.poll(), std::runtime_error);

    BOOST_CHECK_EQUAL(log.calls, 1);
    BOOST_CHECK_EQUAL(log.live, 0);
    BOOST_CHECK_EQUAL(context.work(), 0);
}

BOOST_AUTO_TEST_CASE(a_wait_that_falls_due_while_its_carrier_parks_is_completed_by_it) {
    scripted_arbiter arbiter;
    handler_log log;
    manual_context context;
    wait_operation& op = make_wait(arbiter, counting_handler(log), context.get_executor());
    op.hand_over(arbiter);
    arbiter.pulled_back = arbiter.due_again = true;

    context.poll();

    BOOST_CHECK_EQUAL(log.calls, 1);
    BOOST_CHECK_EQUAL(log.live, 0);
    BOOST_CHECK_EQUAL(context.work(), 0);
}

BOOST_AUTO_TEST_CASE(P3_a_carrier_that_is_destroyed_before_it_arrives_has_its_wait_destroyed) {
    scripted_arbiter arbiter;
    handler_log log;
    allocation_log memory;
    {
        manual_context context;
        wait_operation& op = make_wait(
            arbiter, asio::bind_allocator(counting_allocator<void>(memory), counting_handler(log)),
            context.get_executor());
        op.hand_over(arbiter);
    }

    BOOST_CHECK_EQUAL(arbiter.abandoned, 1);
    BOOST_CHECK_EQUAL(log.calls, 0);
    BOOST_CHECK_EQUAL(log.live, 0);
    BOOST_CHECK_EQUAL(memory.live(), 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- part of a larger object ----------------------------------------------------------------------

namespace {
/// Notes how its wait ends.
struct holder : embedded_wait<holder> {
    holder(bool n, const manual_executor& ex) : native(n), executor(ex) {}
    void wait_ended(const error_code& ec) {
        ++ended;
        last = ec;
    }
    void wait_destroyed() { ++destroyed; }
    const manual_executor& wait_executor() const noexcept { return executor; }
    bool is_native(const manual_executor&, const wait_arbiter&) const noexcept { return native; }
    std::allocator<void> carrier_allocator() const noexcept { return {}; }

    bool native;
    manual_executor executor;
    int ended = 0;
    int destroyed = 0;
    error_code last;
};
} // namespace

BOOST_AUTO_TEST_SUITE(embedded)

BOOST_AUTO_TEST_CASE(an_embedded_wait_ends_where_it_is_handed_over_if_that_is_native) {
    scripted_arbiter arbiter;
    manual_context context;
    holder h(true, context.get_executor());
    h.set_result(asio::error::operation_aborted);
    h.hand_over(arbiter);
    BOOST_CHECK_EQUAL(h.ended, 1);
    BOOST_CHECK_EQUAL(h.last, error_code(asio::error::operation_aborted));
    BOOST_CHECK_EQUAL(context.size(), 0u);
}

BOOST_AUTO_TEST_CASE(an_embedded_wait_that_was_pulled_back_does_not_end) {
    for (const bool native : {true, false}) {
        scripted_arbiter arbiter;
        arbiter.pulled_back = true;
        manual_context context;
        holder h(native, context.get_executor());
        h.hand_over(arbiter);
        context.poll();
        BOOST_CHECK_EQUAL(arbiter.parkings, 1);
        BOOST_CHECK_EQUAL(h.ended + h.destroyed, 0);
    }
}

BOOST_AUTO_TEST_CASE(an_embedded_wait_whose_carrier_is_destroyed_is_told_so) {
    scripted_arbiter arbiter;
    auto context = std::make_unique<manual_context>();
    holder h(false, context->get_executor());
    h.hand_over(arbiter);
    context.reset();
    BOOST_CHECK_EQUAL(h.ended, 0);
    BOOST_CHECK_EQUAL(h.destroyed, 1);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the cancellation slot ------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(slot)

BOOST_AUTO_TEST_CASE(C31_a_signal_may_be_destroyed_before_its_wait_ends) {
    scripted_arbiter arbiter;
    handler_log log;
    std::optional<asio::cancellation_signal> signal(std::in_place);
    wait_operation& op =
        make_wait(arbiter, asio::bind_cancellation_slot(signal->slot(), counting_handler(log)));
    BOOST_REQUIRE(op.slot());

    op.slot()->set_started();

    signal.reset();

    BOOST_CHECK_EQUAL(arbiter.forgotten, 1);
    BOOST_CHECK(!op.slot());
    op.complete();
    BOOST_CHECK_EQUAL(log.calls, 1);
}

BOOST_AUTO_TEST_CASE(C31_a_slot_that_gets_another_handler_forgets_the_first_wait) {
    scripted_arbiter arbiter;
    handler_log log;
    asio::cancellation_signal signal;
    wait_operation& first =
        make_wait(arbiter, asio::bind_cancellation_slot(signal.slot(), counting_handler(log)));
    wait_operation& second =
        make_wait(arbiter, asio::bind_cancellation_slot(signal.slot(), counting_handler(log)));

    second.slot()->set_started();

    signal.emit(asio::cancellation_type::terminal);

    BOOST_CHECK(!first.slot());
    BOOST_CHECK_EQUAL(arbiter.last, &second);
    first.destroy();
    scripted_arbiter::end(second);
    second.destroy();
}

BOOST_AUTO_TEST_SUITE_END()
