"""Parameters that change with the slot: small frozen callables of t.

They are evaluated by NumPy on arrays of float64, always: Python's ``t ** 0.25`` and NumPy's differ
in the last bit, and a run must not depend on who evaluated its step size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy import power
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, joint_batch, positive, real_array
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput, NotSaveable

Schedule = Callable[[Array], Array]


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Power(Value):
    """``scale * t ** exponent``; both may be arrays over leading axes.

    >>> from coldq.slot.schedules import Power
    >>> Power(0.5)(4.0)
    np.float64(2.0)
    """

    exponent: Array
    scale: Array
    _factor: ClassVar[Any]
    _root: ClassVar[bool]

    def __init__(self, exponent: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self._set(exponent=real_array("exponent", exponent, 0), scale=positive("scale", scale))
        joint_batch(exponent=self.exponent.shape, scale=self.scale.shape)
        # A plain number multiplies faster than an array of none, and a root is faster than a power.
        self._set(_factor=self.scale if self.scale.ndim else float(self.scale))
        self._set(_root=self.exponent.ndim == 0 and self.exponent == 0.5)

    def __call__(self, t: ArrayLike) -> Array:
        try:
            slots: Any = np.float64(t)  # type: ignore[arg-type]  # an array of what is one
        except (TypeError, ValueError):
            slots = real_array("t", t, 0)  # which says so
        grown = np.sqrt(slots) if self._root else power(slots, self.exponent)
        return grown * self._factor

    def at(self, t: int) -> Any:
        """The value at one whole number, in less time.

        A root, or a power of NumPy's, whose bits are known.

        >>> from coldq.slot.schedules import Power
        >>> Power(0.5).at(4)
        2.0
        """
        grown: Any = sqrt(t) if self._root else power(float(t), self.exponent)
        return grown * self._factor


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Constant(Value):
    """A positive number for every slot, or an array of them over leading axes.

    >>> from coldq.slot.schedules import Constant
    >>> Constant(3.0)(17)
    array(3.)
    """

    level: Array

    def __init__(self, value: ArrayLike) -> None:
        self._set(level=positive("value", value))

    def _arguments(self) -> dict[str, Any]:
        return {"value": self.level}

    def __call__(self, t: ArrayLike) -> Array:
        return self.level


@dataclass(frozen=True)
class Custom:
    """A function or callable object of your own as a schedule; what it returns is checked.

    A plain function works everywhere, but cannot be saved.

    >>> from coldq.slot.schedules import Custom
    >>> Custom(lambda t: 1.0 + t)(2.0)
    array(3.)
    """

    function: Callable[[Array], Any]

    def __call__(self, t: ArrayLike) -> Array:
        slots = np.array(real_array("t", t, 0, finite=False))
        level = real_array("what a schedule returns", self.function(slots), 0, finite=False)
        if not (np.isfinite(level).all() and (level > 0.0).all()):
            raise InvalidInput(f"a schedule must be positive and finite, but is {level} at t = {t}")
        return level

    @property
    def stands_for(self) -> Any:
        """What a description has in its place: nothing but the function."""
        return self.function

    def __reduce__(self) -> Any:
        if not hasattr(self.function, "__name__"):  # an object; it saves itself, or says why not
            return Custom, (self.function,)
        raise NotSaveable(
            "a schedule that is a plain function cannot be saved; use coldq.schedules.Power or "
            "Constant, or a frozen dataclass of your own with __call__"
        )


def value_at(parameter: Any, t: ArrayLike) -> Array:
    """A parameter in slot t: a schedule's value there, or the number itself."""
    return parameter(t) if callable(parameter) else parameter  # type: ignore[return-value]


def number_at(parameter: Any, t: Any) -> Any:
    """A parameter in one slot; a power takes less time of a whole number."""
    if type(parameter) is Power and type(t) is int:
        return parameter.at(t)
    return value_at(parameter, t)


def as_schedule(name: str, given: Any) -> Schedule:
    """A number becomes a constant, a plain function is wrapped, a schedule stays what it is."""
    if isinstance(given, Power | Constant | Custom):
        return given
    if callable(given) and not isinstance(given, type):
        return Custom(given)
    level: Any = given
    try:
        return Constant(level)
    except InvalidInput:
        raise InvalidInput(
            f"{name} must be a positive number or a function of t, but is {given!r:.200}"
        ) from None
