// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace simulation {

namespace {

class shrinker {
public:
    shrinker(scenario s, const std::function<bool(const scenario&)>& fails,
             const std::function<bool()>& goes_on)
        : best_(std::move(s)), fails_(fails), goes_on_(goes_on) {}

    scenario result() {
        do {
            changed_ = false;
            remove_steps([](scenario& s) -> std::vector<step>& { return s.steps; });
            for (std::size_t i = 0; i < best_.steps.size(); ++i)
                shrink_step([i](scenario& s) -> step& { return s.steps[i]; }, 0);
            shrink_setup();
        } while (changed_ && goes_on_());
        return std::move(best_);
    }

private:
    /// Applies `change` to the best scenario, and keeps the result if that still fails.
    template <class Change>
    bool attempt(Change change) {
        if (!goes_on_())
            return false;
        scenario s = best_;
        change(s);
        if (!fails_(s))
            return false;
        best_ = std::move(s);
        changed_ = true;
        return true;
    }

    /// Like delta debugging: halves first, single ones last.
    template <class Where>
    void remove_steps(Where where) {
        for (std::size_t size = std::max<std::size_t>(where(best_).size() / 2, 1);; size /= 2) {
            for (std::size_t end = where(best_).size(); end > 0;) {
                const std::size_t begin = end - std::min(size, end);
                attempt([&](scenario& s) {
                    auto& steps = where(s);
                    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(begin),
                                steps.begin() + static_cast<std::ptrdiff_t>(end));
                });
                end = begin;
            }
            if (size <= 1)
                return;
        }
    }

    template <class Where>
    void shrink_step(Where where, int depth) {
        reset_members(where);
        shorten(where, &step::time);
        shorten(where, &step::more);
        for (const auto list : {&step::then, &step::dying}) {
            if ((where(best_).*list).empty())
                continue;
            const auto nested = [where, list](scenario& s) -> std::vector<step>& {
                return where(s).*list;
            };
            remove_steps(nested);
            if (depth == 0) {
                for (std::size_t i = 0; i < nested(best_).size(); ++i)
                    shrink_step<std::function<step&(scenario&)>>(
                        [nested, i](scenario& s) -> step& { return nested(s)[i]; }, 1);
            }
        }
    }

    /// Gives all members of a structure their default values, except for lists of structures.
    template <class Where>
    void reset_members(Where where) {
        using structure = std::decay_t<decltype(where(best_))>;
        structure::members::for_each([&](auto, auto member) {
            static const structure usual{};
            using type = std::decay_t<decltype(usual.*member)>;
            if constexpr (!requires { typename type::value_type::members; }) {
                if (where(best_).*member != usual.*member)
                    attempt([&](scenario& s) { where(s).*member = usual.*member; });
            }
        });
    }

    /// Rounds a time.
    template <class Where>
    void shorten(Where where, std::int64_t step::*member) {
        for (std::int64_t unit = 1'000'000'000'000; unit > 1; unit /= 1000) {
            const std::int64_t value = where(best_).*member;
            const std::int64_t rounded = value / unit * unit;
            if (value != rounded && attempt([&](scenario& s) { where(s).*member = rounded; }))
                return;
        }
    }

    void shrink_setup() {
        reset_members([](scenario& s) -> setup& { return s.begin; });
        while (best_.begin.contexts.size() > 1 && attempt([](scenario& s) {
                   s.begin.contexts.pop_back();
                   const int last = static_cast<int>(s.begin.contexts.size()) - 1;
                   for (step& each : s.steps)
                       limit_context(each, last);
               })) {
        }
        for (std::size_t i = 0; i < best_.begin.contexts.size(); ++i)
            reset_members([i](scenario& s) -> context_setup& { return s.begin.contexts[i]; });
    }

    static void limit_context(step& s, int last) {
        s.context = std::min(s.context, last);
        if (s.what == op::operation)
            s.other = std::min(s.other, last);
        for (step& each : s.then)
            limit_context(each, last);
        for (step& each : s.dying)
            limit_context(each, last);
    }

    scenario best_;
    const std::function<bool(const scenario&)>& fails_;
    const std::function<bool()>& goes_on_;
    bool changed_ = false;
};

} // namespace

scenario shrink(scenario s, const std::function<bool(const scenario&)>& fails,
                const std::function<bool()>& goes_on) {
    return shrinker(std::move(s), fails, goes_on).result();
}

} // namespace simulation
