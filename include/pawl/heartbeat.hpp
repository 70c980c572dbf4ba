// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::heartbeat: keeps a connection alive, and notices when its peer is gone.
#ifndef PAWL_HEARTBEAT_HPP
#define PAWL_HEARTBEAT_HPP

#include <pawl/config.hpp>

#include <pawl/alarm.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/timer_handle.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

namespace pawl {

/// How often a heartbeat checks.
struct heartbeat_options {
    /// From one check to the next.
    detail::saturated<std::chrono::nanoseconds> interval = std::chrono::nanoseconds(0);
    /// How many intervals in a row without a byte from the peer are a failure. One says that a
    /// stall of this program of an interval is a failure, too.
    unsigned misses = 2;
};

/// Calls `send` in each interval in which nothing was sent, and `fail` after `misses` intervals in
/// a row in which nothing was received.
///
/// @code
/// pawl::heartbeat beat(strand, {.interval = 30s, .misses = 3}, [&] { write(ping); },
///                      [&] { socket.close(); });
/// ... beat.received();    // after each read, whatever it was
/// ... beat.sent();        // with each write
/// @endcode
///
/// received() and sent() are one store each, and read no clock. One alarm checks the two flags at
/// the end of each interval. So the times are:
/// @li `fail` is called no less than `misses` intervals after the last byte, and up to one interval
///     more;
/// @li on a connection without other traffic `send` is called once each interval. After other
///     traffic it is silent for up to two. Give the peer a longer timeout.
///
/// An interval begins when the last one was checked, so after a stall of the program one interval
/// has passed, not several. What `send` says by sent() while it runs does not count as other
/// traffic.
///
/// It begins at once, and `fail` ends it; restart() begins anew. Both functions run on the
/// associated executor of `send`, or on that of the heartbeat. In them it may be stopped,
/// restarted, and destroyed. They may throw, as handlers: the heartbeat goes on after `send` has.
/// While it runs it is outstanding work. expire_all() and cancel_all() stop it, and so does an
/// alarm that is refused (options::max_pending): see running().
///
/// @tparam Send, Fail function objects that take nothing
/// @tparam Clock, Executor as with basic_alarm. If the clock throws when an interval ends, that leaves
///     `run()`, and the interval is checked again at once.
/// @par Thread safety
/// sent() and received() may be called from any thread, but not during the destruction. All other
/// members need one thread at a time: if several threads run the context, give it a strand, and
/// destroy it there.
/// @par Complexity
/// The constructor allocates two blocks. After that nothing allocates. One wake-up each interval.
template <class Send, class Fail, class Clock, class Executor = boost::asio::any_io_executor>
class basic_heartbeat {
public:
    using executor_type = Executor;                     ///< The type of the executor.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.

    /// Begins the first interval.
    /// @throws std::invalid_argument unless `interval > 0` and `misses > 0`. std::bad_alloc, or
    /// what
    ///     the moves of the functions throw.
    basic_heartbeat(const executor_type& ex, const heartbeat_options& o, Send send, Fail fail)
        : interval_(checked(o)), misses_(o.misses),
          alarm_(ex, checker{this, alive_, std::move(send), std::move(fail)}) {
        restart();
    }

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_heartbeat(ExecutionContext& context, const heartbeat_options& o, Send send, Fail fail)
        : basic_heartbeat(executor_type(context.get_executor()), o, std::move(send),
                          std::move(fail)) {}

    basic_heartbeat& operator=(basic_heartbeat&&) = delete;

    /// Something was sent.
    void sent() noexcept { sent_.store(true, std::memory_order_relaxed); } // relaxed: see check()

    /// Something was received. It counts for the interval in which this is called.
    void received() noexcept {
        received_.store(true, std::memory_order_relaxed); // relaxed: see check()
    }

    /// Begins anew, without a miss: after a failure, or a new connection.
    /// @return false if the alarm refused (see basic_alarm::arm_after()): the heartbeat is stopped.
    bool restart() {
        missed_ = 0;
        sent_.store(false, std::memory_order_relaxed); // relaxed: see check()
        received_.store(false, std::memory_order_relaxed);
        return alarm_.arm_after(interval_);
    }

    /// Ends it. No function is called until restart(), unless its call has begun.
    void stop() noexcept { alarm_.disarm(); }

    /// Whether it has neither failed nor been stopped.
    [[nodiscard]] bool running() const noexcept { return alarm_.armed(); }

private:
    enum class finding { nothing, silence_here, silence_there };

    /// The function of the alarm. It may outlive the heartbeat while it runs.
    struct checker {
        using pawl_wrapped_handler = Send;
        const Send& handler() const noexcept { return send; }

        void operator()() {
            beat->goes_on(); // first: send() may throw
            switch (beat->check()) {
            case finding::nothing:
                break;
            case finding::silence_here: {
                const own_sent taken_back{*this};
                send();
                break;
            }
            case finding::silence_there:
                beat->stop();
                fail();
                break;
            }
        }

        /// What send() says by sent() is no other traffic, also if it throws.
        struct own_sent {
            ~own_sent() {
                if (!self.alive.expired()) // relaxed: a flag that is lost makes one more heartbeat
                    self.beat->sent_.store(false, std::memory_order_relaxed);
            }
            const checker& self; ///< it may outlive its heartbeat
        };

        basic_heartbeat* beat;
        std::weak_ptr<const char> alive;
        Send send;
        Fail fail;
    };

    /// Begins the next interval. @throws what the clock throws; then this one is checked again, now
    void goes_on() {
        try {
            alarm_.arm_after(interval_);
        } catch (...) {
            detail::timer_access::arm_now(alarm_);
            throw;
        }
    }

    /// Takes the flags of an interval. Relaxed: a flag says only that there was traffic, and one
    /// that comes too late for this interval counts in the next.
    finding check() noexcept {
        const bool was_sent = sent_.exchange(false, std::memory_order_relaxed);
        if (received_.exchange(false, std::memory_order_relaxed))
            missed_ = 0;
        else if (++missed_ >= misses_)
            return finding::silence_there;
        return was_sent ? finding::nothing : finding::silence_here;
    }

    static duration checked(const heartbeat_options& o) {
        if (o.interval <= o.interval.zero())
            throw std::invalid_argument(
                "pawl: the interval of a heartbeat must be greater than zero");
        if (o.misses == 0)
            throw std::invalid_argument("pawl: a heartbeat fails after one miss or more, not 0");
        return detail::saturating_cast<duration>(o.interval);
    }

    const duration interval_;
    const unsigned misses_;
    unsigned missed_ = 0;
    std::atomic<bool> sent_{false};
    std::atomic<bool> received_{false};
    const std::shared_ptr<const char> alive_ = std::make_shared<const char>();
    basic_alarm<checker, Clock, Executor> alarm_;
};

/// A heartbeat on `std::chrono::steady_clock`. See basic_heartbeat.
template <class Send, class Fail, class Executor = boost::asio::any_io_executor>
class heartbeat : public basic_heartbeat<Send, Fail, detail::steady_clock, Executor> {
public:
    using basic_heartbeat<Send, Fail, detail::steady_clock, Executor>::basic_heartbeat;
};

/// @cond
template <class Where, class Send, class Fail>
heartbeat(Where&&, heartbeat_options, Send, Fail)
    -> heartbeat<Send, Fail, detail::deduced_executor<Where>>;
/// @endcond

} // namespace pawl

#endif // PAWL_HEARTBEAT_HPP
