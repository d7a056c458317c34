"""What the columns of a table mean: a few keys, written in TOML or given as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput, NotReadable
from coldq.problems.columns import KINDS, nearest

KEYS = (
    "table", "about", "time", "time_format", "gaps", "decide", "between", "copies", "shares",
    "total", "cost", "gain", "least_squares", "rows",
)  # fmt: skip
ROW_KEYS = ("name", "sum", "capacity", "plus", "at_most", "at_least", "equal")
SQUARES_KEYS = ("sum", "to")
CAPACITY_KEYS = ("scale", "rate")
GAPS = ("refuse", "fill", "skip")
ALL, STAR = "all", "*"
LIMITS = {"at_most": 1.0, "at_least": -1.0, "equal": 0.0}

Term = float | str  # a number, or the name of a column


class Row(NamedTuple):
    """One line of the constraint: a sum with its coefficients, or a capacity, and its limits.

    `terms` and `capacity` have one entry a decision; a limit is a number or columns to add up.
    """

    name: str
    terms: tuple[Term, ...] | None
    capacity: tuple[tuple[float, float], ...] | None
    plus: float | tuple[str, ...]
    limits: tuple[tuple[str, float | tuple[str, ...]], ...]


class Squares(NamedTuple):
    """One residual of a least-squares loss: a sum that should be near a number or columns."""

    terms: tuple[Term, ...]
    to: float | tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """What a table's columns mean, checked but for the columns themselves."""

    where: str
    decisions: tuple[str, ...]
    bounds: Array
    copies: tuple[int, ...]
    shares: tuple[tuple[str, ...], ...]
    total: float
    cost: tuple[Term, ...] | None
    gain: tuple[Term, ...] | None
    squares: tuple[Squares, ...]
    rows: tuple[Row, ...]
    time: str | None
    time_format: str | None
    gaps: str
    about: str

    def columns(self) -> list[str]:
        """Every column that is named, but for the time, each once."""
        found: list[Any] = [*(self.cost or ()), *(self.gain or ())]
        for squares in self.squares:
            found += [*squares.terms, *_listed(squares.to)]
        for row in self.rows:
            found += [*(row.terms or ()), *_listed(row.plus)]
            for _, limit in row.limits:
                found += _listed(limit)
        return list(dict.fromkeys(one for one in found if isinstance(one, str)))


def _listed(limit: Any) -> Sequence[Any]:
    return limit if isinstance(limit, tuple) else ()


def read_toml(path: Path) -> dict[str, Any]:
    """The keys of a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise NotReadable(f"{path}: cannot be read ({reason})") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError too
        raise NotReadable(f"{path}: is not TOML ({error})") from None


def beside(path: Path, keys: Mapping[str, Any]) -> Path:
    """The table that a TOML file is about: the one it names, or that of its own name."""
    if "table" in keys:
        name = keys["table"]
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"{path}: table must be the name of a file, but is {name!r:.80}")
        return path.parent / name
    for kind in KINDS:
        if (path.parent / f"{path.stem}{kind}").is_file():
            return path.parent / f"{path.stem}{kind}"
    raise InvalidInput(
        f'{path}: no table {path.stem}.csv, .parquet or .npz lies beside it; table = "name.csv" '
        "names another"
    )


def layout_of(keys: Mapping[str, Any], where: str) -> Layout:
    """A layout from its keys; `where` begins every sentence about what is wrong."""
    require_keys(where, keys, KEYS)
    if "decide" not in keys:
        raise InvalidInput(
            f"{where}: decide is missing; it names what is decided, as in decide = "
            "{reserved = [0, 20], spot = [0, 100]}"
        )
    total = require_number(where, "total", keys.get("total", 1.0))
    if not total > 0.0:
        raise InvalidInput(f"{where}: total must be positive, but is {total:g}")
    names, given = _decisions(where, keys)
    shares = _shares(where, keys.get("shares"), names)
    if "total" in keys and not shares:
        raise InvalidInput(f'{where}: total is what shares add up to, and needs shares = "all"')
    cost, gain = (_terms(where, key, keys.get(key), names) for key in ("cost", "gain"))
    squares = [
        _one_squares(f"{where}, least_squares {k}", one, names)
        for k, one in enumerate(_tables(where, "least_squares", keys), 1)
    ]
    if cost is None and gain is None and not squares:
        raise InvalidInput(
            f'{where}: says nothing of what a decision costs; cost = {{spot = "spot_price"}}, gain '
            "or least_squares does"
        )
    rows = [_one_row(where, k, one, names) for k, one in enumerate(_tables(where, "rows", keys), 1)]
    gaps = keys.get("gaps", "refuse")
    if not isinstance(gaps, str) or gaps not in GAPS:
        raise InvalidInput(f"{where}: gaps must be one of {', '.join(GAPS)}, but is {gaps!r:.80}")
    texts = {
        key: require_text(where, key, keys.get(key), optional=True)
        for key in ("time", "time_format", "about")
    }
    if texts["time_format"] is not None and texts["time"] is None:
        raise InvalidInput(f"{where}: time_format is that of a time column, which time names")
    layout = Layout(
        where, names, _bounds(where, names, given, shares, total),
        _copies(where, keys.get("copies", 1), names), shares, total, cost, gain, tuple(squares),
        tuple(rows), texts["time"], texts["time_format"], gaps, texts["about"] or "",
    )  # fmt: skip
    if not layout.columns():
        raise InvalidInput(f"{where}: names no column of the table, so that every slot is the same")
    return layout


def require_keys(where: str, keys: Any, known: Iterable[str]) -> None:
    """Raise unless all keys are known; the sentence names the nearest one that is."""
    known = tuple(known)
    if not isinstance(keys, Mapping):
        raise InvalidInput(f"{where}: must be keys and values, but is {keys!r:.80}")
    for key in keys:
        if key not in known:
            hint = nearest(key, known) if isinstance(key, str) else ""
            raise InvalidInput(f"{where}: there is no key {key!r}{hint}; there are "
                               f"{', '.join(known)}")  # fmt: skip


def require_number(where: str, key: str, value: Any) -> float:
    """A finite number under a key."""
    real = isinstance(value, int | float | np.integer | np.floating)
    try:
        if isinstance(value, bool) or not real or not np.isfinite(float(value)):
            raise InvalidInput(f"{where}: {key} must be a finite number, but is {value!r:.80}")
    except OverflowError:  # of a whole number, which Python lets have any size
        largest = np.finfo(np.float64).max
        raise InvalidInput(
            f"{where}: {key} must be at most {largest:.3g} in size, but is beyond"
        ) from None
    return float(value)


def require_text(where: str, key: str, value: Any, *, optional: bool = False) -> Any:
    """Some text under a key, or none if it is optional."""
    if (value is None and optional) or (isinstance(value, str) and value):
        return value
    raise InvalidInput(f"{where}: {key} must be some text, but is {value!r:.80}")


def _tables(where: str, key: str, keys: Mapping[str, Any]) -> list[Any]:
    """The tables under a key: one of them, or several."""
    given = keys.get(key)
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [given]
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        raise InvalidInput(
            f"{where}: {key} must be written as [[{key}]] with keys below, but is {given!r:.80}"
        )
    return list(given)


def _names(where: str, key: str, given: Any) -> tuple[str, ...]:
    """Different names, not empty."""
    names = tuple(given) if isinstance(given, list | tuple | Mapping) else ()
    good = names and all(isinstance(n, str) and n and n != ALL for n in names)
    if not good or len(set(names)) < len(names):
        raise InvalidInput(
            f'{where}: {key} must be different names, none of them "all", but is {given!r:.120}'
        )
    return names


def _decisions(where: str, keys: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Any]]:
    """The names of what is decided, and the bounds as given for each."""
    decide, between = keys["decide"], keys.get("between")
    names = _names(where, "decide", decide)
    if not isinstance(decide, Mapping):
        return names, [between] * len(names)
    if between is not None:
        raise InvalidInput(
            f"{where}: between is for a list of decisions; here decide has the bounds of each"
        )
    return names, [decide[name] for name in names]


def _bounds(
    where: str,
    names: tuple[str, ...],
    given: list[Any],
    shares: tuple[tuple[str, ...], ...],
    total: float,
) -> Array:
    """Least and most of every decision, (2, p)."""
    found = []
    shared = {name for group in shares for name in group}
    for name, pair in zip(names, given, strict=True):
        if pair is None and name in shared:
            found.append((0.0, total))
            continue
        if pair is None:
            raise InvalidInput(
                f"{where}: {name!r} needs bounds: between = [0, 100], or decide = "
                f"{{{name} = [0, 100]}}"
            )
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidInput(
                f"{where}: the bounds of {name!r} must be two numbers such as [0, 100], but are "
                f"{pair!r:.80}"
            )
        if any(isinstance(end, str) for end in pair):
            raise InvalidInput(
                f"{where}: the bounds of {name!r} must be fixed numbers, but are {pair!r:.80}; a "
                f'limit that changes is a row, with sum = "{name}" and at_most = "its column"'
            )
        low, high = (require_number(where, f"a bound of {name!r}", end) for end in pair)
        if low > high:
            raise InvalidInput(f"{where}: {name!r} is bounded by {low:g} and {high:g}, which is "
                               "nothing: the least comes first")  # fmt: skip
        found.append((low, high))
    return np.array(found).T


def _copies(where: str, given: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    each: dict[str, Any] = dict.fromkeys(names, given)
    if isinstance(given, Mapping):
        _require_decisions(where, "copies", given, names)
        each = {name: given.get(name, 1) for name in names}
    for name, count in each.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 100_000:
            raise InvalidInput(
                f"{where}: copies of {name!r} must be a whole number, at least 1 and at most "
                f"100000, but is {count!r:.80}"
            )
    return tuple(each.values())


def _shares(where: str, given: Any, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Groups of decisions that add up to the total, each group standing together."""
    if given is None:
        return ()
    if given == ALL or given is True:
        return (names,)
    listed = isinstance(given, list | tuple)
    groups = given if listed and given and not isinstance(given[0], str) else [given]
    found = [_names(where, "shares", group) for group in groups]
    for group in found:
        _require_decisions(where, "shares", group, names)
        first = names.index(group[0])
        if names[first : first + len(group)] != group:
            raise InvalidInput(
                f"{where}: shares {list(group)} must stand side by side in decide, in this order"
            )
    if len({name for group in found for name in group}) < sum(map(len, found)):
        raise InvalidInput(f"{where}: shares has a decision in two groups")
    return tuple(found)


def _require_decisions(where: str, key: str, given: Iterable[Any], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            hint = nearest(name, names) if isinstance(name, str) else ""
            raise InvalidInput(
                f"{where}: {key} names {name!r:.80}, which is not decided{hint}; decide has "
                f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}"
            )


def _term(where: str, key: str, value: Any) -> Term:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, str | list | tuple | Mapping):
        raise InvalidInput(
            f"{where}: {key} must be a number or the name of a column, but is {value!r:.80}"
        )
    return require_number(where, key, value)


def _terms(where: str, key: str, given: Any, names: tuple[str, ...]) -> tuple[Term, ...] | None:
    """A number or column for every decision, none of them forgotten."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        _require_decisions(where, key, given, names)
        for name in names:
            if name not in given:
                raise InvalidInput(f"{where}: {key} says nothing of {name!r}; {name} = 0 would")
        return tuple(_term(where, f"{key} of {name!r}", given[name]) for name in names)
    one = _term(where, key, given)
    return tuple(one.replace(STAR, name) if isinstance(one, str) else one for name in names)


def _summed(where: str, given: Any, names: tuple[str, ...]) -> tuple[Term, ...]:
    """The coefficients of a sum: of all decisions, of some, or with weights by name."""
    if isinstance(given, Mapping) and given:
        _require_decisions(where, "sum", given, names)
        weights = {name: _term(where, f"sum of {name!r}", given[name]) for name in given}
        return tuple(weights.get(name, 0.0) for name in names)
    if given == ALL:
        return (1.0,) * len(names)
    if isinstance(given, str) and STAR in given:
        return tuple(given.replace(STAR, name) for name in names)
    chosen = (given,) if isinstance(given, str) else _names(where, "sum", given)
    _require_decisions(where, "sum", chosen, names)
    return tuple(float(name in chosen) for name in names)


def _limit(where: str, key: str, given: Any) -> float | tuple[str, ...]:
    """A number, a column, or columns to add up."""
    if isinstance(given, list | tuple):
        return _names(where, key, given)
    one = _term(where, key, given)
    return (one,) if isinstance(one, str) else one


def _one_row(where: str, k: int, keys: Mapping[str, Any], names: tuple[str, ...]) -> Row:
    called = keys.get("name")
    name = f"row {k}" if called is None else repr(called)
    where = f"{where}, {name}"
    require_keys(where, keys, ROW_KEYS)
    require_text(where, "name", called, optional=True)
    given = [(key, _limit(where, key, keys[key])) for key in LIMITS if key in keys]
    if not given or (len(given) > 1 and "equal" in keys):
        raise InvalidInput(
            f"{where}: needs at_most, at_least, both of them, or equal, but has "
            f"{' and '.join(key for key, _ in given) or 'none'}"
        )
    if ("sum" in keys) == ("capacity" in keys):
        raise InvalidInput(f'{where}: needs either sum, such as sum = "all", or capacity')
    plus = _limit(where, "plus", keys.get("plus", 0.0))
    if "sum" in keys:
        return Row(name, _summed(where, keys["sum"], names), None, plus, tuple(given))
    if [key for key, _ in given] != ["at_least"]:
        raise InvalidInput(f"{where}: a capacity must be at_least something: its returns fall")
    return Row(name, None, _capacity(where, keys["capacity"], names), plus, tuple(given))


def _capacity(where: str, given: Any, names: tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    """Scale and rate of every decision; one that is not named has none."""
    where = f"{where}, capacity"
    require_keys(where, given, CAPACITY_KEYS)
    found = []
    for key in CAPACITY_KEYS:
        if key not in given:
            raise InvalidInput(f"{where}: sums scale log(1 + rate x), and needs {key}")
        each = given[key]
        if isinstance(each, Mapping):
            _require_decisions(where, key, each, names)
        else:
            each = dict.fromkeys(names, each)
        values = [require_number(where, key, each.get(name, 0.0)) for name in names]
        if min(values) < 0.0:
            raise InvalidInput(f"{where}: {key} must not be negative, but is {min(values):g}")
        found.append(values)
    return tuple(zip(*found, strict=True))


def _one_squares(where: str, keys: Mapping[str, Any], names: tuple[str, ...]) -> Squares:
    require_keys(where, keys, SQUARES_KEYS)
    for key in SQUARES_KEYS:
        if key not in keys:
            raise InvalidInput(f"{where}: is half the square of sum - to, and needs {key}")
    return Squares(_summed(where, keys["sum"], names), _limit(where, "to", keys["to"]))
