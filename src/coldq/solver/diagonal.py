"""One quadratic row without mixed terms on a box: x is a formula of its multiplier."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.solver.constants import DOUBT, TERMS, TINY, X_FLOOR
from coldq.solver.curved import SHARP


class DiagonalProblem(NamedTuple):
    """The row ``sum_i diagonal_i x_i^2 / 2 + <slope, x> - limit`` on a box."""

    center: Array
    gradient: Array
    alpha: Array
    floor: Array
    weights: Array
    diagonal: Array
    slope: Array
    limit: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 2, 2, 1, 1, 1)


def one_multiplier(problem: DiagonalProblem) -> tuple[Array, Array, float]:
    """x, the multiplier and the residual of one instance: a root of what falls as it grows."""
    center, gradient, alpha, low, high, diagonal, slopes, limit, lower, upper = problem
    half, d, q, r = 0.5 / float(alpha), diagonal[0], slopes[0], float(limit[0])
    y, lo, hi = center - gradient * half, float(low[0]) * half, float(high[0]) * half
    if not np.isfinite(y).all():
        return center, low, np.nan

    def at(mu: float) -> tuple[Array, float, float]:
        """x, the row's value there, and how fast it falls."""
        stiff = 1.0 + mu * d
        z = (y - mu * q) / stiff
        x = np.minimum(np.maximum(z, lower), upper)
        slope = np.where((z > lower) & (z < upper), d * x + q, 0.0)
        return x, float((0.5 * d * x + q) @ x) - r, float((slope / stiff) @ slope)

    mu, left, right = lo, lo, hi
    x, g, fall = at(mu)
    if g > 0.0 and lo < hi:
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.where(d > 0.0, -q / d, np.where(q > 0.0, -np.inf, np.inf))
            turn = np.where((d == 0.0) & (q == 0.0), x, turn)
        bottom = np.minimum(np.maximum(turn, lower), upper)
        deep = r - float((0.5 * d * bottom + q) @ bottom) if np.isfinite(bottom).all() else np.inf
        if hi == np.inf and deep < -SHARP * row_size(d, q, r, bottom, y, lower, upper):
            return bottom, high, np.inf
        if hi < np.inf:
            end = at(hi)
            if end[1] >= 0.0:
                mu, (x, g, fall) = hi, end
        for _ in range(200):
            size = row_size(d, q, r, x, y, lower, upper)
            if abs(g) <= 1e-15 * size or (g > 0.0 and mu >= hi):
                break
            left, right = (mu, right) if g > 0.0 else (left, mu)
            # Above its bottom the row falls about like 1 / mu^2: Newton's method on the inverse
            # of the root is nearly exact.
            ahead = np.inf
            if fall > 0.0:
                high_up = g + deep
                bent = 0.0 < deep < np.inf and high_up > 0.0
                ratio = 2.0 * high_up / g * (math.sqrt(high_up / deep) - 1.0) if bent else 1.0
                ahead = mu + ratio * g / fall
            if not left < ahead < right:
                if right == np.inf:
                    ahead = 10.0 * max(left, 1.0 / max(float(d.max()), TINY))
                elif right > 4.0 * left:
                    ahead = math.sqrt(max(left, 1e-30 * right) * right)
                else:
                    ahead = 0.5 * (left + right)
            if not left < ahead < right or ahead > 1e200:
                break
            mu = ahead
            x, g, fall = at(mu)
    lam = high if mu >= hi else low if mu <= lo else np.clip([mu / half], low, high)
    size = row_size(d, q, r, x, y, lower, upper)
    off = abs(g) / size if (mu > lo and g < 0.0) or (mu < hi and g > 0.0) else 0.0
    pull = mu * (d * x + q)
    away = np.abs(x - np.minimum(np.maximum(y - pull, lower), upper))
    terms = np.abs(x) + np.abs(y) + np.abs(pull) + TERMS * mu * (d * np.abs(x) + np.abs(q))
    return x, lam, max(off, float((away / np.maximum(terms, TINY)).max(initial=0.0)))


def row_size(d: Array, q: Array, r: float, x: Array, y: Array, lower: Array, upper: Array) -> float:
    """The size of the terms of a row without mixed ones."""
    known = np.maximum(np.abs(x), np.minimum(DOUBT * np.abs(y), upper - lower))
    known = np.where((d != 0.0) | (q != 0.0), known, 0.0)
    at = np.maximum(np.abs(x), X_FLOOR * known.max(initial=0.0))
    return max(float((0.5 * d * at + np.abs(q)) @ at) + abs(r), TINY)
