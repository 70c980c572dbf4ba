// expect: pawl: this limit does not know on which executor to keep time
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// An operation that does not say where it belongs, and a handler without an executor: nobody could keep
// the time.
#include <pawl/timeout.hpp>

#include <boost/asio/async_result.hpp>

template <class Token>
auto async_nothing(Token&& token) {
    return boost::asio::async_initiate<Token, void(int)>(
        [](auto handler) { std::move(handler)(1); }, token);
}

void limited() {
    async_nothing(pawl::timeout(std::chrono::seconds(1), [](boost::system::error_code, int) {}));
}
