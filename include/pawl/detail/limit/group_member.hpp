// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The state of a group, which members and waits keep alive, and the membership of one operation.
///   The membership takes the place of a limited_operation's timer: it decides when the operation
///   is cancelled.
///
/// Model
///   group_state is the wait_arbiter of its members' waits. In the terms of wait_state.hpp a member is
///     idle --join--> armed --cancel--> due --carrier--> started
///   Armed members are in a list. The others are only counted, until their operation is destroyed.
///   An inner group with members counts as one member.
///
/// Invariants
///   - A member is armed if and only if it is in the list.
///   - A member whose carrier is destroyed is armed again, unless its operation has ended. So lack
///     of memory loses nothing, and the next cancel() tries again.
///   - A group in a cancelled one is cancelled, or a cancel() that visits it is under way.
///   - The state lives while users_ > 0. Users are the group, its members, their carriers, waits
///     for its end, its inner groups, and running calls.
///   - Locks are taken from the inside out: a group's, then its outer group's. cancel() visits
///     inner groups without its own lock.
///
/// Threads
///   Any. No foreign code runs under a lock.
///
/// Cost
///   One lock to join and two to leave, O(1). The first and the last member of a group also take
///   the lock of the outer group. 64 bytes per member, in the state of the operation.
#ifndef PAWL_DETAIL_LIMIT_GROUP_MEMBER_HPP
#define PAWL_DETAIL_LIMIT_GROUP_MEMBER_HPP

#include <pawl/detail/limit/limited_operation.hpp>
#include <pawl/detail/limit/report_timeout.hpp>

#include <pawl/detail/service/spin_mutex.hpp>

#include <pawl/detail/wait/timer_core.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <version>
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

namespace pawl::detail {

/// A doubly linked list of objects that contain their links.
template <class T>
class linked_list {
public:
    struct links {
        T* next = nullptr;
        T* before = nullptr;
    };

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void push_back(T& t) noexcept {
        PAWL_ASSERT(!t.in_list.next && !t.in_list.before && first_ != &t);
        t.in_list = {nullptr, last_};
        (last_ ? last_->in_list.next : first_) = &t;
        last_ = &t;
        ++size_;
    }
    void erase(T& t) noexcept {
        PAWL_ASSERT((t.in_list.before ? t.in_list.before->in_list.next : first_) == &t);
        (t.in_list.before ? t.in_list.before->in_list.next : first_) = t.in_list.next;
        (t.in_list.next ? t.in_list.next->in_list.before : last_) = t.in_list.before;
        t.in_list = {};
        --size_;
    }

    /// nullptr if there is none.
    T* pop_front() noexcept {
        T* const t = first_;
        if (t)
            erase(*t);
        return t;
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
    std::size_t size_ = 0;
};

/// A wait for a group to become empty. The group's lock guards the fields.
class drain_waiter {
public:
    enum class state : unsigned char {
        waiting, ///< in the list, or about to be
        drained, ///< the group was empty; wake() was called, or is about to be
        over,    ///< its handler was called or destroyed
    };

    linked_list<drain_waiter>::links in_list;
    std::shared_ptr<drain_waiter> self; ///< while in the list, and until wake()
    state phase = state::waiting;
    bool cancelled = false;

    /// Called once, without the lock.
    virtual void wake() noexcept = 0;

protected:
    ~drain_waiter() = default;
};

class group_state;

/// The membership of one operation.
class group_member : public timer_core {
public:
    template <class Limit, class Executor>
    group_member(const Limit& limit, const Executor&) noexcept : group_(limit.group) {}
    group_member& operator=(group_member&&) = delete;
    inline ~group_member();

    /// Any thread may end the wait, also outside the operation's context.
    static constexpr bool ends_anywhere = true;

    inline bool start(wait_operation& op); ///< @return true
    [[nodiscard]] inline bool end(wait_operation& op) noexcept;

    linked_list<group_member>::links in_list; ///< guarded by the group's lock

private:
    group_state* const group_;
};

/// The state of a group.
class group_state final : public wait_arbiter {
public:
    using executor_type = boost::asio::any_io_executor;

    explicit group_state(const executor_type& ex) : executor_(ex) {}
    /// A group inside `outer`.
    explicit group_state(group_state& outer) : executor_(outer.executor_), outer_(&outer) {
        outer.use();
        const std::scoped_lock lock(outer.mutex_);
        cancelled_ = outer.cancelled_;
        cause_ = outer.cause_;
        outer.groups_.push_back(*this);
    }
    group_state& operator=(group_state&&) = delete;

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

    /// Adds a user. @pre there is one.
    void use() noexcept { users_.fetch_add(1, std::memory_order_relaxed); } // as any shared count
    /// Removes a user.
    void leave() noexcept {
        // acq_rel: the last user sees the writes of the others
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            destroy();
    }

    [[nodiscard]] std::size_t size() noexcept {
        const std::scoped_lock lock(mutex_);
        return count_;
    }
    [[nodiscard]] bool cancelled() noexcept {
        const std::scoped_lock lock(mutex_);
        return cancelled_;
    }
    [[nodiscard]] boost::system::error_code cause() noexcept {
        const std::scoped_lock lock(mutex_);
        return cause_;
    }

    /// Cancels all members and inner groups.
    /// @throws the first exception of a hand-over, after all members were tried.
    void cancel(const boost::system::error_code& cause) {
        use(); // a handler may destroy the group
        std::size_t members = 0;
        std::size_t groups = 0;
        boost::system::error_code first;
#if defined(__cpp_lib_jthread)
        stop_link* stops = nullptr;
#endif
        {
            const std::scoped_lock lock(mutex_);
            if (!std::exchange(cancelled_, true))
                cause_ = cause;
            first = cause_;
#if defined(__cpp_lib_jthread)
            stops = stop_.get();
#endif
            members = armed_.size();
            groups = groups_.size();
        }
        std::exception_ptr failure;
        const auto attempt = [&failure](auto f) {
            try {
                f();
            } catch (...) {
                if (!failure)
                    failure = std::current_exception();
            }
        };
        // Failed members go to the end of the list; visit only those present at the start.
        for (; members != 0; --members) {
            wait_operation* const op = take_armed();
            if (!op)
                break;
            attempt([&] { op->hand_over(*this); });
        }
        for (; groups != 0; --groups) {
            if (group_state* const inner = next_group()) {
                attempt([&] { inner->cancel(first); });
                inner->leave();
            }
        }
#if defined(__cpp_lib_jthread)
        if (stops)
            stops->source.request_stop(); // calls this function again, which finds nothing
#endif
        leave();
        if (failure)
            std::rethrow_exception(failure);
    }

    /// Cancels all, for a caller that cannot report what is thrown: members that cannot be
    /// cancelled for lack of memory continue.
    void cancel_or_leave() noexcept {
        try {
            cancel(boost::asio::error::operation_aborted);
        } catch (...) { // see above
        }
    }

#if defined(__cpp_lib_jthread)
    /// A source of stops that cancel the group, and that the group requests when it is cancelled.
    /// @throws std::bad_alloc
    [[nodiscard]] std::stop_source stop_source() {
        auto fresh = std::make_unique<stop_link>();
        bool first = false;
        bool over = false;
        {
            const std::scoped_lock lock(mutex_);
            first = !stop_;
            if (first)
                stop_ = std::move(fresh);
            over = cancelled_;
        }
        if (first)
            stop_->callback.emplace(stop_->source.get_token(), cancel_by_stop{this});
        if (over)
            stop_->source.request_stop();
        return stop_->source;
    }
#endif

    // --- waits for the end ------------------------------------------------------------------

    /// Wakes `w` as soon as there is no member, possibly now.
    void enter(const std::shared_ptr<drain_waiter>& w) noexcept {
        {
            const std::scoped_lock lock(mutex_);
            if (w->phase != drain_waiter::state::waiting)
                return;
            w->self = w;
            if (count_ != 0)
                return waiters_.push_back(*w);
            w->phase = drain_waiter::state::drained;
        }
        w->wake();
    }

    /// The wait of `w` has ended.
    /// @return what its handler receives; nothing if it has to wait again.
    [[nodiscard]] std::optional<boost::system::error_code> ended(drain_waiter& w) noexcept {
        const std::scoped_lock lock(mutex_);
        if (w.phase == drain_waiter::state::drained)
            return boost::system::error_code();
        if (!w.cancelled)
            return std::nullopt;
        finish(w);
        return boost::asio::error::operation_aborted;
    }
    /// Whether the wait of `w` must end: it may have started too late for wake().
    [[nodiscard]] bool must_end(const drain_waiter& w) noexcept {
        const std::scoped_lock lock(mutex_);
        return w.phase == drain_waiter::state::drained || w.cancelled;
    }
    void cancel(drain_waiter& w) noexcept {
        const std::scoped_lock lock(mutex_);
        w.cancelled = true;
    }
    /// The handler of `w` is destroyed.
    void forget(drain_waiter& w) noexcept {
        const std::scoped_lock lock(mutex_);
        finish(w);
    }

    // --- for members --------------------------------------------------------------------------

    /// @throws what the hand-over throws if the group is cancelled; `m` has then joined.
    void join(group_member& m, wait_operation& op) {
        use();
        bool late = false;
        {
            const std::scoped_lock lock(mutex_);
            add_one();
            m.append(op);
            op.state.arm();
            late = cancelled_;
            if (late)
                send(op);
            else
                armed_.push_back(m);
        }
        if (late)
            op.hand_over(*this);
    }

    /// The operation has ended.
    /// @return true if nothing here points at its wait; false if its carrier is still to come.
    [[nodiscard]] bool end(group_member& m, wait_operation& op) noexcept {
        const std::scoped_lock lock(mutex_);
        if (op.state.withdraw()) {
            armed_.erase(m);
            return true;
        }
        if (op.state.pending()) {
            (void)op.state.cancel(); // it has its carrier
            op.set_result(boost::asio::error::operation_aborted);
        }
        return false;
    }

    /// The member has left.
    void part() noexcept {
        linked_list<drain_waiter> woken;
        {
            const std::scoped_lock lock(mutex_);
            take_one(woken);
        }
        while (drain_waiter* const w = woken.pop_front())
            w->wake();
        leave();
    }

    // --- wait_arbiter ----------------------------------------------------------------------------

    [[nodiscard]] const boost::asio::execution_context& context() const noexcept override {
        return boost::asio::query(executor_, boost::asio::execution::context);
    }

    [[nodiscard]] bool arrive(wait_operation& op) noexcept override {
        {
            const std::scoped_lock lock(mutex_);
            if (op.state.phase() == wait_phase::due)
                op.set_result(cause_, wait_ending::early);
            (void)op.state.arrive(); // true: a wait with a carrier is not pulled back
        }
        leave(); // the carrier; the member is still a user
        return true;
    }
    [[nodiscard]] bool arrive_or_park(wait_operation& op) noexcept override { return arrive(op); }

    void abandon(wait_operation& op) noexcept override {
        bool ended = true;
        {
            const std::scoped_lock lock(mutex_);
            if (op.state.phase() == wait_phase::due) { // armed again
                op.state.pull_back();
                op.state.park();
                armed_.push_back(static_cast<group_member&>(op.timer()));
                ended = false;
            } else {
                (void)op.state.arrive();
            }
        }
        if (ended)
            op.destroy();
        leave(); // the carrier
    }

    // Members have no slots.
    void cancel(slot_link&) override {}
    void forget(slot_link&) noexcept override {}

    linked_list<group_state>::links in_list; ///< guarded by the lock of the outer group

private:
    ~group_state() {
        PAWL_ASSERT(users_ == 0 && count_ == 0 && armed_.size() == 0 && groups_.size() == 0);
    }

    void destroy() noexcept {
        if (group_state* const outer = outer_) {
            {
                const std::scoped_lock lock(outer->mutex_);
                outer->groups_.erase(*this);
            }
            delete this;
            return outer->leave();
        }
        delete this;
    }

    /// armed -> due. The caller sends the carrier.
    void send(wait_operation& op) noexcept {
        (void)op.state.fall_due(); // true: it had no carrier
        use();
    }

    [[nodiscard]] wait_operation* take_armed() noexcept {
        const std::scoped_lock lock(mutex_);
        group_member* const m = armed_.pop_front();
        if (!m)
            return nullptr;
        PAWL_ASSERT(m->newest());
        wait_operation& op = *m->newest();
        send(op);
        return &op;
    }

    /// The next inner group, which gets the caller as a user; nullptr if its last user is leaving.
    [[nodiscard]] group_state* next_group() noexcept {
        const std::scoped_lock lock(mutex_);
        group_state* const inner = groups_.pop_front();
        if (!inner)
            return nullptr;
        groups_.push_back(*inner);
        return inner->use_unless_over() ? inner : nullptr;
    }

    /// Adds a user, unless the last one is leaving. @pre the object is there.
    [[nodiscard]] bool use_unless_over() noexcept {
        // relaxed: who calls keeps the object there, and what orders the rest is a lock
        std::size_t users = users_.load(std::memory_order_relaxed);
        while (users != 0 &&
               !users_.compare_exchange_weak(users, users + 1, std::memory_order_relaxed)) {
        }
        return users != 0;
    }

#if defined(__cpp_lib_jthread)
    struct cancel_by_stop {
        group_state* group; ///< its destructor waits for the end of this call
        void operator()() const noexcept {
            if (!group->use_unless_over())
                return;
            group->cancel_or_leave();
            group->leave(); // may destroy this
        }
    };
    struct stop_link {
        std::stop_source source;
        std::optional<std::stop_callback<cancel_by_stop>> callback;
    };
#endif

    /// @pre the lock is held. The same holds for what follows.
    void add_one() noexcept {
        if (count_++ == 0 && outer_) {
            const std::scoped_lock lock(outer_->mutex_);
            outer_->add_one();
        }
    }
    void take_one(linked_list<drain_waiter>& woken) noexcept {
        PAWL_ASSERT(count_ != 0);
        if (--count_ != 0)
            return;
        while (drain_waiter* const w = waiters_.pop_front()) {
            w->phase = drain_waiter::state::drained;
            woken.push_back(*w);
        }
        if (outer_) {
            const std::scoped_lock lock(outer_->mutex_);
            outer_->take_one(woken);
        }
    }
    void finish(drain_waiter& w) noexcept {
        if (w.phase == drain_waiter::state::waiting && w.self) {
            waiters_.erase(w);
            w.self.reset(); // not the last one: the caller has another
        }
        if (w.phase == drain_waiter::state::waiting)
            w.phase = drain_waiter::state::over;
    }

    spin_mutex mutex_;
    std::atomic<std::size_t> users_{1};
    const executor_type executor_;
    group_state* const outer_ = nullptr;
    std::size_t count_ = 0; ///< members, and inner groups with members
    bool cancelled_ = false;
    boost::system::error_code cause_;
    linked_list<group_member> armed_; ///< the armed members, and no others
    linked_list<group_state> groups_; ///< inner groups
    linked_list<drain_waiter> waiters_;
#if defined(__cpp_lib_jthread)
    std::unique_ptr<stop_link> stop_; ///< made once, under the lock
#endif
};

/// The limit of a limited_token: a membership instead of a time. The group has the executor for
/// operations and handlers without one.
struct group_limit {
    using timer_type = group_member;

    group_state* group;

    constexpr void check() const noexcept {}
};

/// The membership of an alarm, in its block. It ends with the alarm, or when the group is cancelled:
/// cancel() itself is the carrier then. The member goes at that moment, the group's state with this.
class alarm_member : private wait_operation {
public:
    explicit alarm_member(const group_limit& limit) noexcept
        : wait_operation(&alarm_member::perform, false), group_(limit.group) {
        group_->use();
    }
    alarm_member& operator=(alarm_member&&) = delete;
    ~alarm_member() { group_->leave(); }

    /// @param bar called in any thread, when the group is cancelled, or is already; calls part().
    void join(alarm_wait& alarm, void (*bar)(alarm_wait&)) noexcept {
        alarm_ = &alarm;
        bar_ = bar;
        std::construct_at(&member_, group_limit{group_}, 0);
        member_.start(*this);
    }

    /// The alarm goes. @return false if it was barred, or is about to be.
    [[nodiscard]] bool end() noexcept {
        if (!group_->end(member_, *this))
            return false;
        std::destroy_at(&member_);
        return true;
    }

    void part() noexcept {
        (void)group_->arrive(*this);
        std::destroy_at(&member_);
    }

private:
    static void perform(wait_operation& op, action, wait_arbiter*) { // hand_over: there is no other
        auto& self = static_cast<alarm_member&>(op);
        self.bar_(*self.alarm_);
    }

    group_state* const group_;
    alarm_wait* alarm_ = nullptr;
    void (*bar_)(alarm_wait&) = nullptr;
    union {
        group_member member_; ///< its destructor leaves the group
    };
};

group_member::~group_member() {
    if (newest() != nullptr) // not if it could not be started
        group_->part();
}

bool group_member::start(wait_operation& op) {
    group_->join(*this, op);
    return true;
}

bool group_member::end(wait_operation& op) noexcept { return group_->end(*this, op); }

/// An operation that was cancelled by its group reports the cause.
struct report_cause : limits_coroutines {
    template <class Signature>
    using signature = typename open_signature<Signature>::type;

    template <class Handler, class First, class... Rest>
        requires is_error<First>
    static void invoke(Handler&& handler, const verdict& v, First&& first, Rest&&... rest) {
        std::decay_t<First> error(std::forward<First>(first));
        if (v.by == verdict::who::limit)
            replace(error, v.code);
        std::move(handler)(std::move(error), std::forward<Rest>(rest)...);
    }

    template <class Handler, class... Args>
    static void invoke(Handler&& handler, const verdict&, Args&&... args) {
        std::move(handler)(std::forward<Args>(args)...);
    }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_GROUP_MEMBER_HPP
