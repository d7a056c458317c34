"""Many tenants at once: a slot of a million by COLDQ, SelfTuning beside it, what a state takes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np

import coldq
from benchmarks.batch import on_threads
from coldq.base.system import thread_count

DIM, ROWS, MEASUREMENTS, WARM_UP = 10, 2, 4, 20


@dataclass(frozen=True)
class Tenants:
    """The least CPU milliseconds of one update of all, a state's numbers, and one update alone.

    CPU time is that of all threads: a long call is interrupted more often than a short one, so that
    on a machine with other work the clock would favour whoever is done sooner.

    `times_expert` is one update of a single tenant in updates of COLDQExpert.
    """

    count: int
    coldq: float
    self_tuning: float
    numbers: int
    times_expert: float

    @property
    def times_coldq(self) -> float:
        """All tenants at once, in updates of COLDQ."""
        return self.self_tuning / self.coldq


@dataclass(frozen=True)
class Million:
    """The least of some updates of so many tenants of COLDQ, in microseconds each: by the clock on
    all cores, and the CPU time of all threads. `numbers` is what a tenant's state holds."""

    count: int
    cores: int
    clock: float
    at_work: float
    numbers: int


def measure_million(count: int, rounds: int) -> Million:
    """Update all tenants of COLDQ, the feedback being there, on slots as those of TimeVarying."""
    learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=DIM), 5000)
    rng = np.random.default_rng(0)
    state = learner.init(ROWS, batch=(count,))
    clock, at_work = [], []
    slots = [_slot(rng, (count,)) for _ in range(2)]
    with on_threads(None):
        cores = thread_count()
        for turn in range(rounds + 2):  # the first rows are not held yet
            begun = perf_counter(), process_time()
            state = learner.update(state, slots[turn % 2])
            clock.append(perf_counter() - begun[0])
            at_work.append(process_time() - begun[1])
    numbers = sum(a.size for a in state.to_arrays().values() if a.dtype.kind in "fi") // count
    least = [1e6 * min(seconds[2:]) / count for seconds in (clock, at_work)]
    return Million(count, cores, least[0], least[1], numbers)


def measure(count: int, rounds: int) -> Tenants:
    """Update all tenants by COLDQ and by SelfTuning in turns, on the same feedback."""
    domain = coldq.Box(0.0, 5.0, dim=DIM)
    ours = coldq.SelfTuning(domain, 0.01)
    many, states = _in_turns((coldq.COLDQ(domain, 5000), ours), (count,), rounds)
    alone, _ = _in_turns((coldq.COLDQExpert(domain, 5000), ours), (), 20 * rounds)
    arrays = (a for a in states[1].to_arrays().values() if a.dtype.kind in "fi")
    expert, single = np.median(alone, axis=0)
    return Tenants(
        count,
        *map(float, 1e3 * many.min(axis=0)),
        numbers=sum(a.size for a in arrays) // count,
        times_expert=float(single / expert),
    )


def _in_turns(
    learners: tuple[Any, ...], batch: tuple[int, ...], rounds: int
) -> tuple[np.ndarray, list[Any]]:
    """Slots as those of TimeVarying, drawn for all tenants at once."""
    rng = np.random.default_rng(0)
    states = [learner.init(ROWS, batch=batch) for learner in learners]
    seconds = np.empty((rounds, len(learners)))
    for turn in range(-WARM_UP, rounds):
        revealed = _slot(rng, batch)
        for k, learner in enumerate(learners):
            begun = process_time()
            states[k] = learner.update(states[k], revealed)
            seconds[max(turn, 0), k] = process_time() - begun
    return seconds, states


def _slot(rng: np.random.Generator, batch: tuple[int, ...]) -> coldq.Feedback:
    H = rng.uniform(-1.0, 1.0, (*batch, MEASUREMENTS, DIM))
    y = H.sum(axis=-1) + rng.standard_normal((*batch, MEASUREMENTS))
    rows = rng.random((*batch, ROWS, DIM)), rng.random((*batch, ROWS))
    return coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(*rows))
