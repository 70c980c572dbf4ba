// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_feed: pawl::broadcast_ring beside hand-written alternatives, see README.md.

#include "harness.hpp"
#include "program.hpp"

#include <pawl/broadcast_ring.hpp>

#include <boost/lockfree/spsc_queue.hpp>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
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

/// As large as an event of a timer.
struct event {
    std::uint64_t number;
    std::array<std::uint64_t, 4> rest;
};
using batch_of_events = std::array<event, batch>;

// --- from one writer to four readers, none is lost -----------------------------------------------

// read() calls f for each event that it has read, at most a batch, and returns how many.

/// Calls f for the first `n` events of a copy.
template <class F>
std::size_t each_of(const batch_of_events& events, std::size_t n, F f) {
    for (std::size_t i = 0; i != n; ++i)
        f(events[i]);
    return n;
}

/// The usual solution: a deque for each reader, and one lock.
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
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        batch_of_events out;
        std::unique_lock lock(mutex_);
        auto& mine = queues_[reader];
        const std::size_t n = std::min(mine.size(), out.size());
        const auto end = mine.begin() + static_cast<std::ptrdiff_t>(n);
        std::copy(mine.begin(), end, out.begin());
        mine.erase(mine.begin(), end);
        lock.unlock();
        return each_of(out, n, f);
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
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        batch_of_events out;
        return each_of(out, (*queues_)[reader].pop(out.data(), out.size()), f);
    }

protected:
    using queue = boost::lockfree::spsc_queue<event, boost::lockfree::capacity<slots>>;
    std::unique_ptr<std::array<queue, readers>> queues_ =
        std::make_unique<std::array<queue, readers>>();
};

/// The same, but events are not copied out. Reads all that are present, because there is no call
/// for a batch.
class spsc_in_place : public spsc_queues {
public:
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        return (*queues_)[reader].consume_all([&](const event& each) { f(each); });
    }
};

template <slow_readers Policy>
class pawl_ring {
public:
    void write(std::span<const event> events) { (void)ring_.write(events); }
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        batch_of_events out;
        const auto got = readers_[reader].read(out);
        if (got.missed != 0)
            std::abort();
        return each_of(out, got.count, f);
    }

protected:
    using ring = pawl::broadcast_ring<event, Policy, ring_writers::one>;
    ring ring_{slots, readers};
    std::array<typename ring::reader, readers> readers_{ring_.join_newest(), ring_.join_newest(),
                                                        ring_.join_newest(), ring_.join_newest()};
};

/// Readers keep their unread events; the writer waits for them.
using pawl_block = pawl_ring<slow_readers::block>;

/// The same, but events are read in place and not copied.
class pawl_in_place : public pawl_block {
public:
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        const auto some = readers_[reader].read(batch);
        std::size_t n = 0;
        for (const event& each : some) {
            f(each);
            ++n;
        }
        return n;
    }
};

/// Messages are overwritten unconditionally. So that none is lost, and all variants do the same
/// work, the writer here asks for the positions of the readers.
class pawl_lag : public pawl_ring<slow_readers::lag> {
public:
    void write(std::span<const event> events) {
        while (ring_.published() + batch > seen_ + slots) {
            seen_ = ring_.published();
            for (const auto& each : positions_)
                seen_ = std::min(seen_, each.at.load(std::memory_order_relaxed));
            if (ring_.published() + batch > seen_ + slots)
                std::this_thread::yield();
        }
        pawl_ring::write(events);
    }
    template <class F>
    std::size_t read(std::size_t reader, F f) {
        const std::size_t n = pawl_ring::read(reader, f);
        positions_[reader].at.store(readers_[reader].position(), std::memory_order_relaxed);
        return n;
    }

private:
    struct alignas(64) position {
        std::atomic<std::uint64_t> at{0};
    };
    std::array<position, readers> positions_;
    std::uint64_t seen_ = 0;
};

/// Resident memory of the process, in KiB.
double resident() {
    std::uint64_t all = 0;
    std::uint64_t there = 0;
    if (!(std::ifstream("/proc/self/statm") >> all >> there))
        throw std::runtime_error("cannot read /proc/self/statm");
    return static_cast<double>(there) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

/// CPU time of the process, in nanoseconds.
double process_cpu() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// @param notes of the writer: called at the start, in the middle and at the end.
template <class Broadcast, class Notes>
sample broadcast(const plan& p, Notes notes) {
    const auto to_all = std::make_unique<Broadcast>();
    std::array<checksum, readers> sums;
    sample result;
    const double cpu = process_cpu();
    const watch time;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r != readers; ++r) {
        threads.emplace_back([&, r] {
            checksum mine;
            while (mine.expired != p.size) {
                const std::size_t n = to_all->read(r, [&](const event& each) {
                    ++mine.expired;
                    mine.ids += each.number + 1;
                });
                if (n == 0)
                    std::this_thread::yield();
            }
            sums[r] = mine;
        });
    }
    batch_of_events in{};
    const auto write = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i != to; i += batch) {
            for (std::size_t k = 0; k != batch; ++k)
                in[k].number = i + k;
            to_all->write(in);
        }
    };
    const std::size_t first = std::min(p.size, 2 * slots); // each slot and each stack has been used
    const std::size_t middle = first + (p.size - first) / 2 / batch * batch;
    write(0, first);
    notes(result, "begin");
    write(first, middle);
    notes(result, "middle");
    write(middle, p.size);
    for (std::thread& t : threads)
        t.join();
    const double elapsed = time.elapsed_ns();
    const double got = process_cpu() - cpu;
    result.value = elapsed / static_cast<double>(p.size * readers);
    notes(result, "end");
    // Fewer than the machine has: other programs ran beside it, or threads slept.
    result.notes.emplace_back("CPUs that the process got", got / elapsed);
    for (const checksum& each : sums)
        result.sum += each;
    return result;
}

template <class Broadcast>
sample counted(const plan& p) {
    std::uint64_t before = 0;
    return broadcast<Broadcast>(p, [&](sample& result, const std::string& when) {
        if (when == "begin")
            before = allocations.load();
        if (when == "end")
            result.notes.emplace_back("allocations",
                                      static_cast<double>(allocations.load() - before));
    });
}

template <class Broadcast>
sample weighed(const plan& p) {
    return broadcast<Broadcast>(p, [](sample& result, const std::string& when) {
        result.notes.emplace_back("KiB of the process at the " + when, resident());
    });
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
template <class Ring>
sample join(Ring& ring, const plan& p) {
    checksum sum;
    const watch time;
    for (std::size_t i = 0; i != p.size; ++i) {
        const auto mine = ring.join_newest();
        ++sum.expired;
    }
    return {time.elapsed_ns() / static_cast<double>(p.size), sum, {}};
}
template <slow_readers Policy>
sample join_ring(const plan& p) {
    pawl::broadcast_ring<event, Policy, ring_writers::one> ring(slots, 64);
    return join(ring, p);
}
/// The same while another thread writes.
template <slow_readers Policy>
sample join_written(const plan& p) {
    pawl::broadcast_ring<event, Policy, ring_writers::one> ring(slots, 64);
    std::atomic<bool> over{false};
    std::thread writer([&] {
        const batch_of_events in{};
        while (!over.load(std::memory_order_relaxed))
            (void)ring.write(in);
    });
    while (ring.published() == 0)
        std::this_thread::yield();
    const sample result = join(ring, p);
    over.store(true, std::memory_order_relaxed);
    writer.join();
    return result;
}

// --- the cost of readers to a writer ------------------------------------------------------------

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
         {{"mutex_deque", counted<mutex_deque>},
          {"spsc_queues", counted<spsc_queues>},
          {"spsc_in_place", counted<spsc_in_place>},
          {"pawl_block", counted<pawl_block>},
          {"pawl_lag", counted<pawl_lag>},
          {"pawl_in_place", counted<pawl_in_place>}},
         batch * 100'000},
        {"feed_memory",
         "the same with a thousand million events",
         "ns per event and reader, real time; `timers` are events",
         {{"pawl_block", weighed<pawl_block>}, {"pawl_lag", weighed<pawl_lag>}},
         1'000'000'000,
         1},
        {"feed_join",
         "a reader joins and leaves",
         "ns for both, real time; `timers` are readers",
         {{"mutex_list", join_list},
          {"pawl_drop_new", join_ring<drop_new>},
          {"pawl_lag", join_ring<lag>}},
         1'000'000},
        {"feed_join_written",
         "the same while another thread writes batches of 64 events without a pause",
         "ns for both, real time; `timers` are readers",
         {{"pawl_drop_new", join_written<drop_new>}, {"pawl_lag", join_written<lag>}},
         1'000'000},
        {"feed_reader",
         "batches of 64 events are written, with lag, while a reader is not there, is suspended, "
         "or does not read",
         "ns per event, real time; `timers` are events",
         {{"absent", written<lag, absent>},
          {"suspended", written<lag, suspended>},
          {"asleep", written<lag, asleep>}},
         batch * 200'000},
        {"feed_reader_drop_new",
         "the same with drop_new, without a reader that does not read: that one keeps its messages",
         "ns per event, real time; `timers` are events",
         {{"absent", written<drop_new, absent>}, {"suspended", written<drop_new, suspended>}},
         batch * 200'000},
    };
}

} // namespace

int main(int argc, char** argv) {
    return bench::run_fixed(argc, argv, "pawl_bench_feed",
                            "pawl::broadcast_ring beside what one writes by hand", workloads,
                            batch);
}
