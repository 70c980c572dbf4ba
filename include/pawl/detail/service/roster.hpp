// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The timers of a shard and their waits: what happens to them, and what observers are told about
///   it. Which units must come for it, and when, is the shard's business.
///
/// Model
///   A timer is filed in the time structure; its waits are in the ledger. Each function makes one
///   change to both, and notes it: nothing else does, so no change goes unnoticed.
///
/// Threads
///   Guarded by the shard's lock, except ledger().armed() and the parts of attention.
///
/// Cost
///   O(1) for one wait; no call allocates.
#ifndef PAWL_DETAIL_SERVICE_ROSTER_HPP
#define PAWL_DETAIL_SERVICE_ROSTER_HPP

#include <pawl/detail/service/filing.hpp>
#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/wait_ledger.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>
#include <pawl/options.hpp>

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace pawl::detail {

template <time::backend Backend>
class roster {
    using tick = time::tick;

public:
    static constexpr bool may_be_full = time::bounded_backend<Backend>;

    roster(const options& o, tick now) : files_(o, now), batch_(o.batch_limit) {
        if (batch_ > most_on_stack)
            found_ = std::make_unique<time::timer_node*[]>(batch_);
    }

    [[nodiscard]] filing<Backend>& files() noexcept { return files_; }
    [[nodiscard]] wait_ledger& ledger() noexcept { return ledger_; }
    [[nodiscard]] const wait_ledger& ledger() const noexcept { return ledger_; }
    [[nodiscard]] attention& observers() noexcept { return observers_; }
    [[nodiscard]] const attention& observers() const noexcept { return observers_; }

    // --- one timer ----------------------------------------------------------------------------

    /// Starts a wait. With a full ring it may be over at once.
    /// @pre there is room.
    template <class Wait, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE filed start(timer_core& timer, Wait& op,
                                          const Deadline& due) noexcept {
        if (observers_.needed()) [[unlikely]]
            observers_.note({timer_event_kind::armed, &timer, due_of(due)});
        const bool alone = ledger_.start(timer, op);
        const filed place = files_.file(timer, due, alone);
        if constexpr (may_be_full) {
            if (place.refused()) {
                overflow(timer, due.due);
                (void)finish(timer_event_kind::cancelled, timer, wait_ledger::refusal(),
                             wait_ending::early);
            }
            expire_overflowed(place);
        }
        return place;
    }

    /// Starts a wait that is refused, and over at once.
    /// @pre there is room.
    template <class Deadline>
    void refuse(const timer_core& timer, wait_operation& op, const Deadline& due) noexcept {
        observers_.note({timer_event_kind::armed, &timer, due_of(due)});
        ledger_.refuse(op);
        observers_.note({timer_event_kind::cancelled, &timer, due_of(due)});
    }

    struct rearmed {
        std::size_t count = 0; ///< waits of the timer
        filed place{};
    };

    /// Moves the deadline of the waits of `timer`.
    /// @tparam Observed observers().needed()
    /// @pre pending(timer)
    template <bool Observed, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE rearmed rearm(timer_core& timer, const Deadline& due) noexcept {
        rearmed out{0, files_.file_anew(timer, due)};
        if constexpr (may_be_full) {
            if (out.place.refused())
                return out;
        }
        out.count = ledger_.pull_back(timer);
        moved_ += out.count;
        if constexpr (Observed)
            observers_.note({timer_event_kind::moved, &timer, due_of(due), out.count});
        if constexpr (may_be_full)
            expire_overflowed(out.place);
        return out;
    }

    /// Starts the wait of an alarm, or moves its deadline.
    /// @tparam Observed observers().needed()
    /// @param moves pending(timer)
    template <bool Observed, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE filed arm(timer_core& timer, alarm_wait& op, bool moves,
                                        const Deadline& due) noexcept {
        if constexpr (Observed)
            observers_.note(
                {moves ? timer_event_kind::moved : timer_event_kind::armed, &timer, due_of(due)});
        const filed place = files_.file_anew(timer, due);
        if (moves)
            moved_ += ledger_.pull_back(timer);
        else
            ledger_.start(timer, op);
        return place;
    }

    /// Whether `timer` has waits that have not begun.
    [[nodiscard]] static bool pending(const timer_core& timer) noexcept {
        return wait_ledger::sure_of_one(timer) || timer.newest() != nullptr;
    }

    /// Ends a wait that has no carrier, and has not begun. One that has a carrier it cancels, if
    /// told to.
    /// @return true if nothing here points at the wait any more.
    [[nodiscard]] bool withdraw(wait_operation& op, bool or_cancel) noexcept {
        if (observers_.needed() && op.state.pending() && (or_cancel || !op.state.carried()))
            [[unlikely]]
            observers_.note({timer_event_kind::cancelled, &op.timer(), op.timer().due});
        if (ledger_.withdraw(op)) [[likely]]
            return true;
        if (or_cancel && op.state.pending())
            ledger_.cancel(op, wait_ledger::aborted());
        return false;
    }

    /// Cancels up to `limit` waits of `timer` that have not begun, oldest first.
    /// @return how many.
    [[nodiscard]] std::size_t cancel(timer_core& timer, std::size_t limit) noexcept {
        const std::size_t count = ledger_.cancel(timer, limit);
        if (observers_.needed()) [[unlikely]]
            observers_.note({timer_event_kind::cancelled, &timer, timer.due, count});
        return count;
    }

    /// Ends the wait of an alarm.
    /// @return false if it is not armed.
    [[nodiscard]] bool disarm(timer_core& timer, alarm_wait& op) noexcept {
        note_disarm(timer);
        return ledger_.disarm(timer, op);
    }

    /// The same for ever.
    void bar(alarm_wait& op) noexcept {
        if (const timer_core* const timer = op.owner())
            note_disarm(*timer);
        ledger_.bar(op);
    }

    /// An alarm goes.
    void condemn(timer_core& timer, alarm_wait& op) noexcept {
        note_disarm(timer);
        ledger_.condemn(timer, op);
        erase(timer);
    }

    /// Cancels the wait of a cancellation slot.
    /// @return whether it still existed.
    [[nodiscard]] bool cancel(slot_link& link) noexcept {
        wait_operation* const op = link.operation();
        if (!op || !op->state.pending())
            return false;
        if (observers_.needed()) [[unlikely]]
            observers_.note({timer_event_kind::cancelled, &op->timer(), op->timer().due});
        ledger_.cancel(*op, wait_ledger::aborted());
        return true;
    }

    /// A carrier has arrived. It is about to invoke the handler, or to destroy it.
    /// @param what says which.
    void note_arrival(const wait_operation& op, timer_event_kind what) noexcept {
        if (observers_.needed() && op.owner()) [[unlikely]]
            observers_.note({what, op.owner(), op.owner()->due});
    }

    /// Moves the place and the waits of `from` to `to`, which has none.
    /// @param alarm the wait of an alarm, which it has although it is not armed.
    void move(timer_core& from, timer_core& to, wait_operation* alarm) noexcept {
        if (observers_.needed()) [[unlikely]]
            observers_.note_move(from, &to);
        files_.backend().move_node(from, to);
        to.set_newest(from.newest());
        from.set_newest(nullptr);
        to.for_each_wait([&](wait_operation& op) { op.set_owner(&to); });
        if (alarm && alarm->owner())
            alarm->set_owner(&to);
    }

    /// The timer goes. It has no waits.
    void erase(timer_core& timer) noexcept {
        if (observers_.needed()) [[unlikely]]
            observers_.note_move(timer, nullptr);
        if (timer.filed())
            files_.backend().erase(timer);
    }

    // --- many timers --------------------------------------------------------------------------

    /// At most so many at once.
    [[nodiscard]] std::size_t batch() const noexcept { return batch_; }

    /// The waits of a batch of timers that are due at `now` fall due.
    /// @return whether there are more.
    [[nodiscard]] bool expire(tick now) noexcept {
        time::timer_node* few[most_on_stack];
        const std::span<time::timer_node*> found(found_ ? found_.get() : few, batch_);
        const auto [emitted, more] = files_.backend().expire(now, found);
        if (!more)
            files_.forget_passed();
        if (observers_.needed()) [[unlikely]]
            note_due(now, found.first(emitted));
        for (std::size_t i = 0; i < emitted; ++i) {
            // The timers are in the cache; their waits are scattered in memory.
            if (constexpr std::size_t ahead = 6; i + ahead < emitted)
                static_cast<timer_core*>(found[i + ahead])->prefetch_wait();
            ledger_.fall_due(static_cast<timer_core&>(*found[i]));
        }
        return more;
    }

    /// Ends the armed waits of a timer.
    /// @return how many.
    std::size_t finish(timer_event_kind what, time::timer_node& node,
                       const boost::system::error_code& ec, wait_ending how) noexcept {
        auto& timer = static_cast<timer_core&>(node);
        const bool disarms = how == wait_ending::cancelled && what != timer_event_kind::shut_down;
        const std::size_t count = ledger_.finish(timer, ec, how, disarms);
        if (observers_.needed()) [[unlikely]]
            observers_.note({what, &timer, timer.due, count});
        return count;
    }

    /// Takes the next wait of a closed shard, or ends the waits of one timer.
    /// @param op the wait, which the caller owns; nullptr if there is none yet.
    /// @return false if none is left.
    [[nodiscard]] bool remove_any(wait_operation*& op) noexcept {
        op = nullptr;
        if (ledger_.due() == 0) {
            time::timer_node* node = nullptr;
            if (!files_.take_any(node))
                return false;
            if (node)
                (void)finish(timer_event_kind::shut_down, *node, wait_ledger::aborted(),
                             wait_ending::cancelled);
        } else if ((op = ledger_.take_over())) {
            if (const timer_core* const owner = op->owner())
                observers_.note({timer_event_kind::shut_down, owner, owner->due});
        }
        return true;
    }

    // --- counts -------------------------------------------------------------------------------

    /// See observed_shard.
    [[nodiscard]] shard_counts counts() const noexcept {
        shard_counts c;
        c.pending = ledger_.live();
        c.armed = ledger_.armed();
        c.filed = files_.backend().size();
        c.started = ledger_.started();
        c.moved = moved_;
        c.expired = ledger_.expired();
        c.cancelled = c.started - c.pending - c.expired;
        c.overflowed = overflowed_;
        c.refused = ledger_.refusals();
        if constexpr (requires { files_.backend().level_moves(); })
            c.level_moves = files_.backend().level_moves();
        return c;
    }
    std::size_t count_levels([[maybe_unused]] std::size_t* levels) const noexcept {
        if constexpr (requires { files_.backend().levels(); }) {
            if (levels)
                files_.backend().count_levels(levels);
            return files_.backend().levels();
        } else {
            return 0;
        }
    }

private:
    /// 2 KB of pointers: the default of batch_limit.
    static constexpr std::size_t most_on_stack = 256;

    template <class Deadline>
    [[nodiscard]] static tick due_of(const Deadline& due) noexcept {
        if constexpr (std::is_same_v<Deadline, tick>)
            return due;
        else
            return due.due;
    }

    void note_disarm(const timer_core& timer) noexcept {
        if (observers_.needed() && timer.newest()) [[unlikely]]
            observers_.note({timer_event_kind::cancelled, &timer, timer.due});
    }

    void expire_overflowed(const filed& place) noexcept {
        if (!place.overflowed)
            return;
        overflow(*place.overflowed, place.overflowed->due);
        ledger_.fall_due(*place.overflowed);
    }

    /// Counts and notes that a full ring refused the armed waits of `timer`, or made them due.
    void overflow(const timer_core& timer, tick due) noexcept {
        const std::size_t count = wait_ledger::armed_of(timer);
        overflowed_ += count;
        if (observers_.needed()) [[unlikely]]
            observers_.note({timer_event_kind::overflowed, &timer, due, count});
    }

    PAWL_DETAIL_COLD void note_due(tick now, std::span<time::timer_node*> found) noexcept {
        for (const time::timer_node* const node : found) {
            const auto& timer = static_cast<const timer_core&>(*node);
            observers_.note(
                {timer_event_kind::due, &timer, timer.due, wait_ledger::armed_of(timer), now});
        }
    }

    filing<Backend> files_;
    wait_ledger ledger_;
    attention observers_;
    std::uint64_t moved_ = 0;      ///< waits moved by re-arms
    std::uint64_t overflowed_ = 0; ///< waits that met a full ring
    const std::size_t batch_;
    std::unique_ptr<time::timer_node*[]> found_; ///< the timers of one batch that is larger
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_ROSTER_HPP
