// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Names of timers in what others parse: JSON, also that of the page of timers, and the text format of
// Prometheus. A program may name its timers after what a client sends.

#include "http_server/timers_summary.hpp"
#include "support/lockstep.hpp"

#include <pawl/stats.hpp>

#include <boost/json/src.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using pawl_test::expect;
    const pawl::timer_name name(std::string_view(reinterpret_cast<const char*>(data), size));
    pawl::context_stats all;
    all.longest_handler = {std::chrono::seconds(1), name};
    std::string shown(name.view()); // control characters are shown as spaces
    for (char& c : shown)
        c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;

    // The parser throws, among others if the text is not UTF-8.
    const auto json = boost::json::parse(pawl::to_json(all));
    expect(json.at("longest_handler").at("name").as_string() == shown, "another name in JSON");
    std::string page;
    example::append_json(page, name.view());
    expect(boost::json::parse(page).as_string() == name.view(), "another name for the page");

    const std::string text = pawl::to_prometheus(all);
    constexpr std::string_view before = "\npawl_timer_longest_handler_seconds{name=\"";
    std::string read;
    std::size_t at = text.find(before) + before.size();
    for (; at < text.size() && text[at] != '"'; ++at)
        read += text[at] == '\\' ? text[++at] : text[at];
    expect(read == shown, "another name for Prometheus");
    expect(text.compare(at, 5, "\"} 1\n") == 0, "a name leaves its quotes");
    return 0;
}
