"""Problems from tables: a row a slot, columns by name, and a few keys that say what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.arrays import Array, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput, NotSaveable
from coldq.base.keys import read_toml
from coldq.problems.columns import read_table
from coldq.problems.files import beside, is_path, require_file, stem_of, suffix_of
from coldq.problems.gaps import filled, slots_of
from coldq.problems.layout import Layout, layout_of
from coldq.problems.layout_arrays import (
    constraint_of,
    coordinates_of,
    domain_of,
    loss_of,
    require_defined,
    require_uncrossed,
)
from coldq.problems.slots import WholeProblem
from coldq.problems.units import doubt_units

# Keys that say how a table is read, which is over when there is a problem.
READING_KEYS = ("table", "time", "time_format", "gaps", "about")


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
    keys = {**_keys_of(layout), **keys}
    meaning = layout_of(keys, where)
    source = read_table(table, meaning.columns(), meaning.time, meaning.time_format)
    if horizon is not None:
        horizon = whole_number("horizon", horizon, 2)
        if meaning.gaps != "skip":  # where every row is a slot, later ones do not matter
            source = source.first(horizon)
    slots, notes = slots_of(source, meaning.gaps)
    if horizon is not None:
        if horizon > len(slots):
            raise InvalidInput(f"horizon is {horizon}, but {source.name} has {len(slots)} slots")
        slots = slots[:horizon]
    if len(slots) < 2:
        raise InvalidInput(f"{source.name}: a problem needs two whole rows, but has {len(slots)}")
    columns = {name: filled(column)[slots] for name, column in source.numbers.items()}
    provenance = tuple(filter(None, (meaning.about, f"Data: {source.name}.", *notes)))
    require_uncrossed(source.name, meaning, columns, slots)
    problem = FromTable._of(title, meaning, keys, columns, len(slots), provenance)
    doubt_units(problem, source.name, columns, slots)
    return problem


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
    if layout is None:
        return {}
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
    (array([-5., -7.]), ('constraint 1',))
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
        problem, domain = cls.__new__(cls), domain_of(layout)
        constraint, tighten, names = constraint_of(layout, columns, horizon)
        require_defined(layout, domain)
        problem._set(
            title=title,
            decisions=coordinates_of(layout),
            row_names=names,
            horizon=horizon,
            domain=domain,
            loss=loss_of(layout, columns, horizon),
            constraint=constraint,
            tighten=tighten,
            provenance=provenance,
            n_constraints=0 if constraint is None else constraint.n_constraints,
            _keys=deepcopy(keys),  # whoever gave them may change them for the next problem
            _columns=columns,
        )
        return problem

    def _arguments(self) -> dict[str, Any]:
        keys = {name: part for name, part in self._keys.items() if name not in READING_KEYS}
        layout = {"keys": keys, "columns": list(self._columns)}
        numbers = np.array(list(self._columns.values())).reshape(-1, self.horizon)
        return {
            "title": self.title,
            "layout": json.dumps(layout, default=_as_data),
            "numbers": numbers,
            "provenance": self.provenance,
        }

    @classmethod
    def _of_parts(
        cls, title: str, layout: str, numbers: Array, provenance: Sequence[str]
    ) -> FromTable:
        """The problem of this description."""
        try:
            described = json.loads(layout)
            keys, names = dict(described["keys"]), [str(name) for name in described["columns"]]
            numbers = np.atleast_2d(np.asarray(numbers, float))
            columns = dict(zip(names, numbers, strict=True))
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise InvalidInput(f"this is no description of a table: {error!r:.200}") from None
        meaning = layout_of(keys, "the description")
        missing = [name for name in meaning.columns() if name not in columns]
        if missing or numbers.shape[1] < 2 or not np.isfinite(numbers).all():
            raise InvalidInput(
                "a description of a table needs a finite number for every column and slot, and two "
                f"slots, but has {numbers.shape} numbers"
                + (f" and no column {missing[0]!r:.80}" if missing else "")
            )
        # Text throughout, also where it reads as a number that JSON has not: "nan", "inf".
        title, provenance = str(title), tuple(map(str, provenance))
        return cls._of(title, meaning, keys, columns, numbers.shape[1], provenance)

    def _contents(self) -> tuple[Any, ...]:
        parts = self._arguments()
        numbers = parts.pop("numbers")
        return (*parts.values(), numbers.shape, numbers.tobytes())

    def __repr__(self) -> str:
        n, p, N = self.horizon, len(self.decisions), self.n_constraints
        return (
            f"FromTable({self.title}: {n} slots, {p} decision{'s' if p != 1 else ''}, {N} "
            f"row{'s' if N != 1 else ''})"
        )
