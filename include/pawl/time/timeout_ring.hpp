// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::timeout_ring, a queue of timers that all have the same delay.

// Purpose
//   Timers that all have one and the same delay, such as the idle timeouts of connections. They
//   expire in the order in which they were registered, so that a queue is all it takes, and threads
//   can register and cancel without a lock. Coarse: a timer is late by up to a given part of the
//   delay. A ring has a fixed capacity; growing is the caller's decision.
//
// Model
//   The ring of seed 000, made safe. A registration draws a ticket from tail_; tickets count from 1
//   and are never rebased, so that a slot, found by its ticket modulo the number of slots, says by
//   itself whose it is:
//
//       (ticket, live)  --cancel-->  (ticket, done)  --head_ moves past it-->  free for a later one
//                       --sweep--->
//
//   No state ever comes back, hence whoever makes a slot `done` is the only one to do so, and owns
//   the item. What was cancelled keeps its slot until head_ comes to it.
//
//               head_                                  tail_
//         free    | done  live  done  live ... live  (reserved)  free
//                              ^ mark T0     ^ mark T1     ^ open_from_
//
//   Time comes in as marks: all that is registered before a mark was registered at or before its
//   stamp. Once stamp + delay has come, the sweep goes up to the mark. The time since the newest
//   mark is the open sub-period; it is closed, which makes a mark, when delay / marks have passed.
//   So a timer registered at s is expired in [s + delay, s + delay + period()], by a driver that
//   comes when next_wake() says. A forced sweep shifts nothing. If a driver comes late, so is the
//   stamp, unless it knows better when the last registration was made.
//
//   Growing puts a block of twice the capacity after the others. Tickets name their block. A sweep
//   finds a ticket in the block that has it published; it need not know where a block began.
//
// Invariants (see invariant())
//   R1  head <= tail <= head + capacity: no two tickets of [head, tail) share a slot.
//   R2  A ticket of [head, tail) is live or done in exactly one block, or not published yet.
//       No other slot is live.
//   R3  Marks rise in ticket, and never fall in stamp; the open sub-period begins at the newest mark
//       or later. A mark moves past timers that are done only, never past a live one.
//   R4  If the open sub-period is not empty, then its first registration was answered `first`, or
//       a driver call has come since, behind which next_wake() sees it.
//
// Threads
//   Any thread may register, cancel, close, grow and ask, at any time. Drivers are kept apart by
//   driver_: who does not get it is told so and leaves. Nobody ever waits for anybody:
//   - A slot that is reserved, but not published, ends a sweep. It delays what is behind it.
//   - A registration that finds the ring full frees what was cancelled in front by itself. It moves
//     head_ as the sweep does, by compare-exchange, so that it keeps no driver away.
//
//   What            access                    order    pairs with, and why
//   slot.state      publish: store            release  the loads below: item, and what it points at
//                   cancel, sweep: load       acquire  publish
//                   cancel, sweep: to done    release  the loads of `done`: the item was read before
//                                                      the slot is free. Relaxed on failure in
//                                                      cancel, which then touches nothing; acquire
//                                                      in the sweep, which then frees the slot
//                   sweep, reclaim: load      acquire  `done`, to hand that on to head_
//   slot.item       all                       relaxed  ordered by slot.state
//   head_           advance, reclaim: rmw     release  registration: the slots before it are free.
//                                                      An rmw keeps what the ones before released
//                   registration: load        acquire  the same. Each checks the very ticket that it
//                                                      takes, so tail_ need not pass this on
//                   sweep, reclaim: load      relaxed  a slot says itself whether it was recycled
//   tail_           registration: load, rmw   acquire  grow: the block; open_at: open_from_
//                   registration: rmw         release  position: a clock that is read after it is
//                                                      behind one that was read before registering
//                   position: load            acquire  the same
//                   grow: rmw                 release  registration, sweep: the block
//                   grow, has_room: load      relaxed  only numbers; compared again by the rmw
//                   open_at: rmw              release  registration, see R4
//                   close: rmw                relaxed  carries no data, and keeps what was released
//   open_from_      open_at: store            relaxed  ordered by tail_: either the rmw in open_at
//                   registration: load        relaxed  comes later than a registration, and sees it,
//                                                      or the registration sees open_from_ (R4)
//   blocks_         grow: rmw                 release  load: the slots are empty
//                   all: load                 acquire  grow. Relaxed in the destructor
//   driver_         exchange                  acquire  the store: marks_ and begin_
//                   store                     release  the next exchange
//
//   test/orders/timeout_ring_test.cpp has a bad execution for each order that is weakened alone.
//   Nothing needs one order for all variables: the only place where two threads write first and
//   then read what the other one writes is R4, and there both write tail_.
//
// Cost
//   register and cancel O(1), one compare-exchange each, no allocation; a registration that finds
//   the ring full looks at 64 slots more. expire, force and drain: at most as many slots as there
//   is room for. 16 bytes a slot; the slots are the capacity rounded up to a power of two, so that
//   one is found without a division. Tickets last for 2^58 registrations: 9 years at 10^9 a second.

#ifndef PAWL_TIME_TIMEOUT_RING_HPP
#define PAWL_TIME_TIMEOUT_RING_HPP

#include <pawl/config.hpp>

#include <pawl/time/tick.hpp>

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace pawl::time {

template <class T>
class timeout_ring;

/// Names one registration in its ring, for as long as the ring lives. It does not know which ring that
/// is: what another ring does with it is undefined.
class ring_ticket {
public:
    /// No registration.
    constexpr ring_ticket() = default;

    /// A number that says it all, less than 2^63; 0 for none.
    [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }

    /// The ticket whose word() was `word`.
    [[nodiscard]] static constexpr ring_ticket from_word(std::uint64_t word) noexcept {
        ring_ticket ticket;
        ticket.word_ = word;
        return ticket;
    }

    /// Whether it names a registration.
    explicit constexpr operator bool() const noexcept { return word_ != 0; }
    /// Whether both name the same registration, or none.
    friend constexpr bool operator==(const ring_ticket&, const ring_ticket&) = default;

private:
    std::uint64_t word_ = 0;
};

/// A place between two registrations.
class ring_position {
public:
    /// Before all registrations.
    constexpr ring_position() = default;

    /// Whether they are the same place.
    friend constexpr bool operator==(const ring_position&, const ring_position&) = default;

private:
    template <class T>
    friend class timeout_ring;

    explicit constexpr ring_position(std::uint64_t number) noexcept : number_(number) {}

    std::uint64_t number_ = 0;
};

/// What became of a registration.
enum class ring_status {
    registered, ///< the timer runs
    full,       ///< as many slots as the capacity are in use; some may be of cancelled timers
    closed,     ///< close() was called
};

/// What try_register() did.
struct ring_registration {
    ring_status status; ///< whether it was registered, and if not, why
    ring_ticket ticket; ///< none unless registered
    bool first;         ///< in the open sub-period: the driver must ask next_wake() anew
};

/// What a sweep did.
struct ring_sweep {
    std::size_t emitted; ///< items at the begin of `out`; the caller owns them
    bool more;           ///< the end was not reached: come again, but let others run before if
                         ///< nothing was emitted, since a registration may be on its way
    bool busy;           ///< nothing was done: another thread is sweeping or marking
};

/// A queue of timers of one delay; each is a `T` that is named, not owned or touched.
///
/// A ring for idle connections, 30 s in milliseconds:
///
///     timeout_ring<connection> ring(30'000, 100'000, now_up());
///
///     const ring_registration r = ring.try_register(c);     // any thread
///     if (r.status == ring_status::registered) {
///         c.ticket = r.ticket;
///         if (r.first)
///             wake_the_driver();
///     }
///
///     if (ring.cancel(c.ticket) != nullptr) {               // any thread
///         // c is ours: it will not expire
///     }
///
///     const ring_position seen = ring.position();           // the driver: before the clock
///     ring.mark(now_up(), seen);
///     std::array<connection*, 256> out;
///     const ring_sweep s = ring.expire(now_down(), out);
///     for (connection* idle : std::span(out).first(s.emitted))
///         idle->close();
///     sleep_until(s.more || s.busy ? now_down() : ring.next_wake());
///
/// Never early means: the delay and the stamp of a mark are rounded up to ticks, the `now` of
/// expire() is rounded down. The driver may hand out an item as soon as it is registered, so that whoever
/// lets go of items there must not be in the way of `c.ticket = ...`, if a thread may be kept from
/// going on for longer than the delay. wake_the_driver() has to last, as a flag under the driver's mutex does,
/// for a driver that is just going to sleep. A ring that is `full` may grow(prepare_growth()).
///
/// @par Thread safety
/// Any thread may call try_register(), cancel(), position(), close(), closed(), can_grow(),
/// prepare_growth(), grow(), has_room(), capacity(), size(), delay(), marks() and period() at any
/// time. So may it mark(), expire(), force() and drain(), of which one runs at a time: a call that
/// comes in between does nothing, and the sweeps say so. oldest(), next_wake(), in_open_period() and
/// replace() must not run beside those four, nor beside each other. No call waits for another thread.
/// @par Complexity
/// try_register() and cancel() are O(1), with one compare-exchange each; a registration that finds the
/// ring full looks at up to 64 slots more. expire(), force() and drain() look at no more slots than
/// there is room for in `out`. Only the constructor and prepare_growth() allocate.
template <class T>
class timeout_ring {
public:
    static constexpr std::size_t most_capacity = std::size_t{1} << 31;  ///< timers
    static constexpr std::uint64_t most_delay = std::uint64_t{1} << 62; ///< ticks
    static constexpr unsigned most_marks = 1024;                        ///< sub-periods in a delay

    class block;

    /// An empty ring.
    ///
    /// @param delay    of every timer, in ticks: 1 .. most_delay
    /// @param capacity timers that it has room for: 1 .. most_capacity
    /// @param now      when the first sub-period begins
    /// @param marks    sub-periods in a delay: 1 .. most_marks
    /// @throws std::invalid_argument if one of them is outside its range.
    timeout_ring(std::uint64_t delay, std::size_t capacity, tick now, unsigned marks = 8)
        : delay_(checked("delay", delay, most_delay)),
          period_((delay - 1) / checked("marks", marks, most_marks) + 1),
          capacity_(checked("capacity", capacity, most_capacity)),
          slots_(block::slots_for(capacity)), begin_(now), marks_(std::size_t{marks} + 1) {
        // relaxed: not shared yet.
        blocks_[0].store(block(capacity).slots_.release(), std::memory_order_relaxed);
    }

    timeout_ring(const timeout_ring&) = delete;
    timeout_ring& operator=(const timeout_ring&) = delete;

    ~timeout_ring() {
        // relaxed: whoever destroys the ring knows of all calls.
        for (std::atomic<slot*>& each : blocks_)
            delete[] each.load(std::memory_order_relaxed);
    }

    // --- any thread --------------------------------------------------------------------------

    /// Registers a timer that begins now. What the caller has written to the item before is
    /// visible to whoever gets it from cancel(), expire(), force() or drain().
    [[nodiscard]] ring_registration try_register(T& item) noexcept {
        const reservation mine = reserve();
        if (mine.status != ring_status::registered)
            return {mine.status, {}, false};
        publish(mine, item);
        // relaxed: ordered by reserve()'s acquire on tail_, see R4.
        const bool first = number_in(mine.word) == open_from_.load(std::memory_order_relaxed);
        return {ring_status::registered, ring_ticket::from_word(mine.word), first};
    }

    /// The item, which is the caller's then, and will not expire. nullptr if it is not running: it
    /// expired, or was cancelled by somebody, or the ticket is none.
    T* cancel(ring_ticket ticket) noexcept {
        slot* const where = slot_of(ticket);
        if (where == nullptr)
            return nullptr;
        const std::uint64_t number = number_in(ticket.word());
        std::uint64_t state = where->state.load(std::memory_order_acquire); // pairs with publish
        if (state != live(number))
            return nullptr;
        T* const item = where->item.load(std::memory_order_relaxed); // relaxed: see state
        // release: pairs with the acquire of `done` in sweep() and reclaim().
        // relaxed: on failure nothing is touched.
        if (!where->state.compare_exchange_strong(state, done(number), std::memory_order_release,
                                                  std::memory_order_relaxed))
            return nullptr;
        return item;
    }

    /// Behind all registrations that have been made. Take it before reading the clock, or the time of
    /// the latest registration, that goes to mark(); the latter is to be raised before registering.
    [[nodiscard]] ring_position position() const noexcept {
        return ring_position{number_in(tail_.load(std::memory_order_acquire))}; // pairs: reserve()
    }

    /// Registrations are refused from now on. One that is on its way may still be published; it
    /// is before position() then.
    void close() noexcept {
        tail_.fetch_or(closed_bit, std::memory_order_relaxed); // relaxed: carries no data
    }

    /// Whether close() was called.
    [[nodiscard]] bool closed() const noexcept {
        return (tail_.load(std::memory_order_relaxed) & closed_bit) != 0; // relaxed: no data
    }

    /// Whether twice the capacity would be allowed.
    [[nodiscard]] bool can_grow() const noexcept { return capacity() <= most_capacity / 2; }

    /// Room for a growth of twice the capacity. Changes nothing.
    ///
    /// @return nullptr if the ring can grow no more.
    /// @throws std::bad_alloc
    [[nodiscard]] std::unique_ptr<block> prepare_growth() const {
        // With a capacity of 1 at first, the last block is the one of most_capacity.
        const std::size_t now = capacity(); // once: another thread may double it
        return now <= most_capacity / 2 ? std::make_unique<block>(2 * now) : nullptr;
    }

    /// Doubles the capacity of a ring that is full. false: somebody was quicker, or there is room
    /// again, or the ring is closed or can grow no more. The caller tries to register again.
    bool grow(std::unique_ptr<block> room) noexcept {
        std::uint64_t word = tail_.load(std::memory_order_relaxed); // relaxed: compared below
        const unsigned next = block_in(word) + 1;
        if ((word & closed_bit) != 0 || next == most_blocks || used(word) < capacity_at(word))
            return false;
        if (block_at(next) == nullptr) {
            if (room == nullptr || room->capacity_ != 2 * capacity_at(word))
                return false;
            slot* none = nullptr;
            // release: pairs with block_at(). relaxed: who was quicker has the same room.
            if (blocks_[next].compare_exchange_strong(
                    none, room->slots_.get(), std::memory_order_release, std::memory_order_relaxed))
                (void)room->slots_.release(); // kept, even if the growth fails now
        }
        // release: pairs with reserve() and find(). Who has read the block that another thread has
        // put in place hands it on as well.
        // relaxed: on failure nothing is read.
        return tail_.compare_exchange_strong(word, word + one_block, std::memory_order_release,
                                             std::memory_order_relaxed);
    }

    /// Whether a registration would find room, unless others come first. Frees what was cancelled
    /// in front of a full ring, as a registration does.
    [[nodiscard]] bool has_room() noexcept {
        for (bool reclaimed = false;; reclaimed = true) {
            const std::uint64_t word =
                tail_.load(std::memory_order_relaxed); // relaxed: only numbers
            if (used(word) < capacity_at(word))
                return true;
            if (reclaimed)
                return false;
            reclaim();
        }
    }

    /// The most slots that can be in use.
    [[nodiscard]] std::size_t capacity() const noexcept {
        return capacity_at(tail_.load(std::memory_order_relaxed)); // relaxed: only a number
    }

    /// The slots in use, those of cancelled timers included.
    [[nodiscard]] std::size_t size() const noexcept {
        // acquire: pairs with advance(). tail_ is read after it and is no smaller for that.
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        return static_cast<std::size_t>(tail_number() - head);
    }

    /// The delay of every timer, in ticks.
    [[nodiscard]] std::uint64_t delay() const noexcept { return delay_; }
    /// How many sub-periods a delay has.
    [[nodiscard]] unsigned marks() const noexcept {
        return static_cast<unsigned>(marks_.capacity() - 1);
    }
    /// The length of a sub-period in ticks: delay() / marks(), rounded up.
    [[nodiscard]] std::uint64_t period() const noexcept { return period_; }

    // --- drivers, one at a time: others are told that it is busy -----------------------------

    /// Says that all registrations before `seen` were made at or before `stamp`. If the open
    /// sub-period is over, it is closed. A stamp that goes back changes nothing.
    void mark(tick stamp, ring_position seen) noexcept { mark(stamp, stamp, seen); }

    /// Says that it is `now`, and that all registrations before `seen` were made at or before
    /// `latest`, which is no later than `now`. Who knows that is less late: the time from `latest` to
    /// `now`, in which the driver may have been kept from coming, does not count.
    void mark(tick now, tick latest, ring_position seen) noexcept {
        assert(latest <= now);
        const turn mine(*this);
        if (!mine)
            return;
        // relaxed: written by drivers only, and they are ordered by driver_.
        const std::uint64_t from = open_from_.load(std::memory_order_relaxed);
        if (tail_number() == from) {
            begin_ = std::max(begin_, now);
            return;
        }
        if (seen.number_ <= from || now < later(begin_, period_))
            return;
        const tick stamp = marks_.empty() ? latest : std::max(latest, marks_.back().stamp); // R3
        // Full only if the sweep is behind by more than a sub-period. The front is overwritten
        // then: its timers go with the second mark, which is due now as well.
        marks_.push_back({seen.number_, stamp});
        begin_ = now;
        open_at(seen.number_);
    }

    /// Hands out what was registered before the newest mark that is `delay` old. Looks at no more
    /// slots than there is room for. Goes on over what was cancelled behind the mark.
    ring_sweep expire(tick now, std::span<T*> out) noexcept {
        const turn mine(*this);
        if (!mine)
            return {0, false, true};
        while (marks_.size() > 1 && is_due(marks_[1], now))
            marks_.pop_front();
        const bool any = !marks_.empty() && is_due(marks_.front(), now);
        return sweep(any ? marks_.front().number : 0, out);
    }

    /// Hands out the oldest, whatever their age, to make room. No other timer becomes earlier.
    ring_sweep force(std::span<T*> out) noexcept {
        const turn mine(*this);
        return mine ? sweep(tail_number(), out) : ring_sweep{0, false, true};
    }

    /// Hands out what was registered before `upto`, in order.
    ring_sweep drain(ring_position upto, std::span<T*> out) noexcept {
        const turn mine(*this);
        return mine ? sweep(upto.number_, out) : ring_sweep{0, false, true};
    }

    // --- driver; the caller serialises these with the calls above ----------------------------

    /// The timer that expires next. It stays registered. nullptr: there is none, or it is on its
    /// way. Frees what was cancelled in front of it.
    [[nodiscard]] T* oldest() noexcept {
        unsigned hint = 0;
        for (;;) {
            reclaim();
            const std::uint64_t head = head_.load(std::memory_order_relaxed); // see find()
            const finding found = find(head, hint);
            if (found.where == nullptr)
                return nullptr;
            if (found.state == live(head))
                return found.where->item.load(std::memory_order_relaxed); // relaxed: see state
        }
    }

    /// When mark() and expire() have something to do: the open sub-period is over, and not empty,
    /// or the oldest mark is due.
    [[nodiscard]] tick next_wake() const noexcept {
        tick wake = tick::never();
        // relaxed: see R4 for tail_; open_from_ is written by drivers only.
        if (tail_number() != open_from_.load(std::memory_order_relaxed))
            wake = later(begin_, period_);
        if (!marks_.empty())
            wake = std::min(wake, later(marks_.front().stamp, delay_));
        return wake;
    }

    /// Whether a running timer was registered behind the newest mark. If so, it may begin anew
    /// where it is: the next mark will be later, if its `latest` knows of that. Serialise with
    /// position() to mark() as a whole.
    [[nodiscard]] bool in_open_period(ring_ticket ticket) const noexcept {
        // relaxed: written by drivers only.
        return ticket && number_in(ticket.word()) >= open_from_.load(std::memory_order_relaxed);
    }

    /// Whether a timer was registered before `place` was taken.
    [[nodiscard]] static bool is_before(ring_ticket ticket, ring_position place) noexcept {
        return number_in(ticket.word()) < place.number_;
    }

    /// Gives a running timer another item. The caller serialises this with its registration and
    /// cancel(ticket) as well.
    void replace(ring_ticket ticket, T& to) noexcept {
        slot* const where = slot_of(ticket);
        // relaxed: the caller serialises.
        if (where != nullptr &&
            where->state.load(std::memory_order_relaxed) == live(number_in(ticket.word())))
            where->item.store(&to, std::memory_order_relaxed);
    }

    /// Checks everything that can be checked. Only while no other call runs.
    /// @throws std::logic_error naming the invariant that does not hold.
    void invariant() const;

private:
    friend struct timeout_ring_probe; // test/time/timeout_ring_test.cpp

    // A word of tail_ or of a ticket: closed bit, 5 bits of block index, 58 bits of number. The
    // number of a ticket is what a slot is found by; a position is the number that comes next.
    static constexpr unsigned number_bits = 58;
    static constexpr unsigned most_blocks = 32;
    static constexpr std::uint64_t one_block = std::uint64_t{1} << number_bits;
    static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t first_number = 1;

    [[nodiscard]] static std::uint64_t number_in(std::uint64_t word) noexcept {
        return word & (one_block - 1);
    }
    [[nodiscard]] static unsigned block_in(std::uint64_t word) noexcept {
        return static_cast<unsigned>(word >> number_bits) % most_blocks;
    }

    // The state of a slot: the number of its ticket, and one of these. 0: never used.
    static constexpr unsigned phase_bits = 2;
    [[nodiscard]] static std::uint64_t live(std::uint64_t number) noexcept {
        return number << phase_bits | 1;
    }
    [[nodiscard]] static std::uint64_t done(std::uint64_t number) noexcept {
        return number << phase_bits | 2;
    }

    struct slot {
        std::atomic<std::uint64_t> state{0};
        std::atomic<T*> item{nullptr};
    };
    static_assert(sizeof(slot) <= 24);
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    static_assert(std::atomic<T*>::is_always_lock_free);

    struct time_mark {
        std::uint64_t number; // a position
        tick stamp;
    };

    /// So many slots are looked at by a registration that finds the ring full.
    static constexpr std::size_t reclaimed_at_once = 64;

    /// Apart from what other threads write at the same time.
    static constexpr std::size_t cache_line = 64;

    /// The right to drive, if nobody else has it.
    class turn {
    public:
        explicit turn(timeout_ring& ring) noexcept
            : ring_(ring), mine_(!ring.driver_.exchange(true, std::memory_order_acquire)) {}
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        ~turn() {
            if (mine_)
                ring_.driver_.store(false, std::memory_order_release); // pairs with the exchange
        }
        explicit operator bool() const noexcept { return mine_; }

    private:
        timeout_ring& ring_;
        bool mine_;
    };

    template <class Number>
    static Number checked(const char* argument, Number value, Number most) {
        if (value < 1 || value > most) {
            throw std::invalid_argument(std::string("pawl: timeout_ring: ") + argument + " is " +
                                        std::to_string(value) + ", allowed are 1 to " +
                                        std::to_string(most));
        }
        return value;
    }

    [[nodiscard]] static tick later(tick when, std::uint64_t by) noexcept {
        return tick{when.count() + std::min(by, tick::never().count() - when.count())};
    }

    /// What is due never does not come.
    [[nodiscard]] bool is_due(const time_mark& mark, tick now) const noexcept {
        const tick due = later(mark.stamp, delay_);
        return due <= now && due != tick::never();
    }

    /// The slots of a block; nullptr if there is no such block.
    [[nodiscard]] slot* block_at(unsigned index) const noexcept {
        return blocks_[index].load(std::memory_order_acquire); // pairs with grow
    }
    [[nodiscard]] std::size_t slots_in(unsigned index) const noexcept { return slots_ << index; }
    [[nodiscard]] std::size_t capacity_at(std::uint64_t word) const noexcept {
        return capacity_ << block_in(word);
    }
    /// Where in a block the slot of a ticket is.
    [[nodiscard]] std::size_t place_in(unsigned index, std::uint64_t number) const noexcept {
        return static_cast<std::size_t>(number) & (slots_in(index) - 1);
    }
    [[nodiscard]] std::uint64_t tail_number() const noexcept {
        return number_in(tail_.load(std::memory_order_relaxed)); // relaxed: only the number
    }

    /// How many slots are in use, seen from a word of tail_; 0 if that is no longer true.
    [[nodiscard]] std::uint64_t used(std::uint64_t word) const noexcept {
        // acquire: pairs with advance() and reclaim(), the slots before head are free.
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        return number_in(word) - std::min(head, number_in(word));
    }

    /// nullptr if there is no such block. No ticket has a slot, too: its state is not live.
    [[nodiscard]] slot* slot_of(ring_ticket ticket) const noexcept {
        const unsigned index = block_in(ticket.word());
        slot* const slots = block_at(index);
        return slots != nullptr ? slots + place_in(index, ticket.word()) : nullptr;
    }

    /// A ticket, and its slot, which belongs to who has reserved it until publish().
    struct reservation {
        ring_status status;
        std::uint64_t word;
        slot* where;
    };
    reservation reserve() noexcept {
        std::uint64_t word = tail_.load(std::memory_order_acquire); // pairs with grow
        for (bool reclaimed = false; (word & closed_bit) == 0;) {
            if (used(word) < capacity_at(word)) [[likely]] {
                // Looked up before the exchange, so that nothing but the stores of publish() stands
                // between it and the next one, which waits for them.
                slot* const where = block_at(block_in(word)) + place_in(block_in(word), word);
                // acquire: pairs with grow, and with open_at(), see R4.
                // release: pairs with position().
                if (tail_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel,
                                                std::memory_order_acquire)) [[likely]]
                    return {ring_status::registered, word, where};
                continue;
            }
            if (reclaimed)
                return {ring_status::full, 0, nullptr};
            reclaim();
            reclaimed = true;
            word = tail_.load(std::memory_order_acquire); // pairs with grow
        }
        return {ring_status::closed, 0, nullptr};
    }

    void publish(const reservation& mine, T& item) noexcept {
        mine.where->item.store(&item, std::memory_order_relaxed); // relaxed: see state
        // release: pairs with cancel and find().
        mine.where->state.store(live(number_in(mine.word)), std::memory_order_release);
    }

    /// The slot where a ticket was published, and its state then; {nullptr, 0} if there is none,
    /// because the ticket is not published yet, or the slot is used again.
    struct finding {
        slot* where;
        std::uint64_t state;
    };
    [[nodiscard]] finding find(std::uint64_t number, unsigned& block_hint) const noexcept {
        const auto look = [&](unsigned index) -> finding {
            slot& where = block_at(index)[place_in(index, number)];
            // acquire: pairs with publish, and with who made it done.
            const std::uint64_t state = where.state.load(std::memory_order_acquire);
            return state >> phase_bits == number ? finding{&where, state} : finding{nullptr, 0};
        };
        if (const finding found = look(block_hint); found.where != nullptr)
            return found;
        // acquire: pairs with grow.
        for (unsigned i = block_in(tail_.load(std::memory_order_acquire)) + 1; i-- != 0;) {
            if (const finding found = look(i); found.where != nullptr) {
                block_hint = i;
                return found;
            }
        }
        return {nullptr, 0};
    }

    /// Frees some of the slots in front that are done, for a ring that is full.
    void reclaim() noexcept {
        std::uint64_t head = head_.load(std::memory_order_relaxed); // relaxed: find() says more
        std::uint64_t to = head;
        unsigned hint = 0;
        while (to - head != reclaimed_at_once && find(to, hint).state == done(to))
            ++to;
        // If head_ is still the same, none of them has been used again.
        // release: pairs with used(). relaxed: on failure somebody else has made room.
        if (to != head)
            head_.compare_exchange_strong(head, to, std::memory_order_release,
                                          std::memory_order_relaxed);
    }

    /// Moves head_ up to `to`, unless it has passed that.
    void advance(std::uint64_t to) noexcept {
        std::uint64_t head = head_.load(std::memory_order_relaxed); // relaxed: compared below
        while (head < to &&
               // release: pairs with used(). relaxed: tried again.
               !head_.compare_exchange_weak(head, to, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }

    /// Moves the begin of the open sub-period. The driver asks next_wake() afterwards, which sees
    /// each registration that did not see this.
    void open_at(std::uint64_t number) noexcept {
        open_from_.store(number, std::memory_order_relaxed); // relaxed: released by the next line
        // Not a literal: of an addition of 0 clang leaves no instruction on x86 (LLVM issue 101551).
        volatile std::uint64_t nothing = 0;
        tail_.fetch_add(nothing, std::memory_order_release); // pairs with reserve()
    }

    /// Hands out what is live before `limit`, and frees slots on the way.
    ring_sweep sweep(std::uint64_t limit, std::span<T*> out) noexcept {
        std::uint64_t at = head_.load(std::memory_order_relaxed); // relaxed: find() says more
        std::size_t emitted = 0;
        unsigned hint = 0;
        for (std::size_t left = out.size(); left != 0; --left) {
            finding found = find(at, hint);
            if (found.where == nullptr) {
                // relaxed: who used the slot again has seen head_ behind it, and find() has
                // acquired that. What head_ released goes on with the exchange in advance().
                const std::uint64_t head = head_.load(std::memory_order_relaxed);
                if (head <= at)
                    break; // not published yet
                at = head;
                continue;
            }
            if (found.state == live(at)) {
                if (at >= limit)
                    break;
                T* const item = found.where->item.load(std::memory_order_relaxed); // see state
                // release: pairs with the acquire in reclaim().
                // acquire: on failure it was cancelled; pairs with cancel.
                if (found.where->state.compare_exchange_strong(found.state, done(at),
                                                               std::memory_order_release,
                                                               std::memory_order_acquire))
                    out[emitted++] = item;
            }
            ++at;
        }

        advance(at);
        while (!marks_.empty() && marks_.front().number <= at)
            marks_.pop_front();
        // relaxed: written by drivers only.
        if (open_from_.load(std::memory_order_relaxed) < at)
            open_at(at);
        return {emitted, at < limit, false};
    }

    // Read by all, seldom written.
    std::uint64_t delay_;
    std::uint64_t period_;
    std::size_t capacity_; // of the first block; each has twice that of the one before
    std::size_t slots_;    // in the first block, a power of two: those beyond the capacity rest
    std::array<std::atomic<slot*>, most_blocks> blocks_{};

    alignas(cache_line) std::atomic<std::uint64_t> tail_{first_number};

    // Positions; the second is where the open sub-period begins.
    alignas(cache_line) std::atomic<std::uint64_t> head_{first_number};
    std::atomic<std::uint64_t> open_from_{first_number};

    // Of the driver.
    alignas(cache_line) std::atomic<bool> driver_{false};
    tick begin_; // of the open sub-period
    boost::circular_buffer<time_mark> marks_;
};

/// Room for slots. Made by prepare_growth(), and good for grow() only.
template <class T>
class timeout_ring<T>::block {
public:
    /// @throws std::bad_alloc
    explicit block(std::size_t capacity)
        : capacity_(capacity), slots_(std::make_unique<slot[]>(slots_for(capacity))) {}

private:
    friend class timeout_ring;

    /// So that the slot of a ticket is found without a division.
    [[nodiscard]] static std::size_t slots_for(std::size_t capacity) noexcept {
        return std::bit_ceil(capacity);
    }

    std::size_t capacity_;
    std::unique_ptr<slot[]> slots_;
};

} // namespace pawl::time

#include <pawl/time/timeout_ring_invariant.hpp>

#endif
