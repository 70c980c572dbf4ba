// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The exception of each structure's invariant(): it names the structure, the invariant, and all
///   operands.
///
///   A structure's `<name>_invariant.hpp` holds a friend that checks any object with the members of
///   that structure. It does not include the structure, which includes it.
#ifndef PAWL_DETAIL_TIME_INVARIANT_CHECK_HPP
#define PAWL_DETAIL_TIME_INVARIANT_CHECK_HPP

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace pawl::time::detail {

class invariant_check {
public:
    explicit invariant_check(const char* structure) noexcept : structure_(structure) {}

    struct operand {
        const char* name;
        std::uint64_t value;
    };

    /// Throws a std::logic_error unless `holds`.
    // A template: unused, it costs no compile time.
    template <class = void>
    void operator()(bool holds, const char* what, std::initializer_list<operand> operands) const {
        if (holds)
            return;
        std::string message = std::string("pawl: ") + structure_ + ": " + what;
        const char* separator = ": ";
        for (const auto& [name, value] : operands) {
            message.append(separator).append(name).append(" = ").append(std::to_string(value));
            separator = ", ";
        }
        throw std::logic_error(message);
    }

private:
    const char* structure_;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_INVARIANT_CHECK_HPP
