// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The Lua module `pawl`, and its interface for a host written in C++. See examples/README.md for the
// functions for scripts.

#ifndef PAWL_EXAMPLES_PAWL_MODULE_HPP
#define PAWL_EXAMPLES_PAWL_MODULE_HPP

#include <pawl/event_queue.hpp>

#include <lua.hpp>

#include <cstddef>

/// Opens the module. It belongs to one Lua state and ends with it.
extern "C" int luaopen_pawl(lua_State* L);

namespace lua_host {

/// The queue of this state. @pre the module has been opened.
[[nodiscard]] pawl::event_queue& queue_of(lua_State* L);

/// Handles the present events, as `pawl.process_events()` does.
std::size_t process_events(lua_State* L);

/// Number of callbacks that failed without a handler of `pawl.on_error()`.
[[nodiscard]] std::size_t failures(lua_State* L);

/// A message handler for lua_pcall(): turns any error into a text, with a traceback.
int traceback(lua_State* L);

} // namespace lua_host

#endif // PAWL_EXAMPLES_PAWL_MODULE_HPP
