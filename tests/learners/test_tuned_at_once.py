"""SelfTuning's update in one call gives the bits of its rule step by step, alone and in batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners import fused
from coldq.learners.fused import tuned_at_once
from coldq.slot.step import Residuals

P, N = 3, 2
KINDS = (
    "rate", "no margin", "forecast", "function", "late", "measured", "gradient", "tight", "random",
)  # fmt: skip


DOMAINS = {
    "box": coldq.Box(0.0, [9.0, 8.0, 7.0]),
    "simplex": coldq.Simplex(P, total=12.0),
    "product": coldq.Product(coldq.Simplex(2, total=10.0, cap=7.0), coldq.Box(0.0, 7.0, dim=1)),
    "budget": coldq.Polytope(np.ones((1, P)), [14.0], lower=0.0),
}

ODD_DOMAINS = {
    "no lower bounds": coldq.Polytope(A_eq=[[1.0, 1.0, 1.0]], b_eq=[1.0], upper=2.0),
    "parts of several blocks": coldq.Product(
        coldq.Simplex(1, total=2.3), coldq.Polytope([[1, 0], [0, 1]], [1.7, 2.9], lower=0.0)
    ),
    "one point": coldq.Box(0.1, 0.1, dim=P),
}


def learner_of(kind: str, domain: str = "box") -> Any:
    forecasts: Any = coldq.forecasts.DEFAULT
    if kind == "function":
        forecasts = (*coldq.forecasts.SMALL_MEMORY, lambda limits: limits[-3:].mean(axis=0))
    return coldq.SelfTuning(
        (DOMAINS | ODD_DOMAINS)[domain], None if kind == "no margin" else 0.1, forecasts=forecasts
    )


def slot(rng: Any, kind: str, t: int, x: Any) -> tuple[coldq.Feedback, Any]:
    """What is revealed of a slot to the decisions x, and where it was played, if not there."""
    lead = x.shape[:-1]
    A = -rng.uniform(0.3, 1.0, (*lead, N, P))
    level = A.sum(axis=-1) * (2.0 + np.sin(t / 3.0))
    b = level * (1.0 + 0.2 * rng.standard_normal((*lead, N)))
    if kind == "tight":  # a load from both sides, with less room than the margins ask for
        A[..., 1, :] = -A[..., 0, :]
        b = [-2.0, 5.0] + 0.2 * rng.standard_normal((*lead, N))
    if kind == "random":  # rows that conflict in most slots
        A, b = rng.normal(size=A.shape), rng.random(b.shape)
    played = 0.9 * x + 0.1 if kind == "late" else None
    place = x if played is None else played
    H, y = rng.normal(size=(*lead, 4, P)), rng.normal(size=(*lead, 4))
    loss: Any = coldq.LeastSquares(H, y) if t % 2 else coldq.Linear(rng.random((*lead, P)))
    rows = coldq.Affine(A, b)
    if kind == "gradient":
        loss = coldq.GradientAt(place, rng.random((*lead, P)))
    if kind == "measured":
        rows = coldq.Affine.from_measurement(x, rng.normal(size=(*lead, N)) - 0.5, A)
    ahead = coldq.Forecast(constraint=coldq.Affine(A, 0.98 * b)) if kind == "forecast" else None
    return coldq.Feedback(loss, rows, forecast=ahead), played


def assert_same(one: Any, other: Any) -> None:
    a, b = one.to_arrays(), other.to_arrays()
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.mark.parametrize("batch", [(), (5,), (2, 2)])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_call_gives_the_bits_of_the_rule_step_by_step(
    kind: str, domain: str, batch: Any
) -> None:
    rng, learner, slots, at_once = np.random.default_rng(7), learner_of(kind, domain), 60, 0
    state = learner.init(N, batch=batch)
    for t in range(slots):
        revealed, played = slot(rng, kind, t, state.x)
        at_once += tuned_at_once(learner, state, revealed, played) is not None
        plain = learner._step_by_step(state, revealed, played)
        with Residuals() as told:
            state = learner.update(state, revealed, played)
        assert_same(state, plain)
        assert told.worst <= 1e-9
    assert at_once >= 0.8 * slots


@pytest.mark.parametrize("domain", ["box", "product"])
@pytest.mark.parametrize("kind", ["rate", "forecast", "late", "tight", "random"])
def test_a_member_of_a_batch_has_the_bits_of_one_alone(
    kind: str, domain: str, monkeypatch: Any
) -> None:
    missed = []
    complete = fused._complete

    def counted(*given: Any) -> Any:
        missed.append(int(given[4].sum()))
        return complete(*given)

    monkeypatch.setattr(fused, "_complete", counted)
    rng, learner, runs = np.random.default_rng(8), learner_of(kind, domain), 40
    together, alone = learner.init(N, batch=(runs,)), [learner.init(N) for _ in range(runs)]
    for t in range(40):
        revealed, played = slot(rng, kind, t, together.x)
        together = learner.update(together, revealed, played)
        for i in range(runs):
            g, ahead = revealed.constraint.member((i,), (runs,)), revealed.forecast
            if ahead is not None:
                ahead = coldq.Forecast(constraint=ahead.constraint.member((i,), (runs,)))
            loss: Any = revealed.loss
            if isinstance(loss, coldq.LeastSquares):
                loss = coldq.LeastSquares(loss.H[i], loss.y[i])
            else:
                loss = coldq.Linear(loss.c[i])
            where = None if played is None else played[i]
            alone[i] = learner.update(alone[i], coldq.Feedback(loss, g, forecast=ahead), where)
    for i in range(0, runs, 7):
        assert_same(together.take(i), alone[i])
    if kind == "random":  # some took the plain path, beside others that did not
        assert sum(missed) > 0


@pytest.mark.parametrize("threads", ["2", "7"])
def test_threads_change_no_bits(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Any:
        rng, learner = np.random.default_rng(9), learner_of("rate")
        state = learner.init(N, batch=(300,))
        for t in range(6):
            state = learner.update(state, slot(rng, "rate", t, state.x)[0])
        return state

    monkeypatch.setenv("COLDQ_THREADS", "1")
    one = run()
    monkeypatch.setenv("COLDQ_THREADS", threads)
    assert_same(run(), one)


def test_what_does_not_belong_together_is_left_to_the_plain_path() -> None:
    learner, rng = learner_of("rate"), np.random.default_rng(10)
    state = learner.init(N)
    good, _ = slot(rng, "rate", 0, state.x)
    assert tuned_at_once(learner, state, good) is not None
    many = coldq.Affine(np.ones((17, P)), np.full(17, 99.0))
    capacity = coldq.LogCapacity(1.0, [1.0] * P, [1.0] * P)
    for rows in (coldq.Affine(np.ones((3, P)), np.ones(3)), many, capacity):
        assert tuned_at_once(learner, state, coldq.Feedback(good.loss, rows)) is None
    with pytest.raises(coldq.InvalidInput, match="started for 2 constraints"):
        learner.update(state, coldq.Feedback(good.loss, coldq.Affine(np.ones((3, P)), np.ones(3))))
    with pytest.raises(coldq.InvalidInput, match="about slot 2"):
        learner.update(state, coldq.Feedback(good.loss, good.constraint, slot=2))
    with pytest.raises(coldq.InvalidInput, match="kind and size"):
        other = coldq.Forecast(constraint=capacity)
        learner.update(state, coldq.Feedback(good.loss, good.constraint, forecast=other))
    assert state.t == 1


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("levels", (1, N)), ("past", (1, N * (P + 1))), ("terms", (N, 3)), ("tally", (3,)),
     ("covariance", (N, 3, 3)), ("predicted", (3, N)), ("points", (2, P)), ("hedge", (1,))],
)  # fmt: skip
def test_a_state_changed_by_hand_that_has_too_little_room_is_refused(
    name: str, shape: tuple[int, ...], forced: bool
) -> None:
    learner, rng = learner_of("rate"), np.random.default_rng(11)
    revealed, _ = slot(rng, "rate", 0, np.ones(P))
    state = replace(learner.update(learner.init(N), revealed), **{name: np.zeros(shape)})
    update = learner._step_by_step if forced else learner.update
    with pytest.raises(coldq.InvalidInput, match="shape"):
        update(state, revealed)


@pytest.mark.parametrize("kind", ["no margin", "rate", "function"])
@pytest.mark.parametrize("domain", [*ODD_DOMAINS, "box", "simplex"])
def test_odd_domains_have_the_bits_of_the_rule_step_by_step(domain: str, kind: str) -> None:
    rng, learner = np.random.default_rng(3), learner_of(kind, domain)
    state = learner.init(2)
    for t in range(40):
        A = rng.normal(size=(2, P)) * [[1.0], [1e5]]
        b = A @ np.full(P, 0.1) if t % 4 == 0 else rng.normal(size=2)
        rows = coldq.Affine(A, np.where(rng.random(2) < 0.1, -0.0, b))
        revealed = coldq.Feedback(coldq.Linear(rng.normal(size=P)), rows)
        plain = learner._step_by_step(state, revealed)
        state = learner.update(state, revealed)
        assert_same(state, plain)
