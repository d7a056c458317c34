"""Problems for statistical tests: to track, with a corner as feasible set, and drifting slowly."""

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


def wander(rng: Any, horizon: int, size: float, low: float, high: float) -> np.ndarray:
    """Two coordinates that take steps of one size up or down, reflected at two bounds."""
    free = rng.uniform(low, high, 2) + np.cumsum(size * rng.choice([-1.0, 1.0], (horizon, 2)), 0)
    width = high - low
    return high - np.abs((free - low) % (2.0 * width) - width)


class Drifting(Problem):
    """The loss pulls to 1 on [0, 1]^2, the constraint ``x <= b_t`` drifts, and 0 is a Slater point.

    b takes steps of size T^(v - 1) / 4 between 1/4 and 3/4, so that the best decision b_t and the
    constraint move by about T^v in all, and in a slot by much less than the slack of 0. For
    v = None it stays where it is.
    """

    n_constraints = 2

    def __init__(self, horizon: int, path_exponent: float | None) -> None:
        self.horizon, self.path_exponent = horizon, path_exponent
        self.domain = coldq.Box(0.0, 1.0, dim=2)

    def _contents(self) -> tuple[Any, ...]:
        return self.horizon, self.path_exponent

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._contents()}"

    @property
    def step(self) -> float:
        v = self.path_exponent
        return 0.0 if v is None else float(self.horizon) ** (v - 1.0) / 4.0

    @property
    def constants(self) -> Constants:
        # |c| <= sqrt(2); |x - b| <= 3/4 in both rows.
        return Constants(np.sqrt(2.0), np.sqrt(2.0), 0.75 * np.sqrt(2.0), 1.0)

    def start(self, seeds: Iterable[int]) -> Any:
        pull, drift = generators(7, tuple(seeds), 2)
        T = self.horizon
        c = [-rng.uniform(0.0, 1.0, (T, 2)) for rng in pull]
        b = [wander(rng, T, self.step, 0.25, 0.75) for rng in drift]
        return _DriftingStream(coldq.Linear, c, b)


class Settling(Drifting):
    """``f_t(x) = |x - theta_t|^2 / 2``, whose best decision lies inside of ``x <= b_t``.

    No violation pays, so that whoever does not learn has a regret of the order of T. theta drifts
    between 1/4 and 1/2 and b between 3/4 and 1; for v = None theta is 1/2 and noise between -1/2
    and 1/2. `constraints` is "drifting", or "i.i.d." for b drawn anew in every slot.
    """

    def __init__(self, horizon: int, path_exponent: float | None, constraints: str) -> None:
        super().__init__(horizon, path_exponent)
        self.constraints = constraints

    def _contents(self) -> tuple[Any, ...]:
        return *super()._contents(), self.constraints

    @property
    def constants(self) -> Constants:
        # |x - theta| <= 1 and |x - b| <= 1 in both coordinates.
        return Constants(*(np.sqrt(2.0),) * 3, constraint_lipschitz=1.0)

    def start(self, seeds: Iterable[int]) -> Any:
        target, drift = generators(6, tuple(seeds), 2)
        T = self.horizon
        if self.path_exponent is None:
            theta = [rng.uniform(0.0, 1.0, (T, 2)) for rng in target]
        else:
            theta = [wander(rng, T, self.step, 0.25, 0.5) for rng in target]
        if self.constraints == "i.i.d.":
            b = [rng.uniform(0.75, 1.0, (T, 2)) for rng in drift]
        else:
            b = [wander(rng, T, self.step, 0.75, 1.0) for rng in drift]
        return _DriftingStream(lambda y: coldq.LeastSquares(np.eye(2), y), theta, b)


class _DriftingStream:
    """A loss given by a vector, and ``x <= b``."""

    def __init__(self, loss: Any, vectors: list[np.ndarray], b: list[np.ndarray]) -> None:
        self.loss, self.vectors, self.b = loss, np.stack(vectors, 1), np.stack(b, 1)

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        rows = coldq.Affine(np.eye(2), self.b[t - 1])
        return coldq.Feedback(self.loss(self.vectors[t - 1]), rows, slot=t)


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
