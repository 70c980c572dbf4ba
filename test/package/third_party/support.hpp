// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Shared by the programs: a server that they start, stop and kill, and the claims that they check.
#ifndef PAWL_TEST_THIRD_PARTY_SUPPORT_HPP
#define PAWL_TEST_THIRD_PARTY_SUPPORT_HPP

#include <pawl/error.hpp>
#include <pawl/sleep.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace third_party {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
using namespace std::chrono_literals;

/// A server in a process of its own, which ends with this process.
class server {
public:
    explicit server(std::vector<std::string> command) : command_(std::move(command)) { start(); }
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server() { kill(); }

    void start() {
        std::vector<char*> words;
        for (std::string& word : command_)
            words.push_back(word.data());
        words.push_back(nullptr);
        process_ = fork();
        if (process_ < 0)
            throw std::system_error(errno, std::generic_category(), "fork");
        if (process_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int log = open("server.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
            dup2(log, STDOUT_FILENO);
            dup2(log, STDERR_FILENO);
            execvp(words[0], words.data());
            _exit(127);
        }
    }
    /// It keeps its connections, and answers nothing.
    void freeze() { send(SIGSTOP); }
    void thaw() { send(SIGCONT); }
    void kill() {
        if (process_ <= 0)
            return;
        send(SIGKILL);
        waitpid(std::exchange(process_, 0), nullptr, 0);
    }

private:
    void send(int signal) {
        if (::kill(process_, signal) != 0)
            throw std::system_error(errno, std::generic_category(), command_[0]);
    }

    std::vector<std::string> command_;
    pid_t process_ = 0;
};

/// Prints a claim; the first false one ends the program.
inline void check(bool holds, const std::string& claim) {
    std::printf("  %s  %s\n", holds ? "ok    " : "FAILED", claim.c_str());
    std::fflush(stdout);
    if (!holds)
        throw std::runtime_error(claim);
}

/// The error code of an operation; success if it does not fail.
template <class T>
asio::awaitable<error_code> code_of(asio::awaitable<T> operation) {
    try {
        co_await std::move(operation);
    } catch (const system_error& e) {
        co_return e.code();
    }
    co_return error_code();
}

/// Repeats an attempt until it succeeds.
template <class Attempt>
asio::awaitable<void> until_it_works(Attempt attempt) {
    for (;;) {
        const error_code ec = co_await code_of(pawl::timeout(5s, attempt()));
        if (!ec)
            co_return;
        co_await pawl::sleep_for(50ms);
    }
}

/// Runs `program(server)` with the server that the command line names, until the context has no
/// work left.
template <class Program>
int run(int argc, char** argv, int first, Program program) {
    if (argc <= first) {
        std::fprintf(stderr, "usage: %s ARGUMENT... SERVER [ITS-ARGUMENT...]\n", argv[0]);
        return 2;
    }
    try {
        server s({argv + first, argv + argc});
        asio::io_context context(1);
        std::exception_ptr failure;
        asio::co_spawn(context, program(s), [&](std::exception_ptr e) {
            failure = e;
            if (e)
                context.stop();
        });
        context.run();
        if (failure)
            std::rethrow_exception(failure);
        check(true, "run() returns when all is over");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return 1;
    }
    return 0;
}

} // namespace third_party

#endif // PAWL_TEST_THIRD_PARTY_SUPPORT_HPP
