// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of Area, from its text, its tests and its defects, replayed on broadcast_ring with
// many writers and policy drop_new, which is Area's, in lockstep with a model. Steps that are
// sentences are operations like the others.

#include <pawl/broadcast_ring.hpp>

#include "../support/broadcast_ring_lockstep.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE broadcast_ring_vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using pawl::broadcast_errc;
using pawl::broadcast_error;
using pawl::read_status;
using pawl_test::bad_vector;
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

const std::map<broadcast_errc, value> errors{
    {broadcast_errc::too_many_readers, "error:reader_capacity_reached"},
    {broadcast_errc::too_old, "error:too_old"},
    {broadcast_errc::in_the_future, "error:future"},
};

/// An area with a writer `w` and a reader `r`.
struct area {
    using ring = pawl::broadcast_ring<pawl_test::owned_message, pawl::slow_readers::drop_new,
                                      pawl::ring_writers::many>;
    using lockstep = pawl_test::broadcast_ring_lockstep<ring, pawl_test::byte_choices>;
    using way = lockstep::way;
    static constexpr auto all = static_cast<std::size_t>(-1);

    explicit area(const test_vector& story) {
        fields config(story.config);
        const auto at = [&](const char* name, std::size_t otherwise) {
            return config.has(name) ? number(config, name) : otherwise;
        };
        const std::size_t capacity = at("buffer_capacity", 16);
        if (const value made = make(capacity, at("reader_capacity", 8)); made != "ok")
            throw bad_vector(made.as_string().c_str());
        config.end();
    }

    static const pawl_test::operations<area> operations;

    void invariant() { both->check(); }

    value make(std::size_t capacity, std::size_t places) {
        try {
            both = std::make_unique<lockstep>(no_choices, capacity, places);
        } catch (const broadcast_error& e) { // before there is a model
            return std::string(e.what()).find("readers is") != std::string::npos
                       ? "error:reader_capacity must be a power of two"
                       : "error:buffer_capacity must be a power of two";
        }
        readers.clear();
        writers = {"w"};
        return join("r");
    }

    static std::size_t number(fields& step, const char* name) {
        return step.get<std::size_t>(name);
    }

    // --- writers -----------------------------------------------------------------------------

    value create_writer(fields& step) {
        writers.insert(step.text("id"));
        both->add_writer();
        return "ok";
    }
    value drop_writer(fields& step) {
        if (writers.erase(step.text("id")) != 1)
            return "error:there is none";
        both->remove_writer();
        return "ok";
    }

    const lockstep::reservation* reserved(fields& step, way how) {
        if (step.has("writer") && !writers.contains(step.text("writer")))
            throw bad_vector("there is no such writer");
        return both->reserve(how, number(step, "n"));
    }
    value reserve(fields& step) {
        const auto* const r = reserved(step, way::all);
        return r ? value(array{r->first, r->last}) : "error:no_space";
    }
    value reserve_best_effort(fields& step) {
        const auto* const r = reserved(step, way::some);
        return r ? array{r->first, r->last, r->last - r->first} : array{0, 0, 0};
    }
    /// The last reservation for which `is` holds.
    template <class Is>
    lockstep::reservation& held(Is is) {
        const auto at = std::find_if(both->held().rbegin(), both->held().rend(), is);
        if (at == both->held().rend())
            throw bad_vector("there is no such reservation, or it is written in another order");
        return *at;
    }
    lockstep::reservation& last() {
        return held([](auto&) { return true; });
    }

    value write(fields& step) {
        const auto generation = step.get<std::uint64_t>("gen");
        both->fill(held([&](auto& r) { return r.at == generation && r.at != r.last; }),
                   step.get<std::uint64_t>("value"));
        return nullptr;
    }
    value write_slots(fields& step) {
        for (auto n = number(step, "n"); n != 0; --n)
            both->fill(last(), 0);
        return nullptr;
    }
    /// Without a range: the last reservation, written or not.
    value publish(fields& step) {
        if (!step.has("range"))
            return both->publish(last()), "ok";
        const auto range = step.get<std::array<std::uint64_t, 2>>("range");
        if (range[1] <= both->ring().published()) // again
            return "ok";
        const auto ends = [&](auto& r) { return r.first <= range[0] && r.last == range[1]; };
        if (auto& whole = held(ends); whole.first != range[0]) // the rear part comes first
            both->split(whole, range[0] - whole.first);
        return both->publish(held(ends)), "ok";
    }
    /// A list such as "11,22".
    value publish_messages(fields& step) {
        const value& list = step.at("messages");
        for (const std::string& each :
             pawl_test::split(list.is_string() ? step.text("messages") : serialize(list), ","))
            both->emplace(std::stoull(each));
        return nullptr;
    }
    value drop_four(fields&) { return after_dropping(4, 0); }
    value after_dropping(std::size_t n, std::size_t written) {
        auto& r = *both->reserve(way::all, n);
        auto out_of_reach = std::move(r); // disarmed, then armed
        r = std::move(out_of_reach);
        for (; written != 0; --written)
            both->fill(r, 0);
        both->drop(r);
        both->emplace(1);
        both->emplace(2);
        const value seen = messages(*readers.at("r"), all);
        return seen == array{1, 2} ? "readers skip them, and read what comes next" : seen;
    }

    // --- readers -----------------------------------------------------------------------------

    value create_reader(fields& step) {
        if (step.has("seed")) // where Area starts to look for a place
            (void)step.at("seed");
        return join(step.text("id"));
    }
    value join(const std::string& id) {
        if (const auto code = both->join_oldest())
            return errors.at(*code);
        readers.emplace(id, &both->joined_last());
        return "ok";
    }
    value drop_reader(fields& step) {
        const auto at = readers.find(step.text("id"));
        if (at == readers.end())
            return "error:there is none";
        both->leave(*at->second);
        readers.erase(at);
        return "ok";
    }
    lockstep::reader& reader(fields& step) { return *readers.at(step.text("reader")); }

    value read(fields& step) {
        return messages(reader(step), step.has("at_most") ? number(step, "at_most") : all);
    }
    value messages(lockstep::reader& r, std::size_t most) {
        std::vector<pawl_test::owned_message> out(
            std::min<std::uint64_t>(most, r.actual.available()));
        const pawl::read_result got = both->read(r, out);
        if (got.status == read_status::suspended)
            return "error:suspended";
        if (got.status == read_status::closed)
            return "error:no_writers";
        array messages;
        for (std::size_t i = 0; i != got.count; ++i)
            messages.emplace_back(out[i].value());
        return messages;
    }
    value advance(fields& step) {
        const value seen = messages(reader(step), number(step, "n"));
        return seen.is_array() ? "ok" : seen;
    }
    value suspend(fields& step) { return both->suspend(reader(step)), "ok"; }
    value is_suspended(fields& step) { return reader(step).actual.suspended(); }
    value resume(fields& step) { return both->resume(reader(step)), true; }
    value resume_at(fields& step) {
        const auto code = both->resume_at(reader(step), step.get<std::uint64_t>("gen"));
        return code ? errors.at(*code) : true;
    }
    value cleanup(fields&) {
        const auto freed = both->cleanup();
        if (freed.empty())
            return "nothing";
        return object{{"old", freed.first}, {"new", freed.last}, {"cleaned", freed.size()}};
    }
    value two_readers() {
        join("other");
        both->emplace(5);
        const auto message = [&](const char* id) -> decltype(auto) {
            both->hold(*readers.at(id), 1);
            return *readers.at(id)->slice->begin();
        };
        if (&message("r") != &message("other"))
            return "two messages";
        return std::is_same_v<decltype(message("")), const pawl_test::owned_message&>
                   ? "only const access"
                   : "access";
    }

    // In Area, A leaves by looking for other readers, and misses D. Here A leaves in many ways, and
    // D always reads. The model has no threads, so this ring has no model.
    value readers_a_and_c(fields&) {
        alone.emplace(16, 8);
        alone->emplace(5U);
        d = alone->join_oldest(); // until the true D joins, nothing is freed
        return nullptr;
    }
    value a_leaves_while_c_creates_d(fields&) {
        const ring::reader r = std::move(*d);
        for (int round = 0; round != 200; ++round) {
            std::optional<ring::reader> a = alone->join_oldest();
            std::optional<ring::reader> c = alone->join_oldest();
            d.reset();
            std::thread leaves([&] { a.reset(); });
            d = alone->join_oldest();
            c.reset();
            leaves.join();
        }
        return nullptr;
    }
    value d_reads(fields&) {
        const auto messages = d->read();
        return !messages.empty() && messages.begin()->value() == 5 ? "ok, the area is still alive"
                                                                   : "D reads something else";
    }

    pawl_test::byte_choices no_choices{{}};
    std::unique_ptr<lockstep> both;
    std::set<std::string> writers;
    std::map<std::string, lockstep::reader*> readers;

    std::optional<ring> alone;
    std::optional<ring::reader> d;
};

const pawl_test::operations<area> area::operations{
    {"area", [](area& a, fields& f) { return a.make(number(f, "buffer"), number(f, "readers")); }},
    {"create_reader", &area::create_reader},
    {"drop_reader", &area::drop_reader},
    {"create_writer", &area::create_writer},
    {"drop_writer", &area::drop_writer},
    {"writers", [](area& a, fields&) { return a.both->ring().writers(); }},
    {"reserve", &area::reserve},
    {"reserve_best_effort", &area::reserve_best_effort},
    {"write", &area::write},
    {"write_slots", &area::write_slots},
    {"remaining", [](area& a, fields&) { return a.last().actual.remaining(); }},
    {"publish", &area::publish},
    {"read_gen", [](area& a, fields&) { return a.both->ring().published(); }},
    {"reader_gen", [](area& a, fields& f) { return a.reader(f).actual.position(); }},
    {"read", &area::read},
    {"read_check", &area::read},
    {"advance", &area::advance},
    {"suspend", &area::suspend},
    {"resume", &area::resume},
    {"resume_at", &area::resume_at},
    {"cleanup", &area::cleanup},
    {"reserve 4, destroy the reservation without publish", &area::drop_four},
    {"reserve 4, disarm, arm, destroy", &area::drop_four},
    {"reserve 4, take the first slot, destroy it unwritten", &area::drop_four},
    {"reserve 2, write 2, destroy", [](area& a, fields&) { return a.after_dropping(2, 2); }},
    {"reserve {n}", &area::reserve},
    {"write {n}", &area::write_slots},
    {"publish {messages}", &area::publish_messages},
    {"destroy the reservation", [](area& a, fields&) { return a.both->drop(a.last()), "ok"; }},
    {"read {reader}", &area::read},
    {"read {reader} at_most {at_most}", &area::read},
    {"suspend {reader}", &area::suspend},
    {"is_suspended", &area::is_suspended},
    {"is_suspended {reader}", &area::is_suspended},
    {"resume {reader}", &area::resume},
    {"resume_at {reader} gen={gen}", &area::resume_at},
    {"two readers obtain the same message", [](area& a, fields&) { return a.two_readers(); }},
    {"readers A (slot 1) and C (last slot)", &area::readers_a_and_c},
    {"A leaves; while it scans, C creates D in slot 2 and leaves",
     &area::a_leaves_while_c_creates_d},
    {"last writer leaves", [](area& a, fields&) { return a.alone.reset(), nullptr; }},
    {"D reads", &area::d_reads},
};

const std::vector<test_vector> stories = pawl_test::stories_about("area");

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told, boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<area>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_operation_and_every_difference_belongs_to_a_story) {
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::not_in_stories<area>(stories, differences) == "");
}
