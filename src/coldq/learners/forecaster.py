"""What forecasts keep of the constraints so far, and what each expects of the next.

Slot t's limits are b_t, of shape (N). With P a period and w a weight, at the end of slot t

    Robust          r += max(w, 1/n) clip(b_t - r, -2 s, 2 s), s its usual surprise
    Seasonal        b_{t+1-P}
    SeasonalChange  b_t + b_{t+1-P} - b_{t-P}
    Regression      b_t + c <v, h>, where h are the changes that others expect, over their scale c

and v is found by recursive least squares: with h and c of the slot before and
``y = (b_t - b_{t-1}) / c``,

    k = C h,  v += k (y - <v, h>) / (f + <h, k>),  C = (C - k k' / (f + <h, k>)) / f.

Where the forgetting f lets C grow without anything to learn from, its trace is held. All of it is
computed by native/learners/forecasts.hpp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array
from coldq.base.contractions import Contraction, affine_value
from coldq.base.errors import InvalidInput
from coldq.learners.forecasts import (
    Last,
    MovingAverage,
    Own,
    Regression,
    Robust,
    Seasonal,
    SeasonalChange,
    Trend,
    with_data,
)
from coldq.learners.recent import Recent
from coldq.slot.constraints import Affine

OWN_TERMS, OWN_LEVELS = 3, 4  # of a regression, beside the terms of periods
FIRST_COVARIANCE = 0.1

# The numbers of the kinds in the table that the core reads, native/learners/forecasts.hpp.
KINDS = (Last, MovingAverage, Trend, Robust, Seasonal, SeasonalChange, Regression, Own)

remember_slot = Contraction("remember", "What is kept, see :meth:`Forecaster.remember`.")


class Kept(NamedTuple):
    """What forecasts keep: of data (rows, d), of limits as levels (L, N), in a regression's terms,
    coefficients (N, K) and covariance (N, K, K), and as they were in the last slots."""

    past: Array
    levels: Array
    terms: Array
    coefficients: Array
    covariance: Array
    recent: Any


class Forecaster:
    """Several forecasts together; their arrays are kept in the states of a learner."""

    def __init__(self, forecasts: tuple[Any, ...]) -> None:
        def of(*kinds: type) -> list[Any]:
            return [one for one in forecasts if type(one) in kinds]

        regressions, data = of(Regression), [*of(MovingAverage), *of(Trend)]
        if len(regressions) > 1:
            raise InvalidInput("forecasts may have one Regression, but have several")
        self.forecasts, self.own, robust = forecasts, of(Own), of(Robust)
        seasons = regressions[0].periods if regressions else ()
        self.n_terms = OWN_TERMS + 2 * len(seasons) if regressions else 0
        self.rows, self.lowest_at = 1 + len(data), len(robust)
        self.n_levels = len(robust) + 1 + (OWN_LEVELS if regressions else 0)

        asked = [one.period for one in of(Seasonal, SeasonalChange)]
        periods = np.array(sorted({*asked, *seasons}), np.int64)
        place = {int(P): k for k, P in enumerate(periods)}
        slots = (int(P) + 1 for P in periods), (one.slots for one in self.own)
        self.slots = max((*slots[0], *slots[1], 2 * len(regressions)))
        # The core asks for the limits of slots t + 1 - P and t - P of all periods, and of t - 1.
        self.back = np.concatenate([periods - 1, periods, [1]])

        # A line for each forecast: its kind, its weight, and where it keeps what it has.
        def line(one: Any) -> tuple[int, float, int]:
            kind, weight, at = KINDS.index(type(one)), getattr(one, "weight", 0.0), 0
            if one in data:
                at = 1 + data.index(one)
            elif one in robust:
                at = robust.index(one)
            elif isinstance(one, Seasonal | SeasonalChange):
                at = place[one.period]
            elif isinstance(one, Regression):
                weight = one.forgetting
            elif isinstance(one, Own):
                at = self.own.index(one)
            return kind, weight, at

        table = np.array([line(one) for one in forecasts], np.float64)
        # Each forecast's row of the data that is kept; row 0 is the last slot's.
        self.data_row = np.array(
            [int(at) if one in data else 0 for one, at in zip(forecasts, table[:, 2], strict=True)],
            np.intp,
        )
        seasons_at = np.array([place[P] for P in seasons], np.float64)
        self.parts = table, periods.astype(np.float64), seasons_at

    def first(self, batch: tuple[int, ...], n: int) -> Kept:
        """Before slot 1."""
        K = self.n_terms
        return Kept(
            np.zeros((*batch, self.rows, 0)),
            np.zeros((*batch, self.n_levels, n)),
            np.zeros((*batch, n, K)),
            np.zeros((*batch, n, K)),
            np.array(np.broadcast_to(FIRST_COVARIANCE * np.eye(K), (*batch, n, K, K)), order="C"),
            Recent.zeros((*batch, n), self.slots),
        )

    def remember(
        self, kept: Kept, t: Array, since: Array, data: Array, limits: Array, usual: Array,
        affine: bool = True, infeasible: ArrayLike = 0.0,
    ) -> tuple[Kept, Array, Array]:  # fmt: skip
        """What is kept after slot t, of a constraint with this data and these limits.

        Beside it the data (rows, d) that forecasts of data expect in slot t + 1, the last in row 0,
        and the limits (J, N) of all; of those of data, the last.

        Constraints of the same kind were seen since slot `since`. `usual` (J, N) are the usual
        sizes of every forecast's surprises, 0 where that is not known; `affine` says that the data
        are rows, each what tells its slopes and its limit. The lowest limits so far are those of
        slots that were not `infeasible`.
        """
        recent, lags = Recent.of(kept.recent).recall(np.asarray(t, np.int64), self.back, limits)
        asked = self.asked(recent, t, since, limits.shape)
        past, levels, terms, coefficients, covariance, data, limits = remember_slot(
            t,
            since,
            *kept[:-1],
            data,
            limits,
            usual,
            float(affine),
            infeasible,
            lags,
            asked,
            *self.parts,
        )
        kept = Kept(past, levels, terms, coefficients, covariance, recent)
        return kept, data, limits

    def asked(self, recent: Any, t: Any, since: Any, shape: tuple[int, ...]) -> Array | None:
        """The limits that functions of the user's own expect, one after the other, if any."""
        if not self.own:
            return None
        found = [_asked(one, recent, t, since, shape) for one in self.own]
        return np.stack(found, axis=-2)

    def lowest(self, kept: Kept) -> Array:
        """The lowest limit so far of every row, without end where its slopes have changed."""
        return kept.levels[..., self.lowest_at, :]

    def values(self, g: Any, data: Array, limits: Array, x: Array) -> Array:
        """What forecasts expect at x, (J, N), of rows like those of g."""
        shape = (*x.shape[:-1], self.rows, limits.shape[-1])
        if not data.shape[-1]:
            found = np.broadcast_to(np.asarray(g.value(x))[..., None, :], shape)
        elif type(g) is Affine:
            rows = data.reshape(*data.shape[:-1], limits.shape[-1], x.shape[-1] + 1)
            A, b = np.ascontiguousarray(rows[..., :-1]), np.ascontiguousarray(rows[..., -1])
            found = affine_value(A, x[..., None, :], b)
        else:
            found = np.empty(shape)
            for r in range(self.rows):
                found[..., r, :] = with_data(g, data[..., r, :]).value(x)
        last = limits[..., :1, :]  # the first forecast is the last slot
        return found[..., self.data_row, :] + (last - limits)


def _asked(own: Own, recent: Any, t: Array, since: Array, shape: tuple[int, ...]) -> Array:
    """The limits that a function of the user's own expects, asked for one member at a time."""
    found, now, start = np.empty(shape), np.asarray(t, np.int64), np.asarray(since)
    for where in np.ndindex(now.shape) if now.ndim else ((),):
        last = int(now[where])
        first = max(int(start[where]), last - own.slots + 1)
        asked = np.arange(first, last + 1)
        alone = recent
        if where:
            alone = Recent(tuple(block[where] for block in recent.blocks), recent.shape[-2:])
        limits = np.ascontiguousarray(alone.recall(now[where], now[where] - asked)[1].T)
        answer = as_array("what a forecast of your own returned", own.function(limits))
        numbers = answer.dtype.kind in "fiu" and answer.shape == shape[-1:]
        if not numbers or not np.isfinite(answer).all():
            raise InvalidInput(
                f"a forecast of your own must return {shape[-1]} finite limits, one for each row, "
                f"but returned {answer!r:.200}"
            )
        found[where] = answer
    return found
