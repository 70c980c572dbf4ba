// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What the threads of a queue share: they make and end timers, handle events, and wait. It outlives
///   the queue while the handle of a timer, or the wait of a timer, refers to it.
///
/// Model
///   executor --push--> event_buffer --take, by the host, in the order of the pushes--> invoke
///   timer_waits --emit-->   |
///                      queue_waker: who must be told? --> threads in wait(): queue_leader
///                                                         descriptor, async_wait()
///
///   If the queue has its own context, the leader runs it: a thread in wait(), or one that calls the
///   queue. Otherwise the program does.
///
/// Invariants
///   - No foreign code runs under the lock: no function is invoked, moved or destroyed, and no
///     clock is read.
///
/// Threads
///   All members may be called from any thread; one thread at a time processes events.
///
/// Cost
///   A push takes one lock, an event of a timer takes two, and taking a function none. Allocations:
///   the growth of the buffer, which doubles; a block per 64 waiting functions; and a block per
///   function of more than 40 bytes.
#ifndef PAWL_DETAIL_QUEUE_QUEUE_CORE_HPP
#define PAWL_DETAIL_QUEUE_QUEUE_CORE_HPP

#include <pawl/config.hpp>
#include <pawl/event_queue_options.hpp>

#include <pawl/detail/queue/event_buffer.hpp>
#include <pawl/detail/queue/queue_leader.hpp>
#include <pawl/detail/queue/queue_timer.hpp>
#include <pawl/detail/queue/queue_waker.hpp>
#include <pawl/detail/queue/timer_waits.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/optional_mutex.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class queue_core : public std::enable_shared_from_this<queue_core<Clock, WaitTraits>> {
public:
    using timer_type = queue_timer<Clock, WaitTraits>;
    using timer_ptr = std::shared_ptr<timer_type>;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using real_time = std::chrono::steady_clock::time_point;
    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// A queue that keeps its own timers.
    explicit queue_core(const event_queue_options& o)
        : options_(checked(o)), leader_(true), executor_(leader_.context()->get_executor()) {}

    /// A queue with its timers in the context of `ex`.
    queue_core(const boost::asio::any_io_executor& ex, const event_queue_options& o)
        : options_(checked(o)), leader_(false), executor_(ex) {}

    queue_core& operator=(queue_core&&) = delete;

    [[nodiscard]] const event_queue_options& options() const noexcept { return options_; }
    [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept {
        return executor_;
    }

    /// The queue is destroyed. Waiting threads leave with an exception.
    void close() noexcept {
        {
            std::unique_lock lock(mutex());
            closed_ = true;
            leader_.wake();
            // A function of this queue may destroy it. No other thread may while a function runs.
            left_.wait(lock, [this] {
                const void* const processor = processor_;
                return inside_ == (leader_.leads_in_wait() ? 1U : 0U) &&
                       (!processor || processor == this_thread());
            });
            buffer_.kill_all();
        }
        bury();
        buffer_.clear_functions(); // no more pushes
        waker_.close();
        if (leader_
                .is_free()) // otherwise a handler has destroyed the queue, and its thread does it
            leader_.close();
        else
            abandoned_ = leader_.context() != nullptr;
    }

    // --- for the executor ----------------------------------------------------------------------

    /// @throws std::bad_alloc, with the function destroyed.
    template <class F>
    void execute(F&& f) {
        queued_function function(std::forward<F>(f));
        std::shared_ptr<queue_core> keep; // the function may destroy the queue before this returns
        news n = 0;
        {
            const std::scoped_lock lock(mutex());
            if (closed_)
                return; // as an execution context after its shutdown
            buffer_.push(std::move(function));
            n = waker_.find_news_of_push();
            if (n != 0)
                keep = this->shared_from_this();
        }
        waker_.tell(n);
    }

    // --- for timers ----------------------------------------------------------------------------

    // If these throw, they leave nothing behind.

    template <class F>
    timer_ptr once(const time_point& due, F&& f) {
        const timer_ptr t = make(std::forward<F>(f));
        t->due = due;
        start(t, due);
        return t;
    }
    template <class F>
    timer_ptr every(const time_point& first, const duration& period, missed_tick_policy policy,
                    F&& f) {
        const timer_ptr t = make(std::forward<F>(f));
        t->grid.emplace(first, period, policy, see_clock<Clock>());
        start(t, first);
        return t;
    }

    /// Makes `t` emit its last event now, and nothing after it.
    /// @return whether it was armed.
    bool disarm(timer_type& t) {
        const bool armed = waits_.push_last(t);
        if (armed)
            waits_.stop_wait(t);
        return armed;
    }

    /// disarm(), and discards the events of `t` in the queue. Then waits until its function does
    /// not run, unless that function is the caller.
    /// @return whether the function ended before `until`.
    bool destroy(timer_type& t, const std::optional<real_time>& until) {
        bool drops = false;
        waker_.change([&] {
            if (t.phase == phase::ended)
                return;
            buffer_.kill(t);
            drops = !t.run_by;
            if (drops)
                t.run_by = this_thread();
        });
        const bool done = drops || wait_until_over(t, until);
        if (drops)
            end_run(t);
        waits_.stop_wait(t);
        clean_up();
        return done;
    }

    /// The wait of `t` has ended.
    void wait_ended(timer_type& t, const boost::system::error_code& ec) {
        waits_.wait_ended(t, ec);
    }
    /// The wait of `t` was destroyed with its context.
    void wait_destroyed(timer_type& t) noexcept { (void)waits_.push_last(t); }

    // --- for the host --------------------------------------------------------------------------

    /// Handles at most `most` of the present events.
    /// @return the number of handled events.
    /// @pre the caller keeps this object: a function may destroy the queue.
    /// @throws std::logic_error if events are being processed; and what a function throws.
    std::size_t process(std::size_t most) {
        if (!processor_)
            poll(); // runs handlers of async_wait(), which may process events
        const processing entered(*this);
        // In this order, so that an event before one of those functions is seen, too.
        pushed_counts end{0, buffer_.functions()};
        if (!buffer_.idle())
            end = waits_.unstall();
        std::size_t count = 0;
        while (count != most && !closed_.load(std::memory_order_relaxed)) {
            if (buffer_.function_is_next(end)) {
                ++count;
                run_function();
            } else if (end.events == 0 || !take(end, count)) {
                break;
            }
        }
        return count;
    }

    // Numbers of event_buffer; of events, as of now.

    [[nodiscard]] std::size_t pending() {
        poll();
        const std::scoped_lock lock(mutex());
        return buffer_.pending();
    }
    [[nodiscard]] std::size_t inqueue() {
        poll();
        const std::scoped_lock lock(mutex());
        return buffer_.size();
    }
    [[nodiscard]] std::uint64_t dropped() const {
        const std::scoped_lock lock(mutex());
        return buffer_.dropped();
    }
    [[nodiscard]] std::size_t timers() const {
        const std::scoped_lock lock(mutex());
        return buffer_.timers();
    }

    /// Blocks until there is an event, or until `until`.
    /// @return whether there is an event.
    /// @throws boost::system::system_error if the queue is destroyed.
    /// Not inlined: g++ warns of the time that an empty `until` does not have.
    PAWL_DETAIL_NOINLINE bool wait(const std::optional<real_time>& until) {
        if (!buffer_.has_function() && buffer_.idle())
            pause(until);
        if (buffer_.has_function())
            return true;
        inside entered(*this);
        lock_type& lock = entered.lock;
        bool polled = false;
        for (;;) {
            if (buffer_.has_room_for_stalled())
                without(lock, [this] { (void)waits_.unstall(); });
            if (closed_) {
                if (abandoned_) // a handler that this thread ran has destroyed the queue
                    without(lock, [this] { leader_.close(); });
                throw boost::system::system_error(boost::asio::error::operation_aborted,
                                                  "pawl: the event queue was destroyed in wait()");
            }
            if (buffer_.size() != 0)
                return true;
            if (leader_.leads())
                throw std::logic_error(
                    "pawl: wait() on an event queue, called in a handler that this "
                    "queue runs itself: return from the handler first");
            if (until && std::chrono::steady_clock::now() >= *until) {
                if (!leader_.context() || std::exchange(polled, true))
                    return false;
                without(lock, [this] { poll(true); });
                continue;
            }
            waker_.expect();
            if (buffer_.has_room_for_stalled()) { // lack of memory stalled a timer
                const real_time soon = real_time::clock::now() + std::chrono::milliseconds(10);
                leader_.stand_by(lock, until ? std::min(*until, soon) : soon);
            } else if (leader_.sleep(lock, until))
                without(lock, [this] { waits_.watch_deadline(); });
        }
    }

    /// The descriptor to poll.
    /// @throws boost::system::system_error
    [[nodiscard]] int descriptor() {
        const bool own = leader_.context() != nullptr;
        if (own && !follows_real_time())
            throw boost::system::system_error(
                boost::asio::error::operation_not_supported,
                "pawl: a descriptor follows real time, and the clock of this event queue does not: "
                "give the queue a context that another thread runs");
        const int fd = waker_.descriptor(own);
        waits_.watch_deadline();
        return fd;
    }

    /// Starts a wait that ends when there is an event.
    template <class Handler>
    void async_wait(Handler&& handler) {
        waker_.start_wait(executor_, std::forward<Handler>(handler));
    }

private:
    using phase = typename timer_type::phase_type;
    using buffer_type = event_buffer<Clock, WaitTraits>;
    using waker_type = queue_waker<buffer_type>;
    using pushed_counts = typename buffer_type::pushed_counts;
    using news = typename waker_type::news;
    using lock_type = std::unique_lock<std::mutex>;

    static const event_queue_options& checked(const event_queue_options& o) {
        if (o.capacity == 0)
            throw std::invalid_argument(
                "pawl: event_queue_options::capacity is 0; it must be at least 1");
        if (o.overflow != overflow_policy::block && o.overflow != overflow_policy::drop_oldest &&
            o.overflow != overflow_policy::coalesce)
            throw std::invalid_argument("pawl: event_queue_options::overflow is " +
                                        std::to_string(static_cast<int>(o.overflow)) +
                                        "; there is no such policy");
        return o;
    }

    [[nodiscard]] std::mutex& mutex() const noexcept { return waker_.mutex(); }
    /// A thread in wait() or destroy(). close() waits for it.
    struct inside {
        explicit inside(queue_core& c) : core(c), lock(c.mutex()) { ++core.inside_; }
        inside& operator=(inside&&) = delete;
        ~inside() {
            if (!lock.owns_lock())
                lock.lock();
            --core.inside_;
            if (core.closed_)
                core.left_.notify_all();
        }

        queue_core& core;
        lock_type lock;
    };
    /// Calls `f` without the lock.
    template <class F>
    static void without(lock_type& lock, F f) {
        lock.unlock();
        f();
        lock.lock();
    }

    // --- making timers ------------------------------------------------------------------------

    template <class F>
    [[nodiscard]] timer_ptr make(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (requires(const function& x) { x == nullptr; })
            if (f == nullptr)
                throw std::invalid_argument("pawl: the function of a timer is empty");
        return std::make_shared<queue_timer_for<Clock, WaitTraits, function>>(
            this->shared_from_this(), executor_, std::forward<F>(f));
    }

    void start(const timer_ptr& t, const time_point& due) {
        {
            const std::scoped_lock lock(mutex());
            buffer_.add(t);
        }
        try {
            waits_.arm(*t, due);
        } catch (...) {
            destroy(*t, {});
            throw;
        }
    }

    /// Called after events were taken, or a timer was destroyed.
    void clean_up() {
        (void)waits_.unstall();
        bury();
    }

    /// Releases ended timers. Destroying a function may release further ones, which close() has
    /// ended.
    void bury() noexcept {
        for (;;) {
            timer_ptr t;
            {
                const std::scoped_lock lock(mutex());
                t = buffer_.take_over();
            }
            if (!t)
                return;
            if (!closed_)
                continue;
            waits_.stop_wait(*t);
            if (!t->run_by) // otherwise destroyed when it returns
                t->drop();
        }
    }

    // --- processing ---------------------------------------------------------------------------

    /// Marks this thread as the one that processes events, during its lifetime.
    class processing {
    public:
        explicit processing(queue_core& core) : core_(core) {
            const void* const self = this_thread();
            const void* other = nullptr;
            if (!core.processor_.compare_exchange_strong(other, self))
                throw std::logic_error(
                    other == self ? "pawl: process_events() called by one of its own functions: "
                                    "return from that function first"
                                  : "pawl: process_events() called while another thread processes "
                                    "events of the queue: only one may at a time");
        }
        processing& operator=(processing&&) = delete;
        ~processing() {
            core_.processor_ = nullptr;
            if (!core_.closed_)
                return;
            const std::scoped_lock lock(core_.mutex());
            core_.left_.notify_all();
        }

    private:
        queue_core& core_;
    };

    /// Takes the first event of a timer, and runs its function. Not inlined into process(), which
    /// handles functions without it.
    /// @return whether there may be more.
    PAWL_DETAIL_NOINLINE bool take(const pushed_counts& end, std::size_t& handled) {
        typename buffer_type::taken_event taken;
        bool leftovers = false; // a timer may be stalled or over
        waker_.change([&] {
            taken = buffer_.take(end);
            leftovers = buffer_.has_leftovers();
        });
        const auto has_run = [&] {
            if (taken.timer && !goes_on(*taken.timer, leftovers))
                end_run(*taken.timer);
            if (leftovers)
                clean_up();
        };
        handled += taken.handled;
        try {
            if (taken.handled)
                taken.timer->invoke(taken.event);
        } catch (...) {
            has_run();
            throw;
        }
        has_run();
        return taken.timer || buffer_.function_is_next(end);
    }

    /// Runs the next function.
    void run_function() {
        queued_function f = buffer_.take_function();
        if (buffer_.ran_out())
            waker_.change([] {});
        f();
    }

    /// If the timer has not ended, its function no longer runs.
    [[nodiscard]] bool goes_on(timer_type& t, bool& leftovers) noexcept {
        const std::scoped_lock lock(mutex());
        leftovers = t.phase == phase::ended || buffer_.has_leftovers();
        if (t.phase == phase::ended)
            return false;
        t.run_by = nullptr; // no thread waits for it: destroy() ends the timer first
        return true;
    }
    /// A thread that waits in destroy() will find the function destroyed. @pre this thread runs
    /// `t`.
    void end_run(timer_type& t) noexcept {
        t.drop();
        const std::scoped_lock lock(mutex());
        t.run_by = nullptr;
        buffer_.unlist_if_over(t);
        left_.notify_all();
    }
    /// Waits until no other thread runs or destroys the function of `t`.
    /// @return whether that was before `until`.
    [[nodiscard]] bool wait_until_over(timer_type& t, const std::optional<real_time>& until) {
        const auto over = [&t] { return !t.run_by || t.run_by == this_thread(); };
        inside entered(*this);
        bool done = true;
        if (until)
            done = left_.wait_until(entered.lock, *until, over);
        else
            left_.wait(entered.lock, over);
        buffer_.unlist_if_over(t);
        return done;
    }

    // --- waiting ------------------------------------------------------------------------------

    /// Sleeping and waking would cost both threads more than this pause. A host that is faster than
    /// its producers then finds several events, and sleeps less often.
    static void pause(const std::optional<real_time>& until) noexcept {
        real_time end = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
        if (until && *until < end)
            end = *until;
        while (std::chrono::steady_clock::now() < end)
            ;
    }
    /// Makes the queue's own timers read their clock.
    void poll(bool waits = false) {
        if (!leader_.context())
            return;
        bool more = false;
        {
            lock_type lock(mutex());
            if (!leader_.is_free() || closed_)
                return; // another thread does it, or this one already is
            more = leader_.poll(lock, 64 + 2 * buffer_.timers(),
                                waits); // a unit per timer, and some
        }
        if (abandoned_)
            leader_.close(); // a handler has destroyed the queue
        else if (!closed_)
            waits_.watch_deadline(more);
    }

    // --- the descriptor -----------------------------------------------------------------------

    /// Whether the clock tells how long to sleep. A manual clock does not.
    [[nodiscard]] static bool follows_real_time() {
        const auto second = std::chrono::ceil<duration>(std::chrono::seconds(1));
        const auto sleep = WaitTraits::to_wait_duration(second);
        return duration::zero() < sleep && sleep <= second;
    }

    const event_queue_options options_;
    queue_leader leader_;
    boost::asio::any_io_executor executor_; ///< executor of the timers
    buffer_type buffer_{options_};
    waker_type waker_{buffer_, leader_};
    timer_waits<Clock, WaitTraits> waits_{buffer_, waker_, leader_};

    std::condition_variable left_; ///< a function has returned, or a thread has left
    std::size_t inside_ = 0;       ///< threads in wait(), or in destroy()
    bool abandoned_ = false;       ///< by close(), called in a handler: its thread closes leader_
    std::atomic<const void*> processor_{nullptr}; ///< the processing thread
    std::atomic<bool> closed_{false};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUE_CORE_HPP
