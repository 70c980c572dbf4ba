// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_queue: pawl::event_queue beside hand-written queues, see README.md.

#include "harness.hpp"
#include "program.hpp"

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
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

namespace asio = boost::asio;
using namespace std::chrono_literals;
using bench::checksum;
using bench::plan;
using bench::sample;
using watch = bench::stopwatch<bench::real_time>;

// --- queues that are written by hand -------------------------------------------------------------

/// The usual solution: a lock, a deque, and a function for each event.
class mutex_deque {
public:
    template <class F>
    void push(F&& f) {
        bool first = false;
        {
            const std::scoped_lock lock(mutex_);
            first = events_.empty();
            events_.emplace_back(std::forward<F>(f));
        }
        if (first)
            there_.notify_one();
    }
    void run_some() {
        std::function<void()> event;
        {
            std::unique_lock lock(mutex_);
            there_.wait(lock, [this] { return !events_.empty(); });
            event = std::move(events_.front());
            events_.pop_front();
        }
        event();
    }

protected:
    std::mutex mutex_;
    std::condition_variable there_;
    std::deque<std::function<void()>> events_;
};

/// The same, optimised: the consumer takes all events at once.
class swapped_deque : public mutex_deque {
public:
    void run_some() {
        {
            std::unique_lock lock(mutex_);
            there_.wait(lock, [this] { return !events_.empty(); });
            taken_.swap(events_);
        }
        for (auto& event : taken_)
            event();
        taken_.clear();
    }

private:
    std::deque<std::function<void()>> taken_;
};

/// Asio's own queue, run by the consumer.
class asio_post {
public:
    template <class F>
    void push(F&& f) {
        asio::post(context_, std::forward<F>(f));
    }
    void run_some() {
        context_.run_one();
        context_.poll();
    }

private:
    asio::io_context context_{2};
    asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
};

class pawl_queue {
public:
    template <class F>
    void push(F&& f) {
        queue_.get_executor().execute(std::forward<F>(f));
    }
    void run_some() {
        queue_.wait();
        queue_.process_events();
    }

private:
    asio::io_context context_; // not run: there are no timers
    pawl::event_queue queue_{context_};
};

// --- one producing thread, one that consumes -----------------------------------------------------

/// @tparam Bytes size of an event, besides a reference to the consumer's state.
template <class Queue, std::size_t Bytes>
sample produce(const plan& p) {
    Queue queue;
    checksum sum;
    std::array<std::byte, Bytes> load{};
    const watch time;
    std::thread producer([&] {
        for (std::size_t i = 0; i != p.size; ++i) {
            std::memcpy(load.data(), &i, sizeof(i));
            queue.push([&sum, load] {
                std::size_t n = 0;
                std::memcpy(&n, load.data(), sizeof(n));
                ++sum.expired;
                sum.ids += n + 1;
            });
        }
    });
    while (sum.expired != p.size)
        queue.run_some();
    const double elapsed = time.elapsed_ns();
    producer.join();
    return {elapsed / static_cast<double>(p.size), sum, {}};
}

// --- from the emission to the end of the wait ----------------------------------------------------

struct eventfd_pong {
    int fd = ::eventfd(0, EFD_CLOEXEC);

    eventfd_pong() = default;
    eventfd_pong(const eventfd_pong&) = delete;
    eventfd_pong& operator=(const eventfd_pong&) = delete;
    ~eventfd_pong() { ::close(fd); }

    void emit() {
        const std::uint64_t one = 1;
        if (::write(fd, &one, sizeof(one)) < 0)
            std::abort();
    }
    void wait() {
        std::uint64_t count = 0;
        if (::read(fd, &count, sizeof(count)) < 0)
            std::abort();
    }
};

struct waiting_queue {
    asio::io_context context;
    pawl::event_queue queue{context};

    void emit() {
        queue.get_executor().execute([] {});
    }
    void wait() {
        queue.wait();
        queue.process_events();
    }
};

struct own_queue {
    pawl::event_queue queue;

    void emit() {
        queue.get_executor().execute([] {});
    }
    void wait() {
        queue.wait();
        queue.process_events();
    }
};

struct polled_queue : waiting_queue {
    int fd = queue.native_handle();

    void wait() {
        ::pollfd one{fd, POLLIN, 0};
        while (::poll(&one, 1, -1) != 1)
            ;
        queue.process_events();
    }
};

/// Two threads that wake each other in turn: half of a round trip, median and 99th percentile.
template <class Pong>
sample ping(const plan& p) {
    Pong there;
    Pong back;
    std::vector<double> trips;
    trips.reserve(p.size);
    std::thread other([&] {
        for (std::size_t i = 0; i != p.size; ++i) {
            there.wait();
            back.emit();
        }
    });
    for (std::size_t i = 0; i != p.size; ++i) {
        const watch time;
        there.emit();
        back.wait();
        trips.push_back(time.elapsed_ns() / 2);
    }
    other.join();
    std::sort(trips.begin(), trips.end());
    checksum sum;
    sum.expired = p.size;
    return {trips[p.size / 2], sum, {{"p99", trips[p.size * 99 / 100]}}};
}

// --- timers ---------------------------------------------------------------------------------------

std::size_t threads_of_process() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "Threads:") {
            std::size_t n = 0;
            status >> n;
            return n;
        }
    }
    return 0;
}

/// Timeouts that never expire: `size` of them at a time.
sample asio_timers(const plan& p) {
    asio::io_context context;
    std::deque<asio::steady_timer> timers;
    checksum sum;
    const watch time;
    for (std::size_t i = 0; i != p.size; ++i) {
        timers.emplace_back(context, 30s);
        timers.back().async_wait([](boost::system::error_code) {});
    }
    const auto threads = static_cast<double>(threads_of_process());
    for (auto& t : timers)
        sum.cut_short += t.cancel();
    context.run();
    return {time.elapsed_ns() / static_cast<double>(p.size), sum, {{"threads", threads}}};
}
sample queue_timers(const plan& p) {
    pawl::event_queue queue;
    std::vector<pawl::event_queue::timer> timers;
    checksum sum;
    const watch time;
    for (std::size_t i = 0; i != p.size; ++i)
        timers.push_back(queue.once(30s, [] {}));
    const auto threads = static_cast<double>(threads_of_process());
    for (auto& t : timers) {
        t.destroy();
        ++sum.cut_short;
    }
    queue.process_events();
    return {time.elapsed_ns() / static_cast<double>(p.size), sum, {{"threads", threads}}};
}

/// Intervals, each of ten ticks: on the manual clock, so that no time is spent asleep.
sample interval_waits(const plan& p) {
    asio::io_context context;
    std::deque<pawl::manual_timer> timers;
    checksum sum;
    std::function<void(std::size_t)> start = [&](std::size_t i) {
        timers[i].async_wait([&, i](boost::system::error_code) {
            ++sum.expired;
            sum.ids += i + 1;
            timers[i].expires_at(timers[i].expiry() + 10ms);
            start(i);
        });
    };
    for (std::size_t i = 0; i != p.size; ++i) {
        timers.emplace_back(context, 10ms);
        start(i);
    }
    pawl::manual_clock::advance(context, 10ms);
    context.poll();
    const auto before = allocations.load();
    const watch time;
    for (int n = 0; n != 9; ++n) {
        pawl::manual_clock::advance(context, 10ms);
        context.poll();
    }
    const double elapsed = time.elapsed_ns();
    const auto events = static_cast<double>(9 * p.size);
    return {elapsed / events,
            sum,
            {{"allocations per event", static_cast<double>(allocations.load() - before) / events}}};
}
sample queue_intervals(const plan& p) {
    asio::io_context context;
    pawl::basic_event_queue<pawl::manual_clock> queue(context);
    checksum sum;
    for (std::size_t i = 0; i != p.size; ++i)
        queue.every(10ms, [&sum, i] {
            ++sum.expired;
            sum.ids += i + 1;
        });
    const auto tick = [&] {
        pawl::manual_clock::advance(context, 10ms);
        context.poll();
        queue.process_events();
    };
    tick();
    const auto before = allocations.load();
    const watch time;
    for (int n = 0; n != 9; ++n)
        tick();
    const double elapsed = time.elapsed_ns();
    const auto events = static_cast<double>(9 * p.size);
    return {elapsed / events,
            sum,
            {{"allocations per event", static_cast<double>(allocations.load() - before) / events}}};
}

std::vector<bench::workload> workloads() {
    return {
        {"queue_small",
         "one thread submits, another one handles; an event of 16 bytes",
         "ns per event, real time; `timers` are events",
         {{"mutex_deque", produce<mutex_deque, 8>},
          {"swapped_deque", produce<swapped_deque, 8>},
          {"asio_post", produce<asio_post, 8>},
          {"pawl", produce<pawl_queue, 8>}},
         4'000'000},
        {"queue_large",
         "the same with an event of 40 bytes",
         "ns per event, real time; `timers` are events",
         {{"mutex_deque", produce<mutex_deque, 32>},
          {"swapped_deque", produce<swapped_deque, 32>},
          {"asio_post", produce<asio_post, 32>},
          {"pawl", produce<pawl_queue, 32>}},
         4'000'000},
        {"queue_latency",
         "from the emission to the end of the other thread's wait",
         "ns, median, half of a round trip; `timers` are round trips",
         {{"eventfd", ping<eventfd_pong>},
          {"pawl_wait", ping<waiting_queue>},
          {"pawl_own", ping<own_queue>},
          {"pawl_poll", ping<polled_queue>}},
         50'000},
        {"queue_timers",
         "timeouts that are beaten: so many are made, then all destroyed",
         "ns per timer, real time",
         {{"asio", asio_timers}, {"pawl_queue", queue_timers}},
         100'000},
        {"queue_intervals",
         "ticks of intervals: a Pawl timer whose handler starts it anew, and the queue's",
         "ns per tick, real time",
         {{"pawl_timer", interval_waits}, {"pawl_queue", queue_intervals}},
         10'000},
    };
}

} // namespace

int main(int argc, char** argv) {
    return bench::run_fixed(argc, argv, "pawl_bench_queue",
                            "pawl::event_queue beside what one writes by hand", workloads);
}
