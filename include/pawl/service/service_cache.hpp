// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Finds the dispatcher for a timer without Asio's search for the service, which takes the mutex of
///   the context: each thread remembers, for each kind of service, the context that it used last.
///
/// Model
///   service --owns--> life <--reads-- what a thread remembers
///   A context that dies may leave its address to another one. So whoever remembers a service shares
///   its `life`, which outlives it and says whether it is over.
///
/// Threads
///   A thread reads and writes only what it remembers itself, and the two atomics of a life.
///
/// Cost
///   A few reads if the thread uses one context; Asio's search each time if it takes turns. A life is
///   8 bytes on the heap.
///
/// Limits
///   While the services of a context are being destroyed (not: shut down), no timer may be made in
///   it. Asio loses a service that is made then, and never ends it.
///   A shared library whose code has made timers stays loaded until those threads end.
#ifndef PAWL_SERVICE_SERVICE_CACHE_HPP
#define PAWL_SERVICE_SERVICE_CACHE_HPP

#include <pawl/config.hpp>

#include <boost/asio/execution_context.hpp>

#include <atomic>

namespace pawl::detail {

/// Whether a service is still there.
class service_life {
public:
    /// @return one that is shared by the caller.
    [[nodiscard]] static service_life& begin() { return *new service_life; }

    void share() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

    /// The service is destroyed now.
    void end() noexcept { over_.store(true, std::memory_order_relaxed); }

    /// relaxed: whoever may use the context that now has the address of a dead one, was told of it
    /// after the end of that one's services.
    [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_relaxed); }

private:
    service_life() = default;
    ~service_life() = default;

    std::atomic<unsigned> users_{1};
    std::atomic<bool> over_{false};
};

/// @tparam Service has a `service_life& life()`, and a `dispatcher& enter()` for a thread that comes.
template <class Service>
class service_cache {
public:
    using dispatcher = typename Service::dispatcher;

    /// The dispatcher of this thread in the service of `context`.
    // Not inlined: a coroutine may go on in another thread, and compilers keep the address of a
    // thread's variable in a register.
    [[nodiscard]] PAWL_DETAIL_NOINLINE static dispatcher&
    find(boost::asio::execution_context& context) {
        const memory& m = memory_;
        return m.context == &context && !m.life->over() ? *m.home : search(context);
    }

private:
    struct memory {
        const boost::asio::execution_context* context = nullptr;
        dispatcher* home = nullptr;
        service_life* life = nullptr; ///< shared, unless null
        bool closed = false;          ///< the thread ends
    };

    /// From its destruction on the thread remembers nothing any more.
    struct at_thread_end {
        void touch() const noexcept {}
        ~at_thread_end() {
            forget();
            memory_.closed = true;
        }
    };

    PAWL_DETAIL_NOINLINE static dispatcher& search(boost::asio::execution_context& context) {
        Service& service = boost::asio::use_service<Service>(context);
        dispatcher& home = service.enter();
        if (!memory_.closed) {
            static thread_local const at_thread_end end;
            end.touch();
            service.life().share();
            forget();
            memory_ = {&context, &home, &service.life()};
        }
        return home;
    }

    static void forget() noexcept {
        if (memory_.life)
            memory_.life->release();
        memory_ = {};
    }

    // constinit, and destroyed by nobody: so it is read without asking whether it is there.
    static inline constinit thread_local memory memory_{};
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_SERVICE_CACHE_HPP
