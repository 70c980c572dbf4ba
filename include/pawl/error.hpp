// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The error codes of Pawl.
#ifndef PAWL_ERROR_HPP
#define PAWL_ERROR_HPP

#include <pawl/config.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/is_error_code_enum.hpp>

#include <iosfwd>
#include <string>

namespace pawl {

/// Error codes of Pawl.
enum class error {
    /// The operation did not complete before its limit. Distinct from
    /// `boost::asio::error::operation_aborted`, which reports a cancellation. Compares equal to
    /// `boost::system::errc::timed_out` and `std::errc::timed_out`.
    timed_out = 1,
    /// The program is shutting down. Pawl itself never chooses this code: pass it to expire_all()
    /// or group::cancel(), so that logs show why a session ended. Compares equal to no generic
    /// condition.
    shutting_down = 2,
};

namespace detail {

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor" // never destroyed through its base
#endif

class error_category final : public boost::system::error_category {
public:
    constexpr error_category() noexcept
        : boost::system::error_category(0x91d6'5a0b'c4f3'77e2) {} // the same in every shared object

    const char* name() const noexcept override { return "pawl"; }

    std::string message(int value) const override {
        if (static_cast<error>(value) == error::timed_out)
            return "The operation timed out";
        if (static_cast<error>(value) == error::shutting_down)
            return "The server is shutting down";
        return "Unknown error " + std::to_string(value);
    }

    boost::system::error_condition default_error_condition(int value) const noexcept override {
        if (static_cast<error>(value) == error::timed_out)
            return boost::system::errc::timed_out;
        return {value, *this};
    }
};

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

inline constinit const error_category category_of_errors;

} // namespace detail

/// The category of pawl::error.
inline const boost::system::error_category& error_category() noexcept {
    return detail::category_of_errors;
}

/// Found by argument-dependent lookup, so that `error_code ec = pawl::error::timed_out` works.
inline boost::system::error_code make_error_code(error e) noexcept {
    return {static_cast<int>(e), error_category()};
}

/// Writes the code as Boost does for an `error_code`: `pawl:1`.
template <class Char, class Traits>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, error e) {
    return out << make_error_code(e);
}

} // namespace pawl

/// @cond
template <>
struct boost::system::is_error_code_enum<pawl::error> : std::true_type {};
/// @endcond

#endif // PAWL_ERROR_HPP
