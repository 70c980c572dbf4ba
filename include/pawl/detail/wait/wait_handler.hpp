// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A wait with its completion handler: associated allocator, executor, cancellation slot, and
///   outstanding work.
///
/// Model
///   There are two shapes.
///   - Native: the associated executor is the native executor of the timer's context. The thread
///     that runs the context invokes the handler, as with Asio, and only the handler is stored.
///   - Handed over: the operation also stores the executor, with outstanding work on it until the
///     hand-over. The handler is dispatched through that executor, and the wait becomes `started`
///     only there, inside the strand or the other context.
///
/// Cost
///   One allocation per wait by the associated allocator, freed before the handler is invoked. With
///   a hand-over, one more by the executor.
#ifndef PAWL_DETAIL_WAIT_WAIT_HANDLER_HPP
#define PAWL_DETAIL_WAIT_WAIT_HANDLER_HPP

#include <pawl/detail/wait/claim.hpp>
#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/prefer.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Placeholder executor of a handler that needs no hand-over.
struct native_executor {};

/// The executor of a handler, plus that of its timer if the context could not see the wait
/// otherwise.
template <class HandlerExecutor, class TimerExecutor>
struct foreign_executors {
    HandlerExecutor handler;
    TimerExecutor timer;
};

/// Outstanding work on an executor. executor_work_guard treats every strand as a Networking TS
/// executor, whatever its inner executor; so executors with properties are tracked here.
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

/// The executor of a handler, with outstanding work on it from the start of the wait to its
/// hand-over.
template <class Executor>
class handler_work {
public:
    explicit handler_work(const Executor& ex) : executor_(ex), work_(std::in_place, ex) {}

    [[nodiscard]] const Executor& executor() const noexcept { return executor_; }

    /// Moves the work out.
    [[nodiscard]] auto release() { return std::exchange(work_, std::nullopt); }
    /// Acquires work again.
    void regain() { work_.emplace(executor_); }

private:
    Executor executor_;
    std::optional<outstanding_work<Executor>> work_;
};

/// Releases the work on the timer's executor at the hand-over: its context may be gone after that.
template <class HandlerExecutor, class TimerExecutor>
class handler_work<foreign_executors<HandlerExecutor, TimerExecutor>> {
public:
    explicit handler_work(const foreign_executors<HandlerExecutor, TimerExecutor>& ex)
        : handler_(ex.handler), timer_(std::in_place, ex.timer) {}

    [[nodiscard]] const HandlerExecutor& executor() const noexcept { return handler_.executor(); }
    [[nodiscard]] auto release() {
        return std::pair(handler_.release(), std::exchange(timer_, std::nullopt));
    }
    void regain() { handler_.regain(); }

private:
    handler_work<HandlerExecutor> handler_;
    std::optional<outstanding_work<TimerExecutor>> timer_;
};

template <>
class handler_work<native_executor> {
public:
    explicit handler_work(native_executor) noexcept {}
};

/// Placeholder slot of a handler without an associated slot.
struct no_slot {};

template <class Handler>
inline constexpr bool may_have_slot =
    !std::is_same_v<boost::asio::associated_cancellation_slot_t<Handler, no_slot>, no_slot>;

/// Placeholder executor of a handler without an associated executor.
struct no_executor {};

/// A handler without an associated executor uses that of the I/O object.
template <class Handler>
inline constexpr bool has_no_executor =
    std::is_same_v<boost::asio::associated_executor_t<Handler, no_executor>, no_executor>;

/// The function object that takes a due or cancelled wait to its executor, if that is not the native one. It does not depend
/// on the handler type: Asio instantiates its code once per executor and allocator.
///
/// All copies together are one carrier. The first copy that is invoked acts; later ones do nothing. If none is invoked, the
/// last one to be destroyed abandons the wait. The carrier belongs to one thread; the arbiter synchronises. Copies: see
/// claim.hpp.
template <class Allocator>
class wait_carrier {
public:
    using allocator_type = Allocator;

    wait_carrier(wait_arbiter& arbiter, wait_operation& op, const Allocator& a) noexcept
        : arbiter_(&arbiter), op_(&op), alloc_(a) {}
    wait_carrier(wait_carrier&& other) noexcept = default;
    wait_carrier(const wait_carrier& other) = default;
    wait_carrier& operator=(wait_carrier&&) = delete;
    ~wait_carrier() {
        op_.end([arbiter = arbiter_](wait_operation* op) { arbiter->abandon(*op); });
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() const {
        if (wait_operation* const op = op_.take())
            arrive(*arbiter_, *op);
    }

private:
    static void arrive(wait_arbiter& arbiter, wait_operation& op) {
        bool owned = arbiter.arrive(op);
        if (!owned) {
            // A re-arm has pulled the wait back. The wait needs outstanding work again; no lock is
            // held here. If that throws, the wait goes on without.
            try {
                op.regain_work();
            } catch (...) {
                if (arbiter.arrive_or_park(op))
                    op.complete();
                throw;
            }
            owned = arbiter.arrive_or_park(op);
        }
        if (owned)
            op.complete();
    }

    wait_arbiter* arbiter_;
    claim<wait_operation> op_;
    [[no_unique_address]] Allocator alloc_;
};

/// A function object around a caller's handler, whose associations it has, but for those that it defines itself.
/// `handler()` returns the handler inside; `pawl_wrapped_handler` is its type.
template <class T>
concept handler_wrapper = requires(const T& wrapper) {
    typename T::pawl_wrapped_handler;
    wrapper.handler();
};

template <class Handler, class Executor>
class wait_handler final
    : public std::conditional_t<may_have_slot<Handler>, slotted_wait, wait_operation> {
    using base = std::conditional_t<may_have_slot<Handler>, slotted_wait, wait_operation>;
    using action = wait_operation::action;
    using memory = allocated_block<wait_handler, handler_allocator<Handler>>;
    friend memory;

    static constexpr bool native = std::is_same_v<Executor, native_executor>;

public:
    /// Allocates and constructs a wait with a decay-copy of `handler`, and connects its
    /// cancellation slot. Strong exception guarantee.
    template <class H>
    [[nodiscard]] static wait_operation& make(H&& handler, const Executor& ex,
                                              wait_arbiter& arbiter) {
        return *memory(get_handler_allocator(handler)).make(std::forward<H>(handler), ex, arbiter);
    }

private:
    template <class H>
    wait_handler(H&& handler, const Executor& ex, [[maybe_unused]] wait_arbiter& arbiter)
        : base(&wait_handler::perform, native), work_(ex), handler_(std::forward<H>(handler)) {
        if constexpr (may_have_slot<Handler>) {
            auto slot = boost::asio::get_associated_cancellation_slot(handler_);
            if (slot.is_connected())
                slot.template emplace<slot_link>(arbiter, *this);
        }
    }

    static void perform(wait_operation& op, action what, wait_arbiter* arbiter) {
        auto& self = static_cast<wait_handler&>(op);
        if constexpr (!native) {
            if (what == action::hand_over) {
                // The work ends with the hand-over, not with the upcall: once queued, the carrier
                // itself is work of that executor.
                [[maybe_unused]] const auto work = self.work_.release();
                const auto ex =
                    self.work_.executor(); // the wait may be gone before dispatch returns
                boost::asio::dispatch(
                    ex, wait_carrier(*arbiter, op, get_handler_allocator(self.handler_)));
                return;
            }
            if (what == action::regain_work)
                return self.work_.regain();
        }
        PAWL_ASSERT(what == action::complete || what == action::destroy);
        const boost::system::error_code ec = self.result();
        // Freed before the upcall, so that a wait that the handler starts reuses the block; and
        // before the handler is destroyed, which may own the memory resource of its allocator.
        Handler handler = take_handler(self.handler_, self);
        if (what == action::complete)
            std::move(handler)(ec);
    }

    [[no_unique_address]] handler_work<Executor> work_;
    Handler handler_;
};

} // namespace pawl::detail

template <template <class, class> class Associator, pawl::detail::handler_wrapper Wrapper,
          class Default>
struct boost::asio::associator<Associator, Wrapper, Default>
    : Associator<typename Wrapper::pawl_wrapped_handler, Default> {
    using of_handler = Associator<typename Wrapper::pawl_wrapped_handler, Default>;

    static typename of_handler::type get(const Wrapper& w) noexcept {
        return of_handler::get(w.handler());
    }
    static auto get(const Wrapper& w, const Default& d) noexcept
        -> decltype(of_handler::get(w.handler(), d)) {
        return of_handler::get(w.handler(), d);
    }
};

#endif // PAWL_DETAIL_WAIT_WAIT_HANDLER_HPP
