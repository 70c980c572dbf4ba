// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::timeout_ring, a queue of timers that all have the same delay.
///
/// Purpose
///   Timers with one delay, such as the idle timeouts of connections. They expire in
///   the order of registration, so a queue suffices, and threads register and cancel without a
///   lock. Coarse: a timer is late by up to a given fraction of the delay. A ring has a fixed
///   capacity; growing is the caller's decision.
///
/// Model
///   A safe form of the circular timeout buffer that Pawl started from. A registration draws a
///   ticket from tail_. Tickets count from 1 and are never rebased. A slot is found by its ticket
///   modulo the number of slots, and names the ticket that owns it:
///
///       (ticket, live)  --cancel-->  (ticket, done)  --head_ moves past it-->  free for a later one
///                       --sweep--->
///
///   No state ever returns, so exactly one thread makes a slot `done`, and that thread owns the
///   item. A cancelled timer keeps its slot until head_ reaches it.
///
///               head_                                  tail_
///         free    | done  live  done  live ... live  (reserved)  free
///                              ^ mark T0     ^ mark T1     ^ open_from_
///
///   Time enters as marks: everything registered before a mark was registered at or before its
///   stamp. Once stamp + delay has come, the sweep goes up to the mark. The time since the newest
///   mark is the open sub-period; after delay / marks it is closed, which makes a mark. So a timer
///   registered at s expires in [s + delay, s + delay + period()], if the driver comes when
///   next_wake() says. A forced sweep moves no mark. If a driver comes late, so is the stamp,
///   unless it knows the time of the last registration.
///
///   Growing appends a block of twice the capacity (ring_slots.hpp). A sweep finds a ticket in the
///   block where it is published; it need not know where a block began.
///
/// Invariants
///   - Capacity invariant: head <= tail <= head + capacity. No two tickets of [head, tail) share a
///     slot.
///   - One-slot invariant: a ticket of [head, tail) is live or done in exactly one block, or not
///     yet published. No other slot is live.
///   - Mark invariant: marks ascend in ticket, and never descend in stamp; the open sub-period
///     begins at the newest mark or later. A mark moves past timers that are done, never past a
///     live one.
///   - Wake-up invariant: if the open sub-period is not empty, its first registration was answered
///     `first`, or a driver call has come since, after which next_wake() sees it.
///
/// Threads
///   Any thread may register, cancel, close, grow and query at any time. driver_ admits one driver
///   at a time; a second one gets `busy` and leaves. No thread waits for another:
///   - A reserved, unpublished slot ends a sweep, and delays the timers behind it.
///   - A registration that finds the ring full frees cancelled slots at the front itself. It moves
///     head_ as the sweep does, by compare-exchange, so it does not block a driver.
///
///   What            access                    order    pairs with, and why
///   slot.state      publish: store            release  the loads below: item, and what it points at
///                   cancel, sweep: load       acquire  publish
///                   cancel, sweep: to done    release  the loads of `done`: the item was read before
///                                                      the slot is free. Relaxed on failure in
///                                                      cancel, which then touches nothing; acquire
///                                                      in the sweep, which then frees the slot
///                   sweep, reclaim: load      acquire  `done`, to pass that on to head_
///   slot.item       all                       relaxed  ordered by slot.state
///   head_           advance, reclaim: rmw     release  registration: the slots before it are free.
///                                                      An rmw keeps what earlier ones released
///                   registration: load        acquire  the same. Each checks the ticket that it
///                                                      takes, so tail_ need not pass this on
///                   sweep, reclaim: load      relaxed  a slot itself shows whether it was recycled
///   tail_           registration: load, rmw   acquire  grow: the block; open_at: open_from_
///                   registration: rmw         release  position: a clock that is read after it is
///                                                      later than one read before registering
///                   position: load            acquire  the same
///                   grow: rmw                 release  registration, sweep: the block
///                   grow, has_room: load      relaxed  only numbers; compared again by the rmw
///                   open_at: rmw              release  registration (wake-up invariant)
///                   close: rmw                relaxed  carries no data, and keeps what was released
///   open_from_      open_at: store            relaxed  ordered by tail_: either the rmw in open_at
///                   registration: load        relaxed  comes later than a registration, and sees it,
///                                                      or the registration sees open_from_
///   blocks_         grow: rmw                 release  load: the slots are empty
///                   all: load                 acquire  grow. Relaxed in the destructor
///   driver_         exchange                  acquire  the store: marks_ and begin_
///                   store                     release  the next exchange
///
///   test/orders/timeout_ring_test.cpp has a bad execution for each order that is weakened alone.
///   Nothing needs sequential consistency: the only place where two threads write first and then
///   read what the other one writes is the wake-up invariant, and there both write tail_.
///
/// Cost
///   See the class; ring_slots.hpp has the memory. Tickets last for 2^58 registrations: 9 years at
///   10^9 a second.
#ifndef PAWL_TIME_TIMEOUT_RING_HPP
#define PAWL_TIME_TIMEOUT_RING_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/ring_slots.hpp>
#include <pawl/time/tick.hpp>

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::time {

// pawl::time::ring_ticket, ring_position and the results of the calls of a pawl::time::timeout_ring.

template <class T>
class timeout_ring;

/// Names a registration, as long as its ring lives. A ticket does not know its ring: using it with
/// another ring is undefined.
class ring_ticket {
public:
    /// No registration.
    constexpr ring_ticket() = default;

    /// The ticket as a number less than 2^63; 0 for none.
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

/// A position between two registrations.
class ring_position {
public:
    /// The position before all registrations.
    constexpr ring_position() = default;

    /// Whether they are the same position.
    friend constexpr bool operator==(const ring_position&, const ring_position&) = default;

private:
    template <class T>
    friend class timeout_ring;

    explicit constexpr ring_position(std::uint64_t number) noexcept : number_(number) {}

    std::uint64_t number_ = 0;
};

/// The result of a registration.
enum class ring_status {
    registered, ///< the timer is running
    full,       ///< all slots of the capacity are in use, possibly by cancelled timers
    closed,     ///< close() was called
};

/// The result of try_register().
struct ring_registration {
    ring_status status; ///< whether it was registered; if not, why
    ring_ticket ticket; ///< none, unless registered
    bool first;         ///< first in the open sub-period: the driver must call next_wake() again
};

/// The result of a sweep.
struct ring_sweep {
    std::size_t emitted; ///< items at the front of `out`; the caller owns them
    bool more;           ///< the end was not reached: call again. If nothing was emitted, let
                         ///< other threads run first: a registration may be unpublished
    bool busy;           ///< nothing was done: another thread is driving
};

/// A queue of timers with one delay. Each timer names a `T`, which the ring neither owns nor accesses.
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
///     if (ring.cancel(c.ticket)) {                          // any thread
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
/// To be never early, round the delay and the stamp of a mark up to ticks, and the `now` of
/// expire() down. The driver may hand out an item as soon as it is registered: if a thread may be
/// suspended before `c.ticket = ...` for longer than the delay, the code that releases items must
/// tolerate that. wake_the_driver() must also reach a driver that is about to sleep, as a flag
/// under the driver's mutex does. A ring that is `full` may grow(prepare_growth()).
///
/// @par Thread safety
/// Any thread may call try_register(), cancel(), position(), close(), closed(), prepare_growth(),
/// grow(), has_room(), capacity(), size(), delay(), marks() and period() at any time. Any thread may
/// call mark(), expire(), force() and drain() as well, of which one runs at a time: a concurrent
/// call does nothing, and the sweeps report it. oldest(), next_wake(), in_open_period() and replace()
/// must not run concurrently with those four, nor with each other.
/// No call waits for another thread.
/// @par Complexity
/// try_register() and cancel() are O(1), with one compare-exchange each; a registration that finds
/// the ring full examines up to 64 slots more. expire(), force() and drain() examine no more slots
/// than there is room for in `out`. Only the constructor and prepare_growth() allocate.
template <class T>
class timeout_ring : detail::ring_word {
public:
    static constexpr std::size_t most_capacity = std::size_t{1} << 31;  ///< timers
    static constexpr std::uint64_t most_delay = std::uint64_t{1} << 62; ///< ticks
    static constexpr unsigned most_marks = 1024;                        ///< sub-periods in a delay

    /// Room for timers. Made by prepare_growth(), for grow() only.
    using block = typename detail::ring_slots<T>::block;

    /// An empty ring.
    ///
    /// @param delay    the delay of every timer, in ticks: 1 .. most_delay
    /// @param capacity how many timers it has room for: 1 .. most_capacity
    /// @param now      when the first sub-period begins
    /// @param marks    sub-periods in a delay: 1 .. most_marks
    /// @throws std::invalid_argument if an argument is out of range.
    timeout_ring(std::uint64_t delay, std::size_t capacity, tick now, unsigned marks = 8)
        : delay_(checked("delay", delay, most_delay)),
          period_((delay - 1) / checked("marks", marks, most_marks) + 1),
          capacity_(checked("capacity", capacity, most_capacity)), slots_(capacity), begin_(now),
          marks_(std::size_t{marks} + 1) {}

    timeout_ring& operator=(timeout_ring&&) = delete;

    ~timeout_ring() = default;

    // --- any thread --------------------------------------------------------------------------

    /// Registers a timer that begins now. The caller's earlier writes to the item are visible to
    /// the thread that gets it from cancel(), expire(), force() or drain().
    [[nodiscard]] ring_registration try_register(T& item) noexcept {
        const reservation mine = reserve();
        if (mine.status != ring_status::registered)
            return {mine.status, {}, false};
        publish(mine, item);
        // relaxed: ordered by reserve()'s acquire on tail_ (wake-up invariant).
        const bool first = number_in(mine.word) == open_from_.load(std::memory_order_relaxed);
        return {ring_status::registered, ring_ticket::from_word(mine.word), first};
    }

    /// Stops a timer.
    /// @return the item, which the caller now owns and which will not expire; nullptr if the timer
    ///         has expired or was cancelled, or if the ticket is none.
    T* cancel(ring_ticket ticket) noexcept {
        slot* const where = slots_.slot_of(ticket.word());
        if (!where)
            return nullptr;
        const std::uint64_t number = number_in(ticket.word());
        std::uint64_t state = where->state.load(std::memory_order_acquire); // pairs with publish
        if (state != live(number))
            return nullptr;
        T* const item = where->item.load(std::memory_order_relaxed); // relaxed: see state
        // release: pairs with the acquire of `done` in sweep() and reclaim(). relaxed: on failure
        // nothing is touched.
        if (!where->state.compare_exchange_strong(state, done(number), std::memory_order_release,
                                                  std::memory_order_relaxed))
            return nullptr;
        return item;
    }

    /// The position after all registrations so far. Get it before reading the clock for mark(), or
    /// before reading the time of the latest registration, which must be raised before registering.
    [[nodiscard]] ring_position position() const noexcept {
        return ring_position{
            number_in(tail_.load(std::memory_order_acquire))}; // pairs with reserve()
    }

    /// Refuses registrations from now on. One that is in progress may still be published; it is
    /// then before position().
    void close() noexcept {
        tail_.fetch_or(closed_bit, std::memory_order_relaxed); // relaxed: carries no data
    }

    /// Whether close() was called.
    [[nodiscard]] bool closed() const noexcept {
        return (tail_.load(std::memory_order_relaxed) & closed_bit) != 0; // relaxed: no data
    }

    /// Allocates room to double the capacity. Changes nothing.
    ///
    /// @return nullptr if the ring can grow no more.
    /// @throws std::bad_alloc
    [[nodiscard]] std::unique_ptr<block> prepare_growth() const {
        // With an initial capacity of 1, the last block is the one of most_capacity.
        const std::size_t now = capacity(); // read once: another thread may double it
        return now <= most_capacity / 2 ? std::make_unique<block>(2 * now) : nullptr;
    }

    /// Doubles the capacity of a full ring.
    /// @return false if another thread was faster, there is room again, the ring is closed, or it
    ///         can grow no more. In any case, try to register again.
    bool grow(std::unique_ptr<block> room) noexcept {
        std::uint64_t word = tail_.load(std::memory_order_relaxed); // relaxed: compared below
        const unsigned next = block_in(word) + 1;
        if ((word & closed_bit) != 0 || next == most_blocks || used(word) < capacity_at(word))
            return false;
        if (!slots_.add(next, 2 * capacity_at(word), std::move(room)))
            return false;
        // release: pairs with reserve() and find(). Also passes on a block that another thread
        // installed. relaxed: on failure nothing is read.
        return tail_.compare_exchange_strong(word, word + one_block, std::memory_order_release,
                                             std::memory_order_relaxed);
    }

    /// Whether a registration would find room, unless others come first. Frees cancelled slots at
    /// the front of a full ring, as a registration does.
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

    /// The number of slots that can be in use.
    [[nodiscard]] std::size_t capacity() const noexcept {
        return capacity_at(tail_.load(std::memory_order_relaxed)); // relaxed: only a number
    }

    /// The number of slots in use, including those of cancelled timers.
    [[nodiscard]] std::size_t size() const noexcept {
        // acquire: pairs with advance(). tail_ is read later, so it is no smaller.
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        return static_cast<std::size_t>(tail_number() - head);
    }

    /// The delay of every timer, in ticks.
    [[nodiscard]] std::uint64_t delay() const noexcept { return delay_; }
    /// The number of sub-periods in a delay.
    [[nodiscard]] unsigned marks() const noexcept {
        return static_cast<unsigned>(marks_.capacity() - 1);
    }
    /// The length of a sub-period in ticks: delay() / marks(), rounded up.
    [[nodiscard]] std::uint64_t period() const noexcept { return period_; }

    // --- drivers: one at a time, others are told `busy` --------------------------------------

    /// Reports that all registrations before `seen` were made at or before `stamp`. Closes the open
    /// sub-period if it is over. A stamp that goes back changes nothing.
    void mark(tick stamp, ring_position seen) noexcept { mark(stamp, stamp, seen); }

    /// Reports the time `now`, and that all registrations before `seen` were made at or before
    /// `latest`, with `latest <= now`. Makes timers less late than mark(now, seen) if the driver
    /// was delayed: the time from `latest` to `now` does not count.
    void mark(tick now, tick latest, ring_position seen) noexcept {
        PAWL_ASSERT(latest <= now);
        const driving mine(*this);
        if (!mine)
            return;
        // relaxed: written by drivers only, which driver_ orders.
        const std::uint64_t from = open_from_.load(std::memory_order_relaxed);
        if (tail_number() == from) {
            begin_ = std::max(begin_, now);
            return;
        }
        if (seen.number_ <= from || now < later(begin_, period_))
            return;
        const tick stamp =
            marks_.empty() ? latest : std::max(latest, marks_.back().stamp); // mark invariant
        // Full only if the sweep is behind by more than a sub-period. This overwrites the front
        // mark: its timers expire with the second mark, which is due as well.
        marks_.push_back({seen.number_, stamp});
        begin_ = now;
        open_at(seen.number_);
    }

    /// Hands out the timers registered before the newest mark that is `delay` old. Examines no more
    /// slots than there is room for. Skips cancelled slots after the mark.
    ring_sweep expire(tick now, std::span<T*> out) noexcept {
        const driving mine(*this);
        if (!mine)
            return {0, false, true};
        while (marks_.size() > 1 && is_due(marks_[1], now))
            marks_.pop_front();
        const bool any = !marks_.empty() && is_due(marks_.front(), now);
        return sweep(any ? marks_.front().number : 0, out);
    }

    /// Hands out the oldest timers, whatever their age, to make room. No other timer becomes
    /// earlier.
    ring_sweep force(std::span<T*> out) noexcept {
        const driving mine(*this);
        return mine ? sweep(tail_number(), out) : ring_sweep{0, false, true};
    }

    /// Hands out the timers registered before `upto`, in order.
    ring_sweep drain(ring_position upto, std::span<T*> out) noexcept {
        const driving mine(*this);
        return mine ? sweep(upto.number_, out) : ring_sweep{0, false, true};
    }

    // --- driver; the caller serialises these with the calls above ----------------------------

    /// The timer that expires next. It stays registered. nullptr: there is none, or it is not yet
    /// published. Frees cancelled slots before it.
    [[nodiscard]] T* oldest() noexcept {
        unsigned hint = 0;
        for (;;) {
            reclaim();
            const std::uint64_t head = head_.load(std::memory_order_relaxed); // see find()
            const finding found = find(head, hint);
            if (!found.where)
                return nullptr;
            if (found.state == live(head))
                return found.where->item.load(std::memory_order_relaxed); // relaxed: see state
        }
    }

    /// When mark() and expire() have work: when the open sub-period is over and not empty, or the
    /// oldest mark is due.
    [[nodiscard]] tick next_wake() const noexcept {
        tick wake = tick::never();
        // relaxed: for tail_ see the wake-up invariant; open_from_ is written by drivers only.
        if (tail_number() != open_from_.load(std::memory_order_relaxed))
            wake = later(begin_, period_);
        if (!marks_.empty())
            wake = std::min(wake, later(marks_.front().stamp, delay_));
        return wake;
    }

    /// Whether a running timer was registered after the newest mark. If so, it can restart in
    /// place: the next mark will be later, if its `latest` includes the restart. Serialise this
    /// with the whole sequence from position() to mark().
    [[nodiscard]] bool in_open_period(ring_ticket ticket) const noexcept {
        // relaxed: written by drivers only.
        return ticket && number_in(ticket.word()) >= open_from_.load(std::memory_order_relaxed);
    }

    /// Whether a timer was registered before position `place`.
    [[nodiscard]] static bool is_before(ring_ticket ticket, ring_position place) noexcept {
        return number_in(ticket.word()) < place.number_;
    }

    /// Gives a running timer another item. The caller also serialises this with its registration
    /// and with cancel(ticket).
    void replace(ring_ticket ticket, T& to) noexcept {
        slot* const where = slots_.slot_of(ticket.word());
        // relaxed: the caller serialises.
        if (where && where->state.load(std::memory_order_relaxed) == live(number_in(ticket.word())))
            where->item.store(&to, std::memory_order_relaxed);
    }

private:
    friend struct timeout_ring_probe; // test/time/timeout_ring_test.cpp

    template <class>
    friend struct pawl::detail::invariant_of;

    using slots = detail::ring_slots<T>;
    using slot = typename slots::slot;
    using finding = typename slots::finding;

    struct time_mark {
        std::uint64_t number; // a position
        tick stamp;
    };

    /// How many slots a registration examines when the ring is full.
    static constexpr std::size_t reclaimed_at_once = 64;

    /// The right to drive, unless another thread has it.
    class driving {
    public:
        explicit driving(timeout_ring& ring) noexcept
            : ring_(ring), mine_(!ring.driver_.exchange(true, std::memory_order_acquire)) {}
        driving& operator=(driving&&) = delete;
        ~driving() {
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

    /// Whether a mark is due. A deadline of never() is never reached.
    [[nodiscard]] bool is_due(const time_mark& mark, tick now) const noexcept {
        const tick due = later(mark.stamp, delay_);
        return due <= now && due != tick::never();
    }

    [[nodiscard]] std::size_t capacity_at(std::uint64_t word) const noexcept {
        return capacity_ << block_in(word);
    }
    [[nodiscard]] std::uint64_t tail_number() const noexcept {
        return number_in(tail_.load(std::memory_order_relaxed)); // relaxed: only the number
    }

    /// The number of slots in use, seen from a word of tail_; 0 if that is outdated.
    [[nodiscard]] std::uint64_t used(std::uint64_t word) const noexcept {
        // acquire: pairs with advance() and reclaim(): the slots before head are free.
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        return number_in(word) - std::min(head, number_in(word));
    }

    /// A ticket and its slot. The thread that reserved the slot owns it until publish().
    struct reservation {
        ring_status status;
        std::uint64_t word;
        slot* where;
    };
    reservation reserve() noexcept {
        std::uint64_t word = tail_.load(std::memory_order_acquire); // pairs with grow
        for (bool reclaimed = false; (word & closed_bit) == 0;) {
            if (used(word) < capacity_at(word)) [[likely]] {
                // Looked up before the exchange, so that only the stores of publish() lie between
                // this exchange and the next one, which waits for them.
                slot* const where =
                    slots_.block_at(block_in(word)) + slots_.place_in(block_in(word), word);
                // acquire: pairs with grow, and with open_at() (wake-up invariant). release: pairs
                // with position().
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

    /// The slot where a ticket was published, and its state then; {nullptr, 0} if the ticket is not
    /// yet published, or the slot was recycled.
    [[nodiscard]] finding find(std::uint64_t number, unsigned& block_hint) const noexcept {
        if (const finding found = slots_.find_in(block_hint, number); found.where)
            return found;
        // acquire: pairs with grow.
        for (unsigned i = block_in(tail_.load(std::memory_order_acquire)) + 1; i-- != 0;) {
            if (const finding found = slots_.find_in(i, number); found.where) {
                block_hint = i;
                return found;
            }
        }
        return {nullptr, 0};
    }

    /// Frees some `done` slots at the front of a full ring.
    void reclaim() noexcept {
        std::uint64_t head = head_.load(std::memory_order_relaxed); // relaxed: find() says more
        std::uint64_t to = head;
        unsigned hint = 0;
        while (to - head != reclaimed_at_once && find(to, hint).state == done(to))
            ++to;
        // If head_ has not changed, none of them was recycled. release: pairs with used(). relaxed:
        // on failure another thread has made room.
        if (to != head)
            head_.compare_exchange_strong(head, to, std::memory_order_release,
                                          std::memory_order_relaxed);
    }

    /// Moves head_ up to `to`, unless it is past that.
    void advance(std::uint64_t to) noexcept {
        std::uint64_t head = head_.load(std::memory_order_relaxed); // relaxed: compared below
        while (head < to &&
               // release: pairs with used(). relaxed: tried again.
               !head_.compare_exchange_weak(head, to, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }

    /// Moves the start of the open sub-period. The driver calls next_wake() afterwards, which sees
    /// each registration that did not see this.
    void open_at(std::uint64_t number) noexcept {
        open_from_.store(number, std::memory_order_relaxed); // relaxed: released by the next line
        // Not a literal: clang omits the addition of a literal 0 on x86 (LLVM issue 101551).
        volatile std::uint64_t nothing = 0;
        tail_.fetch_add(nothing, std::memory_order_release); // pairs with reserve()
    }

    /// Hands out the live timers before `limit`, and frees slots on the way.
    ring_sweep sweep(std::uint64_t limit, std::span<T*> out) noexcept {
        std::uint64_t at = head_.load(std::memory_order_relaxed); // relaxed: find() says more
        std::size_t emitted = 0;
        unsigned hint = 0;
        for (std::size_t left = out.size(); left != 0; --left) {
            finding found = find(at, hint);
            if (!found.where) {
                // relaxed: the thread that recycled the slot saw head_ after it, and find() has
                // acquired that. The exchange in advance() passes on what head_ released.
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

    // Read by all threads, rarely written.
    std::uint64_t delay_;
    std::uint64_t period_;
    std::size_t capacity_; ///< of the first block; each further block has twice that
    slots slots_;

    alignas(pawl::detail::cache_line) std::atomic<std::uint64_t> tail_{first_number};

    // Positions. open_from_ is the start of the open sub-period.
    alignas(pawl::detail::cache_line) std::atomic<std::uint64_t> head_{first_number};
    std::atomic<std::uint64_t> open_from_{first_number};

    // For the driver only.
    alignas(pawl::detail::cache_line) std::atomic<bool> driver_{false};
    tick begin_; ///< of the open sub-period
    boost::circular_buffer<time_mark> marks_;
};

} // namespace pawl::time

#endif // PAWL_TIME_TIMEOUT_RING_HPP
