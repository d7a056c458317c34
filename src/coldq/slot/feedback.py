"""What is revealed after a decision, and all that a learner ever sees of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coldq.base.arrays import Array, put, real_array
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Constraint, Loss
from coldq.slot.constraints import Affine, Unconstrained
from coldq.slot.losses import GradientAt, LeastSquares, Linear, Quadratic

LOSSES = frozenset({GradientAt, LeastSquares, Linear, Quadratic})  # known to answer, of these
CONSTRAINTS = frozenset({Affine, Unconstrained})
NO_ROWS = Unconstrained()
ZERO = real_array("r", 0.0, 0)
new = object.__new__


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
            constraint = NO_ROWS
        if type(loss) not in LOSSES:
            _require_methods("loss", loss, ("value", "gradient"))
        if type(constraint) not in CONSTRAINTS:
            _require_methods("constraint", constraint, ("value", "jacobian"))
        expected: Any = forecast
        if expected is not None and not isinstance(expected, Forecast):
            raise InvalidInput(f"forecast must be a coldq.Forecast, but is {forecast!r:.200}")
        put(self, "loss", loss, "constraint", constraint, "slot", slot, "forecast", forecast)

    @classmethod
    def from_arrays(
        cls,
        *,
        c: Array | None = None,
        H: Array | None = None,
        y: Array | None = None,
        P: Array | None = None,
        q: Array | None = None,
        x: Array | None = None,
        gradient: Array | None = None,
        A: Array | None = None,
        b: Array | None = None,
        slot: Any = None,
    ) -> Feedback:
        """A feedback from arrays that are known to be sound: neither checked nor copied.

        Each must be of finite float64, contiguous, and of the right shape, and nobody may write to
        it afterwards. Then this is ``Feedback`` of the loss and the constraint with these
        parameters, in a fraction of the time.

        Parameters
        ----------
        c; H, y; P, q; x, gradient
            The loss: :class:`~coldq.Linear`, :class:`~coldq.LeastSquares`,
            :class:`~coldq.Quadratic` or :class:`~coldq.GradientAt`, whichever is given.
        A, b
            The rows of a :class:`~coldq.Affine`; left out, there is no constraint.
        slot
            As for :class:`Feedback`.

        >>> import numpy as np, coldq
        >>> c, A, b = np.array([1.0, 2.0]), np.array([[1.0, 1.0]]), np.array([1.0])
        >>> revealed = coldq.Feedback.from_arrays(c=c, A=A, b=b, slot=1)
        >>> revealed == coldq.Feedback(coldq.Linear(c), coldq.Affine(A, b), slot=1)
        True
        """
        losses = (c is not None) + (H is not None) + (P is not None) + (gradient is not None)
        pairs = (H is None) == (y is None) and (P is None) == (q is None)
        if losses != 1 or not pairs or (x is None) != (gradient is None):
            raise InvalidInput(
                "from_arrays takes one loss: c, or H and y, or P and q, or x and gradient"
            )
        if (A is None) != (b is None):
            raise InvalidInput("from_arrays takes rows as A and b, but one of them is left out")
        loss: Any
        if c is not None:
            loss = new(Linear)
            put(loss, "c", c)
        elif H is not None:
            loss = new(LeastSquares)
            put(loss, "H", H, "y", y)
        elif P is not None:
            loss = new(Quadratic)
            put(loss, "P", P, "q", q, "r", ZERO)
        else:
            loss = new(GradientAt)
            put(loss, "x", x, "slope", gradient, "level", None)
        rows: Any = NO_ROWS
        if A is not None:
            rows = new(Affine)
            put(rows, "A", A, "b", b)
        made = new(cls)
        put(made, "loss", loss, "constraint", rows, "slot", slot, "forecast", None)
        return made


def _require_methods(name: str, thing: Any, methods: tuple[str, ...]) -> None:
    """Raise unless a loss or constraint answers what is asked of it."""
    if isinstance(thing, type):
        raise InvalidInput(f"{name} must be made of data, but is the class {thing.__name__} itself")
    for method in methods:
        if not callable(getattr(thing, method, None)):
            raise InvalidInput(
                f"{name} must have a method {method}(x), but is a {type(thing).__name__}"
            )
