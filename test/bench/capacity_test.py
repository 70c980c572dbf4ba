#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""bench/capacity.py: from made-up measurements its parts find the parameters again, and it refuses bad input."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench" / "capacity.py"
spec = importlib.util.spec_from_file_location("capacity", PROGRAM)
capacity = importlib.util.module_from_spec(spec)
spec.loader.exec_module(capacity)

SIZES = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
LATENCIES = [{"bytes": 1 << k, "ns": 1.5 ** (k - 13)} for k in range(14, 33, 2)]


def made_up(cost, alone, together):
    """A report of pawl_bench."""

    def result(workload, size, ns, notes=None):
        variant = {"variant": "pawl", "value": {"median": ns}}
        if notes:
            variant["notes"] = notes
        return {"workload": workload, "size": size, "variants": [variant]}

    results = [result(w, n, cost(n)) for w in ("churn", "idle_rearm", "jump") for n in SIZES]
    results += [result("two_threads", n, together(n), {"ns with 1 thread": [alone(n)]}) for n in SIZES]
    return {"about": {"date": "2026-01-01"}, "results": results}


class Fits(unittest.TestCase):
    def test_a_cost_that_was_made_of_work_and_misses_is_found_again(self):
        latency = capacity.Latency(LATENCIES)
        cost = capacity.Cost([(n, 40 + 2.5 * latency(200 * n)) for n in SIZES], lambda n: latency(200 * n))
        self.assertAlmostEqual(cost.factors[0], 40, places=6)
        self.assertAlmostEqual(cost.factors[1], 2.5, places=6)

    def test_a_cost_that_all_operations_of_a_run_share_is_found_again(self):
        latency = capacity.Latency(LATENCIES)
        points = [(n, 40 + 2.5 * latency(200 * n) + 150_000 / n) for n in SIZES]
        cost = capacity.Cost(points, lambda n: latency(200 * n), once=True)
        for found, made_of in zip(cost.factors, (40, 2.5, 150_000)):
            self.assertAlmostEqual(found / made_of, 1, places=6)
        for n, ns in points:
            self.assertAlmostEqual(cost(n), ns, places=6)

    def test_no_part_of_a_cost_is_negative(self):
        latency = capacity.Latency(LATENCIES)
        for points in ([(n, 1e9 / n) for n in SIZES], [(n, latency(200 * n) ** 2) for n in SIZES]):
            for once in (False, True):
                cost = capacity.Cost(points, lambda n: latency(200 * n), once)
                self.assertGreaterEqual(min(cost.factors), 0)
                self.assertGreater(sum(cost.factors), 0)

    def test_latency_is_that_of_the_points_between_its_neighbours_and_flat_outside(self):
        latency = capacity.Latency([{"bytes": 1 << 20, "ns": 4.0}, {"bytes": 1 << 22, "ns": 8.0}])
        self.assertEqual([latency(x) for x in (1, 1 << 20, 1 << 22, 1 << 40)], [4, 4, 8, 8])
        self.assertAlmostEqual(latency(1 << 21), 6)

    def test_what_two_threads_were_made_of_is_found_again(self):
        for inside, handover in ((30, 20), (60, 50), (5, 40)):
            together = 1e9 / capacity.operations_per_second(2, 100, inside, handover)
            found, given = capacity.fit_lock(100, together, handover)
            self.assertAlmostEqual(found, inside, places=3)
            self.assertEqual(given, handover)

    def test_two_threads_that_are_slower_or_faster_than_the_handover_allows_are_met(self):
        for together in (51, 500):
            inside, handover = capacity.fit_lock(100, together, 70)
            self.assertAlmostEqual(1e9 / capacity.operations_per_second(2, 100, inside, handover), together, places=3)


class Threads(unittest.TestCase):
    def test_one_thread_takes_what_it_takes_alone(self):
        self.assertAlmostEqual(capacity.operations_per_second(1, 100, 40, 1000), 1e7)

    def test_threads_that_share_nothing_scale(self):
        self.assertAlmostEqual(capacity.operations_per_second(64, 100, 0, 0), 64e7)

    def test_many_threads_are_bounded_by_the_lock(self):
        rate = capacity.operations_per_second(1000, 100, 40, 60)
        self.assertAlmostEqual(rate / (1e9 / 100), 1, places=2)

    def test_more_locks_let_more_through(self):
        rates = [capacity.operations_per_second(16, 100, 40, 60, locks) for locks in (1, 2, 4, 16)]
        self.assertEqual(rates, sorted(rates))
        self.assertGreater(rates[-1], 5 * rates[0])


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.counts = {
            "handover_ns": 20,
            "latency": LATENCIES,
            "servers": [{"connections": 1000, "bytes": 200, "moves": 10, "expiries": 2, "level_moves": 6, "most_at_once": 1}],
        }
        latency = capacity.Latency(LATENCIES)
        self.costs = made_up(lambda n: 40 + 2 * latency(200 * n), lambda n: 100,
                             lambda n: 1e9 / capacity.operations_per_second(2, 100, 30, 20))

    def run_it(self, *arguments):
        (self.folder / "counts").write_text(json.dumps(self.counts))
        (self.folder / "costs").write_text(json.dumps(self.costs))
        return subprocess.run([sys.executable, PROGRAM, self.folder / "counts", self.folder / "costs", *arguments],
                              capture_output=True, text=True, check=False)

    def test_what_the_model_is_made_of_is_predicted_without_error(self):
        done = self.run_it("--fit", "1e5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Largest error of what was predicted and measured: 0 %.", done.stdout)
        self.assertIn("| 1e8 | 20.0 GB |", done.stdout)
        self.assertIn("| 1e8 | 64 |", done.stdout)

    def test_a_measurement_that_the_model_does_not_explain_is_an_error(self):
        for r in self.costs["results"]:
            if r["size"] == 10_000_000 and r["workload"] == "churn":
                r["variants"][0]["value"]["median"] *= 2
        self.assertIn("Largest error of what was predicted and measured: 50 %.", self.run_it().stdout)

    def refused(self, message, *arguments):
        done = self.run_it(*arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn(message, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_bad_input_is_refused(self):
        self.refused("at least 1", "-n", "0")
        self.refused("two sizes up to 1e3 are needed", "--fit", "1e3")
        self.refused("no workload 'churn'", "--variant", "none")
        del self.counts["handover_ns"]
        self.refused("handover_ns")
        self.counts["latency"] = []
        self.refused("latencies must be positive")


if __name__ == "__main__":
    unittest.main()
