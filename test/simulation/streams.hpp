// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl::timeout_stream over an in-memory network: a byte that a step feeds completes a read, one that
// a step drains completes a write.
//
// Model
//   An operation may be ended by a limit if one that holds for it has been reached, and must be if
//   that was a precision ago. Limits are those of timeout_stream: of a read from its start, of
//   idleness from the last byte, and of everything.

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

    struct business {
        bool work = false;    ///< operations are pending
        bool perhaps = false; ///< limits may be watched
    };
    /// That context has nothing left to do.
    business settled(int context);
    void leave(int context); ///< it is about to be destroyed
    void hurry(int context); ///< expire_all() was called there
    /// How many waits of its own it may have.
    [[nodiscard]] std::size_t count() const noexcept { return streams_.size(); }
    void finished() const;

private:
    struct stream;
    struct operation {
        int id = 0;
        int owner = 0; ///< -1: that is gone
        int context = 0;
        bool reads = false;
        std::int64_t limit = 0; ///< when its own limit is reached
        bool doomed = false;    ///< something has ended it that is not a limit
        bool served = false;    ///< its byte is there
        bool hurried = false;   ///< by expire_all()
        bool expired = false;   ///< so was a limit that holds for it, when that was last changed
        const step* what = nullptr;
    };

    void completed(int id, const error_code& ec, std::uint64_t size) override;
    void destroyed(int id) override;
    void start(const step& s, bool reads);
    /// Something is about to change that a limit depends on, which may have expired, and may have ended
    /// operations whose handlers are yet to be told.
    void note_expired(int owner);
    std::vector<operation>::iterator find(int id);

    surroundings& world_;
    std::array<std::unique_ptr<stream>, stream_slots> streams_;
    std::vector<operation> operations_;
    int last_id_ = 0;
};

} // namespace simulation

#endif
