// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An asynchronous operation under a time limit: one object with the handler of the operation,
///   the wait for the limit, and the signal that cancels the operation.
///
/// Model
///   Up to four parties hold the object: limit_parties.hpp has their transitions. When the operation
///   completes, it withdraws the wait. Nearly always it is then the only party, so it frees the
///   object and invokes the handler at once. Otherwise it stores the result, and the last party to
///   leave continues. So the handler is invoked once, the memory is freed before, and no party
///   blocks.
///
/// Invariants
///   - The result is stored before the operation leaves.
///   - The limit's signal is emitted once, and only when the operation can listen to it: another
///     thread may still be starting it. limit_parties::fire() decides who emits.
///   - The handler is invoked, and the signal emitted, on the executor of the handler. Exception: a
///     function that the operation itself calls may run anywhere, as without a limit.
///
/// Threads
///   The parties may be in different threads. The handler's executor serialises emission with the
///   operation, as Asio requires.
///
/// Cost
///   One allocation, by the associated allocator of the handler, and two atomic operations.
#ifndef PAWL_DETAIL_LIMIT_LIMITED_OPERATION_HPP
#define PAWL_DETAIL_LIMIT_LIMITED_OPERATION_HPP

#include <pawl/detail/limit/inline_signal.hpp>
#include <pawl/detail/limit/limit_parties.hpp>
#include <pawl/detail/limit/post_result.hpp>

#include <pawl/detail/service/native_executor.hpp>

#include <pawl/detail/wait/claim.hpp>
#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace pawl::detail {

// A wait that is part of a larger object and has no handler of its own, such as the limit of an
// operation. It can be ended silently: timer_handle::withdraw(), dispatcher::withdraw().
//
// Model
//   The object owns the memory. A wait that was started ends in exactly one of three ways: it is
//   withdrawn, wait_ended() is called, or wait_destroyed() is called. After that the object may be
//   freed.
//
// Cost
//   32 bytes. The only allocation is that of a hand-over to an executor other than the native one,
//   and only when the wait is due.

/// Base class of such an object.
///
/// @tparam Object must have:
/// - `wait_ended(error_code)`, called on `wait_executor()`;
/// - `wait_destroyed()`, called in any thread;
/// - `wait_executor()`;
/// - `is_native(executor, arbiter)`: whether that executor is the native one of the arbiter's context;
/// - `carrier_allocator()`.
/// The object keeps outstanding work itself if it needs any.
template <class Object>
class embedded_wait : public wait_operation {
protected:
    // Not direct: checking the executor would cost every operation that beats its limit more than
    // the second lock costs the few that do not.
    embedded_wait() noexcept : wait_operation(&embedded_wait::perform, false, kind::embedded) {}
    ~embedded_wait() = default;

private:
    static void perform(wait_operation& op, action what, wait_arbiter* arbiter) {
        auto& self = static_cast<Object&>(op);
        switch (what) {
        case action::complete:
            self.wait_ended(op.result());
            break;
        case action::hand_over: {
            const auto ex = self.wait_executor(); // the object may be gone before dispatch returns
            if (!self.is_native(ex, *arbiter))
                boost::asio::dispatch(ex, wait_carrier(*arbiter, op, self.carrier_allocator()));
            else if (arbiter->arrive_or_park(op))
                op.complete();
            break;
        }
        case action::regain_work:
            break;
        case action::destroy:
            self.wait_destroyed();
            break;
        }
    }
};

/// The handler in the caller's cancellation slot. It and the operation point at each other; the
/// first to go clears the other's pointer. The signal may outlive the operation. It may also end
/// before an operation that is destroyed with its context.
template <class Operation>
struct outer_link {
    explicit outer_link(Operation& owner) noexcept : op(&owner) { owner.outer_ = this; }
    outer_link& operator=(outer_link&&) = delete;
    ~outer_link() {
        if (op)
            op->outer_ = nullptr;
    }
    void operator()(boost::asio::cancellation_type_t type) {
        if (op && type != boost::asio::cancellation_type::none)
            op->cancel(type); // may destroy this
    }
    Operation* op;
};

/// The same for an operation that shared_ptrs own.
template <class Operation>
class weak_link {
public:
    explicit weak_link(std::weak_ptr<Operation> op) noexcept : op_(std::move(op)) {}
    void operator()(boost::asio::cancellation_type_t type) const {
        if (type == boost::asio::cancellation_type::none)
            return;
        if (const auto op = op_.lock())
            op->cancel(type);
    }

private:
    std::weak_ptr<Operation> op_;
};

/// What first cut an operation short.
struct verdict {
    enum class who : std::uint8_t { nobody, limit, caller };

    who by = who::nobody;
    boost::system::error_code code{}; ///< the result of the wait for the limit
};

template <class T>
inline constexpr bool is_error = std::is_same_v<std::decay_t<T>, boost::system::error_code> ||
                                 std::is_same_v<std::decay_t<T>, std::exception_ptr>;

/// The exception of an error. Without memory for its text it is std::bad_alloc: an operation that
/// has ended must report something. If this threw, its handler and its block would leak.
[[nodiscard]] inline std::exception_ptr as_exception(const boost::system::error_code& ec) noexcept {
    try {
        return std::make_exception_ptr(boost::system::system_error(ec));
    } catch (...) {
        return std::current_exception();
    }
}
inline void set_error(boost::system::error_code& error, const boost::system::error_code& ec) {
    error = ec;
}
inline void set_error(std::exception_ptr& error, const boost::system::error_code& ec) {
    error = as_exception(ec);
}

template <class SignatureOrTuple>
inline constexpr bool begins_with_error = false;
template <class R, class First, class... Rest>
inline constexpr bool begins_with_error<R(First, Rest...)> = is_error<First>;
template <class First, class... Rest>
inline constexpr bool begins_with_error<std::tuple<First, Rest...>> = is_error<First>;

/// Whether a report can tell the handler of an operation with these results that it was not
/// started.
template <class Report, class Result>
inline constexpr bool reports_failure = false;
template <class Report, class... Rs>
    requires(begins_with_error<typename Report::template signature<void(Rs...)>> &&
             (std::is_default_constructible_v<Rs> && ...))
inline constexpr bool reports_failure<Report, std::tuple<Rs...>> = true;

template <class Result, class Args>
inline constexpr bool is_made_of = false;
template <class... Rs, class... Args>
    requires(sizeof...(Rs) == sizeof...(Args))
inline constexpr bool is_made_of<std::tuple<Rs...>, std::tuple<Args...>> =
    (std::is_convertible_v<Args, Rs> && ...);

/// The index of the first of `Results` that is `Decayed`, or else can be constructed from `Args`.
template <class Args, class Decayed, class... Results>
[[nodiscard]] consteval std::size_t result_for() {
    const bool same[] = {std::is_same_v<Decayed, Results>...};
    const bool fits[] = {is_made_of<Results, Args>...};
    std::size_t i = 0;
    while (i < sizeof...(Results) && !same[i])
        ++i;
    if (i == sizeof...(Results))
        for (i = 0; i < sizeof...(Results) && !fits[i];)
            ++i;
    return i;
}

/// The executor on which a handler is invoked. The handler's own executor is fetched only when it
/// is needed, which is rare: copying an any_io_executor takes about a tenth of the time of a limit.
template <class Handler, class Executor>
class executor_for {
public:
    /// @param fallback for a handler without an executor. It need not be an executor otherwise;
    ///     get_associated_executor() would require that.
    template <class Fallback>
    executor_for(const Handler& handler, const Fallback& fallback) noexcept
        : executor_(boost::asio::associated_executor<Handler, Fallback>::get(handler, fallback)) {}
    [[nodiscard]] Executor get(const Handler&) const noexcept { return executor_; }

private:
    Executor executor_;
};
template <class Handler, class Executor>
    requires std::same_as<typename Handler::executor_type, Executor> &&
             requires(const Handler& handler) {
                 { handler.get_executor() } -> std::convertible_to<Executor>;
             }
class executor_for<Handler, Executor> {
public:
    template <class Fallback>
    executor_for(const Handler&, const Fallback&) noexcept {}
    [[nodiscard]] Executor get(const Handler& handler) const noexcept {
        return handler.get_executor();
    }
};

/// The handler that the operation gets. The executor of the operation may copy it. Copies are one
/// handler: only the first call has an effect.
template <class Operation>
class limited_handler {
public:
    using cancellation_slot_type = inline_signal::slot_type;
    using pawl_wrapped_handler = typename Operation::handler_type;

    explicit limited_handler(Operation& op) noexcept : op_(&op) {}
    limited_handler(limited_handler&& other) noexcept = default;
    limited_handler(const limited_handler& other) = default;
    limited_handler& operator=(limited_handler&&) = delete;
    ~limited_handler() {
        op_.end([](Operation* op) { op->operation_destroyed(); });
    }

    /// @pre neither this nor a copy was called. The same holds for handler().
    cancellation_slot_type get_cancellation_slot() const noexcept {
        return op_.get()->slot_for_inner();
    }

    [[nodiscard]] const auto& handler() const noexcept { return op_.get()->handler(); }

    template <class... Args>
    void operator()(Args&&... args) const {
        if (Operation* const op = op_.take())
            op->operation_ended(std::forward<Args>(args)...);
    }

    /// The operation is not started.
    void cut() const noexcept { (void)op_.take(); }

private:
    claim<Operation> op_;
};

/// @tparam Timer     see limit_timer.hpp.
/// @tparam Report    invoke(handler, verdict, results...): passes the outcome to the handler.
/// @tparam Results   std::tuple of the results of the operation; one for each signature.
template <class Timer, class Report, class Handler, class Executor, class... Results>
class limited_operation final
    : public embedded_wait<limited_operation<Timer, Report, Handler, Executor, Results...>> {
    using base = embedded_wait<limited_operation>;
    using allocator_type = handler_allocator<Handler>;
    using memory = allocated_block<limited_operation, allocator_type>;
    friend memory;
    friend class allocated_object<limited_operation, allocator_type>;

public:
    using handler_type = Handler;

    /// Starts the limit, then the operation. If the limit is refused, the operation is not started,
    /// and its handler gets no_buffer_space from the wait. Without a way to report that, the
    /// operation is started and cancelled.
    /// @throws what the allocation, the limit or the initiation throws, with nothing left behind.
    /// @param fallback the executor of a handler without one. @param timer_ex that of the limit.
    template <class H, class Fallback, class TimerExecutor, class Limit, class Initiation,
              class... Args>
    static void launch(H&& handler, const Fallback& fallback, const TimerExecutor& timer_ex,
                       const Limit& limit, boost::asio::cancellation_type_t type,
                       Initiation&& initiation, Args&&... args) {
        starting_party start(*memory(get_handler_allocator(handler))
                                  .make(std::forward<H>(handler), fallback, timer_ex, limit, type));
        {
            limited_handler<limited_operation> inner(*start);
            [[maybe_unused]] const bool limited = start->timer_.start(*start);
            if constexpr (reports_refusal) {
                if (!limited) [[unlikely]] {
                    start->store_refusal();
                    inner.cut();
                    return start.take().leave(limit_parties::operation | limit_parties::start,
                                              false);
                }
            }
            std::forward<Initiation>(initiation)(std::move(inner), std::forward<Args>(args)...);
        }
        start.done();
    }

    // --- for the operation --------------------------------------------------------------------

    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

    [[nodiscard]] inline_signal::slot_type slot_for_inner() noexcept { return signal_.slot(); }

    template <class... Args>
    void operation_ended(Args&&... args) {
        using decayed = std::tuple<std::decay_t<Args>...>;
        constexpr std::size_t which = result_for<std::tuple<Args...>, decayed, Results...>();
        using result = std::tuple_element_t<which, std::tuple<Results...>>;
        const unsigned mine = leave_with_wait();
        const bool alone = parties_.is_all(mine);
        if constexpr (std::is_same_v<decayed, result>) {
            if (alone)
                return deliver(std::forward<Args>(args)...);
        }
        try {
            if (!alone)
                work_.emplace(wait_executor());
            result_.template emplace<1 + which>(std::forward<Args>(args)...);
        } catch (...) {
            result_.template emplace<0>();
            leave(mine, false);
            throw;
        }
        leave(mine, true);
    }

    /// The operation will not complete.
    void operation_destroyed() { leave(leave_with_wait(), false); }

    // --- for the wait --------------------------------------------------------------------------

    void wait_ended(const boost::system::error_code& ec) {
        const bool never_started = reports_refusal && this->refused();
        if (!never_started && (any_end_counts || !this->was_cancelled())) {
            const limit_parties::emitter emitter = parties_.fire();
            if (emitter != limit_parties::emitter::none)
                judge(verdict::who::limit, ec);
            if (emitter == limit_parties::emitter::wait)
                return emit_and_leave(type_, limit_parties::wait);
        }
        leave(limit_parties::wait, true);
    }

    void wait_destroyed() { leave(limit_parties::wait, false); }

    /// @pre the handler was not moved.
    [[nodiscard]] Executor wait_executor() const noexcept { return executor_.get(handler_); }

    [[nodiscard]] static bool is_native(const Executor& ex, const wait_arbiter& arbiter) noexcept {
        if constexpr (requires { Timer::ends_anywhere; })
            return false;
        else
            return runs_natively(ex, arbiter.context());
    }

    [[nodiscard]] allocator_type carrier_allocator() const noexcept {
        return get_handler_allocator(handler_);
    }

private:
    /// Whether a cancelled wait counts as one that has reached the limit.
    static constexpr bool any_end_counts =
        requires { Report::any_end_counts; } && requires { Timer::is_callers; };

    /// Whether an operation whose limit is refused is not started.
    static constexpr bool reports_refusal =
        reports_failure<Report, std::tuple_element_t<0, std::tuple<Results...>>>;

    friend outer_link<limited_operation>;

    /// The initiating function.
    class starting_party {
    public:
        explicit starting_party(limited_operation& op) noexcept : op_(&op) {}
        starting_party& operator=(starting_party&&) = delete;
        ~starting_party() {
            if (op_)
                op_->start_failed();
        }

        [[nodiscard]] limited_operation& take() noexcept { return *std::exchange(op_, nullptr); }
        [[nodiscard]] limited_operation& operator*() const noexcept { return *op_; }
        [[nodiscard]] limited_operation* operator->() const noexcept { return op_; }

        void done() {
            if (op_->parties_.leave_start()) {
                (void)take();
                return;
            }
            // The limit or the operation was faster, usually in another thread.
            const Executor ex = op_->wait_executor();
            boost::asio::dispatch(ex, take().deferred(&limited_operation::done_late));
        }

    private:
        limited_operation* op_;
    };

    /// starting_party::done(), on the executor of the handler.
    static void done_late(void* object, bool called) {
        auto& op = *static_cast<limited_operation*>(object);
        if (!called)
            return op.leave(limit_parties::start, false);
        if (op.parties_.fired_during_start())
            op.emit_and_leave(op.type_, limit_parties::start);
        else
            op.leave(limit_parties::start, true);
    }

    /// The initiating function has thrown. If it kept the operation nevertheless, a limit that
    /// fired in the meantime has left the signal to this function.
    void start_failed() noexcept {
        if (parties_.leave_start())
            return;
        // Other parties that may signal run where done_late() does, which looks again.
        if (parties_.has(limit_parties::operation))
            call_later(&limited_operation::done_late);
        else
            leave(limit_parties::start, false);
    }

    template <class H, class Fallback, class TimerExecutor, class Limit>
    limited_operation(H&& handler, const Fallback& fallback, const TimerExecutor& timer_ex,
                      const Limit& limit, boost::asio::cancellation_type_t type)
        : type_(type), handler_(std::forward<H>(handler)), executor_(handler_, fallback),
          timer_(limit, timer_ex) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.template emplace<outer_link<limited_operation>>(*this);
    }

    ~limited_operation() {
        if (outer_)
            outer_->op = nullptr;
    }

    /// Frees the memory, then destroys the handler.
    void destroy() noexcept { (void)take_handler(handler_, *this); }

    /// A function object that calls `f(this, true)` on an executor, or `f(this, false)` if it is
    /// destroyed.
    [[nodiscard]] auto deferred(void (*f)(void*, bool)) noexcept {
        return deferred_call(this, f, carrier_allocator());
    }

    /// The operation ends the wait if it still can.
    /// @return the parties that leave.
    [[nodiscard]] unsigned leave_with_wait() {
        if (parties_.has(limit_parties::wait) && timer_.end(*this))
            return limit_parties::operation | limit_parties::wait;
        return limit_parties::operation;
    }

    void leave(unsigned parties, bool may_deliver) {
        if (!parties_.leave(parties))
            return;
        if (result_.index() == 0)
            return destroy();
        if (!may_deliver) // the wait was destroyed with its own context, or for lack of memory
            return call_later(&limited_operation::deliver_or_destroy);
        deliver_result();
    }

    /// Stores the result of an operation that is not started.
    void store_refusal() {
        const boost::system::error_code ec = boost::asio::error::no_buffer_space;
        judge(verdict::who::limit, ec);
        work_.emplace(wait_executor());
        try {
            [[maybe_unused]] auto& result = result_.template emplace<1>();
            using results = std::tuple_element_t<0, std::tuple<Results...>>;
            if constexpr (begins_with_error<results>)
                set_error(std::get<0>(result), ec);
        } catch (...) {
            result_.template emplace<0>();
            throw;
        }
    }

    void deliver_result() {
        std::visit([this](auto&& result) { this->deliver_all(std::move(result)); },
                   std::variant<std::monostate, Results...>(std::move(result_)));
    }

    /// Delivers the stored result, or destroys it if the context of its executor is destroyed.
    static void deliver_or_destroy(void* object, bool called) {
        auto& op = *static_cast<limited_operation*>(object);
        if (called)
            op.deliver_result();
        else
            op.destroy();
    }

    /// Calls `f(this, true)` on the executor of the handler.
    void call_later(void (*f)(void*, bool)) noexcept {
        const Executor ex = wait_executor();
        try {
            auto call = deferred(f);
            if constexpr (requires { boost::asio::post(ex, std::move(call)); })
                boost::asio::post(ex, std::move(call));
            else // as with any_completion_executor
                boost::asio::dispatch(ex, std::move(call));
        } catch (...) { // no memory: f(this, false) was called
        }
    }

    void deliver_all(std::monostate) {}
    template <class... Args>
    void deliver_all(std::tuple<Args...>&& result) {
        std::apply([this](Args&... args) { this->deliver(std::move(args)...); }, result);
    }

    template <class... Args>
    void deliver(Args&&... args) {
        const verdict v = verdict_;
        // before the upcall, so that an operation started there reuses the block
        Handler last = take_handler(handler_, *this);
        Report::invoke(std::move(last), v, std::forward<Args>(args)...);
    }

    void judge(verdict::who by, const boost::system::error_code& code) noexcept {
        if (verdict_.by == verdict::who::nobody)
            verdict_ = {by, code};
    }

    void cancel(boost::asio::cancellation_type_t type) {
        // Entered because the operation may complete in emit() and must not free the signal.
        const auto [mine, to_forward] = parties_.enter();
        if (!to_forward)
            return leave(mine, true);
        judge(verdict::who::caller, {});
        emit_and_leave(type, mine);
    }

    /// Exceptions of the operation's own cancellation handler go to the caller; nothing is lost.
    void emit_and_leave(boost::asio::cancellation_type_t type, unsigned party) {
        try {
            signal_.emit(type);
        } catch (...) {
            leave(party, true);
            throw;
        }
        leave(party, true);
    }

    limit_parties parties_;
    const boost::asio::cancellation_type_t type_;
    Handler handler_;
    [[no_unique_address]] executor_for<Handler, Executor> executor_;
    Timer timer_;
    inline_signal signal_;
    outer_link<limited_operation>* outer_ = nullptr;
    verdict verdict_;
    std::optional<outstanding_work<Executor>> work_; ///< while the result is stored
    std::variant<std::monostate, Results...> result_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMITED_OPERATION_HPP
