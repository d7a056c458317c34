"""The claims of the paper's experiments section, as functions of the runs.

Each claim is one or more quantities with a limit. A verdict is computed from them, never typed:
the claim holds if every quantity keeps its limit, holds in part if some do, and otherwise does not
hold. The intervals are 95% bootstrap intervals over seeds, learners compared on the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.evaluation.intervals import bootstrap
from coldq.paper.figures import Setting
from coldq.paper.published import final
from coldq.paper.runs import TUNED_RECOO, FigureRuns, Run

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"

# What the paper's words are taken to mean.
LOSS_TOLERANCE = 0.01  # a mean loss at most 1% above
EQUAL_LOSS_TOLERANCE = 0.01  # within 1% of each other
CLAIMED_REDUCTION = 0.40
SIGNIFICANT_REDUCTION = 0.50  # at least half of the violation gone
SIGNIFICANT_SAVING = 0.05  # at least 5% of the energy cost saved
DELAY_TOLERANCE = 0.001  # more delayed jobs by at most 0.1% of the arrivals
MAX_MILLISECONDS = 10.0
ZERO_VIOLATION = 1e-9  # a total violation that is rounding alone


@dataclass(frozen=True)
class Quantity:
    """A measured part of a claim, and the limit that it must keep.

    `sign` is "at least", "at most" or "within"; `unit` is "%" or the name of a unit.
    """

    what: str
    value: float
    interval: tuple[float, float] | None
    sign: str
    limit: float
    unit: str = "%"

    @property
    def holds(self) -> bool:
        """Whether the measured value keeps the limit."""
        if self.sign == "within":
            return abs(self.value) <= self.limit
        return self.value >= self.limit if self.sign == "at least" else self.value <= self.limit

    @property
    def clear(self) -> bool | None:
        """Whether the whole interval says the same as the measured value; None without one."""
        if self.interval is None:
            return None
        ends = (replace(self, value=end).holds for end in self.interval)
        return all(end == self.holds for end in ends)

    def __str__(self) -> str:
        bound = "within ±" if self.sign == "within" else f"{self.sign} "
        text = f"{self.what}: {_number(self.value, self.unit)}"
        if self.interval is not None:
            low, high = (_number(end, self.unit) for end in self.interval)
            text += f" [{low}, {high}]"
        return f"{text}, needs {bound}{_number(self.limit, self.unit)}"


def _number(value: float, unit: str) -> str:
    if unit != "%":
        return f"{value:.3g} {unit}".rstrip()
    percent = 100.0 * value
    return f"{percent:.1f}%" if abs(percent) >= 10.0 else f"{percent:.2f}%"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, where it was checked, and what came out."""

    key: str
    figure: str
    claim: str
    where: str
    quantities: tuple[Quantity, ...]

    @property
    def outcome(self) -> str:
        """ "holds", "holds in part" or "does not hold"."""
        kept = [quantity.holds for quantity in self.quantities]
        return HOLDS if all(kept) else IN_PART if any(kept) else FAILS

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "figure": self.figure,
            "claim": self.claim,
            "where": self.where,
            "outcome": self.outcome,
            "quantities": [
                {
                    "what": q.what,
                    "value": q.value,
                    "interval": q.interval,
                    "needs": f"{q.sign} {q.limit:g}",
                    "unit": "fraction" if q.unit == "%" else q.unit,
                    "holds": q.holds,
                    "clear": q.clear,
                }
                for q in self.quantities
            ],
        }


Measure = Callable[[FigureRuns, Setting], tuple[Quantity, ...]]
Claim = Callable[[FigureRuns], Iterator[Verdict]]


def _compared(
    what: str, statistic: Callable[..., Any], samples: tuple[Array, ...], sign: str, limit: float
) -> Quantity:
    value = float(statistic(*(sample.mean() for sample in samples)))
    return Quantity(what, value, bootstrap(statistic, *samples), sign, limit)


def _part(difference: Any, whole: Any) -> Any:
    """A difference as a part of the whole; nothing of nothing is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0.0, 0.0, difference / np.abs(whole))


def lower(what: str, ours: Array, theirs: Array, limit: float) -> Quantity:
    """By which part of theirs our mean is lower; at least `limit`."""
    return _compared(what, lambda a, b: _part(b - a, b), (ours, theirs), "at least", limit)


def above(what: str, ours: Array, theirs: Array, limit: float) -> Quantity:
    """By which part of theirs our mean is above; at most `limit`."""
    return _compared(what, lambda a, b: _part(a - b, b), (ours, theirs), "at most", limit)


def apart(what: str, ours: Array, theirs: Array, limit: float) -> Quantity:
    """By which part of ours their mean is above; within `limit` on either side."""
    return _compared(what, lambda a, b: _part(b - a, a), (ours, theirs), "within", limit)


def _claimed(runs: FigureRuns) -> tuple[Setting, ...]:
    return tuple(setting for setting in runs.figure.settings if setting.claimed)


def _claim(key: str, words: str) -> Callable[[Measure], Claim]:
    """A claim about every setting alike, from what is measured in one."""

    def of(measure: Measure) -> Claim:
        def verdicts(runs: FigureRuns) -> Iterator[Verdict]:
            for setting in _claimed(runs):
                quantities = measure(runs, setting)
                yield Verdict(key, runs.figure.key, words, setting.title, quantities)

        return verdicts

    return of


def _both(runs: FigureRuns, setting: Setting, label: str = "RECOO") -> tuple[Run, Run]:
    """COLDQ's run and another one."""
    return runs.find(setting, "COLDQ"), runs.find(setting, label)


@_claim(
    "violation-without-loss",
    "COLDQ violates over 40% less than RECOO, without sacrificing the loss",
)
def violation_without_loss(runs: FigureRuns, setting: Setting) -> tuple[Quantity, ...]:
    """Over 40% lower violation than RECOO without sacrificing the accumulated loss."""
    ours, theirs = _both(runs, setting)
    return (
        lower("violation below", ours.violation, theirs.violation, CLAIMED_REDUCTION),
        above("loss above", ours.loss, theirs.loss, LOSS_TOLERANCE),
    )


@_claim(
    "violation-at-equal-loss",
    "COLDQ violates over 40% less than RECOO with alpha tuned to the same loss",
)
def violation_at_equal_loss(runs: FigureRuns, setting: Setting) -> tuple[Quantity, ...]:
    """Over 40% lower violation than RECOO with its alpha tuned to COLDQ's loss."""
    ours, theirs = _both(runs, setting, TUNED_RECOO)
    return (lower("violation below", ours.violation, theirs.violation, CLAIMED_REDUCTION),)


@_claim("same-loss", "the compared algorithms end with nearly the same accumulated loss")
def nearly_the_same_loss(runs: FigureRuns, setting: Setting) -> tuple[Quantity, ...]:
    """The parameters were chosen so that all losses come out nearly the same (the appendix)."""
    ours = runs.find(setting, "COLDQ")
    return tuple(
        apart(f"{run.entry.label} against COLDQ", ours.loss, run.loss, EQUAL_LOSS_TOLERANCE)
        for run in _compared_with(runs, setting)
    )


@_claim("significantly-less-violation", "COLDQ violates significantly less than RECOO")
def significantly_less_violation(runs: FigureRuns, setting: Setting) -> tuple[Quantity, ...]:
    """Significant reductions in the hard constraint violation compared to RECOO."""
    ours, theirs = _both(runs, setting)
    return (lower("violation below", ours.violation, theirs.violation, SIGNIFICANT_REDUCTION),)


@_claim(
    "no-violation", "COLDQ does not violate the constraint at all, as its published curve shows"
)
def no_violation(runs: FigureRuns, setting: Setting) -> tuple[Quantity, ...]:
    """The published curve of COLDQ's violation stays at zero."""
    worst = float(runs.find(setting, "COLDQ").violation.max())
    return (Quantity("the worst seed", worst, (0.0, worst), "at most", ZERO_VIOLATION, unit=""),)


def cheaper_at_equal_service(runs: FigureRuns) -> Iterator[Verdict]:
    """A significant reduction in the energy cost without compromising the service quality."""
    for setting in _claimed(runs):
        ours = runs.find(setting, "COLDQ")
        jobs = np.full_like(ours.loss, setting.problem.mean_arrivals * setting.problem.horizon)
        for label in ("RECOO", TUNED_RECOO, "Yi 2023"):
            theirs = runs.find(setting, label)
            yield Verdict(
                "cheaper-at-equal-service",
                runs.figure.key,
                f"COLDQ spends significantly less than {label}, serving as many jobs in time",
                setting.title,
                (
                    lower("cost below", ours.loss, theirs.loss, SIGNIFICANT_SAVING),
                    _compared(
                        "more delayed jobs, of all arrivals",
                        lambda a, b, arrivals: (a - b) / arrivals,
                        (ours.violation, theirs.violation, jobs),
                        "at most",
                        DELAY_TOLERANCE,
                    ),
                ),
            )


def as_cheap_as_published(runs: FigureRuns) -> Iterator[Verdict]:
    """The saving against RECOO is as large as the end points of the published curves show."""
    curves = runs.figure.curves
    shown = 1.0 - final(curves, "loss", "COLDQ") / final(curves, "loss", "RECOO")
    for setting in _claimed(runs):
        ours, theirs = _both(runs, setting)
        yield Verdict(
            "as-cheap-as-published",
            runs.figure.key,
            f"COLDQ spends {100.0 * shown:.0f}% less than RECOO, as the published curves show",
            setting.title,
            (lower("cost below", ours.loss, theirs.loss, shown),),
        )


def fast_enough(runs: FigureRuns) -> Iterator[Verdict]:
    """Each algorithm takes at most 10 ms an iteration (the appendix)."""
    label, seconds = max(runs.seconds_per_slot.items(), key=lambda item: item[1])
    quantity = Quantity(
        f"the slowest, {label}", 1e3 * seconds, None, "at most", MAX_MILLISECONDS, unit="ms"
    )
    yield Verdict(
        "fast-enough",
        runs.figure.key,
        "every algorithm takes at most 10 ms an iteration",
        "one seed alone, problem included",
        (quantity,),
    )


def _compared_with(runs: FigureRuns, setting: Setting) -> tuple[Run, ...]:
    """The runs that stand for the paper's other curves, in every reading of their parameters."""
    plotted = [e.learner for e in runs.figure.entries if e.published and e.label != "COLDQ"]
    return tuple(
        run
        for run in runs.of(setting)
        if run.entry.learner in plotted and run.entry.label != TUNED_RECOO
    )


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "time-varying": (
        violation_without_loss,
        violation_at_equal_loss,
        nearly_the_same_loss,
        fast_enough,
    ),
    "quadratic": (significantly_less_violation, no_violation, nearly_the_same_loss, fast_enough),
    "linear": (significantly_less_violation, no_violation, nearly_the_same_loss, fast_enough),
    "jobs": (cheaper_at_equal_service, as_cheap_as_published, fast_enough),
}


def check_claims(runs: FigureRuns) -> tuple[Verdict, ...]:
    """The verdicts on every claim about one figure."""
    return tuple(verdict for claim in CLAIMS[runs.figure.key] for verdict in claim(runs))
