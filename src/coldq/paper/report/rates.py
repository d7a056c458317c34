"""The measured tables as pictures, growth beside its claimed slope, and as a part of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from coldq.evaluation.report.numbers import number
from coldq.evaluation.report.parts import Part, join, render
from coldq.evaluation.report.pictures import SUFFIXES, as_address, new_canvas, write_picture
from coldq.paper.rates.settings import CONVEX, DYNAMIC, MEASURES, STRONGLY_CONVEX
from coldq.paper.rates.tables import TABLES, VERDICTS, Cell, counted, grouped, measured
from coldq.paper.report.curves import PALETTE

PICTURE_INCHES = (7.0, 5.2)


def write_rates_page(cells: list[Cell], differences: list[str], path: Path) -> None:
    """Write a picture for each table beside the page, as PNG and PDF, and join all to the page."""
    tables = []
    for k, (constraints, title) in enumerate(TABLES.items(), 1):
        chosen = [cell for cell in cells if cell.constraints == constraints]
        name = f"rates-table-{k}"
        canvas = write_picture(path.parent / "figures" / name, _draw, chosen, title)
        tables.append(
            {
                "name": name,
                "title": title,
                "picture": as_address(canvas),
                "alternative": _alternative(chosen, title),
                "rows": [
                    (losses, column.title, measure, group[0].rate, column.own, measured(group),
                     counted(group))
                    for losses, column, measure, group in grouped(chosen)
                ],
            }
        )  # fmt: skip
    horizons, seeds = cells[0].horizons, cells[0].totals.shape[1]
    html = render(
        "rates.html.jinja",
        "coldq.paper.report",
        tables=tables,
        verdicts=VERDICTS,
        differences=differences,
        horizons=horizons,
        seeds=seeds,
        suffixes=SUFFIXES,
    )
    lead = "How fast regret and violation grow, beside what the paper's two tables claim."
    contents = [("rates", "Growth rates")]
    join(Part("rates", "COLDQ's rates, measured", lead, contents, html), path)


def _draw(chosen: list[Cell], title: str) -> Canvas:
    """Log-log, a panel for every kind of loss and measure; dashes have the claimed slope."""
    canvas = new_canvas(*PICTURE_INCHES)
    canvas.suptitle(f"{title}, where V_x and V_g are nearest to 1/2; dashed: the claimed slope",
                    fontsize=8.5)  # fmt: skip
    panels, handles = canvas.subplots(2, len(MEASURES)), {}
    number = {name: k for k, name in enumerate(dict.fromkeys(c.column.title for c in chosen))}
    for line, losses in enumerate((CONVEX, STRONGLY_CONVEX)):
        for place, measure in enumerate(MEASURES):
            own = [c for c in chosen if (c.column.losses, c.measure) == (losses, measure)]
            handles |= _panel(panels[line, place], own, number, f"{losses}, {measure}")
    names = sorted(handles, key=number.__getitem__)
    canvas.legend(
        [handles[name] for name in names], names, loc="outside lower center", ncols=5,
        fontsize=6,
    )  # fmt: skip
    return canvas


def _panel(axes: Any, chosen: list[Cell], number: dict[str, int], title: str) -> dict[str, Any]:
    """One line an algorithm: its cell nearest to V_x = V_g = 1/2. The lines by their names."""
    axes.set_title(title, loc="left")
    axes.set_xscale("log")
    axes.set_yscale("log")
    middle = {c.column.title: c for c in sorted(chosen, key=_off_middle, reverse=True)}
    lines = {}
    for name, cell in middle.items():
        mean, T = cell.totals.mean(axis=1), np.asarray(cell.horizons, float)
        shown = mean > 1e-9 * T
        if not shown[-1]:
            continue
        k = number[name]
        look = PALETTE[k % len(PALETTE)]
        (lines[name],) = axes.plot(
            T[shown], mean[shown], marker=look.marker, markersize=2.5, linewidth=0.9,
            color=look.colour, linestyle="-" if k < len(PALETTE) else ":",
        )  # fmt: skip
        claim = mean[-1] * (T / T[-1]) ** cell.claim
        axes.plot(T, claim, "--", linewidth=0.5, color=look.colour)
    axes.set_xlabel("T")
    axes.minorticks_off()
    return lines


def _off_middle(cell: Cell) -> float:
    return abs(cell.path_exponent - 0.5) + abs(cell.variation_exponent - 0.5)


def _alternative(chosen: list[Cell], title: str) -> str:
    """What the picture shows, in words and numbers."""
    worse = [cell for cell in chosen if cell.verdict == "worse"]
    ends = "; ".join(
        f"{cell.column.title}, {cell.column.losses}, {cell.measure} regret grows as T to the "
        f"{number(cell.grown.slope, 2)}, claimed {number(cell.claim, 2)}"
        for cell in chosen
        if cell.column.title == "COLDQ told V_x"
        and cell.measure == DYNAMIC
        and np.isfinite(cell.grown.slope)
        and _off_middle(cell) <= 0.25
    )
    return (
        f"{title}: totals against T on logarithmic axes. Of {len(chosen)} cells {len(worse)} grow "
        f"faster than claimed. {ends}."
    )
