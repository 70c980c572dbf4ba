// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/timers.hpp"

#include <pawl/expire_all.hpp>

#include <boost/asio/bind_executor.hpp>

namespace simulation::threads {

namespace {

template <class Timer>
class timer_on final : public any_timer {
    using duration = typename Timer::duration;
    using time_point = typename Timer::time_point;

public:
    explicit timer_on(const asio::any_io_executor& ex) : timer_(ex) {}
    explicit timer_on(Timer&& from) : timer_(std::move(from)) {}

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
        return std::make_unique<timer_on>(std::move(timer_));
    }
    void assign(any_timer& from) override {
        timer_ = std::move(static_cast<timer_on&>(from).timer_);
    }

private:
    Timer timer_;
};

/// Calls `f.template operator()<Timer>()` for the timers of a sort.
template <class Function>
decltype(auto) with_timer(sort s, Function&& f) {
    switch (s) {
    case sort::steady:
        break;
    case sort::compact:
        return f.template operator()<pawl::compact_timer>();
    case sort::ring:
        return f.template operator()<pawl::ring_timer>();
    case sort::manual:
        return f.template operator()<pawl::manual_timer>();
    case sort::shared:
        return f.template operator()<pawl::basic_waitable_timer<shared_clock>>();
    }
    return f.template operator()<pawl::steady_timer>();
}

} // namespace

std::unique_ptr<any_timer> make_timer(sort s, const asio::any_io_executor& ex) {
    return with_timer(s, [&]<class Timer>() -> std::unique_ptr<any_timer> {
        return std::make_unique<timer_on<Timer>>(ex);
    });
}
void make_service(sort s, asio::execution_context& context, const pawl::options& o) {
    with_timer(s, [&]<class Timer>() { pawl::make_timer_service<Timer>(context, o); });
}
std::size_t expire_all_of(sort s, asio::execution_context& context, const error_code& ec) {
    return with_timer(s, [&]<class Timer>() { return pawl::expire_all<Timer>(context, ec); });
}
std::int64_t now_of(sort s) noexcept {
    return with_timer(s, []<class Timer>() -> std::int64_t {
        return Timer::clock_type::now().time_since_epoch().count();
    });
}

} // namespace simulation::threads
