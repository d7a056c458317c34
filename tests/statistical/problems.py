"""Problems for statistical tests: one to track, and one whose feasible set is a corner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import coldq
from coldq.problems import Constants, Problem
from coldq.problems.problem import generators


class Tracking(Problem):
    """``f_t(x) = |x - theta_t|^2`` on [-r, r]^4 under two affine rows, drawn anew in every slot.

    theta takes steps of size r T^(v - 1) in random directions, reflected at the box, so that its
    path has a length of about r T^v. The origin is feasible in every slot.
    """

    n_constraints = 2

    def __init__(self, horizon: int, path_exponent: float, radius: float) -> None:
        self.horizon, self.path_exponent, self.radius = horizon, path_exponent, radius
        self.domain = coldq.Box(-radius, radius, dim=4)

    def _contents(self) -> tuple[Any, ...]:
        return self.horizon, self.path_exponent, self.radius

    def __repr__(self) -> str:
        return f"Tracking{self._contents()}"

    @property
    def constants(self) -> Constants:
        # |2 (x - theta)| <= 2 * diameter; rows have entries in [0, 1], limits are in [r / 2, r].
        r = self.radius
        return Constants(4.0 * r, 8.0 * r, 5.0 * r, 2.0, strong_convexity=1.0)

    def start(self, seeds: Iterable[int]) -> Any:
        rng, rows = generators(9, tuple(seeds), 2)
        T, size = self.horizon, float(self.horizon) ** (self.path_exponent - 1.0)
        theta, A, b = [], [], []
        for walk, draw in zip(rng, rows, strict=True):
            steps = walk.standard_normal((T, 4))
            steps *= size / np.linalg.norm(steps, axis=-1, keepdims=True)
            free = walk.uniform(-1.0, 1.0, 4) + np.cumsum(steps, axis=0)
            theta.append(1.0 - np.abs((free + 1.0) % 4.0 - 2.0))  # reflect at -1 and 1
            slots = draw.random((T, 2, 5))
            A.append(slots[..., :4])
            b.append(0.5 + 0.5 * slots[..., 4])
        r = self.radius
        return _Stream(r * np.stack(theta, 1), np.stack(A, 1), r * np.stack(b, 1))


class _Stream:
    def __init__(self, theta: np.ndarray, A: np.ndarray, b: np.ndarray) -> None:
        self.theta, self.A, self.b = theta, A, b

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        theta = self.theta[t - 1]
        loss = coldq.Quadratic(2.0 * np.eye(4), -2.0 * theta, np.square(theta).sum(axis=-1))
        return coldq.Feedback(loss, coldq.Affine(self.A[t - 1], self.b[t - 1]), slot=t)


class Corner(Problem):
    """The loss pulls to 1 on [0, 1], the constraint ``s_t x <= 0`` leaves only 0.

    The constraint is violated as much as its Lipschitz constant allows, so that the guarantees of
    methods with cautious constants show within a few hundred slots.
    """

    n_constraints = 1

    def __init__(self, horizon: int, losses: str, constraints: str) -> None:
        self.horizon, self.losses, self.constraints = horizon, losses, constraints
        self.domain = coldq.Box(0.0, 1.0, dim=1)

    def _contents(self) -> tuple[Any, ...]:
        return self.horizon, self.losses, self.constraints

    def __repr__(self) -> str:
        return f"Corner{self._contents()}"

    @property
    def constants(self) -> Constants:
        strong = 0.5 if self.losses == "strongly convex" else 0.0
        return Constants(1.0, 1.0, 1.0, 1.0, strong_convexity=strong)

    def start(self, seeds: Iterable[int]) -> Any:
        pull, slope = generators(8, tuple(seeds), 2)
        pulls = np.stack([rng.uniform(0.5, 1.0, self.horizon) for rng in pull], 1)
        slopes = np.stack([rng.uniform(0.5, 1.0, self.horizon) for rng in slope], 1)
        if self.constraints == "fixed":
            slopes = np.ones(slopes.shape)
        return _CornerStream(pulls, slopes, self.losses == "strongly convex")


class _CornerStream:
    def __init__(self, pull: np.ndarray, slope: np.ndarray, strong: bool) -> None:
        self.pull, self.slope, self.strong = pull, slope, strong

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        pull, slope = self.pull[t - 1][:, None], self.slope[t - 1]
        loss: Any = coldq.Quadratic([[1.0]], -pull) if self.strong else coldq.Linear(-pull)
        rows = coldq.Affine(slope[:, None, None], np.zeros((slope.size, 1)))
        return coldq.Feedback(loss, rows, slot=t)


class Hexagon(Problem):
    """A linear loss pulls outwards, from the middle of a hexagon of inner radius 0.3 on [-1, 1]^2.

    The constraint is fixed, x_1 = 0 is feasible by 0.3, and g has the steepness cos(30 degrees):
    what the mean of two neighbouring unit normals has of a norm.
    """

    n_constraints = 6
    slack, steepness = 0.3, float(np.cos(np.pi / 6.0))

    def __init__(self, horizon: int) -> None:
        self.horizon, self.domain = horizon, coldq.Box(-1.0, 1.0, dim=2)

    def _contents(self) -> tuple[Any, ...]:
        return (self.horizon,)

    def __repr__(self) -> str:
        return f"Hexagon{self._contents()}"

    @property
    def constants(self) -> Constants:
        return Constants(np.sqrt(8.0), np.sqrt(8.0), 1.8, 1.0)

    def start(self, seeds: Iterable[int]) -> Any:
        (rng,) = generators(7, tuple(seeds), 1)
        pulls = np.stack([r.uniform(-1.0, 2.0, (self.horizon, 2)) for r in rng], 1)
        angles = np.arange(6) * np.pi / 3.0
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return _HexagonStream(-pulls, coldq.Affine(rows, np.full((pulls.shape[1], 6), 0.3)))


class _HexagonStream:
    def __init__(self, slopes: np.ndarray, constraint: coldq.Affine) -> None:
        self.slopes, self.constraint = slopes, constraint

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        return coldq.Feedback(coldq.Linear(self.slopes[t - 1]), self.constraint, slot=t)


class NetworkCorner(Problem):
    """:class:`Corner` for three agents, each with pulls and slopes of its own."""

    n_constraints = 1
    agents = 3

    def __init__(self, horizon: int, losses: str, constraints: str) -> None:
        self.horizon, self.inside = horizon, Corner(horizon, losses, constraints)
        self.domain = self.inside.domain

    def _contents(self) -> tuple[Any, ...]:
        return self.inside._contents()

    def __repr__(self) -> str:
        return f"NetworkCorner{self._contents()}"

    @property
    def constants(self) -> Constants:
        return self.inside.constants

    def start(self, seeds: Iterable[int]) -> Any:
        seeds = tuple(seeds)
        return _NetworkCornerStream(self.inside, seeds, self.agents)


class _NetworkCornerStream:
    def __init__(self, corner: Corner, seeds: tuple[int, ...], agents: int) -> None:
        self.shape = (len(seeds), agents)
        own = tuple(1000 * (i + 1) + seed for seed in seeds for i in range(agents))
        self.stream = corner.start(own)

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        flat = self.stream.reveal(t, x)
        q = flat.loss.q if hasattr(flat.loss, "q") else flat.loss.c
        q, A = q.reshape(*self.shape, 1), flat.constraint.A.reshape(*self.shape, 1, 1)
        loss: Any = coldq.Quadratic([[1.0]], q) if self.stream.strong else coldq.Linear(q)
        return coldq.Feedback(loss, coldq.Affine(A, np.zeros((*self.shape, 1))), slot=t)
