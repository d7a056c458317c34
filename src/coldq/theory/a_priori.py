"""Bounds before a run: what is proved for assumed constants, and from which horizon on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import exponent, percent, positive, whole_number
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Learner
from coldq.theory.constants import Guarantee, RunConstants, one_number, steps_otherwise

LONGEST = 2**20  # horizons are searched up to here


@dataclass(frozen=True, eq=False, repr=False)
class APrioriBounds:
    """Bounds for a run that has not happened, and what they assume.

    `guarantees` are the bounds for `constants`; `useful_from` is the shortest horizon, among the
    powers of two, from which on the least bound on every measure says more than the constants alone
    do, None where there is none up to about a million slots. Printed, it is plain words.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=1), horizon=10_000)
    >>> print(learner.a_priori_bounds(1, gradient_bound=1.0, constraint_bound=1.0))
    COLDQ over T = 10,000 slots, if R = 1, |gradient| <= 1, |g| <= 1, N = 1,
    and if neither the best decision nor the constraint moves:
      dynamic regret <= 151 (Theorem 1): 0.0151 a slot, 1.51% of what any run may have
      static regret <= 151 (Theorem 1): 0.0151 a slot, 1.51% of what any run may have
      hard violation <= 7.03 (Theorem 2): 0.000703 a slot, 0.0703% of what any run may have
      hard violation <= 3.03 (the queue's floor): 0.000303 a slot, 0.0303% of what any run may have
      hard violation <= 68.7 (the step's weight): 0.00687 a slot, 0.687% of what any run may have
      soft violation <= 7.03 (Theorem 2): 0.000703 a slot, 0.0703% of what any run may have
      soft violation <= 68.7 (the step's weight): 0.00687 a slot, 0.687% of what any run may have
    They say something of every measure from T = 4 on.
    """

    learner: Learner
    constants: RunConstants
    path_exponent: float
    variation_exponent: float
    guarantees: tuple[Guarantee, ...]
    useful_from: int | None

    def share(self, guarantee: Guarantee) -> float:
        """A bound as a share of what any run may have: D R T of regret, N G T of violation."""
        with np.errstate(divide="ignore"):  # in a domain of one point no run has any regret
            return float(guarantee.bound / _trivial(guarantee.measure, self.constants))

    def __str__(self) -> str:
        k, T = self.constants, self.constants.horizon
        lines = [
            f"{type(self.learner).__name__} over T = {T:,} slots, if R = {k.diameter:.4g}, "
            f"|gradient| <= {k.gradient_bound:.4g}, |g| <= {k.constraint_bound:.4g}, "
            f"N = {k.n_constraints},",
            self._movement(),
        ]
        for guarantee in self.guarantees:
            bound, share = guarantee.bound, percent(self.share(guarantee), digits=3)
            lines.append(
                f"  {guarantee.measure} <= {bound:.3g} ({guarantee.source}): {bound / T:.3g} a "
                f"slot, {share} of what any run may have"
            )
        if self.useful_from is None:
            lines.append(
                f"Of some measure they say nothing, at any horizon up to {LONGEST:,} slots."
            )
        else:
            lines.append(f"They say something of every measure from T = {self.useful_from:,} on.")
        return "\n".join(lines)

    def _movement(self) -> str:
        path, variation = self.constants.path_length, self.constants.constraint_variation
        if not path and not variation:
            return "and if neither the best decision nor the constraint moves:"
        return (
            f"if the best decision moves by {path:.4g} in all (V_x = {self.path_exponent:g}) and "
            f"the constraint by {variation:.4g} (V_g = {self.variation_exponent:g}):"
        )

    __repr__ = __str__


def a_priori_bounds(
    learner: Learner,
    at: Callable[[int], Any],
    n_constraints: int,
    *,
    gradient_bound: float,
    constraint_bound: float,
    path_exponent: float = 0.0,
    variation_exponent: float = 0.0,
    mu: float = 0.0,
    diameter: float | None = None,
    horizon: int | None = None,
) -> APrioriBounds:
    """The bounds of a learner before a run; its ``a_priori_bounds`` calls this.

    Parameters
    ----------
    at
        The learner for another horizon, to look for the one that makes it useful.
    n_constraints, gradient_bound, constraint_bound
        N, D and G.
    path_exponent, variation_exponent
        V_x and V_g: the best decision moves by ``R (T^V_x - 1)`` in all, the constraint by
        ``2 G sqrt(N) (T^V_g - 1)``. At 0 nothing moves, at 1 both move as much as they can.
    mu
        The losses' strong convexity, without a 1/2.
    diameter, horizon
        R and T, if not the learner's own.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=1), horizon=100)
    >>> moving = learner.a_priori_bounds(
    ...     1, gradient_bound=1.0, constraint_bound=1.0, path_exponent=1.0)
    >>> moving.constants.path_length, moving.useful_from is None
    (99.0, True)
    """
    if not hasattr(learner, "guarantees") or not callable(at):
        raise InvalidInput(
            "bounds before a run need a learner with guarantees and a function that gives it for "
            f"another horizon, but got {learner!r:.100} and {at!r:.100}"
        )
    if steps_otherwise(learner):
        raise InvalidInput(
            f"{type(learner).__name__} has steps of its own, but another's assumptions: what "
            "is promised for the other's steps need not hold for these"
        )
    R = learner.domain.diameter if diameter is None else positive("diameter", diameter)
    if np.ndim(R) or not np.isfinite(R):
        raise InvalidInput(
            f"a-priori bounds need one bounded domain, but the learner's is {learner.domain}"
        )
    horizon = learner.horizon if horizon is None else horizon
    if horizon is None:
        raise InvalidInput("horizon must be given, because the learner has none of its own")
    vx = one_number("path_exponent", exponent("path_exponent", path_exponent))
    vg = one_number("variation_exponent", exponent("variation_exponent", variation_exponent))
    N = whole_number("n_constraints", n_constraints, 0)
    D = one_number("gradient_bound", gradient_bound, zero=False)
    G = one_number("constraint_bound", constraint_bound, zero=False)
    mu = one_number("mu", mu)

    def constants(T: int) -> RunConstants:
        return RunConstants(
            horizon=T,
            diameter=float(R),
            gradient_bound=D,
            constraint_bound=G,
            n_constraints=N,
            path_length=float(R * (T**vx - 1.0)),
            constraint_variation=float(2.0 * G * np.sqrt(N) * (T**vg - 1.0)),
            mu=mu,
            common=vx == 0.0,
        )

    def useful(T: int) -> bool:
        there, bounds = constants(T), at(T).guarantees(constants(T))
        says = {g.measure for g in bounds if g.bound < _trivial(g.measure, there)}
        return says == {g.measure for g in bounds}

    T = whole_number("horizon", horizon, 2)
    useful_from, longer = None, LONGEST
    while longer >= 4 and useful(longer):
        useful_from, longer = longer, longer // 2
    return APrioriBounds(learner, constants(T), vx, vg, at(T).guarantees(constants(T)), useful_from)


def _trivial(measure: str, constants: RunConstants) -> float:
    if "regret" in measure:
        return constants.diameter * constants.gradient_bound * constants.horizon
    return constants.n_constraints * constants.constraint_bound * constants.horizon
