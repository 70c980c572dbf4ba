// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Files the timers of a shard in rings. They take timers of certain delays, and only so many: here
///   is what happens when one is full.
///
/// Threads
///   Guarded by the lock of the shard.
///
/// Cost
///   O(1); flushing ends one timer for each that is filed.
#ifndef PAWL_SERVICE_RING_FILING_HPP
#define PAWL_SERVICE_RING_FILING_HPP

#include <pawl/service/filing.hpp>
#include <pawl/service/options.hpp>
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

    /// As above. Timers that are flushed are given to `flush`, which has their waits fall due.
    /// Not done if the timer is overdue, or if its ring is full. It is filed nowhere then, unless it
    /// is refused: then it is as it was.
    template <class Flush>
    filed file(timer_core& timer, deadline due, bool alone, Flush flush) noexcept {
        if (timer.filed() && !alone)
            return {backend_.next_wake(timer.slot()), true};
        while (due.ring != deadline::overdue) {
            if (backend_.place(timer, due))
                return {backend_.next_wake(due.ring), true};
            timer_core* const oldest = static_cast<timer_core*>(backend_.oldest(due.ring));
            if (!oldest || when_full_ != ring_overflow::flush_oldest)
                break;
            backend_.erase(*oldest);
            flush(*oldest);
        }
        // Its place belongs to another deadline, which no later wait may inherit.
        if (timer.filed() && !refuses(due))
            backend_.erase(timer);
        return {};
    }

    // Clocks of rings are never set back.
    [[nodiscard]] static constexpr clock_reading passed() noexcept { return {}; }
    static constexpr void forget_passed() noexcept {}

    /// As above, but what is let go of may be the place of a timer that was cancelled: then `node`
    /// is null. One step of a bounded number.
    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        return backend_.take_any(node);
    }
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        return set.pop(node);
    }

    /// What a timer is told that was not filed: no, or that it is due.
    [[nodiscard]] bool refuses(deadline due) const noexcept {
        return due.ring != deadline::overdue && when_full_ != ring_overflow::expire_now;
    }

    [[nodiscard]] static const boost::system::error_code& refusal() noexcept {
        static const boost::system::error_code ec = boost::asio::error::no_buffer_space;
        return ec;
    }

    /// Has the ring drop what nobody waits for any more, or grow, if it is full. What grows is
    /// allocated with `lock` released.
    /// @return true if the lock was released: look again.
    /// @throws std::bad_alloc
    template <class Lock>
    [[nodiscard]] bool make_room(Lock& lock, const timer_core& timer, deadline due) {
        while (due.ring != deadline::overdue && !backend_.has_room(timer, due.ring)) {
            timer_core* const oldest = static_cast<timer_core*>(backend_.oldest(due.ring));
            if (oldest && (!oldest->newest() || oldest == &timer)) {
                backend_.erase(*oldest);
                continue;
            }
            if (when_full_ != ring_overflow::grow || !backend_.can_grow(due.ring))
                break;
            lock.unlock();
            auto room = backend_.prepare_growth(due.ring);
            lock.lock();
            backend_.grow(due.ring, std::move(room));
            return true;
        }
        return false;
    }

private:
    Backend backend_;
    const ring_overflow when_full_;
};

/// Which ring serves which delay.
template <ring_backend Backend>
struct delay_table<Backend> : ring_table {
    using ring_table::ring_table;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RING_FILING_HPP
