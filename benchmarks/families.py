"""The per-slot problems to be timed, collected where a learner meets them: along a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import coldq
from coldq.learners.learner import QueueState

Array = NDArray[np.float64]
HORIZON = 5000


class Slot(NamedTuple):
    """What the step of one slot is given: the arguments of ``coldq.slot.step.solve``, in order."""

    center: Array
    gradient: Array
    alpha: Array
    queue: Array
    constraint: Any
    domain: coldq.Box


@dataclass(frozen=True)
class Moment:
    """One slot of a run: the learner's state, what was revealed, and the step to be made."""

    state: QueueState
    feedback: coldq.Feedback
    slot: Slot


@dataclass(frozen=True)
class Family:
    """A kind of per-slot problem and a run of COLDQ on it, slot by slot."""

    name: str
    learner: coldq.COLDQ
    moments: Sequence[Moment]

    def spread(self, count: int) -> list[Moment]:
        """`count` moments, evenly spaced over the run."""
        chosen = np.linspace(0, len(self.moments) - 1, count).astype(int)
        return [self.moments[k] for k in chosen]


def objective(slot: Slot, x: Array) -> float:
    """The hinge objective at x, clipped to the box: what a decision is really worth."""
    x = np.clip(x, slot.domain.lower, slot.domain.upper)
    move = x - slot.center
    violation = np.maximum(slot.constraint.value(x), 0.0)
    return float(slot.gradient @ move + slot.alpha * (move @ move) + slot.queue @ violation)


def time_varying(seed: int = 0) -> Family:
    """F1: two affine rows in ten dimensions, all data new in every slot."""
    problem = coldq.problems.TimeVarying(HORIZON)
    stream = problem.start([seed])

    def reveal(t: int, x: Array) -> coldq.Feedback:
        loss, g = _parts(stream.reveal(t, x[None]))
        return coldq.Feedback(
            coldq.LeastSquares(loss.H[0], loss.y[0]), coldq.Affine(g.A[0], g.b[0]), slot=t
        )

    learner = coldq.COLDQ.for_problem(problem)
    return _walk("F1: affine, p = 10, N = 2", learner, problem.n_constraints, reveal)


def online_linear(seed: int = 0) -> Family:
    """F2: three affine rows in two dimensions, fixed over the run."""
    problem = coldq.problems.OnlineLinear(HORIZON)
    stream = problem.start([seed])

    def reveal(t: int, x: Array) -> coldq.Feedback:
        loss, g = _parts(stream.reveal(t, x[None]))
        return coldq.Feedback(coldq.Linear(loss.c[0]), coldq.Affine(g.A[0], g.b[0]), slot=t)

    learner = coldq.COLDQ.for_problem(problem)
    return _walk("F2: affine, p = 2, N = 3", learner, problem.n_constraints, reveal)


def job_scheduling(seed: int = 0) -> Family:
    """F3: one capacity row over 100 data centres in ten price regions."""
    p, regions = 100, 10
    domain = coldq.Box(0.0, 1000.0, dim=p)
    scale, rate = np.full(p, 4.0), np.full(p, 4.0)
    rng = np.random.default_rng(seed)

    def reveal(t: int, x: Array) -> coldq.Feedback:
        prices = np.repeat(rng.uniform(10.0, 50.0, regions), p // regions)
        demand = float(rng.poisson(2500))
        return coldq.Feedback(coldq.Linear(prices), coldq.LogCapacity(demand, scale, rate), slot=t)

    learner = coldq.COLDQ(domain, horizon=2880)  # ten days of five-minute slots
    return _walk("F3: one log capacity, p = 100", learner, 1, reveal)


def _parts(feedback: coldq.Feedback) -> tuple[Any, Any]:
    return feedback.loss, feedback.constraint


def _walk(
    name: str,
    learner: coldq.COLDQ,
    n_constraints: int,
    reveal: Callable[[int, Array], coldq.Feedback],
) -> Family:
    assert learner.horizon is not None
    moments = []
    state = learner.init(n_constraints)
    for t in range(1, learner.horizon + 1):
        feedback = reveal(t, state.x)
        following = learner.update(state, feedback)
        slot = Slot(
            state.x,
            feedback.loss.gradient(state.x),
            learner.alpha(state.t),
            following.queue,
            feedback.constraint,
            learner.domain,
        )
        moments.append(Moment(state, feedback, slot))
        state = following
    return Family(name, learner, moments)
