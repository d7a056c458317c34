"""The agent: one learner, one state, and the rounds whose feedback is still to come."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from coldq.agent.applying import applied, takes_played
from coldq.agent.flight import Flight
from coldq.agent.options import LATE_OPTIONS, ORDER_OPTIONS
from coldq.agent.rounds import Decision, Receipt
from coldq.agent.store import Store
from coldq.base.arrays import batch_shape, one_of, whole_number
from coldq.base.errors import Error, InvalidInput, NotReadable, NotWritten
from coldq.base.protocols import Constraint, Loss, require_learner
from coldq.slot.feedback import Feedback, Forecast

if TYPE_CHECKING:
    from coldq.agent.history import History

REMEMBERED_ROUNDS = 1000  # settled ones, whose feedback is told from a repeated one
REENTERED = (
    "this agent is at work already, in the same thread: a signal handler, or a function of your "
    "own that it evaluates, may look at it, but decides, tells and closes when it has returned"
)


class Agent(Flight):
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
        n_constraints = whole_number("n_constraints", n_constraints, 0)
        order = one_of("order", order, ORDER_OPTIONS)
        limit = None if limit is None else whole_number("limit", limit, 0)
        remember = whole_number("remember", remember, 1)
        state = learner.init(n_constraints, start, batch)
        super().__init__(learner, n_constraints, state, late, order, limit, remember)
        self._lock = RLock()
        self._working = Lock()  # by a call that may change something; looking is allowed within
        if path is not None:
            self._where = f" of {path}"
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
        with self._lock, self._turn():
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
        with self._lock, self._turn():
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
        with self._lock, self._turn():
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

        return checked(*self._file_and_log())[0]

    def _file_and_log(self) -> tuple[Path, bytes, bytes]:
        """Name and content of the file, and of its log."""
        with self._lock, self._turn():
            self._require_usable()
            if self._store is None:
                raise InvalidInput("this agent lives in memory: there is no file to back up")
            return self._store.path, *self._store.read_both()

    def close(self) -> None:
        """Let go of the file, so that another may open it; without a path nothing happens.

        An agent that is closed decides no more. What is on disk is complete at any time, so that
        nothing is lost without this.
        """
        with self._lock, self._turn():
            if self._store is not None and not self._closed:
                self._closed = True
                try:
                    if not self._astray:
                        self._finish()
                        self._store.require_ours()
                        self._store.snapshot(self._state, self._latest - self.remember)
                finally:
                    self._store.close()

    def _turn(self) -> Lock:
        """The lock of a call that may change something, called with the agent's own lock held."""
        if self._working.locked():  # by this thread: no other one is in here
            raise InvalidInput(REENTERED)
        return self._working

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
