// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// All of Pawl.
#ifndef PAWL_PAWL_HPP
#define PAWL_PAWL_HPP

#include <pawl/config.hpp>
#include <pawl/version.hpp>

#include <pawl/abandon.hpp>
#include <pawl/alarm.hpp>
#include <pawl/basic_interval_timer.hpp>
#include <pawl/basic_waitable_timer.hpp>
#include <pawl/broadcast_error.hpp>
#include <pawl/broadcast_ring.hpp>
#include <pawl/broadcast_ring_options.hpp>
#include <pawl/cancel_after.hpp>
#include <pawl/coarse_clock.hpp>
#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/deadline.hpp>
#include <pawl/debounce.hpp>
#include <pawl/delay_queue.hpp>
#include <pawl/duration_histogram.hpp>
#include <pawl/error.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/event_queue.hpp>
#include <pawl/event_queue_options.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/group.hpp>
#include <pawl/heartbeat.hpp>
#include <pawl/hedge.hpp>
#include <pawl/high_resolution_timer.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/missed_tick_policy.hpp>
#include <pawl/on_backend.hpp>
#include <pawl/options.hpp>
#include <pawl/pressure.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>
#include <pawl/retry_policy.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/scaled.hpp>
#include <pawl/sleep.hpp>
#include <pawl/stats.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/stop_on.hpp>
#include <pawl/stream_limits.hpp>
#include <pawl/system_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>
#include <pawl/timer_event.hpp>
#include <pawl/timer_event_kind.hpp>
#include <pawl/timer_service.hpp>
#include <pawl/virtual_clock.hpp>
#include <pawl/virtual_time.hpp>

#include <pawl/time/timeout_ring.hpp>
#include <pawl/time/timing_wheel.hpp>

#endif // PAWL_PAWL_HPP
