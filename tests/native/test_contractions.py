"""Every contraction is what plain Python loops give, to the bit, alone and in batches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coldq import _native
from coldq.base import contractions
from tests.native import plain
from tests.native.instances import SHAPES, drawn

LOOPS = sorted(set(SHAPES) - {"mix", "implied"})
SIZES = [(1, 1), (2, 10), (3, 7), (8, 8), (9, 17), (20, 33)]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_it_has_the_bits_of_a_plain_loop(name: str, n: int, p: int) -> None:
    given = drawn(name, n, p, 3)
    together = getattr(_native, name)(*given)
    for member in range(3):
        loop = getattr(plain, name)(*(array[member].tolist() for array in given))
        assert np.array(loop).tobytes() == np.array(together[member]).tobytes()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_a_batch_has_the_bits_of_one_by_one(name: str, n: int, p: int) -> None:
    given = drawn(name, n, p, 12)
    call = getattr(_native, name)
    folded = [array.reshape(2, 1, 6, *array.shape[1:]) for array in given]
    together = call(*folded)
    each = [call(*(np.array(array[i]) for array in given)) for i in range(12)]
    assert np.array(each).tobytes() == together.tobytes()
    shared = call(*(array[3] for array in given[:-1]), folded[-1])  # the last alone has a batch
    ones = [call(*(array[3] for array in given[:-1]), given[-1][i]) for i in range(12)]
    assert shared.tobytes() == np.array(ones).tobytes()


@pytest.mark.parametrize("shape", [(4, 3, 5), (3, 4, 5), (5, 1, 4), (1, 1, 1), (0, 3, 2)])
def test_any_axis_of_a_batch_may_be_the_longest(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    A, x = rng.normal(size=(*shape, 2, 3)), rng.normal(size=(*shape[1:], 3))
    expected = np.empty((*shape, 2))
    for place in np.ndindex(*shape):
        expected[place] = plain.matvec(A[place].tolist(), x[place[1:]].tolist())
    assert _native.matvec(A, x).tobytes() == expected.tobytes()
    turned = np.empty((*shape[::-1], 2)).transpose(2, 1, 0, 3)
    assert _native.matvec(A, x, turned) is None
    np.testing.assert_array_equal(turned, expected)


def test_a_sum_is_as_near_to_the_exact_one_as_its_order_promises() -> None:
    rng = np.random.default_rng(2)
    for size in (1, 7, 8, 100, 1000):
        a, b = rng.normal(size=size), rng.normal(size=size)
        terms = [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        error = abs(Fraction(float(_native.dot(a, b))) - sum(terms))
        assert error <= (size // 8 + 5) * Fraction(2) ** -53 * sum(map(abs, terms)) * 2


def test_mixing_is_the_product_and_an_absent_neighbour_is_not_looked_at() -> None:
    rng = np.random.default_rng(3)
    W, x = rng.random((5, 5)), rng.normal(size=(5, 11))
    np.testing.assert_allclose(_native.mix(W, x), W @ x, rtol=1e-14)
    x[2] = np.nan
    W[:, 2] = 0.0
    assert np.isfinite(_native.mix(W, x)).all()


def test_empty_sums_are_zero() -> None:
    assert contractions.dot(np.empty(0), np.empty(0)) == 0.0
    assert contractions.vecmat(np.empty((0, 3)), np.empty(0)).tolist() == [0.0] * 3
    assert contractions.matvec(np.empty((2, 0)), np.empty(0)).tolist() == [0.0] * 2
    assert contractions.matvec(np.empty((0, 4, 2)), np.empty(2)).shape == (0, 4)
