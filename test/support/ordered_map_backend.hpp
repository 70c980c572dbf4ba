// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The oracle: a backend that is simple enough to be obviously right. An ordered map from (due,
//   order) to the node. It is slow, and allocates, even inside noexcept functions.
//
// Model
//   The due in the map is the later of the node's due tick and of the position at which it was
//   filed, which is the order promise of backend.hpp. Unlike the wheel, it does not sort
//   late-comers by their due ticks.

#ifndef PAWL_TEST_SUPPORT_ORDERED_MAP_BACKEND_HPP
#define PAWL_TEST_SUPPORT_ORDERED_MAP_BACKEND_HPP

#include <pawl/time/backend.hpp>

#include <algorithm>
#include <cassert>
#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace pawl_test {

namespace time = pawl::time;

class ordered_map_backend {
    struct key {
        std::uint64_t due;
        std::uint64_t sequence;
        friend auto operator<=>(const key&, const key&) = default;
    };
    using map = std::map<key, time::timer_node*>;
    struct place {
        map* in;
        key at;
    };

public:
    class detached {
    public:
        explicit detached(const ordered_map_backend&) {}
        detached(const detached&) = delete;
        detached& operator=(const detached&) = delete;
        ~detached() {
            while (pop() != nullptr) {
            }
        }

        [[nodiscard]] time::timer_node* pop() noexcept {
            if (nodes_->empty())
                return nullptr;
            time::timer_node* const node = nodes_->begin()->second;
            backend_->take(*node);
            return node;
        }

    private:
        friend class ordered_map_backend;
        std::unique_ptr<map> nodes_ = std::make_unique<map>();
        ordered_map_backend* backend_ = nullptr;
    };

    explicit ordered_map_backend(const time::geometry& = {}, time::tick now = {}) : now_(now) {}
    ordered_map_backend(const ordered_map_backend&) = delete;
    ordered_map_backend& operator=(const ordered_map_backend&) = delete;

    [[nodiscard]] time::tick now() const noexcept { return now_; }
    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }

    void insert(time::timer_node& node, time::tick due) noexcept {
        node.due = due;
        node.set_order(next_sequence_);
        file(node, next_sequence_++);
    }

    void refile(time::timer_node& node) noexcept { file(node, node.order()); }

    void erase(time::timer_node& node) noexcept { take(node); }

    void rearm(time::timer_node& node, time::tick due) noexcept {
        take(node);
        insert(node, due);
    }

    void move_node(time::timer_node& from, time::timer_node& to) noexcept {
        assert(!to.filed());
        to = from;
        if (from.filed()) {
            const place where = places_.at(&from);
            places_.erase(&from);
            places_.emplace(&to, where);
            where.in->at(where.at) = &to;
            mark(to);
        }
        from = time::timer_node{};
    }

    time::expire_result expire(time::tick now, std::span<time::timer_node*> out) noexcept {
        const std::uint64_t target =
            std::clamp(now.count(), now_.count(), time::tick::never().count() - 1);
        std::size_t emitted = 0;
        for (; !nodes_.empty() && nodes_.begin()->first.due <= target; ++emitted) {
            if (emitted == out.size())
                return {emitted, true};
            now_ = time::tick{std::max(now_.count(), nodes_.begin()->first.due)};
            out[emitted] = nodes_.begin()->second;
            take(*out[emitted]);
        }
        now_ = time::tick{target};
        return {emitted, false};
    }

    [[nodiscard]] time::tick next_wake() const noexcept {
        return nodes_.empty() ? time::tick::never()
                              : std::max(now_, time::tick{nodes_.begin()->first.due});
    }

    [[nodiscard]] time::timer_node* any() const noexcept {
        return nodes_.empty() ? nullptr : nodes_.begin()->second;
    }

    void detach_all(detached& set) noexcept {
        assert(set.nodes_->empty());
        set.backend_ = this;
        set.nodes_->swap(nodes_);
        for (const auto& [at, node] : *set.nodes_)
            places_.at(node).in = set.nodes_.get();
    }

    void rewind(time::tick now) noexcept {
        assert(empty());
        now_ = now;
    }

    void invariant() const {
        for (const auto& [at, node] : nodes_) {
            if (!node->filed() || places_.at(node).at != at)
                throw std::logic_error("ordered_map_backend: due = " + std::to_string(at.due));
        }
    }

    /// Sets the position to that of the backend under test, because the progress of an incomplete
    /// expire() is not promised.
    void follow(time::tick now) noexcept { now_ = now; }

private:
    // Filed nodes must look filed; this link is never followed.
    static void mark(time::timer_node& node) noexcept { node.link = &node.next; }

    void file(time::timer_node& node, std::uint64_t sequence) noexcept {
        assert(!node.filed());
        const key at{std::max(node.due, now_).count(), sequence};
        nodes_.emplace(at, &node);
        places_.emplace(&node, place{&nodes_, at});
        mark(node);
    }

    void take(time::timer_node& node) noexcept {
        const place where = places_.at(&node);
        where.in->erase(where.at);
        places_.erase(&node);
        node.link = nullptr;
    }

    map nodes_;
    std::unordered_map<const time::timer_node*, place> places_;
    std::uint64_t next_sequence_ = 0;
    time::tick now_;
};

static_assert(time::rewindable_backend<ordered_map_backend>);

} // namespace pawl_test

#endif
