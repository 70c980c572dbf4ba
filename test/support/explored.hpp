// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Runs a few threads on every execution that the C++ memory model allows them, within bounds:
//   every interleaving, and every store that a load may read. Code under test uses explored::atomic
//   in the place of std::atomic. A bad execution is printed step by step.
//
// Model
//   The memory of C++20 as an execution graph that grows one event at a time. Happens-before is a
//   vector clock per thread. An atomic keeps all its stores, in modification order, each with the
//   clock that it releases:
//
//       modification order    init --- store by T1 --- rmw by T2 --- store by T3
//                                      ^ floor of this thread: the latest of these that an event
//                                        which happens before has read or written (coherence)
//
//   - A load reads its floor or a later store. If it acquires, the thread joins the released clock.
//   - A store goes anywhere behind its floor, but not between an rmw and the store that the rmw has
//     read. A releasing store keeps the clock of its thread. A relaxed one keeps none.
//   - An rmw reads a store that no other rmw has read and goes right behind it. It also keeps the
//     clock of that store: a release sequence. A compare-exchange that fails is a load.
//   - A relaxed load may read a store that has not been made yet (load buffering), if another
//     execution with the same past has made it without that load. An execution in which the store
//     does not follow, or comes to depend on the load by happens-before, is dropped.
//   - seq_cst operations on one atomic read and write in the order in which they are executed.
//   - wait() blocks until a notification with a newer store.
//   - Threads are fibers of one thread. Which one runs next is a choice before each operation.
//
//   A depth-first search goes through all choices. Every choice has a default answer: continue the
//   same thread, read the newest store, store at the end. Any other answer is a deviation. The
//   search takes all executions with 0 deviations, then 1, and so on up to a bound, so that the
//   first bad execution is a short one. A random walk deviates without a bound.
//
//   A site is a place in the source that names a memory order (test/orders/explored_header.py). The
//   order of one site can be weakened for an exploration. See weaknesses().
//
// Finds
//   - Data races on explored::data and explored::member, which stand for memory that is not atomic.
//   - A member that is used after its destruction, by any thread, whatever happens before.
//   - An atomic that is used before its construction or after its destruction, in happens-before.
//   - Failures of execution::require(), and threads that are blocked forever.
//
// Limits
//   - No fences, because the library uses none; no consume. At most four threads beside the first
//     one.
//   - Atomics have up to eight bytes. Code under test must not wait in a loop for another thread.
//   - One load of an execution reads from the future, and only a relaxed one.
//   - The order of all seq_cst operations is the order of execution. So an execution is missed if
//     that order contradicts happens-before, which C++20 allows beside weaker accesses.
//   - Within the bound the search is complete. Beyond it there is only the random walk.

#ifndef PAWL_TEST_SUPPORT_EXPLORED_HPP
#define PAWL_TEST_SUPPORT_EXPLORED_HPP

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iomanip>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace explored {

/// A place in the source that names a memory order.
struct site {
    std::string_view file;
    unsigned line;
    std::memory_order written;
    std::string_view text; ///< the line
};

/// A memory order, and its place in the source.
struct order {
    static constexpr unsigned nowhere = ~0U;

    constexpr order(std::memory_order w, unsigned s = nowhere) : written(w), site(s) {}

    std::memory_order written;
    unsigned site;
};

[[nodiscard]] inline const char* name_of(std::memory_order o) {
    switch (o) {
    case std::memory_order_relaxed:
        return "relaxed";
    case std::memory_order_consume:
        return "consume";
    case std::memory_order_acquire:
        return "acquire";
    case std::memory_order_release:
        return "release";
    case std::memory_order_acq_rel:
        return "acq_rel";
    case std::memory_order_seq_cst:
        return "seq_cst";
    }
    throw std::logic_error("explored: no memory order");
}

/// The orders that are weaker by one step.
[[nodiscard]] inline std::vector<std::memory_order> weaker(std::memory_order o) {
    switch (o) {
    case std::memory_order_seq_cst:
        return {std::memory_order_acq_rel};
    case std::memory_order_acq_rel:
        return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
        return {std::memory_order_relaxed};
    default:
        return {};
    }
}

/// One order to weaken.
struct weakening {
    unsigned site = order::nowhere;
    std::memory_order to = std::memory_order_seq_cst;
};

/// The extent of an exploration.
struct limits {
    unsigned deviations = 3;       ///< of one execution
    std::uint64_t random = 0;      ///< executions of the random walk that follows
    std::uint64_t seed = 0;        ///< of that walk
    bool shortest_first = true;    ///< 0 deviations, then 1, ...; otherwise all at once
    unsigned first_deviations = 0; ///< first number of deviations
};

/// A bad execution.
struct failure {
    std::string what;
    std::string trace; ///< a line for each step
};

/// The results of an exploration.
struct findings {
    std::uint64_t executions = 0;
    std::optional<failure> bad; ///< the exploration ends with it
    std::set<std::string> outcomes;
    std::vector<bool> sites; ///< the sites that were used
};

class execution;
using scenario = std::function<void(execution&)>;

/// Unwinds the scenario after a bad execution.
struct abandoned {};

namespace detail {

constexpr std::size_t most_threads = 5;
constexpr std::size_t stack_bytes = std::size_t{256} * 1024;
constexpr std::size_t none = ~std::size_t{0};
constexpr std::size_t most_steps = 5000;

using word = std::uint64_t;
using moment = std::uint32_t;

/// Happens-before: the events of each thread up to a moment.
struct clock {
    std::array<moment, most_threads> known{};

    void join(const clock& other) {
        for (std::size_t i = 0; i != most_threads; ++i)
            known[i] = std::max(known[i], other.known[i]);
    }
    [[nodiscard]] bool knows(std::size_t thread, moment when) const {
        return when <= known[thread];
    }
};

[[nodiscard]] inline bool acquires(std::memory_order o) {
    return o == std::memory_order_acquire || o == std::memory_order_acq_rel ||
           o == std::memory_order_seq_cst;
}
[[nodiscard]] inline bool releases(std::memory_order o) {
    return o == std::memory_order_release || o == std::memory_order_acq_rel ||
           o == std::memory_order_seq_cst;
}

/// The order of a compare-exchange that fails, if only one is given.
[[nodiscard]] inline std::memory_order on_failure(std::memory_order o) {
    if (o == std::memory_order_acq_rel)
        return std::memory_order_acquire;
    return o == std::memory_order_release ? std::memory_order_relaxed : o;
}

struct store {
    word value;
    std::size_t thread;
    bool is_rmw;
    clock released;
};

struct access {
    moment when;
    std::size_t which; ///< the store that was read or made
};

/// A relaxed load that may read from the future.
struct early_load {
    std::size_t thread;
    moment when;
    std::size_t node;
};

struct location {
    const void* address;
    std::size_t maker;
    moment made;
    std::vector<store> stores;              ///< in the order of execution
    std::vector<std::size_t> modifications; ///< the modification order
    std::array<std::vector<access>, most_threads> accesses;
    std::vector<early_load> early;
    std::size_t sc_floor;

    void reset(const void* at, std::size_t thread, moment when, word initial) {
        address = at;
        maker = thread;
        made = when;
        stores.assign(1, store{initial, thread, false, {}});
        modifications.assign(1, 0);
        for (auto& each : accesses)
            each.clear();
        early.clear();
        sc_floor = 0;
    }

    [[nodiscard]] std::size_t position(std::size_t which) const {
        return static_cast<std::size_t>(
            std::find(modifications.begin(), modifications.end(), which) - modifications.begin());
    }
    /// An rmw has read the store at `position`, so no store may go between.
    [[nodiscard]] bool is_taken(std::size_t position) const {
        return position + 1 != modifications.size() && stores[modifications[position + 1]].is_rmw;
    }
    /// Coherence: no event that knows `c` reads or writes before this.
    [[nodiscard]] std::size_t floor(const clock& c) const {
        std::size_t at = 0;
        for (std::size_t t = 0; t != most_threads; ++t) {
            for (auto a = accesses[t].rbegin(); a != accesses[t].rend(); ++a) {
                if (c.knows(t, a->when)) {
                    at = std::max(at, position(a->which));
                    break;
                }
            }
        }
        return at;
    }
};

/// A choice. Answer 0 is the default; `later` are values from the future, behind the others.
struct node {
    std::size_t answers;
    std::size_t chosen;
    unsigned spent; ///< deviations before it
    bool is_free;   ///< any answer is a default
    std::vector<word> later;

    [[nodiscard]] std::size_t all() const { return answers + later.size(); }
};

struct step {
    std::size_t thread;
    const char* what;
    unsigned site;
    std::memory_order used;
    std::memory_order written;
    const void* address;
    std::optional<word> read;
    std::size_t read_from;
    const char* remark;
    std::optional<word> stored;
};

enum class thread_state { ready, blocked, ended };

struct thread {
    clock knows;
    thread_state state = thread_state::ended;
    const location* waits_for = nullptr;
    std::function<void()> body;
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
};

} // namespace detail

/// The one exploration of this process, and its current execution.
class explorer {
public:
    explorer(const std::vector<site>& sites, weakening weak) : sites_(sites), weak_(weak) {
        if (active_ != nullptr)
            throw std::logic_error("explored: an exploration within an exploration");
        active_ = this;
        found_.sites.resize(sites.size());
    }
    explorer(const explorer&) = delete;
    explorer& operator=(const explorer&) = delete;
    ~explorer() { active_ = nullptr; }

    [[nodiscard]] findings explore(const scenario& body, const limits& l);

    // --- for execution -----------------------------------------------------------------------

    void together(std::vector<std::function<void()>> bodies);
    void require(bool holds, std::string_view what) {
        if (!holds)
            fail(std::string(what), true);
    }
    void outcome(std::string what) { outcome_ = std::move(what); }
    void name(detail::word value, std::string what) { names_[value] = std::move(what); }
    void name(const void* address, std::string what) { places_[address] = std::move(what); }

    // --- for atomic and data -----------------------------------------------------------------

    static explorer* active() { return active_; }
    static void constructed(void* address, detail::word initial) {
        if (active_ != nullptr && active_->running_)
            active_->make(address, initial);
        else
            statics()[address] = initial;
    }
    static void destroyed(const void* address) {
        if (active_ != nullptr && active_->running_)
            active_->unmake(address);
        else
            statics().erase(address);
    }

    detail::word load(const void* address, order o, const char* what = "load") {
        const std::memory_order used = begin(o);
        detail::location* const at = find(address);
        return at != nullptr ? read(*at, what, o, used) : 0;
    }
    void store(const void* address, detail::word value, order o);
    template <class Change>
    detail::word change(const void* address, const char* what, order o, Change to);
    bool exchange_if(const void* address, bool weak, detail::word& expected, detail::word desired,
                     order success, order failing);
    void wait(const void* address, detail::word old, order o);
    void notify(const void* address);

    struct plain_memory {
        std::size_t writer = 0;
        detail::moment written = 0;
        detail::clock reads{};
    };
    plain_memory fresh() {
        if (!running_ || over_)
            return {};
        return {current_, tick(), {}};
    }
    void touch(plain_memory& memory, bool writes, const void* address);

    // --- for member --------------------------------------------------------------------------

    void begin_member(const void* address, std::string_view name) {
        if (!running_)
            return;
        members_[address] = {fresh(), false};
        places_[address] = name;
    }
    void touch_member(const void* address, bool writes) {
        const auto found = members_.find(address);
        if (found == members_.end())
            return;
        if (found->second.gone)
            fail("data is used after its destruction", false, true);
        touch(found->second.memory, writes, address);
    }
    void end_member(const void* address) {
        touch_member(address, true);
        if (const auto found = members_.find(address); found != members_.end())
            found->second.gone = true;
    }

    // --- for the executors of a test ---------------------------------------------------------

    /// The number of the running thread: 0 is the scenario.
    [[nodiscard]] static std::size_t current_thread() { return active_->current_; }

private:
    using word = detail::word;
    using moment = detail::moment;
    using location = detail::location;

    static std::map<const void*, word>& statics() {
        static std::map<const void*, word> all;
        return all;
    }

    detail::thread& self() { return threads_[current_]; }
    moment tick() { return ++self().knows.known[current_]; }

    // --- choices -----------------------------------------------------------------------------

    std::size_t choose(std::size_t answers, bool is_free, bool may_grow = false);
    bool next(unsigned bound);
    void run(const scenario& body);

    // --- memory ------------------------------------------------------------------------------

    void make(const void* address, word initial);
    void unmake(const void* address);
    location* find(const void* address);
    std::memory_order weakened(order o) const {
        return o.site == weak_.site && o.site != order::nowhere ? weak_.to : o.written;
    }
    void use_site(order o) {
        if (o.site != order::nowhere)
            found_.sites[o.site] = true;
    }
    std::memory_order begin(order o);
    word read(location& at, const char* what, order o, std::memory_order used);
    void note(location& at, std::size_t which) {
        at.accesses[current_].push_back({self().knows.known[current_], which});
    }
    void insert(location& at, std::size_t position, word value, bool is_rmw, detail::clock released,
                std::memory_order used);
    void fulfil(location& at, std::size_t which);
    std::size_t floor_of(const location& at, std::memory_order used) const {
        std::size_t floor = at.floor(threads_[current_].knows);
        if (used == std::memory_order_seq_cst)
            floor = std::max(floor, at.position(at.sc_floor));
        return floor;
    }
    void raise_sc(location& at, std::size_t which, std::memory_order used) {
        if (used == std::memory_order_seq_cst && at.position(which) > at.position(at.sc_floor))
            at.sc_floor = which;
    }
    detail::step& log(const location& at, const char* what, order o, std::memory_order used) {
        return steps_.emplace_back(
            detail::step{current_, what, o.site, used, o.written, at.address, {}, 0, "", {}});
    }
    static const char* age(const location& at, std::size_t position) {
        return position + 1 == at.modifications.size() ? "" : ", stale";
    }

    // --- threads -----------------------------------------------------------------------------

    void reschedule();
    void switch_to(std::size_t thread);
    void leave_thread();
    static void enter_thread();

    void fail(std::string what, bool may_throw = false, bool is_fatal = false);
    [[noreturn]] void abandon();
    [[nodiscard]] std::string trace() const;
    [[nodiscard]] std::string shown(word value) const;

    static inline explorer* active_ = nullptr;

    const std::vector<site>& sites_;
    weakening weak_;
    findings found_;

    // choices
    std::vector<detail::node> nodes_;
    std::size_t depth_ = 0;
    unsigned spent_ = 0;
    std::optional<std::mt19937_64> walk_;

    // the execution
    bool running_ = false;
    bool over_ = false;       ///< bad, or impossible: only default answers until it ends
    bool impossible_ = false; ///< a store from the future did not come
    std::string bad_;
    std::string bad_trace_;
    std::string outcome_;
    std::vector<detail::step> steps_;
    std::map<word, std::string> names_;
    std::map<const void*, std::string> places_;

    // its memory
    std::unordered_map<const void*, location*> locations_;
    std::deque<location> pool_;
    std::size_t pooled_ = 0;
    struct member_memory {
        plain_memory memory;
        bool gone;
    };
    std::unordered_map<const void*, member_memory> members_;
    struct promise {
        location* at;
        std::size_t thread;
        moment when;
        word value;
        bool is_kept;
    };
    std::optional<promise> promise_;

    // its threads; the first one is the scenario
    std::array<detail::thread, detail::most_threads> threads_;
    std::size_t started_ = 0;
    std::size_t current_ = 0;
};

/// The interface of an execution for a scenario.
class execution {
public:
    explicit execution(explorer& e) : explorer_(e) {}

    /// Runs these in threads of their own until all have ended. Earlier operations happen before
    /// them, and they happen before later ones.
    template <class... Bodies>
    void together(Bodies... bodies) {
        explorer_.together({std::function<void()>(bodies)...});
    }

    /// The execution is bad unless `holds`.
    void require(bool holds, std::string_view what) { explorer_.require(holds, what); }

    /// The result of the execution, for findings::outcomes.
    void outcome(std::string what) { explorer_.outcome(std::move(what)); }

    /// Sets the name under which a pointer to it is printed.
    void name(const void* what, std::string text) {
        explorer_.name(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(what)),
                       std::move(text));
    }
    /// Sets the name under which an atomic or data at this address is printed.
    void name_place(const void* where, std::string text) { explorer_.name(where, std::move(text)); }

private:
    explorer& explorer_;
};

// --- explorer: choices ---------------------------------------------------------------------------

inline findings explorer::explore(const scenario& body, const limits& l) {
    const unsigned first = l.shortest_first ? l.first_deviations : l.deviations;
    for (unsigned bound = first; bound <= l.deviations && !found_.bad; ++bound) {
        nodes_.clear();
        do
            run(body);
        while (!found_.bad && next(bound));
    }
    for (std::uint64_t i = 0; i != l.random && !found_.bad; ++i) {
        nodes_.clear();
        walk_.emplace(l.seed + i);
        run(body);
    }
    walk_.reset();
    return std::move(found_);
}

/// The next answer of the last choice that has one within the bound.
inline bool explorer::next(unsigned bound) {
    while (!nodes_.empty()) {
        detail::node& last = nodes_.back();
        if (last.chosen + 1 < last.all() && (last.is_free || last.spent < bound)) {
            ++last.chosen;
            return true;
        }
        nodes_.pop_back();
    }
    return false;
}

inline std::size_t explorer::choose(std::size_t answers, bool is_free, bool may_grow) {
    if (over_ || current_ == 0 || (answers == 1 && !may_grow))
        return 0;
    if (depth_ == nodes_.size()) {
        std::size_t chosen = 0;
        if (walk_ && answers > 1 && (is_free || (*walk_)() % 8 == 0))
            chosen = (*walk_)() % answers;
        nodes_.push_back({answers, chosen, spent_, is_free, {}});
    }
    const detail::node& here = nodes_[depth_++];
    if (here.answers != answers || here.is_free != is_free)
        throw std::logic_error("explored: the scenario does not do the same thing twice");
    spent_ = here.spent + (here.chosen != 0 && !is_free ? 1 : 0);
    return here.chosen;
}

inline void explorer::run(const scenario& body) {
    depth_ = 0;
    spent_ = 0;
    over_ = false;
    impossible_ = false;
    bad_.clear();
    outcome_.clear();
    steps_.clear();
    names_.clear();
    places_.clear();
    locations_.clear();
    pooled_ = 0;
    members_.clear();
    promise_.reset();
    current_ = 0;
    started_ = 0;
    threads_[0].knows = {};
    running_ = true;
    for (const auto& [address, initial] : statics())
        make(address, initial);

    try {
        execution e(*this);
        body(e);
    } catch (const abandoned&) {
    }
    running_ = false;
    ++found_.executions;
    if (promise_ && !promise_->is_kept)
        impossible_ = true;
    if (impossible_)
        return;
    if (!bad_.empty())
        found_.bad = failure{bad_, bad_trace_};
    else if (!outcome_.empty())
        found_.outcomes.insert(outcome_);
}

// --- explorer: memory ----------------------------------------------------------------------------

inline void explorer::make(const void* address, word initial) {
    if (pooled_ == pool_.size())
        pool_.emplace_back();
    location& at = pool_[pooled_++];
    at.reset(address, current_, tick(), initial);
    locations_[address] = &at;
}

inline void explorer::unmake(const void* address) {
    const auto found = locations_.find(address);
    if (found == locations_.end() || over_)
        return;
    for (std::size_t t = 0; t != detail::most_threads; ++t) {
        const auto& by = found->second->accesses[t];
        if (!by.empty() && !self().knows.knows(t, by.back().when))
            fail("data race: an atomic is destroyed while another thread uses it");
    }
    if (!self().knows.knows(found->second->maker, found->second->made))
        fail("data race: an atomic is destroyed while another thread constructs it");
    locations_.erase(found);
}

inline detail::location* explorer::find(const void* address) {
    const auto found = locations_.find(address);
    if (found == locations_.end()) {
        fail("an atomic is used that is not there: a null pointer, or freed memory", false, true);
        return nullptr;
    }
    location* const at = found->second;
    if (!self().knows.knows(at->maker, at->made))
        fail("data race: an atomic is used while another thread constructs it");
    if (promise_ && !promise_->is_kept && promise_->at == at &&
        self().knows.knows(promise_->thread, promise_->when))
        impossible_ = over_ = true;
    return at;
}

/// Called before each operation.
inline std::memory_order explorer::begin(order o) {
    reschedule();
    (void)tick();
    use_site(o);
    return weakened(o);
}

inline detail::word explorer::read(location& at, const char* what, order o,
                                   std::memory_order used) {
    const std::size_t floor = floor_of(at, used);
    const std::size_t newest = at.modifications.size() - 1;
    const bool may_be_early =
        used == std::memory_order_relaxed && current_ != 0 && !promise_ && !over_;
    const std::size_t answer = choose(newest - floor + 1, false, may_be_early);
    detail::step& done = log(at, what, o, used);
    if (answer > newest - floor) { // from the future
        const word value = nodes_[depth_ - 1].later[answer - (newest - floor + 1)];
        const moment now = self().knows.known[current_];
        promise_ = promise{&at, current_, now, value, false};
        note(at, at.modifications[floor]); // until it is known
        done.read = value;
        done.remark = ", a store that is still to come";
        return value;
    }
    const std::size_t which = at.modifications[newest - answer];
    if (may_be_early)
        at.early.push_back({current_, self().knows.known[current_], depth_ - 1});
    note(at, which);
    raise_sc(at, which, used);
    if (detail::acquires(used))
        self().knows.join(at.stores[which].released);
    done.read = at.stores[which].value;
    done.read_from = at.stores[which].thread;
    done.remark = age(at, newest - answer);
    return at.stores[which].value;
}

inline void explorer::insert(location& at, std::size_t position, word value, bool is_rmw,
                             detail::clock released, std::memory_order used) {
    const std::size_t which = at.stores.size();
    at.stores.push_back({value, current_, is_rmw, released});
    at.modifications.insert(at.modifications.begin() + static_cast<std::ptrdiff_t>(position),
                            which);
    note(at, which);
    raise_sc(at, which, used);
    fulfil(at, which);
}

/// A load that did not happen before this store, and was made earlier, might have read it.
inline void explorer::fulfil(location& at, std::size_t which) {
    const word value = at.stores[which].value;
    if (promise_) {
        if (promise_->is_kept || promise_->at != &at || promise_->value != value ||
            self().knows.knows(promise_->thread, promise_->when))
            return;
        for (detail::access& a : at.accesses[promise_->thread]) {
            if (a.when == promise_->when && at.position(a.which) < at.position(which)) {
                a.which = which;
                promise_->is_kept = true;
            }
        }
        return;
    }
    if (over_)
        return;
    for (const detail::early_load& early : at.early) {
        if (early.thread == current_ || self().knows.knows(early.thread, early.when))
            continue;
        auto& later = nodes_[early.node].later;
        if (std::find(later.begin(), later.end(), value) == later.end())
            later.push_back(value);
    }
}

inline void explorer::store(const void* address, word value, order o) {
    const std::memory_order used = begin(o);
    location* const at = find(address);
    if (at == nullptr)
        return;
    // Behind the floor, at the end first.
    std::vector<std::size_t> places;
    for (std::size_t p = at->modifications.size(); p != floor_of(*at, used); --p) {
        if (!at->is_taken(p - 1))
            places.push_back(p);
    }
    const std::size_t place = places[choose(places.size(), false)];
    detail::step& done = log(*at, "store", o, used);
    done.stored = value;
    if (place != at->modifications.size())
        done.remark = ", before a store that was made earlier";
    insert(*at, place, value, false, detail::releases(used) ? self().knows : detail::clock{}, used);
}

template <class Change>
detail::word explorer::change(const void* address, const char* what, order o, Change to) {
    const std::memory_order used = begin(o);
    location* const at = find(address);
    if (at == nullptr)
        return 0;
    std::vector<std::size_t> places;
    for (std::size_t p = at->modifications.size(); p != floor_of(*at, used); --p) {
        if (!at->is_taken(p - 1))
            places.push_back(p - 1);
    }
    const std::size_t place = places[choose(places.size(), false)];
    const detail::store from = at->stores[at->modifications[place]];
    detail::step& done = log(*at, what, o, used);
    done.read = from.value;
    done.read_from = from.thread;
    done.remark = age(*at, place);
    if (detail::acquires(used))
        self().knows.join(from.released);
    detail::clock released = from.released;
    if (detail::releases(used))
        released.join(self().knows);
    done.stored = to(from.value);
    insert(*at, place + 1, *done.stored, true, released, used);
    return from.value;
}

inline bool explorer::exchange_if(const void* address, bool weak, word& expected, word desired,
                                  order success, order failing) {
    const std::memory_order used = begin(success);
    use_site(failing);
    const std::memory_order used_failing = weakened(failing);
    location* const at = find(address);
    if (at == nullptr)
        return false;
    struct candidate {
        std::size_t place;
        bool succeeds;
    };
    std::vector<candidate> candidates;
    const std::size_t end = at->modifications.size();
    for (std::size_t p = end; p-- != 0;) {
        const bool same = at->stores[at->modifications[p]].value == expected;
        if (same && !at->is_taken(p) && p >= floor_of(*at, used))
            candidates.push_back({p, true});
        if (!same && p >= floor_of(*at, used_failing))
            candidates.push_back({p, false});
    }
    if (weak && at->stores[at->modifications[end - 1]].value == expected)
        candidates.push_back({end - 1, false}); // spuriously
    const candidate chosen = candidates[choose(candidates.size(), false)];
    const std::size_t which = at->modifications[chosen.place];
    const detail::store from = at->stores[which];
    const std::memory_order in_use = chosen.succeeds ? used : used_failing;
    detail::step& done = log(*at, chosen.succeeds ? "compare_exchange" : "compare_exchange fails",
                             chosen.succeeds ? success : failing, in_use);
    done.read = from.value;
    done.read_from = from.thread;
    done.remark = age(*at, chosen.place);
    if (detail::acquires(in_use))
        self().knows.join(from.released);
    if (!chosen.succeeds) {
        note(*at, which);
        raise_sc(*at, which, in_use);
        expected = from.value;
        return false;
    }
    detail::clock released = from.released;
    if (detail::releases(in_use))
        released.join(self().knows);
    done.stored = desired;
    insert(*at, chosen.place + 1, desired, true, released, in_use);
    return true;
}

inline void explorer::wait(const void* address, word old, order o) {
    while (load(address, o, "wait") == old && !over_) {
        const location& at = *find(address);
        if (at.accesses[current_].back().which != at.modifications.back())
            continue; // stale: a thread that has stored since may already have notified
        if (current_ == 0) {
            fail("all threads are blocked", true);
            return;
        }
        self().state = detail::thread_state::blocked;
        self().waits_for = &at;
        leave_thread();
    }
}

inline void explorer::notify(const void* address) {
    reschedule();
    location* const at = find(address);
    if (at == nullptr)
        return;
    for (std::size_t t = 1; t <= started_; ++t) {
        detail::thread& each = threads_[t];
        if (each.state != detail::thread_state::blocked || each.waits_for != at)
            continue;
        each.state = detail::thread_state::ready;
        // It reads a store that this thread knows, or a later one.
        at->accesses[t].push_back(
            {each.knows.known[t], at->modifications[at->floor(self().knows)]});
    }
}

inline void explorer::touch(plain_memory& memory, bool writes, const void* address) {
    if (!running_ || over_)
        return;
    const auto& knows = self().knows;
    bool races = !knows.knows(memory.writer, memory.written);
    for (std::size_t t = 0; writes && t != detail::most_threads; ++t)
        races = races || !knows.knows(t, memory.reads.known[t]);
    const moment now = tick();
    if (writes) {
        memory.writer = current_;
        memory.written = now;
    } else {
        memory.reads.known[current_] = now;
    }
    steps_.emplace_back(detail::step{current_,
                                     writes ? "writes data" : "reads data",
                                     order::nowhere,
                                     std::memory_order_relaxed,
                                     std::memory_order_relaxed,
                                     address,
                                     {},
                                     0,
                                     "",
                                     {}});
    if (races)
        fail(writes ? "data race: data is written that another thread uses"
                    : "data race: data is read that another thread writes");
}

// --- explorer: threads ---------------------------------------------------------------------------

inline void explorer::enter_thread() {
    explorer& e = *active_;
    e.self().body();
    e.self().state = detail::thread_state::ended;
    e.leave_thread();
}

inline void explorer::together(std::vector<std::function<void()>> bodies) {
    if (current_ != 0 || started_ != 0 || bodies.size() >= detail::most_threads)
        throw std::logic_error("explored: threads start once, and few of them");
    started_ = bodies.size();
    for (std::size_t t = 1; t <= started_; ++t) {
        detail::thread& each = threads_[t];
        each.knows = threads_[0].knows;
        each.state = detail::thread_state::ready;
        each.body = std::move(bodies[t - 1]);
        if (each.stack == nullptr)
            each.stack = std::make_unique<std::byte[]>(detail::stack_bytes);
        getcontext(&each.context);
        each.context.uc_stack.ss_sp = each.stack.get();
        each.context.uc_stack.ss_size = detail::stack_bytes;
        each.context.uc_link = nullptr;
        makecontext(&each.context, &explorer::enter_thread, 0);
    }
    // Which thread starts is a choice of the first of them.
    current_ = 1;
    current_ = 1 + choose(started_, true);
    swapcontext(&threads_[0].context, &threads_[current_].context);
    current_ = 0;
    const bool all_ended = std::all_of(
        threads_.begin() + 1, threads_.begin() + 1 + static_cast<std::ptrdiff_t>(started_),
        [](const detail::thread& each) { return each.state == detail::thread_state::ended; });
    if (!all_ended) {
        started_ = 0;
        throw abandoned{};
    }
    for (std::size_t t = 1; t <= started_; ++t)
        threads_[0].knows.join(threads_[t].knows);
    started_ = 0;
}

inline void explorer::switch_to(std::size_t thread) {
    const std::size_t from = current_;
    current_ = thread;
    swapcontext(&threads_[from].context, &threads_[thread].context);
}

/// Another thread may continue.
inline void explorer::reschedule() {
    if (current_ == 0)
        return;
    if (steps_.size() > detail::most_steps) {
        fail("the threads do not end", false, true);
        return;
    }
    std::array<std::size_t, detail::most_threads> ready{current_};
    std::size_t n = 1;
    for (std::size_t t = 1; t <= started_; ++t) {
        if (t != current_ && threads_[t].state == detail::thread_state::ready)
            ready[n++] = t;
    }
    if (const std::size_t to = ready[choose(n, false)]; to != current_)
        switch_to(to);
}

/// This thread does not continue for the time being.
inline void explorer::leave_thread() {
    std::array<std::size_t, detail::most_threads> ready{};
    std::size_t n = 0;
    bool all_ended = true;
    for (std::size_t t = 1; t <= started_; ++t) {
        if (threads_[t].state == detail::thread_state::ready)
            ready[n++] = t;
        all_ended = all_ended && threads_[t].state == detail::thread_state::ended;
    }
    if (n != 0)
        return switch_to(ready[choose(n, true)]);
    if (!all_ended)
        fail("all threads are blocked", false, true);
    switch_to(0);
}

inline void explorer::abandon() {
    switch_to(0);
    throw std::logic_error("explored: an abandoned thread goes on");
}

/// @param is_fatal whether the thread cannot continue.
inline void explorer::fail(std::string what, bool may_throw, bool is_fatal) {
    if (!over_ && bad_.empty()) {
        bad_ = std::move(what);
        bad_trace_ = trace();
    }
    // Whether a load from the future was right is known when all threads have ended.
    if (promise_ && !promise_->is_kept && !is_fatal && current_ != 0)
        return;
    over_ = true;
    if (current_ != 0)
        abandon();
    if (may_throw)
        throw abandoned{};
}

// --- explorer: printing --------------------------------------------------------------------------

inline std::string explorer::shown(word value) const {
    const auto named = names_.find(value);
    if (named != names_.end())
        return named->second;
    std::ostringstream text;
    if (value > 0xffff'ffff)
        text << "0x" << std::hex;
    text << value;
    return text.str();
}

inline std::string explorer::trace() const {
    std::map<const void*, std::string> places = places_;
    std::ostringstream text;
    for (const detail::step& s : steps_) {
        std::string& place = places[s.address];
        if (place.empty())
            place = "#" + std::to_string(places.size());
        std::ostringstream what;
        what << 'T' << s.thread << "  " << place << ' ' << s.what;
        if (s.read)
            what << ", reads " << shown(*s.read) << " of T" << s.read_from;
        what << s.remark;
        if (s.stored)
            what << ", stores " << shown(*s.stored);
        if (s.site != order::nowhere) {
            const site& where = sites_[s.site];
            text << "  " << std::left << std::setw(64) << what.str() << ' ' << where.file << ':'
                 << where.line << ": " << where.text;
            if (s.used != s.written)
                text << "   <-- " << name_of(s.used);
        } else {
            text << "  " << what.str();
        }
        text << '\n';
    }
    return text.str();
}

// --- for code under test -------------------------------------------------------------------------

/// Like std::atomic.
template <class T>
class atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

public:
    using value_type = T;
    static constexpr bool is_always_lock_free = true;

    atomic() noexcept : atomic(T{}) {}
    atomic(T initial) noexcept { explorer::constructed(this, to_word(initial)); }
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;
    ~atomic() { explorer::destroyed(this); }

    T load(order o) const noexcept { return to_value(explorer::active()->load(this, o)); }
    void store(T value, order o) noexcept { explorer::active()->store(this, to_word(value), o); }
    T exchange(T value, order o) noexcept {
        return change("exchange", o, [value](T) { return value; });
    }
    T fetch_add(T by, order o) noexcept {
        return change("fetch_add", o, [by](T old) { return static_cast<T>(old + by); });
    }
    T fetch_sub(T by, order o) noexcept {
        return change("fetch_sub", o, [by](T old) { return static_cast<T>(old - by); });
    }
    T fetch_or(T bits, order o) noexcept {
        return change("fetch_or", o, [bits](T old) { return static_cast<T>(old | bits); });
    }
    T fetch_and(T bits, order o) noexcept {
        return change("fetch_and", o, [bits](T old) { return static_cast<T>(old & bits); });
    }

    bool compare_exchange_strong(T& expected, T desired, order success, order failing) noexcept {
        return exchange_if(false, expected, desired, success, failing);
    }
    bool compare_exchange_strong(T& expected, T desired, order o) noexcept {
        return exchange_if(false, expected, desired, o, on_failure(o));
    }
    bool compare_exchange_weak(T& expected, T desired, order success, order failing) noexcept {
        return exchange_if(true, expected, desired, success, failing);
    }
    bool compare_exchange_weak(T& expected, T desired, order o) noexcept {
        return exchange_if(true, expected, desired, o, on_failure(o));
    }

    void wait(T old, order o) const noexcept { explorer::active()->wait(this, to_word(old), o); }
    void notify_all() noexcept { explorer::active()->notify(this); }

private:
    static std::uint64_t to_word(T value) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof(T));
        return word;
    }
    static T to_value(std::uint64_t word) noexcept {
        T value;
        std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
        return value;
    }
    static order on_failure(order o) noexcept { return {detail::on_failure(o.written), o.site}; }

    template <class F>
    T change(const char* what, order o, F f) noexcept {
        return to_value(explorer::active()->change(
            this, what, o, [f](std::uint64_t old) { return to_word(f(to_value(old))); }));
    }
    bool exchange_if(bool weak, T& expected, T desired, order success, order failing) noexcept {
        std::uint64_t word = to_word(expected);
        const bool done =
            explorer::active()->exchange_if(this, weak, word, to_word(desired), success, failing);
        expected = to_value(word);
        return done;
    }
};

/// Memory that is not atomic. If two threads use it without happens-before, and one of them writes,
/// that is a data race.
template <class T>
class data {
public:
    data(T value = {}) : value_(std::move(value)), seen_(fresh()) {}
    data(const data& other) : value_(other.read()), seen_(fresh()) {}
    data& operator=(const data& other) {
        write(other.read());
        return *this;
    }

    const T& read() const {
        touch(false);
        return value_;
    }
    void write(T value) {
        touch(true);
        value_ = std::move(value);
    }
    T& change() {
        touch(true);
        return value_;
    }

private:
    static explorer::plain_memory fresh() {
        return explorer::active() != nullptr ? explorer::active()->fresh()
                                             : explorer::plain_memory{};
    }
    void touch(bool writes) const {
        if (explorer::active() != nullptr)
            explorer::active()->touch(seen_, writes, this);
    }

    T value_;
    mutable explorer::plain_memory seen_;
};

/// A data member of a class under test. The explorer's knowledge of it outlives it, so its memory
/// must not be reused within an execution.
template <class T>
class member {
public:
    /// @param name for printing, a literal.
    template <class... Args>
    explicit member(std::string_view name, Args&&... args) : value_(std::forward<Args>(args)...) {
        if (explorer::active() != nullptr)
            explorer::active()->begin_member(this, name);
    }
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() {
        if (explorer::active() != nullptr)
            explorer::active()->end_member(this);
    }

    /// Not const, because it counts as a write.
    [[nodiscard]] T& used() {
        touch(true);
        return value_;
    }
    [[nodiscard]] const T& used() const {
        touch(false);
        return value_;
    }

private:
    void touch(bool writes) const {
        if (explorer::active() != nullptr)
            explorer::active()->touch_member(this, writes);
    }

    T value_;
};

/// A sequence that is not atomic, such as a boost::circular_buffer.
template <class Sequence>
class sequence_data {
public:
    explicit sequence_data(std::size_t capacity) : all_(Sequence(capacity)) {}

    /// Does not change, so any thread may call it.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] bool empty() const { return all_.read().empty(); }
    [[nodiscard]] std::size_t size() const { return all_.read().size(); }
    [[nodiscard]] const auto& front() const { return all_.read().front(); }
    [[nodiscard]] const auto& back() const { return all_.read().back(); }
    [[nodiscard]] const auto& operator[](std::size_t i) const { return all_.read()[i]; }
    [[nodiscard]] auto begin() const { return all_.read().begin(); }
    [[nodiscard]] auto end() const { return all_.read().end(); }
    void push_back(const typename Sequence::value_type& value) { all_.change().push_back(value); }
    void pop_front() { all_.change().pop_front(); }

private:
    data<Sequence> all_;
    std::size_t capacity_ = all_.read().capacity();
};

/// Every way to weaken one of these sites by one step.
[[nodiscard]] inline std::vector<weakening> weaknesses(const std::vector<site>& sites) {
    std::vector<weakening> all;
    for (unsigned i = 0; i != sites.size(); ++i) {
        for (const std::memory_order to : weaker(sites[i].written))
            all.push_back({i, to});
    }
    return all;
}

/// Explores a scenario, optionally with one weakened order.
inline findings explore(const scenario& body, const limits& l = {},
                        const std::vector<site>& sites = {}, weakening weak = {}) {
    return explorer(sites, weak).explore(body, l);
}

} // namespace explored

#endif
