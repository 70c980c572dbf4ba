// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::expiring_map: keys with a time to live. For caches, sessions, and requests that await a
/// reply.
/// The entries are in detail/time/expiring_table.hpp; here are the clock, the alarm, and the waits.
#ifndef PAWL_EXPIRING_MAP_HPP
#define PAWL_EXPIRING_MAP_HPP

#include <pawl/config.hpp>

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/limit/expired_waits.hpp>
#include <pawl/detail/limit/post_result.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/time/durations.hpp>
#include <pawl/detail/time/expiring_table.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/container_hash/hash.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pawl {

/// How long entries of an expiring_map live.
struct expiring_map_options {
    /// The time to live of entries that are given none.
    detail::saturated<std::chrono::nanoseconds> ttl = std::chrono::nanoseconds(0);
    /// find() begins the time to live of an entry anew. It then reads the clock.
    bool refresh_on_use = false;
    /// The most entries. One more removes the one that was not inserted, found or touched for
    /// longest.
    std::size_t capacity = std::numeric_limits<std::size_t>::max();
    /// Expired entries are kept for async_pop_expired(). Otherwise they are destroyed.
    bool keep_expired = false;
    /// An expired entry may stay this much longer, so that fewer wake-ups remove more entries.
    detail::saturated<std::chrono::nanoseconds> slack = std::chrono::nanoseconds(0);
};

/// A hash table whose entries expire.
///
/// @code
/// pawl::expiring_map<std::string, session> sessions(context, {.ttl = 30min, .refresh_on_use = true});
/// sessions.insert(token, session(user));
/// if (session* s = sessions.find(token)) ...
/// @endcode
///
/// An entry is never removed before its time is up. After it, the entry is removed as the function
/// of an alarm is called: within a precision, the time of the executor, and options `slack`. Until
/// then find(key) still finds it, because it reads no clock; find(key, now) does not, and neither
/// does find(key) with `refresh_on_use`. An insertion replaces it.
///
/// A pointer to a value is good until the next call that inserts or removes, and the next turn of
/// the executor.
///
/// The alarm is outstanding work while there are entries that expire, and so is a wait of
/// async_pop_expired(). cancel_all(), expire_all(), and options::max_pending stop the alarm; the
/// next insertion or async_pop_expired() arms it again. A wait that starts meanwhile, and that these
/// calls do not end, is served, unless keep_running() of an alarm has no effect: then after the next
/// of these two. Arithmetic on time saturates; an entry that is due at `time_point::max()` does not
/// expire.
///
/// @tparam Key, Value are moved and swapped without exceptions. They need not be copied.
/// @tparam Clock a steady clock
/// @tparam Hash, Equal as with `boost::unordered_flat_map`. If both have `is_transparent`, members
///     that take a `const K&` take whatever these two do. They may throw: then nothing has changed.
/// @tparam Executor the type of I/O executor
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: Unsafe. If several threads run the
/// context, give it a strand, and use and destroy it there. The handlers of async_pop_expired() may
/// run anywhere.
/// @par Complexity
/// A lookup is that of `boost::unordered_flat_map`. An insertion adds one allocation and the O(1)
/// of a wheel. Expiry is amortised O(log ttl) moves of a node for each entry, as in
/// time::binary_wheel.
template <class Key, class Value, class Clock, class Hash = boost::hash<Key>,
          class Equal = std::equal_to<Key>, class Executor = boost::asio::any_io_executor>
class basic_expiring_map {
    static_assert(Clock::is_steady, "pawl: an expiring_map needs a steady clock");
    static_assert(std::is_nothrow_move_constructible_v<Key> &&
                      std::is_nothrow_move_constructible_v<Value> &&
                      std::is_nothrow_swappable_v<Value>,
                  "pawl: keys and values of an expiring_map are moved and swapped without "
                  "exceptions; put others into a std::unique_ptr");

public:
    using executor_type = Executor;                     ///< The type of the executor.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    using key_type = Key;                               ///< The keys.
    using mapped_type = Value;                          ///< The values.
    using value_type = std::pair<Key, Value>;           ///< An entry that has left the map.
    /// The signature of async_pop_expired().
    using pop_signature = void(boost::system::error_code, std::optional<value_type>);

    /// @throws std::invalid_argument unless `ttl > 0`, `capacity > 0` and `slack >= 0`.
    /// std::bad_alloc.
    basic_expiring_map(const executor_type& ex, const expiring_map_options& o, Hash hash = Hash(),
                       Equal equal = Equal())
        : ttl_(checked(o)), slack_(detail::saturating_cast<duration>(o.slack)),
          refreshes_(o.refresh_on_use), keeps_(o.keep_expired), executor_(ex),
          table_(o.capacity, keeps_, Clock::now(), std::move(hash), std::move(equal)),
          alarm_(ex, sweeper{this}) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_expiring_map(ExecutionContext& context, const expiring_map_options& o, Hash hash = Hash(),
                       Equal equal = Equal())
        : basic_expiring_map(executor_type(context.get_executor()), o, std::move(hash),
                             std::move(equal)) {}

    basic_expiring_map& operator=(basic_expiring_map&&) = delete;

    /// Destroys all entries, also those kept for async_pop_expired(), whose waits are aborted.
    ~basic_expiring_map() = default;

    /// The executor of the map.
    const executor_type& get_executor() const noexcept { return executor_; }

    /// The number of entries, including those that have expired and were not removed yet.
    [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// The number of entries that wait for async_pop_expired().
    [[nodiscard]] std::size_t expired_size() const noexcept { return table_.expired.size(); }

    /// The value of a key, which counts as a use; nullptr if there is none.
    template <class K = Key>
    [[nodiscard]] Value* find(const K& key) {
        return used(table_.find(key));
    }

    /// As find(key), and nullptr if the entry has expired by `now`. With `refresh_on_use` the time
    /// to live begins at `now`.
    template <class K = Key>
    [[nodiscard]] Value* find(const K& key, time_point now) {
        return used(table_.find(key), now);
    }

    /// As find(key), without counting as a use. Reads no clock.
    template <class K = Key>
    [[nodiscard]] const Value* peek(const K& key) const {
        const auto found = table_.find(key);
        return found == table_.end() ? nullptr : &found->second;
    }

    /// Inserts an entry with a `ttl` of its own, for as long as it is in the map, unless there is
    /// one with that key, which keeps its time to live.
    /// @return the value in the map, and whether it is the new one.
    /// @throws std::invalid_argument unless `ttl > 0`. std::bad_alloc. What hash and equality
    /// throw.
    ///     What the clock throws. The map is then as it was.
    /// @par Complexity
    /// O(1), amortised for the growth of the table. One allocation.
    std::pair<Value*, bool> insert(Key key, Value value, detail::saturated<duration> ttl) {
        return put(std::move(key), value, positive(ttl), false);
    }
    /// As above, with the time to live of the options.
    std::pair<Value*, bool> insert(Key key, Value value) {
        return put(std::move(key), value, ttl_, false);
    }

    /// As insert(), but replaces the value of an entry with that key, and begins its time to live
    /// anew.
    std::pair<Value*, bool> insert_or_assign(Key key, Value value,
                                             detail::saturated<duration> ttl) {
        return put(std::move(key), value, positive(ttl), true);
    }
    /// As above, with the time to live of the options.
    std::pair<Value*, bool> insert_or_assign(Key key, Value value) {
        return put(std::move(key), value, ttl_, true);
    }

    /// Begins the time to live of an entry anew, with another one.
    /// @return false if there is no such entry, or it has expired.
    /// @throws as insert().
    template <class K>
    bool touch(const K& key, detail::saturated<duration> ttl) {
        positive(ttl);
        const auto found = table_.find(key);
        const time_point now = Clock::now();
        if (found == table_.end() || table_.has_expired(found, now))
            return false;
        arm_for(table_.expiry_after(now, ttl)); // first: the clock may throw
        table_.restart(found, now, ttl);
        return true;
    }

    /// Removes an entry and destroys it.
    /// @return whether there was one, expired or not.
    /// @throws what hash and equality throw.
    template <class K>
    bool erase(const K& key) {
        const auto found = table_.find(key);
        if (found == table_.end())
            return false;
        [[maybe_unused]] const value_type removed = table_.take(found); // destroyed last
        rest();
        return true;
    }

    /// Removes and destroys all entries, but not those that have expired and are kept.
    /// @throws what copies of hash and equality throw, with nothing changed.
    void clear() {
        table_.clear([this] { rest(); });
    }

    /// Waits for an entry that has expired, and takes it. Entries come in the order of their
    /// expiry; waits get them in the order of their start.
    ///
    /// The handler receives no error and an entry; or `boost::asio::error::operation_aborted` and
    /// none, if the wait was cancelled, or the map destroyed; or what else basic_waitable_timer
    /// reports. It is never invoked from within this function.
    ///
    /// @param token any completion token for #pop_signature.
    /// @throws std::invalid_argument without the option `keep_expired`. std::bad_alloc. What the clock
    ///     throws. No wait is then started.
    /// @par Cancellation
    /// `terminal`, `partial` and `total`. A wait that was given an entry completes with it: none is
    /// lost, unless the handler is destroyed with its context.
    /// @par Complexity
    /// O(number of waits). One allocation by the associated allocator, and two others.
    template <class PopToken = boost::asio::deferred_t>
    auto async_pop_expired(PopToken&& token = PopToken()) {
        return boost::asio::async_initiate<PopToken, pop_signature>(
            detail::initiation(
                executor_,
                [this]<class Handler>(Handler&& handler) {
                    if (!keeps_)
                        throw std::invalid_argument(
                            "pawl: async_pop_expired() needs the option keep_expired "
                            "of the expiring_map");
                    keep_running(true);
                    if (!alarm_.armed()) // see arm_for()
                        arm(table_.next_expiry(), slack_);
                    waits_.start(executor_, std::forward<Handler>(handler));
                    serve();
                }),
            token);
    }

private:
    template <class, class, class>
    friend class basic_delay_queue;

    using table_type = detail::expiring_table<Key, Value, Clock, Hash, Equal>;
    using iterator = typename table_type::iterator;

    struct sweeper {
        using pawl_always_called = void;
        basic_expiring_map* map;
        void operator()(const boost::system::error_code& ec) const {
            ec ? map->resume() : map->sweep();
        }
    };

    static duration checked(const expiring_map_options& o) {
        if (o.capacity == 0)
            throw std::invalid_argument("pawl: the capacity of an expiring_map must not be 0; "
                                        "leave it out for no bound");
        if (o.slack < o.slack.zero())
            throw std::invalid_argument("pawl: the slack of an expiring_map must not be negative");
        return positive(detail::saturating_cast<duration>(o.ttl));
    }
    static duration positive(duration ttl) {
        if (!(ttl > duration::zero()))
            throw std::invalid_argument("pawl: a time to live must be greater than zero");
        return ttl;
    }

    Value* used(iterator found) {
        if (found == table_.end())
            return nullptr;
        if (refreshes_)
            return used(found, Clock::now());
        table_.note_use(found);
        return &found->second;
    }
    Value* used(iterator found, time_point now) {
        if (found == table_.end() || table_.has_expired(found, now))
            return nullptr;
        if (refreshes_)
            table_.refresh(found, now);
        else
            table_.note_use(found);
        return &found->second;
    }
    std::pair<Value*, bool> put(Key&& key, Value& value, duration ttl, bool replaces) {
        typename table_type::gone_type gone; // foreign code runs last
        const time_point now = Clock::now();
        const auto [entry, is_new] = table_.put(std::move(key), value, now, ttl, gone);
        if (is_new) {
            try {
                arm_for(table_.expiry(entry));
            } catch (...) { // the clock
                (void)table_.take(entry);
                throw;
            }
            table_.evict(gone);
        } else if (replaces) {
            arm_for(table_.expiry_after(now, ttl));
            table_.assign(entry, value, now, ttl);
        }
        Value* const there = &entry->second;
        serve();
        return {there, is_new};
    }

    /// The alarm has gone off.
    void sweep() {
        typename table_type::gone_type gone; // foreign code runs last
        try {
            const bool more = table_.expire(Clock::now(), gone);
            arm(table_.next_expiry(), more ? duration::zero() : slack_);
        } catch (...) { // the clock, or an entry that cannot be kept now: try again
            detail::timer_access::arm_now(alarm_);
            serve();
            throw;
        }
        serve();
    }

    /// expire_all() or cancel_all() has ended the alarm. A wait that is pending may have started in a
    /// shard that they had left: then it needs the alarm. If they have not reached it yet, it will
    /// end, and run() must return.
    void resume() {
        if (!waits_.pending() || !detail::timer_access::handle(alarm_).home().driver_stays(true))
            return;
        keep_running(false);
        arm(table_.next_expiry(), slack_);
    }
    void keep_running(bool on) noexcept {
        if (std::exchange(keeps_running_, on) != on)
            alarm_.keep_running(on);
    }

    /// Keeps the alarm no later than the slack after `expiry`, which an entry has or will have.
    void arm_for(time_point expiry) {
        keep_running(true);
        if (!alarm_.armed()) // maybe it was disarmed by cancel_all()
            return arm(std::min(expiry, table_.next_expiry()), slack_);
        const time_point at = detail::saturating_sum(expiry, slack_);
        if (at < alarm_.expiry())
            alarm_.arm_at(at);
    }
    void arm(time_point next, duration slack) {
        if (next == time_point::max())
            alarm_.disarm();
        else
            alarm_.arm_at(detail::saturating_sum(next, slack));
    }
    /// Entries have left.
    void rest() noexcept {
        if (empty())
            alarm_.disarm();
    }

    void serve() { waits_.serve(table_.expired); }

    const duration ttl_;
    const duration slack_;
    const bool refreshes_;
    const bool keeps_;
    bool keeps_running_ = true; ///< see resume()
    Executor executor_;
    mutable table_type table_; // find() is not const, also for peek()
    detail::expired_waits<value_type,
                          basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>>
        waits_;
    basic_alarm<sweeper, Clock, Executor> alarm_;
};

/// A map on `std::chrono::steady_clock`. See basic_expiring_map.
template <class Key, class Value, class Hash = boost::hash<Key>, class Equal = std::equal_to<Key>,
          class Executor = boost::asio::any_io_executor>
using expiring_map = basic_expiring_map<Key, Value, detail::steady_clock, Hash, Equal, Executor>;

} // namespace pawl

#endif // PAWL_EXPIRING_MAP_HPP
