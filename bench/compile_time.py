#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""What including a header of Pawl costs, compared with including <boost/asio/steady_timer.hpp> alone.

Each repetition compiles, for every header, a file with nothing but the include, back to back, in a different order each
time. It yields one ratio for each header. The table has the medians, and the smallest and largest ratio, of the
compiler's CPU time, user and system.
"""

import argparse
import os
import pathlib
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

BASELINE = "boost/asio/steady_timer.hpp"
HEADERS = [BASELINE, "pawl/steady_timer.hpp", "pawl/timeout.hpp", "pawl/ring_timer.hpp", "pawl/pawl.hpp"]


def compile_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_name() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--reps", type=int, default=15, help="repetitions (default: 15)")
    parser.add_argument("compiler", nargs="*", default=["g++", "clang++-19"], help="default: g++ clang++-19")
    arguments = parser.parse_args()
    if arguments.reps < 1:
        parser.error("--reps must be at least 1")

    include = pathlib.Path(__file__).resolve().parent.parent / "include"
    print(f"{cpu_name()}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, load {os.getloadavg()[0]:.1f}, ", end="")
    print(f"{arguments.reps} repetitions; `-std=c++20 -O0 -c`, CPU seconds; header / `{BASELINE}`\n")
    print("| compiler | header | seconds | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        sources = {h: pathlib.Path(folder) / f"{i}.cpp" for i, h in enumerate(HEADERS)}
        for header, source in sources.items():
            source.write_text(f"#include <{header}>\n")
        for compiler in arguments.compiler:
            version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
            seconds: dict[str, list[float]] = {h: [] for h in HEADERS}
            ratios: dict[str, list[float]] = {h: [] for h in HEADERS}
            for _ in range(arguments.reps):
                for header in random.sample(HEADERS, len(HEADERS)):
                    command = [compiler, "-std=c++20", "-O0", f"-I{include}", "-c", str(sources[header])]
                    seconds[header].append(compile_seconds([*command, "-o", os.devnull]))
                for header in HEADERS:
                    ratios[header].append(seconds[header][-1] / seconds[BASELINE][-1])
            for header in HEADERS:
                low, high = min(ratios[header]), max(ratios[header])
                spread = "" if header == BASELINE else f" ({low:.2f} - {high:.2f})"
                ratio = statistics.median(ratios[header])
                name = version.splitlines()[0] if header == BASELINE else ""
                print(f"| {name} | `{header}` | {statistics.median(seconds[header]):.2f} | {ratio:.2f}{spread} |")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(f"compile_time.py: {error}")
