// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// An execution context that several threads run, its options, and the executors on it.

#ifndef PAWL_TEST_SIMULATION_THREADS_ARENA_HPP
#define PAWL_TEST_SIMULATION_THREADS_ARENA_HPP

#include "simulation/executors.hpp"
#include "simulation/options.hpp"
#include "simulation/random.hpp"

#include <pawl/timer_service.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace simulation::threads {

inline constexpr std::int64_t microsecond = 1'000, millisecond = 1'000'000;
inline constexpr std::int64_t hour = 3600'000 * millisecond;
inline constexpr std::int64_t longest_ring = 2 * millisecond; ///< except for the ring of an hour

struct arena;

/// The place where an executor runs functions.
struct home {
    arena* of;
    bool strand;   ///< in the strand of the arena
    bool anywhere; ///< or inside the call

    [[nodiscard]] bool here() const; ///< whether the calling thread is there
};

struct destination {
    asio::any_io_executor ex;
    home at;
};

/// An execution context and the threads that run it.
struct arena {
    explicit arena(random_source& random)
        : threads(1 + random.below(3)), in_pool(random.one_in(5)),
          guarded(threads > 1 || random.one_in(2)) {
        if (in_pool)
            pool.emplace(static_cast<std::size_t>(threads));
        else
            io.emplace(threads == 1 && random.one_in(2) ? 1 : -1);
        native = in_pool ? asio::any_io_executor(pool->get_executor())
                         : asio::any_io_executor(io->get_executor());
        strand.emplace(native);
        meeting.emplace(threads, restarting{this});
        setup = random_context(random);
        setup.precision = random.one_in(60)
                              ? 100 * millisecond
                              : random.one_of<std::int64_t>({1, 7, microsecond, 5 * microsecond,
                                                             50 * microsecond, millisecond});
        setup.locking = true;
        const auto capacity = random.one_of<std::size_t>({1, 2, 8, 1024});
        setup.rings.clear();
        for (const std::int64_t d : {100 * microsecond, 400 * microsecond, longest_ring, hour})
            setup.rings.push_back({d, capacity});
        options = options_of(setup);
    }

    /// An executor on this context: its own, a strand, or one that is not Asio's on one of the two.
    [[nodiscard]] destination executor(random_source& random);

    [[nodiscard]] bool runs_here() noexcept {
        return io ? io->get_executor().running_in_this_thread()
                  : pool && pool->get_executor().running_in_this_thread();
    }

    [[nodiscard]] asio::execution_context& context() {
        return io ? static_cast<asio::execution_context&>(*io) : *pool;
    }

    const int threads;
    const bool in_pool;
    bool guarded;        ///< run() does not return before the end
    context_setup setup; ///< without its concurrency_hint
    pawl::options options;
    std::optional<asio::io_context> io;
    std::optional<asio::thread_pool> pool;
    asio::any_io_executor native;
    std::optional<asio::strand<asio::any_io_executor>> strand;
    std::optional<asio::executor_work_guard<asio::any_io_executor>> guard;
    std::vector<std::thread> runners;
    bool in_strand =
        false; ///< a handler is running there; not atomic, so that ThreadSanitizer sees races

    /// Number of io.stop() calls; each time its threads meet, and the last one restarts it.
    std::atomic<int> stops{0};
    struct restarting {
        arena* self;
        void operator()() const noexcept { self->io->restart(); }
    };
    std::optional<std::barrier<restarting>> meeting;
};

inline bool home::here() const {
    if (strand && !anywhere)
        return of->strand && of->strand->running_in_this_thread();
    return anywhere || of->runs_here();
}

inline destination arena::executor(random_source& random) {
    const bool serial = random.one_in(2);
    const asio::any_io_executor inner = serial ? asio::any_io_executor(*strand) : native;
    switch (random.below(10)) {
    case 0:
        return {foreign_executor<flavour::unknown>(inner, true), {this, serial, false}};
    case 1:
        return {foreign_executor<flavour::copying>(inner, true), {this, serial, false}};
    case 2:
        return {foreign_executor<flavour::immediate>(inner, true), {this, serial, true}};
    default:
        return {inner, {this, serial, false}};
    }
}

} // namespace simulation::threads

#endif
