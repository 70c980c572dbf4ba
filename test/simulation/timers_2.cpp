// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/timer_impl.hpp"

namespace simulation {

template struct timers_of<kind::ring>;
template struct timers_of<kind::edge_ring>;
template struct timers_of<kind::manual>;
template struct timers_of<kind::set_binary>;

} // namespace simulation
