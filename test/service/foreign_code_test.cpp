// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   P5, no foreign code under a lock: handlers, their moves and destructors, their allocators and
//   their executors use another timer of the same shard whenever they are called, except
//   recursively. With a lock held there they would deadlock, until ctest ends them.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE foreign_code
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using namespace std::chrono_literals;

/// Timers lock nothing in a process that has never had a second thread.
const struct second_thread {
    second_thread() {
        std::thread([] {}).join();
    }
} has_been_there;

/// Where foreign code is called.
enum place { moved, destroyed, called, allocates, frees, executes, copies_executor, places };

/// The actions of foreign code.
class meddler {
public:
    template <class Timer>
    void use(Timer& timer) {
        meddle_ = [](void* t) {
            auto& other = *static_cast<Timer*>(t);
            other.expires_after(1h);
            other.async_wait([](const error_code&) {});
            (void)other.rearm_after(2h);
            (void)other.cancel();
        };
        timer_ = &timer;
    }

    void meddle(place p) {
        if (!timer_ || std::exchange(busy_, true))
            return;
        ++calls_[p];
        meddle_(timer_);
        busy_ = false;
    }

    [[nodiscard]] int calls(place p) const { return calls_[p]; }
    void forget_calls() { std::ranges::fill(calls_, 0); }

private:
    void (*meddle_)(void*) = nullptr;
    void* timer_ = nullptr;
    bool busy_ = false;
    int calls_[places] = {};
};

template <class T>
class meddling_allocator {
public:
    using value_type = T;

    explicit meddling_allocator(meddler& m) noexcept : meddler_(&m) {}
    template <class U>
    meddling_allocator(const meddling_allocator<U>& other) noexcept : meddler_(other.meddler_) {}

    T* allocate(std::size_t n) {
        meddler_->meddle(allocates);
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n) {
        std::allocator<T>().deallocate(memory, n);
        meddler_->meddle(frees);
    }

    template <class U>
    bool operator==(const meddling_allocator<U>& other) const noexcept {
        return meddler_ == other.meddler_;
    }

private:
    template <class>
    friend class meddling_allocator;

    meddler* meddler_;
};

/// The executor of a context that is not native to Pawl, so that waits travel to it.
class meddling_executor {
    using executor = asio::io_context::executor_type;

public:
    meddling_executor(asio::io_context& context, meddler& m) noexcept
        : inner_(context.get_executor()), meddler_(&m) {}
    meddling_executor(const meddling_executor& other) noexcept
        : inner_(other.inner_), meddler_(other.meddler_) {
        meddler_->meddle(copies_executor);
    }
    meddling_executor& operator=(const meddling_executor&) = delete;
    ~meddling_executor() { meddler_->meddle(copies_executor); }

    asio::execution_context& query(asio::execution::context_t) const noexcept {
        return inner_.context();
    }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
        return asio::execution::blocking.never;
    }
    meddling_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }

    template <class Function>
    void execute(Function&& f) const {
        meddler_->meddle(executes);
        asio::require(inner_, asio::execution::blocking.never).execute(std::forward<Function>(f));
    }

    bool operator==(const meddling_executor& other) const noexcept {
        return inner_ == other.inner_ && meddler_ == other.meddler_;
    }

private:
    executor inner_;
    meddler* meddler_;
};

/// A handler whose parts all meddle.
class handler {
public:
    using allocator_type = meddling_allocator<void>;

    handler(meddler& m, std::optional<error_code>& result) : meddler_(&m), result_(&result) {}
    handler(handler&& other) noexcept
        : meddler_(std::exchange(other.meddler_, nullptr)), result_(other.result_) {
        meddler_->meddle(moved);
    }
    handler& operator=(handler&&) = delete;
    ~handler() {
        if (meddler_)
            meddler_->meddle(destroyed);
    }

    [[nodiscard]] allocator_type get_allocator() const noexcept {
        return allocator_type(*meddler_);
    }
    void operator()(const error_code& ec) {
        meddler_->meddle(called);
        *result_ = ec;
    }

private:
    meddler* meddler_;
    std::optional<error_code>* result_;
};

class handler_elsewhere : public handler {
public:
    using executor_type = meddling_executor;

    handler_elsewhere(asio::io_context& context, meddler& m, std::optional<error_code>& result)
        : handler(m, result), executor_(context, m) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

private:
    meddling_executor executor_;
};

using wheel_timer = pawl::manual_timer;
using compact_timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<manual_clock>>>;
using ring_timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<manual_clock>>>;
using timers = boost::mpl::list<wheel_timer, compact_timer, ring_timer>;

/// One timer with a wait of a meddling handler, and another one as the target of the meddling.
template <class Timer>
struct scene {
    explicit scene(bool elsewhere, pawl::shutdown_policy at_the_end = {}) {
        pawl::options o;
        o.precision = 1ms;
        o.on_shutdown = at_the_end;
        o.rings.delays = {{.delay = 10s}, {.delay = 1h}, {.delay = 2h}};
        pawl::make_timer_service<Timer>(*context, o);
        other.emplace(*context);
        timer.emplace(*context, 10s);
        m.use(*other);
        start(elsewhere);
    }

    void start(bool elsewhere) {
        result.reset();
        if (elsewhere)
            timer->async_wait(asio::bind_cancellation_slot(signal.slot(),
                                                           handler_elsewhere(*context, m, result)));
        else
            timer->async_wait(asio::bind_cancellation_slot(signal.slot(), handler(m, result)));
    }

    /// The wait falls due. A ring closes a period first.
    void fall_due() {
        manual_clock::advance(*context, 3h);
        manual_clock::advance(*context, 3h);
    }

    void expect(const error_code& ec) {
        context->restart();
        context->poll();
        BOOST_TEST((result == ec));
        BOOST_TEST(m.calls(called) == 1);
    }

    // In this order, because the timers outlive their context.
    meddler m;
    asio::cancellation_signal signal;
    std::optional<error_code> result;
    std::optional<Timer> other;
    std::optional<Timer> timer;
    std::optional<asio::io_context> context{std::in_place};
};

const error_code aborted = asio::error::operation_aborted;

/// All ways to end the wait.
template <class Timer>
void expect_for_each_end(bool elsewhere) {
    const auto with = [elsewhere](const char* what, const error_code& ec, auto end) {
        BOOST_TEST_CONTEXT(what) {
            scene<Timer> s(elsewhere);
            BOOST_TEST(s.m.calls(moved) >= 1);
            BOOST_TEST(s.m.calls(allocates) >= 1);
            s.m.forget_calls();
            end(s);
            s.expect(ec);
            BOOST_TEST(s.m.calls(moved) >= 1);
            BOOST_TEST(s.m.calls(destroyed) >= 1);
            BOOST_TEST(s.m.calls(frees) >= 1);
            if (elsewhere) {
                BOOST_TEST(s.m.calls(executes) >= 1);
                BOOST_TEST(s.m.calls(copies_executor) >= 1);
            }
        }
    };
    with("expiry", {}, [](auto& s) { s.fall_due(); });
    with("cancel", aborted, [](auto& s) { BOOST_TEST(s.timer->cancel() == 1u); });
    with("cancel_one", aborted, [](auto& s) { BOOST_TEST(s.timer->cancel_one() == 1u); });
    with("expires_after", aborted, [](auto& s) { BOOST_TEST(s.timer->expires_after(1h) == 1u); });
    with("signal", aborted, [](auto& s) { s.signal.emit(asio::cancellation_type::all); });
    with("expire_all", {}, [](auto& s) { BOOST_TEST(pawl::expire_all(*s.context) >= 1u); });
    with("destructor", aborted, [](auto& s) { s.timer.reset(); });
    with("move assignment", aborted, [](auto& s) { *s.timer = Timer(*s.context); });
    with("moved, then cancelled", aborted, [](auto& s) {
        Timer to(std::move(*s.timer));
        to.cancel();
    });
    with("re-armed, then expiry", {}, [](auto& s) {
        BOOST_TEST(s.timer->rearm_after(1h) == 1u);
        s.fall_due();
    });
    with("pulled back when due, then cancelled", aborted, [](auto& s) {
        s.fall_due();
        BOOST_TEST(s.timer->rearm_after(1h) == 1u);
        BOOST_TEST(s.timer->cancel() == 1u);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P5_whatever_ends_a_wait, Timer, timers) {
    expect_for_each_end<Timer>(false);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P5_whatever_ends_a_wait_whose_handler_runs_elsewhere, Timer, timers) {
    expect_for_each_end<Timer>(true);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P5_a_context_that_ends_destroys_handlers, Timer, timers) {
    scene<Timer> s(false);
    s.context.reset();
    BOOST_TEST(!s.result.has_value());
    BOOST_TEST(s.m.calls(destroyed) >= 1);
    BOOST_TEST(s.m.calls(frees) >= 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P5_a_context_that_ends_delivers, Timer, timers) {
    scene<Timer> s(false, pawl::shutdown_policy::deliver);
    s.context.reset();
    BOOST_TEST((s.result == aborted));
    BOOST_TEST(s.m.calls(called) == 1);
}

} // namespace
