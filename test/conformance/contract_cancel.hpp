// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C11-C15, C25, C31, C32: cancellation by member, by new expiry and by slot.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_CANCEL_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_CANCEL_HPP

#include "contract_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <functional>
#include <optional>

namespace contract {

BOOST_AUTO_TEST_SUITE(cancellation)

// ---- C11, C12 -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C11_cancel_returns_the_number_of_waits_it_aborts) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    const auto when = t.expiry();
    std::array<fate, 3> fates{};

    const auto before = t.cancel();
    for (fate& f : fates)
        t.async_wait(record(f));
    const auto first = t.cancel();
    const auto second = t.cancel();
    run_to_end(io);
    const auto after = t.cancel();

    BOOST_TEST(before == none);
    BOOST_TEST(first == 3u);
    BOOST_TEST(second == none);
    BOOST_TEST(after == none);
    BOOST_TEST((t.expiry() == when));
    for (const fate f : fates)
        BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C11_aborted_waits_complete_first_in_first_out_and_never_inline) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::string order;
    for (const char name : {'1', '2', '3', '4'})
        t.async_wait(record(order, name));

    t.cancel();
    const bool inline_call = !order.empty();
    run_to_end(io);

    BOOST_TEST(!inline_call);
    BOOST_TEST(order == "1234");
}

BOOST_AUTO_TEST_CASE(C11_cancel_in_a_handler_does_not_run_others_inline) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::string order;
    t.async_wait(record(order, 'T'));

    asio::post(io, [&] {
        order += '(';
        t.cancel();
        order += ')';
    });
    run_to_end(io);

    BOOST_TEST(order == "()T");
}

BOOST_AUTO_TEST_CASE(C11_an_aborted_wait_queues_behind_what_is_posted_already) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::string order;
    t.async_wait(record(order, 'T'));

    asio::post(io, say(order, 'a'));
    t.cancel();
    asio::post(io, say(order, 'b'));
    run_to_end(io);

    BOOST_TEST(order == "aTb");
}

BOOST_AUTO_TEST_CASE(C11_aborted_waits_and_what_is_posted_between_them_keep_their_order) {
    asio::io_context io;
    tut::steady_timer t(io, 1h), u(io, 1h);
    std::string order;
    t.async_wait(record(order, 'T'));
    u.async_wait(record(order, 'U'));

    t.cancel();
    asio::post(io, say(order, 'b'));
    u.cancel();
    asio::post(io, say(order, 'c'));
    run_to_end(io);

    BOOST_TEST(order == "TbUc");
}

// P6: at most 64 units are queued at a time; each is followed by another one.
BOOST_AUTO_TEST_CASE(C11_what_is_posted_after_very_many_aborted_waits) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::string order;
    for (int i = 0; i < 100; ++i)
        t.async_wait(record(order, 'T'));

    t.cancel();
    asio::post(io, say(order, 'b'));
    run_to_end(io);

    std::string expected(101, 'T');
    expected[under_test_is_pawl ? 64 : 100] = 'b';
    BOOST_TEST(order == expected);
}

BOOST_AUTO_TEST_CASE(C11_a_cancelled_timer_can_be_used_again) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate first{}, second{}, third{};

    t.async_wait(record(first));
    t.cancel();
    t.async_wait(record(second));
    t.expires_after(1ms);
    t.async_wait(record(third));
    run_to_end(io);

    BOOST_TEST(first == fate::aborted);
    BOOST_TEST(second == fate::aborted);
    BOOST_TEST(third == fate::success);
}

BOOST_AUTO_TEST_CASE(C11_a_handler_that_has_begun_is_not_counted) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    std::size_t own = 99;

    t.async_wait([&](error_code code) {
        settle(f, code);
        own = t.cancel();
    });
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(own == none);
}

BOOST_AUTO_TEST_CASE(C12_cancel_one_aborts_the_oldest_wait) {
    asio::io_context io;
    tut::steady_timer t(io, 20ms);
    fate first{}, second{}, third{};
    t.async_wait(record(first));
    t.async_wait(record(second));
    t.async_wait(record(third));

    const auto n = t.cancel_one();
    run_until(io, [&] { return first != fate::pending; });
    const fate second_then = second;
    run_to_end(io);

    BOOST_TEST(n == one);
    BOOST_TEST(first == fate::aborted);
    BOOST_TEST(second_then == fate::pending);
    BOOST_TEST(second == fate::success);
    BOOST_TEST(third == fate::success);
}

BOOST_AUTO_TEST_CASE(C12_cancel_one_goes_on_until_none_is_left) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    const auto when = t.expiry();
    std::string order;
    fate a{}, b{};

    const auto before = t.cancel_one();
    t.async_wait(record(a, order, 'a'));
    t.async_wait(record(b, order, 'b'));
    const auto first = t.cancel_one();
    const auto second = t.cancel_one();
    const auto third = t.cancel_one();
    run_to_end(io);

    BOOST_TEST(before == none);
    BOOST_TEST(first == one);
    BOOST_TEST(second == one);
    BOOST_TEST(third == none);
    BOOST_TEST(order == "ab");
    BOOST_TEST(a == fate::aborted);
    BOOST_TEST(b == fate::aborted);
    BOOST_TEST((t.expiry() == when));
}

// ---- C13 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C13_a_wait_that_has_expired_but_was_not_collected_can_be_cancelled) {
    asio::io_context io;
    tut::steady_timer t(io, past()), u(io, 1ms);
    fate a{}, b{};
    t.async_wait(record(a));
    u.async_wait(record(b));
    std::this_thread::sleep_for(3ms);

    BOOST_TEST(t.cancel() == one);
    BOOST_TEST(u.expires_after(1h) == one);
    run_to_end(io);

    BOOST_TEST(a == fate::aborted);
    BOOST_TEST(b == fate::aborted);
}

// P4, cancel wins until the handler starts. With Asio, cancel has no effect on a queued wait.
inline constexpr std::size_t recalled = by_design(one, none);
inline constexpr fate fate_of_a_recalled_wait = by_design(fate::aborted, fate::success);

/// A timer whose wait has expired and was handed to an executor that has not started its handler.
struct queued_wait {
    asio::io_context io;
    pawl_test::manual_context queue; // needs no rings
    std::optional<tut::steady_timer> timer{std::in_place, io, past()};
    fate result{};

    queued_wait() {
        timer->async_wait(asio::bind_executor(queue.get_executor(), record(result)));
        run_until(io, [this] { return queue.size() == 1; });
        BOOST_REQUIRE(result == fate::pending);
    }

    fate outcome() {
        run_to_end(io);
        queue.poll();
        return result;
    }
};

BOOST_AUTO_TEST_CASE(C13_P4_cancel_of_a_queued_wait) {
    queued_wait q;

    const auto n = q.timer->cancel();
    const auto again = q.timer->cancel();

    BOOST_TEST(n == recalled);
    BOOST_TEST(again == none);
    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_cancel_one_of_a_queued_wait) {
    queued_wait q;

    const auto n = q.timer->cancel_one();
    const auto again = q.timer->cancel_one();

    BOOST_TEST(n == recalled);
    BOOST_TEST(again == none);
    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_expires_at_of_a_queued_wait) {
    queued_wait q;

    const auto n = q.timer->expires_at(future());

    BOOST_TEST(n == recalled);
    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_expires_after_of_a_queued_wait) {
    queued_wait q;

    const auto n = q.timer->expires_after(1h);

    BOOST_TEST(n == recalled);
    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_destruction_of_the_timer_of_a_queued_wait) {
    queued_wait q;

    q.timer.reset();

    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_assignment_to_the_timer_of_a_queued_wait) {
    queued_wait q;

    *q.timer = tut::steady_timer(q.io);

    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_cancel_of_a_queued_wait_that_has_moved) {
    queued_wait q;

    tut::steady_timer target(std::move(*q.timer));
    q.timer.reset();
    const auto n = target.cancel();

    BOOST_TEST(n == recalled);
    BOOST_TEST(q.outcome() == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_emission_to_a_queued_wait) {
    asio::io_context io;
    pawl_test::manual_context queue; // needs no rings
    asio::cancellation_signal signal;
    tut::steady_timer t(io, past());
    fate f{};
    t.async_wait(asio::bind_executor(queue.get_executor(),
                                     asio::bind_cancellation_slot(signal.slot(), record(f))));
    run_until(io, [&] { return queue.size() == 1; });

    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);
    queue.poll();

    BOOST_TEST(f == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_a_queued_wait_that_nobody_cancels_succeeds) {
    queued_wait q;

    BOOST_TEST(q.outcome() == fate::success);
    BOOST_TEST(q.timer->cancel() == none);
}

BOOST_AUTO_TEST_CASE(C13_P4_cancel_in_the_handler_of_a_peer_that_expired_in_the_same_turn) {
    asio::io_context io;
    tut::steady_timer first(io, past() - 1s), second(io, past());
    fate f{}, g{};
    std::size_t n = 99;
    first.async_wait([&](error_code code) {
        settle(f, code);
        n = second.cancel();
    });
    second.async_wait(record(g));

    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(n == recalled);
    BOOST_TEST(g == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_cancel_in_the_first_handler_of_three_waits_of_one_timer) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    fate a{}, b{}, c{};
    std::string order;
    std::size_t n = 99;
    t.async_wait([&](error_code code) {
        settle(a, code);
        n = t.cancel();
        order += 'a';
    });
    t.async_wait(record(b, order, 'b'));
    t.async_wait(record(c, order, 'c'));

    run_to_end(io);

    BOOST_TEST(order == "abc");
    BOOST_TEST(n == by_design<std::size_t>(2, 0));
    BOOST_TEST(a == fate::success);
    BOOST_TEST(b == fate_of_a_recalled_wait);
    BOOST_TEST(c == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_P4_cancel_by_the_handler_ahead_in_the_same_strand) {
    asio::io_context io;
    pawl_test::manual_context queue; // needs no rings
    auto strand = asio::make_strand(queue.get_executor());
    tut::steady_timer t(io, past());
    fate f{};
    std::string order;
    std::size_t n = 99;
    asio::post(strand, [&] {
        n = t.cancel();
        order += 'c';
    });
    t.async_wait(asio::bind_executor(strand, record(f, order, 'T')));
    run_to_end(io); // hands the wait over to the strand
    BOOST_REQUIRE(order == "");

    queue.poll();
    run_to_end(io);
    queue.poll();

    BOOST_TEST(order == "cT");
    BOOST_TEST(n == recalled);
    BOOST_TEST(f == fate_of_a_recalled_wait);
}

BOOST_AUTO_TEST_CASE(C13_an_aborted_wait_that_is_queued_is_not_counted_again) {
    asio::io_context io;
    pawl_test::manual_context queue; // needs no rings
    tut::steady_timer t(io, 1h);
    fate f{};
    t.async_wait(asio::bind_executor(queue.get_executor(), record(f)));

    BOOST_TEST(t.cancel() == one);
    run_until(io, [&] { return queue.size() == 1; });
    BOOST_TEST(t.cancel() == none);
    BOOST_TEST(t.expires_after(1h) == none);
    queue.poll();

    BOOST_TEST(f == fate::aborted);
}

// ---- C14, C15 -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C14_a_new_expiry_aborts_the_waits_and_counts_them) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::array<fate, 3> fates{};

    BOOST_TEST(t.expires_after(2h) == none);
    t.async_wait(record(fates[0]));
    t.async_wait(record(fates[1]));
    BOOST_TEST(t.expires_after(1h) == 2u);
    BOOST_TEST(t.expires_after(1h) == none);
    t.async_wait(record(fates[2]));
    BOOST_TEST(t.expires_at(future()) == one);
    BOOST_TEST(t.expires_at(future()) == none);
    run_to_end(io);

    for (const fate f : fates)
        BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C14_the_same_expiry_aborts_too) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    const auto when = t.expiry();
    fate f{};
    t.async_wait(record(f));

    const auto n = t.expires_at(when);
    run_to_end(io);

    BOOST_TEST(n == one);
    BOOST_TEST((t.expiry() == when));
    BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C14_a_new_expiry_arms_no_wait_again) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate f{};
    t.async_wait(record(f));

    t.expires_after(1ms);
    const auto units = run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    // C30: Pawl leaves its driver armed, in case a new wait follows; its wake-up is a unit.
    if constexpr (under_test_is_pawl)
        BOOST_TEST(units <= 2u);
    else
        BOOST_TEST(units == one);
}

BOOST_AUTO_TEST_CASE(C14_an_idle_timeout_is_moved_again_and_again) {
    asio::io_context io;
    tut::steady_timer t(io);
    int aborted = 0;
    fate last{};

    for (int i = 0; i < 100; ++i) {
        t.expires_after(1h);
        t.async_wait([&](error_code code) { aborted += fate_of(code) == fate::aborted; });
    }
    t.expires_after(1ms);
    t.async_wait(record(last));
    run_to_end(io);

    BOOST_TEST(aborted == 100);
    BOOST_TEST(last == fate::success);
}

BOOST_AUTO_TEST_CASE(C15_expiry_is_what_was_set_last) {
    asio::io_context io;
    const auto when = future();
    tut::steady_timer t(io);

    t.expires_at(when);
    BOOST_TEST((t.expiry() == when));
    const auto before = clock::now();
    t.expires_after(1ms);
    const auto after = clock::now();
    const auto set = t.expiry();
    BOOST_TEST((set >= before + 1ms));
    BOOST_TEST((set <= after + 1ms + delay_is_longer_by));

    fate f{};
    t.async_wait(record(f));
    run_to_end(io);
    BOOST_TEST((t.expiry() == set));
    t.async_wait(ignore);
    t.cancel();
    BOOST_TEST((t.expiry() == set));
    t.cancel_one();
    BOOST_TEST((t.expiry() == set));
    run_to_end(io);
    BOOST_TEST((t.expiry() == set));
}

// ---- C25 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C25_a_wait_ends_with_no_error_or_with_operation_aborted) {
    asio::io_context io;
    tut::steady_timer expired(io, 1ms), cancelled(io, 1h);
    error_code success = asio::error::fault, aborted;

    expired.async_wait([&](error_code code) { success = code; });
    cancelled.async_wait([&](error_code code) { aborted = code; });
    cancelled.cancel();
    run_to_end(io);

    BOOST_TEST(success == error_code());
    BOOST_TEST(!success);
    BOOST_TEST(aborted == error_code(asio::error::operation_aborted));
    BOOST_TEST((aborted.category() == asio::error::get_system_category()));
}

// ---- C31 ----------------------------------------------------------------------------------------

struct slot_result {
    std::array<fate, 3> fates{};
    bool inline_call = false;
};

/// Three waits on one timer; the signal of the second is emitted.
inline slot_result emit_to_the_second_of_three(asio::cancellation_type type) {
    asio::io_context io;
    std::array<asio::cancellation_signal, 3> signals;
    slot_result result;
    tut::steady_timer t(io, 10ms);
    for (std::size_t i = 0; i < 3; ++i)
        t.async_wait(asio::bind_cancellation_slot(signals[i].slot(), record(result.fates[i])));

    signals[1].emit(type);
    result.inline_call = result.fates[1] != fate::pending;
    run_to_end(io);
    return result;
}

inline void check_that_one_was_cancelled(const slot_result& result) {
    BOOST_TEST(!result.inline_call);
    BOOST_TEST(result.fates[0] == fate::success);
    BOOST_TEST(result.fates[1] == fate::aborted);
    BOOST_TEST(result.fates[2] == fate::success);
}

BOOST_AUTO_TEST_CASE(C31_terminal_cancellation_aborts_that_wait_only) {
    check_that_one_was_cancelled(emit_to_the_second_of_three(asio::cancellation_type::terminal));
}

BOOST_AUTO_TEST_CASE(C31_partial_cancellation_aborts_that_wait_only) {
    check_that_one_was_cancelled(emit_to_the_second_of_three(asio::cancellation_type::partial));
}

BOOST_AUTO_TEST_CASE(C31_total_cancellation_aborts_that_wait_only) {
    check_that_one_was_cancelled(emit_to_the_second_of_three(asio::cancellation_type::total));
}

BOOST_AUTO_TEST_CASE(C31_any_mixture_of_types_aborts_that_wait_only) {
    check_that_one_was_cancelled(emit_to_the_second_of_three(asio::cancellation_type::partial |
                                                             asio::cancellation_type::total));
    check_that_one_was_cancelled(emit_to_the_second_of_three(asio::cancellation_type::all));
}

BOOST_AUTO_TEST_CASE(C31_cancellation_of_type_none_does_nothing) {
    const auto result = emit_to_the_second_of_three(asio::cancellation_type::none);

    for (const fate f : result.fates)
        BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C31_the_other_waits_keep_their_order) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 10ms);
    std::string order;
    t.async_wait(record(order, 'A'));
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(order, 'B')));
    t.async_wait(record(order, 'C'));

    signal.emit(asio::cancellation_type::terminal);
    t.async_wait(record(order, 'D'));

    run_to_end(io);
    BOOST_TEST(order == "BACD");
}

BOOST_AUTO_TEST_CASE(C31_emission_in_a_handler_is_not_inline) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1h);
    std::string order;
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(order, 'T')));

    asio::post(io, [&] {
        order += '(';
        signal.emit(asio::cancellation_type::terminal);
        order += ')';
        asio::post(io, say(order, 'b'));
    });
    run_to_end(io);

    BOOST_TEST(order == "()Tb");
}

BOOST_AUTO_TEST_CASE(C31_a_second_emission_and_emission_after_cancel_have_no_effect) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1h);
    fate a{}, b{}, c{};

    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(a)));
    signal.emit(asio::cancellation_type::terminal);
    signal.emit(asio::cancellation_type::terminal);
    BOOST_TEST(t.cancel() == none);
    run_to_end(io);
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(b)));
    BOOST_TEST(t.cancel() == one);
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);
    signal.emit(asio::cancellation_type::terminal);
    t.async_wait(record(c));
    signal.emit(asio::cancellation_type::terminal);
    BOOST_TEST(t.cancel() == one);
    run_to_end(io);

    BOOST_TEST(a == fate::aborted);
    BOOST_TEST(b == fate::aborted);
    BOOST_TEST(c == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C31_emission_before_the_start_has_no_effect) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1ms);
    fate f{};

    signal.emit(asio::cancellation_type::terminal);
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C31_a_handler_is_in_the_slot_while_the_wait_is_pending) {
    asio::io_context io;
    asio::cancellation_signal signal;
    asio::cancellation_slot slot = signal.slot();
    tut::steady_timer t(io, 1h);

    BOOST_TEST(!slot.has_handler());
    t.async_wait(asio::bind_cancellation_slot(slot, ignore));
    BOOST_TEST(slot.has_handler());
    t.cancel();
    run_to_end(io);
}

BOOST_AUTO_TEST_CASE(C31_one_signal_serves_one_wait_after_another) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1h);
    int aborted = 0;
    std::function<void()> again = [&] {
        t.async_wait(asio::bind_cancellation_slot(signal.slot(), [&](error_code code) {
            aborted += fate_of(code) == fate::aborted;
            if (aborted < 5)
                again();
        }));
        asio::post(io, [&] { signal.emit(asio::cancellation_type::total); });
    };

    again();
    run_to_end(io);

    BOOST_TEST(aborted == 5);
}

BOOST_AUTO_TEST_CASE(C31_an_expired_wait_that_was_not_collected_is_aborted_by_its_slot) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, past());
    fate f{}, other{};
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));
    t.async_wait(record(other));

    signal.emit(asio::cancellation_type::partial);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(other == fate::success);
}

// ---- C32 ----------------------------------------------------------------------------------------

// Asio's slot keeps the address of the timer: after a move the emission looks for the wait in the
// wrong place.
BOOST_AUTO_TEST_CASE(C32_the_slot_after_a_move_construction) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer source(io, 5ms);
    fate f{}, other{};
    source.async_wait(record(other));
    source.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));

    tut::steady_timer target(std::move(source));
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(f == by_design(fate::aborted, fate::success));
    BOOST_TEST(other == fate::success);
}

BOOST_AUTO_TEST_CASE(C32_the_slot_after_a_move_assignment) {
    asio::io_context here, there;
    asio::cancellation_signal signal;
    tut::steady_timer source(there, 5ms);
    tut::steady_timer target(here);
    fate f{};
    source.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));

    target = std::move(source);
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(there);

    BOOST_TEST(f == by_design(fate::aborted, fate::success));
}

BOOST_AUTO_TEST_CASE(C32_emission_after_completion_is_harmless) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1ms);
    fate f{}, later{};
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));
    run_to_end(io);

    t.expires_after(1ms);
    t.async_wait(record(later));
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(later == fate::success);
}

BOOST_AUTO_TEST_CASE(C32_emission_in_the_waits_own_handler_is_harmless) {
    asio::io_context io;
    asio::cancellation_signal signal;
    tut::steady_timer t(io, 1ms);
    fate f{};

    t.async_wait(asio::bind_cancellation_slot(signal.slot(), [&](error_code code) {
        settle(f, code);
        signal.emit(asio::cancellation_type::terminal);
    }));
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

// From here on Asio would use freed memory.
#if !(defined(PAWL_UNDER_TEST_ASIO) && PAWL_UNDER_TEST_ASIO)

BOOST_AUTO_TEST_CASE(C32_the_slot_works_when_the_source_of_the_move_is_gone) {
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<tut::steady_timer> source(std::in_place, io, 1h);
    fate f{}, other{};
    source->async_wait(record(other));
    source->async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));

    tut::steady_timer target(std::move(*source));
    source.reset();
    signal.emit(asio::cancellation_type::terminal);
    run_until(io, [&] { return f != fate::pending; });
    const fate other_then = other;
    BOOST_TEST(target.cancel() == one);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(other_then == fate::pending);
    BOOST_TEST(other == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C32_the_slot_works_while_timers_move_in_a_growing_vector) {
    asio::io_context io;
    std::array<asio::cancellation_signal, 10> signals;
    std::array<fate, 10> fates{};
    std::vector<tut::steady_timer> timers;

    for (std::size_t i = 0; i < fates.size(); ++i) {
        timers.emplace_back(io, 1h);
        timers.back().async_wait(asio::bind_cancellation_slot(signals[i].slot(), record(fates[i])));
    }
    for (asio::cancellation_signal& signal : signals)
        signal.emit(asio::cancellation_type::total);
    run_to_end(io);

    for (const fate f : fates)
        BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C32_emission_between_destruction_and_completion_is_harmless) {
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<tut::steady_timer> t(std::in_place, io, 1h);
    fate f{};
    t->async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));

    t.reset();
    signal.emit(asio::cancellation_type::terminal);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C32_emission_after_completion_and_destruction_is_harmless) {
    asio::io_context io;
    asio::cancellation_signal signal;
    std::optional<tut::steady_timer> t(std::in_place, io, 1ms);
    fate f{};
    t->async_wait(asio::bind_cancellation_slot(signal.slot(), record(f)));
    run_to_end(io);

    t.reset();
    signal.emit(asio::cancellation_type::terminal);

    BOOST_TEST(f == fate::success);
    BOOST_TEST(run_to_end(io) == none);
}

BOOST_AUTO_TEST_CASE(C32_emission_after_the_end_of_the_context_is_harmless) {
    handler_log log;
    asio::cancellation_signal completed, pending, aborted;
    {
        asio::io_context io;
        tut::steady_timer t(io, 1ms), u(io, 1h), v(io, 1h);
        t.async_wait(asio::bind_cancellation_slot(completed.slot(), counting_handler(log)));
        run_to_end(io);
        u.async_wait(asio::bind_cancellation_slot(pending.slot(), counting_handler(log)));
        v.async_wait(asio::bind_cancellation_slot(aborted.slot(), counting_handler(log)));
        v.cancel();
    }

    for (asio::cancellation_signal* signal : {&completed, &pending, &aborted})
        signal->emit(asio::cancellation_type::terminal);

    BOOST_TEST(log.calls == 1);
    BOOST_TEST(log.live == 0);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_CANCEL_HPP
