"""The history of an agent's rounds, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import Error
from coldq.base.tabular import Tabular, numbered
from coldq.slot.step.residuals import worst_of

MAX_COORDINATES = 32  # of a decision, in columns of a table


@dataclass(frozen=True, eq=False, repr=False)
class History(Tabular):
    """A table with a row for each settled round and member of a batch; `columns` are arrays.

    `x_i` is coordinate i of the decision that was played, counted from 1, as far as there are 32.
    `loss` is f(x) at the decision x that was played, `violation` the sum of the rows' [g(x)]_+, and
    `violation_n` that of row n, counted from 1. `queue_n`, `multipliers_n` and `margin_n` are the
    learner's after the round, if it has such. `residual` is that of its step, `seconds` what the
    update took. What is not known is NaN: a loss that was revealed without its value, or
    everything about a round that was skipped. Functions of your own are asked for their values when
    the table is made.

    >>> import coldq
    >>> agent = coldq.Agent(coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10), n_constraints=1)
    >>> rows = coldq.Affine([[1.0, 1.0]], [-1.0])
    >>> _ = agent.observe(agent.decide().round, coldq.Linear([1.0, 2.0]), rows)
    >>> table = agent.history()
    >>> table
    History(1 row: round, status, x_1, x_2, loss, violation, violation_1, queue_1, multipliers_1,
    residual, seconds)
    >>> table.columns["violation"], table.to_arrow().num_rows
    (array([1.]), 1)
    """

    columns: dict[str, np.ndarray]

    @classmethod
    def of(cls, rounds: Sequence[Any], dual_names: Sequence[str], n_constraints: int) -> History:
        """The table of some rounds that an agent remembers."""
        members = int(np.prod(rounds[0].x.shape[:-1])) if rounds else 1
        batched = bool(rounds) and rounds[0].x.ndim > 1
        loss, over, duals = [], [], {name: [] for name in dual_names}
        for past in rounds:
            loss.append(_known(past.feedback and past.feedback.loss, past.x, (members,)))
            shape = (members, n_constraints)
            values = _known(past.feedback and past.feedback.constraint, past.x, shape)
            over.append(np.maximum(values, 0.0))
            for name, array in zip(dual_names, past.duals, strict=True):
                duals[name].append(_members(array, members, n_constraints))

        def each(values: list[Any]) -> np.ndarray:
            return np.repeat(np.array(values), members)

        violation = _joined(over, (members, n_constraints))
        columns: dict[str, np.ndarray] = {
            "round": each([past.round for past in rounds]).astype(np.int64)
        }
        if batched:
            columns["member"] = np.tile(np.arange(members), len(rounds))
        columns["status"] = each([past.status for past in rounds]).astype(str)
        dim = rounds[0].x.shape[-1] if rounds else 0
        decisions = [np.reshape(past.x, (members, dim))[:, :MAX_COORDINATES] for past in rounds]
        columns |= numbered("x", _joined(decisions, (members, 0)))
        columns["loss"] = _joined(loss, (members,))
        columns["violation"] = violation.sum(axis=-1)
        columns |= numbered("violation", violation)
        for name in dual_names:
            columns |= numbered(name, _joined(duals[name], (members, n_constraints)))
        columns["residual"] = each([worst_of(past.residuals) for past in rounds]).astype(np.float64)
        columns["seconds"] = each([past.seconds for past in rounds]).astype(np.float64)
        return cls(columns)

    def __len__(self) -> int:
        return len(self.columns["round"])

    def __repr__(self) -> str:
        count = len(self)
        return f"History({count} row{'s' if count != 1 else ''}: {', '.join(self.columns)})"

    def _columns(self) -> dict[str, np.ndarray]:
        return self.columns


def _known(function: Any, x: Array, shape: tuple[int, ...]) -> Array:
    """Values of a function at a decision; NaN where they are not known."""
    unknown, whole = np.full(shape, np.nan), x.shape[:-1] + shape[1:]
    # A learner without a use for rows takes others than were agreed on, or of more members.
    if function is None or len(getattr(function, "batch", ())) >= x.ndim:
        return unknown
    try:
        values = np.asarray(function.value(x))
    except Error:
        return unknown
    if values.ndim > len(whole) or (len(shape) > 1 and values.shape[-1:] != shape[1:]):
        return unknown
    return np.broadcast_to(values, whole).reshape(shape)


def _members(array: Any, members: int, n_constraints: int) -> Array:
    """A learner's numbers for each row; NaN for a learner that has another count of them."""
    if np.size(array) != members * n_constraints:
        return np.full((members, n_constraints), np.nan)
    return np.reshape(array, (members, n_constraints))


def _joined(parts: list[Array], shape: tuple[int, ...]) -> Array:
    return np.concatenate(parts) if parts else np.zeros((0, *shape[1:]))
