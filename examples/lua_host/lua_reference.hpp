// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Lua values that C++ objects hold. Any thread may destroy such an object, but only the thread that runs
// the Lua state may touch its registry. So a destroyed reference goes on a list, and the host releases
// the list later.

#ifndef PAWL_EXAMPLES_LUA_REFERENCE_HPP
#define PAWL_EXAMPLES_LUA_REFERENCE_HPP

#include <lua.hpp>

#include <atomic>
#include <exception>
#include <memory>

namespace lua_host {

class lua_references {
    struct node {
        int key; ///< in the registry
        lua_references* list;
        node* next;
    };
    struct drop {
        void operator()(node* n) const noexcept { n->list->dropped(n); }
    };

public:
    /// Holds one value. The list must outlive it.
    class reference {
    public:
        /// Pushes the value. Raises no Lua error.
        void push(lua_State* L) const noexcept { lua_rawgeti(L, LUA_REGISTRYINDEX, node_->key); }

    private:
        friend class lua_references;
        explicit reference(node* n) noexcept : node_(n) {}

        std::unique_ptr<node, drop> node_;
    };

    lua_references() = default;
    lua_references(const lua_references&) = delete;
    lua_references& operator=(const lua_references&) = delete;
    ~lua_references() {
        take([](int) {});
    }

    /// Pops a value and holds it. Host's thread only.
    /// May raise a Lua error, but only before any C++ object exists.
    /// @throws std::bad_alloc
    [[nodiscard]] reference hold(lua_State* L) {
        const int key = luaL_ref(L, LUA_REGISTRYINDEX);
        try {
            return reference(new node{key, this, nullptr});
        } catch (const std::exception&) {
            luaL_unref(L, LUA_REGISTRYINDEX, key);
            throw;
        }
    }

    /// Releases the values of destroyed references. Host's thread only.
    void release(lua_State* L) noexcept {
        take([L](int key) { luaL_unref(L, LUA_REGISTRYINDEX, key); });
    }

private:
    void dropped(node* n) noexcept {
        n->next = dropped_.load(std::memory_order_relaxed);
        while (!dropped_.compare_exchange_weak(n->next, n, std::memory_order_release,
                                               std::memory_order_relaxed))
            ;
    }
    template <class F>
    void take(F f) noexcept {
        node* next = dropped_.exchange(nullptr, std::memory_order_acquire);
        while (const std::unique_ptr<node> n{next}) {
            next = n->next;
            f(n->key);
        }
    }

    std::atomic<node*> dropped_{nullptr};
};

} // namespace lua_host

#endif // PAWL_EXAMPLES_LUA_REFERENCE_HPP
