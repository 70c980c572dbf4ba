// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The events of a queue and the timers that make them. It outlives the queue while the handle of
///   a timer, or the wait of a timer, refers to it.
///
/// Model
///   executor --push--> functions_ --.
///                                   +--take, by the host, in the order of the pushes--> invoke
///   timers ----emit--> events_ -----'
///
///   A function is taken without the lock (function_queue.hpp explains why this is safe). The event
///   of a timer is taken under the lock, because destroy() must know whether the timer's function
///   runs.
///
///   If the queue was given a context, the program runs it. Otherwise the queue has its own
///   context. A thread that calls the queue then runs it as the leader; there is at most one
///   leader.
///
/// Invariants
///   - No foreign code runs under the lock: no function is invoked, moved or destroyed, and no
///     clock is read.
///   - A thread that finds the queue empty under the lock, and wants to learn of the next event,
///     clears filled_. The push that finds it cleared sets it and wakes all sleepers.
///   - One-wait invariant: a timer has at most one wait, whose memory is in the timer. The thread
///     that makes the timer starts its first wait; the handler of a wait starts the next one. If it
///     has no memory, the host does. Nothing else starts a wait: the host moves that of a timer
///     that waited for room.
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

#include <pawl/detail/queue/function_queue.hpp>
#include <pawl/detail/queue/queue_timer.hpp>
#include <pawl/detail/queue/queued_function.hpp>
#include <pawl/detail/queue/ready_descriptor.hpp>
#include <pawl/detail/queue/ready_waits.hpp>
#include <pawl/detail/queue/timer_events.hpp>

#include <pawl/detail/service/timer_service.hpp>

#include <pawl/detail/time/saturating.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
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
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class queue_core : public std::enable_shared_from_this<queue_core<Clock, WaitTraits>> {
public:
    using timer_type = queue_timer<Clock, WaitTraits>;
    using timer_ptr = std::shared_ptr<timer_type>;
    using event_type = basic_timer_event<Clock>;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using real_time = std::chrono::steady_clock::time_point;
    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// A queue that keeps its own timers.
    explicit queue_core(const event_queue_options& o)
        : options_(checked(o)), own_(std::make_unique<boost::asio::io_context>(1)),
          work_(std::in_place, own_->get_executor()), executor_(own_->get_executor()) {}

    /// A queue with its timers in the context of `ex`.
    queue_core(const boost::asio::any_io_executor& ex, const event_queue_options& o)
        : options_(checked(o)), executor_(ex) {}

    queue_core& operator=(queue_core&&) = delete;

    [[nodiscard]] const event_queue_options& options() const noexcept { return options_; }
    [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept {
        return executor_;
    }

    /// The queue is destroyed. Waiting threads leave with an exception.
    void close() noexcept {
        {
            std::unique_lock lock(mutex_);
            closed_ = true;
            wake_leader();
            there_.notify_all();
            // A function of this queue may destroy it. No other thread may while a function runs.
            left_.wait(lock, [this] {
                const std::thread::id processor = processor_;
                return inside_ == 0 &&
                       (processor == std::thread::id() || processor == std::this_thread::get_id());
            });
            events_.kill_all();
            descriptor_.reset();
        }
        bury();
        functions_.clear(); // no more pushes
        waits_.clear();
        watched_ = false;
        if (leader_ == leading::nobody)
            close_own();
        // otherwise a handler run by this thread has destroyed the queue
    }

    // --- for the executor ----------------------------------------------------------------------

    /// @throws std::bad_alloc, with the function destroyed.
    template <class F>
    void execute(F&& f) {
        queued_function function(std::forward<F>(f));
        std::shared_ptr<queue_core> keep; // the function may destroy the queue before this returns
        change([&]() -> wakes {
            if (closed_)
                return 0; // as an execution context after its shutdown
            functions_.push(std::move(function));
            const wakes wake = count_up();
            if (wake != 0)
                keep = this->shared_from_this();
            return wake;
        });
    }

    // --- for timers ----------------------------------------------------------------------------

    /// @throws std::bad_alloc, with nothing left behind.
    template <class F>
    timer_ptr once(const time_point& due, F&& f) {
        const timer_ptr t = make(std::forward<F>(f));
        t->due = due;
        start(t, due);
        return t;
    }
    /// @throws std::bad_alloc; std::invalid_argument if the period is not positive. Nothing is left
    ///     behind.
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
        bool armed = false;
        change([&] {
            armed = t.phase == phase::armed;
            return armed ? push_last(t) : 0;
        });
        if (armed)
            stop_wait(t);
        return armed;
    }

    /// disarm(), and discards the events of `t` in the queue. Then waits until its function does
    /// not run, unless that function is the caller.
    /// @return whether the function ended before `until`.
    bool destroy(timer_type& t, const std::optional<real_time>& until) {
        const auto self = std::this_thread::get_id();
        bool drops = false;
        bool done = true;
        wakes wake = 0;
        {
            std::unique_lock lock(mutex_);
            if (t.phase != phase::ended) {
                events_.kill(t);
                wake = counted_down();
                drops = t.runner == std::thread::id();
                if (drops)
                    t.runner = self;
            }
            if (t.runner != std::thread::id() && t.runner != self) {
                const auto rests = [&t] { return t.runner == std::thread::id(); };
                ++inside_;
                if (until)
                    done = left_.wait_until(lock, *until, rests);
                else
                    left_.wait(lock, rests);
                leave_inside();
            }
            events_.unlist_if_over(t);
        }
        wake_up(wake);
        if (drops)
            end_run(t);
        stop_wait(t);
        clean_up();
        return done;
    }

    /// The wait of `t` has ended.
    void wait_ended(timer_type& t, const boost::system::error_code& ec) {
        const auto now = see_clock<Clock>();
        std::optional<time_point> next;
        bool crowded = false;
        change([&]() -> wakes {
            if (t.phase != phase::armed)
                return 0;
            if (ec)
                return push_last(t); // the program cancelled all timers of the context
            events_.unpark(t);       // by expire_all(), which also ends waits for room
            next = events_.emit(t, functions_.pushed(), now, true);
            crowded = t.crowded;
            return count_up();
        });
        if (crowded)
            (void)arm_or_park(t, std::nullopt);
        else if (next)
            (void)arm_or_park(t, next);
    }

    /// The wait of `t` was destroyed with its context.
    void wait_destroyed(timer_type& t) noexcept {
        change([&] { return t.phase == phase::armed ? push_last(t) : 0; });
    }

    // --- for the host --------------------------------------------------------------------------

    /// Handles at most `most` of the present events.
    /// @return the number of handled events.
    /// @throws std::logic_error if events are being processed; and what a function throws.
    std::size_t process(std::size_t most) {
        const auto keep = this->shared_from_this(); // a function may destroy the queue
        if (processor_.load() == std::thread::id())
            collect(); // runs handlers of async_wait(), which may process events
        const processing entered(*this);
        // In this order, so that an event before one of those functions is seen, too.
        marks end{0, functions_.pushed()};
        if (!events_.idle())
            end = unpark();
        std::size_t count = 0;
        while (count != most && !closed_.load(std::memory_order_relaxed)) {
            const std::uint64_t taken = functions_.taken();
            if (taken < end.functions && taken < events_.functions_before()) {
                ++count;
                run_function();
            } else if (!take(end, count)) {
                break;
            }
        }
        return count;
    }

    /// Number of events that will be handled.
    [[nodiscard]] std::size_t pending() {
        collect();
        const std::scoped_lock lock(mutex_);
        return events_.pending() + functions_.size();
    }
    /// Number of all events.
    [[nodiscard]] std::size_t inqueue() {
        collect();
        const std::scoped_lock lock(mutex_);
        return there();
    }
    /// Number of ticks dropped because the queue was full.
    [[nodiscard]] std::uint64_t dropped() const {
        const std::scoped_lock lock(mutex_);
        return events_.dropped();
    }
    /// Number of timers that have not ended.
    [[nodiscard]] std::size_t timers() const {
        const std::scoped_lock lock(mutex_);
        return events_.timers();
    }

    /// Blocks until there is an event, or until `until`.
    /// @return whether there is an event.
    /// @throws boost::system::system_error if the queue is destroyed.
    bool wait(const std::optional<real_time>& until) {
        const auto keep = this->shared_from_this();
        if (functions_.size() == 0 && events_.idle())
            pause(until);
        if (functions_.size() != 0)
            return true;
        std::unique_lock lock(mutex_);
        ++inside_;
        const inside guard{*this, lock};
        bool looked = false;
        for (;;) {
            if (events_.has_room_for_parked()) {
                lock.unlock();
                (void)unpark();
                lock.lock();
            }
            if (closed_)
                throw boost::system::system_error(boost::asio::error::operation_aborted,
                                                  "pawl: the event queue was destroyed in wait()");
            if (there() != 0)
                return true;
            if (leader_ != leading::nobody && leader_thread_ == std::this_thread::get_id())
                throw std::logic_error(
                    "pawl: wait() on an event queue, called in a handler that this "
                    "queue runs itself: return from the handler first");
            if (until && std::chrono::steady_clock::now() >= *until) {
                if (!own_ || std::exchange(looked, true))
                    return false;
                lock.unlock();
                collect();
                lock.lock();
                continue;
            }
            filled_ = false;
            if (events_.has_room_for_parked()) // lack of memory parked a timer
                there_.wait_for(lock, std::chrono::milliseconds(10));
            else if (own_ && leader_ == leading::nobody)
                lead(lock, until);
            else if (until)
                there_.wait_until(lock, *until);
            else
                there_.wait(lock);
        }
    }

    /// The descriptor to poll.
    /// @throws boost::system::system_error
    [[nodiscard]] int descriptor() {
        if (own_ && !follows_real_time())
            throw boost::system::system_error(
                boost::asio::error::operation_not_supported,
                "pawl: a descriptor follows real time, and the clock of this event queue does not: "
                "give the queue a context that another thread runs");
        int fd = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (!descriptor_) {
                descriptor_.emplace(own_ != nullptr);
                functions_.watch();
                filled_ = there() != 0;
                if (filled_)
                    descriptor_->set();
            }
            fd = descriptor_->get();
        }
        if (own_) {
            watched_ = true;
            watch_deadline();
        }
        return fd;
    }

    /// Starts a wait that ends when there is an event.
    template <class Handler>
    void async_wait(Handler&& handler) {
        waits_.start(executor_, std::forward<Handler>(handler), [this] {
            const std::scoped_lock lock(mutex_);
            notifies_ = true;
            functions_.watch();
            return filled_ = there() != 0;
        });
    }

private:
    using phase = typename timer_type::phase_type;
    using events_type = timer_events<Clock, WaitTraits>;
    using taken_event = typename events_type::taken_event;

    /// The numbers of functions and slots pushed by some moment.
    struct marks {
        std::uint64_t events;
        std::uint64_t functions;
    };

    /// Bits: which waiters to notify after the lock is released.
    using wakes = unsigned;
    static constexpr wakes sleepers = 1;
    static constexpr wakes waits = 2; ///< of async_wait()

    enum class leading : unsigned char {
        nobody,
        sleeps,  ///< until there is an event, or a timer is due
        collects ///< runs what is due
    };

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

    // --- under the lock ------------------------------------------------------------------------

    [[nodiscard]] std::size_t there() const noexcept { return events_.size() + functions_.size(); }

    /// There may be more events. @return the waiters to notify.
    [[nodiscard]] wakes count_up() noexcept {
        if (filled_ || there() == 0)
            return 0;
        filled_ = true;
        if (descriptor_)
            descriptor_->set();
        wake_leader();
        return (inside_ != 0 ? sleepers : 0) | (notifies_ ? waits : 0);
    }
    /// Under the lock: later it might stop the next leader, who is not asleep.
    void wake_leader() noexcept {
        if (leader_ == leading::sleeps)
            own_->stop();
    }
    /// There may be fewer events. @return the waiters to notify.
    [[nodiscard]] wakes counted_down() noexcept {
        if (!functions_.watched() || there() != 0)
            return 0;
        filled_ = false;
        if (descriptor_)
            descriptor_->clear();
        return notifies_ ? waits : 0;
    }

    [[nodiscard]] wakes push_last(timer_type& t) noexcept {
        events_.push_last(t, functions_.pushed());
        return count_up();
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
            const std::scoped_lock lock(mutex_);
            events_.add(t);
        }
        try {
            arm(*t, due);
        } catch (...) {
            change([&] {
                if (t->phase != phase::ended)
                    events_.kill(*t);
                events_.unlist_if_over(*t);
                return counted_down();
            });
            bury();
            throw;
        }
    }

    /// Starts a wait. One-wait invariant: only one thread may.
    /// @throws what the start of a wait throws; std::bad_alloc.
    /// @param due the due time; empty if the timer has waited for room: another thread may then be
    ///     emitting its ticks, and the present due time is used.
    void arm(timer_type& t, std::optional<time_point> due) {
        bool refused = false;
        {
            const std::scoped_lock order(t.wait_mutex);
            if (t.phase != phase::armed)
                return;
            [[maybe_unused]] const std::size_t moved = t.wait.rearm_at(due ? *due : due_now(t));
            PAWL_ASSERT(moved == 0);
            struct start_mark {
                timer_type& t;
                ~start_mark() { t.starting = false; }
            };
            t.refused = false;
            t.starting = true;
            {
                const start_mark mark{t};
                t.wait.async_wait(queue_wait_handler<Clock, WaitTraits>(t));
            }
            refused = t.refused;
        }
        if (refused)
            wait_destroyed(t);
        watch_deadline();
    }
    /// Without memory, parks the timer until the host's next call. @return whether it was armed.
    [[nodiscard]] bool arm_or_park(timer_type& t, const std::optional<time_point>& due) {
        try {
            arm(t, due);
            return true;
        } catch (const std::bad_alloc&) {
            const std::scoped_lock lock(mutex_);
            if (t.phase == phase::armed) {
                events_.park(t);
                t.adrift = true;
                there_.notify_all(); // the host may already sleep
            }
            return false;
        }
    }
    /// Moves the wait of `t` to the present due time. If the wait is about to be started, or its
    /// handler is on its way, that thread finds the due time.
    void move_wait(timer_type& t) {
        {
            const std::scoped_lock order(t.wait_mutex);
            if (t.phase != phase::armed)
                return;
            t.wait.rearm_at(due_now(t));
        }
        watch_deadline();
    }

    /// A timer that waits for room waits until the end of time. So it counts as work of its context
    /// (P9 of doc/guarantees.md), and learns of the context's end.
    [[nodiscard]] time_point due_now(timer_type& t) {
        const std::scoped_lock lock(mutex_);
        if (t.parked.is_linked())
            return time_point::max();
        return t.grid ? t.grid->scheduled().due : t.due;
    }

    void stop_wait(timer_type& t) {
        {
            const std::scoped_lock order(t.wait_mutex);
            t.wait.cancel();
        }
        watch_deadline();
    }

    /// Resumes timers that wait for room, if there is some.
    /// @return the counts at that moment.
    marks unpark() {
        for (;;) {
            {
                const std::scoped_lock lock(mutex_);
                if (!events_.has_room_for_parked())
                    return marks_now();
            }
            const auto now = see_clock<Clock>();
            timer_ptr t;
            bool starts = false;
            wakes wake = 0;
            {
                const std::scoped_lock lock(mutex_);
                t = events_.take_parked();
                if (!t)
                    return marks_now();
                starts = std::exchange(t->adrift, false);
                (void)events_.emit(*t, functions_.pushed(), now, false); // due_now() asks again
                wake = count_up();
            }
            wake_up(wake);
            if (!starts) {
                move_wait(*t);
            } else if (!arm_or_park(*t, std::nullopt)) {
                const std::scoped_lock lock(mutex_);
                return marks_now();
            }
        }
    }
    [[nodiscard]] marks marks_now() const noexcept {
        return {events_.pushed(), functions_.pushed()};
    }
    /// Called after events were taken, or a timer was destroyed.
    void clean_up() {
        (void)unpark();
        bury();
    }

    /// Releases ended timers. Destroying a function may release further ones, which close() has
    /// ended.
    void bury() noexcept {
        while (const timer_ptr t = next_over()) {
            if (!closed_)
                continue;
            stop_wait(*t);
            if (t->runner == std::thread::id()) // otherwise destroyed when it returns
                t->drop();
        }
    }
    [[nodiscard]] timer_ptr next_over() noexcept {
        const std::scoped_lock lock(mutex_);
        return events_.take_over();
    }

    // --- processing ---------------------------------------------------------------------------

    /// Marks this thread as the one that processes events, during its lifetime.
    class processing {
    public:
        explicit processing(queue_core& core) : core_(core) {
            const auto self = std::this_thread::get_id();
            std::thread::id other;
            if (!core.processor_.compare_exchange_strong(other, self))
                throw std::logic_error(
                    other == self ? "pawl: process_events() called by one of its own functions: "
                                    "return from that function first"
                                  : "pawl: process_events() called while another thread processes "
                                    "events of the queue: only one may at a time");
        }
        processing& operator=(processing&&) = delete;
        ~processing() {
            core_.processor_ = std::thread::id();
            if (!core_.closed_)
                return;
            const std::scoped_lock lock(core_.mutex_);
            core_.left_.notify_all();
        }

    private:
        queue_core& core_;
    };

    /// Takes the first event of a timer, and runs its function. Not inlined into process(), which
    /// handles functions without it.
    /// @return whether there may be more.
    PAWL_DETAIL_NOINLINE bool take(const marks& end, std::size_t& handled) {
        std::optional<taken_event> taken;
        change([&] {
            taken = events_.take(end.events, functions_.taken());
            leftovers_ = events_.has_leftovers();
            return counted_down();
        });
        try {
            if (taken)
                run(*taken, handled);
        } catch (...) {
            clean_up_leftovers();
            throw;
        }
        clean_up_leftovers();
        return taken || functions_.taken() < end.functions;
    }

    void run(const taken_event& taken, std::size_t& handled) {
        const run_end end_of_run{*this, *taken.timer};
        if (taken.event) {
            ++handled;
            taken.timer->invoke(*taken.event);
        }
    }

    /// Runs the next function.
    void run_function() {
        queued_function f = functions_.take();
        if (functions_.watched() && functions_.size() == 0)
            change([this] { return counted_down(); });
        f();
    }

    /// The function of a timer has returned or thrown.
    struct run_end {
        queue_core& core;
        timer_type& timer;

        ~run_end() {
            if (!core.goes_on(timer))
                core.end_run(timer);
            core.look_for_leftovers();
        }
    };
    /// If the timer has not ended, its function no longer runs.
    [[nodiscard]] bool goes_on(timer_type& t) noexcept {
        const std::scoped_lock lock(mutex_);
        if (t.phase == phase::ended)
            return false;
        t.runner = {}; // no thread waits for it: destroy() ends the timer first
        return true;
    }
    /// A thread that waits in destroy() will find the function destroyed. @pre this thread runs
    /// `t`.
    void end_run(timer_type& t) noexcept {
        t.drop();
        const std::scoped_lock lock(mutex_);
        t.runner = {};
        events_.unlist_if_over(t);
        left_.notify_all();
    }
    void look_for_leftovers() noexcept {
        const std::scoped_lock lock(mutex_);
        leftovers_ = events_.has_leftovers();
    }
    void clean_up_leftovers() {
        if (std::exchange(leftovers_, false))
            clean_up();
    }

    // --- waiting ------------------------------------------------------------------------------

    /// A thread in wait(), holding the lock.
    struct inside {
        queue_core& core;
        std::unique_lock<std::mutex>& lock;

        ~inside() {
            if (!lock.owns_lock())
                lock.lock();
            core.leave_inside();
        }
    };
    /// Sleeping and waking would cost both threads more than this pause. A host that is faster than
    /// its producers then finds several events, and sleeps less often.
    static void pause(const std::optional<real_time>& until) noexcept {
        real_time end = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
        if (until && *until < end)
            end = *until;
        while (std::chrono::steady_clock::now() < end)
            ;
    }
    void leave_inside() noexcept {
        if (--inside_ == 0)
            left_.notify_all();
    }

    /// This thread runs the timers' context; no other thread does.
    class leadership {
    public:
        /// @pre the lock is held, and there is no leader. This object does not hold the lock.
        leadership(queue_core& core, leading how) noexcept : core_(core) {
            core.leader_ = how;
            core.leader_thread_ = std::this_thread::get_id();
            core.own_->restart();
        }
        leadership& operator=(leadership&&) = delete;
        ~leadership() {
            const std::scoped_lock lock(core_.mutex_);
            core_.leader_ = leading::nobody;
            core_.leader_thread_ = {};
            if (core_.inside_ != 0)
                core_.there_.notify_all(); // one of them may lead
        }

    private:
        queue_core& core_;
    };

    void lead(std::unique_lock<std::mutex>& lock, const std::optional<real_time>& until) {
        {
            const leadership mine(*this, leading::sleeps);
            lock.unlock();
            if (until)
                own_->run_one_until(*until);
            else
                own_->run_one();
        }
        watch_deadline();
        lock.lock();
    }

    /// Makes the queue's own timers read their clock.
    void collect() {
        if (!own_)
            return;
        std::size_t most = 0;
        std::optional<leadership> mine;
        {
            const std::scoped_lock lock(mutex_);
            if (leader_ != leading::nobody || closed_)
                return; // another thread does it, or this one already is
            mine.emplace(*this, leading::collects);
            most = 64 + 2 * events_.timers(); // one unit per timer, plus some
        }
        while (most != 0 && own_->poll_one() != 0)
            --most;
        mine.reset();
        if (closed_)
            close_own(); // a handler has destroyed the queue
        else
            watch_deadline(most == 0);
    }
    /// Destroys the own context with the waits of timers, which refer to this object.
    void close_own() noexcept {
        work_.reset();
        own_.reset();
    }

    /// Changes the queue under the lock, then wakes the waiters that `f` returns.
    template <class F>
    void change(F f) {
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            wake = f();
        }
        wake_up(wake);
    }

    void wake_up(wakes w) {
        if (w & sleepers)
            there_.notify_all();
        if (w & waits) {
            waits_.tell([this] {
                const std::scoped_lock lock(mutex_);
                return there() != 0;
            });
        }
    }

    // --- the descriptor -----------------------------------------------------------------------

    /// Whether the clock tells how long to sleep. A manual clock does not.
    [[nodiscard]] static bool follows_real_time() {
        const auto second = std::chrono::ceil<duration>(std::chrono::seconds(1));
        const auto sleep = WaitTraits::to_wait_duration(second);
        return duration::zero() < sleep && sleep <= second;
    }

    /// Makes the descriptor readable when the queue's own timers must read their clock.
    /// @param now they must do so already.
    void watch_deadline(bool now = false) {
        if (!watched_)
            return;
        const std::scoped_lock order(watch_mutex_);
        const auto next =
            boost::asio::use_service<timer_service<Clock, WaitTraits>>(*own_).next_wake();
        auto sleep = std::chrono::nanoseconds::max();
        if (now)
            sleep = std::chrono::nanoseconds::zero();
        else if (next != time_point::max())
            sleep = std::chrono::ceil<std::chrono::nanoseconds>(std::min<duration>(
                WaitTraits::to_wait_duration(saturating_difference(next, Clock::now())),
                std::chrono::hours(1)));
        const std::scoped_lock lock(mutex_);
        if (descriptor_)
            descriptor_->alarm_after(sleep);
    }

    const event_queue_options options_;
    std::unique_ptr<boost::asio::io_context> own_; ///< none if the program runs a context
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
    boost::asio::any_io_executor executor_; ///< executor of the timers

    mutable std::mutex mutex_;
    std::condition_variable there_; ///< there is an event
    std::condition_variable left_;  ///< a function has returned, or a thread has left
    function_queue<> functions_;
    events_type events_{options_};
    bool filled_ = false; ///< see the second invariant
    std::optional<ready_descriptor> descriptor_;
    std::size_t inside_ = 0; ///< threads in wait()
    leading leader_ = leading::nobody;
    std::thread::id leader_thread_;
    bool notifies_ = false;  ///< async_wait() was called
    bool leftovers_ = false; ///< for the processing thread: a timer may be parked or over
    std::atomic<std::thread::id> processor_{}; ///< the processing thread
    std::atomic<bool> closed_{false};
    std::atomic<bool> watched_{false}; ///< descriptor_ exists, and the queue keeps its own timers

    ready_waits waits_;
    std::mutex watch_mutex_; ///< locked before mutex_
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUE_CORE_HPP
