// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "pattern_workloads.hpp"

#include <pawl/hedge.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

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

} // namespace

std::vector<variant> pattern_variants() {
    return {{"post", run<bare>},
            {"retry", run<retried>},
            {"retry_limits", run<retried_in_limits>},
            {"hedge", run<hedged>},
            {"acquire", run<acquired>}};
}

} // namespace bench
