"""Drifting: its two dials turn what they say, and its comparators are what CVXPY finds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import coldq
from coldq.problems import Drifting

DIALS = [0.0, 0.25, 0.5, 0.75, 1.0]
CELLS = [(vx, vg) for vx in DIALS for vg in DIALS]


def slope(horizons: list[int], totals: list[float]) -> float:
    """The exponent of growth, by least squares on logarithms; 0 of what stays zero."""
    if totals[-1] == 0.0:
        return 0.0
    return float(np.polyfit(np.log(horizons), np.log(totals), 1)[0])


@pytest.mark.parametrize("vx", DIALS)
@pytest.mark.parametrize("vg", [0.0, 0.25, 0.5, 1.0])
def test_the_path_length_grows_with_its_dial_whatever_the_other(vx: float, vg: float) -> None:
    horizons = [256, 1024, 4096, 16384]
    totals = []
    for T in horizons:
        best = coldq.dynamic_comparator(Drifting(vx, vg, horizon=T), range(20))
        totals.append(float(coldq.path_length(best).mean()))
    assert slope(horizons, totals) == pytest.approx(vx, abs=0.03)


@pytest.mark.parametrize("vg", DIALS)
@pytest.mark.parametrize("vx", [0.0, 0.75])
def test_the_constraint_variation_grows_with_its_dial_whatever_the_other(
    vx: float, vg: float
) -> None:
    horizons = [256, 1024]
    totals = []
    for T in horizons:
        variation = coldq.constraint_variation(Drifting(vx, vg, horizon=T), range(12))
        assert variation.exact
        totals.append(float(variation.total.mean()))
    assert slope(horizons, totals) == pytest.approx(vg, abs=0.03)


@pytest.mark.parametrize("vx, vg", [(0.5, 0.25), (0.25, 0.75)])
def test_running_totals_grow_with_the_dials_too(vx: float, vg: float) -> None:
    problem = Drifting(vx, vg, horizon=4096)
    path = coldq.path_length(coldq.dynamic_comparator(problem, range(20)), cumulative=True)
    moved = coldq.constraint_variation(problem, range(20)).cumulative
    assert coldq.growth_exponent(path.mean(axis=0)) == pytest.approx(vx, abs=0.05)
    assert coldq.growth_exponent(moved.mean(axis=0)) == pytest.approx(vg, abs=0.05)


def cvxpy_least(losses: list, rows: list, seed: int, x: cp.Variable) -> float:
    """The least sum of one seed's losses on its rows; x has a decision for each slot, or one."""
    along, across, best = (
        np.array([getattr(f, name)[seed] for f in losses]) for name in ("along", "across", "best")
    )
    A, b = (np.array([getattr(g, name)[seed] for g in rows]) for name in ("A", "b"))
    noise = np.array([f.noise[seed] for f in losses])
    x = cp.vstack([x] * len(losses)) if x.ndim == 1 else x
    d = x - best
    s = cp.sum(cp.multiply(along, d), axis=1)
    loss = cp.sum(cp.abs(s)) + noise @ s - 0.5 * cp.sum(cp.multiply(across, d))
    loss += losses[0].mu * cp.sum_squares(d)
    kept = [x >= -1.0, x <= 1.0, cp.sum(cp.multiply(A[:, 0], x), axis=1) <= b[:, 0]]
    return float(cp.Problem(cp.Minimize(loss), kept).solve(solver=cp.CLARABEL))  # type: ignore[arg-type]


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("vx, vg", [(0.9, 0.7), (0.7, 0.9), (0.0, 1.0), (0.8, 0.0)])
def test_comparators_are_optimal_feasible_and_on_the_surface(
    vx: float, vg: float, strong: bool
) -> None:
    problem = Drifting(vx, vg, strong, horizon=12)
    best, fixed = (
        coldq.dynamic_comparator(problem, [3, 4]),
        coldq.static_comparator(problem, [3, 4]),
    )
    stream = problem.start([3, 4])
    slots = [stream.reveal(t, None) for t in range(1, 13)]
    losses, rows = [each.loss for each in slots], [each.constraint for each in slots]
    for k, (f, g) in enumerate(zip(losses, rows, strict=True)):
        np.testing.assert_allclose(g.value(best.x[:, k]), 0.0, atol=1e-15)
        np.testing.assert_allclose(f.value(best.x[:, k]), best.loss[:, k], atol=1e-15)
    for s in range(2):
        x = cp.Variable((12, 2))
        cvxpy_least(losses, rows, s, x)
        np.testing.assert_allclose(x.value, best.x[s], atol=2e-4)
        value = cvxpy_least(losses, rows, s, cp.Variable(2))
        np.testing.assert_allclose(fixed.loss[s].sum(), value, atol=1e-6)
    if vx == 0.0:
        np.testing.assert_allclose(fixed.x, best.x, atol=1e-9)


@pytest.mark.parametrize("vx, vg", CELLS)
def test_a_decision_is_feasible_in_every_slot_and_constants_bound_what_is_revealed(
    vx: float, vg: float
) -> None:
    problem = Drifting(vx, vg, strongly_convex=True, horizon=64)
    stream, known = problem.start(range(5)), problem.constants
    rng = np.random.default_rng(0)
    fixed = coldq.static_comparator(problem, range(5)).x[:, 0]
    x = np.concatenate([rng.uniform(-1.0, 1.0, (200, 1, 2)), np.sign(rng.normal(size=(20, 1, 2)))])
    for t in range(1, 65):
        revealed = stream.reveal(t, None)
        assert (revealed.constraint.value(fixed) <= 1e-9).all()
        assert np.abs(revealed.constraint.value(x)).max() <= known.constraint_bound
        assert np.linalg.norm(revealed.loss.gradient(x), axis=-1).max() <= known.gradient_bound
        # Convex with the modulus it claims: above every tangent, and by mu |y - x|^2.
        y = x[::-1]
        tangent = (revealed.loss.gradient(x) * (y - x)).sum(axis=-1)
        bowl = problem.mu * np.square(y - x).sum(axis=-1)
        assert (revealed.loss.value(y) >= revealed.loss.value(x) + tangent + bowl - 1e-9).all()


def test_the_regret_of_coldq_really_grows_as_claimed() -> None:
    # T^((1 + V_x) / 2), not slower: the family is as hard as the theory fears.
    for vx in (0.0, 0.5):
        totals = []
        for T in (512, 4096):
            problem = Drifting(vx, 0.0, horizon=T)
            trace = coldq.simulate(
                coldq.COLDQ.for_problem(problem, path_exponent=vx),
                problem,
                range(8),
                progress=False,
            )
            totals.append(float(coldq.dynamic_regret(trace).mean()))
        assert slope([512, 4096], totals) == pytest.approx((1.0 + vx) / 2.0, abs=0.06)


def test_a_seed_s_data_is_the_same_whatever_runs_beside_it() -> None:
    problem = Drifting(0.5, 0.5, horizon=50)
    together, alone = problem.start([5, 6, 7]), problem.start([6])
    x = np.array([[0.3, -0.2]])
    for t in range(1, 51):
        many, one = together.reveal(t, None), alone.reveal(t, None)
        assert many.constraint.A[1].tobytes() == one.constraint.A[0].tobytes()
        assert many.constraint.b[1].tobytes() == one.constraint.b[0].tobytes()
        assert many.loss.value(x)[1] == one.loss.value(x)[0]
    assert not np.array_equal(together.best[0], together.best[1])


def test_drifting_is_a_value_and_refuses_bad_dials() -> None:
    assert Drifting(0.5, 0.25) == Drifting(0.5, 0.25)
    assert Drifting(0.5, 0.25) != Drifting(0.5, 0.25, strongly_convex=True)
    with pytest.raises(coldq.InvalidInput, match=r"path_exponent must lie in \[0, 1\]"):
        Drifting(1.5, 0.0)
    with pytest.raises(coldq.InvalidInput, match=r"variation_exponent must lie in \[0, 1\]"):
        Drifting(0.0, -0.5)
    with pytest.raises(coldq.InvalidInput, match="horizon must be a whole number"):
        Drifting(0.0, 0.5, horizon=1)
