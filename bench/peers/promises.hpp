// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What each library promises, printed beside its figures: a loop that promises less has less to
///   do.
#ifndef PAWL_BENCH_PEERS_PROMISES_HPP
#define PAWL_BENCH_PEERS_PROMISES_HPP

#include <ostream>

namespace bench::peers {

inline void print_promises(std::ostream& out) {
    out << R"(
### promises

| | early, against a clock read at the start | who may use a timer | what a wait allocates | a cancel of a timer that has expired | a deadline that moves | many due at once |
|---|---|---|---|---|---|---|
| `pawl` | never | any thread (one at a time), cancel from any: a lock per shard | one block, from the handler's allocator | wins until the handler starts; the handler sees `operation_aborted` | keeps the wait | in bounded steps, I/O in between |
| `pawl64` | never | the loop's thread: no lock (`locking = false`) | the same | the same | the same | the same, 64 handlers in a unit |
| `coarse` | never (by the steady clock) | as `pawl` | as `pawl` | as `pawl` | as `pawl` | as `pawl` |
| `asio` | never | any thread (one at a time): a lock per context | one block, from the handler's allocator, and the heap's array | loses: the handler is queued, and sees success | aborts the wait and starts another | all are queued at once, I/O behind them |
| `libuv` | by the age of the loop's time, and up to 1 ms | the loop's thread: no lock | nothing | wins; no callback | keeps the timer | all before I/O |
| `libevent` | by the age of the loop's time, and by its coarse clock (1 to 4 ms) | the loop's thread: no lock (`EVENT_BASE_FLAG_NOLOCK`) | nothing but the heap's array; the event is a block of its own | wins; no callback | keeps the event | all before I/O (limits can be set) |
| `libevent+lock` | the same | any thread: a lock per base | the same | the same | the same | the same |
| `libevent_common` | as `libevent` | as `libevent` | nothing; up to 256 different delays | as `libevent` | as `libevent` | as `libevent` |
| `libev` | by the age of the loop's time | the loop's thread: no lock | nothing but the heap's array | wins; no callback | keeps the timer | all before I/O |
| `libev+lazy` | the same | the same | the same, and two words of the user's | the same | a store; the timer expires once per timeout, and goes on | the same |

The C libraries invoke no handler when a wait is cancelled; with Pawl and Asio each wait completes, and that is in their figures.
)";
}

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_PROMISES_HPP
