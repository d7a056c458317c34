"""Cao, Zhang and Poor, IEEE TAC 2021: a stochastic saddle point for time-varying distributions."""

from __future__ import annotations

from typing import ClassVar

from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.contrib.saddle_point import SaddlePoint


class CaoZhangPoor2021(SaddlePoint):
    """The regularised saddle point on the f_t and g_t that were sampled in each slot.

    l_1 = 0. At the end of slot t, both from (x_t, l_t), with J the jacobian of g_t at x_t:

        x_{t+1} = P_X(x_t - eta (grad f_t(x_t) + J' l_t))
        l_{t+1} = [ l_t + eta (g_t(x_t) - delta eta l_t) ]_+

    The losses and constraints are samples of distributions that change; the learner knows neither.
    Our reading of the rule is uncertain: it is known here only as a saddle point method.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    eta, delta
        The step of both, of the order of T^(-1/2), and the regularisation, as in
        :class:`~coldq.Mahdavi2012`.

    References
    ----------
    Cao, Zhang and Poor, IEEE Transactions on Automatic Control 2021; the kind of method from the
    abstract, the bounds as reported by Wang, Yan and Liu, AAAI 2025.

    >>> import coldq
    >>> learner = coldq.CaoZhangPoor2021(coldq.Box(0.0, 4.0, dim=1), 16, eta=0.5, delta=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> learner.update(learner.init(1, start=[3.0]), revealed).x
    array([4.])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("known horizon", "Lipschitz constant and |g| bounded, known"),
        claims=(Claim("convex", "time-varying", Rate(0.75), Rate(0.5), measure="soft"),),
        certainty="uncertain",
        unchecked="the rule, known here as a saddle point method only",
        bibtex=reference("cao2021online"),
    )
