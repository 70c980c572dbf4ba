// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A shard on a test bench. The bench acts like a dispatcher and a driver on the shard's requests,
//   one unit at a time and visibly, and checks the invariants after every step.
// Model
//   Units are a queue of tokens. The driver is one tick at which it is armed, or none. Carriers are a
//   list of waits that were handed over and have not arrived.

#ifndef PAWL_TEST_SERVICE_SHARD_BENCH_HPP
#define PAWL_TEST_SERVICE_SHARD_BENCH_HPP

#include "support/invariants.hpp"

#include <pawl/detail/service/shard.hpp>
#include <pawl/detail/wait/timer_core.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

template <>
struct pawl::detail::invariant_of<pawl::detail::wakeup_state> {
    static bool pinned(const wakeup_state& s) { return s.pins_ != 0; }
};

template <pawl::time::backend Backend>
struct pawl::detail::invariant_of<pawl::detail::shard<Backend>> {
    static void check(shard<Backend>& all) {
        const std::lock_guard lock(all.mutex_);
        pawl_test::check_invariant(all.files().backend());
        const invariant_check require{"shard"};
        require(all.closed() || !all.runners_.wants_more(all.waits().due(), all.backlog_),
                "runner invariant: too few runners",
                {{"runners", all.runners_.count()}, {"entries", all.waits().due()}});
        require(all.waits().armed() <= all.waits().live(), "more waits are armed than there are",
                {{"armed", all.waits().armed()}, {"live", all.waits().live()}});
        require(all.closed() ||
                    all.wakeup_.busy() ==
                        (all.active() || invariant_of<wakeup_state>::pinned(all.wakeup_)),
                "busy invariant",
                {{"busy", all.wakeup_.busy()},
                 {"armed", all.waits().armed()},
                 {"runners", all.runners_.count()}});
    }
};

namespace shard_bench {

using boost::system::error_code;
using pawl::detail::commitment;
using pawl::detail::parting;
using sequel = commitment::sequel;
using pawl::detail::runner_token;
using pawl::detail::slot_link;
using pawl::detail::timer_core;
using pawl::detail::wait_arbiter;
using pawl::detail::wait_operation;
using pawl::detail::wait_phase;
using pawl::time::tick;

inline const error_code aborted = boost::asio::error::operation_aborted;

/// Whether the shard has become quiet.
inline bool goes_quiet(const commitment& c) {
    return c.after == sequel::go_quiet || c.after == sequel::give_back;
}

/// A wait whose handler records its outcome. Lives as long as the test.
struct test_wait final : pawl::detail::slotted_wait {
    explicit test_wait(bool is_direct = true) : slotted_wait(&perform, is_direct) {}

    static void perform(wait_operation& base, action what, wait_arbiter*) {
        auto& self = static_cast<test_wait&>(base);
        if (what == action::complete) {
            ++self.completed;
            self.told = self.result();
            if (self.handler)
                self.handler();
        } else if (what == action::destroy) {
            ++self.destroyed;
        }
    }

    int completed = 0;
    int destroyed = 0;
    error_code told;
    tick completed_at{};
    std::function<void()> handler; ///< optional
};

/// Counts the timers that the backend handles in one call of the shard.
template <class Backend>
class counting_backend : public Backend {
public:
    using Backend::Backend;

    class detached : public Backend::detached {
    public:
        explicit detached(const counting_backend& b) : Backend::detached(b) {}
    };

    void invariant() const { pawl_test::check_invariant(static_cast<const Backend&>(*this)); }

    void erase(pawl::time::timer_node& node) noexcept {
        ++handled;
        Backend::erase(node);
    }
    pawl::time::expire_result expire(tick now, std::span<pawl::time::timer_node*> out) noexcept {
        room = std::max(room, out.size());
        const auto result = Backend::expire(now, out);
        handled += result.emitted;
        return result;
    }

    static inline std::size_t handled = 0; ///< timers, since the test last cleared it
    static inline std::size_t room = 0;    ///< the most that one expire() was allowed to handle
};

template <class Backend>
class bench final : private wait_arbiter {
public:
    using shard = pawl::detail::shard<Backend>;

    explicit bench(const pawl::options& o = {}, tick now = {},
                   pawl::detail::work_context* work = nullptr)
        : per_turn_(o.completions_per_turn), shard_(o, now, nullptr, work), now_(now) {}

    ~bench() {
        if (released_ || closed_ || !users_.empty() || !carriers_.empty())
            return;
        if (units_.empty()) // and no runner is counted that will never come
            BOOST_CHECK(!shard_.busy());
        BOOST_CHECK(shard_.leave().after == sequel::destroy); // user invariant
    }

    shard& state() { return shard_; }
    wait_arbiter& arbiter() { return *this; }
    tick now() const { return now_; }
    std::size_t units() const { return units_.size(); }
    const std::optional<tick>& driver() const { return driver_; }
    std::size_t armings() const { return armings_; } ///< number of requests to set the driver
    bool closed() const { return closed_; }
    bool over() const { return over_; } ///< the last user was a slot, and has gone
    const std::vector<test_wait*>& log() const { return log_; }
    const std::vector<wait_operation*>& carriers() const { return carriers_; }

    // --- timers ---

    bool start(timer_core& timer, wait_operation& op, std::uint64_t due) {
        const bool first = std::find(users_.begin(), users_.end(), &timer) == users_.end();
        typename shard::template result<pawl::detail::admission> started;
        try {
            started = shard_.start(timer, op, tick{due}, first);
        } catch (...) {
            if (first) // it counts as a user all the same
                users_.push_back(&timer);
            throw;
        }
        const bool open = started.value != pawl::detail::admission::closed;
        if (open && first)
            users_.push_back(&timer);
        apply(started.todo);
        return open;
    }
    std::size_t cancel(timer_core& timer, std::size_t limit = ~std::size_t{0}) {
        auto [count, todo] = shard_.cancel(timer, limit);
        apply(todo);
        return count;
    }
    std::size_t rearm(timer_core& timer, std::uint64_t due) {
        auto [count, refused, todo] = shard_.rearm(timer, tick{due});
        BOOST_CHECK(!refused);
        apply(todo);
        return count;
    }
    void move(timer_core& from, timer_core& to) {
        shard_.move(from, to);
        std::replace(users_.begin(), users_.end(), &from, &to);
        check();
    }
    /// The timer is destroyed.
    bool release(timer_core& timer) {
        cancel(timer);
        if (std::erase(users_, &timer) == 0)
            return false;
        const bool last = shard_.leave(timer).after == sequel::destroy;
        check();
        return last;
    }
    bool release_service() {
        released_ = true;
        return shard_.leave().after == sequel::destroy;
    }

    /// Ends a wait, like a limit that is a user of the shard.
    auto withdraw(wait_operation& op) {
        shard_.enroll();
        return shard_.template withdraw<parting::limit>(nullptr, op);
    }

    // --- expiry ---

    /// The driver wakes up, or another thread checks the clock.
    void collect(std::uint64_t now) {
        now_ = std::max(now_, tick{now});
        if (driver_ && *driver_ <= now_)
            driver_.reset();
        apply(shard_.collect(now_, shard_.seen().set_backs, shard::collector::outside).todo);
    }
    /// Like the driver, whose wake-up is itself a unit.
    bool wake(std::uint64_t now) {
        now_ = std::max(now_, tick{now});
        driver_.reset();
        auto found = shard_.collect(now_, shard_.seen().set_backs, shard::collector::candidate);
        apply(found.todo, !found.claimed);
        if (found.claimed)
            turn(nullptr);
        return found.claimed;
    }

    /// Runs one queued unit.
    /// @return the number of waits that it completed or handed over.
    std::size_t run_unit() { return turn(next_unit()); }
    /// Takes a queued unit, for the test to run.
    runner_token* next_unit() {
        BOOST_REQUIRE(!units_.empty());
        runner_token* const token = units_.front();
        units_.pop_front();
        return token;
    }
    std::size_t run_all() {
        std::size_t count = 0;
        while (!units_.empty())
            count += run_unit();
        return count;
    }

    // --- carriers ---

    /// The arrival of a carrier.
    void arrive(std::size_t index, bool interrupted_until_due = false) {
        auto& op = static_cast<test_wait&>(*carriers_[index]);
        carriers_.erase(carriers_.begin() + static_cast<std::ptrdiff_t>(index));
        auto arrived = shard_.arrive(op);
        apply(arrived.todo, false);
        if (!arrived.value) {
            if (interrupted_until_due)
                collect(~std::uint64_t{0} - 2);
            auto owned = shard_.arrive_or_park(op, pawl::timer_event_kind::started);
            apply(owned.todo, false);
            if (!owned.value) {
                check();
                return;
            }
        }
        complete(op);
    }
    /// The same where no other thread can interrupt it.
    void arrive_in_unit(std::size_t index) {
        auto& op = static_cast<test_wait&>(*carriers_[index]);
        carriers_.erase(carriers_.begin() + static_cast<std::ptrdiff_t>(index));
        auto [owned, todo] = shard_.arrive_or_park(op, pawl::timer_event_kind::started);
        apply(todo);
        if (owned)
            complete(op);
    }
    void abandon_carrier(std::size_t index) {
        wait_operation& op = *carriers_[index];
        carriers_.erase(carriers_.begin() + static_cast<std::ptrdiff_t>(index));
        auto [owned, todo] = shard_.arrive_or_park(op, pawl::timer_event_kind::shut_down);
        apply(todo, false);
        if (owned)
            op.destroy();
        check();
    }

    // --- all at once ---

    std::size_t expire_all(const error_code& ec = {}) {
        const std::size_t count =
            shard_.expire_all(ec, [this](const commitment& todo) { apply(todo, false); });
        check();
        return count;
    }

    const boost::asio::execution_context& context() const noexcept override { return context_; }

    /// Like wait_arbiter::cancel() of a dispatcher.
    void cancel(slot_link& link) override { apply(shard_.cancel(link)); }
    void forget(slot_link& link) noexcept override {
        over_ = shard_.forget(link).after == sequel::destroy;
    }

    /// Executes the commitment that the shard has returned.
    void apply(const commitment& out, bool may_check = true) {
        for (runner_token* t = out.runners; t; t = t->next)
            units_.push_back(t);
        armings_ += out.arm;
        if (out.arm && (!driver_ || out.wake < *driver_))
            driver_ = out.wake;
        if (goes_quiet(out)) {
            BOOST_CHECK(!shard_.busy());
            BOOST_CHECK_EQUAL(shard_.timers().counts().armed, 0u);
        }
        if (out.after == sequel::end_errand || out.after == sequel::go_quiet)
            shard_.end_errand();
        if (out.after == sequel::unpin)
            apply(shard_.unpin(), false);
        if (may_check)
            check();
    }

    /// A thread still has to execute its commitment.
    void hold_up(bool on) { held_up_ = on; }

    void close() {
        shard_.close();
        closed_ = true;
    }

    /// Reports broken invariants, once.
    void check() {
        if (broken_ || closed_)
            return;
        const auto require = [this](bool holds, const char* what) {
            broken_ = broken_ || !holds;
            BOOST_CHECK_MESSAGE(holds, what);
        };
        try {
            pawl_test::check_invariant(shard_);
        } catch (const std::logic_error& e) {
            require(false, e.what());
        }
        require(units_.size() <= pawl::detail::runner_pool::most, "more units than there may be");
        require(shard_.due_count() == 0 || !units_.empty() || in_turn_ || held_up_,
                "runner invariant: an entry without a unit");
        if (!units_.empty() || in_turn_)
            return; // there may be a backlog to collect
        for (const timer_core* t : users_) {
            if (armed(*t))
                require(driver_ && *driver_ <= std::max(t->due, now_),
                        "wake-up invariants: a wait without a wake-up");
        }
    }

private:
    std::size_t turn(runner_token* token) {
        in_turn_ = true;
        std::size_t count = 0;
        for (unsigned n = 1;; ++n) {
            auto taken = shard_.take(token, n == per_turn_, false, n == 1);
            if (taken.behind) {
                collect(now_.count());
                taken = shard_.take(token, n == per_turn_, true, n == 1);
            }
            if (taken.retired)
                in_turn_ = false;
            apply(taken.todo);
            if (taken.op) {
                ++count;
                if (taken.op->direct())
                    complete(static_cast<test_wait&>(*taken.op));
                else
                    carriers_.push_back(taken.op);
            }
            if (taken.retired)
                return count;
        }
    }

    static bool armed(const timer_core& t) {
        const wait_operation* const first = t.oldest();
        for (const wait_operation* op = first; op; op = op->next == first ? nullptr : op->next) {
            if (op->state.phase() == wait_phase::armed)
                return true;
        }
        return false;
    }

    void complete(test_wait& op) {
        op.completed_at = now_;
        log_.push_back(&op);
        op.complete();
    }

    bool arrive(wait_operation&) noexcept override { return true; }
    bool arrive_or_park(wait_operation&) noexcept override { return false; }
    void abandon(wait_operation&) noexcept override {}

    boost::asio::execution_context context_;
    const unsigned per_turn_;
    shard shard_;
    tick now_;
    std::deque<runner_token*> units_;
    std::optional<tick> driver_;
    std::vector<wait_operation*> carriers_;
    std::vector<timer_core*> users_;
    std::vector<test_wait*> log_;
    std::size_t armings_ = 0;
    bool over_ = false;
    bool in_turn_ = false;
    bool held_up_ = false;
    bool closed_ = false;
    bool broken_ = false;
    bool released_ = false;
};

} // namespace shard_bench

#endif // PAWL_TEST_SERVICE_SHARD_BENCH_HPP
