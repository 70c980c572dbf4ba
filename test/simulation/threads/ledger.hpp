// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The calls on one timer, and the results of its waits: recorded while threads are running,
//   checked when they have ended.
//
// Model
//   A ledger belongs to the waits of one timer, and moves with them. Users of the timer hold a
//   mutex, so the ledger has the calls in their order. Handlers come in any order. Each wait knows
//   the moment when its handler started, each call the moment before it was made.
//   A call has not counted a handler that started before it. Of the handlers that started after it
//   had returned, the call has counted all except those that were `started` (wait_state.hpp) and
//   had not reached their first line: at most one for each thread that runs a context. In a handler
//   of the only such thread there is none, and results of calls are checked exactly.
//
// Invariants
//   Moments are relaxed atomics, and waits are written without a lock: the ledger must not provide
//   an order that the library must provide, or ThreadSanitizer would see less.

#ifndef PAWL_TEST_SIMULATION_THREADS_LEDGER_HPP
#define PAWL_TEST_SIMULATION_THREADS_LEDGER_HPP

#include "simulation/report.hpp"
#include "simulation/scenario.hpp"
#include "simulation/threads/arena.hpp"
#include "simulation/threads/timers.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace simulation::threads {

/// The next moment. A call that happens before another one has an earlier moment.
std::uint64_t moment() noexcept;

/// The error of expire_all().
extern const error_code hasty;

/// Every setting of shared_clock.
class settings {
public:
    /// The clock follows the steady clock.
    settings();

    /// Sets the clock. By one thread at a time.
    void set(std::int64_t ahead);

    /// The latest reading that the clock can have had between two moments, the second of which was
    /// at `steady` by the steady clock.
    [[nodiscard]] std::int64_t latest(std::uint64_t from, std::uint64_t to,
                                      std::int64_t steady) const;

private:
    struct setting {
        std::uint64_t from;
        std::int64_t ahead;
        std::uint64_t to = UINT64_MAX; ///< the clock may have had this reading until then
        std::int64_t end = INT64_MAX;  ///< the same, by the steady clock
    };
    std::vector<setting> all_;
};

enum class told : std::uint8_t {
    nothing,
    success,
    aborted,
    expired,
    refused,
    something,
    destroyed
};

/// Whether the calling thread is in a handler.
extern thread_local bool in_handler;
/// When the calling thread has left its last handler.
extern thread_local std::uint64_t last_moment;
/// Shared by the handlers of waits: they call `f`, if any, one at a time in a strand.
void run_handler(const home& at, const std::function<void()>& f);

/// A handler, which is invoked or destroyed, once.
class told_once : public listener {
public:
    void completed(int, const error_code& ec, std::uint64_t number) final {
        count("invoked");
        invoked(ec, number);
    }
    void destroyed(int) final {
        count("destroyed");
        dropped();
    }
    [[nodiscard]] bool over() const noexcept { // relaxed: a hint, except in its own strand
        return ends_.load(std::memory_order_relaxed) != 0;
    }

    /// Fails.
    [[noreturn]] virtual void broken(const std::string& what) const = 0;

protected:
    ~told_once() = default;

private:
    virtual void invoked(const error_code& ec, std::uint64_t number) = 0;
    virtual void dropped() {}

    void count(const char* how) {
        if (ends_.fetch_add(1, std::memory_order_relaxed) != 0) // relaxed: it is a count
            broken(std::string("P3: a handler is ") + how + " a second time");
    }

    std::atomic<int> ends_{0};
};

struct wait final : told_once {
    wait(sort s, home h, std::function<void()> f) : type(s), at(h), then(std::move(f)) {}

    void invoked(const error_code& ec, std::uint64_t number) override;
    void dropped() override { what = told::destroyed; }
    [[noreturn]] void broken(const std::string& text) const override { fail(text); }

    const sort type;
    const home at;                    ///< the executor of its handler
    const std::function<void()> then; ///< the action of its handler
    told what = told::nothing;
    bool in_place = true; ///< the handler was invoked on its executor
    std::uint64_t began = UINT64_MAX;
    std::int64_t steady = 0;  ///< when the handler started
    std::int64_t reading = 0; ///< the same, by its own clock

    // For the check.
    std::int64_t expiry = 0; ///< the earliest possible final expiry
    std::uint64_t armed = 0; ///< it got that expiry after this moment
    bool cancelled = false;
};

/// Additional outcomes that are allowed.
struct rules {
    bool early = false;     ///< a full ring may expire waits early
    bool refuses = false;   ///< a full ring may refuse waits
    bool abandoned = false; ///< the context was destroyed with waits pending
    bool delivers = false;  ///< and their handlers were told
};

class ledger {
public:
    ledger(sort s, rules r, home h) : type(s), allowed(r), on(h) {}

    // --- while the timer is used, by its user --------------------------------------------------

    /// A wait is about to be started.
    wait& start(std::int64_t expiry, home h, std::function<void()> then, bool listens);
    /// A call that started at `before` has just returned. @param busy number of threads that may be
    /// at the start of a handler.
    void note(op call, std::uint64_t before, int busy, std::size_t count = 0,
              std::int64_t expiry = 0);
    /// Emits the signal, if a wait has listened to it. @return whether it was emitted.
    bool emit(asio::cancellation_type type, int busy);

    [[nodiscard]] bool can_listen() const { return !listener_ || listener_->over(); }

    const sort type;
    const rules allowed;
    const home on; ///< the executor of the timer
    asio::cancellation_signal signal;

    // --- at the end ----------------------------------------------------------------------------

    struct totals {
        std::size_t waits = 0;
        std::size_t events = 0;
        std::size_t expired = 0;
    };
    /// Fails if a promise is broken.
    totals check(const settings& clock);

private:
    struct event {
        op what;
        std::uint64_t before, after;
        int busy;
        std::size_t count;
        std::int64_t expiry;
        wait* subject;
    };

    void replay(const event& e);
    void check(const wait& w, const settings& clock) const;
    /// Fails, and prints the ledger.
    [[noreturn]] void broken(const std::string& what) const;

    std::deque<wait> waits_;
    std::vector<event> events_;
    wait* listener_ = nullptr;
    std::vector<wait*> alive_; ///< during the check: pending waits, in the order of start
};

} // namespace simulation::threads

#endif
