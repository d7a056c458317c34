"""A pool of step sizes under AdaHedge: each takes its own steps, the weighted mean is played."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.contractions import dot, matvec, vecmat

ALIKE = 1e-10  # losses of the pool, relative to R |d|, that rounding alone may make
GAP, SQUARES, STEEPEST, HEAVIEST = range(4)  # the entries of a hedge
HEDGE = 4


class Pool(NamedTuple):
    """The pool after a slot: its hedge, losses and weights, and what each member steps with."""

    hedge: Array
    losses: Array
    weights: Array
    directions: Array
    alphas: Array


def weigh(gradient: Array, state: object, sizes: Array, R: Array) -> Pool:
    """The weights after slot t, by AdaHedge on ``<d, x^c - x_t>``, and every member's own step.

    Member c steps with ``alpha = c sqrt(S) / R``, all divided by ``F = D + 2 alpha R``, where S is
    the sum of |d|^2 and D the largest |d|.
    """
    x, points, hedge, losses, weights = (
        getattr(state, name) for name in ("x", "points", "hedge", "losses", "weights")
    )
    square = np.asarray(dot(gradient, gradient))
    size = np.sqrt(square)
    out = np.empty(hedge.shape)
    out[..., SQUARES] = hedge[..., SQUARES] + square
    out[..., STEEPEST] = np.maximum(hedge[..., STEEPEST], size)

    loss = matvec(points - x[..., None, :], gradient)
    loss = np.where(np.abs(loss) <= (ALIKE * R * size)[..., None], 0.0, loss)
    new = losses + loss
    least, gap = new.min(axis=-1), hedge[..., GAP]
    lost = dot(weights, loss) - _mixed(loss, weights, gap, least - losses.min(axis=-1))
    several = losses.shape[-1] > 1
    out[..., GAP] = np.where(several & (lost > ALIKE * R * size), gap + lost, gap)
    new = new - least[..., None]
    shares = _shares(new, out[..., GAP], ALIKE * R * out[..., STEEPEST])
    out[..., HEAVIEST] = sizes[shares.argmax(axis=-1)]

    # Before any gradient the steps are those of a first one, of any size.
    root = np.sqrt(np.where(out[..., SQUARES] > 0.0, out[..., SQUARES], 1.0))[..., None]
    steepest = np.where(out[..., STEEPEST] > 0.0, out[..., STEEPEST], 1.0)[..., None]
    F = steepest + 2.0 * sizes * root
    return Pool(out, new, shares, gradient[..., None, :] / F[..., None], sizes * root / R / F)


def _mixed(loss: Array, weights: Array, gap: Array, leader: Array) -> Array:
    """The mix loss: ``-ln(sum_k w_k exp(-eta l_k)) / eta``, of the leader for eta without bound."""
    heard, some = weights > 0.0, gap > 0.0
    low = np.where(heard, loss, np.inf).min(axis=-1)
    eta = np.log(loss.shape[-1]) / np.where(some, gap, 1.0)
    over = np.where(heard, loss - low[..., None], 0.0)
    total = np.asarray(dot(weights, np.exp(-np.asarray(eta)[..., None] * over)))
    rate = np.where(eta > 0.0, eta, 1.0)
    return np.where(some, low - np.log(np.where(some, total, 1.0)) / rate, leader)


def _shares(losses: Array, gap: Array, alike: Array) -> Array:
    """AdaHedge's weights: those of the leaders while nothing was lost to mixing."""
    some = (gap > 0.0)[..., None]
    eta = np.log(losses.shape[-1]) / np.where(some, gap[..., None], 1.0)
    leaders = (losses <= alike[..., None]).astype(np.float64)
    weights = np.where(some, np.exp(-eta * losses), leaders)
    return weights / np.asarray(dot(weights, np.ones(losses.shape[-1])))[..., None]


def play(weights: Array, points: Array) -> Array:
    """The weighted mean of the pool, which rounding does not take out of a box."""
    return np.clip(vecmat(points, weights), points.min(axis=-2), points.max(axis=-2))
