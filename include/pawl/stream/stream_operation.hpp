// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One operation on a pawl::timeout_stream: what is given to the next layer in the place of the
///   completion handler, and how it is started.
///
/// Model
///   The handler's allocator, executor and so on are passed on to the layer; its cancellation slot is
///   not. The layer gets one that belongs to the stream, so that a limit can end this operation and
///   no other, and the handler's slot forwards to it.
///   It can be copied if the handler can. Copies are one operation: what is called after another one
///   does nothing.
///
/// Cost
///   A handler and three words. No allocation, unless it is refused.
#ifndef PAWL_STREAM_STREAM_OPERATION_HPP
#define PAWL_STREAM_STREAM_OPERATION_HPP

#include <pawl/stream/stream_impl.hpp>

#include <pawl/wait/claim.hpp>
#include <pawl/wait/post_result.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/handler_continuation_hook.hpp>
#include <boost/system/error_code.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// What the cancellation slot of a handler does. It may be emitted when the operation is long over.
template <class Impl>
class forward_cancellation {
public:
    forward_cancellation(const std::shared_ptr<Impl>& impl, direction d)
        : impl_(impl), number_(impl->number(d)), direction_(d) {}

    void operator()(boost::asio::cancellation_type_t type) const {
        if (const auto impl = impl_.lock())
            impl->cancel(direction_, number_, type);
    }

private:
    std::weak_ptr<Impl> impl_;
    std::uint32_t number_;
    direction direction_;
};

/// A connect is cancelled as a write is.
enum class operation_kind : std::uint8_t { read, write, connect };

template <operation_kind Kind>
inline constexpr direction direction_of =
    Kind == operation_kind::read ? direction::read : direction::write;

/// What an operation has a claim on that limits do not concern.
inline constexpr std::max_align_t no_limits{};

/// The completion handler that the next layer gets. It keeps what it needs of the stream.
template <class Impl, operation_kind Kind, class Handler>
class stream_operation {
public:
    using cancellation_slot_type = boost::asio::cancellation_slot;

    /// Limits do not concern it until begin().
    template <class Handler1>
    stream_operation(const std::shared_ptr<Impl>& impl, Handler1&& handler)
        : handler_(std::forward<Handler1>(handler)), impl_(impl) {}

    stream_operation(stream_operation&&) = default;
    stream_operation(const stream_operation&) = default;
    stream_operation& operator=(stream_operation&&) = delete;

    ~stream_operation() {
        limits_.end([impl = impl_.get()](const void* object) {
            if (object != impl)
                return;
            if constexpr (connects)
                impl->abandon_connect();
            else
                impl->abandon(direction_of<Kind>);
        });
    }

    /// Its limits begin, and the slot of the handler is connected.
    /// @return an error if it must not be started.
    [[nodiscard]] boost::system::error_code begin() {
        boost::system::error_code ec;
        if constexpr (connects)
            ec = impl_->begin_connect();
        else
            ec = impl_->begin(direction_of<Kind>);
        if (ec)
            return ec;
        limits_.reset(impl_.get());
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.template emplace<forward_cancellation<Impl>>(impl_, direction_of<Kind>);
        return ec;
    }

    /// Has the handler told that the operation was not started.
    template <class... Results>
    void refuse(Results... results) {
        detail::post_result(impl_->get_executor(), std::move(handler_), std::move(results)...);
    }

    template <class... Results>
    void operator()(boost::system::error_code ec, Results... results) const
        requires std::copy_constructible<Handler>
    {
        auto copy = *this;
        copy(ec, std::move(results)...);
    }
    template <class... Results>
    void operator()(boost::system::error_code ec, Results... results) {
        const void* const object = limits_.take();
        if (!object)
            return;
        if (const auto impl = std::move(impl_); object == impl.get()) {
            if constexpr (connects)
                ec = impl->finish_connect(ec);
            else
                ec = impl->finish(direction_of<Kind>, ec, results...);
        }
        std::move(handler_)(ec, std::move(results)...);
    }

    cancellation_slot_type get_cancellation_slot() const noexcept {
        if (!impl_ || limits_.get() != impl_.get())
            return {};
        return impl_->slot(direction_of<Kind>);
    }

    /// For associator.
    const Handler& handler() const noexcept { return handler_; }

    friend bool asio_handler_is_continuation(stream_operation* self) {
        using boost::asio::asio_handler_is_continuation;
        return asio_handler_is_continuation(std::addressof(self->handler_));
    }

private:
    static constexpr bool connects = Kind == operation_kind::connect;

    Handler handler_;
    std::shared_ptr<Impl> impl_;
    claim<const void> limits_{&no_limits}; ///< on *impl_ while it is limited
};

template <class Buffers>
[[nodiscard]] bool has_bytes(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto i = boost::asio::buffer_sequence_begin(buffers); i != end; ++i) {
        if (boost::asio::const_buffer(*i).size() != 0)
            return true;
    }
    return false;
}

template <operation_kind Kind, class Impl, class Handler, class Buffers>
void start_transfer(const std::shared_ptr<Impl>& impl, Handler&& handler, const Buffers& buffers) {
    stream_operation<Impl, Kind, std::decay_t<Handler>> operation(impl,
                                                                  std::forward<Handler>(handler));
    const auto ec = has_bytes(buffers) ? operation.begin() : impl->begin_empty(direction_of<Kind>);
    if (ec)
        return operation.refuse(ec, std::size_t{0});
    if constexpr (Kind == operation_kind::read)
        impl->layer().async_read_some(buffers, std::move(operation));
    else
        impl->layer().async_write_some(buffers, std::move(operation));
}

/// @param start   `start(layer, operation)` starts the connect of the layer.
/// @param results what the handler gets beside the error if that is not started.
template <class Impl, class Handler, class Start, class... Results>
void start_connect(const std::shared_ptr<Impl>& impl, Handler&& handler, Start start,
                   Results... results) {
    stream_operation<Impl, operation_kind::connect, std::decay_t<Handler>> operation(
        impl, std::forward<Handler>(handler));
    if (const auto ec = operation.begin())
        return operation.refuse(ec, std::move(results)...);
    start(impl->layer(), std::move(operation));
}

/// The condition of a connect that has none.
struct any_endpoint {
    template <class Endpoint>
    bool operator()(const boost::system::error_code&, const Endpoint&) const noexcept {
        return true;
    }
};

} // namespace pawl::detail

/// Allocator, executor and whatever else a handler may have.
template <template <class, class> class Associator, class Impl, pawl::detail::operation_kind Kind,
          class Handler, class Default>
struct boost::asio::associator<Associator, pawl::detail::stream_operation<Impl, Kind, Handler>,
                               Default> : Associator<Handler, Default> {
    using operation = pawl::detail::stream_operation<Impl, Kind, Handler>;

    static typename Associator<Handler, Default>::type get(const operation& op) noexcept {
        return Associator<Handler, Default>::get(op.handler());
    }
    static auto get(const operation& op, const Default& d) noexcept
        -> decltype(Associator<Handler, Default>::get(op.handler(), d)) {
        return Associator<Handler, Default>::get(op.handler(), d);
    }
};

#endif // PAWL_STREAM_STREAM_OPERATION_HPP
