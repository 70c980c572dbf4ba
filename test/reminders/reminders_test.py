#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Tests of examples/cookbook/reminders.cpp against a redis-server: workers that are killed, stopped and ended, and a Redis
that is killed.

usage: reminders_test.py PROGRAM [TEST...]

The workers append to one file:
    begin ID NUMBER PID    a delivery starts, by the claim of this number
    end ID NUMBER          the delivery has ended
    done ID NUMBER         Redis has forgotten the reminder
    stale ID NUMBER        Redis has not, because there is a later claim

The promises for that file, whatever happens: each reminder ends at least once, no two deliveries by processes that are
neither killed nor stopped overlap, and no later claim has a lower number. No test asserts how long a step takes; each
waits until it has happened.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
PATIENCE = 60  # seconds until a test gives up, even on a very busy machine


class RemindersTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/tmp")  # the path of a socket has at most 107 bytes
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = self.folder / "redis"
        self.log = self.folder / "log"
        self.log.touch()
        self.workers: list[subprocess.Popen] = []
        self.addCleanup(self.end_workers)
        self.start_redis()
        self.addCleanup(self.end_redis)

    def start_redis(self) -> None:
        options = {
            "port": "0", "unixsocket": self.socket, "dir": self.folder, "daemonize": "no", "save": "",
            "appendonly": "yes", "appendfsync": "always",
        }  # fmt: skip
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        output = open(self.folder / "redis.log", "a", encoding="utf-8")
        self.addCleanup(output.close)
        self.redis = subprocess.Popen(["redis-server", *arguments], stdout=output, stderr=output)
        self.until(lambda: self.run_program("left").returncode == 0, "Redis answers")

    def end_redis(self, with_signal: int = signal.SIGTERM) -> None:
        self.redis.send_signal(with_signal)
        self.redis.wait(PATIENCE)

    def run_program(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [PROGRAM, str(self.socket), *arguments], capture_output=True, check=False, encoding="utf-8"
        )

    def add(self, name: str, delay: int = 0, takes: int = 0) -> None:
        """A reminder after this many milliseconds, whose delivery takes that many."""
        run = self.run_program("add", name, str(delay), str(takes))
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "1\n", ""))

    def start_worker(self, lease: int) -> subprocess.Popen:
        with open(self.log, "a", encoding="utf-8") as log, open(
            self.folder / "stderr", "a", encoding="utf-8"
        ) as errors:
            worker = subprocess.Popen([PROGRAM, str(self.socket), "work", str(lease)], stdout=log, stderr=errors)
        self.workers.append(worker)
        return worker

    def end_workers(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def lines(self, what: str = "", name: str = "") -> list[list[str]]:
        lines = [line.split() for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line[0].startswith(what) and line[1].startswith(name)]

    def until(self, condition, what: str) -> None:
        give_up = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > give_up:
                self.fail(f"never: {what}; {self.log.read_text()} {self.errors()}")
            time.sleep(0.01)

    def errors(self) -> str:
        path = self.folder / "stderr"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def left(self) -> int:
        return int(self.run_program("left").stdout)

    def begun_by(self, worker: subprocess.Popen) -> "list[str] | None":
        """The delivery that this worker has started and not ended, according to the file."""
        begun = [line for line in self.lines("begin") if line[3] == str(worker.pid)]
        if begun and not any(line[1:] == begun[-1][1:3] for line in self.lines("end")):
            return begun[-1]
        return None

    def check_file(self, names: list[str], out_of_order: "set[str]" = frozenset()) -> None:
        """`out_of_order`: the numbers of claims whose process was killed or stopped in the middle."""
        under_way: dict[str, str] = {}
        last: dict[str, int] = {}
        for what, name, number, *_ in self.lines():
            if what == "begin":
                self.assertNotIn(name, under_way, "two live processes deliver it at once")
                self.assertGreater(int(number), last.get(name, 0))
                last[name] = int(number)
                if number not in out_of_order:
                    under_way[name] = number
            elif what == "end" and under_way.get(name) == number:
                del under_way[name]
        for name in names:
            self.assertTrue(self.lines("end", name), f"{name} is lost")
            self.assertEqual(len([line for line in self.lines("done") if line[1] == name]), 1)

    def end_by_signal(self, worker: subprocess.Popen) -> None:
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(PATIENCE), 0, self.errors())
        self.workers.remove(worker)

    # ---- invariants

    def test_every_reminder_is_delivered_by_one_of_several_processes(self) -> None:
        names = [f"r{i:02}" for i in range(40)]
        for i, name in enumerate(names):
            self.add(name, delay=i * 10, takes=i % 3 * 5)
        for _ in range(4):
            self.start_worker(lease=20_000)

        self.until(lambda: len(self.lines("done")) == len(names), "all are delivered")

        self.check_file(names)
        self.assertEqual(len(self.lines("begin")), len(names), "a reminder is delivered once if nothing happens")
        self.assertEqual(self.left(), 0)
        for worker in list(self.workers):
            self.end_by_signal(worker)

    def test_what_a_killed_process_had_claimed_is_delivered_by_another(self) -> None:
        names = []
        for i in range(20):  # until a kill interrupts a delivery, which the first one nearly always does
            victim = self.start_worker(lease=3_000)
            names.append(f"kill{i}")
            self.add(names[-1], takes=500)
            self.until(lambda: self.begun_by(victim), "the victim has begun")
            victim.kill()
            victim.wait()
            self.workers.remove(victim)
            if cut := self.begun_by(victim):
                break
        self.assertTrue(cut, "no kill came in the middle of a delivery")
        for i in range(10):
            names.append(f"other{i}")
            self.add(names[-1], takes=10)
        for _ in range(3):
            self.start_worker(lease=3_000)

        self.until(lambda: self.left() == 0 and len(self.lines("done")) >= len(names), "all are delivered")

        self.check_file(names, out_of_order={cut[2]})
        self.assertEqual(len([line for line in self.lines("begin") if line[1] == cut[1]]), 2)

    def test_a_process_that_was_stopped_is_told_that_its_claim_is_stale(self) -> None:
        sleeper = self.start_worker(lease=1_000)
        self.add("slow", takes=300)
        self.until(lambda: self.begun_by(sleeper), "the sleeper has begun")
        sleeper.send_signal(signal.SIGSTOP)
        first = self.lines("begin", "slow")[0]
        self.start_worker(lease=20_000)  # its delivery is never cut, however slow the machine

        self.until(lambda: self.left() == 0, "the other one delivers it")
        sleeper.send_signal(signal.SIGCONT)

        self.add("after", takes=0)
        self.until(lambda: self.lines("done", "after"), "both go on")
        self.until(lambda: len(self.lines("begin", "slow")) == 1 or self.settled(sleeper), "the sleeper has found out")
        self.check_file(["slow", "after"], out_of_order={first[2]})
        # Allowed: it continues, and learns that its claim is stale; or its own limit has passed, and it ends nothing;
        # or it had done everything before it was stopped.
        told = {line[0] for line in self.lines() if line[1:3] == first[1:3]}
        self.assertIn(told, [{"begin", "end", "stale"}, {"begin"}, {"begin", "end", "done"}])

    def settled(self, sleeper: subprocess.Popen) -> bool:
        """A worker asks for the next reminder only after it has finished the last one."""
        name = f"probe{len(self.lines('begin', 'probe'))}"
        self.add(name)
        self.until(lambda: self.lines("done", name), "a probe is delivered")
        return self.lines("begin", name)[0][3] == str(sleeper.pid)

    def test_a_reminder_that_is_added_is_the_next_deadline_at_once(self) -> None:
        self.add("far", delay=3_600_000)
        worker = self.start_worker(lease=5_000)
        self.add("warm")
        self.until(lambda: self.lines("done", "warm"), "the worker is there")

        self.add("near", delay=50)

        self.until(lambda: self.lines("done", "near"), "it is delivered")
        self.assertEqual(self.left(), 1)
        self.end_by_signal(worker)

    def test_no_reminder_is_early(self) -> None:
        self.start_worker(lease=5_000)
        added = time.time()

        self.add("late", delay=300)

        self.until(lambda: self.lines("begin", "late"), "it is delivered")
        self.assertGreaterEqual(time.time() - added, 0.299)  # Redis counts in whole milliseconds

    def test_a_delivery_that_takes_too_long_is_cut_and_tried_again(self) -> None:
        self.add("endless", takes=3_600_000)
        self.start_worker(lease=200)
        self.start_worker(lease=200)

        self.until(lambda: len(self.lines("begin", "endless")) >= 3, "it is tried again")

        self.assertEqual(self.lines("end", "endless"), [])
        self.assertEqual(self.left(), 1)

    def test_reminders_outlive_all_processes_and_redis(self) -> None:
        workers = [self.start_worker(lease=1_000) for _ in range(2)]
        names = [f"r{i}" for i in range(10)]
        for name in names:
            self.add(name, delay=200, takes=10)
        self.end_redis(signal.SIGKILL)
        workers[0].kill()
        self.socket.unlink(missing_ok=True)
        self.until(lambda: "again in 100 ms" in self.errors(), "a worker notices")

        self.start_redis()

        self.until(lambda: self.left() == 0, "all are delivered")
        # If Redis lost a claim, or did not get an end, the reminder is delivered again: at least once.
        for name in names:
            self.assertTrue(self.lines("end", name), f"{name} is lost")
        self.end_by_signal(workers[1])

    def test_a_name_that_is_there_is_not_added_again(self) -> None:
        self.add("once", delay=3_600_000)

        run = self.run_program("add", "once", "0", "0")

        self.assertEqual((run.returncode, run.stdout), (0, "0\n"))
        self.assertEqual(self.left(), 1)

    def test_bad_input_is_refused(self) -> None:
        for arguments in (
            [],
            ["work"],
            ["work", "99"],
            ["work", "1s"],
            ["add", "a", "-1", "0"],
            ["add", "a", "1", "x"],
        ):
            run = self.run_program(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""), arguments)
            self.assertIn("usage: reminders", run.stderr)
        run = subprocess.run([PROGRAM, "/nowhere", "left"], capture_output=True, check=False, encoding="utf-8")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("reminders: "), run.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: reminders_test.py PROGRAM [TEST...]")
    if not shutil.which("redis-server"):
        sys.exit("reminders_test.py: redis-server is not installed")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
