"""Numba's view of memory that belongs to somebody else: a pointer and lengths, and nothing besides.

Numba's own arrays carry owners, steps and counts of references. Kernels need none of these, and the
compiler has less to do without them. Indices mean what they mean there, which also keeps the order
in which loops over them add up.
"""

# pyright: reportOptionalCall=false, reportPrivateImportUsage=false

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_getattr,
    models,
    register_model,
)

WORD = ir.IntType(64)


class Memory(types.Type):
    """Numbers one after another, along `axes` axes."""

    def __init__(self, number: Any, axes: int) -> None:
        self.number, self.axes = number, axes
        super().__init__(f"memory({number}, {axes})")


@register_model(Memory)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Memory) -> None:
        lengths = types.UniTuple(types.intp, kind.axes)
        super().__init__(
            manager, kind, [("data", types.CPointer(kind.number)), ("lengths", lengths)]
        )


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Memory

    def resolve_shape(self, memory: Memory) -> Any:
        return types.UniTuple(types.intp, memory.axes)

    def resolve_size(self, memory: Memory) -> Any:
        return types.intp


@lower_getattr(Memory, "shape")
def _shape(context, builder, kind, value):
    return builder.extract_value(value, 1)


@lower_getattr(Memory, "size")
def _size(context, builder, kind, value):
    size = WORD(1)
    for axis in range(kind.axes):
        size = builder.mul(size, builder.extract_value(value, [1, axis]))
    return size


def _is_place(index: Any, axes: int) -> bool:
    """Whether an index has a whole number for each axis."""
    if isinstance(index, (types.UniTuple, types.Tuple)):
        return len(index) == axes and all(isinstance(i, types.Integer) for i in index.types)
    return axes == 1 and isinstance(index, types.Integer)


@infer_global(operator.getitem)
class _Get(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        memory, index = args
        if isinstance(memory, Memory):
            if _is_place(index, memory.axes):
                return signature(memory.number, memory, index)
            if memory.axes == 2 and isinstance(index, types.Integer):
                return signature(Memory(memory.number, 1), memory, index)
        return None


@infer_global(operator.setitem)
class _Set(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        memory, index, _ = args
        if isinstance(memory, Memory) and _is_place(index, memory.axes):
            return signature(types.none, memory, index, memory.number)
        return None


def _step(context: Any, builder: Any, kind: Any, step: Any, lengths: Any, axis: int) -> Any:
    """An index along an axis; below 0 it counts from the end."""
    if isinstance(kind, types.IntegerLiteral):
        step = WORD(kind.literal_value)
    step = context.cast(builder, step, types.unliteral(kind), types.intp)
    if isinstance(step, ir.Constant) and step.constant >= 0:
        return step
    length = builder.extract_value(lengths, axis)
    below = builder.icmp_signed("<", step, step.type(0))
    return builder.select(below, builder.add(step, length), step)


def _entry(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The pointer to an entry, or to the first of a row."""
    memory, index = sig.args[:2]
    data, lengths = builder.extract_value(args[0], 0), builder.extract_value(args[0], 1)
    kinds, steps = [index], [args[1]]
    if isinstance(index, (types.UniTuple, types.Tuple)):
        kinds, steps = list(index.types), cgutils.unpack_tuple(builder, args[1])
    for axis, kind in enumerate(kinds):
        steps[axis] = _step(context, builder, kind, steps[axis], lengths, axis)
    place = steps[0]
    for axis in range(1, memory.axes):
        place = builder.mul(place, builder.extract_value(lengths, axis))
        if axis < len(steps):
            place = builder.add(place, steps[axis])
    return builder.gep(data, [place])


@lower_builtin(operator.getitem, Memory, types.Any)
def _get(context, builder, sig, args):
    entry = _entry(context, builder, sig, args)
    if isinstance(sig.return_type, Memory):
        length = builder.extract_value(builder.extract_value(args[0], 1), 1)
        return packed(context, builder, sig.return_type, entry, [length])
    return context.unpack_value(builder, sig.return_type, entry)


@lower_builtin("static_getitem", Memory, types.Any)
def _get_known(context, builder, sig, args):
    """The same where the index is written there: Numba would look for this first in any case."""
    memory, index = sig.args[0], args[1]
    kind: Any = types.intp if isinstance(index, int) else types.UniTuple(types.intp, len(index))
    value = context.get_constant_generic(builder, kind, index)
    return _get(context, builder, signature(sig.return_type, memory, kind), (args[0], value))


@lower_builtin(operator.setitem, Memory, types.Any, types.Any)
def _set(context, builder, sig, args):
    memory, value = sig.args[0], context.cast(builder, args[2], sig.args[2], sig.args[0].number)
    context.pack_value(builder, memory.number, value, _entry(context, builder, sig, args))
    return context.get_dummy_value()


def packed(context: Any, builder: Any, kind: Memory, data: Any, lengths: Any) -> Any:
    """A pointer and lengths as memory."""
    made = builder.insert_value(ir.Constant(context.get_value_type(kind), ir.Undefined), data, 0)
    for axis, length in enumerate(lengths):
        made = builder.insert_value(made, length, [1, axis])
    return made


def memory_at(number: Any, axes: int) -> Any:
    """How to see memory at an address, given its lengths."""
    kind = Memory(number, axes)

    def codegen(context, builder, sig, args):
        data = builder.inttoptr(args[0], context.get_data_type(number).as_pointer())
        return packed(context, builder, kind, data, args[1:])

    whole = kind(types.intp, *(types.intp,) * axes)
    return intrinsic_of(1 + axes, lambda *kinds: (whole, codegen))


def intrinsic_of(n: int, typed: Any) -> Any:
    """An intrinsic of n arguments, from a function of their types.

    Numba counts the parameters of its definition, so that it cannot take any number of them.
    """
    names = ", ".join("abcdefgh"[:n])
    return intrinsic(eval(f"lambda context, {names}: typed({names})", {"typed": typed}))


def lowered(result: Any) -> Any:
    """Make what writes a call for LLVM an intrinsic; `result` gives its type by its arguments'."""
    n = result.__code__.co_argcount
    return lambda codegen: intrinsic_of(n, lambda *kinds: (result(*kinds)(*kinds), codegen))


@lowered(lambda memory, offset: types.intp)
def address_of(context, builder, sig, args):
    """The address of an entry: passing addresses costs far less than passing memory."""
    data = builder.extract_value(args[0], 0)
    return builder.ptrtoint(builder.gep(data, [args[1]]), WORD)
