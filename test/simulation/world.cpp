// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/world.hpp"

#include "simulation/makers.hpp"

#include <pawl/expire_all.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace simulation {

namespace {

constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

/// manual_clock has one time for the process, which cannot go back, so scenarios would depend on
/// earlier ones. The arguments of an explicit instantiation may name private members.
template <auto Member>
struct opened {
    friend std::atomic<std::int64_t>& manual_ticks() { return *Member; }
};
std::atomic<std::int64_t>& manual_ticks();
template struct opened<&pawl::manual_clock::ticks_>;

const error_code hasty = asio::error::timed_out;

outcome outcome_of(const error_code& ec) {
    if (!ec)
        return on_time;
    if (ec == asio::error::operation_aborted)
        return aborted;
    if (ec == asio::error::no_buffer_space)
        return refused;
    if (ec == hasty)
        return expired;
    fail("P3: a handler is told " + ec.message());
}

} // namespace

world::world(const setup& begin)
    : setup_(begin), model_(setup_), contexts_(setup_.contexts.size()) {
    virtual_time::steady = setup_.steady;
    edge_clock::ahead = saturating_subtract(setup_.edge, setup_.steady);
    set_clock_of(kind::set, setup_.set);
    set_clock_of(kind::set_milli, setup_.set_milli);
    mock_clock::reading = setup_.mock;
    mock_traits::mode = setup_.traits;
    manual_ticks().store(setup_.manual);
    for (std::size_t i = 0; i < contexts_.size(); ++i)
        open(static_cast<int>(i));
}

world::~world() = default;

template <class Function>
auto world::call(Function&& f) {
    struct guard {
        int& calls;
        ~guard() { --calls; }
    } const leave{++calls_};
    return f();
}

void world::perform(const step& s) {
    ++totals_.operations;
    if (trace)
        std::fprintf(stderr, "%*s%s\n", 2 * depth_, "", text_of(s).c_str());
    try {
        perform_one(s);
    } catch (const raised&) { // thrown by a handler that a call has invoked: that of a limit
        if (depth_ != 0)
            throw;
    }
}

void world::perform_one(const step& s) {
    switch (family_of(s.what)) {
    case family::timers:
        return timer_step(s);
    case family::limits:
        return limits_.perform(s);
    case family::intervals:
        return intervals_.perform(s);
    case family::alarms:
        return alarms_.perform(s);
    case family::streams:
        return streams_.perform(s);
    case family::patterns:
        return patterns_.perform(s);
    case family::clocks:
        return clock_step(s);
    case family::contexts:
        return context_step(s);
    }
}

// --- timers ---------------------------------------------------------------------------------------

void world::timer_step(const step& s) {
    auto& timer = timers_[at(s.object)];
    timer_model& m = model_.timers[at(s.object)];
    switch (s.what) {
    case op::make:
        if (!timer)
            make(s);
        return;
    case op::emit: {
        if (s.signal < 0)
            return;
        const hearer h = hearers_[at(s.signal)];
        const bool listens = h.listens && h.listens();
        if (!h.may_hear())
            return;
        const bool hears = s.more != 0 && listens;
        if (hears)
            h.told();
        call([&] { signals_[at(s.signal)].emit(static_cast<asio::cancellation_type>(s.more)); });
        if (hears)
            h.told();
        return;
    }
    default:
        break;
    }
    if (s.what == op::move) {
        if (timer || !timers_[at(s.other)])
            return;
        timer = call([&] { return timers_[at(s.other)]->move(); });
        model_.moved(s.other, s.object);
        return;
    }
    if (!timer)
        return;
    switch (s.what) {
    case op::destroy: {
        const std::unique_ptr<any_timer> gone = std::move(timer);
        model_.timer_left(s.object);
        call([&] { const_cast<std::unique_ptr<any_timer>&>(gone).reset(); });
        return;
    }
    case op::assign: {
        auto& from = timers_[at(s.other)];
        if (!from || model_.timers[at(s.other)].type != m.type || s.object == s.other)
            return;
        model_.timer_left(s.object);
        model_.moved(s.other, s.object);
        call([&] { timer->assign(*from); });
        return;
    }
    case op::wait:
        return wait(s);
    case op::cancel: {
        const std::size_t n = call([&] { return timer->cancel(); });
        model_.cancelled(s.object, all, n, "cancel()");
        return;
    }
    case op::cancel_one: {
        const std::size_t n = call([&] { return timer->cancel_one(); });
        model_.cancelled(s.object, 1, n, "cancel_one()");
        return;
    }
    default:
        return set_expiry(s);
    }
}

void world::make(const step& s) {
    const auto& mc = model_.contexts[at(s.context)];
    if (!there(s.context))
        return;
    serve(s.context, s.type);
    const auto ex = executor(s.context, s.executor);
    auto& timer = timers_[at(s.object)];
    // Without locking, a handler's thread is the only one that may use the context.
    const bool by_others = setup_.threads && setup_.contexts[at(s.context)].locking;
    const int thread = by_others ? s.thread : 0;
    if (by_others)
        makers::instance().run(thread, [&] { timer = make_timer(s.type, ex); });
    else
        timer = make_timer(s.type, ex);
    timer_model m;
    m.there = true;
    m.serial = ++last_timer_;
    m.type = s.type;
    m.context = s.context;
    m.life = mc.life;
    m.thread = thread;
    m.native = s.executor == flavour::native;
    m.in_strand = s.executor == flavour::strand;
    model_.timers[at(s.object)] = m;
}

void world::set_expiry(const step& s) {
    any_timer& timer = *timers_[at(s.object)];
    timer_model& m = model_.timers[at(s.object)];
    const auto& home = model_.contexts[at(m.context)];
    const bool alive = home.life == m.life && !home.dying;
    if (!alive && (is_ring(m.type) || !m.waited))
        return; // it does not learn that its context has ended
    const std::int64_t now = now_of(m.type);
    const std::int64_t before = m.expiry;
    std::int64_t left = s.time;
    const bool rearm = is_rearm(s.what);
    std::size_t n = 0;
    try {
        n = call([&] { return simulation::set_expiry(timer, s.what, now, s.time, s.more); });
    } catch (const std::invalid_argument&) {
        if (!is_ring(m.type) && s.more >= s.time)
            throw;
        n = all; // unchanged
    } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::no_buffer_space || !is_ring(m.type))
            throw;
        n = all;
    }
    if (n == all) {
        if (timer.expiry() != before)
            fail("a call that throws has changed the expiry: " + std::to_string(timer.expiry()));
        return;
    }
    m.expiry = timer.expiry();
    const bool at_time = s.what == op::expires_at || s.what == op::rearm_at;
    const bool within = s.what == op::expires_within || s.what == op::rearm_within;
    // The time itself decides whether an expiry has passed, also for a point in time.
    const std::int64_t most = within ? s.more : s.time;
    const std::int64_t slack = at_time || most <= 0 ? 0 : slack_of(m.type);
    if (m.expiry < saturating_add(now, s.time) ||
        m.expiry > saturating_add(saturating_add(now, slack), most))
        fail("expiry: " + std::to_string(m.expiry) + " is not in the range");
    if (at_time || within)
        left = saturating_subtract(m.expiry, now);
    m.overdue = left <= 0;
    if (!rearm)
        model_.cancelled(s.object, all, n, "setting the expiry");
    else if (alive)
        model_.rearmed(s.object, n, "a re-arm");
    else if (n != 0 && !home.dying) // while it ends, its services close one after the other
        fail("P10: a re-arm finds waits of a context that has gone");
}

void world::wait(const step& s) {
    timer_model& m = model_.timers[at(s.object)];
    const auto& home = model_.contexts[at(m.context)];
    const bool alive = home.life == m.life;
    if (!alive && (!m.waited || !m.native))
        return; // any other executor would be asked for work
    // An executor that runs functions inside the call runs them in the context of the timer.
    const int wanted = s.executor == flavour::immediate ? m.context : s.context;
    const bool bound = s.bound && there(wanted);
    if (bound && wanted != m.context && (!alive || home.dying))
        return;

    const int runs_in = bound ? wanted : m.context;
    const int id = model_.started(s.object, runs_in, !bound || s.executor == flavour::native);
    const bool had_waited = std::exchange(m.waited, true);
    const int serial = m.serial;
    const bool may_throw = is_ring(m.type);
    if (!alive || home.dying || may_throw)
        model_.allow(id, dropped, true);
    if (!alive || home.dying)
        model_.starts_too_late(id);
    steps_[id] = &s;
    const asio::cancellation_slot slot =
        listen(s.signal,
               {[this, id] { return model_.pending(id); }, [this, id] { model_.cancelled(id); }});
    try {
        call([&] {
            completion handler(*this, id, slot);
            if (bound) {
                const auto ex = executor(wanted, s.executor);
                timers_[at(s.object)]->wait(std::move(handler), &ex);
            } else {
                timers_[at(s.object)]->wait(std::move(handler), nullptr);
            }
        });
    } catch (const std::invalid_argument&) {
        if (!may_throw)
            throw;
        model_.not_started(id);
        for (timer_model& t : model_.timers) // its handler may have moved it
            t.waited = t.waited && (t.serial != serial || had_waited);
        return;
    }
    if (may_throw && alive && !home.dying)
        model_.allow(id, dropped, false);
}

// --- handlers -------------------------------------------------------------------------------------

void world::completed(int id, const error_code& ec, std::uint64_t) {
    if (calls_ != 0)
        fail("P3: a handler is invoked within a call");
    model_.completed(id, outcome_of(ec));
    if (planted && !ec)
        fail("planted: a wait completes with success");
    go_on(steps_.extract(id).mapped()->then);
}

void world::go_on(const std::vector<step>& steps, bool may_throw) {
    ++handlers_;
    struct guard {
        guard(int& n, int by) noexcept : number(n), more(by) { number += more; }
        ~guard() { number -= more; }
        int& number;
        int more;
    };
    const guard depth(depth_, 1), quiet(quiet_, may_throw ? 0 : 1);
    const auto& m = model_.contexts;
    for (const step& s : steps) {
        if (s.what != op::raise)
            perform(s);
        else if (quiet_ == 0 &&
                 std::none_of(m.begin(), m.end(), [](const auto& c) { return c.dying; }))
            throw raised();
    }
}

void world::destroyed(int id) {
    model_.destroyed(id);
    const auto entry = steps_.extract(id);
    const int calls = std::exchange(calls_, 0);
    ++depth_;
    for (const step& s : entry.mapped()->dying)
        perform(s);
    --depth_;
    calls_ = calls;
}

// --- clocks ---------------------------------------------------------------------------------------

void world::set_clock_of(kind k, std::int64_t to) {
    switch (k) {
    case kind::set:
    case kind::set_binary:
        set_clock::ahead = saturating_subtract(to, virtual_time::steady);
        break;
    case kind::set_milli: {
        const auto steady = std::chrono::nanoseconds(virtual_time::steady);
        set_milli_clock::ahead =
            saturating_subtract(to, std::chrono::floor<std::chrono::milliseconds>(steady).count());
        break;
    }
    case kind::mock:
        mock_clock::reading = to;
        break;
    default:
        break;
    }
}

void world::clock_step(const step& s) {
    model_.clock_moved(); // time may have passed while the context slept
    switch (s.what) {
    case op::pass:
        // Asio adds to the readings of its clock.
        if (s.time > 0 && virtual_time::steady < latest / 2 - s.time)
            virtual_time::steady += s.time;
        break;
    case op::set:
    case op::set_to:
        if (!is_set(s.type))
            return;
        if (s.type == kind::set || s.type == kind::set_binary) {
            intervals_.clock_is_set();
            alarms_.clock_is_set();
        }
        set_clock_of(s.type,
                     s.what == op::set_to ? s.time : saturating_add(now_of(s.type), s.time));
        model_.clock_set(s.type);
        if (s.type == kind::set || s.type == kind::set_binary)
            model_.clock_set(s.type == kind::set ? kind::set_binary : kind::set);
        break;
    case op::approach: {
        const timer_model& t = model_.timers[at(s.object)];
        const std::int64_t to = saturating_add(t.expiry, s.time);
        if (!t.there)
            return;
        if (is_set(t.type))
            return clock_step({.what = op::set_to, .type = t.type, .time = to});
        const std::int64_t d = saturating_subtract(to, now_of(t.type));
        if (d <= 0)
            return;
        return clock_step(t.type == kind::manual
                              ? step{.what = op::advance, .context = t.context, .time = d}
                              : step{.what = op::pass, .time = d});
    }
    case op::advance:
    case op::advance_to_next: {
        place& c = contexts_[at(s.context)];
        const auto& mc = model_.contexts[at(s.context)];
        if (!mc.there || mc.dying)
            return;
        const std::int64_t before = now_of(kind::manual);
        if (s.what == op::advance) {
            const std::int64_t d = std::min(s.time, saturating_subtract(latest, before));
            call([&] { pawl::manual_clock::advance(*c.io, std::chrono::nanoseconds(d)); });
        } else {
            const auto [least, most] = model_.next_manual(s.context);
            const auto moved = call([&] { return pawl::manual_clock::advance_to_next(*c.io); });
            const std::int64_t now = now_of(kind::manual);
            if (now < least || now > most || now - before != moved.count())
                fail("manual_clock: advance_to_next() moves to " + std::to_string(now) +
                     ", and the next deadline is at " + std::to_string(least));
            if (moved.count() == 0) { // for waits that are already due it need not check
                model_.perhaps_looked(s.context);
                break;
            }
        }
        model_.clock_moved();
        model_.manual_looked(s.context);
        break;
    }
    default:
        break;
    }
    model_.clock_moved();
}

// --- contexts -------------------------------------------------------------------------------------

bool world::there(int context) const {
    const auto& m = model_.contexts[at(context)];
    return m.there && !m.dying;
}
bool world::running(int context) const { return model_.contexts[at(context)].running != 0; }
bool world::dying(int context) const { return !there(context); }
std::uint64_t world::ended_early(int context) const { return contexts_[at(context)].ended_early; }
std::int64_t world::precision(int context) const { return setup_.contexts[at(context)].precision; }

void world::serve(int context, kind type) {
    auto& c = contexts_[at(context)];
    const auto bit = 1u << static_cast<unsigned>(type);
    if ((c.services & bit) != 0)
        return;
    make_service(type, *c.io, options_of(setup_.contexts[at(context)]));
    c.services |= bit;
}

asio::cancellation_slot world::listen(int signal, hearer h) {
    if (signal < 0)
        return {};
    hearer& now = hearers_[at(signal)];
    if (now.listens && now.listens())
        return {};
    if (!now.may_hear())
        signals_[at(signal)].slot().clear(); // the new listener may not use it after all
    now = std::move(h);
    return signals_[at(signal)].slot();
}

asio::any_io_executor world::executor(int index, flavour f) {
    place& c = contexts_[at(index)];
    const asio::any_io_executor native = c.io->get_executor();
    switch (f) {
    case flavour::native:
        break;
    case flavour::strand:
        return *c.strand;
    case flavour::unknown:
        return foreign_executor<flavour::unknown>(native, true);
    case flavour::copying:
        return foreign_executor<flavour::copying>(native, true);
    case flavour::immediate:
        return foreign_executor<flavour::immediate>(native, true);
    }
    return native;
}

void world::open(int index) {
    place& c = contexts_[at(index)];
    c.io = std::make_unique<asio::io_context>(setup_.contexts[at(index)].concurrency_hint);
    c.strand.emplace(c.io->get_executor());
    // Makes its reactor: a context without one sleeps on a condition variable, in real time.
    const asio::steady_timer any(*c.io);
    c.settings = &virtual_time::settings();
    c.settings_before = *c.settings;
    c.ran = virtual_time::steady;
    c.stopped = false;
    c.services = 0;
    auto& m = model_.contexts[at(index)];
    m.there = true;
    m.looked = 0;
    m.manual = 0;
    m.last_ring = virtual_time::steady;
}

void world::shut_down(int index) {
    place& c = contexts_[at(index)];
    for (std::size_t i = 0; i < timers_.size(); ++i) { // Asio's strands must not outlive it
        const timer_model& t = model_.timers[i];
        if (t.there && t.in_strand && t.context == index)
            perform_one({.what = op::destroy, .object = static_cast<int>(i)});
    }
    limits_.leave(index);
    intervals_.leave(index);
    alarms_.leave(index);
    streams_.leave(index);
    patterns_.leave(index);
    model_.shutdown_begins(index);
    // The implementation of its strand and the executors of timers no longer use it.
    c.strand.reset();
    const int calls = std::exchange(calls_, 0);
    c.io.reset();
    calls_ = calls;
    alarms_.left(index);
    model_.shutdown_ends(index);
}

void world::context_step(const step& s) {
    place& c = contexts_[at(s.context)];
    const auto& m = model_.contexts[at(s.context)];
    if (s.what == op::open) {
        if (!m.there && !m.dying)
            open(s.context);
        return;
    }
    if (!m.there || m.dying)
        return;
    switch (s.what) {
    case op::expire_all:
    case op::expire_all_of:
    case op::cancel_all: {
        const bool some = s.what == op::expire_all_of, cancels = s.what == op::cancel_all;
        const error_code ec = cancels       ? asio::error::operation_aborted
                              : s.time != 0 ? hasty
                                            : error_code();
        const std::size_t n = call([&] {
            return some      ? expire_all_of(s.type, *c.io, ec)
                   : cancels ? pawl::cancel_all(*c.io)
                             : pawl::expire_all(*c.io, ec);
        });
        model_.expired_all(s.context, some ? &s.type : nullptr,
                           cancels ? aborted
                           : ec    ? expired
                                   : early,
                           n,
                           limits_.count() + intervals_.count() + alarms_.count() +
                               streams_.count() + patterns_.count());
        alarms_.ended_early(s.context, some ? &s.type : nullptr, ec);
        ++c.ended_early;
        intervals_.end_early(s.context);
        streams_.end_early(s.context);
        if (!some || s.type == kind::steady)
            patterns_.end_early(s.context);
        break;
    }
    case op::poll:
    case op::poll_one:
    case op::run_one:
    case op::run_for:
        run(s);
        break;
    case op::stop:
        c.stopped = true;
        c.io->stop();
        break;
    case op::restart:
        if (m.running == 0) {
            c.io->restart();
            c.stopped = false;
        }
        break;
    case op::shut_down:
        if (m.running == 0 && !limits_.in_upcall() && !model_.awaited_from_elsewhere(s.context) &&
            !limits_.awaited_from_elsewhere(s.context))
            shut_down(s.context);
        break;
    default:
        break;
    }
}

void world::run(const step& s) {
    place& c = contexts_[at(s.context)];
    asio::io_context& io = *c.io;
    const auto& m = model_.contexts[at(s.context)];
    const bool nested = depth_ != 0;
    // Asio miscounts the work of a context with that hint if a handler runs it (Boost 1.81).
    if (m.running != 0 && setup_.contexts[at(s.context)].concurrency_hint == 1)
        return;
    if (m.running == 0 && !c.stopped && io.stopped())
        io.restart();
    virtual_time::looks = 0;
    model_.run_begins(s.context);
    const int calls = std::exchange(calls_, 0);
    const std::uint64_t handlers = handlers_;
    const std::size_t pending = model_.pending() + limits_.count() + intervals_.count() +
                                alarms_.count() + streams_.count() + patterns_.count();
    const std::size_t started = limits_.started() + patterns_.started();
    std::size_t units = 0;
    bool threw = false;
    // With traits that never wait, Asio checks again and again for as long as it must run. It does
    // the same if a clock stands at the end of its range, before a deadline that is never reached.
    // A handler may make such a service, or set a clock there, while the context runs.
    const auto outer = std::exchange(virtual_time::restless, [&] {
        const bool looks_on = (c.services & (1u << static_cast<unsigned>(kind::mock))) != 0 &&
                              setup_.traits != mock_wait::longest;
        const auto at_end = [](kind k) { return now_of(k) > latest - 8'000'000'000'000; };
        return looks_on || at_end(kind::set) || at_end(kind::set_milli) || at_end(kind::mock) ||
               at_end(kind::edge);
    });
    const std::int64_t longest = virtual_time::restless() ? 10'000 : 3'600'000'000'000;
    const std::chrono::nanoseconds d(std::clamp<std::int64_t>(s.time, 1, longest));
    try {
        switch (s.what) {
        case op::poll:
            units = io.poll();
            break;
        case op::poll_one:
            units = io.poll_one();
            break;
        case op::run_one:
            units = io.run_one_for(d);
            break;
        default:
            units = io.run_for(d);
            break;
        }
    } catch (const raised&) {
        threw = true;
    } catch (const asio::multiple_exceptions&) { // thrown by several handlers in one unit
        threw = true;
    }
    const bool looked_on = virtual_time::restless();
    const std::int64_t passed = virtual_time::steady - c.ran; // also in runs within handlers
    virtual_time::restless = outer;
    calls_ = calls;
    model_.run_ends(s.context);
    totals_.units += units;
    const std::uint64_t most = most_units(s.context, handlers_ - handlers, pending) +
                               limits_.started() + patterns_.started() - started;
    if (units > most)
        fail("cost: " + std::to_string(units) + " units, and no more than " + std::to_string(most) +
             " are needed");
    if (!nested) {
        // Each cause of a unit may set the system timer before, and Asio sets it again when it has
        // expired: each second for clocks that can be set, and each five minutes for far deadlines.
        // With traits that never wait, and so on, Asio sets it each time it checks.
        std::int64_t looks = passed / 300'000'000'000;
        for (int k = 0; k < kinds; ++k) {
            if (is_set(static_cast<kind>(k)) &&
                (c.services & (1u << static_cast<unsigned>(k))) != 0)
                looks += passed / 1'000'000'000;
        }
        const std::uint64_t most_settings = 2 * (most + static_cast<std::uint64_t>(looks));
        if (const std::uint64_t settings = *c.settings - c.settings_before;
            settings > most_settings && !looked_on)
            fail("cost: the system timer is set " + std::to_string(settings) +
                 " times, and no more than " + std::to_string(most_settings) + " are needed");
        c.operations = totals_.operations;
        c.settings_before = *c.settings;
        c.ran = virtual_time::steady;
    }
    if (nested || threw || c.stopped)
        return;
    if (s.what != op::poll && !io.stopped())
        return; // there may be more to do
    settled(s.context);
    if (s.what != op::poll)
        return;
    // P9, and no hidden cost: a settled context does nothing more until time passes.
    if (io.stopped())
        io.restart();
    virtual_time::looks = 0;
    model_.run_begins(s.context);
    const std::size_t more = io.poll();
    model_.run_ends(s.context);
    if (*c.settings != c.settings_before && !looked_on)
        fail("cost: an idle context sets the system timer");
    if (more != 0)
        fail("cost: an idle context runs " + std::to_string(more) + " units");
}

std::uint64_t world::most_units(int index, std::uint64_t handlers, std::size_t pending) const {
    // A handler takes a unit, and another one if its executor passes it on, or if it was cancelled.
    // Each operation may wake the driver, and so may each deadline, once, for nothing. A unit takes
    // batch_limit timers, and a wheel that has fallen behind takes a timer up to once for each bit
    // of a tick.
    const std::uint64_t moves = pending * 64 / setup_.contexts[at(index)].batch_limit;
    return 2 + 2 * handlers + (totals_.operations - contexts_[at(index)].operations) + pending +
           moves;
}

void world::settled(int index) {
    const business s = streams_.settled(index), l = limits_.settled(index),
                   p = patterns_.settled(index);
    const int armed = alarms_.settled(index);
    const bool work = intervals_.settled(index) != 0 || armed != 0 || s.work || l.work || p.work;
    model_.settled(index, contexts_[at(index)].io->stopped(), work,
                   s.perhaps || l.perhaps || p.perhaps);
}

totals world::end() {
    // First the contexts that run no handlers for others: a context must outlive the waits that go
    // there.
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < contexts_.size(); ++i) // handlers may have started others
            limits_.leave(static_cast<int>(i));
        for (std::size_t i = 0; i < timers_.size(); ++i) {
            if (timers_[i]) {
                model_.timer_left(static_cast<int>(i));
                const std::unique_ptr<any_timer> gone = std::move(timers_[i]);
            }
        }
        for (std::size_t i = 0; i < contexts_.size(); ++i) {
            const int index = static_cast<int>(i);
            if (model_.contexts[i].there && !model_.awaited_from_elsewhere(index) &&
                !limits_.awaited_from_elsewhere(index)) {
                shut_down(index);
                again = true;
            }
        }
        if (!again) {
            for (std::size_t i = 0; i < contexts_.size(); ++i) {
                if (model_.contexts[i].there) {
                    step rest{.what = op::poll, .context = static_cast<int>(i)};
                    contexts_[i].stopped = false;
                    run(rest);
                    again = true;
                }
            }
            if (again && ++ends_ > 20)
                fail("P3: cancelled waits do not end");
        }
    }
    for (auto& t : timers_) // made by handlers in the meantime
        t.reset();
    model_.finished();
    limits_.finished();
    intervals_.finished();
    alarms_.finished();
    streams_.finished();
    patterns_.finished();
    totals_.waits = model_.begun();
    return totals_;
}

totals run(const scenario& s) {
    world w(s.begin);
    for (const step& each : s.steps)
        w.perform(each);
    return w.end();
}

} // namespace simulation
