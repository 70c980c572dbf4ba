// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// As under `ulimit -v`: the process really runs out of memory while waits are started. Waits that were started are kept,
// and can be moved, cancelled and completed without memory (P8).

#include <pawl/alarm.hpp>
#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/steady_timer.hpp>

#define BOOST_TEST_MODULE address_space
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "support/seed.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

/// No more than `bytes` can be allocated from here on.
class limit_memory {
public:
    explicit limit_memory(std::size_t bytes) {
        ::getrlimit(RLIMIT_AS, &before_);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit now = before_;
        now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
        BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &now) == 0);
    }
    ~limit_memory() { ::setrlimit(RLIMIT_AS, &before_); }
    limit_memory& operator=(limit_memory&&) = delete;

private:
    rlimit before_{};
};

/// glibc allocates for the later keys only. Pawl's come behind these.
const bool first_keys_are_taken = [] {
    pthread_key_t unused{};
    for (int i = 0; i != 32; ++i)
        ::pthread_key_create(&unused, nullptr);
    return true;
}();

} // namespace

using timer_types = std::tuple<pawl::steady_timer, pawl::compact_timer, pawl::coarse_timer>;

BOOST_AUTO_TEST_CASE_TEMPLATE(P8_without_memory_a_wait_is_refused_and_the_others_are_kept, Timer,
                              timer_types) {
    constexpr std::size_t most = 1'000'000;
    std::mt19937_64 random(pawl_test::seed());
    const auto upto = [&](auto d) { return d * static_cast<long>(random() % 1000) / 1000; };
    boost::asio::io_context context;
    // Not a container that grows: a refusal is to meet Pawl's allocations.
    const std::unique_ptr<std::byte[]> room(new std::byte[most * sizeof(Timer)]);
    const auto timers = reinterpret_cast<Timer*>(room.get());
    std::size_t made = 0, started = 0, cancelled = 0, aborted = 0, expired = 0;
    bool refused = false;
    {
        const limit_memory limit(4 << 20);
        try {
            for (; made != most; ++started) {
                ::new (static_cast<void*>(timers + made)) Timer(context, 1s + upto(1h));
                ++made;
                timers[made - 1].async_wait([&](error_code ec) {
                    ++(ec == boost::asio::error::operation_aborted ? aborted : expired);
                });
            }
        } catch (const std::bad_alloc&) {
            refused = true;
        }
        for (std::size_t i = 0; i != made; ++i)
            if (random() % 2)
                cancelled += timers[i].cancel();
            else
                (void)timers[i].rearm_after(upto(5ms));
        context.run();
    }
    BOOST_TEST(refused);
    BOOST_TEST(started > 1000U);
    BOOST_TEST(aborted == cancelled);
    BOOST_TEST(aborted + expired == started);

    // The refused timer can be used as soon as there is memory.
    Timer& last = timers[made - 1];
    last.expires_after(0s);
    last.async_wait([&](error_code ec) { expired += !ec; });
    context.restart();
    context.run();
    BOOST_TEST(aborted + expired == started + 1);
    while (made != 0)
        timers[--made].~Timer();
}

BOOST_AUTO_TEST_CASE(P8_without_memory_an_alarm_is_refused_and_the_others_are_armed) {
    constexpr std::size_t most = 1'000'000;
    using function = void (*)();
    using alarm_type = pawl::alarm<function>;
    static std::size_t calls = 0;
    boost::asio::io_context context;
    const std::unique_ptr<std::byte[]> room(new std::byte[most * sizeof(alarm_type)]);
    const auto alarms = reinterpret_cast<alarm_type*>(room.get());
    std::size_t made = 0;
    bool refused = false;
    {
        const limit_memory limit(4 << 20);
        try {
            for (; made != most; ++made)
                ::new (static_cast<void*>(alarms + made))
                    alarm_type(context, function([] { ++calls; }));
        } catch (const std::bad_alloc&) {
            refused = true;
        }
        for (std::size_t i = 0; i != made; ++i)
            alarms[i].arm_after(1h);
        for (std::size_t i = 0; i != made; ++i)
            alarms[i].arm_after(1ms);
        context.run();
    }
    BOOST_TEST(refused);
    BOOST_TEST(calls == made);
    while (made != 0)
        alarms[--made].~alarm_type();
}

namespace {

/// glibc has room for the first 32 keys in each thread. Pawl's key comes after these.
struct first_keys {
    first_keys() {
        pthread_key_t key;
        for (int i = 0; i != 32; ++i)
            if (pthread_key_create(&key, nullptr) != 0)
                std::abort();
    }
};
[[gnu::init_priority(999)]] const first_keys before_that_of_pawl;

} // namespace

// Without memory a C library cannot register what a thread has to do at its end. glibc ends the process if that is the
// destructor of a thread_local object.
BOOST_AUTO_TEST_CASE(P8_a_thread_without_memory_runs_its_first_waits_and_keeps_nothing) {
    constexpr std::size_t count = 1000;
    std::size_t expired = 0;
    boost::asio::io_context context;
    std::vector<pawl::steady_timer> timers;
    for (std::size_t i = 0; i != count; ++i)
        timers.emplace_back(context, 1ms).async_wait([&](error_code ec) { expired += !ec; });

    std::latch begin(1);
    std::thread runs([&] {
        begin.wait();
        context.run();
    });
    const std::size_t live =
        fault::live_blocks(); // with those of the thread, which libc++ may keep
    {
        const limit_memory limit(0);
        void* taken = nullptr; // a list
        for (std::size_t size = 1 << 20; size >= sizeof(void*); size /= 2)
            while (void* const more = std::malloc(size))
                taken = ::new (more) void*(taken);
        begin.count_down();
        runs.join();
        while (taken)
            std::free(std::exchange(taken, *static_cast<void**>(taken)));
    }
    BOOST_TEST(expired == count);
    BOOST_TEST(live - fault::live_blocks() >= count);
}
