"""Rows, and a ball, whose step is a root in one multiplier, against bisection in more digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coldq import _native
from tests.native.steps import ROOTS, drawn

LONG = np.longdouble


def root_of(falls: Callable[[Any], Any], most: float) -> Any:
    """Where a function that falls from above zero is zero, by bisection; `most` if nowhere."""
    if falls(LONG(most)) > 0.0:
        return LONG(most)
    left, right = LONG(0.0), LONG(most)
    for _ in range(300):
        middle = 0.5 * (left + right)
        left, right = (middle, right) if falls(middle) > 0.0 else (left, middle)
    return right


def by_bisection(name: str, arguments: list[Any]) -> np.ndarray:
    """x of one row on a box."""
    center, gradient, alpha, _, weight, *row, lower, upper = (
        np.asarray(a, LONG) for a in arguments
    )
    half = 0.5 / alpha
    y = center - gradient * half

    def x_at(mu: Any) -> Any:
        if name == "capacity_step":
            _, s, r = row
            base = 1.0 + r * y
            x = (np.sqrt(base * base + 4.0 * mu * s * r * r) - base) / (2.0 * r) + y
        elif name == "ball_row_step":
            x = (y + mu * row[0] * row[1]) / (1.0 + mu * row[0])
        else:
            x = (y - mu * row[1]) / (1.0 + mu * row[0])
        return np.clip(x, lower, upper)

    def g(mu: Any) -> Any:
        x = x_at(mu)
        if name == "capacity_step":
            return row[0] - (row[1] * np.log1p(row[2] * x)).sum()
        if name == "ball_row_step":
            return 0.5 * row[0] * ((x - row[1]) ** 2).sum() - row[2]
        return (0.5 * row[0] * x * x + row[1] * x).sum() - row[2]

    mu = LONG(0.0) if g(LONG(0.0)) <= 0.0 else root_of(g, float(weight * half))
    return x_at(mu).astype(float)


@pytest.mark.parametrize("name", ROOTS[:3])
@pytest.mark.parametrize("p", [1, 2, 7, 8, 9, 40, 300])
def test_a_row_s_step_is_that_of_bisection_in_more_digits(name: str, p: int) -> None:
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, p])
        arguments = drawn(name, rng, p=p)
        arguments[4] = np.array(10.0 ** rng.uniform(-2.0, 6.0))
        if name == "capacity_step":
            arguments[5] = np.array(rng.uniform(0.0, 1.5) * 0.4 * p)
        elif name == "ball_row_step":
            arguments[7] = np.array(rng.uniform(0.0, 0.5) * p)
        x, multiplier, residual = getattr(_native, name)(*arguments)
        np.testing.assert_allclose(x, by_bisection(name, arguments), rtol=1e-10, atol=1e-12)
        assert residual <= 1e-9
        moved += 0.0 < multiplier < arguments[4]
    assert moved >= 5


@pytest.mark.parametrize("p", [1, 3, 10, 60])
def test_without_rows_a_step_in_a_ball_is_the_nearest_point(p: int) -> None:
    for seed in range(30):
        rng = np.random.default_rng([seed, p])
        arguments = drawn("ball_step", rng, n=0, p=p)
        arguments[9] = np.array(10.0 ** rng.uniform(-2.0, 2.0))
        center, gradient, alpha, *_, middle, radius = arguments
        away = center - gradient * (0.5 / alpha) - middle
        length = float(np.linalg.norm(away))
        x, _, residual = _native.ball_step(*arguments)
        nearest = middle + away * min(1.0, radius / length)
        np.testing.assert_allclose(x, nearest, rtol=1e-12, atol=1e-13 * (1.0 + length))
        assert residual <= 1e-12


@pytest.mark.parametrize("name", ROOTS)
def test_a_batch_has_the_bits_of_one_by_one(name: str) -> None:
    arguments = drawn(name, np.random.default_rng(6), (50,), n=3, p=11)
    together = getattr(_native, name)(*arguments)
    cores = [a.ndim - (a.shape[:1] == (50,)) for a in arguments]
    for k in range(50):
        one = [a[k] if a.ndim > c else a for a, c in zip(arguments, cores, strict=True)]
        for its, all_of_them in zip(getattr(_native, name)(*one), together, strict=True):
            assert np.asarray(its).tobytes() == all_of_them[k].tobytes()


@pytest.mark.parametrize("name", ["capacity_step", "ball_row_step", "diagonal_row_step"])
def test_a_hard_row_that_no_point_of_the_box_meets_is_told(name: str) -> None:
    arguments = drawn(name, np.random.default_rng(7), p=5)
    arguments[4], limit = np.array(np.inf), 5 if name == "capacity_step" else 7
    arguments[limit] = np.array(1e3 if limit == 5 else -1e3)
    assert getattr(_native, name)(*arguments)[2] == np.inf
