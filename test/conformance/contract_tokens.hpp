// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C18, C19, C33: completion tokens, copies of handlers, immediate executors.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_TOKENS_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_TOKENS_HPP

#include "contract_support.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/promise.hpp>
#include <boost/asio/experimental/use_promise.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <tuple>
#include <type_traits>
#include <variant>

namespace contract {

BOOST_AUTO_TEST_SUITE(tokens)

/// Runs a coroutine to its end; rethrows its exception.
template <typename Function>
void run_coroutine(asio::io_context& io, Function function) {
    std::exception_ptr error;
    bool ended = false;
    asio::co_spawn(io, std::move(function), [&](std::exception_ptr e) {
        error = e;
        ended = true;
    });
    run_to_end(io);
    BOOST_REQUIRE(ended);
    if (error)
        std::rethrow_exception(error);
}

// ---- C18: the initiating function ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C18_a_lambda_waits_and_nothing_is_returned) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    static_assert(std::is_void_v<decltype(t.async_wait(record(f)))>);

    t.async_wait(record(f));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C18_a_function_pointer_and_a_std_function_wait) {
    static int calls = 0;
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    void (*const pointer)(const error_code&) = [](const error_code&) { ++calls; };
    const std::function<void(error_code)> function = [](error_code) { ++calls; };

    t.async_wait(pointer);
    t.async_wait(function);
    t.async_wait(*pointer);
    run_to_end(io);

    BOOST_TEST(calls == 3);
}

BOOST_AUTO_TEST_CASE(C18_a_handler_may_be_move_only_and_mutable) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    int seen = 0;

    t.async_wait([&, owned = std::make_unique<int>(41)](error_code code) mutable {
        settle(f, code);
        seen = ++*owned;
    });
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(seen == 42);
}

BOOST_AUTO_TEST_CASE(C18_the_poorest_handler_waits) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1ms), u(io, 1h);
    handler_log expired, cancelled;
    allocation_log memory;

    t.async_wait(handler_archetype(expired, io.get_executor(), memory, {}));
    u.async_wait(handler_archetype(cancelled, io.get_executor(), memory, signal.slot()));
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(expired.calls == 1);
    BOOST_TEST(fate_of(expired.last) == fate::success);
    BOOST_TEST(cancelled.calls == 1);
    BOOST_TEST(fate_of(cancelled.last) == fate::aborted);
    BOOST_TEST(expired.live + cancelled.live == 0);
    BOOST_TEST(memory.allocations >= 2u);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C18_a_token_of_the_users_own_decides_the_result_and_sees_the_executor) {
    asio::io_context io;
    auto strand = asio::make_strand(io);
    timer_on<decltype(strand)> t(strand, clock::now() + 1ms);
    initiation_log log;

    const token_result result = t.async_wait(token_archetype{&log});
    run_to_end(io);

    BOOST_TEST(result.log == &log);
    BOOST_TEST(log.initiation_has_executor);
    BOOST_REQUIRE(log.executor.has_value());
    BOOST_TEST((*log.executor == asio::any_io_executor(strand)));
    BOOST_TEST(log.handler.calls == 1);
    BOOST_TEST(log.handler.copies == 0);
    BOOST_TEST(log.handler.live == 0);
}

struct initiation_probe {};

} // namespace contract
} // namespace contract

template <typename R, typename... Args>
class boost::asio::async_result<contract::tokens::initiation_probe, R(Args...)> {
public:
    template <typename Initiation>
    static std::decay_t<Initiation> initiate(Initiation&& initiation,
                                             contract::tokens::initiation_probe) {
        return std::forward<Initiation>(initiation); // would start the wait; not called
    }
};

namespace contract {
namespace tokens {

BOOST_AUTO_TEST_CASE(
    C18_the_initiation_object_has_the_executor_of_the_timer_as_its_associated_one) {
    asio::io_context io, other;
    tut::steady_timer t(io, 1h);
    fate f{};

    auto initiation = t.async_wait(initiation_probe());
    using initiation_type = decltype(initiation);
    static_assert(std::is_copy_constructible_v<initiation_type>);
    static_assert(
        std::is_same_v<asio::associated_executor_t<initiation_type>, asio::any_io_executor>);
    BOOST_TEST((asio::get_associated_executor(initiation) == t.get_executor()));
    BOOST_TEST(
        (asio::get_associated_executor(initiation, other.get_executor()) == t.get_executor()));
    BOOST_TEST(t.cancel() == none); // nothing was started

    initiation(record(f));
    BOOST_TEST(t.cancel() == one);
    run_to_end(io);
    BOOST_TEST(f == fate::aborted);
}

template <typename Timer>
concept accepts_int = requires(Timer& t) { t.async_wait(17); };

BOOST_AUTO_TEST_CASE(C18_async_wait_is_an_async_operation) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    const auto wait =
        [&t](auto&& token) -> decltype(t.async_wait(std::forward<decltype(token)>(token))) {
        return t.async_wait(std::forward<decltype(token)>(token));
    };
    static_assert(asio::is_async_operation<decltype(wait)>::value);
    static_assert(
        std::is_same_v<asio::completion_signature_of_t<decltype(wait)>, void(error_code)>);
    using deferred_wait = decltype(t.async_wait(asio::deferred));
    static_assert(asio::is_async_operation<deferred_wait>::value);
    static_assert(!accepts_int<tut::steady_timer>);
    fate f{};

    wait(record(f));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

// ---- C18: the tokens of Asio --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C18_detached_waits) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);

    t.async_wait(asio::detached);
    run_to_end(io);

    BOOST_TEST((clock::now() >= t.expiry()));
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C18_use_future_waits_in_a_thread_pool) {
    asio::thread_pool pool(2);
    tut::steady_timer expiring(pool, 2ms), cancelled(pool, 1h);

    std::future<void> expired = expiring.async_wait(asio::use_future);
    std::future<void> aborted = cancelled.async_wait(asio::use_future);
    const auto n = cancelled.cancel();

    BOOST_TEST(n == one);
    BOOST_REQUIRE((expired.wait_for(patience) == std::future_status::ready));
    BOOST_TEST((clock::now() >= expiring.expiry()));
    BOOST_CHECK_NO_THROW(expired.get());
    BOOST_REQUIRE((aborted.wait_for(patience) == std::future_status::ready));
    BOOST_CHECK_EXCEPTION(aborted.get(), boost::system::system_error,
                          [](const auto& e) { return e.code() == asio::error::operation_aborted; });
    pool.join();
}

BOOST_AUTO_TEST_CASE(C18_deferred_reads_the_expiry_when_it_is_launched) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate f{};

    auto operation = t.async_wait(asio::deferred);
    BOOST_TEST(!busy_after_poll(io));
    BOOST_TEST(t.expires_after(1ms) == none);
    std::move(operation)(record(f));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST((clock::now() >= t.expiry()));
}

BOOST_AUTO_TEST_CASE(C18_deferred_operations_chain) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms), u(io, 1ms);
    fate f{};

    auto both =
        t.async_wait(asio::deferred([&u](error_code) { return u.async_wait(asio::deferred); }));
    std::move(both)(record(f));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C18_append_and_prepend_pass_their_values) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{}, g{};
    int appended = 0, prepended = 0;

    t.async_wait(asio::append(
        [&](error_code code, int value) {
            settle(f, code);
            appended = value;
        },
        17));
    t.async_wait(asio::prepend(
        [&](int value, error_code code) {
            settle(g, code);
            prepended = value;
        },
        4));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::success);
    BOOST_TEST(appended == 17);
    BOOST_TEST(prepended == 4);
}

BOOST_AUTO_TEST_CASE(C18_bound_executor_allocator_and_slot_nest) {
    asio::io_context io;
    auto strand = asio::make_strand(io);
    asio::cancellation_signal signal;
    allocation_log memory;
    tut::steady_timer t(io, 1h);
    fate f{};
    bool in_strand = false;

    t.async_wait(asio::bind_executor(
        strand,
        asio::bind_allocator(counting_allocator<char>(memory),
                             asio::bind_cancellation_slot(signal.slot(), [&](error_code code) {
                                 settle(f, code);
                                 in_strand = strand.running_in_this_thread();
                             }))));
    signal.emit(asio::cancellation_type::total);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(in_strand);
    BOOST_TEST(memory.allocations >= one);
    BOOST_TEST(memory.live() == none);
}

BOOST_AUTO_TEST_CASE(C18_a_type_erased_completion_handler_waits) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1ms), u(io, 1h);
    fate f{}, g{};

    t.async_wait(asio::any_completion_handler<void(error_code)>(record(f)));
    u.async_wait(asio::any_completion_handler<void(error_code)>(
        asio::bind_cancellation_slot(signal.slot(), record(g))));
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C18_use_promise_starts_the_wait_at_once) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};

    auto promise = t.async_wait(asio::experimental::use_promise);
    std::move(promise)(record(f));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

// ---- C18: coroutines ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C18_a_coroutine_awaits_expiry_and_abortion) {
    asio::io_context io;
    bool early = true;
    error_code thrown;

    run_coroutine(io, [&]() -> asio::awaitable<void> {
        tut::steady_timer t(co_await asio::this_coro::executor, clock::now() + 1ms);
        co_await t.async_wait(asio::use_awaitable);
        early = clock::now() < t.expiry();
        t.expires_after(1h);
        asio::post(io, [&t] { t.cancel(); });
        try {
            co_await t.async_wait(asio::use_awaitable);
        } catch (const boost::system::system_error& error) {
            thrown = error.code();
        }
    });

    BOOST_TEST(!early);
    BOOST_TEST(fate_of(thrown) == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C18_as_tuple_and_redirect_error_return_the_code) {
    asio::io_context io;
    error_code redirected = asio::error::fault, tupled = asio::error::fault, aborted;

    run_coroutine(io, [&]() -> asio::awaitable<void> {
        tut::steady_timer t(io, 1ms);
        co_await t.async_wait(asio::redirect_error(asio::use_awaitable, redirected));
        std::tie(tupled) = co_await t.async_wait(asio::as_tuple(asio::use_awaitable));
        t.expires_after(1h);
        asio::post(io, [&t] { t.cancel(); });
        std::tie(aborted) = co_await t.async_wait(asio::as_tuple(asio::use_awaitable));
    });

    BOOST_TEST(fate_of(redirected) == fate::success);
    BOOST_TEST(fate_of(tupled) == fate::success);
    BOOST_TEST(fate_of(aborted) == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C18_a_deferred_wait_is_awaited) {
    asio::io_context io;
    bool early = true;

    run_coroutine(io, [&]() -> asio::awaitable<void> {
        tut::steady_timer t(io, 1ms);
        co_await t.async_wait(asio::deferred);
        early = clock::now() < t.expiry();
    });

    BOOST_TEST(!early);
}

BOOST_AUTO_TEST_CASE(C18_the_token_of_the_executor_is_the_default) {
    using timer = asio::use_awaitable_t<>::as_default_on_t<tut::steady_timer>;
    using tuple_timer =
        asio::as_tuple_t<asio::use_awaitable_t<>>::as_default_on_t<tut::steady_timer>;
    asio::io_context io;
    bool early = true;
    error_code code = asio::error::fault;

    run_coroutine(io, [&]() -> asio::awaitable<void> {
        timer t(co_await asio::this_coro::executor);
        t.expires_after(1ms);
        co_await t.async_wait();
        early = clock::now() < t.expiry();
        tuple_timer u(io, 1ms);
        std::tie(code) = co_await u.async_wait();
    });

    BOOST_TEST(!early);
    BOOST_TEST(fate_of(code) == fate::success);
}

BOOST_AUTO_TEST_CASE(C18_the_loser_of_two_awaited_waits_is_cancelled) {
    using namespace asio::experimental::awaitable_operators;
    asio::io_context io;
    std::size_t winner = 99;
    std::size_t left = 99;

    run_coroutine(io, [&]() -> asio::awaitable<void> {
        tut::steady_timer slow(io, 1h), quick(io, 1ms);
        const auto result = co_await (slow.async_wait(asio::use_awaitable) ||
                                      quick.async_wait(asio::use_awaitable));
        winner = result.index();
        left = slow.cancel();
    });

    BOOST_TEST(winner == one);
    BOOST_TEST(left == none);
}

BOOST_AUTO_TEST_CASE(C18_a_cancelled_coroutine_leaves_its_wait) {
    asio::io_context io;
    asio::cancellation_signal signal;
    bool ended = false;
    fate f{};

    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            tut::steady_timer t(io, 1h);
            const auto [code] = co_await t.async_wait(asio::as_tuple(asio::use_awaitable));
            settle(f, code);
        },
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr) { ended = true; }));
    BOOST_TEST(busy_after_poll(io));
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(ended);
}

// ---- C19 ----------------------------------------------------------------------------------------

/// Copies made of a handler that is passed as an rvalue, and as an lvalue.
template <typename Timer, typename Wrap>
void check_copies(asio::io_context& io, Timer& t, const Wrap& wrap) {
    handler_log from_rvalue, from_lvalue, from_const;
    counting_handler lvalue(from_lvalue);
    const counting_handler constant(from_const);

    wrap(t, counting_handler(from_rvalue));
    wrap(t, lvalue);
    wrap(t, constant);
    run_to_end(io);

    BOOST_TEST(from_rvalue.copies == 0);
    BOOST_TEST(from_rvalue.calls == 1);
    BOOST_TEST(from_rvalue.live == 0);
    BOOST_TEST(from_lvalue.copies == 1);
    BOOST_TEST(from_lvalue.calls == 1);
    BOOST_TEST(from_lvalue.live == 1);
    BOOST_TEST(from_const.copies == 1);
    BOOST_TEST(from_const.calls == 1);
}

inline constexpr auto wait_plainly = [](auto& timer, auto&& handler) {
    timer.async_wait(std::forward<decltype(handler)>(handler));
};

BOOST_AUTO_TEST_CASE(C19_an_rvalue_handler_is_never_copied_and_an_lvalue_handler_once) {
    asio::io_context io;
    tut::steady_timer expiring(io, 1ms);

    check_copies(io, expiring, wait_plainly);
}

BOOST_AUTO_TEST_CASE(C19_the_same_when_the_wait_is_cancelled) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);

    check_copies(io, t, [](auto& timer, auto&& handler) {
        timer.async_wait(std::forward<decltype(handler)>(handler));
        timer.cancel();
    });
}

BOOST_AUTO_TEST_CASE(C19_the_same_through_strands_and_other_executors) {
    asio::io_context io;
    executor_log log;
    auto strand = asio::make_strand(io);
    timer_on<decltype(strand)> stranded(strand, clock::duration(1ms));
    timer_on<property_executor> foreign(property_executor(io.get_executor(), log),
                                        clock::duration(1ms));

    check_copies(io, stranded, wait_plainly);
    check_copies(io, foreign, wait_plainly);
}

BOOST_AUTO_TEST_CASE(C19_a_handler_is_destroyed_after_its_call_and_not_later) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    handler_log first, second;
    int live_after_first = 99;

    t.async_wait(counting_handler(first));
    t.async_wait([&](error_code) { live_after_first = first.live; });
    t.async_wait(counting_handler(second));
    run_to_end(io);

    BOOST_TEST(live_after_first == 0);
    BOOST_TEST(second.live == 0);
}

// ---- C33 ----------------------------------------------------------------------------------------

/// A handler with an immediate executor, as Boost 1.82 and later look for one.
struct impatient_handler {
    using immediate_executor_type = property_executor;
    immediate_executor_type get_immediate_executor() const noexcept { return immediate; }
    void operator()(error_code code) const { settle(*result, code); }

    property_executor immediate;
    fate* result;
};

BOOST_AUTO_TEST_CASE(C33_an_immediate_executor_is_not_used) {
    asio::io_context io;
    executor_log log;
    tut::steady_timer t(io, past());
    fate f{};

    t.async_wait(impatient_handler{property_executor(io.get_executor(), log), &f});
    const fate at_once = f;
    run_to_end(io);

    BOOST_TEST(at_once == fate::pending);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(log.executed.load() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace tokens

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_TOKENS_HPP
