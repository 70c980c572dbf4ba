// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/ledger.hpp"

#include "simulation/report.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace simulation::threads {

std::uint64_t moment() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1; // see the invariants in the header
}

const error_code hasty = asio::error::host_unreachable;

// --- the clock -------------------------------------------------------------------------------

settings::settings() : all_{{0, 0}} { shared_clock::ahead.store(0, std::memory_order_relaxed); }

void settings::set(std::int64_t ahead) {
    all_.push_back({moment(), ahead});
    shared_clock::ahead.store(ahead, std::memory_order_relaxed); // a clock orders nothing
    setting& before = *(all_.end() - 2);
    before.end = steady_now();
    before.to = moment();
}

std::int64_t settings::latest(std::uint64_t from, std::uint64_t to, std::int64_t steady) const {
    std::int64_t most = INT64_MIN;
    for (const setting& s : all_) {
        if (s.from < to && s.to > from)
            most = std::max(most, std::min(steady, s.end) + s.ahead);
    }
    return most;
}

// --- handlers --------------------------------------------------------------------------------

thread_local bool in_handler = false;
thread_local std::uint64_t last_moment = 0;

void run_handler(const home& at, const std::function<void()>& f) {
    const bool alone = at.strand && !at.anywhere;
    if (alone && std::exchange(at.of->in_strand, true))
        fail("two handlers run in one strand");
    if (f) {
        in_handler = true;
        f();
        in_handler = false;
    }
    if (alone)
        at.of->in_strand = false;
    last_moment = moment();
}

void wait::invoked(const error_code& ec, std::uint64_t) {
    began = moment();
    steady = steady_now();
    reading = now_of(type);
    what = !ec                                    ? told::success
           : ec == asio::error::operation_aborted ? told::aborted
           : ec == hasty                          ? told::expired
           : ec == asio::error::no_buffer_space   ? told::refused
                                                  : told::something;
    in_place = at.here();
    run_handler(at, then);
}

// --- while the timer is used ------------------------------------------------------------------

wait& ledger::start(std::int64_t expiry, home h, std::function<void()> then, bool listens) {
    wait& w = waits_.emplace_back(type, h, std::move(then));
    events_.push_back({op::wait, moment(), 0, 0, 0, expiry, &w});
    if (listens)
        listener_ = &w;
    return w;
}

void ledger::note(op call, std::uint64_t before, int busy, std::size_t count, std::int64_t expiry) {
    events_.push_back({call, before, moment(), busy, count, expiry, nullptr});
}

bool ledger::emit(asio::cancellation_type how, int busy) {
    if (!listener_)
        return false;
    const std::uint64_t before = moment();
    signal.emit(how);
    events_.push_back({op::emit, before, moment(), busy, 0, 0, listener_});
    return true;
}

// --- the check -------------------------------------------------------------------------------

void ledger::broken(const std::string& what) const {
    std::string text =
        what + "\nall that was done with this " + name_of(type) + " timer, moment by moment:\n";
    const auto line = [&](std::uint64_t when, const std::string& of) {
        text += "  " + std::to_string(when) + ' ' + of + '\n';
    };
    const auto number = [&](const wait* w) {
        return w ? " of wait " +
                       std::to_string(std::find_if(waits_.begin(), waits_.end(),
                                                   [&](const wait& v) { return &v == w; }) -
                                      waits_.begin())
                 : std::string();
    };
    for (const event& e : events_)
        line(e.before, "to " + std::to_string(e.after) + ' ' + name_of(e.what) + number(e.subject) +
                           ": " + std::to_string(e.count) + " counted, expiry " +
                           std::to_string(e.expiry) + ", " + std::to_string(e.busy) +
                           " threads busy");
    for (const wait& w : waits_)
        line(w.began, name_of(w.what) + number(&w) + " at " + std::to_string(w.reading) +
                          ", expiry " + std::to_string(w.expiry) + " since " +
                          std::to_string(w.armed));
    fail(text);
}

namespace {
std::string at(std::uint64_t moment) { return "the call at " + std::to_string(moment); }
} // namespace

void ledger::replay(const event& e) {
    if (e.what == op::wait) {
        e.subject->expiry = e.expiry;
        e.subject->armed = e.before;
        alive_.push_back(e.subject);
        return;
    }
    // Waits that are known to have started before, or that need not be counted, are skipped.
    std::erase_if(alive_,
                  [&](const wait* w) { return w->began < e.before || w->what == told::refused; });
    const auto those = [&](told what) {
        return static_cast<std::size_t>(std::count_if(
            alive_.begin(), alive_.end(), [&](const wait* w) { return w->what == what; }));
    };
    const auto is_cancelled = [](const wait* w) {
        return w->what == told::aborted || w->what == told::destroyed;
    };
    const auto busy = static_cast<std::size_t>(e.busy);
    const std::size_t aborted = those(told::aborted), destroyed = those(told::destroyed);
    const auto missed = [&](const wait* w) {
        return w->what == told::success && w->began > e.after;
    };
    const auto succeeded =
        static_cast<std::size_t>(std::count_if(alive_.begin(), alive_.end(), missed));
    const auto late =
        static_cast<std::size_t>(std::count_if(alive_.begin(), alive_.end(), [&](const wait* w) {
            return w->began > e.after && w->what != told::expired;
        }));

    // A destroyed wait may have been refused, with its handler still to be told.
    const bool may_be_refused = allowed.refuses && allowed.abandoned;
    const std::size_t unknown = may_be_refused ? destroyed : 0;

    switch (e.what) {
    case op::rearm_after:
    case op::rearm_at:
    case op::rearm_within:
        // A wait that succeeded later was moved, or a busy thread had started it.
        if (e.count > alive_.size())
            broken("P4: " + at(e.before) + ": more than were pending");
        if (e.count < aborted + destroyed - unknown || e.count + busy < late - unknown)
            broken("P4: " + at(e.before) + ": fewer than were pending");
        for (wait* w : alive_) {
            if (e.count == alive_.size()) {
                w->expiry = e.expiry;
                w->armed = e.before;
            } else if (e.count != 0) { // maybe this one
                w->expiry = std::min(w->expiry, e.expiry);
            }
        }
        break;
    case op::expires_after:
    case op::expires_at:
    case op::expires_within:
    case op::cancel:
        if (e.count < aborted || e.count > aborted + destroyed)
            broken("P4: " + at(e.before) + ", and of their handlers " + std::to_string(aborted) +
                   " are told so");
        [[fallthrough]];
    case op::destroy:
    case op::assign:
        if (succeeded > busy)
            broken("P4: " + at(e.before) + ": " + std::to_string(succeeded) + " succeed later");
        for (wait* w : alive_)
            w->cancelled = true;
        alive_.clear();
        break;
    case op::cancel_one: {
        const auto first = std::find_if(alive_.begin(), alive_.end(), is_cancelled);
        const bool any = first != alive_.end();
        if (e.count != (any ? 1 : 0) && unknown == 0)
            broken("P4: " + at(e.before) + ", and " + (any ? "a" : "no") + " handler is told so");
        if (static_cast<std::size_t>(std::count_if(alive_.begin(), first, missed)) > busy)
            broken("P4: " + at(e.before) + ": an older one succeeds later");
        if (any) {
            (*first)->cancelled = true;
            alive_.erase(first);
        }
        break;
    }
    case op::emit: {
        const auto w = std::find(alive_.begin(), alive_.end(), e.subject);
        if (w == alive_.end())
            break;
        if ((*w)->what == told::success && e.busy == 0)
            broken("P4: a wait succeeds after its slot has cancelled it");
        (*w)->cancelled = true;
        alive_.erase(w);
        break;
    }
    default:
        break;
    }
}

void ledger::check(const wait& w, const settings& clock) const {
    if (!w.in_place && !(allowed.abandoned && allowed.delivers))
        broken("a handler is not invoked on its executor");
    switch (w.what) {
    case told::nothing:
        broken("P3, P9: a handler was neither invoked nor destroyed");
    case told::something:
        broken("P3: a wait completes with an error that nobody asked for");
    case told::destroyed:
        if (!allowed.abandoned || (allowed.delivers && !allowed.refuses))
            broken("P3: a handler is destroyed uncalled");
        break;
    case told::refused:
        if (!allowed.refuses)
            broken("P3: a wait is refused");
        break;
    case told::aborted:
        if (!w.cancelled && !(allowed.abandoned && allowed.delivers))
            broken("P4: a wait is told operation_aborted, and nothing has cancelled it");
        break;
    case told::expired:
        break; // expire_all() counted this many
    case told::success: {
        const std::int64_t now =
            type == sort::shared ? clock.latest(w.armed, w.began, w.steady) : w.reading;
        if (!allowed.early && now < w.expiry)
            broken("P1: a wait is " + std::to_string(w.expiry - now) + " ns early");
        if (planted)
            broken("planted: a wait completes with success");
        break;
    }
    }
}

ledger::totals ledger::check(const settings& clock) {
    alive_.clear();
    for (const event& e : events_)
        replay(e);
    totals t{waits_.size(), events_.size(), 0};
    for (const wait& w : waits_) {
        check(w, clock);
        t.expired += w.what == told::expired;
    }
    return t;
}

} // namespace simulation::threads
