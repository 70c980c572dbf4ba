// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::broadcast_error: the error of a pawl::broadcast_ring.

#ifndef PAWL_BROADCAST_ERROR_HPP
#define PAWL_BROADCAST_ERROR_HPP

#include <pawl/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pawl {

/// Why a broadcast ring refused a call.
enum class broadcast_errc {
    bad_capacity = 1, ///< the number of slots or of readers is 0 or not a power of two
    too_many_readers, ///< all places for readers are taken
    too_old,          ///< the generation is gone
    in_the_future,    ///< the generation is not published yet
    too_large,        ///< a reservation of no slots, or of more than the ring has
};

/// A broadcast ring rejected a call. The error has the rejected value and the allowed range; its
/// text says the same.
class broadcast_error : public std::out_of_range {
public:
    /// @param code the reason.
    /// @param call the member function.
    /// @param argument the rejected argument.
    /// @param value its value.
    /// @param least,most the allowed range.
    /// @param advice what to do; appended to the text.
    broadcast_error(broadcast_errc code, const char* call, const char* argument,
                    std::uint64_t value, std::uint64_t least, std::uint64_t most,
                    const char* advice = "")
        : std::out_of_range(std::string("pawl: broadcast_ring: ") + call + "(): " + argument +
                            " is " + std::to_string(value) + ", allowed are " +
                            std::to_string(least) + " to " + std::to_string(most) + advice),
          code_(code), value_(value), least_(least), most_(most) {}

    /// The reason.
    [[nodiscard]] broadcast_errc code() const noexcept { return code_; }
    /// The rejected value.
    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
    /// The least value that was allowed at that moment.
    [[nodiscard]] std::uint64_t least() const noexcept { return least_; }
    /// The greatest value that was allowed at that moment.
    [[nodiscard]] std::uint64_t most() const noexcept { return most_; }

private:
    broadcast_errc code_;
    std::uint64_t value_;
    std::uint64_t least_;
    std::uint64_t most_;
};

} // namespace pawl

#endif // PAWL_BROADCAST_ERROR_HPP
