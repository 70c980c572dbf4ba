// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The user's parts of a timer, each in its most awkward legal form: handlers, completion tokens,
//   allocators, executors, contexts and clocks. Every one of them does the minimum that the
//   requirements allow, and counts its uses. The file does not use Pawl, so the same test can run
//   on boost::asio::steady_timer.
//
// Threads
//   Only manual_context, the executors and stepped_clock may be used from several threads. The logs
//   of handlers and allocators belong to tests that run their context in one thread.

#ifndef PAWL_TEST_SUPPORT_ARCHETYPES_HPP
#define PAWL_TEST_SUPPORT_ARCHETYPES_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl_test {

namespace asio = boost::asio;
using boost::system::error_code;

// ---- allocators ---------------------------------------------------------------------------------

struct allocation_log {
    std::size_t allocations = 0;
    std::size_t deallocations = 0;
    bool fail = false; // the next allocations throw std::bad_alloc
    std::size_t most = std::numeric_limits<std::size_t>::max(); // more bytes than this do so, too

    std::size_t live() const noexcept { return allocations - deallocations; }
};

/// The minimal allocator; counts in a log that outlives it.
template <typename T>
class counting_allocator {
public:
    using value_type = T;

    explicit counting_allocator(allocation_log& log) noexcept : log_(&log) {}

    template <typename U>
    counting_allocator(const counting_allocator<U>& other) noexcept : log_(other.log()) {}

    T* allocate(std::size_t n) {
        if (log_->fail || log_->allocations == log_->most)
            throw std::bad_alloc();
        T* const memory = std::allocator<T>().allocate(n);
        ++log_->allocations;
        return memory;
    }

    void deallocate(T* memory, std::size_t n) noexcept {
        ++log_->deallocations;
        std::allocator<T>().deallocate(memory, n);
    }

    allocation_log* log() const noexcept { return log_; }

    template <typename U>
    bool operator==(const counting_allocator<U>& other) const noexcept {
        return log_ == other.log();
    }

private:
    allocation_log* log_;
};

// ---- handlers -----------------------------------------------------------------------------------

struct handler_log {
    int copies = 0;
    int moves = 0;
    int calls = 0;
    int live = 0; // objects that exist at present
    error_code last;
};

/// Copyable handler that counts its copies, moves, calls and living instances.
class counting_handler {
public:
    explicit counting_handler(handler_log& log) noexcept : log_(&log) { ++log_->live; }
    counting_handler(const counting_handler& other) noexcept : log_(other.log_) {
        ++log_->copies;
        ++log_->live;
    }
    counting_handler(counting_handler&& other) noexcept : log_(other.log_) {
        ++log_->moves;
        ++log_->live;
    }
    counting_handler& operator=(const counting_handler&) = delete;
    ~counting_handler() { --log_->live; }

    void operator()(error_code code) const {
        ++log_->calls;
        log_->last = code;
    }

private:
    handler_log* log_;
};

/// The minimal handler: cannot be copied, assigned or default constructed, has no usable operator&,
/// and has its executor, allocator and cancellation slot as members.
class handler_archetype {
public:
    using executor_type = asio::any_io_executor;
    using allocator_type = counting_allocator<void>;
    using cancellation_slot_type = asio::cancellation_slot;

    handler_archetype(handler_log& log, executor_type executor, allocation_log& memory,
                      cancellation_slot_type slot) noexcept
        : inner_(log), executor_(std::move(executor)), allocator_(memory), slot_(slot) {}

    handler_archetype(handler_archetype&&) noexcept = default;
    handler_archetype(const handler_archetype&) = delete;
    handler_archetype& operator=(handler_archetype&&) = delete;
    handler_archetype& operator=(const handler_archetype&) = delete;
    ~handler_archetype() = default;

    void operator&() const = delete;

    void operator()(error_code code) { inner_(code); }

    executor_type get_executor() const noexcept { return executor_; }
    allocator_type get_allocator() const noexcept { return allocator_; }
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

private:
    counting_handler inner_;
    executor_type executor_;
    allocator_type allocator_;
    cancellation_slot_type slot_;
};

// ---- completion tokens --------------------------------------------------------------------------

/// The properties of the initiating function that token_archetype sees.
struct initiation_log {
    handler_log handler;
    bool initiation_has_executor = false;
    std::optional<asio::any_io_executor> executor; // of the initiation object
};

/// A completion token that is not a handler, with a result of its own.
struct token_archetype {
    initiation_log* log;
};

struct token_result {
    initiation_log* log;
};

} // namespace pawl_test

template <typename R, typename... Args>
class boost::asio::async_result<pawl_test::token_archetype, R(Args...)> {
public:
    using return_type = pawl_test::token_result;

    template <typename Initiation, typename... InitArgs>
    static return_type initiate(Initiation&& initiation, pawl_test::token_archetype token,
                                InitArgs&&... args) {
        static_assert(std::is_same_v<R(Args...), void(boost::system::error_code)>);
        using initiation_type = std::decay_t<Initiation>;
        if constexpr (requires { typename initiation_type::executor_type; }) {
            static_assert(noexcept(initiation.get_executor()));
            token.log->initiation_has_executor = true;
            token.log->executor.emplace(initiation.get_executor());
        }
        std::forward<Initiation>(initiation)(pawl_test::counting_handler(token.log->handler),
                                             std::forward<InitArgs>(args)...);
        return {token.log};
    }
};

namespace pawl_test {

// ---- executors and contexts ---------------------------------------------------------------------

struct executor_log {
    std::atomic<int> executed{0};
    std::atomic<int> work{0}; // on_work_started minus on_work_finished, or tracked copies alive
};

/// An executor with properties that is not Asio's: passes everything to another executor and
/// counts.
class property_executor {
public:
    property_executor(asio::any_io_executor inner, executor_log& log) noexcept
        : inner_(std::move(inner)), log_(&log) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept {
        return asio::query(inner_, asio::execution::context);
    }

    template <typename Property>
        requires asio::can_require_v<asio::any_io_executor, Property>
    property_executor require(const Property& property) const {
        return {asio::require(inner_, property), *log_};
    }

    template <typename Property>
        requires asio::can_prefer_v<asio::any_io_executor, Property>
    property_executor prefer(const Property& property) const {
        return {asio::prefer(inner_, property), *log_};
    }

    template <typename F>
    void execute(F&& f) const {
        log_->executed.fetch_add(1, std::memory_order_relaxed);
        inner_.execute(std::forward<F>(f));
    }

    bool operator==(const property_executor& other) const noexcept {
        return inner_ == other.inner_ && log_ == other.log_;
    }

private:
    asio::any_io_executor inner_;
    executor_log* log_;
};

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)

/// An executor like those of the networking TS: without properties.
class ts_executor {
public:
    ts_executor(asio::io_context& context, executor_log& log) noexcept
        : context_(&context), log_(&log) {}

    asio::io_context& context() const noexcept { return *context_; }

    void on_work_started() const noexcept {
        log_->work.fetch_add(1, std::memory_order_relaxed);
        context_->get_executor().on_work_started();
    }

    void on_work_finished() const noexcept {
        log_->work.fetch_sub(1, std::memory_order_relaxed);
        context_->get_executor().on_work_finished();
    }

    template <typename F, typename Allocator>
    void dispatch(F&& f, const Allocator& a) const {
        log_->executed.fetch_add(1, std::memory_order_relaxed);
        context_->get_executor().dispatch(std::forward<F>(f), a);
    }

    template <typename F, typename Allocator>
    void post(F&& f, const Allocator& a) const {
        log_->executed.fetch_add(1, std::memory_order_relaxed);
        context_->get_executor().post(std::forward<F>(f), a);
    }

    template <typename F, typename Allocator>
    void defer(F&& f, const Allocator& a) const {
        log_->executed.fetch_add(1, std::memory_order_relaxed);
        context_->get_executor().defer(std::forward<F>(f), a);
    }

    bool operator==(const ts_executor& other) const noexcept {
        return context_ == other.context_ && log_ == other.log_;
    }
    bool operator!=(const ts_executor& other) const noexcept { return !(*this == other); }

private:
    asio::io_context* context_;
    executor_log* log_;
};

#endif

namespace detail {

struct task {
    virtual ~task() = default;
    virtual void run() = 0;
};

template <typename F>
struct task_of final : task {
    explicit task_of(F&& f) : function(std::move(f)) {}
    explicit task_of(const F& f) : function(f) {}
    void run() override { std::move(function)(); }
    F function;
};

template <typename F>
std::unique_ptr<task> make_task(F&& f) {
    return std::make_unique<task_of<std::decay_t<F>>>(std::forward<F>(f));
}

} // namespace detail

/// A user-defined execution context: a queue that runs only on request. A function in it has been
/// handed over but has not started, for as long as the test likes.
class manual_context : public asio::execution_context {
public:
    class executor_type {
    public:
        executor_type(manual_context& context, bool tracked = false) noexcept
            : context_(&context), tracked_(tracked) {
            count(+1);
        }
        executor_type(const executor_type& other) noexcept
            : executor_type(*other.context_, other.tracked_) {}
        executor_type& operator=(const executor_type& other) noexcept {
            other.count(+1);
            count(-1);
            context_ = other.context_;
            tracked_ = other.tracked_;
            return *this;
        }
        ~executor_type() { count(-1); }

        manual_context& query(asio::execution::context_t) const noexcept { return *context_; }
        static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
            return asio::execution::blocking.never;
        }
        executor_type require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
        executor_type require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
            return {*context_, true};
        }
        executor_type require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
            return {*context_, false};
        }

        template <typename F>
        void execute(F&& f) const {
            context_->push(detail::make_task(std::forward<F>(f)));
        }

        bool operator==(const executor_type& other) const noexcept {
            return context_ == other.context_ && tracked_ == other.tracked_;
        }

    private:
        void count(int n) const noexcept {
            if (tracked_)
                context_->work_.fetch_add(n, std::memory_order_relaxed);
        }

        manual_context* context_;
        bool tracked_;
    };

    manual_context() = default;
    manual_context(const manual_context&) = delete;
    manual_context& operator=(const manual_context&) = delete;

    ~manual_context() {
        shutdown();
        clear();
        destroy();
    }

    executor_type get_executor() noexcept { return {*this}; }

    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return queue_.size();
    }

    /// The number of living tracked copies of the executor.
    int work() const noexcept { return work_.load(std::memory_order_relaxed); }

    /// Runs the queue, including new arrivals.
    std::size_t poll() {
        std::size_t n = 0;
        while (run_one_for(std::chrono::seconds(0)))
            ++n;
        return n;
    }

    bool run_one_for(std::chrono::steady_clock::duration patience) {
        std::unique_lock lock(mutex_);
        if (!arrived_.wait_for(lock, patience, [this] { return !queue_.empty(); }))
            return false;
        const std::unique_ptr<detail::task> next = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        next->run();
        return true;
    }

private:
    void push(std::unique_ptr<detail::task> t) {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(t));
        arrived_.notify_one();
    }

    void clear() {
        std::deque<std::unique_ptr<detail::task>> doomed; // destroyed unlocked
        const std::lock_guard lock(mutex_);
        doomed.swap(queue_);
    }

    mutable std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::unique_ptr<detail::task>> queue_;
    std::atomic<int> work_{0};
};

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)

/// A context whose TS executor gives each handler a priority; the application runs the queue on
/// request.
class priority_context : public asio::execution_context {
public:
    class executor_type {
    public:
        executor_type(priority_context& context, int priority) noexcept
            : context_(&context), priority_(priority) {}

        priority_context& context() const noexcept { return *context_; }
        void on_work_started() const noexcept {}
        void on_work_finished() const noexcept {}

        template <typename F, typename Allocator>
        void dispatch(F&& f, const Allocator&) const {
            context_->add(priority_, detail::make_task(std::forward<F>(f)));
        }
        template <typename F, typename Allocator>
        void post(F&& f, const Allocator&) const {
            context_->add(priority_, detail::make_task(std::forward<F>(f)));
        }
        template <typename F, typename Allocator>
        void defer(F&& f, const Allocator&) const {
            context_->add(priority_, detail::make_task(std::forward<F>(f)));
        }

        bool operator==(const executor_type& other) const noexcept {
            return context_ == other.context_ && priority_ == other.priority_;
        }
        bool operator!=(const executor_type& other) const noexcept { return !(*this == other); }

    private:
        priority_context* context_;
        int priority_;
    };

    priority_context() = default;
    priority_context(const priority_context&) = delete;
    priority_context& operator=(const priority_context&) = delete;

    ~priority_context() {
        shutdown();
        waiting_.clear();
        destroy();
    }

    executor_type at(int priority) noexcept { return {*this, priority}; }

    std::size_t size() const noexcept { return waiting_.size(); }

    /// Highest priority first, then first come first served.
    void run_all() {
        while (!waiting_.empty()) {
            const auto best = std::max_element(
                waiting_.begin(), waiting_.end(),
                [](const entry& a, const entry& b) { return a.priority < b.priority; });
            const std::unique_ptr<detail::task> next = std::move(best->work);
            waiting_.erase(best);
            next->run();
        }
    }

private:
    struct entry {
        int priority;
        std::unique_ptr<detail::task> work;
    };

    void add(int priority, std::unique_ptr<detail::task> t) {
        waiting_.push_back({priority, std::move(t)});
    }

    std::vector<entry> waiting_;
};

#endif

// ---- clocks -------------------------------------------------------------------------------------

/// A clock that stands still until a test moves it. Tag makes a separate type, because each test
/// needs its own time.
template <typename Tag, bool Steady = true>
struct stepped_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<stepped_clock>;
    static constexpr bool is_steady = Steady;

    static time_point now() noexcept {
        return time_point(duration(now_.load(std::memory_order_seq_cst)));
    }
    static void set(time_point t) noexcept {
        now_.store(t.time_since_epoch().count(), std::memory_order_seq_cst);
    }
    static void set(duration since_epoch) noexcept { set(time_point(since_epoch)); }

private:
    inline static std::atomic<rep> now_{0};
};

/// Wait traits with the one function that Asio calls: check again after at most a millisecond.
template <typename Clock>
struct polling_traits {
    static typename Clock::duration to_wait_duration(const typename Clock::duration& d) {
        calls.fetch_add(1, std::memory_order_relaxed);
        const auto step =
            std::chrono::duration_cast<typename Clock::duration>(std::chrono::milliseconds(1));
        return std::min(d, std::max(step, typename Clock::duration(1)));
    }

    inline static std::atomic<int> calls{0};
};

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_ARCHETYPES_HPP
