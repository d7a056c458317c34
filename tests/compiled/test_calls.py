"""Kernels read what Python gives them, refuse what they cannot read, and are silent."""

from __future__ import annotations

import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldq.compiled import Kernel, machine
from tests.compiled import small

RNG = np.random.default_rng(1)


@given(
    st.sampled_from([(), (3,), (1,), (4, 3), (4, 1), (0,), (2, 4, 3), (1, 1, 3)]),
    st.sampled_from([(), (3,), (4, 1), (2, 1, 1)]),
    st.integers(0, 4),
    st.integers(0, 5),
)
def test_leading_axes_broadcast_as_numpy_does(one, other, n, p) -> None:
    try:
        batch = np.broadcast_shapes(one, other)
    except ValueError:
        return
    A, x = RNG.normal(size=(*one, n, p)), RNG.normal(size=(*other, p))
    factor = RNG.normal(size=batch[-1:])
    out = np.full((*batch, n), np.nan)
    largest = small.scaled_product()(A, x, factor, out)
    wanted = factor[..., None] * (A @ x[..., None])[..., 0]
    np.testing.assert_allclose(out, np.broadcast_to(wanted, out.shape), rtol=1e-13, atol=1e-13)
    assert largest == max(0.0, out.max(initial=0.0))


@given(st.integers(-5, 6), st.integers(-5, 6))
def test_loops_go_as_those_of_python_do(start: int, stop: int) -> None:
    assert small.rounds()(start, stop) == small.rounds.function(start, stop)


@given(st.integers(0, 6), st.integers(0, 6), st.lists(st.integers(-3, 3), min_size=3, max_size=3))
def test_variables_hold_what_those_of_python_do(start, stop, values) -> None:
    v = np.array(values, float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as the one that it was compiled by other means
        found = small.wander()(v, start, stop)
    assert found == small.wander.function(v, start, stop)


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(-4, 4))
def test_the_largest_and_the_smallest_are_those_of_python(a, b, c, whole) -> None:
    found, wanted = small.extremes()(a, b, c, whole), small.extremes.function(a, b, c, whole)
    assert np.array(found).tobytes() == np.array(wanted, float).tobytes()


@pytest.mark.parametrize("i", range(-3, 3))
def test_indices_below_0_count_from_the_end(i: int) -> None:
    v = np.arange(6.0)
    M = v.reshape(2, 3)
    assert small.entries()(v, i) == (0.0, 5.0, v[i], M[1, -1], M[-1, i], M[-2, 2], M[1, i])


def test_leading_axes_may_have_any_steps() -> None:
    whole = RNG.normal(size=(6, 5, 2, 3))
    A, x = np.swapaxes(whole, 0, 1)[:3, ::2], RNG.normal(size=(3, 3))
    out = np.empty((3, 8, 2))[:, 1::3]
    small.scaled_product()(A, x, 1.0, out)
    np.testing.assert_allclose(out, np.einsum("abnp,bp->abn", A, x), rtol=1e-13)


@pytest.mark.parametrize(
    ("A", "x", "factor", "out"),
    [
        (np.ones((2, 3)), np.ones(4), 1.0, np.empty(2)),
        (np.ones((2, 3)), np.ones(3), 1.0, np.empty(3)),
        (np.ones((5, 2, 3)), np.ones(3), 1.0, np.empty(2)),  # would enlarge the output
        (np.ones((5, 2, 3)), np.ones((4, 3)), 1.0, np.empty((5, 2))),
        (np.ones((2, 3), np.float32), np.ones(3), 1.0, np.empty(2)),
        (np.ones((2, 3), int), np.ones(3), 1.0, np.empty(2)),
        (np.ones((2, 3), ">f8"), np.ones(3), 1.0, np.empty(2)),
        (np.ones((2, 3), complex), np.ones(3), 1.0, np.empty(2)),
        (np.ones((3, 2)).T, np.ones(3), 1.0, np.empty(2)),  # core axes lie apart
        (np.ones((2, 3)), np.ones(6)[::2], 1.0, np.empty(2)),
        (np.ones((2, 3)), np.frombuffer(b"\0" * 25, np.float64, 3, 1), 1.0, np.empty(2)),
        (np.ones(3), np.ones(3), 1.0, np.empty(2)),
        (np.ones((2, 3)), 1.0, 1.0, np.empty(2)),
        (np.ones((2, 3)), np.ones(3), "one", np.empty(2)),
        (np.ones((2, 3)), np.ones(3), None, np.empty(2)),
        (np.ones((2, 3)), np.ones(3), 1j, np.empty(2)),
        (np.ones((2, 3)), np.ones(3), [1.0], np.empty(2)),
        (np.ma.ones((2, 3)), np.ones(3), 1.0, np.empty(2)),
        (object(), np.ones(3), 1.0, np.empty(2)),
    ],
)
def test_what_does_not_fit_is_refused(A, x, factor, out) -> None:
    out[...] = -7.0
    with pytest.raises(TypeError):
        small.scaled_product()(A, x, factor, out)
    assert (out == -7.0).all()


def test_the_number_of_arguments_is_checked() -> None:
    for arguments in ((), (np.ones((2, 3)), np.ones(3), 1.0), (np.ones(3),) * 5):
        with pytest.raises(TypeError):
            small.scaled_product()(*arguments)
    with pytest.raises(TypeError):
        small.three()()


@pytest.mark.parametrize("factor", [2, 2.0, True, np.float64(2.0), np.float32(2.0), np.array(2.0)])
def test_numbers_of_any_kind_stand_for_arrays_without_axes(factor) -> None:
    if isinstance(factor, np.ndarray):
        factor = factor.astype(np.float64)
    out = np.empty(2)
    small.scaled_product()(np.ones((2, 3)), np.ones(3), factor, out)
    assert out.tolist() == [3.0 * float(factor)] * 2


@pytest.mark.parametrize(
    ("values", "worst"),
    [([1.0, 5.0, 2.0], 5.0), ([-1.0, -2.0], 0.0), ([1.0, np.inf, 2.0], np.inf), ([], 0.0),
     ([1.0, np.nan, 2.0], np.nan), ([np.nan, np.inf], np.nan), ([np.inf, np.nan], np.nan)],
)  # fmt: skip
def test_the_largest_of_a_batch_is_returned_and_nan_not_lost(values, worst) -> None:
    found = small.itself()(np.array(values), np.empty(len(values)))
    assert found == worst or (np.isnan(found) and np.isnan(worst))


def test_marked_core_axes_may_lie_apart_and_marked_operands_be_absent() -> None:
    points = RNG.normal(size=(7, 4, 3))
    out, filled = np.empty((4, 3)), np.empty(4)
    small.column_sums()(np.swapaxes(points, 0, 1), out, filled)
    np.testing.assert_allclose(out, points.sum(axis=0), rtol=1e-13)
    assert filled.tolist() == [1024.0] * 4


def test_what_is_the_same_along_a_marked_axis_is_broadcast() -> None:
    lines, factors, shifts = RNG.normal(size=(2, 5, 3)), RNG.normal(size=5), RNG.normal(size=(5, 3))
    out = np.empty((2, 5, 3))
    for factor in (factors, factors[:1], 0.5, np.array(0.5)):
        for shift in (shifts, shifts[:1], shifts[2]):
            small.scaled_and_shifted()(lines, factor, shift, out)
            expected = lines * np.broadcast_to(factor, 5)[:, None] + shift
            np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)
    for factor, shift in ((factors[:4], shifts), (factors, shifts[:2]), (factors, shifts[0, :1])):
        with pytest.raises(TypeError):
            small.scaled_and_shifted()(lines, factor, shift, out)
    with pytest.raises(TypeError):  # of the first operand an axis is known by none before
        small.column_sums()(np.ones(3), np.empty(3), np.empty(()))


def test_every_kind_of_argument() -> None:
    v, M, w = np.arange(3.0), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5])
    assert small.everything()(v, M, w, 0.25, 7) == 3.5 + 30.0 + 500.0 + 0.25 + 7.0
    assert small.everything()(v, M, w, np.array(0.25), True) == 3.5 + 30.0 + 500.0 + 0.25 + 1.0
    assert small.three()(v) == (0.0, 1.0, 2.0)
    good = [v, M, w, 0.25, 7]
    for place, bad in (
        (0, M), (0, v[::2]), (0, w), (1, v), (1, M.T), (2, v), (2, np.array([5], np.int32)),
        (3, "x"), (3, v), (4, 1.5), (4, 2**70), (4, None),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            small.everything()(*good[:place], bad, *good[place + 1 :])


def test_the_flags_of_the_processor_reach_nobody() -> None:
    # Zero over zero, overflow and underflow happen in there, on any processor.
    a = np.array([1e308, 0.0, 1.0, 1e-308] * 16)
    b = np.array([1e-308, 0.0, 1e300, 1e308] * 16)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert small.guarded_quotients()(a, b) == 1.0
        A = np.full((50, 2, 3), 1e200)
        small.scaled_product()(A, np.full(3, 1e200), 1e-200, np.empty((50, 2)))
        assert (np.ones(3) / 2.0).tolist() == [0.5] * 3  # and none is left for NumPy to find


def test_other_threads_run_while_a_large_batch_is_at_work() -> None:
    A, x, out = np.ones((20_000, 8, 64)), np.ones(64), np.empty((20_000, 8))
    counts, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counts[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    product, progress = small.scaled_product(), []
    for _ in range(20):
        before = counts[0]
        product(A, x, 1.0, out)
        progress.append(counts[0] - before)
    done.set()
    thread.join()
    assert max(progress) > 0


@pytest.mark.parametrize("fuses", [True, False])
def test_what_rounding_takes_from_a_product_is_exact(fuses, monkeypatch, tmp_path) -> None:
    """Whether the processor fuses a product with a sum, or not, which the code is made for."""
    monkeypatch.setenv("COLDQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "fuses", lambda: fuses)
    multiply = Kernel(small.long_product.function, signature="ff")()
    for a, b in RNG.normal(size=(500, 2)) * 10.0 ** RNG.integers(-90, 90, size=(500, 2)):
        high, low = multiply(a, b)
        assert high == a * b
        assert Fraction(high) + Fraction(low) == Fraction(a) * Fraction(b)


def test_exact_functions_are_exact_whoever_calls_them() -> None:
    assert small.lost_to_rounding()(1e5, 1e-12) == 2e-12
