// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Finds the dispatcher for a timer without Asio's service lookup, which locks the context's
///   mutex. Each thread caches, per kind of service, the context that it used last.
///
/// Model
///     service --owns--> life <--reads-- cache of a thread
///
///   A new context may reuse the address of a dead one. So each cache shares the `life` of its
///   service, which outlives the service and says whether it is over.
///
/// Threads
///   A thread accesses only its own cache and the two atomics of a life.
///
/// Cost
///   A few loads if the thread uses one context; Asio's lookup each time if it alternates. A life
///   is 8 bytes on the heap.
///
/// Limits
///   No timer may be made in a context while its services are being destroyed (as opposed to shut
///   down): Asio loses a service that is made then, and never destroys it.
///   As for wait_allocator.hpp, a shared library that is unloaded loses what other threads hold.
#ifndef PAWL_DETAIL_SERVICE_SERVICE_CACHE_HPP
#define PAWL_DETAIL_SERVICE_SERVICE_CACHE_HPP

#include <pawl/detail/wait/thread_end.hpp>

#include <pawl/config.hpp>

#include <boost/asio/execution_context.hpp>

#include <atomic>

namespace pawl::detail {

/// Whether a service still exists.
class service_life {
public:
    /// @return a new life, shared by the caller.
    [[nodiscard]] static service_life& begin() { return *new service_life; }

    void share() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

    /// The service is being destroyed.
    void end() noexcept { over_.store(true, std::memory_order_relaxed); }

    /// relaxed: a thread that may use a context at a reused address learned of it after the
    /// services of the dead context had ended.
    [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_relaxed); }

private:
    service_life() = default;
    ~service_life() { PAWL_ASSERT(users_ == 0); }

    std::atomic<unsigned> users_{1};
    std::atomic<bool> over_{false};
};

/// @tparam Service has `service_life& life()`, and `dispatcher& enter()`, called on a miss.
template <class Service>
class service_cache {
public:
    using dispatcher = typename Service::dispatcher;

    /// The dispatcher of this thread in the service of `context`.
    // Not inlined: a coroutine may resume in another thread, and compilers cache the address of a
    // thread_local variable in a register.
    [[nodiscard]] PAWL_DETAIL_NOINLINE static dispatcher&
    find(boost::asio::execution_context& context) {
        const memory& m = memory_;
        return m.context == &context && !m.life->over() ? *m.home : search(context);
    }

private:
    enum class phase : unsigned char { unused, used, ended }; ///< of this thread

    struct memory {
        const boost::asio::execution_context* context = nullptr;
        dispatcher* home = nullptr;
        service_life* life = nullptr; ///< shared, unless null
        phase thread = phase::unused;
    };

    /// Disables the cache of the thread.
    friend class thread_end<service_cache>;
    static void thread_ends() noexcept {
        forget();
        memory_.thread = phase::ended;
    }

    PAWL_DETAIL_NOINLINE static dispatcher& search(boost::asio::execution_context& context) {
        Service& service = boost::asio::use_service<Service>(context);
        dispatcher& home = service.enter();
        if (may_remember()) {
            service.life().share();
            forget();
            memory_ = {&context, &home, &service.life(), phase::used};
        }
        return home;
    }

    [[nodiscard]] static bool may_remember() noexcept {
        if (memory_.thread == phase::unused && thread_end<service_cache>::expect())
            memory_.thread = phase::used;
        return memory_.thread == phase::used;
    }

    static void forget() noexcept {
        if (memory_.life)
            memory_.life->leave();
        memory_ = {.thread = memory_.thread};
    }

    // constinit and trivially destructible: an access needs no initialisation check.
    static inline constinit thread_local memory memory_{};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_SERVICE_CACHE_HPP
