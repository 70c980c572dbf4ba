// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The native executors of a context: handlers on them are invoked without a hand-over.

#define BOOST_TEST_MODULE native_executor
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"

#include <pawl/detail/service/native_executor.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>

namespace asio = boost::asio;
using pawl::detail::find_native;
using pawl::detail::runs_natively;

namespace {

/// Like Asio's, except for its name: it could do anything.
struct derived : asio::io_context::executor_type {
    using default_completion_token_type = asio::deferred_t;
    explicit derived(const asio::io_context::executor_type& ex)
        : asio::io_context::executor_type(ex) {}
};

template <class Executor, class Context>
void check(const Executor& ex, Context& context, const asio::execution_context& other) {
    BOOST_TEST(runs_natively(ex, context));
    BOOST_TEST(find_native(ex, context) != nullptr);
    BOOST_TEST(!runs_natively(ex, other));
    BOOST_TEST(find_native(ex, other) == nullptr);
}

} // namespace

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(an_executor_with_a_default_token_is_as_native_as_without) {
    asio::io_context context;
    asio::io_context other;
    check(context.get_executor(), context, other);
    check(asio::any_io_executor(context.get_executor()), context, other);

    const auto on_any = asio::as_tuple(asio::use_awaitable)
                            .as_default_on(pawl::steady_timer(context))
                            .get_executor();
    static_assert(!std::is_same_v<decltype(on_any), const asio::any_io_executor>);
    check(on_any, context, other);
    check(asio::deferred_t::executor_with_default<asio::io_context::executor_type>(
              context.get_executor()),
          context, other);

    asio::thread_pool pool(1);
    check(asio::use_awaitable_t<>::executor_with_default<asio::thread_pool::executor_type>(
              pool.get_executor()),
          pool, context);
}

BOOST_AUTO_TEST_CASE(an_executor_that_only_looks_like_one_is_not) {
    asio::io_context context;
    BOOST_TEST(!runs_natively(derived(context.get_executor()), context));
    BOOST_TEST(!runs_natively(asio::make_strand(context), context));
    BOOST_TEST((find_native(asio::make_strand(context), context) !=
                nullptr)); // the strand of a native executor
    using strand = asio::strand<asio::io_context::executor_type>;
    const asio::deferred_t::executor_with_default<strand> in_strand(asio::make_strand(context));
    BOOST_TEST(!runs_natively(in_strand, context));
}
