"""Values as plain data and back: what files, messages and sweeps hold instead of pickles.

A description is a dictionary with a "type" and the arguments of its constructor. Numbers and short
arrays are written out, all digits of them; longer arrays are base64 of their bytes. JSON writes
all of it. Nothing in a description is executed: types are looked up in a registry, in which a class
is entered by :func:`describable`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import Parameter
from typing import Any, TypeVar

import numpy as np

from coldq.base.arrays import arguments_of, constructor_fields
from coldq.base.errors import InvalidInput, NotSaveable

MAX_WRITTEN_NUMBERS = 64  # of an array, up to which they can be read
MAX_DEPTH = 32  # objects and lists within one another
PLAIN_NUMBERS = {float, int}  # types that stay what they are, so that a row of them is not walked
DTYPES = ("<f8", "<i8", "<i4")  # of the arrays that values are made of
NOT_IN_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers, as words
# Modules that enter their classes when they are imported; a package imports all of its own.
HOMES = (
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
BEYOND = (
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
    for home in HOMES:
        module = import_module(home)
        for name in getattr(module, "__all__", ()):
            getattr(module, name)
    return _constructors


@dataclass(frozen=True)
class Walk:
    """How a value becomes plain data.

    `name` and `parts` say what an object is and of what; `array` and `other` get what is neither
    plain nor made of parts. Each is told the path to it, such as "alpha.scale".
    """

    name: Callable[[Any], str]
    parts: Callable[[Any, str], Mapping[str, Any]]
    array: Callable[[np.ndarray, str], Any]
    other: Callable[[Any, str], Any]

    def __call__(self, value: Any, path: str = "") -> Any:
        """Numbers, words, lists, and a dictionary with its "type" for every object."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return number(value)
        if isinstance(value, np.ndarray | np.generic):
            return self.array(np.asarray(value), path)
        if isinstance(value, tuple | list):
            return [self(part, f"{path}[{k}]") for k, part in enumerate(value)]
        if hasattr(type(value), "stands_for"):
            return self(value.stands_for, path)
        if is_dataclass(value) and not isinstance(value, type):
            parts = self.each(value, path)  # the first to be asked: it knows where the value is
            return {"type": self.name(value), **parts}
        return self.other(value, path)

    def each(self, value: Any, path: str = "") -> dict[str, Any]:
        """The parts of an object, by name."""
        lead = f"{path}." if path else ""
        return {name: self(part, lead + name) for name, part in self.parts(value, path).items()}


def fields_of(value: Any, path: str = "") -> dict[str, Any]:
    """The fields of a dataclass."""
    return {f.name: getattr(value, f.name) for f in fields(value)}


def number(value: Any) -> Any:
    """Numbers as JSON has them, in lists or alone: exact, and those that it lacks as words."""
    if isinstance(value, list):
        return [number(part) for part in value]
    return value if isinstance(value, bool | int) or math.isfinite(value) else str(value)


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
    return described(value, _exact)


def described(value: Any, array: Callable[[np.ndarray, str], Any]) -> dict[str, Any]:
    """A description in which arrays are written as a function writes them."""
    _name_of(value, f"a {type(value).__name__}")
    whole = f"this {type(value).__name__}"

    def place(path: str) -> str:
        return f"{path} of {whole}" if path else whole

    def parts(part: Any, path: str) -> Mapping[str, Any]:
        return taken_apart(part, f"{place(path)} is a {type(part).__name__}, which")[1]

    def refuse(part: Any, path: str) -> Any:
        name = getattr(part, "__name__", None)
        kind = f"a {type(part).__name__}" if name is None else f"a function of your own ({name})"
        raise NotSaveable(f"{place(path)} is {kind}, which cannot be described: {BEYOND}")

    return Walk(lambda part: _name_of(part, ""), parts, array, refuse)(value)


def taken_apart(value: Any, words: str = "this") -> tuple[str, Mapping[str, Any]]:
    """The name of a value's constructor, and the arguments that make an equal one of it."""
    name, own = _name_of(value, words), getattr(value, "_arguments", None)
    return name, constructor_fields(value) if own is None else own()


def _name_of(value: Any, words: str) -> str:
    """The name of a value's constructor; raise unless it is one of coldq's own."""
    name = _names.get(type(value))
    if name is None:
        raise NotSaveable(f"{words} cannot be described: {BEYOND}")
    own = getattr(value, "_constructor_name", None)
    return name if own is None else own()


def _exact(array: np.ndarray, path: str) -> Any:
    """An array with all its digits, so that they can be read if they are few, or as its bytes."""
    if array.dtype == np.float64 and (array.ndim == 0 or 0 < array.size <= MAX_WRITTEN_NUMBERS):
        return array.tolist() if np.isfinite(array).all() else number(array.tolist())
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": plain.dtype.str,
        "shape": list(array.shape),
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }


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
    if not isinstance(description, Mapping) or "type" not in description:
        raise InvalidInput(
            'a description is a dictionary with a "type", as coldq.describe gives it, but this is '
            f"{description!r:.200}"
        )
    return _built(description, "the description", 0)


def _built(value: Any, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"a description has at most {MAX_DEPTH} levels, but this goes on below")
    if isinstance(value, (list, tuple)):
        if _of_numbers(value, depth):
            return list(value)
        return [_built(part, f"{path}[{k}]", depth + 1) for k, part in enumerate(value)]
    if isinstance(value, str):
        return NOT_IN_JSON.get(value, value)
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping) and "base64" in value:
        return _array(value, path)
    if isinstance(value, Mapping) and "type" in value:
        return _made(value, path, depth)
    raise InvalidInput(
        f"{path} must be made of numbers, words, lists, arrays and dictionaries with a type, but "
        f"is {value!r:.200}"
    )


def _of_numbers(value: Any, depth: int) -> bool:
    """Whether all in a list, and in those within it, are numbers that stay what they are."""
    if PLAIN_NUMBERS.issuperset(map(type, value)):
        return True
    if depth >= MAX_DEPTH:
        return False
    return all(type(part) is list and _of_numbers(part, depth + 1) for part in value)


@cache
def _takes(name: str) -> Mapping[str, tuple[Any, Any]]:
    """The arguments of a constructor: the kind and the default of each."""
    known = arguments_of(constructors()[name])
    return {word: (one.kind, one.default) for word, one in known.items()}


def _made(value: Mapping[str, Any], path: str, depth: int) -> Any:
    """What a constructor makes of its described arguments."""
    known, name = constructors(), value["type"]
    if not isinstance(name, str) or name not in known:
        near = get_close_matches(name, known, 1, 0.5) if isinstance(name, str) else []
        more = f"; is {near[0]!r} meant?" if near else f"; there is {', '.join(known)}"
        raise InvalidInput(f"there is no {name!r:.80} to build{more}")
    takes = _takes(name)
    for word in value:
        if word not in takes and word != "type":
            raise InvalidInput(f"{name} takes {', '.join(takes)}, but {path} has {word!r:.80}")
    arguments, several = {}, []
    for word, (kind, default) in takes.items():
        if word not in value:
            if default is Parameter.empty:
                raise InvalidInput(f"{path} lacks {word!r}, which {name} needs")
            continue
        part = value[word]
        if type(part) is not list or not _of_numbers(part, depth + 1):
            part = _built(part, f"{path}.{word}", depth + 1)
        if kind is not Parameter.VAR_POSITIONAL:
            arguments[word] = part
        elif isinstance(part, list) or (isinstance(part, np.ndarray) and part.ndim):
            several = list(part)
        else:
            raise InvalidInput(f"{word} of {name} must be a list, but is {part!r:.80}")
    return known[name](*several, **arguments)


def _array(value: Mapping[str, Any], path: str) -> np.ndarray:
    """An array from its bytes."""
    dtype, shape, text = (value.get(word) for word in ("dtype", "shape", "base64"))
    sizes: Any = shape if isinstance(shape, list | tuple) else [None]
    if (
        dtype not in DTYPES
        or not isinstance(text, str)
        or len(value) != 3
        or not all(type(size) is int and size >= 0 for size in sizes)
        or len(sizes) > 32
    ):
        raise InvalidInput(
            f"{path} must be an array with a dtype of {', '.join(DTYPES)}, a shape and base64, but "
            f"is {dict(value)!r:.200}"
        )
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"{path} has bytes that are not base64: {error}") from None
    kind = np.dtype(dtype)
    if len(data) != math.prod(sizes) * kind.itemsize:
        raise InvalidInput(
            f"{path} has {len(data)} bytes, but its shape {list(sizes)} needs "
            f"{math.prod(sizes) * kind.itemsize}"
        )
    try:
        return np.frombuffer(data, kind).reshape(sizes).astype(kind.newbyteorder("="))
    except ValueError as error:  # of no numbers, and yet too long
        raise InvalidInput(f"{path} has the shape {list(sizes)!r:.200}: {error}") from None
