// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One operation on a pawl::timeout_stream: its start, and the handler that the next layer gets
///   in place of the completion handler.
///
/// Model
///   The layer sees the handler's allocator, executor and other associations, but not its
///   cancellation slot. It gets a slot of the stream instead, so that a limit can end this
///   operation and no other. The handler's slot forwards to it.
///   It is copyable if the handler is. Copies are one operation: only the first call has an effect.
///
/// Cost
///   A handler and three words. No allocation, unless the operation is rejected.
#ifndef PAWL_DETAIL_STREAM_STREAM_OPERATION_HPP
#define PAWL_DETAIL_STREAM_STREAM_OPERATION_HPP

#include <pawl/detail/stream/stream_impl.hpp>

#include <pawl/detail/limit/post_result.hpp>

#include <pawl/detail/wait/claim.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
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

/// The handler in the cancellation slot. The signal may be emitted after the operation has ended.
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

/// A connect is cancelled like a write.
enum class operation_kind : std::uint8_t { read, write, connect };

template <operation_kind Kind>
inline constexpr direction direction_of =
    Kind == operation_kind::read ? direction::read : direction::write;

/// The claim of an operation without limits.
inline constexpr std::max_align_t no_limits{};

/// The completion handler for the next layer. It keeps the parts of the stream that it needs alive.
template <class Impl, operation_kind Kind, class Handler>
class stream_operation {
public:
    using cancellation_slot_type = boost::asio::cancellation_slot;
    using pawl_wrapped_handler = Handler;

    /// No limit applies until begin().
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

    /// Starts its limits and connects the slot of the handler.
    /// @return an error if it must not start.
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

    /// Reports to the handler that the operation was not started.
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

    const Handler& handler() const noexcept { return handler_; }

    friend bool asio_handler_is_continuation(stream_operation* self) {
        using boost::asio::asio_handler_is_continuation;
        return asio_handler_is_continuation(std::addressof(self->handler_));
    }

private:
    static constexpr bool connects = Kind == operation_kind::connect;

    Handler handler_;
    std::shared_ptr<Impl> impl_;
    claim<const void> limits_{&no_limits}; ///< on *impl_ while it has limits
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
/// @param results the results beside the error, for a connect that is not started.
template <class Impl, class Handler, class Start, class... Results>
void start_connect(const std::shared_ptr<Impl>& impl, Handler&& handler, Start start,
                   Results... results) {
    stream_operation<Impl, operation_kind::connect, std::decay_t<Handler>> operation(
        impl, std::forward<Handler>(handler));
    if (const auto ec = operation.begin())
        return operation.refuse(ec, std::move(results)...);
    start(impl->layer(), std::move(operation));
}

/// The condition of a connect without one.
struct any_endpoint {
    template <class Endpoint>
    bool operator()(const boost::system::error_code&, const Endpoint&) const noexcept {
        return true;
    }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_STREAM_STREAM_OPERATION_HPP
