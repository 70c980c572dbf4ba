// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Makes a function object that owns something copyable. Asio's own executors move a function
///   object; executors that store it in a std::function copy it.
///
/// Model
///   A claim points to the object. The first copy allocates a small block that points to the object
///   and is shared by all copies. The first claim that is taken gets the object; the others get
///   nullptr. If none is taken, the last claim to end gets it.
///
/// Threads
///   Different copies may be used in different threads. Copying modifies the source: one thread at
///   a time per claim.
///
/// Cost
///   One word. A claim that is moved but never copied has no block. The block comes from the heap:
///   the allocator of a handler may be gone before the last copy.
#ifndef PAWL_DETAIL_WAIT_CLAIM_HPP
#define PAWL_DETAIL_WAIT_CLAIM_HPP

#include <pawl/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// Member of a function object. The destructor of that object must call end().
///
/// @tparam T has an alignment of at least 2; if T is void, the object has.
template <class T>
class claim {
public:
    /// Claims `object`.
    explicit claim(T* object) noexcept : word_(reinterpret_cast<std::uintptr_t>(object)) {}
    claim(claim&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
    /// @throws std::bad_alloc; `other` keeps the object.
    claim(const claim& other) : word_(other.share()) {}
    claim& operator=(const claim&) = delete;
    ~claim() = default; // end() was called

    /// The object; nullptr if this claim or a copy was taken.
    [[nodiscard]] T* get() const noexcept {
        if (is_shared(word_)) [[unlikely]]
            // relaxed: as in take_shared()
            return shared(word_).object.load(std::memory_order_relaxed);
        return reinterpret_cast<T*>(word_);
    }

    /// Replaces the object.
    /// @pre there are no copies.
    void reset(T* object) noexcept { word_ = reinterpret_cast<std::uintptr_t>(object); }

    /// @return the object, which the caller now owns; nullptr if a copy was taken before.
    [[nodiscard]] T* take() const noexcept {
        if (is_shared(word_)) [[unlikely]]
            return take_shared(word_);
        return reinterpret_cast<T*>(std::exchange(word_, 0));
    }

    /// Ends the claim. Calls `abandon(object)` if this is the last copy and no copy was taken.
    template <class Abandon>
    void end(Abandon abandon) const noexcept {
        if (word_ != 0)
            end(word_, abandon);
    }

private:
    /// Shared by all copies.
    struct block {
        std::atomic<T*> object; ///< nullptr once taken
        std::atomic<std::size_t> claims;
    };

    static constexpr std::uintptr_t tag = 1; ///< set in a pointer to a block

    [[nodiscard]] static bool is_shared(std::uintptr_t word) noexcept { return (word & tag) != 0; }
    [[nodiscard]] static block& shared(std::uintptr_t word) noexcept {
        PAWL_ASSERT(is_shared(word) && word != tag);
        return *reinterpret_cast<block*>(word & ~tag);
    }

    // Out of line and static, so that the address of the claim does not escape: the compiler can
    // keep a claim that is only moved in a register.

    /// The word for a copy.
    [[nodiscard]] std::uintptr_t share() const {
        if (is_shared(word_)) {
            // relaxed: this claim keeps the block
            shared(word_).claims.fetch_add(1, std::memory_order_relaxed);
        } else if (word_ != 0) {
            auto* const b = new block{{reinterpret_cast<T*>(word_)}, {2}};
            word_ = reinterpret_cast<std::uintptr_t>(b) | tag;
        }
        return word_;
    }

    [[nodiscard]] PAWL_DETAIL_NOINLINE static T* take_shared(std::uintptr_t word) noexcept {
        // relaxed: the copy brought the state of the object to this thread, and the thread that
        // takes the object has it alone
        return shared(word).object.exchange(nullptr, std::memory_order_relaxed);
    }

    template <class Abandon>
    PAWL_DETAIL_NOINLINE static void end(std::uintptr_t word, Abandon abandon) noexcept {
        auto* object = reinterpret_cast<T*>(word);
        if (is_shared(word)) {
            block& b = shared(word);
            // acq_rel: the last claim sees whether another was taken
            if (b.claims.fetch_sub(1, std::memory_order_acq_rel) != 1)
                return;
            object = b.object.load(std::memory_order_relaxed); // relaxed: see above
            delete &b;
        }
        if (object)
            abandon(object);
    }

    mutable std::uintptr_t word_; ///< the object, or a tagged block; 0 after a move
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_CLAIM_HPP
