// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   What a broadcast ring refuses: which value, and what is allowed.

#ifndef PAWL_FEED_BROADCAST_ERROR_HPP
#define PAWL_FEED_BROADCAST_ERROR_HPP

#include <pawl/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pawl {

/// Why a broadcast ring refused a call.
enum class broadcast_errc {
    bad_capacity = 1, ///< a number of slots or of readers that is 0 or no power of two
    too_many_readers, ///< all places for readers are taken
    too_old,          ///< the generation is gone
    in_the_future,    ///< the generation is not published yet
    too_large,        ///< a reservation of no slot, or of more slots than there are
};

/// A call that a broadcast ring refused, with the value that it refused and the bounds that it allows.
/// The text says the same.
class broadcast_error : public std::out_of_range {
public:
    /// @param code why.
    /// @param call the member function.
    /// @param argument what of it was refused.
    /// @param value of that.
    /// @param least,most what is allowed.
    /// @param advice what to do, appended to the text.
    broadcast_error(broadcast_errc code, const char* call, const char* argument,
                    std::uint64_t value, std::uint64_t least, std::uint64_t most,
                    const char* advice = "")
        : std::out_of_range(std::string("pawl: broadcast_ring: ") + call + "(): " + argument +
                            " is " + std::to_string(value) + ", allowed are " +
                            std::to_string(least) + " to " + std::to_string(most) + advice),
          code_(code), value_(value), least_(least), most_(most) {}

    /// Why.
    [[nodiscard]] broadcast_errc code() const noexcept { return code_; }
    /// What was asked for.
    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
    /// The least value that was allowed then.
    [[nodiscard]] std::uint64_t least() const noexcept { return least_; }
    /// The greatest value that was allowed then.
    [[nodiscard]] std::uint64_t most() const noexcept { return most_; }

private:
    broadcast_errc code_;
    std::uint64_t value_;
    std::uint64_t least_;
    std::uint64_t most_;
};

} // namespace pawl

#endif // PAWL_FEED_BROADCAST_ERROR_HPP
