// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Who must be told that a queue has events, or has none.
///
/// Model
///   After each change, find_news() asks under the lock whether it is as the others were told. If not, it
///   stops the leader and sets or clears the descriptor. Then, without the lock, tell() tells the
///   other threads that sleep, and the waits of async_wait().
///
///   Each wait of async_wait() is on its own timer without a deadline. When there is an event, the
///   timers are moved to the clock's first time point; when there is none again, they are moved
///   back. So a wait completes if there is an event when its handler starts, and can be cancelled
///   like any wait.
///
/// Invariants
///   - A thread that finds the queue empty under the lock, and wants to learn of the next event,
///     calls expect(). The next find_news() that finds an event wakes all.
///   - With a descriptor, or a wait of async_wait(), find_news() is also called when the last event was
///     taken: Content::watch() asks for it.
///
/// Threads
///   All members may be called from any thread, find_news() and expect() under mutex(). The lock of the
///   waits and that of the deadline are taken before it.
#ifndef PAWL_DETAIL_QUEUE_QUEUE_WAKER_HPP
#define PAWL_DETAIL_QUEUE_QUEUE_WAKER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/queue/queue_leader.hpp>
#include <pawl/detail/queue/ready_descriptor.hpp>

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace pawl::detail {

/// @tparam Content the events: size(), watch() and watched(), as those of event_buffer.
template <class Content>
class queue_waker {
public:
    /// Whom to tell after the lock is released.
    using news = unsigned;

    queue_waker(Content& content, queue_leader& leader) noexcept
        : content_(content), leader_(leader) {}
    queue_waker& operator=(queue_waker&&) = delete;

    /// The lock of the queue.
    [[nodiscard]] std::mutex& mutex() const noexcept { return mutex_; }

    /// Changes the content under the lock, and tells those who must know.
    template <class F>
    void change(F f) {
        news n = 0;
        {
            const std::scoped_lock lock(mutex_);
            f();
            n = find_news();
        }
        tell(n);
    }
    /// Called after each change, under the lock. @return for tell().
    [[nodiscard]] news find_news() noexcept { return told_ && !content_.watched() ? 0 : compare(); }
    /// The same after a push, which removes nothing.
    [[nodiscard]] news find_news_of_push() noexcept { return told_ ? 0 : compare(); }
    /// @pre the lock is not held.
    void tell(news n) {
        if (n != 0)
            tell_others(n);
    }
    /// This thread goes to sleep, and wants to learn of the next event. @pre there is none.
    void expect() noexcept { told_ = false; }

    /// The descriptor to poll.
    /// @param with_deadline whether set_deadline() is of use.
    /// @throws boost::system::system_error
    [[nodiscard]] int descriptor(bool with_deadline) {
        const std::scoped_lock lock(mutex_);
        if (!descriptor_) {
            descriptor_.emplace(with_deadline);
            descriptor_->set(watch());
            has_deadline_ = with_deadline;
        }
        return descriptor_->get();
    }
    /// Makes the descriptor readable after `d()`, which is called without the lock.
    template <class F>
    void set_deadline(F d) {
        if (!has_deadline_)
            return;
        const std::scoped_lock order(deadline_mutex_);
        const std::chrono::nanoseconds sleep = d();
        const std::scoped_lock lock(mutex_);
        if (descriptor_)
            descriptor_->ready_after(sleep);
    }

    /// Starts a wait that ends when there is an event.
    template <class Executor, class Handler>
    void start_wait(const Executor& ex, Handler&& handler) {
        // No other thread knows the timer yet, so no lock is needed.
        timers mine;
        mine.emplace_back(ex, time::max());
        mine.back().async_wait(std::forward<Handler>(handler));
        timer& added = mine.back();
        timers over;
        const std::scoped_lock order(waits_mutex_);
        waiting_.splice(waiting_.end(), mine);
        move_waits(over, true); // takes it out if expire_all() has already ended it
        added.rearm_at(due_);
        // Remove ended waits here: tell() may never come if the queue is never empty.
        while (waiting_.size() > 1 && waiting_.front().rearm_at(due_) == 0)
            over.splice(over.end(), waiting_, waiting_.begin());
    }

    /// Closes the descriptor, and cancels all waits.
    void close() {
        timers waiting;
        const std::scoped_lock both(waits_mutex_, mutex_);
        waiting.swap(waiting_);
        descriptor_.reset();
        has_deadline_ = false;
    }

private:
    using timer = basic_waitable_timer<std::chrono::steady_clock>;
    using time = timer::time_point;
    using timers = std::list<timer>;

    static constexpr news sleepers = 1;
    static constexpr news waits = 2; ///< of async_wait()

    [[nodiscard]] PAWL_DETAIL_NOINLINE news compare() noexcept {
        const bool something = content_.size() != 0;
        if (something && told_)
            return 0;
        told_ = something; // if not, the others may not have been told: see expect()
        if (descriptor_)
            descriptor_->set(something);
        return (something && leader_.interrupt() ? sleepers : 0) | (notifies_ ? waits : 0);
    }
    /// From now on, find_news() is called when the last event was taken. @return whether one is there.
    bool watch() noexcept {
        content_.watch();
        return told_ = content_.size() != 0;
    }

    PAWL_DETAIL_NOINLINE void tell_others(news n) {
        if (n & sleepers)
            leader_.notify();
        if (!(n & waits))
            return;
        timers over;
        const std::scoped_lock order(waits_mutex_);
        move_waits(over, false);
    }
    /// @param over receives the timers of ended waits, to be destroyed without the lock.
    void move_waits(timers& over, bool starts) {
        bool something = false;
        {
            const std::scoped_lock lock(mutex_);
            notifies_ |= starts;
            something = starts ? watch() : content_.size() != 0;
        }
        const time due = something ? time::min() : time::max();
        if (std::exchange(due_, due) == due)
            return;
        for (auto t = waiting_.begin(); t != waiting_.end();) {
            const auto each = t++;
            if (each->rearm_at(due_) == 0)
                over.splice(over.end(), waiting_, each);
        }
    }

    Content& content_;
    queue_leader& leader_;
    mutable std::mutex mutex_;
    bool told_ = false;     ///< that there are events
    bool notifies_ = false; ///< async_wait() was called
    std::optional<ready_descriptor> descriptor_;
    std::atomic<bool> has_deadline_{false};
    std::mutex deadline_mutex_; ///< locked before mutex_

    std::mutex waits_mutex_; ///< locked before mutex_
    timers waiting_;
    time due_ = time::max(); ///< of the timers in waiting_
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUE_WAKER_HPP
