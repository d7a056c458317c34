"""How a total grows with the horizon, and whether that is within a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coldq.base.arrays import Array
from coldq.evaluation.intervals import resampled_places
from coldq.learners.card import Largest, Rate

ZERO_TOTAL_A_SLOT = 1e-9  # a total below this many times T counts as zero
EXPONENT_TOLERANCE = 0.05  # of an exponent: what a finite range of horizons may be off by


@dataclass(frozen=True)
class Growth:
    """The exponent of a total's growth, with a 95% interval over seeds, and what to call it.

    `kind` is "zero", "not positive", "bounded", "log T" or "power"; the first two have no exponent.

    >>> import numpy as np
    >>> from coldq.paper.rates.growth import growth
    >>> T = np.array([256, 1024, 4096, 16384, 65536])
    >>> print(growth(T, 3.0 * T[:, None] ** 0.5 * np.ones(4)))
    T^0.50
    >>> print(growth(T, np.log(T)[:, None] + np.ones(4))), print(growth(T, np.zeros((5, 4))))
    log T
    zero
    (None, None)
    """

    kind: str
    slope: float = np.nan
    low: float = np.nan
    high: float = np.nan

    def __str__(self) -> str:
        return f"T^{self.slope:.2f}" if self.kind == "power" else self.kind


def upper_half(horizons: Sequence[int] | Array) -> slice:
    """The upper half of a range of horizons, the middle one included."""
    return slice((len(horizons) - 1) // 2, None)


def growth(horizons: Sequence[int] | Array, totals: Array) -> Growth:
    """Fit the growth of totals (T, S) on the upper half of the horizons.

    The exponent is the slope of the logarithm of the mean over seeds; its interval comes from
    drawing seeds anew.
    """
    here = upper_half(horizons)
    T, totals = np.asarray(horizons, float)[here], np.asarray(totals, float)[here]
    mean = totals.mean(axis=1)
    if abs(mean[-1]) < ZERO_TOTAL_A_SLOT * T[-1]:
        return Growth("zero")
    if not (mean > 0.0).all():
        return Growth("not positive")
    slope = float(_slope(T, mean))
    means = totals[:, resampled_places(totals.shape[1])].mean(axis=-1)
    slopes = _slope(T, means[:, (means > 0.0).all(axis=0)])
    low, high = (float(q) for q in np.percentile(slopes, [2.5, 97.5]))
    kind = "power"
    if high <= EXPONENT_TOLERANCE:
        kind = "bounded"
    elif slope < 0.25 and _logarithmic(T, mean):
        kind = "log T"
    return Growth(kind, slope, low, high)


def _slope(T: Array, totals: Array) -> Array:
    """The least-squares slope of log(totals) over log(T), along the first axis."""
    t = np.log(T) - np.log(T).mean()
    return np.tensordot(t, np.log(totals), 1) / (t @ t)


def _logarithmic(T: Array, mean: Array) -> bool:
    """Whether a + b log T fits better than a power, relative to the totals."""
    line = np.polyval(np.polyfit(np.log(T), mean, 1), np.log(T))
    power = np.exp(np.polyval(np.polyfit(np.log(T), np.log(mean), 1), np.log(T)))
    return bool(np.square(line / mean - 1.0).sum() <= np.square(power / mean - 1.0).sum())


def claimed(rate: Rate | Largest, horizons: Sequence[int] | Array, vx: float, vg: float) -> float:
    """The slope that a claimed rate itself has on the same horizons, its logarithms included.

    >>> from coldq.paper.rates.growth import claimed
    >>> from coldq.learners.card import Rate
    >>> claimed(Rate(0.5, vx=0.5), [1024, 4096, 16384], vx=0.5, vg=0.0)
    0.75
    """
    T = np.asarray(horizons, float)[upper_half(horizons)]
    return round(float(_slope(T, T ** rate.exponent(vx, vg) * np.log(T) ** rate.log)), 9)


def verdict(grown: Growth, claim: float) -> str:
    """ "within" the claim, "better" or "worse", by the interval and a margin of 0.05.

    >>> from coldq.paper.rates.growth import Growth, verdict
    >>> [verdict(Growth("power", s, s - 0.01, s + 0.01), 0.5) for s in (0.3, 0.52, 0.6)]
    ['better', 'within', 'worse']
    """
    if grown.kind in ("zero", "not positive"):
        return "better" if claim > 0.0 else "within"
    if grown.low > claim + EXPONENT_TOLERANCE:
        return "worse"
    return "better" if grown.high < claim - EXPONENT_TOLERANCE else "within"
