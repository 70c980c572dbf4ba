// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The time structure of scaled timers, whose waits take between a least and a longest time, in
///   proportion to a pressure. A scaled_backend; see backend.hpp.
///
/// Model
///   A deadline is a due tick, the earliest one, and a spread, the ticks from there to the latest.
///   A wait has two phases. Until its due tick it is in a wheel of real ticks. Then it goes to a
///   wheel of scaled ticks, for as many of them as its spread. At pressure p they pass 1/(1-p)
///   times as fast as real ones, so a spread takes 1-p of itself, and a change of pressure touches
///   no node. At pressure 1 the second wheel is handed out as it is.
///
///       insert, rearm --> first_ --due tick--> second_ --spread--> expire()
///
/// Invariants
///   - Scale invariant: scaled ticks never go back, and are never behind the real ones. If the
///     second wheel is empty, a change of pressure sets them to these: they must not run out.
///   - Segment invariant: the pressure is adopted in expire() only, when no node is in first_ that
///     was due by then. So a node's spread begins in the present segment, unless it was filed late.
///   - Nothing is early: the beginning of a spread is rounded up, the present time down.
///
/// Order
///   By the end of the spread. At pressure 1 all that is in its second phase is due at once, in no
///   order. While a node is in its second phase, timer_node::due is a scaled tick.
///
/// Cost
///   Two binary wheels: 2.4 KB, and 16 bytes more for each node. All calls are O(1), except
///   expire(), which handles up to twice as many nodes as it has room for.
#ifndef PAWL_DETAIL_TIME_SCALED_WHEEL_HPP
#define PAWL_DETAIL_TIME_SCALED_WHEEL_HPP

#include <pawl/time/backend.hpp>
#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pawl::time::detail {

/// Where scaled ticks are while real ticks pass.
class scaled_time {
public:
    /// From here on a pressure counts as 1, so that scaled ticks last for years.
    static constexpr double full = 1 - 1. / 65536;

    explicit scaled_time(tick now) noexcept : since_(now.count()), begun_(now.count()) {}

    [[nodiscard]] double pressure() const noexcept { return pressure_; }
    /// Scaled ticks may run out: with ticks of 1 ns, and years of a clock that is moved by hand.
    [[nodiscard]] bool is_far(tick now) const noexcept {
        return at(now).count() - now.count() >= std::uint64_t{1} << 61;
    }
    [[nodiscard]] bool all_due() const noexcept { return pressure_ >= full; }

    /// The pressure changes at real tick `now`, which is not before the last change.
    void change(tick now, double pressure) noexcept {
        begun_ = at(now).count();
        since_ = now.count();
        pressure_ = pressure;
        rate_ = all_due() ? 1 : 1 / (1 - pressure);
    }

    /// The scaled tick at real tick `t`, rounded down. What was before the last change counts as
    /// at pressure 0.
    [[nodiscard]] tick at(tick t) const noexcept {
        if (t.count() < since_)
            return tick{begun_ - (since_ - t.count())};
        constexpr double most = 9e18; // fits
        const double passed = static_cast<double>(t.count() - since_) * rate_;
        return tick{begun_ + std::min(static_cast<std::uint64_t>(std::min(passed, most)),
                                      last_tick.count() - begun_)};
    }

    /// The scaled tick `spread` after real tick `t`, rounded up. Without a spread, that of `t`.
    [[nodiscard]] tick after(tick t, std::uint64_t spread) const noexcept {
        const std::uint64_t begin = at(t).count() + (rate_ != 1 && spread != 0 ? 1 : 0);
        return tick{begin + std::min(spread, tick::never().count() - begin)};
    }

    /// The first real tick at which the scaled tick `scaled` has come, if that is after the last
    /// change. An earlier one, if it is very far.
    [[nodiscard]] tick when(tick scaled) const noexcept {
        if (scaled == tick::never())
            return scaled;
        constexpr std::uint64_t exact = std::uint64_t{1} << 53; // in a double
        const std::uint64_t left = std::min(std::max(scaled.count(), begun_) - begun_, exact);
        auto real = static_cast<std::uint64_t>(static_cast<double>(left) / rate_);
        while (at(tick{since_ + real}).count() < begun_ + left)
            ++real; // a few times: the quotient was rounded
        return tick{since_ + real};
    }

private:
    std::uint64_t since_; ///< the last change
    std::uint64_t begun_; ///< the scaled tick then
    double pressure_ = 0;
    double rate_ = 1; ///< scaled ticks in a real one
};

/// What a node needs in a scaled_wheel.
struct scaled_fields {
    std::uint64_t spread = 0;
    bool second = false; ///< the node is in its second phase
};

/// When a wait is due: at `due` at the earliest, `spread` later at the latest.
struct scaled_deadline {
    tick due{};
    std::uint64_t spread = 0;

    /// A time structure need not look before.
    operator tick() const noexcept { return due; }
};

/// @tparam Node a timer_node and scaled_fields.
template <class Node>
class scaled_wheel {
public:
    static constexpr const char* label = "scaled_wheel"; ///< In statistics.

    using node_type = Node;
    using deadline = scaled_deadline;

    class detached {
    public:
        explicit detached(const scaled_wheel& w) : first_(w.first_), second_(w.second_) {}

        [[nodiscard]] timer_node* pop() noexcept {
            timer_node* const node = first_.pop();
            return node ? node : second_.pop();
        }

    private:
        friend class scaled_wheel;
        binary_wheel::detached first_, second_;
    };

    explicit scaled_wheel(const geometry& shape, tick now = tick{})
        : first_(shape, now), second_(shape, now), time_(now) {}
    scaled_wheel& operator=(scaled_wheel&&) = delete;

    /// Before the first call of expire(): where the pressure is, from 0 to 1.
    void follow(const std::atomic<double>& pressure) noexcept {
        source_ = &pressure;
        adopt(now());
    }

    [[nodiscard]] tick now() const noexcept { return first_.now(); }
    [[nodiscard]] std::size_t size() const noexcept { return first_.size() + second_.size(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    void insert(timer_node& node, const deadline& due) noexcept {
        Node& n = of(node);
        n.spread = due.spread;
        n.second = false;
        first_.insert(node, due.due);
    }
    void refile(timer_node& node) noexcept { wheel_of(node).refile(node); }
    void erase(timer_node& node) noexcept { wheel_of(node).erase(node); }
    void rearm(timer_node& node, const deadline& due) noexcept {
        if (of(node).second) {
            second_.erase(node);
            insert(node, due);
        } else {
            of(node).spread = due.spread;
            first_.rearm(node, due.due);
        }
    }
    void move_node(timer_node& from, timer_node& to) noexcept {
        static_cast<scaled_fields&>(of(to)) = of(from);
        wheel_of(from).move_node(from, to);
    }

    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        const auto [moved, more] = first_.expire(now, out);
        for (timer_node* const node : out.first(moved)) {
            of(*node).second = true;
            second_.insert(*node, time_.after(node->due, of(*node).spread));
        }
        if (more || moved == out.size())
            return {0, true};
        now = first_.now();
        adopt(now);
        expire_result all = time_.all_due() ? take_all(out.subspan(moved))
                                            : second_.expire(time_.at(now), out.subspan(moved));
        std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(moved), all.emitted, out.begin());
        for (timer_node* const node : out.first(all.emitted))
            node->due = time_.all_due() ? now : std::min(now, time_.when(node->due));
        return all;
    }

    [[nodiscard]] tick next_wake() const noexcept {
        const tick first = first_.next_wake();
        if (second_.empty())
            return first;
        return time_.all_due() ? now() : std::min(first, time_.when(second_.next_wake()));
    }

    [[nodiscard]] timer_node* any() const noexcept {
        timer_node* const node = first_.any();
        return node ? node : second_.any();
    }
    void detach_all(detached& set) noexcept {
        first_.detach_all(set.first_);
        second_.detach_all(set.second_);
    }
    void rewind(tick now) noexcept {
        first_.rewind(now);
        second_.rewind(now);
        time_ = scaled_time(now);
        adopt(now);
    }

private:
    [[nodiscard]] static Node& of(timer_node& node) noexcept { return static_cast<Node&>(node); }
    [[nodiscard]] binary_wheel& wheel_of(timer_node& node) noexcept {
        return of(node).second ? second_ : first_;
    }

    void adopt(tick now) noexcept {
        // relaxed: it guards no data, and who changes it makes the owner call expire() afterwards.
        const double pressure = source_ ? source_->load(std::memory_order_relaxed) : 0;
        if (pressure == time_.pressure() && !time_.is_far(now))
            return;
        if (second_.empty()) { // so no node holds a scaled tick
            second_.rewind(now);
            time_ = scaled_time(now);
        }
        time_.change(now, pressure);
    }

    [[nodiscard]] expire_result take_all(std::span<timer_node*> out) noexcept {
        std::size_t n = 0;
        for (; n != out.size() && !second_.empty(); ++n) {
            out[n] = second_.any();
            second_.erase(*out[n]);
        }
        return {n, !second_.empty()};
    }

    binary_wheel first_;  ///< by real ticks
    binary_wheel second_; ///< by scaled ticks
    scaled_time time_;
    const std::atomic<double>* source_ = nullptr;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_SCALED_WHEEL_HPP
