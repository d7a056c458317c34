"""The marks of functions that are compiled, and what is compiled under which key.

A marked function stays what it is. Its *meaning* is its code together with the values of all names
that it uses, other marked functions included, and a kernel's key in the cache is a digest of that
meaning: a change of a callee or of a constant is noticed wherever it lives, and nothing else is.
"""

from __future__ import annotations

import gc
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from coldq._system import in_every_fork
from coldq.compiled import cache

# Reassociation lets sums be vectorised. Every core array is contiguous, so the order of a sum
# depends on its length and the processor alone and a batch that runs this code gives the same bits
# as one instance. NaN and infinity keep their meaning: hard rows have infinite bounds. But a sum
# less itself may be taken for zero, so that ``abs(s) < math.inf`` asks whether one is finite. Other
# code for the same sums, as that of lanes, must be `exact` on both sides.
SAFE_FAST = ("contract", "nsz", "reassoc")
PART = "kernel."  # how the compiler names parts of kernels, and nothing else


def compiled(function: Callable[..., Any]) -> Any:
    """Mark a function that kernels call; its sums may be reordered."""
    return _marked(function, fastmath=SAFE_FAST)


def inlined(function: Callable[..., Any]) -> Any:
    """The same, put into whatever calls it."""
    return _marked(function, fastmath=SAFE_FAST, forceinline=True)


def exact(function: Callable[..., Any]) -> Any:
    """Mark a function that kernels call, whose sums keep their order, whoever calls it."""
    return _marked(function, fastmath=())


def exact_inlined(function: Callable[..., Any]) -> Any:
    """The same, put into whatever calls it."""
    return _marked(function, fastmath=(), forceinline=True)


def _marked(function: Callable[..., Any], **options: Any) -> Any:
    function.compiled_with = options  # type: ignore[attr-defined]
    return function


class Special:
    """What has a meaning in compiled code alone; :mod:`coldq.compiled.compiler` says which."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Special({self.name!r})"


# Memory by its address, as arrays of numbers; and the address of an array's entry.
vector: Any = Special("vector")  # vector(address, n)
matrix: Any = Special("matrix")  # matrix(address, n, p)
cube: Any = Special("cube")  # cube(address, m, n, p)
pairs: Any = Special("pairs")  # pairs(address, n, p): a matrix of complex numbers
address_of: Any = Special("address_of")  # address_of(array, offset)
# What rounding took from a product of two floats: below(a, b, a * b), exactly.
below: Any = Special("below")

# Numbers side by side in the processor's lanes, or one number: a function written with these is
# compiled for what it is called with. Operators and comparisons go lane by lane; & and | join
# flags.
four: Any = Special("four")  # four(): zeros in four lanes
eight: Any = Special("eight")
abreast: Any = Special("abreast")  # as many as suit the processor, at most eight
width: Any = Special("width")  # width(like): how many lanes it has
spread: Any = Special("spread")  # spread(number, like): the number in each lane that `like` has
lane_at: Any = Special("lane_at")  # lane_at(address, i, like): the i-th there, as wide as `like`
put_lane: Any = Special("put_lane")  # put_lane(address, i, value)
# In a table of addresses, one for each lane, what is behind them.
gathered: Any = Special("gathered")  # gathered(table, i, like): the i-th numbers there
scattered: Any = Special("scattered")  # scattered(table, i, value): put them there
# The same of several in a row, which costs far less: gathered_8(table, i, address, like) puts the
# i-th to the i+7-th numbers into eight places after the address; scattered_8 puts them back.
gathered_8: Any = Special("gathered_8")
gathered_4: Any = Special("gathered_4")
gathered_2: Any = Special("gathered_2")
scattered_8: Any = Special("scattered_8")
scattered_4: Any = Special("scattered_4")
scattered_2: Any = Special("scattered_2")
# Numbers that come in threes, one after another: all first ones, all second ones, all third ones.
thirds: Any = Special("thirds")  # thirds(address, like): three of them, as wide as `like`
put_thirds: Any = Special("put_thirds")  # put_thirds(address, first, second, third)
fused: Any = Special("fused")  # fused(a, b, c): a b + c, rounded once where the processor does so
without: Any = Special("without")  # without(a, b, c): c - a b, likewise
# larger(a, b): b if b > a else a; either of them if b is NaN or both are 0.
larger: Any = Special("larger")
smaller: Any = Special("smaller")
length: Any = Special("length")  # length(a): |a|
chosen: Any = Special("chosen")  # chosen(flags, a, b): a where a flag is set, b elsewhere
anywhere: Any = Special("anywhere")  # anywhere(flags): whether one is set
unless: Any = Special("unless")  # unless(flags, others): where one is set and the other is not
fourfold: Any = Special("fourfold")  # the sum of four lanes, (0 + 2) + (1 + 3), or of eight
# A sum in four parts, of every fourth term each, in any lane.
parts_from: Any = Special("parts_from")  # parts_from(first): what the first part begins with
turned: Any = Special("turned")  # turned(parts, a, b): a b in the next part, fused
joined: Any = Special("joined")  # joined(parts): (0 + 2) + (1 + 3), after 4, 8, ... turns
room: Any = Special("room")  # room(): how many numbers the processor's registers hold at once
# hidden(n): a whole number that the compiler does not know, so that it unrolls no loop of n rounds.
hidden: Any = Special("hidden")

_building = threading.RLock()


@in_every_fork
def _forget_lock() -> None:
    """A forked child inherits a lock that a thread it does not have may hold."""
    global _building
    _building = threading.RLock()


class Kernel:
    """A function to be compiled; called without arguments, it gives the compiled one.

    It has a `signature` if it is for one call, a `layout` if it is for a batch; without either it
    is a way into those (:mod:`coldq.compiled.calls`), of which only the code is wanted.
    """

    def __init__(self, function: Any, *, signature: str = "", layout: str = "") -> None:
        self.function, self.signature, self.layout = function, signature, layout
        self.name, self.__doc__ = function.__name__, function.__doc__
        self._built: Any = None
        self._address: int | None = None

    def __call__(self) -> Callable[..., Any]:
        if self._built is None:
            from coldq.compiled import calls

            with _building:
                if self._built is None:
                    self._built = calls.function_of(self)
        return self._built

    def address(self) -> int:
        """That of its machine code, loaded once."""
        if self._address is None:
            self._address = cache.load_or_compile(self)
        return self._address

    def meaning(self) -> bytes:
        """A digest of all that the kernel is compiled from."""
        digest = hashlib.blake2b(repr((self.signature, self.layout)).encode(), digest_size=16)
        for part in _meaning(self.function, set()):
            digest.update(part)
        return digest.digest()

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel for one call.

    `signature` has a letter for each argument: V a vector, M a matrix, I a vector of whole
    numbers, all contiguous, f a number, i a whole number.
    """
    return lambda function: Kernel(exact(function), signature=signature)


def batch_kernel(layout: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Make ``body(sizes, at)`` a kernel that runs over the leading axes of its operands.

    `layout` names the core axes of inputs and outputs, as in ``(n,p),(p)->(n)``. The body gets
    their lengths in the order in which they are named first, and the address of each operand's
    instance; it returns a number, of which the kernel returns the largest, or NaN. The first
    output carries the whole batch; the other operands broadcast to it. Core axes are contiguous,
    but for those marked as in ``(m*)``: their steps, counted in numbers, come after the lengths,
    and are 0 where an operand after the first has a single entry along them, or lacks them.
    An operand marked ``()?`` may be None; its address is then 0. Last comes the address of
    `STACK` numbers to work in.
    """
    return lambda function: Kernel(exact(function), layout=layout)


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


def names_of(code: CodeType) -> Iterator[str]:
    """The names that a function may look up, inner functions included."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from names_of(const)


def _meaning(function: FunctionType, seen: set[int]) -> Iterator[bytes]:
    """The parts of a function's meaning, each function once."""
    if id(function) in seen:
        return
    seen.add(id(function))
    options: dict[str, Any] = function.compiled_with  # type: ignore[attr-defined]
    yield repr((function.__name__, function.__defaults__, sorted(options.items()))).encode()
    yield from _code(function.__code__)
    for name in names_of(function.__code__):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield name.encode()
        if hasattr(value, "compiled_with"):
            yield from _meaning(value, seen)
        elif isinstance(value, np.ndarray):
            yield value.dtype.str.encode() + repr(value.shape).encode() + value.tobytes()
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
        else:
            yield repr(value).encode()


def _code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)).encode()
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _code(const)
        else:
            yield repr(const).encode()
