// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Every pair of operations of broadcast_ring at the same time, each with a reader of its own, on a
// full ring. Run under ThreadSanitizer by .ci/run. Allowed are the results of one operation after
// the other, in either order, which the test determines by itself. Because no operation is atomic,
// these are also allowed:
//
//     write, drop    write, drop,   with destructors to run: one is refused while the other thread still
//                    cleanup        destroys the messages that it has freed. It does not wait for that
//     write, drop    cleanup        the writer has cleaned, and not published yet: nothing can be freed; or, with
//                                   lag, the cleanup frees the message that the writer has passed
//     cleanup        cleanup        with destructors to run: each frees a part
//     read, hold,    write, drop    the writer is refused, because of messages that are being read; or
//     join_oldest,                  the reader has missed the messages in the writer's way, and reads the rest
//     resume         cleanup        join and resume come first, and the read that follows comes last: nothing
//                                   was freed, or a part, and the reader has read or missed all messages
//                    close          it has read all, and later learns that the ring is closed
//
// Afterwards the remaining readers read the rest: nothing is lost, nothing comes twice. A message
// that is destroyed or overwritten under a reader is detected by its content, and by the
// sanitizers.

#include <pawl/broadcast_ring.hpp>

#define BOOST_TEST_MODULE broadcast_ring_race
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "support/invariants.hpp"
#include "support/meeting.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using pawl::broadcast_ring;
using pawl::read_status;
using pawl::ring_writers;
using pawl::slow_readers;

namespace broadcast_ring_race {

/// A message with a destructor, which leaves no valid message behind.
class checked {
public:
    static inline std::atomic<long> alive{0};

    checked(std::uint64_t v = 0) : value_(v), negated_(~v) { alive.fetch_add(1); }
    checked(const checked& other) : checked(other.value_) {}
    checked& operator=(const checked& other) {
        value_ = other.value_;
        negated_ = other.negated_;
        return *this;
    }
    ~checked() {
        value_ = negated_ = 0;
        alive.fetch_sub(1);
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }
    [[nodiscard]] bool is_whole() const { return value_ == ~negated_; }

private:
    std::uint64_t value_;
    std::uint64_t negated_;
};

/// A message that is copied in words: as large as an event of a timer.
struct copied {
    std::array<std::uint64_t, 5> words{};

    copied() = default;
    copied(std::uint64_t v) : words{v, ~v, v, ~v, v} {}
    [[nodiscard]] std::uint64_t value() const { return words[0]; }
    [[nodiscard]] bool is_whole() const {
        return words == std::array{words[0], ~words[0], words[0], ~words[0], words[0]};
    }
};

using rings = boost::mpl::list<broadcast_ring<checked, slow_readers::lag, ring_writers::many>,
                               broadcast_ring<copied, slow_readers::lag, ring_writers::many>,
                               broadcast_ring<checked, slow_readers::drop_new, ring_writers::many>,
                               broadcast_ring<copied, slow_readers::drop_new, ring_writers::many>,
                               broadcast_ring<checked, slow_readers::lag, ring_writers::one>,
                               broadcast_ring<copied, slow_readers::lag, ring_writers::one>,
                               broadcast_ring<checked, slow_readers::drop_new, ring_writers::one>,
                               broadcast_ring<copied, slow_readers::drop_new, ring_writers::one>>;

template <class Ring>
struct properties;
template <class T, slow_readers Policy, ring_writers Writers>
struct properties<broadcast_ring<T, Policy, Writers>> {
    static constexpr bool lag = Policy == slow_readers::lag;
    static constexpr bool many = Writers == ring_writers::many;
    static constexpr bool destroys = std::is_same_v<T, checked>;
    static constexpr bool copies = lag && !destroys;
};

// --- two operations on a full ring ---------------------------------------------------------------

enum class op {
    write,
    drop,
    read,
    hold,
    join_oldest,
    join_newest,
    leave,
    suspend,
    resume,
    cleanup,
    close
};
constexpr std::array op_names{"write", "drop",    "read",   "hold",    "join_oldest", "join_newest",
                              "leave", "suspend", "resume", "cleanup", "close"};
std::ostream& operator<<(std::ostream& out, op what) {
    return out << op_names[static_cast<std::size_t>(what)];
}
constexpr std::size_t ops = op_names.size();

/// The result of an operation.
struct answer {
    int did = 0;    ///< messages read or freed; or 0 or 1
    int missed = 0; ///< messages reported as missed
    read_status status = read_status::messages;

    auto operator<=>(const answer&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const answer& a) {
        return out << a.did << " missed " << a.missed << " status " << static_cast<int>(a.status);
    }
};
using answers = std::pair<answer, answer>;

constexpr std::uint64_t slots = 4;

/// Whether these are generations of a full ring and the messages of two writers, in order.
template <class Messages>
bool are_whole(const Messages& all) {
    std::set<std::uint64_t> seen;
    for (const auto& each : all) {
        if (!each.is_whole() || each.value() == 0 || !seen.insert(each.value()).second)
            return false;
    }
    return true;
}

template <class Ring>
class side {
    using message = typename Ring::value_type;
    using reader = typename Ring::reader;

public:
    side(Ring& ring, op what, std::uint64_t value) : ring_(ring), what_(what), value_(value) {
        if (what == op::read || what == op::hold || what == op::leave || what == op::suspend ||
            what == op::resume)
            reader_ = ring.join_oldest();
        if (what == op::resume)
            reader_->suspend();
    }

    answer act() {
        switch (what_) {
        case op::write:
            if (auto room = ring_.try_reserve(1)) {
                room.emplace(value_);
                room.publish();
                return {1};
            }
            return {0};
        case op::drop:
            if (auto room = ring_.try_reserve(1)) {
                room.emplace(value_);
                return {1};
            }
            return {0};
        case op::read:
            return read();
        case op::hold:
            return hold();
        case op::join_oldest:
            reader_ = ring_.join_oldest();
            first_ = static_cast<int>(reader_->position());
            return read();
        case op::join_newest:
            reader_ = ring_.join_newest();
            return {static_cast<int>(reader_->position())};
        case op::leave:
            reader_.reset();
            return {1};
        case op::suspend:
            reader_->suspend();
            return {1};
        case op::resume: {
            const auto missed = static_cast<int>(reader_->resume());
            answer got = read();
            return {got.did, got.missed, missed <= got.missed ? got.status : read_status::closed};
        }
        case op::cleanup:
            return {static_cast<int>(ring_.cleanup().size())};
        case op::close:
            ring_.close();
            return {1};
        }
        return {};
    }

    /// Reads until no message comes.
    void finish() {
        if (!reader_)
            return;
        reader_->resume();
        while (read().status == read_status::messages) {
        }
    }
    /// Whether read plus missed messages add up to the distance from the start to the present
    /// position.
    [[nodiscard]] bool balances(std::uint64_t skipped) const {
        const auto seen = static_cast<std::uint64_t>(all_read_ + all_missed_ + first_);
        return !reader_ || what_ == op::join_newest ||
               (seen <= reader_->position() && seen + skipped >= reader_->position());
    }

    int wrong = 0;

private:
    answer read() {
        std::array<message, 2 * slots> out{};
        const auto got = reader_->read(std::span(out));
        wrong += are_whole(std::span(out).first(got.count)) ? 0 : 1;
        return add({static_cast<int>(got.count), static_cast<int>(got.missed), got.status});
    }
    answer hold() {
        if constexpr (Ring::reads_copies) {
            return read();
        } else {
            const auto some = reader_->read();
            std::vector<message> once(some.begin(), some.end());
            std::this_thread::yield();
            wrong +=
                are_whole(once) && std::equal(once.begin(), once.end(), some.begin(), some.end(),
                                              [](const message& a, const message& b) {
                                                  return a.value() == b.value();
                                              })
                    ? 0
                    : 1;
            return add(
                {static_cast<int>(once.size()), static_cast<int>(some.missed()), some.status()});
        }
    }
    answer add(answer a) {
        all_read_ += a.did;
        all_missed_ += a.missed;
        return a;
    }

    Ring& ring_;
    op what_;
    std::uint64_t value_;
    std::optional<reader> reader_;
    int all_read_ = 0;
    int all_missed_ = 0;
    int first_ = 0;
};

/// A full ring. If there is an `idle` reader, it has not read the messages.
template <class Ring>
struct situation {
    situation(op mine, op its, bool with_idle) : ring(slots, 4) {
        if (with_idle)
            idle = ring.join_newest();
        for (std::uint64_t i = 1; i <= slots; ++i)
            ring.emplace(i);
        one.emplace(ring, mine, 10);
        other.emplace(ring, its, 11);
    }
    /// Returns the error at the end, or nothing.
    std::string judge() {
        one->finish();
        other->finish();
        constexpr std::uint64_t skipped = 2; // at most: one for each dropped reservation
        std::string complaint;
        if (one->wrong + other->wrong != 0)
            complaint += "a message is not whole, or came twice; ";
        if (!one->balances(skipped) || !other->balances(skipped))
            complaint += "read and missed are not all; ";
        pawl_test::check_invariant(ring);
        return complaint;
    }

    Ring ring;
    std::optional<typename Ring::reader> idle;
    std::optional<side<Ring>> one;
    std::optional<side<Ring>> other;
};

/// Results besides those of one after the other: see the head of this file.
template <class Ring>
bool may_also(op mine, op its, const answers& said) {
    using p = properties<Ring>;
    const auto is = [](op what, std::initializer_list<op> of) {
        return std::find(of.begin(), of.end(), what) != of.end();
    };
    const auto writes = [&](op what) { return is(what, {op::write, op::drop}); };
    const auto reads = [&](op what) {
        return is(what, {op::read, op::hold, op::join_oldest, op::resume});
    };
    if (p::destroys && writes(mine) && (writes(its) || its == op::cleanup) && said.first.did == 0)
        return true;
    if (writes(mine) && its == op::cleanup)
        return said.first.did == 1 && said.second.did <= (p::lag ? 1 : 0);
    if (p::destroys && mine == op::cleanup && its == op::cleanup)
        return true; // each frees a part
    if (reads(mine) && (writes(its) || its == op::cleanup))
        return said.first.did + said.first.missed <= static_cast<int>(slots) + 1;
    if (reads(mine) && its == op::close)
        return said.first.status == read_status::messages;
    return false;
}

template <class Ring>
void race(op mine, op its, bool with_idle, std::size_t rounds) {
    std::set<answers> allowed;
    {
        situation<Ring> s(mine, its, with_idle);
        const answer first = s.one->act();
        allowed.insert({first, s.other->act()});
    }
    {
        situation<Ring> s(mine, its, with_idle);
        const answer second = s.other->act();
        allowed.insert({s.one->act(), second});
    }

    std::optional<situation<Ring>> now;
    answer its_answer;
    pawl_test::barrier together(2);
    std::thread second([&] {
        for (std::size_t i = 0; i != rounds; ++i) {
            together.arrive_and_wait();
            its_answer = now->other->act();
            together.arrive_and_wait();
        }
    });
    std::vector<std::string> complaints;
    std::set<answers> seen;
    for (std::size_t i = 0; i != rounds; ++i) {
        now.emplace(mine, its, with_idle);
        together.arrive_and_wait();
        const answer my_answer = now->one->act();
        together.arrive_and_wait();
        const answers said{my_answer, its_answer};
        seen.insert(said);
        std::string complaint = now->judge();
        if (!allowed.contains(said) && !may_also<Ring>(mine, its, said) &&
            !may_also<Ring>(its, mine, {said.second, said.first}))
            complaint += "not allowed";
        if (!complaint.empty() && complaints.size() < 3)
            complaints.push_back(complaint);
        now.reset();
    }
    second.join();
    for (const std::string& each : complaints) {
        std::string outcomes;
        for (const auto& [a, b] : seen) {
            std::ostringstream text;
            text << "{" << a << " | " << b << "} ";
            outcomes += text.str();
        }
        BOOST_ERROR(mine << " and " << its << (with_idle ? ", with a slow reader" : "") << ": "
                         << each << "; seen: " << outcomes);
    }
}

} // namespace broadcast_ring_race

using namespace broadcast_ring_race;

BOOST_AUTO_TEST_CASE_TEMPLATE(each_pair_of_operations_comes_out_as_in_one_order_or_the_other, Ring,
                              rings) {
    using p = properties<Ring>;
    const long before = checked::alive.load();
    const std::size_t rounds = static_cast<std::size_t>(pawl_test::steps(100));
    for (std::size_t i = 0; i != ops; ++i) {
        for (std::size_t j = i; j != ops; ++j) {
            if (!p::many && j < 2)
                continue; // two writers
            race<Ring>(op(i), op(j), false, rounds);
            race<Ring>(op(i), op(j), true, rounds);
        }
    }
    BOOST_TEST(checked::alive.load() == before);
}

// Allowed: the last of them destroys the remaining messages, once.
BOOST_AUTO_TEST_CASE_TEMPLATE(writers_and_readers_leave_in_any_order, Ring, rings) {
    const long before = checked::alive.load();
    for (std::uint64_t round = 0; round != pawl_test::steps(2000); ++round) {
        auto ring = std::make_unique<Ring>(slots, 2);
        std::optional a = ring->join_newest();
        std::optional b = ring->join_newest();
        ring->emplace(std::uint64_t{1});
        pawl_test::barrier together(3);
        std::thread reads([&] {
            together.arrive_and_wait();
            std::array<typename Ring::value_type, slots> out{};
            (void)a->read(std::span(out));
            a.reset();
        });
        std::thread leaves([&] {
            together.arrive_and_wait();
            b.reset();
        });
        together.arrive_and_wait();
        ring.reset();
        reads.join();
        leaves.join();
    }
    BOOST_TEST(checked::alive.load() == before);
}

// --- many of each --------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t writers = 3;

std::uint64_t tagged(std::uint64_t writer, std::uint64_t number) {
    return (writer + 1) << 32 | number;
}

/// The messages that a reader has seen of each writer.
class order {
public:
    /// Whether messages of a writer come in order. Gaps are allowed if some were missed.
    template <class Message>
    bool takes(const Message& m) {
        const std::uint64_t writer = (m.value() >> 32) - 1;
        const std::uint64_t number = m.value() & 0xffff'ffff;
        if (!m.is_whole() || writer >= writers || number <= last_[writer])
            return false;
        last_[writer] = number;
        return true;
    }

private:
    std::array<std::uint64_t, writers> last_{};
};

} // namespace

// Allowed: each reader sees messages of one writer in order, and whole. A reader that stays has read
// or missed all published messages, and maybe skipped slots; unless the policy is lag, it has read
// them all. Published and dropped messages add up to all that were offered.
BOOST_AUTO_TEST_CASE_TEMPLATE(
    writers_write_while_readers_come_suspend_and_go, Ring,
    decltype(boost::mpl::list<broadcast_ring<checked, slow_readers::lag>,
                              broadcast_ring<copied, slow_readers::lag>,
                              broadcast_ring<checked, slow_readers::drop_new>,
                              broadcast_ring<checked, slow_readers::block>,
                              broadcast_ring<copied, slow_readers::block>>{})) {
    constexpr bool blocks = std::is_same_v<Ring, broadcast_ring<checked, slow_readers::block>> ||
                            std::is_same_v<Ring, broadcast_ring<copied, slow_readers::block>>;
    constexpr bool keeps = !properties<Ring>::lag;
    const long before = checked::alive.load();
    // A writer that waits sleeps for each reader, which on a busy machine is a time slice.
    const std::uint64_t each = pawl_test::steps(blocks ? 4'000 : 20'000);
    const std::uint64_t seed = pawl_test::seed();
    std::atomic<int> wrong{0};
    std::atomic<std::uint64_t> read{0};
    std::atomic<std::uint64_t> offered{0}, written{0}, skipped{0};
    std::array<std::uint64_t, 2> stayed{}; // what they have read and missed
    {
        auto ring = std::make_unique<Ring>(16, 8);
        std::vector<std::thread> threads;
        // Two that stay, and two that come and go.
        for (std::uint64_t r = 0; r != 4; ++r) {
            threads.emplace_back([&, r, reader = ring->join_newest()]() mutable {
                std::mt19937_64 random(seed + r);
                order seen;
                std::uint64_t counted = 0;
                std::array<typename Ring::value_type, 8> out{};
                for (bool more = true; more;) {
                    if constexpr (!Ring::reads_copies) {
                        if (random() % 2 == 0) {
                            const auto some = reader.read(1 + random() % 8);
                            for (const auto& m : some) {
                                wrong += seen.takes(m) ? 0 : 1;
                                ++counted;
                            }
                            counted += some.missed();
                            more = some.status() != read_status::closed;
                            continue;
                        }
                    }
                    const auto got = reader.read(std::span(out).first(1 + random() % 8));
                    for (const auto& m : std::span(out).first(got.count))
                        wrong += seen.takes(m) ? 0 : 1;
                    counted += got.count + got.missed;
                    wrong += keeps && (blocks || r < 2) && got.missed != 0 ? 1 : 0;
                    more = got.status != read_status::closed;
                    if (r >= 2 && random() % 64 == 0) {
                        reader.suspend();
                        std::this_thread::yield();
                        if constexpr (blocks)
                            reader.resume_newest();
                        else
                            reader.resume(); // the next read reports the missed messages
                    }
                    if (got.count == 0)
                        std::this_thread::yield();
                }
                wrong += counted <= reader.position() ? 0 : 1;
                read += counted;
                if (r < 2)
                    stayed[r] = counted;
            });
        }
        for (std::uint64_t w = 0; w != writers; ++w) {
            threads.emplace_back([&, w, mine = *ring]() mutable {
                std::mt19937_64 random(seed + 100 + w);
                std::vector<typename Ring::value_type> batch;
                for (std::uint64_t n = 1; n <= each;) {
                    if (random() % 16 == 0) { // sometimes longer than the ring
                        batch.clear();
                        for (std::uint64_t end = n + random() % 40; n != end; ++n)
                            batch.emplace_back(tagged(w, n));
                        written += mine.write(batch);
                        offered += batch.size();
                        continue;
                    }
                    const std::size_t size = 1 + random() % 4;
                    auto some = mine.reserve(size);
                    if (!some) {
                        offered += size;
                        ++n; // dropped
                        std::this_thread::yield();
                        continue;
                    }
                    if (random() % 16 == 0) {
                        some.emplace(tagged(w, 0)); // must never be seen
                        skipped += size;
                        continue;
                    }
                    for (; some.remaining() != 0 && n <= each; ++n)
                        some.emplace(tagged(w, n));
                    skipped += some.remaining();
                    written += size - some.remaining();
                    offered += size - some.remaining();
                    some.publish();
                }
            });
        }
        // Others that join anywhere and leave, and one that cleans.
        std::atomic<bool> over{false};
        std::thread comes_and_goes([&, mine = *ring]() mutable {
            std::mt19937_64 random(seed + 200);
            while (!over) {
                try {
                    auto reader = random() % 2 == 0 ? mine.join_oldest() : mine.join_newest();
                    order seen;
                    std::array<typename Ring::value_type, 4> out{};
                    const auto got = reader.read(std::span(out));
                    for (const auto& m : std::span(out).first(got.count))
                        wrong += seen.takes(m) ? 0 : 1;
                    reader.resume_at(random() % 2 == 0 ? mine.oldest() : mine.published());
                } catch (const pawl::broadcast_error& e) {
                    wrong += e.code() == pawl::broadcast_errc::too_old ? 0 : 1;
                }
                (void)mine.cleanup();
                wrong += mine.each_reader().size() <= 8 ? 0 : 1;
            }
        });
        for (std::size_t i = 4; i != threads.size(); ++i)
            threads[i].join();
        over = true;
        comes_and_goes.join();
        pawl_test::check_invariant(*ring);
        BOOST_TEST(ring->published() == written + skipped);
        BOOST_TEST(written + ring->dropped() == offered);
        ring.reset();
        for (std::size_t i = 0; i != 4; ++i)
            threads[i].join();
    }
    BOOST_TEST(wrong.load() == 0);
    BOOST_TEST(read.load() > 0U);
    for (const std::uint64_t all : stayed) {
        BOOST_TEST(all >= written);
        BOOST_TEST(all <= written + (keeps ? 0 : skipped.load()));
    }
    BOOST_TEST(checked::alive.load() == before);
}
