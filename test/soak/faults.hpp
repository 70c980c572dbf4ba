// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Faults of the soak, and what it counts. Replaces operator new and clock_gettime() of the program:
//   include it in one translation unit only.
//
//   no_memory        allocations fail now and then, in a thread that asks for it
//   few_descriptors  the process may open only some more
//   step_clock()     the system clock is set

#ifndef PAWL_TEST_SOAK_FAULTS_HPP
#define PAWL_TEST_SOAK_FAULTS_HPP

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <sys/resource.h>

namespace soak {

using namespace std::chrono_literals;
using count = std::atomic<std::uint64_t>;

// --- what is found ------------------------------------------------------------------------------

inline count violations{0};
inline count round_number{0};

/// A promise is broken. The program ends with the round.
inline void violation(const std::string& what) {
    if (++violations <= 20)
        std::fprintf(stderr, "soak: round %llu: %s\n",
                     static_cast<unsigned long long>(round_number.load()), what.c_str());
}

/// SplitMix64, as in pawl::retry.
class dice {
public:
    explicit dice(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t operator()() noexcept {
        std::uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15;
        z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
        z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
        return z ^ (z >> 31);
    }
    /// 0 to `n` - 1
    std::uint64_t below(std::uint64_t n) noexcept { return (*this)() % n; }
    bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }
    std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) {
        const auto range = static_cast<std::uint64_t>((high - low).count());
        return low + std::chrono::nanoseconds(static_cast<std::int64_t>(below(range + 1)));
    }

private:
    std::uint64_t state_;
};

// --- memory -------------------------------------------------------------------------------------

inline count failed_allocations{0};
inline count live_blocks{0}; ///< without those of arrays under AddressSanitizer
inline thread_local constinit unsigned failing_one_in = 0;
inline thread_local constinit std::uint64_t allocations = 0;

/// While it lives, one in `n` allocations of this thread fails, chosen by `seed`; none with 0.
class no_memory {
public:
    explicit no_memory(unsigned n, std::uint64_t seed = 0) noexcept
        : before_(std::exchange(failing_one_in, n)) {
        allocations += seed;
    }
    no_memory& operator=(no_memory&&) = delete;
    ~no_memory() { end(); }
    void end() const noexcept { failing_one_in = before_; }

private:
    const unsigned before_;
};

[[gnu::noinline]] inline void* allocate(std::size_t size) {
    if (failing_one_in != 0 && dice(++allocations).one_in(failing_one_in)) {
        ++failed_allocations;
        throw std::bad_alloc();
    }
    void* const memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr)
        throw std::bad_alloc();
    ++live_blocks;
    return memory;
}

[[gnu::noinline]] inline void release(void* memory) noexcept {
    if (memory != nullptr)
        --live_blocks;
    std::free(memory);
}

// --- descriptors --------------------------------------------------------------------------------

/// Of the process `pid`, or "self".
inline std::size_t open_descriptors(const std::string& pid = "self") {
    std::error_code ec;
    std::size_t n = 0;
    for (std::filesystem::directory_iterator each("/proc/" + pid + "/fd", ec), end;
         !ec && each != end; each.increment(ec))
        ++n;
    return n;
}

/// While it lives, the process may open `spare` more descriptors, or a few more.
class few_descriptors {
public:
    explicit few_descriptors(std::size_t spare) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit lower{open_descriptors() + spare, before_.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &lower) != 0)
            violation("the limit of descriptors cannot be set");
    }
    few_descriptors& operator=(few_descriptors&&) = delete;
    ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

// --- the system clock ---------------------------------------------------------------------------

inline std::atomic<std::int64_t> clock_offset{0}; ///< ns that the system clock is ahead
inline count clock_steps{0};                      ///< twice their number; odd during one
/// What the clock had shown at most before each of the latest steps.
inline std::array<std::atomic<std::int64_t>, 4096> clock_peaks{};

inline int real_clock(clockid_t id, timespec* to) noexcept {
    using function = int (*)(clockid_t, timespec*);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "clock_gettime"));
    return real(id, to);
}

/// One thread at a time.
inline void step_clock(std::chrono::nanoseconds by) {
    const std::uint64_t n = ++clock_steps;
    const std::int64_t before = clock_offset.fetch_add(by.count());
    timespec t{};
    real_clock(CLOCK_REALTIME, &t); // read last: other threads read it before the offset
    clock_peaks[n / 2 % clock_peaks.size()] = t.tv_sec * 1'000'000'000 + t.tv_nsec + before;
    ++clock_steps;
}

/// The number of steps so far, outside of one.
inline std::uint64_t steps_so_far() {
    std::uint64_t n = clock_steps;
    for (; n % 2 != 0; n = clock_steps)
        std::this_thread::yield();
    return n / 2;
}

/// Whether the system clock shows `t` or later, or has shown it since there were `since` steps.
inline bool has_shown(std::chrono::system_clock::time_point t, std::uint64_t since) {
    for (;;) {
        const std::uint64_t n = steps_so_far();
        bool shown = std::chrono::system_clock::now() >= t;
        for (std::uint64_t i = since; i != n; ++i)
            shown = shown || clock_peaks[i % clock_peaks.size()] >= t.time_since_epoch().count();
        if (steps_so_far() == n)
            return shown;
    }
}

} // namespace soak

[[gnu::noinline]] void* operator new(std::size_t size) { return soak::allocate(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { soak::release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    soak::release(memory);
}

extern "C" int clock_gettime(clockid_t id, timespec* to) noexcept {
    const int result = soak::real_clock(id, to);
    if (result != 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return result;
    const std::int64_t ns = to->tv_nsec + soak::clock_offset.load();
    const std::int64_t second = 1'000'000'000;
    std::int64_t seconds = ns / second, rest = ns % second;
    if (rest < 0) {
        --seconds;
        rest += second;
    }
    to->tv_sec += seconds;
    to->tv_nsec = rest;
    return result;
}

#endif // PAWL_TEST_SOAK_FAULTS_HPP
