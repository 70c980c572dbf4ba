// expect: pawl: the period of an interval has a unit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/interval_timer.hpp>

#include <boost/asio/io_context.hpp>

pawl::interval_timer f(boost::asio::io_context& context) {
    return {context, pawl::interval_timer::clock_type::now(), 5};
}
