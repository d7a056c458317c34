"""An error budget: when more slots were violated than a rate allows, decisions play safe.

Let s_t^n be the surprise of row n, its value minus the forecast that the decision was made with,
v_t = 1 if a row was violated in slot t, and q the rate. The overdraft is ``D_0 = 0``,

    D_t = max(0, D_{t-1} + v_t - q).

A *stretch* begins when ``D_t > slack_t`` and ends when ``D_t <= slack_t``, where
``slack_t = min(20, 5 + 2 sqrt(q t))``. M^n is the largest surprise of row n, forgotten slowly
outside of stretches, and P^n the record, which is not forgotten. In a stretch rows are tightened by
M^n at least. At its j-th violation every row gets

    M^n = max(M^n, min(P^n, exp(2^(j-1)) M^n)),  with P as it was when the stretch began,

and a violated row whose surprise was above that same P^n, or whose M^n was at it already,
``max(e max(M^n, P^n), 1.05 s^n)``. docs/keep-a-violation-rate.md has the theorem: however the
surprises were chosen, the violations of slots a to b are at most

    q (b - a + 1) + slack_b - D_{a-1} + [b in a stretch] (1 - q) (1 + k).

It is kept by native/learners/error_budget.hpp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.contractions import Contraction

MOST_SLACK, FIRST_SLACK, SLACK_GROWTH = 20.0, 5.0, 2.0  # violations

book_slot = Contraction("book", "A budget's counts and rows after a slot, see :func:`book`.")
tighten_rows = Contraction(
    "tighten", "Margins of (overdraft, stretch, largest, rate, t, ordinary), see :func:`tighten`."
)


class Budget(NamedTuple):
    """The numbers of an error budget, over the batch, and those of its rows (N).

    `violations` and `reduced` count the violated slots of the latest stretch, those of decisions
    that could not be tightened as far as M apart; `entry_largest`, `entry_record` are M and P when
    it began, and `highest` the largest surprise in it.
    """

    overdraft: Array
    stretch: Array
    violations: Array
    reduced: Array
    largest: Array
    record: Array
    entry_largest: Array
    entry_record: Array
    highest: Array

    @classmethod
    def first(cls, batch: tuple[int, ...], rows: int) -> Budget:
        """Before slot 1."""
        return cls(
            *(np.zeros(batch) for _ in range(4)), *(np.zeros((*batch, rows)) for _ in range(5))
        )


def slack_of(rate: Any, slots: Any) -> Array:
    """How far the overdraft may go without a stretch after so many slots."""
    return np.minimum(MOST_SLACK, FIRST_SLACK + SLACK_GROWTH * np.sqrt(rate * slots))


def book(
    budget: Budget,
    rate: Any,
    t: Array,
    violated: np.ndarray,
    surprise: Array,
    tolerance: Array,
    *,
    infeasible: Any,
    reduced: Any,
) -> Budget:
    """The budget after slot t, whose rows were `violated` or not, by surprises `surprise` (N).

    A surprise below the `tolerance` of a row counts as that. A slot that was infeasible is not
    booked; in one whose decision was reduced, a violation says nothing of M, nor does the first of
    a row that had no surprise when the stretch began: that row's entry is then.
    """
    counts, rows = np.stack(budget[:4], axis=-1), budget[4:]
    found, *rows = book_slot(
        counts, *rows, rate, t, violated, surprise, tolerance, infeasible, reduced
    )
    return Budget(*(found[..., k] for k in range(4)), *rows)


def tighten(budget: Budget, rate: Any, t: Array, ordinary: Array) -> Array:
    """The margins of slot t + 1: the ordinary ones, more of M the further the overdraft has gone.

    From half of the slack on margins are at least a share of M, all of it in a stretch.
    """
    return tighten_rows(budget.overdraft, budget.stretch, budget.largest, rate, t, ordinary)


def overdraft_bound(budget: Budget, rate: Any, t: Array, delay: Any = 0) -> Array:
    """The most that the overdraft can be after slot t, by the theorem, of feedback so late."""
    rows = budget.largest.shape[-1]
    known = (budget.entry_largest > 0.0) & (budget.entry_record > 0.0)
    m = np.where(known, budget.entry_largest, 1.0)
    P, S = np.where(known, budget.entry_record, 1.0), budget.highest
    lifts = np.ceil(np.log2(1.0 + np.log(np.maximum(P / m, 1.0)))).max(axis=-1, initial=0.0)
    breaks = np.where(known, np.ceil(np.log(np.maximum(S / P, 1.0))), 0.0)
    k = lifts + sum(breaks[..., n] for n in range(rows))
    extra = (1.0 - rate) * (1.0 + k + budget.reduced + rows * delay)
    return slack_of(rate, t) + np.where(budget.stretch > 0.0, extra, 0.0)
