// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Each wheel against the oracle, in lockstep: each call is made on both, with twin nodes, and what
// comes out must be the same, in the same order. How many nodes a wheel emits in a call depends on
// how many it has to move, so the oracle is asked for as many as the wheel has emitted, and then
// follows its position. Whatever has to be known to repeat a failure is the printed seed.

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include "../support/ordered_map_backend.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE backend_differential
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

using pawl::time::binary_wheel;
using pawl::time::expire_result;
using pawl::time::geometry;
using pawl::time::hierarchical_wheel;
using pawl::time::tick;
using pawl::time::timer_node;
using pawl_test::ordered_map_backend;

namespace {

using wheels = boost::mpl::list<hierarchical_wheel, binary_wheel>;

/// A timer, filed in both.
struct twin {
    timer_node wheel;
    timer_node oracle;
    std::size_t index = 0;
};

template <class Wheel>
class pair_of_backends {
public:
    pair_of_backends(std::mt19937_64& random, std::size_t timers)
        : random_(random), shape_(draw_geometry()), now_(draw_start()), wheel_(shape_, tick{now_}),
          oracle_(shape_, tick{now_}), set_(wheel_), oracle_set_(oracle_) {
        for (std::size_t i = 0; i != timers; ++i)
            twins_.push_back(make_twin(i));
    }

    void step() {
        twin& chosen = *twins_[below(twins_.size())];
        const std::uint64_t dice = below(1000);
        if (dice < 900)
            touch(chosen, dice);
        else if (dice < 940)
            move(chosen);
        else if (dice < 997)
            expire(dice < 960);
        else if (dice < 999)
            detach();
        else
            burst();
        check(dice >= 998);
    }

    /// Expires all that can be, and ends with two empty backends.
    void finish() {
        jump_ = ~std::uint64_t{0} - 1;
        while (expire_once(1 + below(300))) {
        }
        for (const auto& each : twins_) {
            if (each->wheel.filed()) {
                wheel_.erase(each->wheel);
                oracle_.erase(each->oracle);
            }
        }
        BOOST_REQUIRE(wheel_.empty());
        wheel_.invariant();
    }

private:
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

    geometry draw_geometry() {
        std::vector<int> bits;
        int sum = 0;
        for (std::size_t levels = 1 + below(6); levels != 0 && sum < 64; --levels) {
            bits.push_back(static_cast<int>(1 + below(below(4) == 0 ? 12 : 7)));
            sum += bits.back();
        }
        return geometry(std::span<const int>(bits));
    }

    /// Somewhere on the line; often just before a power of two, where digits carry.
    std::uint64_t draw_start() {
        const std::uint64_t power = std::uint64_t{1} << below(61);
        return below(2) == 0 ? power - 1 - below(std::min<std::uint64_t>(power, 100)) : power;
    }

    std::unique_ptr<twin> make_twin(std::size_t index) {
        auto made = std::make_unique<twin>();
        made->index = index;
        made->wheel.user = index % 16;
        return made;
    }

    tick draw_due() {
        const std::uint64_t now = now_;
        switch (below(12)) {
        case 0:
            return tick{now - std::min<std::uint64_t>(now, below(50))};
        case 1:
            return below(4) == 0 ? tick::never() : tick{now};
        case 2: {
            const std::uint64_t far = below(std::uint64_t{1} << (1 + below(62)));
            return tick{std::min(now + far, ~std::uint64_t{0} - 2)};
        }
        default:
            return tick{now + below(1 + (std::uint64_t{1} << below(10)))};
        }
    }

    void touch(twin& chosen, std::uint64_t dice) {
        if (!chosen.wheel.filed()) {
            BOOST_REQUIRE(!chosen.oracle.filed());
            const tick due = draw_due();
            wheel_.insert(chosen.wheel, due);
            oracle_.insert(chosen.oracle, due);
        } else if (dice < 300) {
            wheel_.erase(chosen.wheel);
            oracle_.erase(chosen.oracle);
        } else {
            const tick due = draw_due();
            wheel_.rearm(chosen.wheel, due);
            oracle_.rearm(chosen.oracle, due);
        }
    }

    void move(twin& chosen) {
        auto moved = make_twin(chosen.index);
        wheel_.move_node(chosen.wheel, moved->wheel);
        oracle_.move_node(chosen.oracle, moved->oracle);
        BOOST_REQUIRE(!chosen.wheel.filed());
        BOOST_REQUIRE_EQUAL(moved->wheel.user, chosen.index % 16);
        twins_[chosen.index] = std::move(moved);
    }

    void expire(bool far) {
        // Usually the clock moves on; sometimes an incomplete call is continued, or it stands.
        if (below(3) != 0) {
            const std::uint64_t most = far ? below(61) : below(9);
            jump_ = std::max(jump_, now_) + (std::uint64_t{1} << most) - below(2);
            jump_ = std::min(jump_, std::uint64_t{1} << 62);
            if (now_ > std::uint64_t{1} << 61)
                jump_ = now_ + below(3); // leave some of the line for the rest of the run
        }
        const std::uint64_t limit = 1 + below(below(3) == 0 ? 300 : 6);
        if (expire_once(limit) && below(2) == 0) {
            while (expire_once(limit)) {
            }
        }
    }

    bool expire_once(std::uint64_t limit) {
        std::vector<timer_node*> out(limit);
        std::vector<timer_node*> expected(limit);
        const tick before = wheel_.now();

        const expire_result result = wheel_.expire(tick{jump_}, out);
        const expire_result wanted =
            oracle_.expire(tick{jump_}, std::span(expected).first(result.emitted));

        BOOST_REQUIRE_EQUAL(result.emitted, wanted.emitted);
        BOOST_REQUIRE(!wanted.more || result.more);
        compare(std::span(out).first(result.emitted), std::span(expected).first(result.emitted),
                before);
        now_ = wheel_.now().count();
        oracle_.follow(wheel_.now());
        if (!result.more) {
            BOOST_REQUIRE_EQUAL(now_,
                                std::max(before.count(), std::min(jump_, ~std::uint64_t{0} - 1)));
            BOOST_REQUIRE(wheel_.next_wake() > wheel_.now());
        }
        return result.more;
    }

    /// What was due at `before` may be sorted by due tick, if late-comers are among it: B3.
    void compare(std::span<timer_node*> out, std::span<timer_node*> expected, tick before) {
        std::vector<std::size_t> got;
        std::vector<std::size_t> wanted;
        std::ptrdiff_t overdue = 0;
        bool late = false;
        for (std::size_t i = 0; i != out.size(); ++i) {
            const twin& wheel = *reinterpret_cast<twin*>(out[i]);
            const twin& oracle = *reinterpret_cast<twin*>(expected[i] - 1);
            BOOST_REQUIRE(!out[i]->filed());
            BOOST_REQUIRE(out[i]->due.count() <= std::max(jump_, before.count()));
            BOOST_REQUIRE_EQUAL(out[i]->user, wheel.index % 16);
            overdue += out[i]->due <= before ? 1 : 0;
            late = late || out[i]->due < before;
            got.push_back(wheel.index);
            wanted.push_back(oracle.index);
        }
        if (late) {
            std::sort(got.begin(), got.begin() + overdue);
            std::sort(wanted.begin(), wanted.begin() + overdue);
        }
        BOOST_REQUIRE(got == wanted);
    }

    void detach() {
        if (draining_) {
            for (std::uint64_t left = below(200); draining_ && left != 0; --left)
                pop();
            return;
        }
        wheel_.detach_all(set_);
        oracle_.detach_all(oracle_set_);
        BOOST_REQUIRE(wheel_.empty());
        draining_ = true;
        if (below(2) == 0)
            go_back();
    }

    /// What the service does when the clock has jumped back.
    void go_back() {
        now_ -= std::min(now_, below(std::uint64_t{1} << (1 + below(40))));
        jump_ = now_;
        wheel_.rewind(tick{now_});
        oracle_.rewind(tick{now_});
        while (timer_node* const node = set_.pop()) {
            twin& popped = *reinterpret_cast<twin*>(node);
            oracle_.erase(popped.oracle);
            wheel_.refile(popped.wheel);
            oracle_.refile(popped.oracle);
        }
        BOOST_REQUIRE(oracle_set_.pop() == nullptr);
        draining_ = false;
    }

    void pop() {
        timer_node* const node = set_.pop();
        if (node == nullptr) {
            BOOST_REQUIRE(oracle_set_.pop() == nullptr);
            draining_ = false;
            return;
        }
        twin& popped = *reinterpret_cast<twin*>(node);
        BOOST_REQUIRE(popped.oracle.filed());
        oracle_.erase(popped.oracle); // in which order a set is emptied is not promised
    }

    /// Many at one tick: more than any limit, so that the stage is used.
    void burst() {
        const tick due{now_ + below(70)};
        for (const auto& each : twins_) {
            if (!each->wheel.filed() && below(2) == 0) {
                wheel_.insert(each->wheel, due);
                oracle_.insert(each->oracle, due);
            }
        }
    }

    void check(bool thoroughly) {
        BOOST_REQUIRE_EQUAL(wheel_.size(), oracle_.size());
        BOOST_REQUIRE(wheel_.next_wake() <= oracle_.next_wake());
        BOOST_REQUIRE(wheel_.next_wake() >= wheel_.now());
        if (thoroughly)
            wheel_.invariant();
    }

    std::mt19937_64& random_;
    geometry shape_;
    std::uint64_t now_;
    std::uint64_t jump_ = 0;
    bool draining_ = false;
    Wheel wheel_;
    ordered_map_backend oracle_;
    typename Wheel::detached set_;
    ordered_map_backend::detached oracle_set_;
    std::vector<std::unique_ptr<twin>> twins_;
};

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(the_wheel_emits_what_the_oracle_emits_in_the_same_order, Wheel,
                              wheels) {
    std::mt19937_64 random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(1'000'000);

    for (std::uint64_t done = 0; done < steps;) {
        const std::uint64_t run = std::min<std::uint64_t>(steps - done, 1 + random() % 20'000);
        const std::size_t timers = 1 + random() % (random() % 4 == 0 ? 3000 : 100);
        pair_of_backends<Wheel> both(random, timers);
        for (std::uint64_t i = 0; i != run; ++i)
            both.step();
        both.finish();
        done += run;
    }
}
