// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Alarms of all kinds behind one interface: time is a number of units of the clock.

#ifndef PAWL_TEST_SIMULATION_ANY_ALARM_HPP
#define PAWL_TEST_SIMULATION_ANY_ALARM_HPP

#include "simulation/timers.hpp"

#include <pawl/alarm.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace simulation {

class any_alarm {
public:
    virtual ~any_alarm() = default;

    virtual void arm_after(std::int64_t d) = 0;
    virtual void arm_at(std::int64_t t) = 0;
    virtual void arm_within(std::int64_t min, std::int64_t max) = 0;
    virtual bool disarm() = 0;
    [[nodiscard]] virtual bool armed() const = 0;
    [[nodiscard]] virtual std::int64_t expiry() const = 0;
    virtual void keep_running(bool on) = 0;
    /// An alarm that is constructed from this one.
    virtual std::unique_ptr<any_alarm> move() = 0;
    /// @pre both are of the same type
    virtual void assign(any_alarm& from) = 0;
};

template <class Alarm>
class some_alarm final : public any_alarm {
    using duration = typename Alarm::duration;

public:
    some_alarm(const asio::any_io_executor& ex, typename Alarm::function_type f)
        : alarm_(ex, std::move(f)) {}
    explicit some_alarm(Alarm&& from) : alarm_(std::move(from)) {}

    void arm_after(std::int64_t d) override { alarm_.arm_after(duration(d)); }
    void arm_at(std::int64_t t) override { alarm_.arm_at(typename Alarm::time_point(duration(t))); }
    void arm_within(std::int64_t min, std::int64_t max) override {
        alarm_.arm_within(duration(min), duration(max));
    }
    bool disarm() override { return alarm_.disarm(); }
    [[nodiscard]] bool armed() const override { return alarm_.armed(); }
    [[nodiscard]] std::int64_t expiry() const override {
        return alarm_.expiry().time_since_epoch().count();
    }
    void keep_running(bool on) override { alarm_.keep_running(on); }
    std::unique_ptr<any_alarm> move() override {
        return std::make_unique<some_alarm>(std::move(alarm_));
    }
    void assign(any_alarm& from) override {
        alarm_ = std::move(static_cast<some_alarm&>(from).alarm_);
    }

private:
    Alarm alarm_;
};

/// On the clock of a timer.
template <class Timer, class Function>
std::unique_ptr<any_alarm> make_alarm(const asio::any_io_executor& ex, Function f) {
    using alarm = pawl::basic_alarm<Function, typename Timer::clock_type, asio::any_io_executor,
                                    typename Timer::traits_type>;
    return std::make_unique<some_alarm<alarm>>(ex, std::move(f));
}

/// One of the calls that arm. @param now the reading of its clock.
inline void arm(any_alarm& a, op how, std::int64_t now, std::int64_t time, std::int64_t more) {
    if (how == op::arm_alarm_after)
        a.arm_after(time);
    else if (how == op::arm_alarm_at)
        a.arm_at(saturating_add(now, time));
    else
        a.arm_within(time, more);
}

} // namespace simulation

#endif
