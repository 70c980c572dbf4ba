// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Random programs of several threads on Pawl, with random options. The checks hold for any order
//   of their steps: each handler is invoked or destroyed once (P3); none succeeds before its clock
//   has reached the expiry that its wait had (P1); results of calls and of handlers agree (P4,
//   P10); run() returns (P9), and no wait is pending then; an idle context runs nothing. The other
//   half, one thread against a model of each step, is in the folder above.
//
// Model
//   A seed chooses one or two contexts, the threads that run them, their options, the types of
//   timers, and the end (session.cpp). Two to four threads make calls on timers: on those of their
//   own, and on shared ones, each behind a mutex. Handlers make calls on the shared ones, too. One
//   more thread sets the settable clock to and fro, advances manual_clock, and stops contexts,
//   which their threads then restart. All of them call expire_all(). Each timer has a ledger of
//   calls and results (ledger.hpp), which is checked when all threads have ended.
//   Timers and handlers have executors of several kinds (arena.hpp): each handler checks whether it
//   runs there, and alone if that is a strand. Besides the timers there may be alarms
//   (alarms.hpp), operations under limits (limits.hpp), groups (groups.hpp), intervals
//   (intervals.hpp), streams (streams.hpp), event queues (queues.hpp) and readers of event feeds
//   (feeds.hpp).
//   Time is real, and delays are short. No check depends on durations, except that a seed that takes
//   half a minute is said to hang.
//   A seed chooses the calls, not their order: a failing seed may have to be run many times. --seed
//   runs one seed as often as --seeds gives.
//
// How to extend it
//   A new call on a timer: make it in session::operate(), and report it to the ledger: an op, and
//   its meaning in ledger::replay(). A new outcome of a wait: a value of `told`, and in
//   ledger::check() when it is allowed. A new type of timer: a sort, in timers.hpp. An option: the
//   constructor of arena. Something other than a timer: a feature (company.hpp), which
//   session::keep_company() makes.

#include "simulation/campaign.hpp"
#include "simulation/threads/session.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>

int main(int argc, char** argv) {
    using clock = std::chrono::steady_clock;
    using namespace simulation;
    std::int64_t seconds = 0;
    campaign all("simulation_threads",
                 "Random programs of several threads on Pawl. With --seed, it runs --seeds times.");
    all.app.add_option("--seconds", seconds, "instead of a number of seeds: for how long");
    CLI11_PARSE(all.app, argc, argv);

    const auto end = clock::now() + std::chrono::seconds(seconds);
    const auto failed = all.run(
        1,
        [](std::uint64_t seed, slate& told) {
            return threads::run(random_source(seed), [&] {
                std::strncpy(told.choices, threads::about.c_str(), sizeof(told.choices) - 1);
            });
        },
        [&](std::uint64_t, const slate& told) {
            return seconds != 0 ? clock::now() < end : told.seeds < all.seeds;
        });
    return failed ? 1 : 0;
}
