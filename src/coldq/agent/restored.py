"""An agent as its file has it: who it was, and where it stood."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from coldq import __version__
from coldq.agent.applying import applied
from coldq.agent.options import Options
from coldq.agent.outcome import is_of
from coldq.agent.rounds import Decision, Held, Past
from coldq.agent.schema import APPLIED, HELD, OPEN
from coldq.agent.store import Store, start_of
from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput, warn
from coldq.learners.fingerprint import require_same


class Restored(NamedTuple):
    """The state and the rounds of an agent, the `latest` of them and those that are known."""

    state: Any
    latest: int
    open: dict[int, Decision]
    held: dict[int, Held]
    settled: dict[int, Past]


def require_same_agent(
    path: os.PathLike[str], made: Options, learner: Any, fixed: Mapping[str, Any], first: Any
) -> None:
    """Raise unless the agent in a file has this learner and these options.

    It began as the state `first` does, unless that is None.
    """
    own = getattr(learner, "_fingerprint", None)
    if own is not None:
        remedy = f"coldq.Agent.open({os.fspath(path)!r}) goes on with the one it was"
        require_same(made.fingerprint, own, f"the agent in {path} was made", remedy)
    theirs = made.arguments
    for name, value in fixed.items():
        if theirs[name] != value:
            raise InvalidInput(
                f"the agent in {path} has {name} = {theirs[name]!r}, but this one {value!r}"
            )
    if first is not None and made.start not in (None, start_of(first)):
        raise InvalidInput(
            f"the agent in {path} began at another start than this one is given: leave it out, or "
            "begin in another file"
        )


class OtherBits(UserWarning):
    """Rounds that were applied again gave other bits than when they were told; those count.

    >>> import coldq
    >>> issubclass(coldq.agent.OtherBits, UserWarning)
    True
    """


def restored(store: Store, learner: Any, late: str, like: Array, made: Options) -> Restored:
    """State and rounds of an agent's file; feedback after its snapshot is applied again.

    Where that gives another state than it gave then, the one then counts if it was kept.
    """
    found = Restored(store.state(learner, made.fingerprint), 0, {}, {}, {})
    latest, rows = 0, store.rounds()
    for row in rows:
        x, latest = store.decision(row, like), row.round
        x.flags.writeable = False
        decision = Decision(x, latest)
        if row.status == OPEN:
            found.open[latest] = decision
        elif row.status == HELD:
            found.held[latest] = Held(decision, store.feedback(row), row.feedback)
        else:
            status = "applied" if row.status == APPLIED else "skipped"
            found.settled[latest] = Past(latest, status, x, None, row.feedback, None, [], 0.0)
    state, other, kept = found.state, [], True
    for row in store.again(rows):
        decision = Decision(found.settled[row.round].x, row.round)
        state = applied(learner, late, state, decision, store.feedback(row), None).state
        store.turn += 1  # though the snapshot is older
        if row.outcome is not None and not is_of(row.outcome, state):
            then = store.recalled(row, state, learner)
            other, kept = [*other, row.round], then is not None
            state = state if then is None else then
    if other:
        counts = "the states of then count" if kept else "it goes on from these"
        warn(
            f"{store.path}: {len(other)} rounds from {other[0]} on, applied again, gave other bits "
            f"than when they were told, by coldq {made.version} then and {__version__} now, or on "
            f"another processor: {counts}",
            OtherBits,
        )
    return found._replace(state=state, latest=latest)
