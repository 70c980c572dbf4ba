// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of Area, from its text, its tests and its defects, replayed on broadcast_ring with
// many writers and policy drop_new, which is Area's. Steps that are sentences are operations like
// the others.

#include <pawl/broadcast_ring.hpp>

#include "../support/invariants.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE broadcast_ring_vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using boost::test_tools::per_element;
using pawl::broadcast_errc;
using pawl::broadcast_error;
using pawl::read_status;
using pawl_test::fields;
using pawl_test::test_vector;
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

constexpr const char* panic = R"json("error (panic in the original)")json";
constexpr const char* skipped = R"("readers skip them, and read what comes next")";
constexpr const char* blocks_nobody =
    "a reservation that is dropped, by an exception for instance, blocks nobody: readers skip its "
    "slots";

/// Answers in which Pawl differs.
constexpr std::array differences{
    pawl_test::difference{"split_publish_order", 6, R"("error:cas_failed")", R"("ok")",
                          "who publishes out of order need not come again: readers see the slots "
                          "when those before them are published"},
    pawl_test::difference{"reservation_dropped_unpublished_is_error", 0, panic, skipped,
                          blocks_nobody},
    pawl_test::difference{"reservation_rearm_then_drop_is_error", 0, panic, skipped, blocks_nobody},
    pawl_test::difference{"iter_slot_not_written_is_error", 0, panic, skipped, blocks_nobody},
    pawl_test::difference{"iter_drop_without_publish_is_error", 0, panic, skipped, blocks_nobody},
};

using ring_type = pawl::broadcast_ring<int, pawl::slow_readers::drop_new, pawl::ring_writers::many>;
using reader_type = ring_type::reader;
using reservation_type = ring_type::reservation;

value error_text(const broadcast_error& e) {
    switch (e.code()) {
    case broadcast_errc::bad_capacity:
        return std::string(e.what()).find("readers is") != std::string::npos
                   ? "error:reader_capacity must be a power of two"
                   : "error:buffer_capacity must be a power of two";
    case broadcast_errc::too_many_readers:
        return "error:reader_capacity_reached";
    case broadcast_errc::too_old:
        return "error:too_old";
    case broadcast_errc::in_the_future:
        return "error:future";
    case broadcast_errc::too_large:
        return "error:no_space";
    }
    return "error:unknown";
}

/// The initial state: an area has a writer `w` and a reader `r`.
class seed {
public:
    explicit seed(const test_vector& story) {
        fields config(story.config);
        const auto number = [&](const char* name, std::size_t otherwise) {
            return config.has(name) ? config.get<std::size_t>(name) : otherwise;
        };
        const std::size_t buffer = number("buffer_capacity", 16);
        make(buffer, number("reader_capacity", 8));
        config.end();
    }

    static const pawl_test::operations<seed> operations;

    void invariant() const {
        bool half_published = false;
        for (const auto& [first, piece] : reserved_)
            half_published = half_published || piece;
        if (!half_published && !writers_.empty())
            pawl_test::check_invariant(writers_.begin()->second);
    }

private:
    void make(std::size_t buffer, std::size_t readers) {
        ring_type made(buffer, readers);
        reserved_.clear();
        readers_.clear();
        writers_.clear();
        readers_.emplace("r", made.join_oldest());
        writers_.emplace("w", std::move(made));
    }
    ring_type& ring() {
        if (writers_.empty())
            throw pawl_test::bad_vector("there is no writer");
        return writers_.begin()->second;
    }
    ring_type& writer_of(fields& step) {
        return step.has("writer") ? writers_.at(step.text("writer")) : ring();
    }
    reader_type& reader_of(fields& step) { return readers_.at(step.text("reader")); }

    // --- operations --------------------------------------------------------------------------

    value area(fields& step) {
        const auto buffer = step.get<std::size_t>("buffer");
        const auto readers = step.get<std::size_t>("readers");
        try {
            make(buffer, readers);
        } catch (const broadcast_error& e) {
            return error_text(e);
        }
        return "ok";
    }

    value create_reader(fields& step) {
        if (step.has("seed")) // where Area starts to look for a place
            (void)step.get<std::uint64_t>("seed");
        const std::string id = step.text("id");
        try {
            readers_.emplace(id, ring().join_oldest());
        } catch (const broadcast_error& e) {
            return error_text(e);
        }
        return "ok";
    }
    value drop_reader(fields& step) { return dropped(readers_, step.text("id")); }
    value create_writer(fields& step) {
        writers_.emplace(step.text("id"), ring());
        return "ok";
    }
    value drop_writer(fields& step) { return dropped(writers_, step.text("id")); }
    template <class Map>
    static value dropped(Map& from, const std::string& id) {
        return from.erase(id) == 1 ? "ok" : "error:there is none";
    }
    value writers(fields&) { return ring().writers(); }

    value reserve(fields& step) {
        const auto n = step.get<std::size_t>("n");
        try {
            const auto range = keep(writer_of(step).try_reserve(n));
            if (range.first == range.last)
                return "error:no_space";
            return array{range.first, range.last};
        } catch (const broadcast_error& e) {
            return error_text(e);
        }
    }
    value reserve_best_effort(fields& step) {
        const auto range = keep(writer_of(step).try_reserve_some(step.get<std::size_t>("n")));
        return range.empty() ? array{0, 0, 0} : array{range.first, range.last, range.size()};
    }

    value write(fields& step) {
        const auto generation = step.get<std::uint64_t>("gen");
        reservation_type& piece = piece_with(generation);
        if (piece.first() + piece.size() - piece.remaining() != generation)
            throw pawl_test::bad_vector("slots are written in order");
        piece.emplace(step.get<int>("value"));
        return nullptr;
    }
    value write_slots(fields& step) {
        for (auto n = step.get<std::size_t>("n"); n != 0; --n)
            reserved_.rbegin()->second.emplace(0);
        return nullptr;
    }
    value remaining(fields&) { return reserved_.rbegin()->second.remaining(); }

    value publish(fields& step) {
        if (!step.has("range"))
            return publish_reserved(step);
        const auto range = step.get<std::vector<std::uint64_t>>("range");
        const auto known = reserved_.find(range.at(0));
        if (known == reserved_.end()) { // the story publishes the rear part first
            reservation_type& whole = piece_with(range[0]);
            const std::uint64_t first = whole.first();
            reservation_type front = whole.split(static_cast<std::size_t>(range[0] - first));
            reservation_type back = std::move(whole);
            reserved_.erase(first);
            reserved_.emplace(first, std::move(front));
            reserved_.emplace(range[0], std::move(back));
        }
        reservation_type& piece = reserved_.at(range[0]);
        if (piece && piece.first() + piece.size() != range.at(1))
            throw pawl_test::bad_vector("the range is no reservation, and no rear part of one");
        piece.publish(); // if it is already published: no effect
        return "ok";
    }

    value read_gen(fields&) { return ring().published(); }
    value reader_gen(fields& step) { return reader_of(step).position(); }
    value read(fields& step) {
        reader_type& reader = reader_of(step);
        return step.has("at_most") ? read_some(reader, step.get<std::size_t>("at_most"))
                                   : read_all(reader);
    }
    value read_check(fields& step) { return read_all(reader_of(step)); }
    value advance(fields& step) {
        reader_type& reader = reader_of(step);
        const auto n = step.get<std::size_t>("n");
        if (reader.read(n).status() == read_status::suspended)
            return "error:suspended";
        return "ok";
    }
    value suspend(fields& step) {
        reader_of(step).suspend();
        return "ok";
    }
    value is_suspended(fields& step) { return reader_of(step).suspended(); }
    value resume(fields& step) {
        reader_type& reader = reader_of(step);
        (void)reader.resume(); // number of missed messages
        return !reader.suspended();
    }
    value resume_at(fields& step) {
        return resume_at(reader_of(step), step.get<std::uint64_t>("gen"));
    }
    static value resume_at(reader_type& reader, std::uint64_t generation) {
        try {
            reader.resume_at(generation);
        } catch (const broadcast_error& e) {
            return error_text(e);
        }
        return true;
    }

    value cleanup(fields&) {
        const auto freed = ring().cleanup();
        if (freed.empty())
            return "nothing";
        return object{{"old", freed.first}, {"new", freed.last}, {"cleaned", freed.size()}};
    }

    // --- sentences ---------------------------------------------------------------------------

    value drop_four(fields&) { return after_dropping(4, 0); }
    value drop_written(fields&) { return after_dropping(2, 2); }
    value drop_rearmed(fields&) {
        {
            reservation_type held = ring().reserve(4);
            reservation_type out_of_reach = std::move(held); // disarmed, then armed
            held = std::move(out_of_reach);
        }
        return what_comes_next();
    }

    /// A list such as "11,22".
    value publish_messages(fields& step) {
        const value& all = step.at("messages");
        if (all.is_int64())
            return publish_these({static_cast<int>(all.as_int64())});
        for (const std::string& each : pawl_test::split(step.text("messages"), ","))
            (void)ring().emplace(std::stoi(each));
        return nullptr;
    }
    /// The last reservation, written or not.
    value publish_reserved(fields&) {
        reserved_.rbegin()->second.publish();
        return "ok";
    }
    value destroy_reserved(fields&) {
        reserved_.erase(std::prev(reserved_.end()));
        return "ok";
    }

    value two_readers(fields&) {
        (void)publish_these({5});
        reader_type other = ring().join_oldest();
        const auto of_r = readers_.at("r").read();
        const auto of_other = other.read();
        if (&*of_r.begin() != &*of_other.begin())
            return "two messages";
        return std::is_same_v<decltype(*of_r.begin()), const int&> ? "only const access" : "access";
    }

    // In Area, A leaves by looking for other readers, and misses D. Here A leaves in many ways, and
    // D always reads.
    value readers_a_and_c(fields&) {
        make(16, 8);
        (void)publish_these({5});
        return nullptr;
    }
    value a_leaves_while_c_creates_d(fields&) {
        for (int round = 0; round != 200; ++round) {
            std::optional<reader_type> a = ring().join_oldest();
            std::optional<reader_type> c = ring().join_oldest();
            readers_.erase("d");
            std::thread leaves([&] { a.reset(); });
            readers_.emplace("d", ring().join_oldest());
            c.reset();
            leaves.join();
        }
        readers_.erase("r");
        return nullptr;
    }
    value last_writer_leaves(fields&) {
        writers_.clear();
        return nullptr;
    }
    value d_reads(fields&) {
        const value seen = read_all(readers_.at("d"));
        return seen == array{5} ? "ok, the area is still alive" : seen;
    }

    // -----------------------------------------------------------------------------------------

    pawl::freed_generations keep(reservation_type got) {
        const pawl::freed_generations range{got.first(), got.first() + got.size()};
        if (got)
            reserved_.emplace(range.first, std::move(got));
        return range;
    }
    reservation_type& piece_with(std::uint64_t generation) {
        for (auto& [first, piece] : reserved_) {
            if (piece && piece.first() <= generation && generation < piece.first() + piece.size())
                return piece;
        }
        throw pawl_test::bad_vector("generation " + std::to_string(generation) +
                                    " is not reserved");
    }

    static value read_all(reader_type& reader) {
        return read_some(reader, static_cast<std::size_t>(-1));
    }
    static value read_some(reader_type& reader, std::size_t most) {
        const auto all = reader.read(most);
        if (all.status() == read_status::suspended)
            return "error:suspended";
        if (all.status() == read_status::closed)
            return "error:no_writers";
        array messages;
        for (const int each : all)
            messages.emplace_back(each);
        return messages;
    }

    value publish_these(std::initializer_list<int> messages) {
        for (const int each : messages)
            (void)ring().emplace(each);
        return nullptr;
    }

    value after_dropping(std::size_t n, std::size_t written) {
        {
            reservation_type dropped = ring().reserve(n);
            for (; written != 0; --written)
                dropped.emplace(-1);
        }
        return what_comes_next();
    }
    value what_comes_next() {
        (void)publish_these({1, 2});
        const value seen = read_all(readers_.at("r"));
        return seen == array{1, 2} ? "readers skip them, and read what comes next" : seen;
    }

    std::map<std::string, ring_type> writers_;
    std::map<std::string, reader_type> readers_;
    std::map<std::uint64_t, reservation_type> reserved_; // by the first generation; before writers_
};

const pawl_test::operations<seed> seed::operations{
    {"area", &seed::area},
    {"create_reader", &seed::create_reader},
    {"drop_reader", &seed::drop_reader},
    {"create_writer", &seed::create_writer},
    {"drop_writer", &seed::drop_writer},
    {"writers", &seed::writers},
    {"reserve", &seed::reserve},
    {"reserve_best_effort", &seed::reserve_best_effort},
    {"write", &seed::write},
    {"write_slots", &seed::write_slots},
    {"remaining", &seed::remaining},
    {"publish", &seed::publish},
    {"read_gen", &seed::read_gen},
    {"reader_gen", &seed::reader_gen},
    {"read", &seed::read},
    {"read_check", &seed::read_check},
    {"advance", &seed::advance},
    {"suspend", &seed::suspend},
    {"resume", &seed::resume},
    {"resume_at", &seed::resume_at},
    {"cleanup", &seed::cleanup},
    {"reserve 4, destroy the reservation without publish", &seed::drop_four},
    {"reserve 4, disarm, arm, destroy", &seed::drop_rearmed},
    {"reserve 4, take the first slot, destroy it unwritten", &seed::drop_four},
    {"reserve 2, write 2, destroy", &seed::drop_written},
    {"reserve {n}", &seed::reserve},
    {"write {n}", &seed::write_slots},
    {"publish {messages}", &seed::publish_messages},
    {"destroy the reservation", &seed::destroy_reserved},
    {"read {reader}", &seed::read},
    {"read {reader} at_most {at_most}", &seed::read},
    {"suspend {reader}", &seed::suspend},
    {"is_suspended", &seed::is_suspended},
    {"is_suspended {reader}", &seed::is_suspended},
    {"resume {reader}", &seed::resume},
    {"resume_at {reader} gen={gen}", &seed::resume_at},
    {"two readers obtain the same message", &seed::two_readers},
    {"readers A (slot 1) and C (last slot)", &seed::readers_a_and_c},
    {"A leaves; while it scans, C creates D in slot 2 and leaves",
     &seed::a_leaves_while_c_creates_d},
    {"last writer leaves", &seed::last_writer_leaves},
    {"D reads", &seed::d_reads},
};

const std::vector<test_vector> stories = pawl_test::load_vectors("area");

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told, boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<seed>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_operation_and_every_difference_belongs_to_a_story) {
    const std::vector<std::string> none;
    if (pawl_test::vectors_are_ours()) {
        BOOST_TEST(pawl_test::unused<seed>(stories) == none, per_element());
        BOOST_TEST(pawl_test::untold(stories, differences) == none, per_element());
    }
}
