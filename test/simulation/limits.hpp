// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Operations under limits: pawl::timeout and pawl::cancel_after on operations that end in a given
// step, and that do or do not obey cancellation; also in coroutines, in their operators || and &&, in
// parallel groups, in async_compose, and on channels. Its handler may run in another context.
//
// Model
//   The first request to end an operation counts: that of the limit, or that of the caller. The
//   limit asks once, not before its time, and not after the operation has ended. The result of the
//   handler follows from that and from the operation's own result. A coroutine or a group passes a
//   request on, perhaps later: if more than one may have come by then, either may be the first.

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
    /// That context has no more ready work.
    business settled(int context);
    /// Handlers of operations in other contexts run in that one.
    [[nodiscard]] bool awaited_from_elsewhere(int context) const;
    /// The maximum number of units of its own waits.
    [[nodiscard]] std::size_t count() const noexcept;
    /// The same for coroutines, groups and so on that were started so far.
    [[nodiscard]] std::size_t started() const noexcept { return units_of_shape * shaped_; }
    /// An operation is invoking a handler, and uses its executor afterwards.
    [[nodiscard]] bool in_upcall() const noexcept { return upcalls_ != 0; }
    void finished() const;

private:
    struct operation;

    void completed(int id, const error_code& ec, std::uint64_t) override;
    void destroyed(int id) override;

    void start(const step& s);
    [[nodiscard]] static int home_of(const step& s);
    void judge(const operation& o, const error_code& ec) const;
    void judge_shape(const operation& o, const error_code& ec, std::uint64_t number) const;
    operation* find(int id);

    static constexpr std::size_t units_of_shape = 16;

    surroundings& world_;
    std::vector<std::unique_ptr<operation>> operations_; ///< operations whose handlers still exist
    std::array<int, operation_slots> slots_{};           ///< ids
    int last_id_ = 0;
    int upcalls_ = 0;
    std::size_t shaped_ = 0;
};

} // namespace simulation

#endif
