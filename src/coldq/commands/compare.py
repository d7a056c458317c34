"""``coldq compare``: a league of learners on a problem, or all of them on one of your own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from coldq.commands.needs import require_report
from coldq.errors import Error, InvalidInput
from coldq.experiments.compare import League, compare, learners_of, problem_of
from coldq.experiments.comparison import Comparison, count_of
from coldq.experiments.comparison import compare as compare_own
from coldq.files import require_writable
from coldq.problems import from_table
from coldq.problems.columns import KINDS, suffix_of
from coldq.protocols import require_problem
from coldq.report.files import write_comparison, write_standings
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


def is_own(name: str) -> bool:
    """Whether a problem is a user's own: a table's file, or module:problem.

    >>> from coldq.commands.compare import is_own
    >>> is_own("last-month.toml"), is_own("mine:problem"), is_own("autoscale")
    (True, True, False)
    """
    return suffix_of(Path(name)) in (".toml", *KINDS) or ":" in name


def own_problem(name: str, horizon: int | None = None) -> tuple[str, Any]:
    """A title and the problem: from a file with its TOML, or from a module in this folder."""
    if suffix_of(Path(name)) in (".toml", *KINDS):
        problem = from_table(name, horizon=horizon)
        return problem.title, problem
    module, _, attribute = name.partition(":")
    if not re.fullmatch(r"\w+(\.\w+)*", module) or not attribute.isidentifier():
        raise InvalidInput(f"module:problem is written as mine:problem, but is {name!r}")
    if horizon is not None:
        raise InvalidInput(f"{name} has its own horizon, so that --horizon is not for it")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(import_module(module), attribute)
        problem = found() if isinstance(found, type) or not hasattr(found, "start") else found
    except Error:
        raise
    except AttributeError as error:
        raise InvalidInput(f"{module} has no {attribute}: {error}") from error
    except Exception as error:
        raise InvalidInput(f"{name} could not be had: {type(error).__name__}: {error}") from error
    require_problem(problem)
    return attribute, problem


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
    require_report()
    require_writable(out, MEGABYTES)

    from coldq.report import write_comparison_page

    found = []
    with progress(1 + len(rates) * count_of(names)) as done:
        warmup(everything=False)
        done("kernels compiled or loaded")
        for rate in rates:
            made = compare_own(
                problem, names or None, rate=rate, seeds=seeds, last=last, title=title, done=done
            )
            write_comparison(made, out)
            write_comparison_page(made, out / "index.html")
            found.append(made)
    for made in found:
        show(made)
    return found
