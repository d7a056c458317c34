"""A small reproduction that has all a report must cope with: real runs, but few and short."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from coldq.learners import OGD
from coldq.paper.claims import check_claims
from coldq.paper.figures import Entry, Setting, find
from coldq.paper.published import end_points
from coldq.paper.reproduce import Reproduction
from coldq.paper.runs import Stepping, run_figures
from coldq.problems import OnlineLinear, OnlineQuadratic, TimeVarying
from coldq.slot.domains import Box

SEEDS = (0, 1, 2)
AWKWARD = "<b>OGD</b> & \"sons'"
TOLD = ("Prices: made up < for tests.", "Arrivals: none.")


class ToldLinear(OnlineLinear):
    """A problem that says where its data comes from."""

    provenance = TOLD
    seeds_differ = False  # as far as anybody is told


@cache
def small_reproduction() -> Reproduction:
    """Two settings with tuning; running averages; one run without seeds, with an awkward label."""
    figures = (
        replace(
            find("time-varying"),
            settings=(
                Setting("printed", "X = [0, 5]^10", TimeVarying(horizon=60)),
                Setting("plotted", "X = [-5, 5]^10", TimeVarying(60, Box(-5.0, 5.0, dim=10))),
            ),
        ),
        replace(
            find("quadratic"),
            settings=(Setting("printed", "cost in $ & X = [0, 1]^2", OnlineQuadratic(horizon=50)),),
            loss_label="average cost ($)",
            averaged=True,
        ),
        replace(
            find("linear"),
            settings=(Setting("alone", "one run", ToldLinear(horizon=40)),),
            entries=(*find("linear").entries, Entry(AWKWARD, OGD)),
        ),
    )
    runs = run_figures(figures, SEEDS)
    return Reproduction(
        figures=runs,
        verdicts=tuple(verdict for each in runs for verdict in check_claims(each)),
        end_points={each.figure.key: end_points(each) for each in runs},
        seeds=SEEDS,
        seconds=61.0,
        stepping=Stepping({each.figure.key: 0.012 for each in runs}, 1000, 12.0, ours=0.5),
    )
