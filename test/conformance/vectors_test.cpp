// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The errors that the reader of test vectors reports, shown with the stories of a counter: a vector
// that an adapter does not execute completely must not pass.

#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace json = boost::json;
using boost::test_tools::per_element;
using pawl_test::bad_vector;
using pawl_test::difference;
using pawl_test::fields;
using pawl_test::test_vector;

namespace {

class counter {
public:
    explicit counter(const test_vector& story) {
        fields config(story.config);
        config.states("unit", {"one"});
        config.end();
    }

    static const pawl_test::operations<counter> operations;

    void invariant() const {
        if (value_ > 99)
            throw std::logic_error("the counter is too high");
    }

private:
    json::value add(fields& step) {
        const int by = step.get<int>("by");
        if (by < 0)
            return "error:negative";
        value_ += by;
        return nullptr;
    }
    json::value get(fields&) { return value_; }

    std::int64_t value_ = 0;
};

const pawl_test::operations<counter> counter::operations{
    {"add", &counter::add}, {"get", &counter::get}, {"add by={by}", &counter::add}};

/// A document of one story, which adds 2 and reads 2, with one text replaced by another.
json::object document(const std::string& from = "", const std::string& to = "") {
    std::string text = R"({"system":"counter","format":"-","vectors":[
        {"system":"counter","name":"sums","source":"-","kind":"port","config":{"unit":"one"},
         "steps":[{"op":"add","by":2},{"op":"get"}],"expect":[{"step":1,"returns":2}]}]})";
    if (!from.empty()) {
        const auto at = text.find(from);
        if (at == std::string::npos)
            throw std::logic_error("there is no " + from);
        text.replace(at, from.size(), to);
    }
    return json::value_to<json::object>(json::parse(text));
}

std::vector<test_vector> stories_of(const json::object& from) {
    std::vector<test_vector> stories;
    pawl_test::read_vectors(from, "counter", stories);
    return stories;
}

std::vector<std::string> complaints(const json::object& from,
                                    std::span<const difference> differences = {}) {
    return pawl_test::replay<counter>(stories_of(from).at(0), differences);
}

/// A change of the document, and the expected error.
struct wrong {
    const char* from;
    const char* to;
    const char* complaint;

    friend std::ostream& operator<<(std::ostream& out, const wrong& w) { return out << w.to; }
};

const wrong unreadable[]{
    {R"("format":"-")", R"("format":"-","more":1)", "the adapter does not know the field 'more'"},
    {R"("format":"-",)", "", "there is no field 'format'"},
    {R"("kind":"port")", R"("kind":"hearsay")",
     "story 'sums': 'kind' is \"hearsay\", which the adapter does not know"},
    {R"("kind":"port")", R"("kind":"port","when":1)",
     "story 'sums': the adapter does not know the field 'when'"},
    {R"("returns":2)", R"("returns":2,"within":1)",
     "story 'sums': the adapter does not know the field 'within'"},
    {R"({"step":1,"returns":2})", R"({"step":2,"returns":2})",
     "story 'sums': step 2 is expected, but not told"},
    {R"({"step":1,"returns":2})", R"({"step":1,"returns":2},{"step":1,"returns":3})",
     "story 'sums': step 1 is expected twice"},
    {R"({"step":1,"returns":2})", "", "story 'sums': nothing is expected"},
};

const wrong unlike[]{
    {R"("op":"get")", R"("op":"get, peek")",
     R"(step 1, {"op":"get, peek"}: the adapter does not know the operation 'peek')"},
    {R"("op":"get")", R"("op":"add by=")",
     R"(step 1, {"op":"add by="}: the adapter does not know the operation 'add by=')"},
    {R"("op":"get")", R"("op":"add by=two, get")",
     R"(step 1, {"op":"add by=two, get"}: 'by' is "two": not a number)"},
    {R"("op":"get")", R"("op":"add by=1, get","as":"text")",
     R"(step 1, {"op":"add by=1, get","as":"text"}: the adapter does not know the field 'as')"},
    {R"("op":"get")", R"("op":"add by=-1, get")",
     R"(step 1, {"op":"add by=-1, get"}: it returned "error:negative" instead of 2)"},
    {R"("unit":"one")", R"("unit":"two")",
     R"(step 0, {"op":"add","by":2}: 'unit' is "two", which the adapter does not know)"},
    {R"("unit":"one")", R"("unit":"one","from":1)",
     R"(step 0, {"op":"add","by":2}: the adapter does not know the field 'from')"},
    {R"("op":"get")", R"("op":"peek")",
     R"(step 1, {"op":"peek"}: the adapter does not know the operation 'peek')"},
    {R"("op":"get")", R"("op":"get","as":"text")",
     R"(step 1, {"op":"get","as":"text"}: the adapter does not know the field 'as')"},
    {R"("by":2)", R"("by":100)", R"(step 0, {"op":"add","by":100}: the counter is too high)"},
    {R"("by":2)", R"("by":3)", R"(step 1, {"op":"get"}: it returned 3 instead of 2)"},
    {R"("returns":2)", R"("returns":"2")", R"(step 1, {"op":"get"}: it returned 2 instead of "2")"},
    {R"({"op":"add","by":2},)", R"({"op":"add","by":2},{"op":"get"},{"op":"add","by":-1},)",
     R"(step 2, {"op":"add","by":-1}: it returned "error:negative")"},
};

const std::vector<std::string> none;

} // namespace

BOOST_AUTO_TEST_CASE(a_story_that_ends_as_told_is_not_complained_of) {
    BOOST_TEST(complaints(document()) == none, per_element());
}

BOOST_AUTO_TEST_CASE(a_step_may_be_sentences_and_returns_what_the_last_one_does) {
    const auto told = document(R"({"op":"add","by":2},{"op":"get"})",
                               R"({"op":"add by=1"},{"op":"add by=1, get"})");

    BOOST_TEST(complaints(told) == none, per_element());
}

BOOST_AUTO_TEST_CASE(an_expected_error_is_not_complained_of) {
    const auto failing =
        document(R"({"op":"get"}],"expect":[{"step":1,"returns":2})",
                 R"({"op":"add","by":-1}],"expect":[{"step":1,"returns":"error:negative"})");

    BOOST_TEST(complaints(failing) == none, per_element());
}

BOOST_DATA_TEST_CASE(what_no_reader_knows_is_refused, boost::unit_test::data::make(unreadable),
                     change) {
    BOOST_CHECK_EXCEPTION(stories_of(document(change.from, change.to)), bad_vector,
                          [&](const bad_vector& e) {
                              BOOST_TEST(e.what() == std::string(change.complaint));
                              return true;
                          });
}

BOOST_AUTO_TEST_CASE(two_stories_of_one_name_are_refused) {
    json::object twice = document();
    json::array& all = twice.at("vectors").as_array();
    all.push_back(json::value(all.at(0)));

    BOOST_CHECK_THROW(stories_of(twice), bad_vector);
}

BOOST_DATA_TEST_CASE(what_the_adapter_does_not_know_or_answers_otherwise_is_complained_of,
                     boost::unit_test::data::make(unlike), change) {
    const auto said = complaints(document(change.from, change.to));

    BOOST_REQUIRE(!said.empty());
    BOOST_TEST(said.at(0) == change.complaint);
}

BOOST_AUTO_TEST_CASE(at_a_listed_difference_both_values_are_asserted) {
    const difference listed[]{{"sums", 1, "2", "3", "it counts otherwise"}};
    json::object changed = document(R"("by":2)", R"("by":3)");
    changed.at("vectors").at(0).at("expect").at(0).as_object()["returns"] = 3;

    const auto as_listed = complaints(document(R"("by":2)", R"("by":3)"), listed);
    const auto other_answer = complaints(document(R"("by":2)", R"("by":4)"), listed);
    const auto other_vector = complaints(changed, listed);

    BOOST_TEST(as_listed == none, per_element());
    BOOST_REQUIRE(other_answer.size() == 1U);
    BOOST_TEST(other_answer[0] == R"(step 1, {"op":"get"}: it returned 4; )"
                                  "the list of differences says 3, because it counts otherwise");
    BOOST_REQUIRE(other_vector.size() == 1U);
    BOOST_TEST(other_vector[0] ==
               R"(step 1, {"op":"get"}: 3 is expected; the list of differences says 2)");
}

BOOST_AUTO_TEST_CASE(a_listed_difference_that_does_not_occur_is_complained_of) {
    const difference gone[]{{"sums", 1, "2", "3", "it counted otherwise"}};
    const difference same[]{{"sums", 1, "2", "2", "it does not"}};
    const difference untold[]{{"sums", 2, "2", "3", "there is no such step"}};
    const difference unexpected[]{{"sums", 0, "2", "3", "nothing is expected there"}};

    for (const auto& listed : {gone, same, untold, unexpected})
        BOOST_TEST(complaints(document(), std::span(listed, 1)).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_difference_of_no_story_and_an_operation_of_no_step_are_named) {
    const difference lost[]{{"differences", 0, "1", "2", "no such story"}};
    const auto stories = stories_of(document(R"({"op":"add","by":2},)", R"({"op":"get"},)"));

    BOOST_TEST(pawl_test::not_in_stories<counter>(stories, lost) ==
               "differences\nadd\nadd by={by}\n");
}

BOOST_AUTO_TEST_CASE(a_system_without_stories_is_complained_of) {
    BOOST_CHECK_THROW(pawl_test::load_vectors("counter"), bad_vector);
}

BOOST_AUTO_TEST_CASE(every_file_is_about_a_system_that_has_an_adapter) {
    const std::set<std::string> systems{"area", "circular_timeout", "hitime", "luamockit",
                                        "timing_wheel"};

    for (const auto& path : pawl_test::vector_files()) {
        const json::object file = pawl_test::parse_file(path);
        BOOST_TEST(systems.contains(fields(file).text("system")), path);
    }
}
