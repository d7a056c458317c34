"""Sets that are known by their projection alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, flag, one_real, point, real_array, whole_number
from coldq.base.describe import described_by_parts
from coldq.base.errors import InvalidInput, NotSaveable
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import Domain
from coldq.slot.user_functions import call_at
from coldq.solver.constants import ENFORCED_TOLERANCE


@described_by_parts
@dataclass(frozen=True, eq=False, repr=False, init=False)
class CustomDomain(Domain):
    """Any closed convex set, given by its projection and its diameter.

    It works with every learner that only projects: :class:`~coldq.OGD`, :class:`~coldq.Yi2023`,
    :class:`~coldq.SinhaVaze`. The per-slot step of the others needs a set that it can read.

    Parameters
    ----------
    dim
        The number of coordinates p.
    project
        The projection. It gets one point of shape ``(p,)`` at a time, unless `vectorised` says that
        it takes ``(..., p)``; then a batch gives the bits of one by one only if it sees to that.
    diameter
        R, or a bound on it; infinite if there is none.
    start
        Where a learner starts; the projection of the origin if left out.

    >>> import numpy as np, coldq
    >>> X = coldq.CustomDomain(2, lambda x: np.full(2, max(x.mean(), 0.0)), diameter=np.inf)
    >>> X.project([1.0, 3.0]), X.contains([1.0, 3.0])
    (array([2., 2.]), array(False))
    """

    dim: int
    projection: Callable[[Array], Any]
    diameter: Array
    given_start: Array | None
    vectorised: bool
    batch = ()
    enforced = None
    diameter_exact = False

    def __init__(
        self,
        dim: int,
        project: Callable[[Array], Any],
        diameter: float,
        start: ArrayLike | None = None,
        *,
        vectorised: bool = False,
    ) -> None:
        if not callable(project):
            raise InvalidInput(f"project must be a function of a point, but is {project!r}")
        width = real_array("diameter", diameter, 0, finite=False)
        if width.ndim or not width >= 0.0:
            raise InvalidInput(f"diameter must be one number, not negative, but is {diameter}")
        first = None if start is None else real_array("start", start, 1)
        self._set(
            dim=whole_number("dim", dim, 1),
            projection=project,
            diameter=width,
            given_start=first,
            vectorised=flag("vectorised", vectorised),
        )
        if first is not None and (first.shape != (self.dim,) or not self.contains(first)):
            raise InvalidInput(f"start must be one point of the domain, but is {first}")

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"project": self.projection, "start": self.given_start}

    @property
    def box(self) -> Box:
        """All points that are within the diameter of the start."""
        return Box(self.start() - self.diameter, self.start() + self.diameter)

    def project(self, x: ArrayLike) -> Array:
        """The user's projection, checked."""
        x = point(x, self.dim)
        return call_at("the projection", self.projection, x, (self.dim,), self.vectorised)

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether the projection leaves each point where it is, up to `tolerance` and rounding."""
        x = point(x, self.dim)
        room = one_real("tolerance", tolerance) + ENFORCED_TOLERANCE * (1.0 + np.abs(x))
        return np.asarray((np.abs(x - self.project(x)) <= room).all(axis=-1))

    def start(self) -> Array:
        """The start given, or the projection of the origin."""
        if self.given_start is not None:
            return np.array(self.given_start)
        return self.project(np.zeros(self.dim))

    def __reduce__(self) -> Any:
        if not hasattr(self.projection, "__name__"):  # an object; it saves itself, or says why not
            parts = (self.dim, self.projection, self.diameter, self.given_start)
            return _custom_domain, (*parts, self.vectorised)
        raise NotSaveable(
            "a domain whose projection is a plain function cannot be saved; give it a frozen "
            "dataclass of your own with __call__"
        )


def _custom_domain(dim: int, project: Any, diameter: Any, start: Any, vectorised: bool) -> Any:
    return CustomDomain(dim, project, diameter, start, vectorised=vectorised)
