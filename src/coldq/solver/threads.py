"""Run an entry of the native core over a batch, split over threads where that pays.

Entries are serial and release the GIL in a large batch, so every thread runs the same code on its
part and the answers have the same bits however they were split.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.system import in_every_fork, thread_count
from coldq.solver.problem import DoNotFit

MIN_THREAD_WORK = 40_000  # numbers that one thread goes through before a second one pays
PARTS_PER_THREAD = 8  # for each thread

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


@in_every_fork
def _forget_pool() -> None:
    """A forked child inherits the pool object, but none of its threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


def _workers() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(64, thread_name_prefix="coldq")
        return _pool


def run_batch(
    entry: Any,
    inputs: Sequence[Array],
    cores: Sequence[int],
    out_cores: Sequence[tuple[int, ...]],
    work: int,
) -> tuple[Array, ...]:
    """The outputs, of core shapes `out_cores`, of an entry over a batch.

    `cores` is the number of core axes of each input. The first input, a vector, carries the whole
    batch; the others broadcast to it. `work` is how many numbers an instance is gone through in.
    Raises DoNotFit if the inputs do not fit together.
    """
    batch = inputs[0].shape[:-1]
    outputs = tuple([np.empty((*batch, *core)) for core in out_cores])
    try:
        fill_batch(entry, inputs, cores, outputs, batch, work)
    except TypeError:
        raise _misfit(inputs) from None
    return outputs


def _spread(inputs: Sequence[Any], cores: Sequence[int], batch: tuple[int, ...]) -> list[Any]:
    """The inputs with all axes of the batch; nothing is copied."""
    return [
        a if a is None else np.broadcast_to(a, batch + np.shape(a)[np.ndim(a) - c :])
        for a, c in zip(inputs, cores, strict=True)
    ]


def _misfit(inputs: Sequence[Array]) -> DoNotFit:
    shapes = " and ".join(str(np.shape(array)) for array in inputs)
    return DoNotFit(f"arrays of shapes {shapes} do not fit together")


def fill_batch(
    entry: Any,
    inputs: Sequence[Any],
    cores: Sequence[int],
    outputs: Sequence[Array],
    batch: tuple[int, ...],
    work: int,
) -> None:
    """Run an entry into outputs, over a batch of so much work an instance."""
    parts, threads = _parts(work, batch) if batch else (1, 1)
    if threads < 2:
        entry(*inputs, *outputs)
    else:
        _split(entry, parts, threads, inputs, cores, batch, outputs)


def _parts(work: int, batch: tuple[int, ...]) -> tuple[int, int]:
    """In how many parts a batch is run, and by how many threads."""
    parts = work * math.prod(batch) // MIN_THREAD_WORK
    if parts < 2:
        return 1, 1
    parts = min(parts, max(batch, default=1))
    threads = min(parts, thread_count())
    return min(parts, PARTS_PER_THREAD * threads), threads


def _split(
    entry: Any,
    parts: int,
    threads: int,
    inputs: Sequence[Array],
    cores: Sequence[int],
    batch: tuple[int, ...],
    outputs: Sequence[Array],
) -> None:
    axis = batch.index(max(batch))
    spread = _spread(inputs, cores, batch)
    edges = np.linspace(0, batch[axis], parts + 1).astype(int)

    def run(part: int) -> None:
        here = (slice(None),) * axis + (slice(edges[part], edges[part + 1]),)
        its = (a if a is None else a[here] for a in spread)
        entry(*its, *(o[here] for o in outputs))

    left = deque(range(parts))

    def run_all() -> None:
        while left:
            try:
                part = left.popleft()
            except IndexError:  # another thread was faster
                return
            run(part)

    # Whoever has a core takes the next part: one that has none, because others are at work there,
    # keeps nobody waiting.
    futures = [_workers().submit(run_all) for _ in range(1, threads)]
    try:
        run_all()
    finally:
        left.clear()
        for future in futures:
            if not future.cancel():
                future.result()
