// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// timeout_ring against a queue, in lockstep, in one thread. That thread plays parts of other
// threads: a registration that is reserved now and published later, and a driver that reads the
// clock, is delayed, and marks later.

#include <pawl/time/timeout_ring.hpp>

#include "../support/invariants.hpp"
#include "../support/lockstep.hpp"

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

/// A registration in two steps.
namespace pawl::time {
struct timeout_ring_probe {
    template <class Ring>
    static auto reserve(Ring& ring) {
        return ring.reserve();
    }
    template <class Ring, class Reservation, class T>
    static bool publish(Ring& ring, const Reservation& mine, T& item) {
        ring.publish(mine, item);
        return Ring::number_in(mine.word) == ring.open_from_.load(std::memory_order_relaxed);
    }
};
} // namespace pawl::time

namespace {

using pawl::time::ring_position;
using pawl::time::ring_status;
using pawl::time::ring_sweep;
using pawl::time::ring_ticket;
using pawl::time::tick;
using pawl_test::byte_choices;
using pawl_test::expect;
using pawl_test::trace;
using probe = pawl::time::timeout_ring_probe;

constexpr std::uint64_t last = tick::never().count() - 1;

constexpr std::array<std::uint64_t, 8> delays{1, 2, 7, 64, 100, 1000, 1ULL << 40, 1ULL << 62};
constexpr std::array<unsigned, 4> marks{1, 2, 8, 50};
constexpr std::array<std::size_t, 8> capacities{1, 2, 3, 5, 8, 30, 70, 200};
constexpr std::array<std::uint64_t, 4> starts{0, 1000, 1ULL << 63, last - 3000};

/// Growing ends here, so that check_invariant() stays quick.
constexpr std::size_t most_capacity = 1000;

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    return a + std::min(b, tick::never().count() - a);
}

class ring_lockstep {
public:
    explicit ring_lockstep(byte_choices& choices)
        : choices_(choices), clock_(pick(starts)), capacity_(pick(capacities)),
          delay_(pick(delays)), ring_(delay_, capacity_, tick{clock_}, pick(marks)) {
        trace("start", clock_, "capacity", capacity_, "delay", delay_, "marks", ring_.marks());
    }

    void step() {
        const std::uint64_t dice = below(256);
        if (dice < 90)
            enroll();
        else if (dice < 120)
            cancel();
        else if (dice < 160)
            pass(draw_distance());
        else if (dice < 190)
            drive();
        else if (dice < 200)
            rearm();
        else if (dice < 206)
            replace();
        else if (dice < 212)
            force();
        else if (dice < 218)
            drain();
        else if (dice < 226)
            grow();
        else if (dice < 236)
            reserve();
        else if (dice < 246)
            publish();
        else if (dice < 250)
            seen_ = moment{ring_.position(), all_.size(), clock_};
        else if (dice < 255)
            mark_late();
        else if (below(8) == 7)
            close();
        check();
    }

    /// Lets all expire in time, and drains those that never would.
    void finish() {
        while (publish()) {
        }
        std::size_t rounds = 2 * all_.size() + 200;
        for (tick next; (next = ring_.next_wake()) != tick::never(); --rounds) {
            expect(rounds != 0, "expire() does not come to an end", live_);
            pass(next.count() - std::min(clock_, next.count()));
            drive();
            check();
        }
        close();
        while (
            sweep(64, all_.size(), [&](auto out) { return ring_.drain(ring_.position(), out); })) {
        }
        check();
        expect(live_ == 0 && ring_.size() == 0, "not empty at the end", live_, ring_.size());
    }

private:
    struct item {
        std::size_t index;
    };
    using ring = pawl::time::timeout_ring<item>;
    using reservation = decltype(probe::reserve(std::declval<ring&>()));

    enum class phase { reserved, live, done };

    struct registration {
        phase now;
        ring_ticket ticket;
        item* what;
        std::uint64_t began;    // by the clock
        std::uint64_t lateness; // lateness_ then
    };

    /// What a driver saw before it was delayed.
    struct moment {
        ring_position position;
        std::size_t registrations; // before the position
        std::uint64_t stamp;
    };

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    template <class Array>
    typename Array::value_type pick(const Array& from) {
        return from[below(from.size())];
    }

    std::size_t used() const { return all_.size() - head_; }

    item& new_item() {
        items_.push_back({items_.size()});
        return items_.back();
    }

    /// The expected status of a registration. If the ring is full, it frees cancelled entries at
    /// the front.
    ring_status register_in_model() {
        if (closed_)
            return ring_status::closed;
        if (used() >= capacity_)
            pass_over_done(64);
        return used() >= capacity_ ? ring_status::full : ring_status::registered;
    }

    std::size_t pass_over_done(std::size_t most) {
        std::size_t passed = 0;
        for (; passed != most && used() != 0 && all_[head_].now == phase::done; ++passed)
            ++head_;
        return passed;
    }

    void enroll() {
        item& what = new_item();
        const auto r = ring_.try_register(what);
        trace("register", what.index, "status", static_cast<int>(r.status), r.first ? "first" : "");
        expect(r.status == register_in_model(), "try_register()", static_cast<int>(r.status));
        expect((r.status == ring_status::registered) == static_cast<bool>(r.ticket),
               "try_register(): the ticket", r.ticket.word());
        if (r.status != ring_status::registered)
            return;
        all_.push_back({phase::reserved, r.ticket, &what, clock_, lateness_});
        go_live(all_.back(), r.first);
    }

    void reserve() {
        const reservation mine = probe::reserve(ring_);
        trace("reserve", "status", static_cast<int>(mine.status));
        expect(mine.status == register_in_model(), "reserve()", static_cast<int>(mine.status));
        if (mine.status != ring_status::registered)
            return;
        reserved_.emplace_back(mine, all_.size());
        all_.push_back(
            {phase::reserved, ring_ticket::from_word(mine.word), &new_item(), clock_, lateness_});
    }

    bool publish() {
        if (reserved_.empty())
            return false;
        const std::size_t chosen = below(reserved_.size());
        const auto [mine, index] = reserved_[chosen];
        reserved_.erase(reserved_.begin() + static_cast<std::ptrdiff_t>(chosen));
        registration& r = all_[index];
        trace("publish", r.what->index);
        go_live(r, probe::publish(ring_, mine, *r.what));
        return true;
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

    /// One of the last registrations, whatever its state; nullptr if there was none.
    registration* some() {
        return all_.empty()
                   ? nullptr
                   : &all_[all_.size() - 1 - below(std::min<std::size_t>(all_.size(), 256))];
    }

    void cancel() {
        registration* const r = some();
        if (r == nullptr) {
            expect(ring_.cancel({}) == nullptr, "cancelled none");
            return;
        }
        trace("cancel", r->what->index);
        item* const got = ring_.cancel(r->ticket);
        expect(got == (r->now == phase::live ? r->what : nullptr), "cancel()", r->what->index);
        if (got != nullptr)
            end(*r);
    }

    /// A timer restarts in place, if the ring allows it.
    void rearm() {
        registration* const r = some();
        if (r == nullptr || r->now != phase::live || !ring_.in_open_period(r->ticket))
            return;
        trace("rearm", r->what->index);
        r->began = clock_;
        r->lateness = lateness_;
        seen_.reset(); // must be serialised with the driver from position() on
    }

    void replace() {
        registration* const r = some();
        if (r == nullptr)
            return;
        item& to = new_item();
        trace("replace", r->what->index, to.index);
        ring_.replace(r->ticket, to);
        if (r->now == phase::live)
            r->what = &to;
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

    void pass(std::uint64_t distance) {
        clock_ = std::min(plus(clock_, distance), last);
        trace("clock", clock_);
    }

    /// A driver comes, later than requested.
    tick come() {
        const tick asked = ring_.next_wake();
        lateness_ += clock_ - std::clamp(asked.count(), came_, clock_);
        came_ = clock_;
        return asked;
    }

    void drive() {
        const tick asked = come();
        trace("mark", clock_);
        ring_.mark(tick{clock_}, ring_.position());

        const std::size_t room = below(4) == 0 ? 64 : below(6);
        bool more = true;
        for (std::size_t head = all_.size(); more && head != head_;) {
            head = head_;
            const std::size_t live = live_;
            more = sweep(room, std::nullopt,
                         [&](auto out) { return ring_.expire(tick{clock_}, out); });
            expect(live == live_ || asked.count() <= clock_, "next_wake() was later", asked.count(),
                   clock_);
            if (below(8) == 7)
                break;
        }
        told_ = ring_.next_wake();
        expect(more || told_.count() > clock_, "complete, but to be called again", told_.count(),
               clock_);
    }

    void force() {
        come();
        sweep(below(8), all_.size(), [&](auto out) { return ring_.force(out); });
        told_ = ring_.next_wake();
    }

    /// Up to now, or up to what a driver saw before.
    void drain() {
        come();
        const moment to =
            seen_ && below(2) == 0 ? *seen_ : moment{ring_.position(), all_.size(), 0};
        sweep(below(8), to.registrations, [&](auto out) { return ring_.drain(to.position, out); });
        told_ = ring_.next_wake();
    }

    void mark_late() {
        if (!seen_)
            return;
        come();
        trace("mark", seen_->stamp, "for registrations", seen_->registrations);
        ring_.mark(tick{seen_->stamp}, seen_->position);
        told_ = ring_.next_wake();
    }

    /// A sweep up to a registration, or, without one, up to the last registration that came out.
    template <class Call>
    bool sweep(std::size_t room, std::optional<std::size_t> limit, Call call) {
        std::vector<item*> out(room);
        const ring_sweep result = call(std::span(out));
        trace(limit ? "force or drain" : "expire", "room", room, "emitted", result.emitted,
              result.more ? "and left some" : "");
        expect(!result.busy && result.emitted <= room, "sweep", result.emitted, room);

        std::size_t emitted = 0;
        std::size_t left = room;
        for (; left != 0 && used() != 0; --left) {
            registration& r = all_[head_];
            if (r.now == phase::reserved ||
                (r.now == phase::live && (limit ? head_ >= *limit : emitted == result.emitted)))
                break;
            if (r.now == phase::live) {
                expect(emitted != result.emitted, "not emitted", r.what->index);
                expect(out[emitted] == r.what, "emitted another", out[emitted]->index,
                       r.what->index);
                ++emitted;
                end(r);
                if (!limit)
                    check_time(r);
            }
            ++head_;
        }
        expect(emitted == result.emitted, "emitted more", result.emitted, emitted);
        if (limit)
            expect(result.more == (head_ < *limit), "more", result.more, head_, *limit);
        else
            expect(!result.more || left == 0 || (used() != 0 && all_[head_].now == phase::reserved),
                   "stopped for no reason", left);
        return result.more;
    }

    /// [began + delay, began + delay + period], plus the driver's lateness in the meantime.
    void check_time(const registration& r) const {
        const std::uint64_t least = plus(r.began, delay_);
        const std::uint64_t most = plus(plus(least, ring_.period()), lateness_ - r.lateness);
        expect(clock_ >= least, "early", r.what->index, clock_, least);
        expect(clock_ <= most, "late", r.what->index, clock_, most);
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

    byte_choices& choices_;
    std::uint64_t clock_;
    std::size_t capacity_;
    std::uint64_t delay_;
    ring ring_;

    std::deque<item> items_;
    std::deque<registration> all_;
    std::size_t head_ = 0; // index in all_
    std::size_t live_ = 0;
    std::vector<std::pair<reservation, std::size_t>> reserved_; // with its index in all_
    bool closed_ = false;

    tick told_ = tick::never();   // when the driver believes that it must come
    std::uint64_t came_ = clock_; // when the driver came last
    std::uint64_t lateness_ = 0;  // of the driver, in total
    std::optional<moment> seen_;
    std::unique_ptr<ring::block> room_;
    std::size_t room_for_ = 0; // the capacity for which room_ was made
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    byte_choices choices({data, size});
    ring_lockstep both(choices);
    while (!choices.empty())
        both.step();
    both.finish();
    return 0;
}
