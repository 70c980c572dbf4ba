#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Draws the main ratios of a result of `./dev bench --json` as an SVG picture.

usage: bench_picture.py RESULTS.json -o PICTURE.svg
       bench_picture.py RESULTS.json --check PICTURE.svg    fails if the picture is not what the results give
"""

import argparse
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

# What is drawn as far as the results have it: workload, variant, and what to call it.
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

BAR, GAP, BETWEEN = 22, 5, 26  # widths of a bar, between bars, between groups
LEFT, TOP, HEIGHT, UNDER = 52, 64, 260, 74  # of the first row of groups; what stands under each
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
    """Above the bottom of its row."""
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
    """As many groups side by side as there is room for."""
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


def picture(results: dict, source: str) -> str:
    about = results["about"]
    groups = [(ratios_of(results, workload, variant), *texts) for workload, variant, *texts in GROUPS]
    rows = rows_of([group for group in groups if group[0]])
    if not rows[0]:
        raise ValueError("the results have nothing to draw: make them with ./dev bench --core --json")
    sizes = [size for ratios, *_ in groups for size in ratios]
    counts = [len(result["variants"][0]["values"]) for result in results["results"]]
    repetitions = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    # Results without the line are from before there was an idle thread.
    beside = about.get("beside the workload", "nothing: alone in the process")
    beside = "alone in the process" if "alone" in beside else f"beside {beside}"
    width = LEFT + max(sum(width_of(ratios) + BETWEEN for ratios, *_ in each) for each in rows) + 12
    height = TOP + len(rows) * (HEIGHT + UNDER) + 24
    title = "boost::asio::steady_timer / pawl::steady_timer: time per operation"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">',
        "  <!-- Copyright (c) 2026 The Pawl authors -->",
        "  <!-- SPDX-License-Identifier: BSL-1.0 -->",
        f"  <!-- Made by tools/bench_picture.py from bench/results/{escape(source)}; do not edit. -->",
        f'  <title id="title">{title}</title>',
        f"  <style>{STYLE}  </style>",
        f'  <rect class="page" width="{width}" height="{height}"/>',
        f'  <text class="title" x="{LEFT}" y="24">{title}</text>',
        f'  <text class="start" x="{LEFT}" y="42">above 1 Pawl is faster; {name_of(min(sizes))} to {name_of(max(sizes))} timers; '
        f"{beside}; logarithmic</text>",
    ]
    for number, each in enumerate(rows):
        out += row(each, TOP + HEIGHT + number * (HEIGHT + UNDER), width)
    caption = (
        f"median and range of {repetitions} paired repetitions; {about['cpu']}, {about['cpus']} CPUs, "
        f"{about['compiler']}, Boost {about['boost']}, {about['date']}"
    )
    out.append(f'  <text class="start" x="{LEFT}" y="{height - 24}">{escape(caption)}</text>')
    out.append(f'  <text class="start" x="{LEFT}" y="{height - 9}">bench/results/{escape(source)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Draws the main ratios of a result of ./dev bench --json as an SVG picture."
    )
    parser.add_argument("results", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", dest="output", metavar="PICTURE.svg", type=pathlib.Path)
    what.add_argument("--check", metavar="PICTURE.svg", type=pathlib.Path)
    options = parser.parse_args()
    try:
        drawn = picture(json.loads(options.results.read_text()), options.results.name)
        if options.output:
            options.output.write_text(drawn)
        elif options.check.read_text() != drawn:
            raise ValueError(
                f"{options.check} is not what {options.results} gives: run {sys.argv[0]} {options.results} -o {options.check}"
            )
    except KeyError as e:
        print(f"bench_picture.py: {options.results} has no {e}: is it from ./dev bench --json?", file=sys.stderr)
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
