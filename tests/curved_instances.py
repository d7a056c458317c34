"""Random and deliberately degenerate per-slot problems with quadratic rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import coldq

CURVED_CATEGORIES = (
    "regular", "P = 0 rows", "low rank", "duplicate rows", "infeasible", "zero weights",
    "enforced rows", "lower = upper", "alpha 1e-8", "alpha 1e8", "far outside", "row scales",
    "integer ties", "unbounded", "linear rows", "affine rows beside", "all affine", "hard ball",
)  # fmt: skip


class Curved(NamedTuple):
    """One per-slot problem with quadratic rows on a box."""

    center: np.ndarray
    gradient: np.ndarray
    alpha: float
    multiplier_lower: np.ndarray
    multiplier_upper: np.ndarray
    P: np.ndarray
    q: np.ndarray
    r: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def box(self) -> coldq.Box:
        return coldq.Box(self.lower, self.upper)

    def solve(self, constraint: object) -> coldq.Step:
        return coldq.penalised_step(
            self.center, self.gradient, self.alpha, self.multiplier_upper, constraint,  # type: ignore[arg-type]
            self.box, multiplier_lower=self.multiplier_lower,
        )  # fmt: skip

    def values(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("nij,i,j->n", self.P, x, x) + self.q @ x - self.r

    def objective(self, x: np.ndarray) -> float:
        """The penalised objective; enforced rows are left out."""
        move, g = x - self.center, self.values(x)
        high = np.where(np.isinf(self.multiplier_upper), 0.0, self.multiplier_upper)
        low = np.where(np.isinf(self.multiplier_lower), 0.0, self.multiplier_lower)
        penalty = np.where(g > 0.0, high * g, low * g)
        return float(self.gradient @ move + self.alpha * move @ move + penalty.sum())


def make_curved(rng: np.random.Generator, category: str, N: int, p: int) -> Curved:
    """An instance of a category; enforced rows always have a common interior point."""
    roots = rng.standard_normal((N, p, p)) / np.sqrt(p)
    if category == "low rank":
        roots = roots[:, : max(1, p // 3)]
    P = np.einsum("nki,nkj->nij", roots, roots)
    P = 0.5 * (P + np.swapaxes(P, -1, -2))
    q, r = rng.standard_normal((N, p)), rng.uniform(-0.3, 2.0, N)
    center, gradient = rng.uniform(-1.0, 1.0, p), 3.0 * rng.standard_normal(p)
    alpha, weights, floor = 10.0 ** rng.uniform(-1.0, 1.0), 10.0 ** rng.uniform(-1, 3.5, N), 0.0 * r
    lower, upper = np.full(p, -rng.uniform(0.5, 2.0)), np.full(p, rng.uniform(0.5, 2.0))
    some = rng.random(N) < 0.5
    match category:
        case "P = 0 rows":
            P[some] = 0.0
        case "duplicate rows":
            same = rng.integers(0, N, N)
            P, q, r = P[same], q[same], r[same]
        case "infeasible":
            r = -rng.uniform(1.0, 20.0, N)
        case "zero weights":
            weights[some] = 0.0
        case "enforced rows":
            inner = rng.uniform(lower, upper)
            r = np.maximum(0.0, r) + 0.5 * np.einsum("nij,i,j->n", P, inner, inner) + q @ inner
            r = r + 0.01
            weights[some] = np.inf
        case "lower = upper":
            fixed = rng.random(p) < 0.5
            upper[fixed] = lower[fixed]
        case "alpha 1e-8":
            alpha = 1e-8
        case "alpha 1e8":
            alpha = 1e8
        case "far outside":
            center = 1e3 * rng.standard_normal(p)
        case "row scales":
            scale = 10.0 ** rng.uniform(-4.0, 4.0, N)
            P, q, r = P * scale[:, None, None], q * scale[:, None], r * scale
        case "integer ties":
            roots = rng.integers(-1, 2, (N, p, p)).astype(float)
            P = np.einsum("nki,nkj->nij", roots, roots)
            q, r = rng.integers(-2, 3, (N, p)) * 1.0, rng.integers(-1, 4, N) * 1.0
            center, gradient = rng.integers(-1, 2, p) * 1.0, rng.integers(-4, 5, p) * 1.0
            alpha, weights = 0.5 * 2.0 ** rng.integers(-2, 3), rng.integers(0, 9, N) * 1.0
            lower, upper = -np.ones(p), np.ones(p)
        case "unbounded":
            lower[rng.random(p) < 0.5] = -np.inf
            upper[rng.random(p) < 0.5] = np.inf
        case "linear rows":
            floor = weights.copy()
        case "affine rows beside":
            P[N // 2 :] = 0.0
        case "all affine":
            P[:] = 0.0
        case "hard ball":
            P[0], q[0], r[0] = 2.0 * np.eye(p), 0.0, rng.uniform(0.01, 1.0)
            weights[0] = np.inf
            lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
    return Curved(center, gradient, float(alpha), floor, weights, P, q, r, lower, upper)
