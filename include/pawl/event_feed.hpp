// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::event_feed: the events of the timers of a context, live.
#ifndef PAWL_EVENT_FEED_HPP
#define PAWL_EVENT_FEED_HPP

#include <pawl/config.hpp>

#include <pawl/broadcast_ring.hpp>
#include <pawl/timer_event.hpp>

#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/timer_handle.hpp>

#include <pawl/detail/watch/event_hub.hpp>
#include <pawl/detail/watch/event_record.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

/// Options of an event_feed.
struct event_feed_options {
    /// How many events a reader may fall behind before it misses some: a power of two, at least 64.
    /// Each takes 32 bytes. An event with a name counts twice.
    std::size_t capacity = 16'384;
    /// Maximum number of readers at a time: a power of two.
    std::size_t readers = 64;
};

/// The events of the timers of a context, for readers that come and go: each wait that is started,
/// moved, due, run or cancelled.
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
/// The feed covers all clocks and backends of the context, and limits and streams. All feeds of one
/// context are handles to the same feed.
///
/// Without an active reader, timers pay nothing per wait, and one load per turn of the context.
/// With readers, events are collected in batches. A batch is published when it is full, when a
/// reader finds nothing else, and at the next turn if a reader sleeps. The events of one shard are
/// in the order in which they happened. A reader that sleeps in async_read() is woken by a thread
/// that runs the context of the timers. With options::completions_per_turn above one, this happens
/// between two handlers.
///
/// Each wait that is `armed` is later `started`, `cancelled` or `shut_down`, exactly once.
/// Exception: its handler is on its way to another executor when the context ends.
///
/// A slow reader never delays a timer. The oldest events are overwritten, and the reader learns how
/// many it missed.
///
/// @par Thread safety
/// All members of a feed may be called from any thread. Readers are independent of each other. One
/// thread at a time uses a reader; see reader::async_read(). With options::locking = false, that
/// must be the thread of the context.
/// @par Complexity
/// join() and the end of a reader are O(shards), and take the locks of the shards.
class event_feed {
public:
    class reader;

    /// The feed of `context`, with the options of an earlier feed, or else the default ones.
    template <detail::execution_context_type ExecutionContext>
    explicit event_feed(ExecutionContext& context)
        : hub_(detail::hub_service::of(context)), executor_(context.get_executor()) {}

    /// The feed of `context`, with options.
    /// @throws std::invalid_argument if the capacity is less than 64, or if the feed already has
    ///     other options.
    /// @throws broadcast_error with bad_capacity if a number is not a power of two.
    template <detail::execution_context_type ExecutionContext>
    event_feed(ExecutionContext& context, const event_feed_options& o) : event_feed(context) {
        if (o.capacity < 64)
            throw std::invalid_argument("pawl::event_feed_options::capacity is " +
                                        std::to_string(o.capacity) + "; it must be at least 64");
        if (!hub_->make_ring(o.capacity, o.readers))
            throw std::invalid_argument("pawl: the event_feed of this context already has other "
                                        "options: make the feed with options first");
    }

    /// A reader of everything that happens from now on.
    /// @param kinds the kinds of events to receive.
    /// @throws broadcast_error with too_many_readers. @throws std::bad_alloc
    [[nodiscard]] reader join(event_kinds kinds = event_kinds::all());

    /// As above, with another executor for asynchronous reads.
    [[nodiscard]] reader join(const boost::asio::any_io_executor& ex,
                              event_kinds kinds = event_kinds::all());

    /// Number of readers that are not suspended.
    [[nodiscard]] std::size_t readers() const noexcept { return hub_->readers(); }
    /// Number of events published so far, for any reader.
    [[nodiscard]] std::uint64_t published() const { return hub_->published(); }

private:
    std::shared_ptr<detail::event_hub> hub_;
    boost::asio::any_io_executor executor_;
};

/// One reader of a feed. It may outlive the context: it then reads the remaining events and sees
/// that the feed is closed.
class event_feed::reader {
public:
    /// The executor of asynchronous reads.
    using executor_type = boost::asio::any_io_executor;

    reader(reader&&) noexcept = default; ///< Takes over, with a pending read.
    /// Leaves the feed, then takes over.
    reader& operator=(reader&& other) noexcept {
        reader old(std::move(*this));
        self_ = std::move(other.self_);
        return *this;
    }
    /// Leaves the feed. A pending read reports `operation_aborted`.
    ~reader() {
        if (self_)
            self_->end();
    }

    /// The executor of asynchronous reads.
    [[nodiscard]] executor_type get_executor() const noexcept {
        return self_->sleeper.timer.get_executor();
    }

    /// Copies available events to the front of `out`. Does not wait.
    [[nodiscard]] read_result try_read(std::span<timer_event> out) noexcept {
        return self_->try_read(out);
    }

    /// Waits until there is an event, or events were missed, and copies the available events to the
    /// front of `out`, which must stay valid until then.
    /// @param out room for events; not empty.
    /// @param token any completion token for `void(boost::system::error_code, pawl::read_result)`.
    ///     The error is `boost::asio::error::eof` if the context is gone and nothing is left,
    ///     `boost::asio::error::invalid_argument` if the reader is suspended or `out` is empty, and
    ///     `boost::asio::error::operation_aborted` if the read was cancelled, another read was
    ///     started, or the reader was suspended or destroyed.
    /// @par Cancellation
    /// `terminal`, `partial` and `total`; also expire_all() with the context of the reader's
    /// executor. No event is lost.
    /// @par Thread safety
    /// While a read is pending, the executor of the handler uses the reader. Call its members only
    /// there, as for a socket.
    template <class ReadToken>
    auto async_read(std::span<timer_event> out, ReadToken&& token) {
        return boost::asio::async_compose<ReadToken, void(boost::system::error_code, read_result)>(
            read_operation{self_, out}, token, self_->sleeper.timer);
    }

    /// Stops receiving events; the reader then costs the timers nothing. Reads fail. A pending read
    /// reports `operation_aborted`.
    void suspend() { self_->suspend(); }
    /// Receives what happens from now on. Events in between do not count as missed.
    void resume() { self_->resume(); }
    /// Whether the reader is suspended by suspend().
    [[nodiscard]] bool suspended() const noexcept { return self_->ring->suspended(); }

private:
    friend class event_feed;

    struct state {
        state(std::shared_ptr<detail::event_hub> h, const executor_type& ex, event_kinds k)
            : hub(std::move(h)), sleeper(ex), kinds(k), ring(hub->join(events)) {}
        state& operator=(state&&) = delete;

        [[nodiscard]] read_result try_read(std::span<timer_event> out) noexcept {
            read_result all{};
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
                if (all.count == out.size())
                    break;
                if (got.status == read_status::messages)
                    continue; // there may be more
                if (all.count != 0 || std::exchange(flushed, true))
                    break;
                hub->flush();
            }
            if (all.count != 0)
                all.status = read_status::messages;
            all.missed = events.take_missed();
            return all;
        }
        /// Moves the wanted events to the front. @return their number.
        [[nodiscard]] std::size_t keep(std::span<timer_event> all) const noexcept {
            return static_cast<std::size_t>(
                std::remove_if(all.begin(), all.end(),
                               [this](const timer_event& e) { return !kinds.contains(e.kind); }) -
                all.begin());
        }

        /// @param number the number of this wait, from begin_sleep().
        template <class Handler>
        void async_wait(Handler&& handler, std::uint64_t number) {
            const std::uint64_t position = ring->position();
            sleeper.timer.expires_at(detail::feed_timer::time_point::max()); // ends another read
            sleeper.timer.async_wait(std::forward<Handler>(handler));
            hub->sleep(sleeper, number, position);
        }
        /// Calls `handler` as soon as its executor can. post() would ask an executor that copies
        /// functions for a copy of the handler; a wait does not.
        template <class Handler>
        void async_soon(Handler&& handler) {
            hub->end_sleep(sleeper);
            sleeper.timer.expires_at(detail::feed_timer::time_point::min()); // ends another read
            sleeper.timer.async_wait(std::forward<Handler>(handler));
        }

        void suspend() {
            if (ring->suspended())
                return;
            hub->end_sleep(sleeper);
            ring->suspend();
            hub->remove_reader();
            sleeper.timer.cancel();
        }
        void resume() {
            if (ring->suspended())
                hub->come_back(*ring, events);
        }
        void end() noexcept {
            hub->end_sleep(sleeper);
            if (!ring->suspended())
                hub->remove_reader();
            ring.reset();
            sleeper.timer.cancel();
        }

        const std::shared_ptr<detail::event_hub> hub;
        detail::feed_sleeper sleeper;
        const event_kinds kinds;
        detail::event_unpacker events;
        std::optional<detail::event_ring::reader> ring; ///< until the reader leaves
    };

    /// A read: tries, and waits if there is nothing.
    struct read_operation {
        std::shared_ptr<state> self;
        std::span<timer_event> out;
        enum { begins, waits, completes } phase = begins;
        std::uint64_t number = 0; ///< of the wait
        read_result result{};
        boost::system::error_code error{};

        /// @param ec ignored: it is `operation_aborted` in all cases.
        template <class Self>
        void operator()(Self& op, [[maybe_unused]] boost::system::error_code ec = {}) {
            if (phase == completes)
                return op.complete(error, result);
            if (phase == begins)
                op.reset_cancellation_state(boost::asio::enable_total_cancellation());
            else if (!self->hub->end_sleep(self->sleeper, number) ||
                     op.cancelled() != boost::asio::cancellation_type::none)
                return op.complete(boost::asio::error::operation_aborted, {});
            read();
            if (!error && result.count == 0 && result.missed == 0) {
                phase = waits;
                number = self->hub->begin_sleep(self->sleeper);
                const std::shared_ptr<state> s = self; // the operation moves into the handler
                return s->async_wait(std::move(op), number);
            }
            if (phase == waits)
                return op.complete(error, result);
            phase = completes; // never complete from within async_read()
            const std::shared_ptr<state> s = self;
            s->async_soon(std::move(op));
        }

        void read() {
            if (!self->ring) { // the reader left before a deferred read began
                error = boost::asio::error::operation_aborted;
                return;
            }
            if (out.empty() || self->ring->suspended()) {
                error = boost::asio::error::invalid_argument;
                return;
            }
            result = self->try_read(out);
            if (result.missed == 0 && result.status == read_status::closed)
                error = boost::asio::error::eof;
        }
    };

    explicit reader(std::shared_ptr<state> s) noexcept : self_(std::move(s)) {}

    std::shared_ptr<state> self_;
};

inline event_feed::reader event_feed::join(event_kinds kinds) { return join(executor_, kinds); }

inline event_feed::reader event_feed::join(const boost::asio::any_io_executor& ex,
                                           event_kinds kinds) {
    (void)hub_->make_ring(event_feed_options{}.capacity, event_feed_options{}.readers);
    return reader(std::make_shared<reader::state>(hub_, ex, kinds));
}

/// Gives a timer a name, which events, named_timers() and gdb show. The name moves with the timer
/// and ends with it. It is stored beside the shard, not in the timer.
/// @param timer a timer on any clock and backend.
/// @param name at most 23 bytes are kept, see timer_name. An empty name removes it.
/// @throws std::bad_alloc
/// @pre The context exists.
/// @par Thread safety
/// As for a member of the timer that needs one thread at a time.
/// @par Complexity
/// O(log n) in the number of named timers. With named timers in a shard, the move and the end of
/// any timer of that shard cost the same.
template <class Timer>
void set_name(Timer& timer, std::string_view name) {
    auto& handle = detail::timer_access::handle(timer);
    handle.enroll();
    detail::hub_service::of(handle.home().context())
        ->set_name(handle.home(), handle.core(), timer_name(name));
}

/// The id of a timer, as in timer_event::timer. It is unique among existing timers, and changes
/// when the timer moves.
template <class Timer>
[[nodiscard]] std::uint64_t timer_id(Timer& timer) noexcept {
    return reinterpret_cast<std::uintptr_t>(&detail::timer_access::handle(timer).core());
}

/// The timers of `context` with names, in no particular order.
/// @throws std::bad_alloc
/// @par Complexity
/// O(n). Each lock is held for 64 timers at a time.
[[nodiscard]] inline std::vector<named_timer>
named_timers(boost::asio::execution_context& context) {
    return detail::hub_service::of(context)->named();
}

} // namespace pawl

#endif // PAWL_EVENT_FEED_HPP
