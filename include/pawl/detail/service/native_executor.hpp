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

#include <type_traits>

namespace pawl::detail {

template <class T>
concept execution_context_type = std::is_convertible_v<T&, boost::asio::execution_context&>;

/// What a deduction guide makes of its first argument, an executor or a context.
template <class Where>
using deduced_executor = std::conditional_t<execution_context_type<std::remove_cvref_t<Where>>,
                                            boost::asio::any_io_executor, std::decay_t<Where>>;

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
    /// Queues a unit.
    void (*enqueue)(boost::asio::execution_context&, runner_token&);
    /// Whether this thread runs the context. Null if unknown.
    bool (*runs_here)(boost::asio::execution_context&) = nullptr;
    /// Report outstanding work to the context, in addition to what Asio reports. Null if they
    /// cannot, as with BOOST_ASIO_NO_TS_EXECUTORS.
    void (*work_started)(boost::asio::execution_context&) = nullptr;
    void (*work_finished)(boost::asio::execution_context&) = nullptr;
    /// Whether the context counts a set Asio timer as work. On Windows only io_context does: other
    /// contexts use a separate I/O completion port, which counts it and has a thread.
    bool counts_timers = true;
    /// Whether a handler may run the context: it is an io_context.
    bool may_nest;
    /// Whether stop() was called. Null if the context cannot be asked.
    bool (*stopped)(boost::asio::execution_context&) = nullptr;
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
    native_context native{.enqueue = &enqueue_on<Context>,
                          .may_nest = std::is_same_v<Context, boost::asio::io_context>};
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

/// All of them, as the module has them that makes the object.
struct native_contexts {
    const native_context* of_io_context = &native_context_for<boost::asio::io_context>;
    const native_context* of_thread_pool = &native_context_for<boost::asio::thread_pool>;
    const native_context* of_system = &native_context_for<boost::asio::system_context>;
};

/// Whether `Executor` is `Native`, or exactly that with a default completion token, as made by
/// as_default_on().
template <class Executor, class Native>
concept native_as =
    std::is_same_v<Executor, Native> ||
    std::is_same_v<
        Executor,
        typename Executor::default_completion_token_type::template executor_with_default<Native>>;

/// What a native executor is looked for.
enum class native_use {
    to_queue,  ///< units: also behind a strand
    to_invoke, ///< handlers, as dispatch() would: always by a system executor, never by a strand
};

/// The operations on `context`; nullptr if its native executor is not found in `ex`.
template <native_use Use = native_use::to_queue, class Executor>
[[nodiscard]] const native_context* find_native(const Executor& ex,
                                                const boost::asio::execution_context& context,
                                                const native_contexts& natives = {}) {
    using namespace boost::asio;
    // Compared, because a user-defined executor may wrap an executor of another context. Generic,
    // because others may have no context.
    const auto here = [&](const auto* native) {
        return &context_of(ex) == &context ? native : nullptr;
    };

    if constexpr (native_as<Executor, io_context::executor_type>) {
        return here(natives.of_io_context);
    } else if constexpr (native_as<Executor, thread_pool::executor_type>) {
        return here(natives.of_thread_pool);
    } else if constexpr (std::is_same_v<Executor, system_executor>) {
        return Use == native_use::to_invoke ? natives.of_system : here(natives.of_system);
    } else if constexpr (native_as<Executor, any_io_executor>) {
        const native_context* found = nullptr;
        const auto holds = [&](const auto* inner) {
            if (inner)
                found = find_native<Use>(*inner, context, natives);
            return inner != nullptr;
        };
        (void)(holds(ex.template target<io_context::executor_type>()) ||
               holds(ex.template target<thread_pool::executor_type>()) ||
               holds(ex.template target<system_executor>()) ||
               (Use == native_use::to_queue &&
                (holds(ex.template target<strand<io_context::executor_type>>()) ||
                 holds(ex.template target<strand<thread_pool::executor_type>>()) ||
                 holds(ex.template target<strand<any_io_executor>>()))));
        return found;
    } else if constexpr (Use == native_use::to_queue && requires { ex.get_inner_executor(); }) {
        return find_native<Use>(ex.get_inner_executor(), context, natives);
    } else {
        return nullptr;
    }
}

/// Whether the thread that runs `context` may invoke a handler with associated executor `ex`, as
/// dispatch() on `ex` would.
template <class Executor>
[[nodiscard]] bool runs_natively(const Executor& ex,
                                 const boost::asio::execution_context& context) noexcept {
    return find_native<native_use::to_invoke>(ex, context) != nullptr;
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_NATIVE_EXECUTOR_HPP
