// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Retries with exponential backoff and full jitter; each attempt has a limit, and so has the whole.
// Full jitter: a pause is random, between zero and a ceiling that doubles, so that clients which
// failed together do not return together. All clients share a budget, so that retries do not add
// more than a tenth to the load of a service that fails.
//
// The clock is a template parameter: pawl::retry_policy is on the steady clock, here it is
// pawl::manual_clock.

#include "support.hpp"

#include <pawl/manual_clock.hpp>
#include <pawl/retry.hpp>
#include <pawl/sleep.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
using cookbook::check;
using namespace std::chrono_literals;

template <class Clock>
pawl::basic_retry_policy<Clock> patient(std::chrono::nanoseconds limit,
                                        pawl::retry_budget& budget) {
    return {.first = 100ms, // then 200 ms, 400 ms, ...
            .cap = 5s,
            .max_attempts = pawl::retry_policy::unlimited,
            .attempt_limit = 2s,
            .limit = limit,
            .budget = &budget};
}

template <class Clock, class Service>
asio::awaitable<int> ask_until_it_answers(pawl::basic_retry_policy<Clock> policy,
                                          Service& service) {
    co_return co_await pawl::retry(policy,
                                   [&](pawl::basic_attempt<Clock>) { return service.ask(); });
}

// --- a service that fails ------------------------------------------------------------------------

using pawl::manual_clock;
using policy = pawl::basic_retry_policy<manual_clock>;
using time_point = manual_clock::time_point;

/// Takes 10 ms per answer. The first answers are failures.
struct service {
    int failures;
    error_code failure = asio::error::connection_refused;
    std::vector<time_point> asked{};

    asio::awaitable<int> ask() {
        asked.push_back(manual_clock::now());
        co_await pawl::sleep_until(manual_clock::now() + 10ms);
        if (static_cast<int>(asked.size()) <= failures)
            throw system_error(failure);
        co_return 42;
    }
};

struct silent_service {
    std::vector<time_point> asked{};

    asio::awaitable<int> ask() {
        asked.push_back(manual_clock::now());
        co_await pawl::sleep_until(time_point::max());
        co_return 0;
    }
};

struct client {
    asio::io_context context{};
    asio::cancellation_signal stop{};
    pawl::retry_budget budget{0.1, 1000};
    time_point start = manual_clock::now();
    bool ended = false;
    error_code ending{};
    int result = 0;

    template <class Service>
    void begin(std::chrono::nanoseconds limit, Service& s) {
        begin(patient<manual_clock>(limit, budget), s);
    }
    template <class Service>
    void begin(const policy& p, Service& s) {
        asio::co_spawn(context, ask_until_it_answers(p, s),
                       asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e, int r) {
                           ending = cookbook::code_of(e);
                           result = r;
                           ended = true;
                           std::cout << "after " << (manual_clock::now() - start) / 1ms
                                     << " ms: " << ending.message() << '\n';
                       }));
        cookbook::pass(context, 0s);
    }

    void cancel() {
        stop.emit(asio::cancellation_type::terminal);
        cookbook::pass(context, 0s);
    }
};

void a_service_that_recovers_is_asked_until_it_answers() {
    client c;
    service s{.failures = 9};
    c.begin(1min, s);
    cookbook::pass_all(c.context);

    check(!c.ending && c.result == 42 && s.asked.size() == 10,
          "the tenth attempt brings the answer");
    bool in_bounds = true;
    std::chrono::nanoseconds ceiling = 100ms;
    for (std::size_t i = 1; i != s.asked.size();
         ++i, ceiling = std::min(ceiling * 2, 5'000'000'000ns)) {
        const auto pause = s.asked[i] - s.asked[i - 1] - 10ms;
        std::cout << "  a pause of " << pause / 1ms << " ms, at most " << ceiling / 1ms << " ms\n";
        in_bounds = in_bounds && pause >= 0s && pause <= ceiling;
    }
    check(in_bounds, "no pause is longer than its ceiling, which doubles up to the cap");
}

void the_deadline_ends_it() {
    client c;
    service s{.failures = 1000};
    c.begin(3s, s);
    cookbook::pass_all(c.context);

    check(c.ending == asio::error::connection_refused, "at the end the last failure is reported");
    check(manual_clock::now() - c.start <= 3s,
          "by the deadline: no pause that would pass it begins");
}

void an_attempt_has_a_limit_too() {
    client c;
    silent_service s;
    c.begin(5s, s);
    cookbook::pass_all(c.context);

    check(s.asked.size() >= 2, "an attempt that gets no answer is given up, and another one made");
    check(c.ending == pawl::error::timed_out && manual_clock::now() - c.start <= 5s,
          "and all is over by the deadline");
}

void a_cancellation_is_no_failure() {
    client in_pause;
    service refusing{.failures = 1000};
    in_pause.begin(1min, refusing);
    cookbook::pass(in_pause.context, 10ms); // the first attempt has failed
    in_pause.cancel();
    check(in_pause.ended && in_pause.ending == asio::error::operation_aborted,
          "cancelled in a pause it ends at once");

    client in_attempt;
    silent_service silent;
    in_attempt.begin(1min, silent);
    in_attempt.cancel();
    check(in_attempt.ended && in_attempt.ending == asio::error::operation_aborted,
          "cancelled in an attempt it ends at once");
    check(refusing.asked.size() == 1 && silent.asked.size() == 1, "and makes no other attempt");
}

void some_failures_are_final() {
    client c;
    service s{.failures = 1000, .failure = asio::error::access_denied};
    c.begin(1min, s);
    cookbook::pass_all(c.context);

    check(c.ending == asio::error::access_denied && s.asked.size() == 1,
          "an error that no pause can fix is not tried again");
}

void no_time_and_no_pause() {
    client c;
    service s{.failures = 0};
    c.begin(0s, s);
    check(c.ending == pawl::error::timed_out && s.asked.empty(),
          "with a limit of zero no attempt is made");

    client refused;
    try {
        pawl::retry(
            refused.context, policy{.first = 0s},
            [&](pawl::basic_attempt<manual_clock>) { return s.ask(); }, asio::detached);
        check(false, "a first pause of zero is refused");
    } catch (const std::invalid_argument& e) {
        check(s.asked.empty(), e.what());
    }
}

void a_budget_protects_a_service_that_fails() {
    pawl::retry_budget budget(0.1, 10);
    service s{.failures = 1'000'000};
    asio::io_context context;
    for (int i = 0; i != 1000; ++i)
        asio::co_spawn(context, ask_until_it_answers(patient<manual_clock>(1min, budget), s),
                       asio::detached);
    cookbook::pass_all(context);
    check(s.asked.size() <= 1000 + 10 + 100,
          "1000 requests that fail are 1110 attempts, not 20 times as many");
}

} // namespace

int main() {
    a_service_that_recovers_is_asked_until_it_answers();
    the_deadline_ends_it();
    an_attempt_has_a_limit_too();
    a_cancellation_is_no_failure();
    some_failures_are_final();
    no_time_and_no_pause();
    a_budget_protects_a_service_that_fails();
    return cookbook::exit_status();
}
