// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Everything at once, in real time, on real sockets and threads, with faults: ./dev soak.
//
// Model
//   A round takes some seconds. In it, a thread for each world lives one life after the other
//   (worlds.hpp), a thread makes faults (faults.hpp), and one keeps a timer whose lateness is
//   measured beside that of a control, which sleeps by the system's call. Between rounds there is
//   no thread and no context: descriptors and blocks of memory must be as many as before.
//
// Checks
//   Those of the worlds. What is open, allocated and resident between rounds does not grow. After a
//   shortage, all works again. Each fault was there. Lateness is judged only in windows in which
//   the control was on time, by the share of windows, so that a busy machine is no failure.

#include "soak/faults.hpp"
#include "soak/worlds.hpp"
#include "support/sanitized.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>

namespace soak {

using number = unsigned long long; // of printf

struct world {
    const char* name;
    void (*live)(life&);
};
constexpr world worlds[] = {
    {"timers", timers},
    {"timers", timers},
    {"queue", queue},
    {"feed", feed<pawl::slow_readers::lag>},
    {"feed", feed<pawl::slow_readers::drop_new>},
    {"feed", feed<pawl::slow_readers::block>},
    {"patterns", patterns},
    {"connections", connections},
};

// --- totals -------------------------------------------------------------------------------------

books all;
count lives{0}, unmade{0};

/// One life after the other.
void live(const world& w, dice random, steady::time_point end) {
    while (steady::now() < end) {
        life l{.world = w.name,
               .random = dice(random()),
               .until = std::min(end, steady::now() + random.between(20ms, 1500ms)),
               .scarcity = random.one_in(2) ? 30U : 0U};
        try {
            w.live(l);
            ++lives;
        } catch (const std::bad_alloc&) {
            if (l.up || l.scarcity == 0)
                l.complain("std::bad_alloc where none may be");
            ++unmade;
        } catch (const system_error& e) {
            if (l.up || e.code() != asio::error::no_descriptors)
                l.complain(std::string("an exception: ") + e.what());
            ++unmade;
            ++no_descriptor;
            std::this_thread::sleep_for(10ms);
        } catch (const std::exception& e) {
            l.complain(std::string("an exception: ") + e.what());
        }
        if (l.told.started != l.told.ended())
            l.complain(std::to_string(l.told.started) + " handlers, and " +
                       std::to_string(l.told.ended()) + " have ended");
        l.told.add_to(all);
    }
}

// --- faults -------------------------------------------------------------------------------------

count shortages{0};

void make_faults(dice random, steady::time_point end) {
    for (;;) {
        std::this_thread::sleep_for(random.between(100ms, 600ms));
        if (steady::now() + 500ms > end)
            return;
        if (!random.one_in(3)) {
            const nanoseconds by = random.one_in(8) ? nanoseconds(1h) : random.between(1ms, 3s);
            step_clock(random.one_in(2) ? by : -by);
            continue;
        }
        {
            const few_descriptors limit(random.below(6));
            ++shortages;
            try {
                std::vector<std::unique_ptr<asio::io_context>> contexts;
                for (int i = 0; i != 300; ++i) { // others may be closed meanwhile
                    contexts.push_back(std::make_unique<asio::io_context>());
                    pawl::steady_timer timer(*contexts.back());
                }
                violation("the limit of descriptors has no effect");
            } catch (const system_error&) {
                ++no_descriptor;
            }
            std::this_thread::sleep_for(random.between(50ms, 300ms));
        }
        try {
            asio::io_context context;
            pawl::steady_timer timer(context, 1ms);
            bool done = false;
            timer.async_wait([&](error_code ec) { done = !ec; });
            context.run();
            if (!done)
                violation("a timer does not expire after a shortage of descriptors");
        } catch (const std::exception& e) {
            violation(std::string("after a shortage of descriptors: ") + e.what());
        }
    }
}

// --- lateness -----------------------------------------------------------------------------------

constexpr nanoseconds period = 5ms;
constexpr std::size_t per_window = 20;

struct lateness {
    pawl::duration_histogram pawl, control;
    std::uint64_t judged = 0, late = 0; ///< windows
} measured;

/// Pawl's timer in this thread, the control in another one.
void measure(steady::time_point end) {
    struct window {
        std::size_t control_on_time = 0, on_time = 0;
    };
    const auto begin = steady::now();
    const auto ticks = static_cast<std::size_t>((end - begin) / period) / per_window * per_window;
    std::vector<window> windows(ticks / per_window);
    std::jthread control([&] {
        for (std::size_t i = 0; i != ticks; ++i) {
            const auto at = begin + static_cast<int>(i) * period;
            const auto ns = at.time_since_epoch().count();
            const timespec to{ns / 1'000'000'000, ns % 1'000'000'000};
            ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &to, nullptr);
            const auto late = steady::now() - at;
            measured.control.add(late);
            windows[i / per_window].control_on_time += late < 500us;
        }
    });
    asio::io_context context(1);
    pawl::steady_timer timer(context);
    std::size_t i = 0;
    const std::function<void()> next = [&] {
        if (i == ticks)
            return;
        timer.expires_at(begin + static_cast<int>(i) * period);
        timer.async_wait([&](error_code) {
            const auto late = steady::now() - timer.expiry();
            if (late < 0ns)
                violation("the measured timer is early");
            measured.pawl.add(late);
            windows[i++ / per_window].on_time += late <= 2500us; // a precision, and its own work
            next();
        });
    };
    next();
    context.run();
    control.join();
    for (const window& w : windows)
        if (w.control_on_time == per_window) {
            ++measured.judged;
            measured.late += w.on_time < per_window / 2;
        }
}

// --- between rounds -----------------------------------------------------------------------------

struct sample {
    std::size_t descriptors, blocks, resident; ///< the last one in bytes
};

/// Of this process, or another one.
sample look(const std::string& pid) {
    std::size_t all_pages = 0, resident = 0;
    std::ifstream("/proc/" + pid + "/statm") >> all_pages >> resident;
    return {open_descriptors(pid), live_blocks, resident * 4096};
}

std::size_t median(const std::vector<sample>& samples, std::size_t sample::*what,
                   std::size_t fifth) {
    std::vector<std::size_t> v(1, samples.back().*what); // there may be few, after a failure
    for (std::size_t i = samples.size() * fifth / 5; i != samples.size() * (fifth + 1) / 5; ++i)
        v.push_back(samples[i].*what);
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

/// The last fifth against the second one.
void must_be_flat(const char* name, const std::vector<sample>& samples, std::size_t sample::*what,
                  std::size_t allowance) {
    const std::size_t first = median(samples, what, 1), last = median(samples, what, 4);
    if (static_cast<double>(last) >
        static_cast<double>(first) * 1.05 + static_cast<double>(allowance))
        violation(std::string(name) + " grows from " + std::to_string(first) + " to " +
                  std::to_string(last));
}

} // namespace soak

int main(int argc, char** argv) {
    using namespace soak;
    double minutes = 1;
    std::uint64_t seed = std::random_device{}();
    std::string result, beside;

    CLI::App app{"Everything of Pawl at once, with faults."};
    app.add_option("--minutes", minutes, "for how long")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 100'000.0));
    app.add_option("--seed", seed, "of all choices; random by default");
    app.add_option("--result", result, "a file for the result: lines of KEY=JSON");
    app.add_option("--beside", beside, "a process whose memory and descriptors must be flat, too");
    CLI11_PARSE(app, argc, argv);

    std::printf("soak: seed %llu, %g minutes\n", static_cast<number>(seed), minutes);
    std::fflush(stdout);
    ::mallopt(M_ARENA_MAX, 4); // otherwise the heap grows with the number of threads that meet
    dice random(seed);
    const auto begin = steady::now();
    const auto end = begin + std::chrono::duration_cast<nanoseconds>(
                                 std::chrono::duration<double, std::ratio<60>>(minutes));
    const auto length = std::clamp<nanoseconds>((end - begin) / 15, 1s, 6s);
    auto next_line = begin + 1min;
    std::vector<sample> self, other;
    self.reserve(1 << 20);
    other.reserve(1 << 20);
    const std::size_t least = 10; // rounds
    for (; violations == 0 && (steady::now() < end || self.size() < least); ++round_number) {
        std::atomic<bool> over = false;
        {
            const auto until = steady::now() + length;
            std::vector<std::jthread> threads;
            for (const world& w : worlds)
                threads.emplace_back(live, std::cref(w), dice(random()), until);
            threads.emplace_back(make_faults, dice(random()), until);
            threads.emplace_back(measure, until);
            std::jthread watchdog([&] {
                for (int i = 0; !over; ++i, std::this_thread::sleep_for(10ms))
                    if (i > 12'000) {
                        std::fprintf(stderr, "soak: seed %llu: the round hangs\n",
                                     static_cast<number>(seed));
                        std::abort(); // a debugger or a core file shows where
                    }
            });
            threads.clear();
            over = true;
        }
        self.push_back(look("self"));
        if (!beside.empty())
            other.push_back(look(beside));
        if (self.back().descriptors != self.front().descriptors)
            violation("descriptors are left open: " + std::to_string(self.back().descriptors) +
                      ", in the first round " + std::to_string(self.front().descriptors));
        if (steady::now() >= next_line) {
            next_line += 1min;
            std::printf(
                "soak: %4.0f min, %llu rounds, %llu lives, %llu waits, %zu descriptors, "
                "%zu blocks, %.1f MB\n",
                std::chrono::duration<double, std::ratio<60>>(steady::now() - begin).count(),
                static_cast<number>(round_number + 1), static_cast<number>(lives.load()),
                static_cast<number>(all.started.load()), self.back().descriptors,
                self.back().blocks, static_cast<double>(self.back().resident) / 1e6);
            std::fflush(stdout);
        }
    }

    if (violations == 0) {
        must_be_flat("the number of blocks", self, &sample::blocks, 100);
        if (!pawl_test::sanitized) // whose own memory grows
            must_be_flat("resident memory", self, &sample::resident, 8'000'000);
        if (!beside.empty()) {
            must_be_flat("resident memory of the other process", other, &sample::resident,
                         8'000'000);
            must_be_flat("the number of descriptors of the other process", other,
                         &sample::descriptors, 50);
        }
        if (measured.judged >= 50 && measured.late * 20 > measured.judged && !pawl_test::sanitized)
            violation("late in " + std::to_string(measured.late) + " of " +
                      std::to_string(measured.judged) +
                      " windows in which the control was on time");
        if (minutes >= 0.5 && (failed_allocations == 0 || no_descriptor == 0 || clock_steps == 0))
            violation("a kind of fault was not there");
    }

    struct {
        std::string name, value;
    } const found[] = {
        {"seed", std::to_string(seed)},
        {"minutes",
         std::to_string(
             std::chrono::duration<double, std::ratio<60>>(steady::now() - begin).count())},
        {"rounds", std::to_string(round_number)},
        {"lives", std::to_string(lives)},
        {"lives_not_made", std::to_string(unmade)},
        {"waits", std::to_string(all.started)},
        {"expiries", std::to_string(all.succeeded)},
        {"cancellations", std::to_string(all.failed)},
        {"destroyed", std::to_string(all.destroyed)},
        {"refused", std::to_string(all.refused)},
        {"failed_allocations", std::to_string(failed_allocations)},
        {"descriptor_shortages", std::to_string(shortages)},
        {"without_descriptor", std::to_string(no_descriptor)},
        {"clock_steps", std::to_string(clock_steps / 2)},
        {"rss_first", std::to_string(median(self, &sample::resident, 1))},
        {"rss_last", std::to_string(median(self, &sample::resident, 4))},
        {"fds_first", std::to_string(median(self, &sample::descriptors, 1))},
        {"fds_last", std::to_string(median(self, &sample::descriptors, 4))},
        {"blocks_first", std::to_string(median(self, &sample::blocks, 1))},
        {"blocks_last", std::to_string(median(self, &sample::blocks, 4))},
        {"windows_judged", std::to_string(measured.judged)},
        {"windows_late", std::to_string(measured.late)},
    };
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& f : found)
        rows.emplace_back(f.name, f.value);
    for (const auto& [name, h] : {std::pair{"lateness_us", &measured.pawl},
                                  std::pair{"control_lateness_us", &measured.control}}) {
        std::string json = "{";
        for (const auto& [key, q] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}})
            json += std::string(json.size() > 1 ? ", \"" : "\"") + key +
                    "\": " + std::to_string(h->quantile(q) / 1us);
        rows.emplace_back(name, json + "}");
    }
    rows.emplace_back("violations", std::to_string(violations));
    std::ofstream file(result);
    for (const auto& [name, value] : rows) {
        std::printf("  %-22s %s\n", name.c_str(), value.c_str());
        file << name << '=' << value << '\n';
    }
    if (!result.empty() && !file.flush()) {
        std::fprintf(stderr, "soak: cannot write %s\n", result.c_str());
        return 1;
    }
    std::printf("soak: %s\n", violations == 0 ? "no promise is broken" : "FAILED, see above");
    return violations == 0 ? 0 : 1;
}
