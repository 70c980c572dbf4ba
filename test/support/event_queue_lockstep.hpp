// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   event_queue and a model of it, in lockstep: each call is made on both, and counts and events
//   must be the same, in the same order, with the same times and overruns.
//
// Model
//   The model has no lock, no dead slot and no wait: its events are a deque, and destroyed ones are
//   erased. It uses two properties of a context: waits fall due in the order of their deadlines,
//   and, for equal deadlines, of their starts; and due waits run when the context does, before
//   waits that start in the meantime.
//
//   A public member makes one call, checks it, and returns what the queue has returned. step() draws
//   calls; the test vectors of event queues are other calls of these members.
//
//   Choices are also drawn while the queue calls a function, so functions destroy timers, start
//   them, throw, and destroy the queue.
//
//   Properties that need no model are asserted as well: points of the grid, and that no tick is
//   lost. After each call the sums hold, for each overflow policy: offered = handled + queued +
//   dropped + destroyed, in events of the queue, and in ticks of each timer.

#ifndef PAWL_TEST_SUPPORT_EVENT_QUEUE_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_EVENT_QUEUE_LOCKSTEP_HPP

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include "lockstep.hpp"

#include <boost/asio/io_context.hpp>

#if defined(_WIN32) // where a queue has no descriptor
#define PAWL_TEST_DESCRIPTORS 0
#else
#define PAWL_TEST_DESCRIPTORS 1
#include <poll.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace pawl_test {

class event_queue_model {
public:
    using clock = pawl::manual_clock;
    using duration = clock::duration;
    using time_point = clock::time_point;
    using event = pawl::basic_queue_event<clock>;
    using policy = pawl::missed_tick_policy;
    using overflow = pawl::overflow_policy;

    enum class phase { armed, ending, ended };
    enum class place { nowhere, waits, ready, stalled };

    struct timer {
        std::size_t id;
        duration period; ///< none: a one-off
        policy missed;
        time_point due;
        phase is = phase::armed;
        place at = place::nowhere;
        std::uint64_t start = 0;   ///< number of the start of its wait
        std::size_t ticks = 0;     ///< in the queue
        std::uint64_t owed = 0;    ///< ticks for which its next event stands
        std::uint64_t emitted = 0; ///< ticks that have fallen due, whatever their outcome
        std::uint64_t skipped = 0; ///< ticks that destroy() has skipped
    };
    /// An event: a tick, the last one of a timer, or a function.
    struct slot {
        std::uint64_t number;
        timer* of;         ///< none: a function
        bool last;         ///< of its timer
        bool counts;       ///< it must be handled
        event what;        ///< of a timer
        std::size_t which; ///< the function
    };

    explicit event_queue_model(const pawl::event_queue_options& o) : options_(o) {}

    void start(timer& t) { wait(t); }
    bool disarm(timer& t) {
        if (t.is != phase::armed)
            return false;
        push_last(t, false, {});
        return true;
    }
    void destroy(timer& t) {
        if (t.is != phase::ended) {
            for (const slot& s : slots_)
                t.skipped += s.of == &t && !s.last ? 1 + s.what.overruns : 0;
            t.skipped += std::exchange(t.owed, 0);
            destroyed_ += t.ticks;
            std::erase_if(slots_, [&](const slot& s) { return s.of == &t; });
            ticks_ -= std::exchange(t.ticks, 0);
            take_away(t);
            t.is = phase::ended;
        }
        unstall();
    }
    void submit(std::size_t which) {
        slots_.push_back({next_number_++, nullptr, false, true, {}, which});
    }

    /// The clock has moved: due waits are ready to run.
    void collect() {
        std::vector<timer*> due;
        for (timer* const t : waiting_)
            if (t->due <= clock::now())
                due.push_back(t);
        std::erase_if(waiting_, [](const timer* t) { return t->due <= clock::now(); });
        std::sort(due.begin(), due.end(), [](const timer* a, const timer* b) {
            return std::pair(a->due, a->start) < std::pair(b->due, b->start);
        });
        for (timer* const t : due) {
            t->at = place::ready;
            ready_.push_back(t);
        }
    }
    /// The context runs. @return the number of waits that have ended.
    std::size_t run() {
        std::size_t count = 0;
        for (;;) {
            if (ready_.empty())
                collect();
            if (ready_.empty())
                return count;
            for (std::size_t wave = ready_.size(); wave != 0 && !ready_.empty(); --wave, ++count) {
                timer& t = *ready_.front();
                ready_.pop_front();
                t.at = place::nowhere;
                emit(t);
            }
        }
    }
    [[nodiscard]] bool has_ready_and_stalled() const {
        return !ready_.empty() && !stalled_.empty();
    }
    /// Whether a wait was due at its start, and the context has not run since.
    [[nodiscard]] bool overdue() const {
        return std::any_of(waiting_.begin(), waiting_.end(),
                           [](const timer* t) { return t->due <= clock::now(); });
    }
    /// Timers that wait for room continue, if there is room.
    void unstall() {
        while (!stalled_.empty() && ticks_ < options_.capacity) {
            timer& t = *stalled_.front();
            stalled_.pop_front();
            t.at = place::nowhere;
            emit(t);
        }
    }

    // --- process_events() ----------------------------------------------------------------------

    void begin(std::size_t most) {
        unstall();
        left_ = most;
        end_ = next_number_;
    }
    /// The next event that is handled, if there is another.
    std::optional<slot> next() {
        unstall();
        while (left_ != 0 && !slots_.empty() && slots_.front().number < end_) {
            slot s = slots_.front();
            slots_.pop_front();
            if (s.of && s.last) {
                s.of->is = phase::ended;
            } else if (s.of) {
                --ticks_;
                --s.of->ticks;
            }
            if (s.counts) {
                if (s.of)
                    s.what.overruns += std::exchange(s.of->owed, 0);
                --left_;
                return s;
            }
            unstall();
        }
        return {};
    }

    // -------------------------------------------------------------------------------------------

    [[nodiscard]] std::size_t inqueue() const { return slots_.size(); }
    [[nodiscard]] std::size_t pending() const {
        return static_cast<std::size_t>(
            std::count_if(slots_.begin(), slots_.end(), [](const slot& s) { return s.counts; }));
    }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    /// Number of ticks that have entered the queue.
    [[nodiscard]] std::uint64_t offered() const { return offered_; }
    /// Of these, ticks that destroy() has taken out.
    [[nodiscard]] std::uint64_t destroyed() const { return destroyed_; }
    [[nodiscard]] std::size_t queued() const { return ticks_; }
    /// Ticks in the queue for which the events of a timer stand.
    [[nodiscard]] std::uint64_t queued_of(const timer& t) const {
        std::uint64_t count = 0;
        for (const slot& s : slots_)
            count += s.of == &t && !s.last ? 1 + s.what.overruns : 0;
        return count;
    }
    /// The earliest deadline, if no wait is due.
    [[nodiscard]] std::optional<time_point> next_deadline() const {
        if (waiting_.empty() || !ready_.empty())
            return {};
        return (*std::min_element(waiting_.begin(), waiting_.end(),
                                  [](const timer* a, const timer* b) { return a->due < b->due; }))
            ->due;
    }

private:
    static constexpr duration tolerance = std::chrono::milliseconds(5);

    void wait(timer& t) {
        t.start = starts_++;
        t.at = place::waits;
        waiting_.push_back(&t);
    }
    void take_away(timer& t) {
        for (std::deque<timer*>* const from : {&waiting_, &ready_, &stalled_})
            std::erase(*from, &t);
        t.at = place::nowhere;
    }

    void push_last(timer& t, bool counts, const event& what) {
        take_away(t);
        t.is = phase::ending;
        slots_.push_back({next_number_++, &t, true, counts, what, 0});
    }

    void emit(timer& t) {
        const time_point now = clock::now();
        if (t.period == duration::zero()) {
            push_last(t, true, {t.due, now, 0});
            return;
        }
        for (int n = 0; n != 64 && t.due <= now; ++n) {
            if (options_.overflow == overflow::block && ticks_ >= options_.capacity) {
                t.at = place::stalled;
                stalled_.push_back(&t);
                return;
            }
            const time_point due = t.due;
            const duration late = now - due;
            std::uint64_t missed = 0;
            t.due = due + t.period;
            if (late > tolerance && t.missed != policy::burst) {
                missed = static_cast<std::uint64_t>(late / t.period);
                t.due = (t.missed == policy::delay ? now : now - late % t.period) + t.period;
            }
            t.emitted += 1 + missed;
            if (options_.overflow == overflow::coalesce && t.ticks != 0) {
                t.owed += 1 + missed;
                continue;
            }
            if (options_.overflow == overflow::drop_oldest && ticks_ == options_.capacity)
                drop_oldest();
            slots_.push_back({next_number_++, &t, false, true, {due, now, missed}, 0});
            ++offered_;
            ++ticks_;
            ++t.ticks;
        }
        wait(t);
    }

    void drop_oldest() {
        const auto oldest = std::find_if(slots_.begin(), slots_.end(),
                                         [](const slot& s) { return s.of && !s.last; });
        oldest->of->owed += 1 + oldest->what.overruns;
        --oldest->of->ticks;
        --ticks_;
        ++dropped_;
        slots_.erase(oldest);
    }

    const pawl::event_queue_options options_;
    std::deque<slot> slots_;
    std::uint64_t next_number_ = 0;
    std::size_t ticks_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t offered_ = 0;
    std::uint64_t destroyed_ = 0;
    std::deque<timer*> waiting_;
    std::deque<timer*> ready_;
    std::deque<timer*> stalled_;
    std::uint64_t starts_ = 0;
    std::size_t left_ = 0;  ///< events that process_events() may still handle
    std::uint64_t end_ = 0; ///< the end of those
};

template <class Choices>
class event_queue_lockstep {
    using model = event_queue_model;
    using clock = model::clock;
    using duration = model::duration;
    using time_point = model::time_point;
    using phase = model::phase;
    using queue = pawl::basic_event_queue<clock>;

public:
    struct one {
        model::timer as_model;
        bool one_off;
        time_point first;
        queue::timer handle{};
        std::weak_ptr<int> function{};       ///< of the queue
        std::optional<time_point> handled{}; ///< its last handled event
        std::uint64_t counted = 0;           ///< handled events, and their overruns
        bool throws = false;                 ///< its function
    };

    explicit event_queue_lockstep(Choices& choices)
        : event_queue_lockstep{choices, draw_options(choices), choices.below(2) == 0} {
        if (PAWL_TEST_DESCRIPTORS && !own_ && below(4) == 0)
            descriptor_ = queue_->native_handle();
    }
    event_queue_lockstep(Choices& choices, const pawl::event_queue_options& options, bool own)
        : choices_(choices), options_(options), own_(own), model_(options_) {
        if (own_)
            queue_.emplace(options_);
        else
            queue_.emplace(io_, options_);
        trace(own_ ? "own context" : "given context", "capacity", options_.capacity, "overflow",
              static_cast<int>(options_.overflow));
    }
    event_queue_lockstep(const event_queue_lockstep&) = delete;
    event_queue_lockstep& operator=(const event_queue_lockstep&) = delete;

    /// Whether the queue has not been destroyed.
    [[nodiscard]] bool goes_on() const { return queue_.has_value(); }

    /// One call, or a few that belong together. @pre goes_on()
    void step() {
        const std::uint64_t dice = below(64);
        if (dice < 12)
            draw_start();
        else if (dice < 32)
            pass(draw_distance());
        else if (dice < 42)
            run();
        else if (dice < 44)
            draw_end(dice == 42);
        else if (dice < 47)
            submit(below(2) == 0);
        else
            draw_process();
        check();
    }

    /// Handles the present events; then all timers end.
    void finish() {
        for (int rounds = 0; goes_on() && rounds != 200; ++rounds) {
            run();
            draw_process();
            check();
        }
        if (goes_on()) {
            check_no_tick_is_lost();
            for (one& t : all_)
                disarm(t);
            while (goes_on() && model_.inqueue() != 0) {
                draw_process();
                check();
            }
        }
        if (goes_on()) {
            for (one& t : all_)
                destroy(t);
            check();
            destroy_queue();
        }
        io_.restart();
        io_.poll();
        check_ended();
    }

    // --- the clock and the context -------------------------------------------------------------

    void pass(duration d) {
        trace("pass", d.count());
        clock::advance(queue_->timer_context(), d);
        model_.collect();
    }
    void run() {
        if (!own_) {
            trace("run the context");
            io_.restart();
            io_.poll();
            model_.run();
        }
    }

    /// The time until the next deadline; the longest time if there is none.
    [[nodiscard]] duration until_next() const {
        const auto next = model_.next_deadline();
        return next ? std::max(*next - clock::now(), duration::zero()) : duration::max();
    }

    // --- timers: nullptr if the queue refuses the arguments -------------------------------------

    one* once(duration d) {
        const auto call = [&](const auto& f) { return queue_->once(d, f); };
        return d < duration::zero() ? refuse(call) : start(after(d), {}, {}, call);
    }
    one* once_at(time_point first) {
        return start(first, {}, {}, [&](const auto& f) { return queue_->once_at(first, f); });
    }
    one* every(duration period, model::policy missed = model::policy::burst) {
        const auto call = [&](const auto& f) { return queue_->every(period, f, missed); };
        return period <= duration::zero() ? refuse(call)
                                          : start(after(period), period, missed, call);
    }
    one* every_from(time_point first, duration period, model::policy missed) {
        return start(first, period, missed,
                     [&](const auto& f) { return queue_->every_from(first, period, f, missed); });
    }

    bool disarm(one& t) {
        trace("disarm", t.as_model.id);
        const bool was_armed = t.handle.disarm();
        expect(was_armed == model_.disarm(t.as_model), "disarm()", t.as_model.id);
        check(t);
        return was_armed;
    }
    /// destroy(), or destroy_for().
    void destroy(one& t, std::optional<std::chrono::nanoseconds> limit = {}) {
        trace("destroy", t.as_model.id);
        run_ready();
        if (limit)
            expect(t.handle.destroy_for(*limit), "destroy_for()", t.as_model.id);
        else
            t.handle.destroy();
        model_.destroy(t.as_model);
        check(t);
    }

    /// In the order of their starts.
    [[nodiscard]] std::deque<one>& timers() { return all_; }

    // --- events --------------------------------------------------------------------------------

    void submit(bool small) {
        const std::size_t id = submitted_++;
        trace("submit", id);
        if (small)
            queue_->get_executor().execute([this, id] { on_function(id); });
        else // too large for a slot
            queue_->get_executor().execute(
                [this, id, token = std::make_shared<int>()] { on_function(id); });
        model_.submit(id);
    }

    /// @return the number of handled events, or nothing if a function has thrown.
    std::optional<std::size_t> process(std::size_t most = all) {
        trace("process", most);
        if (own_)
            model_.run();
        run_ready();
        model_.begin(most);
        handled_.clear();
        std::optional<std::size_t> said;
        bool has_thrown = false;
        try {
            said = most == 1 ? queue_->process_one() : queue_->process_events(most);
        } catch (const thrown&) {
            has_thrown = true;
        }
        expect(has_thrown == std::exchange(throws_, false), "thrown", has_thrown);
        expect(has_thrown || *said == handled_.size(), "process_events()", said.value_or(0),
               handled_.size());
        running_ = nullptr;
        if (goes_on() && has_thrown)
            model_.unstall();
        else if (goes_on())
            expect(!model_.next(), "an event was not handled");
        return said;
    }
    /// The timers and functions that the last process() has called.
    [[nodiscard]] const std::vector<std::size_t>& handled() const { return handled_; }

    bool wait_for(std::chrono::nanoseconds d) {
        run_ready();
        model_.unstall();
        const bool is_there = queue_->wait_for(d);
        expect(is_there == (model_.inqueue() != 0), "wait_for()", model_.inqueue());
        return is_there;
    }

    /// What must hold between two calls.
    void check() {
        if (!goes_on())
            return;
        if (own_) { // each call checks a limited number of timers
            for (std::size_t left = model_.run() / 16; left != 0; --left)
                (void)queue_->pending();
        }
        expect(queue_->pending() == model_.pending(), "pending()", queue_->pending(),
               model_.pending());
        expect(queue_->inqueue() == model_.inqueue(), "inqueue()", queue_->inqueue(),
               model_.inqueue());
        expect(queue_->dropped() == model_.dropped(), "dropped()", queue_->dropped(),
               model_.dropped());
        check_sums();
        std::size_t timers = 0;
        for (const one& t : all_)
            timers += t.as_model.is != phase::ended;
        expect(queue_->timers() == timers, "timers()", queue_->timers(), timers);
        for (std::size_t n = std::min<std::size_t>(all_.size(), 20); n != 0; --n)
            check(all_[all_.size() - n]);
#if PAWL_TEST_DESCRIPTORS
        if (descriptor_) {
            ::pollfd fd{*descriptor_, POLLIN, 0};
            expect((::poll(&fd, 1, 0) == 1) == (model_.inqueue() != 0), "readable",
                   model_.inqueue());
        }
#endif
        if (below(8) == 0)
            wait_for(std::chrono::nanoseconds(0));
        run_overdue();
    }

    [[nodiscard]] queue& actual() { return *queue_; }

private:
    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// The exception of a function that is told to throw.
    struct thrown : std::exception {};

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }
    static duration ms(std::uint64_t n) { return std::chrono::milliseconds(n); }

    // --- choices -------------------------------------------------------------------------------

    static pawl::event_queue_options draw_options(Choices& choices) {
        static constexpr std::array<std::size_t, 8> capacities{1, 2, 3, 5, 8, 30, 200, 65536};
        pawl::event_queue_options o;
        o.capacity = capacities[choices.below(capacities.size())];
        o.overflow = static_cast<pawl::overflow_policy>(choices.below(3));
        return o;
    }

    duration draw_distance() {
        switch (below(8)) {
        case 0:
            return until_next() < ms(1'000'000) ? until_next() : ms(0);
        case 1:
            return duration(below(1000));
        case 2:
            return ms(below(100));
        case 3:
            return ms(below(32) == 0 ? 1000 : 20);
        default:
            return ms(below(10));
        }
    }

    void draw_start() {
        if (std::count_if(all_.begin(), all_.end(),
                          [](const one& t) { return t.as_model.is != phase::ended; }) >= 12)
            return;
        const bool one_off = below(3) == 0;
        const auto missed = static_cast<model::policy>(below(3));
        const duration offset = below(4) == 0 ? duration(below(100)) : duration::zero();
        const duration period = one_off ? duration::zero() : ms(1 + below(40)) + offset;
        switch (below(4)) {
        case 0: { // at a time point that may have passed
            const time_point first = clock::now() - ms(20) + ms(below(60)) + offset;
            one_off ? once_at(first) : every_from(first, period, missed);
            return;
        }
        case 1: // an error, and at the end of time
            one_off ? once(-ms(1) - offset) : every(-offset, missed);
            one_off ? once(duration::max()) : every(period, missed);
            return;
        default:
            one_off ? once(ms(below(60)) + offset) : every(period, missed);
        }
    }

    /// Ends one of the last timers, whatever its state.
    void draw_end(bool disarms) {
        if (all_.empty())
            return;
        one& t = all_[all_.size() - 1 - below(std::min<std::size_t>(all_.size(), 20))];
        if (disarms)
            disarm(t);
        else if (below(2) == 0)
            destroy(t);
        else
            destroy(t, std::chrono::nanoseconds(0));
    }

    void draw_process() {
        const std::uint64_t dice = below(4);
        process(dice == 0 ? 1 : dice == 1 ? below(6) : all);
    }

    // --- the context ---------------------------------------------------------------------------

    /// The order between waits that were due when they started and others that have fallen due in
    /// the meantime is not promised. So a given context runs before they meet, and before a call
    /// that lets stalled timers continue.
    void run_ready() {
        if (model_.has_ready_and_stalled())
            run();
    }
    void run_overdue() {
        if (model_.overdue())
            run();
    }

    // --- timers --------------------------------------------------------------------------------

    static time_point after(duration d) {
        return d > time_point::max() - clock::now() ? time_point::max() : clock::now() + d;
    }
    template <class Call>
    static one* refuse(Call call) {
        expect_throw<std::invalid_argument>([&] { call([](const queue::event&) {}); },
                                            "a time was accepted");
        return nullptr;
    }
    template <class Call>
    one* start(time_point first, duration period, model::policy missed, Call call) {
        const auto id = all_.size();
        const bool one_off = period == duration::zero();
        auto token = std::make_shared<int>();
        const std::weak_ptr<int> function = token;
        const auto f = [this, id, token](const queue::event& e) { on_event(id, e); };
        if (first <= clock::now())
            run();
        const queue::timer handle = call(f);
        trace(one_off ? "once" : "every", id, "first", first.time_since_epoch().count(), "period",
              period.count(), "policy", static_cast<int>(missed));
        all_.push_back({{id, period, missed, first}, one_off, first, handle, function});
        model_.start(all_.back().as_model);
        run_overdue();
        return &all_.back();
    }

    // --- events --------------------------------------------------------------------------------

    void on_event(std::size_t id, const queue::event& e) {
        trace("event of", id, "scheduled", e.scheduled.time_since_epoch().count(), "overruns",
              e.overruns);
        const auto next = model_.next();
        expect(next && next->of && next->of->id == id, "event of another timer", id);
        expect(e.scheduled == next->what.scheduled, "scheduled", id,
               e.scheduled.time_since_epoch().count(),
               next->what.scheduled.time_since_epoch().count());
        expect(e.emitted == next->what.emitted, "emitted", id, e.emitted.time_since_epoch().count(),
               next->what.emitted.time_since_epoch().count());
        expect(e.overruns == next->what.overruns, "overruns", id, e.overruns, next->what.overruns);

        one& t = all_[id];
        running_ = &t;
        check_grid(t, e);
        handled_.push_back(id);
        if (t.throws)
            fail();
        act();
    }
    void on_function(std::size_t id) {
        trace("function", id);
        const auto next = model_.next();
        expect(next && !next->of && next->which == id, "another function", id);
        running_ = nullptr;
        handled_.push_back(id);
        act();
    }

    [[noreturn]] void fail() {
        throws_ = true;
        throw thrown();
    }
    /// The actions of a function.
    void act() {
        switch (const std::uint64_t dice = below(64)) {
        case 0:
        case 1:
            return draw_end(dice == 0);
        case 2:
        case 3:
        case 4:
            return draw_start();
        case 5:
            return submit(below(2) == 0);
        case 6:
            fail();
        case 7:
            return check();
        case 8:
            return expect_throw<std::logic_error>([&] { queue_->process_events(); },
                                                  "process_events() within a function");
        case 9:
            if (below(24) == 23)
                destroy_queue();
            return;
        case 10: // the function of a timer that destroys itself
            if (running_)
                destroy(*running_);
            return;
        default:
            return;
        }
    }

    void destroy_queue() {
        trace("destroy the queue");
        queue_.reset();
    }

    // --- invariants ------------------------------------------------------------------------------

    void check_grid(one& t, const queue::event& e) {
        expect(e.scheduled <= e.emitted && e.emitted <= clock::now(), "early", t.as_model.id);
        expect(!t.handled || *t.handled < e.scheduled, "twice", t.as_model.id);
        if (t.one_off)
            expect(e.scheduled == t.first && e.overruns == 0, "one-off", t.as_model.id);
        else if (t.as_model.missed != pawl::missed_tick_policy::delay)
            expect((e.scheduled - t.first) % t.as_model.period == duration::zero(), "off the grid",
                   t.as_model.id);
        t.handled = e.scheduled;
        t.counted += 1 + e.overruns;
        ticks_handled_ += !t.one_off;
    }

    /// What was offered was handled, is queued, was dropped or was destroyed.
    void check_sums() {
        const std::uint64_t gone = ticks_handled_ + queue_->dropped() + model_.destroyed();
        expect(model_.offered() == gone + model_.queued(), "offered", model_.offered(),
               ticks_handled_, queue_->dropped(), model_.destroyed(), model_.queued());
        if (options_.overflow != pawl::overflow_policy::drop_oldest)
            expect(queue_->dropped() == 0, "dropped without leave", queue_->dropped());
        if (++sums_ % 16 != 0)
            return; // the rest takes long
        for (const one& t : all_)
            if (const model::timer& m = t.as_model; !t.one_off && m.is == phase::armed)
                expect(m.emitted == t.counted + m.owed + model_.queued_of(m), "ticks of", m.id,
                       m.emitted, t.counted, m.owed);
    }

    /// @pre no event is left to be handled, unless there are too many
    void check_no_tick_is_lost() {
        if (model_.pending() != 0)
            return;
        for (const one& t : all_) {
            const model::timer& m = t.as_model;
            if (t.one_off)
                continue;
            expect(m.emitted == t.counted + m.owed + m.skipped || m.is == phase::ended, "lost",
                   m.id, m.emitted, t.counted, m.owed, m.skipped);
            if (m.is != phase::armed || m.at != model::place::waits ||
                m.missed == pawl::missed_tick_policy::delay || t.first > clock::now())
                continue;
            const auto were_due = (clock::now() - t.first) / m.period + 1;
            expect(static_cast<std::uint64_t>(were_due) == t.counted + m.owed,
                   "ticks that were due", m.id, were_due, t.counted, m.owed);
        }
    }

    void check(const one& t) {
        const phase is = t.as_model.is;
        expect(t.handle.armed() == (is == phase::armed), "armed()", t.as_model.id);
        expect(t.handle.ended() == (is == phase::ended), "ended()", t.as_model.id);
        expect(t.function.expired() == (is == phase::ended && running_ != &t), "its function",
               t.as_model.id, t.function.expired());
    }
    /// The queue has been destroyed. Only handles are left.
    void check_ended() {
        for (one& t : all_) {
            expect(t.handle.ended() && !t.handle.armed() && !t.handle.disarm(), "after the queue",
                   t.as_model.id);
            t.handle.destroy();
            expect(t.function.expired(), "a function outlives the queue", t.as_model.id);
        }
    }

    Choices& choices_;
    const pawl::event_queue_options options_;
    const bool own_;
    boost::asio::io_context io_;
    std::optional<queue> queue_;
    std::optional<int> descriptor_;

    model model_;
    std::deque<one> all_;
    std::size_t submitted_ = 0;
    std::vector<std::size_t> handled_; ///< by process_events() until now
    std::uint64_t ticks_handled_ = 0;
    unsigned sums_ = 0;      ///< how often check_sums() was called
    bool throws_ = false;    ///< a function has thrown
    one* running_ = nullptr; ///< the timer whose function runs
};

} // namespace pawl_test

#endif
