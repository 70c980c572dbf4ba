// expect among others: pawl: a scaled limit needs <pawl/pressure.hpp>
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#define PAWL_TEST_ALONE // not with pawl.hpp, which has pressure.hpp

#include <pawl/scaled.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

void f(pawl::steady_timer& operation) {
    using std::chrono::seconds;
    operation.async_wait(pawl::timeout(pawl::scaled(seconds(1), seconds(2)))([](auto) {}));
}
