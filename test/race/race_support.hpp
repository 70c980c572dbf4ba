// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the race tests: a context that several threads run, and threads that use it.

#ifndef PAWL_TEST_RACE_RACE_SUPPORT_HPP
#define PAWL_TEST_RACE_RACE_SUPPORT_HPP

#include <pawl/pawl.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace race_support {

namespace asio = boost::asio;
namespace data = boost::unit_test::data;

inline const auto shards = data::make({1u, 4u});
inline const auto per_turn = data::make({1u, 64u});

inline pawl::options with(unsigned s, unsigned p, std::chrono::nanoseconds precision) {
    pawl::options o;
    o.shards = s;
    o.completions_per_turn = p;
    o.precision = precision; // short, so that more expiries overlap with other operations
    return o;
}

/// A context that several threads run until all waits on it are over.
/// @tparam ClockOrTimer as for make_timer_service().
template <class ClockOrTimer = std::chrono::steady_clock>
class arena {
public:
    arena(const pawl::options& o, int runners) {
        pawl::make_timer_service<ClockOrTimer>(context, o);
        for (int i = 0; i < runners; ++i)
            threads_.emplace_back([this] { context.run(); });
    }
    ~arena() { finish(); }

    /// P9: run() returns when the last wait is over.
    void finish() {
        work_.reset();
        for (std::thread& t : threads_)
            t.join();
        threads_.clear();
    }

    asio::io_context context;

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
    std::vector<std::thread> threads_;
};

/// Calls `use(number)` in n threads at a time.
inline void in_threads(int n, const std::function<void(int)>& use) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i)
        threads.emplace_back([&use, i] { use(i); });
    for (std::thread& t : threads)
        t.join();
}

} // namespace race_support

#endif // PAWL_TEST_RACE_RACE_SUPPORT_HPP
