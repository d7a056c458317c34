"""Solve very many random and degenerate steps and judge every answer: ``make stress``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import numpy as np

import coldq
from coldq.step.affine import TOLERANCE, run_affine
from tests.instances import (
    CATEGORIES,
    DOMAINS,
    draw_instance,
    draw_on_domain,
    residual_of,
    residual_on_domain,
)


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
    rng = np.random.default_rng(seed)
    worst, failed = 0.0, Counter[str]()
    for k in range(steps):
        category, problem = CATEGORIES[k % len(CATEGORIES)], draw_on_domain(rng, kind, k)
        try:
            step = problem.solve()
        except coldq.Error as error:
            print(f"step {k} on a {kind} ({category}): {error}", file=sys.stderr)
            failed[category] += 1
            continue
        residual = max(float(step.residual), residual_on_domain(problem, step.x, step.multipliers))
        worst = max(worst, residual)
        if not residual <= TOLERANCE:
            failed[category] += 1
    return worst, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--on-domains", type=int, default=5_000, help="steps on each of them")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begun = time.perf_counter()
    worst, failed, slow = stress(arguments.steps, arguments.seed)
    print(f"{arguments.steps} steps in {len(CATEGORIES)} categories, "
          f"{time.perf_counter() - begun:.0f} s")  # fmt: skip
    print(f"worst residual {worst:.2g}, failures {failed.total()} {dict(failed) or ''}")
    print(f"slow path {slow.total()} ({slow.total() / arguments.steps:.4%}) {dict(slow) or ''}")
    for kind in DOMAINS:
        worst, more = stress_domain(kind, arguments.on_domains, arguments.seed)
        print(f"{arguments.on_domains} steps on a {kind}: worst residual {worst:.2g}, "
              f"failures {more.total()} {dict(more) or ''}")  # fmt: skip
        failed += more
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
