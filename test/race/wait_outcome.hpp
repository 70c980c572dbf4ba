// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   What became of a wait that was raced for, and how to come to the race in time: neither side may
//   win always.

#ifndef PAWL_TEST_RACE_WAIT_OUTCOME_HPP
#define PAWL_TEST_RACE_WAIT_OUTCOME_HPP

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace race_support {

namespace asio = boost::asio;
using clock_type = std::chrono::steady_clock;
using random_type = std::mt19937_64;

/// What a handler was told.
enum class told { success, aborted, shut_down, refused, nothing };

/// The count of an operation that returns none.
constexpr int none = -1;

/// What the operation said that ended or moved a wait, and what its handler was told.
struct outcome {
    int count;
    told what;

    friend auto operator<=>(const outcome&, const outcome&) = default;
    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        static constexpr std::array names{"success", "aborted", "shut_down", "refused", "nothing"};
        out << '{' << (o.count == none ? "none" : std::to_string(o.count));
        return out << ", " << names.at(static_cast<std::size_t>(o.what)) << '}';
    }
};

using outcomes = std::vector<outcome>;

/// One wait, as its handler sees it.
struct wait_record {
    std::atomic<int> began{0};
    std::atomic<int> ended{0};
    std::atomic<int> handlers{0};      ///< function objects that are alive
    std::atomic<bool>* hold = nullptr; ///< the handler does not end before this is true
    boost::system::error_code code;
    clock_type::time_point at;

    [[nodiscard]] told what() const {
        if (began.load() == 0)
            return told::nothing;
        if (!code)
            return told::success;
        if (code == asio::error::operation_aborted)
            return told::aborted;
        return code == asio::error::shut_down ? told::shut_down : told::refused;
    }
};

class recorder {
public:
    explicit recorder(wait_record& r) : record_(&r) { ++r.handlers; }
    recorder(recorder&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
    recorder& operator=(recorder&&) = delete;
    ~recorder() {
        if (record_)
            --record_->handlers;
    }

    void operator()(boost::system::error_code ec) {
        wait_record& r = *record_;
        r.code = ec;
        r.at = clock_type::now();
        ++r.began;
        while (r.hold && !*r.hold)
            std::this_thread::yield();
        ++r.ended;
    }

private:
    wait_record* record_;
};

/// How often each outcome was seen; shown with --log_level=message.
class census {
public:
    explicit census(std::string of) : of_(std::move(of)) {}
    ~census() {
        for (const auto& [o, times] : seen_)
            BOOST_TEST_MESSAGE(of_ << ' ' << o << ": " << times);
    }

    void check(const outcome& o, const outcomes& allowed) {
        ++seen_[o];
        BOOST_REQUIRE_MESSAGE(std::find(allowed.begin(), allowed.end(), o) != allowed.end(),
                              "not allowed: " << o);
    }

private:
    std::string of_;
    std::map<outcome, int> seen_;
};

inline std::chrono::microseconds upto(random_type& random, std::chrono::microseconds most) {
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::chrono::microseconds::rep>(0, most.count())(random));
}

/// Lets others run meanwhile: there may be more threads than cores.
inline void wait_until(clock_type::time_point t) {
    while (clock_type::now() < t)
        std::this_thread::yield();
}

inline void pause(random_type& random, std::chrono::microseconds most) {
    wait_until(clock_type::now() + upto(random, most));
}

/// Finds out how long after the expiry of a wait its handler begins on this machine, whatever else
/// it does just now, so that operations come half before and half after that.
class aim {
public:
    explicit aim(random_type& random) : random_(random) {}

    /// Waits until about then.
    void approach(clock_type::time_point expiry) {
        wait_until(expiry + lag_ + upto(random_, 2 * jitter) - jitter);
    }

    void learn(bool late) {
        step_ = late == was_late_ ? std::min(2 * step_, most_step) : least_step;
        lag_ = std::clamp(lag_ + (late ? -step_ : step_), least, most);
        was_late_ = late;
    }

private:
    static constexpr std::chrono::microseconds jitter{10}, least_step{2}, most_step{40}, least{-50},
        most{1000};

    random_type& random_;
    std::chrono::microseconds lag_{0};
    std::chrono::microseconds step_ = least_step;
    bool was_late_ = false;
};

} // namespace race_support

#endif // PAWL_TEST_RACE_WAIT_OUTCOME_HPP
