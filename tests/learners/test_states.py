"""What a state knows: whose it is, and which of its members go out and come in."""

from __future__ import annotations

import copy
import dataclasses
import io
import itertools
import json
import pickle
import sys

import numpy as np
import pytest

import coldq
from coldq.learners import ALGORITHMS
from coldq.learners.state import State
from coldq.slot.schedules import Custom, Power

X = coldq.Box(0.0, 1.0, dim=2)
ROW = coldq.Affine([[1.0, 1.0]], [1.0])
FEEDBACK = coldq.Feedback(coldq.Linear([-1.0, -2.0]), ROW)
MADE = coldq.COLDQ(X, horizon=500)
KEYWORDS = {"Wang2023": {"delay": 1}, "PolyakFeasibility": {"slack": 0.1}}
EVERY = [
    kind.for_problem(coldq.problems.OnlineLinear(horizon=100), **KEYWORDS.get(kind.__name__, {}))
    for kind in ALGORITHMS
]
every_learner = pytest.mark.parametrize("learner", EVERY, ids=lambda a: type(a).__name__)


def saved(state: State) -> dict[str, np.ndarray]:
    """Arrays written to a file and read back, without pickle."""
    file = io.BytesIO()
    np.savez(file, **state.to_arrays())  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


@every_learner
def test_every_learner_refuses_every_other_ones_arrays(learner) -> None:
    arrays = saved(learner.init(1))
    assert learner.from_arrays(arrays).x.tobytes() == arrays["x"].tobytes()
    for other in EVERY:
        if other is not learner:
            with pytest.raises(coldq.InvalidInput, match=f"saved by {type(learner).__name__}, but"):
                other.from_arrays(arrays)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            coldq.COLDQ(X, horizon=100),
            r"by COLDQ\(eta=0.002, gamma=250.0, horizon=500\), but this is COLDQ\(eta=0.01, "
            r"gamma=50.0, horizon=100\): eta, gamma, horizon differ; .*strict=False",
        ),
        (coldq.COLDQ(X, 500, alpha=1e6), r"alpha=Power\(.*\(alpha=Constant\(.*: alpha differs"),
        (coldq.COLDQ(X, 500, path_exponent=0.5), r"alpha.exponent=0.5\), but .*=0.25\)"),
        (coldq.COLDQ(coldq.Box(0.0, 2.0, dim=2), 500), r"domain.upper=\[1.0, 1.0\]\), but"),
        (coldq.COLDQ(coldq.Simplex(2), 500), r"domain=Box\(.*domain=Simplex\(.*: domain differs"),
        (coldq.COLDQ(coldq.Box(0.0, 1.0, dim=3), 500), r"\[1.0, 1.0, 1.0\]"),
    ],
)
def test_the_difference_is_named(other, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        other.from_arrays(saved(MADE.init(1)))


def test_what_differs_is_taken_if_not_strict_and_is_then_the_learners_own() -> None:
    arrays = saved(MADE.init(1))
    taken = coldq.RECOO(X).from_arrays(arrays, strict=False)
    assert taken.queue.tobytes() == arrays["queue"].tobytes()
    assert json.loads(str(taken.to_arrays()["learner"]))["learner"] == "RECOO"
    with pytest.raises(coldq.InvalidInput, match="queue must be at least gamma"):
        coldq.COLDQ(X, horizon=5000).from_arrays(arrays, strict=False)  # checked all the same


def test_strict_false_is_promised_only_where_it_works() -> None:
    arrays = saved(coldq.SelfTuning(X, 0.05).init(1))
    with pytest.raises(coldq.InvalidInput, match="by SelfTuning, but this is COLDQ; nor would"):
        MADE.from_arrays(arrays)
    for learner, other in itertools.permutations(EVERY, 2):
        arrays = saved(other.init(1))
        with pytest.raises(coldq.InvalidInput) as refused:
            learner.from_arrays(arrays)
        try:
            learner.from_arrays(arrays, strict=False)
            taken = True
        except coldq.InvalidInput:
            taken = False
        assert ("takes them all the same" in str(refused.value)) is taken


def test_large_arrays_are_told_apart_by_their_content() -> None:
    low, high = np.zeros(50), np.ones(50)
    one = coldq.OGD(coldq.Box(low, high), eta=0.1)
    high[49] = 1.5
    with pytest.raises(coldq.InvalidInput, match=r"domain.upper=<array 50>.*upper differs"):
        coldq.OGD(coldq.Box(low, high), eta=0.1).from_arrays(saved(one.init(0)))


def test_arrays_saved_without_a_word_on_their_learner_give_a_warning() -> None:
    arrays = saved(MADE.init(1))
    del arrays["learner"]
    with pytest.warns(coldq.UnknownLearner, match="do not say which learner saved them"):
        state = MADE.from_arrays(arrays)
    assert "learner" in state.to_arrays()
    MADE.from_arrays(arrays, strict=False)  # which says that it is meant


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '{"learner": 3}'])
def test_a_text_that_is_none_of_ours_is_refused(text: str) -> None:
    arrays = saved(MADE.init(1))
    for odd in (np.array(text), np.array(3.0)):
        with pytest.raises(coldq.InvalidInput, match="must be the text that"):
            MADE.from_arrays(arrays | {"learner": odd})


def test_another_format_of_the_state_is_named() -> None:
    arrays = saved(MADE.init(1))
    text = json.loads(str(arrays["learner"])) | {"format": 7}
    with pytest.raises(coldq.InvalidInput, match="in format 7 of COLDQ's state"):
        MADE.from_arrays(arrays | {"learner": np.array(json.dumps(text))})


@dataclasses.dataclass(frozen=True)
class Root:
    """A schedule object of the user's own."""

    scale: float

    def __call__(self, t):
        return self.scale * np.sqrt(t)


def test_a_plain_function_is_unknown_and_an_object_is_its_content() -> None:
    made = coldq.COLDQ(X, alpha=lambda t: t, eta=0.1, gamma=1.0)
    arrays = saved(made.init(1))
    for alpha in (lambda t: 2.0 * t, Power(0.5)):
        coldq.COLDQ(X, alpha=alpha, eta=0.1, gamma=1.0).from_arrays(arrays)
    with pytest.raises(coldq.InvalidInput, match="eta differs"):
        coldq.COLDQ(X, alpha=lambda t: t, eta=0.2, gamma=1.0).from_arrays(arrays)
    arrays = saved(coldq.OGD(X, eta=Root(1.0)).init(0))
    coldq.OGD(X, eta=Custom(Root(1.0))).from_arrays(arrays)
    with pytest.raises(coldq.InvalidInput, match="scale differs"):
        coldq.OGD(X, eta=Root(2.0)).from_arrays(arrays)


def test_states_of_a_learner_with_a_plain_function_are_pickled_and_copied() -> None:
    learner = coldq.COLDQ(X, alpha=lambda t: t, eta=0.1, gamma=1.0)
    state = learner.update(learner.init(1), FEEDBACK)
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state), copy.copy(state)):
        assert str(twin.to_arrays()["learner"]) == str(state.to_arrays()["learner"])
        assert (
            learner.update(twin, FEEDBACK).x.tobytes()
            == learner.update(state, FEEDBACK).x.tobytes()
        )


def test_a_learner_that_made_states_is_pickled_as_before() -> None:
    fresh, used = coldq.COLDQ(X, horizon=10), coldq.COLDQ(X, horizon=10)
    used.update(used.init(1), FEEDBACK).to_arrays()
    assert pickle.dumps(fresh) == pickle.dumps(used)
    twin = pickle.loads(pickle.dumps(used))
    assert twin.update(used.init(1), FEEDBACK).fingerprint.learner is twin


def test_the_fingerprint_of_a_state_is_of_the_learner_that_updated_it() -> None:
    other = coldq.COLDQ(X, horizon=100)
    moved = other.update(MADE.init(1), FEEDBACK)  # of one class, so it is taken
    other.from_arrays(saved(moved))
    with pytest.raises(coldq.WrongState, match="made by COLDQ, but this is RECOO"):
        coldq.RECOO(X).update(moved, FEEDBACK)


def test_a_state_of_another_dimension_is_named_as_such() -> None:
    wide = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=5), horizon=500)
    words = r"x has 5 coordinates, but the domain .* has 2"
    with pytest.raises(coldq.InvalidInput, match=words):
        MADE.from_arrays(saved(wide.init(1)), strict=False)
    with pytest.raises(coldq.WrongState, match=r"shape \(5,\), but the learner's domain has 2"):
        MADE.update(wide.init(1), FEEDBACK)


def test_a_price_or_constraint_of_wrong_length_is_named_as_such() -> None:
    for learner in (MADE, coldq.OGD(X, eta=0.1), coldq.Yi2021(X, 9, alpha0=1.0, gamma0=1.0)):
        with pytest.raises(coldq.InvalidInput, match="the loss has 3 coordinates, but the deci"):
            learner.update(learner.init(1), coldq.Feedback(coldq.Linear([1.0, 2.0, 3.0]), ROW))
    wide = coldq.Affine([[1.0, 1.0, 1.0]], [1.0])
    with pytest.raises(coldq.InvalidInput, match="the constraint has 3 coordinates, but"):
        MADE.update(MADE.init(1), coldq.Feedback(coldq.Linear([1.0, 2.0]), wide))


# Members that come and go


@every_learner
def test_members_taken_updated_and_put_back_are_those_of_the_whole_batch(learner) -> None:
    who, prices = np.array([3, 1]), np.array([[-1.0, -2.0], [-3.0, 1.0]])
    A, b = np.ones((2, 1, 2)), np.array([[1.0], [0.5]])
    tenants = learner.init(1, batch=(5,))
    for _ in range(4):
        before = tenants.to_arrays()
        part = learner.update(
            tenants.take(who), coldq.Feedback(coldq.Linear(prices), coldq.Affine(A, b))
        )
        tenants = tenants.put(who, part)
        assert before["t"][0] == 1
    np.testing.assert_array_equal(tenants.t, [1, 5, 1, 5, 1])
    for place, k in ((3, 0), (1, 1)):
        alone = learner.init(1)
        for _ in range(4):
            alone = learner.update(
                alone, coldq.Feedback(coldq.Linear(prices[k]), coldq.Affine(A[k], b[k]))
            )
        assert tenants.take(place).x.tobytes() == alone.x.tobytes()
        again = learner.update(
            tenants.take(place), coldq.Feedback(coldq.Linear(prices[k]), coldq.Affine(A[k], b[k]))
        )
        assert again.t == 6
    restored = learner.from_arrays(saved(tenants))
    assert restored.x.tobytes() == tenants.x.tobytes()


def test_one_flags_and_negative_places_name_members() -> None:
    tenants = MADE.init(1, start=np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]))
    assert tenants.take(1).x.tolist() == [0.2, 0.2]
    assert tenants.take(-1).x.tolist() == [0.3, 0.3]
    assert tenants.take([True, False, True]).x[:, 0].tolist() == [0.1, 0.3]
    assert tenants.take([]).batch == (0,)
    assert tenants.take([2, 2]).x[:, 0].tolist() == [0.3, 0.3]
    assert tenants.put(0, tenants.take(2)).x[:, 0].tolist() == [0.3, 0.2, 0.3]
    with pytest.raises(ValueError, match="read-only"):
        tenants.put(0, tenants.take(2)).x[0] = 7.0


def test_members_of_several_axes_are_named_along_the_first() -> None:
    tenants = MADE.init(1, batch=(3, 4))
    assert tenants.take([0, 2]).batch == (2, 4)
    assert tenants.put([0, 2], tenants.take([1, 1])).batch == (3, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.take([3]), "some of 3 members, but has 3"),
        (lambda s: s.take(-4), "some of 3 members, but has -4"),
        (lambda s: s.take([0.5]), "indices must be a whole number"),
        (lambda s: s.take([[0]]), "indices must be a whole number"),
        (lambda s: s.take([True, False]), "one flag for each of the 3 members"),
        (lambda s: s.take("a"), "indices must be a whole number"),
        (lambda s: MADE.init(1).take([0]), "one member, without an axis"),
        (lambda s: s.put([0, 0], s.take([0, 1])), "has 0 several times"),
        (lambda s: s.put([0, -3], s.take([0, 1])), "has 0 several times"),
        (lambda s: s.put([0], s.take([0, 1])), r"leading axes \(1,\), but have \(2,\)"),
        (lambda s: s.put([0], 3), "a QueueState, but got a int"),
        (lambda s: s.put([0], coldq.OGD(X, eta=0.1).init(1, batch=(1,))), "but got a State"),
        (lambda s: s.put([0], coldq.RECOO(X).init(1, batch=(1,))), "made by RECOO, but this is"),
        (
            lambda s: s.put([0], coldq.COLDQ(X, horizon=10).init(1, batch=(1,))),
            r"members were made by COLDQ\(eta=0.1, .*horizon differ",
        ),
        (lambda s: s.put([0], MADE.init(2, batch=(1,))), "queue of the members .* constraints"),
    ],
)
def test_members_that_cannot_be_taken_or_put_get_a_sentence(call, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call(MADE.init(1, batch=(3,)))


def test_the_axes_of_a_learners_own_parameters_are_not_parted() -> None:
    several = coldq.COLDQ(X, alpha=np.ones(3), eta=0.5, gamma=1.0)
    with pytest.raises(coldq.InvalidInput, match=r"whose own .* leading axes \(3,\)"):
        several.init(1).take([0])
    assert several.init(1, batch=(2, 3)).take([0]).batch == (1, 3)
    network = coldq.Decentralised(MADE, np.eye(2))
    with pytest.raises(coldq.InvalidInput, match=r"agents have the leading axes \(2,\)"):
        network.init(1).take([0])
    assert network.init(1, batch=(5,)).take([4]).batch == (1, 2)


# Values


@every_learner
def test_replace_does_not_keep_what_followed_from_the_old_arguments(learner) -> None:
    with pytest.raises(ValueError, match="cannot be specified with replace"):
        dataclasses.replace(learner, horizon=10)
    if sys.version_info >= (3, 13):
        with pytest.raises(ValueError, match="cannot be specified with replace"):
            copy.replace(learner, horizon=10)


def test_every_parameter_may_still_be_spelled_out() -> None:
    known = {"domain": X, "horizon": 10, "alpha": 1.0, "eta": 0.1, "gamma": 5.0}
    assert coldq.COLDQ(**known) == coldq.COLDQ(X, 10, alpha=1.0)


class Labels(list):
    """Labels of a Series or frame."""


class Places:
    """The labels that a Series has if none are given: a range."""

    start, step = 0, 1

    def __iter__(self):
        return iter(range(2))


class Series:
    """A pandas Series as far as NumPy sees it."""

    def __init__(self, values, **labels) -> None:
        self.held = np.asarray(values)
        self.__dict__.update(labels)

    def to_numpy(self) -> np.ndarray:
        return self.held

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.held, dtype)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"index": Labels(["b", "a"])}, r"the index \['b', 'a'\]"),
        ({"index": Places(), "columns": Labels(["b", "a"])}, r"the columns \['b', 'a'\]"),
        ({"coords": {"place": [1, 2]}}, r"the coordinates \['place'\]"),
    ],
)
def test_labels_that_would_be_ignored_are_refused(labels, words: str) -> None:
    prices = Series([1.0, 2.0], **labels)
    for call in (
        lambda: coldq.Linear(prices),
        lambda: X.project(prices),
        lambda: MADE.init(1, start=prices),
        lambda: coldq.Affine([[1.0, 1.0], [1.0, 0.0]], prices),
        lambda: coldq.penalised_step(prices, [0.0, 0.0], 1.0, 1.0, ROW, X),
        lambda: coldq.Smooth(lambda x: 1.0, lambda x: prices).gradient([0.0, 0.0]),
    ):
        with pytest.raises(coldq.InvalidInput, match=f"has labels, {words}.*pass its to_numpy"):
            call()
    assert coldq.Linear(prices.to_numpy()).c.tolist() == [1.0, 2.0]


def test_a_plain_range_of_labels_says_nothing_and_passes() -> None:
    assert coldq.Linear(Series([1.0, 2.0], index=Places())).c.tolist() == [1.0, 2.0]
    assert coldq.Linear(Series([1.0, 2.0], coords={})).c.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("answer", ["no", 1j, [1.0, [2.0]], None, object(), [np.nan], [1.0, 2.0]])
def test_a_function_of_the_users_own_that_returns_nonsense_gets_a_sentence(answer) -> None:
    g = coldq.Convex(lambda x: answer, lambda x: answer, lambda x: answer)
    for call in (g.value, g.jacobian, g.hessian, coldq.Smooth(lambda x: answer, np.sin).value):
        with pytest.raises(coldq.InvalidInput, match=r"the (constraint|loss).*return"):
            call([0.0, 0.0])


def test_classes_and_numbers_in_place_of_values_get_a_sentence() -> None:
    with pytest.raises(coldq.InvalidInput, match="hessian_function must be a function or None"):
        coldq.Convex(np.sin, np.cos, 3)  # type: ignore[arg-type]
    with pytest.raises(coldq.InvalidInput, match="Stacked takes constraints such as"):
        coldq.Stacked(coldq.Affine)
    with pytest.raises(coldq.InvalidInput, match="loss must be made of data, but is the class"):
        coldq.Feedback(coldq.Linear, None)  # type: ignore[arg-type]


def test_arrays_saved_before_a_learner_had_a_reading_count_as_of_its_default() -> None:
    def made(index: str) -> coldq.Yi2023:
        return coldq.Yi2023(X, alpha=1.0, beta=0.5, gamma=1.0, index=index)

    arrays = made("t").init(1).to_arrays()
    text = json.loads(str(arrays["learner"]))
    del text["parameters"]["index"]
    arrays["learner"] = np.array(json.dumps(text))
    np.testing.assert_array_equal(made("t").from_arrays(arrays).x, np.zeros(2))
    with pytest.raises(coldq.InvalidInput, match="index differs"):
        made("t+1").from_arrays(arrays)


@pytest.mark.parametrize("batch", [(), (1000,)], ids=str)
@every_learner
def test_a_state_prints_slot_and_decision_in_at_most_twelve_lines(learner, batch):
    state = learner.init(3, batch=batch)
    lines = repr(state).splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 120
    assert lines[0] == type(learner).__name__
    assert [line.split()[0] for line in lines[1:3]] == ["slot", "decision"]
    assert state._repr_html_().count("<tr>") == len(lines) - 1


def test_a_state_that_keeps_a_rate_says_how_often_and_with_which_margin():
    learner = coldq.SafetyMargin(coldq.COLDQ(coldq.Box(0.0, 9.0, dim=1), horizon=9), 0.1)
    state = learner.init(1)
    for demand in (1.0, 2.0, 8.0):
        rows = coldq.Affine([[-1.0]], [-demand])
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), rows))
    said = dict(line.strip().split("  ", 1) for line in repr(state).splitlines()[1:])
    assert said["slots booked"].strip() == "3"
    assert said["violated"].strip() == str(state.violated)
    assert float(said["rate so far, %"]) == pytest.approx(100.0 * state.violated / 3.0, rel=1e-5)
    assert said["margin"].strip().startswith("[")
