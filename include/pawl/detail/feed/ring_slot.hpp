// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The storage of one message of a broadcast ring: an object that readers look at, or words that
//   they copy.
//
// Model
//   word_slot is for messages that may be overwritten while they are read. Each word is atomic. A
//   writer stores with release, a reader loads with acquire. So a reader that gets a newer word
//   also sees the writer's earlier writes, and among them that its message is gone
//   (feed/ring_core.hpp). On x86 these are plain moves.

#ifndef PAWL_DETAIL_FEED_RING_SLOT_HPP
#define PAWL_DETAIL_FEED_RING_SLOT_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace pawl::detail {

/// The state of a slot, with its generation. A ring with one writer and without destructors does
/// not need it.
struct slot_state {
    std::atomic<std::uint64_t> state{0};
};
struct no_state {};

/// @tparam State slot_state or no_state.
template <class T, class State>
class object_slot : public State {
public:
    template <class... Args>
    void construct(Args&&... args) {
        ::new (static_cast<void*>(storage_)) T(std::forward<Args>(args)...);
    }
    void destroy() noexcept { std::destroy_at(get()); }
    [[nodiscard]] T* get() noexcept { return std::launder(reinterpret_cast<T*>(storage_)); }

private:
    alignas(T) std::byte storage_[sizeof(T)];
};

/// @tparam T trivially copyable.
template <class T, class State>
class word_slot : public State {
public:
    void store(const T& message) noexcept {
        const auto* const from = reinterpret_cast<const std::byte*>(&message);
        for_each_word([&](std::size_t i, std::size_t bytes) {
            std::uint64_t word = 0;
            std::memcpy(&word, from + i * sizeof(word), bytes);
            words_[i].store(word, std::memory_order_release); // pairs with load()
        });
    }
    /// Loads the words of one message, or of several if it is overwritten in the meantime.
    void load(T& message) const noexcept {
        auto* const to = reinterpret_cast<std::byte*>(&message);
        for_each_word([&](std::size_t i, std::size_t bytes) {
            // acquire: pairs with store().
            const std::uint64_t word = words_[i].load(std::memory_order_acquire);
            std::memcpy(to + i * sizeof(word), &word, bytes);
        });
    }

private:
    static constexpr std::size_t length = (sizeof(T) + 7) / 8;
    static constexpr std::size_t last_bytes = sizeof(T) - (length - 1) * 8;

    /// Calls f(i, number of bytes of the message in word i) for each word. Short messages use no
    /// loop, because compilers do not unroll loops over atomics.
    template <class F>
    static void for_each_word(F f) noexcept {
        if constexpr (length <= 8) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                (f(I, I + 1 == length ? last_bytes : 8), ...);
            }(std::make_index_sequence<length>());
        } else {
            for (std::size_t i = 0; i != length - 1; ++i)
                f(i, 8);
            f(length - 1, last_bytes);
        }
    }

    std::array<std::atomic<std::uint64_t>, length> words_{};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_FEED_RING_SLOT_HPP
