// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The events of a queue in their order: functions, and the events of timers. And the timers.
///
/// Model
///   Functions are in function_queue, events of timers in slots, each in the order in which they
///   were pushed. A slot stores how many functions were pushed before it. A slot is dead if its
///   timer was destroyed or its event dropped. A dead slot does not count, and is removed when it
///   reaches the front, or by sweep().
///
/// Invariants
///   - There is room for the last event of each live timer: reserved_ slots beyond those in use.
///   - A timer is listed while it has not ended, its function runs, or a slot points at it.
///
/// Threads
///   The owner's lock guards everything except what says "From any thread". One thread at a time
///   takes functions, without the lock (function_queue.hpp explains why this is safe). The event of
///   a timer is taken under it, because destroy() must know whether the timer's function runs.
///
/// Cost
///   O(1) each, amortised over growth, which doubles, and over sweeps. A sweep looks at n slots
///   after n of them have died.
#ifndef PAWL_DETAIL_QUEUE_EVENT_BUFFER_HPP
#define PAWL_DETAIL_QUEUE_EVENT_BUFFER_HPP

#include <pawl/event_queue_options.hpp>

#include <pawl/detail/queue/function_queue.hpp>
#include <pawl/detail/queue/queue_timer.hpp>

#include <pawl/detail/service/optional_mutex.hpp>

#include <boost/circular_buffer.hpp>
#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class event_buffer {
public:
    using timer_type = queue_timer<Clock, WaitTraits>;
    using timer_ptr = std::shared_ptr<timer_type>;
    using event_type = basic_queue_event<Clock>;
    using time_point = typename Clock::time_point;

    /// Numbers of functions and slots pushed by some moment.
    struct pushed_counts {
        std::uint64_t events;
        std::uint64_t functions;
    };
    /// The event of a timer that was taken, if there is a timer.
    struct taken_event {
        timer_ptr timer;
        event_type event;
        bool handled; ///< otherwise the last event of a disarmed timer
    };

    /// @param o must outlive this object.
    explicit event_buffer(const event_queue_options& o) noexcept : options_(o) {}

    // --- counts --------------------------------------------------------------------------------

    /// Number of events.
    [[nodiscard]] std::size_t size() const noexcept { return live_ + functions_.size(); }
    /// Number of events that will be handled.
    [[nodiscard]] std::size_t pending() const noexcept { return size() - skipped_; }
    /// Number of timers that have not ended.
    [[nodiscard]] std::size_t timers() const noexcept { return reserved_ + last_events_; }
    /// Number of ticks dropped because the queue was full.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
    [[nodiscard]] pushed_counts now() const noexcept { return {pushed_, functions_.pushed()}; }
    /// Whether there is no slot and no timer that waits for room. From any thread.
    [[nodiscard]] bool idle() const noexcept { return idle_.load(std::memory_order_relaxed); }

    // --- functions -----------------------------------------------------------------------------

    void push(queued_function&& f) { functions_.push(std::move(f)); }
    /// From any thread.
    [[nodiscard]] bool has_function() const noexcept { return functions_.size() != 0; }
    [[nodiscard]] std::uint64_t functions() const noexcept { return functions_.pushed(); }
    /// Whether the next event is a function, and was pushed before `end`. For the thread that takes.
    [[nodiscard]] bool function_is_next(const pushed_counts& end) const noexcept {
        const std::uint64_t taken = functions_.taken();
        return taken < end.functions && taken < functions_before_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] queued_function take_function() noexcept { return functions_.take(); }
    /// From now on, the thread that takes asks for ran_out().
    void watch() noexcept { functions_.watch(); }
    [[nodiscard]] bool watched() const noexcept { return functions_.watched(); }
    /// Whether the last function was taken, while that is watched.
    [[nodiscard]] bool ran_out() const noexcept { return watched() && !has_function(); }
    /// Destroys the functions. @pre no thread pushes or takes.
    void clear_functions() noexcept { functions_.clear(); }

    // --- the life of a timer -------------------------------------------------------------------

    /// Lists a timer, and reserves room for its last event.
    /// @throws std::bad_alloc, with nothing changed.
    void add(const timer_ptr& t) {
        make_room();
        ++reserved_;
        timers_.push_back(*t);
        t->self = t;
    }

    /// Pushes the last event of `t`, which is handled if `event` is given. @pre it is armed.
    void push_last(timer_type& t, const event_type* event = nullptr) noexcept {
        t.last_counts = event != nullptr;
        skipped_ += !t.last_counts;
        t.phase = phase::ending;
        --reserved_;
        ++last_events_;
        unstall(t);
        push(t, event ? *event : event_type{}, true);
    }

    /// Pushes the due ticks of `t`.
    /// @pre `t` is armed.
    /// @param woken whether the timer's wait has ended, and the clock was not set back since.
    /// @return the due time of the next tick, if the timer must wait for it.
    [[nodiscard]] std::optional<time_point> emit(timer_type& t, const clock_sight<Clock>& seen,
                                                 bool woken) {
        const time_point& now = seen.now;
        if (!t.grid) {
            const event_type event{t.due, now, 0};
            push_last(t, &event);
            return {};
        }
        for (unsigned n = 0; n != ticks_at_a_time; ++n) {
            const time_point due = t.grid->scheduled().due;
            if (due > now && !std::exchange(woken, false))
                return due;
            woken = false;
            if (!has_room_for(t)) {
                stall(t);
                return {};
            }
            std::uint64_t missed = t.grid->deliver(t.grid->join().number, seen);
            if (t.grid->scheduled().due <= now)
                missed = 0; // they follow
            if (options_.overflow == overflow_policy::coalesce && t.ticks != 0) {
                t.owed += 1 + missed;
                continue;
            }
            if (options_.overflow == overflow_policy::drop_oldest && ticks_ == options_.capacity)
                drop_oldest();
            ++ticks_;
            ++t.ticks;
            push(t, {due, now, missed}, false);
        }
        return t.grid->scheduled().due;
    }

    /// Discards the events of `t`, present and future. @pre it has not ended.
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
        unstall(t);
        sweep_if_many();
    }
    /// Ends all timers and discards all events.
    void kill_all() noexcept {
        slots_.clear();
        stalled_.clear();
        note_first();
        for (timer_type& t : timers_) {
            t.phase = phase::ended;
            t.slots = 0;
            t.over = true;
        }
        over_.splice(over_.end(), timers_);
    }

    /// The timer waits for room or for memory. @pre it is armed.
    void stall(timer_type& t) noexcept {
        if (t.stalled.is_linked())
            return;
        t.has_stalled = true;
        stalled_.push_back(t);
        note_first();
    }
    /// The timer no longer waits for room.
    void unstall(timer_type& t) noexcept {
        if (!t.stalled.is_linked())
            return;
        stalled_.erase(stalled_.iterator_to(t));
        note_first();
    }
    /// Whether a timer waits for room, and there is some.
    [[nodiscard]] bool has_room_for_stalled() noexcept {
        return !stalled_.empty() && has_room_for(stalled_.front());
    }
    /// Takes a timer that waits for room.
    [[nodiscard]] timer_ptr take_stalled() noexcept {
        if (!has_room_for_stalled())
            return nullptr;
        timer_ptr t = stalled_.front().self;
        stalled_.pop_front();
        note_first();
        return t;
    }

    /// Moves the timer to the list of those to release, if it is over.
    void unlist_if_over(timer_type& t) noexcept {
        if (t.phase != phase::ended || t.slots != 0 || t.run_by || std::exchange(t.over, true))
            return;
        timers_.erase(timers_.iterator_to(t));
        over_.push_back(t);
    }
    /// Takes a timer that is over.
    [[nodiscard]] timer_ptr take_over() noexcept {
        if (over_.empty())
            return nullptr;
        timer_ptr t = std::move(over_.front().self);
        over_.pop_front();
        return t;
    }
    /// Whether a timer is stalled or over.
    [[nodiscard]] bool has_leftovers() const noexcept {
        return !stalled_.empty() || !over_.empty();
    }

    // --- processing ----------------------------------------------------------------------------

    /// Takes the first event of a timer, if it was pushed before `end` and no function precedes it.
    /// This thread then runs the timer.
    [[nodiscard]] taken_event take(const pushed_counts& end) noexcept {
        while (!slots_.empty() && is_dead(slots_.front())) {
            forget(slots_.front());
            pop_front();
        }
        if (slots_.empty() || slots_.front().number >= end.events ||
            slots_.front().functions > functions_.taken())
            return {};
        const slot& front = slots_.front();
        timer_type& t = *front.timer;
        taken_event result{t.self, front.event, true};
        --live_;
        --t.slots;
        if (front.is_last) {
            t.phase = phase::ended;
            --last_events_;
            result.handled = t.last_counts;
            skipped_ -= !result.handled;
        } else {
            --ticks_;
            --t.ticks;
        }
        if (result.handled)
            result.event.overruns += std::exchange(t.owed, 0);
        t.run_by = this_thread();
        pop_front();
        return result;
    }

private:
    using phase = typename timer_type::phase_type;
    /// Maximum number of ticks that one wait pushes. If more are due, the timer waits again, so
    /// that other timers get their turn.
    static constexpr unsigned ticks_at_a_time = 64;
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    struct slot {
        std::uint64_t number;
        std::uint64_t functions; ///< pushed before it
        timer_type* timer;       ///< null: the tick was dropped
        event_type event;
        bool is_last; ///< otherwise a tick of an interval
    };

    static_assert(sizeof(void*) != 8 || sizeof(typename Clock::duration) > 8 || sizeof(slot) <= 64);

    /// Makes room for one slot, beyond the reserved ones.
    /// @throws std::bad_alloc
    void make_room() {
        const auto needed = [this] { return slots_.size() + reserved_ + 1; };
        if (needed() > slots_.capacity() && dead_ > slots_.size() / 4)
            sweep();
        if (needed() > slots_.capacity())
            slots_.set_capacity(std::max<std::size_t>(64, 2 * needed()));
    }
    [[nodiscard]] bool has_room_for(const timer_type& t) noexcept {
        if (options_.overflow == overflow_policy::coalesce && t.ticks != 0)
            return true;
        if (options_.overflow == overflow_policy::block && ticks_ >= options_.capacity)
            return false;
        try {
            make_room();
        } catch (const std::bad_alloc&) { // as if the queue was full
            return false;
        }
        return true;
    }

    void push(timer_type& t, const event_type& event, bool is_last) noexcept {
        ++live_;
        ++t.slots;
        slots_.push_back(slot{pushed_++, functions_.pushed(), &t, event, is_last});
        note_first();
    }
    void pop_front() noexcept {
        slots_.pop_front();
        oldest_ -= oldest_ != 0;
        note_first();
    }
    void note_first() noexcept {
        functions_before_.store(slots_.empty() ? none : slots_.front().functions,
                                std::memory_order_relaxed);
        idle_.store(slots_.empty() && stalled_.empty(), std::memory_order_relaxed);
    }
    /// @pre ticks_ != 0
    void drop_oldest() noexcept {
        while (is_dead(slots_[oldest_]) || slots_[oldest_].is_last)
            ++oldest_;
        slot& oldest = slots_[oldest_];
        timer_type& t = *std::exchange(oldest.timer, nullptr);
        t.owed += 1 + oldest.event.overruns;
        --t.ticks;
        --t.slots;
        --ticks_;
        --live_;
        ++dropped_;
        ++dead_;
        sweep_if_many();
    }

    [[nodiscard]] static bool is_dead(const slot& s) noexcept {
        return !s.timer || s.timer->phase == phase::ended;
    }

    /// Removes the dead slots if they are the majority, so that each costs O(1).
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
                slots_[kept - 1] = slots_[i];
        }
        slots_.erase_end(slots_.size() - kept);
        oldest_ = 0;
        note_first();
    }
    /// Removes a dead slot.
    void forget(const slot& s) noexcept {
        --dead_;
        if (s.timer) {
            --s.timer->slots;
            unlist_if_over(*s.timer);
        }
    }

    template <auto Hook>
    using list = boost::intrusive::list<
        timer_type,
        boost::intrusive::member_hook<timer_type, boost::intrusive::list_member_hook<>, Hook>,
        boost::intrusive::constant_time_size<false>>;

    const event_queue_options& options_;
    function_queue<> functions_;
    boost::circular_buffer<slot> slots_;
    std::uint64_t pushed_ = 0;
    std::atomic<bool> idle_{true};
    std::atomic<std::uint64_t> functions_before_{none}; ///< the first slot
    std::size_t live_ = 0;                              ///< slots that are not dead
    std::size_t skipped_ = 0;     ///< of these, last events that are not handled
    std::size_t dead_ = 0;        ///< dead slots
    std::size_t ticks_ = 0;       ///< live ticks
    std::size_t reserved_ = 0;    ///< timers without their last event
    std::size_t last_events_ = 0; ///< last events in the queue
    std::size_t oldest_ = 0;      ///< no live tick precedes this slot
    std::uint64_t dropped_ = 0;
    list<&timer_type::listed> timers_;
    list<&timer_type::listed> over_;     ///< removed from timers_, to be released without the lock
    list<&timer_type::stalled> stalled_; ///< armed, due, and without a wait
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_EVENT_BUFFER_HPP
