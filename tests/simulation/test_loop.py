"""The loop: what it records, what it refuses, and the numbers of the paper's experiments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coldq

SMALL = coldq.problems.TimeVarying(horizon=40)
LEARNER = coldq.COLDQ.for_problem(SMALL)


def test_a_trace_is_what_a_plain_loop_records() -> None:
    trace = coldq.simulate(LEARNER, SMALL, seeds=[3, 5], keep=["decisions", "queue", "multipliers"])
    stream, state = SMALL.start([3, 5]), LEARNER.init(2, batch=(2,))
    for t in range(1, 41):
        revealed = stream.reveal(t, state.x)
        assert trace.decisions is not None
        assert trace.queue is not None
        assert trace.multipliers is not None
        np.testing.assert_array_equal(trace.decisions[:, t - 1], state.x)
        np.testing.assert_array_equal(trace.queue[:, t - 1], state.queue)
        np.testing.assert_array_equal(trace.multipliers[:, t - 1], state.multipliers)
        np.testing.assert_array_equal(trace.loss[:, t - 1], revealed.loss.value(state.x))
        np.testing.assert_array_equal(
            trace.constraint[:, t - 1], revealed.constraint.value(state.x)
        )
        state = LEARNER.update(state, revealed)
    assert trace.state.x.tobytes() == state.x.tobytes()
    assert trace.state.t.tolist() == [41, 41]


def test_nothing_is_kept_unless_asked_for() -> None:
    trace = coldq.simulate(LEARNER, SMALL, seeds=[0])
    assert trace.decisions is trace.queue is trace.multipliers is None


def test_late_feedback_reaches_the_learner_that_many_slots_later() -> None:
    trace = coldq.simulate(LEARNER, SMALL, seeds=[0], delay=3, keep=["decisions"])
    assert trace.decisions is not None
    assert (trace.decisions[0, :4] == trace.decisions[0, 0]).all()
    stream, state = SMALL.start([0]), LEARNER.init(2, batch=(1,))
    revealed = [stream.reveal(t, state.x) for t in range(1, 41)]
    for t in range(5, 41):
        state = LEARNER.update(state, revealed[t - 5])
        np.testing.assert_array_equal(trace.decisions[0, t - 1], state.x[0])
    assert trace.state.t == 38


def test_a_start_can_be_given() -> None:
    trace = coldq.simulate(LEARNER, SMALL, seeds=[0], start=np.full(10, 2.0), keep=["decisions"])
    assert trace.decisions is not None
    assert (trace.decisions[0, 0] == 2.0).all()


def test_a_problem_without_constraints_runs() -> None:
    problem = coldq.problems.TimeVarying(horizon=10, n_constraints=0)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    assert trace.constraint.shape == (1, 10, 0)
    assert coldq.hard_violation(trace) == coldq.soft_violation(trace) == [0.0]
    assert coldq.dynamic_regret(trace) >= 0.0


def test_decisions_cannot_be_changed_by_the_problem() -> None:
    class Meddler(coldq.problems.TimeVarying):
        def start(self, seeds):  # type: ignore[override]
            stream = super().start(seeds)
            reveal = stream.reveal

            def meddle(t: int, x: np.ndarray) -> coldq.Feedback:
                x[:] = 0.0
                return reveal(t, x)

            stream.reveal = meddle  # type: ignore[method-assign]
            return stream

    with pytest.raises(ValueError, match="read-only"):
        coldq.simulate(LEARNER, Meddler(horizon=40), seeds=[0])


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    wide = coldq.Box(-5.0, 5.0, dim=10)
    for learner, arguments, words in [
        (coldq.COLDQ(wide, horizon=40), {}, "the learner's domain is Box"),
        (coldq.COLDQ(SMALL.domain, horizon=41), {}, "horizon is 41, but the problem's is 40"),
        (LEARNER, {"seeds": []}, "at least one seed"),
        (LEARNER, {"seeds": [-1]}, "a seed must be a whole number, at least 0"),
        (LEARNER, {"seeds": [0.5]}, "a seed must be a whole number"),
        (LEARNER, {"delay": -1}, "delay must be a whole number, at least 0"),
        (LEARNER, {"keep": ["everything"]}, "keep may name decisions, queue, multipliers"),
        (
            coldq.COLDQ(SMALL.domain, horizon=40, gamma=np.ones((4, 1))),
            {"seeds": [0, 1]},
            "own parameters make a batch",
        ),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.simulate(learner, SMALL, **arguments)


class Own:
    """A learner of one's own, without a base class: `after` makes the next decision of this one."""

    domain, horizon, card = coldq.Box(0.0, 1.0, dim=2), None, coldq.OGD.card

    def __init__(self, after) -> None:
        self.after = after

    def init(self, n_constraints, start=None, batch=()):
        return SimpleNamespace(t=1, x=np.zeros((*batch, 2)))

    def update(self, state, feedback):
        return SimpleNamespace(t=state.t + 1, x=self.after(state.x))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (lambda x: x + 2.0, r"must lie in the domain Box\(0.0, 1.0, dim=2\), but is \[2. 2.\]"),
        (lambda x: x[:, :1], r"must have the shape \(2, 2\), but has \(2, 1\)"),
        (lambda x: x[0], r"must have the shape \(2, 2\), but has \(2,\)"),
        (lambda x: x * np.nan, "must be finite"),
        (lambda x: None, "must be real numbers"),
    ],
)
def test_a_decision_of_another_s_learner_that_is_none_is_refused(after, words) -> None:
    learner: Any = Own(after)
    with pytest.raises(coldq.InvalidInput, match=f"the decision x of slot 2, .*{words}"):
        coldq.simulate(learner, coldq.problems.OnlineLinear(horizon=3), seeds=[0, 1])


@pytest.mark.parametrize("after", [np.float32, lambda x: np.array(x).tolist(), lambda x: x - 1e-9])
def test_decisions_of_another_s_learner_may_be_lists_and_rounded(after) -> None:
    learner: Any = Own(after)
    trace = coldq.simulate(learner, coldq.problems.OnlineLinear(horizon=2), seeds=[0, 1])
    assert np.isfinite(trace.loss).all()


def test_another_s_learner_in_one_of_the_library_s_is_looked_at_too() -> None:
    class Outside(coldq.COLDQ):
        def update(self, state, feedback, center=None, played=None):
            after = super().update(state, feedback, played=played)
            after.x.flags.writeable = True
            after.x[:] = -1.0
            return after

    inner = Outside.for_problem(coldq.problems.OnlineLinear(horizon=3))
    for learner in (inner, coldq.SafetyMargin(inner, 0.1)):
        with pytest.raises(coldq.InvalidInput, match=r"slot 2.* must lie in the domain"):
            coldq.simulate(learner, coldq.problems.OnlineLinear(horizon=3), seeds=[0])


def test_the_paper_s_time_varying_experiment() -> None:
    # Independent simulations gave a loss of 40,524 and a violation of 377 on [0, 5].
    box = coldq.Box(0.0, 5.0, dim=10)
    problem = coldq.problems.TimeVarying(horizon=5000)
    trace = coldq.simulate(coldq.COLDQ(box, horizon=5000), problem, range(20), keep=["queue"])
    assert 40_000 <= coldq.accumulated_loss(trace).mean() <= 41_000
    assert 360 <= coldq.hard_violation(trace).mean() <= 400
    # The queue leaves its floor only where a violation exceeds epsilon = 0.5 (a few slots in 100).
    assert trace.queue is not None
    moved = (trace.queue > 2500.0).any(axis=-1).mean()
    assert 0.0 < moved < 0.05


def test_recoo_on_the_same_experiment_with_the_paper_s_parameters() -> None:
    # Independent simulations gave a loss of 39,821 and a violation of 636 on [0, 5].
    problem = coldq.problems.TimeVarying(horizon=5000)
    for reading in ("drift", "comparison"):
        alpha = coldq.schedules.Power(0.5, 0.5)
        learner = coldq.RECOO(problem.domain, epsilon=0.01, alpha=alpha, reading=reading)
        trace = coldq.simulate(learner, problem, range(20))
        assert 600 <= coldq.hard_violation(trace).mean() <= 660
        assert 39_300 <= coldq.accumulated_loss(trace).mean() <= 40_300


def test_the_paper_s_quadratic_experiment_with_fixed_constraints() -> None:
    problem = coldq.problems.OnlineQuadratic(horizon=5000)
    X, Power = problem.domain, coldq.schedules.Power
    learners = [
        coldq.COLDQ.for_problem(problem),
        coldq.RECOO(X, gamma=Power(0.51, 7.0)),
        coldq.Yi2021(X, 5000, alpha0=100.0, gamma0=2.5),
    ]
    traces = [coldq.simulate(learner, problem, range(20), start=[0.0, 0.0]) for learner in learners]
    violations = [coldq.hard_violation(trace).mean() for trace in traces]
    losses = [coldq.accumulated_loss(trace).mean() for trace in traces]
    assert violations[0] <= 1e-9
    assert all(0.0 < violation < 5.0 for violation in violations[1:])
    assert max(losses) - min(losses) <= 0.05 * min(losses)
    # As printed, on the wrong side of the fraction: hundreds of times the violation.
    printed = coldq.Yi2021(X, 5000, alpha0=100.0, gamma0=2.5, printed_gamma=True)
    trace = coldq.simulate(printed, problem, range(20))
    assert coldq.hard_violation(trace).mean() > 100.0 * violations[2]


def test_the_same_on_the_domain_of_the_paper_s_figure() -> None:
    box = coldq.Box(-5.0, 5.0, dim=10)
    problem = coldq.problems.TimeVarying(horizon=5000, domain=box)
    trace = coldq.simulate(coldq.COLDQ(box, horizon=5000), problem, range(20))
    assert 380 <= coldq.hard_violation(trace).mean() <= 410


@pytest.mark.parametrize("kind", [coldq.problems.OnlineQuadratic, coldq.problems.OnlineLinear])
def test_fixed_constraints_are_never_violated_from_the_origin(kind: type) -> None:
    problem = kind(horizon=2000)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem)
    assert (coldq.hard_violation(trace) <= 1e-9).all()


class OneByOne(coldq.problems.Problem):
    """A problem whose stream has nothing but `reveal`, and hands it the decisions."""

    def __init__(self, inner: Any, block: Any = None) -> None:
        self._set(inner=inner, block=block, seen=[])
        self._set(domain=inner.domain, horizon=inner.horizon, n_constraints=inner.n_constraints)

    def start(self, seeds: Any) -> Any:
        stream, outer = self.inner.start(seeds), self

        class Stream:
            def reveal(self, t: int, x: Any) -> Any:
                outer.seen.append(x)
                return stream.reveal(t, x)

        if self.block is not None:
            Stream.reveal_block = lambda _, t, count: self.block(stream, t, count)  # type: ignore[attr-defined]
        return Stream()


@pytest.mark.parametrize(
    "problem",
    [
        coldq.problems.TimeVarying(horizon=150),
        coldq.problems.TimeVarying(horizon=150, agents=2),
        coldq.problems.OnlineQuadratic(horizon=70),
        coldq.problems.OnlineLinear(horizon=70),
        coldq.problems.JobScheduling(horizon=70),
    ],
)
def test_slots_revealed_in_blocks_have_the_bits_of_slots_revealed_one_by_one(problem: Any) -> None:
    learner: Any = coldq.OGD(problem.domain, eta=0.1)
    if problem.agents:
        learner = coldq.Decentralised(coldq.COLDQ(problem.domain, 150), np.full((2, 2), 0.5))
    alone = OneByOne(problem)
    alone._set(agents=problem.agents)
    one_by_one = coldq.simulate(learner, alone, seeds=[4, 9], keep=["decisions"])
    in_blocks = coldq.simulate(learner, problem, seeds=[4, 9], keep=["decisions"])
    assert len(alone.seen) >= problem.horizon
    for name in ("loss", "constraint", "decisions"):
        assert getattr(one_by_one, name).tobytes() == getattr(in_blocks, name).tobytes()


def test_a_block_is_asked_for_with_its_first_slot_and_its_length_up_to_the_horizon() -> None:
    asked, inner = [], coldq.problems.OnlineLinear(horizon=70)

    def block(stream: Any, t: int, count: int) -> list[Any]:
        asked.append((t, count))
        return [stream.reveal(slot, None) for slot in range(t, t + count)]

    problem = OneByOne(inner, block)
    learner = coldq.OGD(inner.domain, eta=0.1)
    trace = coldq.simulate(learner, problem, seeds=[1])
    assert problem.seen == []
    assert [t for t, _ in asked] == list(np.cumsum([1, *(count for _, count in asked)])[:-1])
    assert sum(count for _, count in asked) == 70
    assert trace.loss.tobytes() == coldq.simulate(learner, inner, seeds=[1]).loss.tobytes()


def test_a_block_of_too_few_slots_is_refused() -> None:
    inner = coldq.problems.OnlineLinear(horizon=70)
    problem = OneByOne(inner, lambda stream, t, count: [stream.reveal(t, None)])
    with pytest.raises(coldq.InvalidInput, match=r"reveal_block\(1, .* but gave 1"):
        coldq.simulate(coldq.OGD(inner.domain, eta=0.1), problem, seeds=[1])


def test_whoever_takes_the_place_of_reveal_alone_is_asked_slot_by_slot() -> None:
    inner = coldq.problems.OnlineLinear(horizon=10)
    seen = []

    class Watching(type(inner.start([0]))):
        def reveal(self, t: int, x: Any) -> Any:
            seen.append(np.array(x))
            return super().reveal(t, x)

    problem = OneByOne(inner)
    problem._set(start=lambda seeds: Watching(inner, tuple(seeds)))
    trace = coldq.simulate(coldq.OGD(inner.domain, eta=0.1), problem, seeds=[1], keep="decisions")
    np.testing.assert_array_equal(np.stack(seen, axis=1), trace.decisions)
