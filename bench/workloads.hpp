// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The list of workloads: which server does this, the unit, the variants.
#ifndef PAWL_BENCH_WORKLOADS_HPP
#define PAWL_BENCH_WORKLOADS_HPP

#include "coroutine_workloads.hpp"
#include "expiry_workloads.hpp"
#include "handler_workloads.hpp"
#include "harness.hpp"
#include "memory_workload.hpp"
#include "pattern_workloads.hpp"
#include "rearm_workloads.hpp"
#include "thread_workloads.hpp"
#include "timeout_workloads.hpp"

#include <string>
#include <vector>

namespace bench {

// In other_backends.cpp. Compilers limit inlining to a share of a file: with everything in one
// file, the variants would slow each other down.
extern template sample churn<pawl_coarse>(const plan&);
extern template sample churn<pawl_compact>(const plan&);
extern template sample churn<pawl_read>(const plan&); // in watched.cpp
extern template sample idle_rearm<pawl_read>(const plan&);
extern template sample expiry_spread<pawl_read>(const plan&);
extern template sample churn_const<pawl_compact>(const plan&);
extern template sample churn_const<pawl_ring>(const plan&);
extern template sample idle_rearm<pawl_coarse>(const plan&);
extern template sample idle_rearm<pawl_compact>(const plan&);
extern template sample idle_rearm<pawl_ring>(const plan&);
extern template sample idle_rearm_random<pawl_compact>(const plan&);
extern template sample expiry_spread<pawl_compact>(const plan&);
extern template sample expiry_fixed<pawl_compact>(const plan&);
extern template sample expiry_fixed<pawl_ring>(const plan&);
extern template sample jump<pawl_compact>(const plan&);
extern template sample memory_per_wait<pawl_compact>(const plan&);

inline std::vector<workload> all_workloads() {
    std::vector<workload> all;

    all.push_back({"churn",
                   "request timeouts: every request sets a timeout of its own and beats it",
                   "ns CPU per expires_after + async_wait + aborted handler",
                   {{"asio", churn<asio_steady>},
                    {"pawl", churn<pawl_default>},
                    {"pawl64", churn<pawl_64>},
                    {"read", churn<pawl_read>},
                    {"coarse", churn<pawl_coarse>},
                    {"compact", churn<pawl_compact>}}});

    all.push_back({"churn_const",
                   "request timeouts, the same 30 s for every request",
                   "ns CPU per expires_after + async_wait + aborted handler",
                   {{"asio", churn_const<asio_steady>},
                    {"pawl", churn_const<pawl_default>},
                    {"pawl64", churn_const<pawl_64>},
                    {"compact", churn_const<pawl_compact>},
                    {"ring", churn_const<pawl_ring>}}});

    all.push_back({"idle_rearm",
                   "idle timeouts: every read moves its connection's deadline to now + 30 s",
                   "ns CPU per moved deadline",
                   {{"asio", idle_rearm<asio_steady>},
                    {"pawl", idle_rearm<pawl_default>},
                    {"pawl64", idle_rearm<pawl_64>},
                    {"read", idle_rearm<pawl_read>},
                    {"coarse", idle_rearm<pawl_coarse>},
                    {"compact", idle_rearm<pawl_compact>},
                    {"ring", idle_rearm<pawl_ring>},
                    {"bare", idle_rearm<bare_deadline>}}});

    all.push_back({"idle_rearm_random",
                   "deadlines that move earlier as often as later",
                   "ns CPU per moved deadline",
                   {{"asio", idle_rearm_random<asio_steady>},
                    {"pawl", idle_rearm_random<pawl_default>},
                    {"pawl64", idle_rearm_random<pawl_64>},
                    {"compact", idle_rearm_random<pawl_compact>}}});

    all.push_back({"churn_in_handlers",
                   "request timeouts that are set and beaten in handlers, which post themselves",
                   "ns CPU per handler",
                   {{"asio", churn_in_handlers<asio_steady>},
                    {"pawl", churn_in_handlers<pawl_default>},
                    {"pawl64", churn_in_handlers<pawl_64>},
                    {"post", only_posts}}});

    all.push_back({"idle_rearm_in_handlers",
                   "idle timeouts that are moved in handlers, which post themselves",
                   "ns CPU per handler",
                   {{"asio", idle_rearm_in_handlers<asio_steady>},
                    {"pawl", idle_rearm_in_handlers<pawl_default>},
                    {"pawl64", idle_rearm_in_handlers<pawl_64>},
                    {"post", only_posts}}});

    all.push_back({"lone_connection",
                   "one connection alone in its context: each read moves the earliest deadline",
                   "ns CPU per read",
                   {{"asio", lone_connection<asio_steady, by_waiting_again>},
                    {"pawl", lone_connection<pawl_default, by_waiting_again>},
                    {"pawl+rearm", lone_connection<pawl_default, by_push_back>}},
                   1});

    all.push_back({"expiry_spread",
                   "pacing: every timer expires, at random times within one second",
                   "ns CPU per expiry",
                   {{"asio", expiry_spread<asio_steady>},
                    {"pawl", expiry_spread<pawl_default>},
                    {"pawl64", expiry_spread<pawl_64>},
                    {"read", expiry_spread<pawl_read>},
                    {"compact", expiry_spread<pawl_compact>}},
                   0,
                   5});

    all.push_back({"expiry_fixed",
                   "clients that went silent: timers of 2 s, started within one second, expire",
                   "ns CPU per expiry, what the loop does until then included",
                   {{"asio", expiry_fixed<asio_steady>},
                    {"pawl", expiry_fixed<pawl_default>},
                    {"compact", expiry_fixed<pawl_compact>},
                    {"ring", expiry_fixed<pawl_ring>},
                    {"post", expiry_posted}},
                   0,
                   3});

    all.push_back({"jump",
                   "after a stall: all timers are due at once and their handlers must run",
                   "ns CPU per expiry",
                   {{"asio", jump<asio_steady>},
                    {"pawl", jump<pawl_default>},
                    {"pawl64", jump<pawl_64>},
                    {"compact", jump<pawl_compact>}},
                   0,
                   7});

    all.push_back({"coroutine",
                   "one parked coroutine per connection, woken by cancel, waiting again",
                   "ns CPU per co_await async_wait",
                   {{"asio", coroutine_wait<asio_steady>},
                    {"pawl", coroutine_wait<pawl_default>},
                    {"pawl64", coroutine_wait<pawl_64>}}});

    all.push_back(
        {"limit",
         "an operation of one post, with a completion handler, under a limit that it beats",
         "ns CPU per operation", limit_variants()});

    all.push_back({"limit_in_handlers",
                   "the same, started in the completion handler of the one before",
                   "ns CPU per operation", limit_in_handlers_variants()});

    all.push_back({"timeout_post",
                   "an operation of one post under a timeout that it beats; the others wait",
                   "ns CPU per co_await", posted_operation_variants()});

    all.push_back({"timeout_at_once",
                   "a read of no bytes, which completes at once, under a timeout; the others wait",
                   "ns CPU per co_await", empty_read_variants()});

    all.push_back({"timeout_read",
                   "a read from a socket that has data, under a timeout; the others wait",
                   "ns CPU per co_await, one write of a byte included", ready_read_variants()});

    all.push_back({"timeout_alone",
                   "an operation of one post under a timeout, and no other in the context",
                   "ns CPU per co_await", posted_operation_variants(), 1});

    all.push_back({"patterns",
                   "an operation of one post that succeeds, under retry, hedge or a rate limit",
                   "ns CPU per operation", pattern_variants()});

    all.push_back({"lookup", "a session is found by its key, in a map whose entries expire",
                   "ns CPU per lookup", lookup_variants()});

    all.push_back(
        {"life", "a connection notes that a byte has come", "ns CPU per byte", life_variants(), 1});

    // The workloads below make threads: afterwards the process always has several.

    all.push_back({"churn_in_two_threads",
                   "request timeouts set and beaten in handlers; two threads run the io_context",
                   "ns of real time per handler, both threads together",
                   {{"asio", churn_in_two_threads<asio_steady>},
                    {"pawl", churn_in_two_threads<pawl_default>},
                    {"pawl_2shards", churn_in_two_threads<pawl_two_shards>},
                    {"post", only_posts_in_two_threads}}});

    all.push_back({"two_threads",
                   "two threads poll one io_context, each with connections of its own",
                   "ns of real time per expires_after + async_wait, both threads together",
                   {{"asio", two_threads<asio_steady>},
                    {"pawl", two_threads<pawl_default>},
                    {"pawl_2shards", two_threads<pawl_two_shards>}}});

    all.push_back({"two_threads_run",
                   "two threads run one io_context and sleep when they find nothing to do",
                   "ns of real time per expires_after + async_wait, both threads together",
                   {{"asio", two_threads_run<asio_steady>},
                    {"pawl", two_threads_run<pawl_default>},
                    {"pawl_2shards", two_threads_run<pawl_two_shards>}}});

    all.push_back({"memory",
                   "bytes for each outstanding wait: timer, handler, and its share of the service",
                   "bytes per wait",
                   {{"asio", memory_per_wait<asio_steady>},
                    {"pawl", memory_per_wait<pawl_default>},
                    {"pawl64", memory_per_wait<pawl_64>},
                    {"compact", memory_per_wait<pawl_compact>}},
                   0,
                   1});

    return all;
}

/// A row of the table that `--core` prints at the end.
struct core_row {
    std::string title;
    std::string variant;
    std::string outside;     ///< the workload from outside, or its only form
    std::string in_handlers; ///< the same in handlers, or empty
};

/// The most frequent operations of a server. Rows without their variant are left out.
inline std::vector<core_row> core_rows() {
    return {
        {"churn", "pawl", "churn", "churn_in_handlers"},
        {"`rearm_after`, steady", "pawl", "idle_rearm", "idle_rearm_in_handlers"},
        {"`rearm_after`, coarse", "coarse", "idle_rearm", "idle_rearm_in_handlers"},
        {"expiry over one second", "pawl", "expiry_spread", ""},
        {"one jump", "pawl", "jump", ""},
        {"churn in handlers, two threads on one io_context", "pawl", "churn_in_two_threads", ""}};
}

} // namespace bench

#endif // PAWL_BENCH_WORKLOADS_HPP
