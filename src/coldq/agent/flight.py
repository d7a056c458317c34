"""Rounds in flight: what is open, what waits, what is settled, in memory and in the file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from coldq.agent.applying import applied, applied_or_skipped, getter, log
from coldq.agent.encoding import encode
from coldq.agent.restored import require_same_agent, restored
from coldq.agent.rounds import Decision, Held, OtherFeedback, Past, Receipt, Settled
from coldq.agent.store import Store
from coldq.base.arrays import whole_number
from coldq.base.errors import InUse, InvalidInput, NotReadable, NotWritten
from coldq.learners.learner import State
from coldq.slot.feedback import Feedback

DUAL_NAMES = ("queue", "multipliers", "margin")
REFUSALS = NotWritten, InUse, NotReadable  # by the file, which is as it was
new_tuple = tuple.__new__  # a named tuple without the call of its own constructor


class Flight:
    """A learner's state and its rounds, which an agent opens, settles and writes down.

    One thread at a time is in here: an agent sees to that.
    """

    def __init__(
        self,
        learner: Any,
        n_constraints: int,
        state: Any,
        late: str,
        order: str,
        limit: int | None,
        remember: int,
    ) -> None:
        self.learner, self.n_constraints = learner, n_constraints
        self.late, self.order, self.limit, self.remember = late, order, limit, remember
        self._state = state
        self._latest = 0  # the last round that was opened
        self._next = 1  # the first round that is not settled
        self._open: dict[int, Decision] = {}  # without feedback, in the order of their rounds
        self._held: dict[int, Held] = {}
        self._settled = OrderedDict[int, Past]()  # the last of them, in the order of settling
        self._unsure = False  # whether a kill may have forgotten that the next round was opened
        self._closed = False
        self._done: list[Settled] | None = None  # what counts, though an interrupt came in between
        self._astray = False  # whether an interrupt left the file ahead of memory
        self._seconds = inf  # that the last update took
        self._dual_names = tuple(name for name in DUAL_NAMES if hasattr(state, name))
        self._duals_of = getter(self._dual_names)
        self._read_only = isinstance(state, State)  # whose x nobody can change
        self._store: Store | None = None
        self._where = ""  # its file, for the log

    def _begin(self, store: Store, batch: tuple[int, ...], started: bool) -> None:
        """Start in a new file, or go on in one that there is."""
        fixed = {"n_constraints": self.n_constraints, "batch": batch}
        fixed |= {"late": self.late, "order": self.order}
        may_change = {"limit": self.limit, "remember": self.remember}
        if store.is_new:
            store.create(self.learner, self._state, fixed | may_change)
            return
        made = store.options()
        whole = np.shape(self._state.x)[:-1]
        if made.batch == whole:  # with the axes of the learner's own, as older files have it
            fixed["batch"] = whole
        require_same_agent(store.path, made, self.learner, fixed, self._state if started else None)
        found = restored(store, self.learner, self.late, self._state.x, made)
        if np.shape(found.state.x)[:-1] != whole:
            raise InvalidInput(
                f"the agent in {store.path} has the leading axes {np.shape(found.state.x)[:-1]}, "
                f"but this one {whole}"
            )
        self._state, self._latest, self._open, self._held, settled = found
        self._settled.update(settled)
        while len(self._settled) > self.remember:
            self._settled.popitem(last=False)
        self._next = min([*self._open, *self._held], default=self._latest + 1)
        self._unsure = True
        if any(made.keywords[name] != value for name, value in may_change.items()):
            store.note(**may_change)

    def _tell(self, round: int, feedback: Feedback, decision: Decision) -> Receipt:
        """Apply the feedback of an open round, or hold it back."""
        if round != self._next and self.order == "round":
            return self._hold(round, feedback, decision)
        known = None if self._store is None else encode(feedback)
        first = applied(self.learner, self.late, self._state, decision, feedback, known)
        if self._held:
            self._settle(self._in_turn([first]))
        else:
            self._settle([first])
        return new_tuple(Receipt, (round, "applied"))

    def _opened(self) -> Decision:
        """Open a new round; the limit may then skip a round without feedback."""
        number = self._latest + 1
        if self.limit is not None and self._open:
            late = [n for n in self._open if n < number - self.limit]
            if late:
                self._settle(self._in_turn([self._skipped(n, self._state) for n in late]))
                words = "rounds %s%s had no feedback for %s rounds: skipped"
                log.warning(words, late, self._where, self.limit)
        x = self._state.x
        if not self._read_only:
            x = np.array(x)
            x.flags.writeable = False
        decision = new_tuple(Decision, (x, number))
        if self._store is not None:
            self._write(self._store.opened, number, x)
        self._open[number] = decision
        self._latest = number
        self._unsure = self._astray = False
        return decision

    def _forgotten(self, round: int) -> bool:
        """Whether a round may have been opened before a kill, with the decision of the state."""
        return self._unsure and round == self._latest + 1

    def _unopen(self, round: int) -> None:
        """Forget a round that was opened by a call which was then refused."""
        if not self._astray and self._open.pop(round, None) is not None:
            self._latest, self._unsure = round - 1, True
            if self._store is not None:
                self._store.unopened(round)

    def _decided(self, round: int) -> Decision | None:
        """The decision of a round that was opened, or None for the next one."""
        round = whole_number("round", round, 1)
        if round == self._latest + 1:
            return None
        if round in self._open:
            return self._open[round]
        if round in self._held:
            return self._held[round].decision
        if self._forgotten(round - 1):
            self._opened()
            return None
        if round > self._latest:
            raise InvalidInput(
                f"rounds are opened one after the other: after {self._latest} comes "
                f"{self._latest + 1}, not {round}"
            )
        raise InvalidInput(f"round {round} is over; the latest is {self._latest}")

    def _skipped(self, round: int, state: Any) -> Settled:
        return Settled(round, self._open[round].x, None, None, state, [], 0.0)

    def _in_turn(self, settled: list[Settled]) -> list[Settled]:
        """Settled rounds, and after them the rounds that only waited for them."""
        if not self._held:
            return settled
        done, number = {each.round for each in settled}, self._next
        state = settled[-1].state
        while number <= self._latest:
            held = self._held.get(number)
            if held is not None:
                settled.append(
                    applied_or_skipped(self.learner, self.late, state, held, self._where)
                )
                state = settled[-1].state
            elif number in self._open and number not in done:
                break
            number += 1
        return settled

    def _settle(self, settled: list[Settled]) -> None:
        """Write rounds down, and only then let them count: at once, whatever interrupts."""
        if self._store is not None:
            self._write(self._store.settle, settled, self._latest - self.remember)
        self._done = settled
        self._astray = False
        self._finish()

    def _finish(self) -> None:
        """Take settled rounds into memory; after an interrupt the next call does it once more."""
        if self._done is None:
            return
        known, state = self._settled, self._state
        for round, x, feedback, data, state, residuals, seconds in self._done:
            status = "skipped" if feedback is None else "applied"
            if feedback is not None:
                self._seconds = seconds
            past = round, status, x, feedback, data, self._duals_of(state), residuals, seconds
            known[round] = new_tuple(Past, past)
            self._open.pop(round, None)
            if self._held:
                self._held.pop(round, None)
        while len(known) > self.remember:
            known.popitem(last=False)
        number = self._next
        while number <= self._latest and number not in self._open and number not in self._held:
            number += 1
        self._next = number
        self._state = state
        self._done = None

    def _write(self, act: Callable[..., None], *arguments: Any) -> None:
        """Write to the file; an interrupt before memory has followed leaves the two apart."""
        self._astray = True
        try:
            act(*arguments)
        except REFUSALS:
            self._astray = False
            raise

    def _hold(self, round: int, feedback: Feedback, decision: Decision) -> Receipt:
        """Keep feedback back until earlier rounds are settled; what would fail then fails now."""
        known = None if self._store is None else encode(feedback)
        if self._store is not None and known is None:
            raise InvalidInput(
                f"the feedback of round {round} has functions of your own, which a file cannot "
                f"hold, and must wait for round {self._next}: settle that one first, or describe "
                "the feedback by coldq's own losses and constraints"
            )
        applied(self.learner, self.late, self._state, decision, feedback, None)
        if self._store is not None:
            self._write(self._store.hold, round, known)
        self._held[round] = Held(decision, feedback, known)
        del self._open[round]
        self._astray = False
        return Receipt(round, "waiting")

    def _again(self, round: int, feedback: Feedback) -> Receipt:
        """Answer a message about a round that has its feedback, or never can have one."""
        self._require_known(round)
        past = self._held.get(round) or self._settled.get(round)
        if past is None or (isinstance(past, Past) and past.status == "skipped"):
            return Receipt(round, "past" if past is None else "skipped")
        if past.known is not None:
            same = past.known == encode(feedback)
        else:  # of a function of a process before nothing is left to compare
            same = past.feedback is None or bool(past.feedback == feedback)
        if not same:
            raise OtherFeedback(
                f"round {round} has another feedback already: the first one counts, and this one "
                "changed nothing"
            )
        log.info("the feedback of round %s came again", round)
        return Receipt(round, "repeated")

    def _require_known(self, round: int) -> None:
        if not 1 <= round <= self._latest:
            raise InvalidInput(f"round {round} was not decided yet; the latest is {self._latest}")

    def _require_usable(self) -> None:
        """Raise unless the agent is open, in its own process, and as far as its file."""
        self._finish()
        if self._closed:
            raise InvalidInput("this agent is closed: coldq.Agent.open(path) goes on")
        if self._store is not None:
            self._store.require_ours()
        if self._astray:
            raise InvalidInput(
                "this agent was interrupted while it wrote to its file, which may be ahead of it: "
                "close it and open it again, coldq.Agent.open(path) goes on exactly"
            )
