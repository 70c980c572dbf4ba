// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The cancellation slot of an operation under a limit behaves like Asio's, whatever the size of
//   its handler, and whether or not the operation uses it as Asio's.

#include <pawl/detail/limit/inline_signal.hpp>

#define BOOST_TEST_MODULE inline_signal
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "timeouts/timeout_support.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace timeouts {

using pawl::detail::inline_signal;

/// Records the types that it is called with, and counts itself.
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

using small = witness<64>; // exactly fits
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
    signal->emit(cancellation_type::all); // without a listener

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

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slot_of_asio_under_this_type_is_what_it_was, Handler, sizes) {
    asio::cancellation_signal other;
    slot = other.slot();
    BOOST_TEST(slot.is_connected());
    BOOST_TEST(!slot.has_handler());
    BOOST_TEST((slot == other.slot()));
    BOOST_TEST((slot != signal->slot()));

    slot.emplace<Handler>(alive, types);
    BOOST_TEST(slot.has_handler());
    BOOST_TEST(other.slot().has_handler());
    BOOST_TEST(!signal->slot().has_handler());
    other.emit(cancellation_type::partial);
    signal->emit(cancellation_type::terminal);
    BOOST_TEST((types == std::vector{cancellation_type::partial}));
    const asio::cancellation_slot back = slot;
    BOOST_TEST((back == other.slot()));

    slot.clear();
    BOOST_TEST(handlers() == 0);
    BOOST_TEST(!other.slot().has_handler());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- beside slots of Asio's -----------------------------------------------------------------------

/// Results that Asio's signal must give as well, for either slot type.
template <class Signal>
struct two_slots {
    using slot_type = decltype(std::declval<Signal&>().slot());

    std::shared_ptr<int> alive = std::make_shared<int>();
    std::vector<cancellation_type_t> first;
    std::vector<cancellation_type_t> second;
    Signal signal;
    slot_type slot = signal.slot();

    long handlers() const { return alive.use_count() - 1; }
    /// Number of calls of each of the two handlers in one emission.
    std::pair<std::size_t, std::size_t> emit() {
        first.clear();
        second.clear();
        signal.emit(cancellation_type::terminal);
        return {first.size(), second.size()};
    }
};

using pair = std::pair<std::size_t, std::size_t>;

template <class Signal, class First, class Second>
void expect_one_place() {
    {
        two_slots<Signal> s;
        s.slot.template emplace<First>(s.alive, s.first);
        const asio::cancellation_slot kept = s.slot; // only kept
        BOOST_TEST(kept.has_handler());
        BOOST_TEST(!(s.slot == asio::cancellation_slot()));
        BOOST_TEST((s.emit() == pair{1, 0}));
        BOOST_TEST(s.handlers() == 1);
    }
    {
        two_slots<Signal> s;
        s.slot.template emplace<First>(s.alive, s.first);
        asio::cancellation_slot kept = s.slot;
        kept.clear();
        BOOST_TEST(s.handlers() == 0);
        BOOST_TEST(!s.slot.has_handler());
        BOOST_TEST((s.emit() == pair{0, 0}));
    }
    {
        two_slots<Signal> s;
        asio::cancellation_slot kept = s.slot; // like Beast's saved_handler
        s.slot.template emplace<First>(s.alive, s.first);
        BOOST_TEST(kept.has_handler());
        BOOST_TEST((s.emit() == pair{1, 0}));
        kept.clear();
        BOOST_TEST(s.handlers() == 0);
        BOOST_TEST((s.emit() == pair{0, 0}));
        s.slot.template emplace<Second>(s.alive, s.second);
        BOOST_TEST((s.emit() == pair{0, 1}));
        s.slot.clear();
        BOOST_TEST(!kept.has_handler());
        BOOST_TEST(s.handlers() == 0);
    }
    {
        two_slots<Signal> s;
        s.slot.template emplace<First>(s.alive, s.first);
        asio::cancellation_slot kept = s.slot;
        kept.template emplace<Second>(s.alive, s.second);
        BOOST_TEST(s.handlers() == 1);
        BOOST_TEST((s.emit() == pair{0, 1}));
        s.slot.template emplace<First>(s.alive, s.first);
        BOOST_TEST(s.handlers() == 1);
        BOOST_TEST((s.emit() == pair{1, 0}));
        kept.template emplace<Second>(s.alive, s.second);
        BOOST_TEST(s.handlers() == 1);
        kept.clear();
        BOOST_TEST(s.handlers() == 0);
        BOOST_TEST((s.emit() == pair{0, 0}));
    }
    std::shared_ptr<int> alive;
    {
        two_slots<Signal> s;
        alive = s.alive;
        s.slot.template emplace<First>(s.alive, s.first);
        const asio::cancellation_slot kept = s.slot;
        BOOST_TEST(kept.is_connected());
    }
    BOOST_TEST(alive.use_count() == 1);
}

/// While it is called, it clears the slot, replaces itself, uses the slot as one of Asio's, or
/// emits again.
template <class Signal, std::size_t Bytes>
void expect_that_it_may_be_used_in_an_emission() {
    enum class act { clears, replaces, converts, emits };
    for (const act what : {act::clears, act::replaces, act::converts, act::emits}) {
        for (const bool converted : {false, true}) {
            Signal signal;
            int calls = 0;
            int later = 0;
            auto slot = signal.slot();
            if (converted)
                BOOST_TEST(asio::cancellation_slot(slot).is_connected());
            slot.assign([&, rest = std::array<char, Bytes>{}](cancellation_type_t) mutable {
                rest[0] = 'x';
                // Clearing the slot has destroyed its captures.
                int& count = calls;
                int& next = later;
                Signal& again = signal;
                if (++count > 1)
                    return;
                switch (auto own = again.slot(); what) {
                case act::clears:
                    own.clear();
                    break;
                case act::replaces:
                    own.assign([&next](cancellation_type_t) { ++next; });
                    break;
                case act::converts:
                    BOOST_TEST(asio::cancellation_slot(own).has_handler());
                    break;
                case act::emits:
                    again.emit(cancellation_type::terminal);
                    break;
                }
            });
            signal.emit(cancellation_type::terminal);
            BOOST_TEST(calls == (what == act::emits ? 2 : 1));
            signal.emit(cancellation_type::terminal);
            BOOST_TEST(later == (what == act::replaces ? 1 : 0));
            BOOST_TEST(slot.has_handler() == (what != act::clears));
        }
    }
}

using signals = boost::mpl::list<asio::cancellation_signal, inline_signal>;

BOOST_AUTO_TEST_CASE_TEMPLATE(slots_of_both_kinds_are_of_one_place, Signal, signals) {
    expect_one_place<Signal, small, small>();
    expect_one_place<Signal, small, large>();
    expect_one_place<Signal, large, small>();
    expect_one_place<Signal, huge, large>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_use_its_slot_while_it_is_called, Signal, signals) {
    expect_that_it_may_be_used_in_an_emission<Signal, 8>();
    expect_that_it_may_be_used_in_an_emission<Signal, 400>();
}

// ---- operations -------------------------------------------------------------------------------------

/// Completes when it is cancelled, and not before.
template <class Slot, std::size_t Bytes>
struct waiting {
    template <class CompletionHandler>
    struct canceller {
        void operator()(cancellation_type_t) {
            const auto keep = std::move(handler); // this may be destroyed in the upcall
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

/// A handler behind a filter, as in Boost.MQTT5: the slot is that of the filter, and its type is
/// that of the handler's own slot.
template <class Handler>
struct filtered {
    using cancellation_slot_type = asio::associated_cancellation_slot_t<Handler>;
    cancellation_slot_type get_cancellation_slot() const noexcept { return state->slot(); }
    void operator()(error_code ec, int n) { std::move (*handler)(ec, n); }

    std::shared_ptr<Handler> handler;
    std::shared_ptr<asio::cancellation_state> state;
};

BOOST_AUTO_TEST_CASE(an_operation_that_filters_cancellations_is_cancelled_by_the_limit) {
    for (const bool lets_it_through : {true, false}) {
        asio::io_context context;
        manual_timer timer(context);
        outcome o;
        auto token = pawl::timeout(timer, 1s, record(o));
        asio::async_initiate<decltype(token), void(error_code, int)>(
            [&](auto handler) {
                using handler_type = decltype(handler);
                const auto shared = std::make_shared<handler_type>(std::move(handler));
                const asio::cancellation_slot outer =
                    asio::get_associated_cancellation_slot(*shared);
                const auto filter =
                    lets_it_through ? cancellation_type::terminal : cancellation_type::total;
                const auto state = std::make_shared<asio::cancellation_state>(
                    outer, [filter](cancellation_type_t type) { return type & filter; });
                waiting<asio::cancellation_slot, 8>{}(filtered<handler_type>{shared, state});
                if (!lets_it_through)
                    asio::post(context, [shared] { std::move (*shared)(error_code(), 2); });
            },
            token);
        pass(context, 1s);
        if (lets_it_through)
            BOOST_TEST(o.ended_with(timed_out, 1));
        else
            BOOST_TEST(o.ended_with(error_code(), 2));
    }
}

BOOST_AUTO_TEST_CASE(operations_with_large_cancellation_handlers_are_cancelled_by_the_limit) {
    expect_that_the_limit_reaches_it<inline_signal::slot_type, 8>();
    expect_that_the_limit_reaches_it<inline_signal::slot_type, 400>();
}

} // namespace timeouts
