// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The list of timer services of a context, one per clock. Used by functions for all of them,
///   such as expire_all().
///
/// Threads
///   All members may be called from any thread.
#ifndef PAWL_DETAIL_SERVICE_SERVICE_REGISTRY_HPP
#define PAWL_DETAIL_SERVICE_SERVICE_REGISTRY_HPP

#include <pawl/detail/service/observer.hpp>

#include <pawl/config.hpp>
#include <pawl/virtual_clock.hpp>

#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace PAWL_DETAIL_DETAIL_BUILD {

#ifdef PAWL_VIRTUAL_TIME

class service_registry;

/// The list of all execution contexts with timers, for pawl::virtual_time.
///
/// A context in the list does not destroy a timer service: its shutdown first removes it, and waits
/// for a thread that walks the list. So nothing that leads to a shutdown may happen under the list's
/// lock.
class virtual_contexts {
public:
    /// The entry of a context: until unlist(), or its own end.
    class entry {
    public:
        explicit entry(service_registry& registry) : registry_(&registry) {
            list& l = the();
            const std::scoped_lock lock(l.mutex);
            l.registries.push_back(registry_);
        }
        entry& operator=(entry&&) = delete;
        ~entry() { unlist(); }

        void unlist() noexcept {
            list& l = the();
            const std::scoped_lock lock(l.mutex);
            std::erase(l.registries, registry_);
        }

    private:
        service_registry* const registry_;
    };

    /// Calls `f` for the registry of each context, under the list's lock.
    template <class Function>
    static void for_each(Function f) {
        list& l = the();
        const std::scoped_lock lock(l.mutex);
        for (service_registry* const r : l.registries)
            f(*r);
    }

private:
    struct list {
        std::mutex mutex;
        std::vector<service_registry*> registries;
    };

    static list& the() {
        static list& l = *new list; // leaked, for contexts that outlive main()
        return l;
    }
};

#endif // PAWL_VIRTUAL_TIME

/// A timer service, whatever its clock.
class registered_service {
public:
    virtual std::size_t expire_all(const boost::system::error_code& ec, wait_ending how) = 0;
    virtual std::size_t clock_moved() = 0;
#ifdef PAWL_VIRTUAL_TIME
    virtual void time_goes_on() = 0;
#endif

    /// Reports every shard to `watcher`, now and when it is added.
    virtual void watch(const std::shared_ptr<context_watcher>& watcher) = 0;

    /// Facts about a service for statistics.
    struct description {
        const char* clock;
        const char* backend;
        std::uint64_t wake_ups; ///< by the driver
    };
    [[nodiscard]] virtual description describe() const noexcept = 0;
    /// The shards. May miss one that is being added.
    [[nodiscard]] virtual std::vector<observed_shard*> observed_shards() const = 0;

    /// An address that identifies the clock. Not typeid: some users compile with -fno-rtti.
    [[nodiscard]] virtual const void* clock() const noexcept = 0;

protected:
    virtual ~registered_service() = default;

private:
    friend class service_registry;

    registered_service* next_ = nullptr; ///< the one added before
    bool added_ = false;
};

/// A timer service of this clock, on any backend.
template <class Clock>
class registered_service_on : public registered_service {
public:
    /// A lower bound for the time of the next expiry; time_point::max() if no wait is armed.
    [[nodiscard]] virtual typename Clock::time_point next_wake() const = 0;

    /// Waits that are due and whose handlers have not begun.
    [[nodiscard]] virtual std::size_t due_count() const = 0;

    [[nodiscard]] const void* clock() const noexcept final { return &clock_tag; }

    static inline char clock_tag = 0; // not const: constants may be merged

protected:
    ~registered_service_on() override = default;
};

/// The timer services of one context. A service registers when its first timer is made, not when it
/// is constructed: Asio may construct two at once and destroy one.
class service_registry final : public boost::asio::execution_context::service {
public:
    using key_type = service_registry;

    static inline boost::asio::execution_context::id id;

    explicit service_registry(boost::asio::execution_context& context)
        : boost::asio::execution_context::service(context) {
#ifdef PAWL_VIRTUAL_TIME
        one_time_only(time_kind::virtual_time);
#else
        one_time_only(time_kind::real);
#endif
    }

    /// @throws std::bad_alloc if `s` could not be watched; call add() again.
    void add(registered_service& s) {
        std::shared_ptr<context_watcher> watcher;
        {
            const std::scoped_lock lock(mutex_);
            const bool again = std::exchange(s.added_, true);
            if (!again) {
                s.next_ = newest_;
                newest_ = &s;
            }
            watcher = watcher_;
        }
        if (watcher)
            s.watch(watcher);
    }

    /// Reports every shard of each service to `watcher` once, from now on.
    void watch(const std::shared_ptr<context_watcher>& watcher) {
        {
            const std::scoped_lock lock(mutex_);
            watcher_ = watcher;
        }
        for_each([&](registered_service& s) { s.watch(watcher); });
    }

    void remove(registered_service& s) noexcept {
        const std::scoped_lock lock(mutex_);
        registered_service** link = &newest_;
        while (*link && *link != &s)
            link = &(*link)->next_;
        if (*link) // otherwise it was never added, and others may walk the list
            *link = s.next_;
    }

    /// Calls `f` for every service, without a lock: services live as long as the context.
    template <class Function>
    void for_each(Function f) {
        registered_service* s = nullptr;
        {
            const std::scoped_lock lock(mutex_);
            s = newest_;
        }
        for (; s; s = s->next_)
            f(*s);
    }

private:
#ifdef PAWL_VIRTUAL_TIME
    void shutdown() override { listed_.unlist(); } // before any service is destroyed
#else
    void shutdown() override {}
#endif

    std::mutex mutex_;
    registered_service* newest_ = nullptr;
    std::shared_ptr<context_watcher> watcher_; ///< null while nothing is watched
#ifdef PAWL_VIRTUAL_TIME
    virtual_contexts::entry listed_{*this};
#endif
};

} // namespace PAWL_DETAIL_DETAIL_BUILD

#endif // PAWL_DETAIL_SERVICE_SERVICE_REGISTRY_HPP
