// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Row C42: the output of Asio's handler tracking for a timer. A program of its own, because the
// macros change Asio. The macros that name an operation are not public, so Pawl's waits appear
// without a name of their own, behind the driver's.

#define BOOST_TEST_MODULE contract_tracking
#define BOOST_ASIO_ENABLE_HANDLER_TRACKING 1
#define BOOST_ASIO_NO_TS_EXECUTORS 1 // then no work can be counted for a context

#include "contract_support.hpp"

#include <array>
#include <string>
#include <unistd.h>

namespace contract {

/// Captures the standard error stream during its lifetime.
class captured_stderr {
public:
    captured_stderr() {
        BOOST_REQUIRE(::pipe(pipe_.data()) == 0);
        saved_ = ::dup(2);
        ::dup2(pipe_[1], 2);
        ::close(pipe_[1]);
    }
    captured_stderr(const captured_stderr&) = delete;
    captured_stderr& operator=(const captured_stderr&) = delete;
    ~captured_stderr() {
        restore();
        ::close(pipe_[0]);
    }

    std::string text() {
        restore();
        std::string result;
        std::array<char, 4096> buffer;
        for (;;) {
            const ::ssize_t n = ::read(pipe_[0], buffer.data(), buffer.size());
            if (n <= 0)
                return result;
            result.append(buffer.data(), static_cast<std::size_t>(n));
        }
    }

private:
    void restore() {
        if (saved_ < 0)
            return;
        ::dup2(saved_, 2);
        ::close(saved_);
        saved_ = -1;
    }

    std::array<int, 2> pipe_{};
    int saved_ = -1;
};

BOOST_AUTO_TEST_CASE(C42_handler_tracking_names_the_operations_of_a_timer) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate f{}, g{};
    std::string log;

    {
        captured_stderr capture;
        t.async_wait(record(f));
        t.cancel_one();
        t.async_wait(record(g));
        t.cancel();
        run_to_end(io);
        log = capture.text();
    }
    const auto said = [&](const char* text) { return log.find(text) != std::string::npos; };

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::aborted);
    BOOST_TEST(said("@asio|"));
    if constexpr (under_test_is_pawl) {
        BOOST_TEST(!said(".cancel_one"));
    } else {
        BOOST_TEST(said("deadline_timer@"));
        BOOST_TEST(said(".async_wait"));
        BOOST_TEST(said(".cancel_one"));
        BOOST_TEST(said(".cancel\n"));
    }
}

BOOST_AUTO_TEST_CASE(P2_P9_an_earlier_deadline_is_kept_without_executors_of_the_TS) {
    asio::io_context io;
    tut::steady_timer later(io, 1h), earlier(io, 10ms);
    fate f{}, g{};
    later.async_wait(record(f));
    earlier.async_wait([&](error_code ec) {
        record(g)(ec);
        later.cancel();
    });
    io.run();

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::success);
}

} // namespace contract
