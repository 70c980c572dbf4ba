// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The state that writers and readers of a broadcast ring share: slots, positions, and the right
//   to free.
//
// Model
//   Messages are numbered by generation, from 0; numbers are never reused. A generation is in the
//   slot with that number modulo the number of slots, a power of two.
//
//       free_         oldest_               published_        reserved_        free_ + capacity
//    gone | kept for some  | to be read by all    | being written    | free          |
//
//   Objects. A reader that needs messages claims a generation: all from there on stay. It writes
//   its claim, then looks at oldest_; if oldest_ has passed the claim, the reader begins later. A
//   cleaner raises oldest_, then looks at all claims: a message before oldest_ and before each
//   claim has no reader and never will. Each side writes first, then reads what the other side
//   writes, in one total order (seq_cst), so at least one of the two sees the other. Nothing else
//   keeps a reader that joins or resumes from a message that is being destroyed.
//   - Policies drop_new and block: a reader that is not suspended always has a claim.
//   - Policy lag: a reader has a claim only while it has a slice. oldest_ is raised as far as a writer
//     needs room, and by at least a quarter of the ring.
//
//   Freeing. The thread that moves doomed_ destroys the messages in between and sets the states of
//   their slots to freed; free_ then advances over all freed slots. If there are no destructors to
//   run, free_ is moved at once.
//
//   Waiting. With block, a writer that finds no room sets the flag in moved_, tries again, and
//   sleeps until moved_ changes. Each event that may make room counts moved_ up. If it finds the
//   flag, it clears it and wakes all sleepers.
//
//   Words. With lag, trivially copyable messages are overwritten without asking readers. A writer
//   raises oldest_ before it writes. A reader copies several messages, then looks at oldest_:
//   messages that oldest_ has passed may be torn, and count as missed; later ones are whole. There
//   are no claims and no cleaners.
//
//   Publishing. With several writers, each sets the states of its slots to written; published_
//   advances over all written slots. A fast writer does not wait for a slow one; the slow one
//   publishes for both. With one writer, published_ is stored. Slots of an abandoned reservation are skipped.
//
// Invariants
//   order   free_ <= doomed_ <= oldest_, and doomed_ <= published_ <= reserved_ <= free_ + capacity.
//   claims  free_ <= each claim that was checked against oldest_: no reader looks at a destroyed message.
//   once    Every object is destroyed once: by the thread that dooms it, by its reservation if it is
//           unpublished, or with the ring.
//   states  When all writers have left advance(), the slot at published_ is neither written nor
//           skipped, and that at free_ is not freed.
//
// Threads
//   Any thread may call anything, subject to Writers. Only block waits.
//
//   What         access                    order    pairs with, and why
//   slot.state   publish, clean: store     release  advance: the message was written, or destroyed
//                advance: load             acquire  the same
//                read words: load          acquire  publish of a later generation: see word_slot
//                others                    relaxed  ordered by published_ or free_
//   published_   advance: rmw              release  states: the thread that moves it up to what was written
//                                                   before sees the states
//                advance: move             acq_rel  acquire: the same; release: readers
//                one writer: store         release  readers
//                load                      acquire  the same: messages; reserve: what is overwritten was
//                                                   written before
//   free_        advance: rmw, move                 as published_; release: reserve
//                clean: rmw                release  reserve: the old message is no longer read
//                reserve: load             acquire  the same
//   doomed_      clean: rmw                relaxed  published_ and claims order what is destroyed
//   reserved_    reserve: rmw              release  a later reserve: it sees as much room as this one
//                reserve: load             acquire  the same
//   oldest_      raise: rmw and load       seq_cst  begin: see above
//                begin: load               seq_cst  raise
//                words: load, store, rmw   relaxed  ordered by the words of the message
//   claim        begin: store              seq_cst  clean: see above
//                advance, leave: store     release  clean: the reader has finished with earlier messages
//                clean: load               seq_cst  begin; acquire: advance, leave
//                clean, first look: load   relaxed  a hint how far oldest_ may be raised
//   closed_      close: store              release  readers: what was published before
//                readers: load             acquire  the same
//                reserve: load             relaxed  a message that comes too late is still published
//   writers_     remove: rmw               acq_rel  the last one closes after all have published
//   owners_      leave: rmw                acq_rel  the last one destroys after all have left
//                join: rmw                 relaxed  another owner keeps the ring alive
//   moved_       room: rmw                 release  reserve, block: sees the room that it is told of
//                reserve: rmw              acquire  the same
//                room: rmw of the flag     relaxed  only a change matters
//   readers_, dropped_, ids_               relaxed  only counted
//
//   test/orders/broadcast_ring_test.cpp has a failing execution for each order that is weakened
//   alone. test/model/broadcast_ring.pml explores claims, cleaners and reused slots;
//   test/model/broadcast_ring_wait.pml explores waiting writers.
//
// Cost
//   One writer, words: two stores per reservation, and one per word. A read of words: two loads,
//   and one per word. Several writers: one compare-exchange to reserve and one to publish. A
//   cleaner looks at each place for a reader once per lap of the ring if readers keep up, four
//   times with lag. block: one locked instruction per read. Generations last for 2^62 messages.

#ifndef PAWL_DETAIL_FEED_RING_CORE_HPP
#define PAWL_DETAIL_FEED_RING_CORE_HPP

#include <pawl/detail/feed/reader_registry.hpp>
#include <pawl/detail/feed/ring_slot.hpp>

#include <pawl/broadcast_error.hpp>
#include <pawl/broadcast_ring_options.hpp>
#include <pawl/config.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Generations [first, last).
struct generations {
    std::uint64_t first = 0;
    std::uint64_t last = 0;

    [[nodiscard]] std::uint64_t size() const noexcept { return last - first; }
    [[nodiscard]] bool empty() const noexcept { return first == last; }
};

/// How far a reader can read now.
struct ring_end {
    std::uint64_t published;
    bool closed; ///< no message will follow
};

template <class T, slow_readers Policy, ring_writers Writers>
class ring_core {
    static_assert(std::is_nothrow_destructible_v<T>,
                  "pawl::broadcast_ring: the destructor of a message must not throw");

public:
    /// Messages are words that readers copy, not objects that they look at.
    static constexpr bool copies = Policy == slow_readers::lag && std::is_trivially_copyable_v<T>;
    static constexpr bool many = Writers == ring_writers::many;
    /// There are destructors to run.
    static constexpr bool destroys = !copies && !std::is_trivially_destructible_v<T>;
    /// Readers keep unread messages.
    static constexpr bool keeps_unread = Policy != slow_readers::lag;

    static constexpr std::uint64_t none = reader_registry::none;
    using place = reader_registry::place;

    using state_type = std::conditional_t<many || destroys, slot_state, no_state>;
    using slot = std::conditional_t<copies, word_slot<T, state_type>, object_slot<T, state_type>>;

    ring_core(std::size_t capacity, std::size_t readers)
        : capacity_(power_of_two("capacity", capacity)),
          registry_(power_of_two("readers", readers)), slots_(std::make_unique<slot[]>(capacity)) {}
    ring_core& operator=(ring_core&&) = delete;

    /// Destroys the remaining messages. @pre no other thread uses the ring.
    ~ring_core() {
        PAWL_ASSERT(readers() == 0); // each reader is an owner
        if constexpr (destroys) {
            // relaxed: leave() has acquired.
            destroy({doomed_.load(std::memory_order_relaxed),
                     published_.load(std::memory_order_relaxed)});
        }
    }

    // --- owners ------------------------------------------------------------------------------

    void add_owner() noexcept {
        owners_.fetch_add(1, std::memory_order_relaxed); // relaxed: the caller is one already
    }
    static void leave(ring_core* core) noexcept {
        // acq_rel: the last owner sees the writes of the others.
        if (core->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete core;
    }

    void add_writer() noexcept {
        writers_.fetch_add(1, std::memory_order_relaxed); // relaxed: the caller is one already
    }
    void remove_writer() noexcept {
        // acq_rel: the last writer closes after all have published.
        if (writers_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            close();
    }
    [[nodiscard]] std::size_t writers() const noexcept {
        return static_cast<std::size_t>(writers_.load(std::memory_order_relaxed)); // a number
    }

    void close() noexcept {
        closed_.store(true, std::memory_order_release); // pairs with closed()
        tell_writers();
    }
    /// @return true: this thread sees all messages published before close().
    [[nodiscard]] bool closed() const noexcept {
        return closed_.load(std::memory_order_acquire); // pairs with close()
    }

    /// The end for a reader whose next generation is `next`.
    [[nodiscard]] ring_end end_for(std::uint64_t next) const noexcept {
        const std::uint64_t seen = published();
        if (seen > next || !closed())
            return {seen, false};
        return {published(), true}; // again: a writer may have published before it closed
    }

    // --- numbers -----------------------------------------------------------------------------

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::uint64_t published() const noexcept {
        return published_.load(std::memory_order_acquire); // pairs with publish
    }
    /// The oldest generation at which a reader may begin.
    [[nodiscard]] std::uint64_t oldest() const noexcept {
        return oldest_.load(std::memory_order_relaxed); // relaxed: a number, or ordered by words
    }
    [[nodiscard]] std::uint64_t dropped() const noexcept {
        return dropped_.load(std::memory_order_relaxed); // relaxed: only a number
    }
    [[nodiscard]] std::size_t readers() const noexcept {
        return readers_.load(std::memory_order_relaxed); // relaxed: only a number
    }
    [[nodiscard]] const reader_registry& registry() const noexcept { return registry_; }

    // --- writing -----------------------------------------------------------------------------

    /// Reserves `most` generations, or as many as there is room for if these are at least `least`;
    /// else none.
    [[nodiscard]] generations reserve(std::uint64_t least, std::uint64_t most) noexcept {
        bool cleaned = false;
        std::uint64_t first = reserved_.load(std::memory_order_acquire); // pairs with the rmw
        // relaxed: a writer that does not see the close may write.
        while (!closed_.load(std::memory_order_relaxed)) {
            const std::uint64_t end = room_end();
            // Other threads may have used that room, and more, since `first` was loaded.
            const std::uint64_t n = std::min(most, end - std::min(end, first));
            if (n < least) {
                if (cleaned)
                    break;
                // At least a quarter, so that cleaning is rare.
                (void)clean(std::max(first + least, end + capacity_ / 4) - capacity_);
                cleaned = true;
                // relaxed: clean() reads its own state.
                first = reserved_.load(std::memory_order_relaxed);
                continue;
            }
            if constexpr (many) {
                // release: pairs with the loads. acquire: on failure, the same.
                if (!reserved_.compare_exchange_weak(first, first + n, std::memory_order_release,
                                                     std::memory_order_acquire))
                    continue;
            } else {
                // relaxed: written by this thread.
                PAWL_ASSERT(first == published_.load(std::memory_order_relaxed));
                reserved_.store(first + n, std::memory_order_relaxed);
            }
            if constexpr (copies)
                overwrite(first + n);
            return {first, first + n};
        }
        return {first, first};
    }

    /// As reserve(n, n); without room, the policy decides.
    /// @param offered how many messages are dropped if these have no room.
    [[nodiscard]] generations reserve_or_wait(std::uint64_t n,
                                              [[maybe_unused]] std::uint64_t offered) noexcept {
        if constexpr (Policy == slow_readers::block) {
            for (std::uint32_t seen = 0;;) {
                const generations got = reserve(n, n);
                if (!got.empty() || closed())
                    return got;
                if (seen != 0)
                    // relaxed: loaded again below
                    detail::atomic_wait(moved_, seen, std::memory_order_relaxed);
                // acquire: pairs with tell_writers(). A later change finds the flag and changes
                // moved_.
                seen = moved_.fetch_or(a_writer_waits, std::memory_order_acquire) | a_writer_waits;
            }
        } else {
            const generations got = reserve(n, n);
            if (got.empty() && !closed())
                dropped_.fetch_add(offered, std::memory_order_relaxed); // relaxed: a number
            return got;
        }
    }

    template <class... Args>
    void construct(std::uint64_t generation, Args&&... args) {
        if constexpr (copies && sizeof...(Args) == 1 &&
                      (std::is_same_v<std::remove_cvref_t<Args>, T> && ...))
            slot_of(generation).store(args...); // without another copy
        else if constexpr (copies)
            slot_of(generation).store(T(std::forward<Args>(args)...));
        else
            slot_of(generation).construct(std::forward<Args>(args)...);
    }

    /// Publishes [mine.first, written). The rest of `mine` is skipped.
    void publish(generations mine, std::uint64_t written) noexcept {
        if constexpr (many) {
            for (std::uint64_t g = mine.first; g != mine.last; ++g)
                set_state(g, g < written ? phase::written : phase::skipped);
            std::uint64_t from = mine.first;
            // acq_rel: states, and pairs with published(). relaxed: on failure advance() starts
            // over.
            if (published_.compare_exchange_strong(from, mine.last, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed))
                advance_from(published_, mine.last, phase::written, phase::skipped);
            else
                advance(published_, phase::written, phase::skipped);
            tell_writers(); // published messages may be read, and then freed
        } else {
            // relaxed: written by this thread.
            PAWL_ASSERT(mine.first == published_.load(std::memory_order_relaxed));
            reserved_.store(written, std::memory_order_relaxed);
            published_.store(written, std::memory_order_release); // pairs with published()
        }
    }

    /// Abandons [mine.first, mine.last), of which [mine.first, written) is constructed.
    void abandon(generations mine, std::uint64_t written) noexcept {
        if constexpr (destroys) {
            for (std::uint64_t g = mine.first; g != written; ++g)
                slot_of(g).destroy();
        }
        publish(mine, mine.first);
    }

    // --- reading -----------------------------------------------------------------------------

    /// @return nullptr if there is no vacant place.
    [[nodiscard]] place* join() noexcept {
        place* const mine =
            registry_.insert(ids_.fetch_add(1, std::memory_order_relaxed)); // relaxed: a number
        if (mine != nullptr) {
            add_owner();
            readers_.fetch_add(1, std::memory_order_relaxed); // relaxed: a number
        }
        return mine;
    }
    void finish_join(place& mine) noexcept { registry_.finish(mine); }

    /// @pre no claim. The caller stays an owner until leave().
    void unlist(place& mine) noexcept {
        readers_.fetch_sub(1, std::memory_order_relaxed); // relaxed: a number
        registry_.erase(mine);
    }

    /// Claims all messages from `generation` on. @return oldest_. If that is greater, nothing is
    /// guaranteed: the caller claims again or gives up.
    [[nodiscard]] std::uint64_t begin(place& mine, std::uint64_t generation) noexcept {
        mine.claim.store(generation, std::memory_order_seq_cst); // pairs with clean()
        return oldest_.load(std::memory_order_seq_cst);          // pairs with raise()
    }
    /// Claims the remaining messages of [generation, ...), and returns the first of them.
    [[nodiscard]] std::uint64_t begin_or_later(place& mine, std::uint64_t generation) noexcept {
        for (;;) {
            const std::uint64_t oldest = begin(mine, generation);
            if (oldest <= generation) {
                tell_writers(); // a writer may have seen the earlier claim
                return generation;
            }
            generation = oldest;
        }
    }
    /// The reader has finished with all before `generation`; `none` ends the claim.
    void move_claim(place& mine, std::uint64_t generation) noexcept {
        mine.claim.store(generation, std::memory_order_release); // pairs with clean()
        tell_writers();
    }

    [[nodiscard]] bool is_skipped(std::uint64_t generation) const noexcept {
        if constexpr (many) {
            // relaxed: published() has acquired.
            return slot_of(generation).state.load(std::memory_order_relaxed) ==
                   state_of(generation, phase::skipped);
        } else {
            return false;
        }
    }

    /// @pre claimed, published, and not skipped.
    [[nodiscard]] const T* message(std::uint64_t generation) const noexcept
        requires(!copies)
    {
        return slot_of(generation).get();
    }

    /// Copies up to `n` messages from `first` on, up to the first skipped slot. Copies of messages
    /// that oldest() has passed by then are invalid.
    /// @return the number of copies.
    std::size_t copy(std::uint64_t first, std::size_t n, T* to) const noexcept
        requires(copies)
    {
        for (std::size_t i = 0; i != n; ++i) {
            const slot& from = slot_of(first + i);
            if constexpr (many) {
                // acquire: pairs with set_state() of a later generation, whose writer has raised
                // oldest_.
                if (from.state.load(std::memory_order_acquire) ==
                    state_of(first + i, phase::skipped))
                    return i;
            }
            from.load(to[i]);
        }
        return n;
    }

    // --- cleaning ----------------------------------------------------------------------------

    /// Frees messages without a claim.
    /// @param wanted with lag: readers may be overtaken up to this generation.
    generations clean([[maybe_unused]] std::uint64_t wanted) noexcept {
        if constexpr (copies)
            return {};
        std::uint64_t to = published();
        if constexpr (keeps_unread) {
            for (const place& each : registry_.places())
                // relaxed: a hint. The loop below sees what is missed here.
                to = std::min(to, each.claim.load(std::memory_order_relaxed));
        } else {
            to = std::min(to, wanted);
        }
        raise(to);
        for (const place& each : registry_.places())
            to = std::min(to, each.claim.load(std::memory_order_seq_cst)); // pairs with begin()
        return free(to);
    }

private:
    friend struct ring_core_probe; ///< tests
    template <class>
    friend struct invariant_of;

    static constexpr std::uint32_t a_writer_waits = 1; ///< in moved_, which counts in twos

    /// The state of a slot: a generation plus a phase; 0 at first.
    enum class phase : std::uint64_t { written = 1, skipped = 2, freed = 3 };
    [[nodiscard]] static std::uint64_t state_of(std::uint64_t generation, phase what) noexcept {
        return generation << 2 | static_cast<std::uint64_t>(what);
    }

    static std::size_t power_of_two(const char* argument, std::size_t value) {
        if (std::has_single_bit(value))
            return value;
        throw broadcast_error(broadcast_errc::bad_capacity, "broadcast_ring", argument, value, 1,
                              std::size_t{1} << (sizeof(std::size_t) * 8 - 1),
                              ", if they are powers of two");
    }

    [[nodiscard]] slot& slot_of(std::uint64_t generation) const noexcept {
        return slots_[static_cast<std::size_t>(generation) & (capacity_ - 1)];
    }

    void set_state(std::uint64_t generation, phase what) noexcept {
        // release: pairs with is_in() and copy().
        slot_of(generation).state.store(state_of(generation, what), std::memory_order_release);
    }
    [[nodiscard]] bool is_in(std::uint64_t generation, phase a, phase b) const noexcept {
        // acquire: pairs with set_state().
        const std::uint64_t is = slot_of(generation).state.load(std::memory_order_acquire);
        return is == state_of(generation, a) || is == state_of(generation, b);
    }

    /// Moves a position over all slots in phase `a` or `b`.
    void advance(std::atomic<std::uint64_t>& position, phase a, phase b) noexcept {
        // volatile: for a literal 0 clang emits no instruction on x86 (LLVM issue 101551).
        volatile std::uint64_t nothing = 0;
        // release: states. The thread that moves the position to here sees the states.
        advance_from(position, position.fetch_add(nothing, std::memory_order_release), a, b);
    }
    /// The same, after a read-modify-write that left the position at `from`.
    void advance_from(std::atomic<std::uint64_t>& position, std::uint64_t from, phase a,
                      phase b) noexcept {
        for (;;) {
            std::uint64_t to = from;
            while (is_in(to, a, b))
                ++to;
            // acquire: states. release: pairs with published() and room_end(). relaxed: on failure
            // another thread has moved it, sees the same states, and continues.
            if (to == from || !position.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                                                std::memory_order_relaxed))
                return;
            from = to;
        }
    }

    /// The generation up to which slots may be written.
    [[nodiscard]] std::uint64_t room_end() const noexcept {
        if constexpr (copies)
            return published() + capacity_;
        else
            return free_.load(std::memory_order_acquire) + capacity_; // pairs with free()
    }

    /// Words: the generations whose slots are reused for those before `end` are gone.
    void overwrite(std::uint64_t end) noexcept {
        const std::uint64_t to = end - std::min<std::uint64_t>(end, capacity_);
        // All relaxed: released by the words.
        std::uint64_t oldest = oldest_.load(std::memory_order_relaxed);
        if constexpr (many) {
            while (oldest < to &&
                   !oldest_.compare_exchange_weak(oldest, to, std::memory_order_relaxed,
                                                  std::memory_order_relaxed)) {
            }
        } else if (oldest < to) {
            oldest_.store(to, std::memory_order_relaxed);
        }
    }

    void raise(std::uint64_t to) noexcept {
        // seq_cst: pairs with begin(), also if another cleaner has raised it. relaxed: loaded again.
        std::uint64_t oldest = oldest_.load(std::memory_order_seq_cst);
        while (oldest < to && !oldest_.compare_exchange_weak(oldest, to, std::memory_order_seq_cst,
                                                             std::memory_order_relaxed))
            oldest = oldest_.load(std::memory_order_seq_cst);
    }

    /// Frees all messages before `to` that no other thread frees. @return which.
    generations free(std::uint64_t to) noexcept {
        std::atomic<std::uint64_t>& position = destroys ? doomed_ : free_;
        std::uint64_t from = position.load(std::memory_order_relaxed); // relaxed: compared
        while (from < to) {
            // doomed_ relaxed: the destroyed messages were acquired with published_ and the claims.
            // free_ release: pairs with room_end(). relaxed: tried again.
            if (position.compare_exchange_weak(
                    from, to, destroys ? std::memory_order_relaxed : std::memory_order_release,
                    std::memory_order_relaxed)) {
                if constexpr (destroys) {
                    destroy({from, to});
                    for (std::uint64_t g = from; g != to; ++g)
                        set_state(g, phase::freed);
                    advance(free_, phase::freed, phase::freed);
                }
                tell_writers();
                return {from, to};
            }
        }
        return {from, from};
    }

    void destroy(generations all) noexcept {
        for (std::uint64_t g = all.first; g != all.last; ++g) {
            if (!is_skipped(g))
                slot_of(g).destroy();
        }
    }

    /// There may be room: writers in reserve_or_wait() look again.
    void tell_writers() noexcept {
        if constexpr (Policy == slow_readers::block) {
            // release: pairs with reserve_or_wait(). A notification is a system call, so only a
            // waiting writer gets one.
            if ((moved_.fetch_add(2, std::memory_order_release) & a_writer_waits) != 0) {
                // relaxed: ordered before the notification, after which the flag belongs to the
                // next wait.
                moved_.fetch_and(~a_writer_waits, std::memory_order_relaxed);
                moved_.notify_all();
            }
        }
    }

    // Read by all threads, never written.
    std::size_t capacity_;
    reader_registry registry_;
    std::unique_ptr<slot[]> slots_;

    // Written by writers.
    alignas(cache_line) std::atomic<std::uint64_t> reserved_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> free_{0};
    std::atomic<std::uint64_t> doomed_{0};

    // Read by readers all the time.
    alignas(cache_line) std::atomic<std::uint64_t> published_{0};
    std::atomic<std::uint64_t> oldest_{0};
    std::atomic<bool> closed_{false};

    // Rarely written.
    alignas(cache_line) std::atomic<std::uint64_t> owners_{1};
    std::atomic<std::uint64_t> writers_{1};
    std::atomic<std::uint64_t> ids_{1};
    std::atomic<std::size_t> readers_{0};
    std::atomic<std::uint32_t> moved_{0};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_FEED_RING_CORE_HPP
