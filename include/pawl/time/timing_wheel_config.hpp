// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timing_wheel_config: how a pawl::timing_wheel cuts up time. Intervals have one precision;
/// their numbers are cut into levels, which limit how far ahead an alarm may be.
///
/// Model
///   With precision p and level bits b0, b1, ... a slot of level i stands for 2^(b0 + ... + b(i-1))
///   intervals, and levels 0 .. i together reach p 2^(b0 + ... + bi): durations(). A wheel trims
///   the levels to the bits of the number of its last interval.
#ifndef PAWL_TIME_TIMING_WHEEL_CONFIG_HPP
#define PAWL_TIME_TIMING_WHEEL_CONFIG_HPP

#include <pawl/detail/time/durations.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl::time {

/// The precision and the levels of a timing_wheel. An immutable value, checked when made.
///
/// @tparam Duration The unit of the wheel's time points; it counts in integers.
template <class Duration = std::chrono::steady_clock::duration>
class timing_wheel_config {
    static_assert(std::is_integral_v<typename Duration::rep> &&
                      sizeof(typename Duration::rep) <= sizeof(std::uint64_t),
                  "pawl: a timing_wheel counts time in integers of up to 64 bits");

public:
    /// The maximum number of bits of all levels together.
    static constexpr int max_num_bits = 64;

    /// One millisecond, or one unit of a coarser Duration.
    static constexpr Duration default_precision =
        std::max(Duration{1}, std::chrono::duration_cast<Duration>(std::chrono::milliseconds{1}));

    /// Ten levels of 6 bits and one of 4: every interval of a 64-bit clock.
    [[nodiscard]] static std::vector<int> default_level_bits() {
        return {6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4};
    }

    /// @param alarm_precision The length of an interval; at least one unit.
    /// @param level_bits The bits of each level, finest first: at least 1 each, at most 64 in all.
    ///         More bits reach further; fewer levels trade memory for time.
    /// @throws std::invalid_argument naming the argument, its value and the allowed range.
    timing_wheel_config(Duration alarm_precision = default_precision,
                        std::vector<int> level_bits = default_level_bits())
        : precision_(alarm_precision), bits_(std::move(level_bits)) {
        using std::to_string;
        if (precision_ < Duration{1})
            wrong("alarm_precision is " + detail::text_of(precision_) + ", at least " +
                  detail::text_of(Duration{1}) + " is needed");
        if (bits_.empty())
            wrong("level_bits is empty, at least 1 level is needed");
        for (const int bits : bits_) {
            if (bits < 1 || bits > max_num_bits)
                wrong("level_bits has a level of " + to_string(bits) + " bits, allowed are 1 to " +
                      to_string(max_num_bits));
        }
        if (bits_.size() > max_num_bits || num_bits() > max_num_bits)
            wrong("level_bits has " + to_string(num_bits()) + " bits in all, allowed are 1 to " +
                  to_string(max_num_bits));
    }

    /// The length of an interval.
    [[nodiscard]] Duration alarm_precision() const noexcept { return precision_; }

    /// The bits of each level, finest first.
    [[nodiscard]] const std::vector<int>& level_bits() const noexcept { return bits_; }

    /// The bits of all levels together: an alarm may be about `2^num_bits()` intervals ahead.
    [[nodiscard]] int num_bits() const noexcept {
        int sum = 0;
        for (const int bits : bits_)
            sum += bits;
        return sum;
    }

    /// For each level, the reach of it and the levels below; `Duration::max()` if that is more.
    [[nodiscard]] std::vector<Duration> durations() const {
        const auto units = static_cast<std::uint64_t>(precision_.count());
        const auto most = static_cast<std::uint64_t>(Duration::max().count());
        std::vector<Duration> reach;
        int shift = 0;
        for (const int bits : bits_) {
            shift += bits;
            const bool fits = shift < 64 && units <= most >> shift;
            reach.push_back(fits ? Duration{static_cast<typename Duration::rep>(units << shift)}
                                 : Duration::max());
        }
        return reach;
    }

    /// The same with levels for numbers of `width` bits, cut off from the top.
    /// @pre width > 0
    [[nodiscard]] timing_wheel_config trimmed_to(int width) const {
        timing_wheel_config trimmed = *this;
        int left = width;
        std::size_t levels = 0;
        for (; levels != bits_.size() && left > 0; ++levels) {
            trimmed.bits_[levels] = std::min(bits_[levels], left);
            left -= bits_[levels];
        }
        trimmed.bits_.resize(levels);
        return trimmed;
    }

private:
    [[noreturn]] static void wrong(const std::string& what) {
        throw std::invalid_argument("pawl: timing_wheel_config: " + what);
    }

    Duration precision_;
    std::vector<int> bits_;
};

} // namespace pawl::time

#endif // PAWL_TIME_TIMING_WHEEL_CONFIG_HPP
