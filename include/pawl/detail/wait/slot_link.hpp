// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The handler that a wait installs in the cancellation slot of its completion handler.
///
/// Model
///   Link and wait point at each other; the first to go clears the other's pointer. The link does
///   not hold the address of the timer, which may move. A signal emitted after the wait has
///   completed, or after its timer or context is gone, finds nothing and does nothing. Once the
///   wait is started, the link is a user of the host.
#ifndef PAWL_DETAIL_WAIT_SLOT_LINK_HPP
#define PAWL_DETAIL_WAIT_SLOT_LINK_HPP

#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/config.hpp>

#include <boost/asio/cancellation_type.hpp>

namespace pawl::detail {

class slot_link {
public:
    slot_link(wait_host& host, wait_operation& op) noexcept : host_(&host), op_(&op) {
        op.set_slot(this);
    }
    slot_link& operator=(slot_link&&) = delete;
    ~slot_link() {
        if (started_)
            host_->forget(*this);
        else if (op_)
            unlink();
    }

    void operator()(boost::asio::cancellation_type_t type) {
        using boost::asio::cancellation_type;
        const auto any =
            cancellation_type::terminal | cancellation_type::partial | cancellation_type::total;
        if (started_ && (type & any) != cancellation_type::none)
            host_->cancel(*this);
    }

    /// The wait is started: from now on the host counts the link as a user, until it calls
    /// forget().
    void set_started() noexcept { started_ = true; }

    /// The wait, or nullptr. Guarded by the shard's lock once the wait is started.
    [[nodiscard]] wait_operation* operation() const noexcept { return op_; }

    /// Cuts the link.
    void unlink() noexcept {
        PAWL_ASSERT(op_);
        op_->set_slot(nullptr);
        op_ = nullptr;
    }

private:
    wait_host* const host_;
    wait_operation* op_;
    bool started_ = false; ///< written before the wait can end, by the thread that starts it
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_SLOT_LINK_HPP
