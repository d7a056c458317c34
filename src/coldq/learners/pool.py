"""A pool of step sizes under AdaHedge: each takes its own steps, the weighted mean is played.

With d the gradient, S the sum of |d|^2, D the largest |d| and R the domain's diameter, member c
steps with ``d / F`` and ``alpha = c sqrt(S) / R / F``, where ``F = D + 2 c sqrt(S)``. Its loss is
``l^c = <d, x^c - x>``; losses that rounding alone may make, 1e-10 R |d|, are none. With w the
weights, Delta the mixability gap so far, ``eta = ln K / Delta`` and L^c the losses so far,

    Delta += <w, l> + ln(sum_c w^c exp(-eta l^c)) / eta,    w^c ~ exp(-eta L^c);

while Delta is zero, the leaders share the weight. It is computed by native/learners/pool.hpp.
"""

from __future__ import annotations

from typing import NamedTuple

from coldq.base.arrays import Array
from coldq.base.contractions import Contraction

MAX_ROUNDING_LOSS = 1e-10  # losses of the pool, relative to R |d|, that rounding alone may make
GAP, SQUARES, STEEPEST, HEAVIEST = range(4)  # the entries of a hedge
HEDGE_SIZE = 4

weigh_pool = Contraction("weigh", "A pool after a slot, see :func:`weigh`.")
play = Contraction(
    "play",
    "The weighted mean of a pool, of (weights, points), which rounding does not take out of a box.",
)


class Pool(NamedTuple):
    """The pool after a slot: its hedge, losses and weights, and what each member steps with."""

    hedge: Array
    losses: Array
    weights: Array
    directions: Array
    alphas: Array


def weigh(gradient: Array, state: object, sizes: Array, R: Array) -> Pool:
    """The weights after slot t, and every member's own step."""
    names = ("x", "points", "hedge", "losses", "weights")
    return Pool(*weigh_pool(gradient, *(getattr(state, name) for name in names), sizes, R))
