// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Finds the native executor of an execution context behind a user's executor. With it, units are
///   queued directly on the context, and handlers that belong to the context run without a
///   hand-over.
///
/// Model
///   An `execution_context&` has no executor, and cannot be told of outstanding work. io_context,
///   thread_pool and system_context have native executors; they are found in the executor of a
///   timer, also inside strands and inside any_io_executor. If none is found (a user-defined
///   executor type), the service queues its units through its driver (driver.hpp) and dispatches
///   handlers: slower, with the same results.
#ifndef PAWL_DETAIL_SERVICE_NATIVE_EXECUTOR_HPP
#define PAWL_DETAIL_SERVICE_NATIVE_EXECUTOR_HPP

#include <pawl/detail/service/own_block.hpp>
#include <pawl/detail/service/runner_pool.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace pawl::detail {

template <class T>
concept execution_context_type = std::is_convertible_v<T&, boost::asio::execution_context&>;

/// The execution context of an executor, with properties or of the Networking TS.
template <class Executor>
[[nodiscard]] boost::asio::execution_context& context_of(const Executor& ex) {
    if constexpr (boost::asio::can_query_v<const Executor&, boost::asio::execution::context_t>)
        return boost::asio::query(ex, boost::asio::execution::context);
    else
        return ex.context();
}

/// The queued unit. Destroyed without being run when its context shuts down; the shard is closed by
/// then.
struct runner {
    runner_token* token;

    void operator()() const { token->target->run(*token); }
};

/// Operations on a context of known type.
struct native_context {
    /// Its place in native_contexts.
    std::size_t index;
    /// Queues a unit.
    void (*enqueue)(boost::asio::execution_context&, runner_token&);
    /// Whether this thread runs the context. Null if unknown.
    bool (*runs_here)(boost::asio::execution_context&);
    /// Report outstanding work to the context, in addition to what Asio reports. Null if they
    /// cannot, as with BOOST_ASIO_NO_TS_EXECUTORS.
    void (*work_started)(boost::asio::execution_context&);
    void (*work_finished)(boost::asio::execution_context&);
    /// Whether the context counts a set Asio timer as work. On Windows only io_context does: other
    /// contexts use a separate I/O completion port, which counts it and has a thread.
    bool counts_timers;
    /// Whether a handler may run the context: it is an io_context.
    bool may_nest;
    /// Whether stop() was called. Null if the context cannot be asked.
    bool (*stopped)(boost::asio::execution_context&);
};

template <class Executor>
void enqueue(const Executor& ex, runner_token& token) {
    namespace execution = boost::asio::execution;
    // Not as a continuation, which would wait for the current handler to end.
    boost::asio::prefer(
        boost::asio::require(ex, execution::blocking.never),
        execution::allocator(own_block_allocator<void, runner_token::block_type>(token.block)))
        .execute(runner{&token});
}

template <class Context>
void enqueue_on(boost::asio::execution_context& context, runner_token& token) {
    if constexpr (std::is_same_v<Context, boost::asio::system_context>)
        enqueue(boost::asio::system_executor(), token);
    else
        enqueue(static_cast<Context&>(context).get_executor(), token);
}

/// Contexts that count work through a Networking TS executor. system_context has the functions, but
/// does not count; it cannot be asked for its threads.
template <class Context>
concept counts_work = requires(Context& context) {
    context.get_executor().running_in_this_thread();
    context.get_executor().on_work_started();
    context.get_executor().on_work_finished();
};

template <class Context>
[[nodiscard]] constexpr native_context native_context_of() {
    using boost::asio::execution_context;
    native_context native{std::is_same_v<Context, boost::asio::io_context>    ? 0U
                          : std::is_same_v<Context, boost::asio::thread_pool> ? 1U
                                                                              : 2U,
                          &enqueue_on<Context>,
                          nullptr,
                          nullptr,
                          nullptr,
                          true,
                          std::is_same_v<Context, boost::asio::io_context>,
                          nullptr};
    if constexpr (requires(Context& context) { context.stopped(); })
        native.stopped = [](execution_context& context) {
            return static_cast<Context&>(context).stopped();
        };
    if constexpr (requires(Context& context) { context.get_executor().running_in_this_thread(); })
        native.runs_here = [](execution_context& context) {
            return static_cast<Context&>(context).get_executor().running_in_this_thread();
        };
    if constexpr (counts_work<Context>) {
        native.work_started = [](execution_context& context) {
            static_cast<Context&>(context).get_executor().on_work_started();
        };
#if defined(BOOST_ASIO_HAS_IOCP)
        native.counts_timers = std::is_same_v<Context, boost::asio::io_context>;
#endif
        native.work_finished = [](execution_context& context) {
            static_cast<Context&>(context).get_executor().on_work_finished();
        };
    }
    return native;
}

template <class Context>
inline constexpr native_context native_context_for = native_context_of<Context>();

/// All of them, as the module has them that holds the array.
using native_contexts = std::array<const native_context*, 3>;
[[nodiscard]] inline native_contexts all_native_contexts() noexcept {
    return {&native_context_for<boost::asio::io_context>,
            &native_context_for<boost::asio::thread_pool>,
            &native_context_for<boost::asio::system_context>};
}

/// Whether `Executor` is exactly `Inner` with a default completion token, as made by
/// as_default_on().
template <class Executor, class Inner>
concept defaults_on =
    requires {
        typename Executor::default_completion_token_type::template executor_with_default<Inner>;
    } &&
    std::is_same_v<
        Executor,
        typename Executor::default_completion_token_type::template executor_with_default<Inner>>;

/// The operations on `context`; nullptr if its native executor is not found in `ex`.
template <class Executor>
[[nodiscard]] const native_context* find_native(const Executor& ex,
                                                const boost::asio::execution_context& context) {
    using namespace boost::asio;
    // Compared, because a user-defined executor may wrap an executor of another context.
    const auto here = [&](const native_context& native) {
        return &context_of(ex) == &context ? &native : nullptr;
    };

    if constexpr (std::is_same_v<Executor, any_io_executor>) {
        if (const auto* e = ex.template target<io_context::executor_type>())
            return find_native(*e, context);
        if (const auto* e = ex.template target<thread_pool::executor_type>())
            return find_native(*e, context);
        if (const auto* e = ex.template target<system_executor>())
            return find_native(*e, context);
        if (const auto* e = ex.template target<strand<io_context::executor_type>>())
            return find_native(*e, context);
        if (const auto* e = ex.template target<strand<thread_pool::executor_type>>())
            return find_native(*e, context);
        if (const auto* e = ex.template target<strand<any_io_executor>>())
            return find_native(*e, context);
        return nullptr;
    } else if constexpr (std::is_same_v<Executor, io_context::executor_type>) {
        return here(native_context_for<io_context>);
    } else if constexpr (std::is_same_v<Executor, thread_pool::executor_type>) {
        return here(native_context_for<thread_pool>);
    } else if constexpr (std::is_same_v<Executor, system_executor>) {
        return here(native_context_for<system_context>);
    } else if constexpr (defaults_on<Executor, any_io_executor>) {
        return find_native<any_io_executor>(ex, context);
    } else if constexpr (defaults_on<Executor, io_context::executor_type>) {
        return find_native<io_context::executor_type>(ex, context);
    } else if constexpr (defaults_on<Executor, thread_pool::executor_type>) {
        return find_native<thread_pool::executor_type>(ex, context);
    } else if constexpr (requires { ex.get_inner_executor(); }) {
        return find_native(ex.get_inner_executor(), context);
    } else {
        return nullptr;
    }
}

/// Whether the thread that runs `context` may invoke a handler with associated executor `ex`, as
/// dispatch() on `ex` would.
template <class Executor>
[[nodiscard]] bool runs_natively(const Executor& ex,
                                 const boost::asio::execution_context& context) noexcept {
    using namespace boost::asio;
    if constexpr (std::is_same_v<Executor, any_io_executor>) {
        if (const auto* e = ex.template target<io_context::executor_type>())
            return runs_natively(*e, context);
        if (const auto* e = ex.template target<thread_pool::executor_type>())
            return runs_natively(*e, context);
        return ex.template target<system_executor>() != nullptr;
    } else if constexpr (std::is_same_v<Executor, io_context::executor_type> ||
                         std::is_same_v<Executor, thread_pool::executor_type>) {
        return &context_of(ex) == &context;
    } else if constexpr (defaults_on<Executor, any_io_executor>) {
        return runs_natively<any_io_executor>(ex, context);
    } else if constexpr (defaults_on<Executor, io_context::executor_type> ||
                         defaults_on<Executor, thread_pool::executor_type>) {
        return &context_of(ex) == &context;
    } else {
        return std::is_same_v<Executor, system_executor>; // its dispatch() always runs inline
    }
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_NATIVE_EXECUTOR_HPP
