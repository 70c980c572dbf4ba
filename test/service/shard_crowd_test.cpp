// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The shard without an io_context under a crowd of timers; and a long random walk on each time structure, beside
//   a model of a few lines.

#define BOOST_TEST_MODULE shard_crowd
#include <boost/test/unit_test.hpp>

#include "shard_scenes.hpp"

#include "../support/seed.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using namespace shard_bench;

// ---- crowds ---------------------------------------------------------------------------------------

namespace {

/// Lets a test intervene while a start allocates room in the wheel, like another thread.
class roomy : public counting_backend<pawl::time::hierarchical_wheel> {
    using base = counting_backend<pawl::time::hierarchical_wheel>;

public:
    using base::base;

    class room_part : public base::room_part {
    public:
        explicit room_part(std::size_t size) : base::room_part(size) {
            if (const auto f = std::exchange(allocates, nullptr))
                f();
        }
    };

    class detached : public base::detached {
    public:
        explicit detached(const roomy& b) : base::detached(b) {}
    };

    static inline std::function<void()> allocates; ///< called once
};
static_assert(pawl::time::reserving_backend<roomy>);

/// Timers that come one by one, more than a batch. With a second thread, a call of the shard that
/// needs its own lock while holding it deadlocks, until ctest ends the test.
template <class Backend>
struct crowd_scene {
    explicit crowd_scene(const pawl::options& o = {}, tick now = {}) : b(o, now) {}
    ~crowd_scene() {
        for (timer_core& t : timers)
            b.release(t);
        b.run_all();
    }

    void start(std::uint64_t due) {
        const std::size_t i = timers.size();
        timers.emplace_back();
        waits.emplace_back();
        dues.push_back(due);
        b.start(timers[i], waits[i], due);
    }
    void start(std::size_t count, std::uint64_t due) {
        for (; count != 0; --count)
            start(due);
    }

    /// The remaining waits complete when they are due, in order of due tick and start.
    void expect_order(std::uint64_t last) {
        std::vector<std::pair<std::uint64_t, std::size_t>> order; // due, number of the start
        for (std::size_t i = 0; i < waits.size(); ++i)
            if (waits[i].completed == 0)
                order.emplace_back(dues[i], i);
        std::sort(order.begin(), order.end());
        const std::size_t before = b.log().size();
        b.collect(last);
        b.run_all();
        BOOST_REQUIRE_EQUAL(b.log().size() - before, order.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            const test_wait& w = waits[order[i].second];
            BOOST_REQUIRE(b.log()[before + i] == &w);
            BOOST_REQUIRE(w.completed == 1 && !w.told);
        }
        BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
    }

    const second_thread there_is;
    bench<Backend> b;
    std::deque<timer_core> timers;
    std::deque<test_wait> waits;
    std::vector<std::uint64_t> dues;
};

} // namespace

// Near and far deadlines; many of the near ones share a tick.
PAWL_TYPED_CASE(P7_a_crowd_completes_in_order_of_deadlines_and_starts, Backend, backends) {
    std::mt19937_64 random(pawl_test::seed());
    for (const std::uint64_t span : {1u, 40u, 5'000u, 100'000'000u}) {
        for (const unsigned batch : {7u, 256u}) {
            crowd_scene<Backend> s(with(batch, 1), tick{1'000});
            while (s.waits.size() < 350)
                s.start(1'001 + random() % span);
            s.expect_order(1'001 + span);
        }
    }
}

// Some waits of a tick are due, others of the same tick are backlog, and more come.
PAWL_TYPED_CASE(P7_waits_that_start_in_the_middle_of_a_backlog_keep_the_order, Backend, backends) {
    for (const unsigned batch : {1u, 7u, 50u}) {
        crowd_scene<Backend> s(with(batch, 1));
        for (std::size_t i = 0; i < 256; ++i)
            s.start(300 + 200 * (i % 3));
        s.b.collect(600);
        BOOST_REQUIRE_LE(s.b.state().due_count(), batch);

        s.start(110, 500);

        s.expect_order(700);
    }
}

PAWL_TYPED_CASE(P4_waits_of_a_crowd_are_cancelled_and_moved_and_so_are_their_timers, Backend,
                backends) {
    constexpr std::size_t n = 300;
    crowd_scene<Backend> s;
    s.start(n, 1'000);
    std::deque<timer_core> elsewhere;
    for (std::size_t i = 0; i < n; i += 3) {
        BOOST_CHECK_EQUAL(s.b.cancel(s.timers[i]), 1u);
        BOOST_CHECK_EQUAL(s.b.rearm(s.timers[i + 1], i % 2 == 0 ? 500 : 2'000), 1u);
        s.b.move(s.timers[i + 2], elsewhere.emplace_back());
    }
    for (const std::uint64_t now : {500u, 1'000u, 2'000u}) {
        s.b.collect(now);
        s.b.run_all();
    }

    for (std::size_t i = 0; i < n; ++i) {
        const test_wait& w = s.waits[i];
        BOOST_REQUIRE_EQUAL(w.completed, 1);
        BOOST_REQUIRE_EQUAL(w.told == aborted, i % 3 == 0);
        if (i % 3 == 1)
            BOOST_REQUIRE(w.completed_at == tick{i % 2 == 1 ? 500u : 2'000u});
        else if (i % 3 == 2)
            BOOST_REQUIRE(w.completed_at == tick{1'000});
    }
    for (timer_core& t : elsewhere)
        s.b.release(t);
}

PAWL_TYPED_CASE(P10_a_crowd_that_comes_during_expire_all_is_none_of_its_waits, Backend, backends) {
    for (const std::size_t before : {std::size_t{100}, std::size_t{400}}) {
        crowd_scene<Backend> s(with(16, 1));
        s.start(before, 1'000);
        std::vector<std::size_t> detached; // in the middle of it
        const std::size_t ended =
            s.b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
                s.b.apply(out, false);
                if (s.waits.size() != before)
                    return;
                for (std::size_t i = 0; i < before; ++i)
                    if (s.timers[i].newest())
                        detached.push_back(i);
                BOOST_REQUIRE_GE(detached.size(), before - 16);
                s.start(266, 2'000);
                BOOST_CHECK_EQUAL(s.b.cancel(s.timers[detached[0]]), 1u);
                BOOST_CHECK_EQUAL(s.b.rearm(s.timers[detached[1]], 2'500), 1u);
            });
        BOOST_CHECK_EQUAL(ended, before - 2);
        s.b.run_all();
        s.dues[detached[1]] = 2'500;

        s.start(2'000);
        s.expect_order(2'500);
    }
}

PAWL_TYPED_CASE(P1_P7_a_crowd_keeps_its_order_if_the_clock_is_set_back, Backend, backends) {
    crowd_scene<Backend> s(with(8, 1), tick{10'000});
    for (std::size_t i = 0; i < 350; ++i)
        s.start(20'000 + i % 3);

    s.b.state().set_back(tick{5'000});

    BOOST_CHECK(s.b.state().seen().now == tick{5'000});
    s.b.collect(5'000);
    s.start(50, 20'001);
    s.b.collect(19'999);
    BOOST_CHECK(s.b.log().empty());
    s.expect_order(20'002);
}

PAWL_TYPED_CASE(P3_draining_finds_each_wait_of_a_crowd, Backend, backends) {
    crowd_scene<Backend> s(with(8, 1));
    s.start(350, 1'000);
    s.b.close();

    BOOST_CHECK_EQUAL(drain(s.b), 350u);

    for (const test_wait& w : s.waits)
        BOOST_REQUIRE(w.destroyed == 1 && w.completed == 0);
}

// A start allocates with the lock released. In the meantime others start, and take the room that
// there was.
BOOST_AUTO_TEST_CASE(P5_P8_a_start_that_made_room_in_the_wheel_looks_for_room_for_its_wait_again) {
    crowd_scene<roomy> s;
    bool made_room = false;
    roomy::allocates = [&] {
        made_room = true;
        s.start(pawl::detail::due_queue::length, 100);
    };

    while (!made_room)
        s.start(200);

    s.expect_order(200);
}

BOOST_AUTO_TEST_CASE(a_shard_that_closes_while_a_start_makes_room_files_nothing) {
    crowd_scene<roomy> s;
    bool closed = false;
    roomy::allocates = [&] {
        closed = true;
        s.b.close();
    };

    while (!closed)
        s.start(1'000);

    BOOST_CHECK_EQUAL(drain(s.b), s.waits.size() - 1);
    BOOST_CHECK(s.b.state().begin_emptying());
    BOOST_CHECK(s.b.state().end_emptying() == &s.waits.back());
}

// ---- a random walk beside a model ---------------------------------------------------------------------

namespace {

/// The walk's knowledge of one wait.
struct modelled {
    test_wait wait;
    std::unique_ptr<slot_link> link;
    std::uint64_t due = 0;
    bool cancelled = false;

    explicit modelled(bool direct) : wait(direct) {}
    bool over() const { return wait.completed + wait.destroyed != 0; }
};

template <class Backend>
class walk {
public:
    walk(std::uint64_t seed, const pawl::options& o) : random_(seed), b_(o, tick{1000}) {
        for (std::size_t i = 0; i < timers; ++i) {
            cores_.push_back(std::make_unique<timer_core>());
            due_.push_back(1000);
            pending_.emplace_back();
        }
    }

    void step() {
        const std::size_t t = pick(timers);
        switch (pick(14)) {
        case 0:
        case 1:
        case 2:
            start(t);
            break;
        case 3:
            expect(t, b_.cancel(*cores_[t]), all, "cancel");
            break;
        case 4:
            expect(t, b_.cancel(*cores_[t], 1), 1, "cancel_one");
            break;
        case 5:
        case 6:
            rearm(t);
            break;
        case 7:
            slot(t);
            break;
        case 8:
            b_.collect(now() + pick(20));
            break;
        case 9:
            b_.wake(now() + (pick(8) == 0 ? pick(100'000) : pick(5)));
            break;
        case 10:
            move(t);
            break;
        case 11:
            if (b_.units() != 0)
                b_.run_unit();
            break;
        case 12:
            if (!b_.carriers().empty())
                b_.arrive(pick(b_.carriers().size()));
            break;
        case 13:
            if (pick(20) == 0)
                destroy(t);
            else if (pick(200) == 0)
                rest();
            break;
        }
        settle();
    }

    void finish() {
        for (std::size_t i = 0; i < timers; ++i)
            destroy(i);
        while (b_.units() != 0 || !b_.carriers().empty()) {
            if (b_.units() != 0)
                b_.run_unit();
            else
                b_.arrive(0);
        }
        settle();
        BOOST_CHECK(loose_.empty());
        BOOST_CHECK_EQUAL(b_.state().timers().counts().armed, 0u);
        BOOST_CHECK(!b_.state().busy());
    }

    std::size_t completed = 0;

private:
    static constexpr std::size_t timers = 12;
    static constexpr std::size_t all = ~std::size_t{0};

    std::size_t pick(std::size_t n) { return random_() % n; }
    std::uint64_t now() const { return b_.now().count(); }
    std::uint64_t deadline() {
        return now() - std::min<std::uint64_t>(now(), 3) + (pick(4) == 0 ? pick(50'000) : pick(40));
    }

    void start(std::size_t t) {
        if (pending_[t].empty())
            due_[t] = deadline(); // like expires_at() before async_wait()
        auto m = std::make_unique<modelled>(pick(3) != 0);
        m->due = due_[t];
        if (pick(2) == 0)
            m->link = std::make_unique<slot_link>(b_.arbiter(), m->wait);
        BOOST_REQUIRE(b_.start(*cores_[t], m->wait, due_[t]));
        pending_[t].push_back(std::move(m));
    }
    /// The oldest `limit` waits of timer t must have been cancelled.
    void expect(std::size_t t, std::size_t count, std::size_t limit, const char* what) {
        const std::size_t n = std::min(limit, pending_[t].size());
        BOOST_REQUIRE_MESSAGE(count == n, what << ": " << count << " instead of " << n);
        for (std::size_t i = 0; i < n; ++i) {
            pending_[t].front()->cancelled = true;
            loose_.push_back(std::move(pending_[t].front()));
            pending_[t].pop_front();
        }
    }
    void rearm(std::size_t t) {
        const std::uint64_t due = deadline();
        const std::size_t count = b_.rearm(*cores_[t], due);
        BOOST_REQUIRE_EQUAL(count, pending_[t].size());
        due_[t] = due;
        for (auto& m : pending_[t])
            m->due = due;
    }
    void slot(std::size_t t) {
        if (pending_[t].empty())
            return;
        const std::size_t i = pick(pending_[t].size());
        auto& m = pending_[t][i];
        if (!m->link)
            return;
        if (pick(4) == 0) {
            m->link.reset(); // the signal is destroyed
            return;
        }
        (*m->link)(boost::asio::cancellation_type::terminal);
        m->cancelled = true;
        loose_.push_back(std::move(m));
        pending_[t].erase(pending_[t].begin() + static_cast<std::ptrdiff_t>(i));
    }
    void move(std::size_t t) {
        auto to = std::make_unique<timer_core>();
        b_.move(*cores_[t], *to);
        cores_[t] = std::move(to);
    }
    void destroy(std::size_t t) {
        const std::size_t n = pending_[t].size();
        b_.release(*cores_[t]);
        cores_[t] = std::make_unique<timer_core>();
        expect(t, n, all, "destroy");
    }
    /// Only the units, the carriers and the driver act: all waits complete.
    void rest() {
        for (;;) {
            if (b_.units() != 0)
                b_.run_unit();
            else if (!b_.carriers().empty())
                b_.arrive(0);
            else if (b_.driver())
                b_.wake(b_.driver()->count());
            else
                break;
            settle();
        }
        for (const auto& list : pending_)
            BOOST_REQUIRE_MESSAGE(list.empty(), "a wait was forgotten");
        BOOST_REQUIRE(loose_.empty());
    }
    /// Checks completed waits, and forgets them.
    void settle() {
        const auto check = [&](const std::unique_ptr<modelled>& m) {
            if (!m->over())
                return false;
            BOOST_REQUIRE_EQUAL(m->wait.completed, 1);
            BOOST_REQUIRE_EQUAL(m->wait.told == aborted, m->cancelled);
            if (!m->cancelled)
                BOOST_REQUIRE_LE(m->due, m->wait.completed_at.count()); // P1
            ++completed;
            return true;
        };
        for (auto& list : pending_)
            std::erase_if(list, check);
        std::erase_if(loose_, check);
    }

    std::mt19937_64 random_;
    bench<Backend> b_;
    std::vector<std::unique_ptr<timer_core>> cores_;
    std::vector<std::uint64_t> due_;
    std::vector<std::deque<std::unique_ptr<modelled>>> pending_;
    std::deque<std::unique_ptr<modelled>> loose_; // cancelled, not yet completed
};

} // namespace

PAWL_TYPED_CASE(P1_P3_P4_hold_on_a_random_walk, Backend, backends) {
    const std::uint64_t seed = pawl_test::seed();
    for (const auto& [batch, per_turn] :
         {std::pair(256u, 1u), std::pair(2u, 1u), std::pair(1u, 64u), std::pair(5u, 3u)}) {
        walk<Backend> w(seed + batch, with(batch, per_turn));
        for (std::uint64_t n = pawl_test::steps(40'000); n != 0; --n)
            w.step();
        w.finish();
        BOOST_CHECK_GT(w.completed, 0u);
    }
}
