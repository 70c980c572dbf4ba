// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   timing_wheel::invariant(): checks every alarm. For tests and for a debugger; O(size of the pool).
#ifndef PAWL_DETAIL_TIME_TIMING_WHEEL_INVARIANT_HPP
#define PAWL_DETAIL_TIME_TIMING_WHEEL_INVARIANT_HPP

#include <pawl/detail/time/invariant_check.hpp>

#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

struct timing_wheel_invariant {
    template <class Wheel>
    static void check(const Wheel& wheel) {
        const invariant_check require{"timing_wheel"};
        const auto& queue = wheel.queue_;
        queue.wheel_.invariant();

        const std::uint64_t position = queue.wheel_.now().count();
        std::size_t in_order = 0;
        std::uint64_t before = 0;
        for (const auto& s : queue.front_) {
            require(s.user() == queue.in_front,
                    "front invariant: an alarm of the wheel is in the front",
                    {{"index", s.index}, {"key", s.key()}});
            require(before <= s.key(), "firing-order invariant: not in firing order",
                    {{"key", before}, {"next", s.key()}});
            require(s.key() <= position, "front invariant: in the front too early",
                    {{"key", s.key()}, {"position", position}});
            before = s.key();
            ++in_order;
        }
        require(
            in_order + queue.wheel_.size() == wheel.size_,
            "front invariant: an alarm is neither in the front nor in the wheel",
            {{"in_front", in_order}, {"in_wheel", queue.wheel_.size()}, {"alarms", wheel.size_}});

        std::size_t alive = 0;
        for (std::size_t i = 0; i != wheel.pool_.size(); ++i) {
            const auto& s = wheel.pool_[i];
            if (!s.alive())
                continue;
            ++alive;
            require(s.generation <= wheel.pool_.generations(),
                    "generation invariant: a generation was not given",
                    {{"generation", s.generation}, {"last", wheel.pool_.generations()}});
            require(s.value.has_value(), "generation invariant: an alarm has no value",
                    {{"index", s.index}, {"key", s.key()}});
            require(s.key() == wheel.intervals_.number(s.at),
                    "an alarm's key is not that of its time",
                    {{"key", s.key()}, {"number", wheel.intervals_.number(s.at)}});
            require(s.user() == queue.in_front || s.key() > position,
                    "handed-out invariant: late in the wheel",
                    {{"key", s.key()}, {"position", position}});
        }
        require(alive == wheel.size_, "generation invariant: the size is not the number of alarms",
                {{"alive", alive}, {"alarms", wheel.size_}});
    }
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_TIMING_WHEEL_INVARIANT_HPP
