"""Judge the answers to many random and degenerate steps: ``make check SUITE=stress``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import NamedTuple

import numpy as np

import coldq
from coldq.solver.answer import TOLERANCE
from coldq.solver.cascade import run_affine
from tests.instances import draw_instance, residual_of
from tests.pairs import PAIRS, draw, judged, tolerance_of


def stress(steps: int, seed: int = 0) -> tuple[float, Counter[str], Counter[str]]:
    """The worst residual, and by category the failures and the steps that took the slow path."""
    rng = np.random.default_rng(seed)
    worst, failed, slow = 0.0, Counter[str](), Counter[str]()
    for k in range(steps):
        category, instance = draw_instance(rng, k)
        if not run_affine(instance.problem())[2] <= TOLERANCE:
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


class Verdict(NamedTuple):
    """What many problems of a pair came to."""

    worst: float
    failed: Counter[str]
    slowest: float
    seconds: float


def stress_pair(rows: str, domain: str, steps: int, seed: int = 0) -> Verdict:
    """The worst residual or gap of a pair, its failures by category, and how long it took."""
    worst, failed, slowest, allowed = 0.0, Counter[str](), 0.0, tolerance_of(rows, domain)
    begun = time.perf_counter()
    for k in range(steps):
        problem = draw(rows, domain, k, seed)
        found, words, seconds = judged(problem, rows, allowed)
        slowest = max(slowest, seconds)
        if found <= allowed:
            worst = max(worst, found)
        else:
            failed[problem.category] += 1
            print(f"{rows} on {domain}, {k} ({problem.category}): {words}", file=sys.stderr)
    return Verdict(worst, failed, slowest, time.perf_counter() - begun)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="of each; 5,000 a pair, 200,000 on boxes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pair", nargs=2, metavar=("ROWS", "DOMAIN"), help="this pair alone")
    parser.add_argument("--pairs", nargs="*", metavar="ROWS", help="every pair, or of these rows")
    arguments = parser.parse_args()
    if arguments.pair is None and arguments.pairs is None:
        return on_boxes(arguments.steps or 200_000, arguments.seed)
    chosen = [tuple(arguments.pair)] if arguments.pair else PAIRS
    chosen = [pair for pair in chosen if not arguments.pairs or pair[0] in arguments.pairs]
    if not chosen or not set(chosen) <= set(PAIRS):
        parser.error(f"the pairs are {', '.join(f'{rows!r} {domain!r}' for rows, domain in PAIRS)}")
    steps, failures = arguments.steps or 5_000, 0
    print("| rows | domain | steps | worst | allowed | failures | slowest step | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for rows, domain in chosen:
        worst, failed, slowest, seconds = stress_pair(rows, domain, steps, arguments.seed)
        failures += failed.total()
        print(f"| {rows} | {domain} | {steps} | {worst:.1e} | {tolerance_of(rows, domain):g} | "
              f"{failed.total()} {dict(failed) or ''} | {slowest:.2f} s | {seconds:.0f} |",
              flush=True)  # fmt: skip
    return 1 if failures else 0


def on_boxes(steps: int, seed: int) -> int:
    """Affine rows on boxes, by far the commonest, in numbers; and how often the slow path helps."""
    begun = time.perf_counter()
    worst, failed, slow = stress(steps, seed)
    print(f"{steps} steps with affine rows on boxes, {time.perf_counter() - begun:.0f} s")
    print(f"worst residual {worst:.2g}, failures {failed.total()} {dict(failed) or ''}")
    print(f"slow path {slow.total()} ({slow.total() / steps:.4%}) {dict(slow) or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
