"""What every kind of constraint says of itself is true."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.constraints import DiagonalQuadratic

RNG = np.random.default_rng(5)
P, BATCH = 3, (2, 3)


def _matrices(*lead: int) -> np.ndarray:
    roots = RNG.standard_normal((*lead, P, P))
    return roots @ np.swapaxes(roots, -1, -2)


def _drawn(*lead: int) -> dict[str, coldq.Affine]:
    """One of every kind that is made of arrays, with leading axes."""
    normal, uniform = RNG.standard_normal, RNG.uniform
    return {
        "Affine": coldq.Affine(normal((*lead, 2, P)), normal(2)),
        "QuadraticConstraint": coldq.QuadraticConstraint(
            _matrices(2), normal((*lead, 2, P)), normal((*lead, 2))
        ),
        "DiagonalQuadratic": coldq.QuadraticConstraint.diagonal(
            uniform(0.0, 1.0, (*lead, 2, P)), normal((2, P)), normal((*lead, 2))
        ),
        "MaxAffine": coldq.MaxAffine(normal((*lead, 2, 4, P)), normal((*lead, 2, 4))),
        "LogCapacity": coldq.LogCapacity(
            normal(lead), uniform(0.0, 1.0, P), uniform(0.0, 1.0, (*lead, P))
        ),
        "BallRows": coldq.QuadraticConstraint.ball(
            normal((*lead, 2, P)), uniform(0.0, 1.0, 2)
        ).tightened(uniform(0.0, 1.0, (*lead, 2))),
        "LowRankQuadratic": coldq.QuadraticConstraint.low_rank(
            uniform(0.0, 1.0, (2, P)), normal((*lead, 2, P, 2)), normal((2, P)), normal((*lead, 2))
        ),
    }


ALONE = _drawn() | {
    "SparseAffine": coldq.SparseAffine(sparse.csr_array(RNG.standard_normal((2, P))), [1.0, 2.0]),
    "Convex": coldq.Convex(
        lambda x: [np.exp(x).sum()], lambda x: [np.exp(x)], lambda x: [np.diag(np.exp(x))]
    ),
    "Unconstrained": coldq.Unconstrained(),
}
ALONE["Stacked"] = coldq.Stacked(*(g for g in ALONE.values() if g.n_constraints and g.has_hessian))
BATCHED = _drawn(*BATCH)
BATCHED["Stacked"] = coldq.Stacked(*BATCHED.values())
CURVED = {name: g for name, g in ALONE.items() if g.has_hessian}


@pytest.mark.parametrize("g", CURVED.values(), ids=CURVED)
def test_the_hessian_is_the_derivative_of_the_jacobian(g) -> None:
    x, step = RNG.uniform(0.5, 1.0, (4, P)), 1e-6
    H = g.hessian(x)
    assert H.shape == (4, g.n_constraints, P, P)
    for i in range(P):
        away = step * np.eye(P)[i]
        slope = (g.jacobian(x + away) - g.jacobian(x - away)) / (2.0 * step)
        np.testing.assert_allclose(H[..., i], slope, atol=1e-7)


@pytest.mark.parametrize("g", ALONE.values(), ids=ALONE)
def test_affine_rows_are_those_whose_value_halfway_is_the_mean(g) -> None:
    x, y = RNG.uniform(0.0, 9.0, (2, 40, P))
    halfway = g.value(0.5 * (x + y)) - 0.5 * (g.value(x) + g.value(y))
    straight = np.all(np.abs(halfway) < 1e-9, axis=0)
    np.testing.assert_array_equal(g.is_affine, straight)


@pytest.mark.parametrize("g", BATCHED.values(), ids=BATCHED)
def test_a_member_of_a_batch_has_its_values_and_no_leading_axes(g) -> None:
    assert g.batch == BATCH
    x = RNG.uniform(0.0, 1.0, (*BATCH, P))
    whole, slopes = g.value(x), g.jacobian(x)
    for where in np.ndindex(*BATCH):
        alone = g.member(where, BATCH)
        assert type(alone) is type(g) and alone.batch == ()
        assert alone.value(x[where]).tobytes() == whole[where].tobytes()
        assert alone.jacobian(x[where]).tobytes() == slopes[where].tobytes()


def test_a_member_of_measured_rows_is_known_where_it_was_measured() -> None:
    x, level, slope = (RNG.standard_normal((2, *shape)) for shape in ((P,), (1,), (1, P)))
    alone = coldq.Affine.from_measurement(x, level, slope).member((1,), (2,))
    assert alone.value(x[1]) == level[1]
    with pytest.raises(coldq.NotRevealed):
        alone.value(x[0])


@pytest.mark.parametrize("name", ["Affine", "Unconstrained"])
def test_as_affine_has_the_same_values(name) -> None:
    g, x = ALONE[name], RNG.standard_normal((5, P))
    np.testing.assert_array_equal(g.as_affine(P).value(x), g.value(x))


def test_sparse_rows_are_the_same_with_all_their_zeros() -> None:
    g, x = ALONE["SparseAffine"], RNG.standard_normal(P)
    np.testing.assert_allclose(g.dense().value(x), g.value(x), atol=1e-14)


@pytest.mark.parametrize("name", ["Affine", "LogCapacity"])
def test_all_of_several_holds_where_each_of_them_holds(name) -> None:
    if name == "Affine":
        several = [coldq.Affine(RNG.standard_normal((1, P)), [0.5]) for _ in range(3)]
    else:
        several = [coldq.LogCapacity(d, [1.0] * P, [2.0] * P) for d in (0.5, 2.5, 1.5)]
    whole = several[0].all_of(several)
    for x in RNG.uniform(0.0, 1.0, (200, P)):
        assert (whole.value(x) <= 0.0).all() == all((g.value(x) <= 0.0).all() for g in several)


@pytest.mark.parametrize("name", ["Affine", "LogCapacity"])
def test_all_of_several_takes_those_with_and_without_leading_axes(name) -> None:
    if name == "Affine":
        A, b = RNG.standard_normal((2, 1, P)), RNG.standard_normal((2, 1))
        several = [coldq.Affine(A, b), coldq.Affine(A[0], b[0]), coldq.Affine(A[0], b)]
    else:
        several = [coldq.LogCapacity(d, [1.0] * P, [2.0] * P) for d in ([0.5, 2.5], 1.5)]
    whole = several[0].all_of(several)
    assert whole.batch == (2,)
    for x in RNG.uniform(0.0, 1.0, (50, P)):
        each = np.stack([g.value(np.tile(x, (2, 1))).max(axis=-1) for g in several])
        np.testing.assert_array_equal(whole.value(x).max(axis=-1), each.max(axis=0))


def test_capacities_that_differ_in_more_than_demand_have_none_for_all() -> None:
    several = [coldq.LogCapacity(1.0, [1.0], [r]) for r in (1.0, 2.0)]
    assert several[0].all_of(several) is None


def test_a_diagonal_keeps_its_kind() -> None:
    assert type(BATCHED["DiagonalQuadratic"].member((0, 0), BATCH)) is DiagonalQuadratic
