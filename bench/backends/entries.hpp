// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The list of workloads: what is measured, in which unit, on which structures, and the targets.
///   A workload of the service is one more entry.
#ifndef PAWL_BENCH_BACKENDS_ENTRIES_HPP
#define PAWL_BENCH_BACKENDS_ENTRIES_HPP

#include "bare_workloads.hpp"
#include "ring_workloads.hpp"
#include "structures.hpp"
#include "timers.hpp"
#include "wakeup_workloads.hpp"

#include "../harness.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench::backends {

/// A target for one figure.
struct target {
    std::size_t size;
    std::string variant;
    double most;
    bool of_baseline; ///< `most` is a multiple of the baseline's figure
};

struct entry {
    bench::workload workload;
    std::vector<variant> peers = {};     ///< for sizes of up to most_for_peers
    std::vector<std::size_t> sizes = {}; ///< empty: the sizes of the command line
    std::vector<target> targets = {};
};

/// With more timers, peers that wait for memory at each of many steps take minutes.
inline constexpr std::size_t most_for_peers = 1'000'000;

/// Workload::run<S> for each S.
template <class Workload, class... S>
std::vector<variant> variants(const setup& s) {
    return {variant{std::string(S::name),
                    [s](const plan& what) { return Workload::template run<S>(s, what); }}...};
}

/// Puts the floors of a workload that touches each timer once in front of the others: first for a
/// known place, then, if timers expire, for a place that has to be found.
inline std::vector<variant> above_write(const setup& s, bool again, std::vector<variant> others) {
    if (again)
        others.insert(others.begin(), {std::string(linked_walk::name), [s](const plan& what) {
                                           return linked_walk::run(s, what);
                                       }});
    others.insert(others.begin(), {std::string(random_write::name), [s, again](const plan& what) {
                                       return random_write::run(s, what, again);
                                   }});
    return others;
}

inline std::vector<entry> all_entries(const setup& s) {
    std::vector<entry> all;

    all.push_back({{"start", "start all timers, 30 to 60 s, in random order", "ns per start",
                    variants<start, plain_list, hierarchical, binary, ring, list_wheel>(s)},
                   variants<start, heap, ordered_set>(s)});

    all.push_back({{"cancel", "cancel all timers in random order", "ns per cancel",
                    variants<cancel, plain_list, hierarchical, binary, ring, list_wheel>(s)},
                   variants<cancel, heap, ordered_set>(s)});

    all.push_back({{"start_cancel",
                    "requests that beat their timeouts: cancel a random timer and start it again",
                    "ns per cancel + start",
                    variants<start_and_cancel<no_mutex>, plain_list, kept, hierarchical, binary,
                             ring, list_wheel>(s)},
                   variants<start_and_cancel<no_mutex>, heap, ordered_set>(s),
                   {},
                   {{1'000'000, "kept", 1.3, true}, {1'000'000, "hierarchical", 1.3, true}}});

    all.push_back({{"start_cancel_locked",
                    "the same, each call under a mutex, as in the service: a list has one, too",
                    "ns per cancel + start",
                    variants<start_and_cancel<std::mutex>, plain_list, kept, hierarchical, binary,
                             list_wheel>(s)},
                   {},
                   {},
                   {{1'000'000, "kept", 1.3, true}, {1'000'000, "hierarchical", 1.3, true}}});

    const auto register_cancel = [&]<bool Apart>(std::string name, std::string title,
                                                 std::bool_constant<Apart>) {
        using pairs = register_and_cancel<Apart>;
        all.push_back(
            {{std::move(name),
              std::move(title),
              "ns per cancel + registration",
              {{"atomics", [s](const plan& p) { return pairs::template run_atomics<false>(s, p); }},
               {"atomics+slot",
                [s](const plan& p) { return pairs::template run_atomics<true>(s, p); }},
               {"ring", [s](const plan& p) { return pairs::run_ring(s, p); }}}},
             {},
             {},
             {{1'000, "ring", 1.5, true}, {1'000'000, "ring", 1.5, true}}});
    };
    register_cancel("register_cancel",
                    "the same on the ring, without the sweep, against exchange + fetch_add",
                    std::false_type{});
    register_cancel("register_cancel_apart",
                    "the same, where a pair is begun when the one before is done",
                    std::true_type{});

    all.push_back(
        {{"rearm_later", "idle timeouts: a read moves a random deadline by 30 s on average",
          "ns per re-arm",
          above_write(s, false, variants<rearm_later, hierarchical, binary, list_wheel>(s))},
         variants<rearm_later, heap, ordered_set>(s)});

    all.push_back(
        {{"rearm_earlier", "a random deadline moves 30 s nearer on average", "ns per re-arm",
          variants<rearm_earlier, plain_list, hierarchical, binary, list_wheel>(s)},
         variants<rearm_earlier, heap, ordered_set>(s)});

    all.push_back(
        {{"rearm_random", "a random deadline moves to another one within 30 to 60 s",
          "ns per re-arm", variants<rearm_random, plain_list, hierarchical, binary, list_wheel>(s)},
         variants<rearm_random, heap, ordered_set>(s)});

    all.push_back(
        {{"expire", "all timers expire at random times within 1000 ticks of 1 ms", "ns per expiry",
          above_write(s, true,
                      variants<expire_in_ticks, hierarchical, binary, ring, list_wheel>(s))},
         variants<expire_in_ticks, heap, ordered_set>(s),
         {},
         {{1'000'000, "hierarchical", 45, false}, {1'000'000, "hierarchical", 4, true}}});

    all.push_back(
        {{"expire_rearmed",
          "the same, each timer having been moved to the next second before: what a "
          "lazy re-arm puts off",
          "ns per expiry",
          above_write(s, true, variants<expire_after_rearm, hierarchical, binary, list_wheel>(s))},
         variants<expire_after_rearm, heap, ordered_set>(s)});

    all.push_back(
        {{"jump", "one jump over the second in which all timers expire", "ns per expiry",
          above_write(s, true, variants<jump, hierarchical, binary, ring, list_wheel>(s))},
         variants<jump, heap, ordered_set>(s)});

    all.push_back(
        {{"ring_1_thread",
          "one thread cancels and starts timeouts, ring against a wheel behind a mutex",
          "ns of real time per cancel + start",
          variants<registering_threads<1>, detail::locked_wheel, detail::shared_ring>(s), 0, 5},
         {},
         {1'000, 100'000, 1'000'000}});

    all.push_back(
        {{"ring_2_threads", "two threads do, on one ring or one wheel",
          "ns of real time per cancel + start, both threads together",
          variants<registering_threads<2>, detail::locked_wheel, detail::shared_ring>(s), 0, 5},
         {},
         {1'000, 100'000, 1'000'000}});

    all.push_back({{"wakeups", "few timers of 1 ms to 60 s, logarithmically uniform",
                    "wake-ups per timer that fires",
                    variants<sparse_wakeups, ordered_set, hierarchical, binary>(s), 0, 1},
                   {},
                   {1, 10, 100},
                   {{1, "hierarchical", 1.2, false},
                    {10, "hierarchical", 1.2, false},
                    {100, "hierarchical", 1.2, false}}});

    all.push_back({{"wakeups_lone", "one timer of 30 s, alone, started at any time",
                    "wake-ups per timer that fires",
                    variants<lone_wakeups, ordered_set, hierarchical, binary>(s), 0, 1},
                   {},
                   {1},
                   {{1, "hierarchical", 1.2, false}, {1, "binary", 9, false}}});

    all.push_back({{"slack",
                    "timers of 1 to 60 s that may be late by a part of their delay",
                    "wake-ups per 1000 timers that fire",
                    {{"exact", [s](const plan& p) { return slack<0>::run<hierarchical>(s, p); }},
                     {"5 %", [s](const plan& p) { return slack<5>::run<hierarchical>(s, p); }},
                     {"10 %", [s](const plan& p) { return slack<10>::run<hierarchical>(s, p); }},
                     {"25 %", [s](const plan& p) { return slack<25>::run<hierarchical>(s, p); }}},
                    0,
                    1},
                   {},
                   {100, 1'000, 10'000, 100'000}});

    all.push_back(
        {{"memory", "what one timer needs in itself and in the structure", "bytes per timer",
          variants<memory, plain_list, hierarchical, binary, ring, list_wheel>(s), 0, 1},
         variants<memory, heap, ordered_set>(s)});

    return all;
}

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_ENTRIES_HPP
