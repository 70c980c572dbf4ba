// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Threads that run given functions, one at a time: a service gives each thread a shard.

#ifndef PAWL_TEST_SIMULATION_MAKERS_HPP
#define PAWL_TEST_SIMULATION_MAKERS_HPP

#include "simulation/scenario.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace simulation {

class makers {
public:
    static makers& instance() {
        static makers all;
        return all;
    }

    /// Runs `f` in the thread `index`, and waits for its end.
    void run(int index, std::function<void()> f) {
        work_ = std::move(f);
        begin_[static_cast<std::size_t>(index)].release();
        end_.acquire();
    }

private:
    makers() {
        for (std::size_t i = 0; i < begin_.size(); ++i)
            threads_.emplace_back([this, i] { serve(begin_[i]); });
    }
    ~makers() {
        work_ = nullptr;
        for (auto& begin : begin_)
            begin.release();
        for (std::thread& t : threads_)
            t.join();
    }

    void serve(std::binary_semaphore& begin) {
        for (begin.acquire(); work_; begin.acquire()) {
            work_();
            end_.release();
        }
    }

    std::function<void()> work_;
    std::array<std::binary_semaphore, maker_threads> begin_{
        std::binary_semaphore(0), std::binary_semaphore(0), std::binary_semaphore(0),
        std::binary_semaphore(0), std::binary_semaphore(0), std::binary_semaphore(0),
        std::binary_semaphore(0), std::binary_semaphore(0)};
    std::binary_semaphore end_{0};
    std::vector<std::thread> threads_;
};

} // namespace simulation

#endif
