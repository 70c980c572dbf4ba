// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of broadcast_ring is needed: a message that is read was written before and is
// not overwritten, a destroyed message is not read, no message is forgotten, and no writer is
// refused or left asleep while there is room. See support/explored.hpp.

#define BOOST_TEST_MODULE broadcast_ring_orders

// A thread of a bad execution stops, so its slice still exists when the reader is destroyed.
#define PAWL_ASSERT(...) static_cast<void>(0)

#include <pawl/broadcast_ring.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"
#include "support/invariants.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using explored::data;
using explored::execution;
using pawl::broadcast_ring;
using pawl::read_status;
using pawl::ring_writers;
using pawl::slow_readers;

namespace {

/// Memory that outlives the messages, so that a message that comes too early races with the one before.
using cell = data<int>;

/// A message in a cell, without a destructor.
struct plain {
    cell* in;
    plain(cell& c, int v) : in(&c) { in->write(v); }
};
/// A message whose destructor also writes.
struct owned : plain {
    using plain::plain;
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() { in->write(0); }
};
/// A message of two words.
struct words {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
};

template <class T, slow_readers P, ring_writers W = ring_writers::many>
using ring_of = broadcast_ring<T, P, W>;
constexpr auto drop_new = slow_readers::drop_new;
constexpr auto lag = slow_readers::lag;
constexpr auto block = slow_readers::block;

/// A cell for each slot.
using cells = std::array<cell, 2>;

/// Writes a message for the next slot, if there is room.
template <class Ring>
bool write(Ring& ring, cells& in, int value) {
    auto one = ring.try_reserve(1);
    if (!one)
        return false;
    one.emplace(in[one.first() % ring.capacity()], value);
    one.publish();
    return true;
}

/// Reads all present messages in place.
template <class Reader>
int read_slice(Reader& reader) {
    int seen = 0;
    const auto all = reader.read();
    for (const auto& each : all)
        seen = each.in->read();
    return seen;
}

/// Copies the present messages, which must be whole: of all messages, only the first is {1, 1}.
template <class Reader>
void copy(execution& e, Reader& reader) {
    std::array<words, 2> out{};
    const std::uint64_t from = reader.position();
    const auto got = reader.read(std::span(out));
    for (std::size_t i = 0; i != got.count; ++i)
        e.require(out[i].a == out[i].b, "a message is torn");
    e.require(got.count == 0 || (out[got.count - 1].a == 1) == (reader.position() == 1),
              "another message");
    e.require(got.count + got.missed <= reader.position() - from, "read and missed too much");
}

/// Copies up to four messages, each of which is {n, n}, where n is its number plus one. `skipped`
/// of them were cancelled, not the first. Missed messages come before read ones.
template <class Reader>
void copy_in_order(execution& e, Reader& reader, std::uint64_t skipped) {
    std::array<words, 4> out{};
    const std::uint64_t from = reader.position();
    const auto got = reader.read(std::span(out));
    for (std::size_t i = 0; i != got.count; ++i)
        e.require(out[i].a == out[i].b, "a message is torn");
    if (got.count != 0)
        e.require(out[0].a == from + got.missed + 1, "another message");
    const std::uint64_t told = got.count + got.missed;
    e.require(told <= reader.position() - from, "read and missed too much");
    e.require(told + skipped >= reader.position() - from, "a message is forgotten");
}

template <class Ring>
orders::named_scenario slot_used_again(const char* name) {
    return {name, [](execution& e) {
                cells in;
                Ring ring(1, 1);
                std::optional reader = ring.join_newest();
                write(ring, in, 1);
                e.together([&] { read_slice(*reader); }, [&] { write(ring, in, 2); });
            }};
}

template <class Ring>
orders::named_scenario slot_freed_by_another(const char* name) {
    return {name, [](execution& e) {
                cells in;
                Ring ring(1, 1);
                std::optional reader = ring.join_newest();
                write(ring, in, 1);
                e.together([&] { read_slice(*reader); }, [&] { ring.cleanup(); },
                           [&] { write(ring, in, 2); });
            }};
}

template <class Ring>
orders::named_scenario place_used_again(const char* name) {
    return {name, [](execution& e) {
                cells in;
                Ring ring(1, 1);
                std::optional old = ring.join_newest();
                write(ring, in, 1);
                e.together([&] { old.reset(); },
                           [&] {
                               try {
                                   auto reader = ring.join_oldest();
                                   read_slice(reader);
                               } catch (const pawl::broadcast_error&) {
                               }
                           },
                           [&] { ring.cleanup(); });
            }};
}

template <class Ring>
orders::named_scenario reader_comes(const char* name) {
    return {name, [](execution& e) {
                cells in;
                Ring ring(1, 1);
                auto reader = ring.join_newest();
                reader.suspend();
                write(ring, in, 1);
                e.together(
                    [&] {
                        reader.resume();
                        read_slice(reader);
                    },
                    [&] { write(ring, in, 2); });
            }};
}

const std::vector<orders::named_scenario> scenarios{
    {"a message is read as soon as it is seen",
     [](execution& e) {
         cells in;
         ring_of<plain, drop_new, ring_writers::one> ring(2, 1);
         auto reader = ring.join_newest();
         e.together([&] { write(ring, in, 1); }, [&] { read_slice(reader); });
     }},
    {"two writers publish, a reader reads",
     [](execution& e) {
         cells in;
         ring_of<plain, drop_new> ring(2, 1);
         auto reader = ring.join_newest();
         auto a = ring.reserve(1);
         auto b = ring.reserve(1);
         e.together(
             [&] {
                 a.emplace(in[0], 1);
                 a.publish();
             },
             [&] {
                 b.emplace(in[1], 2);
                 b.publish();
             },
             [&] { read_slice(reader); });
         e.require(ring.published() == 2, "a message is forgotten");
     }},
    {"three writers publish",
     [](execution& e) {
         ring_of<words, lag> ring(4, 1);
         auto a = ring.reserve(1);
         auto b = ring.reserve(1);
         auto c = ring.reserve(1);
         e.together([&] { a.publish(); }, [&] { b.publish(); }, [&] { c.publish(); });
         e.require(ring.published() == 3, "a message is forgotten");
     }},
    slot_freed_by_another<ring_of<plain, drop_new>>("one reads, one frees, one writes"),
    slot_freed_by_another<ring_of<owned, drop_new>>("one reads, one destroys, one writes"),
    slot_used_again<ring_of<plain, drop_new>>("a slot is written again when it was read"),
    slot_used_again<ring_of<owned, drop_new>>("a message is destroyed when it was read"),
    slot_used_again<ring_of<owned, lag>>("with lag, a message is destroyed when it was looked at"),
    reader_comes<ring_of<plain, drop_new>>("a reader resumes while a slot is freed"),
    reader_comes<ring_of<owned, lag>>("with lag, a reader begins while a message is destroyed"),
    {"a reader resumes while two free a slot",
     [](execution& e) {
         cells in;
         ring_of<owned, drop_new> ring(1, 1);
         auto reader = ring.join_newest();
         reader.suspend();
         write(ring, in, 1);
         e.together(
             [&] {
                 reader.resume();
                 read_slice(reader);
             },
             [&] { ring.cleanup(); }, [&] { ring.cleanup(); });
     }},
    {"two destroy, a writer uses both slots",
     [](execution& e) {
         cells in;
         ring_of<owned, drop_new> ring(2, 2);
         auto reader = ring.join_newest();
         write(ring, in, 1);
         write(ring, in, 2);
         e.together(
             [&] {
                 (void)reader.read(1);
                 ring.cleanup();
             },
             [&] {
                 if (auto both = ring.try_reserve(2)) {
                     both.emplace(in[0], 3);
                     both.emplace(in[1], 4);
                     both.publish();
                 }
             });
         reader.suspend();
         ring.cleanup();
         pawl_test::check_invariant(ring);
     }},
    {"two destroy what is behind each other",
     [](execution& e) {
         cells in;
         ring_of<owned, drop_new> ring(2, 2);
         auto a = ring.join_newest();
         write(ring, in, 1);
         write(ring, in, 2);
         (void)a.read(1);
         e.together([&] { ring.cleanup(); },
                    [&] {
                        (void)a.read(1);
                        ring.cleanup();
                    });
         ring.cleanup();
         pawl_test::check_invariant(ring);
         e.require(ring.try_reserve(2).size() == 2, "a slot is forgotten");
     }},
    place_used_again<ring_of<owned, drop_new>>("a place is used again"),
    {"a reader is shown when its position is known",
     [](execution& e) {
         cells in;
         ring_of<plain, drop_new> ring(2, 1);
         write(ring, in, 1);
         std::optional<decltype(ring)::reader> reader;
         e.together([&] { reader = ring.join_newest(); },
                    [&] {
                        for (const auto& each : ring.each_reader())
                            e.require(each.position == 1, "the position of nobody");
                    });
     }},
    {"one writer overtakes a reader that copies",
     [](execution& e) {
         ring_of<words, lag, ring_writers::one> ring(1, 1);
         auto reader = ring.join_newest();
         ring.emplace(words{1, 1});
         e.together([&] { copy(e, reader); }, [&] { ring.emplace(words{2, 2}); });
     }},
    {"two writers overtake a reader that copies",
     [](execution& e) {
         ring_of<words, lag> ring(1, 1);
         auto reader = ring.join_newest();
         ring.emplace(words{1, 1});
         e.together([&] { copy(e, reader); },
                    [&] {
                        ring.emplace(words{2, 2});
                    },
                    [&] {
                        ring.emplace(words{3, 3});
                    });
     }},
    {"a slot that was given up is overtaken",
     [](execution& e) {
         ring_of<words, lag> ring(1, 1);
         auto reader = ring.join_newest();
         {
             auto given_up = ring.reserve(1);
             given_up.emplace(words{7, 7});
         }
         e.together([&] { copy(e, reader); }, [&] { ring.emplace(words{2, 2}); });
     }},
    {"of two messages that a reader copies, one is overtaken",
     [](execution& e) {
         ring_of<words, lag, ring_writers::one> ring(2, 1);
         auto reader = ring.join_newest();
         ring.emplace(words{1, 1});
         ring.emplace(words{2, 2});
         e.together([&] { copy_in_order(e, reader, 0); }, [&] { ring.emplace(words{3, 3}); });
     }},
    {"a reader is overtaken behind a slot that was given up",
     [](execution& e) {
         ring_of<words, lag> ring(4, 1);
         auto reader = ring.join_newest();
         ring.emplace(words{1, 1});
         (void)ring.reserve(1);
         ring.emplace(words{3, 3});
         std::optional<decltype(ring)::reservation> all;
         e.together([&] { copy_in_order(e, reader, 1); }, [&] { all = ring.reserve(4); });
     }},
    {"a writer is not refused while there is room",
     [](execution& e) {
         ring_of<words, lag> ring(2, 1);
         e.together(
             [&] {
                 ring.emplace(words{1, 1});
                 ring.emplace(words{2, 2});
             },
             [&] { e.require(bool(ring.try_reserve(1)), "refused, but there is room"); });
     }},
    {"a writer waits for a reader",
     [](execution& e) {
         cells in;
         ring_of<plain, block> ring(1, 1);
         auto reader = ring.join_newest();
         write(ring, in, 1);
         e.together(
             [&] {
                 auto one = ring.reserve(1);
                 e.require(bool(one), "a writer did not wait");
                 one.emplace(in[0], 2);
             },
             [&] { read_slice(reader); });
     }},
    {"a writer waits for a reader that jumps ahead",
     [](execution& e) {
         cells in;
         ring_of<plain, block> ring(1, 1);
         auto reader = ring.join_newest();
         write(ring, in, 1);
         e.together([&] { e.require(bool(ring.reserve(1)), "a writer did not wait"); },
                    [&] { reader.resume_newest(); });
     }},
    {"a reader sees the end, and all before it",
     [](execution& e) {
         cells in;
         ring_of<plain, drop_new> ring(2, 1);
         auto reader = ring.join_newest();
         e.together(
             [&] {
                 write(ring, in, 1);
                 ring.close();
             },
             [&] {
                 for (int i = 0; i != 2; ++i) {
                     if (reader.read(1).status() == read_status::closed)
                         e.require(reader.position() == 1, "closed before the last message");
                 }
             });
     }},
    {"the last of two writers closes",
     [](execution& e) {
         cells in;
         auto a = std::make_unique<ring_of<plain, drop_new>>(2, 1);
         auto b = std::make_unique<ring_of<plain, drop_new>>(*a);
         auto reader = a->join_newest();
         e.together(
             [&] {
                 write(*a, in, 1);
                 a.reset();
             },
             [&] { b.reset(); },
             [&] {
                 for (int i = 0; i != 2; ++i) {
                     if (reader.read(1).status() == read_status::closed)
                         e.require(reader.position() == 1, "closed before the last message");
                 }
             });
     }},
    {"the last one destroys what is left",
     [](execution& e) {
         cells in;
         auto ring = std::make_unique<ring_of<owned, drop_new>>(1, 1);
         std::optional reader = ring->join_newest();
         e.together(
             [&] {
                 write(*ring, in, 1);
                 ring.reset();
             },
             [&] {
                 read_slice(*reader);
                 reader.reset();
             });
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(messages_are_handed_over_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_the_ring_is_needed) {
    // If another cleaner has raised oldest_, a cleaner that does not raise it must still come
    // behind that in the single order of all seq_cst operations, which C++20 does not infer from
    // acquire.
    orders::each_order_is_needed(explored_sites, scenarios,
                                 {"std::uint64_t oldest = oldest_.load(std::memory_order_seq_cst)",
                                  "oldest = oldest_.load(std::memory_order_seq_cst)"});
}
