"""The paper in one call: run its figures and check its claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coldq.paper.claims import Verdict, check_claims
from coldq.paper.figures import FIGURES, Figure
from coldq.paper.origin import Origin, origin
from coldq.paper.published import EndPoint, end_points
from coldq.paper.runs import (
    QUICK_ALPHAS,
    TRIED_ALPHAS,
    FigureRuns,
    Stepping,
    count_runs,
    run_figures,
    stepping_with_cvxpy,
)
from coldq.simulation.loop import seed_tuple


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Everything that the report shows.

    `seconds` is what all of it took by the clock, with so many `processes`.
    """

    figures: tuple[FigureRuns, ...]
    verdicts: tuple[Verdict, ...]
    end_points: dict[str, tuple[EndPoint, ...]]
    seeds: tuple[int, ...]
    seconds: float
    stepping: Stepping | None
    processes: int = 1
    origin: Origin = field(default_factory=origin)


def count_steps(figures: Iterable[Figure]) -> int:
    """How often :func:`reproduce` says that something is done."""
    return sum(count_runs(figure) for figure in figures)


def reproduce(
    figures: Iterable[Figure] = FIGURES,
    seeds: Iterable[int] = range(20),
    *,
    quick: bool = False,
    done: Callable[[str], None] = lambda what: None,
    processes: int = 1,
) -> Reproduction:
    """Run figures of the paper over many seeds, and check its claims.

    A `quick` look tries few alphas where RECOO is tuned. Runs are shared among `processes`.
    """
    figures, seeds = tuple(figures), seed_tuple(seeds)
    begun = time.perf_counter()
    alphas = QUICK_ALPHAS if quick else TRIED_ALPHAS
    runs = run_figures(figures, seeds, done, alphas, processes)
    return Reproduction(
        figures=runs,
        verdicts=tuple(verdict for each in runs for verdict in check_claims(each)),
        end_points={each.figure.key: end_points(each) for each in runs},
        seeds=seeds,
        seconds=time.perf_counter() - begun,
        stepping=stepping_with_cvxpy(runs),
        processes=processes,
    )
