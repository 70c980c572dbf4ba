// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/streams.hpp"

#include "simulation/memory_layer.hpp"
#include "simulation/report.hpp"

#include <pawl/error.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace simulation {

struct streams::stream {
    explicit stream(const asio::any_io_executor& ex) : stack(ex), layer(stack.socket().peer()) {}

    pawl::timeout_stream<memory_layer> stack;
    memory_layer::state& layer;
    char data[8] = {};
    int context = 0;
    std::int64_t idle = latest; ///< limits; `latest`: none
    std::int64_t read = latest;
    std::int64_t total = latest;     ///< a point in time
    std::int64_t handshake = latest; ///< likewise, while there is a scope
    std::optional<pawl::timeout_stream<memory_layer>::handshake_scope> scope;
    std::int64_t moved = latest; ///< latest possible start of idleness
    bool ended_early = false; ///< by expire_all(): the limit of the next operation may have expired
    bool lapsed =
        false; ///< a limit may have expired while no operation was pending, and ends the next one

    /// Whether a limit for everything except idleness has expired.
    [[nodiscard]] bool over(std::int64_t now) const { return total <= now || handshake <= now; }
    [[nodiscard]] bool expired(std::int64_t now) const {
        return over(now) ||
               (moved != latest && idle != latest && saturating_add(moved, idle) <= now);
    }
};

streams::streams(surroundings& world) : world_(world) {}
streams::~streams() = default;

void streams::perform(const step& s) {
    auto& slot = streams_[static_cast<std::size_t>(s.object)];
    const std::int64_t now = virtual_time::steady;
    if (s.what == op::make_stream) {
        if (slot || !world_.there(s.context))
            return;
        world_.serve(s.context, kind::steady);
        slot = std::make_unique<stream>(world_.executor(s.context, flavour::native));
        slot->context = s.context;
        return;
    }
    if (!slot)
        return;
    stream& t = *slot;
    note_expired(s.object);
    const auto doom = [&] {
        for (operation& o : operations_) {
            if (o.owner == s.object)
                o.doomed = true;
        }
    };
    switch (s.what) {
    case op::destroy_stream:
        doom();
        for (operation& o : operations_) {
            if (o.owner == s.object)
                o.owner = -1;
        }
        slot.reset();
        break;
    case op::limit_stream: {
        pawl::stream_limits l;
        if (s.time > 0)
            l.idle = std::chrono::nanoseconds(s.time);
        if (s.more > 0)
            l.read = l.handshake = std::chrono::nanoseconds(s.more);
        l.action = s.bound ? pawl::on_limit::cancel : pawl::on_limit::close;
        t.stack.set_limits(l);
        if (s.time <= 0)
            t.moved = latest;
        else if (t.moved == latest && t.layer.open && !pending(s.object, true))
            t.moved = now;
        t.idle = s.time > 0 ? s.time : latest;
        t.read = s.more > 0 ? s.more : latest;
        for (operation& o : operations_) {
            if (o.owner == s.object && (o.reads || o.connects))
                o.limit = saturating_add(now, t.read);
        }
        break;
    }
    case op::expire_stream:
        t.total = s.time > 0 ? saturating_add(now, s.time) : latest;
        if (s.time > 0)
            t.stack.expires_after(std::chrono::nanoseconds(s.time));
        else
            t.stack.expires_never();
        break;
    case op::read:
        start(s, true);
        break;
    case op::write:
        start(s, false);
        break;
    case op::feed:
    case op::drain: {
        const bool reads = s.what == op::feed;
        for (operation& o : operations_) {
            if (o.owner == s.object && o.reads == reads && !o.connects &&
                t.layer.pending[reads ? memory_layer::reading : memory_layer::writing])
                o.served = true;
        }
        t.layer.end(reads ? memory_layer::reading : memory_layer::writing, {}, 1);
        break;
    }
    case op::connect:
        connect(s);
        break;
    case op::accept: {
        if (!t.layer.pending[memory_layer::connecting])
            break;
        for (operation& o : operations_) {
            if (o.owner == s.object && o.connects)
                (s.bound ? o.refused : o.served) = true;
        }
        t.layer.end(memory_layer::connecting,
                    s.bound ? error_code(asio::error::connection_refused) : error_code(), 0);
        break;
    }
    case op::begin_handshake:
        if (t.scope)
            break;
        t.scope.emplace(t.stack.limit_handshake());
        t.handshake = saturating_add(now, t.read);
        break;
    case op::end_handshake:
        t.scope.reset();
        t.handshake = latest;
        break;
    case op::close_stream:
        doom();
        t.stack.close();
        t.moved = latest;
        break;
    default:
        break;
    }
}

void streams::start(const step& s, bool reads) {
    const std::size_t index = static_cast<std::size_t>(s.object);
    stream& t = *streams_[index];
    if (!world_.there(t.context))
        return;
    for (const operation& o : operations_) {
        if (o.owner == s.object && (o.reads == reads || o.connects))
            return; // one operation at a time
    }
    const std::int64_t now = virtual_time::steady;
    operation o;
    o.reads = reads;
    o.limit = reads && t.read != latest ? saturating_add(now, t.read) : latest;
    o.doomed = !t.layer.open;
    const auto slot = add(s, o);
    if (t.idle != latest && t.moved == latest && t.layer.open)
        t.moved = now;
    const auto buffer = asio::buffer(t.data, 1);
    if (reads)
        t.stack.async_read_some(buffer, completion(*this, last_id_, slot));
    else
        t.stack.async_write_some(asio::const_buffer(buffer), completion(*this, last_id_, slot));
}

void streams::connect(const step& s) {
    stream& t = *streams_[static_cast<std::size_t>(s.object)];
    if (!world_.there(t.context) || pending(s.object, false) || pending(s.object, true))
        return;
    const std::int64_t now = virtual_time::steady;
    operation o;
    o.connects = true;
    o.limit = t.read != latest ? saturating_add(now, t.read) : latest;
    const auto slot = add(s, o);
    if (!t.over(now))
        t.moved = latest;
    t.stack.async_connect({}, completion(*this, last_id_, slot));
}

bool streams::pending(int owner, bool connects) const {
    return std::any_of(operations_.begin(), operations_.end(), [&](const operation& o) {
        return o.owner == owner && o.connects == connects;
    });
}

asio::cancellation_slot streams::add(const step& s, operation o) {
    const stream& t = *streams_[static_cast<std::size_t>(s.object)];
    o.id = ++last_id_;
    o.owner = s.object;
    o.context = t.context;
    o.expired = t.lapsed || t.expired(virtual_time::steady);
    o.ended_early = t.ended_early;
    o.what = &s;
    operations_.push_back(o);
    return world_.listen(s.signal, {[this, id = o.id] {
                                        return std::any_of(
                                            operations_.begin(), operations_.end(),
                                            [id](const operation& each) { return each.id == id; });
                                    },
                                    [this, id = o.id] {
                                        for (operation& each : operations_) {
                                            if (each.id == id)
                                                each.doomed = true;
                                        }
                                    }});
}

void streams::note_expired(int owner) {
    stream& t = *streams_[static_cast<std::size_t>(owner)];
    const std::int64_t now = virtual_time::steady;
    bool expired = t.expired(now);
    for (const operation& o : operations_)
        expired = expired || (o.owner == owner && o.limit <= now);
    t.lapsed = t.lapsed || expired;
    for (operation& o : operations_)
        o.expired = o.expired || (o.owner == owner && expired); // one limit ends all operations
}

std::vector<streams::operation>::iterator streams::find(int id) {
    const auto o = std::find_if(operations_.begin(), operations_.end(),
                                [id](const operation& each) { return each.id == id; });
    if (o == operations_.end())
        fail("stream: a handler is told twice");
    return o;
}

void streams::completed(int id, const error_code& ec, std::uint64_t) {
    const auto found = find(id);
    if (found->owner >= 0)
        note_expired(found->owner);
    const operation o = *found;
    operations_.erase(found);
    const std::int64_t now = virtual_time::steady;
    stream* const t = o.owner >= 0 ? streams_[static_cast<std::size_t>(o.owner)].get() : nullptr;
    if (!ec) {
        if (!o.served)
            fail("stream: an operation succeeds that nobody has served");
        if (t)
            t->lapsed = false;
        if (t && o.connects)
            t->moved = t->idle != latest ? now : latest;
        else if (t && t->moved != latest)
            t->moved = now;
    } else if (ec == boost::beast::error::timeout) {
        const bool due = o.limit <= now || (t && t->expired(now));
        if (!due && !o.ended_early && !o.expired && !o.doomed)
            fail("P1: a limit of a stream is early");
    } else if (o.refused && ec == asio::error::connection_refused) {
        // The connect has failed by itself.
    } else if (!o.doomed && !world_.dying(o.context)) {
        // A limit of the other direction closes both.
        fail("stream: an operation is told " + ec.message());
    }
    if (t && ec == boost::beast::error::timeout && !t->layer.open) {
        t->moved = latest;
        for (operation& each : operations_) {
            if (each.owner == o.owner)
                each.doomed = true;
        }
    }
    world_.go_on(o.what->then);
}

void streams::destroyed(int id) {
    const auto o = find(id);
    if (!world_.dying(o->context) && !o->doomed)
        fail("stream: a handler is destroyed uncalled");
    operations_.erase(o);
}

business streams::settled(int context) {
    business b;
    const std::int64_t now = virtual_time::steady;
    const std::int64_t late = now - world_.precision(context);
    for (const operation& o : operations_) {
        if (o.context != context)
            continue;
        b.work = true;
        if (o.served || o.refused || (o.doomed && o.owner < 0))
            fail("stream: an operation has ended, and its handler is not invoked");
        const stream* const t =
            o.owner >= 0 ? streams_[static_cast<std::size_t>(o.owner)].get() : nullptr;
        if (o.limit <= late || (t && t->over(late)))
            fail("P2: a limit of a stream is late");
    }
    for (const auto& t : streams_) {
        if (t && t->context == context)
            b.perhaps = true;
    }
    return b;
}

void streams::leave(int context) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i] && streams_[i]->context == context)
            perform({.what = op::destroy_stream, .object = static_cast<int>(i)});
    }
}

void streams::end_early(int context) {
    for (operation& o : operations_)
        o.ended_early = o.ended_early || o.context == context;
    for (const auto& t : streams_) {
        if (t && t->context == context)
            t->ended_early = true;
    }
}

void streams::finished() const {
    if (!operations_.empty())
        fail("stream: a handler has neither been invoked nor destroyed");
}

} // namespace simulation
