// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timeout_stream: a stream with time limits. pawl::tcp_stream, a replacement for
/// boost::beast::tcp_stream.
#ifndef PAWL_TIMEOUT_STREAM_HPP
#define PAWL_TIMEOUT_STREAM_HPP

#include <pawl/config.hpp>

#include <pawl/stream_limits.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/detail/stream/next_layer.hpp>
#include <pawl/detail/stream/stream_impl.hpp>
#include <pawl/detail/stream/stream_operation.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// The state of a stream. A moved-from stream shares it and uses nothing but its executor, which
/// may be queried.
template <class Impl>
class stream_owner {
public:
    stream_owner(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
    stream_owner(stream_owner&& other) noexcept
        : impl_(other.impl_), moved_from_(other.mark_moved_from()) {}
    stream_owner& operator=(stream_owner&& other) noexcept {
        impl_ = other.impl_;
        moved_from_ = other.mark_moved_from();
        return *this;
    }
    ~stream_owner() = default;

    /// False after a move from this object.
    [[nodiscard]] explicit operator bool() const noexcept { return !moved_from_; }

    /// @pre not moved from. The same holds for owned().
    [[nodiscard]] Impl* operator->() const noexcept {
        PAWL_ASSERT(*this);
        return impl_.get();
    }
    [[nodiscard]] const std::shared_ptr<Impl>& owned() const noexcept {
        PAWL_ASSERT(*this);
        return impl_;
    }

    /// The state, also after a move from this object.
    [[nodiscard]] Impl& state() const noexcept { return *impl_; }

private:
    /// @return whether a move had come before.
    bool mark_moved_from() noexcept { return std::exchange(moved_from_, true); }

    std::shared_ptr<Impl> impl_;
    bool moved_from_ = false;
};

} // namespace detail

/// A stream with time limits around another stream.
///
/// It has the members of `boost::beast::tcp_stream`, with the same meaning, so Beast's HTTP and
/// WebSocket and `ssl::stream` run over it. The limits:
///
/// @li `read`, `write`: for one async_read_some() or async_write_some().
/// @li `idle`: no byte has moved in either direction for that long while the stream is open, with
///     or without a pending operation.
/// @li `handshake`: for one async_connect(), and for everything that runs while the guard of
///     limit_handshake() lives, such as the handshake of an `ssl::stream` on top.
/// @li expires_after(), expires_at(): for everything until then, as in Beast.
///
/// stream_limits selects what an expired limit does, closing the next layer or cancelling the
/// pending operations, and which error they report. A successful result is passed on unchanged, so
/// no data is lost. An operation that starts after its limit has expired fails at once; an `idle`
/// that has cancelled an operation counts anew instead. One for whose limit there is no place under
/// options::max_pending fails at once with `boost::asio::error::no_buffer_space`; a limit for a
/// pending operation ends it so. No limit is early, and none is later than one precision of the
/// timer (see pawl::options). pawl::expire_all() makes all limits in force expire, in the next turn
/// of the stream's executor; on a clock that may be set, only with an error code.
///
/// @code
/// pawl::tcp_stream stream(std::move(socket));
/// stream.set_limits({.idle = 60s, .write = 10s});
/// stream.expires_after(30s);
/// co_await http::async_read(stream, buffer, request, use_awaitable); // or beast::error::timeout
/// @endcode
///
/// All limits share one timer and one wait, which is moved, not cancelled. So a completed operation
/// costs one clock read and one store. The wait is outstanding work of the context. After the last
/// operation it may keep `io_context::run()` from returning until that operation's limit would have
/// expired. Beast cancels its timer with each operation instead. The wait also ends with close(),
/// with the destruction of the stream, and with set_limits() and expires_never() if they leave no
/// limit.
///
/// @tparam NextLayer  a `basic_stream_socket`, or any other AsyncStream.
/// @tparam Clock      the clock of the limits. If it throws as a limit expires, the limit holds; if
///                    it throws again at once, the others hold from the next operation on.
/// @tparam WaitTraits as for pawl::basic_waitable_timer.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: Unsafe. If several threads run the
/// context, the executor of the stream must be a strand, because limits expire there. All calls
/// must run in it, including the emission of cancellation signals. Binding handlers to a strand is
/// not enough.
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
    using lowest_layer_type = detail::lowest_layer_of<NextLayer>; ///< the lowest layer
    using socket_type = NextLayer;                                ///< meaningful over a socket only
    using protocol_type = typename detail::socket_types<NextLayer>::protocol; ///< likewise
    using endpoint_type = typename detail::socket_types<NextLayer>::endpoint; ///< likewise
    using clock_type = Clock;                      ///< the clock of the limits
    using duration = typename Clock::duration;     ///< duration of the clock
    using time_point = typename Clock::time_point; ///< time point of the clock

    /// Guard of limit_handshake(). It may outlive the stream.
    class handshake_scope {
    public:
        /// Takes over the guard. `other` no longer ends the limit.
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

    /// A stream without limits. The next layer is constructed from the arguments.
    template <class Arg0, class... Args>
        requires(!std::is_base_of_v<timeout_stream, std::remove_cvref_t<Arg0>> &&
                 std::is_constructible_v<NextLayer, Arg0, Args...>)
    explicit timeout_stream(Arg0&& arg0, Args&&... args)
        : impl_(
              std::make_shared<impl_type>(std::forward<Arg0>(arg0), std::forward<Args>(args)...)) {}

    timeout_stream(const timeout_stream&) = delete;
    timeout_stream& operator=(const timeout_stream&) = delete;

    /// Takes over the next layer, the limits and the pending operations. Afterwards `other` may
    /// only be destroyed, assigned to, moved from, and asked for its executor. It keeps the memory
    /// of the stream and must not outlive the context.
    timeout_stream(timeout_stream&& other) noexcept = default;

    /// Closes this stream, then moves `other` into it.
    timeout_stream& operator=(timeout_stream&& other) noexcept {
        if (this != &other) {
            shut();
            impl_ = std::move(other.impl_);
        }
        return *this;
    }

    /// Takes the next layer of a stream on another executor type, and its limits from set_limits().
    /// @pre `other` has no pending operation.
    template <class Other>
        requires(!std::is_same_v<Other, NextLayer> && std::is_constructible_v<NextLayer, Other>)
    timeout_stream(timeout_stream<Other, Clock, WaitTraits>&& other)
        : impl_(std::make_shared<impl_type>(std::move(other.impl_->layer()))) {
        set_limits(other.limits());
    }

    /// Closes the next layer. Pending operations complete later, with `operation_aborted`.
    ~timeout_stream() { shut(); }

    /// The executor of the next layer. A moved-from stream keeps its executor.
    const executor_type& get_executor() const noexcept { return impl_.state().get_executor(); }

    /// The socket below this stream.
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

    /// The layer below. Not available over a socket, so that `beast::get_lowest_layer()` of a
    /// stream on top yields this stream, as with Beast's.
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

    /// The lowest layer.
    lowest_layer_type& lowest_layer() noexcept { return detail::lowest_layer(impl_->layer()); }
    /// @overload
    const lowest_layer_type& lowest_layer() const noexcept {
        return detail::lowest_layer(impl_->layer());
    }

    /// Returns the socket. Pending operations complete with `operation_aborted`, and all limits
    /// end.
    [[nodiscard]] NextLayer release_socket()
        requires on_socket
    {
        cancel();
        impl_->stop_watching();
        return std::move(impl_->layer());
    }

    /// Sets the limits of operations. A pending read, write or connect gets its new limit, counted
    /// from now. Idle time still counts from the last byte, or from now if there was no idle limit:
    /// without one the stream does not note when bytes move. expires_after() stays in force.
    /// @par Complexity
    /// O(1). Allocates for the first limit.
    void set_limits(const stream_limits& limits) { impl_->set_limits(limits); }

    /// The limits given to set_limits().
    [[nodiscard]] const stream_limits& limits() const noexcept { return impl_->limits(); }

    /// While the returned guard lives, everything must complete within limits().handshake from now.
    /// Operations started directly on the next layer also end, with that layer's own error.
    /// @pre no other guard of this stream lives.
    [[nodiscard]] handshake_scope limit_handshake() {
        handshake_scope scope(impl_.owned());
        impl_->begin_handshake();
        return scope;
    }

    /// Everything must complete within `d` from now: pending operations, and those started before
    /// the next call of expires_after(), expires_at() or expires_never().
    ///
    /// Unlike in Beast, it may be called while operations are pending, and applies to them, too.
    /// @par Complexity
    /// As set_limits().
    void expires_after(const detail::saturated<duration>& d) {
        impl_->expires_at(detail::sum_from_now<Clock>(d));
    }

    /// As expires_after(), with a time point. `time_point::max()` means never.
    void expires_at(const time_point& t) { impl_->expires_at(t); }

    /// Undoes expires_after() and expires_at(). The limits of set_limits() stay.
    void expires_never() { impl_->expires_at(time_point::max()); }

    /// Cancels the pending operations. They complete with `operation_aborted`. Limits stay.
    void cancel() { impl_->cancel(); }

    /// Closes the next layer. Pending operations complete with `operation_aborted`. The limits stay
    /// set, for the next connection.
    void close() { impl_->close(); }

    /// Connects. Blocks, without a limit.
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

    /// Connects to the first endpoint of a range that accepts. With a `condition(error_code,
    /// endpoint)`, tries only endpoints for which it returns true. Blocks, without a limit.
    /// @throws boost::system::system_error on failure.
    template <class EndpointSequence, class ConnectCondition = detail::any_endpoint>
        requires(on_socket && detail::endpoint_condition<ConnectCondition, EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, ConnectCondition condition = {}) {
        return connected(boost::asio::connect(socket(), endpoints, std::move(condition)));
    }
    /// @overload
    template <class EndpointSequence>
        requires(on_socket && detail::endpoint_range<EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, error_code& ec) {
        return connect(endpoints, detail::any_endpoint(), ec);
    }
    /// @overload
    template <class EndpointSequence, class ConnectCondition>
        requires(on_socket && detail::endpoint_condition<ConnectCondition, EndpointSequence>)
    endpoint_type connect(const EndpointSequence& endpoints, ConnectCondition condition,
                          error_code& ec) {
        return connected(boost::asio::connect(socket(), endpoints, std::move(condition), ec), ec);
    }

    /// As above, with a pair of iterators.
    /// @return the iterator of the connected endpoint.
    /// @throws boost::system::system_error on failure.
    template <class Iterator, class ConnectCondition = detail::any_endpoint>
        requires(on_socket && detail::iterator_condition<ConnectCondition, Iterator>)
    Iterator connect(Iterator begin, Iterator end, ConnectCondition condition = {}) {
        return connected(boost::asio::connect(socket(), begin, end, std::move(condition)));
    }
    /// @overload
    template <class Iterator>
        requires(on_socket && !detail::endpoint_range<Iterator>)
    Iterator connect(Iterator begin, Iterator end, error_code& ec) {
        return connect(begin, end, detail::any_endpoint(), ec);
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

    // Not with `requires`: clang checks it after the return type. With Boost 1.83 and some default
    // tokens the return type fails inside a function body, which is an error and not a substitution
    // failure.

    /// Connects to the first endpoint of a range that accepts, within limits().handshake for all of
    /// them.
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

    /// As above, for endpoints for which `condition(error_code, endpoint)` returns true.
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

    /// As above, with a pair of iterators.
    /// @param begin the first endpoint.
    /// @param end   past the last endpoint.
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

    /// Reads available bytes. Blocks, without a limit.
    /// @return the number of bytes.
    /// @throws boost::system::system_error on failure.
    template <class MutableBuffers>
    std::size_t read_some(const MutableBuffers& buffers) {
        return impl_->moved(detail::direction::read, impl_->layer().read_some(buffers));
    }
    /// @overload
    template <class MutableBuffers>
    std::size_t read_some(const MutableBuffers& buffers, error_code& ec) {
        return impl_->moved(detail::direction::read, impl_->layer().read_some(buffers, ec));
    }

    /// Writes as many bytes as the stream takes. Blocks, without a limit.
    /// @return the number of bytes.
    /// @throws boost::system::system_error on failure.
    template <class ConstBuffers>
    std::size_t write_some(const ConstBuffers& buffers) {
        return impl_->moved(detail::direction::write, impl_->layer().write_some(buffers));
    }
    /// @overload
    template <class ConstBuffers>
    std::size_t write_some(const ConstBuffers& buffers, error_code& ec) {
        return impl_->moved(detail::direction::write, impl_->layer().write_some(buffers, ec));
    }

    /// Reads available bytes, within limits().read and the limits for everything.
    ///
    /// The handler is never invoked from within this function. If a limit expires and the operation
    /// then fails, the handler receives the error selected in limits(). An operation of length zero
    /// has no limits of its own, but fails if a limit has expired before.
    /// @param buffers the destination; must stay valid until the operation completes.
    /// @param token   any completion token for `void(error_code, std::size_t)`.
    /// @pre no other read is pending, unless one of the two has length zero.
    /// @par Cancellation
    /// As `async_read_some()` of the next layer. Reports `operation_aborted`, unless a limit has
    /// also expired when the handler is invoked.
    /// @par Complexity
    /// No allocation beyond those of the next layer, except for the first operation.
    template <class MutableBuffers,
              class Token = boost::asio::default_completion_token_t<executor_type>>
    auto async_read_some(const MutableBuffers& buffers, Token&& token = Token())
        -> decltype(boost::asio::async_initiate<Token, signature<std::size_t>>(
            std::declval<initiate_read>(), token, buffers)) {
        return boost::asio::async_initiate<Token, signature<std::size_t>>(initiate_read(*this),
                                                                          token, buffers);
    }

    /// Writes as many bytes as the stream takes, within limits().write and the limits for
    /// everything. Otherwise as async_read_some().
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

    /// Starts an operation when the token asks for it. The limits of a deferred operation begin
    /// then.
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

/// A TCP socket with time limits and the members of `boost::beast::tcp_stream`.
using tcp_stream = timeout_stream<boost::asio::ip::tcp::socket>;

/// Beast's functions that close a stream, found by argument-dependent lookup.
template <class NextLayer, class Clock, class WaitTraits>
void beast_close_socket(timeout_stream<NextLayer, Clock, WaitTraits>& stream) {
    stream.close();
}

// only with Boost {
/// Closes the stream below a WebSocket. Blocks.
template <class NextLayer, class Clock, class WaitTraits>
void teardown(boost::beast::role_type role, timeout_stream<NextLayer, Clock, WaitTraits>& stream,
              boost::system::error_code& ec) {
    using boost::beast::websocket::teardown;
    teardown(role, detail::layer_below(stream), ec);
}

/// Closes the stream below a WebSocket. Only the idle limit can end it, and only if it closes the
/// stream: Beast's teardown continues when it is cancelled. The layers above have their own limits.
template <class NextLayer, class Clock, class WaitTraits, class TeardownHandler>
void async_teardown(boost::beast::role_type role,
                    timeout_stream<NextLayer, Clock, WaitTraits>& stream,
                    TeardownHandler&& handler) {
    using boost::beast::websocket::async_teardown;
    async_teardown(role, detail::layer_below(stream), std::forward<TeardownHandler>(handler));
}
// } only with Boost

} // namespace pawl

#endif // PAWL_TIMEOUT_STREAM_HPP
