"""Rows that are not affine, at every scale: a share of the adversarial steps, and what it is that
they need."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import coldq
from tests.adversary.curved_rows import DRAWS, KINDS
from tests.adversary.drawn import EXTREME, MODERATE

INF = np.inf


def verdict(rows: str, domain: str, k: int, scales: str) -> str:
    drawn = DRAWS[rows, domain](np.random.default_rng((17, k)), scales)
    try:
        step = drawn.solve()
    except coldq.Infeasible as error:
        return "" if drawn.feasible is False else f"{k}: {error}"
    except coldq.StepFailed as error:
        unproved = drawn.feasible is False and "may be infeasible" in str(error)
        return "" if unproved else f"{k}: {error}"
    if drawn.feasible is False:
        return f"{k}: an answer where enforced rows conflict"
    off = drawn.judge(step)
    return "" if off <= drawn.allowed else f"{k} ({drawn.category}): {off:.3g}"


@pytest.mark.parametrize(("rows", "domain"), DRAWS)
def test_every_step_drawn_at_moderate_scales_is_solved(rows: str, domain: str) -> None:
    count = 3 if "kink" in rows or "without" in rows else 12
    wrong = [verdict(rows, domain, k, MODERATE) for k in range(count)]
    assert not [words for words in wrong if words]


@pytest.mark.parametrize(
    ("rows", "domain"),
    [
        (rows, domain)
        for rows in ("capacity", "quadratic", "max-affine", "ball rows", "diagonal", "low rank")
        for domain in KINDS[rows].domains
    ],
)
def test_every_step_drawn_at_extreme_scales_is_solved(rows: str, domain: str) -> None:
    wrong = [verdict(rows, domain, k, EXTREME) for k in range(10)]
    assert not [words for words in wrong if words]


@pytest.mark.parametrize(
    ("rows", "method"),
    [("quadratic", "coldq.solver.curved.better"), ("diagonal", "coldq.solver.thin_rows.better")],
)
def test_the_first_method_nearly_always_solves_quadratic_rows_in_a_ball(
    rows: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = method.rsplit(".", 1)
    second, far = getattr(import_module(module), name), 0

    def counted(one: Any, x: Any, lam: Any, worst: float) -> Any:
        nonlocal far
        far += not worst <= 1e-2  # nearer, it is polished
        return second(one, x, lam, worst)

    monkeypatch.setattr(method, counted)
    for k in range(300):
        drawn = DRAWS[rows, "ball"](np.random.default_rng((18, k)), MODERATE)
        if drawn.feasible and drawn.category not in ("heavy", "hard", "mixed"):
            drawn.solve()
    assert far <= 3


def test_a_coordinate_at_zero_but_for_rounding_is_no_failure() -> None:
    key = [602, 2973, *b"max-affine product moderate"]
    drawn = DRAWS["max-affine", "product"](np.random.default_rng(key), MODERATE)
    step = drawn.solve()  # x_4 = 0 minimises, all of whose terms vanish
    assert step.residual <= 1e-9
    assert drawn.judge(step) <= drawn.allowed


def test_max_affine_rows_are_solved_whatever_their_weight() -> None:
    g = coldq.MaxAffine([[[1.0], [-1.0]]], [[0.8, -0.2]])
    X = coldq.Box(0.0, 1.0, dim=1)
    for weight in (1e2, 1e6, 1e8, 1e12, 1e16):
        step = coldq.penalised_step([-2.0], [1.0], 1.0, weight, g, X)
        assert step.x == pytest.approx(0.2, abs=1e-15)  # where -x + 0.2 = 0, beyond -2.5


@pytest.mark.parametrize("far", [0.0, 1e3, 1e5, 1e7])
def test_a_ball_in_a_product_is_left_by_no_more_than_rounding(far: float) -> None:
    rng = np.random.default_rng(int(far))
    for _ in range(20):
        center = far * rng.choice([-1.0, 1.0], 3)
        X = coldq.Product(coldq.Ball(center, 1.0), coldq.Simplex(2))
        A = rng.standard_normal((2, 5))
        g = coldq.Affine(A, A @ np.r_[center, 0.5, 0.5] - 0.1)
        x0 = np.r_[center, 0.5, 0.5] + rng.standard_normal(5)
        for rows in (g, coldq.Stacked(g, coldq.QuadraticConstraint(np.eye(5)[None], A[:1], [1.0]))):
            weights = np.full(rows.n_constraints, 10.0)
            step = coldq.penalised_step(x0, 5.0 * rng.standard_normal(5), 1.0, weights, rows, X)
            reach = sum(
                (Fraction(a) - Fraction(c)) ** 2 for a, c in zip(step.x, center, strict=False)
            )
            assert float(reach) <= (1.0 + 1e-9 + 8.0 * np.spacing(far)) ** 2


@pytest.mark.parametrize("unit", [1e-13, 1e-9, 1e9, 1e13])
def test_an_answer_has_as_many_digits_in_any_unit_of_x(unit: float) -> None:
    """x = unit z: the same step in z, so the same answer."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        p = int(rng.integers(2, 6))
        root = rng.standard_normal((2, p, p))
        P, q, r = np.einsum("nki,nkj->nij", root, root), rng.standard_normal((2, p)), np.ones(2)
        center, gradient = rng.standard_normal(p), rng.standard_normal(p)
        lower, upper = -rng.uniform(0.2, 2.0, p), rng.uniform(0.2, 2.0, p)
        A, b = rng.standard_normal((2, 3, p)), rng.standard_normal((2, 3))
        pairs: list[tuple[Any, Any]] = [
            (coldq.QuadraticConstraint(P, q, r), coldq.QuadraticConstraint(P / unit, q, r * unit)),
            (coldq.MaxAffine(A, b), coldq.MaxAffine(A, b * unit)),
            (
                coldq.LogCapacity(1.0, np.ones(p), 0.3 * np.ones(p)),
                coldq.LogCapacity(unit, unit * np.ones(p), 0.3 / unit * np.ones(p)),
            ),
        ]
        for one, other in pairs:
            weights = rng.uniform(0.1, 3.0, one.n_constraints)
            z = coldq.penalised_step(center, gradient, 1.0, weights, one, coldq.Box(lower, upper)).x
            x = coldq.penalised_step(
                center * unit, gradient * unit, 1.0, weights * unit, other,
                coldq.Box(lower * unit, upper * unit),
            ).x  # fmt: skip
            np.testing.assert_allclose(x / unit, z, rtol=1e-6, atol=1e-8)


def test_a_sparse_matrix_is_real_and_its_indices_lie_in_it() -> None:
    with pytest.raises(coldq.InvalidInput, match="A must be real numbers, but is of type complex"):
        coldq.SparseAffine(sparse.csr_array(1j * np.eye(2)), [1.0, 1.0])
    for name, value, words in (
        ("indices", [0, 7], "indices must lie in 0 to 1, but the one at position 1 is 7"),
        ("indices", [-1, 1], "indices must lie in 0 to 1, but the one at position 0 is -1"),
        ("indptr", [0, 2, 1], "do not fall"),
        ("indptr", [0, 1, 9], "indptr is"),
        ("indptr", [0, 1], "needs 3 values of indptr"),
    ):
        A = sparse.csr_array(np.eye(2))
        setattr(A, name, np.array(value, dtype=np.int32))
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.SparseAffine(A, [1.0, 1.0])
    for kind in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        A = sparse.csr_array(np.arange(6.0).reshape(2, 3)).asformat(kind)
        np.testing.assert_array_equal(
            coldq.SparseAffine(A, [1.0, 2.0]).value([1.0, 1.0, 1.0]), [2, 10]
        )


def test_a_ball_shaped_row_is_projected_onto_in_thousands_of_coordinates() -> None:
    p = 7840
    rng = np.random.default_rng(0)
    center, start = rng.uniform(-1.0, 1.0, p), rng.standard_normal(p)
    g = coldq.QuadraticConstraint.ball(center[None], [5.0])
    X = coldq.Box(-INF, INF, dim=p)
    step = coldq.penalised_step(start, np.zeros(p), 0.5, INF, g, X)
    away = start - center
    np.testing.assert_allclose(step.x, center + 5.0 * away / np.linalg.norm(away), atol=1e-12)
    np.testing.assert_allclose(g.jacobian(step.x), 2.0 * (step.x - center)[None], atol=1e-12)
    assert abs(g.value(step.x)[0]) <= 1e-9
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step(start, np.zeros(p), 0.5, INF, g, coldq.Box(50.0, 60.0, dim=p))


def test_diagonal_rows_give_what_their_matrices_give() -> None:
    rng = np.random.default_rng(1)
    for k in range(60):
        n, p = (1 if k % 3 else 2), int(rng.integers(1, 6))
        d = 10.0 ** rng.uniform(-2, 2, (n, p)) * (rng.random((n, p)) < 0.8)
        q, r = rng.standard_normal((n, p)), rng.standard_normal(n)
        thin = coldq.QuadraticConstraint.diagonal(d, q, r)
        full = coldq.QuadraticConstraint(d[..., None] * np.eye(p), q, r)
        X: Any = coldq.Box(-rng.uniform(0.1, 2, p), rng.uniform(0.1, 2, p))
        if k % 4 == 0:
            X = coldq.Simplex(p)
        x = X.project(rng.standard_normal(p))
        np.testing.assert_allclose(thin.value(x), full.value(x), rtol=1e-12, atol=1e-12)
        weights = rng.choice([0.0, 1e-2, 1.0, 1e3, 1e8], n)
        floor = weights * rng.choice([0.0, 1.0])
        arguments = 3 * rng.standard_normal(p), 3 * rng.standard_normal(p), 0.7, weights
        one, other = (
            coldq.penalised_step(*arguments, g, X, multiplier_lower=floor) for g in (thin, full)
        )
        np.testing.assert_allclose(one.x, other.x, atol=1e-7)
        if k % 4:
            assert thin.largest(X)[0] <= full.largest(X)[0] * (1.0 + 1e-12)


def test_a_batch_of_diagonal_rows_has_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(2)
    d, q, r = rng.random((4, 1, 3)), rng.standard_normal((4, 1, 3)), rng.standard_normal((4, 1))
    x0, c, X = rng.standard_normal((4, 3)), rng.standard_normal(3), coldq.Box(-1.0, 1.0, dim=3)
    batch = coldq.penalised_step(x0, c, 0.3, 5.0, coldq.QuadraticConstraint.diagonal(d, q, r), X)
    for k in range(4):
        g = coldq.QuadraticConstraint.diagonal(d[k], q[k], r[k])
        np.testing.assert_array_equal(coldq.penalised_step(x0[k], c, 0.3, 5.0, g, X).x, batch.x[k])


def test_what_is_not_convex_is_found_without_eigenvalues_too() -> None:
    rng = np.random.default_rng(4)
    for p in (2, 5, 30):
        V = np.linalg.qr(rng.standard_normal((p, p)))[0]
        low = np.linspace(0.0, 1.0, p)
        coldq.QuadraticConstraint(
            (V * low @ V.T + (V * low @ V.T).T)[None], np.zeros((1, p)), [1.0]
        )
        low[0] = -1e-6
        P = V * low @ V.T
        with pytest.raises(coldq.InvalidInput, match="eigenvalue -1e-06"):
            coldq.QuadraticConstraint(0.5 * (P + P.T)[None], np.zeros((1, p)), [1.0])
    with pytest.raises(coldq.InvalidInput, match="d must not be negative"):
        coldq.QuadraticConstraint.diagonal([[1.0, -1.0]], [[0.0, 0.0]], [1.0])


# What it was that these needed: multipliers rounded from more digits, weights for enforced rows
# that are relative to the rows, enforced rows that meet without room, a unit for x where none is
# known, a zero beside other coordinates, a gap that strong convexity says is small, rounding of
# a row beside
# a ball's center, a gap where x is zero, a box that is small beside the prices, a row around x
# itself that nothing meets, a ball that is small beside the digits of y, weights that no product
# with a room tells from none, cuts that begin where models ended, a proof of a clash beside an
# answer that was none, multipliers of thin rows rounded from more digits, x of 1e18, matrices that
# rounding leaves not quite convex, rounding of x in the slope of a domain's ball, a multiplier at
# its weight but for rounding.
ONCE_MISSED = [
    ("quadratic", "polytope", EXTREME, 11, 50),
    ("quadratic", "product", EXTREME, 12, 14),
    ("quadratic", "ball", EXTREME, 12, 86),
    ("quadratic", "ball product", MODERATE, 1, 94),
    ("quadratic stack", "product", EXTREME, 12, 87),
    ("quadratic stack", "box", MODERATE, 404, 74),
    ("convex", "simplex", EXTREME, 11, 12),
    ("convex", "ball", EXTREME, 12, 53),
    ("convex", "ball", EXTREME, 12, 61),
    ("convex", "ball product", EXTREME, 11, 25),
    ("convex", "ball product", EXTREME, 12, 43),
    ("smooth stack", "box", EXTREME, 12, 7),
    ("smooth stack", "polytope", EXTREME, 12, 24),
    ("convex without hessian", "box", MODERATE, 51, 22),
    ("convex without hessian", "product", MODERATE, 51, 19),
    ("convex without hessian", "simplex", MODERATE, 61, 81),
    ("convex without hessian", "polytope", MODERATE, 61, 37),
    ("convex without hessian", "simplex", EXTREME, 51, 11),
    ("kinked stack", "simplex", EXTREME, 51, 7),
    ("quadratic", "ball", MODERATE, 202, 3484),
    ("sparse", "product", MODERATE, 205, 83),
    ("sparse", "product", MODERATE, 205, 671),
    ("kinked stack", "polytope", MODERATE, 204, 79),
    ("smooth stack", "box", MODERATE, 205, 776),
    ("diagonal", "ball", MODERATE, 901, 1106),
    ("diagonal", "ball", MODERATE, 901, 2720),
    ("ball rows", "ball", MODERATE, 901, 1616),
    ("low rank", "ball", MODERATE, 901, 1354),
    ("low rank", "ball product", MODERATE, 901, 3231),
    ("convex without hessian", "box", MODERATE, 900, 53),
    ("sparse", "simplex", MODERATE, 901, 319),
    ("convex without hessian", "box", MODERATE, 901, 1711),
    ("convex without hessian", "simplex", MODERATE, 901, 1274),
    ("ball rows", "ball", MODERATE, 911, 826),
    ("sparse", "ball", MODERATE, 921, 3283),
    ("kinked stack", "polytope", MODERATE, 921, 983),
    ("thin stack", "ball product", MODERATE, 931, 1029),
    ("low rank", "box", MODERATE, 931, 2478),
    ("kinked stack", "polytope", MODERATE, 931, 2470),
    ("sparse", "polytope", EXTREME, 32, 139),
    ("kinked stack", "box", EXTREME, 32, 185),
    ("kinked stack", "polytope", EXTREME, 32, 147),
    ("convex", "ball", EXTREME, 33, 856),
    ("convex without hessian", "box", EXTREME, 33, 1497),
    ("sparse", "product", EXTREME, 33, 1259),
    ("thin stack", "product", EXTREME, 34, 120),
    ("thin stack", "ball", EXTREME, 41, 136),
    ("thin stack", "box", EXTREME, 51, 219),
    ("thin stack", "ball product", EXTREME, 43, 164),
    ("diagonal", "polytope", EXTREME, 33, 1381),
    ("max-affine", "product", EXTREME, 34, 53),
    ("low rank", "simplex", EXTREME, 42, 138),
    ("convex", "simplex", EXTREME, 41, 22),
    ("quadratic stack", "ball", EXTREME, 33, 394),
    ("quadratic stack", "ball", EXTREME, 47, 15),
    ("smooth stack", "ball", EXTREME, 33, 242),
    ("max-affine", "box", EXTREME, 41, 83),
    ("max-affine", "product", EXTREME, 33, 741),
    ("smooth stack", "polytope", EXTREME, 35, 108),
    ("kinked stack", "box", EXTREME, 35, 165),
    ("kinked stack", "polytope", EXTREME, 42, 110),
    ("kinked stack", "polytope", EXTREME, 35, 74),
    ("kinked stack", "box", EXTREME, 44, 17),
    ("thin stack", "polytope", MODERATE, 9701, 701),
    ("convex without hessian", "polytope", MODERATE, 9701, 1047),
    ("quadratic", "product", EXTREME, 71, 30),  # 0 in place of 1e-14, beside 1e7
]


@pytest.mark.parametrize(("rows", "domain", "scales", "seed", "k"), ONCE_MISSED)
def test_steps_that_were_once_missed_are_solved(
    rows: str, domain: str, scales: str, seed: int, k: int
) -> None:
    key = [seed, k, *f"{rows} {domain} {scales}".encode()]
    drawn = DRAWS[rows, domain](np.random.default_rng(key), scales)
    if drawn.feasible:
        assert drawn.judge(drawn.solve()) <= drawn.allowed
    else:
        with pytest.raises(coldq.Infeasible):
            drawn.solve()


def test_a_last_digit_of_x_beside_a_steep_kink_is_no_gap() -> None:
    key = [45, 11, *b"convex without hessian polytope extreme"]
    drawn = DRAWS["convex without hessian", "polytope"](np.random.default_rng(key), EXTREME)
    step = drawn.solve()  # slopes of 7e13, and terms of rows 1e13 times the value
    assert drawn.doubt is not None and drawn.doubt(step) <= drawn.allowed
    x = drawn.arguments[-1].project(step.x * (1.0 + 1e-9))
    assert drawn.doubt(step._replace(x=x)) > drawn.allowed


def test_a_search_finds_what_no_bound_from_below_proves() -> None:
    drawn = DRAWS["kinked stack", "box"](np.random.default_rng(3), EXTREME)
    step, (lower, upper) = drawn.solve(), (drawn.arguments[-1].lower, drawn.arguments[-1].upper)
    assert drawn.doubt is not None and drawn.doubt(step) <= drawn.allowed
    aside = 0.99 * step.x + 0.005 * (lower + upper)
    assert drawn.doubt(step._replace(x=aside)) > drawn.allowed


def test_a_cost_in_small_units_is_followed_as_far_as_kinked_rows_let_it() -> None:
    # A pyramid of values like 1e6; all that the cost can gain in it is 1e-15.
    g = coldq.Convex(
        lambda x: 4e11 * (np.abs(x).sum(-1, keepdims=True) - 1.5e-6),
        lambda x: 4e11 * np.sign(x)[None],
        n_constraints=1,
    )
    X, gradient = coldq.Box(-1e-6, 1e-6, dim=2), np.array([-1e-10, 3e-10])
    step = coldq.penalised_step(np.zeros(2), gradient, 1e-8, 4.0, g, X)
    np.testing.assert_allclose(step.x, [0.5e-6, -1e-6], rtol=1e-6)


def two_balls(unit: float, apart: float, functions: bool) -> Any:
    """Two enforced rows: within `unit` of the origin, and of a point so many units from it."""
    far = np.array([apart * unit, 0.0, 0.0])
    P = np.broadcast_to(2.0 * np.eye(3), (2, 3, 3))
    q, r = np.array([0.0 * far, -2.0 * far]), np.array([unit**2, unit**2 - far @ far])
    if functions:
        return coldq.Convex(
            lambda x: (0.5 * (P @ x) + q) @ x - r, lambda x: P @ x + q, lambda x: P, 2
        )
    return coldq.QuadraticConstraint(P, q, r)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("functions", [False, True])
def test_enforced_curved_rows_conflict_exactly_where_they_do(unit: float, functions: bool) -> None:
    X = coldq.Box(-5.0 * unit, 5.0 * unit, dim=3)
    center = np.array([0.5, 3.0, 0.0]) * unit
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step(center, np.zeros(3), 1.0, INF, two_balls(unit, 2.01, functions), X)
    # In the common lens the nearest point is on its rim: at half of the distance, sqrt(1 - 0.95^2)
    # above.
    step = coldq.penalised_step(
        center + np.array([0.45 * unit, 0.0, 0.0]), np.zeros(3), 1.0, INF,
        two_balls(unit, 1.9, functions), X,
    )  # fmt: skip
    rim = np.array([0.95, np.sqrt(1.0 - 0.95**2), 0.0]) * unit
    np.testing.assert_allclose(step.x, rim, rtol=1e-8, atol=1e-8 * unit)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("share", [0.3, 0.999, 1.5, 1e6])
def test_a_priced_distance_shrinks_the_way_to_its_kink(unit: float, share: float) -> None:
    """min |x - y|^2 + w |x - c| is at c plus the way from there to y, shortened by w / 2."""
    rng = np.random.default_rng(4)
    c, way = unit * rng.standard_normal(4), unit * rng.standard_normal(4)
    y, length = c + way, float(np.linalg.norm(way))

    def slope(x: np.ndarray) -> np.ndarray:
        size = np.linalg.norm(x - c)
        return (x - c)[None] / size if size > 0.0 else np.zeros((1, 4))

    g = coldq.Convex(lambda x: np.linalg.norm(x - c)[None], slope, None, 1)
    weight, X = 2.0 * length * share, coldq.Box(-9.0 * unit, 9.0 * unit, dim=4)
    step = coldq.penalised_step(y, np.zeros(4), 1.0, weight, g, X)
    exact = c + way * max(0.0, 1.0 - share)
    value = (np.square(step.x - y).sum() + weight * np.linalg.norm(step.x - c)) / length**2
    least = (np.square(exact - y).sum() + weight * np.linalg.norm(exact - c)) / length**2
    assert value <= least + 1e-6 * max(1.0, least)


def test_twenty_quadratic_rows_at_once_are_what_clarabel_makes_of_them() -> None:
    rng = np.random.default_rng(8)
    p = n = 20
    for k in range(4):
        root = rng.standard_normal((n, 3, p))
        P, q, at = np.einsum("nki,nkj->nij", root, root), rng.standard_normal((n, p)), rng.random(p)
        r = 0.5 * (P @ at) @ at + q @ at - rng.random(n)
        weights = 10.0 ** rng.uniform(-1.0, 2.0, n)
        X = coldq.Simplex(p, total=float(at.sum())) if k % 2 else coldq.Box(0.0, 1.0, dim=p)
        center, gradient = at + rng.standard_normal(p), 10.0 * rng.standard_normal(p)
        step = coldq.penalised_step(
            center, gradient, 1.0, weights, coldq.QuadraticConstraint(P, q, r), X
        )
        x = cp.Variable(p)
        rows = [0.5 * cp.quad_form(x, cp.psd_wrap(P[j])) + q[j] @ x - r[j] for j in range(n)]
        hold = [x >= 0.0, cp.sum(x) == at.sum()] if k % 2 else [x >= 0.0, x <= 1.0]
        cost = gradient @ (x - center) + cp.sum_squares(x - center)
        cost = cost + sum(w * cp.pos(g) for w, g in zip(weights, rows, strict=True))
        cp.Problem(cp.Minimize(cost), hold).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(step.x, x.value, atol=2e-4)
