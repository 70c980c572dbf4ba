// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   timeout_rings and a queue for each ring, in lockstep: each call is made on both, and the
//   outputs must be the same, in the same order, and in time.
//
// Model
//   A slot is an entry at the back of its queue. The ticket of a node that is filed again shows
//   whether it has got a new slot, or stays in place; the queue knows where the last period begins,
//   and so whether it may. The nodes that expire() emits must be those at the front, none of them
//   early. And if the driver has never been late, no node may be left that is a period over its
//   delay. Overdue nodes have a queue of their own, behind those of the rings.
//
//   One thread plays parts of other threads: a driver that read the clock before others filed nodes
//   by it.

#ifndef PAWL_TEST_SUPPORT_TIMEOUT_RINGS_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_TIMEOUT_RINGS_LOCKSTEP_HPP

#include <pawl/detail/time/timeout_rings.hpp>

#include "invariants.hpp"
#include "lockstep.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace pawl_test {

template <class Choices>
class timeout_rings_lockstep {
    using tick = pawl::time::tick;
    using timer_node = pawl::time::timer_node;
    using timeout_rings = pawl::time::timeout_rings;

public:
    static constexpr std::uint64_t longest_run = 5000;

    explicit timeout_rings_lockstep(Choices& choices)
        : choices_(choices), punctual_(below(2) == 0), shapes_(draw_shapes()),
          queues_(shapes_.size() + 1), marks_(draw_marks()), clock_(draw_start()),
          rings_(shapes_, marks_, tick{clock_}), timers_(draw_count()) {
        for (std::size_t i = 0; i < timers_.size(); ++i)
            timers_[i] = std::make_unique<timer>(i);
        for (std::size_t r = 0; r < shapes_.size(); ++r)
            queues_[r].capacity = shapes_[r].capacity;
        trace(punctual_ ? "punctual" : "late", "rings", shapes_.size(), "marks", marks_, "timers",
              timers_.size());
    }

    /// One call, or a few that belong together.
    void step() {
        const std::uint64_t dice = below(64);
        if (dice < 30)
            place(any_timer());
        else if (dice < 38)
            erase(any_timer());
        else if (dice < 41)
            move(any_timer());
        else if (dice < 54)
            pass(below(8) == 0 ? below(3 * longest()) : below(1 + 2 * period(any_ring())));
        else if (dice < 56)
            expire_once(clock_ - std::min(clock_, below(4)), below(5));
        else if (dice < 58)
            grow(any_ring());
        else if (dice < 59)
            detach();
        else if (dice < 62)
            pop_some(below(20));
        else if (dice < 63)
            take_some();
        else
            pawl_test::check_invariant(rings_);
        check();
    }

    /// Expires all nodes, and ends with empty rings.
    void finish() {
        while (!sets_.empty())
            pop_some(~std::uint64_t{0});
        pass(2 * longest());
        expire_all(); // in one visit, which is late: it closes the last period, which is then due
        expect(rings_.empty() && rings_.next_wake() == tick::never(), "nothing, yet not empty");
        check();
        pawl_test::check_invariant(rings_);
    }

private:
    using shape = timeout_rings::shape;

    struct timer {
        explicit timer(std::size_t i) : index(i) { node.set_user(i % 16); }

        timer_node node;
        std::size_t index;
        tick due{};                   ///< the due tick for the rings
        std::uint64_t registered = 0; ///< time of registration, if filed
        std::uint64_t number = 0;     ///< of that registration
    };

    struct queue {
        std::deque<timer*> timers;
        std::uint64_t registrations = 0;
        std::uint64_t detached = 0; ///< number of registrations before the last detach
        std::uint64_t first = 0;    ///< registration in the last period
        std::uint64_t begin = 0;    ///< of that period
        std::size_t capacity = ~std::size_t{0};
    };

    struct set {
        explicit set(const timeout_rings& rings) : nodes(rings) {}
        timeout_rings::detached nodes;
        std::vector<std::uint64_t>
            until; ///< for each queue: the first registration that is not in it
        std::uint64_t overdue_from = 0; ///< the first overdue one that is
    };

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    // ---- the objects under test ----------------------------------------------------------------

    std::vector<shape> draw_shapes() {
        constexpr std::array<std::uint64_t, 8> delays{1, 2, 7, 8, 30, 64, 100, 1000};
        constexpr std::array<std::size_t, 4> capacities{1, 3, 8, 100};
        std::vector<shape> shapes(1 + below(3));
        for (shape& s : shapes)
            s = {delays[below(delays.size())], capacities[below(capacities.size())]};
        return shapes;
    }
    unsigned draw_marks() {
        constexpr std::array<unsigned, 6> marks{1, 2, 3, 8, 64, 1024};
        return marks[below(marks.size())];
    }
    std::uint64_t draw_start() {
        return below(2) == 0 ? below(256) : std::uint64_t{1} << below(62);
    }
    std::size_t draw_count() {
        constexpr std::array<std::size_t, 4> counts{1, 5, 20, 200};
        return counts[below(counts.size())];
    }

    std::uint64_t longest() const { return std::ranges::max(shapes_, {}, &shape::delay).delay + 1; }
    std::uint64_t period(unsigned ring) const { return (shapes_[ring].delay - 1) / marks_ + 1; }

    unsigned any_ring() { return static_cast<unsigned>(below(shapes_.size())); }
    timer& any_timer() { return *timers_[below(timers_.size())]; }

    // ---- calls -----------------------------------------------------------------------------------

    void place(timer& t) {
        if (below(16) == 0)
            return place_overdue(t);
        const unsigned ring = any_ring();
        const std::uint64_t delay = shapes_[ring].delay;
        // A ring may serve a shorter delay than its own, and the reading of the clock may be old.
        const std::uint64_t early = below(4) == 0 ? below(delay) : 0;
        const tick due{clock_ + delay - early};
        const timeout_rings::deadline where{due, ring};
        queue& q = queues_[ring];
        const auto before = fields(t.node);
        const std::uint64_t ticket = t.node.ticket;
        const bool was_filed = t.node.filed();
        const unsigned was_in = t.node.slot();
        const bool joins = rings_.next_wake(where) != tick::never() &&
                           due.count() < q.begin + period(ring); // the last period

        trace("place", t.index, "ring", ring, "due", due.count());
        if (!rings_.has_room(t.node, where)) {
            trace("no room");
            expect(rings_.oldest(where) == (q.timers.empty() ? nullptr : &q.timers.front()->node),
                   "full, but not of what is filed", ring);
            expect(fields(t.node) == before, "refused, but not as it was", t.index);
            if (!rings_.has_room(t.node, where)) // the ended slots at the front are free now
                return;
        }
        if (was_filed)
            rings_.rearm(t.node, where);
        else
            rings_.insert(t.node, where);
        expect(t.node.filed() && t.node.due == due && t.node.slot() == ring, "placed, but not so",
               t.index);
        t.due = due;
        const bool may_stay = joins && was_filed && was_in == ring && t.number >= q.first;
        if (was_filed && was_in == ring && t.node.ticket == ticket) {
            expect(may_stay, "stays in a period that is over", t.index);
            for (const set& s : sets_)
                expect(t.number >= s.until[ring], "filed anew, but still in a set", t.index);
            return;
        }
        expect(!may_stay || t.number < q.detached, "could have stayed where it was", t.index);
        // Without its only slot the ring is empty for a moment, and begins another period.
        const bool alone = was_filed && was_in == ring && q.timers.front() == &t &&
                           t.number + 1 == q.registrations;
        if (was_filed)
            forget(t, was_in);
        if (!joins || alone) {
            q.first = q.registrations;
            q.begin = due.count();
        }
        enter(t, q);
    }

    void place_overdue(timer& t) {
        trace("place", t.index, "overdue");
        const bool was_filed = t.node.filed();
        const unsigned was_in = t.node.slot();
        const timeout_rings::deadline where{.due = tick{below(clock_ + 1)}};
        expect(rings_.has_room(t.node, where), "no room for what is due", t.index);
        if (was_filed)
            rings_.rearm(t.node, where);
        else
            rings_.insert(t.node, where);
        t.due = where.due;
        expect(t.node.filed() && t.node.due == t.due, "overdue, but not so", t.index);
        if (was_filed)
            forget(t, was_in);
        enter(t, queues_.back());
    }

    void enter(timer& t, queue& q) {
        t.registered = clock_;
        t.number = q.registrations++;
        q.timers.push_back(&t);
    }

    void erase(timer& t) {
        if (!t.node.filed())
            return;
        trace("erase", t.index);
        const unsigned ring = t.node.slot();
        rings_.erase(t.node);
        expect(!t.node.filed(), "erased, but filed", t.index);
        forget(t, ring);
    }

    /// Afterwards the timer has another address, and its old one is freed.
    void move(timer& t) {
        trace("move", t.index);
        auto to = std::make_unique<timer>(t.index);
        to->node.set_user(0);
        const auto before = fields(t.node);
        rings_.move_node(t.node, to->node);
        expect(fields(t.node) == fields(timer_node{}), "moved from, but not empty", t.index);
        expect(fields(to->node) == before, "moved, but not the same", t.index);
        to->due = t.due;
        to->registered = t.registered;
        to->number = t.number;
        if (to->node.filed())
            std::ranges::replace(queue_of(to->node.slot()).timers, &t, to.get());
        timers_[t.index] = std::move(to);
    }

    /// Time passes. A punctual driver comes at each next_wake().
    void pass(std::uint64_t ticks) {
        const std::uint64_t end = clock_ + ticks;
        trace("pass", ticks);
        if (!punctual_) {
            clock_ = end;
            if (below(2) == 0)
                expire_all();
            return;
        }
        while (rings_.next_wake() <= tick{end}) {
            clock_ = std::max(clock_, rings_.next_wake().count());
            expire_all();
        }
        clock_ = end;
    }

    void expire_all() {
        const std::uint64_t room = 1 + below(7);
        std::size_t slots = 1 + timers_.size();
        for (std::size_t r = 0; r < shapes_.size(); ++r)
            slots += 2 * queues_[r].capacity;
        while (expire_once(clock_, room))
            expect(--slots != 0, "expire() does not come to an end", clock_);
        expect(rings_.next_wake() > tick{clock_}, "complete, but to be called again", clock_);
        expect(queues_.back().timers.empty() ||
                   queues_.back().timers.back()->number < queues_.back().detached,
               "complete, but not the overdue ones", clock_);
        for (std::size_t r = 0; punctual_ && r < shapes_.size(); ++r)
            for (const timer* t : queues_[r].timers)
                expect(clock_ < t->registered + shapes_[r].delay + period(static_cast<unsigned>(r)),
                       "late", t->index, t->registered, clock_);
    }

    bool expire_once(std::uint64_t reading, std::uint64_t room) {
        const tick now = std::max(tick{reading}, rings_.now());
        std::vector<timer_node*> out(room);
        const auto result = rings_.expire(tick{reading}, out);
        trace("expire", reading, "room", room, "emitted", result.emitted,
              result.more ? "and left some" : "");
        expect(rings_.now() == now, "now()", rings_.now().count(), now.count());
        expect(result.emitted <= room, "more than there is room for", result.emitted, room);
        unsigned ring = 0;
        bool rings_begin = false;
        for (timer_node* const node : std::span(out).first(result.emitted)) {
            const bool overdue = node->slot() == timeout_rings::deadline::overdue;
            expect(!overdue || !rings_begin, "overdue, but not the first", node->slot());
            rings_begin = !overdue;
            expect(overdue || node->slot() >= ring, "a ring is come back to", node->slot(), ring);
            ring = overdue ? 0 : node->slot();
            timer& t = front(node->slot(), node, "emitted");
            expect(t.due <= now, "early", t.index, t.due.count(), now.count());
        }
        return result.more;
    }

    /// Also a ring that has room again: others free slots while a thread allocates.
    void grow(unsigned ring) {
        const timer_node fresh{};
        const timeout_rings::deadline where{tick{}, ring};
        if (rings_.has_room(fresh, where) && queues_[ring].capacity >= 64)
            return;
        trace("grow", ring);
        timeout_rings::room_part part(rings_.next_room_part(where));
        timeout_rings::room_part same(part.capacity());
        rings_.add_room(where, part);
        expect(rings_.has_room(fresh, where), "grown, but full", ring);
        queues_[ring].capacity *= 2;
        rings_.add_room(where, same); // of a thread that was slower: not taken
        expect(same.capacity() == queues_[ring].capacity, "grown twice at once", ring);
    }

    void detach() {
        if (sets_.size() == 4)
            return;
        trace("detach", sets_.size());
        set& s = sets_.emplace_back(rings_);
        rings_.detach_all(s.nodes);
        s.overdue_from = queues_.back().detached;
        for (queue& q : queues_)
            s.until.push_back(q.detached = q.registrations);
    }

    /// Ring by ring, the nodes that were filed when the set was made, and are still there.
    void pop_some(std::uint64_t most) {
        if (sets_.empty())
            return;
        const std::size_t chosen = below(sets_.size());
        const auto at = std::next(sets_.begin(), static_cast<std::ptrdiff_t>(chosen));
        set& s = *at;
        for (; most != 0; --most) {
            timer_node* node = nullptr;
            if (!s.nodes.pop(node)) {
                for (std::size_t r = 0; r < queues_.size(); ++r)
                    expect(!has_member(s, r), "a detached node has not been popped", r);
                sets_.erase(at);
                return;
            }
            if (!node)
                continue; // a cancelled node
            const unsigned ring = node->slot();
            const bool overdue = ring == timeout_rings::deadline::overdue;
            expect(overdue || !has_member(s, shapes_.size()), "popped before the overdue", ring);
            for (std::size_t r = 0; !overdue && r < ring; ++r)
                expect(!has_member(s, r), "popped, with one left in an earlier ring", r, ring);
            expect(has_member(s, overdue ? shapes_.size() : ring),
                   "popped from a set in which it is not", ring);
            trace("pop", front(ring, node, "popped").index);
        }
    }

    bool has_member(const set& s, std::size_t which) const {
        return std::ranges::any_of(queues_[which].timers, [&](const timer* t) {
            return t->number < s.until[which] &&
                   (which != shapes_.size() || t->number >= s.overdue_from);
        });
    }
    /// Overdue nodes in some set are not in the rings.
    bool any_overdue_detached() const {
        const queue& q = queues_.back();
        return std::ranges::any_of(q.timers,
                                   [&](const timer* t) { return t->number < q.detached; });
    }

    void take_some() {
        for (std::uint64_t left = below(20); left != 0; --left) {
            timer_node* node = nullptr;
            if (!rings_.take_any(node)) {
                expect(rings_.empty() || any_overdue_detached(), "nothing to take, yet not empty",
                       rings_.size());
                return;
            }
            if (node)
                trace("take", front(node->slot(), node, "taken").index);
        }
    }

    // ---- the queues ------------------------------------------------------------------------------

    static const timer_node* node_of(const timer* t) { return &t->node; }

    queue& queue_of(unsigned slot) {
        return slot == timeout_rings::deadline::overdue ? queues_.back() : queues_[slot];
    }

    /// The rings have released a node.
    timer& front(unsigned ring, const timer_node* node, const char* how) {
        queue& q = queue_of(ring);
        auto next = q.timers.begin();
        if (&q == &queues_.back()) // some may be in sets
            next = std::ranges::find(q.timers, node, &node_of);
        expect(next != q.timers.end() && &(*next)->node == node, "not the next of its ring", ring);
        timer& t = **next;
        q.timers.erase(next);
        expect(!node->filed() && node->due == t.due && node->user() == t.index % 16, how, t.index);
        return t;
    }

    void forget(timer& t, unsigned ring) {
        auto& timers = queue_of(ring).timers;
        timers.erase(std::ranges::find(timers, &t));
    }

    static auto fields(const timer_node& n) {
        return std::tuple{n.link, n.due, n.ticket, n.user(), n.slot()};
    }

    void check() {
        std::size_t filed = queues_.back().timers.size();
        for (unsigned r = 0; r < shapes_.size(); ++r) {
            const timeout_rings::deadline where{tick{}, r};
            const auto& timers = queues_[r].timers;
            filed += timers.size();
            expect(timers.size() <= queues_[r].capacity, "more than there are slots", r);
            expect(rings_.oldest(where) == (timers.empty() ? nullptr : &timers.front()->node),
                   "oldest()", r);
            expect(timers.empty() == (rings_.next_wake(where) == tick::never()),
                   "nobody comes for it", r);
        }
        expect(rings_.size() == filed, "size()", rings_.size(), filed);
        expect(rings_.empty() == (filed == 0), "empty()", filed);
    }

    Choices& choices_;
    const bool punctual_; ///< the driver
    std::vector<shape> shapes_;
    std::vector<queue> queues_;
    unsigned marks_;
    std::uint64_t clock_;
    timeout_rings rings_;
    std::vector<std::unique_ptr<timer>> timers_;
    std::list<set> sets_; // a set does not move
};

} // namespace pawl_test

#endif
