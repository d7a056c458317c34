"""Feedback as bytes is the same feedback again, whatever it is made of, and damage is noticed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import coldq
from coldq.agent.encoding import decode, encode
from tests.agent.feeds import measured, revealed

A, b = [[1.0, -0.0, 3.0]], [np.nextafter(1.0, 2.0)]
RISK = coldq.QuadraticConstraint(2.0 * np.eye(3)[None], [[0.0, 0.1, 0.2]], [1.0])
CONSTRAINTS = [
    None,
    coldq.Affine(A, b),
    coldq.Affine(np.asfortranarray(np.arange(6.0).reshape(2, 3)), [1.0, 2.0]),
    coldq.Affine(np.ones((4, 1, 3)), np.zeros((4, 1))),
    RISK,
    coldq.QuadraticConstraint.diagonal(np.ones((1, 3)), np.zeros((1, 3)), [1.0]),
    coldq.QuadraticConstraint.ball(np.ones((1, 3)), [1.0]).tightened(0.1),
    coldq.QuadraticConstraint.low_rank(
        np.ones((1, 3)), np.ones((1, 3, 2)), np.zeros((1, 3)), [1.0]
    ),
    coldq.MaxAffine([[A[0], [0.0, 0.0, 1.0]]], [[1.0, 2.0]]),
    coldq.LogCapacity(2.0, [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]),
    coldq.Stacked(RISK, coldq.Affine(A, b)),
    coldq.SparseAffine(scipy.sparse.csr_array(np.array(A)), b),
    measured(1, np.ones(3))[1],
]
LOSSES = [
    coldq.Linear([1.0, 2.0, 5e-324]),
    coldq.Quadratic(np.eye(3), np.zeros(3)),
    coldq.GradientAt([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
    *(part for part in (revealed(1)[0], measured(1, np.ones(3))[0])),
]
FORECASTS = [
    None,
    coldq.Forecast(loss=coldq.Linear([1.0, 2.0, 3.0])),
    coldq.Forecast(constraint=coldq.Affine(A, b)),
]


@pytest.mark.parametrize("forecast", FORECASTS, ids=repr)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: type(f).__name__)
def test_it_comes_back_equal_and_with_the_same_bytes(loss, constraint, forecast) -> None:
    told = coldq.Feedback(loss, constraint, None, forecast)
    data = encode(told)
    again = decode(data)
    assert again == told and encode(again) == data


def test_what_differs_has_other_bytes() -> None:
    every = [
        encode(coldq.Feedback(loss, constraint, None, forecast))
        for loss in LOSSES
        for constraint in CONSTRAINTS
        for forecast in FORECASTS
    ]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda g: type(g).__name__)
def test_what_is_cut_off_or_too_long_is_noticed(constraint) -> None:
    data = encode(coldq.Feedback(LOSSES[0], constraint))
    assert data is not None
    for length in range(len(data)):
        with pytest.raises((ValueError, TypeError, KeyError)):
            decode(data[:length])
    with pytest.raises(coldq.InvalidInput, match="bytes too many"):
        decode(data + b"x")


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"[1,2]",
        b'[{"type":"Linear","c":{"dtype":"O","shape":[1]}},null]',
        b'[{"type":"Linear","c":{"dtype":"<f8","shape":[-1]}},null]',
        b'[{"type":"os.system","c":{"dtype":"<f8","shape":[1]}},null]',
    ],
)
def test_what_nobody_encoded_is_refused(line: bytes) -> None:
    with pytest.raises((coldq.InvalidInput, ValueError, TypeError)):
        decode(line + b"\n" + bytes(8))


def test_functions_of_the_users_own_are_no_data() -> None:
    loss = coldq.Smooth(lambda x: x @ x, lambda x: 2.0 * x)
    assert encode(coldq.Feedback(loss, None)) is None
    own = coldq.Convex(lambda x: x[:1], lambda x: np.eye(3)[:1], n_constraints=1)
    assert encode(coldq.Feedback(LOSSES[0], coldq.Stacked(RISK, own))) is None
