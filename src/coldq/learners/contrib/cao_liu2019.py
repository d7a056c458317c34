"""Cao and Liu, IEEE TAC 2019: a saddle point for time-varying constraints, full information."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from coldq.base.arrays import one_real
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.contrib.saddle_point import SaddlePoint


class CaoLiu2019(SaddlePoint):
    """Gradient descent in x and ascent in l on the regularised Lagrangian of each slot.

    l_1 = 0. At the end of slot t, both from (x_t, l_t), with J the jacobian of g_t at x_t:

        x_{t+1} = P_X(x_t - eta (grad f_t(x_t) + J' l_t))
        l_{t+1} = [ l_t + eta (g_t(x_t) - delta eta l_t) ]_+

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    eta
        The step of both, of the order of T^(-(1 - V_x) / 2).
    delta
        The regularisation, as in :class:`~coldq.Mahdavi2012`. Our reading of the constants is
        uncertain.

    References
    ----------
    Cao and Liu, IEEE Transactions on Automatic Control 2019, the part with full information; the
    bounds as reported by Wang, Yan and Liu, AAAI 2025, the rule from knowledge of the field.

    >>> import coldq
    >>> learner = coldq.CaoLiu2019(coldq.Box(0.0, 4.0, dim=1), 16, eta=0.5, delta=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> learner.update(learner.init(1, start=[3.0]), revealed).queue
    array([1.])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=(
            "known horizon",
            "V_x known, for the dynamic bound",
            "Lipschitz constant and |g| bounded, known",
        ),
        claims=(
            Claim(
                "convex",
                "time-varying",
                Rate(0.75, vx=0.25),
                None,
                Rate(0.5, vx=0.5),
                measure="soft",
            ),
        ),
        certainty="uncertain",
        unchecked="the rule and the constants of eta and delta",
        bibtex=reference("cao2019online"),
    )

    @classmethod
    def for_problem(cls, problem: Problem, path_exponent: float = 0.0, **parameters: Any) -> Self:
        """The constants of Mahdavi 2012, with eta falling as T^(-(1 - V_x) / 2).

        >>> import coldq
        >>> coldq.CaoLiu2019.for_problem(coldq.problems.OnlineLinear(horizon=100)).horizon
        100
        """
        path_exponent = one_real("path_exponent", path_exponent)
        if not 0.0 <= path_exponent < 1.0:
            raise InvalidInput(f"path_exponent must lie in [0, 1), but is {path_exponent}")
        return cls._theory(problem, (1.0 - path_exponent) / 2.0, parameters)
