// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   P10: expire_all(), and the outcome of waits and timers when their context ends.

#define BOOST_TEST_MODULE end_of_context
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "whole_service.hpp"

#include "../support/asio_configuration.hpp"
#include "../support/sanitized.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <pthread.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace {

using namespace service_test;

constexpr std::size_t million = pawl_test::sanitized ? 100'000 : 1'000'000;
constexpr std::size_t small_stack = (pawl_test::sanitized ? 1024 : 128) * 1024; // frames are larger

/// Runs `f` on a thread whose stack a recursion over many waits would overflow.
void with_small_stack(std::function<void()> f) {
    pthread_attr_t attributes;
    BOOST_REQUIRE_EQUAL(pthread_attr_init(&attributes), 0);
    BOOST_REQUIRE_EQUAL(pthread_attr_setstacksize(&attributes, small_stack), 0);
    pthread_t thread;
    const auto body = [](void* p) -> void* {
        (*static_cast<std::function<void()>*>(p))();
        return nullptr;
    };
    BOOST_REQUIRE_EQUAL(pthread_create(&thread, &attributes, body, &f), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

} // namespace

/// Shuts down after the services of timers, which are newer, and before that of Asio's units.
class last_service final : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;
    explicit last_service(asio::execution_context& context) : service(context) {}
    std::function<void()> at_shutdown;

private:
    void shutdown() override { at_shutdown(); }
};

// Windows destroys what is queued until no work is counted. What is left here is Asio's wait for the
// driver, if that is set.
PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P9_the_end_of_a_context_gives_back_what_was_counted) {
    for (const bool set : {true, false}) {
        bool over = false;
        std::optional<asio::io_context> context(std::in_place);
        auto& last = asio::use_service<last_service>(*context);
        pawl::steady_timer timer(*context, set ? 1h : 0h);
        outcome o;
        timer.async_wait(record(o));
        if (!set)
            run_to_end(*context);
        last.at_shutdown = [set, &over, &ends = *context] { // the optional is empty by then
            const auto executor = ends.get_executor();
            ends.restart();
            if (!set)
                executor.on_work_started();
            executor.on_work_finished();
            over = ends.stopped();
            if (set)
                executor.on_work_started();
        };

        context.reset();

        BOOST_CHECK(over);
    }
}

BOOST_AUTO_TEST_CASE(P10_a_context_and_its_thread_leave_no_memory_behind) {
    for (const auto delay : {0h, 1h}) {
        for (const bool timer_first : {true, false}) {
            const auto use = [&] {
                std::thread([&] { // what it has cached ends with it
                    std::optional<asio::io_context> context(std::in_place);
                    std::optional<pawl::steady_timer> timer(std::in_place, *context, delay);
                    outcome o;
                    timer->async_wait(record(o));
                    poll(*context);
                    if (timer_first)
                        timer.reset();
                    context.reset();
                })
                    .join();
            };
            use();
            const std::size_t before = counted_new::live;

            use();

            BOOST_CHECK_EQUAL(counted_new::live, before);
        }
    }
}

// ---- expire_all ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(expire_all)

BOOST_AUTO_TEST_CASE(P10_expire_all_ends_the_waits_of_every_clock_and_of_this_context_only) {
    asio::io_context context;
    asio::io_context other;
    pawl::steady_timer steady(context, 1h);
    pawl::system_timer system(context, 1h);
    manual_timer manual(context, 1h);
    pawl::steady_timer elsewhere(other, 1h);
    std::deque<outcome> o(5);
    steady.async_wait(record(o[0]));
    steady.async_wait(record(o[1]));
    system.async_wait(record(o[2]));
    manual.async_wait(record(o[3]));
    elsewhere.async_wait(record(o[4]));

    BOOST_CHECK_EQUAL(pawl::expire_all(context, asio::error::shut_down), 4u);

    BOOST_CHECK(o[0].pending()); // none is invoked within the call
    run_to_end(context);
    for (int i = 0; i < 4; ++i)
        BOOST_CHECK_EQUAL(o[static_cast<std::size_t>(i)].code, error_code(asio::error::shut_down));
    poll(other);
    BOOST_CHECK(o[4].pending());
}

BOOST_AUTO_TEST_CASE(P10_expire_all_completes_with_success_by_default) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);
    outcome o;
    timer.async_wait(record(o));
    const auto expiry = timer.expiry();

    BOOST_CHECK_EQUAL(pawl::expire_all(context), one);
    run_to_end(context);

    BOOST_CHECK(o.succeeded());
    BOOST_CHECK(timer.expiry() == expiry);
    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
}

BOOST_AUTO_TEST_CASE(P10_expire_all_passes_on_an_error_of_any_category) {
    for (const error_code& ec : {error_code(pawl::error::timed_out), error_code(asio::error::eof),
                                 error_code(asio::error::shut_down)}) {
        asio::io_context context;
        pawl::steady_timer timer(context, 1h);
        outcome o;
        timer.async_wait(record(o));

        BOOST_CHECK_EQUAL(pawl::expire_all(context, ec), one);
        run_to_end(context);

        BOOST_CHECK_EQUAL(o.calls, 1);
        BOOST_CHECK_EQUAL(o.code, ec);
    }
}

BOOST_AUTO_TEST_CASE(P10_handlers_start_new_waits_and_a_second_expire_all_ends_those) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> second(1000);
    for (outcome& o : second) {
        pawl::steady_timer& t = timers.emplace_back(context, 1h);
        t.async_wait([&t, &o](error_code) { t.async_wait(record(o)); });
    }

    BOOST_CHECK_EQUAL(pawl::expire_all(context), 1000u);
    BOOST_CHECK(busy(context));
    BOOST_CHECK(second[0].pending());
    BOOST_CHECK_EQUAL(pawl::expire_all(context), 1000u);
    run_to_end(context);

    for (const outcome& o : second)
        BOOST_CHECK(o.succeeded());
}

BOOST_AUTO_TEST_CASE(P10_a_context_without_timers_has_nothing_to_expire) {
    asio::io_context context;

    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
    pawl::steady_timer timer(context, 1h);
    BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
}

BOOST_AUTO_TEST_CASE(P10_a_million_waits_expire_at_once) {
    asio::io_context context;
    pawl::make_timer_service(context, per_turn(64));
    std::deque<pawl::steady_timer> timers;
    std::size_t completed = 0;
    for (std::size_t i = 0; i < million; ++i)
        timers.emplace_back(context, 1h + std::chrono::microseconds(i)).async_wait([&](error_code) {
            ++completed;
        });

    BOOST_CHECK_EQUAL(pawl::expire_all(context), million);
    run_to_end(context);

    BOOST_CHECK_EQUAL(completed, million);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the end of a context -----------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(end_of_context)

BOOST_AUTO_TEST_CASE(P10_C37_pending_and_queued_handlers_are_destroyed_uncalled) {
    auto alive = std::make_shared<int>();
    int calls = 0;
    {
        asio::io_context context;
        auto strand = asio::make_strand(context);
        std::deque<manual_timer> timers;
        for (int i = 0; i < 300; ++i) {
            manual_timer& t = timers.emplace_back(context, std::chrono::milliseconds(1 + i % 3));
            if (i % 2 == 0)
                t.async_wait([alive, &calls](error_code) { ++calls; });
            else
                t.async_wait(asio::bind_executor(strand, [alive, &calls](error_code) { ++calls; }));
        }
        manual_clock::advance(context, 1ms); // due and queued
        timers[100].cancel();
        timers[101].rearm_after(1h);
    }

    BOOST_CHECK_EQUAL(calls, 0);
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_every_handler_is_told_operation_aborted_here) {
    const auto me = std::this_thread::get_id();
    std::deque<outcome> outcomes(300);
    bool elsewhere = false;
    std::deque<manual_timer> timers; // outlive the context
    {
        asio::io_context context;
        pawl::options o;
        o.precision = 1ns;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service<manual_clock>(context, o);
        auto strand = asio::make_strand(context);
        for (std::size_t i = 0; i < 300; ++i) {
            manual_timer& t = timers.emplace_back(context, std::chrono::milliseconds(1 + i));
            auto handler = [&, i](error_code ec) {
                record(outcomes[i])(ec);
                elsewhere |= std::this_thread::get_id() != me;
                timers[i].async_wait([](error_code) { BOOST_ERROR("started after the end"); });
            };
            if (i % 2 == 0)
                t.async_wait(handler);
            else
                t.async_wait(asio::bind_executor(strand, handler));
        }
        timers[7].cancel();
    }

    for (const outcome& o : outcomes)
        BOOST_CHECK(o.aborted());
    BOOST_CHECK(!elsewhere);
}

// Regression: they were destroyed, because only the carrier in the queue of the strand knew them.
// Found by ./dev simulate threads.
BOOST_TEST_DECORATOR(*boost::unit_test::enable_if<pawl_test::threads && !pawl_test::io_uring>())
BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_handlers_that_a_strand_holds_are_invoked_too) {
    std::deque<outcome> outcomes(3);
    std::deque<manual_timer> timers; // outlive the context
    {
        asio::io_context context;
        pawl::options o;
        o.precision = 1ns;
        o.completions_per_turn = 3;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service<manual_clock>(context, o);
        auto strand = asio::make_strand(context);
        for (outcome& out : outcomes)
            timers.emplace_back(context, 1ms).async_wait(asio::bind_executor(strand, record(out)));
        asio::post(strand, [&] {
            std::jthread([&] { // it hands them over to a busy strand
                manual_clock::advance(context, 1ms);
                context.poll_one();
            });
            timers[1].cancel();
            timers[2].rearm_after(1h);
        });
        context.run_one();
    }

    BOOST_CHECK(outcomes[0].succeeded());
    BOOST_CHECK(outcomes[1].aborted());
    BOOST_CHECK(outcomes[2].aborted());
}

BOOST_AUTO_TEST_CASE(P10_C37_a_million_handlers_that_own_their_timers_end_without_recursion) {
    auto alive = std::make_shared<int>();
    with_small_stack([&] {
        auto context = std::make_unique<asio::io_context>();
        for (std::size_t i = 0; i < million; ++i) {
            auto t = std::make_shared<pawl::steady_timer>(*context, 1h + std::chrono::seconds(i));
            pawl::steady_timer& timer = *t;
            timer.async_wait([t = std::move(t), alive](error_code) {});
        }
        context.reset();
    });

    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

// Each handler owns the timer of the next: destroying the first must not destroy all of them
// recursively.
BOOST_AUTO_TEST_CASE(
    P10_C37_a_chain_of_handlers_that_own_each_others_timers_ends_without_recursion) {
    for (const bool forward : {true, false}) {
        auto alive = std::make_shared<int>();
        with_small_stack([&] {
            auto context = std::make_unique<asio::io_context>();
            auto next = std::make_shared<pawl::steady_timer>(*context, 1h);
            for (std::size_t i = 0; i < million / 4; ++i) {
                const auto d = std::chrono::milliseconds(forward ? i : million - i);
                auto t = std::make_shared<pawl::steady_timer>(*context, 1h + d);
                t->async_wait([next = std::move(next), alive](error_code) {});
                next = std::move(t);
            }
            next.reset();
            context.reset();
        });

        BOOST_CHECK_EQUAL(alive.use_count(), 1);
    }
}

namespace {
/// When it is destroyed, starts a wait with another of its kind.
struct phoenix {
    phoenix(manual_timer& t, std::size_t& l) : timer(&t), left(&l) {}
    phoenix(phoenix&& other) noexcept
        : timer(std::exchange(other.timer, nullptr)), left(other.left) {}
    ~phoenix() {
        if (timer && *left != 0) {
            --*left;
            timer->async_wait(phoenix(*timer, *left));
        }
    }
    void operator()(error_code) {}

    manual_timer* timer;
    std::size_t* left;
};
} // namespace

BOOST_AUTO_TEST_CASE(C38_waits_that_are_started_by_dying_handlers_are_destroyed_as_well) {
    std::size_t left = 100;
    std::optional<manual_timer> timer;
    {
        asio::io_context context;
        timer.emplace(context, 1h);
        timer->async_wait(phoenix(*timer, left));
    }

    BOOST_CHECK_EQUAL(left, 0u);
}

BOOST_AUTO_TEST_CASE(P10_a_wait_that_is_pulled_back_outlives_the_context_of_its_handler) {
    outcome o;
    std::optional<manual_timer> timer;
    {
        asio::io_context context;
        std::optional<asio::io_context> other(std::in_place);
        timer.emplace(context, 1ms);
        timer->async_wait(asio::bind_executor(*other, record(o)));
        manual_clock::advance(context, 1ms);
        context.poll(); // on its way to the handler
        BOOST_CHECK_EQUAL(timer->rearm_after(1h), 1u);
        other.reset();
        context.restart();
        context.poll();
        BOOST_CHECK(!context.stopped()); // it waits again
    }
    BOOST_CHECK(o.pending());
}

// However long the chain, the end of the context is a loop.
BOOST_AUTO_TEST_CASE(P10_C38_a_long_chain_of_waits_started_by_dying_handlers_does_not_recurse) {
    std::size_t left = 20'000;
    with_small_stack([&] {
        std::optional<manual_timer> timer;
        asio::io_context context;
        timer.emplace(context, 1h);
        timer->async_wait(phoenix(*timer, left));
    });

    BOOST_CHECK_EQUAL(left, 0u);
}

// The scheduler is destroyed last, and destroys its handlers after all services have been shut
// down. If such a handler makes objects, they are destroyed before the scheduler, which still holds
// the wait of its driver.
BOOST_AUTO_TEST_CASE(C38_a_service_that_a_dying_handler_makes_is_emptied_and_leaves_nothing) {
    std::optional<pawl::steady_timer> timer;
    auto alive = std::make_shared<int>();
    bool started = false;
    {
        asio::io_context context;
        const auto last_wish = [&](int*) {
            timer.emplace(context, 1h);
            timer->async_wait([alive](error_code) {});
            started = true;
        };
        static int anything;
        asio::post(context,
                   [wish = std::unique_ptr<int, decltype(last_wish)>(&anything, last_wish)] {});
    }

    BOOST_CHECK(started);
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    BOOST_CHECK_EQUAL(timer->cancel(), 0u);
}

/// Counts the context's work after all younger services have been shut down.
class work_counter : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;

    explicit work_counter(asio::execution_context& context)
        : asio::execution_context::service(context) {}

    int* result = nullptr;

private:
    void shutdown() override {
        auto& context = static_cast<asio::io_context&>(this->context());
        const auto ex = context.get_executor();
        context.restart();
        ex.on_work_started();
        int taken = 0;
        for (; !context.stopped(); ++taken) // the context stops when its count becomes zero
            ex.on_work_finished();
        for (int i = 1; i < taken; ++i)
            ex.on_work_started();
        *result = taken - 1;
    }
};

// On Windows the destructor of an io_context destroys queued operations until it counts no work.
// Regression: it hung if waits were due, because the shard was still counted, and could leave
// handlers behind, because the driver was not.
PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P10_a_service_that_is_shut_down_leaves_the_count_of_what_is_still_queued) {
    struct situation {
        const char* name;
        std::function<void(asio::io_context&, std::deque<pawl::steady_timer>&)> make;
        int queued; ///< operations that the context will destroy
    };
    const auto wait = [](asio::io_context& context, std::deque<pawl::steady_timer>& timers,
                         pawl::steady_timer::time_point at) {
        timers.emplace_back(context, at).async_wait([](error_code) {});
    };
    const auto now = pawl::steady_timer::clock_type::now();
    const std::array<situation, 4> situations{{
        {"no wait", [](auto& c, auto& timers) { timers.emplace_back(c); }, 0},
        {"a pending wait, and the driver", [&](auto& c, auto& t) { wait(c, t, now + 1h); }, 1},
        {"the driver of a shard that is quiet",
         [&](auto& c, auto& timers) {
             wait(c, timers, now + 1h);
             timers.front().cancel();
             poll(c);
         },
         1},
        {"two due waits, and a runner for each",
         [&](auto& c, auto& timers) {
             for (int i = 0; i < 2; ++i)
                 wait(c, timers, now);
             c.run_one(); // the driver
         },
         2},
    }};
    for (const situation& s : situations) {
        int counted = -1;
        std::deque<pawl::steady_timer> timers;
        {
            asio::io_context context;
            asio::use_service<work_counter>(context).result = &counted;
            s.make(context, timers);
        }
        BOOST_TEST_CONTEXT(s.name)
        BOOST_CHECK_EQUAL(counted, s.queued);
    }
}

BOOST_AUTO_TEST_CASE(timers_that_outlive_their_context_can_be_used_and_do_nothing) {
    std::optional<asio::io_context> context(std::in_place);
    pawl::steady_timer never_used(*context, 1h);
    pawl::steady_timer used(*context, 1h);
    pawl::steady_timer pending(*context, 1h);
    outcome o;
    auto alive = std::make_shared<int>();
    used.async_wait(record(o));
    used.cancel();
    poll(*context);
    pending.async_wait([alive](error_code) {});

    context.reset();

    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    BOOST_CHECK_EQUAL(pending.cancel(), none);
    BOOST_CHECK_EQUAL(pending.expires_after(2h), none);
    BOOST_CHECK_EQUAL(pending.rearm_after(2h), none);
    pawl::steady_timer moved(std::move(pending));
    BOOST_CHECK_EQUAL(moved.cancel(), none);
    used = std::move(moved);
    BOOST_CHECK_EQUAL(never_used.cancel(), none);
}

// The wait ends at once, and with it the timer and the last reference to the service.
BOOST_AUTO_TEST_CASE(a_wait_that_outlives_its_context_may_own_its_timer) {
    std::optional<asio::io_context> context(std::in_place);
    auto owner = std::make_unique<pawl::steady_timer>(*context, 1h);
    pawl::steady_timer& timer = *owner;
    outcome o;
    timer.async_wait(record(o));
    timer.cancel();
    poll(*context);
    context.reset();
    bool called = false;
    const auto alive = std::make_shared<int>();
    asio::cancellation_signal signal;

    timer.async_wait(asio::bind_cancellation_slot(
        signal.slot(), [&called, alive, owner = std::move(owner)](error_code) { called = true; }));

    BOOST_CHECK(o.aborted());
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
    signal.emit(asio::cancellation_type::all); // no wait listens
    BOOST_CHECK(!called);
}

// A handler that dies with its context starts waits of another timer, which has one already.
BOOST_AUTO_TEST_CASE(C38_a_wait_that_is_refused_during_shutdown_is_destroyed_before_its_end) {
    asio::cancellation_signal signal;
    const auto alive = std::make_shared<int>();
    std::optional<manual_timer> first, second;
    bool called = false;
    int refused = 0;
    const auto handler = [&called, alive](error_code) { called = true; };
    const auto last_wish = [&](int*) {
        for (; refused != 3; ++refused)
            second->async_wait(asio::bind_cancellation_slot(signal.slot(), handler));
        signal.emit(asio::cancellation_type::all); // no wait listens any more
        BOOST_CHECK_EQUAL(second->cancel(), none);
    };
    {
        asio::io_context context;
        first.emplace(context, 1h);
        second.emplace(context, 2h);
        static int anything;
        first->async_wait([wish = std::unique_ptr<int, decltype(last_wish)>(&anything, last_wish)](
                              error_code) {});
        second->async_wait(handler);
    }

    BOOST_CHECK_EQUAL(refused, 3);
    BOOST_CHECK_EQUAL(alive.use_count(), 2); // `handler` has one
    BOOST_CHECK(!called);
}

BOOST_AUTO_TEST_CASE(P8_whatever_outlives_its_context_last_leaves_nothing) {
    const auto run = [](bool timer_is_last) {
        std::optional<asio::io_context> context(std::in_place);
        std::optional<asio::cancellation_signal> signal(std::in_place);
        std::optional<pawl::steady_timer> timer(std::in_place, *context, 1h);
        timer->async_wait(asio::bind_cancellation_slot(signal->slot(), [](error_code) {}));
        context.reset();
        if (timer_is_last)
            signal.reset();
        else
            timer.reset();
    };
    for (const bool timer_is_last : {true, false}) {
        run(timer_is_last); // the thread keeps some blocks for the next run
        const std::size_t before = counted_new::live;
        run(timer_is_last);
        BOOST_CHECK_EQUAL(counted_new::live, before);
    }
}

BOOST_AUTO_TEST_CASE(C32_a_signal_may_be_emitted_after_the_context_is_gone) {
    std::optional<asio::io_context> context(std::in_place);
    asio::cancellation_signal signal;
    outcome o;
    pawl::steady_timer timer(*context, 1h);
    timer.async_wait(asio::bind_cancellation_slot(signal.slot(), record(o)));

    context.reset();
    signal.emit(asio::cancellation_type::all);

    BOOST_CHECK(o.pending());
}

BOOST_AUTO_TEST_SUITE_END()
