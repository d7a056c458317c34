"""Power for a state: dispatch eleven zones for a load that nobody announces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.describe import describable
from coldq.problems import data
from coldq.problems.nyiso import DAY_AND_WEEK, SLOTS_A_DAY, ZONES
from coldq.problems.problem import horizon_of
from coldq.problems.slots import WholeProblem
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box, Domain
from coldq.slot.losses import Linear

ISLAND_ZONES = ("N.Y.C.", "LONGIL")  # behind lines of limited capacity
IMPORT_LIMITS = np.array([0.0, 3500.0, 2500.0])  # MW that a row's zones can get from elsewhere
POWER_RATIO = 2.5  # what a zone can make, over its mean load of the first day


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dispatch(WholeProblem):
    """Power x (MW) of the eleven zones of New York for the load of every five minutes.

    ``f_t(x) = <c_t, x>`` with the zones' real-time prices, ``0 <= x_i <= 2.5`` times the zone's
    mean load of the first day, and three rows ``g_t(x) <= 0``: all load less all power; the load of
    N.Y.C. and Long Island less 3,500 MW of import and their power; that of N.Y.C. less 2,500 MW and
    its power. Loads and prices are those of 23 to 29 October 2016; every seed sees the same.

    Parameters
    ----------
    horizon
        T, at most the 2016 slots of the week.

    >>> import coldq
    >>> problem = coldq.problems.Dispatch()
    >>> problem.horizon, problem.domain.dim, problem.n_constraints
    (2016, 11, 3)
    """

    horizon: int
    domain: Domain
    n_constraints = 3
    periods = DAY_AND_WEEK

    def __init__(self, horizon: int | None = None) -> None:
        loads = october_2016("load")
        T = horizon_of(horizon, len(loads), "the week has")
        self._set(horizon=T, domain=Box(0.0, POWER_RATIO * loads[:SLOTS_A_DAY].mean(axis=0)))

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sentences on where the data comes from, and what of the problem is made up."""
        return (
            "Loads: NYISO actual zonal load (P-58B), five-minute intervals, 23 to 29 October 2016.",
            "Prices: NYISO real-time zonal LBMP (P-24A) of the same intervals.",
            "What a zone can make and what lines carry is made up.",
        )

    @property
    def loss(self) -> Linear:  # type: ignore[override]
        """The prices, of all slots."""
        return Linear(october_2016("lbmp")[: self.horizon])

    @property
    def constraint(self) -> Affine:  # type: ignore[override]
        """The load less the power, of all slots."""
        return Affine(_rows(), -_demand()[: self.horizon])

    @property
    def tighten(self) -> Callable[[Any, Array], Affine]:
        """A safety margin multiplies every load by 1 + h and leaves the imports as they are."""
        return more_load


def more_load(rows: Affine, safety_margin: Array) -> Affine:
    """The rows of a slot with every load times 1 + the safety margin."""
    load = IMPORT_LIMITS - rows.b
    return rows.tightened(safety_margin[..., None] * load)


def _rows() -> Array:
    """A, whose rows count the power of all zones, of both islands and of the city."""
    counted = [ZONES, ISLAND_ZONES, ISLAND_ZONES[:1]]
    return -np.array([[float(zone in zones) for zone in ZONES] for zones in counted])


def _demand() -> Array:
    """What the power must be at least, (T, 3); zones are added up in their order."""
    loads = october_2016("load")
    demand = [np.add.accumulate(loads[:, row != 0.0], axis=1)[:, -1] for row in _rows()]
    return np.stack(demand, axis=1) - IMPORT_LIMITS


@cache
def october_2016(what: str) -> Array:
    """The "load" (MW) or the "lbmp" ($/MWh) of the eleven zones, (2016, 11).

    >>> from coldq.problems.dispatch import october_2016
    >>> october_2016("load").shape
    (2016, 11)
    """
    zones, values = data.columns(f"nyiso-{what}-5min-2016-10-23_2016-10-29.csv.gz")
    assert zones == ZONES
    return values
