"""Solve very many random and degenerate steps and judge every answer: ``make stress``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import numpy as np

import coldq
from coldq.step.affine import TOLERANCE, run_affine
from tests.instances import CATEGORIES, draw_instance, residual_of


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begun = time.perf_counter()
    worst, failed, slow = stress(arguments.steps, arguments.seed)
    print(f"{arguments.steps} steps in {len(CATEGORIES)} categories, "
          f"{time.perf_counter() - begun:.0f} s")  # fmt: skip
    print(f"worst residual {worst:.2g}, failures {failed.total()} {dict(failed) or ''}")
    print(f"slow path {slow.total()} ({slow.total() / arguments.steps:.4%}) {dict(slow) or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
