"""What a sweep says: of each problem the front, the sensitivities, the ranks, a recommendation.

Every setting, a learner with its parameters, is judged by the means over seeds of its loss and of
its hard violation. Recommended is the least loss within a violation budget. Seeds are the same for
all settings, so that ranks and intervals pair them: seeds are drawn anew, `RESAMPLES` times, for
all settings together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.evaluation.comparison import ADAPTIVE_NOTE
from coldq.evaluation.intervals import (
    RESAMPLES,
    as_low,
    front,
    resampled_places,
    tuned_to,
    with_interval,
)
from coldq.evaluation.sweeps.config import require_budget
from coldq.evaluation.sweeps.table import Sweep, words

REFERENCE_LEARNER = "COLDQ"
RECOMMENDATION_SAMPLES = 200  # of the samples of seeds, in which a recommendation is made again
BUDGET_TOLERANCE = 1e-9  # a share of the budget by which means that are equal may differ


@dataclass(frozen=True, eq=False)
class Setting:
    """A learner with its parameters: the measures of every seed, in one order for all."""

    learner: str
    parameters: Mapping[str, Any]
    loss: Array
    violation: Array
    dynamic_regret: Array | None = None
    static_regret: Array | None = None

    @property
    def words(self) -> str:
        """Its parameters as they are read."""
        return words(self.parameters)

    @property
    def name(self) -> str:
        """The learner and its parameters."""
        return f"{self.learner} ({self.words})" if self.parameters else self.learner

    @property
    def measures(self) -> list[str]:
        """Loss, violation, dynamic and static regret: means with intervals, - where undefined."""
        samples = self.loss, self.violation, self.dynamic_regret, self.static_regret
        return [
            "-" if one is None or np.isnan(one).any() else with_interval(one) for one in samples
        ]


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
    """What a sweep says of one problem. `budget` is the hard violation that a run may have.

    `notes` say where it answers to decisions, and why a regret is undefined.
    """

    problem: str
    horizon: int
    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    budget: float | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def samples(self) -> Array:
        """Loss and violation of every setting and seed, (settings, 2, seeds)."""
        return np.array([[one.loss, one.violation] for one in self.settings])

    @cached_property
    def means(self) -> Array:
        """Mean loss and violation of every setting, (settings, 2)."""
        return self.samples.mean(axis=-1)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The places of every learner's settings."""
        places: dict[str, list[int]] = {}
        for place, one in enumerate(self.settings):
            places.setdefault(one.learner, []).append(place)
        return places

    @cached_property
    def front(self) -> tuple[int, ...]:
        """The places of the settings that no other beats in both, by their loss."""
        return front(self.means)

    @cached_property
    def ranks(self) -> Array:
        """Mean rank over seeds, and the ends of its 95% interval, (loss or violation, settings, 3).

        The least is ranked 1; those that tie share the mean of their ranks.
        """
        from scipy.stats import rankdata

        ranks, drawn = np.empty((2, len(self.settings), 3)), resampled_places(len(self.seeds))
        for k in range(2):
            each = rankdata(self.samples[:, k], axis=0)
            ranks[k, :, 0] = each.mean(axis=1)
            for place, row in enumerate(each):
                ranks[k, place, 1:] = np.quantile(row[drawn].mean(axis=1), (0.025, 0.975))
        return ranks

    @cached_property
    def reference(self) -> int:
        """COLDQ's setting in the middle of its own front, whatever grid it had; else the first's.

        Of two in the middle it is the one that violates less.
        """
        own = self.places.get(REFERENCE_LEARNER) or self.places[self.settings[0].learner]
        ahead = front(self.means[own])
        return own[ahead[len(ahead) // 2]]

    @property
    def allowed(self) -> float:
        """The budget; where none was given, the violation of the reference."""
        return float(self.means[self.reference, 1]) if self.budget is None else self.budget

    @cached_property
    def recommended(self) -> int | None:
        """The place of the least loss within the budget, if any setting keeps it."""
        return self._within(self.means)

    def _within(self, means: Array) -> int | None:
        allowed = means[self.reference, 1] if self.budget is None else self.budget
        (keep,) = np.nonzero(means[:, 1] <= allowed * (1.0 + BUDGET_TOLERANCE))
        return int(keep[np.lexsort(means[keep].T[::-1])[0]]) if keep.size else None

    @cached_property
    def chosen_again(self) -> float:
        """How often it is recommended when seeds are drawn anew; NaN for one seed."""
        if len(self.seeds) < 2:
            return float("nan")
        drawn = resampled_places(len(self.seeds))[:: RESAMPLES // RECOMMENDATION_SAMPLES]
        again = [self._within(self.samples[:, :, each].mean(axis=-1)) for each in drawn]
        return float(np.mean([place == self.recommended for place in again]))

    def recommendation(self) -> str:
        """What is recommended, in a sentence or two."""
        its = f"{self.settings[self.reference].name} has" if self.budget is None else "given"
        budget = f"a violation of at most {self.allowed:,.5g}, as {its}"
        if self.recommended is None:
            least = int(self.means[:, 1].argmin())
            return (
                f"None is recommended: no setting has {budget}. "
                f"{self.settings[least].name} comes closest, with {self.means[least, 1]:,.5g}."
            )
        name = self.settings[self.recommended].name
        share = 100.0 * self.chosen_again
        sure = "" if len(self.seeds) < 2 else f", in {share:.0f}% of samples of the seeds"
        ends = " and ".join(self.ends())
        more = (
            f" That is {ends} that was tried: widen the grid there, and look again." if ends else ""
        )
        return f"Recommended, the least loss with {budget}: {name}{sure}.{more}"

    def ends(self) -> Iterator[str]:
        """The values of the recommended setting that are the least or the largest of their grid."""
        if self.recommended is None:
            return
        best = self.settings[self.recommended]
        for name, value in best.parameters.items():
            given = {self.settings[k].parameters[name] for k in self.places[best.learner]}
            numbers = all(type(one) in (int, float) for one in given)
            if numbers and len(given) > 1 and value in (min(given), max(given)):
                yield f"the {'least' if value == min(given) else 'largest'} {name}"

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


def answers(sweep: Sweep, budget: float | None = None) -> list[Answers]:
    """What a sweep says, problem by problem, within its budget or another one.

    >>> import coldq
    >>> from coldq.evaluation.sweeps.answers import answers
    >>> swept = coldq.sweep(problems=["linear"], learners=["COLDQ", "OGD"], seeds=3)
    >>> [one] = answers(swept)
    >>> [setting.name for setting in one.settings], one.seeds
    (['COLDQ', 'OGD'], (0, 1, 2))
    >>> one.settings[one.recommended].name
    'COLDQ'
    """
    budget = sweep.budget if budget is None else require_budget("a sweep's answers", budget)
    rows: dict[str, dict[tuple[str, str], dict[int, list[float]]]] = {}
    names = (
        "problem", "learner", "parameters", "seed", "horizon", "loss", "violation",
        "dynamic_regret", "static_regret",
    )  # fmt: skip
    horizons = {}
    for problem, learner, parameters, seed, horizon, *measures in zip(
        *(sweep.runs[name].to_pylist() for name in names), strict=True
    ):
        horizons[problem] = horizon
        rows.setdefault(problem, {}).setdefault((learner, parameters), {})[seed] = measures
    answered = []
    for problem, settings in rows.items():
        seeds = sorted(set.intersection(*map(set, settings.values())))
        if not seeds:
            continue
        settings_of = [
            Setting(learner, json.loads(text), *np.array([runs[seed] for seed in seeds]).T.copy())
            for (learner, text), runs in settings.items()
        ]
        adaptive = problem in sweep.adaptive
        notes = (*((ADAPTIVE_NOTE,) if adaptive else ()), *sweep.notes.get(problem, ()))
        about = horizons[problem], tuple(seeds), tuple(settings_of), budget, notes
        answered.append(Answers(problem, *about))
    if not answered:
        raise InvalidInput("no seed was run with all settings, so that there is nothing to compare")
    return answered


def _apart(value: float, target: float) -> float:
    return (value - target) / abs(target) if target else (0.0 if value == target else np.inf)
