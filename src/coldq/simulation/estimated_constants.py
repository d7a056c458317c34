"""D and G from what a problem revealed, and a look at the convexity of its functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coldq.base.arrays import Array, quiet, real_array
from coldq.base.errors import InvalidInput, NotRevealed
from coldq.base.protocols import Constraint, Domain, Loss, Problem, require_problem
from coldq.simulation.loop import seed_tuple
from coldq.simulation.replay import replay, somewhere
from coldq.slot.constraints import largest
from coldq.theory.constants import one_number

CHECKED_SLOTS = 32  # slots in which convexity is looked at
POINT_PAIRS = 4  # random pairs of points in each of them

Bound = tuple[Array | None, bool]


@dataclass(frozen=True, eq=False)
class EstimatedConstants:
    """What the revealed functions say about the constants of the theorems, one number a seed.

    `gradient_bound` and `constraint_bound` bound |grad f_t| and |g_t| over the whole domain and all
    slots, in closed form: None where a loss or constraint has none. `gradient_exact` and
    `constraint_exact` say whether they are the maxima or may be above them. `largest_gradient` and
    `largest_value` are the largest at the points that were looked at; of gradients also those of
    slots whose maximum is known, and those at the decisions. `nonconvexity` is how far convexity
    failed where it was looked at, at most zero if it did not, relative to the size of the
    functions; NaN if functions were revealed only where they were played.

    >>> import coldq
    >>> found = coldq.estimate_constants(coldq.problems.OnlineLinear(horizon=20), seeds=[0, 1])
    >>> found.gradient_exact, found.gradient_bound.shape, bool((found.nonconvexity <= 1e-9).all())
    (True, (2,), True)
    """

    gradient_bound: Array | None
    constraint_bound: Array | None
    gradient_exact: bool
    constraint_exact: bool
    largest_gradient: Array
    largest_value: Array
    nonconvexity: Array


@quiet
def estimate_constants(
    problem: Problem, seeds: Iterable[int], decisions: Array | None = None, *, mu: float = 0.0
) -> EstimatedConstants:
    """D and G from the revealed functions themselves, and a look at their convexity.

    Closed forms over all slots, for our losses and constraints on our domains: a loss tells by
    ``gradient_bound(domain)``, a constraint by ``largest(domain)``. At a few random pairs of points
    in some slots, ``f(y) >= f(x) + <grad f(x), y - x> + mu |y - x|^2`` and the like for g. Where
    the largest gradient is not known, that at the `decisions` (S, T, p) is looked at in every slot.

    >>> import coldq
    >>> found = coldq.estimate_constants(coldq.problems.TimeVarying(horizon=30), seeds=[0])
    >>> bool(found.constraint_bound[0] <= coldq.problems.TimeVarying().constants.constraint_bound)
    True
    """
    require_problem(problem)
    seeds, domain, mu = seed_tuple(seeds), problem.domain, one_number("mu", mu)
    S, rng = len(seeds), np.random.default_rng(0)
    decisions = None if decisions is None else real_array("decisions", decisions, 0)
    D: Bound = (np.zeros(S), True)
    G = D
    largest_gradient, largest_value, nonconvexity = np.zeros(S), np.zeros(S), np.full(S, -np.inf)
    whole = True
    count = min(CHECKED_SLOTS, problem.horizon)
    checked = set(np.linspace(1, problem.horizon, count).astype(int).tolist())
    for t, revealed in replay(problem, seeds, decisions):
        loss, constraint = revealed.loss, revealed.constraint
        slope = _closed_form(getattr(loss, "gradient_bound", None), domain)
        D = _larger(D, slope)
        if G[0] is not None:
            G = _larger(G, _closed_form(partial(largest, constraint), domain))
        if slope[0] is not None and slope[1]:
            largest_gradient = np.maximum(largest_gradient, slope[0])
        elif decisions is not None:
            largest_gradient = np.maximum(largest_gradient, _steepest_at(loss, decisions[:, t - 1]))
        for _ in range(POINT_PAIRS if t in checked else 0):
            x, y = (somewhere(domain, rng, (S,)) for _ in range(2))
            try:
                steep, tall, bend = _look(loss, constraint, x, y, mu)
            except NotRevealed:  # known only where it was played
                whole = False
                break
            largest_gradient = np.maximum(largest_gradient, steep)
            largest_value = np.maximum(largest_value, tall)
            nonconvexity = np.maximum(nonconvexity, bend)
    if not whole:
        nonconvexity = np.full(S, np.nan)
    return EstimatedConstants(D[0], G[0], D[1], G[1], largest_gradient, largest_value, nonconvexity)


def _closed_form(of: Any, domain: Domain) -> Bound:
    """A slot's bound over the whole domain, and whether it is the maximum; None without one."""
    if of is None or not hasattr(domain, "ends"):
        return None, False
    try:
        return of(domain)
    except InvalidInput:
        return None, False


def _larger(so_far: Bound, other: Bound) -> Bound:
    """The larger of two bounds, None where one of them is."""
    if so_far[0] is None or other[0] is None:
        return None, False
    return np.maximum(so_far[0], other[0]), so_far[1] and other[1]


def _steepest_at(loss: Loss, decisions: Array) -> Array:
    """The largest |grad f| at a slot's decisions, of which there is one an agent of a network."""
    seeds, *_, dim = decisions.shape
    largest_gradient = np.zeros(seeds)
    for x in np.moveaxis(decisions.reshape(seeds, -1, dim), 1, 0):
        try:
            slope = loss.gradient(x)
        except NotRevealed:  # measured elsewhere, or without slopes
            break
        largest_gradient = np.maximum(largest_gradient, np.sqrt((slope * slope).sum(axis=-1)))
    return largest_gradient


def _look(
    loss: Loss, constraint: Constraint, x: Array, y: Array, mu: float
) -> tuple[Array, Array, Array]:
    """|grad f(x)|, the largest |g(x)|, and how far f or g at y is below its tangent at x."""
    slope, g, step = loss.gradient(x), constraint.value(x), y - x
    rise = loss.value(y) - loss.value(x) - (slope * step).sum(axis=-1)
    rise = rise - mu * (step * step).sum(axis=-1)
    size = 1.0 + np.abs(loss.value(y)) + np.abs(loss.value(x))
    rows = constraint.value(y) - g - (constraint.jacobian(x) * step[..., None, :]).sum(axis=-1)
    dip = np.maximum(-rise / size, (-rows / (1.0 + np.abs(g))).max(axis=-1, initial=-np.inf))
    return np.sqrt((slope * slope).sum(axis=-1)), np.abs(g).max(axis=-1, initial=0.0), dip
