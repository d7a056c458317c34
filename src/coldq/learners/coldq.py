"""COLDQ: Constrained Online Learning with Doubly-bounded Queue (AAAI 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, exponent, flag, fraction, non_negative, positive
from coldq.base.errors import InvalidInput, WeakPrice, warn
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Place, Shape, horizon_of
from coldq.learners.queue_learner import QueueLearner
from coldq.learners.queue_rule import QueueRule
from coldq.learners.revealed import any_of
from coldq.learners.state import QueueState
from coldq.slot.domains import diameter_of
from coldq.slot.schedules import Power, Schedule, as_schedule, number_at, value_at
from coldq.theory.a_priori import APrioriBounds, a_priori_bounds
from coldq.theory.assumptions import DoublyBounded, WeightedStep, queues_of
from coldq.theory.constants import Guarantee, RunConstants
from coldq.theory.guarantees import coldq_guarantees

BIBTEX = reference("wang2025coldq")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class COLDQ(QueueLearner):
    """A per-slot convex step, weighted by a virtual queue bounded from below and from above.

    At the end of slot t, with f_t and g_t revealed (Algorithm 1 of the paper):

        Q_t     = max{ (1 - eta) Q_{t-1} + [g_t(x_t)]_+ , gamma }        for t > 1, and Q_1 = gamma
        x_{t+1} = argmin over x in X of
                  <grad f_t(x_t), x - x_t> + alpha_t |x - x_t|^2 + sum_n Q_t^n [g_t^n(x)]_+

    With Corollary 1's parameters, alpha_t = t^((1 - V_x) / 2), eta = 1/T and gamma = epsilon T, its
    dynamic regret is O(T^((1 + V_x) / 2)) and its hard violation O(T^V_g). No Slater condition, and
    no decision that is feasible in all slots. Where there is one and V_g > 1/2, O(T^V_g) is worse
    than the O(sqrt(T) log T) of :class:`~coldq.SinhaVaze`; at V_g = 1 it says nothing.

    Parameters
    ----------
    domain
        The feasible set X.
    horizon
        The number of slots T; eta and gamma follow from it unless given.
    epsilon
        The queue's floor per slot; Corollary 1 takes it below G, the bound on |g|.
    path_exponent
        V_x, how fast the best decision moves: 0 if it stays, 1 if it never stops.
    alpha, eta, gamma
        Any other parameters, numbers or functions of t: alpha > 0, eta in (0, 1), gamma > 0. The
        numbers may be arrays over leading axes. Q_t is formed with eta_t and gamma_t, so that
        eta_1 is never used and Q_1 = gamma_1.

    Notes
    -----
    Lemma 1's upper bound G / eta on the queue assumes gamma <= G / eta. With gamma = epsilon T and
    an exact G below epsilon the bound that holds is max(G, eta gamma) / eta; nothing is refused.
    A loss known only at x_t (``GradientAt``) changes nothing: no other point is asked for. The step
    uses g_t as a whole function. With ``Affine.from_measurement`` it gets the linear model at x_t,
    which lies below a convex g_t: the per-slot inequality then holds for the model alone. The
    violation guarantee (Theorem 2) is lost unless g_t is affine, the regret's (Theorem 1) is kept.

    References
    ----------
    Wang, Yan and Liu, "Doubly-Bounded Queue for Constrained Online Learning: Keeping Pace with
    Dynamics of Both Loss and Constraint", AAAI 2025: Algorithm 1, Corollaries 1 and 2.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    >>> state = learner.init(n_constraints=1)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
    >>> for _ in range(20):
    ...     state = learner.update(state, revealed)
    >>> state.x.round(6)
    array([0., 1.])
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("known horizon", "V_x known, for the dynamic bound"),
        claims=tuple(
            Claim(losses, constraints, violation, static, Rate(0.5, vx=0.5))
            for losses, static in (("convex", Rate(0.5)), ("strongly convex", Rate(0, log=1)))
            for constraints, violation in (("fixed", Rate(0)), ("time-varying", Rate(vg=1)))
        ),
        certainty="exact",
        bibtex=BIBTEX,
    )

    domain: Domain
    alpha: Schedule
    eta: Array | Schedule
    gamma: Array | Schedule
    horizon: int | None
    _leading = ("alpha", "eta", "gamma")
    _constructors = ("__init__", "scaled")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        epsilon: float | None = None,
        path_exponent: float | None = None,
        *,
        alpha: Any = None,
        eta: Any = None,
        gamma: Any = None,
    ) -> None:
        if horizon is None and (alpha is None or eta is None or gamma is None):
            raise InvalidInput("COLDQ needs a horizon, or all of alpha, eta and gamma")
        T = None if horizon is None else horizon_of(horizon)
        if alpha is None:
            alpha = tracking_alpha(path_exponent)
        elif path_exponent is not None:
            raise InvalidInput("path_exponent sets alpha, so give one of them, not both")
        if gamma is None:
            gamma = positive("epsilon", 0.5 if epsilon is None else epsilon) * float(T or 0)
        elif epsilon is not None:
            raise InvalidInput("epsilon sets gamma, so give one of them, not both")
        if eta is None:
            eta = 1.0 / float(T or 0)
        self._take(
            domain,
            horizon,
            alpha=as_schedule("alpha", alpha),
            eta=as_schedule("eta", eta) if callable(eta) else fraction("eta", eta),
            gamma=as_schedule("gamma", gamma) if callable(gamma) else positive("gamma", gamma),
        )

    @classmethod
    def strongly_convex(
        cls, domain: Domain, horizon: int, mu: float, epsilon: float | None = None
    ) -> COLDQ:
        """Corollary 2: alpha_t = mu t, for O(log T) static regret.

        `mu` is the paper's constant, ``f(y) >= f(x) + <grad f(x), y - x> + mu |y - x|^2``, which
        has no 1/2: it is half of what is usually called the modulus of strong convexity.

        >>> import coldq
        >>> coldq.COLDQ.strongly_convex(coldq.Box(0.0, 1.0, dim=2), horizon=10, mu=0.5).alpha
        Power(exponent=1.0, scale=0.5)
        """
        return cls(domain, horizon, epsilon, alpha=Power(1.0, positive("mu", mu)))

    @classmethod
    def scaled(
        cls,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        constraint_bound: float,
        path_length: float = 0.0,
    ) -> COLDQ:
        """Parameters in the problem's own units: alpha_t = c sqrt(t) and epsilon = G / 2.

        The c that minimises Theorem 1's bound for alpha_t = c sqrt(t) is
        ``D / sqrt(2 R^2 + 4 R path_length)``, that is ``D / (sqrt(2) R)`` if the best decision
        does not move.

        The queue's floor gamma = G T / 2 is a price per unit of g, and it is in the unit of g:
        below ``D R / G`` it may not hold a row, and a :class:`~coldq.WeakPrice` warning says so.
        In a unit of g in which G is about ``sqrt(D R)`` it always does; multiply A and b.

        >>> import coldq
        >>> coldq.COLDQ.scaled(coldq.Box(0.0, 1.0, dim=4), 100, 8.0, 2.0).alpha.scale.round(6)
        np.float64(2.828427)
        """
        R = diameter_of(domain, "scaled parameters need")
        D = positive("gradient_bound", gradient_bound)
        G = positive("constraint_bound", constraint_bound)
        path = non_negative("path_length", path_length)
        c = D / np.sqrt(2.0 * R * R + 4.0 * R * path)
        gamma = 0.5 * G * horizon_of(horizon)
        if any_of(gamma * G < D * R):  # g may fall by G over R, and the loss rise by D R
            warn(
                f"the price gamma = G T / 2 = {np.min(gamma):.3g} of a violation is below "
                f"D R / G = {np.max(D * R / G):.3g}, so that constraints may be ignored: multiply "
                f"them (A, b and G) by sqrt(D R) / G = {np.max(np.sqrt(D * R) / G):.3g}",
                WeakPrice,
            )
        return cls(domain, horizon, alpha=Power(0.5, c), gamma=gamma)

    @classmethod
    def anytime(
        cls, domain: Domain, epsilon: float = 0.5, path_exponent: float | None = None
    ) -> COLDQ:
        """Without a horizon: eta_t = 1 / t^2 and gamma_t = epsilon t^2.

        These are the parameters of the authors' later released code. As in Corollary 1 the decay
        eta_t gamma_t takes epsilon off the queue's floor in every slot.

        >>> import coldq
        >>> learner = coldq.COLDQ.anytime(coldq.Box(0.0, 1.0, dim=1), epsilon=2.0)
        >>> learner.init(1).queue, learner.gamma(3.0)
        (array([2.]), np.float64(18.0))
        """
        gamma = Power(2.0, positive("epsilon", epsilon))
        return cls(domain, alpha=tracking_alpha(path_exponent), eta=Power(-2.0), gamma=gamma)

    @classmethod
    def for_problem(cls, problem: Problem, *, scaled: bool = False, **parameters: Any) -> COLDQ:
        """COLDQ for a problem's domain and horizon; `scaled` takes D and G from it as well.

        >>> import coldq
        >>> coldq.COLDQ.for_problem(coldq.problems.TimeVarying(horizon=100)).horizon
        100
        """
        if flag("scaled", scaled):
            needed = {"gradient_bound": "gradient_bound", "constraint_bound": "constraint_bound"}
            constants = ConstantsOf(problem, parameters).fill(**needed)
            return cls._of(problem, "scaled", **constants)
        return cls._of(problem, **parameters)

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """Theorems 1 to 3 for these parameters and what is known of a run.

        With an eta or gamma that is a function of t there is no Theorem 2, and the violation's
        bound is :func:`coldq.bounds.step_violation`'s alone: for ``anytime`` it is O(1) beyond
        sqrt(N) V, because ``sum_t (D R + sqrt(t) R^2) / (epsilon t^2)`` is finite.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100)
        >>> constants = coldq.bounds.RunConstants(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
        >>> learner.guarantees(constants)[0].bound
        np.float64(46.6474...)
        """
        if isinstance(asked := self.assumptions, WeightedStep):
            return asked.guarantees(constants)
        return coldq_guarantees(self.alpha, asked.eta, asked.gamma, constants)

    @property
    def assumptions(self) -> DoublyBounded | WeightedStep:
        """What the theorems ask of its runs; less if eta or gamma is a function of t.

        >>> import coldq
        >>> X = coldq.Box(0.0, 1.0, dim=1)
        >>> anytime = coldq.COLDQ.anytime(X)
        >>> coldq.COLDQ(X, horizon=100).assumptions.gamma, anytime.assumptions.least(3.0)
        (array(50.), np.float64(4.5))
        """
        if not (callable(self.eta) or callable(self.gamma)):
            return DoublyBounded(self.alpha, self.eta, self.gamma)

        def of_run(trace: Any) -> Array:
            t = np.arange(1.0, trace.horizon)
            return queues_of(trace, value_at(self.eta, t), value_at(self.gamma, t))

        return WeightedStep(self.alpha, lambda t: value_at(self.gamma, t), of_run)

    def a_priori_bounds(self, n_constraints: int, **assumed: Any) -> APrioriBounds:
        """The bounds before a run, for assumed constants.

        Its keywords are those of :func:`coldq.a_priori_bounds`.

        For another horizon T', constant eta and gamma are scaled to eta T / T' and gamma T' / T.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=1000)
        >>> bounds = learner.a_priori_bounds(1, gradient_bound=1.0, constraint_bound=1.0)
        >>> bounds.useful_from, bounds.guarantees[2].bound.round(2)
        (8, np.float64(7.99))
        """

        def at(T: int) -> COLDQ:
            if self.horizon is None:
                return self
            longer = T / self.horizon
            eta = self.eta if callable(self.eta) else self.eta / longer
            gamma = self.gamma if callable(self.gamma) else self.gamma * longer
            return COLDQ(self.domain, T, alpha=self.alpha, eta=eta, gamma=gamma)

        return a_priori_bounds(self, at, n_constraints, **assumed)

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> QueueState:
        """The state before slot 1: x_1 = `start`, or the point of X nearest to the origin.

        >>> import coldq
        >>> state = coldq.COLDQ(coldq.Box(1.0, 2.0, dim=2), horizon=10).init(3, batch=(4,))
        >>> state.x.shape, state.queue.shape, state.x[0]
        ((4, 2), (4, 3), array([1., 1.]))
        """
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        gamma = np.broadcast_to(value_at(self.gamma, t)[..., None], (*t.shape, rows))
        return self.new_state(t, x, np.array(gamma), np.zeros(gamma.shape))

    @property
    def has_first_queue(self) -> bool:
        """Whether Q_1 is what :meth:`init` gave: it is, gamma."""
        return True

    def rule(self, t: Any) -> QueueRule:
        """Algorithm 1's numbers for slot t; Q_1 is gamma."""
        eta, gamma = self.eta, self.gamma
        if callable(eta) or callable(gamma):
            eta, gamma = self._eta(t), value_at(gamma, t)
        return QueueRule(number_at(self.alpha, t), gain=1.0, eta=eta, floor=gamma)

    def require_sound(self, state: QueueState) -> None:
        super().require_sound(state)
        gamma = value_at(self.gamma, np.maximum(state.t - 1, 1))  # of the slot that formed it
        if (state.queue < gamma[..., None]).any():
            raise InvalidInput(
                f"queue must be at least gamma = {gamma}, but is {state.queue.min():g}"
            )

    def _eta(self, t: Any) -> Array:
        """eta_t, which a schedule must keep below 1 wherever a queue is formed with it."""
        if not callable(self.eta):
            return self.eta
        eta = self.eta(t)  # type: ignore[arg-type]
        if any_of((eta >= 1.0) & (t > 1)):
            raise InvalidInput(f"eta must be below 1 from slot 2 on, but is {eta} in slot {t}")
        return eta


def tracking_alpha(path_exponent: ArrayLike | None) -> Power:
    """``t^((1 - V_x) / 2)``, with V_x = 0 unless given."""
    v = exponent("path_exponent", 0.0 if path_exponent is None else path_exponent)
    return Power((1.0 - v) / 2.0)
