// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timer_event: what has happened to a timer.
#ifndef PAWL_WATCH_TIMER_EVENT_HPP
#define PAWL_WATCH_TIMER_EVENT_HPP

#include <pawl/config.hpp>

#include <pawl/service/observer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace pawl {

/// The name of a timer, of at most 23 bytes. A longer one is cut, not within a character of UTF-8.
class timer_name {
public:
    static constexpr std::size_t most = 23; ///< bytes

    /// No name.
    timer_name() = default;
    /// The first bytes of `text`.
    explicit timer_name(std::string_view text) noexcept {
        std::size_t n = std::min(text.size(), most);
        while (n != text.size() && n != 0 && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80)
            --n;
        std::copy_n(text.data(), n, bytes_);
        size_ = static_cast<std::uint8_t>(n);
    }

    /// The text.
    [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

private:
    char bytes_[most]{};
    std::uint8_t size_ = 0;
};

/// Something that has happened to a timer. See pawl::event_feed.
struct timer_event {
    /// The timer: pawl::timer_id(). Another timer may have had it before, or have it later.
    std::uint64_t timer = 0;
    /// Number of the tick in which it is due, on the scale of its service; of no meaning if it is moved to
    /// never.
    std::uint64_t tick = 0;
    /// How late: for `due`, from the end of that tick to the wake-up, in whole ticks; for `started`, to
    /// the moment at which the handler was taken from the queue. Otherwise zero, and not negative if the
    /// clock was set back meanwhile.
    std::chrono::nanoseconds lateness{};
    /// Of how many of its waits it is told.
    std::uint32_t waits = 0;
    /// What has happened.
    timer_event_kind kind = timer_event_kind::armed;
    /// What set_name() was told; empty if it was not.
    timer_name name{};
};

static_assert(std::is_trivially_copyable_v<timer_event> && sizeof(timer_event) <= 64);

/// Kinds of events.
class event_kinds {
public:
    /// These kinds.
    constexpr event_kinds(std::initializer_list<timer_event_kind> kinds) noexcept {
        for (const timer_event_kind k : kinds)
            bits_ |= bit(k);
    }
    /// All kinds.
    [[nodiscard]] static constexpr event_kinds all() noexcept {
        event_kinds k{};
        k.bits_ = (1U << timer_event_kinds) - 1;
        return k;
    }
    /// Whether `kind` is one of them.
    [[nodiscard]] constexpr bool contains(timer_event_kind kind) const noexcept {
        return (bits_ & bit(kind)) != 0;
    }
    /// Whether these are all.
    [[nodiscard]] constexpr bool are_all() const noexcept { return bits_ == all().bits_; }

private:
    static constexpr unsigned bit(timer_event_kind k) noexcept {
        return 1U << static_cast<unsigned>(k);
    }

    unsigned bits_ = 0;
};

/// A word for a kind, as in timer_event_kind.
[[nodiscard]] constexpr std::string_view to_string(timer_event_kind kind) noexcept {
    constexpr std::string_view names[timer_event_kinds] = {
        "armed", "moved", "due", "started", "cancelled", "overflowed", "shut_down"};
    const auto i = static_cast<std::size_t>(kind);
    return i < timer_event_kinds ? names[i] : "?";
}

} // namespace pawl

#endif // PAWL_WATCH_TIMER_EVENT_HPP
