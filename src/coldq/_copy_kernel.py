"""Copies of arrays that a user gives, if they are as most come, and all numbers finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from coldq.compiled import Kernel, compiled, exact, machine, vector
from coldq.compiled.calls import (
    AXES,
    CONTIGUOUS,
    DATA,
    FIELDS,
    HEAD,
    LENGTHS,
    boxed,
    data_of,
    is_array,
    object_at,
    pair_of,
    read_array,
    refused,
    stack,
    table_at,
    words,
)  # fmt: skip

WRITABLE = 0x0400
NEW_LIKE_ARRAY, C_ORDER = 277, 0  # PyArray_NewLikeArray(array, order, its dtype, its class)


@compiled
def has_finite(numbers):
    """Whether no entry is NaN or infinite."""
    total = 0.0
    for i in range(numbers.size):
        total += 0.0 * numbers[i]
    return total == 0.0


@exact
def size_of(row):
    size = 1
    for a in range(row[AXES]):
        size *= words(row[LENGTHS], row[AXES])[a]
    return size


@exact
def is_whole(kind, given, row):
    """Whether this is an array of float64, contiguous and writable."""
    if not is_array(kind, given) or not read_array(given, False, row):
        return False
    flags = words(given, HEAD + 7)[HEAD + 6]
    return flags & CONTIGUOUS != 0 and flags & WRITABLE != 0


@exact
def copy_of(given, row, new_like):
    """A new array with the same numbers, which nobody can write to; 0 if there is no memory."""
    made = object_at(new_like, given, C_ORDER, 0, 0)
    if made != 0:
        numbers, into = vector(row[DATA], size_of(row)), vector(data_of(made), size_of(row))
        for i in range(numbers.size):
            into[i] = numbers[i]
        words(made, HEAD + 7)[HEAD + 6] &= ~WRITABLE
    return made


@exact
def enter_copies(given, args, count):
    """A copy of an array of finite float64, whole and writable. Of rows and levels that both are so
    and belong together, a pair of copies. None of anything else."""
    card, objects = words(data_of(given), 2), words(args, count)
    row = table_at(stack(), 2, FIELDS)
    if count != 1 and count != 2:
        return refused()
    for o in range(count):
        if not is_whole(card[0], objects[o], row[o]):
            return boxed(None)
    if count == 2:
        if row[0, AXES] != 2 or row[1, AXES] != 1:
            return boxed(None)
        if words(row[0, LENGTHS], 1)[0] != words(row[1, LENGTHS], 1)[0]:
            return boxed(None)
    for o in range(count):
        if not has_finite(vector(row[o, DATA], size_of(row[o]))):
            return boxed(None)
    own = copy_of(objects[0], row[0], card[1])
    if own == 0 or count == 1:
        return own
    return pair_of(own, copy_of(objects[1], row[1], card[1]))


COPIES = Kernel(enter_copies)


@cache
def copies() -> Callable[..., Any]:
    """What Python calls."""
    card = np.array([id(np.ndarray), machine.code_in_numpy(NEW_LIKE_ARRAY)], np.int64)
    return machine.function("copies", COPIES.code().address, card)
