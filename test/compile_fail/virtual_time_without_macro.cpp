// expect: pawl: virtual_time needs PAWL_VIRTUAL_TIME
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/virtual_time.hpp>

#include <boost/asio/io_context.hpp>

void f(boost::asio::io_context& context) { pawl::virtual_time::run(context); }
