"""The league table: any learners of the catalogue on any problem, loss against violation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.experiments.coinciding import coinciding
from coldq.experiments.intervals import front
from coldq.experiments.named import learners_of, make, problem_of, told_apart
from coldq.learners.card import Card
from coldq.metrics import accumulated_loss, hard_violation, soft_violation
from coldq.protocols import Problem
from coldq.simulate import seed_tuple, simulate


@dataclass(frozen=True, eq=False)
class Standing:
    """How one learner did: totals of each seed, and the seconds of a slot of one seed alone."""

    name: str
    card: Card
    loss: Array
    violation: Array
    soft_violation: Array
    seconds_per_slot: float


@dataclass(frozen=True, eq=False)
class League:
    """All standings by mean violation, why others did not play, and whose decisions coincide."""

    key: str
    problem: Problem
    seeds: tuple[int, ...]
    standings: tuple[Standing, ...]
    left_out: Mapping[str, str]
    coinciding: tuple[str, ...] = ()

    @property
    def front(self) -> tuple[str, ...]:
        """The Pareto front: those that no other learner beats in both loss and violation."""
        means = [(one.loss.mean(), one.violation.mean()) for one in self.standings]
        ahead = front(np.reshape(means, (-1, 2)))
        return tuple(self.standings[place].name for place in sorted(ahead))


def compare(
    key: str,
    learners: Iterable[str] = (),
    seeds: Iterable[int] = range(20),
    *,
    horizon: int | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> League:
    """Play every learner, made by its ``for_problem``, on the problem of this name.

    Learners whose memory grows play only if they are named. Of a problem that shows every seed the
    same one is played: intervals over them would be zero, and mean nothing. A learner that cannot
    be made for the problem is left out, with its reason.

    >>> from coldq.experiments.compare import compare
    >>> league = compare("linear", ["COLDQ", "OGD"], seeds=range(2), horizon=40)
    >>> [standing.name for standing in league.standings]
    ['COLDQ', 'OGD']
    """
    problem, names = problem_of(key, horizon), tuple(learners)
    seeds = told_apart(problem, seed_tuple(seeds))
    standings, left_out, played = [], {}, {}
    for learner in learners_of(names):
        name = learner.__name__
        made = make(learner, problem, named=bool(names))
        if isinstance(made, str):
            left_out[name] = made
        else:
            standings.append(_play(made, problem, seeds))
            played[name] = made
        done(name)
    standings.sort(key=lambda standing: float(standing.violation.mean()))
    totals = {
        one.name: np.concatenate([one.loss, one.violation, one.soft_violation]) for one in standings
    }
    same = coinciding(problem, played, totals)
    return League(key, problem, seeds, tuple(standings), left_out, same)


def _play(learner: Any, problem: Problem, seeds: tuple[int, ...]) -> Standing:
    trace = simulate(learner, problem, seeds, progress=False)
    begun = time.perf_counter()
    simulate(learner, problem, seeds[:1], progress=False)
    return Standing(
        type(learner).__name__,
        learner.card,
        accumulated_loss(trace),
        hard_violation(trace),
        soft_violation(trace),
        (time.perf_counter() - begun) / problem.horizon,
    )
