// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A row for an operation: its n-th allocation fails, for every n until no allocation fails: first
// only in the initiating function, then also while the context runs. Then the object goes while the
// operation is pending, without memory. Nothing may leak. A row for an object: it is made or not, and
// moved and destroyed without memory.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE every_operation
#include <boost/test/unit_test.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"
#include "support/scripted_clock.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/version.hpp>
#include <boost/asio/wait_traits.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace fault {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using namespace std::chrono_literals;

/// A context, a timer that operations wait on, and the count of handlers.
struct scene {
    scene() { // makes the services
        pawl::steady_timer(context, 1h);
        pawl::coarse_timer(context, 1h);
        pawl::manual_timer(context, 1h);
    }

    /// Move-only, counted while it is alive. Takes any results.
    auto record() {
        ++handlers;
        return [this, guard = std::unique_ptr<scene, leave>(this)](auto&&...) { ++calls; };
    }
    /// For the function of an object in `kept`, which it destroys.
    auto record_last() {
        return [this, once = record()](auto&&...) mutable {
            once();
            kept.reset();
        };
    }
    void drive() {
        for (int i = 0; i < 8; ++i) {
            try {
                context.restart();
                context.poll();
                if (host)
                    host();
            } catch (const std::bad_alloc&) { // out of run(), as any handler's
            }
            const long fuse = counted_new::fuse.exchange(counted_new::never);
            manual_clock::advance(context, 10s);
            counted_new::fuse = fuse;
        }
    }

    asio::io_context context;
    int handlers = 0;
    int calls = 0;
    pawl::manual_timer wait{context, manual_clock::now() + 5s};
    std::optional<pawl::manual_timer> second;
    std::optional<asio::cancellation_signal> signal;
    pawl::group group{context};
    std::shared_ptr<void> kept;
    std::function<void()> host; ///< is called beside run()
    bool late = false;          ///< a signal on its way keeps the handler of what has not started

private:
    struct leave {
        void operator()(scene* s) const noexcept { --s->handlers; }
    };
};

enum class phase { start, all };

/// `make(scene)` makes the object, with memory. `start(object, scene)` starts the operation, or
/// throws; with memory it succeeds, also after it has failed. It calls scene::record() once.
template <class Make, class Start>
void run_row(std::string_view name, phase until, Make make, Start start) {
    for (long n = 0;; ++n) {
        BOOST_TEST_CONTEXT(name << ", " << (until == phase::all ? "all" : "start")
                                << ", n = " << n) {
            const std::size_t before = live_blocks();
            bool blew = false;
            {
                scene s;
                auto object = make(s);
                bool started = false;
                counted_new::fuse = n;
                try {
                    start(*object, s);
                    started = true;
                } catch (const std::bad_alloc&) {
                    BOOST_TEST((s.handlers == 0 || s.late)); // destroyed at once
                }
                if (until == phase::all && started)
                    s.drive();
                blew = counted_new::fuse.exchange(counted_new::never) == counted_new::never;
                BOOST_TEST((started || blew));
                if (!started) { // nothing has begun, and the object can be used
                    s.drive();
                    BOOST_TEST(s.calls == 0);
                    s.wait.expires_after(5s);
                    start(*object, s);
                }
                s.drive();
                // Without memory in run() a handler may be destroyed.
                BOOST_TEST(
                    (s.calls == 1 || (until == phase::all && blew && started && s.calls == 0)));
                BOOST_TEST(s.handlers == 0);
            }
            if (n > 0) // objects that exist once per process have been made by then
                BOOST_TEST(live_blocks() == before);
            if (!blew)
                return;
            BOOST_REQUIRE_LT(n, 1000);
        }
    }
}

/// The object goes while the operation is pending, without memory.
template <class Make, class Start>
void end_row(std::string_view name, Make make, Start start) {
    BOOST_TEST_CONTEXT(name << ", end") {
        const std::size_t before = live_blocks();
        {
            scene s;
            auto object = make(s);
            start(*object, s);
            counted_new::fuse = 0;
            s.kept.reset();
            object.reset();
            s.wait.cancel();
            counted_new::fuse = counted_new::never;
            s.host = nullptr; // it may use the object
            s.drive();
            BOOST_TEST(s.calls <= 1);
            BOOST_TEST(s.handlers == 0);
        }
        BOOST_TEST(live_blocks() == before);
    }
}

template <class Make, class Start>
void row(std::string_view name, Make make, Start start) {
    run_row(name, phase::start, make, start);
    run_row(name, phase::all, make, start);
    end_row(name, make, start);
}

/// `make(scene)` returns an object, or throws. It can then be made in the same context.
template <class Make>
void made_or_not(std::string_view name, Make make) {
    using object = decltype(make(std::declval<scene&>()));
    bool made = false;
    const auto attempt = [&](scene& s, long n) {
        made = false;
        counted_new::fuse = n;
        try {
            auto first = make(s);
            made = true;
            counted_new::fuse = counted_new::never;
            if constexpr (std::is_move_constructible_v<object>) {
                auto second = make(s);
                counted_new::fuse = 0;
                auto moved = std::move(first);
                if constexpr (std::is_move_assignable_v<object>) {
                    second = std::move(moved);
                    moved = std::move(second);
                }
            }
            counted_new::fuse = 0;
        } catch (const std::bad_alloc&) {
            BOOST_TEST(!made);
        }
        counted_new::fuse = counted_new::never;
        s.drive();
    };
    for (long n = 0; n == 0 || !made; ++n) {
        BOOST_TEST_CONTEXT(name << ", n = " << n) {
            const std::size_t before = live_blocks();
            {
                scene s;
                attempt(s, n);
                if (!made) {
                    attempt(s, counted_new::never);
                    BOOST_TEST(std::exchange(made, false));
                }
            }
            if (n > 0)
                BOOST_TEST(live_blocks() == before);
            BOOST_REQUIRE_LT(n, 1000);
        }
    }
}

template <class T, class... Args>
auto made(Args... args) {
    return [=](scene& s) { return std::make_unique<T>(s.context, args...); };
}
const auto nothing = [](scene&) { return std::make_unique<int>(); };
constexpr auto fast = [] {
    pawl::basic_retry_policy<manual_clock> p;
    p.first = 1s;
    return p;
};

const auto ignore = [](auto&&...) {};
using ring_timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<manual_clock>>>;
using manual_interval = pawl::basic_interval_timer<manual_clock>;
using scaled_clock = pawl::scaled_clock<manual_clock>;
using scaled_timer = pawl::basic_waitable_timer<scaled_clock>;
using scaled_pressure = pawl::basic_pressure<manual_clock>;

/// What follows a start: without memory the operation goes on as if it had not been tried.
template <class F>
void afterwards(F f) {
    try {
        f();
    } catch (const std::bad_alloc&) {
    }
}

void make_rings(scene& s) {
    pawl::options o;
    o.precision = 1ms;
    o.rings.delays = {{.delay = 1s, .capacity = 2}};
    pawl::make_timer_service<ring_timer>(s.context, o);
}

BOOST_AUTO_TEST_CASE(waits) {
    const auto wait = [](auto& timer, scene& s) { timer.async_wait(s.record()); };
    row("manual_timer", made<pawl::manual_timer>(1s), wait);
    row("coarse_timer", made<pawl::coarse_timer>(0s), wait);
    row("system_timer", made<pawl::system_timer>(0s), wait);
    row("high_resolution_timer", made<pawl::high_resolution_timer>(0s), wait);
    row("compact_timer", made<pawl::compact_timer>(0s), wait);
    row("interval timer", made<manual_interval>(1s), wait);
    row(
        "ring timer",
        [](scene& s) {
            make_rings(s);
            return std::make_unique<ring_timer>(s.context, 1s);
        },
        wait);
    row("scaled timer", made<scaled_timer>(), [](scaled_timer& t, scene& s) {
        t.expires_within(1s, 2s);
        t.async_wait(s.record());
    });
    row("manual_timer, re-armed", made<pawl::manual_timer>(1s),
        [](pawl::manual_timer& t, scene& s) {
            t.async_wait(s.record());
            (void)t.rearm_after(2s); // takes no memory
        });
    row("scaled timer, re-armed", made<scaled_timer>(), [](scaled_timer& t, scene& s) {
        t.expires_within(1s, 1h);
        t.async_wait(s.record());
        (void)t.rearm_within(1s, 2s);
    });
    row("interval timer, reset", made<manual_interval>(1h), [](manual_interval& t, scene& s) {
        t.async_wait(s.record());
        afterwards([&] { t.reset_after(1s); });
    });
    row("interval timer, reset within", made<manual_interval>(1h),
        [](manual_interval& t, scene& s) {
            t.async_wait(s.record());
            afterwards([&] { t.reset_within(1s, 2s); });
        });
    row("interval timer, faster", made<manual_interval>(1h), [](manual_interval& t, scene& s) {
        t.async_wait(s.record());
        afterwards([&] { t.set_period(1s); });
    });
}

/// A scaled timer and the pressure of its context.
struct pressed {
    explicit pressed(scene& s) : timer(s.context), pressure(s.context) {}

    scaled_timer timer;
    scaled_pressure pressure;
};

BOOST_AUTO_TEST_CASE(pressures) {
    const auto make = [](scene& s) { return std::make_unique<pressed>(s); };
    row("pressure rises", make, [](pressed& p, scene& s) {
        p.pressure.set(0);
        p.timer.expires_within(1s, 24h);
        p.timer.async_wait(s.record());
        p.pressure.set(1); // takes no memory
    });
    row("pressure was there", make, [](pressed& p, scene& s) {
        p.pressure.set(1);
        p.timer.expires_within(1s, 24h);
        p.timer.async_wait(s.record());
    });
    row("scaled limit under pressure", make, [](pressed& p, scene& s) {
        p.pressure.set(0);
        s.wait.expires_after(60s);
        s.wait.async_wait(pawl::timeout(p.timer, pawl::scaled(1s, 24h))(s.record()));
        p.pressure.set(1);
    });
}

/// Starts with an object that has a function: `make(scene, function)` returns it, and
/// `trigger(object)` makes it call the function.
template <class Make, class Trigger>
auto calls_function(Make make, Trigger trigger) {
    return [=](int&, scene& s) {
        using object = decltype(make(s, s.record_last()));
        const std::shared_ptr<object> made(new object(make(s, s.record_last())));
        trigger(*made);
        s.kept = made;
    };
}
template <class Make, class Trigger>
void function_row(std::string_view name, Make make, Trigger trigger) {
    row(name, nothing, calls_function(make, trigger));
}

BOOST_AUTO_TEST_CASE(functions) {
    const auto arm = [](auto& a) { (void)a.arm_after(1s); };
    const auto call = [](auto& a) { (void)a(); };
    function_row(
        "alarm", [](scene& s, auto f) { return pawl::manual_alarm(s.context, std::move(f)); }, arm);
    function_row(
        "alarm in a group",
        [](scene& s, auto f) {
            return pawl::manual_alarm(s.context, pawl::in_group(s.group, std::move(f)));
        },
        arm);
    function_row(
        "scaled alarm",
        []<class F>(scene& s, F f) {
            return pawl::basic_alarm<F, scaled_clock>(s.context, std::move(f));
        },
        [](auto& a) { (void)a.arm_within(1s, 2s); });
    function_row(
        "debounce",
        []<class F>(scene& s, F f) {
            return pawl::basic_debounce<F, manual_clock>(s.context, 1s, std::move(f));
        },
        call);
    function_row(
        "throttle",
        []<class F>(scene& s, F f) {
            return pawl::basic_throttle<F, manual_clock>(s.context, 1s, std::move(f));
        },
        call);
    using quiet = std::remove_const_t<decltype(ignore)>;
    function_row(
        "heartbeat, sends",
        []<class F>(scene& s, F f) {
            return pawl::basic_heartbeat<F, quiet, manual_clock>(
                s.context, {.interval = 1s, .misses = 9}, std::move(f), ignore);
        },
        ignore);
    function_row(
        "heartbeat, fails",
        []<class F>(scene& s, F f) {
            return pawl::basic_heartbeat<quiet, F, manual_clock>(s.context, {.interval = 1s},
                                                                 ignore, std::move(f));
        },
        ignore);
}

BOOST_AUTO_TEST_CASE(limits) {
    using pawl::timeout_at;
    row("timeout_at", nothing, [](int&, scene& s) {
        s.wait.async_wait(timeout_at(manual_clock::now() + 1s, s.record()));
    });
    row("timeout_at, passed", nothing, [](int&, scene& s) {
        s.wait.async_wait(
            timeout_at(pawl::basic_deadline<manual_clock>(manual_clock::now() - 1s), s.record()));
    });
    // Limits on real time, which end after their operations.
    row("timeout", nothing,
        [](int&, scene& s) { s.wait.async_wait(pawl::timeout(1h, s.record())); });
    row("coarse_timeout", nothing,
        [](int&, scene& s) { s.wait.async_wait(pawl::coarse_timeout(1h, s.record())); });
    row("cancel_after", nothing,
        [](int&, scene& s) { s.wait.async_wait(pawl::cancel_after(1h, s.record())); });
    row("scaled limit", nothing,
        [](int&, scene& s) { s.wait.async_wait(pawl::timeout(pawl::scaled(1h, 2h), s.record())); });
    row("limit on a timer", made<pawl::manual_timer>(), [](pawl::manual_timer& t, scene& s) {
        s.wait.async_wait(pawl::timeout(t, 1s)(s.record()));
    });
    row("scaled limit on a timer", made<scaled_timer>(), [](scaled_timer& t, scene& s) {
        s.wait.async_wait(pawl::timeout(t, pawl::scaled(1s, 2s))(s.record()));
    });
    row("cancel_at", nothing, [](int&, scene& s) {
        s.wait.async_wait(pawl::cancel_at(manual_clock::now() + 1s, s.record()));
    });
    row("abandon", nothing, [](int&, scene& s) {
        s.wait.async_wait(timeout_at(manual_clock::now() + 1s, pawl::abandon, s.record()));
    });
    row("in_group", made<pawl::group>(),
        [](pawl::group& g, scene& s) { s.wait.async_wait(pawl::in_group(g, s.record())); });
    row("in_group, cancelled", made<pawl::group>(), [](pawl::group& g, scene& s) {
        s.wait.async_wait(pawl::in_group(g, s.record()));
        try {
            g.cancel();
        } catch (const std::bad_alloc&) { // the member goes on
        }
    });
    row("async_drained", made<pawl::group>(),
        [](pawl::group& g, scene& s) { g.async_drained(s.record()); });
#if defined(__cpp_lib_jthread)
    const auto stop_row = [](std::string_view name, bool before, bool after) {
        row(name, nothing, [=](int&, scene& s) {
            std::stop_source stop;
            s.late = before;
            if (before)
                stop.request_stop();
            s.wait.async_wait(pawl::stop_on(stop.get_token(), s.record()));
            if (after) // without memory it goes on
                stop.request_stop();
        });
    };
    stop_row("stop_on", false, false);
    stop_row("stop_on, stopped before", true, false);
    stop_row("stop_on, stopped", false, true);
    row("group::stop_source", made<pawl::group>(), [](pawl::group& g, scene& s) {
        auto stop = g.stop_source();
        s.late = g.cancelled();
        s.wait.async_wait(pawl::in_group(g, s.record()));
        stop.request_stop(); // without memory it goes on
    });
    row("group::stop_source, cancelled", made<pawl::group>(), [](pawl::group& g, scene& s) {
        s.wait.async_wait(pawl::stop_on(g.stop_source().get_token(), s.record()));
        afterwards([&] { g.cancel(); });
    });
    row("group::stop_source of an inner group", nothing, [](int&, scene& s) {
        const auto inner = std::make_shared<pawl::group>(s.group);
        auto stop = inner->stop_source();
        s.wait.async_wait(pawl::in_group(*inner, s.record()));
        afterwards([&] { s.group.cancel(); });
        s.kept = inner;
    });
#endif
}

/// A timer or an alarm of each kind, that waits for a day.
struct crowd {
    explicit crowd(scene& s)
        : alarm(s.context, ignore), interval(s.context, 24h), scaled(s.context) {
        for (int i = 0; i < 70; ++i) // more than a turn takes
            wait(timers.emplace_back(s.context, 24h + i * 1s));
        wait(interval);
        scaled.expires_within(12h, 24h);
        wait(scaled);
        wait(compact.emplace(s.context, 24h));
        alarm.arm_after(24h);
    }
    void wait(auto& timer) {
        timer.async_wait([this](auto&&...) { ++calls; });
    }
    [[nodiscard]] std::size_t ended() const { return calls + (alarm.armed() ? 0 : 1); }

    static constexpr std::size_t size = 70 + 4;
    std::size_t calls = 0;
    pawl::manual_alarm<std::remove_const_t<decltype(ignore)>> alarm;
    std::deque<pawl::manual_timer> timers;
    manual_interval interval;
    scaled_timer scaled;
    std::optional<pawl::compact_timer> compact;
};

/// Timers that `verb(context)` does not reach for lack of memory are unchanged, and a second call
/// ends them.
template <class Verb>
void end_of_all(std::string_view name, std::size_t size, Verb verb) {
    bool blew = true;
    for (long n = 0; blew; ++n) {
        BOOST_TEST_CONTEXT(name << ", n = " << n) {
            const std::size_t before = live_blocks();
            {
                scene s;
                crowd c(s);
                const auto poll = [&] {
                    s.context.restart();
                    s.context.poll();
                };
                std::size_t counted = size;
                counted_new::fuse = n;
                try {
                    counted = verb(s.context);
                } catch (const std::bad_alloc&) {
                    counted = crowd::size; // not known
                }
                blew = counted_new::fuse.exchange(counted_new::never) == counted_new::never;
                poll();
                const std::size_t first = c.ended();
                BOOST_TEST((blew || (counted == size && first == size)));
                BOOST_TEST(verb(s.context) == size - first);
                poll();
                BOOST_TEST(c.ended() == size);
                BOOST_TEST(verb(s.context) == 0U);
            }
            if (n > 0)
                BOOST_TEST(live_blocks() == before);
            BOOST_REQUIRE_LT(n, 1000);
        }
    }
}

BOOST_AUTO_TEST_CASE(ends_of_all) {
    constexpr auto expire = [](auto& c) { return pawl::expire_all(c, pawl::error::timed_out); };
    constexpr auto cancel = [](auto& c) { return pawl::cancel_all(c); };
    end_of_all("expire_all", crowd::size, expire);
    end_of_all("expire_all of a type", crowd::size - 2, [](asio::io_context& c) {
        return pawl::expire_all<pawl::manual_timer>(c, pawl::error::timed_out);
    });
    end_of_all("cancel_all", crowd::size, cancel);

    const auto both = [=](std::string name, auto make, auto start) {
        const auto with = [&](std::string verb, auto end) {
            row(name + ", " + verb, make, [=](auto& object, scene& s) {
                start(object, s);
                afterwards([&] { (void)end(s.context); });
            });
        };
        with("expire_all", expire);
        with("cancel_all", cancel);
    };
    both("wait", nothing, [](int&, scene& s) { s.wait.async_wait(s.record()); });
    both("limit", nothing, [](int&, scene& s) {
        s.wait.async_wait(pawl::timeout_at(manual_clock::now() + 1s, s.record()));
    });
    both("limit on a timer", made<pawl::manual_timer>(), [](pawl::manual_timer& t, scene& s) {
        s.wait.async_wait(pawl::timeout(t, 1s)(s.record()));
    });
    both("scaled limit", made<scaled_timer>(), [](scaled_timer& t, scene& s) {
        s.wait.async_wait(pawl::timeout(t, pawl::scaled(1s, 2s))(s.record()));
    });
    both("member of a group", made<pawl::group>(),
         [](pawl::group& g, scene& s) { s.wait.async_wait(pawl::in_group(g, s.record())); });
    both("end of a group", made<pawl::group>(),
         [](pawl::group& g, scene& s) { g.async_drained(s.record()); });
    both("retry", nothing, [](int&, scene& s) {
        pawl::retry(
            s.context, fast(), [&s](auto) { return s.wait.async_wait(asio::deferred); },
            s.record());
    });
}

BOOST_AUTO_TEST_CASE(attempts) {
    row("retry", nothing, [](int&, scene& s) {
        pawl::retry(
            s.context, fast(), [&s](auto) { return s.wait.async_wait(asio::deferred); },
            s.record());
    });
    row("retry, twice", nothing, [](int&, scene& s) {
        pawl::retry(
            s.context, fast(),
            [&s](auto a) {
                if (a.number() == 1)
                    throw boost::system::system_error(asio::error::connection_reset);
                return s.wait.async_wait(asio::deferred);
            },
            s.record());
    });
    row("retry, limited", nothing, [](int&, scene& s) {
        auto p = fast();
        p.attempt_limit = 1s;
        pawl::retry(
            s.context, p, [&s](auto) { return s.wait.async_wait(asio::deferred); }, s.record());
    });
    row("hedge", nothing, [](int&, scene& s) {
        pawl::hedge(
            s.context, pawl::basic_hedge_policy<manual_clock>{.delay = 1s},
            [&s](auto a) {
                s.second.emplace(s.context, 2s);
                return (a.number() == 1 ? s.wait : *s.second).async_wait(asio::deferred);
            },
            s.record());
    });
}

asio::awaitable<void> waits_for(pawl::manual_timer& timer) {
    co_await timer.async_wait(asio::deferred);
}

// Their error is an exception_ptr, and making one takes memory.
BOOST_AUTO_TEST_CASE(coroutines) {
    using pawl::timeout_at;
    const auto coroutine = [](scene& s) { return [&s](auto) { return waits_for(s.wait); }; };
    row("limit of a coroutine", nothing, [](int&, scene& s) {
        asio::co_spawn(s.context, waits_for(s.wait),
                       timeout_at(manual_clock::now() + 1s, s.record()));
    });
    row("passed limit of a coroutine", nothing, [](int&, scene& s) {
        asio::co_spawn(
            s.context, waits_for(s.wait),
            timeout_at(pawl::basic_deadline<manual_clock>(manual_clock::now() - 1s), s.record()));
    });
    row("abandoned coroutine", nothing, [](int&, scene& s) {
        asio::co_spawn(s.context, waits_for(s.wait),
                       timeout_at(manual_clock::now() + 1s, pawl::abandon, s.record()));
    });
    row("with_deadline", nothing, [](int&, scene& s) {
        const pawl::basic_deadline<manual_clock> soon(manual_clock::now() + 1s);
        asio::co_spawn(s.context, pawl::with_deadline(soon, waits_for(s.wait)), s.record());
    });
    row("sleep_for", nothing, [](int&, scene& s) {
        asio::co_spawn(s.context, pawl::sleep_for<manual_clock>(1s), s.record());
    });
    row("sleep_until", nothing, [](int&, scene& s) {
        asio::co_spawn(s.context, pawl::sleep_until(manual_clock::now() + 1s), s.record());
    });
    row("retry, no time left", nothing, [=](int&, scene& s) {
        auto p = fast();
        p.deadline = pawl::basic_deadline<manual_clock>(manual_clock::now() - 1s);
        pawl::retry(s.context, p, coroutine(s), s.record());
    });
    row("retry, cancelled", nothing, [=](int&, scene& s) {
        s.signal.emplace();
        pawl::retry(
            s.context, fast(),
            [&s](auto) -> decltype(waits_for(s.wait)) {
                s.signal->emit(asio::cancellation_type::terminal);
                throw boost::system::system_error(asio::error::connection_reset);
            },
            asio::bind_cancellation_slot(s.signal->slot(), s.record()));
    });
    row("hedge, cancelled", nothing, [=](int&, scene& s) {
        s.signal.emplace();
        pawl::hedge(s.context, pawl::basic_hedge_policy<manual_clock>{.delay = 1s}, coroutine(s),
                    asio::bind_cancellation_slot(s.signal->slot(), s.record()));
        s.signal->emit(asio::cancellation_type::terminal);
    });
}

BOOST_AUTO_TEST_CASE(queues) {
    using limiter = pawl::basic_rate_limiter<manual_clock>;
    row(
        "rate_limiter",
        [](scene& s) {
            auto r = std::make_unique<limiter>(
                s.context, pawl::rate_limit{.tokens = 1, .period = 1s, .burst = 1});
            (void)r->try_acquire();
            return r;
        },
        [](limiter& r, scene& s) { r.async_acquire(s.record()); });
    using queue = pawl::basic_delay_queue<int, manual_clock>;
    row("delay_queue push", made<queue>(), [](queue& q, scene& s) {
        q.push(1, 1s);
        q.async_pop(s.record());
    });
    using map = pawl::basic_expiring_map<int, int, manual_clock>;
    row("expiring_map", made<map>(pawl::expiring_map_options{.ttl = 1s, .keep_expired = true}),
        [](map& m, scene& s) {
            m.insert(1, 1);
            m.touch(1, 2s);
            m.async_pop_expired(s.record());
        });
}

/// A reader of what happens in the context, and an alarm, which is armed without memory.
struct reading {
    explicit reading(scene& s)
        : feed(s.context, {.capacity = 64, .readers = 2}), reader(feed.join()),
          alarm(s.context, ignore) {}
    void read(scene& s) { reader.async_read(events, s.record()); }

    pawl::event_feed feed;
    pawl::event_feed::reader reader;
    pawl::manual_alarm<std::remove_const_t<decltype(ignore)>> alarm;
    std::array<pawl::timer_event, 8> events;
};

BOOST_AUTO_TEST_CASE(feeds) {
    const auto feed_row = [](std::string_view name, auto start) {
        row(
            name, [](scene& s) { return std::make_unique<reading>(s); }, start);
    };
    feed_row("event_feed read, before events", [](reading& r, scene& s) {
        r.read(s);
        r.alarm.arm_after(1s);
    });
    feed_row("event_feed read, after events", [](reading& r, scene& s) {
        r.alarm.arm_after(1s);
        r.read(s);
    });
    feed_row("event_feed read, after events that were missed", [](reading& r, scene& s) {
        for (int i = 0; i < 200; ++i)
            r.alarm.arm_after(1s);
        r.read(s);
    });
    feed_row("event_feed read, woken while it begins to sleep", [](reading& r, scene& s) {
        r.read(s);
        for (int i = 0; i < 200; ++i) // also more than there is room for
            r.alarm.arm_after(1s);
        r.alarm.disarm();
    });
    feed_row("event_feed read, suspended", [](reading& r, scene& s) {
        r.reader.resume();
        r.read(s);
        r.reader.suspend();
    });
    feed_row("event_feed read, while suspended", [](reading& r, scene& s) {
        r.reader.suspend();
        r.read(s);
    });
    feed_row("event_feed read, expire_all", [](reading& r, scene& s) {
        r.read(s);
        afterwards([&] { pawl::expire_all(s.context); });
        r.alarm.arm_after(1s);
    });
}

using event_queue = pawl::basic_event_queue<manual_clock>;

/// An event queue with a host.
struct hosted {
    explicit hosted(scene& s) : queue(s.context) {
        s.host = [this] { queue.process_events(); };
    }
    hosted(scene& s, pawl::event_queue_options o) : queue(o) { // with timers of its own
        s.host = [this] {
            manual_clock::advance(queue.timer_context(), 0s);
            if (queue.pending() != 0) // polls, as process_events() does
                (void)queue.pending();
            queue.process_events();
        };
    }

    event_queue queue;
    event_queue::timer timer;
};

BOOST_AUTO_TEST_CASE(event_queues) {
    const auto both = [](std::string name, auto start) {
        row(
            name, [](scene& s) { return std::make_unique<hosted>(s); }, start);
        row(
            name + ", its own timers",
            [](scene& s) { return std::make_unique<hosted>(s, pawl::event_queue_options{}); },
            start);
    };
    both("event_queue post",
         [](hosted& h, scene& s) { asio::post(h.queue.get_executor(), s.record()); });
    both("event_queue once", [](hosted& h, scene& s) { (void)h.queue.once(1s, s.record()); });
    both("event_queue every", [](hosted& h, scene& s) {
        h.timer = h.queue.every(1s, [&h, once = s.record()] {
            once();
            h.timer.destroy();
        });
    });
    both("event_queue async_wait", [](hosted& h, scene& s) {
        (void)h.queue.once(1s, ignore);
        h.queue.async_wait(s.record());
    });
    both("event_queue every, disarmed", [](hosted& h, scene& s) {
        h.timer = h.queue.every(1h, s.record());
        afterwards([&] { h.timer.disarm(); });
        h.timer.destroy();
        ++s.calls; // its function has gone
    });
#if !defined(_WIN32) // has no descriptor
    row(
        "event_queue with a descriptor", [](scene& s) { return std::make_unique<hosted>(s); },
        [](hosted& h, scene& s) {
            (void)h.queue.native_handle();
            (void)h.queue.once(1s, s.record());
        });
#endif
}

using asio::ip::tcp;
using manual_stream = pawl::timeout_stream<tcp::socket, manual_clock>;

using scaled_stream = pawl::timeout_stream<tcp::socket, scaled_clock>;

/// A stream and its peer, which is silent, after a byte.
template <class Stream>
struct connection_of {
    connection_of(scene& s, const pawl::stream_limits& limits)
        : acceptor(s.context, {asio::ip::address_v4::loopback(), 0}), peer(s.context),
          stream(s.context) {
        peer.connect(acceptor.local_endpoint());
        acceptor.accept(stream.socket());
        peer.write_some(asio::buffer(bytes, 1));
        stream.set_limits(limits);
        stream.async_read_some(asio::buffer(bytes), ignore);
        while (s.context.poll() == 0) {
        }
        s.context.restart();
    }

    /// From now on nothing can be written: the peer does not read.
    void fill() {
        const std::string many(1 << 20, '0');
        stream.socket().non_blocking(true);
        for (error_code ec; !ec;)
            stream.socket().write_some(asio::buffer(many), ec);
    }

    tcp::acceptor acceptor;
    tcp::socket peer;
    Stream stream;
    std::array<char, 8> bytes{};
};
using connection = connection_of<manual_stream>;

BOOST_AUTO_TEST_CASE(streams) {
    const auto stream_row = [](std::string_view name, pawl::stream_limits limits, auto start) {
        row(
            name, [=](scene& s) { return std::make_unique<connection>(s, limits); }, start);
    };
    const auto read = [](auto& c, scene& s) {
        c.stream.async_read_some(asio::buffer(c.bytes), s.record());
    };
    stream_row("stream read", {.read = 1s}, read);
    stream_row("stream idle", {.idle = 1s, .action = pawl::on_limit::cancel}, read);
    stream_row("stream min_rate", {.min_rate = {.bytes_per_second = 9, .grace = 1s}}, read);
    stream_row("stream write", {.write = 1s}, [](connection& c, scene& s) {
        c.stream.async_write_some(asio::buffer(c.bytes), s.record());
    });
    stream_row("stream limits", {}, [](connection& c, scene& s) {
        c.stream.expires_after(1s);
        c.stream.set_limits({.idle = 1s, .read = 1s});
        const auto handshake = c.stream.limit_handshake();
        c.stream.async_read_some(asio::buffer(c.bytes), s.record());
    });
    const auto scaled_row = [](std::string_view name, auto start) {
        row(
            name,
            [](scene& s) {
                return std::make_unique<connection_of<scaled_stream>>(
                    s, pawl::stream_limits{.idle = pawl::scaled(1s, 2s),
                                           .action = pawl::on_limit::cancel});
            },
            start);
    };
    scaled_row("stream scaled idle", read);
    scaled_row("stream scaled idle, set again", [=](auto& c, scene& s) {
        c.stream.set_limits({.idle = pawl::scaled(2s, 24h)});
        read(c, s);
        afterwards([&] { scaled_pressure(s.context).set(1); });
    });
    scaled_row("stream scaled idle, expire_all", [=](auto& c, scene& s) {
        read(c, s);
        afterwards([&] { pawl::expire_all(s.context, pawl::error::timed_out); });
    });
    // Without memory it does not begin to connect, and can read.
    const auto connect_row = [&](std::string_view name, auto connect) {
        stream_row(name, {.handshake = 1s}, [=](connection& c, scene& s) {
            if (!std::exchange(c.bytes[0], '1')) {
                c.stream.close();
                connect(c, c.acceptor.local_endpoint(), s);
            } else {
                read(c, s);
            }
        });
    };
    connect_row("stream connect",
                [](connection& c, auto to, scene& s) { c.stream.async_connect(to, s.record()); });
    connect_row("stream connect to one of two", [](connection& c, auto to, scene& s) {
        c.stream.async_connect(std::array{to, to}, s.record());
    });
}

/// A clock whose n-th reading throws.
using failing_clock = pawl_test::scripted_clock<0, true>;
struct unreadable {};

/// Of the service in the rows below; 0: the first timer makes it.
unsigned shards = 0;

struct failing_scene : scene {
    failing_scene() {
        failing_clock::set(0s);
        if (shards != 0) {
            pawl::options o;
            o.shards = shards;
            pawl::make_timer_service<failing_clock>(context, o);
        }
    }
};

/// Calls `start(object, scene)`; with several shards in a thread that fills another one than run().
void begin(const auto& start, auto& object, scene& s) {
    if (shards == 0)
        return start(object, s);
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            start(object, s);
        } catch (const unreadable&) {
            thrown = std::current_exception();
        }
    }).join();
    if (thrown)
        std::rethrow_exception(thrown);
}

/// The clock was moved: runs what is due.
void run_failing_clock(scene& s, std::chrono::nanoseconds now) {
    failing_clock::set(now);
    try {
        asio::use_service<pawl::detail::service_registry>(s.context).for_each(
            [](pawl::detail::registered_service& each) { each.clock_moved(); });
        s.context.restart();
        s.context.poll();
        if (s.host)
            s.host();
    } catch (const unreadable&) { // out of run(), as any handler's
    }
}
void run_failing_clock(scene& s) {
    for (int i = 1; i < 8; ++i)
        run_failing_clock(s, 10s * i);
}

/// The n-th reading after `start(object, scene)` throws, for every n until no reading does. It delays
/// the call of the handler at most.
template <class Make, class Start>
void late_clock_row(std::string_view name, Make make, Start start) {
    bool read = true;
    for (int n = 1; read; ++n) {
        BOOST_TEST_CONTEXT(name << ", " << shards << " shards, reading " << n
                                << " after the start") {
            failing_scene s;
            auto object = make(s);
            begin(start, *object, s);
            failing_clock::at_reading(n, [] { throw unreadable(); });
            run_failing_clock(s);
            read = !failing_clock::forget();
            BOOST_TEST(s.calls == 1);
            BOOST_TEST(s.handlers == 0);
            BOOST_REQUIRE_LT(n, 100);
        }
    }
}

/// The n-th reading in `start(object, scene)` throws, for every n until no reading does. Then nothing
/// has begun, nothing leaks, and the object can be used.
template <class Make, class Start>
void clock_row(std::string_view name, Make make, Start start, phase until = phase::all) {
    bool read = true;
    for (int n = 1; read; ++n) {
        BOOST_TEST_CONTEXT(name << ", " << shards << " shards, reading " << n) {
            const std::size_t before = live_blocks();
            {
                failing_scene s;
                auto object = make(s);
                failing_clock::at_reading(n, [] { throw unreadable(); });
                try {
                    begin(start, *object, s);
                } catch (const unreadable&) {
                    BOOST_TEST(s.handlers == 0);
                }
                read = !failing_clock::forget();
                if (s.handlers == 0)
                    begin(start, *object, s);
                run_failing_clock(s);
                BOOST_TEST(s.calls == 1);
                BOOST_TEST(s.handlers == 0);
            }
            if (n > 1)
                BOOST_TEST(live_blocks() == before);
            BOOST_REQUIRE_LT(n, 100);
        }
    }
    if (until == phase::all)
        late_clock_row(name, make, start);
}

using failing_connection = connection_of<pawl::timeout_stream<tcp::socket, failing_clock>>;
const auto make_failing = [](pawl::stream_limits limits) {
    return [=](scene& s) { return std::make_unique<failing_connection>(s, limits); };
};

using limiter = pawl::basic_rate_limiter<failing_clock>;

/// A limiter without tokens.
const auto make_limiter = [](scene& s) {
    auto r = std::make_unique<limiter>(s.context,
                                       pawl::rate_limit{.tokens = 1, .period = 1s, .burst = 1});
    (void)r->try_acquire();
    return r;
};

BOOST_AUTO_TEST_CASE(a_limiter_ends_its_waits_although_its_clock_throws) {
    failing_clock::set(0s);
    scene s;
    auto r = make_limiter(s);
    error_code ec;
    r->async_acquire([&](error_code result) { ec = result; });

    failing_clock::at_reading(1, [] { throw unreadable(); });
    r.reset();
    run_failing_clock(s);

    BOOST_TEST(!failing_clock::forget());
    BOOST_TEST(ec == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(waits_for_a_limiter_whose_clock_throws_are_destroyed_with_their_context) {
    failing_clock::set(0s);
    auto s = std::make_unique<scene>();
    const auto r = make_limiter(*s);
    r->async_acquire(ignore);
    r->async_acquire(ignore);
    BOOST_TEST(r->waiting() == 2u);

    failing_clock::at_reading(1, [] { throw unreadable(); }); // as the second one moves up
    s.reset();

    BOOST_TEST(!failing_clock::forget());
    BOOST_TEST(r->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_stream_whose_clock_throws_as_an_operation_ends_may_be_used_again) {
    failing_clock::set(0s);
    scene s;
    failing_connection c(s, {.idle = 1s});
    const auto read = [&] {
        c.peer.write_some(asio::buffer("1", 1));
        while (s.handlers != 0) {
            s.context.restart();
            s.context.run_one();
        }
    };
    c.stream.async_read_some(asio::buffer(c.bytes), s.record());
    failing_clock::at_reading(1, [] { throw unreadable(); });
    BOOST_CHECK_THROW(read(), unreadable);
    BOOST_TEST(s.handlers == 0);
    BOOST_TEST(s.calls == 0);

    c.stream.async_read_some(asio::buffer(c.bytes), s.record());
    read();
    BOOST_TEST(s.calls == 1);
}

BOOST_AUTO_TEST_CASE(a_throttle_whose_clock_throws_keeps_its_interval) {
    bool read = true;
    for (int n = 1; read; ++n) {
        BOOST_TEST_CONTEXT("reading " << n) {
            failing_clock::set(0s);
            scene s;
            int calls = 0;
            const auto call = [&calls] { ++calls; };
            pawl::basic_throttle<decltype(call), failing_clock> t(s.context, 1s, call);
            BOOST_TEST(t());
            failing_clock::at_reading(n, [] { throw unreadable(); });
            run_failing_clock(s, 0s);
            read = !failing_clock::forget();
            run_failing_clock(s, 0s);
            BOOST_TEST(calls == 1);

            BOOST_TEST(t());
            run_failing_clock(s, 999ms);
            BOOST_TEST(calls == 1);
            run_failing_clock(s, 1s);
            BOOST_TEST(calls == 2);
        }
    }
}

const auto up_to_four_shards = boost::unit_test::data::make({0U, 2U, 4U});

BOOST_DATA_TEST_CASE(clocks_that_throw, up_to_four_shards, n) {
    shards = n;
    using timer = pawl::basic_waitable_timer<failing_clock>;
    using queue = pawl::basic_delay_queue<int, failing_clock>;
    using map = pawl::basic_expiring_map<int, int, failing_clock>;
    using events = pawl::basic_event_queue<failing_clock>;
    const auto wait = [](timer& t, scene& s) {
        t.expires_after(1s);
        t.async_wait(s.record());
    };
    clock_row("timer", made<timer>(), wait);
    clock_row(
        "interval timer", made<pawl::basic_interval_timer<failing_clock>>(1s),
        [](auto& t, scene& s) { t.async_wait(s.record()); }, phase::start);
    clock_row("limit on a timer", made<timer>(),
              [](timer& t, scene& s) { s.wait.async_wait(pawl::timeout(t, 1s)(s.record())); });
    clock_row("timeout_at", nothing, [](int&, scene& s) {
        s.wait.async_wait(pawl::timeout_at(failing_clock::time_point(1s), s.record()));
    });
    clock_row("retry", made<timer>(), [](timer& t, scene& s) {
        t.expires_at(failing_clock::time_point(1s));
        pawl::retry(
            s.context, pawl::basic_retry_policy<failing_clock>{},
            [&t](auto) { return t.async_wait(asio::deferred); }, s.record());
    });
    clock_row("hedge", made<timer>(), [](timer& t, scene& s) {
        t.expires_at(failing_clock::time_point(1s));
        pawl::hedge(
            s.context, pawl::basic_hedge_policy<failing_clock>{.delay = 2s},
            [&t](auto) { return t.async_wait(asio::deferred); }, s.record());
    });
    const auto acquire = [](limiter& r, scene& s) {
        r.async_acquire([once = s.record()](error_code ec) mutable {
            BOOST_TEST(!ec);
            once();
        });
    };
    clock_row("rate_limiter", make_limiter, acquire);
    late_clock_row("rate_limiter, behind another", make_limiter, [=](limiter& r, scene& s) {
        r.async_acquire(ignore);
        acquire(r, s);
    });
    late_clock_row("rate_limiter, behind one that is cancelled", make_limiter,
                   [=](limiter& r, scene& s) {
                       s.signal.emplace();
                       r.async_acquire(asio::bind_cancellation_slot(s.signal->slot(), ignore));
                       acquire(r, s);
                       s.signal->emit(asio::cancellation_type::terminal);
                   });
    clock_row("delay_queue", made<queue>(), [](queue& q, scene& s) {
        q.push(1, 1s);
        q.async_pop(s.record());
    });
    clock_row("expiring_map",
              made<map>(pawl::expiring_map_options{.ttl = 1s, .keep_expired = true}),
              [](map& m, scene& s) {
                  m.insert_or_assign(1, 1);
                  m.insert_or_assign(2, 2, 24h); // the alarm goes on for it
                  m.touch(1, 2s);
                  m.async_pop_expired(s.record());
              });
    clock_row("stream read", make_failing(pawl::stream_limits{.read = 1s}),
              [](failing_connection& c, scene& s) {
                  c.stream.async_read_some(asio::buffer(c.bytes), s.record());
              });
    late_clock_row("stream write, which ends after a read",
                   make_failing(pawl::stream_limits{
                       .read = 1s, .write = 25s, .action = pawl::on_limit::cancel}),
                   [](failing_connection& c, scene& s) {
                       c.fill();
                       c.stream.async_read_some(asio::buffer(c.bytes), ignore);
                       c.stream.async_write_some(asio::buffer(c.bytes), s.record());
                   });
    clock_row(
        "event_queue",
        [](scene& s) {
            auto q = std::make_unique<events>(s.context);
            s.host = [q = q.get()] { q->process_events(); };
            return q;
        },
        [](events& q, scene& s) { (void)q.once(1s, s.record()); });

    const auto function = [](std::string_view name, auto make, auto trigger,
                             phase until = phase::all) {
        clock_row(name, nothing, calls_function(make, trigger), until);
    };
    function(
        "alarm",
        []<class F>(scene& s, F f) {
            return pawl::basic_alarm<F, failing_clock>(s.context, std::move(f));
        },
        [](auto& a) { (void)a.arm_after(1s); });
    function(
        "debounce",
        []<class F>(scene& s, F f) {
            return pawl::basic_debounce<F, failing_clock>(s.context, 1s, std::move(f));
        },
        [](auto& d) { (void)d(); });
    function(
        "throttle",
        []<class F>(scene& s, F f) {
            return pawl::basic_throttle<F, failing_clock>(s.context, 1s, std::move(f));
        },
        [](auto& t) { (void)t(); });
    function(
        "heartbeat",
        []<class F>(scene& s, F f) {
            return pawl::basic_heartbeat<F, std::remove_const_t<decltype(ignore)>, failing_clock>(
                s.context, {.interval = 1s, .misses = 9}, std::move(f), ignore);
        },
        ignore);
}

// An entry of 5 s in a map with room for one. A shorter time to live moves the alarm, which reads the
// clock.
BOOST_AUTO_TEST_CASE(a_map_whose_clock_throws_is_as_it_was) {
    using map = pawl::basic_expiring_map<int, int, failing_clock>;
    const auto row = [](std::string_view name, auto change) {
        int failures = 0;
        bool read = true;
        for (int n = 1; read; ++n) {
            BOOST_TEST_CONTEXT(name << ", reading " << n) {
                failing_clock::set(0s);
                scene s;
                map m(s.context, {.ttl = 5s, .capacity = 1});
                m.insert(1, 1);
                failing_clock::at_reading(n, [] { throw unreadable(); });
                try {
                    change(m);
                } catch (const unreadable&) {
                    ++failures;
                    const int* const value = m.find(1, failing_clock::time_point(4s));
                    BOOST_TEST((value && *value == 1));
                    BOOST_TEST(!m.find(1, failing_clock::time_point(6s)));
                    BOOST_TEST(m.size() == 1U);
                }
                read = !failing_clock::forget();
                if (!read) // it has succeeded
                    BOOST_TEST(!m.find(1, failing_clock::time_point(4s)));
            }
        }
        BOOST_TEST(failures > 1); // not only the first reading, before anything is done
    };
    row("touch", [](map& m) { m.touch(1, 1s); });
    row("insert_or_assign", [](map& m) { m.insert_or_assign(1, 2, 1s); });
    row("insert", [](map& m) { m.insert(2, 2, 1s); });
}

int foreign_fuse = 0; ///< The n-th call of a failing_executor or failing_allocator throws; 0: none.
void burn() {
    if (foreign_fuse > 0 && --foreign_fuse == 0)
        throw std::bad_alloc(); // which scene::drive() lets out of run()
}

struct failing_executor {
    asio::io_context* where;

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *where; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
        return asio::execution::blocking.never;
    }
    failing_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F&& f) const {
        burn();
        asio::post(where->get_executor(), std::forward<F>(f));
    }
    bool operator==(const failing_executor&) const noexcept = default;
};

template <class T>
struct failing_allocator {
    using value_type = T;
    failing_allocator() = default;
    template <class U>
    explicit(false) failing_allocator(const failing_allocator<U>&) noexcept {}
    T* allocate(std::size_t n) {
        burn();
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }
    bool operator==(const failing_allocator&) const noexcept = default;
};

/// The n-th use of the executor of the handler of `start(object, scene, handler)` throws, or of its
/// allocator, for every n until none does. Then the handler is called or destroyed, nothing leaks, and the object can
/// be used.
template <class Make, class Start, class Bind>
void foreign_row(std::string_view name, std::string_view use, Make make, Start start, Bind bind) {
    bool blew = true;
    for (int n = 1; blew; ++n) {
        BOOST_TEST_CONTEXT(name << ", " << use << ' ' << n) {
            const std::size_t before = live_blocks();
            {
                scene s;
                auto object = make(s);
                const auto attempt = [&] {
                    s.wait.expires_after(5s);
                    start(*object, s, bind(s, s.record()));
                };
                foreign_fuse = n;
                try {
                    attempt();
                } catch (const std::bad_alloc&) {
                    BOOST_TEST(s.handlers == 0);
                }
                s.drive();
                blew = std::exchange(foreign_fuse, 0) == 0;
                BOOST_TEST((s.calls == 1 || (blew && s.calls == 0)));
                BOOST_TEST(s.handlers == 0);
                s.calls = 0;
                attempt();
                s.drive();
                BOOST_TEST(s.calls == 1);
                BOOST_TEST(s.handlers == 0);
            }
            if (n > 1)
                BOOST_TEST(live_blocks() == before);
            BOOST_REQUIRE_LT(n, 100);
        }
    }
}
template <class Make, class Start>
void foreign_row(std::string_view name, Make make, Start start) {
    const auto executor = [](scene& s, auto handler) {
        return asio::bind_executor(failing_executor{&s.context}, std::move(handler));
    };
    const auto allocator = [](scene&, auto handler) {
        return asio::bind_allocator(failing_allocator<void>(), std::move(handler));
    };
    foreign_row(name, "submission", make, start, executor);
    foreign_row(name, "allocation", make, start, allocator);
}

BOOST_AUTO_TEST_CASE(executors_and_allocators_that_throw) {
    const auto waits = [](auto& timer, scene&, auto handler) {
        timer.expires_after(1s);
        timer.async_wait(std::move(handler));
    };
    foreign_row("manual_timer", made<pawl::manual_timer>(), waits);
    foreign_row("limit", nothing, [](int&, scene& s, auto handler) {
        s.wait.async_wait(pawl::timeout_at(manual_clock::now() + 1s, std::move(handler)));
    });
    foreign_row("group", nothing, [](int&, scene& s, auto handler) {
        s.wait.async_wait(pawl::in_group(s.group, std::move(handler)));
    });
    foreign_row("interval_timer", made<pawl::basic_interval_timer<manual_clock>>(1s),
                [](auto& ticks, scene&, auto handler) { ticks.async_wait(std::move(handler)); });
    foreign_row("retry", nothing, [](int&, scene& s, auto handler) {
        pawl::retry(
            s.context, pawl::basic_retry_policy<manual_clock>{},
            [&s](auto) { return s.wait.async_wait(asio::deferred); }, std::move(handler));
    });
    foreign_row("hedge", nothing, [](int&, scene& s, auto handler) {
        pawl::hedge(
            s.context, pawl::basic_hedge_policy<manual_clock>{.delay = 2s},
            [&s](auto) { return s.wait.async_wait(asio::deferred); }, std::move(handler));
    });
    const auto make_one = [](scene& s) {
        return std::make_unique<pawl::basic_rate_limiter<manual_clock>>(
            s.context, pawl::rate_limit{.tokens = 1, .period = 1s, .burst = 1});
    };
    foreign_row("rate_limiter, at once", make_one,
                [](auto& r, scene&, auto handler) { r.async_acquire(std::move(handler)); });
    foreign_row("rate_limiter", make_one, [](auto& r, scene&, auto handler) {
        (void)r.try_acquire();
        r.async_acquire(std::move(handler));
    });
    foreign_row("delay_queue", made<pawl::basic_delay_queue<int, manual_clock>>(),
                [](auto& q, scene&, auto handler) {
                    q.push(1, 1s);
                    q.async_pop(std::move(handler));
                });
    foreign_row("expiring_map",
                made<pawl::basic_expiring_map<int, int, manual_clock>>(
                    pawl::expiring_map_options{.ttl = 1s, .keep_expired = true}),
                [](auto& m, scene&, auto handler) {
                    m.insert_or_assign(1, 1);
                    m.async_pop_expired(std::move(handler));
                });

    // The executor of an object, for its function.
    using function = std::function<void()>;
    const auto called = [](auto make, auto trigger) {
        return std::pair(
            [make](scene& s) { return make(failing_executor{&s.context}, [&s] { ++s.calls; }); },
            [trigger](auto& object, scene&, auto) { trigger(object); });
    };
    const auto row = [](std::string_view name, auto both) {
        foreign_row(name, both.first, both.second);
    };
    row("alarm",
        called(
            [](auto ex, function f) {
                return std::make_unique<
                    pawl::basic_alarm<function, manual_clock, failing_executor>>(ex, std::move(f));
            },
            [](auto& a) { (void)a.arm_after(1s); }));
    row("debounce", called(
                        [](auto ex, function f) {
                            return std::make_unique<
                                pawl::basic_debounce<function, manual_clock, failing_executor>>(
                                ex, 1s, std::move(f));
                        },
                        [](auto& d) { (void)d(); }));
    row("throttle", called(
                        [](auto ex, function f) {
                            return std::make_unique<
                                pawl::basic_throttle<function, manual_clock, failing_executor>>(
                                ex, 1s, std::move(f));
                        },
                        [](auto& t) { (void)t(); }));
}

// With a wait, or armed.
BOOST_AUTO_TEST_CASE(objects) {
    const auto waits = [](auto timer) {
        timer.async_wait(ignore);
        return timer;
    };
    const auto timer = [=]<class Timer>(std::string_view name, std::type_identity<Timer>) {
        made_or_not(name, [=](scene& s) { return waits(Timer(s.context, 1h)); });
    };
    timer("steady_timer", std::type_identity<pawl::steady_timer>());
    timer("coarse_timer", std::type_identity<pawl::coarse_timer>());
    timer("compact_timer", std::type_identity<pawl::compact_timer>());
    timer("system_timer", std::type_identity<pawl::system_timer>());
    timer("manual_timer", std::type_identity<pawl::manual_timer>());
    timer("scaled_timer", std::type_identity<scaled_timer>());
    timer("interval_timer", std::type_identity<pawl::interval_timer>());
    made_or_not("ring_timer", [=](scene& s) {
        if (auto mark = std::make_shared<int>(); !s.kept) {
            make_rings(s);
            s.kept = std::move(mark);
        }
        return waits(ring_timer(s.context, 1s));
    });
    made_or_not("alarm", [](scene& s) {
        pawl::manual_alarm a(s.context, ignore);
        a.arm_after(1h);
        return a;
    });
    made_or_not("alarm in a group", [](scene& s) {
        pawl::manual_alarm a(s.context, pawl::in_group(s.group, ignore));
        a.arm_after(1h);
        return a;
    });
    made_or_not("debounce", [](scene& s) {
        pawl::debounce d(s.context, 1h, ignore);
        d();
        return d;
    });
    made_or_not("throttle", [](scene& s) {
        pawl::throttle t(s.context, 1h, ignore);
        t();
        return t;
    });
    made_or_not("heartbeat", [](scene& s) {
        return pawl::heartbeat(s.context, {.interval = 1h}, ignore, ignore);
    });
    made_or_not("group", [](scene& s) { return pawl::group(s.context); });
    made_or_not("group in a group", [](scene& s) { return pawl::group(s.group); });
    made_or_not("rate_limiter", [](scene& s) {
        return pawl::rate_limiter(s.context, {.tokens = 1, .period = 1s, .burst = 1});
    });
    made_or_not("expiring_map", [](scene& s) {
        return pawl::expiring_map<int, int>(s.context, {.ttl = 1s, .capacity = 2});
    });
    made_or_not("delay_queue", [](scene& s) { return pawl::delay_queue<int>(s.context); });
    made_or_not("event_queue", [](scene& s) { return event_queue(s.context); });
#if BOOST_ASIO_VERSION < 103500
    // With Boost 1.90 an io_context leaks its service registry if it has no memory for its scheduler.
    made_or_not("event_queue, own timers", [](scene&) { return event_queue(); });
#endif
    made_or_not("event_feed::reader", [](scene& s) {
        return pawl::event_feed(s.context, {.capacity = 64, .readers = 4}).join();
    });
    made_or_not("broadcast_ring", [](scene&) { return pawl::broadcast_ring<std::string>(64); });
    made_or_not("pressure", [](scene& s) { return pawl::pressure(s.context); });
    made_or_not("lateness_pressure", [](scene& s) { return pawl::lateness_pressure(s.context); });
    made_or_not("timeout_stream", [](scene& s) {
        manual_stream t(s.context);
        t.set_limits({.idle = 1s});
        t.expires_after(1h);
        return t;
    });
}

} // namespace
} // namespace fault
