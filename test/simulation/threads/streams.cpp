// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/streams.hpp"

#include "simulation/memory_layer.hpp"
#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/error.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace simulation::threads {

namespace {

using side = memory_layer::side;
using stack_type = pawl::timeout_stream<memory_layer>;

constexpr std::array sides{memory_layer::reading, memory_layer::writing};
constexpr std::int64_t never = INT64_MAX;

enum class who : std::uint8_t { limit, peer, caller };

} // namespace

struct streams::operation final : told_once {
    operation(stream& s, side d, std::function<void()> f)
        : of(s), direction(d), then(std::move(f)) {}

    void invoked(const error_code& ec, std::uint64_t size) override;
    void dropped() override;
    [[noreturn]] void broken(const std::string& what) const override;

    [[nodiscard]] bool by_limit() const noexcept { return ended && !refused && by == who::limit; }

    stream& of;
    const side direction;
    const std::function<void()> then;
    asio::cancellation_signal signal;
    std::int64_t limit = never; ///< its own limit
    bool refused = false;       ///< it was not started
    bool expired = false;       ///< a limit that applies was reached
    bool ended = false;         ///< the layer has ended it, or it was refused
    who by{};
    error_code result; ///< the result of the layer, or the refusal
    std::int64_t ended_at = 0;
};

struct streams::stream final : memory_layer::observer {
    stream(const company& c, arena& on, std::optional<asio::strand<asio::any_io_executor>> s)
        : all(c), a(on), strand(std::move(s)),
          ex(strand ? asio::any_io_executor(*strand) : on.native), stack(std::in_place, ex),
          layer(&stack->socket().peer()) {
        layer->watch = this;
    }

    // --- in the strand -------------------------------------------------------------------------

    /// A function or a handler starts or ends.
    void enter() {
        if (!here())
            broken("a handler is not invoked on its executor");
        if (std::exchange(inside, true))
            broken("two handlers run in one strand");
    }
    void exit() { inside = false; }

    void act(random_source& random) {
        if (closing_down || !stack)
            return;
        enter();
        step(random);
        exit();
    }

    void step(random_source& random) {
        note(steady_now());
        switch (random.below(24)) {
        case 0:
        case 1:
            return set_limits(random);
        case 2:
        case 3:
            return set_total(random);
        case 4:
            return set_handshake();
        case 5:
            return by_caller([this] { stack->cancel(); });
        case 6:
            return random.one_in(3) ? close() : void();
        case 7:
            return random.one_in(3) ? destroy() : void();
        case 8:
            return move(random.one_in(2));
        case 9:
            return emit(random);
        case 10:
        case 11:
        case 12:
        case 13:
            return serve(random.one_of({memory_layer::reading, memory_layer::writing}),
                         random.one_in(4) ? asio::error::connection_reset : error_code());
        default:
            return start(random);
        }
    }

    void set_limits(random_source& random) {
        const auto any = [&] { return random.one_in(2) ? never : all.duration(random); };
        const std::array<std::int64_t, 4> next{any(), any(), any(), any()};
        const auto as_limit = [](std::int64_t d) { return std::chrono::nanoseconds(d); };
        limits.read = as_limit(next[0]);
        limits.write = as_limit(next[1]);
        limits.idle = as_limit(next[2]);
        limits.handshake = as_limit(next[3]);
        limits.action = random.one_in(3) ? pawl::on_limit::close : pawl::on_limit::cancel;
        limits.report =
            random.one_in(2) ? pawl::limit_error::timed_out : pawl::limit_error::beast_timeout;
        const std::int64_t now = steady_now();
        for (operation* const op : current) {
            if (op)
                op->limit = after(now, own_limit(op->direction));
        }
        if (next[2] == never) {
            moved = never;
            lapsed = false;
        } else if (moved == never) {
            moved = now;
        }
        stack->set_limits(limits);
    }

    void set_total(random_source& random) {
        const std::int64_t d = all.duration(random);
        total_by = total = steady_now() + d;
        switch (random.below(3)) {
        case 0:
            stack->expires_after(std::chrono::nanoseconds(d));
            total_by = steady_now() + d;
            return;
        case 1:
            return stack->expires_at(
                std::chrono::steady_clock::time_point(std::chrono::nanoseconds(total)));
        default:
            total_by = total = never;
            return stack->expires_never();
        }
    }

    void set_handshake() {
        if (guard)
            return guard.reset();
        handshake = after(steady_now(), limits.handshake);
        guard.emplace(stack->limit_handshake());
        handshake_by = after(steady_now(), limits.handshake);
    }

    void close() {
        by_caller([this] { stack->close(); });
        gone.store(true, std::memory_order_relaxed); // a hint
        check_closed();
    }

    void destroy() {
        by_caller([this] { stack.reset(); });
        guard.reset();                               // may outlive the stream
        gone.store(true, std::memory_order_relaxed); // a hint
        check_closed();
    }

    void check_closed() const {
        for (const operation* const op : current) {
            if (op && !op->ended)
                broken("a stream is closed, and an operation goes on");
        }
    }

    void move(bool assign) {
        stack_type other = assign ? stack_type(ex) : std::move(*stack);
        if (assign)
            other = std::move(*stack);
        stack.emplace(std::move(other));
    }

    /// The signal of one of the last operations, which may be over.
    void emit(random_source& random) {
        if (operations.empty())
            return;
        const std::size_t back =
            std::min(operations.size(), static_cast<std::size_t>(1 + random.below(3)));
        emitting = &operations[operations.size() - back];
        by_caller([&] {
            emitting->signal.emit(
                random.one_of({asio::cancellation_type::terminal, asio::cancellation_type::partial,
                               asio::cancellation_type::total}));
        });
        emitting = nullptr;
    }

    template <class Function>
    void by_caller(Function f) {
        acting = who::caller;
        f();
        acting = who::limit;
    }

    void serve(side d, const error_code& ec) {
        acting = who::peer;
        layer->end(d, ec, ec ? 0 : 1);
        acting = who::limit;
    }

    void start(random_source& random) {
        const side d = random.one_of({memory_layer::reading, memory_layer::writing});
        if (current[d])
            return; // one operation at a time
        operation& op = operations.emplace_back(*this, d, all.then(random));
        const bool listens = random.one_in(2);
        const std::int64_t before = steady_now();
        note(before);
        const bool must = (closed_by_limit && !layer->open) || total_by <= before ||
                          (guard && handshake_by <= before);
        op.limit = after(before, own_limit(d));
        current[d] = &op;
        completion handler(op, 0, listens ? op.signal.slot() : asio::cancellation_slot());
        switch (random.below(4)) {
        case 0:
            begin(d, asio::bind_executor(step_away<flavour::unknown>(), std::move(handler)));
            break;
        case 1:
            begin(d, asio::bind_executor(step_away<flavour::copying>(), std::move(handler)));
            break;
        default:
            begin(d, std::move(handler));
            break;
        }
        if (op.ended || layer->pending[d]) {
            if (must)
                broken("an operation is started, and a limit for it has been reached");
            lapsed = false; // it would have been refused
            closed_by_limit = false;
            return;
        }
        op.refused = op.ended = true;
        op.result = report();
        const bool may = must || expired_for_all(steady_now());
        if (!may && !lapsed && !all.hastens)
            broken("P1: an operation is refused, and no limit has been reached");
        if (!may) { // by that of idleness, which restarts
            lapsed = false;
            moved = before;
        }
    }

    template <flavour F>
    [[nodiscard]] asio::any_io_executor step_away() const {
        return foreign_executor<F>(ex, true);
    }

    template <class Handler>
    void begin(side d, Handler handler) {
        const asio::mutable_buffer buffer = asio::buffer(data[d]);
        if (d == memory_layer::reading)
            stack->async_read_some(buffer, std::move(handler));
        else
            stack->async_write_some(asio::const_buffer(buffer), std::move(handler));
    }

    /// The last function.
    void finish(ending how) {
        if (!stack || std::exchange(closing_down, true))
            return;
        enter();
        note(steady_now());
        if (how == ending::destroy)
            destroy();
        else if (how == ending::expiry)
            serve_endless();
        else
            close();
        exit();
    }

    void serve_endless() {
        const bool all_end =
            total != never || (guard && handshake != never) || limits.idle != limits.none;
        for (const side d : sides) {
            if (!layer->pending[d] || all_end || current[d]->limit != never)
                continue;
            const side other =
                d == memory_layer::reading ? memory_layer::writing : memory_layer::reading;
            if (limits.action == pawl::on_limit::close && layer->pending[other] &&
                current[other]->limit != never)
                continue; // it ends both
            serve(d, {});
        }
    }

    // --- the stream's calls to its layer ---------------------------------------------------------

    void ends(side d, const error_code& ec) override {
        operation* const op = current[d];
        if (!op || op->ended)
            broken("an operation is ended that is over");
        if (emitting && emitting != op)
            broken("the signal of an operation ends another one");
        op->ended = true;
        op->by = acting;
        op->result = ec;
        op->ended_at = steady_now();
        if (ec == asio::error::bad_descriptor) {
            op->by = who::caller; // closed the layer before
        } else if (acting == who::limit) {
            if (!here())
                broken("a limit acts outside of the strand");
            if (ec != asio::error::operation_aborted)
                broken("a limit ends an operation with " + ec.message());
            if (!all.hastens && !reached(*op, op->ended_at))
                broken("P1: a limit is early");
            idled = !all.hastens && !reached_but_idle(*op, op->ended_at);
        }
    }

    void closes() override {
        closed_by_limit = acting == who::limit;
        if (!layer->open || acting != who::limit)
            return;
        if (!here())
            broken("a limit acts outside of the strand");
        if (limits.action != pawl::on_limit::close)
            broken("a limit closes the layer that is to cancel only");
        const std::int64_t now = steady_now();
        if (all.hastens || expired_for_all(now) || idle_for_long(now))
            return;
        if (std::none_of(current.begin(), current.end(),
                         [&](const operation* op) { return op && op->limit <= now; }))
            broken("P1: a limit closes the layer, and is early");
    }

    // --- the model -----------------------------------------------------------------------------

    [[nodiscard]] static std::int64_t after(std::int64_t now, pawl::stream_limits::duration d) {
        return d == pawl::stream_limits::none ? never : now + d.count();
    }
    [[nodiscard]] pawl::stream_limits::duration own_limit(side d) const {
        return d == memory_layer::reading ? limits.read : limits.write;
    }
    [[nodiscard]] bool expired_for_all(std::int64_t now) const {
        return total <= now || (guard && handshake <= now);
    }
    [[nodiscard]] bool idle_for_long(std::int64_t now) const {
        return moved != never && after(moved, limits.idle) <= now;
    }

    /// Whether a limit that applies to the operation, other than that of idleness, has been
    /// reached.
    [[nodiscard]] bool reached_but_idle(const operation& op, std::int64_t now) const {
        if (expired_for_all(now) || op.limit <= now)
            return true;
        return limits.action == pawl::on_limit::close &&
               std::any_of(current.begin(), current.end(),
                           [now](const operation* each) { return each && each->limit <= now; });
    }
    [[nodiscard]] bool reached(const operation& op, std::int64_t now) const {
        return idle_for_long(now) || reached_but_idle(op, now);
    }

    /// Limits are about to change. Limits that have been reached may already have had effects.
    void note(std::int64_t now) {
        for (operation* const op : current) {
            if (op)
                op->expired = op->expired || reached(*op, now);
        }
        if (std::exchange(idled, false) && moved != never) { // idleness restarted then
            moved = std::max(moved, after(moved, limits.idle));
            lapsed = false;
        }
        lapsed = lapsed || idle_for_long(now);
    }

    [[nodiscard]] error_code report() const {
        if (limits.report == pawl::limit_error::timed_out)
            return pawl::error::timed_out;
        return boost::beast::error::timeout;
    }

    void told(const operation& op, const error_code& ec, std::uint64_t size) {
        if (current[op.direction] != &op)
            broken("P3: a handler is invoked a second time");
        if (!op.ended)
            broken("a handler is invoked before its operation has ended");
        note(steady_now());
        if (size != (ec ? 0 : 1))
            broken("a handler is told of " + std::to_string(size) + " bytes");
        const error_code right = op.by_limit() ? report() : op.result;
        // A limit may also have been reached before the handler was invoked.
        const bool as_well =
            !op.refused && op.result && ec == report() && (op.expired || all.hastens);
        if (ec != right && !as_well)
            broken("a handler is told " + ec.message() + ", and not " + right.message());
        if (!ec && moved != never)
            moved = std::max(moved, op.ended_at);
        current[op.direction] = nullptr;
    }

    [[nodiscard]] bool here() const {
        return strand ? strand->running_in_this_thread() : a.runs_here();
    }

    [[noreturn]] void broken(const std::string& what) const {
        const std::int64_t now = steady_now();
        const auto in = [&](std::int64_t t) {
            return t == never ? std::string("never") : std::to_string(t - now) + " ns";
        };
        std::string text = "stream: " + what + "\nlimits: total in " + in(total) + ", idle in " +
                           in(moved == never ? never : after(moved, limits.idle)) +
                           ", handshake in " + in(guard ? handshake : never) +
                           (limits.action == pawl::on_limit::close ? ", close" : ", cancel") +
                           (strand ? "" : ", without a strand") + (lapsed ? ", lapsed" : "") +
                           (closed_by_limit ? ", closed by a limit" : "");
        for (const operation* const op : current) {
            if (op)
                text +=
                    std::string("\n") +
                    (op->direction == memory_layer::reading ? "read" : "write") + ": limit in " +
                    in(op->limit) + (op->refused ? ", refused" : "") +
                    (op->expired ? ", expired" : "") +
                    (op->ended ? ", ended by " + name_of(op->by) + " with " + op->result.message()
                               : "");
        }
        fail(text);
    }

    // --- by one thread, when all others have ended -------------------------------------------------

    void leave() {
        acting = who::caller;
        stack.reset();
        guard.reset();
        ex = nullptr;
        strand.reset();
    }

    const company& all;
    arena& a;
    std::optional<asio::strand<asio::any_io_executor>> strand; ///< none if one thread runs all
    asio::any_io_executor ex;
    std::optional<stack_type> stack;
    memory_layer::state* layer; ///< lives as long as the stream
    std::array<char[1], 2> data{};
    std::atomic<bool> gone{false}; ///< it is closed, or destroyed
    bool inside = false;           ///< not atomic, so that ThreadSanitizer sees races
    bool closing_down = false;

    who acting = who::limit; ///< the party that calls the stream or its layer
    pawl::stream_limits limits;
    std::optional<stack_type::handshake_scope> guard;
    std::int64_t total = never;
    std::int64_t total_by = never;     ///< latest time: the stream read the clock before
    std::int64_t handshake = never;    ///< while the guard lives
    std::int64_t handshake_by = never; ///< likewise
    std::int64_t moved = never;        ///< start of idleness, if it is limited
    bool lapsed = false;               ///< idle for too long: may refuse the next operation
    bool idled = false;                ///< idleness has ended an operation
    bool closed_by_limit = false;
    std::deque<operation> operations;
    std::array<operation*, 2> current{}; ///< operations whose handlers have not run
    operation* emitting = nullptr;       ///< its signal is being emitted
};

void streams::operation::invoked(const error_code& ec, std::uint64_t size) {
    of.enter();
    of.told(*this, ec, size);
    of.exit();
    run_handler({&of.a, false, false}, then);
}

void streams::operation::broken(const std::string& what) const { of.broken(what); }

void streams::operation::dropped() {
    if (!of.all.abandoned)
        of.broken("P3: a handler is destroyed uncalled");
}

streams::streams(company c) : feature(std::move(c), "streams") {}
streams::~streams() = default;

streams::stream& streams::make(random_source& random, arena& a) {
    std::optional<asio::strand<asio::any_io_executor>> strand;
    if (a.threads > 1 || random.one_in(2))
        strand.emplace(a.native);
    auto made = std::make_unique<stream>(company_, a, std::move(strand));
    const std::scoped_lock lock(mutex_);
    return *streams_.emplace_back(std::move(made));
}

void streams::operate(random_source& random, arena& a) {
    place& p = random.one_of(places_);
    const std::scoped_lock lock(p.mutex);
    if (p.closed)
        return;
    if (!p.last || p.last->gone.load(std::memory_order_relaxed) || // a hint
        random.one_in(16))
        p.last = &make(random, a);
    stream& s = *p.last;
    const int calls = 1 + random.below(4);
    for (int i = 0; i < calls; ++i) {
        const auto act = [&s, seed = random.next()] {
            random_source own(seed);
            s.act(own);
        };
        if (random.one_in(4))
            asio::dispatch(s.ex, act);
        else
            asio::post(s.ex, act);
    }
}

void streams::close(ending how) {
    for (place& p : places_) {
        const std::scoped_lock lock(p.mutex);
        p.closed = true;
    }
    if (how == ending::abandon)
        return;
    for (const auto& each : streams_) // no thread adds to them any more
        asio::post(each->ex, [&s = *each, how] { s.finish(how); });
}

void streams::leave() {
    for (const auto& each : streams_)
        each->leave();
}

tally streams::check(const settings&) {
    tally t{.each_time = streams_.size()}; // each has one wait, without a handler
    for (const auto& each : streams_) {
        each->leave();
        t.waits += each->operations.size();
        for (const operation& op : each->operations) {
            if (!op.over())
                each->broken("P3, P9: a handler was neither invoked nor destroyed");
        }
    }
    return t;
}

} // namespace simulation::threads
