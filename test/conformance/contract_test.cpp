// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The contract of boost::asio::steady_timer, row by row (C1..C42). Compiled five times: with
// PAWL_UNDER_TEST_ASIO=1 for boost::asio::steady_timer, where it pins Asio's actual behaviour, with
// PAWL_UNDER_TEST_COMPACT=1 for pawl::compact_timer, with PAWL_UNDER_TEST_RING=1 for
// pawl::ring_timer, with PAWL_UNDER_TEST_COARSE=1 for pawl::coarse_timer, and without any for
// pawl::steady_timer. Row C42 needs a macro that changes Asio itself, so it has a program of its
// own, contract_tracking_test.cpp.

#define BOOST_TEST_MODULE contract

#include "contract_types.hpp"

#include "contract_moves.hpp"

#include "contract_cancel.hpp"

#include "contract_wait.hpp"

#include "contract_tokens.hpp"

#include "contract_executors.hpp"

#include "contract_context.hpp"

#include "contract_clock.hpp"
