"""From marked functions to object code, by Numba.

Of Numba only this module knows. A kernel is compiled to text for LLVM, which a few lines turn into
what CPython calls; :mod:`coldq.compiled.machine` makes object code of that. The same code is then
run as would be found in the cache.
"""

# pyright: reportCallIssue=false, reportPrivateImportUsage=false
# (Numba gives an intrinsic another signature than its definition has.)

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from coldq.compiled import calls, machine
from coldq.compiled.kernel import Kernel, Special, names_of

# Nobody calls a part of a kernel from outside, so none needs wrappers, which take long to compile.
# No memory is allocated either: without Numba's memory runtime a kernel needs nothing of Numba.
SPARE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
ENTRY = "coldq_kernel"
WORD = ir.IntType(64)
GATE_TYPE = types.intp(types.intp, types.intp, types.intp)

GATE = """
define i64 @{entry}(i64 %kind, i64 %args, i64 %count) {{
  %object = alloca i64
  %trouble = alloca ptr
  %status = call i32 @"{inner}"(ptr %object, ptr %trouble, i64 %kind, i64 %args, i64 %count)
  %found = load i64, ptr %object
  ret i64 %found
}}
"""


def object_code(kernel: Kernel) -> tuple[bytes, str]:
    """A kernel's object code, and the name of its entry."""
    options: dict[str, Any] = {"error_model": "numpy", **SPARE}
    with no_collection(), global_compiler_lock, text_alone():
        made = njit(GATE_TYPE, **options)(Linker(options).entry(kernel))
        whole = made.overloads[made.signatures[0]]
        whole.library.finalize()
        text = whole.library.get_llvm_str()
    return machine.emit(text + GATE.format(entry=ENTRY, inner=whole.fndesc.llvm_func_name)), ENTRY


@contextmanager
def text_alone() -> Iterator[None]:
    """Keep Numba from making machine code of each of a kernel's parts, which nobody would run.

    That would take almost half of the time. Its lock is held, so that nobody else is kept from it.
    """
    parts = ((JITCPUCodegen, "_add_module"), (CPUContext, "get_executable"))
    before = [(kind, name, getattr(kind, name)) for kind, name in parts]
    JITCPUCodegen._add_module = lambda self, module: None
    CPUContext.get_executable = lambda self, library, fndesc, env: [].append  # any, but its own
    try:
        yield
    finally:
        for kind, name, own in before:
            setattr(kind, name, own)


def in_memory(kernel: Kernel) -> Callable[..., Any]:
    """The kernel's function by Numba's public means alone, which leave nothing to keep."""
    options: dict[str, Any] = {"error_model": "numpy"}
    with no_collection():
        made = cfunc(GATE_TYPE, **options)(Linker(options).entry(kernel))
        return machine.function_at(kernel.name, made.address or 0, made)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the garbage collector: the compiler makes much and drops little."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


_shared: dict[Any, Any] = {}  # what several kernels call is compiled once in a process


class Linker:
    """Puts compiled functions in the place of marked ones."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def entry(self, kernel: Kernel) -> FunctionType:
        """Python's way into a kernel."""
        return batch_entry(self, kernel) if kernel.layout else single_entry(self, kernel)

    def linked(self, function: Any, **given: Any) -> FunctionType:
        """The function with what its names stand for in compiled code, and the names `given`."""
        namespace: dict[str, Any] = {"__name__": function.__module__, "__builtins__": __builtins__}
        for name in names_of(function.__code__):
            if name in function.__globals__:
                namespace[name] = self.resolved(function.__globals__[name])
        made = FunctionType(function.__code__, {**namespace, **given}, function.__name__)
        made.__qualname__, made.__defaults__ = function.__qualname__, function.__defaults__
        return made

    def resolved(self, value: Any) -> Any:
        """What a value becomes in compiled code."""
        if isinstance(value, Special):
            return SPECIALS.get(value.name)
        if not hasattr(value, "compiled_with"):
            return value
        known = value, len(self.options)
        if known not in _shared:
            options = {**self.options, **value.compiled_with}
            if "fastmath" in options:
                options["fastmath"] = set(options["fastmath"])
            _shared[known] = njit(**options)(self.linked(value))
        return _shared[known]


def batch_entry(linker: Linker, kernel: Kernel) -> FunctionType:
    """:func:`coldq.compiled.calls.enter_batch` for a kernel's layout."""
    lines, first_out, names = [], 0, dict[str, int]()
    inputs, outputs = kernel.layout.replace(" ", "").split("->")
    operands = [re.findall(r"\(([^)]*)\)(\??)", side) for side in (inputs, outputs)]
    first_out = len(operands[0])
    for axes, _ in [*operands[0], *operands[1]]:
        for name in filter(None, axes.split(",")):
            names.setdefault(name.rstrip("*"), len(names))
    slots = len(names)
    for axes, optional in [*operands[0], *operands[1]]:
        line = [0, int(optional == "?"), 0, 0, 0, -1, -1, -1]
        for c, name in enumerate(filter(None, axes.split(","))):
            line[calls.CORES] += 1
            line[calls.NAMES + c] = names[name.rstrip("*")]
            if name.endswith("*"):
                line[calls.SLOTS + c] = slots
                slots += 1
        lines.append(line)
    n = len(lines)
    return linker.linked(
        calls.enter_batch, body=linker.resolved(kernel.function), LAYOUT=np.array(lines, np.int64),
        OPERANDS=n, FIRST_OUT=first_out, DIMENSIONS=slots,
        stack=stack_of(calls.local_words(n, slots) + calls.STACK),
    )  # fmt: skip


def single_entry(linker: Linker, kernel: Kernel) -> FunctionType:
    """:func:`coldq.compiled.calls.enter_once` for a kernel's signature."""
    n, parts = len(kernel.signature), {**SPECIALS, "body": linker.resolved(kernel.function)}
    values = ", ".join(ARGUMENTS[kind].format(o=o) for o, kind in enumerate(kernel.signature))
    exec(f"def call(table): return body({values})", parts)
    layout = [calls.KINDS[kind] for kind in kernel.signature]
    return linker.linked(
        calls.enter_once, call=njit(**linker.options)(parts["call"]), OPERANDS=n,
        LAYOUT=np.array(layout, np.int64), stack=stack_of(n * (calls.FIELDS + 1)),
    )  # fmt: skip


# How an argument is made of its line in the table: its address, and where its lengths are.
ARGUMENTS = {
    "V": "vector(table[{o}, 0], words(table[{o}, 2], 1)[0])",
    "M": "matrix(table[{o}, 0], words(table[{o}, 2], 2)[0], words(table[{o}, 2], 2)[1])",
    "I": "words(table[{o}, 0], words(table[{o}, 2], 1)[0])",
    "f": "vector(table[{o}, 0], 1)[0]",
    "i": "words(table[{o}, 0], 1)[0]",
}


# Pointers and arrays


def _array_at(number: Any, axes: int) -> Any:
    """How to see memory at an address as an array; it belongs to somebody else."""

    def codegen(context, builder, signature, args):
        kind = signature.return_type
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(args[0], context.get_data_type(number).as_pointer())
        steps = [ir.Constant(WORD, 8)]
        for length in args[:1:-1]:
            steps.insert(0, builder.mul(steps[0], length))
        populate_array(array, data, args[1:], steps, ir.Constant(WORD, 8), None)
        return array._getvalue()

    kind = types.Array(number, axes, "C")
    lengths = (types.intp,) * axes
    if axes == 1:
        return intrinsic(lambda context, address, n: (kind(types.intp, *lengths), codegen))
    if axes == 2:
        return intrinsic(lambda context, address, n, p: (kind(types.intp, *lengths), codegen))
    return intrinsic(lambda context, address, m, n, p: (kind(types.intp, *lengths), codegen))


@intrinsic
def address_of(typingctx, array, offset):
    """The address of an array's entry: passing descriptors of arrays by value costs far more."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(builder.gep(data, [args[1]]), WORD)

    return types.intp(array, types.intp), codegen


def stack_of(count: int) -> Any:
    """So many numbers of memory that last until the function that asks for them returns."""

    @intrinsic
    def stack(typingctx):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):
            return builder.ptrtoint(cgutils.alloca_once(builder, WORD, size=count), WORD)

        return types.intp(), codegen

    return stack


# Objects of Python's


def _number_of(kind: Any, name: str) -> Any:
    @intrinsic
    def number_of(typingctx, given):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):
            pyapi = context.get_python_api(builder)
            native = context.get_value_type(kind)
            read = pyapi._get_function(ir.FunctionType(native, [pyapi.pyobj]), name)
            value = builder.call(read, [builder.inttoptr(args[0], pyapi.pyobj)])
            failed = cgutils.is_not_null(builder, pyapi.err_occurred())
            with builder.if_then(failed, likely=False):
                pyapi.err_clear()
            return context.make_tuple(builder, signature.return_type, [value, builder.not_(failed)])

        return types.Tuple((kind, types.boolean))(types.intp), codegen

    return number_of


@intrinsic
def boxed(typingctx, value):
    def codegen(context, builder, signature, args):
        made = context.get_python_api(builder).from_native_value(signature.args[0], args[0])
        return builder.ptrtoint(made, WORD)

    return types.intp(value), codegen


@intrinsic
def refused(typingctx):
    def codegen(context, builder, signature, args):
        pyapi = context.get_python_api(builder)
        refuse = pyapi._get_function(ir.FunctionType(ir.IntType(32), []), "PyErr_BadArgument")
        builder.call(refuse, [])
        return ir.Constant(WORD, 0)

    return types.intp(), codegen


@intrinsic
def release(typingctx):
    def codegen(context, builder, signature, args):
        return builder.ptrtoint(context.get_python_api(builder).save_thread(), WORD)

    return types.intp(), codegen


@intrinsic
def restore(typingctx, state):
    def codegen(context, builder, signature, args):
        pyapi = context.get_python_api(builder)
        pyapi.restore_thread(builder.inttoptr(args[0], pyapi.voidptr))
        return context.get_dummy_value()

    return types.void(types.intp), codegen


SPECIALS = {
    "vector": _array_at(types.float64, 1),
    "matrix": _array_at(types.float64, 2),
    "cube": _array_at(types.float64, 3),
    "words": _array_at(types.int64, 1),
    "table_at": _array_at(types.int64, 2),
    "address_of": address_of,
    "float_of": _number_of(types.float64, "PyFloat_AsDouble"),
    "integer_of": _number_of(types.int64, "PyLong_AsLongLong"),
    "boxed": boxed,
    "refused": refused,
    "release": release,
    "restore": restore,
}
