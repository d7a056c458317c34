"""``coldq compare``: learners side by side on problems, at violation rates or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from coldq.base.errors import InvalidInput
from coldq.cli.needs import lacking, require_place
from coldq.cli.terminal import progress
from coldq.evaluation.compare import comparisons, count_of, first_scored
from coldq.evaluation.comparison import Comparison
from coldq.evaluation.named import PROBLEMS, is_own, named_problem
from coldq.evaluation.report.files import plain, write_comparison
from coldq.learners.forecast_margins import rate_of

PAGE_MODULES = ("jinja2", "matplotlib", "pyarrow")  # what pictures, tables and a page need


def run_compare(
    keys: Iterable[str],
    learners: Iterable[str] = (),
    rates: Iterable[float | None] = (None,),
    seeds: Iterable[int] | None = None,
    out: str | Path = "results",
    *,
    horizon: int | None = None,
    last: int | None = None,
    show: Callable[[Comparison], None] = lambda of_problem: None,
) -> list[Comparison]:
    """Check first, play with a progress bar; write and show what each problem gave when it did."""
    names, rates, out = tuple(learners), tuple(rates), Path(out)
    problems = [named_problem(key, horizon) for key in keys]
    for title, problem in problems:
        if rates != (None,):
            first_scored(problem.horizon, last)
        if not no_page():
            require_place(page_of(title, out))
    results: list[Comparison] = []
    with progress(count_of(names, rates) * len(problems)) as done:
        for title, problem in problems:
            of_problem = comparisons(
                problem, names or None, rates, seeds, last=last, title=title, done=done
            )
            results += of_problem
            try:
                if not no_page():
                    from coldq.evaluation.report.comparison import write_comparison_page

                    for one in of_problem:
                        write_comparison(one, out)
                        write_comparison_page(one, page_of(title, out))
            finally:  # whether they can be written or not
                for one in of_problem:
                    show(one)
    return results


def keys_of(names: str) -> tuple[str, ...]:
    """Built-in problems by their names with commas between, or all; or one of your own.

    >>> from coldq.cli.compare import keys_of
    >>> keys_of("jobs, autoscale"), len(keys_of("all"))
    (('jobs', 'autoscale'), 7)
    """
    if names.strip() == "all":
        return tuple(PROBLEMS)
    if is_own(names):
        return (names,)
    keys = tuple(name.strip() for name in names.split(",") if name.strip())
    if not keys:
        raise InvalidInput(
            f"{names!r} names no problem to compare; there are {', '.join(PROBLEMS)}"
        )
    return keys


def rates_of(text: str) -> tuple[float | None, ...]:
    """Rates with commas between; none for nothing.

    >>> from coldq.cli.compare import rates_of
    >>> rates_of("0.01, 0.05"), rates_of("")
    ((0.01, 0.05), (None,))
    """
    if not text:
        return (None,)
    try:
        rates = [float(one) for one in text.split(",")]
    except ValueError:
        raise InvalidInput(f"rate must be a share such as 0.01, but is {text!r}") from None
    if len(rates) > 1 and 0.0 in rates:
        raise InvalidInput(
            f"commas separate rates, and decimals take a point as in 0.01, but rate is {text!r}"
        )
    return tuple(map(rate_of, rates))


def page_of(title: str, out: Path) -> Path:
    """The page of all comparisons on the problem of this name."""
    return out / f"compare-{plain(title, 'own')}.html"


def no_page() -> str:
    """Why there is no page: a sentence on what it lacks, or nothing."""
    return lacking("it", "report", *PAGE_MODULES)
