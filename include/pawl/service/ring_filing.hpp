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
#include <pawl/service/ring_table.hpp>
#include <pawl/service/wait_ledger.hpp>

#include <pawl/time/tick.hpp>
#include <pawl/time/timeout_rings.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

namespace pawl::detail {

/// The filing of rings.
template <ring_backend Backend>
class filing<Backend> {
public:
    using deadline = typename Backend::deadline;

    filing(const options& o, time::tick now)
        : backend_(ring_table(o).shapes(), o.rings.marks, now), when_full_(o.rings.when_full) {}

    [[nodiscard]] Backend& backend() noexcept { return backend_; }
    [[nodiscard]] const Backend& backend() const noexcept { return backend_; }

    /// filing::file() for rings. Flushed timers go to `flush`, which makes their waits due. Not
    /// done if the timer is overdue or the ring is full: then it is not filed, except that a
    /// refused timer keeps its place.
    template <class Flush>
    filed file(timer_core& timer, deadline due, bool alone, Flush flush) noexcept {
        if (timer.filed() && !alone)
            return {backend_.ring(timer.slot()).next_wake(), true};
        while (due.ring != deadline::overdue) {
            if (backend_.place(timer, due))
                return {backend_.ring(due.ring).next_wake(), true};
            auto* const oldest = static_cast<timer_core*>(backend_.ring(due.ring).oldest());
            if (!oldest || when_full_ != ring_overflow::flush_oldest)
                break;
            backend_.erase(*oldest);
            flush(*oldest);
        }
        // Its place belongs to another deadline, which a later wait must not inherit.
        if (timer.filed() && !refuses(due))
            backend_.erase(timer);
        return {};
    }

    // Clocks of rings are never set back.
    [[nodiscard]] static constexpr clock_reading passed() noexcept { return {}; }
    static constexpr void forget_passed() noexcept {}

    /// filing::take_any() for rings. Each call handles one slot, which may be that of a cancelled
    /// timer: then `node` is null.
    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        return backend_.take_any(node);
    }
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        return set.pop(node);
    }

    /// Whether a timer that was not filed is refused, or due.
    [[nodiscard]] bool refuses(deadline due) const noexcept {
        return due.ring != deadline::overdue && when_full_ != ring_overflow::expire_now;
    }

    [[nodiscard]] static const boost::system::error_code& refusal() noexcept {
        static const boost::system::error_code ec = boost::asio::error::no_buffer_space;
        return ec;
    }

    /// Makes room in a full ring: drops cancelled timers, or grows. Allocates with `lock` released.
    /// @return true if the lock was released: check again.
    /// @throws std::bad_alloc
    template <class Lock>
    [[nodiscard]] bool make_room(Lock& lock, const timer_core& timer, deadline due) {
        while (due.ring != deadline::overdue && !backend_.has_room(timer, due.ring)) {
            auto& ring = backend_.ring(due.ring);
            auto* const oldest = static_cast<timer_core*>(ring.oldest());
            if (oldest && (!oldest->newest() || oldest == &timer)) {
                backend_.erase(*oldest);
                continue;
            }
            if (when_full_ != ring_overflow::grow || !ring.can_grow())
                break;
            lock.unlock();
            auto room = ring.prepare_growth();
            lock.lock();
            (void)ring.grow(std::move(room)); // false: there is room already
            return true;
        }
        return false;
    }

    template <class Mutex>
    [[nodiscard]] static constexpr bool make_room_to_detach(Mutex&, std::size_t) noexcept {
        return false;
    }

private:
    Backend backend_;
    const ring_overflow when_full_;
};

/// The table of delays of a service with rings.
template <ring_backend Backend>
struct delay_table<Backend> : ring_table {
    using ring_table::ring_table;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RING_FILING_HPP
