// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The outcome of a wait in a race, and how to reach the race in time: neither side may win
//   always.

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
#include <functional>
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

/// The result that a handler got.
enum class told { success, aborted, shut_down, refused, nothing };

inline std::ostream& operator<<(std::ostream& out, told what) {
    static constexpr std::array names{"success", "aborted", "shut_down", "refused", "nothing"};
    return out << names.at(static_cast<std::size_t>(what));
}

/// The count of an operation that returns none.
constexpr int none = -1;

inline std::string show(int count) { return count == none ? "none" : std::to_string(count); }

/// The result of the operation that ended or moved a wait, and the result that its handler got.
struct outcome {
    int count;
    told what;

    friend auto operator<=>(const outcome&, const outcome&) = default;
    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        return out << '{' << show(o.count) << ", " << o.what << '}';
    }
};

using outcomes = std::vector<outcome>;

/// The outcome of two waits, with an operation on each.
struct outcome_of_two {
    outcome mine;
    outcome its;

    friend auto operator<=>(const outcome_of_two&, const outcome_of_two&) = default;
    friend std::ostream& operator<<(std::ostream& out, const outcome_of_two& o) {
        return out << o.mine << " beside " << o.its;
    }
};

/// The outcome of one wait, with two operations on it: their results, in their order.
struct outcome_in_turn {
    int first;
    int second;
    told what;

    friend auto operator<=>(const outcome_in_turn&, const outcome_in_turn&) = default;
    friend std::ostream& operator<<(std::ostream& out, const outcome_in_turn& o) {
        return out << '{' << show(o.first) << ", then " << show(o.second) << ", " << o.what << '}';
    }
};

/// One wait, as its handler sees it.
struct wait_record {
    std::atomic<int> began{0};
    std::atomic<int> ended{0};
    std::atomic<int> handlers{0};      ///< function objects that are alive
    std::atomic<bool>* hold = nullptr; ///< the handler does not end before this is true
    std::function<void()> then;        ///< the handler calls it, too
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
        if (r.then)
            r.then();
        ++r.ended;
    }

private:
    wait_record* record_;
};

/// The number of each outcome; shown with --log_level=message.
template <class Outcome>
class census_of {
public:
    explicit census_of(std::string of) : of_(std::move(of)) {}
    ~census_of() {
        for (const auto& [o, times] : seen_)
            BOOST_TEST_MESSAGE(of_ << ' ' << o << ": " << times);
    }

    void check(const Outcome& o, const std::vector<Outcome>& allowed) {
        ++seen_[o];
        BOOST_REQUIRE_MESSAGE(std::find(allowed.begin(), allowed.end(), o) != allowed.end(),
                              "not allowed: " << o);
    }

private:
    std::string of_;
    std::map<Outcome, int> seen_;
};
using census = census_of<outcome>;

inline std::chrono::microseconds upto(random_type& random, std::chrono::microseconds most) {
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::chrono::microseconds::rep>(0, most.count())(random));
}

/// Lets other threads run in the meantime: there may be more threads than cores.
inline void wait_until(clock_type::time_point t) {
    while (clock_type::now() < t)
        std::this_thread::yield();
}

inline void pause(random_type& random, std::chrono::microseconds most) {
    wait_until(clock_type::now() + upto(random, most));
}

/// Measures how long after the expiry of a wait its handler starts on this machine at present, so
/// that half of the operations come before that and half after it.
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
