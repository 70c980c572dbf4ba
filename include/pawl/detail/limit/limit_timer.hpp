// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The parts of a limit: the time that the caller gives, and the timer that keeps it. The timer
///   belongs to the operation or to the caller.
///
/// Cost
///   A timer of the operation is part of it: no allocation, and one lock at its start and at its
///   end.
#ifndef PAWL_DETAIL_LIMIT_LIMIT_TIMER_HPP
#define PAWL_DETAIL_LIMIT_LIMIT_TIMER_HPP

#include <pawl/detail/service/timer_handle.hpp>

#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/wait_traits.hpp>

#include <type_traits>
#include <utility>

namespace pawl::detail {

/// A limit that expires `left` after the start of the operation.
template <class Clock>
struct limit_after {
    using clock = Clock;

    typename Clock::duration left;

    void check(const auto& timer) const { timer.check_after(left); }
    void set(auto& timer) const { timer.expires_after(left); }
};

/// A limit that expires at a time point.
template <class Clock>
struct limit_at {
    using clock = Clock;

    typename Clock::time_point expiry;

    void check(const auto& timer) const { timer.check_at(expiry); }
    void set(auto& timer) const { timer.expires_at(expiry); }
};

/// The timer of a limit, owned by the operation.
template <class Clock>
class own_limit_timer {
    using handle = timer_handle<Clock, boost::asio::wait_traits<Clock>>;

public:
    template <class Limit, class Executor>
    own_limit_timer(const Limit& limit, const Executor& ex)
        : handle_(ex, typename handle::without_handlers()) {
        limit.time.set(handle_);
    }

    /// @return false if the limit is refused: the wait ends with no_buffer_space.
    bool start(wait_operation& op) { return handle_.wait(op); }
    [[nodiscard]] bool end(wait_operation& op) { return handle_.withdraw(op); }

private:
    handle handle_;
};

/// The timer of a limit, owned by the caller, who may move, cancel and destroy it.
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
    callers_limit_timer& operator=(callers_limit_timer&&) = delete;
    ~callers_limit_timer() {
        if (home_)
            home_->leave();
    }

    static constexpr bool is_callers = true;

    /// The limit is a user of the shard in its own right: another thread may destroy the timer and
    /// the context while this one is about to end the wait.
    bool start(wait_operation& op) {
        home_ = &handle_.home();
        return handle_.wait(op, 1);
    }
    [[nodiscard]] bool end(wait_operation& op) {
        return std::exchange(home_, nullptr)->template withdraw<parting::limit>(nullptr, op);
    }

private:
    handle& handle_; ///< not touched after the start of the wait
    home* home_ = nullptr;
};

/// A limit on a timer of the operation.
template <class Time>
struct own_limit {
    using timer_type = own_limit_timer<typename Time::clock>;

    Time time;

    constexpr void check() const noexcept {}
};

/// A limit on a timer of the caller.
template <class Time, class Timer>
struct callers_limit {
    using timer_type = callers_limit_timer<Timer>;

    Time time;
    Timer* timer;

    /// Before the operation starts: an exception there would not reach a coroutine that awaits it.
    constexpr void check() const { time.check(timer_access::handle(*timer)); }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMIT_TIMER_HPP
