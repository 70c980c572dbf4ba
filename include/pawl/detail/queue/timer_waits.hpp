// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The waits of a queue's timers: who starts them, who moves them, and what happens at their end.
///
/// Invariants
///   - One-wait invariant: a timer has at most one wait, whose memory is in the timer. The thread
///     that makes the timer starts its first wait; the handler of a wait starts the next one. If it
///     has no memory, the host does. Nothing else starts a wait: the host moves that of a timer
///     that waited for room.
///
/// Threads
///   All members may be called from any thread, without the lock of the queue.
#ifndef PAWL_DETAIL_QUEUE_TIMER_WAITS_HPP
#define PAWL_DETAIL_QUEUE_TIMER_WAITS_HPP

#include <pawl/config.hpp>

#include <pawl/detail/queue/event_buffer.hpp>
#include <pawl/detail/queue/queue_leader.hpp>
#include <pawl/detail/queue/queue_timer.hpp>
#include <pawl/detail/queue/queue_waker.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/timer_service.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class timer_waits {
public:
    using timer_type = queue_timer<Clock, WaitTraits>;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using buffer_type = event_buffer<Clock, WaitTraits>;
    using waker_type = queue_waker<buffer_type>;

    timer_waits(buffer_type& buffer, waker_type& waker, queue_leader& leader) noexcept
        : buffer_(buffer), waker_(waker), leader_(leader) {}
    timer_waits& operator=(timer_waits&&) = delete;

    /// Starts a wait. One-wait invariant: only one thread may.
    /// @throws what the start of a wait throws; std::bad_alloc.
    /// @param due the due time; empty if the timer has waited for room: another thread may then be
    ///     emitting its ticks, and the present due time is used.
    void arm(timer_type& t, std::optional<time_point> due) {
        bool refused = false;
        {
            const std::scoped_lock order(t.wait_mutex);
            if (t.phase != phase::armed)
                return;
            [[maybe_unused]] const std::size_t moved = t.wait.rearm_at(due ? *due : due_now(t));
            PAWL_ASSERT(moved == 0);
            t.refused = false;
            t.starting = true; // if the start throws, until the next one
            t.wait.async_wait(queue_wait_handler<Clock, WaitTraits>(t));
            t.starting = false;
            refused = t.refused;
        }
        if (refused)
            (void)push_last(t);
        watch_deadline();
    }
    void stop_wait(timer_type& t) {
        {
            const std::scoped_lock order(t.wait_mutex);
            t.wait.cancel();
        }
        watch_deadline();
    }

    /// Pushes the last event of `t`.
    /// @return whether it was armed.
    bool push_last(timer_type& t) noexcept {
        bool armed = false;
        waker_.change([&] {
            armed = t.phase == phase::armed;
            if (armed)
                buffer_.push_last(t);
        });
        return armed;
    }

    /// The wait of `t` has ended.
    void wait_ended(timer_type& t, const boost::system::error_code& ec) {
        const auto now = [&] {
            try {
                return see_clock<Clock>();
            } catch (...) { // the clock; the next wait asks it again
                try {
                    arm(t, std::nullopt);
                } catch (...) {
                    set_adrift(t);
                }
                throw;
            }
        }();
        std::optional<time_point> next;
        bool has_stalled = false;
        waker_.change([&] {
            if (t.phase != phase::armed)
                return;
            if (ec) // the program cancelled all timers of the context
                return buffer_.push_last(t);
            buffer_.unstall(t); // by expire_all(), which also ends waits for room
            next = buffer_.emit(t, now, true);
            has_stalled = t.has_stalled;
        });
        if (has_stalled || next)
            (void)arm_or_stall(t, has_stalled ? std::nullopt : next);
    }

    /// Resumes timers that wait for room, if there is some.
    /// @return the counts at that moment.
    typename buffer_type::pushed_counts unstall() {
        for (bool goes_on = true;;) {
            {
                const std::scoped_lock lock(waker_.mutex());
                if (!goes_on || !buffer_.has_room_for_stalled())
                    return buffer_.now();
            }
            const auto now = see_clock<Clock>();
            typename buffer_type::timer_ptr t;
            bool starts = false;
            waker_.change([&] {
                t = buffer_.take_stalled();
                if (!t)
                    return;
                starts = std::exchange(t->adrift, false);
                (void)buffer_.emit(*t, now, false); // due_now() asks again
            });
            goes_on = t && (!starts || arm_or_stall(*t, std::nullopt));
            if (goes_on && !starts)
                move_wait(*t);
        }
    }

    /// Makes the descriptor readable when the queue's own timers must read their clock.
    /// @param now they must do so already.
    void watch_deadline(bool now = false) {
        using service = timer_service<Clock, WaitTraits>;
        using sleep = std::chrono::nanoseconds;
        waker_.set_deadline([this, now]() -> sleep {
            if (now)
                return sleep::zero();
            const auto next = boost::asio::use_service<service>(*leader_.context()).next_wake();
            if (next == time_point::max())
                return sleep::max();
            return std::chrono::ceil<sleep>(std::min<duration>(
                WaitTraits::to_wait_duration(saturating_difference(next, Clock::now())),
                std::chrono::hours(1)));
        });
    }

private:
    using phase = typename timer_type::phase_type;

    /// Without memory, stalls the timer until the host's next call. @return whether it was armed.
    [[nodiscard]] bool arm_or_stall(timer_type& t, const std::optional<time_point>& due) {
        try {
            arm(t, due);
            return true;
        } catch (const std::bad_alloc&) {
            set_adrift(t);
            return false;
        }
    }
    /// Leaves it to the host's next call to start a wait.
    void set_adrift(timer_type& t) {
        const std::scoped_lock lock(waker_.mutex());
        if (t.phase == phase::armed) {
            buffer_.stall(t);
            t.adrift = true;
            leader_.wake(); // the host may already sleep
        }
    }
    /// Moves the wait of `t` to the present due time. If the wait is about to be started, or its
    /// handler is on its way, that thread finds the due time.
    void move_wait(timer_type& t) {
        {
            const std::scoped_lock order(t.wait_mutex);
            if (t.phase != phase::armed)
                return;
            t.wait.rearm_at(due_now(t));
        }
        watch_deadline();
    }

    /// A timer that waits for room waits until the end of time. So it counts as work of its context
    /// (P9 of doc/guarantees.md), and learns of the context's end.
    [[nodiscard]] time_point due_now(timer_type& t) {
        const std::scoped_lock lock(waker_.mutex());
        if (t.stalled.is_linked())
            return time_point::max();
        return t.grid ? t.grid->scheduled().due : t.due;
    }

    buffer_type& buffer_;
    waker_type& waker_;
    queue_leader& leader_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_TIMER_WAITS_HPP
