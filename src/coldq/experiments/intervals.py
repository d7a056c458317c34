"""Intervals over seeds, and who is ahead by their means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coldq._values import Array

RESAMPLES = 2000
AS_LOW_A_LOSS = 0.001  # at most 0.1% above


def mean_interval(samples: Array) -> tuple[float, float]:
    """A mean, and the half-width of its 95% interval (Student's t); NaN for one sample.

    >>> import numpy as np
    >>> from coldq.experiments.intervals import mean_interval
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
    >>> from coldq.experiments.intervals import with_interval
    >>> with_interval(np.array([941.2, 939.7])), with_interval(np.array([412345.6, 409876.5]))
    ('940.45 ± 9.5', '411,111 ± 15,686')
    >>> with_interval(np.array([0.03, 0.05])), with_interval(np.array([7.0]))
    ('0.04 ± 0.13', '7')
    """
    mean, half = mean_interval(samples)
    return brief(mean, digits=5) + (f" ± {brief(half, digits=2)}" if samples.size > 1 else "")


def brief(value: float, sign: str = "", digits: int = 4) -> str:
    """A number to so many digits, up to a thousand million with all that it has before the point.

    >>> from coldq.experiments.intervals import brief
    >>> brief(1351234.5), brief(12.3456), brief(0.00012), brief(3.0, "+"), brief(99.7, digits=2)
    ('1,351,234', '12.35', '0.00012', '+3', '100')
    """
    size = abs(value)
    if size >= 1e9 or 0.0 < size < 1e-3:
        return f"{value:{sign}.{digits}g}"
    return f"{value:{sign},.{digits}g}" if size < 10 ** (digits - 1) else f"{value:{sign},.0f}"


def tuned_to(target: float, loss: Array, violation: Array) -> int:
    """The place that violates least among those whose mean loss is as low as a target.

    Where none is as low, the one that comes closest: how the paper compares learners.

    >>> import numpy as np
    >>> from coldq.experiments.intervals import tuned_to
    >>> tuned_to(10.0, np.array([9.0, 10.005, 12.0]), np.array([5.0, 3.0, 1.0]))
    1
    """
    low = np.flatnonzero(as_low(loss, target))
    return int(low[violation[low].argmin()] if low.size else loss.argmin())


def as_low(loss: Array, target: float) -> np.ndarray:
    """Whether a mean loss counts as one that is as low as a target: at most 0.1% above."""
    return loss <= target + AS_LOW_A_LOSS * abs(target)


def front(means: Array) -> tuple[int, ...]:
    """The places that no other beats: nowhere worse and somewhere better; by the first measure.

    >>> import numpy as np
    >>> from coldq.experiments.intervals import front
    >>> front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [2.5, 2.5]]))
    (1, 2, 0)
    """
    least, found = np.inf, []
    for place in np.lexsort((means[:, 1], means[:, 0])):
        same = found and (means[place] == means[found[-1]]).all()
        if means[place, 1] < least or same:
            found.append(int(place))
            least = means[place, 1]
    return tuple(found)


def drawn_anew(count: int) -> np.ndarray:
    """Places of as many seeds, drawn with replacement, (RESAMPLES, count); the same always."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))


def bootstrap(statistic: Callable[..., Array], *samples: Array) -> tuple[float, float] | None:
    """The 95% percentile interval of a statistic of means, seeds drawn with replacement together.

    >>> import numpy as np
    >>> from coldq.experiments.intervals import bootstrap
    >>> low, high = bootstrap(lambda a: a, np.arange(20.0))
    >>> low < 9.5 < high
    True
    """
    count = samples[0].size
    if count < 2:
        return None
    drawn = drawn_anew(count)
    values = np.sort(statistic(*(sample[drawn].mean(axis=1) for sample in samples)))
    cut = RESAMPLES // 40  # 2.5% at either end
    return float(values[cut]), float(values[-1 - cut])
