// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// The stories told about HiTime, from its own test suite, its text and its defects, replayed on
// binary_wheel. Where Pawl promises something else, the answer that Pawl gives is listed below.

#include <pawl/time/binary_wheel.hpp>

#include <pawl/time/slack.hpp>

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
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

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
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

/// Where Pawl answers something else: by story and step.
struct difference {
    const char* returns;
    const char* reason;
};
constexpr auto exact = "a timer that is alone is waited for without a stop on the way";
constexpr auto never = "the last tick is never: what is due then does not come, nor does that time";
const std::map<std::pair<std::string, std::size_t>, difference> differences{
    {{"start_already_expired_goes_to_expiry", 1}, {"0", "what is due is waited for no longer"}},
    {{"bubble_0x0F", 1}, {"15", exact}},
    {{"bubble_0x0F", 3}, {"7", exact}},
    {{"bubble_0x0F", 5}, {"3", exact}},
    {{"wait_is_lower_bound_and_progress", 2}, {"25", exact}},
    {{"wait_is_lower_bound_and_progress", 4}, {"14", exact}},
    {{"wait_is_lower_bound_and_progress", 6}, {"6", exact}},
    {{"elapse_saturates_at_u64_max", 2}, {"18446744073709551614", never}},
    {{"largest_u64_deadline", 1}, {"false", never}},
    {{"largest_u64_deadline", 2}, {"null", never}},
};

/// HiTime's interface on top of the wheel. What has expired and is not yet taken waits in a queue,
/// as it does in Pawl's service.
class hitime {
public:
    explicit hitime(const object& config)
        : wheel_(std::in_place, tick{number(config.at("start_last"))}) {}

    ~hitime() {
        while (timer_node* const node = wheel_->any())
            wheel_->erase(*node);
    }

    value run(const object& step) {
        const std::string op = text(step, "op");
        if (op == "create_at") {
            wheel_.emplace(tick{number(step.at("now"))});
        } else if (op == "start") {
            if (timer_node& node = timer(step); !node.filed() && !is_queued(node))
                wheel_->insert(node, tick{number(step.at("when"))});
        } else if (op == "touch") {
            start(timer(step), tick{number(step.at("when"))});
        } else if (op == "start_range") {
            start(timer(step),
                  pawl::time::best_in_range(wheel_->now(), tick{number(step.at("min"))},
                                            tick{number(step.at("max"))}));
        } else if (op == "start_many") {
            start_many(step);
        } else if (op == "stop") {
            stop(timer(step));
        } else if (op == "when") {
            return timer(step).due.count();
        } else if (op == "timeout") {
            return expire(tick{number(step.at("now"))});
        } else if (op == "timeout_elapse") {
            const std::uint64_t now = wheel_->now().count();
            return expire(tick{now + std::min(number(step.at("delta")), ~now)});
        } else if (op == "next") {
            return next();
        } else if (op == "drain") {
            array all;
            for (value id = next(); !id.is_null(); id = next())
                all.push_back(id);
            return all;
        } else if (op == "run_following_waits") {
            array waits;
            for (value left = wait(wheel_->now()); left.is_number(); left = wait(wheel_->now())) {
                waits.push_back(left);
                (void)expire(wheel_->next_wake());
            }
            return waits;
        } else if (op == "get_wait" || op == "get_wait_le") {
            return wait(wheel_->now());
        } else if (op == "get_wait_with") {
            return wait(tick{number(step.at("now"))});
        } else if (op == "get_last") {
            return wheel_->now().count();
        } else if (op == "count_expired") {
            return queue_.size();
        } else if (op == "count_bin") {
            return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& each) {
                return each.second.filed() &&
                       binary_wheel_probe::bin(each.second) == number(step.at("bin"));
            });
        } else {
            throw std::runtime_error("no such step: " + op);
        }
        wheel_->invariant();
        return nullptr;
    }

private:
    static std::uint64_t number(const value& from) { return from.to_number<std::uint64_t>(); }
    static std::string text(const object& step, const char* name) {
        return std::string(step.at(name).as_string());
    }

    timer_node& timer(const object& step) { return nodes_[text(step, "id")]; }

    bool is_queued(const timer_node& node) const {
        return std::find(queue_.begin(), queue_.end(), &node) != queue_.end();
    }

    void stop(timer_node& node) {
        std::erase(queue_, &node);
        if (node.filed())
            wheel_->erase(node);
    }

    void start(timer_node& node, tick due) {
        if (node.filed()) {
            wheel_->rearm(node, due);
            return;
        }
        std::erase(queue_, &node);
        wheel_->insert(node, due);
    }

    void start_many(const object& step) {
        const std::uint64_t from = number(step.at("from"));
        const std::uint64_t to = number(step.at("to"));
        const bool reverse = step.contains("reverse") && step.at("reverse").as_bool();
        for (std::uint64_t i = from; i <= to; ++i) {
            const std::uint64_t when = reverse ? to - (i - from) : i;
            wheel_->insert(nodes_["w" + std::to_string(when)], tick{when});
        }
    }

    /// Whether anything has expired.
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

    /// What is filed as due comes at the next expire(), and needs no other time for it.
    value next() {
        if (queue_.empty() && !expire(wheel_->now()))
            return nullptr;
        const timer_node* const node = queue_.front();
        queue_.pop_front();
        const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                                     [&](const auto& each) { return &each.second == node; });
        return value(at->first);
    }

    value wait(tick now) const {
        const tick wake = wheel_->next_wake();
        if (wake == tick::never())
            return "max";
        return wake.count() - std::min(wake.count(), now.count());
    }

    std::optional<binary_wheel> wheel_;
    std::map<std::string, timer_node> nodes_;
    std::deque<timer_node*> queue_;
};

/// Runs a story. What differs must be listed above, and what is listed must differ.
void check(const pawl_test::test_vector& story) {
    hitime ours(story.config);
    std::set<std::size_t> seen;

    pawl_test::replay(
        story, [&](const object& step) { return ours.run(step); },
        [&](std::size_t step, const std::string& returned, const std::string& expected) {
            const auto at = differences.find({story.name, step});
            BOOST_REQUIRE_MESSAGE(at != differences.end(), "step " << step << " returned "
                                                                   << returned << " instead of "
                                                                   << expected);
            BOOST_TEST(returned == at->second.returns, "step " << step << " returned " << returned
                                                               << ", but " << at->second.reason);
            seen.insert(step);
        });

    for (const auto& [at, is] : differences) {
        if (at.first == story.name)
            BOOST_TEST(seen.contains(at.second), "step " << at.second << " is no longer different");
    }
}

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told,
                     boost::unit_test::data::make(pawl_test::load_vectors("binary_wheel.json")),
                     story) {
    check(story);
}

BOOST_AUTO_TEST_CASE(every_difference_belongs_to_a_story) {
    const auto stories = pawl_test::load_vectors("binary_wheel.json");
    BOOST_TEST(!stories.empty());
    for (const auto& [at, is] : differences) {
        BOOST_TEST(std::any_of(stories.begin(), stories.end(),
                               [&](const auto& story) { return story.name == at.first; }));
    }
}
