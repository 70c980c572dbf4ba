// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl::timeout_stream over an in-memory network: a step that feeds a byte completes a read, a step
// that drains a byte completes a write, and one that accepts completes a connect. A closed stream can
// be connected again.
//
// Model
//   A limit may end an operation if it applies and has been reached, and must end it if that was a
//   precision ago. Limits are those of timeout_stream: of a read or a connect from its start, of
//   idleness from the last byte or the connect, of a handshake, and of everything.

#ifndef PAWL_TEST_SIMULATION_STREAMS_HPP
#define PAWL_TEST_SIMULATION_STREAMS_HPP

#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simulation {

class streams final : public listener {
public:
    explicit streams(surroundings& world);
    ~streams();

    void perform(const step& s);

    /// That context has no more ready work.
    business settled(int context);
    void leave(int context);     ///< it is about to be destroyed
    void end_early(int context); ///< expire_all() was called there
    /// The maximum number of its own waits.
    [[nodiscard]] std::size_t count() const noexcept { return streams_.size(); }
    void finished() const;

private:
    struct stream;
    struct operation {
        int id = 0;
        int owner = 0; ///< -1: destroyed
        int context = 0;
        bool reads = false;
        bool connects = false;
        bool refused = false;     ///< by the peer
        std::int64_t limit = 0;   ///< when its own limit is reached
        bool doomed = false;      ///< ended by something other than a limit
        bool served = false;      ///< its byte has arrived
        bool ended_early = false; ///< by expire_all()
        bool expired = false;     ///< a limit that applies had expired when it was last changed
        const step* what = nullptr;
    };

    void completed(int id, const error_code& ec, std::uint64_t size) override;
    void destroyed(int id) override;
    void start(const step& s, bool reads);
    void connect(const step& s);
    [[nodiscard]] bool pending(int owner, bool connects) const;
    /// The slot that a step with this operation may emit to.
    asio::cancellation_slot add(const step& s, operation o);
    /// A property on which a limit depends is about to change. The limit may have expired, and may
    /// have ended operations whose handlers have not run yet.
    void note_expired(int owner);
    std::vector<operation>::iterator find(int id);

    surroundings& world_;
    std::array<std::unique_ptr<stream>, stream_slots> streams_;
    std::vector<operation> operations_;
    int last_id_ = 0;
};

} // namespace simulation

#endif
