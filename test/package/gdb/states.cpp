// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Puts one object of each kind into known states. gdb stops in stopped_in(), and prints the
// expressions of states.gdb.

#include <pawl/event_feed.hpp>
#include <pawl/pawl.hpp>

#include <boost/asio/io_context.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// gdb stops here. The compiler must assume that everything is read and written here.
[[gnu::noinline]] void stopped_in(const char* state) { asm volatile("" : : "r"(state) : "memory"); }

using pawl::manual_clock;
using traits = boost::asio::wait_traits<manual_clock>;
using compact_timer =
    pawl::basic_waitable_timer<manual_clock, pawl::on_backend<pawl::time::binary_wheel, traits>>;
using ring_timer =
    pawl::basic_waitable_timer<manual_clock, pawl::on_backend<pawl::time::timeout_rings, traits>>;

} // namespace

/// The objects that gdb prints. Other files could read them, so the optimiser keeps them.
namespace shown {

/// A clock that stands still, and counts in floating point.
struct real_clock {
    using duration = std::chrono::duration<double>;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<real_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(100.25)); }
};
using real_timer = pawl::basic_waitable_timer<real_clock>;

pawl::manual_timer* timer;
pawl::manual_timer* other;
pawl::steady_timer* steady;
pawl::system_timer* system;
real_timer* real;
compact_timer* compact;
ring_timer* ring;
pawl::manual_alarm<void (*)()>* alarm;
pawl::time::hierarchical_wheel* wheel;
pawl::time::binary_wheel* binary;
pawl::timing_wheel<int>* alarms;
pawl::time::timeout_ring<int>* queue;
pawl::time::tick tick{42};
pawl::time::tick never = pawl::time::tick::never();
pawl::basic_deadline<manual_clock> deadline;
pawl::timer_name name, other_name;

} // namespace shown

namespace {

const auto ignore = [](boost::system::error_code, auto...) {};

void timers() {
    boost::asio::io_context context;
    pawl::manual_timer first(context, 30s);
    pawl::manual_timer second(context);
    shown::timer = &first;
    shown::other = &second;
    stopped_in("idle");

    shown::timer->async_wait(ignore);
    stopped_in("armed");

    shown::timer->async_wait(ignore);
    shown::timer->async_wait(ignore);
    shown::other->expires_at(manual_clock::time_point::max());
    shown::other->async_wait(ignore);
    stopped_in("several");

    manual_clock::advance(context, 31s);
    stopped_in("due");

    shown::timer->rearm_after(1500ms);
    stopped_in("rearmed");

    context.poll();
    stopped_in("rearmed and polled");

    shown::timer->cancel();
    stopped_in("cancelled");

    context.poll();
    shown::other->expires_after(0s);
    shown::other->async_wait(ignore);
    stopped_in("overdue");
}

void backends() {
    boost::asio::io_context context;
    compact_timer c(context, 2ms);
    shown::compact = &c;
    shown::compact->async_wait(ignore);

    pawl::options o;
    o.precision = 1ms;
    o.rings.delays = {{.delay = 5s, .capacity = 4}, {.delay = 30s, .capacity = 100}};
    pawl::make_timer_service<ring_timer>(context, o);
    ring_timer r(context, 5s), cancelled(context, 30s);
    shown::ring = &r;
    shown::ring->async_wait(ignore);
    cancelled.async_wait(ignore);
    cancelled.cancel();

    pawl::steady_timer s(context, 1h);
    shown::steady = &s;
    shown::steady->async_wait(ignore);
    pawl::system_timer y(context, 1h);
    shown::system = &y;
    shown::system->async_wait(ignore);
    shown::real_timer e(context, shown::real_clock::duration(1.5));
    shown::real = &e;
    shown::real->async_wait(ignore);
    stopped_in("backends");
}

void crowd() {
    boost::asio::io_context context;
    std::deque<compact_timer> all;
    for (int i = 0; i != 300; ++i)
        all.emplace_back(context, 2ms).async_wait(ignore);
    shown::compact = &all.front();
    stopped_in("a crowd");
}

void names() {
    boost::asio::io_context context;
    pawl::manual_timer first(context, 30s);
    compact_timer second(context, 1h);
    std::deque<pawl::manual_timer> others;
    for (const char* name : {"one", "two", "three", "four", "five", "six"})
        pawl::set_name(others.emplace_back(context), name);
    pawl::set_name(first, "first in line");
    pawl::set_name(second, "a name that is much too long");
    shown::timer = &first;
    shown::other = &others[3];
    shown::compact = &second;
    stopped_in("names");

    pawl::manual_timer moved(std::move(first));
    first.expires_after(5s);
    shown::timer = &moved;
    shown::other = &first;
    stopped_in("a name that has moved");

    pawl::set_name(moved, "");
    pawl::event_feed feed(context);
    auto reader = feed.join();
    shown::timer->async_wait(ignore);
    std::array<pawl::timer_event, 1> events;
    static_cast<void>(reader.try_read(events));
    shown::name = events[0].name;
    pawl::set_name(moved, "given late");
    moved.cancel();
    static_cast<void>(reader.try_read(events));
    shown::other_name = events[0].name;
    stopped_in("names in events");
}

void alarms() {
    boost::asio::io_context context;
    using alarm = pawl::manual_alarm<void (*)()>;
    const auto nothing = [] {};
    std::array<alarm, 4> all{alarm(context, nothing), alarm(context, nothing),
                             alarm(context, nothing), alarm(context, nothing)};
    const alarm last(std::move(all[3]));
    shown::alarm = all.data();
    shown::alarm[1].arm_after(1s);
    shown::alarm[2].arm_after(30s);
    pawl::set_name(shown::alarm[2], "silence");
    manual_clock::advance(context, 2s);
    stopped_in("alarms");

    shown::alarm[1].arm_after(5s);
    shown::alarm[2].disarm();
    stopped_in("alarms that were armed again and disarmed");
}

void outlived() {
    std::optional<boost::asio::io_context> context(std::in_place);
    pawl::manual_timer t(*context, 1s);
    shown::timer = &t;
    context.reset();
    stopped_in("outlived");
}

template <class Wheel>
void fill(Wheel& w, std::array<pawl::time::timer_node, 100>& nodes) {
    constexpr std::array<std::uint64_t, 5> due{5, 70, 5000, 300'000,
                                               pawl::time::tick::never().count()};
    for (std::size_t i = 0; i != nodes.size(); ++i)
        w.insert(nodes[i], pawl::time::tick{due[i % 8 < due.size() ? i % 8 : 1]});
}

void wheels() {
    std::array<pawl::time::timer_node, 100> nodes, more;
    pawl::time::hierarchical_wheel w;
    pawl::time::binary_wheel b;
    shown::wheel = &w;
    shown::binary = &b;
    stopped_in("empty wheels");

    w.reserve(nodes.size());
    fill(w, nodes);
    fill(b, more);
    stopped_in("wheels");

    std::array<pawl::time::timer_node*, 4> out;
    w.expire(pawl::time::tick{6}, out);
    b.expire(pawl::time::tick{6}, out);
    stopped_in("wheels in the middle of a tick");
}

void containers() {
    const std::chrono::steady_clock::time_point start{};
    pawl::timing_wheel<int> t({10ms}, start);
    t.add(start + 25ms, 7);
    t.add(start + 3s, 8);
    t.advance_clock(start + 15ms, [](auto&&) {});
    t.add(start + 16ms, 9);
    shown::alarms = &t;

    pawl::time::timeout_ring<int> q(1000, 4, pawl::time::tick{});
    std::array<int, 6> items{};
    std::array<pawl::time::ring_ticket, 6> tickets;
    for (std::size_t i = 0; i != items.size(); ++i) {
        if (i == 4)
            q.grow(q.prepare_growth());
        tickets[i] = q.try_register(items[i]).ticket;
    }
    q.cancel(tickets[1]);
    q.cancel(tickets[5]);
    shown::queue = &q;
    stopped_in("containers");
}

void deadlines() {
    stopped_in("a deadline that is never");

    shown::deadline = pawl::basic_deadline<manual_clock>(manual_clock::time_point(90500ms));
    stopped_in("a deadline");
}

/// An optimiser removes `gone` completely.
void optimised(int count) {
    [[maybe_unused]] const pawl::time::tick gone(static_cast<std::uint64_t>(count));
    stopped_in("optimised");
}

} // namespace

int main(int count, char**) {
    timers();
    backends();
    crowd();
    names();
    alarms();
    outlived();
    wheels();
    containers();
    deadlines();
    optimised(count);
}
