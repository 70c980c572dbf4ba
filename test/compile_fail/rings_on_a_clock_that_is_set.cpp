// expect: rings need a steady clock that counts in nanoseconds
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/ring_timer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>

using clock_type = std::chrono::system_clock;

int main() {
    boost::asio::io_context context;
    pawl::basic_waitable_timer<clock_type, pawl::on_backend<pawl::time::timeout_rings,
                                                            boost::asio::wait_traits<clock_type>>>
        timer(context);
}
