"""Problems: what a learner plays against. Each is a frozen value; its randomness is its seed."""

from coldq.problems.adversary import Adversary
from coldq.problems.autoscale import Autoscale
from coldq.problems.dispatch import Dispatch
from coldq.problems.drifting import Drifting
from coldq.problems.fixed_constraints import OnlineLinear, OnlineQuadratic
from coldq.problems.job_scheduling import JobScheduling
from coldq.problems.lower_bound import LowerBound
from coldq.problems.nyiso import ZonalPrices, read_nyiso
from coldq.problems.problem import Constants, Problem
from coldq.problems.table import FromTable, from_table
from coldq.problems.time_varying import TimeVarying

__all__ = [
    "Adversary",
    "Autoscale",
    "Constants",
    "Dispatch",
    "Drifting",
    "FromTable",
    "JobScheduling",
    "LowerBound",
    "OnlineLinear",
    "OnlineQuadratic",
    "Problem",
    "TimeVarying",
    "ZonalPrices",
    "from_table",
    "read_nyiso",
]
