// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Asynchronous waits that end when something is there.
///
/// Model
///   Each is a wait on a timer of its own, due at no time; when something is there the timers are moved
///   to the first time of all, and back when nothing is there any more. So a wait completes if something
///   is there when its handler starts, and has the cancellation of any other wait.
///
/// Threads
///   All members may be called from any thread. The lock of this class is taken before the owner's.
#ifndef PAWL_QUEUE_READY_WAITS_HPP
#define PAWL_QUEUE_READY_WAITS_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <chrono>
#include <list>
#include <mutex>
#include <utility>

namespace pawl::detail {

class ready_waits {
public:
    /// Starts a wait.
    /// @param something says whether something is there, from now on, or tell() is called. Called with
    ///        this object's lock.
    template <class Executor, class Handler, class Predicate>
    void start(const Executor& ex, Handler&& handler, Predicate something) {
        // Before anybody else knows the timer, and so without a lock.
        timers mine;
        mine.emplace_back(ex, time::max());
        mine.back().async_wait(std::forward<Handler>(handler));
        timer& added = mine.back();
        timers over;
        const std::scoped_lock order(mutex_);
        waiting_.splice(waiting_.end(), mine);
        tell(something(), over); // which takes it out if expire_all() has ended it already
        added.rearm_at(told());
        // Where the queue is never empty, nobody is told that, and nobody taken out.
        while (waiting_.size() > 1 && waiting_.front().rearm_at(told()) == 0)
            over.splice(over.end(), waiting_, waiting_.begin());
    }

    /// Something is there, or is not any more.
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

    /// @param over gets the timers of waits that have ended, to be destroyed without the lock.
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

#endif // PAWL_QUEUE_READY_WAITS_HPP
