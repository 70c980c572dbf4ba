// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A function object around a caller's handler has the associations of that handler: its
///   allocator, its executor, and all others that the wrapper does not define itself.
#ifndef PAWL_DETAIL_WAIT_HANDLER_WRAPPER_HPP
#define PAWL_DETAIL_WAIT_HANDLER_WRAPPER_HPP

#include <boost/asio/associator.hpp>

namespace pawl::detail {

/// `handler()` returns the handler inside; `pawl_wrapped_handler` is its type.
template <class T>
concept handler_wrapper = requires(const T& wrapper) {
    typename T::pawl_wrapped_handler;
    wrapper.handler();
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

#endif // PAWL_DETAIL_WAIT_HANDLER_WRAPPER_HPP
