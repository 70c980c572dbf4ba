// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   All execution contexts of the process that have timers, for pawl::virtual_time. Empty in a build
///   without PAWL_VIRTUAL_TIME.
///
/// Threads
///   A context that is in the list does not destroy a timer service: its shutdown takes it out first, and
///   waits for whoever walks the list. So nothing that leads to a shutdown may happen under its lock.
#ifndef PAWL_SERVICE_VIRTUAL_CONTEXTS_HPP
#define PAWL_SERVICE_VIRTUAL_CONTEXTS_HPP

#include <pawl/config.hpp>

#ifdef PAWL_VIRTUAL_TIME

#include <mutex>

namespace PAWL_DETAIL_DETAIL_BUILD {

class service_registry;

class virtual_contexts {
public:
    /// The place of a context in the list.
    class entry {
    public:
        explicit entry(service_registry& registry) : registry_(registry) {
            list& l = the();
            const std::scoped_lock lock(l.mutex);
            next_ = l.newest;
            l.newest = this;
        }
        entry(const entry&) = delete;
        entry& operator=(const entry&) = delete;
        ~entry() { leave(); }

        void leave() noexcept {
            list& l = the();
            const std::scoped_lock lock(l.mutex);
            entry** link = &l.newest;
            while (*link && *link != this)
                link = &(*link)->next_;
            if (*link)
                *link = next_;
        }

    private:
        friend class virtual_contexts;

        service_registry& registry_;
        entry* next_ = nullptr;
    };

    /// Calls `f` for the registry of each context, under the lock of the list.
    template <class Function>
    static void for_each(Function f) {
        list& l = the();
        const std::scoped_lock lock(l.mutex);
        for (entry* e = l.newest; e; e = e->next_)
            f(e->registry_);
    }

private:
    struct list {
        std::mutex mutex;
        entry* newest = nullptr;
    };

    static list& the() {
        static list& l = *new list; // for contexts that outlive main(), too
        return l;
    }
};

} // namespace PAWL_DETAIL_DETAIL_BUILD

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_SERVICE_VIRTUAL_CONTEXTS_HPP
