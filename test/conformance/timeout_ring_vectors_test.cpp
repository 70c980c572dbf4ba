// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of the circular timeout buffer, from its text and its defects, replayed on
// timeout_ring and on its model. Steps that are sentences, about threads and handlers, are
// operations like the others.

#include <pawl/time/timeout_ring.hpp>

#include "../support/timeout_ring_lockstep.hpp"
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

constexpr std::uint64_t tick_length = 100; // the buffer's 10 s, so that stories can state 0.1 s
constexpr std::size_t room = 2; // less than most stories need, so they take several sweeps
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
        if (!driver_.joinable())
            ring_->check();
    }

private:
    using ring_driver = pawl_test::timeout_ring_lockstep<pawl_test::byte_choices>;

    void make(std::size_t slots) {
        slots_ = slots;
        ring_.emplace(none_, ring_driver::shape{0, slots, tick_length, 1U});
    }

    // --- operations --------------------------------------------------------------------------

    value create(fields& step) {
        if (!names_.empty())
            throw pawl_test::bad_vector("'create' is for a ring that has had no timer");
        make(step.get<std::size_t>("slots"));
        return nullptr;
    }

    value begin_register(fields& step) { return added(step.text("id"), ring_->reserve()); }

    value finish_register(fields& step) {
        ring_->publish(last(step.text("id")));
        return nullptr;
    }

    /// A field "handle" names this registration.
    value register_(fields& step) {
        const value index = add(step.text("id"));
        if (step.has("handle"))
            handles_[step.text("handle")] = names_.size() - 1;
        return index;
    }
    /// The last registration of timer "id", or that of a handle.
    value cancel(fields& step) {
        const bool by_handle = step.has("handle");
        const std::string id = step.text(by_handle ? "handle" : "id");
        const auto handle = handles_.find(id);
        if (by_handle && handle == handles_.end())
            throw pawl_test::bad_vector("there is no handle '" + id + "'");
        return handle == handles_.end() ? cancel_last(id) : ring_->cancel(handle->second);
    }
    value count(fields&) { return ring_->get().size(); }
    value tick_(fields&) { return next_tick(); }

    /// All registered timers expire, whatever their age.
    value flush(fields&) {
        return handle([&] { return ring_->force(room); });
    }

    /// Each timer is reported once.
    value shutdown(fields&) {
        ring_->close();
        return handle([&] { return ring_->drain(ring_->here(), room); });
    }

    /// The indices of the buffer. When NxtClear exceeds the number of slots, the buffer subtracts
    /// that number from all of them.
    value marks(fields&) {
        const auto [head, open_from, tail, swept] =
            timeout_ring_probe::positions(ring_->get(), tick{ring_->clock()});
        const std::uint64_t before = head == 1 ? 1 : (head - 2) / slots_ * slots_ + 1;
        return object{{"NxtFree", tail - before},
                      {"T0", open_from - before},
                      {"T10", swept - before},
                      {"NxtClear", head - before}};
    }

    // --- sentences about handlers ------------------------------------------------------------

    value own_handler_cancels(fields&) {
        bool answer = true;
        handlers_["a"] = [&] { answer = cancel_last("a"); };
        const array fired = two_ticks();
        handlers_.clear();
        if (fired != array{"a"})
            return fired;
        return answer ? "cancel returns true" : "cancel returns false at once, no deadlock";
    }

    value handler_registers(fields&) {
        handlers_["a"] = [this] { (void)add("b"); };
        const array fired = two_ticks();
        handlers_.clear();
        return fired;
    }

    value two_more_ticks(fields&) { return two_ticks(); }

    // --- sentences about threads -------------------------------------------------------------

    /// The handler runs in a thread of its own, until the next step releases it.
    value handler_takes_long(fields&) {
        handlers_["a"] = [this] {
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
        auto answer = std::async(std::launch::async, [this] { return cancel_last("a"); });
        const bool prompt = answer.wait_for(patience) == std::future_status::ready;
        may_end_.set_value();
        driver_.join();
        if (fired_ != array{"a"})
            return fired_;
        if (!prompt)
            return "it waits for the handler";
        return answer.get() ? "true" : "false, within handler time + 100 ms";
    }

    /// On a ring of its own: the model is for one thread.
    value eight_cancel(fields&) {
        constexpr int cancellers = 8;
        constexpr unsigned rounds = 200;
        std::atomic<int> handled{0};
        std::atomic<int> cancelled{0};
        std::atomic<unsigned> round{0};
        std::atomic<int> done{0};
        int a = 0;
        ring_ticket ticket;
        timeout_ring<int> ring(tick_length, slots_, tick{}, 1U);
        const auto pass = [&](std::uint64_t now) {
            std::array<int*, 2> out{};
            ring.mark(tick{now}, ring.position());
            handled.fetch_add(static_cast<int>(ring.expire(tick{now}, out).emitted));
        };

        std::vector<std::jthread> threads;
        for (int i = 0; i != cancellers; ++i) {
            threads.emplace_back([&] {
                for (unsigned mine = 1; mine <= rounds; ++mine) {
                    while (round.load() != mine)
                        std::this_thread::yield();
                    cancelled.fetch_add(ring.cancel(ticket) != nullptr ? 1 : 0);
                    done.fetch_add(1);
                }
            });
        }
        int wrong = 0;
        for (unsigned i = 1; i <= rounds; ++i) {
            handled.store(0);
            cancelled.store(0);
            done.store(0);
            ticket = ring.try_register(a).ticket;
            pass((2 * i + 1) * tick_length);
            round.store(i);
            pass((2 * i + 2) * tick_length);
            while (done.load() != cancellers)
                std::this_thread::yield();
            wrong += handled.load() + cancelled.load() == 1 ? 0 : 1;
        }
        threads.clear();
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
        ring_->pass(179);
        return add("a");
    }

    /// The late tick and the punctual one, then a driver that checks all the time. Pawl's mark is
    /// that of the late tick; the buffer allows 30 s. According to the text, a expires after 2.1 s.
    value punctual_tick(fields&) {
        if (!late_tick_)
            throw pawl_test::bad_vector("no tick was late");
        array fired = tell(*late_tick_);
        for (std::uint64_t now = 200; now <= 300 && fired.empty(); ++now)
            fired = tell(now);
        if (fired != array{"a"})
            return fired;
        if (ring_->clock() < 279)
            return object{{"a has fired at tenths", ring_->clock()}};
        return "a has not fired; earliest 27.9 s";
    }

    // -----------------------------------------------------------------------------------------

    /// The buffer's answer: the index of the slot. Pawl may have more slots than the timers that it
    /// admits, so the index is counted here.
    value added(const std::string& id, bool registered) {
        if (!registered)
            return ring_->get().closed() ? "closed" : "full";
        names_.push_back(id);
        return (names_.size() - 1) % slots_;
    }
    value add(const std::string& id) { return added(id, ring_->enroll()); }

    /// The number of the last registration of a name.
    std::size_t last(const std::string& id) const {
        const auto at = std::find(names_.rbegin(), names_.rend(), id);
        return static_cast<std::size_t>(names_.rend() - at) - 1;
    }
    bool cancel_last(const std::string& id) { return ring_->cancel(last(id)); }

    /// Passes the time, and handles expired timers. Returns their names.
    array tell(std::uint64_t now) {
        ring_->pass(now - ring_->clock());
        (void)ring_->mark(ring_->here());
        return handle([&] { return ring_->expire(room); });
    }
    array next_tick() { return tell(ring_->clock() + tick_length); }
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
        for (bool more = true; more;) {
            const ring_driver::swept s = sweep();
            more = s.more && s.advanced;
            for (const std::size_t index : s.emitted) {
                const std::string id = names_[index];
                ids.emplace_back(id);
                if (const auto handler = handlers_.find(id); handler != handlers_.end())
                    handler->second();
            }
        }
        return ids;
    }

    pawl_test::byte_choices none_{{}};
    std::size_t slots_ = 0;
    std::optional<ring_driver> ring_;
    std::vector<std::string> names_; // of registrations, by their numbers
    std::map<std::string, std::function<void()>> handlers_;
    std::map<std::string, std::size_t> handles_;
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

const std::vector<test_vector> stories = pawl_test::stories_about("circular_timeout");

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told, boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<seed>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_operation_belongs_to_a_story) {
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::not_in_stories<seed>(stories, {}) == "");
}
