// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::deadline: a point in time that travels down a call chain, and pawl::this_deadline for
/// coroutines.
#ifndef PAWL_DEADLINE_HPP
#define PAWL_DEADLINE_HPP

#include <pawl/config.hpp>

#include <pawl/limit/deadline_executor.hpp>
#include <pawl/limit/limit_timer.hpp>

#include <pawl/service/latest_now.hpp>
#include <pawl/service/saturating.hpp>
#include <pawl/service/steady_clock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <compare>

namespace pawl {

/// The point in time by which a piece of work must be done, whatever parts it has.
///
/// A server sets it once for a request, and passes it to all that the request calls; each of them
/// spends what is left, and can only shorten it for what it calls itself:
///
/// @code
/// boost::asio::awaitable<reply> handle(request r, pawl::deadline d) {
///     row  x = co_await query(db, r.id, pawl::timeout_at(d.within(2s)));   // 2 s, or what is left
///     page y = co_await fetch(r.url, pawl::timeout_at(d));                 // what is left
///     co_return reply(x, y);
/// }
/// ... handle(r, pawl::deadline::after(5s));
/// @endcode
///
/// An operation that is started under a deadline which has passed is not started: it fails at once,
/// through the executor, with pawl::error::timed_out.
///
/// @tparam Clock any steady clock, such as pawl::manual_clock for tests.
///
/// @par Thread safety
/// A value type, like a `time_point`.
template <class Clock>
class basic_deadline {
public:
    using clock_type = Clock;                      ///< The clock.
    using duration = typename Clock::duration;     ///< That of the clock.
    using time_point = typename Clock::time_point; ///< That of the clock.

    /// No deadline.
    constexpr basic_deadline() noexcept = default;

    /// A deadline at `t`; `time_point::max()` is no deadline.
    constexpr explicit basic_deadline(const time_point& t) noexcept : expiry_(t) {}

    /// No deadline.
    [[nodiscard]] static constexpr basic_deadline never() noexcept { return {}; }

    /// A deadline in `d` from now. Zero and less: it has passed. What is too large to be counted:
    /// never.
    template <class Rep, class Period>
    [[nodiscard]] static basic_deadline after(const std::chrono::duration<Rep, Period>& d) {
        return basic_deadline(detail::sum_from_now<Clock>(detail::saturating_cast<duration>(d)));
    }

    /// When it is; `time_point::max()` if there is none.
    [[nodiscard]] constexpr time_point expiry() const noexcept { return expiry_; }

    /// What is left: zero if the deadline has passed, `duration::max()` if there is none.
    [[nodiscard]] duration remaining() const {
        if (is_never())
            return duration::max();
        return std::max(duration::zero(), detail::saturating_difference(expiry_, Clock::now()));
    }

    /// Whether it has come. Reads the clock, unless there is no deadline.
    [[nodiscard]] bool expired() const { return !is_never() && Clock::now() >= expiry_; }

    /// Whether there is no deadline.
    [[nodiscard]] constexpr bool is_never() const noexcept { return expiry_ == time_point::max(); }

    /// The earlier one of this deadline and `d` from now: what a part of the work may take.
    template <class Rep, class Period>
    [[nodiscard]] basic_deadline within(const std::chrono::duration<Rep, Period>& d) const {
        return earlier_of(*this, after(d));
    }

    /// The earlier one of two deadlines.
    [[nodiscard]] friend constexpr basic_deadline earlier_of(const basic_deadline& a,
                                                             const basic_deadline& b) noexcept {
        return b < a ? b : a;
    }

    /// Earlier is less.
    friend constexpr auto operator<=>(const basic_deadline&,
                                      const basic_deadline&) noexcept = default;

private:
    time_point expiry_ = time_point::max();
};

/// A deadline on the steady clock.
using deadline = basic_deadline<detail::steady_clock>;

/// The deadline that is in force for the coroutine that awaits it: that of the innermost
/// with_deadline() around it, which is the earliest one; never() if there is none.
///
/// @code
/// const pawl::deadline d = co_await pawl::this_deadline();
/// @endcode
///
/// It travels with the coroutine's executor, `boost::asio::any_io_executor`, and so to all coroutines
/// that are awaited, and to those that are spawned on that executor, until with_deadline() has
/// ended: no thread-locals, and no effect on what outlives it.
///
/// @tparam Clock the clock of the deadline. One on another clock is not found, and hides those around
///               it.
/// @par Complexity
/// O(1), and the frame.
template <class Clock = detail::steady_clock>
[[nodiscard]] boost::asio::awaitable<basic_deadline<Clock>> this_deadline() {
    const auto ex = co_await boost::asio::this_coro::executor;
    co_return basic_deadline<Clock>(detail::deadline_of<Clock>(ex));
}

} // namespace pawl

#endif // PAWL_DEADLINE_HPP
