"""Solve very many random and degenerate steps and judge every answer: ``make stress``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

import coldq
from coldq.step.affine import TOLERANCE, run_affine
from tests.convex_functions import (
    CUBES,
    KINKED,
    SMOOTH,
    draw_functions,
    functions_gap,
    functions_residual,
)
from tests.curved_instances import curved_residual, draw_curved
from tests.instances import (
    CATEGORIES,
    DOMAINS,
    draw_instance,
    draw_on_domain,
    residual_of,
    residual_on_domain,
)
from tests.max_affine_instances import draw_piecewise, piecewise_residual


def stress(steps: int, seed: int = 0) -> tuple[float, Counter[str], Counter[str]]:
    """The worst residual, and by category the failures and the steps that took the slow path."""
    rng = np.random.default_rng(seed)
    worst, failed, slow = 0.0, Counter[str](), Counter[str]()
    for k in range(steps):
        category, instance = draw_instance(rng, k)
        if not run_affine(instance.kernel_arguments())[2] <= TOLERANCE:
            slow[category] += 1
        try:
            step = instance.solve()
        except coldq.Error as error:
            print(f"step {k} ({category}): {error}", file=sys.stderr)
            failed[category] += 1
            continue
        residual = residual_of(instance, step.x, step.multipliers)
        worst = max(worst, residual)
        if not residual <= TOLERANCE:
            failed[category] += 1
    return worst, failed, slow


def stress_domain(kind: str, steps: int, seed: int = 0) -> tuple[float, Counter[str]]:
    """The worst residual on a kind of domain, and by category the failures."""

    def one(rng: np.random.Generator, k: int) -> tuple[str, float]:
        category, problem = CATEGORIES[k % len(CATEGORIES)], draw_on_domain(rng, kind, k)
        step = problem.solve()
        residual = residual_on_domain(problem, step.x, step.multipliers)
        return category, max(float(step.residual), residual)

    return run(steps, seed, one, TOLERANCE)


def stress_quadratic(steps: int, seed: int = 0) -> tuple[float, Counter[str]]:
    """The worst residual with quadratic rows, and the failures by category."""

    def one(rng: np.random.Generator, k: int) -> tuple[str, float]:
        category, instance = draw_curved(rng, k)
        rows = coldq.QuadraticConstraint(instance.P, instance.q, instance.r)
        step = instance.solve(rows)
        return category, curved_residual(instance, step.x, step.multipliers)

    return run(steps, seed, one, 1e-8)


def stress_max_affine(steps: int, seed: int = 0) -> tuple[float, Counter[str]]:
    """The same with max-affine rows."""

    def one(rng: np.random.Generator, k: int) -> tuple[str, float]:
        category, instance = draw_piecewise(rng, k)
        return category, piecewise_residual(instance, instance.solve())

    return run(steps, seed, one, 1e-8)


def stress_convex(steps: int, seed: int = 0) -> tuple[float, Counter[str]]:
    """The same with functions and hessians, of curved rows and of quadratic ones."""

    def one(rng: np.random.Generator, k: int) -> tuple[str, float]:
        if k % 2:
            category, i = draw_curved(rng, k // 2, most=8)
            g = coldq.Convex(i.values, lambda x: i.P @ x + i.q, lambda x: i.P, len(i.r))
            step = i.solve(g)
            return category, curved_residual(i, step.x, step.multipliers)
        kind, functions, arguments = draw_functions(rng, k // 2, SMOOTH)
        g = functions.constraint(hessian=True)
        step = coldq.penalised_step(*arguments, g, CUBES[arguments[0].size])
        return kind, functions_residual(functions, arguments, step)

    return run(steps, seed, one, 1e-8)


def stress_cuts(steps: int, seed: int = 0) -> tuple[float, Counter[str]]:
    """The same without hessians: the gap of the value to a bound, or to CVXPY's at kinks."""

    def one(rng: np.random.Generator, k: int) -> tuple[str, float]:
        kind, functions, arguments = draw_functions(rng, k, SMOOTH + KINKED)
        g = functions.constraint(hessian=False)
        step = coldq.penalised_step(*arguments, g, CUBES[arguments[0].size])
        return kind, functions_gap(functions, arguments, step)

    return run(steps, seed, one, 1e-6)


def run(
    steps: int,
    seed: int,
    one: Callable[[np.random.Generator, int], tuple[str, float]],
    tolerance: float,
) -> tuple[float, Counter[str]]:
    """The worst of many residuals, and the failures by category."""
    rng, worst, failed = np.random.default_rng(seed), 0.0, Counter[str]()
    for k in range(steps):
        try:
            category, residual = one(rng, k)
        except coldq.Error as error:
            print(f"step {k}: {error}", file=sys.stderr)
            failed["error"] += 1
            continue
        worst = max(worst, residual)
        if not residual <= tolerance:
            failed[category] += 1
    return worst, failed


KINDS = {
    "quadratic": stress_quadratic,
    "max-affine": stress_max_affine,
    "convex": stress_convex,
    "cuts": stress_cuts,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--on-domains", type=int, default=5_000, help="steps on each of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", choices=["affine", *KINDS], default="affine")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    slow: Counter[str] = Counter()
    if arguments.rows == "affine":
        worst, failed, slow = stress(arguments.steps, arguments.seed)
    else:
        worst, failed = KINDS[arguments.rows](arguments.steps, arguments.seed)
    seconds = time.perf_counter() - begun
    print(f"{arguments.steps} steps with {arguments.rows} rows, {seconds:.0f} s")
    print(f"worst residual {worst:.2g}, failures {failed.total()} {dict(failed) or ''}")
    if arguments.rows == "affine":
        print(f"slow path {slow.total()} ({slow.total() / arguments.steps:.4%}) {dict(slow) or ''}")
        for kind in DOMAINS:
            worst, more = stress_domain(kind, arguments.on_domains, arguments.seed)
            print(f"{arguments.on_domains} steps on a {kind}: worst residual {worst:.2g}, "
                  f"failures {more.total()} {dict(more) or ''}")  # fmt: skip
            failed += more
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
