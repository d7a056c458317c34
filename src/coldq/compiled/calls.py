"""Python's ways into kernels: how arguments are read, and the loop over a batch.

There are two, for one call and for a batch, compiled once for all kernels. Arguments are read where
CPython and NumPy keep them, which costs nanoseconds; :func:`coldq.compiled.machine.require_layout`
makes sure that they are there. What is to be known of a kernel, its code's address among it, stands
on a *card*, an array that Python passes as `self`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from coldq.compiled import machine
from coldq.compiled.kernel import Kernel, Special, address_of, exact, vector
from coldq.compiled.machine import HEAD

words: Any = Special("words")  # words(address, n): memory as whole numbers
table_at: Any = Special("table_at")  # table_at(address, n, p): the same as a matrix
stack: Any = Special("stack")  # stack(): the address of memory that is the caller's own
float_of: Any = Special("float_of")  # float_of(object): its value, and whether it has one
integer_of: Any = Special("integer_of")  # the same of whole numbers
boxed: Any = Special("boxed")  # boxed(value): a new object of Python's
dropped: Any = Special("dropped")  # dropped(object): as Python's del does
refused: Any = Special("refused")  # refused(): raise a TypeError
release: Any = Special("release")  # release(): let other threads run Python
restore: Any = Special("restore")  # restore(state): and wait for them
run_at: Any = Special("run_at")  # run_at(address, sizes, at): a batch kernel's code
set_field: Any = Special("set_field")  # set_field(object, name, value): whether it was set
call_at: Any = Special("call_at")  # call_at(address, table): that of a kernel for one call
object_at: Any = Special("object_at")  # object_at(address, a, b, c, d): what C code returns

# A card: the type of NumPy's arrays, the address of the kernel's code, how many operands and core
# axes it has, which operand is the first output; then a line for each operand.
ARRAYS, CODE, OPERANDS, DIMENSIONS, FIRST_OUT, HEADER = range(6)
LINE = 8
MOST_OPERANDS = 40
MOST_DIMENSIONS = 16
CORES, OPTIONAL, NAMES, SLOTS = 0, 1, 2, 5  # of a line: axes, marks, their names, where steps go
DATA, AXES, LENGTHS, STEPS, FIELDS = range(5)  # what is known of an operand
ARRAY, WHOLE_ARRAY, FLOAT, WHOLE = range(4)  # kinds of an argument, and how many axes it has
KINDS = {"V": (ARRAY, 1), "M": (ARRAY, 2), "I": (WHOLE_ARRAY, 1), "f": (FLOAT, 0), "i": (WHOLE, 0)}
MOST_AXES = 32
STACK = 1024  # numbers that an instance may work in without memory of its own
RELEASE_ABOVE = 20_000  # numbers to be read: with fewer, giving the interpreter away does not pay
LOW_32 = 0xFFFFFFFF
ALIGNED, CONTIGUOUS = 0x0100, 0x0001
DOUBLE, LONG, LONG_LONG = 0x3D6466, 0x3D6C69, 0x3D7169  # '=df', '=li' and '=qi' in NumPy's dtypes


@exact
def is_array(kind, given):
    return words(given, HEAD)[HEAD - 1] == kind


@exact
def read_array(given, whole, row):
    """Find an array's data, lengths and steps; whether it is aligned and of the right numbers."""
    fields = words(given, HEAD + 7)
    numbers = words(fields[HEAD + 5], HEAD + 2)[HEAD + 1] & 0xFFFFFF
    row[DATA] = fields[HEAD]
    row[AXES] = fields[HEAD + 1] & LOW_32
    row[LENGTHS] = fields[HEAD + 2]
    row[STEPS] = fields[HEAD + 3]
    if fields[HEAD + 6] & ALIGNED == 0:
        return False
    if whole:
        return numbers in (LONG, LONG_LONG)
    return numbers == DOUBLE


@exact
def read_number(given, row, place):
    """Put a number of Python's into memory, as an array without axes."""
    value, known = float_of(given)
    vector(place, 1)[0] = value
    row[DATA] = place
    row[AXES] = 0
    row[LENGTHS] = place
    row[STEPS] = place
    return known


@exact
def set_sizes(line, row, sizes):
    """Note the lengths of an operand's core axes; whether they fit those before, and its steps."""
    cores, axes = line[CORES], row[AXES]
    lengths, steps = words(row[LENGTHS], axes), words(row[STEPS], axes)
    empty = False  # then steps mean nothing
    for a in range(axes):
        empty = empty or lengths[a] == 0
    step = 8
    for c in range(cores - 1, -1, -1):
        d, slot, axis = line[NAMES + c], line[SLOTS + c], axes - cores + c
        known = slot >= 0 and sizes[d] >= 0
        if known and (axis < 0 or (lengths[axis] == 1 and sizes[d] != 1)):
            sizes[slot] = 0  # the same for all along this axis
            continue
        if axis < 0:
            return False
        length, own = lengths[axis], steps[axis]
        if sizes[d] < 0:
            sizes[d] = length
        if sizes[d] != length:
            return False
        if slot >= 0:
            if own % 8 != 0:
                return False
            sizes[slot] = own // 8
        elif length > 1 and own != step and not empty:
            return False
        step *= length
    return True


@exact
def set_steps(row, cores, leading, shape, steps):
    """The steps of an operand over the leading axes, 0 where it broadcasts; whether it does."""
    for a in range(leading):
        steps[a] = 0
    if row[AXES] < 0:  # there is none
        return True
    own = row[AXES] - cores
    if own > leading:
        return False
    lengths, jumps = words(row[LENGTHS], own), words(row[STEPS], own)
    for a in range(own):
        at = leading - own + a
        if lengths[a] != 1:
            if lengths[a] != shape[at]:
                return False
            steps[at] = jumps[a]
    return True


@exact
def read_operands(kind, args, layout, table, numbers, sizes):
    """Read all operands of a batch; whether their core axes fit together."""
    operands = layout.shape[0]
    objects = words(args, operands)
    for d in range(sizes.size):
        sizes[d] = -1
    for o in range(operands):
        row = table[o]
        if is_array(kind, objects[o]):
            if not read_array(objects[o], False, row):
                return False
        elif layout[o, OPTIONAL] != 0:
            row[DATA] = 0
            row[AXES] = -1
            continue
        elif not read_number(objects[o], row, numbers + 8 * o):
            return False
        if not set_sizes(layout[o], row, sizes):
            return False
    return True


# What the way into a batch works in, and then the kernel itself.
LOCAL_WORDS = (
    MOST_OPERANDS * (FIELDS + 2 + MOST_AXES) + 1 + MOST_DIMENSIONS + 2 * MOST_AXES + STACK
)  # fmt: skip


@exact
def data_of(given):
    """Where an array's data begin."""
    return words(given, HEAD + 1)[HEAD]


@exact
def prepare(kind, args, layout, first_out, memory, at, sizes, shape, steps):
    """Read all operands and bring them together; the number of leading axes, or -1.

    `at` gets the address of each operand's first instance, `sizes` the lengths of core axes,
    `shape` those of the leading axes and then as many zeros, `steps` each operand's over them.
    """
    operands = layout.shape[0]
    table = table_at(memory, operands, FIELDS)
    if not read_operands(kind, args, layout, table, memory + 8 * operands * FIELDS, sizes):
        return -1
    leading = table[first_out, AXES] - layout[first_out, CORES]
    if leading > MOST_AXES:
        return -1
    lengths = words(table[first_out, LENGTHS], leading)
    for a in range(leading):
        shape[0, a] = lengths[a]
        shape[1, a] = 0
    for o in range(operands):
        at[o] = table[o, DATA]
        if not set_steps(table[o], layout[o, CORES], leading, shape[0], steps[o]):
            return -1
    return leading


@exact
def instances(first, last, shape):
    """How many instances some of the leading axes hold."""
    total = 1
    for a in range(first, last):
        total *= shape[0, a]
    return total


@exact
def data_of_one(layout, sizes):
    """How many numbers the operands of an instance hold."""
    data = 0
    for o in range(layout.shape[0]):
        size = 1
        for c in range(layout[o, CORES]):
            size *= sizes[layout[o, NAMES + c]]
        data += size
    return data


@exact
def advance(axes, shape, steps, at):
    """Go to the next instance over the first axes, the last of them first."""
    for a in range(axes - 1, -1, -1):
        shape[1, a] += 1
        if shape[1, a] < shape[0, a]:
            for o in range(steps.shape[0]):
                at[o] += steps[o, a]
            return
        shape[1, a] = 0
        for o in range(steps.shape[0]):
            at[o] -= steps[o, a] * (shape[0, a] - 1)


@exact
def enter_batch(given, args, count):
    """Run a kernel over a batch."""
    card = words(data_of(given), HEADER)
    operands, code = card[OPERANDS], card[CODE]
    layout = table_at(address_of(card, HEADER), operands, LINE)
    if count != operands:
        return refused()
    memory = stack()
    rest = memory + 8 * operands * (FIELDS + 1)
    at = words(rest, operands + 1)
    sizes = words(rest + 8 * (operands + 1), card[DIMENSIONS])
    shape = table_at(rest + 8 * (operands + 1 + card[DIMENSIONS]), 2, MOST_AXES)
    rest += 8 * (operands + 1 + card[DIMENSIONS] + 2 * MOST_AXES)
    steps = table_at(rest, operands, MOST_AXES)
    at[operands] = rest + 8 * operands * MOST_AXES  # memory for the kernel
    leading = prepare(card[ARRAYS], args, layout, card[FIRST_OUT], memory, at, sizes, shape, steps)
    if leading < 0:
        return refused()
    outer = max(leading - 1, 0)
    rounds, inner = instances(0, outer, shape), instances(outer, leading, shape)
    step = words(memory, operands)  # over the last axis; the table there is no longer needed
    for o in range(operands):
        step[o] = steps[o, outer] if leading > 0 else 0
    away = rounds * inner * data_of_one(layout, sizes) > RELEASE_ABOVE
    state = release() if away else 0
    worst = 0.0
    for _ in range(rounds):
        for _ in range(inner):
            found = run_at(code, address_of(sizes, 0), address_of(at, 0))
            if worst == worst and not (found <= worst):
                worst = found
            for o in range(operands):
                at[o] += step[o]
        for o in range(operands):
            at[o] -= step[o] * inner
        advance(outer, shape, steps, at)
    if away:
        restore(state)
    return boxed(worst)


@exact
def read_argument(kind, given, wanted, axes, row, place):
    """Read an argument of a kernel for one call; whether it is what is wanted."""
    if wanted == FLOAT:
        if is_array(kind, given):
            return read_array(given, False, row) and row[AXES] == 0
        return read_number(given, row, place)
    if wanted == WHOLE:
        value, known = integer_of(given)
        words(place, 1)[0] = value
        row[DATA] = place
        return known
    if not is_array(kind, given) or not read_array(given, wanted == WHOLE_ARRAY, row):
        return False
    return row[AXES] == axes and words(given, HEAD + 7)[HEAD + 6] & CONTIGUOUS != 0


@exact
def read_arguments(kind, args, layout, memory):
    """Read the arguments of a kernel for one call; whether they are what is wanted."""
    n = layout.shape[0]
    table, objects = table_at(memory, n, FIELDS), words(args, n)
    for o in range(n):
        place = memory + 8 * (n * FIELDS + o)
        if not read_argument(kind, objects[o], layout[o, 0], layout[o, 1], table[o], place):
            return False
    return True


@exact
def enter_once(given, args, count):
    """Call a kernel with its arguments."""
    card = words(data_of(given), HEADER)
    layout = table_at(address_of(card, HEADER), card[OPERANDS], LINE)
    memory = stack()
    if count != card[OPERANDS] or not read_arguments(card[ARRAYS], args, layout, memory):
        return refused()
    return call_at(card[CODE], memory)


BATCH, ONCE = Kernel(enter_batch), Kernel(enter_once)


def function_of(kernel: Kernel) -> Callable[..., Any]:
    """What Python calls."""
    way_in = BATCH if kernel.layout else ONCE
    lines, dimensions, first_out = layout_of(kernel) if kernel.layout else arguments_of(kernel)
    if len(lines) > MOST_OPERANDS or dimensions > MOST_DIMENSIONS:
        raise ValueError(f"{kernel} has too many operands or axes")
    header = [id(np.ndarray), kernel.address(), len(lines), dimensions, first_out]
    card = np.array([*header, *(word for line in lines for word in line)], np.int64)
    return machine.function(kernel.name, way_in.address(), card)


def arguments_of(kernel: Kernel) -> tuple[list[list[int]], int, int]:
    """The lines of a kernel for one call."""
    return [[*KINDS[kind], *[0] * (LINE - 2)] for kind in kernel.signature], 0, 0


def layout_of(kernel: Kernel) -> tuple[list[list[int]], int, int]:
    """The lines of a batch kernel, the number of core axes and steps, and the first output."""
    lines, names = [], dict[str, int]()
    inputs, outputs = kernel.layout.replace(" ", "").split("->")
    operands = [re.findall(r"\(([^)]*)\)(\??)", side) for side in (inputs, outputs)]
    for axes, _ in [*operands[0], *operands[1]]:
        for name in filter(None, axes.split(",")):
            names.setdefault(name.rstrip("*"), len(names))
    slots = len(names)
    for axes, optional in [*operands[0], *operands[1]]:
        line = [0, int(optional == "?"), 0, 0, 0, -1, -1, -1]
        for c, name in enumerate(filter(None, axes.split(","))):
            line[CORES] += 1
            line[NAMES + c] = names[name.rstrip("*")]
            if name.endswith("*"):
                line[SLOTS + c] = slots
                slots += 1
        lines.append(line)
    return lines, slots, len(operands[0])
