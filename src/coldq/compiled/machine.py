"""Object code made callable: the processor it is for, and the way from bytes to a function.

Only llvmlite is needed here, not Numba: a process that finds its kernels in the cache starts
without the compiler. Every kernel is linked into a library of its own, so that no two can take
each other's symbols. Python calls it through a built-in function with CPython's fast convention,
``way_in(self, arguments, count)``, where `self` is an array of whole numbers that leads on.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from coldq.errors import Error

ENTRY = "coldq_kernel"  # where the object code of every kernel begins
METH_FASTCALL = 0x0080
HEAD = object.__basicsize__ // 8  # words before an object's own; the last of them is its type


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def llvm() -> Any:
    """llvmlite, ready to make and to load code for this machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def processor() -> tuple[str, str, str]:
    """Triple, name and features of the processor that kernels are compiled for.

    ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` count, as they do for Numba, which optimises.
    """
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        try:
            features = llvm().get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM does not know this system's
            features = ""
    return llvm().get_process_triple(), name or llvm().get_host_cpu_name(), features


@cache
def is_arm() -> bool:
    return processor()[0].startswith(("aarch64", "arm64"))


@cache
def fuses() -> bool:
    """Whether the processor multiplies and adds with one rounding, without a call."""
    return "+fma" in processor()[2].split(",") or is_arm()


@cache
def registers() -> tuple[int, int]:
    """How many registers the processor has for several numbers, and how many each of them holds."""
    features = processor()[2].split(",")
    if "+avx512f" in features:
        return 32, 8
    if is_arm():
        return 32, 2
    return 16, 4 if "+avx" in features else 2


def room() -> int:
    """How many numbers all of these registers hold at once."""
    count, each = registers()
    return count * each


def abreast() -> int:
    """How many instances a kernel solves side by side: as many as a register holds.

    Those beside each other go on until the last of them ends, and where each number takes several
    registers there are soon too few of these.
    """
    return registers()[1]


@cache
def target() -> Any:
    """What emits machine code; the options are those that code loaded anywhere in memory needs."""
    triple, name, features = processor()
    relocation = "static" if platform.machine().lower() in ("x86_64", "amd64") else "default"
    return llvm().Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=3, reloc=relocation, codemodel="jitdefault", jit=True
    )  # fmt: skip


def emit(module: Any, gate: str) -> bytes:
    """The object code of a module with a gate in front, which is given as text."""
    entry = llvm().parse_assembly(gate)
    entry.triple, entry.data_layout = module.triple, module.data_layout
    module.link_in(entry)
    module.verify()
    return target().emit_object(module)


@cache
def _linker() -> Any:
    # Code for ARM finds Python's None by a table at most 4 GB away, and LLVM's older linker ends
    # the process where memory for that was further off. JITLink has both in one piece.
    return llvm().create_lljit_compiler(use_jit_link=is_arm())


_count = itertools.count()  # libraries need names of their own
_kept: list[Any] = []  # a function lives as long as the process, and so must what it is made of


def load(name: str, code: bytes) -> int:
    """The address of object code's entry; raises RuntimeError if a name it needs is missing."""
    builder = llvm().JITLibraryBuilder()
    library = (
        builder.add_object_img(code)
        .add_current_process()
        .export_symbol(ENTRY)
        .link(_linker(), f"{name}-{next(_count)}")
    )
    return keep(library[ENTRY], library)


def keep(address: int, owner: Any) -> int:
    """The address of code that stays in memory until the process ends."""
    _kept.append(owner)
    return address


def code_in_numpy(place: int) -> int:
    """The address of a function of NumPy's C API, by its place there, the same in 1.x and 2.x."""
    core = "core" if np.__version__.startswith("1.") else "_core"
    table = import_module(f"numpy.{core}._multiarray_umath")._ARRAY_API
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    begin = kind(("PyCapsule_GetPointer", ctypes.pythonapi))(table, None)
    return (ctypes.c_size_t * (place + 1)).from_address(begin)[place]


def function(name: str, address: int, card: Any) -> Callable[..., Any]:
    """What CPython calls at an address; its `self` is the card."""
    require_layout()
    method = _Method(name.encode(), address, METH_FASTCALL, b"A compiled kernel of coldq.")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    _kept.append(method)
    return make(ctypes.addressof(method), card, None)


@cache
def require_layout() -> None:
    """Raise if NumPy's arrays do not lie in memory as kernels read them."""
    sample = np.arange(6.0).reshape(2, 3)
    words = (ctypes.c_int64 * (HEAD + 7)).from_address(id(sample))
    dims, steps = ((ctypes.c_int64 * 2).from_address(words[HEAD + k]) for k in (2, 3))
    kind = (ctypes.c_int64 * (HEAD + 2)).from_address(words[HEAD + 5])[HEAD + 1]
    known = (
        words[HEAD - 1] == id(np.ndarray)
        and words[HEAD] == sample.ctypes.data
        and words[HEAD + 1] & 0xFFFFFFFF == 2
        and (dims[0], dims[1], steps[0], steps[1]) == (2, 3, 24, 8)
        and words[HEAD + 5] == id(sample.dtype)
        and kind & 0xFFFFFF == 0x3D6466  # 'f', 'd' and '='
        and kind >> 32 == sample.dtype.num
        and words[HEAD + 6] & 0x0101 == 0x0101  # C-contiguous and aligned
    )
    if not (known and sys.byteorder == "little"):
        raise Error(
            f"coldq reads arrays as NumPy 1.26 to 2 lays them out on 64-bit little-endian systems, "
            f"but NumPy {np.__version__} on this system does not do so"
        )
