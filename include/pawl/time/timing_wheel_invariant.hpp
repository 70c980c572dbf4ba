// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   timing_wheel::invariant(): visits every alarm, and says with both operands which invariant does
//   not hold. For tests and for a debugger.

#ifndef PAWL_TIME_TIMING_WHEEL_INVARIANT_HPP
#define PAWL_TIME_TIMING_WHEEL_INVARIANT_HPP

#include <pawl/time/timing_wheel.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pawl::time {

template <class T, class TimePoint>
void timing_wheel<T, TimePoint>::invariant() const {
    const auto require = [](bool holds, const char* what, std::uint64_t a, std::uint64_t b) {
        if (!holds)
            throw std::logic_error("pawl: timing_wheel: " + std::string(what) + ": " +
                                   std::to_string(a) + ", " + std::to_string(b));
    };
    wheel_.invariant();

    const key_type position = wheel_.now().count();
    size_type in_order = 0;
    key_type before = 0;
    for (const slot& s : front_) {
        require(s.user() == in_front, "A2: an alarm of the wheel is in the front: index, key",
                s.index, s.key());
        require(before <= s.key(), "A3: not in firing order: keys", before, s.key());
        require(s.key() <= position, "A2: in the front too early: key, position", s.key(),
                position);
        before = s.key();
        ++in_order;
    }
    require(in_order + wheel_.size() == size_, "A2: alarms in front and wheel, alarms",
            in_order + wheel_.size(), size_);

    size_type alive = 0;
    for (size_type i = 0; i != pool_.size(); ++i) {
        const slot& s = pool_[i];
        if (!s.alive())
            continue;
        ++alive;
        require(s.generation <= pool_.generations(), "A1: generation, last one given", s.generation,
                pool_.generations());
        require(s.value.has_value(), "A1: an alarm without a value: index, key", s.index, s.key());
        require(s.key() == intervals_.number(s.at), "an alarm's key is not its time's: keys",
                s.key(), intervals_.number(s.at));
        require(s.user() == in_front || s.key() > position, "A4: late in the wheel: key, position",
                s.key(), position);
    }
    require(alive == size_, "A1: alive slots, alarms", alive, size_);
}

} // namespace pawl::time

#endif
