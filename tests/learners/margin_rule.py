"""The margin of rows as it is written down, in plain Python numbers, for affine rows on a box.

Three forecasts: the last rows, their average of weight 0.5, and a trend of weight 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

Row = tuple[list[float], float]  # a and b of a'x <= b
SPREAD, CLIP, TOLERANCE = 0.03, 4.0, 1e-8


def value(row: Row, x: Sequence[float]) -> float:
    return sum(a * u for a, u in zip(row[0], x, strict=True)) - row[1]


def slack(row: Row, x: Sequence[float], R: float) -> float:
    """Above what a row counts as violated: 1e-8 of its terms."""
    widest = R * math.sqrt(sum(a * a for a in row[0]))
    terms = sum(abs(a * u) for a, u in zip(row[0], x, strict=True)) + abs(row[1])
    return TOLERANCE * min(max(terms, 1e-6 * widest), widest)


def share_with_a_point(
    rows: Sequence[Row], margin: Sequence[float], lower: np.ndarray, upper: np.ndarray
) -> float:
    """The largest share of a margin that leaves rows a common point; below 0 if none does."""
    p = len(lower)
    A = np.array([[*row[0], m] for row, m in zip(rows, margin, strict=True)])
    # A unit of violation costs more than all the margin may win.
    A = np.column_stack([A, -np.ones(len(rows))])
    bounds = [*zip(lower, upper, strict=True), (0.0, 1.0), (0.0, None)]
    found = linprog([*[0.0] * p, -1.0, 1e6], A_ub=A, b_ub=[row[1] for row in rows], bounds=bounds)
    return -1.0 if found.x[-1] > 1e-7 else float(found.x[p])


def least(row: Row, lower: np.ndarray, upper: np.ndarray) -> float:
    """The least of a'x - b on a box."""
    ends = zip(row[0], lower, upper, strict=True)
    return sum(min(a * low, a * high) for a, low, high in ends) - row[1]


def flipped(slopes: Sequence[float]) -> list[float]:
    return [-a for a in slopes]


class MarginRule:
    """What is kept from slot to slot, and `margin`, what the rows of the next are tightened by."""

    def __init__(self, q: float, rows: int, lower: np.ndarray, upper: np.ndarray, R: float) -> None:
        self.q, self.n, self.lower, self.upper, self.R = q, rows, lower, upper, R
        self.t, self.factor, self.effort, self.gap = 1, max(0.0, math.log(0.5 / q)), 0.0, 0
        self.overdraft, self.stretch, self.violations = 0.0, False, 0
        self.largest, self.record, self.entry = [0.0] * rows, [0.0] * rows, [0.0] * rows
        self.margin, self.ordinary = [0.0] * rows, [0.0] * rows
        self.reduced, self.chosen = False, 0
        self.forecasts: list[list[Row]] = []
        self.lowest: list[float | None] = [math.inf] * rows  # None where slopes have changed
        self.moments, self.errors = [[0.0] * rows for _ in range(3)], [0.0] * 3
        self.booked = self.violated = self.infeasible = 0

    def observe(self, x: Sequence[float], rows: list[Row], played: Sequence[float]) -> None:
        """The end of slot t: decision x was made, `played` the one that counted."""
        q, t, n = self.q, self.t, range(self.n)
        tolerance = [slack(row, played, self.R) for row in rows]
        seen = [value(row, played) for row in rows]
        which = [seen[i] > tolerance[i] for i in n]
        bad = any(which)
        infeasible = bad and share_with_a_point(rows, [0.0] * self.n, self.lower, self.upper) < 0.0
        if infeasible:  # a limit that no decision keeps counts as the nearest that one does
            rows = [(a, b + max(0.0, least((a, b), self.lower, self.upper))) for a, b in rows]
        # A limit is above all that its row can be by no more than all of that.
        ends = [
            (
                least((a, 0.0), self.lower, self.upper),
                -least((flipped(a), 0.0), self.lower, self.upper),
            )
            for a, _ in rows
        ]
        rows = [
            (a, min(b, 2.0 * most - low)) for (a, b), (low, most) in zip(rows, ends, strict=True)
        ]
        there, surprise = [value(row, x) for row in rows], [0.0] * self.n
        if t > 1:
            surprise = [there[i] - value(self.forecasts[self.chosen][i], x) for i in n]
        short = self.stretch and any(which[i] and self.margin[i] < self.largest[i] for i in n)
        reduced = self.reduced or short
        self.booked += not infeasible
        self.violated += bad and not infeasible
        self.infeasible += infeasible

        cut = any(self.margin[i] < self.ordinary[i] for i in n)
        would = any(seen[i] + self.margin[i] - self.ordinary[i] > tolerance[i] for i in n)
        if t > 1 and not (bad and (cut or infeasible)):
            self.gap = 0 if would else self.gap + 1
            e = 1.0 - q if would else -q
            self.effort += e * e
            eta = max(0.1, 1.0 / math.sqrt(1.0 + self.effort))
            if not would:
                e *= max(1.0, q * self.gap / 5.0)
            self.factor = max(0.0, self.factor + eta * e * max(1.0, 0.4 * self.factor))

        self._book(which, surprise, tolerance, infeasible, reduced)
        if t > 1:
            self._judge(x, there, tolerance)
        self._forecast(rows, infeasible)
        sigma = [0.0] * self.n
        if t > 1:
            sigma = [m / (1.0 - 0.97 ** (t - 1)) for m in self.moments[self.chosen]]
        half = 0.5 * min(20.0, 5.0 + 2.0 * math.sqrt(q * t))
        share = 1.0 if self.stretch else min(max((self.overdraft - half) / half, 0.0), 1.0)
        for i, row in enumerate(self.expected):
            flat = not any(row[0])
            self.ordinary[i] = 0.0 if flat else self.factor * sigma[i]
            wanted = max(self.factor * sigma[i], share * self.largest[i])
            self.margin[i] = 0.0 if flat else min(wanted, -least(row, self.lower, self.upper))
        self.t, self.reduced = t + 1, False

    @property
    def expected(self) -> list[Row]:
        return self.forecasts[self.chosen]

    def less(self, share: float) -> np.ndarray:
        """The margin where the whole one leaves no common point, for a share of what is left."""
        margin = np.array(self.margin)
        worst = [
            m if low is None else min(m, b - low)
            for m, low, (_, b) in zip(margin, self.lowest, self.expected, strict=True)
        ]
        if not self.has_point(worst):
            return share * np.minimum(margin, np.maximum(worst, 0.0))
        slopes = [math.sqrt(sum(u * u for u in a)) or 1.0 for a, _ in self.expected]
        room = max((m - w) / s for m, w, s in zip(margin, worst, slopes, strict=True))
        return np.minimum(margin, np.array(worst) + share * room * np.array(slopes))

    def has_point(self, margin: Sequence[float]) -> bool:
        tight = [(a, b - m) for (a, b), m in zip(self.expected, margin, strict=True)]
        return share_with_a_point(tight, [0.0] * self.n, self.lower, self.upper) >= 0.0

    def largest_share(self) -> float:
        """The largest share that leaves a common point."""
        low, high = 0.0, 1.0
        for _ in range(14):
            middle = 0.5 * (low + high)
            if self.has_point(list(self.less(middle))):
                low = middle
            else:
                high = middle
        return low

    def take(self, margin: list[float]) -> None:
        """No decision keeps the whole margin: the next has this one."""
        self.reduced = not self.has_point(list(self.less(0.0)))
        self.margin = margin

    def _book(
        self, which: list[bool], surprise: list[float], tolerance: list[float], infeasible: bool,
        reduced: bool,
    ) -> None:  # fmt: skip
        q, bad = self.q, any(which)
        if not infeasible:
            self.overdraft = max(0.0, self.overdraft + bad - q)
        unknown = [
            self.stretch and not infeasible and v and P == 0.0
            for v, P in zip(which, self.entry, strict=True)
        ]
        if self.stretch and bad and not infeasible and not reduced and not any(unknown):
            self.violations += 1
            for i in range(self.n):
                M, first, s = self.largest[i], self.entry[i], surprise[i]
                if which[i] and (s > first or first <= M):
                    new = max(math.e * max(M, first), 1.05 * s)
                else:
                    new = min(first, math.exp(min(2.0 ** (self.violations - 1), 700.0)) * M)
                self.largest[i] = max(M, new)
        elif not self.stretch:
            self.largest = [(1.0 - 0.25 * q) * M for M in self.largest]
        for i, s in enumerate(surprise):
            self.largest[i] = max(self.largest[i], s, tolerance[i])
            if s > self.record[i]:
                self.record[i] = 1.05 * s
            self.record[i] = max(self.record[i], tolerance[i])
            if unknown[i]:
                self.largest[i] = max(self.largest[i], self.record[i])
                self.entry[i] = self.record[i]
        stretch = self.overdraft > min(20.0, 5.0 + 2.0 * math.sqrt(q * self.t))
        if stretch and not self.stretch:
            self.violations, self.entry = 0, list(self.record)
        self.stretch = stretch

    def _judge(self, x: Sequence[float], there: list[float], tolerance: list[float]) -> None:
        k = self.t - 1  # slots judged, this one too
        surprises = [
            [abs(there[i] - value(rows[i], x)) for i in range(self.n)] for rows in self.forecasts
        ]
        for j, found in enumerate(surprises):
            for i, s in enumerate(found):
                most = CLIP * self.moments[j][i] / (1.0 - 0.97 ** (k - 1)) if k > 1 else 0.0
                counted = min(s, most) if k > 10 and most > tolerance[i] else s
                self.moments[j][i] += SPREAD * (counted - self.moments[j][i])
        for j, found in enumerate(surprises):
            units = []
            for i, s in enumerate(found):
                usual = self.moments[0][i] / (1.0 - 0.97**k)
                units.append(s / usual if usual > tolerance[i] else float(s > 0.0))
            error = sum(units) / self.n
            self.errors[j] += max(0.02, 1.0 / k) * (error - self.errors[j])
        best = min(range(3), key=lambda j: self.errors[j])
        if self.errors[best] < 0.98 * self.errors[self.chosen]:
            self.chosen = best

    def _forecast(self, rows: list[Row], infeasible: bool) -> None:
        if not self.forecasts:
            self.average = [(list(a), b) for a, b in rows]
            self.rise = [([0.0] * len(a), 0.0) for a, _ in rows]
        else:

            def mixed(old: Row, new: Row, w: float) -> Row:
                pairs = zip(old[0], new[0], strict=True)
                return [u + w * (v - u) for u, v in pairs], old[1] + w * (new[1] - old[1])

            def plus(one: Row, other: Row, sign: float) -> Row:
                pairs = zip(one[0], other[0], strict=True)
                return [u + sign * v for u, v in pairs], one[1] + sign * other[1]

            steps = [plus(new, old, -1.0) for new, old in zip(rows, self.last, strict=True)]
            self.average = [mixed(o, r, 0.5) for o, r in zip(self.average, rows, strict=True)]
            self.rise = [mixed(o, s, 0.3) for o, s in zip(self.rise, steps, strict=True)]
        slopes = [a for a, _ in (self.last if self.forecasts else rows)]
        self.last = rows
        self.lowest = [
            None if low is None or a != old else low if infeasible else min(low, b)
            for low, (a, b), old in zip(self.lowest, rows, slopes, strict=True)
        ]
        ahead = [
            ([u + v for u, v in zip(row[0], rise[0], strict=True)], row[1] + rise[1])
            for row, rise in zip(rows, self.rise, strict=True)
        ]
        self.forecasts = [rows, self.average, ahead]
