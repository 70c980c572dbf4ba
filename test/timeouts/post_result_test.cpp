// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   How a handler gets the result of an operation that was not even started: as by asio::post()
//   through the executor of the I/O object, and then on its own executor.

#include <pawl/detail/limit/post_result.hpp>

#define BOOST_TEST_MODULE post_result
#include <boost/test/unit_test.hpp>

#include "support/archetypes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/error_code.hpp>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::detail::post_result;
using pawl_test::counting_allocator;

struct fixture {
    asio::io_context io;
    asio::io_context other;
    pawl_test::allocation_log book;
    std::shared_ptr<int> calls = std::make_shared<int>(0); // use count: living handlers
};

BOOST_FIXTURE_TEST_SUITE(posted, fixture)

BOOST_AUTO_TEST_CASE(a_handler_is_told_later_and_once) {
    error_code told;
    std::string text;
    post_result(
        io.get_executor(),
        [&, move_only = std::make_unique<int>(1)](error_code ec, std::string s) {
            BOOST_TEST(io.get_executor().running_in_this_thread());
            ++*calls;
            told = ec;
            text = std::move(s);
        },
        error_code(asio::error::timed_out), std::string("result"));
    BOOST_TEST(*calls == 0);
    BOOST_TEST(io.run() == 1U);
    BOOST_TEST(*calls == 1);
    BOOST_TEST(told == asio::error::timed_out);
    BOOST_TEST(text == "result");
}

BOOST_AUTO_TEST_CASE(a_handler_is_invoked_on_its_own_executor) {
    const auto strand = asio::make_strand(asio::any_io_executor(other.get_executor()));
    post_result(asio::any_io_executor(io.get_executor()),
                asio::bind_executor(strand,
                                    [&](int) {
                                        BOOST_TEST(strand.running_in_this_thread());
                                        ++*calls;
                                    }),
                1);
    BOOST_TEST(other.poll() == 0U); // it is queued,
    BOOST_TEST(!other.stopped());   // and there is work until it has arrived
    io.run();
    BOOST_TEST(*calls == 0);
    other.run();
    BOOST_TEST(*calls == 1);
}

BOOST_AUTO_TEST_CASE(P8_memory_is_the_handlers_and_is_free_when_it_is_invoked) {
    post_result(io.get_executor(),
                asio::bind_executor(other.get_executor(),
                                    asio::bind_allocator(counting_allocator<void>(book),
                                                         [&](error_code) {
                                                             ++*calls;
                                                             BOOST_TEST(book.live() == 0U);
                                                         })),
                error_code());
    BOOST_TEST(book.live() == 2U);
    io.run();
    BOOST_TEST(book.live() == 2U);
    other.run();
    BOOST_TEST(*calls == 1);
    BOOST_TEST(book.allocations == 3U);
}

BOOST_AUTO_TEST_CASE(P10_a_context_that_ends_first_destroys_the_handler) {
    for (const bool on_the_second_way : {false, true}) {
        std::optional<asio::io_context> first(std::in_place);
        std::optional<asio::io_context> second(std::in_place);
        post_result(first->get_executor(),
                    asio::bind_executor(second->get_executor(),
                                        asio::bind_allocator(counting_allocator<void>(book),
                                                             [&, c = calls](int) { ++*c; })),
                    1);
        BOOST_TEST(calls.use_count() == 2);
        if (on_the_second_way) {
            first->run();
            second.reset();
        } else {
            first.reset();
        }
        BOOST_TEST(calls.use_count() == 1);
        BOOST_TEST(book.live() == 0U);
    }
    BOOST_TEST(*calls == 0);
}

BOOST_AUTO_TEST_CASE(without_memory_the_handler_is_destroyed_and_nothing_is_left) {
    const auto post = [&] {
        post_result(io.get_executor(),
                    asio::bind_executor(other.get_executor(),
                                        asio::bind_allocator(counting_allocator<void>(book),
                                                             [&, c = calls](int) { ++*c; })),
                    1);
    };
    for (book.most = 0; book.most != 2; ++book.most) {
        BOOST_CHECK_THROW(post(), std::bad_alloc);
        BOOST_TEST(calls.use_count() == 1);
        BOOST_TEST(book.live() == 0U);
        book = {.most = book.most};
    }
    post();
    BOOST_CHECK_THROW(io.run(), std::bad_alloc); // thrown on the way to the handler's own executor
    BOOST_TEST(calls.use_count() == 1);
    BOOST_TEST(book.live() == 0U);
    BOOST_TEST(*calls == 0);
}

BOOST_AUTO_TEST_CASE(P9_what_could_not_be_posted_does_not_stop_the_context) {
    book.most = 1;
    BOOST_CHECK_THROW(
        post_result(io.get_executor(),
                    asio::bind_allocator(counting_allocator<void>(book), [](error_code) {}),
                    error_code()),
        std::bad_alloc);
    asio::post(io, [&] { ++*calls; });
    io.run();
    BOOST_TEST(*calls == 1);
}

BOOST_AUTO_TEST_CASE(a_handler_without_an_executor_takes_one_unit) {
    post_result(
        asio::require(io.get_executor(), asio::execution::blocking.never), [&](int) { ++*calls; },
        1);
    BOOST_TEST(io.run_one() == 1U);
    BOOST_TEST(*calls == 1);
}

BOOST_AUTO_TEST_CASE(strands_are_kept_on_both_ways) {
    const auto first = asio::make_strand(io);
    const auto second = asio::make_strand(other);
    post_result(first,
                asio::bind_executor(
                    second, asio::bind_allocator(counting_allocator<void>(book),
                                                 [&](int) {
                                                     BOOST_TEST(second.running_in_this_thread());
                                                     ++*calls;
                                                 })),
                1);
    asio::post(first, [&] { BOOST_TEST(*calls == 0); });
    io.run();
    other.run();
    BOOST_TEST(*calls == 1);
    BOOST_TEST(book.live() == 0U);
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_handler_reaches_the_context) {
    post_result(
        io.get_executor(), [](int i) { throw i; }, 7);
    BOOST_CHECK_THROW(io.run(), int);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
