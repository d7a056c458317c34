"""The limits of the last slots, in blocks that are not changed, so that states share them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.api import recall

BLOCK_LENGTH = 64  # slots


class Recent:
    """Limits of the last slots, ``(..., N, slots)``, slot t at place ``t % slots``.

    It stands for one array, and is made of blocks of 64 slots. A slot more makes one new block; the
    others are those of the state before.
    """

    __slots__ = ("blocks", "shape")

    def __init__(self, blocks: tuple[Array, ...], shape: tuple[int, ...]) -> None:
        self.blocks = blocks
        self.shape = shape

    @classmethod
    def of(cls, given: Any) -> Recent:
        """These limits, or those of a whole array."""
        if isinstance(given, cls):
            return given
        whole = np.asarray(given)
        starts = range(0, whole.shape[-1], BLOCK_LENGTH)
        blocks = [np.ascontiguousarray(whole[..., a : a + BLOCK_LENGTH]) for a in starts]
        for block in blocks:
            block.flags.writeable = False
        return cls(tuple(blocks), whole.shape)

    @classmethod
    def zeros(cls, shape: tuple[int, ...], slots: int) -> Recent:
        """No limits yet, with room for so many slots at least."""
        count = -(-slots // BLOCK_LENGTH)
        block = np.zeros((*shape, BLOCK_LENGTH))
        block.flags.writeable = False
        return cls((block,) * count, (*shape, count * BLOCK_LENGTH))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The whole array."""
        if not self.blocks:
            return np.zeros(self.shape, dtype)
        return np.concatenate(self.blocks, axis=-1).astype(dtype or np.float64, copy=False)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its numbers."""
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The type of its numbers."""
        return np.dtype(np.float64)

    def recall(
        self, t: np.ndarray, back: np.ndarray, limits: Array | None = None
    ) -> tuple[Recent, Array]:
        """These with the limits of slot t, and the limits (..., N, count) of slots ``t - back``."""
        if not self.blocks:
            return self, np.zeros((*self.shape[:-1], len(back)))
        blocks, found = recall(self.blocks, t, back, limits)
        if blocks is not None:
            return Recent(blocks, self.shape), found
        if limits is None:
            return self, found
        whole = np.array(self)  # members of the batch are in slots of their own
        np.put_along_axis(whole, (t % self.shape[-1])[..., None, None], limits[..., None], axis=-1)
        return Recent.of(whole), found

    def members(self, where: tuple[np.ndarray, ...]) -> Recent:
        """The recent limits of some members of a batch."""
        blocks = tuple(block[where] for block in self.blocks)
        return Recent(blocks, (*where[0].shape, *self.shape[-2:]))
