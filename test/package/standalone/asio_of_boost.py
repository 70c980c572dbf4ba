#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Writes standalone Asio's headers, from those of Boost.Asio: usage: asio_of_boost.py INCLUDE FOLDER.

It undoes what Asio's own script does for a release of Boost. The error category is not in
Boost.Asio. As in standalone Asio (1.22 to 1.38), it has its own name, and its codes equal no
std::errc.
"""

import re
import sys
from pathlib import Path

RULES = [
    (r"namespace boost \{\s*namespace asio \{", "namespace asio {"),
    (r"\} // namespace asio\s*\} // namespace boost", "} // namespace asio"),
    (r"namespace boost \{\s*namespace system \{", "namespace std {"),
    (r"\} // namespace system\s*\} // namespace boost", "} // namespace std"),
    (r"<boost/asio([/.])", r"<asio\1"),
    (r"<boost/cerrno\.hpp>", "<cerrno>"),
    (r"<boost/system/\w+\.hpp>", "<asio/error_code.hpp>"),
    (r"boost::system::system_category", "asio::system_category"),
    (r"boost::system::", "std::"),
    (r"boost::asio", "asio"),
    (r"boost_asio_", "asio_"),
    (r"BOOST_ASIO_", "ASIO_"),
]

ERROR_CODE = """#pragma once
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace asio {
using std::error_category;
using std::error_code;
using std::system_error;

namespace detail {
struct system_category final : std::error_category {
    const char* name() const noexcept override { return "asio.system"; }
    std::string message(int value) const override {
        return value == ECANCELED ? "Operation aborted." : std::strerror(value);
    }
};
} // namespace detail

inline const error_category& system_category() {
    static detail::system_category instance;
    return instance;
}
} // namespace asio
"""


def main() -> None:
    source, target = (Path(folder) for folder in sys.argv[1:])
    files = {"asio/error_code.hpp": ERROR_CODE}
    for path in (source / "boost/asio.hpp", *(source / "boost/asio").rglob("*.[hi]pp")):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in RULES:
            text = re.sub(pattern, replacement, text)
        files[path.relative_to(source / "boost").as_posix()] = text
    for name, text in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
