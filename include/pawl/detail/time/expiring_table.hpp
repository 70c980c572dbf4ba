// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The entries of an expiring_map: a hash table, a wheel for their expiries, and the order of
///   their
///   uses. Reads no clock: `now` is an argument.
///
/// Model
///   A `boost::unordered_flat_map` has keys and values side by side, so that a lookup reads
///   what it reads there. With each key is a pointer to an item, which stays where it is: a node of
///   the wheel, a link in the list of uses, and the hash. A lookup does not read it, unless uses
///   count.
///
/// Invariants
///   - Own-functions invariant: from an item, the table finds its entry by hash and address. So
///     neither growth, expiry nor eviction calls the functions of the user: what they throw would
///     lose entries.
///   - Filed invariant: every item is in the wheel, except in expire().
///   - Last-words invariant: what a call removes goes to `gone`, which the caller destroys when the
///     table is complete again. A destructor may use the table, and even destroy it.
///
/// Threads
///   None. The owner serialises all calls.
#ifndef PAWL_DETAIL_TIME_EXPIRING_TABLE_HPP
#define PAWL_DETAIL_TIME_EXPIRING_TABLE_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/tick.hpp>

#include <boost/container/static_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/unordered/hash_traits.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <list>
#include <memory>
#include <type_traits>
#include <utility>

// Not in detail, whose prefetch() Boost would find beside its own.
namespace pawl::detail::expiring {

using use_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

/// What belongs to a key, and stays where it is.
template <class Duration>
struct item : time::timer_node, use_hook {
    std::size_t hash = 0;
    Duration ttl{};
};

/// A key in the table.
template <class Key, class Item>
struct slot {
    mutable Key key; ///< moved from when the entry leaves
    Item* item;
};

/// The entry of an item.
template <class Item>
struct entry_of {
    const Item* item;
};

/// A key whose hash is known.
template <class K>
struct hashed_key {
    const K& key;
    std::size_t hash;
};

template <class Hash>
struct avalanche_of {};
template <class Hash>
    requires boost::unordered::hash_is_avalanching<Hash>::value
struct avalanche_of<Hash> {
    using is_avalanching = void;
};

/// Calls the user's function only for keys that come from outside.
template <class Hash, class Key, class Item>
struct slot_hash : avalanche_of<Hash> {
    using is_transparent = void;
    using slot_type = slot<Key, Item>;

    std::size_t operator()(const slot_type& s) const { return s.item->hash; }
    std::size_t operator()(const entry_of<Item>& e) const noexcept { return e.item->hash; }
    template <class K>
    std::size_t operator()(const hashed_key<K>& k) const noexcept {
        return k.hash;
    }
    template <class K>
    std::size_t operator()(const K& key) const {
        return hash(key);
    }

    [[no_unique_address]] Hash hash;
};

template <class Equal, class Key, class Item>
struct slot_equal {
    using is_transparent = void;
    using slot_type = slot<Key, Item>;

    bool operator()(const slot_type& a, const slot_type& b) const noexcept {
        return a.item == b.item;
    }
    bool operator()(const entry_of<Item>& a, const slot_type& b) const noexcept {
        return a.item == b.item;
    }
    template <class K>
    bool operator()(const hashed_key<K>& a, const slot_type& b) const {
        return equal(a.key, b.key);
    }
    template <class K>
    bool operator()(const K& a, const slot_type& b) const {
        return equal(a, b.key);
    }

    [[no_unique_address]] Equal equal;
};

} // namespace pawl::detail::expiring

namespace pawl::detail {

/// Whether two function objects take what is not a key.
template <class Hash, class Equal>
concept transparent = requires {
    typename Hash::is_transparent;
    typename Equal::is_transparent;
};

/// @tparam Clock only its time points are used
template <class Key, class Value, class Clock, class Hash, class Equal>
class expiring_table {
    using item = expiring::item<typename Clock::duration>;
    using slot = expiring::slot<Key, item>;
    using hasher = expiring::slot_hash<Hash, Key, item>;
    using equality = expiring::slot_equal<Equal, Key, item>;
    using flat_map = boost::unordered_flat_map<slot, Value, hasher, equality>;

public:
    using duration = typename Clock::duration;
    using time_point = typename Clock::time_point;
    using value_type = std::pair<Key, Value>;
    using iterator = typename flat_map::iterator;

    /// The most entries that a call removes: 64, but 4 KB of the stack.
    static constexpr std::size_t batch = std::clamp<std::size_t>(4096 / sizeof(value_type), 2, 64);
    using gone_type = boost::container::static_vector<value_type, batch>;

    static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

    /// @param keeps expired entries go to `expired`, not to `gone`.
    expiring_table(std::size_t capacity, bool keeps, time_point now, Hash hash, Equal equal)
        : capacity_(capacity), keeps_(keeps), hash_(hash),
          map_(0, hasher{{}, std::move(hash)}, equality{std::move(equal)}),
          wheel_(scale_.floor(now)) {}
    expiring_table& operator=(expiring_table&&) = delete;
    ~expiring_table() {
        for (auto& e : map_)
            delete e.first.item;
    }

    [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }

    /// In the order of their expiry.
    std::list<value_type> expired;

    /// With the user's functions. A key of another type is converted, unless they take it.
    template <class K>
    [[nodiscard]] iterator find(const K& key) {
        if constexpr (std::is_same_v<K, Key> || transparent<Hash, Equal>)
            return map_.find(key);
        else
            return map_.find(static_cast<const Key&>(Key(key)));
    }
    [[nodiscard]] iterator end() noexcept { return map_.end(); }

    [[nodiscard]] bool has_expired(iterator entry, time_point now) const noexcept {
        return entry->first.item->due <= scale_.floor(now);
    }
    [[nodiscard]] time_point expiry(iterator entry) const noexcept {
        return scale_.time_of(entry->first.item->due);
    }
    /// The expiry of an entry whose life begins at `now`.
    [[nodiscard]] time_point expiry_after(time_point now, duration ttl) const noexcept {
        return scale_.time_of(due_after(now, ttl));
    }

    void note_use(iterator entry) noexcept {
        if (capacity_ != unbounded)
            uses_.splice(uses_.begin(), uses_, uses_.iterator_to(*entry->first.item));
    }
    /// Begins the life of an entry anew at `now`.
    void restart(iterator entry, time_point now, duration ttl) noexcept {
        item& i = *entry->first.item;
        i.ttl = ttl;
        wheel_.rearm(i, due_after(now, ttl));
        note_use(entry);
    }
    /// As restart(), with the time to live that it has. Never shortens its life.
    void refresh(iterator entry, time_point now) noexcept {
        item& i = *entry->first.item;
        const time::tick due = due_after(now, i.ttl);
        if (due > i.due)
            wheel_.rearm(i, due);
        note_use(entry);
    }

    /// Inserts an entry, unless one is alive.
    /// @return the entry, and whether it is new: then evict() is due.
    /// @throws std::bad_alloc, and what the user's functions throw. Only an entry that has expired
    /// may
    ///     have left.
    std::pair<iterator, bool> put(Key&& key, Value& value, time_point now, duration ttl,
                                  gone_type& gone) {
        const std::size_t hash = hash_(key);
        const auto old = map_.find(expiring::hashed_key<Key>{key, hash});
        if (old != map_.end()) {
            if (!has_expired(old, now))
                return {old, false};
            make_room(old, now, gone);
        } else if (keeps_ && map_.size() >= capacity_) {
            const auto last = entry_of(uses_.back());
            if (has_expired(last, now)) // it is not dropped
                make_room(last, now, gone);
        }
        auto made = std::make_unique<item>();
        made->hash = hash;
        made->ttl = ttl;
        const auto added =
            map_.try_emplace(slot{std::move(key), made.get()}, std::move(value)).first;
        item& i = *made.release(); // from here on nothing throws
        if (capacity_ != unbounded)
            uses_.push_front(i);
        wheel_.insert(i, due_after(now, ttl));
        return {added, true};
    }
    /// Removes the entry that was not used for longest, if there is one too many.
    void evict(gone_type& gone) noexcept {
        if (map_.size() > capacity_)
            gone.push_back(take(entry_of(uses_.back())));
    }
    /// Gives an entry another value, and begins its life anew at `now`.
    void assign(iterator entry, Value& value, time_point now, duration ttl) noexcept {
        using std::swap;
        swap(entry->second, value);
        restart(entry, now, ttl);
    }

    /// Removes entries that have expired, one batch at most.
    /// @return whether there may be more.
    /// @throws std::bad_alloc if they are kept; the others stay.
    bool expire(time_point now, gone_type& gone) {
        std::array<time::timer_node*, batch> out;
        const auto [count, more] = wheel_.expire(scale_.floor(now), out);
        for (std::size_t n = 0; n != count; ++n) {
            try {
                expire(entry_of(static_cast<item&>(*out[n])), gone);
            } catch (...) { // no memory to keep it: all are due, as before
                for (; n != count; ++n)
                    wheel_.insert(*out[n], out[n]->due);
                throw;
            }
        }
        return more;
    }

    /// Removes an entry.
    value_type take(iterator entry) noexcept {
        value_type taken(std::move(entry->first.key), std::move(entry->second));
        drop(entry);
        return taken;
    }

    /// Calls `f` with the table empty, and destroys the entries after that.
    /// @throws what copies of the user's functions throw, with nothing changed.
    template <class F>
    void clear(F f) {
        flat_map removed(0, map_.hash_function(), map_.key_eq());
        removed.swap(map_);
        uses_.clear();
        for (auto& e : removed) {
            wheel_.erase(*e.first.item);
            delete e.first.item;
        }
        f();
    }

    /// No entry expires before; time_point::max() if none does.
    [[nodiscard]] time_point next_expiry() const noexcept {
        return scale_.time_of(wheel_.next_wake());
    }

private:
    [[nodiscard]] time::tick due_after(time_point now, duration ttl) const noexcept {
        return scale_.ceil(saturating_sum(now, ttl));
    }
    [[nodiscard]] iterator entry_of(const item& i) noexcept {
        return map_.find(expiring::entry_of<item>{&i});
    }
    /// Removes an entry whose time is up; if it is kept, behind those that expired before it.
    void make_room(iterator entry, time_point now, gone_type& gone) {
        if (!keeps_)
            return expire(entry, gone);
        while (expire(now, gone)) {
        }
    }
    /// Removes an entry whose time is up.
    /// @throws std::bad_alloc, with nothing changed.
    void expire(iterator entry, gone_type& gone) {
        if (!keeps_)
            return gone.push_back(take(entry));
        expired.emplace_back(std::move(entry->first.key), std::move(entry->second));
        drop(entry);
    }
    void drop(iterator entry) noexcept {
        const std::unique_ptr<item> i(entry->first.item);
        if (i->filed())
            wheel_.erase(*i);
        if (capacity_ != unbounded)
            uses_.erase(uses_.iterator_to(*i));
        map_.erase(entry);
    }

    const std::size_t capacity_;
    const bool keeps_;
    [[no_unique_address]] Hash hash_; ///< for insertions, which keep the result
    time::tick_scale<Clock> scale_{std::chrono::nanoseconds(1), time::tick_origin::least};
    flat_map map_;
    time::binary_wheel wheel_;
    /// Only of a bounded table. The latest use comes first.
    boost::intrusive::list<item, boost::intrusive::constant_time_size<false>> uses_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_TIME_EXPIRING_TABLE_HPP
