// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Loads and replays the test vectors of test/vectors/. A vector is a short story about one of the
//   systems whose ideas Pawl uses: steps, and the results of some of them. An adapter for each
//   system executes the steps on Pawl.
//
// Model
//   Nothing is skipped. If the adapter does not know an operation, or a field of a story, of its
//   configuration or of a step, that is an error. So is a step that fails, unless the story expects
//   it. If Pawl promises something else, the adapter lists the step with both values, the story's
//   and Pawl's, and the replay asserts both.
//
//   The operation of a step is a name, with arguments in fields, or a short sentence with its
//   arguments in it, such as "register a -> handle h". An adapter lists the form of such a sentence
//   as "register {id} -> handle {handle}". Several sentences may be one step, separated by ", "; the
//   step returns what the last one returns, or the first error.
//
//   PAWL_TEST_VECTORS is the directory of the repository's files; CMake defines it. The environment
//   variable PAWL_VECTORS names another one. Every *.json file there belongs to the adapter of the
//   system that it names. The definitions of Boost.JSON are in vectors_json.cpp. This file needs no
//   test framework: errors are texts.

#ifndef PAWL_TEST_SUPPORT_VECTORS_HPP
#define PAWL_TEST_SUPPORT_VECTORS_HPP

#include <boost/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#ifndef PAWL_TEST_VECTORS
#error "define PAWL_TEST_VECTORS as the directory that holds the *.json files"
#endif

namespace pawl_test {

namespace json = boost::json;

/// A vector contains something that its reader does not know.
class bad_vector : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The fields of an object, and which of them have been read.
class fields {
public:
    explicit fields(const json::object& all) : all_(all) {}

    bool has(const char* name) const { return all_.contains(name); }

    const json::value& at(const char* name) {
        const json::value* const found = all_.if_contains(name);
        if (found == nullptr)
            throw bad_vector(std::string("there is no field '") + name + "'");
        read_.insert(name);
        return *found;
    }

    /// The value of a field, as a T.
    template <class T>
    T get(const char* name) {
        const json::value& found = at(name);
        const auto converted = json::try_value_to<T>(found);
        if (!converted)
            throw bad_vector(std::string("'") + name + "' is " + json::serialize(found) + ": " +
                             converted.error().message());
        return *converted;
    }

    std::string text(const char* name) { return get<std::string>(name); }

    bool flag(const char* name) { return has(name) && get<bool>(name); }

    /// A field that, if present, must have one of the values that the reader assumes.
    void states(const char* name, std::initializer_list<json::value> allowed) {
        if (has(name) && std::find(allowed.begin(), allowed.end(), at(name)) == allowed.end())
            throw bad_vector(std::string("'") + name + "' is " + json::serialize(at(name)) +
                             ", which the adapter does not know");
    }

    /// All fields must have been read.
    void end() const {
        for (const auto& each : all_) {
            const std::string name(each.key());
            if (!read_.contains(name))
                throw bad_vector("the adapter does not know the field '" + name + "'");
        }
    }

private:
    const json::object& all_;
    std::set<std::string> read_;
};

/// One story.
struct test_vector {
    std::string name;
    json::object config;
    std::vector<json::object> steps;
    std::map<std::size_t, json::value> expected; ///< by the index of the step

    friend std::ostream& operator<<(std::ostream& out, const test_vector& v) {
        return out << v.name;
    }
};

/// One story of a file about `system`.
inline test_vector read_vector(const json::object& from, const std::string& system) {
    fields f(from);
    test_vector v;
    v.name = f.text("name");
    try {
        f.states("system", {json::value_from(system)});
        (void)f.text("source");
        (void)f.at("kind");
        f.states("kind", {"port", "derived", "regression"});
        if (f.has("note"))
            (void)f.text("note");
        v.config = f.get<json::object>("config");
        v.steps = f.get<std::vector<json::object>>("steps");
        for (const auto& each : f.get<std::vector<json::object>>("expect")) {
            fields expectation(each);
            const auto step = expectation.get<std::size_t>("step");
            if (step >= v.steps.size())
                throw bad_vector("step " + std::to_string(step) + " is expected, but not told");
            if (!v.expected.emplace(step, expectation.at("returns")).second)
                throw bad_vector("step " + std::to_string(step) + " is expected twice");
            expectation.end();
        }
        if (v.expected.empty())
            throw bad_vector("nothing is expected");
        f.end();
    } catch (const bad_vector& e) {
        throw bad_vector("story '" + v.name + "': " + e.what());
    }
    return v;
}

/// The stories of a document, if it is about `system`, added to `to`.
inline void read_vectors(const json::object& document, const std::string& system,
                         std::vector<test_vector>& to) {
    fields f(document);
    if (f.text("system") != system)
        return;
    (void)f.text("format");
    std::set<std::string> names;
    for (const auto& each : f.get<std::vector<json::object>>("vectors")) {
        to.push_back(read_vector(each, system));
        if (!names.insert(to.back().name).second)
            throw bad_vector("there are two stories '" + to.back().name + "'");
    }
    f.end();
}

/// Whether the stories are those of the repository.
inline bool vectors_are_ours() { return std::getenv("PAWL_VECTORS") == nullptr; }

/// The files with stories, in the order of their names.
inline std::vector<std::filesystem::path> vector_files() {
    const std::filesystem::path folder =
        vectors_are_ours() ? PAWL_TEST_VECTORS : std::getenv("PAWL_VECTORS");
    std::vector<std::filesystem::path> files;
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
        if (each.path().extension() == ".json")
            files.push_back(each.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

inline json::object parse_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw bad_vector("cannot be read");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return json::value_to<json::object>(json::parse(text));
}

/// All stories about one system, such as "hitime".
inline std::vector<test_vector> load_vectors(const std::string& system) {
    std::vector<test_vector> stories;
    for (const std::filesystem::path& path : vector_files()) {
        try {
            read_vectors(parse_file(path), system, stories);
        } catch (const std::exception& e) {
            throw bad_vector(path.string() + ": " + e.what());
        }
    }
    if (stories.empty())
        throw bad_vector("no file tells a story about " + system);
    return stories;
}

/// The same for a variable at namespace scope: an error ends the program with its text.
inline std::vector<test_vector> stories_about(const std::string& system) {
    try {
        return load_vectors(system);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", vectors_are_ours() ? "test vectors" : "PAWL_VECTORS",
                     e.what());
        std::exit(EXIT_FAILURE);
    }
}

/// A step with another answer by Pawl.
struct difference {
    const char* story;
    std::size_t step;
    const char* theirs; ///< what the story expects, as JSON
    const char* ours;   ///< Pawl's answer, as JSON
    const char* reason;
};

/// The operations of an adapter, by name or by the form of their sentences.
template <class Adapter>
using operations = std::map<std::string, std::function<json::value(Adapter&, fields&)>>;

/// Whether a call has failed, in the notation of vectors.
inline bool is_error(const json::value& returned) {
    return returned.is_string() && returned.as_string().starts_with("error:");
}

inline std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find(separator, begin)) != std::string::npos;
         begin = end + separator.size())
        parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

/// The arguments of a sentence of this form. Each takes the rest of its word, as a number if it is
/// one.
inline std::optional<json::object> arguments_of(const std::string& form,
                                                const std::string& sentence) {
    const auto words = split(sentence, " ");
    const auto expected = split(form, " ");
    if (words.size() != expected.size())
        return {};
    json::object arguments;
    for (std::size_t i = 0; i != words.size(); ++i) {
        const std::size_t brace = expected[i].find('{');
        const std::string& word = words[i];
        if (brace == std::string::npos
                ? word != expected[i]
                : word.size() <= brace || word.compare(0, brace, expected[i], 0, brace) != 0)
            return {};
        if (brace == std::string::npos)
            continue;
        const std::string name = expected[i].substr(brace + 1, expected[i].size() - brace - 2);
        const std::string text = word.substr(brace);
        std::int64_t number = 0;
        const auto end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        arguments[name] = read.ec == std::errc() && read.ptr == end ? json::value(number)
                                                                    : json::value_from(text);
    }
    return arguments;
}

/// An operation of an adapter, and the arguments that its sentence has.
template <class Adapter>
struct sentence {
    typename operations<Adapter>::const_iterator operation;
    json::object arguments;
};

/// The operations that a text names.
template <class Adapter>
std::vector<sentence<Adapter>> sentences_of(const std::string& text) {
    const auto& all = Adapter::operations;
    if (const auto named = all.find(text); named != all.end())
        return {{named, {}}};
    std::vector<sentence<Adapter>> found;
    for (const std::string& part : split(text, ", ")) {
        auto at = all.find(part);
        std::optional<json::object> arguments{std::in_place};
        if (at == all.end())
            at = std::find_if(all.begin(), all.end(), [&](const auto& each) {
                return (arguments = arguments_of(each.first, part)).has_value();
            });
        if (at == all.end())
            throw bad_vector("the adapter does not know the operation '" + part + "'");
        found.push_back({at, *arguments});
    }
    return found;
}

/// Executes one step.
template <class Adapter>
json::value perform(Adapter& adapter, fields& step) {
    const std::string op = step.text("op");
    json::value returned;
    for (const auto& [operation, arguments] : sentences_of<Adapter>(op)) {
        const bool by_name = operation->first == op;
        fields inside(arguments);
        fields& given = by_name ? step : inside;
        returned = operation->second(adapter, given);
        given.end();
        if (is_error(returned))
            break;
    }
    step.end();
    return returned;
}

/// The error in one step of a story; empty if there is none.
inline std::string judge(const json::value& returned, const json::value* expected,
                         const difference* listed) {
    const std::string is = "it returned " + json::serialize(returned);
    if (listed == nullptr) {
        if (expected == nullptr)
            return is_error(returned) ? is : "";
        return returned == *expected ? "" : is + " instead of " + json::serialize(*expected);
    }
    const json::value theirs = json::parse(listed->theirs);
    const json::value ours = json::parse(listed->ours);
    if (expected == nullptr)
        return "it is listed as a difference, but nothing is expected";
    if (theirs == ours)
        return "what is listed is no difference";
    if (*expected != theirs)
        return json::serialize(*expected) + " is expected; the list of differences says " +
               listed->theirs;
    return returned == ours ? ""
                            : is + "; the list of differences says " + listed->ours + ", because " +
                                  listed->reason;
}

/// Replays a story and returns its errors, or those in the list of differences.
template <class Adapter>
std::vector<std::string> replay(const test_vector& story, std::span<const difference> differences) {
    std::vector<std::string> complaints;
    const auto find = [&](std::size_t step) {
        const auto at =
            std::find_if(differences.begin(), differences.end(), [&](const difference& d) {
                return d.story == story.name && d.step == step;
            });
        return at == differences.end() ? nullptr : &*at;
    };
    std::size_t at = 0;
    const auto complain = [&](const std::string& wrong) {
        const std::string told = at < story.steps.size() ? json::serialize(story.steps[at]) : "end";
        complaints.push_back("step " + std::to_string(at) + ", " + told + ": " + wrong);
    };
    try {
        Adapter adapter(story);
        for (; at != story.steps.size(); ++at) {
            fields step(story.steps[at]);
            const json::value returned = perform(adapter, step);
            const auto expected = story.expected.find(at);
            const std::string wrong = judge(
                returned, expected == story.expected.end() ? nullptr : &expected->second, find(at));
            if (!wrong.empty())
                complain(wrong);
            adapter.invariant();
        }
    } catch (const std::exception& e) {
        complain(e.what());
    }
    for (const difference& d : differences) {
        if (d.story == story.name && d.step >= story.steps.size())
            complaints.push_back("step " + std::to_string(d.step) +
                                 " is listed as a difference, but not told");
    }
    return complaints;
}

/// The listed differences without a story, and the operations that no step uses; those inside the
/// field "do" count. Files other than the repository's need not have every story.
template <class Adapter>
std::string not_in_stories(const std::vector<test_vector>& stories,
                           std::span<const difference> differences) {
    std::string names;
    for (const difference& d : differences) {
        if (std::none_of(stories.begin(), stories.end(),
                         [&](const test_vector& v) { return v.name == d.story; }))
            names += std::string(d.story) + '\n';
    }
    std::set<std::string> used;
    const auto note = [&](const json::object& step, const auto& again) -> void {
        for (const auto& each : sentences_of<Adapter>(json::value_to<std::string>(step.at("op"))))
            used.insert(each.operation->first);
        if (const json::value* inner = step.if_contains("do"); inner && inner->is_array()) {
            for (const json::value& each : inner->as_array())
                again(each.as_object(), again);
        }
    };
    for (const test_vector& story : stories) {
        for (const json::object& step : story.steps)
            note(step, note);
    }
    for (const auto& [name, function] : Adapter::operations) {
        if (!used.contains(name))
            names += name + '\n';
    }
    return names;
}

} // namespace pawl_test

#endif
