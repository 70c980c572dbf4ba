// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/report.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace simulation {

void (*on_failure)(const std::string& text) = [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
};

void fail(const std::string& text) {
    on_failure(text);
    std::fflush(nullptr);
    _exit(3);
}

} // namespace simulation
