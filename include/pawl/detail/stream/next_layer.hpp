// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file Functions that a pawl::timeout_stream needs for the layer below, besides reading and
/// writing: find the lowest layer, close it, cancel its operations, and query whether it is open.
#ifndef PAWL_DETAIL_STREAM_NEXT_LAYER_HPP
#define PAWL_DETAIL_STREAM_NEXT_LAYER_HPP

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/connect.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/system/error_code.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <class Protocol, class Executor>
void match_socket(const boost::asio::basic_stream_socket<Protocol, Executor>&);

/// A socket, or a class derived from one.
template <class Layer>
concept socket_layer = requires(const Layer& layer) { match_socket(layer); };

/// The types of a socket; placeholders for any other layer.
template <class Layer>
struct socket_types {
    struct protocol {};
    struct endpoint {};
};
template <socket_layer Layer>
struct socket_types<Layer> {
    using protocol = typename Layer::protocol_type;
    using endpoint = typename Layer::endpoint_type;
};

/// A range of endpoints to try in turn.
template <class Endpoints>
concept endpoint_range = static_cast<bool>(boost::asio::is_endpoint_sequence<Endpoints>::value);

/// A condition on endpoints. (Asio's old form with iterators is not supported.)
template <class Condition, class Endpoints>
concept endpoint_condition =
    endpoint_range<Endpoints> &&
    requires(Condition& c, const boost::system::error_code& ec, const Endpoints& e) {
        { c(ec, *e.begin()) } -> std::convertible_to<bool>;
    };

/// A condition on endpoints between two iterators.
template <class Condition, class Iterator>
concept iterator_condition =
    !endpoint_range<Iterator> &&
    requires(Condition& c, const boost::system::error_code& ec, Iterator i) {
        { c(ec, *i) } -> std::convertible_to<bool>;
    };

/// The lowest layer of `layer`, possibly `layer` itself.
template <class Layer>
[[nodiscard]] auto& lowest_layer(Layer& layer) noexcept {
    if constexpr (socket_layer<Layer>)
        return layer;
    else if constexpr (requires { layer.next_layer(); })
        return lowest_layer(layer.next_layer());
    else if constexpr (requires { layer.lowest_layer(); })
        return layer.lowest_layer();
    else
        return layer;
}

template <class Layer>
using lowest_layer_of = std::remove_reference_t<decltype(lowest_layer(std::declval<Layer&>()))>;

namespace closing {

using boost::beast::beast_close_socket; // and overloads found by argument-dependent lookup

template <class Layer>
concept by_beast = requires(Layer& layer) { beast_close_socket(layer); };

template <by_beast Layer>
void close_by_beast(Layer& layer) {
    beast_close_socket(layer);
}

} // namespace closing

template <class Layer>
void close_lowest(Layer& layer) {
    auto& lowest = lowest_layer(layer);
    boost::system::error_code ignored;
    if constexpr (closing::by_beast<lowest_layer_of<Layer>>)
        closing::close_by_beast(lowest);
    else if constexpr (requires { lowest.close(ignored); })
        lowest.close(ignored);
    else
        lowest.close();
}

template <class Layer>
concept can_cancel_lowest =
    requires(lowest_layer_of<Layer>& lowest, boost::system::error_code& ec) { lowest.cancel(ec); };

template <can_cancel_lowest Layer>
void cancel_lowest(Layer& layer) {
    boost::system::error_code ignored;
    lowest_layer(layer).cancel(ignored);
}

template <class Layer>
concept knows_whether_open = requires(const lowest_layer_of<Layer>& lowest) { lowest.is_open(); };

} // namespace pawl::detail

#endif // PAWL_DETAIL_STREAM_NEXT_LAYER_HPP
