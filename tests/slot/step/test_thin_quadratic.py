"""Quadratic rows without matrices: against CVXPY, closed forms and more digits, at every scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coldq
from coldq.slot.step.reference import reference_step

INF, LONG = np.inf, np.longdouble
Q = coldq.QuadraticConstraint


def objective(x: np.ndarray, arguments: tuple[Any, ...]) -> float:
    center, gradient, alpha, weights, g, _ = arguments
    move = x - center
    return float(gradient @ move + alpha * move @ move + weights @ np.maximum(g.value(x), 0.0))


def some_rows(rng: np.random.Generator, n: int, p: int) -> dict[str, Any]:
    d = rng.uniform(0.0, 2.0, (n, p)) * (rng.random((n, p)) < 0.8)
    q, r = rng.standard_normal((n, p)), rng.uniform(-0.5, 1.0, n)
    return {
        "ball": Q.ball(rng.standard_normal((n, p)), rng.uniform(0.1, 2.0, n)),
        "diagonal": Q.diagonal(d, q, r),
        "low rank": Q.low_rank(d, rng.standard_normal((n, p, 2)), q, r),
    }


DOMAINS: dict[str, Any] = {
    "box": coldq.Box(-1.0, 1.0, dim=4),
    "whole space": coldq.Box(-INF, INF, dim=4),
    "ball": coldq.Ball([0.2, 0.0, -0.1, 0.3], 1.5),
    "simplex": coldq.Simplex(4),
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", ["ball", "diagonal", "low rank"])
@pytest.mark.parametrize("n", [1, 3])
def test_a_step_is_as_good_as_that_of_a_general_solver(kind: str, domain: str, n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(4):
        g, X = some_rows(rng, n, 4)[kind], DOMAINS[domain]
        weights = rng.choice([0.0, 0.3, 2.0, 50.0], n)
        arguments = X.project(rng.standard_normal(4)), rng.standard_normal(4), 0.8, weights, g, X
        step, (other, _) = coldq.penalised_step(*arguments), reference_step(*arguments)
        assert objective(step.x, arguments) <= objective(other, arguments) + 1e-7
        np.testing.assert_allclose(step.x, other, atol=2e-4)
        assert step.residual <= 1e-8


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e4, 1e9])
def test_a_ball_shaped_row_in_the_whole_space_has_a_closed_form(scale: float) -> None:
    rng = np.random.default_rng(0)
    for away, radius in ((0.0, 1.0), (30.0, 0.1), (1e6, 2.0)):
        c, alpha = scale * (away + rng.standard_normal(50)), 0.7
        x0, gradient = c + 3.0 * scale * rng.standard_normal(50), scale * rng.standard_normal(50)
        g, X = Q.ball(c[None], [scale * radius]), coldq.Box(-INF, INF, dim=50)
        y = x0.astype(LONG) - gradient.astype(LONG) / (2 * LONG(alpha)) - c
        length = np.sqrt((y * y).sum())
        for weight in (0.0, 0.05, 1e12, INF):
            # y shrinks by 1 + weight / alpha, but not to within the ball.
            share = max(LONG(scale * radius) / length, 1.0 / (1.0 + LONG(weight) / LONG(alpha)))
            step = coldq.penalised_step(x0, gradient, alpha, weight, g, X)
            off = np.abs(step.x - (c + share * y)).max()
            assert off <= 1e-12 * scale + 4e-16 * np.abs(c).max()
            assert step.residual <= 1e-8
            if share > 1.0 / (1.0 + weight / alpha):
                multiplier = float(alpha * (1.0 / share - 1.0))
                assert step.multipliers[0] == pytest.approx(multiplier, rel=1e-9)
            else:
                assert step.multipliers[0] == weight


def root_in_more_digits(
    y: np.ndarray, d: np.ndarray, q: np.ndarray, r: float, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """x where the row holds with equality, by bisection in long double."""

    def x_at(mu: Any) -> np.ndarray:
        return np.clip((y - mu * q) / (1.0 + mu * d), low, high)

    def g(mu: Any) -> Any:
        x = x_at(mu)
        return ((0.5 * d * x + q) * x).sum() - r

    left, right = LONG(0.0), LONG(1.0)
    while g(right) > 0.0:
        right *= 4.0
    for _ in range(200):
        middle = 0.5 * (left + right)
        left, right = (middle, right) if g(middle) > 0.0 else (left, middle)
    return x_at(right)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_one_diagonal_row_on_a_box_agrees_with_bisection_in_more_digits(scale: float) -> None:
    rng = np.random.default_rng(1)
    for p in (1, 3, 40, 3000):
        d = 10.0 ** rng.uniform(-3, 3, p) * (rng.random(p) < 0.8)
        q = scale * rng.standard_normal(p)
        low, high = -scale * rng.random(p), scale * rng.random(p)
        high[rng.random(p) < 0.1] = 0.0
        x0, gradient = scale * 3.0 * rng.standard_normal(p), scale * rng.standard_normal(p)
        y = x0.astype(LONG) - gradient.astype(LONG)
        at = np.clip(y, low, high)
        top = float(((0.5 * d * at + q) * at).sum())
        turn = np.where(d > 0.0, -q / np.where(d > 0.0, d, 1.0), np.sign(-q) * INF)
        bottom = np.clip(turn, low, high)
        least = float(((0.5 * d * bottom + q) * bottom).sum())
        for part in (0.5, 1e-3, 0.999):
            r = least + part * (top - least)
            g, X = Q.diagonal(d[None], q[None], [r]), coldq.Box(low, high)
            step = coldq.penalised_step(x0, gradient, 0.5, INF, g, X)
            right = root_in_more_digits(y, d, q, r, low, high)
            np.testing.assert_allclose(step.x, right.astype(float), rtol=0.0, atol=1e-8 * scale)
            assert step.residual <= 1e-8


def test_what_is_degenerate_is_solved() -> None:
    rng = np.random.default_rng(2)
    p = 6
    x0, gradient, X = rng.standard_normal(p), rng.standard_normal(p), coldq.Box(-1.0, 1.0, dim=p)
    free = np.clip(x0 - 0.5 * gradient, -1.0, 1.0)

    # A row that is never violated, or weighs nothing, is not there.
    for g, weight in (
        (Q.ball(np.zeros((1, p)), [9.0]), INF),
        (Q.ball(np.ones((1, p)), [0.1]), 0.0),
    ):
        step = coldq.penalised_step(x0, gradient, 1.0, weight, g, X)
        np.testing.assert_array_equal(step.x, free)
        assert step.multipliers[0] == 0.0

    # Without curvature it is affine.
    a = rng.standard_normal((1, p))
    for weight in (0.2, 1e3):
        flat = Q.diagonal(np.zeros((1, p)), a, [-1.0]), coldq.Affine(a, [-1.0])
        one, other = (coldq.penalised_step(x0, gradient, 1.0, weight, g, X) for g in flat)
        np.testing.assert_allclose(one.x, other.x, atol=1e-12)
        np.testing.assert_allclose(one.multipliers, other.multipliers, rtol=1e-10)

    # A row that no point of the box meets has all its weight; hard, it is an error.
    far = Q.ball(np.full((1, p), 5.0), [1.0])
    step = coldq.penalised_step(x0, gradient, 1.0, 3.0, far, X)
    np.testing.assert_allclose(step.x, np.clip((x0 - 0.5 * gradient + 15.0) / 4.0, -1.0, 1.0))
    assert step.multipliers[0] == 3.0
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step(x0, gradient, 1.0, INF, far, X)

    # A radius of zero leaves the center; a box of one point that point.
    c = rng.uniform(-0.5, 0.5, (1, p))
    step = coldq.penalised_step(x0, gradient, 1.0, INF, Q.ball(c, [0.0]), X)
    np.testing.assert_allclose(step.x, c[0], atol=1e-12)
    one = coldq.Box(0.25, 0.25, dim=p)
    assert (coldq.penalised_step(x0, gradient, 1.0, 1e9, Q.ball(c, [0.1]), one).x == 0.25).all()

    # Bounds that are active everywhere, until the multiplier is large.
    step = coldq.penalised_step(np.full(p, 1e6), 0.0 * x0, 1.0, INF, Q.ball(0.0 * c, [1.0]), X)
    np.testing.assert_allclose(step.x, 1.0 / np.sqrt(p), rtol=1e-12)
    step = coldq.penalised_step(
        np.full(p, 1e6), 0.0 * x0, 1.0, INF, Q.diagonal(0.0 * c, 1.0 + 0.0 * c, [0.0]), X
    )
    np.testing.assert_allclose(step.x, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["ball", "diagonal", "low rank"])
@pytest.mark.parametrize("domain", ["box", "ball"])
@pytest.mark.parametrize("n", [1, 3])
def test_a_batch_has_the_bits_of_one_by_one(kind: str, domain: str, n: int) -> None:
    rng = np.random.default_rng(3)
    X, B = DOMAINS[domain], 7
    rows = [some_rows(rng, n, 4)[kind] for _ in range(B)]
    fields = [np.stack([getattr(g, name) for g in rows]) for name in type(rows[0]).cores]
    batch = type(rows[0])(*fields)
    x0, gradient = rng.standard_normal((B, 4)), rng.standard_normal((B, 4))
    weights, alpha = rng.choice([0.1, 5.0, 1e6], (B, n)), rng.uniform(0.1, 3.0, B)
    whole = coldq.penalised_step(x0, gradient, alpha, weights, batch, X)
    for k, g in enumerate(rows):
        assert batch.member((k,), (B,)) == g
        one = coldq.penalised_step(x0[k], gradient[k], alpha[k], weights[k], g, X)
        for part in ("x", "multipliers", "residual"):
            np.testing.assert_array_equal(getattr(one, part), getattr(whole, part)[k])


def kkt_off(step: coldq.Step, arguments: tuple[Any, ...]) -> float:
    """How far x is from minimising the Lagrangian over a box, relative to the terms of its slope;
    and how far rows between their bounds are from zero."""
    center, gradient, alpha, weights, g, X = arguments
    pull = (g.jacobian(step.x).T * step.multipliers).sum(axis=1)
    slope = gradient + 2.0 * alpha * (step.x - center) + pull
    way = np.abs(step.x - np.clip(step.x - slope / (2.0 * alpha), X.lower, X.upper))
    off = float((way / (1.0 + np.abs(center) + np.abs(pull))).max())
    value, lam = g.value(step.x), step.multipliers
    wrong = ((lam > 0.0) & (value < 0.0)) | ((lam < weights) & (value > 0.0))
    assert ((lam >= 0.0) & (lam <= weights)).all()
    return max(off, float(np.where(wrong, np.abs(value), 0.0).max() / X.dim))


@pytest.mark.parametrize("kind", ["ball", "diagonal", "low rank", "stack"])
def test_a_matrix_would_not_fit_into_memory(kind: str) -> None:
    rng = np.random.default_rng(4)
    p, n = 100_000, 2
    spot = rng.uniform(-1.0, 1.0, p)
    rows = some_rows(rng, n, p)
    if kind == "stack":
        part = rows["ball"]
        A = rng.standard_normal((2, p))
        g: Any = coldq.Stacked(part.tightened(part.value(spot)), coldq.Affine(A, A @ spot))
    else:
        g = rows[kind].tightened(-rows[kind].value(spot))
    X = coldq.Box(-1.0, 1.0, dim=p)
    weights = np.full(g.n_constraints, 1e4)
    arguments = 2.0 * rng.standard_normal(p), rng.standard_normal(p), 1.0, weights, g, X
    step = coldq.penalised_step(*arguments)
    assert step.residual <= 1e-8
    assert kkt_off(step, arguments) <= 1e-9
    if kind != "stack":
        with pytest.raises(coldq.InvalidInput, match="needs their matrices"):
            _ = g.P


def test_a_ball_far_away_keeps_its_digits() -> None:
    c = np.array([[1e8, -1e8, 3e7]])
    g = Q.ball(c, [1.0])
    at = c[0] + [0.0, 0.0, 1.5]
    assert g.value(at) == [1.25]
    X = coldq.Box(-INF, INF, dim=3)
    x = coldq.penalised_step(at, np.zeros(3), 1.0, INF, g, X).x
    np.testing.assert_allclose(x - c[0], [0.0, 0.0, 1.0], atol=1e-7)


def test_forms_that_do_not_fit_are_told_in_a_sentence() -> None:
    with pytest.raises(coldq.InvalidInput, match="need radii of shape"):
        Q.ball([[0.0, 0.0]], [1.0, 2.0])
    with pytest.raises(coldq.InvalidInput, match="not negative"):
        Q.ball([[0.0, 0.0]], [-1.0])
    with pytest.raises(coldq.InvalidInput, match=r"needs F of shape \(..., 1, 2, k\)"):
        Q.low_rank([[1.0, 1.0]], [[[1.0], [1.0], [1.0]]], [[0.0, 0.0]], [1.0])
    with pytest.raises(coldq.InvalidInput, match="d must not be negative"):
        Q.low_rank([[1.0, -1.0]], [[[1.0], [1.0]]], [[0.0, 0.0]], [1.0])
    X = coldq.Box(0.0, 1.0, dim=2)
    for g in (Q.ball([[0.0, 0.0]], [1.0]), Q.ball([[0.0, 0.0], [1.0, 1.0]], [1.0, 1.0])):
        with pytest.raises(coldq.InvalidInput, match="convex one way only"):
            coldq.penalised_step([0.0, 0.0], [0.0, 0.0], 1.0, 1.0, g, X, multiplier_lower=-1.0)


def test_a_factor_model_s_largest_value_is_a_bound() -> None:
    rng = np.random.default_rng(5)
    for X in (coldq.Box(-1.0, 2.0, dim=4), coldq.Ball([0.5, 0.0, 0.0, 1.0], 2.0)):
        rows = some_rows(rng, 2, 4)
        other = some_rows(rng, 2, 4)
        for kind, g in rows.items():
            bound, differs = g.largest(X)[0], g.max_difference(other[kind], X)[0]
            for x in X.project(5.0 * rng.standard_normal((200, 4))):
                assert np.abs(g.value(x)).max() <= bound * (1.0 + 1e-12)
                apart = np.linalg.norm(g.value(x) - other[kind].value(x))
                assert apart <= differs * (1.0 + 1e-12)


def test_multipliers_that_run_away_prove_that_a_hard_row_is_not_met() -> None:
    ball = coldq.QuadraticConstraint.ball([[-129.0]], [132.5])
    hard = coldq.QuadraticConstraint.low_rank([[2.4]], [[[20.0]]], [[3.6]], [-5.5e-6])
    rows, point = coldq.Stacked(ball, hard), coldq.Box(0.0, [0.0])
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step([0.0], [0.2], 0.0167, [1.0, np.inf], rows, point)
