"""Comparators, against CVXPY and closed forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.minimisers import minimise_on_rows, nearest_minimiser


def cvxpy_minimum(loss, rows: list, box: coldq.Box, x: cp.Variable) -> float:
    constraints = [x >= box.lower, x <= box.upper, *[A @ x <= b for A, b in rows]]
    problem = cp.Problem(cp.Minimize(loss), constraints)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)  # type: ignore[arg-type]


def test_dynamic_comparators_are_feasible_and_optimal() -> None:
    for box in (coldq.Box(0.0, 5.0, dim=10), coldq.Box(-5.0, 5.0, dim=10)):
        problem = coldq.problems.TimeVarying(horizon=12, domain=box)
        best = coldq.dynamic_comparator(problem, [0, 1])
        stream, x = problem.start([0, 1]), cp.Variable(10)
        for t in range(1, 13):
            revealed = stream.reveal(t, box.start())
            f, g = revealed.loss, revealed.constraint
            assert (g.value(best.x[:, t - 1]) <= 1e-9 * 50).all()
            assert box.contains(best.x[:, t - 1]).all()
            assert isinstance(f, coldq.LeastSquares)
            assert isinstance(g, coldq.Affine)
            for s in range(2):
                loss = 0.5 * cp.sum_squares(f.H[s] @ x - f.y[s])
                value = cvxpy_minimum(loss, [(g.A[s], g.b[s])], box, x)
                np.testing.assert_allclose(best.loss[s, t - 1], value, atol=1e-5)


def test_among_several_minimisers_the_nearest_is_taken() -> None:
    # f = (x_1 + x_2 - 2)^2 / 2 is least on a line; from (2, 1) the nearest point is (1.5, 0.5).
    revealed = coldq.Feedback(coldq.LeastSquares([[1.0, 1.0]], [2.0]), None)
    box = coldq.Box(0.0, 5.0, dim=2)
    x, exists = nearest_minimiser(revealed, box, np.array([2.0, 1.0]))
    np.testing.assert_allclose(x, [1.5, 0.5], atol=1e-5)
    assert exists
    # A linear loss that does not depend on x_2 leaves it where it was.
    revealed = coldq.Feedback(coldq.Linear([1.0, 0.0]), coldq.Affine([[-1.0, 0.0]], [-1.0]))
    x, _ = nearest_minimiser(revealed, box, np.array([3.0, 4.0]))
    np.testing.assert_allclose(x, [1.0, 4.0], atol=1e-9)


def test_static_comparators_are_feasible_in_every_slot_and_optimal() -> None:
    problem = coldq.problems.TimeVarying(horizon=40, domain=coldq.Box(-1.0, 1.0, dim=4))
    best = coldq.static_comparator(problem, [0, 1])
    stream, x = problem.start([0, 1]), cp.Variable(4)
    slots = [stream.reveal(t, problem.domain.start()) for t in range(1, 41)]
    for s in range(2):
        rows = [(r.constraint.A[s], r.constraint.b[s]) for r in slots]  # type: ignore[attr-defined]
        for A, b in rows:
            assert (A @ best.x[s, 0] <= b + 1e-8).all()
        loss = sum(0.5 * cp.sum_squares(r.loss.H[s] @ x - r.loss.y[s]) for r in slots)  # type: ignore[attr-defined]
        value = cvxpy_minimum(loss, rows, problem.domain, x)
        np.testing.assert_allclose(best.loss[s].sum(), value, rtol=1e-7)


@pytest.mark.parametrize("kind", [coldq.problems.OnlineQuadratic, coldq.problems.OnlineLinear])
def test_fixed_constraint_problems_have_exact_comparators(kind: type) -> None:
    problem, x = kind(horizon=12), cp.Variable(2)
    dynamic, static = coldq.dynamic_comparator(problem, [4]), coldq.static_comparator(problem, [4])
    stream = problem.start([4])
    total = 0.0
    for t in range(1, 13):
        revealed = stream.reveal(t, None)
        theta = stream.theta[t - 1, 0]
        loss = theta @ x
        if kind is coldq.problems.OnlineQuadratic:
            loss = cp.sum_squares(x - theta) + 20.0 * loss
        total = total + loss
        rows = [(revealed.constraint.A[0], revealed.constraint.b[0])]
        value = cvxpy_minimum(loss, rows, problem.domain, x)
        np.testing.assert_allclose(dynamic.loss[0, t - 1], value, atol=1e-6)
    value = cvxpy_minimum(total, rows, problem.domain, x)
    np.testing.assert_allclose(static.loss.sum(), value, atol=1e-5)


class Scripted(coldq.problems.Problem):
    """A problem that reveals given functions."""

    def __init__(self, domain, slots, n_constraints=1, adaptive=False):
        self.domain, self.slots, self.horizon = domain, slots, len(slots)
        self.n_constraints, self.adaptive = n_constraints, adaptive

    __hash__ = None  # type: ignore[assignment]

    def start(self, seeds):
        return self

    def reveal(self, t, x):
        slot = self.slots[t - 1]
        return slot(x) if callable(slot) else slot


LINE = coldq.Box(0.0, 1.0, dim=1)
DOWN = coldq.Linear([1.0])


def rows(a: float, b: float) -> coldq.Affine:
    return coldq.Affine([[a]], [b])


def test_a_slot_without_a_feasible_decision_is_named_and_its_regret_is_nan() -> None:
    slots = [coldq.Feedback(DOWN, rows(1.0, 1.0)), coldq.Feedback(DOWN, rows(1.0, -1.0)),
             coldq.Feedback(DOWN, rows(-1.0, -0.5))]  # fmt: skip
    problem = Scripted(LINE, slots)
    best = coldq.dynamic_comparator(problem, [0])
    assert best.feasible.tolist() == [[True, False, True]]
    assert "1 of them without a feasible decision" in repr(best)
    np.testing.assert_array_equal(best.loss, [[0.0, np.nan, 0.5]])
    trace = coldq.simulate(coldq.COLDQ(LINE, horizon=3), problem, seeds=[0])
    with pytest.warns(coldq.UndefinedRegret, match=r"dynamic regret is NaN .*: seed 0 in slot 2$"):
        assert np.isnan(coldq.dynamic_regret(trace)).all()
    with pytest.warns(coldq.UndefinedRegret, match=r"common to all slots to .*: seed 0$"):
        assert np.isnan(coldq.static_regret(trace)).all()


def test_many_seeds_and_slots_without_a_feasible_decision_are_not_all_named() -> None:
    slots = [coldq.Feedback(DOWN, rows(1.0, -1.0))] * 9 + [coldq.Feedback(DOWN, rows(1.0, 1.0))]
    problem = Scripted(LINE, slots)
    trace = coldq.simulate(coldq.COLDQ(LINE, horizon=10), problem, seeds=range(7, 14))
    with pytest.warns(coldq.UndefinedRegret) as caught:
        coldq.dynamic_regret(trace)
    words = str(caught[0].message)
    assert "seed 7 in slots 1, 2, 3, 4, 5 and 4 more; seed 8" in words
    assert words.endswith("and 2 more seeds")


def test_slots_without_a_common_decision_have_no_static_comparator() -> None:
    slots = [coldq.Feedback(DOWN, rows(1.0, 0.2)), coldq.Feedback(DOWN, rows(-1.0, -0.8))]
    problem = Scripted(LINE, slots)
    assert not coldq.static_comparator(problem, [0]).feasible.any()
    assert coldq.dynamic_comparator(problem, [0]).feasible.all()
    trace = coldq.simulate(coldq.COLDQ(LINE, horizon=2), problem, seeds=[0])
    with pytest.warns(coldq.UndefinedRegret, match="seed 0"):
        assert np.isnan(coldq.static_regret(trace)).all()
    assert np.isfinite(coldq.dynamic_regret(trace)).all()


@pytest.mark.parametrize("seed", [0, 7, 19])
def test_the_comparator_of_a_smooth_loss_settles_where_the_feasible_set_is_curved(seed) -> None:
    # Near the minimum the values have no digits left, so that they cannot tell the curvature.
    rng = np.random.default_rng([seed, 7])
    features, labels = rng.normal(size=(6, 2)), np.sign(rng.normal(size=6))
    start = rng.normal(size=2)

    def value(x):
        return np.log1p(np.exp(-labels * (features @ x))).sum()

    def gradient(x):
        return -(features * (labels / (1.0 + np.exp(labels * (features @ x))))[:, None]).sum(axis=0)

    inside = coldq.QuadraticConstraint.ball(np.zeros((1, 2)), [0.7])
    slot = coldq.Feedback(coldq.Smooth(value, gradient), inside)
    near = 0.7 * start[None] / np.linalg.norm(start)
    (x,), exists = nearest_minimiser(slot, coldq.Box(-1.0, 1.0, dim=2), near)
    assert exists.all()
    outward, slope = x / 0.7, gradient(x)
    np.testing.assert_allclose(np.linalg.norm(outward), 1.0, rtol=1e-9)
    np.testing.assert_allclose(slope, (slope @ outward) * outward, atol=1e-8)
    assert slope @ outward < 0.0


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_curved_rows_are_judged_by_the_least_violation_without_a_proof(apart: float) -> None:
    """Unit discs have a common point within a distance of 2; far bounds leave no proof."""
    P = np.broadcast_to(2.0 * np.eye(2), (2, 2, 2))
    g = coldq.QuadraticConstraint(P, [[0.0, 0.0], [-2.0 * apart, 0.0]], [1.0, 1.0 - apart**2])
    plane, aim = coldq.Box(-np.inf, np.inf, dim=2), np.array([0.5, 3.0])
    slot = coldq.Feedback(coldq.LeastSquares(np.eye(2), aim), g)
    (x,), exists = nearest_minimiser(slot, plane, aim[None])
    assert exists.tolist() == [apart < 2.0]
    if exists.all():  # the upper corner of the lens
        np.testing.assert_allclose(x, [0.5, np.sqrt(0.75)], atol=1e-7)


def test_smooth_losses_and_capacities_have_comparators_too() -> None:
    box = coldq.Box(0.0, 3.0, dim=2)
    loss = coldq.Smooth(lambda x: np.exp(x).sum() - 4.0 * x[0], lambda x: np.exp(x) - [4.0, 0.0])
    slots = [coldq.Feedback(loss, coldq.Affine([[1.0, -1.0]], [0.5])), coldq.Feedback(loss, None)]
    problem = Scripted(box, slots)
    best = coldq.dynamic_comparator(problem, [0])
    # Unconstrained: (log 4, 0). With x_1 <= x_2 + 1/2: exp(x_2)(1 + sqrt(e)) = 4.
    x2 = np.log(4.0 / (1.0 + np.sqrt(np.e)))
    np.testing.assert_allclose(best.x[0], [[x2 + 0.5, x2], [np.log(4.0), 0.0]], atol=1e-6)
    g = coldq.LogCapacity(1.0, [1.0, 1.0], [1.0, 1.0])
    cost = coldq.Linear([1.0, 2.0])
    served = coldq.dynamic_comparator(Scripted(box, [coldq.Feedback(cost, g)] * 2), [0])
    # min x_1 + 2 x_2 with (1 + x_1)(1 + x_2) = e: there 1 + x_1 = 2 (1 + x_2) = 2 sqrt(e / 2).
    expected = np.array([2.0, 1.0]) * np.sqrt(np.e / 2.0) - 1.0
    np.testing.assert_allclose(served.x[0, 0], expected, atol=1e-5)
    static = coldq.static_comparator(Scripted(box, [coldq.Feedback(cost, g)] * 2), [0])
    np.testing.assert_allclose(static.x[0, 0], expected, atol=1e-5)


SQUARE = coldq.Box(-1.0, 1.0, dim=2)
DIAMOND = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
NORMS = {  # <c, x> is least at minus r times the dual norm, in {x : |x| <= r}
    "quadratic": lambda r: coldq.QuadraticConstraint(
        np.broadcast_to(2.0 * np.eye(2), (len(r), 1, 2, 2)), [[0.0, 0.0]], r[:, None] ** 2
    ),
    "pieces": lambda r: coldq.MaxAffine(DIAMOND[None], np.repeat(r, 4).reshape(len(r), 1, 4)),
    "stacked": lambda r: coldq.Stacked(
        coldq.Affine(DIAMOND, np.repeat(r, 4).reshape(len(r), 4)),
        coldq.MaxAffine(DIAMOND[None], np.ones((1, 4))),
    ),
}
DUAL: dict[str, float] = {"quadratic": 2, "pieces": np.inf, "stacked": np.inf}


@pytest.mark.parametrize("kind", NORMS)
def test_every_seed_has_the_comparator_of_its_own_constraint(kind: str) -> None:
    costs = np.random.default_rng(0).standard_normal((4, 2))
    radii = np.array([0.25, 0.5])
    slots = [coldq.Feedback(coldq.Linear(c), NORMS[kind](radii)) for c in costs]
    best = coldq.dynamic_comparator(Scripted(SQUARE, slots), [0, 1])
    expected = -radii[:, None] * np.linalg.norm(costs, DUAL[kind], axis=1)
    np.testing.assert_allclose(best.loss, expected, rtol=1e-6)
    # One seed alone has an axis of length one, and the same bits.
    first = coldq.dynamic_comparator(
        Scripted(SQUARE, [coldq.Feedback(s.loss, NORMS[kind](radii[:1])) for s in slots]), [0]
    )
    assert first.x.tobytes() == best.x[:1].tobytes()


def test_a_seed_without_a_feasible_decision_is_no_matter_to_the_others() -> None:
    reach = coldq.QuadraticConstraint(2.0 * np.eye(2)[None], [[0.0, 0.0]], [[0.25], [-0.25]])
    slots = [coldq.Feedback(coldq.Linear([3.0, 4.0]), reach)] * 2
    best = coldq.dynamic_comparator(Scripted(SQUARE, slots), [0, 1])
    assert best.feasible.tolist() == [[True, True], [False, False]]
    np.testing.assert_allclose(best.loss[0], -2.5)
    pieces = coldq.MaxAffine(DIAMOND[None], [[[0.5] * 4], [[-0.5] * 4]])
    slots = [coldq.Feedback(coldq.Linear([3.0, 4.0]), pieces)] * 2
    best = coldq.dynamic_comparator(Scripted(SQUARE, slots), [0, 1])
    assert best.feasible.tolist() == [[True, True], [False, False]]
    np.testing.assert_allclose(best.loss[0], -2.0)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-12])
def test_static_comparators_meet_their_rows_in_any_unit(unit: float) -> None:
    # The cheapest coordinate is full, the next has the rest.
    box, g = coldq.Box(0.0, unit, dim=3), coldq.Affine([[-1.0, -1.0, -1.0]], [-1.5 * unit])
    slots = [coldq.Feedback(coldq.Linear([1.0, 2.0, 3.0]), g)] * 3
    best = coldq.static_comparator(Scripted(box, slots), [0])
    np.testing.assert_allclose(best.x[0, 0], [unit, 0.5 * unit, 0.0], atol=1e-9 * unit)


@pytest.mark.parametrize("stiff", [1e4, 1e7, 1e10, 1e12])
def test_losses_that_bend_far_more_in_one_direction_have_comparators(stiff: float) -> None:
    loss = coldq.Quadratic(np.diag([stiff, 1.0]), [0.0, -0.5])
    slots = [coldq.Feedback(loss, coldq.Affine([[1.0, 1.0]], [b])) for b in (1.0, 0.3)]
    problem = Scripted(SQUARE, slots)
    best = coldq.dynamic_comparator(problem, [0])
    # x_1 = -lambda / stiff and x_2 = 1/2 - lambda; the second slot's row is met with equality.
    price = 0.2 / (1.0 + 1.0 / stiff)
    tight = [-price / stiff, 0.5 - price]
    np.testing.assert_allclose(best.x[0], [[0.0, 0.5], tight], atol=1e-9)
    np.testing.assert_allclose(coldq.static_comparator(problem, [0]).x[0, 0], tight, atol=1e-9)


ELLIPSE = np.array([[2.0, 0.5], [0.5, 1.0]])
FIXED = {  # each made anew in every slot, and what it is to CVXPY
    "quadratic": (
        lambda: coldq.QuadraticConstraint(ELLIPSE[None], [[0.1, 0.0]], [0.2]),
        lambda x: 0.5 * cp.quad_form(x, ELLIPSE) + 0.1 * x[0] - 0.2,
    ),
    "pieces": (lambda: coldq.MaxAffine(DIAMOND[None], [[0.3] * 4]), lambda x: cp.norm1(x) - 0.3),
    "sparse": (
        lambda: coldq.SparseAffine(sparse.csr_array([[1.0, 2.0], [0.0, -1.0]]), [0.2, 0.6]),
        lambda x: cp.hstack([x[0] + 2.0 * x[1] - 0.2, -x[1] - 0.6]),
    ),
    "functions": (
        lambda: coldq.Convex(EXP, EXP_SLOPE, EXP_HESSIAN),
        lambda x: cp.sum(cp.exp(x)) - 1.5,
    ),
}


def EXP(x):
    return [np.exp(x).sum() - 1.5]


def EXP_SLOPE(x):
    return [np.exp(x)]


def EXP_HESSIAN(x):
    return [np.diag(np.exp(x))]


@pytest.mark.parametrize("kind", FIXED)
def test_a_constraint_that_stays_has_a_static_comparator_and_no_variation(kind: str) -> None:
    make, limit = FIXED[kind]
    x, targets = cp.Variable(2), np.random.default_rng(3).standard_normal((5, 2))
    for losses, total in (
        ([coldq.Linear(y) for y in targets], targets.sum(axis=0) @ x),
        (
            [coldq.LeastSquares(np.eye(2), y) for y in targets],
            sum(0.5 * cp.sum_squares(x - y) for y in targets),
        ),
    ):
        n = make().n_constraints
        problem = Scripted(SQUARE, [coldq.Feedback(loss, make()) for loss in losses], n)
        best = coldq.static_comparator(problem, [0])
        cvxpy = cp.Problem(cp.Minimize(total), [cp.abs(x) <= 1.0, limit(x) <= 0.0])  # type: ignore[list-item]
        value = cvxpy.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(best.loss.sum(), value, atol=1e-5)
        variation = coldq.constraint_variation(problem, [0])
        assert variation.exact
        assert variation.total == 0.0


def test_a_few_constraints_that_are_not_affine_have_a_static_comparator() -> None:
    centers = np.array([[0.3, 0.0], [0.0, 0.3], [-0.2, -0.2]])
    discs = [
        coldq.QuadraticConstraint(2.0 * np.eye(2)[None], [-2.0 * c], [0.25 - c @ c])
        for c in centers
    ]
    slots = [coldq.Feedback(coldq.Linear([1.0, 2.0]), g) for g in discs * 3]
    best = coldq.static_comparator(Scripted(SQUARE, slots), [0])
    x = cp.Variable(2)
    limits = [cp.norm(x - c) <= 0.5 for c in centers]
    value = cp.Problem(cp.Minimize(x[0] + 2.0 * x[1]), limits).solve(solver=cp.CLARABEL)  # type: ignore[arg-type]
    np.testing.assert_allclose(best.loss, value, atol=1e-6)
    many = [
        coldq.Feedback(DOWN, coldq.QuadraticConstraint([[[2.0]]], [[0.0]], [1.0 + k]))
        for k in range(65)
    ]
    with pytest.raises(coldq.InvalidInput, match="at most 64 different ones: these are 65"):
        coldq.static_comparator(Scripted(LINE, many), [0])


def capacity_slot(rng: np.random.Generator, p: int) -> tuple[coldq.Feedback, coldq.Box]:
    """Prices of any sign, ties, useless coordinates, fixed ones; slack, tight and unmet demands."""
    c = rng.choice([-1.0, 0.0, 1.0, 1.0, 1.0], p) * 10.0 ** rng.uniform(-3.0, 3.0, p)
    scale, rate = (rng.choice([0.0, 1.0, 1.0], p) * 10.0 ** rng.uniform(-1, 1, p) for _ in "sr")
    for array in (c, scale, rate):
        if rng.random() < 0.3:
            array[:] = array[0]
    lower = -rng.choice([0.0, 0.5], p) / np.maximum(rate, 0.1)
    upper = lower + rng.choice([0.0, 1.0, 1.0], p) * 10.0 ** rng.uniform(-1.0, 3.0, p)
    least, most = ((scale * np.log1p(rate * x)).sum() for x in (lower, upper))
    demand = least + rng.choice([-0.5, 0.3, 0.9, 0.999, 1.5]) * (most - least)
    row = coldq.LogCapacity(demand, scale, rate)
    return coldq.Feedback(coldq.Linear(c), row), coldq.Box(lower, upper)


def test_the_least_cost_of_a_capacity_meets_the_conditions_of_optimality() -> None:
    rng, met = np.random.default_rng(0), 0
    for _ in range(600):
        revealed, box = capacity_slot(rng, int(rng.integers(1, 8)))
        near = box.lower + rng.random(box.dim) * (box.upper - box.lower)
        x, exists = nearest_minimiser(revealed, box, near)
        c, g = revealed.loss.c, revealed.constraint  # type: ignore[attr-defined]
        most = (g.scale * np.log1p(g.rate * box.upper)).sum()  # type: ignore[attr-defined]
        size = abs(g.demand) + most  # type: ignore[attr-defined]
        assert exists == (most >= g.demand - 1e-12 * size)  # type: ignore[attr-defined]
        if not exists:
            continue
        met += 1
        assert box.contains(x)
        gap = g.value(x)[0]
        assert gap <= 1e-10 * (1.0 + size)
        # Some mu >= 0 has c_i >= mu s_i r_i / (1 + r_i x_i) below the upper bounds, <= above the
        # lower ones; it is 0 if the row is slack.
        slope = -g.jacobian(x)[0]
        below, above = x < box.upper - 1e-9, x > box.lower + 1e-9
        flat = slope == 0.0
        assert (c[flat & below] >= 0.0).all() and (c[flat & above] <= 0.0).all()
        np.testing.assert_array_equal(x[flat & (c == 0.0)], near[flat & (c == 0.0)])
        price = c[~flat] / slope[~flat]
        low = max(0.0, price[above[~flat]].max(initial=0.0))
        high = price[below[~flat]].min(initial=np.inf)
        assert low <= high + 1e-9 * abs(low)
        assert low == 0.0 or gap >= -1e-9 * (1.0 + size)
    assert met > 300


def test_the_least_cost_of_a_capacity_is_that_of_cvxpy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        p = 5
        c, scale, rate = rng.uniform(0.1, 2.0, (3, p))
        c[0] = -0.2
        g = coldq.LogCapacity(6.0, scale, rate)
        box, x = coldq.Box(0.0, 40.0, dim=p), cp.Variable(p)
        best, _ = nearest_minimiser(coldq.Feedback(coldq.Linear(c), g), box, box.start())
        served = cp.sum(cp.multiply(scale, cp.log1p(cp.multiply(rate, x))))
        problem = cp.Problem(cp.Minimize(c @ x), [served >= 6.0, x >= 0.0, x <= 40.0])
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(c @ best, problem.value, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(best, x.value, atol=1e-3)


def test_free_coordinates_of_a_capacity_move_no_further_than_the_demand_needs() -> None:
    # x_1 costs, x_2 and x_3 are free, x_4 is free and useless.
    cost, box = coldq.Linear([1.0, 0.0, 0.0, 0.0]), coldq.Box(0.0, 10.0, dim=4)
    row = coldq.LogCapacity(np.log(16.0), [1.0, 1.0, 1.0, 0.0], np.ones(4))
    for near, expected in (
        ([5.0, 1.0, 1.0, 7.0], [0.0, 3.0, 3.0, 7.0]),  # (1 + x_2) (1 + x_3) = 16, by symmetry
        ([5.0, 4.0, 5.0, 7.0], [0.0, 4.0, 5.0, 7.0]),  # enough already
    ):
        x, _ = nearest_minimiser(coldq.Feedback(cost, row), box, np.array(near))
        np.testing.assert_allclose(x, expected, atol=1e-9)
    # Where the free ones do not suffice, they are used up.
    row = coldq.LogCapacity(np.log(242.0), [1.0, 1.0, 1.0, 0.0], np.ones(4))
    x, _ = nearest_minimiser(coldq.Feedback(cost, row), box, np.full(4, 2.0))
    np.testing.assert_allclose(x, [1.0, 10.0, 10.0, 2.0], rtol=1e-9)


def test_capacities_in_a_batch_have_the_bits_of_one_by_one() -> None:
    problem = coldq.problems.JobScheduling(12)
    demands = np.array([-1.0, 1000.0, 2500.0, 3300.0, 4000.0])
    near = np.random.default_rng(2).uniform(0.0, 1000.0, (5, 100))
    for t in range(1, 13):
        revealed = problem.start([0]).reveal(t, near)
        scale, rate = revealed.constraint.scale, revealed.constraint.rate  # type: ignore[attr-defined]
        rows = coldq.LogCapacity(demands, scale, rate)
        x, exists = nearest_minimiser(coldq.Feedback(revealed.loss, rows), problem.domain, near)
        assert exists.tolist() == [True, True, True, True, False]
        for k, demand in enumerate(demands):
            row = coldq.LogCapacity(demand, scale, rate)
            alone, _ = nearest_minimiser(
                coldq.Feedback(revealed.loss, row), problem.domain, near[k]
            )
            assert alone.tobytes() == x[k].tobytes()


def test_a_demand_beyond_every_capacity_is_named() -> None:
    box, row = coldq.Box(0.0, 1.0, dim=1), [coldq.LogCapacity(d, [1.0], [1.0]) for d in (0.5, 0.7)]
    problem = Scripted(box, [coldq.Feedback(DOWN, g) for g in row])  # log 2 = 0.69...
    assert coldq.dynamic_comparator(problem, [0]).feasible.tolist() == [[True, False]]
    assert not coldq.static_comparator(problem, [0]).feasible.any()
    trace = coldq.simulate(coldq.COLDQ(box, horizon=2), problem, seeds=[0])
    with pytest.warns(coldq.UndefinedRegret, match="seed 0"):
        assert np.isnan([coldq.dynamic_regret(trace), coldq.static_regret(trace)]).all()
    words = str(coldq.bound_report(trace))
    assert "1 of 1 seeds have none, so that their regret is undefined: seed 0 in slot 2" in words
    assert "no bound (Theorem 1 is void)" in words
    # A demand that all of the capacity just meets is met.
    whole = coldq.LogCapacity(np.log1p(1e-4), [1.0], [1e-4])
    x, exists = nearest_minimiser(coldq.Feedback(DOWN, whole), box, np.zeros(1))
    assert exists and x[0] == 1.0


def test_adversaries_get_the_decisions_they_answered_to() -> None:
    def answer(x):
        return coldq.Feedback(coldq.Linear(np.where(x > 0.5, 1.0, -1.0)), rows(1.0, 1.0))

    problem = Scripted(LINE, [answer] * 20, adaptive=True)
    trace = coldq.simulate(coldq.COLDQ(LINE, horizon=20), problem, seeds=[0])
    assert trace.decisions is not None  # always, as the problem is not the library's
    assert coldq.dynamic_regret(trace) > 0.0
    with pytest.raises(coldq.InvalidInput, match="pass those of a run on"):
        coldq.dynamic_comparator(problem, [0])


def test_measured_constraints_have_no_comparator() -> None:
    g = coldq.Affine.from_measurement([0.0], [1.0], [[1.0]])
    with pytest.raises(coldq.InvalidInput, match="needs the whole constraint"):
        coldq.dynamic_comparator(Scripted(LINE, [coldq.Feedback(DOWN, g)] * 2), [0])
    stack = coldq.Stacked(rows(1.0, 1.0), g)
    with pytest.raises(coldq.InvalidInput, match="needs the whole constraint"):
        coldq.dynamic_comparator(Scripted(LINE, [coldq.Feedback(DOWN, stack)] * 2, 2), [0])


def test_answers_are_cached_and_do_not_depend_on_the_seeds_beside() -> None:
    problem = coldq.problems.TimeVarying(horizon=30)
    together = coldq.dynamic_comparator(problem, [11, 12, 13])
    fresh = coldq.problems.TimeVarying(horizon=31)
    alone = coldq.dynamic_comparator(fresh, [12])
    assert together.x[1].tobytes() == alone.x[0, :30].tobytes()
    again = coldq.dynamic_comparator(problem, [13, 14, 11])
    assert again.x[2].tobytes() == together.x[0].tobytes()
    assert again.x[0].tobytes() == together.x[2].tobytes()


def test_a_loss_that_vanishes_where_rows_meet_a_bound_has_a_comparator() -> None:
    """Eight rows a x <= 0 leave x = 0 alone, where the loss, all rows and the bound are zero."""
    slopes = np.array([[0.72, 0.97, 0.905, 0.6, 0.89, 0.63, 0.71, 0.93]]).T
    x, exists = minimise_on_rows(
        np.array([[[89.0]]]), np.zeros((1, 1)), np.array([[-5994.0]]), slopes[None],
        np.zeros((1, 8)), coldq.Box(0.0, 1.0, dim=1), np.zeros((1, 1)),
    )  # fmt: skip
    assert exists.all()
    np.testing.assert_allclose(x, 0.0, atol=1e-12)


def test_slots_with_and_without_a_seeds_axis_have_a_static_comparator() -> None:
    class Mixed:
        domain, horizon, n_constraints = coldq.Box(-1.0, 1.0, dim=2), 4, 1

        def start(self, seeds):
            self.seeds = len(seeds)
            return self

        def reveal(self, t, x):
            loss = coldq.Smooth(lambda x: np.exp(-x.sum()), lambda x: np.full(2, -np.exp(-x.sum())))
            A, b = np.ones((self.seeds, 1, 2)), np.full((self.seeds, 1), 0.5)
            rows = coldq.Affine(A, b) if t % 2 else coldq.Affine([[1.0, 0.0]], [1.0])
            return coldq.Feedback(loss, rows, slot=t)

    trace = coldq.simulate(coldq.COLDQ(Mixed.domain, 4), Mixed(), seeds=[0, 1])
    least = 4 * np.exp(-0.5)  # at x_1 + x_2 = 1/2
    np.testing.assert_allclose(
        coldq.static_regret(trace), trace.loss.sum(axis=1) - least, atol=1e-6
    )
