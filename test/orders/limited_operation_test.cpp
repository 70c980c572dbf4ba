// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of limited_operation is needed: its parties are in different threads, and the
// last of them frees the object. See support/explored.hpp. The surroundings of the operation are
// fakes: the shard of the limit, the executor of the handler, the operation itself. Each fake gives
// the happens-before of the real object's mutex, and no more.

#define BOOST_TEST_MODULE limited_operation_orders

#include <pawl/detail/limit/limit_timer.hpp>
#include <pawl/detail/limit/limited_operation.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using explored::data;
using explored::execution;
using explored::explorer;
using pawl::detail::verdict;

namespace {

/// Memory that is handed out once per execution: the explorer's knowledge of a member outlives the
/// member.
class arena {
public:
    [[nodiscard]] void* allocate(std::size_t bytes) {
        blocks_.push_back(std::make_unique<std::byte[]>(bytes));
        return blocks_.back().get();
    }

private:
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

/// A word that is locked and unlocked at once: everything up to the next atomic operation is one
/// step of the execution anyway.
class mutex_word {
public:
    void pass() { (void)word_.fetch_add(1, std::memory_order_acq_rel); }
    [[nodiscard]] const void* place() const noexcept { return &word_; }

private:
    explored::atomic<unsigned> word_{0};
};

/// A strand over threads. If it is idle, the thread that brings a function runs it; otherwise the
/// thread that runs the strand does.
class strand {
public:
    explicit strand(arena& memory) : memory_(memory) {}

    [[nodiscard]] bool runs_here() const noexcept { return runner_ == explorer::current_thread(); }

    template <class Function>
    void dispatch(Function&& f) {
        if (runs_here())
            return void(std::decay_t<Function>(std::forward<Function>(f))());
        post(std::forward<Function>(f));
        run();
    }
    /// Runs at the end of some thread, if the strand is idle until then.
    template <class Function>
    void post(Function&& f) {
        using function = call<std::decay_t<Function>>;
        auto* const c =
            ::new (memory_.allocate(sizeof(function))) function(std::forward<Function>(f));
        word_.pass();
        if (closed_)
            return c->end(false);
        queue_.push_back(c);
    }
    /// Runs the queue, unless another thread does.
    void run() {
        if (runner_ != nobody)
            return;
        runner_ = explorer::current_thread();
        while (!queue_.empty()) {
            any_call* const c = queue_.front();
            queue_.pop_front();
            c->end(true);
            word_.pass();
        }
        runner_ = nobody;
    }
    /// Like run(), for a thread that has just queued nothing.
    void run_leftovers() {
        if (runner_ != nobody || queue_.empty())
            return;
        word_.pass();
        run();
    }
    /// The context ends: functions in the queue are destroyed, now and later.
    void shut_down() {
        word_.pass();
        closed_ = true;
        while (!queue_.empty()) {
            any_call* const c = queue_.front();
            queue_.pop_front();
            c->end(false);
        }
    }
    [[nodiscard]] const void* place() const noexcept { return word_.place(); }

private:
    struct any_call {
        /// Calls the function, or only destroys it.
        virtual void end(bool is_called) = 0;

    protected:
        ~any_call() = default;
    };
    template <class Function>
    struct call final : any_call {
        explicit call(Function&& f) : function(std::move(f)) {}
        explicit call(const Function& f) : function(f) {}
        void end(bool is_called) override {
            if (is_called)
                function();
            function.~Function();
        }
        union {
            Function function;
        };
        ~call() = delete;
    };

    static constexpr std::size_t nobody = ~std::size_t{0};

    arena& memory_;
    mutex_word word_;
    std::deque<any_call*> queue_;
    std::size_t runner_ = nobody;
    bool closed_ = false;
};

/// Never accessed.
asio::execution_context& some_context() {
    static asio::execution_context context;
    return context;
}

class strand_executor {
public:
    explicit strand_executor(strand& s) noexcept : strand_(&s) {}

    [[nodiscard]] asio::execution_context& context() const noexcept { return some_context(); }
    void on_work_started() const noexcept {}
    void on_work_finished() const noexcept {}
    template <class Function, class Allocator>
    void dispatch(Function&& f, const Allocator&) const {
        strand_->dispatch(std::forward<Function>(f));
    }
    template <class Function, class Allocator>
    void post(Function&& f, const Allocator&) const {
        strand_->post(std::forward<Function>(f));
    }
    template <class Function, class Allocator>
    void defer(Function&& f, const Allocator&) const {
        strand_->post(std::forward<Function>(f));
    }
    bool operator==(const strand_executor&) const noexcept = default;

private:
    strand* strand_;
};

/// The shard with the wait for the limit; see wait/wait_state.hpp. It destroys itself when its last
/// user leaves.
class limit_shard final : public pawl::detail::wait_arbiter {
public:
    /// Its outcome, which outlives it.
    struct history {
        bool is_reached = false; ///< the wait has ended for no other reason
        bool is_gone = false;
    };

    explicit limit_shard(history& h) noexcept : history_(h) {}
    ~limit_shard() { history_.is_gone = true; }

    void start(pawl::detail::wait_operation& op, unsigned users) {
        lock_.pass();
        users_ += users;
        op_ = &op;
        phase_ = phase::armed;
    }
    /// Ends the wait, and one user leaves.
    template <pawl::detail::parting>
    [[nodiscard]] bool withdraw(pawl::detail::timer_core*, pawl::detail::wait_operation& op) {
        lock_.pass();
        const bool is_withdrawn = phase_ == phase::armed;
        if (phase_ == phase::due) {
            op.set_result(asio::error::operation_aborted);
            phase_ = phase::cancelled;
        } else if (is_withdrawn) {
            phase_ = phase::idle;
        }
        drop_user();
        return is_withdrawn;
    }
    void leave() {
        lock_.pass();
        drop_user();
    }

    /// The limit is reached, in a thread that runs the context of the timer.
    void fire() {
        lock_.pass();
        if (phase_ != phase::armed)
            return;
        phase_ = phase::due;
        ++users_; // the carrier
        op_->hand_over(*this);
    }
    /// The context of the timer is destroyed.
    void shut_down() {
        lock_.pass();
        if (phase_ == phase::armed) {
            phase_ = phase::started;
            op_->destroy();
        }
        leave();
    }

    [[nodiscard]] const asio::execution_context& context() const noexcept override {
        return some_context();
    }
    [[nodiscard]] bool arrive(pawl::detail::wait_operation&) noexcept override {
        lock_.pass();
        history_.is_reached = phase_ == phase::due;
        phase_ = phase::started;
        drop_user();
        return true;
    }
    [[nodiscard]] bool arrive_or_park(pawl::detail::wait_operation& op) noexcept override {
        return arrive(op);
    }
    void abandon(pawl::detail::wait_operation& op) noexcept override {
        lock_.pass();
        phase_ = phase::started;
        op.destroy();
        leave();
    }
    void cancel(pawl::detail::slot_link&) override {}
    void forget(pawl::detail::slot_link&) noexcept override {}
    [[nodiscard]] const void* place() const noexcept { return lock_.place(); }

private:
    enum class phase { idle, armed, due, cancelled, started };

    void drop_user() {
        if (--users_ == 0)
            this->~limit_shard();
    }

    history& history_;
    mutex_word lock_;
    unsigned users_ = 1; ///< the context
    phase phase_ = phase::idle;
    pawl::detail::wait_operation* op_ = nullptr;
};

/// The timer with the limit.
class callers_timer {
    class handle {
    public:
        explicit handle(limit_shard& home) noexcept : home_(home) {}
        [[nodiscard]] limit_shard& home() const noexcept { return home_; }
        bool wait(pawl::detail::wait_operation& op, unsigned users) {
            home_.start(op, users);
            return true;
        }

    private:
        limit_shard& home_;
    };

public:
    explicit callers_timer(limit_shard& home) noexcept : handle_(home) {}

private:
    friend pawl::detail::timer_access;

    handle handle_;
};

struct limit {
    struct {
        template <class Handle>
        void set(Handle&) const {}
    } time;
    callers_timer* timer;
};

class world;

template <class T>
struct arena_allocator {
    using value_type = T;

    explicit arena_allocator(world* w) noexcept : of(w) {}
    template <class U>
    arena_allocator(const arena_allocator<U>& other) noexcept : of(other.of) {}
    [[nodiscard]] T* allocate(std::size_t n);
    void deallocate(T*, std::size_t) noexcept;
    template <class U>
    bool operator==(const arena_allocator<U>& other) const noexcept {
        return of == other.of;
    }

    world* of;
};

/// The completion handler of the caller.
class callers_handler {
public:
    using executor_type = strand_executor;
    using allocator_type = arena_allocator<void>;
    using cancellation_slot_type = asio::cancellation_slot;

    explicit callers_handler(world& w) noexcept : world_(&w) {}
    callers_handler(callers_handler&& other) noexcept
        : world_(std::exchange(other.world_, nullptr)) {}
    callers_handler& operator=(callers_handler&&) = delete;
    ~callers_handler();

    [[nodiscard]] executor_type get_executor() const noexcept;
    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(world_); }
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept;

    void operator()(const verdict& v);

private:
    world* world_;
};

struct report {
    static void invoke(callers_handler&& handler, const verdict& v, int) { handler(v); }
};

using operation =
    pawl::detail::limited_operation<pawl::detail::callers_limit_timer<callers_timer>, report,
                                    callers_handler, strand_executor, std::tuple<int>>;
using inner_handler = pawl::detail::limited_handler<operation>;

/// The reaction of the operation under the limit to a signal:
enum class obedience { ignores, completes_in_the_signal, completes_later };

struct choices {
    obedience obeys = obedience::ignores;
    bool completes_at_once = false; ///< in its initiating function
    bool throws = false;            ///< its initiating function throws, at the end
    bool slot = false;              ///< the caller can cancel
    bool anywhere = false;          ///< it completes in a thread of its own, not on the strand
};

/// One operation, and its surroundings.
class world {
public:
    world(execution& e, choices c) : e_(e), chosen_(c) {
        e.name_place(strand_.place(), "strand");
        e.name_place(shard_->place(), "shard");
        e.name_place(&started_, "started");
        e.name_place(&begun_, "what the initiating thread did");
        e.name_place(&result_, "what the operation did");
    }

    // --- the threads ---------------------------------------------------------------------------

    void start() {
        begun_.write(1);
        initiating_ = true;
        try {
            operation::launch(callers_handler(*this), 0, 0, limit{{}, &timer_},
                              asio::cancellation_type::terminal, [this](inner_handler&& inner) {
                                  listen(std::move(inner));
                                  initiating_ = false;
                                  started_.store(true, std::memory_order_release);
                                  started_.notify_all();
                                  if (chosen_.throws)
                                      throw thrown{};
                              });
        } catch (const thrown&) {
        }
        strand_.run_leftovers();
    }
    void fire() {
        shard_->fire();
        strand_.run_leftovers();
    }
    /// The operation completes after its start.
    void complete() {
        started_.wait(false, std::memory_order_acquire);
        if (chosen_.anywhere)
            complete_here();
        else
            strand_.dispatch([this] { complete_here(); });
        strand_.run_leftovers();
    }
    /// Its handler is destroyed uncalled.
    void abandon() {
        started_.wait(false, std::memory_order_acquire);
        if (chosen_.anywhere)
            inner_.reset();
        else
            strand_.dispatch([this] { inner_.reset(); });
        strand_.run_leftovers();
    }
    void cancel() {
        started_.wait(false, std::memory_order_acquire);
        strand_.dispatch([this] {
            emitting_ = true;
            signal_.emit(asio::cancellation_type::partial);
            emitting_ = false;
        });
        strand_.run_leftovers();
    }
    /// The context of the timer is destroyed.
    void destroy_limit() {
        started_.wait(false, std::memory_order_acquire);
        std::exchange(shard_, nullptr)->shut_down();
        strand_.run_leftovers();
    }
    /// The context of the handler is destroyed.
    void destroy_strand() { strand_.shut_down(); }

    /// All threads have ended.
    /// @param may_be_lost whether the handler may have been destroyed.
    void end(bool may_be_lost = false) {
        strand_.run_leftovers();
        check(!inner_ || !limit_.is_reached || by_limit_ + by_caller_ != 0 || may_be_lost,
              "the signal is lost");
        if (inner_)
            complete();
        check(invoked_ + destroyed_ == 1, "the handler is neither invoked nor destroyed");
        check(may_be_lost || invoked_ == 1, "the handler is not invoked");
        check(allocated_ == freed_, "the memory is not freed");
        if (shard_)
            shard_->leave();
        check(limit_.is_gone, "the shard is not freed");
        signal_.emit(asio::cancellation_type::all);
        e_.require(wrong_.empty(), wrong_);
        e_.outcome(std::to_string(invoked_) + " by " + std::to_string(verdict_) + " after " +
                   std::to_string(by_limit_) + '+' + std::to_string(by_caller_));
    }

    // --- for the handlers ----------------------------------------------------------------------

    [[nodiscard]] strand& executor() noexcept { return strand_; }
    [[nodiscard]] asio::cancellation_slot slot() noexcept {
        return chosen_.slot ? signal_.slot() : asio::cancellation_slot();
    }
    [[nodiscard]] void* allocate(std::size_t bytes) {
        ++allocated_;
        return memory_.allocate(bytes);
    }
    void deallocate() {
        ++freed_;
        check(freed_ <= allocated_, "memory is freed twice");
    }
    void invoked(const verdict& v) {
        check(++invoked_ + destroyed_ == 1, "the handler is invoked twice");
        check(allocated_ == freed_, "the handler is invoked before the memory is freed");
        check(strand_.runs_here() || completing_ == explorer::current_thread(),
              "the handler is invoked elsewhere than on its executor");
        verdict_ = static_cast<int>(v.by);
        (void)begun_.read();
        (void)result_.read();
    }
    void destroyed() { check(invoked_ + ++destroyed_ == 1, "the handler is destroyed, too"); }

private:
    struct thrown {};

    void check(bool holds, std::string_view what) {
        if (holds || !wrong_.empty())
            return;
        wrong_ = what;
        if (explorer::current_thread() != 0) // else end() does it: this may be in a destructor
            e_.require(false, what);
    }

    void listen(inner_handler&& inner) {
        asio::get_associated_cancellation_slot(inner).emplace<listener>(listener{this});
        inner_.emplace(std::move(inner));
        if (chosen_.completes_at_once)
            complete_here();
    }
    void complete_here() {
        if (!inner_)
            return;
        result_.write(1);
        completing_ = explorer::current_thread();
        inner_handler inner(std::move(*inner_));
        inner_.reset();
        inner(7);
        completing_ = 0;
    }
    void signalled() {
        check(++(emitting_ ? by_caller_ : by_limit_) == 1, "the signal is emitted twice");
        check(inner_.has_value() || chosen_.anywhere, "a signal after the operation");
        check(!initiating_, "a signal while the operation is being started");
        check(strand_.runs_here(), "a signal elsewhere than on the executor");
        (void)begun_.read();
        if (chosen_.obeys == obedience::completes_in_the_signal)
            complete_here();
        else if (chosen_.obeys == obedience::completes_later)
            strand_.post([this] { complete_here(); });
    }

    struct listener {
        world* of;
        void operator()(asio::cancellation_type_t) const { of->signalled(); }
    };

    execution& e_;
    choices chosen_;
    arena memory_;
    strand strand_{memory_};
    limit_shard::history limit_;
    limit_shard* shard_ = ::new (memory_.allocate(sizeof(limit_shard))) limit_shard(limit_);
    callers_timer timer_{*shard_};
    asio::cancellation_signal signal_;
    explored::atomic<bool> started_{false};
    std::optional<inner_handler> inner_; ///< as in the queue of a real operation
    data<int> begun_;
    data<int> result_;
    bool initiating_ = false;
    bool emitting_ = false;
    std::size_t completing_ = 0;
    int allocated_ = 0;
    int freed_ = 0;
    int invoked_ = 0;
    int destroyed_ = 0;
    int by_limit_ = 0;
    int by_caller_ = 0;
    int verdict_ = 0;
    std::string wrong_;
};

template <class T>
T* arena_allocator<T>::allocate(std::size_t n) {
    return static_cast<T*>(of->allocate(n * sizeof(T)));
}
template <class T>
void arena_allocator<T>::deallocate(T*, std::size_t) noexcept {
    of->deallocate();
}

callers_handler::~callers_handler() {
    if (world_)
        world_->destroyed();
}
callers_handler::executor_type callers_handler::get_executor() const noexcept {
    return executor_type(world_->executor());
}
callers_handler::cancellation_slot_type callers_handler::get_cancellation_slot() const noexcept {
    return world_->slot();
}
void callers_handler::operator()(const verdict& v) { std::exchange(world_, nullptr)->invoked(v); }

/// A process that has had a second thread does not take the shortcuts for a single thread.
const bool had_a_thread = [] {
    std::thread([] {}).join();
    return true;
}();

using choose = choices;

const std::vector<orders::named_scenario> scenarios{
    {"the operation completes while the limit fires",
     [](execution& e) {
         world w(e, {});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the operation completes in a thread of its own while the limit fires",
     [](execution& e) {
         world w(e, {.anywhere = true});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the operation obeys in the signal while it completes by itself",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the limit fires while the operation is being started",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal});
         e.together([&] { w.start(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the limit fires while the operation is being started, which obeys later",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_later});
         e.together([&] { w.start(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the operation completes while it is being started",
     [](execution& e) {
         world w(e, {});
         e.together([&] { w.start(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the operation completes in a thread of its own while it is being started",
     [](execution& e) {
         world w(e, {.anywhere = true});
         e.together([&] { w.start(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the operation completes in its initiating function while the limit fires",
     [](execution& e) {
         world w(e, {.completes_at_once = true, .anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the operation completes and the limit fires while it is being started",
     [](execution& e) {
         world w(e, {});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the operation completes in a thread of its own and the limit fires while it is being started",
     [](execution& e) {
         world w(e, {.anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the initiating function throws, and has kept the handler, while the limit fires",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal, .throws = true});
         e.together([&] { w.start(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the initiating function throws while the operation completes",
     [](execution& e) {
         world w(e, {.throws = true});
         e.together([&] { w.start(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the initiating function throws while the operation completes in a thread of its own",
     [](execution& e) {
         world w(e, {.throws = true, .anywhere = true});
         e.together([&] { w.start(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the initiating function throws while the operation completes and the limit fires",
     [](execution& e) {
         world w(e, {.throws = true, .anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the initiating function throws while the handler is destroyed and the limit fires",
     [](execution& e) {
         world w(e, {.throws = true, .anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.abandon(); });
         w.end(true);
     }},
    {"the caller cancels while the operation completes",
     [](execution& e) {
         world w(e, {.slot = true});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.cancel(); });
         w.end();
     }},
    {"the caller cancels while the limit fires",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal, .slot = true});
         w.start();
         e.together([&] { w.fire(); }, [&] { w.cancel(); });
         w.end();
     }},
    {"the caller cancels while the limit fires, and the operation obeys later",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_later, .slot = true});
         w.start();
         e.together([&] { w.fire(); }, [&] { w.cancel(); });
         w.end();
     }},
    {"the caller cancels after the start, during which the limit fires",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal, .slot = true});
         e.together(
             [&] {
                 w.start();
                 w.cancel();
             },
             [&] { w.fire(); });
         w.end();
     }},
    {"the caller cancels while the initiating function has not returned, and the limit fires",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_in_the_signal, .slot = true});
         e.together([&] { w.start(); }, [&] { w.cancel(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the caller cancels while the initiating function has not returned, and the operation "
     "completes",
     [](execution& e) {
         world w(e, {.slot = true});
         e.together([&] { w.start(); }, [&] { w.cancel(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the caller cancels while the initiating function throws and the limit fires",
     [](execution& e) {
         world w(e, {.throws = true, .slot = true});
         e.together([&] { w.start(); }, [&] { w.cancel(); }, [&] { w.fire(); });
         w.end();
     }},
    {"the caller cancels after the start, during which the operation completes",
     [](execution& e) {
         world w(e, {.slot = true});
         e.together(
             [&] {
                 w.start();
                 w.cancel();
             },
             [&] { w.complete(); });
         w.end();
     }},
    {"the caller cancels while the limit fires and the operation completes",
     [](execution& e) {
         world w(e, {.slot = true});
         w.start();
         e.together([&] { w.cancel(); }, [&] { w.fire(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the limit is destroyed with its context while the operation completes",
     [](execution& e) {
         world w(e, {});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.destroy_limit(); });
         w.end();
     }},
    {"the limit fires, and its context is destroyed, while the operation completes",
     [](execution& e) {
         world w(e, {});
         w.start();
         e.together([&] { w.complete(); },
                    [&] {
                        w.fire();
                        w.destroy_limit();
                    });
         w.end();
     }},
    {"the limit fires, and its context is destroyed, while the operation completes elsewhere",
     [](execution& e) {
         world w(e, {.anywhere = true});
         w.start();
         e.together([&] { w.complete(); },
                    [&] {
                        w.fire();
                        w.destroy_limit();
                    });
         w.end();
     }},
    {"the limit fires during the start, and its context is destroyed in the signal",
     [](execution& e) {
         world w(e, {.obeys = obedience::completes_later});
         e.together([&] { w.start(); },
                    [&] {
                        w.fire();
                        w.destroy_limit();
                    });
         w.end();
     }},
    {"the limit is destroyed with its context while the operation completes elsewhere",
     [](execution& e) {
         world w(e, {.anywhere = true});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.destroy_limit(); });
         w.end();
     }},
    {"the limit is destroyed while the operation is being started and completes",
     [](execution& e) {
         world w(e, {});
         e.together([&] { w.start(); }, [&] { w.complete(); }, [&] { w.destroy_limit(); });
         w.end();
     }},
    {"the limit is destroyed while the operation completes and the caller cancels",
     [](execution& e) {
         world w(e, {.slot = true});
         w.start();
         e.together([&] { w.complete(); }, [&] { w.destroy_limit(); }, [&] { w.cancel(); });
         w.end();
     }},
    {"the handler is destroyed while the limit fires",
     [](execution& e) {
         world w(e, {.anywhere = true});
         w.start();
         e.together([&] { w.abandon(); }, [&] { w.fire(); });
         w.end(true);
     }},
    {"the handler is destroyed while the operation is being started and the limit fires",
     [](execution& e) {
         world w(e, {.anywhere = true});
         e.together([&] { w.start(); }, [&] { w.abandon(); }, [&] { w.fire(); });
         w.end(true);
     }},
    {"the handler is destroyed while the limit is destroyed",
     [](execution& e) {
         world w(e, {.anywhere = true});
         w.start();
         e.together([&] { w.abandon(); }, [&] { w.destroy_limit(); });
         w.end(true);
     }},
    {"the limit is destroyed while the initiating function throws and the operation completes",
     [](execution& e) {
         world w(e, {.throws = true, .anywhere = true});
         e.together([&] { w.start(); }, [&] { w.destroy_limit(); }, [&] { w.complete(); });
         w.end();
     }},
    {"the context of the handler is destroyed while the operation completes and the limit fires",
     [](execution& e) {
         world w(e, {.anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.complete(); },
                    [&] { w.destroy_strand(); });
         w.end(true);
     }},
    {"the context of the handler is destroyed while the operation starts and the limit fires",
     [](execution& e) {
         world w(e, {.anywhere = true});
         e.together([&] { w.start(); }, [&] { w.fire(); }, [&] { w.destroy_strand(); });
         w.end(true);
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(
    an_operation_under_a_limit_ends_once_in_each_execution_that_the_memory_model_allows) {
    BOOST_TEST_REQUIRE(had_a_thread);
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_an_operation_under_a_limit_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
