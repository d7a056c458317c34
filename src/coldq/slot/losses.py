"""Losses f_t: what a decision cost. Each has ``value(x)`` and ``gradient(x)``.

Data may carry leading axes, ``(..., p)``, and broadcasts against those of x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import (
    Array,
    Value,
    as_array,
    first_index,
    flag,
    joint_batch,
    keep_rows,
    point,
    put,
    real_array,
    real_points,
)
from coldq.base.contractions import affine_value, dot, least_squares_gradient, matvec, vecmat
from coldq.base.describe import describable, described_by_parts
from coldq.base.errors import InvalidInput, NotRevealed
from coldq.base.protocols import Region
from coldq.slot.user_functions import call_at

VALUES_ONLY = (
    "only values are known of this function, no slopes: coldq.OnePoint(learner) and "
    "coldq.TwoPoint(learner) make a learner of gradients work from values"
)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Linear(Value):
    """``f(x) = <c, x>``.

    >>> import coldq
    >>> coldq.Linear([1.0, 2.0]).value([3.0, 4.0])
    np.float64(11.0)
    """

    c: Array

    def __init__(self, c: ArrayLike) -> None:
        put(self, "c", real_array("c", c, 1))

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.c.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.c.shape[:-1]

    def value(self, x: ArrayLike) -> Array:
        """``<c, x>``."""
        return dot(self.c, point(x, self.dim))

    def gradient(self, x: ArrayLike) -> Array:
        """``c``."""
        x = point(x, self.dim)
        if x.shape == self.c.shape:
            return self.c
        return np.broadcast_to(self.c, joint_batch(c=self.c.shape, x=x.shape))

    def quadratic(self) -> tuple[Array, Array, Array]:
        """``(P, q, r)`` with ``f(x) = x'Px / 2 + <q, x> + r``."""
        p = self.dim
        return np.zeros((*self.c.shape, p)), self.c, np.zeros(self.c.shape[:-1])

    def gradient_bound(self, domain: Region) -> tuple[Array, bool]:
        """``|c|``, the largest norm of the gradient, which is exact."""
        return np.sqrt(dot(self.c, self.c)), True


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LeastSquares(Value):
    """``f(x) = |H x - y|^2 / 2``, with H of shape ``(..., m, p)`` and y of shape ``(..., m)``.

    >>> import coldq
    >>> f = coldq.LeastSquares([[1.0, 1.0]], [1.0])
    >>> f.value([1.0, 1.0]), f.gradient([1.0, 1.0])
    (np.float64(0.5), array([1., 1.]))
    """

    H: Array
    y: Array

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        keep_rows(self, "H", H, "y", y)

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.H.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        rows, levels = self.H.shape[:-2], self.y.shape[:-1]
        return rows if rows == levels else np.broadcast_shapes(rows, levels)

    def value(self, x: ArrayLike) -> Array:
        """``|H x - y|^2 / 2``."""
        error = affine_value(self.H, point(x, self.dim), self.y)
        return 0.5 * dot(error, error)

    def gradient(self, x: ArrayLike) -> Array:
        """``H'(H x - y)``."""
        return least_squares_gradient(self.H, point(x, self.dim), self.y)

    def quadratic(self) -> tuple[Array, Array, Array]:
        """``(P, q, r)`` with ``f(x) = x'Px / 2 + <q, x> + r``."""
        transposed = np.ascontiguousarray(np.swapaxes(self.H, -1, -2))
        P = matvec(transposed[..., None, :, :], transposed)
        return P, -vecmat(self.H, self.y), 0.5 * dot(self.y, self.y)

    def gradient_bound(self, domain: Region) -> tuple[Array, bool]:
        """At least the largest norm of the gradient on the domain, and whether it is exact."""
        return _largest_slope(self, domain)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Quadratic(Value):
    """``f(x) = x'Px / 2 + <q, x> + r`` with P symmetric and positive semidefinite.

    >>> import coldq
    >>> f = coldq.Quadratic([[2.0, 0.0], [0.0, 2.0]], [1.0, 0.0])
    >>> f.value([1.0, 1.0]), f.gradient([1.0, 1.0])
    (np.float64(3.0), array([3., 2.]))
    """

    P: Array
    q: Array
    r: Array

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike = 0.0) -> None:
        self._set(P=real_array("P", P, 2), q=real_array("q", q, 1), r=real_array("r", r, 0))
        p = self.q.shape[-1]
        if self.P.shape[-2:] != (p, p):
            raise InvalidInput(
                f"q of shape {self.q.shape} needs P of shape (..., {p}, {p}), "
                f"but P has shape {self.P.shape}"
            )
        joint_batch(P=self.P.shape[:-2], q=self.q.shape[:-1], r=self.r.shape)
        # A broadcast P is checked once, not once for every member of the batch.
        distinct = self.P[tuple(0 if s == 0 else slice(None) for s in self.P.strides[:-2])]
        size = np.abs(distinct).max(initial=0.0)
        skew = np.abs(distinct - np.swapaxes(distinct, -1, -2)).max(initial=0.0)
        if skew > 1e-12 * size:
            raise InvalidInput(f"P must be symmetric, but differs from its transpose by {skew:.3g}")
        least = np.linalg.eigvalsh(distinct)[..., 0]
        if (least < -1e-12 * p * size).any():
            where = first_index(least < -1e-12 * p * size)
            raise InvalidInput(
                "P must be positive semidefinite for the loss to be convex, but has the "
                f"eigenvalue {least[where]:.3g}"
            )

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.q.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return np.broadcast_shapes(self.P.shape[:-2], self.q.shape[:-1], self.r.shape)

    def value(self, x: ArrayLike) -> Array:
        """``x'Px / 2 + <q, x> + r``."""
        x = point(x, self.dim)
        return dot(0.5 * matvec(self.P, x) + self.q, x) + self.r

    def gradient(self, x: ArrayLike) -> Array:
        """``P x + q``."""
        return matvec(self.P, point(x, self.dim)) + self.q

    def quadratic(self) -> tuple[Array, Array, Array]:
        """``(P, q, r)`` with ``f(x) = x'Px / 2 + <q, x> + r``."""
        return self.P, self.q, self.r

    def gradient_bound(self, domain: Region) -> tuple[Array, bool]:
        """At least the largest norm of the gradient on the domain, and whether it is exact."""
        return _largest_slope(self, domain)


def _largest_slope(loss: Any, domain: Region) -> tuple[Array, bool]:
    """The largest norm of ``P x + q`` on the box around a domain, each coordinate at its largest.

    Around the centre c with half-widths r, ``|(P x + q)_i| <= |(P c + q)_i| + (|P| r)_i``. All
    coordinates get there at once if P is diagonal.
    """
    P: Array = loss.quadratic()[0]
    box = domain.around
    half = 0.5 * (box.upper - box.lower)
    if not np.isfinite(half).all():
        return np.full(P.shape[:-2], np.inf), False
    centre = box.lower + half
    slope = np.abs(loss.gradient(centre)) + matvec(np.abs(P), half)
    diagonal = not (P * (1.0 - np.eye(loss.dim))).any()
    return np.sqrt(dot(slope, slope)), diagonal and box is domain


@described_by_parts
@dataclass(frozen=True)
class Smooth:
    """Any convex loss, given by functions for its value and its gradient.

    The functions get one point of shape ``(p,)`` at a time, unless `vectorised` says that they
    take points of shape ``(..., p)`` and return shapes ``(...)`` and ``(..., p)``. What every agent
    of a network has of its own is a vectorised one, of points of shape ``(..., n, p)``.

    >>> import numpy as np, coldq
    >>> f = coldq.Smooth(lambda x: np.exp(x).sum(), np.exp)
    >>> f.value([0.0, 0.0]), f.gradient([0.0, 0.0])
    (array(2.), array([1., 1.]))
    """

    value_function: Callable[[Array], Any]
    gradient_function: Callable[[Array], Any]
    vectorised: bool = False

    def __post_init__(self) -> None:
        flag("vectorised", self.vectorised)
        for name in ("value_function", "gradient_function"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name} must be a function, but is {getattr(self, name)!r}")

    def value(self, x: ArrayLike) -> Array:
        """The user's value, checked."""
        x = real_points("x", x)
        return call_at("the loss", self.value_function, x, (), self.vectorised)

    def gradient(self, x: ArrayLike) -> Array:
        """The user's gradient, checked."""
        x = real_points("x", x)
        core = x.shape[-1:]
        return call_at("the loss's gradient", self.gradient_function, x, core, self.vectorised)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class GradientAt(Value):
    """A loss of which only the gradient at the decision played is known, and perhaps the value.

    This is what a running system usually measures. Every learner that uses the gradient at x_t
    alone works with it unchanged; asking for another point is an error, never a guess.

    >>> import coldq
    >>> f = coldq.GradientAt(x=[1.0, 2.0], gradient=[0.5, -0.5], value=3.0)
    >>> f.gradient([1.0, 2.0])
    array([ 0.5, -0.5])
    """

    x: Array
    slope: Array
    level: Array | None

    def __init__(self, x: ArrayLike, gradient: ArrayLike, value: ArrayLike | None = None) -> None:
        at, slope = real_array("x", x, 1), real_array("gradient", gradient, 1)
        level = None if value is None else real_array("value", value, 0)
        put(self, "x", at, "slope", slope, "level", level)
        if at.shape != slope.shape:
            raise InvalidInput(
                f"gradient must have the shape of x, {at.shape}, but has {slope.shape}"
            )
        if level is not None and level.shape != at.shape[:-1]:
            raise InvalidInput(
                f"value must have the shape {at.shape[:-1]} of x without its last axis, "
                f"but has {level.shape}"
            )

    def _arguments(self) -> dict[str, Any]:
        return {"x": self.x, "gradient": self.slope, "value": self.level}

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.x.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.x.shape[:-1]

    def value(self, x: ArrayLike) -> Array:
        """The measured value; only where it was measured."""
        require_measured_at("value", "loss", self.x, x)
        if self.level is None:
            raise NotRevealed("this loss was revealed without its value: pass value= to GradientAt")
        return self.level

    def gradient(self, x: ArrayLike) -> Array:
        """The measured gradient; only where it was measured."""
        require_measured_at("gradient", "loss", self.x, x)
        return self.slope


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ValueAt(Value):
    """A loss, or a constraint, of which only the value at some points is known.

    It has neither a gradient nor a jacobian: :class:`~coldq.OnePoint` and :class:`~coldq.TwoPoint`
    make a learner of gradients work from values. They say in ``state.points`` where they need them.

    Parameters
    ----------
    x
        The points, of shape ``(..., p)``.
    value
        One number a point for a loss, of shape ``(...)``; N of them for a constraint, ``(..., N)``.

    >>> import coldq
    >>> f = coldq.ValueAt(x=[[1.0, 2.0], [1.5, 2.0]], value=[3.0, 4.0])
    >>> f.value([[1.0, 2.0], [1.5, 2.0]]), f.value([1.5, 2.0])
    (array([3., 4.]), np.float64(4.0))
    """

    x: Array
    level: Array

    def __init__(self, x: ArrayLike, value: ArrayLike) -> None:
        self._set(x=real_array("x", x, 1), level=real_array("value", value, 0))
        lead, shape = self.x.shape[:-1], self.level.shape
        if shape != lead and shape[:-1] != lead:
            raise InvalidInput(
                f"value must have the shape {lead} of x without its last axis, or one more axis "
                f"for the rows of a constraint, but has {shape}"
            )

    def _arguments(self) -> dict[str, Any]:
        return {"x": self.x, "value": self.level}

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.x.shape[-1]

    def value(self, x: ArrayLike) -> Array:
        """The measured values: of all points, or of those of one place on the first axis."""
        if x is not self.x:
            asked = as_array("x", x)
            if asked.shape == self.x.shape[1:]:
                for here, level in zip(self.x, self.level, strict=True):
                    if np.array_equal(here, asked):
                        return level
            require_measured_at("value", "function", self.x, asked)
        return self.level

    def gradient(self, x: ArrayLike) -> Array:
        """Nothing is known of it."""
        raise NotRevealed(VALUES_ONLY)

    def jacobian(self, x: ArrayLike) -> Array:
        """Nothing is known of it."""
        raise NotRevealed(VALUES_ONLY)


def require_measured_at(what: str, of: str, known: Array, asked: ArrayLike) -> None:
    """Raise unless the point asked for is the one measured."""
    if known is not asked and not np.array_equal(known, as_array("x", asked)):
        raise NotRevealed(
            f"the {what} of this {of} is known only at x = {known}, where it was measured, "
            f"but was asked for at x = {as_array('x', asked)}"
        )
