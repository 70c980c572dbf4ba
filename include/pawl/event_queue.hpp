// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::event_queue: timers and completions for hosts that poll and cannot take callbacks.
#ifndef PAWL_EVENT_QUEUE_HPP
#define PAWL_EVENT_QUEUE_HPP

#include <pawl/config.hpp>

#include <pawl/detail/queue/queue_core.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl {

/// An event queue for a host that cannot take callbacks: a scripting language, a game loop, a GUI,
/// the loop of another library. Nothing runs until the host takes it from the queue.
///
/// There are two kinds of events. A timer of the queue, made by once() or every(), adds an event
/// when it expires. The queue is also an execution context: the completion of an operation whose
/// handler is bound to its executor is an event.
///
/// @code
/// boost::asio::io_context io;      // run by another thread
/// pawl::event_queue events(io);
///
/// auto ticks = events.every(100ms, [] { puts("tick"); });
/// socket.async_read_some(buffer, bind_executor(events.get_executor(), on_read));
///
/// while (playing) {
///     events.process_events();     // ticks, and on_read, run here and nowhere else
///     draw_frame();
/// }
/// @endcode
///
/// The timers live in an execution context that the program runs, or in the queue itself. A host
/// without a second thread makes an `event_queue events;`: wait() then sleeps until a timer is due.
///
/// @par Order
/// First in, first out. Events of timers enter when they are due, in the order of their expiries as
/// far as the options of the timer service allow. Events of executors enter when they are
/// submitted.
///
/// @par The end of a timer
/// disarm() makes a timer emit one last event at once, and nothing after it. Events already in the
/// queue are handled. destroy() also discards those. Taking the last event destroys the function. A
/// one-off ends with its only event.
///
/// @par Thread safety
/// All members, and those of timers, may be called from any thread, and from functions that the
/// queue calls. Exception: only one thread at a time processes events. The queue may be destroyed
/// by one of its functions, and while threads are in wait(). No other call may overlap its
/// destruction.
///
/// @par Cost
/// A one-off takes one allocation, an interval two. An event takes none, unless the queue has to
/// grow. A function of an executor takes none if it is trivially copyable and at most 40 bytes
/// long.
///
/// @tparam Clock, WaitTraits as with basic_waitable_timer.
template <class Clock, class WaitTraits = boost::asio::wait_traits<Clock>>
class basic_event_queue : public boost::asio::execution_context {
    using core_type = detail::queue_core<Clock, WaitTraits>;
    class initiate_async_wait;

public:
    using clock_type = Clock;                           ///< The clock of its timers.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    using traits_type = WaitTraits;                     ///< How waits use the clock.
    using event = basic_queue_event<Clock>;             ///< What the function of a timer receives.

    /// Submits functions to the queue. execute() never runs a function itself.
    class executor_type {
    public:
        /// Always succeeds in a full queue: event_queue_options::capacity does not bound functions.
        /// @throws std::bad_alloc, with the function destroyed.
        template <class F>
        void execute(F&& f) const {
            queue_->core_->execute(std::forward<F>(f));
        }

        /// The queue.
        [[nodiscard]] basic_event_queue& query(boost::asio::execution::context_t) const noexcept {
            return *queue_;
        }
        /// Never.
        [[nodiscard]] static constexpr boost::asio::execution::blocking_t
        query(boost::asio::execution::blocking_t) noexcept {
            return boost::asio::execution::blocking.never;
        }

        friend bool operator==(const executor_type&, const executor_type&) noexcept = default;

    private:
        friend class basic_event_queue;
        explicit executor_type(basic_event_queue& queue) noexcept : queue_(&queue) {}

        basic_event_queue* queue_;
    };

    /// A handle of a timer. It may be copied. It may be dropped while the timer continues, and may
    /// outlive the queue.
    class timer {
    public:
        /// A handle of no timer.
        timer() = default;

        /// Stops the timer, which emits one last event now. Its events already in the queue are
        /// handled, also if the function of the timer calls this: a late host may then call it
        /// several times more. destroy() prevents that. No effect if the timer was disarmed or has
        /// ended.
        /// @return whether the timer was armed.
        /// @par Complexity
        /// O(1). Does not allocate.
        bool disarm() { return timer_ && timer_->core->disarm(*timer_); }

        /// Ends the timer: disarm(), and its events in the queue are discarded. If another thread
        /// is running or destroying the function of the timer, waits until it has. Afterwards the
        /// function neither runs nor will run. It is destroyed, unless it is the caller.
        /// @par Complexity
        /// O(1), amortised, apart from that wait. Does not allocate.
        void destroy() {
            if (const auto t = timer_) // the function may own this handle
                t->core->destroy(*t, {});
        }
        /// As destroy(), with a limit in real time for the wait. The timer ends in any case.
        /// @return false if after `d` another thread is still running or destroying the function.
        bool destroy_for(std::chrono::nanoseconds d) {
            const auto t = timer_;
            return !t || t->core->destroy(*t, detail::saturating_sum(now(), since(d)));
        }

        /// Whether the timer will emit events.
        [[nodiscard]] bool armed() const noexcept { return is(phase::armed); }
        /// Whether its last event was taken, it was destroyed, or the handle is empty.
        [[nodiscard]] bool ended() const noexcept { return !timer_ || is(phase::ended); }

        friend bool operator==(const timer&, const timer&) noexcept = default;

    private:
        friend class basic_event_queue;
        using phase = typename core_type::timer_type::phase_type;

        explicit timer(std::shared_ptr<typename core_type::timer_type> t) noexcept
            : timer_(std::move(t)) {}
        [[nodiscard]] bool is(phase p) const noexcept { return timer_ && timer_->phase == p; }

        std::shared_ptr<typename core_type::timer_type> timer_;
    };

    /// A queue that keeps its own timers. They expire while a thread is in wait(), and when a
    /// thread calls process_events(), pending() or inqueue().
    /// @throws std::invalid_argument if an option is out of range; the text names it.
    explicit basic_event_queue(const event_queue_options& options = {})
        : core_(std::make_shared<core_type>(options)) {}

    /// A queue with its timers in a context that the program runs.
    /// @throws std::invalid_argument if an option is out of range; the text names it.
    template <detail::execution_context_type ExecutionContext>
        requires(!std::same_as<ExecutionContext, basic_event_queue>)
    explicit basic_event_queue(ExecutionContext& context, const event_queue_options& options = {})
        : basic_event_queue(boost::asio::any_io_executor(context.get_executor()), options) {}

    /// As above, with an executor of that context.
    explicit basic_event_queue(const boost::asio::any_io_executor& ex,
                               const event_queue_options& options = {})
        : core_(std::make_shared<core_type>(ex, options)) {}

    basic_event_queue(const basic_event_queue&) = delete;
    basic_event_queue& operator=(const basic_event_queue&) = delete;

    /// Destroys all events, and ends all timers and destroys their functions. Threads in wait()
    /// leave it with an exception before the destructor returns. Waits of async_wait() are
    /// cancelled.
    ~basic_event_queue() {
        shutdown();
        core_->close();
        destroy();
    }

    /// The executor that submits functions to the queue.
    [[nodiscard]] executor_type get_executor() noexcept { return executor_type(*this); }

    /// The context of the timers. Do not run the queue's own context; it is there for
    /// make_timer_service(), manual_clock::advance() and the like.
    [[nodiscard]] boost::asio::execution_context& timer_context() const noexcept {
        return boost::asio::query(core_->executor(), boost::asio::execution::context);
    }

    /// The options in force.
    [[nodiscard]] const event_queue_options& options() const noexcept { return core_->options(); }

    // --- timers --------------------------------------------------------------------------------

    /// Makes a timer that emits one event, `d` from now, saturating.
    /// @param d zero or more.
    /// @param f called with the event, or without an argument, when the host handles it.
    /// @throws std::invalid_argument if `d` is negative or `f` is empty; std::bad_alloc. Nothing is
    ///     left behind.
    /// @par Complexity
    /// O(1), amortised.
    template <class F>
    timer once(const detail::saturated<duration>& d, F&& f) {
        check<F>();
        if (d < duration::zero())
            throw std::invalid_argument("pawl: a one-off timer after " + time::detail::text_of(d) +
                                        ": must be zero or more");
        return once_at(detail::sum_from_now<Clock>(d), std::forward<F>(f));
    }
    /// Makes a timer that emits one event at `t`, or now if that has passed.
    template <class F>
    timer once_at(const time_point& t, F&& f) {
        check<F>();
        return timer(core_->once(t, std::forward<F>(f)));
    }

    /// Makes a timer that emits an event every `period`, first after one period. The ticks are
    /// points of a grid, as with pawl::interval_timer, so errors do not accumulate.
    /// @param period the distance between ticks.
    /// @param f called with the event, or without an argument, when the host handles it.
    /// @param policy what happens after late ticks: the context did not run, or the queue was full.
    /// @throws std::invalid_argument unless `period` is greater than zero, if `f` is empty, or if
    ///     there is no such policy; std::bad_alloc. Nothing is left behind.
    template <class F>
    timer every(const detail::saturated<duration>& period, F&& f,
                missed_tick_policy policy = missed_tick_policy::burst) {
        return every_from(detail::sum_from_now<Clock>(period), period, std::forward<F>(f), policy);
    }
    /// As above, with the first tick at `first`.
    template <class F>
    timer every_from(const time_point& first, const detail::saturated<duration>& period, F&& f,
                     missed_tick_policy policy = missed_tick_policy::burst) {
        check<F>();
        return timer(core_->every(first, period, policy, std::forward<F>(f)));
    }

    // --- processing ----------------------------------------------------------------------------

    /// Handles all events that are in the queue now. Events that arrive during the call stay.
    ///
    /// Exceptions of functions pass through. The event of such a function counts as handled; the
    /// next call continues after it.
    /// @return the number of handled events, without discarded ones.
    /// @throws std::logic_error if called from a function of the queue, or while another thread
    ///     processes events.
    std::size_t process_events() { return process_events(core_type::all); }
    /// As above, for at most `most` events.
    std::size_t process_events(std::size_t most) {
        const auto core = core_; // a function may destroy the queue
        return core->process(most);
    }
    /// As above, for at most one event.
    std::size_t process_one() { return process_events(1); }

    /// Number of events that will be handled, as of now.
    [[nodiscard]] std::size_t pending() const {
        const auto core = core_; // a handler of async_wait() may destroy the queue
        return core->pending();
    }
    /// Number of events: pending(), plus the last events of disarmed timers.
    [[nodiscard]] std::size_t inqueue() const {
        const auto core = core_; // a handler of async_wait() may destroy the queue
        return core->inqueue();
    }
    /// Number of ticks dropped so far by overflow_policy::drop_oldest.
    [[nodiscard]] std::uint64_t dropped() const { return core_->dropped(); }
    /// Number of timers that have not ended.
    [[nodiscard]] std::size_t timers() const { return core_->timers(); }

    // --- waiting -------------------------------------------------------------------------------

    /// Blocks until there is an event: `inqueue() > 0`. Any number of threads may wait. The first 5
    /// microseconds are spent spinning.
    /// @throws boost::system::system_error with `boost::asio::error::operation_aborted` if the
    ///     queue is destroyed.
    void wait() { wait_at({}); }
    /// As above, for at most `d` of real time.
    /// @return whether there is an event.
    bool wait_for(std::chrono::nanoseconds d) {
        return wait_at(detail::saturating_sum(now(), since(d)));
    }
    /// As above, until a point in real time.
    bool wait_until(std::chrono::steady_clock::time_point t) { return wait_at(t); }

    /// Starts a wait that completes without an error when there is an event and the handler is
    /// about to run. The handler's default executor is that of the queue's constructor. If the
    /// queue keeps its own timers, the handler runs in a thread that calls the queue.
    /// @param token any completion token for `void(boost::system::error_code)`.
    /// @par Cancellation
    /// As basic_waitable_timer::async_wait(). Destroying the queue cancels the wait.
    template <class WaitToken>
    auto async_wait(WaitToken&& token)
        -> decltype(boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            std::declval<initiate_async_wait>(), token)) {
        return boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            initiate_async_wait(*this), token);
    }

    /// A descriptor for `poll()` and similar calls, readable while there is an event. The queue
    /// owns it and keeps it up to date: do not read from it, just call process_events(). The first
    /// call makes it.
    ///
    /// If the queue keeps its own timers, the descriptor also becomes readable when a timer may be
    /// due. If that was too early, process_events() handles nothing, and the descriptor is no
    /// longer readable.
    /// @throws boost::system::system_error if the system provides no descriptor. The error is
    ///     `boost::asio::error::operation_not_supported` on Windows, and if the queue keeps its own
    ///     timers on a clock that does not follow real time.
    [[nodiscard]] int native_handle() { return core_->descriptor(); }

private:
    class initiate_async_wait {
    public:
        using executor_type = boost::asio::any_io_executor;

        explicit initiate_async_wait(basic_event_queue& self) noexcept : self_(&self) {}

        const executor_type& get_executor() const noexcept { return self_->core_->executor(); }

        template <class WaitHandler>
        void operator()(WaitHandler&& handler) const {
            self_->core_->async_wait(std::forward<WaitHandler>(handler));
        }

    private:
        basic_event_queue* self_;
    };

    template <class F>
    static constexpr void check() {
        static_assert(std::invocable<std::decay_t<F>&, const event&> ||
                          std::invocable<std::decay_t<F>&>,
                      "pawl: the function of a timer is called as f(event), with a "
                      "pawl::basic_queue_event, or as f()");
    }

    [[nodiscard]] static std::chrono::steady_clock::time_point now() {
        return std::chrono::steady_clock::now();
    }
    [[nodiscard]] static std::chrono::steady_clock::duration since(std::chrono::nanoseconds d) {
        return std::chrono::ceil<std::chrono::steady_clock::duration>(d);
    }

    bool wait_at(const std::optional<std::chrono::steady_clock::time_point>& t) {
        const auto core = core_; // the queue may be destroyed during the wait
        return core->wait(t);
    }

    const std::shared_ptr<core_type> core_;
};

/// An event queue whose timers are on `std::chrono::steady_clock`. See basic_event_queue.
using event_queue = basic_event_queue<std::chrono::steady_clock>;

} // namespace pawl

#endif // PAWL_EVENT_QUEUE_HPP
