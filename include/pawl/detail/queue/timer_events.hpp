// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The timers of an event queue, and their events in it.
///
/// Model
///   Slots are in the order in which they were pushed. A slot is dead if its timer was destroyed or
///   its event dropped. A dead slot does not count, and is removed when it reaches the front, or by
///   sweep(). A slot stores how many functions were submitted before it, which gives its place
///   among them.
///
/// Invariants
///   - There is room for the last event of each live timer: reserved_ slots beyond those in use.
///   - A timer is listed while it has not ended, its function runs, or a slot points at it.
///
/// Threads
///   The owner's lock guards everything except functions_before() and idle().
///
/// Cost
///   O(1) each, amortised over growth, which doubles, and over sweeps. A sweep looks at n slots
///   after n of them have died.
#ifndef PAWL_DETAIL_QUEUE_TIMER_EVENTS_HPP
#define PAWL_DETAIL_QUEUE_TIMER_EVENTS_HPP

#include <pawl/event_queue_options.hpp>

#include <pawl/detail/queue/queue_timer.hpp>

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
#include <thread>
#include <utility>
#include <variant>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class timer_events {
public:
    using timer_type = queue_timer<Clock, WaitTraits>;
    using timer_ptr = std::shared_ptr<timer_type>;
    using event_type = basic_timer_event<Clock>;
    using time_point = typename Clock::time_point;

    /// A taken event; without a timer if `timer` is null.
    struct taken_event {
        timer_ptr timer;
        std::optional<event_type> event; ///< for events to be handled
    };

    /// @param o must outlive this object.
    explicit timer_events(const event_queue_options& o) noexcept : options_(o) {}

    // --- counts --------------------------------------------------------------------------------

    /// Number of events.
    [[nodiscard]] std::size_t size() const noexcept { return live_; }
    /// Number of events that will be handled.
    [[nodiscard]] std::size_t pending() const noexcept { return live_ - skipped_; }
    /// Number of timers that have not ended.
    [[nodiscard]] std::size_t timers() const noexcept { return reserved_ + last_events_; }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
    /// Number of slots pushed so far.
    [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
    /// Whether there is no slot and no timer that waits for room. From any thread.
    [[nodiscard]] bool idle() const noexcept { return idle_.load(std::memory_order_relaxed); }
    /// Number of functions before the first slot; the largest number if there is no slot. From any
    /// thread.
    [[nodiscard]] std::uint64_t functions_before() const noexcept {
        return functions_before_.load(std::memory_order_relaxed);
    }

    // --- the life of a timer -------------------------------------------------------------------

    /// Lists a timer, and reserves room for its last event.
    /// @throws std::bad_alloc, with nothing changed.
    void add(const timer_ptr& t) {
        make_room();
        ++reserved_;
        timers_.push_back(*t);
        t->self = t;
    }

    /// Pushes the last event of `t`. @pre it is armed.
    void push_last(timer_type& t, std::uint64_t functions,
                   const std::optional<event_type>& event = {}) noexcept {
        skipped_ += !event;
        t.phase = phase::ending;
        --reserved_;
        ++last_events_;
        t.last_counts = event.has_value();
        unpark(t);
        push(t, functions, last{&t, event});
    }

    /// Pushes the due ticks of `t`.
    /// @pre `t` is armed.
    /// @param functions number of functions submitted so far.
    /// @param woken whether the timer's wait has ended, and the clock was not set back since.
    /// @return the due time of the next tick, if the timer must wait for it.
    [[nodiscard]] std::optional<time_point> emit(timer_type& t, std::uint64_t functions,
                                                 const clock_sight<Clock>& seen, bool woken) {
        const time_point& now = seen.now;
        if (!t.grid) {
            push_last(t, functions, event_type{t.due, now, 0});
            return {};
        }
        for (unsigned n = 0; n != ticks_at_a_time; ++n) {
            const time_point due = t.grid->scheduled().due;
            if (due > now && !std::exchange(woken, false))
                return due;
            woken = false;
            if (!has_room_for(t)) {
                park(t);
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
            push(t, functions, tick{&t, {due, now, missed}});
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
        unpark(t);
        sweep_if_many();
    }
    /// Ends all timers and discards all events.
    void kill_all() noexcept {
        slots_.clear();
        parked_.clear();
        note_first();
        for (timer_type& t : timers_) {
            t.phase = phase::ended;
            t.slots = 0;
            t.over = true;
        }
        over_.splice(over_.end(), timers_);
    }

    /// The timer waits for room or for memory. @pre it is armed.
    void park(timer_type& t) noexcept {
        if (t.parked.is_linked())
            return;
        t.crowded = true;
        parked_.push_back(t);
        note_first();
    }
    /// The timer no longer waits for room.
    void unpark(timer_type& t) noexcept {
        if (!t.parked.is_linked())
            return;
        parked_.erase(parked_.iterator_to(t));
        note_first();
    }
    /// Whether a timer waits for room, and there is some.
    [[nodiscard]] bool has_room_for_parked() noexcept {
        return !parked_.empty() && has_room_for(parked_.front());
    }
    /// Takes a timer that waits for room.
    [[nodiscard]] timer_ptr take_parked() noexcept {
        if (!has_room_for_parked())
            return nullptr;
        timer_ptr t = parked_.front().self;
        parked_.pop_front();
        note_first();
        return t;
    }

    /// Moves the timer to the list of those to release, if it is over.
    void unlist_if_over(timer_type& t) noexcept {
        if (t.phase != phase::ended || t.slots != 0 || t.runner != std::thread::id() ||
            std::exchange(t.over, true))
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
    /// Whether a timer is parked or over.
    [[nodiscard]] bool has_leftovers() const noexcept { return !parked_.empty() || !over_.empty(); }

    // --- processing ----------------------------------------------------------------------------

    /// Takes the first event, if its slot was pushed before slot number `end` and no function
    /// precedes it. This thread becomes the runner of its timer.
    /// @param functions number of functions taken so far.
    /// @return empty if there is no such event.
    [[nodiscard]] std::optional<taken_event> take(std::uint64_t end,
                                                  std::uint64_t functions) noexcept {
        while (!slots_.empty() && is_dead(slots_.front())) {
            forget(slots_.front());
            pop_front();
        }
        if (slots_.empty() || slots_.front().number >= end || slots_.front().functions > functions)
            return {};
        slot& front = slots_.front();
        taken_event result{timer_of(front)->self, {}};
        timer_type& t = *result.timer;
        --live_;
        --t.slots;
        if (const tick* const x = std::get_if<tick>(&front.what)) {
            result.event = x->event;
            --ticks_;
            --t.ticks;
        } else {
            result.event = std::get<last>(front.what).event;
            t.phase = phase::ended;
            --last_events_;
            skipped_ -= !result.event;
        }
        if (result.event)
            result.event->overruns += std::exchange(t.owed, 0);
        t.runner = std::this_thread::get_id();
        pop_front();
        return result;
    }

private:
    using phase = typename timer_type::phase_type;
    /// Maximum number of ticks that one wait pushes. If more are due, the timer waits again, so
    /// that other timers get their turn.
    static constexpr unsigned ticks_at_a_time = 64;
    struct tick {
        timer_type* timer;
        event_type event;
    };
    /// The last event of a timer. Handled for a one-off; only taken for an interval.
    struct last {
        timer_type* timer;
        std::optional<event_type> event;
    };
    /// A dropped tick.
    struct dead {};
    struct slot {
        std::uint64_t number;
        std::uint64_t functions; ///< submitted before it
        std::variant<tick, last, dead> what;
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

    template <class What>
    void push(timer_type& t, std::uint64_t functions, What&& what) noexcept {
        ++live_;
        ++t.slots;
        slots_.push_back(slot{pushed_++, functions, std::forward<What>(what)});
        note_first();
    }
    void pop_front() noexcept {
        slots_.pop_front();
        oldest_ -= oldest_ != 0;
        note_first();
    }
    void note_first() noexcept {
        functions_before_.store(slots_.empty() ? std::numeric_limits<std::uint64_t>::max()
                                               : slots_.front().functions,
                                std::memory_order_relaxed);
        idle_.store(slots_.empty() && parked_.empty(), std::memory_order_relaxed);
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
    /// The timer of an event, unless the event was dropped.
    [[nodiscard]] static timer_type* timer_of(const slot& s) noexcept {
        if (const tick* const x = std::get_if<tick>(&s.what))
            return x->timer;
        const last* const x = std::get_if<last>(&s.what);
        return x ? x->timer : nullptr;
    }
    [[nodiscard]] static bool is_dead(const slot& s) noexcept {
        const timer_type* const t = timer_of(s);
        return !t || t->phase == phase::ended;
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
        if (timer_type* const t = timer_of(s)) {
            --t->slots;
            unlist_if_over(*t);
        }
    }

    template <auto Hook>
    using list = boost::intrusive::list<
        timer_type,
        boost::intrusive::member_hook<timer_type, boost::intrusive::list_member_hook<>, Hook>,
        boost::intrusive::constant_time_size<false>>;

    const event_queue_options& options_;
    boost::circular_buffer<slot> slots_;
    std::uint64_t pushed_ = 0;
    std::atomic<bool> idle_{true};
    std::atomic<std::uint64_t> functions_before_{std::numeric_limits<std::uint64_t>::max()};
    std::size_t live_ = 0;        ///< slots that are not dead
    std::size_t skipped_ = 0;     ///< of these, last events that are not handled
    std::size_t dead_ = 0;        ///< dead slots
    std::size_t ticks_ = 0;       ///< live ticks
    std::size_t reserved_ = 0;    ///< timers without their last event
    std::size_t last_events_ = 0; ///< last events in the queue
    std::size_t oldest_ = 0;      ///< no live tick precedes this slot
    std::uint64_t dropped_ = 0;
    list<&timer_type::listed> timers_;
    list<&timer_type::listed> over_;   ///< removed from timers_, to be released without the lock
    list<&timer_type::parked> parked_; ///< armed, due, and without a wait
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_TIMER_EVENTS_HPP
