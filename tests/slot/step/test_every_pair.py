"""Every pair of constraint and domain in the table: a share of ``make check SUITE=stress``."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.slot.step import solve
from tests.pairs import KINDS, PAIRS, draw, tolerance_of
from tests.stress import stress_pair

TWO_EACH = [(rows, domain) for rows, kind in KINDS.items() for domain in kind.domains[:2]]


@pytest.mark.parametrize(("rows", "domain"), PAIRS)
def test_every_one_of_many_degenerate_steps_is_solved(rows: str, domain: str) -> None:
    found = stress_pair(rows, domain, len(KINDS[rows].categories) + 1, seed=5)  # and a clash
    assert not found.failed


@pytest.mark.parametrize(
    ("rows", "domain", "k"),
    [
        ("sparse", "polytope", 1718),  # enforced rows tie with the domain's: multipliers of 3e10
        ("sparse", "ball product", 2812),  # the domain's own rows tie: 1e11, and x off by 1e-6
        ("sparse", "ball product", 4106),  # a ball in one coordinate, and rows of very many scales
        ("large", "polytope", 2804),  # rows of very many scales, more than can be met
        ("large", "polytope", 3602),
        ("sparse", "ball", 2111),  # x holds fewer digits than a sphere's normal needs
        ("sparse", "ball", 3474),  # integers: coordinates of which nothing but a last digit is left
        ("smooth stack", "polytope", 2249),  # equalities that depend on each other
        ("convex without hessian", "polytope", 2026),  # x is 0, where rows have no terms
        ("stack with kinks", "polytope", 2026),  # a corner of the domain that more hold than need
        ("affine and quadratic", "product", 3033),  # all rows meet in zero, where x is but rounding
    ],
)
def test_steps_that_once_failed(rows: str, domain: str, k: int) -> None:
    problem, allowed = draw(rows, domain, k), tolerance_of(rows, domain)
    step = problem.solve()
    assert KINDS[rows].judge(problem, step, allowed) <= allowed
    assert np.abs(step.multipliers).max() < 1e5


@pytest.mark.parametrize(("domain", "k"), [("polytope", 3662), ("product", 4223)])
def test_tangents_that_nearly_depend_on_each_other_are_told_to_clash(domain: str, k: int) -> None:
    problem = draw("convex without hessian", domain, k)
    assert problem.clashes
    with pytest.raises(coldq.Infeasible):
        problem.solve()


@pytest.mark.parametrize(("rows", "domain"), [*TWO_EACH, ("large", "polytope"), ("convex", "ball")])
def test_a_batch_gives_the_bits_of_one_by_one(rows: str, domain: str) -> None:
    one = draw(rows, domain, 0, seed=3)
    rng = np.random.default_rng(4)
    alpha = np.array([1e-8, 0.1, 1.0, 10.0, 1e8])
    center = one.center + rng.standard_normal((5, one.center.size))
    gradient = one.gradient + rng.standard_normal(center.shape)
    weights = one.multiplier_upper * 10.0 ** rng.uniform(-1.0, 1.0, (5, one.multiplier_upper.size))
    weights[3] = 0.0
    g, X = one.rows.constraint, one.domain
    together = coldq.penalised_step(center, gradient, alpha, weights, g, X)
    for k in range(5):
        alone = coldq.penalised_step(center[k], gradient[k], alpha[k], weights[k], g, X)
        for name in ("x", "multipliers", "residual"):
            own, shared = (np.asarray(getattr(step, name)) for step in (alone, together))
            assert own.tobytes() == shared[k].tobytes()


@pytest.mark.parametrize(("rows", "domain"), [*PAIRS, ("one ball", "box"), ("one diagonal", "box")])
def test_a_learners_numbers_that_are_none_are_named_and_give_no_step(rows, domain) -> None:
    if rows.startswith("one "):
        X, kind = coldq.Box(0.0, 1.0, dim=2), coldq.QuadraticConstraint
        one = kind.ball(np.zeros((1, 2)), [0.9])
        g = one if rows == "one ball" else kind.diagonal([[1.0, 2.0]], [[0.0, 0.0]], [0.9])
    else:
        problem = draw(rows, domain, 0, seed=3)
        g, X = problem.rows.constraint, problem.domain
    start = X.start()
    good = {"center": start, "gradient": np.ones(X.dim), "alpha": np.ones(())}
    for name, array in good.items():
        bad = array.copy()
        bad[(-1,) * bad.ndim] = np.nan
        given = good | {name: bad}
        with pytest.raises(coldq.InvalidInput, match=f"^{name} must be finite, but is nan"):
            solve(*given.values(), np.ones(g.n_constraints), g, X)
