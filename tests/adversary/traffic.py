"""Steps like those of a backbone in raw units: demands split over paths, links with limits.

Thirty demands share three paths each; thirty links add up what runs over them, in Mbit/s, beside
limits of the same size. Prices of violations come from queues, so they differ little or by
magnitudes, and a demand often has a path that no link notices.
"""

from __future__ import annotations

import numpy as np

import coldq
from tests.adversary.affine_rows import ALLOWED, judged
from tests.adversary.drawn import Drawn

DEMANDS, PATHS, LINKS = 30, 3, 30
DOMAIN = coldq.Product(*[coldq.Simplex(PATHS)] * DEMANDS)


def draw_traffic(rng: np.random.Generator, scale: str) -> Drawn:
    """One such step; there is only one scale."""
    p = DEMANDS * PATHS
    demand = 10.0 ** rng.uniform(2.0, 4.0, DEMANDS)
    if rng.random() < 0.3:
        demand[rng.random(DEMANDS) < 0.3] *= 1e-3
    used = rng.random((LINKS, p)) < rng.uniform(0.03, 0.2)
    A = used * np.repeat(demand, PATHS)
    spread = rng.dirichlet(np.ones(PATHS), DEMANDS).ravel()
    corner = np.zeros((DEMANDS, PATHS))
    corner[np.arange(DEMANDS), rng.integers(0, PATHS, DEMANDS)] = 1.0
    at = corner.ravel() if rng.random() < 0.5 else spread
    b = (A @ at) * rng.choice([1.0, 0.7, 1.3], LINKS) + rng.choice([0.0, 1e2], LINKS)
    b = np.where(b > 0.0, np.clip(b, 1e2, 1e4), 1e2)
    price = rng.uniform(0.5, 2.0, LINKS)
    gradient = price @ A if rng.random() < 0.7 else 1e4 * rng.standard_normal(p)
    gradient = gradient * (1e4 / max(float(np.abs(gradient).max()), 1.0))
    if rng.random() < 0.3:  # paths that cost the same
        gradient = np.round(gradient, -3)
    alpha = 10.0 ** rng.uniform(0.0, 4.0)
    weights = 10.0 ** rng.uniform(2.0, 7.0) * (1.0 + 0.01 * rng.random(LINKS))
    if rng.random() < 0.5:
        weights = 10.0 ** rng.uniform(2.0, 7.0, LINKS)
    center = spread if rng.random() < 0.5 else corner.ravel()
    floor = np.zeros(LINKS)
    judge = judged(center, gradient, alpha, weights, floor, A, b, DOMAIN)
    arguments = center, gradient, alpha, weights, coldq.Affine(A, b), DOMAIN
    return Drawn("affine", "traffic", "traffic", arguments, floor, judge, ALLOWED, True)
