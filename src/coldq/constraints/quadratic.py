"""Quadratic constraints: risk limits, energy budgets, balls and ellipsoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array, Value, first_index, joint_batch, point, real_array
from coldq.constraints.constraint import Kind, row_margins
from coldq.contractions import dot, matvec
from coldq.errors import InvalidInput

if TYPE_CHECKING:
    from coldq.constraints.thin_quadratic import BallRows, DiagonalQuadratic, LowRankQuadratic
    from coldq.domains import Domain


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
        from coldq.constraints.thin_quadratic import DiagonalQuadratic

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
        from coldq.constraints.thin_quadratic import BallRows

        return BallRows(center, radius)

    @classmethod
    def low_rank(
        cls, d: ArrayLike, F: ArrayLike, q: ArrayLike, r: ArrayLike
    ) -> LowRankQuadratic:
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
        from coldq.constraints.thin_quadratic import LowRankQuadratic

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

    def largest(self, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain and the rows of |g|``, and whether it is exact."""
        rows, exact = _largest_rows(self.P, self.q, self.r, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: QuadraticConstraint, domain: Domain) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``, and whether it is exact."""
        rows, exact = _largest_rows(self.P - other.P, self.q - other.q, self.r - other.r, domain)
        return np.sqrt(np.square(rows).sum(axis=-1)), exact and rows.shape[-1] == 1


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


def _largest_rows(P: Array, q: Array, r: Array, domain: Domain) -> tuple[Array, bool]:
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
