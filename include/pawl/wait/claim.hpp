// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Lets a function object that owns something be copied. Executors that keep functions in a
///   std::function copy what they are given; Asio's own executors move it.
///
/// Model
///   A claim points to the object. The first copy fetches a small block that knows the object, and
///   that both share from then on. The claim that is taken first gets the object; the others get
///   nothing. If none is taken, the last one that ends gets it.
///
/// Threads
///   Copies may be in different threads. To copy a claim changes it: one thread at a time.
///
/// Cost
///   One word. A claim that is moved, but never copied, has no block. The block is from the heap, and
///   not from the allocator of a handler, which may be gone before the last copy.
#ifndef PAWL_WAIT_CLAIM_HPP
#define PAWL_WAIT_CLAIM_HPP

#include <pawl/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// Part of a function object, whose destructor calls end().
///
/// @tparam T its alignment is 2 or more; so must be that of the object if T is void.
template <class T>
class claim {
public:
    /// On `object`.
    explicit claim(T* object) noexcept : word_(reinterpret_cast<std::uintptr_t>(object)) {}
    claim(claim&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
    /// @throws std::bad_alloc, with the object left to `other`.
    claim(const claim& other) : word_(other.share()) {}
    claim& operator=(const claim&) = delete;
    ~claim() = default; // end() was called

    /// The object, or nullptr if it, or a copy, has been taken.
    [[nodiscard]] T* get() const noexcept {
        if (is_shared(word_)) [[unlikely]]
            // relaxed: as in take_shared()
            return shared(word_).object.load(std::memory_order_relaxed);
        return reinterpret_cast<T*>(word_);
    }

    /// Puts another object in the place of this one.
    /// @pre there are no copies.
    void reset(T* object) noexcept { word_ = reinterpret_cast<std::uintptr_t>(object); }

    /// @return the object, which is the caller's now; nullptr if a copy has been taken before.
    [[nodiscard]] T* take() const noexcept {
        if (is_shared(word_)) [[unlikely]]
            return take_shared(word_);
        return reinterpret_cast<T*>(std::exchange(word_, 0));
    }

    /// Ends the claim: `abandon(object)` if nobody has taken it and this is the last copy.
    template <class Abandon>
    void end(Abandon abandon) const noexcept {
        if (word_ != 0)
            end(word_, abandon);
    }

private:
    /// What copies share.
    struct block {
        std::atomic<T*> object; ///< nullptr when it is taken
        std::atomic<std::size_t> claims;
    };

    static constexpr std::uintptr_t mark = 1; ///< of a pointer to a block

    [[nodiscard]] static bool is_shared(std::uintptr_t word) noexcept { return (word & mark) != 0; }
    [[nodiscard]] static block& shared(std::uintptr_t word) noexcept {
        return *reinterpret_cast<block*>(word & ~mark);
    }

    // What follows is out of line, and gets no address: the compiler keeps a claim that is only moved
    // in a register, if it knows of it at all.

    /// The word of a copy.
    [[nodiscard]] std::uintptr_t share() const {
        if (is_shared(word_)) {
            // relaxed: this claim keeps the block
            shared(word_).claims.fetch_add(1, std::memory_order_relaxed);
        } else if (word_ != 0) {
            auto* const b = new block{{reinterpret_cast<T*>(word_)}, {2}};
            word_ = reinterpret_cast<std::uintptr_t>(b) | mark;
        }
        return word_;
    }

    [[nodiscard]] PAWL_DETAIL_NOINLINE static T* take_shared(std::uintptr_t word) noexcept {
        // relaxed: what the object was when it was copied has come to this thread with the copy, and
        // the thread that takes it has it alone
        return shared(word).object.exchange(nullptr, std::memory_order_relaxed);
    }

    template <class Abandon>
    PAWL_DETAIL_NOINLINE static void end(std::uintptr_t word, Abandon abandon) noexcept {
        auto* object = reinterpret_cast<T*>(word);
        if (is_shared(word)) {
            block& b = shared(word);
            // acq_rel: the last one knows what the others have taken
            if (b.claims.fetch_sub(1, std::memory_order_acq_rel) != 1)
                return;
            object = b.object.load(std::memory_order_relaxed); // relaxed: see above
            delete &b;
        }
        if (object)
            abandon(object);
    }

    mutable std::uintptr_t word_; ///< the object, or a block with a mark; 0 after a move
};

} // namespace pawl::detail

#endif // PAWL_WAIT_CLAIM_HPP
