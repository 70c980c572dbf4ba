// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The waits for what has expired, of an expiring_map.
///
/// Model
///   A wait is one on a timer of its own, which never expires. It ends by a cancel of that
///   timer. Its `state` decides whether it was given an entry before it began to complete.
///
/// Threads
///   The owner serialises all calls. Handlers may run, and be destroyed, anywhere.
#ifndef PAWL_DETAIL_LIMIT_EXPIRED_WAITS_HPP
#define PAWL_DETAIL_LIMIT_EXPIRED_WAITS_HPP

#include <pawl/config.hpp>

#include <pawl/detail/service/timer_handle.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// @tparam Timer a basic_waitable_timer
template <class Entry, class Timer>
class expired_waits {
    struct waiter {
        enum state_type { waits, given, over };

        explicit waiter(const typename Timer::executor_type& ex)
            : timer(ex, Timer::time_point::max()) {}

        /// Moves the first of `from` here, unless the wait is over.
        void give(std::list<Entry>& from) {
            result.splice(result.end(), from, from.begin());
            state_type seen = waits;
            // release: pairs with finish(). relaxed: nothing is read.
            if (state.compare_exchange_strong(seen, given, std::memory_order_release,
                                              std::memory_order_relaxed))
                timer.cancel();
            else
                from.splice(from.begin(), result);
        }
        [[nodiscard]] bool is_over() const noexcept {
            return state.load(std::memory_order_relaxed) == over; // relaxed: nothing is read
        }
        /// @return whether there is a result. In any thread.
        bool finish() noexcept {
            return state.exchange(over, std::memory_order_acquire) == given; // pairs with give()
        }

        std::list<Entry> result; ///< one at most
        std::atomic<state_type> state{waits};
        Timer timer;
    };

    template <class Handler>
    class wait_handler {
    public:
        using pawl_wrapped_handler = Handler;

        template <class H>
        wait_handler(std::shared_ptr<waiter> w, H&& handler)
            : handler_(std::forward<H>(handler)), waiter_(std::move(w)) {}
        wait_handler(wait_handler&&) = default;
        wait_handler& operator=(wait_handler&&) = delete;
        /// Destroyed with the context of the handler, which may not be that of the map.
        ~wait_handler() {
            if (waiter_)
                waiter_->finish();
        }

        const Handler& handler() const noexcept { return handler_; }

        void operator()(boost::system::error_code ec) {
            std::optional<Entry> entry;
            if (waiter_->finish()) {
                ec = {};
                entry.emplace(std::move(waiter_->result.front()));
            } else if (!ec) { // expire_all() with success
                ec = boost::asio::error::operation_aborted;
            }
            waiter_.reset();
            std::move(handler_)(ec, std::move(entry));
        }

    private:
        Handler handler_;
        std::shared_ptr<waiter> waiter_;
    };

public:
    expired_waits() = default;
    expired_waits& operator=(expired_waits&&) = delete;
    /// Ends all waits.
    ~expired_waits() {
        for (const auto& w : waiters_)
            w->timer.cancel();
    }

    /// @throws std::bad_alloc, with nothing started
    template <class Handler>
    void start(const typename Timer::executor_type& ex, Handler&& handler) {
        std::erase_if(waiters_, [](const auto& w) { return w->is_over(); });
        const auto w = std::make_shared<waiter>(ex);
        waiters_.push_back(w);
        try {
            w->timer.async_wait(
                wait_handler<std::decay_t<Handler>>(w, std::forward<Handler>(handler)));
        } catch (...) {
            waiters_.pop_back();
            throw;
        }
    }

    /// Whether a wait has not ended.
    [[nodiscard]] bool pending() const noexcept {
        return std::any_of(waiters_.begin(), waiters_.end(),
                           [](const auto& w) { return timer_access::handle(w->timer).armed(); });
    }

    /// Gives what has expired to those who wait.
    void serve(std::list<Entry>& expired) {
        while (!expired.empty() && !waiters_.empty()) {
            const auto first = std::move(waiters_.front());
            waiters_.pop_front();
            first->give(expired);
        }
    }

private:
    std::deque<std::shared_ptr<waiter>> waiters_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_EXPIRED_WAITS_HPP
