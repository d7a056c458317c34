"""Quadratic, max-affine and any convex rows: exact or certified, alone and stacked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.step import solver_of
from coldq.slot.step.max_affine import solve_max_affine
from coldq.slot.step.quadratic import solve_quadratic
from coldq.slot.step.reference import reference_step
from coldq.slot.step.slot import Slot
from coldq.solver.problem import HINGE, BallRow
from tests.convex_functions import KINKED, SMOOTH, make_functions
from tests.curved_instances import CURVED_CATEGORIES, make_curved
from tests.max_affine_instances import PIECEWISE_CATEGORIES, make_piecewise
from tests.pairs import (
    Problem,
    affine_rows,
    function_rows,
    least_by_cvxpy,
    quadratic_rows,
    residual,
    stacked_rows,
)

INF = np.inf
DISC = coldq.QuadraticConstraint(2.0 * np.eye(2)[None], np.zeros((1, 2)), [1.0])  # |x|^2 <= 1
PLANE = coldq.Box(-9.0, 9.0, dim=2)


@pytest.mark.parametrize("category", CURVED_CATEGORIES)
def test_no_quadratic_answer_is_worse_than_the_oracles(category: str) -> None:
    rng = np.random.default_rng(CURVED_CATEGORIES.index(category))
    for _ in range(3):
        i = make_curved(rng, category, int(rng.integers(1, 5)), int(rng.integers(1, 7)))
        if category in ("alpha 1e-8", "alpha 1e8", "row scales"):
            # Beyond the oracle's own accuracy: a milder version of the same.
            i = i._replace(alpha=float(np.clip(i.alpha, 1e-2, 1e2)))
        g = coldq.QuadraticConstraint(i.P, i.q, i.r)
        step = i.solve(g)
        x, _ = reference_step(
            i.center,
            i.gradient,
            i.alpha,
            i.multiplier_upper,
            g,
            i.box,
            multiplier_lower=i.multiplier_lower,
        )
        ours, theirs = i.objective(step.x), i.objective(x)
        size = 1.0 + abs(theirs) + i.alpha * np.square(x - i.center).sum()
        hard = np.isinf(i.multiplier_upper)
        slack = 1e-6 * size + 1e-6 * np.abs(step.multipliers[hard]).sum()
        assert ours <= theirs + slack


@pytest.mark.parametrize("category", PIECEWISE_CATEGORIES)
def test_no_max_affine_answer_is_worse_than_the_oracles(category: str) -> None:
    rng = np.random.default_rng(PIECEWISE_CATEGORIES.index(category))
    for more in (0, 0, 0, 20):  # in the end more coordinates than pieces
        N, K, p = (int(rng.integers(1, most)) for most in (4, 6, 7))
        p += more
        i = make_piecewise(rng, category, N, K, p)
        if category in ("alpha 1e-8", "alpha 1e8", "row scales"):
            i = i._replace(alpha=float(np.clip(i.alpha, 1e-2, 1e2)))
        step = i.solve()
        x, _ = reference_step(
            i.center, i.gradient, i.alpha, i.multiplier_upper, coldq.MaxAffine(i.A, i.b),
            coldq.Box(i.lower, i.upper), multiplier_lower=i.multiplier_lower,
        )  # fmt: skip
        ours, theirs = i.objective(step.x), i.objective(x)
        size = 1.0 + abs(theirs) + i.alpha * np.square(x - i.center).sum()
        hard = np.isinf(i.multiplier_upper)
        assert ours <= theirs + 1e-6 * size + 1e-6 * np.abs(step.multipliers[hard]).sum()


@pytest.mark.parametrize(
    ("kind", "hessian"),
    [(kind, True) for kind in SMOOTH] + [(kind, False) for kind in SMOOTH + KINKED],
)
def test_convex_functions_reach_the_oracles_value(kind: str, hessian: bool) -> None:
    rng, N, p = np.random.default_rng(len(kind)), 3, 5
    f, own = make_functions(rng, kind, N, p), np.stack([np.arange(N), np.ones(N)])
    center, gradient = rng.uniform(-3, 3, p), 5.0 * rng.standard_normal(p)
    weights = 10.0 ** rng.uniform(-1.0, 3.5, N)
    rows = function_rows(f, 1.0, own, np.zeros(N), hessian)
    cube = coldq.Box(-2.0, 2.0, dim=p)
    problem = Problem("", center, gradient, 0.7, np.zeros(N), weights, rows, cube)
    ours, best = problem.objective(problem.solve().x), least_by_cvxpy(problem)
    assert ours <= best + 2e-6 * max(1.0, abs(best))


# One row |x|^2 <= 1 and center (3, 4): the answer lies on the ray through the center.
@pytest.mark.parametrize(
    ("weight", "x", "multiplier"),
    [(0.0, [3.0, 4.0], 0.0), (1.0, [1.5, 2.0], 1.0), (9.0, [0.6, 0.8], 4.0),
     (INF, [0.6, 0.8], 4.0)],
)  # fmt: skip
def test_a_disc_by_hand(weight: float, x: list[float], multiplier: float) -> None:
    step = coldq.penalised_step([3.0, 4.0], [0.0, 0.0], 1.0, weight, DISC, PLANE)
    np.testing.assert_allclose(step.x, x, atol=1e-12)
    np.testing.assert_allclose(step.multipliers, [multiplier], atol=1e-11)
    functions = coldq.Convex(DISC.value, DISC.jacobian, DISC.hessian)
    same = coldq.penalised_step([3.0, 4.0], [0.0, 0.0], 1.0, weight, functions, PLANE)
    np.testing.assert_allclose(same.x, x, atol=1e-8)


# One row |x| <= 1 on a line: as an affine row on each side.
@pytest.mark.parametrize(
    ("center", "weight", "floor", "x"),
    [(0.5, 9.0, 0.0, 0.5), (3.0, 9.0, 0.0, 1.0), (-3.0, 2.0, 0.0, -2.0), (-3.0, INF, 0.0, -1.0),
     (0.25, 1.0, 1.0, 0.0), (3.0, 2.0, 2.0, 2.0)],
)  # fmt: skip
def test_an_absolute_value_by_hand(center: float, weight: float, floor: float, x: float) -> None:
    g = coldq.MaxAffine([[[1.0], [-1.0]]], [[1.0, 1.0]])
    line = coldq.Box(-9.0, 9.0, dim=1)
    step = coldq.penalised_step([center], [0.0], 1.0, weight, g, line, multiplier_lower=floor)
    np.testing.assert_allclose(step.x, [x], atol=1e-9)


def test_stacked_rows_are_solved_as_one() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        i = make_curved(rng, "regular", 3, 4)
        A, b = rng.standard_normal((2, 4)), rng.uniform(0.0, 1.0, 2)
        quadratic, rows = coldq.QuadraticConstraint(i.P, i.q, i.r), coldq.Affine(A, b)
        whole = i._replace(
            P=np.concatenate([np.zeros((2, 4, 4)), i.P]), q=np.concatenate([A, i.q]),
            r=np.concatenate([b, i.r]), multiplier_upper=rng.uniform(1, 99, 5),
            multiplier_lower=np.zeros(5),
        )  # fmt: skip
        step = whole.solve(coldq.Stacked(rows, quadratic))
        stack = stacked_rows(affine_rows(A, b), quadratic_rows(i.P, i.q, i.r))
        problem = Problem(
            "",
            i.center,
            i.gradient,
            i.alpha,
            whole.multiplier_lower,
            whole.multiplier_upper,
            stack,
            i.box,
        )
        assert residual(problem, step, 1e-8) <= 1e-8
        # The same rows through the models, and through cuts.
        smooth = coldq.Convex(quadratic.value, quadratic.jacobian, quadratic.hessian, 3)
        np.testing.assert_allclose(whole.solve(coldq.Stacked(rows, smooth)).x, step.x, atol=1e-7)
        pieces = coldq.MaxAffine(A[:, None], b[:, None])
        np.testing.assert_allclose(
            whole.solve(coldq.Stacked(pieces, quadratic)).x, step.x, atol=1e-3
        )


def test_equality_rows_may_stand_beside_a_quadratic_one() -> None:
    rows = coldq.Stacked(DISC, coldq.Affine([[1.0, -1.0]], [0.0]))
    step = coldq.penalised_step(
        [3.0, 4.0], [0.0, 0.0], 1.0, INF, rows, PLANE, multiplier_lower=[0.0, -INF]
    )
    np.testing.assert_allclose(step.x, np.sqrt([0.5, 0.5]), atol=1e-9)
    with pytest.raises(coldq.InvalidInput, match="convex one way only"):
        coldq.penalised_step([3.0, 4.0], [0.0, 0.0], 1.0, INF, rows, PLANE, multiplier_lower=-INF)


def test_a_batch_gives_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(4)
    curved = [make_curved(rng, CURVED_CATEGORIES[k % 6], 3, 5) for k in range(12)]
    sharp = [make_piecewise(rng, "regular", 2, 3, 5) for _ in range(6)]
    for parts, build, names in (
        (curved, coldq.QuadraticConstraint, ("P", "q", "r")),
        (sharp, coldq.MaxAffine, ("A", "b")),
    ):
        joined = {f: np.stack([getattr(i, f) for i in parts]) for f in parts[0]._fields}
        box = coldq.Box(joined["lower"], joined["upper"])
        constraint = build(*(joined[name] for name in names))
        arguments = [joined[name] for name in ("center", "gradient", "alpha", "multiplier_upper")]
        together = coldq.penalised_step(*arguments, constraint, box)
        for k, i in enumerate(parts):
            own = build(*(getattr(i, name) for name in names))
            alone = coldq.penalised_step(
                i.center, i.gradient, i.alpha, i.multiplier_upper, own, coldq.Box(i.lower, i.upper)
            )
            assert alone.x.tobytes() == together.x[k].tobytes()
            assert alone.multipliers.tobytes() == together.multipliers[k].tobytes()
            assert own.value(i.center).tobytes() == constraint.value(joined["center"])[k].tobytes()


class Shaped(NamedTuple):
    """A domain by its parts, as the step reads it."""

    box: coldq.Box
    enforced: tuple | None
    dim: int = 2
    batch: tuple = ()


def test_a_domain_is_a_box_and_hard_rows() -> None:
    ball = Shaped(coldq.Box(-INF, INF, dim=2), ((BallRow(np.zeros(2), np.array(2.0)), 0.0),))
    simplex = Shaped(coldq.Box(0.0, 1.0, dim=2), ((coldq.Affine([[1.0, 1.0]], [1.0]), -INF),))
    zero, one, weight = np.zeros(2), np.array(1.0), np.array([99.0])
    cut = coldq.QuadraticConstraint(np.diag([2.0, 0.0])[None], np.zeros((1, 2)), [0.25])
    # |x_1| <= 1/2 in the ball of radius 2, and on the simplex; both from (3, 4).
    step = solve_quadratic(Slot(np.array([3.0, 4.0]), zero, one, weight, HINGE, cut, ball))
    np.testing.assert_allclose(step.x, [0.5, np.sqrt(3.75)], atol=1e-8)
    assert step.multipliers.shape == (1,)
    step = solve_quadratic(Slot(np.array([3.0, 1.0]), zero, one, weight, HINGE, cut, simplex))
    np.testing.assert_allclose(step.x, [0.5, 0.5], atol=1e-8)
    sharp = coldq.MaxAffine([[[1.0, 0.0], [-1.0, 0.0]]], [[0.5, 0.5]])
    step = solve_max_affine(Slot(np.array([3.0, 1.0]), zero, one, weight, HINGE, sharp, simplex))
    np.testing.assert_allclose(step.x, [0.5, 0.5], atol=1e-8)
    with pytest.raises(coldq.InvalidInput, match="curved boundary"):
        solve_max_affine(Slot(np.array([3.0, 1.0]), zero, one, weight, HINGE, sharp, ball))
    with pytest.raises(coldq.InvalidInput, match="learner that only projects"):
        solver_of(cut, Shaped(coldq.Box(0.0, 1.0, dim=2), None))


def test_hard_rows_without_a_common_point_are_infeasible() -> None:
    far = coldq.Affine([[-1.0, 0.0]], [-2.0])  # x_1 >= 2
    away = coldq.MaxAffine([[[-1.0, 0.0]]], [[-99.0]])
    functions = coldq.Convex(DISC.value, DISC.jacobian, DISC.hessian)
    for g in (coldq.Stacked(DISC, far), away, coldq.Stacked(functions, far)):
        with pytest.raises(coldq.Infeasible):
            coldq.penalised_step([3.0, 4.0], [0.0, 0.0], 1.0, INF, g, PLANE)


def discs(apart: float) -> coldq.QuadraticConstraint:
    """The unit discs around the origin and around a point so far from it."""
    P = np.broadcast_to(2.0 * np.eye(2), (2, 2, 2))
    return coldq.QuadraticConstraint(P, [[0.0, 0.0], [-2.0 * apart, 0.0]], [1.0, 1.0 - apart**2])


@pytest.mark.parametrize("bound", [5.0, INF])
def test_curved_rows_without_a_common_point_have_no_answer_proved_or_not(bound: float) -> None:
    X = coldq.Box(-bound, bound, dim=2)
    with pytest.raises(coldq.StepFailed, match=r"no common point|may be infeasible"):
        coldq.penalised_step([0.5, 3.0], [0.0, 0.0], 1.0, INF, discs(3.0), X)
    # The nearest point of the lens is its upper corner.
    step = coldq.penalised_step([0.5, 3.0], [0.0, 0.0], 1.0, INF, discs(1.0), X)
    np.testing.assert_allclose(step.x, [0.5, np.sqrt(0.75)], atol=1e-8)


CONSTRAINTS = {
    "quadratic": DISC,
    "max-affine": coldq.MaxAffine([[[1.0, 0.0], [0.0, 1.0]]], [[0.5, 0.5]]),
    "convex": coldq.Convex(DISC.value, DISC.jacobian, DISC.hessian),
    "cuts": coldq.Convex(DISC.value, DISC.jacobian),
    "stacked": coldq.Stacked(coldq.Affine([[1.0, 1.0]], [1.0])),
    "sparse": coldq.SparseAffine(sparse.csr_array([[1.0, 1.0]]), [1.0]),
}
SQUARE = coldq.Box(-1.0, 1.0, dim=2)
LEARNERS = [
    coldq.COLDQ(SQUARE, horizon=50),
    coldq.COLDQExpert(SQUARE, horizon=50),
    coldq.RECOO(SQUARE),
    coldq.RECOOExpert(SQUARE, horizon=50),
    coldq.Yi2021(SQUARE, horizon=50, alpha0=1.0, gamma0=2.0),
    coldq.Yi2021Expert(SQUARE, horizon=50, alpha0=1.0, gamma0=1.0),
    coldq.Yi2023.from_exponents(SQUARE, a=1.0, b=1.0, g=1.0),
    coldq.SinhaVaze(SQUARE, horizon=50, lipschitz=3.0),
    coldq.OGD(SQUARE, gradient_bound=2.0),
]


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("rule", LEARNERS, ids=lambda rule: type(rule).__name__)
def test_every_learner_takes_every_constraint(name: str, rule) -> None:
    g = CONSTRAINTS[name]
    state = rule.init(g.n_constraints)
    for t in range(6):
        loss = coldq.Linear([-1.0 - 0.1 * t, -1.0])
        state = rule.update(state, coldq.Feedback(loss, g))
    assert SQUARE.contains(state.x).all()
    if isinstance(rule, coldq.COLDQ):  # its queue starts at gamma = 25: no row is broken
        assert (g.value(state.x) <= 1e-5).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coldq.QuadraticConstraint(np.eye(2), np.zeros((1, 2)), [1.0]), "three axes"),
        (lambda: coldq.QuadraticConstraint(np.ones((1, 2, 2)), [[1.0]], [1.0]), "needs P of shape"),
        (lambda: coldq.QuadraticConstraint([[[0.0, 1.0], [0.0, 0.0]]], [[0.0, 0.0]], [1.0]),
         r"symmetric, but that at index \(0,\)"),
        (lambda: coldq.QuadraticConstraint(-np.eye(2)[None], np.zeros((1, 2)), [1.0]),
         "positive semidefinite"),
        (lambda: coldq.MaxAffine(np.ones((1, 2, 3)), np.ones((2, 1))), "needs b of shape"),
        (lambda: coldq.Convex(3, lambda x: x), "value_function must be a function"),  # type: ignore[arg-type]
        (lambda: coldq.Convex(lambda x: x, lambda x: x, n_constraints=0), "at least 1"),
        (lambda: coldq.Convex(lambda x: x, lambda x: x).hessian([1.0]), "needs a hessian_function"),
        (lambda: coldq.Stacked(), "equally many coordinates"),
        (lambda: coldq.Stacked(DISC, coldq.Affine([[1.0]], [1.0])), r"have \[1, 2\]"),
        (lambda: coldq.Stacked(3.0), "takes constraints such as"),
    ],
)  # fmt: skip
def test_bad_data_gets_a_sentence(call, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call()


def test_what_a_users_function_does_wrong_is_reported_with_the_point() -> None:
    def step(*functions) -> coldq.Step:
        g = coldq.Convex(*functions)
        return coldq.penalised_step([0.5, 0.5], [-3.0, -3.0], 1.0, 9.0, g, SQUARE)

    def slope(x: np.ndarray) -> list[np.ndarray]:
        return [2.0 * x]

    with pytest.raises(coldq.InvalidInput, match=r"return shape \(1,\).*at x = \[0.5 0.5\]"):
        step(lambda x: x @ x, slope)
    with pytest.raises(coldq.InvalidInput, match=r"jacobian must return shape \(1, 2\).*at x = "):
        step(lambda x: [x @ x], lambda x: x)
    with pytest.raises(coldq.InvalidInput, match=r"finite numbers.*at x = \[0.5 0.5\]"):
        step(lambda x: [np.nan], slope)
    with pytest.raises(coldq.InvalidInput, match=r"not convex.*hessian has the eigenvalue -2"):
        step(lambda x: [-(x @ x)], lambda x: [-2.0 * x], lambda x: [-2.0 * np.eye(2)])
    with pytest.raises(coldq.InvalidInput, match=r"not convex, or its jacobian is wrong.*x = "):
        step(lambda x: [1.0 - x @ x], lambda x: [-2.0 * x])


def test_derivatives_are_those_of_the_values() -> None:
    rng = np.random.default_rng(6)
    i = make_curved(rng, "regular", 3, 4)
    x = rng.standard_normal(i.q.shape[1])
    pieces = coldq.MaxAffine(rng.standard_normal((2, 3, x.size)), rng.standard_normal((2, 3)))
    g = coldq.Stacked(coldq.QuadraticConstraint(i.P, i.q, i.r), pieces)
    slope = [(g.value(x + h) - g.value(x - h)) / 2e-6 for h in 1e-6 * np.eye(x.size)]
    np.testing.assert_allclose(g.jacobian(x), np.transpose(slope), rtol=1e-6, atol=1e-6)
    assert g.value(np.stack([x, x])).shape == (2, g.n_constraints)
