// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Memory that is filled and kept when it is freed, so that a test detects a write to it without a
//   sanitizer.

#ifndef PAWL_TEST_SUPPORT_GRAVEYARD_HPP
#define PAWL_TEST_SUPPORT_GRAVEYARD_HPP

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

namespace pawl_test {

/// Not operator new: a test may make that one fail.
class graveyard {
public:
    graveyard() = default;
    graveyard(const graveyard&) = delete;
    graveyard& operator=(const graveyard&) = delete;
    ~graveyard() {
        for (const block& b : blocks_)
            std::free(b.begin);
    }

    void* bury_later(std::size_t size) {
        auto* const p = static_cast<std::byte*>(std::malloc(size));
        if (p == nullptr)
            throw std::bad_alloc();
        blocks_.push_back({p, size, false});
        return p;
    }
    void bury(void* memory) noexcept {
        const auto b = std::find_if(blocks_.begin(), blocks_.end(),
                                    [memory](const block& x) { return x.begin == memory; });
        std::memset(b->begin, filling, b->size);
        b->buried = true;
    }

    std::size_t allocations() const noexcept { return blocks_.size(); }
    std::size_t buried() const noexcept {
        return static_cast<std::size_t>(
            std::count_if(blocks_.begin(), blocks_.end(), [](const block& b) { return b.buried; }));
    }
    /// Whether no write to freed memory has happened.
    bool undisturbed() const noexcept {
        return std::all_of(blocks_.begin(), blocks_.end(), [](const block& b) {
            return !b.buried || std::all_of(b.begin, b.begin + b.size, [](std::byte x) {
                return x == static_cast<std::byte>(filling);
            });
        });
    }

private:
    static constexpr int filling = 0xff; // no flag hides a write

    struct block {
        std::byte* begin;
        std::size_t size;
        bool buried;
    };

    std::deque<block> blocks_;
};

template <class T>
class graveyard_allocator {
public:
    using value_type = T;

    explicit graveyard_allocator(graveyard& g) noexcept : from_(&g) {}
    template <class U>
    graveyard_allocator(const graveyard_allocator<U>& other) noexcept : from_(other.from()) {}

    T* allocate(std::size_t n) { return static_cast<T*>(from_->bury_later(n * sizeof(T))); }
    void deallocate(T* p, std::size_t) noexcept { from_->bury(p); }

    graveyard* from() const noexcept { return from_; }
    template <class U>
    bool operator==(const graveyard_allocator<U>& other) const noexcept {
        return from_ == other.from();
    }

private:
    graveyard* from_;
};

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_GRAVEYARD_HPP
