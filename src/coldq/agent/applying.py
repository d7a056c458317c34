"""A round with its feedback: the learner's update, and what it tells of itself."""

from __future__ import annotations

import logging
from inspect import signature
from threading import get_ident
from time import perf_counter
from typing import Any

from coldq.agent.rounds import Decision, Held, Settled
from coldq.feedback import Feedback
from coldq.step.residuals import listening

log = logging.getLogger("coldq.agent")
log.addHandler(logging.NullHandler())  # silent, unless the user asks for it


def applied(
    learner: Any, late: str, state: Any, decision: Decision, feedback: Feedback, known: bytes | None
) -> Settled:
    """A round that is over by its feedback; `known` is that as data."""
    x, round = decision
    thread, heard = get_ident(), []
    outer = listening.get(thread)
    listening[thread] = heard  # as Residuals does, in half the time
    begun = perf_counter()
    try:
        if x is state.x or late == "held":
            state = learner.update(state, feedback)
        else:
            state = learner.update(state, feedback, played=x)
    finally:
        seconds = perf_counter() - begun
        del listening[thread]
        if outer is not None:
            listening[thread] = outer
    return tuple.__new__(Settled, (round, x, feedback, known, state, heard, seconds))


def applied_or_skipped(learner: Any, late: str, state: Any, held: Held) -> Settled:
    """Feedback that waited for its turn. It was tried before; no other round pays for it."""
    try:
        return applied(learner, late, state, *held)
    except Exception as error:
        log.error("the feedback of round %s failed: skipped: %s", held.decision.round, error)
        return Settled(held.decision.round, held.decision.x, None, None, state, [], 0.0)


def takes_played(learner: Any) -> bool:
    """Whether a learner's update takes feedback about a decision played before."""
    card = getattr(learner, "card", None)
    return (
        getattr(card, "played", "taken") == "taken"
        and "played" in signature(learner.update).parameters
    )
