"""A problem in other units: its losses times a factor, each row of its constraint times its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import coldq


@dataclass(frozen=True)
class ScaledLoss:
    """A loss times a factor."""

    inner: Any
    factor: float

    def value(self, x: Any) -> Any:
        return self.factor * self.inner.value(x)

    def gradient(self, x: Any) -> Any:
        return self.factor * self.inner.gradient(x)


def scaled_rows(g: Any, factors: np.ndarray) -> Any:
    if isinstance(g, coldq.Affine):
        return coldq.Affine(factors[:, None] * g.A, factors * g.b)
    if isinstance(g, coldq.LogCapacity):
        return coldq.LogCapacity(factors[0] * g.demand, factors[0] * g.scale, g.rate)
    return coldq.QuadraticConstraint(
        factors[:, None, None] * g.P, factors[:, None] * g.q, factors * g.r
    )


@dataclass(frozen=True)
class Rescaled:
    """The same problem, in other units."""

    inner: Any
    loss_factor: float
    row_factors: tuple[float, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def start(self, seeds: Any) -> Any:
        return RescaledStream(self, self.inner.start(seeds))


class RescaledStream:
    def __init__(self, problem: Rescaled, inner: Any) -> None:
        self.problem, self.inner = problem, inner

    def reveal(self, t: int, x: np.ndarray) -> coldq.Feedback:
        revealed, factors = self.inner.reveal(t, x), np.array(self.problem.row_factors)
        return coldq.Feedback(
            ScaledLoss(revealed.loss, self.problem.loss_factor),
            scaled_rows(revealed.constraint, factors),
            slot=t,
        )
