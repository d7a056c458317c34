"""An agent decides, hears late, in any order, twice or never, and loses or doubles nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from time import perf_counter

import numpy as np
import pytest

import coldq
from coldq.agent import Receipt
from tests.agent.feeds import LEARNER, X, bits, measured, revealed, undisturbed


def agent(**options) -> coldq.Agent:
    return coldq.Agent(LEARNER, 2, **options)


def test_without_delay_it_is_the_bare_learner_bit_for_bit() -> None:
    one = agent()
    for round in range(1, 31):
        assert one.observe(one.decide().round, *revealed(round)) == (round, "applied")
    assert bits(one.state) == bits(undisturbed(list(range(1, 31))))


@pytest.mark.parametrize("delay", [0, 1, 5])
@pytest.mark.parametrize("kind", ["COLDQ", "Wang2023", "COLDQExpert"])
def test_with_a_constant_delay_it_is_simulate_bit_for_bit(delay: int, kind: str) -> None:
    problem = coldq.problems.TimeVarying(horizon=40)
    keywords = {"Wang2023": {"delay": delay}}.get(kind, {})
    learner = getattr(coldq, kind).for_problem(problem, **keywords)
    trace = coldq.simulate(learner, problem, seeds=[3], delay=delay, keep=["decisions"])
    one, stream, seen = coldq.Agent(learner, 2, batch=(1,), late="held"), problem.start([3]), {}
    for t in range(1, 41):
        x = one.decide(t).x
        assert x.tobytes() == trace.decisions[:, t - 1].tobytes()
        seen[t] = stream.reveal(t, x)
        if t > delay:
            late = seen.pop(t - delay)
            one.observe(t - delay, late.loss, late.constraint)
    assert bits(one.state) == bits(trace.state)


def test_deciding_twice_gives_the_same_decision_until_there_is_feedback() -> None:
    one = agent()
    first = one.decide()
    assert one.decide() is first and one.decide(1) is first
    second = one.decide(2)  # while round 1 is in flight
    assert one.decide() is second and one.decide(1) is first and second != first
    assert one.in_flight == (1, 2)
    with pytest.raises(ValueError, match="read-only"):
        first.x[0] = 1.0
    one.observe(2, *revealed(2))
    assert one.decide(2) is second  # it waits, and is known
    assert one.decide().round == 3


def test_rounds_are_opened_one_after_the_other_and_end() -> None:
    one = agent()
    one.observe(one.decide().round, *revealed(1))
    with pytest.raises(coldq.InvalidInput, match="after 1 comes 2, not 3"):
        one.decide(3)
    with pytest.raises(coldq.InvalidInput, match="round 1 is over; the latest is 1"):
        one.decide(1)
    with pytest.raises(coldq.InvalidInput, match="round 2 was not decided yet"):
        one.observe(2, *revealed(2))
    with pytest.raises(coldq.InvalidInput, match="round must be"):
        one.observe("1", *revealed(1))  # type: ignore[arg-type]
    assert one.round == 1


def test_feedback_out_of_order_is_applied_in_the_order_of_its_rounds() -> None:
    one, other = agent(), agent()
    for round in range(1, 7):
        one.decide(round)
        other.decide(round)
    statuses = [one.observe(r, *revealed(r)).status for r in (3, 1, 6, 2, 5, 4)]
    assert statuses == ["waiting", "applied", "waiting", "applied", "waiting", "applied"]
    for round in range(1, 7):
        other.observe(round, *revealed(round))
    assert bits(one.state) == bits(other.state)
    assert (one.waiting, one.in_flight) == ((), ())


def test_in_the_order_of_arrival_feedback_is_applied_at_once() -> None:
    one = agent(order="arrival")
    played = [one.decide(round).x for round in (1, 2, 3)]
    state = LEARNER.init(2)
    for round in (3, 1, 2):
        assert one.observe(round, *revealed(round)).status == "applied"
        feedback = coldq.Feedback(*revealed(round))
        state = LEARNER.update(state, feedback, played=played[round - 1])
    assert bits(one.state) == bits(state)
    assert one.decide().round == 4


def test_what_was_measured_counts_for_its_round_however_far_the_state_has_moved() -> None:
    one = agent()
    played = {round: one.decide(round).x for round in range(1, 6)}
    state = LEARNER.init(2)
    for round in (2, 5, 1, 4, 3):
        one.observe(round, *measured(round, played[round]))
    for round in range(1, 6):
        feedback = coldq.Feedback(*measured(round, played[round]))
        state = LEARNER.update(state, feedback, played=played[round])
    assert bits(one.state) == bits(state)
    held = agent(late="held")
    x = [held.decide(round).x for round in (1, 2)]
    held.observe(1, *measured(1, x[0]))
    with pytest.raises(coldq.NotRevealed, match="known only at"):
        held.observe(2, *measured(2, x[1]))


def test_skipping_leaves_the_learner_and_its_clock_as_they_are() -> None:
    one = agent()
    for round in range(1, 9):
        one.decide(round)
    one.observe(4, *revealed(4))
    one.skip(5)
    for round in (1, 2):
        one.observe(round, *revealed(round))
    before = bits(one.state)
    one.skip(6)
    assert bits(one.state) == before  # round 3 is still missing
    assert one.skip(3) == (3, "skipped") and one.state.t == 4
    assert one.skip(3).status == "repeated"
    late = one.observe(3, *revealed(3))
    assert late == Receipt(3, "skipped") and not late.accepted
    with pytest.raises(coldq.InvalidInput, match="round 4 has its feedback already"):
        one.skip(4)


def test_a_round_without_feedback_is_skipped_at_the_limit(caplog) -> None:
    one = agent(limit=3)
    for round in range(1, 5):
        one.decide(round)
    one.observe(2, *revealed(2))
    assert one.in_flight == (1, 3, 4)
    with caplog.at_level(logging.WARNING, "coldq.agent"):
        fifth = one.decide(5)  # the fourth after round 1
    assert "rounds [1] had no feedback for 3 rounds: skipped" in caplog.text
    assert one.in_flight == (3, 4, 5) and one.state.t == 2
    assert fifth.x.tobytes() == one.state.x.tobytes()  # round 2 counts before it is decided
    assert one.observe(1, *revealed(1)).status == "skipped"


def test_the_same_feedback_counts_once_and_a_different_one_is_refused() -> None:
    one = agent()
    one.decide(1), one.decide(2), one.decide(3)
    for first, then in ((2, "waiting"), (1, "applied")):
        assert one.observe(first, *revealed(first)).status == then
        before = bits(one.state)
        assert one.observe(first, *revealed(first)).status == "repeated"
        with pytest.raises(coldq.InvalidInput, match=f"round {first} has another feedback already"):
            one.observe(first, *revealed(first, seed=1))
        assert bits(one.state) == before


def test_of_rounds_long_past_nothing_is_known() -> None:
    one = agent(remember=2)
    for _ in range(4):
        one.observe(one.decide().round, *revealed(1))
    assert one.observe(1, *revealed(9)).status == "past"
    assert one.skip(2).status == "past"
    assert one.observe(3, *revealed(1)).status == "repeated"


@pytest.mark.parametrize("early", [False, True])
def test_what_is_refused_changes_nothing(early: bool) -> None:
    one = agent()
    one.decide(1)
    round = one.decide(2).round if early else 1
    before, rows = bits(one.state), revealed(1)[1]
    wrong = [
        (coldq.Linear([1.0, 2.0]), rows),
        (coldq.Linear([1.0, 2.0, 3.0]), coldq.Affine(np.ones((3, 3)), np.ones(3))),
        (coldq.Smooth(lambda x: 0.0, lambda x: x * np.nan), rows),
        (3, rows),
        (coldq.Linear([1.0, 2.0, 3.0]), None),
    ]
    for loss, constraint in wrong:
        with pytest.raises(coldq.Error):
            one.observe(round, loss, constraint)
        assert (bits(one.state), one.in_flight, one.waiting) == (
            before,
            (1, 2) if early else (1,),
            (),
        )
    assert one.observe(round, *revealed(round)).accepted


class FailsLater:
    """A loss that answers once, and then no more."""

    def __init__(self) -> None:
        self.calls = 0

    def value(self, x):
        return 0.0

    def gradient(self, x):
        self.calls += 1
        return np.ones(3) if self.calls == 1 else np.full(3, np.nan)


def test_feedback_that_fails_in_its_turn_is_skipped_and_no_other_round_pays(caplog) -> None:
    one = agent()
    one.decide(1), one.decide(2)
    assert one.observe(2, FailsLater(), revealed(2)[1]).status == "waiting"
    with caplog.at_level(logging.ERROR, "coldq.agent"):
        assert one.observe(1, *revealed(1)).status == "applied"
    assert "the feedback of round 2 failed" in caplog.text
    assert one.state.t == 2 and one.decide().round == 3


def test_a_batch_of_tenants_shares_its_rounds() -> None:
    one, alone = agent(batch=(3,)), [agent() for _ in range(3)]
    for round in range(1, 6):
        losses, rows = zip(*(revealed(round, k) for k in range(3)), strict=True)
        loss = coldq.LeastSquares(np.stack([f.H for f in losses]), np.stack([f.y for f in losses]))
        together = coldq.Affine(np.stack([g.A for g in rows]), np.stack([g.b for g in rows]))
        one.observe(one.decide().round, loss, together)
        for k in range(3):
            alone[k].observe(alone[k].decide().round, *revealed(round, k))
    for k in range(3):
        assert one.state.take(k).x.tobytes() == alone[k].state.x.tobytes()
    assert len(one.history()) == 15 and set(one.history().columns["member"]) == {0, 1, 2}


def test_threads_may_share_it() -> None:
    one, rounds = agent(), range(1, 61)
    for round in rounds:
        one.decide(round)
    accepted = []

    def tell(order) -> None:
        for round in order:
            accepted.append(one.observe(int(round), *revealed(int(round))).accepted)

    orders = [np.random.default_rng(k).permutation(rounds) for k in range(4)]
    threads = [threading.Thread(target=tell, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = agent()
    for round in rounds:
        other.decide(round)
    for round in rounds:
        other.observe(round, *revealed(round))
    assert sum(accepted) == 60 and bits(one.state) == bits(other.state)


def test_a_coroutine_waits_for_it_in_a_thread() -> None:
    one = agent()

    async def serve() -> list[str]:
        decisions = [await asyncio.to_thread(one.decide, round) for round in (1, 2, 3)]
        told = (
            asyncio.to_thread(one.observe, d.round, *revealed(d.round)) for d in decisions[::-1]
        )
        return [receipt.status for receipt in await asyncio.gather(*told)]

    assert "applied" in asyncio.run(serve())
    assert one.state.t == 4


class Plain:
    """A learner of the user's own that knows nothing of late feedback: x goes down the gradient."""

    domain, horizon = X, None

    class State:
        def __init__(self, t, x) -> None:
            self.t, self.x = t, x

    def init(self, n_constraints, start=None, batch=()):
        return self.State(1, np.zeros(3))

    def update(self, state, feedback):
        gradient = feedback.loss.gradient(state.x)
        return self.State(state.t + 1, np.clip(state.x - 0.1 * gradient, 0.0, 5.0))


def test_a_learner_of_ones_own_that_takes_no_late_feedback_gets_it_where_it_is() -> None:
    one = coldq.Agent(Plain(), 2)
    assert one.late == "held" and agent().late == "played"
    x = one.decide().x
    assert not x.flags.writeable
    one.decide(2)
    one.observe(1, *revealed(1))
    here = one.state.x.copy()
    one.observe(2, *revealed(2))
    expected = np.clip(here - 0.1 * revealed(2)[0].gradient(here), 0.0, 5.0)
    assert one.state.x.tobytes() == expected.tobytes()
    with pytest.raises(coldq.InvalidInput, match="late must be 'held'"):
        coldq.Agent(Plain(), 2, late="played")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"late": "soon"}, "late must be one of"),
        ({"order": "random"}, "order must be one of"),
        ({"limit": -1}, "limit must be"),
        ({"remember": 0}, "remember must be"),
        ({"path": 1.0}, "path must name a file"),
    ],
)
def test_odd_options_are_refused(options, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        agent(**options)
    with pytest.raises(coldq.InvalidInput, match="a learner needs"):
        coldq.Agent(3, 2)


def test_history_has_what_every_round_was_like() -> None:
    one = agent()
    for round in range(1, 5):
        x = one.decide(round).x
        if round == 3:
            one.skip(3)
            continue
        loss, g = revealed(round)
        one.observe(round, loss, g)
        columns = one.history().columns
        assert columns["loss"][-1] == loss.value(x)
        over = np.maximum(g.A @ x - g.b, 0.0)
        assert np.allclose([columns["violation_1"][-1], columns["violation_2"][-1]], over)
        assert np.isclose(columns["violation"][-1], over.sum())
        assert columns["queue_2"][-1] == one.state.queue[1]
        assert columns["multipliers_1"][-1] == one.state.multipliers[0]
        assert 0.0 <= columns["residual"][-1] <= 1e-9 and columns["seconds"][-1] > 0.0
    table = one.history()
    assert table.columns["status"].tolist() == ["applied", "applied", "skipped", "applied"]
    assert np.isnan(table.columns["loss"][2]) and np.isnan(table.columns["residual"][2])
    arrow = table.to_arrow()
    assert arrow.column_names == list(table.columns)
    assert arrow["round"].to_pylist() == [1, 2, 3, 4]
    for frame in (table.to_pandas(), table.to_polars()):
        assert list(frame.columns) == list(table.columns)
        assert frame["round"].to_numpy().tolist() == [1, 2, 3, 4]
        assert frame["queue_1"].to_numpy().tolist() == table.columns["queue_1"].tolist()


def test_history_of_a_measured_loss_without_its_value_is_not_known() -> None:
    one = agent()
    x = one.decide().x
    one.observe(1, coldq.GradientAt(x, [1.0, 2.0, 3.0]), revealed(1)[1])
    assert np.isnan(one.history().columns["loss"]).all()
    assert len(agent().history()) == 0


def test_forgetting_a_round_takes_as_long_however_many_are_remembered() -> None:
    learner, loss = coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), coldq.Linear([1.0])
    rounds, remembered = 66_000, 50_000
    one = coldq.Agent(learner, 0, remember=remembered)
    few = coldq.Agent(learner, 0, remember=10)
    state = one.state
    object.__setattr__(learner, "update", lambda *_: state)  # no time but the agents' own
    seconds = np.empty((2, rounds))
    for k in range(rounds):
        for which, each in enumerate((one, few)):  # in turns: what slows one down, slows both
            round = each.decide().round
            begun = perf_counter()
            each.observe(round, loss, None)
            seconds[which, k] = perf_counter() - begun
    oldest = rounds - remembered + 1
    assert one.observe(oldest, loss, None).status == "repeated"
    assert one.observe(oldest - 1, loss, None).status == "past"
    of_many, of_few = np.median(seconds[:, -2000:], axis=1)
    assert of_many < 10.0 * of_few  # to go through all of them would take a hundred times
