"""What late, lost and doubled feedback costs: the same problems, undisturbed and disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.agent import Agent
from coldq.base.arrays import Array, one_real, whole_number
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Learner, Problem
from coldq.learners import COLDQ, RECOO, SelfTuning
from coldq.problems import Autoscale, TimeVarying
from coldq.simulation.loop import seed_tuple

LEARNERS = {SelfTuning: {"violation_rate": 0.05}, COLDQ: {}, RECOO: {}}
MEMORY_ROUNDS = 1000  # rounds in which a message may come again; delays are shorter


@dataclass(frozen=True)
class Disturbance:
    """Feedback comes 0 to `delay` rounds late, and some of it is `lost` or comes twice.

    >>> from coldq.evaluation.disturbed import Disturbance
    >>> Disturbance(delay=20, lost=0.05, doubled=0.05).words
    'up to 20 late, 5% lost, 5% doubled'
    """

    delay: int = 0
    lost: float = 0.0
    doubled: float = 0.0

    def __post_init__(self) -> None:
        if whole_number("delay", self.delay, 0) >= MEMORY_ROUNDS:
            raise InvalidInput(f"delay must be below {MEMORY_ROUNDS}, but is {self.delay}")
        for name in ("lost", "doubled"):
            if not 0.0 <= one_real(name, getattr(self, name)) < 1.0:
                raise InvalidInput(f"{name} must be a share below 1, but is {getattr(self, name)}")

    @property
    def words(self) -> str:
        """In words."""
        late = f"up to {self.delay} late" if self.delay else ""
        lost = f"{self.lost:.0%} lost" if self.lost else ""
        twice = f"{self.doubled:.0%} doubled" if self.doubled else ""
        return ", ".join(filter(None, (late, lost, twice))) or "undisturbed"


DISTURBANCES = (
    Disturbance(),
    Disturbance(delay=20),
    Disturbance(lost=0.05),
    Disturbance(doubled=0.05),
    Disturbance(delay=20, lost=0.05, doubled=0.05),
)


@dataclass(frozen=True)
class Outcome:
    """Means over seeds: the loss, the hard violation, and the share of slots with any."""

    problem: str
    learner: str
    disturbance: Disturbance
    loss: float
    violation: float
    share: float
    skipped: float


def play(
    learner: Learner, problem: Problem, seed: int, disturbance: Disturbance
) -> tuple[Array, Array, int, int]:
    """One agent on one seed: losses (T), violations (T, N), rounds skipped, messages repeated.

    A round whose feedback has not come by the longest delay is skipped. What comes, and when, is
    drawn from the seed.

    >>> import coldq
    >>> from coldq.evaluation.disturbed import Disturbance, play
    >>> problem = coldq.problems.OnlineLinear(horizon=30)
    >>> loss, _, skipped, _ = play(coldq.COLDQ.for_problem(problem), problem, 0, Disturbance())
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    >>> bool((loss == trace.loss[0]).all()), skipped
    (True, 0)
    """
    T, N = problem.horizon, problem.n_constraints
    rng = np.random.default_rng((seed, 20))
    lost, doubled = rng.random(T) < disturbance.lost, rng.random(T) < disturbance.doubled
    first, second = rng.integers(0, disturbance.delay + 1, (2, T))
    agent = Agent(learner, N, batch=(1,), limit=disturbance.delay, remember=MEMORY_ROUNDS)
    stream, loss, violation = problem.start([seed]), np.empty(T), np.empty((T, N))
    arriving: dict[int, list[int]] = {}
    told: dict[int, Any] = {}
    repeated = 0
    for t in range(1, T + 1):
        x = agent.decide(t).x
        told[t] = revealed = stream.reveal(t, x)
        told.pop(t - disturbance.delay - 1, None)
        loss[t - 1] = revealed.loss.value(x)[0]
        violation[t - 1] = np.maximum(revealed.constraint.value(x)[0], 0.0)
        if not lost[t - 1]:
            late = int(first[t - 1])
            arriving.setdefault(t + late, []).append(t)
            if doubled[t - 1]:
                arriving.setdefault(t + max(late, int(second[t - 1])), []).append(t)
        for round in arriving.pop(t, ()):
            receipt = agent.observe(round, told[round].loss, told[round].constraint)
            repeated += receipt.status == "repeated"
    applied = int(np.max(agent.state.t)) - 1
    skipped = T - applied - len(agent.in_flight) - len(agent.waiting)
    return loss, violation, skipped, repeated


def disturb(
    seeds: Iterable[int],
    horizon: int | None = None,
    done: Callable[[str], None] = lambda name: None,
) -> list[Outcome]:
    """The paper's time-varying problem and a real trace, each learner, each disturbance."""
    chosen = seed_tuple(seeds)
    slots: dict[str, Any] = {} if horizon is None else {"horizon": horizon}
    outcomes = []
    for problem in (TimeVarying(**slots), Autoscale(**slots)):
        for kind, parameters in LEARNERS.items():
            learner = kind.for_problem(problem, **parameters)
            for disturbance in DISTURBANCES:
                runs = [play(learner, problem, seed, disturbance) for seed in chosen]
                losses, over = (np.array([run[k] for run in runs]) for k in (0, 1))
                outcomes.append(
                    Outcome(
                        type(problem).__name__,
                        kind.__name__,
                        disturbance,
                        float(losses.sum(axis=1).mean()),
                        float(over.sum(axis=(1, 2)).mean()),
                        float((over > 0.0).any(axis=2).mean()),
                        float(np.mean([run[2] for run in runs])),
                    )
                )
                done(f"{type(problem).__name__}, {kind.__name__}: {disturbance.words}")
    return outcomes
