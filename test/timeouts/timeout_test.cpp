// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The results of pawl::timeout: in all six orders of {the operation completes, its limit is due,
//   it is cancelled from outside}, in more detail, and for each kind of signature.

#define BOOST_TEST_MODULE timeout
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/compact_timer.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/experimental/channel_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace {

using namespace timeouts;
namespace data = boost::unit_test::data;
using obedience = operation::obedience;

// ---- the kinds of operations ------------------------------------------------------------------------

/// An operation with a certain signature, completed with success or as cancelled.
struct says_error_code {
    using type = operation;
    static constexpr bool prefixed = false;
    static void succeed(type& op) { op.complete({}, 7); }
    static void abort(type& op) { op.complete(aborted, 3); }
};
struct says_exception {
    using type = scripted_operation<std::exception_ptr, int>;
    static constexpr bool prefixed = false;
    static void succeed(type& op) { op.complete(nullptr, 7); }
    static void abort(type& op) { op.complete(std::make_exception_ptr(system_error(aborted)), 3); }
};
struct says_neither {
    using type = scripted_operation<int>;
    static constexpr bool prefixed = true;
    static void succeed(type& op) { op.complete(7); }
    static void abort(type& op) { op.complete(3); }
};
struct says_channel_error {
    using type = operation;
    static constexpr bool prefixed = false;
    static void succeed(type& op) { op.complete({}, 7); }
    static void abort(type& op) {
        op.complete(make_error_code(asio::experimental::error::channel_cancelled), 3);
    }
};

// ---- the kinds of limits ----------------------------------------------------------------------------

/// timeout() with the caller's timer.
template <class Timer>
struct callers {
    explicit callers(asio::io_context& context) : timer(context) {}
    template <class Token>
    auto limit(manual_clock::duration d, Token&& token) {
        return pawl::timeout(timer, d, std::forward<Token>(token));
    }
    Timer timer;
};
using callers_timer = callers<manual_timer>;
using callers_compact_timer = callers<pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<manual_clock>>>>;

/// timeout_at() with the operation's own timer.
struct own_timer {
    explicit own_timer(asio::io_context&) {}
    template <class Token>
    auto limit(manual_clock::duration d, Token&& token) {
        return pawl::timeout_at(manual_clock::now() + d, std::forward<Token>(token));
    }
};

/// On a strand, so every end of the limit is handed over.
template <class Limit>
struct on_a_strand : Limit {
    explicit on_a_strand(asio::io_context& context)
        : Limit(context), strand(asio::make_strand(context)) {}
    template <class Token>
    auto limit(manual_clock::duration d, Token&& token) {
        return Limit::limit(d, asio::bind_executor(strand, std::forward<Token>(token)));
    }
    asio::strand<asio::io_context::executor_type> strand;
};

using limits =
    std::tuple<callers_timer, own_timer, on_a_strand<callers_timer>, on_a_strand<own_timer>>;
using limits_and_compact =
    std::tuple<callers_timer, callers_compact_timer, own_timer, on_a_strand<own_timer>>;

/// An operation, for a limit that the test adds.
struct with_operation {
    asio::io_context context;
    operation op{context.get_executor()};
    asio::cancellation_signal outer;
    outcome o;
};

template <class Limit, class Kind>
struct rig {
    asio::io_context context;
    Limit limit{context};
    typename Kind::type op{context.get_executor()};
    asio::cancellation_signal outer;
    outcome o;

    void start(manual_clock::duration d = 10s) {
        op.async_run(limit.limit(d, asio::bind_cancellation_slot(outer.slot(), record(o))));
    }
    ~rig() {
        BOOST_TEST(o.calls == 1);
        BOOST_TEST(!op.pending());
        context.restart();
        context.poll();
        BOOST_TEST(context.stopped()); // P9: no limit is left behind
    }
};

// ---- the six orders ---------------------------------------------------------------------------------

/// Plays `order`, in which O means that the operation completes, L that its limit is due, C that it
/// is cancelled from outside.
/// @param obeys whether a cancelled operation reports the cancellation.
template <class Limit, class Kind>
void expect(const std::string& order, bool obeys, const error_code& code, int value) {
    BOOST_TEST_CONTEXT(order << (obeys ? "" : ", with a result all the same")) {
        rig<Limit, Kind> r;
        r.start();
        std::size_t signals = 0;
        for (const char event : order) {
            switch (event) {
            case 'O':
                signals = r.op.signals().size();
                if (obeys && signals != 0)
                    Kind::abort(r.op);
                else
                    Kind::succeed(r.op);
                break;
            case 'L':
                pass(r.context, 10s);
                break;
            default:
                r.outer.emit(cancellation_type::terminal);
            }
            poll(r.context);
        }
        BOOST_TEST(r.o.ended_with(code, value), r.o);
        BOOST_TEST(signals == order.find('O')); // each one of them is forwarded
        BOOST_TEST(r.op.signals().size() == signals);
    }
}

template <class Limit, class Kind>
void expect_six_orders() {
    constexpr int as_cancelled = 3;
    constexpr int result = 7;
    // A signature without an error cannot report an early end: the limit itself decides.
    const error_code kept = Kind::prefixed ? timed_out : error_code();
    const error_code code_of_abort = [] {
        if constexpr (Kind::prefixed)
            return error_code(); // its results are unchanged
        else if constexpr (std::is_same_v<Kind, says_channel_error>)
            return make_error_code(asio::experimental::error::channel_cancelled);
        else
            return aborted;
    }();

    expect<Limit, Kind>("OLC", true, {}, result);
    expect<Limit, Kind>("OCL", true, {}, result);
    expect<Limit, Kind>("LOC", true, timed_out, as_cancelled);
    expect<Limit, Kind>("LCO", true, timed_out, as_cancelled);
    expect<Limit, Kind>("COL", true, code_of_abort, as_cancelled);
    expect<Limit, Kind>("CLO", true, code_of_abort, as_cancelled);

    expect<Limit, Kind>("LOC", false, kept, result);
    expect<Limit, Kind>("LCO", false, kept, result);
    expect<Limit, Kind>("COL", false, {}, result);
    expect<Limit, Kind>("CLO", false, {}, result);
}

template <class Limit>
void expect_six_orders_for_each_signature() {
    BOOST_TEST_CONTEXT("error_code") { expect_six_orders<Limit, says_error_code>(); }
    BOOST_TEST_CONTEXT("exception_ptr") { expect_six_orders<Limit, says_exception>(); }
    BOOST_TEST_CONTEXT("neither") { expect_six_orders<Limit, says_neither>(); }
    BOOST_TEST_CONTEXT("channel error") { expect_six_orders<Limit, says_channel_error>(); }
}

BOOST_AUTO_TEST_CASE(the_six_orders_with_a_timer_of_the_callers) {
    expect_six_orders_for_each_signature<callers_timer>();
}
BOOST_AUTO_TEST_CASE(the_six_orders_with_a_timer_on_another_backend) {
    expect_six_orders<callers_compact_timer, says_error_code>();
}
BOOST_AUTO_TEST_CASE(the_six_orders_with_a_timer_of_the_operations_own) {
    expect_six_orders_for_each_signature<own_timer>();
}
BOOST_AUTO_TEST_CASE(the_six_orders_on_a_strand) {
    expect_six_orders<on_a_strand<callers_timer>, says_error_code>();
    expect_six_orders<on_a_strand<own_timer>, says_error_code>();
}

// ---- in more detail ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(
    an_operation_that_completes_while_its_due_limit_is_queued_keeps_its_result, Limit, limits) {
    rig<Limit, says_error_code> r;
    r.start();
    manual_clock::advance(r.context, 10s); // due, and queued
    r.op.complete({}, 7);
    poll(r.context);
    BOOST_TEST(r.o.ended_with({}, 7), r.o);
    BOOST_TEST(r.op.signals().empty());
}

BOOST_FIXTURE_TEST_CASE(an_operation_that_completes_while_its_limit_travels_keeps_its_result,
                        with_operation) {
    asio::io_context there;
    op.async_run(
        pawl::timeout_at(manual_clock::now() + 10s, asio::bind_executor(there, record(o))));
    pass(context, 10s); // handed over
    op.complete({}, 7);
    BOOST_TEST(o.pending());
    BOOST_TEST(op.signals().empty());
    poll(there);
    BOOST_TEST(o.ended_with({}, 7), o);
    BOOST_TEST(op.signals().empty());
    poll(context);
    BOOST_TEST(context.stopped());
    BOOST_TEST(there.stopped());
}

// Only the wait's carrier is left of the timer's side then.
BOOST_AUTO_TEST_CASE(the_limit_of_a_context_that_is_gone_may_still_travel) {
    for (const auto how : {obedience::completes_in_the_signal, obedience::posts}) {
        asio::io_context there;
        std::optional<asio::io_context> here(std::in_place);
        std::optional<manual_timer> timer(*here);
        operation op(there.get_executor(), how, aborted, 3);
        outcome o;
        op.async_run(pawl::timeout(*timer, 10s, asio::bind_executor(there, record(o))));
        BOOST_TEST(pawl::expire_all(*here) == one);
        poll(*here); // handed over
        timer.reset();
        here.reset();
        poll(there);
        BOOST_TEST(o.ended_with(timed_out, 3), o);
    }
}

BOOST_AUTO_TEST_CASE(a_handler_may_wait_for_the_callback_of_its_due_limit_but_is_not_lost) {
    rig<on_a_strand<own_timer>, says_error_code> r;
    asio::post(r.limit.strand, [&] {
        r.start();
        manual_clock::advance(r.context, 10s);
        r.op.complete({}, 7);
    });
    poll(r.context);
    BOOST_TEST(r.o.ended_with({}, 7), r.o);
}

/// Aborts, or has a result nevertheless.
struct answer {
    obedience how;
    error_code code;
    friend std::ostream& operator<<(std::ostream& out, const answer& a) {
        return out << (a.how == obedience::posts ? "posts " : "completes ") << a.code.message();
    }
};
const auto answers = data::make({answer{obedience::completes_in_the_signal, aborted},
                                 answer{obedience::completes_in_the_signal, {}},
                                 answer{obedience::posts, aborted}, answer{obedience::posts, {}}});

BOOST_DATA_TEST_CASE(an_operation_that_answers_the_signal_of_its_limit_at_once, answers, a) {
    const error_code expected = a.code ? timed_out : error_code();
    const auto run = [&](auto use_limit) {
        asio::io_context context;
        operation op(context.get_executor(), a.how, a.code, 5);
        outcome o;
        use_limit(op, record(o));
        pass(context, 10s);
        BOOST_TEST(o.ended_with(expected, 5), o);
        poll(context);
        BOOST_TEST(context.stopped());
    };
    run([&](operation& op, recorder r) {
        op.async_run(pawl::timeout_at(manual_clock::now() + 10s, std::move(r)));
    });
    run([&](operation& op, recorder r) {
        op.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                      pawl::timeout_at(manual_clock::now() + 20s, std::move(r))));
    });
}

BOOST_DATA_TEST_CASE(an_operation_that_answers_the_callers_signal_at_once, answers, a) {
    asio::io_context context;
    operation op(context.get_executor(), a.how, a.code, 5);
    outcome o;
    asio::cancellation_signal outer;
    op.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                  asio::bind_cancellation_slot(outer.slot(), record(o))));
    outer.emit(cancellation_type::terminal);
    BOOST_TEST(o.calls == (a.how == obedience::posts ? 0 : 1)); // or within the emission
    poll(context);
    BOOST_TEST(o.ended_with(a.code, 5), o);
    BOOST_TEST(context.stopped());
    outer.emit(cancellation_type::terminal); // there is no listener
}

BOOST_AUTO_TEST_CASE(a_handler_that_owns_the_signal_may_be_invoked_within_it) {
    asio::io_context context;
    operation op(context.get_executor(), obedience::completes_in_the_signal, aborted, 5);
    auto outer = std::make_unique<asio::cancellation_signal>();
    asio::cancellation_signal& signal = *outer;
    bool called = false;
    op.async_run(
        pawl::timeout_at(manual_clock::now() + 10s,
                         asio::bind_cancellation_slot(
                             signal.slot(), [&called, keep = std::move(outer)](error_code ec, int) {
                                 called = ec == aborted;
                             })));
    signal.emit(cancellation_type::terminal);
    poll(context);
    BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(a_caller_that_cancels_within_the_signal_of_the_limit_comes_second) {
    rig<callers_timer, says_error_code> r;
    r.start();
    r.op.at_signal = [&] {
        if (r.op.signals().size() == 1)
            r.outer.emit(cancellation_type::total);
    };
    pass(r.context, 10s);
    BOOST_REQUIRE(r.op.signals().size() == 2u);
    BOOST_TEST((r.op.signals().back() == cancellation_type::total));
    r.op.complete(aborted, 3);
    BOOST_TEST(r.o.ended_with(timed_out, 3), r.o);
}

BOOST_AUTO_TEST_CASE(a_limit_that_falls_due_within_the_callers_signal_comes_second) {
    rig<own_timer, says_error_code> r;
    r.start();
    r.op.at_signal = [&] {
        if (r.op.signals().size() == 1)
            pass(r.context, 10s);
    };
    r.outer.emit(cancellation_type::terminal);
    BOOST_TEST(r.op.signals().size() == 2u);
    r.op.complete(aborted, 3);
    BOOST_TEST(r.o.ended_with(aborted, 3), r.o);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_inside_its_initiating_function) {
    const auto run = [](manual_clock::duration d) {
        rig<own_timer, says_error_code> r;
        r.op.at_start = [&] { r.op.complete({}, 7); };
        r.start(d);
        poll(r.context);
        BOOST_TEST(r.o.ended_with({}, 7), r.o);
    };
    run(10s);
    run(0s);
}

// The signal would otherwise be emitted while the operation connects to it.
BOOST_AUTO_TEST_CASE(a_limit_that_falls_due_inside_the_initiating_function_is_not_lost) {
    rig<own_timer, says_error_code> r;
    r.op.at_start = [&] { pass(r.context, 10s); };
    r.start();
    poll(r.context);
    BOOST_TEST(r.op.signals().size() == 1u);
    r.op.complete(aborted, 3);
    BOOST_TEST(r.o.ended_with(timed_out, 3), r.o);
}

BOOST_FIXTURE_TEST_CASE(
    P10_a_signal_that_is_due_inside_the_initiating_function_goes_with_its_context, with_operation) {
    std::optional<asio::io_context> there(std::in_place);
    const auto handler = std::make_shared<int>();
    op.at_start = [&] {
        pass(context, 10s);
        poll(*there);
    };
    op.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                  asio::bind_executor(*there, asio::consign(record(o), handler))));
    op.abandon();
    BOOST_TEST(handler.use_count() == 2);
    there.reset();
    BOOST_TEST(handler.use_count() == 1);
    BOOST_TEST(op.signals().empty());
    BOOST_TEST(o.pending());
}

BOOST_FIXTURE_TEST_CASE(an_initiating_function_that_throws_may_keep_its_operation, with_operation) {
    struct bad {};
    op.at_start = [] { throw bad(); };
    BOOST_CHECK_THROW(op.async_run(pawl::timeout_at(manual_clock::now() + 10s, record(o))), bad);
    op.complete({}, 7);
    poll(context);
    BOOST_TEST(o.ended_with({}, 7), o);
}

BOOST_FIXTURE_TEST_CASE(a_signal_may_be_destroyed_before_the_operation_whose_slot_it_had,
                        with_operation) {
    std::optional<asio::cancellation_signal> caller(std::in_place);
    op.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                  asio::bind_cancellation_slot(caller->slot(), record(o))));
    caller.reset();
    op.complete({}, 7);
    poll(context);
    BOOST_TEST(o.ended_with({}, 7), o);
}

// ---- values that pass unchanged ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(other_errors_after_the_limit_pass_unchanged) {
    for (const error_code& ec :
         {error_code(asio::error::connection_reset), error_code(asio::error::eof),
          error_code(asio::error::timed_out), error_code()}) {
        rig<own_timer, says_error_code> r;
        r.start();
        pass(r.context, 10s);
        r.op.complete(ec, 9);
        BOOST_TEST(r.o.ended_with(ec, 9), r.o);
    }
}

struct my_exception : std::runtime_error {
    using std::runtime_error::runtime_error;
};

BOOST_AUTO_TEST_CASE(exceptions_pass_unchanged_and_only_those_of_a_cancellation_are_replaced) {
    const auto told = [](const std::exception_ptr& thrown) {
        asio::io_context context;
        scripted_operation<std::exception_ptr> op(context.get_executor());
        std::exception_ptr got;
        op.async_run(pawl::timeout_at(manual_clock::now() + 1s,
                                      [&](std::exception_ptr e) { got = std::move(e); }));
        pass(context, 1s);
        op.complete(thrown);
        return got;
    };
    const auto mine = std::make_exception_ptr(my_exception("as it was"));
    BOOST_TEST((told(mine) == mine)); // the same object
    BOOST_TEST((told(nullptr) == nullptr));
    const auto other = std::make_exception_ptr(system_error(asio::error::eof));
    BOOST_TEST((told(other) == other));
    const auto number = std::make_exception_ptr(1);
    BOOST_TEST((told(number) == number));
    BOOST_TEST(code_in(told(std::make_exception_ptr(system_error(aborted)))) == timed_out);
    BOOST_TEST(code_in(told(std::make_exception_ptr(std::system_error(
                   std::make_error_code(std::errc::operation_canceled))))) == timed_out);
}

BOOST_AUTO_TEST_CASE(the_error_is_no_cancellation_and_compares_equal_to_the_generic_condition) {
    BOOST_TEST(timed_out != aborted);
    BOOST_TEST(timed_out != error_code(asio::error::timed_out)); // the network's error
    BOOST_TEST((timed_out == boost::system::errc::timed_out));
    BOOST_TEST((std::error_code(timed_out) == std::errc::timed_out));
    BOOST_TEST((error_code(pawl::error::shutting_down) != boost::system::errc::timed_out));
    BOOST_TEST(timed_out.message() == "The operation timed out");
    BOOST_TEST(error_code(pawl::error::shutting_down).message() == "The server is shutting down");
    BOOST_TEST(timed_out.category().name() == std::string("pawl"));
    BOOST_TEST(pawl::error_category().message(77) == "Unknown error 77");
    std::ostringstream printed;
    printed << pawl::error::timed_out;
    BOOST_TEST(printed.str() == "pawl:1");
}

/// Completes with values that can be converted to the types of its signature, like
/// self.complete(error::eof, 0).
struct loose_initiation {
    using executor_type = asio::io_context::executor_type;
    executor_type ex;
    int how;
    const outcome& told;
    executor_type get_executor() const noexcept { return ex; }
    template <class Handler>
    void operator()(Handler&& handler) const {
        asio::post(ex, [h = std::forward<Handler>(handler), n = how, &o = told]() mutable {
            if (n == 0)
                std::move(h)(asio::error::eof, short(3));
            else if (n == 1)
                std::move(h)(asio::error::operation_aborted, 3u);
            else
                std::move(h)(error_code(), 3);
            BOOST_TEST(o.calls == 1, "not invoked within the call");
        });
    }
};

BOOST_AUTO_TEST_CASE(an_operation_may_complete_with_what_converts_to_its_signature) {
    const auto told = [](int how) {
        asio::io_context context;
        outcome o;
        auto token = pawl::timeout_at(manual_clock::now() + 1s, record(o));
        asio::async_initiate<decltype(token), void(error_code, int)>(
            loose_initiation{context.get_executor(), how, o}, token);
        poll(context);
        return o;
    };
    BOOST_TEST(told(0).ended_with(asio::error::eof, 3));
    BOOST_TEST(told(1).ended_with(aborted, 3));
    BOOST_TEST(told(2).ended_with({}, 3));
}

// ---- the caller's timer -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rearm_moves_the_limit_of_the_running_operation) {
    rig<callers_timer, says_error_code> r;
    r.start();
    pass(r.context, 9s);
    BOOST_TEST(r.limit.timer.rearm_after(10s) == one);
    pass(r.context, 9s);
    BOOST_TEST(r.op.signals().empty());
    BOOST_TEST(r.limit.timer.rearm_after(500ms) == one);
    pass(r.context, 500ms);
    BOOST_TEST(r.op.signals().size() == 1u);
    r.op.complete(aborted, 3);
    BOOST_TEST(r.o.ended_with(timed_out, 3), r.o);
}

BOOST_AUTO_TEST_CASE(rearm_calls_back_a_limit_that_is_due) {
    const auto run = [](auto limit, bool completes) {
        rig<typename decltype(limit)::type, says_error_code> r;
        r.start();
        manual_clock::advance(r.context, 10s);
        BOOST_TEST(r.limit.timer.rearm_after(10s) == one);
        if (!completes) {
            poll(r.context);
            BOOST_TEST(r.op.signals().empty());
            pass(r.context, 10s);
            BOOST_TEST(r.op.signals().size() == 1u);
        }
        r.op.complete({}, 7); // or with the carrier of the limit in flight
        poll(r.context);
        BOOST_TEST(r.o.ended_with({}, 7), r.o);
    };
    for (const bool completes : {false, true}) {
        run(std::type_identity<callers_timer>(), completes);
        run(std::type_identity<callers_compact_timer>(), completes);
        run(std::type_identity<on_a_strand<callers_timer>>(), completes);
    }
}

BOOST_AUTO_TEST_CASE(cancel_of_the_callers_timer_lifts_the_limit) {
    const auto lifts = [](auto lift) {
        asio::io_context context;
        std::optional<manual_timer> timer(context);
        operation op(context.get_executor());
        outcome o;
        op.async_run(pawl::timeout(*timer, 10s, record(o)));
        lift(timer);
        poll(context);
        BOOST_TEST(!context.stopped()); // the operation is pending
        pass(context, 20s);
        BOOST_TEST(op.signals().empty());
        op.complete(aborted, 3);
        BOOST_TEST(o.ended_with(aborted, 3), o);
        poll(context);
        BOOST_TEST(context.stopped());
    };
    lifts([](auto& timer) { BOOST_TEST(timer->cancel() == one); });
    lifts([](auto& timer) { BOOST_TEST(timer->expires_after(1s) == one); });
    lifts([](auto& timer) { timer.reset(); });
}

BOOST_FIXTURE_TEST_CASE(an_operation_that_completes_right_after_its_limit_was_lifted,
                        with_operation) {
    std::optional<manual_timer> timer(context);
    op.async_run(pawl::timeout(*timer, 10s, record(o)));
    timer.reset(); // its wait is cancelled, and queued
    op.complete({}, 7);
    poll(context);
    BOOST_TEST(o.ended_with({}, 7), o);
}

BOOST_FIXTURE_TEST_CASE(the_limit_moves_with_the_callers_timer, with_operation) {
    for (const bool in_time : {true, false}) {
        o = {};
        std::optional<manual_timer> timer(context);
        op.async_run(pawl::timeout(*timer, 10s, record(o)));
        manual_timer elsewhere(std::move(*timer));
        timer.reset();
        if (!in_time)
            pass(context, 10s);
        op.complete(in_time ? error_code() : aborted, 3);
        BOOST_TEST(o.ended_with(in_time ? error_code() : timed_out, 3), o);
        poll(context);
    }
    BOOST_TEST(context.stopped());
}

BOOST_FIXTURE_TEST_CASE(one_timer_serves_one_operation_after_the_other, with_operation) {
    manual_timer timer(context);
    for (int i = 0; i < 100; ++i) {
        o = {};
        op.async_run(pawl::timeout(timer, 10s, record(o)));
        if (i % 3 == 0)
            pass(context, 10s);
        op.complete(i % 3 == 0 ? aborted : error_code(), i);
        BOOST_TEST(o.ended_with(i % 3 == 0 ? timed_out : error_code(), i), o);
    }
    BOOST_TEST(timer.cancel() == none);
}

BOOST_FIXTURE_TEST_CASE(a_ring_timer_keeps_a_limit_and_refuses_one_for_which_it_has_no_ring,
                        with_operation) {
    pawl::options rings;
    rings.rings.delays = {{1ms}, {1h}};
    pawl::make_timer_service<pawl::ring_timer>(context, rings);
    pawl::ring_timer timer(context);
    outcome first;
    op.async_run(pawl::timeout(timer, 1h, record(first)));
    op.complete({}, 7);
    BOOST_TEST(first.ended_with({}, 7), first);
    outcome second;
    op.async_run(pawl::timeout(timer, 1ms, record(second)));
    run_until(context, [&] { return !op.signals().empty(); });
    op.complete(aborted, 3);
    BOOST_TEST(second.ended_with(timed_out, 3), second);
    outcome third;
    BOOST_CHECK_THROW(op.async_run(pawl::timeout(timer, 7s, record(third))), std::invalid_argument);
    BOOST_CHECK_THROW(
        op.async_run(pawl::timeout_at(timer, std::chrono::steady_clock::now() + 7s, record(third))),
        std::invalid_argument);
    BOOST_TEST(!op.pending());
    BOOST_TEST(third.pending());
}

// An exception of the initiating function ends a coroutine that awaits the operation. This one does
// not.
BOOST_AUTO_TEST_CASE(a_coroutine_catches_that_a_ring_timer_has_no_ring_for_a_limit) {
    asio::io_context context;
    pawl::options o;
    o.rings.delays = {{1h}};
    pawl::make_timer_service<pawl::ring_timer>(context, o);
    pawl::ring_timer timer(context);
    int caught = 0;
    const auto work = []() -> asio::awaitable<void> { co_return; };
    const auto main = [&]() -> asio::awaitable<void> {
        pawl::steady_timer pause(context, 1ms);
        try {
            co_await pause.async_wait(pawl::timeout(timer, 7s, asio::use_awaitable));
        } catch (const std::invalid_argument&) {
            ++caught;
        }
        try {
            co_await pawl::timeout(timer, 7s, work());
        } catch (const std::invalid_argument&) {
            ++caught;
        }
        co_await pause.async_wait(pawl::timeout(timer, 1h, asio::use_awaitable));
    };
    bool ended = false;
    asio::co_spawn(context, main, [&](const std::exception_ptr& e) { ended = !e; });
    context.run();
    BOOST_TEST(caught == 2);
    BOOST_TEST(ended);
}

// ---- expire_all -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(expire_all_cancels_the_operations_and_says_what_it_was_given, Limit,
                              limits) {
    const auto told = [](const error_code& given, const error_code& said) {
        rig<Limit, says_error_code> r;
        r.start();
        BOOST_TEST(pawl::expire_all(r.context, given) == one);
        poll(r.context);
        BOOST_TEST(r.op.signals().size() == one);
        r.op.complete(said, 3);
        poll(r.context);
        return r.o.code;
    };
    BOOST_TEST(told({}, aborted) == timed_out);
    BOOST_TEST(told(asio::error::shut_down, aborted) == error_code(asio::error::shut_down));
    BOOST_TEST(told(asio::error::shut_down, {}) == error_code()); // a result is kept
    BOOST_TEST(told(aborted, aborted) == aborted);
    BOOST_TEST(told(pawl::error::shutting_down, aborted) == error_code(pawl::error::shutting_down));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_whose_limit_cancel_all_has_lifted_goes_on_without, Limit,
                              limits_and_compact) {
    rig<Limit, says_error_code> r;
    r.start(10s);
    BOOST_TEST(pawl::cancel_all(r.context) == one);
    pass(r.context, 1h);
    BOOST_TEST(r.op.signals().empty());
    BOOST_TEST(pawl::expire_all(r.context) == none);
    r.op.complete({}, 7);
    BOOST_TEST(r.o.ended_with({}, 7), r.o);
}

BOOST_AUTO_TEST_CASE(cancel_all_tells_waits_that_they_were_cancelled) {
    asio::io_context context;
    manual_timer first(context, 10s);
    pawl::steady_timer second(context, 10s);
    outcome o;
    outcome p;
    first.async_wait(record(o));
    second.async_wait(record(p));

    BOOST_TEST(pawl::cancel_all(context) == 2U);
    poll(context);

    BOOST_TEST(o.ended_with(aborted), o);
    BOOST_TEST(p.ended_with(aborted), p);
    BOOST_TEST(pawl::cancel_all(context) == none);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_before_expire_all_has_come_to_it) {
    rig<own_timer, says_error_code> r;
    r.start();
    BOOST_TEST(pawl::expire_all(r.context) == one);
    r.op.complete({}, 7);
    poll(r.context);
    BOOST_TEST(r.o.ended_with({}, 7), r.o);
    BOOST_TEST(r.op.signals().empty());
}

// ---- max_pending ------------------------------------------------------------------------------------

const error_code no_room = asio::error::no_buffer_space;

/// A context whose only place is taken.
struct full_context {
    full_context() {
        pawl::make_timer_service<manual_clock>(context, {.max_pending = 1});
        taken.emplace(context, 1h);
        taken->async_wait(record(first));
    }
    asio::io_context context;
    std::optional<manual_timer> taken;
    outcome first;
    operation op{context.get_executor()};
    outcome o;
};

template <class Limit, class Kind>
void a_refused_limit_comes_before_its_operation() {
    full_context c;
    Limit limit(c.context);
    typename Kind::type op(c.context.get_executor());
    outcome o;
    asio::cancellation_signal outer;
    op.async_run(limit.limit(10s, asio::bind_cancellation_slot(outer.slot(), record(o))));
    BOOST_TEST(o.pending()); // never within the call
    outer.emit(cancellation_type::terminal);
    poll(c.context);
    BOOST_TEST(op.started() == 0);
    BOOST_TEST(o.ended_with(no_room, 0), o);
    c.taken->cancel();
    poll(c.context);
    outcome next;
    op.async_run(limit.limit(10s, record(next)));
    BOOST_TEST(op.started() == 1);
    Kind::succeed(op);
    BOOST_TEST(next.ended_with({}, 7), next);
    run_to_end(c.context); // P9
}

BOOST_AUTO_TEST_CASE(an_operation_whose_limit_is_refused_is_not_started) {
    a_refused_limit_comes_before_its_operation<own_timer, says_error_code>();
    a_refused_limit_comes_before_its_operation<own_timer, says_exception>();
    a_refused_limit_comes_before_its_operation<own_timer, says_neither>();
    a_refused_limit_comes_before_its_operation<on_a_strand<own_timer>, says_error_code>();
    a_refused_limit_comes_before_its_operation<callers_timer, says_error_code>();
    a_refused_limit_comes_before_its_operation<callers_timer, says_neither>();
}

BOOST_FIXTURE_TEST_CASE(an_operation_without_any_result_gets_an_error_code_from_its_limit,
                        full_context) {
    outcome refused;
    asio::post(context, pawl::timeout_at(manual_clock::now() + 10s, record(refused)));
    taken->cancel();
    poll(context);
    BOOST_TEST(refused.ended_with(no_room), refused);
    asio::post(context, pawl::timeout_at(manual_clock::now() + 10s, record(o)));
    poll(context);
    BOOST_TEST(o.ended_with({}), o);
}

BOOST_FIXTURE_TEST_CASE(a_refused_limit_of_a_cancel_after_is_reported_if_there_is_an_error_code,
                        full_context) {
    manual_timer timer(context);
    op.async_run(pawl::cancel_after(timer, 10s, record(o)));
    says_neither::type bare(context.get_executor(), says_neither::type::obedience::posts, 3);
    manual_timer another(context);
    outcome p;
    bare.async_run(pawl::cancel_after(another, 10s, record(p)));
    poll(context);
    BOOST_TEST(op.started() == 0);
    BOOST_TEST(o.ended_with(no_room, 0), o);
    BOOST_TEST(bare.started() == 1); // it has no other way to tell
    BOOST_TEST(bare.signals().size() == one);
    BOOST_TEST(p.ended_with({}, 3), p);
}

BOOST_FIXTURE_TEST_CASE(an_operation_without_a_default_result_is_started_and_cancelled,
                        full_context) {
    manual_timer timer(context);
    struct result {
        explicit result(int v) : value(v) {}
        int value;
    };
    using without_default = scripted_operation<error_code, result>;
    without_default given(context.get_executor(), without_default::obedience::posts, aborted,
                          result(3));
    given.async_run(pawl::timeout(
        timer, 10s, [r = record(o)](error_code ec, result v) mutable { r(ec, v.value); }));
    BOOST_TEST(given.started() == 1);
    poll(context);
    BOOST_TEST(o.ended_with(no_room, 3), o);
}

BOOST_FIXTURE_TEST_CASE(
    a_default_result_that_throws_leaves_the_start_of_an_operation_that_is_refused, full_context) {
    struct bad {};
    struct result {
        result() { throw bad(); }
    };
    scripted_operation<error_code, result> throwing(context.get_executor());
    const auto handler = std::make_shared<int>();
    BOOST_CHECK_THROW(throwing.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                                          [handler](error_code, const result&) {})),
                      bad);
    BOOST_TEST(throwing.started() == 0);
    poll(context);
    BOOST_TEST(handler.use_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(a_refused_limit_is_told_on_the_executor_of_the_handler, full_context) {
    asio::io_context other;
    op.async_run(pawl::timeout_at(manual_clock::now() + 1s, asio::bind_executor(other, record(o))));
    poll(context);
    BOOST_TEST(o.pending());
    BOOST_TEST(run_to_end(other) != none);
    BOOST_TEST(o.ended_with(no_room, 0), o);

    outcome gone; // P10
    {
        full_context d;
        operation in(d.context.get_executor());
        in.async_run(
            pawl::timeout_at(manual_clock::now() + 1s, asio::bind_executor(other, record(gone))));
    }
    run_to_end(other);
    BOOST_TEST(gone.ended_with(no_room, 0), gone);
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_whose_limit_is_refused_does_not_begin, full_context) {
    manual_timer timer(context);
    bool begun = false;
    error_code caught;
    const auto work = [&]() -> asio::awaitable<void> {
        begun = true;
        co_return;
    };
    const auto main = [&]() -> asio::awaitable<void> {
        try {
            co_await pawl::timeout(timer, 7s, work());
        } catch (const system_error& e) {
            caught = e.code();
        }
    };
    asio::co_spawn(context, main, [](const std::exception_ptr&) {});
    poll(context);
    BOOST_TEST(!begun);
    BOOST_TEST(caught == no_room);
}

} // namespace
