// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/intervals.hpp"

#include "simulation/report.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace simulation {

namespace {

constexpr std::int64_t tolerance = 5'000'000;

} // namespace

void intervals::perform(const step& s) {
    const int index = s.object;
    interval& i = intervals_[static_cast<std::size_t>(index)];
    if (s.what == op::make_interval) {
        if (!i.timer && world_.there(s.context))
            make(s);
        return;
    }
    if (!i.timer)
        return;
    const std::int64_t now = virtual_time::steady;
    const std::chrono::nanoseconds d(std::max<std::int64_t>(s.time, 1));
    switch (s.what) {
    case op::destroy_interval:
        for (wait& w : waits_) {
            if (w.owner == index) {
                w.owner = -1;
                w.cancelled = true;
            }
        }
        i.timer.reset();
        return;
    case op::wait_interval: {
        if (!world_.there(i.context))
            return;
        const int id = ++last_id_;
        waits_.push_back({id, index, i.context, i.number, i.next, false, false, &s});
        i.timer->async_wait(completion(*this, id, {}));
        break;
    }
    case op::cancel_interval:
        cancel_all(index, i.timer->cancel(), "cancel() of an interval");
        break;
    case op::reset_interval: {
        const std::size_t n = i.timer->reset();
        follow(i, now);
        moved(index, n, "reset()");
        break;
    }
    case op::reset_interval_after: {
        const std::size_t n = i.timer->reset_after(d);
        i.next = saturating_add(now, d.count());
        i.set = true;
        moved(index, n, "reset_after()");
        break;
    }
    case op::set_period: {
        const std::size_t n = i.timer->set_period(d);
        i.period = d.count();
        if (!i.set)
            i.next = std::max(saturating_add(i.base, i.period), std::min(i.next, now));
        moved(index, n, "set_period()");
        break;
    }
    default:
        break;
    }
    check(i);
}

void intervals::make(const step& s) {
    interval& i = intervals_[static_cast<std::size_t>(s.object)];
    world_.serve(s.context, kind::steady);
    const std::int64_t now = virtual_time::steady;
    i = {};
    i.context = s.context;
    i.period = std::clamp<std::int64_t>(s.time, 1, 3'600'000'000'000);
    i.next = i.base = now;
    i.policy = static_cast<pawl::missed_tick_policy>(s.more % 3);
    i.timer.emplace(world_.executor(s.context, s.executor), std::chrono::nanoseconds(i.period),
                    i.policy);
    check(i);
}

void intervals::check(const interval& i) const {
    if (i.timer && i.timer->next_tick().time_since_epoch().count() != i.next)
        fail("interval: the next tick is at " +
             std::to_string(i.timer->next_tick().time_since_epoch().count()) + ", and not at " +
             std::to_string(i.next));
}

void intervals::follow(interval& i, std::int64_t from) {
    i.base = from;
    i.next = saturating_add(from, i.period);
    i.set = false;
}

/// The count may or may not include a wait that expire_all() may have ended.
void intervals::cancel_all(int owner, std::size_t count, const char* what) {
    std::size_t least = 0, most = 0;
    for (wait& w : waits_) {
        if (w.owner != owner || w.cancelled)
            continue;
        ++most;
        least += !w.hurried;
        w.cancelled = true;
    }
    if (count < least || count > most)
        fail("P4: " + std::string(what) + " returned " + std::to_string(count) + ", allowed are " +
             std::to_string(least) + " to " + std::to_string(most));
}

void intervals::moved(int owner, std::size_t count, const char* what) {
    const interval& i = intervals_[static_cast<std::size_t>(owner)];
    std::size_t least = 0, most = 0;
    for (wait& w : waits_) {
        if (w.owner != owner || w.cancelled || w.number != i.number)
            continue;
        ++most;
        least += !w.hurried;
        w.due = i.next;
    }
    if (!world_.there(i.context))
        least = 0;
    if (count < least || count > most)
        fail("P4: " + std::string(what) + " returned " + std::to_string(count) + ", allowed are " +
             std::to_string(least) + " to " + std::to_string(most));
}

std::vector<intervals::wait>::iterator intervals::find(int id) {
    const auto w = std::find_if(waits_.begin(), waits_.end(),
                                [id](const wait& each) { return each.id == id; });
    if (w == waits_.end())
        fail("P3: the handler of an interval is told twice");
    return w;
}

void intervals::completed(int id, const error_code& ec, std::uint64_t missed) {
    const auto found = find(id);
    const wait w = *found;
    waits_.erase(found);
    if (ec) {
        const bool asked = (w.cancelled && ec == asio::error::operation_aborted) ||
                           (w.hurried && ec == asio::error::timed_out) ||
                           (world_.dying(w.context) && ec == asio::error::operation_aborted);
        if (!asked || missed != 0)
            fail("interval: a handler is told " + ec.message());
    } else {
        if (w.cancelled && !w.hurried)
            fail("P4: a wait for a tick completes with success, but was cancelled");
        const std::int64_t now = virtual_time::steady;
        if (now < w.due && !w.hurried)
            fail("P1: a tick is early: it is due at " + std::to_string(w.due));
        if (w.owner >= 0) {
            interval& i = intervals_[static_cast<std::size_t>(w.owner)];
            if (i.number == w.number) {
                ++i.number;
                const std::int64_t due = std::min(i.next, now);
                const std::int64_t late = now - due;
                const auto gone =
                    late > tolerance ? static_cast<std::uint64_t>(late / i.period) : 0;
                if (missed != gone)
                    fail("interval: " + std::to_string(missed) + " ticks are missed, and not " +
                         std::to_string(gone));
                if (now >= i.next) {
                    if (late <= tolerance || i.policy == pawl::missed_tick_policy::burst) {
                        follow(i, i.next);
                    } else {
                        i.number += gone;
                        follow(i, i.policy == pawl::missed_tick_policy::delay
                                      ? now
                                      : now - late % i.period);
                    }
                }
                check(i);
            }
        }
    }
    world_.go_on(w.what->then);
}

void intervals::destroyed(int id) {
    const auto w = find(id);
    if (!world_.dying(w->context))
        fail("P3: the handler of an interval is destroyed uncalled");
    waits_.erase(w);
}

int intervals::settled(int context) {
    int pending = 0;
    for (wait& w : waits_) {
        if (w.context != context)
            continue;
        ++pending;
        if (w.cancelled)
            fail("P3: a wait for a tick is cancelled and does not end");
        if (saturating_subtract(virtual_time::steady, w.due) >= world_.precision(context))
            fail("P2: a tick is late: it was due at " + std::to_string(w.due));
    }
    return pending;
}

void intervals::leave(int context) {
    for (interval& i : intervals_) {
        if (i.timer && i.context == context)
            perform(
                {.what = op::destroy_interval, .object = static_cast<int>(&i - intervals_.data())});
    }
}

void intervals::hurry(int context) {
    for (wait& w : waits_)
        w.hurried = w.hurried || w.context == context;
}

void intervals::finished() const {
    if (!waits_.empty())
        fail("P3: a handler of an interval has neither been invoked nor destroyed");
}

} // namespace simulation
