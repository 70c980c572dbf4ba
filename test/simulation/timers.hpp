// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Timers of all kinds behind one interface: time is a number of units of the clock.

#ifndef PAWL_TEST_SIMULATION_TIMERS_HPP
#define PAWL_TEST_SIMULATION_TIMERS_HPP

#include "simulation/clocks.hpp"
#include "simulation/scenario.hpp"

#include <pawl/timer_service.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace simulation {

namespace asio = boost::asio;
using boost::system::error_code;

/// Is told the outcomes of handlers.
class listener {
public:
    virtual void completed(int id, const error_code& ec, std::uint64_t number) = 0;
    virtual void destroyed(int id) = 0;

protected:
    ~listener() = default;
};

/// A completion handler, move-only, which reports its outcome.
class completion {
public:
    using cancellation_slot_type = asio::cancellation_slot;

    completion(listener& l, int id, asio::cancellation_slot slot) noexcept
        : listener_(&l), id_(id), slot_(slot) {}
    completion(completion&& other) noexcept
        : listener_(std::exchange(other.listener_, nullptr)), id_(other.id_), slot_(other.slot_) {}
    completion& operator=(completion&&) = delete;
    ~completion() {
        if (listener_)
            listener_->destroyed(id_);
    }

    asio::cancellation_slot get_cancellation_slot() const noexcept { return slot_; }

    void operator()(const error_code& ec, std::uint64_t number = 0) {
        std::exchange(listener_, nullptr)->completed(id_, ec, number);
    }

private:
    listener* listener_;
    int id_;
    asio::cancellation_slot slot_;
};

class any_timer {
public:
    virtual ~any_timer() = default;

    virtual std::int64_t expiry() = 0;
    virtual std::size_t expires_after(std::int64_t d) = 0;
    virtual std::size_t expires_at(std::int64_t t) = 0;
    virtual std::size_t expires_within(std::int64_t min, std::int64_t max) = 0;
    virtual std::size_t rearm_after(std::int64_t d) = 0;
    virtual std::size_t rearm_at(std::int64_t t) = 0;
    virtual std::size_t rearm_within(std::int64_t min, std::int64_t max) = 0;
    virtual std::size_t cancel() = 0;
    virtual std::size_t cancel_one() = 0;
    /// @param bound the executor of the handler; null if it has none.
    virtual void wait(completion handler, const asio::any_io_executor* bound) = 0;
    /// A timer that is constructed from this one.
    virtual std::unique_ptr<any_timer> move() = 0;
    virtual void assign(any_timer& from) = 0;
};

/// One of the calls that set an expiry. @param now the reading of its clock.
inline std::size_t set_expiry(any_timer& t, op how, std::int64_t now, std::int64_t time,
                              std::int64_t more) {
    switch (how) {
    case op::expires_after:
        return t.expires_after(time);
    case op::rearm_after:
        return t.rearm_after(time);
    case op::expires_at:
        return t.expires_at(saturating_add(now, time));
    case op::rearm_at:
        return t.rearm_at(saturating_add(now, time));
    case op::expires_within:
        return t.expires_within(time, more);
    default:
        return t.rearm_within(time, more);
    }
}

/// The functions for timers of one kind. In files of their own, because they take long to compile.
template <kind K>
struct timers_of {
    static std::unique_ptr<any_timer> make(const asio::any_io_executor& ex);
    static void make_service(asio::execution_context& context, const pawl::options& o);
    static std::size_t expire_all(asio::execution_context& context, const error_code& ec);
};

inline std::unique_ptr<any_timer> make_timer(kind k, const asio::any_io_executor& ex) {
    return with_kind(k, [&]<kind K>() { return timers_of<K>::make(ex); });
}
inline void make_service(kind k, asio::execution_context& context, const pawl::options& o) {
    with_kind(k, [&]<kind K>() { timers_of<K>::make_service(context, o); });
}
inline std::size_t expire_all_of(kind k, asio::execution_context& context, const error_code& ec) {
    return with_kind(k, [&]<kind K>() { return timers_of<K>::expire_all(context, ec); });
}

} // namespace simulation

#endif
