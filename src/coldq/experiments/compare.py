"""The league table: any learners of the catalogue on any problem, loss against violation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coldq._values import Array
from coldq.errors import InvalidInput
from coldq.learners import CATALOGUE
from coldq.learners.card import Card
from coldq.metrics import accumulated_loss, hard_violation, soft_violation
from coldq.problems import (
    Autoscale,
    Dispatch,
    Drifting,
    JobScheduling,
    OnlineLinear,
    OnlineQuadratic,
    TimeVarying,
)
from coldq.protocols import Problem
from coldq.simulate import seed_tuple, simulate

PROBLEMS: Mapping[str, Callable[..., Any]] = {
    "time-varying": TimeVarying,
    "quadratic": OnlineQuadratic,
    "linear": OnlineLinear,
    "jobs": JobScheduling,
    "autoscale": Autoscale,
    "dispatch": Dispatch,
    "drifting": lambda horizon=4096: Drifting(0.5, 0.5, horizon=horizon),
}
# Parameters that no problem knows. Feedback comes at once here.
GIVEN: Mapping[str, Mapping[str, Any]] = {"Wang2023": {"delay": 0}}


@dataclass(frozen=True, eq=False)
class Standing:
    """How one learner did: totals of each seed, and the seconds of a slot of one seed alone."""

    name: str
    card: Card
    loss: Array
    violation: Array
    soft_violation: Array
    seconds_per_slot: float

    def beats(self, other: Standing) -> bool:
        """Whether the means are nowhere worse and somewhere better than another's."""
        ours = (self.loss.mean(), self.violation.mean())
        theirs = (other.loss.mean(), other.violation.mean())
        return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


@dataclass(frozen=True, eq=False)
class League:
    """All standings by mean violation, and why others did not play."""

    key: str
    problem: Problem
    seeds: tuple[int, ...]
    standings: tuple[Standing, ...]
    left_out: Mapping[str, str]

    @property
    def front(self) -> tuple[str, ...]:
        """The Pareto front: those that no other learner beats in both loss and violation."""
        return tuple(
            one.name
            for one in self.standings
            if not any(other.beats(one) for other in self.standings)
        )


def problem_of(key: str, horizon: int | None = None) -> Any:
    """The problem of this name, with its own horizon or another one.

    >>> from coldq.experiments.compare import problem_of
    >>> problem_of("linear", horizon=100).horizon
    100
    """
    if key not in PROBLEMS:
        raise InvalidInput(
            f"there is no problem {key!r}; there are {', '.join(PROBLEMS)}, a table's TOML file, "
            "and module:problem"
        )
    return PROBLEMS[key]() if horizon is None else PROBLEMS[key](horizon=horizon)


def learners_of(names: Iterable[str]) -> tuple[type, ...]:
    """The learners of these names, whatever their case; all of the catalogue for none.

    >>> from coldq.experiments.compare import learners_of
    >>> [learner.__name__ for learner in learners_of(["recoo", "COLDQ"])]
    ['RECOO', 'COLDQ']
    """
    known = {learner.__name__.lower(): learner for learner in CATALOGUE}
    chosen = []
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(learner.__name__ for learner in CATALOGUE)
            raise InvalidInput(f"there is no learner {name!r}; there are {listed}")
        chosen.append(known[name.lower()])
    return tuple(dict.fromkeys(chosen)) or CATALOGUE


def compare(
    key: str,
    learners: Iterable[str] = (),
    seeds: Iterable[int] = range(20),
    *,
    horizon: int | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> League:
    """Play every learner, made by its ``for_problem``, on the problem of this name.

    Learners whose memory grows play only if they are named. A learner that cannot be made for the
    problem is left out, with its reason.

    >>> from coldq.experiments.compare import compare
    >>> league = compare("linear", ["COLDQ", "OGD"], seeds=range(2), horizon=40)
    >>> [standing.name for standing in league.standings]
    ['COLDQ', 'OGD']
    """
    problem, seeds, names = problem_of(key, horizon), seed_tuple(seeds), tuple(learners)
    standings, left_out = [], {}
    for learner in learners_of(names):
        name = learner.__name__
        made = make(learner, problem, named=bool(names))
        if isinstance(made, str):
            left_out[name] = made
        else:
            standings.append(_play(made, problem, seeds))
        done(name)
    standings.sort(key=lambda standing: float(standing.violation.mean()))
    return League(key, problem, seeds, tuple(standings), left_out)


def make(learner: Any, problem: Any, *, named: bool, **given: Any) -> Any:
    """A learner of the catalogue for a problem, or a sentence on why it does not play."""
    if learner.card.memory == "grows" and not named:
        return "its memory grows with time; name it to see it play"
    try:
        return learner.for_problem(problem, **GIVEN.get(learner.__name__, {}), **given)
    except InvalidInput as error:
        return str(error)
    except TypeError:
        return "its theory needs constants that the problem does not know"


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
