"""BLAS runs on one thread while a step of middle size is solved, and on as many as before after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 (has a BLAS of its own)
from threadpoolctl import threadpool_info, threadpool_limits

import coldq
from coldq.solver import interior_point
from coldq.solver.blas import LARGE, SMALL, on_one_thread

MIDDLE = (np.ones((40, 100)), "a name")


def threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield


@on_one_thread
def seen_inside(instance: tuple, deeper: int = 0) -> set[int]:
    return seen_inside(instance, deeper - 1) if deeper else threads()


@pytest.mark.parametrize("deeper", [0, 2])
def test_an_instance_is_solved_on_one_thread_and_the_others_come_back(deeper: int) -> None:
    assert seen_inside(MIDDLE, deeper) == {1}
    assert threads() == {2}


@pytest.mark.parametrize("size", [SMALL - 1, LARGE + 1])
def test_a_tiny_or_large_instance_keeps_its_threads(size: int) -> None:
    assert seen_inside((np.ones(size),)) == {2}


def test_the_threads_come_back_after_an_error() -> None:
    @on_one_thread
    def fails(instance: tuple) -> None:
        raise ValueError(f"with {threads()}")

    with pytest.raises(ValueError, match=r"with \{1\}"):
        fails(MIDDLE)
    assert threads() == {2}
    assert seen_inside(MIDDLE) == {1}


@pytest.mark.parametrize("X", [coldq.Box(0.0, 5.0, dim=60), coldq.Simplex(60)])
def test_a_step_with_many_rows_that_clash_is_taken_on_one_thread(
    X: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, factored = set(), interior_point.factored

    def looking(*given: Any) -> Any:
        seen.update(threads())
        return factored(*given)

    monkeypatch.setattr(interior_point, "factored", looking)
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((120, 60)), rng.standard_normal(120) - 1.0
    coldq.penalised_step(np.zeros(60), np.ones(60), 1.0, 50.0, coldq.Affine(A, b), X)
    assert seen == {1} and threads() == {2}
