// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::group and pawl::in_group: operations that are cancelled together, with a cause, and waited for.
#ifndef PAWL_GROUP_HPP
#define PAWL_GROUP_HPP

#include <pawl/config.hpp>

#include <pawl/steady_timer.hpp>

#include <pawl/limit/group_member.hpp>
#include <pawl/limit/limited_token.hpp>

#include <pawl/wait/wait_allocator.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
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

/// A wait for the end of all members: on a timer that nothing but wake() and a cancellation ends.
class group_drain final : public drain_waiter {
public:
    explicit group_drain(group_state& g)
        : group_(&g), timer_(g.get_executor(), std::chrono::steady_clock::time_point::max()) {
        g.use();
    }
    group_drain(const group_drain&) = delete;
    group_drain& operator=(const group_drain&) = delete;
    ~group_drain() { group_->release(); }

    [[nodiscard]] group_state& group() const noexcept { return *group_; }
    [[nodiscard]] auto& timer() noexcept { return timer_; }

    void wake() noexcept override {
        const auto keep = std::move(self);
        timer_.cancel();
    }
    void cancel() {
        group_->cancel(*this);
        timer_.cancel();
    }

private:
    group_state* const group_;
    basic_waitable_timer<std::chrono::steady_clock> timer_;
};

/// In the cancellation slot of the handler. May be emitted when the wait is long over.
class cancel_drain {
public:
    explicit cancel_drain(const std::shared_ptr<group_drain>& d) noexcept : drain_(d) {}

    void operator()(boost::asio::cancellation_type_t type) const {
        if (type == boost::asio::cancellation_type::none)
            return;
        if (const auto d = drain_.lock())
            d->cancel();
    }

private:
    std::weak_ptr<group_drain> drain_;
};

/// The handler of the timer.
template <class Handler>
class drain_handler {
public:
    using cancellation_slot_type = boost::asio::cancellation_slot;

    template <class H>
    drain_handler(const std::shared_ptr<group_drain>& d, H&& handler)
        : drain_(d), handler_(std::forward<H>(handler)) {}
    drain_handler(drain_handler&&) = default;
    drain_handler& operator=(drain_handler&&) = delete;
    ~drain_handler() {
        if (drain_)
            drain_->group().forget(*drain_);
    }

    void operator()(const boost::system::error_code&) {
        const auto d = drain_;
        switch (d->group().ended(*d)) {
        case group_state::outcome::drained:
            drain_.reset();
            return std::move(handler_)(boost::system::error_code());
        case group_state::outcome::cancelled:
            drain_.reset();
            return std::move(handler_)(
                boost::system::error_code(boost::asio::error::operation_aborted));
        case group_state::outcome::none:
            // By expire_all(), say, which is what a program calls that waits for its groups.
            return wait(d, std::move(*this));
        }
    }

    static void wait(const std::shared_ptr<group_drain>& d, drain_handler&& h) {
        d->timer().async_wait(std::move(h));
        if (d->group().must_end(*d)) // a cancel() may have come before the wait
            d->timer().cancel();
    }

    /// It is the handler of the caller that listens to that one's slot.
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return {}; }

    /// For associator.
    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

private:
    std::shared_ptr<group_drain> drain_;
    Handler handler_;
};

/// Starts such a wait.
class start_drain {
public:
    using executor_type = boost::asio::any_io_executor;

    explicit start_drain(group_state& g) noexcept : group_(&g) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return group_->get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler) const {
        const auto d = std::allocate_shared<group_drain>(get_handler_allocator(handler), *group_);
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected())
            slot.template emplace<cancel_drain>(d);
        using wrapped = drain_handler<std::decay_t<Handler>>;
        wrapped::wait(d, wrapped(d, std::forward<Handler>(handler)));
        d->group().enter(d);
    }

private:
    group_state* group_;
};

class in_group_function;

} // namespace detail

/// Operations that belong together, such as those of a connection, of a tenant, or of a listener: they
/// are cancelled together, with a cause, and waited for.
///
/// An operation becomes a member by its completion token, pawl::in_group(), and ceases to be one when it
/// ends, whatever ends it. A coroutine is an operation of `boost::asio::co_spawn`, and a wait one of a
/// timer.
///
/// @code
/// pawl::group sessions(context);
/// co_spawn(executor, session(std::move(socket)), pawl::in_group(sessions, detached));
/// ...
/// sessions.cancel(pawl::error::shutting_down);
/// co_await sessions.async_drained(use_awaitable);
/// @endcode
///
/// A group may be made in another one. Whatever cancels the outer one cancels it, too, and the outer one
/// is not drained before it is. Nothing is cancelled outwards.
///
/// A group that was cancelled stays so. An operation that joins it is started, and cancelled at once; a
/// group that is made in it is cancelled from the start.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n
/// @e Shared @e objects: Safe, but for the destructor: no other call may run meanwhile, in_group() included.
/// While cancel() runs, no context may be destroyed on which members run.
/// @par Complexity
/// To join and to leave is O(1) and takes no memory but what the operation takes; the first member of a
/// group and the last one do it again for the group that it is in.
class group {
public:
    /// The type of the executor.
    using executor_type = boost::asio::any_io_executor;

    /// Makes a group. @param ex completes async_drained(), and is where those members are cancelled that
    /// have no other executor.
    /// @throws std::bad_alloc
    explicit group(const executor_type& ex) : state_(new detail::group_state(ex)) {}

    /// Makes a group on the executor of `context`.
    /// @throws std::bad_alloc
    template <class ExecutionContext>
        requires std::convertible_to<ExecutionContext&, boost::asio::execution_context&>
    explicit group(ExecutionContext& context) : group(executor_type(context.get_executor())) {}

    /// Makes a group in `outer`, with its executor. The two may be destroyed in any order.
    /// @throws std::bad_alloc
    explicit group(group& outer) : state_(new detail::group_state(*outer.state_)) {}

    group(const group&) = delete;
    group& operator=(const group&) = delete;

    /// Cancels the members, and the groups in this one, as cancel() does, and lets them go: they may end
    /// later, and a wait for them is still told. Members that cannot be told for want of memory go on.
    ~group() {
        try {
            cancel();
        } catch (...) { // a destructor cannot say so; see above
        }
        state_->release();
    }

    /// The executor that was given to the constructor.
    [[nodiscard]] executor_type get_executor() const noexcept { return state_->get_executor(); }

    /// Cancels all members, and all groups in this one.
    ///
    /// The cancellation signal of each member is emitted on the associated executor of its handler: within
    /// this call if the caller is there, otherwise soon. It is of the type that was given to in_group(),
    /// and no lock is held. A member that ends because of it, with `operation_aborted`, is told
    /// `cause` in its place. A result is kept, and so is a cancellation that came before, from elsewhere.
    ///
    /// @param cause what the members are told, such as pawl::error::shutting_down or
    ///              pawl::error::timed_out. Success means `operation_aborted`. The first cause counts: a
    ///              second call only reaches the members that the first one could not.
    /// @throws std::bad_alloc, or what an executor or an operation throws, after all members have been
    ///         tried. Those for which an executor had no memory stay members; another call tries again.
    void cancel(const boost::system::error_code& cause = boost::asio::error::operation_aborted) {
        state_->cancel(cause ? cause : boost::asio::error::operation_aborted);
    }

    /// Whether the group, or one that it is in, was cancelled.
    [[nodiscard]] bool cancelled() const noexcept { return state_->cancelled(); }

    /// What it was cancelled with; success if it was not.
    [[nodiscard]] boost::system::error_code cause() const noexcept { return state_->cause(); }

    /// How many members there are, a group in this one that has any counted as one.
    [[nodiscard]] std::size_t size() const noexcept { return state_->size(); }

    /// Waits until there is no member, neither here nor in the groups in this one.
    ///
    /// A member has ended when its operation has completed, or was destroyed, and its handler is about to
    /// be invoked; where both use the same strand, or one thread, the handler of the last member runs before
    /// that of this wait. Operations may join meanwhile: a group that is not to be refilled is cancelled
    /// first. It is outstanding work of the group's context, and goes on when the group is destroyed.
    /// pawl::expire_all() and pawl::cancel_all() do not end it.
    ///
    /// @param token signature `void(error_code)`: success, or `operation_aborted` if the wait was cancelled.
    ///              Without one it is a deferred operation, which a coroutine can await.
    /// @par Cancellation
    /// By the associated cancellation slot of the handler, with any type.
    /// @par Executor
    /// The associated executor of the handler, by default that of the group. Never within this call.
    /// @par Complexity
    /// O(1). Two allocations by the associated allocator of the handler; none when the group is drained.
    template <class Token = boost::asio::deferred_t>
    auto async_drained(Token&& token = Token()) {
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            detail::start_drain(*state_), token);
    }

private:
    friend class detail::in_group_function;

    detail::group_state* const state_;
};

namespace detail {

class in_group_function {
    using cancellation_type_t = boost::asio::cancellation_type_t;

public:
    [[nodiscard]] auto
    operator()(group& g, cancellation_type_t type = cancellation_type_t::terminal) const noexcept {
        return partial_limit<group_limit, report_cause>{{g.state_}, type};
    }
    template <class Token>
        requires(!std::is_same_v<std::decay_t<Token>, cancellation_type_t>)
    [[nodiscard]] auto operator()(group& g, Token&& token) const {
        return (*this)(g)(std::forward<Token>(token));
    }
    template <class Token>
    [[nodiscard]] auto operator()(group& g, cancellation_type_t type, Token&& token) const {
        return (*this)(g, type)(std::forward<Token>(token));
    }
};

} // namespace detail

/// Makes an asynchronous operation a member of a group: `in_group(g, token)`, `in_group(g, type, token)`,
/// and, with the default token, `in_group(g)` and `in_group(g, type)`. It is a completion token around
/// the token that you would use otherwise, as pawl::timeout() is, and goes together with that:
///
/// @code
/// n = co_await socket.async_read_some(buffer, pawl::timeout(10s, pawl::in_group(g, use_awaitable)));
/// co_spawn(executor, session(std::move(socket)), pawl::in_group(g, detached));
/// @endcode
///
/// `type` is the cancellation type that the operation is sent, `terminal` if none is given. The group
/// must live until the operation is started, which for a deferred one is when it is awaited.
///
/// @par Completion
/// As without the group, with the same signature. Where the first argument is an `error_code` or an
/// `exception_ptr` that says that the operation was cancelled, and the group was what cancelled it, it is
/// the cause that was given to group::cancel(). What came first counts: if a limit or the caller had
/// cancelled it already, it says so. An operation that ignores cancellation stays a member until it ends.
///
/// @par Executor
/// The signal is emitted on the associated executor of the handler, by default that of the I/O object or,
/// if the operation does not say which that is, the group's. If several threads run it, it must be a
/// strand, as for pawl::cancel_after().
///
/// @par Cancellation
/// A cancellation from outside, through the handler's associated cancellation slot, is forwarded.
///
/// @par Complexity
/// O(1), and one allocation by the handler's associated allocator, freed before the handler is invoked.
///
/// @throws std::bad_alloc from the initiating function, with nothing started.
inline constexpr detail::in_group_function in_group;

} // namespace pawl

/// @cond
// Allocator, executor and whatever else a handler may have.
template <template <class, class> class Associator, class Handler, class Default>
struct boost::asio::associator<Associator, pawl::detail::drain_handler<Handler>, Default>
    : Associator<Handler, Default> {
    static typename Associator<Handler, Default>::type
    get(const pawl::detail::drain_handler<Handler>& h) noexcept {
        return Associator<Handler, Default>::get(h.handler());
    }
    static auto get(const pawl::detail::drain_handler<Handler>& h, const Default& d) noexcept
        -> decltype(Associator<Handler, Default>::get(h.handler(), d)) {
        return Associator<Handler, Default>::get(h.handler(), d);
    }
};
/// @endcond

#endif // PAWL_GROUP_HPP
