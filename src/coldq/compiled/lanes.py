"""Numba's view of several numbers side by side, one in each of the processor's lanes.

A function written with these operations is compiled for one number or for several at once, by what
it is called with. Each lane's bits are those of the number alone: nothing is added up across lanes
but by :func:`fourfold`, and a product is fused with a sum only where `fused` is written.
"""

# pyright: reportOptionalCall=false, reportPrivateImportUsage=false

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from coldq.compiled import machine
from coldq.compiled.memory import WORD, intrinsic_of, lowered

NUMBER = ir.DoubleType()
HALVES = range(4), range(4, 8)


class SideBySide(types.Type):
    """So many of one `entry` side by side."""

    entry: Any

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{type(self).__name__.lower()}({count})")


class Lanes(SideBySide):
    """Numbers, one in each lane."""

    entry = NUMBER


class Flags(SideBySide):
    """Whether something holds, lane by lane."""

    entry = ir.IntType(1)


@register_model(Lanes)
@register_model(Flags)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: SideBySide) -> None:
        super().__init__(manager, kind, ir.VectorType(kind.entry, kind.count))


# Operators between lanes, or between lanes and a number, which then stands in each


def _native(kind: Any) -> Any:
    return ir.VectorType(NUMBER, kind.count) if isinstance(kind, Lanes) else NUMBER


def _spread(builder: Any, value: Any, given: Any, kind: Any) -> Any:
    """A value as one of `kind`."""
    if given == kind or not isinstance(kind, Lanes):
        return value
    native = _native(kind)
    one = builder.insert_element(ir.Constant(native, ir.Undefined), value, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(native, ir.Undefined), places)


def _spread_all(builder: Any, values: Any, given: Any, kind: Any) -> list[Any]:
    return [_spread(builder, v, k, kind) for v, k in zip(values, given, strict=True)]


def _joint(args: Any) -> Any:
    """The lanes among arguments, where the others are numbers; None if there are none."""
    lanes = next((kind for kind in args if isinstance(kind, Lanes)), None)
    fits = all(kind in (lanes, types.float64) for kind in args)
    return lanes if fits else None


def _operator(function: Any, instruction: str, *, compares: bool = False) -> None:
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            kind = _joint(args)
            if kind is None:
                return None
            return signature(Flags(kind.count) if compares else kind, *args)

    infer_global(function)(Template)

    def codegen(context, builder, sig, args):
        parts = _spread_all(builder, args, sig.args, _joint(sig.args))
        if compares:
            return builder.fcmp_ordered(instruction, *parts)
        return getattr(builder, instruction)(*parts)

    for pair in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(function, *pair)(codegen)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")
_operator(operator.lt, "<", compares=True)
_operator(operator.le, "<=", compares=True)
_operator(operator.gt, ">", compares=True)
_operator(operator.ge, ">=", compares=True)
_operator(operator.eq, "==", compares=True)


def _flag_operator(function: Any, instruction: str) -> None:
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            fits = isinstance(args[0], Flags) and args[0] == args[1]
            return signature(args[0], *args) if fits else None

    infer_global(function)(Template)
    lower_builtin(function, Flags, Flags)(
        lambda context, builder, sig, args: getattr(builder, instruction)(*args)
    )


_flag_operator(operator.and_, "and_")
_flag_operator(operator.or_, "or_")


# Functions of lanes or of numbers


def _call(builder: Any, name: str, *args: Any) -> Any:
    """LLVM's function of that name for the arguments' type."""
    kind = args[0].type
    suffix = f"v{kind.count}f64" if isinstance(kind, ir.VectorType) else "f64"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.{suffix}"
    )
    return builder.call(function, args)


def _pointwise(n: int, made: Any) -> Any:
    """An intrinsic of n values, some of them lanes or all of them numbers."""

    def typed(*args: Any) -> Any:
        kind = _joint(args) or types.float64

        def codegen(context, builder, sig, values):
            return made(builder, *_spread_all(builder, values, sig.args, kind))

        return kind(*args), codegen

    return intrinsic_of(n, typed)


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """One rounding where the processor has it, as the compiler does for all other kernels."""
    if machine.fuses():
        return _call(builder, "fma", a, b, c)
    return builder.fadd(builder.fmul(a, b), c)


def _without(builder: Any, a: Any, b: Any, c: Any) -> Any:
    if machine.fuses():
        return _call(builder, "fma", builder.fneg(a), b, c)
    return builder.fsub(c, builder.fmul(a, b))


def _beyond(sign: str, name: str) -> Any:
    """The second of two values where it is beyond the first, which stays elsewhere.

    That is one instruction on x86 and two on ARM, which has one for LLVM's function of that `name`.
    The two differ where the second is NaN, or both are 0; on neither may a kernel rely.
    """
    if machine.is_arm():
        return lambda builder, a, b: _call(builder, name, a, b)
    return lambda builder, a, b: builder.select(builder.fcmp_ordered(sign, b, a), b, a)


def _choice(flags: Any, a: Any, b: Any) -> Any:
    return _joint((a, b)) or (Lanes(flags.count) if isinstance(flags, Flags) else types.float64)


@lowered(_choice)
def chosen(context, builder, sig, args):
    """a where a flag is set, b elsewhere."""
    parts = _spread_all(builder, args[1:], sig.args[1:], sig.return_type)
    return builder.select(args[0], *parts)


@lowered(lambda flags: types.boolean)
def anywhere(context, builder, sig, args):
    """Whether a flag is set in any lane."""
    if isinstance(sig.args[0], types.Boolean):
        return args[0]
    whole = builder.bitcast(args[0], ir.IntType(sig.args[0].count))
    return builder.icmp_unsigned("!=", whole, whole.type(0))


def _place(builder: Any, kind: Any, address: Any, index: Any) -> Any:
    data = builder.inttoptr(address, _native(kind).as_pointer())
    return builder.gep(data, [index])


@lowered(lambda address, index, like: like)
def lane_at(context, builder, sig, args):
    """What stands at a place in memory, as much of it as `like` has."""
    return builder.load(_place(builder, sig.return_type, *args[:2]), align=8)


@lowered(lambda address, index, value: types.void)
def put_lane(context, builder, sig, args):
    builder.store(args[2], _place(builder, sig.args[2], *args[:2]), align=8)
    return context.get_dummy_value()


# Numbers that come in threes: all first ones, all second ones, all third ones


@lowered(lambda address, like: types.UniTuple(like, 3))
def thirds(context, builder, sig, args):
    """Three numbers for each lane, which stand one after another."""
    like = sig.args[1]
    if isinstance(like, Lanes):
        whole = ir.VectorType(NUMBER, 3 * like.count)
        found = builder.load(builder.inttoptr(args[0], whole.as_pointer()), align=8)
        parts = [
            _shuffled(builder, found, found, [k + 3 * lane for lane in range(like.count)])
            for k in (0, 1, 2)
        ]
    else:
        places = (_place(builder, like, args[0], WORD(k)) for k in (0, 1, 2))
        parts = [builder.load(place, align=8) for place in places]
    return context.make_tuple(builder, sig.return_type, parts)


@lowered(lambda address, first, second, third: types.void)
def put_thirds(context, builder, sig, args):
    kind = sig.args[1]
    if isinstance(kind, Lanes):
        n = kind.count
        both = _shuffled(builder, args[1], args[2], list(range(2 * n)))
        rest = _shuffled(builder, args[3], args[3], list(range(2 * n)))
        mixed = [k * n + lane for lane in range(n) for k in (0, 1, 2)]
        whole = _shuffled(builder, both, rest, mixed)
        builder.store(whole, builder.inttoptr(args[0], whole.type.as_pointer()), align=8)
    else:
        for k, value in enumerate(args[1:]):
            builder.store(value, _place(builder, kind, args[0], WORD(k)), align=8)
    return context.get_dummy_value()


def _shuffled(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
    """Numbers of a and then b, by their places."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return builder.shuffle_vector(a, b, mask)


def _each(builder: Any, kind: Any, table: Any, index: Any) -> Iterator[tuple[int, Any]]:
    """For each lane where its numbers are, by the addresses in a table, and its place there."""
    for lane in range(kind.count if isinstance(kind, Lanes) else 1):
        words = builder.inttoptr(table, WORD.as_pointer())
        address = builder.load(builder.gep(words, [WORD(lane)]))
        yield lane, _place(builder, types.float64, address, index)


@lowered(lambda table, index, like: like)
def gathered(context, builder, sig, args):
    """What stands at a place behind the address of each lane."""
    kind = sig.return_type
    found = ir.Constant(_native(kind), ir.Undefined)
    for lane, place in _each(builder, kind, *args[:2]):
        number = builder.load(place, align=8)
        if not isinstance(kind, Lanes):
            return number
        found = builder.insert_element(found, number, ir.IntType(32)(lane))
    return found


@lowered(lambda table, index, value: types.void)
def scattered(context, builder, sig, args):
    kind = sig.args[2]
    for lane, place in _each(builder, kind, *args[:2]):
        number = args[2]
        if isinstance(kind, Lanes):
            number = builder.extract_element(number, ir.IntType(32)(lane))
        builder.store(number, place, align=8)
    return context.get_dummy_value()


def _transposed(builder: Any, lines: list[Any], m: int) -> list[Any]:
    """Squares of m by m, which stand beside each other in m lines: blocks of one number off the
    diagonal change places, then blocks of two, of four."""
    count, block = lines[0].type.count, 1
    while block < m:
        for r in range(m):
            if r & block:
                continue
            one, other = lines[r], lines[r + block]
            upper = [count + c - block if c & block else c for c in range(count)]
            lower = [count + c if c & block else c + block for c in range(count)]
            lines[r] = _shuffled(builder, one, other, upper)
            lines[r + block] = _shuffled(builder, one, other, lower)
        block *= 2
    return lines


def _joined_ends(builder: Any, parts: list[Any]) -> Any:
    """Vectors one after another, in one."""
    while len(parts) > 1:
        every = list(range(2 * parts[0].type.count))
        parts = [
            _shuffled(builder, a, b, every) for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _copied(builder: Any, source: Any, into: Any, m: int) -> None:
    """Copy m numbers, at most four at a time: where nothing else takes wide registers, these would
    only slow the processor down."""
    size = min(m, 4)
    kind = ir.VectorType(NUMBER, size).as_pointer()
    for first in range(0, m, size):
        found, place = (builder.gep(side, [WORD(first)]) for side in (source, into))
        part = builder.load(builder.bitcast(found, kind), align=8)
        builder.store(part, builder.bitcast(place, kind), align=8)


def _turn_in(builder: Any, own: list[Any], lanes: list[Any]) -> None:
    """Put as many numbers of each lane as there are places for lanes there."""
    m = len(lanes)
    short = ir.VectorType(NUMBER, m).as_pointer()
    lines = [builder.load(builder.bitcast(place, short), align=8) for place in own]
    lines = [_joined_ends(builder, lines[r::m]) for r in range(m)]
    for line, place in zip(_transposed(builder, lines, m), lanes, strict=True):
        builder.store(line, place, align=8)


def _turn_out(builder: Any, lanes: list[Any], own: list[Any]) -> None:
    """The way back."""
    m = len(lanes)
    short = ir.VectorType(NUMBER, m).as_pointer()
    lines = _transposed(builder, [builder.load(place, align=8) for place in lanes], m)
    for lane, place in enumerate(own):
        line, begin = lines[lane % m], lane - lane % m
        part = _shuffled(builder, line, line, list(range(begin, begin + m)))
        builder.store(part, builder.bitcast(place, short), align=8)


def _tile(m: int, *, out: bool) -> Any:
    """Of each lane m numbers from a place on behind its address, into lanes one after another; or
    the way back. With fewer lanes than m, by as many numbers at a time."""

    @lowered(lambda table, index, address, like: types.void)
    def tile(context, builder, sig, args):
        kind, numbers = sig.args[3], NUMBER.as_pointer()
        places = [place for _, place in _each(builder, kind, *args[:2])]
        if not isinstance(kind, Lanes):
            lanes = builder.inttoptr(args[2], numbers)
            _copied(builder, *((lanes, places[0]) if out else (places[0], lanes)), m)
            return context.get_dummy_value()
        side = min(m, kind.count)
        for first in range(0, m, side):
            own = [builder.gep(place, [WORD(first)]) for place in places]
            lanes = [_place(builder, kind, args[2], WORD(first + r)) for r in range(side)]
            if out:
                _turn_out(builder, lanes, own)
            else:
                _turn_in(builder, own, lanes)
        return context.get_dummy_value()

    return tile


@lowered(lambda flags, others: flags)
def unless(context, builder, sig, args):
    """Where a flag is set and the other is not."""
    return builder.and_(args[0], builder.not_(args[1]))


@lowered(lambda number, like: like)
def spread(context, builder, sig, args):
    """A number in each of the lanes that `like` has."""
    return _spread(builder, args[0], sig.args[0], sig.return_type)


def _zeros(count: int) -> Any:
    native = ir.VectorType(NUMBER, count)
    zeros = ir.Constant(native, [NUMBER(0.0)] * count)
    return lowered(lambda: Lanes(count))(lambda context, builder, sig, args: zeros)


@lowered(lambda four: types.float64)
def fourfold(context, builder, sig, args):
    """The sum of four lanes, by halves: (0 + 2) + (1 + 3); of eight, k + 4 is added to k before."""
    lanes = args[0]
    if sig.args[0].count == 8:
        ends = (_shuffled(builder, lanes, lanes, list(part)) for part in HALVES)
        lanes = builder.fadd(*ends)
    four = (builder.extract_element(lanes, ir.IntType(32)(k)) for k in range(4))
    return _by_halves(builder, *four)


def _by_halves(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))


# A sum in four parts, of every fourth term each, that take turns


@lowered(lambda first: types.UniTuple(first, 4))
def parts_from(context, builder, sig, args):
    zero = _spread(builder, NUMBER(0.0), types.float64, sig.args[0])
    return context.make_tuple(builder, sig.return_type, [args[0], zero, zero, zero])


@lowered(lambda parts, a, b: parts)
def turned(context, builder, sig, args):
    first, *others = cgutils.unpack_tuple(builder, args[0], 4)
    last = _fused(builder, args[1], args[2], first)
    return context.make_tuple(builder, sig.return_type, [*others, last])


@lowered(lambda parts: parts.dtype)
def joined(context, builder, sig, args):
    return _by_halves(builder, *cgutils.unpack_tuple(builder, args[0], 4))


@lowered(lambda like: types.intp)
def width(context, builder, sig, args):
    kind = sig.args[0]
    return ir.IntType(64)(kind.count if isinstance(kind, Lanes) else 1)


@lowered(lambda: types.intp)
def room(context, builder, sig, args):
    return WORD(machine.room())


@lowered(lambda number: types.intp)
def hidden(context, builder, sig, args):
    kind = ir.FunctionType(args[0].type, [args[0].type])
    return builder.asm(kind, "", "=r,0", [args[0]], side_effect=False)


SPECIALS = {
    "lane_at": lane_at,
    "put_lane": put_lane,
    "gathered": gathered,
    "scattered": scattered,
    "gathered_8": _tile(8, out=False),
    "gathered_4": _tile(4, out=False),
    "gathered_2": _tile(2, out=False),
    "scattered_8": _tile(8, out=True),
    "scattered_4": _tile(4, out=True),
    "scattered_2": _tile(2, out=True),
    "thirds": thirds,
    "put_thirds": put_thirds,
    "spread": spread,
    "four": _zeros(4),
    "eight": _zeros(8),
    "abreast": _zeros(machine.abreast()),
    "fused": _pointwise(3, _fused),
    "without": _pointwise(3, _without),
    "larger": _pointwise(2, _beyond(">", "maximum")),
    "smaller": _pointwise(2, _beyond("<", "minimum")),
    "length": _pointwise(1, lambda builder, a: _call(builder, "fabs", a)),
    "chosen": chosen,
    "anywhere": anywhere,
    "unless": unless,
    "fourfold": fourfold,
    "parts_from": parts_from,
    "turned": turned,
    "joined": joined,
    "hidden": hidden,
    "width": width,
    "room": room,
}
