"""Kill a sweep at random moments, again and again: every result once, none lost, no process left.

``python -m tests.evaluation.sweeps.kills --kills 20``. ``coldq sweep`` is started with two workers,
killed outright (SIGKILL), and started again on the same folder. Every task writes down that it
begins, so that work done twice is counted. At the end the results are those of a sweep that nobody
disturbed, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

import coldq
from tests.evaluation.sweeps.counted import STARTS
from tests.evaluation.sweeps.kept import results

WORKERS = 2
TASKS = 500
EARLY, EARLIEST = 0.25, 4.0  # the share that is killed while it begins, and within which seconds
LONGEST = 2.0  # seconds that the others are at work before they are killed
PATIENCE = 30.0  # seconds for processes to notice that their parent is gone
MARK = "COLDQ_TEST_MARK"  # in the environment of every process of a sweep
CONFIG = f"""
seeds = {TASKS}
seeds_a_task = 1
regret = false
problems = ["tests.evaluation.sweeps.counted:problem"]
learners = ["COLDQ"]
"""


def alive(mark: str) -> list[int]:
    """The processes that have the mark."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def wait_for_end(mark: str) -> float:
    """Seconds until no process with the mark is left."""
    begun = time.monotonic()
    while left := alive(mark):
        assert time.monotonic() - begun < PATIENCE, f"these processes were left behind: {left}"
        time.sleep(0.01)
    return time.monotonic() - begun


def count(out: Path) -> int:
    """How many results are there."""
    return sum(1 for _ in (out / "runs").glob("*/*"))


def kill_again_and_again(kills: int, seed: int = 0) -> str:
    """Do it; a sentence about what was seen."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        config, out, starts = (Path(folder) / name for name in ("sweep.toml", "out", "starts"))
        config.write_text(CONFIG)
        mark = f"{os.getpid()}-{seed}"
        environment = {**os.environ, STARTS: str(starts), MARK: mark}
        command = [
            sys.executable, "-m", "coldq", "sweep", str(config), "--out", str(out),
            "--workers", str(WORKERS),
        ]  # fmt: skip
        slowest, at_work = 0.0, 0
        for _ in range(kills):
            before = count(out)
            running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
            if draw.random() < EARLY:
                time.sleep(draw.uniform(0.0, EARLIEST))
            else:
                while count(out) == before and running.poll() is None:
                    time.sleep(0.005)
                time.sleep(draw.uniform(0.0, LONGEST))
            running.kill()
            running.wait()
            slowest = max(slowest, wait_for_end(mark))
            at_work += before < count(out) < TASKS
            for path in (out / "runs").glob("*/*"):
                assert pq.read_table(path).num_rows == 1, f"{path} is not whole"
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        wait_for_end(mark)
        coldq.sweep(config, out=Path(folder) / "undisturbed")
        assert results(out) == results(Path(folder) / "undisturbed"), "other results"
        assert len(results(out)) == TASKS
        assert not list((out / "arriving").glob("*"))
        begun = Counter(starts.read_text().split())
        assert len(begun) == TASKS, "a task was never begun"
        again = sum(begun.values()) - TASKS
        assert again <= kills * 2 * WORKERS, f"{again} tasks were done again"
        return (
            f"{kills} kills, {at_work} of them at work, {TASKS} tasks: every result once, the "
            f"bytes of an undisturbed sweep; {again} tasks begun again, at most {2 * WORKERS} a "
            f"kill are underway; the last process was gone {slowest:.2f} s after the kill"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(kill_again_and_again(arguments.kills, arguments.seed))
