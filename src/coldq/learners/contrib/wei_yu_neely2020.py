"""Wei, Yu and Neely, SIGMETRICS 2020: primal-dual mirror descent under stochastic constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_of
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.yu_neely_wei2017 import YuNeelyWei2017

DIVERGENCES = ("euclidean", "entropy")


def entropic_step(x: Array, d: Array, alpha: Array, mixing: float) -> Array:
    """argmin over the unit simplex of ``<d, y> + alpha KL(y, z)``, z = (1 - mixing) x + mixing / p.

    >>> import numpy as np
    >>> from coldq.learners.contrib.wei_yu_neely2020 import entropic_step
    >>> d = np.array([np.log(2.0), 0.0])
    >>> entropic_step(np.array([0.5, 0.5]), d, np.ones(()), 0.1).round(6)
    array([0.333333, 0.666667])
    """
    z = (1.0 - mixing) * x + mixing / x.shape[-1]
    logs = np.log(z) - d / alpha[..., None]
    parts = np.exp(logs - logs.max(axis=-1, keepdims=True))
    # In order, so that a member of a batch is rounded as it is alone.
    return parts / np.add.accumulate(parts, axis=-1)[..., -1:]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WeiYuNeely2020(YuNeelyWei2017):
    """Yu, Neely and Wei's rule with a Bregman divergence instead of the squared distance.

    Q_1 = 0. At the end of slot t, with J the jacobian of g_t at x_t:

        d       = V grad f_t(x_t) + J' Q_t
        x_{t+1} = argmin over x in X of <d, x> + alpha Div(x, x_t)
        Q_{t+1} = [ Q_t + g_t(x_t) + J (x_{t+1} - x_t) ]_+

    With the divergence ``|x - y|^2`` this is :class:`~coldq.YuNeelyWei2017`. On the unit simplex
    the relative entropy makes the bounds depend on the logarithm of the dimension only; there the
    step starts from x_t mixed with the uniform distribution, (1 - 1/T) x_t + 1/(T p). That g and
    its slope are taken at x_t itself, not at the mixture, is our reading, and uncertain.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    divergence
        "euclidean" on any domain, "entropy" on the unit simplex.
    V, alpha
        The weight of the loss and of the movement; by default T^(1/2) and T.

    References
    ----------
    Wei, Yu and Neely, Proceedings of the ACM on Measurement and Analysis of Computing Systems 2020;
    the bounds from the abstract, the rule from knowledge of the field.

    >>> import coldq
    >>> X = coldq.Box(0.0, 4.0, dim=1)
    >>> learner = coldq.WeiYuNeely2020(X, horizon=4)  # V = 2, alpha = 4
    >>> learner.update(learner.init(0), coldq.Feedback(coldq.Linear([-8.0]), None)).x
    array([2.])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("constraints drawn i.i.d.", "bounded Lagrange multipliers", "known horizon"),
        claims=(Claim("convex", "time-varying", Rate(0.5), Rate(0.5), measure="soft"),),
        certainty="uncertain",
        unchecked="at which point g and its slope are taken",
        bibtex=reference("wei2020online"),
    )

    divergence: str

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        divergence: str = "euclidean",
        *,
        V: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
    ) -> None:
        super().__init__(domain, horizon, V=V, alpha=alpha)
        one_of("divergence", divergence, DIVERGENCES)
        # A simplex is a domain with a total: what its coordinates sum to.
        if divergence == "entropy" and not np.all(getattr(domain, "total", 0.0) == 1.0):
            raise InvalidInput(f"the entropy needs the unit simplex as domain, not {domain}")
        self._set(divergence=divergence)

    def _move(self, x: Array, d: Array) -> Array:
        """argmin over X of ``<d, y> + alpha Div(y, x)``."""
        if self.divergence == "euclidean":
            return super()._move(x, d)
        # The projection only takes away what rounding leaves.
        T = float(self.horizon or 0)
        return self.domain.project(entropic_step(x, d, self.alpha, 1.0 / T))
