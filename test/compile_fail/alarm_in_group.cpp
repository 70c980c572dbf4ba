// expect: pawl: an alarm in a group has the type alarm<grouped<Function>>
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/alarm.hpp>
#include <pawl/group.hpp>

#include <boost/asio/io_context.hpp>

struct on_idle {
    void operator()() const {}
};

void f(boost::asio::io_context& context, pawl::group& g) {
    pawl::alarm<on_idle> alarm(context, pawl::in_group(g, on_idle()));
}
