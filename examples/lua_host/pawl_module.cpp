// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The Lua module `pawl`.
//
// A thread of the module runs an io_context with the timers and the signals. It never touches Lua:
// events go into an event queue, and the callbacks run in the thread that calls process_events(), on
// the lua_State of that call. No lua_State is kept after the call.
//
// Lua raises an error by longjmp() out of a C function. So a function here first checks its arguments
// and makes its Lua objects. After its first C++ object with a destructor it raises no error.
// guarded() turns C++ exceptions into Lua errors.

#include "pawl_module.hpp"

#include "lua_reference.hpp"

#include <pawl/event_queue.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

namespace asio = boost::asio;
using reference = lua_host::lua_references::reference;
using event = pawl::event_queue::event;

namespace {

struct signal_name {
    const char* name;
    int number;
};
constexpr signal_name signal_names[] = {
    {"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};

// Keys of the registry, by address. The function for a signal has the key of its name.
const char module_key = 0;
const char on_error_key = 0;

/// The module in one Lua state.
class module {
public:
    using clock = pawl::event_queue::clock_type;

    module() = default;
    module(const module&) = delete;
    module& operator=(const module&) = delete;
    ~module() {
        context_.stop();
        thread_.join();
    }

    [[nodiscard]] static module& of(lua_State* L) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key);
        module* const m = *static_cast<module**>(lua_touserdata(L, -1));
        lua_pop(L, 1);
        if (!m) // called by a finalizer after that of the module
            luaL_error(L, "pawl: the Lua state is being closed");
        return *m;
    }

    std::size_t process_events(lua_State* L, std::size_t most) {
        struct mark {
            module& m;
            lua_State* before;
            ~mark() { m.running_ = before; }
        };
        const mark inside{*this, std::exchange(running_, L)};
        references.release(L);
        const std::size_t handled = queue.process_events(most);
        references.release(L);
        return handled;
    }

    /// Starts waiting for a signal, unless it already does.
    void watch(int signal) {
        signals_.add(signal);
        if (!std::exchange(waits_for_signals_, true))
            wait_for_signal();
    }
    /// The signal does its default action again.
    void unwatch(int signal) { signals_.remove(signal); }

    // --- called by the queue, in process_events(): raise no Lua error ---------------------------

    /// Calls the function of a timer.
    void call(const reference& function, const event& e) {
        lua_State* const L = running_;
        lua_pushcfunction(L, lua_host::traceback);
        function.push(L);
        lua_pushnumber(L, milliseconds(e.scheduled));
        lua_pushinteger(L, static_cast<lua_Integer>(e.overruns));
        finish(lua_pcall(L, 2, 0, -4));
    }

    /// Resumes a coroutine that sleeps.
    void wake(const reference& coroutine) {
        lua_State* const L = running_;
        lua_pushcfunction(L, lua_host::traceback);
        lua_pushcfunction(L, resume);
        coroutine.push(L);
        const int status = lua_pcall(L, 1, 1, -3);
        if (status == LUA_OK && lua_isnil(L, -1)) {
            lua_pop(L, 2);
            return;
        }
        finish(LUA_ERRRUN);
    }

    /// A time point as Lua sees it: milliseconds since the module was opened.
    [[nodiscard]] double milliseconds(clock::time_point t) const {
        return std::chrono::duration<double, std::milli>(t - start_).count();
    }

    lua_host::lua_references references; ///< outlives the functions of the queue
    std::size_t failures = 0;

private:
    /// In: a coroutine. Out: what to report, if it has failed.
    static int resume(lua_State* L) {
        lua_State* const coroutine = lua_tothread(L, 1);
        if (lua_status(coroutine) != LUA_YIELD)
            return 0; // the coroutine was closed
        int results = 0;
        const int status = lua_resume(coroutine, L, 0, &results);
        if (status == LUA_OK || status == LUA_YIELD) {
            lua_pop(coroutine, results);
            return 0;
        }
        lua_xmove(coroutine, L, 1);
        luaL_traceback(L, coroutine, luaL_tolstring(L, -1, nullptr), 0);
        lua_resetthread(coroutine); // closes its variables
        return 1;
    }

    /// A call of Lua has ended. Below its error message, if any, is the message handler.
    void finish(int status) {
        lua_State* const L = running_;
        if (status != LUA_OK) {
            lua_rawgetp(L, LUA_REGISTRYINDEX, &on_error_key);
            const bool has_handler = lua_isfunction(L, -1);
            lua_insert(L, -2);
            if (!has_handler || lua_pcall(L, 1, 0, -3) != LUA_OK) {
                ++failures;
                std::fflush(stdout);
                std::fprintf(stderr, "pawl: error in a callback%s: %s\n",
                             has_handler ? ", and in on_error()" : "", lua_tostring(L, -1));
                lua_pop(L, has_handler ? 1 : 2);
            }
        }
        lua_pop(L, 1);
    }

    void wait_for_signal() {
        signals_.async_wait(asio::bind_executor(
            queue.get_executor(), [this](const boost::system::error_code& ec, int number) {
                if (ec)
                    return;
                wait_for_signal();
                on_signal(number);
            }));
    }
    void on_signal(int number) {
        const auto& signal =
            *std::ranges::find(signal_names, number, [](const signal_name& s) { return s.number; });
        lua_State* const L = running_;
        lua_pushcfunction(L, lua_host::traceback);
        if (lua_rawgetp(L, LUA_REGISTRYINDEX, &signal) == LUA_TFUNCTION)
            finish(lua_pcall(L, 0, 0, -2));
        else
            lua_pop(L, 2);
    }

    const clock::time_point start_ = clock::now();
    lua_State* running_ = nullptr; ///< in process_events()
    bool waits_for_signals_ = false;
    asio::io_context context_{2}; // one thread runs it, and the host calls it

public:
    pawl::event_queue queue{context_};

private:
    asio::signal_set signals_{context_};
    asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
    std::thread thread_{[this] { context_.run(); }};
};

struct callback {
    module* m;
    reference function;
    void operator()(const event& e) const { m->call(function, e); }
};
struct wake_up {
    module* m;
    reference coroutine;
    void operator()() const { m->wake(coroutine); }
};

/// A timer as a userdata.
struct timer_box {
    static constexpr const char* type = "pawl.timer";

    pawl::event_queue::timer timer;
    bool destroyed = false;
};

// --- arguments -------------------------------------------------------------------------------------

/// Raises an error with the value and what was expected.
[[noreturn]] void refuse(lua_State* L, int argument, const char* wanted) {
    const char* const found =
        lua_isnone(L, argument) ? "no value" : luaL_tolstring(L, argument, nullptr);
    luaL_argerror(L, argument, lua_pushfstring(L, "%s: must be %s", found, wanted));
    std::terminate(); // luaL_argerror() does not return
}

[[nodiscard]] std::chrono::nanoseconds check_milliseconds(lua_State* L, int argument, bool zero) {
    if (lua_type(L, argument) == LUA_TNUMBER) {
        const double ms = lua_tonumber(L, argument);
        if (std::isfinite(ms) && (ms > 0 || (zero && ms == 0))) {
            const double ns = std::ceil(ms * 1e6); // not early
            return ns < 9e18 ? std::chrono::nanoseconds(static_cast<std::int64_t>(ns))
                             : std::chrono::nanoseconds::max();
        }
    }
    refuse(L, argument,
           zero ? "a finite number of milliseconds, at least 0"
                : "a finite number of milliseconds, greater than 0");
}

void check_function(lua_State* L, int argument) {
    if (!lua_isfunction(L, argument))
        refuse(L, argument, "a function");
}
void check_function_or_nil(lua_State* L, int argument) {
    if (!lua_isnil(L, argument))
        check_function(L, argument);
}

[[nodiscard]] timer_box& check_timer(lua_State* L) {
    auto& box = *static_cast<timer_box*>(luaL_checkudata(L, 1, timer_box::type));
    if (box.destroyed)
        luaL_error(L, "%s: the timer was destroyed", luaL_tolstring(L, 1, nullptr));
    return box;
}

/// Pushes a userdata without a timer.
[[nodiscard]] timer_box& push_timer(lua_State* L) {
    auto* const box = ::new (lua_newuserdatauv(L, sizeof(timer_box), 0)) timer_box;
    luaL_setmetatable(L, timer_box::type);
    return *box;
}

// --- functions of the module -----------------------------------------------------------------------

/// Exceptions of F become Lua errors.
template <int (*F)(lua_State*)>
int guarded(lua_State* L) {
    char what[256];
    try {
        return F(L);
    } catch (const std::exception& e) {
        std::snprintf(what, sizeof(what), "%s", e.what());
    }
    return luaL_error(L, "%s", what);
}

int once(lua_State* L) {
    module& m = module::of(L);
    const auto delay = check_milliseconds(L, 1, true);
    check_function(L, 2);
    timer_box& box = push_timer(L);
    lua_pushvalue(L, 2);
    box.timer = m.queue.once(delay, callback{&m, m.references.hold(L)});
    return 1;
}

int every(lua_State* L) {
    static const char* const policies[] = {"burst", "delay", "skip", nullptr};
    module& m = module::of(L);
    const auto period = check_milliseconds(L, 1, false);
    check_function(L, 2);
    const auto policy =
        static_cast<pawl::missed_tick_policy>(luaL_checkoption(L, 3, "burst", policies));
    timer_box& box = push_timer(L);
    lua_pushvalue(L, 2);
    box.timer = m.queue.every(period, callback{&m, m.references.hold(L)}, policy);
    return 1;
}

int slept(lua_State* L) {
    auto& box = *static_cast<timer_box*>(lua_touserdata(L, 1));
    const bool over = box.timer.ended();
    box.timer.destroy();
    lua_pushboolean(L, over);
    return 1;
}

int sleep(lua_State* L) {
    module& m = module::of(L);
    const auto delay = check_milliseconds(L, 1, true);
    if (!lua_isyieldable(L))
        luaL_error(L,
                   "pawl.sleep: not within a coroutine; pawl.block(ms) makes the whole host sleep");
    lua_settop(L, 0);
    timer_box& box = push_timer(L);
    lua_pushthread(L);
    box.timer = m.queue.once(delay, wake_up{&m, m.references.hold(L)});
    return lua_yieldk(L, 0, 0, [](lua_State* l, int, lua_KContext) { return guarded<slept>(l); });
}

int block(lua_State* L) {
    std::this_thread::sleep_for(check_milliseconds(L, 1, true));
    return 0;
}

int process_events(lua_State* L) {
    module& m = module::of(L);
    std::size_t most = static_cast<std::size_t>(-1);
    if (!lua_isnoneornil(L, 1)) {
        int is_integer = 0;
        const lua_Integer n = lua_tointegerx(L, 1, &is_integer);
        if (lua_type(L, 1) != LUA_TNUMBER || !is_integer || n < 0)
            refuse(L, 1, "an integer, at least 0");
        most = static_cast<std::size_t>(n);
    }
    lua_pushinteger(L, static_cast<lua_Integer>(m.process_events(L, most)));
    return 1;
}

int wait(lua_State* L) {
    module& m = module::of(L);
    bool there = true;
    if (lua_isnoneornil(L, 1))
        m.queue.wait();
    else
        there = m.queue.wait_for(check_milliseconds(L, 1, true));
    lua_pushboolean(L, there);
    return 1;
}

int pending(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(module::of(L).queue.pending()));
    return 1;
}
int inqueue(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(module::of(L).queue.inqueue()));
    return 1;
}
int timers(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(module::of(L).queue.timers()));
    return 1;
}

int now(lua_State* L) {
    lua_pushnumber(L, module::of(L).milliseconds(module::clock::now()));
    return 1;
}
int time(lua_State* L) {
    const auto t = std::chrono::system_clock::now().time_since_epoch();
    lua_pushnumber(L, std::chrono::duration<double>(t).count());
    return 1;
}

int on_error(lua_State* L) {
    check_function_or_nil(L, 1);
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &on_error_key);
    return 0;
}

int on_signal(lua_State* L) {
    module& m = module::of(L);
    const char* const name = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
    const auto* const signal =
        std::ranges::find(signal_names, std::string_view(name),
                          [](const signal_name& s) { return std::string_view(s.name); });
    if (signal == std::end(signal_names))
        refuse(L, 1, "HUP, INT, TERM, USR1 or USR2");
    check_function_or_nil(L, 2);
    lua_settop(L, 2);
    const bool watched = !lua_isnil(L, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, signal);
    if (watched)
        m.watch(signal->number);
    else
        m.unwatch(signal->number);
    return 0;
}

// --- methods of timers -----------------------------------------------------------------------------

int timer_disarm(lua_State* L) {
    lua_pushboolean(L, check_timer(L).timer.disarm());
    return 1;
}
int timer_destroy(lua_State* L) {
    timer_box& box = check_timer(L);
    bool done = true;
    if (lua_isnoneornil(L, 2))
        box.timer.destroy();
    else
        done = box.timer.destroy_for(check_milliseconds(L, 2, true));
    box.destroyed = true;
    lua_pushboolean(L, done);
    return 1;
}
int timer_armed(lua_State* L) {
    const auto& box = *static_cast<timer_box*>(luaL_checkudata(L, 1, timer_box::type));
    lua_pushboolean(L, box.timer.armed());
    return 1;
}
/// Lua forgets the handle; the timer goes on.
int timer_gc(lua_State* L) {
    static_cast<timer_box*>(luaL_checkudata(L, 1, timer_box::type))->timer = {};
    return 0;
}

int module_gc(lua_State* L) {
    delete std::exchange(*static_cast<module**>(lua_touserdata(L, 1)), nullptr);
    return 0;
}

constexpr luaL_Reg module_functions[] = {{"once", guarded<once>},
                                         {"every", guarded<every>},
                                         {"sleep", guarded<sleep>},
                                         {"block", guarded<block>},
                                         {"process_events", guarded<process_events>},
                                         {"wait", guarded<wait>},
                                         {"pending", guarded<pending>},
                                         {"inqueue", guarded<inqueue>},
                                         {"timers", guarded<timers>},
                                         {"now", guarded<now>},
                                         {"time", guarded<time>},
                                         {"on_error", guarded<on_error>},
                                         {"on_signal", guarded<on_signal>},
                                         {nullptr, nullptr}};
constexpr luaL_Reg timer_methods[] = {{"disarm", guarded<timer_disarm>},
                                      {"destroy", guarded<timer_destroy>},
                                      {"armed", guarded<timer_armed>},
                                      {nullptr, nullptr}};

int open(lua_State* L) {
    luaL_newmetatable(L, timer_box::type);
    luaL_newlib(L, timer_methods);
    // Lua looks here for the name of a function called by pcall(), for error messages about arguments.
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, timer_box::type);
    lua_pop(L, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, timer_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable"); // scripts do not reach __gc
    lua_pop(L, 1);

    luaL_newlib(L, module_functions);

    auto** const m = static_cast<module**>(lua_newuserdatauv(L, sizeof(module*), 0));
    *m = nullptr;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, module_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
    *m = new module;
    return 1;
}

} // namespace

extern "C" int luaopen_pawl(lua_State* L) { return guarded<open>(L); }

namespace lua_host {

pawl::event_queue& queue_of(lua_State* L) { return module::of(L).queue; }

std::size_t process_events(lua_State* L) {
    return module::of(L).process_events(L, static_cast<std::size_t>(-1));
}

std::size_t failures(lua_State* L) { return module::of(L).failures; }

int traceback(lua_State* L) {
    luaL_traceback(L, L, luaL_tolstring(L, 1, nullptr), 1);
    return 1;
}

} // namespace lua_host
