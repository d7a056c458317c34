"""What is run: learners as columns, a grid of V_x and V_g as settings, horizons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from coldq.learners import (
    COLDQ,
    RECOO,
    COLDQExpert,
    LekeufackJordan2024,
    RECOOExpert,
    SarkarSinha2025,
    SinhaVaze,
    SupanthaSinha2026,
    SupanthaSinha2026ProjectionFree,
    Yi2021,
    Yi2021Expert,
    Yi2023,
)
from coldq.learners.state import QueueState
from coldq.problems import Constants, Drifting, Problem
from coldq.problems.drifting import MU, SQUARE, DriftingStream
from coldq.problems.problem import generators
from coldq.slot.constraints import Affine
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power
from coldq.slot.step import solve

GRID = (0.0, 0.25, 0.5, 0.75)  # of V_x and of V_g
CONVEX, STRONGLY_CONVEX = "convex", "strongly convex"
STATIC, DYNAMIC, VIOLATION = "static", "dynamic", "violation"  # two regrets and the hard violation
MEASURES = (STATIC, DYNAMIC, VIOLATION)
TINY_EPSILON = 1e-6  # an epsilon with which the queue's floor alone does not hold the constraint
INFEASIBLE_SHARE = 0.01  # the share of slots without a feasible decision, where the queue matters


@dataclass(frozen=True)
class Row(Problem):
    """One V_x and several V_g side by side: seed k of the i-th V_g is member i * n_seeds + k.

    A batch costs little more than one run, and a member's bits are those of its run alone.
    """

    cells: tuple[Drifting, ...]
    n_seeds: int
    n_constraints = 1
    domain = SQUARE

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """T, the same for all."""
        return self.cells[0].horizon

    @property
    def path_exponent(self) -> float:
        """V_x, the same for all."""
        return self.cells[0].path_exponent

    @property
    def constants(self) -> Constants:
        """The constants of the cell whose gradient bound is the largest."""
        return max((cell.constants for cell in self.cells), key=lambda c: c.gradient_bound)

    def start(self, seeds: Iterable[int]) -> DriftingStream:
        """The members' stream."""
        n = self.n_seeds
        return DriftingStream([(self.cells[member // n], member % n) for member in seeds])


@dataclass(frozen=True)
class Interrupted(Problem):
    """A row whose slots have, once in a hundred, no feasible decision at all."""

    row: Row
    n_constraints = 1
    domain = SQUARE

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """T."""
        return self.row.horizon

    def interruptions(self) -> np.ndarray:
        """Which slots of which seeds have no feasible decision, (S, T)."""
        (draws,) = generators(5, range(self.row.n_seeds), 1)
        return np.stack([rng.random(self.horizon) < INFEASIBLE_SHARE for rng in draws])

    def start(self, seeds: Iterable[int]) -> Any:
        """The row's stream, interrupted."""
        return _InterruptedStream(self.row.start(seeds), self.interruptions().T)


class _InterruptedStream:
    def __init__(self, stream: DriftingStream, lost: np.ndarray) -> None:
        self.stream, self.lost = stream, lost

    def reveal(self, t: int, x: Any) -> Feedback:
        revealed = self.stream.reveal(t, x)
        g: Any = revealed.constraint
        # |<a, x>| <= sqrt(2) on the square, so that 4 below no limit can be kept.
        limit = g.b - 4.0 * self.lost[t - 1][:, None]
        return Feedback(revealed.loss, Affine(g.A, limit), slot=t)


class FrozenQueue(COLDQ):
    """COLDQ with its queue held at gamma: what is left if the queue does nothing."""

    def update(
        self,
        state: QueueState,
        feedback: Feedback,
        center: Any = None,
        played: Any = None,
    ) -> QueueState:
        """COLDQ's step with weight gamma."""
        z, gradient = self._center(state, center), self.gradient_of(state, feedback, played)
        step = solve(
            z, gradient, self.alpha(state.t), state.queue, feedback.constraint, self.domain
        )
        return QueueState(state.t + 1, step.x, state.queue, step.multipliers)


@dataclass(frozen=True)
class Column:
    """A learner as it is run: for which losses, V_x and V_g, and whose claims it is held to.

    `measures` are those that it is read for. Where `own` is False the claims are COLDQ's, which
    nobody made for this variant: it is there to show what makes the difference.
    """

    title: str
    losses: str
    build: Callable[[Row], Any]
    claimant: Any
    path_exponents: tuple[float, ...] = GRID
    variation_exponents: tuple[float, ...] = GRID
    measures: tuple[str, ...] = MEASURES
    own: bool = True

    @cached_property
    def key(self) -> str:
        """A name for files."""
        words = f"{self.title} {self.losses}".lower()
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())

    def row(self, vx: float, horizon: int, n_seeds: int) -> Row:
        """The problem of one V_x and horizon."""
        strong = self.losses == STRONGLY_CONVEX
        cells = tuple(Drifting(vx, vg, strong, horizon) for vg in self.variation_exponents)
        return Row(cells, n_seeds)


def _told(row: Row, kind: type[COLDQ] = COLDQ) -> COLDQ:
    return kind(SQUARE, row.horizon, path_exponent=row.path_exponent)


def _same_alpha(row: Row) -> RECOO:
    return RECOO(SQUARE, alpha=Power((1.0 - row.path_exponent) / 2.0))


STATIC_PATH, FIXED_CONSTRAINTS, MOVING_PATHS = (0.0,), (0.0,), GRID[1:]


def columns() -> tuple[Column, ...]:
    """Every column. At V_x = 0 "not told" is "told", so it is run where they differ."""
    return (*_variants(CONVEX), *_convex(), *_variants(STRONGLY_CONVEX), *_strongly_convex())


def _variants(losses: str) -> Iterable[Column]:
    """COLDQ and RECOO with and without V_x, and COLDQ without its queue."""
    # With strongly convex losses the static column is read from alpha_t = mu t.
    told = MEASURES if losses == CONVEX else (DYNAMIC, VIOLATION)
    other: dict[str, Any] = {"measures": (DYNAMIC, VIOLATION), "own": False}
    yield Column("COLDQ told V_x", losses, _told, COLDQ, measures=told)
    yield Column("COLDQ not told", losses, COLDQ.for_problem, COLDQ, MOVING_PATHS, **other)
    frozen = partial(_told, kind=FrozenQueue)
    yield Column("COLDQ, Q frozen", losses, frozen, COLDQ, measures=told, own=False)
    yield Column("RECOO", losses, RECOO.for_problem, RECOO, measures=told)
    yield Column("RECOO, same alpha", losses, _same_alpha, COLDQ, MOVING_PATHS, **other)


def _convex() -> Iterable[Column]:
    """Others as their theory has them; those without a dynamic bound where x* does not move."""
    for title, kind, path_exponents, variation_exponents in (
        ("COLDQ-Expert", COLDQExpert, GRID, GRID),
        ("RECOO-Expert", RECOOExpert, GRID, FIXED_CONSTRAINTS),
        ("Yi 2021", Yi2021, STATIC_PATH, FIXED_CONSTRAINTS),
        ("Yi 2021-Expert", Yi2021Expert, GRID, FIXED_CONSTRAINTS),
        ("Yi 2023", Yi2023, STATIC_PATH, GRID),
        ("Sinha-Vaze", SinhaVaze, STATIC_PATH, GRID),
        ("Supantha-Sinha", SupanthaSinha2026, GRID, GRID),
        ("Supantha-Sinha, projection-free", SupanthaSinha2026ProjectionFree, GRID, GRID),
        ("Sarkar-Sinha", SarkarSinha2025, STATIC_PATH, GRID),
        ("Lekeufack-Jordan", LekeufackJordan2024, STATIC_PATH, GRID),
    ):
        yield Column(title, CONVEX, kind.for_problem, kind, path_exponents, variation_exponents)


def _strongly_convex() -> Iterable[Column]:
    """alpha_t = mu t and its like, read for the static column: x* does not move there."""
    for title, build, claimant, variations in (
        ("COLDQ, mu t", lambda row: COLDQ.strongly_convex(SQUARE, row.horizon, MU), COLDQ, GRID),
        ("RECOO, mu t", lambda row: RECOO.strongly_convex(SQUARE, MU), RECOO, GRID),
        (
            "Yi 2021",
            lambda row: Yi2021.strongly_convex(SQUARE, row.horizon, MU, gamma0=1.0),
            Yi2021,
            FIXED_CONSTRAINTS,
        ),
        ("Yi 2023", Yi2023.for_problem, Yi2023, GRID),
        ("Sinha-Vaze", partial(SinhaVaze.for_problem, strongly_convex=True), SinhaVaze, GRID),
    ):
        yield Column(
            title, STRONGLY_CONVEX, build, claimant, STATIC_PATH, variations, (STATIC, VIOLATION)
        )


# The setting in which the queue matters: a floor too low to hold the constraint.
QUEUE_LEARNERS: dict[str, Callable[[Row], Any]] = {
    "COLDQ": lambda row: COLDQ(SQUARE, row.horizon, epsilon=TINY_EPSILON),
    "queue frozen": lambda row: FrozenQueue(SQUARE, row.horizon, epsilon=TINY_EPSILON),
}
