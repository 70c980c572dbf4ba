// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "timeout_workloads.hpp"

#include "timeout_operations.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <deque>
#include <type_traits>

namespace bench {

namespace {

constexpr std::size_t warm_up = 1000;

/// The pending timeouts of the other connections, with the same library.
template <class Way>
class other_connections {
    using timer =
        std::conditional_t<requires { Way::of_asio; }, asio::steady_timer, pawl::steady_timer>;

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
    std::vector<variant> all{{"asio_or", run<asio_or, Operation>},
                             {"by_hand", run<asio_by_hand, Operation>},
                             {"bare", run<bare, Operation>},
                             {"pawl", run<pawl_timeout, Operation>},
                             {"pawl+timer", run<pawl_own_timer, Operation>},
                             {"pawl_coro", run<pawl_coroutine, Operation>}};
#if BOOST_VERSION >= 108600
    all.push_back({"cancel_after", run<asio_cancel_after, Operation>});
#endif
    return all;
}

/// Operations of `count` connections, each under a limit that it keeps.
template <class Way>
class limited_operations {
public:
    limited_operations(asio::io_context& io, std::size_t count) : op_(io.get_executor()) {
        for (std::size_t i = 0; i < count; ++i)
            callers_.emplace_back(io.get_executor());
    }

    /// @param handler is called as handler()
    template <class Handler>
    void start(std::size_t connection, Handler handler) {
        callers_[connection].start(op_, [this, handler](const error_code&, std::size_t n) mutable {
            sum.ids += n;
            ++sum.cut_short; // the timeout
            handler();
        });
    }

    checksum sum;

private:
    posted_operation op_;
    std::deque<caller<Way>> callers_;
};

template <class Way>
sample limits(const plan& what) {
    asio::io_context io;
    const other_connections<Way> others(io, what.size);
    limited_operations<Way> all(io, what.poll_every);
    const auto run = [&](std::size_t operations) {
        for (std::size_t i = 0; i < operations; ++i) {
            const auto connection = i % what.poll_every;
            all.start(connection, [] {});
            if (connection + 1 == what.poll_every)
                io.poll();
        }
        io.poll();
    };
    run(warm_up);

    const stopwatch<thread_cpu> watch;
    run(what.operations);
    return {watch.elapsed_ns() / static_cast<double>(what.operations), all.sum, {}};
}

template <class Way>
sample limits_in_handlers(const plan& what) {
    asio::io_context io;
    const other_connections<Way> others(io, what.size);
    limited_operations<Way> all(io, what.poll_every);
    struct next {
        asio::io_context& io;
        limited_operations<Way>& all;
        std::size_t connection;
        std::size_t& left;
        std::size_t& under_way;

        void operator()() const {
            if (left != 0) {
                --left;
                all.start(connection, *this);
            } else if (--under_way == 0) {
                io.stop();
            }
        }
    };
    std::size_t left = 0;
    std::size_t under_way = 0;
    const auto run = [&](std::size_t operations) {
        left = operations;
        under_way = what.poll_every;
        io.restart();
        for (std::size_t c = 0; c < what.poll_every; ++c)
            asio::post(io, next{io, all, c, left, under_way});
        io.run();
    };
    run(warm_up);

    const stopwatch<thread_cpu> watch;
    run(what.operations);
    return {watch.elapsed_ns() / static_cast<double>(what.operations), all.sum, {}};
}

} // namespace

std::vector<variant> limit_variants() {
    std::vector<variant> all{{"by_hand", limits<asio_by_hand>},
                             {"bare", limits<bare>},
                             {"pawl", limits<pawl_timeout>},
                             {"pawl+timer", limits<pawl_own_timer>}};
#if BOOST_VERSION >= 108600
    all.push_back({"cancel_after", limits<asio_cancel_after>});
#endif
    return all;
}

std::vector<variant> limit_in_handlers_variants() {
    return {{"by_hand", limits_in_handlers<asio_by_hand>},
            {"bare", limits_in_handlers<bare>},
            {"pawl", limits_in_handlers<pawl_timeout>},
            {"pawl+timer", limits_in_handlers<pawl_own_timer>}};
}

std::vector<variant> posted_operation_variants() { return variants<posted_operation>(); }
std::vector<variant> empty_read_variants() { return variants<empty_read>(); }
std::vector<variant> ready_read_variants() { return variants<ready_read>(); }

} // namespace bench
