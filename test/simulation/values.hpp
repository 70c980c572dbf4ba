// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Values as C++. The names of enumerators and of members are those that the compiler knows, so
//   there are no tables of them.

#ifndef PAWL_TEST_SIMULATION_VALUES_HPP
#define PAWL_TEST_SIMULATION_VALUES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace simulation {

/// A constant as g++ and clang spell it: "simulation::op::make".
template <auto Constant>
constexpr auto spelling() {
    std::string_view s = __PRETTY_FUNCTION__;
    s.remove_prefix(s.rfind("Constant = ") + 11);
    return s.substr(0, s.find_first_of(";]"));
}

/// An enumerator, of a type whose enumerators count from 0.
template <class Enum>
std::string_view spelling_of(Enum e) {
    static constexpr auto all = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array{spelling<static_cast<Enum>(I)>()...};
    }(std::make_index_sequence<100>());
    return all[static_cast<std::size_t>(e)];
}

/// The last part of a spelling: "make".
constexpr std::string_view last_name(std::string_view s) { return s.substr(s.rfind(':') + 1); }

template <class Enum>
std::string name_of(Enum e) {
    return std::string(last_name(spelling_of(e)));
}

/// The members of a structure that is an aggregate, by their pointers. It is its type `members`.
template <auto... Members>
struct member_list {
    /// Calls visit(name, member) for each.
    template <class Visit>
    static void for_each(Visit visit) {
        (visit(last_name(spelling<Members>()), Members), ...);
    }
};

/// In a function with `using namespace simulation`. Of a structure, members that have their default
/// values are left out, except for the first. Structures in a list stand in lines of their own.
template <class T>
void print(std::ostream& out, const T& v, int indent) {
    if constexpr (std::is_same_v<T, bool>) {
        out << (v ? "true" : "false");
    } else if constexpr (std::is_enum_v<T>) {
        std::string_view s = spelling_of(v);
        if (s.starts_with("simulation::"))
            s.remove_prefix(12);
        out << s;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        if (v == std::numeric_limits<std::int64_t>::min())
            out << "earliest"; // not -9223372036854775808, which is an expression
        else
            out << v;
    } else if constexpr (requires { v.begin(); }) {
        constexpr bool in_lines = std::is_class_v<typename T::value_type>;
        const std::string line = '\n' + std::string(static_cast<std::size_t>(indent), ' ');
        out << '{';
        for (const auto& each : v) {
            out << (&each == v.data() ? "" : in_lines ? "," : ", ") << (in_lines ? line : "");
            print(out, each, indent + 4);
        }
        out << '}';
    } else if constexpr (std::is_class_v<T>) {
        static const T usual{};
        const char* before = "{.";
        T::members::for_each([&](std::string_view name, auto member) {
            if (v.*member == usual.*member && *before == ',')
                return;
            out << std::exchange(before, ", .") << name << " = ";
            print(out, v.*member, indent);
        });
        out << '}';
    } else {
        out << v;
    }
}

} // namespace simulation

#endif
