// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A cache with expiring entries, without Asio: the program passes the time. A server would use
// steady_clock::now(), once per turn of its loop.

#include <pawl/time/timing_wheel.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <string>

using namespace std::chrono_literals;

/// Removes entries that were not used for half a minute.
class cache {
public:
    using time_point = std::chrono::steady_clock::time_point;

    explicit cache(time_point now) : expiry_({100ms}, now) {}

    void put(const std::string& key, std::string value) {
        if (const auto old = entries_.find(key); old != entries_.end())
            expiry_.remove(old->second.alarm);
        entries_[key] = {std::move(value), expiry_.add(expiry_.now() + 30s, key)};
    }

    const std::string* get(const std::string& key) {
        const auto found = entries_.find(key);
        if (found == entries_.end())
            return nullptr;
        expiry_.reschedule(found->second.alarm, expiry_.now() + 30s);
        return &found->second.value;
    }

    void turn(time_point now) {
        expiry_.advance_clock(now, [this](auto expired) {
            std::cout << "  forgotten: " << expired.value << '\n';
            entries_.erase(expired.value);
        });
    }

private:
    struct entry {
        std::string value;
        pawl::timing_wheel_handle alarm;
    };

    std::map<std::string, entry> entries_;
    pawl::timing_wheel<std::string> expiry_; // of the keys
};

int main() {
    const cache::time_point start{};
    cache users(start);
    users.put("ada", "Ada Lovelace");
    users.put("alan", "Alan Turing");

    for (const auto second : {20s, 25s, 40s, 60s}) {
        std::cout << "after " << second.count() << " s\n";
        users.turn(start + second);
        if (second == 20s)
            std::cout << "  used: " << *users.get("ada") << '\n';
    }
    std::cout << (users.get("ada") == nullptr ? "all gone\n" : "not all gone\n");
}
