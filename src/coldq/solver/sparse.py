"""Sparse rows with what an array of rows has."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq._values import Array
from coldq.solver.kernels.sparse import (
    add_back,
    add_outer_products,
    copy_lines,
    join,
    times,
    turn,
)

SOME, MANY = 64, 200  # positions of which small parts are made one, and of which parts are made


class SparseRows:
    """A sparse matrix by rows, with what an array has: ``A @ x``, ``mu @ A``, ``A[rows]``."""

    __array_ufunc__ = None  # so that ``mu @ A`` comes here

    def __init__(self, parts: tuple[Array, np.ndarray, np.ndarray], width: int) -> None:
        self.parts = parts
        self.shape = parts[2].size - 1, width

    @classmethod
    def of(cls, A: Any) -> SparseRows:
        """That of a SciPy matrix, and its arrays if its indices are as long as the kernels'."""
        indices, indptr = (part.astype(np.int64, copy=False) for part in (A.indices, A.indptr))
        return cls((A.data, indices, indptr), A.shape[1])

    def __matmul__(self, x: Array) -> Array:
        out = np.empty(self.shape[0])
        times()(*self.parts, x, out)
        return out

    def __rmatmul__(self, mu: Array) -> Array:
        out = np.zeros(self.shape[1])
        add_back()(*self.parts, mu, out)
        return out

    def __getitem__(self, rows: np.ndarray) -> SparseRows:
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
        indptr = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(np.diff(self.parts[2])[chosen], out=indptr[1:])
        parts = np.empty(indptr[-1]), np.empty(indptr[-1], np.int64), indptr
        copy_lines()(*self.parts, chosen, *parts)
        return SparseRows(parts, self.shape[1])

    @property
    def T(self) -> SparseRows:
        data, indices, _ = self.parts
        pointers = np.zeros(self.shape[1] + 1, np.int64)
        parts = np.empty_like(data), np.empty_like(indices), pointers
        turn()(*self.parts, *parts)
        return SparseRows(parts, self.shape[0])

    def square_lengths(self, weight: Array) -> Array:
        """The sum of squares of each row, weighted."""
        data, indices, indptr = self.parts
        return SparseRows((np.square(data), indices, indptr), self.shape[1]) @ weight

    def squares(self, place: np.ndarray, size: int, weight: Array) -> Array:
        """The sum of the rows' outer products; see :func:`add_outer_products`."""
        H = np.zeros((size, size))
        add_outer_products()(*self.parts, place, weight, H)
        return H

    def apart(self, place: np.ndarray, size: int, weight: Array) -> list[np.ndarray]:
        """The positions that :meth:`squares` has, in parts that share no row with a weight: single
        ones are as large as they must be, many small ones one part."""
        if size <= MANY:
            return [np.arange(size)]
        _, indices, indptr = self.parts
        first = np.empty(size, np.int64)
        join()(indices, indptr, place, weight, first)
        order = np.argsort(first, kind="stable")
        begins = np.flatnonzero(np.diff(first[order], prepend=-1))
        return np.split(order, begins[1:][np.diff(begins // SOME) > 0])

    def without_empty_columns(self) -> tuple[np.ndarray, SparseRows]:
        """The columns that have entries, and the matrix of these; itself, if all have."""
        data, indices, indptr = self.parts
        has_any = np.zeros(self.shape[1], bool)
        has_any[indices] = True
        entered = np.flatnonzero(has_any)
        if entered.size == self.shape[1]:
            return entered, self
        few = 16 * indices.size <= self.shape[1]  # a search for each, or one pass over all columns
        place = np.searchsorted(entered, indices) if few else (np.cumsum(has_any) - 1)[indices]
        return entered, SparseRows((data, place, indptr), entered.size)

    def toarray(self) -> Array:
        out = np.zeros(self.shape)
        out[np.repeat(np.arange(self.shape[0]), np.diff(self.parts[2])), self.parts[1]] = (
            self.parts[0]
        )
        return out
