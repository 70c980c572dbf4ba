// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/timers.hpp"

#include "simulation/timer_impl.hpp"

namespace simulation::threads {

std::unique_ptr<any_timer> make_timer(sort s, const asio::any_io_executor& ex) {
    return with_timer(s, [&]<class Timer>() -> std::unique_ptr<any_timer> {
        return std::make_unique<some_timer<Timer>>(ex);
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
