"""One learner's run, scored: losses, violations, regrets, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coldq.base.arrays import Array, is_ours
from coldq.base.errors import Error
from coldq.evaluation.safety_margins import is_violated
from coldq.simulation.comparators import dynamic_comparator, static_comparator
from coldq.simulation.loop import simulate
from coldq.simulation.replay import replay

TIMED_SLOTS = 200  # slots of one seed alone, of which the time a slot is taken
COMPARATORS = {"dynamic": dynamic_comparator, "static": static_comparator}


@dataclass(frozen=True, eq=False)
class Score:
    """One learner's run on the scored slots: series (S, T), and what is a number.

    A rival's violation is a mean alone, of shape (S, 1). `excess` has what each slot cost more than
    a comparator, by its name; NaN where that has no feasible decision.
    """

    name: str
    loss: Array
    bad: np.ndarray
    violation: Array
    soft: Array
    excess: Mapping[str, Array]
    tuned: str = ""
    learner: Any = None
    reduced: float = np.nan
    seconds: tuple[float, float] = (np.nan, np.nan)

    @property
    def share(self) -> float:
        """The share of violated slots."""
        return float(self.bad.mean())

    def regret(self, kind: str) -> Array:
        """The regret a slot of each seed, over the slots that have something to compare with."""
        excess = self.excess.get(kind)
        if excess is None:
            return np.full(len(self.loss), np.nan)
        known = np.isfinite(excess)
        total = np.where(known, excess, 0.0).sum(axis=1)
        return np.divide(total, known.sum(axis=1), out=total * np.nan, where=known.any(axis=1))


@dataclass(eq=False)
class Setting:
    """What all learners of a comparison have in common, and the losses of the comparators."""

    problem: Any
    seeds: tuple[int, ...]
    begin: int
    best: dict[str, Array] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind, find in COMPARATORS.items():
            try:
                found = find(self.problem, self.seeds)
            except Error as error:
                if not self.answers:
                    self.notes.append(f"There is no {kind} regret: {error}.")
                continue
            self.best[kind] = found.loss
            lacking = int((~found.feasible[:, self.begin :]).any(axis=0).sum())
            if lacking and kind == "dynamic":
                self.notes.append(
                    f"In {lacking:,} of the scored slots nothing is feasible: they are left out of "
                    "the dynamic regret."
                )
            elif lacking:
                self.notes.append("No decision is feasible in all slots: no static regret.")

    @property
    def answers(self) -> bool:
        """Whether each run may have met functions of its own."""
        return getattr(self.problem, "adaptive", False) or not is_ours(self.problem)

    def excess(self, loss: Array, decisions: Array | None = None) -> dict[str, Array]:
        """What the scored slots cost more than each comparator; `loss` (S, T) is of those alone."""
        found = {kind: loss - best[: len(loss), self.begin :] for kind, best in self.best.items()}
        if decisions is None or not self.answers:
            return found
        for kind in COMPARATORS.keys() - self.best.keys():
            with suppress(Error):
                best = COMPARATORS[kind](self.problem, self.seeds[: len(loss)], decisions).loss
                found[kind] = loss - best[:, self.begin :]
        return found

    def score(self, name: str, learner: Any, tuned: str = "", count: int | None = None) -> Score:
        """One learner's run, scored; on the first `count` seeds, if that is given."""
        seeds = self.seeds[:count]
        return score(name, learner, self.problem, seeds, self.begin, tuned, self.excess)


def score(
    name: str,
    learner: Any,
    problem: Any,
    seeds: tuple[int, ...],
    begin: int,
    tuned: str = "",
    excess: Callable[[Array, Array | None], dict[str, Array]] = lambda loss, decisions: {},
) -> Score:
    """One learner's run, scored from slot `begin` + 1 on; `excess` compares its losses."""
    seconds = timed(learner, problem, seeds[0])
    trace = simulate(learner, problem, seeds, keep=["decisions"], progress=False)
    bad = np.zeros(trace.loss.shape, bool)
    for t, revealed in replay(problem, seeds, trace.decisions):
        g, x = trace.constraint[:, t - 1], trace.decisions[:, t - 1]  # type: ignore[index]
        bad[:, t - 1] = is_violated(revealed.constraint, g, x, problem.domain)
    loss, g = trace.loss[:, begin:], trace.constraint[:, begin:]
    return Score(
        name,
        loss,
        bad[:, begin:],
        trace.violation[:, begin:].sum(axis=2),
        np.maximum(g.mean(axis=1), 0.0).sum(axis=1),
        excess(loss, trace.decisions),
        tuned,
        learner,
        np.nan if trace.reduced is None else float(trace.reduced[:, begin:].mean()),
        seconds,
    )


class _Enough(Exception):
    """Raised in a run whose time is taken, when there is enough of it."""


class _Timed:
    """A problem whose stream notes when each of the first slots is revealed."""

    def __init__(self, problem: Any) -> None:
        self._problem, self.stamps = problem, list[float]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def start(self, seeds: Any) -> Any:
        self._stream = self._problem.start(seeds)
        return self

    def reveal(self, t: int, x: Array) -> Any:
        self.stamps.append(time.perf_counter())
        if t > TIMED_SLOTS:
            raise _Enough
        return self._stream.reveal(t, x)


def timed(learner: Any, problem: Any, seed: int) -> tuple[float, float]:
    """Seconds until the second decision, and those of a slot after that, one seed alone."""
    watch, begun = _Timed(problem), time.perf_counter()
    with suppress(_Enough):
        simulate(learner, watch, [seed], progress=False)  # type: ignore[arg-type]
        watch.stamps.append(time.perf_counter())
    stamps = watch.stamps
    return stamps[1] - begun, (stamps[-1] - stamps[1]) / max(len(stamps) - 2, 1)
