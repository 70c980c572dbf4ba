// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rate limiters, expiring maps and retries, on the steady clock.
//
// Model
//   A limiter: two naive buckets. In one, each wait takes its tokens as early as it can; in the
//   other, as its handler is invoked. The real one has no more tokens than the first, and no fewer
//   than the second. So no token is early, none is lost, and waits are served in order.
//   A map: its entries have keys that are never used again. A pop gets the entry whose time was up
//   first. No entry is early, lost, or popped twice. Pops get theirs in their own order, but one
//   that was asked to end may get an entry sooner, or none.
//   A retry: each attempt is a timer, whose failures are known beforehand, and so are the pauses. All
//   retries share a budget, and the model has one, too. No attempt and no end is early, there are as
//   many attempts as the policy allows, and no token of the budget is lost.

#ifndef PAWL_TEST_SIMULATION_PATTERNS_HPP
#define PAWL_TEST_SIMULATION_PATTERNS_HPP

#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <pawl/retry_policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simulation {

class patterns final : public listener {
public:
    explicit patterns(surroundings& world) : world_(world) {}

    void perform(const step& s);

    /// That context has no more ready work.
    business settled(int context);
    void leave(int context);     ///< it is about to be destroyed
    void end_early(int context); ///< expire_all() was called there
    /// The maximum number of its own waits.
    [[nodiscard]] std::size_t count() const noexcept;
    /// The same for retries that were started so far.
    [[nodiscard]] std::size_t started() const noexcept { return units_of_retry * retries_; }
    void finished() const;

private:
    struct bucket;
    struct limiter;
    struct map;
    struct request;
    struct wait {
        int id = 0;
        std::shared_ptr<limiter> tokens_of; ///< what it waits for: one of these
        std::shared_ptr<map> pops;
        std::shared_ptr<request> retries;
        int context = 0;
        std::int64_t n = 0;  ///< tokens
        bool posted = false; ///< the tokens were there
        bool taken = false;  ///< in the bucket that is early
        bool cancelled = false;
        bool orphaned = false;    ///< its limiter or map was destroyed: it may have ended
        bool ended_early = false; ///< by expire_all(): it may have ended
        const step* what = nullptr;
    };

    void completed(int id, const error_code& ec, std::uint64_t key) override;
    void destroyed(int id) override;

    void limiter_step(const step& s);
    void map_step(const step& s);
    void acquire(const step& s, const std::shared_ptr<limiter>& l);
    void acquired(const wait& w, const error_code& ec);
    void popped(const wait& w, const error_code& ec, std::uint64_t key);
    void ended(const wait& w, const error_code& ec);
    void settle(limiter& l);
    void settle(map& m);
    void settle(const wait& w, const request& r) const;
    void start(const step& s);
    /// Makes an attempt: the function of a retry.
    auto attempt(int id, const std::shared_ptr<request>& r, const pawl::attempt& a);
    /// A retry takes that code for the result of its attempt.
    void check_result(const wait& w, const request& r, const error_code& ec) const;
    /// The same, and it is about to decide what comes next.
    void judge(wait& w, request& r, const error_code& ec);
    void check_budget() const;
    wait& add(const step& s, wait w);
    /// The slot that a step with this wait may emit to.
    asio::cancellation_slot slot(const step& s, int id);
    std::vector<wait>::iterator find(int id);
    template <class Owner>
    void orphan(const Owner& o);

    static void refill(const limiter& l, bucket& b, std::int64_t to);
    /// The waits of a limiter take what they can have by now in the bucket that is early.
    void serve(limiter& l);
    /// The tokens that waits may have taken already.
    [[nodiscard]] std::int64_t in_flight(const limiter& l) const;

    static constexpr std::size_t units_of_retry = 32;

    surroundings& world_;
    std::array<std::shared_ptr<limiter>, pattern_slots> limiters_;
    std::array<std::shared_ptr<map>, pattern_slots> maps_;
    std::vector<wait> waits_; ///< in the order of their start
    pawl::retry_budget budget_{0.5, 2};
    std::int64_t balance_ = 4; ///< its model, in halves of a token
    std::size_t retries_ = 0;  ///< started
    int last_id_ = 0;
};

} // namespace simulation

#endif
