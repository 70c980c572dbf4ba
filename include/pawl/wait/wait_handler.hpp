// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A wait with its completion handler: associated allocator, executor, cancellation slot and
///   work.
///
/// Model
///   Two shapes. Where the associated executor is the native executor of the timer's own context,
///   the handler is invoked by the thread that runs the context, as Asio does it, and nothing but
///   the handler is stored. Otherwise the operation keeps that executor, with work outstanding on
///   it until the hand-over, and the handler is dispatched through it: only there, inside the
///   strand or the other context, does the wait start.
///
/// Cost
///   One allocation per wait by the associated allocator, freed before the handler is invoked; one
///   more by the executor where there is a hand-over.
#ifndef PAWL_WAIT_WAIT_HANDLER_HPP
#define PAWL_WAIT_WAIT_HANDLER_HPP

#include <pawl/wait/allocated.hpp>
#include <pawl/wait/wait_allocator.hpp>
#include <pawl/wait/wait_carrier.hpp>
#include <pawl/wait/wait_operation.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/prefer.hpp>

#include <new>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Stands for the executor of a handler that needs no hand-over.
struct native_executor {};

/// The executor of a handler, and that of its timer where the context would not see the wait
/// otherwise.
template <class HandlerExecutor, class TimerExecutor>
struct foreign_executors {
    HandlerExecutor handler;
    TimerExecutor timer;
};

/// Outstanding work on an executor of either kind. executor_work_guard takes a strand for a
/// Networking TS executor whatever it is a strand of, so executors with properties are tracked
/// here.
template <class Executor>
class outstanding_work {
public:
    explicit outstanding_work(const Executor& ex) : guard_(ex) {}

private:
    boost::asio::executor_work_guard<Executor> guard_;
};

template <class Executor>
    requires boost::asio::execution::is_executor<Executor>::value
class outstanding_work<Executor> {
public:
    explicit outstanding_work(const Executor& ex)
        : tracked_(boost::asio::prefer(ex, boost::asio::execution::outstanding_work.tracked)) {}

private:
    std::decay_t<typename boost::asio::prefer_result<
        const Executor&, boost::asio::execution::outstanding_work_t::tracked_t>::type>
        tracked_;
};

/// Outstanding work, or none: to move it leaves none behind. What a std::optional would do, whose
/// header costs a hundredth of the time that it takes to compile a timer.
template <class Executor>
class held_work {
public:
    explicit held_work(const Executor& ex) { gain(ex); }
    held_work(held_work&& other) {
        if (other.held_) {
            ::new (static_cast<void*>(&work_)) outstanding_work<Executor>(std::move(other.work_));
            held_ = true;
            other.drop();
        }
    }
    held_work& operator=(held_work&&) = delete;
    ~held_work() { drop(); }

    /// Has work again.
    void gain(const Executor& ex) {
        drop();
        ::new (static_cast<void*>(&work_)) outstanding_work<Executor>(ex);
        held_ = true;
    }

private:
    void drop() noexcept {
        if (std::exchange(held_, false))
            work_.~outstanding_work();
    }

    union {
        outstanding_work<Executor> work_;
    };
    bool held_ = false;
};

/// The executor of a handler with outstanding work on it, from the start of the wait to its
/// hand-over.
template <class Executor>
class handler_work {
public:
    explicit handler_work(const Executor& ex) : executor_(ex), work_(ex) {}

    [[nodiscard]] const Executor& executor() const noexcept { return executor_; }

    /// Gives the work away.
    [[nodiscard]] auto release() { return std::move(work_); }
    /// Has work again.
    void regain() { work_.gain(executor_); }

private:
    Executor executor_;
    held_work<Executor> work_;
};

/// Nothing of the timer's executor is kept beyond the hand-over: its context may be gone by then.
template <class HandlerExecutor, class TimerExecutor>
class handler_work<foreign_executors<HandlerExecutor, TimerExecutor>> {
public:
    explicit handler_work(const foreign_executors<HandlerExecutor, TimerExecutor>& ex)
        : handler_(ex.handler), timer_(ex.timer) {}

    [[nodiscard]] const HandlerExecutor& executor() const noexcept { return handler_.executor(); }
    [[nodiscard]] auto release() { return std::pair(handler_.release(), std::move(timer_)); }
    void regain() { handler_.regain(); }

private:
    handler_work<HandlerExecutor> handler_;
    held_work<TimerExecutor> timer_;
};

template <>
class handler_work<native_executor> {
public:
    explicit handler_work(native_executor) noexcept {}
};

/// Stands for no cancellation slot: what a handler has that knows nothing of slots.
struct no_slot {
    [[nodiscard]] static constexpr bool is_connected() noexcept { return false; }
};

template <class Handler>
inline constexpr bool may_have_slot =
    !std::is_same_v<boost::asio::associated_cancellation_slot_t<Handler, no_slot>, no_slot>;

/// Stands for the executor of a handler that has none.
struct no_executor {};

/// The executor of such a handler is that of the I/O object, so that it need not be asked for.
template <class Handler>
inline constexpr bool has_no_executor =
    std::is_same_v<boost::asio::associated_executor_t<Handler, no_executor>, no_executor>;

template <class Handler, class Executor>
class wait_handler final
    : public std::conditional_t<may_have_slot<Handler>, slotted_wait, slotless_wait> {
    using base = std::conditional_t<may_have_slot<Handler>, slotted_wait, slotless_wait>;
    using action = wait_operation::action;
    using allocator_type = handler_allocator<Handler>;

    static constexpr bool native = std::is_same_v<Executor, native_executor>;

public:
    /// Allocates and constructs a wait for a decay-copy of `handler`, and connects its cancellation
    /// slot. Whatever throws, nothing is left behind.
    template <class H>
    [[nodiscard]] static wait_operation& make(H&& handler, const Executor& ex, wait_host& host) {
        allocated_block<wait_handler, allocator_type> memory(get_handler_allocator(handler));
        auto* const op = ::new (memory.address()) wait_handler(std::forward<H>(handler), ex, host);
        memory.release();
        return *op;
    }

private:
    template <class H>
    wait_handler(H&& handler, const Executor& ex, [[maybe_unused]] wait_host& host)
        : base(&wait_handler::perform, native), work_(ex), handler_(std::forward<H>(handler)) {
        if constexpr (may_have_slot<Handler>) {
            auto slot = boost::asio::get_associated_cancellation_slot(handler_);
            if (slot.is_connected())
                slot.template emplace<slot_link>(host, *this);
        }
    }

    static void perform(wait_operation& op, action what, wait_host* host) {
        auto& self = static_cast<wait_handler&>(op);
        if constexpr (!native) {
            if (what == action::hand_over) {
                // Work goes with the hand-over, not with the upcall: once it is queued there, the
                // carrier itself is work of that executor.
                [[maybe_unused]] const auto work = self.work_.release();
                const auto ex =
                    self.work_.executor(); // the wait may be gone before dispatch returns
                boost::asio::dispatch(
                    ex, wait_carrier(*host, op, get_handler_allocator(self.handler_)));
                return;
            }
            if (what == action::regain_work)
                return self.work_.regain();
        }
        PAWL_ASSERT(what == action::complete || what == action::destroy);
        const boost::system::error_code ec = self.result();
        // Before the upcall, so that a wait that it starts reuses the block; and before the end of
        // the handler, which may own what the allocator allocates from.
        Handler handler = [&self] {
            const allocated_object last(get_handler_allocator(self.handler_), self);
            return Handler(std::move(self.handler_));
        }();
        if (what == action::complete)
            std::move(handler)(ec);
    }

    [[no_unique_address]] handler_work<Executor> work_;
    Handler handler_;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_WAIT_HANDLER_HPP
