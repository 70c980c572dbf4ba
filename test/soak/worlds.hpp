// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The worlds of the soak. A call is one life: it makes contexts, uses them until `life::until`, and
//   destroys them, often with waits pending. The thread that calls it drives it.
//
// Checks
//   Each handler is counted where it is made, and where it is invoked or destroyed: `books`. A
//   success is never before what its owner has noted itself: `early`. What a class counts must agree
//   with what was seen. A call at a door may throw std::bad_alloc, or find no descriptor left, and
//   has then done nothing.

#ifndef PAWL_TEST_SOAK_WORLDS_HPP
#define PAWL_TEST_SOAK_WORLDS_HPP

#include <pawl/pawl.hpp>

#include "soak/faults.hpp"

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace soak {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;
using std::chrono::nanoseconds;
using steady = std::chrono::steady_clock;

// --- what all worlds use ------------------------------------------------------------------------

/// Handlers of a life.
struct books {
    count started{0}, succeeded{0}, failed{0}, destroyed{0};
    count refused{0}; ///< of these, destroyed in a call that has thrown

    void add_to(books& all) const {
        all.started += started;
        all.succeeded += succeeded;
        all.failed += failed;
        all.destroyed += destroyed;
        all.refused += refused;
    }
    [[nodiscard]] std::uint64_t ended() const { return succeeded + failed + destroyed; }
};

/// Failures for want of a descriptor.
inline count no_descriptor{0};

struct life {
    const char* world;
    dice random;
    steady::time_point until;
    unsigned scarcity;            ///< one in so many allocations at a door fails; 0: none
    std::atomic<bool> up = false; ///< it is made, and throws nothing any more
    books told{};

    [[nodiscard]] bool over() const { return steady::now() >= until; }
    void complain(const std::string& what) const { violation(std::string(world) + ": " + what); }

    /// Calls `f` with failing allocations, which may leave it as an exception. Any thread.
    template <class F>
    bool door(F f) {
        try {
            const no_memory some(scarcity);
            f();
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        } catch (const boost::system::system_error& e) {
            if (e.code() != asio::error::no_descriptors) // the first timer makes the service
                throw;
            return false;
        }
    }
};

/// A handler that is invoked once, or destroyed.
template <class F>
class counted {
public:
    counted(life& l, F f) : life_(&l), f_(std::move(f)) { ++l.told.started; }
    counted(counted&& other) noexcept
        : life_(std::exchange(other.life_, nullptr)), f_(std::move(other.f_)) {}
    counted& operator=(counted&&) = delete;
    ~counted() {
        if (life_ != nullptr)
            ++life_->told.destroyed;
    }

    template <class... Results>
    void operator()(Results&&... results) {
        life* const l = std::exchange(life_, nullptr);
        if (l == nullptr)
            return violation("a handler is invoked twice");
        const no_memory unless_asked(0);
        ++(failed(results...) ? l->told.failed : l->told.succeeded);
        f_(std::forward<Results>(results)...);
    }

private:
    static bool failed() { return false; }
    template <class First, class... Rest>
    static bool failed(const First& first, const Rest&...) {
        if constexpr (std::is_same_v<First, error_code> ||
                      std::is_same_v<First, std::exception_ptr>)
            return static_cast<bool>(first);
        return false;
    }

    life* life_;
    F f_;
};

/// A call that starts something with one counted handler.
template <class F>
bool start(life& l, F f) {
    const bool done = l.door(std::move(f));
    if (!done)
        ++l.told.refused;
    return done;
}

/// With memory: if Boost 1.81 has none for it, it uses what is not initialised.
inline auto strand_of(asio::io_context& context) {
    const no_memory not_here(0);
    return asio::make_strand(context);
}

/// Threads that run a context until it is stopped, or has nothing left to do.
class crew {
public:
    crew(life& l, asio::io_context& context, unsigned threads)
        : life_(l), context_(context), running_(threads) {
        for (unsigned i = 0; i != threads; ++i)
            threads_.emplace_back([this] {
                try {
                    context_.run();
                } catch (const std::exception& e) {
                    life_.complain(std::string("run() throws ") + e.what());
                }
                --running_;
            });
    }
    crew& operator=(crew&&) = delete;
    ~crew() { context_.stop(); }

    /// P9: run() returns. `nudge` is called now and then.
    template <class F>
    void leave(F nudge) {
        const auto patience = steady::now() + 30s;
        for (unsigned i = 0; running_ != 0; ++i, std::this_thread::sleep_for(1ms)) {
            if (i % 50 == 0)
                nudge();
            if (steady::now() > patience)
                return life_.complain("run() does not return");
        }
    }

private:
    life& life_;
    asio::io_context& context_;
    std::atomic<unsigned> running_;
    std::vector<std::jthread> threads_;
};

/// While it lives, the parts of a life are made, some of them without memory.
struct making : no_memory {
    explicit making(life& l) : no_memory(l.scarcity * 40, l.random()) {}
};

inline pawl::options some_options(dice& random, bool alone) {
    pawl::options o;
    o.precision = std::array<nanoseconds, 4>{100us, 1ms, 1ms, 5ms}[random.below(4)];
    o.shards = alone ? 1 : static_cast<unsigned>(random.below(5));
    o.locking = !alone || random.one_in(2);
    o.batch_limit = random.one_in(3) ? 2 : 256;
    o.completions_per_turn = random.one_in(3) ? 8 : 1;
    if (random.one_in(4))
        o.max_pending = 40;
    if (random.one_in(3))
        o.on_shutdown = pawl::shutdown_policy::deliver;
    return o;
}

// --- timers, alarms, groups ---------------------------------------------------------------------

/// Owns timers. Everything happens on its executor. Its handlers own it, so that it may end with
/// the context.
class owner : public std::enable_shared_from_this<owner> {
public:
    owner(life& l, const asio::any_io_executor& ex, const std::atomic<bool>& closing)
        : executor(ex), life_(l), closing_(closing) {}
    owner& operator=(owner&&) = delete;
    virtual ~owner() = default;
    virtual void act(dice& random) = 0;

    const asio::any_io_executor executor;

protected:
    life& life_;
    const std::atomic<bool>& closing_; ///< nothing new
};

inline nanoseconds some_delay(dice& random) {
    switch (random.below(8)) {
    case 0:
        return nanoseconds(0);
    case 1:
        return random.between(50ms, 300ms);
    default:
        return random.between(0ns, 20ms);
    }
}

template <class Timer>
class timer_owner final : public owner {
    using clock = typename Timer::clock_type;

public:
    timer_owner(life& l, const asio::any_io_executor& ex, const std::atomic<bool>& closing,
                const char* name)
        : owner(l, ex, closing), name_(name), timer_(std::in_place, ex) {}

    void act(dice& random) override {
        if (closing_)
            return;
        const auto d = std::chrono::duration_cast<typename clock::duration>(some_delay(random));
        switch (random.below(16)) {
        case 0:
            timer_->cancel();
            break;
        case 1:
            timer_.emplace(executor);
            earliest_ = clock::now();
            break;
        case 2:
        case 3:
            set(d, [&] { timer_->expires_after(d); }); // cancels
            break;
        case 4:
        case 5:
        case 6:
            set(d, [&] { timer_->rearm_after(d); });
            break;
        default:
            if (waits_ == 0)
                set(d, [&] { timer_->expires_after(d); });
            if (waits_ < 4)
                wait(random());
        }
    }

private:
    template <class F>
    void set(typename clock::duration d, F f) {
        const std::uint64_t steps = steps_so_far();
        const auto earliest = clock::now() + d;
        if (life_.door(f)) { // a ring may grow
            earliest_ =
                std::is_same_v<clock, pawl::coarse_clock> ? timer_->expiry() : earliest; // see P1
            steps_ = steps;
        }
    }
    void wait(std::uint64_t seed) {
        ++waits_;
        if (!start(life_, [&] {
                timer_->async_wait(counted(life_, [self = shared_from_this(), this,
                                                   seed](error_code ec) {
                    --waits_;
                    if (ec)
                        return;
                    if (is_early())
                        life_.complain(std::string(name_) + " is early by " +
                                       std::to_string((earliest_ - clock::now()) / 1ns) + " ns");
                    dice random(seed);
                    act(random);
                }));
            }))
            --waits_;
    }
    [[nodiscard]] bool is_early() const {
        if constexpr (clock::is_steady)
            return clock::now() < earliest_;
        else
            return !has_shown(earliest_, steps_);
    }

    const char* const name_;
    std::optional<Timer> timer_;
    typename clock::time_point earliest_ = clock::now();
    std::uint64_t steps_ = steps_so_far();
    int waits_ = 0;
};

/// What it is told must agree with what was done.
class alarm_owner final : public owner {
public:
    alarm_owner(life& l, const asio::any_io_executor& ex, const std::atomic<bool>& closing)
        : owner(l, ex, closing), alarm_(ex, ring{this}) {}

    void act(dice& random) override {
        if (closing_)
            return;
        if (random.one_in(4)) {
            if (alarm_.disarm() != armed_ && !closing_)
                life_.complain("disarm() does not know whether the alarm is armed");
            armed_ = false;
            return;
        }
        const nanoseconds d = some_delay(random);
        const auto earliest = steady::now() + d;
        if (alarm_.arm_after(d)) {
            earliest_ = earliest;
            armed_ = true;
        } else if (armed_ && !closing_) {
            life_.complain("an armed alarm is not moved");
        }
    }

private:
    struct ring {
        alarm_owner* self;
        void operator()(error_code ec) const { self->rings(ec); }
    };
    void rings(error_code ec) {
        if (!ec && steady::now() < earliest_)
            life_.complain("an alarm is early");
        if (!std::exchange(armed_, false))
            life_.complain("an alarm that is not armed calls its function");
    }

    pawl::alarm<ring> alarm_;
    steady::time_point earliest_{};
    bool armed_ = false;
};

class group_owner final : public owner {
public:
    group_owner(life& l, const asio::any_io_executor& ex, const std::atomic<bool>& closing)
        : owner(l, ex, closing), group_(std::make_shared<pawl::group>(ex)) {
        for (int i = 0; i != 4; ++i)
            members_.push_back({pawl::steady_timer(ex), {}});
    }

    void act(dice& random) override {
        if (closing_)
            return;
        if (random.one_in(16)) {
            const auto drained = [this] {
                start(life_, [&] {
                    group_->async_drained(counted(
                        life_, [self = shared_from_this(), this, g = group_](error_code ec) {
                            if (!ec && g->size() != 0)
                                life_.complain("a group with members is drained");
                        }));
                });
            };
            drained();
            if (!life_.door([&] { group_->cancel(pawl::error::shutting_down); }))
                group_->cancel(pawl::error::shutting_down);
            drained();
            if (!life_.door([&] { group_ = std::make_shared<pawl::group>(executor); }))
                group_ = std::make_shared<pawl::group>(executor);
            return;
        }
        auto& [timer, earliest] = members_[random.below(members_.size())];
        const nanoseconds d = some_delay(random);
        earliest = steady::now() + d;
        timer.expires_after(d);
        start(life_, [&] {
            timer.async_wait(
                pawl::in_group(*group_, counted(life_, [self = shared_from_this(), this,
                                                        not_before = earliest](error_code ec) {
                    if (!ec && steady::now() < not_before)
                        life_.complain("a member of a group is early");
                })));
        });
    }

private:
    struct member {
        pawl::steady_timer timer;
        steady::time_point earliest;
    };
    std::shared_ptr<pawl::group> group_;
    std::vector<member> members_;
};

/// What statistics say must agree with the books, if all waits are in these. A start that threw may
/// count as a wait that has ended.
inline void compare(const life& l, const pawl::service_stats& s, bool all_told) {
    if (s.started != s.pending + s.expired + s.cancelled)
        l.complain("the statistics do not balance");
    const books& b = l.told;
    if (all_told && (s.started > b.started || s.started < b.started - b.refused ||
                     s.expired != b.succeeded || s.pending != b.started - b.ended()))
        l.complain("the statistics say " + std::to_string(s.started) + " started, " +
                   std::to_string(s.expired) + " expired, " + std::to_string(s.pending) +
                   " pending; the books say " + std::to_string(b.started) + " less " +
                   std::to_string(b.refused) + ", " + std::to_string(b.succeeded) + ", " +
                   std::to_string(b.started - b.ended()));
}

inline void timers(life& l) {
    const std::uint64_t steps = steps_so_far();
    dice& random = l.random;
    const auto threads = static_cast<unsigned>(random.below(2) * (1 + random.below(4)));
    const bool plain = random.one_in(2);
    std::atomic<bool> closing = false;
    std::vector<std::shared_ptr<owner>> kept; // outlive the context
    std::optional<asio::io_context> context;
    std::vector<std::shared_ptr<owner>> owners;
    const making some(l);
    context.emplace(threads == 0 ? 1 : static_cast<int>(threads));
    const pawl::options o = some_options(random, threads == 0);
    pawl::make_timer_service(*context, o);
    pawl::make_timer_service<pawl::compact_timer>(*context, o);
    pawl::make_timer_service<pawl::coarse_timer>(*context, o);
    pawl::make_timer_service<pawl::system_timer>(*context, o);
    pawl::options rings = o;
    rings.rings = {.delays = {{1ms, 4}, {20ms, 4}, {300ms, 4}}, .round_up = true};
    pawl::make_timer_service<pawl::ring_timer>(*context, rings);
    for (auto n = 5 + random.below(40); n != 0; --n) {
        const asio::any_io_executor ex =
            threads == 0 ? asio::any_io_executor(context->get_executor()) : strand_of(*context);
        const auto add = [&]<class Owner>(std::type_identity<Owner>, auto... more) {
            owners.push_back(std::make_shared<Owner>(l, ex, closing, more...));
        };
        switch (random.below(plain ? 6 : 8)) {
        case 0:
        case 1:
            add(std::type_identity<timer_owner<pawl::steady_timer>>(), "steady_timer");
            break;
        case 2:
            add(std::type_identity<timer_owner<pawl::compact_timer>>(), "compact_timer");
            break;
        case 3:
            add(std::type_identity<timer_owner<pawl::coarse_timer>>(), "coarse_timer");
            break;
        case 4:
            add(std::type_identity<timer_owner<pawl::system_timer>>(), "system_timer");
            break;
        case 5:
            add(std::type_identity<timer_owner<pawl::ring_timer>>(), "ring_timer");
            break;
        case 6:
            add(std::type_identity<alarm_owner>());
            break;
        default:
            add(std::type_identity<group_owner>());
        }
    }
    some.end();
    l.up = true;
    const bool hungry = threads == 0 && plain && random.one_in(2); // waits end without memory
    const auto any = [&]() -> owner& { return *owners[random.below(owners.size())]; };
    const auto see = [&] {
        const auto all = pawl::stats(*context);
        if (o.shards == 1)
            for (const auto& s : all.services)
                compare(l, s, false);
    };
    const auto end_all = [&] {
        closing = true;
        if (random.one_in(2))
            pawl::cancel_all(*context);
        else
            pawl::expire_all(*context, pawl::error::shutting_down);
    };
    const bool drains = random.one_in(3); // otherwise the context goes with its waits
    if (threads == 0) {
        for (unsigned i = 0; !l.over(); ++i) {
            any().act(random);
            any().act(random);
            context->restart();
            try {
                const no_memory in_run(hungry ? l.scarcity : 0);
                context->run_for(random.between(0ms, 2ms));
            } catch (const std::bad_alloc&) {
                if (!hungry || steps == steps_so_far()) // only to follow a clock that was set back
                    l.complain("run() needs memory");
            }
            if (i % 64 == 0)
                see();
        }
        if (drains) {
            end_all();
            context->restart();
            context->run();
        }
    } else {
        crew all(l, *context, threads);
        auto work = asio::make_work_guard(*context);
        for (unsigned i = 0; !l.over(); ++i) {
            for (int n = 0; n != 3; ++n) {
                owner& to = any();
                asio::post(to.executor, [&to, seed = random()] {
                    dice own(seed);
                    to.act(own);
                });
            }
            std::this_thread::sleep_for(random.between(0ms, 2ms));
            if (i % 64 == 0)
                see();
        }
        if (drains) {
            work.reset();
            all.leave(end_all);
        }
    }
    closing = true;
    const auto s = pawl::stats(*context).total();
    compare(l, s, plain);
    if (drains && s.pending != 0)
        l.complain("P9: run() has returned, and waits are pending");
    if (threads == 0 && random.one_in(2)) // a strand may not outlive its context
        kept = owners;
    owners.clear();
    context.reset();
}

// --- the event queue ----------------------------------------------------------------------------

inline void queue(life& l) {
    dice& random = l.random;
    std::optional<asio::io_context> context;
    std::optional<pawl::event_queue> events;
    const making some(l);
    if (random.one_in(2)) {
        context.emplace(1);
        pawl::make_timer_service(*context, some_options(random, false));
    }
    const pawl::event_queue_options o{.capacity = random.one_in(2) ? 4U : 1000U,
                                      .overflow =
                                          static_cast<pawl::overflow_policy>(random.below(3))};
    if (context)
        events.emplace(*context, o);
    else
        events.emplace(o);
    some.end();
    l.up = true;

    struct interval {
        pawl::event_queue::timer timer;
        std::shared_ptr<std::atomic<bool>> gone;
    };
    const auto make_some = [&](dice& r, std::vector<interval>& intervals) {
        const nanoseconds d = some_delay(r);
        const auto earliest = steady::now() + d;
        const auto on_time = [&l](const pawl::event_queue::event& e) {
            if (e.emitted < e.scheduled || steady::now() < e.scheduled)
                l.complain("an event is early");
        };
        if (const auto kind = r.below(4); kind == 0)
            start(l, [&] { asio::post(events->get_executor(), counted(l, [] {})); });
        else if (kind == 1 && intervals.size() < 20) {
            const auto gone = std::make_shared<std::atomic<bool>>(false);
            intervals.push_back({{}, gone});
            l.door([&] {
                intervals.back().timer = events->every(
                    std::max<nanoseconds>(d, 200us),
                    [&l, gone, on_time](const pawl::event_queue::event& e) {
                        on_time(e);
                        if (*gone)
                            l.complain("the function of a timer runs after destroy()");
                    },
                    static_cast<pawl::missed_tick_policy>(r.below(2)));
            });
        } else if (kind == 2 && !intervals.empty()) {
            auto& each = intervals[r.below(intervals.size())];
            if (r.one_in(2))
                each.timer.disarm();
            each.timer.destroy();
            *each.gone = true;
            std::swap(each, intervals.back());
            intervals.pop_back();
        } else {
            start(l, [&] {
                events->once(d,
                             counted(l, [&l, earliest, on_time](const pawl::event_queue::event& e) {
                                 on_time(e);
                                 if (steady::now() < earliest)
                                     l.complain("a one-off is early");
                             }));
            });
        }
    };
    {
        std::optional<crew> all;
        if (context)
            all.emplace(l, *context, 1);
        const auto work = context ? std::optional(asio::make_work_guard(*context)) : std::nullopt;
        std::jthread other([&, r = dice(random())](const std::stop_token& stop) mutable {
            for (std::vector<interval> own; !stop.stop_requested();) {
                make_some(r, own);
                std::this_thread::sleep_for(r.between(0ms, 3ms));
            }
        });
        for (std::vector<interval> own; !l.over();) {
            make_some(random, own);
            events->wait_for(random.between(0ms, 3ms));
            events->process_events(random.one_in(4) ? 3 : 1000);
            if (random.one_in(200))
                std::this_thread::sleep_for(20ms); // a host that is late
        }
        other = {};
        if (random.one_in(2))
            events.reset(); // before its context, which runs
    }
    if (random.one_in(2))
        context.reset(); // before its queue
}

// --- the broadcast ring -------------------------------------------------------------------------

struct message {
    std::uint64_t writer, number, sum;
};

template <pawl::slow_readers Policy>
void feed(life& l) {
    using ring_type = pawl::broadcast_ring<message, Policy>;
    dice& random = l.random;
    const making some(l);
    ring_type ring(std::size_t{1} << (3 + random.below(6)), 8);
    some.end();
    l.up = true;

    const auto read = [&](dice r, typename ring_type::reader reader) {
        std::array<std::uint64_t, 2> next{};
        std::array<message, 16> got{};
        const bool slow = r.one_in(2);
        for (;;) {
            const std::uint64_t from = reader.position();
            const pawl::read_result result = reader.read(std::span(got));
            if (result.status == pawl::read_status::closed)
                return;
            if (from + result.missed + result.count != reader.position())
                l.complain("a reader has lost count");
            if (Policy != pawl::slow_readers::lag && result.missed != 0)
                l.complain("a reader misses messages that were kept for it");
            ++(result.missed != 0 ? l.told.failed : l.told.succeeded);
            ++l.told.started;
            for (std::size_t i = 0; i != result.count; ++i) {
                const message& m = got[i];
                if (m.writer > 1 || m.sum != dice(m.number + m.writer)())
                    l.complain("a message is torn");
                else if (m.number < next[m.writer])
                    l.complain("messages are not in order");
                else
                    next[m.writer] = m.number + 1;
            }
            if (slow || result.count == 0)
                std::this_thread::sleep_for(r.between(0ms, 2ms));
        }
    };
    const auto write = [&](dice r, std::uint64_t writer) {
        std::vector<message> some_messages;
        for (std::uint64_t n = 0; !l.over();) {
            some_messages.clear();
            for (auto i = 1 + r.below(20); i != 0; --i, ++n)
                some_messages.push_back({writer, n, dice(n + writer)()});
            ring.write(some_messages);
            std::this_thread::sleep_for(r.between(0ms, 1ms));
        }
    };
    {
        std::vector<std::jthread> readers;
        for (auto n = 1 + random.below(3); n != 0; --n)
            readers.emplace_back(read, dice(random()), ring.join_newest());
        {
            std::jthread second;
            if (random.one_in(2))
                second = std::jthread(write, dice(random()), 1);
            write(dice(random()), 0);
        }
        ring.close();
    }
}

// --- patterns -----------------------------------------------------------------------------------

inline asio::awaitable<void> fails_sometimes(std::uint64_t seed) {
    dice random(seed);
    pawl::steady_timer pause(co_await asio::this_coro::executor, random.between(0ms, 5ms));
    co_await pause.async_wait(asio::use_awaitable);
    if (random.one_in(2))
        throw system_error(asio::error::connection_refused);
}

inline void patterns(life& l) {
    dice& random = l.random;
    struct value {
        steady::time_point earliest;
    };
    std::uint64_t taken = 0;
    bool popping = false, closing = false;
    pawl::retry_budget budget(0.5, 10);
    std::optional<asio::io_context> context;
    std::optional<pawl::rate_limiter> limiter;
    std::optional<pawl::expiring_map<std::uint64_t, value>> map;
    const making some(l);
    context.emplace(1);
    pawl::make_timer_service(*context, some_options(random, true));
    const auto begin = steady::now();
    limiter.emplace(*context, pawl::rate_limit{.tokens = 100, .burst = 5});
    map.emplace(*context,
                pawl::expiring_map_options{.ttl = 10ms, .capacity = 100, .keep_expired = true});
    some.end();
    l.up = true;

    const std::function<void()> pop = [&] {
        popping = start(l, [&] {
            map->async_pop_expired(
                counted(l, [&](error_code ec, std::optional<std::pair<std::uint64_t, value>> got) {
                    popping = false;
                    if (!ec && (!got || steady::now() < got->second.earliest))
                        l.complain("an entry of a map expires early");
                    if (!closing)
                        pop();
                }));
        });
    };
    while (!l.over()) {
        if (!popping)
            pop();
        const nanoseconds d = some_delay(random) + 1ns;
        const std::uint64_t key = random.below(200);
        switch (random.below(6)) {
        case 0:
            start(l, [&] {
                pawl::retry(
                    *context,
                    pawl::retry_policy{.first = 1ms, .cap = 5ms, .limit = 30ms, .budget = &budget},
                    [seed = random()](const pawl::attempt& a) {
                        return fails_sometimes(seed + a.number());
                    },
                    counted(l, [](const std::exception_ptr&) {}));
            });
            break;
        case 1:
            if (limiter->waiting() < 50)
                start(l, [&, n = 1 + static_cast<std::int64_t>(random.below(5))] {
                    limiter->async_acquire(n, counted(l, [&, n](error_code ec) {
                                               if (!ec)
                                                   taken += static_cast<std::uint64_t>(n);
                                           }));
                });
            break;
        case 2:
            map->erase(key);
            break;
        case 3:
            if (map->size() > 100)
                l.complain("a map has more entries than its capacity");
            break;
        default:
            const auto there = [&] { return map->size() + map->expired_size(); };
            const auto size = there();
            const value v{steady::now() + d};
            if (!l.door([&] { map->insert_or_assign(key, v, d); }) && there() != size)
                l.complain("an insertion has failed, and changed the map");
        }
        context->restart();
        context->run_for(random.between(0ms, 2ms));
    }
    closing = true;
    const std::chrono::duration<double> passed = steady::now() - begin;
    if (static_cast<double>(taken) > 5 + passed.count() * 100)
        l.complain("a limiter gives more tokens than its rate");
    switch (random.below(3)) {
    case 0:
        map.reset();
        limiter.reset();
        context->restart();
        context->run();
        compare(l, pawl::stats(*context).total(), false);
        if (pawl::stats(*context).total().pending != 0)
            l.complain("P9: run() has returned, and waits are pending");
        break;
    case 1:
        context.reset();
        break;
    default:
        break; // the context goes last
    }
}

// --- connections --------------------------------------------------------------------------------

constexpr nanoseconds idle_limit = 60ms, read_limit = 200ms, write_limit = 50ms;

/// Sends back what it reads.
class session : public std::enable_shared_from_this<session> {
public:
    session(life& l, tcp::socket socket) : life_(l), stream_(std::move(socket)) {
        stream_.set_limits({.idle = idle_limit, .read = read_limit, .write = write_limit});
    }

    [[nodiscard]] asio::any_io_executor executor() { return stream_.get_executor(); }

    void read() {
        begin_ = steady::now();
        go([this] {
            stream_.async_read_some(
                asio::buffer(data_),
                counted(life_, [self = shared_from_this(), this](error_code ec, std::size_t n) {
                    check(ec, read_limit);
                    if (ec)
                        return;
                    moved_ = begin_;
                    write(n);
                }));
        });
    }

private:
    void write(std::size_t n) {
        begin_ = steady::now();
        go([this, n] {
            asio::async_write(
                stream_, asio::buffer(data_, n),
                counted(life_, [self = shared_from_this(), this](error_code ec, std::size_t) {
                    check(ec, write_limit);
                    if (ec)
                        return;
                    moved_ = begin_;
                    read();
                }));
        });
    }
    template <class F>
    void go(F f) {
        if (!start(life_, f))
            stream_.close();
    }
    /// An operation that is done as its limit passes succeeds, and the stream is closed: the next
    /// one says so.
    void check(error_code ec, nanoseconds limit) {
        const auto before = std::exchange(earliest_, std::min(begin_ + limit, moved_ + idle_limit));
        const auto early = std::min(before, earliest_) - steady::now();
        if (ec == boost::beast::error::timeout && early > 0ns)
            life_.complain("a limit of a stream is early by " + std::to_string(early.count()) +
                           " ns");
    }

    life& life_;
    const steady::time_point made_ = steady::now();
    steady::time_point begin_ = made_, moved_ = made_;        ///< no later than the last byte
    steady::time_point earliest_ = steady::time_point::max(); ///< end of the operation before
    pawl::tcp_stream stream_;
    std::array<char, 2048> data_{};
};

class server {
public:
    server(life& l, asio::io_context& context)
        : life_(l), context_(context), acceptor_(strand_of(context)),
          pause_(acceptor_.get_executor()) {
        const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
        acceptor_.open(any.protocol());
        acceptor_.bind(any);
        acceptor_.listen();
    }

    [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

    /// On the executor of the acceptor.
    void accept() {
        if (!start(life_, [this] {
                acceptor_.async_accept(strand_of(context_),
                                       counted(life_, [this](error_code ec, tcp::socket socket) {
                                           if (ec == asio::error::no_descriptors)
                                               return later();
                                           if (!ec)
                                               serve(std::move(socket));
                                           accept();
                                       }));
            }))
            later();
    }

    count without_descriptor{0};

private:
    void serve(tcp::socket socket) {
        std::shared_ptr<session> s;
        if (!life_.door([&] { s = std::make_shared<session>(life_, std::move(socket)); }))
            return;
        asio::dispatch(s->executor(), [s] { s->read(); });
    }

    void later() {
        ++without_descriptor;
        pause_.expires_after(20ms);
        pause_.async_wait(counted(life_, [this](error_code ec) {
            if (!ec)
                accept();
        }));
    }

    life& life_;
    asio::io_context& context_;
    tcp::acceptor acceptor_;
    pawl::steady_timer pause_;
};

/// What the server gets. Asio's own, without limits.
inline asio::awaitable<void> client(life& l, tcp::endpoint to, dice random) {
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    const auto ex = co_await asio::this_coro::executor;
    tcp::socket socket(ex);
    if (auto [ec] = co_await socket.async_connect(to, token); ec)
        co_return; // no descriptor is left
    asio::steady_timer pause(ex);
    const auto kind = random.below(5);
    std::vector<char> sent(1 + random.below(5000)), got(sent.size());
    for (auto rounds = kind == 0 ? 0 : 1 + random.below(5); rounds != 0; --rounds) {
        std::generate(sent.begin(), sent.end(), [&] { return static_cast<char>(random()); });
        if (auto [ec, n] = co_await asio::async_write(socket, asio::buffer(sent), token); ec)
            co_return;
        error_code ignored;
        if (kind == 1) { // leaves in the middle
            socket.set_option(asio::socket_base::linger(true, 0), ignored);
            co_return;
        }
        if (kind == 2)
            socket.shutdown(tcp::socket::shutdown_send, ignored);
        if (kind == 3 && random.one_in(2)) { // reads late
            pause.expires_after(random.between(0ms, 90ms));
            co_await pause.async_wait(token);
        }
        auto [ec, n] = co_await asio::async_read(socket, asio::buffer(got), token);
        if (!std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(n), got.begin()))
            l.complain("what a server sends back is not what it got");
        if (ec || kind == 2)
            co_return;
        pause.expires_after(random.between(0ms, 10ms));
        co_await pause.async_wait(token);
    }
    co_await asio::async_read(socket, asio::buffer(got, 1), token); // until the limit ends it
}

inline void connections(life& l) {
    dice& random = l.random;
    const auto threads = static_cast<unsigned>(1 + random.below(4));
    std::optional<asio::io_context> context, outside;
    std::optional<server> echo;
    const making some(l);
    context.emplace(static_cast<int>(threads));
    pawl::make_timer_service(*context, some_options(random, false));
    echo.emplace(l, *context);
    some.end();
    outside.emplace(1);
    const asio::ip::tcp::socket first(*outside); // makes the reactor, which needs descriptors
    l.up = true;

    {
        crew all(l, *context, threads);
        asio::dispatch(context->get_executor(), [&] { echo->accept(); });
        while (!l.over()) {
            asio::co_spawn(*outside, client(l, echo->endpoint(), dice(random())),
                           counted(l, [](const std::exception_ptr& failure) {
                               if (failure)
                                   std::rethrow_exception(failure);
                           }));
            outside->restart();
            outside->run_for(random.between(1ms, 30ms));
        }
    }
    no_descriptor += echo->without_descriptor;
    if (random.one_in(2))
        compare(l, pawl::stats(*context).total(), false);
    echo.reset();
}

} // namespace soak

#endif // PAWL_TEST_SOAK_WORLDS_HPP
