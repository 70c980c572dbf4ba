// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The table of Asio's composed behaviour in doc/contract.md: operations under cancel_after and
//   cancel_at, row by row (L1, L2, ...), for Pawl's functions, and for Asio's if Boost has them
//   (1.86). Where the two differ on purpose, the test asserts both.

#define BOOST_TEST_MODULE composed_limits
#include <boost/test/unit_test.hpp>

#include "../support/typed_cases.hpp"
#include "../timeouts/timeout_support.hpp"

#include <pawl/steady_timer.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#if __has_include(<boost/asio/cancel_after.hpp>)
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancel_at.hpp>
#endif

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace timeouts;
using obedience = operation::obedience;
using asio::awaitable;
using asio::use_awaitable;
using steady = std::chrono::steady_clock;

struct of_pawl {
    static constexpr bool pawls = true;
    using timer = pawl::steady_timer;

    static auto after(auto&&... args) {
        return pawl::cancel_after(std::forward<decltype(args)>(args)...);
    }
    static auto at(auto&&... args) {
        return pawl::cancel_at(std::forward<decltype(args)>(args)...);
    }
};

#if __has_include(<boost/asio/cancel_after.hpp>)
struct of_asio {
    static constexpr bool pawls = false;
    using timer = asio::steady_timer;

    static auto after(auto&&... args) {
        return asio::cancel_after(std::forward<decltype(args)>(args)...);
    }
    static auto at(auto&&... args) {
        return asio::cancel_at(std::forward<decltype(args)>(args)...);
    }
};
using both = pawl_test::types<of_pawl, of_asio>;
#else
using both = pawl_test::types<of_pawl>;
#endif

steady::time_point in(steady::duration d) { return steady::now() + d; }

/// An operation that is cancelled only if it obeys, and its outcome.
struct scene {
    explicit scene(obedience obeys = obedience::posts)
        : op(context.get_executor(), obeys, aborted, 5) {}

    void end() {
        run_until(context, [this] { return !o.pending(); });
        run_to_end(context);
    }

    asio::io_context context;
    operation op;
    outcome o;
};

/// The types of the signals that `start(token's scene)` causes until its operation ends.
template <class Start>
std::vector<cancellation_type_t> signals_of(Start start) {
    scene s;
    start(s);
    s.end();
    BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    return s.op.signals();
}

const std::vector<cancellation_type_t> terminal{cancellation_type::terminal};
const std::vector<cancellation_type_t> partial{cancellation_type::partial};
const std::vector<cancellation_type_t> total{cancellation_type::total};

PAWL_TYPED_CASE(L1_an_operation_that_is_first_keeps_its_result_and_ends_its_limit, T, both) {
    scene s;
    typename T::timer lent(s.context);

    s.op.async_run(T::after(1h, record(s.o)));
    s.op.post({}, 7);
    run_to_end(s.context);
    BOOST_TEST(s.o.ended_with({}, 7), s.o);

    s.o = {};
    s.op.async_run(T::after(lent, 1h, record(s.o)));
    s.op.post(aborted, 8);
    run_to_end(s.context);
    BOOST_TEST(s.o.ended_with(aborted, 8), s.o);
    BOOST_TEST(s.op.signals().empty());
}

PAWL_TYPED_CASE(L2_a_limit_cancels_once_with_its_type_which_is_terminal_by_default, T, both) {
    using timer = typename T::timer;
    std::optional<timer> lent;
    const auto lend = [&](scene& s) -> timer& { return lent.emplace(s.context); };

    BOOST_TEST(
        (signals_of([](scene& s) { s.op.async_run(T::after(1ms, record(s.o))); }) == terminal));
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(T::after(1ms, cancellation_type::total, record(s.o)));
                }) == total));
    BOOST_TEST(
        (signals_of([](scene& s) { s.op.async_run(T::at(in(1ms), record(s.o))); }) == terminal));
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(T::at(in(1ms), cancellation_type::partial, record(s.o)));
                }) == partial));
    BOOST_TEST((signals_of([&](scene& s) {
                    s.op.async_run(T::after(lend(s), 1ms, record(s.o)));
                    lent->async_wait([](error_code) {}); // of the caller
                }) == terminal));
    lent.reset();
    BOOST_TEST((signals_of([&](scene& s) {
                    s.op.async_run(T::after(lend(s), 1ms, cancellation_type::total, record(s.o)));
                }) == total));
    lent.reset();
    BOOST_TEST((signals_of([&](scene& s) {
                    s.op.async_run(T::at(lend(s), in(1ms), record(s.o)));
                }) == terminal));
    lent.reset();
    BOOST_TEST((signals_of([&](scene& s) {
                    s.op.async_run(
                        T::at(lend(s), in(1ms), cancellation_type::partial, record(s.o)));
                }) == partial));
    lent.reset();
}

PAWL_TYPED_CASE(L3_an_operation_that_ignores_its_limit_keeps_its_result, T, both) {
    scene s(obedience::ignores);

    s.op.async_run(T::after(1ms, record(s.o)));
    run_until(s.context, [&] { return !s.op.signals().empty(); });
    BOOST_TEST(s.o.pending());
    s.op.post({}, 7);
    s.end();

    BOOST_TEST(s.o.ended_with({}, 7), s.o);
    BOOST_TEST((s.op.signals() == terminal));
}

PAWL_TYPED_CASE(L4_zero_and_less_and_the_past_start_the_operation_and_cancel_it, T, both) {
    const std::function<void(scene&)> starts[] = {
        [](scene& s) { s.op.async_run(T::after(0s, record(s.o))); },
        [](scene& s) { s.op.async_run(T::after(-1h, record(s.o))); },
        [](scene& s) { s.op.async_run(T::at(in(-1h), record(s.o))); }};
    for (const auto& start : starts) {
        scene s;
        start(s);
        BOOST_TEST(s.op.started() == 1);
        BOOST_TEST(s.op.signals().empty());
        s.end();
        BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    }
}

PAWL_TYPED_CASE(L5_each_end_of_a_wait_on_a_lent_timer_cancels_the_operation, T, both) {
    using timer = typename T::timer;
    using lent_timer = std::optional<timer>;
    const std::function<void(lent_timer&)> ends[] = {
        [](lent_timer& t) { BOOST_TEST(t->cancel() == one); },
        [](lent_timer& t) { BOOST_TEST(t->cancel_one() == one); },
        [](lent_timer& t) { BOOST_TEST(t->expires_at(steady::time_point::min()) == one); },
        [](lent_timer& t) { BOOST_TEST(t->expires_at(steady::time_point::max()) == one); },
        [](lent_timer& t) { BOOST_TEST(t->expires_after(1h) == one); },
        [](lent_timer& t) { t.reset(); },
        [](lent_timer& t) { *t = timer(t->get_executor()); }};
    const std::function<void(lent_timer&, scene&)> starts[] = {
        [](lent_timer& t, scene& s) { s.op.async_run(T::after(*t, 1h, record(s.o))); },
        [](lent_timer& t, scene& s) {
            s.op.async_run(T::after(*t, 1h, cancellation_type::terminal, record(s.o)));
        },
        [](lent_timer& t, scene& s) { s.op.async_run(T::after(*t, 1h))(record(s.o)); },
        [](lent_timer& t, scene& s) {
            s.op.async_run(T::after(*t, 1h, cancellation_type::terminal))(record(s.o));
        },
        [](lent_timer& t, scene& s) { s.op.async_run(T::at(*t, in(1h), record(s.o))); },
        [](lent_timer& t, scene& s) {
            s.op.async_run(T::at(*t, in(1h), cancellation_type::terminal, record(s.o)));
        },
        [](lent_timer& t, scene& s) { s.op.async_run(T::at(*t, in(1h)))(record(s.o)); },
        [](lent_timer& t, scene& s) {
            s.op.async_run(T::at(*t, in(1h), cancellation_type::terminal))(record(s.o));
        }};
    for (const auto& start : starts)
        for (const auto& end : ends)
            for (const bool during_the_start : {false, true}) {
                scene s;
                lent_timer t(s.context);
                if (during_the_start)
                    s.op.at_start = [&] { end(t); };
                start(t, s);
                if (!during_the_start)
                    end(t);
                BOOST_TEST(s.op.signals().empty()); // not within the call
                s.end();
                BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
                BOOST_TEST((s.op.signals() == terminal));
            }
}

PAWL_TYPED_CASE(L6_the_call_cancels_the_other_waits_of_a_lent_timer, T, both) {
    scene s;
    scene second;
    typename T::timer lent(s.context, 1h);
    outcome waited;
    lent.async_wait(record(waited));
    s.op.async_run(T::after(lent, 1h, record(s.o)));
    run_until(s.context, [&] { return !waited.pending(); });
    BOOST_TEST(waited.ended_with(aborted), waited);
    BOOST_TEST(s.o.pending());

    // Of two operations with one timer, only the second one has a limit that is to come.
    operation other(s.context.get_executor());
    other.async_run(T::after(lent, 1h, record(second.o)));
    run_until(s.context, [&] { return !s.o.pending(); });

    BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    BOOST_TEST(second.o.pending());
    other.post({}, 7);
    run_to_end(s.context);
    BOOST_TEST(second.o.ended_with({}, 7), second.o);
}

PAWL_TYPED_CASE(L7_an_operation_that_ends_leaves_the_other_waits_of_a_lent_timer, T, both) {
    scene s;
    typename T::timer lent(s.context);
    outcome waited;
    s.op.async_run(T::after(lent, 1h, record(s.o)));
    lent.async_wait(record(waited));

    s.op.post({}, 7);
    run_until(s.context, [&] { return !s.o.pending(); });
    poll(s.context);

    BOOST_TEST(s.o.ended_with({}, 7), s.o);
    BOOST_TEST(waited.pending() == T::pawls); // Asio's cancels the timer
    lent.cancel();
    run_to_end(s.context);
    BOOST_TEST(waited.ended_with(aborted), waited);
}

PAWL_TYPED_CASE(L8_a_deferred_operation_sets_its_timer_when_it_is_launched, T, both) {
    scene s;
    typename T::timer lent(s.context, steady::time_point::min());

    auto after = s.op.async_run(T::after(lent, 1ms, asio::deferred));
    auto at = s.op.async_run(T::at(lent, in(1ms), asio::deferred));
    BOOST_TEST((lent.expiry() == steady::time_point::min()));
    BOOST_TEST(s.op.started() == 0);
    std::move(after)(record(s.o));
    BOOST_TEST((lent.expiry() != steady::time_point::min()));
    s.end();
    BOOST_TEST(s.o.ended_with(aborted, 5), s.o);

    s.o = {};
    std::move(at)(record(s.o));
    s.end();
    BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
}

PAWL_TYPED_CASE(L9_without_a_token_it_is_deferred_and_also_takes_a_token, T, both) {
    BOOST_TEST(
        (signals_of([](scene& s) { s.op.async_run(T::after(1ms))(record(s.o)); }) == terminal));
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(T::at(in(1ms), cancellation_type::total))(record(s.o));
                }) == total));
    BOOST_TEST(
        (signals_of([](scene& s) { s.op.async_run(T::after(1ms)(record(s.o))); }) == terminal));
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(asio::deferred)(T::after(1ms, record(s.o)));
                }) == terminal));
}

PAWL_TYPED_CASE(L10_the_slot_of_the_handler_reaches_the_operation_with_its_type, T, both) {
    for (const auto type :
         {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
        scene s;
        asio::cancellation_signal signal;
        s.op.async_run(T::after(1h, asio::bind_cancellation_slot(signal.slot(), record(s.o))));
        signal.emit(type);
        s.end();
        BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
        BOOST_TEST((s.op.signals() == std::vector<cancellation_type_t>{type}));
        signal.emit(type); // after the end
        BOOST_TEST(s.op.signals().size() == one);
    }
}

/// Awaits the operation under a limit, after the filter for cancellations was set, if there is one.
template <class T, class Filter>
awaitable<int> await_operation(scene& s, steady::duration d, Filter filter) {
    if constexpr (!std::is_null_pointer_v<Filter>)
        co_await asio::this_coro::reset_cancellation_state(filter);
    co_return co_await s.op.async_run(T::after(d, use_awaitable));
}

PAWL_TYPED_CASE(L11_use_awaitable_passes_the_types_that_the_coroutine_has_enabled, T, both) {
    const auto passes = [](cancellation_type_t type, auto filter) {
        scene s;
        asio::cancellation_signal signal;
        asio::co_spawn(s.context, await_operation<T>(s, 1h, filter),
                       asio::bind_cancellation_slot(signal.slot(), record(s.o)));
        run_until(s.context, [&] { return s.op.pending(); });
        signal.emit(type);
        poll(s.context);
        if (s.o.pending())
            s.op.post({}, 7);
        s.end();
        BOOST_TEST(s.op.signals().size() == (s.o.code ? one : none));
        return s.o.code == aborted;
    };
    BOOST_TEST(passes(cancellation_type::terminal, nullptr));
    BOOST_TEST(!passes(cancellation_type::partial, nullptr));
    BOOST_TEST(!passes(cancellation_type::total, nullptr));
    BOOST_TEST(passes(cancellation_type::partial, asio::enable_partial_cancellation()));
    BOOST_TEST(!passes(cancellation_type::total, asio::enable_partial_cancellation()));
    BOOST_TEST(passes(cancellation_type::total, asio::enable_total_cancellation()));
    BOOST_TEST(!passes(cancellation_type::terminal, asio::disable_cancellation()));
}

PAWL_TYPED_CASE(L12_the_limit_within_a_coroutine_does_not_pass_its_filter, T, both) {
    const auto ends = [](auto filter) {
        scene s;
        asio::co_spawn(s.context, await_operation<T>(s, 1ms, filter), record(s.o));
        s.end();
        return s.o.ended_with(aborted) && s.op.signals() == terminal;
    };
    BOOST_TEST(ends(nullptr));
    BOOST_TEST(ends(asio::enable_total_cancellation()));
    BOOST_TEST(ends(asio::disable_cancellation()));
}

template <class Filter>
awaitable<int> await_plainly(scene& s, Filter filter, bool catches) {
    if constexpr (!std::is_null_pointer_v<Filter>)
        co_await asio::this_coro::reset_cancellation_state(filter);
    try {
        co_return co_await s.op.async_run(use_awaitable);
    } catch (const system_error&) {
        if (!catches)
            throw;
    }
    co_return 9;
}

PAWL_TYPED_CASE(L13_co_spawn_under_a_limit_is_cancelled_as_by_any_signal, T, both) {
    const auto spawn = [](scene& s, cancellation_type_t type, auto filter, bool catches = false) {
        asio::co_spawn(s.context, await_plainly(s, filter, catches),
                       T::after(1ms, type, record(s.o)));
    };
    {
        scene s;
        spawn(s, cancellation_type::terminal, nullptr);
        s.end();
        BOOST_TEST(s.o.ended_with(aborted), s.o);
        BOOST_TEST((s.op.signals() == terminal));
    }
    { // the default of a coroutine
        scene s;
        typename T::timer later(s.context, 20ms);
        spawn(s, cancellation_type::total, nullptr);
        later.async_wait([&](error_code) { s.op.post({}, 7); });
        s.end();
        BOOST_TEST(s.o.ended_with({}, 7), s.o);
        BOOST_TEST(s.op.signals().empty());
    }
    {
        scene s;
        spawn(s, cancellation_type::total, asio::enable_total_cancellation());
        s.end();
        BOOST_TEST(s.o.ended_with(aborted), s.o);
        BOOST_TEST((s.op.signals() == total));
    }
    {
        scene s;
        spawn(s, cancellation_type::terminal, nullptr, true);
        s.end();
        BOOST_TEST(s.o.ended_with({}, 9), s.o);
    }
}

PAWL_TYPED_CASE(L14_of_two_limits_the_earlier_one_cancels, T, both) {
    using namespace asio::experimental::awaitable_operators;
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(
                        T::after(1ms, cancellation_type::partial, T::after(1h, record(s.o))));
                }) == partial));
    BOOST_TEST((signals_of([](scene& s) {
                    s.op.async_run(
                        T::after(1h, T::after(1ms, cancellation_type::partial, record(s.o))));
                }) == partial));

    scene s;
    operation other(s.context.get_executor(), obedience::posts, aborted, 6);
    asio::co_spawn(
        s.context,
        [](operation& a, operation& b) -> awaitable<std::tuple<int, int>> {
            co_return co_await (a.async_run(T::after(1ms, use_awaitable)) &&
                                b.async_run(T::after(1h, use_awaitable)));
        }(s.op, other),
        [&](const std::exception_ptr& e, const auto&) {
            try {
                std::rethrow_exception(e);
            } catch (const asio::multiple_exceptions& both_failed) {
                record(s.o)(both_failed.first_exception());
            }
        });
    s.end();
    BOOST_TEST(s.o.ended_with(aborted), s.o);
    BOOST_TEST(other.signals().size() == one); // by the operator
}

PAWL_TYPED_CASE(L15_the_handlers_executor_gets_the_signal_and_the_result, T, both) {
    scene s;
    const auto strand = asio::make_strand(s.context);
    int in_strand = 0;
    s.op.at_signal = [&] { in_strand += strand.running_in_this_thread(); };

    s.op.async_run(T::after(1ms, asio::bind_executor(strand, [&](error_code ec, int n) {
                                in_strand += strand.running_in_this_thread();
                                record(s.o)(ec, n);
                            })));
    s.end();

    BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    BOOST_TEST(in_strand == 2);
}

PAWL_TYPED_CASE(L16_adapters_around_a_limit_are_applied_to_its_result, T, both) {
    {
        scene s;
        s.op.async_run(asio::as_tuple(
            T::after(1ms, [&](std::tuple<error_code, int> t) { std::apply(record(s.o), t); })));
        s.end();
        BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    }
    {
        scene s;
        error_code redirected;
        s.op.async_run(asio::redirect_error(T::after(1ms, record(s.o)), redirected));
        s.end();
        BOOST_TEST(s.o.ended_with({}, 5), s.o);
        BOOST_TEST(redirected == aborted);
    }
    {
        scene s;
        asio::co_spawn(
            s.context,
            [](scene& sc) -> awaitable<int> {
                const auto [ec, n] = co_await sc.op.async_run(asio::as_tuple(T::after(1ms)));
                error_code redirected;
                const int m = co_await sc.op.async_run(
                    asio::redirect_error(T::after(1ms, use_awaitable), redirected));
                co_return ec == aborted&& redirected == aborted ? n + m : 0;
            }(s),
            record(s.o));
        s.end();
        BOOST_TEST(s.o.ended_with({}, 10), s.o);
    }
}

PAWL_TYPED_CASE(L17_a_slot_that_is_bound_outside_leaves_the_limit_in_force, T, both) {
    scene s;
    asio::cancellation_signal signal;
    typename T::timer later(s.context, 20ms);

    s.op.async_run(asio::bind_cancellation_slot(signal.slot(), T::after(1ms, record(s.o))));
    later.async_wait([&](error_code) {
        if (s.op.pending())
            s.op.post({}, 7);
    });
    s.end();

    if (T::pawls)
        BOOST_TEST(s.o.ended_with(aborted, 5), s.o);
    else
        BOOST_TEST(s.o.ended_with({}, 7), s.o); // it replaces the limit's slot
}

} // namespace
