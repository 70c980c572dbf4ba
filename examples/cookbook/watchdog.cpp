// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Who blocks the loop: an alarm ticks in it, and a thread looks whether it still does. If not, the
// thread of the loop prints its stack. The statistics tell afterwards whose handler it was.

#include "support.hpp"

#include <pawl/alarm.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/stats.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Watches the thread that makes it, and runs `context`. A turn that takes longer than `bound`
/// prints its stack once, after up to twice that time.
class watchdog {
public:
    watchdog(asio::io_context& context, std::chrono::milliseconds bound)
        : beat_(context,
                [this, bound] {
                    ++beats_;
                    beat_.arm_after(bound / 4);
                }),
          bound_(bound) {
        print_stack(0); // loads what the handler of the signal must not load
        std::signal(SIGUSR2, print_stack);
        beat_.keep_running(false); // the watchdog is no reason to go on
        beat_.arm_after(0s);
        thread_ = std::thread([this, loop = pthread_self()] { watch(loop); });
    }
    watchdog& operator=(watchdog&&) = delete;
    ~watchdog() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        end_.notify_one();
        thread_.join();
    }

    /// How often the loop was blocked.
    int barks() const { return barks_; }

private:
    void watch(pthread_t loop) {
        bool blocked = false;
        unsigned seen = beats_;
        std::unique_lock lock(mutex_);
        while (!end_.wait_for(lock, bound_, [this] { return ends_; })) {
            const unsigned now = beats_;
            if (now == seen && !blocked) {
                pthread_kill(loop, SIGUSR2);
                ++barks_;
            }
            blocked = now == seen;
            seen = now;
        }
    }
    static void print_stack(int signal) {
        std::array<void*, 64> frames;
        const int n = backtrace(frames.data(), static_cast<int>(frames.size()));
        if (signal != 0)
            backtrace_symbols_fd(frames.data(), n, STDERR_FILENO);
    }

    std::atomic<unsigned> beats_{0};
    std::atomic<int> barks_{0};
    pawl::alarm<std::function<void()>> beat_;
    const std::chrono::milliseconds bound_;
    std::mutex mutex_;
    std::condition_variable end_;
    bool ends_ = false;
    std::thread thread_;
};

} // namespace

int main() {
    asio::io_context context(1);
    pawl::measure_times(context);
    watchdog dog(context, 50ms);

    pawl::steady_timer quick(context, 10ms), slow(context, 20ms);
    pawl::set_name(quick, "quick");
    pawl::set_name(slow, "sweep of the cache");
    quick.async_wait([](auto) {});
    slow.async_wait([&](auto) { // takes longer than any other, however busy the machine is
        const auto others = pawl::stats(context).longest_handler.time;
        const auto begin = std::chrono::steady_clock::now();
        while (dog.barks() == 0 || std::chrono::steady_clock::now() - begin <= others)
            std::this_thread::sleep_for(10ms);
        context.stop();
    });
    context.run();
    cookbook::check(dog.barks() != 0, "the watchdog has seen a turn that is too long");

    const auto longest = pawl::stats(context).longest_handler;
    std::cout << longest.name.view() << ": " << longest.time.count() << " ns\n";
    cookbook::check(longest.name.view() == "sweep of the cache",
                    "the statistics name the timer whose handler it was");
    return cookbook::exit_status();
}
