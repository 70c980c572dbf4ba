// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What travels to the executor of a wait that is due or cancelled, where that is not the native
///   one. See wait_state.hpp.
///
/// Model
///   Copies of it are one carrier together: the first one that is called is it, another one that is
///   called does nothing, and the last one that is destroyed uncalled abandons the wait.
///
/// Threads
///   Its own; it meets others in the host. See also claim.hpp.
#ifndef PAWL_WAIT_WAIT_CARRIER_HPP
#define PAWL_WAIT_WAIT_CARRIER_HPP

#include <pawl/wait/claim.hpp>
#include <pawl/wait/wait_operation.hpp>

namespace pawl::detail {

/// A function object for dispatch(). Not a template on the wait: what Asio instantiates for it is
/// needed once for each executor and allocator, not for each handler.
template <class Allocator>
class wait_carrier {
public:
    using allocator_type = Allocator;

    wait_carrier(wait_host& host, wait_operation& op, const Allocator& a) noexcept
        : host_(&host), op_(&op), alloc_(a) {}
    wait_carrier(wait_carrier&& other) noexcept = default;
    wait_carrier(const wait_carrier& other) = default;
    wait_carrier& operator=(wait_carrier&&) = delete;
    ~wait_carrier() {
        op_.end([host = host_](wait_operation* op) { host->abandon(*op); });
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() const {
        if (wait_operation* const op = op_.take())
            arrive(*host_, *op);
    }

private:
    static void arrive(wait_host& host, wait_operation& op) {
        bool owned = host.arrive(op);
        if (!owned) {
            // Pulled back by a re-arm. It waits again, so it needs work again; no lock is held
            // here. Should that throw, the wait goes on without.
            try {
                op.regain_work();
            } catch (...) {
                host.abandon(op);
                throw;
            }
            owned = !host.park(op);
        }
        if (owned)
            op.complete();
    }

    wait_host* host_;
    claim<wait_operation> op_;
    [[no_unique_address]] Allocator alloc_;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_WAIT_CARRIER_HPP
