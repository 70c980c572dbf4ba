// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A wait that is part of a larger object and has no handler of its own: the limit of an
///   operation. It can be ended without a word to anybody (timer_handle::leave(),
///   dispatcher::withdraw()).
///
/// Model
///   The object keeps the memory. It may be freed once the wait was withdrawn, or has called
///   wait_ended() or wait_destroyed(), of which exactly one happens to a wait that was started.
///
/// Cost
///   32 bytes. No allocation but that of a hand-over to an executor which is not the native one,
///   and only when the wait falls due.
#ifndef PAWL_WAIT_HELD_WAIT_HPP
#define PAWL_WAIT_HELD_WAIT_HPP

#include <pawl/wait/wait_carrier.hpp>
#include <pawl/wait/wait_operation.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/system/error_code.hpp>

namespace pawl::detail {

/// The base of such an object.
///
/// @tparam Object has `wait_ended(error_code)`, which is called on `wait_executor()`;
///                `wait_destroyed()`, called anywhere; `wait_executor()`; `is_native(executor,
///                host)`, whether that is the native one of the host's context; `carrier_allocator()`.
///                The outstanding work is its own business.
template <class Object>
class held_wait : public wait_operation {
protected:
    // Handed over in any case: to look at the executor costs the many operations that beat their
    // limits more than the second lock costs the few that do not.
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
