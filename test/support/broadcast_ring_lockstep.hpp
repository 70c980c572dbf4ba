// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   broadcast_ring and a list of all messages since the start, in lockstep: each call is made on
//   both, and the outputs must be the same.
//
// Model
//   For each generation the list has its state (reserved, written or skipped) and its message. A
//   reader is a position. The list determines whether there is room: with lag, published messages
//   can go, except those in slices; otherwise, messages that all readers have read. The ring
//   decides when messages are freed, within bounds: oldest() never passes a message that a reader
//   keeps, and with lag three quarters of the ring stay. Messages are counted, so that each is
//   destroyed exactly once. Nothing gets lost: published plus dropped messages are those that were
//   offered, and read, missed and skipped generations are those that a reader has passed.
//
//   A public member makes one call, checks it, and returns what the ring has returned. step() draws
//   calls; the test vectors of broadcast rings are other calls of these members.
//
//   One thread plays parts of other threads: reservations that are published late, in any order, or
//   never; slices that are held while writers write.

#ifndef PAWL_TEST_SUPPORT_BROADCAST_RING_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_BROADCAST_RING_LOCKSTEP_HPP

#include <pawl/broadcast_ring.hpp>

#include "invariants.hpp"
#include "lockstep.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl_test {

/// A message with a destructor.
class owned_message {
public:
    static inline std::int64_t alive = 0;

    owned_message(std::uint64_t v = 0) : value_(std::make_unique<std::uint64_t>(v)) { ++alive; }
    owned_message(const owned_message& other) : owned_message(other.value()) {}
    owned_message& operator=(const owned_message& other) {
        *value_ = other.value();
        return *this;
    }
    ~owned_message() { --alive; }
    [[nodiscard]] std::uint64_t value() const { return *value_; }

private:
    std::unique_ptr<std::uint64_t> value_;
};

/// A message that is copied in words; the second word shows whether it is torn.
struct copied_message {
    std::uint64_t number = 0;
    std::uint64_t negated = ~std::uint64_t{0};

    copied_message() = default;
    copied_message(std::uint64_t v) : number(v), negated(~v) {}
    [[nodiscard]] std::uint64_t value() const { return number == ~negated ? number : ~number; }
};

template <class Ring, class Choices>
class broadcast_ring_lockstep;

template <class T, pawl::slow_readers Policy, pawl::ring_writers Writers, class Choices>
class broadcast_ring_lockstep<pawl::broadcast_ring<T, Policy, Writers>, Choices> {
    using ring_type = pawl::broadcast_ring<T, Policy, Writers>;
    static constexpr bool many = Writers == pawl::ring_writers::many;
    static constexpr bool lag = Policy == pawl::slow_readers::lag;
    static constexpr bool copies = ring_type::reads_copies;

public:
    struct reservation {
        typename ring_type::reservation actual;
        std::uint64_t first;
        std::uint64_t last;
        std::uint64_t at;
    };
    struct reader {
        typename ring_type::reader actual;
        std::uint64_t position;
        std::uint64_t books; ///< where it began, plus what it has read, missed and skipped
        std::uint64_t missed = 0;
        bool suspended = false;
        std::optional<typename ring_type::slice> slice{}; ///< not with copies
        std::uint64_t held_to = 0;
    };
    /// How slots are reserved: with reserve(), try_reserve() or try_reserve_some().
    enum class way { wait, all, some };
    /// The error of a call that is refused.
    using refusal = std::optional<pawl::broadcast_errc>;

    broadcast_ring_lockstep(Choices& choices, std::size_t capacity, std::size_t places)
        : choices_(choices), capacity_(capacity), places_(places),
          ring_(std::in_place, capacity_, places_) {
        trace("ring", capacity_, places_, "policy", static_cast<int>(Policy), many ? "many" : "one",
              copies ? "copies" : "objects");
    }

    void step() {
        const std::uint64_t dice = below(64);
        if (dice < 10) {
            if (may_reserve(1))
                emplace(new_value());
        } else if (dice < 14) {
            write(below(4 * capacity_));
        } else if (dice < 20) {
            const std::uint64_t n = 1 + below(capacity_);
            const auto how = static_cast<way>(below(3));
            if ((many || held_.empty()) && (how != way::wait || may_reserve(n)))
                reserve(how, n);
        } else if (dice < 33) {
            if (!held_.empty() && (many || dice != 32))
                step(dice, any_held());
        } else if (dice < 37) {
            const std::uint64_t kind = below(3);
            kind == 0 ? join_newest() : kind == 1 ? join_oldest() : join_at(any_generation());
        } else if (dice < 61) {
            if (!readers_.empty() && (!copies || dice < 54 || dice >= 58))
                step(dice, *readers_[static_cast<std::size_t>(below(readers_.size()))]);
        } else if (dice < 63) {
            cleanup();
        } else if (below(32) == 31) {
            close();
        }
        check();
    }

    /// All readers read the rest, before or after the end of the ring.
    void finish() {
        while (!held_.empty())
            drop(any_held());
        for (auto& each : readers_)
            release(*each);
        pawl_test::check_invariant(*ring_);
        const auto written = static_cast<std::uint64_t>(std::count_if(
            all_.begin(), all_.end(), [](const message& m) { return m.now == phase::written; }));
        expect(written + ring_->dropped() == offered_, "published and dropped", written, offered_);
        ring_->close();
        closed_ = true;
        const bool ring_first = below(2) == 0;
        if (ring_first)
            ring_.reset();
        for (auto& each : readers_) {
            std::vector<T> out(3);
            resume(*each);
            while (each->position < published())
                read(*each, out);
            balance(*each);
            expect(each->actual.read(std::span<T>()).status == pawl::read_status::closed,
                   "not closed");
        }
        readers_.clear();
        ring_.reset();
        expect(owned_message::alive == alive_before_, "messages are left", owned_message::alive,
               alive_before_);
    }

    // --- writing ---------------------------------------------------------------------------------

    /// @pre may_reserve(1)
    bool emplace(std::uint64_t value) {
        trace("emplace", value);
        const bool expected = offer(1, value) == 1;
        expect(ring_->emplace(value) == expected, "emplace()", expected, reserved());
        return expected;
    }
    /// A batch that is larger than the ring has several parts.
    void write(std::uint64_t n) {
        // With block, a later part has room if no reader keeps the earlier ones.
        const bool waits = Policy == pawl::slow_readers::block && !closed_ && n > room() &&
                           (!held_.empty() || keeps_unread());
        if (waits || (!many && !held_.empty()))
            return;
        std::vector<T> batch;
        for (std::uint64_t i = 0; i != n; ++i)
            batch.emplace_back(values_ + 1 + i);
        const std::uint64_t written = offer(n, values_ + 1);
        values_ += n;
        trace("write", n, "written", written);
        expect(ring_->write(batch) == written, "write()", n, written);
    }

    /// @return the reservation, or nullptr if there is none. @pre many or nothing is held
    reservation* reserve(way how, std::uint64_t n) {
        const auto get = [&] {
            const auto size = static_cast<std::size_t>(n);
            return how == way::wait  ? ring_->reserve(size)
                   : how == way::all ? ring_->try_reserve(size)
                                     : ring_->try_reserve_some(size);
        };
        const std::uint64_t least = how == way::some ? 1 : n;
        if (least > capacity_) {
            refuse(pawl::broadcast_errc::too_large, get);
            return nullptr;
        }
        const bool fits = !closed_ && room() >= least;
        const std::uint64_t most = fits ? std::min(n, room()) : 0;
        asked_for(reserved() + least);
        auto got = get();
        trace("reserve", static_cast<int>(how), n, "got", got.size());
        expect(static_cast<bool>(got) == fits, "a reservation", fits, n, room());
        expect(got.size() <= most && (how == way::some || got.size() == most), "its size",
               got.size(), most);
        asked_for(reserved() + got.size());
        if (!fits) {
            dropped_ += how == way::wait && !closed_ ? n : 0;
            offered_ += how == way::wait && !closed_ ? n : 0;
            return nullptr;
        }
        const std::uint64_t first = reserved();
        expect(got.first() == first, "first()", got.first(), first);
        all_.resize(all_.size() + got.size());
        const std::uint64_t last = first + got.size();
        return &held_.emplace_back(reservation{std::move(got), first, last, first});
    }
    /// The reservations that have not ended.
    [[nodiscard]] std::vector<reservation>& held() { return held_; }

    /// Writes the next slot of a reservation.
    void fill(reservation& r, std::uint64_t value) {
        expect(r.actual.remaining() == r.last - r.at, "remaining()", r.last - r.at);
        r.actual.emplace(value);
        all_[r.at++].value = value;
    }
    void publish(reservation& which) {
        reservation r = take(which);
        trace("publish", r.first, r.at, r.last);
        r.actual.publish();
        r.actual.publish(); // has no effect
        end(r, r.at);
    }
    void drop(reservation& which) {
        reservation r = take(which);
        trace("drop", r.first, r.at, r.last);
        end(r, r.first);
    }
    /// Afterwards the part in front is the last but one of held(), unless a part is empty.
    void split(reservation& which, std::uint64_t n)
        requires many
    {
        reservation r = take(which);
        trace("split", r.first, r.last, "at", n);
        const std::uint64_t middle = r.first + n;
        reservation front{r.actual.split(static_cast<std::size_t>(n)), r.first, middle,
                          std::min(r.at, middle)};
        r.first = middle;
        r.at = std::max(r.at, middle);
        if (front.first != front.last)
            held_.push_back(std::move(front));
        if (r.first != r.last)
            held_.push_back(std::move(r));
    }

    // --- readers ---------------------------------------------------------------------------------

    refusal join_newest() { return join(published(), &ring_type::join_newest); }
    refusal join_oldest() { return join(oldest(), &ring_type::join_oldest); }
    refusal join_at(std::uint64_t generation) {
        return join(generation, &ring_type::join_at, generation);
    }
    [[nodiscard]] reader& joined_last() { return *readers_.back(); }

    void leave(reader& r) {
        const auto at = std::find_if(readers_.begin(), readers_.end(),
                                     [&](const auto& each) { return each.get() == &r; });
        trace("leave", at - readers_.begin());
        release(r);
        readers_.erase(at);
    }

    void suspend(reader& r) {
        release(r);
        trace("suspend");
        r.actual.suspend();
        r.suspended = true;
    }

    void resume(reader& r) {
        release(r);
        trace("resume");
        const std::uint64_t from = r.suspended ? std::max(r.position, oldest()) : r.position;
        expect(r.actual.resume() == from - r.position, "resume()", from, r.position);
        r.missed += from - r.position;
        r.position = from;
        r.suspended = false;
    }
    void resume_newest(reader& r) {
        trace("resume_newest");
        r.actual.resume_newest();
        resumed(r, published());
    }
    refusal resume_at(reader& r, std::uint64_t generation) {
        trace("resume_at", generation);
        const bool ahead = !lag && !r.suspended && generation >= r.position;
        if (const refusal why = refused(generation, ahead ? generation : oldest()))
            return refuse(why, [&] { r.actual.resume_at(generation); });
        r.actual.resume_at(generation);
        resumed(r, generation);
        return {};
    }

    pawl::read_result read(reader& r, std::span<T> out) {
        release(r);
        const pawl::read_result got = r.actual.read(out);
        r.books += got.count + got.missed;
        trace("read", out.size(), "got", got.count, "missed", got.missed);
        if (!expect_status(r, got.status)) {
            expect(got.count == 0, "nothing is read", got.count);
            expect_missed(r, got.missed);
            return got;
        }
        // A read of nothing need not check whether it was overtaken.
        if (!copies || !out.empty())
            overtake(r);
        expect_missed(r, got.missed);
        std::size_t n = 0;
        while (r.position != published() && n != out.size()) {
            const message& next = all_[r.position++];
            if (next.now == phase::skipped) {
                ++r.books;
                continue;
            }
            expect(n < got.count, "a message is missing", n);
            expect(out[n].value() == next.value, "another message", out[n].value(), next.value);
            ++n;
        }
        expect(n == got.count, "messages", got.count, n);
        skip(r);
        balance(r);
        return got;
    }

    /// Reads in place, until release(). @pre the reader holds nothing
    void hold(reader& r, std::uint64_t most)
        requires(!copies)
    {
        r.slice.emplace(r.actual.read(static_cast<std::size_t>(most)));
        trace("hold", r.position, most);
        r.books += r.slice->missed();
        if (!expect_status(r, r.slice->status())) {
            expect(r.slice->empty(), "an empty slice");
            expect_missed(r, r.slice->missed());
            r.slice.reset();
            return;
        }
        overtake(r);
        expect_missed(r, r.slice->missed());
        r.held_to = std::min(r.position + most, published());
        compare(r);
    }
    void release(reader& r) {
        if constexpr (!copies) {
            if (!r.slice)
                return;
            trace("release", r.position, r.held_to);
            compare(r); // still the same, whatever happened in between
            if (below(2) == 0) {
                auto end = r.slice->begin();
                for (std::uint64_t n = below(4); n != 0 && end != r.slice->end(); --n)
                    ++end;
                r.held_to = end.generation();
                r.slice->end_at(end);
            }
            r.slice.reset();
            r.books += r.held_to - r.position;
            r.position = r.held_to;
            balance(r);
        }
    }
    // --- the ring --------------------------------------------------------------------------------

    pawl::freed_generations cleanup() {
        const auto freed = ring_->cleanup();
        trace("cleanup", freed.first, freed.last);
        expect(freed.last <= kept(), "freed what is kept", freed.last, kept());
        if (!lag)
            expect(ring_->oldest() >= kept(), "not freed", ring_->oldest(), kept());
        return freed;
    }

    /// Other handles of the ring, which are writers as well.
    void add_writer() { others_.push_back(*ring_); }
    void remove_writer() {
        if (!others_.empty())
            return others_.pop_back();
        ring_.reset();
        closed_ = true;
    }

    void close() {
        trace("close");
        ring_->close();
        closed_ = true;
    }

    /// What must hold between two calls.
    void check() {
        if (!ring_)
            return;
        expect(ring_->published() == published(), "published()", ring_->published(), published());
        expect(ring_->dropped() == dropped_, "dropped()", ring_->dropped(), dropped_);
        expect(ring_->readers() == readers_.size(), "readers()", readers_.size());
        const std::uint64_t now = ring_->oldest();
        expect(last_oldest_ <= now && now <= published(), "oldest()", now, last_oldest_);
        last_oldest_ = now;
        if (!lag) {
            for (const auto& each : readers_)
                expect(each->suspended || now <= each->position, "oldest() has passed a reader",
                       now, each->position);
        } else {
            const std::uint64_t gone = asked_ + (copies ? 0 : capacity_ / 4);
            expect(now + capacity_ <= std::max<std::uint64_t>(gone, capacity_), "lost too much",
                   now, asked_);
        }
        expect(ring_->writers() == 1 + others_.size(), "writers()", ring_->writers());
        for (const auto& each : readers_) {
            expect(each->actual.position() == each->position, "position()", each->actual.position(),
                   each->position);
            expect(each->actual.suspended() == each->suspended, "suspended()", each->suspended);
        }
        if (held_.empty())
            pawl_test::check_invariant(*ring_);
    }

    [[nodiscard]] ring_type& ring() { return *ring_; }

private:
    enum class phase { reserved, written, skipped };
    struct message {
        phase now = phase::reserved;
        std::uint64_t value = 0;
    };

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    reservation& any_held() { return held_[static_cast<std::size_t>(below(held_.size()))]; }
    std::uint64_t any_generation() { return below(published() + 3); }

    /// A call on a reservation.
    void step(std::uint64_t dice, reservation& r) {
        if (dice < 25) {
            for (std::uint64_t n = below(4) + 1; n != 0 && r.at != r.last; --n)
                fill(r, new_value());
        } else if (dice < 30) {
            publish(r);
        } else if (dice < 32) {
            drop(r);
        } else if constexpr (many) {
            split(r, below(r.last - r.first + 1));
        }
    }
    /// A call on a reader.
    void step(std::uint64_t dice, reader& r) {
        if (dice < 39) {
            leave(r);
        } else if (dice < 42) {
            suspend(r);
        } else if (dice < 46) {
            release(r);
            const std::uint64_t kind = below(4);
            if (kind < 2)
                resume(r);
            else if (kind == 2)
                resume_newest(r);
            else
                resume_at(r, any_generation());
        } else if (dice < 54) {
            std::vector<T> out(static_cast<std::size_t>(below(2 * capacity_ + 1)));
            read(r, out);
        } else if (dice >= 58) {
            release(r);
        } else if constexpr (!copies) {
            if (!r.slice)
                hold(r, below(capacity_ + 1));
        }
    }

    // --- the list's knowledge --------------------------------------------------------------------

    [[nodiscard]] std::uint64_t reserved() const { return all_.size(); }
    [[nodiscard]] std::uint64_t published() const { return published_; }
    void settle() {
        while (published_ != all_.size() && all_[published_].now != phase::reserved)
            ++published_;
    }
    /// The messages from this generation on must stay.
    [[nodiscard]] std::uint64_t kept() const {
        std::uint64_t from = published();
        if (copies)
            return from;
        for (const auto& each : readers_) {
            if (each->slice || (!lag && !each->suspended))
                from = std::min(from, each->position);
        }
        return from;
    }
    /// A reader keeps what is published from now on.
    [[nodiscard]] bool keeps_unread() const {
        return std::any_of(readers_.begin(), readers_.end(),
                           [](const auto& each) { return each->slice || !each->suspended; });
    }
    [[nodiscard]] std::uint64_t room() const { return kept() + capacity_ - reserved(); }
    /// The oldest generation at which a reader can start.
    [[nodiscard]] std::uint64_t oldest() const { return ring_ ? ring_->oldest() : last_oldest_; }

    std::uint64_t new_value() { return ++values_; }

    /// The ring has been asked for slots up to `end`, and may have made room.
    void asked_for(std::uint64_t end) { asked_ = std::max(asked_, end); }

    /// With one writer there is one reservation at a time. With block, no other thread could make
    /// room.
    [[nodiscard]] bool may_reserve(std::uint64_t n) const {
        return (many || held_.empty()) &&
               (Policy != pawl::slow_readers::block || closed_ || n <= room());
    }

    /// How many of `n` messages are written, in parts; the values rise from `value`.
    std::uint64_t offer(std::uint64_t n, std::uint64_t value) {
        std::uint64_t written = 0;
        while (written != n) {
            const std::uint64_t part = std::min<std::uint64_t>(n - written, capacity_);
            asked_for(reserved() + part);
            if (closed_ || room() < part)
                break;
            for (const std::uint64_t end = written + part; written != end; ++written)
                all_.push_back({phase::written, value + written});
            settle();
        }
        dropped_ += closed_ ? 0 : n - written;
        offered_ += closed_ ? 0 : n;
        return written;
    }
    reservation take(reservation& which) {
        reservation r = std::move(which);
        held_.erase(held_.begin() + (&which - held_.data()));
        return r;
    }
    void end(reservation& r, std::uint64_t written) {
        if (many) {
            for (std::uint64_t g = r.first; g != r.last; ++g)
                all_[g].now = g < written ? phase::written : phase::skipped;
        } else { // unwritten slots are given back
            all_.resize(written);
            for (std::uint64_t g = r.first; g != written; ++g)
                all_[g].now = phase::written;
        }
        for (std::uint64_t g = r.first; g != written; ++g)
            ++offered_;
        settle();
    }

    /// Makes a call that must be refused.
    template <class Call>
    static refusal refuse(refusal why, Call call) {
        try {
            (void)call();
        } catch (const pawl::broadcast_error& e) {
            expect(e.code() == why, "another error", static_cast<int>(e.code()));
            return why;
        }
        throw std::logic_error("a call was not refused");
    }
    /// Why no reader can start here.
    [[nodiscard]] refusal refused(std::uint64_t generation, std::uint64_t oldest) const {
        if (generation > published())
            return pawl::broadcast_errc::in_the_future;
        return generation < oldest ? refusal(pawl::broadcast_errc::too_old) : refusal();
    }

    template <class... Args>
    refusal join(std::uint64_t generation, typename ring_type::reader (ring_type::*call)(Args...),
                 Args... args) {
        const auto begin = [&] { return (*ring_.*call)(args...); };
        trace("join", generation);
        if (const refusal why = readers_.size() == places_
                                    ? refusal(pawl::broadcast_errc::too_many_readers)
                                    : refused(generation, oldest()))
            return refuse(why, begin);
        readers_.push_back(std::make_unique<reader>(reader{begin(), generation, generation}));
        expect(readers_.back()->actual.position() == generation, "joined at", generation);
        return {};
    }
    /// A reader starts again, and has missed nothing.
    static void resumed(reader& r, std::uint64_t generation) {
        r.position = r.books = generation;
        r.missed = 0;
        r.suspended = false;
    }

    /// What it has read, missed and skipped is what it has passed.
    static void balance(const reader& r) {
        expect(r.books + r.missed == r.position, "read and missed", r.books, r.missed, r.position);
    }

    /// With lag: messages that have gone were missed.
    void overtake(reader& r) {
        if (!lag || r.position >= published())
            return;
        const std::uint64_t from = std::max(r.position, oldest());
        r.missed += from - r.position;
        r.position = from;
    }

    /// The ring decides whether skipped slots behind the last message are read.
    void skip(reader& r) {
        while (r.position < r.actual.position() && all_[r.position].now == phase::skipped) {
            ++r.position;
            ++r.books;
        }
    }
    /// Every read reports earlier missed messages, unless the reader is suspended.
    static void expect_missed(reader& r, std::uint64_t is) {
        const std::uint64_t expected = r.suspended ? 0 : std::exchange(r.missed, 0);
        expect(is == expected, "missed", is, expected);
    }
    bool expect_status(const reader& r, pawl::read_status is) {
        const pawl::read_status expected = r.suspended                ? pawl::read_status::suspended
                                           : r.position < published() ? pawl::read_status::messages
                                           : closed_                  ? pawl::read_status::closed
                                                                      : pawl::read_status::nothing;
        expect(is == expected, "status", static_cast<int>(is), static_cast<int>(expected));
        return is == pawl::read_status::messages;
    }

    void compare(reader& r) {
        auto at = r.slice->begin();
        for (std::uint64_t g = r.position; g != r.held_to; ++g) {
            if (all_[g].now == phase::skipped)
                continue;
            expect(at != r.slice->end() && at.generation() == g, "a message of a slice", g);
            expect(at->value() == all_[g].value, "another message in a slice", at->value(),
                   all_[g].value);
            ++at;
        }
        expect(at == r.slice->end(), "a slice is too long", r.held_to);
    }

    Choices& choices_;
    const std::int64_t alive_before_ = owned_message::alive;
    std::size_t capacity_;
    std::size_t places_;
    std::optional<ring_type> ring_;
    std::vector<ring_type> others_; // handles of the same ring

    std::vector<message> all_; // by generation
    std::uint64_t published_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t offered_ = 0; ///< messages that were published or dropped
    std::uint64_t values_ = 0;
    std::uint64_t asked_ = 0;
    std::uint64_t last_oldest_ = 0;
    bool closed_ = false;
    std::vector<std::unique_ptr<reader>> readers_;
    std::vector<reservation> held_;
};

/// Makes a number of calls on one ring, or as many as there are choices, and then ends it.
template <class Choices, class More>
void broadcast_ring_run(Choices& choices, More more) {
    const auto on = [&]<class Ring>(std::type_identity<Ring>) {
        const std::size_t capacity = std::size_t{1} << choices.below(6);
        const std::size_t places = std::size_t{1} << choices.below(3);
        broadcast_ring_lockstep<Ring, Choices> both(choices, capacity, places);
        while (more())
            both.step();
        both.finish();
    };
    const auto with = [&]<class T, pawl::slow_readers Policy>() {
        if (choices.below(2) == 0)
            on(std::type_identity<pawl::broadcast_ring<T, Policy, pawl::ring_writers::many>>{});
        else
            on(std::type_identity<pawl::broadcast_ring<T, Policy, pawl::ring_writers::one>>{});
    };
    switch (choices.below(6)) {
    case 0:
        return with.template operator()<owned_message, pawl::slow_readers::lag>();
    case 1:
        return with.template operator()<copied_message, pawl::slow_readers::lag>();
    case 2:
        return with.template operator()<owned_message, pawl::slow_readers::drop_new>();
    case 3:
        return with.template operator()<copied_message, pawl::slow_readers::drop_new>();
    case 4:
        return with.template operator()<owned_message, pawl::slow_readers::block>();
    default:
        return with.template operator()<copied_message, pawl::slow_readers::block>();
    }
}

} // namespace pawl_test

#endif
