// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The outcomes that P1 to P10 allow: a list of all waits, and the allowed outcomes of each. The
//   model is slow, and knows nothing of wheels, filed ticks, runners or drivers.
//
// Model
//   `allowed` has the ways in which a wait may end; `counts` tells whether a cancel counts it. The
//   simulation reports each call and its result to the model, each handler, and each change of a
//   clock. The model fails if one of them was not allowed.
//   The model cannot know whether a wait whose expiry has been reached has fallen due. That only
//   matters to expire_all(), which leaves due waits alone; both are allowed then.
//
// How to extend it
//   A new call: report its effect to the model, beside started(), cancelled() and rearmed(). A new
//   outcome: a bit in `outcome`. A promise about a state: in settled(), which checks a context that
//   has no more ready work.

#ifndef PAWL_TEST_SIMULATION_MODEL_HPP
#define PAWL_TEST_SIMULATION_MODEL_HPP

#include "simulation/clocks.hpp"
#include "simulation/report.hpp"
#include "simulation/scenario.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simulation {

/// How a wait may end, as bits.
enum outcome : unsigned {
    on_time = 1,  ///< with success, once its expiry has been reached
    early = 2,    ///< with success, at any time
    aborted = 4,  ///< operation_aborted
    expired = 8,  ///< the error of expire_all()
    refused = 16, ///< no_buffer_space
    dropped = 32, ///< destroyed uncalled
};

/// Whether a cancel or a re-arm counts a wait.
enum class counts { yes, perhaps, no };

/// A timer, while it exists.
struct timer_model {
    bool there = false;
    int serial = 0; ///< keeps its value when the timer is moved
    kind type{};
    int context = 0;
    int life = 0; ///< number of the context in that place
    int thread = 0;
    bool native = false;
    bool in_strand = false; ///< whether its executor is a strand
    bool waited = false;
    std::int64_t expiry = 0;
    bool overdue = false; ///< its expiry had passed when it was set
};

struct wait_model {
    int id = 0;
    int timer = -1; ///< its slot; -1: the timer was destroyed
    kind type{};
    int context = 0, life = 0, thread = 0;
    int runs_in = 0, runs_in_life = 0; ///< the context of its handler
    bool native = false;               ///< neither executor is foreign
    bool over = false;
    unsigned allowed = on_time;
    counts counted = counts::yes;
    std::int64_t expiry = 0;
    bool overdue = false;
    std::uint64_t started = 0; ///< moment of its start
    std::uint64_t armed = 0;   ///< moment when it last got a place in the order
    std::uint64_t reached = 0; ///< moment when its tick started; 0: not yet
    bool ahead = false;        ///< reached after `armed`
    bool seen = false;         ///< its expiry was reached while its context ran
    bool queued = false;       ///< maybe it was due before it was moved: then it keeps its place
    bool handed = false;       ///< its context has no more work for it: the other context has
};

class model {
public:
    explicit model(const setup& s) : contexts(s.contexts.size()), setup_(s) {}

    std::array<timer_model, timer_slots> timers;

    // --- contexts -----------------------------------------------------------------------------

    struct context_model {
        int life = 0;
        bool there = true;
        bool dying = false;
        int running = 0;            ///< calls of its run functions, nested ones included
        std::int64_t last_ring = 0; ///< last start of a wait in a ring, by the steady clock
        std::uint64_t looked = 0;   ///< moment when manual_clock notified it
        std::int64_t manual = 0;    ///< reading of manual_clock then
    };
    std::vector<context_model> contexts;

    // --- calls --------------------------------------------------------------------------------

    /// A wait of the timer is about to be started. @return its id.
    int started(int timer, int runs_in, bool native) {
        const timer_model& t = timers[static_cast<std::size_t>(timer)];
        wait_model w;
        w.id = ++last_id_;
        w.timer = timer;
        w.type = t.type;
        w.context = t.context;
        w.life = t.life;
        w.thread = t.thread;
        w.runs_in = runs_in;
        w.runs_in_life = contexts[at(runs_in)].life;
        w.native = native && t.native && runs_in == t.context;
        w.started = ++moment_;
        arm(w, t);
        if (const wait_model* peer = first_of(timer)) { // they share its place, or it is due
            w.armed = peer->armed;
            w.ahead = w.ahead && peer->ahead && peer->reached == 0 && peer->counted == counts::yes;
        }
        may_overflow(w);
        std::erase_if(waits_, [](const wait_model& v) { return v.over; });
        waits_.push_back(w);
        ++begun_;
        return w.id;
    }

    /// At most `limit` waits of the timer were cancelled; `count` was returned.
    void cancelled(int timer, std::size_t limit, std::size_t count, const char* what) {
        std::vector<wait_model*> mine = of(timer);
        check_count(mine, limit, count, what);
        if (count_of(mine, counts::perhaps) != 0 && limit < mine.size()) {
            for (wait_model* w : mine) { // which of them is unknown
                w->allowed |= aborted;
                w->counted = counts::perhaps;
            }
            return;
        }
        mine.resize(std::min(limit, mine.size()));
        for (wait_model* w : mine)
            cancel(*w);
    }

    /// All waits of the timer were moved to its expiry; `count` was returned.
    void rearmed(int timer, std::size_t count, const char* what) {
        std::vector<wait_model*> mine = of(timer);
        check_count(mine, mine.size(), count, what);
        for (wait_model* w : mine) {
            arm(*w, timers[static_cast<std::size_t>(timer)]);
            w->armed = mine.front()->armed; // they share their place
        }
    }

    /// A cancellation slot has been told to cancel the wait.
    void cancelled(int id) {
        if (wait_model* w = find(id); w && !w->over && w->counted != counts::no)
            cancel(*w);
    }

    /// @param others maximum number of waits that are not the model's.
    void expired_all(int context, const kind* type, unsigned end, std::size_t count,
                     std::size_t others) {
        std::size_t least = 0, most = 0;
        for (wait_model& w : waits_) {
            if (w.over || w.context != context || w.life != contexts[at(context)].life ||
                w.counted == counts::no || (type && w.type != *type))
                continue;
            ++most;
            if (may_be_due(w)) {
                w.allowed |= end;
                w.counted = counts::perhaps;
            } else {
                ++least;
                w.allowed = end;
                w.counted = counts::no;
            }
        }
        most += others;
        if (count < least || count > most)
            fail("P10: expire_all() returned " + std::to_string(count) + ", allowed are " +
                 std::to_string(least) + " to " + std::to_string(most));
    }

    void moved(int from, int to) {
        for (wait_model* w : all_of(from))
            w->timer = to;
        timers[at(to)] = timers[at(from)];
        timers[at(from)].expiry = 0;
        timers[at(from)].overdue = false;
        timers[at(from)].waited = false;
    }

    /// The timer is destroyed, or assigned to.
    void timer_left(int timer) {
        for (wait_model* w : all_of(timer)) {
            if (w->counted != counts::no)
                cancel(*w);
            w->timer = -1;
        }
        timers[at(timer)].there = false;
    }

    // --- clocks and contexts ------------------------------------------------------------------

    /// A clock has moved.
    void clock_moved() {
        ++moment_;
        for (int k = 0; k < kinds; ++k)
            latest_[at(k)] = std::max(latest_[at(k)], now_of(static_cast<kind>(k)));
        for (wait_model& w : waits_) {
            if (w.over)
                continue;
            const std::int64_t now = now_of(w.type);
            if (w.reached == 0 && now >= reached_at(w))
                w.reached = moment_;
            if (now >= w.expiry && contexts[at(w.context)].running != 0)
                w.seen = true;
        }
    }

    /// The clock of those timers was set, before clock_moved().
    void clock_set(kind type) {
        jumped_[at(static_cast<int>(type))] = virtual_time::steady;
        for (wait_model& w : waits_) // waits that were reached before need not be in order
            w.ahead = w.ahead && (w.type != type || w.reached == 0);
    }

    /// The context is about to run.
    void run_begins(int context) {
        ++contexts[at(context)].running;
        clock_moved();
    }
    void run_ends(int context) {
        clock_moved();
        --contexts[at(context)].running;
    }

    void manual_looked(int context) {
        contexts[at(context)].looked = ++moment_;
        contexts[at(context)].manual = now_of(kind::manual);
        perhaps_looked(context);
    }
    void perhaps_looked(int context) {
        for (wait_model& w : waits_) {
            if (!w.over && w.context == context && now_of(w.type) >= w.expiry)
                w.seen = true; // it makes the services of other clocks check, too
        }
    }

    void shutdown_begins(int context) {
        contexts[at(context)].dying = true;
        for (wait_model& w : waits_) {
            if (!concerns(w, context))
                continue;
            w.allowed |= aborted;
            if (!setup_.contexts[at(context)].deliver || w.context != context ||
                w.runs_in != context)
                w.allowed |= dropped;
            if (w.counted == counts::yes)
                w.counted = counts::perhaps;
        }
    }

    void shutdown_ends(int context) {
        contexts[at(context)].dying = false;
        contexts[at(context)].there = false;
        for (wait_model& w : waits_) {
            if (w.over || !concerns(w, context))
                continue;
            if (w.runs_in == context && w.runs_in_life == contexts[at(context)].life)
                fail("P10: " + text(w) + " has outlived its context");
            w.counted =
                w.counted == counts::no ? counts::no : counts::perhaps; // it was handed over
        }
        ++contexts[at(context)].life;
    }

    /// The context has no more ready work.
    /// @param stopped whether it is stopped.
    /// @param work whether it has other work. @param perhaps whether it may have.
    void settled(int context, bool stopped, bool work, bool perhaps) {
        for (wait_model& w : waits_) {
            if (w.over || !concerns(w, context))
                continue;
            const bool ends_here = w.runs_in == context;
            if (!must_end(w)) {
                (ends_here || !may_be_due(w) ? work : perhaps) = true;
                w.handed = false;
                continue;
            }
            const bool gone = contexts[at(w.context)].life != w.life;
            if (ends_here && (w.context == context || w.handed || gone))
                fail((w.allowed & (on_time | early)) != 0 && w.counted != counts::no
                         ? "P2: " + text(w) + " is late"
                         : "P3: " + text(w) + " is cancelled and does not end");
            w.handed = w.handed || w.context == context;
            (ends_here ? work : perhaps) = true;
        }
        if (stopped && work)
            fail("P9: the context is out of work, and waits are pending");
        if (!stopped && !work && !perhaps)
            fail("P9: the context has work, and no wait is pending");
    }

    // --- handlers -----------------------------------------------------------------------------

    void completed(int id, unsigned how) {
        wait_model& w = end(id);
        ++completed_;
        const context_model& c = contexts[at(w.runs_in)];
        if (c.running == 0 && !contexts[at(w.context)].dying && !c.dying)
            fail("P3: the handler of " + text(w) + " is invoked while its context does not run");
        if (how == on_time) {
            if ((w.allowed & early) == 0 && (w.allowed & on_time) == 0)
                fail("P4: " + text(w) + " completes with success, but was cancelled");
            if ((w.allowed & early) == 0 && !(w.seen || now_of(w.type) >= w.expiry))
                fail("P1: " + text(w) + " is early: its clock says " +
                     std::to_string(now_of(w.type)));
            // For a ring, a delay of 0, as here, means that the timer is overdue.
            const bool at_end = is_ring(w.type) && now_of(w.type) == latest;
            if ((w.allowed & early) == 0 && w.expiry == latest && !w.overdue && !at_end)
                fail("P1: " + text(w) + " was never to end");
            check_order(w);
        } else if ((w.allowed & how) == 0) {
            fail("P3: " + text(w) + " completes with what was not asked for: outcome " +
                 std::to_string(how) + ", allowed " + std::to_string(w.allowed));
        }
    }

    void destroyed(int id) {
        const wait_model& w = end(id);
        ++destroyed_;
        if ((w.allowed & dropped) == 0)
            fail("P3: the handler of " + text(w) + " is destroyed uncalled");
    }
    /// A wait could not be started.
    void not_started(int id) {
        if (wait_model* w = find(id); w && !w->over)
            fail("P3: the handler of " + text(*w) + " survives an exception");
    }
    void allow(int id, unsigned how, bool on) {
        if (wait_model* w = find(id); w && !w->over)
            w->allowed = on ? w->allowed | how : w->allowed & ~how;
    }

    /// The end of the simulation.
    void finished() {
        for (const wait_model& w : waits_) {
            if (!w.over)
                fail("P3: " + text(w) + " has neither completed nor been destroyed");
        }
        if (begun_ != completed_ + destroyed_)
            fail("P3: started " + std::to_string(begun_) + ", completed " +
                 std::to_string(completed_) + ", destroyed " + std::to_string(destroyed_));
    }

    // --- questions ----------------------------------------------------------------------------

    [[nodiscard]] bool pending(int id) {
        const wait_model* w = find(id);
        return w && !w->over;
    }
    /// A timer of another context has a wait whose handler must run in this one.
    [[nodiscard]] bool awaited_from_elsewhere(int context) const {
        for (const wait_model& w : waits_) {
            if (!w.over && w.runs_in == context && w.context != context &&
                contexts[at(w.context)].life == w.life)
                return true;
        }
        return false;
    }
    /// Its context is being destroyed, or has been destroyed.
    void starts_too_late(int id) {
        if (wait_model* w = find(id)) {
            w->allowed |= aborted | dropped;
            w->counted = counts::perhaps;
        }
    }
    /// The result of advance_to_next(): it must move manual_clock to the next deadline, unless a
    /// wait is, or may be, already due.
    struct range {
        std::int64_t least, most;
    };
    [[nodiscard]] range next_manual(int context) const {
        const std::int64_t now = now_of(kind::manual);
        range next{latest, now};
        for (const wait_model& w : waits_) {
            if (w.over || w.type != kind::manual || w.context != context ||
                w.life != contexts[at(context)].life)
                continue;
            if (may_be_due(w))
                return {now, latest};
            if (w.expiry > latest - 2 * precision(w))
                next.most = latest; // it may not be alone: others may have been cancelled
            else
                next.least = std::min(next.least, reached_at(w));
        }
        return next.least == latest ? range{now, next.most} : range{next.least, next.least};
    }
    [[nodiscard]] std::size_t pending() const {
        return static_cast<std::size_t>(std::count_if(waits_.begin(), waits_.end(),
                                                      [](const wait_model& w) { return !w.over; }));
    }
    [[nodiscard]] std::uint64_t begun() const noexcept { return begun_; }

private:
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }

    [[nodiscard]] wait_model* find(int id) {
        for (wait_model& w : waits_) {
            if (w.id == id)
                return &w;
        }
        return nullptr;
    }

    wait_model& end(int id) {
        wait_model* w = find(id);
        if (!w || w->over)
            fail("P3: a handler is told twice");
        w->over = true;
        return *w;
    }

    /// The waits of a timer that a cancel counts, or may count, oldest first.
    std::vector<wait_model*> of(int timer) {
        std::vector<wait_model*> all = all_of(timer);
        std::erase_if(all, [](const wait_model* w) { return w->counted == counts::no; });
        return all;
    }
    std::vector<wait_model*> all_of(int timer) {
        std::vector<wait_model*> all;
        for (wait_model& w : waits_) {
            if (!w.over && w.timer == timer)
                all.push_back(&w);
        }
        return all;
    }
    const wait_model* first_of(int timer) {
        const auto all = of(timer);
        return all.empty() ? nullptr : all.front();
    }

    static std::size_t count_of(const std::vector<wait_model*>& waits, counts c) {
        std::size_t n = 0;
        for (const wait_model* w : waits)
            n += w->counted == c;
        return n;
    }

    static void cancel(wait_model& w) {
        w.allowed = w.counted == counts::yes ? unsigned{aborted} : w.allowed | aborted;
        w.counted = counts::no;
    }

    static void check_count(const std::vector<wait_model*>& waits, std::size_t limit,
                            std::size_t count, const char* what) {
        const std::size_t least = std::min(limit, count_of(waits, counts::yes));
        const std::size_t most = std::min(limit, waits.size());
        if (count < least || count > most)
            fail(std::string("P4: ") + what + " returned " + std::to_string(count) +
                 ", allowed are " + std::to_string(least) + " to " + std::to_string(most));
    }

    /// The wait is filed for the expiry of its timer.
    void arm(wait_model& w, const timer_model& t) {
        const std::int64_t now = now_of(t.type);
        const bool runs = contexts[at(w.context)].running != 0;
        // The clock may have moved since clock_moved(), within a run.
        if (w.armed != 0 && now >= w.expiry && runs)
            w.seen = true;
        w.expiry = t.expiry;
        w.overdue = t.overdue;
        w.armed = ++moment_;
        w.reached = now >= reached_at(w) ? w.armed : 0;
        // A wait that was due keeps its place in the queue.
        w.queued = w.queued || w.seen;
        w.ahead = w.reached == 0 && !w.queued && !w.overdue;
        // A wait that is filed before a set-back is noticed is overdue for the wheel: its start
        // determines the order.
        w.ahead = w.ahead && now >= latest_[at(static_cast<int>(t.type))];
        w.seen = now >= w.expiry && runs;
        w.handed = false;
        contexts[at(w.context)].last_ring = virtual_time::steady;
    }

    /// For a wait in a full ring.
    void may_overflow(wait_model& w) {
        const context_setup& c = setup_.contexts[at(w.context)];
        if (!is_ring(w.type))
            return;
        if (c.when_full == pawl::ring_overflow::reject) {
            w.allowed |= refused;
            w.counted = counts::perhaps;
        } else if (c.when_full != pawl::ring_overflow::grow) {
            w.allowed |= early;
        }
    }

    [[nodiscard]] std::int64_t precision(const wait_model& w) const {
        return std::max<std::int64_t>(1,
                                      setup_.contexts[at(w.context)].precision / unit_of(w.type));
    }

    /// The first tick that starts at its expiry, or later; the end of time is in no tick.
    [[nodiscard]] std::int64_t tick_of(const wait_model& w) const {
        if (w.expiry == latest)
            return latest;
        const std::int64_t p = precision(w);
        return w.expiry / p + (w.expiry % p > 0); // the division rounds up below zero
    }
    /// The time from which it may fall due.
    [[nodiscard]] std::int64_t reached_at(const wait_model& w) const {
        std::int64_t begin = 0;
        if (w.overdue || __builtin_mul_overflow(tick_of(w), precision(w), &begin))
            return w.expiry;
        return begin;
    }
    [[nodiscard]] bool may_be_due(const wait_model& w) const {
        return w.seen || w.overdue || w.reached != 0 || now_of(w.type) >= w.expiry ||
               w.counted != counts::yes || (w.allowed & (early | refused)) != 0;
    }

    [[nodiscard]] bool concerns(const wait_model& w, int context) const {
        const int life = contexts[at(context)].life;
        return !w.over && ((w.context == context && w.life == life) ||
                           (w.runs_in == context && w.runs_in_life == life));
    }

    /// Whether a wait must have ended, because all its conditions hold.
    [[nodiscard]] bool must_end(const wait_model& w) const {
        if (w.counted == counts::no)
            return true;
        if (w.expiry > latest - 2 * precision(w))
            return false; // maybe there is no such tick
        const std::int64_t now = now_of(w.type);
        const std::int64_t late = saturating_subtract(now, w.expiry);
        const bool reached = late >= precision(w);
        const context_model& c = contexts[at(w.context)];
        switch (w.type) {
        case kind::steady:
        case kind::compact:
        case kind::edge:
        case kind::coarse:
            return reached || (w.overdue && late >= 0);
        case kind::ring:
        case kind::edge_ring:
            return reached && in_no_ring(w, c);
        case kind::set:
        case kind::set_binary:
        case kind::set_milli:
            return reached &&
                   virtual_time::steady - jumped_[at(static_cast<int>(w.type))] > 1'001'000'000;
        case kind::mock:
            return reached && setup_.traits != mock_wait::longest &&
                   setup_.traits != mock_wait::honest;
        case kind::manual: {
            // A context that was not told sleeps on, whatever other contexts were told.
            const std::int64_t told = saturating_subtract(c.manual, w.expiry);
            return (w.overdue && late >= 0 && told >= 0) ||
                   (c.looked > w.armed && told >= precision(w));
        }
        }
        return false;
    }

    /// Whether the longest window of a ring has passed, too, before the clock reached the end of
    /// its range.
    [[nodiscard]] bool in_no_ring(const wait_model& w, const context_model& c) const {
        const context_setup& o = setup_.contexts[at(w.context)];
        std::int64_t longest = 0;
        for (const ring_setup& r : o.rings)
            longest = std::max(longest, r.delay);
        const std::int64_t window =
            longest + longest / o.marks + 4 * o.precision + (o.round_up ? longest : 0);
        return virtual_time::steady - c.last_ring > window && now_of(w.type) < latest;
    }

    /// P7, for comparable waits: one service and shard, no foreign executors, both filed before
    /// either was due.
    void check_order(const wait_model& w) {
        if (!w.native || !w.ahead || is_ring(w.type) || (w.allowed & early) != 0)
            return;
        for (const wait_model& v : waits_) {
            if (v.over || !v.native || !v.ahead || v.type != w.type || v.context != w.context ||
                v.life != w.life || v.thread != w.thread || v.counted != counts::yes ||
                v.armed > w.reached)
                continue;
            const std::int64_t a = tick_of(v), b = tick_of(w);
            if (a < b ||
                (a == b && (v.armed < w.armed || (v.armed == w.armed && v.started < w.started))))
                fail("P7: " + text(w) + " completes before " + text(v));
        }
    }
    [[nodiscard]] static std::string text(const wait_model& w) {
        return "wait " + std::to_string(w.id) + " (of a timer of kind " +
               std::to_string(static_cast<int>(w.type)) + ", due at " + std::to_string(w.expiry) +
               ")";
    }

    const setup& setup_;
    std::vector<wait_model> waits_;
    int last_id_ = 0;
    std::array<std::int64_t, kinds> jumped_ = [] {
        std::array<std::int64_t, kinds> never;
        never.fill(earliest / 2);
        return never;
    }();
    std::array<std::int64_t, kinds> latest_ = [] { // latest reading of each clock
        std::array<std::int64_t, kinds> none;
        none.fill(earliest);
        return none;
    }();
    std::uint64_t moment_ = 1;
    std::uint64_t begun_ = 0, completed_ = 0, destroyed_ = 0;
};

} // namespace simulation

#endif
