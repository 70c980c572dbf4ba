// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The worst handlers: they throw, throw when moved, stop the context, destroy their own timer,
//   their peers or all. Memory runs out at the wrong moment. The process forks.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE handler_faults
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "service/counted_new.hpp"
#include "service/service_support.hpp"
#include "support/asio_configuration.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;
namespace data = boost::unit_test::data;

const auto completions = data::make({1u, 64u});

void make_service(asio::io_context& context, unsigned per_turn) {
    pawl::options o;
    o.precision = 1ns;
    o.completions_per_turn = per_turn;
    pawl::make_timer_service<manual_clock>(context, o);
}

struct failure : std::runtime_error {
    failure() : std::runtime_error("handler") {}
};

/// poll() until no handler throws; returns how many threw.
int poll_through(asio::io_context& context) {
    const auto work = asio::make_work_guard(context); // when it ends, that stops a context, too
    for (int thrown = 0;; ++thrown) {
        try {
            poll(context);
            return thrown;
        } catch (const failure&) {
            BOOST_CHECK(!context.stopped()); // C34
        } catch (const asio::multiple_exceptions&) {
            // Of one unit: Asio's own executors keep an exception of a handler that they run
            // inline.
        }
    }
}

} // namespace

// ---- throwing -----------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(C34_a_handler_that_throws_does_not_take_its_neighbours_with_it, completions,
                     n) {
    asio::io_context context;
    make_service(context, n);
    std::deque<manual_timer> timers;
    std::deque<outcome> o(200);
    for (std::size_t i = 0; i < 200; ++i) {
        timers.emplace_back(context, 1ms).async_wait([&o, i](error_code ec) {
            record(o[i])(ec);
            if (i % 3 == 0)
                throw failure();
        });
    }
    manual_clock::advance(context, 1ms);

    BOOST_CHECK_EQUAL(poll_through(context), 67);

    for (const outcome& each : o)
        BOOST_CHECK(each.succeeded());
    BOOST_CHECK(!busy(context));
}

BOOST_DATA_TEST_CASE(C34_the_only_handler_may_throw_and_the_timer_goes_on, completions, n) {
    asio::io_context context;
    make_service(context, n);
    manual_timer timer(context, 1ms);
    timer.async_wait([](error_code) { throw failure(); });
    manual_clock::advance(context, 1ms);
    BOOST_CHECK_EQUAL(poll_through(context), 1);

    outcome o;
    timer.expires_after(1ms);
    timer.async_wait(record(o));
    manual_clock::advance(context, 1ms);
    BOOST_CHECK_EQUAL(poll_through(context), 0);

    BOOST_CHECK(o.succeeded());
}

BOOST_DATA_TEST_CASE(C34_cancelled_handlers_may_throw_as_well, completions, n) {
    asio::io_context context;
    make_service(context, n);
    std::deque<manual_timer> timers;
    int calls = 0;
    for (int i = 0; i < 100; ++i) {
        timers.emplace_back(context, 1ms).async_wait([&](error_code) {
            ++calls;
            throw failure();
        });
    }
    for (manual_timer& t : timers)
        t.cancel();

    BOOST_CHECK_EQUAL(poll_through(context), 100);

    BOOST_CHECK_EQUAL(calls, 100);
    BOOST_CHECK(!busy(context)); // P9
}

BOOST_DATA_TEST_CASE(C34_handlers_in_a_strand_may_throw, completions, n) {
    asio::io_context context;
    make_service(context, n);
    auto strand = asio::make_strand(context);
    std::deque<manual_timer> timers;
    int calls = 0;
    for (int i = 0; i < 100; ++i) {
        timers.emplace_back(context, 1ms).async_wait(asio::bind_executor(strand, [&](error_code) {
            if (++calls % 10 == 0)
                throw failure();
        }));
    }
    manual_clock::advance(context, 1ms);

    BOOST_CHECK_GE(poll_through(context), 1);

    BOOST_CHECK_EQUAL(calls, 100);
}

// A real driver: the handler runs within its wake-up.
BOOST_AUTO_TEST_CASE(C34_a_handler_that_throws_out_of_the_wake_up_of_the_driver_stops_nothing) {
    asio::io_context context;
    pawl::steady_timer first(context, 1ms);
    pawl::steady_timer second(context, 5ms);
    outcome o;
    first.async_wait([](error_code) { throw failure(); });
    second.async_wait(record(o));

    BOOST_CHECK_THROW(context.run(), failure);
    context.run();

    BOOST_CHECK(o.succeeded());
}

namespace {
/// Throws when it is moved or copied for the `fuse`-th time.
struct burning_handler {
    burning_handler(int f, std::shared_ptr<int> a) : fuse(f), alive(std::move(a)) {}
    burning_handler(const burning_handler& other) : fuse(other.fuse - 1), alive(other.alive) {
        burn();
    }
    burning_handler(burning_handler&& other) : fuse(other.fuse - 1), alive(other.alive) { burn(); }
    void burn() const {
        if (fuse == 0)
            throw failure();
    }
    void operator()(error_code) const {}

    int fuse;
    std::shared_ptr<int> alive;
};
} // namespace

// Wherever it burns: if within async_wait(), nothing has happened; if later, run() throws.
BOOST_DATA_TEST_CASE(C34_C26_a_handler_may_throw_whenever_it_is_moved_or_copied, completions, n) {
    for (const bool in_strand : {false, true}) {
        for (int fuse = 1; fuse < 12; ++fuse) {
            asio::io_context context;
            make_service(context, n);
            auto strand = asio::make_strand(context);
            manual_timer before(context, 1ms);
            manual_timer timer(context, 1ms);
            manual_timer after(context, 1ms);
            outcome o1;
            outcome o2;
            auto alive = std::make_shared<int>();
            before.async_wait(record(o1));
            {
                const burning_handler handler(fuse, alive);
                try {
                    if (in_strand)
                        timer.async_wait(asio::bind_executor(strand, handler));
                    else
                        timer.async_wait(handler);
                } catch (const failure&) {
                    BOOST_CHECK_EQUAL(timer.cancel(), none);
                }
            }
            after.async_wait(record(o2));
            manual_clock::advance(context, 1ms);
            poll_through(context);

            BOOST_CHECK(o1.succeeded() && o2.succeeded());
            BOOST_CHECK_EQUAL(alive.use_count(), 1);
            BOOST_CHECK(!busy(context));
        }
    }
}

// ---- stop ---------------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(C36_a_handler_that_stops_the_context_leaves_its_neighbours_for_later,
                     completions, n) {
    asio::io_context context;
    make_service(context, n);
    std::deque<manual_timer> timers;
    int calls = 0;
    for (int i = 0; i < 200; ++i) {
        timers.emplace_back(context, 1ms).async_wait([&](error_code) {
            if (++calls == 5)
                context.stop();
        });
    }
    manual_clock::advance(context, 1ms);

    poll(context);
    BOOST_CHECK_LE(calls, 4 + static_cast<int>(n)); // the turn that is running is ended
    poll(context);

    BOOST_CHECK_EQUAL(calls, 200);
}

// ---- destruction ----------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(a_handler_may_destroy_its_own_timer_and_all_others, completions, n) {
    for (const std::size_t which : {0u, 1u, 50u, 99u}) {
        asio::io_context context;
        make_service(context, n);
        std::deque<std::optional<manual_timer>> timers(100);
        std::deque<outcome> o(100);
        for (std::size_t i = 0; i < 100; ++i) {
            timers[i].emplace(context, i < 60 ? 1ms : 1h);
            timers[i]->async_wait([&, i](error_code ec) {
                record(o[i])(ec);
                if (i == std::min<std::size_t>(which, 59))
                    timers.clear();
            });
        }
        manual_clock::advance(context, 1ms);

        poll(context);

        for (const outcome& each : o)
            BOOST_CHECK(each.succeeded() || each.aborted());
        BOOST_CHECK(o[99].aborted());
        BOOST_CHECK(!busy(context));
    }
}

BOOST_DATA_TEST_CASE(a_handler_may_destroy_a_peer_that_is_queued_in_a_strand, completions, n) {
    asio::io_context context;
    make_service(context, n);
    auto strand = asio::make_strand(context);
    std::optional<manual_timer> peer(std::in_place, context, 1ms);
    manual_timer timer(context, 1ms);
    outcome o;
    timer.async_wait(asio::bind_executor(strand, [&](error_code) { peer.reset(); }));
    peer->async_wait(asio::bind_executor(strand, record(o)));
    manual_clock::advance(context, 1ms);

    poll(context);

    BOOST_CHECK(o.aborted());
}

// ---- memory -------------------------------------------------------------------------------------------

// expire_all() finds a timer that was made when memory was short.
BOOST_AUTO_TEST_CASE(C26_P10_expire_all_finds_a_timer_whose_making_had_failed_before) {
    for (long n = 0;; ++n) {
        asio::io_context context;
        std::optional<pawl::steady_timer> timer;
        counted_new::fuse = n;
        try {
            timer.emplace(context, 1h);
        } catch (const std::bad_alloc&) {
        }
        const bool failed = counted_new::fuse == counted_new::never;
        counted_new::fuse = counted_new::never;
        if (!timer)
            timer.emplace(context, 1h);
        outcome o;
        timer->async_wait(record(o));

        BOOST_CHECK_EQUAL(pawl::expire_all(context), one);
        poll(context);
        BOOST_CHECK(o.succeeded());
        if (!failed)
            break;
    }
}

// The wait cannot start, and its handler destroys the last owner of the timer.
BOOST_AUTO_TEST_CASE(C26_a_wait_that_cannot_start_may_destroy_its_timer) {
    for (long n = 0;; ++n) {
        asio::io_context context;
        auto owner = std::make_unique<pawl::steady_timer>(context, 1h);
        pawl::steady_timer& timer = *owner;
        std::size_t ends = 0;
        for (int i = 0; i < 512; ++i) // so that the next wait needs more room in the due queue
            timer.async_wait([&](error_code) { ++ends; });
        bool failed = false;
        counted_new::fuse = n;
        try {
            timer.async_wait([owner = std::move(owner)](error_code) {});
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        counted_new::fuse = counted_new::never;

        poll(context);
        BOOST_CHECK_EQUAL(ends, failed ? 512u : 0u); // cancelled by the destructor
        if (!failed)
            break;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

// Memory runs out in run(), while the clock turns out to be set back: run() throws, and no wait is
// lost.
BOOST_AUTO_TEST_CASE(P3_no_wait_is_lost_when_memory_runs_out_while_a_clock_is_set_back) {
    using clock = stepped_clock<std::integral_constant<int, 1>, false>;
    constexpr auto noon = std::chrono::nanoseconds(1000h);
    bool failed = true;
    for (long n = 0; failed; ++n) {
        failed = false;
        clock::set(noon);
        asio::io_context context;
        pawl::basic_waitable_timer<clock> seen(context, 1ms);
        pawl::basic_waitable_timer<clock> timer(context, 10ms);
        outcome o;
        seen.async_wait([](error_code) {});
        timer.async_wait(record(o));
        clock::set(noon + 1ms);
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& each) { each.clock_moved(); });
        poll(context);
        clock::set(noon - 1h);
        seen.expires_after(0ms); // wakes the driver
        seen.async_wait([](error_code) {});
        counted_new::fuse = n;
        try {
            poll(context);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        counted_new::fuse = counted_new::never;

        clock::set(noon + 1h);
        context.restart();
        context.run_for(3s); // the driver checks this clock once a second
        BOOST_REQUIRE_MESSAGE(o.succeeded(), "lost when allocation " << n << " failed");
        BOOST_REQUIRE_EQUAL(failed || n > 0, true); // there is an allocation to fail
    }
}

// ---- fork ---------------------------------------------------------------------------------------------

// As with Asio's timers, the child does not end there (Boost 1.81).
PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(C39_timers_that_are_pending_at_a_fork_complete_in_both_processes) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> o(3);
    for (outcome& each : o)
        timers.emplace_back(context, 50ms).async_wait(record(each));
    timers[2].cancel();
    poll(context);
    context.restart();

    context.notify_fork(asio::execution_context::fork_prepare);
    const pid_t child = ::fork();
    BOOST_REQUIRE_GE(child, 0);
    if (child == 0) {
        ::alarm(20);
        context.notify_fork(asio::execution_context::fork_child);
        outcome later;
        timers[2].expires_after(60ms);
        timers[2].async_wait(record(later));
        context.run();
        const bool good =
            o[0].succeeded() && o[1].succeeded() && o[2].aborted() && later.succeeded();
        ::_exit(good ? 0 : 1);
    }
    context.notify_fork(asio::execution_context::fork_parent);
    context.run();
    int status = 0;
    BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);

    BOOST_CHECK(o[0].succeeded() && o[1].succeeded());
    BOOST_CHECK(WIFEXITED(status));
    BOOST_CHECK_EQUAL(WEXITSTATUS(status), 0);
}
