"""What is revealed after a decision, and all that a learner ever sees of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coldq.constraints import Unconstrained
from coldq.errors import InvalidInput
from coldq.protocols import Constraint, Loss


@dataclass(frozen=True)
class Feedback:
    """The loss f_t and the constraint g_t of one slot, revealed after x_t was played.

    Parameters
    ----------
    loss
        Anything with ``value(x)`` and ``gradient(x)``.
    constraint
        Anything with ``value(x)`` and ``jacobian(x)``, or None if there is none. That is enough
        for learners that take a gradient step. One with a step on the whole constraint, such as
        :class:`~coldq.COLDQ`, must know its kind: that of a class of your own is
        ``coldq.Convex(g.value, g.jacobian)``.
    slot
        The slot this is about. A learner refuses feedback about another slot than its own, so
        that a late or repeated message is noticed. Left out, nothing is checked.

    >>> import coldq
    >>> budget = coldq.Affine([[1.0, 1.0]], [1.0])
    >>> revealed = coldq.Feedback(coldq.Linear([1.0, 2.0]), budget, slot=1)
    >>> revealed.loss.gradient([0.0, 0.0])
    array([1., 2.])
    """

    loss: Loss
    constraint: Constraint
    slot: Any = None

    def __init__(self, loss: Loss, constraint: Constraint | None, slot: Any = None) -> None:
        if constraint is None:
            constraint = Unconstrained()
        for name, thing, methods in (
            ("loss", loss, ("value", "gradient")),
            ("constraint", constraint, ("value", "jacobian")),
        ):
            if isinstance(thing, type):
                raise InvalidInput(
                    f"{name} must be made of data, but is the class {thing.__name__} itself"
                )
            for method in methods:
                if not callable(getattr(thing, method, None)):
                    raise InvalidInput(
                        f"{name} must have a method {method}(x), but is a {type(thing).__name__}"
                    )
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "constraint", constraint)
        object.__setattr__(self, "slot", slot)
