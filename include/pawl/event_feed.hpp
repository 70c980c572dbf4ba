// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::event_feed: what happens to the timers of a context, while it happens.
#ifndef PAWL_EVENT_FEED_HPP
#define PAWL_EVENT_FEED_HPP

#include <pawl/config.hpp>

#include <pawl/broadcast_ring.hpp>

#include <pawl/service/timer_handle.hpp>

#include <pawl/watch/event_hub.hpp>
#include <pawl/watch/event_record.hpp>
#include <pawl/watch/timer_event.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

/// Options of an event_feed.
struct event_feed_options {
    /// How many events a reader may be behind before it misses some: a power of two, 64 at least. 32 bytes
    /// each. An event with a name counts twice.
    std::size_t capacity = 16'384;
    /// How many readers there can be at a time: a power of two.
    std::size_t readers = 64;
};

/// What happens to the timers of a context: each wait that is started, moved, due, run or cancelled, for
/// readers that come and go.
///
/// @code
/// pawl::event_feed feed(context);
/// auto reader = feed.join({pawl::timer_event_kind::started});   // in any thread
///
/// std::array<pawl::timer_event, 256> events;
/// const auto got = co_await reader.async_read(events, boost::asio::use_awaitable);
/// for (const auto& e : std::span(events).first(got.count))
///     std::cout << e.name.view() << " is late by " << e.lateness.count() << " ns\n";
/// @endcode
///
/// All clocks and all backends of the context are in it, and limits and streams as well. Feeds of one
/// context are handles to the same one. Without a reader that is not suspended, the timers pay nothing
/// for each wait, and a load for each turn of the context. With readers, events are gathered in
/// batches, and shown when one is full, when a reader finds nothing else, and at the next turn if a reader
/// sleeps. Events of one shard are in the order in which they happened. A reader that sleeps in async_read() is woken by a thread
/// that runs the context of the timers; with options::completions_per_turn above one, between two handlers.
///
/// The books balance: each wait that is `armed` is `started`, `cancelled` or `shut_down` once, unless its
/// handler is still on its way to another executor when the context ends.
///
/// A slow reader never delays a timer: the oldest events are overwritten, and it is told how many it has
/// missed.
///
/// @par Thread safety
/// All members of a feed may be called from any thread. Readers are independent of each other; one reader
/// is used by one thread at a time, see reader::async_read(). With options::locking = false, that thread
/// is the one of the context.
/// @par Complexity
/// join() and the end of a reader are O(shards), and take their locks.
class event_feed {
public:
    class reader;

    /// The feed of `context`, with default options unless another one has been made with others.
    template <class ExecutionContext>
        requires std::convertible_to<ExecutionContext&, boost::asio::execution_context&>
    explicit event_feed(ExecutionContext& context)
        : hub_(detail::hub_service::of(context)), executor_(context.get_executor()) {}

    /// The feed of `context`, with options.
    /// @throws std::invalid_argument if the capacity is less than 64, or if the feed has other options already.
    /// @throws broadcast_error bad_capacity, if a number is no power of two.
    template <class ExecutionContext>
        requires std::convertible_to<ExecutionContext&, boost::asio::execution_context&>
    event_feed(ExecutionContext& context, const event_feed_options& o) : event_feed(context) {
        if (o.capacity < 64)
            throw std::invalid_argument("pawl::event_feed_options::capacity is " +
                                        std::to_string(o.capacity) + "; it must be 64 at least");
        if (!hub_->make_ring(o.capacity, o.readers))
            throw std::invalid_argument("pawl: the event_feed of this context has other options "
                                        "already: make the one with options first");
    }

    /// A reader of what happens from now on.
    /// @param kinds which events it is told of.
    /// @throws broadcast_error too_many_readers. @throws std::bad_alloc
    [[nodiscard]] reader join(event_kinds kinds = event_kinds::all());

    /// The same, with another executor: that of its asynchronous reads.
    [[nodiscard]] reader join(const boost::asio::any_io_executor& ex,
                              event_kinds kinds = event_kinds::all());

    /// How many readers there are that are not suspended.
    [[nodiscard]] std::size_t readers() const noexcept { return hub_->readers(); }
    /// How many events there have been, for any reader.
    [[nodiscard]] std::uint64_t published() const { return hub_->published(); }

private:
    std::shared_ptr<detail::event_hub> hub_;
    boost::asio::any_io_executor executor_;
};

/// One reader of a feed. It is there until it is destroyed, also when the context is gone: then it reads
/// what is left, and is told that the feed is closed.
class event_feed::reader {
public:
    /// The executor of asynchronous reads.
    using executor_type = boost::asio::any_io_executor;

    reader(reader&&) noexcept = default; ///< Takes over, with a read that is pending.
    /// Leaves, and takes over.
    reader& operator=(reader&& other) noexcept {
        reader old(std::move(*this));
        self_ = std::move(other.self_);
        return *this;
    }
    /// Leaves. A read that is pending is told `operation_aborted`.
    ~reader() {
        if (self_)
            self_->leave();
    }

    /// That of asynchronous reads.
    [[nodiscard]] executor_type get_executor() const noexcept {
        return self_->sleeper.timer.get_executor();
    }

    /// Copies the next events to the front of `out`, if there are any. Does not wait.
    [[nodiscard]] read_result try_read(std::span<timer_event> out) noexcept {
        return self_->try_read(out);
    }

    /// Waits until there is an event, or some were missed, and copies what there is to the front of `out`,
    /// which must stay as it is until then.
    /// @param out room for events; not empty.
    /// @param token any completion token for `void(boost::system::error_code, pawl::read_result)`. The
    ///        error is `boost::asio::error::eof` if the context is gone and nothing is left,
    ///        `boost::asio::error::invalid_argument` if the reader is suspended or `out` empty, and
    ///        `boost::asio::error::operation_aborted` if the read was cancelled, another one was begun, or
    ///        the reader was suspended or destroyed.
    /// @par Cancellation
    /// `terminal`, `partial` and `total`; expire_all() with the context of the reader's executor. No event
    /// is lost.
    /// @par Thread safety
    /// While a read is pending, the reader is used by the executor of the handler. Call its members there
    /// then, as those of a socket.
    template <class ReadToken>
    auto async_read(std::span<timer_event> out, ReadToken&& token) {
        return boost::asio::async_compose<ReadToken, void(boost::system::error_code, read_result)>(
            read_operation{self_, out}, token, self_->sleeper.timer);
    }

    /// From now on it sees nothing, and costs the timers nothing. Reads fail. A read that is pending is
    /// told `operation_aborted`.
    void suspend() { self_->suspend(); }
    /// It sees what happens from now on. What lies between does not count as missed.
    void resume() { self_->resume(); }
    /// Whether suspend() was called last.
    [[nodiscard]] bool suspended() const noexcept { return self_->ring->suspended(); }

private:
    friend class event_feed;

    struct state {
        state(std::shared_ptr<detail::event_hub> h, const executor_type& ex, event_kinds k)
            : hub(std::move(h)), sleeper(ex), kinds(k), ring(hub->join(events)) {}
        state(const state&) = delete;
        state& operator=(const state&) = delete;

        [[nodiscard]] read_result try_read(std::span<timer_event> out) noexcept {
            read_result all{};
            std::size_t seen = 0;
            for (bool flushed = false;;) {
                std::array<detail::event_record, 64> records;
                const auto some =
                    std::span(records).first(std::min(records.size(), out.size() - all.count));
                const read_result got = ring->read(some);
                const auto fresh =
                    out.subspan(all.count, events.unpack(got.missed, some.first(got.count),
                                                         out.data() + all.count));
                all.count += kinds.are_all() ? fresh.size() : keep(fresh);
                all.status = got.status;
                seen += got.count;
                if (got.count == 0 && all.count == 0 && got.status == read_status::nothing &&
                    !std::exchange(flushed, true))
                    hub->flush();
                else if (got.count < some.size() || out.empty() ||
                         (all.count != 0 && seen >= out.size()))
                    break;
            }
            all.missed = events.take_missed();
            if (all.count != 0)
                all.status = read_status::messages;
            else if (all.status == read_status::messages)
                all.status = read_status::nothing;
            return all;
        }
        /// Moves those that are wanted to the front. @return how many.
        [[nodiscard]] std::size_t keep(std::span<timer_event> all) const noexcept {
            return static_cast<std::size_t>(
                std::remove_if(all.begin(), all.end(),
                               [this](const timer_event& e) { return !kinds.contains(e.kind); }) -
                all.begin());
        }

        /// @param number of this wait, by begin_sleep().
        template <class Handler>
        void async_wait(Handler&& handler, std::uint64_t number) {
            const std::uint64_t position = ring->position();
            sleeper.timer.expires_at(detail::feed_timer::time_point::max()); // ends another read
            sleeper.timer.async_wait(std::forward<Handler>(handler));
            hub->sleep(sleeper, number, position);
        }

        void suspend() {
            if (ring->suspended())
                return;
            hub->end_sleep(sleeper);
            ring->suspend();
            hub->leave();
            sleeper.timer.cancel();
        }
        void resume() {
            if (ring->suspended())
                hub->come_back(*ring, events);
        }
        void leave() noexcept {
            hub->end_sleep(sleeper);
            if (!ring->suspended())
                hub->leave();
            ring.reset();
            sleeper.timer.cancel();
        }

        const std::shared_ptr<detail::event_hub> hub;
        detail::feed_sleeper sleeper;
        const event_kinds kinds;
        detail::event_unpacker events;
        std::optional<detail::event_ring::reader> ring; ///< until the reader has left
    };

    /// A read: looks, and waits if there is nothing.
    struct read_operation {
        std::shared_ptr<state> self;
        std::span<timer_event> out;
        enum { begins, waits, completes } phase = begins;
        std::uint64_t number = 0; ///< of the wait
        read_result result{};
        boost::system::error_code error{};

        /// @param ec not looked at: it is `operation_aborted`, whatever has ended the wait.
        template <class Self>
        void operator()(Self& op, [[maybe_unused]] boost::system::error_code ec = {}) {
            if (phase == completes)
                return op.complete(error, result);
            if (phase == begins)
                op.reset_cancellation_state(boost::asio::enable_total_cancellation());
            else if (!self->hub->end_sleep(self->sleeper, number) ||
                     op.cancelled() != boost::asio::cancellation_type::none)
                return op.complete(boost::asio::error::operation_aborted, {});
            look();
            if (!error && result.count == 0 && result.missed == 0) {
                phase = waits;
                number = self->hub->begin_sleep(self->sleeper);
                const std::shared_ptr<state> s = self; // the operation moves into the handler
                return s->async_wait(std::move(op), number);
            }
            if (phase == waits)
                return op.complete(error, result);
            phase = completes; // not from within async_read()
            const auto ex = self->sleeper.timer.get_executor();
            boost::asio::post(ex, std::move(op));
        }

        void look() {
            if (!self->ring) { // it has left before a deferred read begins
                error = boost::asio::error::operation_aborted;
                return;
            }
            if (out.empty() || self->ring->suspended()) {
                error = boost::asio::error::invalid_argument;
                return;
            }
            result = self->try_read(out);
            if (result.count == 0 && result.missed == 0 && result.status == read_status::closed)
                error = boost::asio::error::eof;
        }
    };

    explicit reader(std::shared_ptr<state> s) noexcept : self_(std::move(s)) {}

    std::shared_ptr<state> self_;
};

inline event_feed::reader event_feed::join(event_kinds kinds) { return join(executor_, kinds); }

inline event_feed::reader event_feed::join(const boost::asio::any_io_executor& ex,
                                           event_kinds kinds) {
    hub_->make_ring_if_missing(event_feed_options{}.capacity, event_feed_options{}.readers);
    return reader(std::make_shared<reader::state>(hub_, ex, kinds));
}

/// Gives a timer a name, for those who look: events tell it, named_timers() and gdb show it. It goes with
/// the timer if that moves, and ends with it. The name is kept beside the shard, not in the timer.
/// @param timer a timer on any clock and backend.
/// @param name at most 23 bytes are kept, see timer_name; empty: none any more.
/// @throws std::bad_alloc
/// @pre The context is there.
/// @par Thread safety
/// As any member of the timer that is called by one thread at a time.
/// @par Complexity
/// O(log n) in the timers with names, and so are the move and the end of any timer of the shard then.
template <class Timer>
void set_name(Timer& timer, std::string_view name) {
    auto& handle = detail::timer_access::handle(timer);
    handle.enroll();
    detail::hub_service::of(handle.home().mutable_context())
        ->set_name(handle.home(), handle.core(), timer_name(name));
}

/// What tells a timer apart from the others that are there: timer_event::timer. It changes when the timer
/// moves.
template <class Timer>
[[nodiscard]] std::uint64_t timer_id(Timer& timer) noexcept {
    return reinterpret_cast<std::uintptr_t>(&detail::timer_access::handle(timer).core());
}

/// The timers of `context` that have names, in no particular order.
/// @throws std::bad_alloc
/// @par Complexity
/// O(n). Locks are held for 64 timers at a time.
[[nodiscard]] inline std::vector<named_timer>
named_timers(boost::asio::execution_context& context) {
    return detail::hub_service::of(context)->named();
}

} // namespace pawl

#endif // PAWL_EVENT_FEED_HPP
