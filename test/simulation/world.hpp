// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Executes the steps of a scenario on the library, and reports to the model.
//
// Model
//   The actions of a handler are steps, too: they run within the handler. A world is used by one
//   thread. With setup::threads, threads that do nothing else make the timers, one at a time.

#ifndef PAWL_TEST_SIMULATION_WORLD_HPP
#define PAWL_TEST_SIMULATION_WORLD_HPP

#include "simulation/alarms.hpp"
#include "simulation/intervals.hpp"
#include "simulation/limits.hpp"
#include "simulation/model.hpp"
#include "simulation/patterns.hpp"
#include "simulation/report.hpp"
#include "simulation/scenario.hpp"
#include "simulation/streams.hpp"
#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace simulation {

class world final : public listener, private surroundings {
public:
    explicit world(const setup& begin);
    world(const world&) = delete;
    world& operator=(const world&) = delete;
    ~world();

    void perform(const step& s);

    /// Destroys all, and checks that everything has ended.
    totals end();

    /// Prints each step.
    static inline bool trace = false;

private:
    struct raised {}; ///< the exception of handlers

    /// A place for a context, present or past.
    struct place {
        std::unique_ptr<asio::io_context> io;
        std::optional<asio::strand<asio::io_context::executor_type>> strand;
        bool stopped = false; ///< by a step
        std::uint32_t services = 0;
        std::uint64_t ended_early = 0;
        std::uint64_t operations = 0;            ///< carried out before its last run
        const std::uint64_t* settings = nullptr; ///< how often its system timer has been set
        std::uint64_t settings_before = 0;       ///< the same, before its last run
        std::int64_t ran = 0;                    ///< time of its last run
    };

    // --- surroundings
    [[nodiscard]] bool there(int context) const override;
    [[nodiscard]] bool running(int context) const override;
    [[nodiscard]] bool dying(int context) const override;
    [[nodiscard]] std::uint64_t ended_early(int context) const override;
    [[nodiscard]] std::int64_t precision(int context) const override;
    [[nodiscard]] bool nested() const override { return depth_ != 0; }
    asio::any_io_executor executor(int index, flavour f) override;
    void serve(int context, kind type) override;
    void go_on(const std::vector<step>& steps, bool may_throw = true) override;
    asio::cancellation_slot listen(int signal, hearer h) override;

    void completed(int id, const error_code& ec, std::uint64_t number) override;
    void destroyed(int id) override;

    void perform_one(const step& s);
    void timer_step(const step& s);
    void set_expiry(const step& s);
    void make(const step& s);
    void wait(const step& s);
    void clock_step(const step& s);
    void context_step(const step& s);
    void run(const step& s);
    void open(int index);
    void shut_down(int index);
    void set_clock_of(kind k, std::int64_t to);
    void settled(int index);
    /// The maximum number of units of a run, including nested ones.
    [[nodiscard]] std::uint64_t most_units(int index, std::uint64_t handlers,
                                           std::size_t pending) const;
    /// Handlers must not run within calls of `f`.
    template <class Function>
    auto call(Function&& f);
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }

    setup setup_;
    model model_;
    std::vector<place> contexts_;
    std::array<asio::cancellation_signal, signal_slots> signals_;
    std::array<hearer, signal_slots> hearers_;
    std::array<std::unique_ptr<any_timer>, timer_slots> timers_;
    std::map<int, const step*> steps_; ///< the steps that started the waits, by id
    limits limits_{*this};
    intervals intervals_{*this};
    alarms alarms_{*this};
    streams streams_{*this};
    patterns patterns_{*this};
    int calls_ = 0; ///< calls of the library during which no handler may run
    int depth_ = 0;
    int quiet_ = 0; ///< handlers that must not throw
    int last_timer_ = 0;
    int ends_ = 0;
    std::uint64_t handlers_ = 0; ///< invoked
    totals totals_;
};

/// Runs a whole scenario.
totals run(const scenario& s);

} // namespace simulation

#endif
