// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::retry, pawl::hedge and pawl::retry_budget: each case is one of their promises.
//
// Model
//   Time is manual_clock. The operation fails or succeeds as a script says, takes as long as the
//   script says, and completes with operation_aborted when it is cancelled.

#define BOOST_TEST_MODULE patterns_retry

#include <pawl/hedge.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/retry.hpp>
#include <pawl/sleep.hpp>

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"
#include "../support/scripted_clock.hpp"
#include "../support/seed.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
using pawl::manual_clock;
using namespace std::chrono_literals;

using attempt = pawl::basic_attempt<manual_clock>;
using deadline = pawl::basic_deadline<manual_clock>;
using hedge_policy = pawl::basic_hedge_policy<manual_clock>;
using policy = pawl::basic_retry_policy<manual_clock>;

const error_code aborted = asio::error::operation_aborted;
const error_code refused = asio::error::connection_refused;
const error_code final_error = asio::error::access_denied;
const error_code timed_out = pawl::error::timed_out;

/// What one attempt does.
struct step {
    manual_clock::duration takes;
    error_code result{};
};

/// Runs what is due; see examples/cookbook/support.hpp.
void pass(asio::io_context& context, manual_clock::duration d = {}) {
    do {
        manual_clock::advance(context, d);
        d = d.zero();
        context.restart();
    } while (context.poll() != 0);
}

struct outcome {
    int calls = 0;
    error_code code{};
    int value = 0;
    manual_clock::time_point when{};

    auto record() {
        return [this](error_code ec, int v) {
            ++calls;
            code = ec;
            value = v;
            when = manual_clock::now();
        };
    }
    bool is(const error_code& ec, int v = 0) const {
        return calls == 1 && code == ec && value == v;
    }
};

/// An operation on the script, and those who call it.
struct world {
    asio::io_context context{};
    std::vector<step> script{};
    std::vector<manual_clock::time_point> started{};
    std::vector<attempt> seen{};
    int running = 0;
    int cancelled = 0;
    asio::cancellation_signal stop{};
    outcome out{};

    /// As a deferred operation, with the result of the number of the attempt.
    auto operation(attempt a) {
        const step s = script.at(std::min(started.size(), script.size() - 1));
        seen.push_back(a);
        started.push_back(manual_clock::now());
        ++running;
        auto timer = std::make_shared<pawl::manual_timer>(context, s.takes);
        return timer->async_wait(
            asio::deferred([this, timer, s, n = static_cast<int>(a.number())](error_code ec) {
                --running;
                cancelled += ec ? 1 : 0;
                return asio::deferred.values(ec ? ec : s.result, ec || s.result ? 0 : n);
            }));
    }

    auto op() {
        return [this](attempt a) { return operation(a); };
    }
    auto token() { return asio::bind_cancellation_slot(stop.slot(), out.record()); }
    void retry(const policy& p) { pawl::retry(context, p, op(), token()); }
    void hedge(const hedge_policy& p) { pawl::hedge(context.get_executor(), p, op(), token()); }
    void cancel(asio::cancellation_type_t type = asio::cancellation_type::terminal) {
        stop.emit(type);
        pass(context);
    }
    /// Until nothing is left to do.
    void finish() {
        for (pass(context); !context.stopped(); pass(context))
            manual_clock::advance_to_next(context);
    }
    std::vector<manual_clock::duration> pauses() const {
        std::vector<manual_clock::duration> all;
        for (std::size_t i = 1; i < started.size(); ++i)
            all.push_back(started[i] - started[i - 1]);
        return all;
    }
};

// --- retry: results ------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_first_success_is_the_result_and_costs_no_second_attempt) {
    world w{.script = {{0ms}}};
    w.retry({});
    BOOST_TEST(w.out.calls == 0); // never within the call
    w.finish();
    BOOST_TEST(w.out.is({}, 1));
    BOOST_TEST(w.started.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_operation_is_repeated_until_it_succeeds) {
    world w{.script = {{1ms, refused}, {1ms, refused}, {1ms}}};
    w.retry({});
    w.finish();
    BOOST_TEST(w.out.is({}, 3));
    BOOST_TEST(w.seen[0].number() == 1u);
    BOOST_TEST(!w.seen[0].last_error());
    BOOST_TEST(w.seen[2].number() == 3u);
    BOOST_TEST(w.seen[2].last_error() == refused);
}

BOOST_AUTO_TEST_CASE(the_last_failure_is_reported_after_the_last_attempt) {
    world w{.script = {{1ms, refused}, {1ms, asio::error::eof}}};
    w.retry({.max_attempts = 2});
    w.finish();
    BOOST_TEST(w.out.is(asio::error::eof));
    BOOST_TEST(w.started.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_final_error_is_not_retried) {
    world w{.script = {{1ms, final_error}}};
    w.retry({});
    w.finish();
    BOOST_TEST(w.out.is(final_error));
    BOOST_TEST(w.started.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_error_is_transient_whether_asio_or_std_reports_it) {
    namespace errc = boost::system::errc;
    const auto all = [](auto... codes) {
        return (pawl::is_transient(make_error_code(codes)) && ...);
    };
    BOOST_TEST(all(asio::error::timed_out, asio::error::connection_refused,
                   asio::error::connection_reset, asio::error::connection_aborted,
                   asio::error::broken_pipe, asio::error::host_unreachable,
                   asio::error::network_unreachable, asio::error::network_down,
                   asio::error::network_reset, asio::error::try_again, asio::error::eof,
                   asio::error::host_not_found_try_again, pawl::error::timed_out));
    BOOST_TEST(all(errc::timed_out, errc::connection_refused, errc::connection_reset,
                   errc::connection_aborted, errc::broken_pipe, errc::host_unreachable,
                   errc::network_unreachable, errc::network_down, errc::network_reset,
                   errc::resource_unavailable_try_again));
    BOOST_TEST(!all(asio::error::operation_aborted));
    BOOST_TEST(!all(errc::permission_denied));
}

BOOST_AUTO_TEST_CASE(the_predicate_decides_what_is_retried) {
    world w{.script = {{1ms, final_error}, {1ms, refused}}};
    w.retry({.retry_if = [](error_code ec) { return ec == final_error; }});
    w.finish();
    BOOST_TEST(w.out.is(refused));
    BOOST_TEST(w.started.size() == 2u);
}

BOOST_AUTO_TEST_CASE(an_abort_that_the_caller_did_not_ask_for_is_not_retried) {
    world w{.script = {{1ms, aborted}}};
    w.retry({});
    w.finish();
    BOOST_TEST(w.out.is(aborted));
    BOOST_TEST(w.started.size() == 1u);
}

// --- retry: pauses -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(without_jitter_pauses_grow_by_the_factor_up_to_the_cap) {
    world w{.script = {{0ms, refused}}};
    w.retry({.first = 10ms,
             .cap = 100ms,
             .factor = 3,
             .jitter = pawl::retry_jitter::none,
             .max_attempts = 6});
    w.finish();
    const std::vector<manual_clock::duration> expected{10ms, 30ms, 90ms, 100ms, 100ms};
    BOOST_TEST((w.pauses() == expected));
}

BOOST_AUTO_TEST_CASE(jitter_keeps_each_pause_in_its_bounds_and_uses_them) {
    const auto seed = pawl_test::seed();
    for (const auto kind : {pawl::retry_jitter::full, pawl::retry_jitter::equal}) {
        world w{.script = {{0ms, refused}}};
        w.retry({.first = 1s, .cap = 1s, .jitter = kind, .max_attempts = 400, .seed = seed});
        w.finish();
        const auto pauses = w.pauses();
        const auto [least, most] = std::minmax_element(pauses.begin(), pauses.end());
        const manual_clock::duration floor = kind == pawl::retry_jitter::full ? 0ms : 500ms;
        BOOST_TEST((*least >= floor && *most <= 1s));
        BOOST_TEST((*least < floor + 100ms && *most > 900ms)); // of 399
    }
}

BOOST_AUTO_TEST_CASE(a_seed_repeats_the_pauses_and_without_one_they_differ) {
    const auto pauses_of = [](const policy& p) {
        world w{.script = {{0ms, refused}}};
        w.retry(p);
        w.finish();
        return w.pauses();
    };
    const policy seeded{.max_attempts = 5, .seed = 7};
    BOOST_TEST((pauses_of(seeded) == pauses_of(seeded)));
    BOOST_TEST((pauses_of(seeded) != pauses_of({.max_attempts = 5, .seed = 8})));
    BOOST_TEST((pauses_of({.max_attempts = 5}) != pauses_of({.max_attempts = 5})));
}

BOOST_AUTO_TEST_CASE(a_hint_of_the_operation_makes_the_next_pause_longer_and_only_that) {
    world w{.script = {{0ms, refused}}};
    const policy p{
        .first = 10ms, .factor = 1, .jitter = pawl::retry_jitter::none, .max_attempts = 4};
    pawl::retry(
        w.context, p,
        [&](attempt a) {
            if (a.number() == 1)
                a.retry_after(30s);
            if (a.number() == 3)
                a.retry_after(-1h);
            return w.operation(a);
        },
        w.token());
    w.finish();
    const std::vector<manual_clock::duration> expected{30s + 10ms, 10ms, 10ms};
    BOOST_TEST((w.pauses() == expected));
}

BOOST_AUTO_TEST_CASE(huge_pauses_and_hints_saturate) {
    world w{.script = {{0ms, refused}}};
    pawl::retry(
        w.context,
        policy{.first = policy::never,
               .cap = policy::never,
               .jitter = pawl::retry_jitter::none,
               .limit = 1h},
        [&](attempt a) {
            a.retry_after(std::chrono::hours::max());
            return w.operation(a);
        },
        w.token());
    w.finish();
    BOOST_TEST(w.out.is(refused)); // a pause beyond the limit does not begin
}

// As waits on such a clock are: later, never earlier. The limit of all is a time of that clock, too.
BOOST_AUTO_TEST_CASE(on_a_clock_that_is_set_back_a_pause_ends_by_its_new_time) {
    using wall = pawl_test::scripted_clock<1>;
    asio::io_context context;
    const auto set = [&](wall::duration t) {
        wall::set(t);
        pass(context); // every clock is read
    };
    set(10h);
    std::size_t attempts = 0;
    error_code result;
    pawl::retry(
        context,
        pawl::basic_retry_policy<wall>{
            .first = 1s, .factor = 1, .jitter = pawl::retry_jitter::none, .limit = 10s},
        [&](pawl::basic_attempt<wall> a) {
            attempts = a.number();
            return asio::post(context,
                              asio::deferred([] { return asio::deferred.values(refused); }));
        },
        [&](error_code ec) { result = ec; });
    set(10h);
    BOOST_TEST(attempts == 1U);
    set(9h);
    set(9h + 30s);
    BOOST_TEST(attempts == 1U);
    set(10h + 1s);
    BOOST_TEST(attempts == 2U);
    set(10h + 11s);
    BOOST_TEST((attempts == 2U && result == refused && context.stopped()));
}

// --- retry: limits -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_attempt_that_hangs_is_cancelled_and_has_timed_out) {
    world w{.script = {{1h}, {1ms}}};
    w.retry({.attempt_limit = 2s});
    pass(w.context, 2s - 1ns);
    BOOST_TEST(w.running == 1);
    pass(w.context, 1ns);
    BOOST_TEST(w.running == 0);
    w.finish();
    BOOST_TEST(w.out.is({}, 2));
    BOOST_TEST(w.seen[1].last_error() == timed_out);
}

BOOST_AUTO_TEST_CASE(the_limit_of_all_ends_an_attempt_too) {
    const auto begin = manual_clock::now();
    world w{.script = {{1h}}};
    w.retry({.attempt_limit = 2s, .limit = 3s});
    w.finish();
    BOOST_TEST(w.out.is(timed_out));
    BOOST_TEST((w.out.when - begin <= 3s));
    BOOST_TEST((w.seen[0].deadline() == deadline(begin + 2s)));
    BOOST_TEST((w.started.size() == 1 || w.seen[1].deadline() == deadline(begin + 3s)));
}

BOOST_AUTO_TEST_CASE(the_earlier_of_limit_and_deadline_counts) {
    const auto begin = manual_clock::now();
    for (const bool first : {true, false}) {
        world w{.script = {{1h}}};
        w.retry({.limit = first ? 1s : 9s, .deadline = deadline::after(first ? 9s : 1s)});
        BOOST_TEST((w.seen.at(0).deadline() == deadline(manual_clock::now() + 1s)));
        w.cancel();
    }
    BOOST_TEST((manual_clock::now() == begin));
}

BOOST_AUTO_TEST_CASE(a_pause_that_would_pass_the_deadline_does_not_begin) {
    const auto begin = manual_clock::now();
    world w{.script = {{100ms, refused}}};
    w.retry({.first = 900ms, .jitter = pawl::retry_jitter::none, .limit = 1s});
    w.finish();
    BOOST_TEST(w.out.is(refused));
    BOOST_TEST((w.out.when - begin == 100ms)); // at once
}

BOOST_AUTO_TEST_CASE(with_a_limit_of_zero_no_attempt_is_made) {
    world w{.script = {{1ms}}};
    w.retry({.limit = 0s});
    BOOST_TEST(w.out.calls == 0);
    w.finish();
    BOOST_TEST(w.out.is(timed_out));
    BOOST_TEST(w.started.empty());
}

BOOST_AUTO_TEST_CASE(a_policy_without_an_end_goes_on_until_it_succeeds) {
    world w{.script = std::vector<step>(1000, step{0ms, refused})};
    w.script.push_back({0ms});
    w.retry({.first = 1ms, .cap = 1ms, .max_attempts = policy::unlimited});
    w.finish();
    BOOST_TEST(w.out.is({}, 1001));
}

// --- retry: cancellation -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_cancellation_in_an_attempt_ends_it_at_once) {
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        for (const auto limit : {policy::never, std::chrono::nanoseconds(2h)}) {
            world w{.script = {{1h}}};
            w.retry({.attempt_limit = limit});
            pass(w.context);
            w.cancel(type);
            if (limit == policy::never || type == asio::cancellation_type::terminal)
                BOOST_TEST(w.cancelled == 1);
            BOOST_TEST(w.out.is(aborted));
            BOOST_TEST(w.started.size() == 1u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cancellation_in_a_pause_ends_it_at_once_and_gives_the_token_back) {
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        pawl::retry_budget budget(0, 2);
        world w{.script = {{0ms, refused}}};
        w.retry({.first = 1h, .cap = 1h, .jitter = pawl::retry_jitter::none, .budget = &budget});
        pass(w.context);
        BOOST_TEST(budget.balance() == 1);
        w.cancel(type);
        BOOST_TEST(w.out.is(aborted));
        BOOST_TEST(w.started.size() == 1u);
        BOOST_TEST(budget.balance() == 2);
    }
}

BOOST_AUTO_TEST_CASE(a_cancellation_that_the_attempt_ignores_prevents_the_next_one) {
    world w{.script = {{0ms}}};
    std::function<void(error_code)> complete;
    pawl::retry(
        w.context, policy{},
        [&](attempt) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code, int)>(
                [&](auto handler) {
                    auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                    complete = [kept](error_code ec) { std::move (*kept)(ec, ec ? 0 : 5); };
                },
                asio::deferred);
        },
        w.token());
    w.cancel();
    w.cancel(asio::cancellation_type::none); // takes nothing back
    BOOST_TEST(w.out.calls == 0);
    std::exchange(complete, {})(refused);
    BOOST_TEST(w.out.is(aborted));
}

BOOST_AUTO_TEST_CASE(a_result_despite_the_cancellation_is_kept) {
    for (const error_code& result : {error_code(), final_error}) {
        world w{.script = {{0ms}}};
        std::function<void()> complete;
        pawl::retry(
            w.context, policy{},
            [&](attempt) {
                return asio::async_initiate<const asio::deferred_t&, void(error_code, int)>(
                    [&](auto handler) {
                        auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                        complete = [kept, &result] { std::move (*kept)(result, 5); };
                    },
                    asio::deferred);
            },
            w.token());
        w.cancel();
        std::exchange(complete, {})();
        BOOST_TEST(w.out.is(result, 5));
    }
}

// --- budget --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_cancellation_in_the_function_is_not_missed) {
    for (const bool hedged : {false, true}) {
        world w{.script = {{1h}}};
        const auto op = [&](attempt a) {
            w.stop.emit(asio::cancellation_type::terminal);
            return w.operation(a);
        };
        if (hedged)
            pawl::hedge(w.context.get_executor(), hedge_policy{10ms}, op, w.token());
        else
            pawl::retry(w.context, policy{}, op, w.token());
        BOOST_TEST(w.out.calls == 0);
        pass(w.context);
        BOOST_TEST(w.out.is(aborted)); // once the attempt was made, and nothing ended it
    }
}

BOOST_AUTO_TEST_CASE(a_budget_limits_the_retries_of_all_to_a_fraction_of_the_requests) {
    pawl::retry_budget budget(0.1, 5);
    world w{.script = {{0ms, refused}}};
    constexpr int requests = 200;
    for (int i = 0; i < requests; ++i) {
        w.out = {};
        w.retry({.first = 1ms, .max_attempts = 10, .budget = &budget});
        w.finish();
        BOOST_TEST_REQUIRE(w.out.is(refused));
    }
    const auto retries = static_cast<double>(w.started.size() - requests);
    BOOST_TEST(retries <= 5 + 0.1 * requests);
    BOOST_TEST(retries >= 5 + 0.1 * requests - 2); // the first deposits found it full
}

BOOST_AUTO_TEST_CASE(good_times_do_not_save_up_more_than_the_reserve) {
    pawl::retry_budget budget(0.5, 3);
    for (int i = 0; i < 1000; ++i)
        budget.deposit();
    BOOST_TEST(budget.balance() == 3);
    int tokens = 0;
    while (budget.try_withdraw())
        ++tokens;
    BOOST_TEST(tokens == 3);
    budget.deposit();
    BOOST_TEST(!budget.try_withdraw()); // half a token
    budget.deposit();
    BOOST_TEST(budget.try_withdraw());
}

BOOST_AUTO_TEST_CASE(a_retry_that_the_deadline_prevents_gives_its_token_back) {
    pawl::retry_budget budget(0, 1);
    world w{.script = {{0ms, refused}}};
    w.retry({.first = 100ms, .jitter = pawl::retry_jitter::none, .limit = 1s, .budget = &budget});
    pass(w.context);
    BOOST_TEST(budget.balance() == 0);
    pass(w.context, 1s); // the context was busy when the pause ended
    BOOST_TEST(w.out.is(refused));
    BOOST_TEST(w.started.size() == 1u);
    BOOST_TEST(budget.balance() == 1);
}

BOOST_AUTO_TEST_CASE(a_pause_that_finds_no_memory_gives_its_token_back) {
    bool failed = false;
    for (std::size_t most = 1; most < 6; ++most) {
        pawl::retry_budget budget(0, 1);
        pawl_test::allocation_log log;
        log.most = most;
        asio::io_context context; // its last handler uses both as it goes
        int attempts = 0;
        const auto op = [&](attempt) {
            ++attempts;
            return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
                [&](auto handler) {
                    asio::post(context, asio::append(std::move(handler), refused));
                },
                asio::deferred);
        };
        int calls = 0;
        try {
            pawl::retry(context, policy{.max_attempts = 2, .budget = &budget}, op,
                        asio::bind_allocator(pawl_test::counting_allocator<void>(log),
                                             [&](error_code) { ++calls; }));
            pass(context);
        } catch (const std::bad_alloc&) {
            failed |= attempts == 1 && calls == 1;
            BOOST_TEST(budget.balance() == (attempts > 1 ? 0 : 1));
        }
    }
    BOOST_TEST(failed);
}

BOOST_AUTO_TEST_CASE(threads_that_share_a_budget_lose_no_token) {
    pawl::retry_budget budget(1, 1000);
    while (budget.try_withdraw()) {
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                budget.deposit();
                if (i % 2 == 0 && budget.try_withdraw())
                    budget.give_back();
            }
        });
    for (auto& t : threads)
        t.join();
    BOOST_TEST(budget.balance() == 800);
}

// --- bad input, and functions that throw ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_bad_policy_is_refused_with_nothing_started) {
    world w{.script = {{0ms}}};
    for (const policy& bad :
         {policy{.first = 0ms}, policy{.first = -1ms}, policy{.first = 2s, .cap = 1s},
          policy{.factor = 0.5}, policy{.factor = std::numeric_limits<double>::quiet_NaN()},
          policy{.factor = std::numeric_limits<double>::infinity()}, policy{.max_attempts = 0},
          policy{.attempt_limit = 0s}})
        BOOST_CHECK_THROW(w.retry(bad), std::invalid_argument);
    BOOST_CHECK_THROW(pawl::retry_budget(-0.1), std::invalid_argument);
    BOOST_CHECK_THROW(pawl::retry_budget(1.1), std::invalid_argument);
    BOOST_CHECK_THROW(pawl::retry_budget(0.1, -1), std::invalid_argument);
    BOOST_TEST(w.started.empty());
    BOOST_TEST(w.context.poll() == 0u);
}

BOOST_AUTO_TEST_CASE(an_error_code_that_the_function_throws_is_the_failure_of_its_attempt) {
    world w{.script = {{0ms}}};
    pawl::retry(
        w.context, policy{.max_attempts = 4},
        [&](attempt a) {
            if (a.number() == 1)
                throw system_error(refused);
            if (a.number() == 2)
                throw std::system_error(make_error_code(std::errc::connection_refused));
            if (a.number() == 3) // as awaitable_operators do
                throw asio::multiple_exceptions(std::make_exception_ptr(system_error(refused)));
            return w.operation(a);
        },
        w.token());
    BOOST_TEST(w.out.calls == 0);
    w.finish();
    BOOST_TEST(w.out.is({}, 4));
}

struct odd {};

BOOST_AUTO_TEST_CASE(another_exception_in_the_first_attempt_leaves_the_initiating_function) {
    world w{.script = {{0ms}}};
    const auto op = [&](attempt a) {
        if (a.number() == 1)
            throw odd();
        return w.operation(a);
    };
    BOOST_CHECK_THROW(pawl::retry(w.context, policy{}, op, w.token()), odd);
    w.finish();
    BOOST_TEST(w.out.calls == 0);
}

BOOST_AUTO_TEST_CASE(what_a_function_throws_is_the_result_of_attempts_whose_error_is_an_exception) {
    asio::io_context context;
    const auto throws = [](attempt) -> asio::awaitable<int> { throw odd(); };
    int calls = 0;
    const auto expect_odd = [&calls](const std::exception_ptr& e, int) {
        ++calls;
        BOOST_REQUIRE(e);
        BOOST_CHECK_THROW(std::rethrow_exception(e), odd);
    };
    pawl::retry(context, policy{}, throws, expect_odd);
    pawl::hedge(context.get_executor(), hedge_policy{10ms}, throws, expect_odd);
    BOOST_TEST(calls == 0);
    for (pass(context); !context.stopped(); pass(context))
        manual_clock::advance_to_next(context);
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(an_operation_that_throws_may_have_kept_or_called_its_handler) {
    for (const bool called : {false, true}) {
        asio::io_context context;
        outcome out;
        std::function<void()> succeed;
        const auto op = [&](attempt) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code, int)>(
                [&](auto handler) {
                    auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                    succeed = [kept] { std::move (*kept)(error_code(), 7); };
                    if (called)
                        succeed();
                    throw odd();
                },
                asio::deferred);
        };
        BOOST_CHECK_THROW(pawl::retry(context, policy{}, op, out.record()), odd);
        BOOST_TEST(out.calls == 0);
        if (!called)
            succeed();
        pass(context);
        BOOST_TEST(out.is({}, 7));
    }
}

/// A result that cannot be moved once.
struct stuck {
    explicit stuck(bool is = false) : sticks(is) {}
    stuck(stuck&& other) : sticks(false) {
        if (other.sticks)
            throw odd();
    }
    stuck& operator=(stuck&&) = default;
    bool sticks;
};

BOOST_AUTO_TEST_CASE(a_result_that_cannot_be_moved_leaves_nothing_behind) {
    asio::io_context context;
    int calls = 0;
    const auto kept = std::make_shared<int>();
    const auto now = [](auto handler) { std::move(handler)(error_code(), stuck(true)); };
    const auto later = [&context](auto handler) {
        asio::post(context,
                   [h = std::move(handler)]() mutable { std::move(h)(error_code(), stuck(true)); });
    };
    const auto op = [](auto& start) {
        return [&start](attempt) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code, stuck)>(
                start, asio::deferred);
        };
    };
    const auto handler = [&calls, kept](error_code ec, const stuck&) { calls += ec == aborted; };
    BOOST_CHECK_THROW(pawl::retry(context, policy{}, op(now), handler), odd);
    pass(context);
    BOOST_TEST(calls == 0);
    pawl::hedge(context, hedge_policy{10ms}, op(later), handler);
    BOOST_CHECK_THROW(pass(context), odd);
    pass(context);
    BOOST_TEST(calls == 1);
    BOOST_TEST(kept.use_count() == 2);
}

BOOST_AUTO_TEST_CASE(another_exception_later_leaves_run_and_the_handler_gets_the_last_failure) {
    world w{.script = {{0ms, refused}}};
    const auto op = [&](attempt a) {
        if (a.number() == 2)
            throw odd();
        return w.operation(a);
    };
    pawl::retry(w.context, policy{}, op, w.token());
    BOOST_CHECK_THROW(w.finish(), odd);
    w.finish();
    BOOST_TEST(w.out.is(refused));
}

BOOST_AUTO_TEST_CASE(if_the_predicate_throws_the_handler_gets_the_result) {
    world w{.script = {{0ms, refused}}};
    w.retry({.retry_if = [](error_code) -> bool { throw odd(); }});
    BOOST_CHECK_THROW(w.finish(), odd);
    w.finish();
    BOOST_TEST(w.out.is(refused));
}

BOOST_AUTO_TEST_CASE(
    an_operation_that_completes_within_its_start_does_not_complete_within_the_call) {
    asio::io_context context;
    outcome out;
    int attempts = 0;
    const auto op = [&](attempt a) {
        ++attempts;
        return asio::deferred.values(a.number() < 3 ? refused : error_code(),
                                     static_cast<int>(a.number()));
    };
    pawl::retry(context, policy{}, op, out.record());
    BOOST_TEST(out.calls == 0);
    for (pass(context); !context.stopped(); pass(context))
        manual_clock::advance_to_next(context);
    BOOST_TEST(out.is({}, 3));
    BOOST_TEST(attempts == 3);

    out = {};
    pawl::retry(
        context, policy{}, [](attempt) { return asio::deferred.values(error_code(), 7); },
        out.record());
    BOOST_TEST(out.calls == 0);
    pass(context);
    BOOST_TEST(out.is({}, 7));
}

// --- coroutines, and lifetime --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(coroutines_await_it_and_are_attempts) {
    asio::io_context context;
    int result = 0;
    error_code other;
    const auto ask = [](attempt a) -> asio::awaitable<int> {
        co_await pawl::sleep_for<manual_clock>(10ms);
        if (a.number() < 3)
            throw system_error(refused);
        co_return static_cast<int>(a.number());
    };
    const auto run = [&]() -> asio::awaitable<void> {
        result = co_await pawl::retry(policy{.attempt_limit = 1s}, ask);
        try {
            co_await pawl::retry(policy{.max_attempts = 2, .attempt_limit = 1s},
                                 [](attempt) -> asio::awaitable<void> {
                                     co_await pawl::sleep_for<manual_clock>(1h);
                                 });
        } catch (const system_error& e) {
            other = e.code();
        }
        try { // no code: no retry
            co_await pawl::retry(policy{}, [](attempt a) -> asio::awaitable<void> {
                BOOST_TEST(a.number() == 1u);
                throw odd();
                co_return;
            });
            BOOST_TEST(false);
        } catch (const odd&) {
        }
    };
    asio::co_spawn(context, run(), [](std::exception_ptr e) { BOOST_TEST(!e); });
    for (pass(context); !context.stopped(); pass(context))
        manual_clock::advance_to_next(context);
    BOOST_TEST(result == 3);
    BOOST_TEST(other == timed_out);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_is_cancelled_in_a_pause_ends_with_operation_aborted) {
    asio::io_context context;
    asio::cancellation_signal stop;
    std::optional<error_code> result;
    const auto run = [&]() -> asio::awaitable<void> {
        co_await pawl::retry(policy{.first = 1h, .cap = 1h}, [](attempt) -> asio::awaitable<void> {
            throw system_error(refused);
            co_return;
        });
    };
    asio::co_spawn(context, run(),
                   asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) {
                       result = pawl::detail::code_of(e);
                   }));
    pass(context);
    BOOST_TEST(!result);
    stop.emit(asio::cancellation_type::terminal);
    pass(context);
    BOOST_TEST((result == aborted));
}

BOOST_AUTO_TEST_CASE(the_context_may_be_destroyed_at_any_point) {
    for (const auto passes :
         {0ms, 5ms, 50ms}) { // posted or in the attempt, in the pause, in the second attempt
        for (const auto limit : {policy::never, std::chrono::nanoseconds(1h)}) {
            const auto alive = std::make_shared<int>();
            {
                world w{.script = {{1ms, refused}, {1h}}};
                const policy p{
                    .first = 20ms, .jitter = pawl::retry_jitter::none, .attempt_limit = limit};
                pawl::retry(w.context, p, w.op(),
                            [alive, f = w.out.record()](error_code ec, int v) { f(ec, v); });
                pass(w.context, 1ms);
                pass(w.context, passes);
                pass(w.context, passes);
                BOOST_TEST(w.out.calls == 0);
                BOOST_TEST(alive.use_count() == 2);
            }
            BOOST_TEST(alive.use_count() == 1);
        }
    }
}

BOOST_AUTO_TEST_CASE(
    its_one_block_comes_from_the_handlers_allocator_and_is_free_before_the_handler_runs) {
    asio::io_context context;
    pawl_test::allocation_log log;
    std::size_t live = 99;
    int calls = 0;
    const auto op = [&](attempt) {
        return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
            [&](auto handler) {
                asio::post(context, asio::append(std::move(handler), error_code()));
            },
            asio::deferred);
    };
    const auto start = [&] {
        pawl::retry(context, policy{}, op,
                    asio::bind_allocator(pawl_test::counting_allocator<void>(log), [&](error_code) {
                        ++calls;
                        live = log.live();
                    }));
    };
    start();
    BOOST_TEST(log.live() > 0u);
    context.run();
    BOOST_TEST(calls == 1);
    BOOST_TEST(live == 0u);
    for (std::size_t most = 0; most < 3; ++most) { // any failure: thrown, and nothing leaks
        log = {};
        log.most = most;
        context.restart();
        try {
            start();
        } catch (const std::bad_alloc&) {
        }
        context.run();
        BOOST_TEST(log.live() == 0u);
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(several_threads_may_run_the_context_without_a_strand) {
    asio::thread_pool pool(3);
    std::atomic<int> ended{0};
    for (int i = 0; i < 300; ++i) {
        const auto op = [&pool](pawl::attempt a) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
                [&pool, n = a.number()](auto handler) {
                    asio::post(pool,
                               asio::append(std::move(handler), n < 3 ? refused : error_code()));
                },
                asio::deferred);
        };
        pawl::retry(pool, pawl::retry_policy{.first = 1us, .cap = 1us}, op,
                    [&](error_code ec) { ended += !ec; });
    }
    pool.join();
    BOOST_TEST(ended == 300);
}

// --- hedge ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_fast_attempt_has_no_second_one) {
    const auto begin = manual_clock::now();
    world w{.script = {{9ms}}};
    w.hedge({10ms});
    BOOST_TEST(w.started.empty()); // never within the call
    w.finish();
    BOOST_TEST(w.out.is({}, 1));
    BOOST_TEST((w.out.when - begin == 9ms)); // the delay keeps nothing waiting
    BOOST_TEST(w.started.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_slow_attempt_has_a_second_one_and_the_first_success_wins) {
    world w{.script = {{1h}, {5ms}}};
    w.hedge({10ms});
    pass(w.context);
    pass(w.context, 10ms - 1ns);
    BOOST_TEST(w.started.size() == 1u);
    pass(w.context, 1ns);
    BOOST_TEST(w.started.size() == 2u);
    pass(w.context, 5ms);
    BOOST_TEST(w.out.is({}, 2));
    BOOST_TEST(w.cancelled == 1); // and awaited
    BOOST_TEST(w.running == 0);

    world first{.script = {{12ms}, {1h}}};
    first.hedge({10ms});
    first.finish();
    BOOST_TEST(first.out.is({}, 1));
    BOOST_TEST(first.cancelled == 1);
}

BOOST_AUTO_TEST_CASE(the_loser_is_awaited) {
    asio::io_context context;
    outcome out;
    std::vector<std::function<void(error_code)>> complete;
    const auto op = [&](attempt a) {
        return asio::async_initiate<const asio::deferred_t&, void(error_code, int)>(
            [&, n = static_cast<int>(a.number())](auto handler) {
                auto kept = std::make_shared<decltype(handler)>(std::move(handler));
                complete.push_back([kept, n](error_code ec) { std::move (*kept)(ec, n); });
            },
            asio::deferred);
    };
    pawl::hedge(context.get_executor(), hedge_policy{}, op, out.record());
    pass(context);
    BOOST_TEST(complete.size() == 2u); // no delay: both at once
    complete[1]({});
    BOOST_TEST(out.calls == 0);
    complete[0]({});
    BOOST_TEST(out.is({}, 2));
}

BOOST_AUTO_TEST_CASE(a_failure_waits_for_the_other_attempt) {
    world w{.script = {{20ms, refused}, {30ms}}};
    w.hedge({10ms});
    w.finish();
    BOOST_TEST(w.out.is({}, 2));

    world both{.script = {{20ms, refused}, {30ms, final_error}}};
    both.hedge({10ms});
    both.finish();
    BOOST_TEST(both.out.is(final_error)); // the later one
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_before_the_delay_is_the_result) {
    world w{.script = {{5ms, refused}}};
    w.hedge({10ms});
    w.finish();
    BOOST_TEST(w.out.is(refused));
    BOOST_TEST(w.started.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_budget_pays_for_the_second_attempt) {
    pawl::retry_budget budget(0.25, 1);
    world w{.script = {{20ms}}};
    int seconds = 0;
    for (int i = 0; i < 9; ++i) {
        w.out = {};
        w.started.clear();
        w.hedge({10ms, &budget});
        w.finish();
        BOOST_TEST(w.out.calls == 1);
        seconds += w.started.size() == 2;
    }
    BOOST_TEST(seconds == 3); // the reserve, and two for eight requests
}

BOOST_AUTO_TEST_CASE(a_cancellation_reaches_both_attempts_and_no_other_is_made) {
    for (const auto when : {0ms, 5ms, 15ms}) {
        for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                                asio::cancellation_type::total}) {
            world w{.script = {{1h}}};
            w.hedge({10ms});
            if (when != 0ms)
                pass(w.context);
            pass(w.context, when);
            w.cancel(type);
            pass(w.context, 10ms);
            BOOST_TEST(w.out.is(aborted));
            BOOST_TEST(w.cancelled == (when == 15ms ? 2 : 1));
        }
    }
    world before{.script = {{1h}}};
    before.hedge({10ms});
    before.cancel(); // before it has begun
    BOOST_TEST(before.out.is(aborted));
    BOOST_TEST(before.started.empty());
}

BOOST_AUTO_TEST_CASE(what_the_function_of_a_hedge_throws_is_a_failure_or_leaves_run) {
    world w{.script = {{20ms}}};
    const auto second_throws = [&](attempt a) {
        if (a.number() == 2)
            throw system_error(refused);
        return w.operation(a);
    };
    pawl::hedge(w.context.get_executor(), hedge_policy{10ms}, second_throws, w.token());
    w.finish();
    BOOST_TEST(w.out.is({}, 1));

    world oddly{.script = {{20ms}}};
    const auto throws_oddly = [&](attempt a) {
        if (a.number() == 1)
            throw odd();
        return oddly.operation(a);
    };
    pawl::hedge(oddly.context.get_executor(), hedge_policy{10ms}, throws_oddly, oddly.token());
    BOOST_CHECK_THROW(oddly.finish(), odd);
    oddly.finish();
    BOOST_TEST(oddly.out.is(aborted));

    world first_wins{.script = {{20ms}}}; // the odd exception is a failure of its attempt alone
    const auto second_throws_oddly = [&](attempt a) {
        if (a.number() == 2)
            throw odd();
        return first_wins.operation(a);
    };
    pawl::hedge(first_wins.context.get_executor(), hedge_policy{10ms}, second_throws_oddly,
                first_wins.token());
    BOOST_CHECK_THROW(first_wins.finish(), odd);
    first_wins.finish();
    BOOST_TEST(first_wins.out.is({}, 1));
}

BOOST_AUTO_TEST_CASE(an_attempt_of_a_hedge_that_is_dropped_leaves_the_failure_of_the_other) {
    for (const bool memory : {true, false}) {
        asio::io_context context;
        pawl_test::allocation_log log;
        outcome out;
        std::vector<std::function<void(bool)>> end; // calls the handler, or destroys it
        const auto op = [&](attempt) {
            return asio::async_initiate<const asio::deferred_t&, void(error_code, int)>(
                [&](auto handler) {
                    using kept = std::optional<decltype(handler)>;
                    end.emplace_back([h = std::make_shared<kept>(std::move(handler))](bool call) {
                        if (call)
                            std::move (**h)(refused, 0);
                        h->reset();
                    });
                },
                asio::deferred);
        };
        pawl::hedge(context, hedge_policy{10ms}, op,
                    asio::bind_allocator(pawl_test::counting_allocator<void>(log), out.record()));
        pass(context);
        pass(context, 10ms);
        BOOST_REQUIRE(end.size() == 2u);
        end[0](true);
        log.fail = !memory;
        end[1](false);
        log.fail = false;
        pass(context);
        BOOST_TEST((memory ? out.is(refused) : out.calls == 0));
        BOOST_TEST(log.live() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(an_attempt_of_a_hedge_may_give_a_hint_as_long_as_it_runs) {
    asio::io_context context;
    int result = 0;
    const auto late_hint = [](attempt a) -> asio::awaitable<int> {
        co_await pawl::sleep_for<manual_clock>(1ms);
        a.retry_after(1h); // was written to the stack of a function that had returned
        co_return 7;
    };
    pawl::hedge(context.get_executor(), hedge_policy{10ms}, late_hint,
                [&](std::exception_ptr e, int v) { result = e ? -1 : v; });
    pass(context, 1ms);
    pass(context, 1ms);
    BOOST_TEST(result == 7);
}

BOOST_AUTO_TEST_CASE(a_hedge_is_an_attempt_of_a_retry_and_coroutines_await_it) {
    asio::io_context context;
    int result = 0;
    int asked = 0;
    const auto run = [&]() -> asio::awaitable<void> {
        result = co_await pawl::retry(policy{}, [&](attempt) {
            return pawl::hedge(hedge_policy{10ms}, [&](attempt) -> asio::awaitable<int> {
                const int n = ++asked;
                if (n == 1)
                    throw system_error(refused);
                co_await pawl::sleep_for<manual_clock>(n == 2 ? 1h : 1ms);
                co_return n;
            });
        });
    };
    asio::co_spawn(context, run(), [](std::exception_ptr e) { BOOST_TEST(!e); });
    for (pass(context); !context.stopped(); pass(context))
        manual_clock::advance_to_next(context);
    BOOST_TEST(result == 3);
}

BOOST_AUTO_TEST_CASE(the_context_may_be_destroyed_at_any_point_of_a_hedge) {
    for (const auto passes : {-1ms, 0ms, 5ms, 15ms}) {
        const auto alive = std::make_shared<int>();
        {
            world w{.script = {{1h}}};
            pawl::hedge(w.context.get_executor(), hedge_policy{10ms}, w.op(),
                        asio::bind_cancellation_slot(
                            w.stop.slot(),
                            [alive, f = w.out.record()](error_code ec, int v) { f(ec, v); }));
            if (passes >= 0ms)
                pass(w.context);
            pass(w.context, passes);
            BOOST_TEST(w.out.calls == 0);
        }
        BOOST_TEST(alive.use_count() == 1);
    }
}

// --- at random -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(at_random_each_operation_ends_once_in_its_bounds) {
    std::mt19937_64 random(pawl_test::seed());
    const auto upto = [&](int n) {
        return static_cast<int>(random() % static_cast<unsigned>(n + 1));
    };
    for (auto steps = pawl_test::steps(2000); steps != 0; --steps) {
        world w;
        for (int i = 0; i < 4; ++i)
            w.script.push_back({upto(20) * 1ms, upto(2) != 0   ? refused
                                                : upto(4) != 0 ? error_code()
                                                               : final_error});
        pawl::retry_budget budget(0.5, upto(3));
        const policy p{.first = 1ms + upto(9) * 1ms,
                       .cap = 10ms + upto(10) * 1ms,
                       .jitter = static_cast<pawl::retry_jitter>(upto(2)),
                       .max_attempts = static_cast<unsigned>(1 + upto(4)),
                       .attempt_limit = upto(1) != 0 ? policy::never : 1ms + upto(20) * 1ms,
                       .limit = upto(1) != 0 ? policy::never : upto(80) * 1ms,
                       .budget = upto(1) != 0 ? &budget : nullptr,
                       .seed = random()};
        const bool hedges = upto(2) == 0;
        const auto begin = manual_clock::now();
        if (hedges)
            w.hedge({upto(15) * 1ms, p.budget});
        else
            w.retry(p);
        const bool cancels = upto(2) == 0; // after a leap of the clock
        if (cancels) {
            pass(w.context, upto(30) * 1ms);
            w.cancel();
        }
        w.finish();
        BOOST_TEST_REQUIRE(w.out.calls == 1);
        BOOST_TEST_REQUIRE(w.running == 0);
        BOOST_TEST_REQUIRE(w.started.size() <= (hedges ? 2 : p.max_attempts));
        if (!hedges && !cancels && p.limit != policy::never)
            BOOST_TEST_REQUIRE((w.out.when - begin <= p.limit));
    }
}

} // namespace
