// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/patterns.hpp"

#include "simulation/report.hpp"

#include <pawl/deadline.hpp>
#include <pawl/error.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace simulation {

namespace {

__extension__ typedef __int128 wide; // of g++ and clang

/// The handler of a pop. An entry is reported by its key.
struct pop_handler {
    using cancellation_slot_type = asio::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept {
        return inner.get_cancellation_slot();
    }
    void operator()(const error_code& ec,
                    const std::optional<std::pair<std::uint64_t, std::uint64_t>>& e) {
        if (e.has_value() == ec.failed() || (e && e->first != e->second))
            fail("map: a pop gets neither an error nor an entry, or another value");
        inner(ec, e ? e->first : 0);
    }
    completion inner;
};

const auto before = [](const auto& a, const auto& b) {
    return std::tie(a.due, a.filed) < std::tie(b.due, b.filed);
};

} // namespace

/// In credits: a token costs as many as its period has nanoseconds.
struct patterns::bucket {
    std::int64_t credit = 0;
    std::int64_t seen = 0;
};

struct patterns::limiter {
    std::unique_ptr<pawl::rate_limiter> real; ///< null: destroyed
    int context = 0;
    flavour executor = flavour::native;
    std::int64_t tokens = 1, period = 1, burst = 1;
    bucket most, least;
};

struct patterns::map {
    bool in_order = true; ///< whether its executor is
    struct entry {
        std::uint64_t key = 0;
        std::int64_t ttl = 0;
        std::int64_t due = 0;
        std::uint64_t filed = 0; ///< the order of those that are due at the same time
    };
    std::unique_ptr<pawl::expiring_map<std::uint64_t, std::uint64_t>> real;
    int context = 0;
    std::vector<entry> entries{}; ///< that were neither popped nor erased
    std::uint64_t last_key = 0, filings = 0;
    bool stalled = false; ///< expire_all() may have stopped its alarm
};

struct patterns::request {
    enum class phase { runs, pauses, over };

    asio::any_io_executor executor; ///< of attempts, also while their context ends
    std::int64_t takes = 0;         ///< an attempt
    unsigned failures = 0;
    pawl::retry_policy policy{};
    std::int64_t pause = 0;      ///< the next one
    std::int64_t end = latest;   ///< of all
    std::int64_t limit = latest; ///< of the attempt
    std::int64_t due = 0;        ///< the end of the attempt by itself, or that of the pause
    unsigned number = 0;         ///< of attempts
    phase now = phase::runs;
    std::optional<error_code> own{}; ///< that of the attempt, if it has ended
    error_code last{};               ///< what the retry made of it
};

void patterns::perform(const step& s) {
    if (s.what == op::retry)
        start(s);
    else if (s.what < op::make_map)
        limiter_step(s);
    else
        map_step(s);
}

// --- limiters -------------------------------------------------------------------------------------

void patterns::limiter_step(const step& s) {
    auto& l = limiters_[static_cast<std::size_t>(s.object)];
    if (s.what == op::make_limiter) {
        if (l || !world_.there(s.context))
            return;
        world_.serve(s.context, kind::steady);
        l = std::make_shared<limiter>();
        l->context = s.context;
        l->executor = s.executor;
        l->tokens = 1 + s.other;
        l->period = std::clamp<std::int64_t>(s.time, 1, 3'600'000'000'000);
        l->burst = 1 + s.more;
        l->most = l->least = {l->burst * l->period, virtual_time::steady};
        l->real = std::make_unique<pawl::rate_limiter>(
            world_.executor(s.context, s.executor),
            pawl::rate_limit{l->tokens, std::chrono::nanoseconds(l->period), l->burst});
        return;
    }
    if (!l)
        return;
    switch (s.what) {
    case op::destroy_limiter: {
        const auto gone = std::exchange(l, nullptr);
        orphan(gone);
        gone->real.reset();
        return;
    }
    case op::acquire:
        return acquire(s, l);
    default: { // op::try_acquire
        const std::int64_t n = 1 + s.other % l->burst;
        serve(*l);
        const bool free = l->real->waiting() == 0;
        const bool must = free && l->least.credit - in_flight(*l) >= n * l->period;
        const bool took = l->real->try_acquire(n);
        if (took ? !free || l->most.credit < n * l->period : must)
            fail(std::string("limiter: try_acquire() returns ") + (took ? "true" : "false"));
        if (took) {
            l->most.credit -= n * l->period;
            l->least.credit = std::max<std::int64_t>(0, l->least.credit - n * l->period);
        }
        return;
    }
    }
}

void patterns::acquire(const step& s, const std::shared_ptr<limiter>& l) {
    wait w;
    w.tokens_of = l;
    w.context = l->context;
    w.n = 1 + s.other % l->burst;
    serve(*l);
    const bool free = l->real->waiting() == 0;
    const bool must = free && l->least.credit - in_flight(*l) >= w.n * l->period;
    const int id = add(s, w).id;
    l->real->async_acquire(w.n, completion(*this, id, slot(s, id)));
    wait& now = *find(id);
    now.posted = free && l->real->waiting() == 0;
    if (now.posted ? l->most.credit < w.n * l->period : must)
        fail(std::string("limiter: a wait ") + (now.posted ? "takes tokens that are not there"
                                                           : "does not take those that are there"));
    if (now.posted) {
        l->most.credit -= w.n * l->period;
        l->least.credit = std::max<std::int64_t>(0, l->least.credit - w.n * l->period);
    }
}

void patterns::acquired(const wait& w, const error_code& ec) {
    limiter& l = *w.tokens_of;
    if (!ec && w.posted)
        return;
    if (w.posted)
        fail("limiter: a wait that has its tokens is told " + ec.message());
    if (!ec) {
        if (w.cancelled && !w.ended_early)
            fail("limiter: a wait completes with success, but was cancelled");
        if (!w.taken)
            fail("P1: a token is early");
        // A copying executor runs a function that it copies one unit later. In a loop inside of a handler of the strand,
        // a dispatch to it overtakes what is queued there.
        const bool overtakes =
            l.executor == flavour::copying || (l.executor == flavour::strand && world_.nested());
        if (!overtakes && std::any_of(waits_.begin(), waits_.end(), [&](const wait& other) {
                return other.tokens_of == w.tokens_of && other.id < w.id && !other.posted &&
                       !other.cancelled && !other.ended_early;
            }))
            fail("limiter: a wait is served before an earlier one");
        refill(l, l.least, virtual_time::steady);
        l.least.credit = std::max<std::int64_t>(0, l.least.credit - w.n * l.period);
        return;
    }
    if (w.taken) {
        refill(l, l.most, virtual_time::steady);
        l.most.credit = std::min(l.burst * l.period, l.most.credit + w.n * l.period);
    }
}

void patterns::refill(const limiter& l, bucket& b, std::int64_t to) {
    const wide gained = static_cast<wide>(to - b.seen) * l.tokens;
    b.credit = static_cast<std::int64_t>(std::min<wide>(l.burst * l.period, gained + b.credit));
    b.seen = to;
}

void patterns::serve(limiter& l) {
    for (wait& w : waits_) {
        if (w.tokens_of.get() != &l || w.posted || w.taken)
            continue;
        const std::int64_t lacks = std::max<std::int64_t>(0, w.n * l.period - l.most.credit);
        const std::int64_t when = l.most.seen + (lacks + l.tokens - 1) / l.tokens;
        if (when > virtual_time::steady)
            break;
        refill(l, l.most, when);
        l.most.credit -= w.n * l.period;
        w.taken = true;
    }
    refill(l, l.most, virtual_time::steady);
    refill(l, l.least, virtual_time::steady);
}

std::int64_t patterns::in_flight(const limiter& l) const {
    std::int64_t credit = 0;
    for (const wait& w : waits_)
        credit += w.tokens_of.get() == &l && !w.posted ? w.n * l.period : 0;
    return credit;
}

void patterns::settle(limiter& l) {
    const auto first = std::find_if(waits_.begin(), waits_.end(),
                                    [&](const wait& w) { return w.tokens_of.get() == &l; });
    if (first != waits_.end()) {
        bucket then = l.least;
        const std::int64_t past = virtual_time::steady - world_.precision(l.context);
        if (past >= then.seen) {
            refill(l, then, past);
            if (then.credit >= first->n * l.period)
                fail("P2: a token is late");
        }
    }
    if (l.real->waiting() !=
        static_cast<std::size_t>(std::count_if(
            waits_.begin(), waits_.end(), [&](const wait& w) { return w.tokens_of.get() == &l; })))
        fail("limiter: waiting() returns " + std::to_string(l.real->waiting()));
    serve(l);
    const std::int64_t there = l.real->available();
    if (first == waits_.end() &&
        (there < l.least.credit / l.period || there > l.most.credit / l.period))
        fail("limiter: " + std::to_string(there) + " tokens are there, and not " +
             std::to_string(l.least.credit / l.period));
}

// --- maps -----------------------------------------------------------------------------------------

void patterns::map_step(const step& s) {
    auto& m = maps_[static_cast<std::size_t>(s.object)];
    const std::int64_t now = virtual_time::steady;
    if (s.what == op::make_map) {
        if (m || !world_.there(s.context))
            return;
        world_.serve(s.context, kind::steady);
        m = std::make_shared<map>();
        m->context = s.context;
        m->in_order = s.executor != flavour::copying;
        m->real = std::make_unique<pawl::expiring_map<std::uint64_t, std::uint64_t>>(
            world_.executor(s.context, s.executor),
            pawl::expiring_map_options{
                .ttl = std::chrono::nanoseconds(1), .refresh_on_use = true, .keep_expired = true});
        return;
    }
    if (!m)
        return;
    // The entry that was inserted `other` entries ago.
    const std::uint64_t key = m->last_key - static_cast<std::uint64_t>(s.other);
    const auto e = std::find_if(m->entries.begin(), m->entries.end(),
                                [&](const map::entry& each) { return each.key == key; });
    const bool alive = e != m->entries.end() && e->due > now;
    switch (s.what) {
    case op::destroy_map: {
        const auto gone = std::exchange(m, nullptr);
        orphan(gone);
        gone->real.reset();
        return;
    }
    case op::insert: {
        map::entry added{
            .key = ++m->last_key, .ttl = std::max<std::int64_t>(s.time, 1), .filed = ++m->filings};
        added.due = saturating_add(now, added.ttl);
        m->entries.push_back(added);
        m->stalled = false;
        if (!m->real->insert(added.key, added.key, std::chrono::nanoseconds(added.ttl)).second)
            fail("map: a new key is there already");
        return;
    }
    case op::use: {
        const std::uint64_t* const found = m->real->find(key);
        if ((found != nullptr) != alive || (found && *found != key))
            fail(std::string("map: an entry is ") + (alive ? "not found" : "found"));
        if (alive && saturating_add(now, e->ttl) > e->due) {
            e->due = saturating_add(now, e->ttl);
            e->filed = ++m->filings;
        }
        return;
    }
    case op::erase: {
        const bool erased = m->real->erase(key);
        if (erased ? e == m->entries.end() : alive) // expired, it may have left the map, or not
            fail(std::string("map: erase() returns ") + (erased ? "true" : "false"));
        if (erased)
            m->entries.erase(e);
        return;
    }
    default: { // op::pop
        wait w;
        w.pops = m;
        w.context = m->context;
        const int id = add(s, w).id;
        m->real->async_pop_expired(pop_handler{completion(*this, id, slot(s, id))});
        return;
    }
    }
}

void patterns::popped(const wait& w, const error_code& ec, std::uint64_t key) {
    if (ec)
        return;
    map& m = *w.pops;
    const auto e = std::find_if(m.entries.begin(), m.entries.end(),
                                [&](const map::entry& each) { return each.key == key; });
    if (e == m.entries.end())
        fail("map: an entry is popped twice, or was erased");
    if (e->due > virtual_time::steady)
        fail("P1: an entry is early: it is due at " + std::to_string(e->due));
    // One that was asked to end may be on its way already when it gets an entry.
    if (m.in_order && !w.cancelled && !w.ended_early) {
        if (std::any_of(m.entries.begin(), m.entries.end(),
                        [&](const map::entry& other) { return before(other, *e); }))
            fail("map: an entry is popped before one that was due earlier");
        if (std::any_of(waits_.begin(), waits_.end(), [&](const wait& other) {
                return other.pops == w.pops && other.id < w.id && !other.cancelled &&
                       !other.ended_early;
            }))
            fail("map: a pop is served before an earlier one");
    }
    m.entries.erase(e);
}

void patterns::settle(map& m) {
    const std::int64_t now = virtual_time::steady, precision = world_.precision(m.context);
    std::size_t least = 0, most = 0;
    bool late = false;
    for (const map::entry& e : m.entries) {
        const bool is_late = e.due <= latest - 2 * precision && e.due <= now - precision;
        late = late || is_late;
        least += e.due > now ? 1 : 0;
        most += is_late ? 0 : 1;
    }
    if (m.stalled)
        return;
    if (const std::size_t n = m.real->size(); n < least || n > most)
        fail("P2: a map has " + std::to_string(n) + " entries, allowed are " +
             std::to_string(least) + " to " + std::to_string(most));
    if (late && std::any_of(waits_.begin(), waits_.end(),
                            [&](const wait& w) { return w.pops.get() == &m; }))
        fail("P2: an entry is not popped");
}

// --- retries --------------------------------------------------------------------------------------

auto patterns::attempt(int id, const std::shared_ptr<request>& r, const pawl::attempt& a) {
    wait& w = *find(id);
    const std::int64_t now = virtual_time::steady;
    if (a.number() != ++r->number || a.last_error() != r->last ||
        r->now != (r->number == 1 ? request::phase::runs : request::phase::pauses))
        fail("retry: attempt " + std::to_string(a.number()) + " is not the next one");
    if (r->number != 1 && now < r->due && !w.ended_early)
        fail("P1: an attempt is early: it was due at " + std::to_string(r->due));
    if (w.cancelled || now >= r->end)
        fail("retry: an attempt is made after a cancellation, or the end of all");
    check_budget();
    r->now = request::phase::runs;
    r->due = saturating_add(now, r->takes);
    r->limit = r->end;
    if (r->policy.attempt_limit != pawl::retry_policy::never)
        r->limit = std::min(r->limit, saturating_add(now, r->policy.attempt_limit.count()));
    r->own.reset();
    w.ended_early = false;
    auto timer =
        std::make_shared<pawl::steady_timer>(r->executor, std::chrono::nanoseconds(r->takes));
    return timer->async_wait(asio::deferred([this, id, r, timer](error_code ec) {
        if (!ec && virtual_time::steady < r->due && !find(id)->ended_early)
            fail("P1: the end of an attempt is early");
        if (!ec && r->number <= r->failures)
            ec = asio::error::connection_refused;
        r->own = ec;
        return asio::deferred.values(ec);
    }));
}

void patterns::start(const step& s) {
    if (!world_.there(s.context))
        return;
    world_.serve(s.context, kind::steady);
    constexpr std::int64_t hour = 3'600'000'000'000;
    const auto r = std::make_shared<request>();
    r->executor = world_.executor(s.context, flavour::native);
    r->takes = std::clamp<std::int64_t>(s.time, 0, hour);
    r->failures = static_cast<unsigned>(s.other);
    r->pause = std::clamp<std::int64_t>(s.more, 1, hour);
    pawl::retry_policy& p = r->policy;
    p.first = std::chrono::nanoseconds(r->pause);
    p.cap = std::chrono::nanoseconds(hour);
    p.jitter = pawl::retry_jitter::none;
    p.max_attempts = 1 + static_cast<unsigned>(s.thread) % 5;
    p.budget = &budget_;
    if (s.bound) {
        p.attempt_limit = p.first;
        p.limit = s.more <= 0 ? std::chrono::nanoseconds(0) : 5 * p.first;
        r->end = virtual_time::steady + p.limit.count();
    }
    if (s.bound && s.more <= 0) { // no attempt is made
        r->now = request::phase::over;
        r->last = pawl::error::timed_out;
    }
    wait w;
    w.retries = r;
    w.context = s.context;
    const int id = add(s, w).id;
    balance_ = std::min<std::int64_t>(4, balance_ + 1);
    ++retries_;
    pawl::retry_policy judged = p; // `r` would own itself
    judged.retry_if = [this, r](const error_code& ec) {
        judge(*std::find_if(waits_.begin(), waits_.end(),
                            [&](const wait& each) { return each.retries == r; }),
              *r, ec);
        return pawl::is_transient(ec);
    };
    pawl::retry(
        world_.executor(s.context, s.executor), judged,
        [this, id, r](const pawl::attempt& a) { return attempt(id, r, a); },
        completion(*this, id, slot(s, id)));
    if ((r->number != 0) == (s.bound && s.more <= 0))
        fail("retry: a first attempt is made without time, or none with time");
}

void patterns::check_result(const wait& w, const request& r, const error_code& ec) const {
    if (!r.own)
        fail("retry: an attempt that has not ended is over");
    if (*r.own != asio::error::operation_aborted) {
        if (ec != *r.own)
            fail("retry: an attempt has ended with " + r.own->message() + ", and not with " +
                 ec.message());
        return;
    }
    const bool limited = virtual_time::steady >= r.limit || w.ended_early;
    const bool by_limit = ec == pawl::error::timed_out || ec == asio::error::timed_out;
    if (by_limit ? !limited : !w.cancelled && !w.ended_early && !world_.dying(w.context))
        fail("P1: an attempt is cancelled early: its limit is " + std::to_string(r.limit));
}

void patterns::judge(wait& w, request& r, const error_code& ec) {
    if (r.number == 0) // it is over
        return;
    check_result(w, r, ec);
    check_budget();
    r.now = request::phase::over;
    r.last = ec;
    if (!pawl::is_transient(ec) || (r.end != latest && r.pause >= r.end - virtual_time::steady))
        return;
    if (w.cancelled) {
        r.last = asio::error::operation_aborted;
        return;
    }
    if (balance_ < 2)
        return;
    balance_ -= 2;
    r.now = request::phase::pauses;
    r.due = virtual_time::steady + r.pause;
    r.pause = std::min<std::int64_t>(2 * r.pause, r.policy.cap.count());
    w.ended_early = false;
}

void patterns::ended(const wait& w, const error_code& ec) {
    const request& r = *w.retries;
    switch (r.now) {
    case request::phase::runs: // it was the last attempt
        if (ec && r.number < r.policy.max_attempts && !world_.dying(w.context))
            fail("retry: it ends after attempt " + std::to_string(r.number));
        check_result(w, r, ec);
        break;
    case request::phase::pauses: {
        const bool cut = w.ended_early || world_.dying(w.context);
        const bool aborted = ec == asio::error::operation_aborted && (cut || w.cancelled);
        const bool hasty = ec == asio::error::timed_out && w.ended_early;
        const bool too_late = ec == r.last && virtual_time::steady >= r.end;
        if (!aborted && !hasty && !too_late)
            fail("retry: it ends in a pause, with " + ec.message());
        balance_ = std::min<std::int64_t>(4, balance_ + 2);
        break;
    }
    case request::phase::over:
        if (ec != r.last && !world_.dying(w.context))
            fail("retry: it ends with " + ec.message() + ", and not with " + r.last.message());
        break;
    }
    check_budget();
}

void patterns::settle(const wait& w, const request& r) const {
    const std::int64_t past = virtual_time::steady - world_.precision(w.context);
    if (r.now == request::phase::over || (r.now == request::phase::runs && r.own))
        fail("retry: it is over and does not end");
    if (r.due <= past || (r.now == request::phase::runs && r.limit <= past))
        fail("P2: an attempt or a pause is late: it was due at " + std::to_string(r.due));
}

void patterns::check_budget() const {
    if (budget_.balance() * 2 != static_cast<double>(balance_))
        fail("retry: the balance of the budget is not " + std::to_string(balance_) + " halves");
}

// --- both -----------------------------------------------------------------------------------------

patterns::wait& patterns::add(const step& s, wait w) {
    w.id = ++last_id_;
    w.what = &s;
    return waits_.emplace_back(std::move(w));
}

asio::cancellation_slot patterns::slot(const step& s, int id) {
    const auto there = [this, id] {
        return std::find_if(waits_.begin(), waits_.end(),
                            [id](const wait& w) { return w.id == id && !w.posted; });
    };
    return world_.listen(s.signal,
                         {[this, there] { return there() != waits_.end(); },
                          [this, there] {
                              if (const auto w = there(); w != waits_.end())
                                  w->cancelled = true;
                          },
                          [this, there] { // Asio's cancellation_state forgets it if `none` follows
                              const auto w = there();
                              return w == waits_.end() || !w->retries || !w->cancelled;
                          }});
}

std::vector<patterns::wait>::iterator patterns::find(int id) {
    const auto w = std::find_if(waits_.begin(), waits_.end(),
                                [id](const wait& each) { return each.id == id; });
    if (w == waits_.end())
        fail("P3: the handler of a limiter, a map or a retry is told twice");
    return w;
}

template <class Owner>
void patterns::orphan(const Owner& o) {
    for (wait& w : waits_) {
        if constexpr (std::is_same_v<Owner, std::shared_ptr<map>>)
            w.orphaned = w.orphaned || w.pops == o;
        else
            w.orphaned = w.orphaned || w.tokens_of == o;
    }
}

void patterns::completed(int id, const error_code& ec, std::uint64_t key) {
    if (find(id)->tokens_of)
        serve(*find(id)->tokens_of);
    const auto found = find(id);
    const wait w = *found;
    waits_.erase(found);
    if (w.retries) {
        ended(w, ec);
        return world_.go_on(w.what->then);
    }
    const bool may_abort = w.cancelled || w.orphaned || w.ended_early || world_.dying(w.context);
    if (ec && !(ec == asio::error::operation_aborted && may_abort) &&
        !(ec == asio::error::timed_out && w.ended_early))
        fail("P3: the handler of a limiter, a map or a retry is told " + ec.message());
    if (w.tokens_of)
        acquired(w, ec);
    else
        popped(w, ec, key);
    world_.go_on(w.what->then);
}

void patterns::destroyed(int id) {
    const auto w = find(id);
    if (!world_.dying(w->context))
        fail("P3: the handler of a limiter, a map or a retry is destroyed uncalled");
    waits_.erase(w);
}

business patterns::settled(int context) {
    business b;
    for (const wait& w : waits_) {
        if (w.context != context)
            continue;
        b.work = true;
        if (w.retries) {
            if (w.cancelled || w.ended_early)
                fail("retry: it was cancelled and does not end");
            settle(w, *w.retries);
            continue;
        }
        if (w.posted)
            fail("limiter: a wait has its tokens and does not end");
        if (w.cancelled || w.orphaned || w.ended_early)
            fail("P3: a wait of a limiter or a map is cancelled and does not end");
    }
    for (const auto& l : limiters_) {
        if (l && l->context == context)
            settle(*l);
    }
    for (const auto& m : maps_) {
        if (!m || m->context != context)
            continue;
        settle(*m);
        const auto expires = [&](const map::entry& e) {
            return e.due > virtual_time::steady && e.due != latest;
        };
        if (m->stalled || std::none_of(m->entries.begin(), m->entries.end(), expires))
            b.perhaps = b.perhaps || !m->real->empty();
        else
            b.work = true;
    }
    return b;
}

void patterns::leave(int context) {
    for (int i = 0; i < pattern_slots; ++i) {
        const auto index = static_cast<std::size_t>(i);
        if (limiters_[index] && limiters_[index]->context == context)
            perform({.what = op::destroy_limiter, .object = i});
        if (maps_[index] && maps_[index]->context == context)
            perform({.what = op::destroy_map, .object = i});
    }
}

void patterns::end_early(int context) {
    for (wait& w : waits_)
        w.ended_early = w.ended_early || (w.context == context && !w.posted);
    for (const auto& m : maps_) {
        if (m && m->context == context)
            m->stalled = true;
    }
}

std::size_t patterns::count() const noexcept {
    std::size_t n = 2 * pattern_slots;
    for (const wait& w : waits_)
        n += w.retries ? units_of_retry : 2;
    for (const auto& m : maps_)
        n += m ? 2 * m->entries.size() : 0;
    return n;
}

void patterns::finished() const {
    if (!waits_.empty())
        fail("P3: a handler of a limiter, a map or a retry has neither been invoked nor destroyed");
}

} // namespace simulation
