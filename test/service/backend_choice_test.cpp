// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Timers on different backends in one context: each type has a service of its own, and functions
// for the context reach all of them.

#define BOOST_TEST_MODULE backend_choice
#include <pawl/compact_timer.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;

using compact_manual_timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<manual_clock>>>;

BOOST_AUTO_TEST_CASE(each_timer_type_has_options_of_its_own) {
    asio::io_context context;
    pawl::options o;
    o.precision = 20ms;
    pawl::make_timer_service<pawl::compact_timer>(context, o);
    o.precision = 5ms;
    pawl::make_timer_service<pawl::steady_timer>(context, o);
    BOOST_CHECK_THROW(pawl::make_timer_service<pawl::compact_timer>(context, o),
                      asio::service_already_exists);
    BOOST_CHECK_THROW(pawl::make_timer_service<std::chrono::steady_clock>(context, o),
                      asio::service_already_exists); // with the service of steady_timer

    int calls = 0;
    pawl::compact_timer compact(context, 1ms);
    pawl::steady_timer steady(context, 1ms);
    compact.async_wait([&](const error_code& ec) { calls += !ec; });
    steady.async_wait([&](const error_code& ec) { calls += !ec; });
    context.run();
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(the_clock_stops_at_the_deadlines_of_every_backend) {
    asio::io_context context;
    compact_manual_timer compact(context, 3s);
    pawl::manual_timer wheel(context, 2s);
    std::string order;
    compact.async_wait([&](const error_code&) { order += 'c'; });
    wheel.async_wait([&](const error_code&) { order += 'w'; });

    BOOST_TEST((manual_clock::advance_to_next(context) == 2s));
    context.poll();
    BOOST_TEST(order == "w");
    BOOST_TEST((manual_clock::advance_to_next(context) == 1s));
    BOOST_TEST((manual_clock::advance_to_next(context) == 0s)); // the handler has not started
    context.restart();
    context.poll();
    BOOST_TEST(order == "wc");
    BOOST_TEST((manual_clock::advance_to_next(context) == 0s)); // nothing is pending
}

BOOST_AUTO_TEST_CASE(expire_all_reaches_every_backend) {
    asio::io_context context;
    compact_manual_timer compact(context, 3s);
    pawl::manual_timer wheel(context, 2s);
    int calls = 0;
    compact.async_wait([&](const error_code& ec) { calls += !ec; });
    wheel.async_wait([&](const error_code& ec) { calls += !ec; });
    BOOST_TEST(pawl::expire_all(context) == 2U);
    context.run();
    BOOST_TEST(calls == 2);
}

/// Like a timer service, for the registry.
struct listed final : pawl::detail::registered_service {
    std::size_t expire_all(const error_code&, pawl::detail::wait_ending) override { return 0; }
    std::size_t clock_moved() override { return 0; }
#ifdef PAWL_VIRTUAL_TIME
    void time_goes_on() override {}
#endif
    void watch(const std::shared_ptr<pawl::detail::context_watcher>&) override {}
    description describe() const noexcept override { return {"", "", 0}; }
    std::vector<pawl::detail::observed_shard*> observed_shards() const override { return {}; }
    const void* clock() const noexcept override { return this; }
};

// Asio may make two at once, and destroys one of them, which was never added.
BOOST_AUTO_TEST_CASE(a_service_that_is_gone_is_not_reached_and_all_others_are) {
    asio::io_context context;
    auto& registry = asio::use_service<pawl::detail::service_registry>(context);
    listed first, second, third, never_added;
    const auto reached = [&] {
        std::vector<pawl::detail::registered_service*> all;
        registry.for_each([&](pawl::detail::registered_service& s) { all.push_back(&s); });
        return all;
    };
    using these = std::vector<pawl::detail::registered_service*>;
    for (listed* s : {&first, &second, &third, &second}) // once is enough
        registry.add(*s);

    BOOST_CHECK((reached() == these{&third, &second, &first}));
    registry.remove(never_added);
    BOOST_CHECK((reached() == these{&third, &second, &first}));
    registry.remove(second);
    BOOST_CHECK((reached() == these{&third, &first}));
    registry.remove(first);
    BOOST_CHECK((reached() == these{&third}));
    registry.remove(third);
    BOOST_CHECK(reached().empty());
}

BOOST_AUTO_TEST_CASE(a_program_that_has_begun_with_virtual_time_gets_no_other_timers) {
    const auto before = pawl::detail::time_of_program.exchange(
        pawl::detail::time_kind::virtual_time); // as another translation unit does
    asio::io_context context;
    BOOST_CHECK_THROW(pawl::steady_timer{context}, std::logic_error);
    pawl::detail::time_of_program = before;
    BOOST_CHECK_NO_THROW(pawl::steady_timer{context});
}

template <class Timer>
concept can_be_expired = requires(asio::io_context& c) { pawl::expire_all<Timer>(c); };

static_assert(can_be_expired<pawl::steady_timer>);
static_assert(!can_be_expired<asio::steady_timer>, "it would end those of Pawl");

BOOST_AUTO_TEST_CASE(expire_all_of_a_timer_type_reaches_no_other) {
    asio::io_context context;
    BOOST_TEST(pawl::expire_all<pawl::compact_timer>(context) == 0U);
    pawl::options o;
    o.precision = 20ms;
    pawl::make_timer_service<pawl::compact_timer>(context, o); // expire_all() has not made it

    pawl::compact_timer compact(context, 1h);
    pawl::steady_timer steady(context, 1h);
    std::string calls;
    compact.async_wait([&](const error_code& ec) { calls += ec ? "C" : "c"; });
    steady.async_wait([&](const error_code& ec) { calls += ec ? "S" : "s"; });
    BOOST_TEST(pawl::expire_all<pawl::compact_timer>(context, asio::error::shut_down) == 1U);
    context.poll();
    BOOST_TEST(calls == "C");
    BOOST_TEST(pawl::expire_all<pawl::steady_timer>(context) == 1U);
    context.run();
    BOOST_TEST(calls == "Cs");
}

} // namespace
