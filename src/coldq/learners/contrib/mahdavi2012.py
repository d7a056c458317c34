"""Mahdavi, Jin and Yang, JMLR 2012: Algorithm 1, the first with long-term constraints."""

from __future__ import annotations

from typing import ClassVar

from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.contrib.saddle_point import SaddlePoint


class Mahdavi2012(SaddlePoint):
    """Gradient descent in x and ascent in l on a regularised Lagrangian, for fixed constraints.

    l_1 = 0. At the end of slot t, both from (x_t, l_t), with J the jacobian of g at x_t:

        x_{t+1} = P_X(x_t - eta (grad f_t(x_t) + J' l_t))
        l_{t+1} = [ l_t + eta (g(x_t) - delta eta l_t) ]_+

    Parameters
    ----------
    domain, horizon
        X, a simple set that holds the feasible one, and the number of slots T.
    eta
        The step of both, of the order of T^(-1/2).
    delta
        The regularisation, at least (m + 1) L^2 + 2 delta^2 eta^2 for m constraints and L the
        Lipschitz constant of f and g. Our reading of the constants is uncertain.

    References
    ----------
    Mahdavi, Jin and Yang, JMLR 2012, Algorithm 1; the bounds from the abstract, the rule and its
    constants from knowledge of the field.

    >>> import coldq
    >>> learner = coldq.Mahdavi2012(coldq.Box(0.0, 4.0, dim=1), 16, eta=0.5, delta=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[3.0]), revealed)
    >>> state.x, state.queue
    (array([4.]), array([1.]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("fixed constraints", "known horizon", "Lipschitz constant and |g| bounded, known"),
        claims=(Claim("convex", "fixed", Rate(0.75), Rate(0.5), measure="soft"),),
        certainty="uncertain",
        unchecked="the rule and the constants of eta and delta",
        bibtex=reference("mahdavi2012trading"),
    )
