// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A thread that sleeps beside the workloads. The C library, std::shared_ptr and Pawl omit locks
///   and locked instructions while a process has never had a second thread. A server has one: a
///   resolver, a logger, a pool.
#ifndef PAWL_BENCH_IDLE_THREAD_HPP
#define PAWL_BENCH_IDLE_THREAD_HPP

#include <latch>
#include <string>
#include <thread>
#include <utility>

namespace bench {

/// Sleeps from construction to destruction.
class idle_thread {
public:
    idle_thread() = default;
    idle_thread(const idle_thread&) = delete;
    idle_thread& operator=(const idle_thread&) = delete;

    ~idle_thread() {
        over_.count_down();
        thread_.join();
    }

private:
    std::latch over_{1};
    std::thread thread_{[this] { over_.wait(); }};
};

/// How a report states whether there was an idle thread. tools/bench_picture.py reads it.
inline std::pair<std::string, std::string> beside(bool alone) {
    return {"beside the workload", alone ? "nothing: alone in the process" : "an idle thread"};
}

} // namespace bench

#endif // PAWL_BENCH_IDLE_THREAD_HPP
