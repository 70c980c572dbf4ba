// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of HiTime, from its own test suite, its text and its defects, replayed on
// binary_wheel. If Pawl's answer differs, both answers are listed below.

#include <pawl/time/binary_wheel.hpp>

#include <pawl/time/tick.hpp>

#include "../support/invariants.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE binary_wheel_vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pawl::time {

struct binary_wheel_probe {
    static unsigned bin(const timer_node& node) {
        return binary_wheel::bin_of(node) - binary_wheel::first_of_time;
    }
};

} // namespace pawl::time

using pawl::time::binary_wheel;
using pawl::time::binary_wheel_probe;
using pawl::time::tick;
using pawl::time::timer_node;
using pawl_test::difference;
using pawl_test::fields;
using pawl_test::test_vector;
using pawl_test::json::array;
using pawl_test::json::value;

namespace {

constexpr auto overdue = "what is due is waited for no longer";
constexpr auto exact = "a timer that is alone is waited for without a stop on the way";
constexpr auto never = "the last tick is never: what is due then does not come, nor does that time";
constexpr difference differences[]{
    {"start_already_expired_goes_to_expiry", 1, "\"max\"", "0", overdue},
    {"bubble_0x0F", 1, "8", "15", exact},
    {"bubble_0x0F", 3, "4", "7", exact},
    {"bubble_0x0F", 5, "2", "3", exact},
    {"wait_is_lower_bound_and_progress", 2, "11", "25", exact},
    {"wait_is_lower_bound_and_progress", 4, "8", "14", exact},
    {"wait_is_lower_bound_and_progress", 6, "4", "6", exact},
    {"elapse_saturates_at_u64_max", 2, "18446744073709551615", "18446744073709551614", never},
    {"largest_u64_deadline", 1, "true", "false", never},
    {"largest_u64_deadline", 2, "\"t\"", "null", never},
};

/// HiTime's interface on top of the wheel. Expired timers that are not yet taken wait in a queue,
/// as in Pawl's service.
class hitime {
public:
    explicit hitime(const test_vector& story) {
        fields config(story.config);
        config.states("tick", {"1 unit"});
        wheel_.emplace(tick_of(config, "start_last"));
        config.end();
    }

    ~hitime() {
        while (timer_node* const node = wheel_->any())
            wheel_->erase(*node);
    }

    static const pawl_test::operations<hitime> operations;

    void invariant() const { pawl_test::check_invariant(*wheel_); }

private:
    static tick tick_of(fields& from, const char* name) {
        return tick{from.get<std::uint64_t>(name)};
    }
    timer_node& timer(fields& step) { return nodes_[step.text("id")]; }

    value create_at(fields& step) {
        if (!nodes_.empty())
            throw pawl_test::bad_vector("'create_at' is for a wheel that has had no timer");
        wheel_.emplace(tick_of(step, "now"));
        return nullptr;
    }

    // --- starting and stopping ---------------------------------------------------------------

    value start(fields& step) {
        file(timer(step), tick_of(step, "when"));
        return nullptr;
    }

    value start_many(fields& step) {
        const auto from = step.get<std::uint64_t>("from");
        const auto to = step.get<std::uint64_t>("to");
        const bool reverse = step.flag("reverse");
        for (std::uint64_t i = from; i <= to; ++i) {
            const std::uint64_t when = reverse ? to - (i - from) : i;
            file(nodes_["w" + std::to_string(when)], tick{when});
        }
        return nullptr;
    }

    value start_range(fields& step) {
        restart(timer(step), pawl::time::best_in_range(wheel_->now(), tick_of(step, "min"),
                                                       tick_of(step, "max")));
        return nullptr;
    }

    value touch(fields& step) {
        restart(timer(step), tick_of(step, "when"));
        return nullptr;
    }

    value stop(fields& step) {
        timer_node& node = timer(step);
        std::erase(queue_, &node);
        if (node.filed())
            wheel_->erase(node);
        return nullptr;
    }

    value when(fields& step) { return timer(step).due.count(); }

    // --- expiring ----------------------------------------------------------------------------

    value timeout(fields& step) { return expire(tick_of(step, "now")); }

    value timeout_elapse(fields& step) {
        const std::uint64_t now = wheel_->now().count();
        return expire(tick{now + std::min(step.get<std::uint64_t>("delta"), ~now)});
    }

    /// All running timers expire, whatever their due times.
    value expire_all(fields&) {
        binary_wheel::detached set(*wheel_);
        wheel_->detach_all(set);
        while (timer_node* const node = set.pop())
            queue_.push_back(node);
        return nullptr;
    }

    /// A timer that is filed as due comes at the next expire(); the tick of that call does not
    /// matter.
    value next(fields&) { return take_next(); }

    value drain(fields&) {
        array all;
        for (value id = take_next(); !id.is_null(); id = take_next())
            all.push_back(id);
        return all;
    }

    value run_following_waits(fields&) {
        array waits;
        while (wheel_->next_wake() != tick::never()) {
            const tick wake = wheel_->next_wake();
            waits.push_back(wake.count() - wheel_->now().count());
            (void)expire(wake);
        }
        return waits;
    }

    // --- asking ------------------------------------------------------------------------------

    value get_wait(fields&) { return wait(wheel_->now()); }
    value get_wait_with(fields& step) { return wait(tick_of(step, "now")); }
    value get_last(fields&) { return wheel_->now().count(); }
    value count_expired(fields&) { return queue_.size(); }

    value count_bin(fields& step) {
        const auto bin = step.get<unsigned>("bin");
        return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& each) {
            return each.second.filed() && binary_wheel_probe::bin(each.second) == bin;
        });
    }

    // -----------------------------------------------------------------------------------------

    /// Does nothing if the timer is running or is in the queue.
    void file(timer_node& node, tick due) {
        if (!node.filed() && std::find(queue_.begin(), queue_.end(), &node) == queue_.end())
            wheel_->insert(node, due);
    }

    void restart(timer_node& node, tick due) {
        if (node.filed()) {
            wheel_->rearm(node, due);
            return;
        }
        std::erase(queue_, &node);
        wheel_->insert(node, due);
    }

    /// Returns whether a timer has expired.
    bool expire(tick now) {
        std::array<timer_node*, 3> out{};
        for (bool more = true; more;) {
            const pawl::time::expire_result result = wheel_->expire(now, out);
            queue_.insert(queue_.end(), out.begin(),
                          out.begin() + static_cast<std::ptrdiff_t>(result.emitted));
            more = result.more;
        }
        return !queue_.empty();
    }

    value take_next() {
        if (queue_.empty() && !expire(wheel_->now()))
            return nullptr;
        const timer_node* const node = queue_.front();
        queue_.pop_front();
        const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                                     [&](const auto& each) { return &each.second == node; });
        return value(at->first);
    }

    /// Like Pawl's service, which does not sleep while its queue is not empty.
    value wait(tick now) const {
        if (!queue_.empty())
            return 0;
        const tick wake = wheel_->next_wake();
        if (wake == tick::never())
            return "max";
        return wake.count() - std::min(wake.count(), now.count());
    }

    std::optional<binary_wheel> wheel_;
    std::map<std::string, timer_node> nodes_;
    std::deque<timer_node*> queue_;
};

const pawl_test::operations<hitime> hitime::operations{
    {"create_at", &hitime::create_at},
    {"start", &hitime::start},
    {"start_many", &hitime::start_many},
    {"start_range", &hitime::start_range},
    {"touch", &hitime::touch},
    {"stop", &hitime::stop},
    {"when", &hitime::when},
    {"timeout", &hitime::timeout},
    {"timeout_elapse", &hitime::timeout_elapse},
    {"expire_all", &hitime::expire_all},
    {"next", &hitime::next},
    {"drain", &hitime::drain},
    {"run_following_waits", &hitime::run_following_waits},
    {"get_wait", &hitime::get_wait},
    {"get_wait_le", &hitime::get_wait},
    {"get_wait_with", &hitime::get_wait_with},
    {"get_last", &hitime::get_last},
    {"count_expired", &hitime::count_expired},
    {"count_bin", &hitime::count_bin},
    {"start {id} at {when}", &hitime::start},
    {"touch {id} at {when}", &hitime::touch},
    {"stop {id}", &hitime::stop},
    {"timeout {now}", &hitime::timeout},
};

const std::vector<test_vector> stories = pawl_test::stories_about("hitime");

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told, boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<hitime>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_difference_and_every_operation_belongs_to_a_story) {
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::not_in_stories<hitime>(stories, differences) == "");
}
