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
#ifndef PAWL_DETAIL_SERVICE_RING_FILING_HPP
#define PAWL_DETAIL_SERVICE_RING_FILING_HPP

#include <pawl/options.hpp>

#include <pawl/detail/service/filing.hpp>
#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/wait_ledger.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/detail/time/timeout_rings.hpp>
#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace pawl::detail {

// Maps a delay to its ring. A delay without a ring is an error with a clear text.
//
// Threads
//   Immutable.
//
// Cost
//   O(log n) for n rings.

class ring_table {
public:
    using nanoseconds = std::chrono::nanoseconds;

    explicit ring_table(const options& o)
        : rings_(o.rings.delays), tick_(o.precision), round_up_(o.rings.round_up) {
        std::ranges::sort(rings_, {}, &ring_options::ring::delay);
    }

    /// The shapes of the rings, shortest delay first.
    [[nodiscard]] std::vector<time::timeout_rings::shape> shapes() const {
        std::vector<time::timeout_rings::shape> all;
        for (const auto& r : rings_) {
            // Rounded up: no ring has a delay of 0 ticks.
            const auto ticks = r.delay / tick_ + (r.delay % tick_ != nanoseconds::zero());
            all.push_back({static_cast<std::uint64_t>(ticks), r.capacity});
        }
        return all;
    }

    /// The ring with the shortest delay that is not less than `d`.
    /// @pre there is one.
    [[nodiscard]] unsigned ring_for(nanoseconds d) const {
        const auto r = std::ranges::lower_bound(rings_, d, {}, &ring_options::ring::delay);
        PAWL_ASSERT(r != rings_.end());
        return static_cast<unsigned>(r - rings_.begin());
    }

    /// @throws std::invalid_argument that lists the configured delays, if no ring serves `d`. A
    ///         delay that has passed needs no ring.
    void require(nanoseconds d) const {
        if (d <= nanoseconds::zero())
            return;
        const auto r = std::ranges::lower_bound(rings_, d, {}, &ring_options::ring::delay);
        if (r == rings_.end() || (r->delay != d && !round_up_))
            refuse(time::detail::text_of(d));
    }

    /// @throws std::invalid_argument as require(), if no ring is long enough.
    void require_longest(nanoseconds d) const {
        if (d > nanoseconds::zero() && (rings_.empty() || rings_.back().delay < d))
            refuse(time::detail::text_of(d));
    }

    /// @throws std::invalid_argument as require(), if no ring serves a delay within `min` .. `max`.
    /// @return the longest delay that a ring serves; `max` if that has passed.
    [[nodiscard]] nanoseconds within(nanoseconds min, nanoseconds max) const {
        if (max <= nanoseconds::zero())
            return max;
        const auto after = std::ranges::upper_bound(rings_, max, {}, &ring_options::ring::delay);
        if (after != rings_.begin() && std::prev(after)->delay >= min)
            return std::prev(after)->delay;
        if (min <= nanoseconds::zero())
            return nanoseconds::zero();
        if (after != rings_.end() && round_up_)
            return max;
        refuse(time::detail::text_of(min) + " .. " + time::detail::text_of(max));
    }

private:
    [[noreturn]] void refuse(const std::string& delay) const {
        std::string text = "pawl: no ring for a delay of " + delay + "; ";
        if (rings_.empty()) {
            text += "none is configured: call make_timer_service<ring_timer>() with "
                    "options::rings.delays first";
        } else {
            text += "options::rings.delays has ";
            for (const auto& r : rings_)
                text += (&r == &rings_.front() ? "" : ", ") + time::detail::text_of(r.delay);
            if (!round_up_)
                text += ", and options::rings.round_up is false";
        }
        throw std::invalid_argument(text);
    }

    std::vector<ring_options::ring> rings_;
    nanoseconds tick_;
    bool round_up_;
};

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

    // Clocks of rings are never set back.
    [[nodiscard]] filing_sight seen() const noexcept { return {backend_.now()}; }
    [[nodiscard]] static constexpr bool outdated(unsigned, clock_reading) noexcept { return false; }
    static constexpr void forget_passed() noexcept {}
    [[nodiscard]] static constexpr bool refile_one() noexcept { return false; }

    [[nodiscard]] bool take_any(time::timer_node*& node) noexcept {
        return backend_.take_any(node);
    }
    [[nodiscard]] static bool pop(typename Backend::detached& set,
                                  time::timer_node*& node) noexcept {
        return set.pop(node);
    }

    /// Whether the timer need not wait for add_room(): there is room, or the policy is not to grow,
    /// or the ring cannot grow. Drops timers without waits.
    [[nodiscard]] bool has_room_for(std::size_t, timer_core& timer, const deadline& due) {
        while (!backend_.has_room(timer, due)) {
            timer_core* const oldest = oldest_but(timer, due);
            if (oldest && oldest->newest())
                return when_full_ != ring_overflow::grow || backend_.next_room_part(due) == 0;
            if (oldest)
                backend_.erase(*oldest);
        }
        return true;
    }
    [[nodiscard]] static constexpr bool has_room_to_detach(std::size_t) noexcept { return true; }

    /// filing::add_room() for rings.
    /// @throws std::bad_alloc
    template <class Mutex>
    void add_room(Mutex& mutex, const deadline& due) {
        const std::size_t size = backend_.next_room_part(due);
        const unlocked meanwhile(mutex);
        typename Backend::room_part part(size); // if another thread was faster, freed unlocked
        const std::scoped_lock lock(mutex);
        backend_.add_room(due, part);
    }
    template <class Mutex>
    static constexpr void add_room(Mutex&) noexcept {}

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

    Backend backend_;
    const ring_overflow when_full_;
};

/// The table of delays of a service with rings.
template <time::bounded_backend Backend>
struct delay_table<Backend> : ring_table {
    using ring_table::ring_table;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_RING_FILING_HPP
