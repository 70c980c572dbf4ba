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
///   O(1).
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
#include <memory>
#include <mutex>
#include <utility>

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

    [[nodiscard]] bool refused() const noexcept { return !done && !overflowed; }
};

/// What decides whether a reading of the clock is a set-back.
struct filing_sight {
    time::tick now;         ///< the position of the time structure
    clock_reading passed{}; ///< the latest expiry filed as passed
    unsigned set_backs = 0; ///< how often the clock was set back

    [[nodiscard]] bool lies_ahead(time::tick t, clock_reading reading) const noexcept {
        return t < now || reading < passed;
    }
};

/// The filing of a wheel.
template <time::backend Backend>
class filing {
    static_assert(time::rewindable_backend<Backend>,
                  "a backend for rings: include <pawl/ring_timer.hpp>");

    using tick = time::tick;

public:
    using deadline = time::deadline_of<Backend>;

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
    PAWL_DETAIL_ALWAYS_INLINE filed file_anew(timer_core& timer, deadline due) noexcept {
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

    // --- a clock that is set back -------------------------------------------------------------

    [[nodiscard]] filing_sight seen() const noexcept {
        return {backend_.now(), passed_, set_backs_};
    }

    /// Whether nothing may be collected: the clock was set back after the reading, or set_back()
    /// is filing timers again, in any order.
    /// @param set_backs what seen() returned before the clock was read.
    [[nodiscard]] bool outdated(unsigned set_backs, clock_reading reading) const noexcept {
        return set_backs != set_backs_ || reading < passed_ || set_aside_;
    }

    /// Everything due at the latest reading has been handed out.
    void forget_passed() noexcept { passed_ = {}; }

    /// The clock was set back, to tick `now` or to before `passed`. Detaches everything: to be
    /// filed again by refile_one().
    /// @return false if another thread has handled it.
    [[nodiscard]] bool set_back(tick now, clock_reading reading,
                                std::unique_ptr<typename Backend::detached>& all) noexcept {
        if (set_aside_ || !seen().lies_ahead(now, reading))
            return false;
        backend_.detach_all(*all);
        backend_.rewind(std::min(now, backend_.now()));
        lies_ahead_ = reading < passed_;
        if (lies_ahead_)
            forget_passed();
        ++set_backs_;
        set_aside_ = std::move(all);
        return true;
    }

    /// Files a timer that set_back() has detached.
    /// @return false if there is none.
    [[nodiscard]] bool refile_one() noexcept {
        time::timer_node* const node = set_aside_ ? set_aside_->pop() : nullptr;
        if (!node)
            return false;
        if (lies_ahead_ && (node->user() & rounded_down) != 0) {
            node->set_user(0, rounded_down);
            node->due = tick{node->due.count() + 1};
        }
        backend_.refile(*node);
        return true;
    }
    /// All is filed again.
    /// @return what held it, to be freed unlocked.
    [[nodiscard]] auto end_set_back() noexcept { return std::move(set_aside_); }

    // --- room ---------------------------------------------------------------------------------

    /// Whether a timer fits that is one of `timers`.
    template <class Deadline>
    [[nodiscard]] bool has_room_for(std::size_t timers, timer_core&, const Deadline&) const {
        if constexpr (time::reserving_backend<Backend>)
            return backend_.has_room_for(timers);
        else
            return true;
    }
    /// The same for a time when all timers are detached.
    [[nodiscard]] bool has_room_to_detach([[maybe_unused]] std::size_t timers) const {
        if constexpr (time::reserving_backend<Backend>)
            return backend_.has_room_to_detach(timers);
        else
            return true;
    }

    /// Adds room, allocated with `mutex` unlocked. Enough, or not: ask again.
    /// @throws std::bad_alloc
    template <class Mutex, class... Deadline>
    void add_room([[maybe_unused]] Mutex& mutex, const Deadline&...) {
        if constexpr (time::reserving_backend<Backend>) {
            const std::size_t size = backend_.next_room_part();
            const unlocked meanwhile(mutex);
            typename Backend::room_part part(size); // if another thread was faster, freed unlocked
            const std::scoped_lock lock(mutex);
            backend_.add_room(part);
        }
    }

    // --- the end ------------------------------------------------------------------------------

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

    void note(timer_core& timer, const settable_deadline& when) noexcept {
        timer.set_user(when.passed != clock_reading{} ? rounded_down : 0, rounded_down);
        passed_ = std::max(passed_, when.passed);
    }

    Backend backend_;
    /// The latest expiry among filed timers whose tick was rounded down because it had passed. A
    /// clock that reads less was set back. The timer may no longer be filed.
    clock_reading passed_{};
    bool lies_ahead_ = false; ///< some expiries that had passed lie ahead again
    unsigned set_backs_ = 0;
    std::unique_ptr<typename Backend::detached> set_aside_; ///< what refile_one() must still file
};

/// The table of delays of a service. Empty unless the backend is rings.
template <time::backend Backend>
struct delay_table {
    explicit delay_table(const options&) noexcept {}
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_FILING_HPP
