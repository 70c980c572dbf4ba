// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Ends a program of which a test case does not end, with the name of the case: ctest only tells the
// program. With an alarm, not a thread: some tests check what a program does that has no threads.
// The limit is below that of ctest; tools/mutate.py sets a shorter one.

#include <boost/test/framework.hpp>
#include <boost/test/tree/global_fixture.hpp>
#include <boost/test/tree/test_unit.hpp>

#include <csignal>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace {

std::string message; // only changed while there is no alarm

extern "C" void not_ended(int) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
    ::_exit(1);
}

class case_limit final : public boost::unit_test::global_configuration {
    void test_unit_start(const boost::unit_test::test_unit& unit) override {
        if (unit.p_type != boost::unit_test::TUT_CASE)
            return;
        message = "error: in \"" + unit.full_name() + "\": it does not end\n";
        std::signal(SIGALRM, not_ended);
        const char* const seconds = std::getenv("PAWL_CASE_LIMIT");
        ::alarm(seconds ? static_cast<unsigned>(std::atoi(seconds)) : 280U);
    }
    void test_unit_finish(const boost::unit_test::test_unit&, unsigned long) override {
        ::alarm(0);
    }
};
const case_limit limit;

} // namespace
