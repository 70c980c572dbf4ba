// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/timers.hpp"

#include "simulation/timer_impl.hpp"

#include <pawl/coarse_timer.hpp>

namespace simulation::threads {

namespace {

/// Calls `f.template operator()<Timer>()` for the timers of a sort.
template <class Function>
decltype(auto) with_timer(sort s, Function&& f) {
    switch (s) {
    case sort::steady:
        break;
    case sort::compact:
        return f.template operator()<pawl::compact_timer>();
    case sort::coarse:
        return f.template operator()<pawl::coarse_timer>();
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
