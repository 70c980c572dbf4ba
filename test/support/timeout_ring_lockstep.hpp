// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   timeout_ring against a queue, in lockstep, in one thread. That thread plays parts of other
//   threads: a registration that is reserved now and published later, and a driver that reads the
//   clock, is delayed, and marks later.
//
// Model
//   Each public call is made on both, and returns what the ring returned after the queue has
//   agreed. step() draws such calls; the stories of test/vectors/ name them.

#ifndef PAWL_TEST_SUPPORT_TIMEOUT_RING_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_TIMEOUT_RING_LOCKSTEP_HPP

#include <pawl/time/timeout_ring.hpp>

#include "invariants.hpp"
#include "lockstep.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pawl::time {
struct timeout_ring_probe {
    /// The two halves of a registration, between which a thread may be preempted.
    template <class Ring>
    static auto reserve(Ring& ring) {
        return ring.reserve();
    }
    template <class Ring, class Reservation, class T>
    static bool publish(Ring& ring, const Reservation& mine, T& item) {
        ring.publish(mine, item);
        return Ring::number_in(mine.word) == ring.open_from_.load(std::memory_order_relaxed);
    }

    /// Positions: the first used slot, the start of the newest sub-period, the next free slot, and
    /// the limit of the sweep at `now`, or of an earlier sweep.
    template <class Ring>
    static std::array<std::uint64_t, 4> positions(const Ring& ring, tick now) {
        const std::uint64_t head = ring.head_.load();
        std::uint64_t limit = head;
        for (const auto& mark : ring.marks_) {
            if (ring.is_due(mark, now))
                limit = std::max(limit, mark.number);
        }
        return {head, ring.open_from_.load(), ring.tail_number(), limit};
    }
};
} // namespace pawl::time

namespace pawl_test {

template <class Choices>
class timeout_ring_lockstep {
    using tick = pawl::time::tick;
    using ring_status = pawl::time::ring_status;
    using ring_ticket = pawl::time::ring_ticket;
    using probe = pawl::time::timeout_ring_probe;

public:
    /// In a longer one, the ring often waits for an unpublished registration.
    static constexpr std::uint64_t longest_run = 500;

    struct shape {
        std::uint64_t start;
        std::size_t capacity;
        std::uint64_t delay;
        unsigned marks;
    };

    explicit timeout_ring_lockstep(Choices& choices)
        : timeout_ring_lockstep(choices, draw_shape(choices)) {}

    timeout_ring_lockstep(Choices& choices, const shape& s)
        : choices_(choices), clock_(s.start), capacity_(s.capacity), delay_(s.delay),
          ring_(delay_, capacity_, tick{clock_}, s.marks) {
        trace("start", clock_, "capacity", capacity_, "delay", delay_, "marks", ring_.marks());
    }

    void step() {
        const std::uint64_t dice = below(256);
        if (dice < 90)
            (void)enroll();
        else if (dice < 120)
            (void)cancel(some());
        else if (dice < 160)
            pass(draw_distance());
        else if (dice < 190)
            drive();
        else if (dice < 200)
            rearm(at(some()));
        else if (dice < 206)
            replace(at(some()));
        else if (dice < 212)
            (void)force(below(8));
        else if (dice < 218)
            drain_some();
        else if (dice < 226)
            grow();
        else if (dice < 236)
            (void)reserve();
        else if (dice < 246)
            (void)publish_some();
        else if (dice < 250)
            seen_ = here();
        else if (dice < 255)
            mark_late();
        else if (below(8) == 7)
            close();
        check();
    }

    /// Lets all expire in time, and drains those that never would.
    void finish() {
        while (publish_some()) {
        }
        std::size_t rounds = 2 * all_.size() + 200;
        for (tick next; (next = ring_.next_wake()) != tick::never(); --rounds) {
            expect(rounds != 0, "expire() does not come to an end", live_);
            pass(next.count() - std::min(clock_, next.count()));
            drive();
            check();
        }
        close();
        while (drain(here(), 64).more) {
        }
        check();
        expect(live_ == 0 && ring_.size() == 0, "not empty at the end", live_, ring_.size());
    }

    /// What a driver saw before it was delayed.
    struct moment {
        pawl::time::ring_position position;
        std::size_t registrations; // before the position
        std::uint64_t stamp;
    };

    /// The registrations that came out, whether there are more, and whether slots were freed.
    struct swept {
        std::vector<std::size_t> emitted;
        bool more;
        bool advanced;
    };

    // --- calls, with registrations by their numbers in the order of slots --------------------

    bool enroll() {
        item& what = new_item();
        const auto r = ring_.try_register(what);
        trace("register", what.index, "status", static_cast<int>(r.status), r.first ? "first" : "");
        expect((r.status == ring_status::registered) == static_cast<bool>(r.ticket),
               "try_register(): the ticket", r.ticket.word());
        if (!enter(r.status, r.ticket, what))
            return false;
        go_live(all_.back(), r.first);
        return true;
    }

    bool reserve() {
        const reservation mine = probe::reserve(ring_);
        trace("reserve", "status", static_cast<int>(mine.status));
        const bool reserved = enter(mine.status, ring_ticket::from_word(mine.word), new_item());
        if (reserved)
            reserved_.emplace_back(mine, all_.size() - 1);
        return reserved;
    }

    void publish(std::size_t index) {
        const auto at = std::ranges::find(reserved_, index, &reserved_type::second);
        expect(at != reserved_.end(), "published, but not reserved", index);
        const reservation mine = at->first;
        reserved_.erase(at);
        registration& r = all_[index];
        trace("publish", r.what->index);
        go_live(r, probe::publish(ring_, mine, *r.what));
    }

    bool cancel(std::size_t index) {
        registration& r = at(index);
        trace("cancel", index);
        const bool live = r.now == phase::live;
        expect(ring_.cancel(r.ticket) == (live ? r.what : nullptr), "cancel()", index);
        if (live)
            end(r);
        return live;
    }

    void pass(std::uint64_t distance) {
        clock_ = std::min(plus(clock_, distance), last);
        trace("clock", clock_);
    }

    /// Returns when the driver, which may be late, was to come.
    tick mark(const moment& at) {
        const tick asked = come();
        trace("mark", at.stamp, "for registrations", at.registrations);
        ring_.mark(tick{at.stamp}, at.position);
        told_ = ring_.next_wake();
        return asked;
    }

    swept expire(std::size_t room) {
        return sweep(room, std::nullopt, [&](auto out) { return ring_.expire(tick{clock_}, out); });
    }

    swept force(std::size_t room) {
        come();
        return sweep(room, all_.size(), [&](auto out) { return ring_.force(out); });
    }

    swept drain(const moment& to, std::size_t room) {
        come();
        return sweep(room, to.registrations,
                     [&](auto out) { return ring_.drain(to.position, out); });
    }

    void close() {
        trace("close");
        ring_.close();
        closed_ = true;
    }

    void check() const {
        expect(ring_.size() == used(), "size()", ring_.size(), used());
        expect(ring_.capacity() == capacity_, "capacity()", ring_.capacity(), capacity_);
        expect(ring_.closed() == closed_, "closed()", closed_);
        if (!reserved_.empty())
            return;
        expect(told_ <= ring_.next_wake(), "a driver should have been told", told_.count(),
               ring_.next_wake().count());
        pawl_test::check_invariant(ring_);
    }

    /// For questions that change nothing.
    const auto& get() const { return ring_; }
    moment here() const { return {ring_.position(), all_.size(), clock_}; }
    std::uint64_t clock() const { return clock_; }

private:
    struct item {
        std::size_t index;
    };
    using ring = pawl::time::timeout_ring<item>;
    using reservation = decltype(probe::reserve(std::declval<ring&>()));
    using reserved_type = std::pair<reservation, std::size_t>; // with its number

    enum class phase { reserved, live, done };

    struct registration {
        phase now;
        ring_ticket ticket;
        item* what;
        std::uint64_t began;    // by the clock
        std::uint64_t lateness; // lateness_ then
    };

    static constexpr std::uint64_t last = tick::never().count() - 1;

    /// Growing ends here, so that check_invariant() stays quick.
    static constexpr std::size_t most_capacity = 1000;

    static std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
        return a + std::min(b, tick::never().count() - a);
    }

    // --- choices -----------------------------------------------------------------------------

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    static shape draw_shape(Choices& choices) {
        constexpr std::array<std::uint64_t, 4> starts{0, 1000, 1ULL << 63, last - 3000};
        constexpr std::array<std::size_t, 8> capacities{1, 2, 3, 5, 8, 30, 70, 200};
        constexpr std::array<std::uint64_t, 8> delays{1,   2,    7,          64,
                                                      100, 1000, 1ULL << 40, 1ULL << 62};
        constexpr std::array<unsigned, 4> marks{1, 2, 8, 50};
        const auto pick = [&](const auto& from) { return from[choices.below(from.size())]; };
        return {pick(starts), pick(capacities), pick(delays), pick(marks)};
    }

    /// One of the last registrations, whatever its state, or a number without one.
    std::size_t some() {
        return all_.empty() ? 0 : all_.size() - 1 - below(std::min<std::size_t>(all_.size(), 256));
    }

    bool publish_some() {
        if (reserved_.empty())
            return false;
        publish(reserved_[below(reserved_.size())].second);
        return true;
    }

    /// A timer restarts in place, if the ring allows it.
    void rearm(registration& r) {
        if (r.now != phase::live || !ring_.in_open_period(r.ticket))
            return;
        trace("rearm", r.what->index);
        r.began = clock_;
        r.lateness = lateness_;
        seen_.reset(); // must be serialised with the driver from position() on
    }

    void replace(registration& r) {
        item& to = new_item();
        trace("replace", r.ticket.word(), to.index);
        ring_.replace(r.ticket, to);
        if (r.now == phase::live)
            r.what = &to;
    }

    std::uint64_t draw_distance() {
        switch (below(6)) {
        case 0:
            return delay_ - below(2);
        case 1:
            return ring_.period() - below(2);
        case 2: {
            const std::uint64_t next = ring_.next_wake().count();
            return next > clock_ && next <= last ? next - clock_ - below(2) : 0;
        }
        case 3:
            return below(delay_ + 1);
        default:
            return below(4);
        }
    }

    void drive() {
        const tick asked = mark(here());
        const std::size_t room = below(4) == 0 ? 64 : below(6);
        bool more = true;
        for (bool advanced = used() != 0; more && advanced;) {
            const swept s = expire(room);
            expect(s.emitted.empty() || asked.count() <= clock_, "next_wake() was later",
                   asked.count(), clock_);
            more = s.more;
            advanced = s.advanced;
            if (below(8) == 7)
                break;
        }
        expect(more || told_.count() > clock_, "complete, but to be called again", told_.count(),
               clock_);
    }

    /// Up to now, or up to what a driver saw before.
    void drain_some() {
        const moment to = seen_ && below(2) == 0 ? *seen_ : here();
        (void)drain(to, below(8));
    }

    void mark_late() {
        if (seen_)
            (void)mark(*seen_);
    }

    void grow() {
        if (below(2) == 0 && capacity_ <= most_capacity) {
            room_ = ring_.prepare_growth();
            room_for_ = capacity_;
        }
        if (below(4) == 3)
            return; // retry later with this room, when it may no longer fit
        const bool expected = !closed_ && used() >= capacity_ && room_ && room_for_ == capacity_;
        trace("grow", expected ? "" : "in vain");
        expect(ring_.grow(std::move(room_)) == expected, "grow()", expected, used(), capacity_);
        if (expected)
            capacity_ *= 2;
        room_.reset();
    }

    // --- the model ---------------------------------------------------------------------------

    std::size_t used() const { return all_.size() - head_; }

    /// A number without a registration stands for one that is over.
    registration& at(std::size_t index) {
        return index < all_.size() ? all_[index] : none_ = {phase::done, {}, nullptr, 0, 0};
    }

    item& new_item() {
        items_.push_back({items_.size()});
        return items_.back();
    }

    /// A registration with this result, which must be the expected one. If the ring is full, it
    /// frees cancelled entries at the front.
    bool enter(ring_status status, ring_ticket ticket, item& what) {
        if (!closed_ && used() >= capacity_) {
            for (int left = 64; left != 0 && used() != 0 && all_[head_].now == phase::done; --left)
                ++head_;
        }
        expect(status == (closed_               ? ring_status::closed
                          : used() >= capacity_ ? ring_status::full
                                                : ring_status::registered),
               "a registration's status", static_cast<int>(status));
        if (status == ring_status::registered)
            all_.push_back({phase::reserved, ticket, &what, clock_, lateness_});
        return status == ring_status::registered;
    }

    void go_live(registration& r, bool first) {
        r.now = phase::live;
        ++live_;
        if (first)
            told_ = ring_.next_wake();
    }

    void end(registration& r) {
        r.now = phase::done;
        --live_;
    }

    /// A driver comes, later than requested.
    tick come() {
        const tick asked = ring_.next_wake();
        lateness_ += clock_ - std::clamp(asked.count(), came_, clock_);
        came_ = clock_;
        return asked;
    }

    /// A sweep up to a registration, or, without one, up to the last registration that came out.
    template <class Call>
    swept sweep(std::size_t room, std::optional<std::size_t> limit, Call call) {
        std::vector<item*> out(room);
        const pawl::time::ring_sweep result = call(std::span(out));
        trace(limit ? "force or drain" : "expire", "room", room, "emitted", result.emitted,
              result.more ? "and left some" : "");
        expect(!result.busy && result.emitted <= room, "sweep", result.emitted, room);

        swept done{{}, result.more, false};
        std::size_t left = room;
        for (; left != 0 && used() != 0; --left) {
            registration& r = all_[head_];
            if (r.now == phase::reserved ||
                (r.now == phase::live &&
                 (limit ? head_ >= *limit : done.emitted.size() == result.emitted)))
                break;
            if (r.now == phase::live) {
                expect(done.emitted.size() != result.emitted, "not emitted", r.what->index);
                const item* const got = out[done.emitted.size()];
                expect(got == r.what, "emitted another", got->index, r.what->index);
                done.emitted.push_back(head_);
                end(r);
                if (!limit)
                    check_time(r);
            }
            ++head_;
            done.advanced = true;
        }
        expect(done.emitted.size() == result.emitted, "emitted more", result.emitted);
        if (limit)
            expect(result.more == (head_ < *limit), "more", result.more, head_, *limit);
        else
            expect(!result.more || left == 0 || (used() != 0 && all_[head_].now == phase::reserved),
                   "stopped for no reason", left);
        told_ = ring_.next_wake();
        return done;
    }

    /// [began + delay, began + delay + period], plus the driver's lateness in the meantime.
    void check_time(const registration& r) const {
        const std::uint64_t least = plus(r.began, delay_);
        const std::uint64_t most = plus(plus(least, ring_.period()), lateness_ - r.lateness);
        expect(clock_ >= least, "early", r.what->index, clock_, least);
        expect(clock_ <= most, "late", r.what->index, clock_, most);
    }

    Choices& choices_;
    std::uint64_t clock_;
    std::size_t capacity_;
    std::uint64_t delay_;
    ring ring_;

    std::deque<item> items_;
    std::deque<registration> all_;
    registration none_{};
    std::size_t head_ = 0; // index in all_
    std::size_t live_ = 0;
    std::vector<reserved_type> reserved_;
    bool closed_ = false;

    tick told_ = tick::never();   // when the driver believes that it must come
    std::uint64_t came_ = clock_; // when the driver came last
    std::uint64_t lateness_ = 0;  // of the driver, in total
    std::optional<moment> seen_;
    std::unique_ptr<typename ring::block> room_;
    std::size_t room_for_ = 0; // the capacity for which room_ was made
};

} // namespace pawl_test

#endif
