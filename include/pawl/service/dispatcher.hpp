// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Gives a shard its hands: does what the shard says is to be done, and runs due waits, a bounded
///   number per unit, on the executors of their handlers.
///
/// Model
///   A unit takes a wait from the shard, queues its own successor if more are due, and then invokes
///   the handler. So a handler that throws, that stops the context, or that blocks leaves nobody
///   behind: another thread, or the same one later, runs the successor. With completions_per_turn
///   above one a unit goes on itself, and a handler that blocks holds up the rest of its turn.
///
/// Invariants
///   I1  No lock of ours is held while a handler is invoked, moved or destroyed, or an executor is
///       used.
///
/// Cost
///   A unit is queued with memory that the dispatcher owns. Nothing here allocates, save for what
///   the executor of a handler does.
#ifndef PAWL_SERVICE_DISPATCHER_HPP
#define PAWL_SERVICE_DISPATCHER_HPP

#include <pawl/service/block_thread.hpp>
#include <pawl/service/native_executor.hpp>
#include <pawl/service/saturating.hpp>
#include <pawl/service/shard.hpp>

#include <pawl/time/tick.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// What a dispatcher needs of the execution context. Not called once the shard is closed.
class context_port {
public:
    /// Has the driver wake all shards at `t`, or earlier.
    /// @throws std::bad_alloc. The next start in any shard tries again.
    virtual void arm(time::tick t) = 0;
    /// Has the driver wake all shards as soon as the context can.
    virtual void kick() = 0;
    /// Nothing is armed in one shard. Lets the driver rest if that holds for all.
    /// @param native what can be done with the context, if that is known.
    /// @param armings for shard::still_idle().
    virtual void idle(const native_context* native, unsigned armings) = 0;

protected:
    ~context_port() = default;
};

template <class Clock, any_backend Backend>
class dispatcher final : public wait_host, public runner_host {
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;

public:
    using deadline =
        std::conditional_t<Clock::is_steady, typename shard<Backend>::deadline, settable_deadline>;

    dispatcher(boost::asio::execution_context& context, context_port& port, const options& o)
        : context_(context), port_(port), scale_(o.precision, origin_of_ticks()),
          shard_(o, current_tick(), this), per_turn_(o.completions_per_turn), rings_(o) {}
    dispatcher(const dispatcher&) = delete;
    dispatcher& operator=(const dispatcher&) = delete;

    [[nodiscard]] const boost::asio::execution_context& context() const noexcept override {
        return context_;
    }
    [[nodiscard]] const time::tick_scale<Clock>& scale() const noexcept { return scale_; }
    [[nodiscard]] shard<Backend>& state() noexcept { return shard_; }

    [[nodiscard]] const delay_table<Backend>& rings() const noexcept { return rings_; }

    /// The tick that has begun.
    [[nodiscard]] time::tick current_tick() const { return scale_.floor(Clock::now()); }

    /// Where a timer is filed that expires at `t`, when `left` has passed.
    /// @param overdue that was in the past when it was set, and is.
    [[nodiscard]] deadline deadline_of(const time_point& t, bool overdue,
                                       [[maybe_unused]] duration left) const {
        const time::tick due = overdue ? scale_.floor(t) : scale_.ceil(t);
        if constexpr (ring_backend<Backend>)
            return {due, left > duration::zero() ? rings_.ring_for(left) : deadline::overdue};
        else if constexpr (Clock::is_steady)
            return due;
        else
            return {due, overdue && due < scale_.ceil(t) ? reading_of(t) : clock_reading{}};
    }

    /// A timer with the executor `ex` is made. Its native executor, once found, serves all.
    template <class Executor>
    void attach(const Executor& ex) {
        // relaxed: every thread finds the same constant.
        if (!native_.load(std::memory_order_relaxed))
            native_.store(find_native(ex, context_), std::memory_order_relaxed);
    }

    // --- timers -------------------------------------------------------------------------------

    /// Starts a wait; takes ownership of it.
    /// The timer, and this, may be gone when it returns.
    /// @param users of this dispatcher that come with it: the timer, if it is not yet one, and a limit.
    void start(timer_core& timer, wait_operation& op, deadline due, unsigned users) {
        todo_list todo(shard_);
        bool started = false;
        try {
            started = shard_.start(timer, op, due, users, todo);
        } catch (...) {
            drop(op);
            throw;
        }
        if (!started) {
            empty(shutdown_policy::destroy);
            release();
            return;
        }
        if constexpr (ring_backend<Backend>)
            go_on(todo);
        if (!todo.arm)
            return;
        try {
            port_.arm(todo.wake);
        } catch (...) {
            // No wake-up, no wait. If somebody has come by and taken it nevertheless, all is well.
            // The timer is still there: only the first arming by this service can lack memory, and
            // nothing completes waits before.
            todo_list undo(shard_);
            const bool withdrawn = shard_.withdraw(timer, op, undo);
            go_on(undo);
            if (withdrawn) {
                op.destroy();
                throw;
            }
        }
    }

    /// Ends a held wait, whose limit is a user.
    /// @return true if it is the caller's alone; false if its carrier will come.
    [[nodiscard]] bool leave(wait_operation& op) {
        return leave(
            [&](effects& todo, bool& last_user) { return shard_.withdraw(op, todo, &last_user); });
    }

    /// Ends a held wait together with its timer.
    /// @return as above.
    [[nodiscard]] bool leave(timer_core& timer, wait_operation& op) {
        return leave([&](effects& todo, bool& last_user) {
            return shard_.leave(timer, op, todo, last_user);
        });
    }

    /// Cancels waits.
    std::size_t cancel(timer_core& timer, std::size_t limit) {
        todo_list todo(shard_);
        const std::size_t count = shard_.cancel(timer, limit, todo);
        go_on(todo);
        return count;
    }

    /// Moves the deadline of pending waits to `due`, or leaves it as it was, at `old()`.
    template <class Old>
    std::size_t rearm(timer_core& timer, deadline due, Old old) {
        todo_list todo(shard_);
        const std::size_t count = shard_.rearm(timer, due, todo);
        if constexpr (ring_backend<Backend>) {
            if (todo.refused)
                throw boost::system::system_error(boost::asio::error::no_buffer_space,
                                                  "pawl: the ring of the new delay is full");
            go_on(todo);
        }
        if (todo.arm) {
            try {
                port_.arm(todo.wake);
            } catch (...) {
                // The driver still keeps the old deadline; waits that were due are due again.
                todo_list again(shard_);
                (void)shard_.rearm(timer, old(), again);
                shard_.arm_failed();
                (void)collect(current_tick(), false, again);
                go_on(again);
                throw;
            }
        }
        return count;
    }

    void move(timer_core& from, timer_core& to) noexcept { shard_.move(from, to); }

    /// The timer is going away.
    void release(timer_core& timer) {
        if (shard_.release(timer))
            delete this;
    }

    // --- expiry -------------------------------------------------------------------------------

    struct collect_result {
        bool claimed = false; ///< the caller must call turn()
        std::size_t fallen_due = 0;
        bool arm = false; ///< the caller must have the driver wake all shards at `wake` or earlier
        time::tick wake = time::tick::never();
    };

    /// Collects what is due at `now`.
    /// @param claim the caller offers to run a turn.
    /// @throws std::bad_alloc with the driver armed to try again.
    [[nodiscard]] collect_result collect(time::tick now, bool claim) {
        todo_list todo(shard_);
        const auto [claimed, fallen_due] = collect(now, claim, todo);
        go_on(todo);
        return {claimed, fallen_due, todo.arm, todo.wake};
    }

    /// Instead of turn(): leaves it to a unit that is queued.
    void give_up_turn() { turn_end(*this, nullptr); }

    std::size_t expire_all(const boost::system::error_code& ec) {
        todo_list todo(shard_);
        return shard_.expire_all(ec, todo, [&] {
            go_on(todo);
            todo.runners = nullptr;
            todo.idle = false;
        });
    }

    /// Runs one turn: at most completions_per_turn waits.
    void turn() { turn(nullptr); }

    void run(runner_token& token) override { turn(&token); }

    // --- the end ------------------------------------------------------------------------------

    /// Destroys, or delivers, every wait.
    void shutdown(shutdown_policy policy) {
        // relaxed: whoever parks after close() sees it, by the lock of the shard
        delivers_.store(policy == shutdown_policy::deliver, std::memory_order_relaxed);
        shard_.close();
        // A wait may have been run by another thread, and have ended the context, before the call
        // that started it has returned. None of these waits for a handler.
        while (!shard_.all_told())
            block_thread(std::chrono::microseconds(10));
        empty(policy);
    }

    /// The service is going away.
    void release() {
        if (shard_.release())
            delete this;
    }

    // --- wait_host ----------------------------------------------------------------------------

    bool arrive(wait_operation& op) noexcept override {
        bool last_user = false;
        const bool owned = shard_.arrive(op, last_user);
        delete_if(last_user);
        return owned;
    }

    bool park(wait_operation& op) noexcept override {
        bool last_user = false;
        const bool parked = shard_.park(op, last_user);
        delete_if(last_user);
        return parked;
    }

    bool arrive_or_park(wait_operation& op) override {
        effects todo;
        const bool owned = shard_.arrive_or_park(op, todo);
        if (todo.arm)
            port_.arm(todo.wake);
        return owned;
    }

    void abandon(wait_operation& op) noexcept override {
        bool last_user = false;
        if (!shard_.park(op, last_user)) {
            if (delivers_.load(std::memory_order_relaxed)) // see shutdown()
                op.complete();
            else
                op.destroy();
        }
        delete_if(last_user);
    }

    void cancel(slot_link& link) override {
        todo_list todo(shard_);
        shard_.cancel(link, todo);
        go_on(todo);
    }

    void forget(slot_link& link) noexcept override { delete_if(shard_.forget(link)); }

private:
    ~dispatcher() = default;

    static clock_reading reading_of(const time_point& t) noexcept {
        using source = typename duration::rep;
        constexpr std::uint64_t half = std::uint64_t{1} << 63;
        if constexpr (std::is_integral_v<source> && sizeof(source) <= sizeof half) {
            const auto count = static_cast<std::uint64_t>(t.time_since_epoch().count());
            return clock_reading{std::is_signed_v<source> ? count ^ half : count};
        } else {
            const auto count = std::bit_cast<std::uint64_t>(
                std::chrono::duration<double>(t.time_since_epoch()).count() + 0.0);
            return clock_reading{(count & half) != 0 ? ~count : count | half};
        }
    }

    /// A clock that stands, or that may be set, before its epoch needs ticks there.
    static time::tick_origin origin_of_ticks() {
        return !Clock::is_steady || Clock::now() < time_point() ? time::tick_origin::least
                                                                : time::tick_origin::epoch;
    }

    /// What a thread that need not run the context has to do for the shard.
    struct todo_list : effects {
        explicit todo_list(shard<Backend>& s) noexcept : shard_(s) {}
        todo_list(const todo_list&) = delete;
        todo_list& operator=(const todo_list&) = delete;
        ~todo_list() {
            if (this->untold || this->arming)
                shard_.told(*this);
        }

    private:
        shard<Backend>& shard_; ///< may be gone if nothing was to be done
    };

    /// Ends every wait of a closed shard. Handlers that are destroyed here may destroy timers and
    /// start other waits: those end in the same loop, and not by recursion.
    void empty(shutdown_policy policy) {
        if (!shard_.begin_draining())
            return;
        wait_operation* op = nullptr;
        do {
            end_all(op, shutdown_policy::destroy);
            while (shard_.drain(op))
                end_all(op, policy);
            op = shard_.end_draining();
        } while (op);
    }

    static void end_all(wait_operation* op, shutdown_policy policy) {
        while (op) {
            wait_operation* const next = op->next;
            if (policy == shutdown_policy::deliver)
                op->complete();
            else
                op->destroy();
            op = next;
        }
    }

    [[nodiscard]] auto collect(time::tick now, bool claim, effects& out) {
        if constexpr (Clock::is_steady)
            return shard_.collect(now, 0, claim, out);
        else
            return collect_after_set_backs(claim, out);
    }

    /// For clocks that can be set back: has the shard follow.
    /// @throws std::bad_alloc
    [[nodiscard]] auto collect_after_set_backs(bool claim, effects& out) {
        for (;;) {
            // In this order: a reading that is older than another thread's is no set-back.
            const auto seen = shard_.seen();
            const time_point t = Clock::now();
            const time::tick now = scale_.floor(t);
            const clock_reading reading = reading_of(t);
            if (!(now < seen.now) && !(reading < seen.passed))
                return shard_.collect(now, seen.set_backs, claim, out, reading);
            try {
                shard_.set_back(now, reading);
            } catch (...) {
                port_.arm(time::tick{}); // try again
                throw;
            }
        }
    }

    /// @param end has the shard do it.
    template <class End>
    [[nodiscard]] bool leave(End end) {
        bool last_user = false;
        bool withdrawn = false;
        {
            todo_list todo(shard_);
            withdrawn = end(todo, last_user);
            go_on(todo);
        }
        delete_if(last_user);
        return withdrawn;
    }

    void delete_if(bool last_user) noexcept {
        if (last_user)
            delete this;
    }

    /// Destroys a wait that never got into the shard.
    void drop(wait_operation& op) noexcept {
        if (slot_link* const link = op.slot())
            link->unlink();
        op.destroy();
    }

    /// Ends a turn in which a handler has thrown.
    class turn_end {
    public:
        turn_end(dispatcher& d, runner_token* token) noexcept : d_(&d), token_(token) {}
        turn_end(const turn_end&) = delete;
        turn_end& operator=(const turn_end&) = delete;
        ~turn_end() {
            if (!d_)
                return;
            effects todo;
            d_->shard_.retire(token_, todo);
            d_->go_on(todo);
            if (todo.arm)
                d_->port_.kick(); // allocates nothing: it is not the driver's first time
        }
        void dismiss() noexcept { d_ = nullptr; }

    private:
        dispatcher* d_;
        runner_token* token_;
    };

    void turn(runner_token* token) {
        turn_end end(*this, token);
        for (unsigned n = 1;; ++n) {
            effects todo;
            auto taken = shard_.take(token, n == per_turn_, false, todo);
            if (taken.behind) {
                if (const auto found = collect(current_tick(), false); found.arm)
                    port_.arm(found.wake);
                taken = shard_.take(token, n == per_turn_, true, todo);
            }
            if (taken.retired) {
                end.dismiss();
                go_on(todo);
            }
            if (todo.arm)
                port_.arm(todo.wake);
            if (taken.op) {
                if (taken.op->direct())
                    taken.op->complete();
                else
                    taken.op->hand_over(*this);
            }
            if (taken.retired)
                return;
        }
    }

    /// Does what the shard asked for, but for arming. If that is nothing, this may be gone.
    void go_on(const effects& todo) {
        if (todo.runners || todo.idle) // nearly never: not worth a call
            carry_out(todo);
    }

    [[gnu::noinline]] void carry_out(const effects& todo) {
        if (todo.runners)
            enqueue(todo.runners);
        if (todo.idle) {
            const auto* const native = native_.load(std::memory_order_relaxed); // see attach()
            port_.idle(native, todo.armings);
        }
    }

    void enqueue(runner_token* list) {
        // relaxed: see attach()
        const native_context* const native = native_.load(std::memory_order_relaxed);
        while (list) {
            // It may run before enqueue() returns.
            runner_token& token = *std::exchange(list, list->next);
            if (native) {
                native->enqueue(context_, token);
            } else {
                shard_.unclaim(token);
                port_.kick();
            }
        }
    }

    boost::asio::execution_context& context_; ///< not touched once the shard is closed
    context_port& port_;                      ///< likewise
    const time::tick_scale<Clock> scale_;
    shard<Backend> shard_;
    const unsigned per_turn_;
    std::atomic<bool> delivers_{false}; ///< the context has gone, and its handlers are invoked
    std::atomic<const native_context*> native_{nullptr};
    [[no_unique_address]] const delay_table<Backend> rings_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DISPATCHER_HPP
