"""SelfTuning beside COLDQ for many tenants at once, and what a tenant's state takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import coldq
from benchmarks.clock import timed

DIM, ROWS, MEASUREMENTS, WARM_UP = 10, 2, 4, 20


@dataclass(frozen=True)
class Tenants:
    """Medians in milliseconds of one update of all, the median ratio of neighbours, and memory."""

    count: int
    coldq: float
    self_tuning: float
    times_coldq: float
    numbers: int
    expert: float


def measure(count: int, rounds: int) -> Tenants:
    """Update all tenants by COLDQ and by SelfTuning in turns, on the same feedback.

    Beside it, one update of a single tenant in updates of COLDQExpert.
    """
    domain = coldq.Box(0.0, 5.0, dim=DIM)
    learners = (coldq.COLDQ(domain, 5000), coldq.SelfTuning(domain, 0.01))
    seconds, states = _in_turns(learners, (count,), rounds)
    inside = {n: a for n, a in states[1].to_arrays().items() if a.dtype == np.float64}
    numbers = sum(a.size for a in inside.values()) // count + 1  # and the slot's number
    alone = (coldq.COLDQExpert(domain, 5000), coldq.SelfTuning(domain, 0.01))
    single, _ = _in_turns(alone, (), 20 * rounds)
    medians = 1e3 * np.median(seconds, axis=0)
    return Tenants(
        count, float(medians[0]), float(medians[1]), float(np.median(seconds[:, 1] / seconds[:, 0])),
        numbers, float(np.median(single[:, 1] / single[:, 0])),
    )  # fmt: skip


def _in_turns(
    learners: tuple[Any, ...], batch: tuple[int, ...], rounds: int
) -> tuple[np.ndarray, list[Any]]:
    """Slots as those of TimeVarying, drawn for all tenants at once."""
    rng = np.random.default_rng(0)
    states = [learner.init(ROWS, batch=batch) for learner in learners]
    seconds = np.empty((rounds, len(learners)))
    for turn in range(-WARM_UP, rounds):
        H = rng.uniform(-1.0, 1.0, (*batch, MEASUREMENTS, DIM))
        y = H.sum(axis=-1) + rng.standard_normal((*batch, MEASUREMENTS))
        rows = rng.random((*batch, ROWS, DIM)), rng.random((*batch, ROWS))
        revealed = coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(*rows))
        for k, learner in enumerate(learners):
            seconds[max(turn, 0), k], states[k] = timed(learner.update, states[k], revealed)
    return seconds, states
