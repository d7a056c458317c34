"""Servers for a web site: rent enough of three pools for requests that nobody announces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coldq.base.arrays import Array, whole_number
from coldq.base.describe import describable
from coldq.problems.job_scheduling import request_trace
from coldq.problems.nyiso import DAY_AND_WEEK
from coldq.problems.problem import horizon_of
from coldq.problems.slots import WholeProblem
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box, Domain
from coldq.slot.losses import Linear

CAPACITIES = np.array([8.0, 10.0, 12.0])  # requests in five minutes that one unit serves
MAX_UNITS = np.array([20.0, 60.0, 100.0])  # of each pool
RESERVED_PRICE, ON_DEMAND_PRICE = 6.0, 12.0  # of a unit in five minutes
MEDIAN_SPOT_PRICE = 14.0  # of a unit, where z_t is 0


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Autoscale(WholeProblem):
    """Units of three pools for the requests of every five minutes, as cheap as possible.

    ``f_t(x) = <c_t, x>`` and ``g_t(x) = d_t - <(8, 10, 12), x>``: requests d_t to a NASA web
    server, at most (20, 60, 100) units, prices 6, 12 and ``14 exp(0.6 z_t)``. The third is a spot
    market, ``z_1 = 0`` and ``z_t = 0.98 z_{t-1} + 0.12 e_t`` with e_t standard normal. The requests
    are real, the prices are drawn, once: every seed sees the same.

    Parameters
    ----------
    horizon
        T, at most the 2880 slots of the requests.
    price_seed
        That of the spot market.

    >>> import coldq
    >>> problem = coldq.problems.Autoscale()
    >>> problem.horizon, problem.domain.upper
    (2880, array([ 20.,  60., 100.]))
    """

    horizon: int
    price_seed: int
    domain: Domain
    n_constraints = 1
    periods = DAY_AND_WEEK

    def __init__(self, horizon: int | None = None, *, price_seed: int = 7) -> None:
        T = horizon_of(horizon, len(request_trace()), "the request trace has")
        seed = whole_number("price_seed", price_seed, 0)
        self._set(horizon=T, price_seed=seed, domain=Box(0.0, MAX_UNITS))

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sentences on where the data comes from, and which of it is not real."""
        return (
            "Requests: per five minutes to a NASA web server, 1 to 10 July 1995 (Internet Traffic "
            "Archive, NASA-HTTP).",
            f"Prices, capacities and limits are made up; the spot price is drawn, from seed "
            f"{self.price_seed}.",
        )

    @property
    def loss(self) -> Linear:  # type: ignore[override]
        """The prices, of all slots."""
        return Linear(self._prices())

    @property
    def constraint(self) -> Affine:  # type: ignore[override]
        """The requests less what the units serve, of all slots."""
        return Affine(-CAPACITIES[None], -request_trace()[: self.horizon, None])

    def _prices(self) -> Array:
        """c_t for every slot, (T, 3)."""
        noise = np.random.default_rng(self.price_seed).standard_normal(self.horizon)
        z = np.zeros(self.horizon)
        for t in range(1, self.horizon):
            z[t] = 0.98 * z[t - 1] + 0.12 * noise[t]
        fixed = np.broadcast_to([RESERVED_PRICE, ON_DEMAND_PRICE], (self.horizon, 2))
        return np.column_stack([fixed, MEDIAN_SPOT_PRICE * np.exp(0.6 * z)])
