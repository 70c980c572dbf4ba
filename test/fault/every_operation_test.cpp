// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A row for an operation: its n-th allocation fails, for every n until no allocation fails: first
// only in the initiating function, then also while the context runs. Nothing may leak.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE every_operation
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
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
    /// @return whether an exception came out
    bool drive() {
        bool thrown = false;
        for (int i = 0; i < 8; ++i) {
            try {
                context.restart();
                context.poll();
            } catch (const std::bad_alloc&) {
                thrown = true;
            }
            const long fuse = counted_new::fuse.exchange(counted_new::never);
            manual_clock::advance(context, 10s);
            counted_new::fuse = fuse;
        }
        return thrown;
    }

    asio::io_context context;
    int handlers = 0;
    int calls = 0;
    pawl::manual_timer wait{context, manual_clock::now() + 5s};
    std::optional<pawl::manual_timer> second;
    std::optional<asio::cancellation_signal> signal;

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
                    BOOST_TEST(s.handlers == 0); // destroyed at once
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

template <class Make, class Start>
void row(std::string_view name, Make make, Start start) {
    run_row(name, phase::start, make, start);
    run_row(name, phase::all, make, start);
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

BOOST_AUTO_TEST_CASE(waits) {
    const auto wait = [](auto& timer, scene& s) { timer.async_wait(s.record()); };
    row("manual_timer", made<pawl::manual_timer>(1s), wait);
    row("coarse_timer", made<pawl::coarse_timer>(0s), wait);
    row("system_timer", made<pawl::system_timer>(0s), wait);
    row("high_resolution_timer", made<pawl::high_resolution_timer>(0s), wait);
    row("interval timer", made<pawl::basic_interval_timer<manual_clock>>(1s), wait);
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
    row("cancel_at", nothing, [](int&, scene& s) {
        s.wait.async_wait(pawl::cancel_at(manual_clock::now() + 1s, s.record()));
    });
    row("abandon", nothing, [](int&, scene& s) {
        s.wait.async_wait(timeout_at(manual_clock::now() + 1s, pawl::abandon, s.record()));
    });
    row("in_group", made<pawl::group>(),
        [](pawl::group& g, scene& s) { s.wait.async_wait(pawl::in_group(g, s.record())); });
    row("async_drained", made<pawl::group>(),
        [](pawl::group& g, scene& s) { g.async_drained(s.record()); });
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
    row("retry, no time left", nothing, [=](int&, scene& s) {
        auto p = fast();
        p.deadline = pawl::basic_deadline<manual_clock>(manual_clock::now() - 1s);
        pawl::retry(s.context, p, coroutine(s), s.record());
    });
    row("retry, cancelled", nothing, [=](int&, scene& s) {
        s.signal.emplace();
        pawl::retry(
            s.context, fast(),
            [&s](auto a) {
                if (a.number() != 0) {
                    s.signal->emit(asio::cancellation_type::terminal);
                    throw boost::system::system_error(asio::error::connection_reset);
                }
                return waits_for(s.wait);
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
}

} // namespace
} // namespace fault
