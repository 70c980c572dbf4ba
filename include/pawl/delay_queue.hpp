// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::delay_queue: values that come out when their delay has passed.
#ifndef PAWL_DELAY_QUEUE_HPP
#define PAWL_DELAY_QUEUE_HPP

#include <pawl/config.hpp>

#include <pawl/expiring_map.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace pawl {

/// A queue of values, each with a delay of its own. async_pop() takes them in the order in which
/// they fall due; those that are due at the same time in the order of push().
///
/// @code
/// pawl::delay_queue<job> retries(context);
/// const auto id = retries.push(job, 5s);
/// ... retries.cancel(id);
/// for (;;) {
///     const auto due = co_await retries.async_pop(boost::asio::use_awaitable);
///     run(due->second);   // due->first is the id
/// }
/// @endcode
///
/// An expiring_map with `keep_expired`, whose keys are numbers: what that says of times, threads,
/// work, cancellation and cost holds here. As tokio's `DelayQueue`, except for cancel().
///
/// @tparam Value is moved and swapped without exceptions
/// @tparam Clock a steady clock
/// @tparam Executor the type of I/O executor
template <class Value, class Clock, class Executor = boost::asio::any_io_executor>
class basic_delay_queue {
public:
    /// Names a value of a queue. No other value of that queue gets the same.
    using id_type = std::uint64_t;

private:
    using map_type = basic_expiring_map<id_type, Value, Clock, boost::hash<id_type>,
                                        std::equal_to<id_type>, Executor>;

public:
    using executor_type = Executor;                     ///< The type of the executor.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    /// What async_pop() returns: an id and its value.
    using value_type = typename map_type::value_type;

    /// @throws std::bad_alloc
    explicit basic_delay_queue(const executor_type& ex) : map_(ex, options()) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    explicit basic_delay_queue(ExecutionContext& context)
        : basic_delay_queue(executor_type(context.get_executor())) {}

    /// The executor of the queue.
    const executor_type& get_executor() const noexcept { return map_.get_executor(); }

    /// Adds a value that is due `delay` from now: with zero or less at once, saturating. A delay of
    /// `duration::max()` never passes.
    /// @throws std::bad_alloc, or what the clock throws, with the queue as it was.
    template <class Rep, class Period>
    id_type push(Value value, const std::chrono::duration<Rep, Period>& delay) {
        // Not negative: what is due at once comes in the order of push().
        const auto d = std::max(duration::zero(), detail::saturating_cast<duration>(delay));
        map_.put(id_type(next_), value, d, false);
        return next_++;
    }

    /// Removes a value that is not due yet, and destroys it.
    /// @return false if it is due, so that async_pop() gets it, or has got it; or if it was
    /// cancelled.
    bool cancel(id_type id) { return map_.find(id, clock_type::now()) && map_.erase(id); }

    /// The number of values that were not popped.
    [[nodiscard]] std::size_t size() const noexcept { return map_.size() + map_.expired_size(); }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// Waits for a value that is due, and takes it. See basic_expiring_map::async_pop_expired().
    template <class PopToken = boost::asio::deferred_t>
    auto async_pop(PopToken&& token = PopToken()) {
        return map_.async_pop_expired(std::forward<PopToken>(token));
    }

private:
    static expiring_map_options options() {
        return {.ttl = std::chrono::nanoseconds::max(), .keep_expired = true}; // each has its own
    }

    map_type map_;
    id_type next_ = 0;
};

/// A delay_queue on `std::chrono::steady_clock`. See basic_delay_queue.
template <class Value, class Executor = boost::asio::any_io_executor>
using delay_queue = basic_delay_queue<Value, detail::steady_clock, Executor>;

} // namespace pawl

#endif // PAWL_DELAY_QUEUE_HPP
