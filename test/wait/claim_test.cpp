// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The possible lives of function objects that own something: moves, copies, calls of several
//   copies, and the end of all of them uncalled.

#include <pawl/detail/limit/post_result.hpp>
#include <pawl/detail/wait/claim.hpp>

#define BOOST_TEST_MODULE claim
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// The outcome of the owned object.
struct fate {
    std::atomic<int> called{0};
    std::atomic<int> abandoned{0};

    bool is(int c, int a) const { return called == c && abandoned == a; }
};

using call = pawl::detail::deferred_call<std::allocator<void>>;

void note(void* object, bool called) {
    auto& f = *static_cast<fate*>(object);
    ++(called ? f.called : f.abandoned);
}

call call_for(fate& f) { return call(&f, &note, std::allocator<void>()); }

BOOST_AUTO_TEST_CASE(what_is_moved_owns_nothing_any_more) {
    fate f;
    {
        call a = call_for(f);
        const call b = std::move(a);
        a(); // NOLINT: the point is that it does nothing
        BOOST_TEST(f.is(0, 0));
    }
    BOOST_TEST(f.is(0, 1));
}

BOOST_AUTO_TEST_CASE(every_claim_tells_its_object_until_one_has_taken_it) {
    fate f;
    const pawl::detail::claim<fate> a(&f);
    BOOST_TEST(a.get() == &f);
    const pawl::detail::claim<fate> b(a);
    BOOST_TEST(a.get() == &f);
    BOOST_TEST(b.get() == &f);

    BOOST_TEST(b.take() == &f);
    BOOST_TEST(a.get() == nullptr);
    BOOST_TEST(b.get() == nullptr);
    for (const auto* each : {&a, &b})
        each->end([](fate*) { BOOST_ERROR("it was taken"); });
}

BOOST_AUTO_TEST_CASE(P8_to_move_and_to_call_takes_no_memory) {
    fate f;
    const auto before = counted_new::calls.load();

    call a = call_for(f);
    const call b = std::move(a);
    b();

    BOOST_TEST(counted_new::calls.load() == before);
    BOOST_TEST(f.is(1, 0));
    static_assert(sizeof(call) == 2 * sizeof(void*));
}

BOOST_AUTO_TEST_CASE(the_first_copy_that_is_called_is_the_only_one) {
    for (const std::size_t first : {0U, 1U, 2U, 3U}) {
        fate f;
        {
            const call a = call_for(f);
            const call b = a;
            const call c = b;
            const call d = a;
            const std::vector<const call*> all{&a, &b, &c, &d};

            (*all[first])();
            for (const call* each : all)
                (*each)();

            BOOST_TEST(f.is(1, 0));
        }
        BOOST_TEST(f.is(1, 0));
    }
}

BOOST_AUTO_TEST_CASE(the_last_copy_that_ends_uncalled_abandons) {
    fate f;
    auto a = std::make_unique<call>(call_for(f));
    auto b = std::make_unique<call>(*a);
    auto c = std::make_unique<call>(std::move(*b));

    b.reset();
    a.reset();
    BOOST_TEST(f.is(0, 0));
    c.reset();

    BOOST_TEST(f.is(0, 1));
}

BOOST_AUTO_TEST_CASE(a_copy_of_what_was_called_does_nothing) {
    fate f;
    {
        const call alone = call_for(f);
        alone();
        const call copy = alone;
        copy();
        const call another = copy;
        another();
    }

    BOOST_TEST(f.is(1, 0));
}

BOOST_AUTO_TEST_CASE(a_copy_for_which_there_is_no_memory_leaves_all_as_it_was) {
    fate f;
    const call a = call_for(f);

    counted_new::fuse = 0;
    BOOST_CHECK_THROW(call{a}, std::bad_alloc);
    counted_new::fuse = counted_new::never;

    BOOST_TEST(f.is(0, 0));
    a();
    BOOST_TEST(f.is(1, 0));
}

BOOST_AUTO_TEST_CASE(P8_copies_take_one_block_and_leave_none) {
    fate f;
    const auto before = counted_new::live.load();
    {
        const call a = call_for(f);
        const call b = a;
        const call c = b;
        BOOST_TEST(counted_new::live.load() == before + 1);
        c();
    }
    BOOST_TEST(counted_new::live.load() == before);
}

BOOST_AUTO_TEST_CASE(it_can_be_kept_in_a_function_and_be_called_by_a_lambda_that_is_const) {
    fate f;
    const std::function<void()> g = [c = call_for(f)] { c(); };
    const auto copy = g;

    copy();
    g();

    BOOST_TEST(f.is(1, 0));
}

BOOST_AUTO_TEST_CASE(a_claim_knows_its_object_until_a_copy_takes_it) {
    const auto owned = std::make_unique<int>(); // g++ takes a claim on a local variable for a block
    int& object = *owned;
    pawl::detail::claim<int> moved(nullptr);
    moved.reset(&object);
    BOOST_TEST(moved.take() == &object);
    const pawl::detail::claim<int> a(&object);
    const pawl::detail::claim<int> b = a;
    BOOST_TEST(a.get() == &object);
    BOOST_TEST(b.get() == &object);

    BOOST_TEST(b.take() == &object);

    const pawl::detail::claim<int> c = a;
    for (const auto* each : {&a, &b, &c}) {
        BOOST_TEST(each->get() == nullptr);
        each->end([](int*) { BOOST_ERROR("it is taken"); });
    }
}

// Allowed: one call, by any thread; or, without a call, one end.
BOOST_AUTO_TEST_CASE(copies_in_several_threads_are_called_once_or_abandoned_once) {
    constexpr int rounds = 200;
    constexpr int threads = 4;
    std::vector<fate> fates(rounds);
    std::vector<std::vector<call>> calls(threads);
    for (fate& f : fates) {
        const call first = call_for(f);
        for (auto& mine : calls)
            mine.push_back(first);
    }
    std::vector<std::thread> all;
    for (auto& mine : calls)
        all.emplace_back([&mine] {
            for (std::size_t i = 0; i != mine.size(); ++i) {
                const call c = std::move(mine[i]);
                if (i % 2 == 0)
                    c();
            }
        });
    for (auto& t : all)
        t.join();

    for (int i = 0; i != rounds; ++i)
        BOOST_TEST(fates[static_cast<std::size_t>(i)].is(i % 2 == 0 ? 1 : 0, i % 2));
}

} // namespace
