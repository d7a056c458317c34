"""Intervals over seeds or blocks of slots, p-values, and who is ahead by their means."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from coldq.base.arrays import Array

RESAMPLES = 2000
EQUAL_LOSS_TOLERANCE = 0.001  # at most 0.1% above
BLOCK_SLOTS = 48  # slots of a block, four hours of five minutes
MAX_BLOCKS = 1000  # of a run: samples of more would not fit into memory
# Fewer than six blocks of a difference have the same sign by chance more often than in 5% of cases.
MIN_TESTED_SLOTS = 6 * BLOCK_SLOTS  # slots that a p-value needs


def mean_interval(samples: Array) -> tuple[float, float]:
    """A mean, and the half-width of its 95% interval (Student's t); NaN for one sample.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import mean_interval
    >>> mean, half = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(half, 3)
    (2.0, 2.484)
    """
    if samples.size < 2:
        return float(samples.mean()), float("nan")
    from scipy.special import stdtrit

    quantile = stdtrit(samples.size - 1, 0.975)
    return float(samples.mean()), float(quantile * samples.std(ddof=1) / np.sqrt(samples.size))


def with_interval(samples: Array) -> str:
    """A mean to five digits, and the half-width of its 95% interval to two.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import with_interval
    >>> with_interval(np.array([941.2, 939.7])), with_interval(np.array([412345.6, 409876.5]))
    ('940.45 ± 9.5', '411,111 ± 15,686')
    >>> with_interval(np.array([0.03, 0.05])), with_interval(np.array([7.0]))
    ('0.04 ± 0.13', '7')
    """
    mean, half = mean_interval(samples)
    return brief(mean, digits=5) + (f" ± {brief(half, digits=2)}" if samples.size > 1 else "")


def brief(value: float, sign: str = "", digits: int = 4) -> str:
    """A number to so many digits, up to a thousand million with all that it has before the point.

    >>> from coldq.evaluation.intervals import brief
    >>> brief(1351234.5), brief(12.3456), brief(0.00012), brief(3.0, "+"), brief(99.7, digits=2)
    ('1,351,234', '12.35', '0.00012', '+3', '100')
    """
    size = abs(value)
    if size >= 1e9 or 0.0 < size < 1e-3:
        return f"{value:{sign}.{digits}g}"
    return f"{value:{sign},.{digits}g}" if size < 10 ** (digits - 1) else f"{value:{sign},.0f}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> from coldq.evaluation.intervals import duration
    >>> duration(30438.6), duration(124.3), duration(1.69e-4), duration(0.0306), duration(4.2)
    ('8.5 hours', '2.07 minutes', '169 µs', '30.6 ms', '4.2 s')
    """
    for limit, size, unit in (
        (1e-3, 1e-6, "µs"),
        (1.0, 1e-3, "ms"),
        (90.0, 1.0, "s"),
        (5400.0, 60.0, "minutes"),
    ):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 3600.0:.1f} hours"


def tuned_to(target: float, loss: Array, violation: Array) -> int:
    """The place that violates least among those whose mean loss is as low as a target.

    Where none is as low, the one that comes closest: how the paper compares learners.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import tuned_to
    >>> tuned_to(10.0, np.array([9.0, 10.005, 12.0]), np.array([5.0, 3.0, 1.0]))
    1
    """
    low = np.flatnonzero(as_low(loss, target))
    return int(low[violation[low].argmin()] if low.size else loss.argmin())


def as_low(loss: Array, target: float) -> np.ndarray:
    """Whether a mean loss counts as one that is as low as a target: at most 0.1% above."""
    return loss <= target + EQUAL_LOSS_TOLERANCE * abs(target)


def front(means: Array) -> tuple[int, ...]:
    """The places that no other beats: nowhere worse and somewhere better; by the first measure.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import front
    >>> front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [2.5, 2.5]]))
    (1, 2, 0)
    """
    least, places = np.inf, []
    for place in np.lexsort((means[:, 1], means[:, 0])):
        same = places and (means[place] == means[places[-1]]).all()
        if means[place, 1] < least or same:
            places.append(int(place))
            least = means[place, 1]
    return tuple(places)


def resampled_places(count: int) -> np.ndarray:
    """Places of as many seeds, drawn with replacement, (RESAMPLES, count); the same always."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))


def bootstrap(statistic: Callable[..., Array], *samples: Array) -> tuple[float, float] | None:
    """The 95% percentile interval of a statistic of means, seeds drawn with replacement together.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import bootstrap
    >>> low, high = bootstrap(lambda a: a, np.arange(20.0))
    >>> low < 9.5 < high
    True
    """
    count = samples[0].size
    if count < 2:
        return None
    drawn = resampled_places(count)
    values = np.sort(statistic(*(sample[drawn].mean(axis=1) for sample in samples)))
    cut = RESAMPLES // 40  # 2.5% at either end
    return float(values[cut]), float(values[-1 - cut])


def interval(series: Array) -> tuple[float, float, float]:
    """The mean of (S, T) and its 95% interval: over seeds, or of one seed by blocks of slots.

    A mean alone, of one seed and one slot, has no interval.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import interval
    >>> interval(np.array([[1.0, 3.0], [2.0, 2.0]])), interval(np.ones((1, 9)))
    ((2.0, 2.0, 2.0), (1.0, 1.0, 1.0))
    """
    if len(series) > 1:
        mean, half = mean_interval(series.mean(axis=1))
        return mean, mean - half, mean + half
    if series.size == 1:
        return float(series[0, 0]), np.nan, np.nan
    return block_interval(series[0])


def block_interval(
    series: Array, statistic: Callable[[Array], Array] | None = None
) -> tuple[float, float, float]:
    """The mean of a series and its 95% interval by a circular block bootstrap; bits stay the same.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import block_interval
    >>> mean, low, high = block_interval(np.arange(200.0) % 7)
    >>> low < mean < high
    True
    """
    value = statistic or (lambda mean: mean)
    low, high = np.quantile(value(block_means(series)), (0.025, 0.975))
    return float(value(series.mean(axis=-1))), float(low), float(high)


def block_length(slots: int) -> int:
    """How many slots a block has: 48, fewer in a short run, more in a very long one.

    >>> from coldq.evaluation.intervals import block_length
    >>> block_length(1344), block_length(100), block_length(1_000_000)
    (48, 25, 1000)
    """
    return min(max(BLOCK_SLOTS, slots // MAX_BLOCKS), max(slots // 4, 1))


def block_means(series: Array) -> Array:
    """The means of samples of a series that are put together from its blocks, the same always.

    A block that reaches the end goes on at the beginning: else the slots near both ends were drawn
    less often than the others, and the samples' own mean were not that of the series.
    """
    T = series.shape[-1]
    block = block_length(T)
    starts = np.random.default_rng(0).integers(0, T, (RESAMPLES, -(-T // block)))
    around = np.concatenate([series, series[..., : block - 1]], axis=-1)
    sums = np.cumsum(around, axis=-1)
    sums = np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)
    return (sums[..., starts + block] - sums[..., starts]).mean(axis=-1) / block


def p_value(series: Array) -> float:
    """How likely a mean of (S, T) is as far from zero by chance: Student's t over the seeds.

    Of one seed it is how often the blocks of the series without its mean would have one as far, or
    1 where the series is too short to tell.

    >>> import numpy as np
    >>> from coldq.evaluation.intervals import p_value
    >>> noise = np.random.default_rng(0).standard_normal((1, 500))
    >>> p_value(noise + 1.0) < 0.01, p_value(noise - noise.mean()) > 0.5
    (True, True)
    """
    if not series.any():
        return 1.0
    if len(series) > 1:
        from scipy.special import stdtr

        samples = series.mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(samples.mean()) / (samples.std(ddof=1) / np.sqrt(samples.size))
        return float(2.0 * stdtr(samples.size - 1, -size)) if size > 0.0 else 1.0
    if series.size < MIN_TESTED_SLOTS:
        return 1.0
    means = block_means(series[0])
    far = np.abs(means - means.mean()) >= abs(series.mean())
    return float((1 + far.sum()) / (1 + far.size))


def holm(p: Iterable[float]) -> list[float]:
    """p-values that hold together: Holm's step-down correction.

    >>> from coldq.evaluation.intervals import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.array(list(p))
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)) if len(p) else p
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected.tolist()
