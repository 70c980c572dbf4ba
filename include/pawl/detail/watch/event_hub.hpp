// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Collects the reports of all shards of a context, for readers of events and for statistics.
///
/// Model
///   shard --note--> shard_probe, a batch of events --publish--> broadcast_ring --> readers
///                       +--> histograms
///   A batch is published when it is full, when a reader finds nothing else, and, if a reader
///   sleeps, at the beginning of a turn of the context. A sleeping reader waits on a timer that
///   never expires, and is on a list here. The next event triggers a turn, which cancels that wait
///   and takes the reader off the list.
///
/// Invariants
///   - No lost wake-up: while the hub is unlocked and a reader is on the list, there is nothing for
///     it to read, or a turn is to come. (Under the lock of the hub, a reader goes on the list,
///     takes each shard's lock to publish its batch, and looks. Earlier events are then published;
///     later ones see the list.)
///   - Once its wait has begun, another thread may use a reader, through the handler of the wait.
///     So the hub does not touch it. The number of the wait tells whether that wait is still the
///     latest.
///
/// Threads
///   All members may be called from any thread. Lock order: hub, shard, the ring's writers. User
///   code never runs under a lock, except for a clock, which the hub reads.
///
/// Cost
///   A batch is 64 records of 32 bytes. The first reader makes the ring. Writers of the ring take
///   one lock per batch: that costs less than the states per slot that a ring without this lock
///   needs.
#ifndef PAWL_DETAIL_WATCH_EVENT_HUB_HPP
#define PAWL_DETAIL_WATCH_EVENT_HUB_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/broadcast_ring.hpp>
#include <pawl/on_backend.hpp>
#include <pawl/timer_event.hpp>

#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/service_registry.hpp>
#include <pawl/detail/service/spin_mutex.hpp>

#include <pawl/time/binary_wheel.hpp>

#include <pawl/detail/watch/event_record.hpp>
#include <pawl/duration_histogram.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pawl::detail {

using event_ring = broadcast_ring<event_record, slow_readers::lag, ring_writers::one>;

class event_hub;

struct longest_times {
    longest_handler handler;
    longest_turn turn;

    void merge(const longest_times& other) noexcept {
        if (handler.time < other.handler.time)
            handler = other.handler;
        if (turn.time < other.turn.time)
            turn = other.turn;
    }
};

/// Observes one shard.
class shard_probe final : public shard_observer, public std::enable_shared_from_this<shard_probe> {
public:
    shard_probe(event_hub& hub, observed_shard& shard)
        : hub_(hub), shard_(&shard), precision_(shard.precision()) {}

    bool note(const happening& h, const moment& now) noexcept override;
    void publish() noexcept override;
    void tell() override;

    void moved(const timer_core& from, const timer_core* to) noexcept override {
        auto node = names_.extract(&from);
        if (node && to) {
            node.key() = to;
            PAWL_ASSERT(!names_.contains(to)); // it was left before it takes the place of another
            names_.insert(std::move(node));
        }
    }

    void complete(wait_operation& op, observed_shard::lock_type& mutex, turn_watch& turn) override {
        if (!measured_.load(std::memory_order_relaxed)) // relaxed: a late change is harmless
            return op.complete();
        const stopwatch time{shared_from_this(), name_of(op, mutex), turn};
        op.complete();
    }

private:
    friend class event_hub;

    using names = std::map<const timer_core*, timer_name>;

    /// Reports even if the handler throws.
    struct stopwatch {
        const std::shared_ptr<shard_probe> probe; // the handler may outlive its context
        const timer_name name;
        turn_watch& turn;
        const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

        ~stopwatch() {
            const auto end = std::chrono::steady_clock::now();
            probe->handlers_.add(end - begin);
            if (turn.began == std::chrono::steady_clock::time_point{})
                turn.began = begin;
            const std::scoped_lock lock(probe->longest_mutex_);
            probe->longest_.merge({longest_handler{end - begin, name},
                                   longest_turn{end - turn.began, ++turn.handlers}});
        }
    };

    /// Of the timer of a wait that has begun: looked up before its handler may destroy the timer.
    [[nodiscard]] timer_name name_of(const wait_operation& op, observed_shard::lock_type& mutex) {
        const std::scoped_lock lock(mutex);
        const auto name = names_.find(op.owner());
        return name != names_.end() ? name->second : timer_name();
    }

    [[nodiscard]] std::chrono::nanoseconds between(std::uint64_t due, std::uint64_t tick,
                                                   std::int64_t past) const noexcept {
        // Saturates, because a clock may be set by any amount.
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
        const bool later = tick >= due;
        const std::uint64_t ticks = later ? tick - due : due - tick;
        const std::int64_t ns = ticks < static_cast<std::uint64_t>(most / precision_.count())
                                    ? static_cast<std::int64_t>(ticks) * precision_.count()
                                    : most;
        return std::chrono::nanoseconds((later ? ns : -ns) + std::clamp(past, -most, most));
    }

    /// Never negative, even if the clock was set back.
    [[nodiscard]] std::chrono::nanoseconds late(time::tick due, const moment& now) const noexcept {
        return std::max(between(due.count(), now.tick.count(), now.past.count()),
                        std::chrono::nanoseconds::zero());
    }

    event_hub& hub_;
    observed_shard* shard_; ///< null once closed; guarded by the hub
    const std::chrono::nanoseconds precision_;
    live_histogram lateness_;
    live_histogram handlers_;
    spin_mutex longest_mutex_; ///< last in the lock order
    longest_times longest_;

    void add(const event_record& r) noexcept {
        const std::size_t n = size_.load(std::memory_order_relaxed);
        batch_[n] = r;
        size_.store(n + 1, std::memory_order_relaxed);
    }

    // Guarded by the lock of the shard.
    names names_;
    bool read_ = false; ///< there are readers that are not suspended
    std::array<event_record, 64> batch_;
    std::atomic<std::size_t> size_{0};  ///< of the batch; also read without that lock
    std::atomic<bool> measured_{false}; ///< statistics measure times; read without that lock
};

/// How a reader waits: on a timer that never expires. The service of these timers is not observed
/// itself.
struct feed_wait_traits : boost::asio::wait_traits<std::chrono::steady_clock> {
    using is_unobserved = void; ///< see timer_service::watch()
};
using feed_timer = basic_waitable_timer<std::chrono::steady_clock,
                                        on_backend<time::binary_wheel, feed_wait_traits>>;

/// A reader that may sleep.
class feed_sleeper {
public:
    explicit feed_sleeper(const boost::asio::any_io_executor& ex) : timer(ex) {}

    feed_timer timer;

private:
    friend class event_hub;

    // Guarded by the hub.
    std::uint64_t wait_ = 0; ///< number of the latest wait
    feed_sleeper* next_ = nullptr;
    bool listed_ = false;
    bool woken_ = false; ///< the hub has cancelled that wait
};

class event_hub final : public context_watcher {
public:
    // --- shards -------------------------------------------------------------------------------

    void add(observed_shard& shard) override {
        const std::scoped_lock lock(mutex_);
        if (find(shard))
            return;
        probes_.push_back(std::make_shared<shard_probe>(*this, shard));
        set(*probes_.back());
    }

    void remove(observed_shard& shard) noexcept override {
        const std::scoped_lock lock(mutex_);
        if (shard_probe* const probe = find(shard))
            close(shard, *probe);
    }

    // --- readers ------------------------------------------------------------------------------

    /// Makes the ring, unless it exists.
    /// @return false if it exists with another size.
    /// @throws broadcast_error, std::bad_alloc
    bool make_ring(std::size_t capacity, std::size_t readers) {
        const std::scoped_lock lock(mutex_);
        if (!ring_) {
            ring_.emplace(capacity, readers);
            most_readers_ = readers;
        }
        return ring_->capacity() == capacity && most_readers_ == readers;
    }

    /// @param events belongs to this reader.
    /// @pre the ring exists.
    [[nodiscard]] event_ring::reader join(event_unpacker& events) {
        const std::scoped_lock lock(mutex_);
        auto reader = ring_->join_newest();
        begin_now(reader, events);
        return reader;
    }
    /// A reader has left the ring, or is suspended.
    void remove_reader() noexcept {
        const std::scoped_lock lock(mutex_);
        readers_.fetch_sub(1, std::memory_order_relaxed);
        set_all();
    }
    /// A reader has resumed.
    void come_back(event_ring::reader& reader, event_unpacker& events) noexcept {
        const std::scoped_lock lock(mutex_);
        begin_now(reader, events);
    }
    /// Number of readers that are not suspended.
    [[nodiscard]] std::size_t readers() const noexcept {
        return readers_.load(std::memory_order_relaxed);
    }
    /// Number of events in the ring so far.
    [[nodiscard]] std::uint64_t published() const noexcept {
        return events_.load(std::memory_order_relaxed);
    }

    /// Publishes everything noted so far.
    void flush() noexcept {
        const std::scoped_lock lock(mutex_);
        for (const auto& p : probes_) {
            if (p->shard_ && p->size_.load(std::memory_order_relaxed) != 0) {
                const std::scoped_lock order(p->shard_->mutex());
                p->publish();
            }
        }
    }

    /// Before a wait of a reader begins. The hub then ignores an earlier wait.
    /// @return the number of the new wait.
    std::uint64_t begin_sleep(feed_sleeper& s) noexcept {
        const std::scoped_lock lock(mutex_);
        unlist(s);
        s.woken_ = false;
        return ++s.wait_;
    }
    /// The wait has begun: the next event ends it. Ends it now if there is an event, or the ring is
    /// closed.
    /// @param position of the reader, before the wait began.
    void sleep(feed_sleeper& s, std::uint64_t number, std::uint64_t position) {
        const std::scoped_lock lock(mutex_);
        if (s.wait_ != number)
            return; // it is already over
        PAWL_ASSERT(!s.listed_);
        s.next_ = std::exchange(sleepers_, &s);
        s.listed_ = true;
        sleeping_.store(true, std::memory_order_relaxed);
        publish_all(); // no lost wake-up
        if (ring_->published() != position || ring_->closed())
            wake(s);
    }
    /// The handler of a wait begins.
    /// @return true if the hub has ended the wait; false if it was cancelled.
    [[nodiscard]] bool end_sleep(feed_sleeper& s, std::uint64_t number) noexcept {
        const std::scoped_lock lock(mutex_);
        if (s.wait_ != number)
            return false;
        ++s.wait_;
        unlist(s);
        return s.woken_;
    }
    /// Before the wait is cancelled.
    void end_sleep(feed_sleeper& s) noexcept { begin_sleep(s); }
    /// Wakes all readers.
    void wake_all() {
        const std::scoped_lock lock(mutex_);
        while (sleepers_)
            wake(*sleepers_);
    }
    [[nodiscard]] bool sleeping() const noexcept {
        return sleeping_.load(std::memory_order_relaxed);
    }

    /// The context is gone: readers read the remaining events.
    void close() {
        {
            const std::scoped_lock lock(mutex_);
            if (ring_)
                ring_->close();
        }
        wake_all();
    }

    // --- names --------------------------------------------------------------------------------

    /// @param name empty to remove the name.
    /// @throws std::bad_alloc
    void set_name(observed_shard& shard, const timer_core& timer, const timer_name& name) {
        shard_probe::names mine;
        if (!name.view().empty())
            mine.emplace(&timer, name);
        const std::scoped_lock lock(mutex_);
        shard_probe* const probe = find(shard);
        if (!probe)
            return;                        // its context shuts down
        shard_probe::names::node_type old; // freed without the lock
        {
            const std::scoped_lock order(shard.mutex());
            old = probe->names_.extract(&timer);
            probe->names_.merge(mine);
        }
        set(*probe);
    }

    /// Timers with names, in no particular order. Each lock is held for 64 timers at a time.
    [[nodiscard]] std::vector<named_timer> named() const {
        std::vector<named_timer> all;
        for (const auto& p : probes()) {
            const timer_core* last = nullptr;
            for (bool more = true; more;) {
                if (all.capacity() - all.size() < batch) // outside the locks
                    all.reserve(2 * all.size() + batch);
                const std::scoped_lock lock(mutex_);
                if (!p->shard_)
                    break;
                const moment now = p->shard_->read_clock();
                const std::scoped_lock order(p->shard_->mutex());
                auto n = p->names_.upper_bound(last);
                for (std::size_t i = 0; i != batch && n != p->names_.end(); ++i, ++n) {
                    last = n->first;
                    std::size_t waits = 0;
                    last->for_each_wait([&](const wait_operation&) { ++waits; });
                    all.push_back(
                        {n->second,
                         -p->between(last->due.count(), now.tick.count(), now.past.count()),
                         waits});
                }
                more = n != p->names_.end();
            }
        }
        return all;
    }

    // --- measuring ----------------------------------------------------------------------------

    void measure(bool on) noexcept {
        const std::scoped_lock lock(mutex_);
        measuring_.store(on, std::memory_order_relaxed);
        for (const auto& p : probes_) {
            const std::scoped_lock order(p->longest_mutex_);
            if (on)
                p->longest_ = {};
        }
        set_all();
    }
    [[nodiscard]] bool measuring() const noexcept {
        return measuring_.load(std::memory_order_relaxed);
    }
    /// @return the longest of all shards.
    longest_times add_to(duration_histogram& lateness, duration_histogram& handlers) const {
        longest_times longest;
        const std::scoped_lock lock(mutex_);
        for (const auto& p : probes_) {
            p->lateness_.add_to(lateness);
            p->handlers_.add_to(handlers);
            const std::scoped_lock order(p->longest_mutex_);
            longest.merge(p->longest_);
        }
        return longest;
    }

private:
    friend class shard_probe;

    static constexpr std::size_t batch = 64;

    [[nodiscard]] std::vector<std::shared_ptr<shard_probe>> probes() const {
        const std::scoped_lock lock(mutex_);
        return probes_;
    }

    [[nodiscard]] shard_probe* find(const observed_shard& shard) const noexcept {
        for (const auto& p : probes_) {
            if (p->shard_ == &shard)
                return p.get();
        }
        return nullptr;
    }

    void begin_now(event_ring::reader& reader, event_unpacker& events) noexcept {
        publish_all(); // a new reader must not see earlier events
        {
            const std::scoped_lock order(writing_);
            reader.resume_newest();
            events.begin_at(published());
        }
        readers_.fetch_add(1, std::memory_order_relaxed);
        set_all();
    }

    /// Under the lock of the shard of the records.
    void write(std::span<event_record> records) noexcept {
        const std::scoped_lock order(writing_);
        std::uint64_t number = published();
        for (event_record& r : records) {
            r.number = static_cast<std::uint32_t>(number);
            number += r.names() ? 0 : 1;
        }
        ring_->write(records);
        events_.store(number, std::memory_order_relaxed);
    }

    void unlist(feed_sleeper& s) noexcept {
        if (!std::exchange(s.listed_, false))
            return;
        feed_sleeper** at = &sleepers_;
        while (*at != &s) {
            PAWL_ASSERT(*at); // it is on the list
            at = &(*at)->next_;
        }
        *at = s.next_;
        sleeping_.store(sleepers_ != nullptr, std::memory_order_relaxed);
    }

    static void close(observed_shard& shard, shard_probe& p) noexcept {
        shard_probe::names old; // freed without the lock
        const std::scoped_lock order(shard.mutex());
        p.publish();
        shard.observe(nullptr, false, false, {});
        p.names_.swap(old);
        p.shard_ = nullptr;
    }
    void set(shard_probe& p) noexcept {
        if (!p.shard_)
            return;
        const bool watched = readers() != 0 || measuring();
        const moment now = watched ? p.shard_->read_clock() : moment{};
        const std::scoped_lock order(p.shard_->mutex());
        p.shard_->observe(&p, watched, !p.names_.empty(), now);
        p.read_ = readers() != 0;
        p.measured_.store(measuring(), std::memory_order_relaxed);
        if (!p.read_)
            p.size_.store(0, std::memory_order_relaxed); // no reader wants them
    }
    void set_all() noexcept {
        for (const auto& p : probes_)
            set(*p);
    }
    /// Takes the lock of each shard, also of those without events: their next event then sees
    /// earlier changes.
    void publish_all() noexcept {
        for (const auto& p : probes_) {
            if (p->shard_) {
                const std::scoped_lock order(p->shard_->mutex());
                p->publish();
            }
        }
    }

    void wake(feed_sleeper& s) {
        unlist(s);
        s.woken_ = true;
        s.timer.cancel();
    }

    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<shard_probe>> probes_; ///< those of closed shards, too
    std::optional<event_ring> ring_;
    std::size_t most_readers_ = 0;
    std::atomic<std::size_t> readers_{0};
    feed_sleeper* sleepers_ = nullptr;
    std::atomic<bool> sleeping_{false}; ///< the list is not empty
    std::atomic<bool> measuring_{false};

    spin_mutex writing_;                   ///< last in the lock order
    std::atomic<std::uint64_t> events_{0}; ///< events in the ring so far; written under writing_
};

inline bool shard_probe::note(const happening& h, const moment& now) noexcept {
    std::chrono::nanoseconds lateness{};
    if (h.what == timer_event_kind::due) {
        lateness = late(h.due, {h.now, {}});
    } else if (h.what == timer_event_kind::started) {
        lateness = late(h.due, now);
        if (measured_.load(std::memory_order_relaxed))
            lateness_.add(lateness);
    }
    if (!read_)
        return false;
    const auto name = names_.empty() ? names_.end() : names_.find(h.timer);
    const bool named = name != names_.end();
    if (named)
        add(event_record::of(name->second));
    add(event_record::of(h.what, reinterpret_cast<std::uintptr_t>(h.timer), h.due.count(), lateness,
                         h.waits, named));
    // Leaves room for an event with a name.
    if (size_.load(std::memory_order_relaxed) + 2 > batch_.size())
        publish();
    return hub_.sleeping();
}

inline void shard_probe::publish() noexcept {
    const std::size_t n = size_.load(std::memory_order_relaxed);
    if (n == 0)
        return;
    hub_.write(std::span(batch_.data(), n));
    size_.store(0, std::memory_order_relaxed);
}

inline void shard_probe::tell() { hub_.wake_all(); }

/// The hub of a context. Made for the first observer; readers may keep the hub longer than the
/// context.
class hub_service final : public boost::asio::execution_context::service {
public:
    using key_type = hub_service;

    static inline boost::asio::execution_context::id id;

    explicit hub_service(boost::asio::execution_context& context)
        : boost::asio::execution_context::service(context),
          registry_(boost::asio::use_service<service_registry>(context)),
          hub_(std::make_shared<event_hub>()) {}
    ~hub_service() { hub_->close(); }

    /// The hub, which observes all shards.
    /// @throws std::bad_alloc
    [[nodiscard]] static const std::shared_ptr<event_hub>&
    of(boost::asio::execution_context& context) {
        auto& self = boost::asio::use_service<hub_service>(context);
        // Not in the constructor: a failure would have to undo the registrations.
        const std::scoped_lock lock(self.mutex_);
        if (!self.watches_)
            self.registry_.watch(self.hub_);
        self.watches_ = true;
        return self.hub_;
    }

private:
    // Shards that close after this one still have events.
    void shutdown() override {}

    service_registry& registry_;
    std::mutex mutex_; ///< before all others
    bool watches_ = false;
    const std::shared_ptr<event_hub> hub_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WATCH_EVENT_HUB_HPP
