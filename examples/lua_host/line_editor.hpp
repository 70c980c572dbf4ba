// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Edits a line at a terminal, with editing keys and a history, while the host does other things: no call
// waits for the end of the line. Based on libedit, which has a BSD licence; GNU readline has the GPL.

#ifndef PAWL_EXAMPLES_LINE_EDITOR_HPP
#define PAWL_EXAMPLES_LINE_EDITOR_HPP

#include <histedit.h>

#include <clocale>
#include <cstdio>
#include <new>
#include <optional>
#include <string>

namespace lua_host {

/// While a line is shown, the editor owns the terminal: print other output between hide() and show().
class line_editor {
public:
    line_editor() {
        std::setlocale(LC_CTYPE, ""); // libedit decodes typed bytes into characters
        if (!editor_ || !history_)
            throw std::bad_alloc();
        HistEvent event;
        history(history_, &event, H_SETSIZE, 1000);
        el_set(editor_, EL_CLIENTDATA, this);
        el_set(editor_, EL_PROMPT, prompt_of);
        el_set(editor_, EL_EDITOR, "emacs");
        el_set(editor_, EL_HIST, history, history_);
        el_set(editor_, EL_SIGNAL, 1); // restores the terminal when a signal ends the program
    }
    line_editor(const line_editor&) = delete;
    line_editor& operator=(const line_editor&) = delete;
    ~line_editor() {
        if (shown_)
            hide();
        history_end(history_);
        el_end(editor_);
    }

    /// Shows the prompt and the line so far.
    void show(const std::string& prompt) {
        prompt_ = prompt;
        el_set(editor_, EL_UNBUFFERED, 1); // el_gets() returns after each key
        shown_ = true;
        if (!typed_.empty()) {
            el_insertstr(editor_, typed_.c_str());
            el_cursor(editor_, static_cast<int>(cursor_) - static_cast<int>(characters(typed_)));
            std::putchar('\r'); // where libedit assumes the cursor
            el_set(editor_, EL_REFRESH);
        }
    }

    /// Clears the line from the screen and keeps it. The terminal and the signals are then as they were.
    void hide() {
        const LineInfo& line = *el_line(editor_);
        typed_.assign(line.buffer, line.lastchar);
        cursor_ = characters({line.buffer, line.cursor});
        int columns = 0;
        el_get(editor_, EL_GETTC, "co", &columns, nullptr);
        if (columns > 0) { // the first row of the line
            const auto rows = (prompt_.size() + cursor_) / static_cast<std::size_t>(columns);
            if (rows != 0)
                std::printf("\x1b[%zuA", rows);
        }
        std::fputs("\r\x1b[J", stdout);
        std::fflush(stdout);
        leave();
    }

    /// A key has been pressed. @pre the line is shown.
    /// @return the line, without its end, if it is complete. It is then hidden, and stays on the screen.
    std::optional<std::string> read() {
        int count = 0;
        const char* const text = el_gets(editor_, &count);
        if (!text || count <= 0)
            return {}; // an empty line or a signal; indistinguishable from an error
        std::string line(text, static_cast<std::size_t>(count));
        if (line == "\x04") { // Ctrl-D on an empty line
            ended_ = true;
            std::putchar('\n');
            leave();
            return {};
        }
        if (line.back() != '\n')
            return {};
        line.pop_back();
        typed_.clear();
        leave();
        if (HistEvent event; line.find_first_not_of(' ') != line.npos)
            history(history_, &event, H_ENTER, line.c_str());
        return line;
    }

    /// Whether the user has ended the input. poll() tells whether the terminal has gone.
    [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
    static char* prompt_of(EditLine* editor) {
        void* self = nullptr;
        el_get(editor, EL_CLIENTDATA, &self);
        return static_cast<line_editor*>(self)->prompt_.data();
    }

    /// In UTF-8.
    static std::size_t characters(const std::string& text) {
        std::size_t n = 0;
        for (const char c : text)
            n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
        return n;
    }

    void leave() {
        shown_ = false;
        el_set(editor_, EL_UNBUFFERED, 0);
    }

    EditLine* const editor_ = el_init("lua_host", stdin, stdout, stderr);
    History* const history_ = history_init();
    std::string prompt_;
    std::string typed_;      ///< while hidden
    std::size_t cursor_ = 0; ///< position in it, in characters
    bool shown_ = false;
    bool ended_ = false;
};

} // namespace lua_host

#endif // PAWL_EXAMPLES_LINE_EDITOR_HPP
