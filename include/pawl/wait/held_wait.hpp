// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A wait that is part of a larger object and has no handler of its own, such as the limit of an
///   operation. It can be ended silently: timer_handle::leave(), dispatcher::withdraw().
///
/// Model
///   The object owns the memory. A wait that was started ends in exactly one of three ways: it is
///   withdrawn, wait_ended() is called, or wait_destroyed() is called. After that the object may be
///   freed.
///
/// Cost
///   32 bytes. The only allocation is that of a hand-over to an executor other than the native one,
///   and only when the wait is due.
#ifndef PAWL_WAIT_HELD_WAIT_HPP
#define PAWL_WAIT_HELD_WAIT_HPP

#include <pawl/wait/wait_carrier.hpp>
#include <pawl/wait/wait_operation.hpp>

#include <boost/asio/dispatch.hpp>

namespace pawl::detail {

/// Base class of such an object.
///
/// @tparam Object must have:
/// - `wait_ended(error_code)`, called on `wait_executor()`;
/// - `wait_destroyed()`, called in any thread;
/// - `wait_executor()`;
/// - `is_native(executor, host)`: whether that executor is the native one of the host's context;
/// - `carrier_allocator()`.
/// The object keeps outstanding work itself if it needs any.
template <class Object>
class held_wait : public wait_operation {
protected:
    // Not direct: checking the executor would cost every operation that beats its limit more than
    // the second lock costs the few that do not.
    held_wait() noexcept : wait_operation(&held_wait::perform, false, kind::held) {}
    ~held_wait() = default;

private:
    static void perform(wait_operation& op, action what, wait_host* host) {
        auto& self = static_cast<Object&>(op);
        switch (what) {
        case action::complete:
            self.wait_ended(op.result());
            break;
        case action::hand_over: {
            const auto ex = self.wait_executor(); // the object may be gone before dispatch returns
            if (!self.is_native(ex, *host))
                boost::asio::dispatch(ex, wait_carrier(*host, op, self.carrier_allocator()));
            else if (host->arrive_or_park(op))
                op.complete();
            break;
        }
        case action::regain_work:
            break;
        case action::destroy:
            self.wait_destroyed();
            break;
        }
    }
};

} // namespace pawl::detail

#endif // PAWL_WAIT_HELD_WAIT_HPP
