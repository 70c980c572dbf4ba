// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What a limit is made of: the time, as the caller gives it, and the timer that keeps it, which
///   is one of the operation's own or one of the caller's.
///
/// Cost
///   An own timer is part of the operation: no allocation, and one lock at its start and its end.
#ifndef PAWL_LIMIT_LIMIT_TIMER_HPP
#define PAWL_LIMIT_LIMIT_TIMER_HPP

#include <pawl/service/saturating.hpp>
#include <pawl/service/timer_handle.hpp>

#include <pawl/wait/wait_operation.hpp>

#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// A limit of `left` from the start of the operation.
template <class Clock>
struct limit_after {
    using clock = Clock;

    typename Clock::duration left;

    template <class Handle>
    void check(const Handle& timer) const {
        timer.check_after(left);
    }

    template <class Handle>
    void set(Handle& timer) const {
        timer.expires_after(left);
    }
};

/// A limit at a point in time.
template <class Clock>
struct limit_at {
    using clock = Clock;

    typename Clock::time_point expiry;

    template <class Handle>
    void check(const Handle& timer) const {
        timer.check_at(expiry);
    }

    template <class Handle>
    void set(Handle& timer) const {
        timer.expires_at(expiry);
    }
};

/// The timer of a limit that belongs to the operation.
template <class Clock>
class own_limit_timer {
    using handle = timer_handle<Clock, boost::asio::wait_traits<Clock>>;

public:
    template <class Limit, class Executor>
    own_limit_timer(const Limit& limit, const Executor& ex) : handle_(ex, false) {
        limit.time.set(handle_);
    }

    void start(wait_operation& op) { handle_.wait(op); }
    [[nodiscard]] bool end(wait_operation& op) { return handle_.leave(op); }

private:
    handle handle_;
};

/// The timer of a limit that belongs to the caller, who may move it, cancel it, and destroy it.
template <class Timer>
class callers_limit_timer {
    using handle = std::remove_reference_t<decltype(timer_access::handle(std::declval<Timer&>()))>;
    using home = std::remove_reference_t<decltype(std::declval<handle&>().home())>;

public:
    template <class Limit, class Executor>
    callers_limit_timer(const Limit& limit, const Executor&)
        : handle_(timer_access::handle(*limit.timer)) {
        limit.time.set(handle_);
    }
    callers_limit_timer(const callers_limit_timer&) = delete;
    callers_limit_timer& operator=(const callers_limit_timer&) = delete;
    ~callers_limit_timer() {
        if (home_)
            home_->release();
    }

    /// The limit is a user of the shard of its own: another thread may destroy the timer, and the
    /// context, while this one is about to end the wait.
    void start(wait_operation& op) {
        home_ = &handle_.home();
        handle_.wait(op, 1);
    }
    [[nodiscard]] bool end(wait_operation& op) { return std::exchange(home_, nullptr)->leave(op); }

private:
    handle& handle_; ///< not touched once the wait has been started
    home* home_ = nullptr;
};

/// A limit that is kept by a timer of the operation's own.
template <class Time>
struct own_limit {
    using timer_type = own_limit_timer<typename Time::clock>;

    Time time;
};

/// A limit that is kept by a timer of the caller's.
template <class Time, class Timer>
struct callers_limit {
    using timer_type = callers_limit_timer<Timer>;

    Time time;
    Timer* timer;
};

/// `d` in another unit, or the end of its range if `d` is beyond it. Rounds up.
template <class To, class Rep, class Period>
[[nodiscard]] constexpr To saturating_cast(const std::chrono::duration<Rep, Period>& d) {
    // Compared as seconds: the two units may not convert without overflow.
    using seconds = std::chrono::duration<double>;
    if (!(seconds(d) < seconds(To::max()))) // NaN, too
        return To::max();
    if (seconds(d) <= seconds(To::min()))
        return To::min();
    return std::chrono::ceil<To>(d);
}

} // namespace pawl::detail

#endif // PAWL_LIMIT_LIMIT_TIMER_HPP
