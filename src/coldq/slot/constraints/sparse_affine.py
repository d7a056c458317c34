"""Affine constraints whose matrix is mostly zeros."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, as_array, point, real_array, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.lazy import scipy_sparse
from coldq.slot.constraints.affine import VERTEX_LIMIT, Affine, AffineRows, largest_rows
from coldq.slot.constraints.constraint import row_margins

if TYPE_CHECKING:
    from coldq.slot.domains import Domain


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class SparseAffine(AffineRows, Value):
    """``g(x) = A x - b`` with a SciPy sparse matrix A of shape ``(N, p)`` and b of shape ``(N,)``.

    The step costs what A's nonzeros cost. No leading axes: a batch shares one A. Learners that ask
    for the jacobian get it as a dense array.

    >>> import coldq
    >>> sparse = scipy_sparse()
    >>> g = coldq.SparseAffine(sparse.eye_array(3), [1.0, 2.0, 3.0])  # x_n <= n
    >>> g.value([1.0, 1.0, 1.0])
    array([ 0., -1., -2.])
    """

    data: Array
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]
    b: Array
    A: ClassVar[Any]

    batch: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]

    def __init__(self, A: Any, b: ArrayLike) -> None:
        sparse = scipy_sparse()

        if not sparse.issparse(A) or A.ndim != 2:
            raise InvalidInput(
                "SparseAffine needs a two-dimensional scipy.sparse A, but got a "
                f"{type(A).__name__}; coldq.Affine takes dense arrays, with leading axes"
            )
        if A.dtype.kind not in "fiub":
            raise InvalidInput(f"A must be real numbers, but is of type {A.dtype}")
        _require_indices(A)
        rows: Any = sparse.csr_array(A, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        rows.indices, rows.indptr = (part.astype(np.int64) for part in (rows.indices, rows.indptr))
        limits = real_array("b", b, 1)
        if limits.shape != rows.shape[:1]:
            raise InvalidInput(
                f"A of shape {rows.shape} needs b of shape {rows.shape[:1]}, "
                f"but b has shape {limits.shape}"
            )
        real_array("A", rows.data, 1)
        for part in (rows.data, rows.indices, rows.indptr):
            part.flags.writeable = False
        self._set(data=rows.data, indices=rows.indices, indptr=rows.indptr)
        self._set(shape=rows.shape, b=limits, A=rows)

    @classmethod
    def _of_parts(cls, data: Any, indices: Any, indptr: Any, shape: Any, b: Any) -> SparseAffine:
        """From what it keeps of A."""
        sparse = scipy_sparse()

        named = (("data", data), ("indices", indices), ("indptr", indptr))
        lists = [as_array(name, part) for name, part in named]
        sizes = tuple(whole_number("an axis of shape", n, 0) for n in as_array("shape", shape).flat)
        if any(part.dtype.kind not in "iu" for part in lists[1:] if part.size):
            raise InvalidInput("indices and indptr must be whole numbers")
        try:
            A = sparse.csr_array(tuple(lists), shape=sizes)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"these are not the parts of a sparse matrix: {error}") from None
        return cls(A, b)

    def _arguments(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.shape[1]

    @property
    def n_constraints(self) -> int:
        """The number of rows N."""
        return self.shape[0]

    def value(self, x: ArrayLike) -> Array:
        """``A x - b``, one point after the other."""
        x = point(x, self.dim)
        out = np.empty((*x.shape[:-1], self.n_constraints))
        for index in np.ndindex(*x.shape[:-1]):
            out[index] = self.A @ x[index] - self.b
        return out

    def jacobian(self, x: ArrayLike) -> Array:
        """``A``, dense."""
        batch = point(x, self.dim).shape[:-1]
        return np.broadcast_to(self.A.toarray(), (*batch, *self.shape))

    def dense(self) -> Affine:
        """These rows as a dense :class:`~coldq.Affine`, with all their zeros.

        >>> import coldq
        >>> sparse = scipy_sparse()
        >>> coldq.SparseAffine(sparse.eye_array(2), [1.0, 2.0]).dense().A
        array([[1., 0.],
               [0., 1.]])
        """
        return Affine(self.A.toarray(), self.b)

    def tightened(self, margin: ArrayLike) -> SparseAffine | Affine:
        """``g + margin``, with a margin for each row; if it has leading axes, as a dense Affine.

        >>> import coldq
        >>> sparse = scipy_sparse()
        >>> coldq.SparseAffine(sparse.eye_array(2), [1.0, 2.0]).tightened(0.5).b
        array([0.5, 1.5])
        """
        rows = row_margins(margin, self.n_constraints)
        if rows.ndim > 1:
            return Affine(self.A.toarray(), self.b - rows)
        return SparseAffine(self.A, self.b - rows)

    def largest(self, domain: Domain) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; a bound on a polytope, else exact."""
        rows, exact = _largest_rows(self.A, self.b, domain)
        return rows.max(axis=-1, initial=0.0), exact

    def max_difference(self, other: SparseAffine, domain: Domain) -> tuple[Array, bool]:
        """``max over the domain of |g - other|_2``, exact where that of an Affine is."""
        rows, b, box = self.A - other.A, self.b - other.b, domain.around
        moving = np.unique(rows.nonzero()[1])
        if box is domain:
            if moving.size > VERTEX_LIMIT:
                largest, _ = _largest_rows(rows, b, domain)
                return np.sqrt(np.square(largest).sum(axis=-1)), len(b) == 1
            some = moving if moving.size else [0]
            rows, domain = rows[:, some], type(box)(box.lower[..., some], box.upper[..., some])
        still = Affine(np.zeros(rows.shape), np.zeros(len(b)))
        return Affine(rows.toarray(), b).max_difference(still, domain)


def _require_indices(A: Any) -> None:
    """Raise if a compressed matrix was put together of indices that are not those of its shape.

    SciPy takes them as they are, and its products read and write wherever they point.
    """
    if not hasattr(A, "indptr"):
        for axis, places in enumerate(getattr(A, "coords", ())):  # of a COO matrix
            _require_within("coords", np.asarray(places), A.shape[axis])
        return
    indices, indptr = np.asarray(A.indices), np.asarray(A.indptr)
    block = getattr(A, "blocksize", (1, 1))
    major, minor = (A.shape[0] // block[0], A.shape[1] // block[1])
    if A.format == "csc":
        major, minor = minor, major
    sound = indptr.shape == (major + 1,) and indptr[0] == 0 and indptr[-1] <= indices.size
    if not (sound and (np.diff(indptr) >= 0).all() and len(A.data) >= indices.size):
        raise InvalidInput(
            f"A of shape {A.shape} needs {major + 1} values of indptr that begin with 0 and do not "
            f"fall, and an index and a number for each of the last, but indptr is {indptr} for "
            f"{indices.size} indices"
        )
    _require_within("indices", indices[: indptr[-1]], minor)


def _require_within(name: str, places: np.ndarray, size: int) -> None:
    bad = (places < 0) | (places >= size)
    if bad.any():
        where = int(np.argmax(bad))
        raise InvalidInput(
            f"A's {name} must lie in 0 to {size - 1}, but the one at position {where} is "
            f"{places[where]}"
        )


def _largest_rows(A: Any, b: Array, domain: Domain) -> tuple[Array, bool]:
    """``max over the domain of |A x - b|``, row by row; at the cost of A's nonzeros on a box."""
    if domain.around is not domain or domain.batch:
        return largest_rows(A.toarray(), b, domain)
    up, down = A.maximum(0.0), A.minimum(0.0)
    low, high = domain.box.lower, domain.box.upper
    return np.maximum(np.abs(up @ low + down @ high - b), np.abs(up @ high + down @ low - b)), True
