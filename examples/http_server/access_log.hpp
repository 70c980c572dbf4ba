// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The access log: a line for each request, and for each connection that ended abnormally, in the common
// log format, followed by the duration and, unless the answer was complete, the reason:
//
//     127.0.0.1 - - [21/Nov/2026:19:44:51 +0000] "GET /a.txt HTTP/1.1" 200 12 0.085ms
//     127.0.0.1 - - [21/Nov/2026:19:44:52 +0000] "-" - 0 1000.412ms header timeout
//
// If no answer was sent, there is no status. A partly sent answer has the size of the whole.
//
// Threads: any. Lines are written when a connection ends, or when the stream's buffer is full.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_ACCESS_LOG_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_ACCESS_LOG_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace example {

/// `format` is one of strftime(); the time is now, in UTC.
[[nodiscard]] inline std::string format_time(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &parts)};
}

class access_log {
public:
    struct entry {
        std::string_view client;
        std::string_view request; ///< the request line; empty if none was valid
        unsigned status = 0;      ///< 0: nothing of an answer was sent
        std::uint64_t size = 0;   ///< of the answer's body
        std::chrono::nanoseconds took{};
        std::string_view trouble;
    };

    explicit access_log(std::ostream& out) : out_(out) {}

    void write(const entry& e) {
        char took[32];
        std::snprintf(took, sizeof took, "%.3fms",
                      std::chrono::duration<double, std::milli>(e.took).count());
        std::string line(e.client);
        line += format_time(" - - [%d/%b/%Y:%H:%M:%S +0000] \"");
        append_escaped(line, e.request.empty() ? "-" : e.request);
        line += "\" ";
        line += e.status == 0 ? "-" : std::to_string(e.status);
        line += ' ';
        line += std::to_string(e.size);
        line += ' ';
        line += took;
        if (!e.trouble.empty())
            (line += ' ') += e.trouble;
        line += '\n';

        const std::lock_guard lock(mutex_);
        out_ << line;
    }

    void flush() {
        const std::lock_guard lock(mutex_);
        out_.flush();
    }

private:
    /// A client must not be able to inject a line, or to end the quotation.
    static void append_escaped(std::string& line, std::string_view text) {
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte > 0x1f && byte < 0x7f && c != '"' && c != '\\') {
                line += c;
            } else {
                char escaped[8];
                std::snprintf(escaped, sizeof escaped, "\\x%02x", unsigned{byte});
                line += escaped;
            }
        }
    }

    std::mutex mutex_;
    std::ostream& out_;
};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_ACCESS_LOG_HPP
