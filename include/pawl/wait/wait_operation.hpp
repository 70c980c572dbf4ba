// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One asynchronous wait without the type of its handler, the part of a timer that a shard knows,
///   and what the two need of the world above them.
///
/// Model
///   A timer_core holds one node of the time structure and a ring of its waits in start order. All
///   waits of a timer share its expiry, so the time structure files timers, not waits.
///
/// Threads
///   Every field is guarded by the lock of the shard, except where it says otherwise.
///
/// Cost
///   32 bytes a wait, 40 if its handler may have a cancellation slot; plus the handler, plus the
///   executor where the handler has one of its own.
#ifndef PAWL_WAIT_WAIT_OPERATION_HPP
#define PAWL_WAIT_WAIT_OPERATION_HPP

#include <pawl/wait/wait_state.hpp>

#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <utility>

namespace pawl::detail {

class slot_link;
class timer_core;
class wait_host;
class wait_operation;

/// The part of a timer that its shard knows: where it is filed, and who waits on it.
class timer_core : public time::timer_node {
public:
    /// The newest wait, whose `next` is the oldest; nullptr if nobody waits.
    [[nodiscard]] wait_operation* newest() const noexcept { return newest_; }
    [[nodiscard]] inline wait_operation* oldest() const noexcept;
    void set_newest(wait_operation* op) noexcept { newest_ = op; }

    /// Adds a wait behind the others.
    inline void append(wait_operation& op) noexcept;

    /// Lets go of a wait. O(1) for the oldest, O(number of waits) for another one.
    inline void remove(wait_operation& op) noexcept;

    /// Calls `f(wait_operation&)` for each wait, the oldest first. `f` may remove the wait it is
    /// given.
    template <class Function>
    void for_each_wait(Function f) const;

    /// Asks for the newest wait, in most cases the only one.
    void prefetch_wait() const noexcept { pawl::detail::prefetch_to_write(newest_); }

private:
    wait_operation* newest_ = nullptr;
};

/// How a wait was given a result.
enum class wait_ending : unsigned char {
    none,      ///< not at all: its deadline has not come, or came
    cancelled, ///< the deadline was called off
    early,     ///< as if the deadline had come: by expire_all(), or since a ring has no room
};

/// One asynchronous wait. The type of its handler is behind one function pointer.
class wait_operation {
public:
    /// What is to be done with a wait that the caller owns. None of it happens under a lock.
    enum class action {
        complete,    ///< free the memory, then invoke the handler here
        hand_over,   ///< send a carrier to the executor of the handler
        regain_work, ///< waits again after that, so that it needs work on that executor again
        destroy,     ///< free the memory, do not invoke the handler
    };
    using function = void (*)(wait_operation&, action, wait_host*);

    wait_operation(const wait_operation&) = delete;
    wait_operation& operator=(const wait_operation&) = delete;

    void complete() { function_(*this, action::complete, nullptr); }
    void hand_over(wait_host& host) { function_(*this, action::hand_over, &host); }
    void regain_work() { function_(*this, action::regain_work, nullptr); }
    void destroy() { function_(*this, action::destroy, nullptr); }

    /// The handler runs in whatever thread runs the context of the timer; there is no hand-over.
    [[nodiscard]] bool direct() const noexcept { return direct_; }

    /// Somebody besides the timer points at the wait: a cancellation slot, or the object that it is
    /// part of.
    [[nodiscard]] bool observed() const noexcept { return held_ || slot() != nullptr; }

    /// The timer, until the wait is cancelled.
    [[nodiscard]] timer_core* owner() const noexcept {
        return has_result() ? nullptr : owner_or_category_.owner;
    }
    /// The same. @pre it is not cancelled.
    [[nodiscard]] timer_core& timer() const noexcept {
        PAWL_ASSERT(owner());
        return *owner_or_category_.owner;
    }
    void set_owner(timer_core* timer) noexcept { owner_or_category_.owner = timer; }

    /// Ended with `ec`: the wait has no timer any more.
    void set_result(const boost::system::error_code& ec,
                    wait_ending how = wait_ending::cancelled) noexcept {
        ending_ = how;
        value_ = ec.value();
        owner_or_category_.category = &ec.category();
    }
    /// What the handler is told.
    [[nodiscard]] boost::system::error_code result() const noexcept {
        return has_result() ? boost::system::error_code(value_, *owner_or_category_.category)
                            : boost::system::error_code();
    }
    /// The deadline does not matter any more, as opposed to having come, perhaps early. The result does
    /// not tell: expire_all() may be given any code.
    [[nodiscard]] bool was_cancelled() const noexcept { return ending_ == wait_ending::cancelled; }

    /// The handler in the cancellation slot, if one is connected.
    [[nodiscard]] slot_link* slot() const noexcept;
    void set_slot(slot_link* link) noexcept;

    wait_operation* next = nullptr; ///< ring of the waits of one timer, in start order
    wait_state state;

protected:
    enum class kind : unsigned char {
        slotless,
        slotted, ///< a slotted_wait
        held,    ///< part of an object that may end it
    };

    wait_operation(function f, bool direct, kind k) noexcept
        : direct_(direct), has_slot_(k == kind::slotted), held_(k == kind::held), function_(f) {}
    ~wait_operation() = default;

private:
    /// Which one of the union is there.
    [[nodiscard]] bool has_result() const noexcept { return ending_ != wait_ending::none; }

    const bool direct_ : 1;
    const bool has_slot_ : 1; ///< this is a slotted_wait
    const bool held_ : 1;
    wait_ending ending_ = wait_ending::none;
    int value_ = 0;
    union {
        timer_core* owner;
        const boost::system::error_category* category;
    } owner_or_category_{nullptr};
    function function_;
};

wait_operation* timer_core::oldest() const noexcept {
    wait_operation* const last = newest();
    return last ? last->next : nullptr;
}

void timer_core::append(wait_operation& op) noexcept {
    if (wait_operation* const last = newest())
        op.next = std::exchange(last->next, &op);
    else
        op.next = &op;
    set_newest(&op);
    op.set_owner(this);
}

void timer_core::remove(wait_operation& op) noexcept {
    wait_operation* before = newest();
    while (before->next != &op)
        before = before->next;
    before->next = op.next;
    if (newest() == &op)
        set_newest(before == &op ? nullptr : before);
}

template <class Function>
void timer_core::for_each_wait(Function f) const {
    wait_operation* const last = newest();
    wait_operation* ahead = last ? last->next : nullptr;
    while (ahead) {
        wait_operation& op = *ahead;
        ahead = &op == last ? nullptr : op.next;
        f(op);
    }
}

/// A wait whose handler may have a cancellation slot.
class slotted_wait : public wait_operation {
protected:
    slotted_wait(function f, bool direct) noexcept : wait_operation(f, direct, kind::slotted) {}
    ~slotted_wait() = default;

private:
    friend class wait_operation;

    slot_link* slot_ = nullptr;
};

/// A wait whose handler has none.
class slotless_wait : public wait_operation {
protected:
    slotless_wait(function f, bool direct) noexcept : wait_operation(f, direct, kind::slotless) {}
    ~slotless_wait() = default;
};

inline slot_link* wait_operation::slot() const noexcept {
    return has_slot_ ? static_cast<const slotted_wait*>(this)->slot_ : nullptr;
}

inline void wait_operation::set_slot(slot_link* link) noexcept {
    PAWL_ASSERT(has_slot_);
    static_cast<slotted_wait*>(this)->slot_ = link;
}

/// What a wait needs of the shard that holds it. Carriers, cancellation slots and timers may
/// outlive the execution context: each keeps its host alive by a user count that the host's lock
/// guards.
class wait_host {
public:
    /// That of the timers. May be gone when the service is shut down.
    [[nodiscard]] virtual const boost::asio::execution_context& context() const noexcept = 0;

    /// A carrier has come to where the handler can be invoked.
    /// @return true if it must complete the wait. false if the wait was pulled back: call park().
    [[nodiscard]] virtual bool arrive(wait_operation& op) noexcept = 0;

    /// Ends the carrier of a wait that was pulled back.
    /// @return false if it has fallen due again in the meantime: the carrier must complete it.
    [[nodiscard]] virtual bool park(wait_operation& op) noexcept = 0;

    /// arrive() or else park(), for a carrier that is still in a unit of the timers' context.
    /// @return as arrive().
    [[nodiscard]] virtual bool arrive_or_park(wait_operation& op) = 0;

    /// A carrier is destroyed before it got there: its executor has been shut down.
    virtual void abandon(wait_operation& op) noexcept = 0;

    /// A cancellation signal was emitted.
    virtual void cancel(slot_link& link) = 0;

    /// The handler in the slot is destroyed, while its wait may go on.
    virtual void forget(slot_link& link) noexcept = 0;

protected:
    ~wait_host() = default;
};

/// The handler that a wait puts into the cancellation slot of its completion handler.
///
/// It and the wait point at each other, and whoever goes first clears the other's pointer. So it
/// holds no address of the timer (which may move), and a signal that is emitted after the wait has
/// completed, or after its timer or even its context is gone, finds nothing and does nothing.
/// Once the wait is started, the link is a user of the host, and keeps it alive.
class slot_link {
public:
    slot_link(wait_host& host, wait_operation& op) noexcept : host_(&host), op_(&op) {
        op.set_slot(this);
    }
    slot_link(const slot_link&) = delete;
    slot_link& operator=(const slot_link&) = delete;
    ~slot_link() {
        if (started_)
            host_->forget(*this);
        else if (op_)
            unlink();
    }

    void operator()(boost::asio::cancellation_type_t type) {
        using boost::asio::cancellation_type;
        const auto any =
            cancellation_type::terminal | cancellation_type::partial | cancellation_type::total;
        if (started_ && (type & any) != cancellation_type::none)
            host_->cancel(*this);
    }

    /// The wait is started: the host counts the link as a user until it calls forget().
    void set_started() noexcept { started_ = true; }

    /// The wait, or nullptr. Guarded by the lock of the shard once the wait is started.
    [[nodiscard]] wait_operation* operation() const noexcept { return op_; }

    /// Cuts the link.
    void unlink() noexcept {
        op_->set_slot(nullptr);
        op_ = nullptr;
    }

private:
    wait_host* const host_;
    wait_operation* op_;
    bool started_ = false; ///< written by the thread that starts the wait, before it can end
};

} // namespace pawl::detail

#endif // PAWL_WAIT_WAIT_OPERATION_HPP
