// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   For drivers that make the same calls on a structure and on a model of it: the source of their
//   choices, and how they report a difference. One driver serves a random test, whose choices are
//   drawn, and a fuzzer, whose choices are the bytes of its input.
//
// Model
//   A driver only asks for numbers below a bound. It needs no test framework: a difference is an
//   exception, which ends a test as well as a fuzzer.

#ifndef PAWL_TEST_SUPPORT_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_LOCKSTEP_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

namespace pawl_test {

/// Choices from a generator, uniform.
class random_choices {
public:
    explicit random_choices(std::uint64_t seed) : random_(seed) {}

    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

private:
    std::mt19937_64 random_;
};

/// Choices from bytes. Each takes as few bytes as the bound needs, so that a changed byte changes
/// one choice. After the last byte, all choices are 0.
class byte_choices {
public:
    explicit byte_choices(std::span<const std::uint8_t> bytes) : left_(bytes) {}

    std::uint64_t below(std::uint64_t bound) {
        std::uint64_t number = 0;
        for (std::uint64_t most = bound - 1; most != 0 && !left_.empty(); most >>= 8) {
            number = number << 8 | left_.front();
            left_ = left_.subspan(1);
        }
        return number % bound;
    }

    [[nodiscard]] bool empty() const noexcept { return left_.empty(); }

    /// Choices from the next of `parts` equal parts, which this object then lacks.
    [[nodiscard]] byte_choices part(std::size_t parts) noexcept {
        const auto first = left_.first(left_.size() / parts);
        left_ = left_.subspan(first.size());
        return byte_choices(first);
    }

private:
    std::span<const std::uint8_t> left_;
};

/// Throws std::logic_error with `what` and the operands unless `holds`.
template <class... Operands>
void expect(bool holds, const char* what, Operands... operands) {
    if (holds)
        return;
    std::string message = what;
    [[maybe_unused]] const char* separator = ": ";
    ((message.append(separator).append(std::to_string(operands)), separator = ", "), ...);
    throw std::logic_error(message);
}

/// Throws std::logic_error with `what` unless `call` throws an Exception.
template <class Exception, class Call>
void expect_throw(Call call, const char* what) {
    bool thrown = false;
    try {
        call();
    } catch (const Exception&) {
        thrown = true;
    }
    expect(thrown, what);
}

/// With PAWL_TRACE=1: prints one line for each call of a driver.
template <class... Operands>
void trace(const char* call, Operands... operands) {
    static const bool wanted = std::getenv("PAWL_TRACE") != nullptr;
    if (wanted) {
        std::cout << call;
        ((std::cout << ' ' << operands), ...);
        std::cout << std::endl; // the next call may end the program
    }
}

} // namespace pawl_test

#endif
