"""Very many steps that are drawn to break the solver, and what became of them.

Exit status 1 says that a line was crossed: a wrong answer, a false `Infeasible` or, at moderate
scales, a step that failed, more than one `Inexact` in 10,000, or a small one that takes more than
10 ms; at extreme scales, one step in 1,000 that failed. An answer of rows with kinks may be
"unproven": a search finds nothing better, but the judge's bound from below is not close enough.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from contextlib import suppress
from importlib import import_module

import numpy as np

import coldq
from tests.adversary.drawn import EXTREME, MODERATE, Draw, Drawn

LIMIT = 0.010  # seconds, of a step with at most SMALL rows and coordinates
SMALL = 20
COUNTED = ("wrong", "failed", "false infeasible", "inexact", "unproven", "slow")
TIMED = ("affine", "capacity", "quadratic", "max-affine")


def draws() -> dict[tuple[str, str], Draw]:
    """Every kind of draw, by rows and domain."""
    found: dict[tuple[str, str], Draw] = {}
    for name in ("affine_rows", "curved_rows"):
        try:
            found.update(import_module(f"tests.adversary.{name}").DRAWS)
        except ModuleNotFoundError as missing:
            if missing.name != f"tests.adversary.{name}":
                raise
    return found


class Count:
    """What became of the steps of one kind."""

    def __init__(self) -> None:
        self.steps, self.worst, self.times = 0, 0.0, list[float]()
        self.counts: Counter[str] = Counter()

    def add(self, drawn: Drawn, verdict: str, off: float, seconds: float) -> None:
        self.steps += 1
        self.counts[verdict] += 1
        self.worst = max(self.worst, off)
        self.times.append(seconds)

    def line(self) -> str:
        """The counts and times of a table's line."""
        c, times = self.counts, 1e3 * np.array([*self.times, 0.0])
        median, rare, slowest = np.quantile(times, [0.5, 0.99, 1.0])
        words = [str(n) for n in (self.steps, *(c[verdict] for verdict in COUNTED))]
        return " | ".join([*words, f"{median:.2f}", f"{rare:.1f}", f"{slowest:.1f}"])


def solve(drawn: Drawn) -> tuple[str, float, float, str]:
    """The verdict on a step's answer, how far it is off, how long it took, and words."""
    begun = time.thread_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            step = drawn.solve()
        except coldq.Infeasible as error:
            seconds = time.thread_time() - begun
            return ("false infeasible" if drawn.feasible else "right"), 0.0, seconds, str(error)
        except coldq.Error as error:
            told_so = drawn.feasible is False and "may be infeasible" in str(error)
            seconds = time.thread_time() - begun
            return ("right" if told_so else "failed"), 0.0, seconds, str(error)
    seconds = time.thread_time() - begun
    words = "; ".join(str(w.message) for w in told)
    if drawn.feasible is False:
        return "wrong", np.inf, seconds, "an answer, where there is none"
    off = drawn.judge(step)
    inexact = any(issubclass(w.category, coldq.Inexact) for w in told)
    if told and not inexact:
        return "failed", off, seconds, words
    allowed = 1e-6 if inexact else drawn.allowed
    if not off <= allowed:
        if drawn.doubt is not None and drawn.doubt(step) <= allowed:
            return "unproven", off, seconds, f"proved within {off:.2g}"
        return "wrong", off, seconds, f"off by {off:.2g}, residual {float(step.residual):.2g}"
    return ("inexact" if inexact else "right"), off, seconds, words


def is_small(drawn: Drawn) -> bool:
    *_, constraint, domain = drawn.arguments
    n = getattr(constraint, "n_constraints", 0)
    return drawn.rows in TIMED and domain.dim <= SMALL and n <= SMALL


def best_of_three(drawn: Drawn, seconds: float) -> float:
    """The best time of a step that took too long: the machine may have been busy."""
    for _ in range(3):
        if seconds > LIMIT:
            seconds = min(seconds, solve(drawn)[2])
    return seconds


def run(
    rows: str, domain: str, draw: Draw, steps: int, seed: int, scale: str, timed: bool = True
) -> Count:
    """Draw, solve and judge; step k of a seed is the same however many there are."""
    count = Count()
    if steps:  # what is imported and compiled for the first step is not its time
        with suppress(coldq.Error):
            draw(np.random.default_rng(seed), scale).solve()
    for k in range(steps):
        key = [seed, k, *f"{rows} {domain} {scale}".encode()]
        drawn = draw(np.random.default_rng(key), scale)
        verdict, off, seconds, words = solve(drawn)
        slow = False
        if timed and is_small(drawn):
            seconds = best_of_three(drawn, seconds)
            slow = seconds > LIMIT
        count.add(drawn, verdict, off, seconds)
        if slow:
            count.counts["slow"] += 1
        if verdict != "right" or slow:
            print(f"{rows} on {domain}, {scale} {seed} {k} ({drawn.category}): {verdict}, "
                  f"{1e3 * seconds:.1f} ms, {words}", file=sys.stderr)  # fmt: skip
    return count


def crossed(count: Count, scale: str) -> bool:
    """Whether the steps of a kind cross a line."""
    wrong = count.counts["wrong"] + count.counts["false infeasible"]
    failed, inexact = count.counts["failed"], count.counts["inexact"]
    if scale == EXTREME:
        return wrong > 0 or 1_000 * failed >= max(count.steps, 1_000)
    return wrong + failed + count.counts["slow"] > 0 or 10_000 * inexact > max(count.steps, 10_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", help="these rows alone")
    parser.add_argument("--domain", help="this domain alone")
    parser.add_argument("--steps", type=int, default=1_000, help="of each pair")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", choices=(MODERATE, EXTREME), default=MODERATE)
    parser.add_argument("--traffic", type=int, metavar="N", help="N steps like a backbone's alone")
    given = parser.parse_args()
    chosen, steps = draws(), given.steps
    if given.traffic is not None:
        from tests.adversary.traffic import draw_traffic

        chosen, steps = {("affine", "traffic"): draw_traffic}, given.traffic
    names = ("rows", "domain", "steps", *COUNTED, "median ms", "99% ms", "slowest ms")
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    bad = False
    for (rows, domain), draw in chosen.items():
        if (given.rows and rows not in given.rows) or (given.domain or domain) != domain:
            continue
        count = run(rows, domain, draw, steps, given.seed, given.scale)
        print(f"| {rows} | {domain} | {count.line()} |", flush=True)
        told = given.traffic is not None and count.counts["inexact"] > 0
        bad = bad or crossed(count, given.scale) or told
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
