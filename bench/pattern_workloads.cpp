// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "pattern_workloads.hpp"

#include <pawl/expiring_map.hpp>
#include <pawl/heartbeat.hpp>
#include <pawl/hedge.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace bench {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using executor = asio::io_context::executor_type;

/// The operation: one post.
struct posted {
    using executor_type = executor;
    [[nodiscard]] executor get_executor() const noexcept { return ex; }

    template <class Handler>
    void operator()(Handler&& handler) const {
        asio::post(ex, asio::append(std::forward<Handler>(handler), error_code()));
    }
    executor ex;
};

struct bare {
    explicit bare(const executor& e) : ex(e) {}
    template <class Handler>
    void operator()(Handler handler) {
        posted{ex}(std::move(handler));
    }
    executor ex;
};

struct retried : bare {
    using bare::bare;
    [[nodiscard]] auto attempts() const {
        return [op = posted{ex}](pawl::attempt) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code)>(op,
                                                                                   asio::deferred);
        };
    }
    template <class Handler>
    void operator()(Handler handler) {
        pawl::retry(ex, policy, attempts(), std::move(handler));
    }
    pawl::retry_policy policy{};
};

struct retried_in_limits : retried {
    explicit retried_in_limits(const executor& e) : retried(e) {
        policy.attempt_limit = 2s;
        policy.limit = 10s;
        policy.budget = &budget;
    }
    pawl::retry_budget budget;
};

struct hedged : retried {
    using retried::retried;
    template <class Handler>
    void operator()(Handler handler) {
        pawl::hedge(ex, pawl::hedge_policy{30s}, attempts(), std::move(handler));
    }
};

struct acquired {
    explicit acquired(const executor& ex)
        : bucket(ex, {.tokens = 1'000'000'000, .period = 1s, .burst = 1'000'000'000}) {}
    template <class Handler>
    void operator()(Handler handler) {
        bucket.async_acquire(std::move(handler));
    }
    pawl::basic_rate_limiter<std::chrono::steady_clock, executor> bucket;
};

template <class Way>
sample run(const plan& what) {
    asio::io_context io;
    Way start(io.get_executor());
    checksum sum;
    struct next {
        Way& start;
        checksum& sum;
        std::size_t& left;
        void operator()(const error_code& ec) const {
            sum.ids += ec ? 0 : 1;
            if (left == 0)
                return;
            --left;
            start(*this);
        }
    };
    const auto chains = [&](std::size_t operations) {
        std::size_t left = operations;
        io.restart();
        for (std::size_t i = 0; i < what.poll_every; ++i)
            asio::post(io, [&] { next{start, sum, left}(error_code()); });
        io.run();
    };
    chains(1000);

    const stopwatch<thread_cpu> watch;
    chains(what.operations);
    return {watch.elapsed_ns() / static_cast<double>(what.operations), sum, {}};
}

/// A flat map as the expiring one is used.
struct flat_map {
    explicit flat_map(asio::io_context&) {}
    void put(std::uint64_t key, std::size_t value) { map.emplace(key, value); }
    [[nodiscard]] const std::size_t* find(std::uint64_t key) const {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }
    boost::unordered_flat_map<std::uint64_t, std::size_t> map;
};

template <bool RefreshOnUse>
struct expiring {
    explicit expiring(asio::io_context& io)
        : map(io, {.ttl = 1h, .refresh_on_use = RefreshOnUse}) {}
    void put(std::uint64_t key, std::size_t value) { map.insert(key, value); }
    [[nodiscard]] const std::size_t* find(std::uint64_t key) { return map.find(key); }
    pawl::expiring_map<std::uint64_t, std::size_t> map;
};

template <class Map>
sample look_up(const plan& what) {
    asio::io_context io;
    Map map(io);
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> keys(what.size);
    std::generate(keys.begin(), keys.end(), random);
    for (std::size_t i = 0; i < keys.size(); ++i)
        map.put(keys[i], i);
    std::shuffle(keys.begin(), keys.end(), random);
    checksum sum;
    const auto pass = [&] {
        for (const std::uint64_t key : keys)
            sum.ids += *map.find(key) + 1;
    };
    pass();
    const std::size_t passes = what.operations / what.size + 1;
    const stopwatch<thread_cpu> watch;
    for (std::size_t i = 0; i < passes; ++i)
        pass();
    return {watch.elapsed_ns() / static_cast<double>(passes * what.size), sum, {}};
}

/// A read of a byte, marked as life.
template <class Mark>
sample mark_life(const plan& what, Mark mark) {
    checksum sum;
    const stopwatch<thread_cpu> watch;
    for (std::size_t i = 0; i < what.operations; ++i) {
        mark();
        ++sum.ids;
        asm volatile("" : "+r"(sum.ids)::"memory"); // no store is left out
    }
    return {watch.elapsed_ns() / static_cast<double>(what.operations), sum, {}};
}

sample mark_flag(const plan& what) {
    std::atomic<bool> flag{false};
    return mark_life(what, [&] { flag.store(true, std::memory_order_relaxed); });
}
sample mark_heartbeat(const plan& what) {
    asio::io_context io;
    pawl::heartbeat beat(
        io, {.interval = 30s}, [] {}, [] {});
    return mark_life(what, [&] { beat.received(); });
}
sample rearm_timer(const plan& what) {
    asio::io_context io;
    asio::steady_timer timer(io);
    return mark_life(what, [&] { timer.expires_after(30s); });
}

} // namespace

std::vector<variant> lookup_variants() {
    return {{"flat_map", look_up<flat_map>},
            {"expiring_map", look_up<expiring<false>>},
            {"refresh_on_use", look_up<expiring<true>>}};
}

std::vector<variant> life_variants() {
    return {{"asio", rearm_timer}, {"flag", mark_flag}, {"heartbeat", mark_heartbeat}};
}

std::vector<variant> pattern_variants() {
    return {{"post", run<bare>},
            {"retry", run<retried>},
            {"retry_limits", run<retried_in_limits>},
            {"hedge", run<hedged>},
            {"acquire", run<acquired>}};
}

} // namespace bench
