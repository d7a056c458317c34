"""What makes values of a user's arrays in little time: their copies, and the values' fields."""

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
    dropped,
    is_array,
    object_at,
    read_array,
    refused,
    set_field,
    stack,
    table_at,
    words,
)  # fmt: skip

WRITABLE = 0x0400
GIVEN = CONTIGUOUS | WRITABLE  # as most arrays come
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
def is_sound(kind, given, row, flags):
    """Whether this is an array of finite float64 that has these flags."""
    if not is_array(kind, given) or not read_array(given, False, row):
        return False
    if words(given, HEAD + 7)[HEAD + 6] & flags != flags:
        return False
    return has_finite(vector(row[DATA], size_of(row)))


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
def set_copy(value, name, given, row, new_like):
    """Make a copy of an array a field of a value; whether that was done."""
    own = copy_of(given, row, new_like)
    if own == 0:
        return False
    done = set_field(value, name, own)
    dropped(own)  # the value has it
    return done


@exact
def enter_copy(given, args, count):
    """The copy of an array that is as most come; None of anything else."""
    card, objects = words(data_of(given), 2), words(args, count)
    row = table_at(stack(), 1, FIELDS)
    if count != 1:
        return refused()
    if not is_sound(card[0], objects[0], row[0], GIVEN):
        return boxed(None)
    return copy_of(objects[0], row[0], card[1])


@exact
def enter_keep(given, args, count):
    """Given a value, the name of rows, rows, the name of levels, and levels: if both are as most
    come, and there is a level for each row, their copies become fields, and 1 is returned."""
    card, objects = words(data_of(given), 2), words(args, count)
    row = table_at(stack(), 2, FIELDS)
    if count != 5:
        return refused()
    for k in range(2):
        if not is_sound(card[0], objects[2 * k + 2], row[k], GIVEN):
            return boxed(None)
    if row[0, AXES] != 2 or row[1, AXES] != 1:
        return boxed(None)
    if words(row[0, LENGTHS], 1)[0] != words(row[1, LENGTHS], 1)[0]:
        return boxed(None)
    for k in range(2):
        if not set_copy(objects[0], objects[2 * k + 1], objects[2 * k + 2], row[k], card[1]):
            return 0
    return boxed(1.0)


@exact
def enter_put(given, args, count):
    """Given an object, names and values in turns: these become its fields."""
    objects = words(args, count)
    if count % 2 == 0:
        return refused()
    for o in range(1, count, 2):
        if not set_field(objects[0], objects[o], objects[o + 1]):
            return 0
    return boxed(None)


@exact
def enter_finite(given, args, count):
    """Given arrays: 1 if all are of finite float64 and contiguous; None if one is not."""
    card, objects = words(data_of(given), 2), words(args, count)
    row = table_at(stack(), 1, FIELDS)
    for o in range(count):
        if not is_sound(card[0], objects[o], row[0], CONTIGUOUS):
            return boxed(None)
    return boxed(1.0)


WAYS_IN = [Kernel(way) for way in (enter_copy, enter_keep, enter_put, enter_finite)]


@cache
def ways_in() -> tuple[Callable[..., Any], ...]:
    """What Python calls to copy an array, to keep rows and levels, to set fields, and to ask
    whether arrays are finite."""
    card = np.array([id(np.ndarray), machine.code_in_numpy(NEW_LIKE_ARRAY)], np.int64)
    return tuple(machine.function(kernel.name, kernel.address(), card) for kernel in WAYS_IN)
