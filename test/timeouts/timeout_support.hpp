// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the tests of limits: an operation that acts when and as the test chooses, and
//   outcomes of operations.
//
// Model
//   Time is manual_clock. A test acts step by step; between two steps the context runs everything
//   that is ready, or nothing, as the test chooses.

#ifndef PAWL_TEST_TIMEOUTS_TIMEOUT_SUPPORT_HPP
#define PAWL_TEST_TIMEOUTS_TIMEOUT_SUPPORT_HPP

#include <pawl/cancel_after.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/timeout.hpp>

#include "../support/seed.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace timeouts {

namespace asio = boost::asio;
using asio::cancellation_type;
using asio::cancellation_type_t;
using boost::system::error_code;
using boost::system::system_error;
using pawl::manual_clock;
using pawl::manual_timer;
using namespace std::chrono_literals;

inline constexpr std::size_t none = 0;
inline constexpr std::size_t one = 1;

inline const error_code aborted = asio::error::operation_aborted;
inline const error_code timed_out = pawl::error::timed_out;

/// How long a test waits for an event before it reports a hang.
inline const auto patience = pawl_test::patience_or(20s);

/// The outcome of one operation.
struct outcome {
    int calls = 0;
    error_code code;
    int value = 0;

    bool pending() const noexcept { return calls == 0; }
    bool ended_with(const error_code& ec) const noexcept { return calls == 1 && code == ec; }
    bool ended_with(const error_code& ec, int v) const noexcept {
        return ended_with(ec) && value == v;
    }

    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        return out << o.calls << " calls, " << o.code.message() << ", " << o.value;
    }
};

/// The error code in an exception; `unknown` for exceptions of other types.
inline error_code code_in(const std::exception_ptr& e) {
    if (!e)
        return {};
    try {
        std::rethrow_exception(e);
    } catch (const system_error& error) {
        return error.code();
    } catch (...) {
        return make_error_code(boost::system::errc::not_supported);
    }
}

/// A move-only completion handler that records its result.
class recorder {
public:
    explicit recorder(outcome& o) noexcept : outcome_(&o) {}
    recorder(recorder&&) noexcept = default;
    recorder& operator=(recorder&&) = delete;

    void operator()(int value) { note({}, value); }
    template <std::integral Number = int> // of bytes, for example
    void operator()(error_code ec, Number value = 0) {
        note(ec, static_cast<int>(value));
    }
    void operator()(const std::exception_ptr& e, int value = 0) { note(code_in(e), value); }

private:
    void note(const error_code& ec, int value) {
        ++outcome_->calls;
        outcome_->code = ec;
        outcome_->value = value;
    }

    outcome* outcome_;
};

inline recorder record(outcome& o) { return recorder(o); }

/// An operation that completes when the test chooses, or in the chosen way when it is cancelled.
/// One at a time.
template <class... Args>
class scripted_operation {
public:
    using result = std::tuple<Args...>;

    /// The reaction to a cancellation signal.
    enum class obedience { ignores, completes_in_the_signal, posts };

    scripted_operation(const asio::any_io_executor& ex, obedience o, Args... when_cancelled)
        : executor_(ex), obedience_(o), when_cancelled_(result(std::move(when_cancelled)...)) {}
    explicit scripted_operation(const asio::any_io_executor& ex) : executor_(ex) {}
    scripted_operation(const scripted_operation&) = delete;
    scripted_operation& operator=(const scripted_operation&) = delete;

    template <class Token>
    auto async_run(Token&& token) {
        return asio::async_initiate<Token, void(Args...)>(initiation{this}, token);
    }

    [[nodiscard]] bool pending() const noexcept { return static_cast<bool>(handler_); }
    /// The cancellation signals that it got.
    [[nodiscard]] const std::vector<cancellation_type_t>& signals() const noexcept {
        return signals_;
    }
    [[nodiscard]] int started() const noexcept { return started_; }

    /// Invokes the handler here.
    void complete(Args... args) {
        auto handler = std::move(handler_);
        handler->call(std::move(args)...);
    }
    void post(Args... args) {
        auto handler = std::move(handler_);
        handler->post(std::move(args)...);
    }
    /// Destroys the handler uncalled.
    void abandon() { handler_.reset(); }

    std::function<void()> at_start = [] {};  ///< called by the initiating function
    std::function<void()> at_signal = [] {}; ///< called by the function in the cancellation slot

private:
    struct any_handler {
        virtual ~any_handler() = default;
        virtual void call(Args... args) = 0;
        virtual void post(Args... args) = 0;
    };

    template <class Handler>
    struct some_handler final : any_handler {
        some_handler(Handler&& h, const asio::any_io_executor& ex)
            : handler(std::move(h)), work(asio::get_associated_executor(handler, ex)) {}

        // Like Asio: the operation's memory is freed before the upcall.
        void call(Args... args) override { std::move(handler)(std::move(args)...); }
        void post(Args... args) override {
            const auto ex = work.get_executor();
            // What asio::post() hands on with a handler that has an executor cannot be copied with
            // Boost 1.90: a work_dispatcher passes itself to a base class as its function.
            if constexpr (std::is_same_v<decltype(ex), const asio::any_io_executor>)
                asio::post(ex, asio::append(std::move(handler), std::move(args)...));
            else
                asio::post(ex, [h = std::move(handler),
                                results = std::make_tuple(std::move(args)...)]() mutable {
                    std::apply(std::move(h), std::move(results));
                });
        }

        Handler handler;
        asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>> work;
    };

    struct initiation {
        using executor_type = asio::any_io_executor;
        executor_type get_executor() const noexcept { return self->executor_; }

        template <class Handler>
        void operator()(Handler&& handler) const {
            self->start(std::forward<Handler>(handler));
        }

        scripted_operation* self;
    };

    template <class Handler>
    void start(Handler&& handler) {
        BOOST_REQUIRE(!handler_);
        ++started_;
        auto slot = asio::get_associated_cancellation_slot(handler);
        handler_ = std::make_unique<some_handler<std::decay_t<Handler>>>(
            std::forward<Handler>(handler), executor_);
        if (slot.is_connected())
            slot.assign([this, there = true](cancellation_type_t type) {
                cancel(type);
                BOOST_TEST(
                    there); // the function in the slot outlives its call, whatever completes in it
            });
        at_start();
    }

    void cancel(cancellation_type_t type) {
        signals_.push_back(type);
        at_signal();
        if (!handler_)
            return;
        if (obedience_ == obedience::completes_in_the_signal)
            std::apply([this](const auto&... args) { complete(args...); }, *when_cancelled_);
        else if (obedience_ == obedience::posts)
            std::apply([this](const auto&... args) { post(args...); }, *when_cancelled_);
    }

    asio::any_io_executor executor_;
    const obedience obedience_ = obedience::ignores;
    const std::optional<result> when_cancelled_;
    std::vector<cancellation_type_t> signals_;
    std::unique_ptr<any_handler> handler_;
    int started_ = 0;
};

using operation = scripted_operation<error_code, int>;

/// Runs everything that is ready; returns the number of units.
inline std::size_t poll(asio::io_context& context) {
    context.restart();
    return context.poll();
}

/// Moves the clock, and runs everything that is due then.
inline void pass(asio::io_context& context, manual_clock::duration d) {
    manual_clock::advance(context, d);
    poll(context);
}

/// run() until it returns by itself (P9); returns the number of units.
inline std::size_t run_to_end(asio::io_context& context) {
    context.restart();
    const std::size_t units = context.run_for(patience);
    BOOST_REQUIRE_MESSAGE(context.stopped(), "P9: run() does not return");
    return units;
}

/// Unit after unit until the condition holds.
template <class Condition>
void run_until(asio::io_context& context, Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        BOOST_REQUIRE_MESSAGE(std::chrono::steady_clock::now() < limit,
                              "what was waited for does not happen");
        context.restart();
        context.run_one_for(5ms);
    }
}

} // namespace timeouts

#endif // PAWL_TEST_TIMEOUTS_TIMEOUT_SUPPORT_HPP
