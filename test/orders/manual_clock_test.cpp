// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of manual_clock is needed: a thread that sees the time also sees everything
// before the clock was moved there. See support/explored.hpp. Each thread moves the clock through a
// context of its own, because the mutex of a shared context would do the clock's part.

#define BOOST_TEST_MODULE manual_clock_orders

#include <pawl/manual_clock.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"

#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

using explored::data;
using explored::execution;
using pawl::manual_clock;
using namespace std::chrono_literals;

namespace {

constexpr manual_clock::time_point soon(2ns);

/// A service whose only wait is due soon.
class service_with_a_wait final : public pawl::detail::registered_service_on<manual_clock> {
public:
    explicit service_with_a_wait(boost::asio::execution_context& context) {
        boost::asio::use_service<pawl::detail::service_registry>(context).add(*this);
    }

    std::size_t expire_all(const boost::system::error_code&, pawl::detail::wait_ending) override {
        return 0;
    }
    std::size_t clock_moved() override { return manual_clock::now() >= soon ? 1 : 0; }
    void watch(const std::shared_ptr<pawl::detail::context_watcher>&) override {}
    [[nodiscard]] description describe() const noexcept override {
        return {"manual_clock", "none", 0};
    }
    [[nodiscard]] std::vector<pawl::detail::observed_shard*> observed_shards() const override {
        return {};
    }
    [[nodiscard]] manual_clock::time_point next_wake() const override { return soon; }
    [[nodiscard]] std::size_t due_count() const override { return 0; }
};

const std::vector<orders::named_scenario> scenarios{
    {"the time is read while another thread advances",
     [](execution& e) {
         boost::asio::execution_context context;
         data<int> done{0};
         e.together(
             [&] {
                 done.write(1);
                 manual_clock::advance(context, 2ns);
             },
             [&] {
                 if (manual_clock::now() >= soon)
                     (void)done.read();
             });
     }},
    {"a thread waits until another one advances",
     [](execution& e) {
         boost::asio::execution_context context;
         data<int> done{0};
         e.together(
             [&] {
                 done.write(1);
                 manual_clock::advance(context, 2ns);
             },
             [&] {
                 manual_clock::wait_until(soon);
                 (void)done.read();
             });
     }},
    {"the time is read while another thread advances to the next deadline",
     [](execution& e) {
         boost::asio::execution_context context;
         const service_with_a_wait service(context);
         data<int> done{0};
         e.together(
             [&] {
                 done.write(1);
                 manual_clock::advance_to_next(context);
             },
             [&] {
                 if (manual_clock::now() >= soon)
                     (void)done.read();
             });
     }},
    {"two threads advance, and a third one sees what both have done",
     [](execution& e) {
         boost::asio::execution_context one;
         boost::asio::execution_context other;
         data<int> by_one{0};
         data<int> by_other{0};
         e.together(
             [&] {
                 by_one.write(1);
                 manual_clock::advance(one, 1ns);
             },
             [&] {
                 by_other.write(1);
                 manual_clock::advance(other, 1ns);
             },
             [&] {
                 manual_clock::wait_until(soon);
                 (void)by_one.read();
                 (void)by_other.read();
             });
     }},
    {"a thread advances while another one advances to the next deadline",
     [](execution& e) {
         boost::asio::execution_context one;
         boost::asio::execution_context other;
         const service_with_a_wait service(other);
         e.together([&] { manual_clock::advance(one, 1ns); },
                    [&] {
                        const auto by = manual_clock::advance_to_next(other);
                        e.require(by <= 3ns && manual_clock::now() >= soon,
                                  "the clock stands before the deadline");
                    });
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(the_clock_hands_over_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_the_clock_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
