// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::stop_on: a stop token cancels an operation. Empty if the standard library has no
/// `std::stop_token` (libc++ before 20).
#ifndef PAWL_STOP_ON_HPP
#define PAWL_STOP_ON_HPP

#include <pawl/config.hpp>

#include <pawl/detail/limit/group_member.hpp>
#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <version>

#if defined(__cpp_lib_jthread) || defined(PAWL_DETAIL_DOXYGEN)
#include <stop_token>

namespace pawl {

namespace detail {

template <class StopToken, class Function>
struct stop_callback_of {
    using type = std::stop_callback<Function>;
};
template <class StopToken, class Function>
    requires requires { typename StopToken::template callback_type<Function>; }
struct stop_callback_of<StopToken, Function> {
    using type = typename StopToken::template callback_type<Function>;
};

struct no_reaction {
    void operator()() const noexcept {}
};

template <class T>
concept a_stop_token =
    requires(const T& token) {
        { token.stop_requested() } noexcept -> std::same_as<bool>;
        { token.stop_possible() } noexcept -> std::same_as<bool>;
    } &&
    std::constructible_from<typename stop_callback_of<T, no_reaction>::type, const T&, no_reaction>;

/// The membership of one operation in a group of its own, which the stop token cancels.
template <class StopToken>
class stop_watch {
public:
    template <class Limit, class Executor>
    stop_watch(const Limit& limit, const Executor& ex)
        : group_(new group_state(boost::asio::any_io_executor())), token_(limit.token),
          member_(group_limit{group_.get()}, ex) {}
    stop_watch& operator=(stop_watch&&) = delete;

    static constexpr bool ends_anywhere = true; ///< see group_member

    bool start(wait_operation& op) {
        (void)member_.start(op);
        callback_.emplace(token_, cancel{group_.get()}); // may call it
        return true;
    }
    [[nodiscard]] bool end(wait_operation& op) noexcept {
        callback_.reset(); // waits until a call in another thread is over
        return member_.end(op);
    }

private:
    struct leave {
        void operator()(group_state* g) const noexcept { g->leave(); }
    };
    struct cancel {
        group_state* group;
        void operator()() const noexcept { group->cancel_or_leave(); }
    };

    const std::unique_ptr<group_state, leave> group_;
    const StopToken token_;
    group_member member_;
    std::optional<typename stop_callback_of<StopToken, cancel>::type> callback_;
};

template <class StopToken>
struct stop_limit {
    using timer_type = stop_watch<StopToken>;

    StopToken token;

    constexpr void check() const noexcept {}
};

struct stop_on_function {
    template <a_stop_token StopToken, class... Args>
    [[nodiscard]] auto operator()(StopToken token, Args&&... args) const {
        static_assert(!(makes_awaitable<std::decay_t<Args>> || ...),
                      "pawl: call the coroutine: stop_on(token, f()), not stop_on(token, f)");
        constexpr bool has_time =
            ((is_duration<std::decay_t<Args>> || is_time_point<std::decay_t<Args>>) || ...);
        static_assert(!has_time, "pawl: stop_on takes no limit: timeout(5s, stop_on(stop, token))");
        if constexpr (has_time)
            return limited<report_cause>(refused_limit{});
        else
            return limited<report_cause>(stop_limit<StopToken>{std::move(token)},
                                         std::forward<Args>(args)...);
    }

    /// Anything else is a mistake.
    template <class First, class... Args>
        requires(!a_stop_token<std::decay_t<First>>)
    [[nodiscard]] auto operator()(First&&, Args&&...) const {
        static_assert(a_stop_token<std::decay_t<First>>,
                      "pawl: the first argument of stop_on is a stop token: "
                      "stop_on(source.get_token(), token)");
        return limited<report_cause>(refused_limit{});
    }
};

} // namespace detail

/// Cancels an asynchronous operation when a stop is requested, in any thread: for programs with
/// `std::jthread`, and for receivers of senders. Forms: `stop_on(stop, token)`, `stop_on(stop,
/// type, token)`, with the default token `stop_on(stop)`, `stop_on(stop, type)`, and for a
/// coroutine `stop_on(stop, awaitable)`. It combines with pawl::timeout(), pawl::in_group() and
/// pawl::abandon.
///
/// @code
/// std::jthread worker([&](std::stop_token stop) {
///     co_spawn(context, session(), pawl::stop_on(stop, detached));
///     context.run();
/// });
/// n = co_await socket.async_read_some(buffer, pawl::timeout(5s, pawl::stop_on(stop, use_awaitable)));
/// @endcode
///
/// `stop` is a `std::stop_token`, or another stoppable token, with a `callback_type`. See
/// group::stop_source() for the other direction.
///
/// @par Completion
/// As without it. A cancelled operation reports `operation_aborted`, as if its slot had been used.
/// If a stop was requested before, it is started, and cancelled at once.
///
/// @par Executor
/// The signal is emitted on the associated executor of the handler, by default that of the I/O
/// object: within `request_stop()` if its caller runs there, otherwise soon after. If several
/// threads run it, it must be a strand. If memory lacks for that, the operation goes on. While
/// `request_stop()` runs, the context of the handler must not be destroyed.
///
/// @par Cancellation
/// A cancellation through the handler's associated cancellation slot is forwarded.
///
/// @par Complexity
/// O(1). Two allocations, one by the handler's associated allocator, and a registration with the
/// token, under its lock.
inline constexpr detail::stop_on_function stop_on{};

} // namespace pawl

#endif

#endif // PAWL_STOP_ON_HPP
