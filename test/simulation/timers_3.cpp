// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/timer_impl.hpp"

namespace simulation {

template struct timers_of<kind::set_milli>;
template struct timers_of<kind::mock>;
template struct timers_of<kind::edge>;
template struct timers_of<kind::coarse>;

} // namespace simulation
