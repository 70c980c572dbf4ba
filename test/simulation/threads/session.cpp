// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/session.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/alarms.hpp"
#include "simulation/threads/arena.hpp"
#include "simulation/threads/feeds.hpp"
#include "simulation/threads/groups.hpp"
#include "simulation/threads/intervals.hpp"
#include "simulation/threads/ledger.hpp"
#include "simulation/threads/limits.hpp"
#include "simulation/threads/queues.hpp"
#include "simulation/threads/streams.hpp"
#include "simulation/threads/timers.hpp"

#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>

#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace simulation::threads {

namespace {

/// A timer, or none, and the mutex of its users.
struct place {
    explicit place(sort s) : type(s) {}

    const sort type;
    std::mutex mutex;
    std::unique_ptr<any_timer> timer;
    ledger* book = nullptr; ///< of the waits of the timer
    bool closed = false;    ///< no more operations here
};

class session {
public:
    explicit session(const random_source& random) : random_(random) {
        last_ = static_cast<ending>(random_.one_of({0, 0, 0, 0, 1, 2, 3, 4}));
        const int n = last_ == ending::abandon ? 1 : random_.one_of({1, 1, 2});
        for (int i = 0; i < n; ++i) {
            arena& a = *arenas_.emplace_back(std::make_unique<arena>(random_));
            a.guarded = a.guarded || last_ == ending::abandon;
            runners_ += a.threads;
        }
        const int kinds = random_.one_of({1, 1, 2, 3});
        for (int i = 0; i < kinds; ++i) {
            const auto s = static_cast<sort>(random_.below(sorts));
            if (std::find(types_.begin(), types_.end(), s) == types_.end())
                types_.push_back(s);
        }
        expires_all_ = last_ != ending::abandon && random_.one_in(3);
        stops_ = last_ != ending::abandon && random_.one_in(3);
        keep_company();
        workers_ = 2 + random_.below(3);
        calls_each_ = 20 + random_.below(60);
        add_places(shared_, 4);
        own_.resize(static_cast<std::size_t>(workers_));
        for (places& p : own_)
            add_places(p, 2);
        describe();
    }

    totals run() {
        for (const auto& a : arenas_)
            start(*a);
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < workers_; ++i) {
                const auto parts = static_cast<std::size_t>(workers_ + 1 - i);
                threads.emplace_back(
                    [this, i, random = random_.branch(parts)] { work(i, random); });
            }
            threads.emplace_back([this, random = random_.branch(1)] { move_clocks(random); });
            for (std::size_t i = 0; i + 1 < threads.size(); ++i)
                threads[i].join();
            workers_done_.store(true, std::memory_order_relaxed); // a hint
        }
        end();
        if (last_ != ending::abandon) {
            for (const auto& a : arenas_) {
                if (a->io)
                    idle(*a);
            }
        }
        return check();
    }

private:
    using places = std::vector<std::unique_ptr<place>>;

    /// The features, and the services of timers.
    void keep_company() {
        company c;
        c.hastens = expires_all_ || last_ == ending::expire_all;
        c.abandoned = last_ == ending::abandon;
        c.delivers = delivers();
        c.then = [this](random_source& random) { return next_step(random); };
        c.bound = [this](random_source& random) { return bound_to(random); };
        c.duration = [this](random_source& random) { return duration(random, sort::steady); };
        perhaps<limits>(2, c);
        perhaps<intervals>(3, c);
        perhaps<streams>(3, c);
        perhaps<groups>(3, c);
        perhaps<queues>(3, c);
        const bool with_feeds = random_.one_in(3);
        perhaps<alarms>(3, c, types_);
        for (const auto& a : arenas_) {
            for (const sort s : types_)
                make_service(s, a->context(), a->options);
            if ((!features_.empty() || with_feeds) &&
                std::find(types_.begin(), types_.end(), sort::steady) == types_.end())
                make_service(sort::steady, a->context(), a->options);
        }
        if (with_feeds) // last: its check needs the end of all other waits
            features_.push_back(std::make_unique<feeds>(random_, c, arenas_));
    }

    template <class Feature, class... Arguments>
    void perhaps(int one_in, const Arguments&... arguments) {
        if (random_.one_in(one_in))
            features_.push_back(std::make_unique<Feature>(arguments...));
    }

    /// Shutdown ends operations, whose handlers are told.
    [[nodiscard]] bool delivers() const {
        return last_ == ending::abandon &&
               arenas_.front()->options.on_shutdown == pawl::shutdown_policy::deliver;
    }

    void describe() const {
        about = "ends with " + name_of(last_);
        for (const auto& f : features_)
            about += std::string(", ") + f->name;
        about += std::string(expires_all_ ? ", expire_all" : "") + (stops_ ? ", stop" : "") +
                 (delivers() ? ", deliver" : "") + ", types";
        for (const sort s : types_)
            about += ' ' + name_of(s);
        for (const auto& a : arenas_) {
            std::ostringstream options;
            print(options, a->setup, 4);
            about += (a->in_pool ? "; thread_pool of " : "; io_context of ") +
                     std::to_string(a->threads) + (a->guarded ? "" : ", unguarded") + ", " +
                     std::move(options).str();
        }
    }

    void add_places(places& to, int n) {
        for (int i = 0; i < n; ++i)
            to.push_back(std::make_unique<place>(random_.one_of(types_)));
    }

    // --- threads ------------------------------------------------------------------------------

    void start(arena& a) {
        if (a.guarded || a.in_pool)
            a.guard.emplace(a.native);
        if (a.in_pool)
            return;
        for (int i = 0; i < a.threads; ++i)
            a.runners.emplace_back([this, &a] {
                std::size_t units = 0;
                while (!a.guarded && !closed_.load(std::memory_order_acquire)) { // pairs with end()
                    units += a.io->run();
                    a.io->restart();
                    std::this_thread::yield();
                }
                units += a.io->run();
                // Each stop() ended run() once, or came too late for that.
                for (int n = 0; n != a.stops.load(std::memory_order_relaxed); ++n) {
                    a.meeting->arrive_and_wait();
                    units += a.io->run();
                }
                units_.fetch_add(units, std::memory_order_relaxed); // a count
            });
    }

    void work(int index, random_source random) {
        for (int i = 0; i < calls_each_ && !random.over(); ++i) {
            operate(random, random.one_in(2) ? own_[static_cast<std::size_t>(index)] : shared_);
            if (random.one_in(5))
                std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
        }
    }

    void move_clocks(random_source random) {
        while (!workers_done_.load(std::memory_order_relaxed)) { // a hint
            arena& a = *random.one_of(arenas_);
            if (random.one_in(2))
                settings_.set(random.between(-2 * millisecond, 2 * millisecond));
            if (random.one_in(2))
                pawl::manual_clock::advance(
                    a.context(), std::chrono::nanoseconds(random.between(0, millisecond / 2)));
            else if (random.one_in(4))
                pawl::manual_clock::advance_to_next(a.context());
            if (expires_all_ && random.one_in(8))
                expire_all(a, random.one_in(2) ? &random.one_of(types_) : nullptr);
            if (stops_ && a.io && random.one_in(8))
                stop(a);
            std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
        }
    }

    static void stop(arena& a) {
        a.stops.fetch_add(
            1, std::memory_order_relaxed); // run() returns after it, by a mutex of its own
        a.io->stop();
    }

    void expire_all(arena& a, const sort* type) {
        const std::size_t n =
            type ? expire_all_of(*type, a.context(), hasty) : pawl::expire_all(a.context(), hasty);
        expired_.fetch_add(n, std::memory_order_relaxed); // a count
        hastenings_.fetch_add(1, std::memory_order_relaxed);
    }

    // --- calls --------------------------------------------------------------------------------

    [[nodiscard]] int busy() const { return runners_ - (in_handler ? 1 : 0); }

    ledger* new_ledger(sort s, rules r, home at) {
        const std::scoped_lock lock(ledgers_mutex_);
        return ledgers_.emplace_back(std::make_unique<ledger>(s, r, at)).get();
    }

    void operate(random_source& random, places& among) {
        for (const auto& f : features_) {
            if (random.one_in(4))
                return f->operate(random, *random.one_of(arenas_));
        }
        if (expires_all_ && random.one_in(40))
            return expire_all(*random.one_of(arenas_), &random.one_of(types_));
        place& p = *random.one_of(among);
        if (random.one_in(12)) {
            place& q = *random.one_of(among);
            if (&p != &q && p.type == q.type)
                assign(p, q);
            return;
        }
        const std::scoped_lock lock(p.mutex);
        if (p.closed)
            return;
        if (!p.timer)
            make(random, p);
        switch (random.below(16)) {
        case 0: // destroy
            if (random.one_in(2))
                destroy(p);
            break;
        case 1:
            p.timer = p.timer->move();
            break;
        case 2: {
            const std::uint64_t before = moment();
            const std::size_t n = p.timer->cancel();
            p.book->note(op::cancel, before, busy(), n);
            break;
        }
        case 3: {
            const std::uint64_t before = moment();
            const std::size_t n = p.timer->cancel_one();
            p.book->note(op::cancel_one, before, busy(), n);
            break;
        }
        case 4:
            p.book->emit(
                random.one_of({asio::cancellation_type::terminal, asio::cancellation_type::partial,
                               asio::cancellation_type::total}),
                busy());
            break;
        case 5:
        case 6:
        case 7:
            rearm(random, p);
            break;
        case 8:
        case 9:
        case 10:
            expire(random, p);
            [[fallthrough]];
        default:
            begin_wait(random, p);
            break;
        }
    }

    [[nodiscard]] rules rules_of(const arena& a, sort s) const {
        const pawl::ring_overflow full = a.options.rings.when_full;
        rules r;
        r.early = s == sort::ring && (full == pawl::ring_overflow::expire_now ||
                                      full == pawl::ring_overflow::flush_oldest);
        r.refuses = s == sort::ring && full == pawl::ring_overflow::reject;
        r.abandoned = last_ == ending::abandon;
        r.delivers = a.options.on_shutdown == pawl::shutdown_policy::deliver;
        return r;
    }

    void make(random_source& random, place& p) {
        arena& a = *random.one_of(arenas_);
        const destination d = a.executor(random);
        p.timer = make_timer(p.type, d.ex);
        p.book = new_ledger(p.type, rules_of(a, p.type), d.at);
        expire(random, p);
    }

    /// Destroys the timer.
    void destroy(place& p) {
        if (!p.timer)
            return;
        const std::uint64_t before = moment();
        p.timer.reset();
        p.book->note(op::destroy, before, busy());
    }

    /// Moves the timer at q, with its waits, to p.
    void assign(place& p, place& q) {
        const std::scoped_lock lock(p.mutex, q.mutex);
        if (p.closed || q.closed || !q.timer)
            return;
        if (p.timer) {
            const std::uint64_t before = moment();
            p.timer->assign(*q.timer);
            p.book->note(op::assign, before, busy());
        } else {
            p.timer = q.timer->move();
        }
        p.book = q.book;
        q.book = new_ledger(q.type, p.book->allowed, p.book->on);
    }

    std::int64_t duration(random_source& random, sort s) const {
        if (last_ != ending::expiry && random.one_in(6))
            return hour;
        if (s == sort::ring && !random.one_in(4))
            return random.one_of({100 * microsecond, 400 * microsecond, longest_ring});
        switch (random.below(8)) {
        case 0:
            return random.one_of<std::int64_t>({0, 1, -1});
        case 1:
            return random.between(-millisecond, 0);
        case 2:
            return 2 * millisecond;
        default:
            return random.between(0, 2 * millisecond);
        }
    }

    void expire(random_source& random, place& p) {
        set(random, p, op::expires_after, op::expires_at, op::expires_within);
    }
    void rearm(random_source& random, place& p) {
        set(random, p, op::rearm_after, op::rearm_at, op::rearm_within);
    }
    void set(random_source& random, place& p, op after, op at, op within) {
        any_timer& t = *p.timer;
        const std::int64_t d = duration(random, p.type);
        const std::uint64_t before = moment();
        const op how = random.one_of({at, within, after, after});
        std::int64_t more = d;
        if (how == within) {
            more += random.between(0, millisecond / 2);
            if (p.type == sort::ring && d <= longest_ring)
                more = std::min(more, longest_ring); // not the ring of an hour
        }
        std::size_t n = 0;
        try {
            n = set_expiry(t, how, now_of(p.type), d, more);
        } catch (const std::invalid_argument&) {
            if (p.type != sort::ring)
                fail("an expiry is refused");
            return; // no ring has that delay; nothing has changed
        } catch (const boost::system::system_error& e) {
            if (!is_rearm(how) || !p.book->allowed.refuses ||
                e.code() != asio::error::no_buffer_space)
                fail("a ring with room refuses");
            return; // it is full; nothing has changed
        }
        p.book->note(how, before, busy(), n, t.expiry());
    }

    /// The action of a handler, or nothing.
    std::function<void()> next_step(random_source& random) {
        if (!random.one_in(4))
            return {};
        return [this, seed = random.next()] {
            random_source own(seed);
            operate(own, shared_);
        };
    }

    /// An executor for a handler.
    destination bound_to(random_source& random) {
        if (random.one_in(8))
            return {asio::system_executor(), {nullptr, false, true}}; // where the timer completes
        return random.one_of(arenas_)->executor(random);
    }

    void begin_wait(random_source& random, place& p) {
        std::function<void()> then = next_step(random);
        const bool listens = random.one_in(4) && p.book->can_listen();
        const bool binds = random.one_in(3);
        const destination bound = binds ? bound_to(random) : destination{{}, p.book->on};
        wait& w = p.book->start(p.timer->expiry(), bound.at, std::move(then), listens);
        completion handler(w, 0, listens ? p.book->signal.slot() : asio::cancellation_slot());
        p.timer->wait(std::move(handler), binds ? &bound.ex : nullptr);
    }

    // --- the end ------------------------------------------------------------------------------

    /// Calls `f` for each place, while no other thread uses it.
    template <class Function>
    void for_each_place(Function&& f) {
        const auto all = [&](places& ps) {
            for (const auto& p : ps) {
                const std::scoped_lock lock(p->mutex);
                f(*p);
            }
        };
        all(shared_);
        for (places& p : own_)
            all(p);
    }

    void end() {
        for_each_place([this](place& p) {
            p.closed = true;
            if (last_ == ending::destroy) {
                destroy(p);
            } else if (last_ == ending::cancel && p.timer) {
                const std::uint64_t before = moment();
                const std::size_t n = p.timer->cancel();
                p.book->note(op::cancel, before, busy(), n);
            }
        });
        for (const auto& f : features_)
            f->close(last_);
        for (const auto& a : arenas_) {
            if (last_ == ending::expire_all)
                expire_all(*a, nullptr);
            else if (last_ == ending::expiry)
                pawl::manual_clock::advance(a->context(),
                                            std::chrono::seconds(1)); // and precisions
            else if (last_ == ending::abandon)
                a->io ? a->io->stop() : a->pool->stop();
        }
        closed_.store(true, std::memory_order_release); // pairs with start()
        for (const auto& a : arenas_)
            a->guard.reset();
        for (const auto& a : arenas_) { // P9: run() returns
            for (std::thread& t : a->runners)
                t.join();
            if (a->in_pool)
                a->pool->join();
        }
        if (last_ == ending::abandon)
            abandon(*arenas_.front());
        for (const auto& f : features_)
            f->finish();
    }

    /// Destroys the context before the timers, except for those in a strand, which must not outlive
    /// it.
    void abandon(arena& a) {
        for_each_place([this](place& p) {
            if (p.book && p.book->on.strand)
                destroy(p);
        });
        for (const auto& f : features_)
            f->leave();
        a.native = nullptr;
        a.strand.reset();
        a.io.reset();
        a.pool.reset();
    }

    /// No hidden cost: a context whose next deadlines, in two shards, are far in the future runs no
    /// units; and run() returns when they are cancelled.
    void idle(arena& a) {
        a.io->restart();
        a.guard.emplace(a.native);
        places far;
        const bool later_first = random_.one_in(2);
        for (const sort s : types_) {
            const auto wait_long = [&](bool later) {
                place& p = *far.emplace_back(std::make_unique<place>(s));
                p.timer = make_timer(s, a.native);
                p.book = new_ledger(s, rules_of(a, s), home{&a, false, false});
                p.timer->expires_after(later && s != sort::ring ? 2 * hour : hour);
                wait& w = p.book->start(p.timer->expiry(), p.book->on, {}, false);
                p.timer->wait(completion(w, 0, {}), nullptr);
            };
            wait_long(later_first);
            std::thread(wait_long, !later_first)
                .join(); // it has another shard, if there are several
        }
        // Earlier settings may still cause wake-ups, and a wheel moves a timer once for each level,
        // at most 64: several of these moves may be due. A spinning context runs one unit each
        // time.
        const std::size_t most = 64 * far.size() + 16;
        std::size_t units = 0;
        for (std::size_t i = 0; i < 4 * most; ++i)
            units += a.io->poll();
        if (units > most)
            fail("cost: an idle context runs " + std::to_string(units) + " units");
        for (const auto& p : far) {
            const std::uint64_t before = moment();
            const std::size_t n = p->timer->cancel();
            p->book->note(op::cancel, before, 0, n);
        }
        a.guard.reset();
        a.io->run(); // P9: it returns
    }

    totals check() {
        totals all;
        std::size_t expired = 0, perhaps = 0;
        for (const auto& f : features_) {
            const tally t = f->check(settings_);
            all.waits += t.waits;
            expired += t.expired;
            perhaps += t.perhaps + t.each_time * hastenings_.load();
        }
        for (const auto& l : ledgers_) {
            const ledger::totals t = l->check(settings_);
            all.waits += t.waits;
            all.operations += t.events;
            expired += t.expired;
        }
        if (const std::size_t n = expired_.load();
            last_ != ending::abandon && (n < expired || n > expired + perhaps))
            fail("P10: expire_all() counted " + std::to_string(n) + " waits, and " +
                 std::to_string(expired) + " handlers are told so");
        all.units = units_.load();
        return all;
    }

    random_source random_;
    ending last_{};
    std::vector<sort> types_;
    bool expires_all_ = false, stops_ = false;
    int workers_ = 0, calls_each_ = 0;
    int runners_ = 0; ///< threads that run contexts
    settings settings_;

    std::mutex ledgers_mutex_;
    std::vector<std::unique_ptr<ledger>> ledgers_;   // their signals outlive all contexts
    std::vector<std::unique_ptr<feature>> features_; // the same
    std::vector<std::unique_ptr<arena>> arenas_;
    places shared_;
    std::vector<places> own_;

    std::atomic<bool> workers_done_{false}, closed_{false};
    std::atomic<std::size_t> expired_{0}, hastenings_{0}, units_{0};
};

} // namespace

std::string about;

totals run(const random_source& random, const std::function<void()>& begins) {
    session s(random);
    begins();
    return s.run();
}

} // namespace simulation::threads
