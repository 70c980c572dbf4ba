// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Where one message of a broadcast ring is: as an object that readers look at, or as words that
//   they copy.
//
// Model
//   word_slot is for messages that are overwritten while they are read. Each word is atomic. A writer
//   stores with release, a reader loads with acquire: one that gets a newer word knows what the writer
//   knew, and so sees that its message has gone (feed/ring_core.hpp). On x86 these are plain moves.

#ifndef PAWL_FEED_RING_SLOT_HPP
#define PAWL_FEED_RING_SLOT_HPP

#include <pawl/config.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace pawl::detail {

/// What has happened to a slot, and in which generation. One of the two is enough for a ring with one
/// writer and no destructors to run.
struct slot_mark {
    std::atomic<std::uint64_t> mark{0};
};
struct no_mark {};

/// @tparam Mark slot_mark or no_mark.
template <class T, class Mark>
class object_slot : public Mark {
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
template <class T, class Mark>
class word_slot : public Mark {
public:
    static constexpr std::size_t length = (sizeof(T) + 7) / 8;
    using words = std::array<std::uint64_t, length>;

    void store(const T& message) noexcept {
        words from{};
        std::memcpy(from.data(), &message, sizeof(T));
        for (std::size_t i = 0; i != length; ++i)
            words_[i].store(from[i], std::memory_order_release); // pairs with load()
    }
    /// Words of one message, or of several if it is overwritten meanwhile.
    [[nodiscard]] words load() const noexcept {
        words to;
        for (std::size_t i = 0; i != length; ++i)
            to[i] = words_[i].load(std::memory_order_acquire); // pairs with store()
        return to;
    }

private:
    std::array<std::atomic<std::uint64_t>, length> words_{};
};

} // namespace pawl::detail

#endif // PAWL_FEED_RING_SLOT_HPP
