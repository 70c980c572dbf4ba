// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timeout_stream, a stream whose operations cannot take for ever, and pawl::tcp_stream, which
/// stands in for boost::beast::tcp_stream.
#ifndef PAWL_TIMEOUT_STREAM_HPP
#define PAWL_TIMEOUT_STREAM_HPP

#include <pawl/config.hpp>

#include <pawl/service/steady_clock.hpp>

#include <pawl/stream/next_layer.hpp>
#include <pawl/stream/stream_impl.hpp>
#include <pawl/stream/stream_limits.hpp>
#include <pawl/stream/stream_operation.hpp>
#include <pawl/stream/stream_owner.hpp>

#include <pawl/service/latest_now.hpp>
#include <pawl/service/saturating.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl {

/// A stream with limits in time around another one.
///
/// It has the members of `boost::beast::tcp_stream`, and their meaning, so that Beast's HTTP and
/// WebSocket, and `ssl::stream`, run over it. The limits:
///
/// @li `read`, `write`: one async_read_some() or async_write_some().
/// @li `idle`: no byte has moved in either direction for that long while the stream is open, whether
///     or not an operation is pending.
/// @li `handshake`: one async_connect(), and whatever runs while the guard that limit_handshake()
///     returns is alive, such as the handshake of an `ssl::stream` on top.
/// @li expires_after(), expires_at(): everything until then, as in Beast.
///
/// What happens when a limit expires is chosen in stream_limits: the next layer is closed, or what is
/// pending is cancelled; and what the operation reports. A result that was already successful is
/// passed on unchanged, so no data is lost. An operation that is started after a limit that holds for
/// it has expired fails at once. No limit acts early, and none later than one precision of the timer
/// (see pawl::options). pawl::expire_all() makes all limits expire that hold for something when the
/// stream comes to hear of it, in the next turn of its executor.
///
/// @code
/// pawl::tcp_stream stream(std::move(socket));
/// stream.set_limits({.idle = 60s, .write = 10s});
/// stream.expires_after(30s);
/// co_await http::async_read(stream, buffer, request, use_awaitable); // or beast::error::timeout
/// @endcode
///
/// There is one timer for all limits, and one wait on it that is moved, not cancelled. So an operation
/// that completes costs a reading of the clock and a store. That wait is outstanding work of the
/// context. Where Beast cancels its timer with each operation, this wait may keep `io_context::run()`
/// from returning until the limit of the last operation would have expired, unless close(), or the
/// destruction of the stream, or set_limits() and expires_never() that leave no limit, end it.
///
/// @tparam NextLayer  a `basic_stream_socket`, or any other AsyncStream.
/// @tparam Clock      the clock of the limits.
/// @tparam WaitTraits as for pawl::basic_waitable_timer.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n
/// @e Shared @e objects: Unsafe. Where several threads run the context, the executor of the stream
/// must be a strand, and everything, the emission of cancellation signals included, must happen in
/// it: limits expire there. To bind handlers to a strand is not enough.
template <class NextLayer, class Clock = detail::steady_clock,
          class WaitTraits = boost::asio::wait_traits<Clock>>
class timeout_stream {
    using impl_type = detail::stream_impl<NextLayer, Clock, WaitTraits>;
    using error_code = boost::system::error_code;

    static constexpr bool on_socket = detail::socket_layer<NextLayer>;
    static constexpr bool has_default_token =
        !std::is_void_v<boost::asio::default_completion_token_t<typename impl_type::executor_type>>;

    template <class... Results>
    using signature = void(error_code, Results...);

    template <detail::operation_kind Kind>
    class initiate_transfer;
    using initiate_read = initiate_transfer<detail::operation_kind::read>;
    using initiate_write = initiate_transfer<detail::operation_kind::write>;
    class initiate_connect;

public:
    /// The type of the executor of the next layer.
    using executor_type = typename impl_type::executor_type;

    /// The same stream on another executor type.
    template <class Executor1>
    struct rebind_executor {
        /// That stream.
        using other = timeout_stream<typename NextLayer::template rebind_executor<Executor1>::other,
                                     Clock, WaitTraits>;
    };

    using next_layer_type = NextLayer;                            ///< the layer below
    using lowest_layer_type = detail::lowest_layer_of<NextLayer>; ///< what is at the very bottom
    using socket_type = NextLayer; ///< means something over a socket only
    using protocol_type = typename detail::socket_types<NextLayer>::protocol; ///< likewise
    using endpoint_type = typename detail::socket_types<NextLayer>::endpoint; ///< likewise
    using clock_type = Clock;                      ///< the clock of the limits
    using duration = typename Clock::duration;     ///< that of the clock
    using time_point = typename Clock::time_point; ///< that of the clock

    /// While it is alive there is a limit for everything; see limit_handshake(). May outlive the
    /// stream.
    class handshake_scope {
    public:
        /// Takes over the limit; the end of `other` does not end it any more.
        handshake_scope(handshake_scope&& other) noexcept = default;
        handshake_scope& operator=(handshake_scope&&) = delete;
        /// Ends the limit.
        ~handshake_scope() {
            if (const auto impl = impl_.lock())
                impl->end_handshake();
        }

    private:
        friend timeout_stream;
        explicit handshake_scope(const std::shared_ptr<impl_type>& impl) noexcept : impl_(impl) {}

        std::weak_ptr<impl_type> impl_;
    };

    /// A stream without limits over a next layer that is made from the arguments.
    template <class Arg0, class... Args>
        requires(!std::is_base_of_v<timeout_stream, std::remove_cvref_t<Arg0>> &&
                 std::is_constructible_v<NextLayer, Arg0, Args...>)
    explicit timeout_stream(Arg0&& arg0, Args&&... args)
        : impl_(
              std::make_shared<impl_type>(std::forward<Arg0>(arg0), std::forward<Args>(args)...)) {}

    timeout_stream(const timeout_stream&) = delete;
    timeout_stream& operator=(const timeout_stream&) = delete;

    /// Takes over the next layer, the limits, and what is pending. `other` can be destroyed, assigned
    /// to, moved from, and asked for its executor, and nothing else. It keeps the memory of the
    /// stream, and must not outlive the context.
    timeout_stream(timeout_stream&& other) noexcept = default;

    /// Closes this stream, then does as the move constructor.
    timeout_stream& operator=(timeout_stream&& other) noexcept {
        if (this != &other) {
            shut();
            impl_ = std::move(other.impl_);
        }
        return *this;
    }

    /// Takes the next layer out of a stream on another executor type, with the limits that
    /// set_limits() has set.
    /// @pre nothing is pending on `other`.
    template <class Other>
        requires(!std::is_same_v<Other, NextLayer> && std::is_constructible_v<NextLayer, Other>)
    timeout_stream(timeout_stream<Other, Clock, WaitTraits>&& other)
        : impl_(std::make_shared<impl_type>(std::move(other.impl_->layer()))) {
        set_limits(other.limits());
    }

    /// Closes the next layer. What is pending completes with `operation_aborted`, later.
    ~timeout_stream() { shut(); }

    /// The executor of the next layer; of a stream that was moved from, what it was.
    const executor_type& get_executor() const noexcept { return impl_.state().get_executor(); }

    /// The socket below.
    NextLayer& socket() noexcept
        requires on_socket
    {
        return impl_->layer();
    }
    /// @overload
    const NextLayer& socket() const noexcept
        requires on_socket
    {
        return impl_->layer();
    }

    /// The layer below. Not there over a socket, so that `beast::get_lowest_layer()` of anything on
    /// top of this stream yields this stream, as it does with Beast's.
    NextLayer& next_layer() noexcept
        requires(!on_socket)
    {
        return impl_->layer();
    }
    /// @overload
    const NextLayer& next_layer() const noexcept
        requires(!on_socket)
    {
        return impl_->layer();
    }

    /// What is at the very bottom.
    lowest_layer_type& lowest_layer() noexcept { return detail::lowest_layer(impl_->layer()); }
    /// @overload
    const lowest_layer_type& lowest_layer() const noexcept {
        return detail::lowest_layer(impl_->layer());
    }

    /// Gives the socket away. What is pending completes with `operation_aborted`, and all limits end.
    [[nodiscard]] NextLayer release_socket()
        requires on_socket
    {
        cancel();
        impl_->stop_watching();
        return std::move(impl_->layer());
    }

    /// Sets the limits of operations. A read, write or connect that is pending has its new limit from
    /// now on; idleness goes on from the last byte. What expires_after() has set stays.
    /// @par Complexity
    /// O(1). Allocates if it is the first limit.
    void set_limits(const stream_limits& limits) { impl_->set_limits(limits); }

    /// What set_limits() has set.
    [[nodiscard]] const stream_limits& limits() const noexcept { return impl_->limits(); }

    /// While what is returned is alive, everything must be over within limits().handshake from now.
    /// What was started on the next layer itself ends, too, and is told what that layer tells it.
    /// @pre no other guard of this stream is alive.
    [[nodiscard]] handshake_scope limit_handshake() {
        handshake_scope scope(impl_.owned());
        impl_->begin_handshake();
        return scope;
    }

    /// Everything must be over within `d` from now: what is pending, and what is started before the
    /// next call of expires_after(), expires_at() or expires_never().
    ///
    /// Unlike in Beast it may be called with operations pending, and holds for them too.
    /// @par Complexity
    /// As set_limits().
    void expires_after(const duration& d) { impl_->expires_at(detail::sum_from_now<Clock>(d)); }

    /// As expires_after(), with a point in time. `time_point::max()` means never.
    void expires_at(const time_point& t) { impl_->expires_at(t); }

    /// Takes back expires_after() and expires_at(). The limits of set_limits() stay.
    void expires_never() { impl_->expires_at(time_point::max()); }

    /// Cancels what is pending. It completes with `operation_aborted`. Limits stay.
    void cancel() { impl_->cancel(); }

    /// Closes the next layer. What is pending completes with `operation_aborted`. The limits stay
    /// set, and hold again when the stream is connected again.
    void close() { impl_->close(); }

    /// Connects. Blocks, without limits.
    /// @throws boost::system::system_error on failure.
    void connect(const endpoint_type& ep)
        requires on_socket
    {
        socket().connect(ep);
        impl_->connected();
    }
    /// @overload
    void connect(const endpoint_type& ep, error_code& ec)
        requires on_socket
    {
        socket().connect(ep, ec);
        if (!ec)
            impl_->connected();
    }

    /// Connects to the first endpoint of a range that accepts, trying only what
    /// `condition(error_code, endpoint)` accepts, if there is one. Blocks, without limits.
    /// @throws boost::system::system_error on failure.
    template <class EndpointSequence>
        requires(on_socket && detail::endpoint_range<EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints) {
        return connected(boost::asio::connect(socket(), endpoints));
    }
    /// @overload
    template <class EndpointSequence>
        requires(on_socket && detail::endpoint_range<EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, error_code& ec) {
        return connected(boost::asio::connect(socket(), endpoints, ec), ec);
    }
    /// @overload
    template <class EndpointSequence, class ConnectCondition>
        requires(on_socket && detail::endpoint_condition<ConnectCondition, EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, ConnectCondition condition) {
        return connected(boost::asio::connect(socket(), endpoints, std::move(condition)));
    }
    /// @overload
    template <class EndpointSequence, class ConnectCondition>
        requires(on_socket && detail::endpoint_condition<ConnectCondition, EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, ConnectCondition condition,
                          error_code& ec) {
        return connected(boost::asio::connect(socket(), endpoints, std::move(condition), ec), ec);
    }

    /// The same with a range of iterators.
    /// @return the one of the endpoint.
    /// @throws boost::system::system_error on failure.
    template <class Iterator>
        requires(on_socket && !detail::endpoint_range<Iterator>)
    Iterator connect(Iterator begin, Iterator end) {
        return connected(boost::asio::connect(socket(), begin, end));
    }
    /// @overload
    template <class Iterator>
        requires(on_socket && !detail::endpoint_range<Iterator>)
    Iterator connect(Iterator begin, Iterator end, error_code& ec) {
        return connected(boost::asio::connect(socket(), begin, end, ec), ec);
    }
    /// @overload
    template <class Iterator, class ConnectCondition>
        requires(on_socket && detail::iterator_condition<ConnectCondition, Iterator>)
    Iterator connect(Iterator begin, Iterator end, ConnectCondition condition) {
        return connected(boost::asio::connect(socket(), begin, end, std::move(condition)));
    }
    /// @overload
    template <class Iterator, class ConnectCondition>
        requires(on_socket && detail::iterator_condition<ConnectCondition, Iterator>)
    Iterator connect(Iterator begin, Iterator end, ConnectCondition condition, error_code& ec) {
        return connected(boost::asio::connect(socket(), begin, end, std::move(condition), ec), ec);
    }

    /// Connects to an endpoint within limits().handshake.
    /// @param ep    the endpoint.
    /// @param token any completion token for `void(error_code)`.
    /// @par Cancellation
    /// As `async_connect()` of the socket.
    template <class Token = boost::asio::default_completion_token_t<executor_type>>
        requires on_socket
    auto async_connect(const endpoint_type& ep, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<>>(
            std::declval<initiate_connect>(), token, ep)) {
        return boost::asio::async_initiate<Token, signature<>>(initiate_connect(*this), token, ep);
    }

    // Not by `requires`, which clang looks at after the return type: with Boost 1.83 and some default
    // tokens that one fails in a body, and then nothing is left out of the overload set.

    /// Connects to the first endpoint of a range that accepts, all within limits().handshake.
    /// @param endpoints the range, such as the results of a resolver.
    /// @param token     any completion token for `void(error_code, endpoint_type)`.
    template <class EndpointSequence,
              class Token = boost::asio::default_completion_token_t<executor_type>,
              std::enable_if_t<on_socket && detail::endpoint_range<EndpointSequence> &&
                                   (!has_default_token ||
                                    !detail::endpoint_condition<Token, EndpointSequence>),
                               int> = 0>
    auto async_connect(const EndpointSequence& endpoints, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<endpoint_type>>(
            std::declval<initiate_connect>(), token, endpoints, detail::any_endpoint())) {
        return boost::asio::async_initiate<Token, signature<endpoint_type>>(
            initiate_connect(*this), token, endpoints, detail::any_endpoint());
    }

    /// The same, trying only what `condition(error_code, endpoint)` accepts.
    template <
        class EndpointSequence, class ConnectCondition,
        class Token = boost::asio::default_completion_token_t<executor_type>,
        std::enable_if_t<
            on_socket && detail::endpoint_condition<ConnectCondition, EndpointSequence>, int> = 0>
    auto async_connect(const EndpointSequence& endpoints, ConnectCondition condition,
                       Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<endpoint_type>>(
            std::declval<initiate_connect>(), token, endpoints, std::move(condition))) {
        return boost::asio::async_initiate<Token, signature<endpoint_type>>(
            initiate_connect(*this), token, endpoints, std::move(condition));
    }

    /// The same with a range of iterators.
    /// @param begin the first endpoint.
    /// @param end   behind the last one.
    /// @param token any completion token for `void(error_code, Iterator)`.
    template <
        class Iterator, class Token = boost::asio::default_completion_token_t<executor_type>,
        std::enable_if_t<on_socket && !detail::endpoint_range<Iterator> &&
                             (!has_default_token || !detail::iterator_condition<Token, Iterator>),
                         int> = 0>
    auto async_connect(Iterator begin, Iterator end, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<Iterator>>(
            std::declval<initiate_connect>(), token, begin, end, detail::any_endpoint())) {
        return boost::asio::async_initiate<Token, signature<Iterator>>(
            initiate_connect(*this), token, begin, end, detail::any_endpoint());
    }
    /// @overload
    template <class Iterator, class ConnectCondition,
              class Token = boost::asio::default_completion_token_t<executor_type>,
              std::enable_if_t<on_socket && detail::iterator_condition<ConnectCondition, Iterator>,
                               int> = 0>
    auto async_connect(Iterator begin, Iterator end, ConnectCondition condition,
                       Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<Iterator>>(
            std::declval<initiate_connect>(), token, begin, end, std::move(condition))) {
        return boost::asio::async_initiate<Token, signature<Iterator>>(
            initiate_connect(*this), token, begin, end, std::move(condition));
    }

    /// Reads what there is. Blocks, without limits.
    /// @return the number of bytes.
    /// @throws boost::system::system_error on failure.
    template <class MutableBuffers>
    std::size_t read_some(const MutableBuffers& buffers) {
        return impl_->moved(impl_->layer().read_some(buffers));
    }
    /// @overload
    template <class MutableBuffers>
    std::size_t read_some(const MutableBuffers& buffers, error_code& ec) {
        return impl_->moved(impl_->layer().read_some(buffers, ec));
    }

    /// Writes what fits. Blocks, without limits.
    /// @return the number of bytes.
    /// @throws boost::system::system_error on failure.
    template <class ConstBuffers>
    std::size_t write_some(const ConstBuffers& buffers) {
        return impl_->moved(impl_->layer().write_some(buffers));
    }
    /// @overload
    template <class ConstBuffers>
    std::size_t write_some(const ConstBuffers& buffers, error_code& ec) {
        return impl_->moved(impl_->layer().write_some(buffers, ec));
    }

    /// Reads what there is, within limits().read and the limits that hold for everything.
    ///
    /// The handler is never invoked from within this function. If a limit expires first, and the
    /// operation then fails, it is told the error that was chosen in limits(). An operation of length
    /// zero has no limits of its own, but fails if one has expired before.
    /// @param buffers where to; what they refer to must stay until the operation completes.
    /// @param token   any completion token for `void(error_code, std::size_t)`.
    /// @pre no other read is pending, unless either is of length zero.
    /// @par Cancellation
    /// As `async_read_some()` of the next layer. It is told `operation_aborted`, unless a limit has
    /// expired too by the time at which the handler is invoked.
    /// @par Complexity
    /// Allocates nothing beyond what the next layer does, except what the first operation needs.
    template <class MutableBuffers,
              class Token = boost::asio::default_completion_token_t<executor_type>>
    auto async_read_some(const MutableBuffers& buffers, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<std::size_t>>(
            std::declval<initiate_read>(), token, buffers)) {
        return boost::asio::async_initiate<Token, signature<std::size_t>>(initiate_read(*this),
                                                                          token, buffers);
    }

    /// Writes what fits, within limits().write and the limits that hold for everything. Otherwise as
    /// async_read_some().
    template <class ConstBuffers,
              class Token = boost::asio::default_completion_token_t<executor_type>>
    auto async_write_some(const ConstBuffers& buffers, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<std::size_t>>(
            std::declval<initiate_write>(), token, buffers)) {
        return boost::asio::async_initiate<Token, signature<std::size_t>>(initiate_write(*this),
                                                                          token, buffers);
    }

private:
    template <class, class, class>
    friend class timeout_stream;

    /// What starts an operation when the token asks for it; for a deferred one, that is when its
    /// limits begin.
    class initiation {
    public:
        using executor_type = timeout_stream::executor_type;

        explicit initiation(timeout_stream& self) noexcept : self_(&self) {}

        const executor_type& get_executor() const noexcept { return self_->get_executor(); }

    protected:
        const std::shared_ptr<impl_type>& impl() const noexcept { return self_->impl_.owned(); }

    private:
        timeout_stream* self_;
    };

    template <detail::operation_kind Kind>
    class initiate_transfer : public initiation {
    public:
        using initiation::initiation;

        template <class Handler, class Buffers>
        void operator()(Handler&& handler, const Buffers& buffers) const {
            detail::start_transfer<Kind>(this->impl(), std::forward<Handler>(handler), buffers);
        }
    };

    class initiate_connect : public initiation {
    public:
        using initiation::initiation;

        template <class Handler>
        void operator()(Handler&& handler, const endpoint_type& ep) const {
            const auto start = [&](NextLayer& layer, auto&& operation) {
                layer.async_connect(ep, std::move(operation));
            };
            detail::start_connect(this->impl(), std::forward<Handler>(handler), start);
        }

        template <class Handler, class Endpoints, class Condition>
            requires detail::endpoint_range<Endpoints>
        void operator()(Handler&& handler, const Endpoints& endpoints,
                        const Condition& condition) const {
            const auto start = [&](NextLayer& layer, auto&& operation) {
                boost::asio::async_connect(layer, endpoints, condition, std::move(operation));
            };
            detail::start_connect(this->impl(), std::forward<Handler>(handler), start,
                                  endpoint_type());
        }

        template <class Handler, class Iterator, class Condition>
        void operator()(Handler&& handler, const Iterator& begin, const Iterator& end,
                        const Condition& condition) const {
            const auto start = [&](NextLayer& layer, auto&& operation) {
                boost::asio::async_connect(layer, begin, end, condition, std::move(operation));
            };
            detail::start_connect(this->impl(), std::forward<Handler>(handler), start, end);
        }
    };

    template <class Endpoint> // or an iterator
    Endpoint connected(Endpoint ep, const error_code& ec = {}) {
        if (!ec)
            impl_->connected();
        return ep;
    }

    void shut() noexcept {
        if (impl_)
            impl_->close();
    }

    detail::stream_owner<impl_type> impl_;
};

namespace detail {

template <class NextLayer, class Clock, class WaitTraits>
NextLayer& layer_below(timeout_stream<NextLayer, Clock, WaitTraits>& stream) noexcept {
    if constexpr (socket_layer<NextLayer>)
        return stream.socket();
    else
        return stream.next_layer();
}

} // namespace detail

/// A TCP socket with limits, with the members of `boost::beast::tcp_stream`.
using tcp_stream = timeout_stream<boost::asio::ip::tcp::socket>;

/// Beast's ways to end a stream, found by argument-dependent lookup.
template <class NextLayer, class Clock, class WaitTraits>
void beast_close_socket(timeout_stream<NextLayer, Clock, WaitTraits>& stream) {
    stream.close();
}

/// Ends a WebSocket connection over the stream. Blocks.
template <class NextLayer, class Clock, class WaitTraits>
void teardown(boost::beast::role_type role, timeout_stream<NextLayer, Clock, WaitTraits>& stream,
              boost::system::error_code& ec) {
    using boost::beast::websocket::teardown;
    teardown(role, detail::layer_below(stream), ec);
}

/// Ends a WebSocket connection over the stream. Of its limits only idle ends it, and only if that closes:
/// Beast's teardown goes on when it is cancelled. The layers above have limits of their own.
template <class NextLayer, class Clock, class WaitTraits, class TeardownHandler>
void async_teardown(boost::beast::role_type role,
                    timeout_stream<NextLayer, Clock, WaitTraits>& stream,
                    TeardownHandler&& handler) {
    using boost::beast::websocket::async_teardown;
    async_teardown(role, detail::layer_below(stream), std::forward<TeardownHandler>(handler));
}

} // namespace pawl

#endif // PAWL_TIMEOUT_STREAM_HPP
