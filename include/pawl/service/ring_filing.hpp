// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Files the timers of a shard in rings. Rings take timers with certain delays only, and have a
///   capacity: this header decides what happens when a ring is full.
///
/// Threads
///   Guarded by the shard's lock.
///
/// Cost
///   O(1). With `flush_oldest`, filing a timer may end one other timer.
#ifndef PAWL_SERVICE_RING_FILING_HPP
#define PAWL_SERVICE_RING_FILING_HPP

#include <pawl/options.hpp>

#include <pawl/service/filing.hpp>
#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/ring_table.hpp>
#include <pawl/service/wait_ledger.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timeout_rings.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <mutex>

namespace pawl::detail {

/// The filing of rings.
template <time::bounded_backend Backend>
class filing<Backend> {
public:
    using deadline = time::deadline_of<Backend>;

    filing(const options& o, time::tick now)
        : backend_(ring_table(o).shapes(), o.rings.marks, now), when_full_(o.rings.when_full) {}

    [[nodiscard]] Backend& backend() noexcept { return backend_; }
    [[nodiscard]] const Backend& backend() const noexcept { return backend_; }

    /// filing::file() for rings. Not done if a full ring refuses the timer, which then keeps its
    /// place.
    filed file(timer_core& timer, const deadline& due, bool alone) noexcept {
        if (timer.filed() && !alone)
            return {backend_.next_wake({timer.due, timer.slot()})};
        return file_anew(timer, due);
    }
    filed file_anew(timer_core& timer, const deadline& due) noexcept {
        if (!backend_.has_room(timer, due))
            return file_in_full_ring(timer, due);
        place(timer, due);
        return {backend_.next_wake(due)};
    }

    [[nodiscard]] static const boost::system::error_code& refusal() noexcept {
        static const boost::system::error_code ec = boost::asio::error::no_buffer_space;
        return ec;
    }

    // Clocks of rings are never set back.
    [[nodiscard]] static constexpr clock_reading passed() noexcept { return {}; }
    static constexpr void forget_passed() noexcept {}

    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        return backend_.take_any(node);
    }
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        return set.pop(node);
    }

    /// Makes room in a full ring: drops timers without waits, or grows. Allocates with `mutex`
    /// unlocked.
    /// @return true if it was unlocked: check again.
    /// @throws std::bad_alloc
    template <class Mutex>
    [[nodiscard]] bool make_room(Mutex& mutex, std::size_t, timer_core& timer,
                                 const deadline& due) {
        while (!backend_.has_room(timer, due)) {
            if (auto* const oldest = oldest_but(timer, due); oldest && oldest->newest()) {
                const std::size_t size = backend_.next_room_part(due);
                return when_full_ == ring_overflow::grow && size != 0 && add_room(mutex, due, size);
            } else if (oldest) {
                backend_.erase(*oldest);
            }
        }
        return false;
    }

    template <class Mutex>
    [[nodiscard]] static constexpr bool make_room_to_detach(Mutex&, std::size_t) noexcept {
        return false;
    }

private:
    void place(timer_core& timer, const deadline& due) noexcept {
        if (timer.filed())
            backend_.rearm(timer, due);
        else
            backend_.insert(timer, due);
    }

    filed file_in_full_ring(timer_core& timer, const deadline& due) noexcept {
        timer_core* const oldest = oldest_but(timer, due);
        if (oldest && when_full_ == ring_overflow::expire_now) {
            // Its place belongs to another deadline, which a later wait must not inherit.
            if (timer.filed())
                backend_.erase(timer);
            timer.due = due.due; // observers read it
            return {.done = false, .overflowed = &timer};
        }
        if (oldest && when_full_ != ring_overflow::flush_oldest)
            return {.done = false};
        if (oldest)
            backend_.erase(*oldest);
        place(timer, due);
        return {backend_.next_wake(due), true, oldest};
    }

    /// The oldest timer of the ring. If that is `timer`, there is room: its place.
    [[nodiscard]] timer_core* oldest_but(timer_core& timer, const deadline& due) noexcept {
        auto* const oldest = static_cast<timer_core*>(backend_.oldest(due));
        if (oldest != &timer)
            return oldest;
        backend_.erase(timer);
        return nullptr;
    }

    template <class Mutex>
    bool add_room(Mutex& mutex, const deadline& due, std::size_t size) {
        const unlocked meanwhile(mutex);
        typename Backend::room_part part(size); // if another thread was faster, freed unlocked
        const std::scoped_lock lock(mutex);
        backend_.add_room(due, part);
        return true;
    }

    Backend backend_;
    const ring_overflow when_full_;
};

/// The table of delays of a service with rings.
template <time::bounded_backend Backend>
struct delay_table<Backend> : ring_table {
    using ring_table::ring_table;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RING_FILING_HPP
