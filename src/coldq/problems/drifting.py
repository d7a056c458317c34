"""A family with two dials: how fast the best decision moves, and how fast the constraint does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, exponent, point, whole_number
from coldq.base.contractions import dot
from coldq.base.describe import describable
from coldq.problems.problem import Constants, Problem, generators
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box
from coldq.slot.feedback import Feedback
from coldq.slot.step import penalised_step

BEST_OFFSET = 0.5  # x*_t is this far from the centre, on one side or the other
SURFACE_OFFSET = 0.25  # the surface is this far from the centre, above or below
SURFACE_TILT = np.pi / 6  # the surface leans this much, to one side or the other
SLOPE_ALONG, MAX_NOISE, SLOPE_ACROSS = 1.0, 0.5, 0.5  # of the loss, see Valley
MU = 0.5  # strong convexity of the loss, without a 1/2
STATE_SIDES = np.array([1.0, 1.0, -1.0, -1.0])  # of the four states, the best decision's side
STATE_LEANS = np.array([1.0, -1.0, 1.0, -1.0])  # and the surface's
SQUARE = Box(-1.0, 1.0, dim=2)


@dataclass(frozen=True, eq=False, repr=False)
class Valley(Value):
    """A loss with a breakpoint along a direction and a pull across it, zero at its `best` decision:

        f(x) = |<along, d>| + noise <along, d> - <across, d> / 2 + mu |d|^2,   d = x - best.

    With |noise| < 1 its least value where <across, d> <= 0 is at d = 0. There a gradient step
    overshoots, so that a learner's regret is of the order of its steps: what the theory counts on.

    >>> import numpy as np
    >>> from coldq.problems.drifting import Valley
    >>> f = Valley(np.zeros(2), np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array(0.0), 0.0)
    >>> f.value([3.0, -1.0]), f.gradient([3.0, -1.0])
    (np.float64(3.5), array([ 1. , -0.5]))
    """

    best: Array
    along: Array
    across: Array
    noise: Array
    mu: float

    def value(self, x: ArrayLike) -> Array:
        """f(x)."""
        d = point(x, 2) - self.best
        s = dot(self.along, d)
        slopes = SLOPE_ALONG * np.abs(s) + self.noise * s - SLOPE_ACROSS * dot(self.across, d)
        return slopes + self.mu * dot(d, d)

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of f at x, the middle one at the breakpoint."""
        d = point(x, 2) - self.best
        slope = SLOPE_ALONG * np.sign(dot(self.along, d)) + self.noise
        return slope[..., None] * self.along - SLOPE_ACROSS * self.across + 2.0 * self.mu * d


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Drifting(Problem):
    """Path length T^V_x and constraint variation T^V_g, each by its own dial.

    On [-1, 1]^2 one affine row g_t(x) <= 0 has the best decision x*_t on its surface, and the loss
    (:class:`Valley`) has its breakpoint there. Each seed turns the picture by its own angle. By
    slot t, x*_t has jumped about (t - 1)^V_x times from one side of its surface to the other, a
    distance of 1, and the surface has moved about (t - 1)^V_g times:

    - V_g <= V_x: the surface shifts by 1/2 and takes x*_t with it, which slides along it between;
    - V_g > V_x: the surface pivots about x*_t by 60 degrees, because x*_t may not move that often.

    Jumps are the worst that a path of a given length can do: after each, a learner needs time of
    the order of alpha_t to catch up. At exponent 0 nothing moves. Every slot has a feasible
    decision, one is common to all slots, and both comparators are known in closed form.

    Parameters
    ----------
    path_exponent, variation_exponent
        V_x and V_g, in [0, 1].
    strongly_convex
        Whether the loss has a bowl around x*_t: mu = 1/2 in the paper's convention.
    horizon
        The number of slots T.

    >>> import coldq
    >>> problem = coldq.problems.Drifting(path_exponent=0.5, variation_exponent=0.25, horizon=2500)
    >>> best = coldq.dynamic_comparator(problem, seeds=range(4))
    >>> coldq.path_length(best).mean().round(), best.feasible.all()
    (np.float64(53.0), np.True_)
    """

    path_exponent: float
    variation_exponent: float
    strongly_convex: bool
    horizon: int
    n_constraints = 1
    domain = SQUARE

    def __init__(
        self,
        path_exponent: float,
        variation_exponent: float,
        strongly_convex: bool = False,
        horizon: int = 5000,
    ) -> None:
        self._set(
            path_exponent=float(exponent("path_exponent", path_exponent)),
            variation_exponent=float(exponent("variation_exponent", variation_exponent)),
            strongly_convex=bool(strongly_convex),
            horizon=whole_number("horizon", horizon, 2),
        )

    @property
    def mu(self) -> float:
        """The loss's strong convexity, without a 1/2."""
        return MU if self.strongly_convex else 0.0

    @property
    def pivots(self) -> bool:
        """Whether the surface pivots about x*_t, or else shifts."""
        return self.variation_exponent > self.path_exponent

    @property
    def constants(self) -> Constants:
        """R exact; D, G bounds over all angles."""
        offset = BEST_OFFSET if self.pivots else np.hypot(BEST_OFFSET, SURFACE_OFFSET)
        reach = np.sqrt(2.0) + offset
        slope = np.hypot(SLOPE_ALONG + MAX_NOISE, SLOPE_ACROSS)
        return Constants(
            diameter=float(SQUARE.diameter),
            gradient_bound=float(slope + 2.0 * self.mu * reach),
            constraint_bound=float(reach),
            constraint_lipschitz=1.0,
            strong_convexity=self.mu,
            note=dict.fromkeys(
                ("gradient_bound", "constraint_bound"), "a bound for every angle of the picture"
            ),
        )

    def start(self, seeds: Iterable[int]) -> DriftingStream:
        """One stream for all seeds."""
        return DriftingStream([(self, seed) for seed in seeds])

    def best_decisions(self, seeds: Iterable[int]) -> tuple[Array, Array]:
        """x*_t, of shape (S, T, 2), and its loss, which is zero."""
        stream = self.start(seeds)
        rows = np.arange(len(stream.best))[:, None]
        x = stream.best[rows, stream.state.T]
        return x, np.zeros(x.shape[:2])

    def best_fixed_decision(self, seeds: Iterable[int]) -> Array:
        """x*, of shape (S, 2), by one exact step on the sum of all losses.

        That sum has at most four breakpoints, one for each state, and its bowl is mu T |x|^2.
        """
        stream = self.start(seeds)
        best = [self._best_fixed(stream, k) for k in range(len(stream.best))]
        return np.reshape(best, (-1, 2))

    def _best_fixed(self, stream: DriftingStream, k: int) -> Array:
        states = stream.state[:, k]
        counts = np.bincount(states, minlength=4).astype(float)
        noise = np.bincount(states, stream.noise[:, k], minlength=4)
        seen = counts > 0.0
        counts, noise = counts[seen], noise[seen]
        best, across = stream.best[k, seen], stream.across[k, seen]
        along = _turned(across)
        # Breakpoints are rows with the penalty counts |<along, x> - limit|, constraints enforced.
        rows = np.concatenate([along, across])
        limits = np.concatenate([(along * best).sum(axis=-1), (across * best).sum(axis=-1)])
        weights = np.concatenate([SLOPE_ALONG * counts, np.full(len(counts), np.inf)])
        floor = np.concatenate([-SLOPE_ALONG * counts, np.zeros(len(counts))])
        slope = noise @ along - SLOPE_ACROSS * counts @ across
        x, T = np.zeros(2), float(self.horizon)
        # With a bowl the first step is exact; else proximal steps end after finitely many.
        alpha = T * (self.mu or 0.1)
        for _ in range(1000):
            bowl = 2.0 * self.mu * (T * x - counts @ best)
            step = penalised_step(
                x,
                slope + bowl,
                alpha,
                weights,
                Affine(rows, limits),
                SQUARE,
                multiplier_lower=floor,
            )
            if np.abs(step.x - x).max() <= 1e-12:
                break
            x = step.x
        return x


class DriftingStream:
    """Several seeds side by side, perhaps of different dials.

    A seed is in one of four states: two sides of x*_t, two leans of the surface. `best`, `across`
    (S, 4, 2) and `limit` (S, 4, 1) hold the picture of each; `state` (T, S) and `noise` (T, S) say
    what happens in every slot.
    """

    def __init__(self, members: Sequence[tuple[Drifting, int]]) -> None:
        self.mu = members[0][0].mu
        pictures, states, noises = [], [], []
        for problem, seed in members:
            T = problem.horizon
            (picture,), (draws,) = generators(4, [seed], 2)
            angle, *phases = picture.random(3)
            pictures.append(_picture(2.0 * np.pi * angle, problem.pivots))
            # Rounding down after a phase of its own leaves a count right on average over seeds.
            slide, lean = (
                np.floor(np.power(np.arange(T, dtype=float), v) + phase) % 2.0
                for v, phase in zip(
                    (problem.path_exponent, problem.variation_exponent), phases, strict=True
                )
            )
            states.append((2.0 * slide + lean).astype(np.int8))
            noises.append(MAX_NOISE * (2.0 * draws.random(T) - 1.0))
        self.best, self.across, self.limit = (
            np.stack(parts) for parts in zip(*pictures, strict=True)
        )
        self.state, self.noise = np.stack(states, axis=1), np.stack(noises, axis=1)
        self.rows = np.arange(len(members))

    def reveal(self, t: int, x: Any) -> Feedback:
        """The loss and the row of slot t, whatever was played."""
        state = self.state[t - 1]
        best, across = self.best[self.rows, state], self.across[self.rows, state]
        loss = Valley(best, _turned(across), across, self.noise[t - 1], self.mu)
        return Feedback(loss, Affine(across[:, None, :], self.limit[self.rows, state]), slot=t)


def _turned(direction: Array) -> Array:
    """Directions turned by a right angle."""
    return np.stack([direction[..., 1], -direction[..., 0]], axis=-1)


def _picture(angle: float, pivots: bool) -> tuple[Array, Array, Array]:
    """x* (4, 2), the row's direction (4, 2) and its limit (4, 1) in each of the four states."""
    across = np.array([-np.sin(angle), np.cos(angle)])
    along, sides, leans = _turned(across), STATE_SIDES[:, None], STATE_LEANS[:, None]
    best = BEST_OFFSET * sides * along
    # Limits are written out: as products they would differ in the last bit from side to side.
    if pivots:
        leaning = np.cos(SURFACE_TILT) * across + np.sin(SURFACE_TILT) * leans * along
        return best, leaning, BEST_OFFSET * sides * np.sin(SURFACE_TILT) * leans
    return best + SURFACE_OFFSET * leans * across, np.tile(across, (4, 1)), SURFACE_OFFSET * leans
