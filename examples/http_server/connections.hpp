// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The present connections, and the totals of past ones.
//
// A connection counts its own events without atomics, and adds them to the totals when it leaves the
// list. So the totals are complete when the list is empty.
//
// Threads: any. A connection in the list is alive while the list's mutex is held.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_CONNECTIONS_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_CONNECTIONS_HPP

#include <pawl/pressure.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace example {

/// The time limits of a connection.
enum class limit { handshake, header, body, idle, write, request };

inline constexpr std::array<std::string_view, 6> limit_names{"handshake", "header", "body",
                                                             "idle",      "write",  "request"};

struct tally {
    std::size_t requests = 0;             ///< with a valid header
    std::array<std::size_t, 6> answers{}; ///< sent in full, by the first digit of the status
    std::array<std::size_t, limit_names.size()> timeouts{}; ///< by limit
    std::size_t malformed = 0;    ///< requests that were not HTTP, or too large
    std::size_t broken_off = 0;   ///< connections that ended in the middle of something
    std::size_t drained_idle = 0; ///< closed at shutdown while idle
    std::size_t drained_busy = 0; ///< finished their work at shutdown
    std::size_t forced = 0;       ///< did not finish in time

    tally& operator+=(const tally& t) noexcept {
        const auto add = [](auto& to, const auto& from) {
            std::transform(to.begin(), to.end(), from.begin(), to.begin(), std::plus<>());
        };
        requests += t.requests;
        add(answers, t.answers);
        add(timeouts, t.timeouts);
        malformed += t.malformed;
        broken_off += t.broken_off;
        drained_idle += t.drained_idle;
        drained_busy += t.drained_busy;
        forced += t.forced;
        return *this;
    }
};

class connections;

/// A connection, independent of its stream type.
class connection : public boost::intrusive::list_base_hook<> {
public:
    /// Ends soon: at once if no request has begun, otherwise after its response. From any thread.
    virtual void drain() = 0;
    /// Ends now. From any thread.
    virtual void cut_off() = 0;

protected:
    ~connection() = default;
};

class connections {
public:
    /// In the list from here to the end of the scope.
    class membership {
    public:
        membership(connections& list, connection& c, const tally& counts)
            : list_(list), connection_(c), counts_(counts) {
            const std::lock_guard lock(list_.mutex_);
            list_.list_.push_back(connection_);
            ++list_.accepted_;
            list_.most_ = std::max(list_.most_, list_.list_.size());
            list_.press();
        }
        membership(const membership&) = delete;
        membership& operator=(const membership&) = delete;
        ~membership() {
            const std::lock_guard lock(list_.mutex_);
            list_.list_.erase(list_.list_.iterator_to(connection_));
            list_.press();
            list_.total_ += counts_;
        }

    private:
        connections& list_;
        connection& connection_;
        const tally& counts_;
    };

    /// @param room the number of connections that there can be.
    explicit connections(std::size_t room) : room_(room) {}

    /// From half of that number on, there is pressure on the idle connections of `context`.
    void press_on(boost::asio::execution_context& context) { pressure_.emplace(context); }

    [[nodiscard]] bool empty() const {
        const std::lock_guard lock(mutex_);
        return list_.empty();
    }
    void drain_all() {
        const std::lock_guard lock(mutex_);
        for (connection& c : list_)
            c.drain();
    }
    void cut_off_all() {
        const std::lock_guard lock(mutex_);
        for (connection& c : list_)
            c.cut_off();
    }

    /// Called after all have left.
    [[nodiscard]] const tally& total() const noexcept { return total_; }
    [[nodiscard]] std::size_t accepted() const noexcept { return accepted_; }
    [[nodiscard]] std::size_t most_at_once() const noexcept { return most_; }

private:
    void press() {
        const double used = static_cast<double>(list_.size()) / static_cast<double>(room_);
        if (const double p = std::clamp(2 * used - 1, 0., 1.); pressure_ && p != pressure_->value())
            pressure_->set(p);
    }

    std::optional<pawl::pressure> pressure_;
    const std::size_t room_;
    mutable std::mutex mutex_;
    boost::intrusive::list<connection> list_;
    tally total_;
    std::size_t accepted_ = 0;
    std::size_t most_ = 0;
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_CONNECTIONS_HPP
