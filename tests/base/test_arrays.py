"""Domains, losses, constraints and schedules: their maths, and what bad input gets."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_array

import coldq
from coldq.slot.schedules import Constant, Custom, Power

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("again", [lambda value: pickle.loads(pickle.dumps(value)), deepcopy, copy])
def test_values_stay_read_only_when_they_are_pickled_or_copied(again) -> None:
    values = [
        coldq.Linear([1.0, 2.0]), coldq.Affine([[1.0, 2.0]], [3.0]), coldq.Box(0.0, [1.0, 2.0]),
        coldq.SparseAffine(csr_array([[0.0, 2.0]]), [3.0]), Power(0.5, [1.0, 2.0]),
        coldq.COLDQ(coldq.Box(0.0, [1.0, 2.0]), horizon=10),
    ]  # fmt: skip
    for value in values:
        twin = again(value)
        assert (twin, hash(twin), vars(twin).keys()) == (value, hash(value), vars(value).keys())
        for name, one in vars(twin).items():
            assert not (isinstance(one, np.ndarray) and one.flags.writeable), name
    with pytest.raises(ValueError, match="read-only"):
        again(values[0]).c[0] = 9.0


def test_a_box_projects_to_the_nearest_point() -> None:
    box = coldq.Box([0.0, -INF, 2.0], [1.0, 3.0, 2.0])
    np.testing.assert_array_equal(box.project([-5.0, 9.0, 0.0]), [0.0, 3.0, 2.0])
    np.testing.assert_array_equal(box.start(), [0.0, 0.0, 2.0])
    assert box.diameter == INF
    assert box.contains([0.5, -1e9, 2.0])
    assert not box.contains([0.5, 0.0, 2.1])
    assert box.contains([0.5, 0.0, 2.1], tolerance=0.2)


def test_boxes_carry_leading_axes() -> None:
    boxes = coldq.Box(np.zeros((4, 1, 3)), np.ones((2, 3)))
    assert boxes.batch == (4, 2)
    assert boxes.diameter.shape == (4, 2)
    assert boxes.project(np.full(3, 9.0)).shape == (4, 2, 3)


def test_gradients_are_the_derivatives_of_the_values() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 3))
    losses = [
        coldq.Linear(rng.standard_normal(3)),
        coldq.LeastSquares(rng.standard_normal((5, 3)), rng.standard_normal(5)),
        coldq.Quadratic(root.T @ root, rng.standard_normal(3), 2.0),
        coldq.Smooth(lambda x: np.exp(x).sum(), np.exp),
    ]
    x = rng.standard_normal(3)
    for loss in losses:
        slope = [(loss.value(x + h) - loss.value(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
        np.testing.assert_allclose(loss.gradient(x), slope, rtol=1e-6)
        if hasattr(loss, "quadratic"):
            P, q, r = loss.quadratic()
            np.testing.assert_allclose(0.5 * x @ P @ x + q @ x + r, loss.value(x))
    constraints = [
        coldq.Affine(rng.standard_normal((2, 3)), rng.standard_normal(2)),
        coldq.LogCapacity(3.0, rng.random(3), rng.random(3)),
    ]
    x = np.abs(x)
    for g in constraints:
        slope = [(g.value(x + h) - g.value(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
        np.testing.assert_allclose(g.jacobian(x), np.transpose(slope), rtol=1e-6)


def test_a_batch_of_functions_gives_the_bits_of_each() -> None:
    rng = np.random.default_rng(1)
    H, y, x = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 4)), rng.random((6, 3))
    A, b = rng.standard_normal((6, 2, 3)), rng.standard_normal((6, 2))
    s, r = rng.random((6, 3)), rng.random((6, 3))
    many = coldq.LeastSquares(H, y), coldq.Affine(A, b), coldq.LogCapacity(b[:, 0], s, r)
    for k in range(6):
        one = coldq.LeastSquares(H[k], y[k]), coldq.Affine(A[k], b[k]), \
              coldq.LogCapacity(b[k, 0], s[k], r[k])  # fmt: skip
        assert many[0].gradient(x)[k].tobytes() == one[0].gradient(x[k]).tobytes()
        assert many[0].value(x)[k].tobytes() == one[0].value(x[k]).tobytes()
        assert many[1].value(x)[k].tobytes() == one[1].value(x[k]).tobytes()
        assert many[2].value(x)[k].tobytes() == one[2].value(x[k]).tobytes()
        assert many[2].jacobian(x)[k].tobytes() == one[2].jacobian(x[k]).tobytes()


def test_users_functions_get_their_own_copy_of_one_point_at_a_time() -> None:
    seen = []

    def value(x: np.ndarray) -> float:
        seen.append(x.shape)
        x[:] = NAN  # must not reach the caller's array
        return 1.0

    x = np.zeros((4, 2))
    assert coldq.Smooth(value, value).value(x).shape == (4,)
    assert seen == [(2,)] * 4
    assert not np.isnan(x).any()
    whole = coldq.Smooth(lambda z: z.sum(axis=-1), np.ones_like, vectorised=True)
    assert whole.gradient(x).shape == (4, 2)


def test_values_own_their_data_and_share_what_is_read_only() -> None:
    c = np.ones(3)
    loss = coldq.Linear(c)
    c[:] = 5.0
    assert loss.value(np.ones(3)) == 3.0
    with pytest.raises(ValueError, match="read-only"):
        loss.c[0] = 1.0
    c.flags.writeable = False
    assert np.shares_memory(coldq.Linear(c).c, c)
    assert coldq.Linear([1, 2]).c.dtype == np.float64


def test_values_compare_and_hash_by_content() -> None:
    for one, same, other in [
        (coldq.Linear([1.0]), coldq.Linear([1.0]), coldq.Linear([2.0])),
        (coldq.Box(0.0, 1.0, dim=2), coldq.Box([0.0, 0.0], 1.0), coldq.Box(0.0, 1.0, dim=3)),
        (Power(0.5), Power(0.5, 1.0), Power(0.5, 2.0)),
        (Constant(1.0), Constant(1.0), Constant(2.0)),
        (coldq.Affine([[1.0]], [1.0]), coldq.Affine([[1.0]], [1.0]),
         coldq.Affine.from_measurement([0.0], [-1.0], [[1.0]])),
    ]:  # fmt: skip
        assert one == same
        assert hash(one) == hash(same)
        assert one != other
        assert type(one).__name__ in repr(one)
    assert repr(coldq.Affine(np.ones((9, 9)), np.ones(9))).startswith("Affine(A=<array 9x9>")


def test_schedules_are_evaluated_by_numpy_on_arrays() -> None:
    t = np.arange(1, 200)
    batch = Power(0.25, 3.0)(t)
    assert all(Power(0.25, 3.0)(k).tobytes() == value.tobytes()
               for k, value in zip(t, batch, strict=True))  # fmt: skip
    assert Constant(2.0)(t) == 2.0
    assert Custom(lambda s: 2.0 * s)(3) == 6.0


A, b = np.ones((2, 3)), np.ones(2)
BOX = coldq.Box(0.0, 1.0, dim=3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coldq.Box(0.0, 1.0), "dim must be given"),
        (lambda: coldq.Box(0.0, 1.0, dim=0), "dim must be a whole number, at least 1"),
        (lambda: coldq.Box([0.0, 2.0], 1.0), r"domain is empty: lower = 2.0 .* at index \(1,\)"),
        (lambda: coldq.Box(NAN, 1.0, dim=1), "lower must not be NaN"),
        (lambda: coldq.Box(INF, INF, dim=1), "domain is empty"),
        (lambda: coldq.Box([0.0, 0.0], [1.0, 1.0, 1.0]), "do not fit together"),
        (lambda: coldq.Box([0.0, 0.0], 1.0, dim=3), "do not fit together"),
        (lambda: coldq.Box("0", 1.0, dim=3), "lower must be real numbers, but is '0'"),
        (lambda: BOX.project([1.0, 2.0]), "x must have 3 coordinates"),
        (lambda: coldq.Linear(1.0), "c needs at least one axis"),
        (lambda: coldq.Linear([1.0, INF]), r"c must be finite, but is inf at index \(1,\)"),
        (lambda: coldq.Linear([1j]), "c must be real numbers, but has 1j"),
        (lambda: coldq.Linear([1.0, "6,5"]), "c must be real numbers, but has '6,5'"),
        (lambda: coldq.Linear([1.0, None]), "c must be real numbers, but has None"),
        (lambda: coldq.Linear([10**30, 1]), "c must be real numbers, but is of type object"),
        (lambda: coldq.LeastSquares(A, np.ones(3)), "needs y with 2 entries"),
        (lambda: coldq.LeastSquares(np.ones((4, 2, 3)), np.ones((5, 2))), "do not fit together"),
        (lambda: coldq.LeastSquares(A, [1.0, NAN]), "y must be finite"),
        (lambda: coldq.Quadratic(np.eye(2), np.ones(3)), r"needs P of shape \(..., 3, 3\)"),
        (lambda: coldq.Quadratic([[0.0, 1.0], [0.0, 0.0]], np.ones(2)), "P must be symmetric"),
        (lambda: coldq.Quadratic(-np.eye(2), np.ones(2)), "positive semidefinite"),
        (lambda: coldq.Smooth(lambda x: x, lambda x: x).value(np.ones(2)), r"return shape \(\)"),
        (lambda: coldq.Smooth(lambda x: NAN, lambda x: x).value(np.ones(2)), "finite numbers"),
        (lambda: coldq.GradientAt([1.0], [1.0, 2.0]), "gradient must have the shape of x"),
        (lambda: coldq.GradientAt([1.0], [1.0], [1.0]), "value must have the shape"),
        (lambda: coldq.Affine(A, np.ones(3)), "needs b with 2 entries"),
        (lambda: coldq.Affine(np.ones(3), b), "A needs at least two axes"),
        (lambda: coldq.Affine([[NAN]], [1.0]), r"A must be finite, but is nan at index \(0, 0\)"),
        (lambda: coldq.Affine(A, b).value(np.ones(2)), "x must have 3 coordinates"),
        (lambda: coldq.Affine.from_measurement([0.0], [1.0], [[1.0, 2.0]]), "need a jacobian of"),
        (lambda: coldq.Affine.between(A, 2.0, 1.0), r"is 2.0 against 1.0 at index \(0,\)"),
        (lambda: coldq.Affine.between(A, [0.0, 4.0], [[1.0, INF], [9.0, 3.0]]), "infinite in all"),
        (lambda: coldq.Affine.between(A, [0.0, 4.0], [[1.0, 5.0], [9.0, 3.0]]), r"4.0 against 3.0"),
        (lambda: coldq.LogCapacity(1.0, [1.0], [1.0, 2.0]), "equally many coordinates"),
        (lambda: coldq.LogCapacity(INF, [1.0], [1.0]), "demand must be finite"),
        (lambda: coldq.Feedback(3.0, None), r"loss must have a method value\(x\)"),  # type: ignore[arg-type]
        (lambda: coldq.Feedback(coldq.Linear([1.0]), 3.0), "constraint must have a method value"),  # type: ignore[arg-type]
        (lambda: Power(0.5, -1.0), "scale must be positive, but is -1.0"),
        (lambda: Constant(0.0), "value must be positive"),
    ],
)  # fmt: skip
def test_bad_data_gets_a_sentence(call, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call()


STEP = {"center": np.zeros(3), "gradient": np.ones(3), "alpha": 1.0,
        "multiplier_upper": 1.0, "constraint": coldq.Affine(A, b), "domain": BOX}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"center": [0.0, NAN, 0.0]}, r"center must be finite, but is nan at index \(1,\)"),
        ({"center": np.zeros(4)}, "center must have 3 coordinates"),
        ({"gradient": [INF, 0.0, 0.0]}, "gradient must be finite"),
        ({"gradient": 1.0}, "gradient needs at least one axis"),
        ({"alpha": 0.0}, "alpha must be positive, but is 0.0"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"alpha": NAN}, "alpha must be finite"),
        ({"multiplier_upper": -1.0}, "multiplier_upper must not be negative"),
        ({"multiplier_upper": [1.0, NAN]}, "multiplier_upper must not be negative or NaN"),
        ({"multiplier_upper": np.ones(3)}, "needs one entry for each of the 2 rows"),
        ({"multiplier_lower": 2.0}, "multiplier_lower must be finite and at most multiplier_upper"),
        ({"multiplier_lower": NAN}, "multiplier_lower must be finite and at most multiplier_upper"),
        ({"multiplier_lower": INF, "multiplier_upper": INF}, "multiplier_lower must be finite"),
        ({"domain": "box"}, "domain must be a domain such as coldq.Box"),
        ({"constraint": coldq.Affine(np.ones((2, 4)), b)}, "constraint has 4 coordinates"),
        ({"constraint": 7}, "no solver for a int on a Box"),
        ({"center": np.zeros((2, 3)), "gradient": np.zeros((4, 3))}, "do not fit together"),
        ({"constraint": coldq.Affine(np.ones((5, 2, 3)), b), "alpha": np.ones(4)}, "do not fit"),
    ],
)  # fmt: skip
def test_a_bad_step_gets_a_sentence(change: dict, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.penalised_step(**{**STEP, **change})


@pytest.mark.parametrize(
    "g",
    [
        coldq.Affine(np.ones((2, 3)), np.ones(2)),
        coldq.SparseAffine(csr_array(np.ones((2, 3))), np.ones(2)),
        coldq.LogCapacity(1.0, np.ones(3), np.ones(3)),
        coldq.QuadraticConstraint(np.ones((1, 3, 3)), np.ones((1, 3)), [1.0]),
        coldq.MaxAffine(np.ones((1, 2, 3)), np.ones((1, 2))),
    ],
    ids=lambda g: type(g).__name__,
)
def test_a_point_with_other_coordinates_is_refused_by_every_method(g) -> None:
    for x in (np.ones(2), np.ones((3, 4)), 1.0):
        for method in (g.value, g.jacobian, getattr(g, "hessian", g.value)):
            with pytest.raises(coldq.InvalidInput, match="must have 3 coordinates"):
                method(x)


def test_a_masked_entry_is_refused_and_an_unused_mask_is_not() -> None:
    array = np.ma.masked_greater([1.0, 99.0, 3.0], 50.0)
    for call in (coldq.Linear, coldq.Linear([1.0, 1.0, 1.0]).value, coldq.Box(0.0, 1.0, 3).project):
        with pytest.raises(coldq.InvalidInput, match=r"some are masked: \[1.0 -- 3.0\]"):
            call(array)
    whole = np.ma.masked_greater([1.0, 2.0, 3.0], 50.0)
    assert coldq.Linear(whole) == coldq.Linear([1.0, 2.0, 3.0])


def test_a_value_is_not_changed_through_what_a_read_only_view_shows() -> None:
    prices = np.array([1.0, 2.0, 3.0])
    view = prices[:]
    view.flags.writeable = False
    loss = coldq.Linear(view)
    prices[:] = np.nan
    np.testing.assert_array_equal(loss.c, [1.0, 2.0, 3.0])


def test_an_array_that_nobody_can_write_to_is_shared() -> None:
    prices = np.array([1.0, 2.0, 3.0])
    prices.flags.writeable = False
    assert coldq.Linear(prices).c is prices
    assert np.shares_memory(coldq.Linear(prices[1:]).c, prices)


def test_a_decision_handed_out_cannot_change_the_state() -> None:
    learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10)
    first = learner.init(0)
    following = learner.update(first, coldq.Feedback(coldq.Linear([1.0, -1.0]), None))
    for state in (first, following):
        with pytest.raises(ValueError, match="read-only"):
            state.x[0] = 0.5
