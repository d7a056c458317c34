"""Values from requests: of the types that belong there, and no larger than they may be."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from coldq.base.describe import Decoder, Limits
from coldq.base.errors import InvalidInput
from coldq.base.protocols import require_learner

MAX_STATE_NUMBERS = 2_000_000  # sizes that are small by themselves are multiplied in a state
LEARNER = Limits(
    "learner", ("coldq.learners", "coldq.slot.domains", "coldq.slot.schedules"), 100_000
)
FEEDBACK = Limits("feedback", ("coldq.slot.losses", "coldq.slot.constraints"), 1_000_000)


def learner_of(description: Mapping[str, Any], n_constraints: int) -> Any:
    """A learner, from its description, whose state for so many constraints is not too large.

    >>> from coldq.serve.requested import learner_of
    >>> box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": 100_000}
    >>> learner_of({"type": "OGD", "domain": box, "eta": [0.1] * 100}, n_constraints=0)
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: the state of an agent may have at most 2000000 numbers, but 100 ...
    """
    learner = Decoder(LEARNER).build(description)
    require_learner(learner)
    members = prod(getattr(learner, "_batch", tuple)())
    inside = getattr(learner, "learner", learner)  # what a SafetyMargin is around
    past = 1 + getattr(inside, "delay", 0)  # decisions that are remembered
    numbers = members * (learner.domain.dim * past + n_constraints)
    if numbers > MAX_STATE_NUMBERS:
        raise InvalidInput(
            f"the state of an agent may have at most {MAX_STATE_NUMBERS} numbers, but "
            f"{members} x ({past} x dim + n_constraints) are {numbers}"
        )
    return learner


def part_of_feedback(description: Mapping[str, Any] | None) -> Any:
    """A loss or a constraint, from its description.

    >>> from coldq.serve.requested import part_of_feedback
    >>> part_of_feedback({"type": "Linear", "c": [1.0, 2.0]})
    Linear(c=[1.0, 2.0])
    >>> part_of_feedback({"type": "Simplex", "dim": 100_000_000})
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: a Simplex is no part of a feedback
    """
    return None if description is None else Decoder(FEEDBACK).build(description)
