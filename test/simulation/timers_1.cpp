// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/timer_impl.hpp"

namespace simulation {

template struct timers_of<kind::steady>;
template struct timers_of<kind::compact>;
template struct timers_of<kind::set>;

} // namespace simulation
