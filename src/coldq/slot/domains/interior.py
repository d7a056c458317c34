"""A ball inside a domain, within the smallest flat that has all of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_real, real_array
from coldq.base.errors import InvalidInput
from coldq.slot.domains.ball import Ball
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import require_single
from coldq.slot.domains.polytope import Polytope
from coldq.slot.domains.product import Product
from coldq.slot.domains.simplex import Simplex
from coldq.solver.linear_programs import inner_ball

MIN_RADIUS_RATIO = 1e-9  # of its size, a radius below which a domain counts as flat
BUILT_IN_DOMAINS = (Box, Ball, Simplex, Polytope, Product)


class Inside(NamedTuple):
    """A ball inside a domain: its centre, its radius, and the directions that leave the domain.

    The domain lies in a flat; `fixed` (k, p) has orthonormal directions across it. Every point
    ``centre + radius u`` with ``|u| <= 1`` and ``fixed u = 0`` lies in the domain.
    """

    centre: Array
    radius: float
    fixed: Array

    @property
    def dim(self) -> int:
        """The dimension of the flat."""
        return self.fixed.shape[1] - self.fixed.shape[0]


def inside_of(domain: Any, centre: ArrayLike | None = None, radius: float | None = None) -> Inside:
    """A ball inside a domain; about the `centre`, if one is given, and of the `radius`.

    Left out, the centre is the middle of a box, a ball or a simplex, and that of the largest ball
    in a polytope; the radius is the largest that there is room for. Of a domain that is not the
    library's both must be given, and are only looked at along the axes.

    >>> import coldq
    >>> from coldq.slot.domains.interior import inside_of
    >>> ball = inside_of(coldq.Simplex(2))
    >>> ball.centre, round(ball.radius, 6), ball.dim
    (array([0.5, 0.5]), 0.707107, 1)
    """
    require_single(domain, "a ball inside a domain")
    given = None if centre is None else real_array("centre", centre, 1)
    if given is not None and (given.shape != (domain.dim,) or not domain.contains(given).all()):
        raise InvalidInput(f"centre must be one point of the domain {domain}, but is {given}")
    wanted = None if radius is None else one_real("radius", radius)
    if wanted is not None and not wanted > 0.0:
        raise InvalidInput(f"radius must be positive, but is {wanted}")
    if not _known(domain):
        return _taken(domain, given, wanted)
    found = _inside(domain, given)
    if found.dim == 0 or not found.radius > MIN_RADIUS_RATIO * (
        1.0 + float(np.abs(found.centre).max())
    ):
        raise InvalidInput(
            f"there is no ball inside the domain {domain} about {found.centre}: give a centre "
            "further inside, or another domain"
        )
    if not np.isfinite(found.radius):
        raise InvalidInput(f"the domain {domain} has no largest ball: give a radius")
    if wanted is not None and wanted > found.radius * (1.0 + MIN_RADIUS_RATIO):
        raise InvalidInput(
            f"radius must be at most {found.radius}, what the domain has room for about "
            f"{found.centre}, but is {wanted}"
        )
    return found if wanted is None else found._replace(radius=wanted)


def _known(domain: Any) -> bool:
    if isinstance(domain, Product):
        return all(map(_known, domain.domains))
    return isinstance(domain, BUILT_IN_DOMAINS)


def _taken(domain: Any, centre: Array | None, radius: float | None) -> Inside:
    """A user's own ball, which is looked at along the axes."""
    if centre is None or radius is None:
        raise InvalidInput(
            f"of the domain {domain} no ball inside is known: give its centre and its radius"
        )
    axes = radius * np.eye(domain.dim)
    if not (domain.contains(centre + axes).all() and domain.contains(centre - axes).all()):
        raise InvalidInput(f"the ball of radius {radius} about {centre} leaves the domain {domain}")
    return Inside(centre, radius, np.zeros((0, domain.dim)))


def _inside(domain: Any, centre: Array | None) -> Inside:
    if isinstance(domain, Product):
        edges = domain.edges()
        parts = [
            _inside(part, None if centre is None else centre[first:last])
            for part, (first, last) in zip(domain.domains, edges, strict=True)
        ]
        fixed = np.zeros((sum(len(part.fixed) for part in parts), domain.dim))
        row = 0
        for part, (first, last) in zip(parts, edges, strict=True):
            fixed[row : row + len(part.fixed), first:last] = part.fixed
            row += len(part.fixed)
        room = min((part.radius for part in parts if part.dim), default=0.0)
        return Inside(np.concatenate([part.centre for part in parts]), room, fixed)
    if isinstance(domain, Ball):
        middle = np.array(domain.center if centre is None else centre)
        room = float(domain.radius) - float(np.linalg.norm(middle - domain.center))
        return Inside(middle, room, np.zeros((0, domain.dim)))
    return _polyhedral(domain, centre)


def _polyhedral(domain: Any, centre: Array | None) -> Inside:
    rows, lower, upper = domain.rows, domain.box.lower, domain.box.upper
    equal, p = rows.multiplier_lower == -np.inf, domain.dim
    still = lower == upper
    fixed = _orthonormal(np.concatenate([rows.A[equal], np.eye(p)[still]]))
    A, b = rows.A[~equal], rows.b[~equal]
    # How far a step of length 1 within the flat can go along each row, and along each coordinate.
    along = np.concatenate([A, np.eye(p)])
    along = along - along @ fixed.T @ fixed
    lengths = np.sqrt(np.square(along).sum(axis=1))
    lengths = np.where(lengths > MIN_RADIUS_RATIO, lengths, 0.0)
    if centre is None:
        centre = _middle(domain, A, b, lengths, rows.A[equal], rows.b[equal])
    slack = np.concatenate([b - A @ centre, np.minimum(centre - lower, upper - centre)])
    far = np.divide(slack, lengths, out=np.full(slack.shape, np.inf), where=lengths > 0.0)
    return Inside(np.array(centre), float(far.min(initial=np.inf)), fixed)


def _middle(domain: Any, A: Array, b: Array, lengths: Array, E: Array, e: Array) -> Array:
    """The middle of a box or a simplex, and of the largest ball in a polytope."""
    lower, upper = domain.box.lower, domain.box.upper
    if isinstance(domain, Simplex):
        return np.full(domain.dim, float(domain.total) / domain.dim)
    if isinstance(domain, Box):
        if not np.isfinite(upper - lower).all():
            raise InvalidInput(
                f"the domain {domain} is unbounded and has no middle: give a centre and a radius"
            )
        return lower + 0.5 * (upper - lower)
    found = inner_ball(A, b, lengths, E, e, lower, upper)
    if found is None:
        raise InvalidInput(f"no largest ball in the domain {domain} was found: give a centre")
    return domain.project(found)


def _orthonormal(rows: Array) -> Array:
    """Orthonormal rows that span the same space."""
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    _, sizes, directions = np.linalg.svd(rows)
    return directions[: int((sizes > MIN_RADIUS_RATIO * sizes.max(initial=0.0)).sum())]
