// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Cancellation slots in rare states of waits: a context that ends, a lack of memory, a full ring,
//   a timer that moves. Either the signal or the wait may be destroyed first.
//
// Model
//   Waits get their memory from a graveyard, which detects writes to destroyed waits.

#define BOOST_TEST_MODULE slots
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "service_support.hpp"
#include "shard_bench.hpp"

#include "../support/graveyard.hpp"

#include <pawl/ring_timer.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <new>
#include <optional>
#include <utility>

namespace {

using namespace service_test;
using asio::cancellation_signal;
using asio::cancellation_type;
using pawl::manual_clock;
using pawl::manual_timer;

/// The slot of `signal` and the memory of `yard`, bound to a handler.
template <class Handler>
auto bound(cancellation_signal& signal, graveyard& yard, Handler handler) {
    return asio::bind_cancellation_slot(
        signal.slot(), asio::bind_allocator(graveyard_allocator<void>(yard), std::move(handler)));
}

/// The signal is emitted, and then taken from the destroyed wait.
void expect_nothing_of(cancellation_signal& signal, const graveyard& yard) {
    BOOST_REQUIRE_EQUAL(yard.buried(), yard.allocations()); // the wait has been destroyed
    signal.emit(cancellation_type::all);
    BOOST_CHECK(yard.undisturbed());
    signal.slot().clear();
    BOOST_CHECK(yard.undisturbed());
}

/// Starts another wait when it is destroyed uncalled.
class dying_handler {
public:
    explicit dying_handler(std::function<void()> last_words) : last_words_(std::move(last_words)) {}
    dying_handler(dying_handler&& other) noexcept
        : last_words_(std::exchange(other.last_words_, nullptr)) {}
    dying_handler& operator=(dying_handler&&) = delete;
    ~dying_handler() {
        if (last_words_)
            last_words_();
    }
    void operator()(error_code) { last_words_ = nullptr; }

private:
    std::function<void()> last_words_;
};

} // namespace

BOOST_AUTO_TEST_CASE(C38_a_signal_outlives_a_wait_that_a_dying_handler_has_started) {
    graveyard yard;
    cancellation_signal signal;
    std::optional<manual_timer> first;
    std::optional<manual_timer> last;
    outcome o;
    {
        asio::io_context context;
        first.emplace(context, 1h);
        last.emplace(context, 1h);
        first->async_wait(dying_handler([&] { last->async_wait(bound(signal, yard, record(o))); }));
    }

    BOOST_CHECK_EQUAL(yard.allocations(), one);
    expect_nothing_of(signal, yard);
    BOOST_CHECK(o.pending());
}

BOOST_AUTO_TEST_CASE(
    C32_a_signal_outlives_the_context_of_waits_that_are_pending_due_and_cancelled) {
    std::array<graveyard, 3> yards;
    std::array<cancellation_signal, 3> signals;
    std::array<outcome, 3> o;
    {
        asio::io_context context;
        std::deque<manual_timer> timers;
        for (const auto delay : {2h, 1h, 3h})
            timers.emplace_back(context, delay);
        for (std::size_t i = 0; i < 3; ++i)
            timers[i].async_wait(bound(signals[i], yards[i], record(o[i])));
        timers[2].cancel();
        manual_clock::advance(context, 1h);
    }

    for (std::size_t i = 0; i < 3; ++i) {
        expect_nothing_of(signals[i], yards[i]);
        BOOST_CHECK(o[i].pending());
    }
}

BOOST_AUTO_TEST_CASE(C32_a_signal_outlives_a_wait_that_has_completed) {
    graveyard yard;
    cancellation_signal signal;
    asio::io_context context;
    manual_timer timer(context, 1s);
    outcome o;
    timer.async_wait(bound(signal, yard, record(o)));

    manual_clock::advance(context, 1s);
    poll(context);

    BOOST_CHECK(o.succeeded());
    expect_nothing_of(signal, yard);
}

// The driver's memory for the first wait, or the due queue's for the 513th, is missing.
BOOST_DATA_TEST_CASE(C26_a_signal_outlives_a_wait_that_was_not_started_for_lack_of_memory,
                     boost::unit_test::data::make({0, 512}), others) {
    int failures = 0;
    for (long n = 0;; ++n) {
        BOOST_REQUIRE_LT(n, 100);
        graveyard yard;
        cancellation_signal signal;
        asio::io_context context;
        manual_timer crowd(context, 1h);
        manual_timer timer(context, 1h);
        for (int i = 0; i < others; ++i)
            crowd.async_wait([](error_code) {});
        outcome o;
        bool started = true;

        counted_new::fuse = n;
        try {
            timer.async_wait(bound(signal, yard, record(o)));
        } catch (const std::bad_alloc&) {
            started = false;
        }
        counted_new::fuse = counted_new::never;
        if (!started) {
            ++failures;
            expect_nothing_of(signal, yard);
            continue;
        }
        signal.emit(cancellation_type::all);
        poll(context);
        BOOST_CHECK(o.aborted());
        break;
    }
    BOOST_CHECK_GT(failures, 0);
}

BOOST_AUTO_TEST_CASE(a_signal_outlives_a_wait_that_a_full_ring_has_refused) {
    using timer = pawl::basic_waitable_timer<
        manual_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<manual_clock>>>;
    for (const auto policy : {pawl::ring_overflow::reject, pawl::ring_overflow::expire_now}) {
        graveyard yard;
        cancellation_signal signal;
        asio::io_context context;
        pawl::options options;
        options.rings.delays = {{.delay = 8s, .capacity = 1}};
        options.rings.when_full = policy;
        pawl::make_timer_service<timer>(context, options);
        timer first(context, 8s);
        timer second(context, 8s);
        outcome a;
        outcome b;
        first.async_wait(record(a));

        second.async_wait(bound(signal, yard, record(b)));
        poll(context);

        BOOST_CHECK(a.pending());
        BOOST_CHECK_EQUAL(b.calls, 1);
        expect_nothing_of(signal, yard);
    }
}

namespace {

/// A slot whose handler is destroyed in place: later writes to it show.
class own_slot {
public:
    struct place {
        alignas(std::max_align_t) std::array<std::byte, 64> memory{};
        void (*destroy)(void*) = nullptr;
    };

    explicit own_slot(place& p) noexcept : place_(&p) {}

    template <class Handler, class... Args>
    Handler& emplace(Args&&... args) {
        static_assert(sizeof(Handler) <= sizeof(place::memory));
        auto* const h = ::new (place_->memory.data()) Handler(std::forward<Args>(args)...);
        place_->destroy = [](void* p) { static_cast<Handler*>(p)->~Handler(); };
        return *h;
    }
    bool is_connected() const noexcept { return true; }

private:
    place* place_;
};

} // namespace

BOOST_AUTO_TEST_CASE(C32_a_wait_goes_on_when_the_handler_in_its_slot_is_gone) {
    enum class end { expiry, cancel, expire_all, context };
    for (const end how : {end::expiry, end::cancel, end::expire_all, end::context}) {
        own_slot::place place;
        outcome o;
        std::array<std::byte, 64> left{};
        {
            asio::io_context context;
            manual_timer timer(context, 1s);
            timer.async_wait(asio::bind_cancellation_slot(own_slot(place), record(o)));
            BOOST_REQUIRE(place.destroy);
            place.destroy(place.memory.data());
            left = place.memory;

            if (how == end::expiry)
                manual_clock::advance(context, 1s);
            else if (how == end::cancel)
                BOOST_CHECK_EQUAL(timer.cancel(), one);
            else if (how == end::expire_all)
                BOOST_CHECK_EQUAL(pawl::expire_all(context), one);
            if (how != end::context)
                poll(context);
        }
        BOOST_CHECK_EQUAL(o.calls, how == end::context ? 0 : 1);
        BOOST_CHECK(place.memory == left);
    }
}

// ---- memory -----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(
    P8_a_wait_with_a_slot_makes_one_allocation_and_it_is_through_its_own_allocator) {
    graveyard yard;
    cancellation_signal signal;
    asio::io_context context;
    manual_timer timer(context, 1s);
    outcome first;
    timer.async_wait(
        bound(signal, yard, record(first))); // from then on the signal keeps its memory
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_REQUIRE_EQUAL(yard.allocations(), one);
    const std::size_t before = counted_new::calls;

    for (const bool emitted : {false, true}) {
        outcome o;
        timer.expires_after(1s);
        timer.async_wait(bound(signal, yard, record(o)));
        if (emitted)
            signal.emit(cancellation_type::all);
        else
            manual_clock::advance(context, 1s);
        poll(context);
        BOOST_CHECK_EQUAL(o.calls, 1);
    }

    BOOST_CHECK_EQUAL(yard.allocations(), 3U);
    BOOST_CHECK_EQUAL(counted_new::calls - before, none);
}

// ---- timers that move -------------------------------------------------------------------------------

namespace {

/// The action of a slot when its signal is emitted.
void emit(pawl::detail::slot_link& link) { link(cancellation_type::terminal); }

} // namespace

// A due wait is in the due queue as well, but still belongs to its timer.
BOOST_AUTO_TEST_CASE(a_wait_belongs_to_the_timer_that_took_over_whatever_its_state) {
    using namespace shard_bench;
    for (const bool due : {false, true}) {
        for (const std::size_t waits : {1U, 3U}) {
            bench<pawl::time::hierarchical_wheel> b;
            std::deque<test_wait> w(waits);
            std::deque<slot_link> links;
            timer_core from;
            timer_core to;
            for (test_wait& each : w) {
                links.emplace_back(b.arbiter(), each);
                b.start(from, each, 10);
            }
            if (due)
                b.collect(10);

            b.move(from, to);

            BOOST_CHECK(from.newest() == nullptr);
            for (const test_wait& each : w)
                BOOST_REQUIRE(each.owner() == &to); // the next cancel of it goes there
            emit(links.front());
            BOOST_CHECK_EQUAL(b.cancel(to), waits - 1);
            b.run_all();
            for (const test_wait& each : w)
                BOOST_CHECK(each.completed == 1 && each.told == shard_bench::aborted);
            b.release(to);
        }
    }
}

BOOST_AUTO_TEST_CASE(C31_a_signal_cancels_a_due_wait_whose_timer_has_moved) {
    graveyard yard;
    cancellation_signal signal;
    asio::io_context context;
    manual_timer from(context, 1s);
    std::array<outcome, 2> o;
    from.async_wait(bound(signal, yard, record(o[0])));
    from.async_wait(record(o[1]));
    manual_clock::advance(context, 1s);

    manual_timer to(std::move(from));
    signal.emit(cancellation_type::terminal);
    BOOST_CHECK_EQUAL(to.rearm_after(1s), one);
    poll(context);
    BOOST_CHECK(o[0].aborted());
    BOOST_CHECK(o[1].pending());
    manual_clock::advance(context, 1s);
    poll(context);

    BOOST_CHECK(o[1].succeeded());
    expect_nothing_of(signal, yard);
}
