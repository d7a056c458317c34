"""``coldq compare``: a league of learners on a problem."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from coldq.commands.needs import require_report
from coldq.errors import InvalidInput
from coldq.experiments.compare import League, compare, learners_of, problem_of
from coldq.files import require_writable
from coldq.report.files import write_standings
from coldq.report.terminal import progress
from coldq.warmup import warmup

MEGABYTES = 20.0


def run_compare(
    key: str,
    learners: Iterable[str],
    seeds: Iterable[int],
    out: str | Path,
    horizon: int | None = None,
) -> League:
    """Play a league, and write its table as parquet, its picture and its part of the page."""
    problem_of(key, horizon)
    names, out = tuple(learners), Path(out)
    count = len(learners_of(names))
    require_report()
    require_writable(out, MEGABYTES)

    from coldq.report import write_league_page

    with progress(1 + count) as done:
        warmup(everything=False)
        done("kernels compiled or loaded")
        league = compare(key, names, seeds, horizon=horizon, done=done)
    if not league.standings:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in league.left_out.items())
        raise InvalidInput(f"no learner can play {key}: {reasons}")
    write_standings(league, out / f"compare-{league.key}.parquet")
    write_league_page(league, out / "index.html")
    return league
