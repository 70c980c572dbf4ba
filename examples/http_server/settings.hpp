// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The settings of http_server on the command line, with defaults.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_SETTINGS_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_SETTINGS_HPP

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace example {

struct settings {
    using milliseconds = std::chrono::milliseconds;

    boost::asio::ip::tcp::endpoint endpoint;
    std::string root; ///< an absolute path without a slash at its end
    int threads = 1;

    milliseconds idle{30'000};    ///< from a response to the first byte of the next request
    milliseconds header{10'000};  ///< from that byte, or from accept(), to the end of the header
    milliseconds body{30'000};    ///< from the end of the header to the end of the body
    milliseconds write{30'000};   ///< maximum time without progress of a response
    milliseconds request{60'000}; ///< from the end of the header to the end of the response
    milliseconds drain{10'000};   ///< from SIGTERM until running work is cut off

    std::uint32_t min_rate = 0; ///< of a body, bytes per second, on Pawl; 0 is any
    milliseconds grace{5'000};  ///< the time over which it is measured

    std::uint32_t max_header = 8192;  ///< bytes
    std::uint64_t max_body = 1048576; ///< bytes

    std::uint64_t max_connections = 1'000'000'000; ///< for which there is room

    std::uint32_t tabs = 32;    ///< open at a time
    bool expose_timers = false; ///< to other machines
    bool measure_times = false; ///< for /metrics, from the beginning
    std::uint32_t churn = 0;    ///< deadlines to move each second, for the page
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_SETTINGS_HPP
