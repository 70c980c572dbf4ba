// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/feeds.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/event_feed.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace simulation::threads {

namespace {

using pawl::timer_event_kind;

[[noreturn]] void broken(const std::string& what) { fail("event feed: " + what); }

} // namespace

/// A reader, and what it was given since it has joined or resumed.
struct feeds::watcher {
    watcher(pawl::event_feed& f, const asio::any_io_executor& ex, pawl::event_kinds k, bool all)
        : feed(f), before(f.published()), reader(f.join(ex, k)), after(f.published()),
          everything(all) {}

    void take(std::span<const pawl::timer_event> events, std::uint64_t more_missed) {
        count += events.size();
        missed += more_missed;
        for (const pawl::timer_event& e : events) {
            if (!everything && e.kind != timer_event_kind::armed)
                broken("an event of a kind that the reader has not asked for");
            if (e.kind == timer_event_kind::armed)
                armed += e.waits;
            else if (e.kind == timer_event_kind::started || e.kind == timer_event_kind::cancelled ||
                     e.kind == timer_event_kind::shut_down)
                ended += e.waits;
        }
    }
    /// @return whether there may be more.
    bool read(std::size_t most) {
        std::array<pawl::timer_event, 100> events;
        const pawl::read_result got =
            reader.try_read(std::span(events).first(std::min(most, events.size())));
        take(std::span(events).first(got.count), got.missed);
        return got.count != 0 || got.missed != 0;
    }
    void resume() {
        if (!reader.suspended())
            return;
        before = feed.published();
        reader.resume();
        after = feed.published();
        count = missed = armed = ended = 0;
    }

    pawl::event_feed& feed;
    std::uint64_t before; ///< published before it has joined or resumed
    pawl::event_feed::reader reader;
    std::uint64_t after; ///< published when it had
    const bool everything;
    std::uint64_t count = 0, missed = 0, armed = 0, ended = 0;
};

/// A reader that sleeps, in the strand of an arena.
struct feeds::sleeper {
    sleeper(pawl::event_feed& f, const asio::any_io_executor& strand)
        : watched(std::in_place, f, strand, pawl::event_kinds::all(), true) {}

    void begin() {
        watched->reader.async_read(
            events, asio::bind_cancellation_slot(
                        stop.slot(), [this](const error_code& ec, const pawl::read_result& got) {
                            completed(ec, got);
                        }));
    }
    void completed(const error_code& ec, const pawl::read_result& got) {
        if (!watched)
            return; // its context was abandoned
        if (ec && ec != asio::error::operation_aborted)
            broken("async_read() is told " + ec.message());
        if (!ec && got.count == 0 && got.missed == 0)
            broken("async_read() has waited for nothing");
        watched->take(std::span(events).first(got.count), got.missed);
        if (!stopped)
            begin();
    }
    void end() {
        stopped = true;
        stop.emit(asio::cancellation_type::total);
    }

    std::optional<watcher> watched;
    asio::cancellation_signal stop;
    std::array<pawl::timer_event, 16> events;
    bool stopped = false; ///< in the strand; not atomic, so that ThreadSanitizer sees races
};

struct feeds::source {
    source(arena& a, const pawl::event_feed_options& o)
        : of(a), feed(a.io ? pawl::event_feed(*a.io, o) : pawl::event_feed(*a.pool, o)),
          first(feed, a.native, pawl::event_kinds::all(), true), named(std::in_place, a.native) {}

    arena& of;
    pawl::event_feed feed;
    std::unique_ptr<sleeper> sleeps;

    std::mutex mutex; ///< of what follows
    watcher first;
    std::deque<watcher> others;
    std::optional<pawl::steady_timer> named;
    std::size_t waits = 0;
    bool closed = false;
};

feeds::feeds(random_source& random, company c, const std::vector<std::unique_ptr<arena>>& arenas)
    : feature(std::move(c), "feeds") {
    for (const auto& a : arenas) {
        pawl::event_feed_options o;
        o.capacity = static_cast<std::size_t>(random.one_of({64, 64, 128, 1024, 1 << 16}));
        o.readers = 8;
        source& s = *sources_.emplace_back(std::make_unique<source>(*a, o));
        if (random.one_in(2)) {
            s.sleeps = std::make_unique<sleeper>(s.feed, *a->strand);
            s.sleeps->begin();
        }
    }
}
feeds::~feeds() = default;

void feeds::operate(random_source& random, arena& a) {
    source& s = **std::find_if(sources_.begin(), sources_.end(),
                               [&](const auto& each) { return &each->of == &a; });
    const std::scoped_lock lock(s.mutex);
    if (s.closed)
        return;
    const int what = random.below(10);
    if (what == 0 && s.others.size() < 4) {
        const bool all = random.one_in(2);
        s.others.emplace_back(
            s.feed, s.of.native,
            all ? pawl::event_kinds::all() : pawl::event_kinds{timer_event_kind::armed}, all);
        return;
    }
    if (what <= 3) {
        pawl::steady_timer& t = *s.named;
        constexpr std::array<const char*, 3> names_of_it{"", "a name", "twenty-three characters"};
        pawl::set_name(t, names_of_it[static_cast<std::size_t>(random.below(3))]);
        t.expires_after(std::chrono::nanoseconds(random.between(0, millisecond)));
        for (int n = random.below(4); n >= 0; --n, ++s.waits)
            t.async_wait([](const error_code&) {});
        return;
    }
    const auto most = static_cast<std::size_t>(random.one_of({1, 5, 100}));
    if (s.others.empty() || what == 4) {
        s.first.read(most);
        return;
    }
    watcher& w = random.one_of(s.others);
    switch (what) {
    case 5:
        w.reader.suspend();
        break;
    case 6:
        w.resume();
        break;
    case 7:
        s.others.pop_front();
        break;
    default:
        w.read(most);
        break;
    }
}

void feeds::close(ending) {
    for (const auto& s : sources_) {
        const std::scoped_lock lock(s->mutex);
        s->closed = true;
        if (s->sleeps && !company_.abandoned)
            asio::post(*s->of.strand, [&sleeps = *s->sleeps] { sleeps.end(); });
    }
}

void feeds::leave() {
    for (const auto& s : sources_) {
        s->named.reset();
        if (s->sleeps)
            s->sleeps->watched.reset(); // its executor is a strand
    }
}

tally feeds::check(const settings&) {
    tally all;
    for (const auto& s : sources_) {
        s->named.reset();
        all.waits += s->waits;
        all.perhaps += s->waits;
        all.each_time += s->sleeps != nullptr;
        const auto check = [&s = *s, this](watcher& w, bool exact) {
            if (w.reader.suspended())
                return;
            while (w.read(100)) {
            }
            const std::uint64_t published = s.feed.published();
            const std::uint64_t told = w.count + w.missed;
            if (w.everything ? told < published - w.after || told > published - w.before
                             : told > published - w.before)
                broken("conservation: " + std::to_string(w.count) + " events are read and " +
                       std::to_string(w.missed) + " missed, of " + std::to_string(published) +
                       " less " + std::to_string(w.before) + " to " + std::to_string(w.after));
            if (exact && w.missed == 0 && !company_.abandoned && w.armed != w.ended)
                broken("conservation: of " + std::to_string(w.armed) + " waits " +
                       std::to_string(w.ended) + " have ended");
        };
        check(s->first, true);
        for (watcher& w : s->others)
            check(w, false);
        if (s->sleeps && s->sleeps->watched)
            check(*s->sleeps->watched, true);
        if (s->feed.published() == 0 && s->waits != 0)
            broken("nothing is published of a timer that was used");
    }
    leave();
    return all;
}

} // namespace simulation::threads
