// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C1-C5, C10, C16: the class, and timers without waits.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_TYPES_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_TYPES_HPP

#include "contract_support.hpp"

#include <boost/asio/strand.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/version.hpp>

#include <future>
#include <stdexcept>
#include <type_traits>

namespace contract {

BOOST_AUTO_TEST_SUITE(types)

// ---- C1, C2, C5, C10 ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C1_the_typedefs_are_the_template_with_the_clocks_of_std) {
    using std::chrono::high_resolution_clock;
    using std::chrono::steady_clock;
    using std::chrono::system_clock;

    static_assert(std::is_same_v<tut::steady_timer, tut::basic_waitable_timer<steady_clock>>);
    static_assert(std::is_same_v<tut::system_timer, tut::basic_waitable_timer<system_clock>>);
    // With libc++ both clocks are one, and the timers under test may replace those on it.
    static_assert(std::is_same_v<high_resolution_clock, steady_clock> ||
                  std::is_same_v<tut::high_resolution_timer,
                                 tut::basic_waitable_timer<high_resolution_clock>>);
    static_assert(
        std::is_same_v<tut::steady_timer,
                       tut::basic_waitable_timer<steady_clock, asio::wait_traits<steady_clock>,
                                                 asio::any_io_executor>>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(C1_each_of_the_three_typedefs_waits) {
    asio::io_context io;
    tut::steady_timer steady(io, 1ms);
    tut::system_timer system(io, 1ms);
    tut::high_resolution_timer precise(io, 1ms);
    fate steady_fate{}, system_fate{}, precise_fate{};

    steady.async_wait(record(steady_fate));
    system.async_wait(record(system_fate));
    precise.async_wait(record(precise_fate));
    run_to_end(io);

    BOOST_TEST(steady_fate == fate::success);
    BOOST_TEST(system_fate == fate::success);
    BOOST_TEST(precise_fate == fate::success);
}

BOOST_AUTO_TEST_CASE(C2_the_member_types_are_there) {
    using timer = tut::steady_timer;
    using native = asio::io_context::executor_type;

    static_assert(std::is_same_v<timer::executor_type, asio::any_io_executor>);
    static_assert(std::is_same_v<timer::clock_type, steady_clock>);
    static_assert(std::is_same_v<timer::duration, clock::duration>);
    static_assert(std::is_same_v<timer::time_point, clock::time_point>);
    static_assert(std::is_same_v<timer::traits_type, steady_traits>);
    static_assert(std::is_same_v<timer::rebind_executor<native>::other, timer_on<native>>);
    static_assert(
        std::is_same_v<timer_on<native>::rebind_executor<asio::any_io_executor>::other, timer>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(C5_a_timer_cannot_be_copied) {
    static_assert(!std::is_copy_constructible_v<tut::steady_timer>);
    static_assert(!std::is_copy_assignable_v<tut::steady_timer>);
    static_assert(!std::is_constructible_v<tut::steady_timer, tut::steady_timer&>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(C10_get_executor_returns_a_reference_and_does_not_throw) {
    using timer = tut::steady_timer;
    static_assert(std::is_same_v<decltype(std::declval<timer&>().get_executor()),
                                 const timer::executor_type&>);
    static_assert(noexcept(std::declval<timer&>().get_executor()));
    asio::io_context io;

    timer t(io);

    BOOST_TEST((t.get_executor() == asio::any_io_executor(io.get_executor())));
    BOOST_TEST(&t.get_executor() == &t.get_executor());
}

// ---- C3 -----------------------------------------------------------------------------------------

template <typename T, typename... Args>
concept implicitly_constructible =
    requires(void (&take)(T), Args&&... args) { take({static_cast<Args&&>(args)...}); };

BOOST_AUTO_TEST_CASE(C3_the_constructors_are_explicit_where_those_of_asio_are) {
    using timer = tut::steady_timer;
    using executor = asio::any_io_executor;
    using context = asio::io_context;
    using time_point = clock::time_point;
    using duration = clock::duration;

    static_assert(std::is_constructible_v<timer, const executor&>);
    static_assert(!std::is_convertible_v<const executor&, timer>);
    static_assert(!implicitly_constructible<timer, const executor&>);
    static_assert(implicitly_constructible<timer, const executor&, const time_point&>);
    static_assert(implicitly_constructible<timer, const executor&, const duration&>);

    static_assert(std::is_constructible_v<timer, context&>);
    static_assert(std::is_constructible_v<timer, context&, const time_point&>);
    static_assert(std::is_constructible_v<timer, context&, const duration&>);
    static_assert(!std::is_convertible_v<context&, timer>);
    static_assert(!implicitly_constructible<timer, context&>);
    static_assert(!implicitly_constructible<timer, context&, const time_point&>);
    static_assert(!implicitly_constructible<timer, context&, const duration&>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(C3_only_what_is_an_execution_context_is_taken_for_one) {
    using timer = tut::steady_timer;
    struct derived_context : asio::io_context {};
    struct unrelated {};

    static_assert(std::is_constructible_v<timer, derived_context&>);
    static_assert(std::is_constructible_v<timer, asio::thread_pool&>);
    static_assert(std::is_constructible_v<timer, asio::system_context&>);
    static_assert(!std::is_constructible_v<timer, const asio::io_context&>);
    static_assert(!std::is_constructible_v<timer, asio::io_context>);
    static_assert(!std::is_constructible_v<timer, unrelated&>);
    static_assert(!std::is_constructible_v<timer, unrelated&, clock::time_point>);
    static_assert(!std::is_constructible_v<timer, unrelated&, clock::duration>);
    static_assert(!std::is_default_constructible_v<timer>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(C3_durations_of_other_units_convert) {
    asio::io_context io;
    const auto before = clock::now();

    tut::steady_timer t(io, std::chrono::hours(2));
    tut::steady_timer u(io.get_executor(), std::chrono::minutes(120));

    BOOST_TEST((t.expiry() >= before + 2h));
    BOOST_TEST((u.expiry() >= t.expiry()));
}

BOOST_AUTO_TEST_CASE(C3_a_context_gives_its_executor) {
    asio::io_context io;
    const auto when = future();
    const auto before = clock::now();

    tut::steady_timer unset(io);
    tut::steady_timer at(io, when);
    tut::steady_timer after(io, 1h);
    timer_on<asio::io_context::executor_type> native(io, when);

    const asio::any_io_executor expected(io.get_executor());
    BOOST_TEST((unset.get_executor() == expected));
    BOOST_TEST((at.get_executor() == expected));
    BOOST_TEST((after.get_executor() == expected));
    BOOST_TEST((native.get_executor() == io.get_executor()));
    BOOST_TEST((at.expiry() == when));
    BOOST_TEST((after.expiry() >= before + 1h));
    BOOST_TEST((native.expiry() == when));
}

/// All constructors from an executor, a wait that ends by expiry and one that is cancelled.
template <typename Executor>
void check_executor(asio::io_context& io, const Executor& executor) {
    using timer = timer_on<Executor>;
    const auto when = clock::now() + 1ms;
    timer unset(executor);
    timer at = {executor, when};
    timer after = {executor, clock::duration(1h)};
    fate unset_fate{}, at_fate{}, after_fate{};
    bool early = true;

    unset.async_wait(record(unset_fate));
    at.async_wait([&](error_code code) {
        settle(at_fate, code);
        early = clock::now() < when;
    });
    after.async_wait(record(after_fate));
    const auto cancelled = after.cancel();
    run_to_end(io);

    BOOST_TEST((unset.get_executor() == executor));
    BOOST_TEST((at.get_executor() == executor));
    BOOST_TEST((at.expiry() == when));
    BOOST_TEST(cancelled == one);
    BOOST_TEST(unset_fate == fate::success);
    BOOST_TEST(at_fate == fate::success);
    BOOST_TEST(!early);
    BOOST_TEST(after_fate == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_that_of_an_io_context) {
    asio::io_context io;
    check_executor(io, io.get_executor());
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_type_erased) {
    asio::io_context io;
    check_executor(io, asio::any_io_executor(io.get_executor()));
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_a_strand) {
    asio::io_context io;
    check_executor(io, asio::make_strand(io));
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_a_type_erased_strand) {
    asio::io_context io;
    check_executor(io, asio::any_io_executor(asio::make_strand(io)));
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_one_of_the_users_own) {
    asio::io_context io;
    executor_log log;

    check_executor(io, property_executor(io.get_executor(), log));

    BOOST_TEST(log.executed.load() >= 3);
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_a_strand_over_one_of_the_users_own) {
    asio::io_context io;
    executor_log log;

    check_executor(io, asio::make_strand(property_executor(io.get_executor(), log)));

    BOOST_TEST(log.executed.load() >= 3);
}

BOOST_AUTO_TEST_CASE(C3_the_executor_may_have_other_properties_than_that_of_the_context) {
    asio::io_context io;
    const auto never = asio::require(io.get_executor(), asio::execution::blocking.never);

    check_executor(io, never);
    check_executor(io, asio::any_io_executor(never));
    check_executor(io, asio::prefer(never, asio::execution::relationship.continuation));
}

BOOST_AUTO_TEST_CASE(C3_the_context_may_have_a_concurrency_hint) {
    asio::io_context single(1), unsafe(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);

    check_executor(single, single.get_executor());
    check_executor(unsafe, unsafe.get_executor());
}

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
BOOST_AUTO_TEST_CASE(C3_the_executor_may_be_one_of_the_networking_TS) {
    asio::io_context io;
    executor_log log;

    check_executor(io, ts_executor(io, log));

    BOOST_TEST(log.executed.load() >= 3);
    BOOST_TEST(log.work.load() == 0);
}
#endif

/// A wait on a context that runs by itself.
template <typename Timer>
fate wait_elsewhere(Timer& timer) {
    std::promise<error_code> done;
    auto result = done.get_future();

    timer.async_wait([&done](error_code code) { done.set_value(code); });

    BOOST_REQUIRE((result.wait_for(patience) == std::future_status::ready));
    return fate_of(result.get());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C3_the_context_may_be_a_thread_pool) {
    asio::thread_pool pool(1);
    tut::steady_timer t(pool, 1ms);
    timer_on<asio::thread_pool::executor_type> native(pool.get_executor(), clock::now() + 1ms);

    BOOST_TEST(wait_elsewhere(t) == fate::success);
    BOOST_TEST((clock::now() >= t.expiry()));
    BOOST_TEST(wait_elsewhere(native) == fate::success);
    BOOST_TEST((clock::now() >= native.expiry()));
    pool.join();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C3_the_context_may_be_the_system_context) {
    asio::system_context& context = asio::query(asio::system_executor(), asio::execution::context);
    give_rings<tut::steady_timer>(context);
    tut::steady_timer t(context, 1ms);
    timer_on<asio::system_executor> native(asio::system_executor(), clock::duration(1ms));

    BOOST_TEST(wait_elsewhere(t) == fate::success);
    BOOST_TEST((clock::now() >= t.expiry()));
    BOOST_TEST(wait_elsewhere(native) == fate::success);
    BOOST_TEST((clock::now() >= native.expiry()));
}

PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN
BOOST_AUTO_TEST_CASE(C3_the_context_may_be_one_of_the_users_own) {
    manual_context context;
    timer_on<manual_context::executor_type> expiring(context, 1ms);
    timer_on<manual_context::executor_type> cancelled(context, 1h);
    fate expired{}, aborted{};

    expiring.async_wait(record(expired));
    cancelled.async_wait(record(aborted));
    BOOST_TEST(cancelled.cancel() == one);
    while (expired == fate::pending || aborted == fate::pending)
        BOOST_REQUIRE(context.run_one_for(patience));

    BOOST_TEST(expired == fate::success);
    BOOST_TEST((clock::now() >= expiring.expiry()));
    BOOST_TEST(aborted == fate::aborted);
}

// Rings are made before the first timer of a context. Without rings no delay is served.
BOOST_AUTO_TEST_CASE(C3_a_context_that_was_given_no_options) {
    boost::asio::io_context io;
    tut::steady_timer t(io);
    fate f{};

    if constexpr (rings_under_test) {
        BOOST_CHECK_THROW(t.expires_after(1ms), std::invalid_argument);
        BOOST_CHECK_THROW(tut::steady_timer(io, 1ms), std::invalid_argument);
        BOOST_TEST((t.expiry() == clock::time_point()));
        BOOST_CHECK_THROW(give_rings<tut::steady_timer>(io), asio::service_already_exists);
    } else {
        t.expires_after(1ms);
    }
    t.async_wait(record(f));
    io.run_for(patience);

    BOOST_TEST(f == fate::success);
}

// ---- C4 -----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C4_a_timer_that_was_never_set_is_expired) {
    asio::io_context io;
    tut::steady_timer t(io);
    fate f{};

    t.wait();
    t.async_wait(record(f));
    run_to_end(io);

    BOOST_TEST((t.expiry() == clock::time_point()));
    BOOST_TEST(f == fate::success);
}

// ---- C16 ----------------------------------------------------------------------------------------

template <typename Timer>
concept has_deprecated_members = requires(Timer& t, const Timer& c, error_code& ec) {
    t.cancel(ec);
    t.cancel_one(ec);
    c.expires_at();
    t.expires_at(clock::time_point(), ec);
    c.expires_from_now();
    t.expires_from_now(clock::duration());
    t.expires_from_now(clock::duration(), ec);
};

template <typename Timer>
concept has_a_deprecated_member =
    requires(Timer& t, error_code& ec) { t.cancel(ec); } || requires(Timer& t, error_code& ec) {
        t.cancel_one(ec);
    } || requires(Timer& t) { t.expires_at(); } || requires(Timer& t) { t.expires_from_now(); };

#if !defined(BOOST_ASIO_NO_DEPRECATED) && BOOST_VERSION < 108700

static_assert(has_deprecated_members<tut::steady_timer>);

BOOST_AUTO_TEST_CASE(C16_the_deprecated_members_do_what_their_successors_do) {
    asio::io_context io;
    tut::steady_timer t(io);
    const auto when = future();
    error_code code = asio::error::fault;
    std::string order;
    fate a{}, b{}, c{}, d{}, e{};

    BOOST_TEST(t.expires_at(when, code) == none);
    BOOST_TEST(!code);
    BOOST_TEST((t.expires_at() == when));
    t.async_wait(record(a, order, 'a'));
    t.async_wait(record(b, order, 'b'));
    t.async_wait(record(c, order, 'c'));
    code = asio::error::fault;
    BOOST_TEST(t.cancel_one(code) == one);
    BOOST_TEST(!code);
    code = asio::error::fault;
    BOOST_TEST(t.cancel(code) == 2u);
    BOOST_TEST(!code);
    t.async_wait(record(d, order, 'd'));
    BOOST_TEST(t.expires_from_now(1h) == one);
    BOOST_TEST((t.expires_from_now() > 59min));
    t.async_wait(record(e, order, 'e'));
    code = asio::error::fault;
    BOOST_TEST(t.expires_from_now(-1h, code) == one);
    BOOST_TEST(!code);
    BOOST_TEST((t.expires_from_now() <= -1h));
    run_to_end(io);

    BOOST_TEST(order == "abcde");
    BOOST_TEST(a == fate::aborted);
    BOOST_TEST(e == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C16_C24_the_time_that_is_left_saturates) {
    asio::io_context io;
    tut::steady_timer t(io);

    t.expires_at(clock::time_point::min());
    BOOST_TEST((t.expires_from_now() == clock::duration::min()));
    t.expires_at(latest());
    BOOST_TEST((t.expires_from_now() > 24h));
    BOOST_TEST((t.expires_from_now() < clock::duration::max()));
}

#else

BOOST_AUTO_TEST_CASE(C16_the_deprecated_members_are_gone_where_boost_has_none) {
    static_assert(!has_a_deprecated_member<tut::steady_timer>);
    BOOST_TEST(true);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_TYPES_HPP
