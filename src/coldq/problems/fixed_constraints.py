"""The paper's two experiments on fixed constraints: online quadratic and linear programming."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, whole_number
from coldq.base.describe import describable
from coldq.problems.problem import Constants, Problem, generators, require_bounded, row_range
from coldq.problems.slots import WholeStream
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box, Domain
from coldq.slot.losses import Linear, Quadratic


@dataclass(frozen=True, eq=False, repr=False, init=False)
class FixedConstraints(Problem):
    """The drifting parameter theta_t and the fixed constraint that both experiments share.

    ``theta_t = theta^1 + theta^2 + theta^3`` in R^2: theta^1 of U(-t^0.1, t^0.1) entries; theta^2
    of U(-1, 0) entries in slots [1, 0.3 T], [0.4 T, 0.7 T] and [0.8 T, T] and of U(0, 1) entries
    otherwise; theta^3 = (-1)^(mu_t) for a random permutation mu of 1..T. ``g(x) = A x - b`` with A
    in R^(3 x 2) of U(0.1, 0.5) and b of U(0, 0.3) entries, drawn once a seed. T = 5000 is the
    paper's; the origin is feasible.
    """

    horizon: int
    domain: Domain
    n_constraints = 3
    _slope: ClassVar[float]  # of the loss, whose gradient is 2 mu x + slope theta
    _mu: ClassVar[float]

    def __init__(self, horizon: int = 5000, domain: Domain | None = None) -> None:
        domain = Box(0.0, 1.0, dim=2) if domain is None else domain
        self._set(
            horizon=whole_number("horizon", horizon, 2), domain=require_bounded(domain, dim=2)
        )

    def start(self, seeds: Iterable[int]) -> FixedConstraintsStream:
        """One stream for all seeds."""
        return FixedConstraintsStream(self, tuple(seeds))

    def loss(self, theta: Array) -> Any:
        """The loss of a slot with parameter theta (S, 2)."""
        raise NotImplementedError

    @property
    def constants(self) -> Constants:
        """R exact, D and G suprema over all draws."""
        box, slope, mu = self.domain.box, self._slope, self._mu
        largest = np.maximum(np.abs(box.lower), np.abs(box.upper))
        theta = self.horizon**0.1 + 2.0
        least, greatest = row_range(self.domain, 0.1, 0.5)
        return Constants(
            diameter=float(self.domain.diameter),
            gradient_bound=float(np.sqrt(np.square(2.0 * mu * largest + slope * theta).sum())),
            constraint_bound=max(greatest, 0.3 - least),
            constraint_lipschitz=float(np.sqrt(0.5)),
            strong_convexity=mu,
            note=dict.fromkeys(
                ("gradient_bound", "constraint_bound", "constraint_lipschitz"),
                "the supremum over all draws",
            ),
        )


@describable
class OnlineQuadratic(FixedConstraints):
    """``f_t(x) = |x - theta_t|^2 + 20 <theta_t, x>`` under a fixed affine constraint.

    The parameters are drawn as :class:`FixedConstraints` says; the domain is [0, 1]^2.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, section "Experiment on Fixed Constraints".

    >>> import coldq
    >>> coldq.problems.OnlineQuadratic().constants.strong_convexity
    1.0
    """

    _slope, _mu = 18.0, 1.0

    def loss(self, theta: Array) -> Quadratic:
        """``|x|^2 + 18 <theta, x> + |theta|^2``."""
        square = theta[..., 0] * theta[..., 0] + theta[..., 1] * theta[..., 1]
        return Quadratic(2.0 * np.eye(2), 18.0 * theta, square)


@describable
class OnlineLinear(FixedConstraints):
    """``f_t(x) = <theta_t, x>`` under a fixed affine constraint.

    The parameters are drawn as :class:`FixedConstraints` says; the domain is [0, 1]^2.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, section "Experiment on Fixed Constraints".

    >>> import coldq
    >>> coldq.problems.OnlineLinear(horizon=10).start([0]).reveal(1, None).loss.c.shape
    (1, 2)
    """

    _slope, _mu = 1.0, 0.0

    def loss(self, theta: Array) -> Linear:
        """``<theta, x>``."""
        return Linear(theta)


class FixedConstraintsStream(WholeStream):
    """All thetas are drawn at the start: the permutation needs them to be."""

    def __init__(self, problem: FixedConstraints, seeds: tuple[int, ...]) -> None:
        self.problem = problem
        T = problem.horizon
        t = np.arange(1.0, T + 1.0)
        negative = (t <= 0.3 * T) | ((t >= 0.4 * T) & (t <= 0.7 * T)) | (t >= 0.8 * T)
        thetas, matrices, limits = [], [], []
        rows, wide, shifted, order = generators(2, seeds, 4)
        for k in range(len(seeds)):
            draw = rows[k].random((3, 3))
            matrices.append(0.1 + 0.4 * draw[:, :2])
            limits.append(0.3 * draw[:, 2])
            first = (2.0 * wide[k].random((T, 2)) - 1.0) * np.power(t, 0.1)[:, None]
            second = shifted[k].random((T, 2)) - np.where(negative, 1.0, 0.0)[:, None]
            sign = np.where(order[k].permutation(T) % 2 == 0, -1.0, 1.0)  # of 1..T: 0 stands for 1
            thetas.append(first + second + sign[:, None])
        self.theta = np.stack(thetas, axis=1)
        self.theta.flags.writeable = False
        super().__init__(problem.loss(self.theta), None)
        self.constraint = rows = Affine(np.stack(matrices), np.stack(limits))
        self._constraint = lambda k: rows
