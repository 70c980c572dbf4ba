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
constexpr std::int64_t most_gained = 1'000'000'000; ///< by a clock that was not set

/// Calls `f` with the timer.
template <class Interval, class Function>
decltype(auto) on(Interval& i, Function f) {
    return i.type == kind::set ? f(std::get<2>(i.timer)) : f(std::get<1>(i.timer));
}

} // namespace

void intervals::perform(const step& s) {
    const int index = s.object;
    interval& i = intervals_[static_cast<std::size_t>(index)];
    if (s.what == op::make_interval) {
        if (i.timer.index() == 0 && world_.there(s.context))
            make(s);
        return;
    }
    if (i.timer.index() == 0)
        return;
    const std::int64_t now = now_of(i.type);
    const std::chrono::nanoseconds d(std::max<std::int64_t>(s.time, 1));
    switch (s.what) {
    case op::destroy_interval:
        for (wait& w : waits_) {
            if (w.owner == index) {
                w.owner = -1;
                w.cancelled = true;
            }
        }
        i.timer = std::monostate();
        return;
    case op::wait_interval: {
        if (!world_.there(i.context))
            return;
        const int id = ++last_id_;
        waits_.push_back({id, index, i.context, i.number, i.type, i.next, false, false, false, &s});
        on(i, [&](auto& t) { t.async_wait(completion(*this, id, {})); });
        break;
    }
    case op::cancel_interval:
        cancel_all(index, on(i, [](auto& t) { return t.cancel(); }), "cancel() of an interval");
        break;
    case op::reset_interval: {
        const std::size_t n = on(i, [](auto& t) { return t.reset(); });
        follow(i, now);
        moved(index, n, "reset()");
        break;
    }
    case op::reset_interval_after: {
        const std::size_t n = on(i, [&](auto& t) { return t.reset_after(d); });
        i.next = saturating_add(now, d.count());
        i.set = true;
        moved(index, n, "reset_after()");
        break;
    }
    case op::set_period: {
        const std::size_t n = on(i, [&](auto& t) { return t.set_period(d); });
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
    i = {};
    i.type = s.type == kind::set ? kind::set : kind::steady;
    world_.serve(s.context, i.type);
    const std::int64_t now = now_of(i.type);
    i.context = s.context;
    i.period = std::clamp<std::int64_t>(s.time, 1, 3'600'000'000'000);
    i.next = i.base = now;
    i.policy = static_cast<pawl::missed_tick_policy>(s.more % 3);
    i.seen = now;
    i.seen_steady = virtual_time::steady;
    const auto ex = world_.executor(s.context, s.executor);
    const std::chrono::nanoseconds period(i.period);
    if (i.type == kind::set)
        i.timer.emplace<2>(ex, period, i.policy);
    else
        i.timer.emplace<1>(ex, period, i.policy);
    check(i);
}

void intervals::check(const interval& i) const {
    if (i.timer.index() == 0)
        return;
    const std::int64_t next =
        on(i, [](auto& t) -> std::int64_t { return t.next_tick().time_since_epoch().count(); });
    if (next != i.next)
        fail("interval: the next tick is at " + std::to_string(next) + ", and not at " +
             std::to_string(i.next));
}

/// `gone` ticks are missed.
void intervals::deliver(interval& i, std::int64_t now, std::int64_t late, std::uint64_t gone) {
    const std::int64_t passed =
        virtual_time::steady - std::exchange(i.seen_steady, virtual_time::steady);
    const bool leapt = now > saturating_add(std::exchange(i.seen, now), passed + most_gained);
    ++i.number;
    if (now < i.next)
        return;
    if (late <= tolerance || (i.policy == pawl::missed_tick_policy::burst && !leapt))
        return follow(i, i.next);
    i.number += gone;
    follow(i, i.policy == pawl::missed_tick_policy::delay ? now : now - late % i.period);
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
        least += !w.ended_early;
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
        least += !w.ended_early;
        w.due = i.next;
        w.reached = false;
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
                           (w.ended_early && ec == asio::error::timed_out) ||
                           (world_.dying(w.context) && ec == asio::error::operation_aborted);
        if (!asked || missed != 0)
            fail("interval: a handler is told " + ec.message());
    } else {
        if (w.cancelled && !w.ended_early)
            fail("P4: a wait for a tick completes with success, but was cancelled");
        const std::int64_t now = now_of(w.type);
        if (now < w.due && !w.reached && !w.ended_early)
            fail("P1: a tick is early: it is due at " + std::to_string(w.due));
        if (w.owner >= 0) {
            interval& i = intervals_[static_cast<std::size_t>(w.owner)];
            if (i.number == w.number) {
                const std::int64_t late = saturating_subtract(now, std::min(i.next, now));
                const auto gone =
                    late > tolerance ? static_cast<std::uint64_t>(late / i.period) : 0;
                if (missed != gone)
                    fail("interval: " + std::to_string(missed) + " ticks are missed, and not " +
                         std::to_string(gone));
                deliver(i, now, late, gone);
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
        const std::int64_t precision = world_.precision(context);
        const bool looks = w.type == kind::steady ||
                           saturating_subtract(virtual_time::steady, set_at_) > 1'001'000'000;
        if (looks && w.due <= latest - 2 * precision &&
            saturating_subtract(now_of(w.type), w.due) >= precision)
            fail("P2: a tick is late: it was due at " + std::to_string(w.due));
    }
    return pending;
}

void intervals::leave(int context) {
    for (interval& i : intervals_) {
        if (i.timer.index() != 0 && i.context == context)
            perform(
                {.what = op::destroy_interval, .object = static_cast<int>(&i - intervals_.data())});
    }
}

void intervals::end_early(int context) {
    for (wait& w : waits_)
        w.ended_early = w.ended_early || w.context == context;
}

void intervals::clock_is_set() {
    set_at_ = virtual_time::steady;
    for (wait& w : waits_)
        w.reached = w.reached || (w.type == kind::set && now_of(kind::set) >= w.due);
}

void intervals::finished() const {
    if (!waits_.empty())
        fail("P3: a handler of an interval has neither been invoked nor destroyed");
}

} // namespace simulation
