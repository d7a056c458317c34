"""Rows that clash in few coordinates or on a simplex, exactly solved at any weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import coldq
from coldq.slot.step.reference import reference_step
from coldq.solver import cascade, simplices
from coldq.solver.answer import TOLERANCE
from tests import pairs
from tests.instances import Instance, residual_of
from tests.solver.test_interior_point import KINDS, clashing, vary


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without all other methods than the first."""

    def asked(*_: Any) -> None:
        pytest.fail("another method was asked")

    for module, name in (
        (cascade, "rescue"), (cascade, "solve_in_one_block"), (simplices, "from_guess"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, asked)


def on_a_simplex(one: Instance, total: float, cap: float) -> pairs.Problem:
    p = one.lower.size
    domain: Any = coldq.Simplex(p, total=total, cap=cap)
    rows = pairs.affine_rows(np.abs(one.A), np.abs(one.b) * total)
    return pairs.Problem(
        "clashing",
        domain.start(),
        one.gradient,
        one.alpha,
        one.multiplier_lower,
        one.multiplier_upper,
        rows,
        domain,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [6, 20, 48])
def test_rows_of_every_kind_are_solved_exactly(kind: str, most: int) -> None:
    rng = np.random.default_rng(most)
    for _ in range(10):
        p, N = int(rng.integers(1, most + 1)), int(rng.integers(17, 90))
        one = vary(rng, clashing(rng, N, p), kind)
        step = one.solve()
        assert residual_of(one, step.x, step.multipliers) <= TOLERANCE, (N, p)


@pytest.mark.parametrize("weight", [1.0, 25.0, 2500.0, 2.5e5, 2.5e7])
@pytest.mark.parametrize(("N", "p"), [(31, 10), (100, 4), (100, 10), (60, 30), (500, 15)])
@pytest.mark.usefixtures("alone")
def test_no_other_method_is_asked_however_heavy_they_are(N: int, p: int, weight: float) -> None:
    rng = np.random.default_rng(N)
    for _ in range(4):
        one = clashing(rng, N, p, weight)
        step = one.solve()
        assert residual_of(one, step.x, step.multipliers) <= TOLERANCE


@pytest.mark.parametrize("total", [1.0, 1e6])
@pytest.mark.parametrize(("N", "p"), [(20, 20), (44, 100), (90, 40)])
def test_rows_that_clash_on_a_simplex_are_solved_exactly(N: int, p: int, total: float) -> None:
    rng = np.random.default_rng(N)
    for weight in (25.0, 2.5e5):
        for cap in (np.inf, 4.0 * total / p):
            one = clashing(rng, N, p, weight)
            problem = on_a_simplex(one, total, cap)._replace(alpha=1.0 / total)
            assert pairs.residual(problem, problem.solve(), TOLERANCE) <= TOLERANCE


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_heavy_rows_are_broken_as_little_as_can_be(scale: float) -> None:
    """Beside weights so heavy the rest of the cost counts for nothing: what is left is a linear
    program with one answer, which HiGHS finds as well."""
    rng, N, p = np.random.default_rng(1), 80, 9
    one = clashing(rng, N, p)
    hinges = np.concatenate([np.zeros(p), np.ones(N)])
    bounds = [(0.0, 5.0)] * p + [(0.0, None)] * N
    best = linprog(hinges, np.hstack([one.A, -np.eye(N)]), one.b, bounds=bounds).x[:p]
    for weight in (1e6, 1e9):
        step = coldq.penalised_step(
            one.center * scale, one.gradient, 1.0 / scale, weight,
            coldq.Affine(one.A, one.b * scale), coldq.Box(0.0, 5.0 * scale, dim=p),
        )  # fmt: skip
        np.testing.assert_allclose(step.x, best * scale, rtol=1e-9, atol=1e-12 * scale)


def test_the_answer_is_the_oracles() -> None:
    rng = np.random.default_rng(2)
    one = clashing(rng, 40, 8)
    domains: Any = coldq.Box(one.lower, one.upper), coldq.Simplex(8), coldq.Simplex(8, cap=0.3)
    for domain in domains:
        arguments = (
            one.center,
            one.gradient,
            1.0,
            one.multiplier_upper,
            coldq.Affine(one.A, one.b),
            domain,
        )
        step = coldq.penalised_step(*arguments)
        x, value = reference_step(*arguments)
        np.testing.assert_allclose(step.x, x, atol=1e-5)
        assert one.objective(step.x) <= value + 1e-7 * (1.0 + abs(value))


@pytest.mark.parametrize("domain", [coldq.Box(0.0, 5.0, dim=12), coldq.Simplex(12)])
def test_a_batch_is_one_by_one(domain: Any) -> None:
    rng = np.random.default_rng(3)
    ones = [clashing(rng, 30, 12) for _ in range(5)]
    center = np.broadcast_to(domain.start(), (5, 12))
    gradient, A, b = (
        np.array([getattr(one, name) for one in ones]) for name in ("gradient", "A", "b")
    )
    together = coldq.penalised_step(center, gradient, 1.0, 25.0, coldq.Affine(A, b), domain)
    for k in range(5):
        rows = coldq.Affine(A[k], b[k])
        alone = coldq.penalised_step(center[k], gradient[k], 1.0, 25.0, rows, domain)
        assert (alone.x == together.x[k]).all()
        assert (alone.multipliers == together.multipliers[k]).all()


@pytest.mark.parametrize("kind", ["duplicate rows", "rows of zeros", "all through one point"])
def test_ties_do_no_harm(kind: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        one = clashing(rng, 60, 7)
        A, b = one.A.copy(), one.b.copy()
        match kind:
            case "duplicate rows":
                A[30:], b[30:] = A[:30], b[:30]
            case "rows of zeros":
                A[::3] = 0.0
            case "all through one point":
                A = np.round(A)
                b = A @ np.full(7, 2.0)
        one = one._replace(A=A, b=b)
        step = one.solve()
        assert residual_of(one, step.x, step.multipliers) <= TOLERANCE
