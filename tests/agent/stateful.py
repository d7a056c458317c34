"""An agent beside a model of a few lines, through random calls, refusals and crashes.

The tests run a share of it; ``python -m tests.agent.stateful --cases 3000`` all.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

import coldq
from tests.agent.feeds import LEARNER, bits, measured, revealed

LIMIT = 5


class Rounds(RuleBasedStateMachine):
    """The model: what each round played, what was told of it, and the bare learner's state."""

    @initialize(
        durable=st.booleans(),
        order=st.sampled_from(["round", "arrival"]),
        limit=st.sampled_from([None, LIMIT]),
    )
    def begin(self, durable: bool, order: str, limit: int | None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "0.db" if durable else None
        self.order, self.limit = order, limit
        self.agent = coldq.Agent(LEARNER, 2, path=self.path, order=order, limit=limit)
        self.state = LEARNER.init(2)
        self.played: dict[int, object] = {}
        self.open: list[int] = []
        self.held: list[int] = []
        self.skipped: set[int] = set()
        self.unsure = False  # whether a kill may have forgotten one round

    def apply(self, round: int) -> None:
        x = self.played[round]
        feedback = coldq.Feedback(*measured(round, x))  # type: ignore[arg-type]
        self.state = LEARNER.update(self.state, feedback, played=x)

    def go_on(self) -> None:
        while self.held and self.held[0] < min(self.open, default=len(self.played) + 1):
            self.apply(self.held.pop(0))

    @rule(ahead=st.booleans())
    def decide(self, ahead: bool) -> None:
        latest = len(self.played)
        again = latest in self.open and not ahead
        number = latest if again else latest + 1
        if not again and self.limit is not None:
            late = [n for n in self.open if n < number - self.limit]
            self.open = [n for n in self.open if n not in late]
            self.skipped |= set(late)
            self.go_on()
        decision = self.agent.decide(number if ahead else None)
        assert decision.round == number
        if not again:
            self.unsure = False
            self.played[number] = self.state.x
            self.open.append(number)
        assert decision.x.tobytes() == self.played[number].tobytes()  # type: ignore[attr-defined]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def observe(self, data: st.DataObject) -> None:
        self.tell(data.draw(st.sampled_from(self.open)))

    def tell(self, round: int) -> None:
        first = round == min([*self.open, *self.held])
        receipt = self.agent.observe(round, *measured(round, self.played[round]))  # type: ignore[arg-type]
        self.open.remove(round)
        if first or self.order == "arrival":
            self.apply(round)
            self.go_on()
            assert receipt == (round, "applied")
        else:
            self.held = sorted([*self.held, round])
            assert receipt == (round, "waiting")

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        round = data.draw(st.sampled_from(self.open))
        assert self.agent.skip(round) == (round, "skipped")
        self.open.remove(round)
        self.skipped.add(round)
        self.go_on()

    @rule(round=st.integers(-2, 30), kind=st.integers(0, 3))
    def say_what_changes_nothing(self, round: int, kind: int) -> None:
        known = 1 <= round <= len(self.played)
        over = known and round not in self.open
        if not known and self.unsure and 0 < round - len(self.played) <= 2:
            return
        if not known:
            for call in (
                lambda: self.agent.observe(round, *revealed(1)),
                lambda: self.agent.skip(round),
                lambda: self.agent.decide(round if round != len(self.played) + 1 else round + 1),
            ):
                with pytest.raises(coldq.InvalidInput):
                    call()
        elif kind == 0:
            with pytest.raises(coldq.Error):
                loss = coldq.Linear([1.0]) if not over else coldq.Linear([9.0, 9.0, 9.0])
                if round in self.skipped:
                    raise coldq.InvalidInput("a skipped round is told so instead")
                self.agent.observe(round, loss, None)
        elif kind == 1 and over:
            told = measured(round, self.played[round])  # type: ignore[arg-type]
            status = "skipped" if round in self.skipped else "repeated"
            assert self.agent.observe(round, *told) == (round, status)
        elif kind == 2 and over and round not in self.skipped:
            with pytest.raises(coldq.InvalidInput, match="has its feedback already"):
                self.agent.skip(round)
        elif kind == 3 and over and round not in self.held:
            with pytest.raises(coldq.InvalidInput, match="is over"):
                self.agent.decide(round)

    @precondition(lambda self: self.path is not None)
    @rule(clean=st.booleans(), then=st.sampled_from(["decide", "go on", "observe", "skip"]))
    def crash_and_open(self, clean: bool, then: str) -> None:
        assert self.path is not None
        path = self.path.with_name(f"{int(self.path.stem) + 1}.db")
        if clean:
            self.agent.close()
        for suffix in ("", "-wal"):
            if Path(f"{self.path}{suffix}").exists():
                shutil.copyfile(f"{self.path}{suffix}", f"{path}{suffix}")
        self.agent.close()
        self.path, self.agent = path, coldq.Agent.open(path)
        latest = len(self.played)
        self.unsure = self.agent.round == latest
        if self.unsure:
            return
        # A kill may forget that the latest round was opened. Whatever is said of it, it was.
        assert not clean and self.agent.round == latest - 1 and latest in self.open
        if then == "decide":
            assert self.agent.decide(latest).x.tobytes() == self.played[latest].tobytes()  # type: ignore[attr-defined]
        elif then == "go on":
            self.decide(True)
        elif then == "observe":
            self.tell(latest)
        else:
            assert self.agent.skip(latest) == (latest, "skipped")
            self.open.remove(latest)
            self.skipped.add(latest)
            self.go_on()

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "agent"):
            return
        assert bits(self.agent.state) == bits(self.state)
        assert self.agent.in_flight == tuple(self.open)
        assert self.agent.waiting == tuple(self.held)
        assert self.agent.round == len(self.played)

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            self.agent.close()
            self.folder.cleanup()


def check(cases: int) -> None:
    """So many runs of some thirty calls each."""
    quick = settings(
        max_examples=cases,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_machine(Rounds, settings=quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    cases = parser.parse_args().cases
    check(cases)
    print(f"{cases} runs of an agent beside its model: no difference")
