// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Retries with exponential backoff and full jitter; each attempt has a limit, and so has the whole.
// Full jitter: a pause is random, between zero and a ceiling that doubles, so that clients which failed
// together do not return together.
//
// The clock is a template parameter: std::chrono::steady_clock in a program, pawl::manual_clock here.

#include "support.hpp"

#include <pawl/deadline.hpp>
#include <pawl/error.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/sleep.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
using cookbook::check;
using namespace std::chrono_literals;

struct backoff {
    std::chrono::nanoseconds first = 100ms; ///< maximum of the first pause
    std::chrono::nanoseconds cap = 5s;      ///< maximum of any pause
    std::chrono::nanoseconds attempt = 2s;  ///< maximum of one attempt
};

/// Errors that may be temporary. Not operation_aborted: that is a request to end.
bool is_transient(error_code ec) {
    return ec == pawl::error::timed_out || ec == asio::error::connection_refused ||
           ec == asio::error::connection_reset || ec == asio::error::eof;
}

template <class Clock, class Attempt, class Random>
std::invoke_result_t<Attempt&> retry(pawl::basic_deadline<Clock> d, backoff b, Attempt attempt,
                                     Random& random) {
    if (b.first <= 0s)
        throw std::invalid_argument("backoff.first must be positive: there would be no pauses");
    for (auto ceiling = b.first;; ceiling *= 2) {
        error_code failure;
        try {
            co_return co_await pawl::timeout_at(d.within(b.attempt), attempt());
        } catch (const system_error& e) {
            failure = e.code();
        }
        ceiling = std::min(ceiling, b.cap);
        std::uniform_int_distribution<std::chrono::nanoseconds::rep> jitter(0, ceiling.count());
        const std::chrono::nanoseconds pause(jitter(random));
        if (!is_transient(failure) || pause >= d.remaining())
            throw system_error(failure);
        co_await pawl::sleep_until(Clock::now() + pause); // throws when it is cancelled
    }
}

// --- a service that fails ------------------------------------------------------------------------

using pawl::manual_clock;
using deadline = pawl::basic_deadline<manual_clock>;
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

    asio::awaitable<int> say_nothing() {
        asked.push_back(manual_clock::now());
        co_await pawl::sleep_until(time_point::max());
        co_return 0;
    }
};

struct client {
    asio::io_context context{};
    asio::cancellation_signal stop{};
    std::mt19937_64 random{20261121};
    time_point start = manual_clock::now();
    bool ended = false;
    error_code ending{};
    int result = 0;

    template <class Attempt>
    void begin(manual_clock::duration limit, Attempt attempt, backoff b = {}) {
        asio::co_spawn(context, retry(deadline::after(limit), b, attempt, random),
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
    c.begin(1min, [&] { return s.ask(); });
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
    c.begin(3s, [&] { return s.ask(); });
    cookbook::pass_all(c.context);

    check(c.ending == asio::error::connection_refused, "at the end the last failure is reported");
    check(manual_clock::now() - c.start <= 3s,
          "by the deadline: no pause that would pass it begins");
}

void an_attempt_has_a_limit_too() {
    client c;
    service s{.failures = 0};
    c.begin(5s, [&] { return s.say_nothing(); });
    cookbook::pass_all(c.context);

    check(s.asked.size() >= 2, "an attempt that gets no answer is given up, and another one made");
    check(c.ending == pawl::error::timed_out && manual_clock::now() - c.start <= 5s,
          "and all is over by the deadline");
}

void a_cancellation_is_no_failure() {
    client in_pause;
    service refusing{.failures = 1000};
    in_pause.begin(1min, [&] { return refusing.ask(); });
    cookbook::pass(in_pause.context, 10ms); // the first attempt has failed
    in_pause.cancel();
    check(in_pause.ended && in_pause.ending == asio::error::operation_aborted,
          "cancelled in a pause it ends at once");

    client in_attempt;
    service silent{.failures = 0};
    in_attempt.begin(1min, [&] { return silent.say_nothing(); });
    in_attempt.cancel();
    check(in_attempt.ended && in_attempt.ending == asio::error::operation_aborted,
          "cancelled in an attempt it ends at once");
    check(refusing.asked.size() == 1 && silent.asked.size() == 1, "and makes no other attempt");
}

void some_failures_are_final() {
    client c;
    service s{.failures = 1000, .failure = asio::error::access_denied};
    c.begin(1min, [&] { return s.ask(); });
    cookbook::pass_all(c.context);

    check(c.ending == asio::error::access_denied && s.asked.size() == 1,
          "an error that no pause can fix is not tried again");
}

void no_time_and_no_pause() {
    client c;
    service s{.failures = 0};
    c.begin(0s, [&] { return s.ask(); });
    check(c.ending == pawl::error::timed_out && s.asked.empty(),
          "with a limit of zero no attempt is made");

    try {
        client refused;
        refused.begin(1min, [&] { return s.ask(); }, {.first = 0s});
        check(false, "a first pause of zero is refused");
    } catch (const std::invalid_argument& e) {
        check(s.asked.empty(), e.what());
    }
}

} // namespace

int main() {
    a_service_that_recovers_is_asked_until_it_answers();
    the_deadline_ends_it();
    an_attempt_has_a_limit_too();
    a_cancellation_is_no_failure();
    some_failures_are_final();
    no_time_and_no_pause();
    return cookbook::exit_status();
}
