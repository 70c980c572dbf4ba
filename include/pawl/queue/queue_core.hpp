// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The events of a queue and the timers that make them. It outlives the queue while a timer's
///   handle, or a wait of a timer, holds on to it.
///
/// Model
///   executor, timers --push--> slots_ --take, by the host--> invoke
///
///   The slots stand in the order in which they were pushed, each with a number. A slot is dead when
///   its timer was destroyed, or its event dropped: it counts no more, and is left out when it comes
///   to the front, or by sweep().
///   Functions of executors are taken in batches. An event of a timer is taken alone, since
///   destroy() must find out whether its function runs.
///
///   Who runs the timers' context? If the queue was given one, somebody else does. Otherwise it has
///   one of its own, and a thread that calls in runs it: as the leader, of which there is one.
///
/// Invariants
///   I1  There is room for the last event of each live timer: reserved_ slots beyond those in use.
///   I2  A timer is listed while it is not ended, or its function runs, or a slot points at it.
///   I3  No foreign code runs under the lock: no function is invoked, moved or destroyed, and no clock
///       is read.
///   I4  Who finds the queue empty under the lock, and goes to sleep, is woken by the next push.
///
/// Threads
///   All members may be called from any thread, but events are processed by one at a time.
///
/// Cost
///   A push: one lock. An event of a timer: three. No allocation but for growth of the buffer, which
///   doubles, and for functions beyond 40 bytes.
#ifndef PAWL_QUEUE_QUEUE_CORE_HPP
#define PAWL_QUEUE_QUEUE_CORE_HPP

#include <pawl/queue/queue_options.hpp>
#include <pawl/queue/queue_timer.hpp>
#include <pawl/queue/queued_function.hpp>
#include <pawl/queue/ready_descriptor.hpp>

#include <pawl/service/interval_grid.hpp>
#include <pawl/service/saturating.hpp>
#include <pawl/service/timer_service.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/circular_buffer.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace pawl {

namespace detail {

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

    /// A queue that keeps its timers itself.
    explicit queue_core(const event_queue_options& o)
        : options_(checked(o)), own_(std::make_unique<boost::asio::io_context>(1)),
          work_(std::in_place, own_->get_executor()), executor_(own_->get_executor()) {}

    /// A queue whose timers are kept in the context of `ex`.
    queue_core(const boost::asio::any_io_executor& ex, const event_queue_options& o)
        : options_(checked(o)), executor_(ex) {}

    queue_core(const queue_core&) = delete;
    queue_core& operator=(const queue_core&) = delete;

    [[nodiscard]] const event_queue_options& options() const noexcept { return options_; }
    [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept {
        return executor_;
    }

    /// The queue is destroyed. Threads that wait are sent away.
    void close() noexcept {
        boost::circular_buffer<slot> slots;
        {
            std::unique_lock lock(mutex_);
            closed_ = true;
            if (leader_ == leading::sleeps)
                own_->stop();
            there_.notify_all();
            // A function of this queue may destroy it, but nobody else while one runs.
            left_.wait(lock, [this] {
                return inside_ == 0 && (!processing_ || processor_ == std::this_thread::get_id());
            });
            slots.swap(slots_);
            parked_.clear();
            descriptor_.reset();
            for (timer_type& t : timers_) {
                t.phase = phase::ended;
                t.slots = 0;
                t.over = true;
            }
            over_.splice(over_.end(), timers_);
        }
        while (const timer_ptr t = next_over()) {
            stop_wait(*t);
            if (!t->running) // by this thread; it is dropped when it returns
                t->drop();
        }
        slots.clear();
        for (; batch_at_ != batch_end_; ++batch_at_)
            batch_[batch_at_].reset();
        there_timers waiting;
        {
            const std::scoped_lock order(there_mutex_);
            waiting.swap(waiting_);
        }
        waiting.clear();
        watched_ = false;
        work_.reset();
        own_.reset(); // with the waits of timers, which hold on to this
    }

    // --- for the executor ----------------------------------------------------------------------

    /// @throws std::bad_alloc, with the function destroyed.
    template <class F>
    void execute(F&& f) {
        queued_function function(std::forward<F>(f));
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (closed_)
                return; // as an execution context that was shut down
            make_room();
            wake = count_up();
            slots_.push_back(slot{next_number_++, std::move(function)});
        }
        wake_up(wake);
    }

    // --- for timers ----------------------------------------------------------------------------

    /// @throws std::bad_alloc, with nothing left of it.
    template <class F>
    timer_ptr once(const time_point& due, F&& f) {
        const timer_ptr t = make(std::forward<F>(f));
        t->due = due;
        start(t, due);
        return t;
    }
    /// @throws std::bad_alloc, std::invalid_argument if the period is not positive, with nothing left.
    template <class F>
    timer_ptr every(const time_point& first, const duration& period, missed_tick_policy policy,
                    F&& f) {
        const timer_ptr t = make(std::forward<F>(f));
        t->grid.emplace(first, period, policy);
        start(t, first);
        return t;
    }

    /// No event of `t` is emitted any more but the last one, which is now.
    /// @return whether it was armed.
    bool disarm(timer_type& t) {
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (t.phase != phase::armed)
                return false;
            wake = push_last(t);
        }
        wake_up(wake);
        stop_wait(t);
        return true;
    }

    /// disarm(), and what is in the queue of `t` is skipped. Then waits until its function does not
    /// run, unless it is the function that calls.
    /// @return whether that has come before `until`.
    bool destroy(timer_type& t, const std::optional<real_time>& until) {
        bool drops = false;
        bool done = true;
        wakes wake = 0;
        {
            std::unique_lock lock(mutex_);
            if (t.phase != phase::ended) {
                kill(t);
                drops = !t.running;
                wake = counted_down();
            }
            if (t.running && processor_ != std::this_thread::get_id()) {
                const auto rests = [&t] { return !t.running; };
                ++inside_;
                if (until)
                    done = left_.wait_until(lock, *until, rests);
                else
                    left_.wait(lock, rests);
                leave_inside();
            }
            unlist_if_over(t);
        }
        wake_up(wake);
        if (drops)
            t.drop();
        stop_wait(t);
        unpark();
        bury();
        return done;
    }

    /// The wait of `t` has ended.
    void wait_ended(timer_type& t, const boost::system::error_code& ec) {
        const time_point now = Clock::now();
        std::optional<time_point> next;
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (t.phase != phase::armed)
                return;
            if (ec)
                wake = push_last(t); // somebody has let all timers of its context go
            else
                next = emit(t, now, true, wake);
        }
        wake_up(wake);
        if (next)
            (void)arm_or_park(t, *next);
    }

    /// The wait of `t` was destroyed with its context.
    void wait_destroyed(timer_type& t) noexcept {
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (t.phase != phase::armed)
                return;
            wake = push_last(t);
        }
        wake_up(wake);
    }

    // --- for the host --------------------------------------------------------------------------

    /// Handles events that are there now, at most `most`.
    /// @return how many it has handled.
    /// @throws std::logic_error if events are being processed; what a function throws.
    std::size_t process(std::size_t most) {
        const auto keep = this->shared_from_this(); // a function may destroy the queue
        const processing entered(*this);
        collect();
        unpark();
        const std::uint64_t end = number_now();
        std::size_t count = 0;
        while (count != most && !closed_.load(std::memory_order_relaxed)) {
            if (batch_at_ != batch_end_) {
                run_function();
                ++count;
            } else if (!take(end, count)) {
                break;
            }
        }
        return count;
    }

    /// Events that will be handled.
    [[nodiscard]] std::size_t pending() {
        collect();
        const std::scoped_lock lock(mutex_);
        return live_ - skipped_ + batch_left_.load(std::memory_order_relaxed);
    }
    /// All events.
    [[nodiscard]] std::size_t inqueue() {
        collect();
        const std::scoped_lock lock(mutex_);
        return there();
    }
    /// Ticks that were dropped because the queue was full.
    [[nodiscard]] std::uint64_t dropped() const {
        const std::scoped_lock lock(mutex_);
        return dropped_;
    }
    /// Timers that have not ended.
    [[nodiscard]] std::size_t timers() const {
        const std::scoped_lock lock(mutex_);
        return reserved_ + last_events_;
    }

    /// Blocks until an event is there, or until `until`.
    /// @return whether one is.
    /// @throws boost::system::system_error if the queue is destroyed meanwhile.
    bool wait(const std::optional<real_time>& until) {
        const auto keep = this->shared_from_this();
        unpark();
        std::unique_lock lock(mutex_);
        if (leader_ != leading::nobody && leader_thread_ == std::this_thread::get_id())
            throw std::logic_error(
                "pawl: wait() on an event queue within a handler that this queue "
                "runs itself: return from the handler first");
        ++inside_;
        const inside guard{*this, lock};
        for (;;) {
            if (closed_)
                throw boost::system::system_error(boost::asio::error::operation_aborted,
                                                  "pawl: the event queue was destroyed in wait()");
            if (there() != 0)
                return true;
            if (until && std::chrono::steady_clock::now() >= *until)
                return false;
            if (own_ && leader_ == leading::nobody)
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
                if (there() != 0)
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

    /// Starts a wait that ends when an event is there.
    template <class Handler>
    void async_wait(Handler&& handler) {
        // Started before anybody else knows the timer, and so without a lock (I3).
        there_timers mine;
        mine.emplace_back(executor_, there_time::max());
        mine.back().async_wait(std::forward<Handler>(handler));
        there_timers over;
        const std::scoped_lock order(there_mutex_);
        {
            const std::scoped_lock lock(mutex_);
            notifies_ = true;
        }
        waiting_.splice(waiting_.end(), mine);
        tell_there(over);
        waiting_.back().rearm_at(told());
        // Where the queue is never empty, nobody is told that, and nobody taken out.
        while (waiting_.front().rearm_at(told()) == 0 && waiting_.size() > 1)
            over.splice(over.end(), waiting_, waiting_.begin());
    }

private:
    using phase = typename timer_type::phase_type;
    static constexpr std::size_t batch_size = 64;
    /// Ticks that one wait puts into the queue; if more are due, it waits again, so that others come
    /// between.
    static constexpr unsigned ticks_at_a_time = 64;
    struct tick {
        timer_type* timer;
        event_type event;
    };
    /// The last event of a timer: of a one-off, to be handled; of another, only to be taken.
    struct last {
        timer_type* timer;
        std::optional<event_type> event;
    };
    /// A tick that was dropped.
    struct dead {};
    struct slot {
        std::uint64_t number;
        std::variant<queued_function, tick, last, dead> what;
    };

    static_assert(sizeof(void*) != 8 || sizeof(duration) > 8 || sizeof(slot) <= 64);

    using there_timer = basic_waitable_timer<std::chrono::steady_clock>;
    using there_time = there_timer::time_point;
    using there_timers = std::list<there_timer>;

    /// Whom to tell, after the lock, that something is there: bits.
    using wakes = unsigned;
    static constexpr wakes sleepers = 1;
    static constexpr wakes leader = 2;
    static constexpr wakes waits = 4; ///< of async_wait()

    enum class leading : unsigned char {
        nobody,
        sleeps,  ///< until something is there, or due
        collects ///< what is due
    };

    static const event_queue_options& checked(const event_queue_options& o) {
        if (o.capacity == 0)
            throw std::invalid_argument(
                "pawl: event_queue_options::capacity of 0: must be 1 at least");
        if (o.overflow != overflow_policy::block && o.overflow != overflow_policy::drop_oldest &&
            o.overflow != overflow_policy::coalesce)
            throw std::invalid_argument("pawl: event_queue_options::overflow of " +
                                        std::to_string(static_cast<int>(o.overflow)) +
                                        ": there is no such policy");
        return o;
    }

    // --- under the lock ------------------------------------------------------------------------

    [[nodiscard]] std::size_t there() const noexcept {
        return live_ + batch_left_.load(std::memory_order_relaxed);
    }

    /// Room for one slot more, beside what is reserved.
    /// @throws std::bad_alloc
    void make_room() {
        const auto needed = [this] { return slots_.size() + reserved_ + 1; };
        if (needed() > slots_.capacity() && dead_ > slots_.size() / 4)
            sweep();
        if (needed() > slots_.capacity())
            slots_.set_capacity(std::max<std::size_t>(64, 2 * needed()));
    }

    /// One event more will be there.
    [[nodiscard]] wakes count_up() noexcept {
        const bool first = there() == 0;
        ++live_;
        if (!first)
            return 0;
        if (descriptor_)
            descriptor_->set();
        return (inside_ != 0 ? sleepers : 0) | (leader_ == leading::sleeps ? leader : 0) |
               (notifies_ ? waits : 0);
    }
    /// There are fewer events. @return whom to tell.
    [[nodiscard]] wakes counted_down() noexcept {
        if (there() != 0)
            return 0;
        if (descriptor_)
            descriptor_->clear();
        return notifies_ ? waits : 0;
    }

    [[nodiscard]] wakes push_last(timer_type& t, std::optional<event_type> event = {}) noexcept {
        const wakes wake = count_up();
        skipped_ += !event;
        t.phase = phase::ending;
        --reserved_;
        ++last_events_;
        t.last_counts = event.has_value();
        ++t.slots;
        if (t.parked.is_linked())
            parked_.erase(parked_.iterator_to(t));
        slots_.push_back(slot{next_number_++, last{&t, std::move(event)}});
        return wake;
    }

    /// Puts what is due into the queue.
    /// @param woken that the timer's wait has ended, if the clock has not been set back since.
    /// @return when its next tick is due, if it is to wait for that.
    [[nodiscard]] std::optional<time_point> emit(timer_type& t, const time_point& now, bool woken,
                                                 wakes& wake) {
        if (!t.grid) {
            wake = push_last(t, event_type{t.due, now, 0});
            return {};
        }
        for (unsigned n = 0; n != ticks_at_a_time; ++n) {
            const time_point due = t.grid->scheduled().due;
            if (due > now && !std::exchange(woken, false))
                return due;
            woken = false;
            if (!has_room_for(t)) {
                parked_.push_back(t);
                return {};
            }
            std::uint64_t missed = t.grid->deliver(t.grid->join().number, now);
            if (t.grid->policy() == missed_tick_policy::burst)
                missed = 0; // they follow
            if (options_.overflow == overflow_policy::coalesce && t.ticks != 0) {
                t.owed += 1 + missed;
                continue;
            }
            if (options_.overflow == overflow_policy::drop_oldest && ticks_ == options_.capacity)
                drop_oldest();
            wake |= count_up();
            ++ticks_;
            ++t.ticks;
            ++t.slots;
            slots_.push_back(slot{next_number_++, tick{&t, {due, now, missed}}});
        }
        return t.grid->scheduled().due;
    }

    [[nodiscard]] bool has_room_for(const timer_type& t) noexcept {
        if (options_.overflow == overflow_policy::coalesce && t.ticks != 0)
            return true;
        if (options_.overflow == overflow_policy::block && ticks_ >= options_.capacity)
            return false;
        try {
            make_room();
        } catch (const std::bad_alloc&) { // as if it was full
            return false;
        }
        return true;
    }

    /// @pre ticks_ != 0
    void drop_oldest() noexcept {
        while (!is_live_tick(slots_[oldest_]))
            ++oldest_;
        const tick& oldest = std::get<tick>(slots_[oldest_].what);
        timer_type& t = *oldest.timer;
        t.owed += 1 + oldest.event.overruns;
        --t.ticks;
        --t.slots;
        --ticks_;
        --live_;
        ++dropped_;
        slots_[oldest_].what.template emplace<dead>();
        ++dead_;
        sweep_if_many();
    }

    [[nodiscard]] static bool is_live_tick(const slot& s) noexcept {
        const tick* const x = std::get_if<tick>(&s.what);
        return x && x->timer->phase != phase::ended;
    }
    /// The timer of an event.
    [[nodiscard]] static timer_type* timer_of(const slot& s) noexcept {
        if (const tick* const x = std::get_if<tick>(&s.what))
            return x->timer;
        const last* const x = std::get_if<last>(&s.what);
        return x ? x->timer : nullptr;
    }
    [[nodiscard]] static bool is_dead(const slot& s) noexcept {
        const timer_type* const t = timer_of(s);
        return std::holds_alternative<dead>(s.what) || (t && t->phase == phase::ended);
    }

    /// What is in the queue of `t`, or would come, counts no more.
    void kill(timer_type& t) noexcept {
        if (t.phase == phase::armed) {
            --reserved_;
        } else {
            --last_events_;
            --live_;
            skipped_ -= !t.last_counts;
        }
        t.phase = phase::ended;
        live_ -= t.ticks;
        ticks_ -= t.ticks;
        dead_ += t.slots;
        t.ticks = 0;
        if (t.parked.is_linked())
            parked_.erase(parked_.iterator_to(t));
        sweep_if_many();
    }

    /// Takes dead slots away when they are most of all, so that each costs O(1).
    void sweep_if_many() noexcept {
        if (dead_ > 64 && dead_ > slots_.size() / 2)
            sweep();
    }
    void sweep() noexcept {
        std::size_t kept = 0;
        for (std::size_t i = 0; i != slots_.size(); ++i) {
            if (is_dead(slots_[i]))
                forget(slots_[i]);
            else if (kept++ != i)
                slots_[kept - 1] = std::move(slots_[i]);
        }
        slots_.erase_end(slots_.size() - kept);
        oldest_ = 0;
    }
    /// A dead slot goes.
    void forget(const slot& s) noexcept {
        --dead_;
        if (timer_type* const t = timer_of(s)) {
            --t->slots;
            unlist_if_over(*t);
        }
    }
    void pop_front() noexcept {
        slots_.pop_front();
        oldest_ -= oldest_ != 0;
    }

    void unlist_if_over(timer_type& t) noexcept {
        if (t.phase != phase::ended || t.slots != 0 || t.running || std::exchange(t.over, true))
            return;
        timers_.erase(timers_.iterator_to(t));
        over_.push_back(t);
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
            make_room();
            ++reserved_;
            timers_.push_back(*t);
            t->self = t;
        }
        try {
            arm(*t, due);
        } catch (...) {
            {
                const std::scoped_lock lock(mutex_);
                kill(*t);
                unlist_if_over(*t);
            }
            bury();
            throw;
        }
    }

    /// @throws what the start of a wait throws; std::bad_alloc.
    void arm(timer_type& t, const time_point& due) {
        bool refused = false;
        {
            const std::scoped_lock order(t.wait_mutex);
            if (t.phase != phase::armed)
                return;
            struct start_mark {
                timer_type& t;
                ~start_mark() { t.starting = false; }
            };
            t.refused = false;
            t.starting = true;
            {
                const start_mark mark{t};
                t.wait.expires_at(due);
                t.wait.async_wait(queue_wait_handler<Clock, WaitTraits>(t));
            }
            refused = t.refused;
        }
        if (refused)
            wait_destroyed(t);
        watch_deadline();
    }
    /// In want of memory it is tried again when the host comes. @return whether that was not so.
    [[nodiscard]] bool arm_or_park(timer_type& t, const time_point& due) {
        try {
            arm(t, due);
            return true;
        } catch (const std::bad_alloc&) {
            const std::scoped_lock lock(mutex_);
            if (t.phase == phase::armed)
                parked_.push_back(t);
            return false;
        }
    }

    void stop_wait(timer_type& t) {
        {
            const std::scoped_lock order(t.wait_mutex);
            t.wait.cancel();
        }
        watch_deadline();
    }

    /// Timers that wait for room go on, if there is some.
    void unpark() {
        for (;;) {
            {
                const std::scoped_lock lock(mutex_);
                if (parked_.empty() || !has_room_for(parked_.front()))
                    return;
            }
            const time_point now = Clock::now();
            timer_ptr t;
            std::optional<time_point> next;
            wakes wake = 0;
            {
                const std::scoped_lock lock(mutex_);
                if (parked_.empty())
                    return;
                t = parked_.front().self;
                parked_.pop_front();
                next = emit(*t, now, false, wake);
            }
            wake_up(wake);
            if (next && !arm_or_park(*t, *next))
                return;
        }
    }

    /// Lets go of timers that are over.
    void bury() noexcept {
        while (next_over())
            ;
    }
    [[nodiscard]] timer_ptr next_over() noexcept {
        const std::scoped_lock lock(mutex_);
        if (over_.empty())
            return nullptr;
        timer_ptr t = std::move(over_.front().self);
        over_.pop_front();
        return t;
    }

    // --- processing ---------------------------------------------------------------------------

    /// Events are processed by this thread, while it lives.
    class processing {
    public:
        explicit processing(queue_core& core) : core_(core) {
            const std::scoped_lock lock(core.mutex_);
            const auto self = std::this_thread::get_id();
            if (core.processing_)
                throw std::logic_error(
                    core.processor_ == self
                        ? "pawl: process_events() within a function that it has called: return "
                          "from "
                          "that first"
                        : "pawl: process_events() while another thread processes events of the "
                          "queue: only one may at a time");
            core.processing_ = true;
            core.processor_ = self;
        }
        processing(const processing&) = delete;
        processing& operator=(const processing&) = delete;
        ~processing() {
            const std::scoped_lock lock(core_.mutex_);
            core_.processing_ = false;
            core_.processor_ = {};
            core_.left_.notify_all();
        }

    private:
        queue_core& core_;
    };

    [[nodiscard]] std::uint64_t number_now() const {
        const std::scoped_lock lock(mutex_);
        return next_number_;
    }

    /// Takes the first slot, or several functions, if they were pushed before number `end`.
    /// @return whether there was one.
    bool take(std::uint64_t end, std::size_t& handled) {
        timer_ptr t;
        std::optional<event_type> event;
        wakes wake = 0;
        {
            const std::scoped_lock lock(mutex_);
            if (slots_.empty() || slots_.front().number >= end)
                return false;
            slot& front = slots_.front();
            if (std::holds_alternative<queued_function>(front.what)) {
                take_functions(end);
                return true;
            }
            timer_type* const timer = timer_of(front);
            if (is_dead(front)) {
                forget(front);
                pop_front();
            } else {
                t = timer->self;
                --live_;
                --t->slots;
                if (tick* const x = std::get_if<tick>(&front.what)) {
                    event = x->event;
                    --ticks_;
                    --t->ticks;
                } else {
                    event = std::get<last>(front.what).event;
                    t->phase = phase::ended;
                    --last_events_;
                    skipped_ -= !event;
                }
                if (event)
                    event->overruns += std::exchange(t->owed, 0);
                t->running = true;
                pop_front();
                wake = counted_down();
            }
        }
        wake_up(wake);
        try {
            if (t)
                run(*t, event, handled);
        } catch (...) {
            unpark();
            bury();
            throw;
        }
        unpark();
        bury();
        return true;
    }

    void run(timer_type& t, const std::optional<event_type>& event, std::size_t& handled) {
        const run_end end_of_run{*this, t};
        if (event) {
            ++handled;
            t.invoke(*event);
        }
    }

    void take_functions(std::uint64_t end) noexcept {
        batch_at_ = batch_end_ = 0;
        do {
            batch_[batch_end_++].emplace(std::move(std::get<queued_function>(slots_.front().what)));
            pop_front();
        } while (batch_end_ != batch_size && !slots_.empty() && slots_.front().number < end &&
                 std::holds_alternative<queued_function>(slots_.front().what));
        live_ -= batch_end_;
        batch_left_.store(batch_end_, std::memory_order_relaxed);
    }

    /// Runs the next function of the batch.
    void run_function() {
        std::optional<queued_function>& f = batch_[batch_at_++];
        const std::size_t left = batch_end_ - batch_at_;
        if (left == 0) {
            wakes wake = 0;
            {
                const std::scoped_lock lock(mutex_);
                batch_left_.store(0, std::memory_order_relaxed);
                wake = counted_down();
            }
            wake_up(wake);
        } else {
            batch_left_.store(left, std::memory_order_relaxed);
        }
        struct last_of {
            std::optional<queued_function>& f;
            ~last_of() { f.reset(); }
        };
        const last_of guard{f};
        (*f)();
    }

    /// The function of a timer has returned, or thrown.
    struct run_end {
        queue_core& core;
        timer_type& timer;

        ~run_end() {
            if (!core.goes_on(timer))
                core.end_run(timer);
        }
    };
    /// The function of `t` does not run any more, if the timer has not ended.
    [[nodiscard]] bool goes_on(timer_type& t) noexcept {
        const std::scoped_lock lock(mutex_);
        if (t.phase == phase::ended)
            return false;
        t.running = false;
        left_.notify_all();
        return true;
    }
    /// Whoever waits in destroy() finds the function destroyed.
    void end_run(timer_type& t) noexcept {
        t.drop();
        const std::scoped_lock lock(mutex_);
        t.running = false;
        unlist_if_over(t);
        left_.notify_all();
    }

    // --- waiting ------------------------------------------------------------------------------

    /// A thread is in wait(), with the lock.
    struct inside {
        queue_core& core;
        std::unique_lock<std::mutex>& lock;

        ~inside() {
            if (!lock.owns_lock())
                lock.lock();
            core.leave_inside();
        }
    };
    void leave_inside() noexcept {
        if (--inside_ == 0)
            left_.notify_all();
    }

    /// This thread runs the timers' context, as the only one that does.
    class leadership {
    public:
        /// @pre the lock is held, and nobody leads. It is not held by this object.
        leadership(queue_core& core, leading how) noexcept : core_(core) {
            core.leader_ = how;
            core.leader_thread_ = std::this_thread::get_id();
            core.own_->restart();
        }
        leadership(const leadership&) = delete;
        leadership& operator=(const leadership&) = delete;
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
        lock.lock();
    }

    /// Has the queue's own timers look at their clock.
    void collect() {
        if (!own_)
            return;
        std::size_t most = 0;
        std::optional<leadership> mine;
        {
            const std::scoped_lock lock(mutex_);
            if (leader_ != leading::nobody || closed_)
                return; // another thread sees to it, or this one does
            mine.emplace(*this, leading::collects);
            most = 64 + 2 * (reserved_ + last_events_); // a unit for each, and those around them
        }
        while (most-- != 0 && own_->poll_one() != 0)
            ;
        mine.reset();
        watch_deadline();
    }

    void wake_up(wakes w) {
        if (w & sleepers)
            there_.notify_all();
        if (w & leader)
            own_->stop();
        if (w & waits) {
            there_timers over;
            const std::scoped_lock order(there_mutex_);
            tell_there(over);
        }
    }

    /// The waits of async_wait() end when something is there, and a wait whose handler has not begun
    /// goes on when nothing is there any more. @pre there_mutex_ is locked.
    /// @param over gets the timers of those that have ended, to be destroyed without the lock.
    void tell_there(there_timers& over) {
        bool something = false;
        {
            const std::scoped_lock lock(mutex_);
            something = there() != 0;
        }
        if (std::exchange(told_, something) == something)
            return;
        for (auto t = waiting_.begin(); t != waiting_.end();) {
            const auto each = t++;
            if (each->rearm_at(told()) == 0)
                over.splice(over.end(), waiting_, each);
        }
    }
    [[nodiscard]] there_time told() const noexcept {
        return told_ ? there_time::min() : there_time::max();
    }

    // --- the descriptor -----------------------------------------------------------------------

    /// Whether the clock says how long to sleep. A manual one does not.
    [[nodiscard]] static bool follows_real_time() {
        const auto second = std::chrono::ceil<duration>(std::chrono::seconds(1));
        const auto sleep = WaitTraits::to_wait_duration(second);
        return duration::zero() < sleep && sleep <= second;
    }

    /// The descriptor becomes readable when the queue's own timers are to look at their clock.
    void watch_deadline() {
        if (!watched_)
            return;
        const std::scoped_lock order(watch_mutex_);
        const auto next =
            boost::asio::use_service<timer_service<Clock, WaitTraits>>(*own_).next_wake();
        auto sleep = std::chrono::nanoseconds::max();
        if (next != time_point::max())
            sleep = std::chrono::ceil<std::chrono::nanoseconds>(std::min<duration>(
                WaitTraits::to_wait_duration(saturating_difference(next, Clock::now())),
                std::chrono::hours(1)));
        const std::scoped_lock lock(mutex_);
        if (descriptor_)
            descriptor_->alarm_after(sleep);
    }

    using timer_list = boost::intrusive::list<
        timer_type,
        boost::intrusive::member_hook<timer_type, boost::intrusive::list_member_hook<>,
                                      &timer_type::listed>,
        boost::intrusive::constant_time_size<false>>;
    using parked_list = boost::intrusive::list<
        timer_type,
        boost::intrusive::member_hook<timer_type, boost::intrusive::list_member_hook<>,
                                      &timer_type::parked>,
        boost::intrusive::constant_time_size<false>>;

    const event_queue_options options_;
    std::unique_ptr<boost::asio::io_context> own_; ///< unless somebody else runs a context
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
    boost::asio::any_io_executor executor_; ///< of the timers

    mutable std::mutex mutex_;
    std::condition_variable there_; ///< something is there
    std::condition_variable left_;  ///< a function has returned, or a thread has left
    boost::circular_buffer<slot> slots_;
    std::uint64_t next_number_ = 0;
    std::size_t live_ = 0;        ///< slots that count
    std::size_t skipped_ = 0;     ///< of those, last events that nobody handles
    std::size_t dead_ = 0;        ///< slots that do not count
    std::size_t ticks_ = 0;       ///< live ones
    std::size_t reserved_ = 0;    ///< timers whose last event is to come
    std::size_t last_events_ = 0; ///< that are there
    std::size_t oldest_ = 0;      ///< no live tick is before this slot
    std::uint64_t dropped_ = 0;
    timer_list timers_;
    timer_list over_;    ///< taken out of timers_, to be let go without the lock
    parked_list parked_; ///< armed, without a wait, due
    std::optional<ready_descriptor> descriptor_;
    std::size_t inside_ = 0; ///< threads that wait
    leading leader_ = leading::nobody;
    std::thread::id leader_thread_;
    bool processing_ = false;
    std::thread::id processor_;
    bool notifies_ = false; ///< somebody has called async_wait()
    std::atomic<bool> closed_{false};
    std::atomic<bool> watched_{false}; ///< descriptor_ is there, and the timers are the queue's own

    // Those of the thread that processes.
    std::array<std::optional<queued_function>, batch_size> batch_; ///< taken, in order
    std::size_t batch_at_ = 0;
    std::size_t batch_end_ = 0;
    std::atomic<std::size_t> batch_left_{0};

    std::mutex there_mutex_; ///< before mutex_
    there_timers waiting_;   ///< one for each wait of async_wait()
    bool told_ = false;
    std::mutex watch_mutex_; ///< before mutex_
};

} // namespace detail

} // namespace pawl

#endif // PAWL_QUEUE_QUEUE_CORE_HPP
