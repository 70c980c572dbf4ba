// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A clock that a test sets, and that lets the test intervene in the middle of a reading, like
//   another thread between a reading and its use. So interleavings are deterministic.

#ifndef PAWL_TEST_SUPPORT_SCRIPTED_CLOCK_HPP
#define PAWL_TEST_SUPPORT_SCRIPTED_CLOCK_HPP

#include <chrono>
#include <functional>
#include <utility>

namespace pawl_test {

/// @tparam Tag makes a separate type, because each test needs its own time.
/// Used by one thread at a time.
template <int Tag, bool Steady = false>
class scripted_clock {
public:
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<scripted_clock>;
    static constexpr bool is_steady = Steady;

    static time_point now() {
        const time_point reading(now_);
        if (left_ != 0 && --left_ == 0)
            std::exchange(at_reading_, nullptr)();
        return reading;
    }

    static void set(duration since_epoch) { now_ = since_epoch; }

    /// Calls `f` once, in the `n`th reading from now (1: the next). That reading returns the time
    /// before the call. `f` must not use timers in a reading by Asio, which holds its lock then.
    static void at_reading(int n, std::function<void()> f) {
        left_ = n;
        at_reading_ = std::move(f);
    }
    /// @return true if `f` was not called yet.
    static bool forget() {
        at_reading_ = nullptr;
        return std::exchange(left_, 0) != 0;
    }

private:
    static inline duration now_{0};
    static inline int left_ = 0;
    static inline std::function<void()> at_reading_;
};

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_SCRIPTED_CLOCK_HPP
