"""Any convex constraint, given by functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, flag, joint_batch, real_points, whole_number
from coldq.base.describe import described_by_parts
from coldq.base.errors import InvalidInput
from coldq.slot.constraints.constraint import Kind, row_margins
from coldq.slot.user_functions import call_at


@dataclass(frozen=True, eq=False, repr=False)
class Added(Value):
    """What is added to the rows, compared by content."""

    rows: Array


@described_by_parts
@dataclass(frozen=True)
class Convex(Kind):
    """``g(x)`` by functions for its value (N,), its jacobian (N, p) and perhaps its hessian.

    Each of the N functions must be convex; where they have kinks, a subgradient does. With the
    hessian, of shape (N, p, p), the step is exact; without it the step is certified to a relative
    gap of 1e-6 between its value and a cutting model below it.

    The functions get one point of shape ``(p,)`` at a time, unless `vectorised` says that they
    take points of shape ``(..., p)``. What they return is checked at every call.

    >>> import numpy as np, coldq
    >>> g = coldq.Convex(lambda x: [np.exp(x).sum() - 3.0], lambda x: [np.exp(x)])
    >>> g.value([0.0, 0.0]), g.jacobian([0.0, 0.0])
    (array([-1.]), array([[1., 1.]]))
    """

    value_function: Callable[[Array], Any]
    jacobian_function: Callable[[Array], Any]
    hessian_function: Callable[[Array], Any] | None = None
    n_constraints: int = 1
    vectorised: bool = False
    added: Added | None = None

    def __post_init__(self) -> None:
        flag("vectorised", self.vectorised)
        whole_number("n_constraints", self.n_constraints, 1)
        for name in ("value_function", "jacobian_function"):
            if not callable(getattr(self, name)):
                raise InvalidInput(
                    f"{name} must be a function, but is {getattr(self, name)!r:.200}"
                )
        if self.hessian_function is not None and not callable(self.hessian_function):
            raise InvalidInput(
                "hessian_function must be a function or None, but is "
                f"{self.hessian_function!r:.200}"
            )

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: those of a margin, for the functions have none."""
        return () if self.added is None else self.added.rows.shape[:-1]

    def tightened(self, margin: ArrayLike) -> Convex:
        """``g + margin``, with a margin for each row; leading axes broadcast.

        >>> import coldq
        >>> g = coldq.Convex(lambda x: [x @ x - 4.0], lambda x: [2.0 * x])
        >>> g.tightened(1.0).value([2.0, 0.0])
        array([1.])
        """
        rows = row_margins(margin, self.n_constraints, self.batch)
        if self.added is not None:
            rows = self.added.rows + rows
        return replace(self, added=Added(rows))

    def member(self, where: tuple[int, ...], batch: tuple[int, ...]) -> Convex:
        """The hessian of one member of a batch."""
        if self.added is None:
            return self
        rows = np.broadcast_to(self.added.rows, (*batch, self.n_constraints))[where]
        return replace(self, added=Added(rows))

    @property
    def has_hessian(self) -> bool:
        """Whether a hessian was given."""
        return self.hessian_function is not None

    def value(self, x: ArrayLike) -> Array:
        """The user's values, checked."""
        found = self._call("the constraint", self.value_function, x, 0)
        if self.added is None:
            return found
        joint_batch(constraint=self.batch, x=found.shape[:-1])
        return found + self.added.rows

    def jacobian(self, x: ArrayLike) -> Array:
        """The user's jacobian, checked."""
        return self._call("the constraint's jacobian", self.jacobian_function, x, 1)

    def hessian(self, x: ArrayLike) -> Array:
        """The user's hessian, checked."""
        if self.hessian_function is None:
            raise InvalidInput(
                "hessian(x) needs a hessian_function, which this Convex was given without"
            )
        return self._call("the constraint's hessian", self.hessian_function, x, 2)

    def _call(self, name: str, function: Callable[[Array], Any], x: ArrayLike, axes: int) -> Array:
        x = real_points("x", x)
        core = (self.n_constraints,) + x.shape[-1:] * axes
        return call_at(name, function, x, core, self.vectorised)
