// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_timeout_memory: the allocations of one operation under a timeout, see README.md.
//
// Asio caches a few freed blocks for each thread. With one operation at a time that hides every
// allocation. A server has many outstanding operations, and few of their blocks fit in the cache.
// So many connections here have an operation outstanding at any time.

#include "timeout_operations.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <malloc.h>
#include <utility>

namespace {

struct {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
} allocated;

void* counted(void* p, std::size_t size) noexcept {
    ++allocated.blocks;
    allocated.bytes += size;
    return p;
}

} // namespace

// These replace the functions of the C library: operator new calls the first, Asio's blocks the
// second. The C library frees what they return.
extern "C" void* __libc_malloc(std::size_t size) noexcept;
extern "C" void* malloc(std::size_t size) noexcept { return counted(__libc_malloc(size), size); }
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    return counted(::memalign(alignment, size), size);
}

namespace {

using namespace bench;

constexpr std::size_t connections = 1000;
constexpr std::size_t operations = 100; // of each connection

template <class Operation, class Way>
asio::awaitable<void> connection() {
    const auto ex = co_await asio::this_coro::executor;
    Operation op(ex);
    caller<Way> call(ex);
    for (std::size_t i = 0; i < operations; ++i)
        co_await call(op);
}

template <class Operation, class Way>
void print(const char* name) {
    asio::io_context io;
    for (std::size_t i = 0; i < connections; ++i)
        asio::co_spawn(io, connection<Operation, Way>(), [](std::exception_ptr failure) {
            if (failure)
                std::rethrow_exception(failure);
        });
    io.poll_one(); // makes the services

    const auto before = allocated;
    io.run();
    const auto each = [](std::size_t n) {
        return static_cast<double>(n) / static_cast<double>(connections * operations);
    };
    std::printf("| %s | %.1f | %.0f |\n", name, each(allocated.blocks - before.blocks),
                each(allocated.bytes - before.bytes));
}

template <class Operation>
void print_all(const char* operation) {
    std::printf("| %s | blocks | bytes |\n|---|---|---|\n", operation);
    print<Operation, asio_or>("asio_or");
    print<Operation, asio_by_hand>("by_hand");
#if BOOST_VERSION >= 108600
    print<Operation, asio_cancel_after>("cancel_after");
#endif
    print<Operation, bare>("bare");
    print<Operation, pawl_timeout>("pawl");
    print<Operation, pawl_own_timer>("pawl+timer");
    print<Operation, pawl_coroutine>("pawl_coro");
}

} // namespace

int main(int argc, char**) {
    if (argc != 1) {
        std::fputs("usage: pawl_bench_timeout_memory\n", stderr);
        return 2;
    }
    print_all<posted_operation>("an operation of one post");
    std::printf("\n");
    print_all<empty_read>("an operation that completes at once");
}
