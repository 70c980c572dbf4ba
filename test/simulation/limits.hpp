// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Operations under limits: pawl::timeout and pawl::cancel_after on operations that end when a step
// says so, and obey cancellation, or do not.
//
// Model
//   Whoever has first asked an operation to end counts: the limit, or the caller. The limit asks once,
//   not before its time, and not after the operation has ended. What the handler is told follows from
//   that and from what the operation has ended with.

#ifndef PAWL_TEST_SIMULATION_LIMITS_HPP
#define PAWL_TEST_SIMULATION_LIMITS_HPP

#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simulation {

class limits final : public listener {
public:
    explicit limits(surroundings& world);
    ~limits();

    void perform(const step& s);

    /// The operations in that context are destroyed, as I/O objects are before their context.
    void leave(int context);
    /// That context has nothing left to do. @return how many operations it waits for.
    int settled(int context);
    /// How many waits of its own it may have.
    [[nodiscard]] std::size_t count() const noexcept { return operations_.size(); }
    /// An operation is invoking a handler, and uses its executor afterwards.
    [[nodiscard]] bool in_upcall() const noexcept { return upcalls_ != 0; }
    void finished() const;

private:
    struct operation;

    void completed(int id, const error_code& ec, std::uint64_t) override;
    void destroyed(int id) override;

    void start(const step& s);
    operation* find(int id);

    surroundings& world_;
    std::vector<std::unique_ptr<operation>> operations_; ///< those whose handlers are still there
    std::array<int, operation_slots> slots_{};           ///< ids
    int last_id_ = 0;
    int upcalls_ = 0;
};

} // namespace simulation

#endif
