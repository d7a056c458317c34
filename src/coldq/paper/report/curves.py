"""What both the page and the pictures draw: curves over time, how they look, what fits a frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from coldq.base.arrays import Array
from coldq.base.palette import BLACK, BLUE, GREEN, ORANGE, PALETTE, PURPLE, SKY, VERMILION, Look
from coldq.paper.figures import Setting
from coldq.paper.published import published_curve
from coldq.paper.runs import TUNED_RECOO, FigureRuns

NO_VIOLATION = 1e-6  # a violation that ends below this is none


LOOKS = {
    "COLDQ": BLUE,
    "RECOO": VERMILION,
    "Yi 2021": GREEN,
    "Yi 2023": GREEN,
    "COLDQ-Expert": SKY,
    "Sinha-Vaze": PURPLE,
    TUNED_RECOO: ORANGE,
    "Yi 2021, printed gamma": BLACK,
}


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for every label: its own in all figures, or else one that is not yet taken.

    >>> from coldq.paper.report.curves import looks
    >>> looks(["COLDQ", "mine"])["mine"].marker
    's'
    """
    labels = tuple(dict.fromkeys(labels))
    own = {label: LOOKS[label] for label in labels if label in LOOKS}
    free = [look for look in PALETTE if look not in own.values()] or list(PALETTE)
    others = (label for label in labels if label not in own)
    return own | {label: free[i % len(free)] for i, label in enumerate(others)}


@dataclass(frozen=True, eq=False)
class Curve:
    """A learner's loss or violation over the slots t: mean and range of the seeds.

    `plotted` says whether the paper plots the learner. `published` is its curve there (slots,
    values) up to the last slot, where the published figure can have been drawn from the setting.
    """

    label: str
    t: Array
    mean: Array
    low: Array
    high: Array
    seeds: int
    plotted: bool
    published: tuple[Array, Array] | None

    @property
    def drawn(self) -> Array:
        """The values that are drawn, all of them in one."""
        published = () if self.published is None else self.published[1]
        return np.concatenate([self.low, self.high, published])


def curves(runs: FigureRuns, setting: Setting, measure: str) -> tuple[Curve, ...]:
    """The curves of one panel, "loss" or "violation", measured as the paper's figure does."""
    drawn = []
    for run in runs.of(setting):
        values = run.running(measure, averaged=runs.figure.averaged)
        slots = thinned(values.shape[1])
        chosen = values[:, slots - 1]
        name = run.entry.published
        drawn.append(
            Curve(
                label=run.entry.label,
                t=slots.astype(float),
                mean=chosen.mean(axis=0),
                low=chosen.min(axis=0),
                high=chosen.max(axis=0),
                seeds=len(values),
                plotted=name is not None,
                published=None
                if name is None or not setting.drawn
                else _until(values.shape[1], *published_curve(runs.figure.curves, measure, name)),
            )
        )
    return tuple(drawn)


def thinned(horizon: int, count: int = 240) -> np.ndarray:
    """Slots to draw: the first and the last, half of them dense early, half evenly spread.

    >>> from coldq.paper.report.curves import thinned
    >>> slots = thinned(5000)
    >>> int(slots[0]), int(slots[1]), int(slots[-1]), len(slots) <= 240
    (1, 2, 5000, True)
    """
    early = np.geomspace(1.0, horizon, count // 2)
    evenly = np.linspace(1.0, horizon, count - count // 2)
    return np.unique(np.rint(np.concatenate([early, evenly])).astype(int))


def _until(horizon: int, t: Array, values: Array) -> tuple[Array, Array]:
    """A curve cut at the horizon."""
    kept = t <= horizon
    if kept.all():
        return t, values
    end = np.interp(horizon, t, values)
    return np.append(t[kept], horizon), np.append(values[kept], end)


def frame(drawn: Iterable[Curve]) -> tuple[float, float]:
    """The range of values that shows the learners of the paper, or all where it plots none."""
    drawn = tuple(drawn)
    fitted = [curve for curve in drawn if curve.plotted] or drawn
    values = np.concatenate([curve.drawn for curve in fitted])
    least, greatest = float(values.min()), float(values.max())
    margin = 0.04 * (greatest - least) or 1.0
    return least - margin, greatest + margin


def outside(drawn: Iterable[Curve]) -> tuple[Curve, ...]:
    """The curves that end outside that frame."""
    drawn = tuple(drawn)
    low, high = frame(drawn)
    return tuple(curve for curve in drawn if not low <= curve.mean[-1] <= high)


def log_floor(drawn: Iterable[Curve]) -> float | None:
    """The power of ten where a logarithmic axis may begin; None where there is nothing above zero.

    A curve's first hundredth is not needed. A learner that ends at nothing cannot be on the axis:
    where there is one, a decade below every other end shows how far below it is.
    """
    drawn = tuple(drawn)
    means = [curve.mean for curve in drawn if curve.mean[-1] > NO_VIOLATION]
    if not means:
        return None
    below = 1.0 if len(means) == len(drawn) else 0.1
    least = min(min(mean[mean >= 1e-2 * mean[-1]].min(), below * mean[-1]) for mean in means)
    return float(10.0 ** np.floor(np.log10(least)))


def spans_magnitudes(drawn: Iterable[Curve]) -> bool:
    """Whether the ends lie so far apart that only a logarithmic axis shows them all."""
    ends = [float(curve.mean[-1]) for curve in drawn]
    return min(ends) >= -NO_VIOLATION and max(ends) > 20.0 * max(min(ends), NO_VIOLATION)
