// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/alarms.hpp"

#include "simulation/any_alarm.hpp"
#include "simulation/report.hpp"

#include <pawl/steady_timer.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace simulation::threads {

namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

} // namespace

/// Belongs to one alarm, even if the alarm is moved.
struct alarms::book {
    sort type{};
    home at{}; ///< of the function
    bool strand = false;
    bool takes_code = false;
    bool elsewhere = false; ///< the function is bound to another context
    bool rested = false;    ///< it need not be called
    std::atomic<int> functions{0};
    std::uint64_t seed = 0;
    arena* of = nullptr;
    place* made = nullptr;
};

struct alarms::place {
    std::shared_mutex mutex; ///< shared by those who leave the alarm where it is
    std::mutex arming;       ///< of those who arm, besides
    std::unique_ptr<any_alarm> alarm;
    book* of = nullptr;
    bool closed = false;
};

/// What the functions of both kinds own. It must be valid as long as one of them runs.
struct alarm_function {
    struct token {
        explicit token(alarms::book& b) : of(b) {
            of.functions.fetch_add(1, std::memory_order_relaxed);
        }
        token(const token&) = delete;
        token& operator=(const token&) = delete;
        ~token() { of.functions.fetch_sub(1, std::memory_order_relaxed); }
        alarms::book& of;
    };

    void call(const error_code& ec) {
        alarms::book& b = owned->of;
        self->called(b, ec);
        if (&owned->of != &b)
            fail("alarm: P3: the function has gone while it was running");
    }

    alarms* self;
    std::unique_ptr<token> owned;
    std::optional<asio::any_io_executor> bound;
};
struct silent_function : alarm_function {
    void operator()() { call({}); }
};
struct loud_function : alarm_function {
    void operator()(const error_code& ec) { call(ec); }
};

} // namespace simulation::threads

// Bound to an executor, or not: the type is the same.
template <std::derived_from<simulation::threads::alarm_function> Function>
struct boost::asio::associated_executor<Function, boost::asio::any_io_executor> {
    using type = boost::asio::any_io_executor;
    static type get(const Function& f, const type& ex) noexcept { return f.bound.value_or(ex); }
};

namespace simulation::threads {

alarms::alarms(company c, std::vector<sort> types)
    : feature(std::move(c), "alarms"), types_([&] {
          std::erase(types, sort::ring);
          return types.empty() ? std::vector{sort::steady} : std::move(types);
      }()),
      log_(1U << 13) {
    for (auto& p : places_)
        p = std::make_unique<place>();
}
alarms::~alarms() = default;

void alarms::note(const event& e) {
    const std::size_t i = noted_.fetch_add(1, std::memory_order_relaxed); // see the header
    if (i >= log_.size())
        fail("alarm: the log is full");
    log_[i] = e;
}

void alarms::make(random_source& random, place& p, arena& a) {
    const destination d = a.executor(random);
    const std::scoped_lock lock(mutex_);
    book& b = *books_.emplace_back(std::make_unique<book>());
    b.type = random.one_of(types_);
    b.at = d.at;
    b.takes_code = random.one_in(2);
    b.seed = random.next();
    b.of = &a;
    b.made = &p;
    alarm_function f{this, std::make_unique<alarm_function::token>(b), {}};
    if (random.one_in(3)) {
        const destination bound = company_.bound(random);
        f.bound = bound.ex;
        b.at = bound.at;
        b.elsewhere = bound.at.of && bound.at.of != &a;
    }
    b.strand = d.at.strand || b.at.strand;
    p.alarm = with_timer(b.type, [&]<class Timer>() -> std::unique_ptr<any_alarm> {
        if constexpr (std::is_same_v<Timer, pawl::ring_timer>)
            return nullptr; // rings have no alarms
        else if (b.takes_code)
            return make_alarm<Timer>(d.ex, loud_function{std::move(f)});
        else
            return make_alarm<Timer>(d.ex, silent_function{std::move(f)});
    });
    p.of = &b;
}

void alarms::drop(place& p) {
    if (!p.alarm)
        return;
    event e{.of = p.of, .what = act::drop, .before = moment()};
    p.alarm.reset();
    e.after = moment();
    note(e);
}

void alarms::arm(random_source& random, place& p, std::int64_t d) {
    const op how = random.one_of(
        {op::arm_alarm_at, op::arm_alarm_within, op::arm_alarm_after, op::arm_alarm_after});
    const std::int64_t more =
        how == op::arm_alarm_within ? d + random.between(0, millisecond / 2) : d;
    event e{.of = p.of, .what = act::arm, .before = moment()};
    const std::int64_t now = now_of(e.of->type);
    simulation::arm(*p.alarm, how, now, d, more);
    e.expiry = p.alarm->expiry();
    if (e.of->type == sort::steady && (e.expiry < now + d || e.expiry > steady_now() + more))
        fail("alarm: P1: an expiry is not in the range that was asked for");
    e.after = moment();
    note(e);
}

void alarms::operate(random_source& random, arena& a) {
    place& p = *random.one_of(places_);
    place& q = *random.one_of(places_);
    if (&p == &q || !random.one_in(12))
        return operate(random, p, a);
    const std::scoped_lock lock(p.mutex, q.mutex);
    if (p.closed || q.closed || !q.alarm)
        return;
    if (p.alarm && p.of->type == q.of->type && p.of->takes_code == q.of->takes_code) {
        event e{.of = p.of, .what = act::drop, .before = moment()};
        p.alarm->assign(*q.alarm);
        e.after = moment();
        note(e);
    } else {
        drop(p);
        p.alarm = q.alarm->move();
    }
    if (q.alarm->armed() || q.alarm->disarm())
        fail("alarm: one that was moved from is armed");
    q.alarm.reset();
    p.of = q.of;
}

void alarms::operate(random_source& random, place& p, arena& a) {
    if (noted_.load(std::memory_order_relaxed) > log_.size() / 2) // each arming may be called
        return;
    const int what = random.below(16);
    if (what == 0 || what == 1) {
        const std::scoped_lock lock(p.mutex);
        if (p.closed || !p.alarm)
            return;
        if (what == 0)
            drop(p);
        else
            p.alarm = p.alarm->move();
        return;
    }
    {
        const std::scoped_lock lock(p.mutex);
        if (p.closed)
            return;
        if (!p.alarm)
            make(random, p, a);
    }
    const std::shared_lock lock(p.mutex);
    if (p.closed || !p.alarm)
        return;
    event e{.of = p.of, .before = moment()};
    switch (what) {
    case 2:
    case 3:
    case 4:
        e.what = act::disarm;
        e.yes = p.alarm->disarm();
        break;
    case 5:
        e.what = act::armed;
        e.yes = p.alarm->armed();
        break;
    case 6:
        e.what = act::expiry;
        e.expiry = p.alarm->expiry();
        break;
    case 7: {
        // run() returns although it is armed for an hour, once the service knows the context; on
        // another clock that has no effect.
        const std::scoped_lock one(p.arming);
        p.of->rested = true;
        const bool rests = random.one_in(2);
        const bool can = p.of->type == sort::steady;
        if (rests)
            p.alarm->keep_running(false);
        arm(random, p, rests && can ? hour : random.between(0, 2 * millisecond));
        if (!rests)
            p.alarm->keep_running(true);
        else if (can)
            pawl::steady_timer known(p.of->of->native);
        return;
    }
    default: {
        const std::scoped_lock one(p.arming);
        arm(random, p, company_.duration(random));
        return;
    }
    }
    e.steady = steady_now();
    e.reading = now_of(e.of->type);
    e.after = moment();
    note(e);
}

void alarms::called(book& b, const error_code& ec) {
    event e{.of = &b, .what = act::call, .before = last_moment, .after = moment()};
    e.steady = steady_now();
    e.reading = now_of(b.type);
    e.code = ec;
    e.yes = b.at.here();
    note(e);
    random_source random(b.seed + e.after);
    std::function<void()> then;
    if (random.one_in(2))
        then = [&] { operate(random, *b.made, *b.of); };
    else
        then = company_.then(random);
    run_handler(b.at, then);
}

void alarms::close(ending how) {
    for (const auto& p : places_) {
        const std::scoped_lock lock(p->mutex);
        p->closed = true;
        if (how == ending::destroy)
            drop(*p);
        if (how != ending::cancel || !p->alarm)
            continue;
        event e{.of = p->of, .what = act::disarm, .before = moment()};
        e.yes = p->alarm->disarm();
        e.steady = steady_now();
        e.reading = now_of(e.of->type);
        e.after = moment();
        note(e);
    }
}

void alarms::leave() {
    for (const auto& p : places_) {
        if (p->alarm && p->of->strand)
            drop(*p);
    }
}

void alarms::finish() {
    for (const auto& p : places_) {
        if (!p->alarm)
            continue;
        const book& b = *p->of;
        if (company_.abandoned) {
            const std::int64_t before = p->alarm->expiry();
            p->alarm->arm_after(0);
            if (p->alarm->expiry() != before)
                fail("alarm: P10: without a context, to arm it has an effect");
        }
        if (p->alarm->armed() && (company_.abandoned || (!b.elsewhere && !b.rested)))
            fail("alarm: P9: it is armed, and run() has returned");
        p->alarm.reset();
    }
}

void alarms::check(const book& b, const std::vector<event>& log, const settings& clock,
                   tally& t) const {
    std::vector<const event*> arms, ends;
    std::uint64_t dropped = never;
    const auto broken = [&](const std::string& what) {
        std::string text =
            "alarm: " + what + "\nall that was done with this " + name_of(b.type) + " alarm:\n";
        for (const event& e : log)
            text += "  " + std::to_string(e.before) + " to " + std::to_string(e.after) + ' ' +
                    name_of(e.what) + (e.yes ? ": yes" : ": no") + ", expiry " +
                    std::to_string(e.expiry) + ", at " + std::to_string(e.reading) + ", " +
                    e.code.message() + '\n';
        fail(text);
    };
    for (const event& e : log) {
        if (e.what == act::arm)
            arms.push_back(&e);
        else if (e.what == act::call || (e.what == act::disarm && e.yes))
            ends.push_back(&e);
        else if (e.what == act::drop)
            dropped = e.after;
    }
    t.waits += arms.size();
    t.perhaps += arms.size(); // expire_all() disarms those that it does not tell

    // Whether `e` may have ended the arming `i`, or looked at it.
    const auto during = [&](const event& e, std::size_t i) {
        return arms[i]->before < e.after && (i + 1 == arms.size() || arms[i + 1]->after > e.before);
    };
    // Whether the deadline of the arming `i` had passed at the end of `e`.
    const auto passed = [&](const event& e, std::size_t i) {
        const std::int64_t now =
            b.type == sort::shared ? clock.latest(arms[i]->before, e.after, e.steady) : e.reading;
        return now >= arms[i]->expiry;
    };
    const auto ended = [&](const event& e, std::size_t i) {
        return during(e, i) && (e.what != act::call || e.code || passed(e, i));
    };

    for (const event* e : ends) {
        if (e->what != act::call)
            continue;
        t.expired += e->code == hasty;
        if (e->before > dropped)
            broken("P3: it is called, and was destroyed");
        if (!e->yes && !company_.delivers)
            broken("the function is not called on its executor");
        if (e->code &&
            !(b.takes_code && ((e->code == hasty && company_.hastens) ||
                               (e->code == asio::error::operation_aborted && company_.delivers))))
            broken("the function is told " + e->code.message());
    }

    // Each end has an arming of its own: augmenting paths in a bipartite graph.
    std::vector<const event*> owner(arms.size());
    std::vector<bool> seen;
    const std::function<bool(const event&)> place_it = [&](const event& e) {
        for (std::size_t i = 0; i != arms.size(); ++i) {
            if (seen[i] || !ended(e, i))
                continue;
            seen[i] = true;
            if (!owner[i] || place_it(*owner[i])) {
                owner[i] = &e;
                return true;
            }
        }
        return false;
    };
    for (const event* e : ends) {
        seen.assign(arms.size(), false);
        if (!place_it(*e))
            broken("P1, P3, P4: it is early, or one arming has ended twice: at " +
                   std::to_string(e->after));
    }

    for (const event& e : log) {
        if (e.what == act::expiry) {
            bool one = arms.empty() || e.before < arms[0]->after;
            for (std::size_t i = 0; i != arms.size(); ++i)
                one = one || (during(e, i) && e.expiry == arms[i]->expiry);
            if (!one)
                broken("expiry() at " + std::to_string(e.before) + " was not set");
        }
        if (e.what != act::disarm && e.what != act::armed)
            continue;
        // The arming that it has seen, if there can be only one.
        const auto next = std::find_if(arms.begin(), arms.end(),
                                       [&](const event* a) { return a->after > e.before; });
        if (next == arms.begin() || (next != arms.end() && (*next)->before < e.after)) {
            if (e.yes && (arms.empty() || arms[0]->before > e.after))
                broken("P4: it is armed at " + std::to_string(e.before) + " and never was");
            continue;
        }
        const auto i = static_cast<std::size_t>(next - arms.begin()) - 1;
        const auto by = [&](auto in_time) {
            return std::any_of(ends.begin(), ends.end(),
                               [&](const event* x) { return ended(*x, i) && in_time(*x); });
        };
        if (e.yes && by([&](const event& x) {
                return &x != &e && x.after < e.before && x.before > arms[i]->after;
            }))
            broken("P4: it is armed at " + std::to_string(e.before) + " after that had ended");
        // The call was about to begin, and then the alarm was armed again, or gone.
        const bool overtaken = passed(e, i) && (next != arms.end() || dropped != never);
        if (!e.yes && !overtaken && !company_.hastens &&
            !by([&](const event& x) { return x.before < e.after; }))
            broken("P4: it is not armed at " + std::to_string(e.before) + ", and had not ended");
    }

    const bool may_stay = b.rested || b.elsewhere || company_.abandoned || dropped != never ||
                          (company_.hastens && !b.takes_code);
    if (!may_stay && !arms.empty() && std::none_of(ends.begin(), ends.end(), [&](const event* e) {
            return ended(*e, arms.size() - 1);
        }))
        broken("P3, P9: it was armed, and never called");
    if (b.functions != 0 && !b.elsewhere)
        broken("P3: the function is not destroyed with it");
}

tally alarms::check(const settings& clock) {
    tally t;
    log_.resize(noted_.load());
    std::sort(log_.begin(), log_.end(),
              [](const event& x, const event& y) { return x.after < y.after; });
    for (const auto& b : books_) {
        std::vector<event> log;
        std::copy_if(log_.begin(), log_.end(), std::back_inserter(log),
                     [&](const event& e) { return e.of == b.get(); });
        check(*b, log, clock, t);
    }
    return t;
}

} // namespace simulation::threads
