// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The target of a request, taken apart: "/a%20b.txt?x=1" is the path "/a b.txt" and the query "x=1".

#ifndef PAWL_EXAMPLES_HTTP_SERVER_TARGET_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_TARGET_HPP

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace example {

struct target {
    std::string path;       ///< decoded; begins with '/'; has no '\0'
    std::string_view query; ///< as it was sent, without the '?'
};

/// @return nothing if `text` is not a target that a server must understand.
[[nodiscard]] inline std::optional<target> parse_target(std::string_view text) {
    for (const std::string_view scheme : {"http://", "https://"}) // as proxies are asked
        if (text.starts_with(scheme))
            text.remove_prefix(std::min(text.find('/', scheme.size()), text.size()));
    if (!text.starts_with('/'))
        return std::nullopt;

    target result;
    if (const auto question = text.find('?'); question != text.npos) {
        result.query = text.substr(question + 1);
        text = text.substr(0, question);
    }
    result.path.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const std::string_view digits = text.substr(i + 1, 2);
            const char* const end = digits.data() + digits.size();
            unsigned char byte = 0;
            const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
            if (error != std::errc() || stop != end || digits.size() != 2)
                return std::nullopt;
            c = static_cast<char>(byte);
            i += 2;
        }
        if (c == '\0')
            return std::nullopt;
        result.path += c;
    }
    return result;
}

/// Whether a segment of a decoded path satisfies `test`.
template <class Test>
[[nodiscard]] bool any_segment(std::string_view path, Test test) {
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        if (test(path.substr(begin, end - begin)))
            return true;
        begin = end + 1;
    }
    return false;
}

/// Whether a decoded path has a segment "..", which could lead out of the root.
[[nodiscard]] inline bool climbs(std::string_view path) {
    return any_segment(path, [](std::string_view s) { return s == ".."; });
}

/// Whether a decoded path leads through a name that begins with a dot, such as "/.git/config". The
/// segment "." is not a name.
[[nodiscard]] inline bool is_hidden(std::string_view path) {
    return any_segment(path, [](std::string_view s) { return s.starts_with('.') && s != "."; });
}

/// The parameter `name` of a query, if it occurs once and is a number.
[[nodiscard]] inline std::optional<std::uint32_t> number_in(std::string_view query,
                                                            std::string_view name) {
    std::optional<std::uint32_t> found;
    while (!query.empty()) {
        const std::string_view parameter = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(parameter.size() + 1, query.size()));
        if (!parameter.starts_with(name) || parameter.substr(name.size(), 1) != "=")
            continue;
        const std::string_view digits = parameter.substr(name.size() + 1);
        const char* const end = digits.data() + digits.size();
        std::uint32_t number = 0;
        const auto [stop, error] = std::from_chars(digits.data(), end, number);
        if (found || error != std::errc() || stop != end)
            return std::nullopt;
        found = number;
    }
    return found;
}

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_TARGET_HPP
