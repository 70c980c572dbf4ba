// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A backend against the oracle, in lockstep: each call is made on both, with twin nodes, and the
//   outputs must be the same, in the same order.
//
// Model
//   The number of nodes that a wheel emits in a call depends on the number that it has to move. So
//   the oracle is asked for as many as the wheel has emitted, and then follows its position.
//
//   The driver's own knowledge of a timer: its place (none, filed, in a detached set), and its due
//   tick and start number, which must come out unchanged.

#ifndef PAWL_TEST_SUPPORT_BACKEND_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_BACKEND_LOCKSTEP_HPP

#include <pawl/time/backend.hpp>

#include "invariants.hpp"
#include "lockstep.hpp"
#include "ordered_map_backend.hpp"
#include "reserve.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace pawl_test {

template <pawl::time::rewindable_backend Wheel, class Choices>
class backend_lockstep {
    using tick = pawl::time::tick;

public:
    /// Calls on up to `timers` timers.
    backend_lockstep(Choices& choices, const pawl::time::geometry& shape, std::size_t timers)
        : choices_(choices), now_(draw_start()), target_(now_), wheel_(shape, tick{now_}),
          oracle_(shape, tick{now_}), twins_(timers) {
        reserve(wheel_, timers);
        trace("start", now_, "timers", timers);
    }

    /// One call, or a few that belong together.
    void step() {
        const std::uint64_t dice = below(256);
        if (dice < 150)
            start(any_twin());
        else if (dice < 204)
            stop(any_twin());
        else if (dice < 216)
            move(any_twin());
        else if (dice < 246)
            expire(dice >= 242);
        else if (dice < 247)
            detach();
        else if (dice < 250)
            pop_some();
        else if (dice < 251)
            rewind();
        else if (dice < 253)
            burst();
        else
            pawl_test::check_invariant(wheel_);
        check();
    }

    /// Expires everything possible, and ends with two empty backends.
    void finish() {
        draining_.clear(); // releases the remaining nodes of the sets
        for (const auto& each : twins_) {
            if (each && each->in != nullptr)
                expect(!each->wheel.filed(), "a destroyed set has left a node filed", each->index);
        }
        target_ = tick::never().count();
        expire_all(300 - below(300));
        for (const auto& each : twins_) {
            if (each && each->wheel.filed()) {
                expect(each->wheel.due == tick::never(), "a node did not come", each->index);
                wheel_.erase(each->wheel);
                oracle_.erase(each->oracle);
            }
        }
        expect(wheel_.empty() && wheel_.next_wake() == tick::never(), "nothing, yet not empty");
        pawl_test::check_invariant(wheel_);
    }

private:
    struct twin;
    struct member : pawl::time::timer_node {
        twin* of = nullptr;
    };
    struct sets;

    /// A timer that is filed in both.
    struct twin {
        explicit twin(std::size_t i) : index(i) {
            wheel.of = oracle.of = this;
            wheel.set_user(index % 16);
        }
        member wheel;
        member oracle;
        std::size_t index;
        sets* in = nullptr;      // the set that it was detached to
        bool started = false;    // has a due tick and an order, so it can be refiled
        tick due;                // the due tick for both
        std::uint64_t order = 0; // the order that the wheel has given it
        std::uint64_t slot = 0;  // before the present expire()
    };

    struct sets {
        sets(const Wheel& w, const ordered_map_backend& o) : wheel(w), oracle(o) {}
        typename Wheel::detached wheel;
        ordered_map_backend::detached oracle;
    };

    /// More than the epochs in a wheel, so that all ways to mark a set are used.
    static constexpr std::size_t most_sets = 66;

    /// With more timers, checking the bound would take too long.
    static constexpr std::size_t few = 300;

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    static std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
        return a + std::min(b, tick::never().count() - a);
    }

    /// `a` or one of its neighbours.
    std::uint64_t about(std::uint64_t a) {
        const std::uint64_t b = plus(a, below(3));
        return b == 0 ? 0 : b - 1;
    }

    /// The position where the digits above the lowest `bits` change next.
    std::uint64_t next_carry(std::uint64_t bits) const {
        const std::uint64_t low = (std::uint64_t{1} << bits) - 1;
        return plus(now_ | low, 1);
    }

    /// A random position; often just before a power of two, where digits carry.
    std::uint64_t draw_start() {
        const std::uint64_t power = std::uint64_t{1} << below(61);
        return below(2) == 0 ? power - 1 - below(std::min<std::uint64_t>(power, 100)) : power;
    }

    tick draw_due() {
        switch (below(24)) {
        case 0:
        case 1:
            return tick{now_ - std::min(now_, below(50))};
        case 2:
            return tick{now_};
        case 3:
            return tick::never();
        case 4:
            return tick{tick::never().count() - below(3)};
        case 5:
        case 6:
            return tick{about(next_carry(below(64)))};
        case 7:
            return tick{about(plus(now_, std::uint64_t{1} << below(64)))};
        case 8:
            return tick{plus(now_, below(std::uint64_t{1} << (1 + below(62))))};
        case 9:
        case 10:
        case 11:
            return tick{about(any_twin().due.count())};
        default:
            return tick{plus(now_, below(1 + (std::uint64_t{1} << below(10))))};
        }
    }

    twin& at(std::size_t index) {
        if (!twins_[index])
            twins_[index] = std::make_unique<twin>(index);
        return *twins_[index];
    }
    twin& any_twin() { return at(below(twins_.size())); }

    /// Calls that file a node: insert, or rearm.
    void start(twin& t) {
        const tick due = draw_due();
        if (t.wheel.filed()) {
            trace("rearm", t.index, due.count());
            wheel_.rearm(t.wheel, due);
            oracle_.rearm(t.oracle, due);
        } else {
            trace("insert", t.index, due.count());
            wheel_.insert(t.wheel, due);
            oracle_.insert(t.oracle, due);
        }
        filed(t, due);
        t.order = t.wheel.order();
        t.started = true;
    }

    /// Calls erase; or refile, for released nodes. Not between incomplete calls of expire(): if
    /// several nodes are then older than the emitted ones, both wheels lose the order.
    void stop(twin& t) {
        if (t.wheel.filed()) {
            trace("erase", t.index);
            wheel_.erase(t.wheel);
            oracle_.erase(t.oracle);
            expect(!t.wheel.filed(), "erased, but filed", t.index);
            t.in = nullptr;
        } else if (t.started && complete_) {
            refile(t);
        }
    }

    void refile(twin& t) {
        trace("refile", t.index);
        wheel_.refile(t.wheel);
        oracle_.refile(t.oracle);
        expect(t.wheel.order() == t.order, "refile() has changed the order", t.index);
        filed(t, t.due);
    }

    void filed(twin& t, tick due) {
        expect(t.wheel.filed() && t.wheel.due == due, "filed, but not so", t.index);
        t.due = due;
        t.in = nullptr;
    }

    /// Afterwards the timer has another address, and its old one is freed.
    void move(twin& t) {
        trace("move", t.index);
        auto to = std::make_unique<twin>(t.index);
        to->wheel.set_user(0);
        const bool was_filed = t.wheel.filed();
        wheel_.move_node(t.wheel, to->wheel);
        oracle_.move_node(t.oracle, to->oracle);
        const auto fields = [](const member& m) {
            return std::tuple{m.next, m.link, m.due, m.order(), m.user(), m.slot()};
        };
        expect(fields(t.wheel) == fields(member{}), "moved from, but not empty", t.index);
        expect(to->wheel.filed() == was_filed && to->wheel.due == t.due &&
                   to->wheel.order() == t.order && to->wheel.user() == t.index % 16,
               "moved, but not the same", t.index);
        to->in = t.in;
        to->started = t.started;
        to->due = t.due;
        to->order = t.order;
        twins_[t.index] = std::move(to);
    }

    /// Usually the clock advances; sometimes an incomplete call is continued, or the clock stands
    /// still.
    void expire(bool leaps) {
        if (now_ > std::uint64_t{1} << 61 && below(64) != 63)
            target_ = now_ + below(3); // leave most of the range for the rest of the run
        else if (leaps)
            target_ = plus(now_, std::uint64_t{1} << below(64)) - below(2);
        else
            draw_target();
        const std::uint64_t room = below(3) == 0 ? below(301) : 1 + below(6);
        if (expire_once(room) && room != 0 && below(2) == 0)
            expire_all(room);
    }

    void draw_target() {
        switch (below(8)) {
        case 0:
            break;
        case 1:
            target_ = now_ - std::min(now_, below(100));
            break;
        case 2:
            target_ = plus(now_, below(256));
            break;
        case 3:
            if (const tick next = oracle_.next_wake(); next != tick::never())
                target_ = about(next.count());
            break;
        case 4:
            target_ = about(next_carry(below(12)));
            break;
        default:
            target_ = plus(now_, below(4));
        }
    }

    void expire_all(std::uint64_t room) {
        // A node can be moved once for each digit of its due tick and of its start, then it is
        // emitted.
        for (std::size_t calls = (oracle_.size() + 1) * 130; expire_once(room); --calls)
            expect(calls != 0, "bounded: expire() does not come to an end", oracle_.size());
    }

    bool expire_once(std::uint64_t room) {
        trace("expire", target_, "room", room);
        std::vector<pawl::time::timer_node*> out(room);
        std::vector<pawl::time::timer_node*> expected(room);
        const tick before = wheel_.now();
        const bool sorts = complete_ && wheel_.size() <= room;
        note_slots();

        const auto result = wheel_.expire(tick{target_}, out);
        trace("  emitted", result.emitted, result.more ? "and left some" : "");
        expect(result.emitted <= room, "bounded: more than there is room for", result.emitted,
               room);
        const auto emitted = std::span(out).first(result.emitted);
        const auto wanted = std::span(expected).first(result.emitted);
        const auto oracle = oracle_.expire(tick{target_}, wanted);

        expect(result.emitted == oracle.emitted, "never early: the oracle emits fewer",
               result.emitted, oracle.emitted);
        expect(result.more || !oracle.more, "exactly once: complete, but the oracle has more",
               target_);
        compare(emitted, wanted, before, sorts);
        expect(count_moved() + result.emitted <= room, "bounded: has moved too many", room);

        const tick now = wheel_.now();
        const tick target = std::clamp(tick{target_}, before, tick{tick::never().count() - 1});
        expect(before <= now && now <= target, "the position is beyond", now.count(), target_);
        expect(now <= oracle_.next_wake(), "the position has passed a node", now.count(),
               oracle_.next_wake().count());
        oracle_.follow(now);
        now_ = now.count();
        complete_ = !result.more;
        if (complete_) {
            expect(now == target, "complete, but not there", now.count(), target_);
            expect(wheel_.next_wake() > now, "complete, but to be called again", now.count());
        }
        return result.more;
    }

    /// Nodes that were due at `before` may be sorted by due tick, if there are late-comers among
    /// them, and must be if all nodes fit into the room.
    void compare(std::span<pawl::time::timer_node*> out, std::span<pawl::time::timer_node*> oracle,
                 tick before, bool sorts) {
        std::vector<twin*> got;
        std::vector<twin*> wanted;
        std::ptrdiff_t overdue = 0;
        for (std::size_t i = 0; i != out.size(); ++i) {
            twin& t = *static_cast<member*>(out[i])->of;
            trace("    ", t.index, t.due.count());
            expect(!t.wheel.filed() && t.wheel.due == t.due && t.wheel.order() == t.order &&
                       t.wheel.user() == t.index % 16,
                   "emitted, but not as it was", t.index);
            expect(t.due <= std::max(tick{target_}, before), "never early: early", t.due.count(),
                   target_);
            overdue += t.due <= before ? 1 : 0;
            got.push_back(&t);
            wanted.push_back(static_cast<member*>(oracle[i])->of);
        }
        if (got == wanted && !sorts)
            return;
        std::sort(wanted.begin(), wanted.begin() + overdue, [](const twin* a, const twin* b) {
            return std::tuple{a->due, a->order} < std::tuple{b->due, b->order};
        });
        expect(got == wanted, "order: in another order", overdue, out.size());
    }

    bool is_here(const std::unique_ptr<twin>& t) const {
        return t && t->wheel.filed() && t->in == nullptr;
    }

    void note_slots() {
        if (twins_.size() <= few) {
            for (const auto& each : twins_) {
                if (is_here(each))
                    each->slot = each->wheel.slot();
            }
        }
    }

    std::size_t count_moved() const {
        if (twins_.size() > few)
            return 0;
        return static_cast<std::size_t>(
            std::count_if(twins_.begin(), twins_.end(), [this](const auto& each) {
                return is_here(each) && each->slot != each->wheel.slot();
            }));
    }

    void detach() {
        if (draining_.size() == most_sets)
            return;
        if (spare_.empty())
            spare_.push_back(std::make_unique<sets>(wheel_, oracle_));
        draining_.push_back(std::move(spare_.back()));
        spare_.pop_back();
        trace("detach", draining_.size());

        sets& set = *draining_.back();
        reserve_to_detach(wheel_, twins_.size());
        wheel_.detach_all(set.wheel);
        oracle_.detach_all(set.oracle);
        for (const auto& each : twins_) {
            if (is_here(each))
                each->in = &set;
        }
        complete_ = true;
        expect(wheel_.empty() && wheel_.next_wake() == tick::never(), "detached, yet not empty");
        if (below(2) == 0)
            go_back();
    }

    /// Like the service after the clock has jumped back.
    void go_back() {
        rewind();
        while (twin* const popped = pop(draining_.size() - 1))
            refile(*popped);
    }

    void rewind() {
        if (!wheel_.empty())
            return;
        if (below(4) == 0)
            now_ = about(plus(now_, std::uint64_t{1} << below(64)));
        else
            now_ -= std::min(now_, below(std::uint64_t{1} << (1 + below(63))));
        trace("rewind", now_);
        now_ = std::min(now_, tick::never().count() - 1);
        target_ = now_;
        wheel_.rewind(tick{now_});
        oracle_.rewind(tick{now_});
        expect(wheel_.now() == tick{now_}, "rewound, but not there", now_);
        complete_ = true;
    }

    void pop_some() {
        if (draining_.empty())
            return;
        const std::size_t chosen = below(draining_.size());
        for (std::uint64_t left = below(200); left != 0; --left) {
            if (pop(chosen) == nullptr)
                return;
        }
    }

    /// The order in which a set is emptied is not promised.
    twin* pop(std::size_t chosen) {
        sets& set = *draining_[chosen];
        pawl::time::timer_node* const node = set.wheel.pop();
        trace("pop", chosen, node == nullptr ? "nothing" : "a node");
        if (node == nullptr) {
            expect(set.oracle.pop() == nullptr, "exactly once: a detached node has not been popped",
                   chosen);
            spare_.push_back(std::move(draining_[chosen]));
            draining_.erase(draining_.begin() + static_cast<std::ptrdiff_t>(chosen));
            return nullptr;
        }
        twin& t = *static_cast<member*>(node)->of;
        expect(t.in == &set, "exactly once: popped from a set in which it is not", t.index);
        expect(!t.wheel.filed() && t.wheel.due == t.due && t.wheel.order() == t.order,
               "popped, but not as it was", t.index);
        oracle_.erase(t.oracle);
        t.in = nullptr;
        return &t;
    }

    /// Many timers at one tick, more than any room, so that a wheel must sort them in steps.
    void burst() {
        const tick due{plus(now_, below(70))};
        for (std::size_t left = 1 + below(twins_.size()), i = 0; i != left; ++i) {
            twin& t = at(i);
            if (t.wheel.filed())
                continue;
            trace("insert", t.index, due.count());
            wheel_.insert(t.wheel, due);
            oracle_.insert(t.oracle, due);
            filed(t, due);
            t.order = t.wheel.order();
            t.started = true;
        }
    }

    void check() {
        const tick next = wheel_.next_wake();
        expect(wheel_.size() == oracle_.size(), "size()", wheel_.size(), oracle_.size());
        expect(wheel_.empty() == oracle_.empty(), "empty()", wheel_.size());
        expect(wheel_.now() == tick{now_}, "now()", wheel_.now().count(), now_);
        expect(next >= wheel_.now() && next <= oracle_.next_wake(), "next_wake()", next.count(),
               oracle_.next_wake().count());
        if (wheel_.size() == 1 && complete_)
            expect(next == oracle_.next_wake(), "next_wake() of one", next.count(),
                   oracle_.next_wake().count());
        const pawl::time::timer_node* const some = wheel_.any();
        expect((some == nullptr) == wheel_.empty(), "any()", wheel_.size());
        if (some != nullptr) {
            const twin& t = *static_cast<const member*>(some)->of;
            expect(t.wheel.filed() && t.in == nullptr, "any() is not filed here", t.index);
        }
    }

    Choices& choices_;
    std::uint64_t now_;
    std::uint64_t target_; // of the last expire()
    bool complete_ = true; // whether the last expire() was complete
    Wheel wheel_;
    ordered_map_backend oracle_;
    std::vector<std::unique_ptr<twin>> twins_; // made on first use
    std::vector<std::unique_ptr<sets>> draining_;
    std::vector<std::unique_ptr<sets>> spare_; // empty
};

} // namespace pawl_test

#endif
