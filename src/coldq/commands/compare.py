"""``coldq compare``: a league of learners on a problem, or all of them on one of your own.

With ``--rate``: what it costs to keep a violation rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from coldq.commands.needs import REPORT, lacking, require_place
from coldq.errors import InvalidInput
from coldq.experiments.compare import League, compare
from coldq.experiments.comparison import Comparison, count_of
from coldq.experiments.comparison import compare as compare_own
from coldq.experiments.named import learners_of, own_problem, problem_of
from coldq.experiments.targets import (
    PARTS,
    Target,
    first_scored,
    measure_target,
    target_problem,
)
from coldq.report.files import plain, write_comparison, write_scores, write_standings
from coldq.report.terminal import progress


def run_compare(
    key: str,
    learners: Iterable[str],
    seeds: Iterable[int],
    out: str | Path,
    horizon: int | None = None,
    show: Callable[[League], None] = lambda league: None,
) -> League:
    """Play a league, write it as parquet, a picture and a part of the page, and show it."""
    problem_of(key, horizon)
    names, out = tuple(learners), Path(out)
    count, page = len(learners_of(names)), page_of(key, out)
    writes = _writes(page)
    with progress(count) as done:
        league = compare(key, names, seeds, horizon=horizon, done=done)
    if not league.standings:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in league.left_out.items())
        raise InvalidInput(f"no learner can play {key}: {reasons}")
    try:
        if writes:
            from coldq.report.league import write_league_page

            write_standings(league, out / f"compare-{league.key}.parquet")
            write_league_page(league, page)
    finally:  # whether it can be written or not
        show(league)
    return league


def run_own(
    name: str,
    learners: Iterable[str],
    rates: Iterable[float],
    seeds: Iterable[int] | None,
    out: str | Path,
    *,
    horizon: int | None = None,
    last: int | None = None,
    show: Callable[[Comparison], None] = lambda found: None,
) -> list[Comparison]:
    """Compare learners on a problem of one's own; a table and a part of the page for each rate."""
    title, problem = own_problem(name, horizon)
    names, rates, out = tuple(learners), tuple(rates), Path(out)
    learners_of(names)
    page = page_of(title, out)
    writes = _writes(page)
    found = []
    with progress(len(rates) * count_of(names)) as done:
        for rate in rates:
            made = compare_own(
                problem, names or None, rate=rate, seeds=seeds, last=last, title=title, done=done
            )
            found.append(made)
    try:
        if writes:
            from coldq.report.comparison import write_comparison_page

            for made in found:
                write_comparison(made, out)
                write_comparison_page(made, page)
    finally:  # whether they can be written or not
        for made in found:
            show(made)
    return found


def run_targets(
    keys: Iterable[str],
    rates: Iterable[float],
    seeds: Iterable[int],
    out: str | Path,
    horizon: int | None = None,
    last: int | None = None,
    show: Callable[[Target], None] = lambda target: None,
) -> list[Target]:
    """Check first, play with a progress bar; write and show what each problem gave when it did."""
    keys, rates, out = tuple(keys), tuple(rates), Path(out)
    for key in keys:
        first_scored(target_problem(key, horizon).horizon, last)
    writes = _writes(*(page_of(key, out) for key in keys))
    targets: list[Target] = []
    with progress(PARTS * len(keys)) as done:
        for key in keys:
            found = measure_target(key, rates, seeds, horizon=horizon, last=last, done=done)
            targets += found
            try:
                if writes:
                    from coldq.report.targets import write_target_page

                    write_scores(targets, out / "compare-rates.parquet")
                    for target in found:
                        write_target_page(target, page_of(key, out))
            finally:  # whether they can be written or not
                for target in found:
                    show(target)
    return targets


def page_of(title: str, out: Path) -> Path:
    """The page of all comparisons on the problem of this name."""
    return out / f"compare-{plain(title, 'own')}.html"


def no_page() -> str:
    """Why there is no page: a sentence on what it lacks, or nothing."""
    return lacking("it", "report", *REPORT)


def _writes(*pages: Path) -> bool:
    """Whether pages are written: then raise unless they can be."""
    if no_page():
        return False
    for page in pages:
        require_place(page)
    return True
