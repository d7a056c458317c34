"""What is revealed after a decision, and all that a learner ever sees of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coldq.constraints import Affine, Unconstrained
from coldq.errors import InvalidInput
from coldq.losses import GradientAt, LeastSquares, Linear, Quadratic
from coldq.protocols import Constraint, Loss

LOSSES = frozenset({GradientAt, LeastSquares, Linear, Quadratic})  # known to answer, of these
CONSTRAINTS = frozenset({Affine, Unconstrained})


@dataclass(frozen=True)
class Forecast:
    """What is expected of the next slot: its loss, its constraint, or both.

    A learner that looks ahead (:class:`~coldq.SelfTuning`, :class:`~coldq.SafetyMargin`) judges a
    forecast of the constraint by its past errors, beside forecasts of its own, and steps on the
    best. It must be of the same kind as the constraints themselves.

    >>> import coldq
    >>> coldq.Forecast(constraint=coldq.Affine([[1.0, 1.0]], [0.9])).loss is None
    True
    """

    loss: Loss | None = None
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        if self.loss is None and self.constraint is None:
            raise InvalidInput("a Forecast needs a loss, a constraint, or both")
        if self.loss is not None:
            _require_methods("the forecast's loss", self.loss, ("value", "gradient"))
        if self.constraint is not None:
            _require_methods("the forecast's constraint", self.constraint, ("value", "jacobian"))


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
    forecast
        What you expect of the next slot, a :class:`Forecast`; learners that do not look ahead
        ignore it.

    >>> import coldq
    >>> budget = coldq.Affine([[1.0, 1.0]], [1.0])
    >>> revealed = coldq.Feedback(coldq.Linear([1.0, 2.0]), budget, slot=1)
    >>> revealed.loss.gradient([0.0, 0.0])
    array([1., 2.])
    """

    loss: Loss
    constraint: Constraint
    slot: Any = None
    forecast: Forecast | None = None

    def __init__(
        self,
        loss: Loss,
        constraint: Constraint | None,
        slot: Any = None,
        forecast: Forecast | None = None,
    ) -> None:
        if constraint is None:
            constraint = Unconstrained()
        if type(loss) not in LOSSES:
            _require_methods("loss", loss, ("value", "gradient"))
        if type(constraint) not in CONSTRAINTS:
            _require_methods("constraint", constraint, ("value", "jacobian"))
        if forecast is not None and not isinstance(forecast, Forecast):
            raise InvalidInput(f"forecast must be a coldq.Forecast, but is {forecast!r:.200}")
        own = self.__dict__  # half the time of object.__setattr__
        own["loss"], own["constraint"], own["slot"], own["forecast"] = (
            loss, constraint, slot, forecast,
        )  # fmt: skip


def _require_methods(name: str, thing: Any, methods: tuple[str, ...]) -> None:
    """Raise unless a loss or constraint answers what is asked of it."""
    if isinstance(thing, type):
        raise InvalidInput(f"{name} must be made of data, but is the class {thing.__name__} itself")
    for method in methods:
        if not callable(getattr(thing, method, None)):
            raise InvalidInput(
                f"{name} must have a method {method}(x), but is a {type(thing).__name__}"
            )
