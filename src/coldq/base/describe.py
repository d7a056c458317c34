"""Values as plain data and back: what files, messages and sweeps hold instead of pickles.

A description is a dictionary with a "type" and the arguments of its constructor. Numbers and short
arrays are written out, all digits of them; longer arrays are base64 of their bytes. JSON writes
all of it. Nothing in a description is executed: types are looked up in a registry, in which a class
is entered by :func:`describable`.

:class:`Encoder` and :class:`Decoder` are the one way from values to data and back. Fingerprints
(:mod:`coldq.learners.fingerprint`) and feedback on disk (:mod:`coldq.agent.encoding`) write arrays
in their own way, and requests (:mod:`coldq.serve.requested`) set limits.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import Parameter
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from coldq.base.arrays import arguments_of, constructor_fields
from coldq.base.errors import InvalidInput, NotSaveable

MAX_WRITTEN_NUMBERS = 64  # of an array; a longer one is written as its bytes
MAX_DEPTH = 32  # objects and lists within one another
MAX_AXES = 32  # of an array
PLAIN_NUMBERS = {float, int}  # types that stay what they are: a list of them is not looked through
# Arguments that ask for memory.
SIZE_ARGUMENTS = dict.fromkeys(("dim", "period", "delay", "shape")).keys()
ARRAY_DTYPES = ("<f8", "<i8", "<i4")  # of the arrays that values are made of
NOT_IN_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers, as words
# Modules that enter their classes when they are imported; a package imports all of its own.
HOME_MODULES = (
    "coldq.slot.constraints",
    "coldq.slot.domains",
    "coldq.slot.losses",
    "coldq.slot.schedules",
    "coldq.problems",
    "coldq.learners",
    "coldq.learners.forecasts",
    "coldq.learners.limit_forecasts",
    "coldq.learners.margins",
    "coldq.learners.networks",
)
DESCRIBABLE_KINDS = (
    "a description holds numbers and words, and coldq's own learners, problems, domains, "
    "schedules, losses, constraints and forecasts"
)
Kind = TypeVar("Kind", bound=Callable[..., Any])
_constructors: dict[str, Callable[..., Any]] = {}
_names: dict[Any, str] = {}


def describable(kind: Kind, name: str | None = None) -> Kind:
    """Enter a class in the registry of what can be described and built again.

    It is built by its constructor, or by its ``_of_parts`` from the same ``_arguments``.
    """
    _names[kind] = name or kind.__name__
    _constructors[_names[kind]] = getattr(kind, "_of_parts", kind)
    return kind


def described_by_parts(kind: Kind) -> Kind:
    """Enter a class that users' functions make: it cannot be built, but the function is named."""
    _names[kind] = kind.__name__
    return kind


@cache
def constructors() -> Mapping[str, Callable[..., Any]]:
    """All that can be built, by the name that it has in a description."""
    for home in HOME_MODULES:
        module = import_module(home)
        for name in getattr(module, "__all__", ()):
            getattr(module, name)
    return _constructors


class Encoder:
    """Values as plain data: numbers, words, lists, and a dictionary with its "type" for an object.

    `root` names the whole in errors. A subclass writes arrays, or what is not known, in another
    way; each method is told the path to the value, such as "alpha.scale".
    """

    def __init__(self, root: str = "value") -> None:
        self.root = root

    def encode(self, value: Any, path: str = "") -> Any:
        """The data of a value."""
        kind = cast("type[Any]", type(value))
        given: Any = value
        if kind is np.ndarray:
            return self.array(given, path)
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return number(value)
        if isinstance(value, np.ndarray | np.generic):
            return self.array(np.asarray(given), path)
        if isinstance(value, tuple | list):
            return [self.encode(part, f"{path}[{k}]") for k, part in enumerate(given)]
        if hasattr(kind, "stands_for"):
            return self.encode(value.stands_for, path)
        return self.object(value, path) if is_dataclass(kind) else self.unknown(value, path)

    def object(self, value: Any, path: str = "") -> dict[str, Any]:
        """The name of an object's type, and its parts."""
        name, parts = self.taken_apart(value, path)
        lead = f"{path}." if path else ""
        return {"type": name} | {word: self.encode(parts[word], lead + word) for word in parts}

    def taken_apart(self, value: Any, path: str) -> tuple[str, Mapping[str, Any]]:
        """The name of a value's constructor, and the arguments that make an equal one of it."""
        kind = cast("type[Any]", type(value))
        name = _names.get(kind)
        if name is None:
            place = f"{path} of this {self.root} is " if path else ""
            which = ", which" if path else ""
            raise NotSaveable(
                f"{place}a {kind.__name__}{which} cannot be described: {DESCRIBABLE_KINDS}"
            )
        constructor_name = getattr(value, "_constructor_name", None)
        arguments = getattr(value, "_arguments", None)
        return (
            name if constructor_name is None else constructor_name(),
            constructor_fields(value) if arguments is None else arguments(),
        )

    def array(self, array: np.ndarray, path: str) -> Any:
        """All digits of an array, so that they can be read if they are few, or else its bytes."""
        written = array.ndim == 0 or 0 < array.size <= MAX_WRITTEN_NUMBERS
        if array.dtype == np.float64 and written:
            return number(array.tolist())
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return {
            "dtype": plain.dtype.str,
            "shape": list(array.shape),
            "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
        }

    def unknown(self, value: Any, path: str) -> Any:
        """Refuse what is neither plain nor an object of ours."""
        name = getattr(value, "__name__", None)
        kind = f"a {type(value).__name__}" if name is None else f"a function of your own ({name})"
        raise NotSaveable(
            f"{path} of this {self.root} is {kind}, which cannot be described: {DESCRIBABLE_KINDS}"
        )


def number(value: Any) -> Any:
    """Numbers as JSON has them, in lists or alone: exact, and those that it lacks as words."""
    given: Any = value
    if isinstance(value, list):
        return [number(part) for part in given]
    return value if isinstance(value, bool | int) or math.isfinite(value) else str(value)


class Limits(NamedTuple):
    """Limits for data that anybody may have sent: where its types come from, how large it gets.

    `packages` are the beginnings of the modules' names. `max_size` is for all arguments among
    `SIZE_ARGUMENTS` together: a few bytes may ask for any amount of memory.
    """

    name: str  # of what is built
    packages: tuple[str, ...]
    max_size: int


class Decoder:
    """Values from plain data, each type by its own constructor, which checks its arguments.

    A subclass finds the bytes of arrays elsewhere. Errors name the path to what is wrong.
    """

    array_keys: ClassVar = dict.fromkeys(("dtype", "shape", "base64")).keys()

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits, self.size = limits, 0.0

    def build(self, description: Any) -> Any:
        """The value of a description."""
        if not isinstance(description, Mapping) or "type" not in description:
            raise InvalidInput(
                'a description is a dictionary with a "type", as coldq.describe gives it, but this '
                f"is {description!r:.200}"
            )
        return self.decode(description, "the description")

    def decode(self, value: Any, path: str, depth: int = 0) -> Any:
        """The value of some data."""
        if depth > MAX_DEPTH:
            raise InvalidInput(
                f"a description has at most {MAX_DEPTH} levels, but {path:.60} ... has more"
            )
        given: Any = value
        if isinstance(value, (list, tuple)):
            parts: list[Any] = list(given)
            if _of_numbers(parts, depth):
                return parts
            return [self.decode(part, f"{path}[{k}]", depth + 1) for k, part in enumerate(parts)]
        if isinstance(value, str):
            return NOT_IN_JSON.get(value, value)
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, Mapping) and "type" in value:
            return self.object(given, path, depth)
        if isinstance(value, Mapping) and "dtype" in value:
            return self.array(given, path)
        raise InvalidInput(
            f"{path} must be made of numbers, words, lists, arrays and dictionaries with a type, "
            f"but is {value!r:.200}"
        )

    def object(self, value: Mapping[str, Any], path: str, depth: int) -> Any:
        """The object that a constructor makes of its described arguments."""
        known, name = constructors(), value["type"]
        if not isinstance(name, str) or name not in known:
            near = get_close_matches(name, known, 1, 0.5) if isinstance(name, str) else []
            more = f"; is {near[0]!r} meant?" if near else f"; there is {', '.join(known)}"
            raise InvalidInput(f"there is no {name!r:.80} to build{more}")
        if self.limits is not None:
            self.limit(self.limits, name, value)
        takes, arguments, several = _takes(name), {}, []
        for word, part in value.items():  # as they were written: an array may be the next bytes
            if word == "type":
                continue
            if word not in takes:
                raise InvalidInput(f"{name} takes {', '.join(takes)}, but {path} has {word!r:.80}")
            if type(part) is not list or not _of_numbers(part, depth + 1):
                part = self.decode(part, f"{path}.{word}", depth + 1)
            if takes[word].kind is not Parameter.VAR_POSITIONAL:
                arguments[word] = part
            elif isinstance(part, list) or (isinstance(part, np.ndarray) and part.ndim):
                several = list(cast(Iterable[Any], part))
            else:
                raise InvalidInput(f"{word} of {name} must be a list, but is {part!r:.80}")
        for word, one in takes.items():
            if word not in value and one.default is Parameter.empty:
                raise InvalidInput(f"{path} lacks {word!r}, which {name} needs")
        try:
            return known[name](*several, **arguments)
        except InvalidInput as error:
            if depth and type(error) is InvalidInput:  # else there is one place alone
                raise InvalidInput(f"{path}: {error}") from None
            raise

    def limit(self, limits: Limits, name: str, value: Mapping[str, Any]) -> None:
        """Refuse a type from elsewhere, or sizes that are too large, before anything is built."""
        if not constructors()[name].__module__.startswith(limits.packages):
            raise InvalidInput(f"a {name} is no part of a {limits.name}")
        self.size += sum(_size(word, value[word]) for word in value.keys() & SIZE_ARGUMENTS)
        if self.size > limits.max_size:
            raise InvalidInput(
                f"{', '.join(SIZE_ARGUMENTS)} in a {limits.name} may be at most {limits.max_size} "
                f"together, but are {self.size:.6g}"
            )

    def array(self, value: Mapping[str, Any], path: str) -> np.ndarray:
        """An array from its type, its shape and its bytes."""
        dtype, given = value["dtype"], value.get("shape")
        shape = list(cast(Iterable[Any], given)) if isinstance(given, list | tuple) else [-1]
        if (
            value.keys() != self.array_keys
            or dtype not in ARRAY_DTYPES
            or not all(type(size) is int and size >= 0 for size in shape)
            or len(shape) > MAX_AXES
        ):
            raise InvalidInput(
                f"{path} must be an array with a dtype of {', '.join(ARRAY_DTYPES)}, a shape and "
                f"its bytes, but is {dict(value)!r:.200}"
            )
        kind = np.dtype(dtype)
        needed = math.prod(shape) * kind.itemsize
        data = self.array_bytes(value, needed, path)
        if len(data) != needed:
            raise InvalidInput(
                f"{path} has {len(data)} bytes, but its shape {shape} needs {needed}"
            )
        try:
            return np.frombuffer(data, kind).reshape(shape).astype(kind.newbyteorder("="))
        except ValueError as error:  # of no numbers, and yet too long
            raise InvalidInput(f"{path} has the shape {shape!r:.200}: {error}") from None

    def array_bytes(self, value: Mapping[str, Any], needed: int, path: str) -> bytes | memoryview:
        """The bytes of an array, of which so many are needed."""
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise InvalidInput(f"{path} has bytes that are not base64: {error}") from None


def _of_numbers(value: Any, depth: int) -> bool:
    """Whether all in a list, and in those within it, are numbers that stay what they are."""
    if PLAIN_NUMBERS.issuperset(map(type, value)):
        return True
    if depth >= MAX_DEPTH:
        return False
    return all(type(part) is list and _of_numbers(part, depth + 1) for part in value)


@cache
def _takes(name: str) -> Mapping[str, Parameter]:
    """The arguments of a constructor."""
    return arguments_of(constructors()[name])


def _size(word: str, value: Any) -> float:
    """The size that an argument asks for."""
    values = cast(list[Any], value) if isinstance(value, list) else [value]
    if not all(isinstance(n, int | float | None) for n in values):
        raise InvalidInput(f"{word} must be made of whole numbers, but is {value!r:.200}")
    return sum(min(abs(n), 1e12) for n in values if n is not None)


def describe(value: Any) -> dict[str, Any]:
    """A learner, problem, domain, schedule, loss or constraint as data that JSON can write.

    :func:`coldq.build` makes an equal value of it. Functions of your own cannot be described, nor
    can what is made of them: the error says which.

    >>> import coldq
    >>> coldq.describe(coldq.Box(0.0, float("inf"), dim=2))
    {'type': 'Box', 'lower': [0.0, 0.0], 'upper': ['inf', 'inf']}
    >>> coldq.describe(coldq.COLDQ.anytime(coldq.Simplex(3)))["gamma"]
    {'type': 'Power', 'exponent': 2.0, 'scale': 0.5}
    >>> coldq.describe(coldq.OGD(coldq.Simplex(3), eta=lambda t: 1.0 / t))
    Traceback (most recent call last):
    ...
    coldq.NotSaveable: eta of this OGD is a function of your own (<lambda>), which cannot be
    described: a description holds numbers and words, and coldq's own learners, problems, domains,
    schedules, losses, constraints and forecasts
    """
    return Encoder(type(value).__name__).object(value)


def build(description: Mapping[str, Any]) -> Any:
    """The value that :func:`coldq.describe` described, equal to the one that it was.

    The arguments may be written by hand as well: they are those of the type's constructor, which
    checks them.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    >>> coldq.build(coldq.describe(learner)) == learner
    True
    >>> box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": 2}
    >>> coldq.build({"type": "COLDQ", "domain": box, "horizon": 100}) == learner
    True
    >>> coldq.build({"type": "Bocks", "lower": 0.0})
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: there is no 'Bocks' to build; is 'Box' meant?
    """
    return Decoder().build(description)
