// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::deadline: a point in time that travels down a call chain. pawl::this_deadline, for
/// coroutines.
#ifndef PAWL_DEADLINE_HPP
#define PAWL_DEADLINE_HPP

#include <pawl/config.hpp>

#include <pawl/detail/limit/deadline_executor.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <compare>

namespace pawl {

/// The point in time by which a piece of work, with all its parts, must be done.
///
/// A server sets it once per request and passes it to everything that the request calls. Each
/// callee spends what is left, and can only shorten it for its own callees:
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
/// If an operation is started under a deadline that has passed, it is not started. It fails through
/// the executor with pawl::error::timed_out.
///
/// @tparam Clock any steady clock, such as pawl::manual_clock for tests.
///
/// @par Thread safety
/// A value type, like a `time_point`.
template <class Clock>
class basic_deadline {
public:
    using clock_type = Clock;                      ///< The clock.
    using duration = typename Clock::duration;     ///< Duration of the clock.
    using time_point = typename Clock::time_point; ///< Time point of the clock.

    /// No deadline.
    constexpr basic_deadline() noexcept = default;

    /// A deadline at `t`; `time_point::max()` is no deadline.
    constexpr explicit basic_deadline(const time_point& t) noexcept : expiry_(t) {}

    /// No deadline.
    [[nodiscard]] static constexpr basic_deadline never() noexcept { return {}; }

    /// A deadline `d` from now. With zero or less it has already passed; a duration that is too
    /// large for the clock means never.
    template <class Rep, class Period>
    [[nodiscard]] static basic_deadline after(const std::chrono::duration<Rep, Period>& d) {
        return basic_deadline(detail::sum_from_now<Clock>(detail::saturating_cast<duration>(d)));
    }

    /// The point in time; `time_point::max()` if there is no deadline.
    [[nodiscard]] constexpr time_point expiry() const noexcept { return expiry_; }

    /// The remaining time: zero if the deadline has passed, `duration::max()` if there is none.
    [[nodiscard]] duration remaining() const {
        if (is_never())
            return duration::max();
        return std::max(duration::zero(), detail::saturating_difference(expiry_, Clock::now()));
    }

    /// Whether the deadline has passed. Reads the clock, unless there is no deadline.
    [[nodiscard]] bool expired() const { return !is_never() && Clock::now() >= expiry_; }

    /// Whether there is no deadline.
    [[nodiscard]] constexpr bool is_never() const noexcept { return expiry_ == time_point::max(); }

    /// The earlier of this deadline and `d` from now: the deadline for a part of the work.
    template <class Rep, class Period>
    [[nodiscard]] basic_deadline within(const std::chrono::duration<Rep, Period>& d) const {
        return earlier_of(*this, after(d));
    }

    /// The earlier of two deadlines.
    [[nodiscard]] friend constexpr basic_deadline earlier_of(const basic_deadline& a,
                                                             const basic_deadline& b) noexcept {
        return b < a ? b : a;
    }

    /// An earlier deadline compares less.
    friend constexpr auto operator<=>(const basic_deadline&,
                                      const basic_deadline&) noexcept = default;

private:
    time_point expiry_ = time_point::max();
};

/// A deadline on the steady clock.
using deadline = basic_deadline<detail::steady_clock>;

/// The deadline of the calling coroutine: that of the innermost with_deadline() around it, which is
/// the earliest. never() if there is none.
///
/// @code
/// const pawl::deadline d = co_await pawl::this_deadline();
/// @endcode
///
/// The deadline is part of the coroutine's executor, a `boost::asio::any_io_executor`. So it
/// reaches all awaited coroutines, and those spawned on that executor, until with_deadline() ends.
/// There are no thread-locals, and no effect on objects that live longer.
///
/// @tparam Clock the clock of the deadline. A deadline on another clock is not found, and hides
///     those around it.
/// @par Complexity
/// O(1), plus the coroutine frame.
template <class Clock = detail::steady_clock>
[[nodiscard]] boost::asio::awaitable<basic_deadline<Clock>> this_deadline() {
    const auto ex = co_await boost::asio::this_coro::executor;
    co_return basic_deadline<Clock>(detail::deadline_of<Clock>(ex));
}

} // namespace pawl

#endif // PAWL_DEADLINE_HPP
