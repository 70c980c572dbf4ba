// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::retry_policy: which failures to try again, when, and how often. pawl::retry_budget limits
/// the retries of many.
#ifndef PAWL_RETRY_POLICY_HPP
#define PAWL_RETRY_POLICY_HPP

#include <pawl/config.hpp>

#include <pawl/deadline.hpp>
#include <pawl/error.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/errc.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <ratio>
#include <stdexcept>

namespace pawl {

/// Limits retries to a fraction of the requests, for all that share it. Without a budget, clients
/// of a service that fails multiply its load by their number of attempts.
///
/// Each pawl::retry() and pawl::hedge() deposits `fraction` of a token, and each second or later
/// attempt withdraws one. So there are never more of these than `reserve + fraction * requests`. If
/// less than a token is left, the failure is reported at once. The balance never exceeds `reserve`:
/// good times do not pay for a storm.
///
/// After Finagle's RetryBudget (a deposit for each request) and gRPC's retry throttling (proposal
/// A6: a full bucket at first, and no clock). The AWS SDKs have such a bucket for each client, too.
///
/// A budget must outlive the operations that use it.
/// @par Thread safety
/// All members may be called from any thread. Lock-free.
class retry_budget {
public:
    /// @param fraction retries for each request, from 0 to 1.
    /// @param reserve the balance at first, and the largest one. Below 1 there are no retries.
    /// @throws std::invalid_argument unless both are in range.
    explicit retry_budget(double fraction = 0.1, double reserve = 10)
        : deposit_(units(fraction, 1, "pawl: a retry budget needs a fraction from 0 to 1")),
          most_(units(reserve, 1e9, "pawl: a retry budget needs a reserve from 0 to 1e9")),
          balance_(most_) {}
    retry_budget& operator=(retry_budget&&) = delete;

    /// Counts a request: adds the fraction.
    void deposit() noexcept { add(deposit_); }

    /// Withdraws a token for a retry. @return false if there is none; the balance stays.
    [[nodiscard]] bool try_withdraw() noexcept {
        // relaxed: the balance guards no other data. The same below.
        std::int64_t seen = balance_.load(std::memory_order_relaxed);
        while (seen >= token)
            if (balance_.compare_exchange_weak(seen, seen - token, std::memory_order_relaxed))
                return true;
        return false;
    }

    /// Returns the token of a retry that is not made.
    void give_back() noexcept { add(token); }

    /// The tokens that are there.
    [[nodiscard]] double balance() const noexcept {
        return static_cast<double>(balance_.load(std::memory_order_relaxed)) / token;
    }

private:
    static constexpr std::int64_t token = 1'000'000;

    static std::int64_t units(double tokens, double most, const char* complaint) {
        if (!(tokens >= 0 && tokens <= most)) // also if it is no number
            throw std::invalid_argument(complaint);
        return static_cast<std::int64_t>(tokens * token + 0.5);
    }

    void add(std::int64_t units) noexcept {
        std::int64_t seen = balance_.load(std::memory_order_relaxed);
        while (seen < most_ && !balance_.compare_exchange_weak(seen, std::min(most_, seen + units),
                                                               std::memory_order_relaxed)) {
        }
    }

    const std::int64_t deposit_;
    const std::int64_t most_;
    std::atomic<std::int64_t> balance_;
};

/// Whether an error may be temporary: a limit was reached, or a connection was refused, reset or
/// closed, or its network cannot be reached, or a name server asks to try again. Never
/// `operation_aborted`.
[[nodiscard]] inline bool is_transient(const boost::system::error_code& ec) noexcept {
    namespace errc = boost::system::errc;
    namespace io = boost::asio::error;
    const auto is_any = [&](auto... codes) { return ((ec == codes) || ...); };
    return is_any(errc::timed_out, errc::connection_refused, errc::connection_reset,
                  errc::connection_aborted, errc::broken_pipe, errc::host_unreachable,
                  errc::network_unreachable, errc::network_down, errc::network_reset,
                  errc::resource_unavailable_try_again) ||
           is_any(io::eof, io::host_not_found_try_again) ||
           // Those of errc, as standalone Asio reports them: they equal no std::errc.
           is_any(io::timed_out, io::connection_refused, io::connection_reset,
                  io::connection_aborted, io::broken_pipe, io::host_unreachable,
                  io::network_unreachable, io::network_down, io::network_reset, io::try_again);
}

/// How pauses are spread, so that clients which failed together do not return together. After M.
/// Brooker, Exponential Backoff and Jitter (AWS Architecture Blog, 2015).
enum class retry_jitter {
    full,  ///< from zero to the ceiling
    equal, ///< from half the ceiling to the ceiling
    none,  ///< the ceiling
};

/// How pawl::retry() retries. An aggregate: name the fields that differ from the defaults.
///
/// The pause after attempt `n` is random, up to a ceiling of `first * factor^(n-1)`, and of `cap`.
///
/// With `max_attempts = unlimited`, and neither `limit` nor `deadline`, a policy has no end: it
/// retries until it succeeds, meets a final error, or is cancelled.
template <class Clock>
struct basic_retry_policy {
    using clock_type = Clock; ///< The clock of the pauses and limits.
    /// For max_attempts.
    static constexpr unsigned unlimited = std::numeric_limits<unsigned>::max();
    /// For limits: none.
    static constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();

    /// Ceiling of the first pause; above 0.
    detail::saturated<std::chrono::nanoseconds> first = std::chrono::milliseconds(100);
    /// Ceiling of any pause; at least `first`. A Retry-After hint may be longer.
    detail::saturated<std::chrono::nanoseconds> cap = std::chrono::seconds(5);
    /// By how much the ceiling grows; at least 1.
    double factor = 2;
    /// How pauses are spread.
    retry_jitter jitter = retry_jitter::full;
    /// At most so many attempts, the first included; at least 1.
    unsigned max_attempts = 3;
    /// The most that one attempt takes; above 0. Then pawl::timeout_at() cancels it, and it fails
    /// with pawl::error::timed_out.
    detail::saturated<std::chrono::nanoseconds> attempt_limit = never;
    /// The most that all takes, from the start on. Zero or less: no attempt is made.
    detail::saturated<std::chrono::nanoseconds> limit = never;
    /// When all ends at the latest, such as the deadline of a request. Ends attempts, too.
    basic_deadline<Clock> deadline{};
    /// Which errors to retry; is_transient() by default. It runs on the executor of the operation.
    std::function<bool(const boost::system::error_code&)> retry_if{};
    /// Shared by many; none by default.
    retry_budget* budget = nullptr;
    /// With a seed, all calls have the same pauses, for tests. Without, each has pauses of its own.
    std::optional<std::uint64_t> seed{};

    /// @throws std::invalid_argument, which says what is wrong.
    void check() const {
        if (!(first > first.zero()) || cap < first)
            throw std::invalid_argument(
                "pawl: a retry policy needs a `first` pause above 0, and a `cap` (5 s by "
                "default) that is not below it");
        if (!(factor >= 1 && factor <= std::numeric_limits<double>::max()))
            throw std::invalid_argument("pawl: the factor of a retry policy is a number from 1 on");
        if (max_attempts == 0 || !(attempt_limit > attempt_limit.zero()))
            throw std::invalid_argument(
                "pawl: a retry policy needs at least one attempt, and a limit of an "
                "attempt above 0");
    }
};

/// On the steady clock.
using retry_policy = basic_retry_policy<detail::steady_clock>;

/// What an attempt of pawl::retry() or pawl::hedge() is told. Valid, with its copies, until the
/// attempt has completed.
template <class Clock>
class basic_attempt {
public:
    /// 1 for the first.
    [[nodiscard]] unsigned number() const noexcept { return number_; }
    /// When this attempt ends at the latest. For what it calls; the attempt itself is cancelled.
    [[nodiscard]] basic_deadline<Clock> deadline() const noexcept { return deadline_; }
    /// Why the attempt before failed; success at first.
    [[nodiscard]] boost::system::error_code last_error() const noexcept { return last_error_; }

    /// If this attempt fails and is retried, the pause takes `d` longer, as the server asks (RFC
    /// 9110, Retry-After). The jitter comes on top: clients that were told the same should not
    /// return together. Zero or less: as without. No effect in hedge().
    template <class Rep, class Period>
    void retry_after(const std::chrono::duration<Rep, Period>& d) const {
        *hint_ = detail::saturating_cast<std::chrono::nanoseconds>(d);
    }

    /// @cond
    basic_attempt(unsigned number, basic_deadline<Clock> d, const boost::system::error_code& last,
                  std::chrono::nanoseconds& hint) noexcept
        : number_(number), deadline_(d), last_error_(last), hint_(&hint) {}
    /// @endcond

private:
    unsigned number_;
    basic_deadline<Clock> deadline_;
    boost::system::error_code last_error_;
    std::chrono::nanoseconds* hint_;
};

/// On the steady clock.
using attempt = basic_attempt<detail::steady_clock>;

namespace detail {

/// The pauses of one retry().
class backoff {
public:
    /// The next pause, a Retry-After hint included. Saturates.
    template <class Clock>
    [[nodiscard]] std::chrono::nanoseconds next(const basic_retry_policy<Clock>& p,
                                                std::chrono::nanoseconds hint) {
        using real = std::chrono::duration<double, std::nano>;
        if (ceiling_ == ceiling_.zero()) {
            ceiling_ = p.first;
            state_ = p.seed ? *p.seed : own_seed();
        } else {
            const real grown = real(ceiling_) * p.factor;
            ceiling_ = p.cap;
            if (grown < real(p.cap))
                ceiling_ = std::chrono::nanoseconds(static_cast<std::int64_t>(grown.count()));
        }
        const auto fixed = p.jitter == retry_jitter::none    ? ceiling_
                           : p.jitter == retry_jitter::equal ? ceiling_ / 2
                                                             : ceiling_.zero();
        const double share = static_cast<double>(draw(state_) >> 11) * 0x1p-53;
        const auto spread = static_cast<double>((ceiling_ - fixed).count()) * share;
        const auto pause = fixed + std::chrono::nanoseconds(static_cast<std::int64_t>(spread));
        hint = std::max(hint, hint.zero());
        return pause > hint.max() - hint ? hint.max() : pause + hint;
    }

private:
    static constexpr std::uint64_t step = 0x9e37'79b9'7f4a'7c15;

    /// SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
    static std::uint64_t draw(std::uint64_t& state) noexcept {
        std::uint64_t z = state += step;
        z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
        z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
        return z ^ (z >> 31);
    }
    static std::uint64_t own_seed() {
        static std::atomic<std::uint64_t> last{(std::uint64_t{std::random_device{}()} << 32) ^
                                               std::random_device{}()};
        std::uint64_t seed =
            last.fetch_add(step, std::memory_order_relaxed); // relaxed: only differs
        return draw(seed);
    }

    std::chrono::nanoseconds ceiling_{0};
    std::uint64_t state_ = 0;
};

} // namespace detail

} // namespace pawl

#endif // PAWL_RETRY_POLICY_HPP
