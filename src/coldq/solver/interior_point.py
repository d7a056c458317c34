"""The general problem, by an interior-point method: a guess, or an answer with twice the digits.

    min |x - y|^2 / 2 + <lean, g(x)> + <cost, s>  over
        g_r(x) <= s_group(r),  E x = e,  lower <= x <= upper,

with s >= 0, or free (linear rows), or zero (enforced ones), and quadratic or affine g_r.
Multipliers of a group sum up to its cost at most. The other methods decide by signs which rows and
bounds hold x, from piece to piece. Here nothing is decided: every step is Newton's on all
conditions at once (``native/interior_point``).

- Where more affine rows pull than there are coordinates, others meet very many pieces. Some fifteen
  steps in double tell which multipliers are at a bound (:func:`guess_multipliers`).
- Where numbers of many magnitudes meet, rounding decides for others. This is their last resort, in
  double as far as that goes and then in double-double, until products of multipliers and the rooms
  they have are so small that no row is in doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.api import grouped_guess, grouped_step
from coldq.solver.constants import MAX_DENSE_ENTRIES
from coldq.solver.problem import ONE_BOX, largest_of, power

ENFORCED_COMPLIANCE = 1e-15  # of the terms of an enforced row
EXTENDED_TOLERANCE = (
    1e-12  # of the conditions, on pairs: what doubles leave of them after that is rounding
)
MACHINE_EPSILON = 2.0**-52  # of a number: its rounding


class Problem(NamedTuple):
    """One instance, of ``y = center - gradient / (2 alpha)``. The first rows have a P; `lean` is
    added to every row's multiplier.

    Of a group, `cost` bounds the sum of multipliers, infinite if it is hard; `free` says that the
    sum is the cost.
    """

    center: Array
    gradient: Array
    alpha: float
    P: Array
    A: Array
    b: Array
    group: np.ndarray
    lean: Array
    cost: Array
    free: np.ndarray
    E: Array
    e: Array
    lower: Array
    upper: Array


Guess = tuple[Array, Array, Array]  # x, and the multipliers of rows and of equalities


def answers(
    problem: Problem, guess: Guess, known: bool = True, give: float = ENFORCED_COMPLIANCE
) -> Iterator[tuple[Guess, float]]:
    """x, the multipliers of rows without `lean`, and those of equalities, with what double-double
    arithmetic leaves of the conditions: from a guess that is `known` to be near, then afresh.

    Enforced rows give way by so much of their terms.
    """
    given = [np.asarray(array, np.float64, order="C") for array in (*problem, *guess)]
    p, y = problem.lower.size, problem.center - problem.gradient / (2.0 * problem.alpha)
    given[3] = given[3].reshape(-1, p)
    costs = problem.cost[np.isfinite(problem.cost)], problem.lean, y, [1.0]
    dear = float(np.abs(np.concatenate(costs)).max())
    near, afresh = (1.0, 1e-7), (0.0, 0.1 * dear)
    for start in (near, afresh) if known else (afresh,):
        x, mu, nu, left = grouped_step(*given, *start, give)
        yield (x, mu, nu), float(left)


class InUnits(NamedTuple):
    """One instance as the general problem, in units in which x and rows are of size 1."""

    problem: Problem
    low: Array
    high: Array
    worth: Array  # of a multiplier
    equal: np.ndarray  # rows that hold with equality
    sign: Array  # -1 of a row that is hard from below: it is turned

    @classmethod
    def of(cls, one: tuple[Any, ...], unit: float) -> InUnits:
        """An instance as the method for quadratic rows takes it; `unit` is the size of x."""
        center, gradient, alpha, low, high, P, A, b, lower, upper = one
        u, k, half = float(power(unit)), len(P), 0.5 / float(alpha)
        steep = np.abs(A).max(axis=1, initial=0.0)
        steep[:k] = np.maximum(steep[:k], u * np.abs(P).max(axis=(1, 2), initial=0.0))
        steep = power(steep)
        worth = half * steep / u
        equal = np.isinf(low) & np.isinf(high)
        sign = np.where(np.isinf(low) & ~equal, -1.0, 1.0)
        least, most = np.where(sign < 0.0, -high, low), np.where(sign < 0.0, -low, high)
        rows, scaled = ~equal, A * (sign / steep)[:, None]
        bent = without_dents(P * (u / steep[:k])[:, None, None], (most * worth)[:k])
        count = int(rows.sum())
        cost = np.where(np.isinf(most), np.inf, (most - least) * worth)[rows]
        problem = Problem(
            center / u, gradient / u, float(alpha), bent, scaled[rows] if equal.any() else scaled,
            (b * (sign / steep) / u)[rows], np.arange(count), (least * worth)[rows], cost,
            np.zeros(count, bool), scaled[equal], b[equal] / steep[equal] / u,
            lower / u, upper / u,
        )  # fmt: skip
        return cls(problem, low, high, worth, equal, sign)

    def taken(self, multipliers: Array) -> tuple[Array, Array]:
        """Multipliers of rows as those of the problem: of its rows and of its equalities."""
        mu, rows = multipliers * self.worth, ~self.equal
        start = (self.sign * mu)[rows] - self.problem.lean
        return np.clip(start, 0.0, self.problem.cost), mu[self.equal]

    def given(self, mu: Array, nu: Array) -> Array:
        """Multipliers of rows, from those of the problem; those at a bound are so exactly."""
        lam, rows, sign = np.empty(self.worth.size), ~self.equal, self.sign[~self.equal]
        low, high = self.low[rows], self.high[rows]
        inner = sign * (self.problem.lean + mu) / self.worth[rows]
        full = mu >= (1.0 - 2.0 * MACHINE_EPSILON) * self.problem.cost
        ends = np.where(sign > 0.0, high, low), np.where(sign > 0.0, low, high)
        lam[rows] = np.where(full, ends[0], np.where(mu <= 0.0, ends[1], inner))
        lam[self.equal] = nu / self.worth[self.equal]
        return np.clip(lam, self.low, self.high)


def guess_multipliers(
    center: Array, gradient: Array, alpha: float | Array, low: Array, high: Array, A: Any,
    b: Array, lower: Array, upper: Array, blocks: Any = ONE_BOX,
) -> Array | None:  # fmt: skip
    """Multipliers of affine rows in conflict, nearly; those at a bound are so exactly.

    None where there are very many numbers, or where the method gets stuck. The sums of blocks are
    rows of their own for it.
    """
    start, total, kind = blocks
    n, p, summed = b.size, lower.size, kind < np.inf
    if (n + np.count_nonzero(summed)) * p > MAX_DENSE_ENTRIES:
        return None
    block = np.searchsorted(start, np.arange(p), side="right") - 1
    sums = (block == np.flatnonzero(summed)[:, None]).astype(float)
    implied = (kind[block] < np.inf) & (lower == 0.0) & (upper >= total[block])
    rows = A if isinstance(A, np.ndarray) else A.toarray()
    rows = np.concatenate([rows, sums]) if len(sums) else rows
    size = float(np.abs(np.clip(center - gradient * (0.5 / alpha), lower, upper)).max(initial=0.0))
    with np.errstate(all="ignore"):
        units = InUnits.of(
            (
                center, gradient, alpha, np.append(low, kind[summed]),
                np.append(high, np.full(len(sums), np.inf)), np.zeros((0, p, p)), rows,
                np.append(b, total[summed]), lower, np.where(implied, np.inf, upper),
            ),
            size,
        )  # fmt: skip
        one = units.problem
        mu, nu = grouped_guess(
            *(one.center, one.gradient, one.alpha, one.A, one.b, one.lean, one.cost, one.E, one.e),
            *(one.lower, one.upper),
        )
        return None if np.isnan(mu).any() else units.given(mu, nu)[:n]


def on_quadratic_rows(
    one: tuple[Any, ...],
    unit: float,
    guess: Array,
    multipliers: Array,
    known: bool,
    give: float = ENFORCED_COMPLIANCE,
) -> Iterator[tuple[Array, Array, float]]:
    """x and multipliers of an instance as the method for quadratic rows takes it, from a guess; and
    what is left of the conditions, before they are rounded to doubles.

    `unit` is the size of x.
    """
    u, lower, upper = float(power(unit)), one[-2], one[-1]
    with np.errstate(all="ignore"):
        units = InUnits.of(one, unit)
        begun = guess / u, *units.taken(multipliers)
        for (x, mu, nu), left in answers(units.problem, begun, known, give):
            yield np.clip(x * u, lower, upper), units.given(mu, nu), left


def without_dents(P: Array, price: Array) -> Array:
    """The matrices, convex beyond rounding, where their price is so high that this matters.

    What rounding leaves of an eigenvalue that is zero may be negative, and more than the step's own
    curvature once it is priced.
    """
    own = np.diagonal(P, axis1=1, axis2=2)
    dear = (
        np.where(np.isinf(price), 0.0, price) * own.max(axis=1, initial=0.0) * MACHINE_EPSILON > 0.1
    )
    if not dear.any():
        return P
    width = np.sqrt(np.where(own > 0.0, own, 1.0))
    alike = P / (width[:, :, None] * width[:, None, :])
    dent = MACHINE_EPSILON - np.linalg.eigvalsh(alike).min(axis=1, initial=0.0)
    return P + (np.where(dear, dent, 0.0)[:, None] * own)[:, :, None] * np.eye(P.shape[-1])


def on_pieces(
    problem: Any, unit: float, guess: Array, multipliers: Array, beside: Array, known: bool = True
) -> Iterator[Guess]:
    """x and the multipliers of pieces and of plain rows, of a problem with max-affine rows.

    From a guess of the same; `unit` is the size of x.
    """
    y, A, b, group, low, high, plain, limit, lo, _, lower, upper = problem
    u, n = float(power(unit)), high.size
    steep = power(largest_of(np.abs(A).max(axis=1, initial=0.0), group, n))
    own = power(np.abs(plain).max(axis=1, initial=0.0))
    equal = lo == -np.inf
    count = int((~equal).sum())
    with np.errstate(all="ignore"):
        free = (low == high) & (high < np.inf) & (high > 0.0)
        scaled = Problem(
            y / u, 0.0 * y, 0.5, np.zeros((0, A.shape[1], A.shape[1])),
            np.concatenate([A / steep[group, None], (plain / own[:, None])[~equal]]),
            np.concatenate([b / steep[group] / u, (limit / own / u)[~equal]]),
            np.concatenate([group, n + np.arange(count)]), np.zeros(b.size + count),
            np.concatenate([high * steep / u, np.full(count, np.inf)]),
            np.concatenate([free, np.zeros(count, bool)]), (plain / own[:, None])[equal],
            (limit / own / u)[equal], lower / u, upper / u,
        )  # fmt: skip
        price = beside * own / u
        start = np.concatenate([multipliers * steep[group] / u, price[~equal]])
        for (x, mu, nu), _ in answers(scaled, (guess / u, start, price[equal]), known):
            out = np.empty(limit.size)
            out[equal], out[~equal] = nu * u / own[equal], mu[b.size :] * u / own[~equal]
            yield np.clip(x * u, lower, upper), mu[: b.size] * u / steep[group], out
