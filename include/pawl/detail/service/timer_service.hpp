// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The service of one clock in one execution context: its options, and the assignment of threads
///   to shards.
///
/// Model
///     timer --start--> dispatcher --> shard --arm--> driver --wake--> shard --due--> unit --> handler
///
/// Threads
///   Made once per context by use_service or make_service. All members may be called from any
///   thread.
#ifndef PAWL_DETAIL_SERVICE_TIMER_SERVICE_HPP
#define PAWL_DETAIL_SERVICE_TIMER_SERVICE_HPP

#include <pawl/on_backend.hpp>
#include <pawl/options.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/dispatcher.hpp>
#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/service_cache.hpp>
#include <pawl/detail/service/service_registry.hpp>
#include <pawl/detail/service/wakeup.hpp>

#include <pawl/time/tick.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace pawl::detail {

/// The name of a clock in statistics.
template <class Clock>
inline constexpr const char* clock_name = Clock::is_steady ? "steady" : "settable";
template <>
inline constexpr const char* clock_name<std::chrono::steady_clock> = "steady_clock";
template <>
inline constexpr const char* clock_name<std::chrono::system_clock> = "system_clock";
template <class Clock>
    requires requires {
        { Clock::label } -> std::convertible_to<const char*>;
    }
inline constexpr const char* clock_name<Clock> = Clock::label;

/// The name of a time structure in statistics.
template <class Backend>
inline constexpr const char* backend_name = "custom";
template <class Backend>
    requires requires {
        { Backend::label } -> std::convertible_to<const char*>;
    }
inline constexpr const char* backend_name<Backend> = Backend::label;

/// Whether the timers serve observers themselves, and are not observed.
template <class WaitTraits>
inline constexpr bool unobserved = requires { typename WaitTraits::is_unobserved; };

} // namespace pawl::detail

namespace PAWL_DETAIL_BUILD {

/// The timer service of one clock in one execution context.
///
/// Users need it only to set options: see make_timer_service(). The first timer of a clock in a
/// context makes it with default options.
template <class Clock, class WaitTraits = boost::asio::wait_traits<Clock>>
class timer_service final
    : public boost::asio::execution_context::service,
      public detail::registered_service_on<typename detail::told_clock<Clock>::type> {
public:
    using key_type = timer_service; ///< The key under which Asio finds it.
    using backend = typename detail::backend_choice<WaitTraits>::backend; ///< The time structure.
    using dispatcher =
        detail::dispatcher<Clock, WaitTraits>;     ///< What serves the timers of a shard.
    using time_point = typename Clock::time_point; ///< That of the clock.
    using duration = typename Clock::duration;     ///< That of the clock.

    static inline boost::asio::execution_context::id id; ///< The id under which Asio finds it.

    /// Uses default options, with the precision of `Clock::default_precision` if there is one.
    explicit timer_service(boost::asio::execution_context& context)
        : timer_service(context, default_options()) {}

    /// @throws std::invalid_argument if an option is out of range; the text names it.
    timer_service(boost::asio::execution_context& context, const options& o)
        : boost::asio::execution_context::service(context), options_(detail::validated(o)),
          wakeup_(context, options_),
          registry_(boost::asio::use_service<detail::service_registry>(context)) {
        // Makes the strand service now, so that it shuts down after this service, and handlers that
        // strands hold are invoked. Not by a strand: one that gets no memory for its mutex is
        // destroyed before it is initialised.
        if (o.on_shutdown == shutdown_policy::deliver)
            boost::asio::use_service<boost::asio::detail::strand_executor_service>(context);
    }

    ~timer_service() {
        life_->end();
        registry_.remove(*this);
        shutdown(); // not yet called if the service was made during the shutdown
    }

    /// Shared by threads that cache this service.
    [[nodiscard]] detail::service_life& life() noexcept { return *life_; }

    /// The dispatcher for timers made by this thread.
    [[nodiscard]] dispatcher& enter() {
        if (!registered_.load(std::memory_order_acquire)) { // pairs with the release below
            registry_.add(*this);
            registered_.store(true, std::memory_order_release);
        }
        return options_.shards == 1 ? *shards()[0] : seat_of_this_thread();
    }

    /// Completes every pending wait with `ec`; limits count as reached, or as cancelled.
    /// @return how many waits.
    std::size_t expire_all(const boost::system::error_code& ec,
                           detail::wait_ending how = detail::wait_ending::early) override {
        std::size_t count = 0;
        for (dispatcher* d : shards())
            count += d->expire_all(ec, how);
        return count;
    }

    /// The pressure of a scaled_backend, from 0 to 1. clock_moved() makes it effective.
    [[nodiscard]] std::atomic<double>& pressure() noexcept { return wakeup_.pressure(); }

    /// Reads the clock now. For clocks that are moved by hand.
    /// @return how many waits have become due.
    std::size_t clock_moved() override { return wakeup_.collect(); }

#ifdef PAWL_VIRTUAL_TIME
    /// The clock runs again: the driver must recompute its sleep.
    void time_goes_on() override {
        if (next_wake() != time_point::max())
            wakeup_.hurry();
    }
#endif

    /// For observers: see pawl::event_feed and pawl::stats().
    void watch(const std::shared_ptr<detail::context_watcher>& watcher) override {
        if constexpr (!detail::unobserved<WaitTraits>)
            wakeup_.watch(watcher);
    }
    /// The names of the clock and the time structure, and the number of wake-ups.
    [[nodiscard]] detail::registered_service::description describe() const noexcept override {
        return {detail::clock_name<Clock>, detail::backend_name<backend>, wakeup_.wake_ups()};
    }
    /// The existing shards.
    [[nodiscard]] std::vector<detail::observed_shard*> observed_shards() const override {
        if constexpr (detail::unobserved<WaitTraits>)
            return {};
        else
            return {shards().begin(), shards().end()};
    }

    /// A lower bound for the time of the next expiry; `time_point::max()` if no wait is armed.
    [[nodiscard]] time_point next_wake() const override {
        time::tick next = time::tick::never();
        for (dispatcher* d : shards())
            next = std::min(next, d->state().next_wake());
        return shards()[0]->scale().time_of(next);
    }

    /// How many waits are due or cancelled and have not begun their handlers, excluding those
    /// handed to their executors.
    [[nodiscard]] std::size_t due_count() const override {
        std::size_t count = 0;
        for (dispatcher* d : shards())
            count += d->state().due_count();
        return count;
    }

private:
    struct leave_life {
        void operator()(detail::service_life* l) const { l->leave(); }
    };

    static options default_options() {
        options o;
        if constexpr (requires { Clock::default_precision; })
            o.precision = Clock::default_precision;
        return o;
    }

    void shutdown() override { wakeup_.shutdown(); }

    struct seat {
        const void* thread;
        dispatcher* taken;
    };

    /// Assigns shards to threads round robin, in the order of their first timers.
    dispatcher& seat_of_this_thread() {
        const void* const self = detail::this_thread();
        const std::scoped_lock lock(seats_mutex_);
        for (const seat& s : seats_)
            if (s.thread == self)
                return *s.taken;
        dispatcher& taken = seats_.empty() ? *shards()[0] : wakeup_.shard_for(seats_.size());
        seats_.push_back({self, &taken});
        return taken;
    }

    [[nodiscard]] const auto& shards() const noexcept { return wakeup_.shards(); }

    const options options_;
    const std::unique_ptr<detail::service_life, leave_life> life_{&detail::service_life::begin()};
    detail::wakeup<Clock, WaitTraits> wakeup_;
    detail::service_registry& registry_;
    std::atomic<bool> registered_{false};
    std::mutex seats_mutex_;
    std::vector<seat> seats_; ///< the threads, if there may be several shards
};

} // namespace PAWL_DETAIL_BUILD

#endif // PAWL_DETAIL_SERVICE_TIMER_SERVICE_HPP
