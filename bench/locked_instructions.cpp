// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_locks: how many locked instructions an operation executes, in a process of two
// threads. They are counted, not timed: a child runs the operations one instruction at a time, and
// its parent looks at each instruction. x86-64 Linux only.

#include <pawl/coarse_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

// --- the child -----------------------------------------------------------------------------------

/// The parent counts from the first call to the second call.
[[gnu::noinline]] void mark() { asm volatile("int3" ::: "memory"); }

constexpr int operations = 64;

/// Makes the process one with several threads, permanently.
void start_idle_thread() {
    std::thread([] { ::pause(); }).detach();
}

template <class Timer>
struct scene {
    scene() {
        for (int i = 0; i < operations; ++i)
            timers.emplace_back(context);
    }

    template <class Duration>
    void start(Timer& t, Duration d) {
        t.expires_after(d);
        t.async_wait([](error_code) {});
    }

    /// Runs `f` once as warm-up, and once more while the parent counts.
    template <class Function>
    void observe(Function f) {
        f();
        mark();
        f();
        mark();
    }

    asio::io_context context;
    std::deque<Timer> timers;
};

template <class Timer>
void churn() {
    scene<Timer> s;
    for (Timer& t : s.timers)
        s.start(t, 30s);
    s.observe([&] {
        for (Timer& t : s.timers)
            s.start(t, 30s); // cancels the wait before
        s.context.poll();
    });
}

void rearm_asio(asio::steady_timer& t) {
    t.expires_after(30s);
    t.async_wait([](error_code) {});
}

template <class Timer>
void rearm() {
    scene<Timer> s;
    for (Timer& t : s.timers)
        s.start(t, 30s);
    s.observe([&] {
        for (Timer& t : s.timers) {
            if constexpr (requires { t.rearm_after(30s); })
                t.rearm_after(30s);
            else
                rearm_asio(t); // the only way
        }
        s.context.poll();
    });
}

template <class Timer>
void expiry() {
    scene<Timer> s;
    s.observe([&] {
        for (Timer& t : s.timers)
            s.start(t, 1ms);
        const auto until = std::chrono::steady_clock::now() + 5ms;
        while (std::chrono::steady_clock::now() < until) {
        }
        s.context.poll();
    });
}

/// An operation that completes at once.
template <class Token>
auto async_operation(asio::io_context& context, Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(
        [&context]<class Handler>(Handler&& handler) {
            asio::post(context, [h = std::forward<Handler>(handler)]() mutable {
                std::move(h)(error_code());
            });
        },
        token);
}

void bare() {
    scene<asio::steady_timer> s;
    s.observe([&] {
        for (int i = 0; i < operations; ++i)
            async_operation(s.context, [](error_code) {});
        s.context.poll();
    });
}

void limit_of_asio() {
    scene<asio::steady_timer> s;
    s.observe([&] {
        for (asio::steady_timer& t : s.timers) {
            s.start(t, 30s);
            async_operation(s.context, [&t](error_code) { t.cancel(); });
        }
        s.context.poll();
    });
}

void limit_of_pawl() {
    scene<pawl::steady_timer> s;
    s.observe([&] {
        for (int i = 0; i < operations; ++i)
            async_operation(s.context,
                            pawl::timeout(30s, asio::bind_executor(s.context.get_executor(),
                                                                   [](error_code) {})));
        s.context.poll();
    });
}

// --- the parent ----------------------------------------------------------------------------------

struct counts {
    double instructions = 0;
    double locked = 0;
};

/// Has the LOCK prefix, or is an exchange with memory, which locks without the prefix.
bool is_locked(const std::array<unsigned char, 16>& code) {
    std::size_t i = 0;
    for (bool prefix = true; prefix && i < 14; i += prefix) {
        switch (code[i]) {
        case 0xF0:
            return true;
        case 0x26:
        case 0x2E:
        case 0x36:
        case 0x3E:
        case 0x64:
        case 0x65:
        case 0x66:
        case 0x67:
        case 0xF2:
        case 0xF3:
            break;
        default:
            prefix = false;
        }
    }
    i += (code[i] & 0xF0) == 0x40; // REX
    return (code[i] == 0x86 || code[i] == 0x87) && (code[i + 1] & 0xC0) != 0xC0;
}

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// Resumes the child. @return false if it has ended.
bool resume(::pid_t child, int how, int& status) {
    if (::ptrace(static_cast<__ptrace_request>(how), child, nullptr, nullptr) != 0)
        fail("ptrace");
    if (::waitpid(child, &status, __WALL) != child)
        fail("waitpid");
    return !WIFEXITED(status) && !WIFSIGNALED(status);
}

counts count(const std::function<void()>& workload) {
    const ::pid_t child = ::fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        start_idle_thread();
        workload();
        ::_exit(0);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child)
        fail("waitpid");
    if (!resume(child, PTRACE_CONT, status))
        throw std::runtime_error("the workload ended before it began");
    counts result;
    for (;;) {
        ::user_regs_struct registers{};
        if (::ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0)
            fail("ptrace");
        std::array<unsigned char, 16> code{};
        for (std::size_t at = 0; at < code.size(); at += sizeof(long)) {
            const long word = ::ptrace(PTRACE_PEEKTEXT, child, registers.rip + at, nullptr);
            std::memcpy(code.data() + at, &word, sizeof word);
        }
        if (code[0] == 0xCC)
            break; // the second mark
        result.instructions += 1;
        result.locked += is_locked(code);
        if (!resume(child, PTRACE_SINGLESTEP, status))
            throw std::runtime_error("the workload ended in between");
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return {result.instructions / operations, result.locked / operations};
}

void print(const char* what, const counts& asio, const counts& pawl) {
    std::printf("| %s | %.1f | %.1f | %.0f | %.0f |\n", what, asio.locked, pawl.locked,
                asio.instructions, pawl.instructions);
}

} // namespace

int main() {
    std::puts("Locked instructions, and all instructions in user mode, for each operation; two "
              "threads in the "
              "process, one of them idle. Compiler: "
#if defined(__clang__)
              "clang++ " __clang_version__
#else
              "g++ " __VERSION__
#endif
    );
    std::puts("\n| operation | Asio, locked | Pawl, locked | Asio, all | Pawl, all "
              "|\n|---|---|---|---|---|");
    print("churn: cancel, wait, completion", count(churn<asio::steady_timer>),
          count(churn<pawl::steady_timer>));
    print("re-arm", count(rearm<asio::steady_timer>), count(rearm<pawl::steady_timer>));
    print("re-arm, coarse_timer", count(rearm<asio::steady_timer>),
          count(rearm<pawl::coarse_timer>));
    print("wait and expiry", count(expiry<asio::steady_timer>), count(expiry<pawl::steady_timer>));
    const counts plain = count(bare);
    const auto above = [&](counts c) {
        return counts{c.instructions - plain.instructions, c.locked - plain.locked};
    };
    print("a beaten limit, above the bare operation", above(count(limit_of_asio)),
          above(count(limit_of_pawl)));
    print("the bare operation, a post()", plain, plain);
}
