// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::broadcast_ring: messages for readers that come and go.
#ifndef PAWL_BROADCAST_RING_HPP
#define PAWL_BROADCAST_RING_HPP

#include <pawl/config.hpp>

#include <pawl/feed/broadcast_error.hpp>
#include <pawl/feed/ring_core.hpp>
#include <pawl/feed/ring_options.hpp>

#include <algorithm>
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

/// What a read has come upon.
enum class read_status {
    messages,  ///< there may be more
    nothing,   ///< there is nothing new
    suspended, ///< the reader is suspended: resume() first
    closed,    ///< there is nothing new, and never will be
};

/// What broadcast_ring::reader::read(span) has copied.
struct read_result {
    std::size_t count = 0;    ///< messages that were copied, to the front of the span
    std::uint64_t missed = 0; ///< messages that came before them and were gone
    read_status status = read_status::nothing; ///< what the read has come upon
};

/// One reader, seen from outside.
struct reader_info {
    std::uint64_t id;       ///< broadcast_ring::reader::id()
    std::uint64_t position; ///< the generation that it reads next, as of its last call
};

/// What broadcast_ring::cleanup() has freed: the generations [first, last).
using freed_generations = detail::generations;

/// Messages for readers that come and go: each reader that is there sees each message, in order, and
/// sees it without a copy of its own. A fixed number of slots; no allocation after construction.
///
/// Messages are numbered from 0 on; the number of a message is its generation. Writers reserve slots,
/// write, and publish. Each reader has a position of its own; it joins at the newest message, at the
/// oldest, or at a generation, and leaves, suspends and resumes at any time. A reader that is suspended
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
/// The object is the writing end. A copy is another writer of the same ring. When the last one is gone,
/// or close() was called, readers read what is left and are told that the ring is closed. Ring and
/// readers may be destroyed in any order; the last of them destroys the messages.
///
/// **If a reader is slow**, Policy says what happens to a message for which there is no room:
/// - `lag`: the oldest message is overwritten. A reader that has not read it is suspended by force: its
///   next read resumes it at the oldest message that is left, and says how many it has missed.
/// - `drop_new`: the new message is dropped, and dropped() counts it. Readers keep what they have not
///   read until they suspend or leave.
/// - `block`: as drop_new, but the writer waits. The try_ functions do not.
///
/// **How messages are read** depends on T. With `lag` and a T that is trivially copyable, read() copies
/// messages out; no reader ever keeps a writer from writing. In all other cases read() can also give a
/// slice of `const T`, and what is in a slice stays as it is until the slice is destroyed. So with `lag`,
/// too, a message is dropped and counted if a slice is in its way.
///
/// A writer that stops between reserving and publishing holds back the messages that were reserved later:
/// they are published with its own. Other writers do not wait for it, but there may be no room for them.
///
/// @tparam T a message: nothrow destructible. Readers in several threads share it as `const T`.
/// @tparam Policy what to do if readers are slow.
/// @tparam Writers whether several threads write. With `one` a ring can be moved, but not copied, and
///         there is one reservation at a time.
///
/// @par Thread safety
/// With `many` writers all members may be called by any thread at any time; with `one`, those that reserve
/// or write, and the reservation, by one thread at a time. Readers of a ring are independent of each
/// other; one reader, with its slice, is used by one thread at a time. Only `block` ever waits.
///
/// @par Complexity
/// Reserving and publishing are O(n) in the messages. When a writer finds no room, it looks at each place
/// for a reader, once. With `lag` and copies it never does.
///
/// The algorithm is that of market_square's Area, with its races closed: see doc/design.md.
template <class T, slow_readers Policy = slow_readers::lag,
          ring_writers Writers = ring_writers::many>
class broadcast_ring {
    using core = detail::ring_core<T, Policy, Writers>;
    static constexpr bool is_shared = Writers == ring_writers::many;

public:
    /// A message.
    using value_type = T;

    /// Whether read() copies messages, because they are overwritten without asking readers. Then there
    /// are no slices.
    static constexpr bool reads_copies = core::copies;

    class reservation;
    class slice;
    class reader;

    /// A ring, and its first writer.
    /// @param capacity number of slots, a power of two.
    /// @param readers how many readers there can be at a time, a power of two.
    /// @throws broadcast_error bad_capacity.
    /// @throws std::bad_alloc
    explicit broadcast_ring(std::size_t capacity, std::size_t readers = 16)
        : core_(new core(capacity, readers)) {}

    /// Another writer of the same ring.
    broadcast_ring(const broadcast_ring& other) noexcept
        requires is_shared
        : core_(other.core_) {
        core_->add_owner();
        core_->add_writer();
    }
    /// Takes the place of `other`, which can only be destroyed or assigned to.
    broadcast_ring(broadcast_ring&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    /// Leaves this ring, and writes to the other one.
    broadcast_ring& operator=(broadcast_ring other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    /// The last writer closes the ring.
    /// @pre its reservations are destroyed.
    ~broadcast_ring() {
        if (core_ != nullptr) {
            core_->remove_writer();
            core::release_owner(core_);
        }
    }

    // --- writing -----------------------------------------------------------------------------

    /// Slots for `n` messages. If there is no room, Policy decides. Empty if there is none, or the ring
    /// is closed; then, unless it is closed, dropped() grows by n.
    /// @throws broadcast_error too_large unless 1 <= n <= capacity().
    [[nodiscard]] reservation reserve(std::size_t n) {
        check_size("reserve", n);
        return reservation(core_, core_->reserve_or_wait(n));
    }
    /// The same, but neither waits nor counts: empty if there is no room for all of them.
    /// @throws broadcast_error too_large unless 1 <= n <= capacity().
    [[nodiscard]] reservation try_reserve(std::size_t n) {
        check_size("try_reserve", n);
        return reservation(core_, core_->reserve(n, n));
    }
    /// Slots for up to `n` messages, as many as there is room for; any n is allowed. Does not wait.
    [[nodiscard]] reservation try_reserve_some(std::size_t n) noexcept {
        return reservation(core_, core_->reserve(1, std::min(n, capacity())));
    }

    /// Publishes one message made of `args`. @return false if it was dropped: see reserve().
    /// @throws what the constructor of T throws. Then its slot is skipped.
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
    /// Publishes copies of `messages`, in order; as one batch, unless they are more than capacity().
    /// @return how many: fewer if the rest was dropped, see reserve().
    /// @throws what copying a T throws. What was copied before is published.
    std::size_t write(std::span<const T> messages) {
        std::size_t written = 0;
        while (written != messages.size()) {
            const std::size_t n = std::min(messages.size() - written, capacity());
            reservation some = reserve(n);
            if (some.remaining() == 0)
                break;
            const publish_what_is_written all{some};
            for (; some.remaining() != 0; ++written)
                some.emplace(messages[written]);
        }
        return written;
    }

    /// No more messages: readers read what is left. Idempotent. A reservation that is there can be
    /// published still, but readers may not look any more.
    void close() noexcept { core_->close(); }
    /// Whether close() was called.
    [[nodiscard]] bool closed() const noexcept { return core_->closed(); }

    // --- readers -----------------------------------------------------------------------------

    /// A reader of what is published from now on.
    /// @throws broadcast_error too_many_readers.
    [[nodiscard]] reader join_newest() { return reader(core_, "join_newest", core_->published()); }
    /// A reader of everything that is there.
    /// @throws broadcast_error too_many_readers.
    [[nodiscard]] reader join_oldest() { return reader(core_, "join_oldest", core_->oldest()); }
    /// A reader that begins at `generation`, from oldest() to published().
    /// @throws broadcast_error too_old, in_the_future, too_many_readers.
    [[nodiscard]] reader join_at(std::uint64_t generation) {
        return reader(core_, "join_at", generation, true);
    }

    /// How many readers there are. One relaxed load: a writer may ask whether it has to write at all.
    [[nodiscard]] std::size_t readers() const noexcept { return core_->readers(); }
    /// Each reader and its position, in no particular order. One that leaves meanwhile may be shown
    /// with the position of its successor.
    [[nodiscard]] std::vector<reader_info> each_reader() const {
        std::vector<reader_info> all;
        core_->registry().each([&](auto id, auto position) { all.push_back({id, position}); });
        return all;
    }

    // --- the ring ----------------------------------------------------------------------------

    /// Destroys messages that no reader keeps. Writers do so when they find no room; call it to have
    /// it done earlier. With `lag`, only those that a writer has passed already.
    /// @return what this call has destroyed.
    freed_generations cleanup() noexcept { return core_->clean(core_->oldest()); }

    /// Number of slots.
    [[nodiscard]] std::size_t capacity() const noexcept { return core_->capacity(); }
    /// How many writers there are.
    [[nodiscard]] std::size_t writers() const noexcept { return core_->writers(); }
    /// The generation of the next message to be published: how many there have been.
    [[nodiscard]] std::uint64_t published() const noexcept { return core_->published(); }
    /// The oldest generation at which a reader can begin.
    [[nodiscard]] std::uint64_t oldest() const noexcept { return core_->oldest(); }
    /// How many messages were dropped for lack of room.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return core_->dropped(); }

    /// Checks what can be checked. Only while no other call runs and no reservation is there.
    /// @throws std::logic_error naming the invariant that does not hold.
    void invariant() const { core_->invariant(); }

private:
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
/// A reservation that is destroyed unpublished blocks nobody: its messages are destroyed, and readers
/// skip its slots. With one writer the slots are given back.
/// @pre the ring it is from is there. Used by one thread at a time.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::reservation {
public:
    /// Takes over.
    reservation(reservation&& other) noexcept
        : core_(other.core_), all_(std::exchange(other.all_, {})),
          at_(std::exchange(other.at_, 0)) {}
    /// Gives up what it has, and takes over.
    reservation& operator=(reservation&& other) noexcept {
        reservation old(std::move(*this));
        core_ = other.core_;
        all_ = std::exchange(other.all_, {});
        at_ = std::exchange(other.at_, 0);
        return *this;
    }
    /// Gives up, unless it was published.
    ~reservation() {
        if (!all_.empty())
            core_->abandon(all_, at_);
    }

    /// Whether there are slots that are not published yet.
    [[nodiscard]] explicit operator bool() const noexcept { return !all_.empty(); }
    /// How many slots there are.
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(all_.size());
    }
    /// How many of them are not written yet.
    [[nodiscard]] std::size_t remaining() const noexcept {
        return static_cast<std::size_t>(all_.last - at_);
    }
    /// The generation of the first slot.
    [[nodiscard]] std::uint64_t first() const noexcept { return all_.first; }

    /// Writes the next slot.
    /// @pre remaining() != 0
    /// @throws what the constructor of T throws. Then the slot is still the next.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    void emplace(Args&&... args) {
        PAWL_ASSERT(at_ != all_.last);
        core_->construct(at_, std::forward<Args>(args)...);
        ++at_;
    }

    /// Lets readers see what was written, once all that was reserved before is published or given up.
    /// Slots that were not written are skipped. The reservation is empty then.
    void publish() noexcept {
        if (!all_.empty())
            core_->publish(std::exchange(all_, {}), std::exchange(at_, 0));
    }

    /// The first `n` slots, which this reservation loses.
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

/// Messages that stay while a reader looks at them. Destroying the slice moves the reader behind it.
///
/// A forward range of `const T`. Used by the thread that uses the reader, which must outlive it.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::slice {
public:
    /// A forward iterator. Skips what was reserved and not published.
    class iterator {
    public:
        using value_type = T;                                ///< a message
        using reference = const T&;                          ///< shared by readers: const
        using pointer = const T*;                            ///< the same
        using difference_type = std::ptrdiff_t;              ///< of iterators
        using iterator_category = std::forward_iterator_tag; ///< reads any number of times

        /// Of no slice.
        iterator() = default;
        /// The message.
        [[nodiscard]] const T& operator*() const noexcept { return *core_->look(at_); }
        /// The message.
        [[nodiscard]] const T* operator->() const noexcept { return core_->look(at_); }
        /// The number of the message.
        [[nodiscard]] std::uint64_t generation() const noexcept { return at_; }
        /// The next message.
        iterator& operator++() noexcept {
            ++at_;
            skip();
            return *this;
        }
        /// The next message; returns this one.
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
    using const_iterator = iterator; ///< the only kind

    /// Takes over.
    slice(slice&& other) noexcept
        : reader_(std::exchange(other.reader_, nullptr)), all_(std::exchange(other.all_, {})),
          missed_(other.missed_), status_(other.status_) {}
    slice& operator=(slice&&) = delete;
    /// The reader has read these messages.
    ~slice() {
        if (reader_ != nullptr)
            reader_->end_reading(all_.last);
    }

    /// The first message.
    [[nodiscard]] iterator begin() const noexcept { return {core_of(), all_.first, all_.last}; }
    /// Behind the last message.
    [[nodiscard]] iterator end() const noexcept { return {core_of(), all_.last, all_.last}; }
    /// Whether there is no message.
    [[nodiscard]] bool empty() const noexcept { return begin() == end(); }
    /// How many messages came before these and were gone.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }
    /// Why it is empty, if it is.
    [[nodiscard]] read_status status() const noexcept { return status_; }

    /// Ends here: the next read begins with the message at `next`, which is of this slice.
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

    reader* reader_; // nullptr: it looks at nothing
    detail::generations all_;
    std::uint64_t missed_;
    read_status status_;
};

/// One reader of a ring.
///
/// Used by one thread at a time, whichever. While a slice of it is there, only id(), position() and
/// suspended() may be called. Destroying the reader leaves the ring.
template <class T, slow_readers Policy, ring_writers Writers>
class broadcast_ring<T, Policy, Writers>::reader {
public:
    /// Takes over; the other one can only be destroyed or assigned to.
    /// @pre no slice of `other` is there.
    reader(reader&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), place_(other.place_), next_(other.next_),
          missed_(other.missed_), suspended_(other.suspended_) {
        PAWL_ASSERT(!other.reading_);
    }
    /// Leaves, and takes over.
    reader& operator=(reader&& other) noexcept {
        reader old(std::move(*this));
        core_ = std::exchange(other.core_, nullptr);
        place_ = other.place_;
        next_ = other.next_;
        missed_ = other.missed_;
        suspended_ = other.suspended_;
        return *this;
    }
    /// Leaves.
    ~reader() {
        PAWL_ASSERT(!reading_);
        if (core_ != nullptr)
            leave();
    }

    /// Tells it apart from the readers that are there at the same time.
    [[nodiscard]] std::uint64_t id() const noexcept {
        return detail::reader_registry::id_of(*place_);
    }
    /// The generation that it reads next.
    [[nodiscard]] std::uint64_t position() const noexcept { return next_; }
    /// How many generations are to be read, including those that will be skipped or missed.
    [[nodiscard]] std::uint64_t available() const noexcept {
        return std::max(core_->published(), next_) - next_;
    }
    /// Whether suspend() was called last.
    [[nodiscard]] bool suspended() const noexcept { return suspended_; }

    /// Copies the next messages to the front of `out`. If reads_copies, what is behind them in `out` may be
    /// overwritten, too.
    /// @throws what the assignment of T throws, not if reads_copies. Then what was assigned before has
    ///         been read, and the message that failed is the next one.
    [[nodiscard]] read_result read(std::span<T> out)
        requires std::is_copy_assignable_v<T>
    {
        if constexpr (reads_copies)
            return copy(out);
        else
            return assign(out);
    }

    /// The next messages, up to `most` of them, to be looked at.
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

    /// From now on it keeps nothing, and reads fail. Does nothing if it is suspended.
    void suspend() noexcept {
        PAWL_ASSERT(!reading_);
        if (std::exchange(suspended_, true))
            return;
        if constexpr (core::keeps_unread)
            core_->move_claim(*place_, core::none);
    }
    /// Reads go on where they were, or at the oldest message if that is later.
    /// @return how many messages it has missed by now, which the next read says, too. 0 if it was not suspended.
    std::uint64_t resume() noexcept {
        if (!suspended_)
            return 0;
        const std::uint64_t from = next_;
        start(next_);
        return next_ - from;
    }
    /// Reads go on with what is published from now on. What lies between does not count as missed.
    void resume_newest() noexcept {
        missed_ = 0;
        start(core_->published());
        missed_ = 0;
    }
    /// Reads go on at `generation`; so does a reader that was not suspended.
    /// @throws broadcast_error too_old, in_the_future. Then nothing has changed.
    void resume_at(std::uint64_t generation) {
        start_at("resume_at", generation);
        missed_ = 0;
    }

private:
    friend class broadcast_ring;
    friend class slice;

    /// Begins at `generation`, or at the oldest one after it unless it `must` be this one.
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
        core_->leave(*place_);
        core::release_owner(core_);
    }

    /// Where it is, for each_reader().
    void move_to(std::uint64_t generation) noexcept {
        next_ = generation;
        place_->position.store(generation, std::memory_order_relaxed); // relaxed: a number
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
            if (!suspended_ && generation >= next_) { // it keeps that anyway
                core_->move_claim(*place_, generation);
                return move_to(generation);
            }
            if (oldest <= generation) {
                oldest = core_->begin(*place_, generation);
                if (oldest > generation) // as it was
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

    read_result copy(std::span<T> out) noexcept {
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
                    break; // the next read says so: what is missed comes before what is read
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

    read_result assign(std::span<T> out) {
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
    /// An assignment may throw.
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
    std::uint64_t missed_ = 0; // that no read has told of yet
    bool suspended_ = true;
    bool reading_ = false; // a slice is there
};

} // namespace pawl

#endif // PAWL_BROADCAST_RING_HPP
