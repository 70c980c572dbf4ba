// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "timeout_workloads.hpp"

#include "timeout_operations.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <deque>
#include <type_traits>

namespace bench {

namespace {

constexpr std::size_t warm_up = 1000;

/// The pending timeouts of the other connections, with the same library.
template <class Way>
class other_connections {
    using timer =
        std::conditional_t<std::is_same_v<Way, asio_or> || std::is_same_v<Way, asio_by_hand>,
                           asio::steady_timer, pawl::steady_timer>;

public:
    other_connections(asio::io_context& io, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            timers_.emplace_back(io, 2 * limit);
            timers_.back().async_wait([](const error_code&) {});
        }
    }

private:
    std::deque<timer> timers_;
};

template <class Way, class Operation>
asio::awaitable<void> connection(std::size_t operations, double& elapsed_ns, checksum& sum) {
    const auto ex = co_await asio::this_coro::executor;
    Operation op(ex);
    caller<Way> call(ex);
    for (std::size_t i = 0; i < warm_up; ++i)
        co_await call(op);

    const stopwatch<thread_cpu> watch;
    for (std::size_t i = 0; i < operations; ++i) {
        sum.ids += co_await call(op);
        ++sum.cut_short; // the timeout
    }
    elapsed_ns = watch.elapsed_ns();
}

template <class Way, class Operation>
sample run(const plan& what) {
    asio::io_context io;
    checksum sum;
    double elapsed_ns = 0;
    {
        const other_connections<Way> others(io, what.size - 1);
        asio::co_spawn(io, connection<Way, Operation>(what.operations, elapsed_ns, sum),
                       [&io](std::exception_ptr failure) {
                           io.stop();
                           if (failure)
                               std::rethrow_exception(failure);
                       });
        io.run();
    }
    return {elapsed_ns / static_cast<double>(what.operations), sum, {}};
}

template <class Operation>
std::vector<variant> variants() {
    return {{"asio_or", run<asio_or, Operation>},
            {"by_hand", run<asio_by_hand, Operation>},
            {"bare", run<bare, Operation>},
            {"pawl", run<pawl_timeout, Operation>},
            {"pawl+timer", run<pawl_own_timer, Operation>},
            {"pawl_coro", run<pawl_coroutine, Operation>}};
}

} // namespace

std::vector<variant> posted_operation_variants() { return variants<posted_operation>(); }
std::vector<variant> empty_read_variants() { return variants<empty_read>(); }
std::vector<variant> ready_read_variants() { return variants<ready_read>(); }

} // namespace bench
