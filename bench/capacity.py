#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Predicts what does not fit a machine: cost, pauses, memory and throughput with more timers and threads than it holds.

    pawl_bench_capacity --json counts.json
    pawl_bench -w '^(churn|idle_rearm|jump|two_threads)$' -v '^pawl$' -n 1e3 -n 1e4 ... --json costs.json
    capacity.py counts.json costs.json

`./dev bench capacity` does all three. The model, of three parts:

cost      ns(N) = work + misses * latency(N * bytes). `latency` was measured on the machine: random access to so much
          memory. `work` and `misses` are fitted to the sizes up to --fit, in relative errors. Larger sizes that were
          measured are predicted, and compared. A jump also has a cost that all its expiries share: + once / N.
threads   A closed queueing network, solved by mean value analysis (Reiser and Lavenberg, 1980): each thread works
          alone, and goes to the lock of a shard or of the context in between. The time inside is a share of the cost,
          plus the transfer of the lock's cache line from core to core. The share and the transfer are fitted to two
          threads at one size; the other sizes are predicted, and compared.
counts    How often a service does each step, counted on a manual clock: moves to a lower level, expiries at once.
"""

import argparse
import itertools
import json
import math
import pathlib
import sys

BATCH = 256  # pawl::options::batch_limit: the most timers for which a lock is held


class Latency:
    """ns for a random access to so many bytes: linear between the measured points in log-log scale, flat outside."""

    def __init__(self, points):
        self.points = sorted((p["bytes"], p["ns"]) for p in points)
        if not self.points or any(b <= 0 or ns <= 0 for b, ns in self.points):
            raise ValueError("latencies must be positive, and there must be one")

    def __call__(self, size):
        if size <= self.points[0][0]:
            return self.points[0][1]
        for (b0, ns0), (b1, ns1) in zip(self.points, self.points[1:]):
            if size <= b1:
                part = math.log(size / b0) / math.log(b1 / b0)
                return ns0 + part * (ns1 - ns0)
        return self.points[-1][1]


class Cost:
    """ns(N) of an operation: work + misses * latency + once / N, none of them negative."""

    def __init__(self, points, latency_of, once=False):
        """Fits the points (N, ns), in relative errors. once: whether a run has a cost that its operations share."""
        self.latency_of = latency_of
        terms = self.terms = [lambda n: 1.0, latency_of] + ([lambda n: 1.0 / n] if once else [])
        rows = [[term(n) / ns for term in terms] for n, ns in points]
        best = None
        # Non-negative least squares: of the unconstrained solutions of all subsets, the best allowed one.
        for size in range(1, len(terms) + 1):
            for chosen in itertools.combinations(range(len(terms)), size):
                found = least_squares([[row[i] for i in chosen] for row in rows])
                if found is None or min(found) < 0:
                    continue
                factors = [0.0] * len(terms)
                for i, factor in zip(chosen, found):
                    factors[i] = factor
                error = sum((sum(f * x for f, x in zip(factors, row)) - 1) ** 2 for row in rows)
                if best is None or error < best[0] - 1e-12:
                    best = error, factors
        self.factors = best[1]

    def __call__(self, n):
        return sum(factor * term(n) for factor, term in zip(self.factors, self.terms))

    def __str__(self):
        text = f"{brief(self.factors[0])} + {brief(self.factors[1])} misses"
        return text if len(self.factors) == 2 else f"{text}, + {of_time(self.factors[2])} once"


def least_squares(rows):
    """The factors with which each row's sum is closest to 1; None if they are not determined."""
    width = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(width)] + [sum(row[i] for row in rows)]
              for i in range(width)]
    scale = [matrix[i][i] for i in range(width)]
    for i in range(width):
        pivot = max(range(i, width), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) <= 1e-12 * scale[i]:
            return None
        for k in range(width):
            if k != i:
                part = matrix[k][i] / matrix[i][i]
                matrix[k] = [x - part * y for x, y in zip(matrix[k], matrix[i])]
    return [matrix[i][-1] / matrix[i][i] for i in range(width)]


def operations_per_second(threads, alone_ns, inside_ns, handover_ns, locks=1):
    """Mean value analysis: threads that share `locks` locks evenly, and do the rest of an operation alone."""
    think = alone_ns - inside_ns
    queue = 0.0
    rate = 0.0
    for n in range(1, threads + 1):
        # If another core had the lock last, its cache line comes from that core first.
        demand = (inside_ns + handover_ns * (n - 1) / n) / locks
        response = demand * (1 + queue)
        rate = n / (think + locks * response)
        queue = rate * response
    return rate * 1e9


def fit_lock(alone_ns, together_ns, handover_ns):
    """(inside, handover) with which two threads take together_ns for an operation that takes one alone_ns."""

    def two(inside, handover):
        return 1e9 / operations_per_second(2, alone_ns, inside, handover)

    # Find the share inside. If even all of the operation is not enough, the transfer takes longer than measured. If no
    # share is already too much, the line does not move for each operation.
    if two(alone_ns, handover_ns) < together_ns:
        return alone_ns, bisect(lambda h: two(alone_ns, h), together_ns, handover_ns, 1e6)
    if two(0, handover_ns) > together_ns:
        return 0, bisect(lambda h: two(0, h), together_ns, 0, handover_ns)
    return bisect(lambda i: two(i, handover_ns), together_ns, 0, alone_ns), handover_ns


def bisect(function, wanted, low, high):
    """The argument for which an increasing function is closest to `wanted`."""
    for _ in range(100):
        middle = (low + high) / 2
        if function(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


class Costs:
    """The figures that pawl_bench has measured of one variant."""

    def __init__(self, report, variant):
        self.values, self.notes = {}, {}
        for r in report["results"]:
            for v in r["variants"]:
                if v["variant"] == variant:
                    self.values.setdefault(r["workload"], {})[r["size"]] = v["value"]["median"]
                    for name, values in (v.get("notes") or {}).items():
                        self.notes.setdefault((r["workload"], name), {})[r["size"]] = sorted(values)[len(values) // 2]

    def of(self, workload):
        if workload not in self.values:
            raise ValueError(f"the costs have no workload '{workload}': see capacity.py --help for the command")
        return sorted(self.values[workload].items())


def brief(x):
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


def power(n):
    exponent = round(math.log10(n))
    return f"1e{exponent}" if n == 10**exponent else f"{n:g}"


def of_time(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{brief(ns / size)} {unit}"
    return f"{brief(ns)} ns"


def of_memory(size):
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{brief(size / scale)} {unit}"
    return f"{brief(size)} B"


def signed(error):
    return f"{error * 100:+.0f} %"


def table(head, rows, out):
    out.append("| " + " | ".join(head) + " |")
    out.append("|---" + "|---:" * (len(head) - 1) + "|")
    out.extend("| " + " | ".join(r) + " |" for r in rows)
    out.append("")


def report(counts, costs, fit_up_to, sizes, threads):
    out = []
    latency = Latency(counts["latency"])
    largest = max(counts["servers"], key=lambda s: s["connections"])
    per_timer = largest["bytes"]

    def latency_of(n):
        return latency(n * per_timer)

    out.append("## Costs\n")
    out.append(f"Fitted up to {power(fit_up_to)} timers of {brief(per_timer)} bytes; above that, measured and predicted.\n")
    fits, rows, errors = {}, [], []
    for workload in ("churn", "idle_rearm", "jump"):
        points = costs.of(workload)
        known = [p for p in points if p[0] <= fit_up_to]
        if len(known) < 2:
            raise ValueError(f"{workload}: two sizes up to {power(fit_up_to)} are needed")
        fit = fits[workload] = Cost(known, latency_of, once=workload == "jump")
        for n, ns in points:
            predicted = fit(n)
            error = predicted / ns - 1
            if n > fit_up_to:
                errors.append(error)
            rows.append([workload, power(n), brief(ns), brief(predicted), signed(error),
                         "fitted" if n <= fit_up_to else "**predicted**"])
        rows.append([workload, "", "", str(fit), "", ""])
    table(["workload", "timers", "measured, ns", "model, ns", "error", ""], rows, out)

    out.append("## Two threads on one context\n")
    alone = costs.notes.get(("two_threads", "ns with 1 thread"), {})
    together = dict(costs.of("two_threads"))
    base = sorted(together)[len(together) // 2 - (len(together) % 2 == 0)]
    inside, handover = fit_lock(alone[base], together[base], counts["handover_ns"])
    share = inside / alone[base]
    out.append(f"Fitted at {power(base)}: {share * 100:.0f} % of an operation is inside locks, whose line takes {of_time(handover)} "
               f"from core to core ({of_time(counts['handover_ns'])} measured for a bare line).\n")
    rows = []
    for n in sorted(together):
        predicted = 1e9 / operations_per_second(2, alone[n], share * alone[n], handover)
        error = predicted / together[n] - 1
        if n != base:
            errors.append(error)
        rows.append([power(n), brief(alone[n]), brief(together[n]), brief(predicted), signed(error),
                     "fitted" if n == base else "**predicted**"])
    table(["timers", "one thread, ns", "two, ns", "model, ns", "error", ""], rows, out)
    out.append(f"Largest error of what was predicted and measured: {max(abs(e) for e in errors) * 100:.0f} %.\n")

    out.append("## Predicted\n")
    rows = []
    for n in sizes:
        cost = {w: fit(n) for w, fit in fits.items()}
        rows.append([power(n), of_memory(n * per_timer), brief(cost["churn"]), brief(cost["idle_rearm"]), brief(cost["jump"]),
                     of_time(BATCH * cost["jump"]), of_time(n * cost["jump"])])
    table(["timers", "memory", "churn, ns", "re-arm, ns", "expiry, ns", f"a lock is held ({BATCH} expiries)",
           "all expire at once"], rows, out)

    head = ["timers", "threads", "one context, one shard", "one context, a shard each (bound)", "a context each (bound)"]
    rows = []
    for n in sizes:
        ns = fits["churn"](n)
        for t in threads:
            rate = [operations_per_second(t, ns, share * ns, handover),
                    operations_per_second(t, ns, share * ns, handover, locks=t), t * 1e9 / ns]
            rows.append([power(n), str(t)] + [f"{brief(r / 1e6)} M/s" for r in rate])
    table(head, rows, out)
    out.append("Throughput is of timeouts that are beaten. The bounds leave out what threads share besides: the scheduler of the "
               "context, memory bandwidth, and caches.\n")

    out.append("## Counted on a manual clock\n")
    rows = [[power(s["connections"]), brief(s["bytes"]), f"{s['moves']}", f"{s['expiries']}",
             brief(s["level_moves"] / (s["moves"] + s["expiries"])), f"{s['most_at_once']}"] for s in counts["servers"]]
    table(["connections", "bytes each", "moves in a minute", "expiries", "level moves per move or expiry",
           "most expiries in 0.1 s"], rows, out)
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", type=pathlib.Path, help="of pawl_bench_capacity --json")
    parser.add_argument("costs", type=pathlib.Path, help="of pawl_bench --json")
    parser.add_argument("--variant", default="pawl", help="of pawl_bench (default: pawl)")
    parser.add_argument("--fit", type=float, default=1e6, help="sizes up to this one are fitted (default: 1e6)")
    parser.add_argument("-n", "--timers", type=float, action="append", help="predict for so many (default: 1e6, 1e7, 1e8)")
    parser.add_argument("-t", "--threads", type=int, action="append", help="and so many threads (default: 1, 2, 16, 64)")
    arguments = parser.parse_args()
    if any(n < 1 for n in arguments.timers or []) or any(t < 1 for t in arguments.threads or []):
        parser.error("--timers and --threads must be at least 1")
    try:
        counts = json.loads(arguments.counts.read_text())
        costs = json.loads(arguments.costs.read_text())
        text = report(counts, Costs(costs, arguments.variant), arguments.fit, arguments.timers or [1e6, 1e7, 1e8],
                      arguments.threads or [1, 2, 16, 64])
    except (OSError, ValueError, KeyError) as error:
        print(f"capacity.py: {error!r}" if isinstance(error, KeyError) else f"capacity.py: {error}", file=sys.stderr)
        return 1
    about = costs["about"]
    print("# A model of capacity\n")
    for name in ("date", "cpu", "cpus", "load before the run", "compiler", "flags", "boost", "beside the workload", "options"):
        if name in about:
            print(f"- {name}: {about[name]}")
    print(f"\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
