"""Quadratic constraints: risk limits, energy budgets, balls and ellipsoids.

Ball-shaped, diagonal and low-rank plus diagonal rows keep no matrix. They are convex as they are
written, so that nothing need be looked at, and a step takes passes over their arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, content_of, first_index, joint_batch, point, real_array
from coldq.base.contractions import dot, matvec, vecmat
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Region
from coldq.slot.constraints.constraint import Kind, row_margins
from coldq.solver.problem import Thin

MAX_MATRIX_COORDINATES = (
    4096  # coordinates up to which rows are made into matrices where that is needed
)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class QuadraticConstraint(Kind, Value):
    """``g_n(x) = x'P_n x / 2 + <q_n, x> - r_n``, each P_n symmetric and positive semidefinite.

    P has shape ``(..., N, p, p)``, q ``(..., N, p)`` and r ``(..., N)``. As b in
    :class:`~coldq.Affine`, r is a limit and is taken away; in the loss :class:`~coldq.Quadratic`
    it is a constant and added.

    >>> import numpy as np, coldq
    >>> g = coldq.QuadraticConstraint(2.0 * np.eye(2)[None], [[0.0, 0.0]], [1.0])  # |x|^2 <= 1
    >>> g.value([3.0, 4.0]), g.jacobian([3.0, 4.0])
    (array([24.]), array([[6., 8.]]))
    """

    P: Array
    q: Array
    r: Array

    cores: ClassVar[dict[str, int]] = {"P": 3, "q": 2, "r": 1}
    has_hessian = True

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self._set(P=real_array("P", P, 3), q=real_array("q", q, 2), r=real_array("r", r, 1))
        n, p = self.q.shape[-2:]
        if self.P.shape[-3:] != (n, p, p) or self.r.shape[-1] != n:
            raise InvalidInput(
                f"q of shape {self.q.shape} needs P of shape (..., {n}, {p}, {p}) and r of shape "
                f"(..., {n}), but P has {self.P.shape} and r has {self.r.shape}"
            )
        joint_batch(P=self.P.shape[:-3], q=self.q.shape[:-2], r=self.r.shape[:-1])
        size = np.abs(self.P).max(axis=(-1, -2), initial=0.0)
        skew = np.abs(self.P - np.swapaxes(self.P, -1, -2)).max(axis=(-1, -2), initial=0.0)
        if (skew > 1e-12 * size).any():
            where = first_index(skew > 1e-12 * size)
            raise InvalidInput(
                f"each P_n must be symmetric, but that at index {where} differs from its "
                f"transpose by {skew[where]:.3g}"
            )
        require_semidefinite(self.P, 1e-12 * p * size)

    @classmethod
    def diagonal(cls, d: ArrayLike, q: ArrayLike, r: ArrayLike) -> DiagonalQuadratic:
        """``sum_i d_ni x_i^2 / 2 + <q_n, x> - r_n`` with d of shape ``(..., N, p)``, not negative.

        Only the diagonal is kept, and no matrix is looked at. One such row on a box is one
        multiplier to find: some passes over x, tens of microseconds with thousands of coordinates.

        >>> import coldq
        >>> g = coldq.QuadraticConstraint.diagonal([[2.0, 4.0]], [[0.0, 0.0]], [3.0])
        >>> g.value([1.0, 1.0])  # x_1^2 + 2 x_2^2 - 3
        array([0.])
        """
        return DiagonalQuadratic(d, q, r)

    @classmethod
    def ball(cls, center: ArrayLike, radius: ArrayLike) -> BallRows:
        """``|x - center_n|^2 - radius_n^2`` with centers of shape ``(..., N, p)``.

        Center and radius are kept as they are, so that a ball far from the origin loses no digits.

        >>> import coldq
        >>> near = coldq.QuadraticConstraint.ball([[3.0, 0.0]], [1.0])
        >>> X = coldq.Box(-5.0, 5.0, dim=2)
        >>> coldq.penalised_step([0.0, 0.0], [0.0, 0.0], 1.0, float("inf"), near, X).x
        array([2., 0.])
        """
        return BallRows(center, radius)

    @classmethod
    def low_rank(cls, d: ArrayLike, F: ArrayLike, q: ArrayLike, r: ArrayLike) -> LowRankQuadratic:
        """``sum_i d_ni x_i^2 / 2 + |F_n'x|^2 / 2 + <q_n, x> - r_n``, F of shape ``(..., N, p, k)``.

        The risk of a factor model: k factors and what each coordinate has of its own. Nothing of
        p by p is made, and the rows are convex as they are written.

        >>> import coldq
        >>> g = coldq.QuadraticConstraint.low_rank(
        ...     [[2.0, 2.0, 2.0]], [[[1.0], [1.0], [1.0]]], [[0.0, 0.0, 0.0]], [6.0]
        ... )
        >>> g.value([1.0, 1.0, 2.0])  # |x|^2 + (x_1 + x_2 + x_3)^2 / 2 - 6
        array([8.])
        """
        return LowRankQuadratic(d, F, q, r)

    @classmethod
    def unchecked(cls, P: Array, q: Array, r: Array) -> QuadraticConstraint:
        """Rows whose shapes and convexity are known."""
        rows = object.__new__(cls)
        rows._set(P=np.ascontiguousarray(P), q=np.ascontiguousarray(q), r=np.ascontiguousarray(r))
        return rows

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.q.shape[-1]

    @property
    def n_constraints(self) -> int:
        """The number of rows N."""
        return self.q.shape[-2]

    def value(self, x: ArrayLike) -> Array:
        """``x'P_n x / 2 + <q_n, x> - r_n``."""
        x = point(x, self.dim)[..., None, :]
        return dot(0.5 * matvec(self.P, x) + self.q, x) - self.r

    def jacobian(self, x: ArrayLike) -> Array:
        """``P_n x + q_n``, one row for every n."""
        return matvec(self.P, point(x, self.dim)[..., None, :]) + self.q

    def hessian(self, x: ArrayLike) -> Array:
        """``P``."""
        batch = joint_batch(P=self.P.shape[:-3], x=point(x, self.dim).shape[:-1])
        return np.broadcast_to(self.P, batch + self.P.shape[-3:])

    def tightened(self, margin: ArrayLike) -> QuadraticConstraint:
        """``g + margin``, with a margin for each row; leading axes broadcast.

        >>> import coldq
        >>> coldq.QuadraticConstraint.ball([[0.0, 0.0]], [2.0]).tightened(1.0).r
        array([3.])
        """
        rows = row_margins(margin, self.n_constraints, self.batch)
        return self.unchecked(self.P, self.q, self.r - rows)

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain and the rows of |g|``, and whether it is exact."""
        rows, exact = _largest_rows(self.P, self.q, self.r, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: QuadraticConstraint, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        rows, exact = _largest_rows(self.P - other.P, self.q - other.q, self.r - other.r, domain)
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


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
        if self.dim > MAX_MATRIX_COORDINATES:
            raise InvalidInput(
                f"what was asked of {self.n_constraints} quadratic rows in {self.dim} coordinates "
                f"needs their matrices, which are made up to {MAX_MATRIX_COORDINATES} coordinates"
            )
        return self.d[..., None] * np.eye(self.dim)

    def _contents(self) -> tuple[Any, ...]:
        return tuple(content_of(getattr(self, name)) for name in self.cores)


class Separable(ThinQuadratic):
    """Rows that are sums over the coordinates: their extremes are those of each coordinate."""

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; exact on a box."""
        rows, exact = _largest_sums(self.d, self.q, self.r, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: QuadraticConstraint, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        if not isinstance(other, Separable):
            return super().max_difference(other, domain)
        rows, exact = _largest_sums(self.d - other.d, self.q - other.q, self.r - other.r, domain)
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DiagonalQuadratic(Separable):
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


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BallRows(Separable):
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

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain and the rows of |g|``, and whether it is exact."""
        rows, exact = _largest_sums(self.d, self.q, self.r, domain)
        return (rows + self._bend(domain)).max(axis=-1, initial=0.0), exact and not self.F.any()

    def _bend(self, domain: Region) -> Array:
        """At least ``max over the domain of |F_n'x|^2 / 2``."""
        least, greatest, _ = domain.ends(np.swapaxes(self.F, -1, -2))
        return 0.5 * np.square(np.maximum(np.abs(least), np.abs(greatest))).sum(axis=-1)

    def max_difference(self, other: QuadraticConstraint, domain: Region) -> tuple[Array, bool]:
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


def _largest_sums(d: Array, q: Array, r: Array, domain: Region) -> tuple[Array, bool]:
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


def require_semidefinite(P: Array, room: Array) -> None:
    """Raise if a matrix has an eigenvalue clearly below zero.

    Cholesky's method, at a fraction of the cost, says that there is none; else they are computed.
    """
    p = P.shape[-1]
    if not P.size or not np.any(P):
        return
    try:
        np.linalg.cholesky(P + np.maximum(room, 1e-300)[..., None, None] * np.eye(p))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(P)[..., 0]
        if (least < -room).any():
            where = first_index(least < -room)
            raise InvalidInput(
                f"each P_n must be positive semidefinite for g_n to be convex, but that at index "
                f"{where} has the eigenvalue {least[where]:.3g}"
            ) from None


def _largest_rows(P: Array, q: Array, r: Array, domain: Region) -> tuple[Array, bool]:
    """At least ``max over the domain of |x'P x / 2 + <q, x> - r|``, row by row; P any symmetric.

    Around the centre c of the box around the domain, x = c + d, the slope P c + q has its ends over
    the domain, and d'P d / 2 lies between the extreme eigenvalues times |d|^2 / 2. Exact if P is 0.
    """
    box = domain.around
    half = 0.5 * (box.upper - box.lower)
    if not np.isfinite(half).all():
        return np.full(np.broadcast_shapes(q.shape[:-1], r.shape), np.inf), False
    c = (box.lower + half)[..., None, :]
    bent = matvec(P, c)
    least, greatest, exact = domain.ends(bent + q)
    shift = -0.5 * dot(bent, c) - r
    reach = np.asarray(getattr(domain, "radius", np.sqrt(np.square(half).sum(axis=-1))))[..., None]
    half = half[..., None, :]
    most = 0.5 * dot(matvec(np.abs(P), half), half)
    curve = 0.5 * np.linalg.eigvalsh(P) * (reach * reach)[..., None]
    below = np.maximum(np.minimum(curve[..., 0], 0.0), -most)
    above = np.minimum(np.maximum(curve[..., -1], 0.0), most)
    ends = np.abs(least + shift + below), np.abs(greatest + shift + above)
    return np.maximum(*ends), exact and not P.any()


# Forms of quadratic rows, by what makes them.
describable(DiagonalQuadratic, "QuadraticConstraint.diagonal")
describable(BallRows, "QuadraticConstraint.ball")
describable(LowRankQuadratic, "QuadraticConstraint.low_rank")
