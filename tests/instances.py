"""Random and deliberately degenerate per-slot problems, and residuals that share no code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import coldq
from coldq.solver.problem import AffineProblem


class Instance(NamedTuple):
    """One per-slot problem with affine rows on a box."""

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
            self.center,
            self.gradient,
            self.alpha,
            self.multiplier_upper,
            coldq.Affine(self.A, self.b),
            coldq.Box(self.lower, self.upper),
            multiplier_lower=self.multiplier_lower,
        )

    def problem(self) -> AffineProblem:
        """As solvers take it, without compliance."""
        return AffineProblem(
            self.center, self.gradient, np.array(self.alpha), self.multiplier_lower,
            self.multiplier_upper, np.zeros(len(self.b)), self.A, self.b, self.lower, self.upper,
        )  # fmt: skip

    def objective(self, x: np.ndarray) -> float:
        """The penalised objective; enforced rows are left out."""
        move, g = x - self.center, self.A @ x - self.b
        high = np.where(np.isinf(self.multiplier_upper), 0.0, self.multiplier_upper)
        low = np.where(np.isinf(self.multiplier_lower), 0.0, self.multiplier_lower)
        penalty = np.where(g > 0.0, high * g, low * g)
        return float(self.gradient @ move + self.alpha * move @ move + penalty.sum())


CATEGORIES = (
    "regular", "zero rows", "duplicate rows", "duplicate rows, different b", "infeasible",
    "zero weights", "alpha 1e-8", "alpha 1e8", "lower = upper", "integer ties", "dependent rows",
    "row scales", "unbounded", "enforced rows", "equality rows", "linear rows", "mixed rows",
    "hard equalities", "origin", "opposite pairs",
)  # fmt: skip


def make_instance(rng: np.random.Generator, category: str, N: int, p: int) -> Instance:
    """An instance of a category; enforced rows always have a common point."""
    A, center = rng.standard_normal((N, p)), rng.uniform(-1.0, 1.0, p)
    b = A @ rng.uniform(-0.5, 0.5, p) + 0.3 * rng.standard_normal(N)
    gradient, alpha = 3.0 * rng.standard_normal(p), 10.0 ** rng.uniform(-1.0, 1.0)
    lower, upper = np.full(p, -rng.uniform(0.5, 2.0)), np.full(p, rng.uniform(0.5, 2.0))
    weights, floor = 10.0 ** rng.uniform(-1.0, 3.5, N), np.zeros(N)
    some = rng.random(N) < 0.5
    match category:
        case "zero rows":
            A[rng.random(N) < 0.4] = 0.0
            A[rng.random((N, p)) < 0.4] = 0.0
        case "duplicate rows":
            same = rng.integers(0, N, N)
            A, b = A[same], b[same]
        case "duplicate rows, different b":
            A = A[rng.integers(0, max(1, N // 2), N)]
        case "infeasible":
            A = np.abs(A) if rng.random() < 0.5 else A
            b = b - rng.uniform(0.0, 20.0)
        case "zero weights":
            weights[some] = 0.0
        case "alpha 1e-8":
            alpha = 1e-8
        case "alpha 1e8":
            alpha = 1e8
        case "lower = upper":
            fixed = rng.random(p) < 0.5
            upper[fixed] = lower[fixed]
        case "integer ties":
            A, b = rng.integers(-2, 3, (N, p)).astype(float), rng.integers(-2, 3, N).astype(float)
            center, gradient = rng.integers(-1, 2, p) * 1.0, rng.integers(-4, 5, p) * 1.0
            alpha, weights = 0.5 * 2.0 ** rng.integers(-2, 3), rng.integers(0, 9, N) * 1.0
            lower, upper = -np.ones(p), np.ones(p)
        case "dependent rows":
            rank = int(rng.integers(1, max(2, min(N, p) // 2 + 1)))
            A = rng.standard_normal((N, rank)) @ rng.standard_normal((rank, p))
        case "row scales":
            scale = 10.0 ** rng.uniform(-6.0, 6.0, N)
            A, b = A * scale[:, None], b * scale
        case "unbounded":
            lower[rng.random(p) < 0.5] = -np.inf
            upper[rng.random(p) < 0.5] = np.inf
        case "enforced rows":
            b = A @ np.clip(center, lower, upper) + np.abs(b) * (rng.random(N) < 0.7)
            weights[some] = np.inf
        case "equality rows":
            floor = -weights
        case "linear rows":
            floor = weights.copy()
        case "mixed rows":
            kind = rng.integers(0, 5, N)
            floor = np.select(
                [kind == 1, kind == 2, kind == 3], [weights, -weights, -weights * rng.random(N)]
            )
        case "hard equalities":
            equal = np.arange(N) < rng.integers(0, min(N, p) + 1)
            at = A @ rng.uniform(lower, upper)
            b = np.where(equal, at, np.maximum(b, at))
            weights = np.where(equal | (~equal & (rng.random(N) < 0.3)), np.inf, weights)
            floor = np.where(equal, -np.inf, 0.0)
        case "origin":
            b, lower, center = np.zeros(N), np.zeros(p), np.zeros(p)
            gradient = np.abs(gradient) * np.where(rng.random(p) < 0.5, 1.0, -1.0)
        case "opposite pairs":  # as Affine.equality writes them, each side with its own weight
            half = N // 2
            A[half : 2 * half], b[half : 2 * half] = -A[:half], -b[:half]
    return Instance(center, gradient, float(alpha), floor, weights, A, b, lower, upper)


def draw_instance(rng: np.random.Generator, k: int, most: int = 40) -> tuple[str, Instance]:
    """The k-th instance of a run through all categories, of random size."""
    category = CATEGORIES[k % len(CATEGORIES)]
    size = most if k % 2 else min(most, 6)
    N, p = int(rng.integers(1, size + 1)), int(rng.integers(1, size + 1))
    return category, make_instance(rng, category, N, p)


def residual_of(instance: Instance, x: np.ndarray, multipliers: np.ndarray) -> float:
    """The relative KKT residual from (x, multipliers) alone, in plain NumPy."""
    _, _, alpha, floor, weights, A, b, lower, upper = instance
    y, mu = instance.center - instance.gradient / (2.0 * alpha), multipliers / (2.0 * alpha)
    stationarity = np.abs(x - np.clip(y - A.T @ mu, lower, upper))
    stationarity = stationarity / (1.0 + np.abs(y) + np.abs(A).T @ np.abs(mu))
    g = A @ x - b
    size = np.abs(b) + np.abs(A) @ np.maximum(np.abs(x), 1e-3)
    wrong = ((multipliers > floor) & (g < 0.0)) | ((multipliers < weights) & (g > 0.0))
    complementarity = np.where(wrong, np.abs(g) / np.where(size > 0.0, size, 1.0), 0.0)
    outside = np.maximum(np.maximum(floor - mu * 2 * alpha, mu * 2 * alpha - weights), 0.0)
    outside = outside / (1.0 + np.abs(multipliers))
    return float(np.max(np.concatenate([stationarity, complementarity, outside])))


DOMAINS = (
    "simplex", "capped simplex", "polytope", "polytope of ties", "thin polytope", "equalities",
    "product", "ball",
)  # fmt: skip


def make_domain(
    rng: np.random.Generator, kind: str, p: int, bounded: bool = False
) -> coldq.slot.domains.Domain:
    """A domain of a kind; polytopes have more or fewer rows than coordinates, some redundant."""
    M = int(rng.integers(1, p + 4))
    A, inside = rng.standard_normal((M, p)), rng.uniform(-0.5, 0.5, p)
    match kind:
        case "box":
            lower = -rng.uniform(0.5, 2.0, p)
            upper = np.where(rng.random(p) < 0.1, lower, rng.uniform(0.5, 2.0, p))
            return coldq.Box(lower, upper)
        case "simplex":
            return coldq.Simplex(p, total=10.0 ** rng.uniform(-2.0, 2.0))
        case "capped simplex":
            return coldq.Simplex(p, total=1.0, cap=rng.uniform(1.0, 3.0) / p)
        case "polytope":
            lower = np.where(rng.random(p) < 0.3, -2.0 if bounded else -np.inf, -1.0)
            upper = np.where(rng.random(p) < 0.3, 2.0 if bounded else np.inf, 1.0)
            return coldq.Polytope(A, A @ inside + rng.random(M), lower, upper)
        case "polytope of ties":
            A = rng.integers(-1, 2, (M, p)).astype(float)
            vertex = rng.integers(0, 2, p).astype(float)
            return coldq.Polytope(A, A @ vertex + rng.integers(0, 2, M), 0.0, 1.0)
        case "thin polytope":  # every row twice, both ways: it has no inside
            rows, limits = np.concatenate([A, A, -A]), A @ inside
            return coldq.Polytope(rows, np.concatenate([limits, limits, -limits]), -1.0, 1.0)
        case "equalities":
            C = A[: max(1, min(M, p) // 2)]
            return coldq.Polytope(A, A @ inside + rng.random(M), -1.0, 1.0, A_eq=C, b_eq=C @ inside)
        case "product":
            if p == 1:
                return coldq.Product(coldq.Simplex(1))
            q = int(rng.integers(1, p))
            rest = make_domain(rng, "polytope", p - q, bounded)
            return coldq.Product(coldq.Simplex(q, cap=2.0), rest)
        case "product of boxes" | "ball product":
            q = int(rng.integers(0, p))
            other = "box" if kind == "product of boxes" else "ball"
            rest = str(rng.choice(["box", "simplex", "polytope of ties", "ball"]))
            parts = [make_domain(rng, other, p - q)]
            if q:
                parts.append(make_domain(rng, "box" if other == "box" else rest, q))
            return coldq.Product(*parts)
    return coldq.Ball(inside, radius=10.0 ** rng.uniform(-1.0, 1.0))
