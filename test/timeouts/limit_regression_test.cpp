// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Fixed defects of limits, one test for each. The name is the promise, the comment describes the
//   defect.

#define BOOST_TEST_MODULE limit_regression
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/interval_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace {

using namespace timeouts;

// ---- handlers that own the memory of their allocator ------------------------------------------------

/// Memory that a handler owns: bytes in use now, and bytes in use when the owner was destroyed.
struct arena {
    int allocated = 0;
    int in_use = 0;
    int in_use_at_end = -1;
};

template <class T>
struct arena_allocator {
    using value_type = T;

    explicit arena_allocator(arena* a) noexcept : from(a) {}
    template <class U>
    arena_allocator(const arena_allocator<U>& other) noexcept : from(other.from) {}

    T* allocate(std::size_t n) {
        T* const p = std::allocator<T>().allocate(n);
        ++from->allocated;
        ++from->in_use;
        return p;
    }
    void deallocate(T* p, std::size_t n) noexcept {
        --from->in_use;
        std::allocator<T>().deallocate(p, n);
    }
    template <class U>
    bool operator==(const arena_allocator<U>& other) const noexcept {
        return from == other.from;
    }

    arena* from;
};

/// A handler whose end is the end of an arena. The test keeps the arena, to check it afterwards.
class owner {
public:
    using allocator_type = arena_allocator<void>;

    owner(arena& a, int& calls) noexcept : arena_(&a), calls_(&calls) {}

    allocator_type get_allocator() const noexcept { return allocator_type(arena_.get()); }
    void operator()(error_code, int = 0) { ++*calls_; }

private:
    struct closing {
        void operator()(arena* a) const noexcept { a->in_use_at_end = a->in_use; }
    };
    std::unique_ptr<arena, closing> arena_;
    int* calls_;
};

/// @param start starts an operation with the handler in the context, to be destroyed there.
template <class Start>
void expect_memory_before_handler(Start start) {
    arena memory;
    int calls = 0;
    {
        asio::io_context context;
        start(context, owner(memory, calls));
    }
    BOOST_TEST(calls == 0);
    BOOST_TEST(memory.allocated != 0);
    BOOST_TEST(memory.in_use_at_end == 0);
    BOOST_TEST(memory.in_use == 0);
}

// The handler was destroyed in its block, together with the arena that it owns; then the block was
// freed in that arena.
BOOST_AUTO_TEST_CASE(the_memory_of_an_operation_is_freed_before_its_handler_is_destroyed_uncalled) {
    using end = void (*)(asio::io_context&, operation&);
    const end ends[] = {
        [](asio::io_context&, operation& op) { op.abandon(); },
        [](asio::io_context&, operation& op) { op.post({}, 7); },
        [](asio::io_context& context, operation& op) {
            manual_clock::advance(context, 10s);
            op.complete({}, 7); // stored, because the limit is queued
        },
    };
    for (const end e : ends)
        for (const bool times_out : {true, false})
            expect_memory_before_handler([&](asio::io_context& context, owner handler) {
                const auto when = manual_clock::now() + 10s;
                operation op(context.get_executor());
                if (times_out)
                    op.async_run(pawl::timeout_at(when, std::move(handler)));
                else
                    op.async_run(pawl::cancel_at(when, std::move(handler)));
                e(context, op);
            });
}

// The same with the block of a wait: the context destroyed the handler, and freed the block by an
// allocator whose arena had been destroyed.
BOOST_AUTO_TEST_CASE(the_memory_of_a_wait_is_freed_before_its_handler_is_destroyed_uncalled) {
    expect_memory_before_handler([](asio::io_context& context, owner handler) {
        pawl::steady_timer timer(context, 1h);
        timer.async_wait(std::move(handler));
    });
    expect_memory_before_handler([](asio::io_context& context, owner handler) {
        manual_timer timer(context, 1s);
        timer.async_wait(std::move(handler));
        manual_clock::advance(context, 1s);
    });
}

// ---- exceptions -------------------------------------------------------------------------------------

// The party that emitted the signal did not leave when emit() threw, which happens when co_spawn()
// finds no memory: the operation completed, and its handler was neither called nor destroyed.
BOOST_AUTO_TEST_CASE(an_exception_of_the_operations_cancellation_handler_loses_no_handler) {
    struct rig {
        asio::io_context context;
        operation op{context.get_executor()};
        asio::cancellation_signal outer;
        outcome o;

        rig() {
            op.at_signal = [] { throw std::bad_alloc(); };
        }
        void start() {
            op.async_run(pawl::timeout_at(manual_clock::now() + 10s,
                                          asio::bind_cancellation_slot(outer.slot(), record(o))));
        }
        void expect(const error_code& said, const error_code& told) {
            BOOST_TEST(op.signals().size() == one);
            BOOST_TEST(o.pending());
            poll(context);
            BOOST_TEST(!context.stopped()); // the operation is pending
            op.complete(said, 7);
            BOOST_TEST(o.ended_with(told, 7), o);
            poll(context);
            BOOST_TEST(context.stopped());
            BOOST_TEST(o.calls == 1);
        }
    };
    BOOST_TEST_CONTEXT("when the limit is due") {
        for (const auto& [said, told] :
             {std::pair{error_code(), error_code()}, {aborted, timed_out}}) {
            rig r;
            r.start();
            manual_clock::advance(r.context, 10s);
            BOOST_CHECK_THROW(r.context.run(), std::bad_alloc);
            r.expect(said, told);
        }
    }
    BOOST_TEST_CONTEXT("when the limit is due before the initiating function returns") {
        rig r;
        r.op.at_start = [&] { pass(r.context, 10s); };
        r.start();
        r.context.restart();
        BOOST_CHECK_THROW(r.context.run(), std::bad_alloc);
        r.expect({}, {});
    }
    BOOST_TEST_CONTEXT("when the caller cancels") {
        rig r;
        r.start();
        BOOST_CHECK_THROW(r.outer.emit(cancellation_type::terminal), std::bad_alloc);
        r.expect({}, {});
    }
}

/// Counts its instances.
struct counted {
    static inline int alive = 0;
    counted() noexcept { ++alive; }
    counted(counted&&) noexcept { ++alive; }
    counted& operator=(counted&&) = delete;
    ~counted() { --alive; }
};

struct no_result : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A type that cannot be made from an int.
struct unwilling_result {
    unwilling_result() = default;
    unwilling_result(int) { throw no_result("no result"); }
};

/// Posts 5 as its result.
template <class Token>
auto async_unwilling(asio::io_context& context, Token&& token) {
    return asio::async_initiate<Token, void(error_code, unwilling_result)>(
        [&context](auto handler) {
            asio::post(context,
                       [h = std::move(handler)]() mutable { std::move(h)(error_code(), 5); });
        },
        token);
}

// The operation had released the limited one before its result was converted; after the exception,
// no party was left to destroy the handler.
BOOST_AUTO_TEST_CASE(an_exception_out_of_the_making_of_a_result_leaks_no_handler) {
    for (const bool limit_is_queued : {false, true}) {
        BOOST_TEST_CONTEXT("the limit is " << (limit_is_queued ? "queued" : "pending")) {
            int calls = 0;
            asio::io_context context;
            async_unwilling(
                context, pawl::timeout_at(
                             manual_clock::now() + 10s,
                             asio::bind_executor(
                                 context, [&calls, c = counted()](
                                              error_code, const unwilling_result&) { ++calls; })));
            BOOST_TEST(counted::alive == 1);
            if (limit_is_queued)
                manual_clock::advance(context, 10s); // behind the result
            BOOST_CHECK_THROW(context.run(), no_result);
            poll(context);
            BOOST_TEST(counted::alive == 0);
            BOOST_TEST(calls == 0);
            BOOST_TEST(context.stopped());
        }
    }
}

// ---- a timer in another context ---------------------------------------------------------------------

/// An operation in one context, under a limit in another.
struct two_contexts {
    /// Ends the context of the limit.
    void end_there() {
        guard.reset();
        limit.reset();
        there.reset();
    }
    /// Stops it when its limit is due, which stays in the queue.
    void stop_there_at_the_limit() {
        guard.emplace(*there, 1s);
        guard->async_wait([this](error_code) { there->stop(); });
    }

    asio::io_context here;
    std::optional<asio::io_context> there{std::in_place};
    std::optional<manual_timer> guard;
    std::optional<manual_timer> limit{std::in_place, *there};
    outcome o;
};

// The operation stores its result for a due limit whose context has been stopped. When that context
// was destroyed, the result was destroyed with it, although the handler could still have been
// called. On Windows the limit does not stay: after stop(), run() still handles what is in the
// port.
#if defined(BOOST_ASIO_HAS_IOCP)
constexpr bool stop_leaves_the_queue = false;
#else
constexpr bool stop_leaves_the_queue = true;
#endif
BOOST_FIXTURE_TEST_CASE(a_handler_is_called_on_its_own_context_when_that_of_a_due_limit_has_gone,
                        two_contexts, *boost::unit_test::enable_if<stop_leaves_the_queue>()) {
    operation op(here.get_executor());
    stop_there_at_the_limit();
    op.async_run(pawl::timeout(*limit, 1s, asio::bind_executor(here, record(o))));
    manual_clock::advance(*there, 1s);
    there->run();
    BOOST_TEST(there->stopped());

    op.complete({}, 7);
    poll(here);
    BOOST_TEST(o.pending());
    BOOST_TEST(op.signals().empty());

    end_there();
    BOOST_TEST(o.pending()); // not within the destructor of a context
    poll(here);
    BOOST_TEST(o.ended_with({}, 7), o);
    BOOST_TEST(here.stopped());
}

// The executor of such a handler can only dispatch.
BOOST_FIXTURE_TEST_CASE(a_type_erased_handler_is_called_when_the_context_of_a_due_limit_has_gone,
                        two_contexts, *boost::unit_test::enable_if<stop_leaves_the_queue>()) {
    manual_timer op(here, 2s);
    stop_there_at_the_limit();
    op.async_wait(pawl::timeout(
        *limit, 1s,
        asio::any_completion_handler<void(error_code)>(asio::bind_executor(here, record(o)))));
    manual_clock::advance(*there, 1s);
    there->run();
    pass(here, 1s);
    BOOST_TEST(o.pending());

    end_there();
    BOOST_TEST(o.pending());
    poll(here);
    BOOST_TEST(o.ended_with({}), o);
}

// The same, but then the caller cancels. The handler was called from the signal, and again from the
// queued function, which was in freed memory.
BOOST_FIXTURE_TEST_CASE(P3_a_signal_does_not_overtake_a_result_that_is_on_its_way_to_its_context,
                        two_contexts) {
    asio::cancellation_signal signal;
    operation op(here.get_executor());
    op.async_run(pawl::timeout(
        *limit, 1s,
        asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(here, record(o)))));
    manual_clock::advance(*there, 1s);
    op.complete({}, 7);
    poll(here);
    end_there();
    BOOST_TEST(o.pending());

    signal.emit(asio::cancellation_type::all);
    BOOST_TEST(o.pending());
    BOOST_TEST(op.signals().empty());

    poll(here);
    BOOST_TEST(o.ended_with({}, 7), o);
    BOOST_TEST(here.stopped());
}

// The limit found that the operation was being started, and left the signal to the initiating
// function, which threw. It kept its handler, which no longer had a limit.
BOOST_AUTO_TEST_CASE(
    P2_a_limit_that_fires_in_an_initiation_that_throws_cancels_what_that_has_kept) {
    asio::io_context context;
    manual_timer limit(context);
    operation op(context.get_executor(), operation::obedience::completes_in_the_signal, aborted, 5);
    op.at_start = [&] {
        pass(context, 1s);
        throw std::runtime_error("mine");
    };
    outcome o;
    BOOST_CHECK_THROW(op.async_run(pawl::timeout(limit, 1s, record(o))), std::runtime_error);
    BOOST_TEST(o.pending());
    BOOST_TEST(op.signals().empty()); // not within the initiating function

    poll(context);
    BOOST_TEST(op.signals().size() == one);
    BOOST_TEST(o.ended_with(timed_out, 5), o);
    BOOST_TEST(context.stopped());
}

// The signal destroys the timer and its context, before the operation completes in it.
BOOST_FIXTURE_TEST_CASE(an_operation_does_not_touch_a_limit_that_has_fired_and_gone, two_contexts) {
    operation op(here.get_executor(), operation::obedience::completes_in_the_signal, aborted, 5);
    op.at_signal = [&] { end_there(); };
    op.async_run(pawl::timeout(*limit, 1s, asio::bind_executor(here, record(o))));

    pass(*there, 1s);
    poll(here);

    BOOST_TEST(!there);
    BOOST_TEST(op.signals().size() == one);
    BOOST_TEST(o.ended_with(timed_out, 5), o);
    BOOST_TEST(here.stopped());
}

// ---- durations --------------------------------------------------------------------------------------

// NaN is neither more than the largest duration nor less than the smallest. It was cast to an
// integer, which is undefined, and cancelled operations at once.
BOOST_AUTO_TEST_CASE(a_duration_that_is_not_a_number_is_refused_and_changes_nothing) {
    const std::chrono::duration<float> nan(std::numeric_limits<float>::quiet_NaN());
    asio::io_context context;
    manual_timer timer(context, 1h);
    const auto expiry = timer.expiry();
    outcome o;
    timer.async_wait(record(o));
    const auto refused = [&](auto call) { BOOST_CHECK_THROW((void)call(), std::invalid_argument); };
    refused([&] { return timer.expires_after(nan); });
    refused([&] { return timer.rearm_after(nan); });
    refused([&] { return timer.expires_within(1s, nan); });
    refused([&] { return manual_timer(context, nan).expiry(); });
    refused([&] { return pawl::timeout(timer, nan); });
    refused([&] { return pawl::cancel_after(nan); });
    refused([&] { return pawl::interval_timer(context, nan).period(); });
    refused([&] { return pawl::stream_limits{.idle = nan}.idle; });
    poll(context);
    BOOST_TEST(o.pending());
    BOOST_TEST((timer.expiry() == expiry));
}

BOOST_AUTO_TEST_CASE(durations_that_the_clock_cannot_hold_saturate) {
    using std::chrono::hours;
    using never = manual_clock::time_point;
    asio::io_context context;
    manual_timer timer(context, hours::max());
    BOOST_TEST((timer.expiry() == never::max()));
    outcome o;
    timer.async_wait(record(o));
    BOOST_TEST(timer.rearm_after(hours::max()) == one);
    BOOST_TEST((timer.expiry() == never::max()));
    BOOST_TEST(timer.rearm_after(std::chrono::duration<double>(1e300)) == one);
    BOOST_TEST((timer.expiry() == never::max()));
    pass(context, 24h * 365);
    BOOST_TEST(o.pending());
    BOOST_TEST(timer.rearm_after(std::chrono::duration<float>(0.5F)) == one);
    BOOST_TEST((timer.expiry() == manual_clock::now() + 500ms));
    pass(context, 499ms);
    BOOST_TEST(o.pending());
    BOOST_TEST(timer.rearm_after(hours::min()) == one);
    pass(context, 0s);
    BOOST_TEST(o.ended_with({}));

    pawl::basic_interval_timer<manual_clock> ticks(context, manual_clock::now(), hours::max());
    BOOST_TEST((ticks.period() == manual_clock::duration::max()));
    ticks.reset_after(hours::max());
    BOOST_TEST((ticks.next_tick() == never::max()));
    const pawl::stream_limits limits{.idle = hours::max(), .read = 1min, .write = hours::min()};
    BOOST_TEST((limits.idle == pawl::stream_limits::none));
    BOOST_TEST((limits.read == 60s));
    BOOST_TEST((limits.write < 0s));
    pawl::tcp_stream stream(context);
    stream.expires_after(hours::max());
}

BOOST_AUTO_TEST_CASE(a_duration_below_the_range_of_the_clock_is_the_least_of_that) {
    using std::chrono::hours;
    using std::chrono::nanoseconds;
    BOOST_TEST((pawl::detail::saturating_cast<nanoseconds>(hours::min()) == nanoseconds::min()));
}

// ---- streams ----------------------------------------------------------------------------------------

/// A layer whose operations are pending until they are cancelled, and then complete in the signal.
struct obedient_layer {
    using executor_type = asio::any_io_executor;
    using pending_operation = scripted_operation<error_code, std::size_t>;

    explicit obedient_layer(const executor_type& ex) : executor(ex) {}

    executor_type get_executor() const noexcept { return executor; }
    /// Destroys the handler of a read of no bytes uncalled.
    template <class Buffers, class Token>
    void async_read_some(const Buffers& buffers, Token&& token) {
        if (asio::buffer_size(buffers) == 0) {
            const auto dropped = std::forward<Token>(token);
            BOOST_TEST(!asio::get_associated_cancellation_slot(dropped).is_connected());
        } else {
            reader->async_run(std::forward<Token>(token));
        }
    }
    template <class Buffers, class Token>
    auto async_write_some(const Buffers&, Token&& token) {
        return writer->async_run(std::forward<Token>(token));
    }
    void close() { ++closes; }

    std::unique_ptr<pending_operation> make() const {
        return std::make_unique<pending_operation>(
            executor, pending_operation::obedience::completes_in_the_signal, aborted, none);
    }

    executor_type executor;
    std::unique_ptr<pending_operation> reader = make();
    std::unique_ptr<pending_operation> writer = make();
    int closes = 0;
};

/// A layer that reports how it was closed.
struct reporting_layer : obedient_layer {
    using obedient_layer::obedient_layer;
    void close(error_code& ec) {
        obedient_layer::close();
        ec = asio::error::not_connected;
    }
};

/// A stream on such a layer.
template <class Layer>
struct stream_on {
    explicit stream_on(const pawl::stream_limits& limits = {}) { stream.set_limits(limits); }

    template <class Token>
    void start_read(Token token) {
        stream.async_read_some(asio::buffer(data), std::move(token));
    }
    template <class Token>
    void start_write(Token token) {
        stream.async_write_some(asio::buffer(data), std::move(token));
    }

    asio::io_context context;
    pawl::timeout_stream<Layer, manual_clock> stream{context.get_executor()};
    Layer& layer = stream.next_layer();
    std::array<char, 4> data{};
    outcome read;
    outcome write;
};
using layered = stream_on<obedient_layer>;
using layers = std::tuple<obedient_layer, reporting_layer>;

pawl::stream_limits cancelling(pawl::stream_limits limits) {
    limits.action = pawl::on_limit::cancel;
    limits.report = pawl::limit_error::timed_out;
    return limits;
}

// Read and write were due together. The read completed inline, and its handler ended the write. The
// write was ended a second time, and the next one was left without a limit.
BOOST_AUTO_TEST_CASE(a_write_keeps_its_limit_when_a_handler_has_ended_the_one_that_was_due_before) {
    layered s(cancelling({.read = 10s, .write = 10s}));
    error_code read;
    error_code first;
    s.start_read([&](error_code ec, std::size_t) {
        read = ec;
        s.stream.cancel();
    });
    s.start_write([&](error_code ec, std::size_t) {
        first = ec;
        asio::post(s.context, [&] { s.start_write(record(s.write)); });
    });
    pass(s.context, 10s);
    BOOST_TEST(read == timed_out);
    BOOST_TEST(first == aborted);
    BOOST_TEST(s.layer.writer->signals().size() == one); // that of cancel()
    BOOST_TEST(s.write.pending());
    BOOST_TEST(s.layer.writer->started() == 2);
    pass(s.context, 10s);
    BOOST_TEST(s.write.ended_with(timed_out), s.write);
    if (s.write.pending())
        s.layer.writer->complete(asio::error::eof, none);
    poll(s.context);
    BOOST_TEST(s.context.stopped());
}

// A layer completes inline in the signal of a limit, and the handler throws, out of run(). The other
// limits were never looked at again.
BOOST_AUTO_TEST_CASE(a_handler_that_throws_in_the_signal_of_a_limit_costs_no_other_limit) {
    struct thrown {};
    layered s(cancelling({.read = 10s, .write = 20s}));
    s.start_read([](error_code, std::size_t) { throw thrown(); });
    s.start_write(record(s.write));
    BOOST_CHECK_THROW(pass(s.context, 10s), thrown);
    BOOST_TEST(s.write.pending());
    pass(s.context, 10s);
    BOOST_TEST(s.write.ended_with(timed_out), s.write);
}

BOOST_AUTO_TEST_CASE(a_layer_that_does_not_tell_whether_it_is_open_is_idle_until_it_is_closed) {
    layered s({.idle = 10s, .report = pawl::limit_error::timed_out});
    pass(s.context, 10s - 1ns);
    BOOST_TEST(s.layer.closes == 0);
    pass(s.context, 1ns);
    BOOST_TEST(s.layer.closes == 1);
    pass(s.context, 1h);
    BOOST_TEST(s.layer.closes == 1);
    s.start_read(record(s.read));
    poll(s.context);
    BOOST_TEST(s.read.ended_with(timed_out), s.read);
}

BOOST_AUTO_TEST_CASE(a_transfer_that_succeeds_in_spite_of_its_limit_keeps_its_result) {
    layered s(cancelling({.read = 10s}));
    s.layer.reader = std::make_unique<obedient_layer::pending_operation>(s.context.get_executor());
    s.start_read(record(s.read));
    pass(s.context, 10s); // the layer ignores it

    s.layer.reader->complete({}, 3);

    BOOST_TEST(s.read.ended_with({}, 3), s.read);
}

BOOST_AUTO_TEST_CASE(after_a_transfer_that_was_abandoned_comes_another) {
    layered s({.read = 10s});
    s.start_read([](error_code, std::size_t) { BOOST_ERROR("called"); });
    s.layer.reader->abandon();

    s.start_read(record(s.read));
    s.layer.reader->complete({}, 3);

    BOOST_TEST(s.read.ended_with({}, 3), s.read);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_limit_closes_layers_of_each_kind, Layer, layers) {
    stream_on<Layer> s({.read = 10s});
    s.start_read(record(s.read));
    pass(s.context, 10s);
    BOOST_TEST(s.layer.closes == 1);
    s.layer.reader->complete(aborted, none); // not by the signal: its layer is closed
    BOOST_TEST(s.read.ended_with(boost::beast::error::timeout), s.read);
}

// It can only be cancelled operation by operation.
BOOST_AUTO_TEST_CASE(a_limit_of_a_layer_without_cancel_ends_what_is_pending_and_nothing_else) {
    layered s(cancelling({}));
    outcome second;
    outcome third;
    outcome last;
    s.stream.expires_after(10s);
    s.start_read(record(s.read));
    s.start_write(record(s.write));
    pass(s.context, 10s);
    BOOST_TEST(s.read.ended_with(timed_out), s.read);
    BOOST_TEST(s.write.ended_with(timed_out), s.write);

    s.stream.expires_after(10s);
    s.start_read(record(second));
    pass(s.context, 10s);
    BOOST_TEST(second.ended_with(timed_out), second);
    BOOST_TEST(s.layer.reader->signals().size() == 2u);
    BOOST_TEST(s.layer.writer->signals().size() == one);

    s.stream.expires_never();
    s.start_read(record(third));
    s.start_write(record(last));
    s.stream.cancel();
    BOOST_TEST(third.ended_with(aborted), third);
    BOOST_TEST(last.ended_with(aborted), last);
    BOOST_TEST(s.layer.closes == 0);
}

BOOST_AUTO_TEST_CASE(a_cancellation_after_the_end_of_a_transfer_does_not_reach_the_layer) {
    layered s;
    asio::cancellation_signal stop;
    s.start_read(asio::bind_cancellation_slot(stop.slot(), record(s.read)));
    s.layer.reader->complete({}, 4);

    stop.emit(asio::cancellation_type::terminal);

    BOOST_TEST(s.read.ended_with({}), s.read);
    BOOST_TEST(s.layer.reader->signals().empty());
}

// The read ends inline. Its handler starts a write.
BOOST_AUTO_TEST_CASE(what_a_handler_starts_while_expire_all_ends_limits_is_not_ended_with_them) {
    layered s(cancelling({.read = 10s, .write = 10s}));
    s.start_read([&](error_code, std::size_t) { s.start_write(record(s.write)); });

    pawl::expire_all(s.context);
    poll(s.context);

    BOOST_TEST(s.layer.writer->started() == 1);
    BOOST_TEST(s.write.pending(), s.write);
    pass(s.context, 10s);
    BOOST_TEST(s.write.ended_with(timed_out), s.write);
}

BOOST_AUTO_TEST_CASE(a_read_of_nothing_that_is_abandoned_leaves_another_its_limit) {
    layered s(cancelling({.read = 10s}));
    s.start_read(record(s.read));
    s.stream.async_read_some(asio::mutable_buffer(),
                             [](error_code, std::size_t) { BOOST_ERROR("called"); });

    pass(s.context, 10s);
    BOOST_TEST(s.read.ended_with(timed_out), s.read);
}

// It counted as the caller's cancellation, so the handler did not get the limit's error.
BOOST_AUTO_TEST_CASE(an_emission_that_cancels_nothing_leaves_the_limit_its_verdict) {
    asio::io_context context;
    asio::steady_timer never(context, 1h);
    asio::cancellation_signal signal;
    error_code told;
    never.async_wait(pawl::timeout(
        1ms, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { told = ec; })));

    signal.emit(asio::cancellation_type::none);
    context.run();

    BOOST_TEST((told == pawl::error::timed_out));
}

// It did not compile, because the result had no return_type. beast::ssl_stream declares its
// functions like this.
template <class Token>
BOOST_ASIO_INITFN_RESULT_TYPE(Token, void(error_code))
async_old_style(asio::io_context& context, Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(
        [&context](auto&& handler) {
            asio::post(context, [h = std::forward<decltype(handler)>(handler)]() mutable {
                h(error_code());
            });
        },
        token);
}

BOOST_AUTO_TEST_CASE(a_function_that_is_declared_by_its_return_type_takes_a_limit) {
    asio::io_context context;
    int calls = 0;
    async_old_style(context,
                    pawl::timeout(1h, asio::bind_executor(context.get_executor(),
                                                          [&](error_code ec) { calls += !ec; })));
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            co_await async_old_style(context, pawl::cancel_after(1h, asio::use_awaitable));
            ++calls;
            const auto [ec] = co_await async_old_style(
                context, pawl::timeout(1h, asio::as_tuple(asio::use_awaitable)));
            calls += !ec;
        },
        asio::detached);
    context.run();
    BOOST_TEST(calls == 3);
}

} // namespace
