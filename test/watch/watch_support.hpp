// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the tests of event_feed and stats: everything that a reader can read at present, and
//   the books that it must balance.

#ifndef PAWL_TEST_WATCH_WATCH_SUPPORT_HPP
#define PAWL_TEST_WATCH_WATCH_SUPPORT_HPP

#include <pawl/event_feed.hpp>
#include <pawl/pawl.hpp>
#include <pawl/stats.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

namespace pawl {

inline std::ostream& operator<<(std::ostream& out, timer_event_kind k) {
    return out << to_string(k);
}
inline std::ostream& operator<<(std::ostream& out, read_status s) {
    return out << std::array{"messages", "nothing", "suspended",
                             "closed"}[static_cast<std::size_t>(s)];
}

} // namespace pawl

namespace watch_test {

using kind = pawl::timer_event_kind;
using kinds = std::vector<kind>;

/// The events that a reader has read.
class seen {
public:
    /// Reads all present events.
    void read(pawl::event_feed::reader& reader) {
        std::array<pawl::timer_event, 64> some;
        for (;;) {
            const pawl::read_result got = reader.try_read(some);
            missed += got.missed;
            all.insert(all.end(), some.begin(),
                       some.begin() + static_cast<std::ptrdiff_t>(got.count));
            if (got.status != pawl::read_status::messages)
                return;
        }
    }

    /// The number of waits with this event.
    [[nodiscard]] std::uint64_t count(kind k) const {
        std::uint64_t n = 0;
        for (const pawl::timer_event& e : all)
            n += e.kind == k ? e.waits : 0;
        return n;
    }
    [[nodiscard]] watch_test::kinds kinds() const {
        watch_test::kinds list;
        for (const pawl::timer_event& e : all)
            list.push_back(e.kind);
        return list;
    }
    /// Waits that were armed and have not ended.
    [[nodiscard]] std::uint64_t open() const {
        return count(kind::armed) - count(kind::started) - count(kind::cancelled) -
               count(kind::shut_down);
    }

    std::vector<pawl::timer_event> all;
    std::uint64_t missed = 0;
};

/// Everything that a reader can read at present.
inline seen read_all(pawl::event_feed::reader& reader) {
    seen s;
    s.read(reader);
    return s;
}

} // namespace watch_test

#endif // PAWL_TEST_WATCH_WATCH_SUPPORT_HPP
