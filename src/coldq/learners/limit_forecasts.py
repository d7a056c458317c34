"""Forecasts of the limits of rows, as small values: what :class:`~coldq.ForecastWithMargin` takes.

Each row's limit is a series of its own. A forecast reads the last limits, newest first, and may
keep some numbers for each row. Its parameters may be arrays over leading axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, is_several, real_array, whole_number
from coldq.base.contractions import dot, matvec
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput

START_VARIANCE = 100.0  # of the regression's weights, for limits of size 1
MAX_VARIANCE = 1e8  # above this nothing is forgotten: what does not vary says nothing


class LimitForecast(Value):
    """The base of forecasts of limits."""

    kept = 1  # past limits of a row that are read
    numbers = 0  # of a row that are kept beside them

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of its parameters."""
        return ()

    def next(self, past: Array, numbers: Array, t: np.ndarray) -> tuple[Array, Array]:
        """The limits expected in slot t + 1, of shape (..., N), and the numbers after slot t.

        `past` (..., N, kept) has the limits of slots t, t - 1, ..., and zeros before slot 1.
        """
        raise NotImplementedError


@describable
@dataclass(frozen=True, eq=False, repr=False)
class LastValue(LimitForecast):
    """The next limit is the last one.

    >>> import coldq
    >>> coldq.limit_forecasts.LastValue()
    LastValue()
    """

    def next(self, past: Array, numbers: Array, t: np.ndarray) -> tuple[Array, Array]:
        """The newest limits."""
        return past[..., 0], numbers


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ExponentialSmoothing(LimitForecast):
    """The average of the limits so far, `weight` in (0, 1] on the last one.

    >>> import coldq
    >>> coldq.limit_forecasts.ExponentialSmoothing(0.3)
    ExponentialSmoothing(weight=0.3)
    """

    weight: Array
    numbers = 1

    def __init__(self, weight: ArrayLike) -> None:
        self._set(weight=share_of_one("weight", weight))

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the weight."""
        return self.weight.shape

    def next(self, past: Array, numbers: Array, t: np.ndarray) -> tuple[Array, Array]:
        """The average, which begins at the first limit."""
        average = smoothed(past[..., 0], numbers[..., 0], self.weight, t == 1)
        return average, average[..., None]


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class SeasonalValue(LimitForecast):
    """The limit of a `period` before the next slot; the last one until there is one.

    >>> import coldq
    >>> coldq.limit_forecasts.SeasonalValue(288)
    SeasonalValue(period=288)
    """

    period: int

    def __init__(self, period: int) -> None:
        self._set(period=whole_number("period", period, 2))

    @property
    def kept(self) -> int:  # type: ignore[override]
        """A period of limits."""
        return self.period

    def next(self, past: Array, numbers: Array, t: np.ndarray) -> tuple[Array, Array]:
        """The oldest limits that are kept, or the newest."""
        return np.where((t >= self.period)[..., None], past[..., -1], past[..., 0]), numbers


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class AutoRegressive(LimitForecast):
    """Recursive least squares on a constant and the limits of some lags, the past forgotten slowly.

    The weights minimise the squared errors so far, an error of k slots ago times ``forgetting^k``;
    they begin as those of the last value. Limits are in units of the first one. A lag that has no
    limit yet stands for 0.

    Parameters
    ----------
    lags
        How many slots back, such as (1, 2, 3, day, day + 1).
    forgetting
        In (0, 1].

    >>> import coldq
    >>> coldq.limit_forecasts.AutoRegressive((1, 2, 24, 25)).kept
    26
    """

    lags: tuple[int, ...]
    forgetting: Array

    def __init__(self, lags: Iterable[int], forgetting: ArrayLike = 0.999) -> None:
        if not is_several(lags):
            raise InvalidInput(f"lags must be several, such as (1, 2, 3), but is {lags!r:.200}")
        found = tuple(sorted({whole_number("a lag", lag, 1) for lag in lags}))
        if not found:
            raise InvalidInput("lags must name at least one lag, but is empty")
        self._set(lags=found, forgetting=share_of_one("forgetting", forgetting))

    @property
    def kept(self) -> int:  # type: ignore[override]
        """As far back as the longest lag of the last slot."""
        return self.lags[-1] + 1

    @property
    def numbers(self) -> int:  # type: ignore[override]
        """The unit, the weights and their covariance."""
        d = len(self.lags) + 1
        return 1 + d + d * d

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the forgetting factor."""
        return self.forgetting.shape

    def next(self, past: Array, numbers: Array, t: np.ndarray) -> tuple[Array, Array]:
        """The regression once more, with the newest limits."""
        d, first = len(self.lags) + 1, (t == 1)[..., None]
        size = np.abs(past[..., 0])
        unit = np.where(first, np.where(size > 0.0, size, 1.0), numbers[..., 0])
        last_value = np.eye(d)[1]
        w = np.where(first[..., None], last_value, numbers[..., 1 : d + 1])
        spread = START_VARIANCE * np.eye(d)
        kept = numbers[..., d + 1 :].reshape(*numbers.shape[:-1], d, d)
        before = np.where(first[..., None, None], spread, kept)

        forgetting = self.forgetting[..., None]
        seen = self._regressors(past, unit, 1)
        turned: Array = matvec(before, seen)
        bent: Array = dot(seen, turned)
        gain = np.where(first, 0.0, 1.0 / (forgetting + bent))
        miss = past[..., 0] / unit - dot(w, seen)
        w = w + (gain * miss)[..., None] * turned
        P: Array = before - gain[..., None, None] * turned[..., :, None] * turned[..., None, :]
        wider = P / forgetting[..., None, None]
        most = np.diagonal(wider, axis1=-2, axis2=-1).max(axis=-1)
        forgets = (most <= MAX_VARIANCE)[..., None, None] & ~first[..., None, None]
        after = np.where(forgets, wider, P)
        after = np.where((bent >= 0.0)[..., None, None], after, spread)  # rounding has spoilt it

        expected = unit * dot(w, self._regressors(past, unit, 0))
        flat = after.reshape(*after.shape[:-2], d * d)
        return expected, np.concatenate([unit[..., None], w, flat], axis=-1)

    def _regressors(self, past: Array, unit: Array, ago: int) -> Array:
        """A one and the limits of all lags before the next slot, or before one some slots ago."""
        lagged = np.take(past, [lag - 1 + ago for lag in self.lags], axis=-1) / unit[..., None]
        return np.concatenate([np.ones((*unit.shape, 1)), lagged], axis=-1)


def share_of_one(name: str, value: ArrayLike) -> Array:
    """A number in (0, 1], or an array of them over leading axes."""
    array = real_array(name, value, 0)
    if not ((array > 0.0) & (array <= 1.0)).all():
        raise InvalidInput(f"{name} must lie in (0, 1], but is {array}")
    return array


def smoothed(new: Array, average: Array, weight: Any, first: np.ndarray) -> Array:
    """An average (..., N) with one more value, which is all of it at first.

    >>> import numpy as np
    >>> from coldq.learners.limit_forecasts import smoothed
    >>> smoothed(np.array([4.0]), np.array([2.0]), np.array(0.5), np.array(False))
    array([3.])
    """
    return np.where(first[..., None], new, average + weight[..., None] * (new - average))
