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
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <pthread.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

BOOST_AUTO_TEST_CASE(P10_expire_all_passes_on_success_or_an_error_of_any_category) {
    for (const error_code& ec :
         {error_code(), error_code(pawl::error::timed_out), error_code(asio::error::eof),
          error_code(asio::error::shut_down)}) {
        asio::io_context context;
        pawl::steady_timer timer(context, 1h);
        outcome o;
        timer.async_wait(record(o));
        const auto expiry = timer.expiry();

        BOOST_CHECK_EQUAL(ec ? pawl::expire_all(context, ec) : pawl::expire_all(context), one);
        run_to_end(context);

        BOOST_CHECK_EQUAL(o.calls, 1);
        BOOST_CHECK_EQUAL(o.code, ec);
        BOOST_CHECK(timer.expiry() == expiry);
        BOOST_CHECK_EQUAL(pawl::expire_all(context), none);
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

BOOST_AUTO_TEST_SUITE_END()

// ---- the order of destruction -------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(orders)

namespace {

using asio::ip::tcp;
using duration = std::chrono::nanoseconds;

/// The handler of every operation below: it is called once at most, and destroyed.
class witness {
public:
    struct record {
        std::function<void()> act; ///< of the first call, or nothing
        int calls = 0;
    };
    explicit witness(std::shared_ptr<record> r) : record_(std::move(r)) {}
    void operator()(auto&&...) const {
        ++record_->calls;
        if (const auto act = std::exchange(record_->act, nullptr))
            act();
    }

private:
    std::shared_ptr<record> record_;
};

/// An object with operations that are over in `d`. `host` is called beside run().
struct resident {
    std::shared_ptr<void> object;
    std::function<void()> host = [] {};
};
struct kind {
    const char* name;
    bool outlives; ///< whether it may outlive the context
    std::function<resident(asio::io_context&, witness, duration d)> make;
};

resident a_group(asio::io_context& context, const witness& w, duration d, bool nested) {
    struct members {
        members(asio::io_context& c, duration after) : outer(c), inner(outer), timer(c, after) {}
        pawl::group outer, inner;
        pawl::steady_timer timer;
    };
    const auto m = std::make_shared<members>(context, d);
    pawl::group& g = nested ? m->inner : m->outer;
    m->timer.async_wait(pawl::in_group(g, w));
    m->outer.async_drained([](error_code) {});
    return {m};
}

resident a_queue(std::shared_ptr<pawl::event_queue> queue, const witness& w, duration d) {
    (void)queue->once(d, w);
    (void)queue->every(1h, [] {});
    queue->async_wait([](error_code) {});
    return {queue, [q = queue.get(), life = std::weak_ptr<void>(queue)] {
                if (!life.expired())
                    q->process_events();
            }};
}

const kind kinds[] = {
    {"timer", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<pawl::steady_timer>(c, d);
         t->async_wait(w);
         return {t};
     }},
    {"interval", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<pawl::interval_timer>(
             c, pawl::steady_timer::clock_type::now() + d, 1h);
         t->async_wait(w);
         return {t};
     }},
    {"alarm", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto a = std::make_shared<pawl::alarm<witness>>(c, w);
         a->arm_after(d);
         return {a};
     }},
    {"scaled alarm", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto a = std::make_shared<pawl::scaled_alarm<witness>>(c, w);
         a->arm_within(d, d);
         return {a};
     }},
    {"limit", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<pawl::steady_timer>(c, 2h);
         t->async_wait(pawl::timeout(d, w));
         return {t};
     }},
    {"limit on a timer", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<std::array<pawl::steady_timer, 2>>(
             std::array{pawl::steady_timer(c, 2h), pawl::steady_timer(c)});
         (*t)[0].async_wait(pawl::timeout((*t)[1], d)(w));
         return {t};
     }},
    {"scaled limit", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<pawl::steady_timer>(c, 2h);
         t->async_wait(pawl::timeout(pawl::scaled(d, d), w));
         return {t};
     }},
    {"group", true, [](auto& c, auto w, duration d) { return a_group(c, w, d, false); }},
    {"inner group", true, [](auto& c, auto w, duration d) { return a_group(c, w, d, true); }},
    {"queue", true,
     [](auto& c, auto w, duration d) {
         return a_queue(std::make_shared<pawl::event_queue>(c), w, d);
     }},
    {"queue with its own timers", true,
     [](auto&, auto w, duration d) {
         return a_queue(std::make_shared<pawl::event_queue>(), w, d);
     }},
    {"feed", true,
     [](auto& c, auto w, duration d) -> resident {
         struct reading {
             reading(asio::io_context& context)
                 : feed(context, {.capacity = 64, .readers = 4}), reader(feed.join()),
                   timer(context) {}
             pawl::event_feed feed;
             pawl::event_feed::reader reader;
             pawl::steady_timer timer;
         };
         const auto events = std::make_shared<std::array<pawl::timer_event, 8>>();
         const auto r = std::make_shared<reading>(c);
         r->timer.expires_after(d);
         if (d < 1h)
             r->timer.async_wait([](error_code) {}); // the event
         r->reader.async_read(*events, [events, w](auto&&...) { w(); });
         return {r};
     }},
    {"stream", false,
     [](auto& c, auto w, duration d) -> resident {
         struct connection {
             connection(asio::io_context& context) : peer(context), stream(context) {
                 tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
                 peer.connect(acceptor.local_endpoint());
                 acceptor.accept(stream.socket());
             }
             tcp::socket peer;
             pawl::tcp_stream stream;
         };
         static std::array<char, 8> bytes;
         const auto s = std::make_shared<connection>(c);
         s->stream.set_limits({.idle = 1h, .read = d});
         s->stream.async_read_some(asio::buffer(bytes), w);
         return {s};
     }},
    {"rate limiter", false,
     [](auto& c, auto w, duration d) -> resident {
         const auto r = std::make_shared<pawl::rate_limiter>(
             c, pawl::rate_limit{.tokens = 1, .period = d, .burst = 1});
         (void)r->try_acquire();
         r->async_acquire(w);
         return {r};
     }},
    {"delay queue", false,
     [](auto& c, auto w, duration d) -> resident {
         const auto q = std::make_shared<pawl::delay_queue<int>>(c);
         q->push(1, d);
         q->async_pop(w);
         return {q};
     }},
    {"debounce", false,
     [](auto& c, auto w, duration d) -> resident {
         const auto f = std::make_shared<pawl::debounce<witness>>(c, d, w);
         (*f)();
         return {f};
     }},
    {"heartbeat", false,
     [](auto& c, auto w, duration d) -> resident {
         auto silent = [] {};
         return {std::make_shared<pawl::heartbeat<decltype(silent), witness>>(
             c, pawl::heartbeat_options{.interval = d, .misses = 1}, silent, w)};
     }},
    {"retry", true,
     [](auto& c, auto w, duration d) -> resident {
         const auto t = std::make_shared<pawl::steady_timer>(c, d);
         pawl::retry_policy once;
         once.max_attempts = 1;
         pawl::retry(
             c, once, [t = t.get()](auto) { return t->async_wait(asio::deferred); }, w);
         return {t};
     }},
};
/// A context with residents, which go in a given order. The last place is that of the context.
struct house {
    explicit house(const std::vector<const kind*>& all, duration d) {
        for (const kind* k : all) {
            records.push_back(std::make_shared<witness::record>());
            residents.push_back(k->make(*context, witness(records.back()), d));
        }
        context->poll();
    }
    void end(std::size_t which) {
        if (which == residents.size())
            context.reset();
        else
            residents[which].object.reset();
    }
    void check() const {
        for (const auto& r : records) {
            BOOST_TEST(r->calls <= 1);
            BOOST_TEST(r.use_count() == 1);
        }
    }

    std::vector<std::shared_ptr<witness::record>> records;
    std::optional<asio::io_context> context{std::in_place};
    std::vector<resident> residents;
};

/// Calls `f(order)` for each order in which `all` and the context may be destroyed.
template <class F>
void each_order(const std::vector<const kind*>& all, F f) {
    std::vector<std::size_t> order(all.size() + 1);
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
        const auto context = std::find(order.begin(), order.end(), all.size());
        if (std::all_of(context, order.end(),
                        [&](std::size_t i) { return i == all.size() || all[i]->outlives; }))
            f(order);
    } while (std::next_permutation(order.begin(), order.end()));
}

/// All of them go in each order; between them the context runs, or not.
void go_in_each_order(const std::vector<const kind*>& all) {
    each_order(all, [&](const std::vector<std::size_t>& order) {
        for (const bool runs : {false, true}) {
            house h(all, 1h);
            for (const std::size_t each : order) {
                h.end(each);
                if (runs && h.context)
                    poll(*h.context);
            }
            h.check();
        }
    });
}

} // namespace

BOOST_AUTO_TEST_CASE(each_two_objects_and_their_context_go_in_any_order_that_is_allowed) {
    for (const kind& first : kinds)
        for (const kind& second : kinds)
            BOOST_TEST_CONTEXT(first.name << " and " << second.name)
    go_in_each_order({&first, &second});
}

BOOST_AUTO_TEST_CASE(one_object_of_each_layer_and_their_context_go_in_any_order) {
    std::vector<const kind*> all;
    for (const char* name : {"timer", "alarm", "limit", "inner group", "queue", "feed"})
        all.push_back(std::find_if(std::begin(kinds), std::end(kinds), [&](const kind& k) {
            return std::string_view(k.name) == name;
        }));

    go_in_each_order(all);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P10_an_object_of_each_kind_ends_with_its_thread) {
    for (const kind& k : kinds) {
        for (const bool context_first : {false, true}) {
            if (context_first && !k.outlives)
                continue;
            BOOST_TEST_CONTEXT(k.name) {
                std::shared_ptr<witness::record> record;
                std::thread([&] {
                    static thread_local std::optional<house>
                        last; // after what Pawl keeps in a thread
                    last.emplace(std::vector{&k}, 1h);
                    record = last->records.front();
                    if (context_first)
                        last->context.reset();
                }).join();
                BOOST_TEST(record->calls <= 1);
                BOOST_TEST(record.use_count() == 1);
            }
        }
    }
}

#if !defined(_WIN32)
namespace {

/// Goes after all function-local statics. The process then fails if a handler is left.
struct last_to_go {
    std::optional<house> all;

    ~last_to_go() {
        if (!all)
            return;
        const auto records = all->records;
        all.reset();
        for (const auto& r : records)
            if (r->calls > 1 || r.use_count() != 1)
                ::_exit(1);
    }
} at_the_end_of_the_program;

} // namespace

BOOST_AUTO_TEST_CASE(P10_objects_of_all_kinds_end_with_the_program) {
    for (const bool context_first : {false, true}) {
        const pid_t child = ::fork();
        BOOST_REQUIRE_GE(child, 0);
        if (child == 0) {
            ::alarm(20);
            std::vector<const kind*> some;
            for (const kind& k : kinds)
                if (k.outlives || !context_first)
                    some.push_back(&k);
            house& h = at_the_end_of_the_program.all.emplace(some, 1h);
            if (context_first)
                h.context.reset();
            std::exit(0);
        }
        int status = -1;
        BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);
        BOOST_TEST(status == 0);
    }
}
#endif

// The handler of each kind destroys its own object and that of each kind, in both orders; then the
// context has nothing left to do.
BOOST_AUTO_TEST_CASE(P9_a_handler_of_each_kind_destroys_its_object_and_one_of_each_kind) {
    for (const kind& mine : kinds) {
        for (const kind& its : kinds) {
            for (const bool mine_first : {true, false}) {
                BOOST_TEST_CONTEXT(mine.name << " and " << its.name) {
                    house h({&its}, 1h);
                    const auto record = h.records.emplace_back(std::make_shared<witness::record>());
                    resident trigger;
                    record->act = [&] {
                        if (mine_first)
                            trigger.object.reset();
                        h.end(0);
                        trigger.object.reset();
                    };
                    trigger = mine.make(*h.context, witness(record), 1us);
                    const auto late = std::chrono::steady_clock::now() + patience;
                    while (record->calls == 0) {
                        h.context->restart();
                        h.context->run_one_for(100us);
                        trigger.host();
                        BOOST_REQUIRE(std::chrono::steady_clock::now() < late);
                    }
                    run_to_end(*h.context);
                    h.context.reset();
                    BOOST_TEST(record->calls == 1);
                    BOOST_TEST(record.use_count() == 2);
                    h.records.pop_back();
                    h.check();
                }
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
