"""What is proved: COLDQ's theorems and corollaries as functions that return the bound.

Symbols: R the `diameter` of X, D the `gradient_bound`, G the `constraint_bound` on |g_t^n|, N the
number of constraints, ``P = sum_t |x*_t - x*_{t-1}|`` the path length and
``V = sum_t max over X of |g_t - g_{t-1}|`` the constraint variation. Quantities may be arrays over
leading axes, one entry a seed.

Where the paper's text had to be corrected, the function that uses the correction says so. One
correction concerns all violation bounds: the queue's ceiling is ``H / eta`` with
``H = max(G, eta gamma)``, because the floor gamma may lie above G / eta; H replaces G wherever that
ceiling enters. Every bound assumes a feasible decision in every slot, and x*_t may be any feasible
decisions: the constant one in all slots, where it exists, has P = 0.

References
----------
Wang, Yan and Liu, "Doubly-Bounded Queue for Constrained Online Learning: Keeping Pace with Dynamics
of Both Loss and Constraint", AAAI 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array, fraction, non_negative, positive, quiet, whole_number
from coldq.base.errors import InvalidInput
from coldq.slot.schedules import as_schedule
from coldq.theory.constants import RunConstants


@quiet
def steps_of(alpha: Any, horizon: int, *, falling: bool = False) -> Array:
    """``alpha_1, ..., alpha_T`` on the last axis, from a schedule, a number or the array itself.

    They must not fall, unless `falling` says that they may.

    >>> from coldq.theory.bounds import steps_of
    >>> steps_of(lambda t: 2.0 * t, 3)
    array([2., 4., 6.])
    """
    T = whole_number("horizon", horizon, 2)
    if isinstance(alpha, np.ndarray | list | tuple) and as_array("alpha", alpha).ndim:
        steps = positive("alpha", alpha)
        if steps.shape[-1] != T:
            raise InvalidInput(
                f"alpha must have {T} entries on its last axis, one a slot, but has shape "
                f"{steps.shape}"
            )
    else:
        levels = as_schedule("alpha", alpha)(np.arange(1.0, T + 1.0))
        steps = levels if levels.ndim else np.full(T, levels)
    falls = np.diff(steps, axis=-1) < 0.0
    if falls.any() and not falling:
        t = int(np.argwhere(falls)[0][-1]) + 1
        raise InvalidInput(f"alpha must not decrease, but does from slot {t} to slot {t + 1}")
    return steps


@quiet
def queue_ceiling(constraint_bound: ArrayLike, eta: ArrayLike, gamma: ArrayLike) -> Array:
    """Lemma 1's upper bound on the queue, corrected: ``max(G, eta gamma) / eta``.

    The paper prints G / eta, which holds if gamma <= G / eta.

    >>> from coldq import bounds
    >>> bounds.queue_ceiling(constraint_bound=0.3, eta=0.01, gamma=50.0)
    np.float64(50.0)
    """
    G = non_negative("constraint_bound", constraint_bound, finite=False)
    eta, gamma = fraction("eta", eta), positive("gamma", gamma)
    return np.maximum(G, eta * gamma) / eta


@quiet
def theorem_1(
    alpha: Any,
    horizon: int,
    *,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    path_length: ArrayLike | None = None,
    moves: ArrayLike | None = None,
) -> Array:
    """Theorem 1: the dynamic regret of COLDQ is at most

        2 R sum_{t=2}^T alpha_{t-1} |x*_t - x*_{t-1}| + D^2 / 4 sum_{t=1}^T 1 / alpha_t
        + R^2 alpha_T + D R.

    With path length 0 it bounds the static regret. The last step of the paper's proof has the
    convexity inequality at x* with the wrong sign; taken at x_t instead it gives the same D R.

    Parameters
    ----------
    alpha, horizon
        alpha_t, not decreasing: a schedule, a number or all T values; and T.
    diameter, gradient_bound
        R and D.
    path_length, moves
        One of them: P, which is weighted by alpha_{T-1}; or |x*_t - x*_{t-1}| for each slot on the
        last axis, the first one zero, for the sum as it stands.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> constants = dict(diameter=2.0, gradient_bound=1.0)
    >>> bounds.theorem_1(Power(0.5), 100, path_length=0.0, **constants).round(3)
    np.float64(46.647)
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, 0.0, 0, 0.0, path_length, moves
    ).checked()
    return _theorem_1(steps_of(alpha, horizon), constants)


def _theorem_1(steps: Array, constants: RunConstants) -> Array:
    return _tracking(steps, constants) + constants.gradient_bound * constants.diameter


@quiet
def theorem_2(
    alpha: Any,
    horizon: int,
    *,
    eta: ArrayLike,
    gamma: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    constraint_variation: ArrayLike,
    path_length: ArrayLike | None = None,
    moves: ArrayLike | None = None,
) -> Array:
    """Theorem 2: the hard violation of COLDQ is at most, with ``H = max(G, eta gamma)``,

        H sqrt(N) / (eta gamma) V + (D R + 2 N H^2) T / gamma + N G
        + (2 R sum_{t=2}^T alpha_{t-1} |x*_t - x*_{t-1}| + D^2 / 4 sum_{t=1}^T 1 / alpha_t
           + R^2 alpha_T) / gamma.

    The paper has G in place of H, see :func:`queue_ceiling`. Parameters as in :func:`theorem_1`.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> constants = dict(diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> bounds.theorem_2(Power(0.5), 100, eta=0.01, gamma=50.0, constraint_variation=0.0,
    ...                  path_length=0.0, **constants).round(3)
    np.float64(9.893)
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, constraint_bound, n_constraints, constraint_variation,
        path_length, moves,
    ).checked()  # fmt: skip
    return _theorem_2(
        steps_of(alpha, horizon), fraction("eta", eta), positive("gamma", gamma), constants
    )


def _theorem_2(steps: Array, eta: Array, gamma: Array, constants: RunConstants) -> Array:
    T, R, D, G, N, V = constants.symbols
    H = np.maximum(G, eta * gamma)
    tracking = _tracking(steps, constants)
    drift = H * np.sqrt(N) / (eta * gamma) * V + 2.0 * N * H * H * T / gamma
    return drift + (tracking + D * R * T) / gamma + N * G


@quiet
def floor_violation(
    alpha: Any,
    horizon: int,
    *,
    gamma: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    constraint_variation: ArrayLike,
    path_length: ArrayLike | None = None,
    moves: ArrayLike | None = None,
) -> Array:
    """A smaller bound on the hard violation, from the queue's floor alone; not in the paper.

        sqrt(N) V + N G
        + (2 R sum_{t=2}^T alpha_{t-1} |x*_t - x*_{t-1}| + D^2 / 4 sum_{t=1}^T 1 / alpha_t
           + R^2 alpha_T + D R T) / gamma

    Summing Lemma 3 over the slots bounds ``sum_t <Q_{t-1}, [g_{t-1}(x_t)]_+>`` by the second line
    times gamma. The queue is at least gamma, so that the second line bounds
    ``sum_t sum_n [g_{t-1}^n(x_t)]_+``, and from there to g_t costs sqrt(N) V. No ceiling is used: a
    queue frozen at gamma keeps this bound, which never exceeds Theorem 2's.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> constants = dict(diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> bounds.floor_violation(Power(0.5), 100, gamma=50.0, constraint_variation=0.0,
    ...                        path_length=0.0, **constants).round(3)
    np.float64(5.893)
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, constraint_bound, n_constraints, constraint_variation,
        path_length, moves,
    ).checked()  # fmt: skip
    return _floor_violation(steps_of(alpha, horizon), positive("gamma", gamma), constants)


def _floor_violation(steps: Array, gamma: Array, constants: RunConstants) -> Array:
    T, R, D, G, N, V = constants.symbols
    tracking = _tracking(steps, constants)
    return np.sqrt(N) * V + (tracking + D * R * T) / gamma + N * G


@quiet
def theorem_3(
    alpha: Any,
    horizon: int,
    *,
    mu: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
) -> Array:
    """Theorem 3: for mu-strongly convex losses the static regret of COLDQ is at most

        sum_{t=2}^{T-1} [alpha_t - alpha_{t-1} - mu]_+ R^2 + D^2 / 4 sum_{t=1}^T 1 / alpha_t
        + [alpha_1 - mu]_+ R^2 + D R.

    `mu` is the paper's: ``f(y) >= f(x) + <grad f(x), y - x> + mu |y - x|^2``, without a 1/2. The
    paper has |x* - x_t|^2 <= R^2 in the first sum and no positive parts. Without them its last step
    is false where alpha_1 < mu, because (alpha_1 - mu) |x* - x_1|^2 <= (alpha_1 - mu) R^2 needs the
    opposite; such a term is at most zero.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> bounds.theorem_3(Power(1.0, 0.5), 100, mu=0.5, diameter=2.0, gradient_bound=1.0).round(3)
    np.float64(4.594)
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, 0.0, 0, 0.0, mu=positive("mu", mu)
    ).checked()
    return _theorem_3(steps_of(alpha, horizon), constants)


def _theorem_3(steps: Array, constants: RunConstants) -> Array:
    R, D, mu = constants.diameter, constants.gradient_bound, np.asarray(constants.mu)
    # alpha_t - alpha_{t-1} carries the rounding of alpha_t, which for alpha = mu t would add up.
    rises = np.diff(steps[..., :-1], axis=-1) - mu[..., None]
    rises = np.where(rises > 1e-12 * steps[..., 1:-1], rises, 0.0).sum(axis=-1)
    first = np.maximum(steps[..., 0] - mu, 0.0)
    return (rises + first) * R * R + D * D / 4.0 * (1.0 / steps).sum(axis=-1) + D * R


@quiet
def expert_regret(
    alpha: Any,
    horizon: int,
    *,
    kappa: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    path_length: ArrayLike | None = None,
    moves: ArrayLike | None = None,
) -> Array:
    """The dynamic regret of COLDQ-Expert, for its best expert and any hedge rate kappa: at most

        min over m of { theorem_1 with alpha_t[m] + log(1 / w_1[m]) / kappa } + kappa D^2 R^2 T / 2

    with ``w_1[m] = (M + 1) / (m (m + 1) M)``. The corollary bounds this in closed form. It holds
    for experts with gradients of their own, and for experts that share the one at x_t: then Theorem
    1 is about the linear losses <grad f_t(x_t), x>.

    Parameters
    ----------
    alpha
        A list of the experts' schedules.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> pool = [Power(0.5, 0.5**m) for m in range(4)]
    >>> bounds.expert_regret(pool, 100, kappa=0.1, diameter=2.0, gradient_bound=1.0,
    ...                      path_length=0.0).round(3)
    np.float64(66.981)
    """
    if not isinstance(alpha, list | tuple) or not alpha:
        raise InvalidInput(f"alpha must be a list of schedules, one an expert, but is {alpha!r}")
    constants = RunConstants(
        horizon, diameter, gradient_bound, 0.0, 0, 0.0, path_length, moves
    ).checked()
    pool = [steps_of(schedule, horizon) for schedule in alpha]
    return _expert_regret(pool, positive("kappa", kappa), constants)


def _expert_regret(pool: list[Array], kappa: Array, constants: RunConstants) -> Array:
    D, R, M = constants.gradient_bound, constants.diameter, len(pool)
    each = [
        _theorem_1(steps, constants) + np.log(m * (m + 1.0) * M / (M + 1.0)) / kappa
        for m, steps in enumerate(pool, 1)
    ]
    return np.min(each, axis=0) + kappa * D * D * R * R * constants.horizon / 2.0


@quiet
def expert_violation(
    alpha: Any,
    horizon: int,
    *,
    gamma: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    constraint_variation: ArrayLike,
) -> Array:
    """The hard violation of COLDQ-Expert, for the largest alpha_t of its experts: at most

        sqrt(N) V + (D R (T - 1) + R^2 sum_{t=1}^{T-1} alpha_t) / gamma + N G.

    The paper adds up the experts' violations without their weights, which costs a factor M. The
    weights change from slot to slot, so bounds on each expert's total do not carry over to the
    mean; a bound on each slot does. Optimality of an expert's step against any feasible u gives
    ``gamma sum_n [g_{t-1}^n(x_t)]_+ <= <grad f, u - x_t> + alpha |u - x_{t-1}|^2
    <= D R + alpha_{t-1} R^2``; a mean of the experts keeps it, as each g^n is convex, and from
    g_{t-1} to g_t costs sqrt(N) V in all. No path length enters.

    >>> from coldq import bounds
    >>> from coldq.slot.schedules import Power
    >>> constants = dict(diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> bounds.expert_violation(Power(0.5), 100, gamma=500.0, constraint_variation=0.0,
    ...                         **constants).round(3)
    np.float64(6.688)
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, constraint_bound, n_constraints, constraint_variation
    ).checked()
    return _expert_violation(steps_of(alpha, horizon), positive("gamma", gamma), constants)


def _expert_violation(steps: Array, gamma: Array, constants: RunConstants) -> Array:
    T, R, D, G, N, V = constants.symbols
    slots = D * R * (T - 1.0) + R * R * steps[..., :-1].sum(axis=-1)
    return np.sqrt(N) * V + slots / gamma + N * G


@quiet
def step_violation(
    alpha: Any,
    horizon: int,
    *,
    weights: Any,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    constraint_variation: ArrayLike,
    feasible: ArrayLike = True,
) -> Array:
    """The hard violation of any learner that weighs the rows of its step: at most

        sqrt(N) V + N G + sum_{t=1}^{T-1} min{ N G, price_t / min_n w_t^n }
        price_t = max over 0 <= c <= R of D c + 2 alpha_t c (R - c), at most D R + alpha_t R^2 / 2

    Not in the paper. The step of slot t minimises over X

        F(x) = <grad f_t(x_t), x - x_t> + alpha_t |x - x_t|^2 + sum_n w_t^n [g_t^n(x)]_+

    with any weights from 0 to infinity, which are hard rows. F less alpha_t |x|^2 is convex, so
    that F(x_{t+1}) + alpha_t |u - x_{t+1}|^2 <= F(u) for every u in X. Take a u that is feasible in
    slot t, with c = |u - x_{t+1}|; its rows cost nothing, and

        sum_n w_t^n [g_t^n(x_{t+1})]_+
          <= <grad f_t(x_t), u - x_{t+1}> + alpha_t (|u - x_t|^2 - |x_{t+1} - x_t|^2 - c^2)
          <= D c + 2 alpha_t c (R - c),

    the last because |x_{t+1} - x_t| is at least the difference of |u - x_t| <= R and c. The largest
    over c is at c = min{R, R / 2 + D / (4 alpha_t)}. So the rows of g_t at x_{t+1} sum to at most
    price_t / min_n w_t^n, and in any case to at most N G; from there to g_{t+1} at x_{t+1} costs
    sqrt(N) V in all, and slot 1 costs N G. No path enters, alpha_t may fall, and a slot without a
    feasible decision costs N G and spoils no other.

    A learner of any slope shows that price_t cannot be smaller: on [0, R] with the loss D x and the
    row s (R - x) <= 0, a step from 0 with D <= w s <= D + 2 alpha R ends at c = R - x with
    w s c = D c + 2 alpha c (R - c).

    Parameters
    ----------
    alpha, horizon
        alpha_t, a schedule, a number or all T values; and T.
    weights
        ``min_n w_t^n``: a number, a function of t, or all T - 1 values on the last axis.
    feasible
        Which slots have a feasible decision, T values on the last axis; by default all.

    >>> from coldq import bounds
    >>> constants = dict(diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> by_weight = [
    ...     bounds.step_violation(
    ...         1.0, 100, weights=w, constraint_variation=0.0, **constants).round(2)
    ...     for w in (0.0, 50.0, float("inf"))]
    >>> by_weight
    [np.float64(100.0), np.float64(7.19), np.float64(1.0)]
    """
    constants = RunConstants(
        horizon, diameter, gradient_bound, constraint_bound, n_constraints, constraint_variation,
        feasible=feasible,
    ).checked()  # fmt: skip
    T = constants.horizon
    least = weights(np.arange(1.0, T)) if callable(weights) else weights
    steps = steps_of(alpha, T, falling=True)
    return _step_violation(steps, non_negative("weights", least, finite=False), constants)


def _step_violation(steps: Array, weights: Array, constants: RunConstants) -> Array:
    _, R, D, G, N, V = constants.symbols
    R, D, all_rows = (np.asarray(symbol)[..., None] for symbol in (R, D, N * G))
    alpha = steps[..., :-1]
    c = np.minimum(R, R / 2.0 + D / (4.0 * alpha))
    slots = c * (D + 2.0 * alpha * (R - c)) / weights
    slots = np.where(np.atleast_1d(constants.feasible)[..., : alpha.shape[-1]], slots, np.inf)
    slots = np.fmin(slots, all_rows)  # 0 / 0, where no weight holds a row, is N G
    return np.sqrt(N) * V + N * G + slots.sum(axis=-1)


def _tracking(steps: Array, constants: RunConstants) -> Array:
    """What Lemma 3 sums to: ``2 R path + D^2 / 4 sum 1 / alpha_t + R^2 alpha_T``."""
    R, D, path = constants.diameter, constants.gradient_bound, _weighted_path(steps, constants)
    return 2.0 * R * path + D * D / 4.0 * (1.0 / steps).sum(axis=-1) + R * R * steps[..., -1]


def _weighted_path(steps: Array, constants: RunConstants) -> Array:
    """``sum_{t=2}^T alpha_{t-1} |x*_t - x*_{t-1}|``, or at least that."""
    if (constants.path_length is None) == (constants.moves is None):
        raise InvalidInput("give either path_length or moves, the distances slot by slot")
    if constants.moves is None:
        return steps[..., -2] * non_negative("path_length", constants.path_length)
    slots = non_negative("moves", constants.moves, finite=False)
    if slots.shape[-1:] != steps.shape[-1:]:
        raise InvalidInput(
            f"moves must have {steps.shape[-1]} entries on its last axis, one a slot, but has "
            f"shape {slots.shape}"
        )
    return (steps[..., :-1] * slots[..., 1:]).sum(axis=-1)
