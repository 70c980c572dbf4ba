// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   check_invariant(structure): everything that can be checked of a time structure or a broadcast ring, in O(its size). The
//   std::logic_error names the structure, the invariant and all operands. No other call may run.

#ifndef PAWL_TEST_SUPPORT_INVARIANTS_HPP
#define PAWL_TEST_SUPPORT_INVARIANTS_HPP

#include <pawl/broadcast_ring.hpp>
#include <pawl/detail/time/timeout_rings.hpp>
#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/timeout_ring.hpp>
#include <pawl/time/timing_wheel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace pawl::detail {

class invariant_check {
public:
    explicit invariant_check(const char* structure) noexcept : structure_(structure) {}

    struct operand {
        const char* name;
        std::uint64_t value;
    };

    /// Throws a std::logic_error unless `holds`.
    void operator()(bool holds, const char* what, std::initializer_list<operand> operands) const {
        if (holds)
            return;
        std::string message = std::string("pawl: ") + structure_ + ": " + what;
        const char* separator = ": ";
        for (const auto& [name, value] : operands) {
            message.append(separator).append(name).append(" = ").append(std::to_string(value));
            separator = ", ";
        }
        throw std::logic_error(message);
    }

private:
    const char* structure_;
};

template <>
struct invariant_of<time::detail::striped_list> {
    /// Calls `visit(const timer_node& node)` for every node, in the order of walk().
    template <class Visitor>
    static void for_each_in_order(const time::detail::striped_list& list, Visitor&& visit) {
        time::detail::striped_list rest = list; // only its heads are used
        for (std::uint32_t left = list.count(); left != 0;) {
            rest.next_ = (rest.next_ == 0 ? rest.stripes : rest.next_) - 1;
            if (const time::timer_node* const node = rest.heads_[rest.next_]) {
                rest.heads_[rest.next_] = node->next;
                --left;
                visit(*node);
            }
        }
    }
};

template <>
struct invariant_of<time::detail::list_pool> {
    /// How many lists are lent.
    static std::uint32_t lent(const time::detail::list_pool& pool) {
        std::uint32_t count = pool.unused_ - pool.begin;
        for (auto i = pool.free_; i != pool.none; i = static_cast<decltype(i)>(pool[i].next_free()))
            --count;
        return count;
    }
};

template <>
struct invariant_of<time::binary_wheel> {
    static void check(const time::binary_wheel& wheel) {
        using namespace time;
        using namespace time::detail;
        using Wheel = binary_wheel;
        const invariant_check require{"binary_wheel"};
        const bit_bins& time = wheel.time();
        const bit_bins& stage = wheel.stage();
        const tick now = wheel.now();
        auto bin = Wheel::present;
        std::size_t total = 0;

        const auto check_node = [&](const timer_node& node, timer_node* const& pointer) {
            const std::uint64_t due = node.due.count();
            require(node.link == &pointer,
                    "back-link invariant: a node is not linked to what points at it",
                    {{"bin", bin}, {"due", due}});
            require(Wheel::bin_of(node) == bin && wheel.is_here(node),
                    "bin-name invariant: a node names another bin",
                    {{"bin", bin},
                     {"node.slot", node.slot()},
                     {"epoch", wheel.epochs_.present()},
                     {"due", due}});
            // Ends a circular list.
            require(++total <= wheel.size_,
                    "bin-name invariant: there are more nodes than the size",
                    {{"bin", bin}, {"size", wheel.size_}});
            if (bin == Wheel::never) {
                require(node.due == tick::never(),
                        "bin-name invariant: a node due never has a due tick", {{"due", due}});
            } else if (bin >= Wheel::first_of_time) {
                const tick begin = wheel.begin(bin);
                require(
                    begin <= std::max(node.due, now),
                    "bin-begin invariant: a node is due before its bin begins",
                    {{"bin", bin}, {"begin", begin.count()}, {"due", due}, {"now", now.count()}});
                require(bin % 64 >= time.below || due >= time.least,
                        "least-key invariant: a node is due before the earliest",
                        {{"bin", bin}, {"least", time.least}, {"due", due}});
            } else if (bin >= Wheel::first_of_stage) {
                const std::uint64_t sequence = wheel.starts_.of(node);
                require(sequence >= stage.begin(bin % 64) || bin % 64 == stage.entered(),
                        "bin-begin invariant: a node in the stage is older than its bin",
                        {{"bin", bin}, {"begin", stage.begin(bin % 64)}, {"sequence", sequence}});
                require(bin % 64 >= stage.below || sequence >= stage.least,
                        "least-key invariant: a node in the stage is older than the oldest",
                        {{"bin", bin}, {"least", stage.least}, {"sequence", sequence}});
            }
        };

        for (; bin <= Wheel::never; ++bin) {
            const bool occupied = (wheel.words_[bin / 64].occupied >> (bin % 64) & 1) != 0;
            require(occupied == (wheel.head(bin) != nullptr),
                    "bin-name invariant: the occupancy set is wrong",
                    {{"bin", bin}, {"occupied", occupied}});
            for (timer_node* const* at = &wheel.heads_[bin - Wheel::present]; *at;
                 at = &(*at)->next)
                check_node(**at, *at);
        }
        require(total == wheel.size_, "bin-name invariant: the size is not the number of nodes",
                {{"nodes", total}, {"size", wheel.size_}});

        for (const bit_bins& bins : wheel.words_) {
            require(std::popcount(bins.occupied & bins.position) <= 1,
                    "one-entered invariant: two bins are entered",
                    {{"occupied", bins.occupied}, {"position", bins.position}});
        }
        require(stage.position != Wheel::closed || stage.occupied == 0,
                "stage invariant: the stage is occupied, but not open",
                {{"occupied", stage.occupied}});
        require(stage.position == Wheel::closed || time.entered() == bit_bins::none,
                "stage invariant: the stage is open, and a bin of time is entered",
                {{"now", now.count()}});
        require(wheel.asked_ >= now, "target invariant: the position is beyond what was asked for",
                {{"asked", wheel.asked_.count()}, {"now", now.count()}});
    }
};

template <>
struct invariant_of<time::hierarchical_wheel> {
    static void check(const time::hierarchical_wheel& wheel) {
        using namespace time;
        using namespace time::detail;
        using slot_type = slot_lists::slot_type;
        const invariant_check require{"hierarchical_wheel"};
        const std::uint32_t base = wheel.sets_.base();
        const std::uint32_t never = wheel.sets_.never_slot;
        const tick now = wheel.now();
        std::size_t total = 0;

        const auto check_list = [&](const striped_list& list, std::uint32_t slot,
                                    auto&& check_node) {
            std::uint32_t count = 0;
            list.for_each([&](const timer_node& node, timer_node* const& pointer) {
                ++count;
                require(node.link == &pointer,
                        "back-link invariant: a node is not linked to what points at it",
                        {{"slot", slot}, {"nth", count}, {"due", node.due.count()}});
                require(node.slot() == base + slot,
                        "slot-name invariant: a node names another slot",
                        {{"slot", slot},
                         {"node.slot", node.slot()},
                         {"base", base},
                         {"due", node.due.count()}});
                require(wheel.starts_.of(node) >= list.least(),
                        "least-sequence invariant: a node is older than the oldest",
                        {{"slot", slot},
                         {"sequence", wheel.starts_.of(node)},
                         {"least", list.least()}});
                check_node(node);
                // Ends a circular list.
                require(count <= list.count(),
                        "count invariant: a slot has more nodes than it counts",
                        {{"slot", slot}, {"count", list.count()}});
            });
            require(count == list.count(), "count invariant: a slot has fewer nodes than it counts",
                    {{"slot", slot}, {"nodes", count}, {"count", list.count()}});
            total += count;
        };

        std::uint32_t occupied_slots = 0;
        const auto check_digits = [&](const auto& digits, std::uint32_t first, auto&& check_node) {
            const geometry& shape = digits.shape();
            const slot_type present = digits.slot_of(digits.position());
            slot_type next = digits.first();
            for (slot_type slot = 0; slot != shape.slots(); ++slot) {
                const bool occupied = digits.occupied(slot);
                require(occupied == (next == slot),
                        "occupancy invariant: the occupancy set is wrong",
                        {{"slot", first + slot}, {"has_a_list", occupied}, {"next", next}});
                if (!occupied)
                    continue;
                next = digits.after(slot);
                ++occupied_slots;
                require(!digits[slot].empty(), "occupancy invariant: a slot is occupied by nothing",
                        {{"slot", first + slot}});
                require(slot == present || slot == digits.entered() ||
                            digits.begin(slot) > digits.position(),
                        "no-slot-behind invariant: a slot behind the position is occupied",
                        {{"slot", first + slot},
                         {"begin", digits.begin(slot)},
                         {"position", digits.position()}});
                check_list(digits[slot], first + slot,
                           [&](const timer_node& node) { check_node(node, slot); });
            }
        };

        check_digits(wheel.time_, 0, [&](const timer_node& node, slot_type slot) {
            require(slot == wheel.cascade() ||
                        wheel.time_.begin(slot) <= std::max(node.due, now).count(),
                    "slot-begin invariant: a node is due before its slot begins",
                    {{"slot", slot},
                     {"begin", wheel.time_.begin(slot)},
                     {"due", node.due.count()},
                     {"now", now.count()}});
        });
        for (slot_type slot = 0; slot != wheel.time_.shape().slots(0); ++slot) {
            if (!wheel.time_.occupied(slot) || !wheel.time_[slot].ascends())
                continue;
            std::uint64_t last = 0;
            const auto check_order = [&](const timer_node& node) {
                if (wheel.starts_.of(node) >= wheel.cascaded_at_)
                    return;
                require(wheel.starts_.of(node) > last,
                        "cascade-order invariant: a slot says that it is in order, and is not",
                        {{"slot", slot}, {"sequence", wheel.starts_.of(node)}, {"behind", last}});
                last = wheel.starts_.of(node);
            };
            invariant_of<striped_list>::for_each_in_order(wheel.time_[slot], check_order);
        }
        check_list(wheel.never_, never, [&](const timer_node& node) {
            require(node.due == tick::never(),
                    "slot-name invariant: a node due never has a due tick",
                    {{"due", node.due.count()}});
        });
        check_digits(wheel.stage_, never + 1, [&](const timer_node& node, slot_type slot) {
            const std::uint64_t key = wheel.stage_.key(wheel.starts_.of(node));
            require(slot == wheel.stage_.entered() || key >= wheel.stage_.begin(slot),
                    "slot-begin invariant: a node in the stage comes before its slot begins",
                    {{"slot", slot}, {"begin", wheel.stage_.begin(slot)}, {"key", key}});
        });

        require(wheel.stage_.is_open() || wheel.stage_.first() == slot_lists::none,
                "stage invariant: the stage is occupied, but not open",
                {{"slot", wheel.stage_.first()}});
        const auto check_set = [&](const detached_sets::set& set, const slot_lists& slots,
                                   std::uint32_t first) {
            for (slot_type slot = 0; slot != slots.size(); ++slot) {
                if (!slots.occupied(slot))
                    continue;
                ++occupied_slots;
                const striped_list& list = slots[slot];
                std::uint32_t count = 0;
                list.for_each([&](const timer_node& node, timer_node* const&) {
                    ++count;
                    require(node.slot() == set.base_ + first + slot,
                            "slot-name invariant: a node of a set names another slot",
                            {{"slot", first + slot}, {"node.slot", node.slot()}});
                });
                require(count != 0 && count == list.count(),
                        "lent-list invariant: a slot of a set counts wrong",
                        {{"slot", first + slot}, {"nodes", count}, {"count", list.count()}});
            }
        };
        for (const auto* set = wheel.sets_.sets_; set; set = set->next_) {
            check_set(*set, set->time_, 0);
            check_set(*set, set->stage_, never + 1);
        }
        const std::uint32_t lent = invariant_of<list_pool>::lent(wheel.pool_);
        require(occupied_slots == lent, "lent-list invariant: a list is lent to no slot, or to two",
                {{"slots", occupied_slots}, {"lent", lent}});
        require(total == wheel.size_, "slot-name invariant: the size is not the number of nodes",
                {{"nodes", total}, {"size", wheel.size_}});
    }
};

template <>
struct invariant_of<time::timeout_rings> {
    static void check(const time::timeout_rings& all) {
        using namespace time;
        const invariant_check require{"timeout_rings"};
        std::size_t nodes = 0;
        for (const timer_node* node = all.overdue_.first; node; node = node->next, ++nodes)
            require(*node->link == node && node->slot() == timeout_rings::deadline::overdue,
                    "slot invariant: an overdue node", {{"node", nodes}});
        for (const auto& r : all.rings_) {
            const auto* open = r.periods.empty() ? nullptr : &r.periods.front();
            require(!open == (r.first == r.next), "period invariant: a ring without periods",
                    {{"first", r.first}});
            std::size_t which = 0;
            std::uint64_t number = r.first;
            for (const auto& part : r.parts) {
                for (timer_node* const& node : part) {
                    while (which + 1 < r.periods.size() && r.periods[which + 1].first <= number)
                        open = &r.periods[++which];
                    require(open->first <= number || which == 0,
                            "period invariant: a slot without a period", {{"number", number}});
                    if (node) {
                        require(node->link == &node && node->ticket == number,
                                "slot invariant: a node and its slot", {{"number", number}});
                        require(node->due <= open->wake, "period invariant: a node is due later",
                                {{"due", node->due.count()}, {"wake", open->wake.count()}});
                        ++nodes;
                    }
                    ++number;
                }
            }
            require(number == r.next, "slot invariant: slots are missing", {{"next", r.next}});
        }
        require(nodes <= all.size_, "fewer nodes are counted than there are", {{"nodes", nodes}});
    }
};

template <class T, class TimePoint>
struct invariant_of<time::timing_wheel<T, TimePoint>> {
    static void check(const time::timing_wheel<T, TimePoint>& wheel) {
        const invariant_check require{"timing_wheel"};
        const auto& queue = wheel.queue_;
        invariant_of<time::hierarchical_wheel>::check(queue.wheel_);

        const std::uint64_t position = queue.wheel_.now().count();
        std::size_t in_order = 0;
        std::uint64_t before = 0;
        for (const auto& s : queue.front_) {
            require(s.user() == queue.in_front,
                    "front invariant: an alarm of the wheel is in the front",
                    {{"index", s.index}, {"key", s.key()}});
            require(before <= s.key(), "firing-order invariant: not in firing order",
                    {{"key", before}, {"next", s.key()}});
            require(s.key() <= position, "front invariant: in the front too early",
                    {{"key", s.key()}, {"position", position}});
            before = s.key();
            ++in_order;
        }
        require(
            in_order + queue.wheel_.size() == wheel.size_,
            "front invariant: an alarm is neither in the front nor in the wheel",
            {{"in_front", in_order}, {"in_wheel", queue.wheel_.size()}, {"alarms", wheel.size_}});

        std::size_t alive = 0;
        for (std::size_t i = 0; i != wheel.pool_.size(); ++i) {
            const auto& s = wheel.pool_[i];
            if (!s.alive())
                continue;
            ++alive;
            require(s.generation <= wheel.pool_.generations_,
                    "generation invariant: a generation was not given",
                    {{"generation", s.generation}, {"last", wheel.pool_.generations_}});
            require(s.value.has_value(), "generation invariant: an alarm has no value",
                    {{"index", s.index}, {"key", s.key()}});
            require(s.key() == wheel.intervals_.number(s.at),
                    "an alarm's key is not that of its time",
                    {{"key", s.key()}, {"number", wheel.intervals_.number(s.at)}});
            require(s.user() == queue.in_front || s.key() > position,
                    "handed-out invariant: late in the wheel",
                    {{"key", s.key()}, {"position", position}});
        }
        require(alive == wheel.size_, "generation invariant: the size is not the number of alarms",
                {{"alive", alive}, {"alarms", wheel.size_}});
    }
};

template <class T>
struct invariant_of<time::timeout_ring<T>> {
    static void check(const time::timeout_ring<T>& ring) {
        using namespace time;
        using time::detail::ring_word;
        const invariant_check require{"timeout_ring"};

        // relaxed: no other call runs.
        constexpr auto quiet = std::memory_order_relaxed;
        const std::uint64_t word = ring.tail_.load(quiet);
        const std::uint64_t tail = ring_word::number_in(word);
        const std::uint64_t head = ring.head_.load(quiet);
        require(head <= tail && tail - head <= ring.capacity(),
                "capacity invariant: more slots are in use than there are",
                {{"head", head}, {"tail", tail}, {"capacity", ring.capacity()}});

        std::uint64_t in_use = 0;
        for (unsigned i = 0; i != ring_word::most_blocks; ++i) {
            const auto* const slots = ring.slots_.block_at(i);
            require(slots || i > ring_word::block_in(word),
                    "one-slot invariant: a block is missing", {{"block", i}});
            for (std::size_t k = 0; slots && k != ring.slots_.size(i); ++k) {
                const std::uint64_t state = slots[k].state.load(quiet);
                const std::uint64_t number = state >> ring_word::phase_bits;
                require(state == 0 || state == ring_word::live(number) ||
                            state == ring_word::done(number),
                        "one-slot invariant: a slot has no state",
                        {{"block", i}, {"slot", k}, {"state", state}});
                require(number < tail && (state == 0 || ring.slots_.place_in(i, number) == k),
                        "one-slot invariant: a slot has a ticket that is not its own",
                        {{"block", i}, {"slot", k}, {"ticket", number}, {"tail", tail}});
                require(state == 0 || state == ring_word::done(number) || number >= head,
                        "one-slot invariant: a timer is live in front of the ring",
                        {{"block", i}, {"slot", k}, {"ticket", number}, {"head", head}});
                require(state != ring_word::live(number) || slots[k].item.load(quiet),
                        "one-slot invariant: a live timer has no item",
                        {{"block", i}, {"slot", k}});
                in_use += state != 0 && number >= head ? 1U : 0U;
            }
        }
        require(in_use == tail - head, "one-slot invariant: a ticket is in no slot, or in two",
                {{"slots", in_use}, {"head", head}, {"tail", tail}});

        const std::uint64_t open = ring.open_from_.load(quiet);
        std::uint64_t number = 0;
        tick stamp{};
        for (const auto& mark : ring.marks_) {
            require(
                number == 0 || (mark.number > number && mark.stamp >= stamp),
                "mark invariant: a mark does not rise",
                {{"number", mark.number}, {"stamp", mark.stamp.count()}, {"last", stamp.count()}});
            number = mark.number;
            stamp = mark.stamp;
        }
        require(number <= open && open <= tail && stamp <= ring.begin_,
                "mark invariant: the open sub-period begins before the newest mark, or behind all",
                {{"mark", number}, {"open", open}, {"tail", tail}, {"begin", ring.begin_.count()}});
        require(!ring.driver_.load(quiet), "a driver is at work", {});
    }
};

template <class T, slow_readers Policy, ring_writers Writers>
struct invariant_of<ring_core<T, Policy, Writers>> {
    using core = ring_core<T, Policy, Writers>;
    static void check(const core& all) {
        const invariant_check require{"broadcast_ring"};
        using phase = typename core::phase;
        constexpr auto any = std::memory_order_relaxed; // no other call runs
        const std::uint64_t published = all.published_.load(any);
        const std::uint64_t freed = all.free_.load(any);
        const std::uint64_t doomed = core::destroys ? all.doomed_.load(any) : freed;
        const std::uint64_t reserved = all.reserved_.load(any);
        const std::uint64_t oldest = all.oldest_.load(any);
        require(core::copies || (freed <= doomed && doomed <= oldest),
                "order: free, doomed, oldest",
                {{"freed", freed}, {"doomed", doomed}, {"oldest", oldest}});
        require(doomed <= published && published <= reserved, "order: doomed, published",
                {{"doomed", doomed}, {"published", published}, {"reserved", reserved}});
        require(reserved <= (core::copies ? published : freed) + all.capacity_, "order: reserved",
                {{"reserved", reserved}, {"freed", freed}, {"published", published}});
        if constexpr (core::many)
            require(!all.is_in(published, phase::written, phase::skipped), "states: published",
                    {{"published", published}});
        if constexpr (core::destroys)
            require(!all.is_in(freed, phase::freed, phase::freed), "states: free",
                    {{"freed", freed}});
    }
};

template <class T, slow_readers Policy, ring_writers Writers>
struct invariant_of<broadcast_ring<T, Policy, Writers>> {
    static void check(const broadcast_ring<T, Policy, Writers>& ring) {
        invariant_of<ring_core<T, Policy, Writers>>::check(*ring.core_);
    }
};

} // namespace pawl::detail

namespace pawl_test {

template <class Structure>
void check_invariant(Structure&& of) {
    if constexpr (requires { of.invariant(); }) // a model of the tests
        of.invariant();
    else
        pawl::detail::invariant_of<std::remove_cvref_t<Structure>>::check(of);
}

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_INVARIANTS_HPP
