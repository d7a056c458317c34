"""Measures, against their definitions written out."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.constraints import difference

PROBLEM = coldq.problems.TimeVarying(horizon=60, domain=coldq.Box(0.0, 2.0, dim=3), n_constraints=2)
TRACE = coldq.simulate(coldq.COLDQ.for_problem(PROBLEM), PROBLEM, seeds=range(4))


def test_loss_and_violations_are_the_sums_of_their_definitions() -> None:
    for s in range(4):
        hard = soft = euclidean = 0.0
        for n in range(2):
            hard += sum(max(g, 0.0) for g in TRACE.constraint[s, :, n])
            soft += max(sum(TRACE.constraint[s, :, n]), 0.0)
        for g in TRACE.constraint[s]:
            euclidean += np.sqrt(sum(max(v, 0.0) ** 2 for v in g))
        np.testing.assert_allclose(coldq.accumulated_loss(TRACE)[s], sum(TRACE.loss[s]))
        np.testing.assert_allclose(coldq.hard_violation(TRACE)[s], hard)
        np.testing.assert_allclose(coldq.soft_violation(TRACE)[s], soft, atol=1e-12)
        np.testing.assert_allclose(coldq.hard_violation(TRACE, norm=2)[s], euclidean)


def test_running_totals_end_at_the_totals() -> None:
    for measure in (coldq.accumulated_loss, coldq.hard_violation, coldq.soft_violation,
                    coldq.dynamic_regret, coldq.static_regret):  # fmt: skip
        running = measure(TRACE, cumulative=True)
        assert running.shape == (4, 60)
        np.testing.assert_array_equal(running[:, -1], measure(TRACE))


def test_soft_violation_never_exceeds_hard_violation() -> None:
    for norm in (1, 2, np.inf):
        soft = coldq.soft_violation(TRACE, norm=norm, cumulative=True)
        assert (soft <= coldq.hard_violation(TRACE, norm=norm, cumulative=True) + 1e-12).all()
    for norm in (np.int64(2), np.float32(2.0)):
        assert (coldq.hard_violation(TRACE, norm=norm) == coldq.hard_violation(TRACE, norm=2)).all()  # type: ignore[arg-type]
    for norm in (0.5, True, "2", np.nan):
        with pytest.raises(coldq.InvalidInput, match="norm must be a number, at least 1"):
            coldq.hard_violation(TRACE, norm=norm)  # type: ignore[arg-type]


def test_dynamic_regret_is_never_below_static_regret() -> None:
    # The per-slot best decision has at most the loss of any decision feasible in every slot.
    assert (coldq.dynamic_regret(TRACE) >= coldq.static_regret(TRACE) - 1e-7).all()


def test_a_comparator_of_another_run_is_refused() -> None:
    dynamic, static = (
        find(PROBLEM, range(4)) for find in (coldq.dynamic_comparator, coldq.static_comparator)
    )
    np.testing.assert_array_equal(coldq.dynamic_regret(TRACE, dynamic), coldq.dynamic_regret(TRACE))
    np.testing.assert_array_equal(coldq.static_regret(TRACE, static), coldq.static_regret(TRACE))
    one, others = (coldq.dynamic_comparator(PROBLEM, seeds) for seeds in ([0], [1, 2, 3, 4]))
    for measure, wrong, words in (
        (coldq.dynamic_regret, static, "but got a static one"),
        (coldq.static_regret, dynamic, "but got a dynamic one"),
        (coldq.dynamic_regret, one, r"of shape \(1, 60\)"),
        (coldq.dynamic_regret, others, r"with seeds \(1, 2, 3, 4\)"),
    ):
        with pytest.raises(coldq.InvalidInput, match=words):
            measure(TRACE, wrong)
    # One of your own says nothing of itself, and need only fit.
    own = coldq.Comparator(dynamic.x, np.zeros((4, 60)), dynamic.feasible)
    np.testing.assert_array_equal(coldq.static_regret(TRACE, own), coldq.accumulated_loss(TRACE))


def test_a_comparator_of_another_problem_is_refused() -> None:
    again = replace(PROBLEM)
    wider = replace(PROBLEM, domain=coldq.Box(-2.0, 2.0, dim=3))
    for find, regret in (
        (coldq.dynamic_comparator, coldq.dynamic_regret),
        (coldq.static_comparator, coldq.static_regret),
    ):
        np.testing.assert_array_equal(regret(TRACE, find(again, range(4))), regret(TRACE))
        with pytest.raises(coldq.InvalidInput, match="the comparator of its problem"):
            regret(TRACE, find(wider, range(4)))


@dataclass(frozen=True)
class Priced:
    """A problem of one's own that compares by content."""

    price: Any
    horizon = 5
    n_constraints = 0
    domain = coldq.Box(0.0, 1.0, dim=1)

    def start(self, seeds):
        return self

    def reveal(self, t, x):
        return coldq.Feedback(coldq.Linear([np.sum(self.price)]), None, slot=t)


def test_problems_of_ones_own_are_told_apart_where_they_compare_by_content() -> None:
    one, again, other = Priced(1.0), Priced(1.0), Priced(-5.0)
    trace = coldq.simulate(coldq.COLDQ.for_problem(one), one, seeds=[0])
    theirs = coldq.simulate(coldq.COLDQ.for_problem(other), other, seeds=[0])
    np.testing.assert_array_equal(
        coldq.dynamic_regret(trace, coldq.dynamic_comparator(again, [0])),
        coldq.dynamic_regret(trace),
    )
    with pytest.raises(coldq.InvalidInput, match="the comparator of its problem"):
        coldq.dynamic_regret(trace, coldq.dynamic_comparator(other, [0]))
    with pytest.raises(coldq.InvalidInput, match="traces must be of one problem"):
        coldq.plot_compare([trace, theirs])
    several = Priced(np.ones(2))  # whose comparison is no truth value
    trace = coldq.simulate(coldq.COLDQ.for_problem(several), several, seeds=[0])
    best = coldq.dynamic_comparator(Priced(np.ones(2)), [0])
    np.testing.assert_array_equal(coldq.dynamic_regret(trace, best), coldq.dynamic_regret(trace))


def test_a_comparator_of_another_run_against_an_adversary_is_refused() -> None:
    adversary = coldq.problems.Adversary(greed=0.7, drift=0.3, horizon=30)
    one, other = (
        coldq.simulate(kind.for_problem(adversary), adversary, seeds=[0, 1])
        for kind in (coldq.COLDQ, coldq.OGD)
    )
    for find, regret in (
        (coldq.dynamic_comparator, coldq.dynamic_regret),
        (coldq.static_comparator, coldq.static_regret),
    ):
        best = find(adversary, [0, 1], one.decisions)
        np.testing.assert_array_equal(regret(one, best), regret(one))
        with pytest.raises(coldq.InvalidInput, match="needs its own comparator, but in slot"):
            regret(other, best)


class Waves:
    """A problem of a user's own, whose functions keep numbers of their own."""

    domain, horizon, n_constraints = coldq.Box(-1.0, 1.0, dim=2), 6, 1

    def start(self, seeds):
        return type(self)()

    def reveal(self, t, x):
        wave = np.array([np.sin(t), np.cos(t)])
        return coldq.Feedback(
            coldq.Smooth(lambda x: ((x - wave) ** 2).sum(-1), lambda x: 2.0 * (x - wave)),
            coldq.Affine([[1.0, 1.0]], [0.5 + 0.1 * np.sin(t)]),
        )


class LateWaves(Waves):
    """The same, but that its losses look at the latest wave."""

    def reveal(self, t, x):
        self.wave, revealed = np.array([np.sin(t), np.cos(t)]), super().reveal(t, x)
        late = coldq.Smooth(
            lambda x: ((x - self.wave) ** 2).sum(-1), lambda x: 2.0 * (x - self.wave)
        )
        return coldq.Feedback(late, revealed.constraint)


class OneRow:
    """A constraint of a user's own."""

    limit = 0.5

    def value(self, x):
        return np.sum(x, axis=-1, keepdims=True) - self.limit

    def jacobian(self, x):
        return np.ones((*np.shape(x)[:-1], 1, 2))


class OneObject(Waves):
    """The same constraint in all slots, whose limit is written anew in each."""

    def __init__(self) -> None:
        self.row = OneRow()

    def reveal(self, t, x):
        self.row.limit = 0.5 + 0.1 * np.sin(t)
        return coldq.Feedback(coldq.Linear([1.0, 0.0]), self.row)


def test_functions_that_change_later_are_refused_where_slots_are_looked_at_again() -> None:
    runs = {}
    for problem in (Waves(), LateWaves()):
        learner = coldq.COLDQ.for_problem(problem)
        runs[type(problem)] = coldq.simulate(learner, problem, seeds=[0])
    kept, late = runs[Waves], runs[LateWaves]
    np.testing.assert_array_equal(kept.loss, late.loss)
    np.testing.assert_allclose(coldq.dynamic_regret(kept), coldq.dynamic_regret(late))
    assert np.isfinite(coldq.static_regret(kept)).all()
    words = r"the loss that LateWaves revealed in slot \d is another since slot \d was revealed"
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.static_regret(late)
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.simulate(late.learner, late.problem, seeds=[0], delay=1)
    with pytest.raises(coldq.InvalidInput, match="the constraint that OneObject revealed in slot"):
        coldq.constraint_variation(OneObject(), [0])


class Unseeded:
    """A problem of a user's own that draws anew each time it starts."""

    domain, horizon, n_constraints = coldq.Box(-1.0, 1.0, dim=2), 5, 1

    def __init__(self, moving: str) -> None:
        self.rng, self.moving = np.random.default_rng(0), moving

    def start(self, seeds):
        return self

    def reveal(self, t, x):
        c, b = (
            self.rng.random() if self.moving == name else 0.5 for name in ("loss", "constraint")
        )
        return coldq.Feedback(coldq.Linear([c, 1.0]), coldq.Affine([[1.0, 1.0]], [b]))


@pytest.mark.parametrize("moving", ["loss", "constraint"])
def test_a_problem_that_does_not_repeat_itself_is_noticed(moving: str) -> None:
    for kind, noticed in ((moving, True), ("nothing", False)):
        problem = Unseeded(kind)
        learner = coldq.COLDQ(problem.domain, 5)
        trace = coldq.simulate(learner, problem, [0, 1], keep=["decisions"])
        for measure in (coldq.dynamic_regret, coldq.static_regret, coldq.bound_report):
            if not noticed:
                assert measure(trace) is not None
                continue
            with pytest.raises(coldq.InvalidInput, match=f"reveals another {moving} in slot"):
                measure(trace)


def test_path_length_is_the_sum_of_moves() -> None:
    best = coldq.dynamic_comparator(PROBLEM, range(4))
    moves = [sum(np.linalg.norm(b - a) for a, b in pairwise(x)) for x in best.x]
    np.testing.assert_allclose(coldq.path_length(best), moves)
    assert (coldq.path_length(coldq.static_comparator(PROBLEM, range(4))) == 0.0).all()


def test_constraint_variation_is_the_maximum_over_all_corners() -> None:
    variation = coldq.constraint_variation(PROBLEM, range(2))
    assert variation.exact
    stream = PROBLEM.start(range(2))
    rows = [stream.reveal(t, None).constraint for t in range(1, 61)]  # type: ignore[arg-type]
    corners = np.array(list(product([0.0, 2.0], repeat=3)))
    for s in range(2):
        total = 0.0
        for old, new in pairwise(rows):
            A, b = new.A[s] - old.A[s], new.b[s] - old.b[s]  # type: ignore[attr-defined]
            total += max(np.linalg.norm(A @ x - b) for x in corners)
        np.testing.assert_allclose(variation.total[s], total)


def test_constraint_variation_in_many_coordinates_is_a_safe_bound_and_says_so() -> None:
    rng, box = np.random.default_rng(0), coldq.Box(-1.0, 3.0, dim=14)
    one = coldq.Affine(rng.standard_normal((2, 14)), rng.standard_normal(2))
    two = coldq.Affine(rng.standard_normal((2, 14)), rng.standard_normal(2))
    bound, exact = two.max_difference(one, box)
    x = np.where(rng.random((20000, 14)) < 0.5, -1.0, 3.0)
    assert not exact
    assert bound >= np.linalg.norm(two.value(x) - one.value(x), axis=-1).max()
    row, exact = coldq.Affine(two.A[:1], two.b[:1]).max_difference(
        coldq.Affine(one.A[:1], one.b[:1]), box
    )
    a, c = (two.A - one.A)[0], (two.b - one.b)[0]
    top = np.where(a > 0.0, 3.0 * a, -a).sum() - c
    bottom = np.where(a > 0.0, -a, 3.0 * a).sum() - c
    assert exact
    np.testing.assert_allclose(row, max(abs(top), abs(bottom)))


def some_constraint(kind: str, rng: np.random.Generator):
    H, A, b = rng.standard_normal((2, 3, 3)), rng.standard_normal((2, 4, 3)), rng.standard_normal(2)
    match kind:
        case "affine":
            return coldq.Affine(A[:, 0], b)
        case "sparse":
            return coldq.SparseAffine(sparse.csr_array(A[:, 0] * (A[:, 1] > 0.0)), b)
        case "quadratic":
            return coldq.QuadraticConstraint(H @ np.swapaxes(H, -1, -2), A[:, 0], b)
        case "pieces":
            return coldq.MaxAffine(A, rng.standard_normal((2, 4)))
    return coldq.Stacked(some_constraint("quadratic", rng), some_constraint("sparse", rng))


SHAPES = (
    coldq.Box(-1.0, [0.5, 1.0, 2.0]),
    coldq.Simplex(3, total=2.0, cap=1.2),
    coldq.Ball([0.5, 0.0, -1.0], 1.5),
    coldq.Product(coldq.Simplex(2), coldq.Box(0.0, 2.0, dim=1)),
    coldq.Polytope([[1.0, 1.0, 1.0]], [2.0], lower=0.0),
)


@pytest.mark.parametrize("kind", ["affine", "sparse", "quadratic", "pieces", "stacked"])
def test_bounds_on_constraints_and_their_variation_hold_at_every_point(kind: str) -> None:
    rng = np.random.default_rng(5)
    for X in SHAPES:
        x = X.project(4.0 * rng.standard_normal((2000, 3)))
        for _ in range(5):
            g, h = some_constraint(kind, rng), some_constraint(kind, rng)
            largest_value = np.abs(g.value(x)).max()
            moved = np.linalg.norm(g.value(x) - h.value(x), axis=-1).max()
            for seen, (bound, exact) in (
                (largest_value, g.largest(X)),
                (moved, g.max_difference(h, X)),
            ):
                assert seen <= bound * (1.0 + 1e-9)
                # An exact one is nearly reached, a bound is not absurd.
                assert bound <= (1.1 if exact else 8.0) * seen
            assert difference(copy(g), g, X) == (0.0, True)
    one, two = (some_constraint("affine", rng) for _ in range(2))
    dense = two.max_difference(one, SHAPES[0])
    thin = [coldq.SparseAffine(sparse.csr_array(g.A), g.b) for g in (one, two)]
    np.testing.assert_allclose(thin[1].max_difference(thin[0], SHAPES[0]), dense)
    np.testing.assert_allclose(thin[1].largest(SHAPES[0]), two.largest(SHAPES[0]))


def test_capacity_variation_is_exact() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        s, r, v, w = rng.uniform(0.1, 4.0, (4, 2))
        one, two = coldq.LogCapacity(1.0, s, r), coldq.LogCapacity(2.5, v, w)
        value, exact = two.max_difference(one, coldq.Box(0.0, 5.0, dim=2))
        grid = np.linspace(0.0, 5.0, 401)
        x = np.stack(np.meshgrid(grid, grid), axis=-1)
        sampled = np.abs(two.value(x) - one.value(x)).max()
        assert exact
        assert sampled <= value + 1e-12
        np.testing.assert_allclose(value, sampled, rtol=1e-3)


def test_exponents_of_known_growth() -> None:
    t = np.arange(1.0, 4001.0)
    np.testing.assert_allclose(coldq.growth_exponent(np.stack([t, 7.0 * t**0.3])), [1.0, 0.3])
    assert coldq.growth_exponent(np.zeros(100)) == 0.0
    assert coldq.growth_exponent(np.full(100, 3.0)) == pytest.approx(0.0)
    fixed = coldq.constraint_variation(coldq.problems.OnlineLinear(horizon=30), [0])
    assert coldq.growth_exponent(fixed.cumulative) == 0.0
