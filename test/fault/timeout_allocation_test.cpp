// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// An operation under a limit, with its n-th allocation failing, for every n until no allocation
// fails. It is started or not, nothing is left behind, and a started operation completes once.

#include <pawl/cancel_after.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#define BOOST_TEST_MODULE timeout_allocation
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace fault {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using namespace std::chrono_literals;

/// An operation that takes forever, its limit, and its outcome.
struct rig {
    explicit rig(asio::io_context& c) : context(c) {
        pawl::steady_timer warm(c, 1h); // makes the services of the operation and of the limit
        pawl::manual_timer warm_too(c, 1h);
    }

    void note(error_code ec) {
        ++calls;
        code = ec;
    }
    /// Move-only, and counted while it is alive.
    auto record() {
        return [this, guard = std::unique_ptr<rig, leave>(enter())](error_code ec) { note(ec); };
    }

    asio::io_context& context;
    pawl::steady_timer operation{context, 1h};
    pawl::manual_timer limit{context};
    asio::any_io_executor strand{asio::make_strand(asio::any_io_executor(context.get_executor()))};
    asio::cancellation_signal outer;
    int handlers = 0;
    int calls = 0;
    error_code code;

private:
    struct leave {
        void operator()(rig* r) const noexcept { --r->handlers; }
    };
    rig* enter() {
        ++handlers;
        return this;
    }
};

/// Calls `attempt(rig)` in a new context, with the n-th allocation failing. If it throws, nothing
/// may have started; otherwise the limit must end the operation.
template <class Attempt>
void started_or_not(Attempt attempt) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool succeeded = false;
        {
            asio::io_context context;
            rig r(context);
            counted_new::fuse = n;
            try {
                attempt(r);
                succeeded = true;
            } catch (const std::bad_alloc&) {
            }
            counted_new::fuse = counted_new::never;
            context.poll();
            BOOST_TEST(r.calls == 0);
            BOOST_TEST(r.handlers == (succeeded ? 1 : 0)); // destroyed at once
            BOOST_TEST(context.stopped() != succeeded);
            manual_clock::advance(context, 10s);
            context.restart();
            context.poll();
            BOOST_TEST(r.calls == (succeeded ? 1 : 0));
            BOOST_TEST(r.handlers == 0);
            BOOST_TEST((!succeeded || r.code == pawl::error::timed_out));
            BOOST_TEST(context.stopped());
        }
        if (n > 0) // objects that exist once per process have been made by then
            BOOST_TEST(live_blocks() == before);
        if (succeeded)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

BOOST_AUTO_TEST_CASE(an_operation_under_a_limit_of_its_own_is_started_or_not) {
    started_or_not([](rig& r) {
        r.operation.async_wait(pawl::timeout_at(manual_clock::now() + 10s, r.record()));
    });
}

BOOST_AUTO_TEST_CASE(an_operation_under_a_limit_on_the_callers_timer_is_started_or_not) {
    started_or_not([](rig& r) { r.operation.async_wait(pawl::timeout(r.limit, 10s, r.record())); });
}

BOOST_AUTO_TEST_CASE(with_a_cancellation_slot_and_a_strand_it_is_started_or_not) {
    started_or_not([](rig& r) {
        r.operation.async_wait(
            pawl::timeout_at(manual_clock::now() + 10s,
                             asio::bind_cancellation_slot(
                                 r.outer.slot(), asio::bind_executor(r.strand, r.record()))));
    });
}

BOOST_AUTO_TEST_CASE(under_two_limits_it_is_started_or_not) {
    started_or_not([](rig& r) {
        r.operation.async_wait(
            pawl::timeout_at(manual_clock::now() + 20s, pawl::timeout(r.limit, 10s, r.record())));
    });
}

BOOST_AUTO_TEST_CASE(the_first_limit_of_a_context_is_started_or_not) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool succeeded = false;
        {
            asio::io_context context;
            int calls = 0;
            counted_new::fuse = n;
            try {
                pawl::steady_timer operation(context, 0s);
                operation.async_wait(
                    pawl::timeout(1h, [&calls](error_code ec) { calls += ec ? 100 : 1; }));
                counted_new::fuse = counted_new::never;
                context.run();
                succeeded = true;
            } catch (const std::bad_alloc&) {
            }
            counted_new::fuse = counted_new::never;
            context.restart();
            context.poll();
            BOOST_TEST(calls == (succeeded ? 1 : 0));
            BOOST_TEST(context.stopped());
        }
        if (n > 0)
            BOOST_TEST(live_blocks() == before);
        if (succeeded)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

/// A failure in the middle of a coroutine reaches it as an exception, or the coroutine continues.
BOOST_AUTO_TEST_CASE(a_coroutine_under_a_limit_ends_once_whatever_fails) {
    struct body {
        static asio::awaitable<void> inner(rig& r) {
            co_await r.operation.async_wait(asio::use_awaitable);
        }
        static asio::awaitable<void> outer(rig& r) {
            co_await pawl::timeout_at(manual_clock::now() + 10s, inner(r));
        }
        static asio::awaitable<void> under_a_deadline(rig& r) {
            co_await pawl::with_deadline(
                pawl::basic_deadline<manual_clock>(manual_clock::now() + 10s), inner(r));
        }
    };
    for (const bool deadline : {false, true}) {
        for (long n = 0;; ++n) {
            const std::size_t before = live_blocks();
            bool blew = false;
            int ended = 0;
            {
                asio::io_context context;
                rig r(context);
                asio::co_spawn(context, deadline ? body::under_a_deadline(r) : body::outer(r),
                               [&](const std::exception_ptr&) { ++ended; });
                counted_new::fuse = n;
                try {
                    context.poll();
                } catch (const std::bad_alloc&) {
                }
                blew = counted_new::fuse.exchange(counted_new::never) == counted_new::never;
                manual_clock::advance(context, 10s);
                context.restart();
                context.poll();
                BOOST_TEST(ended <= 1);
                BOOST_TEST((blew || ended == 1));
                BOOST_TEST(context.stopped());
            }
            if (n > 0)
                BOOST_TEST(live_blocks() == before);
            if (!blew)
                break;
            BOOST_REQUIRE_LT(n, 1000);
        }
    }
}

// ---- without memory after the start -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_operation_that_completes_first_ends_its_limit_without_memory) {
    asio::io_context context;
    rig r(context);
    r.operation.async_wait(pawl::timeout_at(manual_clock::now() + 10s, r.record()));
    counted_new::fuse = 0;
    r.operation.cancel();
    context.poll();
    counted_new::fuse = counted_new::never;
    BOOST_TEST(r.calls == 1);
    BOOST_TEST((r.code == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(a_limit_is_reached_and_lifted_and_moved_without_memory) {
    asio::io_context context;
    rig r(context);
    r.operation.async_wait(pawl::timeout(r.limit, 10s, r.record()));
    counted_new::fuse = 0;
    const std::size_t moved = r.limit.rearm_after(5s);
    counted_new::fuse = counted_new::never;
    manual_clock::advance(context, 5s);
    counted_new::fuse = 0;
    context.poll();
    counted_new::fuse = counted_new::never;
    BOOST_TEST(moved == 1u);
    BOOST_TEST(r.calls == 1);
    BOOST_TEST((r.code == pawl::error::timed_out));
}

// The handlers of the operation and of the limit are already on their strand. The result has to be
// stored for a moment, which takes work on the strand, and that may need memory.
BOOST_AUTO_TEST_CASE(a_result_that_cannot_be_kept_leaves_nothing_behind) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool blew = false;
        {
            asio::io_context here;
            asio::io_context there;
            const asio::any_io_executor strand =
                asio::make_strand(asio::any_io_executor(there.get_executor()));
            rig r(here);
            r.operation.async_wait(
                pawl::timeout(r.limit, 10s, asio::bind_executor(strand, r.record())));
            r.operation.cancel();
            manual_clock::advance(here, 10s);
            here.poll(); // both are handed over: the operation first
            counted_new::fuse = n;
            try {
                there.poll();
            } catch (const std::bad_alloc&) {
            }
            blew = counted_new::fuse.exchange(counted_new::never) == counted_new::never;
            for (int i = 0; i < 3; ++i) {
                here.restart();
                here.poll();
                there.restart();
                there.poll();
            }
            BOOST_TEST(r.calls <= 1);
            BOOST_TEST((blew || r.calls == 1));
            BOOST_TEST(r.handlers == 0);
            BOOST_TEST(here.stopped());
            BOOST_TEST(there.stopped());
        }
        if (n > 0)
            BOOST_TEST(live_blocks() == before);
        if (!blew)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

} // namespace fault
