"""The paper's experiment on time-varying constraints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.problems.problem import Constants, Problem, generators, require_bounded, row_range
from coldq.problems.slots import slices
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box, Domain
from coldq.slot.feedback import Feedback
from coldq.slot.losses import LeastSquares

SLOTS_A_CHUNK = 128  # slots drawn at once


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class TimeVarying(Problem):
    """Least squares under affine constraints, both drawn anew in every slot.

    ``f_t(x) = |H_t x - y_t|^2 / 2`` with H_t in R^(4 x 10) of U(-1, 1) entries and
    ``y_t = H_t 1 + noise``, the noise standard normal; ``g_t(x) = A_t x - b_t`` with A_t in
    R^(2 x 10) and b_t of U(0, 1) entries. The origin is feasible in every slot.

    The paper prints the domain [0, 5]^10; its figure agrees with [-5, 5]^10, so it is a parameter.
    With `agents` each of them draws a loss and constraints of its own in every slot.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, section "Experiment on Time-Varying Constraints".

    >>> import coldq
    >>> problem = coldq.problems.TimeVarying(horizon=10)
    >>> problem.start([0]).reveal(1, problem.domain.start()).constraint.A.shape
    (1, 2, 10)
    >>> problem = coldq.problems.TimeVarying(horizon=10, agents=5)
    >>> problem.start([0]).reveal(1, problem.domain.start()).constraint.A.shape
    (1, 5, 2, 10)
    """

    horizon: int
    domain: Domain
    n_measurements: int
    n_constraints: int
    agents: int | None

    def __init__(
        self,
        horizon: int = 5000,
        domain: Domain | None = None,
        n_measurements: int = 4,
        n_constraints: int = 2,
        agents: int | None = None,
    ) -> None:
        domain = Box(0.0, 5.0, dim=10) if domain is None else domain
        self._set(
            horizon=whole_number("horizon", horizon, 2),
            domain=require_bounded(domain),
            n_measurements=whole_number("n_measurements", n_measurements, 1),
            n_constraints=whole_number("n_constraints", n_constraints, 0),
            agents=None if agents is None else whole_number("agents", agents, 1),
        )

    @property
    def constants(self) -> Constants:
        """R exact, G a bound that is approached; D holds but for a chance of 1e-9 a run."""
        from scipy.special import chdtri

        m, p = self.n_measurements, self.domain.dim
        least, greatest = row_range(self.domain, 0.0, 1.0)
        box = self.domain.box
        reach = np.maximum(np.abs(box.lower - 1.0), np.abs(box.upper - 1.0))
        noise = np.sqrt(chdtri(m, 1e-9 / (self.horizon * (self.agents or 1))))
        size = np.sqrt(m * p)
        return Constants(
            diameter=float(self.domain.diameter),
            gradient_bound=float(size * (size * np.sqrt(np.square(reach).sum()) + noise)),
            constraint_bound=max(greatest, 1.0 - least),
            constraint_lipschitz=float(np.sqrt(p)),
            note={
                "gradient_bound": "the noise is normal, so this holds with probability 1 - 1e-9 "
                "for a whole run; |H| is bounded by its largest Frobenius norm",
                "constraint_bound": "the supremum over all draws",
                "constraint_lipschitz": "the supremum over all draws",
            },
        )

    def start(self, seeds: Iterable[int]) -> TimeVaryingStream:
        """One stream for all seeds."""
        return TimeVaryingStream(self, tuple(seeds))


class TimeVaryingStream:
    """Draws a chunk of slots at a time, for each seed from its own generators."""

    def __init__(self, problem: TimeVarying, seeds: tuple[int, ...]) -> None:
        self.problem = problem
        self.uniform, self.normal = generators(1, seeds, 2)
        self.begin, self.end = 1, 1
        self.loss: Any = None
        self.constraint: Any = None

    def reveal(self, t: int, x: Any) -> Feedback:
        """The draw of slot t, whatever was played."""
        while t >= self.end:
            self._draw()
        if t < self.begin:
            raise InvalidInput(f"slot {t} has passed; start a new stream to see it again")
        k = t - self.begin
        return Feedback(self.loss(k), self.constraint(k), slot=t)

    def reveal_block(self, t: int, count: int) -> list[Feedback]:
        """The draws of as many slots, from t on."""
        return [self.reveal(slot, None) for slot in range(t, t + count)]

    def _draw(self) -> None:
        m, N, p = self.problem.n_measurements, self.problem.n_constraints, self.problem.domain.dim
        sizes = np.cumsum([m * p, N * p])
        agents = self.problem.agents
        lead = (SLOTS_A_CHUNK,) if agents is None else (SLOTS_A_CHUNK, agents)
        u = np.stack([rng.random((*lead, m * p + N * p + N)) for rng in self.uniform], axis=1)
        noise = np.stack([rng.standard_normal((*lead, m)) for rng in self.normal], axis=1)
        shape = u.shape[:-1]
        H = (2.0 * u[..., : sizes[0]] - 1.0).reshape(*shape, m, p)
        A = u[..., sizes[0] : sizes[1]].reshape(*shape, N, p).copy()
        b = u[..., sizes[1] :].copy()
        # np.add.accumulate adds in order, so that a seed's y does not depend on the batch.
        y = np.add.accumulate(H, axis=-1)[..., -1] + noise
        for array in (H, y, A, b):
            array.flags.writeable = False
        self.loss, self.constraint = slices(LeastSquares, H=H, y=y), slices(Affine, A=A, b=b)
        self.begin, self.end = self.end, self.end + SLOTS_A_CHUNK
