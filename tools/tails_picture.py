#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Draws a result of `./dev bench tails --json` as an SVG picture with logarithmic axes. Needs gnuplot.

usage: tails_picture.py RESULTS.json -o PICTURE.svg
       tails_picture.py RESULTS.json --check PICTURE.svg    fails if the picture was made from other results; needs no gnuplot
"""

import argparse
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import sys

# The panels of percentiles: workload and title.
PANELS = [
    ("registrations", "start of a wait, from another thread, while {timers} expire"),
    ("ping_pong", "TCP ping-pong, while {timers} expire"),
    ("lateness", "lateness of {timers} timers under load"),
]
PERCENTILES = ["p50", "p90", "p99", "p99.9", "p99.99", "max"]
# The panel of heartbeats.
COSTS = [("wake-ups/s", "wake-ups/s"), ("CPU, % of a core", "CPU, %% of a core"), ("late p99, us", "p99 late, µs")]
VARIANTS = ["asio", "pawl"]
TITLES = {"asio": "boost::asio::steady_timer", "pawl": "pawl::steady_timer"}

# These colours of gnuplot are replaced by colours of the reader's theme.
INK, GRID, ASIO, PAWL = "#1f2328", "#d0d7de", "#bc4c00", "#2f6fb0"
COLOURS = {"asio": ASIO, "pawl": PAWL}
THEMES = {"ink": (INK, "#e6edf3"), "grid": (GRID, "#30363d"), "asio": (ASIO, "#f0883e"), "pawl": (PAWL, "#58a6ff")}
PAGE = ("#ffffff", "#0d1117")


def find(results: dict, workload: str) -> dict:
    for result in results["results"]:
        if result["workload"] == workload:
            return {each["variant"]: each for each in result["variants"]} | {"size": result["size"]}
    raise ValueError(f"the results lack {workload}: make them with ./dev bench tails --json, all workloads")


def block(name: str, rows: list) -> str:
    return f"${name} << EOD\n" + "".join(" ".join(f"{cell:g}" for cell in row) + "\n" for row in rows) + "EOD\n"


def spread(values: list) -> list:
    return [statistics.median(values), min(values), max(values)]


def size_name(size: int) -> str:
    return f"{size:.0e}".replace("e+0", "e")


def percentile_panel(results: dict, workload: str, title: str) -> str:
    found = find(results, workload)
    out = ""
    for variant in VARIANTS:
        seconds = {p: [us / 1e6 for us in found[variant]["notes"][p]] for p in PERCENTILES}
        rows = [[n, *spread(seconds[p])] for n, p in enumerate(PERCENTILES)]
        out += block(variant, rows)
    ticks = ", ".join(f'"{p}" {n}' for n, p in enumerate(PERCENTILES))
    plots = ", ".join(
        f'${v} using 1:2 with linespoints lc rgb "{COLOURS[v]}" lw 2 pt 7 ps 0.5 title "{TITLES[v]}", '
        f'${v} using 1:3:(0):($4 - $3) with vectors nohead lc rgb "{COLOURS[v]}" lw 1 notitle'
        for v in VARIANTS
    )
    return (
        out
        + f'set title "{title.format(timers=size_name(found["size"]))}"\n'
        + f'set xtics ({ticks})\nset xrange [-0.4:{len(PERCENTILES) - 0.6}]\nset format y "%.0s %cs"\n'
        + f"set yrange [*:*]\nplot {plots}\n"
    )


def cost_panel(results: dict) -> str:
    found = find(results, "heartbeats")
    out = ""
    for number, variant in enumerate(VARIANTS):
        rows = [
            [n + 0.36 * number - 0.18, *spread(found[variant]["notes"][cost])] for n, (cost, _) in enumerate(COSTS)
        ]
        out += block(variant, rows)
    ticks = ", ".join(f'"{title}" {n}' for n, (_, title) in enumerate(COSTS))
    plots = ", ".join(
        f'${v} using 1:2 with boxes lc rgb "{COLOURS[v]}" fs solid 0.7 notitle, '
        f'${v} using 1:3:(0):($4 - $3) with vectors nohead lc rgb "{INK}" lw 1 notitle'
        for v in VARIANTS
    )
    return (
        out
        + f'set title "{size_name(found["size"])} heartbeats of 1 s"\n'
        + f'set xtics ({ticks})\nset xrange [-0.6:{len(COSTS) - 0.4}]\nset boxwidth 0.32\nset format y "%.0s %c"\n'
        + f"set yrange [1:*]\nplot {plots}\n"
    )


def origin(source: pathlib.Path) -> str:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- Made by tools/tails_picture.py from bench/results/{source.name}, sha256 {digest}; do not edit. -->"


def picture(results: dict, source: pathlib.Path) -> str:
    about = results["about"]
    caption = (
        f"median and range of {len(results['results'][0]['variants'][0]['values'])} paired repetitions; {about['cpu']}, "
        f"{about['cpus']} CPUs, {about['compiler']}, Boost {about['boost']}, {about['date']}"
    )
    script = f"""set encoding utf8
set terminal svg size 960,760 dynamic font "sans-serif,11" noenhanced
set logscale y
set micro
set border 3 lc rgb "{INK}"
set tics nomirror textcolor rgb "{INK}"
set grid ytics lc rgb "{GRID}" lt 1
set title textcolor rgb "{INK}"
set key at screen 0.5,0.985 center top maxrows 1 textcolor rgb "{INK}"
set label 1 {json.dumps(caption, ensure_ascii=False)} at screen 0.02,0.04 textcolor rgb "{INK}"
set label 2 "bench/results/{source.name}" at screen 0.02,0.015 textcolor rgb "{INK}"
set multiplot layout 2,2 margins 0.08,0.98,0.11,0.9 spacing 0.09,0.12
"""
    for number, (workload, title) in enumerate(PANELS):
        script += percentile_panel(results, workload, title)
        if number == 0:
            script += "unset label\nunset key\n"
    script += cost_panel(results) + "unset multiplot\n"
    drawn = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=True).stdout
    return themed(drawn, source)


def themed(drawn: str, source: pathlib.Path) -> str:
    """The picture in colours of the reader's theme, as a page of its own."""
    for name, (light, _) in THEMES.items():
        red, green, blue = (int(light[i : i + 2], 16) for i in (1, 3, 5))
        drawn = re.sub(rf"rgb\(\s*{red},\s*{green},\s*{blue}\)", f"var(--{name})", drawn)
    drawn = drawn.replace("black", "var(--ink)")
    light, dark = (
        " ".join([f"--page: {PAGE[n]};", *(f"--{name}: {colours[n]};" for name, colours in THEMES.items())])
        for n in (0, 1)
    )
    style = f"<style>svg {{ {light} }} @media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    head, _, rest = drawn.partition("<svg")
    attributes, _, body = rest.partition(">")
    return (
        f"{head}<!-- Copyright (c) 2026 The Pawl authors -->\n<!-- SPDX-License-Identifier: BSL-1.0 -->\n{origin(source)}\n"
        f'<svg{attributes}>\n{style}\n<rect width="100%" height="100%" fill="var(--page)"/>{body}'
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws a result of ./dev bench tails --json as an SVG picture.")
    parser.add_argument("results", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", dest="output", metavar="PICTURE.svg", type=pathlib.Path)
    what.add_argument("--check", metavar="PICTURE.svg", type=pathlib.Path)
    options = parser.parse_args()
    try:
        if options.output:
            options.output.write_text(picture(json.loads(options.results.read_text()), options.results))
        elif origin(options.results) not in options.check.read_text():
            raise ValueError(
                f"{options.check} was not made from {options.results}: run {sys.argv[0]} {options.results} -o {options.check}"
            )
    except KeyError as e:
        print(f"tails_picture.py: {options.results} has no {e}: is it from ./dev bench tails --json?", file=sys.stderr)
        return 1
    except json.JSONDecodeError as e:
        print(f"tails_picture.py: {options.results} is not JSON: {e}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as e:
        print(f"tails_picture.py: gnuplot: {e.stderr}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as e:
        print(f"tails_picture.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
