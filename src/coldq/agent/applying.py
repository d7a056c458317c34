"""A round with its feedback: the learner's update, and what it tells of itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from inspect import signature
from operator import attrgetter
from threading import get_ident
from time import perf_counter
from typing import Any

from coldq.agent.rounds import Decision, Held, Settled
from coldq.base import arrays as values
from coldq.base.errors import InvalidInput
from coldq.learners.state import State
from coldq.slot.feedback import Feedback
from coldq.slot.step.residuals import listening

log = logging.getLogger("coldq.agent")
log.addHandler(logging.NullHandler())  # silent, unless the user asks for it


def applied(
    learner: Any, late: str, state: Any, decision: Decision, feedback: Feedback, known: bytes | None
) -> Settled:
    """Apply the feedback of a round, which is then settled; `known` is the feedback as data."""
    x, round = decision
    thread, heard = get_ident(), []
    outer = listening.get(thread)
    begun = perf_counter()
    try:
        listening[thread] = heard  # as Residuals does, in half the time
        if x is state.x or late == "held":
            state = learner.update(state, feedback)
        else:
            state = learner.update(state, feedback, played=x)
    finally:
        seconds = perf_counter() - begun
        listening.pop(thread, None)
        if outer is not None:
            listening[thread] = outer
    if isinstance(state, State):
        _require_finite(state, round)
    return tuple.__new__(Settled, (round, x, feedback, known, state, heard, seconds))


def applied_or_skipped(learner: Any, late: str, state: Any, held: Held, where: str) -> Settled:
    """Apply feedback that waited, or skip its round if that fails, though it was tried before."""
    try:
        return applied(learner, late, state, *held)
    except Exception as error:
        words = "the feedback of round %s%s failed: skipped: %s"
        log.error(words, held.decision.round, where, error)
        return Settled(held.decision.round, held.decision.x, None, None, state, [], 0.0)


def _require_finite(state: State, round: int) -> None:
    """Raise unless a state is finite: no learner of ours takes another back from a file.

    Every step looks at its decision itself.
    """
    names, parts_of = _beside_decision(type(state))
    parts = parts_of(state)
    if values.are_finite(*parts):
        return
    for name, part in zip(names, parts, strict=True):
        if isinstance(part, State):
            _require_finite(part, round)
        elif not values.all_finite(part):
            raise InvalidInput(
                f"after the feedback of round {round} the learner's {name} would not be finite: "
                "its numbers are too large. Nothing has changed"
            )


@cache
def _beside_decision(kind: type[State]) -> tuple[list[str], Callable[[Any], tuple[Any, ...]]]:
    """Names of a state's arrays after t and x, and a function that gets them."""
    _, _, *names = kind.names()
    return names, getter(tuple(names))


def getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gets some attributes, as fast as can be: every round asks for them."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda state: tuple(getattr(state, name) for name in names)


def takes_played(learner: Any) -> bool:
    """Whether a learner's update takes feedback about a decision played before."""
    card = getattr(learner, "card", None)
    return (
        getattr(card, "played", "taken") == "taken"
        and "played" in signature(learner.update).parameters
    )
