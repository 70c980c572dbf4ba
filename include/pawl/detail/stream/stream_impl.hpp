// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The state that a pawl::timeout_stream shares with its operations: the next layer, the limits,
///   and the one timer for all of them.
///
/// Model
///   The table says when a deadline exists. At most one wait is pending, and it ends no later than
///   the earliest deadline. An earlier deadline moves the wait. A deadline that disappears or moves
///   later leaves the wait alone. At the end of the wait, end_expired() ends what has expired, and
///   waits for the earliest deadline then.
///
///     deadline       exists while                               moves
///     read, write    such an operation is pending, not ended    -
///     rate           the same, in a transfer with a min_rate    when the transfer ends, by set_limits()
///     (a connect is a write whose deadline is its handshake limit)
///     total          a read or write is pending, not ended      by expires_at()
///     handshake      a guard lives, until it has expired        -
///     idle           a limit is set, the layer is open, and     when bytes move
///                    it has not expired; a scaled limit also has
///                    an alarm, which is moved each time
///
/// Invariants
///   - With waiting_, the wait is pending or its handler queued, and timer_.expiry() <= earliest().
///     Without it, there is no deadline, or close() was called. With refused_ as well, the wait was
///     refused (options::max_pending): end_expired() comes now, as if all limits had expired, and no
///     operation with a limit starts before.
///   - `ended` implies `pending`.
///
/// Threads
///   One at a time: the executor of the layer.
///
/// Cost
///   An operation reads the clock at its start if it has a limit, and at its end if bytes moved and
///   there is an idle limit. Only a deadline earlier than all others touches the wait.
#ifndef PAWL_DETAIL_STREAM_STREAM_IMPL_HPP
#define PAWL_DETAIL_STREAM_STREAM_IMPL_HPP

#include <pawl/config.hpp>

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/error.hpp>
#include <pawl/stream_limits.hpp>

#include <pawl/detail/stream/next_layer.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/timer_handle.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pawl {
template <class, class, class, class>
class basic_alarm;
} // namespace pawl

namespace pawl::detail {

enum class direction : std::uint8_t { read, write };

template <class NextLayer, class Clock, class WaitTraits>
class stream_impl : public std::enable_shared_from_this<stream_impl<NextLayer, Clock, WaitTraits>> {
public:
    using error_code = boost::system::error_code;
    using executor_type = std::decay_t<decltype(std::declval<NextLayer&>().get_executor())>;
    using time_point = typename Clock::time_point;
    using limit = stream_limits::duration;

    template <class... Args>
    explicit stream_impl(Args&&... args)
        : layer_(std::forward<Args>(args)...), timer_(layer_.get_executor()),
          silence_(layer_.get_executor(), silence_ends{this}) {}

    [[nodiscard]] NextLayer& layer() noexcept { return layer_; }
    [[nodiscard]] const executor_type& get_executor() noexcept { return timer_.get_executor(); }

    // ---- limits ---------------------------------------------------------------------------------

    [[nodiscard]] const stream_limits& limits() const noexcept { return limits_; }

    void set_limits(const stream_limits& limits) {
        if (limits.min_rate.bytes_per_second != 0 && limits.min_rate.grace <= limit::zero())
            throw std::invalid_argument("pawl: stream_limits::min_rate needs a grace above 0");
        if (!on_scale && limits.idle.shorter > limit::zero())
            throw std::invalid_argument("pawl: a scaled stream_limits::idle needs a "
                                        "timeout_stream on pawl::scaled_clock");
        const min_rate before = std::exchange(limits_, limits).min_rate;
        const min_rate& rate = limits_.min_rate;
        const bool other_rate =
            rate.bytes_per_second != before.bytes_per_second || rate.grace != before.grace;
        if (!rated())
            end_transfers();
        const time_point now = latest_now<Clock>();
        for (const direction d : both) {
            at(d).deadline = after(now, limit_of(d));
            if (other_rate && at(d).moving) {
                at(d).credit = rate.grace;
                use_credit(d, now);
            }
        }
        if (!limits_silence())
            idling_ = idle_expired_ = false; // watch_silence() follows
        else if (!idling_ && !idle_expired_ && !connecting_ && open())
            begin_idling(now);
        watch_silence(now);
        watch();
    }

    void expires_at(const time_point& t) {
        total_ = t;
        watch();
    }

    void begin_handshake() {
        PAWL_ASSERT(!handshaking_); // one guard at a time
        handshake_ = after(latest_now<Clock>(), limits_.handshake);
        handshaking_ = true;
        handshake_expired_ = false;
        watch();
    }
    void end_handshake() noexcept { handshaking_ = false; }

    // ---- operations -----------------------------------------------------------------------------

    /// A read or a write is about to start.
    /// @return the error to report if it must not start.
    [[nodiscard]] error_code begin(direction d) {
        PAWL_ASSERT("pawl: a stream has one read and one write at a time" && !at(d).pending &&
                    !connecting_);
        if (is_closed_by_limit())
            return report(closed_by_limit_);

        const bool idles = limits_silence() && !idling_ && open();
        if (d == direction::write && rated())
            begin_transfer(d); // the peer may not take even the first byte
        const bool moving = at(d).moving;
        const time_point now = time_of_start(limit_of(d) != none || idles || moving);
        if (everything_expired(now)) {
            end_all(cause::expiry);
            return report(cause::expiry);
        }
        if (moving)
            use_credit(d, now);
        if (idles) {
            begin_idling(now);
            if (std::exchange(idle_expired_, false))
                return report(cause::expiry);
        }
        return start(d, after(now, limit_of(d)));
    }

    /// A read or a write of zero bytes is about to start. It has no limit, and several may be
    /// pending.
    /// @return the error to report if it must not start because a limit has expired.
    [[nodiscard]] error_code begin_empty(direction d) {
        if (at(d).pending) // ssl::stream does this
            return {};
        if (limits_everything() && everything_expired(Clock::now()))
            end_all(cause::expiry);
        else if (is_closed_by_limit())
            return report(closed_by_limit_);
        else if (!std::exchange(idle_expired_, false))
            return {};
        return report(cause::expiry);
    }

    /// The operation has completed. @return the error to report.
    [[nodiscard]] error_code finish(direction d, const error_code& ec, std::size_t size) {
        const cause ended = at(d).ended;
        try { // the clock may throw
            moved(d, size);
            if (rated())
                measure(d, size);
        } catch (...) {
            abandon(d); // the handler goes
            throw;
        }
        if (ended != cause::none && at(d).credit == limit::zero())
            end_transfer(d);
        abandon(d);
        return ec && ended != cause::none ? report(ended) : ec;
    }

    /// The operation will never complete.
    void abandon(direction d) noexcept {
        at(d).pending = false;
        at(d).rate_deadline = never;
        at(d).ended = cause::none;
    }

    [[nodiscard]] error_code begin_connect() {
        PAWL_ASSERT(!at(direction::read).pending && !at(direction::write).pending);
        const time_point now = time_of_start(limits_.handshake != none);
        if (everything_expired(now)) {
            end_all(cause::expiry);
            return report(cause::expiry);
        }
        closed_by_limit_ = cause::none;
        idle_expired_ = false;
        stop_idling();
        end_transfers();
        const error_code ec = start(direction::write, after(now, limits_.handshake)); // may throw
        connecting_ = !ec;
        return ec;
    }

    [[nodiscard]] error_code finish_connect(const error_code& ec) {
        const cause ended = at(direction::write).ended;
        abandon_connect();
        if (!ec)
            connected();
        return ec && ended != cause::none ? report(ended) : ec;
    }

    void abandon_connect() noexcept {
        connecting_ = false;
        abandon(direction::write);
    }

    /// The layer is connected, maybe again; idle time counts from now.
    void connected() {
        closed_by_limit_ = cause::none;
        idle_expired_ = false;
        if (limits_silence())
            begin_idling(latest_now<Clock>());
    }

    /// `size` bytes have moved.
    std::size_t moved(direction d, std::size_t size) {
        if (size != 0 && idling_)
            idle_since(latest_now<Clock>());
        if (size != 0)
            end_transfer(d == direction::read ? direction::write : direction::read);
        return size;
    }

    // ---- cancellation ---------------------------------------------------------------------------

    /// The slot for the layer, through which a limit ends the operation of that direction.
    [[nodiscard]] boost::asio::cancellation_slot slot(direction d) noexcept {
        return at(d).signal.slot();
    }

    /// A number that distinguishes the operations of one direction.
    [[nodiscard]] std::uint32_t number(direction d) const noexcept { return at(d).number; }

    /// Cancels that operation, unless it is over.
    void cancel(direction d, std::uint32_t number, boost::asio::cancellation_type_t type) {
        if (at(d).pending && at(d).number == number)
            at(d).signal.emit(type);
    }

    void cancel() {
        if constexpr (can_cancel_lowest<NextLayer>)
            cancel_lowest(layer_);
        else
            for (const direction d : both)
                at(d).signal.emit(boost::asio::cancellation_type::terminal);
    }

    void close() {
        closed_by_limit_ = cause::none;
        stop_watching();
        shut();
    }

    /// No limit applies until an operation starts or a limit is set.
    void stop_watching() {
        stop_idling();
        refused_ = false;
        if (std::exchange(waiting_, false)) {
            ++wait_number_;
            timer_.cancel();
        }
    }

private:
    /// What a limit has done.
    enum class cause : unsigned char {
        none,   ///< nothing
        expiry, ///< it has expired
        refusal ///< its wait was refused: see options::max_pending
    };

    static constexpr limit none = stream_limits::none;
    static constexpr time_point never = time_point::max();
    static constexpr std::array both{direction::read, direction::write};

    /// The pending read or write, if any.
    struct operation {
        time_point deadline;
        time_point rate_deadline = never; ///< never without a transfer
        time_point since;                 ///< its start, in a transfer
        limit credit = limit::zero();     ///< how long the peer may take, in a transfer
        bool moving = false;              ///< a transfer is under way: see min_rate
        boost::asio::cancellation_signal signal;
        std::uint32_t number = 0;
        bool pending = false;
        cause ended = cause::none; ///< by a limit: a failure is reported as that limit
    };

    /// The handler of the wait. It does not keep the stream alive.
    struct watcher {
        std::weak_ptr<stream_impl> impl;
        std::uint32_t number;

        void operator()(const error_code& ec) const {
            if (const auto self = impl.lock(); self && self->wait_number_ == number)
                self->end_expired(ec);
        }
    };

    /// The function of the alarm.
    struct silence_ends {
        using pawl_always_called = void;

        stream_impl* impl;

        void operator()(const error_code& ec) const {
            if (const auto self = impl->weak_from_this().lock(); self && self->idling_)
                self->end_silence(static_cast<bool>(ec));
        }
    };
    struct no_alarm {
        no_alarm(const executor_type&, silence_ends) noexcept {}
    };
    static constexpr bool on_scale = timer_handle<Clock, WaitTraits>::on_scale;
    using silence_alarm =
        std::conditional_t<on_scale, basic_alarm<silence_ends, Clock, executor_type, WaitTraits>,
                           no_alarm>;

    [[nodiscard]] operation& at(direction d) noexcept {
        return operations_[static_cast<std::size_t>(d)];
    }
    [[nodiscard]] const operation& at(direction d) const noexcept {
        return operations_[static_cast<std::size_t>(d)];
    }

    [[nodiscard]] bool rated() const noexcept { return limits_.min_rate.bytes_per_second != 0; }

    void end_transfers() noexcept {
        for (const direction d : both)
            end_transfer(d);
    }
    void end_transfer(direction d) noexcept {
        at(d).moving = false;
        at(d).rate_deadline = never;
    }

    void begin_transfer(direction d) noexcept {
        if (!std::exchange(at(d).moving, true))
            at(d).credit = limits_.min_rate.grace;
    }
    /// The pending operation uses the credit from now.
    void use_credit(direction d, const time_point& now) noexcept {
        at(d).since = now;
        at(d).rate_deadline = after(now, at(d).credit);
    }

    /// The operation has ended. Its time counts, also if no bytes have come.
    void measure(direction d, std::size_t size) {
        operation& op = at(d);
        if (op.moving) { // not below 0: bytes may come after the deadline
            const limit passed = latest_now<Clock>() - op.since;
            op.credit -= std::clamp<limit>(passed, limit::zero(), op.credit);
        }
        if (size == 0)
            return;
        const min_rate& least = limits_.min_rate;
        const std::chrono::duration<double> earned(static_cast<double>(size) /
                                                   static_cast<double>(least.bytes_per_second));
        begin_transfer(d);
        op.credit += std::min<limit>(limit(earned), least.grace - op.credit); // no overflow
    }

    [[nodiscard]] limit limit_of(direction d) const noexcept {
        if (d == direction::read)
            return limits_.read;
        return connecting_ ? limits_.handshake : limits_.write;
    }

    /// A scaled limit may have no longest time.
    [[nodiscard]] bool limits_silence() const noexcept {
        return limits_.idle != none || (on_scale && limits_.idle.least() != none);
    }

    [[nodiscard]] static time_point after(const time_point& now, limit l) noexcept {
        using duration = typename time_point::duration;
        return l == none ? never : saturating_sum(now, std::chrono::ceil<duration>(l));
    }

    [[nodiscard]] bool open() const noexcept {
        if constexpr (knows_whether_open<NextLayer>)
            return lowest_layer(layer_).is_open();
        else
            return !closed_;
    }

    /// Whether it still is: its owner may have opened the layer again.
    [[nodiscard]] bool is_closed_by_limit() noexcept {
        if (closed_by_limit_ != cause::none && open())
            closed_by_limit_ = cause::none;
        return closed_by_limit_ != cause::none;
    }

    [[nodiscard]] error_code report(cause why) const {
        if (why == cause::refusal)
            return boost::asio::error::no_buffer_space;
        if (limits_.report == limit_error::timed_out)
            return error::timed_out;
        return boost::beast::error::timeout;
    }

    /// Whether there is a limit whose expiry rejects new operations.
    [[nodiscard]] bool limits_everything() const noexcept {
        return total_ != never || handshaking_;
    }
    [[nodiscard]] bool everything_expired(const time_point& now) const noexcept {
        return total_ <= now || (handshaking_ && (handshake_expired_ || handshake_ <= now));
    }

    /// The start time of an operation.
    /// @param limits whether limits begin with it.
    [[nodiscard]] time_point time_of_start(bool limits) const {
        if (limits_everything()) // these may have expired, so read the exact clock
            return Clock::now();
        return limits ? latest_now<Clock>() : time_point{};
    }

    /// @return the error to report if its limit was refused.
    [[nodiscard]] error_code start(direction d, const time_point& deadline) {
        const time_point first =
            std::min({deadline, at(d).rate_deadline, total_, handshake_deadline()});
        watch_until(first); // close() stops watching
        if (refused_ && (first != never || idling_)) {
            if (limits_.action == on_limit::close)
                end_all(cause::refusal);
            return report(cause::refusal);
        }
        operation& op = at(d);
        op.deadline = deadline;
        op.pending = true;
        ++op.number;
        return {};
    }

    void begin_idling(const time_point& now) {
        watch_until(after(now, limits_.idle));
        idling_ = true;
        idle_since(now);
    }
    void stop_idling() {
        idling_ = false;
        watch_silence({});
    }
    void idle_since(const time_point& now) {
        moved_ = now;
        watch_silence(now);
    }

    // ---- watching -------------------------------------------------------------------------------

    /// Whether the operation may have a deadline.
    [[nodiscard]] bool limited(direction d) const noexcept {
        return at(d).pending && at(d).ended == cause::none;
    }

    [[nodiscard]] time_point handshake_deadline() const noexcept {
        return handshaking_ && !handshake_expired_ ? handshake_ : never;
    }

    [[nodiscard]] time_point earliest() const noexcept {
        time_point t = never;
        for (const direction d : both) {
            if (limited(d))
                t = std::min({t, at(d).deadline, at(d).rate_deadline, total_});
        }
        t = std::min(t, handshake_deadline());
        if (idling_)
            t = std::min(t, after(moved_, limits_.idle));
        return t;
    }

    /// A scaled limit has an alarm, which pressure may call before the deadline. If it is refused,
    /// the deadline is left; without one, the wait for the least time, which is refused, too.
    void watch_silence([[maybe_unused]] const time_point& now) {
        if constexpr (on_scale) {
            if (!idling_ || limits_.idle.shorter <= limit::zero())
                return void(silence_.disarm());
            const std::chrono::nanoseconds passed = now - moved_;
            if (!silence_.arm_within(limits_.idle.least() - passed, limits_.idle - passed) &&
                limits_.idle == none)
                watch_until(after(now, limits_.idle.least() - passed));
        }
    }
    /// @param early by expire_all(). If there is a wait for the deadline, that ends, too, and does
    ///     the rest.
    void end_silence(bool early) {
        if (early && limits_.idle != none)
            return;
        then_watch([&] {
            if (expire_idle(now_after(silence_.expiry()), early, cause::expiry))
                end_all(cause::expiry);
        });
        if (earliest() == never && !idling_)
            stop_watching(); // the wait for the deadline is left
    }

    /// Limits have changed.
    void watch() {
        const bool rates = std::ranges::any_of(
            both, [this](direction d) { return limited(d) && at(d).rate_deadline != never; });
        const bool any = total_ != never || handshaking_ || rates || limits_silence() ||
                         limits_.read != none || limits_.write != none || limits_.handshake != none;
        if (any)
            watch_until(earliest());
        else
            stop_watching();
    }

    /// Makes end_expired() run at `t` or earlier.
    void watch_until(const time_point& t) {
        if (t == never || (waiting_ && timer_.expiry() <= t))
            return;
        if (waiting_) {
            timer_.rearm_at(t);
        } else {
            timer_.expires_at(t);
            refused_ = !timer_access::handle(timer_).async_wait(
                watcher{this->weak_from_this(), ++wait_number_}, timer_.get_executor());
            waiting_ = true;
        }
    }

    /// The wait is over: ends what has expired, and waits for the rest.
    void end_expired(const error_code& ec) {
        waiting_ = false;
        const cause why = std::exchange(refused_, false) ? cause::refusal : cause::expiry;
        const time_point now = now_after(timer_.expiry());
        // Only expire_all() ends a wait early.
        const bool early = ec || (Clock::is_steady && now < timer_.expiry());
        const auto due = [&](const time_point& t) { return t <= now || (early && t != never); };

        const bool reads = limited(direction::read);
        const bool writes = limited(direction::write);
        bool everything = (reads || writes) && due(total_);
        if (handshaking_ && !handshake_expired_ && due(handshake_))
            everything = handshake_expired_ = true;
        if (idling_ && due(after(moved_, limits_.idle)))
            everything |= expire_idle(now, early, why);

        then_watch([&] {
            if (everything)
                return end_all(why);
            const auto expired = [&](direction d) {
                return due(std::min(at(d).deadline, at(d).rate_deadline));
            };
            if (reads && expired(direction::read))
                end(direction::read, why);
            // A layer that completes inline may have run a handler that ended the write.
            if (writes && limited(direction::write) && expired(direction::write))
                end(direction::write, why);
        });
    }

    /// Ends something, then waits for the rest, also if a handler that a layer has called inline
    /// throws.
    template <class End>
    void then_watch(End end) {
        try {
            end();
        } catch (...) {
            watch_again();
            throw;
        }
        watch_again();
    }
    void watch_again() {
        try {
            watch_until(earliest());
        } catch (...) { // the clock: once more, since no other wait would end the operation
            watch_until(earliest());
        }
    }

    /// The time now; if the clock throws, `t`, which has passed.
    [[nodiscard]] static time_point now_after(const time_point& t) {
        try {
            return Clock::now();
        } catch (...) { // what is due must end, and there is no other wait
            return t;
        }
    }

    /// @return whether there is anything to end.
    bool expire_idle(const time_point& now, bool early, cause why) {
        const bool busy = at(direction::read).pending || at(direction::write).pending;
        idling_ = busy && !early; // off: until the next operation, which reports it
        idle_since(now);          // for operations started after a cancellation
        idle_expired_ = !busy && why == cause::expiry && open();
        return busy || idle_expired_;
    }

    /// A limit for one direction has expired.
    void end(direction d, cause why) {
        if (limits_.action == on_limit::close)
            return end_all(why);
        at(d).ended = why;
        at(d).signal.emit(boost::asio::cancellation_type::terminal);
    }

    /// A limit for everything has expired.
    void end_all(cause why) {
        for (const direction d : both)
            at(d).ended = at(d).pending ? why : cause::none;
        if (limits_.action == on_limit::close) {
            closed_by_limit_ = why;
            return shut();
        }
        for (const direction d : both) {
            if (at(d).ended != cause::none)
                at(d).signal.emit(boost::asio::cancellation_type::terminal);
        }
        // Operations directly on the layer, such as its handshake, are unknown here.
        if constexpr (can_cancel_lowest<NextLayer>)
            cancel_lowest(layer_);
    }

    void shut() {
        closed_ = true;
        idle_expired_ = false;
        stop_idling();
        close_lowest(layer_);
    }

    NextLayer layer_;
    basic_waitable_timer<Clock, WaitTraits, executor_type> timer_;
    [[no_unique_address]] silence_alarm silence_; ///< of a scaled idle limit
    std::array<operation, 2> operations_{};
    time_point total_ = never;
    time_point handshake_{};
    time_point moved_{}; ///< last time bytes moved, while idling_
    stream_limits limits_;
    std::uint32_t wait_number_ = 0; ///< handlers of other waits are stale
    bool waiting_ = false;
    bool refused_ = false; ///< the wait that is queued; only with waiting_
    bool connecting_ = false;
    bool handshaking_ = false;
    bool handshake_expired_ = false; ///< possibly early, by expire_all()
    bool idling_ = false;
    bool idle_expired_ = false; ///< to be reported by the next operation
    cause closed_by_limit_ = cause::none;
    bool closed_ = false; ///< for layers without is_open()
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_STREAM_STREAM_IMPL_HPP
