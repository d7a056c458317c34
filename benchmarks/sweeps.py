"""Sweeps, measured: what two workers gain, and very many seeds in bounded memory.

``python -m benchmarks.sweeps`` runs 9,600 runs with one worker and with two, and prints wall time
beside half of the work. ``--seeds 100000`` runs as many seeds of the time-varying problem at
T = 1000, and prints the time a run beside that of one batch of 1,000 seeds, and the largest memory
of any process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = """
seeds = 1200
seeds_a_task = 50
regret = false
problems = [{problem = "time-varying", horizon = 1000}]
learners = [
  {learner = "COLDQ", epsilon = [0.1, 0.5, 2.5, 5.0]},
  {learner = "RECOO", alpha = {power = 0.5, scale = [0.5, 1.0, 2.0, 4.0]}},
]
"""
MANY = """
seeds = {seeds}
regret = false
problems = [{{problem = "time-varying", horizon = 1000}}]
learners = ["COLDQ"]
"""
BATCH = """
import time, coldq
problem = coldq.problems.TimeVarying(horizon=1000)
learner = coldq.COLDQ.for_problem(problem)
coldq.simulate(learner, problem, [0], progress=False)
begun = time.perf_counter()
coldq.simulate(learner, problem, range(1000), progress=False)
print(time.perf_counter() - begun)
"""


def swept(config: str, folder: Path, workers: int) -> tuple[float, float]:
    """Wall seconds of the command, and the seconds that its tasks took together."""
    path, out = folder / f"{workers}.toml", folder / f"{workers}"
    path.write_text(config)
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "coldq", "sweep", path, "--out", out, "--workers", str(workers)],
        check=True,
    )
    wall = time.perf_counter() - begun
    lines = (out / "log.jsonl").read_text().splitlines()
    return wall, sum(json.loads(line)["seconds"] for line in lines)


def two_workers() -> None:
    """One worker and two, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        one, work = swept(CONFIG, Path(folder), 1)
        two, shared = swept(CONFIG, Path(folder), 2)
    print(
        f"9,600 runs: {work:.1f} s of work in one worker ({one:.1f} s wall); two workers {two:.1f} "
        f"s wall with {shared:.1f} s of work: {two / (work / 2):.2f} times half of that, "
        f"{two / (shared / 2):.2f} times half of their own, which busy cores stretch too (1.25)"
    )


def many_seeds(seeds: int) -> None:
    """Very many seeds, two workers."""
    alone = {**os.environ, "COLDQ_THREADS": "1"}
    batch = [
        float(subprocess.check_output([sys.executable, "-c", BATCH], env=alone)) for _ in range(2)
    ]
    with tempfile.TemporaryDirectory() as folder:
        wall, work = swept(MANY.format(seeds=seeds), Path(folder), 2)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    each, whole = work / seeds, min(batch) / 1000
    print(
        f"{seeds:,} seeds, T = 1,000: {wall:.0f} s wall on two workers, {1e3 * each:.2f} ms of "
        f"work a run, {each / whole:.2f} times that of one batch of 1,000 ({1e3 * whole:.2f} ms; "
        f"5); the largest process had {peak:.0f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help="run so many seeds instead")
    arguments = parser.parse_args()
    if arguments.seeds is None:
        two_workers()
    else:
        many_seeds(arguments.seeds)
