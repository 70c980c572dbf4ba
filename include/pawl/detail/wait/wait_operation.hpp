// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One asynchronous wait. The type of its handler is behind one function pointer. wait_arbiter is the
///   shard as a wait sees it, slot_link what a wait has in a cancellation slot.
///
/// Threads
///   The shard's lock guards every field, except where noted.
///
/// Cost
///   32 bytes per wait, 40 if its handler may have a cancellation slot; plus the handler, plus its
///   executor if it has its own.
#ifndef PAWL_DETAIL_WAIT_WAIT_OPERATION_HPP
#define PAWL_DETAIL_WAIT_WAIT_OPERATION_HPP

#include <pawl/detail/wait/wait_state.hpp>

#include <pawl/config.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <utility>

namespace pawl::detail {

class slot_link;
class timer_core;
class wait_operation;

/// What decides the races of a wait: the shard of its timer, or the group of a member. Carriers,
/// cancellation slots and timers may outlive the execution context: each is counted as a user, which
/// keeps the arbiter alive. The arbiter's lock guards that count.
class wait_arbiter {
public:
    /// The context of the timers. It may be gone once the service is shut down.
    [[nodiscard]] virtual const boost::asio::execution_context& context() const noexcept = 0;

    /// A carrier has arrived where the handler can be invoked.
    /// @return true if it must complete the wait; false if the wait was pulled back: call
    ///         arrive_or_park().
    [[nodiscard]] virtual bool arrive(wait_operation& op) noexcept = 0;

    /// Ends a carrier: arrive(), unless the wait was pulled back and has not become due again. In a
    /// unit of the timers' context arrive() need not be called before.
    /// @return true if the caller must complete the wait; false if that goes on without a carrier.
    [[nodiscard]] virtual bool arrive_or_park(wait_operation& op) noexcept = 0;

    /// A carrier was destroyed without being invoked: its executor was shut down.
    virtual void abandon(wait_operation& op) noexcept = 0;

    /// A cancellation signal was emitted.
    virtual void cancel(slot_link& link) = 0;

    /// The handler in the slot is destroyed; its wait may continue.
    virtual void forget(slot_link& link) noexcept = 0;

protected:
    ~wait_arbiter() = default;
};

/// Why a wait has a result.
enum class wait_ending : unsigned char {
    none,      ///< it has none: armed, or due by its deadline
    cancelled, ///< the deadline no longer matters
    early,     ///< completed as if due: by expire_all(), or because a ring is full
};

class wait_operation {
public:
    /// What to do with a wait that the caller owns. Never called under a lock.
    enum class action {
        complete,    ///< free the memory, then invoke the handler here
        hand_over,   ///< send a carrier to the executor of the handler
        regain_work, ///< it waits again after a hand-over: acquire work on that executor
        destroy,     ///< free the memory without invoking the handler
    };
    using function = void (*)(wait_operation&, action, wait_arbiter*);

    wait_operation& operator=(wait_operation&&) = delete;

    void complete() { function_(*this, action::complete, nullptr); }
    void hand_over(wait_arbiter& arbiter) { function_(*this, action::hand_over, &arbiter); }
    void regain_work() { function_(*this, action::regain_work, nullptr); }
    void destroy() { function_(*this, action::destroy, nullptr); }

    /// The handler runs in the thread that runs the context of the timer, without a hand-over.
    [[nodiscard]] bool direct() const noexcept { return direct_; }

    /// Something besides the timer points at the wait: a cancellation slot, or the enclosing
    /// object.
    [[nodiscard]] bool shared() const noexcept { return embedded_ || slot() != nullptr; }

    /// This is an alarm_wait.
    [[nodiscard]] bool is_alarm() const noexcept { return alarm_; }

    /// The timer; nullptr once the wait has a result.
    [[nodiscard]] timer_core* owner() const noexcept {
        return has_result() ? nullptr : owner_or_category_.owner;
    }
    /// The same.
    /// @pre the wait has no result.
    [[nodiscard]] timer_core& timer() const noexcept {
        PAWL_ASSERT(owner());
        return *owner_or_category_.owner;
    }
    void set_owner(timer_core* timer) noexcept { owner_or_category_.owner = timer; }
    /// The wait of an alarm starts again: it has no result any more.
    void clear_result(timer_core& timer) noexcept {
        if (std::exchange(ending_, wait_ending::none) != wait_ending::none)
            set_owner(&timer);
    }

    /// The wait of an alarm ends without a result, and without a timer.
    void lose_owner() noexcept {
        ending_ = wait_ending::none;
        set_owner(nullptr);
    }

    /// Sets the result to `ec`. The wait no longer has a timer.
    void set_result(const boost::system::error_code& ec,
                    wait_ending how = wait_ending::cancelled) noexcept {
        ending_ = how;
        value_ = ec.value();
        owner_or_category_.category = &ec.category();
    }
    /// The error code for the handler.
    [[nodiscard]] boost::system::error_code result() const noexcept {
        return has_result() ? boost::system::error_code(value_, *owner_or_category_.category)
                            : boost::system::error_code();
    }
    /// Whether the wait was cancelled, as opposed to due or completed early. The error code does
    /// not tell: expire_all() accepts any code.
    [[nodiscard]] bool was_cancelled() const noexcept { return ending_ == wait_ending::cancelled; }

    /// Whether the wait was refused when it was started: see options::max_pending.
    [[nodiscard]] bool refused() const noexcept { return special_ && !alarm_ && !on_trial_; }
    /// Before other threads know the wait.
    void set_refused() noexcept { special_ = true; }
    /// See wait_ledger::trial.
    [[nodiscard]] bool on_trial() const noexcept { return on_trial_; }
    void set_on_trial(bool on) noexcept { special_ = on_trial_ = on; }
    /// This is an alarm_wait, refused, or on trial.
    [[nodiscard]] bool special() const noexcept { return special_; }

    /// The handler in the cancellation slot; nullptr if none is connected.
    [[nodiscard]] slot_link* slot() const noexcept;
    void set_slot(slot_link* link) noexcept;

    wait_operation* next = nullptr; ///< circular list of the waits of one timer, in start order
    wait_state state;

protected:
    enum class kind : unsigned char {
        slotless,
        slotted,  ///< a slotted_wait
        embedded, ///< part of an object that may withdraw it
        alarm,    ///< an alarm_wait
    };

    wait_operation(function f, bool direct, kind k = kind::slotless) noexcept
        : direct_(direct), has_slot_(k == kind::slotted),
          embedded_(k == kind::embedded || k == kind::alarm), alarm_(k == kind::alarm),
          special_(alarm_), function_(f) {}
    ~wait_operation() = default;

private:
    /// Which member of the union is active.
    [[nodiscard]] bool has_result() const noexcept { return ending_ != wait_ending::none; }

    const bool direct_ : 1;
    const bool has_slot_ : 1; ///< this is a slotted_wait
    const bool embedded_ : 1;
    const bool alarm_ : 1;
    bool special_ : 1; ///< one bit, which costs the others one test
    bool on_trial_ : 1 = false;
    wait_ending ending_ = wait_ending::none;
    int value_ = 0;
    union {
        timer_core* owner;
        const boost::system::error_category* category;
    } owner_or_category_{nullptr};
    function function_;
};

/// A wait whose handler may have a cancellation slot.
class slotted_wait : public wait_operation {
protected:
    slotted_wait(function f, bool direct) noexcept : wait_operation(f, direct, kind::slotted) {}
    ~slotted_wait() = default;

private:
    friend class wait_operation;

    slot_link* slot_ = nullptr;
};

/// The wait of an alarm, which is started any number of times.
///
/// Model
///   The alarm holds the object, and so does each thread that is about to call its function: the
///   last one frees it. If the alarm goes while a carrier is on its way, the hold of the alarm is
///   left to the carrier.
class alarm_wait : public wait_operation {
public:
    /// A function without a parameter cannot be told of an early end, so that disarms the alarm.
    [[nodiscard]] bool takes_code() const noexcept { return takes_code_; }
    /// Others wait for the function: it is called however the wait ends early, with
    /// `operation_aborted`.
    [[nodiscard]] bool always_calls() const noexcept { return always_calls_; }

    void hold() noexcept { holds_.fetch_add(1, std::memory_order_relaxed); }
    /// @return whether the caller must free the object. acq_rel: after all that others did with it.
    [[nodiscard]] bool leave(unsigned holds) noexcept {
        return holds_.fetch_sub(holds, std::memory_order_acq_rel) == holds;
    }

    bool condemned = false; ///< the alarm has left its hold to the carrier
    bool barred = false;    ///< its group is cancelled: it is not armed any more

protected:
    /// @param timer has no other wait.
    alarm_wait(function f, bool direct, bool takes_code, bool always_calls,
               timer_core& timer) noexcept
        : wait_operation(f, direct, kind::alarm), takes_code_(takes_code),
          always_calls_(always_calls) {
        next = this;
        set_owner(&timer);
    }
    ~alarm_wait() = default;

private:
    const bool takes_code_;
    const bool always_calls_;
    std::atomic<unsigned> holds_{1};
};

inline slot_link* wait_operation::slot() const noexcept {
    return has_slot_ ? static_cast<const slotted_wait*>(this)->slot_ : nullptr;
}

inline void wait_operation::set_slot(slot_link* link) noexcept {
    PAWL_ASSERT(has_slot_);
    static_cast<slotted_wait*>(this)->slot_ = link;
}

/// The handler that a wait installs in the cancellation slot of its completion handler.
///
/// Link and wait point at each other; the first to go clears the other's pointer. The link does not
/// hold the address of the timer, which may move. A signal emitted after the wait has completed, or
/// after its timer or context is gone, finds nothing and does nothing. Once the wait is started, the
/// link is a user of the arbiter.
class slot_link {
public:
    slot_link(wait_arbiter& arbiter, wait_operation& op) noexcept : arbiter_(&arbiter), op_(&op) {
        op.set_slot(this);
    }
    slot_link& operator=(slot_link&&) = delete;
    ~slot_link() {
        if (started_)
            arbiter_->forget(*this);
        else if (op_)
            unlink();
    }

    void operator()(boost::asio::cancellation_type_t type) {
        using boost::asio::cancellation_type;
        const auto any =
            cancellation_type::terminal | cancellation_type::partial | cancellation_type::total;
        if (started_ && (type & any) != cancellation_type::none)
            arbiter_->cancel(*this);
    }

    /// The wait is started: from now on the arbiter counts the link as a user, until it calls
    /// forget().
    void set_started() noexcept { started_ = true; }

    /// The wait, or nullptr. Guarded by the shard's lock once the wait is started.
    [[nodiscard]] wait_operation* operation() const noexcept { return op_; }

    /// Cuts the link.
    void unlink() noexcept {
        PAWL_ASSERT(op_);
        op_->set_slot(nullptr);
        op_ = nullptr;
    }

private:
    wait_arbiter* const arbiter_;
    wait_operation* op_;
    bool started_ = false; ///< written before the wait can end, by the thread that starts it
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_WAIT_OPERATION_HPP
