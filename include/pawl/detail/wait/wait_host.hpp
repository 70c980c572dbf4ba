// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The shard, as seen by a wait. Carriers, cancellation slots and timers may outlive the execution
/// context: each is counted as a user, which keeps the host alive. The host's lock guards that
/// count.
#ifndef PAWL_DETAIL_WAIT_WAIT_HOST_HPP
#define PAWL_DETAIL_WAIT_WAIT_HOST_HPP

#include <boost/asio/execution_context.hpp>

namespace pawl::detail {

class slot_link;
class wait_operation;

class wait_host {
public:
    /// The context of the timers. It may be gone once the service is shut down.
    [[nodiscard]] virtual const boost::asio::execution_context& context() const noexcept = 0;

    /// A carrier has arrived where the handler can be invoked.
    /// @return true if it must complete the wait; false if the wait was pulled back: call park().
    [[nodiscard]] virtual bool arrive(wait_operation& op) noexcept = 0;

    /// Ends a carrier: arrive(), unless the wait was pulled back and has not become due again. In a
    /// unit of the timers' context arrive() need not be called before.
    /// @return true if the wait goes on without a carrier; false if the caller must complete it.
    [[nodiscard]] virtual bool park(wait_operation& op) noexcept = 0;

    /// A carrier was destroyed without being invoked: its executor was shut down.
    virtual void abandon(wait_operation& op) noexcept = 0;

    /// A cancellation signal was emitted.
    virtual void cancel(slot_link& link) = 0;

    /// The handler in the slot is destroyed; its wait may continue.
    virtual void forget(slot_link& link) noexcept = 0;

protected:
    ~wait_host() = default;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_WAIT_HOST_HPP
