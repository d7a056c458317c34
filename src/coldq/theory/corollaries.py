"""COLDQ's corollaries: its theorems for the parameters that the paper chooses, in closed form.

Symbols, corrections and the reference are those of :mod:`coldq.theory.bounds`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import exponent, non_negative, positive, quiet
from coldq.theory.constants import RunConstants


class Bounds(NamedTuple):
    """What a corollary bounds: a regret and the hard violation, which bounds the soft one too.

    >>> from coldq import bounds
    >>> bounds.Bounds(regret=2.0, violation=1.0).regret
    2.0
    """

    regret: Any
    violation: Any


@quiet
def corollary_1(
    horizon: int,
    *,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    path_exponent: float = 0.0,
    epsilon: ArrayLike = 0.5,
    path_length: ArrayLike = 0.0,
    constraint_variation: ArrayLike = 0.0,
) -> Bounds:
    """Corollary 1, with alpha_t = t^((1 - V_x) / 2), eta = 1/T and gamma = epsilon T:

        REG_d <= 2 R T^((1-V_x)/2) P + D^2 / (2 (1 + V_x)) T^((1+V_x)/2) + R^2 T^((1-V_x)/2) + D R
        VIO_h <= H sqrt(N) / epsilon V + 2 R / epsilon T^(-(1+V_x)/2) P
                 + D^2 / (2 epsilon (1 + V_x)) T^((V_x-1)/2) + (D R + 2 N H^2) / epsilon
                 + R^2 / epsilon T^(-(1+V_x)/2) + N G

    with ``H = max(G, epsilon)``. The paper bounds ``sum_t t^-c`` by the integral from 1, which is
    false; the integral from 0 gives the same ``T^(1-c) / (1-c)``.

    >>> from coldq import bounds
    >>> regret, violation = bounds.corollary_1(
    ...     10_000, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> regret.round(3), violation.round(3)
    (np.float64(452.0), np.float64(9.09))
    """
    T, R, D, G, N, V = (
        RunConstants(horizon, diameter, gradient_bound, constraint_bound, n_constraints,
              constraint_variation).checked().symbols
    )  # fmt: skip
    P = non_negative("path_length", path_length)
    v = exponent("path_exponent", path_exponent)
    epsilon = positive("epsilon", epsilon)
    H, alpha = np.maximum(G, epsilon), T ** ((1.0 - v) / 2.0)
    tracking = alpha * (2.0 * R * P + R * R) + D * D / (2.0 * (1.0 + v)) * T ** ((1.0 + v) / 2.0)
    drift = H * np.sqrt(N) * V + D * R + 2.0 * N * H * H
    return Bounds(tracking + D * R, (drift + tracking / T) / epsilon + N * G)


@quiet
def corollary_2(
    horizon: int,
    *,
    mu: ArrayLike,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    epsilon: ArrayLike = 0.5,
    constraint_variation: ArrayLike = 0.0,
) -> Bounds:
    """Corollary 2, for mu-strongly convex losses with alpha_t = mu t, eta = 1/T, gamma = epsilon T:

        REG_s <= D^2 / (4 mu) (1 + log T) + D R
        VIO_h <= H sqrt(N) / epsilon V + D^2 (1 + log T) / (4 mu epsilon T)
                 + (D R + 2 N H^2) / epsilon + mu R^2 / epsilon + N G

    with ``H = max(G, epsilon)``. The paper bounds ``sum_t 1/t`` by log T, which is false; it is at
    most 1 + log T. The violation bound is against a decision feasible in every slot.

    >>> from coldq import bounds
    >>> regret, violation = bounds.corollary_2(
    ...     10_000, mu=0.5, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> regret.round(3), violation.round(3)
    (np.float64(7.105), np.float64(13.001))
    """
    T, R, D, G, N, V = (
        RunConstants(horizon, diameter, gradient_bound, constraint_bound, n_constraints,
              constraint_variation).checked().symbols
    )  # fmt: skip
    mu, epsilon = positive("mu", mu), positive("epsilon", epsilon)
    H, noise = np.maximum(G, epsilon), D * D / (4.0 * mu) * (1.0 + np.log(T))
    drift = H * np.sqrt(N) * V + D * R + 2.0 * N * H * H
    return Bounds(noise + D * R, (drift + noise / T + mu * R * R) / epsilon + N * G)


@quiet
def corollary_3(
    horizon: int,
    *,
    diameter: ArrayLike,
    gradient_bound: ArrayLike,
    constraint_bound: ArrayLike,
    n_constraints: int,
    epsilon: ArrayLike = 0.5,
    path_length: ArrayLike = 0.0,
    constraint_variation: ArrayLike = 0.0,
) -> Bounds:
    """The corollary on expert tracking, with kappa = T^(-1/2), alpha_t[m] = sqrt(t) / 2^(m-1),
    eta = T^(-3/2) and gamma = epsilon T^(3/2). With ``c = sqrt(1 + P / R)``:

        REG_d <= sqrt(T) ( (4 R P + 2 R^2) / c + D^2 / 2 c + 2 log(floor(log2 c) + 2)
                           + D^2 R^2 / 2 ) + D R
        VIO_h <= sqrt(N) V + (D R / sqrt(T) + 2/3 R^2) / epsilon + N G

    In the regret the paper prints kappa D^2 R^2 / 2 sqrt(T) for the hedge's own term; with
    kappa = T^(-1/2) put in, it is D^2 R^2 / 2 sqrt(T). The violation is :func:`expert_violation`:
    the paper's last line drops the weights, which costs a factor M = O(log T).

    >>> from coldq import bounds
    >>> regret, violation = bounds.corollary_3(
    ...     10_000, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0, n_constraints=1)
    >>> regret.round(3), violation.round(3)
    (np.float64(1190.629), np.float64(6.373))
    """
    T, R, D, G, N, V = (
        RunConstants(horizon, positive("diameter", diameter), gradient_bound, constraint_bound,
              n_constraints, constraint_variation).checked().symbols
    )  # fmt: skip
    P = non_negative("path_length", path_length)
    epsilon = positive("epsilon", epsilon)
    c = np.sqrt(1.0 + P / R)
    best = (4.0 * R * P + 2.0 * R * R) / c + D * D / 2.0 * c
    hedge = 2.0 * np.log(np.floor(np.log2(c)) + 2.0) + D * D * R * R / 2.0
    violation = np.sqrt(N) * V + (D * R / np.sqrt(T) + R * R / 1.5) / epsilon + N * G
    return Bounds(np.sqrt(T) * (best + hedge) + D * R, violation)
