"""From marked functions to object code, by Numba.

Of Numba only this module knows. A kernel is compiled to text for LLVM, which a few lines turn into
what CPython calls; :mod:`coldq.compiled.machine` makes object code of that. The same code is then
run as would be found in the cache.
"""

# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils, config
from numba.core.compiler_lock import global_compiler_lock

from coldq.compiled import builtin, calls, lanes, machine
from coldq.compiled.kernel import PART, Kernel, Special, names_of, no_collection
from coldq.compiled.memory import WORD, Memory, address_of, intrinsic_of, lowered, memory_at, packed

# Nobody calls a part of a kernel from outside, so none needs wrappers, which take long to compile.
# No memory is allocated either: without Numba's memory runtime a kernel needs nothing of Numba.
SPARE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
WAY_IN = types.intp(types.intp, types.intp, types.intp)  # (self, arguments, count) to an object
RUN = types.float64(types.intp, types.intp)  # (sizes, at) to a number
CALL = types.intp(types.intp)  # table to an object
FOUR = types.intp(types.intp, types.intp, types.intp, types.intp)  # to an object

GATE = """
declare i32 @"{inner}"(ptr, ptr, {kinds})
define {result} @{entry}({parameters}) {{
  %place = alloca {result}
  %trouble = alloca ptr
  %status = call i32 @"{inner}"(ptr %place, ptr %trouble, {parameters})
  %found = load {result}, ptr %place
  ret {result} %found
}}
"""


def roomy(function: Any) -> Any:
    """Let a function begin a piece of CPython's stack in which all that it calls has room.

    CPython takes memory for frames of calls in pieces of 16 KB, each when a call is the first that
    does not fit and only until it returns: a loop whose calls do not fit asks the system for
    memory every time. A frame that needs much gets a piece of 1 MB, of which this leaves a half.
    """
    function.__code__ = function.__code__.replace(co_stacksize=2**16)
    return function


@contextmanager
def compiling() -> Iterator[None]:
    """Numba at work, whatever ``NUMBA_DISABLE_JIT`` says: plain Python cannot run kernels."""
    with no_collection(), global_compiler_lock:
        config.reload_config()  # as the compiler would, in the midst of its work
        settings = config.__dict__
        asked, settings["DISABLE_JIT"] = settings["DISABLE_JIT"], 0
        try:
            yield
        finally:
            settings["DISABLE_JIT"] = asked


@roomy
def object_code(kernel: Kernel) -> bytes:
    """A kernel's object code."""
    # Only here: a Numba to come that lacks what this needs can still compile in memory.
    from coldq.compiled.passes import Passes, text_alone

    options: dict[str, Any] = {"error_model": "numpy", "pipeline_class": Passes, **SPARE}
    with compiling():
        kind, entry = Linker(options).entry(kernel)
        with text_alone():
            made = njit(kind, **options)(entry)
            whole = made.overloads[made.signatures[0]]
            whole.library.finalize()
        whole.library._optimize_final_module()
    gate = GATE.format(
        entry=machine.ENTRY, inner=whole.fndesc.llvm_func_name,
        result="double" if kind is RUN else "i64",
        kinds=", ".join(["i64"] * len(kind.args)),
        parameters=", ".join(f"i64 %a{k}" for k in range(len(kind.args))),
    )  # fmt: skip
    return machine.emit(whole.library._final_module, gate)


def in_memory(kernel: Kernel) -> int:
    """The address of a kernel's code by Numba's public means alone, which leave nothing to keep."""
    options: dict[str, Any] = {"error_model": "numpy"}
    with compiling():
        kind, entry = Linker(options).entry(kernel)
        made = cfunc(kind, **options)(entry)
        return machine.keep(made.address or 0, made)


_shared: dict[Any, Any] = {}  # what several kernels call is compiled once in a process


class Linker:
    """Puts compiled functions in the place of marked ones."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def entry(self, kernel: Kernel) -> tuple[Any, FunctionType]:
        """What is to be compiled for a kernel, and its type."""
        if kernel.layout:
            return RUN, self.batch_entry(kernel)
        if kernel.signature:
            return CALL, self.single_entry(kernel)
        return WAY_IN, self.linked(kernel.function)

    def batch_entry(self, kernel: Kernel) -> FunctionType:
        lines, dimensions, _ = calls.layout_of(kernel)
        operands = len(lines) + 1  # and memory to work in
        parts = {**SPECIALS, "body": self.resolved(kernel.function)}
        return defined(
            "run", "sizes, at", f"body(words(sizes, {dimensions}), words(at, {operands}))", parts
        )

    def single_entry(self, kernel: Kernel) -> FunctionType:
        body, arguments = self.resolved(kernel.function), _arguments(kernel.signature)
        parts = {**SPECIALS, "body": body, "arguments": arguments}
        return defined("enter", "table", "boxed(body(*arguments(table)))", parts)

    def linked(self, function: Any, **given: Any) -> FunctionType:
        """The function with what its names stand for in compiled code, and the names `given`."""
        namespace: dict[str, Any] = {"__name__": function.__module__, "__builtins__": __builtins__}
        for name in names_of(function.__code__):
            if name in function.__globals__:
                namespace[name] = self.resolved(function.__globals__[name])
        others = {name: f"{name} in kernels" for name in builtin.INSTEAD if name not in namespace}
        namespace |= {other: builtin.INSTEAD[name] for name, other in others.items()}
        code = function.__code__
        code = code.replace(co_names=tuple(others.get(name, name) for name in code.co_names))
        made = FunctionType(code, {**namespace, **given}, function.__name__)
        made.__qualname__, made.__defaults__ = PART + function.__qualname__, function.__defaults__
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


def defined(name: str, arguments: str, value: str, parts: dict[str, Any]) -> FunctionType:
    """A function of one line."""
    exec(f"def {name}({arguments}): return {value}", parts)
    parts[name].__qualname__ = PART + name
    return parts[name]


# Code and memory by their addresses


@lowered(lambda: types.intp)
def stack(context, builder, sig, args):
    """The address of memory that lasts until the function that asks for it returns."""
    return builder.ptrtoint(cgutils.alloca_once(builder, WORD, size=calls.LOCAL_WORDS), WORD)


def _arguments(signature: str) -> Any:
    """How the arguments of a call are read from its table: of each the address, and where its
    lengths are."""
    kinds: list[Any] = []
    for kind, axes in (calls.KINDS[letter] for letter in signature):
        number = types.int64 if kind in (calls.WHOLE_ARRAY, calls.WHOLE) else types.float64
        kinds.append(Memory(number, axes) if axes else number)
    whole = types.Tuple(kinds)

    @lowered(lambda table: whole)
    def arguments(context, builder, sig, args):
        def word(address, place):
            words = builder.inttoptr(address, WORD.as_pointer())
            return builder.load(builder.gep(words, [WORD(place)]))

        def read(kind, line):
            number, axes = (kind.number, kind.axes) if isinstance(kind, Memory) else (kind, 0)
            address = word(args[0], line)
            data = builder.inttoptr(address, context.get_data_type(number).as_pointer())
            if not axes:
                return builder.load(data)
            lengths = word(args[0], line + 2)
            return packed(context, builder, kind, data, [word(lengths, k) for k in range(axes)])

        values = [read(kind, o * calls.FIELDS) for o, kind in enumerate(kinds)]
        return context.make_tuple(builder, whole, values)

    return arguments


def _code_at(kind: Any) -> Any:
    """How to call code by its address."""
    n = len(kind.args)

    def codegen(context, builder, signature, args):
        result = context.get_value_type(signature.return_type)
        code = ir.FunctionType(result, [WORD] * n).as_pointer()
        return builder.call(builder.inttoptr(args[0], code), args[1:])

    whole = kind.return_type(types.intp, *kind.args)
    return intrinsic_of(1 + n, lambda *kinds: (whole, codegen))


# Exact arithmetic

SPLITTER = 134217729.0  # 2^27 + 1: cuts a float into two halves whose products are exact


@lowered(lambda a, b, rounded: types.float64)
def below(context, builder, sig, args):
    """What rounding took from a product; both ways give it exactly."""
    a, b, rounded = args
    if machine.fuses():
        return builder.fma(a, b, builder.fneg(rounded))
    (a, a_rest), (b, b_rest) = (_halves(builder, part) for part in (a, b))
    left = builder.fsub(builder.fmul(a, b), rounded)
    for one, other in ((a, b_rest), (a_rest, b), (a_rest, b_rest)):
        left = builder.fadd(left, builder.fmul(one, other))
    return left


def _halves(builder: Any, number: Any) -> tuple[Any, Any]:
    long = builder.fmul(number, ir.Constant(number.type, SPLITTER))
    half = builder.fsub(long, builder.fsub(long, number))
    return half, builder.fsub(number, half)


# Objects of Python's


def _number_of(kind: Any, name: str) -> Any:
    @lowered(lambda given: types.Tuple((kind, types.boolean)))
    def number_of(context, builder, sig, args):
        pyapi = context.get_python_api(builder)
        native = context.get_value_type(kind)
        read = pyapi._get_function(ir.FunctionType(native, [pyapi.pyobj]), name)
        value = builder.call(read, [builder.inttoptr(args[0], pyapi.pyobj)])
        failed = cgutils.is_not_null(builder, pyapi.err_occurred())
        with builder.if_then(failed, likely=False):
            pyapi.err_clear()
        return context.make_tuple(builder, sig.return_type, [value, builder.not_(failed)])

    return number_of


@lowered(lambda value: types.intp)
def boxed(context, builder, sig, args):
    made = context.get_python_api(builder).from_native_value(sig.args[0], args[0])
    return builder.ptrtoint(made, WORD)


@lowered(lambda given: types.void)
def dropped(context, builder, sig, args):
    pyapi = context.get_python_api(builder)
    pyapi.decref(builder.inttoptr(args[0], pyapi.pyobj))
    return context.get_dummy_value()


@lowered(lambda given, name, value: types.boolean)
def set_field(context, builder, sig, args):
    """As ``object.__setattr__`` does; where it fails, Python knows why."""
    kind = ir.FunctionType(ir.IntType(32), [WORD] * 3)
    put = context.get_python_api(builder)._get_function(kind, "PyObject_GenericSetAttr")
    return builder.icmp_signed("==", builder.call(put, args), ir.Constant(ir.IntType(32), 0))


@lowered(lambda: types.intp)
def refused(context, builder, sig, args):
    kind = ir.FunctionType(ir.IntType(32), [])
    builder.call(context.get_python_api(builder)._get_function(kind, "PyErr_BadArgument"), [])
    return ir.Constant(WORD, 0)


@lowered(lambda: types.intp)
def release(context, builder, sig, args):
    return builder.ptrtoint(context.get_python_api(builder).save_thread(), WORD)


@lowered(lambda state: types.void)
def restore(context, builder, sig, args):
    pyapi = context.get_python_api(builder)
    pyapi.restore_thread(builder.inttoptr(args[0], pyapi.voidptr))
    return context.get_dummy_value()


SPECIALS = {
    **lanes.SPECIALS,
    "vector": memory_at(types.float64, 1),
    "matrix": memory_at(types.float64, 2),
    "cube": memory_at(types.float64, 3),
    "pairs": memory_at(types.complex128, 2),
    "words": memory_at(types.int64, 1),
    "table_at": memory_at(types.int64, 2),
    "address_of": address_of,
    "below": below,
    "stack": stack,
    "run_at": _code_at(RUN),
    "call_at": _code_at(CALL),
    "object_at": _code_at(FOUR),
    "float_of": _number_of(types.float64, "PyFloat_AsDouble"),
    "integer_of": _number_of(types.int64, "PyLong_AsLongLong"),
    "boxed": boxed,
    "dropped": dropped,
    "set_field": set_field,
    "refused": refused,
    "release": release,
    "restore": restore,
}
