// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The slots of a timeout_ring: how a ticket names its slot, and the states of a slot.
///   timeout_ring.hpp says what moves a slot from state to state, and why the memory orders suffice.
///
/// Model
///   The slots are in blocks, each twice as large as the one before. A ticket names its block, and
///   its number modulo the size of the block selects the slot. A block is never replaced.
///
/// Cost
///   16 bytes per slot. The number of slots is the capacity rounded up to a power of two, so that a
///   slot is found without a division.
#ifndef PAWL_DETAIL_TIME_RING_SLOTS_HPP
#define PAWL_DETAIL_TIME_RING_SLOTS_HPP

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pawl::time::detail {

/// The numbers in a ring's atomics.
struct ring_word {
    // A word of the tail or of a ticket: closed bit, 5 bits of block index, 58 bits of number. The
    // number of a ticket selects its slot; a position is the next number.
    static constexpr unsigned number_bits = 58;
    static constexpr unsigned most_blocks = 32;
    static constexpr std::uint64_t one_block = std::uint64_t{1} << number_bits;
    static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t first_number = 1;

    [[nodiscard]] static std::uint64_t number_in(std::uint64_t word) noexcept {
        return word & (one_block - 1);
    }
    [[nodiscard]] static unsigned block_in(std::uint64_t word) noexcept {
        return static_cast<unsigned>(word >> number_bits) % most_blocks;
    }

    // The state of a slot: the number of its ticket, plus one of these. 0: never used.
    static constexpr unsigned phase_bits = 2;
    [[nodiscard]] static std::uint64_t live(std::uint64_t number) noexcept {
        return number << phase_bits | 1;
    }
    [[nodiscard]] static std::uint64_t done(std::uint64_t number) noexcept {
        return number << phase_bits | 2;
    }
};

template <class T>
class ring_slots {
public:
    struct slot {
        std::atomic<std::uint64_t> state{0};
        std::atomic<T*> item{nullptr};
    };
    static_assert(sizeof(slot) <= 24);
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    static_assert(std::atomic<T*>::is_always_lock_free);

    /// Room for slots. Made by timeout_ring::prepare_growth(), for grow() only.
    class block {
    public:
        /// @throws std::bad_alloc
        explicit block(std::size_t capacity)
            : capacity_(capacity), slots_(std::make_unique<slot[]>(std::bit_ceil(capacity))) {}

    private:
        friend class ring_slots;

        std::size_t capacity_;
        std::unique_ptr<slot[]> slots_;
    };

    /// @param capacity of the first block; the slots beyond it are unused
    /// @throws std::bad_alloc
    explicit ring_slots(std::size_t capacity) : first_size_(std::bit_ceil(capacity)) {
        // relaxed: not shared yet.
        blocks_[0].store(block(capacity).slots_.release(), std::memory_order_relaxed);
    }

    ring_slots& operator=(ring_slots&&) = delete;

    ~ring_slots() {
        // relaxed: all calls happen before the destruction.
        for (std::atomic<slot*>& each : blocks_)
            delete[] each.load(std::memory_order_relaxed);
    }

    /// The slots of a block; nullptr if it does not exist.
    [[nodiscard]] slot* block_at(unsigned index) const noexcept {
        return blocks_[index].load(std::memory_order_acquire); // pairs with add
    }
    [[nodiscard]] std::size_t size(unsigned index) const noexcept { return first_size_ << index; }
    /// The index of a ticket's slot in a block.
    [[nodiscard]] std::size_t place_in(unsigned index, std::uint64_t number) const noexcept {
        return static_cast<std::size_t>(number) & (size(index) - 1);
    }

    /// The slot of a word; nullptr if its block does not exist. The empty ticket has a slot, too,
    /// whose state is never live.
    [[nodiscard]] slot* slot_of(std::uint64_t word) const noexcept {
        const unsigned index = ring_word::block_in(word);
        slot* const slots = block_at(index);
        return slots ? slots + place_in(index, word) : nullptr;
    }

    /// A slot and the state that was loaded from it; {nullptr, 0}: none.
    struct finding {
        slot* where;
        std::uint64_t state;
    };
    /// The slot of a number in a block, if the ticket was published there and the slot was not
    /// recycled.
    /// @pre the block exists
    [[nodiscard]] finding find_in(unsigned index, std::uint64_t number) const noexcept {
        slot& where = block_at(index)[place_in(index, number)];
        // acquire: pairs with publish, and with the change to `done`.
        const std::uint64_t state = where.state.load(std::memory_order_acquire);
        return state >> ring_word::phase_bits == number ? finding{&where, state}
                                                        : finding{nullptr, 0};
    }

    /// Makes a block exist.
    /// @return false if it does not, because `room` is none or not for this capacity.
    bool add(unsigned index, std::size_t capacity, std::unique_ptr<block> room) noexcept {
        if (block_at(index))
            return true;
        if (!room || room->capacity_ != capacity)
            return false;
        slot* none = nullptr;
        // release: pairs with block_at(). relaxed: another thread has installed an equal block.
        if (blocks_[index].compare_exchange_strong(
                none, room->slots_.get(), std::memory_order_release, std::memory_order_relaxed))
            (void)room->slots_.release(); // kept, even if the growth fails now
        return true;
    }

private:
    std::size_t first_size_; ///< of the first block
    std::array<std::atomic<slot*>, ring_word::most_blocks> blocks_{};
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_RING_SLOTS_HPP
