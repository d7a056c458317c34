"""The per-slot problem by name, as every solver takes it and passes it on.

    min over x in X of  <gradient, x - center> + alpha |x - center|^2 + penalty(g(x))

A row's multiplier is in [multiplier_lower, multiplier_upper], which says what its penalty is.
Leading axes of all arrays are those of a batch; `cores` counts the axes that are an array's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array

HINGE = 0.0  # the lower bound of multipliers that needs no array
HALF = np.array(0.5)  # alpha of a projection
# All coordinates as one block, whose sum may be anything: its start, total and kind.
ONE_BOX = np.zeros(1), np.zeros(1), np.full(1, np.inf)


@cache
def zeros_of(n: int) -> Array:
    zeros = np.zeros(n)
    zeros.flags.writeable = False
    return zeros


def power(size: Any) -> Any:
    """The power of two next to a size, 1 for 0: a division by it is exact."""
    return np.ldexp(1.0, np.where(size > 0.0, np.frexp(size)[1], 0))


def reach_of(*ends: Array) -> float:
    """The largest size among those that are finite, 0 without any."""
    sizes = np.abs(np.concatenate(ends))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def largest_of(values: Array, group: np.ndarray, n: int, least: float = 0.0) -> Array:
    """The largest value of each group, at least `least`."""
    out = np.full(n, least)
    np.maximum.at(out, group, values)
    return out


def is_sparse(A: Any) -> bool:
    """Whether rows are sparse ones."""
    return hasattr(A, "indptr")


class DoNotFit(ValueError):
    """Arrays do not belong together; whoever has the objects that they are from says so."""


class AffineProblem(NamedTuple):
    """Rows ``A x - b - soft multipliers`` on a box, in the order of the core's arguments.

    `soft`, the compliance, is zero but for the rows of a least-squares loss. A may be a sparse
    array of SciPy's, by rows, which the members of a batch share.
    """

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    soft: Array
    A: Any
    b: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 1, 2, 1, 1, 1)

    def enforced_rows(self) -> AffineProblem | None:
        """One instance of the enforced rows alone, to be met nearest to the center."""
        enforced = np.isinf(self.multiplier_lower) | np.isinf(self.multiplier_upper)
        if not enforced.any():
            return None
        low, high = self.multiplier_lower[enforced], self.multiplier_upper[enforced]
        return self._replace(
            center=np.clip(self.center, self.lower, self.upper), gradient=0.0 * self.gradient,
            alpha=np.array(0.5), multiplier_lower=np.where(np.isinf(low), low, 0.0),
            multiplier_upper=np.where(np.isinf(high), high, 0.0), soft=np.zeros(low.size),
            A=self.A[enforced], b=self.b[enforced],
        )  # fmt: skip


class QuadraticProblem(NamedTuple):
    """Affine rows with ``x'P x / 2`` added to the first ones, those of P, and no compliance."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    P: Array
    A: Array
    b: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 3, 2, 1, 1, 1)


class BallProblem(NamedTuple):
    """Affine rows in a ball."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    soft: Array
    A: Array
    b: Array
    middle: Array
    radius: Array

    cores = (1, 1, 0, 1, 1, 1, 2, 1, 1, 0)


class BallRow(NamedTuple):
    """The enforced row of a ball: ``|x[first : first + q] - center| <= radius``."""

    center: Array
    radius: Array
    first: int = 0

    cores = (1, 0, 0)


class Part(NamedTuple):
    """Rows ``x'P x / 2 + A x - b``, or without a P, in arrays over a batch."""

    P: Array | None
    A: Array
    b: Array

    cores = (3, 2, 1)

    @property
    def n_constraints(self) -> int:
        return self.A.shape[-2]

    def value(self, x: Array) -> Array:
        """g at a point; of one instance."""
        bent = 0.0 if self.P is None else 0.5 * (self.P @ x)
        return (bent + self.A) @ x - self.b

    def jacobian(self, x: Array) -> Array:
        """Its jacobian there."""
        return self.A if self.P is None else self.P @ x + self.A

    def member(self, where: tuple[int, ...], batch: tuple[int, ...]) -> Part:
        """The rows of the member at `where` of a batch."""
        return member(self, where, batch)

    def moved(self, shift: Array | None) -> Part:
        """The rows as functions of ``x - shift``."""
        if shift is None:
            return self
        at = shift[..., None, :]
        if self.P is None:
            return Part(None, self.A, self.b - (self.A * at).sum(axis=-1))
        bent = (self.P * at[..., None, :]).sum(axis=-1)
        limit = self.b - ((0.5 * bent + self.A) * at).sum(axis=-1)
        P = np.broadcast_to(self.P, (*bent.shape[:-2], *self.P.shape[-3:]))
        return Part(P, self.A + bent, limit)


class Thin(NamedTuple):
    """Rows ``sum_i d_i (x_i - c_i)^2 / 2 + |F'x|^2 / 2 + <q, x> - limit`` of a batch."""

    d: Array
    center: Array
    F: Array
    q: Array
    limit: Array

    cores = (2, 2, 3, 2, 1)

    @property
    def n_constraints(self) -> int:
        return self.q.shape[-2]

    def factors(self) -> Array:
        """The columns of F as rows, those of each row n in turn."""
        *batch, n, p, k = self.F.shape
        return np.swapaxes(self.F, -1, -2).reshape(*batch, n * k, p)


def as_dense(one: AffineProblem) -> AffineProblem:
    """One instance for methods that take a dense A."""
    return one._replace(A=one.A.toarray()) if is_sparse(one.A) else one


def member(problem: Any, where: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    """The instance at `where` of a batch; what has no members of its own, all share."""
    alone = []
    for array, core in zip(problem, problem.cores, strict=True):
        if array is not None and not is_sparse(array):
            shape = np.shape(array)
            axes = len(shape) - core
            if axes > 0:
                if shape[:axes] != batch:
                    try:
                        array = np.broadcast_to(array, batch + shape[axes:])
                    except ValueError as error:
                        raise DoNotFit(str(error)) from None
                array = array[where]
            array = np.asarray(array, order="C")
        alone.append(array)
    return problem._make(alone)


def members(problem: Any, wanted: np.ndarray) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The wanted instances of a batch, each with its place."""
    if not np.any(wanted):
        return
    for where in np.ndindex(*np.shape(wanted)):
        if wanted[where]:
            yield where, member(problem, where, np.shape(wanted))


def append(first: Array, second: Array, core: int) -> Array:
    """The rows of two arrays, one after the other; leading axes broadcast.

    Where they do, ``np.concatenate`` would choose an order in memory that the core cannot read.
    """
    if first.ndim == second.ndim == core:
        return np.concatenate((first, second))
    try:
        batch = np.broadcast_shapes(first.shape[:-core], second.shape[:-core])
    except ValueError as error:
        raise DoNotFit(str(error)) from None
    n = first.shape[-core]
    out = np.empty((*batch, n + second.shape[-core], *first.shape[first.ndim - core + 1 :]))
    upper, lower = (out[..., :n], out[..., n:]) if core == 1 else (out[..., :n, :], out[..., n:, :])
    upper[...], lower[...] = first, second
    return out
