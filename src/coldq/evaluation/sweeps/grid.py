"""Grids: a few keys, some with several values, written out one combination after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import product
from typing import Any

import numpy as np

from coldq.base.arrays import flag, whole_number
from coldq.base.describe import describe
from coldq.base.errors import InvalidInput
from coldq.base.keys import require_keys, require_number

RANGE_KEYS = ("from", "to", "count", "log")
POWER_KEYS = ("power", "scale")
MAX_COMBINATIONS = 100_000  # combinations of one table


def combinations(where: str, keys: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of each key, the last key changing fastest.

    A list is each of its entries, ``{from = 1, to = 3, count = 5}`` five numbers at equal
    distances, with ``log = true`` at equal ratios, and ``{power = 0.5, scale = 2}`` the schedule
    2 sqrt(t), in which both may be grids again. Values are plain: an object is its description.

    >>> from coldq.evaluation.sweeps.grid import combinations
    >>> [one["epsilon"] for one in combinations("here", {"epsilon": {"from": 1, "to": 100,
    ...     "count": 3, "log": True}, "scaled": False})]
    [1, 10, 100]
    """
    several = {key: values_of(f"{where}: {key}", given) for key, given in keys.items()}
    count = math.prod(len(values) for values in several.values())
    if count > MAX_COMBINATIONS:
        raise InvalidInput(
            f"{where}: {count:,} combinations are above the most, {MAX_COMBINATIONS:,}"
        )
    for chosen in product(*several.values()):
        yield dict(zip(several, chosen, strict=True))


def values_of(where: str, given: Any) -> list[Any]:
    """All that a key stands for."""
    if isinstance(given, list | tuple | np.ndarray):
        if not len(given):
            raise InvalidInput(f"{where} is an empty list, which leaves nothing to run")
        values = [value for one in given for value in values_of(where, one)]
        if any(values[k] in values[:k] for k in range(len(values))):
            raise InvalidInput(f"{where} names a value twice: {given!r:.120}")
        return values
    if is_dataclass(given) and not isinstance(given, type):  # a domain, a schedule
        return [describe(given)]
    if not isinstance(given, Mapping):
        return [_plain(where, given)]
    if "type" in given:  # a description
        return [dict(given)]
    if "from" in given:
        require_keys(where, given, RANGE_KEYS)
        return _range(where, given)
    if "power" in given:
        require_keys(where, given, POWER_KEYS)
        return [
            {"type": "Power", "exponent": one["power"], "scale": one.get("scale", 1.0)}
            for one in combinations(where, given)
        ]
    raise InvalidInput(
        f"{where} must be a value, a list of them, {{from = 1, to = 3, count = 5}}, with log = "
        f"true or without, or {{power = 0.5, scale = 2}}, but is {dict(given)!r:.120}"
    )


def _range(where: str, given: Mapping[str, Any]) -> list[Any]:
    for key in ("to", "count"):
        if key not in given:
            raise InvalidInput(f"{where}: a range from {given['from']!r} lacks {key}")
    low, high = (require_number(where, key, given[key]) for key in ("from", "to"))
    count, log = whole_number(f"{where}: count", given["count"], 2), given.get("log", False)
    if count > MAX_COMBINATIONS:
        raise InvalidInput(f"{where}: count must be at most {MAX_COMBINATIONS}, but is {count}")
    flag(f"{where}: log", log)
    if low == high:
        raise InvalidInput(f"{where}: from and to must differ, but both are {low:g}")
    if log and not (low > 0.0 and high > 0.0):
        raise InvalidInput(
            f"{where}: a range with log = true needs ends above 0, but has {low:g} and {high:g}"
        )
    points = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    values = [float(f"{point:.12g}") for point in points]  # 0.1, not 0.09999999999999999
    whole = all(isinstance(given[key], int) for key in ("from", "to"))
    return [int(one) for one in values] if whole and all(map(float.is_integer, values)) else values


def _plain(where: str, value: Any) -> Any:
    """A number, a truth value or a word."""
    value = value.item() if isinstance(value, np.generic) else value
    good = isinstance(value, bool | int | str) or (
        isinstance(value, float) and math.isfinite(value)
    )
    if not good:
        raise InvalidInput(f"{where} must be a number or a word, but is {value!r:.120}")
    return value


def flat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with a plain value each: a schedule's exponent and scale have names of their own.

    What a description has in lists is one value, written out.

    >>> from coldq.evaluation.sweeps.grid import flat
    >>> flat({"alpha": {"type": "Power", "exponent": 0.5, "scale": 2.0}, "scaled": True})
    {'alpha.exponent': 0.5, 'alpha.scale': 2.0, 'scaled': True}
    """
    flattened: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            inner = {name: part for name, part in value.items() if name != "type"}
            flattened |= {f"{key}.{name}": part for name, part in flat(inner).items()}
        else:
            flattened[key] = str(value) if isinstance(value, list | tuple) else value
    return flattened
