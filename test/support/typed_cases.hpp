// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   PAWL_TYPED_CASE replaces BOOST_AUTO_TEST_CASE_TEMPLATE in files with hundreds of pairs of a
//   case and a type, each of which would cost a tenth of a second of compile time. Include it after
//   BOOST_TEST_MODULE has been defined.

#ifndef PAWL_TEST_SUPPORT_TYPED_CASES_HPP
#define PAWL_TEST_SUPPORT_TYPED_CASES_HPP

#include <boost/config.hpp>
#include <boost/core/demangle.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <typeinfo>

namespace pawl_test {

template <class... T>
struct types {};

template <class... T, class... More>
types<T..., More...> operator+(types<T...>, types<More...>) {
    return {};
}

inline void add_case(const char* name, const std::string& type, void (*run)(), const char* file,
                     std::size_t line) {
    const std::string full = std::string(name) + '<' + type + '>';
    boost::unit_test::framework::master_test_suite().add(
        boost::unit_test::make_test_case(run, full, file, line));
}

/// A case for each type.
template <template <class> class Case, class... T>
bool add_cases(types<T...>, const char* name, const char* file, std::size_t line) {
#if defined(                                                                                       \
    BOOST_NO_RTTI) // Boost's names of types may not be there yet while statics are initialised
    int number = 0;
    (add_case(name, std::to_string(++number), &Case<T>::run, file, line), ...);
#else
    (add_case(name, boost::core::demangle(typeid(T).name()), &Case<T>::run, file, line), ...);
#endif
    return true;
}

} // namespace pawl_test

/// Before a body in which T is each type of a list, pawl_test::types<...>.
#define PAWL_TYPED_CASE(name, T, list)                                                             \
    template <class T>                                                                             \
    struct name {                                                                                  \
        static void run();                                                                         \
    };                                                                                             \
    [[maybe_unused]] static const bool name##_added =                                              \
        pawl_test::add_cases<name>(list{}, #name, __FILE__, __LINE__);                             \
    template <class T>                                                                             \
    void name<T>::run()

#endif
