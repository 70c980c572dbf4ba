// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the programs about a shard on its bench: the time structures, dozens of timers, and a
//   second thread.

#ifndef PAWL_TEST_SERVICE_SHARD_SCENES_HPP
#define PAWL_TEST_SERVICE_SHARD_SCENES_HPP

#include "shard_bench.hpp"

#include "../support/ordered_map_backend.hpp"
#include "../support/typed_cases.hpp"

#include <pawl/ring_timer.hpp>
#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace shard_bench {

using wheel = counting_backend<pawl::time::hierarchical_wheel>;
using small_wheel = counting_backend<pawl::time::binary_wheel>;
using oracle = counting_backend<pawl_test::ordered_map_backend>;
using backends = pawl_test::types<wheel, small_wheel, oracle>;

/// Timers with one wait each.
template <class Backend>
struct crowd {
    crowd(bench<Backend>& on, std::size_t n) : b(on) {
        for (std::size_t i = 0; i < n; ++i) {
            timers.emplace_back();
            waits.emplace_back();
        }
    }
    ~crowd() {
        for (timer_core& t : timers)
            b.release(t);
        b.run_all();
    }
    void start(std::uint64_t due) {
        for (std::size_t i = 0; i < timers.size(); ++i)
            b.start(timers[i], waits[i], due);
    }
    std::size_t completed() const {
        return static_cast<std::size_t>(std::count_if(
            waits.begin(), waits.end(), [](const test_wait& w) { return w.completed == 1; }));
    }

    bench<Backend>& b;
    std::deque<timer_core> timers; // addresses stay
    std::deque<test_wait> waits;
};

inline pawl::options with(unsigned batch, unsigned per_turn) {
    pawl::options o;
    o.batch_limit = batch;
    o.completions_per_turn = per_turn;
    return o;
}

/// While there is only one thread, no other thread has to be notified.
struct second_thread {
    std::promise<void> end;
    std::jthread thread{[wait = end.get_future()] { wait.wait(); }};

    ~second_thread() { end.set_value(); }
};

template <class Backend>
inline constexpr auto outside = pawl::detail::shard<Backend>::collector::outside;
template <class Backend>
inline constexpr auto candidate = pawl::detail::shard<Backend>::collector::candidate;

/// Ends the waits of a shard, like the end of its context. @return the number of waits.
template <class Backend>
std::size_t drain(bench<Backend>& b, const std::function<void(test_wait&)>& each = {}) {
    std::size_t count = 0;
    const auto end = [&](wait_operation* op) {
        while (op) {
            auto& w = static_cast<test_wait&>(*std::exchange(op, op->next));
            w.destroy();
            ++count;
            if (each)
                each(w);
        }
    };
    while (b.state().empty_batch(end)) {
    }
    return count;
}

} // namespace shard_bench

#endif // PAWL_TEST_SERVICE_SHARD_SCENES_HPP
