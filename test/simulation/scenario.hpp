// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The program of a simulation, as data: made from a seed, run by world, shrunk, printed as a
//   program.

#ifndef PAWL_TEST_SIMULATION_SCENARIO_HPP
#define PAWL_TEST_SIMULATION_SCENARIO_HPP

#include "simulation/clocks.hpp"
#include "simulation/executors.hpp"
#include "simulation/options.hpp"
#include "simulation/random.hpp"
#include "simulation/values.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace simulation {

/// The action of one step. An impossible action, for example without its timer, is skipped. Threads
/// make some of these calls, too, and tell their ledgers which.
enum class op : std::uint8_t {
    // timers
    make,           ///< a timer of `type` in slot `object`, on `executor` of `context`, by `thread`
    destroy,        ///< the timer
    move,           ///< constructs the timer `object` from the timer `other`
    assign,         ///< assigns the timer `other` to the timer `object`
    expires_after,  ///< `time`
    expires_at,     ///< now and `time`
    expires_within, ///< `time` and `more`
    rearm_after,
    rearm_at,
    rearm_within,
    wait,       ///< starts one; its handler has an executor of `context` if `bound`
    cancel,     ///< all
    cancel_one, ///< the oldest
    emit,       ///< cancellation of type `more` by `signal`
    // services
    expire_all,    ///< all in `context`, with success, or an error if `time` is not 0
    expire_all_of, ///< likewise, timers of `type` only
    cancel_all,    ///< all in `context`; not beside limits, intervals and streams
    // limits
    operation, ///< starts the operation `object` under a limit of `time`; see `limit`, `shape`
    complete,  ///< the operation, if it is pending
    // intervals
    make_interval, ///< `object`, of the period `time`, with the policy `more`
    destroy_interval,
    wait_interval,
    cancel_interval,
    reset_interval,
    reset_interval_after, ///< `time`
    set_period,           ///< `time`
    // alarms
    make_alarm, ///< `object`, whose function takes a code if `bound`, and makes the steps `then`
    destroy_alarm,
    move_alarm,      ///< `other` to `object`, which is destroyed first if it is there
    arm_alarm_after, ///< `time`
    arm_alarm_at,    ///< now and `time`
    arm_alarm_within,
    disarm_alarm,
    // streams
    make_stream, ///< `object` in `context`
    destroy_stream,
    limit_stream,  ///< idle limit: `time`; of reads and handshakes: `more`; none if not positive
    expire_stream, ///< expires_after(`time`), or never if not positive
    read,
    write,
    feed,  ///< the peer sends a byte
    drain, ///< the peer takes one
    connect,
    accept, ///< the peer accepts a connect, or refuses it if `bound`
    begin_handshake,
    end_handshake,
    close_stream,
    // retries
    retry, ///< with attempts that take `time`, of which `other` fail, and a first pause of `more`
    // rate limiters
    make_limiter, ///< `object`, on `executor` of `context`: `other` + 1 tokens in each `time`, `more` + 1 at once
    destroy_limiter,
    acquire,     ///< starts a wait for `other` % burst + 1 tokens
    try_acquire, ///< likewise
    // expiring maps
    make_map, ///< `object`, on `executor` of `context`, whose entries are refreshed by use and popped
    destroy_map,
    insert, ///< for `time`
    use,    ///< the entry that was inserted `other` entries ago
    erase,  ///< likewise
    pop,    ///< starts a wait for an entry that has expired
    // clocks
    pass,     ///< `time` passes, on all clocks except those that are moved by hand
    set,      ///< the clock of `type` to now and `time`
    set_to,   ///< the clock of `type` to `time`
    approach, ///< the clock of the timer `object` to its expiry and `time`; not back if it is steady
    advance,  ///< manual_clock::advance(`context`, `time`)
    advance_to_next, ///< manual_clock::advance_to_next(`context`)
    // contexts
    poll,
    poll_one,
    run_one, ///< within `time`
    run_for, ///< `time`
    stop,
    restart,
    shut_down, ///< destroys the context
    open,      ///< makes a new one in its place
    // handlers
    raise, ///< throws
};

/// The calls of one class.
enum class family : std::uint8_t {
    timers,
    limits,
    intervals,
    alarms,
    streams,
    patterns,
    clocks,
    contexts
};

constexpr family family_of(op o) noexcept {
    return o <= op::emit              ? family::timers
           : o <= op::cancel_all      ? family::contexts
           : o <= op::complete        ? family::limits
           : o <= op::set_period      ? family::intervals
           : o <= op::disarm_alarm    ? family::alarms
           : o <= op::close_stream    ? family::streams
           : o <= op::pop             ? family::patterns
           : o <= op::advance_to_next ? family::clocks
                                      : family::contexts;
}

constexpr bool is_rearm(op o) noexcept { return o >= op::rearm_after && o <= op::rearm_within; }

/// How an operation under a limit obeys cancellation, and the kind of its limit.
enum class limit : std::uint8_t { timeout, cancel_after };
enum class obedience : std::uint8_t {
    ignores,
    inline_,
    posts,
    channel, ///< it receives from a channel
};

/// What contains the operation and its limit. The other time is `more`.
enum class shape : std::uint8_t {
    handler,     ///< a completion handler
    composed,    ///< async_compose, inside the limit
    raced,       ///< a parallel_group of the operation under the limit and a wait; one ends it
    raced_under, ///< the same, inside the limit
    coroutine,   ///< a coroutine
    awaited,     ///< a coroutine under another limit, in a coroutine
    spawned,     ///< a coroutine that is spawned under another limit
    either,      ///< a coroutine || one that waits
    both,        ///< a coroutine && one that waits
};
inline constexpr int shapes = 9;

struct step {
    op what{};
    int object = 0;
    int other = 0;
    int context = 0;
    kind type{};
    flavour executor{};
    bool bound = false;
    int thread = 0;
    int signal = -1; ///< of a wait: the cancellation signal of its slot
    std::int64_t time = 0;
    std::int64_t more = 0;
    limit under{};
    obedience obeys{};
    shape in{};
    std::vector<step> then{};  ///< steps of its handler
    std::vector<step> dying{}; ///< steps of its handler if it is destroyed uncalled

    using members =
        member_list<&step::what, &step::object, &step::other, &step::context, &step::type,
                    &step::executor, &step::bound, &step::thread, &step::signal, &step::time,
                    &step::more, &step::under, &step::obeys, &step::in, &step::then, &step::dying>;
    bool operator==(const step&) const = default;
};

/// The initial state.
struct setup {
    std::vector<context_setup> contexts{};
    std::vector<kind> types{}; ///< those in use
    bool threads = false;      ///< threads make timers, so that several shards fill
    std::int64_t steady = 0;   ///< initial readings
    std::int64_t set = 0;
    std::int64_t set_milli = 0;
    std::int64_t mock = 0;
    std::int64_t manual = 0;
    std::int64_t edge = 0;
    mock_wait traits{};

    using members =
        member_list<&setup::contexts, &setup::threads, &setup::steady, &setup::set,
                    &setup::set_milli, &setup::mock, &setup::manual, &setup::edge, &setup::traits>;
};

struct scenario {
    setup begin{};
    std::vector<step> steps{};
};

inline constexpr int timer_slots = 6;
inline constexpr int signal_slots = 4;
inline constexpr int operation_slots = 3;
inline constexpr int interval_slots = 2;
inline constexpr int alarm_slots = 3;
inline constexpr int stream_slots = 2;
inline constexpr int pattern_slots = 2;
inline constexpr int maker_threads = 8;

/// The scenario of a seed, or of bytes: always the same one.
/// @param threads whether timers may be made by several threads.
[[nodiscard]] scenario generate(const random_source& random, bool threads);

/// The step as C++, without default values.
[[nodiscard]] std::string text_of(const step& s);

/// A C++ program with the same steps. @param text stands above it, as a comment.
[[nodiscard]] std::string program(const scenario& s, const std::string& text);

} // namespace simulation

#endif
