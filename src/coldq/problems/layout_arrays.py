"""What a layout says of the columns of a table, in arrays: domain, loss and rows of all slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import numpy as np

from coldq.base.arrays import Array, Value, real_array
from coldq.base.errors import InvalidInput
from coldq.problems.columns import at
from coldq.problems.layout import LIMIT_SIGNS, Layout, Limit, Row, Terms
from coldq.problems.units import LIMIT_TOLERANCE
from coldq.slot.constraints import Affine, LogCapacity, Stacked
from coldq.slot.domains import Box, Polytope, Product, Simplex
from coldq.slot.losses import LeastSquares, Linear, Quadratic


def coordinates_of(layout: Layout) -> tuple[str, ...]:
    """The names of the coordinates: copies of a decision are counted from 1."""
    return tuple(
        name if count == 1 else f"{name} {k}"
        for name, count in zip(layout.decisions, layout.copies, strict=True)
        for k in range(1, count + 1)
    )


def domain_of(layout: Layout) -> Any:
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


def _terms_of(terms: Terms, columns: Mapping[str, Array], copies: Sequence[int]) -> Array:
    """Terms as an array over coordinates, with the slots before if a column is among them."""
    given = [columns[term] if isinstance(term, str) else term for term in terms]
    return np.repeat(np.stack(np.broadcast_arrays(*given), axis=-1), copies, axis=-1)


def _limit_of(limit: Limit, columns: Mapping[str, Array]) -> Array:
    """A number, or columns added up in their order."""
    if not isinstance(limit, tuple):
        return np.array(limit)
    return reduce(np.add, (columns[name] for name in limit))


def loss_of(layout: Layout, columns: Mapping[str, Array], slots: int) -> Any:
    """Linear, least squares, or both together as a quadratic."""
    c = None
    if layout.cost is not None:
        c = _terms_of(layout.cost, columns, layout.copies)
    if layout.gain is not None:
        gain = _terms_of(layout.gain, columns, layout.copies)
        c = -gain if c is None else c - gain
    if not layout.least_squares:
        return Linear(np.broadcast_to(c, (slots, np.shape(c)[-1])))  # type: ignore[arg-type]
    rows = [_terms_of(one.sum, columns, layout.copies) for one in layout.least_squares]
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


def constraint_of(
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
                    A.append(side * _terms_of(row.sum or (), columns, layout.copies))
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


def require_uncrossed(
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


def require_defined(layout: Layout, domain: Any) -> None:
    """Raise where a decision may be so low that a capacity is not defined."""
    low = domain.box.lower
    for row in layout.rows:
        rate = np.repeat(row.capacity.rate, layout.copies) if row.capacity else np.zeros(len(low))
        if (rate * low <= -1.0).any():
            k = int(np.argmax(rate * low <= -1.0))
            raise InvalidInput(
                f"{layout.where}: a capacity is defined where rate x > -1, but "
                f"{coordinates_of(layout)[k]!r} goes down to {low[k]:g}"
            )
