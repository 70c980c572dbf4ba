// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/campaign.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <new>
#include <utility>

namespace simulation {

namespace {

using number = unsigned long long; // of printf

slate* mine = nullptr; ///< of this process

void note(const std::string& text) {
    std::strncpy(mine->failure, text.c_str(), sizeof(mine->failure) - 1);
}

std::uint64_t seed_of_the_day() {
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    gmtime_r(&now, &day);
    return static_cast<std::uint64_t>((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 +
                                      day.tm_mday) *
           1'000'000;
}

} // namespace

process::process(const std::function<void(slate&)>& work) {
    void* const memory =
        mmap(nullptr, sizeof(slate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    told_ = new (memory) slate();
    std::fflush(nullptr);
    id_ = fork();
    if (id_ != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    mine = told_;
    on_failure = note;
    work(*told_);
    std::exit(0); // not _exit(): sanitizers report
}

process::~process() { munmap(told_, sizeof(slate)); }

void process::terminate() {
    if (id_ != 0)
        kill(id_, SIGTERM);
}

std::string process::failure(int patience) {
    bool hangs = false;
    int status = 0;
    std::uint64_t before = told_->seeds;
    for (int quiet = 0; waitpid(id_, &status, WNOHANG) != id_;) {
        usleep(1000);
        quiet = told_->seeds == before ? quiet + 1 : 0;
        before = told_->seeds;
        if (quiet > patience * 1000 && !std::exchange(hangs, true))
            kill(id_, SIGABRT);
    }
    id_ = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return {};
    if (told_->failure[0] != 0)
        return told_->failure;
    if (hangs)
        return "hang: it was killed";
    if (WIFSIGNALED(status))
        return std::string("crash: ") + strsignal(WTERMSIG(status));
    return "crash: exit status " + std::to_string(WEXITSTATUS(status));
}

campaign::campaign(std::string name, std::string about)
    : app(std::move(about)), first(seed_of_the_day()), name_(std::move(name)) {
    app.add_option("--seeds", seeds, "how many seeds")->capture_default_str();
    alone_ = app.add_option("--seed", first, "that one only");
    app.add_option("--from", first, "the first seed; default: one of the day")->excludes(alone_);
    app.add_flag("--plant", planted, "fail when a wait completes with success, to try the report");
}

std::optional<std::uint64_t>
campaign::run(unsigned jobs, const std::function<totals(std::uint64_t seed, slate&)>& run_one,
              const std::function<bool(std::uint64_t seed, const slate&)>& goes_on) const {
    std::deque<process> all;
    for (unsigned j = 0; j < jobs; ++j)
        all.emplace_back([&](slate& told) {
            for (std::uint64_t seed = first + j; goes_on(seed, told); seed += alone() ? 0 : jobs) {
                told.seed = seed;
                told.sum += run_one(seed, told);
                ++told.seeds;
            }
        });
    std::optional<std::uint64_t> failed;
    totals sum;
    std::uint64_t ended = 0;
    for (process& each : all) {
        const slate& told = each.told();
        if (const std::string what = each.failure(30); !what.empty() && !failed) {
            failed = told.seed;
            std::printf("%s: seed %llu: %s%s%s\n", name_.c_str(), number{*failed}, what.c_str(),
                        told.choices[0] != 0 ? "\n" : "", told.choices);
            for (process& other : all)
                other.terminate();
        }
        sum += told.sum;
        ended += told.seeds;
    }
    if (!failed)
        std::printf("%s: %llu seeds from %llu on: %llu operations, %llu waits, %llu units; no "
                    "promise is broken\n",
                    name_.c_str(), number{ended}, number{first}, number{sum.operations},
                    number{sum.waits}, number{sum.units});
    return failed;
}

} // namespace simulation
