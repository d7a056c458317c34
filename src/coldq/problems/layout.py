"""What the columns of a table mean: the keys of a layout, written in TOML or given as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.keys import Key, Place, nearest, read_keys, real, text

MAX_COPIES = 100_000  # equal decisions that one name may stand for
GAPS = ("refuse", "fill", "skip")
LIMIT_SIGNS = {"at_most": 1.0, "at_least": -1.0, "equal": 0.0}
ALL, STAR = "all", "*"

Term = float | str  # a number, or the name of a column
Terms = tuple[Term, ...]  # one for each decision
Limit = float | tuple[str, ...]  # a number, or columns that are added up
Groups = tuple[tuple[str, ...], ...]  # of decisions, each group standing together
Bounds = tuple[float, float]


# What keys take: the first sentence of each stands in the table of the documentation


def choice_of_gaps(place: Place, key: str, value: Any) -> str:
    """`"refuse"`, which is the default, `"fill"` or `"skip"`."""
    if not isinstance(value, str) or value not in GAPS:
        raise place.wrong(f"{key} must be one of {', '.join(GAPS)}, but is {value!r:.80}")
    return value


def positive_real(place: Place, key: str, value: Any) -> float:
    """A number above zero."""
    number = real(place, key, value)
    if not number > 0.0:
        raise place.wrong(f"{key} must be positive, but is {number:g}")
    return number


def different_names(place: Place, key: str, value: Any) -> tuple[str, ...]:
    """Different names."""
    names = tuple(value) if isinstance(value, list | tuple | Mapping) else ()
    good = names and all(isinstance(n, str) and n and n != ALL for n in names)
    if not good or len(set(names)) < len(names):
        raise place.wrong(
            f'{key} must be different names, none of them "all", but is {value!r:.120}'
        )
    return names


def bounds_by_name(place: Place, key: str, value: Any) -> dict[str, Any]:
    """Two numbers for each name, or names."""
    names = different_names(place, key, value)
    if not isinstance(value, Mapping):
        return dict.fromkeys(names)
    return {
        name: None if ends is None else two_numbers(place, f"the bounds of {name!r}", ends)
        for name, ends in value.items()
    }


def two_numbers(place: Place, key: str, value: Any) -> tuple[float, float]:
    """Two numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise place.wrong(f"{key} must be two numbers such as [0, 100], but is {value!r:.80}")
    if any(isinstance(end, str) for end in value):
        raise place.wrong(
            f"{key} must be fixed numbers, but is {value!r:.80}; a limit that changes is a row, "
            'with sum = "the decision" and at_most = "its column"'
        )
    low, high = (real(place, f"each of {key}", end) for end in value)
    if low > high:
        raise place.wrong(f"{key} must be [lower, upper], not [{low:g}, {high:g}]")
    return low, high


def counts(place: Place, key: str, value: Any) -> tuple[int, ...]:
    """A whole number for all, or for each name."""
    by_name = _by_name(place, key, value)
    for name, count in by_name.items():
        whole = isinstance(count, int) and not isinstance(count, bool)
        if not whole or not 1 <= count <= MAX_COPIES:
            raise place.wrong(
                f"{key} of {name!r} must be a whole number, at least 1 and at most {MAX_COPIES}, "
                f"but is {count!r:.80}"
            )
    return tuple(by_name.get(name, 1) for name in place.names)


def groups(place: Place, key: str, value: Any) -> Groups:
    """`"all"`, names, or lists of names."""
    if value == ALL or value is True:
        return (place.names,)
    several = isinstance(value, list | tuple) and value and not isinstance(value[0], str)
    shares = [different_names(place, key, group) for group in (value if several else [value])]
    for group in shares:
        _require_decisions(place, key, group)
        first = place.names.index(group[0])
        if place.names[first : first + len(group)] != group:
            raise place.wrong(
                f"{key} {list(group)} must stand side by side in decide, in this order"
            )
    if len(set().union(*shares)) < sum(map(len, shares)):
        raise place.wrong(f"{key} has a decision in two groups")
    return tuple(shares)


def term(place: Place, key: str, value: Any) -> Term:
    """A number or a column."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, str | list | tuple | Mapping):
        raise place.wrong(f"{key} must be a number or the name of a column, but is {value!r:.80}")
    return real(place, key, value)


def terms(place: Place, key: str, value: Any) -> Terms:
    """A number or a column for all, in which `*` stands for the name, or for each name."""
    if not isinstance(value, Mapping):
        return _starred(place, term(place, key, value))
    _require_decisions(place, key, value)
    for name in place.names:
        if name not in value:
            raise place.wrong(f"{key} says nothing of {name!r}; {name} = 0 would")
    return tuple(term(place, f"{key} of {name!r}", value[name]) for name in place.names)


def summands(place: Place, key: str, value: Any) -> Terms:
    """`"all"`, a name, names, a column with `*` for the name, or a number or a column by name."""
    if isinstance(value, Mapping) and value:
        _require_decisions(place, key, value)
        weights = {name: term(place, f"{key} of {name!r}", value[name]) for name in value}
        return tuple(weights.get(name, 0.0) for name in place.names)
    if value == ALL:
        return (1.0,) * len(place.names)
    if isinstance(value, str) and STAR in value:
        return _starred(place, value)
    chosen = (value,) if isinstance(value, str) else different_names(place, key, value)
    _require_decisions(place, key, chosen)
    return tuple(float(name in chosen) for name in place.names)


def limit(place: Place, key: str, value: Any) -> Limit:
    """A number, a column, or columns that are added up."""
    if isinstance(value, list | tuple):
        return different_names(place, key, value)
    one = term(place, key, value)
    return (one,) if isinstance(one, str) else one


def numbers_from_zero(place: Place, key: str, value: Any) -> tuple[float, ...]:
    """A number from zero for all, or by name."""
    by_name = _by_name(place, key, value)
    numbers = tuple(real(place, key, by_name.get(name, 0.0)) for name in place.names)
    if min(numbers) < 0.0:
        raise place.wrong(f"{key} must not be negative, but is {min(numbers):g}")
    return numbers


def _by_name(place: Place, key: str, value: Any) -> Mapping[str, Any]:
    """What is given by name, or for all of them."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(place.names, value)
    _require_decisions(place, key, value)
    return value


def _starred(place: Place, one: Term) -> Terms:
    return tuple(one.replace(STAR, n) if isinstance(one, str) else one for n in place.names)


def _require_decisions(place: Place, key: str, given: Iterable[Any]) -> None:
    names = place.names
    for name in given:
        if name not in names:
            hint = nearest(name, names) if isinstance(name, str) else ""
            raise place.wrong(
                f"{key} names {name!r:.80}, which is not decided{hint}; decide has "
                f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}"
            )


# The keys


@dataclass(frozen=True)
class Capacity:
    """A sum of ``scale log(1 + rate x)`` over the decisions."""

    scale: Annotated[tuple[float, ...], Key(numbers_from_zero, "what multiplies the logarithm")]
    rate: Annotated[tuple[float, ...], Key(numbers_from_zero, "what multiplies x in it")]


def keys_of_capacity(place: Place, key: str, value: Any) -> Capacity:
    """The keys below, for a sum of `scale log(1 + rate x)` over the decisions."""
    return read_keys(Capacity, place._replace(where=f"{place.where}, {key}"), value)


@dataclass(frozen=True)
class Row:
    """One line of the constraint: a sum or a capacity, and its limits.

    `label` is what messages call it: its name, or its number.
    """

    label: str
    name: Annotated[str | None, Key(text, "what messages call the row")] = None
    sum: Annotated[Terms | None, Key(summands, "what is limited")] = None
    capacity: Annotated[Capacity | None, Key(keys_of_capacity, "what is limited instead")] = None
    plus: Annotated[Limit, Key(limit, "what is added as it is: imports, or power of the sun")] = 0.0
    at_most: Annotated[Limit | None, Key(limit, "the most that it may be")] = None
    at_least: Annotated[Limit | None, Key(limit, "the least that it must be")] = None
    equal: Annotated[Limit | None, Key(limit, "what it must be exactly")] = None

    @property
    def limits(self) -> dict[str, Limit]:
        """The limits that are given, by key."""
        limits = {key: getattr(self, key) for key in LIMIT_SIGNS}
        return {key: limit for key, limit in limits.items() if limit is not None}


def keys_of_rows(place: Place, key: str, value: Any) -> tuple[Row, ...]:
    """The keys of a row below each `[[rows]]`."""
    return tuple(_row(place, k, one) for k, one in enumerate(_tables(place, key, value), 1))


def _row(place: Place, k: int, given: Mapping[str, Any]) -> Row:
    label = f"constraint {k}" if given.get("name") is None else repr(given["name"])
    here = place._replace(where=f"{place.where}, {label}")
    row = read_keys(Row, here, given, label=label)
    limits = row.limits
    if not limits or (len(limits) > 1 and "equal" in limits):
        raise here.wrong(
            "needs at_most, at_least, both of them, or equal, but has "
            f"{' and '.join(limits) or 'none'}"
        )
    if (row.sum is None) == (row.capacity is None):
        raise here.wrong('needs either sum, such as sum = "all", or capacity')
    if row.capacity is not None and list(limits) != ["at_least"]:
        raise here.wrong("a capacity must be at_least something: its returns fall")
    return row


@dataclass(frozen=True)
class Squares:
    """One residual of a least-squares loss: half the square of ``sum - to``."""

    sum: Annotated[Terms, Key(summands, "what should be near `to`")]
    to: Annotated[Limit, Key(limit, "what it should be near")]


def keys_of_squares(place: Place, key: str, value: Any) -> tuple[Squares, ...]:
    """The keys of a square below each `[[least_squares]]`."""
    return tuple(
        read_keys(Squares, place._replace(where=f"{place.where}, {key} {k}"), one)
        for k, one in enumerate(_tables(place, key, value), 1)
    )


def _tables(place: Place, key: str, value: Any) -> Sequence[Mapping[str, Any]]:
    given = [value] if isinstance(value, Mapping) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        raise place.wrong(
            f"{key} must be written as [[{key}]] with keys below, but is {given!r:.80}"
        )
    return given


@dataclass(frozen=True)
class Layout:
    """What a table's columns mean, checked but for the columns themselves.

    `where` begins every sentence about what is wrong.
    """

    where: str
    decide: Annotated[
        Mapping[str, Bounds | None],
        Key(bounds_by_name, "what is decided, between which bounds: `{grid = [0, 80]}`"),
    ]
    between: Annotated[Bounds | None, Key(two_numbers, "the bounds of all in a list")] = None
    copies: Annotated[
        tuple[int, ...], Key(counts, "how many equal decisions each stands for, 1 by default")
    ] = ()
    shares: Annotated[Groups, Key(groups, "decisions that add up to `total`")] = ()
    total: Annotated[float, Key(positive_real, "their sum, 1 by default")] = 1.0
    cost: Annotated[Terms | None, Key(terms, "what a unit of each costs")] = None
    gain: Annotated[Terms | None, Key(terms, "what a unit of each earns")] = None
    least_squares: Annotated[
        tuple[Squares, ...], Key(keys_of_squares, "costs of half the square of `sum - to`")
    ] = ()
    rows: Annotated[tuple[Row, ...], Key(keys_of_rows, "what must hold in every slot")] = ()
    time: Annotated[str | None, Key(text, "the column of times")] = None
    time_format: Annotated[
        str | None, Key(text, "how times are written, if not as 2024-01-31 23:55 or as numbers")
    ] = None
    gaps: Annotated[
        str, Key(choice_of_gaps, "missing rows and numbers: refused, filled with those before, or "
                 "left out")
    ] = "refuse"  # fmt: skip
    table: Annotated[str | None, Key(text, "the table's file, if not of this name")] = None
    about: Annotated[str, Key(text, "a sentence on the data, for pages")] = ""

    @property
    def decisions(self) -> tuple[str, ...]:
        """The names of what is decided."""
        return tuple(self.decide)

    def bounds(self) -> Array:
        """Least and most of every decision, (2, p)."""
        place, pairs = Place(self.where), []
        shared = {name for group in self.shares for name in group}
        if self.between is not None and any(self.decide.values()):
            raise place.wrong(
                "between is for a list of decisions; here decide has the bounds of each"
            )
        for name, own in self.decide.items():
            pair = own or self.between or ((0.0, self.total) if name in shared else None)
            if pair is None:
                raise place.wrong(
                    f"{name!r} needs bounds: between = [0, 100], or decide = {{{name} = [0, 100]}}"
                )
            pairs.append(pair)
        return np.array(pairs).T

    def columns(self) -> list[str]:
        """Every column that is named, but for the time, each once."""
        parts: list[Any] = [self.cost, self.gain]
        for one in self.least_squares:
            parts += [one.sum, one.to]
        for row in self.rows:
            parts += [row.sum, row.plus, *row.limits.values()]
        names = [name for part in parts if isinstance(part, tuple) for name in part]
        return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def layout_of(keys: Mapping[str, Any], where: str) -> Layout:
    """A layout from its keys; `where` begins every sentence about what is wrong."""
    decide = keys.get("decide")
    names = tuple(decide) if isinstance(decide, list | tuple | Mapping) else ()
    place = Place(where, names)
    layout = read_keys(Layout, place, keys, where=where)
    if keys.get("total") is not None and not layout.shares:
        raise place.wrong('total is what shares add up to, and needs shares = "all"')
    if layout.cost is None and layout.gain is None and not layout.least_squares:
        raise place.wrong(
            'says nothing of what a decision costs; cost = {spot = "spot_price"}, gain or '
            "least_squares does"
        )
    if layout.time_format is not None and layout.time is None:
        raise place.wrong("time_format is that of a time column, which time names")
    layout.bounds()  # which raises where a decision has none
    if not layout.columns():
        raise place.wrong("names no column of the table, so that every slot is the same")
    return layout if layout.copies else replace(layout, copies=(1,) * len(names))
