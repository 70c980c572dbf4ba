// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Runs a Lua script, and its timers afterwards. Or reads lines from the keyboard, while timers go on.

#include "pawl_module.hpp"

#if defined(LUA_HOST_LIBEDIT)
#include "line_editor.hpp"
#endif

#include <lua.hpp>

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace {

constexpr const char* usage =
    "usage: lua_host [--stay] SCRIPT [ARGUMENT...]\n"
    "       lua_host -i\n"
    "\n"
    "Runs a Lua script, which has the module 'pawl', and then its timers until none is "
    "left.\n"
    "\n"
    "  --stay  go on even if there is none, for a script that waits for signals\n"
    "  -i      read Lua from standard input, line by line; timers go on meanwhile. At a\n"
    "          terminal the line can be edited, and what timers print stands above it\n"
    "\n"
    "Exits with 1 if the script fails, or a callback raises an error that nothing handles.\n";

/// Calls the function below `arguments` values. Reports an error. @return whether it succeeded.
bool call(lua_State* L, int arguments, int results) {
    const int handler = lua_gettop(L) - arguments;
    lua_pushcfunction(L, lua_host::traceback);
    lua_insert(L, handler);
    const bool good = lua_pcall(L, arguments, results, handler) == LUA_OK;
    if (!good) {
        std::fflush(stdout);
        std::fprintf(stderr, "lua_host: %s\n", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_remove(L, handler);
    return good;
}

int run_script(lua_State* L, int count, char** words, bool stays) {
    lua_createtable(L, count, 0);
    for (int i = 0; i != count; ++i) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i); // the script is arg[0]
    }
    lua_setglobal(L, "arg");

    if (luaL_loadfile(L, words[0]) != LUA_OK) {
        std::fprintf(stderr, "lua_host: %s\n", lua_tostring(L, -1));
        return 1;
    }
    for (int i = 1; i != count; ++i)
        lua_pushstring(L, words[i]);
    if (!call(L, count - 1, 0))
        return 1;

    pawl::event_queue& queue = lua_host::queue_of(L);
    while (stays || queue.timers() != 0 || queue.inqueue() != 0) {
        queue.wait();
        lua_host::process_events(L);
        std::fflush(stdout);
    }
    return lua_host::failures(L) == 0 ? 0 : 1;
}

/// Reads lines and runs them, one after another.
class console {
public:
    explicit console(lua_State* state) : L(state) {}

    /// @return at the end of the input.
    void run() {
#if defined(LUA_HOST_LIBEDIT)
        if (::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO))
            return run_terminal();
#endif
        std::setvbuf(stdout, nullptr, _IOFBF, BUFSIZ); // for __fpending(); prompt() flushes
        prompt();
        loop(
            [this] {
                const auto failed = lua_host::failures(L);
                lua_host::process_events(L);
                if (__fpending(stdout) != 0 || lua_host::failures(L) != failed)
                    prompt(); // after other output
            },
            [this](int) { return read(); });
    }

private:
    /// Waits for events and input. @return when `on_input` reports the end of the input.
    template <class OnEvents, class OnInput>
    void loop(OnEvents on_events, OnInput on_input) {
        std::array<pollfd, 2> watched{pollfd{STDIN_FILENO, POLLIN, 0},
                                      pollfd{lua_host::queue_of(L).native_handle(), POLLIN, 0}};
        for (;;) {
            if (::poll(watched.data(), watched.size(), -1) < 0)
                continue; // a signal
            if (watched[1].revents != 0)
                on_events();
            if (watched[0].revents != 0 && !on_input(watched[0].revents))
                return;
        }
    }

#if defined(LUA_HOST_LIBEDIT)
    /// At a terminal. Output of events appears above the line that is being typed.
    void run_terminal() {
        lua_host::line_editor editor;
        editor.show(prompt_text());
        loop(
            [&] {
                editor.hide();
                lua_host::process_events(L);
                std::fflush(stdout);
                editor.show(prompt_text());
            },
            [&](int events) {
                if ((events & (POLLHUP | POLLERR)) != 0)
                    return false; // the terminal has gone
                if (const auto line = editor.read()) {
                    run(*line);
                    std::fflush(stdout);
                    editor.show(prompt_text());
                }
                return !editor.ended();
            });
    }
#endif

    [[nodiscard]] const char* prompt_text() const { return chunk_.empty() ? "> " : ">> "; }
    void prompt() const {
        std::fputs(prompt_text(), stdout);
        std::fflush(stdout);
    }

    /// Takes typed input. @return whether more may come.
    bool read() {
        char bytes[4096];
        const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof(bytes));
        if (count < 0)
            return errno == EINTR || errno == EAGAIN;
        typed_.append(bytes, static_cast<std::size_t>(count));
        if (count == 0 && !typed_.empty())
            typed_ += '\n';
        for (std::size_t end; (end = typed_.find('\n')) != std::string::npos;) {
            const std::string line = typed_.substr(0, end);
            typed_.erase(0, end + 1);
            run(line);
            prompt();
        }
        return count != 0;
    }

    /// Runs the input, if it is complete, and prints its results.
    void run(const std::string& line) {
        if (!chunk_.empty() || !loads("return " + line)) {
            chunk_ += line + '\n';
            if (!loads(chunk_)) {
                const std::string_view error = lua_tostring(L, -1);
                if (!error.ends_with("<eof>")) {
                    std::fprintf(stderr, "%s\n", error.data());
                    chunk_.clear();
                }
                lua_settop(L, 0);
                return;
            }
        }
        chunk_.clear();
        lua_insert(L, 1);
        lua_settop(L, 1);
        if (call(L, 0, LUA_MULTRET) && lua_gettop(L) != 0) {
            lua_getglobal(L, "print");
            lua_insert(L, 1);
            call(L, lua_gettop(L) - 1, 0);
        }
        lua_settop(L, 0);
    }

    /// Leaves a function, or an error message, on the stack. Text only: Lua does not verify binary chunks.
    bool loads(const std::string& text) {
        return luaL_loadbufferx(L, text.data(), text.size(), "=stdin", "t") == LUA_OK;
    }

    lua_State* const L;
    std::string typed_; ///< after the last complete line
    std::string chunk_; ///< lines of an incomplete chunk
};

struct close_state {
    void operator()(lua_State* L) const noexcept { lua_close(L); }
};

} // namespace

int main(int argc, char** argv) {
    bool interactive = false;
    bool stays = false;
    int first = 1;
    for (; first != argc && argv[first][0] == '-'; ++first) {
        const std::string_view option = argv[first];
        if (option == "-h" || option == "--help") {
            std::fputs(usage, stdout);
            return 0;
        }
        if (option == "-i") {
            interactive = true;
        } else if (option == "--stay") {
            stays = true;
        } else {
            std::fprintf(stderr, "lua_host: no such option: %s\n%s", argv[first], usage);
            return 2;
        }
    }
    if (interactive ? first != argc || stays : first == argc) {
        std::fputs(usage, stderr);
        return 2;
    }

    const std::unique_ptr<lua_State, close_state> state(luaL_newstate());
    lua_State* const L = state.get();
    if (!L) {
        std::fputs("lua_host: no memory for Lua\n", stderr);
        return 1;
    }
    luaL_openlibs(L);
    luaL_requiref(L, "pawl", luaopen_pawl, 1);
    lua_settop(L, 0);
    if (!interactive)
        return run_script(L, argc - first, argv + first, stays);
    console(L).run();
    return 0;
}
