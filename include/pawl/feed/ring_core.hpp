// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   What writers and readers of a broadcast ring share: slots, positions, and who may free what.
//
// Model
//   Messages are numbered by generation, from 0 on and never again. A slot is found by the generation
//   modulo the number of slots, a power of two.
//
//       free_         oldest_               published_        reserved_        free_ + capacity
//    gone | kept for some  | to be read by all    | being written    | free          |
//
//   Objects. A reader that needs messages claims a generation: all from there on stay. It writes its
//   claim, and then looks at oldest_: if that has passed, it begins later. A cleaner raises oldest_, and
//   then looks at all claims: what is before oldest_ and before each claim has no reader, and will have
//   none. Each writes first and then reads what the other one has written, in one order for all (seq_cst),
//   so that one of the two sees the other. Nothing else keeps a reader that joins, or returns from a
//   suspension, from a message that is being destroyed.
//   - Policies drop_new and block: a reader that is not suspended has a claim at all times.
//   - Policy lag: a reader has a claim while it looks at a slice, and at no other time. oldest_ is raised
//     as far as a writer needs room, and a quarter of the ring if that is more.
//
//   Who frees. The thread that moves doomed_ destroys what is between; then it marks the slots, and free_
//   goes on over all that are marked. Where nothing is to be destroyed, free_ is moved at once.
//
//   Waiting. With block, a writer that finds no room marks moved_, looks again, and sleeps until moved_ has
//   changed. All that may make room counts moved_ up; if it finds the mark, it takes that away, and wakes all
//   that sleep.
//
//   Words. With lag, messages that are trivially copyable are overwritten without asking anybody. A writer
//   raises oldest_ before it writes. A reader copies several, and then looks at oldest_: the messages that it
//   has passed may be torn, and are missed; those behind it are whole. No claims, no cleaners.
//
//   Publishing. Of several writers, each marks its slots, and published_ goes on over all that are marked.
//   Nobody waits for a writer that is slower; the slower one publishes for both. With one writer,
//   published_ is stored. A slot of a reservation that was given up is marked as skipped.
//
// Invariants (see invariant())
//   B1  free_ <= doomed_ <= oldest_, and doomed_ <= published_ <= reserved_ <= free_ + capacity.
//   B2  free_ <= each claim that was checked against oldest_: what a reader looks at is not destroyed.
//   B3  Every object is destroyed once: by the one that dooms it, by its reservation if it is not
//       published, or with the ring.
//   B4  When all writers have left advance(), the slot at published_ is not marked. The same for free_.
//
// Threads
//   Any thread may call anything, but for what Writers says. Only block waits for anything.
//
//   What         access                    order    pairs with, and why
//   slot.mark    publish, clean: store     release  advance: the message was written, or destroyed
//                advance: load             acquire  the same
//                read words: load          acquire  publish of a later generation: see word_slot
//                others                    relaxed  ordered by published_ or free_
//   published_   advance: rmw              release  B4: the thread that moves it up to what was marked
//                                                   before sees the marks
//                advance: move             acq_rel  acquire: the same; release: readers
//                one writer: store         release  readers
//                load                      acquire  the same: messages; reserve: what is overwritten was
//                                                   written before
//   free_        advance: rmw, move                 as published_; release: reserve
//                clean: rmw                release  reserve: what is there is no longer read
//                reserve: load             acquire  the same
//   doomed_      clean: rmw                relaxed  what is destroyed is ordered by published_ and claims
//   reserved_    reserve: rmw              release  a later reserve: it sees as much room as this one
//                reserve: load             acquire  the same
//   oldest_      raise: rmw and load       seq_cst  begin: see above
//                begin: load               seq_cst  raise
//                words: load, store, rmw   relaxed  ordered by the words of the message
//   claim        begin: store              seq_cst  clean: see above
//                advance, leave: store     release  clean: has done with what is before
//                clean: load               seq_cst  begin; acquire: advance, leave
//                clean, first look: load   relaxed  a hint how far oldest_ may be raised
//   closed_      close: store              release  readers: what was published before
//                readers: load             acquire  the same
//                reserve: load             relaxed  one that comes too late is published all the same
//   writers_     leave: rmw                acq_rel  the last one closes after all have published
//   owners_      leave: rmw                acq_rel  the last one destroys after all have left
//                join: rmw                 relaxed  the one that joins is kept by another owner
//   moved_       room: rmw                 release  reserve, block: sees the room that it is told of
//                reserve: rmw              acquire  the same
//                room: rmw of the mark     relaxed  only what changes matters
//   readers_, dropped_, ids_               relaxed  numbers
//
//   test/orders/broadcast_ring_test.cpp has a bad execution for each order that is weakened alone, and
//   test/model/broadcast_ring.pml explores claims, cleaners and slots that are used again;
//   test/model/broadcast_ring_wait.pml writers that wait.
//
// Cost
//   One writer, words: for each reservation two stores, and a store for each word. A read of words: two
//   loads, and a load for each word. Several writers: one compare-exchange to reserve and one to publish.
//   A cleaner looks at each place for a reader, once for each time around the ring if readers keep up (for
//   lag four times). block: a locked instruction for each read. Generations last for 2^62 messages.

#ifndef PAWL_FEED_RING_CORE_HPP
#define PAWL_FEED_RING_CORE_HPP

#include <pawl/feed/broadcast_error.hpp>
#include <pawl/feed/reader_registry.hpp>
#include <pawl/feed/ring_options.hpp>
#include <pawl/feed/ring_slot.hpp>

#include <pawl/config.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

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
    bool closed; ///< there is nothing after that
};

template <class T, slow_readers Policy, ring_writers Writers>
class ring_core {
    static_assert(std::is_nothrow_destructible_v<T>,
                  "pawl::broadcast_ring: the destructor of a message must not throw");

public:
    /// Messages are words that are copied, not objects that are looked at.
    static constexpr bool copies = Policy == slow_readers::lag && std::is_trivially_copyable_v<T>;
    static constexpr bool many = Writers == ring_writers::many;
    /// There are destructors to run.
    static constexpr bool destroys = !copies && !std::is_trivially_destructible_v<T>;
    /// A reader keeps what it has not read.
    static constexpr bool keeps_unread = Policy != slow_readers::lag;

    static constexpr std::uint64_t none = reader_registry::none;
    using place = reader_registry::place;

    using mark_type = std::conditional_t<many || destroys, slot_mark, no_mark>;
    // With conditional_t both would be made, and there are no words of a T that is not copyable.
    static auto slot_type() {
        if constexpr (copies)
            return std::type_identity<word_slot<T, mark_type>>{};
        else
            return std::type_identity<object_slot<T, mark_type>>{};
    }
    using slot = typename decltype(slot_type())::type;

    ring_core(std::size_t capacity, std::size_t readers)
        : capacity_(power_of_two("capacity", capacity)),
          registry_(power_of_two("readers", readers)), slots_(std::make_unique<slot[]>(capacity)) {}
    ring_core(const ring_core&) = delete;
    ring_core& operator=(const ring_core&) = delete;

    /// Destroys what is left. @pre no other thread uses it.
    ~ring_core() {
        if constexpr (destroys) {
            // relaxed: release_owner() has acquired.
            destroy({doomed_.load(std::memory_order_relaxed),
                     published_.load(std::memory_order_relaxed)});
        }
    }

    // --- owners ------------------------------------------------------------------------------

    void add_owner() noexcept {
        owners_.fetch_add(1, std::memory_order_relaxed); // relaxed: the caller has one
    }
    static void release_owner(ring_core* core) noexcept {
        // acq_rel: the last one comes after all that the others have done.
        if (core->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete core;
    }

    void add_writer() noexcept {
        writers_.fetch_add(1, std::memory_order_relaxed); // relaxed: the caller is one
    }
    void remove_writer() noexcept {
        // acq_rel: the last one closes after all have published.
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
    /// @return true: this thread sees all that was published before.
    [[nodiscard]] bool closed() const noexcept {
        return closed_.load(std::memory_order_acquire); // pairs with close()
    }

    /// Where reading from `next` on ends.
    [[nodiscard]] ring_end end_for(std::uint64_t next) const noexcept {
        const std::uint64_t seen = published();
        if (seen > next || !closed())
            return {seen, false};
        return {published(), true}; // again: the last writer may have published before it closed
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
        return dropped_.load(std::memory_order_relaxed); // relaxed: a number
    }
    [[nodiscard]] std::size_t readers() const noexcept {
        return readers_.load(std::memory_order_relaxed); // relaxed: a number
    }
    [[nodiscard]] const reader_registry& registry() const noexcept { return registry_; }

    // --- writing -----------------------------------------------------------------------------

    /// `most` generations, or as many as there is room for, if these are `least` at least; else none.
    [[nodiscard]] generations reserve(std::uint64_t least, std::uint64_t most) noexcept {
        bool cleaned = false;
        std::uint64_t first = reserved_.load(std::memory_order_acquire); // pairs with the rmw
        // relaxed: one that has not seen it may write.
        while (!closed_.load(std::memory_order_relaxed)) {
            const std::uint64_t end = room_end();
            // Another thread may have used that room, and more, since `first` was loaded.
            const std::uint64_t n = std::min(most, end - std::min(end, first));
            if (n < least) {
                if (cleaned || copies)
                    break;
                // A quarter at least, so that cleaning is rare.
                (void)clean(std::max(first + least, end + capacity_ / 4) - capacity_);
                cleaned = true;
                // relaxed: clean() has looked at what it goes by.
                first = reserved_.load(std::memory_order_relaxed);
                continue;
            }
            if constexpr (many) {
                // release: pairs with the loads. acquire: on failure, the same.
                if (!reserved_.compare_exchange_weak(first, first + n, std::memory_order_release,
                                                     std::memory_order_acquire))
                    continue;
            } else {
                // relaxed: of this thread.
                PAWL_ASSERT(first == published_.load(std::memory_order_relaxed));
                reserved_.store(first + n, std::memory_order_relaxed);
            }
            if constexpr (copies)
                overwrite(first + n);
            return {first, first + n};
        }
        return {first, first};
    }

    /// As reserve(n, n), but as the policy says if there is no room.
    [[nodiscard]] generations reserve_or_wait(std::uint64_t n) noexcept {
        if constexpr (Policy == slow_readers::block) {
            for (std::uint32_t seen = 0;;) {
                const generations got = reserve(n, n);
                if (!got.empty() || closed())
                    return got;
                if (seen != 0)
                    moved_.wait(seen, std::memory_order_relaxed); // relaxed: looked at below
                // acquire: pairs with tell_writers(). What comes later finds the mark, and changes it.
                seen = moved_.fetch_or(a_writer_waits, std::memory_order_acquire) | a_writer_waits;
            }
        } else {
            const generations got = reserve(n, n);
            if (got.empty() && !closed())
                dropped_.fetch_add(n, std::memory_order_relaxed); // relaxed: a number
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

    /// Publishes [mine.first, written). What is left of `mine` is skipped.
    void publish(generations mine, std::uint64_t written) noexcept {
        if constexpr (many) {
            for (std::uint64_t g = mine.first; g != mine.last; ++g)
                mark(g, g < written ? phase::written : phase::skipped);
            std::uint64_t from = mine.first;
            // acq_rel: B4, and pairs with published(). relaxed: on failure advance() begins anew.
            if (published_.compare_exchange_strong(from, mine.last, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed))
                advance_from(published_, mine.last, phase::written, phase::skipped);
            else
                advance(published_, phase::written, phase::skipped);
        } else {
            // relaxed: of this thread.
            PAWL_ASSERT(mine.first == published_.load(std::memory_order_relaxed));
            reserved_.store(written, std::memory_order_relaxed);
            published_.store(written, std::memory_order_release); // pairs with published()
        }
        if constexpr (many)
            tell_writers(); // what is published may be read, and freed
    }

    /// Gives up [mine.first, mine.last), of which [mine.first, written) is constructed.
    void abandon(generations mine, std::uint64_t written) noexcept {
        if constexpr (destroys) {
            for (std::uint64_t g = mine.first; g != written; ++g)
                slot_of(g).destroy();
        }
        publish(mine, mine.first);
    }

    // --- reading -----------------------------------------------------------------------------

    /// @return nullptr if there is no place.
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

    /// @pre claims nothing. The caller is an owner until release_owner().
    void leave(place& mine) noexcept {
        readers_.fetch_sub(1, std::memory_order_relaxed); // relaxed: a number
        registry_.erase(mine);
    }

    /// Claims all from `generation` on. @return oldest_: if that is greater, nothing is certain, and
    /// the caller claims anew or gives up.
    [[nodiscard]] std::uint64_t begin(place& mine, std::uint64_t generation) noexcept {
        mine.claim.store(generation, std::memory_order_seq_cst); // pairs with clean()
        return oldest_.load(std::memory_order_seq_cst);          // pairs with raise()
    }
    /// Claims what is left of [generation, ...), and says where that begins.
    [[nodiscard]] std::uint64_t begin_or_later(place& mine, std::uint64_t generation) noexcept {
        for (;;) {
            const std::uint64_t oldest = begin(mine, generation);
            if (oldest <= generation) {
                tell_writers(); // one may have seen an earlier claim
                return generation;
            }
            generation = oldest;
        }
    }
    /// Has done with all before `generation`, which is `none` if nothing is claimed any more.
    void move_claim(place& mine, std::uint64_t generation) noexcept {
        mine.claim.store(generation, std::memory_order_release); // pairs with clean()
        tell_writers();
    }

    [[nodiscard]] bool is_skipped(std::uint64_t generation) const noexcept {
        if constexpr (many) {
            // relaxed: published() has acquired.
            return slot_of(generation).mark.load(std::memory_order_relaxed) ==
                   marked(generation, phase::skipped);
        } else {
            return false;
        }
    }

    /// @pre claimed, and published. Never skipped.
    [[nodiscard]] const T* look(std::uint64_t generation) const noexcept
        requires(!copies)
    {
        return slot_of(generation).get();
    }

    /// Copies up to `n` messages from `first` on, up to a slot that is skipped. Of those that oldest() has
    /// passed then, what was copied is worth nothing.
    /// @return how many were copied.
    std::size_t copy(std::uint64_t first, std::size_t n, T* to) const noexcept
        requires(copies)
    {
        for (std::size_t i = 0; i != n; ++i) {
            const slot& from = slot_of(first + i);
            if constexpr (many) {
                // acquire: pairs with mark() of a later generation, which knows oldest_.
                if (from.mark.load(std::memory_order_acquire) == marked(first + i, phase::skipped))
                    return i;
            }
            from.load(to[i]);
        }
        return n;
    }

    // --- cleaning ----------------------------------------------------------------------------

    /// Frees what nothing claims.
    /// @param wanted for lag: up to here readers may be overtaken.
    generations clean([[maybe_unused]] std::uint64_t wanted) noexcept {
        if constexpr (copies)
            return {};
        std::uint64_t to = published();
        if constexpr (keeps_unread) {
            for (const place& each : registry_.places())
                // relaxed: a hint. What is missed here is seen below.
                to = std::min(to, each.claim.load(std::memory_order_relaxed));
        } else {
            to = std::min(to, wanted);
        }
        raise(to);
        for (const place& each : registry_.places())
            to = std::min(to, each.claim.load(std::memory_order_seq_cst)); // pairs with begin()
        return free(to);
    }

    /// Checks B1 and B4. Only while no other call runs.
    /// @throws std::logic_error naming the invariant that does not hold.
    void invariant() const {
        constexpr auto any = std::memory_order_relaxed; // nothing else runs
        const std::uint64_t published = published_.load(any);
        const std::uint64_t freed = free_.load(any);
        const std::uint64_t doomed = destroys ? doomed_.load(any) : freed;
        check(copies || (freed <= doomed && doomed <= oldest_.load(any)),
              "B1: free, doomed, oldest");
        check(doomed <= published && published <= reserved_.load(any), "B1: doomed, published");
        check(reserved_.load(any) <= (copies ? published : freed) + capacity_, "B1: reserved");
        if constexpr (many)
            check(!is_marked(published, phase::written, phase::skipped), "B4: published");
        if constexpr (destroys)
            check(!is_marked(freed, phase::freed, phase::freed), "B4: free");
    }

private:
    static constexpr std::size_t cache_line = 64;
    static constexpr std::uint32_t a_writer_waits = 1; ///< in moved_, which counts in twos

    /// A mark is a generation and one of these; 0 is none.
    enum class phase : std::uint64_t { written = 1, skipped = 2, freed = 3 };
    [[nodiscard]] static std::uint64_t marked(std::uint64_t generation, phase what) noexcept {
        return generation << 2 | static_cast<std::uint64_t>(what);
    }

    static std::size_t power_of_two(const char* argument, std::size_t value) {
        if (std::has_single_bit(value))
            return value;
        throw broadcast_error(broadcast_errc::bad_capacity, "broadcast_ring", argument, value, 1,
                              std::size_t{1} << (sizeof(std::size_t) * 8 - 1),
                              ", if they are powers of two");
    }
    static void check(bool holds, const char* what) {
        if (!holds)
            throw std::logic_error(std::string("pawl: broadcast_ring: not so: ") + what);
    }

    [[nodiscard]] slot& slot_of(std::uint64_t generation) const noexcept {
        return slots_[static_cast<std::size_t>(generation) & (capacity_ - 1)];
    }

    void mark(std::uint64_t generation, phase what) noexcept {
        // release: pairs with is_marked() and copy().
        slot_of(generation).mark.store(marked(generation, what), std::memory_order_release);
    }
    [[nodiscard]] bool is_marked(std::uint64_t generation, phase a, phase b) const noexcept {
        // acquire: pairs with mark().
        const std::uint64_t is = slot_of(generation).mark.load(std::memory_order_acquire);
        return is == marked(generation, a) || is == marked(generation, b);
    }

    /// Moves a position over all slots that are marked.
    void advance(std::atomic<std::uint64_t>& position, phase a, phase b) noexcept {
        // Not a literal: of an addition of 0 clang leaves no instruction on x86 (LLVM issue 101551).
        volatile std::uint64_t nothing = 0;
        // release: B4. The thread that moves the position up to here sees what was marked.
        advance_from(position, position.fetch_add(nothing, std::memory_order_release), a, b);
    }
    /// The same, behind an rmw of the position that left it at `from`.
    void advance_from(std::atomic<std::uint64_t>& position, std::uint64_t from, phase a,
                      phase b) noexcept {
        for (;;) {
            std::uint64_t to = from;
            while (is_marked(to, a, b))
                ++to;
            if (to == from)
                return;
            // acquire: B4. release: pairs with published() and room_end().
            // relaxed: on failure another thread has moved it, sees the same marks, and goes on.
            if (!position.compare_exchange_strong(from, to, std::memory_order_acq_rel,
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

    /// Words: what had the slots of the generations before `end` is gone.
    void overwrite(std::uint64_t end) noexcept {
        const std::uint64_t to = end - std::min<std::uint64_t>(end, capacity_);
        // relaxed, all of it: released by the words.
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

    /// Frees all before `to` that is not freed by another thread. Says which.
    generations free(std::uint64_t to) noexcept {
        if constexpr (destroys) {
            std::uint64_t from = doomed_.load(std::memory_order_relaxed); // relaxed: compared
            while (from < to) {
                // relaxed: what is destroyed was acquired with published_ and the claims.
                if (doomed_.compare_exchange_weak(from, to, std::memory_order_relaxed,
                                                  std::memory_order_relaxed)) {
                    destroy({from, to});
                    for (std::uint64_t g = from; g != to; ++g)
                        mark(g, phase::freed);
                    advance(free_, phase::freed, phase::freed);
                    tell_writers();
                    return {from, to};
                }
            }
            return {from, from};
        } else {
            std::uint64_t from = free_.load(std::memory_order_relaxed); // relaxed: compared
            while (from < to) {
                // release: pairs with room_end(). relaxed: tried again.
                if (free_.compare_exchange_weak(from, to, std::memory_order_release,
                                                std::memory_order_relaxed)) {
                    tell_writers();
                    return {from, to};
                }
            }
            return {from, from};
        }
    }

    void destroy(generations all) noexcept {
        for (std::uint64_t g = all.first; g != all.last; ++g) {
            if (!is_skipped(g))
                slot_of(g).destroy();
        }
    }

    /// There may be room: those that wait in reserve_or_wait() look again.
    void tell_writers() noexcept {
        if constexpr (Policy == slow_readers::block) {
            // release: pairs with reserve_or_wait(). To notify is a system call, so that only a writer
            // that waits is notified.
            if ((moved_.fetch_add(2, std::memory_order_release) & a_writer_waits) != 0) {
                // relaxed: a number. Before the notification, after which the mark is the next wait's.
                moved_.fetch_and(~a_writer_waits, std::memory_order_relaxed);
                moved_.notify_all();
            }
        }
    }

    // Read by all, never written.
    std::size_t capacity_;
    reader_registry registry_;
    std::unique_ptr<slot[]> slots_;

    // Of writers.
    alignas(cache_line) std::atomic<std::uint64_t> reserved_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> free_{0};
    std::atomic<std::uint64_t> doomed_{0};

    // Read by readers all the time.
    alignas(cache_line) std::atomic<std::uint64_t> published_{0};
    std::atomic<std::uint64_t> oldest_{0};
    std::atomic<bool> closed_{false};

    // Seldom written.
    alignas(cache_line) std::atomic<std::uint64_t> owners_{1};
    std::atomic<std::uint64_t> writers_{1};
    std::atomic<std::uint64_t> ids_{1};
    std::atomic<std::size_t> readers_{0};
    std::atomic<std::uint32_t> moved_{0};
};

} // namespace detail
} // namespace pawl

#endif // PAWL_FEED_RING_CORE_HPP
