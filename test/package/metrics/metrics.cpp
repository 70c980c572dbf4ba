// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// usage: metrics PROMETHEUS JSON
//
// Writes the same statistics in both forms, for timers whose counts metrics.py expects.

#include <pawl/event_feed.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/pawl.hpp>
#include <pawl/stats.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <deque>
#include <fstream>

using namespace std::chrono_literals;

int main(int, char** argv) {
    const auto ignore = [](boost::system::error_code) {};
    boost::asio::io_context context;
    pawl::measure_times(context);
    pawl::event_feed feed(context);
    auto reader = feed.join();
    auto suspended = feed.join();
    suspended.suspend();

    std::deque<pawl::manual_timer> timers;
    for (int i = 1; i <= 10; ++i) // 10 are started
        timers.emplace_back(context, i * 10s).async_wait(ignore);
    pawl::manual_clock::advance(context, 35s); // 3 expire, late by the jump
    context.poll();
    timers[3].rearm_after(1h); // 2 are moved
    timers[4].rearm_after(1h);
    timers[5].cancel(); // 1 is cancelled; 6 stay
    context.poll();

    pawl::steady_timer steady(context, 1h);
    steady.async_wait(ignore);
    pawl::compact_timer compact(context, 1h);
    compact.async_wait(ignore);

    auto now = pawl::stats(context);
    now.longest_handler.name = pawl::timer_name("q\"\\\n}\xff,\xc3\xa9"); // as a peer may choose it
    std::ofstream(argv[1]) << pawl::to_prometheus(now);
    std::ofstream(argv[2]) << pawl::to_json(now);

    // A context that was never used has no services.
    boost::asio::io_context empty;
    std::ofstream(std::string(argv[1]) + ".empty") << pawl::to_prometheus(pawl::stats(empty));
    std::ofstream(std::string(argv[2]) + ".empty") << pawl::to_json(pawl::stats(empty));
}
