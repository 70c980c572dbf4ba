// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The list of all execution contexts with timers, for pawl::virtual_time. Empty in a build
///   without PAWL_VIRTUAL_TIME.
///
/// Threads
///   A context in the list does not destroy a timer service: its shutdown first removes it, and
///   waits for a thread that walks the list. So nothing that leads to a shutdown may happen under
///   the list's lock.
#ifndef PAWL_DETAIL_SERVICE_VIRTUAL_CONTEXTS_HPP
#define PAWL_DETAIL_SERVICE_VIRTUAL_CONTEXTS_HPP

#include <pawl/config.hpp>

#ifdef PAWL_VIRTUAL_TIME

#include <mutex>
#include <vector>

namespace PAWL_DETAIL_DETAIL_BUILD {

class service_registry;

class virtual_contexts {
public:
    /// The entry of a context: until leave(), or its own end.
    class entry {
    public:
        explicit entry(service_registry& registry) : registry_(&registry) {
            list& l = the();
            const std::scoped_lock lock(l.mutex);
            l.registries.push_back(registry_);
        }
        entry& operator=(entry&&) = delete;
        ~entry() { leave(); }

        void leave() noexcept {
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

} // namespace PAWL_DETAIL_DETAIL_BUILD

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_DETAIL_SERVICE_VIRTUAL_CONTEXTS_HPP
