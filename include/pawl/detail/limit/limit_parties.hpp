// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The state word of an operation under a limit: which parties hold its object, and which one
///   emits the signal of the limit. No other file changes that word.
///
/// Model
///   Up to four parties hold the object, each with one bit:
///      operation  its handler was neither called nor destroyed
///      wait       the limit was neither withdrawn nor ended
///      start      the initiating function has not returned
///      outer      a cancellation by the caller is being forwarded
///   One more bit, `fired`, remembers that the limit was reached.
///
///     transition   from                    to               caller
///     leave_start  operation, wait, start  operation, wait  the initiating function; fails
///                                                           if anything else has happened
///     fire         wait, any others        + fired          the wait, at its limit
///     enter        any                     + outer          the caller's signal; does nothing
///                                                           if no party is left
///     leave        its own, any others     - its own        each party, once; two at a time if
///                                                           the operation withdraws the wait
///
///   `leave` returns true to the last party, which frees the object and invokes the handler.
///
///   The operation cannot receive a signal before it was started. So `fire` leaves the emission to
///   the initiating function if `start` is set; otherwise the wait emits. The initiating function
///   sees `fired` when it leaves.
///
/// Threads
///   One atomic word. The parties may be in different threads.
#ifndef PAWL_DETAIL_LIMIT_LIMIT_PARTIES_HPP
#define PAWL_DETAIL_LIMIT_LIMIT_PARTIES_HPP

#include <pawl/detail/service/optional_mutex.hpp>

#include <atomic>

namespace pawl::detail {

class limit_parties {
public:
    static constexpr unsigned operation = 1;
    static constexpr unsigned wait = 2;
    static constexpr unsigned start = 4;
    static constexpr unsigned outer = 8;

    /// @return true if the initiating function has left; false if it must handle what happened
    /// meanwhile.
    [[nodiscard]] bool leave_start() noexcept {
        constexpr unsigned others = operation | wait;
        unsigned untouched = others | start;
        if (single_threaded()) { // a locked instruction takes as long as filing the wait
            const bool leaves = word_.load(std::memory_order_relaxed) == untouched;
            if (leaves)
                word_.store(others, std::memory_order_relaxed);
            return leaves;
        }
        // release: pairs with is_all(), leave() and fire(). relaxed: until it leaves, this thread
        // uses nothing that others have written
        return word_.compare_exchange_strong(untouched, others, std::memory_order_release,
                                             std::memory_order_relaxed);
    }

    /// The party that emits the signal of the limit.
    enum class emitter { none, start, wait };

    [[nodiscard]] emitter fire() noexcept {
        // acquire: pairs with leave_start(). The writes of this thread are released when it leaves.
        const unsigned before = word_.fetch_or(fired, std::memory_order_acquire);
        if (!(before & operation))
            return emitter::none;
        return before & start ? emitter::start : emitter::wait;
    }

    /// Whether the limit has left its signal to the initiating function.
    [[nodiscard]] bool fired_during_start() const noexcept {
        // relaxed: fire() was called on the same executor
        const unsigned parties = word_.load(std::memory_order_relaxed);
        return (parties & fired) && (parties & operation);
    }

    struct entry {
        unsigned party;  ///< `outer`; 0 in a nested emission, and if no party is left
        bool to_forward; ///< the operation is there
    };

    [[nodiscard]] entry enter() noexcept {
        // relaxed: this runs on the executor after the start; leave() releases
        const unsigned before = word_.fetch_or(outer, std::memory_order_relaxed);
        if ((before & everybody) == 0) { // the result is on its way to the executor
            // relaxed: no other party is left
            word_.fetch_and(~outer, std::memory_order_relaxed);
            return {0, false};
        }
        return {before & outer ? 0 : outer, (before & operation) != 0};
    }

    /// Whether this party holds the object. May be outdated, unless the caller excludes that.
    [[nodiscard]] bool has(unsigned party) const noexcept {
        // relaxed: the lock of the shard decides who has the wait, and leave() acquires
        return word_.load(std::memory_order_relaxed) & party;
    }

    /// Whether the caller, with these bits, is the only party.
    [[nodiscard]] bool is_all(unsigned parties) const noexcept {
        // acquire: pairs with leave() and leave_start()
        return (word_.load(std::memory_order_acquire) & everybody) == parties;
    }

    /// @return true if no party is left.
    [[nodiscard]] bool leave(unsigned parties) noexcept {
        // acq_rel: the last one sees the writes of the others
        const unsigned before = word_.fetch_sub(parties, std::memory_order_acq_rel);
        return (before & everybody) == parties && parties != 0;
    }

private:
    static constexpr unsigned everybody = 15;
    static constexpr unsigned fired = 16;

    std::atomic<unsigned> word_{operation | wait | start};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMIT_PARTIES_HPP
