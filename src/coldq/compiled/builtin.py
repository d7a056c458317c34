"""What `range`, `max` and `min` are in kernels, where they are about numbers alone.

Numba's own `range` works out ahead how many rounds there are, by a division, and its `max` takes
arrays and tuples too: many instructions for LLVM to take away again.
"""

# pyright: reportOptionalCall=false, reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from coldq.compiled.memory import WORD


def count(start: int, stop: int = 0, step: int = 1) -> range:
    """Stands for `range` in compiled code; a step must be written where it is called."""
    raise NotImplementedError


def largest(first: float, *others: float) -> float:
    """Stands for `max`."""
    raise NotImplementedError


def smallest(first: float, *others: float) -> float:
    """Stands for `min`."""
    raise NotImplementedError


# Numba lets nobody define `range` anew, so they have other names there.
INSTEAD: dict[str, Callable[..., Any]] = {"range": count, "max": largest, "min": smallest}


class Count(types.SimpleIteratorType):
    """Whole numbers, `step` apart."""

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(f"count({step})", types.intp)


@register_model(Count)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Count) -> None:
        place = types.CPointer(types.intp)
        super().__init__(manager, kind, [("place", place), ("stop", types.intp)])


@infer_global(count)
class _Counted(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        step = getattr(args[2], "literal_value", None) if len(args) == 3 else 1
        if not step:
            raise TypingError("the step of a range in a kernel is a number written there, not 0")
        return signature(Count(step), *(types.intp,) * len(args))


@lower_builtin(count, types.VarArg(types.intp))
def _begin(context, builder, sig, args):
    start, stop = (WORD(0), args[0]) if len(args) == 1 else args[:2]
    place = cgutils.alloca_once(builder, WORD)
    builder.store(start, place)
    made = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
    return builder.insert_value(builder.insert_value(made, place, 0), stop, 1)


@lower_builtin("getiter", Count)
def _itself(context, builder, sig, args):
    return args[0]


@lower_builtin("iternext", Count)
def _next(context, builder, sig, args):
    place, stop = (builder.extract_value(args[0], k) for k in range(2))
    step, now = sig.args[0].step, builder.load(place)
    more = builder.icmp_signed("<" if step > 0 else ">", now, stop)
    builder.store(builder.add(now, WORD(step)), place)
    pair = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
    return builder.insert_value(builder.insert_value(pair, now, 0), more, 1)


class _Extreme(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        whole = all(isinstance(kind, types.Integer) for kind in args)
        kind = types.intp if whole else types.float64
        return signature(kind, *(kind,) * len(args))


infer_global(largest)(type("_Largest", (_Extreme,), {}))
infer_global(smallest)(type("_Smallest", (_Extreme,), {}))


def _chosen(sign: str) -> Any:
    """The first of the arguments that no other is beyond; a NaN counts only where it is first."""

    def codegen(context, builder, sig, args):
        compare = builder.icmp_signed if sig.return_type is types.intp else builder.fcmp_ordered
        found = args[0]
        for other in args[1:]:
            found = builder.select(compare(sign, other, found), other, found)
        return found

    return codegen


for _kind in (types.intp, types.float64):
    lower_builtin(largest, types.VarArg(_kind))(_chosen(">"))
    lower_builtin(smallest, types.VarArg(_kind))(_chosen("<"))
