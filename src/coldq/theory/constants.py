"""What a bound depends on, and what it is: numbers about a run, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array, non_negative, one_real, positive, whole_number


@dataclass(frozen=True, eq=False)
class RunConstants:
    """What a bound of a whole run depends on, apart from the learner's own parameters.

    One of `path_length` and `moves` is given, as in :func:`coldq.bounds.theorem_1`. `mu` is zero
    unless the losses are strongly convex. `common` says, for each seed, whether a decision is
    feasible in every slot: if so, violation may be bounded against it instead of against x*_t.
    `feasible` says of each slot, T of them on the last axis, whether it has a feasible decision.
    `weights` is the least weight that a run's steps gave a row, T - 1 values on the last axis, and
    None where they are not known: before a run, or if its queues were not kept.

    >>> from coldq.theory import RunConstants
    >>> RunConstants(horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
    ...              n_constraints=1, constraint_variation=0.0, path_length=0.0).mu
    0.0
    """

    horizon: int
    diameter: Any
    gradient_bound: Any
    constraint_bound: Any
    n_constraints: int
    constraint_variation: Any
    path_length: Any = None
    moves: Any = None
    mu: Any = 0.0
    common: Any = True
    feasible: Any = True
    weights: Any = None

    @property
    def losses(self) -> dict[str, Any]:
        """R and D."""
        return {"diameter": self.diameter, "gradient_bound": self.gradient_bound}

    @property
    def constraints(self) -> dict[str, Any]:
        """R, D, G, N and V."""
        return self.losses | {
            "constraint_bound": self.constraint_bound,
            "n_constraints": self.n_constraints,
            "constraint_variation": self.constraint_variation,
        }

    @property
    def path(self) -> dict[str, Any]:
        """P, in whichever form it is known."""
        return {"path_length": self.path_length, "moves": self.moves}

    @property
    def symbols(self) -> tuple[Any, ...]:
        """T, R, D, G, N and V, as the theorems write them."""
        return (
            float(self.horizon),
            self.diameter,
            self.gradient_bound,
            self.constraint_bound,
            self.n_constraints,
            self.constraint_variation,
        )

    def checked(self) -> RunConstants:
        """These constants with every number checked, so that a theorem need not look again."""
        return replace(
            self,
            horizon=whole_number("horizon", self.horizon, 2),
            diameter=non_negative("diameter", self.diameter),
            gradient_bound=_known_or_nan("gradient_bound", self.gradient_bound),
            constraint_bound=_known_or_nan("constraint_bound", self.constraint_bound),
            n_constraints=whole_number("n_constraints", self.n_constraints, 0),
            # NaN where it is not known
            constraint_variation=non_negative(
                "constraint_variation", self.constraint_variation, finite=False
            ),
        )

    def still(self) -> RunConstants:
        """These constants for decisions that never move."""
        return replace(self, path_length=0.0, moves=None)


class Guarantee(NamedTuple):
    """A bound on one measure of a run, and which statement gives it.

    `slotwise` says that slots without a feasible decision are counted in it, at what they may cost
    at the most; a bound without it is void where there is such a slot.

    >>> from coldq.theory import Guarantee
    >>> Guarantee("dynamic regret", "Theorem 1", 3.0).source
    'Theorem 1'
    """

    measure: str
    source: str
    bound: Any
    slotwise: bool = False


def steps_otherwise(learner: Any) -> bool:
    """Whether a learner has assumptions that were said of another's steps, not of its own.

    Its steps are its `update`, or the `rule` by which it updates.
    """

    def place(name: str) -> int:
        kinds = type(learner).__mro__
        return next((k for k, kind in enumerate(kinds) if name in vars(kind)), -1)

    if not hasattr(learner, "assumptions"):
        return False
    said = place("assumptions")
    return place("update") < said or -1 < place("rule") < said


def _known_or_nan(name: str, value: Any) -> Array:
    """A number that is not negative, or NaN where it is not known."""
    array = non_negative(name, value, finite=False)
    non_negative(name, np.where(np.isnan(array), 0.0, array))
    return array


def one_number(name: str, value: Any, *, zero: bool = True) -> float:
    """One number that is not negative, and positive unless `zero` is allowed."""
    number = one_real(name, value)
    return float(non_negative(name, number) if zero else positive(name, number))
