# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""usage: metrics.py PROMETHEUS JSON: the output of metrics.cpp, read by Prometheus' own parser and by Python's."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

COUNTERS = ["cancelled", "expired", "feed_events", "level_moves", "moved", "overflowed", "refused",
            "started", "wake_ups"]
GAUGES = ["armed", "feed_readers", "filed", "level_filed", "longest_handler_seconds", "longest_turn_seconds",
          "pending"]
HISTOGRAMS = ["handler_seconds", "lateness_seconds"]
failures = 0


def same(what, expected, found):
    global failures
    if expected != found:
        failures += 1
        print(f"metrics.py: {what}: expected {expected!r}, found {found!r}", file=sys.stderr)


def families_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    same(f"the end of {path}", True, text.endswith("\n"))
    families = list(text_string_to_metric_families(text))
    same("families that come twice", len(families), len({f.name for f in families}))
    for kind, names in (("counter", COUNTERS), ("gauge", GAUGES), ("histogram", HISTOGRAMS)):
        same(f"families that are a {kind}", [f"pawl_timer_{n}" for n in names],
             sorted(f.name for f in families if f.type == kind))
    same("families without a type or help", [], [
        f.name for f in families if f.type not in ("counter", "gauge", "histogram") or not f.documentation])
    for f in families:
        samples = [(s.name, tuple(sorted(s.labels.items()))) for s in f.samples]
        same(f"samples of {f.name} that come twice", len(samples), len(set(samples)))
        if f.type == "counter":
            same(f"samples of {f.name} not called _total", [], [s.name for s in f.samples if s.name != f.name + "_total"])
        if f.type == "histogram":
            buckets = [(float(s.labels["le"]), s.value) for s in f.samples if s.name.endswith("_bucket")]
            ends, counts = zip(*buckets)
            same(f"{f.name}: ends in order, the last one infinite", (sorted(set(ends)), float("inf")),
                 (list(ends), ends[-1]))
            same(f"{f.name}: counts never fall", sorted(counts), list(counts))
            rest = {s.name.removeprefix(f.name): s.value for s in f.samples if not s.name.endswith("_bucket")}
            same(f"{f.name}: what is beside buckets", ["_count", "_sum"], sorted(rest))
            same(f"{f.name}: the count is that of all buckets", counts[-1], rest["_count"])
            same(f"{f.name}: a sum that is no less than 0", True, rest["_sum"] >= 0)
    return {f.name: f for f in families}


def value(families, name, /, **labels):
    return sum(s.value for f in families.values() for s in f.samples
               if s.name == name and labels.items() <= s.labels.items())


prometheus, as_json = sys.argv[1:]
families = families_of(prometheus)
with open(as_json, encoding="utf-8") as file:
    text = file.read()
same("lines of JSON", 0, text.count("\n"))
told = json.loads(text)

services = sorted((s["clock"], s["backend"]) for s in told["services"])
same("services", [("manual_clock", "hierarchical_wheel"), ("steady_clock", "binary_wheel"),
                  ("steady_clock", "hierarchical_wheel")], services)
manual = [s for s in told["services"] if s["clock"] == "manual_clock"][0]
for name, expected in (("started", 10), ("expired", 3), ("moved", 2), ("cancelled", 1), ("pending", 6), ("armed", 6),
                       ("overflowed", 0), ("refused", 0)):
    suffix = "_total" if name in COUNTERS else ""
    same(f"{name} in JSON", expected, manual[name])
    same(f"{name} for Prometheus", expected, value(families, f"pawl_timer_{name}{suffix}", clock="manual_clock"))
for service in told["services"]:
    labels = {"clock": service["clock"], "backend": service["backend"]}
    for name in ("started", "expired", "cancelled", "moved", "overflowed", "refused", "wake_ups", "level_moves"):
        same(f"{name} of {labels}", service[name], value(families, f"pawl_timer_{name}_total", **labels))
    for name in ("pending", "armed", "filed"):
        same(f"{name} of {labels}", service[name], value(families, f"pawl_timer_{name}", **labels))
    same(f"levels of {labels}", service["levels"], [
        int(s.value) for s in families["pawl_timer_level_filed"].samples if labels.items() <= s.labels.items()])
    same(f"each wait of {labels} is pending or over", service["started"],
         service["pending"] + service["expired"] + service["cancelled"])
same("readers", (1, 1), (told["readers"], value(families, "pawl_timer_feed_readers")))
same("events", told["events"], value(families, "pawl_timer_feed_events_total"))
same("measured", True, told["measured"])
longest = told["longest_handler"]
same("a name that a peer has chosen", 'q"\\ }?,\u00e9', longest["name"])
same("the longest handler", longest["time"] / 1e9,
     value(families, "pawl_timer_longest_handler_seconds", name=longest["name"]))
turn = told["longest_turn"]
same("the longest turn", turn["time"] / 1e9, value(families, "pawl_timer_longest_turn_seconds"))
same("the longest turn is of the longest handler", True, turn["time"] >= longest["time"] and turn["handlers"] == 1)
# The handler that was cancelled is timed, too, but is not late.
for name, histogram, handlers in (("lateness", "pawl_timer_lateness_seconds", 3),
                                  ("handler_time", "pawl_timer_handler_seconds", 4)):
    ends = [end for end, _ in told[name]["buckets"]]
    same(f"ends of {name} in order", sorted(ends), ends)
    same(f"{name}: handlers", (handlers, handlers), (told[name]["count"], sum(n for _, n in told[name]["buckets"])))
    same(f"{name}: handlers for Prometheus", handlers, value(families, f"{histogram}_count"))
    same(f"{name}: sums", True, abs(told[name]["sum"] / 1e9 - value(families, f"{histogram}_sum")) < 1e-9)
    for end, _ in told[name]["buckets"]:  # each is below the next end that Prometheus gets
        below = sum(n for e, n in told[name]["buckets"] if e <= end)
        above = [s.value for s in families[histogram].samples
                 if s.name.endswith("_bucket") and float(s.labels["le"]) >= end / 1e9 * (1 - 1e-12)]
        same(f"{name}: handlers up to {end} ns", True, above[0] >= below)
same("lateness of three that were jumped over by 25, 15 and 5 s", True, abs(told["lateness"]["sum"] / 1e9 - 45) < 1)

nothing = families_of(prometheus + ".empty")
same("samples of what has no timers", 0, value(nothing, "pawl_timer_pending"))
with open(as_json + ".empty", encoding="utf-8") as file:
    same("JSON of what has no timers", [], json.load(file)["services"])

if failures:
    sys.exit(1)
print(f"{len(families)} families are as expected")
