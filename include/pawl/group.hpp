// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::group and pawl::in_group: cancel operations together, with a cause, and wait for their
/// end.
#ifndef PAWL_GROUP_HPP
#define PAWL_GROUP_HPP

#include <pawl/config.hpp>

#include <pawl/steady_timer.hpp>

#include <pawl/detail/limit/group_member.hpp>
#include <pawl/detail/limit/limited_operation.hpp>
#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>
#include <pawl/detail/limit/post_result.hpp>
#include <pawl/detail/limit/report_timeout.hpp>

#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/timer_handle.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl {

class group;

namespace detail {

/// A wait for the end of all members, on a timer that only wake() or a cancellation ends.
class group_drain final : public drain_waiter {
public:
    explicit group_drain(group_state& g)
        : group_(&g), timer_(g.get_executor(), std::chrono::steady_clock::time_point::max()) {
        g.use();
    }
    group_drain& operator=(group_drain&&) = delete;
    ~group_drain() { group_->leave(); }

    [[nodiscard]] group_state& group() const noexcept { return *group_; }
    [[nodiscard]] auto& timer() noexcept { return timer_; }
    /// Whether the context of the timer ends, so that it cannot wait again.
    [[nodiscard]] bool ends() noexcept {
        return timer_access::handle(timer_).home().state().has_closed();
    }

    void wake() noexcept override {
        const auto keep = std::move(self);
        timer_.cancel();
    }
    void cancel(boost::asio::cancellation_type_t) {
        group_->cancel(*this);
        timer_.cancel();
    }

private:
    group_state* const group_;
    basic_waitable_timer<std::chrono::steady_clock> timer_;
};

/// The handler of the timer.
template <class Handler>
class drain_handler {
public:
    using cancellation_slot_type = boost::asio::cancellation_slot;
    using pawl_wrapped_handler = Handler;

    template <class H>
    drain_handler(const std::shared_ptr<group_drain>& d, H&& handler)
        : drain_(d), handler_(std::forward<H>(handler)) {}
    drain_handler(drain_handler&&) = default;
    drain_handler& operator=(drain_handler&&) = delete;
    ~drain_handler() {
        if (drain_)
            drain_->group().forget(*drain_);
    }

    void operator()(const boost::system::error_code& ec) {
        const auto d = drain_;
        auto result = d->group().ended(*d);
        if (!result) {
            // expire_all() has ended the timer's wait. A program calls it while it waits for its
            // groups: wait again. Not beyond options::max_pending, nor if the context ends and
            // delivers.
            if (ec != boost::asio::error::no_buffer_space && !d->ends())
                return wait(d, std::move(*this));
            d->group().forget(*d);
            result = ec;
        }
        drain_.reset();
        std::move(handler_)(*std::move(result));
    }

    static void wait(const std::shared_ptr<group_drain>& d, drain_handler&& h) {
        d->timer().async_wait(std::move(h));
        if (d->group().must_end(*d)) // cancel() may have come before the wait
            d->timer().cancel();
    }

    /// The caller's handler listens to its own slot.
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return {}; }

    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

private:
    std::shared_ptr<group_drain> drain_;
    Handler handler_;
};

/// Starts a wait for the end of all members.
template <class Handler>
void start_drain(group_state& g, Handler&& handler) {
    const auto d = std::allocate_shared<group_drain>(wait_allocator<void>(), g);
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        slot.template emplace<weak_link<group_drain>>(d);
    using wrapped = drain_handler<std::decay_t<Handler>>;
    wrapped::wait(d, wrapped(d, std::forward<Handler>(handler)));
    g.enter(d);
}

class in_group_function;

template <class Function>
struct alarm_function; // alarm.hpp

/// Of an alarm in a group.
template <class Function>
struct alarm_function<limited_token<Function, group_limit, report_cause>> {
    using type = Function;
    using membership = alarm_member;
    [[nodiscard]] static Function&& function_of(auto& f) noexcept { return std::move(f.token); }
    [[nodiscard]] static group_limit membership_of(const auto& f) noexcept { return f.limit; }
};

} // namespace detail

/// The type of `in_group(g, f)`, with a function `f`. An alarm in a group is an
/// `alarm<grouped<Function>>`.
template <class Function>
using grouped = detail::limited_token<Function, detail::group_limit, detail::report_cause>;

/// Operations that belong together, such as those of a connection, a tenant or a listener. They are
/// cancelled together, with a cause, and the program can wait for their end.
///
/// The completion token pawl::in_group() makes an operation a member until it ends for any reason.
/// A coroutine is a member through `boost::asio::co_spawn`, a wait through its timer, and a
/// pawl::alarm through its function, from its constructor to its destructor. Cancelling the group
/// disarms the alarm for ever, and ends its membership.
///
/// @code
/// pawl::group sessions(context);
/// co_spawn(executor, session(std::move(socket)), pawl::in_group(sessions, detached));
/// ...
/// sessions.cancel(pawl::error::shutting_down);
/// co_await sessions.async_drained(use_awaitable);
/// @endcode
///
/// Groups nest. Cancelling the outer group cancels the inner one, never the other way round. The
/// outer group is drained only after the inner one.
///
/// A cancelled group stays cancelled. An operation that joins it is started, and cancelled at once;
/// a group made in it is cancelled from the start.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: Safe, except for the destructor: no other
/// call may overlap it, including in_group(). While cancel() runs, the contexts of the members must
/// not be destroyed.
/// @par Complexity
/// Joining and leaving are O(1) and take no memory beyond that of the operation. The first and the
/// last member of a group also join and leave the outer group.
class group {
public:
    /// The type of the executor.
    using executor_type = boost::asio::any_io_executor;

    /// Makes a group. @param ex completes async_drained(), and cancels those members that have no
    /// executor of their own.
    /// @throws std::bad_alloc
    explicit group(const executor_type& ex) : state_(new detail::group_state(ex)) {}

    /// Makes a group on the executor of `context`.
    /// @throws std::bad_alloc
    template <detail::execution_context_type ExecutionContext>
    explicit group(ExecutionContext& context) : group(executor_type(context.get_executor())) {}

    /// Makes a group in `outer`, with its executor. The two may be destroyed in any order.
    /// @throws std::bad_alloc
    explicit group(group& outer) : state_(new detail::group_state(*outer.state_)) {}

    group(const group&) = delete;
    group& operator=(const group&) = delete;

    /// Cancels the members and the inner groups, as cancel() does, and detaches them: they may end
    /// later, and pending waits for them still complete. Members that cannot be cancelled for lack
    /// of memory continue.
    ~group() {
        state_->cancel_or_leave();
        state_->leave();
    }

    /// The executor given to the constructor.
    [[nodiscard]] executor_type get_executor() const noexcept { return state_->get_executor(); }

    /// Cancels all members, and all inner groups.
    ///
    /// The cancellation signal of each member is emitted on the associated executor of its handler:
    /// within this call if the caller runs on that executor, otherwise soon after. It has the type
    /// given to in_group(). No lock is held. A member that ends with `operation_aborted` because of
    /// it reports `cause` instead. A result is kept, and so is an earlier cancellation from
    /// elsewhere.
    ///
    /// @param cause the error that members report, such as pawl::error::shutting_down or
    ///     pawl::error::timed_out. Success means `operation_aborted`. The first cause counts: a
    ///     second call only reaches members that the first one could not reach.
    /// @throws std::bad_alloc, or what an executor or an operation throws, after all members were
    ///     tried. Members whose executor had no memory stay members; call again to retry.
    void cancel(const boost::system::error_code& cause = boost::asio::error::operation_aborted) {
        state_->cancel(cause ? cause : boost::asio::error::operation_aborted);
    }

    /// Whether this group, or an outer one, was cancelled.
    [[nodiscard]] bool cancelled() const noexcept { return state_->cancelled(); }

    /// The cause of the cancellation; success if there was none.
    [[nodiscard]] boost::system::error_code cause() const noexcept { return state_->cause(); }

    /// Number of members. An inner group with members counts as one.
    [[nodiscard]] std::size_t size() const noexcept { return state_->size(); }

#if defined(__cpp_lib_jthread) || defined(PAWL_DETAIL_DOXYGEN)
    /// A stop source that is bound to this group: to cancel the group requests a stop, and a
    /// request cancels the group, with `operation_aborted`. So `std::jthread`s and callbacks of
    /// `std::stop_token` end with the operations. All calls return the same source. It may outlive
    /// the group; the destructor of the group requests a stop. See also pawl::stop_on. Members that
    /// a request cannot cancel for lack of memory continue, until cancel() is called.
    /// @throws std::bad_alloc
    [[nodiscard]] std::stop_source stop_source() { return state_->stop_source(); }
#endif

    /// Waits until neither this group nor its inner groups have members.
    ///
    /// A member ends when its operation has completed or was destroyed, and its handler is about to
    /// be invoked. If both use the same strand, or one thread, the handler of the last member runs
    /// before that of this wait. Operations may join in the meantime; to prevent that, cancel the
    /// group first. The wait is outstanding work of the group's context, and continues if the group
    /// is destroyed. pawl::expire_all() and pawl::cancel_all() do not end it, but it then takes a new
    /// block: if that throws, the exception leaves `run()`, and the handler is destroyed.
    ///
    /// @param token signature `void(error_code)`: success, `operation_aborted` if the wait was
    ///     cancelled, or by shutdown_policy::deliver, or `no_buffer_space` beyond
    ///     options::max_pending. By default a deferred operation, which a coroutine can await.
    /// @par Cancellation
    /// By the associated cancellation slot of the handler, with any type.
    /// @par Executor
    /// The associated executor of the handler, by default that of the group. Never within this
    /// call.
    /// @par Complexity
    /// O(1). An allocation by the associated allocator of the handler, and one that the caller's
    /// slot may keep longer, as Pawl allocates waits.
    template <class Token = boost::asio::deferred_t>
    auto async_drained(Token&& token = Token()) {
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            detail::initiation(state_->get_executor(),
                               [g = state_]<class Handler>(Handler&& handler) {
                                   detail::start_drain(*g, std::forward<Handler>(handler));
                               }),
            token);
    }

private:
    friend class detail::in_group_function;

    detail::group_state* const state_;
};

namespace detail {

class in_group_function {
public:
    template <class... Args>
    [[nodiscard]] auto operator()(group& g, Args&&... args) const {
        static_assert(!(makes_awaitable<std::decay_t<Args>> || ...),
                      "pawl: call the coroutine: in_group(g, f()), not in_group(g, f)");
        constexpr bool has_time =
            ((is_duration<std::decay_t<Args>> || is_time_point<std::decay_t<Args>>) || ...);
        static_assert(!has_time, "pawl: in_group takes no limit: timeout(5s, in_group(g, token))");
        if constexpr (has_time)
            return limited<report_cause>(refused_limit{});
        else
            return limited<report_cause>(group_limit{g.state_}, std::forward<Args>(args)...);
    }

    /// Anything else is a mistake.
    template <class First, class... Args>
        requires(!std::convertible_to<First, group&>)
    [[nodiscard]] auto operator()(First&&, Args&&...) const {
        static_assert(std::convertible_to<First, group&>,
                      "pawl: the first argument of in_group is a pawl::group: in_group(g, token)");
        return limited<report_cause>(refused_limit{});
    }
};

} // namespace detail

/// Makes an asynchronous operation or a coroutine a member of a group. Forms: `in_group(g, token)`,
/// `in_group(g, type, token)`, and with the default token `in_group(g)`, `in_group(g, type)`. It is
/// a completion token around the token that you would use otherwise, and combines with
/// pawl::timeout(). For a coroutine, pass the coroutine: `in_group(g, awaitable)` and `in_group(g,
/// type, awaitable)` return an `awaitable` of the same type.
///
/// @code
/// n = co_await socket.async_read_some(buffer, pawl::timeout(10s, pawl::in_group(g, use_awaitable)));
/// co_spawn(executor, session(std::move(socket)), pawl::in_group(g, detached));
/// reply r = co_await pawl::in_group(g, handle(request));      // awaitable<reply> handle(...)
/// @endcode
///
/// `type` is the cancellation type to emit, by default `terminal`. The group must exist until the
/// operation is started; a deferred operation or a coroutine is started when it is awaited. The
/// coroutine runs on the executor of the awaiting coroutine, by one `boost::asio::co_spawn`.
///
/// @par Completion
/// As without the group, with the same signature. Exception: the group cancelled the operation, and
/// its first argument is an `error_code` or an `exception_ptr` that reports a cancellation. It is
/// then replaced by the cause given to group::cancel(). The first cancellation counts: if a limit
/// or the caller came earlier, that one is reported. An operation that ignores cancellation stays a
/// member until it ends.
///
/// @par Executor
/// The signal is emitted on the associated executor of the handler, by default that of the I/O
/// object, or the group's if the operation does not expose that. If several threads run it, it must
/// be a strand, as for pawl::cancel_after().
///
/// @par Cancellation
/// A cancellation through the handler's associated cancellation slot is forwarded.
///
/// @par Complexity
/// O(1), and one allocation by the handler's associated allocator, freed before the handler is invoked.
///
/// @throws std::bad_alloc from the initiating function, with nothing started.
inline constexpr detail::in_group_function in_group;

} // namespace pawl

#endif // PAWL_GROUP_HPP
