"""Safety margins around forecasts, as small values: what :class:`~coldq.ForecastWithMargin` takes.

The error of row n in slot t is by how much ``g_t^n`` is above what was expected of it at x_t. Each
row has its errors and its margin; what is learned from violations is learned from one event a slot,
"some row is violated". Parameters may be arrays over leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, fraction, non_negative, positive, whole_number
from coldq.base.describe import describable
from coldq.learners.limit_forecasts import share_of_one, smoothed

DEFAULT_WINDOW = 1000  # errors
UNIT_WINDOW = 100  # errors whose largest is the unit of a step
MAX_ANGLE = 1.5  # radians: the tangent is 14 there, where the paper's margin becomes infinite


class Judged(NamedTuple):
    """What a margin sees of slot t.

    `expected` (..., N) has the limits expected in slot t + 1, `error` (..., N) those of slot t,
    `violated` (...) says whether some row was. In slot 1 nothing was expected: its error is 0.
    """

    t: np.ndarray
    expected: Array
    error: Array
    violated: np.ndarray


class Margin(Value):
    """The base of margins."""

    kept = 0  # errors of a row that are kept, newest first
    numbers = 0  # of a row that are kept beside them

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of its parameters."""
        return ()

    def next(self, now: Judged, errors: Array, numbers: Array) -> tuple[Array, Array]:
        """The margins of slot t + 1, of shape (..., N), and the numbers after slot t.

        `errors` (..., N, kept) has those of slots t, t - 1, ..., as :meth:`record` keeps them.
        """
        raise NotImplementedError

    def record(self, now: Judged, numbers: Array) -> Array:
        """The error of slot t as it is kept."""
        return now.error


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ShareOfLimit(Margin):
    """A share of the size of the limit that is expected, chosen by hand.

    >>> import coldq
    >>> coldq.margins.ShareOfLimit(0.2)
    ShareOfLimit(share=0.2)
    """

    share: Array

    def __init__(self, share: ArrayLike) -> None:
        self._set(share=non_negative("share", share))

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the share."""
        return self.share.shape

    def next(self, now: Judged, errors: Array, numbers: Array) -> tuple[Array, Array]:
        """``share |limit|``."""
        return self.share[..., None] * np.abs(now.expected), numbers


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class RollingQuantile(Margin):
    """The quantile of the last `window` errors of each row, one `level` for all rows.

    Of n errors it is the ``ceil((n + 1) (1 - level))``-th smallest, the largest if there is none
    such, and 0 before there is an error.

    Parameters
    ----------
    level
        In (0, 1): the share of errors that should be above.
    window
        How many errors.
    weight
        Errors are divided by the average size of those before, with this weight on the last one,
        and the quantile multiplied by it. None leaves them as they are.

    >>> import coldq
    >>> coldq.margins.RollingQuantile(0.05, window=200)
    RollingQuantile(level=0.05, window=200, weight=None)
    """

    level: Array
    window: int
    weight: Array | None

    def __init__(
        self, level: ArrayLike, window: int = DEFAULT_WINDOW, weight: ArrayLike | None = None
    ) -> None:
        self._set(
            level=fraction("level", level),
            window=whole_number("window", window, 1),
            weight=None if weight is None else share_of_one("weight", weight),
        )

    @property
    def kept(self) -> int:  # type: ignore[override]
        """The window."""
        return self.window

    @property
    def numbers(self) -> int:  # type: ignore[override]
        """The average size of errors, if they are scaled."""
        return 0 if self.weight is None else 1

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the level and the weight."""
        own = () if self.weight is None else self.weight.shape
        return np.broadcast_shapes(self.level.shape, own)

    def record(self, now: Judged, numbers: Array) -> Array:
        """The error, in units of the average size of those before."""
        if self.weight is None:
            return now.error
        size = np.where((now.t <= 2)[..., None], np.abs(now.error), numbers[..., 0])
        return np.where(size > 0.0, now.error / np.where(size > 0.0, size, 1.0), 0.0)

    def next(self, now: Judged, errors: Array, numbers: Array) -> tuple[Array, Array]:
        """The quantile, in the rows' own units."""
        margin = quantile(errors, now.t - 1, self.level[..., None])
        if self.weight is None:
            return margin, numbers
        size = smoothed(np.abs(now.error), numbers[..., 0], self.weight, now.t <= 2)
        return margin * size, size[..., None]


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class AdaptiveConformal(Margin):
    """Adaptive conformal inference: a rolling quantile whose level follows the violations.

        alpha_{t+1} = alpha_t + step (level - [some row is violated in slot t])

    The margin of each row is the quantile of its last `window` errors at alpha, which all rows
    share; at 0 and below it is the largest of them.

    Parameters
    ----------
    level
        In (0, 1): the share of slots that may be violated, and the first alpha.
    step
        A positive number.
    window
        How many errors.

    References
    ----------
    Gibbs and Candes, NeurIPS 2021, eq. (2).

    >>> import coldq
    >>> coldq.margins.AdaptiveConformal(0.05)
    AdaptiveConformal(level=0.05, step=0.005, window=1000)
    """

    level: Array
    step: Array
    window: int
    numbers = 1

    def __init__(
        self, level: ArrayLike, step: ArrayLike = 0.005, window: int = DEFAULT_WINDOW
    ) -> None:
        self._set(
            level=fraction("level", level),
            step=positive("step", step),
            window=whole_number("window", window, 1),
        )

    @property
    def kept(self) -> int:  # type: ignore[override]
        """The window."""
        return self.window

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the level and the step."""
        return np.broadcast_shapes(self.level.shape, self.step.shape)

    def next(self, now: Judged, errors: Array, numbers: Array) -> tuple[Array, Array]:
        """The quantile at the level after the slot's violation."""
        moved = (self.step * (self.level - now.violated))[..., None]
        first = (now.t == 1)[..., None]
        alpha = np.where(first, self.level[..., None], numbers[..., 0] + moved)
        return quantile(errors, now.t - 1, alpha), alpha[..., None]


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ConformalPID(Margin):
    """Conformal PID control without a scorecaster: a quantile tracker and error integration.

        tracker_{t+1} = tracker_t + step B_t e_t,     e_t = [some row is violated in slot t] - level
        margin_{t+1} = tracker_{t+1} + gain B_t tan(E_t log(t) / (saturation t)),  E_t = sum e

    with B_t the largest size of the row's last 100 errors. All rows share e_t. The paper's margin
    is infinite from an angle of pi/2 on; here the angle stays below 1.5.

    Parameters
    ----------
    level
        In (0, 1): the share of slots that may be violated.
    step
        The tracker's, a positive number.
    gain, saturation
        Those of the integration, K_I in units of B_t and C_sat.

    References
    ----------
    Angelopoulos, Candes and Tibshirani, NeurIPS 2023.

    >>> import coldq
    >>> coldq.margins.ConformalPID(0.05)
    ConformalPID(level=0.05, step=0.05, gain=1.0, saturation=5.0)
    """

    level: Array
    step: Array
    gain: Array
    saturation: Array
    kept = UNIT_WINDOW
    numbers = 2

    def __init__(
        self,
        level: ArrayLike,
        step: ArrayLike = 0.05,
        gain: ArrayLike = 1.0,
        saturation: ArrayLike = 5.0,
    ) -> None:
        self._set(
            level=fraction("level", level),
            step=positive("step", step),
            gain=non_negative("gain", gain),
            saturation=positive("saturation", saturation),
        )

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the parameters together."""
        parts = (self.level, self.step, self.gain, self.saturation)
        return np.broadcast_shapes(*(part.shape for part in parts))

    def next(self, now: Judged, errors: Array, numbers: Array) -> tuple[Array, Array]:
        """The tracker and the saturated integral."""
        judged = now.t > 1
        e = np.where(judged, now.violated - self.level, 0.0)[..., None]
        largest = np.abs(errors).max(axis=-1)
        tracker = numbers[..., 0] + self.step[..., None] * largest * e
        total = numbers[..., 1] + e
        slots = np.maximum(now.t - 1, 1)
        slower = (np.log(slots + 1.0) / (self.saturation * (slots + 1.0)))[..., None]
        angle = np.clip(total * slower, -MAX_ANGLE, MAX_ANGLE)
        margin = tracker + self.gain[..., None] * largest * np.tan(angle)
        return margin, np.stack([tracker, np.broadcast_to(total, tracker.shape)], axis=-1)


def quantile(errors: Array, count: np.ndarray, level: Array) -> Array:
    """Of the newest `count` errors (..., N, window) the quantile that a share `level` is above.

    >>> import numpy as np
    >>> from coldq.learners.margins import quantile
    >>> quantile(np.array([[3.0, 1.0, 2.0, 9.0]]), np.array(3), np.array([0.5]))
    array([2.])
    """
    n = np.minimum(count, errors.shape[-1])[..., None]
    least, most = n.min(initial=errors.shape[-1]), max(int(n.max(initial=0)), 1)
    known = errors[..., :most]
    if least < most:  # of members that are in different slots
        known = np.where(np.arange(most) < n[..., None], known, np.inf)
    place = np.clip(np.ceil((n + 1) * (1.0 - level)), 1, np.maximum(n, 1)).astype(np.intp) - 1
    place = np.broadcast_to(place, errors.shape[:-1])[..., None]
    found = np.take_along_axis(np.sort(known, axis=-1), place, axis=-1)[..., 0]
    return np.where(n > 0, found, 0.0)
