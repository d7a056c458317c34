"""One learner's run, scored: losses, violations, regrets, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of violated slots."""
        return float(self.bad.mean())

    def regret(self, kind: str) -> Array:
        """The regret a slot of each seed, over the slots that have something to compare with."""
        if kind not in self.excess:
            return np.full(len(self.loss), np.nan)
        total, count = regret(self.excess[kind])
        return np.divide(total, count, out=total * np.nan, where=count > 0)


def regret(excess: Array) -> tuple[Array, np.ndarray]:
    """The regret of each seed, and of how many slots; NaN where none has a feasible decision.

    >>> import numpy as np
    >>> from coldq.evaluation.scores import regret
    >>> regret(np.array([[1.0, np.nan, 2.0], [np.nan] * 3]))
    (array([ 3., nan]), array([2, 0]))
    """
    known = np.isfinite(excess)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, excess, 0.0).sum(axis=1), np.nan), count


@dataclass(eq=False)
class Setting:
    """A problem's seeds, the slots that are scored, and the losses of the comparators there.

    A comparator is found once for all learners, unless the problem answers to decisions: then it is
    found for each run. `notes` say why there is none, and where it has no feasible decision.
    """

    problem: Any
    seeds: tuple[int, ...]
    begin: int = 0
    regrets: tuple[str, ...] = tuple(COMPARATORS)
    best: dict[str, Array] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind in self.regrets:
            try:
                comparator = COMPARATORS[kind](self.problem, self.seeds)
            except Error as error:
                if not self.answers:
                    self.notes.append(f"There is no {kind} regret: {error}.")
                continue
            self.best[kind] = comparator.loss
            lacking = int((~comparator.feasible[:, self.begin :]).any(axis=0).sum())
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

    @property
    def lacking(self) -> list[str]:
        """The regrets for which each run needs a comparator of its own."""
        return [kind for kind in self.regrets if self.answers and kind not in self.best]

    def excess(
        self, loss: Array, decisions: Array | None = None
    ) -> tuple[dict[str, Array], tuple[str, ...]]:
        """What the scored slots cost more than each comparator, and why there is none.

        `loss` (S, T) is of the scored slots alone; `decisions` (S, T, p) of all.
        """
        excess = {kind: loss - best[: len(loss), self.begin :] for kind, best in self.best.items()}
        notes = []
        for kind in self.lacking if decisions is not None else ():
            try:
                best = COMPARATORS[kind](self.problem, self.seeds[: len(loss)], decisions).loss
            except Error as error:
                notes.append(f"There is no {kind} regret: {error}.")
            else:
                excess[kind] = loss - best[:, self.begin :]
        return excess, tuple(notes)

    def score(self, name: str, learner: Any, tuned: str = "", count: int | None = None) -> Score:
        """One learner's run, scored; on the first `count` seeds, if that is given."""
        problem, seeds, begin = self.problem, self.seeds[:count], self.begin
        seconds = timed(learner, problem, seeds[0])
        trace = simulate(learner, problem, seeds, keep=["decisions"], progress=False)
        bad = np.zeros(trace.loss.shape, bool)
        for t, revealed in replay(problem, seeds, trace.decisions):
            g, x = trace.constraint[:, t - 1], trace.decisions[:, t - 1]  # type: ignore[index]
            bad[:, t - 1] = is_violated(revealed.constraint, g, x, problem.domain)
        loss, g = trace.loss[:, begin:], trace.constraint[:, begin:]
        excess, notes = self.excess(loss, trace.decisions)
        return Score(
            name,
            loss,
            bad[:, begin:],
            trace.violation[:, begin:].sum(axis=2),
            np.maximum(g.mean(axis=1), 0.0).sum(axis=1),
            excess,
            tuned,
            learner,
            np.nan if trace.reduced is None else float(trace.reduced[:, begin:].mean()),
            seconds,
            notes,
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
