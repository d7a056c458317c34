"""Problems from tables: a row a slot, columns by name, and a few keys that say what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.arrays import Array, Value, real_array, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput, NotSaveable
from coldq.base.keys import read_toml
from coldq.problems.columns import at, read_table
from coldq.problems.files import beside, is_path, require_file, stem_of, suffix_of
from coldq.problems.gaps import filled, slots_of
from coldq.problems.layout import LIMIT_SIGNS, Layout, Limit, Row, Terms, layout_of
from coldq.problems.slots import WholeProblem
from coldq.problems.units import LIMIT_TOLERANCE, doubt_units
from coldq.slot.constraints import Affine, LogCapacity, Stacked
from coldq.slot.domains import Box, Polytope, Product, Simplex
from coldq.slot.losses import LeastSquares, Linear, Quadratic


def from_table(
    table: Any,
    layout: str | PathLike[str] | Mapping[str, Any] | None = None,
    *,
    horizon: int | None = None,
    **keys: Any,
) -> FromTable:
    """A problem from a table of what was: a row a slot, its columns matched by name.

    Parameters
    ----------
    table
        A frame of pandas, Polars, Arrow or whatever else narwhals knows, a mapping of columns by
        name, or a path: to a file of CSV, parquet or npz, or to the TOML file that lies beside one.
        An index of pandas is a column of its name.
    layout
        What the columns mean, if no TOML of the table's name lies beside it: the path of a TOML
        file, or its keys. Keys may also be given as further arguments, and go before.
    horizon
        T, if not all rows are to be slots.
    keys
        What is decided (`decide`, `between`, `copies`, `shares`, `total`), what it costs (`cost`,
        `gain`, `least_squares`), what must hold (`rows`, each a `sum` or a `capacity`, `plus`, and
        its limits `at_most`, `at_least` or `equal`), and how the table is read (`time`,
        `time_format`, `gaps`, `about`). The page "Your own table" has all of them.

    Returns
    -------
    FromTable
        Its `loss` and `constraint` have the slots as their leading axis.

    >>> import coldq
    >>> table = {"price": [3.0, 2.0, 4.0], "load": [5.0, 7.0, 6.0]}
    >>> problem = coldq.problems.from_table(
    ...     table, decide={"grid": [0, 9], "diesel": [0, 9]}, cost={"grid": "price", "diesel": 3.5},
    ...     rows=[{"sum": "all", "at_least": "load"}],
    ... )
    >>> problem
    FromTable(the table: 3 slots, 2 decisions, 1 row)
    >>> coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0]).loss.shape
    (1, 3)
    """
    title = "the table"
    if is_path(table):
        table, layout, title = _files_of(Path(table), layout, keys)
    where = str(layout) if is_path(layout) else "the layout"
    said = (_keys_of(layout) if layout is not None else {}) | keys
    meant = layout_of(said, where)
    read = read_table(table, meant.columns(), meant.time, meant.time_format)
    if horizon is not None:
        horizon = whole_number("horizon", horizon, 2)
        if meant.gaps != "skip":  # where every row is a slot, later ones do not matter
            read = read.first(horizon)
    slots, notes = slots_of(read, meant.gaps)
    if horizon is not None:
        if horizon > len(slots):
            raise InvalidInput(f"horizon is {horizon}, but {read.name} has {len(slots)} slots")
        slots = slots[:horizon]
    if len(slots) < 2:
        raise InvalidInput(f"{read.name}: a problem needs two whole rows, but has {len(slots)}")
    columns = {name: filled(column)[slots] for name, column in read.numbers.items()}
    provenance = tuple(filter(None, (meant.about, f"Data: {read.name}.", *notes)))
    _require_uncrossed(read.name, meant, columns, slots)
    problem = FromTable._of(title, meant, said, columns, len(slots), provenance)
    doubt_units(problem, read.name, columns, slots)
    return problem


# Keys that say how a table is read, which is over when there is a problem.
READING_KEYS = ("table", "time", "time_format", "gaps", "about")


def _as_data(part: Any) -> Any:
    """A key's number or list of another library as plain data."""
    if hasattr(part, "tolist"):
        return part.tolist()
    raise NotSaveable(f"a table's keys hold {part!r:.80}, which cannot be described")


def _files_of(
    path: Path, layout: Any, keys: Mapping[str, Any]
) -> tuple[Path, str | PathLike[str] | Mapping[str, Any] | None, str]:
    """The table of a path, what its columns mean, and the title: the name of the file given."""
    if not path.name:
        raise InvalidInput(f"table must be the name of a file, but is {str(path)!r}")
    title = stem_of(path)  # not of the file that a TOML leads to: several may share their table
    if suffix_of(path) == ".toml":
        if layout is not None:
            raise InvalidInput(f"{path} is a layout already, so that no other is taken")
        return beside(path, {**read_toml(path), **keys}), path, title
    if layout is None:
        require_file(path)
        toml = path.with_name(f"{title}.toml")
        layout = toml if toml.is_file() else None
        if layout is None and not keys:
            raise InvalidInput(
                f"{path}: what its columns mean is not said: no {toml.name} lies beside it; "
                "coldq new writes one as an example"
            )
    return path, layout, title


def _keys_of(layout: Any) -> dict[str, Any]:
    if is_path(layout):
        return read_toml(Path(layout))
    if not isinstance(layout, Mapping):
        raise InvalidInput(
            f"layout must be the path of a TOML file, or its keys, but is a {type(layout).__name__}"
        )
    return dict(layout)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromTable(WholeProblem):
    """A problem that :func:`from_table` has made of a table; every seed sees the same.

    `loss` and `constraint` hold all slots, as their leading axis; `decisions` names the
    coordinates, `row_names` the rows.

    >>> import coldq
    >>> problem = coldq.problems.from_table(
    ...     {"load": [5.0, 7.0]}, decide={"grid": [0, 9]}, cost=2.0,
    ...     rows=[{"sum": "all", "at_least": "load"}],
    ... )
    >>> problem.constraint.b.ravel(), problem.row_names
    (array([-5., -7.]), ('row 1',))
    """

    title: str
    decisions: tuple[str, ...]
    row_names: tuple[str, ...]
    horizon: int
    domain: Any
    loss: Any
    constraint: Any
    tighten: Callable[[Any, Array], Any]
    provenance: tuple[str, ...]
    n_constraints: int = 0
    _keys: Mapping[str, Any] = field(default_factory=dict)
    _columns: Mapping[str, Array] = field(default_factory=dict)

    def __init__(self) -> None:
        raise InvalidInput("a FromTable is made of a table, by coldq.problems.from_table")

    @classmethod
    def _of(
        cls,
        title: str,
        layout: Layout,
        keys: Mapping[str, Any],
        columns: dict[str, Array],
        horizon: int,
        provenance: tuple[str, ...],
    ) -> FromTable:
        problem = cls.__new__(cls)
        constraint, tighten, names = _constraint(layout, columns, horizon)
        problem._set(
            title=title,
            decisions=tuple(_coordinates(layout)),
            row_names=names,
            horizon=horizon,
            domain=_domain(layout),
            loss=_loss(layout, columns, horizon),
            constraint=constraint,
            tighten=tighten,
            provenance=provenance,
            n_constraints=0 if constraint is None else constraint.n_constraints,
            _keys=deepcopy(keys),  # whoever gave them may change them for the next problem
            _columns=columns,
        )
        _require_defined(problem, layout)
        return problem

    # What it is made of: it is saved and compared as that.

    def _arguments(self) -> dict[str, Any]:
        keys = {name: part for name, part in self._keys.items() if name not in READING_KEYS}
        said = {"keys": keys, "columns": list(self._columns)}
        numbers = np.array(list(self._columns.values())).reshape(-1, self.horizon)
        return {
            "title": self.title,
            "layout": json.dumps(said, default=_as_data),
            "numbers": numbers,
            "provenance": self.provenance,
        }

    @classmethod
    def _of_parts(
        cls, title: str, layout: str, numbers: Array, provenance: Sequence[str]
    ) -> FromTable:
        """The problem that was described so."""
        try:
            said = json.loads(layout)
            keys, names = dict(said["keys"]), [str(name) for name in said["columns"]]
            numbers = np.atleast_2d(np.asarray(numbers, float))
            columns = dict(zip(names, numbers, strict=True))
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise InvalidInput(f"this is no description of a table: {error!r:.200}") from None
        meant = layout_of(keys, "the description")
        missing = [name for name in meant.columns() if name not in columns]
        if missing or numbers.shape[1] < 2 or not np.isfinite(numbers).all():
            raise InvalidInput(
                "a description of a table needs a finite number for every column and slot, and two "
                f"slots, but has {numbers.shape} numbers"
                + (f" and no column {missing[0]!r:.80}" if missing else "")
            )
        # Text throughout, also where it reads as a number that JSON has not: "nan", "inf".
        title, provenance = str(title), tuple(map(str, provenance))
        return cls._of(title, meant, keys, columns, numbers.shape[1], provenance)

    def _contents(self) -> tuple[Any, ...]:
        made_of = self._arguments()
        numbers = made_of.pop("numbers")
        return (*made_of.values(), numbers.shape, numbers.tobytes())

    def __repr__(self) -> str:
        n, p, N = self.horizon, len(self.decisions), self.n_constraints
        return (
            f"FromTable({self.title}: {n} slots, {p} decision{'s' if p != 1 else ''}, {N} "
            f"row{'s' if N != 1 else ''})"
        )


# What the layout says, in arrays


def _coordinates(layout: Layout) -> Iterable[str]:
    for name, count in zip(layout.decisions, layout.copies, strict=True):
        yield from [name] if count == 1 else (f"{name} {k}" for k in range(1, count + 1))


def _domain(layout: Layout) -> Any:
    """A box, and a simplex for every group of shares."""
    low, high = np.repeat(layout.bounds(), layout.copies, axis=1)
    ends = dict(zip(layout.decisions, np.cumsum(layout.copies).tolist(), strict=True))
    begins = {name: ends[name] - n for name, n in zip(ends, layout.copies, strict=True)}
    parts, done = [], 0
    for group in sorted(layout.shares, key=lambda names: begins[names[0]]):
        first, last = begins[group[0]], ends[group[-1]]
        if first > done:
            parts.append(Box(low[done:first], high[done:first]))
        parts.append(_shared(layout, group, low[first:last], high[first:last]))
        done = last
    if done < len(low):
        parts.append(Box(low[done:], high[done:]))
    return parts[0] if len(parts) == 1 else Product(*parts)


def _shared(layout: Layout, group: Sequence[str], low: Array, high: Array) -> Any:
    """Decisions that add up to the total, within their bounds."""
    total, words = layout.total, f"{layout.where}: the shares {list(group)[:8]}"
    if low.sum() > total or high.sum() < total:
        raise InvalidInput(
            f"{words} cannot add up to {total:g}: within their bounds they add up to "
            f"{low.sum():g} at least and {high.sum():g} at most"
        )
    if (low == 0.0).all() and (high == high[0]).all():
        return Simplex(len(low), total, high[0] if high[0] < total else np.inf)
    return Polytope(lower=low, upper=high, A_eq=np.ones((1, len(low))), b_eq=[total])


def _table_of(terms: Terms, columns: Mapping[str, Array], copies: Sequence[int]) -> Array:
    """Terms as an array over coordinates, with the slots before if a column is among them."""
    given = [columns[term] if isinstance(term, str) else term for term in terms]
    return np.repeat(np.stack(np.broadcast_arrays(*given), axis=-1), copies, axis=-1)


def _limit_of(limit: Limit, columns: Mapping[str, Array]) -> Array:
    """A number, or columns added up in their order."""
    if not isinstance(limit, tuple):
        return np.array(limit)
    return reduce(np.add, (columns[name] for name in limit))


def _loss(layout: Layout, columns: Mapping[str, Array], slots: int) -> Any:
    """Linear, least squares, or both together as a quadratic."""
    c = None
    if layout.cost is not None:
        c = _table_of(layout.cost, columns, layout.copies)
    if layout.gain is not None:
        gain = _table_of(layout.gain, columns, layout.copies)
        c = -gain if c is None else c - gain
    if not layout.least_squares:
        return Linear(np.broadcast_to(c, (slots, np.shape(c)[-1])))  # type: ignore[arg-type]
    rows = [_table_of(one.sum, columns, layout.copies) for one in layout.least_squares]
    targets = [_limit_of(one.to, columns) for one in layout.least_squares]
    H = np.stack(np.broadcast_arrays(*rows), axis=-2)
    y = np.stack([np.broadcast_to(target, slots) for target in targets], axis=-1)
    squares = LeastSquares(H, y)
    if c is None:
        return squares
    P, q, r = squares.quadratic()
    return Quadratic(P, q + c, r)


@dataclass(frozen=True, eq=False, repr=False)
class LimitShare(Value):
    """A safety margin tightens the rows of a table by a share of the limit that the table names.

    A number that is added to a sum, an import for instance, is left as it is; equalities too.
    Columns that are added are taken off the limit first. A row's limit is ``|plus + sign b|``, b
    being that of the affine row or the demand of a capacity.
    """

    plus: Array
    sign: Array

    def __call__(self, g: Any, safety_margin: Array) -> Any:
        """The rows g with their limits larger, or smaller, by this share."""
        if isinstance(g, Stacked):
            b = np.concatenate([_limits(part) for part in g.parts], axis=-1)
        else:
            b = _limits(g) if g.n_constraints else np.zeros(0)
        return g.tightened(safety_margin[..., None] * np.abs(self.plus + self.sign * b))


def _limits(g: Any) -> Array:
    return g.demand[..., None] if isinstance(g, LogCapacity) else g.b


def _constraint(
    layout: Layout, columns: Mapping[str, Array], slots: int
) -> tuple[Any, LimitShare, tuple[str, ...]]:
    """All rows in their order, what tightens them, and their names."""
    parts: list[Any] = []
    plus, sign, names = list[float](), list[float](), list[str]()
    for is_sum, rows in groupby(layout.rows, lambda row: row.capacity is None):
        A, b = list[Array](), list[Array]()
        for row in rows:
            equal = "equal" in row.limits
            for side, value, label in _sides(row, columns):
                level = np.broadcast_to(value, slots)
                if row.capacity is not None:
                    pair = np.array([row.capacity.scale, row.capacity.rate])
                    parts.append(LogCapacity(level, *np.repeat(pair, layout.copies, axis=1)))
                else:
                    A.append(side * _table_of(row.sum or (), columns, layout.copies))
                    b.append(level)
                names.append(label)
                plus.append(0.0 if equal or isinstance(row.plus, tuple) else row.plus)
                sign.append(0.0 if equal else side)
        if is_sum:
            parts.append(Affine(np.stack(np.broadcast_arrays(*A), axis=-2), np.stack(b, axis=-1)))
    whole = None if not parts else parts[0] if len(parts) == 1 else Stacked(*parts)
    tighten = LimitShare(real_array("plus", plus, 0), real_array("sign", sign, 0))
    return whole, tighten, tuple(names)


def _sides(row: Row, columns: Mapping[str, Array]) -> Iterable[tuple[float, Array, str]]:
    """The rows ``A x <= b`` of one line: the sign of A, b, and a name; of a capacity its demand."""
    for key, limit in row.limits.items():
        value = _limit_of(limit, columns) - _limit_of(row.plus, columns)
        sides = (1.0, -1.0) if key == "equal" else (LIMIT_SIGNS[key],)
        if row.capacity is not None:  # `LogCapacity` turns the signs itself
            sides = (1.0,)
        for side in sides:
            many = len(sides) + len(row.limits) > 2
            label = f"{row.label}, {'at most' if side > 0.0 else 'at least'}" if many else row.label
            yield side, value if side > 0.0 else -value, label


def _require_uncrossed(
    table: str, layout: Layout, columns: Mapping[str, Array], slots: np.ndarray
) -> None:
    """Raise where a row must be at least more than it may be at most: no decision is."""
    for row in layout.rows:
        both = {key: _limit_of(limit, columns) for key, limit in row.limits.items()}
        if len(both) < 2:
            continue
        low, high = np.broadcast_arrays(both["at_least"], both["at_most"], slots)[:2]
        crossed = low > high + LIMIT_TOLERANCE * (np.abs(low) + np.abs(high))
        if crossed.any():
            k = int(np.argmax(crossed))
            raise InvalidInput(
                f"{table}: {row.label} of the layout is to be at least {low[k]:g} and at most "
                f"{high[k]:g} {at(int(slots[k]))}, which nothing is; so it is in "
                f"{int(crossed.sum()):,} of {len(slots):,} slots"
            )


def _require_defined(problem: FromTable, layout: Layout) -> None:
    for part in getattr(problem.constraint, "parts", (problem.constraint,)):
        if isinstance(part, LogCapacity):
            low = problem.domain.box.lower
            if (part.rate * low <= -1.0).any():
                k = int(np.argmax(part.rate * low <= -1.0))
                raise InvalidInput(
                    f"{layout.where}: a capacity is defined where rate x > -1, but "
                    f"{problem.decisions[k]!r} goes down to {low[k]:g}"
                )
