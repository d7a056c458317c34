"""A problem with dials: jumps, a period, slow drift, and an adversary that answers to x."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import Array, non_negative, one_exponent, one_real, whole_number
from coldq.base.contractions import dot
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.problems.problem import Constants, Problem, generators
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box
from coldq.slot.feedback import Feedback
from coldq.slot.losses import LeastSquares

TARGET_STEP = 0.25  # how far jumps, the period and the drift each move the target


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Adversary(Problem):
    """On [-1, 1]^p a target moves as three dials say, and a fourth lets the functions answer to x.

    The target z_t is always feasible. In units of 1/4 it is the sum of

    - jumps: +-e, the sign changing `switches` times, at equal distances;
    - a period: n sin(2 pi t / period), if a period is given;
    - slow drift: e from -drift to +drift over the whole horizon,

    with directions e and n of each seed's own, at right angles where there is room. The loss is
    ``|x - c_t|^2 / 2`` and the row ``<a_t, x - z_t> <= margin``. With greed 0 they do not look at
    x: a_t = n, and the loss pulls the best decision onto the row, c_t = z_t + pull n. An adversary
    looks where x is, u = (x - z_t) / |x - z_t|, and with greed k between 0 and 1

        a_t = ((1 - k) n + k u) / |.|,   c_t = z_t + pull ((1 - k) n - k u).

    With greed 1 the row cuts where x is, as far as a slope of 1 can, and the loss is best on the
    other side: whoever overshoots the target is chased back and forth for ever. Turn one dial at a
    time to see when a learner breaks.

    Parameters
    ----------
    greed
        From 0, which does not look at x, to 1.
    switches
        How many times the target jumps in the whole horizon.
    period
        Slots of one oscillation, 0 for none.
    drift
        The share of the largest slow drift, in [0, 1].
    pull, margin
        How far the loss's best point is from the target, and how far the row leaves it room.
    dim, horizon
        The number of coordinates p, and of slots T.

    >>> import coldq
    >>> shares = []
    >>> for greed in (0.0, 1.0):
    ...     problem = coldq.problems.Adversary(greed=greed, switches=4, horizon=200)
    ...     trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(4))
    ...     assert coldq.bound_report(trace).holds
    ...     shares.append((trace.violation > 1e-6).mean())
    >>> bool(shares[0] < 0.1 < shares[1])
    True
    """

    greed: float
    switches: int
    period: int
    drift: float
    pull: float
    margin: float
    dim: int
    horizon: int
    n_constraints = 1

    def __init__(
        self,
        greed: float = 0.0,
        switches: int = 0,
        period: int = 0,
        drift: float = 0.0,
        *,
        pull: float = 0.5,
        margin: float = 0.0,
        dim: int = 2,
        horizon: int = 1000,
    ) -> None:
        T = whole_number("horizon", horizon, 2)
        jumps = whole_number("switches", switches, 0)
        if jumps >= T:
            raise InvalidInput(f"switches must be fewer than the {T} slots, but are {jumps}")
        room = {"pull": pull, "margin": margin}
        self._set(
            greed=one_exponent("greed", greed),
            switches=jumps,
            period=whole_number("period", period, 0),
            drift=one_exponent("drift", drift),
            **{name: float(non_negative(name, one_real(name, room[name]))) for name in room},
            dim=whole_number("dim", dim, 1),
            horizon=T,
        )

    @property
    def domain(self) -> Box:  # type: ignore[override]
        """[-1, 1]^p."""
        return Box(-1.0, 1.0, dim=self.dim)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]
        """Whether it looks at x."""
        return self.greed > 0.0

    @property
    def constants(self) -> Constants:
        """R and the Lipschitz constant exact; D and G bounds over all targets and directions."""
        corner = float(np.sqrt(self.dim)) + 3.0 * TARGET_STEP
        bounds = ("gradient_bound", "constraint_bound")
        return Constants(
            diameter=float(self.domain.diameter),
            gradient_bound=corner + self.pull,
            constraint_bound=corner + self.margin,
            constraint_lipschitz=1.0,
            strong_convexity=0.5,
            note=dict.fromkeys(bounds, "a bound for every target and direction"),
        )

    def start(self, seeds: Iterable[int]) -> AdversaryStream:
        """One stream for all seeds."""
        return AdversaryStream(self, tuple(seeds))

    def targets(self, seeds: Iterable[int]) -> Array:
        """z_t, which is feasible in slot t, of shape (S, T, p).

        >>> import coldq
        >>> coldq.problems.Adversary(switches=1, horizon=4, dim=1).targets([0])[0, :, 0]
        array([ 0.25,  0.25, -0.25, -0.25])
        """
        return self.start(seeds).targets


class AdversaryStream:
    """Several seeds side by side: `along` e and `normal` n (S, p), `targets` (S, T, p)."""

    def __init__(self, problem: Adversary, seeds: tuple[int, ...]) -> None:
        self.problem, T, p = problem, problem.horizon, problem.dim
        (draws,) = generators(5, seeds, 1)
        directions = np.array([rng.standard_normal((2, p)) for rng in draws])
        self.along = _unit(directions[:, 0], np.ones(p))
        across = directions[:, 1]
        if p > 1:
            across = across - dot(across, self.along)[:, None] * self.along
        self.normal = _unit(across, np.ones(p))
        t = np.arange(T)
        side = 1.0 - 2.0 * (t * (problem.switches + 1) // T % 2) if problem.switches else 0.0 * t
        way = side + problem.drift * np.linspace(-1.0, 1.0, T)
        turn = np.sin(2.0 * np.pi * (t + 1) / problem.period) if problem.period else 0.0 * t
        self.targets = TARGET_STEP * (
            way[:, None] * self.along[:, None, :] + turn[:, None] * self.normal[:, None, :]
        )

    def reveal(self, t: int, x: Any) -> Feedback:
        """The loss and the row of slot t, which answer to x as far as there is greed."""
        problem, z, n = self.problem, self.targets[:, t - 1], self.normal
        k = problem.greed
        u = _unit(np.asarray(x, float) - z, n) if k > 0.0 else n
        a = _unit((1.0 - k) * n + k * u, n)
        c = z + problem.pull * ((1.0 - k) * n - k * u)
        row = Affine(a[:, None, :], (dot(a, z) + problem.margin)[:, None])
        return Feedback(LeastSquares(np.eye(problem.dim), c), row, slot=t)


def _unit(directions: Array, instead: Array) -> Array:
    """Directions of length one; those of none are others."""
    length = np.sqrt(dot(directions, directions))[..., None]
    none = length < 1e-12
    other = np.broadcast_to(instead / np.sqrt(dot(instead, instead))[..., None], directions.shape)
    return np.where(none, other, directions / np.where(none, 1.0, length))
