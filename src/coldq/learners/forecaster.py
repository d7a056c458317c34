"""What forecasts keep of the constraints so far, and what each expects of the next.

Slot t's limits are b_t, of shape (N). With P a period and w a weight, at the end of slot t

    Robust          r += max(w, 1/n) clip(b_t - r, -2 s, 2 s), s its usual surprise
    Seasonal        b_{t+1-P}
    SeasonalChange  b_t + b_{t+1-P} - b_{t-P}
    Regression      b_t + c <v, h>, where h are the changes that others expect, over their scale c

and v is found by recursive least squares: with h and c of the slot before and
``y = (b_t - b_{t-1}) / c``,

    k = C h,  v += k (y - <v, h>) / (f + <h, k>),  C = (C - k k' / (f + <h, k>)) / f.

Where the forgetting f lets C grow without anything to learn from, its trace is held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array, as_array
from coldq.constraints import Affine
from coldq.contractions import affine_value, dot, matvec
from coldq.errors import InvalidInput
from coldq.forecasts import (
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

ROBUST_CLIP = 2.0  # times its usual surprise: how much of a surprise moves a robust average
FAST, SLOW, TREND = 0.5, 0.12, 0.1  # the weights of the regression's own averages and trend
OWN_TERMS = 3  # beside those of periods
SCALE = 0.01  # the least weight of a change in the regression's scale
FIRST_COVARIANCE = 0.1
UNBOUNDED = -1e300  # the lowest limit of a row whose limits cannot be compared
LEAST_SCALE = 1e-200  # below it nothing has changed
LARGEST_TERM = 1e6  # in units of the scale, either way
LARGEST_TRACE = 1e4  # of a regression's covariance, for each of its terms


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
        def of(kind: type) -> list[tuple[int, Any]]:
            return [(j, one) for j, one in enumerate(forecasts) if type(one) is kind]

        def weights(kind: type) -> Array:
            return np.array([one.weight for _, one in of(kind)])[:, None]

        self.forecasts = forecasts
        self.averages, self.trends = weights(MovingAverage), weights(Trend)
        self.robust, self.robust_at = weights(Robust), [j for j, _ in of(Robust)]
        self.seasonal, self.changes, self.own = of(Seasonal), of(SeasonalChange), of(Own)
        regressions = of(Regression)
        if len(regressions) > 1:
            raise InvalidInput("forecasts may have one Regression, but have several")
        self.at, self.regression = regressions[0] if regressions else (0, None)
        periods = self.regression.periods if self.regression else ()
        self.n_terms = OWN_TERMS + 2 * len(periods) if self.regression else 0
        self.n_levels = len(self.robust) + 1 + (OWN_TERMS + 1 if self.regression else 0)

        asked = [one.period for _, one in (*self.seasonal, *self.changes)]
        self.periods = np.array(sorted({*asked, *periods}), np.int64)
        self.place = {int(P): k for k, P in enumerate(self.periods)}
        back = [int(P) + 1 for P in self.periods] + [one.slots for _, one in self.own]
        self.slots = max(back, default=0)

        # Each forecast's row of the data that is kept; row 0 is the last slot's.
        self.data_row = np.zeros(len(forecasts), np.intp)
        for row, (j, _) in enumerate((*of(MovingAverage), *of(Trend)), 1):
            self.data_row[j] = row
        self.rows = 1 + len(self.averages) + len(self.trends)

    def first(self, batch: tuple[int, ...], n: int) -> Kept:
        """Before slot 1."""
        K = self.n_terms
        return Kept(
            np.zeros((*batch, self.rows, 0)),
            np.zeros((*batch, self.n_levels, n)),
            np.zeros((*batch, n, K)),
            np.zeros((*batch, n, K)),
            np.array(np.broadcast_to(FIRST_COVARIANCE * np.eye(K), (*batch, n, K, K))),
            Recent.zeros((*batch, n), self.slots),
        )

    def remember(
        self, kept: Kept, t: Array, since: Array, data: Array, limits: Array, usual: Array,
        fixed: Any = True,
    ) -> tuple[Kept, tuple[Array, Array]]:  # fmt: skip
        """What is kept after slot t, of a constraint with this data and these limits.

        Constraints of the same kind were seen since slot `since`. `usual` (J, N) are the usual
        sizes of every forecast's surprises, 0 where that is not known; `fixed` (N) are the rows
        whose slopes did not change. Beside it, what came next a period ago, for all periods.
        """
        fresh = t == since
        recent = Recent.of(kept.recent).with_slot(t.astype(np.int64), limits)
        past = self._past(kept.past, fresh, data)
        weight = 1.0 / (t - since + 1.0)
        levels = self._levels(kept.levels, fresh, weight, limits, usual, fixed)
        lags = self._lags(recent, t, since, limits)
        if not self.regression:
            same = kept.terms, kept.coefficients, kept.covariance
            return Kept(past, levels, *same, recent), lags
        last = np.asarray(recent.at((t - 1.0).astype(np.int64)[..., None]))[..., 0]
        change = np.where(fresh[..., None], 0.0, limits - last)
        before = kept.levels[..., -1, :]
        coefficients, covariance = self._learn(
            kept, change, np.where(fresh[..., None], 0.0, before)
        )
        scale = before + np.maximum(SCALE, weight)[..., None] * (np.abs(change) - before)
        levels[..., -2, :] += np.where(
            fresh[..., None], -levels[..., -2, :], TREND * (change - levels[..., -2, :])
        )
        levels[..., -1, :] = np.where(fresh[..., None], 0.0, scale)
        terms = self._terms(levels, limits, lags)
        return Kept(past, levels, terms, coefficients, covariance, recent), lags

    def _past(self, past: Array, fresh: Array, data: Array) -> Array:
        """The last data, its averages and the averages of its increments."""
        new, n = np.empty(past.shape), 1 + len(self.averages)
        fresh = fresh[..., None, None]
        data = data[..., None, :]
        new[..., :1, :] = data
        old = past[..., 1:n, :]
        new[..., 1:n, :] = np.where(fresh, data, old + self.averages * (data - old))
        step, old = data - past[..., :1, :], past[..., n:, :]
        new[..., n:, :] = np.where(fresh, 0.0, old + self.trends * (step - old))
        return new

    def _levels(
        self, levels: Array, fresh: Array, weight: Array, limits: Array, usual: Array,
        fixed: Any,
    ) -> Array:  # fmt: skip
        """Robust averages of the limits, the lowest, and the averages that the regression takes."""
        new, n = np.array(levels), len(self.robust)
        weight, fresh, limits = (
            weight[..., None, None],
            fresh[..., None, None],
            limits[..., None, :],
        )
        surprise = limits - levels[..., :n, :]
        most = ROBUST_CLIP * usual[..., self.robust_at, :]
        most = np.where(most > 0.0, most, np.inf)
        moved = np.maximum(self.robust, weight) * np.clip(surprise, -most, most)
        new[..., :n, :] = levels[..., :n, :] + moved
        new[..., n, :] = np.minimum(levels[..., n, :], limits[..., 0, :])
        if self.regression:
            old = levels[..., n + 1 : n + 3, :]
            new[..., n + 1 : n + 3, :] = old + np.array([[FAST], [SLOW]]) * (limits - old)
        new = np.where(fresh, limits, new)
        new[..., n, :] = np.where(fixed, new[..., n, :], UNBOUNDED)
        return new

    def lowest(self, kept: Kept) -> Array:
        """The lowest limit so far of every row, without end where its slopes have changed."""
        return kept.levels[..., len(self.robust), :]

    def _learn(self, kept: Kept, change: Array, scale: Array) -> tuple[Array, Array]:
        """Coefficients and covariance after a slot whose limits changed by this."""
        assert self.regression is not None
        h, v, C, f = kept.terms, kept.coefficients, kept.covariance, self.regression.forgetting
        seen = scale > LEAST_SCALE
        y = np.clip(change / np.where(seen, scale, 1.0), -LARGEST_TERM, LARGEST_TERM)
        k = matvec(C, h)
        gain = np.asarray(dot(h, k))
        error = (y - dot(v, h)) / (f + gain)
        new_v = v + k * error[..., None]
        new_C = (C - k[..., :, None] * k[..., None, :] / (f + gain)[..., None, None]) / f
        trace = np.add.accumulate(new_C.diagonal(axis1=-2, axis2=-1), axis=-1)[..., -1]
        most = LARGEST_TRACE * self.n_terms
        new_C = (
            new_C
            * np.where(trace > most, most / np.where(trace > 0.0, trace, 1.0), 1.0)[..., None, None]
        )
        # Rounding may leave a covariance that is none; then it is learned anew.
        sound = (gain >= 0.0) & (trace > 0.0) & np.isfinite(trace) & np.isfinite(error)
        begin = FIRST_COVARIANCE * np.eye(self.n_terms)
        new_C = np.where(sound[..., None, None], new_C, begin)
        new_v = np.where(sound[..., None], new_v, 0.0)
        return (
            np.where(seen[..., None], new_v, v),
            np.where(seen[..., None, None], new_C, C),
        )

    def _lags(self, recent: Recent, t: Array, since: Array, limits: Array) -> tuple[Array, Array]:
        """For every period the limits that came next a period ago, and the change to them.

        Before there are any, the last limits and no change: (N, periods) each.
        """
        now = t.astype(np.int64)[..., None]
        before = recent.at(np.concatenate([now + 1 - self.periods, now - self.periods], axis=-1))
        after, at = np.split(before, 2, axis=-1)
        start = since[..., None]
        level = np.where((now + 1 - self.periods >= start)[..., None, :], after, limits[..., None])
        known = (now - self.periods >= start)[..., None, :]
        return level, np.where(known, after - at, 0.0)

    def _terms(self, levels: Array, limits: Array, lags: tuple[Array, Array]) -> Array:
        """h: what averages, trend and seasonal forecasts expect to change, over the scale."""
        assert self.regression is not None
        at = [self.place[P] for P in self.regression.periods]
        means = levels[..., -4:-2, :].swapaxes(-2, -1) - limits[..., None]
        trend = levels[..., -2, :, None]
        level, change = lags[0][..., at] - limits[..., None], lags[1][..., at]
        terms = np.concatenate([means, trend, level, change], axis=-1)
        scale = levels[..., -1, :, None]
        seen = scale > LEAST_SCALE
        terms = np.clip(terms / np.where(seen, scale, 1.0), -LARGEST_TERM, LARGEST_TERM)
        return np.where(seen, terms, 0.0)

    def limits(
        self, kept: Kept, t: Array, since: Array, limits: Array, lags: tuple[Array, Array]
    ) -> Array:
        """The limits (J, N) that forecasts expect in slot t + 1; of those of data, the last."""
        found = np.repeat(limits[..., None, :], len(self.forecasts), axis=-2)
        found[..., self.robust_at, :] = kept.levels[..., : len(self.robust), :]
        if self.periods.size:
            level, change = lags
            for kind, expected in (
                (self.seasonal, level),
                (self.changes, limits[..., None] + change),
            ):
                places = [self.place[one.period] for _, one in kind]
                found[..., [j for j, _ in kind], :] = expected[..., places].swapaxes(-1, -2)
        if self.regression:
            change = kept.levels[..., -1, :] * dot(kept.coefficients, kept.terms)
            found[..., self.at, :] = limits + np.where(np.isfinite(change), change, 0.0)
        for j, one in self.own:
            found[..., j, :] = _asked(one, kept.recent, t, since, limits.shape)
        return found

    def data(self, kept: Kept) -> Array:
        """The data (rows, d) that forecasts of data expect in slot t + 1, the last in row 0."""
        n, data = 1 + len(self.averages), np.array(kept.past)
        data[..., n:, :] += data[..., :1, :]
        return data

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
    found, now, start = np.empty(shape), np.asarray(t), np.asarray(since)
    for where in np.ndindex(now.shape):
        last = int(now[where])
        first = max(int(start[where]), last - own.slots + 1)
        asked = np.arange(first, last + 1)
        limits = _member(recent, where, asked)
        answer = as_array("what a forecast of your own returned", own.function(limits))
        numbers = answer.dtype.kind in "fiu" and answer.shape == shape[-1:]
        if not numbers or not np.isfinite(answer).all():
            raise InvalidInput(
                f"a forecast of your own must return {shape[-1]} finite limits, one for each row, "
                f"but returned {answer!r:.200}"
            )
        found[where] = answer
    return found


def _member(recent: Any, where: tuple[int, ...], slots: np.ndarray) -> Array:
    """The limits of some slots of one member of a batch, (slots, N)."""
    whole = np.asarray(recent)[where]
    return np.ascontiguousarray(whole[:, slots % whole.shape[-1]].T)
