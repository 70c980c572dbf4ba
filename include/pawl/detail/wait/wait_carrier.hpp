// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The function object that takes a due or cancelled wait to its executor, if that is not the
///   native one. See wait_state.hpp.
///
/// Model
///   All copies together are one carrier. The first copy that is invoked acts; later ones do
///   nothing. If none is invoked, the last one to be destroyed abandons the wait.
///
/// Threads
///   The carrier belongs to one thread; the host synchronises. Copies: see claim.hpp.
#ifndef PAWL_DETAIL_WAIT_WAIT_CARRIER_HPP
#define PAWL_DETAIL_WAIT_WAIT_CARRIER_HPP

#include <pawl/detail/wait/claim.hpp>
#include <pawl/detail/wait/wait_host.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

namespace pawl::detail {

/// A function object for dispatch(). It does not depend on the handler type: Asio instantiates its
/// code once per executor and allocator.
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
            // A re-arm has pulled the wait back. The wait needs outstanding work again; no lock is
            // held here. If that throws, the wait continues without.
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

#endif // PAWL_DETAIL_WAIT_WAIT_CARRIER_HPP
