// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/intervals.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/interval_timer.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace simulation::threads {

namespace {

constexpr std::int64_t tolerance = 5 * millisecond; ///< of missed_tick_policy

[[noreturn]] void broken(const std::string& what) { fail("interval: " + what); }

} // namespace

struct intervals::tick_wait final : told_once {
    tick_wait(home h, std::int64_t d, std::function<void()> f)
        : at(h), due(d), then(std::move(f)) {}

    void invoked(const error_code& ec, std::uint64_t number) override {
        now = steady_now();
        result = ec;
        missed = number;
        called = true;
        in_place = at.here();
        run_handler(at, then);
    }
    [[noreturn]] void broken(const std::string& what) const override { threads::broken(what); }

    const home at;
    std::int64_t due; ///< earliest time
    const std::function<void()> then;
    std::int64_t now = 0;
    error_code result;
    std::uint64_t missed = 0;
    bool called = false, in_place = true;
};

/// Belongs to one interval, even if the interval is moved.
struct intervals::book {
    pawl::missed_tick_policy policy{};
    std::int64_t start = 0, period = 0;
    home at{};
    bool regular = true; ///< one wait at a time, and unchanged ticks
    bool dropped = false;
    std::size_t cancelled = 0;
    std::deque<tick_wait> waits;
};

struct intervals::place {
    std::mutex mutex;
    std::optional<pawl::interval_timer> timer;
    book* of = nullptr;
    bool closed = false;
};

intervals::intervals(company c) : feature(std::move(c), "intervals") {
    for (auto& p : places_)
        p = std::make_unique<place>();
}
intervals::~intervals() = default;

void intervals::make(random_source& random, place& p, arena& a) {
    const destination d = a.executor(random);
    {
        const std::scoped_lock lock(mutex_);
        p.of = books_.emplace_back(std::make_unique<book>()).get();
    }
    book& b = *p.of;
    b.policy = random.one_of({pawl::missed_tick_policy::burst, pawl::missed_tick_policy::delay,
                              pawl::missed_tick_policy::skip});
    b.period = random.between(microsecond, 2 * millisecond);
    b.start = steady_now() + random.between(-20 * millisecond, millisecond);
    b.at = d.at;
    p.timer.emplace(d.ex, pawl::interval_timer::time_point(std::chrono::nanoseconds(b.start)),
                    std::chrono::nanoseconds(b.period), b.policy);
}

void intervals::drop(place& p) {
    if (!p.timer)
        return;
    p.of->dropped = true;
    p.timer.reset();
}

void intervals::begin_wait(random_source& random, place& p) {
    book& b = *p.of;
    b.regular = b.regular && std::all_of(b.waits.begin(), b.waits.end(),
                                         [](const tick_wait& w) { return w.over(); });
    const bool binds = random.one_in(3);
    const destination bound = binds ? company_.bound(random) : destination{{}, b.at};
    tick_wait& w = b.waits.emplace_back(bound.at, p.timer->next_tick().time_since_epoch().count(),
                                        company_.then(random));
    completion handler(w, 0, {});
    if (binds)
        p.timer->async_wait(asio::bind_executor(bound.ex, std::move(handler)));
    else
        p.timer->async_wait(std::move(handler));
}

void intervals::operate(random_source& random, arena& a) {
    place& p = *random.one_of(places_);
    place& q = *random.one_of(places_);
    if (&p != &q && random.one_in(12)) {
        const std::scoped_lock lock(p.mutex, q.mutex);
        if (p.closed || q.closed || !p.timer || !q.timer)
            return;
        p.of->dropped = true;
        *p.timer = std::move(*q.timer);
        p.of = q.of;
        q.timer.reset();
        return;
    }
    const std::scoped_lock lock(p.mutex);
    if (p.closed)
        return;
    if (!p.timer)
        make(random, p, a);
    book& b = *p.of;
    // From now on it may be due as early as `t`.
    const auto moved = [&](std::int64_t t) {
        b.regular = false;
        for (tick_wait& w : b.waits)
            w.due = std::min(w.due, t);
    };
    const std::int64_t now = steady_now();
    switch (random.below(12)) {
    case 0:
        drop(p);
        break;
    case 1: {
        pawl::interval_timer other(std::move(*p.timer));
        p.timer.emplace(std::move(other));
        break;
    }
    case 2:
        b.cancelled += p.timer->cancel();
        break;
    case 3:
        moved(now + b.period);
        p.timer->reset();
        break;
    case 4: {
        const std::int64_t d = company_.duration(random);
        moved(now + d);
        p.timer->reset_after(std::chrono::nanoseconds(d));
        break;
    }
    case 5:
        moved(now);
        b.period = random.between(microsecond, 2 * millisecond);
        p.timer->set_period(std::chrono::nanoseconds(b.period));
        break;
    default:
        begin_wait(random, p);
        break;
    }
}

void intervals::close(ending how) {
    for (const auto& p : places_) {
        const std::scoped_lock lock(p->mutex);
        p->closed = true;
        if (how == ending::destroy)
            drop(*p);
        else if (how == ending::cancel && p->timer)
            p->of->cancelled += p->timer->cancel();
    }
}

void intervals::leave() {
    for (const auto& p : places_) {
        if (p->timer && p->of->at.strand)
            drop(*p);
    }
}

void intervals::check(const book& b, tally& t) const {
    std::size_t aborted = 0;
    for (const tick_wait& w : b.waits) {
        ++t.waits;
        if (!w.over())
            broken("P3, P9: a handler was neither invoked nor destroyed");
        if (!w.called) {
            if (!company_.abandoned || company_.delivers)
                broken("P3: a handler is destroyed uncalled");
            continue;
        }
        if (!w.in_place && !company_.delivers)
            broken("a handler is not invoked on its executor");
        if (!w.result) {
            if (w.now < w.due)
                broken("P1: a tick is " + std::to_string(w.due - w.now) + " ns early");
        } else if (w.missed != 0) {
            broken("ticks are missed by a wait that has got none");
        } else if (w.result == hasty && company_.hastens) {
            ++t.expired;
        } else if (w.result == asio::error::operation_aborted) {
            ++aborted;
        } else {
            broken("a handler is told " + w.result.message());
        }
    }
    if (aborted < b.cancelled && !company_.abandoned)
        broken("P4: cancel() counted " + std::to_string(b.cancelled) + " waits, and " +
               std::to_string(aborted) + " are told so");
    if (aborted > b.cancelled && !b.dropped && !company_.delivers)
        broken("P4: " + std::to_string(aborted) + " waits are told that they were cancelled, and " +
               std::to_string(b.cancelled) + " were");
}

tally intervals::check(const settings&) {
    tally t;
    for (const auto& b : books_)
        check(*b, t);
    for (const auto& p : places_) {
        if (!p->timer || company_.abandoned)
            continue;
        const book& b = *p->of;
        if (b.regular && b.policy != pawl::missed_tick_policy::delay) {
            std::int64_t next = b.start;
            for (const tick_wait& w : b.waits) {
                if (w.result)
                    continue;
                const std::int64_t most = std::max<std::int64_t>(w.now - next, 0);
                const auto missed = static_cast<std::int64_t>(w.missed);
                if (missed > most / b.period || (missed != 0 && most <= tolerance))
                    broken("a wait is told of too many missed ticks");
                next += b.period;
                if (b.policy == pawl::missed_tick_policy::skip)
                    next += missed * b.period;
            }
            if (const std::int64_t n = p->timer->next_tick().time_since_epoch().count(); n != next)
                broken("the next tick is " + std::to_string(n - next) + " ns off");
        }
        p->timer.reset();
    }
    return t;
}

} // namespace simulation::threads
