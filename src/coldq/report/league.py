"""The league table as a picture, a row for every learner, and as a part of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter

from coldq.experiments.compare import League
from coldq.experiments.intervals import mean_interval
from coldq.experiments.named import absences
from coldq.report.curves import BLUE, VERMILION
from coldq.report.numbers import number
from coldq.report.parts import join_picture
from coldq.report.pictures import new_canvas, write_picture

FRONT, OTHERS = VERMILION, BLUE
WIDTH, MARGINS, ROW = 7.0, 0.95, 0.155  # inches: of the picture, above and below, of a learner
DECADES = 6  # that a logarithmic axis has at most: what is below counts as nothing


def write_league_page(league: League, path: Path) -> None:
    """Write the picture beside the page, as PNG and PDF, and join the league to the page.

    >>> import pathlib, tempfile
    >>> from coldq.experiments.compare import compare
    >>> from coldq.report.league import write_league_page
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> league = compare("linear", ["COLDQ", "OGD"], seeds=range(2), horizon=40)
    >>> write_league_page(league, path)
    >>> "OnlineLinear" in path.read_text(encoding="utf-8")
    True
    """
    name, places = f"compare-{league.key}", placed(league)
    picture = write_picture(path.parent / "figures" / name, _draw, league, places)
    title = f"{type(league.problem).__name__}: learners side by side"
    lead = "Each learner has the parameters that its own theory gives it."
    shown = {
        "league": league,
        "alternative": _alternative(places),
        "logarithmic": None if log_floor(places) is None else spans_magnitudes(places),
        "mean_interval": mean_interval,
        "notes": (*league.coinciding, *absences(league.left_out)),
    }
    data = {name: _data(places)}
    join_picture(
        name,
        (title, "Loss against violation"),
        lead,
        path,
        "league.html.jinja",
        picture,
        data,
        **shown,
    )


@dataclass(frozen=True)
class Place:
    """Where a learner is drawn: means a slot, each with the half-width of its interval."""

    label: str
    ahead: bool
    loss: tuple[float, float]
    violation: tuple[float, float]


def placed(league: League) -> tuple[Place, ...]:
    """The learners in the order of the table, by violation."""
    slots, front = float(league.problem.horizon), league.front
    return tuple(
        Place(
            one.name, one.name in front, mean_interval(one.loss / slots),
            mean_interval(one.violation / slots),
        )
        for one in league.standings
    )  # fmt: skip


def log_floor(places: Sequence[Place]) -> float | None:
    """The power of ten where a logarithmic axis of violations begins; None where there are none."""
    means = np.array([place.violation[0] for place in places])
    if means.max() <= 0.0:
        return None
    least = means[means > 10.0**-DECADES * means.max()].min()
    return float(10.0 ** np.floor(np.log10(least)))


def spans_magnitudes(places: Sequence[Place]) -> bool:
    """Whether violations lie so far apart that only a logarithmic axis shows them all."""
    means, floor = [place.violation[0] for place in places], log_floor(places)
    return floor is not None and max(means) > 20.0 * max(min(means), floor)


def _draw(league: League, places: Sequence[Place]) -> Canvas:
    """Violation and loss side by side, a row for every learner: each name stands by its points."""
    canvas = new_canvas(WIDTH, MARGINS + ROW * len(places))
    left, right = canvas.subplots(1, 2, sharey=True)
    _panel(left, [place.violation for place in places], places, "hard violation a slot")
    _panel(right, [place.loss for place in places], places, "loss a slot")
    floor = log_floor(places)
    if floor is not None and spans_magnitudes(places):
        left.set_xscale("symlog", linthresh=floor, linscale=0.5)
        left.set_xlim(left=-0.3 * floor)  # a point at zero lies beside the axis, not on it
    else:
        left.xaxis.set_major_formatter(FuncFormatter(_tick))
    left.set_yticks(range(len(places)), [place.label for place in places], fontsize=6.5)
    for place, text in zip(places, left.get_yticklabels(), strict=True):
        text.set_color(FRONT.colour if place.ahead else "#333333")
    left.set_ylim(len(places) - 0.4, -0.6)
    for axes in (left, right):
        axes.tick_params(axis="y", length=0.0)
        axes.spines["left"].set_visible(False)
    right.xaxis.set_major_formatter(FuncFormatter(_tick))
    seeds = len(league.seeds)
    canvas.suptitle(
        f"{type(league.problem).__name__}, T = {league.problem.horizon:,}: "
        + ("mean and 95% interval of " if seeds > 1 else "")
        + f"{seeds} seed{'' if seeds == 1 else 's'}",
        fontsize=8.5,
    )
    canvas.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return canvas


def _panel(
    axes: Any, values: Sequence[tuple[float, float]], places: Sequence[Place], title: str
) -> None:
    axes.set_title(title, loc="left")
    for ahead, look, label in (
        (True, FRONT, "on the Pareto front: beaten by no other learner in both"),
        (False, OTHERS, "beaten"),
    ):
        rows = [k for k, place in enumerate(places) if place.ahead is ahead]
        if not rows:
            continue
        means, halves = np.array([values[k] for k in rows]).T
        axes.errorbar(
            means, rows, xerr=halves, fmt=look.marker, markersize=4.0, color=look.colour,
            elinewidth=0.8, markeredgecolor="white", markeredgewidth=0.4, label=label,
        )  # fmt: skip


def _tick(value: float, place: int | None) -> str:
    return number(value)


def _data(places: Sequence[Place]) -> dict[str, Any]:
    """What the page's plot draws."""
    return {
        "floor": log_floor(places),
        "learners": [
            {
                "label": place.label,
                "front": place.ahead,
                "loss": _brief(place.loss),
                "violation": _brief(place.violation),
            }
            for place in places
        ],
        "looks": {
            name: {"color": look.colour, "symbol": look.symbol}
            for name, look in (("front", FRONT), ("others", OTHERS))
        },
    }


def _brief(values: tuple[float, float]) -> list[float | None]:
    """Six digits are more than a screen shows; one seed has no interval."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def _alternative(places: Sequence[Place]) -> str:
    """What the picture shows, in words and numbers."""
    points = (
        f"{place.label} at loss {number(place.loss[0])} and violation {number(place.violation[0])}"
        for place in places
        if place.ahead
    )
    return (
        f"Loss against violation of {len(places)} learners, means a slot. No other learner is "
        f"better in both than: {'; '.join(points)}."
    )
