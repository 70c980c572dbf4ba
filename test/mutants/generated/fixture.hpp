// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0
// One use or more of each operator of tools/mutate_generate.py; see generate_test.py.
#ifndef PAWL_TEST_FIXTURE_HPP
#define PAWL_TEST_FIXTURE_HPP

#include <algorithm>
#include <cassert>
#include <utility>

#define PAWL_ASSERT(...) assert((__VA_ARGS__))

namespace fixture {

constexpr int only_compiled = 3; // left out

template <int N>
    requires(N > 2)
constexpr int twice(int value) {
    static_assert(N < 100);
    if constexpr (N == 50)
        return 0;
    return value + value;
}

struct counter {
    void count() noexcept {
        PAWL_ASSERT(value_ >= 0); // left out, as a check
        add();
        add(); // the second of two calls
    }
    void add() { value_ += 1; }
    void invariant() const { assert(value_ >= 0 && value_ < 100); } // left out, as a check

    int value_ = 0;
};

struct mover {
    mover(int a, int& b) : a_(a), b_(b) {}
    mover(mover&& other) noexcept : a_(std::exchange(other.a_, 0)), b_(other.b_) {}
    mover& operator=(mover&& other) noexcept {
        a_ = other.a_;
        return *this;
    }

    int a_;
    int& b_; // decltype(b_)() does not compile
};

inline int difference(int from, int to) { return to - from; }
inline int larger(int a, int b) { return std::max(a, b); } // whose arguments are not swapped

inline int chosen(int a, int b, bool c) {
    if (a < b && /* a comment ( */ !c)
        return difference(a, b); // a comment with "quotes"
    return c ? 8 : 5;
}

inline int sum(int to) {
    int result = 0;
    for (int i = 1; i <= to; ++i) {
        if (i == 4)
            continue;
        result += twice<only_compiled>(i + to);
    }
    return result;
}

struct moved_by_the_compiler { // left out
    moved_by_the_compiler(moved_by_the_compiler&&) = default;
};

static_assert(twice<only_compiled>(2) == 4); // a defect is not selected at compile time

} // namespace fixture

#endif
