// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A sleeping reader gets the next event, of any kind and from any place; and a read ends in every
// way that its docstring names.

#define BOOST_TEST_MODULE async_read
#include <boost/test/unit_test.hpp>

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"
#include "../support/meeting.hpp"
#include "../support/system_timer.hpp"
#include "watch_support.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace watch_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::test_tools::per_element;
using namespace std::chrono_literals;
using pawl::event_feed;

constexpr auto ignore = [](error_code) {};
constexpr auto patience = 20s;

/// A read, and its outcome.
struct a_read {
    auto handler() {
        return [this](error_code ec, pawl::read_result got) {
            ++calls;
            error = ec;
            result = got;
        };
    }
    void start(event_feed::reader& reader) { reader.async_read(events, handler()); }

    [[nodiscard]] bool pending() const { return calls == 0; }
    [[nodiscard]] bool aborted() const {
        return calls == 1 && error == asio::error::operation_aborted && result.count == 0;
    }
    [[nodiscard]] watch_test::kinds kinds() const {
        watch_test::kinds list;
        for (std::size_t i = 0; i != result.count; ++i)
            list.push_back(events[i].kind);
        return list;
    }

    std::array<pawl::timer_event, 16> events;
    int calls = 0;
    error_code error;
    pawl::read_result result;
};

/// A context with a reader in it.
struct watched {
    watched() : feed(context), reader(feed.join()) {}

    asio::io_context context;
    event_feed feed;
    event_feed::reader reader;
};

/// A reader that sleeps in a context and a thread of its own, and gets one event.
class sleeper {
public:
    explicit sleeper(event_feed& feed, pawl::event_kinds which = pawl::event_kinds::all())
        : reader_(feed.join(context_.get_executor(), which)) {
        read_.start(reader_);
        context_.poll();
        BOOST_REQUIRE(read_.pending());
    }

    /// The events that it has got, which must come.
    watch_test::kinds told() {
        context_.restart();
        context_.run_for(patience);
        BOOST_REQUIRE_MESSAGE(!read_.pending(), "a wake-up is lost");
        BOOST_TEST(!read_.error);
        return read_.kinds();
    }

private:
    asio::io_context context_;
    event_feed::reader reader_;
    a_read read_;
};

/// Calls a function when it allocates.
template <class T>
struct calling_allocator {
    using value_type = T;

    explicit calling_allocator(const std::function<void()>& f) noexcept : call(&f) {}
    template <class U>
    calling_allocator(const calling_allocator<U>& other) noexcept : call(other.call) {}

    T* allocate(std::size_t n) {
        (*call)();
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n) noexcept {
        std::allocator<T>().deallocate(memory, n);
    }
    template <class U>
    bool operator==(const calling_allocator<U>& other) const noexcept {
        return call == other.call;
    }

    const std::function<void()>* call;
};

// ---- a read completes ---------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_read_of_what_is_there_completes_but_not_within_the_call) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    a_read read;
    read.start(w.reader);
    BOOST_TEST(read.pending());
    w.context.poll();
    BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
    BOOST_TEST((read.result.status == pawl::read_status::messages));
}

BOOST_AUTO_TEST_CASE(a_read_is_told_of_an_alarm_that_is_armed) {
    watched w;
    pawl::alarm alarm(w.context.get_executor(), [] {});
    a_read read;
    read.start(w.reader);
    w.context.poll();
    BOOST_TEST(read.pending());
    alarm.arm_after(1h);
    w.context.restart();
    w.context.poll();
    BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(an_event_after_a_look_and_before_the_wait_is_not_lost) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    bool happened = false;
    const std::function<void()> once = [&] { // the wait of the read takes its memory
        if (!std::exchange(happened, true))
            timer.async_wait(ignore);
    };
    a_read read;
    w.reader.async_read(read.events,
                        asio::bind_allocator(calling_allocator<char>(once), read.handler()));
    BOOST_TEST(happened);
    w.context.poll();
    BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_after_a_look_and_before_the_wait_is_told) {
    asio::io_context mine;
    std::optional<asio::io_context> context(std::in_place);
    auto reader = event_feed(*context).join(mine.get_executor());
    const std::function<void()> end = [&] { context.reset(); };
    a_read read;
    reader.async_read(read.events,
                      asio::bind_allocator(calling_allocator<char>(end), read.handler()));
    BOOST_TEST(!context);
    mine.poll();
    BOOST_TEST(read.calls == 1);
    BOOST_TEST(read.error == asio::error::eof);
}

BOOST_AUTO_TEST_CASE(a_wait_that_ends_before_it_is_listed_is_not_listed) {
    asio::io_context context;
    pawl::detail::event_hub hub;
    hub.make_ring(64, 2);
    pawl::detail::feed_sleeper sleeper(context.get_executor());
    const auto number = hub.begin_sleep(sleeper);
    BOOST_TEST(!hub.end_sleep(sleeper, number)); // in another thread, which was faster
    hub.sleep(sleeper, number, 0);
    BOOST_TEST(!hub.sleeping());
}

BOOST_AUTO_TEST_CASE(a_wait_that_ends_is_not_listed_any_more) {
    asio::io_context context;
    pawl::detail::event_hub hub;
    hub.make_ring(64, 4);
    std::array<pawl::detail::feed_sleeper, 3> sleepers{
        pawl::detail::feed_sleeper(context.get_executor()),
        pawl::detail::feed_sleeper(context.get_executor()),
        pawl::detail::feed_sleeper(context.get_executor())};
    std::array<std::uint64_t, 3> numbers{};
    const auto sleep = [&] {
        for (std::size_t i = 0; i != 3; ++i) {
            numbers[i] = hub.begin_sleep(sleepers[i]);
            hub.sleep(sleepers[i], numbers[i], 0);
        }
        BOOST_TEST(hub.sleeping());
    };
    for (const auto& order : {std::array{0, 1, 2}, std::array{1, 2, 0}, std::array{2, 1, 0}}) {
        sleep();
        for (std::size_t k = 0; k != 3; ++k) {
            const auto i = static_cast<std::size_t>(order[k]);
            if (k % 2 == 0)
                BOOST_TEST(!hub.end_sleep(sleepers[i], numbers[i]));
            else
                hub.end_sleep(sleepers[i]);
            BOOST_TEST(hub.sleeping() == (k != 2));
            BOOST_TEST(!hub.end_sleep(sleepers[i], numbers[i])); // it is over
        }
    }
    sleep();
    hub.wake_all();
    BOOST_TEST(!hub.sleeping());
    for (std::size_t i = 0; i != 3; ++i)
        BOOST_TEST(hub.end_sleep(sleepers[i], numbers[i]));
    sleep();
    for (std::size_t i = 0; i != 3; ++i)
        BOOST_TEST(hub.begin_sleep(sleepers[i]) == numbers[i] + 1); // the earlier one is forgotten
    BOOST_TEST(!hub.sleeping());
}

BOOST_AUTO_TEST_CASE(a_read_that_is_cancelled_leaves_another_asleep_that_is_told) {
    watched w;
    auto second = w.feed.join();
    a_read cancelled, told;
    asio::cancellation_signal signal;
    told.start(second);
    w.reader.async_read(cancelled.events,
                        asio::bind_cancellation_slot(signal.slot(), cancelled.handler()));
    w.context.poll();
    signal.emit(asio::cancellation_type::terminal);
    w.context.poll();
    BOOST_TEST(cancelled.aborted());
    BOOST_TEST(told.pending());
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(told.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_that_is_cancelled_does_not_remember_that_an_earlier_one_was_woken) {
    watched w;
    a_read woken;
    woken.start(w.reader);
    w.context.poll();
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(woken.kinds() == (kinds{kind::armed}), per_element());

    a_read cancelled;
    asio::cancellation_signal signal;
    w.reader.async_read(cancelled.events,
                        asio::bind_cancellation_slot(signal.slot(), cancelled.handler()));
    w.context.poll();
    signal.emit(asio::cancellation_type::terminal);
    w.context.poll();
    BOOST_TEST(cancelled.aborted());
    timer.cancel();
    w.context.poll();
    (void)read_all(w.reader);
    a_read expired; // no event ends it
    expired.start(w.reader);
    w.context.restart();
    w.context.poll();
    BOOST_TEST(expired.pending());
    pawl::expire_all(w.context);
    w.context.poll();
    BOOST_TEST(expired.aborted());
}

BOOST_AUTO_TEST_CASE(a_reader_that_ends_makes_room_for_another_at_once) {
    asio::io_context context;
    event_feed feed(context, {.capacity = 64, .readers = 1});
    std::optional<event_feed::reader> reader(feed.join());
    a_read read;
    read.start(*reader);
    context.poll();
    reader.reset(); // while it sleeps
    BOOST_TEST(feed.readers() == 0U);
    reader.emplace(feed.join());
    BOOST_TEST(feed.readers() == 1U);
    context.poll();
    BOOST_TEST(read.aborted());
    reader->suspend();
    BOOST_TEST(feed.readers() == 0U);
    reader.reset(); // while it is suspended
    reader.emplace(feed.join());
    BOOST_TEST(feed.readers() == 1U);
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(read_all(*reader).kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_waits_for_the_next_event) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    BOOST_TEST(read.pending());
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_that_has_missed_events_says_so) {
    asio::io_context context;
    event_feed feed(context, {.capacity = 64, .readers = 2});
    auto reader = feed.join({kind::started});
    pawl::steady_timer timer(context, 1h);
    for (int i = 0; i != 300; ++i)
        timer.async_wait(ignore);
    a_read read;
    read.start(reader);
    context.poll();
    BOOST_TEST(!read.pending());
    BOOST_TEST(!read.error);
    BOOST_TEST(read.result.count == 0U);
    BOOST_TEST(read.result.missed > 0U);
}

BOOST_AUTO_TEST_CASE(a_read_with_a_filter_sleeps_on_until_something_passes_it) {
    asio::io_context context;
    event_feed feed(context);
    auto reader = feed.join({kind::moved});
    a_read read;
    read.start(reader);
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    context.poll();
    timer.cancel();
    context.poll();
    timer.async_wait(ignore);
    context.poll();
    BOOST_TEST(read.pending());
    timer.rearm_after(2h);
    context.poll();
    BOOST_TEST(read.kinds() == (kinds{kind::moved}), per_element());
}

BOOST_AUTO_TEST_CASE(a_coroutine_reads_event_after_event) {
    watched w;
    std::size_t count = 0;
    asio::co_spawn(
        w.context,
        [&]() -> asio::awaitable<void> {
            std::array<pawl::timer_event, 4> some;
            while (count < 300)
                count += (co_await w.reader.async_read(some, asio::use_awaitable)).count;
        },
        asio::detached);
    pawl::steady_timer timer(w.context);
    int left = 100;
    std::function<void(error_code)> next = [&](error_code) {
        if (--left != 0) {
            timer.expires_after(10us);
            timer.async_wait(next);
        }
    };
    timer.async_wait(next);
    w.context.run_for(patience);
    BOOST_TEST(count == 300U);
}

BOOST_AUTO_TEST_CASE(a_read_uses_executor_and_allocator_of_its_handler) {
    watched w;
    asio::io_context other;
    a_read read;
    bool here = false;
    w.reader.async_read(read.events, asio::bind_executor(other, [&](error_code, pawl::read_result) {
                            here = other.get_executor().running_in_this_thread();
                        }));
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(!here);
    other.run();
    BOOST_TEST(here);
}

// ---- a sleeping reader is woken: no wake-up is lost --------------------------------------------

/// A context that a thread runs, with no handlers to run.
struct at_work {
    explicit at_work(const pawl::options& o = {}) {
        pawl::make_timer_service(context, o);
        feed.emplace(context);
        runner = std::thread([this] { context.run(); });
    }
    ~at_work() {
        guard.reset();
        runner.join();
    }

    asio::io_context context;
    std::optional<event_feed> feed;
    asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
    std::thread runner;
};

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_a_start_that_is_due_in_an_hour) {
    at_work w;
    sleeper s(*w.feed);
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(s.told() == (kinds{kind::armed}), per_element());
    timer.cancel();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_a_cancel_from_a_thread) {
    at_work w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    sleeper s(*w.feed);
    timer.cancel();
    BOOST_TEST(s.told() == (kinds{kind::cancelled}), per_element());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_a_rearm_from_a_thread) {
    at_work w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    sleeper s(*w.feed);
    timer.rearm_after(2h);
    BOOST_TEST(s.told() == (kinds{kind::moved}), per_element());
    timer.cancel();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_expire_all_from_a_thread) {
    at_work w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    sleeper s(*w.feed);
    pawl::expire_all(w.context);
    BOOST_TEST(s.told() == (kinds{kind::cancelled}), per_element());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_an_expiry) {
    for (const unsigned per_turn : {1U, 64U}) {
        pawl::options o;
        o.completions_per_turn = per_turn;
        at_work w(o);
        sleeper s(*w.feed, {kind::started}); // first: it is to sleep when the wait expires
        pawl::steady_timer timer(w.context, 30ms);
        timer.async_wait(ignore);
        BOOST_TEST(s.told() == (kinds{kind::started}), per_element());
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_a_limit_that_is_withdrawn) {
    at_work w;
    asio::cancellation_signal stop;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(pawl::timeout(2h, ignore));
    sleeper s(*w.feed);
    timer.cancel();
    const auto told = s.told();
    BOOST_TEST(!told.empty());
    for (const kind k : told)
        BOOST_TEST(k == kind::cancelled);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_what_starts_in_a_strand) {
    at_work w;
    asio::io_context other;
    auto strand = asio::make_strand(other);
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(asio::bind_executor(strand, ignore));
    other.restart();
    std::this_thread::sleep_for(
        20ms); // usually its carrier has arrived; otherwise it is woken all the same
    sleeper s(*w.feed, {kind::started});
    other.run_one_for(patience);
    BOOST_TEST(s.told() == (kinds{kind::started}), per_element());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_what_happens_in_a_thread_pool) {
    asio::thread_pool pool(1);
    event_feed feed(pool);
    pawl::steady_timer timer(pool, 1h);
    sleeper s(feed);
    timer.async_wait(ignore);
    BOOST_TEST(s.told() == (kinds{kind::armed}), per_element());
    sleeper t(feed);
    timer.cancel();
    BOOST_TEST(t.told() == (kinds{kind::cancelled}), per_element());
    pool.join();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_what_happens_in_the_system_context) {
    asio::system_context& system = asio::query(asio::system_executor(), asio::execution::context);
    event_feed feed(system);
    pawl::steady_timer timer(asio::system_executor(), 1h);
    {
        sleeper s(feed);
        timer.async_wait(ignore);
        BOOST_TEST(s.told() == (kinds{kind::armed}), per_element());
    }
    sleeper t(feed);
    timer.cancel();
    BOOST_TEST(t.told() == (kinds{kind::cancelled}), per_element());
}

PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN
BOOST_AUTO_TEST_CASE(it_is_told_of_what_happens_in_a_context_of_unknown_type) {
    pawl_test::manual_context context;
    event_feed feed(context);
    using timer_type = pawl::basic_waitable_timer<std::chrono::steady_clock,
                                                  asio::wait_traits<std::chrono::steady_clock>,
                                                  pawl_test::manual_context::executor_type>;
    timer_type timer(context.get_executor(), 1h);
    for (const kind k : {kind::armed, kind::moved, kind::cancelled}) {
        sleeper s(feed);
        k == kind::armed   ? timer.async_wait(ignore)
        : k == kind::moved ? void(timer.rearm_after(2h))
                           : void(timer.cancel());
        BOOST_TEST(s.told() == (kinds{k}), per_element());
        context.poll();
    }
    context.poll();
}

PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN
BOOST_AUTO_TEST_CASE(it_sleeps_in_a_context_of_unknown_type) {
    at_work w;
    pawl_test::manual_context other;
    auto reader = w.feed->join(other.get_executor());
    a_read read;
    read.start(reader);
    other.poll();
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    while (read.pending() && other.run_one_for(patience)) {
    }
    BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
    timer.cancel();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_is_told_of_what_happens_in_every_shard) {
    for (const unsigned shards : {2U, 4U}) {
        pawl::options o;
        o.shards = shards;
        at_work w(o);
        for (unsigned i = 0; i != shards; ++i) {
            sleeper s(*w.feed);
            std::thread([&] {
                auto* const timer = new pawl::steady_timer(w.context, 1h);
                timer->async_wait([timer](error_code) { delete timer; });
            }).join();
            BOOST_TEST(s.told() == (kinds{kind::armed}), per_element());
        }
        pawl::expire_all(w.context);
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(all_sleepers_are_told) {
    at_work w;
    sleeper a(*w.feed), b(*w.feed), c(*w.feed);
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    for (sleeper* s : {&b, &a, &c})
        BOOST_TEST(s->told() == (kinds{kind::armed}), per_element());
    timer.cancel();
}

// The shard forgot that its next turn was to tell it, and queued such turns for ever.
BOOST_AUTO_TEST_CASE(it_is_told_although_a_timer_gets_a_name_or_a_reader_leaves_first) {
    for (const bool leaves : {false, true}) {
        watched w;
        std::optional other(w.feed.join());
        a_read read;
        read.start(w.reader);
        w.context.poll();
        pawl::steady_timer timer(w.context, 1h);
        timer.async_wait(ignore);
        if (leaves)
            other.reset();
        else
            pawl::set_name(timer, "a name");
        std::size_t units = 0;
        for (int i = 0; i != 100; ++i)
            units += w.context.poll_one();
        BOOST_TEST(units < 100U);
        BOOST_TEST(read.kinds() == (kinds{kind::armed}), per_element());
    }
}

// ---- other ends of a read -----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_read_is_cancelled_by_a_slot_of_any_type) {
    using asio::cancellation_type;
    for (const auto type :
         {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
        watched w;
        a_read read;
        asio::cancellation_signal signal;
        w.reader.async_read(read.events,
                            asio::bind_cancellation_slot(signal.slot(), read.handler()));
        w.context.poll();
        signal.emit(type);
        w.context.run_for(patience);
        BOOST_TEST(read.aborted());
    }
}

BOOST_AUTO_TEST_CASE(a_read_that_is_cancelled_after_it_was_woken_loses_no_event) {
    watched w;
    a_read read;
    asio::cancellation_signal signal;
    w.reader.async_read(read.events, asio::bind_cancellation_slot(signal.slot(), read.handler()));
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll_one(); // the turn that wakes it
    signal.emit(asio::cancellation_type::terminal);
    w.context.poll();
    if (read.aborted()) // otherwise it has read it
        BOOST_TEST(read_all(w.reader).kinds() == (kinds{kind::armed}), per_element());
    BOOST_TEST(read.calls == 1);
}

BOOST_AUTO_TEST_CASE(a_read_is_ended_by_the_end_of_its_reader) {
    watched w;
    a_read read;
    {
        auto reader = w.feed.join();
        read.start(reader);
        w.context.poll();
    }
    BOOST_TEST(w.feed.readers() == 1U);
    w.context.run_for(patience);
    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_read_is_ended_by_suspend_alone) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    w.reader.suspend();
    w.context.poll();
    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_read_that_is_cancelled_after_it_was_woken_for_nothing_does_not_sleep_again) {
    asio::io_context context;
    event_feed feed(context);
    auto reader = feed.join({kind::moved});
    a_read read;
    asio::cancellation_signal signal;
    reader.async_read(read.events, asio::bind_cancellation_slot(signal.slot(), read.handler()));
    context.poll();
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    context.poll_one(); // the turn that wakes it
    BOOST_TEST(read.pending());
    signal.emit(asio::cancellation_type::terminal);
    context.poll();
    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_reader_learns_what_it_missed_before_it_learns_of_the_end) {
    asio::io_context mine;
    std::optional<event_feed::reader> reader;
    {
        asio::io_context context;
        event_feed feed(context, {.capacity = 64, .readers = 1});
        reader.emplace(feed.join(mine.get_executor(), {kind::moved}));
        pawl::steady_timer timer(context, 1h);
        for (int i = 0; i != 300; ++i)
            timer.async_wait(ignore);
    }
    a_read first, second;
    first.start(*reader);
    mine.poll();
    BOOST_TEST(first.calls == 1);
    BOOST_TEST(!first.error);
    BOOST_TEST(first.result.count == 0U);
    BOOST_TEST(first.result.missed > 200U);
    second.start(*reader);
    mine.restart();
    mine.poll();
    BOOST_TEST(second.error == asio::error::eof);
    BOOST_TEST(second.result.missed == 0U);
}

BOOST_AUTO_TEST_CASE(a_read_is_ended_by_suspend) {
    watched w;
    a_read read, again;
    read.start(w.reader);
    w.context.poll();
    w.reader.suspend();
    w.reader.resume();
    again.start(w.reader); // before the first has got its result
    w.context.poll();
    BOOST_TEST(read.aborted());
    BOOST_TEST(again.pending());
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(again.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_is_ended_by_another_one) {
    watched w;
    a_read first, second;
    first.start(w.reader);
    second.start(w.reader);
    w.context.poll();
    BOOST_TEST(first.aborted());
    BOOST_TEST(second.pending());
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(second.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_that_is_not_yet_told_is_ended_by_another_one_that_finds_the_event) {
    watched w;
    a_read first, second;
    first.start(w.reader);
    w.context.poll();
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore); // wakes the first read at the next turn
    second.start(w.reader);
    w.context.poll();
    BOOST_TEST(first.aborted());
    BOOST_TEST(second.kinds() == (kinds{kind::armed}), per_element());
}

BOOST_AUTO_TEST_CASE(a_read_is_ended_by_expire_all) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    pawl::expire_all(w.context);
    w.context.run_for(patience);
    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_read_that_was_woken_is_ended_by_suspend) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll_one(); // the turn that wakes it
    w.reader.suspend();
    w.context.poll();
    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_read_of_a_suspended_reader_or_into_nothing_is_an_error) {
    watched w;
    a_read read, empty;
    w.reader.async_read({}, empty.handler());
    w.context.poll();
    BOOST_TEST((empty.error == asio::error::invalid_argument));
    w.reader.suspend();
    read.start(w.reader);
    w.context.restart();
    w.context.poll();
    BOOST_TEST(read.calls == 1);
    BOOST_TEST((read.error == asio::error::invalid_argument));
}

BOOST_AUTO_TEST_CASE(a_deferred_read_of_a_reader_that_has_gone_is_aborted) {
    watched w;
    a_read read;
    std::optional<event_feed::reader> reader(w.feed.join());
    auto later = reader->async_read(read.events, asio::deferred);
    reader.reset();
    std::move(later)(read.handler());
    BOOST_TEST(read.pending());
    w.context.run_for(patience);
    BOOST_TEST(read.aborted());
}

// It waited for itself: its end is an event, for which a unit has to be queued on the context that goes with it.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P10_a_handler_that_goes_with_its_executor_may_own_a_context_that_is_watched) {
    pawl_test::latch end(1);
    std::thread beside([&end] { end.wait(); }); // with a single thread nothing is awaited
    asio::io_context mine;
    std::optional<asio::io_context> other(std::in_place);
    auto context = std::make_shared<asio::io_context>();
    const std::weak_ptr<asio::io_context> there = context;
    pawl::steady_timer timer(*context, 0s);
    timer.async_wait(asio::bind_executor(*other, [context](error_code) {}));
    context->run(); // hands the wait over
    event_feed::reader reader = event_feed(*context).join(mine.get_executor());
    a_read read;
    read.start(reader);
    mine.poll();
    BOOST_TEST(read.pending());
    context.reset();
    BOOST_TEST(!there.expired());

    other.reset();

    BOOST_TEST(there.expired());
    mine.run_for(patience);
    BOOST_TEST(read.kinds() == kinds{kind::shut_down}, per_element());
    end.count_down();
    beside.join();
}

BOOST_AUTO_TEST_CASE(a_reader_in_another_context_is_told_that_the_first_is_gone) {
    asio::io_context mine;
    std::optional<event_feed::reader> reader;
    a_read events, end;
    {
        asio::io_context context;
        reader.emplace(event_feed(context).join(mine.get_executor()));
        events.start(*reader);
        mine.poll();
        pawl::steady_timer timer(context, 1h);
        timer.async_wait(ignore);
        mine.poll();
        BOOST_TEST(events.pending()); // the context does not run
    }
    mine.run_for(patience);
    BOOST_TEST(events.kinds() == (kinds{kind::armed, kind::cancelled}), per_element());
    end.start(*reader);
    mine.restart();
    mine.run_for(patience);
    BOOST_TEST((end.error == asio::error::eof));
}

BOOST_AUTO_TEST_CASE(a_reader_that_sleeps_is_told_eof) {
    asio::io_context mine;
    std::optional<event_feed::reader> reader;
    a_read read;
    {
        asio::io_context context;
        reader.emplace(event_feed(context).join(mine.get_executor()));
        read.start(*reader);
        mine.poll();
    }
    mine.run_for(patience);
    BOOST_TEST(read.calls == 1);
    BOOST_TEST((read.error == asio::error::eof));
}

BOOST_AUTO_TEST_CASE(a_read_is_destroyed_with_its_context) {
    std::optional<event_feed::reader> reader;
    a_read read;
    {
        asio::io_context context;
        reader.emplace(event_feed(context).join());
        read.start(*reader);
        context.poll();
    }
    BOOST_TEST(read.pending());
    reader.reset();
}

BOOST_AUTO_TEST_CASE(a_reader_that_sleeps_leaves_in_a_handler_of_its_own) {
    watched w;
    std::optional<event_feed::reader> reader(w.feed.join());
    a_read read;
    reader->async_read(read.events, [&](error_code, pawl::read_result) { reader.reset(); });
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.context.poll();
    BOOST_TEST(!reader);
    BOOST_TEST(w.feed.readers() == 1U);
}

// ---- costs --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_run_returns_with_a_feed_and_a_reader) {
    watched w;
    BOOST_TEST(w.context.run() == 0U);
    w.context.restart();
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(ignore);
    w.context.run_for(patience);
    BOOST_TEST(w.context.stopped());
}

BOOST_AUTO_TEST_CASE(P9_run_returns_when_a_read_has_ended) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    BOOST_TEST(!w.context.stopped()); // as with any operation
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(ignore);
    w.context.run_for(patience);
    BOOST_TEST(w.context.stopped());
    BOOST_TEST(read.calls == 1);
    BOOST_TEST(read_all(w.reader).count(kind::started) == 1U);
}

BOOST_AUTO_TEST_CASE(P9_run_returns_when_a_reader_sleeps_elsewhere) {
    asio::io_context mine;
    asio::io_context context;
    auto reader = event_feed(context).join(mine.get_executor());
    a_read read;
    read.start(reader);
    mine.poll();
    pawl::steady_timer timer(context, 1ms);
    timer.async_wait(ignore);
    context.run_for(patience);
    BOOST_TEST(context.stopped());
    mine.run_for(patience);
    BOOST_TEST(read.calls == 1);
}

BOOST_AUTO_TEST_CASE(a_reader_that_sleeps_costs_its_context_nothing) {
    watched w;
    a_read read;
    read.start(w.reader);
    w.context.poll();
    const auto settings = system_timer::settings.load();
    const auto published = w.feed.published();
    BOOST_TEST(w.context.run_for(50ms) == 0U);
    BOOST_TEST(system_timer::settings.load() == settings);
    BOOST_TEST(w.feed.published() == published);
}

BOOST_AUTO_TEST_CASE(a_read_is_no_event_itself) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    for (int i = 0; i != 10; ++i) {
        a_read read;
        read.start(w.reader);
        w.context.poll();
        timer.async_wait(ignore);
        w.context.poll();
        BOOST_TEST(read.result.count == 1U);
    }
    BOOST_TEST(w.feed.published() == 10U);
    BOOST_TEST(pawl::stats(w.context).total().started == 10U);
    BOOST_TEST(pawl::stats(w.context).services.size() == 1U);
}

BOOST_AUTO_TEST_CASE(to_wake_a_reader_does_not_set_the_system_timer) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(read_all(w.reader).all.size() == 1U);
    std::size_t settings = 0;
    for (int i = 0; i != 10; ++i) {
        a_read read;
        read.start(w.reader);
        w.context.poll();
        if (i == 0) // it may be set once, for a wait that never expires
            settings = system_timer::settings.load();
        timer.rearm_after(2h);
        w.context.poll();
        BOOST_TEST(read.kinds() == (kinds{kind::moved}), per_element());
    }
    BOOST_TEST(system_timer::settings.load() == settings);
}

} // namespace
} // namespace watch_test
