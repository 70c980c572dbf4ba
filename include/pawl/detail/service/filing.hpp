// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Files the timers of a shard in its time structure. This header is for wheels, which take any
///   timer; ring_filing.hpp is for rings, which may be full.
///
/// Threads
///   Guarded by the shard's lock.
///
/// Cost
///   O(1), except make_room(), which moves all timers once when a wheel grows.
#ifndef PAWL_DETAIL_SERVICE_FILING_HPP
#define PAWL_DETAIL_SERVICE_FILING_HPP

#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/wait_ledger.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>
#include <pawl/options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace pawl::detail {

/// A reading of a clock as an integer with the same order.
enum class clock_reading : std::uint64_t {};

/// The deadline of a timer on a clock that may be set back.
struct settable_deadline {
    time::tick due;
    /// The expiry, if it had passed when it was set. `due` is then the tick that contains it, not
    /// the next one; and setting the clock back to before the expiry makes the timer wait again,
    /// even within that tick.
    clock_reading passed{};
};

/// The result of filing a timer.
struct filed {
    time::tick wake = time::tick::never(); ///< when the driver must wake the shard
    bool done = true;                      ///< the timer is filed
    timer_core* overflowed = nullptr;      ///< has to expire now, for lack of room
};

/// The filing of a wheel.
template <time::backend Backend>
class filing {
    static_assert(time::rewindable_backend<Backend>,
                  "a backend for rings: include <pawl/ring_timer.hpp>");

    using tick = time::tick;

public:
    using deadline = tick;

    filing(const options& o, time::tick now) : backend_(o.level_bits, now) {}

    [[nodiscard]] Backend& backend() noexcept { return backend_; }
    [[nodiscard]] const Backend& backend() const noexcept { return backend_; }

    /// Files a timer, unless it is already filed for other waits.
    /// @param alone it has no other armed waits.
    filed file(timer_core& timer, deadline due, bool alone) noexcept {
        if (!timer.filed())
            backend_.insert(timer, due);
        else if (alone)
            backend_.rearm(timer, due);
        return {due};
    }

    /// Files a timer again, for all its waits.
    filed file_anew(timer_core& timer, deadline due) noexcept {
        // Checked in this order: a timer with an armed wait is filed, and its links need not be
        // read.
        if (wait_ledger::sure_of_one(timer) || timer.filed())
            backend_.rearm(timer, due);
        else
            backend_.insert(timer, due);
        return {due};
    }

    /// The same for a clock that can be set back.
    filed file(timer_core& timer, settable_deadline when, bool alone) noexcept {
        const bool stays = timer.filed() && !alone;
        const filed place = file(timer, when.due, alone);
        if (!stays)
            note(timer, when);
        return place;
    }
    filed file_anew(timer_core& timer, settable_deadline when) noexcept {
        const filed place = file_anew(timer, when.due);
        note(timer, when);
        return place;
    }

    /// The latest expiry among filed timers whose tick was rounded down because it had passed. A
    /// clock that reads less was set back. The timer may no longer be filed.
    [[nodiscard]] clock_reading passed() const noexcept { return passed_; }
    /// Everything due at such a reading has been handed out.
    void forget_passed() noexcept { passed_ = {}; }

    /// The clock was set back, to tick `now` or to before `passed()`. Moves everything that is
    /// filed to `all`.
    void set_back(tick now, clock_reading reading, typename Backend::detached& all) noexcept {
        backend_.detach_all(all);
        backend_.rewind(std::min(now, backend_.now()));
        lies_ahead_ = reading < passed_;
        if (lies_ahead_)
            forget_passed();
    }

    /// Files a timer that set_back() has detached.
    void refile(time::timer_node& node) noexcept {
        if (lies_ahead_ && (node.user() & rounded_down) != 0) {
            node.set_user(0, rounded_down);
            node.due = tick{node.due.count() + 1};
        }
        backend_.refile(node);
    }

    /// Makes room for a timer that is one of `timers`. Allocates with `mutex` unlocked.
    /// @return true if it was unlocked: check again.
    /// @throws std::bad_alloc
    template <class Mutex, class Deadline>
    [[nodiscard]] bool make_room(Mutex& mutex, std::size_t timers, timer_core&, const Deadline&) {
        if constexpr (time::reserving_backend<Backend>)
            return !backend_.has_room_for(timers) && add_room(mutex);
        else
            return false;
    }
    /// The same for a time when all timers are detached.
    template <class Mutex>
    [[nodiscard]] bool make_room_to_detach(Mutex& mutex, std::size_t timers) {
        if constexpr (time::reserving_backend<Backend>)
            return !backend_.has_room_to_detach(timers) && add_room(mutex);
        else
            return false;
    }

    /// Unfiles some timer.
    /// @return false if there is none.
    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        node = backend_.any();
        if (node)
            backend_.erase(*node);
        return node != nullptr;
    }

    /// Unfiles a timer of a set.
    /// @return false if none is left.
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        node = set.pop();
        return node != nullptr;
    }

private:
    /// A bit of timer_node::user, next to those of the ledger: the timer is filed under the tick
    /// that contains its expiry, rounded down.
    static constexpr unsigned rounded_down = 4;

    template <class Mutex>
    PAWL_DETAIL_NOINLINE bool add_room(Mutex& mutex) {
        const std::size_t size = backend_.next_room_part();
        const unlocked meanwhile(mutex);
        typename Backend::room_part part(size); // if another thread was faster, freed unlocked
        const std::scoped_lock lock(mutex);
        backend_.add_room(part);
        return true;
    }

    void note(timer_core& timer, const settable_deadline& when) noexcept {
        timer.set_user(when.passed != clock_reading{} ? rounded_down : 0, rounded_down);
        passed_ = std::max(passed_, when.passed);
    }

    Backend backend_;
    clock_reading passed_{};
    bool lies_ahead_ = false; ///< some expiries that had passed lie ahead again
};

/// The table of delays of a service. Empty unless the backend is rings.
template <time::backend Backend>
struct delay_table {
    explicit delay_table(const options&) noexcept {}
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_FILING_HPP
