"""Steps in raw units, of sizes that nobody chose: ``python -m benchmarks.raw_units --help``.

Affine rows, dense or sparse, on boxes, simplices, products of simplices and polytopes, with prices,
weights and alpha of many magnitudes, of which some rows cannot be met. Told are the time that steps
take on one core, and the longest, which is what a service waits for.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import coldq

MOST = 60_000  # numbers in A
KINDS = ("box", "simplex", "product of simplices", "polytope")


def between(rng: np.random.Generator, least: float, most: float) -> float:
    """A number of any magnitude between two powers of ten."""
    return float(10.0 ** rng.uniform(least, most))


def domain_of(rng: np.random.Generator, kind: str, p: int, unit: float) -> Any:
    match kind:
        case "box":
            return coldq.Box(0.0, unit, dim=p)
        case "simplex":
            return coldq.Simplex(p)
        case "polytope":
            A, shares = np.vstack([np.ones((1, p)), rng.random((2, p))]), np.array([0.4, 0.3, 0.3])
            return coldq.Polytope(A, shares * p * unit, 0.0, unit)
    ends = np.unique(np.linspace(0, p, max(2, p // int(rng.integers(3, 20))) + 1).astype(int))
    return coldq.Product(*(coldq.Simplex(int(size)) for size in np.diff(ends)))


def drawn(seed: int, k: int) -> tuple[str, str, tuple[Any, ...], np.ndarray]:
    """The domain's kind, that of the rows, and the arguments of a step."""
    rng = np.random.default_rng([seed, k])
    p, N = MOST, MOST
    while p * N > MOST:
        p = int(between(rng, 1.0, 2.6))
        N = 1 + int(p * between(rng, -1.0, 0.5))
    kind, thin = KINDS[k % len(KINDS)], bool(rng.random() < 0.5)
    unit = between(rng, -2.0, 3.0) if kind in ("box", "polytope") else 1.0
    domain = domain_of(rng, kind, p, unit)
    A = rng.random((N, p)) if rng.random() < 0.5 else rng.standard_normal((N, p))
    if thin:
        A *= rng.random((N, p)) < max(3.0 / p, 0.05)
    A *= between(rng, 0.0, 3.0)
    values = A @ domain.project(unit * rng.random(p))
    room = float(rng.choice([-0.3, 0.0, 0.3]))  # below zero, some rows cannot be met
    b = values + room * np.abs(values) * rng.random(N) * (rng.random(N) < 0.5)
    weights = np.full(N, between(rng, 0.0, 7.0))
    if room >= 0.0 and rng.random() < 0.2:
        weights[rng.random(N) < 0.3] = np.inf
    rows = coldq.SparseAffine(sparse.csr_array(A), b) if thin else coldq.Affine(A, b)
    center, alpha = domain.project(unit * rng.random(p)), between(rng, -6.0, 3.0)
    gradient = between(rng, -2.0, 5.0) * rng.standard_normal(p)
    name = "sparse" if thin else "dense"
    return kind, name, (center, gradient, alpha, weights, rows, domain), np.zeros(N)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw_units", description=__doc__)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    times, failed = defaultdict(list), defaultdict(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", coldq.Inexact)
        for k in range(given.steps):
            kind, name, step, floor = drawn(given.seed, k)
            begun = process_time()
            try:
                coldq.penalised_step(*step, floor=floor)
            except (coldq.Error, coldq.Inexact):
                failed[kind, name] += 1
            times[kind, name].append(process_time() - begun)
    table = Table("domain", "rows", "steps", "failed", "median ms", "99% ms", "slowest ms", "all s")
    for key in sorted(times):
        own = np.array(times[key])
        cells = np.median(own), np.quantile(own, 0.99), own.max()
        texts = (f"{1e3 * value:.3g}" for value in cells)
        table.add_row(*key, str(own.size), str(failed[key]), *texts, f"{own.sum():.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
