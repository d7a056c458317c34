"""Things that people do by mistake: each is refused with a sentence, and memory stays safe."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners import ALGORITHMS
from coldq.learners.card import CONSTRAINT, WHOLE_CONSTRAINT
from coldq.slot.schedules import Power

X = coldq.Box(0.0, 10.0, dim=3)
FEEDBACK = coldq.Feedback(coldq.Linear(-np.ones(3)), coldq.Affine(np.ones((1, 3)), [1.0]))
LINEAR = coldq.problems.OnlineLinear(horizon=3)
ASKED = {"Wang2023": {"delay": 1}, "PolyakFeasibility": {"slack": 0.1}}
PROX = [
    coldq.COLDQ(X, horizon=10),
    coldq.RECOO(X),
    coldq.RECOO(X, reading="comparison"),
    coldq.Yi2021(X, 10, alpha0=1.0, gamma0=1.0),
    coldq.YuNeely2020(X, 10, lipschitz=1.0),
    coldq.MOSP(X, 10),
    coldq.COLDQExpert(X, horizon=10),
]
every_prox_learner = pytest.mark.parametrize("learner", PROX, ids=lambda a: type(a).__name__)


class Own:
    """A loss or constraint of the user's own, from plain functions."""

    def __init__(self, value=None, gradient=None, jacobian=None) -> None:
        self.value = value or (lambda x: np.zeros(x.shape[:-1]))
        self.gradient = gradient or np.ones_like
        self.jacobian = jacobian


@every_prox_learner
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("width", [2, 5, 4000])
def test_a_constraint_with_other_coordinates(learner, batch, width: int) -> None:
    for g in (
        coldq.Affine(np.ones((1, width)), [1.0]),
        coldq.LogCapacity(1.0, np.ones(width), np.ones(width)),
    ):
        state = learner.init(1, batch=batch)
        with pytest.raises(coldq.InvalidInput):
            learner.update(state, coldq.Feedback(coldq.Linear([-1.0, -2.0, -3.0]), g))


@every_prox_learner
@pytest.mark.parametrize("rows", [0, 1])
def test_a_state_from_a_learner_on_another_domain(learner, rows: int) -> None:
    wide = coldq.Box(0.0, 1.0, dim=50)
    stranger = coldq.COLDQ(wide, horizon=10).init(rows)
    if isinstance(learner, coldq.COLDQExpert):
        stranger = coldq.COLDQExpert(wide, horizon=10).init(rows)
    g = coldq.Affine(np.ones((rows, 50)), np.ones(rows)) if rows else None
    with pytest.raises(coldq.InvalidInput, match=r"made by COLDQ|coordinates"):
        learner.update(stranger, coldq.Feedback(coldq.Linear(-np.ones(50)), g))


@pytest.mark.parametrize(
    "learner",
    [
        coldq.COLDQ(X, alpha=1.0, eta=0.5, gamma=np.ones(4)),
        coldq.COLDQ(X, alpha=1.0, eta=0.5, gamma=np.ones((1,) * 25 + (4,))),
        coldq.COLDQ(X, alpha=Power(0.5, np.ones(4)), eta=0.5, gamma=1.0),
        coldq.COLDQ(coldq.Box(np.zeros((4, 3)), 5.0), horizon=10),
    ],
)
def test_parameters_with_leading_axes_and_a_state_without(learner) -> None:
    state = coldq.COLDQ(X, alpha=1.0, eta=0.5, gamma=1.0).init(1)
    with pytest.raises(coldq.InvalidInput, match="batch"):
        learner.from_arrays(state.to_arrays(), strict=False)
    with pytest.raises(coldq.InvalidInput, match="fit together"):
        learner.update(state, FEEDBACK)


def test_a_schedule_whose_shape_changes() -> None:
    learner = coldq.Yi2021(X, alpha=1.0, gamma=lambda t: 1.0 if t < 2 else np.ones(5))
    with pytest.raises(coldq.InvalidInput, match="fit together"):
        learner.update(learner.init(1), FEEDBACK)


@pytest.mark.parametrize(
    "x",
    [np.array([5, 5, 5]), np.array([5.0, 1, 5, 1, 5, 1])[::2], np.array([5, 1, 5], np.float32)],
    ids=["integers", "strided", "single precision"],
)
def test_a_state_changed_by_hand(x: np.ndarray) -> None:
    learner = coldq.COLDQ(X, horizon=10)
    with pytest.raises(coldq.InvalidInput, match="changed by hand"):
        learner.update(dataclasses.replace(learner.init(1), x=x), FEEDBACK)


@pytest.mark.parametrize("name", ["center", "gradient", "multiplier_upper"])
@pytest.mark.parametrize("batch", [(), (4,)])
@pytest.mark.parametrize("domain", [X, coldq.Simplex(3)])
def test_a_step_says_which_array_no_kernel_can_read(name: str, batch, domain) -> None:
    rows = coldq.Affine(np.ones((2, 3)), [1.0, 2.0])
    sound = {"center": np.zeros((*batch, 3)), "gradient": np.ones((*batch, 3))}
    sound |= {"alpha": np.ones(batch), "multiplier_upper": np.ones((*batch, 2))}
    array = sound[name]
    odd = {
        "float32": array.astype(np.float32),
        "int64": array.astype(np.int64),
        "float64 with gaps": np.repeat(array, 2, axis=-1)[..., ::2],
    }
    for words, given in odd.items():
        with pytest.raises(coldq.InvalidInput, match=f"^{name} must be .*, but is of {words}"):
            coldq.slot.step.solve(**{**sound, name: given}, constraint=rows, domain=domain)
    with pytest.raises(coldq.InvalidInput, match="do not fit together"):
        coldq.slot.step.solve(
            **{**sound, name: np.ones((*batch, 4))}, constraint=rows, domain=domain
        )


def test_a_loss_cannot_change_the_state() -> None:
    def gradient(x: np.ndarray) -> np.ndarray:
        x -= 1.0
        return x

    learner = coldq.COLDQ(X, horizon=10)
    state = learner.init(1, start=[5.0, 5.0, 5.0])
    with pytest.raises(ValueError, match="read-only"):
        learner.update(state, coldq.Feedback(Own(gradient=gradient), FEEDBACK.constraint))
    assert (state.x == 5.0).all()


@pytest.mark.parametrize(
    "give",
    [
        lambda x: np.ones(x.shape, np.float32),
        lambda x: np.ones(x.shape, int),
        lambda x: np.ones(x.shape).tolist(),
        lambda x: np.asfortranarray(np.ones(x.shape)),
        lambda x: np.ones((*x.shape, 2))[..., 0],
        lambda x: np.ones(3),  # the same for all members of a batch
    ],
)
def test_a_gradient_of_any_numeric_kind_is_taken(give) -> None:
    for learner in (*PROX, coldq.OGD(X, eta=0.1)):
        for batch in ((), (4,)):
            state = learner.init(1, batch=batch, start=[5.0, 5.0, 5.0])
            plain = learner.update(
                state, coldq.Feedback(coldq.Linear(np.ones(3)), FEEDBACK.constraint)
            )
            own = learner.update(state, coldq.Feedback(Own(gradient=give), FEEDBACK.constraint))
            assert own.x.tobytes() == plain.x.tobytes()


@pytest.mark.parametrize(
    "g",
    [
        Own(lambda x: [np.nan, 2.0], jacobian=lambda x: np.ones((2, 3))),
        Own(lambda x: [1.0, 2.0, 3.0], jacobian=lambda x: np.ones((2, 3))),
        Own(lambda x: None, jacobian=lambda x: np.ones((2, 3))),
        Own(lambda x: "no", jacobian=lambda x: np.ones((2, 3))),
        Own(lambda x: [1.0, 2.0], jacobian=lambda x: np.ones((5, 2, 3))),
        Own(lambda x: [1.0, 2.0], jacobian=lambda x: np.ones((3, 3))),
        Own(lambda x: [1.0, 2.0], jacobian=lambda x: np.ones((2, 4))),
        Own(lambda x: [1.0, 2.0], jacobian=lambda x: [[1.0, 2.0, 3.0], [1.0]]),
        Own(lambda x: [1.0, 2.0], jacobian=lambda x: 1j * np.ones((2, 3))),
    ],
)
def test_a_constraint_of_the_users_own_that_returns_nonsense(g) -> None:
    for learner in (
        coldq.Yi2023.from_exponents(X, a=1.0, b=1.0, g=1.0),
        coldq.SinhaVaze(X, horizon=10, lipschitz=1.0),
        coldq.Mahdavi2012(X, 10, eta=0.1, delta=1.0),
        coldq.Jenatton2016(X, lipschitz=1.0),
        coldq.YuanLamperski2018(X, 10, eta=0.1, sigma=1.0),
        coldq.YuNeelyWei2017(X, 10),
    ):
        with pytest.raises(coldq.InvalidInput):
            learner.update(learner.init(2), coldq.Feedback(coldq.Linear(np.ones(3)), g))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
def test_a_number_that_is_not_finite_is_named_and_changes_nothing(kind, number: float) -> None:
    def spoilt(x: np.ndarray) -> np.ndarray:
        return np.where(np.arange(x.shape[-1]) == 1, number, 1.0) + 0.0 * x

    problem = coldq.problems.OnlineLinear(horizon=1000)
    learner = kind.for_problem(problem, **ASKED.get(kind.__name__, {}))
    state, rows = learner.init(2), coldq.Affine(np.ones((2, 2)), [0.5, 0.5])
    before = {name: array.tobytes() for name, array in state.to_arrays().items()}
    cases: list[tuple[str, Any, Any]] = [("loss's gradient", Own(gradient=spoilt), rows)]
    if CONSTRAINT in kind.card.needs and WHOLE_CONSTRAINT not in kind.card.needs:
        flat, steep = np.zeros(2), np.zeros((2, 2))
        cases += [
            ("constraint's value", Own(), Own(spoilt, jacobian=lambda x: steep)),
            ("constraint's jacobian", Own(), Own(lambda x: flat, jacobian=lambda x: spoilt(steep))),
        ]
    for what, loss, g in cases:
        with pytest.raises(coldq.InvalidInput, match=f"{what} must be finite, but is {number}"):
            learner.update(state, coldq.Feedback(loss, g))
        assert before == {name: array.tobytes() for name, array in state.to_arrays().items()}


def test_a_constraint_of_the_users_own_that_no_step_can_solve() -> None:
    g = Own(lambda x: np.zeros((*x.shape[:-1], 1)), jacobian=lambda x: np.zeros((1, 3)))
    for learner in PROX:
        with pytest.raises(coldq.InvalidInput, match=r"no solver for a Own on a Box.*coldq.Convex"):
            learner.update(learner.init(1), coldq.Feedback(coldq.Linear(np.ones(3)), g))
        whole = coldq.Convex(g.value, g.jacobian)  # as the sentence says
        assert (
            learner.update(learner.init(1), coldq.Feedback(coldq.Linear(np.ones(3)), whole)).t == 2
        )


class Level:
    """A schedule object of the user's own."""

    def __init__(self, level) -> None:
        self.level = level

    def __call__(self, t):
        return self.level


@pytest.mark.parametrize("level", [-1.0, 0.0, np.inf, np.float64(-1.0)])
def test_a_schedule_object_of_the_users_own_is_checked(level) -> None:
    for make in (lambda s: coldq.COLDQ(X, horizon=10, alpha=s), lambda s: coldq.OGD(X, eta=s)):
        with pytest.raises(coldq.InvalidInput, match="positive and finite"):
            learner = make(Level(level))
            learner.update(learner.init(1), FEEDBACK)
    fine = coldq.Yi2023(X, alpha=Level(1.0), beta=partial(Level(1.0)), gamma=1.0)
    assert fine.update(fine.init(1), FEEDBACK).t == 2


class Tensor:
    """Refuses to become an array, as PyTorch's do while they record a gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


ANYTIME, CLASP = coldq.COLDQ.anytime(X), coldq.CLASP(X, eta=0.1)


def with_clock(learner, t):
    return dataclasses.replace(learner.init(1), t=t)


def played() -> coldq.Trace:
    problem = coldq.problems.TimeVarying(10)
    return coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PROX[0].init(1, batch=3), r"batch must be a tuple such as \(8,\), but is 3"),
        (lambda: PROX[0].init(1, batch=(2.5,)), "an axis of batch must be a whole number"),
        (lambda: PROX[0].update(PROX[0].init(1), (1, 2)), "update takes a coldq.Feedback"),
        (lambda: PROX[0].from_arrays(None), "the arrays must be"),
        (lambda: PROX[0].from_arrays(5), "the arrays must be a mapping, .* but are 5"),
        (lambda: PROX[-1].from_arrays(5), "the arrays must be a mapping, .* but are 5"),
        (lambda: PROX[0].update(None, FEEDBACK), "update takes a state, .* but got None"),
        (lambda: PROX[-1].update(None, FEEDBACK), "update takes a state, .* but got None"),
        (lambda: coldq.OGD(X, eta=1.0).update(None, FEEDBACK), "update takes a state"),
        (lambda: PROX[0].update(with_clock(PROX[0], 2), FEEDBACK), "state.t must be an array"),
        (lambda: ANYTIME.update(with_clock(ANYTIME, 2), FEEDBACK), "state.t must be an array"),
        (lambda: PROX[0].update(PROX[0].init(2), FEEDBACK), "fill up with rows that always hold"),
        (lambda: CLASP.update(CLASP.init(2), FEEDBACK), "fill up with rows that always hold"),
        (lambda: coldq.path_length(played()), "path_length takes a comparator, .* got Trace"),
        (lambda: coldq.constraint_variation(played(), [0]), "a problem needs domain"),
        (lambda: coldq.dynamic_comparator(played()), "a problem needs domain"),
        (lambda: coldq.static_comparator(object()), "a problem needs domain"),
        (lambda: coldq.growth_exponent(5), "running_total needs at least one axis"),
        (lambda: coldq.growth_exponent([]), "running_total must have at least one slot"),
        (lambda: coldq.Linear(Tensor()), "c must be an array of numbers"),
        (lambda: coldq.COLDQ(X, alpha=1.0, eta=[0.1, 0.2], gamma=np.ones(3)), "do not fit"),
        (lambda: coldq.COLDQ(X, horizon=10, path_exponent="a"), "path_exponent must be real"),
        (lambda: coldq.COLDQ(coldq.Box, horizon=10), "domain must be a domain such as"),
        (lambda: Power(np.ones(2), np.ones(3)), "do not fit together"),
        (lambda: coldq.Box([[1], [1, 2]], 5.0), "lower must be an array of numbers"),
        (lambda: coldq.Linear([[1.0], [1.0, 2.0]]), "c must be an array of numbers"),
        (lambda: X.project("abc"), "x must be real numbers"),
        (lambda: X.project([1j, 0.0, 0.0]), "x must be real numbers"),
        (lambda: coldq.problems.TimeVarying(10).start([0]).reveal(0, None), "slot 0 has passed"),
        (
            lambda: PROX[0].update(coldq.OGD(X, eta=0.1).init(1), FEEDBACK),
            "made by OGD, but",
        ),
        (
            lambda: PROX[-1].update(PROX[0].init(1), FEEDBACK),
            "but this is COLDQExpert",
        ),
        (lambda: coldq.simulate(PROX[0], FEEDBACK), "a problem needs domain"),
        (lambda: coldq.OGD.for_problem(FEEDBACK), "a problem needs domain"),
        (lambda: coldq.simulate(None, coldq.problems.TimeVarying(10)), "a learner needs domain"),
        (lambda: coldq.hard_violation(PROX[0].init(1)), "this takes a Trace"),
        (lambda: coldq.dynamic_regret(3), "this takes a Trace"),
        (lambda: coldq.bound_report(None), "this takes a Trace"),
        (lambda: coldq.soft_violation(played(), norm="two"), "norm must be a number"),
        (lambda: coldq.Smooth(3, np.ones_like), "value_function must be a function"),
        (lambda: coldq.LogCapacity(np.ones(2), [1.0], [1.0]).value(np.ones((4, 1))), "not fit"),
    ],
)
def test_other_mistakes_get_a_sentence(call, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call()


class Plain:
    """A problem of the user's own, without any base class."""

    domain, horizon, n_constraints = coldq.Box(0.0, 1.0, dim=2), 5, 1

    def __init__(self, loss, constraint) -> None:
        self.revealed = loss, constraint

    def start(self, seeds):
        return self

    def reveal(self, t, x):
        return coldq.Feedback(*self.revealed)


def test_simulate_records_nothing_that_does_not_fit() -> None:
    learner = coldq.OGD(Plain.domain, eta=0.1)
    rows = coldq.Affine(np.ones((1, 2)), [1.0])
    fine = coldq.simulate(learner, Plain(coldq.Linear([1.0, 1.0]), rows), seeds=range(4))
    assert fine.loss.shape == (4, 5)
    for loss, g, words in [
        (Own(lambda x: ((x - 1.0) ** 2).sum()), rows, r"must have the shape \(4,\), but has \(\)"),
        (Own(lambda x: np.full(4, np.nan)), rows, "the loss of slot 1 must be finite"),
        (coldq.Linear([1.0, 1.0]), None, r"must have the shape \(4, 1\), but has \(4, 0\)"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.simulate(learner, Plain(loss, g), seeds=range(4))
    with pytest.raises(coldq.InvalidInput, match="seeds must be several"):
        coldq.simulate(learner, Plain(coldq.Linear([1.0, 1.0]), rows), seeds=3)  # type: ignore[arg-type]
    kept = coldq.simulate(learner, Plain(coldq.Linear([1.0, 1.0]), rows), [0], keep="decisions")
    assert kept.decisions is not None


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "3", None, True])
def test_a_problem_has_a_whole_number_of_slots(horizon) -> None:
    problem = Plain(coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((1, 2)), [1.0]))
    problem.horizon = horizon
    for call in (
        lambda: coldq.simulate(coldq.OGD(problem.domain, eta=0.1), problem, seeds=[0]),
        lambda: coldq.COLDQ.for_problem(problem),
        lambda: coldq.dynamic_comparator(problem, seeds=[0]),
        lambda: coldq.compare(problem, ["COLDQ"]),
    ):
        with pytest.raises(coldq.InvalidInput, match="a problem's horizon must be a whole number"):
            call()


def test_what_a_problem_starts_must_reveal() -> None:
    problem = Plain(coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((1, 2)), [1.0]))
    problem.start = lambda seeds: None  # type: ignore[method-assign]
    for call in (
        lambda: coldq.simulate(coldq.OGD(problem.domain, eta=0.1), problem, seeds=[0]),
        lambda: coldq.dynamic_comparator(problem, seeds=[0]),
    ):
        with pytest.raises(coldq.InvalidInput, match=r"start\(seeds\) .* needs reveal"):
            call()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "must return x and loss, but returned None"),
        (np.zeros((1, 5, 2)), "must return x and loss"),
        ((np.zeros((1, 5, 3)), np.zeros((1, 5))), r"x .* must have the shape \(1, 5, 2\)"),
        ((np.zeros((1, 5, 2)), np.zeros(5)), r"loss .* must have the shape \(1, 5\)"),
        ((np.full((1, 5, 2), np.nan), np.zeros((1, 5))), "x of best_decisions must be finite"),
    ],
)
def test_best_decisions_that_are_none_are_refused(said, words: str) -> None:
    problem: Any = Plain(coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((1, 2)), [1.0]))
    problem.best_decisions = lambda seeds: said
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.dynamic_comparator(problem, seeds=[0])


@pytest.mark.parametrize("said", [None, [0.0, 0.0], np.full((1, 2), np.nan)])
def test_a_best_fixed_decision_that_is_none_is_refused(said) -> None:
    problem: Any = Plain(coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((1, 2)), [1.0]))
    problem.best_fixed_decision = lambda seeds: said
    with pytest.raises(coldq.InvalidInput, match="what best_fixed_decision returns must"):
        coldq.static_comparator(problem, seeds=[0])


def test_best_decisions_may_be_lists() -> None:
    problem: Any = Plain(coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((1, 2)), [1.0]))
    problem.best_decisions = lambda seeds: ([[[0.0, 0.0]] * 5], [[0.0] * 5])
    problem.best_fixed_decision = lambda seeds: [[0.0, 0.0]]
    trace = coldq.simulate(coldq.OGD(problem.domain, eta=0.1), problem, seeds=[0])
    for regret in (coldq.dynamic_regret, coldq.static_regret):
        assert regret(trace) == trace.loss.sum()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda trace: coldq.plot_compare(np.array(2)), "traces must be several"),
        (lambda trace: trace.plot(np.array(2)), "what must be names"),
        (
            lambda trace: coldq.simulate(trace.learner, LINEAR, [0], keep=np.array(2)),
            "keep must be",
        ),
    ],
)
def test_an_array_without_axes_is_not_several(call, words: str) -> None:
    trace = coldq.simulate(coldq.COLDQ.for_problem(LINEAR), LINEAR, [0])
    with pytest.raises(coldq.InvalidInput, match=words):
        call(trace)


class Answering(Plain):
    """An adversary who does not say that it is one."""

    def __init__(self) -> None:
        pass

    def reveal(self, t, x):
        return coldq.Feedback(coldq.Linear(x - 0.5), coldq.Affine(np.ones((1, 2)), [1.0]))


def test_an_adversary_that_does_not_say_so_gets_no_wrong_regret() -> None:
    problem = Answering()
    learner = coldq.COLDQ(problem.domain, horizon=5)
    silent = coldq.dynamic_regret(coldq.simulate(learner, problem, seeds=[0]))
    with pytest.raises(coldq.InvalidInput, match=r"give it adaptive = True"):
        coldq.dynamic_comparator(problem, [0])
    problem.adaptive = True
    trace = coldq.simulate(learner, problem, seeds=[0], keep="decisions")
    np.testing.assert_array_equal(coldq.dynamic_regret(trace), silent)


def test_a_learner_with_leading_axes_is_not_paired_with_seeds() -> None:
    problem = coldq.problems.TimeVarying(horizon=10)
    learner = coldq.COLDQ(problem.domain, horizon=10, gamma=np.ones(2))
    with pytest.raises(coldq.InvalidInput, match=r"own parameters make a batch of \(2,\)"):
        coldq.simulate(learner, problem, seeds=[0, 1])


def test_comparators_of_unusual_requests() -> None:
    problem = coldq.problems.TimeVarying(horizon=10)
    twice = coldq.dynamic_comparator(problem, [0, 0, 1])
    assert twice.x.shape == (3, 10, 10)
    assert (twice.x[0] == twice.x[1]).all()
    # A user's problem may change: its answers are not cached.
    mine = Plain(coldq.Linear([1.0, 1.0]), None)
    assert coldq.dynamic_comparator(mine, [0]).loss.sum() == 0.0
    mine.revealed = coldq.Linear([-1.0, -1.0]), None
    assert coldq.dynamic_comparator(mine, [0]).loss.sum() == -10.0


@pytest.mark.parametrize("high", [1e3, 1e8])
def test_comparators_on_a_wide_domain(high: float) -> None:
    problem = Plain(coldq.Linear([-1.0, -1.0]), None)
    problem.domain = coldq.Box(0.0, high, dim=2)  # type: ignore[misc]
    assert (coldq.dynamic_comparator(problem, [0]).x == high).all()
    assert (coldq.static_comparator(problem, [0]).x == high).all()


def test_a_loss_without_a_minimum_is_not_given_one() -> None:
    problem = Plain(coldq.Linear([-1.0, -1.0]), None)
    problem.domain = coldq.Box(0.0, np.inf, dim=2)  # type: ignore[misc]
    with pytest.raises(coldq.Error, match="unbounded from below"):
        coldq.dynamic_comparator(problem, [0])


@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_domain_of_one_point_is_played(kind, batch) -> None:
    point = np.broadcast_to([0.3, 0.5], (*batch, 2))
    problem = Plain(coldq.Linear([1.0, 2.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
    problem.domain, problem.horizon = coldq.Box([0.3, 0.5], [0.3, 0.5]), 40
    problem.constants = dataclasses.replace(LINEAR.constants, diameter=0.0)  # type: ignore[attr-defined]
    more = {"Wang2023": {"delay": 0}, "PolyakFeasibility": {"slack": 0.1}}.get(kind.__name__, {})
    learner = kind.for_problem(problem, **more)
    state = learner.init(1, batch=batch)
    for t in range(1, 5):
        state = learner.update(state, problem.reveal(t, state.x))
        np.testing.assert_allclose(state.x, point, rtol=1e-12)


def test_an_empty_batch_runs() -> None:
    others = coldq.SinhaVaze(X, 10, lipschitz=1.0), coldq.OGD(X, eta=1.0), coldq.SelfTuning(X, 0.1)
    for learner in (*PROX, *others, coldq.SafetyMargin(coldq.COLDQ(X, horizon=9), 0.1)):
        state = learner.init(1, batch=(0,))
        assert learner.update(state, FEEDBACK).x.shape == (0, 3)


CONSTANTS = coldq.problems.OnlineLinear(horizon=1000).constants
NO_CONSTANTS = {
    *("COLDQExpert", "COLDQDoubling", "RECOO", "RECOOExpert", "MOSP"),
    *("YuNeelyWei2017", "WeiYuNeely2020", "CaoZhangPoor2021", "SelfTuning", "BestResponse"),
    *("ForecastWithMargin", "SupanthaSinha2026ProjectionFree"),
}


@pytest.mark.parametrize(
    "learner", [a for a in ALGORITHMS if a.__name__ not in NO_CONSTANTS], ids=lambda a: a.__name__
)
def test_constants_that_a_problem_lacks_are_asked_for_and_taken(learner) -> None:
    asked = {"scaled": True} if learner is coldq.COLDQ else ASKED.get(learner.__name__, {})
    mine = Plain(coldq.Linear([1.0, 1.0]), None)
    mine.horizon = 1000  # type: ignore[misc]
    with pytest.raises(coldq.InvalidInput, match=r"Plain does not say its \w+.*pass \w+= to for_"):
        learner.for_problem(mine, **asked)
    known = {name: 2.0 * getattr(CONSTANTS, name) for name in ("gradient_bound", "diameter")}
    known |= {"constraint_bound": 3.0, "constraint_lipschitz": 0.5}
    given = learner.for_problem(mine, **asked, **known)
    mine.constants = dataclasses.replace(CONSTANTS, **known)  # type: ignore[attr-defined]
    assert learner.for_problem(mine, **asked) == given
    with pytest.raises(coldq.InvalidInput, match="must be positive"):
        learner.for_problem(mine, **asked, **dict.fromkeys(known, -1.0))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (coldq.Mahdavi2012, "eta delta"),
        (coldq.CaoLiu2019, "eta delta"),
        (coldq.CaoZhangPoor2021, "eta delta"),
        (coldq.YuanLamperski2018, "eta sigma"),
        (coldq.Wang2023, "alpha eta gamma"),
    ],
)
def test_parameters_that_theory_sets_may_be_given_instead(kind, names: str) -> None:
    problem, asked = coldq.problems.OnlineLinear(horizon=1000), ASKED.get(kind.__name__, {})
    usual, every = kind.for_problem(problem, **asked), names.split()
    for name in every:
        learner = kind.for_problem(problem, **asked, **{name: 0.03})
        assert getattr(learner, name) == 0.03
        others = (other for other in every if other != name)
        assert all(getattr(learner, other) == getattr(usual, other) for other in others)
    nothing_known = Plain(coldq.Linear([1.0, 1.0]), None)
    assert kind.for_problem(nothing_known, **asked, **dict.fromkeys(every, 0.03)).horizon == 5


@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
def test_a_keyword_that_a_learner_does_not_take_is_named_beside_those_it_takes(kind) -> None:
    problem = coldq.problems.OnlineLinear(horizon=1000)
    words = rf"{kind.__name__}\.for_problem does not take 'alpah'; it takes \w+"
    with pytest.raises(coldq.InvalidInput, match=words):
        kind.for_problem(problem, **ASKED.get(kind.__name__, {}), alpah=1.0)
    for name, given in {"horizon": 50, "domain": problem.domain}.items():
        with pytest.raises(coldq.InvalidInput, match=f"takes the problem's {name}, which is"):
            kind.for_problem(problem, **ASKED.get(kind.__name__, {}), **{name: given})


@pytest.mark.parametrize("kind", [coldq.OGD, coldq.CLASP, coldq.NestedProjections])
def test_a_step_may_be_given_in_place_of_the_bound_that_sets_it(kind) -> None:
    problem = Plain(coldq.Linear([1.0, 1.0]), None)  # which knows no bound
    assert kind.for_problem(problem, eta=0.03) == kind(problem.domain, eta=0.03)
    bound = "lipschitz" if kind is coldq.NestedProjections else "gradient_bound"
    with pytest.raises(coldq.InvalidInput, match=f"needs either {bound} or eta"):
        kind.for_problem(problem, eta=0.03, **{bound: 1.0})


@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
def test_a_problem_without_rows_is_played(kind) -> None:
    problem = Plain(coldq.Linear([1.0, 2.0]), None)
    problem.horizon, problem.n_constraints = 1000, 0
    problem.constants = CONSTANTS  # type: ignore[attr-defined]
    learner = kind.for_problem(problem, **ASKED.get(kind.__name__, {}))
    assert learner.update(learner.init(0), problem.reveal(1, np.zeros(2))).t == 2


@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
def test_constants_of_zero_are_no_reason_not_to_play(kind) -> None:
    problem = Plain(coldq.Linear([0.0, 0.0]), coldq.Affine([[0.0, 0.0]], [0.0]))
    problem.horizon = 1000  # type: ignore[misc]
    zero = dict.fromkeys(("gradient_bound", "constraint_bound", "constraint_lipschitz"), 0.0)
    problem.constants = dataclasses.replace(CONSTANTS, **zero)  # type: ignore[attr-defined]
    learner = kind.for_problem(problem, **ASKED.get(kind.__name__, {}))
    assert learner.update(learner.init(1), problem.reveal(1, np.zeros(2))).t == 2


@pytest.mark.parametrize("kind", ALGORITHMS, ids=lambda kind: kind.__name__)
def test_an_unbounded_domain_is_played_or_named(kind) -> None:
    problem = Plain(coldq.Linear([1.0, 2.0]), None)
    problem.domain, problem.horizon = coldq.Box(0.0, np.inf, dim=2), 1000
    problem.constants = dataclasses.replace(CONSTANTS, diameter=np.inf)  # type: ignore[attr-defined]
    try:
        kind.for_problem(problem, **ASKED.get(kind.__name__, {}))
    except coldq.InvalidInput as error:
        assert "bounded" in str(error)


def test_the_diameter_of_a_problem_is_its_domains() -> None:
    mine = Plain(coldq.Linear([1.0, 1.0]), None)
    learner = coldq.Yi2021.for_problem(mine, gradient_bound=2.0, constraint_lipschitz=1.0)
    expected = coldq.Yi2021.for_problem(mine, alpha0=np.sqrt(2.0) / 2.0, constraint_lipschitz=1.0)
    assert learner == expected


@pytest.mark.parametrize(
    ("batch", "slot", "words"),
    [
        ((), 7, r"is about slot 7, but the learner is in slot 1$"),
        ((), [], r"slot has shape \(0,\), which does not fit the batch \(\)"),
        ((), [1, 1], r"slot has shape \(2,\), which does not fit the batch \(\)"),
        ((), "one", r"is about slot one, but the learner is in slot 1$"),
        ((1000,), 2, r"in slot 1 in instances 0, 1, .* and 992 more of the batch"),
        (
            (1000,),
            [1] * 999 + [2],
            r"is about slot 2, but the learner is in slot 1 in instance 999",
        ),
        ((1000,), [1] * 999, r"slot has shape \(999,\), which does not fit the batch \(1000,\)"),
    ],
)
def test_a_slot_that_is_not_the_learners_own(batch, slot, words: str) -> None:
    revealed = coldq.Feedback(FEEDBACK.loss, FEEDBACK.constraint, slot=slot)
    for learner in (PROX[0], coldq.OGD(X, eta=0.1)):
        with pytest.raises(coldq.InvalidInput, match=words) as caught:
            learner.update(learner.init(1, batch=batch), revealed)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("slot", [1, np.int64(1), 1.0, np.array(1), [1, 1], np.ones((3, 1), int)])
def test_a_slot_may_be_any_number_and_one_for_each(slot) -> None:
    revealed = coldq.Feedback(FEEDBACK.loss, FEEDBACK.constraint, slot=slot)
    batch = (3, 2) if np.ndim(slot) == 2 else np.shape(slot)
    assert (PROX[0].update(PROX[0].init(1, batch=batch), revealed).t == 2).all()


@every_prox_learner
def test_values_that_overflow_the_queue_are_said_to_and_are_no_hard_rows(learner) -> None:
    huge = coldq.Affine(np.ones((1, 3)), [-1.5e308])
    state = learner.init(1)
    with (
        np.errstate(over="ignore"),
        pytest.raises(coldq.InvalidInput, match="queue which adds them up would not be finite"),
    ):
        for _ in range(200):
            state = learner.update(state, coldq.Feedback(coldq.Linear(np.ones(3)), huge))


def test_a_parameter_that_no_problem_tells_is_asked_for() -> None:
    class Asking(coldq.RECOO):
        def __init__(self, domain: Any, *, rate: float) -> None:
            super().__init__(domain, gamma=rate, eta=rate)

    with pytest.raises(coldq.InvalidInput, match=r"Asking.for_problem needs rate=, which no prob"):
        Asking.for_problem(LINEAR)
    assert Asking.for_problem(LINEAR, rate=2.0).domain == LINEAR.domain
