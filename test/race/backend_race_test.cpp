// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Every operation on a timer against every event of its wait, against every operation of a
//   neighbour, of a peer's handler, and of another thread on the same timer, on every backend, with
//   one shard and with several. Then the state that only rings have: full. Run under
//   ThreadSanitizer and AddressSanitizer by .ci/run.
//
// Model
//   Some threads run a context, one or more others use timers on it. They record their
//   observations. After a lost wake-up run() does not return, and ctest ends the test. When all
//   threads have ended, each wait is looked up in a table of allowed outcomes.

#include <pawl/pawl.hpp>
#include <pawl/ring_timer.hpp>

#define BOOST_TEST_MODULE backend_race
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "race/race_support.hpp"
#include "race/wait_outcome.hpp"
#include "support/seed.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace backend_race {

using pawl::ring_overflow;
using namespace race_support;
using namespace std::chrono_literals;

constexpr int runners = 2;

// --- backends ---------------------------------------------------------------------------------

constexpr std::chrono::microseconds soon{100};
constexpr std::chrono::microseconds later{400};
constexpr std::chrono::microseconds latest{2000};

template <class Timer, unsigned Marks = 8>
struct backend {
    using timer = Timer;
    using arena = race_support::arena<Timer>;

    /// @param variant one of four ways to divide the work.
    static pawl::options options(unsigned variant, unsigned shards) {
        pawl::options o = race_support::with(shards, variant % 2 == 0 ? 1 : 64, 5us);
        o.batch_limit = variant % 4 < 2 ? 256 : 2;
        o.rings.delays = {{.delay = soon}, {.delay = later}, {.delay = latest}};
        o.rings.marks = Marks;
        return o;
    }
};

using hierarchical_wheel = backend<pawl::steady_timer>;
using binary_wheel = backend<pawl::compact_timer>;
using rings_of_two_marks = backend<pawl::ring_timer, 1>;
using rings = backend<pawl::ring_timer>;
using backends = std::tuple<hierarchical_wheel, binary_wheel, rings_of_two_marks, rings>;

// --- shards -------------------------------------------------------------------------------------

constexpr std::array shard_counts{1u, 4u};

/// Makes timers of two shards in turn, if there are several.
template <class Timer>
class maker {
public:
    explicit maker(asio::io_context& context, unsigned shards = 1) {
        seeds_.emplace_back(context);
        if (shards > 1) // a thread that lives beside this one has another shard
            std::thread([&] { seeds_.emplace_back(context); }).join();
    }

    Timer operator()(std::chrono::microseconds delay) {
        Timer made(std::move(seeds_[next_++ % seeds_.size()])); // keeps its shard
        made.expires_after(delay);
        return made;
    }

private:
    std::deque<Timer> seeds_;
    std::size_t next_ = 0;
};

// --- operations, rivals, and the table ----------------------------------------------------------

/// The effect of an operation on the wait of its timer.
enum class effect {
    ends,           ///< and returns how many
    ends_uncounted, ///< and returns nothing
    moves,          ///< its deadline, and returns how many
    keeps,
};

enum class op {
    start,
    cancel,
    cancel_one,
    expires_after,
    expires_within,
    emit,
    destroy,
    overwrite,
    rearm_later,
    rearm_earlier,
    rearm_far,
    rearm_to_the_past,
    rearm_within,
    move_construct,
    move_assign,
};

struct operation {
    op what;
    const char* name;
    effect has;
    std::optional<effect> on_other = {}; ///< on the wait of the other timer of the operation
};

constexpr std::array operations{
    operation{op::start, "a second start", effect::keeps, effect::keeps},
    operation{op::cancel, "cancel", effect::ends},
    operation{op::cancel_one, "cancel_one", effect::ends},
    operation{op::expires_after, "expires_after", effect::ends},
    operation{op::expires_within, "expires_within", effect::ends},
    operation{op::emit, "emit", effect::ends_uncounted},
    operation{op::destroy, "destroy", effect::ends_uncounted},
    operation{op::overwrite, "move another one there", effect::ends_uncounted, effect::keeps},
    operation{op::rearm_later, "rearm_after, later", effect::moves},
    operation{op::rearm_earlier, "rearm_after, earlier, another ring", effect::moves},
    operation{op::rearm_far, "rearm_after, later, another ring", effect::moves},
    operation{op::rearm_to_the_past, "rearm_after, the past", effect::moves},
    operation{op::rearm_within, "rearm_within", effect::moves},
    operation{op::move_construct, "move-construct", effect::keeps},
    operation{op::move_assign, "move elsewhere", effect::keeps, effect::ends_uncounted},
};

/// The other event of the wait.
enum class rival {
    expiry,            ///< only expiry, and the start of the handler
    hand_over,         ///< the same, and the transfer into a strand
    held_up,           ///< the handler waits in a busy strand
    handler,           ///< it is running
    handler_in_strand, ///< likewise, in a strand
    expire_all,        ///< from another thread, with an error
    emission,          ///< in the strand of the operation
    stop,              ///< the context ends
};

/// The table. The result of an operation that counts is exact: 1 means that the wait had not
/// started.
struct rule {
    effect has;
    rival against;
    outcomes allowed;
};

const std::vector<rule>& rules() {
    using enum effect;
    using enum rival;
    using enum told;
    static const std::vector<rule> table{
        {ends, expiry, {{1, aborted}, {0, success}}},
        {ends, hand_over, {{1, aborted}, {0, success}}},
        {ends, held_up, {{1, aborted}}},
        {ends, rival::handler, {{0, success}}},
        {ends, handler_in_strand, {{0, success}}},
        {ends, rival::expire_all, {{1, aborted}, {0, success}, {0, shut_down}}},
        {ends, emission, {{1, aborted}, {0, success}, {0, aborted}}},
        {ends, stop, {{1, aborted}, {0, success}, {1, nothing}}},

        {ends_uncounted, expiry, {{none, aborted}, {none, success}}},
        {ends_uncounted, hand_over, {{none, aborted}, {none, success}}},
        {ends_uncounted, held_up, {{none, aborted}}},
        {ends_uncounted, rival::handler, {{none, success}}},
        {ends_uncounted, handler_in_strand, {{none, success}}},
        {ends_uncounted, rival::expire_all, {{none, aborted}, {none, success}, {none, shut_down}}},
        {ends_uncounted, emission, {{none, aborted}, {none, success}}},
        {ends_uncounted, stop, {{none, aborted}, {none, success}, {none, nothing}}},

        {moves, expiry, {{1, success}, {0, success}}},
        {moves, hand_over, {{1, success}, {0, success}}},
        {moves, held_up, {{1, success}}},
        {moves, rival::handler, {{0, success}}},
        {moves, handler_in_strand, {{0, success}}},
        {moves, rival::expire_all, {{1, success}, {0, success}, {1, shut_down}, {0, shut_down}}},
        {moves, emission, {{1, success}, {0, success}, {1, aborted}, {0, aborted}}},
        {moves, stop, {{1, success}, {0, success}, {1, nothing}}},

        {keeps, expiry, {{none, success}}},
        {keeps, hand_over, {{none, success}}},
        {keeps, held_up, {{none, success}}},
        {keeps, rival::handler, {{none, success}}},
        {keeps, handler_in_strand, {{none, success}}},
        {keeps, rival::expire_all, {{none, success}, {none, shut_down}}},
        {keeps, emission, {{none, success}, {none, aborted}}},
        {keeps, stop, {{none, success}, {none, nothing}}},
    };
    return table;
}

const outcomes& allowed(effect has, rival against) {
    const auto r = std::find_if(rules().begin(), rules().end(), [&](const rule& each) {
        return each.has == has && each.against == against;
    });
    BOOST_REQUIRE(r != rules().end());
    return r->allowed;
}

// --- one timer in a race ------------------------------------------------------------------------

/// A timer with one wait, and another timer for operations on two.
template <class Timer>
class subject {
public:
    subject(maker<Timer>& make, const operation& o)
        : timer_(make(delay(o))), operation_(o), first_expiry_(timer_->expiry()),
          expiry_(first_expiry_) {
        if (o.what == op::overwrite || o.what == op::move_assign) {
            other_.emplace(make(later));
            other_->async_wait(recorder(other_record_));
        }
    }

    /// Starts the wait. `Bind` puts the handler somewhere.
    template <class Bind>
    void start(Bind bind) {
        if (operation_.what == op::emit)
            start_with_slot(bind);
        else
            timer_->async_wait(bind(recorder(record_)));
    }
    template <class Bind>
    void start_with_slot(Bind bind) {
        timer_->async_wait(asio::bind_cancellation_slot(signal_.slot(), bind(recorder(record_))));
    }
    void start() { start(std::identity{}); }

    /// Waits until the wait is about to end. Any thread may call it.
    void approach(aim& when) const {
        when.approach(first_expiry_);
        when.learn(record_.began != 0);
    }

    void operate() { count_ = operate(operation_.what); }

    /// @return the result of the operation.
    int operate(op what) {
        switch (what) {
        case op::start:
            timer_->async_wait(recorder(other_record_));
            return none;
        case op::cancel:
            return said(timer_->cancel());
        case op::cancel_one:
            return said(timer_->cancel_one());
        case op::expires_after:
            return said(timer_->expires_after(later));
        case op::expires_within:
            return said(timer_->expires_within(soon, latest));
        case op::emit:
            emit();
            return none;
        case op::destroy:
            timer_.reset();
            return none;
        case op::overwrite:
            *timer_ = std::move(*other_);
            return none;
        case op::rearm_later:
        case op::rearm_earlier:
            return moved(timer_->rearm_after(soon));
        case op::rearm_far:
            return moved(timer_->rearm_after(latest));
        case op::rearm_to_the_past:
            return moved(timer_->rearm_after(-1us));
        case op::rearm_within:
            return moved(timer_->rearm_within(soon, later));
        case op::move_construct:
            other_.emplace(std::move(*timer_));
            return none;
        case op::move_assign:
            *other_ = std::move(*timer_);
            return none;
        }
        return none;
    }

    void emit() { signal_.emit(asio::cancellation_type::terminal); }

    void destroy_timers() {
        timer_.reset();
        other_.reset();
    }

    [[nodiscard]] outcome result() const { return {count_, record_.what()}; }

    /// After all threads have ended, for any operation.
    void check_wait() const {
        check_once(record_);
        if (record_.what() == told::success)
            BOOST_REQUIRE(record_.at >= expiry_); // P1
    }

    /// The same for operate() and `against`.
    void check(census& seen, rival against) const {
        seen.check(result(), allowed(operation_.has, against));
        check_wait();
        check_other(against);
    }
    void check_other(rival against) const {
        if (!operation_.on_other)
            return;
        // The signal belongs to the first wait.
        const rival other = against == rival::emission ? rival::expiry : against;
        // Its handler is not in a strand, and does not run yet.
        const outcomes& list = other == rival::expire_all || other == rival::stop
                                   ? allowed(*operation_.on_other, other)
                                   : allowed(*operation_.on_other, rival::expiry);
        const outcome o{none, other_record_.what()};
        BOOST_REQUIRE_MESSAGE(std::find(list.begin(), list.end(), o) != list.end(),
                              "not allowed for the other timer: " << o);
        check_once(other_record_);
    }

    [[nodiscard]] wait_record& record() { return record_; }

private:
    static std::chrono::microseconds delay(const operation& o) {
        return o.what == op::rearm_earlier ? later : soon;
    }

    static void check_once(const wait_record& r) {
        BOOST_REQUIRE_EQUAL(r.began, r.what() == told::nothing ? 0 : 1);
        BOOST_REQUIRE_EQUAL(r.ended, r.began);
        BOOST_REQUIRE_EQUAL(r.handlers, 0);
    }

    static int said(std::size_t count) { return static_cast<int>(count); }
    int moved(std::size_t count) {
        if (count != 0)
            expiry_ = timer_->expiry();
        return said(count);
    }

    wait_record record_;
    wait_record other_record_;
    asio::cancellation_signal signal_;
    std::optional<Timer> timer_;
    std::optional<Timer> other_;
    const operation& operation_;
    const clock_type::time_point first_expiry_;
    clock_type::time_point expiry_; ///< no success before it
    int count_ = none;
};

/// A place where threads wait for one another.
class meeting {
public:
    explicit meeting(int threads) : threads_(threads) {}
    void arrive_and_wait() {
        const int all = (here_.fetch_add(1) / threads_ + 1) * threads_;
        while (here_.load() < all)
            std::this_thread::yield();
    }

private:
    const int threads_;
    std::atomic<int> here_{0};
};

// --- every operation against every other event of its wait --------------------------------------

constexpr std::size_t batch = 4; ///< timers in one round

/// Puts a handler into a strand.
template <class Strand>
auto into(const Strand& strand) {
    return [&strand](auto&& handler) {
        return asio::bind_executor(strand, std::forward<decltype(handler)>(handler));
    };
}

/// The races of one operation with one rival, on a context of their own.
template <class Backend>
class races {
    using timer = typename Backend::timer;
    using arena = typename Backend::arena;

public:
    races(const operation& o, unsigned variant, unsigned shards, std::uint64_t seed)
        : operation_(o), variant_(variant), shards_(shards), random_(seed) {}

    void run(rival against, int rounds, census& seen) {
        {
            arena a(Backend::options(variant_, shards_), runners);
            make_.emplace(a.context, shards_);
            if (against == rival::expire_all || against == rival::emission) {
                in_threads(2, [&](int me) {
                    random_type random(random_type::default_seed);
                    aim when(random);
                    for (int i = 0; i < rounds; ++i) {
                        if (me == 0)
                            (against == rival::emission ? with_emission(a) : with_expire_all());
                        else
                            (against == rival::emission ? emit(when) : expire_all(a, when));
                    }
                });
            } else {
                for (int i = 0; i < rounds; ++i)
                    alone(a, against);
            }
            a.finish();
        }
        // The timers outlive their context.
        for (const auto& each : all_)
            each.check(seen, against);
    }

private:
    template <class... Bind>
    void start_batch(Bind... bind) {
        for (std::size_t i = 0; i < batch; ++i)
            all_.emplace_back(*make_, operation_).start(bind...);
    }

    template <class Function>
    void for_batch(Function f) {
        std::for_each(all_.end() - batch, all_.end(), f);
    }

    void operate() {
        for_batch([&](auto& each) {
            each.approach(aim_);
            each.operate();
        });
    }

    void alone(arena& a, rival against) {
        auto strand = asio::make_strand(a.context);
        std::atomic<bool>& go = gates_.emplace_back(false);
        const auto meet_handler = [&](auto... bind) {
            auto& one = all_.emplace_back(*make_, operation_);
            one.record().hold = &go;
            one.start(bind...);
            while (one.record().began == 0)
                std::this_thread::yield();
            one.operate();
        };
        switch (against) {
        case rival::hand_over:
            start_batch(into(strand));
            operate();
            break;
        case rival::held_up:
            asio::post(strand, [&go] {
                while (!go)
                    std::this_thread::yield();
            });
            start_batch(into(strand));
            pause(random_, 4 * soon);
            for_batch([](auto& each) { each.operate(); });
            break;
        case rival::handler:
            meet_handler();
            break;
        case rival::handler_in_strand:
            meet_handler(into(strand));
            break;
        default:
            start_batch();
            operate();
        }
        go = true;
    }

    void with_expire_all() {
        start_batch();
        meeting_.arrive_and_wait();
        operate();
        meeting_.arrive_and_wait();
    }
    void expire_all(arena& a, aim& when) {
        meeting_.arrive_and_wait();
        (all_.end() - batch)->approach(when);
        pawl::expire_all(a.context, asio::error::shut_down);
        meeting_.arrive_and_wait();
    }

    // A timer and its signal are used by one thread at a time: in their strand.
    void with_emission(arena& a) {
        for (std::size_t i = 0; i < batch; ++i)
            all_.emplace_back(*make_, operation_).start_with_slot(std::identity{});
        strand_.emplace(asio::make_strand(a.context));
        meeting_.arrive_and_wait();
        for_batch([&](auto& each) {
            each.approach(aim_);
            asio::post(*strand_, [&each] { each.operate(); });
        });
        meeting_.arrive_and_wait();
        strand_.reset();
    }
    void emit(aim& when) {
        meeting_.arrive_and_wait();
        for_batch([&](auto& each) {
            each.approach(when);
            asio::post(*strand_, [&each] { each.emit(); });
        });
        meeting_.arrive_and_wait();
    }

    const operation& operation_;
    const unsigned variant_;
    const unsigned shards_;
    random_type random_;
    aim aim_{random_};
    meeting meeting_{2};
    std::optional<asio::strand<asio::io_context::executor_type>> strand_;
    std::deque<std::atomic<bool>> gates_;
    std::optional<maker<timer>> make_;
    std::deque<subject<timer>> all_;
};

constexpr std::array rivals{
    std::pair{rival::expiry, "expiry"},
    std::pair{rival::hand_over, "hand-over"},
    std::pair{rival::held_up, "a busy strand"},
    std::pair{rival::handler, "its handler"},
    std::pair{rival::handler_in_strand, "its handler in a strand"},
    std::pair{rival::expire_all, "expire_all"},
    std::pair{rival::emission, "emission"},
};

BOOST_AUTO_TEST_CASE_TEMPLATE(P1_P3_P4_each_operation_against_all_that_ends_its_wait, Backend,
                              backends) {
    const std::uint64_t seed = pawl_test::seed();
    unsigned variant = 0;
    for (const auto& [against, name] : rivals) {
        for (const operation& o : operations) {
            for (const unsigned s : shard_counts) {
                const std::string pair =
                    std::string(o.name) + " against " + name + ", shards: " + std::to_string(s);
                BOOST_TEST_CONTEXT(pair) {
                    census seen(pair);
                    races<Backend>(o, variant, s, seed + variant).run(against, 4, seen);
                }
            }
            ++variant;
        }
    }
}

// --- every operation against every operation ----------------------------------------------------

struct pair_rule {
    effect mine;
    effect its;
    std::vector<outcome_of_two> allowed;
};

/// The second table: my operation on my timer beside its operation on its timer. Both timers are
/// about to expire. The operations are independent, so each may be too late or not.
const std::vector<pair_rule>& pair_rules() {
    using enum effect;
    using enum told;
    static const std::vector<pair_rule> table{
        {ends,
         ends,
         {{{1, aborted}, {1, aborted}},
          {{1, aborted}, {0, success}},
          {{0, success}, {1, aborted}},
          {{0, success}, {0, success}}}},
        {ends,
         ends_uncounted,
         {{{1, aborted}, {none, aborted}},
          {{1, aborted}, {none, success}},
          {{0, success}, {none, aborted}},
          {{0, success}, {none, success}}}},
        {ends,
         moves,
         {{{1, aborted}, {1, success}},
          {{1, aborted}, {0, success}},
          {{0, success}, {1, success}},
          {{0, success}, {0, success}}}},
        {ends, keeps, {{{1, aborted}, {none, success}}, {{0, success}, {none, success}}}},

        {ends_uncounted,
         ends_uncounted,
         {{{none, aborted}, {none, aborted}},
          {{none, aborted}, {none, success}},
          {{none, success}, {none, aborted}},
          {{none, success}, {none, success}}}},
        {ends_uncounted,
         moves,
         {{{none, aborted}, {1, success}},
          {{none, aborted}, {0, success}},
          {{none, success}, {1, success}},
          {{none, success}, {0, success}}}},
        {ends_uncounted,
         keeps,
         {{{none, aborted}, {none, success}}, {{none, success}, {none, success}}}},

        {moves,
         moves,
         {{{1, success}, {1, success}},
          {{1, success}, {0, success}},
          {{0, success}, {1, success}},
          {{0, success}, {0, success}}}},
        {moves, keeps, {{{1, success}, {none, success}}, {{0, success}, {none, success}}}},

        {keeps, keeps, {{{none, success}, {none, success}}}},
    };
    return table;
}

template <class Rule>
auto& allowed(const std::vector<Rule>& rules, effect Rule::*one, effect has, effect Rule::*other,
              effect other_has) {
    const auto r = std::find_if(rules.begin(), rules.end(), [&](const Rule& each) {
        return each.*one == has && each.*other == other_has;
    });
    BOOST_REQUIRE(r != rules.end());
    return r->allowed;
}

/// The operations of two threads, and their timers.
template <class Subjects>
struct encounter {
    const operation* mine;
    const operation* its;
    Subjects all{};

    [[nodiscard]] std::string name() const { return std::string(mine->name) + " and " + its->name; }
};

// If two threads use timers of their own, side by side in one ring or slot, each gets the same
// results as alone.
BOOST_AUTO_TEST_CASE_TEMPLATE(P3_P4_each_operation_against_each_operation_of_a_neighbour, Backend,
                              backends) {
    using timer = typename Backend::timer;
    using subjects = std::deque<subject<timer>>;
    constexpr int rounds = 4;
    const std::uint64_t seed = pawl_test::seed();
    unsigned variant = 0;
    for (auto one = operations.begin(); one != operations.end(); ++one) {
        for (const unsigned s : shard_counts) {
            std::deque<encounter<std::array<subjects, 2>>> pairs;
            for (auto other = one; other != operations.end(); ++other) {
                const bool in_order = one->has <= other->has; // as in the table
                pairs.push_back({in_order ? &*one : &*other, in_order ? &*other : &*one});
            }
            {
                typename Backend::arena a(Backend::options(variant, s), runners);
                std::array makers{maker<timer>(a.context, s), maker<timer>(a.context, s)};
                meeting both(2);
                in_threads(2, [&](int me) {
                    const auto i = static_cast<std::size_t>(me);
                    random_type random(seed + 2 * variant + i);
                    aim when(random);
                    for (auto& pair : pairs) {
                        for (int round = 0; round < rounds; ++round) {
                            both.arrive_and_wait();
                            for (std::size_t k = 0; k < batch; ++k)
                                pair.all[i]
                                    .emplace_back(makers[i], me == 0 ? *pair.mine : *pair.its)
                                    .start();
                            std::for_each(pair.all[i].end() - batch, pair.all[i].end(),
                                          [&](auto& each) {
                                              each.approach(when);
                                              each.operate();
                                          });
                        }
                    }
                });
            }
            for (const auto& pair : pairs) {
                BOOST_TEST_CONTEXT(pair.name() << " side by side, shards: " << s) {
                    const auto& list = allowed(pair_rules(), &pair_rule::mine, pair.mine->has,
                                               &pair_rule::its, pair.its->has);
                    census_of<outcome_of_two> seen(pair.name());
                    for (std::size_t k = 0; k < rounds * batch; ++k) {
                        seen.check({pair.all[0][k].result(), pair.all[1][k].result()}, list);
                        for (const subjects& each : pair.all) {
                            each[k].check_wait();
                            each[k].check_other(rival::expiry);
                        }
                    }
                }
            }
        }
        ++variant;
    }
}

struct turn_rule {
    effect first;
    effect second;
    std::vector<outcome_in_turn> allowed;
};

/// The third table: two operations on one timer, in this order. If the first one has ended the
/// wait, or was too late, nothing is left for the second one.
const std::vector<turn_rule>& turn_rules() {
    using enum effect;
    using enum told;
    static const std::vector<turn_rule> table{
        {ends, ends, {{1, 0, aborted}, {0, 0, success}}},
        {ends, ends_uncounted, {{1, none, aborted}, {0, none, success}}},
        {ends, moves, {{1, 0, aborted}, {0, 0, success}}},

        {ends_uncounted, ends, {{none, 0, aborted}, {none, 0, success}}},
        {ends_uncounted, ends_uncounted, {{none, none, aborted}, {none, none, success}}},
        {ends_uncounted, moves, {{none, 0, aborted}, {none, 0, success}}},

        {moves, ends, {{1, 1, aborted}, {1, 0, success}, {0, 0, success}}},
        {moves, ends_uncounted, {{1, none, aborted}, {1, none, success}, {0, none, success}}},
        {moves, moves, {{1, 1, success}, {1, 0, success}, {0, 0, success}}},
    };
    return table;
}

/// A timer with one wait, that two threads use.
template <class Timer>
struct shared_subject {
    shared_subject(maker<Timer>& make, const operation& mine, const operation& its)
        : one(make, mine.what == op::rearm_earlier ? mine : its) {
        if (mine.what == op::emit || its.what == op::emit)
            one.start_with_slot(std::identity{});
        else
            one.start();
    }

    void operate(const operation& o, aim& when) {
        one.approach(when);
        const std::scoped_lock lock(mutex);
        done[turns] = &o;
        said[turns++] = one.operate(o.what);
    }

    subject<Timer> one;
    std::mutex mutex;
    std::size_t turns = 0;
    std::array<const operation*, 2> done{}; ///< first and second
    std::array<int, 2> said{};
};

// The operations that leave a timer with its one wait in place. P3_P4_shared_timers_* has the
// others, with weaker checks.
BOOST_AUTO_TEST_CASE_TEMPLATE(P3_P4_each_operation_against_each_operation_on_the_same_timer,
                              Backend, backends) {
    using timer = typename Backend::timer;
    constexpr int rounds = 4;
    const std::uint64_t seed = pawl_test::seed();
    std::vector<const operation*> some;
    for (const operation& o : operations)
        if (o.has == effect::ends || o.has == effect::moves || o.what == op::emit)
            some.push_back(&o);
    unsigned variant = 0;
    for (auto one = some.begin(); one != some.end(); ++one) {
        for (const unsigned s : shard_counts) {
            std::deque<encounter<std::deque<shared_subject<timer>>>> pairs;
            for (auto other = one; other != some.end(); ++other)
                pairs.push_back({*one, *other});
            {
                typename Backend::arena a(Backend::options(variant, s), runners);
                maker<timer> make(a.context, s);
                meeting both(2);
                in_threads(2, [&](int me) {
                    random_type random(seed + 2 * variant + static_cast<unsigned>(me));
                    aim when(random);
                    for (auto& pair : pairs) {
                        for (int round = 0; round < rounds; ++round) {
                            for (std::size_t k = 0; me == 0 && k < batch; ++k)
                                pair.all.emplace_back(make, *pair.mine, *pair.its);
                            both.arrive_and_wait();
                            std::for_each(pair.all.end() - batch, pair.all.end(), [&](auto& each) {
                                each.operate(me == 0 ? *pair.mine : *pair.its, when);
                            });
                            both.arrive_and_wait();
                        }
                    }
                });
            }
            for (const auto& pair : pairs) {
                BOOST_TEST_CONTEXT(pair.name() << " on one timer, shards: " << s) {
                    census_of<outcome_in_turn> seen(pair.name());
                    for (const auto& each : pair.all) {
                        const auto& list =
                            allowed(turn_rules(), &turn_rule::first, each.done[0]->has,
                                    &turn_rule::second, each.done[1]->has);
                        seen.check({each.said[0], each.said[1], each.one.result().what}, list);
                        each.one.check_wait();
                    }
                }
            }
        }
        ++variant;
    }
}

// Handlers end, move and destroy the timers of their peers, which are due at the same moment, in
// one batch or in several shards. Handlers of peers may be running in other threads.
BOOST_AUTO_TEST_CASE_TEMPLATE(P3_P4_handlers_that_end_their_peers, Backend, backends) {
    using timer = typename Backend::timer;
    constexpr int groups = 30;
    struct group {
        std::deque<subject<timer>> peers; ///< one for each operation
        std::atomic<bool> complete{false};
    };
    random_type random(pawl_test::seed());
    std::vector<const operation*> order;
    for (const operation& o : operations)
        order.push_back(&o);
    for (const unsigned s : shard_counts) {
        for (unsigned variant = 0; variant < 4; ++variant) {
            std::deque<group> all;
            {
                typename Backend::arena a(Backend::options(variant, s), 3);
                maker<timer> make(a.context, s);
                for (int n = 0; n < groups; ++n) {
                    group& g = all.emplace_back();
                    std::shuffle(order.begin(), order.end(), random);
                    for (const operation* const o : order)
                        g.peers.emplace_back(make, *o);
                    for (std::size_t i = 0; i < g.peers.size(); ++i) {
                        auto& right = g.peers[(i + 1) % g.peers.size()];
                        g.peers[i].record().hold = &g.complete;
                        g.peers[i].record().then = [&right] { right.operate(); };
                    }
                    for (auto& each : g.peers)
                        each.start();
                    pause(random, 2 * soon); // some have started, some are due, some are not
                    g.complete = true;
                }
            }

            // Allowed: the outcomes that are allowed against expiry.
            census seen("handlers, shards: " + std::to_string(s));
            for (const group& g : all)
                for (const auto& each : g.peers)
                    each.check(seen, rival::expiry);
        }
    }
}

// C35: users guard a shared timer; the completion of its waits needs no guard. The counts of all
// calls that end waits are compared with the aborted handlers.
BOOST_AUTO_TEST_CASE_TEMPLATE(P3_P4_shared_timers_behind_a_mutex_lose_and_repeat_nothing, Backend,
                              backends) {
    using timer = typename Backend::timer;
    constexpr std::size_t timers = 6;
    constexpr int users = 5;
    constexpr int rounds = 1'500;
    struct guarded {
        std::mutex mutex;
        std::optional<timer> one;
    };
    const std::uint64_t seed = pawl_test::seed();
    const auto race = [&](pawl::options o) {
        std::array<std::deque<wait_record>, users> waits;
        std::atomic<std::size_t> counted{0}; // waits that calls have cancelled, by their results
        {
            o.rings.round_up = true; // any delay works
            typename Backend::arena a(o, 3);
            std::array<guarded, timers> all;
            for (guarded& g : all)
                g.one.emplace(a.context);
            in_threads(users, [&](int me) {
                random_type random(seed + static_cast<unsigned>(me));
                const auto delay = [&] {
                    return upto(random, random() % 4 == 0 ? later : soon / 2);
                };
                for (int i = 0; i < rounds; ++i) {
                    guarded& g = all[random() % timers];
                    const std::scoped_lock lock(g.mutex);
                    switch (random() % 8) {
                    case 0:
                        counted += g.one->cancel();
                        break;
                    case 1:
                        counted += g.one->cancel_one();
                        break;
                    case 2:
                        counted += g.one->expires_after(delay());
                        break;
                    case 3:
                        (void)g.one->rearm_after(delay());
                        break;
                    case 4: {
                        timer moved(std::move(*g.one));
                        *g.one = std::move(moved);
                        break;
                    }
                    case 5:
                        if (random() % 8 == 0) {
                            counted += g.one->cancel();
                            g.one.emplace(a.context); // maybe of another shard
                            break;
                        }
                        [[fallthrough]];
                    default:
                        g.one->async_wait(
                            recorder(waits[static_cast<std::size_t>(me)].emplace_back()));
                    }
                }
            });
            for (guarded& g : all)
                counted += g.one->cancel();
            a.finish();
        }

        // Allowed: each wait ends once, with success or aborted; the number of aborted ones is the
        // sum of the calls' results.
        std::size_t aborted = 0;
        for (const auto& mine : waits) {
            for (const wait_record& each : mine) {
                BOOST_REQUIRE_EQUAL(each.ended, 1);
                BOOST_REQUIRE_EQUAL(each.handlers, 0);
                BOOST_REQUIRE(each.what() == told::success || each.what() == told::aborted);
                aborted += each.what() == told::aborted ? 1u : 0u;
            }
        }
        BOOST_REQUIRE_EQUAL(aborted, counted);
    };
    for (const unsigned s : shard_counts) {
        for (const unsigned variant : {0u, 3u}) {
            BOOST_TEST_CONTEXT("shards: " << s << ", variant: " << variant) {
                race(Backend::options(variant, s));
            }
        }
    }
}

// The context is stopped, then destroyed, with timers that are destroyed before it and after it.
BOOST_AUTO_TEST_CASE_TEMPLATE(P3_P10_each_operation_against_the_end_of_the_context, Backend,
                              backends) {
    const std::uint64_t seed = pawl_test::seed();
    random_type random(seed);
    for (const operation& o : operations) {
        BOOST_TEST_CONTEXT(o.name) {
            census seen(std::string(o.name) + " against the end of the context");
            for (unsigned round = 0; round < 12; ++round) {
                const unsigned s = shard_counts[round / 4 % shard_counts.size()];
                std::deque<subject<typename Backend::timer>> all;
                {
                    typename Backend::arena a(Backend::options(round, s), runners);
                    maker<typename Backend::timer> make(a.context, s);
                    auto strand = asio::make_strand(a.context);
                    for (std::size_t i = 0; i < 2 * batch; ++i) {
                        auto& each = all.emplace_back(make, o);
                        if (i % 2 == 0)
                            each.start();
                        else
                            each.start(into(strand));
                    }
                    const auto before_stop = upto(random, 4 * soon);
                    in_threads(2, [&](int me) {
                        if (me == 0) {
                            pause(random, 2 * soon);
                            for (auto& each : all) {
                                pause(random, soon / 4);
                                each.operate();
                            }
                        } else {
                            wait_until(clock_type::now() + before_stop);
                            a.context.stop();
                        }
                    });
                    a.finish();
                    for (std::size_t i = 0; i < batch; ++i)
                        all[i].destroy_timers();
                }
                for (auto& each : all) {
                    each.emit();
                    each.check(seen, rival::stop);
                }
            }
        }
    }
}

// Only the one wait keeps the context running, and another thread ends or moves it.
BOOST_AUTO_TEST_CASE_TEMPLATE(P9_run_returns_after_the_handler_whatever_ends_its_wait, Backend,
                              backends) {
    const std::uint64_t seed = pawl_test::seed();
    random_type random(seed);
    for (const operation& o : operations) {
        if (o.what == op::start)
            continue; // new work
        BOOST_TEST_CONTEXT(o.name) {
            census seen(std::string("run() and ") + o.name);
            aim when(random);
            for (unsigned round = 0; round < 24; ++round) {
                const unsigned s = shard_counts[round / 4 % shard_counts.size()];
                asio::io_context context;
                pawl::make_timer_service<typename Backend::timer>(context,
                                                                  Backend::options(round, s));
                maker<typename Backend::timer> make(context);
                subject<typename Backend::timer> one(make, o);
                one.start();
                std::thread other([&] {
                    one.approach(when);
                    one.operate();
                });
                context.run();
                const int calls = one.record().began; // before the other thread is joined
                other.join();

                // Allowed: the handler was called before run() returned.
                BOOST_REQUIRE_EQUAL(calls, 1);
                one.check(seen, rival::expiry);
            }
        }
    }
}

// --- full rings ---------------------------------------------------------------------------------

struct policy {
    ring_overflow when_full;
    const char* name;
    outcomes ended;           ///< by an operation that counts
    outcomes ended_uncounted; ///< by one that does not count, or by none
    bool early;               ///< a wait may succeed before its expiry

    friend std::ostream& operator<<(std::ostream& out, const policy& p) { return out << p.name; }
};

/// The fourth table: the outcomes of waits in a ring that is repeatedly full.
const std::vector<policy>& policies() {
    using enum told;
    static const std::vector<policy> table{
        {ring_overflow::grow,
         "grow",
         {{1, aborted}, {0, success}},
         {{none, aborted}, {none, success}},
         false},
        {ring_overflow::reject,
         "reject",
         {{1, aborted}, {0, success}, {0, refused}},
         {{none, aborted}, {none, success}, {none, refused}},
         false},
        {ring_overflow::expire_now,
         "expire_now",
         {{1, aborted}, {0, success}},
         {{none, aborted}, {none, success}},
         true},
        {ring_overflow::flush_oldest,
         "flush_oldest",
         {{1, aborted}, {0, success}},
         {{none, aborted}, {none, success}},
         true},
    };
    return table;
}

/// One wait on one ring_timer.
struct ring_wait {
    wait_record record;
    int count = 0;      ///< how often an operation has counted it
    bool asked = false; ///< by an operation that counts, and that came last
    clock_type::time_point expiry;

    void check(census& seen, const policy& p) const {
        const told what = record.what();
        seen.check({asked ? count : none, what}, asked ? p.ended : p.ended_uncounted);
        BOOST_REQUIRE_EQUAL(record.began, 1);
        BOOST_REQUIRE_EQUAL(record.handlers, 0);
        if (what == told::success && !p.early)
            BOOST_REQUIRE(record.at >= expiry); // P1
    }
};

template <class Backend>
pawl::options with_small_rings(const policy& p, unsigned variant, unsigned shards,
                               std::size_t capacity) {
    pawl::options o = Backend::options(variant, shards);
    for (auto& each : o.rings.delays)
        each.capacity = capacity;
    o.rings.when_full = p.when_full;
    return o;
}

/// A thread's own timers, each with at most one wait.
class ring_user {
public:
    ring_user(asio::io_context& context, const policy& p, std::uint64_t seed)
        : context_(context), policy_(p), random_(seed) {}

    void step() {
        one_timer& one = timers_[random_() % timers_.size()];
        if (!one.timer)
            one.timer.emplace(context_);
        switch (random_() % 8) {
        case 0:
        case 1:
            end(one, one.timer->expires_after(some_delay()));
            one.wait = &waits_.emplace_back();
            one.wait->expiry = one.timer->expiry();
            one.timer->async_wait(recorder(one.wait->record));
            break;
        case 2:
            end(one, one.timer->cancel());
            break;
        case 3:
            rearm(one);
            break;
        case 4: {
            pawl::ring_timer moved(std::move(*one.timer));
            *one.timer = std::move(moved);
            break;
        }
        case 5: { // takes the place of another timer, whose wait is cancelled
            one_timer& there = timers_[random_() % timers_.size()];
            if (&there != &one) {
                there.timer = std::move(one.timer);
                there.wait = std::exchange(one.wait, nullptr);
                one.timer.reset();
            }
            break;
        }
        case 6:
            one.timer.reset();
            one.wait = nullptr;
            break;
        default:
            pause(random_, 50us);
        }
    }

    /// After all threads have ended.
    void check(census& seen) const {
        for (const ring_wait& each : waits_)
            each.check(seen, policy_);
        BOOST_REQUIRE_EQUAL(strange_, 0);
    }

private:
    struct one_timer {
        std::optional<pawl::ring_timer> timer;
        ring_wait* wait = nullptr; ///< the last one, unless it was counted
    };

    std::chrono::microseconds some_delay() {
        static constexpr std::array delays{soon, soon, soon, later};
        return delays[random_() % delays.size()];
    }

    void end(one_timer& one, std::size_t count) {
        if (one.wait) {
            one.wait->count += static_cast<int>(count);
            one.wait->asked = true;
        } else if (count != 0) {
            ++strange_;
        }
        one.wait = nullptr;
    }

    void rearm(one_timer& one) {
        try {
            const std::size_t count = one.timer->rearm_after(some_delay());
            if (count != 0 && one.wait)
                one.wait->expiry = one.timer->expiry();
            else if (count != 0)
                ++strange_;
        } catch (const boost::system::system_error& e) { // the wait is unchanged
            if (policy_.when_full != ring_overflow::reject ||
                e.code() != asio::error::no_buffer_space)
                ++strange_;
        }
    }

    asio::io_context& context_;
    const policy& policy_;
    random_type random_;
    int strange_ = 0;
    std::deque<ring_wait> waits_;
    std::array<one_timer, 4> timers_;
};

const auto overflow = data::make(policies());
const auto capacities = data::make({std::size_t{1}, std::size_t{4}});

BOOST_DATA_TEST_CASE(P3_P4_four_threads_in_rings_that_are_too_small, overflow* capacities, p,
                     capacity) {
    const std::uint64_t seed = pawl_test::seed();
    for (unsigned variant = 0; variant < 8; ++variant) {
        std::deque<ring_user> users;
        {
            const unsigned s = variant < 4 ? 1 : 2; // two threads in each ring
            rings::arena a(with_small_rings<rings>(p, variant, s, capacity), runners);
            for (unsigned i = 0; i < 4; ++i)
                users.emplace_back(a.context, p, seed + 4 * variant + i);
            in_threads(4, [&](int me) {
                for (int i = 0; i < 400; ++i)
                    users[static_cast<std::size_t>(me)].step();
            });
        }
        census seen(std::string(p.name) + ", " + std::to_string(capacity));
        for (const ring_user& each : users)
            each.check(seen);
    }
}

// Rings grow while their earlier contents expire.
BOOST_AUTO_TEST_CASE(P1_P3_growth_beside_expiry) {
    const policy& grow = policies().front();
    for (unsigned variant = 0; variant < 8; ++variant) {
        std::array<std::deque<ring_wait>, 4> waits;
        {
            std::array<std::deque<pawl::ring_timer>, 4> timers;
            const unsigned s = variant < 4 ? 1 : 2; // as above
            rings::arena a(with_small_rings<rings>(grow, variant, s, 1), runners);
            in_threads(4, [&](int me) {
                const auto mine = static_cast<std::size_t>(me);
                for (int i = 0; i < 300; ++i) {
                    auto& timer = timers[mine].emplace_back(a.context, i % 8 == 0 ? later : soon);
                    auto& wait = waits[mine].emplace_back();
                    wait.expiry = timer.expiry();
                    timer.async_wait(recorder(wait.record));
                }
            });
            a.finish();
        }

        // Allowed: success, not early.
        for (const auto& mine : waits) {
            for (const ring_wait& each : mine) {
                BOOST_REQUIRE(each.record.what() == told::success);
                BOOST_REQUIRE_EQUAL(each.record.began, 1);
                BOOST_REQUIRE(each.record.at >= each.expiry);
            }
        }
    }
}

// Two threads start and cancel a wait, while two others push it out of the ring.
BOOST_DATA_TEST_CASE(P4_cancel_of_a_wait_for_which_there_may_be_no_room,
                     overflow* data::make({1u, 2u}), p, s) {
    const std::uint64_t seed = pawl_test::seed();
    std::array<std::deque<ring_wait>, 4> waits;
    {
        rings::arena a(with_small_rings<rings>(p, 0, s, 2), runners);
        in_threads(4, [&](int me) {
            random_type random(seed + static_cast<unsigned>(me));
            pawl::ring_timer timer(a.context);
            for (int i = 0; i < 500; ++i) {
                auto& wait = waits[static_cast<std::size_t>(me)].emplace_back();
                wait.asked = true;
                timer.expires_after(latest);
                wait.expiry = timer.expiry();
                timer.async_wait(recorder(wait.record));
                if (me < 2)
                    pause(random, 50us);
                wait.count = static_cast<int>(timer.cancel());
            }
        });
    }

    census seen(std::string(p.name) + ", cancel");
    for (const auto& mine : waits)
        for (const ring_wait& each : mine)
            each.check(seen, p);
}

} // namespace backend_race
