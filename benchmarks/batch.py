"""Ten thousand steps in one call, against the least that a compiled loop could do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time

import numba
import numpy as np

import coldq
from benchmarks.clock import timed
from benchmarks.families import Array, Family, Slot
from coldq.base.system import thread_count
from coldq.slot.step import solve


@numba.njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def bare_loop(center, gradient, alpha, A, b, lower, upper, x, g):
    """For every instance a gradient step, the clip to the box and one A x - b."""
    for j in range(center.shape[0]):
        half = 0.5 / alpha[j]
        for i in range(center.shape[1]):
            free = center[j, i] - gradient[j, i] * half
            x[j, i] = min(max(free, lower[i]), upper[i])
        for k in range(b.shape[1]):
            total = -b[j, k]
            for i in range(center.shape[1]):
                total += A[j, k, i] * x[j, i]
            g[j, k] = total


@dataclass(frozen=True)
class Batch:
    """Medians in microseconds an instance, and the median of the ratios of neighbouring calls.

    On one core CPU time: beside other work a long call is interrupted more often than a short one,
    so that the clock would favour the loop. On all cores it is the clock, for the loop as well.
    """

    count: int
    cores: int
    loop: float
    one_core: float
    all_cores: float
    times_loop: float
    times_loop_all_cores: float


def measure(families: Sequence[Family], count: int, rounds: int) -> Batch:
    """Time the loop and our step in turns on `count` slots of the families' runs."""
    moments = [moment for family in families for moment in family.moments][:count]
    batch = stack([moment.slot for moment in moments])
    constraint, domain = batch.constraint, batch.domain
    x, g = np.empty_like(batch.center), np.empty_like(batch.queue)

    def loop() -> None:
        bare_loop(
            batch.center, batch.gradient, batch.alpha, constraint.A, constraint.b,
            domain.lower, domain.upper, x, g,
        )  # fmt: skip

    def step() -> None:
        solve(*batch)

    with on_threads(None):
        cores = thread_count()
    settings: tuple[tuple[Callable[[], None], str | None], ...] = (
        (loop, "1"), (step, "1"), (step, None),
    )  # fmt: skip
    seconds, at_work = np.empty((2, rounds, len(settings)))
    for turn in range(-1, rounds):  # the first turn compiles and is overwritten
        for k, (function, threads) in enumerate(settings):
            with on_threads(threads):
                begun = thread_time()
                seconds[turn, k], _ = timed(function)
                at_work[turn, k] = thread_time() - begun
    each = [*np.median(at_work[:, :2], axis=0), np.median(seconds[:, 2])]
    ratios = (at_work[:, 1] / at_work[:, 0], seconds[:, 2] / seconds[:, 0])
    return Batch(
        len(moments),
        cores,
        *(1e6 * float(one) / len(moments) for one in each),
        *(float(np.median(ratio)) for ratio in ratios),
    )


def stack(slots: Sequence[Slot]) -> Slot:
    def joined(arrays: list[Array]) -> Array:
        return np.ascontiguousarray(np.stack(arrays))

    return Slot(
        joined([slot.center for slot in slots]),
        joined([slot.gradient for slot in slots]),
        joined([slot.alpha for slot in slots]),
        joined([slot.queue for slot in slots]),
        coldq.Affine(
            joined([slot.constraint.A for slot in slots]),
            joined([slot.constraint.b for slot in slots]),
        ),
        slots[0].domain,
    )


@contextmanager
def on_threads(count: str | None) -> Iterator[None]:
    """As many threads as told; by default all cores we may use."""
    before = os.environ.pop("COLDQ_THREADS", None)
    if count is not None:
        os.environ["COLDQ_THREADS"] = count
    try:
        yield
    finally:
        os.environ.pop("COLDQ_THREADS", None)
        if before is not None:
            os.environ["COLDQ_THREADS"] = before
