"""Steps on blocks of coordinates with sums, by the native core alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from coldq import _native
from tests.native.instances import blocks_drawn

NONE = np.zeros(0)


def nearest_on_simplex(y: np.ndarray, total: float) -> np.ndarray:
    """By sorting (Held, Wolfe and Crowder 1974)."""
    falling = np.sort(y)[::-1]
    theta = (np.cumsum(falling) - total) / np.arange(1, y.size + 1)
    return np.maximum(y - theta[np.flatnonzero(falling > theta)[-1]], 0.0)


def project(y: np.ndarray, start: list, total: list, kind: list) -> np.ndarray:
    p = y.size
    blocks = (np.array(part, float) for part in (start, total, kind))
    bounds = np.zeros(p), np.full(p, np.inf)
    given: tuple[Any, ...] = y, np.zeros(p), 0.5, *(NONE,) * 7, *bounds, *blocks, 60.0
    x, _, residual = _native.blocks_step(*given)
    assert residual <= 1e-13
    return x


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 100])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_rows_it_is_the_projection(size: int, scale: float) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        y = scale * rng.normal(size=3 * size)
        simplex, budget, free = y[:size], y[size : 2 * size], y[2 * size :]
        x = project(y, [0, size, 2 * size], [2.0, 1.0, 0.0], [-np.inf, 0.0, np.inf])
        kept = np.maximum(budget, 0.0)
        kept = kept if kept.sum() <= 1.0 else nearest_on_simplex(budget, 1.0)
        expected = np.concatenate([nearest_on_simplex(simplex, 2.0), kept, np.maximum(free, 0.0)])
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-14 * max(scale, 1.0))


@pytest.mark.parametrize(("n", "p"), [(1, 6), (4, 30), (20, 60)])
def test_sparse_rows_are_as_dense_ones(n: int, p: int) -> None:
    for seed in range(5):
        given = [array[0] for array in blocks_drawn(n, p, 1, seed)]
        A = sparse.csr_array(given[6].reshape(n, p))
        entries: Any = (
            A.data,
            *(part.astype(np.int64).view(float) for part in (A.indices, A.indptr)),
        )
        x, _, residual = _native.blocks_step(*given)
        again, _, off = _native.blocks_step(*given[:6], *entries, *given[9:])
        assert max(residual, off) <= 1e-9
        np.testing.assert_allclose(again, x, atol=1e-9)


def test_a_batch_has_the_bits_of_one_by_one() -> None:
    given = blocks_drawn(5, 30, 20)
    together = _native.blocks_step(*given)
    for i in range(20):
        alone = _native.blocks_step(*(array[i] for array in given))
        for part, whole in zip(alone, together, strict=True):
            assert part.tobytes() == whole[i].tobytes()


@pytest.mark.parametrize(
    ("start", "indices", "indptr"),
    [
        ([1.0], [0, 1], [0, 1, 2]),
        ([np.nan], [0, 1], [0, 1, 2]),
        ([0.0, 7.0], [0, 1], [0, 1, 2]),
        ([0.0, -1.0], [0, 1], [0, 1, 2]),
        ([0.0], [0, 3], [0, 1, 2]),
        ([0.0], [-1, 1], [0, 1, 2]),
        ([0.0], [0, 1], [0, 3, 2]),
        ([0.0], [0, 1], [0, 1, 1]),
        ([0.0], [0, 1], [0, 2]),
    ],
)
def test_what_are_no_blocks_or_no_rows_has_no_answer(
    start: list, indices: list, indptr: list
) -> None:
    k, three, two = len(start), np.ones(3), np.ones(2)
    whole = (np.array(part, np.int64).view(float) for part in (indices, indptr))
    blocks = np.array(start), np.ones(k), np.full(k, -np.inf)
    given: tuple[Any, ...] = (
        three,
        three,
        1.0,
        0.0 * two,
        two,
        0.0 * two,
        two,
        *whole,
        two,
        0.0 * three,
        three,
    )
    assert np.isnan(_native.blocks_step(*given, *blocks, 60.0)[2])
