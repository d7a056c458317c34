"""The paper's Tables 1 and 2 with a measured column beside each claimed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coldq.base.arrays import Array
from coldq.learners.card import Largest, Rate
from coldq.paper.rates.growth import Growth, claimed, growth, verdict
from coldq.paper.rates.settings import (
    CONVEX,
    DYNAMIC,
    INFEASIBLE_SHARE,
    MEASURES,
    QUEUE_LEARNERS,
    STRONGLY_CONVEX,
    TINY_EPSILON,
    VIOLATION,
    Column,
    columns,
)
from coldq.paper.rates.store import QUEUE_PREFIX, Task, stored

VERDICTS = ("within", "better", "worse")
FROZEN_QUEUE = "COLDQ, Q frozen"
TABLES = {
    "time-varying": "Table 1: time-varying constraints",
    "fixed": "Table 2: fixed constraints",
}


@dataclass(frozen=True, eq=False)
class Cell:
    """One measure of one learner at one (V_x, V_g): totals (T, S), growth, claim and verdict."""

    column: Column
    measure: str
    path_exponent: float
    variation_exponent: float
    horizons: tuple[int, ...]
    totals: Array
    grown: Growth
    rate: Rate | Largest

    @property
    def constraints(self) -> str:
        """ "fixed" or "time-varying"."""
        return "time-varying" if self.variation_exponent > 0.0 else "fixed"

    @property
    def claim(self) -> float:
        """The claimed rate's own slope on these horizons."""
        vx, vg = self.path_exponent, self.variation_exponent
        return claimed(self.rate, self.horizons, vx, vg)

    @property
    def verdict(self) -> str:
        """ "within", "better" or "worse"."""
        return verdict(self.grown, self.claim)


def cells(out: Path, horizons: Sequence[int], n_seeds: int) -> list[Cell]:
    """Every measure that has a claim, from the stored runs."""
    rows = []
    for column in columns():
        for vx in column.path_exponents:
            runs = [stored(out, Task(column.key, vx, T, n_seeds)) for T in horizons]
            for i, vg in enumerate(column.variation_exponents):
                constraints = "time-varying" if vg > 0.0 else "fixed"
                for measure, rate in _claims(column, constraints, vx):
                    name = "violation" if measure == VIOLATION else "regret"
                    totals = np.array([run[name][i] for run in runs])
                    grown = growth(horizons, totals)
                    rows.append(Cell(column, measure, vx, vg, tuple(horizons), totals, grown, rate))
    return rows


def _claims(column: Column, constraints: str, vx: float) -> Iterator[tuple[str, Rate | Largest]]:
    """What is claimed of a column: static regret where x* does not move, dynamic everywhere."""
    for claim in column.claimant.card.claims:
        if (claim.losses, claim.constraints) == (column.losses, constraints):
            static = claim.static_regret if vx == 0.0 else None
            rates = zip(MEASURES, (static, claim.dynamic_regret, claim.violation), strict=True)
            yield from ((m, rate) for m, rate in rates if m in column.measures and rate is not None)
            return


def grouped(chosen: list[Cell]) -> Iterator[tuple[str, Column, str, list[Cell]]]:
    """The cells of each kind of loss, column and measure, in the order of the tables."""
    for losses in (CONVEX, STRONGLY_CONVEX):
        for column in (each for each in columns() if each.losses == losses):
            for measure in MEASURES:
                group = [c for c in chosen if c.column.key == column.key and c.measure == measure]
                if group:
                    yield losses, column, measure, group


def measured(group: list[Cell]) -> str:
    """The range of the exponents of several cells, and names where there are none."""
    kinds = {c.grown.kind for c in group}
    if len(kinds) == 1 and kinds != {"power"}:
        return kinds.pop()
    slopes = [c.grown.slope for c in group if np.isfinite(c.grown.slope)]
    names = sorted(kinds & {"zero", "not positive"})
    if slopes:
        low, high = f"{min(slopes):.2f}", f"{max(slopes):.2f}"
        names.insert(0, low if low == high else f"{low} to {high}")
    return ", ".join(names)


def counted(group: list[Cell]) -> list[str]:
    """How many cells are within the claim, better and worse."""
    verdicts = [cell.verdict for cell in group]
    return [str(verdicts.count(kind) or "") for kind in VERDICTS]


def differences(measured: list[Cell]) -> Iterator[str]:
    """Which difference is knowledge of V_x, and which is the algorithm."""

    def slopes(title: str) -> dict[tuple[float, float], float]:
        return {
            (c.path_exponent, c.variation_exponent): c.grown.slope
            for c in measured
            if (c.column.title, c.column.losses, c.measure) == (title, CONVEX, DYNAMIC)
        }

    def apart(one: str, other: str) -> str:
        a, b = slopes(one), slopes(other)
        gaps = [a[cell] - b[cell] for cell in a if cell in b and cell[0] > 0.0]
        return f"{np.mean(gaps):+.2f} ({min(gaps):+.2f} to {max(gaps):+.2f})"

    told, untold, same = "COLDQ told V_x", "COLDQ not told", "RECOO, same alpha"
    yield "Exponents of dynamic regret where V_x > 0, convex losses. Knowledge of V_x:"
    yield f"  COLDQ told it, less COLDQ not told: {apart(told, untold)}"
    yield f"  RECOO with COLDQ's alpha_t, less RECOO as published: {apart(same, 'RECOO')}"
    yield "The algorithm, with the same knowledge:"
    yield f"  COLDQ told V_x, less RECOO with its alpha_t: {apart(told, same)}"
    yield f"  COLDQ not told, less RECOO as published: {apart(untold, 'RECOO')}"
    yield f"  COLDQ-Expert, told nothing, less COLDQ told V_x: {apart('COLDQ-Expert', told)}"
    yield f"  COLDQ told V_x, less the same with its queue frozen: {apart(told, FROZEN_QUEUE)}"


def queue_matters(out: Path, horizons: Sequence[int], n_seeds: int) -> Iterator[str]:
    """The setting with a low floor and interrupted slots, in words."""
    grown = {}
    for name in QUEUE_LEARNERS:
        runs = [stored(out, Task(f"{QUEUE_PREFIX}{name}", 0.0, T, n_seeds)) for T in horizons]
        totals = np.array([run["violation"][0] for run in runs])
        last = f"{totals[-1].mean():,.1f} at T = {horizons[-1]:,}"
        grown[name] = f"{growth(horizons, totals)}, {last}"
    yield (
        f"Where the queue matters (epsilon = {TINY_EPSILON:g}, {100 * INFEASIBLE_SHARE:g}% of "
        "slots without a feasible decision), the violation of all other slots:"
    )
    yield f"  COLDQ: {grown['COLDQ']}"
    yield f"  with its queue frozen: {grown['queue frozen']}"
