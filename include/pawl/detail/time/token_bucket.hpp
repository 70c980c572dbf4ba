// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The tokens of a rate_limiter. Reads no clock: `now` is an argument.
///
/// Model
///   Exact integers: a credit is what one token gets in one tick of the clock, divided by the
///   number of ticks in the period. So no rounding error adds up.
///
/// Threads
///   None. The owner serialises all calls.
#ifndef PAWL_DETAIL_TIME_TOKEN_BUCKET_HPP
#define PAWL_DETAIL_TIME_TOKEN_BUCKET_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/durations.hpp>

#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace pawl::detail {

/// @tparam Clock only its time points are used
template <class Clock>
class token_bucket {
    using duration = typename Clock::duration;
    using time_point = typename Clock::time_point;

public:
    /// @throws std::invalid_argument
    token_bucket(std::int64_t tokens, duration period, std::int64_t burst, time_point now)
        : burst_(burst), seen_(now) {
        const auto ticks = period.count();
        if (tokens < 1 || ticks < 1 || burst < 1)
            throw std::invalid_argument(
                "pawl: a rate limit needs tokens, a period and a burst above 0: there would "
                "be no token ever, or no limit");
        const auto common = std::gcd<std::int64_t, std::int64_t>(tokens, ticks);
        gain_ = tokens / common;
        token_ = ticks / common;
        if (burst > std::numeric_limits<std::int64_t>::max() / token_)
            throw std::invalid_argument(
                "pawl: the burst or the period of a rate limit is too large: burst times "
                "period must be below 2^63 ns");
        most_ = credit_ = burst_ * token_;
        fills_in_ = ticks_for(most_);
    }

    /// @throws std::invalid_argument unless the bucket can ever hold `n` tokens.
    void check(std::int64_t n) const {
        if (n < 1 || n > burst_)
            throw std::invalid_argument(
                "pawl: a rate limiter gives at least one token, and at most its burst");
    }

    /// Takes the tokens if they are there.
    [[nodiscard]] bool take(std::int64_t n, time_point now) noexcept {
        refill(now);
        if (credit_ < n * token_)
            return false;
        credit_ -= n * token_;
        return true;
    }
    void give_back(std::int64_t n) noexcept {
        const auto c = n * token_;
        credit_ = credit_ > most_ - c ? most_ : credit_ + c;
    }

    /// When `n` tokens are there. @pre take(n) has just failed
    [[nodiscard]] time_point when(std::int64_t n) const noexcept {
        return saturating_sum(seen_, duration(ticks_for(n * token_ - credit_)));
    }
    [[nodiscard]] std::int64_t tokens(time_point now) noexcept {
        refill(now);
        return credit_ / token_;
    }

private:
    [[nodiscard]] std::int64_t ticks_for(std::int64_t credit) const noexcept {
        return credit / gain_ + (credit % gain_ != 0);
    }
    void refill(time_point now) noexcept {
        if (now <= seen_)
            return;
        const auto ticks = saturating_difference(now, seen_).count();
        seen_ = now;
        // Without a division, and without overflow: less than fills_in_ ticks gain less than most_.
        if (ticks >= fills_in_ || ticks * gain_ >= most_ - credit_)
            credit_ = most_;
        else
            credit_ += ticks * gain_;
    }

    std::int64_t gain_;  ///< credits in each tick
    std::int64_t token_; ///< credits of a token
    std::int64_t burst_;
    std::int64_t most_;
    std::int64_t fills_in_; ///< ticks
    std::int64_t credit_;
    time_point seen_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_TIME_TOKEN_BUCKET_HPP
