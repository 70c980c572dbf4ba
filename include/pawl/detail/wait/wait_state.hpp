// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The state word of one wait and all its legal transitions. This is where the library's one race
///   is decided: expiry against cancel against re-arm (P4). No other file changes a state.
///
/// Model
///   A wait is pending while it is `armed` or `due`. The transition that leaves these states
///   decides who completes the wait, and with what result. A carrier is whatever is on its way to
///   run the wait: first its entry in the due queue, later the function object queued on the
///   executor of its handler.
///
///   P4 is decided in arrive(): `due -> started` happens where the handler is about to be invoked,
///   not where it is queued. Until then cancel and re-arm win.
///
///     transition  from            to         caller                   carrier
///     arm         idle            armed      the initiating function  -
///     fall_due    armed           due        expiry                   made, unless one is left
///     pull_back   due             armed      re-arm                   stays on its way
///     cancel      armed           cancelled  cancel, destruction,     made, unless one is left
///                                            expire_all
///     cancel      due             cancelled  cancel, destruction      the same one
///     cancel      armed           cancelled  take() of an entry with  that entry
///                                            a noted cancel
///     withdraw    armed           idle       the object that the wait -
///                                            is part of, or a start
///                                            that has failed
///     arrive      due, cancelled  started    the carrier              consumed
///     arrive      armed           armed      the carrier              pinned until park
///     park        armed           armed      the carrier              consumed
///
///   The wait of an alarm is used again, so it also goes back to idle:
///
///     arm         idle, started,  armed      an alarm is armed        stays on its way, if there is one
///                 cancelled
///     disarm      armed, due      idle       disarm()                 the same
///       (noted late: see the hint invariant of wait_ledger.hpp)
///     condemn     idle, cancelled cancelled  the end of the alarm     the same one
///     condemn     idle, started   idle       the same                 - (one that has arrived calls
///                                                                     nothing)
///     arrive      idle            idle       the carrier              pinned until park
///     park        idle            idle       the carrier              consumed
///     begin       started         idle       the carrier, about to    -
///                                            call the function
///
///   Who else decides a race of a wait, and under which lock:
///
///     race                            decided in              by
///     handler against cancel, re-arm  arrive(), here          this word; the lock of the shard
///     the same, for a wait that only  wait_ledger::cancel()   due_entry::cancelled(); the same lock.
///     its timer points at                                     The wait stays `armed` until take():
///                                                             only that entry can reach it
///     limit against operation         withdraw(), here        this word; the same lock
///     the last of both to end         limit_parties::leave()  an atomic word: it frees the object
///     end of a member against         group_state::end()      this word; the lock of the group
///     cancel of its group
///     signal against completion       slot_link::operation()  null once the wait has begun; the
///                                                             lock of the shard
///     copies of a carrier             claim::take()           an atomic pointer
///     failed start against expiry     shard::take_back()      is it still the newest, without a
///                                                             carrier; the lock of the shard
///
/// Invariants
///   - One-carrier invariant: a wait has at most one carrier. If a wait was pulled back and becomes
///     due again before its carrier has arrived, that carrier runs it. So no second carrier can
///     hold a dangling pointer.
///   - Carrier-ownership invariant: while a wait has a carrier, only the carrier may free it. A
///     wait without a carrier is `armed`, and reachable from its timer or, if its cancel is noted,
///     from that entry only.
///   - Finality invariant: `started` is entered in arrive() only, and final, except for an alarm,
///     which goes on to `idle`. If it is armed, or goes, between the two, that carrier calls
///     nothing.
///
/// Threads
///   A plain word: every transition happens under the lock of the wait's shard. An atomic word
///   would save no lock, because each transition also moves the wait between lists that the lock
///   guards.
#ifndef PAWL_DETAIL_WAIT_WAIT_STATE_HPP
#define PAWL_DETAIL_WAIT_WAIT_STATE_HPP

#include <pawl/config.hpp>

#include <cstdint>

namespace pawl::detail {

/// Where a wait is between its start and the invocation of its handler.
enum class wait_phase : std::uint8_t {
    idle,      ///< not yet known to a shard, or withdrawn; an alarm that is not armed
    armed,     ///< waiting for its deadline
    due,       ///< its deadline has passed; the handler has not begun, and cancel still wins
    cancelled, ///< ended with a result; no longer in the list of its timer
    started,   ///< the handler is being invoked; that of an alarm is about to be
};

/// The state of one wait. Guarded by the lock of its shard.
class wait_state {
public:
    [[nodiscard]] wait_phase phase() const noexcept { return phase_; }

    /// Whether a carrier is on its way: at most one is (one-carrier invariant).
    [[nodiscard]] bool carried() const noexcept { return carried_; }

    /// Whether cancel and re-arm can still win.
    [[nodiscard]] bool pending() const noexcept {
        return phase_ == wait_phase::armed || phase_ == wait_phase::due;
    }

    /// Whether a carrier that is on its way has nothing to do: a re-arm has pulled the wait back, or an
    /// alarm was disarmed.
    [[nodiscard]] bool finds_nothing() const noexcept { return phase_ <= wait_phase::armed; }

    void arm() noexcept {
        PAWL_ASSERT(!pending());
        phase_ = wait_phase::armed;
    }

    /// @return true if the caller must put the wait into the due queue.
    [[nodiscard]] bool fall_due() noexcept {
        PAWL_ASSERT(phase_ == wait_phase::armed);
        phase_ = wait_phase::due;
        return take_carrier();
    }

    void pull_back() noexcept {
        PAWL_ASSERT(phase_ == wait_phase::due && carried_);
        phase_ = wait_phase::armed;
    }

    /// @return true if the caller must put the wait into the due queue.
    [[nodiscard]] bool cancel() noexcept {
        PAWL_ASSERT(pending());
        phase_ = wait_phase::cancelled;
        return take_carrier();
    }

    /// Ends a wait silently.
    /// @return false if the wait is over, or has a carrier (carrier-ownership invariant).
    [[nodiscard]] bool withdraw() noexcept {
        if (phase_ != wait_phase::armed || carried_)
            return false;
        phase_ = wait_phase::idle;
        return true;
    }

    /// Ends the wait of an alarm silently. A carrier that is on its way finds nothing.
    void disarm() noexcept {
        PAWL_ASSERT(pending());
        phase_ = wait_phase::idle;
    }

    /// The alarm goes. A carrier that has arrived, and not begun, calls nothing.
    /// @return whether a carrier is on its way: it comes, and frees the memory.
    [[nodiscard]] bool condemn() noexcept {
        PAWL_ASSERT(!pending());
        phase_ = carried_ ? wait_phase::cancelled : wait_phase::idle;
        return carried_;
    }

    /// The function of an alarm is about to be called.
    /// @return false if the alarm was armed again, or another carrier has begun.
    [[nodiscard]] bool begin() noexcept {
        if (phase_ != wait_phase::started)
            return false;
        phase_ = wait_phase::idle;
        return true;
    }

    /// Here P4 is decided: the carrier has arrived where the handler can be invoked.
    /// @return true if the carrier now owns the wait and must complete it; false if the wait was
    ///         pulled back: it stays pinned in memory until the carrier calls park().
    [[nodiscard]] bool arrive() noexcept {
        PAWL_ASSERT(carried_);
        if (finds_nothing())
            return false;
        PAWL_ASSERT(phase_ == wait_phase::due || phase_ == wait_phase::cancelled);
        phase_ = wait_phase::started;
        carried_ = false;
        return true;
    }

    /// Ends the carrier of a wait that was pulled back, or of an alarm that was disarmed.
    void park() noexcept {
        PAWL_ASSERT(carried_ && finds_nothing());
        carried_ = false;
    }

private:
    [[nodiscard]] bool take_carrier() noexcept {
        const bool had_one = carried_;
        carried_ = true;
        return !had_one;
    }

    wait_phase phase_ = wait_phase::idle;
    bool carried_ = false;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_WAIT_STATE_HPP
