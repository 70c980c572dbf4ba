// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The explorer of support/explored.hpp itself: the outcomes that the memory model allows in the
// classic litmus tests, and those that it forbids.

#include "support/explored.hpp"

#define BOOST_TEST_MODULE explored
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

using explored::atomic;
using explored::data;
using explored::execution;
using explored::explore;
using explored::findings;
using explored::limits;
using outcomes = std::set<std::string>;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

std::string text(std::initializer_list<int> values) {
    std::string all;
    for (const int value : values)
        all += std::to_string(value);
    return all;
}

findings all_of(const explored::scenario& body) {
    return explore(body, {.deviations = 8, .shortest_first = false});
}

/// T1: x = 1; read y.  T2: y = 1; read x.
explored::scenario store_buffering(std::memory_order store, std::memory_order load) {
    return [=](execution& e) {
        atomic<int> x{0};
        atomic<int> y{0};
        int of_y = -1;
        int of_x = -1;
        e.together(
            [&] {
                x.store(1, store);
                of_y = y.load(load);
            },
            [&] {
                y.store(1, store);
                of_x = x.load(load);
            });
        e.outcome(text({of_y, of_x}));
    };
}

/// T1: data, then flag.  T2: flag, then data.
explored::scenario message_passing(std::memory_order store, std::memory_order load) {
    return [=](execution& e) {
        atomic<int> message{0};
        atomic<int> flag{0};
        int of_flag = -1;
        int of_message = -1;
        e.together(
            [&] {
                message.store(1, relaxed);
                flag.store(1, store);
            },
            [&] {
                of_flag = flag.load(load);
                of_message = message.load(relaxed);
            });
        e.outcome(text({of_flag, of_message}));
    };
}

/// T1 and T2 store to x and y. T3 reads x, then y; T4 reads y, then x.
explored::scenario independent_reads(std::memory_order store, std::memory_order load) {
    return [=](execution& e) {
        atomic<int> x{0};
        atomic<int> y{0};
        int x3 = -1;
        int y3 = -1;
        int x4 = -1;
        int y4 = -1;
        e.together([&] { x.store(1, store); }, [&] { y.store(1, store); },
                   [&] {
                       x3 = x.load(load);
                       y3 = y.load(load);
                   },
                   [&] {
                       y4 = y.load(load);
                       x4 = x.load(load);
                   });
        e.outcome(text({x3, y3, y4, x4}));
    };
}

/// T1: read x, then store to y.  T2: read y, then store to x.
explored::scenario load_buffering(std::memory_order store, std::memory_order load) {
    return [=](execution& e) {
        atomic<int> x{0};
        atomic<int> y{0};
        int of_x = -1;
        int of_y = -1;
        e.together(
            [&] {
                of_x = x.load(load);
                y.store(1, store);
            },
            [&] {
                of_y = y.load(load);
                x.store(1, store);
            });
        e.outcome(text({of_x, of_y}));
    };
}

} // namespace

BOOST_AUTO_TEST_SUITE(litmus)

BOOST_AUTO_TEST_CASE(both_threads_may_miss_the_store_of_the_other_unless_all_is_seq_cst) {
    BOOST_TEST(
        (all_of(store_buffering(relaxed, relaxed)).outcomes == outcomes{"00", "01", "10", "11"}));
    BOOST_TEST(
        (all_of(store_buffering(release, acquire)).outcomes == outcomes{"00", "01", "10", "11"}));
    BOOST_TEST((all_of(store_buffering(seq_cst, seq_cst)).outcomes == outcomes{"01", "10", "11"}));
    BOOST_TEST((all_of(store_buffering(seq_cst, acquire)).outcomes.count("00") == 1U));
    BOOST_TEST((all_of(store_buffering(release, seq_cst)).outcomes.count("00") == 1U));
}

BOOST_AUTO_TEST_CASE(a_message_arrives_with_its_flag_only_by_release_and_acquire) {
    const outcomes without{"00", "01", "11"};
    const outcomes every{"00", "01", "10", "11"};

    BOOST_TEST((all_of(message_passing(release, acquire)).outcomes == without));
    BOOST_TEST((all_of(message_passing(seq_cst, seq_cst)).outcomes == without));
    BOOST_TEST((all_of(message_passing(relaxed, acquire)).outcomes == every));
    BOOST_TEST((all_of(message_passing(release, relaxed)).outcomes == every));
}

BOOST_AUTO_TEST_CASE(two_readers_may_disagree_about_two_stores_unless_all_is_seq_cst) {
    BOOST_TEST((all_of(independent_reads(release, acquire)).outcomes.count("1010") == 1U));
    const outcomes agreed = all_of(independent_reads(seq_cst, seq_cst)).outcomes;
    BOOST_TEST(agreed.count("1010") == 0U);
    BOOST_TEST(agreed.size() == 15U);
}

BOOST_AUTO_TEST_CASE(
    both_threads_may_read_the_store_of_the_other_that_follows_if_they_are_relaxed) {
    const outcomes without{"00", "01", "10"};

    BOOST_TEST(
        (all_of(load_buffering(relaxed, relaxed)).outcomes == outcomes{"00", "01", "10", "11"}));
    BOOST_TEST((all_of(load_buffering(release, acquire)).outcomes == without));
    BOOST_TEST((all_of(load_buffering(seq_cst, seq_cst)).outcomes == without));
}

// The store of T2 depends on the value that it has read, and that value on T1: it would come out of
// thin air.
BOOST_AUTO_TEST_CASE(no_value_comes_out_of_thin_air) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        atomic<int> y{0};
        int of_x = -1;
        e.together(
            [&] {
                of_x = x.load(relaxed);
                y.store(of_x, relaxed);
            },
            [&] { x.store(y.load(relaxed), relaxed); });
        e.outcome(text({of_x}));
    });

    BOOST_TEST((found.outcomes == outcomes{"0"}));
}

BOOST_AUTO_TEST_CASE(a_load_that_happens_before_a_store_does_not_read_it) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        atomic<int> flag{0};
        int of_x = -1;
        e.together(
            [&] {
                of_x = x.load(relaxed);
                flag.store(1, release);
            },
            [&] {
                if (flag.load(acquire) == 1)
                    x.store(1, relaxed);
            });
        e.outcome(text({of_x}));
    });

    BOOST_TEST((found.outcomes == outcomes{"0"}));
}

// Without the release it may, although the store depends on the flag.
BOOST_AUTO_TEST_CASE(a_load_before_a_relaxed_flag_may_read_what_the_flag_lets_go) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        atomic<int> flag{0};
        int of_x = -1;
        e.together(
            [&] {
                of_x = x.load(relaxed);
                flag.store(1, relaxed);
            },
            [&] {
                if (flag.load(acquire) == 1)
                    x.store(1, relaxed);
            });
        e.outcome(text({of_x}));
    });

    BOOST_TEST((found.outcomes == outcomes{"0", "1"}));
}

BOOST_AUTO_TEST_CASE(one_atomic_never_goes_back_for_a_reader) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        int first = -1;
        int second = -1;
        e.together(
            [&] {
                x.store(1, relaxed);
                x.store(2, relaxed);
            },
            [&] {
                first = x.load(relaxed);
                second = x.load(relaxed);
            });
        e.outcome(text({first, second}));
    });

    BOOST_TEST((found.outcomes == outcomes{"00", "01", "02", "11", "12", "22"}));
}

BOOST_AUTO_TEST_CASE(two_readers_agree_about_the_order_of_two_stores_to_one_atomic) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        std::array<int, 4> seen{};
        e.together([&] { x.store(1, relaxed); }, [&] { x.store(2, relaxed); },
                   [&] {
                       seen[0] = x.load(relaxed);
                       seen[1] = x.load(relaxed);
                   },
                   [&] {
                       seen[2] = x.load(relaxed);
                       seen[3] = x.load(relaxed);
                   });
        e.outcome(text({seen[0], seen[1], seen[2], seen[3]}));
    });

    BOOST_TEST(found.outcomes.count("1212") == 1U);
    BOOST_TEST(found.outcomes.count("2121") == 1U);
    BOOST_TEST(found.outcomes.count("1221") == 0U);
    BOOST_TEST(found.outcomes.count("2112") == 0U);
}

// T1: x = 1; y = 2.  T2: y = 1; x = 2. Each atomic may end with its first store in program order.
BOOST_AUTO_TEST_CASE(a_store_may_come_before_one_that_was_made_earlier) {
    const auto both = [](std::memory_order first, std::memory_order second) {
        return all_of([=](execution& e) {
            atomic<int> x{0};
            atomic<int> y{0};
            e.together(
                [&] {
                    x.store(1, first);
                    y.store(2, second);
                },
                [&] {
                    y.store(1, first);
                    x.store(2, second);
                });
            e.outcome(text({x.load(relaxed), y.load(relaxed)}));
        });
    };

    BOOST_TEST((both(relaxed, relaxed).outcomes == outcomes{"11", "12", "21", "22"}));
    BOOST_TEST((both(release, release).outcomes == outcomes{"11", "12", "21", "22"}));
    BOOST_TEST((both(seq_cst, seq_cst).outcomes == outcomes{"12", "21", "22"}));
}

BOOST_AUTO_TEST_CASE(an_rmw_in_between_keeps_what_was_released_and_a_store_does_not) {
    const auto through = [](bool is_rmw) {
        return all_of([=](execution& e) {
            atomic<int> message{0};
            atomic<int> flag{0};
            int of_flag = -1;
            int of_message = -1;
            e.together(
                [&] {
                    message.store(1, relaxed);
                    flag.store(1, release);
                },
                [&] {
                    if (is_rmw)
                        flag.fetch_add(2, relaxed);
                    else if (flag.load(relaxed) == 1)
                        flag.store(3, relaxed);
                },
                [&] {
                    of_flag = flag.load(acquire);
                    of_message = message.load(relaxed);
                });
            e.outcome(text({of_flag, of_message}));
        });
    };

    BOOST_TEST(through(true).outcomes.count("30") == 0U);
    BOOST_TEST(through(true).outcomes.count("31") == 1U);
    BOOST_TEST(through(false).outcomes.count("30") == 1U);
}

BOOST_AUTO_TEST_CASE(a_relaxed_store_of_the_same_thread_ends_a_release_sequence) {
    const findings found = all_of([](execution& e) {
        atomic<int> message{0};
        atomic<int> flag{0};
        int of_flag = -1;
        int of_message = -1;
        e.together(
            [&] {
                message.store(1, relaxed);
                flag.store(1, release);
                flag.store(2, relaxed);
            },
            [&] {
                of_flag = flag.load(acquire);
                of_message = message.load(relaxed);
            });
        e.outcome(text({of_flag, of_message}));
    });

    BOOST_TEST(found.outcomes.count("10") == 0U);
    BOOST_TEST(found.outcomes.count("20") == 1U);
}

BOOST_AUTO_TEST_CASE(of_two_rmw_each_sees_the_other_or_is_seen) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        int first = -1;
        int second = -1;
        e.together([&] { first = x.fetch_add(1, relaxed); },
                   [&] { second = x.fetch_add(1, relaxed); });
        e.outcome(text({first, second, x.load(relaxed)}));
    });

    BOOST_TEST((found.outcomes == outcomes{"012", "102"}));
}

BOOST_AUTO_TEST_CASE(a_compare_exchange_fails_with_the_order_of_failure) {
    const auto failing = [](std::memory_order order) {
        return all_of([=](execution& e) {
            atomic<int> message{0};
            atomic<int> flag{0};
            int expected = 2;
            int of_message = -1;
            e.together(
                [&] {
                    message.store(1, relaxed);
                    flag.store(1, release);
                },
                [&] {
                    (void)flag.compare_exchange_strong(expected, 3, acq_rel, order);
                    of_message = message.load(relaxed);
                });
            e.outcome(text({expected, of_message}));
        });
    };

    BOOST_TEST((failing(acquire).outcomes == outcomes{"00", "01", "11"}));
    BOOST_TEST((failing(relaxed).outcomes == outcomes{"00", "01", "10", "11"}));
}

BOOST_AUTO_TEST_CASE(only_a_weak_compare_exchange_fails_for_no_reason) {
    const auto once = [](bool weak) {
        return all_of([=](execution& e) {
            atomic<int> x{0};
            bool done = false;
            e.together([&] {
                int expected = 0;
                done = weak ? x.compare_exchange_weak(expected, 1, relaxed)
                            : x.compare_exchange_strong(expected, 1, relaxed);
            });
            e.outcome(text({done ? 1 : 0}));
        });
    };

    BOOST_TEST((once(true).outcomes == outcomes{"0", "1"}));
    BOOST_TEST((once(false).outcomes == outcomes{"1"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bad_executions)

namespace {

explored::scenario handing_over(std::memory_order store, std::memory_order load) {
    return [=](execution& e) {
        data<int> box{0};
        atomic<int> flag{0};
        e.together(
            [&] {
                box.write(7);
                flag.store(1, store);
            },
            [&] {
                if (flag.load(load) == 1)
                    e.require(box.read() == 7, "the box is empty");
            });
    };
}

} // namespace

BOOST_AUTO_TEST_CASE(data_handed_over_without_an_order_is_a_race) {
    BOOST_TEST(!all_of(handing_over(release, acquire)).bad.has_value());

    const findings found = all_of(handing_over(release, relaxed));

    BOOST_TEST_REQUIRE(found.bad.has_value());
    BOOST_TEST(found.bad->what == "data race: data is read that another thread writes");
    BOOST_TEST(found.bad->trace == "  T1  #1 writes data\n"
                                   "  T1  #2 store, stores 1\n"
                                   "  T2  #2 load, reads 1 of T1\n"
                                   "  T2  #1 reads data\n");
    BOOST_TEST(all_of(handing_over(relaxed, acquire)).bad.has_value());
}

BOOST_AUTO_TEST_CASE(two_that_only_read_data_do_not_race) {
    const findings found = all_of([](execution& e) {
        const data<int> box{7};
        e.together([&] { e.require(box.read() == 7, "first"); },
                   [&] { e.require(box.read() == 7, "second"); });
    });

    BOOST_TEST(!found.bad.has_value());
}

BOOST_AUTO_TEST_CASE(an_atomic_that_is_used_beside_its_construction_is_a_race) {
    const auto shown = [](std::memory_order store) {
        return all_of([=](execution& e) {
            std::unique_ptr<atomic<int>> owner;
            atomic<atomic<int>*> shared{nullptr};
            e.together(
                [&] {
                    owner = std::make_unique<atomic<int>>(7);
                    shared.store(owner.get(), store);
                },
                [&] {
                    if (const atomic<int>* const seen = shared.load(acquire))
                        e.require(seen->load(relaxed) == 7, "not what it was made with");
                });
        });
    };

    BOOST_TEST(!shown(release).bad.has_value());
    BOOST_TEST_REQUIRE(shown(relaxed).bad.has_value());
    BOOST_TEST(shown(relaxed).bad->what ==
               "data race: an atomic is used while another thread constructs it");
}

BOOST_AUTO_TEST_CASE(an_atomic_that_is_used_beside_its_destruction_is_a_race) {
    const auto counted = [](std::memory_order order) {
        return all_of([=](execution& e) {
            auto* const count = new atomic<int>(2);
            const auto leave = [&] {
                if (count->fetch_sub(1, order) == 1)
                    delete count;
            };
            e.together(leave, leave);
        });
    };

    BOOST_TEST(!counted(acq_rel).bad.has_value());
    BOOST_TEST_REQUIRE(counted(acquire).bad.has_value());
    BOOST_TEST(counted(acquire).bad->what ==
               "data race: an atomic is destroyed while another thread uses it");
    BOOST_TEST(counted(release).bad.has_value());
}

BOOST_AUTO_TEST_CASE(an_atomic_that_is_not_there_is_found) {
    const findings found = all_of([](execution& e) {
        e.together([] {
            std::optional<atomic<int>> gone(1);
            const atomic<int>& left = *gone;
            gone.reset();
            (void)left.load(relaxed);
        });
    });

    BOOST_TEST_REQUIRE(found.bad.has_value());
    BOOST_TEST(found.bad->what ==
               "an atomic is used that is not there: a null pointer, or freed memory");
}

BOOST_AUTO_TEST_CASE(a_member_that_two_threads_use_is_a_race_if_one_of_them_writes) {
    const auto used = [](bool writes) {
        return all_of([=](execution& e) {
            explored::member<int> m("m", 1);
            const explored::member<int>& same = m;
            e.together([&] { (void)same.used(); },
                       [&] {
                           if (writes)
                               m.used() = 2;
                           else
                               (void)same.used();
                       });
        });
    };

    BOOST_TEST(!used(false).bad.has_value());
    BOOST_TEST_REQUIRE(used(true).bad.has_value());
    BOOST_TEST(used(true).bad->what.starts_with("data race: data is "));
}

BOOST_AUTO_TEST_CASE(a_member_that_is_used_after_its_destruction_is_found) {
    alignas(explored::member<int>) std::array<std::byte, sizeof(explored::member<int>)> memory{};
    const findings found = all_of([&](execution& e) {
        e.together([&] {
            auto* const m = ::new (memory.data()) explored::member<int>("m", 1);
            m->~member();
            (void)m->used();
        });
    });

    BOOST_TEST_REQUIRE(found.bad.has_value());
    BOOST_TEST(found.bad->what == "data is used after its destruction");
}

BOOST_AUTO_TEST_CASE(a_bit_that_is_cleared_is_the_only_one) {
    const findings found = all_of([](execution& e) {
        atomic<unsigned> x{7};
        e.together([&] { (void)x.fetch_and(~1U, relaxed); },
                   [&] { (void)x.fetch_and(~2U, relaxed); });
        e.require(x.load(relaxed) == 4, "another bit");
    });

    BOOST_TEST(!found.bad.has_value());
}

BOOST_AUTO_TEST_CASE(a_wait_without_a_notification_blocks_for_good) {
    const auto woken = [](bool told) {
        return all_of([=](execution& e) {
            atomic<int> x{0};
            e.together([&] { x.wait(0, acquire); },
                       [&] {
                           x.store(1, release);
                           if (told)
                               x.notify_all();
                       });
        });
    };

    BOOST_TEST(!woken(true).bad.has_value());
    BOOST_TEST_REQUIRE(woken(false).bad.has_value());
    BOOST_TEST(woken(false).bad->what == "all threads are blocked");
}

BOOST_AUTO_TEST_CASE(threads_that_do_not_end_are_found) {
    const findings found = all_of([](execution& e) {
        atomic<int> x{0};
        e.together([&] {
            while (x.load(relaxed) == 0) {
            }
        });
    });

    BOOST_TEST_REQUIRE(found.bad.has_value());
    BOOST_TEST(found.bad->what == "the threads do not end");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(the_search)

BOOST_AUTO_TEST_CASE(the_first_bad_execution_has_as_few_deviations_as_possible) {
    const findings found =
        explore(message_passing(relaxed, relaxed), {.deviations = 0}); // one thread, then the other

    BOOST_TEST((found.outcomes == outcomes{"00", "11"}));
    BOOST_TEST(found.executions == 2U);
}

BOOST_AUTO_TEST_CASE(a_random_walk_of_one_seed_is_always_the_same) {
    const auto walk = [](std::uint64_t seed) {
        std::string all;
        (void)explore(
            [&](execution& e) {
                atomic<int> x{0};
                int seen = -1;
                e.together([&] { x.store(1, relaxed); }, [&] { seen = x.load(relaxed); });
                all += text({seen});
            },
            {.deviations = 0, .random = 64, .seed = seed});
        return all;
    };

    BOOST_TEST(walk(7) == walk(7));
    BOOST_TEST(walk(7) != walk(1000));
}

BOOST_AUTO_TEST_CASE(a_site_is_weakened_alone) {
    const std::vector<explored::site> sites{{"here", 1, release, "the store"},
                                            {"here", 2, acquire, "the load"}};
    const explored::scenario body = [](execution& e) {
        data<int> box{0};
        atomic<int> flag{0};
        e.together(
            [&] {
                box.write(7);
                flag.store(1, {release, 0});
            },
            [&] {
                if (flag.load({acquire, 1}) == 1)
                    (void)box.read();
            });
    };

    const findings as_written = explore(body, {}, sites);

    BOOST_TEST(!as_written.bad.has_value());
    BOOST_TEST((as_written.sites == std::vector<bool>{true, true}));
    BOOST_TEST(explored::weaknesses(sites).size() == 2U);
    for (const explored::weakening& weak : explored::weaknesses(sites)) {
        const findings found = explore(body, {}, sites, weak);
        BOOST_TEST_REQUIRE(found.bad.has_value());
        BOOST_TEST(found.bad->trace.find(sites[weak.site].text) != std::string::npos);
        BOOST_TEST(found.bad->trace.find("<-- relaxed") != std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()
