"""The paper's application: power for data centres under real electricity prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any

import numpy as np

from coldq.base.arrays import Array, positive, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.problems import data
from coldq.problems.nyiso import DAY_AND_WEEK, ZONES, ZonalPrices, may_2017, read_nyiso
from coldq.problems.problem import Constants, Problem, generators, horizon_of, require_bounded
from coldq.problems.slots import WholeStream
from coldq.slot.constraints import LogCapacity
from coldq.slot.domains import Box, Domain
from coldq.slot.losses import Linear

REGIONS = tuple(zone for zone in ZONES if zone != "NORTH")
PRICE_DIVISORS = {"$/MWh": 1.0, "$/kWh": 1000.0}  # what a price in $/MWh is divided by
ARRIVALS = ("poisson", "requests")
CAPACITY_SCALE, CAPACITY_RATE = 4.0, 4.0  # of a centre's capacity, 4 log(1 + 4 x)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class JobScheduling(Problem):
    """Power for 100 data centres in ten regions, so that arriving jobs are served at low cost.

    ``f_t(x) = <c_t, x>`` with c_t the electricity prices, those of a zone for all centres in it;
    ``g_t(x) = lambda_t - sum_i 4 log(1 + 4 x_i)``, the jobs that arrive less those that the power x
    can serve. A slot has five minutes. Jobs that are not served count as delayed and are not
    carried over to the next slot. The domain is [0, 1000]^100 and the default start the origin.

    Parameters
    ----------
    horizon
        T; by default all slots that the prices have, which is the paper's 2880.
    prices
        By default those of NYISO, 1 to 10 May 2017, which come with the package. They are in part
        reconstructed: `provenance` says how.
    zones
        Which zones of the prices have centres. By default all, but of the prices in the package
        all without NORTH: the paper speaks of ten regions, NYISO has eleven zones.
    price_unit
        "$/MWh", as NYISO publishes, or "$/kWh", a thousandth of it.
    arrivals
        "poisson": lambda_t is drawn from Poisson(`mean_arrivals`) for each seed. "requests": it is
        the number of requests to a web server of NASA in the five minutes, times `mean_arrivals`
        over the mean of the whole trace of 2880 slots; the same for every seed, and in some slots
        more than all centres can serve.
    mean_arrivals
        The mean number of jobs in a slot.
    centres_per_zone
        How many centres each zone has, neighbours in x.
    domain
        X, with as many coordinates as there are centres.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, section "Application to Online Job Scheduling" and appendix.

    >>> import coldq
    >>> problem = coldq.problems.JobScheduling()
    >>> problem.horizon, problem.domain
    (2880, Box(0.0, 1000.0, dim=100))
    >>> print(problem.provenance[0])
    Prices: NYISO real-time zonal LBMP (P-24A), five-minute intervals, 1 to 10 May 2017.
    """

    horizon: int
    prices: ZonalPrices
    price_unit: str
    arrivals: str
    mean_arrivals: float
    centres_per_zone: int
    domain: Domain
    n_constraints = 1
    periods = DAY_AND_WEEK

    def __init__(
        self,
        horizon: int | None = None,
        *,
        prices: ZonalPrices | None = None,
        zones: Iterable[str] | None = None,
        price_unit: str = "$/MWh",
        arrivals: str = "poisson",
        mean_arrivals: float = 2500.0,
        centres_per_zone: int = 10,
        domain: Domain | None = None,
    ) -> None:
        if prices is None:
            prices = may_2017().only(REGIONS if zones is None else zones)
        elif not isinstance(prices, ZonalPrices):
            raise InvalidInput(f"prices must be ZonalPrices, but is a {type(prices).__name__}")
        elif zones is not None:
            prices = prices.only(zones)
        for name, given, known in (
            ("price_unit", price_unit, PRICE_DIVISORS),
            ("arrivals", arrivals, ARRIVALS),
        ):
            if not isinstance(given, str) or given not in known:
                raise InvalidInput(f"{name} must be {' or '.join(known)}, but is {given!r}")
        mean = positive("mean_arrivals", mean_arrivals)
        if mean.ndim or mean > 1e12:
            raise InvalidInput(f"mean_arrivals must be one number, at most 1e12, but is {mean}")
        T = horizon_of(horizon, len(prices.values), "the prices have")
        if arrivals == "requests":
            horizon_of(T, len(request_trace()), "the request trace has")
        centres_per_zone = whole_number("centres_per_zone", centres_per_zone, 1)
        centres = centres_per_zone * len(prices.zones)
        domain = Box(0.0, 1000.0, dim=centres) if domain is None else domain
        if not (require_bounded(domain, centres).box.lower > -1.0 / CAPACITY_RATE).all():
            least = -1.0 / CAPACITY_RATE
            raise InvalidInput(f"the capacity is defined for x > {least}, not on {domain}")
        self._set(
            horizon=T, prices=prices, price_unit=price_unit, arrivals=arrivals,
            mean_arrivals=float(mean), centres_per_zone=centres_per_zone, domain=domain,
        )  # fmt: skip

    @classmethod
    def from_nyiso(
        cls,
        files: str | PathLike[str] | Iterable[str | PathLike[str]],
        horizon: int | None = None,
        *,
        zones: Iterable[str] = REGIONS,
        longest_gap: int = 3,
        **parameters: Any,
    ) -> JobScheduling:
        """The problem with prices from NYISO's own daily files, of any dates.

        :func:`read_nyiso` has the rules by which files are read; `parameters` are the problem's.

        >>> import coldq
        >>> coldq.problems.JobScheduling.from_nyiso("20170501realtime_zone.csv")
        Traceback (most recent call last):
        ...
        coldq.InvalidInput: 20170501realtime_zone.csv: cannot be read (... No such file ...
        """
        prices = read_nyiso(files, zones, longest_gap=longest_gap)
        return cls(horizon, prices=prices, **parameters)

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sentences on where the data comes from, and which of it is not as published."""
        return (*self.prices.provenance, *self._choices())

    def _choices(self) -> Iterable[str]:
        if self.prices.zones == REGIONS:
            yield (
                "NORTH is left out: the paper has ten regions and does not name them, NYISO has "
                "eleven zones. The choice is this project's."
            )
        if PRICE_DIVISORS[self.price_unit] != 1.0:
            yield f"The prices are taken in {self.price_unit}, a thousandth of $/MWh."
        if self.arrivals == "poisson":
            yield f"Arrivals: drawn from Poisson({self.mean_arrivals:g}) for each seed."
        else:
            yield (
                "Arrivals: requests per five minutes to a NASA web server, 1 to 10 July 1995 "
                "(Internet Traffic Archive, NASA-HTTP), scaled to a mean of "
                f"{self.mean_arrivals:g} over the ten days; the same for every seed."
            )

    @property
    def seeds_differ(self) -> bool:  # type: ignore[override]
        """Whether one seed is unlike another: drawn arrivals are, those of the trace are not."""
        return self.arrivals == "poisson"

    @property
    def constants(self) -> Constants:
        """R, D and the Lipschitz constant exact; G holds but for a chance of 1e-9 a run."""
        low, high = (self._capacity(x) for x in (self.domain.box.lower, self.domain.box.upper))
        note = {}
        if self.arrivals == "requests":
            demand = self._requests()
            least, most = demand.min(), demand.max()
        else:
            # Bernstein's inequality for both tails of a Poisson variable, 1e-9 for a whole run.
            mean, log = self.mean_arrivals, np.log(2.0 * self.horizon / 1e-9)
            least = max(0.0, mean - np.sqrt(2.0 * log * mean))
            most = mean + log / 3.0 + np.sqrt(np.square(log / 3.0) + 2.0 * log * mean)
            note["constraint_bound"] = (
                "arrivals are Poisson, so this holds with probability 1 - 1e-9 for a whole run"
            )
        slope = CAPACITY_SCALE * CAPACITY_RATE / (1.0 + CAPACITY_RATE * self.domain.box.lower)
        return Constants(
            diameter=float(self.domain.diameter),
            gradient_bound=float(np.sqrt(np.square(self._costs()).sum(axis=-1).max())),
            constraint_bound=float(max(most - low, high - least)),
            constraint_lipschitz=float(np.sqrt(np.square(slope).sum())),
            note=note,
        )

    def start(self, seeds: Iterable[int]) -> WholeStream:
        """One stream for all seeds; its arrivals, one number a slot and seed, are drawn here."""
        (arrivals,) = generators(3, seeds, 1)
        if self.arrivals == "requests":
            drawn = [self._requests()] * len(arrivals)
        else:
            drawn = [rng.poisson(self.mean_arrivals, self.horizon) for rng in arrivals]
        scale, rate = (np.full(self.domain.dim, level) for level in (CAPACITY_SCALE, CAPACITY_RATE))
        return WholeStream(Linear(self._costs()), LogCapacity(np.stack(drawn, axis=1), scale, rate))

    def _capacity(self, x: Array) -> float:
        return float((CAPACITY_SCALE * np.log1p(CAPACITY_RATE * x)).sum())

    def _costs(self) -> Array:
        """c_t for every slot, (T, centres)."""
        prices = self.prices.values[: self.horizon] / PRICE_DIVISORS[self.price_unit]
        return np.repeat(prices, self.centres_per_zone, axis=1)

    def _requests(self) -> Array:
        """lambda_t from the request trace."""
        trace = request_trace()
        return trace[: self.horizon] * (self.mean_arrivals / trace.mean())


@cache
def request_trace() -> Array:
    """Requests per five minutes to a NASA web server, 1 to 10 July 1995.

    >>> from coldq.problems.job_scheduling import request_trace
    >>> request_trace().shape
    (2880,)
    """
    return data.columns("nasa-http-requests-5min-1995-07-01_1995-07-10.csv.gz")[1][:, 0]
