"""Quadratic rows whose matrices are never made: ball-shaped, diagonal, low-rank plus diagonal.

They are convex as they are written, so that nothing need be looked at, and a step takes passes over
their arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array, _content, first_index, joint_batch, point, real_array
from coldq.constraints.constraint import row_margins
from coldq.constraints.quadratic import QuadraticConstraint
from coldq.contractions import dot, matvec, vecmat
from coldq.errors import InvalidInput
from coldq.solver.problem import Thin

if TYPE_CHECKING:
    from coldq.domains import Domain


DENSE = 4096  # coordinates up to which rows are made into matrices where that is needed


class ThinQuadratic(QuadraticConstraint):
    """What rows without matrices share; what needs the matrices makes them."""

    d: Array

    @property
    def thin(self) -> Thin:
        """The rows' arrays as the solver takes them."""
        raise NotImplementedError

    @property
    def P(self) -> Array:  # type: ignore[override]
        """The matrices, made on the spot."""
        if self.dim > DENSE:
            raise InvalidInput(
                f"what was asked of {self.n_constraints} quadratic rows in {self.dim} coordinates "
                f"needs their matrices, which are made up to {DENSE} coordinates"
            )
        return self.d[..., None] * np.eye(self.dim)

    def _contents(self) -> tuple[Any, ...]:
        return tuple(_content(getattr(self, name)) for name in self.cores)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DiagonalQuadratic(ThinQuadratic):
    """Quadratic rows of which only the diagonals are kept.

    From :meth:`QuadraticConstraint.diagonal`.
    """

    d: Array

    cores: ClassVar[dict[str, int]] = {"d": 2, "q": 2, "r": 1}

    def __init__(self, d: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self._set(d=real_array("d", d, 2), q=real_array("q", q, 2), r=real_array("r", r, 1))
        _require_diagonal(self.d, self.q, self.r)
        joint_batch(d=self.d.shape[:-2], q=self.q.shape[:-2], r=self.r.shape[:-1])

    @property
    def thin(self) -> Thin:
        """The rows' arrays as the solver takes them."""
        nowhere = np.zeros(self.q.shape[-2:])
        return Thin(self.d, nowhere, np.zeros((*nowhere.shape, 0)), self.q, self.r)

    def __repr__(self) -> str:
        return f"QuadraticConstraint.diagonal(d of shape {self.d.shape})"

    def value(self, x: ArrayLike) -> Array:
        """``sum_i d_ni x_i^2 / 2 + <q_n, x> - r_n``."""
        x = point(x, self.dim)[..., None, :]
        return dot(0.5 * self.d * x + self.q, x) - self.r

    def jacobian(self, x: ArrayLike) -> Array:
        """``d_n x + q_n``, one row for every n."""
        return self.d * point(x, self.dim)[..., None, :] + self.q

    def tightened(self, margin: ArrayLike) -> DiagonalQuadratic:
        """``g + margin``, with a margin for each row; leading axes broadcast."""
        rows = row_margins(margin, self.n_constraints, self.batch)
        return DiagonalQuadratic(self.d, self.q, self.r - rows)

    def largest(self, domain: Domain) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; exact on a box."""
        rows, exact = _largest_sums(self.d, self.q, self.r, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: QuadraticConstraint, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        if not isinstance(other, DiagonalQuadratic | BallRows):
            return super().max_difference(other, domain)
        rows, exact = _largest_sums(self.d - other.d, self.q - other.q, self.r - other.r, domain)
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BallRows(ThinQuadratic):
    """Rows ``|x - center_n|^2 - radius_n^2 + margin_n``; the margin is 0 but for tightened ones.

    From :meth:`QuadraticConstraint.ball`.
    """

    center: Array
    radius: Array
    margin: Array

    cores: ClassVar[dict[str, int]] = {"center": 2, "radius": 1, "margin": 1}

    def __init__(self, center: ArrayLike, radius: ArrayLike, margin: ArrayLike = 0.0) -> None:
        self._set(center=real_array("center", center, 2), radius=real_array("radius", radius, 1))
        n = self.center.shape[-2]
        if n != self.radius.shape[-1] or not (self.radius >= 0.0).all():
            raise InvalidInput(
                f"centers of shape {self.center.shape} need radii of shape (..., {n}), not "
                f"negative, but they are {self.radius}"
            )
        self._set(margin=row_margins(margin, n))
        joint_batch(
            center=self.center.shape[:-2], radius=self.radius.shape[:-1],
            margin=self.margin.shape[:-1],
        )  # fmt: skip

    @classmethod
    def of_limit(cls, center: Array, limit: Array) -> BallRows:
        """Rows ``|x - center|^2 - limit``, whatever the limit's sign."""
        return cls(center, np.sqrt(np.maximum(limit, 0.0)), np.maximum(-limit, 0.0))

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.center.shape[-1]

    @property
    def n_constraints(self) -> int:
        """The number of rows N."""
        return self.center.shape[-2]

    @property
    def limit(self) -> Array:
        """``radius^2 - margin``."""
        return np.square(self.radius) - self.margin

    @property
    def d(self) -> Array:  # type: ignore[override]
        """The diagonals: 2 everywhere."""
        return np.broadcast_to(2.0, self.center.shape[-2:])

    @property
    def q(self) -> Array:  # type: ignore[override]
        """The slopes at 0."""
        return -2.0 * self.center

    @property
    def r(self) -> Array:  # type: ignore[override]
        """``limit - |center|^2``."""
        # (r - |c|)(r + |c|) keeps the digits that r^2 - |c|^2 loses.
        away = np.sqrt(np.square(self.center).sum(axis=-1))
        return (self.radius - away) * (self.radius + away) - self.margin

    @property
    def thin(self) -> Thin:
        """The rows' arrays as the solver takes them."""
        none = np.zeros(self.center.shape[-2:])
        return Thin(none + 2.0, self.center, np.zeros((*none.shape, 0)), none, self.limit)

    def __repr__(self) -> str:
        return f"QuadraticConstraint.ball(center of shape {self.center.shape})"

    def value(self, x: ArrayLike) -> Array:
        """``|x - center_n|^2 - limit_n``."""
        away = point(x, self.dim)[..., None, :] - self.center
        return dot(away, away) - self.limit

    def jacobian(self, x: ArrayLike) -> Array:
        """``2 (x - center_n)``, one row for every n."""
        return 2.0 * (point(x, self.dim)[..., None, :] - self.center)

    def tightened(self, margin: ArrayLike) -> BallRows:
        """``g + margin``, with a margin for each row; leading axes broadcast."""
        rows = row_margins(margin, self.n_constraints, self.batch)
        return BallRows(self.center, self.radius, self.margin + rows)

    def largest(self, domain: Domain) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; exact on a box."""
        rows, exact = _largest_sums(self.d, self.q, self.r, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: QuadraticConstraint, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        if not isinstance(other, DiagonalQuadratic | BallRows):
            return super().max_difference(other, domain)
        rows, exact = _largest_sums(self.d - other.d, self.q - other.q, self.r - other.r, domain)
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LowRankQuadratic(ThinQuadratic):
    """Quadratic rows whose matrices are ``diag(d_n) + F_n F_n'``, of which d and F are kept.

    From :meth:`QuadraticConstraint.low_rank`.
    """

    d: Array
    F: Array

    cores: ClassVar[dict[str, int]] = {"d": 2, "F": 3, "q": 2, "r": 1}

    def __init__(self, d: ArrayLike, F: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self._set(d=real_array("d", d, 2), F=real_array("F", F, 3), q=real_array("q", q, 2))
        self._set(r=real_array("r", r, 1))
        _require_diagonal(self.d, self.q, self.r)
        if self.F.shape[-3:-1] != self.q.shape[-2:]:
            n, p = self.q.shape[-2:]
            raise InvalidInput(
                f"q of shape {self.q.shape} needs F of shape (..., {n}, {p}, k), but F has "
                f"{self.F.shape}"
            )
        joint_batch(
            d=self.d.shape[:-2], F=self.F.shape[:-3], q=self.q.shape[:-2], r=self.r.shape[:-1]
        )

    @property
    def thin(self) -> Thin:
        """The rows' arrays as the solver takes them."""
        return Thin(self.d, np.zeros(self.q.shape[-2:]), self.F, self.q, self.r)

    @property
    def P(self) -> Array:  # type: ignore[override]
        """The matrices, made on the spot."""
        return super().P + self.F @ np.swapaxes(self.F, -1, -2)

    def __repr__(self) -> str:
        return f"QuadraticConstraint.low_rank(F of shape {self.F.shape})"

    def value(self, x: ArrayLike) -> Array:
        """``sum_i d_ni x_i^2 / 2 + |F_n'x|^2 / 2 + <q_n, x> - r_n``."""
        x = point(x, self.dim)[..., None, :]
        factors = vecmat(self.F, x)
        return dot(0.5 * self.d * x + self.q, x) + 0.5 * dot(factors, factors) - self.r

    def jacobian(self, x: ArrayLike) -> Array:
        """``d_n x + F_n F_n'x + q_n``, one row for every n."""
        x = point(x, self.dim)[..., None, :]
        return self.d * x + matvec(self.F, vecmat(self.F, x)) + self.q

    def tightened(self, margin: ArrayLike) -> LowRankQuadratic:
        """``g + margin``, with a margin for each row; leading axes broadcast."""
        rows = row_margins(margin, self.n_constraints, self.batch)
        return LowRankQuadratic(self.d, self.F, self.q, self.r - rows)

    def largest(self, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain and the rows of |g|``, and whether it is exact."""
        rows, exact = _largest_sums(self.d, self.q, self.r, domain)
        return (rows + self._bend(domain)).max(axis=-1, initial=0.0), exact and not self.F.any()

    def _bend(self, domain: Domain) -> Array:
        """At least ``max over the domain of |F_n'x|^2 / 2``."""
        least, greatest, _ = domain.ends(np.swapaxes(self.F, -1, -2))
        return 0.5 * np.square(np.maximum(np.abs(least), np.abs(greatest))).sum(axis=-1)

    def max_difference(self, other: QuadraticConstraint, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        if not isinstance(other, LowRankQuadratic):
            return super().max_difference(other, domain)
        rows, exact = _largest_sums(self.d - other.d, self.q - other.q, self.r - other.r, domain)
        if not np.array_equal(self.F, other.F):
            rows, exact = rows + np.maximum(self._bend(domain), other._bend(domain)), False
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


def _require_diagonal(d: Array, q: Array, r: Array) -> None:
    """Raise unless diagonals, slopes and limits fit together and the rows are convex."""
    if d.shape[-2:] != q.shape[-2:] or r.shape[-1] != q.shape[-2]:
        raise InvalidInput(
            f"q of shape {q.shape} needs d of shape (..., {q.shape[-2]}, {q.shape[-1]}) and r of "
            f"shape (..., {q.shape[-2]}), but d has {d.shape} and r has {r.shape}"
        )
    if d.min(initial=0.0) < 0.0:
        where = first_index(d < 0.0)
        raise InvalidInput(
            f"d must not be negative for g_n to be convex, but is {d[where]} at index {where}"
        )


def _largest_sums(d: Array, q: Array, r: Array, domain: Domain) -> tuple[Array, bool]:
    """``max of |sum_i d_i x_i^2 / 2 + q_i x_i - r|`` over the box around a domain, row by row."""
    box = domain.around
    low, high = box.lower[..., None, :], box.upper[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(d != 0.0, -q / d, low)
        turn = np.where((turn > low) & (turn < high), turn, low)
        values = np.stack([(0.5 * d * x + q) * x for x in (low, high, turn)])
    values = np.where((d == 0.0) & (q == 0.0), 0.0, values)  # 0 times an infinite bound
    ends = values.min(axis=0).sum(axis=-1) - r, values.max(axis=0).sum(axis=-1) - r
    return np.maximum(np.abs(ends[0]), np.abs(ends[1])), box is domain
