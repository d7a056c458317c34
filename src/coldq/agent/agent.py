"""The agent: one learner, one state, and the rounds whose feedback is still to come."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from math import inf
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coldq.agent.applying import applied, applied_or_skipped, getter, log, takes_played
from coldq.agent.encoding import encode
from coldq.agent.options import LATE_OPTIONS, ORDER_OPTIONS
from coldq.agent.restored import require_same_agent, restored
from coldq.agent.rounds import Decision, Held, OtherFeedback, Past, Receipt, Settled
from coldq.agent.store import Store
from coldq.base.arrays import batch_shape, one_of, whole_number
from coldq.base.errors import Error, InUse, InvalidInput, NotReadable, NotWritten
from coldq.base.protocols import Constraint, Loss, require_learner
from coldq.learners.learner import State
from coldq.slot.feedback import Feedback, Forecast

if TYPE_CHECKING:
    from coldq.agent.history import History

DUAL_NAMES = ("queue", "multipliers", "margin")
REMEMBERED_ROUNDS = 1000  # settled ones, whose feedback is told from a repeated one
REFUSALS = NotWritten, InUse, NotReadable  # by the file, which is as it was
REENTERED = (
    "this agent is at work already, in the same thread: a signal handler, or a function of your "
    "own that it evaluates, may look at it, but decides, tells and closes when it has returned"
)
new_tuple = tuple.__new__  # a named tuple without the call of its own constructor


class Agent:
    """A learner that is live: decide now, hear later, in any order, twice or never.

    Rounds are numbered from 1. Several may be in flight. Feedback is applied in the order of its
    rounds as these are complete: what comes early waits, and a round that stays without feedback is
    skipped, by :meth:`skip` or by the `limit`. Skipping leaves the learner's state and clock as
    they are. An agent may be used by several threads at once.

    Parameters
    ----------
    learner, n_constraints, start, batch
        A learner, and what its `init` takes. The members of a batch share their rounds. An agent
        that goes on in its file has its start already: another one is refused.
    path
        A file to survive in: every accepted observation is on disk before :meth:`observe`
        returns, and an agent made with the same path goes on there, bit for bit. The file belongs
        to one agent at a time, see :meth:`close`.
    limit
        How many rounds later a missing feedback is given up: opening round n skips those before
        n - limit. None: never. Rounds count, not hours, so that no clock matters.
    late
        "played": feedback is evaluated at the decision that its round played. "held": at the
        decision that the state has by then, as in :func:`coldq.simulate` with a delay. None: the
        first, unless the learner does not take it (``learner.card.played``).
    order
        "round", or "arrival": feedback is applied at once, in whatever order it comes.
    remember
        How many settled rounds are known, to tell repeated from different feedback, and to show in
        :meth:`history`.

    >>> import coldq
    >>> agent = coldq.Agent(coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100), n_constraints=1)
    >>> for slot in range(20):
    ...     decision = agent.decide()
    ...     loss, rows = coldq.Linear([-1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [1.0])
    ...     receipt = agent.observe(decision.round, loss, rows)
    >>> receipt, agent.decide().x.round(6)
    (Receipt(round=20, status='applied'), array([0., 1.]))
    """

    def __init__(
        self,
        learner: Any,
        n_constraints: int,
        *,
        path: str | os.PathLike[str] | None = None,
        start: ArrayLike | None = None,
        batch: tuple[int, ...] = (),
        limit: int | None = None,
        late: str | None = None,
        order: str = "round",
        remember: int = REMEMBERED_ROUNDS,
    ) -> None:
        require_learner(learner)
        can = takes_played(learner)
        if late is None:
            late = "played" if can else "held"
        if one_of("late", late, LATE_OPTIONS) == "played" and not can:
            raise InvalidInput(
                f"{type(learner).__name__}.update does not take a decision played before, so that "
                "late must be 'held'"
            )
        self.learner = learner
        self.n_constraints = whole_number("n_constraints", n_constraints, 0)
        self.late = late
        self.order = one_of("order", order, ORDER_OPTIONS)
        self.limit = None if limit is None else whole_number("limit", limit, 0)
        self.remember = whole_number("remember", remember, 1)
        self._lock = RLock()
        self._within = self._lock._is_owned  # type: ignore[attr-defined]
        self._latest = 0  # the last round that was opened
        self._next = 1  # the first round that is not settled
        self._open: dict[int, Decision] = {}  # without feedback, in the order of their rounds
        self._held: dict[int, Held] = {}
        self._settled = OrderedDict[int, Past]()  # the last of them, in the order of settling
        self._unsure = False  # whether a kill may have forgotten that the next round was opened
        self._closed = False
        self._done: list[Settled] | None = None  # what counts, though an interrupt came in between
        self._astray = False  # whether an interrupt left the file ahead of memory
        self._state = learner.init(self.n_constraints, start, batch)
        self._seconds = inf  # that the last update took
        self._dual_names = tuple(name for name in DUAL_NAMES if hasattr(self._state, name))
        self._duals_of = getter(self._dual_names)
        self._read_only = isinstance(self._state, State)  # whose x nobody can change
        self._store: Store | None = None
        self._where = "" if path is None else f" of {path}"  # for the log
        if path is not None:
            self._store = Store(path)
            try:
                self._begin(self._store, batch_shape(batch), start is not None)
            except BaseException:
                self._store.close()
                raise

    @classmethod
    def open(cls, path: str | os.PathLike[str], learner: Any = None) -> Agent:
        """The agent that lives in a file, with the learner that it was made with.

        A `learner` is needed where it holds functions of your own, which no file can; its other
        parameters must be those that it had, or the difference is named.

        >>> import coldq, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.db"
        >>> with coldq.Agent(coldq.OGD(coldq.Simplex(3), eta=0.1), 0, path=path) as agent:
        ...     _ = agent.observe(agent.decide().round, coldq.Linear([1.0, 2.0, 3.0]), None)
        >>> with coldq.Agent.open(path) as agent:
        ...     agent, agent.learner.domain
        (Agent(OGD, round 1), Simplex(dim=3, total=1.0, cap=inf))
        """
        options = Store.read(path)
        if learner is not None:
            return cls(learner, path=path, **options.arguments)
        try:
            return cls(options.learner(), path=path, **options.arguments)
        except InvalidInput as error:  # though all of it was in the file
            raise NotReadable(f"{path} cannot be opened: {error}") from None

    @property
    def state(self) -> Any:
        """The learner's state, with all feedback that was applied."""
        return self._state

    @property
    def round(self) -> int:
        """The latest round, 0 before the first decision."""
        return self._latest

    @property
    def in_flight(self) -> tuple[int, ...]:
        """The rounds that wait for their feedback."""
        with self._lock:
            return tuple(self._open)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The rounds whose feedback waits for that of earlier ones."""
        with self._lock:
            return tuple(sorted(self._held))

    def decide(self, round: int | None = None) -> Decision:
        """The decision of a round: the same, however often it is asked for.

        Without a number: that of the latest round as long as it has no feedback, then that of the
        next. ``decide(agent.round + 1)`` opens the next one while others are in flight. A round
        that has its feedback, or that is further ahead, is refused.

        >>> import coldq
        >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
        >>> agent.decide().round, agent.decide().round, agent.decide(2).round, agent.in_flight
        (1, 1, 2, (1, 2))
        """
        if self._within():
            raise InvalidInput(REENTERED)
        with self._lock:
            if self._store is not None or self._done:
                self._require_usable()
            if round is None:
                known = self._open.get(self._latest)
            elif type(round) is int and round == self._latest + 1:
                known = None
            else:
                known = self._decided(round)
            return self._opened() if known is None else known

    def observe(
        self,
        round: int,
        loss: Loss,
        constraint: Constraint | None,
        forecast: Forecast | None = None,
    ) -> Receipt:
        """Tell the loss and the constraint of a round; the receipt says what became of them.

        The same again is accepted once, and said to be repeated; a different one for the same round
        is refused. What is refused changes nothing.

        >>> import coldq
        >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
        >>> one, two = agent.decide(1), agent.decide(2)
        >>> agent.observe(2, coldq.Linear([-1.0]), None).status  # until round 1 is complete
        'waiting'
        >>> agent.observe(1, coldq.Linear([-2.0]), None).status, int(agent.state.t)
        ('applied', 3)
        >>> agent.observe(1, coldq.Linear([-2.0]), None).status
        'repeated'
        >>> agent.observe(1, coldq.Linear([-3.0]), None)
        Traceback (most recent call last):
        ...
        coldq.agent.rounds.OtherFeedback: round 1 has another feedback already: ...
        """
        feedback = Feedback(loss, constraint, None, forecast)
        if self._within():
            raise InvalidInput(REENTERED)
        with self._lock:
            if self._store is not None or self._done:
                self._require_usable()
            if type(round) is not int:
                round = whole_number("round", round, 1)
            decision = self._open.get(round)
            if decision is None and self._forgotten(round):
                decision = Decision(self._state.x, round)  # what is refused opens nothing
                applied(self.learner, self.late, self._state, decision, feedback, None)
                self._opened()
                try:
                    return self._tell(round, feedback, decision)
                except Error:
                    self._unopen(round)
                    raise
            if decision is None:
                return self._again(round, feedback)
            return self._tell(round, feedback, decision)

    def skip(self, round: int) -> Receipt:
        """Go on without the feedback of a round; the learner's state and clock stay as they are.

        >>> import coldq
        >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
        >>> agent.skip(agent.decide().round), agent.skip(1).status
        (Receipt(round=1, status='skipped'), 'repeated')
        >>> agent.observe(1, coldq.Linear([1.0]), None).accepted, int(agent.state.t)
        (False, 1)
        """
        if self._within():
            raise InvalidInput(REENTERED)
        with self._lock:
            self._require_usable()
            round = whole_number("round", round, 1)
            forgotten = self._forgotten(round)
            if forgotten:
                self._opened()
            if round in self._open:
                try:
                    self._settle(self._in_turn([self._skipped(round, self._state)]))
                except Error:
                    if forgotten:
                        self._unopen(round)
                    raise
                return Receipt(round, "skipped")
            self._require_known(round)
            past = self._settled.get(round)
            if round in self._held or (past is not None and past.status == "applied"):
                raise InvalidInput(f"round {round} has its feedback already, and is not skipped")
            return Receipt(round, "past" if past is None else "repeated")

    def history(self, last: int | None = None) -> History:
        """What happened in the rounds since this object was made, a row for each, the `last` ones.

        >>> import coldq
        >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
        >>> _ = agent.observe(agent.decide().round, coldq.Linear([-1.0]), None)
        >>> agent.history().columns["loss"]
        array([0.])
        """
        from coldq.agent.history import History

        with self._lock:
            kept = self._settled.values()
            count = len(kept) if last is None else min(whole_number("last", last, 1), len(kept))
            told = [past for past in islice(reversed(kept), count) if past.duals is not None]
        told.reverse()
        return History.of(told, self._dual_names, self.n_constraints)

    def backup(self) -> bytes:
        """The agent's file as of now, in one piece: as bytes, which :meth:`open` takes from a file.

        >>> import coldq, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1)
        >>> with coldq.Agent(learner, 0, path=folder / "agent.db") as agent:
        ...     _ = agent.observe(agent.decide().round, coldq.Linear([-1.0]), None)
        ...     _ = (folder / "copy.db").write_bytes(agent.backup())
        >>> with coldq.Agent.open(folder / "copy.db") as copy:
        ...     copy.round
        1
        """
        from coldq.agent.backups import checked

        if self._within():
            raise InvalidInput(REENTERED)
        with self._lock:
            self._require_usable()
            if self._store is None:
                raise InvalidInput("this agent lives in memory: there is no file to back up")
            path, both = self._store.path, self._store.read_both()
        return checked(path, *both)[0]

    def close(self) -> None:
        """Let go of the file, so that another may open it; without a path nothing happens.

        An agent that is closed decides no more. What is on disk is complete at any time, so that
        nothing is lost without this.
        """
        if self._within():
            raise InvalidInput(REENTERED)
        with self._lock:
            if self._store is not None and not self._closed:
                self._closed = True
                try:
                    if not self._astray:
                        self._finish()
                        self._store.require_ours()
                        self._store.snapshot(self._state, self._latest - self.remember)
                finally:
                    self._store.close()

    def _lost(self) -> bool:
        """Whether its file is gone, replaced or ahead of it: what is there now may be of use."""
        with self._lock:
            try:
                if self._store is not None:
                    self._store.require_there()
            except NotWritten:
                return True
            return self._astray

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        flying = f", {len(self._open)} in flight" if self._open else ""
        return f"Agent({type(self.learner).__name__}, round {self._latest}{flying})"

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

    # Everything below is called with the lock held.

    def _tell(self, round: int, feedback: Feedback, decision: Decision) -> Receipt:
        """The feedback of a round that is open."""
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
        """The decision of a new round; it may be the one too many for a round that is missing."""
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
        """Whether somebody may have this decision from before a kill; it is that of the state."""
        return self._unsure and round == self._latest + 1

    def _unopen(self, round: int) -> None:
        """Forget again what a call opened that was refused."""
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
        """Rounds that are settled now, and after them those that only waited for them."""
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
        """Let what is done count; after an interrupt the next call does it once more."""
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
        """A message about a round that has its feedback, or never can have one."""
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
        """What every call begins with."""
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
