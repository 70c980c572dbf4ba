// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The readers of a broadcast ring: who is there, and from which generation on each of them needs
//   the messages.
//
// Model
//   The open-addressing map of seed 004. A reader brings an id, which says where to begin to look. It
//   takes the first vacant place from there on with one compare-exchange, and the distance is folded
//   into the id: what stands in a place is always the id that leads to it. Ids of readers that are
//   there at the same time differ.
//
//       vacant (0)  --insert-->  id | in_progress  --finish-->  id  --erase-->  vacant
//
//   in_progress is set while the reader chooses where to begin. Until then its position is that of the
//   reader before, which each() does not show.
//
//   Every place has a claim, taken or not: the messages from that generation on must stay. A claim of
//   `none` keeps nothing. Only the reader of the place writes it; cleaners read those of all places,
//   and look at no key. So a reader need not be known to be heard.
//
// Threads
//   What       access              order    pairs with, and why
//   key        insert: rmw         acquire  erase: the one before has done with the place
//              finish: store       release  each: position
//              erase: store        release  insert
//              each: load          acquire  finish
//              insert: load        relaxed  only a hint
//   claim      see feed/ring_core.hpp
//   position   all                 relaxed  ordered by key for the first one; later ones are numbers
//
// Cost
//   insert: one compare-exchange unless places are crowded, at most one look at each place. A place is
//   one line of the cache, since its reader writes it all the time.

#ifndef PAWL_FEED_READER_REGISTRY_HPP
#define PAWL_FEED_READER_REGISTRY_HPP

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
    /// The claim of a reader that keeps nothing.
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

    struct alignas(64) place {
        std::atomic<std::uint64_t> key{0};
        std::atomic<std::uint64_t> claim{none};
        std::atomic<std::uint64_t> position{0};
    };

    /// @pre capacity is a power of two.
    explicit reader_registry(std::size_t capacity)
        : capacity_(capacity), places_(std::make_unique<place[]>(capacity)) {}

    /// How many readers there can be.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// All places, vacant or not.
    [[nodiscard]] std::span<place> places() noexcept { return {places_.get(), capacity_}; }

    /// Takes a place for a reader that is not shown yet; nullptr if none is vacant.
    [[nodiscard]] place* insert(std::uint64_t id) noexcept {
        for (std::size_t offset = 0; offset != capacity_; ++offset) {
            place& here = at(id + offset);
            std::uint64_t vacant = 0;
            if (here.key.load(std::memory_order_relaxed) == 0 && // relaxed: a hint
                // acquire: pairs with erase(). relaxed: on failure it is another reader's.
                here.key.compare_exchange_strong(vacant, folded(id + offset) | in_progress,
                                                 std::memory_order_acquire,
                                                 std::memory_order_relaxed))
                return &here;
        }
        return nullptr;
    }

    /// From now on the reader is shown.
    void finish(place& mine) noexcept {
        // relaxed: of this thread.
        const std::uint64_t key = mine.key.load(std::memory_order_relaxed);
        mine.key.store(key & ~in_progress,
                       std::memory_order_release); // pairs with each()
    }

    /// Gives the place back.
    /// @pre its claim is `none`.
    void erase(place& mine) noexcept {
        mine.key.store(0, std::memory_order_release); // pairs with insert()
    }

    /// The id of a reader.
    [[nodiscard]] static std::uint64_t id_of(const place& mine) noexcept {
        return mine.key.load(std::memory_order_relaxed) & ~in_progress; // relaxed: of this thread
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

    /// 0 stands for a vacant place, so that an id is never 0, and leads to the same place.
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

#endif // PAWL_FEED_READER_REGISTRY_HPP
