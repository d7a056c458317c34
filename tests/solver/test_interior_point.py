"""Many rows that cannot all be met: exact whatever their kind, and guessed from inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.base.arrays import Array
from coldq.slot.step.reference import reference_step
from coldq.solver.answer import TOLERANCE
from coldq.solver.interior_point import guess_multipliers
from tests import pairs
from tests.instances import CATEGORIES, Instance, make_instance, residual_of

INF = np.inf


def clashing(rng: np.random.Generator, N: int, p: int, weight: float = 25.0) -> Instance:
    """Rows that point anywhere on a box: more of them pull at the optimum than it has sides."""
    return Instance(
        np.full(p, 2.5), rng.standard_normal(p), 1.0, np.zeros(N), np.full(N, weight),
        rng.standard_normal((N, p)), rng.uniform(-0.5, 1.0, N), np.zeros(p), np.full(p, 5.0),
    )  # fmt: skip


def vary(rng: np.random.Generator, instance: Instance, kind: str) -> Instance:
    """The same rows otherwise: of other kinds, on other bounds, or with ties."""
    _, _, _, floor, weights, A, b, lower, upper = instance
    N, p = A.shape
    some, here = rng.random(N) < 0.5, rng.random(p) < 0.5
    point = rng.uniform(0.0, 5.0, p)
    match kind:
        case "steep or flat":
            return instance._replace(alpha=float(10.0 ** rng.uniform(-6.0, 6.0)))
        case "equality penalties":
            return instance._replace(multiplier_lower=np.where(some, -weights, floor))
        case "linear rows":
            return instance._replace(multiplier_lower=np.where(some, weights, floor))
        case "weights of zero":
            return instance._replace(multiplier_upper=np.where(some, 0.0, weights))
        case "duplicate rows":
            same = rng.integers(0, N // 3, N)
            return instance._replace(
                A=A[same], b=b[same], multiplier_upper=weights * rng.integers(0, 3, N)
            )
        case "fixed coordinates":
            return instance._replace(upper=np.where(here, lower, upper))
        case "unbounded":
            high = np.where(rng.random(p) < 0.5, INF, upper)
            return instance._replace(lower=np.where(here, -INF, lower), upper=high)
        case "enforced rows":
            room = rng.random(N) * (rng.random(N) < 0.6)
            met = np.where(some, A @ point + room, b)
            return instance._replace(b=met, multiplier_upper=np.where(some, INF, weights))
        case "hard equalities":
            equal = np.arange(N) < p // 2
            return instance._replace(
                b=np.where(equal, A @ point, b), multiplier_upper=np.where(equal, INF, weights),
                multiplier_lower=np.where(equal, -INF, floor),
            )  # fmt: skip
    return instance


KINDS = (
    "hinges", "steep or flat", "equality penalties", "linear rows", "weights of zero",
    "duplicate rows", "fixed coordinates", "unbounded", "enforced rows", "hard equalities",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_cannot_all_be_met_are_solved_exactly(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        p, N = int(rng.integers(2, 30)), int(rng.integers(80, 200))
        instance = vary(rng, clashing(rng, N, p), kind)
        step = instance.solve()
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (N, p)


@pytest.mark.parametrize("kind", KINDS)
def test_so_are_those_about_as_many_as_coordinates(kind: str) -> None:
    rng = np.random.default_rng(50 + KINDS.index(kind))
    for _ in range(4):
        p, N = int(rng.integers(40, 130)), int(rng.integers(60, 160))
        instance = vary(rng, clashing(rng, N, p), kind)
        step = instance.solve()
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (N, p)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_kind_of_degenerate_rows_is_solved_in_few_coordinates(category: str) -> None:
    rng = np.random.default_rng(CATEGORIES.index(category))
    for _ in range(6):
        p, N = int(rng.integers(2, 40)), int(rng.integers(80, 200))
        instance = make_instance(rng, category, N, p)
        step = instance.solve()
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (N, p)


@pytest.mark.parametrize("N", [90, 250])
def test_on_a_simplex_too(N: int) -> None:
    rng = np.random.default_rng(N)
    for _ in range(5):
        one, domain = clashing(rng, N, 20), coldq.Simplex(20)
        problem = pairs.Problem(
            "clashing", domain.start(), one.gradient, 1.0, one.multiplier_lower,
            one.multiplier_upper, pairs.affine_rows(one.A, one.b), domain,
        )  # fmt: skip
        assert pairs.residual(problem, problem.solve(), TOLERANCE) <= TOLERANCE


@pytest.mark.parametrize(
    "kind", ["hinges", "equality penalties", "enforced rows", "hard equalities"]
)
def test_the_answer_is_the_oracles(kind: str) -> None:
    rng = np.random.default_rng(7)
    one = vary(rng, clashing(rng, 90, 12), kind)
    rows, box = coldq.Affine(one.A, one.b), coldq.Box(one.lower, one.upper)
    arguments = one.center, one.gradient, one.alpha, one.multiplier_upper, rows
    for domain in (box, coldq.Simplex(12)) if kind == "hinges" else (box,):
        step = coldq.penalised_step(*arguments, domain, multiplier_lower=one.multiplier_lower)
        x, value = reference_step(*arguments, domain, multiplier_lower=one.multiplier_lower)
        np.testing.assert_allclose(step.x, x, atol=1e-5)
        assert one.objective(step.x) <= value + 1e-7 * (1.0 + abs(value))


@pytest.mark.parametrize("kind", ["hinges", "equality penalties", "fixed coordinates", "unbounded"])
@pytest.mark.parametrize(("N", "p", "weight"), [(150, 10, 25.0), (40, 60, 0.1)])
def test_guessed_multipliers_are_at_the_bounds_that_the_oracle_says(kind, N, p, weight) -> None:
    rng = np.random.default_rng(8)
    one = vary(rng, clashing(rng, N, p, weight), kind)
    box = coldq.Box(one.lower, one.upper)
    last = guess_multipliers(*one)
    assert last is not None
    at_bounds_as_the_oracle(one, box, last)
    np.testing.assert_allclose(
        box.project(one.center - 0.5 * (one.gradient + last @ one.A)),
        reference(one, box),
        atol=1e-4,
    )


@pytest.mark.parametrize(("N", "p", "weight"), [(70, 10, 25.0), (40, 60, 0.3)])
def test_so_they_are_beside_sums_of_blocks(N: int, p: int, weight: float) -> None:
    rng = np.random.default_rng(9)
    one = clashing(rng, N, p, weight)
    part = p // 5
    most = coldq.Polytope(np.ones((1, 2 * part)), [3.0], 0.0, 5.0)
    X: Any = coldq.Product(coldq.Simplex(2 * part, 2.0), coldq.Box(0.0, 5.0, dim=part), most)
    assert X.blocks.kind.tolist() == [-INF, INF, 0.0]
    one = one._replace(center=X.start(), upper=X.box.upper)
    last = guess_multipliers(*one, X.blocks)
    assert last is not None
    at_bounds_as_the_oracle(one, X, last)
    x = X.project(one.center - 0.5 * (one.gradient + last @ one.A))
    np.testing.assert_allclose(x, reference(one, X), atol=1e-4)


def reference(one: Instance, X: coldq.Domain) -> Array:
    rows = coldq.Affine(one.A, one.b)
    given = one.center, one.gradient, one.alpha, one.multiplier_upper, rows
    return reference_step(*given, X, multiplier_lower=one.multiplier_lower)[0]


def at_bounds_as_the_oracle(one: Instance, X: coldq.Domain, multipliers: Array) -> None:
    """Whether multipliers are at their bounds where rows do not hold with equality."""
    g = one.A @ reference(one, X) - one.b
    assert (g > 1e-4).any()
    np.testing.assert_array_equal(multipliers[g > 1e-4], one.multiplier_upper[g > 1e-4])
    np.testing.assert_array_equal(multipliers[g < -1e-4], one.multiplier_lower[g < -1e-4])
    assert ((one.multiplier_lower <= multipliers) & (multipliers <= one.multiplier_upper)).all()


def test_sparse_rows_that_cannot_all_be_met() -> None:
    rng = np.random.default_rng(10)
    for N, p in ((100, 20), (400, 30), (120, 200)):
        one = clashing(rng, N, p)
        one = one._replace(A=one.A * (rng.random((N, p)) < 0.3), b=one.b - 0.3)
        rows = coldq.SparseAffine(sparse.csr_array(one.A), one.b)
        box = coldq.Box(one.lower, one.upper)
        step = coldq.penalised_step(
            one.center, one.gradient, one.alpha, one.multiplier_upper, rows, box
        )
        assert residual_of(one, step.x, step.multipliers) <= TOLERANCE


def test_a_batch_gives_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(11)
    parts = [clashing(rng, 120, 15) for _ in range(4)]
    A, b, gradient = (np.stack([getattr(one, name) for one in parts])
                      for name in ("A", "b", "gradient"))  # fmt: skip
    box = coldq.Box(0.0, 5.0, dim=15)
    together = coldq.penalised_step(parts[0].center, gradient, 1.0, 25.0, coldq.Affine(A, b), box)
    for k, one in enumerate(parts):
        alone = one.solve()
        assert alone.x.tobytes() == together.x[k].tobytes()
        assert alone.multipliers.tobytes() == together.multipliers[k].tobytes()


def test_hard_rows_without_a_common_point_are_found_among_rows_that_clash() -> None:
    rng = np.random.default_rng(12)
    one = clashing(rng, 100, 8)
    one.A[1], one.b[1] = -one.A[0], -one.b[0] - 1.0
    weights = one.multiplier_upper.copy()
    weights[:2] = INF
    with pytest.raises(coldq.Infeasible, match="enforced rows have no common point"):
        one._replace(multiplier_upper=weights).solve()
