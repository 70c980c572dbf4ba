// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The frame of the contract suite: one source, compiled for boost::asio::steady_timer
//   (PAWL_UNDER_TEST_ASIO=1), for pawl::steady_timer, for pawl::compact_timer
//   (PAWL_UNDER_TEST_COMPACT=1), for pawl::ring_timer (PAWL_UNDER_TEST_RING=1), and for
//   pawl::coarse_timer (PAWL_UNDER_TEST_COARSE=1). Each test names the row C1..C42 of the contract
//   that it pins. Intended differences of Pawl are marked with by_design(pawl, asio) or `if
//   constexpr (under_test_is_pawl)`, those of rings with for_rings(rings, others) or `if constexpr
//   (rings_under_test)`; doc/contract.md lists them.
//
//   A ring timer only serves delays that its context was given in advance. So with rings,
//   io_context, thread_pool and manual_context are contexts that have been given some.
//
// Model
//   No test asserts an upper bound on real time. `patience` only guards against hangs.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_SUPPORT_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_SUPPORT_HPP

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"
#include "../support/sanitized.hpp"
#include "../support/seed.hpp"

#if defined(PAWL_UNDER_TEST_ASIO) && PAWL_UNDER_TEST_ASIO
#include <boost/asio/high_resolution_timer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_timer.hpp>
#else
#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/high_resolution_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/system_timer.hpp>
#endif

#if defined(PAWL_UNDER_TEST_RING) && PAWL_UNDER_TEST_RING
#include <pawl/ring_timer.hpp>

#include <boost/asio/thread_pool.hpp>
#endif

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace contract {

using boost::system::error_code;
using namespace std::chrono_literals;
using namespace pawl_test;
using clock = std::chrono::steady_clock;

#if defined(PAWL_UNDER_TEST_RING) && PAWL_UNDER_TEST_RING
inline constexpr bool rings_under_test = true;

/// The delays of the rings. Any other delay uses the next longer ring.
inline constexpr std::chrono::nanoseconds longest_delay = 10'000h;
inline constexpr std::chrono::nanoseconds ring_delays[] = {1ms,   10ms, 100ms, 1s,  1min,
                                                           10min, 1h,   2h,    24h, longest_delay};

/// The latest expiry that a timer can have.
inline clock::time_point latest() { return clock::now() + longest_delay; }

/// Makes the services of these timers.
template <typename... Timers>
void give_rings(boost::asio::execution_context& context) {
    pawl::options o;
    o.rings.round_up = true;
    for (const auto delay : ring_delays)
        o.rings.delays.push_back({.delay = delay, .capacity = 8}); // grows where a test needs more
    (pawl::make_timer_service<Timers>(context, o), ...);
}

/// A context with rings for these timers.
template <typename Context, typename... Timers>
class with_rings : public Context {
public:
    using Context::Context;

private:
    struct services {
        explicit services(boost::asio::execution_context& context) {
            give_rings<Timers...>(context);
        }
    };
    services services_{*this};
};

/// Boost's namespace, except for the contexts.
namespace asio {
using namespace boost::asio;
using io_context = with_rings<boost::asio::io_context, pawl::ring_timer>;
using thread_pool = with_rings<boost::asio::thread_pool, pawl::ring_timer>;
} // namespace asio
using manual_context = with_rings<pawl_test::manual_context, pawl::ring_timer>;

/// An io_context that also serves other timers.
template <typename... Timers>
using io_context_for = with_rings<asio::io_context, Timers...>;
#else
namespace asio = boost::asio;
inline constexpr bool rings_under_test = false;

inline clock::time_point latest() { return clock::time_point::max(); }

template <typename...>
void give_rings(asio::execution_context&) {}

template <typename...>
using io_context_for = asio::io_context;
#endif

#if defined(PAWL_UNDER_TEST_ASIO) && PAWL_UNDER_TEST_ASIO
namespace tut = boost::asio;
using steady_traits = asio::wait_traits<std::chrono::steady_clock>;
inline constexpr bool under_test_is_pawl = false;
#elif (defined(PAWL_UNDER_TEST_COMPACT) && PAWL_UNDER_TEST_COMPACT) ||                             \
    (defined(PAWL_UNDER_TEST_RING) && PAWL_UNDER_TEST_RING)
/// The same timers on the wheel of compact_timer, or in rings.
namespace tut {
#if defined(PAWL_UNDER_TEST_RING) && PAWL_UNDER_TEST_RING
/// C40: a service with rings compiles for these clocks only. Other clocks use the default wheel.
template <class Clock>
inline constexpr bool can_have_rings =
    Clock::is_steady && std::is_same_v<typename Clock::duration, std::chrono::nanoseconds>;
template <class Clock, class Traits>
using traits_on_backend =
    std::conditional_t<can_have_rings<Clock>, pawl::on_backend<pawl::time::timeout_rings, Traits>,
                       Traits>;
using typedef_of_pawl = pawl::ring_timer;
#else
template <class, class Traits>
using traits_on_backend = pawl::on_backend<pawl::time::binary_wheel, Traits>;
using typedef_of_pawl = pawl::compact_timer;
#endif
template <class Clock, class Traits = asio::wait_traits<Clock>,
          class Executor = asio::any_io_executor>
using basic_waitable_timer =
    pawl::basic_waitable_timer<Clock, traits_on_backend<Clock, Traits>, Executor>;
using steady_timer = basic_waitable_timer<std::chrono::steady_clock>;
static_assert(std::is_same_v<steady_timer, typedef_of_pawl>);
using system_timer = basic_waitable_timer<std::chrono::system_clock>;
using high_resolution_timer = basic_waitable_timer<std::chrono::high_resolution_clock>;
using namespace pawl;
} // namespace tut
using steady_traits = tut::steady_timer::traits_type;
inline constexpr bool under_test_is_pawl = true;
#elif defined(PAWL_UNDER_TEST_COARSE) && PAWL_UNDER_TEST_COARSE
/// The coarse clock in place of the steady one; both have the same time points.
namespace tut {
template <class Clock>
inline constexpr bool is_steady_clock = std::is_same_v<Clock, std::chrono::steady_clock>;
template <class Clock, class Traits>
using traits_on_clock =
    std::conditional_t<is_steady_clock<Clock> && std::is_same_v<Traits, asio::wait_traits<Clock>>,
                       asio::wait_traits<pawl::coarse_clock>, Traits>;
template <class Clock, class Traits = asio::wait_traits<Clock>,
          class Executor = asio::any_io_executor>
using basic_waitable_timer = pawl::basic_waitable_timer<
    std::conditional_t<is_steady_clock<Clock>, pawl::coarse_clock, Clock>,
    traits_on_clock<Clock, Traits>, Executor>;
using steady_timer = basic_waitable_timer<std::chrono::steady_clock>;
static_assert(std::is_same_v<steady_timer, pawl::coarse_timer>);
using namespace pawl;
} // namespace tut
using steady_traits = tut::steady_timer::traits_type;
inline constexpr bool under_test_is_pawl = true;
#else
namespace tut = pawl;
using steady_traits = asio::wait_traits<std::chrono::steady_clock>;
inline constexpr bool under_test_is_pawl = true;
#endif

/// The clock of steady_timer.
#if defined(PAWL_UNDER_TEST_COARSE) && PAWL_UNDER_TEST_COARSE
using steady_clock = pawl::coarse_clock;
/// How much longer than requested a delay may be.
inline const clock::duration delay_is_longer_by = 3 * pawl::coarse_clock::resolution();
#else
using steady_clock = clock;
inline constexpr clock::duration delay_is_longer_by{0};
#endif

/// The timer under test for an executor type.
template <typename Executor>
using timer_on = tut::basic_waitable_timer<clock, asio::wait_traits<clock>, Executor>;

/// The two sides of an intended difference.
template <typename T>
constexpr T by_design(T pawl, [[maybe_unused]] T asio) {
    if constexpr (under_test_is_pawl)
        return pawl;
    else
        return asio;
}

/// The value with rings, and the value with all others.
template <typename T>
constexpr T for_rings([[maybe_unused]] T rings, T others) {
    if constexpr (rings_under_test)
        return rings;
    else
        return others;
}

inline constexpr std::size_t none = 0;
inline constexpr std::size_t one = 1;

/// How long a test waits for an event before it reports a hang.
inline const auto patience = pawl_test::patience_or(10s);

/// The outcome of a wait.
enum class fate { pending, success, aborted, strange_code, completed_twice };

inline std::ostream& operator<<(std::ostream& out, fate f) {
    constexpr const char* names[] = {"pending", "success", "aborted", "strange code",
                                     "completed twice"};
    return out << names[static_cast<int>(f)];
}

inline fate fate_of(const error_code& code) {
    if (code == error_code())
        return fate::success;
    return code == asio::error::operation_aborted ? fate::aborted : fate::strange_code;
}

inline void settle(fate& f, const error_code& code) {
    f = f == fate::pending ? fate_of(code) : fate::completed_twice;
}

/// A handler that records the fate of its wait.
inline auto record(fate& f) {
    return [&f](error_code code) { settle(f, code); };
}

/// The same, and also records its place in the order of handlers.
inline auto record(fate& f, std::string& order, char name) {
    return [&f, &order, name](error_code code) {
        settle(f, code);
        order += name;
    };
}

inline auto record(std::string& order, char name) {
    return [&order, name](error_code) { order += name; };
}

inline auto say(std::string& order, char name) {
    return [&order, name] { order += name; };
}

/// For waits whose outcome is not the subject.
inline constexpr auto ignore = [](error_code) {};

inline clock::time_point past() { return clock::now() - 1s; }
inline clock::time_point future() { return clock::now() + 1h; }

/// run() until it returns by itself. Returns the number of units.
inline std::size_t run_to_end(asio::io_context& context) {
    context.restart();
    const std::size_t units = context.run_for(patience);
    BOOST_REQUIRE_MESSAGE(context.stopped(), "run() does not return: work is left over");
    return units;
}

/// Unit after unit until the condition holds.
template <typename Condition>
void run_until(asio::io_context& context, Condition condition) {
    const auto limit = clock::now() + patience;
    while (!condition()) {
        BOOST_REQUIRE_MESSAGE(clock::now() < limit, "what was waited for does not happen");
        if (context.stopped())
            context.restart();
        context.run_one_for(5ms);
    }
}

/// Runs everything that is ready. True if work is left.
inline bool busy_after_poll(asio::io_context& context) {
    context.restart();
    context.poll();
    return !context.stopped();
}

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_SUPPORT_HPP
