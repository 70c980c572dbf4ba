// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/queues.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/event_queue.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace simulation::threads {

namespace {

using queue = pawl::event_queue;

[[noreturn]] void broken(const std::string& what) { fail("event queue: " + what); }

} // namespace

/// Of a timer, a posted function, or a wait for events.
struct queues::record final : listener {
    enum class what { posted, one_off, interval, wait };

    record(const company& c, what w) : all(c), is(w) {}

    /// In the thread that processes.
    void run(const queue::event& e) {
        if (forbidden)
            broken("P3: a function runs after destroy()");
        if (std::exchange(running, true))
            broken("a function runs twice at a time");
        const std::int64_t now = steady_now();
        const std::int64_t scheduled = e.scheduled.time_since_epoch().count();
        ++runs;
        if (is == what::one_off && (runs != 1 || scheduled != due))
            broken("P3: a one-off runs a second time, or for another time");
        if (is != what::posted && now < scheduled && !all.hastens)
            broken("P1: an event is early");
        if (is == what::interval) {
            if (scheduled <= last)
                broken("P7: an event is not later than the one before");
            last = scheduled;
            ticks += 1 + e.overruns;
            overruns += e.overruns;
            const auto until = [&](std::int64_t t) {
                return static_cast<std::uint64_t>((t - due) / period + 1);
            };
            if (exact && !all.hastens && (ticks < until(scheduled) || ticks > until(now)))
                broken("conservation: " + std::to_string(ticks) +
                       " ticks of an interval, and not " + std::to_string(until(scheduled)) +
                       " to " + std::to_string(until(now)));
        }
        running = false;
    }
    /// Its function is destroyed.
    void drop() {
        if (gone.fetch_add(1) != 0)
            broken("P3: a function is destroyed twice");
    }

    void completed(int, const error_code& ec, std::uint64_t) override {
        if (ec && ec != asio::error::operation_aborted && !(ec == hasty && all.hastens))
            broken("async_wait() is told " + ec.message());
        drop();
    }
    void destroyed(int) override {
        if (!all.abandoned)
            broken("P3: the handler of async_wait() is destroyed uncalled");
        drop();
    }

    const company& all;
    const what is;
    std::int64_t due = 0, period = 1;
    bool exact = false;  ///< its ticks are points of its grid
    bool bursts = false; ///< no tick is skipped
    std::atomic<bool> forbidden{false};
    std::atomic<int> gone{0};
    bool disarmed = false, destroyed_by_user = false; // under the mutex of its place
    queue::timer timer;

    // By the thread that processes. Not atomic, so that ThreadSanitizer sees races.
    bool running = false;
    int runs = 0;
    std::int64_t last = INT64_MIN;
    std::uint64_t ticks = 0, overruns = 0;
};

struct queues::place {
    /// A function, move-only.
    struct function {
        explicit function(record& r) : to(&r) {}
        function(function&& other) noexcept : to(std::exchange(other.to, nullptr)) {}
        function& operator=(function&&) = delete;
        ~function() {
            if (to)
                to->drop();
        }
        void operator()() { to->run({}); }
        void operator()(const queue::event& e) { to->run(e); }

        record* to;
    };

    void process(std::uint64_t seed) {
        random_source random(seed);
        while (!stops.load()) {
            switch (random.below(4)) {
            case 0:
                q->wait();
                break;
            case 1:
                q->wait_for(std::chrono::microseconds(random.below(500)));
                break;
            case 2:
                std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));
                break;
            default:
                break;
            }
            if (random.one_in(2))
                q->process_events();
            else
                q->process_events(static_cast<std::size_t>(1 + random.below(3)));
        }
    }

    void join() {
        if (!host.joinable())
            return;
        stops = true;
        asio::post(*q, [] {});
        host.join();
    }

    std::mutex mutex;
    std::unique_ptr<queue> q;
    std::atomic<bool> stops{false};
    std::thread host;
    std::deque<record> records;
    bool closed = false;
};

queues::queues(company c) : feature(std::move(c), "queues") {
    for (auto& p : places_)
        p = std::make_unique<place>();
}
queues::~queues() = default;

void queues::make(random_source& random, place& p, arena& a) {
    pawl::event_queue_options o;
    o.capacity = static_cast<std::size_t>(random.one_of({1, 2, 5, 1000}));
    o.overflow = static_cast<pawl::overflow_policy>(random.below(3));
    if (random.one_in(3))
        p.q = std::make_unique<queue>(o);
    else
        p.q = std::make_unique<queue>(a.executor(random).ex, o);
    p.host = std::thread([&p, seed = random.next()] { p.process(seed); });
}

void queues::add(random_source& random, place& p) {
    using std::chrono::nanoseconds;
    const std::int64_t d = company_.duration(random);
    const int kind = random.below(5);
    if (kind <= 1) {
        record& r = p.records.emplace_back(company_, record::what::posted);
        asio::post(*p.q, place::function(r));
    } else if (kind <= 3) {
        record& r = p.records.emplace_back(company_, record::what::one_off);
        r.due = steady_now() + d;
        r.timer = p.q->once_at(queue::time_point(nanoseconds(r.due)), place::function(r));
    } else {
        record& r = p.records.emplace_back(company_, record::what::interval);
        const auto policy = static_cast<pawl::missed_tick_policy>(random.below(3));
        r.bursts = policy == pawl::missed_tick_policy::burst;
        r.exact = policy != pawl::missed_tick_policy::delay;
        r.period = random.between(10 * microsecond, millisecond);
        r.due = steady_now() + random.between(-10 * millisecond, millisecond);
        r.timer = p.q->every_from(queue::time_point(nanoseconds(r.due)), nanoseconds(r.period),
                                  place::function(r), policy);
    }
}

void queues::operate(random_source& random, arena& a) {
    place& p = *random.one_of(places_);
    const std::scoped_lock lock(p.mutex);
    if (p.closed)
        return;
    if (!p.q)
        make(random, p, a);
    if (random.one_in(6)) {
        record& r = p.records.emplace_back(company_, record::what::wait);
        p.q->async_wait(asio::bind_executor(company_.bound(random).ex, completion(r, 0, {})));
        return;
    }
    if (p.records.empty() || !random.one_in(3))
        return add(random, p);
    record& r = random.one_of(p.records);
    switch (random.below(3)) {
    case 0:
        r.disarmed = r.timer.disarm() || r.disarmed;
        break;
    case 1:
        r.destroyed_by_user = true;
        r.timer.destroy();
        r.forbidden = r.is != record::what::posted && r.is != record::what::wait;
        break;
    default:
        r.destroyed_by_user = true;
        if (r.timer.destroy_for(std::chrono::microseconds(random.below(300))))
            r.forbidden = r.is != record::what::posted && r.is != record::what::wait;
        break;
    }
}

void queues::close(ending how) {
    for (const auto& p : places_) {
        const std::scoped_lock lock(p->mutex);
        p->closed = true;
        if (!p->q || how == ending::abandon)
            continue;
        for (record& r : p->records) {
            if (r.is == record::what::interval || how != ending::expiry)
                r.disarmed = r.timer.disarm() || r.disarmed;
        }
        p->join();
        asio::post(*p->q, [] {}); // nobody takes it: waits for events end
        (void)p->q->pending();    // those of a queue with timers of its own
    }
}

void queues::leave() {
    for (const auto& p : places_) {
        if (!p->q)
            continue;
        p->join();
        if (!company_.abandoned)
            process_rest(*p);
        p->q.reset();
        for (record& r : p->records)
            r.timer = {}; // its executor may be a strand, which must not outlive its context
    }
}

void queues::process_rest(place& p) {
    while (p.q->timers() != 0 || p.q->inqueue() != 0) {
        p.q->wait_for(std::chrono::milliseconds(1));
        p.q->process_events();
    }
    std::uint64_t overruns = 0;
    for (const record& r : p.records)
        overruns += r.bursts ? r.overruns : 0;
    const std::uint64_t dropped = p.q->dropped();
    switch (p.q->options().overflow) {
    case pawl::overflow_policy::block:
        if (overruns != 0 || dropped != 0)
            broken("conservation: ticks are dropped, and there was room");
        break;
    case pawl::overflow_policy::
        drop_oldest: // no event has followed the last ones that were dropped
        if (overruns > dropped)
            broken("conservation: " + std::to_string(overruns) +
                   " ticks are told as dropped, and " + std::to_string(dropped) + " were");
        break;
    case pawl::overflow_policy::coalesce:
        if (dropped != 0)
            broken("conservation: ticks are dropped in place of counted");
        break;
    }
}

tally queues::check(const settings&) {
    leave();
    std::size_t n = 0;
    for (const auto& p : places_) {
        for (const record& r : p->records) {
            n += r.is != record::what::posted;
            if (r.gone.load() != 1)
                broken("P3: a function is not destroyed");
            if (company_.abandoned || r.is == record::what::wait || r.is == record::what::interval)
                continue;
            const bool may_not_run =
                r.is == record::what::one_off && (r.destroyed_by_user || company_.hastens);
            if (r.runs > 1 || (r.disarmed && r.runs != 0) ||
                (r.runs == 0 && !r.disarmed && !may_not_run))
                broken("P3: a function has run " + std::to_string(r.runs) + " times" +
                       (r.disarmed ? ", disarmed" : ""));
        }
        p->records.clear();
    }
    return {.waits = n, .perhaps = n};
}

} // namespace simulation::threads
