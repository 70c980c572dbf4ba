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
    explicit broadcast_ring_lockstep(Choices& choices)
        : choices_(choices), capacity_(std::size_t{1} << below(6)),
          places_(std::size_t{1} << below(3)), ring_(std::in_place, capacity_, places_) {
        trace("ring", capacity_, places_, "policy", static_cast<int>(Policy), many ? "many" : "one",
              copies ? "copies" : "objects");
    }

    void step() {
        const std::uint64_t dice = below(64);
        if (dice < 10)
            emplace();
        else if (dice < 14)
            write();
        else if (dice < 20)
            reserve();
        else if (dice < 25)
            fill();
        else if (dice < 30)
            publish();
        else if (dice < 32)
            drop();
        else if (dice < 33)
            split();
        else if (dice < 37)
            join();
        else if (dice < 39)
            leave();
        else if (dice < 42)
            suspend();
        else if (dice < 46)
            resume();
        else if (dice < 54)
            read();
        else if (dice < 58)
            hold();
        else if (dice < 61)
            release();
        else if (dice < 63)
            cleanup();
        else if (below(32) == 31)
            close();
        check();
    }

    /// All readers read the rest, before or after the end of the ring.
    void finish() {
        while (!held_.empty())
            drop();
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
            resume(*each);
            while (each->position < published())
                read(*each, 3);
            balance(*each);
            expect(each->actual.read(std::span<T>()).status == pawl::read_status::closed,
                   "not closed");
        }
        readers_.clear();
        ring_.reset();
        expect(owned_message::alive == alive_before_, "messages are left", owned_message::alive,
               alive_before_);
    }

private:
    enum class phase { reserved, written, skipped };
    struct message {
        phase now = phase::reserved;
        std::uint64_t value = 0;
    };
    struct reservation {
        typename ring_type::reservation actual;
        std::uint64_t first;
        std::uint64_t last;
        std::uint64_t at;
    };
    struct no_slice {};
    static auto slice_type() {
        if constexpr (copies)
            return no_slice{};
        else
            return std::optional<typename ring_type::slice>{};
    }
    struct reader {
        typename ring_type::reader actual;
        std::uint64_t position;
        std::uint64_t books; ///< where it began, plus what it has read, missed and skipped
        std::uint64_t missed = 0;
        bool suspended = false;
        bool holds = false;
        std::uint64_t held_to = 0;
        decltype(slice_type()) slice{};
    };

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

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
            if (each->holds || (!lag && !each->suspended))
                from = std::min(from, each->position);
        }
        return from;
    }
    /// A reader keeps what is published from now on.
    [[nodiscard]] bool keeps_unread() const {
        return std::any_of(readers_.begin(), readers_.end(),
                           [](const auto& each) { return each->holds || !each->suspended; });
    }
    [[nodiscard]] std::uint64_t room() const { return kept() + capacity_ - reserved(); }
    /// The oldest generation at which a reader can start.
    [[nodiscard]] std::uint64_t oldest() const { return ring_ ? ring_->oldest() : last_oldest_; }

    std::uint64_t new_value() { return ++values_; }

    /// The ring has been asked for slots up to `end`, and may have made room.
    void asked_for(std::uint64_t end) { asked_ = std::max(asked_, end); }

    // --- writing ---------------------------------------------------------------------------------

    /// With one writer there is one reservation at a time. With block, no other thread could make
    /// room.
    [[nodiscard]] bool may_reserve(std::uint64_t n) const {
        return (many || held_.empty()) &&
               (Policy != pawl::slow_readers::block || closed_ || n <= room());
    }

    void emplace() {
        if (!may_reserve(1))
            return;
        const bool expected = !closed_ && room() >= 1;
        const std::uint64_t value = new_value();
        asked_for(reserved() + 1);
        trace("emplace", value);
        expect(ring_->emplace(value) == expected, "emplace()", expected, reserved());
        if (expected)
            all_.push_back({phase::written, value});
        else
            dropped_ += expected || closed_ ? 0 : 1;
        offered_ += closed_ ? 0 : 1;
        settle();
    }

    /// A batch that is larger than the ring has several parts.
    void write() {
        const std::uint64_t n = below(4 * capacity_);
        // With block, a later part has room if no reader keeps the earlier ones.
        const bool waits = Policy == pawl::slow_readers::block && !closed_ && n > room() &&
                           (!held_.empty() || keeps_unread());
        if (waits || (!many && !held_.empty()))
            return;
        std::vector<T> batch;
        for (std::uint64_t i = 0; i != n; ++i)
            batch.emplace_back(values_ + 1 + i);
        std::uint64_t written = 0;
        while (written != n) {
            const std::uint64_t part = std::min<std::uint64_t>(n - written, capacity_);
            asked_for(reserved() + part);
            if (closed_ || room() < part)
                break;
            for (const std::uint64_t end = written + part; written != end; ++written)
                all_.push_back({phase::written, values_ + 1 + written});
            settle();
        }
        values_ += n;
        dropped_ += closed_ ? 0 : n - written;
        offered_ += closed_ ? 0 : n;
        trace("write", n, "written", written);
        expect(ring_->write(batch) == written, "write()", n, written);
    }

    void reserve() {
        const std::uint64_t n = 1 + below(capacity_);
        const std::uint64_t kind = below(3);
        if ((!many && !held_.empty()) || (kind == 0 && !may_reserve(n)))
            return;
        const bool fits = !closed_ && room() >= (kind == 2 ? 1 : n);
        const std::uint64_t most = fits ? std::min(n, room()) : 0;
        asked_for(reserved() + (kind == 2 ? 1 : n));
        auto got = kind == 0   ? ring_->reserve(static_cast<std::size_t>(n))
                   : kind == 1 ? ring_->try_reserve(static_cast<std::size_t>(n))
                               : ring_->try_reserve_some(static_cast<std::size_t>(n));
        trace("reserve", kind, n, "got", got.size());
        expect(static_cast<bool>(got) == fits, "a reservation", fits, n, room());
        expect(got.size() <= most && (kind == 2 || got.size() == most), "its size", got.size(),
               most);
        asked_for(reserved() + got.size());
        if (!fits) {
            dropped_ += kind == 0 && !closed_ ? n : 0;
            offered_ += kind == 0 && !closed_ ? n : 0;
            return;
        }
        expect(got.first() == reserved(), "first()", got.first(), reserved());
        const std::uint64_t first = reserved();
        all_.resize(all_.size() + got.size());
        const std::uint64_t last = first + got.size();
        held_.push_back({std::move(got), first, last, first});
    }

    void fill() {
        if (held_.empty())
            return;
        reservation& r = held_[static_cast<std::size_t>(below(held_.size()))];
        for (std::uint64_t n = below(4) + 1; n != 0 && r.at != r.last; --n) {
            expect(r.actual.remaining() == r.last - r.at, "remaining()", r.last - r.at);
            all_[r.at].value = new_value();
            r.actual.emplace(all_[r.at].value);
            ++r.at;
        }
    }

    void publish() {
        if (held_.empty())
            return;
        reservation r = take_held();
        trace("publish", r.first, r.at, r.last);
        r.actual.publish();
        end(r, r.at);
    }
    void drop() {
        if (held_.empty())
            return;
        reservation r = take_held();
        trace("drop", r.first, r.at, r.last);
        end(r, r.first);
    }
    reservation take_held() {
        const auto at = held_.begin() + static_cast<std::ptrdiff_t>(below(held_.size()));
        reservation r = std::move(*at);
        held_.erase(at);
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

    void split() {
        if constexpr (many) {
            if (held_.empty())
                return;
            reservation r = take_held();
            const std::uint64_t n = below(r.last - r.first + 1);
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
    }

    // --- readers ---------------------------------------------------------------------------------

    [[nodiscard]] std::uint64_t any_generation() { return below(published() + 3); }

    void join() {
        const std::uint64_t kind = below(3);
        const std::uint64_t generation = kind == 0   ? published()
                                         : kind == 1 ? oldest()
                                                     : any_generation();
        const auto begin = [&] {
            return kind == 0   ? ring_->join_newest()
                   : kind == 1 ? ring_->join_oldest()
                               : ring_->join_at(generation);
        };
        trace("join", kind, generation);
        if (readers_.size() == places_ || generation < oldest() || generation > published()) {
            expect_throw<pawl::broadcast_error>(begin, "join was not refused");
            return;
        }
        readers_.push_back(std::make_unique<reader>(reader{begin(), generation, generation}));
        expect(readers_.back()->actual.position() == generation, "joined at", generation);
    }

    reader* any_reader() {
        return readers_.empty() ? nullptr
                                : readers_[static_cast<std::size_t>(below(readers_.size()))].get();
    }

    void leave() {
        if (readers_.empty())
            return;
        const auto at = readers_.begin() + static_cast<std::ptrdiff_t>(below(readers_.size()));
        trace("leave", at - readers_.begin());
        release(**at);
        readers_.erase(at);
    }

    void suspend() {
        if (reader* const r = any_reader()) {
            release(*r);
            trace("suspend");
            r->actual.suspend();
            r->suspended = true;
        }
    }

    void resume(reader& r) {
        const std::uint64_t from = r.suspended ? std::max(r.position, oldest()) : r.position;
        expect(r.actual.resume() == from - r.position, "resume()", from, r.position);
        r.missed += from - r.position;
        r.position = from;
        r.suspended = false;
    }

    void resume() {
        reader* const r = any_reader();
        if (r == nullptr)
            return;
        release(*r);
        const std::uint64_t kind = below(4);
        trace("resume", kind);
        if (kind < 2)
            return resume(*r);
        const std::uint64_t generation = kind == 2 ? published() : any_generation();
        if (kind == 2) {
            r->actual.resume_newest();
        } else {
            const bool ahead = !lag && !r->suspended && generation >= r->position;
            if (generation > published() || (generation < oldest() && !ahead)) {
                expect_throw<pawl::broadcast_error>([&] { r->actual.resume_at(generation); },
                                                    "resume_at was not refused");
                return;
            }
            r->actual.resume_at(generation);
        }
        r->position = r->books = generation;
        r->missed = 0;
        r->suspended = false;
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

    void read() {
        if (reader* const r = any_reader())
            read(*r, static_cast<std::size_t>(below(2 * capacity_ + 1)));
    }
    void read(reader& r, std::size_t most) {
        release(r);
        std::vector<T> out(most);
        const pawl::read_result got = r.actual.read(std::span(out));
        r.books += got.count + got.missed;
        trace("read", most, "got", got.count, "missed", got.missed);
        if (!expect_status(r, got.status)) {
            expect(got.count == 0, "nothing is read", got.count);
            expect_missed(r, got.missed);
            return;
        }
        // A read of nothing need not check whether it was overtaken.
        if (!copies || most != 0)
            overtake(r);
        expect_missed(r, got.missed);
        std::size_t n = 0;
        while (r.position != published() && n != most) {
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

    void hold() {
        if constexpr (!copies) {
            reader* const r = any_reader();
            if (r == nullptr || r->holds)
                return;
            const std::uint64_t most = below(capacity_ + 1);
            r->slice.emplace(r->actual.read(static_cast<std::size_t>(most)));
            trace("hold", r->position, most);
            r->books += r->slice->missed();
            if (!expect_status(*r, r->slice->status())) {
                expect(r->slice->empty(), "an empty slice");
                expect_missed(*r, r->slice->missed());
                r->slice.reset();
                return;
            }
            overtake(*r);
            expect_missed(*r, r->slice->missed());
            r->holds = true;
            r->held_to = std::min(r->position + most, published());
            compare(*r);
        }
    }
    void release() {
        if (reader* const r = any_reader())
            release(*r);
    }
    void release(reader& r) {
        if constexpr (!copies) {
            if (!r.holds)
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
            r.holds = false;
            r.books += r.held_to - r.position;
            r.position = r.held_to;
            balance(r);
        }
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

    // --- the ring --------------------------------------------------------------------------------

    void cleanup() {
        const auto freed = ring_->cleanup();
        trace("cleanup", freed.first, freed.last);
        expect(freed.last <= kept(), "freed what is kept", freed.last, kept());
        if (!lag)
            expect(ring_->oldest() >= kept(), "not freed", ring_->oldest(), kept());
    }

    void close() {
        trace("close");
        ring_->close();
        closed_ = true;
    }

    void check() {
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
        for (const auto& each : readers_)
            expect(each->actual.position() == each->position, "position()", each->actual.position(),
                   each->position);
        if (held_.empty())
            pawl_test::check_invariant(*ring_);
    }

    Choices& choices_;
    const std::int64_t alive_before_ = owned_message::alive;
    std::size_t capacity_;
    std::size_t places_;
    std::optional<ring_type> ring_;

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
        broadcast_ring_lockstep<Ring, Choices> both(choices);
        while (more())
            both.step();
        both.finish();
    };
    const auto with = [&]<class T, pawl::slow_readers Policy>(std::type_identity<T>) {
        if (choices.below(2) == 0)
            on(std::type_identity<pawl::broadcast_ring<T, Policy, pawl::ring_writers::many>>{});
        else
            on(std::type_identity<pawl::broadcast_ring<T, Policy, pawl::ring_writers::one>>{});
    };
    using owned = std::type_identity<owned_message>;
    using copied = std::type_identity<copied_message>;
    switch (choices.below(6)) {
    case 0:
        return with.template operator()<owned_message, pawl::slow_readers::lag>(owned{});
    case 1:
        return with.template operator()<copied_message, pawl::slow_readers::lag>(copied{});
    case 2:
        return with.template operator()<owned_message, pawl::slow_readers::drop_new>(owned{});
    case 3:
        return with.template operator()<copied_message, pawl::slow_readers::drop_new>(copied{});
    case 4:
        return with.template operator()<owned_message, pawl::slow_readers::block>(owned{});
    default:
        return with.template operator()<copied_message, pawl::slow_readers::block>(copied{});
    }
}

} // namespace pawl_test

#endif
