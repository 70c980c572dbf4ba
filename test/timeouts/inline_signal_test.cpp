// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The cancellation slot that an operation under a limit gets: as Asio's, whatever the size of the
//   handler that is put into it, and whether the operation takes it for Asio's or not.

#include <pawl/limit/inline_signal.hpp>

#define BOOST_TEST_MODULE inline_signal
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "timeouts/timeout_support.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace timeouts {

using pawl::detail::inline_signal;

/// Writes down the types it is called with, and counts itself.
template <std::size_t Bytes>
class witness {
public:
    witness(std::shared_ptr<int> alive, std::vector<cancellation_type_t>& types)
        : alive_(std::move(alive)), types_(&types) {
        if (!alive_)
            throw std::invalid_argument("it must be counted");
    }

    void operator()(cancellation_type_t type) { types_->push_back(type); }

private:
    std::shared_ptr<int> alive_;
    std::vector<cancellation_type_t>* types_;
    std::array<char, Bytes - sizeof(std::shared_ptr<int>) - sizeof(void*)> rest_{};
};

using small = witness<64>; // fits just so
using large = witness<72>;
using huge = witness<500>;
using sizes = boost::mpl::list<small, large, huge>;

struct slot_of_a_signal {
    std::shared_ptr<int> alive = std::make_shared<int>();
    std::vector<cancellation_type_t> types;
    std::optional<inline_signal> signal{std::in_place};
    inline_signal::slot_type slot = signal->slot();

    long handlers() const { return alive.use_count() - 1; }
};

BOOST_FIXTURE_TEST_SUITE(the_slot, slot_of_a_signal)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_is_called_until_it_is_cleared, Handler, sizes) {
    BOOST_TEST(slot.is_connected());
    BOOST_TEST(!slot.has_handler());
    signal->emit(cancellation_type::all); // for nobody

    slot.emplace<Handler>(alive, types);
    BOOST_TEST(slot.has_handler());
    signal->emit(cancellation_type::partial);
    signal->emit(cancellation_type::terminal);
    BOOST_TEST((types == std::vector{cancellation_type::partial, cancellation_type::terminal}));

    slot.clear();
    BOOST_TEST(handlers() == 0);
    BOOST_TEST(!slot.has_handler());
    signal->emit(cancellation_type::terminal);
    BOOST_TEST(types.size() == 2u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_signal_takes_its_handler_with_it, Handler, sizes) {
    slot.emplace<Handler>(alive, types);
    BOOST_TEST(handlers() == 1);
    signal.reset();
    BOOST_TEST(handlers() == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_later_handler_replaces_what_was_there, Handler, sizes) {
    std::vector<cancellation_type_t> before;
    const auto replace = [&]<class Earlier>(std::in_place_type_t<Earlier>) {
        before.clear();
        types.clear();
        slot.emplace<Earlier>(alive, before);
        slot.emplace<Handler>(alive, types);
        BOOST_TEST(handlers() == 1);
        signal->emit(cancellation_type::total);
        BOOST_TEST(before.empty());
        BOOST_TEST(types.size() == 1u);
    };
    replace(std::in_place_type<small>);
    replace(std::in_place_type<large>);
    replace(std::in_place_type<huge>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_that_throws_at_birth_leaves_an_empty_slot, Handler, sizes) {
    slot.emplace<small>(alive, types);
    BOOST_CHECK_THROW(slot.emplace<Handler>(nullptr, types), std::invalid_argument);
    BOOST_TEST(handlers() == 0);
    BOOST_TEST(!slot.has_handler());
    signal->emit(cancellation_type::all);
    slot.emplace<Handler>(alive, types);
    BOOST_TEST(slot.has_handler());
}

BOOST_AUTO_TEST_CASE(a_function_may_be_assigned) {
    int calls = 0;
    auto function = [&calls, keep = alive](cancellation_type_t) { ++calls; };
    slot.assign(function); // a copy
    BOOST_TEST(handlers() == 2);
    signal->emit(cancellation_type::all);
    slot.assign(std::move(function));
    signal->emit(cancellation_type::all);
    BOOST_TEST(calls == 2);
    BOOST_TEST(handlers() == 1);
}

BOOST_AUTO_TEST_CASE(as_a_slot_of_asio_it_takes_the_last_handler) {
    std::vector<cancellation_type_t> asios;
    slot.emplace<small>(alive, types);
    asio::cancellation_slot of_asio = slot;
    BOOST_TEST(of_asio.is_connected());
    of_asio.emplace<small>(alive, asios);
    BOOST_TEST(handlers() == 1);
    BOOST_TEST(slot.has_handler());
    signal->emit(cancellation_type::terminal);
    BOOST_TEST(types.empty());
    BOOST_TEST(asios.size() == 1u);

    slot.emplace<small>(alive, types);
    BOOST_TEST(handlers() == 1);
    signal->emit(cancellation_type::terminal);
    BOOST_TEST(types.size() == 1u);

    of_asio.emplace<small>(alive, asios); // of the copy from before
    signal->emit(cancellation_type::terminal);
    BOOST_TEST(types.size() == 1u);
    BOOST_TEST(asios.size() == 2u);
    slot.clear();
    BOOST_TEST(handlers() == 0);
    BOOST_TEST(!of_asio.has_handler());
}

BOOST_AUTO_TEST_CASE(a_slot_without_a_signal_is_not_connected) {
    inline_signal::slot_type none_yet;
    BOOST_TEST(!none_yet.is_connected());
    BOOST_TEST(!none_yet.has_handler());
    none_yet.clear();
    const asio::cancellation_slot of_asio = none_yet;
    BOOST_TEST(!of_asio.is_connected());
    BOOST_TEST((none_yet != slot));
    none_yet = slot;
    BOOST_TEST((none_yet == slot));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- operations -------------------------------------------------------------------------------------

/// Completes when it is cancelled, and not before.
template <class Slot, std::size_t Bytes>
struct waiting {
    template <class CompletionHandler>
    struct canceller {
        void operator()(cancellation_type_t) {
            const auto keep = std::move(handler); // this may go with the upcall
            std::move (*keep)(aborted, 1);
        }

        std::shared_ptr<CompletionHandler> handler;
        std::array<char, Bytes> rest{};
    };

    template <class CompletionHandler>
    void operator()(CompletionHandler handler) const {
        auto shared = std::make_shared<CompletionHandler>(std::move(handler));
        Slot slot = asio::get_associated_cancellation_slot(*shared);
        BOOST_REQUIRE(slot.is_connected());
        slot.assign(canceller<CompletionHandler>{std::move(shared)});
    }
};

template <class Slot, std::size_t Bytes>
void expect_that_the_limit_reaches_it() {
    asio::io_context context;
    manual_timer timer(context);
    outcome o;
    auto token = pawl::timeout(timer, 1s, record(o));
    asio::async_initiate<decltype(token), void(error_code, int)>(waiting<Slot, Bytes>(), token);
    pass(context, 1s);
    BOOST_TEST(o.ended_with(timed_out, 1));
}

BOOST_AUTO_TEST_CASE(operations_that_know_slots_of_asio_only_are_cancelled_by_the_limit) {
    expect_that_the_limit_reaches_it<asio::cancellation_slot, 8>();
    expect_that_the_limit_reaches_it<asio::cancellation_slot, 400>();
}

BOOST_AUTO_TEST_CASE(operations_with_large_cancellation_handlers_are_cancelled_by_the_limit) {
    expect_that_the_limit_reaches_it<inline_signal::slot_type, 8>();
    expect_that_the_limit_reaches_it<inline_signal::slot_type, 400>();
}

} // namespace timeouts
