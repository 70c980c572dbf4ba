// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::broadcast_ring: a broadcast queue for readers that come and go.
#ifndef PAWL_BROADCAST_RING_HPP
#define PAWL_BROADCAST_RING_HPP

#include <pawl/config.hpp>

#include <pawl/broadcast_error.hpp>
#include <pawl/broadcast_ring_options.hpp>

#include <pawl/detail/feed/ring_core.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl {

/// What a read has found.
enum class read_status {
    messages,  ///< messages; there may be more
    nothing,   ///< nothing new
    suspended, ///< the reader is suspended: resume() first
    closed,    ///< nothing new, now or later
};

/// The result of broadcast_ring::reader::read(span).
struct read_result {
    std::size_t count = 0;    ///< messages copied, to the front of the span
    std::uint64_t missed = 0; ///< generations before them that were gone, skipped ones included
    read_status status = read_status::nothing; ///< what the read has found
};

/// A snapshot of one reader.
struct reader_info {
    std::uint64_t id;       ///< broadcast_ring::reader::id()
    std::uint64_t position; ///< the generation to read next, as of its last call
};

/// The generations that broadcast_ring::cleanup() freed: [first, last).
using freed_generations = detail::generations;

/// A broadcast queue: each reader sees each message, in order and without a copy of its own. The
/// number of slots is fixed; nothing is allocated after construction.
///
/// Messages are numbered from 0; the number of a message is its generation. Writers reserve slots,
/// write, and publish. Each reader has its own position. It joins at the newest message, at the
/// oldest, or at a generation, and may suspend, resume and leave at any time. A suspended reader
/// costs the writers nothing.
///
/// @code
/// pawl::broadcast_ring<quote> ring(1024, 8);   // 1024 slots, up to 8 readers
///
/// auto reader = ring.join_newest();            // in another thread
/// quote some[64];
/// const auto got = reader.read(some);          // got.count of them, after got.missed that were gone
///
/// ring.emplace("PAWL", 42);                    // in the thread that writes
/// @endcode
///
/// The ring object is a writer; a copy is another writer of the same ring. After the last writer is
/// destroyed, or after close(), readers read the remaining messages and then see that the ring is
/// closed. Ring and readers may be destroyed in any order; the last of them destroys the messages.
///
/// **Slow readers.** Policy selects what happens to a message that finds no room:
/// - `lag`: the oldest message is overwritten. A reader that has not read it is suspended. Its next read
///   resumes at the oldest remaining message and returns the number of missed messages.
/// - `drop_new`: the new message is dropped, and dropped() counts it. Readers keep unread messages until
///   they suspend or leave.
/// - `block`: as drop_new, but the writer waits. The try_ functions do not wait.
///
/// **Reading.** With `lag` and a trivially copyable T, read() copies messages, and no reader can
/// stop a writer. In all other cases read() can also return a slice of `const T`. The messages in a
/// slice stay unchanged until the slice is destroyed. So a slice can get in the way of a writer;
/// then even `lag` drops and counts the new message.
///
/// A writer that stops between reserving and publishing holds back all messages reserved later;
/// they are published together with its own. Other writers do not wait for it, but may run out of
/// room.
///
/// @tparam T the message type; nothrow destructible. Readers in several threads share `const T`.
/// @tparam Policy what happens if a reader is slow.
/// @tparam Writers whether several threads write. A ring with `one` can be moved, not copied, and
///     allows one reservation at a time.
///
/// @par Thread safety
/// With `many` writers all members may be called from any thread. With `one`, reserving, writing
/// and the reservation itself need one thread at a time. Readers are independent of each other; one
/// reader, with its slice, needs one thread at a time. Only `block` ever waits.
///
/// @par Complexity
/// Reserving and publishing n messages is O(n). A writer that finds no room looks at each reader's
/// place once. With `lag` and copies it never does.
///
/// The algorithm is that of market_square's Area, without its races: see doc/design.md.
template <class T, slow_readers Policy = slow_readers::lag,
          ring_writers Writers = ring_writers::many>
class broadcast_ring {
    using core = detail::ring_core<T, Policy, Writers>;
    static constexpr bool is_shared = Writers == ring_writers::many;

public:
    /// A message.
    using value_type = T;

    /// Whether read() copies messages, because writers overwrite them without asking readers.
    /// Slices are then not available.
    static constexpr bool reads_copies = core::copies;

    class reservation;
    class slice;
    class reader;

    /// Makes a ring and its first writer.
    /// @param capacity number of slots, a power of two.
    /// @param readers maximum number of readers at a time, a power of two.
    /// @throws broadcast_error with bad_capacity.
    /// @throws std::bad_alloc
    explicit broadcast_ring(std::size_t capacity, std::size_t readers = 16)
        : core_(new core(capacity, readers)) {}

    /// Makes another writer of the same ring.
    broadcast_ring(const broadcast_ring& other) noexcept
        requires is_shared
        : core_(other.core_) {
        core_->add_owner();
        core_->add_writer();
    }
    /// Takes over from `other`, which may then only be destroyed or assigned to.
    broadcast_ring(broadcast_ring&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    /// Leaves this ring, then writes to the other one.
    broadcast_ring& operator=(broadcast_ring other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    /// The last writer closes the ring.
    /// @pre the reservations of this writer are destroyed.
    ~broadcast_ring() {
        if (core_ != nullptr) {
            core_->remove_writer();
            core::leave(core_);
        }
    }

    // --- writing -----------------------------------------------------------------------------

    /// Reserves slots for `n` messages. Without room, Policy decides. The result is empty if there
    /// is no room or the ring is closed. dropped() then grows by n, unless the ring is closed.
    /// @throws broadcast_error with too_large unless 1 <= n <= capacity().
    [[nodiscard]] reservation reserve(std::size_t n) {
        check_size("reserve", n);
        return reservation(core_, core_->reserve_or_wait(n, n));
    }
    /// As reserve(), but neither waits nor counts: empty if there is no room for all of them.
    /// @throws broadcast_error with too_large unless 1 <= n <= capacity().
    [[nodiscard]] reservation try_reserve(std::size_t n) {
        check_size("try_reserve", n);
        return reservation(core_, core_->reserve(n, n));
    }
    /// Reserves slots for up to `n` messages, as many as fit. Any n is allowed. Does not wait.
    [[nodiscard]] reservation try_reserve_some(std::size_t n) noexcept {
        return reservation(core_, core_->reserve(1, std::min(n, capacity())));
    }

    /// Publishes one message constructed from `args`. @return false if it was dropped: see
    /// reserve().
    /// @throws what the constructor of T throws. Its slot is then skipped.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    bool emplace(Args&&... args) {
        reservation one = reserve(1);
        if (one.remaining() == 0)
            return false;
        one.emplace(std::forward<Args>(args)...);
        one.publish();
        return true;
    }
    /// Publishes copies of `messages` in order; as one batch if there are at most capacity().
    /// @return how many were published. The rest was dropped, and dropped() grew by it, unless the
    ///     ring is closed.
    /// @throws what copying a T throws. The messages copied before it are published; the others do
    ///     not count as dropped.
    std::size_t write(std::span<const T> messages)
        requires std::constructible_from<T, const T&>
    {
        std::size_t written = 0;
        while (written != messages.size()) {
            const std::size_t n = std::min(messages.size() - written, capacity());
            reservation some(core_, core_->reserve_or_wait(n, messages.size() - written));
            if (some.remaining() == 0)
                break; // all that is left is dropped
            const publish_what_is_written all{some};
            for (; some.remaining() != 0; ++written)
                some.emplace(messages[written]);
        }
        return written;
    }

    /// Ends the stream of messages: readers read the remaining ones. Idempotent. An existing
    /// reservation can still be published, but readers may not read it.
    void close() noexcept { core_->close(); }
    /// Whether close() was called.
    [[nodiscard]] bool closed() const noexcept { return core_->closed(); }

    // --- readers -----------------------------------------------------------------------------

    /// A reader of everything that is published from now on.
    /// @throws broadcast_error with too_many_readers.
    [[nodiscard]] reader join_newest() { return reader(core_, "join_newest", core_->published()); }
    /// A reader that begins with the oldest message.
    /// @throws broadcast_error with too_many_readers.
    [[nodiscard]] reader join_oldest() { return reader(core_, "join_oldest", core_->oldest()); }
    /// A reader that begins at `generation`, from oldest() to published().
    /// @throws broadcast_error with too_old, in_the_future or too_many_readers.
    [[nodiscard]] reader join_at(std::uint64_t generation) {
        return reader(core_, "join_at", generation, true);
    }

    /// The number of readers. One relaxed load: a writer may use it to skip writing.
    [[nodiscard]] std::size_t readers() const noexcept { return core_->readers(); }
    /// All readers with their positions, in no particular order. A reader that leaves during the
    /// call may be listed with the position of its successor.
    [[nodiscard]] std::vector<reader_info> each_reader() const {
        std::vector<reader_info> all;
        core_->registry().each([&](auto id, auto position) { all.push_back({id, position}); });
        return all;
    }

    // --- the ring ----------------------------------------------------------------------------

    /// Destroys messages that no reader needs. Writers do this when they find no room; call it to
    /// do it earlier. With `lag`, only messages that a writer has already passed.
    /// @return what this call has destroyed.
    freed_generations cleanup() noexcept { return core_->clean(core_->oldest()); }

    /// Number of slots.
    [[nodiscard]] std::size_t capacity() const noexcept { return core_->capacity(); }
    /// Number of writers.
    [[nodiscard]] std::size_t writers() const noexcept { return core_->writers(); }
    /// The generation of the next message: the number of slots published so far, skipped ones
    /// included.
    [[nodiscard]] std::uint64_t published() const noexcept { return core_->published(); }
    /// The oldest generation at which a reader can begin.
    [[nodiscard]] std::uint64_t oldest() const noexcept { return core_->oldest(); }
    /// Number of messages that were dropped for lack of room.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return core_->dropped(); }

private:
    template <class>
    friend struct detail::invariant_of;

    struct publish_what_is_written {
        reservation& some;
        ~publish_what_is_written() { some.publish(); }
    };

    void check_size(const char* call, std::size_t n) const {
        if (n < 1 || n > capacity())
            throw broadcast_error(broadcast_errc::too_large, call, "n", n, 1, capacity());
    }

    core* core_;
};

/// Slots that a writer fills and publishes.
///
/// Destroying an unpublished reservation blocks nothing: its messages are destroyed, and readers
/// skip its slots. With one writer the slots are returned.
/// @pre the ring exists. One thread at a time uses the reservation.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::reservation {
public:
    /// Takes over the slots.
    reservation(reservation&& other) noexcept
        : core_(other.core_), all_(std::exchange(other.all_, {})),
          at_(std::exchange(other.at_, 0)) {}
    /// Abandons its slots, then takes over the other ones.
    reservation& operator=(reservation&& other) noexcept {
        reservation old(std::move(*this));
        core_ = other.core_;
        all_ = std::exchange(other.all_, {});
        at_ = std::exchange(other.at_, 0);
        return *this;
    }
    /// Abandons the slots, unless they were published.
    ~reservation() {
        if (!all_.empty())
            core_->abandon(all_, at_);
    }

    /// Whether there are unpublished slots.
    [[nodiscard]] explicit operator bool() const noexcept { return !all_.empty(); }
    /// Number of slots.
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(all_.size());
    }
    /// Number of unwritten slots.
    [[nodiscard]] std::size_t remaining() const noexcept {
        return static_cast<std::size_t>(all_.last - at_);
    }
    /// The generation of the first slot.
    [[nodiscard]] std::uint64_t first() const noexcept { return all_.first; }

    /// Constructs a message in the next slot.
    /// @pre remaining() != 0
    /// @throws what the constructor of T throws. The slot is then still the next one.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    void emplace(Args&&... args) {
        PAWL_ASSERT(at_ != all_.last);
        core_->construct(at_, std::forward<Args>(args)...);
        ++at_;
    }

    /// Publishes the written messages. Readers see them once all earlier reservations are published
    /// or abandoned. Unwritten slots are skipped. The reservation is then empty.
    void publish() noexcept {
        if (!all_.empty())
            core_->publish(std::exchange(all_, {}), std::exchange(at_, 0));
    }

    /// Moves the first `n` slots into a new reservation.
    /// @pre n <= size()
    [[nodiscard]] reservation split(std::size_t n) noexcept
        requires is_shared
    {
        PAWL_ASSERT(n <= size());
        const std::uint64_t middle = all_.first + n;
        reservation front(core_, {all_.first, middle});
        front.at_ = std::min(at_, middle);
        all_.first = middle;
        at_ = std::max(at_, middle);
        return front;
    }

private:
    friend class broadcast_ring;

    reservation(core* of, detail::generations all) noexcept
        : core_(of), all_(all), at_(all.first) {}

    core* core_;
    detail::generations all_;
    std::uint64_t at_; // the next slot to write
};

/// Messages that stay unchanged while a reader looks at them. Destroying the slice moves the reader
/// past it.
///
/// A forward range of `const T`. Belongs to the thread of the reader, which must outlive it.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::slice {
public:
    /// A forward iterator. Skips reserved slots that were never published.
    class iterator {
    public:
        using value_type = T;                                ///< a message
        using reference = const T&;                          ///< const: readers share the message
        using pointer = const T*;                            ///< const, too
        using difference_type = std::ptrdiff_t;              ///< of iterators
        using iterator_category = std::forward_iterator_tag; ///< multi-pass

        /// An iterator of no slice.
        iterator() = default;
        /// The message.
        [[nodiscard]] const T& operator*() const noexcept
            requires(!reads_copies)
        {
            return *core_->message(at_);
        }
        /// The message.
        [[nodiscard]] const T* operator->() const noexcept
            requires(!reads_copies)
        {
            return core_->message(at_);
        }
        /// The generation of the message.
        [[nodiscard]] std::uint64_t generation() const noexcept { return at_; }
        /// Moves to the next message.
        iterator& operator++() noexcept {
            ++at_;
            skip();
            return *this;
        }
        /// Moves to the next message; returns the old position.
        iterator operator++(int) noexcept { return std::exchange(*this, ++iterator(*this)); }
        /// Whether both are at the same message.
        [[nodiscard]] bool operator==(const iterator& other) const noexcept {
            return at_ == other.at_;
        }

    private:
        friend class slice;
        iterator(const core* of, std::uint64_t at, std::uint64_t end) noexcept
            : core_(of), at_(at), end_(end) {
            skip();
        }
        void skip() noexcept {
            while (at_ != end_ && core_->is_skipped(at_))
                ++at_;
        }

        const core* core_ = nullptr;
        std::uint64_t at_ = 0;
        std::uint64_t end_ = 0;
    };
    using const_iterator = iterator; ///< iterators are always const

    /// Takes over the messages.
    slice(slice&& other) noexcept
        : reader_(std::exchange(other.reader_, nullptr)), all_(std::exchange(other.all_, {})),
          missed_(other.missed_), status_(other.status_) {}
    slice& operator=(slice&&) = delete;
    /// Marks these messages as read.
    ~slice() {
        if (reader_ != nullptr)
            reader_->end_reading(all_.last);
    }

    /// The first message.
    [[nodiscard]] iterator begin() const noexcept { return {core_of(), all_.first, all_.last}; }
    /// Past the last message.
    [[nodiscard]] iterator end() const noexcept { return {core_of(), all_.last, all_.last}; }
    /// Whether there is no message.
    [[nodiscard]] bool empty() const noexcept { return begin() == end(); }
    /// Number of messages before these that were gone.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }
    /// Why the slice is empty, if it is.
    [[nodiscard]] read_status status() const noexcept { return status_; }

    /// Ends the slice before `next`, an iterator of this slice: the next read begins there.
    void end_at(iterator next) noexcept {
        PAWL_ASSERT(all_.first <= next.generation() && next.generation() <= all_.last);
        all_.last = next.generation();
    }

private:
    friend class reader;
    slice(reader* of, detail::generations all, std::uint64_t missed, read_status status) noexcept
        : reader_(of), all_(all), missed_(missed), status_(status) {}

    [[nodiscard]] const core* core_of() const noexcept {
        return reader_ != nullptr ? reader_->core_ : nullptr;
    }

    reader* reader_; // nullptr: no slice
    detail::generations all_;
    std::uint64_t missed_;
    read_status status_;
};

/// One reader of a ring.
///
/// One thread at a time may use it, not always the same. While a slice of it exists, only id(),
/// position() and suspended() may be called. The destructor leaves the ring.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::reader {
public:
    /// Takes over; `other` may then only be destroyed or assigned to.
    /// @pre `other` has no slice.
    reader(reader&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), place_(other.place_), next_(other.next_),
          missed_(other.missed_), suspended_(other.suspended_) {
        PAWL_ASSERT(!other.reading_);
    }
    /// Leaves its ring, then takes over.
    reader& operator=(reader&& other) noexcept {
        reader old(std::move(*this));
        core_ = std::exchange(other.core_, nullptr);
        place_ = other.place_;
        next_ = other.next_;
        missed_ = other.missed_;
        suspended_ = other.suspended_;
        return *this;
    }
    /// Leaves the ring.
    ~reader() {
        PAWL_ASSERT(!reading_);
        if (core_ != nullptr)
            leave();
    }

    /// An id that is unique among the present readers.
    [[nodiscard]] std::uint64_t id() const noexcept {
        return detail::reader_registry::id_of(*place_);
    }
    /// The generation to read next.
    [[nodiscard]] std::uint64_t position() const noexcept { return next_; }
    /// Number of generations to read, including those that will be skipped or missed.
    [[nodiscard]] std::uint64_t available() const noexcept {
        return std::max(core_->published(), next_) - next_;
    }
    /// Whether the reader is suspended by suspend().
    [[nodiscard]] bool suspended() const noexcept { return suspended_; }

    /// Copies the next messages to the front of `out`. With reads_copies, the rest of `out` may be
    /// overwritten, too.
    /// @throws what the assignment of T throws, only without reads_copies. The messages assigned
    ///     before it count as read; the failed message is the next one.
    [[nodiscard]] read_result read(std::span<T> out)
        requires std::is_copy_assignable_v<T>
    {
        if constexpr (reads_copies)
            return copy(out);
        else
            return assign(out);
    }

    /// A slice of at most `most` of the next messages.
    [[nodiscard]] slice read(std::size_t most = static_cast<std::size_t>(-1)) noexcept
        requires(!reads_copies)
    {
        PAWL_ASSERT(!reading_);
        if (suspended_)
            return slice(nullptr, {}, 0, read_status::suspended);
        const detail::ring_end end = core_->end_for(next_);
        if (next_ >= end.published)
            return slice(nullptr, {}, std::exchange(missed_, 0),
                         end.closed ? read_status::closed : read_status::nothing);
        std::uint64_t newest = end.published;
        if constexpr (!core::keeps_unread) {
            const std::uint64_t from = core_->begin_or_later(*place_, next_);
            if (from != next_) { // overtaken
                missed_ += from - next_;
                next_ = from;
                newest = std::max(core_->published(), next_);
            }
        }
        reading_ = true;
        const std::uint64_t n = std::min<std::uint64_t>(newest - next_, most);
        return slice(this, {next_, next_ + n}, std::exchange(missed_, 0), read_status::messages);
    }

    /// The reader keeps no messages from now on, and its reads fail. No effect if it is suspended.
    void suspend() noexcept {
        PAWL_ASSERT(!reading_);
        suspended_ = true;
        if constexpr (core::keeps_unread)
            core_->move_claim(*place_, core::none);
    }
    /// Reads continue where they were, or at the oldest message if that is later.
    /// @return the number of messages missed so far; the next read reports them, too. 0 if the
    ///     reader was not suspended.
    std::uint64_t resume() noexcept {
        if (!suspended_)
            return 0;
        const std::uint64_t from = next_;
        start(next_);
        return next_ - from;
    }
    /// Reads continue with the messages published from now on. Those in between do not count as
    /// missed.
    void resume_newest() noexcept {
        start(core_->published());
        missed_ = 0;
    }
    /// Reads continue at `generation`, whether or not the reader is suspended.
    /// @throws broadcast_error with too_old or in_the_future, and nothing changed.
    void resume_at(std::uint64_t generation) {
        start_at("resume_at", generation);
        missed_ = 0;
    }

private:
    friend class broadcast_ring;
    friend class slice;

    /// Begins at `generation`. If that is gone: throws with `must`, otherwise begins at the oldest
    /// message.
    reader(core* of, const char* call, std::uint64_t generation, bool must = false)
        : core_(of), place_(of->join()) {
        if (place_ == nullptr) {
            const std::size_t all = of->registry().capacity();
            throw broadcast_error(broadcast_errc::too_many_readers, call, "the number of readers",
                                  all + 1, 0, all);
        }
        try {
            if (must)
                start_at(call, generation);
            else
                start(generation);
        } catch (...) {
            leave();
            throw;
        }
        missed_ = 0;
        core_->finish_join(*place_);
    }

    void leave() noexcept {
        core_->move_claim(*place_, core::none);
        core_->unlist(*place_);
        core::leave(core_);
    }

    /// Updates its position for each_reader().
    void move_to(std::uint64_t generation) noexcept {
        next_ = generation;
        place_->position.store(generation, std::memory_order_relaxed); // relaxed: only shown
    }

    void start(std::uint64_t generation) noexcept {
        PAWL_ASSERT(!reading_);
        std::uint64_t from = generation;
        if constexpr (core::keeps_unread)
            from = core_->begin_or_later(*place_, generation);
        else
            from = std::max(generation, core_->oldest());
        missed_ += from - generation;
        move_to(from);
        suspended_ = false;
    }

    void start_at(const char* call, std::uint64_t generation) {
        PAWL_ASSERT(!reading_);
        const std::uint64_t published = core_->published();
        std::uint64_t oldest = core_->oldest();
        if (generation > published)
            throw broadcast_error(broadcast_errc::in_the_future, call, "generation", generation,
                                  oldest, published);
        if constexpr (core::keeps_unread) {
            if (!suspended_ && generation >= next_) { // kept for this reader anyway
                core_->move_claim(*place_, generation);
                return move_to(generation);
            }
            if (oldest <= generation) {
                oldest = core_->begin(*place_, generation);
                if (oldest > generation) // undo
                    core_->move_claim(*place_, suspended_ ? core::none : next_);
            }
        }
        if (oldest > generation)
            throw broadcast_error(broadcast_errc::too_old, call, "generation", generation, oldest,
                                  std::max(published, oldest));
        move_to(generation);
        suspended_ = false;
    }

    void end_reading(std::uint64_t next) noexcept {
        reading_ = false;
        move_to(next);
        core_->move_claim(*place_, core::keeps_unread ? next : core::none);
    }

    read_result copy(std::span<T> out) noexcept
        requires(reads_copies)
    {
        if (suspended_)
            return {0, 0, read_status::suspended};
        detail::ring_end end = core_->end_for(next_);
        if (next_ >= end.published)
            return {0, std::exchange(missed_, 0),
                    end.closed ? read_status::closed : read_status::nothing};
        read_result result{0, 0, read_status::messages};
        std::uint64_t at = next_;
        while (result.count != out.size() && at < end.published) {
            T* const to = out.data() + result.count;
            const auto n = static_cast<std::size_t>(
                std::min<std::uint64_t>(end.published - at, out.size() - result.count));
            const std::size_t copied = core_->copy(at, n, to);
            const std::uint64_t oldest = core_->oldest();
            if (oldest > at) { // overtaken
                if (result.count != 0)
                    break; // the next read reports the missed messages before it returns others
                missed_ += oldest - at;
                const std::size_t gone =
                    static_cast<std::size_t>(std::min<std::uint64_t>(oldest - at, copied));
                result.count = copied - gone;
                std::memmove(static_cast<void*>(to), to + gone, result.count * sizeof(T));
                at = std::max(oldest, at + copied);
                end = core_->end_for(at);
                continue;
            }
            result.count += copied;
            at += copied;
            if (copied != n)
                ++at; // skipped
        }
        move_to(at);
        result.missed = std::exchange(missed_, 0);
        return result;
    }

    read_result assign(std::span<T> out)
        requires(!reads_copies && std::is_copy_assignable_v<T>)
    {
        slice some = read();
        read_result result{0, some.missed(), some.status()};
        auto at = some.begin();
        const end_here ends{some, at};
        for (; at != some.end() && result.count != out.size(); ++at) {
            out[result.count] = *at;
            ++result.count;
        }
        return result;
    }
    /// Assignment may throw.
    struct end_here {
        slice& some;
        const typename slice::iterator& at;
        ~end_here() {
            if (some.status() == read_status::messages)
                some.end_at(at);
        }
    };

    core* core_;
    typename core::place* place_;
    std::uint64_t next_ = 0;
    std::uint64_t missed_ = 0; // not yet reported by a read
    bool suspended_ = true;
    bool reading_ = false; // a slice exists
};

} // namespace pawl

#endif // PAWL_BROADCAST_RING_HPP
