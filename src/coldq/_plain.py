"""Values as plain data: one walk, which descriptions and fingerprints share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from coldq.schedules import Custom

NOT_IN_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers, as words


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
        if isinstance(value, Custom):  # nothing but the function in it
            return self(value.function, path)
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
