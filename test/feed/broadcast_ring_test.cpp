// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The promises of broadcast_ring, in one thread, with every policy, with one writer and with many,
// for messages that are copied and for messages that are read in place.

#define BOOST_TEST_MODULE broadcast_ring
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"
#include "support/invariants.hpp"

#include <pawl/broadcast_ring.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using boost::test_tools::per_element;
using pawl::broadcast_errc;
using pawl::broadcast_error;
using pawl::broadcast_ring;
using pawl::read_status;
using pawl::ring_writers;
using pawl::slow_readers;

namespace pawl {
std::ostream& operator<<(std::ostream& out, read_status s) {
    return out << std::array{"messages", "nothing", "suspended",
                             "closed"}[static_cast<std::size_t>(s)];
}
std::ostream& operator<<(std::ostream& out, broadcast_errc e) { return out << static_cast<int>(e); }
} // namespace pawl

namespace pawl::detail {

/// Accesses members that tests cannot reach from outside.
struct ring_core_probe {
    static auto& reserved(auto& core) { return core.reserved_; }
    static auto& published(auto& core) { return core.published_; }
    static auto& oldest(auto& core) { return core.oldest_; }
    static auto& doomed(auto& core) { return core.doomed_; }
    static auto& freed(auto& core) { return core.free_; }
    static void set_written(auto& core, std::uint64_t g) {
        core.set_state(g, std::remove_cvref_t<decltype(core)>::phase::written);
    }
    static void set_freed(auto& core, std::uint64_t g) {
        core.set_state(g, std::remove_cvref_t<decltype(core)>::phase::freed);
    }
};

} // namespace pawl::detail

namespace broadcast_ring_test {

/// A message that can only be constructed in place, and read there.
class fixed {
public:
    explicit fixed(int value) : value_(value) {}
    fixed& operator=(fixed&&) = delete;
    ~fixed() { value_ = 0; }
    operator int() const { return value_; }

private:
    int value_;
};

} // namespace broadcast_ring_test

// Instantiates all members, also those that a kind of ring does not have.
template class pawl::broadcast_ring<int>;
template class pawl::broadcast_ring<std::string>;
template class pawl::broadcast_ring<broadcast_ring_test::fixed>;
template class pawl::broadcast_ring<int, slow_readers::block, ring_writers::one>;

namespace {

/// A message that is read in place, and counted.
class counted {
public:
    static inline long alive = 0;
    static inline long copied = 0;
    static inline long copies_left = -1; ///< before one throws; -1: no copy throws

    counted(int v = 0) : value_(v) { ++alive; }
    counted(const counted& other) : value_(other.value_) {
        copy();
        ++alive;
    }
    counted& operator=(const counted& other) {
        copy();
        value_ = other.value_;
        return *this;
    }
    ~counted() { --alive; }
    operator int() const { return value_; }

private:
    static void copy() {
        if (copies_left == 0) {
            copies_left = -1;
            throw std::runtime_error("a copy fails");
        }
        if (copies_left > 0)
            --copies_left;
        ++copied;
    }
    int value_;
};

template <class T, slow_readers Policy>
using many = broadcast_ring<T, Policy, ring_writers::many>;
template <class T, slow_readers Policy>
using one = broadcast_ring<T, Policy, ring_writers::one>;

using rings_that_drop =
    boost::mpl::list<many<int, slow_readers::drop_new>, one<int, slow_readers::drop_new>,
                     many<counted, slow_readers::drop_new>, one<counted, slow_readers::drop_new>>;
using rings_that_lag =
    boost::mpl::list<many<int, slow_readers::lag>, one<int, slow_readers::lag>,
                     many<counted, slow_readers::lag>, one<counted, slow_readers::lag>>;
using rings_that_block =
    boost::mpl::list<many<int, slow_readers::block>, one<int, slow_readers::block>,
                     many<counted, slow_readers::block>, one<counted, slow_readers::block>>;
using rings_that_drop_or_lag =
    boost::mpl::list<many<int, slow_readers::drop_new>, one<counted, slow_readers::drop_new>,
                     many<int, slow_readers::lag>, one<int, slow_readers::lag>,
                     many<counted, slow_readers::lag>, one<counted, slow_readers::lag>>;
using rings_of_many_writers_that_block =
    boost::mpl::list<many<int, slow_readers::block>, many<counted, slow_readers::block>>;
using rings_of_objects =
    boost::mpl::list<many<counted, slow_readers::drop_new>, one<counted, slow_readers::drop_new>,
                     many<counted, slow_readers::lag>, one<counted, slow_readers::lag>,
                     many<counted, slow_readers::block>, one<counted, slow_readers::block>>;
using rings_of_objects_that_lag =
    boost::mpl::list<many<counted, slow_readers::lag>, one<counted, slow_readers::lag>>;
using rings_of_many_writers =
    boost::mpl::list<many<int, slow_readers::drop_new>, many<int, slow_readers::lag>,
                     many<counted, slow_readers::drop_new>, many<counted, slow_readers::lag>,
                     many<counted, slow_readers::block>>;
using all_rings =
    boost::mpl::list<many<int, slow_readers::drop_new>, one<int, slow_readers::drop_new>,
                     many<counted, slow_readers::drop_new>, one<counted, slow_readers::drop_new>,
                     many<int, slow_readers::lag>, one<int, slow_readers::lag>,
                     many<counted, slow_readers::lag>, one<counted, slow_readers::lag>,
                     many<int, slow_readers::block>, one<int, slow_readers::block>,
                     many<counted, slow_readers::block>, one<counted, slow_readers::block>>;

/// [first, last) as messages.
std::vector<int> numbers(int first, int last) {
    std::vector<int> all;
    for (; first < last; ++first)
        all.push_back(first);
    return all;
}

/// Publishes [first, last), one by one. Returns how many were dropped.
template <class Ring>
int publish(Ring& ring, int first, int last) {
    int dropped = 0;
    for (; first < last; ++first)
        dropped += ring.emplace(first) ? 0 : 1;
    return dropped;
}

struct got {
    std::vector<int> messages;
    std::uint64_t missed = 0;
    read_status status = read_status::nothing;
};

/// A ring whose messages are all destroyed at the end.
struct balance {
    const long before = counted::alive;
    balance() { counted::copies_left = -1; }
    ~balance() { BOOST_TEST(counted::alive == before); }
};

template <class Ring, class Call>
broadcast_error error_of(Call call) {
    try {
        call();
    } catch (const broadcast_error& e) {
        return e;
    }
    throw std::logic_error("it was not refused");
}

/// A writer in a thread of its own, which usually waits after construction.
class waiting_writer {
public:
    template <class Write>
    explicit waiting_writer(Write write)
        : written_(std::async(std::launch::async, [this, write] {
              begins_.set_value();
              return write();
          })) {
        begins_.get_future().get();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    /// Fails if it still waits. The caller then lets it go.
    [[nodiscard]] bool ends() {
        const bool ends = written_.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
        BOOST_TEST(ends, "the writer still waits");
        return ends;
    }
    /// Whether it has written.
    [[nodiscard]] bool get() { return written_.get(); }

private:
    std::promise<void> begins_;
    std::future<bool> written_;
};

/// The reads of one type of ring.
template <class Ring>
struct of {
    static got read(typename Ring::reader& reader, std::size_t most = 64) {
        std::vector<typename Ring::value_type> room(most);
        const auto result = reader.read(std::span(room));
        return {{room.begin(), room.begin() + static_cast<std::ptrdiff_t>(result.count)},
                result.missed,
                result.status};
    }
};

} // namespace

// --- readers -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(each_reader_sees_each_message_in_order, Ring, all_rings) {
    const balance all;
    Ring ring(16, 4);
    auto a = ring.join_newest();
    auto b = ring.join_newest();

    publish(ring, 0, 10);

    BOOST_TEST(of<Ring>::read(a).messages == numbers(0, 10), per_element());
    BOOST_TEST(of<Ring>::read(b, 4).messages == numbers(0, 4), per_element());
    BOOST_TEST(of<Ring>::read(b, 4).messages == numbers(4, 8), per_element());
    BOOST_TEST(of<Ring>::read(b, 4).messages == numbers(8, 10), per_element());
    BOOST_TEST(of<Ring>::read(a).status == read_status::nothing);
    BOOST_TEST(a.position() == 10U);
    BOOST_TEST(ring.published() == 10U);
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_joins_at_the_newest_the_oldest_or_any_generation_between,
                              Ring, all_rings) {
    const balance all;
    Ring ring(16, 4);
    publish(ring, 0, 6);

    auto newest = ring.join_newest();
    auto oldest = ring.join_oldest();
    auto middle = ring.join_at(4);

    BOOST_TEST(newest.position() == 6U);
    BOOST_TEST(newest.available() == 0U);
    BOOST_TEST(of<Ring>::read(newest).status == read_status::nothing);
    BOOST_TEST(of<Ring>::read(oldest).messages == numbers(0, 6), per_element());
    BOOST_TEST(middle.available() == 2U);
    BOOST_TEST(of<Ring>::read(middle).messages == numbers(4, 6), per_element());
    BOOST_TEST(ring.join_at(6).position() == 6U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_place_that_was_left_does_not_say_where_its_next_reader_begins, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(16, 2);
    auto slow = ring.join_newest();
    {
        auto quick = ring.join_newest();
        publish(ring, 0, 8);
        (void)of<Ring>::read(quick);
    }

    auto late = ring.join_oldest(); // in the place of the quick one

    BOOST_TEST(of<Ring>::read(late).messages == numbers(0, 8), per_element());
    BOOST_TEST(slow.available() == 8U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_that_left_keeps_nothing, Ring, rings_that_drop) {
    const balance all;
    Ring ring(4, 2);
    {
        auto reader = ring.join_newest();
        BOOST_TEST(publish(ring, 0, 5) == 1);
        BOOST_TEST(ring.readers() == 1U);
    }

    BOOST_TEST(ring.readers() == 0U);
    BOOST_TEST(publish(ring, 5, 9) == 0);
    BOOST_TEST(ring.dropped() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(more_readers_than_places_are_refused_and_a_place_is_used_again, Ring,
                              all_rings) {
    Ring ring(8, 2);
    std::optional a = ring.join_newest();
    auto b = ring.join_newest();
    BOOST_TEST(a->id() != b.id());

    const auto refused = error_of<Ring>([&] { (void)ring.join_newest(); });
    BOOST_TEST(refused.code() == broadcast_errc::too_many_readers);
    BOOST_TEST(refused.value() == 3U);
    BOOST_TEST(refused.most() == 2U);
    BOOST_TEST(refused.what() ==
               std::string("pawl: broadcast_ring: join_newest(): the number of readers is 3, "
                           "allowed are 0 to 2"));
    BOOST_TEST(ring.readers() == 2U);

    a.reset();
    auto c = ring.join_newest();
    BOOST_TEST(c.id() != b.id());
    BOOST_TEST(ring.readers() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_can_be_moved, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto a = ring.join_newest();
    publish(ring, 0, 4);
    (void)of<Ring>::read(a, 1);

    auto b = std::move(a);
    BOOST_TEST(of<Ring>::read(b, 1).messages == numbers(1, 2), per_element());
    auto c = ring.join_newest();
    c = std::move(b);

    BOOST_TEST(of<Ring>::read(c).messages == numbers(2, 4), per_element());
    BOOST_TEST(ring.readers() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_that_jumps_forgets_what_it_missed, Ring,
                              rings_that_drop_or_lag) {
    for (const bool newest : {false, true}) {
        const balance all;
        Ring ring(8, 2);
        auto reader = ring.join_newest();
        reader.suspend();
        reader.suspend(); // has no effect
        publish(ring, 0, 30);
        BOOST_TEST(reader.resume() > 0U);
        BOOST_TEST(reader.resume() == 0U);
        if (newest)
            reader.resume_newest();
        else
            reader.resume_at(ring.published());
        publish(ring, 30, 31);
        const got last = of<Ring>::read(reader);
        BOOST_TEST(last.missed == 0U);
        BOOST_TEST(last.messages == numbers(30, 31), per_element());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(lag_a_writer_frees_at_least_a_quarter, Ring,
                              rings_of_objects_that_lag) {
    const balance all;
    Ring ring(16, 2);
    publish(ring, 0, 16);
    BOOST_TEST(ring.oldest() == 0U);
    publish(ring, 16, 17);
    BOOST_TEST(ring.oldest() == 4U);
    publish(ring, 17, 20);
    BOOST_TEST(ring.oldest() == 4U);
    BOOST_TEST(ring.reserve(8).size() == 8U);
    BOOST_TEST(ring.oldest() == 12U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_id_of_a_reader_leads_to_its_place, Ring, rings_that_drop_or_lag) {
    const balance all;
    constexpr std::size_t places = 4;
    Ring ring(8, places);
    std::vector<typename Ring::reader> readers;
    for (std::size_t round = 0; round != 20; ++round) {
        while (readers.size() != places)
            readers.push_back(ring.join_newest());
        std::vector<bool> seen(places);
        const auto listed = ring.each_reader();
        BOOST_TEST(listed.size() == places);
        for (const auto& each : listed) {
            BOOST_TEST(each.id != 0U);
            BOOST_TEST(!seen[each.id % places]); // each place has one
            seen[each.id % places] = true;
        }
        readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(round % places));
        if (round % 3 == 0)
            readers.erase(readers.begin());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_read_writes_nothing_behind_its_span, Ring, rings_that_lag) {
    const balance all;
    Ring ring(16, 2);
    auto reader = ring.join_newest();
    for (int i = 0; i != 3; ++i) {
        publish(ring, 2 * i, 2 * i + 2);
        (void)ring.reserve(1); // given up: with many writers it is skipped
    }
    publish(ring, 6, 10);
    std::vector<typename Ring::value_type> room(8, -1);
    const auto result = reader.read(std::span(room).first(5));
    BOOST_TEST(result.count == 5U);
    for (int i = 0; i != 8; ++i)
        BOOST_TEST(room[static_cast<std::size_t>(i)] == (i < 5 ? i : -1));
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(5, 10), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_that_is_moved_keeps_all_that_it_knows, Ring,
                              rings_that_drop_or_lag) {
    for (const bool assigned : {false, true}) {
        const balance all;
        Ring ring(8, 4), other(8, 1);
        using reader_type = typename Ring::reader;
        reader_type first = ring.join_newest();
        publish(ring, 0, 3);
        (void)of<Ring>::read(first, 1);
        first.suspend();
        publish(ring, 3, 30);
        const auto moved = [&](reader_type& from) {
            if (!assigned)
                return reader_type(std::move(from));
            reader_type to = other.join_newest();
            BOOST_TEST(other.readers() == 1U);
            to = std::move(from);
            BOOST_TEST(other.readers() == 0U);
            return to;
        };

        reader_type second = moved(first);
        BOOST_TEST(second.suspended());
        BOOST_TEST(second.position() == 1U);
        const std::uint64_t missed = second.resume();
        BOOST_TEST(missed > 0U);
        reader_type third = moved(second);
        BOOST_TEST(!third.suspended());
        BOOST_TEST(third.position() == 1 + missed);
        BOOST_TEST(ring.readers() == 1U);
        BOOST_TEST(ring.each_reader().at(0).id == third.id());

        const got rest = of<Ring>::read(third);
        BOOST_TEST(rest.missed == missed);
        BOOST_TEST(1 + rest.missed + rest.messages.size() == ring.published());
        BOOST_TEST(of<Ring>::read(third).missed == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_message_that_can_be_neither_copied_nor_moved_is_read_in_place) {
    broadcast_ring<broadcast_ring_test::fixed> r(4);
    auto reader = r.join_newest();
    BOOST_REQUIRE(r.emplace(7));

    const auto messages = reader.read();

    BOOST_REQUIRE(!messages.empty());
    BOOST_CHECK_EQUAL(*messages.begin(), 7);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(readers_and_their_positions_can_be_looked_at, Ring, all_rings) {
    Ring ring(8, 4);
    publish(ring, 0, 3);
    auto a = ring.join_at(1);
    auto b = ring.join_newest();

    const auto shown = ring.each_reader();

    BOOST_TEST(shown.size() == 2U);
    for (const auto& each : shown)
        BOOST_TEST(each.position == (each.id == a.id() ? 1U : 3U));
    (void)of<Ring>::read(a, 1);
    for (const auto& each : ring.each_reader())
        BOOST_TEST(each.position == (each.id == a.id() ? 2U : 3U));
    BOOST_TEST(b.position() == 3U);
}

// --- suspension ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_suspended_reader_reads_nothing_until_it_resumes, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 2);

    reader.suspend();
    reader.suspend();
    const got none = of<Ring>::read(reader);
    BOOST_TEST(none.status == read_status::suspended);
    BOOST_TEST(none.messages.empty());
    BOOST_TEST(reader.suspended());

    BOOST_TEST(reader.resume() == 0U);
    BOOST_TEST(reader.resume() == 0U);
    BOOST_TEST(!reader.suspended());
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 2), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_suspended_reader_keeps_nothing_and_learns_how_many_it_missed, Ring,
                              all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 3);
    reader.suspend();

    BOOST_TEST(publish(ring, 3, 20) == 0);
    BOOST_TEST(ring.dropped() == 0U);
    const std::uint64_t missed = reader.resume();
    BOOST_TEST(missed == ring.oldest());
    BOOST_TEST(missed >= 12U);
    const got rest = of<Ring>::read(reader);

    BOOST_TEST(rest.missed == missed);
    BOOST_TEST(rest.messages == numbers(static_cast<int>(missed), 20), per_element());
    BOOST_TEST(of<Ring>::read(reader).missed == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_resumes_at_the_newest_message_or_at_a_generation, Ring,
                              all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    reader.suspend();
    publish(ring, 0, 6);

    reader.resume_newest();
    BOOST_TEST(reader.position() == 6U);
    const got none = of<Ring>::read(reader);
    BOOST_TEST(none.status == read_status::nothing);
    BOOST_TEST(none.missed == 0U);

    reader.suspend();
    reader.resume_at(2);
    BOOST_TEST(of<Ring>::read(reader, 2).messages == numbers(2, 4), per_element());

    reader.resume_at(1); // backwards, without a suspension
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(1, 6), per_element());
    reader.resume_at(6);
    publish(ring, 6, 8);
    reader.resume_at(7); // forwards
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(7, 8), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_that_resumes_at_a_generation_keeps_all_from_there_on, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    reader.suspend();
    publish(ring, 0, 6);

    reader.resume_at(2);
    BOOST_TEST(publish(ring, 6, 12) == 2);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(2, 10), per_element());

    reader.resume_at(5); // backwards
    BOOST_TEST(publish(ring, 10, 20) == 7);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(5, 13), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_generation_that_is_gone_or_not_there_yet_is_refused, Ring,
                              all_rings) {
    const balance all;
    Ring ring(4, 2);
    publish(ring, 0, 9);
    const std::uint64_t oldest = ring.oldest();
    BOOST_TEST_REQUIRE(oldest >= 4U);
    auto reader = ring.join_newest();
    reader.suspend();

    const auto future = error_of<Ring>([&] { reader.resume_at(1000); });
    BOOST_TEST(future.code() == broadcast_errc::in_the_future);
    BOOST_TEST(future.value() == 1000U);
    BOOST_TEST(future.least() == oldest);
    BOOST_TEST(future.most() == 9U);
    const auto old = error_of<Ring>([&] { reader.resume_at(oldest - 1); });
    BOOST_TEST(old.code() == broadcast_errc::too_old);
    BOOST_TEST(old.value() == oldest - 1);
    BOOST_TEST(old.least() == oldest);
    BOOST_TEST(reader.suspended()); // nothing has changed
    BOOST_TEST(reader.position() == 9U);

    BOOST_TEST(
        (error_of<Ring>([&] { (void)ring.join_at(10); }).code() == broadcast_errc::in_the_future));
    const auto join = error_of<Ring>([&] { (void)ring.join_at(0); });
    BOOST_TEST(join.what() == "pawl: broadcast_ring: join_at(): generation is 0, allowed are " +
                                  std::to_string(oldest) + " to 9");
    BOOST_TEST(ring.readers() == 1U); // those that were refused have left
    reader.resume_at(9);
    BOOST_TEST(publish(ring, 9, 13) == 0);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(9, 13), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refused_generation_leaves_an_active_reader_where_it_is, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(4, 2);
    publish(ring, 0, 5);
    auto reader = ring.join_newest();
    publish(ring, 5, 8);

    BOOST_CHECK_THROW(reader.resume_at(0), broadcast_error);
    BOOST_CHECK_THROW(reader.resume_at(9), broadcast_error);

    BOOST_TEST(publish(ring, 8, 10) == 1); // it keeps its messages
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(5, 9), per_element());
}

// --- policies ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(lag_a_slow_reader_is_overtaken_and_told_how_many_it_missed, Ring,
                              rings_that_lag) {
    const balance all;
    Ring ring(8, 2);
    auto slow = ring.join_newest();
    auto quick = ring.join_newest();
    for (int i = 0; i != 100; ++i) {
        BOOST_TEST(ring.emplace(i));
        BOOST_TEST(of<Ring>::read(quick).messages == numbers(i, i + 1), per_element());
    }

    const got late = of<Ring>::read(slow);

    BOOST_TEST(late.missed == ring.oldest());
    BOOST_TEST(late.missed + late.messages.size() == 100U);
    BOOST_TEST(late.messages.size() >= 6U); // three quarters of the ring
    BOOST_TEST(late.messages == numbers(static_cast<int>(late.missed), 100), per_element());
    BOOST_TEST(of<Ring>::read(slow).missed == 0U);
    BOOST_TEST(ring.dropped() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(drop_new_a_slow_reader_keeps_its_messages_and_the_ring_counts, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(8, 2);
    auto slow = ring.join_newest();

    BOOST_TEST(publish(ring, 0, 20) == 12);

    BOOST_TEST(ring.dropped() == 12U);
    BOOST_TEST(of<Ring>::read(slow, 3).messages == numbers(0, 3), per_element());
    BOOST_TEST(publish(ring, 20, 30) == 7);
    BOOST_TEST(ring.dropped() == 19U);
    std::vector<int> rest = numbers(3, 8);
    for (const int each : numbers(20, 23))
        rest.push_back(each);
    BOOST_TEST(of<Ring>::read(slow).messages == rest, per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_reserve_neither_counts_nor_waits, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto slow = ring.join_newest();
    publish(ring, 0, 8);

    if (auto more = ring.try_reserve(1)) { // the policy is lag
        more.emplace(8);
        more.publish();
        BOOST_TEST(of<Ring>::read(slow).missed >= 1U);
    } else {
        BOOST_TEST(more.size() == 0U);
        BOOST_TEST(more.remaining() == 0U);
        (void)of<Ring>::read(slow);
        BOOST_TEST(ring.try_reserve(8).size() == 8U);
    }
    BOOST_TEST(ring.dropped() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(try_reserve_some_takes_what_there_is, Ring, rings_that_drop) {
    const balance all;
    Ring ring(8, 2);
    auto slow = ring.join_newest();
    publish(ring, 0, 6);

    auto two = ring.try_reserve_some(5);
    BOOST_TEST(two.size() == 2U);
    BOOST_TEST(two.first() == 6U);
    two.emplace(6);
    two.emplace(7);
    two.publish();
    BOOST_TEST(!two);

    BOOST_TEST(ring.try_reserve_some(5).size() == 0U);
    BOOST_TEST(ring.try_reserve_some(0).size() == 0U);
    (void)of<Ring>::read(slow);
    BOOST_TEST(ring.try_reserve_some(1000).size() == 8U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(block_a_writer_waits_until_a_reader_has_read_jumped_suspended_or_left,
                              Ring, rings_that_block) {
    using reader_type = std::optional<typename Ring::reader>;
    const std::array<void (*)(reader_type&), 5> ways{
        [](reader_type& r) { r->resume_newest(); },
        [](reader_type& r) { r->resume_at(2); },
        [](reader_type& r) { (void)of<Ring>::read(*r, 1); },
        [](reader_type& r) { r->suspend(); },
        [](reader_type& r) { r.reset(); },
    };
    for (const auto& way : ways) {
        const balance all;
        Ring ring(2, 2);
        reader_type reader = ring.join_newest();
        publish(ring, 0, 2);

        waiting_writer writer([&] { return publish(ring, 2, 3) == 0; });
        way(reader);
        if (!writer.ends())
            ring.close();
        BOOST_TEST(writer.get());
        BOOST_TEST(ring.published() == 3U);
        BOOST_TEST(ring.dropped() == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(block_a_writer_that_waits_is_told_that_the_ring_is_closed, Ring,
                              rings_that_block) {
    Ring ring(2, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 2);

    waiting_writer writer([&] { return ring.emplace(2); });
    ring.close();
    if (!writer.ends())
        (void)of<Ring>::read(reader, 1);
    BOOST_TEST(!writer.get());
    BOOST_TEST(ring.dropped() == 0U);
    BOOST_TEST(ring.published() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(block_a_writer_waits_until_an_earlier_reservation_is_published, Ring,
                              rings_of_many_writers_that_block) {
    for (const bool publishes : {true, false}) {
        const balance all;
        Ring ring(2, 2);
        auto earlier = std::make_optional(ring.reserve(2));
        earlier->emplace(0);
        waiting_writer writer([&] { return ring.emplace(1); });
        if (publishes)
            earlier->publish();
        else
            earlier.reset();
        if (!writer.ends())
            ring.close();
        BOOST_TEST(writer.get());
        BOOST_TEST(ring.published() == 3U);
    }
}

// --- reservations --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_reserved_is_seen_when_it_is_published, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();

    auto three = ring.reserve(3);
    BOOST_TEST(static_cast<bool>(three));
    BOOST_TEST(three.first() == 0U);
    three.emplace(0);
    BOOST_TEST(three.remaining() == 2U);
    three.emplace(1);
    three.emplace(2);
    BOOST_TEST(of<Ring>::read(reader).status == read_status::nothing);
    three.publish();
    three.publish();

    BOOST_TEST(!three);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 3), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_that_is_dropped_blocks_nobody, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    (void)ring.reserve(1); // the oldest one
    publish(ring, 0, 1);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 1), per_element());

    try { // a writer that dies
        auto three = ring.reserve(3);
        three.emplace(100);
        three.emplace(101);
        throw std::runtime_error("a writer dies");
    } catch (const std::runtime_error&) {
        BOOST_TEST(ring.readers() == 1U);
    }
    publish(ring, 1, 4);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(1, 4), per_element());
    pawl_test::check_invariant(ring);

    for (int i = 4; i != 40; ++i) { // and so on around the ring
        {
            auto dropped = ring.reserve(2);
            dropped.emplace(102);
        }
        publish(ring, i, i + 1);
        BOOST_TEST(of<Ring>::read(reader).messages == numbers(i, i + 1), per_element());
    }
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_that_is_written_in_part_is_published_in_part, Ring,
                              all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    for (int i = 0; i != 20; i += 2) {
        auto some = ring.reserve(5);
        some.emplace(i);
        some.emplace(i + 1);
        some.publish();
        BOOST_TEST(of<Ring>::read(reader).messages == numbers(i, i + 2), per_element());
    }
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reservations_are_published_in_any_order_and_seen_in_theirs, Ring,
                              rings_of_many_writers) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    Ring other(ring);

    auto first = ring.reserve(2);
    auto second = other.reserve(1);
    auto third = ring.reserve(2);
    third.emplace(3);
    third.emplace(4);
    third.publish();
    BOOST_TEST(ring.published() == 0U);
    first.emplace(0);
    first.emplace(1);
    first.publish();
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 2), per_element());
    second.emplace(2);
    second.publish();

    BOOST_TEST(of<Ring>::read(reader).messages == numbers(2, 5), per_element());
    BOOST_TEST(ring.writers() == 2U);
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_can_be_split, Ring, rings_of_many_writers) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();

    auto back = ring.reserve(4);
    back.emplace(0);
    auto front = back.split(2);
    BOOST_TEST(front.remaining() == 1U);
    BOOST_TEST(back.remaining() == 2U);
    back.emplace(2);
    back.publish(); // one of its two messages
    front.emplace(1);
    front.publish();

    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 3), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_can_be_moved, Ring, rings_of_many_writers) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();

    auto a = ring.reserve(1);
    a.emplace(7);
    auto b = std::move(a);
    BOOST_TEST(!a);
    BOOST_TEST(a.remaining() == 0U);
    auto c = ring.reserve(1);
    c.emplace(8);
    c = std::move(b); // cancels the 8
    BOOST_TEST(!b);
    BOOST_TEST(b.remaining() == 0U);
    c.publish();
    BOOST_TEST(!c);
    BOOST_TEST(c.remaining() == 0U);

    BOOST_TEST(of<Ring>::read(reader).messages == numbers(7, 8), per_element());
    pawl_test::check_invariant(ring);

    Ring other(8, 2);
    auto second = other.join_newest();
    c = other.reserve(2);
    c.emplace(9);
    c.publish();
    BOOST_TEST(of<Ring>::read(second).messages == numbers(9, 10), per_element());
    BOOST_TEST(ring.published() == 2U);
    BOOST_TEST(other.published() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_is_written_at_once_and_may_be_longer_than_the_ring, Ring,
                              rings_that_lag) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    const std::vector<typename Ring::value_type> batch(20, 5);

    BOOST_TEST(ring.write(std::span(batch).first(6)) == 6U);
    BOOST_TEST(of<Ring>::read(reader).messages.size() == 6U);
    BOOST_TEST(ring.write(batch) == 20U);
    BOOST_TEST(ring.published() == 26U);
    BOOST_TEST(ring.write({}) == 0U);

    const got rest = of<Ring>::read(reader);
    BOOST_TEST(rest.missed + rest.messages.size() == 20U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_for_which_there_is_no_room_is_dropped_as_a_whole, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    const std::vector<typename Ring::value_type> batch(5, 5);

    BOOST_TEST(ring.write(batch) == 5U);
    BOOST_TEST(ring.write(batch) == 0U);

    BOOST_TEST(ring.dropped() == 5U);
    BOOST_TEST(of<Ring>::read(reader).messages.size() == 5U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_that_is_longer_than_the_room_is_dropped_from_there_on, Ring,
                              rings_that_drop) {
    const balance all;
    Ring ring(4, 2);
    auto slow = ring.join_newest();
    const std::vector<typename Ring::value_type> batch(10, 5);

    BOOST_TEST(ring.write(batch) == 4U);
    BOOST_TEST(ring.dropped() == 6U);
    BOOST_TEST(ring.write(batch) == 0U);
    BOOST_TEST(ring.dropped() == 16U);
    BOOST_TEST(ring.published() + ring.dropped() == 2 * batch.size());
    ring.close();
    BOOST_TEST(ring.write(batch) == 0U); // after the end nothing counts as dropped
    BOOST_TEST(ring.dropped() == 16U);
    BOOST_TEST(of<Ring>::read(slow).messages.size() == 4U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(lag_a_batch_in_the_way_of_a_slice_is_dropped_from_there_on, Ring,
                              rings_of_objects_that_lag) {
    const balance all;
    Ring ring(4, 2);
    auto slow = ring.join_newest();
    const std::vector<typename Ring::value_type> batch(10, 5);
    BOOST_TEST(ring.write(std::span(batch).first(1)) == 1U);
    {
        const auto some = slow.read();
        BOOST_TEST(ring.write(batch) == 0U); // a part of four has no room beside that one
        BOOST_TEST(ring.dropped() == 10U);
    }
    BOOST_TEST(ring.write(batch) == 10U);
    const got rest = of<Ring>::read(slow);
    BOOST_TEST(1 + rest.messages.size() + rest.missed == ring.published());
    BOOST_TEST(ring.published() + ring.dropped() == 1 + 2 * batch.size());
}

// --- slices --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slice_shows_messages_without_a_copy, Ring, rings_of_objects) {
    const balance all;
    Ring ring(8, 2);
    auto a = ring.join_newest();
    auto b = ring.join_newest();
    publish(ring, 0, 5);
    const long copied = counted::copied;

    {
        const auto of_a = a.read();
        const auto of_b = b.read(3);
        static_assert(std::ranges::forward_range<const typename Ring::slice>);
        static_assert(std::is_same_v<decltype(*of_a.begin()), const counted&>);
        BOOST_TEST(&*of_a.begin() == &*of_b.begin());
        BOOST_TEST(std::vector<int>(of_a.begin(), of_a.end()) == numbers(0, 5), per_element());
        BOOST_TEST(std::vector<int>(of_b.begin(), of_b.end()) == numbers(0, 3), per_element());
        BOOST_TEST(of_b.begin().generation() == 0U);
        auto second = of_a.begin();
        BOOST_TEST(*second++ == 0);
        BOOST_TEST(second->operator int() == 1);
    }

    BOOST_TEST(counted::copied == copied);
    BOOST_TEST(a.read().empty());
    const auto rest = b.read();
    BOOST_TEST(std::vector<int>(rest.begin(), rest.end()) == numbers(3, 5), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_in_a_slice_stays_whatever_writers_do, Ring,
                              rings_of_objects) {
    const balance all;
    Ring ring(4, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 4);
    {
        const auto some = reader.read(2);
        for (int i = 4; i != 20; ++i) {
            auto no_room = ring.try_reserve(1);
            BOOST_TEST(!no_room);
        }
        ring.cleanup();
        BOOST_TEST(std::vector<int>(some.begin(), some.end()) == numbers(0, 2), per_element());
    }

    auto room = ring.try_reserve(2);
    BOOST_TEST(room.size() == 2U);
    room.emplace(4);
    room.emplace(5);
    room.publish();
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slice_can_end_early, Ring, rings_of_objects) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 5);
    {
        auto some = reader.read();
        some.end_at(std::next(some.begin(), 2));
        BOOST_TEST(std::vector<int>(some.begin(), some.end()) == numbers(0, 2), per_element());
        const auto moved = std::move(some);
        BOOST_TEST(some.empty());
        BOOST_TEST(std::distance(moved.begin(), moved.end()) == 2);
    }

    BOOST_TEST(of<Ring>::read(reader).messages == numbers(2, 5), per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slice_of_a_suspended_or_finished_reader_is_empty, Ring,
                              rings_of_objects) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    BOOST_TEST(reader.read().status() == read_status::nothing);
    publish(ring, 0, 1);
    reader.suspend();
    BOOST_TEST(reader.read().status() == read_status::suspended);
    BOOST_TEST(reader.read().empty());
    reader.resume();
    ring.close();
    BOOST_TEST(reader.read().status() == read_status::messages);
    BOOST_TEST(reader.read().status() == read_status::closed);
}

// --- lifetimes -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(each_message_is_destroyed_once_and_no_sooner_than_all_have_read_it,
                              Ring, rings_of_objects) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 8);
    ring.cleanup();
    BOOST_TEST(counted::alive == all.before + 8);

    (void)reader.read(3);
    const auto freed = ring.cleanup();

    // With lag, messages stay until their slots are needed.
    const std::uint64_t expected = freed.last;
    BOOST_TEST((expected == 3U || expected == 0U));
    BOOST_TEST(freed.first == 0U);
    BOOST_TEST(counted::alive == all.before + 8 - static_cast<long>(expected));
    BOOST_TEST(ring.cleanup().empty());
    for (int i = 8; i != 100; ++i) {
        (void)reader.read();
        (void)ring.emplace(i);
        BOOST_TEST(counted::alive <= all.before + 8);
    }
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ring_and_readers_are_destroyed_in_any_order, Ring, all_rings) {
    const balance all;
    {
        std::optional<Ring> ring(std::in_place, 8, 2);
        auto a = ring->join_newest();
        std::optional b = ring->join_newest();
        publish(*ring, 0, 5);
        ring.reset();
        BOOST_TEST(of<Ring>::read(a, 2).messages == numbers(0, 2), per_element());
        b.reset();
        BOOST_TEST(of<Ring>::read(a).messages == numbers(2, 5), per_element());
        BOOST_TEST(of<Ring>::read(a).status == read_status::closed);
    }
    {
        Ring ring(8, 2);
        std::optional a = ring.join_newest();
        publish(ring, 0, 5);
        a.reset();
        Ring moved(std::move(ring));
        publish(moved, 5, 6);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(readers_of_a_closed_ring_read_what_is_left, Ring, all_rings) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 3);

    ring.close();
    ring.close();

    BOOST_TEST(ring.closed());
    BOOST_TEST(!ring.reserve(1));
    BOOST_TEST(!ring.try_reserve(1));
    BOOST_TEST(!ring.try_reserve_some(1));
    BOOST_TEST(!ring.emplace(3));
    BOOST_TEST(ring.dropped() == 0U); // the reason was not lack of room
    BOOST_TEST(of<Ring>::read(reader, 2).status == read_status::messages);
    BOOST_TEST(of<Ring>::read(reader, 2).messages == numbers(2, 3), per_element());
    BOOST_TEST(of<Ring>::read(reader).status == read_status::closed);
    auto late = ring.join_oldest();
    BOOST_TEST(of<Ring>::read(late).messages == numbers(0, 3), per_element());
    BOOST_TEST(of<Ring>::read(late).status == read_status::closed);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_closes_with_its_last_writer, Ring, rings_of_many_writers) {
    const balance all;
    std::optional<Ring> a(std::in_place, 8, 2);
    std::optional<Ring> b(*a);
    BOOST_TEST(b->writers() == 2U);
    auto reader = a->join_newest();

    a.reset();
    BOOST_TEST(b->writers() == 1U);
    publish(*b, 0, 1);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 1), per_element());
    BOOST_TEST(of<Ring>::read(reader).status == read_status::nothing);
    Ring other(8, 2);
    *b = other; // leaves the first ring

    BOOST_TEST(of<Ring>::read(reader).status == read_status::closed);
    BOOST_TEST(other.writers() == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_lives_as_long_as_any_of_its_writers, Ring,
                              rings_of_many_writers) {
    const balance all;
    std::optional<Ring> first(std::in_place, 8, 2);
    publish(*first, 0, 3);
    const long alive = counted::alive;
    Ring copy(*first), moved(std::move(*first));
    BOOST_TEST(copy.writers() == 2U);
    first.reset();
    BOOST_TEST(copy.writers() == 2U);
    { const Ring ends(std::move(moved)); }
    BOOST_TEST(counted::alive == alive);
    BOOST_TEST(copy.writers() == 1U);
    BOOST_TEST(!copy.closed());
    auto reader = copy.join_oldest();
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(0, 3), per_element());
}

// --- bad input -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE_TEMPLATE(a_capacity_that_is_no_power_of_two_is_refused, Ring, all_rings) {
    for (const std::size_t bad : {0U, 3U, 6U, 100U}) {
        const auto slots = error_of<Ring>([bad] { Ring ring(bad, 2); });
        BOOST_TEST(slots.code() == broadcast_errc::bad_capacity);
        BOOST_TEST(slots.value() == bad);
        BOOST_TEST(slots.least() == 1U);
        BOOST_TEST(slots.most() == ~(~std::size_t{0} >> 1));
        const auto readers = error_of<Ring>([bad] { Ring ring(8, bad); });
        BOOST_TEST(readers.code() == broadcast_errc::bad_capacity);
        BOOST_TEST(std::string(readers.what()).find("readers is " + std::to_string(bad)) !=
                   std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reservation_of_none_or_of_more_than_all_slots_is_refused, Ring,
                              all_rings) {
    Ring ring(8, 2);
    for (const std::size_t bad : {0U, 9U, 1000U}) {
        const auto refused = error_of<Ring>([&] { (void)ring.reserve(bad); });
        BOOST_TEST(refused.code() == broadcast_errc::too_large);
        BOOST_TEST(refused.value() == bad);
        BOOST_TEST(refused.least() == 1U);
        BOOST_TEST(refused.most() == 8U);
        BOOST_TEST((error_of<Ring>([&] { (void)ring.try_reserve(bad); }).value() == bad));
    }
    BOOST_TEST(ring.reserve(8).size() == 8U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_of_one_slot_and_one_reader_works, Ring, all_rings) {
    const balance all;
    Ring ring(1, 1);
    auto reader = ring.join_newest();
    for (int i = 0; i != 10; ++i) {
        BOOST_TEST(ring.emplace(i));
        BOOST_TEST(of<Ring>::read(reader).messages == numbers(i, i + 1), per_element());
    }
    pawl_test::check_invariant(ring);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_message_that_cannot_be_copied_in_is_skipped_and_nothing_else_lost,
                              Ring, rings_of_objects) {
    const balance all;
    {
        Ring ring(32, 2);
        auto reader = ring.join_newest();
        const counted message(7);
        counted::copies_left = 0;
        BOOST_CHECK_THROW(ring.emplace(message), std::runtime_error);
        BOOST_TEST(ring.emplace(message));

        const std::vector<counted> batch{1, 2, 3, 4};
        counted::copies_left = 2;
        BOOST_CHECK_THROW(ring.write(batch), std::runtime_error);
        BOOST_TEST(ring.write(batch) == 4U);

        auto some = ring.reserve(1); // the slot is still the next one
        counted::copies_left = 0;
        BOOST_CHECK_THROW(some.emplace(message), std::runtime_error);
        some.emplace(message);
        some.publish();

        const std::vector<int> expected{7, 1, 2, 1, 2, 3, 4, 7};
        BOOST_TEST(of<Ring>::read(reader).messages == expected, per_element());
        pawl_test::check_invariant(ring);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_message_that_cannot_be_copied_out_is_the_next_one, Ring,
                              rings_of_objects) {
    const balance all;
    Ring ring(8, 2);
    auto reader = ring.join_newest();
    publish(ring, 0, 5);
    std::vector<counted> out(8);

    counted::copies_left = 2;
    BOOST_CHECK_THROW((void)reader.read(std::span(out)), std::runtime_error);

    BOOST_TEST(reader.position() == 2U);
    BOOST_TEST(of<Ring>::read(reader).messages == numbers(2, 5), per_element());
}

BOOST_AUTO_TEST_CASE(without_memory_there_is_no_ring_and_nothing_is_lost) {
    const std::size_t live = counted_new::live;
    for (long fuse = 0; fuse != 3; ++fuse) { // the core, its readers, its slots
        counted_new::fuse = fuse;
        BOOST_CHECK_THROW((many<int, slow_readers::lag>(8, 2)), std::bad_alloc);
    }
    counted_new::fuse = counted_new::never;
    BOOST_TEST(counted_new::live == live);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_is_allocated_after_construction, Ring, all_rings) {
    Ring ring(8, 2);
    std::vector<typename Ring::value_type> out(8);
    const std::size_t before = counted_new::calls;
    for (int i = 0; i != 100; ++i) {
        auto reader = ring.join_newest();
        ring.emplace(i);
        const auto result = reader.read(std::span(out));
        reader.suspend();
        reader.resume();
        if (result.count != 1)
            throw std::logic_error("not read");
    }
    BOOST_TEST(counted_new::calls == before);
}

// --- messages ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(messages_of_any_size_and_alignment_are_copied_whole) {
    const auto try_with = []<class T>(T first, T second) {
        broadcast_ring<T> ring(4, 1);
        static_assert(broadcast_ring<T>::reads_copies);
        auto reader = ring.join_newest();
        ring.emplace(first);
        ring.emplace(second);
        std::array<T, 3> out{};
        BOOST_TEST(reader.read(std::span(out)).count == 2U);
        BOOST_TEST((out[0] == first));
        BOOST_TEST((out[1] == second));
    };
    try_with(char{1}, char{2});
    try_with(std::uint64_t{1} << 63, std::uint64_t{5});
    try_with(std::array<char, 9>{1, 2, 3, 4, 5, 6, 7, 8, 9}, std::array<char, 9>{9});
    try_with(std::array<std::uint64_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}, std::array<std::uint64_t, 8>{8});
    std::array<char, 100> text{};
    for (std::size_t i = 0; i != text.size(); ++i)
        text[i] = static_cast<char>(i + 1);
    try_with(text, std::array<char, 100>{5});

    struct alignas(64) wide {
        std::string text;
    };
    broadcast_ring<wide> ring(4, 1);
    auto reader = ring.join_newest();
    ring.emplace(wide{"a text that is not stored in place, since it is long"});
    const auto some = reader.read();
    BOOST_TEST(some.begin()->text.size() > 40U);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(&*some.begin()) % 64 == 0U);
}

BOOST_AUTO_TEST_CASE(the_invariant_names_what_is_damaged) {
    const balance all;
    using probe = pawl::detail::ring_core_probe;
    using core = pawl::detail::ring_core<counted, slow_readers::drop_new, ring_writers::many>;
    core ring(4, 2);
    const auto publish_two = [&] {
        const auto two = ring.reserve(2, 2);
        ring.construct(two.first, 1);
        ring.construct(two.first + 1, 2);
        ring.publish(two, two.last);
    };
    publish_two();
    BOOST_TEST(ring.clean(0).size() == 2U);
    publish_two();
    const auto says = [&](const std::string& text) {
        try {
            pawl_test::check_invariant(ring);
        } catch (const std::logic_error& e) {
            BOOST_TEST(std::string(e.what()).starts_with("pawl: broadcast_ring: " + text + ": "));
            return;
        }
        BOOST_TEST(text == "nothing");
    };
    const auto at = [&](auto& position, std::uint64_t generation, const char* text) {
        const std::uint64_t was = position.exchange(generation);
        says(text);
        position = was;
        says("nothing");
    };
    at(probe::freed(ring), 3, "order: free, doomed, oldest");
    at(probe::doomed(ring), 1, "order: free, doomed, oldest");
    at(probe::oldest(ring), 1, "order: free, doomed, oldest");
    at(probe::published(ring), 1, "order: doomed, published");
    at(probe::reserved(ring), 3, "order: doomed, published");
    at(probe::reserved(ring), 6, "nothing");
    at(probe::reserved(ring), 7, "order: reserved");
    probe::set_freed(ring, 2);
    says("states: free");
    probe::set_written(ring, 2);
    says("nothing");
    probe::set_written(ring, 4);
    says("states: published");
}

BOOST_AUTO_TEST_CASE(messages_need_not_be_copyable) {
    broadcast_ring<std::unique_ptr<int>> ring(4, 1);
    auto reader = ring.join_newest();
    ring.emplace(std::make_unique<int>(5));
    const auto some = reader.read();
    static_assert(std::is_same_v<decltype(*some.begin()), const std::unique_ptr<int>&>);
    BOOST_TEST(**some.begin() == 5);
}

BOOST_AUTO_TEST_CASE(one_writer_cannot_become_two) {
    static_assert(!std::copy_constructible<one<int, slow_readers::lag>>);
    static_assert(std::movable<one<int, slow_readers::lag>>);
    static_assert(std::copyable<many<int, slow_readers::lag>>);
    static_assert(!std::copy_constructible<many<int, slow_readers::lag>::reader>);
    BOOST_TEST((one<int, slow_readers::lag>(4, 1).writers()) == 1U);
}
