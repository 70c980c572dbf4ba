// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::event_queue: timers and completions for hosts that cannot be called back, and poll.
#ifndef PAWL_EVENT_QUEUE_HPP
#define PAWL_EVENT_QUEUE_HPP

#include <pawl/config.hpp>

#include <pawl/queue/queue_core.hpp>

#include <pawl/service/latest_now.hpp>
#include <pawl/service/saturating.hpp>

#include <pawl/time/duration_text.hpp>

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

/// A queue of events for a host that must not be called back: a scripting language, a game loop, a GUI,
/// the loop of another library. Nothing runs until the host takes it out.
///
/// Events come from two sources. Timers of the queue put one in when they expire: once() and every().
/// And the queue is an execution context: a handler that is bound to its executor is an event when its
/// operation completes.
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
/// The timers live in an execution context that the program runs, or in the queue itself. A host without
/// a second thread makes an `event_queue events;`: then wait() sleeps until a timer is due.
///
/// @par Order
/// Events are handled in the order in which they came into the queue. Those of timers come in when they
/// are due, in the order of their expiries as far as the options of the timer service say; those of
/// executors when they are submitted.
///
/// @par The end of a timer
/// After disarm() a timer emits nothing more but one last event, at once: no event of the timer comes
/// behind it. What is in the queue already is handled. After destroy() nothing of it is handled at all.
/// With the last event the function is destroyed. A one-off ends with its only event.
///
/// @par Thread safety
/// All members, and those of timers, may be called from any thread, and from functions that the queue
/// calls, except that one thread at a time processes events. The queue may be destroyed by one of its
/// functions, and while threads are in wait(). No other call may overlap its destruction.
///
/// @par Cost
/// A one-off takes one allocation, an interval two, and an event of either none, unless the queue has to
/// grow.
/// A function of an executor takes none if it is trivially copyable, of 40 bytes at most.
///
/// @tparam Clock, WaitTraits as with basic_waitable_timer.
template <class Clock, class WaitTraits = boost::asio::wait_traits<Clock>>
class basic_event_queue : public boost::asio::execution_context {
    using core_type = detail::queue_core<Clock, WaitTraits>;
    class initiate_async_wait;

public:
    using clock_type = Clock;                           ///< The clock of its timers.
    using duration = typename clock_type::duration;     ///< That of the clock.
    using time_point = typename clock_type::time_point; ///< That of the clock.
    using traits_type = WaitTraits;                     ///< How the clock is waited for.
    using event = basic_timer_event<Clock>; ///< What the function of a timer may ask for.

    /// Submits functions to the queue. Never runs one in execute(), whoever calls it.
    class executor_type {
    public:
        /// Always has room: event_queue_options::capacity does not bound functions.
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

    /// A handle of a timer. It may be copied, thrown away while the timer goes on, and kept after the
    /// queue.
    class timer {
    public:
        /// A handle of no timer.
        timer() = default;

        /// The timer emits one last event now, and then no more. Events of it that are in the queue are
        /// handled. A second call, or one for a timer that has ended, does nothing.
        /// @return whether the timer was armed.
        /// @par Complexity
        /// O(1). Does not allocate.
        bool disarm() { return timer_ && timer_->core->disarm(*timer_); }

        /// Ends the timer: disarm(), and whatever is in the queue of it is skipped. Where another thread
        /// runs the function of the timer, waits until that has returned. So the function does not run,
        /// and will not, when this returns; and it is destroyed, unless it is the caller.
        /// @par Complexity
        /// O(1), amortised, without that wait. Does not allocate.
        void destroy() {
            if (const auto t = timer_) // the function may own this handle
                t->core->destroy(*t, {});
        }
        /// The same, with a limit in real time for the wait. The timer ends anyway.
        /// @return whether the function does not run any more.
        bool destroy_for(std::chrono::nanoseconds d) {
            const auto t = timer_;
            return !t || t->core->destroy(*t, detail::saturating_sum(now(), since(d)));
        }

        /// Whether it will emit events.
        [[nodiscard]] bool armed() const noexcept { return is(phase::armed); }
        /// Whether its last event has been taken, or it was destroyed, or is no timer.
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

    /// A queue that keeps its timers itself: they expire while a thread is in wait(), and when one calls
    /// process_events(), pending() or inqueue().
    /// @throws std::invalid_argument if an option is out of range; the text names it.
    explicit basic_event_queue(const event_queue_options& options = {})
        : core_(std::make_shared<core_type>(options)) {}

    /// A queue whose timers are kept in a context, which somebody else runs.
    /// @throws std::invalid_argument if an option is out of range; the text names it.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&> &&
                 (!std::same_as<ExecutionContext, basic_event_queue>)
    explicit basic_event_queue(ExecutionContext& context, const event_queue_options& options = {})
        : basic_event_queue(boost::asio::any_io_executor(context.get_executor()), options) {}

    /// The same, with an executor of that context.
    explicit basic_event_queue(const boost::asio::any_io_executor& ex,
                               const event_queue_options& options = {})
        : core_(std::make_shared<core_type>(ex, options)) {}

    basic_event_queue(const basic_event_queue&) = delete;
    basic_event_queue& operator=(const basic_event_queue&) = delete;

    /// Destroys all events and the functions of all timers, which are ended. Threads in wait() leave it
    /// with an exception before this returns. The waits of async_wait() are cancelled.
    ~basic_event_queue() {
        shutdown();
        core_->close();
        destroy();
    }

    /// What submits functions to the queue.
    [[nodiscard]] executor_type get_executor() noexcept { return executor_type(*this); }

    /// The context in which the timers are kept. That of the queue's own is not to be run by others; it
    /// is for make_timer_service(), manual_clock::advance() and the like.
    [[nodiscard]] boost::asio::execution_context& timer_context() const noexcept {
        return boost::asio::query(core_->executor(), boost::asio::execution::context);
    }

    /// The options in force.
    [[nodiscard]] const event_queue_options& options() const noexcept { return core_->options(); }

    // --- timers --------------------------------------------------------------------------------

    /// A timer that emits one event, `d` from now, saturating.
    /// @param d from 0 on.
    /// @param f called with the event, or without an argument, when the host handles it.
    /// @throws std::invalid_argument if `d` is negative, or `f` is empty; std::bad_alloc. Nothing is left.
    /// @par Complexity
    /// O(1), amortised.
    template <class F>
    timer once(const duration& d, F&& f) {
        check<F>();
        if (d < duration::zero())
            throw std::invalid_argument("pawl: a one-off timer after " + time::detail::text_of(d) +
                                        ": must be 0 at least");
        return once_at(detail::sum_from_now<Clock>(d), std::forward<F>(f));
    }
    /// A timer that emits one event at `t`, or now if that has passed.
    template <class F>
    timer once_at(const time_point& t, F&& f) {
        check<F>();
        return timer(core_->once(t, std::forward<F>(f)));
    }

    /// A timer that emits an event each `period`, the first one after one period: on the points of a
    /// grid, as pawl::interval_timer ticks. So nothing adds up.
    /// @param period the distance of ticks.
    /// @param f called with the event, or without an argument, when the host handles it.
    /// @param policy what is done about ticks that come due late, because nobody has run the context,
    ///               or because the queue was full.
    /// @throws std::invalid_argument unless `period` is greater than zero, if `f` is empty, or if there
    ///         is no such policy; std::bad_alloc. Nothing is left.
    template <class F>
    timer every(const duration& period, F&& f,
                missed_tick_policy policy = missed_tick_policy::burst) {
        return every_from(detail::sum_from_now<Clock>(period), period, std::forward<F>(f), policy);
    }
    /// The same, with the first tick at `first`.
    template <class F>
    timer every_from(const time_point& first, const duration& period, F&& f,
                     missed_tick_policy policy = missed_tick_policy::burst) {
        check<F>();
        return timer(core_->every(first, period, policy, std::forward<F>(f)));
    }

    // --- processing ----------------------------------------------------------------------------

    /// Handles all events that are there when it is called: those that come meanwhile stay.
    ///
    /// What a function throws is thrown by this function; that event counts as handled, and the next
    /// call goes on behind it.
    /// @return how many events were handled. What is skipped is not counted.
    /// @throws std::logic_error within a function that the queue calls, and while another thread
    ///         processes events.
    std::size_t process_events() { return process_events(core_type::all); }
    /// The same for at most `most` events.
    std::size_t process_events(std::size_t most) {
        const auto core = core_; // a function may destroy the queue
        return core->process(most);
    }
    /// The same for one event at most.
    std::size_t process_one() { return process_events(1); }

    /// How many events there are that will be handled, as it stands now.
    [[nodiscard]] std::size_t pending() const {
        const auto core = core_; // a handler of async_wait() may destroy the queue
        return core->pending();
    }
    /// How many events there are: pending(), and the last ones of timers that were disarmed.
    [[nodiscard]] std::size_t inqueue() const {
        const auto core = core_; // a handler of async_wait() may destroy the queue
        return core->inqueue();
    }
    /// How many ticks have been dropped so far, by overflow_policy::drop_oldest.
    [[nodiscard]] std::uint64_t dropped() const { return core_->dropped(); }
    /// How many timers have not ended.
    [[nodiscard]] std::size_t timers() const { return core_->timers(); }

    // --- waiting -------------------------------------------------------------------------------

    /// Blocks until at least one event is there: `inqueue() > 0`. Any number of threads may wait. For its
    /// first 5 microseconds it does not sleep.
    /// @throws boost::system::system_error with `boost::asio::error::operation_aborted` if the queue is
    ///         destroyed meanwhile.
    void wait() { wait_at({}); }
    /// The same, for at most `d` of real time.
    /// @return whether an event is there.
    bool wait_for(std::chrono::nanoseconds d) {
        return wait_at(detail::saturating_sum(now(), since(d)));
    }
    /// The same, until a point in real time.
    bool wait_until(std::chrono::steady_clock::time_point t) { return wait_at(t); }

    /// Starts a wait that completes, with no error, when an event is there and the handler is about to
    /// run. The handler's default executor is the one that the queue was made with; if the queue keeps
    /// its timers itself, it runs in a thread that calls the queue.
    /// @param token any completion token for `void(boost::system::error_code)`.
    /// @par Cancellation
    /// As basic_waitable_timer::async_wait(). The destruction of the queue cancels the wait.
    template <class WaitToken>
    auto async_wait(WaitToken&& token)
        -> decltype(boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            std::declval<initiate_async_wait>(), token)) {
        return boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            initiate_async_wait(*this), token);
    }

    /// A descriptor for `poll()` and its kin that is readable while an event is there. It is not to be
    /// read from, and stays the queue's, which keeps it up to date: process_events() is all that has to
    /// be called. Made by the first call.
    ///
    /// If the queue keeps its timers itself, it becomes readable, too, when one of them may be due. Where
    /// that turns out to be too early, process_events() handles nothing, and it is not readable any more.
    /// @throws boost::system::system_error if the system gives none; with
    ///         `boost::asio::error::operation_not_supported` if the queue keeps its timers itself on a
    ///         clock that does not follow real time, and on Windows.
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
                      "pawl::basic_timer_event, or as f()");
    }

    [[nodiscard]] static std::chrono::steady_clock::time_point now() {
        return std::chrono::steady_clock::now();
    }
    [[nodiscard]] static std::chrono::steady_clock::duration since(std::chrono::nanoseconds d) {
        return std::chrono::ceil<std::chrono::steady_clock::duration>(d);
    }

    bool wait_at(const std::optional<std::chrono::steady_clock::time_point>& t) {
        const auto core = core_; // it may be destroyed meanwhile
        return core->wait(t);
    }

    const std::shared_ptr<core_type> core_;
};

/// An event queue whose timers are on `std::chrono::steady_clock`. See basic_event_queue.
using event_queue = basic_event_queue<std::chrono::steady_clock>;

} // namespace pawl

#endif // PAWL_EVENT_QUEUE_HPP
