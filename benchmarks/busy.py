"""Steps on cores that are busy with other work: ``python benchmarks/busy.py``.

Rows that clash on simplices, of which an interior-point method finds the ones that decide: with one
thread of BLAS, as the library takes it, and with as many as BLAS would take, beside as many other
processes as cores, and alone. By the clock, the median and the longest of several draws. A script,
for the package's modules have one thread of everything.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

import coldq
from coldq.solver import simplices
from coldq.solver.threads import thread_count

N, BLOCKS, SIZE, DRAWS = 150, 30, 5, 8


def drawn(seed: int) -> tuple[Any, ...]:
    """The arguments of a step."""
    rng, p = np.random.default_rng(seed), BLOCKS * SIZE
    domain = coldq.Product(*(coldq.Simplex(SIZE) for _ in range(BLOCKS)))
    rows = coldq.Affine(rng.standard_normal((N, p)), rng.standard_normal(N) - 1.0)
    weights = 10.0 ** rng.uniform(-1.0, 2.0, N)
    return np.full(p, 1.0 / SIZE), rng.standard_normal(p), 1.0, weights, rows, domain


def spin() -> None:
    while True:
        np.ones(1000).sum()


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Others at work meanwhile."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=spin, daemon=True) for _ in range(processes)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.join()


def took(draws: list[tuple[Any, ...]]) -> list[float]:
    """The seconds of each."""
    times = []
    for given in draws:
        begun = perf_counter()
        coldq.penalised_step(*given)
        times.append(perf_counter() - begun)
    return times


def main() -> None:
    """Print a line for each."""
    draws = [drawn(seed) for seed in range(DRAWS)]
    took(draws[:1])
    ours, theirs = simplices.best_of_guesses, simplices.best_of_guesses.__wrapped__  # type: ignore[attr-defined]
    for others in (0, thread_count()):
        with busy(others):
            for what, solve in (("one thread", ours), ("BLAS's own", theirs)):
                simplices.best_of_guesses = solve
                times = 1e3 * np.array(took(draws))
                print(
                    f"{others} other processes, {what}: median {np.median(times):.0f} ms, "
                    f"longest {times.max():.0f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
