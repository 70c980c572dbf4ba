// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of timeout_ring.hpp is needed. Two or three threads use a ring of one to four
// slots in every way that the memory model allows; see support/explored.hpp.

#define BOOST_TEST_MODULE timeout_ring_orders

#include <pawl/time/timeout_ring.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"
#include "support/invariants.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using explored::execution;
using pawl::time::ring_position;
using pawl::time::ring_registration;
using pawl::time::ring_status;
using pawl::time::ring_sweep;
using pawl::time::ring_ticket;
using pawl::time::tick;
using pawl::time::timeout_ring;

namespace {

constexpr std::uint64_t delay = 4;
constexpr unsigned marks = 2;

/// Its contents belong to the owner of the item: any other access is a race.
struct item {
    explored::data<int> content{0};
    int registered = 0;
    int taken = 0;
    explored::atomic<std::uint64_t> word{0}; ///< of its ticket, once known
};

/// A ring, and the operations of threads on its items, `a` to `d`.
class bench {
public:
    bench(execution& e, std::size_t capacity)
        : ring(delay, capacity, tick{}, marks), execution_(e) {
        for (item* const i : {&a, &b, &c, &d})
            e.name(i, std::string(1, static_cast<char>('a' + (i - &a))));
    }

    /// Passes the ticket to other threads without any order: the ring itself must provide it.
    ring_registration add(item& i) {
        i.content.write(1);
        const ring_registration r = ring.try_register(i);
        if (r.status == ring_status::registered) {
            i.registered = 1;
            i.word.store(r.ticket.word(), std::memory_order_relaxed);
        }
        return r;
    }

    void cancel(item& i) {
        item* const got =
            ring.cancel(ring_ticket::from_word(i.word.load(std::memory_order_relaxed)));
        if (got == nullptr)
            return;
        execution_.require(got == &i, "cancel() has given another item than that of the ticket");
        take(got);
    }

    void grow() { ring.grow(ring.prepare_growth()); }

    ring_sweep force(std::size_t most = 4) {
        std::array<item*, 4> out{};
        return took(ring.force(std::span(out).first(most)), out);
    }
    ring_sweep expire(std::uint64_t now) {
        std::array<item*, 4> out{};
        return took(ring.expire(tick{now}, out), out);
    }
    ring_sweep drain() {
        std::array<item*, 4> out{};
        return took(ring.drain(ring.position(), out), out);
    }

    /// After all threads have ended: nothing was lost, and the ring is consistent.
    void check() {
        for (ring_sweep s = drain(); s.more; s = drain())
            execution_.require(s.emitted != 0, "a slot is never published");
        for (const item* const i : {&a, &b, &c, &d})
            execution_.require(i->taken == i->registered, "an item is lost");
        try {
            pawl_test::check_invariant(ring);
        } catch (const std::logic_error& broken) {
            execution_.require(false, broken.what());
        }
    }

    timeout_ring<item> ring;
    item a, b, c, d;

private:
    void take(item* i) {
        execution_.require(i != nullptr, "an empty slot was given out");
        i->content.write(2);
        execution_.require(++i->taken == 1, "an item was given out twice");
    }
    ring_sweep took(ring_sweep s, std::span<item* const> out) {
        for (item* const i : out.first(s.emitted))
            take(i);
        return s;
    }

    execution& execution_;
};

const std::vector<orders::named_scenario> scenarios{
    {"a ring grows, and another thread cancels what is registered then",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together(
             [&] {
                 use.grow();
                 use.add(use.b);
             },
             [&] { use.cancel(use.b); });
         use.check();
     }},
    {"a slot is used again after a cancellation that a sweep has met",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together([&] { use.cancel(use.a); },
                    [&] {
                        use.force();
                        use.add(use.b);
                    });
         use.check();
     }},
    {"a slot is used again by the sweep that has lost its item to a cancellation",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together([&] { use.cancel(use.a); },
                    [&] {
                        use.force(1); // only one step: does not read the slot again
                        use.add(use.b);
                    });
         use.check();
     }},
    {"a slot is used again after a sweep by another thread",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together([&] { use.force(); }, [&] { use.add(use.b); });
         use.check();
     }},
    {"a slot is used again after another thread has reclaimed it",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together(
             [&] {
                 use.cancel(use.a);
                 (void)use.ring.has_room();
             },
             [&] { use.add(use.b); });
         use.check();
     }},
    {"a ring grows while what was cancelled in front is reclaimed",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         use.cancel(use.a);
         e.together([&] { use.grow(); }, [&] { use.add(use.b); });
         use.check();
     }},
    {"a ring grows, and is swept by another thread",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together(
             [&] {
                 use.grow();
                 use.add(use.b);
             },
             [&] { use.force(); });
         use.check();
     }},
    {"a ring grows twice",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         use.grow();
         use.add(use.b);
         e.together(
             [&] {
                 use.grow();
                 use.add(use.c);
             },
             [&] {
                 use.grow();
                 use.add(use.d);
             });
         use.check();
     }},
    {"a registration that is not told to be the first is seen by the driver",
     [](execution& e) {
         bench use(e, 4);
         use.add(use.a);
         ring_registration r{};
         ring_position seen;
         tick wake{};
         e.together([&] { r = use.add(use.b); },
                    [&] {
                        seen = use.ring.position();
                        use.ring.mark(tick{2}, seen);
                        wake = use.ring.next_wake();
                    });
         e.require(use.ring.is_before(r.ticket, seen) || r.first || wake == tick{4},
                   "the driver sleeps over a registration");
         use.check();
     }},
    {"what was registered after the clock was read is not early",
     [](execution& e) {
         bench use(e, 4);
         explored::atomic<std::uint64_t> clock{4};
         e.together(
             [&] {
                 clock.store(8, std::memory_order_relaxed);
                 use.add(use.a);
             },
             [&] {
                 const ring_position seen = use.ring.position();
                 use.ring.mark(tick{clock.load(std::memory_order_relaxed)}, seen);
                 e.require(use.expire(4 + delay).emitted == 0, "a timer is early");
             });
         use.check();
     }},
    {"the size is asked for while another thread registers and sweeps",
     [](execution& e) {
         bench use(e, 2);
         e.together(
             [&] {
                 use.add(use.a);
                 use.force();
             },
             [&] { e.require(use.ring.size() <= 2, "the size is beyond the capacity"); });
         use.check();
     }},
    {"two threads drive",
     [](execution& e) {
         bench use(e, 4);
         use.add(use.a);
         e.together(
             [&] {
                 use.ring.mark(tick{2}, use.ring.position());
                 use.expire(6);
             },
             [&] {
                 use.expire(2);
                 use.ring.mark(tick{4}, use.ring.position());
             });
         use.check();
     }},
    {"an item is replaced before it is drained",
     [](execution& e) {
         bench use(e, 2);
         explored::atomic<std::uint64_t> word{0}; // the caller's own order
         e.together([&] { word.store(use.add(use.a).ticket.word(), std::memory_order_release); },
                    [&] {
                        const std::uint64_t seen = word.load(std::memory_order_acquire);
                        if (seen == 0)
                            return;
                        use.b.content.write(1);
                        use.ring.replace(ring_ticket::from_word(seen), use.b);
                        std::swap(use.a.registered, use.b.registered);
                        use.force();
                    });
         use.check();
     }},
    {"a ring is closed while another thread registers",
     [](execution& e) {
         bench use(e, 2);
         e.together([&] { use.add(use.a); },
                    [&] {
                        use.ring.close();
                        use.drain();
                        e.require(use.add(use.b).status == ring_status::closed, "closed, but open");
                    });
         use.check();
     }},
    {"a registration, its cancellation and a sweep",
     [](execution& e) {
         bench use(e, 2);
         e.together([&] { use.add(use.a); }, [&] { use.cancel(use.a); }, [&] { use.force(); });
         use.check();
     }},
    {"a registration reclaims while another thread sweeps",
     [](execution& e) {
         bench use(e, 2);
         use.add(use.a);
         use.add(use.b);
         e.together([&] { use.cancel(use.a); }, [&] { use.add(use.c); }, [&] { use.force(); });
         use.check();
     }},
    {"a full ring grows while another thread registers and a third one cancels",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together([&] { use.grow(); }, [&] { use.add(use.b); }, [&] { use.cancel(use.b); });
         use.check();
     }},
    {"two threads grow a full ring and a third one registers",
     [](execution& e) {
         bench use(e, 1);
         use.add(use.a);
         e.together([&] { use.grow(); }, [&] { use.grow(); }, [&] { use.add(use.b); });
         use.check();
     }},
    {"the oldest is asked for while others cancel it and register",
     [](execution& e) {
         bench use(e, 2);
         use.add(use.a);
         e.together(
             [&] {
                 item* const oldest = use.ring.oldest();
                 e.require(oldest == nullptr || oldest == &use.a || oldest == &use.b,
                           "not an item of the ring");
                 use.force();
             },
             [&] { use.cancel(use.a); }, [&] { use.add(use.b); });
         use.check();
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_ring_is_right_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_the_ring_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
