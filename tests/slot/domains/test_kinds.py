"""Domains: projections, membership and diameters against brute force, CVXPY and closed forms."""

from __future__ import annotations

import pickle
from itertools import combinations, permutations, product

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array

import coldq
from coldq.slot.minimisers import nearest_minimiser
from coldq.slot.step.reference import reference_step
from coldq.solver.answer import TOLERANCE
from coldq.solver.api import active_set_extended
from coldq.solver.problem import AffineProblem
from tests.instances import CATEGORIES, DOMAINS, make_domain
from tests.pairs import Problem, draw, residual

INF = np.inf


def simplex_projection(y: np.ndarray, total: float, cap: float) -> np.ndarray:
    """By bisection on the multiplier of the sum."""
    low, high = y.min() - cap - total, y.max()
    for _ in range(200):
        shift = 0.5 * (low + high)
        if np.clip(y - shift, 0.0, cap).sum() > total:
            low = shift
        else:
            high = shift
    return np.clip(y - high, 0.0, cap)


def test_a_simplex_projects_as_bisection_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, total = int(rng.integers(1, 12)), 10.0 ** rng.uniform(-2, 2)
        cap = float(rng.choice([total, rng.uniform(1.0, 3.0) * total / p]))
        X = coldq.Simplex(p, total, cap)
        y = total * rng.standard_normal(p) * 10.0 ** rng.uniform(-1, 3)
        x = X.project(y)
        scale = total + np.abs(y).max()
        np.testing.assert_allclose(x, simplex_projection(y, total, cap), atol=1e-13 * scale)
        np.testing.assert_allclose(x.sum(), total, rtol=1e-12)
        assert X.contains(x)
        assert not X.contains(1.001 * x)


def corners_of_a_simplex(p: int, total: float, cap: float) -> np.ndarray:
    full = int(np.floor(total / cap + 1e-9))
    entries = [cap] * full + [total - full * cap] + [0.0] * (p - full - 1)
    return np.array(sorted(set(permutations(entries[:p]))))


@pytest.mark.parametrize("p", range(1, 7))
def test_the_diameter_of_a_simplex_is_that_of_its_corners(p: int) -> None:
    for share in (0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.25, 5.0, 5.5):
        if share > p:
            continue
        corners = corners_of_a_simplex(p, share, 1.0)
        widest = max((np.linalg.norm(a - b) for a, b in combinations(corners, 2)), default=0.0)
        X = coldq.Simplex(p, total=share, cap=1.0)
        assert X.diameter_exact
        np.testing.assert_allclose(X.diameter, widest, atol=1e-12)
    np.testing.assert_allclose(coldq.Simplex(p, total=3.0).diameter, 3.0 * np.sqrt(2) * (p > 1))


@pytest.mark.parametrize("kind", DOMAINS)
def test_projections_are_cvxpys(kind: str) -> None:
    rng = np.random.default_rng(DOMAINS.index(kind))
    for _ in range(12):
        X = make_domain(rng, kind, int(rng.integers(1, 8)))
        y = 3.0 * rng.standard_normal(X.dim)
        x, (oracle, _) = X.project(y), reference_step(y, 0.0 * y, 0.5, [], None, X)
        np.testing.assert_allclose(x, oracle, atol=2e-5)
        assert X.contains(x)
        # Nearest: no point of the domain lies on the other side of the plane through x.
        others = X.project(5.0 * rng.standard_normal((50, X.dim)))
        assert ((others - x) @ (y - x)).max() <= 1e-9 * (1.0 + np.abs(y).max()) ** 2
        np.testing.assert_allclose(X.project(x), x, atol=1e-11 * (1.0 + np.abs(x).max()))


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_batch_projects_with_the_bits_of_one_by_one(kind: str) -> None:
    rng = np.random.default_rng(7)
    X = make_domain(rng, kind, 5)
    y = rng.standard_normal((40, 3, 5)) * 10.0 ** rng.uniform(-2, 20, (40, 3, 1))
    together = X.project(y)
    assert X.contains(together).all()
    for where in np.ndindex(40, 3):
        assert X.project(y[where]).tobytes() == together[where].tobytes()


@pytest.mark.parametrize(
    "X",
    [
        coldq.Simplex(2),
        coldq.Polytope([[1.0, 1.0]], [1.0], 0.0, np.inf),
        coldq.Polytope([[1.0, 2.0], [1.0, 1.0]], [1.0, 2.0], -np.inf, np.inf),
    ],
)
def test_a_point_whose_sum_overflows_is_not_inside(X: coldq.Domain) -> None:
    assert not X.contains([1e308, 1e308], 1.0)


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_start_is_the_point_nearest_to_the_origin(kind: str) -> None:
    rng = np.random.default_rng(8)
    for _ in range(5):
        X = make_domain(rng, kind, 4)
        start = X.start()
        assert X.contains(start)
        others = X.project(rng.standard_normal((200, 4)))
        assert np.linalg.norm(start) <= np.linalg.norm(others, axis=1).min() + 1e-9


def test_the_bound_on_a_polytopes_diameter_is_not_below_it() -> None:
    rng = np.random.default_rng(9)
    for kind in ("polytope of ties", "equalities", "thin polytope"):
        for _ in range(4):
            X = make_domain(rng, kind, 3)
            assert not X.diameter_exact
            points = X.project(20.0 * rng.standard_normal((200, 3)))
            spread = np.linalg.norm(points[:, None] - points, axis=-1).max()
            assert spread <= X.diameter <= X.box.diameter + 1e-9
    wedge = coldq.Polytope([[1.0, -1.0]], [0.0])
    assert wedge.diameter == INF
    square = coldq.Polytope([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], np.ones(4))
    np.testing.assert_allclose(square.diameter, np.sqrt(8.0), rtol=1e-5)  # R itself is 2


def test_batches_of_different_domains() -> None:
    rng = np.random.default_rng(10)
    y = 2.0 * rng.standard_normal((4, 3))
    totals, radii = np.array([0.5, 1.0, 2.0, 3.0]), np.array([0.1, 1.0, 2.0, 50.0])
    A, b = rng.standard_normal((4, 2, 3)), rng.random((4, 2))
    families = [
        (coldq.Simplex(3, totals), lambda k: coldq.Simplex(3, totals[k])),
        (coldq.Ball(np.ones(3), radii), lambda k: coldq.Ball(np.ones(3), radii[k])),
        (coldq.Polytope(A, b, -1.0, 1.0), lambda k: coldq.Polytope(A[k], b[k], -1.0, 1.0)),
        (
            coldq.Product(coldq.Simplex(2, totals), coldq.Box(0.0, 1.0, dim=1)),
            lambda k: coldq.Product(coldq.Simplex(2, totals[k]), coldq.Box(0.0, 1.0, dim=1)),
        ),
    ]
    rows = coldq.Affine(rng.standard_normal((2, 3)), rng.standard_normal(2))
    for whole, member in families:
        assert whole.batch == (4,)
        assert whole.start().shape == (4, 3)
        x = whole.project(y)
        step = coldq.penalised_step(y, [1.0, 0.0, -1.0], 0.5, 9.0, rows, whole)
        for k in range(4):
            one = member(k)
            assert one.project(y[k]).tobytes() == x[k].tobytes()
            np.testing.assert_allclose(whole.diameter[k], one.diameter, rtol=1e-12)
            alone = coldq.penalised_step(y[k], [1.0, 0.0, -1.0], 0.5, 9.0, rows, one)
            assert alone.x.tobytes() == step.x[k].tobytes()
            assert alone.multipliers.tobytes() == step.multipliers[k].tobytes()


def test_points_that_are_not_finite_are_refused() -> None:
    for X in (coldq.Simplex(2), coldq.Polytope([[1.0, 1.0]], [1.0], 0.0)):
        for bad in (np.nan, INF):
            with pytest.raises(coldq.InvalidInput, match="must be finite"):
                X.project([bad, 0.0])


def test_far_points_do_not_overflow() -> None:
    for far in (1e150, 1e300):
        y = np.array([far, far, -far])
        np.testing.assert_allclose(coldq.Simplex(3).project(y), [0.5, 0.5, 0.0])
        corner = coldq.Ball(np.zeros(3), 2.0).project(y)
        np.testing.assert_allclose(corner, 2.0 / np.sqrt(3.0) * np.array([1.0, 1.0, -1.0]))
        X = coldq.Polytope([[1.0, 1.0, 1.0]], [1.5], 0.0, 1.0)
        np.testing.assert_allclose(X.project([far, -far, -far]), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("kind", DOMAINS)
def test_no_step_on_a_domain_is_worse_than_the_oracles(kind: str) -> None:
    for k, category in enumerate(CATEGORIES):
        if category in ("alpha 1e-8", "alpha 1e8", "row scales"):
            continue  # beyond the oracle's own accuracy
        one = draw("affine", kind, k, seed=12)
        step = one.solve()
        g, X = one.rows.constraint, one.domain
        x, _ = reference_step(
            one.center,
            one.gradient,
            one.alpha,
            one.multiplier_upper,
            g,
            X,
            multiplier_lower=one.multiplier_lower,
        )
        ours, theirs = one.objective(step.x), one.objective(x)
        size = 1.0 + abs(theirs) + one.alpha * np.square(x - one.center).sum()
        # The oracle may leave the domain or cut an enforced row a little: weigh that generously.
        steep = np.abs(one.gradient).max() + np.abs(g.A).max() * one.multiplier_upper[
            np.isfinite(one.multiplier_upper)
        ].sum() + np.abs(step.multipliers).sum()  # fmt: skip
        assert ours <= theirs + 1e-6 * size + 1e-6 * steep


def test_a_hard_row_that_misses_the_domain_is_infeasible() -> None:
    beyond = coldq.Affine([[-1.0, -1.0]], [-3.0])  # x_1 + x_2 >= 3
    for X in (coldq.Simplex(2), coldq.Ball([0.0, 0.0], 2.0), coldq.Polytope([[1, 1]], [1], 0.0)):
        with pytest.raises(coldq.Infeasible, match="no common point in the domain") as caught:
            coldq.penalised_step([0.0, 0.0], [1.0, 0.0], 1.0, INF, beyond, X)
        assert caught.value.step is not None
        assert caught.value.step.multipliers.shape == (1,)
        soft = coldq.penalised_step([0.0, 0.0], [1.0, 0.0], 1.0, 50.0, beyond, X)
        assert soft.multipliers == 50.0
    touching = coldq.Affine([[-1.0, 0.0]], [-2.0])  # x_1 >= 2 meets the ball in one point
    step = coldq.penalised_step([0.0, 0.0], [1.0, 1.0], 1.0, INF, touching, coldq.Ball([0, 0], 2))
    np.testing.assert_allclose(step.x, [2.0, 0.0], atol=1e-4)


def test_equalities_are_two_rows_whose_violation_is_the_distance() -> None:
    rng = np.random.default_rng(13)
    A, b = rng.standard_normal((3, 2, 4)), rng.standard_normal((3, 2))
    g, x = coldq.Affine.equality(A, b), rng.standard_normal((3, 4))
    off = np.einsum("kij,kj->ki", A, x) - b
    np.testing.assert_allclose(np.maximum(g.value(x), 0.0).sum(axis=-1), np.abs(off).sum(axis=-1))
    assert g.n_constraints == 4
    # The two sides together are the equality penalty of the step, whatever their weights.
    box = coldq.Box(-1.0, 1.0, dim=4)
    gradient = rng.standard_normal((3, 4))
    for w in (0.3, 2.0, 1e4):
        pair = coldq.penalised_step(x, gradient, 0.7, w, g, box)
        one = coldq.penalised_step(
            x, gradient, 0.7, w, coldq.Affine(A, b), box, multiplier_lower=-w
        )
        np.testing.assert_allclose(pair.x, one.x, atol=1e-11)
        up, down = pair.multipliers[:, :2], pair.multipliers[:, 2:]
        np.testing.assert_allclose(up - down, one.multipliers, atol=1e-8 * w)


def test_two_sided_rows_are_the_sides_that_exist() -> None:
    A = np.arange(6.0).reshape(3, 2)
    g = coldq.Affine.between(A, [-INF, 0.0, 1.0], [2.0, INF, 3.0])
    np.testing.assert_array_equal(g.A, [A[0], A[2], -A[1], -A[2]])
    np.testing.assert_array_equal(g.b, [2.0, 3.0, 0.0, -1.0])
    batch = coldq.Affine.between(A, -1.0, np.ones((5, 3)))
    assert batch.value(np.zeros((5, 2))).shape == (5, 6)
    for arguments, words in [
        ((A, [0.0, 1.0], 1.0), "lower needs one entry for each of the 3 rows"),
        ((A, [[0.0] * 3, [-INF] * 3], 1.0), "lower must be infinite in all of a batch or nowhere"),
        ((A, np.nan, 1.0), "b must be finite"),
        ((A, INF, 1.0), "lower must not be above upper, but is inf against 1.0"),
        ((A, INF, INF), "b must be finite"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.Affine.between(*arguments)


def test_comparators_on_other_domains() -> None:
    domains = [
        coldq.Simplex(3, total=2.0),
        coldq.Polytope([[1.0, 1.0, 0.0]], [1.0], -1.0, 1.0, A_eq=[[1.0, 0.0, -1.0]], b_eq=[0.25]),
        coldq.Ball([0.2, 0.4, 0.6], radius=0.5),
        coldq.Product(coldq.Simplex(2), coldq.Box(0.0, 1.0, dim=1)),
    ]
    for X in domains:
        problem = coldq.problems.TimeVarying(horizon=4, domain=X)
        dynamic = coldq.dynamic_comparator(problem, [0])
        static = coldq.static_comparator(problem, [0])
        stream, total, rows = problem.start([0]), 0.0, []
        x = cp.Variable(3)
        for t in range(1, 5):
            revealed = stream.reveal(t, X.start())
            f, g = revealed.loss, revealed.constraint
            assert isinstance(f, coldq.LeastSquares)
            assert isinstance(g, coldq.Affine)
            loss, row = 0.5 * cp.sum_squares(f.H[0] @ x - f.y[0]), g.A[0] @ x <= g.b[0]
            value, exists = cvxpy_minimum(loss, [row], x, X)
            assert dynamic.feasible[0, t - 1] == exists
            if exists:
                assert X.contains(dynamic.x[0, t - 1])
                np.testing.assert_allclose(dynamic.loss[0, t - 1], value, atol=1e-5)
            total, rows = total + loss, [*rows, row]
        value, exists = cvxpy_minimum(total, rows, x, X)
        assert static.feasible[0, 0] == exists
        if exists:
            np.testing.assert_allclose(static.loss[0].sum(), value, atol=1e-5)


def cvxpy_minimum(loss, rows: list, x: cp.Variable, X) -> tuple[float, bool]:
    limits = [*rows]
    match X:
        case coldq.Simplex():
            limits += [x >= 0.0, cp.sum(x) == X.total]
        case coldq.Ball():
            limits += [cp.norm(x - X.center) <= X.radius]
        case coldq.Product():
            limits += [x >= 0.0, x[2] <= 1.0, x[0] + x[1] == 1.0]
        case _:
            limits += [x >= -1.0, x <= 1.0, x[0] + x[1] <= 1.0, x[0] - x[2] == 0.25]
    problem = cp.Problem(cp.Minimize(loss), limits)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value), problem.status == "optimal"  # type: ignore[arg-type]


def test_the_variation_of_a_constraint_over_other_domains() -> None:
    rng = np.random.default_rng(14)
    g, h = (coldq.Affine(rng.standard_normal((2, 4)), rng.standard_normal(2)) for _ in range(2))
    difference = coldq.Affine(g.A - h.A, g.b - h.b)
    value, exact = g.max_difference(h, coldq.Simplex(4, total=3.0))
    corners = np.linalg.norm(difference.value(3.0 * np.eye(4)), axis=-1)
    assert exact
    np.testing.assert_allclose(value, corners.max())
    for kind in DOMAINS[1:]:
        X = make_domain(rng, kind, 4)
        bound, exact = g.max_difference(h, X)
        assert not exact
        points = X.project(5.0 * rng.standard_normal((200, 4)))
        assert np.linalg.norm(difference.value(points), axis=-1).max() <= bound + 1e-9


def limits_of(X, x) -> list:
    """What a domain says of a CVXPY variable."""
    match X:
        case coldq.Simplex():
            return [x >= 0.0, x <= float(min(X.cap, X.total)), cp.sum(x) == X.total]
        case coldq.Ball():
            return [cp.norm(x - X.center) <= X.radius]
        case coldq.Product():
            edges = np.cumsum([0, *(part.dim for part in X.domains)])
            places = zip(X.domains, edges, edges[1:], strict=False)
            return [limit for part, i, j in places for limit in limits_of(part, x[i:j])]
        case coldq.Polytope():
            return [x >= 0.0, X.rows.A @ x <= X.rows.b]
    return [x >= X.lower, x <= X.upper]


def test_the_ends_of_a_row_are_those_of_cvxpy() -> None:
    rng, x = np.random.default_rng(16), cp.Variable(4)
    A = rng.standard_normal((3, 4))
    for X in (
        coldq.Box(-1.0, [0.0, 1.0, 2.0, 3.0]),
        coldq.Simplex(4, total=2.0),
        coldq.Simplex(4, total=2.0, cap=0.7),
        coldq.Simplex(4, total=2.0, cap=0.5),  # one point
        coldq.Ball([1.0, 2.0, 3.0, 4.0], 0.5),
        coldq.Product(coldq.Ball([1.0, -1.0], 2.0), coldq.Simplex(2, total=3.0)),
        coldq.Product(coldq.Box(0.0, 1.0, dim=3), coldq.Polytope([[2.0]], [3.0], lower=0.0)),
        coldq.Polytope([[1.0, 2.0, 3.0, 4.0]], [5.0], lower=0.0),
        coldq.Polytope([[1.0, 1.0, 1.0, 1.0]], [0.7], lower=0.0),  # a budget
        coldq.Polytope([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], [2.0, 3.0], lower=0.0),
    ):
        least, greatest, exact = X.ends(A)
        assert exact == (X.diameter_exact or X.blocks is not None)
        for k, a in enumerate(A):
            low = cp.Problem(cp.Minimize(a @ x), limits_of(X, x)).solve(solver=cp.CLARABEL)
            high = cp.Problem(cp.Maximize(a @ x), limits_of(X, x)).solve(solver=cp.CLARABEL)
            if exact:
                np.testing.assert_allclose([least[k], greatest[k]], [low, high], atol=1e-6)
            else:  # the box around is bounded, although the polytope was given without
                assert -20.0 < least[k] <= low + 1e-6
                assert high - 1e-6 <= greatest[k] < 20.0
    many = coldq.Simplex(4, total=[1.0, 2.0], cap=[0.3, np.inf])
    for part, one in zip(many.ends(A)[:2], coldq.Simplex(4, 2.0).ends(A)[:2], strict=True):
        assert part[1].tobytes() == one.tobytes()


def test_problems_on_other_domains_keep_their_constants() -> None:
    for X in (coldq.Simplex(3, total=4.0), coldq.Ball(np.ones(3), 2.0)):
        problem = coldq.problems.TimeVarying(horizon=50, domain=X)
        known, stream = problem.constants, problem.start(range(5))
        rng = np.random.default_rng(15)
        assert known.diameter == X.diameter
        for t in range(1, 51):
            x = X.project(5.0 * rng.standard_normal((5, 3)))
            revealed = stream.reveal(t, x)
            assert np.linalg.norm(revealed.loss.gradient(x), axis=-1).max() <= known.gradient_bound
            assert np.abs(revealed.constraint.value(x)).max() <= known.constraint_bound


def test_learners_run_on_other_domains() -> None:
    for X in (coldq.Simplex(3), coldq.Ball(np.zeros(3), 1.0)):
        problem = coldq.problems.TimeVarying(horizon=60, domain=X)
        for kind in (coldq.COLDQ, coldq.RECOO, coldq.Yi2021, coldq.SinhaVaze, coldq.OGD):
            trace = coldq.simulate(kind.for_problem(problem), problem, [0, 1], keep=["decisions"])
            assert trace.decisions is not None
            assert X.contains(trace.decisions).all()
    best = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0, 1])
    assert (coldq.dynamic_regret(best) >= 0.0).all()


def test_a_custom_domain_projects_and_says_what_it_cannot_do() -> None:
    disc = coldq.CustomDomain(2, lambda x: x / max(1.0, np.hypot(*x)), diameter=2.0)
    ball = coldq.Ball([0.0, 0.0], 1.0)
    y = np.random.default_rng(16).standard_normal((5, 2))
    np.testing.assert_allclose(disc.project(y), ball.project(y), atol=1e-15)
    np.testing.assert_array_equal(disc.contains(y), ball.contains(y))
    assert disc.box == coldq.Box(-2.0, 2.0, dim=2)  # what the diameter says
    limit = coldq.Affine([[1.0, 0.0]], [0.5])
    revealed = coldq.Feedback(coldq.Linear([-1.0, 0.0]), limit)
    learners = [
        coldq.OGD(disc, gradient_bound=1.0),
        coldq.Yi2023.from_exponents(disc, a=1.0, b=1.0, g=1.0),
        coldq.SinhaVaze(disc, horizon=10, lipschitz=1.0),
    ]
    for learner in learners:
        state = learner.init(1)
        for _ in range(5):
            state = learner.update(state, revealed)
        assert disc.contains(state.x)
    for domain in (disc, coldq.Product(disc, coldq.Simplex(2))):
        with pytest.raises(coldq.InvalidInput, match=r"a learner that only projects \(OGD"):
            coldq.penalised_step(domain.start(), np.ones(domain.dim), 1.0, 1.0, None, domain)
    with pytest.raises(coldq.InvalidInput, match="a learner that only projects"):
        nearest_minimiser(revealed, disc, np.zeros(2))
    with pytest.raises(coldq.NotSaveable, match="cannot be saved"):
        pickle.dumps(disc)
    with pytest.raises(coldq.InvalidInput, match="projection must return shape"):
        coldq.CustomDomain(2, lambda x: x[:1], diameter=1.0).project([1.0, 2.0])


def test_every_kind_of_row_is_solved_beside_every_kind_of_domain() -> None:
    rng = np.random.default_rng(8)
    domains = (
        coldq.Simplex(4),
        coldq.Polytope([[1.0, 1.0, 1.0, 1.0]], [1.5], -1.0, 1.0),
        coldq.Ball(np.zeros(4), 1.0),
        coldq.Product(coldq.Ball([0.0, 0.5], 0.7), coldq.Simplex(2)),
    )
    for k in range(24):
        domain, A, b = domains[k % 4], rng.normal(size=(2, 4)), rng.normal(size=2) * 0.3
        half = rng.normal(size=(2, 4, 4))
        P = half @ half.swapaxes(-1, -2) / 4.0
        rows = [
            coldq.Affine(A, b),
            coldq.SparseAffine(csr_array(A), b),
            coldq.QuadraticConstraint(P, A, b),
            coldq.Stacked(coldq.Affine(A, b), coldq.QuadraticConstraint(P, A, b)),
        ]
        if domain.polyhedral:
            rows.append(coldq.MaxAffine(rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3))))
        for g in rows:
            given = rng.normal(size=4), rng.normal(size=4), 0.7, rng.uniform(0.1, 3.0)
            step = coldq.penalised_step(*given, g, domain)
            assert domain.contains(step.x)
            best, value = reference_step(*given, g, domain)
            np.testing.assert_allclose(step.x, best, atol=2e-4)
            violation = np.maximum(g.value(step.x), 0.0).sum()
            move = step.x - given[0]
            ours = given[1] @ move + 0.7 * move @ move + given[3] * violation
            assert ours <= value + 1e-6 * (1.0 + abs(value))


def test_what_the_step_refuses_it_explains() -> None:
    capacity = coldq.LogCapacity(1.0, [1.0, 1.0], [1.0, 1.0])
    with pytest.raises(coldq.InvalidInput, match=r"LogCapacity on bounds alone.*coldq.Stacked"):
        coldq.penalised_step([0.0, 1.0], [1.0, 1.0], 1.0, 1.0, capacity, coldq.Simplex(2))
    wrapped = coldq.Stacked(capacity)  # as the sentence says: on it, log(1 + x) (2 - x) is largest
    step = coldq.penalised_step([0.0, 1.0], [0.0, 0.0], 1e-6, 9.0, wrapped, coldq.Simplex(2))
    hard = np.log((1.0 + step.x[0]) * (1.0 + step.x[1])) - np.log(2.25)
    assert abs(hard) < 1e-9
    assert abs(step.x.sum() - 1.0) < 1e-9
    boxes = coldq.Product(coldq.Box(0.0, 1.0, dim=1), coldq.Box(0.0, 3.0, dim=1))
    split = coldq.penalised_step([0.0, 1.0], [1.0, 1.0], 1.0, 9.0, capacity, boxes)
    whole = coldq.penalised_step([0.0, 1.0], [1.0, 1.0], 1.0, 9.0, capacity, boxes.box)
    assert split.x.tobytes() == whole.x.tobytes()
    state = coldq.COLDQ(coldq.Simplex(3), horizon=9).init(2)
    with pytest.raises(coldq.InvalidInput, match="domain has 4 coordinates"):
        coldq.COLDQ(coldq.Simplex(4), horizon=9).update(
            state, coldq.Feedback(coldq.Linear(np.ones(3)), coldq.Affine(np.ones((2, 3)), [1, 1]))
        )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: coldq.Simplex(0), "dim must be a whole number"),
        (lambda: coldq.Simplex(3, total=-1.0), "total must be positive"),
        (lambda: coldq.Simplex(3, cap=0.3), "domain is empty: 3 coordinates of at most 0.3"),
        (lambda: coldq.Simplex(3, cap=0.0), "cap must be positive"),
        (lambda: coldq.Ball([0.0, np.nan], 1.0), "center must be finite"),
        (lambda: coldq.Ball([0.0, 1.0], 0.0), "radius must be positive"),
        (lambda: coldq.Ball([], 1.0), "center must have at least one coordinate"),
        (lambda: coldq.Polytope([[1.0]], [-1.0], 0.0), "domain is empty: no point within"),
        (lambda: coldq.Polytope([[1.0]]), "needs both A and b or neither"),
        (lambda: coldq.Polytope(lower=0.0), "without any use coldq.Box"),
        (
            lambda: coldq.Polytope([[1.0]], [1.0], A_eq=[[1.0, 1.0]], b_eq=[1.0]),
            r"equally many coordinates, but have \[1, 2\]",
        ),
        (
            lambda: coldq.Polytope([[[1.0]], [[1.0]]], [[1.0], [-1.0]], 0.0),
            r"domain is empty: .* at index \(1,\)",
        ),
        (lambda: coldq.Product(), "must name at least one domain"),
        (lambda: coldq.Product(3), "domain must be a domain such as"),
        (lambda: coldq.CustomDomain(2, 7, 1.0), "project must be a function"),
        (lambda: coldq.CustomDomain(2, np.abs, -1.0), "diameter must be one number"),
        (lambda: coldq.CustomDomain(2, np.abs, 1.0, [-1.0, 0.0]), "start must be one point"),
    ],
)
def test_bad_domains_are_refused_with_a_sentence(make, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        make()


def test_domains_are_values() -> None:
    rng = np.random.default_rng(17)
    made = [make_domain(np.random.default_rng(5), kind, 4) for kind in DOMAINS]
    again = [make_domain(np.random.default_rng(5), kind, 4) for kind in DOMAINS]
    for (j, one), (k, other) in product(enumerate(made), enumerate(again)):
        assert (one == other) == (j == k)
    y = rng.standard_normal(4)
    for one, other in zip(made, again, strict=True):
        assert hash(one) == hash(other)
        copy = pickle.loads(pickle.dumps(one))
        assert copy == one
        assert copy.project(y).tobytes() == one.project(y).tobytes()


def test_the_slow_path_solves_domains_without_an_inside() -> None:
    for k in range(40):
        one: Problem = draw("affine", "thin polytope", k, seed=18)
        if one.clashes:
            continue
        rows, g = one.domain.rows, one.rows.constraint
        n, box = len(g.b), one.domain.box
        arguments = AffineProblem(
            one.center, one.gradient, np.array(one.alpha),
            np.append(one.multiplier_lower, rows.multiplier_lower),
            np.append(one.multiplier_upper, rows.multiplier_upper), np.zeros(n + len(rows.b)),
            np.concatenate([g.A, rows.A]), np.append(g.b, rows.b), box.lower, box.upper,
        )  # fmt: skip
        x, multipliers, found, _ = active_set_extended(arguments)
        assert found <= TOLERANCE
        step = coldq.Step(x, multipliers[:n], found)
        assert residual(one, step, TOLERANCE) <= TOLERANCE


@pytest.mark.parametrize("p", [3, 3000])
def test_the_least_value_of_a_row_on_a_simplex_with_caps_is_that_of_its_cheapest(p: int) -> None:
    rng, cap = np.random.default_rng(p), 2.5 / p
    A = rng.normal(size=(2, p))
    A[1, : p // 2] = A[1, 0]  # alike
    least, greatest, exact = coldq.Simplex(p, cap=cap).ends(A)
    whole = int(1.0 // cap)
    for row, low, high in zip(A, least, greatest, strict=True):
        order = np.sort(row)
        rest = 1.0 - whole * cap
        assert low == pytest.approx(cap * order[:whole].sum() + rest * order[whole], rel=1e-12)
        assert high == pytest.approx(
            cap * order[-whole:].sum() + rest * order[-whole - 1], rel=1e-12
        )
    assert exact
