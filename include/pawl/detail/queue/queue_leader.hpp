// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The threads that sleep in a queue. If the queue keeps its own timers, one of them leads: it
///   runs their context, and sleeps there.
///
/// Invariants
///   - At most one thread runs the context.
///   - A thread whose sleep began before wake() leaves it. If it was the leader, another one may
///     lead.
///
/// Threads
///   The queue's lock guards everything except notify().
#ifndef PAWL_DETAIL_QUEUE_QUEUE_LEADER_HPP
#define PAWL_DETAIL_QUEUE_QUEUE_LEADER_HPP

#include <pawl/config.hpp>

#include <pawl/detail/service/optional_mutex.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

namespace pawl::detail {

class queue_leader {
public:
    using real_time = std::chrono::steady_clock::time_point;
    using lock_type = std::unique_lock<std::mutex>;

    /// @param own whether the queue keeps its own timers; otherwise no thread leads.
    explicit queue_leader(bool own) {
        if (own)
            work_.emplace(
                (context_ = std::make_unique<boost::asio::io_context>(1))->get_executor());
    }

    /// The context to run; null if the program runs it.
    [[nodiscard]] boost::asio::io_context* context() const noexcept { return context_.get(); }
    /// Whether a thread may lead.
    [[nodiscard]] bool is_free() const noexcept { return context_ && how_ == leading::none; }
    /// Whether this thread leads: it is in a handler of the context.
    [[nodiscard]] bool leads() const noexcept {
        return how_ != leading::none && thread_ == this_thread();
    }
    /// Whether it does so in wait().
    [[nodiscard]] bool leads_in_wait() const noexcept { return leads() && how_ != leading::polls; }

    /// Sleeps until wake(), or until `until`; as the leader until a handler has run.
    /// @return whether it has led.
    bool sleep(lock_type& lock, const std::optional<real_time>& until) {
        if (!is_free()) {
            stand_by(lock, until);
            return false;
        }
        const leadership mine(*this, lock, leading::sleeps);
        until ? context_->run_one_until(*until) : context_->run_one();
        return true;
    }
    /// Sleeps, and does not lead.
    void stand_by(lock_type& lock, const std::optional<real_time>& until) {
        ++standing_by_;
        until ? (void)there_.wait_until(lock, *until) : there_.wait(lock);
        --standing_by_;
    }
    /// Runs the handlers that are ready, `most` at most. @pre is_free()
    /// @return whether there may be more.
    bool poll(lock_type& lock, std::size_t most, bool waits) {
        const leadership mine(*this, lock, waits ? leading::waits : leading::polls);
        while (most != 0 && context_->poll_one() != 0)
            --most;
        return most == 0;
    }

    /// Wakes all that sleep.
    void wake() noexcept {
        if (interrupt())
            notify();
    }
    /// Wakes the leader. Not later, without the lock: that might stop the next one, who is not asleep.
    /// @return whether notify() must wake others.
    [[nodiscard]] bool interrupt() noexcept {
        if (how_ == leading::sleeps)
            context_->stop();
        return standing_by_ != 0;
    }
    void notify() noexcept { there_.notify_all(); }

    /// Destroys the context and its waits. @pre no thread leads.
    void close() noexcept {
        work_.reset();
        context_.reset();
    }

private:
    enum class leading : unsigned char {
        none,
        sleeps, ///< until there is an event, or a timer is due
        polls,  ///< runs what is due
        waits   ///< the same, in wait()
    };

    /// This thread runs the context, and does not hold the lock meanwhile.
    class leadership {
    public:
        leadership(queue_leader& of, lock_type& lock, leading how) : of_(of), lock_(lock) {
            of_.how_ = how;
            of_.thread_ = this_thread();
            of_.context_->restart();
            lock_.unlock();
        }
        leadership& operator=(leadership&&) = delete;
        ~leadership() {
            lock_.lock();
            of_.how_ = leading::none;
            of_.wake(); // one of them may lead
        }

    private:
        queue_leader& of_;
        lock_type& lock_;
    };

    std::unique_ptr<boost::asio::io_context> context_;
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
    std::condition_variable there_;
    std::size_t standing_by_ = 0; ///< threads that wait for there_
    leading how_ = leading::none;
    const void* thread_ = nullptr; ///< the last leader
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUE_LEADER_HPP
