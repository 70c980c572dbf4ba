// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What travels to the executor of a wait that is due or cancelled, where that is not the native
///   one. See wait_state.hpp.
///
/// Threads
///   Its own; it meets others in the host.
#ifndef PAWL_WAIT_WAIT_CARRIER_HPP
#define PAWL_WAIT_WAIT_CARRIER_HPP

#include <pawl/wait/wait_operation.hpp>

#include <utility>

namespace pawl::detail {

/// A function object for dispatch(). Move-only: it is the carrier. Not a template on the wait: what
/// Asio instantiates for it is needed once for each executor and allocator, not for each handler.
template <class Allocator>
class wait_carrier {
public:
    using allocator_type = Allocator;

    wait_carrier(wait_host& host, wait_operation& op, const Allocator& a) noexcept
        : host_(&host), op_(&op), alloc_(a) {}
    wait_carrier(wait_carrier&& other) noexcept
        : host_(other.host_), op_(std::exchange(other.op_, nullptr)), alloc_(other.alloc_) {}
    wait_carrier& operator=(wait_carrier&&) = delete;
    ~wait_carrier() {
        if (op_)
            host_->abandon(*op_);
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() {
        bool owned = host_->arrive(*op_);
        if (!owned) {
            // Pulled back by a re-arm. It waits again, so it needs work again; no lock is held
            // here. Should that throw, the wait goes on without.
            op_->regain_work();
            owned = !host_->park(*op_);
        }
        wait_operation& op = *std::exchange(op_, nullptr);
        if (owned)
            op.complete();
    }

private:
    wait_host* host_;
    wait_operation* op_;
    [[no_unique_address]] Allocator alloc_;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_WAIT_CARRIER_HPP
