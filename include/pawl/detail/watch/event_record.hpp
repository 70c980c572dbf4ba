// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A timer_event as stored in the ring of a feed: half the size, because each record is written
///   by one CPU and read by others.
///
/// Model
///   An event is one record. If its timer has a name, a record with the name precedes it. Each
///   record has the number of its event, from which a reader computes how many events it has
///   missed.
///
/// Cost
///   32 bytes per event, 64 with a name.
#ifndef PAWL_DETAIL_WATCH_EVENT_RECORD_HPP
#define PAWL_DETAIL_WATCH_EVENT_RECORD_HPP

#include <pawl/timer_event.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// An event, or the name of the timer of the next event.
struct event_record {
    std::array<std::uint64_t, 3> words; ///< timer, tick, lateness; or a timer_name
    std::uint32_t number;               ///< of the event, modulo 2^32; set on publication
    std::uint32_t what;                 ///< kind, whether a name precedes it, waits

    static constexpr std::uint32_t is_name = timer_event_kinds; ///< in place of a kind
    static constexpr std::uint32_t has_name = 8;
    static constexpr unsigned waits_at = 4;
    static constexpr std::size_t most_waits = (std::size_t{1} << (32 - waits_at)) - 1;

    static event_record of(const timer_name& name) noexcept {
        return {std::bit_cast<std::array<std::uint64_t, 3>>(name), 0, is_name};
    }
    /// @param named whether a record with the name precedes it.
    static event_record of(timer_event_kind kind, std::uint64_t timer, std::uint64_t tick,
                           std::chrono::nanoseconds lateness, std::size_t waits,
                           bool named) noexcept {
        // Larger numbers of waits would need 40 GB.
        const auto count = static_cast<std::uint32_t>(std::min(waits, most_waits));
        return {{timer, tick, static_cast<std::uint64_t>(lateness.count())},
                0,
                static_cast<std::uint32_t>(kind) | (named ? has_name : 0) | count << waits_at};
    }

    [[nodiscard]] bool names() const noexcept { return (what & 7) == is_name; }
    [[nodiscard]] bool named() const noexcept { return (what & has_name) != 0; }
};

static_assert(sizeof(timer_name) == 3 * sizeof(std::uint64_t) && timer_event_kinds < 8);
static_assert(std::is_trivially_copyable_v<event_record> && sizeof(event_record) == 32);

/// Turns the records of one reader into events.
class event_unpacker {
public:
    /// @param next number of the next event.
    void begin_at(std::uint64_t next) noexcept {
        next_ = static_cast<std::uint32_t>(next);
        gone_ = 0;
        name_.reset();
    }

    /// @param gone number of records missed before these.
    /// @param out has room for as many events.
    /// @return the number of events in `records`.
    std::size_t unpack(std::uint64_t gone, std::span<const event_record> records,
                       timer_event* out) noexcept {
        gone_ += gone;
        std::size_t count = 0;
        for (const event_record& r : records) {
            if (r.number != next_)
                name_.reset(); // of a missed event
            if (r.names()) {
                name_ = std::bit_cast<timer_name>(r.words);
                go_to(r.number);
                continue;
            }
            go_to(r.number);
            ++next_;
            const bool whole = !r.named() || name_;
            missed_ += whole ? 0 : 1;
            if (whole)
                out[count++] = {.timer = r.words[0],
                                .tick = r.words[1],
                                .lateness =
                                    std::chrono::nanoseconds(static_cast<std::int64_t>(r.words[2])),
                                .waits = r.what >> event_record::waits_at,
                                .kind = static_cast<timer_event_kind>(r.what & 7),
                                .name = name_.value_or(timer_name())};
            name_.reset();
        }
        return count;
    }

    /// Number of events missed since the last call.
    [[nodiscard]] std::uint64_t take_missed() noexcept { return std::exchange(missed_, 0); }

private:
    /// Counts the events from next_ to `number`. Numbers are modulo 2^32; it assumes the highest
    /// number that the missed records allow. This is exact up to 2^33 records, and beyond that
    /// without names.
    void go_to(std::uint32_t number) noexcept {
        const std::uint32_t low = number - std::exchange(next_, number);
        const std::uint64_t most = std::max<std::uint64_t>(std::exchange(gone_, 0), low);
        missed_ += low + ((most - low) >> 32 << 32);
    }

    std::uint32_t next_ = 0;
    std::uint64_t gone_ = 0;         ///< records missed since the last one read
    std::uint64_t missed_ = 0;       ///< missed events
    std::optional<timer_name> name_; ///< of the next event
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WATCH_EVENT_RECORD_HPP
