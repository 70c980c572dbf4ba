// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/limits.hpp"

#include "simulation/report.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace simulation {

namespace {

using asio::awaitable, asio::use_awaitable;
using order = std::array<std::size_t, 2>; ///< in which the two operations of a race have ended
using channel = asio::experimental::channel<void(error_code)>;

std::int64_t after(std::int64_t d) {
    return saturating_add(virtual_time::steady, std::max<std::int64_t>(d, 0));
}

bool is_coroutine(shape s) { return s >= shape::coroutine; }

bool is_cancellation(const error_code& ec) {
    return ec == asio::error::operation_aborted ||
           ec == asio::experimental::error::channel_cancelled;
}

error_code code_of(const std::exception_ptr& e) {
    try {
        if (e)
            std::rethrow_exception(e);
    } catch (const boost::system::system_error& error) {
        return error.code();
    } catch (const asio::multiple_exceptions& error) {
        return code_of(error.first_exception());
    }
    return {};
}

/// A handler for other results, which `f` turns into those of a completion.
template <class F>
struct adapted {
    using cancellation_slot_type = asio::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept {
        return inner.get_cancellation_slot();
    }
    template <class... Args>
    void operator()(Args&&... args) {
        const auto [ec, number] = f(std::forward<Args>(args)...);
        inner(ec, number);
    }
    completion inner;
    F f;
};
template <class F>
adapted(completion, F) -> adapted<F>;

using results = std::pair<error_code, std::uint64_t>;

} // namespace

struct limits::operation {
    enum class who { nobody, limit, other, either };

    struct any_handler {
        virtual ~any_handler() = default;
        virtual void call(const error_code& ec) = 0;
        virtual void post(const error_code& ec) = 0;
    };
    template <class Handler>
    struct some_handler final : any_handler {
        some_handler(limits& l, int i, Handler&& h, const asio::any_io_executor& ex)
            : all(&l), id(i), handler(std::move(h)),
              work(asio::get_associated_executor(handler, ex)) {}
        void call(const error_code& ec) override {
            struct guard {
                int& calls;
                ~guard() { --calls; }
            } const leave{++all->upcalls_};
            all->find(id)->ended = true;
            std::move(handler)(ec);
        }
        void post(const error_code& ec) override {
            asio::post(work.get_executor(),
                       [a = all, i = id, h = std::move(handler), ec]() mutable {
                           a->find(i)->ended = true;
                           std::move(h)(ec);
                       });
        }
        limits* all;
        int id;
        Handler handler;
        asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>> work;
    };

    /// The argument of async_initiate().
    struct initiation {
        using executor_type = asio::any_io_executor;
        executor_type get_executor() const noexcept { return ex; }

        template <class Handler>
        void operator()(Handler&& handler) const {
            self->find(id)->begun = true;
            if (operation* const o = self->find(id); o->obeys == obedience::channel) {
                o->from.emplace(ex, 0);
                o->from->async_receive(std::forward<Handler>(handler));
                return;
            }
            auto slot = asio::get_associated_cancellation_slot(handler);
            auto kept = std::make_unique<some_handler<std::decay_t<Handler>>>(
                *self, id, std::forward<Handler>(handler), ex);
            operation* const op = self->find(id);
            op->pending = std::move(kept);
            if (slot.is_connected())
                slot.assign([self = self, id = id](asio::cancellation_type_t type) {
                    operation* const o = self->find(id);
                    if (o && type != asio::cancellation_type::none)
                        o->signalled(*self);
                });
            ++self->upcalls_; // the context must exist until it returns
            struct guard {
                limits* self;
                int id;
                ~guard() {
                    --self->upcalls_;
                    if (operation* const still = self->find(id))
                        still->starting = false;
                }
            } const leave{self, id};
            op->starting = true;
            // While the initiating function runs.
            self->world_.go_on(op->what->dying, op->what->in == shape::handler);
        }

        limits* self;
        int id;
        asio::any_io_executor ex;
    };

    [[nodiscard]] bool hastened(const limits& all) const {
        return all.world_.ended_early(context) != ended_early;
    }
    /// Whether the outcome shows who was first. Other shapes pass cancellations on, perhaps later.
    [[nodiscard]] bool is_plain() const {
        return what->in == shape::handler && obeys != obedience::channel;
    }
    /// Whether the end of `more` cancels the operation.
    [[nodiscard]] bool is_cut() const {
        return what->in != shape::handler && what->in != shape::composed &&
               what->in != shape::coroutine && what->in != shape::both;
    }
    /// Who may have asked the operation to end by now.
    [[nodiscard]] who suspects(const limits& all) const {
        const std::int64_t now = virtual_time::steady;
        const bool limit = expiry <= now || hastened(all);
        const bool other = asked || abandoned || (is_cut() && more_due <= now) || hastened(all);
        return limit ? other ? who::either : who::limit : other ? who::other : who::nobody;
    }

    /// In the cancellation slot of the operation.
    void signalled(limits& all) {
        if (ended && what->in == shape::raced_under)
            return; // a group cancels all that were in it
        if (ended)
            fail("limit: an operation that has ended is cancelled");
        who by = suspects(all);
        if (is_plain())
            by = !by_caller                       ? who::limit
                 : virtual_time::steady >= expiry ? who::either
                                                  : who::other;
        if (by == who::nobody ||
            (by == who::limit && virtual_time::steady < expiry && !hastened(all)))
            fail("P1: a limit is early: it was due at " + std::to_string(expiry));
        if (by == who::limit) {
            if (std::exchange(limited, true))
                fail("limit: it is emitted twice");
            if (starting)
                fail("limit: it is emitted while the operation is being started");
            const bool anywhere = what->bound && what->executor == flavour::immediate;
            if (!anywhere && !all.world_.running(home) && !all.world_.dying(home) &&
                !all.world_.dying(context)) // it may be delivered
                fail("limit: it is emitted while its context does not run");
        }
        if (!pending)
            return; // its end is in flight
        if (first == who::nobody)
            first = by;
        if (obeys == obedience::ignores)
            return;
        const auto handler = std::move(pending);
        const error_code ec = result = asio::error::operation_aborted;
        if (obeys == obedience::inline_) // it may have been destroyed
            handler->call(ec);
        else
            handler->post(ec);
    }

    // --- its surroundings ----------------------------------------------------------------------

    template <class Token>
    auto launch(limits& all, Token token) {
        expiry = after(what->time);
        return asio::async_initiate<Token, void(error_code)>(
            initiation{&all, id, all.world_.executor(context, flavour::native)}, token);
    }

    /// @tparam Launch launches an operation with a token.
    template <class Launch, class Token>
    auto with_limit(Launch launch, Token token) {
        const std::chrono::nanoseconds d(what->time);
        if (under == limit::cancel_after)
            return launch(pawl::cancel_after(d, std::move(token)));
        return launch(pawl::timeout(d, std::move(token)));
    }

    static awaitable<void> run(limits& all, int id) {
        operation* o = all.find(id);
        if (o->what->in == shape::spawned)
            o->more_due = after(o->what->more);
        const auto [ec] =
            co_await o->with_limit([&](auto token) { return o->launch(all, std::move(token)); },
                                   asio::as_tuple(use_awaitable));
        o = all.find(id);
        all.judge(*o, ec);
        o->told = ec;
        if (ec)
            throw boost::system::system_error(ec);
    }

    static awaitable<void> wait(limits& all, int id) {
        operation* const o = all.find(id);
        o->more_due = after(o->what->more);
        pawl::steady_timer timer(co_await asio::this_coro::executor,
                                 std::chrono::nanoseconds(o->what->more));
        co_await timer.async_wait(use_awaitable);
        all.find(id)->more_over = true;
    }

    static awaitable<void> run_awaited(limits& all, int id) {
        operation* const o = all.find(id);
        o->more_due = after(o->what->more);
        co_await pawl::timeout(std::chrono::nanoseconds(o->what->more), run(all, id));
    }

    static awaitable<std::size_t> run_either(limits& all, int id) {
        using namespace asio::experimental::awaitable_operators;
        co_return (co_await (run(all, id) || wait(all, id))).index();
    }

    static awaitable<void> run_both(limits& all, int id) {
        using namespace asio::experimental::awaitable_operators;
        co_await (run(all, id) && wait(all, id));
    }

    /// async_compose with two steps.
    struct composition {
        template <class Self>
        void operator()(Self& self) {
            op->launch(*all, std::move(self));
        }
        template <class Self>
        void operator()(Self& self, const error_code& ec) {
            self.complete(ec);
        }
        limits* all;
        operation* op;
    };

    template <class Operation>
    auto race(limits& all, Operation first_one) {
        more_due = after(what->more);
        peer.emplace(all.world_.executor(context, flavour::native),
                     std::chrono::nanoseconds(what->more));
        return asio::experimental::make_parallel_group(std::move(first_one),
                                                       peer->async_wait(asio::deferred));
    }

    /// Starts it, with `token(handler)` as the completion handler.
    template <class Token>
    void start(limits& all, const asio::any_io_executor& ex, completion handler, Token token) {
        const auto launcher = [&](auto t) { return launch(all, std::move(t)); };
        // In its context, so that it starts at once: if it is cancelled before, run() throws (Boost
        // 1.81).
        const auto spawn = [&](auto coroutine, auto t) {
            asio::dispatch(ex, [ex, c = std::move(coroutine), t = std::move(t)]() mutable {
                asio::co_spawn(ex, std::move(c), std::move(t));
            });
        };
        const auto as_code = [](const std::exception_ptr& e) { return results(code_of(e), 0); };
        switch (what->in) {
        case shape::handler:
            with_limit(launcher, token(std::move(handler)));
            break;
        case shape::composed:
            with_limit(
                [&](auto t) {
                    asio::async_compose<decltype(t), void(error_code)>(composition{&all, this}, t,
                                                                       ex);
                },
                token(std::move(handler)));
            break;
        case shape::raced: {
            auto then = token(
                adapted{std::move(handler), [](const order& o, const error_code& ec,
                                               const error_code&) { return results(ec, o[0]); }});
            with_limit(
                [&](auto t) {
                    race(all, launch(all, std::move(t)))
                        .async_wait(asio::experimental::wait_for_one(), std::move(then));
                },
                asio::deferred);
            break;
        }
        case shape::raced_under: {
            struct outcome {
                results operator()(const error_code& limit, const order& o, const error_code& ec,
                                   const error_code&) const {
                    self->find(id)->told = ec;
                    return {limit, o[0]};
                }
                results operator()(const order& o, const error_code& ec,
                                   const error_code& other) const {
                    return (*this)(error_code(), o, ec, other);
                }
                limits* self;
                int id;
            };
            auto both = race(all, launch(all, asio::deferred));
            auto then = token(adapted{std::move(handler), outcome{&all, id}});
            // A group has no executor to keep time on.
            const auto runs_on = asio::get_associated_executor(then, ex);
            with_limit(
                [&](auto t) { both.async_wait(asio::experimental::wait_for_one(), std::move(t)); },
                asio::bind_executor(runs_on, std::move(then)));
            break;
        }
        case shape::coroutine:
            spawn(run(all, id), token(adapted{std::move(handler), as_code}));
            break;
        case shape::awaited:
            spawn(run_awaited(all, id), token(adapted{std::move(handler), as_code}));
            break;
        case shape::spawned:
            spawn(run(all, id), pawl::timeout(std::chrono::nanoseconds(what->more),
                                              token(adapted{std::move(handler), as_code})));
            break;
        case shape::either:
            spawn(run_either(all, id),
                  token(adapted{std::move(handler), [](const std::exception_ptr& e, std::size_t n) {
                                    return results(code_of(e), n);
                                }}));
            break;
        case shape::both:
            spawn(run_both(all, id), token(adapted{std::move(handler), as_code}));
            break;
        }
    }

    int id = 0;
    int context = 0;
    int home = 0; ///< the context of its handler
    const step* what = nullptr;
    limit under{};
    obedience obeys{};
    std::int64_t expiry = latest;   ///< of the limit, by the steady clock
    std::int64_t more_due = latest; ///< of the other limit or wait
    std::uint64_t ended_early = 0;
    std::unique_ptr<any_handler> pending;
    std::optional<channel> from;
    std::optional<pawl::steady_timer> peer;
    bool begun = false;
    bool ended = false; ///< it has invoked its handler
    bool starting = false;
    bool by_caller = false; ///< the caller's signal is being emitted
    bool asked = false;     ///< it was emitted
    bool limited = false;   ///< the limit has asked it to end
    bool abandoned = false;
    bool more_over = false; ///< the other wait has ended
    bool handed = false;    ///< its context has handed what is due to that of the handler
    who first = who::nobody;
    error_code result{};
    std::optional<error_code> told; ///< the result behind the limit
};

limits::limits(surroundings& world) : world_(world) {}
limits::~limits() = default;

limits::operation* limits::find(int id) {
    for (const auto& o : operations_) {
        if (o->id == id)
            return o.get();
    }
    return nullptr;
}

void limits::perform(const step& s) {
    if (s.what == op::operation) {
        if (world_.there(s.context) && world_.there(home_of(s)) &&
            !find(slots_[static_cast<std::size_t>(s.object)]))
            start(s);
        return;
    }
    operation* const o = find(slots_[static_cast<std::size_t>(s.object)]);
    if (o && o->from) {
        // A channel whose receiver was cancelled must not be sent to (Boost 1.81).
        if (!o->ended && o->suspects(*this) == operation::who::nobody)
            o->ended = o->from->try_send(error_code());
        return;
    }
    if (!o || !o->pending)
        return;
    const auto handler = std::move(o->pending);
    o->result = {};
    if (s.bound)
        handler->post({});
    else
        handler->call({});
}

/// Coroutines and so on hold executors of both contexts, which could not be destroyed one by one.
int limits::home_of(const step& s) {
    return s.bound && s.in == shape::handler ? s.other : s.context;
}

void limits::start(const step& s) {
    const int id = ++last_id_;
    slots_[static_cast<std::size_t>(s.object)] = id;
    auto made = std::make_unique<operation>();
    made->id = id;
    made->context = s.context;
    made->home = home_of(s);
    made->what = &s;
    made->under = s.under;
    made->obeys = s.obeys;
    made->ended_early = world_.ended_early(s.context);
    if (s.in != shape::handler)
        ++shaped_;
    operation& op = *operations_.emplace_back(std::move(made));

    world_.serve(s.context, kind::steady);
    world_.serve(op.home, kind::steady);
    const auto ex = world_.executor(s.context, flavour::native);
    const auto slot = world_.listen(
        s.signal, {[this, id] { return find(id) != nullptr; },
                   [this, id] {
                       if (operation* const o = find(id)) {
                           o->by_caller = !o->by_caller;
                           o->asked = true;
                       }
                   },
                   // co_spawn dispatches the emission, and may use its signal after its
                   // end if that is not carried out at once (asio issue 1332). It
                   // leaves its function in the slot.
                   [this, id, &s] {
                       return !is_coroutine(s.in) || (find(id) && world_.running(s.context) &&
                                                      (!s.bound || s.executor == flavour::native));
                   }});
    if (s.bound)
        op.start(*this, ex, completion(*this, id, slot), [&](auto handler) {
            return asio::bind_executor(world_.executor(op.home, s.executor), std::move(handler));
        });
    else
        op.start(*this, ex, completion(*this, id, slot), [](auto handler) { return handler; });
}

/// Checks the result of an operation behind its limit.
void limits::judge(const operation& o, const error_code& ec) const {
    using who = operation::who;
    error_code raw = o.result;
    who first = o.first;
    if (o.obeys == obedience::channel && !o.ended) {
        raw = asio::experimental::error::channel_cancelled;
        first = o.suspects(*this);
        if (first == who::nobody)
            fail("limit: the receiver of a channel is cancelled, and nobody asked for it");
    } else if (!o.ended) {
        fail("limit: a handler is invoked before its operation has ended, or twice");
    }
    const bool limited = raw && first != who::other && o.under == limit::timeout;
    const bool kept = !limited || first == who::either;
    const bool named = limited && (ec == pawl::error::timed_out ||
                                   (o.hastened(*this) && ec == asio::error::timed_out));
    if (!named && !(kept && ec == raw))
        fail("limit: the handler is told " + ec.message() + ", and the operation " + raw.message());
}

/// Checks what the handler is told about an operation and its surroundings.
void limits::judge_shape(const operation& o, const error_code& ec, std::uint64_t number) const {
    const auto wrong = [&](bool b) {
        if (b)
            fail("limit: in its surroundings a handler is told " + ec.message() + ", " +
                 std::to_string(number));
    };
    const bool hasty = o.hastened(*this);
    const bool asked = o.asked || o.abandoned || hasty;
    const bool more = o.more_due <= virtual_time::steady || hasty;
    const auto by_time = [&](const error_code& e) {
        return e == pawl::error::timed_out || (hasty && e == asio::error::timed_out);
    };
    // A coroutine that was cancelled before does not start the operation.
    const error_code told = o.told.value_or(asio::error::operation_aborted);
    const bool named_by_operation = ec == told && (o.told || asked);
    switch (o.what->in) {
    case shape::handler:
    case shape::composed:
        return judge(o, ec);
    case shape::raced:
        wrong(number == 1 && !more && !asked);
        return judge(o, ec);
    case shape::raced_under: {
        wrong(number == 1 && !more && !asked && o.expiry > virtual_time::steady);
        const bool limit = o.expiry <= virtual_time::steady || hasty;
        const bool certain = o.first == operation::who::limit && o.under == limit::timeout;
        wrong(ec ? !limit || !by_time(ec) || o.under != limit::timeout : certain);
        wrong(o.ended && told != o.result);
        break;
    }
    case shape::coroutine:
        wrong(!named_by_operation);
        break;
    case shape::awaited:
    case shape::spawned: {
        if (!is_cancellation(told)) {
            wrong(ec != told);
            break;
        }
        const bool by_inner = o.under == limit::cancel_after && o.expiry <= virtual_time::steady;
        wrong(ec == told ? !asked && !by_inner : !more || !by_time(ec));
        break;
    }
    case shape::either:
        wrong(ec ? !asked : number == 0 ? !o.told || *o.told : !more);
        break;
    case shape::both:
        wrong(ec ? !named_by_operation && !asked : !o.told || *o.told || !more);
        break;
    }
}

void limits::completed(int id, const error_code& ec, std::uint64_t number) {
    operation* const o = find(id);
    if (!o)
        fail("limit: a handler is invoked twice");
    judge_shape(*o, ec, number);
    const std::vector<step>& steps = o->what->then;
    const bool may_throw = o->what->in == shape::handler; // Asio's groups terminate
    std::erase_if(operations_, [&](const auto& each) { return each.get() == o; });
    world_.go_on(steps, may_throw);
}

void limits::destroyed(int id) {
    operation* const o = find(id);
    if (!o)
        fail("limit: a handler is destroyed after its end");
    if (!o->abandoned && !world_.dying(o->context) && !world_.dying(o->home))
        fail("limit: a handler is destroyed uncalled");
    std::erase_if(operations_, [&](const auto& each) { return each.get() == o; });
}

void limits::leave(int context) {
    std::vector<int> ids;
    for (const auto& o : operations_) {
        if (o->context == context || o->home == context)
            ids.push_back(o->id);
    }
    for (const int id : ids) {
        operation* o = find(id);
        if (!o)
            continue;
        o->abandoned = true;
        o->peer.reset();
        o->from.reset();
        const auto handler = std::move(o->pending);
    }
}

bool limits::awaited_from_elsewhere(int context) const {
    return std::any_of(operations_.begin(), operations_.end(),
                       [&](const auto& o) { return o->home == context && o->context != context; });
}

std::size_t limits::count() const noexcept {
    std::size_t n = 0;
    for (const auto& o : operations_)
        n += o->what->in == shape::handler ? 1 : units_of_shape;
    return n;
}

business limits::settled(int context) {
    business b;
    const std::int64_t before = virtual_time::steady - world_.precision(context);
    for (const auto& o : operations_) {
        if (o->abandoned) {
            b.perhaps = true;
            continue;
        }
        if (o->home != context) {
            const bool due = o->expiry <= before || (o->is_cut() && o->more_due <= before);
            o->handed = o->handed || (o->context == context && due);
            b.perhaps = b.perhaps || o->context == context;
            continue;
        }
        b.work = true;
        if (o->context != context && !o->handed)
            continue;
        o->handed = false;
        const shape in = o->what->in;
        // An end that meets its limit on the way waits for it, which may be in the other context.
        if (o->ended && o->home == o->context && in != shape::either && in != shape::both)
            fail("limit: its operation has ended, and its handler is not invoked");
        // A channel ends at once when it is asked to.
        const bool obeyed =
            o->obeys == obedience::channel
                ? o->told.has_value()
                : o->limited || o->starting || o->first != operation::who::nobody || o->ended;
        if (o->begun && !obeyed && o->expiry <= before)
            fail("P2: a limit is late: it was due at " + std::to_string(o->expiry));
        if (o->begun && !obeyed && o->is_cut() && o->more_due <= before)
            fail("P2: an operation is cancelled late: it was due at " +
                 std::to_string(o->more_due));
        if (in == shape::both && !o->more_over && o->more_due <= before && !o->asked && !o->told &&
            !o->hastened(*this))
            fail("P2: a wait in a coroutine is late");
    }
    return b;
}

void limits::finished() const {
    if (!operations_.empty())
        fail("limit: a handler has neither been invoked nor destroyed");
}

} // namespace simulation
