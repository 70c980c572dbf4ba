// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The variants of the workloads with a reader.

#include "workloads.hpp"

#include <pawl/event_feed.hpp>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace bench {

namespace {

/// Reads until the context has ended. Serves one context after the other.
class reader_thread {
public:
    ~reader_thread() { join(); }

    void start(pawl::event_feed::reader reader) {
        join();
        thread_ = std::thread([reader = std::move(reader)]() mutable {
            using namespace std::chrono_literals;
            std::array<pawl::timer_event, 1024> events;
            for (;;) {
                const auto got = reader.try_read(events);
                if (got.status == pawl::read_status::closed)
                    return;
                if (got.count < events.size())
                    std::this_thread::sleep_for(500us);
            }
        });
    }

private:
    void join() {
        if (thread_.joinable())
            thread_.join();
    }

    std::thread thread_;
};

} // namespace

void pawl_read::set_up(asio::io_context& io) {
    static reader_thread reads;
    reads.start(pawl::event_feed(io).join());
}

template sample churn<pawl_read>(const plan&);
template sample idle_rearm<pawl_read>(const plan&);
template sample expiry_spread<pawl_read>(const plan&);

} // namespace bench
