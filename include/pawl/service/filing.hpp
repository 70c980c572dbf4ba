// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Files the timers of a shard in its time structure. A wheel takes any timer; for a set of rings
///   see ring_filing.hpp, which those who use none need not compile.
///
/// Threads
///   Guarded by the lock of the shard.
///
/// Cost
///   O(1), but for make_room(), which moves all timers once.
#ifndef PAWL_SERVICE_FILING_HPP
#define PAWL_SERVICE_FILING_HPP

#include <pawl/service/options.hpp>
#include <pawl/service/wait_ledger.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

namespace pawl::time {

class timeout_rings;

} // namespace pawl::time

namespace pawl::detail {

template <class Backend>
concept ring_backend = std::same_as<Backend, time::timeout_rings>;

template <class Backend>
concept any_backend = time::backend<Backend> || ring_backend<Backend>;

/// A reading of a clock, as a number that compares as the reading does.
enum class clock_reading : std::uint64_t {};

/// When a timer is due whose clock may be set back.
struct settable_deadline {
    time::tick due;
    /// The expiry, if it had passed, so that `due` is the tick in which it lies, not the next one.
    /// Then it is due no more if the clock is set back to before it, be it in that tick.
    clock_reading passed{};
};

/// It becomes another one when it has a crowd, and says when: time::growing_wheel.
template <class Backend>
concept growing_backend = requires(Backend& b) {
    { b.wants_to_grow() } noexcept -> std::same_as<bool>;
    b.grow(Backend::make_room());
};

/// What became of a timer that was to be filed.
struct filed {
    time::tick wake = time::tick::never(); ///< when the driver has to come for it
    bool done = false;                     ///< it has its place
};

/// The filing of a wheel.
template <any_backend Backend>
class filing {
    static_assert(!ring_backend<Backend>, "include <pawl/ring_timer.hpp>");

    using tick = time::tick;

public:
    using deadline = tick;

    filing(const options& o, time::tick now) : backend_(o.level_bits, now) {}

    [[nodiscard]] Backend& backend() noexcept { return backend_; }
    [[nodiscard]] const Backend& backend() const noexcept { return backend_; }

    /// Files a timer, unless it is filed already for its other waits.
    /// @param alone it has no other armed waits.
    filed file(timer_core& timer, deadline due, bool alone) noexcept {
        if (!timer.filed())
            backend_.insert(timer, due);
        else if (alone)
            backend_.rearm(timer, due);
        return {due, true};
    }

    /// Files a timer with all its waits.
    filed file_anew(timer_core& timer, deadline due) noexcept {
        // In this order: a timer with an armed wait is filed, and its links need not be looked at.
        if (wait_ledger::sure_of_one(timer) || timer.filed())
            backend_.rearm(timer, due);
        else
            backend_.insert(timer, due);
        return {due, true};
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

    /// The latest expiry of a filed timer whose tick was rounded down since it had passed: while the
    /// clock reads less, it was set back. May be that of a timer that is not filed any more.
    [[nodiscard]] clock_reading passed() const noexcept { return passed_; }
    /// All that is due at a reading that is no earlier has been handed out.
    void forget_passed() noexcept { passed_ = {}; }

    /// The clock was set back, to tick `now` or before what had passed. All that is filed goes to
    /// `all`.
    void set_back(tick now, clock_reading reading, typename Backend::detached& all) noexcept {
        backend_.detach_all(all);
        backend_.rewind(std::min(now, backend_.now()));
        lies_ahead_ = reading < passed_;
        if (lies_ahead_)
            forget_passed();
    }

    /// Files a timer that set_back() has taken.
    void refile(time::timer_node& node) noexcept {
        if (lies_ahead_ && (node.user() & rounded_down) != 0) {
            node.set_user(0, rounded_down);
            node.due = tick{node.due.count() + 1};
        }
        backend_.refile(node);
    }

    template <class Deadline>
    [[nodiscard]] static constexpr bool refuses(const Deadline&) noexcept {
        return false;
    }

    /// Has the wheel grow, if it wants to and there is memory. That is allocated with `lock` released.
    /// @return true if the lock was released: look again.
    template <class Lock>
        requires growing_backend<Backend>
    [[nodiscard]] bool make_room(Lock& lock) {
        if (!backend_.wants_to_grow())
            return false;
        lock.unlock();
        auto room = Backend::make_room();
        lock.lock();
        if (backend_.wants_to_grow())
            backend_.grow(std::move(room));
        lock.unlock(); // if it does not want to any more, the room is freed here
        room.reset();
        lock.lock();
        return true;
    }

    /// Lets go of some timer. @return false if there is none.
    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        node = backend_.any();
        if (node)
            backend_.erase(*node);
        return node != nullptr;
    }

    /// Lets go of a timer of a set. @return false if none is left.
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        node = set.pop();
        return node != nullptr;
    }

private:
    /// A bit of timer_node::user, besides those of the ledger: filed by the tick in which its
    /// expiry lies, which is later than the begin of that tick.
    static constexpr unsigned rounded_down = 4;

    void note(timer_core& timer, const settable_deadline& when) noexcept {
        timer.set_user(when.passed != clock_reading{} ? rounded_down : 0, rounded_down);
        passed_ = std::max(passed_, when.passed);
    }

    Backend backend_;
    clock_reading passed_{};
    bool lies_ahead_ = false; ///< some of what had passed, for what set_back() has taken
};

/// What a service knows of delays besides: nothing, unless it has rings.
template <any_backend Backend>
struct delay_table {
    explicit delay_table(const options&) noexcept {}
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_FILING_HPP
