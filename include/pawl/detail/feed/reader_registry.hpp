// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The present readers of a broadcast ring, and the first generation that each of them still
//   needs.
//
// Model
//   The open-addressing map of market_square's Area. The id of a reader selects the place at which
//   the search starts. The reader takes the first vacant place from there with one
//   compare-exchange, and adds the distance to the id: the id in a place always leads to that
//   place. Present readers have distinct ids.
//
//       vacant (0)  --insert-->  id | in_progress  --finish-->  id  --erase-->  vacant
//
//   in_progress is set while the reader chooses where to begin. Until then its position is that of
//   its predecessor, and each() does not show it.
//
//   Each place has a claim: the messages from that generation on must stay. A claim of `none` keeps
//   nothing. Only the reader of the place writes the claim. Cleaners read the claims of all places
//   and no keys, so a claim counts even before its reader is shown.
//
// Threads
//   What       access              order    pairs with, and why
//   key        insert: rmw         acquire  erase: the predecessor has finished with the place
//              finish: store       release  each: position
//              erase: store        release  insert
//              each: load          acquire  finish
//              insert: load        relaxed  only a hint
//   claim      see feed/ring_core.hpp
//   position   all                 relaxed  key orders the first one; later ones are only shown
//
// Cost
//   insert: one compare-exchange unless places are crowded; at most one look at each place. A place
//   is one cache line, because its reader writes it all the time.

#ifndef PAWL_DETAIL_FEED_READER_REGISTRY_HPP
#define PAWL_DETAIL_FEED_READER_REGISTRY_HPP

#include <pawl/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace pawl::detail {

class reader_registry {
public:
    /// The claim of a reader that needs no messages.
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

    struct alignas(cache_line) place {
        std::atomic<std::uint64_t> key{0};
        std::atomic<std::uint64_t> claim{none};
        std::atomic<std::uint64_t> position{0};
    };

    /// @pre capacity is a power of two.
    explicit reader_registry(std::size_t capacity)
        : capacity_(capacity), places_(std::make_unique<place[]>(capacity)) {}

    /// Maximum number of readers.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// All places, vacant or not.
    [[nodiscard]] std::span<place> places() noexcept { return {places_.get(), capacity_}; }

    /// Takes a place for a reader that is not shown yet; nullptr if no place is vacant.
    [[nodiscard]] place* insert(std::uint64_t id) noexcept {
        for (std::size_t offset = 0; offset != capacity_; ++offset) {
            place& here = at(id + offset);
            std::uint64_t vacant = 0;
            if (here.key.load(std::memory_order_relaxed) == 0 && // relaxed: a hint
                // acquire: pairs with erase(). relaxed: on failure the place belongs to another
                // reader.
                here.key.compare_exchange_strong(vacant, folded(id + offset) | in_progress,
                                                 std::memory_order_acquire,
                                                 std::memory_order_relaxed))
                return &here;
        }
        return nullptr;
    }

    /// Shows the reader from now on.
    void finish(place& mine) noexcept {
        // relaxed: written by this thread.
        const std::uint64_t key = mine.key.load(std::memory_order_relaxed);
        mine.key.store(key & ~in_progress,
                       std::memory_order_release); // pairs with each()
    }

    /// Returns the place.
    /// @pre its claim is `none`.
    void erase(place& mine) noexcept {
        mine.key.store(0, std::memory_order_release); // pairs with insert()
    }

    /// The id of a reader.
    [[nodiscard]] static std::uint64_t id_of(const place& mine) noexcept {
        return mine.key.load(std::memory_order_relaxed) & ~in_progress; // relaxed: own
    }

    /// Calls f(id, position) for each reader that is shown.
    template <class F>
    void each(F f) const {
        for (std::size_t i = 0; i != capacity_; ++i) {
            // acquire: pairs with finish().
            const std::uint64_t key = places_[i].key.load(std::memory_order_acquire);
            if (key != 0 && (key & in_progress) == 0)
                f(key, places_[i].position.load(std::memory_order_relaxed)); // relaxed: see above
        }
    }

private:
    static constexpr std::uint64_t in_progress = std::uint64_t{1} << 63;

    /// 0 marks a vacant place, so an id is folded: never 0, and still leading to the same place.
    [[nodiscard]] std::uint64_t folded(std::uint64_t id) const noexcept {
        const std::uint64_t key = id & ~in_progress;
        return key != 0 ? key : capacity_;
    }
    [[nodiscard]] place& at(std::uint64_t id) noexcept {
        return places_[static_cast<std::size_t>(id) & (capacity_ - 1)];
    }

    std::size_t capacity_;
    std::unique_ptr<place[]> places_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_FEED_READER_REGISTRY_HPP
