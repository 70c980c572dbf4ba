// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timer_event: something that has happened to a timer.
#ifndef PAWL_TIMER_EVENT_HPP
#define PAWL_TIMER_EVENT_HPP

#include <pawl/config.hpp>

#include <pawl/timer_event_kind.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace pawl {

namespace detail {

/// The length of the UTF-8 character at the begin of `text`, which is not empty; 0 if there is none.
[[nodiscard]] constexpr std::size_t character_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < n)
        return 0;
    for (std::size_t i = 1; i != n; ++i)
        if ((byte(i) & 0xc0) != 0x80)
            return 0;
    // Longer than necessary, a surrogate, or beyond the last character.
    const unsigned second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90))
        return 0;
    return n;
}

} // namespace detail

/// The name of a timer, at most 23 bytes of UTF-8. A longer name is cut between characters. A byte
/// that belongs to no character becomes '?': parsers of statistics refuse other text.
class timer_name {
public:
    static constexpr std::size_t most = 23; ///< bytes

    /// No name.
    timer_name() = default;
    /// The first characters of `text`.
    explicit timer_name(std::string_view text) noexcept {
        while (!text.empty()) {
            const std::size_t length = detail::character_length(text);
            const std::size_t n = std::max(length, std::size_t{1});
            if (size_ + n > most)
                break;
            std::copy_n(length != 0 ? text.data() : "?", n, bytes_ + size_);
            size_ = static_cast<std::uint8_t>(size_ + n);
            text.remove_prefix(n);
        }
    }

    /// The text.
    [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

private:
    char bytes_[most]{};
    std::uint8_t size_ = 0;
};

/// Something that has happened to a timer. See pawl::event_feed.
struct timer_event {
    /// The timer, as pawl::timer_id() gives it. Timers may reuse an id, one after the other.
    std::uint64_t timer = 0;
    /// Number of the tick in which the timer is due, on the scale of its service. Meaningless if
    /// the timer was moved to never.
    std::uint64_t tick = 0;
    /// Lateness. For `due`: from the begin of that tick to the wake-up, in whole ticks. For
    /// `started`: to the moment at which the handler was taken from the queue. Otherwise zero.
    /// Never negative, not even if the clock was set back.
    std::chrono::nanoseconds lateness{};
    /// Number of waits that the event is about.
    std::uint32_t waits = 0;
    /// What has happened.
    timer_event_kind kind = timer_event_kind::armed;
    /// The name given by set_name(); empty if there is none.
    timer_name name{};
};

static_assert(std::is_trivially_copyable_v<timer_event> && sizeof(timer_event) <= 64);

/// The handler of a wait that took longest. See pawl::context_stats.
struct longest_handler {
    std::chrono::nanoseconds time{}; ///< how long it took
    /// The name of its timer: empty if it has none, and for a wait that was cancelled.
    timer_name name{};
};

/// The unit of the context that ran handlers of waits for longest, from its begin until its last
/// handler returned. See pawl::context_stats.
struct longest_turn {
    std::chrono::nanoseconds time{}; ///< how long it took
    std::uint64_t handlers = 0;      ///< how many it ran
};

/// A timer with a name, as of the call of named_timers().
struct named_timer {
    timer_name name;                 ///< the name given by set_name()
    std::chrono::nanoseconds left{}; ///< until its tick begins; negative: overdue
    std::size_t waits = 0; ///< waits that have not begun; with none, `left` is meaningless
};

/// A set of kinds of events.
class event_kinds {
public:
    /// A set of these kinds.
    constexpr event_kinds(std::initializer_list<timer_event_kind> kinds) noexcept {
        for (const timer_event_kind k : kinds)
            bits_ |= bit(k);
    }
    /// The set of all kinds.
    [[nodiscard]] static constexpr event_kinds all() noexcept {
        event_kinds k{};
        k.bits_ = (1U << timer_event_kinds) - 1;
        return k;
    }
    /// Whether `kind` is in the set.
    [[nodiscard]] constexpr bool contains(timer_event_kind kind) const noexcept {
        return (bits_ & bit(kind)) != 0;
    }
    /// Whether the set has all kinds.
    [[nodiscard]] constexpr bool are_all() const noexcept { return bits_ == all().bits_; }

private:
    static constexpr unsigned bit(timer_event_kind k) noexcept {
        return 1U << static_cast<unsigned>(k);
    }

    unsigned bits_ = 0;
};

/// The name of a kind, spelled as in timer_event_kind.
[[nodiscard]] constexpr std::string_view to_string(timer_event_kind kind) noexcept {
    constexpr std::array<std::string_view, timer_event_kinds> names{
        "armed", "moved", "due", "started", "cancelled", "overflowed", "shut_down"};
    const auto i = static_cast<std::size_t>(kind);
    return i < timer_event_kinds ? names[i] : "?";
}

} // namespace pawl

#endif // PAWL_TIMER_EVENT_HPP
