// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_feed: pawl::broadcast_ring beside what one writes by hand, see README.md.

#include "harness.hpp"
#include "idle_thread.hpp"
#include "report.hpp"

#include "../examples/command_line.hpp"

#include <pawl/broadcast_ring.hpp>

#include <boost/lockfree/spsc_queue.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<std::uint64_t> allocations{0};

} // namespace

void* operator new(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* const p = std::malloc(size))
        return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using bench::checksum;
using bench::plan;
using bench::sample;
using watch = bench::stopwatch<bench::real_time>;
using pawl::ring_writers;
using pawl::slow_readers;

constexpr std::size_t readers = 4;
constexpr std::size_t batch = 64;
constexpr std::size_t slots = 4096;

/// As long as an event of a timer.
struct event {
    std::uint64_t number;
    std::array<std::uint64_t, 4> rest;
};
using batch_of_events = std::array<event, batch>;

// --- from one writer to four readers, none is lost -----------------------------------------------

/// What stands in many programs: a deque for each reader, and one lock.
class mutex_deque {
public:
    void write(std::span<const event> events) {
        for (bool written = false; !written; written ? (void)0 : std::this_thread::yield()) {
            const std::scoped_lock lock(mutex_);
            written = std::all_of(queues_.begin(), queues_.end(),
                                  [](const auto& each) { return each.size() + batch <= slots; });
            if (written) {
                for (auto& each : queues_)
                    each.insert(each.end(), events.begin(), events.end());
            }
        }
    }
    std::size_t read(std::size_t reader, std::span<event> out) {
        const std::scoped_lock lock(mutex_);
        auto& mine = queues_[reader];
        const std::size_t n = std::min(mine.size(), out.size());
        const auto end = mine.begin() + static_cast<std::ptrdiff_t>(n);
        std::copy(mine.begin(), end, out.begin());
        mine.erase(mine.begin(), end);
        return n;
    }

private:
    std::mutex mutex_;
    std::array<std::deque<event>, readers> queues_;
};

/// A queue of Boost.Lockfree for each reader.
class spsc_queues {
public:
    void write(std::span<const event> events) {
        for (auto& each : *queues_) {
            for (std::size_t done = 0; done != events.size();) {
                const std::size_t n = each.push(events.data() + done, events.size() - done);
                done += n;
                if (n == 0)
                    std::this_thread::yield();
            }
        }
    }
    std::size_t read(std::size_t reader, std::span<event> out) {
        return (*queues_)[reader].pop(out.data(), out.size());
    }

private:
    using queue = boost::lockfree::spsc_queue<event, boost::lockfree::capacity<slots>>;
    std::unique_ptr<std::array<queue, readers>> queues_ =
        std::make_unique<std::array<queue, readers>>();
};

/// Readers keep what they have not read; the writer waits for them.
class pawl_block {
public:
    void write(std::span<const event> events) { (void)ring_.write(events); }
    std::size_t read(std::size_t reader, std::span<event> out) {
        return readers_[reader].read(out).count;
    }

private:
    using ring = pawl::broadcast_ring<event, slow_readers::block, ring_writers::one>;
    ring ring_{slots, readers};
    std::array<ring::reader, readers> readers_{ring_.join_newest(), ring_.join_newest(),
                                               ring_.join_newest(), ring_.join_newest()};
};

/// Messages are overwritten without asking. So that none is missed, and all variants do the same work,
/// the writer asks here where the readers are.
class pawl_lag {
public:
    void write(std::span<const event> events) {
        while (ring_.published() + batch > seen_ + slots) {
            seen_ = ring_.published();
            for (const auto& each : positions_)
                seen_ = std::min(seen_, each.at.load(std::memory_order_relaxed));
            if (ring_.published() + batch > seen_ + slots)
                std::this_thread::yield();
        }
        (void)ring_.write(events);
    }
    std::size_t read(std::size_t reader, std::span<event> out) {
        const auto got = readers_[reader].read(out);
        if (got.missed != 0)
            std::abort();
        positions_[reader].at.store(readers_[reader].position(), std::memory_order_relaxed);
        return got.count;
    }

private:
    struct alignas(64) position {
        std::atomic<std::uint64_t> at{0};
    };
    using ring = pawl::broadcast_ring<event, slow_readers::lag, ring_writers::one>;
    ring ring_{slots, readers};
    std::array<ring::reader, readers> readers_{ring_.join_newest(), ring_.join_newest(),
                                               ring_.join_newest(), ring_.join_newest()};
    std::array<position, readers> positions_;
    std::uint64_t seen_ = 0;
};

template <class Broadcast>
sample broadcast(const plan& p) {
    const auto to_all = std::make_unique<Broadcast>();
    std::array<checksum, readers> sums;
    const auto before = allocations.load();
    const watch time;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r != readers; ++r) {
        threads.emplace_back([&, r] {
            batch_of_events out;
            checksum mine;
            while (mine.expired != p.size) {
                const std::size_t n = to_all->read(r, out);
                for (const event& each : std::span(out).first(n)) {
                    ++mine.expired;
                    mine.ids += each.number + 1;
                }
                if (n == 0)
                    std::this_thread::yield();
            }
            sums[r] = mine;
        });
    }
    batch_of_events in{};
    for (std::size_t i = 0; i != p.size; i += batch) {
        for (std::size_t k = 0; k != batch; ++k)
            in[k].number = i + k;
        to_all->write(in);
    }
    for (std::thread& t : threads)
        t.join();
    const double elapsed = time.elapsed_ns();
    checksum sum;
    for (const checksum& each : sums)
        sum += each;
    return {elapsed / static_cast<double>(p.size * readers),
            sum,
            {{"allocations", static_cast<double>(allocations.load() - before)}}};
}

// --- readers that come and go --------------------------------------------------------------------

sample join_list(const plan& p) {
    std::mutex mutex;
    std::list<std::deque<event>> all;
    checksum sum;
    const watch time;
    for (std::size_t i = 0; i != p.size; ++i) {
        std::unique_lock lock(mutex);
        const auto mine = all.emplace(all.end());
        lock.unlock();
        ++sum.expired;
        lock.lock();
        all.erase(mine);
    }
    return {time.elapsed_ns() / static_cast<double>(p.size), sum, {}};
}
template <slow_readers Policy>
sample join_ring(const plan& p) {
    pawl::broadcast_ring<event, Policy, ring_writers::one> ring(slots, 64);
    checksum sum;
    const watch time;
    for (std::size_t i = 0; i != p.size; ++i) {
        const auto mine = ring.join_newest();
        ++sum.expired;
    }
    return {time.elapsed_ns() / static_cast<double>(p.size), sum, {}};
}

// --- what readers cost a writer ------------------------------------------------------------------

enum class reader_is { absent, suspended, asleep };

template <slow_readers Policy, reader_is Reader>
sample written(const plan& p) {
    pawl::broadcast_ring<event, Policy, ring_writers::one> ring(slots, 16);
    std::optional<typename decltype(ring)::reader> reader;
    if (Reader != reader_is::absent)
        reader.emplace(ring.join_newest());
    if (Reader == reader_is::suspended)
        reader->suspend();
    batch_of_events in{};
    checksum sum;
    const auto before = allocations.load();
    const watch time;
    for (std::size_t i = 0; i != p.size; i += batch)
        sum.expired += ring.write(in);
    return {time.elapsed_ns() / static_cast<double>(p.size),
            sum,
            {{"allocations", static_cast<double>(allocations.load() - before)}}};
}

std::vector<bench::workload> workloads() {
    using enum slow_readers;
    using enum reader_is;
    return {
        {"feed_broadcast",
         "one thread writes batches of 64 events of 40 bytes, four read each of them",
         "ns per event and reader, real time; `timers` are events",
         {{"mutex_deque", broadcast<mutex_deque>},
          {"spsc_queues", broadcast<spsc_queues>},
          {"pawl_block", broadcast<pawl_block>},
          {"pawl_lag", broadcast<pawl_lag>}},
         64 * 20'000},
        {"feed_join",
         "a reader joins and leaves",
         "ns for both, real time; `timers` are readers",
         {{"mutex_list", join_list},
          {"pawl_drop_new", join_ring<drop_new>},
          {"pawl_lag", join_ring<lag>}},
         1'000'000},
        {"feed_reader",
         "batches of 64 events are written, with lag, while a reader is not there, is suspended, "
         "or does not read",
         "ns per event, real time; `timers` are events",
         {{"absent", written<lag, absent>},
          {"suspended", written<lag, suspended>},
          {"asleep", written<lag, asleep>}},
         64 * 200'000},
        {"feed_reader_drop_new",
         "the same with drop_new, without a reader that does not read: that one keeps its messages",
         "ns per event, real time; `timers` are events",
         {{"absent", written<drop_new, absent>}, {"suspended", written<drop_new, suspended>}},
         64 * 200'000},
    };
}

} // namespace

int main(int argc, char** argv) try {
    std::vector<std::string> patterns;
    std::size_t repetitions = 9;
    std::string json_file;
    bool quick = false;
    CLI::App app{"pawl::broadcast_ring beside what one writes by hand", "pawl_bench_feed"};
    app.add_option("-w,--workload", patterns, "run these only: regular expressions, repeatable");
    app.add_option("-r,--reps", repetitions, "repetitions")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    app.add_option("--json", json_file, "write all samples to this file");
    app.add_flag("-q,--quick", quick, "a smoke test of seconds");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    auto facts = bench::environment();
    facts.push_back(bench::beside(false));
    facts.emplace_back("options",
                       std::to_string(repetitions) + " repetitions" + (quick ? ", quick" : ""));
    facts.emplace_back("ratios", "first column / variant, more is better for the variant: median "
                                 "(min - max) of paired repetitions");
    std::cout << "# pawl_bench_feed\n\n";
    bench::print_facts(std::cout, facts);
    bench::json_report report;
    std::ofstream json;
    if (!json_file.empty()) {
        json.open(json_file);
        if (!json) {
            std::cerr << "pawl_bench_feed: cannot write " << json_file << '\n';
            return 2;
        }
    }
    const bench::idle_thread second; // every program of this kind has one
    for (const auto& work : workloads()) {
        const auto named = [&](const std::string& p) {
            return std::regex_search(work.name, std::regex(p));
        };
        if (!patterns.empty() && std::none_of(patterns.begin(), patterns.end(), named))
            continue;
        plan p;
        // Whole batches.
        p.size = quick ? std::max<std::size_t>(work.fixed_size / 100 / batch, 1) * batch
                       : work.fixed_size;
        bench::print_heading(std::cout, work);
        const std::vector results{bench::measure(work, p, quick ? 2 : repetitions)};
        bench::print_row(std::cout, results.front());
        bench::print_notes(std::cout, results);
        report.add(work, results.front());
    }
    if (json.is_open())
        report.write(json, facts);
    return 0;
} catch (const bench::checksum_mismatch& error) {
    std::cerr << "pawl_bench_feed: the variants did not do the same work: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << "pawl_bench_feed: " << error.what() << '\n';
    return 1;
}
