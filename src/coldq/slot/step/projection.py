"""Projection onto very many affine rows, of which few matter at a time."""

from __future__ import annotations

import numpy as np

from coldq.base.arrays import Array
from coldq.base.contractions import affine_value, matvec
from coldq.base.errors import Infeasible, name_indices
from coldq.base.protocols import Domain
from coldq.slot.constraints import Affine
from coldq.slot.step import solve

VIOLATION_ROUNDING = 1e-12  # of a row's scale |b| + |a|'|x|: above what a solved row leaves
HALF = np.array(0.5)


def project_on_rows(x: Array, A: Array, b: Array, domain: Domain) -> Array:
    """The point of ``{z in X : A z <= b}`` nearest to x, for A (..., K, p) and b (..., K).

    Rows are added one at a time, each time the one most violated, until none is. Every member of
    a batch goes its own way, so that its bits depend neither on the others nor on rows that hold.

    >>> import numpy as np, coldq
    >>> from coldq.slot.step.projection import project_on_rows
    >>> A, b = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0, 5.0])
    >>> project_on_rows(np.array([3.0, 2.0]), A, b, coldq.Box(0.0, 9.0, dim=2))
    array([1.5, 0.5])
    """
    batch, p = x.shape[:-1], x.shape[-1]
    count, K = int(np.prod(batch)), b.shape[-1]
    aim = np.ascontiguousarray(x).reshape(count, p)
    every, bounds = A.reshape(count, K, p), b.reshape(count, K)
    size = np.abs(every)
    here = domain.project(aim)
    chosen = np.empty((count, 0), np.int64)
    open_ = np.arange(count)  # the members for which a row is still violated
    while K > 0:
        point = here[open_]
        scale = np.abs(bounds[open_]) + matvec(size[open_], np.abs(point))
        excess = affine_value(every[open_], point, bounds[open_])
        excess = np.where(excess > VIOLATION_ROUNDING * scale, excess, 0.0)
        excess = excess / np.where(scale > 0.0, scale, 1.0)
        np.put_along_axis(excess, chosen[open_], 0.0, axis=-1)
        violated = excess.any(axis=-1)
        if not violated.any():
            break
        open_ = open_[violated]
        worst = excess[violated].argmax(axis=-1)
        grown = np.zeros((count, chosen.shape[1] + 1), np.int64)
        grown[open_] = np.concatenate([chosen[open_], worst[:, None]], axis=-1)
        chosen = grown
        rows = np.take_along_axis(every[open_], chosen[open_][..., None], axis=-2)
        limits = np.take_along_axis(bounds[open_], chosen[open_], axis=-1)
        enforced = np.full(limits.shape, np.inf)
        none = np.zeros((open_.size, p))
        try:
            here[open_] = solve(aim[open_], none, HALF, enforced, Affine(rows, limits), domain).x
        except Infeasible as error:
            empty = np.zeros(count, bool)
            empty[open_[[index[0] for index in error.indices]]] = True
            words, indices = name_indices(empty.reshape(batch))
            message = f"no point of the domain satisfies all rows so far{words}"
            raise Infeasible(message, indices, None) from None
    return here.reshape(x.shape)
