// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An asynchronous operation under a limit in time: one object with the handler of the operation,
///   the wait for the limit and the signal that cancels the operation.
///
/// Model
///   Up to four parties hold on to the object, a bit each:
///     operation  its handler has neither been called nor destroyed
///     wait       the limit has neither been withdrawn nor ended
///     start      the initiating function has not returned
///     outer      a cancellation of the caller's is being forwarded
///   The operation withdraws the wait when it completes. In nearly all cases that leaves it alone,
///   and it frees the object and invokes the handler on the spot. Where another party is left, it
///   parks the result, and whoever leaves last goes on. So the handler is invoked once, the memory
///   is freed before, and nobody waits for anybody.
///
/// Invariants
///   I1  The result is parked before the operation leaves.
///   I2  The limit's signal is emitted once, and not before the operation can listen to it: another
///       thread may be starting it. By whom, `fired` and the bit of `start` decide: whoever finds
///       that the other one has come first.
///   I3  The handler is invoked, and the signal emitted, on the executor of the handler, except
///       that a function called by the operation itself may be anywhere, as without a limit.
///
/// Threads
///   The parties may be in different threads. Emission is serialised with the operation by the
///   handler's executor, as Asio asks for.
///
/// Cost
///   One allocation, by the associated allocator of the handler; two atomic operations.
#ifndef PAWL_LIMIT_LIMITED_OPERATION_HPP
#define PAWL_LIMIT_LIMITED_OPERATION_HPP

#include <pawl/limit/inline_signal.hpp>

#include <pawl/service/native_executor.hpp>
#include <pawl/service/optional_mutex.hpp>

#include <pawl/wait/allocated.hpp>
#include <pawl/wait/claim.hpp>
#include <pawl/wait/deferred_call.hpp>
#include <pawl/wait/held_wait.hpp>
#include <pawl/wait/wait_allocator.hpp>
#include <pawl/wait/wait_handler.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace pawl::detail {

/// Who was the first to cut an operation short.
struct verdict {
    enum class who : std::uint8_t { nobody, limit, caller };

    who by = who::nobody;
    boost::system::error_code code{}; ///< what the wait of the limit ended with
};

template <class Tuple>
struct decayed_tuple_of;
template <class... Ts>
struct decayed_tuple_of<std::tuple<Ts...>> {
    using type = std::tuple<std::decay_t<Ts>...>;
};
template <class Tuple>
using decayed_tuple = typename decayed_tuple_of<Tuple>::type;

template <class Result, class Args>
inline constexpr bool is_made_of = false;
template <class... Rs, class... Args>
    requires(sizeof...(Rs) == sizeof...(Args))
inline constexpr bool is_made_of<std::tuple<Rs...>, std::tuple<Args...>> =
    (std::is_convertible_v<Args, Rs> && ...);

/// The index of the first one of `Results` that is the decayed `Args`, or else, can be made of them.
template <class Args, class... Results>
[[nodiscard]] consteval std::size_t result_for() {
    const bool same[] = {std::is_same_v<decayed_tuple<Args>, Results>...};
    const bool fits[] = {is_made_of<Results, Args>...};
    std::size_t i = 0;
    while (i < sizeof...(Results) && !same[i])
        ++i;
    if (i == sizeof...(Results))
        for (i = 0; i < sizeof...(Results) && !fits[i];)
            ++i;
    return i;
}

/// The executor on which a handler is invoked. One that is the handler's own is asked for when it is
/// needed, which is in rare cases: to copy an any_io_executor takes about a tenth of a limit.
template <class Handler, class Executor>
class executor_for {
public:
    /// @param fallback for a handler that has none. It need not be an executor otherwise, which is
    ///                 why this is not get_associated_executor().
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

/// The handler that the operation gets. Copies, which the executor of the operation may make, are one
/// handler: what is called after another one does nothing.
template <class Operation>
class limited_handler {
public:
    using cancellation_slot_type = inline_signal::slot_type;

    explicit limited_handler(Operation& op) noexcept : op_(&op) {}
    limited_handler(limited_handler&& other) noexcept = default;
    limited_handler(const limited_handler& other) = default;
    limited_handler& operator=(limited_handler&&) = delete;
    ~limited_handler() {
        op_.end([](Operation* op) { op->operation_destroyed(); });
    }

    /// @pre neither this nor a copy has been called. The same holds for handler().
    cancellation_slot_type get_cancellation_slot() const noexcept {
        return op_.get()->slot_for_inner();
    }

    [[nodiscard]] const auto& handler() const noexcept { return op_.get()->handler(); }

    template <class... Args>
    void operator()(Args&&... args) const {
        if (Operation* const op = op_.take())
            op->operation_ended(std::forward<Args>(args)...);
    }

private:
    claim<Operation> op_;
};

/// @tparam Timer     see limit_timer.hpp.
/// @tparam Report    invoke(handler, verdict, results...): what the handler is told.
/// @tparam Results   std::tuple of what the operation completes with; one for each signature.
template <class Timer, class Report, class Handler, class Executor, class... Results>
class limited_operation final
    : public held_wait<limited_operation<Timer, Report, Handler, Executor, Results...>> {
    using base = held_wait<limited_operation>;
    using allocator_type = handler_allocator<Handler>;
    using memory = allocated_block<limited_operation, allocator_type>;

public:
    using handler_type = Handler;

    /// Starts the limit, and then the operation.
    /// @throws whatever the allocation, the limit or the initiation throws, with nothing left.
    /// @param fallback the executor if the handler has none. @param timer_ex that of the limit.
    template <class H, class Fallback, class TimerExecutor, class Limit, class Initiation,
              class... Args>
    static void launch(H&& handler, const Fallback& fallback, const TimerExecutor& timer_ex,
                       const Limit& limit, boost::asio::cancellation_type_t type,
                       Initiation&& initiation, Args&&... args) {
        starting_party start(make(std::forward<H>(handler), fallback, timer_ex, limit, type));
        {
            limited_handler<limited_operation> inner(*start);
            start->timer_.start(*start);
            std::forward<Initiation>(initiation)(std::move(inner), std::forward<Args>(args)...);
        }
        start.done();
    }

    // --- for the operation --------------------------------------------------------------------

    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

    [[nodiscard]] inline_signal::slot_type slot_for_inner() noexcept { return signal_.slot(); }

    template <class... Args>
    void operation_ended(Args&&... args) {
        constexpr std::size_t which = result_for<std::tuple<Args...>, Results...>();
        using result = std::tuple_element_t<which, std::tuple<Results...>>;
        const unsigned mine = leave_with_wait();
        // acquire: pairs with leave() and done()
        const bool alone = (parties_.load(std::memory_order_acquire) & everybody) == mine;
        if constexpr (std::is_same_v<decayed_tuple<std::tuple<Args...>>, result>) {
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
        if (!this->was_cancelled()) {
            // acquire: pairs with done(). What this thread has done is released when it leaves.
            const unsigned before = parties_.fetch_or(fired, std::memory_order_acquire);
            if (before & operation_party) {
                judge(verdict::who::limit, ec);
                if (!(before & start_party))
                    return emit_and_leave(type_, wait_party);
            }
        }
        leave(wait_party, true);
    }

    void wait_destroyed() { leave(wait_party, false); }

    /// @pre the handler has not been moved.
    [[nodiscard]] Executor wait_executor() const noexcept { return executor_.get(handler_); }

    [[nodiscard]] static bool is_native(const Executor& ex, const wait_host& host) noexcept {
        if constexpr (requires { Timer::ends_anywhere; })
            return false;
        else
            return runs_natively(ex, host.context());
    }

    [[nodiscard]] allocator_type carrier_allocator() const noexcept {
        return get_handler_allocator(handler_);
    }

private:
    static constexpr unsigned operation_party = 1;
    static constexpr unsigned wait_party = 2;
    static constexpr unsigned start_party = 4;
    static constexpr unsigned outer_party = 8;
    static constexpr unsigned everybody = 15;
    static constexpr unsigned fired = 16; ///< not a party: the limit was reached

    /// The handler in the caller's cancellation slot. It and the operation point at each other, and
    /// whoever goes first clears the other's pointer: the signal may outlive the operation, and may
    /// be gone before an operation that is destroyed with its context.
    class outer_link {
    public:
        explicit outer_link(limited_operation& op) noexcept : op_(&op) { op.outer_ = this; }
        outer_link(const outer_link&) = delete;
        outer_link& operator=(const outer_link&) = delete;
        ~outer_link() {
            if (op_)
                op_->outer_ = nullptr;
        }

        void operator()(boost::asio::cancellation_type_t type) {
            if (op_ && type != boost::asio::cancellation_type::none)
                op_->forward(type); // this may be gone when it returns
        }

        void cut() noexcept { op_ = nullptr; }

    private:
        limited_operation* op_;
    };

    /// The initiating function.
    class starting_party {
    public:
        explicit starting_party(limited_operation& op) noexcept : op_(&op) {}
        starting_party(const starting_party&) = delete;
        starting_party& operator=(const starting_party&) = delete;
        ~starting_party() {
            if (op_)
                op_->start_failed();
        }

        [[nodiscard]] limited_operation& release() noexcept { return *std::exchange(op_, nullptr); }
        [[nodiscard]] limited_operation& operator*() const noexcept { return *op_; }
        [[nodiscard]] limited_operation* operator->() const noexcept { return op_; }

        void done() {
            if (op_->leave_untouched()) {
                (void)release();
                return;
            }
            // The limit, or the operation, has been faster, in another thread as a rule.
            const Executor ex = op_->wait_executor();
            boost::asio::dispatch(ex, release().deferred(&limited_operation::done_late));
        }

    private:
        limited_operation* op_;
    };

    /// starting_party::done(), where the handler can be invoked.
    static void done_late(void* object, bool called) {
        auto& op = *static_cast<limited_operation*>(object);
        if (!called)
            return op.leave(start_party, false);
        // relaxed: wait_ended() runs on the same executor
        const unsigned parties = op.parties_.load(std::memory_order_relaxed);
        if ((parties & fired) && (parties & operation_party))
            op.emit_and_leave(op.type_, start_party);
        else
            op.leave(start_party, true);
    }

    /// The initiating function has thrown. If it has kept the operation nevertheless, a limit that has
    /// fired meanwhile has left the signal to it.
    void start_failed() noexcept {
        if (leave_untouched())
            return;
        // The others that may signal run where done_late() does.
        // relaxed: done_late() looks again, and leave() acquires
        if (parties_.load(std::memory_order_relaxed) & operation_party)
            call_later(&limited_operation::done_late);
        else
            leave(start_party, false);
    }

    template <class H, class Fallback, class TimerExecutor, class Limit>
    static limited_operation& make(H&& handler, const Fallback& fallback,
                                   const TimerExecutor& timer_ex, const Limit& limit,
                                   boost::asio::cancellation_type_t type) {
        memory m(get_handler_allocator(handler));
        auto* const op = ::new (m.address())
            limited_operation(std::forward<H>(handler), fallback, timer_ex, limit, type);
        m.release();
        return *op;
    }

    template <class H, class Fallback, class TimerExecutor, class Limit>
    limited_operation(H&& handler, const Fallback& fallback, const TimerExecutor& timer_ex,
                      const Limit& limit, boost::asio::cancellation_type_t type)
        : type_(type), handler_(std::forward<H>(handler)), executor_(handler_, fallback),
          timer_(limit, timer_ex) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.template emplace<outer_link>(*this);
    }

    ~limited_operation() {
        if (outer_)
            outer_->cut();
    }

    /// Frees the memory, and then destroys the handler.
    void destroy() noexcept {
        const allocator_type alloc = get_handler_allocator(handler_);
        // It may own what the allocator allocates from.
        [[maybe_unused]] const Handler last(std::move(handler_));
        destroy(alloc);
    }
    void destroy(const allocator_type& alloc) noexcept {
        const memory m(alloc, *this);
        this->~limited_operation();
    }

    /// What calls `f(this, true)` on an executor, or else `f(this, false)`.
    [[nodiscard]] auto deferred(void (*f)(void*, bool)) noexcept {
        return deferred_call(this, f, carrier_allocator());
    }

    /// The initiating function leaves, if nothing has happened since it began.
    [[nodiscard]] bool leave_untouched() noexcept {
        constexpr unsigned others = operation_party | wait_party;
        unsigned untouched = others | start_party;
        if (single_threaded()) { // a locked instruction takes as long as filing the wait
            const bool leaves = parties_.load(std::memory_order_relaxed) == untouched;
            if (leaves)
                parties_.store(others, std::memory_order_relaxed);
            return leaves;
        }
        // release: pairs with operation_ended(), leave() and wait_ended(). relaxed: until it leaves,
        // this thread uses nothing that the others have written
        return parties_.compare_exchange_strong(untouched, others, std::memory_order_release,
                                                std::memory_order_relaxed);
    }

    /// Ends the wait, if it can be, on behalf of the operation.
    /// @return the parties that leave.
    [[nodiscard]] unsigned leave_with_wait() {
        // relaxed: the lock of the shard decides who has the wait
        const unsigned parties = parties_.load(std::memory_order_relaxed);
        if ((parties & wait_party) && timer_.end(*this))
            return operation_party | wait_party;
        return operation_party;
    }

    void leave(unsigned parties, bool may_deliver) {
        // acq_rel: whoever is last sees what the others have done
        const unsigned before = parties_.fetch_sub(parties, std::memory_order_acq_rel);
        if ((before & everybody) != parties || parties == 0)
            return;
        if (result_.index() == 0)
            return destroy();
        if (!may_deliver)
            return deliver_later();
        deliver_result();
    }

    void deliver_result() {
        std::visit([this](auto&& result) { this->deliver_all(std::move(result)); },
                   std::variant<std::monostate, Results...>(std::move(result_)));
    }

    /// Delivers the parked result, or destroys it with the context of its executor.
    static void deliver_or_destroy(void* object, bool called) {
        auto& op = *static_cast<limited_operation*>(object);
        if (called)
            op.deliver_result();
        else
            op.destroy();
    }

    /// The wait was destroyed with its own context, or in want of memory; the operation has ended.
    void deliver_later() noexcept { call_later(&limited_operation::deliver_or_destroy); }

    /// Has `f(this, true)` called on the executor of the handler.
    void call_later(void (*f)(void*, bool)) noexcept {
        const Executor ex = wait_executor();
        try {
            auto call = deferred(f);
            if constexpr (requires { boost::asio::post(ex, std::move(call)); })
                boost::asio::post(ex, std::move(call));
            else // as with any_completion_executor
                boost::asio::dispatch(ex, std::move(call));
        } catch (...) { // no memory: it was called with false
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
        const allocator_type alloc = get_handler_allocator(handler_); // not when it is moved from
        Handler last(std::move(handler_));
        destroy(alloc); // before the upcall, so that an operation that it starts reuses the block
        Report::invoke(std::move(last), v, std::forward<Args>(args)...);
    }

    void judge(verdict::who by, const boost::system::error_code& code) noexcept {
        if (verdict_.by == verdict::who::nobody)
            verdict_ = {by, code};
    }

    void forward(boost::asio::cancellation_type_t type) {
        // The operation may complete in emit(), and must not free the signal.
        // relaxed: this runs on the executor after the start; leave() releases
        const unsigned before = parties_.fetch_or(outer_party, std::memory_order_relaxed);
        if ((before & everybody) == 0) { // the result is on its way, see deliver_later()
            // relaxed: no other party is left
            parties_.fetch_and(~outer_party, std::memory_order_relaxed);
            return;
        }
        const unsigned mine = before & outer_party ? 0 : outer_party; // emitted in an emission
        if (before & operation_party) {
            judge(verdict::who::caller, {});
            emit_and_leave(type, mine);
        } else {
            leave(mine, true);
        }
    }

    /// What the operation's own cancellation handler throws goes to the caller, and loses nothing.
    void emit_and_leave(boost::asio::cancellation_type_t type, unsigned party) {
        try {
            signal_.emit(type);
        } catch (...) {
            leave(party, true);
            throw;
        }
        leave(party, true);
    }

    std::atomic<unsigned> parties_{operation_party | wait_party | start_party};
    const boost::asio::cancellation_type_t type_;
    Handler handler_;
    [[no_unique_address]] executor_for<Handler, Executor> executor_;
    Timer timer_;
    inline_signal signal_;
    outer_link* outer_ = nullptr;
    verdict verdict_;
    std::optional<outstanding_work<Executor>> work_; ///< while the result is parked
    std::variant<std::monostate, Results...> result_;
};

} // namespace pawl::detail

/// All but the cancellation slot is that of the handler.
template <template <class, class> class Associator, class Operation, class Default>
struct boost::asio::associator<Associator, pawl::detail::limited_handler<Operation>, Default>
    : Associator<typename Operation::handler_type, Default> {
    using handlers = Associator<typename Operation::handler_type, Default>;

    static typename handlers::type get(const pawl::detail::limited_handler<Operation>& h) noexcept {
        return handlers::get(h.handler());
    }
    static auto get(const pawl::detail::limited_handler<Operation>& h, const Default& d) noexcept
        -> decltype(handlers::get(h.handler(), d)) {
        return handlers::get(h.handler(), d);
    }
};

#endif // PAWL_LIMIT_LIMITED_OPERATION_HPP
