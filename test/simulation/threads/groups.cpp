// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/threads/groups.hpp"

#include "simulation/report.hpp"
#include "simulation/threads/ledger.hpp"

#include <pawl/error.hpp>
#include <pawl/group.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

namespace simulation::threads {

namespace {

/// The causes that a group may be given.
const std::array<error_code, 3> causes{make_error_code(pawl::error::shutting_down),
                                       error_code(asio::error::connection_reset),
                                       error_code(asio::error::operation_aborted)};
constexpr int ended_with_group = 2;

} // namespace

/// Belongs to one group, also after its end.
struct groups::book {
    arena* a = nullptr;
    book* around = nullptr;
    std::array<std::atomic<bool>, causes.size()> asked{}; ///< about to be given this cause
    std::atomic<bool> cancelled{false};                   ///< cancel() has returned
    std::atomic<int> told{-1};                            ///< the cause that a member was told
    std::mutex mutex;
    std::vector<member*> joined;

    [[nodiscard]] bool may_tell(std::size_t cause) const {
        return asked[cause].load() || (around && around->may_tell(cause));
    }
    [[nodiscard]] bool is_cancelled() const {
        return cancelled.load() || (around && around->is_cancelled());
    }
};

struct groups::member final : told_once {
    enum class form { plain, limit_outside, limit_inside };

    member(const company& c, book& b) : all(c), of(b), timer(std::in_place, *b.a->strand) {}

    /// In the strand, or before any other thread knows it.
    void start(pawl::group& g) {
        too_late = of.a->strand->running_in_this_thread() && of.is_cancelled();
        due = steady_now() + std::max<std::int64_t>(length, 0);
        limit_due = steady_now() + std::max<std::int64_t>(limit, 0);
        timer->expires_after(std::chrono::nanoseconds(length));
        auto handler = asio::bind_executor(*of.a->strand, completion(*this, 0, {}));
        const std::chrono::nanoseconds d(limit);
        switch (how) {
        case form::plain:
            timer->async_wait(pawl::in_group(g, std::move(handler)));
            break;
        case form::limit_outside:
            timer->async_wait(pawl::timeout(d, pawl::in_group(g, std::move(handler))));
            break;
        case form::limit_inside:
            timer->async_wait(pawl::in_group(g, pawl::timeout(d, std::move(handler))));
            break;
        }
        const std::scoped_lock lock(of.mutex);
        of.joined.push_back(this);
    }

    void invoked(const error_code& ec, std::uint64_t) override {
        if (!all.delivers && !of.a->strand->running_in_this_thread())
            broken("a member is not told on its executor", ec);
        check(ec, steady_now());
        run_handler({of.a, true, false}, then);
    }
    void dropped() override {
        if (!all.abandoned)
            broken("P3: the handler of a member is destroyed uncalled");
    }

    void check(const error_code& ec, std::int64_t now) {
        if (!ec) {
            if (now < due)
                broken("P1: a member is early", ec);
            if (too_late)
                broken("a member joins a group that was cancelled, and is not cancelled", ec);
            return;
        }
        if (ec == pawl::error::timed_out) {
            if (how == form::plain || (now < limit_due && !all.hastens))
                broken("a member has reached no limit", ec);
            return;
        }
        if (ec == hasty && all.hastens)
            return;
        if (ec == asio::error::operation_aborted && (cancelled || all.delivers))
            return;
        const auto c =
            static_cast<std::size_t>(std::find(causes.begin(), causes.end(), ec) - causes.begin());
        if (c == causes.size() || !of.may_tell(c))
            broken("nobody has given that cause", ec);
        int before = -1;
        if (!of.told.compare_exchange_strong(before, static_cast<int>(c)) &&
            before != static_cast<int>(c) && !cancelled)
            broken("other members are told another cause", ec);
    }

    [[noreturn]] void broken(const std::string& what, const error_code& ec) const {
        broken(what + ": it is told " + ec.message());
    }
    [[noreturn]] void broken(const std::string& what) const override {
        fail("group: " + what + ", " + name_of(how) + (cancelled ? ", cancelled" : "") +
             (of.around ? ", in a group in a group" : ""));
    }

    const company& all;
    book& of;
    std::optional<pawl::steady_timer> timer;
    form how{};
    std::int64_t length = 0, limit = 0;
    std::int64_t due = 0, limit_due = 0;
    bool too_late = false;
    bool started = false;   ///< or about to be
    bool cancelled = false; ///< a member function of its timer has done it
    std::function<void()> then;
};

struct groups::drain final : told_once {
    explicit drain(const company& c, book& b) : all(c), of(b) {}

    void invoked(const error_code& ec, std::uint64_t) override {
        if (all.abandoned)
            return;
        if (ec)
            broken("it is told " + ec.message());
        for (const member* m : before) {
            if (!m->over())
                broken("it completes, and a member has not ended");
        }
    }
    void dropped() override {
        if (!all.abandoned)
            broken("P3: its handler is destroyed uncalled");
    }
    [[noreturn]] void broken(const std::string& what) const override {
        fail("group: async_drained(): " + what);
    }

    const company& all;
    book& of;
    std::vector<member*> before; ///< joined before
};

/// Calls of a group may overlap, except its end.
struct groups::place {
    std::shared_mutex mutex;
    std::unique_ptr<pawl::group> group;
    book* of = nullptr;
    std::mutex last_mutex;
    member* last = nullptr;
    bool closed = false;
};

groups::groups(company c) : feature(std::move(c), "groups") {
    for (auto& p : places_)
        p = std::make_unique<place>();
}
groups::~groups() = default;

/// @pre the caller has the lock of `p` to itself.
groups::book& groups::make(place& p, arena& a) {
    book* b = nullptr;
    {
        const std::scoped_lock lock(mutex_);
        b = books_.emplace_back(std::make_unique<book>()).get();
    }
    b->a = &a;
    place& outer = *places_.front();
    if (&p != &outer) {
        const std::shared_lock lock(outer.mutex);
        if (outer.group && outer.of->a == &a) {
            b->around = outer.of;
            p.group = std::make_unique<pawl::group>(*outer.group);
        }
    }
    if (!p.group)
        p.group = std::make_unique<pawl::group>(asio::any_io_executor(*a.strand));
    return *(p.of = b);
}

/// @pre the caller shares the lock of `p`.
void groups::join(random_source& random, place& p) {
    member* m = nullptr;
    {
        const std::scoped_lock lock(mutex_);
        m = members_.emplace_back(std::make_unique<member>(company_, *p.of)).get();
    }
    m->how = static_cast<member::form>(random.below(3));
    m->length = company_.duration(random);
    m->limit = company_.duration(random);
    m->then = company_.then(random);
    m->started = true;
    if (!in_handler && random.one_in(2)) {
        m->start(*p.group);
    } else {
        asio::post(*p.of->a->strand, [&p, m] {
            const std::shared_lock lock(p.mutex);
            if (p.of == &m->of && p.group)
                m->start(*p.group);
            else
                m->started = false; // its group has gone
        });
    }
    const std::scoped_lock lock(p.last_mutex);
    p.last = m;
}

void groups::operate(random_source& random, arena& a) {
    place& p = *random.one_of(places_);
    if (random.one_in(12)) {
        const std::unique_lock lock(p.mutex);
        if (p.closed)
            return;
        if (p.group)
            p.of->asked[ended_with_group] = true;
        p.group.reset();
        make(p, a);
        return;
    }
    {
        const std::unique_lock lock(p.mutex);
        if (p.closed)
            return;
        if (!p.group)
            make(p, a);
    }
    const std::shared_lock lock(p.mutex);
    if (p.closed || !p.group)
        return;
    book& b = *p.of;
    switch (random.below(12)) {
    case 0: {
        const auto c = static_cast<std::size_t>(random.below(static_cast<int>(causes.size())));
        b.asked[c] = true;
        p.group->cancel(causes[c]);
        b.cancelled = true;
        break;
    }
    case 1:
    case 2: {
        drain* d = nullptr;
        {
            const std::scoped_lock list(mutex_);
            d = drains_.emplace_back(std::make_unique<drain>(company_, b)).get();
        }
        {
            const std::scoped_lock list(b.mutex);
            // With a limit inside, a member's handler is that of the limit.
            std::copy_if(b.joined.begin(), b.joined.end(), std::back_inserter(d->before),
                         [](const member* m) { return m->how != member::form::limit_inside; });
        }
        p.group->async_drained(asio::bind_executor(*b.a->strand, completion(*d, 0, {})));
        break;
    }
    case 3:
    case 4: {
        const std::scoped_lock list(p.last_mutex);
        if (!p.last)
            break;
        asio::post(*p.last->of.a->strand,
                   [m = p.last, d = company_.duration(random), how = random.below(3)] {
                       if (!m->started || m->over())
                           return;
                       const std::int64_t due = steady_now() + std::max<std::int64_t>(d, 0);
                       if (how == 0)
                           m->cancelled = m->timer->cancel() != 0 || m->cancelled;
                       else if (m->timer->rearm_after(std::chrono::nanoseconds(d)) != 0)
                           m->due = due;
                   });
        break;
    }
    default:
        join(random, p);
        break;
    }
}

void groups::close(ending how) {
    const bool all = how != ending::abandon && how != ending::expiry;
    for (auto p = places_.rbegin(); p != places_.rend(); ++p) {
        const std::unique_lock lock((*p)->mutex);
        (*p)->closed = true;
        if (!all || !(*p)->group)
            continue;
        (*p)->of->asked[ended_with_group] = true;
        (*p)->group.reset();
    }
    if (!all)
        return;
    for (const auto& m : members_) { // no thread adds to them any more
        asio::post(*m->of.a->strand, [m = m.get()] {
            if (m->started && !m->over())
                m->cancelled = m->timer->cancel() != 0 || m->cancelled;
        });
    }
}

void groups::leave() {
    for (const auto& p : places_)
        p->group.reset();
    for (const auto& b : books_)
        b->asked[ended_with_group] = true;
    for (const auto& m : members_) {
        m->cancelled = true;
        m->timer.reset();
    }
}

tally groups::check(const settings&) {
    for (const auto& m : members_) {
        if (m->started && !m->over() && !company_.abandoned)
            m->broken("P3, P9: the handler of a member was neither invoked nor destroyed");
    }
    for (const auto& d : drains_) {
        if (!d->over())
            d->broken("P3, P9: its handler was neither invoked nor destroyed");
    }
    for (const auto& p : places_) {
        if (p->group && p->group->size() != 0 && !company_.abandoned)
            fail("group: all members have ended, and a group has some");
    }
    const tally t{
        .waits = members_.size(), .perhaps = 2 * members_.size(), .each_time = drains_.size()};
    places_ = {};
    members_.clear(); // their timers are in strands
    return t;
}

} // namespace simulation::threads
