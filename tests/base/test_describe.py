"""Values become plain data and come back equal, and malformed data is refused with a sentence."""

from __future__ import annotations

import copy
import json
import random
import warnings

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq import checks, networks
from coldq.slot.schedules import Constant, Custom, Power
from tests.learners.test_checks import (
    BALL,
    CAPPED,
    LEARNERS,
    OPEN,
    POLYTOPE,
    PRODUCT,
    SIMPLEX,
    WITH_BALL,
)
from tests.slot.constraints.test_kinds import ALONE, BATCHED

RNG = np.random.default_rng(11)
LONG = RNG.standard_normal((40, 3))
DESCRIBED = [learner for learner in LEARNERS if not isinstance(learner.domain, coldq.CustomDomain)]
NETWORKS = [
    coldq.Decentralised(
        coldq.COLDQ(SIMPLEX, horizon=50), networks.metropolis(networks.complete(3))
    ),
    coldq.Decentralised(
        coldq.Yi2023.from_exponents(BALL, a=1.0, b=1.0, g=1.0),
        networks.Alternating(networks.metropolis(networks.ring(3)), np.eye(3)),
    ),
    *(
        coldq.Decentralised(coldq.COLDQ(SIMPLEX, horizon=50), np.full((2, 2), 0.5), messages)
        for messages in (
            networks.Quantised(0.1),
            networks.Noisy(0.2, 3),
            networks.Noisy(0.2, np.int64(3)),
            networks.Dropped(0.1, np.uint64(2)),
        )
    ),
]
DOMAINS = [
    *(OPEN, SIMPLEX, CAPPED, POLYTOPE, BALL, PRODUCT, WITH_BALL),
    coldq.Box(-np.abs(LONG), np.abs(LONG)),
    coldq.Simplex(3, total=[1.0, 2.0]),
    coldq.Polytope(LONG[:30], np.ones(30)),
    coldq.Polytope(A_eq=[[1.0, 1.0]], b_eq=[1.0], lower=0.0),
    coldq.Product(coldq.Product(SIMPLEX, BALL), coldq.Box(0.0, 1.0, dim=1)),
]
SCHEDULES = [Power(0.1, 1.0 / 3.0), Power([-0.5, 0.2], 1e-300), Constant(np.pi), Constant([1.0, 2])]
LOSSES = [
    coldq.Linear([0.1, -0.0, 5e-324]),
    coldq.Linear(LONG),
    coldq.LeastSquares(LONG, np.ones(40)),
    coldq.Quadratic([[2.0, 0.5], [0.5, 1.0]], [1.0, 2.0], 0.3),
    coldq.GradientAt([1.0, 2.0], [0.5, 0.1]),
    coldq.GradientAt([1.0, 2.0], [0.5, 0.1], 1.0 / 3.0),
    coldq.ValueAt([[1.0, 2.0], [1.0, 2.5]], [0.5, 0.1]),
]
CONSTRAINTS = [
    *(g for name, g in ALONE.items() if name not in ("Convex", "Stacked")),
    *BATCHED.values(),
    coldq.Affine(np.zeros((0, 3)), np.zeros(0)),
    coldq.Affine.from_measurement([1.0, 2.0], [0.1], [[0.3, 0.7]]),
    coldq.SparseAffine(sparse.random_array((30, 90), density=0.1, rng=RNG), np.ones(30)),
    coldq.QuadraticConstraint.ball([[3.0, 0.0]], [1.0]),
    coldq.Stacked(coldq.Affine([[1.0, 1.0]], [1.0]), coldq.QuadraticConstraint.ball([[3, 0]], [1])),
]
EVERY = [*DESCRIBED, *NETWORKS, *DOMAINS, *SCHEDULES, *LOSSES, *CONSTRAINTS]


def through_text(value):
    """Described, written as strict JSON, read and built."""
    return coldq.build(json.loads(json.dumps(coldq.describe(value), allow_nan=False)))


@pytest.mark.parametrize("value", EVERY, ids=lambda value: type(value).__name__)
def test_every_value_comes_back_equal(value) -> None:
    back = through_text(value)
    assert type(back) is type(value)
    assert back == value and hash(back) == hash(value)
    assert coldq.describe(back) == coldq.describe(value)


@pytest.mark.parametrize("learner", [*DESCRIBED, *NETWORKS], ids=lambda a: type(a).__name__)
def test_a_learner_that_came_back_decides_the_same_and_takes_over_the_state(learner) -> None:
    back, case = through_text(learner), checks.Case.of(learner)
    own = state = case.init((3,))
    for slot in range(1, 6):
        state = learner.update(state, case.feedback(slot))
        own = back.update(back.from_arrays(own.to_arrays()), case.feedback(slot))
        assert checks.snapshot(own) == checks.snapshot(state)


def test_every_learner_of_the_catalogue_is_tried() -> None:
    from coldq.learners import ALGORITHMS

    assert {type(learner) for learner in DESCRIBED} == set(ALGORITHMS)


@pytest.mark.parametrize("value", [*SCHEDULES], ids=repr)
def test_a_schedule_that_came_back_has_the_same_bits(value) -> None:
    t = np.arange(1.0, 50.0)[:, None]
    assert np.asarray(through_text(value)(t)).tobytes() == np.asarray(value(t)).tobytes()


def test_all_bits_of_a_long_array_come_back() -> None:
    odd = np.frombuffer(RNG.bytes(8 * 3000), "<f8")
    odd = np.where(np.isfinite(odd), odd, -0.0).reshape(1000, 3)
    assert through_text(coldq.Linear(odd)).c.tobytes() == odd.tobytes()
    assert "base64" in coldq.describe(coldq.Linear(odd))["c"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (coldq.OGD(SIMPLEX, eta=lambda t: 1.0 / t), r"eta of this OGD is a function of your own"),
        (
            coldq.COLDQ(coldq.CustomDomain(2, np.abs, diameter=1.0), 50),
            "domain.project of this COLDQ is a function of your own",
        ),
        (coldq.Convex(np.exp, np.exp), "value_function of this Convex is a function of your own"),
        (coldq.Stacked(ALONE["Convex"]), r"parts\[0\].value_function of this Stacked"),
        (coldq.Smooth(np.sum, np.exp), "value_function of this Smooth"),
        (Custom(np.sqrt), "a Custom cannot be described"),
        (coldq.Decentralised(coldq.RECOO(SIMPLEX), lambda t: np.eye(2)), "mixing of this Decentr"),
        (3.0, "a float cannot be described"),
        (np.eye(2), "a ndarray cannot be described"),
        (coldq.COLDQ, "a type cannot be described"),
    ],
)
def test_what_cannot_be_described_is_named(value, words: str) -> None:
    with pytest.raises(coldq.NotSaveable, match=words):
        coldq.describe(value)


class Mine(coldq.COLDQ):
    """A learner of a user's own."""


def test_a_class_of_a_users_own_is_not_taken_for_ours() -> None:
    with pytest.raises(coldq.NotSaveable, match="a Mine cannot be described"):
        coldq.describe(Mine(SIMPLEX, 50))
    inner = type("Box", (coldq.Box,), {})(0.0, 1.0, dim=2)
    with pytest.raises(coldq.NotSaveable, match=r"^domain of this COLDQ is a Box, which cannot be"):
        coldq.describe(coldq.COLDQ(inner, 50))


BOX = {"type": "Box", "lower": [0.0], "upper": [1.0]}
BYTES = {"dtype": "<f8", "shape": [1], "base64": "AAAAAAAAAAA="}


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (None, "a description is a dictionary"),
        ([BOX], "a description is a dictionary"),
        ({}, "a description is a dictionary"),
        ({"type": "os.system", "command": "true"}, "there is no 'os.system' to build"),
        ({"type": "__import__"}, "there is no '__import__' to build"),
        ({"type": ["Box"]}, "there is no"),
        ({"type": "Custom", "function": "print"}, "there is no 'Custom' to build"),
        ({"type": "Bocks"}, "is 'Box' meant"),
        ({"type": "Box", "lower": [0.0]}, "lacks 'upper', which Box needs"),
        (BOX | {"colour": 3}, "Box takes lower, upper, dim, but the description has 'colour'"),
        (BOX | {"lower": [2.0]}, "the domain is empty"),
        (BOX | {"lower": ["a"]}, "lower must be real numbers"),
        (BOX | {"lower": {"a": 1}}, "the description.lower must be made of numbers"),
        (BOX | {"lower": BYTES | {"base64": "AAA="}}, "has 2 bytes, but its shape"),
        (BOX | {"lower": BYTES | {"base64": "*"}}, "not base64"),
        (BOX | {"lower": BYTES | {"dtype": "O"}}, "must be an array with a dtype of"),
        (BOX | {"lower": BYTES | {"shape": [-1]}}, "must be an array with a dtype of"),
        (BOX | {"lower": BYTES | {"shape": [10**30]}}, "has 8 bytes, but its shape"),
        (
            {"type": "COLDQ", "domain": BOX | {"lower": [2.0]}, "horizon": 9},
            "^the description.domain: the domain is empty",
        ),
        ({"type": "Product", "domains": BOX}, "domains of Product must be a list"),
        ({"type": "Stacked", "parts": [BOX]}, "Stacked takes constraints"),
        ({"type": "COLDQ", "domain": 3, "horizon": 10}, "domain must be a domain"),
        ({"type": "COLDQ", "domain": BOX, "horizon": "ten"}, "horizon must be a whole number"),
    ],
)
def test_malformed_descriptions_are_refused_with_a_sentence(description, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.build(description)


def test_a_description_without_end_is_refused() -> None:
    endless: dict = {"type": "Product"}
    endless["domains"] = [endless]
    with pytest.raises(coldq.InvalidInput, match="at most 32 levels"):
        coldq.build(endless)


def broken(value, rng: random.Random):
    """A description with something in it exchanged, left out or put in."""
    places: list = []

    def look(part) -> None:
        for key, inner in list(part.items()) if isinstance(part, dict) else enumerate(part):
            places.append((part, key))
            if isinstance(inner, dict | list):
                look(inner)

    value = copy.deepcopy(value)
    look(value)
    part, key = rng.choice(places)
    odd = [
        None,
        True,
        -1,
        0,
        1e400,
        10**30,
        "",
        "Box",
        "inf",
        [],
        [[]],
        [1.0, [2.0]],
        {},
        BOX,
        BYTES,
    ]
    choice = rng.randrange(3)
    if choice == 0 and isinstance(part, dict):
        del part[key]
    elif choice == 1 and isinstance(part, dict):
        part[rng.choice(["odd", "type", "domain", "alpha"])] = rng.choice(odd)
    else:
        part[key] = rng.choice(odd + [part[k] for k in (part if isinstance(part, dict) else [0])])
    return value


def test_descriptions_broken_at_random_are_built_or_refused_never_more() -> None:
    rng, built = random.Random(3), 0
    described = [coldq.describe(value) for value in EVERY]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3000):
            wrong = broken(rng.choice(described), rng)
            try:
                value = coldq.build(wrong)
            except coldq.Error as error:
                assert len(str(error)) > 15
            else:
                built += 1
                assert coldq.build(coldq.describe(value)) == value
    assert built > 100
