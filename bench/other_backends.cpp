// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The workloads on backends and clocks other than the default; see workloads.hpp.

#include "workloads.hpp"

namespace bench {

template sample churn<pawl_coarse>(const plan&);
template sample churn<pawl_compact>(const plan&);
template sample churn_const<pawl_compact>(const plan&);
template sample churn_const<pawl_ring>(const plan&);
template sample idle_rearm<pawl_coarse>(const plan&);
template sample idle_rearm<pawl_compact>(const plan&);
template sample idle_rearm<pawl_ring>(const plan&);
template sample idle_rearm_random<pawl_compact>(const plan&);
template sample expiry_spread<pawl_compact>(const plan&);
template sample expiry_fixed<pawl_compact>(const plan&);
template sample expiry_fixed<pawl_ring>(const plan&);
template sample jump<pawl_compact>(const plan&);
template sample memory_per_wait<pawl_compact>(const plan&);

} // namespace bench
