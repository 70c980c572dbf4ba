// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/limits.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/deadline.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace simulation::threads {

namespace {

std::int64_t after(std::int64_t d) { return steady_now() + std::max<std::int64_t>(d, 0); }

} // namespace

struct limits::operation final : told_once {
    enum class who { nobody, limit, caller };
    enum class obedience { at_once, later, never };
    enum class form { duration, point, deadline };
    using handler_type = asio::any_completion_handler<void(error_code)>;

    /// The argument of async_initiate().
    struct initiation {
        using executor_type = asio::any_io_executor;
        executor_type get_executor() const noexcept { return *self->a.strand; }

        void operator()(handler_type handler) const {
            if (self->must_not_start)
                self->broken("an operation is started, and its deadline has passed");
            self->starting = self->initiated = true;
            self->sleep();
            self->work = asio::prefer(self->bound.ex, asio::execution::outstanding_work.tracked);
            auto slot = asio::get_associated_cancellation_slot(handler);
            handler.swap(self->pending); // its move assignment recurses forever in Boost 1.81
            if (slot.is_connected())
                slot.assign([self = self](asio::cancellation_type) { self->signalled(); });
            self->sleep();
            self->starting = false;
        }

        operation* self;
    };

    operation(const company& c, arena& on) : all(c), a(on) {}

    // --- by the thread that starts it ----------------------------------------------------------

    void start() {
        started = true;
        limit_due = how == form::duration ? after(limit) : steady_now() + limit;
        if (wait)
            wait_due = after(length);
        if (wait)
            wait->expires_after(std::chrono::nanoseconds(length));
        completion handler(*this, 0, listens ? signal.slot() : asio::cancellation_slot());
        if (!wait)
            begin(asio::bind_executor(bound.ex, std::move(handler)), [this](auto token) {
                asio::async_initiate<decltype(token), void(error_code)>(initiation{this}, token);
            });
        else if (clock)
            begin(asio::bind_executor(bound.ex, std::move(handler)),
                  [this](auto token) { wait->async_wait(std::move(token)); });
        else
            begin(std::move(handler), [this](auto token) { wait->async_wait(std::move(token)); });
    }

    template <class Handler, class Launch>
    void begin(Handler handler, Launch launch) {
        using time_point = std::chrono::steady_clock::time_point;
        const std::chrono::nanoseconds d(limit);
        const time_point t{std::chrono::nanoseconds(limit_due)};
        switch (how) {
        case form::duration:
            if (reports)
                return begin(pawl::timeout, d, std::move(handler), launch);
            return begin(pawl::cancel_after, d, std::move(handler), launch);
        case form::point:
            if (reports)
                return begin(pawl::timeout_at, t, std::move(handler), launch);
            return begin(pawl::cancel_at, t, std::move(handler), launch);
        case form::deadline:
            must_not_start = limit <= 0;
            return begin(pawl::timeout_at, pawl::deadline(t), std::move(handler), launch);
        }
    }
    template <class Function, class Time, class Handler, class Launch>
    void begin(const Function& with_limit, const Time& time, Handler handler, Launch& launch) {
        if (clock)
            launch(with_limit(*clock, time, std::move(handler)));
        else
            launch(with_limit(time, std::move(handler)));
    }

    /// The limit may be reached in the meantime.
    void sleep() const {
        if (pause != 0)
            std::this_thread::sleep_for(std::chrono::microseconds(pause));
    }

    // --- in the strand -------------------------------------------------------------------------

    /// Ends it, unless it has already ended.
    void end(bool posts, const error_code& ec) {
        if (!pending)
            return;
        result = ec;
        auto handler = std::move(pending);
        const auto last = std::move(work);
        if (!posts) {
            ended = true;
            return std::move(handler)(ec);
        }
        asio::post(bound.ex, [this, ec, h = std::move(handler)]() mutable {
            ended = true;
            std::move(h)(ec);
        });
    }

    /// In the cancellation slot of an operation.
    void signalled() {
        if (ended)
            broken("an operation that has ended is cancelled");
        if (starting)
            broken("it is emitted while the operation is being started");
        if (!bound.at.here() && !all.delivers) // a delivered handler runs where its context ends
            broken("it is emitted outside of the strand");
        if (!emitting) {
            if (std::exchange(limited, true))
                broken("it is emitted twice");
            if (lifted && reports)
                broken("it is emitted, and was lifted");
            if (!all.hastens && !all.delivers && !lifted && steady_now() < limit_due)
                broken("P1: it is early");
        }
        if (!pending)
            return; // its end is in flight
        if (first == who::nobody)
            first = emitting ? who::caller : who::limit;
        if (obeys != obedience::never)
            end(obeys == obedience::later, asio::error::operation_aborted);
    }

    /// The caller's signal.
    void emit(asio::cancellation_type type) {
        emitting = true;
        signal.emit(type);
        emitting = false;
        // The limit can only have been first if it is so early that signalled() notices it.
        if (listens && !over() && steady_now() < limit_due)
            caller_first = true;
    }

    void cancel_wait() { cancelled = cancelled || (wait && wait->cancel() != 0); }
    void move_wait(std::int64_t d) {
        const std::int64_t due = after(d);
        if (wait && wait->rearm_after(std::chrono::nanoseconds(d)) != 0)
            wait_due = due;
    }
    void move_limit(std::int64_t d) {
        const std::int64_t due = after(d);
        if (clock && clock->rearm_after(std::chrono::nanoseconds(d)) != 0)
            limit_due = due;
    }
    /// Lifts a limit of pawl::timeout, and reaches one of pawl::cancel_after.
    void lift() { lifted = (clock && clock->cancel() != 0) || lifted; }

    void invoked(const error_code& ec, std::uint64_t) override {
        const std::int64_t now = steady_now();
        if (!bound.at.here() && !all.delivers)
            broken("a handler is not invoked on its executor");
        if (waits)
            check_wait(ec, now);
        else
            check_told(ec);
        wait.reset();
        clock.reset();
        run_handler(bound.at, then);
    }

    void dropped() override {
        if (!all.abandoned)
            broken("P3: a handler is destroyed uncalled");
    }

    void check_told(const error_code& ec) const {
        if (!initiated && how == form::deadline) {
            if (ec != pawl::error::timed_out || steady_now() < limit_due)
                broken("an operation is not started, and told " + ec.message());
            return;
        }
        if (!ended)
            broken("a handler is invoked before its operation has ended");
        const bool by_limit =
            reports && first == who::limit && result == asio::error::operation_aborted;
        const error_code right = by_limit ? make_error_code(pawl::error::timed_out) : result;
        const bool hasted = by_limit && all.hastens && ec == hasty;
        // Then the limit may have come first, with its signal in flight.
        const bool either = copies && reports && first == who::caller &&
                            result == asio::error::operation_aborted &&
                            (ec == hasty ? all.hastens : ec == pawl::error::timed_out) &&
                            (all.hastens || steady_now() >= limit_due);
        if (ec != right && !hasted && !either)
            broken("a handler is told " + ec.message() + ", and not " + right.message());
    }

    void check_wait(const error_code& ec, std::int64_t now) const {
        if (must_not_start && ec != pawl::error::timed_out)
            broken("its deadline had passed, and it is told " + ec.message());
        const bool limit_may = all.hastens || (lifted ? !reports : now >= limit_due);
        if (!ec) {
            if (now < wait_due)
                broken("P1: a wait under a limit is early");
        } else if (ec == pawl::error::timed_out) {
            if (!reports || !limit_may || (caller_first && !all.hastens))
                broken("it is told timed_out");
        } else if (ec == asio::error::operation_aborted) {
            if (!cancelled && !caller_first && !asked && (reports || !limit_may) && !all.delivers)
                broken("it is told operation_aborted, and nobody has cancelled it");
        } else if (ec != hasty || !all.hastens) {
            broken("it is told " + ec.message());
        }
    }

    [[noreturn]] void broken(const std::string& what) const override {
        fail("limit: " + what + "\nof " + std::to_string(limit) + " ns, " +
             (reports ? "timeout" : "cancel") + " by a " + name_of(how) +
             (clock ? " on a timer" : "") +
             (waits ? ", on a wait of " + std::to_string(length) + " ns" : "") + ", obeys " +
             name_of(obeys) + ", first " + name_of(first) + (copies ? ", copying" : "") +
             (asked ? ", asked" : "") + (cancelled ? ", cancelled" : "") +
             (lifted ? ", lifted" : "") + (limited ? ", limited" : "") + ", due in " +
             std::to_string(limit_due - steady_now()) + " ns");
    }

    const company& all;
    arena& a;
    destination bound{};
    bool reports = false; ///< pawl::timeout, or else pawl::cancel_after
    form how{};           ///< the limit is given as a duration, or as a point in time
    bool listens = false; ///< to the caller's signal
    bool copies = false;  ///< its executor takes one more step
    bool waits = false;   ///< it is a wait on a timer
    obedience obeys{};
    std::int64_t limit = 0, length = 0;
    std::function<void()> then;

    std::optional<pawl::steady_timer> wait, clock; ///< the operation; the limit
    handler_type pending;
    asio::any_io_executor work;
    asio::cancellation_signal signal;
    bool started = false, starting = false, initiated = false;
    bool must_not_start = false;
    int pause = 0;                            ///< during its start, in microseconds
    std::int64_t limit_due = 0, wait_due = 0; ///< earliest times
    bool emitting = false, limited = false, lifted = false, ended = false;
    bool asked = false;     ///< the caller's signal was emitted
    bool cancelled = false; ///< a member function of its timer cancelled the wait
    bool caller_first = false;
    who first{};
    error_code result;
};

limits::limits(company c) : feature(std::move(c), "limits") {}
limits::~limits() = default;

limits::operation& limits::make(random_source& random, arena& a) {
    const std::scoped_lock lock(mutex_);
    operation& op = *operations_.emplace_back(std::make_unique<operation>(company_, a));
    const asio::any_io_executor strand = *a.strand;
    op.bound = {strand, {&a, true, false}};
    op.reports = random.one_in(2);
    op.how = static_cast<operation::form>(
        random.one_of(op.reports ? std::initializer_list<int>{0, 0, 1, 1, 2}
                                 : std::initializer_list<int>{0, 0, 1}));
    op.listens = random.one_in(2);
    op.obeys = static_cast<operation::obedience>(random.one_of({0, 0, 1, 1, 2}));
    op.limit = company_.duration(random);
    op.length = company_.duration(random);
    op.then = company_.then(random);
    if (random.one_in(4))
        op.pause = random.below(200);
    op.waits = random.one_in(3);
    if (op.waits)
        op.wait.emplace(strand);
    if (random.one_in(2))
        op.clock.emplace(strand);
    if (op.wait && !op.clock)
        return op; // the operation of the timer
    switch (random.below(4)) {
    case 0:
        op.bound.ex = foreign_executor<flavour::unknown>(strand, true);
        break;
    case 1:
        op.bound.ex = foreign_executor<flavour::copying>(strand, true);
        op.copies = true;
        break;
    default:
        break;
    }
    return op;
}

void limits::operate(random_source& random, arena& a) {
    place& p = random.one_of(places_);
    const std::scoped_lock lock(p.mutex);
    if (p.closed)
        return;
    if (!p.last || p.last->over() || random.one_in(4)) {
        operation& op = *(p.last = &make(random, a));
        if (!in_handler && random.one_in(2)) // in the strand it might invoke the handler here
            op.start();
        else
            asio::post(*a.strand, [&op] { op.start(); });
        return;
    }
    operation& op = *p.last;
    const auto later = [&](auto f) {
        asio::post(*op.a.strand, [&op, f] {
            if (!op.over())
                f(op);
        });
    };
    const std::int64_t d = company_.duration(random);
    switch (random.below(7)) {
    case 0:
    case 1:
        later([posts = random.one_in(2),
               ec = random.one_in(2) ? error_code() : error_code(asio::error::connection_reset)](
                  operation& o) { o.end(posts, ec); });
        break;
    case 2:
        later([](operation& o) { o.cancel_wait(); });
        break;
    case 3:
        later([d](operation& o) { o.move_wait(d); });
        break;
    case 4:
        later([d](operation& o) { o.move_limit(d); });
        break;
    case 5:
        later([](operation& o) { o.lift(); });
        break;
    default:
        asio::post(*op.a.strand, [&op, type = random.one_of({asio::cancellation_type::terminal,
                                                             asio::cancellation_type::partial,
                                                             asio::cancellation_type::total})] {
            op.asked = op.asked || op.listens;
            op.emit(type); // also after its end
        });
        break;
    }
}

void limits::close(ending how) {
    for (place& p : places_) {
        const std::scoped_lock lock(p.mutex);
        p.closed = true;
    }
    if (how == ending::abandon)
        return;
    const bool all = how != ending::expiry;
    for (const auto& each : operations_) { // no thread adds to them any more
        operation& op = *each;
        if (!op.over())
            asio::post(*op.a.strand, [&op, all] {
                if (all)
                    op.cancel_wait();
                if (all || op.lifted || op.obeys == operation::obedience::never)
                    op.end(false, {});
            });
    }
}

void limits::leave() {
    for (const auto& each : operations_) {
        operation& op = *each;
        op.cancelled = true;
        op.wait.reset();
        op.clock.reset();
        op.pending = nullptr;
        op.work = nullptr;
        op.bound.ex = nullptr;
    }
}

tally limits::check(const settings&) {
    for (const auto& op : operations_) {
        op->bound.ex = nullptr; // the strand must not outlive its context
        if (!op->over() && (op->started || !company_.abandoned))
            op->broken("P3, P9: a handler was neither invoked nor destroyed");
    }
    tally t{.waits = operations_.size()};
    t.perhaps = 2 * t.waits; // the operations do not report each of them
    return t;
}

} // namespace simulation::threads
