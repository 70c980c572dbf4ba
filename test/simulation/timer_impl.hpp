// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Implements timers.hpp for one type of timer and for one kind. Each kind is compiled separately.

#ifndef PAWL_TEST_SIMULATION_TIMER_IMPL_HPP
#define PAWL_TEST_SIMULATION_TIMER_IMPL_HPP

#include "simulation/timers.hpp"

#include <pawl/expire_all.hpp>

#include <boost/asio/bind_executor.hpp>

namespace simulation {

template <class Timer>
class some_timer final : public any_timer {
    using duration = typename Timer::duration;
    using time_point = typename Timer::time_point;

public:
    explicit some_timer(const asio::any_io_executor& ex) : timer_(ex) {}
    explicit some_timer(Timer&& from) : timer_(std::move(from)) {}

    std::int64_t expiry() override { return timer_.expiry().time_since_epoch().count(); }
    std::size_t expires_after(std::int64_t d) override { return timer_.expires_after(duration(d)); }
    std::size_t expires_at(std::int64_t t) override {
        return timer_.expires_at(time_point(duration(t)));
    }
    std::size_t expires_within(std::int64_t min, std::int64_t max) override {
        return timer_.expires_within(duration(min), duration(max));
    }
    std::size_t rearm_after(std::int64_t d) override { return timer_.rearm_after(duration(d)); }
    std::size_t rearm_at(std::int64_t t) override {
        return timer_.rearm_at(time_point(duration(t)));
    }
    std::size_t rearm_within(std::int64_t min, std::int64_t max) override {
        return timer_.rearm_within(duration(min), duration(max));
    }
    std::size_t cancel() override { return timer_.cancel(); }
    std::size_t cancel_one() override { return timer_.cancel_one(); }
    void wait(completion handler, const asio::any_io_executor* bound) override {
        if (bound)
            timer_.async_wait(asio::bind_executor(*bound, std::move(handler)));
        else
            timer_.async_wait(std::move(handler));
    }
    std::unique_ptr<any_timer> move() override {
        return std::make_unique<some_timer>(std::move(timer_));
    }
    void assign(any_timer& from) override {
        timer_ = std::move(static_cast<some_timer&>(from).timer_);
    }

private:
    Timer timer_;
};

template <kind K>
std::unique_ptr<any_timer> timers_of<K>::make(const asio::any_io_executor& ex) {
    return std::make_unique<some_timer<timer_of<K>>>(ex);
}

template <kind K>
void timers_of<K>::make_service(asio::execution_context& context, const pawl::options& o) {
    pawl::make_timer_service<timer_of<K>>(context, o);
}

template <kind K>
std::size_t timers_of<K>::expire_all(asio::execution_context& context, const error_code& ec) {
    return pawl::expire_all<timer_of<K>>(context, ec);
}

} // namespace simulation

#endif
