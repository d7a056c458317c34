"""The update in one compiled call gives the bits of the plain path, or leaves it to that."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.fused import at_once, experts_at_once
from coldq.slot.step import Residuals

P, N = 4, 3
RNG = np.random.default_rng(4)
X = coldq.Box(-1.0, [0.5, 1.0, 2.0, np.inf])

LEARNERS = {
    "COLDQ": coldq.COLDQ(X, horizon=50),
    "COLDQ that tracks": coldq.COLDQ(X, horizon=50, path_exponent=0.3),
    "COLDQ, strongly convex": coldq.COLDQ.strongly_convex(X, horizon=50, mu=0.7),
    "COLDQ, anytime": coldq.COLDQ.anytime(X),
    "COLDQ of a function": coldq.COLDQ(X, alpha=lambda t: 1.0 + t, eta=0.1, gamma=0.2),
    "COLDQ at a low price": coldq.COLDQ(X, alpha=0.5, eta=0.5, gamma=0.01),
    "COLDQDoubling": coldq.COLDQDoubling(X, epsilon=0.1),
    "Yi2021": coldq.Yi2021(X, alpha=coldq.schedules.Power(-0.4), gamma=coldq.schedules.Power(0.3)),
    "RECOO": coldq.RECOO(X),
    "RECOO, comparison": coldq.RECOO(X, reading="comparison"),
}


@contextmanager
def plainly() -> Iterator[None]:
    """Updates on the plain path alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coldq.learners.queue_learner.at_once", lambda *given: None)
        patch.setattr("coldq.learners.experts.experts_at_once", lambda *given: None)
        yield


def on_both_paths(learner: Any, state: Any, revealed: Any, **played: Any) -> Any:
    """The next state, which is the plain path's, and whose residual is told as it is there."""
    with Residuals() as told:
        following = learner.update(state, revealed, **played)
    with plainly(), Residuals() as plain:
        assert_same(following, learner.update(state, revealed, **played))
    assert (len(told.heard), told.worst) == (1, plain.worst)
    return following


def drawn(rng: np.random.Generator, kind: str, x: Any, lead: tuple[int, ...] = ()) -> Any:
    """A loss of a kind, whose data are those of each member or shared."""
    lead = lead if rng.random() < 0.5 else ()
    if kind == "linear":
        return coldq.Linear(3.0 * rng.normal(size=(*lead, P)))
    H, y = rng.normal(size=(*lead, 5, P)), rng.normal(size=5)
    if kind == "least squares":
        return coldq.LeastSquares(H, y)
    if kind == "quadratic":
        return coldq.Quadratic(np.swapaxes(H, -1, -2) @ H, rng.normal(size=P))
    return coldq.GradientAt(np.array(x), rng.normal(size=np.shape(x)))


def rows(rng: np.random.Generator, x: Any, lead: tuple[int, ...]) -> coldq.Affine:
    if rng.random() < 0.2:
        J = rng.normal(size=(*lead, N, P))
        return coldq.Affine.from_measurement(x, rng.normal(size=(*lead, N)), J)
    return coldq.Affine(rng.normal(size=(*lead, N, P)), 0.3 * rng.normal(size=N))


def assert_same(one: Any, other: Any) -> None:
    for name in one.names():
        a, b = getattr(one, name), getattr(other, name)
        assert type(a) is type(b), name
        if name == "experts":
            assert_same(a, b)
            continue
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), name
    assert one.fingerprint is other.fingerprint
    assert not one.x.flags.writeable


@pytest.mark.parametrize("kind", ["linear", "least squares", "quadratic", "measured"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
@pytest.mark.parametrize("name", LEARNERS)
def test_an_update_at_once_has_the_bits_of_the_plain_path(name: str, lead: Any, kind: str) -> None:
    learner, rng, taken = LEARNERS[name], np.random.default_rng(len(name) + len(kind)), 0
    state = learner.init(N, batch=lead)
    for t in range(1, 25):
        g = rows(rng, state.x, lead)
        revealed = coldq.Feedback(drawn(rng, kind, state.x, lead), g, slot=t)
        known_once = name == "RECOO" and g.measured is not None  # it asks for the next decision's
        if known_once:
            with pytest.raises(coldq.NotRevealed):
                learner.update(state, revealed)
            revealed = coldq.Feedback(revealed.loss, coldq.Affine(g.A, g.b), slot=t)
        taken += at_once(learner, state, revealed) is not None
        state = on_both_paths(learner, state, revealed)
    assert taken == (23 if lead else 24)  # slot 1 of a batch is left to the plain path


@pytest.mark.parametrize("kind", ["linear", "least squares", "quadratic", "measured"])
@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize("name", LEARNERS)
def test_feedback_about_a_decision_played_before_has_the_bits_of_the_plain_path(
    name: str, lead: Any, kind: str
) -> None:
    learner, rng, taken = LEARNERS[name], np.random.default_rng(len(name)), 0
    state = learner.init(N, batch=lead)
    for _ in range(12):
        played = np.clip(rng.normal(size=state.x.shape), X.lower, X.upper)
        g = coldq.Affine(rng.normal(size=(*lead, N, P)), 0.3 * rng.normal(size=N))
        revealed = coldq.Feedback(drawn(rng, kind, played, lead), g)
        taken += at_once(learner, state, revealed, played) is not None
        state = on_both_paths(learner, state, revealed, played=played)
    assert taken == (11 if lead else 12)


def test_what_was_played_is_checked_by_the_plain_path() -> None:
    learner = LEARNERS["COLDQ"]
    g = coldq.Affine(np.ones((1, P)), [1.0])
    state, revealed = learner.init(1), coldq.Feedback(coldq.Linear(np.ones(P)), g)
    for played in ([0.0, 0.0, 0.0, 0.0], np.zeros(P, int)):
        assert_same(
            learner.update(state, revealed, played=played),
            learner.update(state, revealed, played=np.zeros(P)),
        )
    with pytest.raises(coldq.InvalidInput, match="played must be finite"):
        learner.update(state, revealed, played=np.full(P, np.nan))
    with pytest.raises(coldq.InvalidInput, match="played"):
        learner.update(state, revealed, played=np.zeros(P + 1))


SUMS = {
    "simplex": coldq.Simplex(P),
    "capped simplex": coldq.Simplex(P, total=2.0, cap=0.8),
    "product": coldq.Product(coldq.Simplex(2, total=3.0), coldq.Box(-1.0, 1.0, dim=2)),
    "polytope of a budget": coldq.Polytope(np.ones((1, P)), [1.0], lower=0.0, upper=2.0),
}


@pytest.mark.parametrize("kind", ["linear", "least squares", "quadratic", "measured"])
@pytest.mark.parametrize("n", [0, 1, N, 20])
@pytest.mark.parametrize("domain", SUMS)
def test_on_sums_of_blocks_an_update_has_the_bits_of_the_plain_path(
    domain: str, n: int, kind: str
) -> None:
    X, rng, taken = SUMS[domain], np.random.default_rng(n + len(kind)), 0
    learners = [
        coldq.COLDQ(X, horizon=50),
        coldq.COLDQDoubling(X, epsilon=0.1),
        coldq.Yi2021(X, alpha=coldq.schedules.Power(-0.4), gamma=coldq.schedules.Power(0.3)),
        coldq.RECOO(X),
        coldq.RECOO(X, reading="comparison"),
    ]
    for learner in learners:
        state = learner.init(n)
        for t in range(1, 13):
            g = coldq.Affine(rng.normal(size=(n, P)), 0.3 * rng.normal(size=n))
            revealed = coldq.Feedback(drawn(rng, kind, state.x), g, slot=t)
            taken += at_once(learner, state, revealed) is not None
            state = on_both_paths(learner, state, revealed)
    assert taken > 45


def test_a_batch_and_a_ball_are_left_to_the_plain_path() -> None:
    revealed = coldq.Feedback(coldq.Linear(np.ones(P)), coldq.Affine(np.ones((1, P)), [0.5]))
    for X, batch in ((coldq.Simplex(P), (2,)), (coldq.Ball(np.zeros(P), 1.0), ())):
        learner = coldq.COLDQ(X, horizon=50)
        assert at_once(learner, learner.init(1, batch=batch), revealed) is None


EXPERTS = {
    "COLDQExpert": coldq.COLDQExpert(X, horizon=50),
    "COLDQExpert, shared": coldq.COLDQExpert(X, horizon=500, gradient="shared"),
    "RECOOExpert": coldq.RECOOExpert(X, horizon=50),
    "RECOOExpert, own": coldq.RECOOExpert(X, horizon=50, gradient="own"),
    "RECOOExpert, comparison": coldq.RECOOExpert(X, horizon=50, reading="comparison"),
    "Yi2021Expert": coldq.Yi2021Expert(X, horizon=50, alpha0=1.0, gamma0=0.5),
}


@pytest.mark.parametrize("kind", ["linear", "least squares", "quadratic"])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("name", EXPERTS)
def test_a_slot_of_experts_at_once_has_the_bits_of_the_plain_path(
    name: str, n: int, kind: str
) -> None:
    learner, rng, taken = EXPERTS[name], np.random.default_rng(len(name) + n), 0
    state = learner.init(n)
    for t in range(1, 25):
        g = coldq.Affine(rng.normal(size=(n, P)), 0.3 * rng.normal(size=n))
        revealed = coldq.Feedback(drawn(rng, kind, state.x), g, slot=t)
        taken += experts_at_once(learner, state, revealed) is not None
        state = on_both_paths(learner, state, revealed)
    assert taken == 23  # slot 1 is left to the plain path


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("domain", SUMS)
def test_experts_on_sums_of_blocks_have_the_bits_of_the_plain_path(domain: str, n: int) -> None:
    rng, taken = np.random.default_rng(n), 0
    for make in (coldq.COLDQExpert, coldq.RECOOExpert):
        learner = make(SUMS[domain], horizon=50)
        state = learner.init(n)
        for t in range(1, 25):
            g = coldq.Affine(rng.normal(size=(n, P)), 0.3 * rng.normal(size=n))
            revealed = coldq.Feedback(drawn(rng, "least squares", state.x), g, slot=t)
            taken += experts_at_once(learner, state, revealed) is not None
            state = on_both_paths(learner, state, revealed)
    assert taken > 40


def test_experts_say_what_is_wrong_as_on_the_plain_path() -> None:
    learner = coldq.COLDQExpert(X, horizon=3)
    q, A, b = np.ones(P), np.ones((N, P)), np.ones(N)
    make = coldq.Feedback.from_arrays
    state = learner.update(learner.init(N), make(c=q, A=A, b=b))
    for wrong, words in (
        (make(c=np.full(P, np.nan), A=A, b=b), "gradient must be finite, but is nan"),
        (make(c=np.ones(P + 1), A=A, b=b), "the loss has 5 coordinates"),
        (make(c=q, A=np.ones((N, P + 1)), b=b), "the constraint has 5 coordinates"),
        (make(c=q, A=A[:2], b=b[:2]), "was started for 3"),
        (make(c=np.ones((2, P)), A=A, b=b), "not enlarge it"),
        (make(c=q, A=A, b=b, slot=3), "about slot 3, but the learner is in slot 2"),
    ):
        with pytest.raises(coldq.Error, match=words):
            learner.update(state, wrong)
    with pytest.raises(coldq.WrongState):
        learner.update(coldq.COLDQ(X, horizon=3).init(N), make(c=q, A=A, b=b))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            state = learner.update(state, make(c=q, A=A, b=b))
        with pytest.raises(coldq.PastHorizon):
            learner.update(state, make(c=q, A=A, b=b))


def test_many_random_steps_with_rows_that_bind_have_the_same_bits() -> None:
    rng, binding = np.random.default_rng(5), 0
    for _ in range(300):
        p, n = int(rng.integers(1, 30)), int(rng.integers(0, 12))
        domain = coldq.Box(-rng.random(p), rng.random(p))
        learner = coldq.COLDQ(domain, alpha=float(np.exp(rng.normal())), eta=0.3, gamma=5.0)
        state = learner.init(n)
        for _ in range(3):
            A, b = rng.normal(size=(n, p)), 0.2 * rng.normal(size=n)
            revealed = coldq.Feedback(coldq.Linear(5.0 * rng.normal(size=p)), coldq.Affine(A, b))
            following = learner.update(state, revealed)
            with plainly():
                assert_same(following, learner.update(state, revealed))
            binding += bool(following.multipliers.any())
            state = following
    assert binding > 300


PROBLEMS = [
    coldq.problems.TimeVarying(horizon=30),
    coldq.problems.OnlineQuadratic(horizon=30),
    coldq.problems.OnlineLinear(horizon=30),
    coldq.problems.Drifting(0.5, 0.5, horizon=30),
    coldq.problems.JobScheduling(horizon=12),
    coldq.problems.Dispatch(horizon=12),
    coldq.problems.Autoscale(horizon=30),
]


KINDS = [coldq.COLDQ, coldq.COLDQDoubling, coldq.COLDQExpert, coldq.RECOO, coldq.Yi2021]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
@pytest.mark.parametrize(
    "kind", [coldq.COLDQ, coldq.COLDQDoubling, coldq.COLDQExpert, coldq.RECOO, coldq.Yi2021]
)
def test_runs_on_the_packages_problems_have_the_same_bits(problem: Any, kind: Any) -> None:
    learner = kind.for_problem(problem)
    for seeds in ([3], [0, 1, 2, 3]):
        trace = coldq.simulate(learner, problem, seeds=seeds, keep=["decisions"])
        with plainly():
            again = coldq.simulate(learner, problem, seeds=seeds, keep=["decisions"])
        for name in ("loss", "constraint", "decisions"):
            assert getattr(trace, name).tobytes() == getattr(again, name).tobytes()


def test_a_feedback_from_arrays_is_that_of_the_constructors() -> None:
    rng = np.random.default_rng(2)
    H, y, q, A, b = (rng.normal(size=s) for s in ((5, P), 5, P, (N, P), N))
    x, make, g = np.zeros(P), coldq.Feedback.from_arrays, coldq.Affine(A, b)
    assert make(c=q, A=A, b=b, slot=3) == coldq.Feedback(coldq.Linear(q), g, 3)
    assert make(H=H, y=y, A=A, b=b) == coldq.Feedback(coldq.LeastSquares(H, y), g)
    assert make(P=H.T @ H, q=q, A=A, b=b) == coldq.Feedback(coldq.Quadratic(H.T @ H, q), g)
    assert make(x=x, gradient=q) == coldq.Feedback(coldq.GradientAt(x, q), None)
    kept: Any = make(H=H, y=y).loss
    assert kept.H is H


@pytest.mark.parametrize("names", ["", "cH", "H", "y", "P", "x", "g", "cA", "cb", "cHy"])
def test_from_arrays_refuses_arrays_that_make_no_loss_or_no_rows(names: str) -> None:
    given = {"gradient" if name == "g" else name: np.zeros(1) for name in names}
    with pytest.raises(coldq.InvalidInput, match="from_arrays takes"):
        coldq.Feedback.from_arrays(**given)


def test_what_is_wrong_with_arrays_is_said_as_on_the_plain_path() -> None:
    learner = coldq.COLDQ(X, horizon=3)
    state = learner.init(N)
    q, A, b = np.ones(P), np.ones((N, P)), np.ones(N)
    make = coldq.Feedback.from_arrays
    for wrong, words in (
        (make(c=np.full(P, np.nan), A=A, b=b), "gradient must be finite, but is nan"),
        (make(c=np.ones(P + 1), A=A, b=b), "the loss has 5 coordinates"),
        (make(c=q, A=np.ones((N, P + 1)), b=b), "the constraint has 5 coordinates"),
        (make(c=q, A=A[:2], b=b[:2]), "was started for 3"),
        (make(c=np.ones((2, P)), A=A, b=b), "not enlarge it"),
        (make(c=q, A=A, b=b, slot=2), "about slot 2, but the learner is in slot 1"),
        (make(c=q, A=A, b=b, slot=np.array([1])), "does not fit the batch"),
        (make(x=np.ones(P), gradient=q, A=A, b=b), "known only at x"),
    ):
        with pytest.raises(coldq.Error, match=words):
            learner.update(state, wrong)
    good = make(c=q, A=A, b=b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            state = learner.update(state, good)
        with pytest.raises(coldq.PastHorizon):
            learner.update(state, good)


def test_data_beyond_the_first_kernel_goes_to_the_others() -> None:
    # Numbers of magnitudes so far apart that the first kernel misses its promise now and then.
    rng, left = np.random.default_rng(1), 0

    def size(*shape: int) -> Any:
        return 10.0 ** rng.uniform(-6.0, 6.0, size=shape)

    for _ in range(60):
        p, n = int(rng.integers(2, 9)), int(rng.integers(2, 9))
        A, b = size(n, p) * rng.normal(size=(n, p)), size(n) * rng.normal(size=n)
        revealed = coldq.Feedback(coldq.Linear(size(p) * rng.normal(size=p)), coldq.Affine(A, b))
        domain = coldq.Box(-size(p), size(p))
        learner = coldq.COLDQ(domain, alpha=float(size()), eta=0.5, gamma=float(size()))
        state = learner.init(n)
        left += at_once(learner, state, revealed) is None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", coldq.Inexact)
            with plainly(), Residuals() as told:
                expected = learner.update(state, revealed)
            assert_same(learner.update(state, revealed), expected)
        assert told.worst <= 1e-6
    assert left > 0


def test_agents_take_it_and_hear_its_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    monkeypatch.setattr(
        "coldq.learners.queue_learner.at_once",
        lambda *given: taken.append(at_once(*given)) or taken[-1],
    )
    agent = coldq.Agent(coldq.COLDQ(X, horizon=50), N)
    for _ in range(10):
        rows = coldq.Affine(RNG.normal(size=(N, P)), RNG.normal(size=N))
        agent.observe(agent.decide().round, coldq.Linear(RNG.normal(size=P)), rows)
    assert len(taken) == 10 and None not in taken
    assert (agent.history().columns["residual"] <= 1e-9).all()
