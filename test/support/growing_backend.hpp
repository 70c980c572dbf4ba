// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   growing_wheel as a backend that grows by itself, so that the suites for backends can be asked of
//   what it is before, of what it is afterwards, and of whatever is under way when it grows.
//
// Model
//   It grows in the first call of insert() or refile() before which a given number of nodes had been
//   filed, whether they still are or not; if a detached set has nodes then, in the first such call
//   when none has. It does not ask wants_to_grow(), so that it may have any number of nodes.
//
//   As it has to ask for its room in functions that are noexcept, lack of memory ends the program.

#ifndef PAWL_TEST_SUPPORT_GROWING_BACKEND_HPP
#define PAWL_TEST_SUPPORT_GROWING_BACKEND_HPP

#include <pawl/time/backend.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/growing_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <cstdint>
#include <optional>

namespace pawl_test {

/// Grows when as many nodes have been filed as the class that is derived from it has said.
class growing_backend : public pawl::time::growing_wheel {
    using tick = pawl::time::tick;
    using timer_node = pawl::time::timer_node;

public:
    void insert(timer_node& node, tick due) noexcept {
        before_filing();
        growing_wheel::insert(node, due);
    }
    void refile(timer_node& node) noexcept {
        before_filing();
        growing_wheel::refile(node);
    }

protected:
    explicit growing_backend(tick now) noexcept : growing_wheel(now) {}

    std::optional<std::uint64_t> grows_after; ///< so many nodes; no number: not yet known

private:
    void before_filing() noexcept {
        if (grows_after && filed_ >= *grows_after && may_grow())
            grow(make_room());
        ++filed_;
    }

    std::uint64_t filed_ = 0; // ever
};

/// Grows when so many nodes have been filed.
template <std::uint64_t Nodes>
class growing_at : public growing_backend {
public:
    explicit growing_at(const pawl::time::geometry&, pawl::time::tick now = {}) noexcept
        : growing_backend(now) {
        grows_after = Nodes;
    }
};

/// Grows when a number of nodes have been filed that its first one decides upon, from 0 to 60: a
/// random test has it grow at other moments in each run, and the same run at the same one again.
class grown_sometime : public growing_backend {
public:
    explicit grown_sometime(const pawl::time::geometry&, pawl::time::tick now = {}) noexcept
        : growing_backend(now) {}

    void insert(pawl::time::timer_node& node, pawl::time::tick due) noexcept {
        if (!grows_after)
            grows_after = due.count() % 61;
        growing_backend::insert(node, due);
    }
};

static_assert(pawl::time::backend<growing_at<0>>);
static_assert(pawl::time::backend<grown_sometime>);

} // namespace pawl_test

#endif
