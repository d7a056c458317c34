"""Many steps of each kind, in whose second half memory must not grow: ``python -m tests.memory``.

Learners first, ten million updates each; then one step after another of every pair of rows and
domain, for some seconds each. Feedback is drawn once and comes again, so that what grows is ours.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np

import coldq
from tests.pairs import PAIRS, draw

DRAWN = 64  # problems that come again and again
MAX_GROWTH = 2_000_000  # bytes, of pools that NumPy and the system keep


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def updates(learner: coldq.learners.Learner) -> Callable[[], None]:
    """One update after another of a learner with two rows in three coordinates."""
    rng = np.random.default_rng(0)
    rows = -np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    limits = -rng.uniform(0.5, 0.7, (DRAWN, 2))  # x_1 + x_2 / 2 >= 0.6 or so
    prices = rng.uniform(0.5, 1.5, (DRAWN, 3))
    each = cycle(
        coldq.Feedback(coldq.Linear(c), coldq.Affine(rows, b))
        for c, b in zip(prices, limits, strict=True)
    )
    state = learner.init(2)

    def update() -> None:
        nonlocal state
        state = learner.update(state, next(each))

    return update


def steps(rows: str, domain: str) -> Callable[[], None]:
    """One step after another of a pair; some have no answer, which is told every time."""
    each = cycle([draw(rows, domain, k) for k in range(DRAWN)])

    def step() -> None:
        problem = next(each)
        with contextlib.suppress(coldq.StepFailed):
            coldq.penalised_step(
                problem.center, problem.gradient, problem.alpha, problem.multiplier_upper,
                problem.rows.constraint, problem.domain, multiplier_lower=problem.multiplier_lower,
            )  # fmt: skip

    return step


def growth(call: Callable[[], None], count: int, seconds: float) -> tuple[int, int]:
    """How many calls there were, and the bytes that the second half of them has added."""
    begun, done, half = time.monotonic(), 0, 0
    while done < count and time.monotonic() - begun < seconds:
        for _ in range(1000):
            call()
        done += 1000
        if not half and (2 * done >= count or time.monotonic() - begun > seconds / 2):
            half = resident()
    return done, resident() - half


def kinds(
    updates_each: int, seconds: float
) -> Iterator[tuple[str, Callable[[], None], int, float]]:
    """Every kind, with how often it is called, or for how many seconds."""
    box = coldq.Box(0.0, 1.0, dim=3)
    learners = {
        "COLDQ": coldq.COLDQ(box, horizon=10**8),
        "COLDQ on a simplex": coldq.COLDQ(coldq.Simplex(3, 2.0), horizon=10**8),
        "COLDQExpert": coldq.COLDQExpert(box, horizon=10**8),
        "SelfTuning": coldq.SelfTuning(box, violation_rate=0.05),
        "SelfTuning on a simplex": coldq.SelfTuning(coldq.Simplex(3, 2.0), violation_rate=0.05),
    }
    for name, learner in learners.items():
        yield name, updates(learner), updates_each, np.inf
    for rows, domain in PAIRS:
        yield f"{rows} on {domain}", steps(rows, domain), sys.maxsize, seconds


def main() -> int:
    """Print a line for each kind; the status is 1 if one of them grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=10_000_000, help="of each learner")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each pair")
    given = parser.parse_args()
    failed = 0
    for name, call, count, seconds in kinds(given.updates, given.seconds):
        done, bytes_ = growth(call, count, seconds)
        failed += bytes_ > MAX_GROWTH
        print(f"{name}: {done:,} calls, {bytes_ / 1e6:+.1f} MB in the second half", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore", coldq.Inexact)
    sys.exit(main())
