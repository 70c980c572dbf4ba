#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Draws the main ratios of a result of `./dev bench --json` as an SVG picture, or the curves of `./dev bench peers --json`.

usage: bench_picture.py RESULTS.json -o PICTURE.svg
       bench_picture.py RESULTS.json --check PICTURE.svg    fails if the picture does not match the results
"""

import argparse
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

# The bars, if the results have them: workload, variant, label.
GROUPS = [
    ("churn", "pawl", "request timeouts", "that are beaten"),
    ("churn_in_handlers", "pawl", "the same", "in handlers"),
    ("idle_rearm", "pawl", "idle timeouts", "that are moved"),
    ("idle_rearm_in_handlers", "pawl", "the same", "in handlers"),
    ("idle_rearm", "coarse", "idle timeouts", "coarse"),
    ("expiry_spread", "pawl", "expiry", "within one second"),
    ("jump", "pawl", "expiry", "all at once"),
    ("churn_in_two_threads", "pawl", "in handlers,", "two threads"),
    ("two_threads", "pawl", "two threads", "1 shard"),
    ("two_threads", "pawl_2shards", "two threads", "2 shards"),
]

BAR, GAP, BETWEEN = 22, 5, 26  # widths: of a bar, between bars, between groups
LEFT, TOP, HEIGHT, UNDER = 52, 64, 260, 74  # of the first row of groups; space under each
WIDEST = 840
LEAST, MOST = 0.5, 64.0  # the axis

STYLE = """
    .page { fill: #ffffff }
    .grid { stroke: #d0d7de }
    .one { stroke: #57606a; stroke-width: 1.5 }
    .bar { fill: #2f6fb0 }
    .worse { fill: #bc4c00 }
    .spread { stroke: #1f2328; stroke-width: 1.3 }
    text { fill: #1f2328; font: 11px sans-serif; text-anchor: middle }
    .title { font-size: 14px; font-weight: bold; text-anchor: start }
    .start { text-anchor: start }
    .end { text-anchor: end }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 }
      .grid { stroke: #30363d }
      .one { stroke: #8b949e }
      .bar { fill: #58a6ff }
      .worse { fill: #f0883e }
      .spread { stroke: #e6edf3 }
      text { fill: #e6edf3 }
    }
"""


def y_of(ratio: float) -> float:
    """Height above the bottom of its row."""
    return -HEIGHT * math.log(ratio / LEAST) / math.log(MOST / LEAST)


def brief(ratio: float) -> str:
    return f"{ratio:.{2 if ratio < 2 else 1 if ratio < 10 else 0}f}"


def name_of(size: int) -> str:
    return f"1e{round(math.log10(size))}"


def ratios_of(results: dict, workload: str, variant: str) -> dict[int, dict]:
    """The ratios of a variant by the number of timers."""
    ratios = {}
    for result in results["results"]:
        if result["workload"] != workload:
            continue
        for each in result["variants"]:
            if each["variant"] == variant:
                ratio = ratios[result["size"]] = each["ratio"]
                if not LEAST <= ratio["min"] <= ratio["median"] <= ratio["max"] <= MOST:
                    raise ValueError(
                        f"{workload} of {variant} at {result['size']} is {ratio}: not in order, or beyond the axis, LEAST to MOST"
                    )
    return dict(sorted(ratios.items()))


def width_of(ratios: dict) -> int:
    return len(ratios) * (BAR + GAP) - GAP


def rows_of(groups: list) -> list[list]:
    """Puts as many groups side by side as fit."""
    rows: list[list] = [[]]
    for group in groups:
        if rows[-1] and LEFT + sum(width_of(each[0]) + BETWEEN for each in [*rows[-1], group]) > WIDEST:
            rows.append([])
        rows[-1].append(group)
    return rows


def row(groups: list, bottom: int, width: int) -> list[str]:
    out = []
    ratio = LEAST
    while ratio <= MOST:
        y = bottom + y_of(ratio)
        kind = "one" if ratio == 1 else "grid"
        out.append(f'  <line class="{kind}" x1="{LEFT}" y1="{y:.1f}" x2="{width - 12}" y2="{y:.1f}"/>')
        out.append(f'  <text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{ratio:g}</text>')
        ratio *= 2
    left = LEFT + BETWEEN / 2
    for ratios, first, second in groups:
        for bar, (size, found) in enumerate(ratios.items()):
            x = left + bar * (BAR + GAP)
            middle = x + BAR / 2
            y, one = bottom + y_of(found["median"]), bottom + y_of(1)
            kind = "bar" if found["median"] >= 1 else "worse"
            out.append(
                f'  <rect class="{kind}" x="{x:.1f}" y="{min(y, one):.1f}" width="{BAR}" height="{abs(one - y):.1f}"/>'
            )
            low, high = bottom + y_of(found["min"]), bottom + y_of(found["max"])
            out.append(
                f'  <path class="spread" d="M{middle:.1f} {low:.1f} V{high:.1f} M{middle - 4:.1f} {low:.1f} h8 '
                f'M{middle - 4:.1f} {high:.1f} h8"/>'
            )
            out.append(f'  <text x="{middle:.1f}" y="{high - 5:.1f}">{brief(found["median"])}</text>')
            out.append(f'  <text x="{middle:.1f}" y="{bottom + 16}">{name_of(size)}</text>')
        for line, text in enumerate([first, second]):
            out.append(f'  <text x="{left + width_of(ratios) / 2:.1f}" y="{bottom + 36 + 14 * line}">{text}</text>')
        left += width_of(ratios) + BETWEEN
    return out


def heading(title: str, width: int, height: int, source: str, style: str, left: int = 16) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">',
        "  <!-- Copyright (c) 2026 The Pawl authors -->",
        "  <!-- SPDX-License-Identifier: BSL-1.0 -->",
        f"  <!-- Made by tools/bench_picture.py from bench/results/{escape(source)}; do not edit. -->",
        f'  <title id="title">{title}</title>',
        f"  <style>{style}  </style>",
        f'  <rect class="page" width="{width}" height="{height}"/>',
        f'  <text class="title" x="{left}" y="24">{title}</text>',
    ]


def finish(out: list[str], left: int, height: int, caption: str, source: str) -> str:
    out.append(f'  <text class="start" x="{left}" y="{height - 24}">{escape(caption)}</text>')
    out.append(f'  <text class="start" x="{left}" y="{height - 9}">bench/results/{escape(source)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def picture(results: dict, source: str) -> str:
    about = results["about"]
    groups = [(ratios_of(results, workload, variant), *texts) for workload, variant, *texts in GROUPS]
    rows = rows_of([group for group in groups if group[0]])
    if not rows[0]:
        raise ValueError("the results have nothing to draw: make them with ./dev bench --core --json")
    sizes = [size for ratios, *_ in groups for size in ratios]
    counts = [len(result["variants"][0]["values"]) for result in results["results"]]
    repetitions = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    # Old results have no such line: they were measured without an idle thread.
    beside = about.get("beside the workload", "nothing: alone in the process")
    beside = "alone in the process" if "alone" in beside else f"beside {beside}"
    width = LEFT + max(sum(width_of(ratios) + BETWEEN for ratios, *_ in each) for each in rows) + 12
    height = TOP + len(rows) * (HEIGHT + UNDER) + 24
    title = "boost::asio::steady_timer / pawl::steady_timer: time per operation"
    out = heading(title, width, height, source, STYLE, LEFT)
    out += [
        f'  <text class="start" x="{LEFT}" y="42">above 1 Pawl is faster; {name_of(min(sizes))} to {name_of(max(sizes))} timers; '
        f"{beside}; logarithmic</text>",
    ]
    for number, each in enumerate(rows):
        out += row(each, TOP + HEIGHT + number * (HEIGHT + UNDER), width)
    caption = (
        f"median and range of {repetitions} paired repetitions; {about['cpu']}, {about['cpus']} CPUs, "
        f"{about['compiler']}, Boost {about['boost']}, {about['date']}"
    )
    return finish(out, LEFT, height, caption, source)


# The panels of curves: workload, title, unit.
PANELS = [
    ("requests", "request timeouts that are beaten", "ns"),
    ("idle", "idle timeouts that are moved", "ns"),
    ("expiry", "expiry within one second", "ns"),
    ("jump", "expiry all at once", "ns"),
    ("memory", "memory of a pending timer", "bytes"),
    ("lateness", "lateness, p99", "µs"),
]
# The curves, if a panel has them: CSS class of the colour, and dashes.
CURVES = {
    "pawl": ("c1", ""),
    "pawl64": ("c1", "5 3"),
    "asio": ("c2", ""),
    "libuv": ("c3", ""),
    "libevent": ("c4", ""),
    "libev": ("c5", ""),
    "libev+lazy": ("c5", "5 3"),
}
CURVE_STYLE = """
    .curve { fill: none; stroke: currentColor; stroke-width: 1.8 }
    .point { fill: currentColor }
    .c1 { color: #0969da } .c2 { color: #bc4c00 } .c3 { color: #1a7f37 } .c4 { color: #8250df } .c5 { color: #57606a }
    @media (prefers-color-scheme: dark) {
      .c1 { color: #58a6ff } .c2 { color: #f0883e } .c3 { color: #3fb950 } .c4 { color: #d2a8ff } .c5 { color: #8b949e }
    }
"""
PANEL_WIDTH, PANEL_HEIGHT, PANEL_LEFT, PANEL_TOP, PANEL_UNDER = 250, 190, 54, 30, 34


def short(value: float) -> str:
    return f"{value:g}" if value < 1e4 else name_of(value)


def panel(results: dict, workload: str, title: str, unit: str, left: float, top: float) -> list[str]:
    """Curves of the values of a workload against the number of timers, on logarithmic axes."""
    found = sorted((each for each in results["results"] if each["workload"] == workload), key=lambda each: each["size"])
    curves = {name: [] for name in CURVES}
    for result in found:
        for each in result["variants"]:
            if each["variant"] in curves and each["value"]["min"] > 0:
                curves[each["variant"]].append((result["size"], each["value"]))
    values = [spread[key] for points in curves.values() for _, spread in points for key in ("min", "max")]
    if not values or len(found) < 2:
        raise ValueError(f"the results lack {workload} at two sizes: make them with ./dev bench peers --json, all workloads")
    lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = (math.log10(found[at]["size"]) for at in (0, -1))

    def x_of(size: float) -> float:
        return left + PANEL_WIDTH * (math.log10(size) - first) / (last - first)

    def y_of_value(value: float) -> float:
        return top + PANEL_HEIGHT * (highest - math.log10(value)) / (highest - lowest)

    out = [f'  <text class="start" x="{left}" y="{top - 10}">{title}, {unit}</text>']
    for decade in range(lowest, highest + 1):
        y = y_of_value(10**decade)
        out.append(f'  <line class="grid" x1="{left}" y1="{y:.1f}" x2="{left + PANEL_WIDTH}" y2="{y:.1f}"/>')
        out.append(f'  <text class="end" x="{left - 6}" y="{y + 4:.1f}">{short(10**decade)}</text>')
    for result in found:
        out.append(f'  <text x="{x_of(result["size"]):.1f}" y="{top + PANEL_HEIGHT + 15}">{name_of(result["size"])}</text>')
    for name, points in curves.items():
        colour, dashes = CURVES[name]
        places = [(x_of(size), y_of_value(spread["median"]), spread) for size, spread in points]
        if not places:
            continue
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        out.append(f'  <g class="{colour}">')
        out.append(f'    <polyline class="curve" stroke-dasharray="{dashes or "none"}" points="{line}"/>')
        for x, y, spread in places:
            out.append(f'    <circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>')
            low, high = y_of_value(spread["min"]), y_of_value(spread["max"])
            out.append(f'    <path class="curve" stroke-opacity="0.5" d="M{x:.1f} {low:.1f} V{high:.1f}"/>')
        out.append("  </g>")
    return out


def curves(results: dict, source: str) -> str:
    about = results["about"]
    columns = 3
    column, line = PANEL_LEFT + PANEL_WIDTH + 14, PANEL_TOP + PANEL_HEIGHT + PANEL_UNDER
    width, height = columns * column + 8, 66 + math.ceil(len(PANELS) / columns) * line + 34
    title = "Timers of event loops: cost against the number of timers (logarithmic; lower is better)"
    out = heading(title, width, height, source, STYLE + CURVE_STYLE)
    x = 16
    for name, (colour, dashes) in CURVES.items():
        out.append(
            f'  <g class="{colour}"><path class="curve" stroke-dasharray="{dashes or "none"}" d="M{x} 42 h26"/></g>'
            f'<text class="start" x="{x + 31}" y="46">{name}</text>'
        )
        x += 60 + 7 * len(name)
    for number, each in enumerate(PANELS):
        out += panel(
            results, *each, PANEL_LEFT + number % columns * column, 66 + PANEL_TOP + number // columns * line
        )
    versions = ", ".join(f"{name} {about[name]}" for name in ("libuv", "libevent", "libev"))
    caption = (
        f"median and range of paired repetitions; {about['cpu']}, {about['cpus']} CPUs, {about['compiler']}, "
        f"Boost {about['boost']}, {versions}, {about['date']}"
    )
    return finish(out, 16, height, caption, source)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Draws the main ratios of a result of ./dev bench --json as an SVG picture, or the curves of "
        "./dev bench peers --json."
    )
    parser.add_argument("results", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", dest="output", metavar="PICTURE.svg", type=pathlib.Path)
    what.add_argument("--check", metavar="PICTURE.svg", type=pathlib.Path)
    options = parser.parse_args()
    try:
        results = json.loads(options.results.read_text())
        draw = curves if "libuv" in results["about"] else picture
        drawn = draw(results, options.results.name)
        if options.output:
            options.output.write_text(drawn)
        elif options.check.read_text() != drawn:
            raise ValueError(
                f"{options.check} is not what {options.results} gives: run {sys.argv[0]} {options.results} -o {options.check}"
            )
    except KeyError as e:
        print(f"bench_picture.py: {options.results} has no {e}: is it from ./dev bench --json, or bench peers?", file=sys.stderr)
        return 1
    except json.JSONDecodeError as e:
        print(f"bench_picture.py: {options.results} is not JSON: {e}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as e:
        print(f"bench_picture.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
