// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::event_queue between threads: a table of the allowed results of each pair of calls, for
//   each overflow policy and both kinds of queues; and sums that hold for any calls. With
//   ThreadSanitizer, and without it.

#define BOOST_TEST_MODULE event_queue_race
#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace {

void delay_if_told() noexcept;

[[noreturn]] void fail(const char* what) noexcept {
    std::fprintf(stderr, "Assertion `%s' failed.\n", what);
    std::abort();
}

} // namespace

// Every assertion of Pawl is a place for a delay. That reaches steps of a protocol between which no
// code of the test runs.
#define PAWL_ASSERT(...)                                                                           \
    ((std::is_constant_evaluated() ? void() : delay_if_told()),                                    \
     (__VA_ARGS__) ? void() : fail(#__VA_ARGS__))

#include "race_support.hpp"
#include "wait_outcome.hpp"

#include <pawl/event_queue.hpp>
#include <pawl/timer_service.hpp>

#include "../support/meeting.hpp"
#include "../support/seed.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::overflow_policy;

namespace {

/// A context that other threads run.
class running_context {
public:
    explicit running_context(unsigned threads, unsigned shards = 1) {
        pawl::options o;
        o.shards = shards;
        o.precision = 10us;
        pawl::make_timer_service(context, o);
        for (unsigned i = 0; i != threads; ++i)
            threads_.emplace_back([this] { context.run(); });
    }
    ~running_context() {
        work_.reset();
        for (auto& t : threads_)
            t.join();
    }
    asio::io_context context;

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
    std::vector<std::thread> threads_;
};

const std::uint64_t rounds = pawl_test::steps(300);

constexpr auto period = 20us;

std::atomic<bool> delays{false};

void delay_if_told() noexcept {
    if (!delays.load(std::memory_order_relaxed))
        return;
    static std::atomic<std::uint64_t> seeds{1};
    thread_local std::minstd_rand random(static_cast<unsigned>(++seeds));
    if (random() % 8 != 0)
        return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 60);
    while (std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
}

} // namespace

// ---- pairs ---------------------------------------------------------------------------------------

namespace pairs {

/// The acts. Each is on a queue with one interval, which is armed and expires all the time.
enum class act {
    post,
    native_handle,
    expiry,
    disarm,
    destroy,
    destroy_for, ///< with no time to wait
    process_one,
    wait,
    wait_for,
    async_wait,
    end, ///< the queue is destroyed
};
constexpr std::array names{"post",     "native_handle", "expiry",      "disarm",
                           "destroy",  "destroy_for",   "process_one", "wait",
                           "wait_for", "async_wait",    "the end"};
constexpr int acts = static_cast<int>(names.size());

/// The kind of result of an act, and its effect on others.
enum class effect { quiet, disarms, destroys, tries, takes, waits, waits_briefly, hears, ends };

constexpr effect effect_of(act a) {
    switch (a) {
    case act::post:
    case act::native_handle:
    case act::expiry:
        return effect::quiet;
    case act::disarm:
        return effect::disarms;
    case act::destroy:
        return effect::destroys;
    case act::destroy_for:
        return effect::tries;
    case act::process_one:
        return effect::takes;
    case act::wait:
        return effect::waits;
    case act::wait_for:
        return effect::waits_briefly;
    case act::async_wait:
        return effect::hears;
    case act::end:
        break;
    }
    return effect::ends;
}

// The result of an act: that of the call, or
constexpr int none = -1;    ///< nothing,
constexpr int refused = -2; ///< std::logic_error: another thread processes,
constexpr int away = -3;    ///< operation_aborted: the queue was destroyed.

struct outcome {
    int first, second;
    friend auto operator<=>(const outcome&, const outcome&) = default;
    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        return out << '{' << o.first << ", " << o.second << '}';
    }
};

/// The table. disarm() returns 1 if it was the first to end the timer. destroy_for(0) returns 0 if
/// another thread is running the function, because it is processing, or is destroying it.
/// process_one() returns whether it has handled an event, a wait whether an event is present. The
/// handler of async_wait() got no error.
struct rule {
    effect first, second;
    std::vector<outcome> allowed;
};
const std::vector<rule>& rules() {
    using enum effect;
    static const std::vector<rule> table{
        {quiet, quiet, {{none, none}}},
        {quiet, disarms, {{none, 1}}},
        {quiet, destroys, {{none, none}}},
        {quiet, tries, {{none, 1}}},
        {quiet, takes, {{none, 0}, {none, 1}}},
        {quiet, waits, {{none, 1}}},
        {quiet, waits_briefly, {{none, 0}, {none, 1}}},
        {quiet, hears, {{none, 1}}},
        {quiet, ends, {{none, none}}},

        {disarms, disarms, {{0, 1}, {1, 0}}},
        {disarms, destroys, {{0, none}, {1, none}}},
        {disarms, tries, {{0, 1}, {1, 1}}},
        {disarms, takes, {{1, 0}, {1, 1}}},
        {disarms, waits, {{1, 1}}},
        {disarms, waits_briefly, {{1, 0}, {1, 1}}},
        {disarms, hears, {{1, 1}}},

        {destroys, destroys, {{none, none}}},
        {destroys, tries, {{none, 0}, {none, 1}}},
        {destroys, takes, {{none, 0}, {none, 1}}},
        {destroys, waits, {{none, 1}}},
        {destroys, waits_briefly, {{none, 0}, {none, 1}}},
        {destroys, hears, {{none, 1}}},

        {tries, tries, {{0, 1}, {1, 0}, {1, 1}}},
        {tries, takes, {{1, 0}, {1, 1}, {0, 1}}},
        {tries, waits, {{1, 1}}},
        {tries, waits_briefly, {{1, 0}, {1, 1}}},
        {tries, hears, {{1, 1}}},

        {takes,
         takes,
         {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {refused, 0}, {refused, 1}, {0, refused}, {1, refused}}},
        {takes, waits, {{0, 1}, {1, 1}}},
        {takes, waits_briefly, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}},
        {takes, hears, {{0, 1}, {1, 1}}},

        {waits, waits, {{1, 1}}},
        {waits, waits_briefly, {{1, 0}, {1, 1}}},
        {waits, hears, {{1, 1}}},
        {waits, ends, {{away, none}}},

        {waits_briefly, waits_briefly, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}},
        {waits_briefly, hears, {{0, 1}, {1, 1}}},
        {waits_briefly, ends, {{away, none}}},

        {hears, hears, {{1, 1}}},
        // It started before. If the queue runs its handlers itself, it may be destroyed uncalled.
        {hears, ends, {{0, none}, {1, none}, {none, none}}},
    };
    return table;
}
const std::vector<outcome>& allowed(act first, act second) {
    const auto r = std::find_if(rules().begin(), rules().end(), [&](const rule& each) {
        return each.first == effect_of(first) && each.second == effect_of(second);
    });
    BOOST_REQUIRE(r != rules().end());
    return r->allowed;
}

/// Only waits, and timers, may run during the end of a queue.
constexpr bool may_meet(act first, act second) {
#if defined(_WIN32) // where a queue has none
    if (first == act::native_handle || second == act::native_handle)
        return false;
#endif
    return second != act::end || first == act::expiry || effect_of(first) == effect::waits ||
           effect_of(first) == effect::waits_briefly || effect_of(first) == effect::hears;
}

/// One queue, on which two threads act.
class subject {
public:
    subject(running_context* other, const pawl::event_queue_options& o, bool ends, bool sleeps)
        : own_(!other), ends_(ends),
          queue_(other ? std::make_unique<pawl::event_queue>(other->context, o)
                       : std::make_unique<pawl::event_queue>(o)),
          timer_(
              queue_->every(sleeps ? 1h : std::chrono::nanoseconds(period), [this] { tick(); })) {}

    /// Before both act.
    void prepare(act a) {
        if (ends_ && a == act::async_wait)
            listen(0);
    }

    /// @param me 0 or 1. @return the result; for async_wait() see told().
    int perform(act a, std::size_t me) {
        switch (a) {
        case act::post:
            post();
            return none;
        case act::native_handle:
            if (queue_->native_handle() < 0)
                std::abort();
            return none;
        case act::expiry:
            if (own_ && !ends_)
                (void)queue_->pending(); // lets its timers run
            else
                race_support::wait_until(std::chrono::steady_clock::now() + period);
            return none;
        case act::disarm:
            return timer_.disarm();
        case act::destroy:
            pawl::event_queue::timer(timer_).destroy();
            dead_[me] = ran_;
            return none;
        case act::destroy_for: {
            const bool done = pawl::event_queue::timer(timer_).destroy_for(0ns);
            if (done)
                dead_[me] = ran_;
            return done;
        }
        case act::process_one:
            try {
                const std::size_t n = queue_->process_one();
                handled_ += n;
                return static_cast<int>(n);
            } catch (const std::logic_error&) {
                return refused;
            }
        case act::wait:
        case act::wait_for:
            return wait(*queue_, a);
        case act::async_wait:
            if (!ends_)
                listen(me);
            return none;
        case act::end:
            queue_.reset();
            return none;
        }
        return none;
    }

    /// Ends a wait whose events the other act has taken.
    void post() {
        asio::post(*queue_, [this] { ++ran_posts_; });
        ++posts_;
    }

    [[nodiscard]] bool has_waiter() const noexcept { return inside_; }

    /// The result of the handler of async_wait(). Only a queue that runs its handlers itself may
    /// never call it.
    int told(std::size_t me) {
        while (told_[me] == none && !(own_ && !queue_)) {
            if (own_)
                (void)queue_->pending(); // runs it
            std::this_thread::yield();
        }
        return told_[me];
    }

    /// No event is lost, none runs twice, and none runs after destroy().
    void finish() {
        if (!queue_) {
            BOOST_REQUIRE(timer_.ended());
            return;
        }
        timer_.disarm();
        while (queue_->inqueue() != 0)
            handled_ += queue_->process_events();
        BOOST_REQUIRE(timer_.ended());
        BOOST_REQUIRE_EQUAL(queue_->timers(), 0U);
        BOOST_REQUIRE_EQUAL(ran_posts_, posts_);
        BOOST_REQUIRE_EQUAL(handled_, ran_ + ran_posts_);
        for (const auto& ran : dead_)
            BOOST_REQUIRE(!ran || *ran == ran_);
    }

private:
    /// @param queue read before the other thread learns that it may destroy the queue.
    int wait(pawl::event_queue& queue, act a) {
        inside_ = true;
        try {
            if (a == act::wait_for)
                return queue.wait_for(ends_ ? 1h : std::chrono::nanoseconds(period));
            queue.wait();
            return 1;
        } catch (const boost::system::system_error& e) {
            return e.code() == asio::error::operation_aborted ? away : none;
        }
    }
    void tick() {
        // Long enough for others to find it running.
        race_support::wait_until(std::chrono::steady_clock::now() + 2 * period);
        ++ran_;
    }
    void listen(std::size_t me) {
        queue_->async_wait([this, me](const boost::system::error_code& ec) { told_[me] = !ec; });
    }

    const bool own_;
    const bool ends_;
    std::size_t ran_ = 0; // not atomic: one thread at a time processes, and destroy() waits for it
    std::size_t ran_posts_ = 0;
    std::array<std::optional<std::size_t>, 2> dead_{}; ///< number of runs at that time
    std::atomic<std::size_t> posts_{0};
    std::atomic<std::size_t> handled_{0};
    std::array<std::atomic<int>, 2> told_{none, none};
    std::atomic<bool> inside_{false};
    std::unique_ptr<pawl::event_queue> queue_;
    pawl::event_queue::timer timer_;
};

void meet(act first, act second, running_context* other, overflow_policy policy, std::uint64_t seed,
          race_support::census_of<outcome>& seen) {
    const bool ends = second == act::end;
    const bool sleeps = ends && (first == act::wait || first == act::wait_for);
    const int times = sleeps ? 3 : static_cast<int>(std::max<std::uint64_t>(rounds / 8, 2));
    std::optional<subject> both;
    std::array<int, 2> said{};
    bool over = false;
    pawl_test::barrier barrier(2);
    const auto act_in = [&](std::size_t me, race_support::random_type& random) {
        const act mine = me == 0 ? first : second;
        const act its = me == 0 ? second : first;
        if (sleeps && mine == act::end) {
            while (!both->has_waiter())
                std::this_thread::yield();
            std::this_thread::sleep_for(50ms); // now in wait(), which keeps the queue alive
        } else {
            race_support::pause(random, 4 * period);
        }
        said[me] = both->perform(mine, me);
        const bool deprives = mine == act::destroy || mine == act::destroy_for;
        if (deprives && its == act::wait)
            both->post();
        barrier.arrive_and_wait();
    };

    std::jthread other_thread([&] {
        race_support::random_type random(seed + 1);
        for (;;) {
            barrier.arrive_and_wait();
            if (over)
                return;
            act_in(1, random);
        }
    });
    struct guard { // also when a check fails
        bool& over;
        pawl_test::barrier& barrier;
        ~guard() {
            over = true;
            (void)barrier.arrive();
        }
    } const leave{over, barrier};
    race_support::random_type random(seed);
    for (int i = 0; i != times; ++i) {
        const pawl::event_queue_options o{.capacity = static_cast<std::size_t>(1 + random() % 3),
                                          .overflow = policy};
        both.emplace(other, o, ends, sleeps);
        both->prepare(first);
        barrier.arrive_and_wait();
        act_in(0, random);
        if (!ends && (first == act::async_wait || second == act::async_wait))
            both->post(); // the other act may have taken the event
        if (first == act::async_wait)
            said[0] = both->told(0);
        if (second == act::async_wait)
            said[1] = both->told(1);
        seen.check({said[0], said[1]}, allowed(first, second));
        both->finish();
        both.reset();
    }
}

} // namespace pairs

BOOST_AUTO_TEST_CASE(each_call_meets_each) {
    using namespace pairs;
    const std::uint64_t seed = pawl_test::seed();
    running_context other(1);
    for (int a = 0; a != acts; ++a) {
        for (int b = a; b != acts; ++b) {
            const act first = static_cast<act>(a);
            const act second = static_cast<act>(b);
            if (!may_meet(first, second))
                continue;
            for (const auto policy : {overflow_policy::block, overflow_policy::drop_oldest,
                                      overflow_policy::coalesce}) {
                for (const bool own : {true, false}) {
                    const std::string pair =
                        std::string(names[static_cast<std::size_t>(a)]) + " and " +
                        names[static_cast<std::size_t>(b)] + ", policy " +
                        std::to_string(static_cast<int>(policy)) + (own ? ", own timers" : "");
                    BOOST_TEST_CONTEXT(pair) {
                        race_support::census_of<outcome> seen(pair);
                        meet(first, second, own ? nullptr : &other, policy, seed, seen);
                    }
                }
            }
        }
    }
}

// ---- sums ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(sums)

// Each submitted function runs once; each one-off runs, or was destroyed or disarmed; nothing is
// left afterwards.
BOOST_AUTO_TEST_CASE(nothing_is_lost_between_threads) {
    std::mt19937_64 random(pawl_test::seed());
    for (int run = 0; run != 6; ++run) {
        const unsigned shards = 1U << (random() % 3);
        const bool own = run % 3 == 2;
        std::optional<running_context> other;
        if (!own)
            other.emplace(1 + random() % 2, shards);
        const pawl::event_queue_options o{.capacity = static_cast<std::size_t>(1 + random() % 50),
                                          .overflow = static_cast<overflow_policy>(run % 3)};
        auto queue = own ? std::make_unique<pawl::event_queue>(o)
                         : std::make_unique<pawl::event_queue>(other->context, o);
        std::atomic<std::uint64_t> submitted{0};
        std::uint64_t ran = 0; // by the host
        std::atomic<std::uint64_t> made{0};
        std::uint64_t fired = 0;
        std::atomic<std::uint64_t> withdrawn{0};
        std::atomic<int> producing{3};

        std::vector<std::thread> producers;
        for (int p = 0; p != 3; ++p) {
            producers.emplace_back([&, seed = random()] {
                std::mt19937_64 mine(seed);
                std::vector<pawl::event_queue::timer> intervals;
                for (std::uint64_t i = 0; i != rounds; ++i) {
                    asio::post(*queue, [&ran] { ++ran; });
                    ++submitted;
                    auto one_off =
                        queue->once(std::chrono::microseconds(mine() % 200), [&fired] { ++fired; });
                    ++made;
                    if (mine() % 4 == 0)
                        withdrawn += one_off.disarm();
                    if (mine() % 3 == 0)
                        intervals.push_back(queue->every(
                            std::chrono::microseconds(10 + mine() % 100), [] {},
                            static_cast<pawl::missed_tick_policy>(mine() % 3)));
                    if (mine() % 3 == 0 && !intervals.empty()) {
                        if (mine() % 2 == 0)
                            intervals.back().destroy();
                        else
                            intervals.back().disarm();
                        intervals.pop_back();
                    }
                }
                for (auto& t : intervals)
                    t.destroy();
                --producing;
                asio::post(*queue, [&ran] { ++ran; });
                ++submitted;
            });
        }
        while (producing != 0 || queue->timers() != 0 || queue->inqueue() != 0) {
            queue->wait_for(10ms);
            queue->process_events(random() % 100);
        }
        for (auto& p : producers)
            p.join();
        queue->process_events();

        BOOST_TEST(ran == submitted);
        BOOST_TEST(fired + withdrawn == made);
        BOOST_TEST(queue->inqueue() == 0U);
        BOOST_TEST(queue->pending() == 0U);
        BOOST_TEST(queue->timers() == 0U);
    }
}

// The host moves the wait of an interval that waited for room; a thread of the context starts it. So
// there is one wait at a time, and each tick comes once, in order, and none early. If expire_all()
// ends the wait, an early tick comes in addition.
BOOST_AUTO_TEST_CASE(an_interval_that_waits_for_room_has_one_wait) {
    running_context other(2);
    for (int run = 0; run != 4; ++run) {
        const std::size_t capacity = run % 2 == 0 ? 1 : 2;
        const bool expires = run >= 2;
        pawl::event_queue queue(other.context, {.capacity = capacity});
        using event = pawl::event_queue::event;
        std::optional<std::chrono::steady_clock::time_point> last;
        std::uint64_t handled = 0;
        delays = true;
        auto timer = queue.every(period, [&](const event& e) {
            BOOST_TEST((expires || e.scheduled <= e.emitted));
            BOOST_TEST(
                (!last || e.scheduled == *last + period || (expires && e.scheduled == *last)));
            BOOST_TEST(e.overruns == 0U);
            last = e.scheduled;
            ++handled;
        });
        while (handled < 10 * rounds) {
            queue.wait();
            if (expires && handled % 8 == 0)
                asio::post(other.context, [&] { pawl::expire_all(other.context); });
            queue.process_events();
        }
        timer.destroy();
        delays = false;
    }
}

// Two threads end a timer with a limit, while the host runs its function. True: its function is
// destroyed, and no thread runs it. False: it runs, and the timer has ended.
BOOST_AUTO_TEST_CASE(destroy_for_says_whether_the_function_has_gone) {
    std::mt19937_64 random(pawl_test::seed());
    running_context other(2);
    delays = true;
    for (std::uint64_t round = 0; round != rounds; ++round) {
        const bool own = round % 2 == 0;
        auto queue = own ? std::make_unique<pawl::event_queue>()
                         : std::make_unique<pawl::event_queue>(other.context);
        std::atomic<bool> runs{false};
        const auto token = std::make_shared<int>();
        auto timer = queue->every(period, [&runs, token] {
            runs = true;
            const auto end = std::chrono::steady_clock::now() + 2 * period;
            race_support::wait_until(end);
            runs = false;
        });
        std::atomic<int> left{2};
        std::atomic<int> wrong{0};
        const auto end = [&](std::uint64_t seed) {
            std::mt19937_64 mine(seed);
            race_support::wait_until(std::chrono::steady_clock::now() +
                                     std::chrono::microseconds(mine() % 200));
            pawl::event_queue::timer handle = timer;
            while (!handle.destroy_for(std::chrono::microseconds(mine() % 80)))
                wrong += !handle.ended();
            wrong += runs || token.use_count() != 1 || !handle.ended();
            --left;
        };
        std::thread first(end, random());
        std::thread second(end, random());
        while (left != 0)
            queue->process_events();
        first.join();
        second.join();
        BOOST_TEST(wrong == 0);
        BOOST_TEST(queue->inqueue() == 0U);
        BOOST_TEST(queue->timers() == 0U);
    }
    delays = false;
}

// A queue is destroyed while several threads wait with different ends, and while its timers expire; or
// by a handler that one of these threads runs. A thread gets an event that came before, or the exception.
BOOST_AUTO_TEST_CASE(threads_that_wait_leave_a_queue_that_goes) {
    std::mt19937_64 random(pawl_test::seed());
    running_context other(2);
    delays = true;
    for (int round = 0; round != 16; ++round) {
        const bool own = round % 2 == 0;
        const bool by_handler = round % 4 == 0;
        auto queue = own ? std::make_unique<pawl::event_queue>()
                         : std::make_unique<pawl::event_queue>(other.context);
        if (round % 8 < 4 && own)
            (void)queue->native_handle();
        asio::cancellation_signal signal;
        if (by_handler)
            queue->async_wait(asio::bind_cancellation_slot(
                signal.slot(), [&](const boost::system::error_code&) { queue.reset(); }));
        const auto token = std::make_shared<int>();
        std::atomic<int> entered{0};
        std::atomic<int> events{0};
        std::atomic<int> exceptions{0};
        std::vector<std::thread> threads;
        for (int i = 0; i != 5; ++i)
            threads.emplace_back([&, i, &q = *queue] {
                ++entered;
                try {
                    if (i == 0)
                        q.wait();
                    else if (i % 2 == 0)
                        events += q.wait_for(std::chrono::hours(i));
                    else
                        events += q.wait_until(std::chrono::steady_clock::now() + 1h * i);
                    events += i == 0;
                } catch (const boost::system::system_error& e) {
                    exceptions += e.code() == asio::error::operation_aborted;
                }
            });
        for (int i = 0; i != 3; ++i)
            queue->every(1h, [token] {});
        while (entered != 5)
            std::this_thread::yield();
        std::this_thread::sleep_for(50ms); // now in the calls, which keep the queue alive
        if (by_handler) {
            signal.emit(asio::cancellation_type::total);
        } else {
            for (int i = 0; i != 20; ++i)
                queue->once(std::chrono::microseconds(random() % 400), [token] {});
            race_support::wait_until(std::chrono::steady_clock::now() +
                                     std::chrono::microseconds(random() % 400));
            queue.reset();
        }
        for (auto& t : threads)
            t.join();
        BOOST_TEST(events + exceptions == 5);
        // A thread of the context may still hold the last timer.
        while (token.use_count() != 1)
            std::this_thread::yield();
    }
    delays = false;
}

BOOST_AUTO_TEST_SUITE_END()
