// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Without a completion token, limits take the default token of the operation's executor, like
//   Asio's since Boost 1.86, and deferred only if there is none.

#define BOOST_TEST_MODULE default_token
#include <boost/test/unit_test.hpp>

#include "timeout_stream_support.hpp"
#include "timeout_support.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using pawl::manual_timer;
using timeouts::aborted;
using timeouts::timed_out;
using namespace std::chrono_literals;

/// A token that processes the result, like with_diagnostics of Boost.MySQL: here it writes it into
/// a diary, and passes it on to a deferred operation's handler.
struct with_diary {};
std::string diary;

} // namespace

template <class... Args>
struct asio::async_result<with_diary, void(error_code, Args...)> {
    template <class Initiation, class... Inputs>
    static auto initiate(Initiation&& initiation, with_diary, Inputs&&... inputs) {
        return asio::async_initiate<const asio::deferred_t&, void(error_code, Args...)>(
            [i = std::forward<Initiation>(initiation)](auto&& handler, auto&&... in) mutable {
                const auto ex = asio::get_associated_executor(handler, i.get_executor());
                std::move(i)(asio::bind_executor(ex,
                                                 [h = std::forward<decltype(handler)>(handler)](
                                                     error_code ec, Args... args) mutable {
                                                     diary += ec ? ec.message() + '.' : "ok.";
                                                     std::move(h)(ec, std::move(args)...);
                                                 }),
                             std::forward<decltype(in)>(in)...);
            },
            asio::deferred, std::forward<Inputs>(inputs)...);
    }
};

namespace {

/// Like that of Boost.MySQL's initiating functions.
struct executor_with_diary : asio::any_io_executor {
    using default_completion_token_type = with_diary;

    template <class Inner>
        requires(!std::is_same_v<Inner, executor_with_diary>)
    executor_with_diary(const Inner& ex) noexcept : asio::any_io_executor(ex) {}
};

/// An operation that completes when a timer expires.
struct wait_with_diary {
    using executor_type = executor_with_diary;
    executor_type get_executor() const noexcept { return timer->get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler) const {
        timer->async_wait(std::forward<Handler>(handler));
    }

    manual_timer* timer;
};
template <class Token>
auto async_wait_with_diary(manual_timer& timer, Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(wait_with_diary{&timer}, token);
}

/// An operation that does not reveal its executor.
struct nothing {
    template <class Handler>
    void operator()(Handler&& handler) const {
        const auto ex = asio::get_associated_executor(handler);
        asio::post(ex, asio::append(std::forward<Handler>(handler), error_code()));
    }
};
template <class Token>
auto async_nothing(Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(nothing(), token);
}

using tuple_token = asio::as_tuple_t<asio::deferred_t>;
template <class Token>
using timer_with = typename Token::template as_default_on_t<manual_timer>;

/// Runs the coroutine, and passes a second on the manual clock after each turn.
template <class Coroutine>
void run(asio::io_context& context, Coroutine coroutine) {
    bool done = false;
    asio::co_spawn(context, std::move(coroutine), [&](const std::exception_ptr& e) {
        done = true;
        if (e)
            std::rethrow_exception(e);
    });
    int turns = 0;
    while (!done) {
        BOOST_REQUIRE(++turns != 100);
        timeouts::poll(context);
        timeouts::pass(context, 1s);
    }
}

BOOST_AUTO_TEST_CASE(the_default_token_of_the_executor_is_taken) {
    asio::io_context context;
    timer_with<asio::use_awaitable_t<>> waits(context);
    timer_with<tuple_token> tuples(context);
    manual_timer plain(context);

    static_assert(
        std::is_same_v<decltype(waits.async_wait(pawl::timeout(1s))), asio::awaitable<void>>);
    static_assert(std::is_same_v<decltype(waits.async_wait(pawl::cancel_after(plain, 1s))),
                                 asio::awaitable<void>>);
    static_assert(std::is_same_v<decltype(tuples.async_wait(pawl::timeout(1s))),
                                 decltype(tuples.async_wait(pawl::timeout(1s, tuple_token())))>);
    static_assert(std::is_same_v<decltype(tuples.async_wait(pawl::cancel_at(manual_clock::now()))),
                                 decltype(tuples.async_wait(
                                     pawl::cancel_at(manual_clock::now(), tuple_token())))>);
}

BOOST_AUTO_TEST_CASE(deferred_is_taken_where_there_is_none) {
    asio::io_context context;
    manual_timer plain(context);

    static_assert(std::is_same_v<decltype(plain.async_wait(pawl::timeout(1s))),
                                 decltype(plain.async_wait(pawl::timeout(1s, asio::deferred)))>);
    static_assert(std::is_same_v<decltype(async_nothing(pawl::timeout(1s))),
                                 decltype(async_nothing(pawl::timeout(1s, asio::deferred)))>);
}

BOOST_AUTO_TEST_CASE(what_an_as_tuple_default_makes_is_decomposed) {
    asio::io_context context;
    timer_with<tuple_token> timer(context, 10s);
    manual_timer limit(context);

    run(context, [&]() -> asio::awaitable<void> {
        const auto [reached] = co_await timer.async_wait(pawl::timeout(limit, 2s));
        BOOST_TEST(reached == timed_out);
        const auto [cut] = co_await timer.async_wait(pawl::cancel_after(limit, 2s));
        BOOST_TEST(cut == aborted);
        const auto [at] = co_await timer.async_wait(pawl::timeout_at(manual_clock::now() + 2s));
        BOOST_TEST(at == timed_out);
        const auto [cut_at] = co_await timer.async_wait(
            pawl::cancel_at(manual_clock::now() + 2s, asio::cancellation_type::partial));
        BOOST_TEST(cut_at == aborted);
        const auto [nested] = co_await timer.async_wait(
            pawl::timeout(limit, 1h, pawl::timeout_at(manual_clock::now() + 2s)));
        BOOST_TEST(nested == timed_out);
        timer.expires_after(1s);
        const auto [beaten] = co_await timer.async_wait(pawl::timeout(limit, 1h));
        BOOST_TEST(!beaten);
    });
}

BOOST_AUTO_TEST_CASE(a_deadline_that_has_passed_is_told_to_the_default_token) {
    asio::io_context context;
    timer_with<tuple_token> timer(context, 10s);
    const pawl::basic_deadline<manual_clock> passed(manual_clock::now() - 1s);

    run(context, [&]() -> asio::awaitable<void> {
        const auto [ec] = co_await timer.async_wait(pawl::timeout_at(passed));
        BOOST_TEST(ec == timed_out);
    });
}

BOOST_AUTO_TEST_CASE(a_use_awaitable_default_throws) {
    asio::io_context context;
    timer_with<asio::use_awaitable_t<>> timer(context, 10s);
    manual_timer limit(context);

    run(context, [&]() -> asio::awaitable<void> {
        BOOST_CHECK_EXCEPTION(co_await timer.async_wait(pawl::timeout(limit, 1s)),
                              boost::system::system_error,
                              [](const auto& e) { return e.code() == timed_out; });
    });
}

BOOST_AUTO_TEST_CASE(a_default_token_of_a_library_is_told_what_happens) {
    asio::io_context context;
    manual_timer timer(context, 10s);
    manual_timer limit(context);
    diary.clear();

    run(context, [&]() -> asio::awaitable<void> {
        BOOST_CHECK_THROW(co_await async_wait_with_diary(timer, pawl::timeout(limit, 1s)),
                          boost::system::system_error);
        timer.expires_after(1s);
        co_await async_wait_with_diary(timer, pawl::cancel_after(limit, 2s));
    });

    BOOST_TEST(diary == timed_out.message() + ".ok.");
}

BOOST_AUTO_TEST_CASE(a_stream_with_a_default_token_may_have_a_limit_of_the_caller) {
    asio::io_context context;
    auto [here, there] = stream_test::socket_pair<>(context);
    tuple_token::as_default_on_t<stream_test::manual_stream> stream(std::move(here));
    std::array<char, 8> data{};
    manual_timer limit(context);

    run(context, [&]() -> asio::awaitable<void> {
        const auto [ec, n] =
            co_await stream.async_read_some(asio::buffer(data), pawl::timeout(limit, 1s));
        BOOST_TEST(ec == timed_out);
        BOOST_TEST(n == 0U);
    });
}

} // namespace
