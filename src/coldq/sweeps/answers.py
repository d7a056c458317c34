"""What a sweep says: of each problem the front, the sensitivities, the ranks, a recommendation.

Every setting, a learner with its parameters, is judged by the means over seeds of its loss and of
its hard violation. Seeds are the same for all settings, so that ranks and intervals pair them:
seeds are drawn anew, `RESAMPLES` times, for all settings together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.errors import InvalidInput
from coldq.experiments.intervals import (
    RESAMPLES,
    as_low,
    drawn_anew,
    front,
    tuned_to,
)
from coldq.sweeps.table import Sweep, shown

REFERENCE = "COLDQ"


@dataclass(frozen=True, eq=False)
class Setting:
    """A learner with its parameters: loss and violation of every seed, in one order for all."""

    learner: str
    parameters: Mapping[str, Any]
    loss: Array
    violation: Array

    @property
    def words(self) -> str:
        """Its parameters as they are read."""
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.parameters.items())

    @property
    def name(self) -> str:
        """The learner and its parameters."""
        return f"{self.learner} ({self.words})" if self.parameters else self.learner

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss and mean violation."""
        return float(self.loss.mean()), float(self.violation.mean())


@dataclass(frozen=True)
class Sensitivity:
    """What one parameter of a learner does: means over all else, at the values it was given.

    `explains` is the share of the variation among the learner's settings that goes with this
    parameter alone, of loss and of violation.
    """

    learner: str
    parameter: str
    values: tuple[Any, ...]
    loss: tuple[float, ...]
    violation: tuple[float, ...]
    explains: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a sweep says of one problem."""

    problem: str
    horizon: int
    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    adaptive: bool = False

    @cached_property
    def means(self) -> Array:
        """Mean loss and violation of every setting, (settings, 2)."""
        return np.array([one.means for one in self.settings])

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The places of every learner's settings."""
        found: dict[str, list[int]] = {}
        for place, one in enumerate(self.settings):
            found.setdefault(one.learner, []).append(place)
        return found

    @cached_property
    def front(self) -> tuple[int, ...]:
        """The places of the settings that no other beats in both, by their loss."""
        return front(self.means)

    @cached_property
    def _drawn(self) -> np.ndarray:
        """Seeds drawn anew, (RESAMPLES, seeds)."""
        return drawn_anew(len(self.seeds))

    @cached_property
    def ranks(self) -> Array:
        """Mean rank over seeds, and the ends of its 95% interval, (loss or violation, settings, 3).

        The least is ranked 1; those that tie share the mean of their ranks.
        """
        found = np.empty((2, len(self.settings), 3))
        for k, name in enumerate(("loss", "violation")):
            each = ranked(np.array([getattr(one, name) for one in self.settings]))
            found[k, :, 0] = each.mean(axis=1)
            for place, row in enumerate(each):
                found[k, place, 1:] = np.quantile(row[self._drawn].mean(axis=1), (0.025, 0.975))
        return found

    @cached_property
    def recommended(self) -> int:
        """The place of the setting at the knee of the front."""
        return knee(self.means)

    @cached_property
    def chosen_again(self) -> float:
        """How often it is recommended when seeds are drawn anew; NaN for one seed."""
        if len(self.seeds) < 2:
            return float("nan")
        both = np.array([[one.loss, one.violation] for one in self.settings])
        again = [
            knee(both[:, :, drawn].mean(axis=-1)) for drawn in self._drawn[:: RESAMPLES // 200]
        ]
        return float(np.mean([place == self.recommended for place in again]))

    @cached_property
    def reference(self) -> int:
        """The setting whose loss others are tuned to: COLDQ's at its own knee, else the first's."""
        own = self.places.get(REFERENCE) or self.places[self.settings[0].learner]
        return own[knee(self.means[own])]

    def tuned(self) -> Iterator[tuple[int, float, float, bool]]:
        """Each other learner tuned to the reference's loss, as the paper compares.

        Its place, how its loss and its violation lie to the reference's, as shares, and whether its
        loss is as low; where none is, the place is that of the least.
        """
        target = self.means[self.reference]
        for own in self.places.values():
            if self.reference in own:
                continue
            place = own[tuned_to(float(target[0]), *self.means[own].T)]
            loss, violation = map(_apart, self.means[place], target)
            yield place, loss, violation, bool(as_low(self.means[place, 0], target[0]))

    def sensitivities(self) -> Iterator[Sensitivity]:
        """Every parameter that has several values."""
        for label, own in self.places.items():
            for name in self.settings[own[0]].parameters:
                yield from self._sensitivity(label, name, own)

    def _sensitivity(self, label: str, name: str, own: list[int]) -> Iterator[Sensitivity]:
        given = [self.settings[k].parameters[name] for k in own]
        values = list(dict.fromkeys(given))
        if len(values) < 2:
            return
        means = self.means[own]
        groups = [means[[k for k, one in enumerate(given) if one == value]] for value in values]
        centres = np.array([group.mean(axis=0) for group in groups])
        between = sum(
            len(group) * np.square(centre - means.mean(axis=0))
            for group, centre in zip(groups, centres, strict=True)
        )
        whole = np.square(means - means.mean(axis=0)).sum(axis=0)
        share = np.divide(between, whole, out=np.zeros(2), where=whole > 0.0)
        loss, violation = (tuple(map(float, column)) for column in centres.T)
        explains = float(share[0]), float(share[1])
        yield Sensitivity(label, name, tuple(values), loss, violation, explains)


def answers(sweep: Sweep) -> list[Answers]:
    """What a sweep says, problem by problem.

    >>> import coldq
    >>> from coldq.sweeps.answers import answers
    >>> found = coldq.sweep(problems=["linear"], learners=["COLDQ", "OGD"], seeds=3)
    >>> [one] = answers(found)
    >>> [setting.name for setting in one.settings], one.seeds
    (['COLDQ', 'OGD'], (0, 1, 2))
    """
    frame = sweep.runs.select(
        ["problem", "learner", "parameters", "seed", "horizon", "loss", "violation"]
    ).to_pydict()
    columns = {name: np.array(column) for name, column in frame.items()}
    found = []
    for problem in sweep.problems:
        here = columns["problem"] == problem
        part = {name: column[here] for name, column in columns.items()}
        settings = _settings(part, sweep.settings)
        seeds = set.intersection(*(set(one) for _, _, one in settings))
        if not seeds:
            continue
        common = sorted(seeds)
        made = [
            Setting(
                learner, json.loads(parameters),
                *np.array([rows[seed] for seed in common]).T.copy(),
            )
            for learner, parameters, rows in settings
        ]  # fmt: skip
        horizon = int(part["horizon"][0])
        shared, adaptive = tuple(map(int, common)), problem in sweep.adaptive
        found.append(Answers(str(problem), horizon, shared, tuple(made), adaptive))
    if not found:
        raise InvalidInput("no seed was run with all settings, so that there is nothing to compare")
    return found


def _settings(
    part: Mapping[str, np.ndarray], order: Sequence[tuple[str, str]]
) -> list[tuple[str, str, dict[int, tuple[float, float]]]]:
    """Loss and violation by seed, of every setting that has been run."""
    rows: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for learner, parameters, seed, loss, violation in zip(
        *(part[name].tolist() for name in ("learner", "parameters", "seed", "loss", "violation")),
        strict=True,
    ):
        rows.setdefault((learner, parameters), {})[seed] = (loss, violation)
    return [(*pair, rows[pair]) for pair in order if pair in rows]


def knee(means: Array) -> int:
    """The place on the front that lies nearest to its corner, both measures scaled to it.

    Of two that are as near, as the two ends of a front always are, it is the one that violates
    less.

    >>> import numpy as np
    >>> from coldq.sweeps.answers import knee
    >>> knee(np.array([[0.0, 10.0], [1.0, 1.0], [10.0, 0.0]]))
    1
    >>> knee(np.array([[0.0, 10.0], [10.0, 0.0]]))
    1
    """
    ahead = list(front(means))
    points = means[ahead]
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    scaled = np.divide(points - low, span, out=np.zeros(points.shape), where=span > 0.0)
    far = np.square(scaled).sum(axis=1)
    return ahead[int(np.lexsort((points[:, 1], far))[0])]


def ranked(values: Array) -> Array:
    """Ranks along the first axis, from 1; ties share their mean.

    >>> import numpy as np
    >>> from coldq.sweeps.answers import ranked
    >>> ranked(np.array([[3.0], [1.0], [3.0]])).ravel()
    array([2.5, 1. , 2.5])
    """
    ordered = np.sort(values, axis=0)
    found = np.empty(values.shape)
    for column in range(values.shape[1]):
        low = np.searchsorted(ordered[:, column], values[:, column], "left")
        high = np.searchsorted(ordered[:, column], values[:, column], "right")
        found[:, column] = 0.5 * (low + high + 1.0)
    return found


def _apart(value: float, target: float) -> float:
    return (value - target) / abs(target) if target else (0.0 if value == target else np.inf)
