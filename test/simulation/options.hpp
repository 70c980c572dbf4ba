// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The options of a context, as data. A new option is a member of context_setup and a line of
//   for_each_option(): programs are generated, printed and shrunk with it, and so are those with
//   threads.

#ifndef PAWL_TEST_SIMULATION_OPTIONS_HPP
#define PAWL_TEST_SIMULATION_OPTIONS_HPP

#include "simulation/random.hpp"
#include "simulation/values.hpp"

#include <pawl/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace simulation {

struct ring_setup {
    std::int64_t delay = 0;
    std::size_t capacity = 1024;

    using members = member_list<&ring_setup::delay, &ring_setup::capacity>;
    bool operator==(const ring_setup&) const = default;
};

/// One execution context and the options of its services.
struct context_setup {
    int concurrency_hint = -1;
    std::int64_t precision = 1'000'000;
    std::vector<int> level_bits{6};
    unsigned shards = 1;
    unsigned batch_limit = 256;
    unsigned completions_per_turn = 1;
    bool locking = true;
    bool deliver = false;
    std::vector<ring_setup> rings{};
    unsigned marks = 8;
    pawl::ring_overflow when_full = pawl::ring_overflow::grow;
    bool round_up = false;
    bool bounded = false; ///< by more than there are: the outcomes are the same

    struct members { ///< those that for_each_option() lists
        template <class Visit>
        static void for_each(Visit visit);
    };
    bool operator==(const context_setup&) const = default;
};

/// Calls visit(name, member, draw, apply) for each option: `draw(random)` chooses a value,
/// `apply(options, value)` sets it.
template <class Visit>
void for_each_option(Visit visit) {
    using o = pawl::options;
    using r = random_source;
    using s = context_setup;
    constexpr std::int64_t second = 1'000'000'000, hour = 3600 * second;
    const auto count = [](r& random, std::initializer_list<unsigned> values) {
        return random.one_of(values);
    };
    visit(
        "concurrency_hint", &s::concurrency_hint, [](r& x) { return x.one_in(4) ? 1 : -1; },
        [](o&, int) {}); // of the context, not of Pawl
    visit(
        "precision", &s::precision,
        [](r& x) {
            return x.one_of<std::int64_t>(
                {1'000'000, 1'000'000, 1'000'000, 1, 7, 1000, 100'000'000, second, hour});
        },
        [](o& to, std::int64_t v) { to.precision = std::chrono::nanoseconds(v); });
    visit(
        "level_bits", &s::level_bits,
        [](r& x) {
            return x.one_in(2) ? x.one_of<std::vector<int>>({{1}, {2, 3}, {8, 4}, {3}})
                               : std::vector<int>{6};
        },
        [](o& to, const std::vector<int>& v) { to.level_bits = pawl::time::geometry(v); });
    visit(
        "shards", &s::shards,
        [=](r& x) {
            return count(x, {1, 1, 2, 2, 3, 4, 8, 0});
        },
        [](o& to, unsigned v) { to.shards = v; });
    visit(
        "batch_limit", &s::batch_limit,
        [=](r& x) {
            return count(x, {256, 256, 1, 2, 3, 16, 65536});
        },
        [](o& to, unsigned v) { to.batch_limit = v; });
    visit(
        "completions_per_turn", &s::completions_per_turn,
        [=](r& x) {
            return count(x, {1, 1, 2, 5, 64});
        },
        [](o& to, unsigned v) { to.completions_per_turn = v; });
    visit(
        "locking", &s::locking, [](r& x) { return !x.one_in(5); },
        [](o& to, bool v) { to.locking = v; });
    visit(
        "deliver", &s::deliver, [](r& x) { return x.one_in(4); },
        [](o& to, bool v) {
            to.on_shutdown = v ? pawl::shutdown_policy::deliver : pawl::shutdown_policy::destroy;
        });
    visit(
        "rings", &s::rings,
        [](r& x) {
            std::vector<ring_setup> all(static_cast<std::size_t>(1 + x.below(3)));
            for (std::size_t i = 0; i < all.size(); ++i) {
                all[i].delay = x.one_of<std::int64_t>(
                                   {1, 1000, 1'000'000, 20'000'000, second, 30 * second, hour}) +
                               static_cast<std::int64_t>(i) * 3; // distinct
                all[i].capacity = x.one_of<std::size_t>({1, 2, 3, 8, 1024});
            }
            return all;
        },
        [](o& to, const std::vector<ring_setup>& v) {
            for (const ring_setup& each : v)
                to.rings.delays.push_back({std::chrono::nanoseconds(each.delay), each.capacity});
        });
    visit(
        "marks", &s::marks,
        [=](r& x) {
            return count(x, {8, 8, 1, 2, 9, 1024});
        },
        [](o& to, unsigned v) { to.rings.marks = v; });
    visit(
        "when_full", &s::when_full,
        [](r& x) { return static_cast<pawl::ring_overflow>(x.below(4)); },
        [](o& to, pawl::ring_overflow v) { to.rings.when_full = v; });
    visit(
        "round_up", &s::round_up, [](r& x) { return x.one_in(3); },
        [](o& to, bool v) { to.rings.round_up = v; });
    visit(
        "bounded", &s::bounded, [](r& x) { return x.one_in(4); },
        [](o& to, bool v) { to.max_pending = v ? 1'000'000 : o::no_bound; });
}

inline context_setup random_context(random_source& random) {
    context_setup c;
    for_each_option([&](auto, auto member, auto draw, auto) { c.*member = draw(random); });
    return c;
}

inline pawl::options options_of(const context_setup& c) {
    pawl::options o;
    for_each_option([&](auto, auto member, auto, auto apply) { apply(o, c.*member); });
    return o;
}

template <class Visit>
void context_setup::members::for_each(Visit visit) {
    for_each_option([&](auto name, auto member, auto, auto) { visit(name, member); });
}

} // namespace simulation

#endif
