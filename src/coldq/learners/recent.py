"""The limits of the last slots, in blocks that are not changed, so that states share them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from coldq._values import Array

BLOCK = 64  # slots


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
        starts = range(0, whole.shape[-1], BLOCK)
        blocks = [np.ascontiguousarray(whole[..., a : a + BLOCK]) for a in starts]
        for block in blocks:
            block.flags.writeable = False
        return cls(tuple(blocks), whole.shape)

    @classmethod
    def zeros(cls, shape: tuple[int, ...], slots: int) -> Recent:
        """No limits yet, with room for so many slots at least."""
        count = -(-slots // BLOCK)
        block = np.zeros((*shape, BLOCK))
        block.flags.writeable = False
        return cls((block,) * count, (*shape, count * BLOCK))

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
        """That of its numbers."""
        return np.dtype(np.float64)

    def with_slot(self, t: np.ndarray, limits: Array) -> Recent:
        """These, and the limits of slot t."""
        slots = self.shape[-1]
        if not slots:
            return self
        place = np.asarray(t) % slots
        first = int(place.reshape(-1)[0]) if place.size else 0
        if (place != first).any():  # members of the batch that are in slots of their own
            whole = np.array(self)
            np.put_along_axis(whole, place[..., None, None], limits[..., None], axis=-1)
            return Recent.of(whole)
        at, inside = divmod(first, BLOCK)
        block = self.blocks[at].copy()
        block[..., inside] = limits
        block.flags.writeable = False
        return Recent((*self.blocks[:at], block, *self.blocks[at + 1 :]), self.shape)

    def at(self, t: np.ndarray) -> Array:
        """The limits of some slots, ``t`` being (..., slots asked for), as (..., N, slots)."""
        slots, count = self.shape[-1], np.shape(t)[-1]
        found = np.empty((*self.shape[:-1], count))
        if not count or not found.size:
            return found
        places = (np.asarray(t) % slots).reshape(-1, count)
        if len(places) > 1 and (places != places[0]).any():
            at = (np.asarray(t) % slots)[..., None, :]
            return np.take_along_axis(np.asarray(self), at, axis=-1)
        for k, place in enumerate(places[0].tolist()):
            found[..., k] = self.blocks[place // BLOCK][..., place % BLOCK]
        return found
