// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/limits.hpp"

#include "simulation/report.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace simulation {

struct limits::operation {
    enum class who { nobody, limit, caller };

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
            self->world_.go_on(op->what->dying); // while the initiating function runs
        }

        limits* self;
        int id;
        asio::any_io_executor ex;
    };

    /// In the cancellation slot of the operation.
    void signalled(limits& all) {
        if (ended)
            fail("limit: an operation that has ended is cancelled");
        if (!by_caller) {
            if (std::exchange(limited, true))
                fail("limit: it is emitted twice");
            if (starting)
                fail("limit: it is emitted while the operation is being started");
            if (virtual_time::steady < expiry && all.world_.hurried(context) == hurried)
                fail("P1: a limit is early: it was due at " + std::to_string(expiry));
            const bool anywhere = what->bound && what->executor == flavour::immediate;
            if (!anywhere && !all.world_.running(context) &&
                !all.world_.dying(context)) // it may be delivered
                fail("limit: it is emitted while its context does not run");
        }
        if (!pending)
            return; // its end is in flight
        // The limit may have come first, with its signal in flight.
        either = either || (by_caller && virtual_time::steady >= expiry);
        if (first == who::nobody)
            first = by_caller ? who::caller : who::limit;
        if (obeys == obedience::ignores)
            return;
        const auto handler = std::move(pending);
        const error_code ec = result = asio::error::operation_aborted;
        if (obeys == obedience::inline_) // it may have been destroyed
            handler->call(ec);
        else
            handler->post(ec);
    }

    int id = 0;
    int context = 0;
    const step* what = nullptr;
    limit under{};
    obedience obeys{};
    std::int64_t expiry = 0; ///< of the limit, by the steady clock
    std::uint64_t hurried = 0;
    std::unique_ptr<any_handler> pending;
    bool ended = false; ///< it has invoked its handler
    bool starting = false;
    bool by_caller = false; ///< the caller's signal is being emitted
    bool either = false;    ///< the same, when the limit had already been reached
    bool limited = false;   ///< the limit has asked it to end
    bool abandoned = false;
    who first = who::nobody;
    error_code result{};
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
        if (world_.there(s.context) && !find(slots_[static_cast<std::size_t>(s.object)]))
            start(s);
        return;
    }
    operation* const o = find(slots_[static_cast<std::size_t>(s.object)]);
    if (!o || !o->pending)
        return;
    const auto handler = std::move(o->pending);
    o->result = {};
    if (s.bound)
        handler->post({});
    else
        handler->call({});
}

void limits::start(const step& s) {
    const int id = ++last_id_;
    slots_[static_cast<std::size_t>(s.object)] = id;
    auto made = std::make_unique<operation>();
    made->id = id;
    made->context = s.context;
    made->what = &s;
    made->under = s.under;
    made->obeys = s.obeys;
    made->expiry = saturating_add(virtual_time::steady, std::max<std::int64_t>(s.time, 0));
    made->hurried = world_.hurried(s.context);
    operations_.push_back(std::move(made));

    world_.serve(s.context, kind::steady);
    const auto ex = world_.executor(s.context, flavour::native);
    const auto slot = world_.listen(s.signal, {[this, id] { return find(id) != nullptr; },
                                               [this, id] {
                                                   if (operation* const o = find(id))
                                                       o->by_caller = !o->by_caller;
                                               }});
    const std::chrono::nanoseconds d(s.time);
    const operation::initiation initiation{this, id, ex};
    const auto launch = [&](auto token) {
        asio::async_initiate<decltype(token), void(error_code)>(initiation, token);
    };
    const auto limited = [&](auto handler) {
        if (s.under == limit::cancel_after)
            launch(pawl::cancel_after(d, std::move(handler)));
        else
            launch(pawl::timeout(d, std::move(handler)));
    };
    if (s.bound)
        limited(asio::bind_executor(world_.executor(s.context, s.executor),
                                    completion(*this, id, slot)));
    else
        limited(completion(*this, id, slot));
}

void limits::completed(int id, const error_code& ec, std::uint64_t) {
    operation* const o = find(id);
    if (!o || !o->ended)
        fail("limit: a handler is invoked before its operation has ended, or twice");
    error_code told = o->result;
    if (o->result && o->first == operation::who::limit && o->under != limit::cancel_after)
        told = pawl::error::timed_out;
    const bool hurried = world_.hurried(o->context) != o->hurried && ec == asio::error::timed_out;
    const bool either = o->either && ec == pawl::error::timed_out;
    if (ec != told && !either && !(hurried && told == pawl::error::timed_out))
        fail("limit: the handler is told " + ec.message() + ", and not " + told.message());
    const std::vector<step>& steps = o->what->then;
    std::erase_if(operations_, [&](const auto& each) { return each.get() == o; });
    world_.go_on(steps);
}

void limits::destroyed(int id) {
    operation* const o = find(id);
    if (!o)
        fail("limit: a handler is destroyed after its end");
    if (!o->abandoned && !world_.dying(o->context))
        fail("limit: a handler is destroyed uncalled");
    std::erase_if(operations_, [&](const auto& each) { return each.get() == o; });
}

void limits::leave(int context) {
    std::vector<int> ids;
    for (const auto& o : operations_) {
        if (o->context == context)
            ids.push_back(o->id);
    }
    for (const int id : ids) {
        operation* const o = find(id);
        if (!o)
            continue;
        o->abandoned = true;
        const auto handler = std::move(o->pending);
    }
}

int limits::settled(int context) {
    int pending = 0;
    for (const auto& o : operations_) {
        if (o->context != context)
            continue;
        if (o->ended)
            fail("limit: its operation has ended, and its handler is not invoked");
        ++pending;
        const std::int64_t late = saturating_subtract(virtual_time::steady, o->expiry);
        if (!o->limited && !o->starting && o->first == operation::who::nobody &&
            late >= world_.precision(context))
            fail("P2: a limit is late: it was due at " + std::to_string(o->expiry));
    }
    return pending;
}

void limits::finished() const {
    if (!operations_.empty())
        fail("limit: a handler has neither been invoked nor destroyed");
}

} // namespace simulation
