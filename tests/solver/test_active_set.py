"""The active set of affine rows on a box: in double, in double-double, and what proves that no
point satisfies enforced rows."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import coldq
from coldq import _native
from coldq.solver.api import Solution, Status, active_set, active_set_extended, affine_residual
from coldq.solver.problem import AffineProblem
from tests.adversary.affine_rows import DRAWS
from tests.adversary.drawn import EXTREME, MODERATE
from tests.instances import Instance, draw_instance, residual_of
from tests.solver.test_interior_point import KINDS, clashing, vary

INF = np.inf
TOLERANCE = 1e-9

PRINT_BITS = """
import hashlib, numpy as np
from tests.instances import draw_instance
from coldq.solver.api import active_set, active_set_extended
rng, seen = np.random.default_rng(5), hashlib.sha256()
for k in range(60):
    problem = draw_instance(rng, k, most=15)[1].problem()
    for method in active_set, active_set_extended:
        found = method(problem)
        seen.update(found.x.tobytes() + found.multipliers.tobytes())
print(seen.hexdigest())
"""


def enforced(one: Instance) -> bool:
    return bool((np.isinf(one.multiplier_lower) | np.isinf(one.multiplier_upper)).any())


def contradictory(rng: np.random.Generator) -> Instance:
    """Enforced rows of which a combination has a gap of 1e-14 to 1 of its terms, one way or the
    other, among other rows and scaled."""
    p, m, more = int(rng.integers(1, 10)), int(rng.integers(1, 6)), int(rng.integers(0, 8))
    rows = rng.standard_normal((m, p)) if rng.random() < 0.6 else rng.integers(-2, 3, (m, p)) * 1.0
    share, x = rng.integers(1, 4, m) * 1.0, rng.uniform(-1.0, 1.0, p)
    limits = rows @ x
    gap = 10.0 ** rng.uniform(-14.0, 0.0) * rng.choice([1.0, 1.0, -1.0])
    gap = gap * (share @ np.abs(limits) + abs(share @ limits) + 1e-3)
    last = -(share @ rows) * (1.0 + rng.choice([0.0, 0.0, 1e-12, 1e-9]) * rng.standard_normal(p))
    others = rng.standard_normal((more, p))
    A = np.vstack([rows, last, others])
    b = np.concatenate([limits, [-(share @ limits) - gap], others @ x + rng.random(more)])
    first = np.arange(b.size) <= m
    weights = np.where(first, INF, 10.0 ** rng.uniform(-1.0, 8.0, b.size))
    floor = np.where(first & (rng.random(b.size) < 0.2), -INF, 0.0)
    scale, order = 10.0 ** rng.uniform(-4.0, 4.0, b.size), rng.permutation(b.size)
    return Instance(
        rng.uniform(-1.0, 1.0, p), 3.0 * rng.standard_normal(p), float(10.0 ** rng.uniform(-8, 8)),
        floor[order], weights[order], (A * scale[:, None])[order], (b * scale)[order],
        -rng.uniform(0.5, 5.0, p), rng.uniform(0.5, 5.0, p),
    )  # fmt: skip


def contradict(one: Instance, multipliers: np.ndarray) -> bool:
    """Whether no point of the box satisfies this combination of enforced rows, in fractions."""
    share = [Fraction(v) for v in multipliers]
    for k, v in enumerate(share):
        if (v > 0 and one.multiplier_upper[k] != INF) or (
            v < 0 and one.multiplier_lower[k] != -INF
        ):
            return False
    least = Fraction(0)
    for i in range(one.lower.size):
        slope = sum((v * Fraction(a) for v, a in zip(share, one.A[:, i], strict=True)), Fraction(0))
        least += slope * Fraction(one.lower[i] if slope > 0 else one.upper[i])
    return least > sum((v * Fraction(b) for v, b in zip(share, one.b, strict=True)), Fraction(0))


def exact_answer(one: Instance, found: Solution) -> list[Fraction]:
    """x in fractions where rows and bounds are active that are so in the answer found, if that
    satisfies all conditions, and so is the answer."""
    A = [[Fraction(v) for v in row] for row in one.A]
    double = 2 * Fraction(one.alpha)
    box = zip(one.lower, one.upper, strict=True)
    bounds = [(Fraction(low), Fraction(high)) for low, high in box]
    y = [Fraction(c) - Fraction(d) / double for c, d in zip(one.center, one.gradient, strict=True)]
    low, high = (
        [Fraction(v) for v in one.multiplier_lower],
        [Fraction(v) for v in one.multiplier_upper],
    )
    price = [Fraction(v) for v in found.multipliers]
    met = [k for k, v in enumerate(price) if low[k] < v < high[k]]
    free = [i for i, v in enumerate(found.x) if one.lower[i] < v < one.upper[i]]
    x = [Fraction(v) for v in found.x]
    # x_i + sum_k A_ki price_k / double = y_i of the free, A_k x = b_k of those that are met.
    system = []
    for i in free:
        rest = sum((A[k][i] * price[k] for k in range(len(price)) if k not in met), Fraction(0))
        entries = [Fraction(int(i == j)) for j in free] + [A[k][i] / double for k in met]
        system.append([*entries, y[i] - rest / double])
    for k in met:
        rest = sum((A[k][i] * x[i] for i in range(len(x)) if i not in free), Fraction(0))
        entries = [A[k][i] for i in free] + [Fraction(0)] * len(met)
        system.append([*entries, Fraction(one.b[k]) - rest])
    solved = by_elimination(system)
    for i, v in zip(free, solved, strict=False):
        x[i] = v
    for k, v in zip(met, solved[len(free) :], strict=True):
        price[k] = v
        assert low[k] <= v <= high[k]
    for i, (lower, upper) in enumerate(bounds):
        z = y[i] - sum((A[k][i] * v for k, v in enumerate(price)), Fraction(0)) / double
        assert x[i] == min(max(z, lower), upper)
    for k, v in enumerate(price):
        g = sum((a * b for a, b in zip(A[k], x, strict=True)), Fraction(0)) - Fraction(one.b[k])
        assert g == 0 or v == (high[k] if g > 0 else low[k])
    return x


def by_elimination(lines: list[list[Fraction]]) -> list[Fraction]:
    for j in range(len(lines)):
        pivot = next(r for r in range(j, len(lines)) if lines[r][j] != 0)
        lines[j], lines[pivot] = lines[pivot], lines[j]
        lines[j] = [v / lines[j][j] for v in lines[j]]
        for r in range(len(lines)):
            if r != j and lines[r][j] != 0:
                own = lines[r][j]
                lines[r] = [v - own * w for v, w in zip(lines[r], lines[j], strict=True)]
    return [line[-1] for line in lines]


@pytest.mark.parametrize("method", [active_set, active_set_extended])
def test_the_answer_is_that_of_fractions(method) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        p, N = int(rng.integers(1, 7)), int(rng.integers(1, 12))
        one = clashing(rng, N, p, float(10.0 ** rng.uniform(0.0, 6.0)))
        found = method(one.problem())
        assert found.status is Status.OPTIMAL
        for near, exact in zip(found.x, exact_answer(one, found), strict=True):
            assert abs(Fraction(near) - exact) <= Fraction(1, 10**13)


def test_the_answer_with_enforced_rows_is_the_oracles() -> None:
    rng = np.random.default_rng(2)
    for k in range(12):
        p, N = int(rng.integers(2, 9)), int(rng.integers(2, 9))
        center, point = rng.uniform(-1.0, 1.0, p), rng.uniform(-0.5, 0.5, p)
        A = rng.standard_normal((N, p))
        equal = np.arange(N) < k % 3 % p
        b = A @ point + np.where(equal, 0.0, 0.2 * rng.random(N))
        problem = AffineProblem(
            center, rng.standard_normal(p), np.array(0.7), np.where(equal, -INF, 0.0),
            np.full(N, INF), np.zeros(N), A, b, np.full(p, -0.6), np.full(p, 0.6),
        )  # fmt: skip
        x = cp.Variable(p)
        cost = problem.gradient @ (x - center) + 0.7 * cp.sum_squares(x - center)
        rows = [A @ x <= b, A[equal] @ x == b[equal], cp.abs(x) <= 0.6]
        cp.Problem(cp.Minimize(cost), rows).solve(solver=cp.CLARABEL)
        found = active_set_extended(problem)
        assert found.status is Status.OPTIMAL
        np.testing.assert_allclose(found.x, x.value, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_conflict_are_solved_in_double_from_anywhere(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        p, N = int(rng.integers(1, 30)), int(rng.integers(17, 90))
        weight = 10.0 ** rng.uniform(0.0, 7.0)
        one = vary(rng, clashing(rng, N, p, float(weight)), kind)
        if enforced(one):
            continue
        found = active_set(one.problem())
        assert found.status is Status.OPTIMAL
        assert residual_of(one, found.x, found.multipliers) <= TOLERANCE
        near = found.multipliers * (1.0 + 1e-3 * rng.standard_normal(N))
        again = active_set(one.problem(), near)
        assert again.status is Status.OPTIMAL
        np.testing.assert_allclose(again.x, found.x, rtol=1e-9, atol=1e-9)


def test_no_step_down_makes_the_objective_worse_than_where_it_started() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        one = clashing(rng, int(rng.integers(20, 60)), int(rng.integers(2, 12)))
        start = one.multiplier_upper * rng.random(one.b.size)
        z = one.center - (one.gradient + start @ one.A) / (2.0 * one.alpha)
        found = active_set(one.problem(), start)
        before = one.objective(np.clip(z, one.lower, one.upper))
        assert one.objective(found.x) <= before + 1e-12 * abs(before)


def test_degenerate_steps_are_solved_in_double_or_said_to_be_not() -> None:
    rng, solved = np.random.default_rng(5), 0
    for k in range(400):
        category, one = draw_instance(rng, k, most=20)
        found = active_set(one.problem())
        assert found.status in (Status.OPTIMAL, Status.FAILED), category
        if found.status is Status.OPTIMAL:
            solved += 1
            assert residual_of(one, found.x, found.multipliers) <= TOLERANCE, category
        else:
            assert enforced(one), category
    assert solved >= 350


@pytest.mark.parametrize("scale", [MODERATE, EXTREME])
def test_adversarial_steps_are_solved_in_double_double_or_refuted(scale: str) -> None:
    refuted = failed = 0
    for k in range(400):
        drawn = DRAWS["affine", "box"](np.random.default_rng([3, k, len(scale)]), scale)
        center, gradient, alpha, weights, g, box = drawn.arguments
        found = active_set_extended(
            AffineProblem(
                center, gradient, np.array(alpha), drawn.multiplier_lower, weights,
                np.zeros(len(g.b)), g.A, g.b, box.lower, box.upper,
            )
        )  # fmt: skip
        refuted += found.infeasible
        assert not (found.infeasible and drawn.feasible), k
        if not found.infeasible:
            assert drawn.feasible is not False, k
            failed += found.status is not Status.OPTIMAL
            off = drawn.judge(coldq.Step(*found[:3]))
            assert found.status is not Status.OPTIMAL or off <= drawn.allowed, k
    assert refuted >= 10
    assert failed <= (2 if scale == EXTREME else 0)


def test_rows_that_nearly_contradict_are_refuted_in_fractions_or_met() -> None:
    rng, seen = np.random.default_rng(6), dict.fromkeys(Status, 0)
    for k in range(600):
        one = contradictory(rng)
        found = active_set_extended(one.problem())
        seen[found.status] += 1
        if found.status is Status.INFEASIBLE:
            assert contradict(one, found.multipliers), k
        elif found.status is Status.OPTIMAL:
            g, size = one.A @ found.x - one.b, np.abs(one.A) @ np.abs(found.x) + np.abs(one.b)
            broken = np.where(np.isinf(one.multiplier_upper), np.maximum(g, 0.0), 0.0)
            broken = np.maximum(
                broken, np.where(np.isinf(one.multiplier_lower), np.maximum(-g, 0.0), 0.0)
            )
            assert (broken <= 1.001e-9 * size).all(), k
    assert seen[Status.INFEASIBLE] >= 150
    assert seen[Status.OPTIMAL] >= 150
    assert seen[Status.FAILED] <= 12


def test_a_combination_that_refutes_nothing_is_seen_through() -> None:
    rng = np.random.default_rng(7)
    while True:
        one = contradictory(rng)
        found = active_set_extended(one.problem())
        if found.infeasible:
            break
    assert not contradict(one, -found.multipliers)
    assert not contradict(one, 0.0 * found.multipliers)


@pytest.mark.parametrize("n", [1, 4, 30])
def test_rows_with_compliance_are_least_squares(n: int) -> None:
    """Rows of any multiplier that give way by 1 beside it add ``|A x - b|^2 / 2``."""
    rng, p = np.random.default_rng(n), 6
    A, b, center = rng.standard_normal((n, p)), rng.standard_normal(n), rng.standard_normal(p)
    no, any_ = np.full(n, -INF), np.full(n, INF)
    for alpha in (1e-3, 1.0, 1e3):
        problem = AffineProblem(
            center, np.zeros(p), np.array(alpha), no, any_, np.ones(n), A, b,
            np.full(p, -INF), np.full(p, INF),
        )  # fmt: skip
        exact = np.linalg.solve(2.0 * alpha * np.eye(p) + A.T @ A, 2.0 * alpha * center + A.T @ b)
        found = active_set_extended(problem)
        assert found.status is Status.OPTIMAL
        np.testing.assert_allclose(found.x, exact, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="compliance"):
        active_set(problem)


def test_a_share_shortens_the_way_from_the_middle() -> None:
    rng, p = np.random.default_rng(8), 5
    center, gradient, middle = rng.standard_normal((3, p))
    share = rng.uniform(0.1, 1.0, p)
    none = np.zeros(0)
    problem = AffineProblem(
        center, gradient, np.array(0.5), none, none, none, np.zeros((0, p)), none,
        np.full(p, -1.0), np.full(p, 1.0),
    )  # fmt: skip
    found = active_set_extended(problem, None, share, middle)
    exact = np.clip(middle + share * (center - gradient - middle), -1.0, 1.0)
    np.testing.assert_allclose(found.x, exact, rtol=1e-15, atol=1e-15)
    assert affine_residual(problem, found.x, none, share, middle) <= 1e-15
    assert affine_residual(problem, found.x + 1e-3, none, share, middle) >= 1e-4


def test_what_is_no_number_is_no_answer() -> None:
    one = clashing(np.random.default_rng(9), 20, 4)
    for name in ("center", "gradient"):
        broken = one._replace(**{name: np.full(4, np.nan)}).problem()
        for method in (active_set, active_set_extended):
            found = method(broken)
            assert found.status is Status.FAILED
            assert not found.residual <= TOLERANCE


def test_every_cpu_level_gives_the_same_bits() -> None:
    seen = set()
    for level in _native.levels:
        told = subprocess.run(
            [sys.executable, "-c", PRINT_BITS], env=os.environ | {"COLDQ_CPU": level},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        seen.add(told.stdout)
    assert len(seen) == 1
