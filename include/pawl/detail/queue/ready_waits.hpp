// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Asynchronous waits that end when there is an event.
///
/// Model
///   Each wait is on its own timer without a deadline. When there is an event, the timers are moved
///   to the clock's first time point; when there is none again, they are moved back. So a wait
///   completes if there is an event when its handler starts, and can be cancelled like any wait.
///
/// Threads
///   All members may be called from any thread. The lock of this class is taken before the owner's.
#ifndef PAWL_DETAIL_QUEUE_READY_WAITS_HPP
#define PAWL_DETAIL_QUEUE_READY_WAITS_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <chrono>
#include <list>
#include <mutex>
#include <utility>

namespace pawl::detail {

class ready_waits {
public:
    /// Starts a wait.
    /// @param something returns whether there is an event. From then on, tell() is called for
    ///     changes. Runs under this object's lock.
    template <class Executor, class Handler, class Predicate>
    void start(const Executor& ex, Handler&& handler, Predicate something) {
        // No other thread knows the timer yet, so no lock is needed.
        timers mine;
        mine.emplace_back(ex, time::max());
        mine.back().async_wait(std::forward<Handler>(handler));
        timer& added = mine.back();
        timers over;
        const std::scoped_lock order(mutex_);
        waiting_.splice(waiting_.end(), mine);
        tell(something(), over); // takes it out if expire_all() has already ended it
        added.rearm_at(told());
        // Remove ended waits here: tell() may never come if the queue is never empty.
        while (waiting_.size() > 1 && waiting_.front().rearm_at(told()) == 0)
            over.splice(over.end(), waiting_, waiting_.begin());
    }

    /// There is an event, or there no longer is one.
    template <class Predicate>
    void tell(Predicate something) {
        timers over;
        const std::scoped_lock order(mutex_);
        tell(something(), over);
    }

    /// Cancels all waits.
    void clear() {
        timers waiting;
        {
            const std::scoped_lock order(mutex_);
            waiting.swap(waiting_);
        }
    }

private:
    using timer = basic_waitable_timer<std::chrono::steady_clock>;
    using time = timer::time_point;
    using timers = std::list<timer>;

    /// @param over receives the timers of ended waits, to be destroyed without the lock.
    void tell(bool something, timers& over) {
        if (std::exchange(told_, something) == something)
            return;
        for (auto t = waiting_.begin(); t != waiting_.end();) {
            const auto each = t++;
            if (each->rearm_at(told()) == 0)
                over.splice(over.end(), waiting_, each);
        }
    }
    [[nodiscard]] time told() const noexcept { return told_ ? time::min() : time::max(); }

    std::mutex mutex_;
    timers waiting_;
    bool told_ = false;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_READY_WAITS_HPP
