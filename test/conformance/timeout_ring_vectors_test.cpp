// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of the circular timeout buffer, from its text and its defects, replayed on
// timeout_ring. Steps that are sentences, about threads and handlers, are operations like the
// others.

#include <pawl/time/timeout_ring.hpp>

#include "../support/invariants.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE timeout_ring_vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace pawl::time {

struct timeout_ring_probe {
    template <class T>
    using reservation = typename timeout_ring<T>::reservation;

    /// The two halves of a registration, between which a thread may be preempted.
    template <class T>
    static reservation<T> reserve(timeout_ring<T>& ring) {
        return ring.reserve();
    }
    template <class T>
    static void publish(timeout_ring<T>& ring, const reservation<T>& mine, T& item) {
        ring.publish(mine, item);
    }

    /// The buffer's positions. Tickets count from 1.
    template <class T>
    static std::uint64_t next_to_clear(const timeout_ring<T>& ring) {
        return ring.head_.load() - 1;
    }
    template <class T>
    static std::uint64_t next_free(const timeout_ring<T>& ring) {
        return ring.tail_number() - 1;
    }
    /// The start of the newest sub-period.
    template <class T>
    static std::uint64_t open_from(const timeout_ring<T>& ring) {
        return ring.open_from_.load() - 1;
    }
    /// The limit of the sweep at `now`, or of an earlier sweep.
    template <class T>
    static std::uint64_t swept_up_to(const timeout_ring<T>& ring, tick now) {
        std::uint64_t limit = next_to_clear(ring);
        for (const auto& mark : ring.marks_) {
            if (ring.is_due(mark, now))
                limit = std::max(limit, mark.number - 1);
        }
        return limit;
    }
};

} // namespace pawl::time

using boost::test_tools::per_element;
using pawl::time::ring_status;
using pawl::time::ring_sweep;
using pawl::time::ring_ticket;
using pawl::time::tick;
using pawl::time::timeout_ring;
using pawl::time::timeout_ring_probe;
using pawl_test::fields;
using pawl_test::test_vector;
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

/// Answers in which Pawl differs: none.
constexpr std::span<const pawl_test::difference> differences;

constexpr std::uint64_t tick_length = 100;  // the buffer's 10 s, so that stories can state 0.1 s
constexpr std::chrono::minutes patience{1}; // only guards against hangs

/// The initial state: one delay of one tick, two marks, and a handler for expired timers.
class seed {
public:
    explicit seed(const test_vector& story) {
        fields config(story.config);
        config.states("tick", {"10 s"});
        make(config.get<std::size_t>("slots"));
        config.end();
    }

    ~seed() {
        if (driver_.joinable()) // a story that has failed
            may_end_.set_value();
    }

    static const pawl_test::operations<seed> operations;

    void invariant() const {
        const bool half_registered =
            std::any_of(timers_.begin(), timers_.end(),
                        [](const auto& each) { return each.second.begun.has_value(); });
        if (!half_registered && !driver_.joinable())
            pawl_test::check_invariant(*ring_);
    }

private:
    struct timer {
        std::string id;
        ring_ticket ticket{};
        std::function<void()> handler = [] {};
        std::optional<timeout_ring_probe::reservation<timer>> begun{};
    };
    using ring_type = timeout_ring<timer>;

    void make(std::size_t slots) {
        slots_ = slots;
        ring_.emplace(tick_length, slots, tick{}, 1U);
    }

    timer& named(const std::string& id) {
        timer& t = timers_[id];
        t.id = id;
        return t;
    }
    timer& of(fields& step) { return named(step.text("id")); }

    // --- operations --------------------------------------------------------------------------

    value create(fields& step) {
        if (!timers_.empty())
            throw pawl_test::bad_vector("'create' is for a ring that has had no timer");
        make(step.get<std::size_t>("slots"));
        return nullptr;
    }

    value begin_register(fields& step) { return begin(of(step)); }

    value finish_register(fields& step) {
        timer& t = of(step);
        if (!t.begun)
            throw pawl_test::bad_vector("'" + t.id + "' was not begun to be registered");
        timeout_ring_probe::publish(*ring_, *t.begun, t);
        t.ticket = ring_ticket::from_word(t.begun->word);
        t.begun.reset();
        return nullptr;
    }

    /// A field "handle" names this registration.
    value register_(fields& step) {
        timer& t = of(step);
        const value index = add(t);
        if (step.has("handle"))
            handles_[step.text("handle")] = t.ticket;
        return index;
    }
    /// The last registration of timer "id", or that of a handle.
    value cancel(fields& step) {
        const bool by_handle = step.has("handle");
        const std::string id = step.text(by_handle ? "handle" : "id");
        const auto handle = handles_.find(id);
        if (handle != handles_.end())
            return ring_->cancel(handle->second) != nullptr;
        if (by_handle)
            throw pawl_test::bad_vector("there is no handle '" + id + "'");
        return cancel(named(id));
    }
    value count(fields&) { return ring_->size(); }
    value tick_(fields&) { return next_tick(); }

    /// All registered timers expire, whatever their age.
    value flush(fields&) {
        return handle([&](auto out) { return ring_->force(out); });
    }

    /// Each timer is reported once.
    value shutdown(fields&) {
        ring_->close();
        return handle([&](auto out) { return ring_->drain(ring_->position(), out); });
    }

    /// The indices of the buffer. When NxtClear exceeds the number of slots, the buffer subtracts
    /// that number from all of them.
    value marks(fields&) {
        const std::uint64_t clear = timeout_ring_probe::next_to_clear(*ring_);
        const std::uint64_t laps = clear == 0 ? 0 : (clear - 1) / slots_ * slots_;
        return object{{"NxtFree", timeout_ring_probe::next_free(*ring_) - laps},
                      {"T0", timeout_ring_probe::open_from(*ring_) - laps},
                      {"T10", timeout_ring_probe::swept_up_to(*ring_, tick{now_}) - laps},
                      {"NxtClear", clear - laps}};
    }

    // --- sentences about handlers ------------------------------------------------------------

    value own_handler_cancels(fields&) {
        timer& a = named("a");
        bool answer = true;
        a.handler = [&] { answer = cancel(a); };
        const array fired = two_ticks();
        a.handler = [] {};
        if (fired != array{"a"})
            return fired;
        return answer ? "cancel returns true" : "cancel returns false at once, no deadlock";
    }

    value handler_registers(fields&) {
        timer& a = named("a");
        a.handler = [this] { (void)add(named("b")); };
        const array fired = two_ticks();
        a.handler = [] {};
        return fired;
    }

    value two_more_ticks(fields&) { return two_ticks(); }

    // --- sentences about threads -------------------------------------------------------------

    /// The handler runs in a thread of its own, until the next step releases it.
    value handler_takes_long(fields&) {
        named("a").handler = [this] {
            running_.set_value();
            may_end_.get_future().wait();
        };
        driver_ = std::jthread([this] { fired_ = two_ticks(); });
        if (running_.get_future().wait_for(patience) != std::future_status::ready)
            return "the handler does not run";
        return nullptr;
    }

    /// According to the text, the buffer would sleep forever.
    value cancel_during_handler(fields&) {
        auto answer = std::async(std::launch::async, [this] { return cancel(named("a")); });
        const bool prompt = answer.wait_for(patience) == std::future_status::ready;
        may_end_.set_value();
        driver_.join();
        if (fired_ != array{"a"})
            return fired_;
        if (!prompt)
            return "it waits for the handler";
        return answer.get() ? "true" : "false, within handler time + 100 ms";
    }

    value eight_cancel(fields&) {
        constexpr int cancellers = 8;
        constexpr int rounds = 200;
        std::atomic<int> handled{0};
        std::atomic<int> cancelled{0};
        std::atomic<int> round{0};
        std::atomic<int> done{0};
        timer& a = named("a");
        a.handler = [&] { handled.fetch_add(1); };

        std::vector<std::jthread> threads;
        for (int i = 0; i != cancellers; ++i) {
            threads.emplace_back([&] {
                for (int mine = 1; mine <= rounds; ++mine) {
                    while (round.load() != mine)
                        std::this_thread::yield();
                    cancelled.fetch_add(cancel(a) ? 1 : 0);
                    done.fetch_add(1);
                }
            });
        }
        int wrong = 0;
        for (int i = 1; i <= rounds; ++i) {
            handled.store(0);
            cancelled.store(0);
            done.store(0);
            if (i != 1) // the story did the first registration
                (void)add(a);
            (void)next_tick();
            round.store(i);
            (void)next_tick();
            while (done.load() != cancellers)
                std::this_thread::yield();
            wrong += handled.load() + cancelled.load() == 1 ? 0 : 1;
        }
        threads.clear();
        a.handler = [] {};
        if (wrong != 0)
            return object{{"rounds with none or both", wrong}};
        return "exactly one of: one cancel true, or the handler ran; never both";
    }

    // --- sentences about time ----------------------------------------------------------------

    value late_tick(fields&) {
        late_tick_ = 180;
        return nullptr;
    }

    /// Before the late tick.
    value register_a_late(fields&) {
        now_ = 179;
        return add(named("a"));
    }

    /// The late tick and the punctual one, then a driver that checks all the time. Pawl's mark is
    /// that of the late tick; the buffer allows 30 s. According to the text, a expires after 2.1 s.
    value punctual_tick(fields&) {
        if (!late_tick_)
            throw pawl_test::bad_vector("no tick was late");
        array fired = tell(*late_tick_);
        for (now_ = 200; now_ <= 300 && fired.empty(); ++now_)
            fired = tell(now_);
        if (fired != array{"a"})
            return fired;
        if (now_ <= 279)
            return object{{"a has fired at tenths", now_ - 1}};
        return "a has not fired; earliest 27.9 s";
    }

    // -----------------------------------------------------------------------------------------

    static value status_text(ring_status status) {
        return status == ring_status::full ? "full" : "closed";
    }

    /// The buffer's answer: the index of the slot. Pawl may have more slots than the timers that it
    /// admits, so the index is counted here.
    value next_index() { return registered_++ % slots_; }

    value begin(timer& t) {
        const auto mine = timeout_ring_probe::reserve(*ring_);
        if (mine.status != ring_status::registered)
            return status_text(mine.status);
        t.ticket = {};
        t.begun = mine;
        return next_index();
    }

    value add(timer& t) {
        const auto r = ring_->try_register(t);
        if (r.status != ring_status::registered)
            return status_text(r.status);
        t.ticket = r.ticket;
        return next_index();
    }

    bool cancel(timer& t) { return ring_->cancel(t.ticket) != nullptr; }

    /// Passes the time, and handles expired timers. Returns their names.
    array tell(std::uint64_t now) {
        ring_->mark(tick{now}, ring_->position());
        return handle([&](auto out) { return ring_->expire(tick{now}, out); });
    }
    array next_tick() { return tell(now_ += tick_length); }
    array two_ticks() {
        array fired = next_tick();
        for (const value& id : next_tick())
            fired.push_back(id);
        return fired;
    }

    /// Ends at an unfinished registration: the buffer's head-of-line blocking.
    template <class Sweep>
    array handle(Sweep sweep) {
        array ids;
        std::array<timer*, 2> out{}; // less than most stories need, so they take several calls
        for (bool more = true; more;) {
            const std::uint64_t begin = timeout_ring_probe::next_to_clear(*ring_);
            const ring_sweep s = sweep(std::span<timer*>(out));
            more = s.more && begin != timeout_ring_probe::next_to_clear(*ring_);
            for (timer* const t : std::span(out).first(s.emitted)) {
                ids.emplace_back(t->id);
                t->handler();
            }
        }
        return ids;
    }

    std::size_t slots_ = 0;
    std::optional<ring_type> ring_;
    std::map<std::string, timer> timers_;
    std::map<std::string, ring_ticket> handles_;
    std::uint64_t now_ = 0;
    std::size_t registered_ = 0;
    std::optional<std::uint64_t> late_tick_;

    // For the handler that takes long.
    std::promise<void> running_;
    std::promise<void> may_end_;
    array fired_; // by driver_
    std::jthread driver_;
};

const pawl_test::operations<seed> seed::operations{
    {"create", &seed::create},
    {"register", &seed::register_},
    {"begin_register", &seed::begin_register},
    {"finish_register", &seed::finish_register},
    {"cancel", &seed::cancel},
    {"count", &seed::count},
    {"marks", &seed::marks},
    {"tick", &seed::tick_},
    {"flush", &seed::flush},
    {"shutdown", &seed::shutdown},
    {"register {id}", &seed::register_},
    {"register {id} -> handle {handle}", &seed::register_},
    {"cancel {id}", &seed::cancel},
    {"expire: the handler cancels a", &seed::own_handler_cancels},
    {"expire: the handler registers b", &seed::handler_registers},
    {"two more ticks", &seed::two_more_ticks},
    {"two ticks: handler of a starts and takes 100 ms", &seed::handler_takes_long},
    {"another thread cancels a during the handler", &seed::cancel_during_handler},
    {"8 threads cancel a at once, also at expiry time", &seed::eight_cancel},
    {"tick at 10 s delayed to 18 s", &seed::late_tick},
    {"register a at 17.9 s", &seed::register_a_late},
    {"next tick due at 20 s", &seed::punctual_tick},
};

const std::vector<test_vector> stories = pawl_test::load_vectors("circular_timeout");

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told, boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<seed>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_operation_belongs_to_a_story) {
    const std::vector<std::string> none;
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::unused<seed>(stories) == none, per_element());
}
