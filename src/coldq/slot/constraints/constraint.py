"""What a constraint answers, and what is asked of any, the library's or a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array, is_ours, joint_batch, real_array
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain

if TYPE_CHECKING:
    from coldq.slot.constraints.affine import Affine


class Kind:
    """The base of the library's constraints: what each says of itself, so that nobody need ask.

    `cores` are its arrays, each with the number of axes that are its own, beside the batch's.
    """

    cores: ClassVar[dict[str, int]] = {}
    n_constraints: Any
    has_hessian: Any = False

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        arrays = ((getattr(self, name), core) for name, core in self.cores.items())
        return np.broadcast_shapes(*(a.shape[: a.ndim - core] for a, core in arrays))

    @property
    def is_affine(self) -> np.ndarray:
        """Which of the N rows are affine."""
        return np.zeros(int(self.n_constraints), bool)

    def as_affine(self, dim: int) -> Affine | None:
        """These rows as a dense :class:`~coldq.Affine` in `dim` coordinates, if they are affine."""
        return None

    @classmethod
    def all_of(cls, several: Sequence[Any]) -> Any:
        """One of this kind that holds where all of several hold; None if there is none."""
        return None

    def member(self, where: tuple[int, ...], batch: tuple[int, ...]) -> Any:
        """The constraint of the member at `where` of a batch.

        >>> import coldq
        >>> g = coldq.Affine([[[1.0, 1.0]], [[2.0, 0.0]]], [1.0])
        >>> g.batch, g.member((1,), (2,))
        ((2,), Affine(A=[[2.0, 0.0]], b=[1.0], measured_at=None, measured=None))
        """
        if not self.batch:
            return self
        alone = object.__new__(type(self))
        for name, core in self.cores.items():
            array = getattr(self, name)
            if array is not None:
                whole = np.broadcast_to(array, batch + array.shape[array.ndim - core :])
                array = np.asarray(whole[where])
                array.flags.writeable = False
            object.__setattr__(alone, name, array)
        return alone


def row_numbers(name: str, value: ArrayLike, n: int, *, finite: bool = True) -> Array:
    """Numbers (..., n), one for each row; a single one is that of all rows."""
    given = value if type(value) is np.ndarray else as_array(name, value)
    array = real_array(name, given, min(given.ndim, 1), finite=finite)
    if array.ndim == 0:
        return np.full(n, array)
    if array.shape[-1] != n:
        raise InvalidInput(
            f"{name} needs one entry for each of the {n} rows on its last axis, but has shape "
            f"{array.shape}"
        )
    return array


def row_margins(margin: ArrayLike, n: int, batch: tuple[int, ...] = ()) -> Array:
    """Margins (..., n), one for each row of a batch; one number is the margin of all."""
    margins = row_numbers("margin", margin, n)
    joint_batch(constraint=batch, margin=margins.shape[:-1])
    return margins


def largest(g: Any, domain: Domain) -> tuple[Array, bool]:
    """``max over the domain of |g|``, all rows together, and whether it is exact or a bound.

    >>> import coldq
    >>> from coldq.slot.constraints import largest
    >>> largest(coldq.Affine([[1.0, 1.0]], [0.5]), coldq.Simplex(2))
    (np.float64(0.5), True)
    """
    require_whole("the largest value", g)
    if not hasattr(g, "largest") or not hasattr(domain, "ends"):
        raise InvalidInput(
            f"the largest {type(g).__name__} on a {type(domain).__name__} has no closed form"
        )
    return g.largest(domain)


def require_whole(what: str, *constraints: Any) -> None:
    """Raise if one of these, or a part of it, was only measured at a point."""
    for g in constraints:
        require_whole(what, *getattr(g, "parts", ()))
        if getattr(g, "measured", None) is not None:
            raise InvalidInput(
                f"{what} needs the whole constraint, but it was revealed as a measurement"
            )


def difference(g: Any, other: Any, domain: Domain) -> tuple[Array, bool]:
    """``max over the domain of |g - other|_2``, and whether it is exact or a bound.

    >>> import coldq
    >>> from coldq.slot.constraints import difference
    >>> old, new = coldq.Affine([[1.0, 1.0]], [0.5]), coldq.Affine([[1.0, 2.0]], [0.5])
    >>> difference(new, old, coldq.Box(0.0, 3.0, dim=2))
    (array(3.), True)
    """
    require_whole("the variation", g, other)
    if g is other:
        return np.zeros(()), True
    if type(g) is type(other):
        if hasattr(g, "max_difference") and hasattr(domain, "ends"):
            bound, exact = g.max_difference(other, domain)
            return bound, exact or not bound.any()  # a bound of zero is reached
        if is_ours(g) and g == other:  # by content, so it stayed
            return np.zeros(()), True
    raise InvalidInput(
        f"the variation from a {type(other).__name__} to a {type(g).__name__} is not known"
    )
