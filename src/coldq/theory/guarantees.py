"""All bounds that are proved for a run of a learner, by its parameters, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coldq.base.arrays import Array, fraction, positive, quiet
from coldq.theory.bounds import (
    _expert_regret,
    _expert_violation,
    _floor_violation,
    _step_violation,
    _theorem_1,
    _theorem_2,
    _theorem_3,
    steps_of,
)
from coldq.theory.constants import Guarantee, RunConstants

WEIGHT = "the step's weight"


@quiet
def step_guarantees(
    alpha: Any, least: Callable[[Array], Array], constants: RunConstants
) -> tuple[Guarantee, ...]:
    """What holds for every learner whose step of slot t minimises over X

        <grad f_t(x_t), x - x_t> + alpha_t |x - x_t|^2 + sum_n w_t^n [g_t^n(x)]_+,

    with weights of any size, from 0 to infinity: hard rows. `least` is what its weights are at
    least in slots t, for where the run's own are not known.

    The regret is Theorem 1's and, for strongly convex losses, Theorem 3's. Their proofs use the
    weights in two places, and ask nothing of them but a sign. Lemma 3 compares the step's minimum
    with its value at a decision u_t that is feasible in slot t; its rows are not positive there, so
    that they cost nothing at any finite weight, and at an infinite one u_t is among the points that
    the step may choose. And both theorems drop ``sum_n w_t^n [g_t^n(x_{t+1})]_+``, which is not
    negative. What is left has alpha_t alone, and Lemma 3 adds up if it does not fall.

    The violation is :func:`coldq.bounds.step_violation`'s.

    >>> import numpy as np
    >>> from coldq.theory import RunConstants
    >>> from coldq.theory.guarantees import step_guarantees
    >>> constants = RunConstants(
    ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
    ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
    >>> hard = step_guarantees(5.0, lambda t: np.full(t.shape, np.inf), constants)[2]
    >>> hard.measure, hard.bound
    ('hard violation', np.float64(1.0))
    """
    constants, steps = constants.checked(), steps_of(alpha, constants.horizon)
    regrets = _regrets(steps, constants)
    if constants.n_constraints == 0:
        return regrets
    violation = _by_weight(steps, least, constants)
    kinds = ("hard violation", "soft violation")
    return (*regrets, *(Guarantee(kind, WEIGHT, violation, slotwise=True) for kind in kinds))


@quiet
def coldq_guarantees(
    alpha: Any, eta: Any, gamma: Any, constants: RunConstants
) -> tuple[Guarantee, ...]:
    """All bounds that are proved for a run of COLDQ; see ``COLDQ.guarantees``.

    Its weights are its queues, so that what holds for every step holds for its own.
    """
    constants, steps = constants.checked(), steps_of(alpha, constants.horizon)
    regrets = _regrets(steps, constants)
    if constants.n_constraints == 0:
        return regrets
    eta, gamma, still = fraction("eta", eta), positive("gamma", gamma), constants.still()
    drift, floor = (
        np.where(constants.common, fixed, moving)[()]
        for fixed, moving in (
            [_theorem_2(steps, eta, gamma, k) for k in (still, constants)],
            [_floor_violation(steps, gamma, k) for k in (still, constants)],
        )
    )
    weight = _by_weight(steps, lambda t: np.broadcast_to(gamma, t.shape), constants)
    return (
        *regrets,
        Guarantee("hard violation", "Theorem 2", drift),
        Guarantee("hard violation", "the queue's floor", floor),
        Guarantee("hard violation", WEIGHT, weight, slotwise=True),
        Guarantee("soft violation", "Theorem 2", drift),
        Guarantee("soft violation", WEIGHT, weight, slotwise=True),
    )


@quiet
def expert_guarantees(
    pool: list[Any], kappa: Any, gamma: Any, constants: RunConstants
) -> tuple[Guarantee, ...]:
    """All bounds that are proved for a run of COLDQ-Expert; see ``COLDQExpert.guarantees``."""
    constants, source = constants.checked(), "Corollary 3"
    steps = [steps_of(alpha, constants.horizon) for alpha in pool]
    regrets = tuple(
        Guarantee(kind, source, _expert_regret(steps, positive("kappa", kappa), k))
        for kind, k in (("dynamic regret", constants), ("static regret", constants.still()))
    )
    if constants.n_constraints == 0:
        return regrets
    violation = _expert_violation(np.max(steps, axis=0), positive("gamma", gamma), constants)
    kinds = ("hard violation", "soft violation")
    return (*regrets, *(Guarantee(kind, source, violation) for kind in kinds))


def _regrets(steps: Array, constants: RunConstants) -> tuple[Guarantee, ...]:
    """Theorem 1, and Theorem 3 where losses are strongly convex and it says more."""
    static = Guarantee("static regret", "Theorem 1", _theorem_1(steps, constants.still()))
    if constants.mu > 0.0:
        strong = _theorem_3(steps, constants)
        if (strong < static.bound).all():
            static = static._replace(source="Theorem 3", bound=strong)
    return Guarantee("dynamic regret", "Theorem 1", _theorem_1(steps, constants)), static


def _by_weight(steps: Array, least: Callable[[Array], Array], constants: RunConstants) -> Array:
    weights = constants.weights
    if weights is None:
        weights = least(np.arange(1.0, constants.horizon))
    return _step_violation(steps, weights, constants)
