"""Random and deliberately degenerate per-slot problems with max-affine rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import coldq

PIECEWISE_CATEGORIES = (
    "regular", "infeasible", "duplicates", "integer ties", "zero weights", "enforced rows",
    "alpha 1e-8", "alpha 1e8", "lower = upper", "far outside", "row scales", "linear rows",
    "zero pieces", "unbounded", "one piece",
)  # fmt: skip


class Piecewise(NamedTuple):
    """One per-slot problem with max-affine rows on a box."""

    center: np.ndarray
    gradient: np.ndarray
    alpha: float
    multiplier_lower: np.ndarray
    multiplier_upper: np.ndarray
    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def solve(self) -> coldq.Step:
        return coldq.penalised_step(
            self.center, self.gradient, self.alpha, self.multiplier_upper,
            coldq.MaxAffine(self.A, self.b), coldq.Box(self.lower, self.upper),
            multiplier_lower=self.multiplier_lower,
        )  # fmt: skip

    def objective(self, x: np.ndarray) -> float:
        """The penalised objective; enforced rows are left out."""
        move, g = x - self.center, (self.A @ x - self.b).max(axis=1)
        high = np.where(np.isinf(self.multiplier_upper), 0.0, self.multiplier_upper)
        penalty = np.where(g > 0.0, high * g, self.multiplier_lower * g)
        return float(self.gradient @ move + self.alpha * move @ move + penalty.sum())


def make_piecewise(rng: np.random.Generator, category: str, N: int, K: int, p: int) -> Piecewise:
    """An instance of a category; enforced rows always have a common point."""
    K = 1 if category == "one piece" else K
    A = rng.standard_normal((N, K, p))
    b = A @ rng.uniform(-0.5, 0.5, p) + rng.uniform(-0.2, 1.0, (N, K))
    center, gradient = rng.uniform(-1.0, 1.0, p), 3.0 * rng.standard_normal(p)
    alpha, weights, floor = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-1, 3.5, N), np.zeros(N)
    lower, upper = np.full(p, -rng.uniform(0.5, 2.0)), np.full(p, rng.uniform(0.5, 2.0))
    some = rng.random(N) < 0.5
    match category:
        case "infeasible":
            b = b - rng.uniform(0.0, 20.0)
        case "duplicates":
            rows, pieces = rng.integers(0, N, N), rng.integers(0, K, K)
            A, b = A[rows][:, pieces], b[rows][:, pieces]
        case "integer ties":
            A, b = rng.integers(-2, 3, (N, K, p)) * 1.0, rng.integers(-2, 3, (N, K)) * 1.0
            center, gradient = rng.integers(-1, 2, p) * 1.0, rng.integers(-4, 5, p) * 1.0
            alpha, weights = 0.5 * 2.0 ** rng.integers(-2, 3), rng.integers(0, 9, N) * 1.0
            lower, upper = -np.ones(p), np.ones(p)
        case "zero weights":
            weights[some] = 0.0
        case "enforced rows":
            at = A @ rng.uniform(lower, upper)
            b = at + np.abs(rng.standard_normal((N, K))) * (rng.random((N, K)) < 0.7)
            weights[some] = np.inf
        case "alpha 1e-8":
            alpha = 1e-8
        case "alpha 1e8":
            alpha = 1e8
        case "lower = upper":
            fixed = rng.random(p) < 0.5
            upper[fixed] = lower[fixed]
        case "far outside":
            center = 1e3 * rng.standard_normal(p)
        case "row scales":
            scale = 10.0 ** rng.uniform(-4.0, 4.0, N)
            A, b = A * scale[:, None, None], b * scale[:, None]
        case "linear rows":
            floor = weights.copy()
        case "zero pieces":
            A[rng.random((N, K)) < 0.4] = 0.0
        case "unbounded":
            lower[rng.random(p) < 0.5] = -np.inf
            upper[rng.random(p) < 0.5] = np.inf
    return Piecewise(center, gradient, float(alpha), floor, weights, A, b, lower, upper)
