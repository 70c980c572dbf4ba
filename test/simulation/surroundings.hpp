// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_SURROUNDINGS_HPP
#define PAWL_TEST_SIMULATION_SURROUNDINGS_HPP

#include "simulation/scenario.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace simulation {

/// What there is to do in a context.
struct business {
    bool work = false;    ///< operations are pending
    bool perhaps = false; ///< limits may be watched
};

/// The interface of the world for limits, intervals and streams.
class surroundings {
public:
    [[nodiscard]] virtual bool there(int context) const = 0;
    [[nodiscard]] virtual bool running(int context) const = 0;
    [[nodiscard]] virtual bool dying(int context) const = 0;
    /// How often expire_all() was called in that place.
    [[nodiscard]] virtual std::uint64_t ended_early(int context) const = 0;
    [[nodiscard]] virtual std::int64_t precision(int context) const = 0;
    /// Whether a handler runs now, below the handler that asks.
    [[nodiscard]] virtual bool nested() const = 0;
    [[nodiscard]] virtual boost::asio::any_io_executor executor(int context, flavour f) = 0;
    /// Makes the services of timers in that context, with its options.
    virtual void serve(int context, kind type) = 0;
    /// Executes the steps of a handler. @param may_throw false: none of them throws.
    virtual void go_on(const std::vector<step>& steps, bool may_throw = true) = 0;

    /// A cancellation signal without a listener; -1 if there is none. Its present listener is asked
    /// whether it still listens, and whether the signal may be emitted, also after its end. It is
    /// notified before and after an emission.
    struct hearer {
        std::function<bool()> listens;
        std::function<void()> told{};
        std::function<bool()> may_hear = [] { return true; };
    };
    virtual boost::asio::cancellation_slot listen(int signal, hearer h) = 0;

protected:
    ~surroundings() = default;
};

} // namespace simulation

#endif
