// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The size of a timer, its wait and a context: the tables in doc/performance.md. On 64-bit
//   machines.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE layout
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <ostream>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct handler {
    void operator()(boost::system::error_code) const {}
    std::size_t* unused = nullptr;
};

using pawl::detail::native_executor;
using wait = pawl::detail::wait_handler<handler, native_executor>;
using handle = pawl::detail::timer_handle<pawl::detail::steady_clock,
                                          asio::wait_traits<pawl::detail::steady_clock>>;

constexpr bool is_64_bit = sizeof(void*) == 8;
#ifdef _MSC_VER // which ignores [[no_unique_address]]
constexpr bool empty_members_cost_nothing = false;
#else
constexpr bool empty_members_cost_nothing = true;
#endif

// The bytes of a timer.
static_assert(!is_64_bit || sizeof(pawl::time::timer_node) == 32);
static_assert(!is_64_bit || sizeof(pawl::detail::timer_core) == 32 + 8, "and its newest wait");
static_assert(!is_64_bit || sizeof(handle) == 40 + 8 + 8, "and its dispatcher, and the expiry");
static_assert(sizeof(pawl::steady_timer) == sizeof(handle) + sizeof(asio::any_io_executor));

// And of a wait.
static_assert(!is_64_bit || sizeof(pawl::detail::wait_operation) == 32);
static_assert(!is_64_bit || !empty_members_cost_nothing || sizeof(wait) == 32 + sizeof(handler));
static_assert(sizeof(pawl::detail::due_entry) == sizeof(void*));

// And of the time structure.
static_assert(!is_64_bit || sizeof(pawl::time::hierarchical_wheel) <= 2624);
static_assert(!is_64_bit || sizeof(pawl::time::detail::striped_list) == 192);

} // namespace

// A block has the size that malloc would use anyway: a multiple of 16 bytes, including 8 of
// malloc's own.
BOOST_AUTO_TEST_CASE(a_wait_is_allocated_without_a_byte_that_nobody_uses,
                     *boost::unit_test::enable_if<is_64_bit>()) {
    pawl::detail::wait_allocator<wait> allocator;
    const std::size_t before = counted_new::asked;
    wait* const memory = allocator.allocate(1);

    BOOST_TEST(counted_new::asked - before == sizeof(wait));

    allocator.deallocate(memory, 1);
}

namespace {

struct size {
    std::size_t timers;
    std::size_t bytes; ///< maximum for wheel and lists
};
std::ostream& operator<<(std::ostream& out, const size& s) { return out << s.timers << " nodes"; }

const std::vector<size> sizes{
    {0, 4'500}, {1, 5'300}, {10, 6'800}, {256, 63'000}, {1'000'000, 174'000}};

} // namespace

BOOST_DATA_TEST_CASE(a_wheel_takes_few_bytes_for_few_nodes, boost::unit_test::data::make(sizes),
                     s) {
    const std::size_t before = counted_new::asked;
    const auto wheel = std::make_unique<pawl::time::hierarchical_wheel>();
    if (s.timers != 0)
        wheel->reserve(s.timers);

    BOOST_TEST(counted_new::asked - before <= s.bytes);
}

// All memory of a context for its timers and their waits, including the rest of the service.
BOOST_DATA_TEST_CASE(P8_a_context_with_few_timers_takes_few_bytes,
                     boost::unit_test::data::make(std::vector<size>{
                         {1, 20'000}, {10, 22'500}, {256, 95'000}}),
                     s) {
    asio::io_context context;
    std::vector<pawl::steady_timer> timers;
    timers.reserve(s.timers);
    const std::size_t before = counted_new::asked;

    for (std::size_t i = 0; i != s.timers; ++i) {
        timers.emplace_back(context, 30s);
        timers.back().async_wait(handler());
    }

    BOOST_TEST(counted_new::asked - before <= s.bytes);
}

// After each timer has waited once, all memory for a churn is allocated.
BOOST_AUTO_TEST_CASE(P8_timers_that_are_started_again_and_moved_take_nothing_more_for_the_wheel) {
    asio::io_context context;
    std::vector<pawl::steady_timer> timers;
    const auto start = [&](auto delay) {
        for (std::size_t i = 0; i != timers.size(); ++i) {
            timers[i].expires_after(delay * (i + 1));
            timers[i].async_wait(handler());
        }
        context.poll();
        context.restart();
    };
    for (int i = 0; i != 100; ++i)
        timers.emplace_back(context);
    start(1h);
    start(1h);
    const std::size_t before = counted_new::calls;

    for (int round = 0; round != 10; ++round) {
        start(1min * (10 - round));
        for (auto& t : timers)
            t.rearm_after(1s * (round + 1));
    }

    BOOST_TEST(counted_new::calls == before);
}
