// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One timer of an event queue: its schedule, its function, and its events in the queue.
///
/// Model
///   armed --disarm()--> ending --last event is taken--> ended
///     `------ one-off is emitted -------^                 ^
///     `--------------------- destroy() -------------------'
///   `ending` is luamockit's MFD mark ("marked for destruction"). The last event carries its MOD
///   mark ("mark of destruction"): no event of the timer follows it. Earlier events in the queue do
///   not change.
///
/// Threads
///   The lock of the queue guards all members except `phase` and `wait`. `wait`, an ordinary Pawl
///   timer, is guarded by `wait_mutex`, which is locked before the queue's lock.
#ifndef PAWL_DETAIL_QUEUE_QUEUE_TIMER_HPP
#define PAWL_DETAIL_QUEUE_QUEUE_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/event_queue_options.hpp>

#include <pawl/detail/interval/interval_grid.hpp>

#include <pawl/detail/service/own_block.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class queue_core;

template <class Clock, class WaitTraits>
struct queue_timer : std::enable_shared_from_this<queue_timer<Clock, WaitTraits>> {
    using core_type = queue_core<Clock, WaitTraits>;
    using event_type = basic_queue_event<Clock>;
    using time_point = typename Clock::time_point;
    using wait_type = basic_waitable_timer<Clock, WaitTraits, boost::asio::any_io_executor>;

    using block_type = own_block<256>;

    enum class phase_type : unsigned char { armed, ending, ended };

    queue_timer(std::shared_ptr<core_type> c, const boost::asio::any_io_executor& ex)
        : core(std::move(c)), wait(ex) {}
    queue_timer& operator=(queue_timer&&) = delete;
    virtual ~queue_timer() = default;

    /// Calls the function. @pre it was not destroyed.
    virtual void invoke(const event_type& event) = 0;
    /// Destroys the function.
    virtual void drop() noexcept = 0;

    const std::shared_ptr<core_type> core;

    std::atomic<phase_type> phase{phase_type::armed}; ///< written under the lock of the queue
    std::optional<interval_grid<Clock>> grid;         ///< for an interval
    time_point due{};                                 ///< for a one-off
    const void* run_by = nullptr;      ///< the thread that runs or destroys its function
    std::size_t slots = 0;             ///< slots with its events, dropped ones included
    std::size_t ticks = 0;             ///< of these, ticks to be handled
    bool last_counts = false;          ///< the last event will be handled
    std::uint64_t owed = 0;            ///< ticks that the next event stands for
    std::shared_ptr<queue_timer> self; ///< while listed
    bool over = false;                 ///< in the list of timers to release
    boost::intrusive::list_member_hook<> listed;
    boost::intrusive::list_member_hook<> stalled; ///< while it waits for room
    bool has_stalled = false;                     ///< it has waited for room
    bool adrift = false; ///< stalled without a wait: the host starts the next one

    std::mutex wait_mutex;
    wait_type wait;
    bool starting = false; ///< a wait is being started
    bool refused = false;  ///< the timer was destroyed in the meantime
    block_type block;      ///< memory of that wait: see the one-wait invariant of timer_waits.hpp
};

template <class Clock, class WaitTraits, class Function>
class queue_timer_for final : public queue_timer<Clock, WaitTraits> {
    using base = queue_timer<Clock, WaitTraits>;

public:
    template <class F>
    queue_timer_for(std::shared_ptr<typename base::core_type> c,
                    const boost::asio::any_io_executor& ex, F&& f)
        : base(std::move(c), ex), function_(std::in_place, std::forward<F>(f)) {}

    void invoke(const typename base::event_type& event) override {
        if constexpr (std::invocable<Function&, const typename base::event_type&>)
            std::invoke(*function_, event);
        else
            std::invoke(*function_);
    }
    void drop() noexcept override { function_.reset(); }

private:
    std::optional<Function> function_;
};

/// The handler of a timer's wait. If it is destroyed uncalled, its context is gone.
template <class Clock, class WaitTraits>
class queue_wait_handler {
    using timer = queue_timer<Clock, WaitTraits>;

public:
    using allocator_type = own_block_allocator<void, typename timer::block_type>;

    explicit queue_wait_handler(timer& t) : timer_(t.shared_from_this()), block_(&t.block) {}
    queue_wait_handler(queue_wait_handler&&) noexcept = default;
    queue_wait_handler& operator=(queue_wait_handler&&) = delete;
    ~queue_wait_handler() {
        if (!timer_)
            return;
        if (timer_->starting)
            timer_->refused = true;
        else
            timer_->core->wait_destroyed(*timer_);
    }

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(*block_); }

    void operator()(const boost::system::error_code& ec) {
        const auto t = std::exchange(timer_, nullptr);
        t->core->wait_ended(*t, ec);
    }

private:
    std::shared_ptr<timer> timer_;
    typename timer::block_type* block_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUE_TIMER_HPP
