// expect among others: pawl: arm_after\(\) takes a duration with a unit.*pawl: arm_at\(\) takes a point in time
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/alarm.hpp>

#include <boost/asio/io_context.hpp>

void f(boost::asio::io_context& context) {
    pawl::alarm alarm(context, [] {});
    alarm.arm_after(30);
    alarm.arm_at(std::chrono::seconds(30));
}
