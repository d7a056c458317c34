"""OnePoint and TwoPoint: what they estimate, where they ask, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.card import Rate
from coldq.slot.domains.interior import inside_of
from coldq.slot.schedules import Power

P = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 3.0]])
Q = np.array([1.0, -2.0, 0.5])
BOX = coldq.Box([-1.0, 0.0, -2.0], [1.0, 2.0, 0.5])
ROWS = coldq.Affine([[1.0, -1.0, 2.0], [0.0, 3.0, 1.0]], [0.5, -0.25])
DOMAINS = [
    BOX,
    coldq.Ball([0.5, 0.0, -0.5], radius=1.0),
    coldq.Simplex(3, total=2.0),
    coldq.Simplex(3, cap=0.5),
    coldq.Product(coldq.Simplex(2), coldq.Box(-1.0, 1.0, dim=1)),
    coldq.Product(coldq.Ball([0.0, 1.0], radius=0.5), coldq.Simplex(1)),
    coldq.Polytope([[1.0, 1.0, 1.0]], [1.0], [-1.0, 0.0, -2.0], 1.0),
    coldq.Polytope([[1.0, 1.0, 0.0]], [1.0], -1.0, 1.0, A_eq=[[1.0, -1.0, 0.5]], b_eq=[0.25]),
    coldq.Box([0.0, 1.0, 0.0], [1.0, 1.0, 2.0]),  # one coordinate cannot move
]
WAYS = [coldq.OnePoint, coldq.TwoPoint]


def played(way: Any, domain: Any, seeds: np.ndarray, delta: float = 0.2, **more: Any) -> Any:
    """A first state for each seed, around OGD with steps so small that nothing is clipped."""
    return way(coldq.OGD(domain, eta=1e-6), delta, seed=seeds, **more)


def slopes(learner: Any, state: Any, loss: Any) -> np.ndarray:
    """What the learner inside saw: its step divided by its length."""
    after = learner.update(state, coldq.Feedback(loss, None))
    return (state.inner.x - after.inner.x) / 1e-6


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_every_point_asked_for_lies_in_the_domain_at_its_distance(way: Any, domain: Any) -> None:
    learner = way(coldq.OGD(domain, eta=3.0), seed=5)
    state, rng = learner.init(0, batch=(4,)), np.random.default_rng(0)
    inside = inside_of(domain)
    for t in range(1, 60):
        assert domain.contains(state.points).all()
        assert state.points[0].tobytes() == state.x.tobytes()
        delta = learner.delta(float(t))
        z = inside.centre + (1.0 - delta / inside.radius) * (state.inner.x - inside.centre)
        apart = np.linalg.norm(state.points[-1] - z, axis=-1)
        np.testing.assert_allclose(apart, delta, rtol=1e-6)
        state = learner.update(state, coldq.Feedback(coldq.Linear(rng.normal(size=(4, 3))), None))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_the_ball_inside_touches_the_boundary_and_no_more(domain: Any) -> None:
    centre, radius, fixed = inside_of(domain)
    rng = np.random.default_rng(1)
    u = rng.normal(size=(20_000, 3))
    u = u - u @ fixed.T @ fixed
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    assert domain.contains(centre + radius * u, 1e-9).all()
    assert not domain.contains(centre + 1.05 * radius * u, 1e-9).all()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_on_a_line_two_directions_give_the_exact_mean(way: Any) -> None:
    # d = 1: u is -1 or 1. Of f = 3 x + x^2 at z, one point: f(z + du) u / d has the mean
    # (f(z + d) - f(z - d)) / 2 d = 3 + 2 z. Two points: the same, as f(z) cancels.
    domain = coldq.Box(-1.0, 3.0, dim=1)
    learner = played(way, domain, np.arange(40), 0.5)
    start = np.full((40, 1), 2.0)
    state = learner.init(0, start=start)
    found = slopes(learner, state, coldq.Quadratic([[2.0]], [3.0]))[:, 0]
    up = learner._directions(state.t)[:, 0] > 0.0
    assert 5 < up.sum() < 35  # both come up
    assert all(np.ptp(found[side]) < 1e-7 for side in (up, ~up))
    shrink = 1.0 - 0.5 / 2.0  # r = 2, c = 1
    z = 1.0 + shrink * (2.0 - 1.0)
    mean = 0.5 * (found[up][0] + found[~up][0])
    np.testing.assert_allclose(mean, shrink * (3.0 + 2.0 * z), rtol=1e-7)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("domain", [BOX, DOMAINS[2], DOMAINS[4]], ids=repr)
def test_estimates_of_a_quadratic_have_its_slope_for_their_mean(way: Any, domain: Any) -> None:
    # The mean of a quadratic over a ball is the quadratic and a constant: no bias, at any delta.
    n = 2_500
    inside = inside_of(domain)
    learner = played(way, domain, np.arange(n), 0.5 * inside.radius)
    away = domain.project(inside.centre + np.array([0.2, -0.1, 0.15]))  # no bound is near
    state = learner.init(0, start=away, batch=(n,))
    found = slopes(learner, state, coldq.Quadratic(P, Q, 1.0))
    z = inside.centre + 0.5 * (state.inner.x[0] - inside.centre)
    slope = 0.5 * (P @ z + Q)
    slope = slope - inside.fixed.T @ (inside.fixed @ slope)
    off = found.mean(axis=0) - slope
    assert (np.abs(off) <= 5.0 * found.std(axis=0) / np.sqrt(n) + 1e-8).all()


def test_the_bias_of_a_cubic_is_that_of_its_mean_over_a_ball() -> None:
    # h = x^3 in the plane: E h(z + dv) = z^3 + 3 z d^2 E v_1^2 = z^3 + 3 z d^2 / 4, so that the
    # estimate's mean is 3 z^2 + 3 d^2 / 4 along the first axis, off by 3 d^2 / 4.
    n, delta = 10_000, 0.5
    box = coldq.Box(-1.0, 1.0, dim=2)
    learner = played(coldq.TwoPoint, box, np.arange(n), delta)
    cubic = coldq.Smooth(lambda x: x[..., 0] ** 3, lambda x: x, vectorised=True)
    found = slopes(learner, learner.init(0, batch=(n,)), cubic)  # z = 0
    expected = 0.5 * np.array([0.75 * delta**2, 0.0])
    error = found.std(axis=0) / np.sqrt(n)
    assert (np.abs(found.mean(axis=0) - expected) <= 5.0 * error).all()
    assert expected[0] > 20.0 * error[0]  # so that a mean of zero would have failed


def test_constraint_values_become_the_slopes_of_its_rows() -> None:
    # The dual variable of Yi2023 moves by the linear model of g that it is given.
    n = 10_000
    inside = coldq.Yi2023(BOX, alpha=1e-9, beta=1e-9, gamma=1.0)
    learner = coldq.TwoPoint(inside, 0.4, seed=np.arange(n))
    state = learner.init(2, start=np.tile([0.5, 1.5, 0.25], (n, 1)))
    after = learner.update(state, coldq.Feedback(coldq.Linear(np.zeros(3)), ROWS))
    g = state.x @ ROWS.A.T - ROWS.b
    np.testing.assert_allclose(after.inner.queue, np.maximum(g, 0.0), atol=1e-6)
    again = learner.update(after, coldq.Feedback(coldq.Linear(np.zeros(3)), ROWS))
    moved = (after.inner.x - again.inner.x) / 1e-9  # J'q, J the estimate
    z, q = after.x[0], after.inner.queue[0]
    slope = (1.0 - 0.4 / learner.radius) * ROWS.A.T @ (q * (ROWS.A @ z > ROWS.b))
    assert (np.abs(moved.mean(axis=0) - slope) <= 5.0 * moved.std(axis=0) / np.sqrt(n)).all()


def test_directions_are_uniform_and_differ_by_slot_and_seed() -> None:
    learner = played(coldq.TwoPoint, BOX, np.arange(10_000))
    u = learner._directions(np.ones(10_000, np.int64))
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1.0, rtol=1e-12)
    assert np.abs(u.mean(axis=0)).max() < 5.0 / np.sqrt(3 * 10_000)
    assert np.abs(u.T @ u / 10_000 - np.eye(3) / 3.0).max() < 0.02
    assert np.abs(u - learner._directions(np.full(10_000, 2))).min() > 0.0


def test_values_measured_are_as_good_as_the_functions() -> None:
    learner = coldq.TwoPoint(coldq.SinhaVaze(BOX, horizon=50, lipschitz=3.0))
    state, loss = learner.init(2, batch=(4,)), coldq.Quadratic(P, Q)
    for _ in range(5):
        x = state.points
        seen = coldq.Feedback(
            coldq.ValueAt(x, loss.value(x)), coldq.ValueAt(x, ROWS.value(x)), slot=int(state.t[0])
        )
        one, other = (learner.update(state, f) for f in (seen, coldq.Feedback(loss, ROWS)))
        assert one.x.tobytes() == other.x.tobytes()
        state = one


def test_runs_of_simulate_are_those_of_each_seed_alone_and_learn() -> None:
    problem = coldq.problems.OnlineQuadratic(horizon=600)
    scale = float(problem.domain.diameter / problem.constants.gradient_bound)
    inside = coldq.OGD(problem.domain, eta=Power(-0.5, scale / problem.domain.dim))
    learner = coldq.TwoPoint(inside)
    trace = coldq.simulate(learner, problem, range(3), progress=False)
    alone = coldq.simulate(learner, problem, [1], progress=False)
    assert alone.loss.tobytes() == trace.loss[1:2].tobytes()
    still = coldq.simulate(coldq.OGD(problem.domain, eta=1e-9), problem, range(3), progress=False)
    assert trace.loss[:, 300:].mean() < 0.8 * still.loss[:, 300:].mean()


def test_only_published_pairs_keep_a_claim() -> None:
    flaxman = coldq.OGD(BOX, eta=Power(-0.75, 0.1))
    agarwal = coldq.OGD(BOX, eta=Power(-0.5, 0.1))
    yi = coldq.Yi2023.from_exponents(BOX, a=1.0, b=1.0, g=1.0)
    other = coldq.Yi2023.from_exponents(BOX, a=1.0, b=1.0, g=1.0, c=0.7)
    assert [claim.static_regret for claim in coldq.OnePoint(flaxman).card.claims] == [Rate(0.75)]
    assert [claim.static_regret for claim in coldq.TwoPoint(agarwal).card.claims] == [Rate(0.5)]
    assert {claim.violation for claim in coldq.TwoPoint(yi).card.claims} == {Rate(0.75)}
    for learner in (
        coldq.OnePoint(agarwal), coldq.TwoPoint(flaxman), coldq.OnePoint(yi), coldq.TwoPoint(other),
        coldq.TwoPoint(agarwal, 0.1), coldq.TwoPoint(coldq.SinhaVaze(BOX, 50, lipschitz=1.0)),
    ):  # fmt: skip
        assert learner.card.claims == ()


def test_a_described_learner_comes_back() -> None:
    learner = coldq.OnePoint(coldq.OGD(BOX, eta=Power(-0.75, 0.1)), seed=[3, 4])
    again = coldq.build(coldq.describe(learner))
    assert again == learner and again.card == learner.card
    assert learner != coldq.OnePoint(coldq.OGD(BOX, eta=Power(-0.75, 0.1)), seed=[3, 5])


UNBOUNDED = coldq.Box(0.0, np.inf, dim=2)
OGD = coldq.OGD(BOX, eta=0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coldq.OnePoint(coldq.COLDQ(BOX, 10)), "COLDQ needs the whole constraint"),
        (lambda: coldq.TwoPoint(coldq.COLDQExpert(BOX, 10)), "gradient elsewhere and the whole"),
        (lambda: coldq.TwoPoint(coldq.OGD), "needs a learner"),
        (lambda: coldq.OnePoint(coldq.OnePoint(OGD)), "needs the values at its points"),
        (lambda: coldq.OnePoint(OGD, 5.0), "delta must stay below 1.0"),
        (lambda: coldq.OnePoint(OGD, seed=-1), "seed must be a whole number"),
        (lambda: coldq.OnePoint(OGD, seed=0.5), "seed must be a whole number"),
        (lambda: coldq.OnePoint(OGD, centre=[9.0, 9.0, 9.0]), "centre must be one point"),
        (lambda: coldq.OnePoint(OGD, radius=2.0), "radius must be at most 1.0"),
        (lambda: coldq.OnePoint(OGD, radius=0.0), "radius must be positive"),
        (lambda: coldq.OnePoint(OGD, centre=[1.0, 1.0, 0.0]), "no ball inside the domain"),
        (lambda: coldq.OnePoint(coldq.OGD(UNBOUNDED, eta=1.0)), "has no middle"),
        (lambda: coldq.OnePoint(coldq.OGD(coldq.Simplex(1), eta=1.0)), "no ball inside"),
        (lambda: coldq.ValueAt([1.0], [1.0]).gradient([1.0]), "OnePoint"),
        (lambda: coldq.ValueAt([1.0], 1.0).jacobian([1.0]), "no slopes"),
        (lambda: coldq.ValueAt([1.0], 1.0).value([2.0]), "known only at"),
        (lambda: coldq.ValueAt([[1.0], [2.0]], [1.0]), "value must have the shape"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(coldq.Error, match=words):
        call()


def test_values_of_wrong_shape_or_none_are_refused_and_change_nothing() -> None:
    learner = coldq.TwoPoint(coldq.SinhaVaze(BOX, 50, lipschitz=1.0))
    state = learner.init(2)
    good = coldq.ValueAt(state.points, [1.0, 2.0])
    for loss, rows, words in [
        (coldq.ValueAt(state.points[:1], [1.0]), ROWS, "known only at"),
        (good, coldq.ValueAt(state.points, np.ones((2, 3))), "3"),
        (coldq.Smooth(lambda x: np.ones(2), lambda x: x), ROWS, "loss"),
    ]:
        with pytest.raises(coldq.Error, match=words):
            learner.update(state, coldq.Feedback(loss, rows))
    with pytest.raises(coldq.InvalidInput, match="leave played out"):
        learner.update(state, coldq.Feedback(good, ROWS), played=state.x)


def test_arrays_with_points_of_another_seed_are_refused() -> None:
    learner, other = (coldq.TwoPoint(OGD, seed=seed) for seed in (1, 2))
    arrays = learner.init(0).to_arrays()
    with pytest.raises(coldq.InvalidInput, match="points must be what follows"):
        other.from_arrays(arrays, strict=False)
