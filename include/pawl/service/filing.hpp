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

#include <concepts>
#include <utility>

namespace pawl::time {

class timeout_rings;

} // namespace pawl::time

namespace pawl::detail {

template <class Backend>
concept ring_backend = std::same_as<Backend, time::timeout_rings>;

template <class Backend>
concept any_backend = time::backend<Backend> || ring_backend<Backend>;

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

public:
    using deadline = time::tick;

    filing(const options& o, time::tick now) : backend_(o.level_bits, now) {}

    [[nodiscard]] Backend& backend() noexcept { return backend_; }
    [[nodiscard]] const Backend& backend() const noexcept { return backend_; }

    /// Files a timer, unless it is filed already for its other waits.
    /// @param alone it has no other armed waits.
    filed file(wait_ledger&, timer_core& timer, deadline due, bool alone) noexcept {
        if (!timer.filed())
            backend_.insert(timer, due);
        else if (alone)
            backend_.rearm(timer, due);
        return {due, true};
    }

    /// Files a timer with all its waits.
    filed file_anew(wait_ledger&, timer_core& timer, deadline due) noexcept {
        // In this order: a timer with an armed wait is filed, and its links need not be looked at.
        if (wait_ledger::sure_of_one(timer) || timer.filed())
            backend_.rearm(timer, due);
        else
            backend_.insert(timer, due);
        return {due, true};
    }

    [[nodiscard]] static constexpr bool refuses(deadline) noexcept { return false; }

    /// Has the wheel grow, if it wants to and there is memory. That is allocated with `lock` released.
    /// @return true if the lock was released: look again.
    template <class Lock>
        requires growing_backend<Backend>
    [[nodiscard]] bool make_room(Lock& lock, const timer_core&, deadline) {
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
    Backend backend_;
};

/// What a service knows of delays besides: nothing, unless it has rings.
template <any_backend Backend>
struct delay_table {
    explicit delay_table(const options&) noexcept {}
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_FILING_HPP
