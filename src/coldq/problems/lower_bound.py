"""One dimension, where no learner does better: instances behind lower bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import Array, one_of, one_real, positive, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.problems.problem import Constants, Problem, generators
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box
from coldq.slot.feedback import Feedback
from coldq.slot.losses import Linear

FIRST_LIMITS = {"price": 0.0, "chase": 1.0, "signs": 1.0}  # b of the row x <= b at the start


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LowerBound(Problem):
    """On [-1, 1], three instances on which something is lost whatever a learner does.

    "price": the loss -x and the row x <= 0, in every slot. A learner whose price of a violation
    grows with the violations, from one that is too low, pays until the price is 1. For the
    exponential price of :class:`~coldq.SinhaVaze`, lambda exp(lambda Q) with lambda = 1 / (2 T^0.5)
    and Q = sum_t [x_t]_+ / 4, that is Q = 2 T^0.5 log(2 T^0.5): its hard violation is at least
    8 T^0.5 log(2 T^0.5), less x_t of one slot, once T is above about 1,200. A learner with a high
    price from the start, or that projects, has O(1).

    "chase": the loss -x and the row x <= b_t, with b_0 = 1. The adversary looks at x_t: if
    x_t > b_{t-1} - step / 2, then b_t = b_{t-1} - step; if not, b_t stays. Where it would leave the
    domain it first goes back to 1. For every learner and run

        hard violation >= V / 6   and   dynamic regret + 2 hard violation >= step T / 2

    with V the constraint's variation. In a slot in which the limit fell, x_t is more than step / 2
    above it; K such slots violate by K step / 2 at least, and V is at most 3 K step, a way back
    being as long as the falls before it and less than one step more. In another slot x_t is at
    least step / 2 below the best decision b_t, so that regret is at least (T - K) step / 2 less
    what violations gained. With step = T^(v - 1) not both can be o(T^v): the T^V_g of COLDQ's
    violation is no slip of its proof.

    "signs": the loss s_t x with signs by the toss of a fair coin, and a row that always holds. No
    decision knows the next coin: sum_t s_t x_t has mean zero, and the mean of the static regret is
    that of |sum_t s_t|, about (2 T / pi)^0.5, for every learner.

    Parameters
    ----------
    kind
        "price", "chase" or "signs".
    step
        By how much the limit falls, for "chase" alone, at most 1; 0.1 unless given.
    horizon
        The number of slots T.

    References
    ----------
    Vaze and Sinha, NeurIPS 2025, say that the violation of Sinha and Vaze (NeurIPS 2024) is of the
    order of T^0.5 log T even in one dimension with functions that stay; the instance "price" and
    its constants are worked out here. The coin is the standard argument, see Hazan, "Introduction
    to Online Convex Optimization", section 3.2. The argument of "chase" is given above in full.

    >>> import numpy as np, coldq
    >>> problem = coldq.problems.LowerBound("price", horizon=2000)
    >>> high, low = (
    ...     coldq.hard_violation(coldq.simulate(kind.for_problem(problem), problem, seeds=[0]))[0]
    ...     for kind in (coldq.SinhaVaze, coldq.COLDQ))
    >>> bool(high > 8.0 * 2000**0.5 * np.log(2.0 * 2000**0.5) - 1.0), bool(low < 1e-9)
    (True, True)
    """

    kind: str
    step: float
    horizon: int
    n_constraints = 1
    domain = Box(-1.0, 1.0, dim=1)

    def __init__(self, kind: str, step: float | None = None, horizon: int = 1000) -> None:
        one_of("kind", kind, tuple(FIRST_LIMITS))
        if step is not None and kind != "chase":
            raise InvalidInput(f'step must be left out for "{kind}": it is how fast "chase" falls')
        length = positive("step", one_real("step", 0.1 if step is None else step))
        if length > 1.0:
            raise InvalidInput(f"step must be at most 1, but is {length}")
        self._set(kind=kind, step=float(length), horizon=whole_number("horizon", horizon, 2))

    def _arguments(self) -> dict[str, Any]:
        step = self.step if self.kind == "chase" else None
        return {"kind": self.kind, "step": step, "horizon": self.horizon}

    @property
    def adaptive(self) -> bool:  # type: ignore[override]
        """Whether it looks at x: "chase" does."""
        return self.kind == "chase"

    @property
    def seeds_differ(self) -> bool:  # type: ignore[override]
        """Whether one seed is unlike another: only coins are."""
        return self.kind == "signs"

    @property
    def constants(self) -> Constants:
        """All exact, but for G of "chase", which it may not reach."""
        chase = {"constraint_bound": "a bound, for every limit"} if self.adaptive else {}
        return Constants(2.0, 1.0, 1.0 if self.kind == "price" else 2.0, 1.0, note=chase)

    def start(self, seeds: Iterable[int]) -> LowerBoundStream:
        """One stream for all seeds."""
        return LowerBoundStream(self, tuple(seeds))


class LowerBoundStream:
    """Several seeds side by side, each with its own limit or coins."""

    def __init__(self, problem: LowerBound, seeds: tuple[int, ...]) -> None:
        self.problem, self.limit = problem, np.full(len(seeds), FIRST_LIMITS[problem.kind])
        (draws,) = generators(6, seeds, 1)
        self.signs: Array | None = None
        if problem.kind == "signs":
            coins = [rng.integers(0, 2, problem.horizon) for rng in draws]
            self.signs = 2.0 * np.array(coins, float) - 1.0

    def reveal(self, t: int, x: Any) -> Feedback:
        """The loss and the row of slot t."""
        if self.problem.kind == "chase":
            self._fall(np.asarray(x, float)[:, 0])
        slope = -np.ones(len(self.limit)) if self.signs is None else self.signs[:, t - 1]
        rows = np.ones((len(self.limit), 1, 1))
        return Feedback(Linear(slope[:, None]), Affine(rows, self.limit[:, None]), slot=t)

    def _fall(self, x: Array) -> None:
        step = self.problem.step
        start = np.where(self.limit - step < -1.0, FIRST_LIMITS["chase"], self.limit)
        self.limit = np.where(x > start - 0.5 * step, start - step, start)
