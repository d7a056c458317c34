"""Expert tracking: many copies of a learner with different step sizes, and a hedge over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array, one_of, one_real, positive, real_array
from coldq.contractions import hedge, weighted_mean
from coldq.domains import require_domain
from coldq.errors import InvalidInput, SharedGradient, warn
from coldq.feedback import Feedback
from coldq.learners.card import (
    CONSTRAINT,
    GRADIENT,
    GRADIENT_ELSEWHERE,
    WHOLE_CONSTRAINT,
    Card,
    Claim,
    Rate,
)
from coldq.learners.coldq import BIBTEX as COLDQ_BIBTEX
from coldq.learners.coldq import COLDQ
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, State, horizon_of
from coldq.learners.recoo import RECOO
from coldq.learners.yi2021 import BIBTEX as YI2021_BIBTEX
from coldq.learners.yi2021 import Yi2021
from coldq.losses import GradientAt, Linear
from coldq.protocols import require_problem
from coldq.schedules import Power
from coldq.theory.bounds import expert_guarantees
from coldq.theory.known import Guarantee, Known
from coldq.theory.premises import DoublyBounded
from coldq.theory.promise import Promise, promised

GRADIENTS = ("own", "shared")


@dataclass(frozen=True, eq=False, slots=True)
class ExpertState(State):
    """t and the decision x_t, the logarithms of the M weights, and the state of the M experts.

    The experts are the leading axis: `log_weights` has shape (M, ...), ``experts.x`` (M, ..., p).
    """

    log_weights: Array
    experts: Any

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Copies of all arrays by name, the experts' own as ``experts.<name>``."""
        arrays = {name: np.array(getattr(self, name)) for name in ("t", "x", "log_weights")}
        for name in self.experts.names():
            arrays[f"experts.{name}"] = np.array(getattr(self.experts, name))
        return arrays | self._signature()

    def _each(self, act: Callable[[np.ndarray, int], np.ndarray], axis: int) -> ExpertState:
        weights = act(self.log_weights, axis + 1)
        experts = self.experts._each(act, axis + 1)
        return ExpertState(
            act(self.t, axis), act(self.x, axis), weights, experts, made_by=self.made_by
        )

    def _with(self, members: Any, places: np.ndarray, axis: int) -> ExpertState:
        t, x, weights = (
            self._join(name, getattr(self, name), getattr(members, name), places, axis + after)
            for name, after in (("t", 0), ("x", 0), ("log_weights", 1))
        )
        experts = self.experts._with(members.experts, places, axis + 1)
        return ExpertState(t, x, weights, experts, made_by=self.made_by)

    @property
    def weights(self) -> Array:
        """The weights of the experts, which sum to one."""
        weights = np.exp(self.log_weights)
        return weights / weights.sum(axis=0)


def _experts_last(array: Array, core: int) -> Array:
    """A view with the experts' axis just before the other core axes, as contractions take it."""
    return array if array.ndim == core else np.moveaxis(array, 0, -core)


def expert_count(horizon: int) -> int:
    """``M = floor(log2(1 + T) / 2) + 1``, as many as there are orders of step sizes.

    >>> from coldq.learners.experts import expert_count
    >>> expert_count(5000)
    7
    """
    return ((1 + horizon).bit_length() - 1) // 2 + 1


class ExpertLearner(Learner):
    """What the expert variants share: all but the pool of experts.

    At the end of slot t, with the surrogate loss ``l_t(x) = <grad f_t(x_t), x - x_t>``:

        w_{t+1}[m] is proportional to w_t[m] exp(-kappa l_t(x_t[m]))
        x_{t+1}[m] = the update of expert m
        x_{t+1}    = sum_m w_{t+1}[m] x_{t+1}[m]

    Weights start at ``w_1[m] = (M + 1) / (m (m + 1) M)`` and are kept as logarithms with the
    largest subtracted, because kappa times the surrogate loss can be huge.
    """

    state_type = ExpertState
    horizon: int | None
    kappa: Array
    gradient: str
    _pools: dict[int, Any]

    def _pool_of(self, axes: int) -> Any:
        """The experts as one learner whose parameters have M entries and then `axes` axes."""
        raise NotImplementedError

    def _pool(self, axes: int) -> Any:
        """The pool for a batch of so many axes, built once."""
        if axes not in self._pools:
            self._pools[axes] = self._pool_of(axes)
        return self._pools[axes]

    @property
    def n_experts(self) -> int:
        """M."""
        assert self.horizon is not None
        return expert_count(self.horizon)

    def _scales(self, axes: int) -> Array:
        """1, 2, 4, ... for the experts."""
        return np.power(2.0, np.arange(self.n_experts)).reshape(-1, *(1,) * axes)

    def init(
        self, n_constraints: int, start: ArrayLike | None = None, batch: tuple[int, ...] = ()
    ) -> ExpertState:
        """The state before slot 1: all experts start where the learner does."""
        self._count(n_constraints)
        t, x = self._first(start, batch)
        M, shape = self.n_experts, t.shape
        experts = self._pool(len(shape)).init(n_constraints, start=x, batch=(M, *shape))
        m = np.arange(1.0, M + 1.0)
        first = np.log((M + 1.0) / (m * (m + 1.0) * M)).reshape(M, *(1,) * len(shape))
        first = first - first.max(axis=0)
        return self._state(t, x, np.array(np.broadcast_to(first, (M, *shape))), experts)

    def update(self, state: ExpertState, feedback: Feedback) -> ExpertState:
        """The state of the next slot."""
        gradient = self._gradient(state, feedback)
        t, x, pool = state.t, state.x, self._pool(state.x.ndim - 1)

        points = _experts_last(state.experts.x, 2)
        logs = hedge(_experts_last(state.log_weights, 1), points, x, gradient, self.kappa)

        experts = pool.update(state.experts, self._for_experts(feedback, gradient))

        played = weighted_mean(logs, _experts_last(experts.x, 2))
        log_weights = logs if logs.ndim == 1 else np.ascontiguousarray(np.moveaxis(logs, -1, 0))
        return self._state(t + 1, played, log_weights, experts)

    def _for_experts(self, feedback: Feedback, gradient: Array) -> Feedback:
        """What the experts see: the loss itself, or its linear surrogate at x_t."""
        known_once = isinstance(feedback.loss, GradientAt)
        if self.gradient == "own" and not known_once:
            return feedback
        if self.gradient == "own":
            warn(
                "the loss is known only where it was played, so the experts share its gradient "
                'there; gradient="shared" says that this is meant',
                SharedGradient,
            )
        return Feedback(Linear(gradient), feedback.constraint, feedback.slot)

    def _restore(self, arrays: Mapping[str, Any]) -> ExpertState:
        own = {name: a for name, a in arrays.items() if not str(name).startswith("experts.")}
        inner = {name[8:]: a for name, a in arrays.items() if name not in own}
        if set(own) != {"t", "x", "log_weights"}:
            raise InvalidInput(
                "the arrays must be t, x, log_weights and the experts', but are "
                f"{sorted(map(str, arrays))}"
            )
        t, x = self._checked(State, {"t": own["t"], "x": own["x"]}).values()
        batch = t.shape
        log_weights = np.array(real_array("log_weights", own["log_weights"], 0))
        expected = (self.n_experts, *batch)
        if log_weights.shape != expected:
            raise InvalidInput(
                f"log_weights must have the shape {expected}, but has {log_weights.shape}"
            )
        experts = self._pool(len(batch))._restore(inner)
        if experts.batch != expected:
            raise InvalidInput(f"the experts' arrays must have the leading axes {expected}")
        return self._state(t, x, log_weights, experts)

    def _set_common(self, domain: Any, horizon: int, kappa: Any, gradient: str) -> None:
        require_domain(domain)
        horizon = horizon_of(horizon)
        one_of("gradient", gradient, GRADIENTS)
        if domain.batch:
            raise InvalidInput("an expert learner takes one domain, without leading axes")
        rate = positive("kappa", horizon**-0.5 if kappa is None else kappa)
        if rate.ndim:
            raise InvalidInput("kappa must be one number")
        self._set(domain=domain, horizon=horizon, kappa=rate, gradient=gradient, _pools={})


@dataclass(frozen=True, eq=False, repr=False, init=False)
class COLDQExpert(ExpertLearner):
    """COLDQ without knowledge of V_x: M copies, expert m with alpha_t[m] = sqrt(t) / 2^(m-1).

    Algorithm 2 of the paper with the parameters of its corollary: kappa = T^(-1/2),
    eta = T^(-3/2), gamma = epsilon T^(3/2). The weights are also updated at t = 1: the paper's loop
    starts at t = 2, which leaves w_2 undefined.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    epsilon
        The queue's floor per slot, as in :class:`~coldq.COLDQ`.
    kappa
        The hedge's rate.
    gradient
        "own": each expert gets the gradient at its own point, as printed. "shared": all get the
        gradient at x_t, one evaluation a slot. A loss known only at x_t gets the shared one, with a
        warning.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, Algorithm 2 and the corollary on expert tracking.

    >>> import coldq
    >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    >>> state = learner.init(n_constraints=1)
    >>> state.weights.round(3), state.experts.x.shape
    (array([0.625, 0.208, 0.104, 0.062]), (4, 2))
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT, GRADIENT_ELSEWHERE, CONSTRAINT, WHOLE_CONSTRAINT}),
        assumes=("known horizon",),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5), Rate(0.5, vx=0.5)),
            Claim("convex", "time-varying", Rate(vg=1), Rate(0.5), Rate(0.5, vx=0.5)),
        ),
        certainty="exact",
        bibtex=COLDQ_BIBTEX,
    )

    domain: Any
    horizon: int | None
    epsilon: Array
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Any,
        horizon: int,
        epsilon: float = 0.5,
        *,
        kappa: float | None = None,
        gradient: str = "own",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        self._set(epsilon=positive("epsilon", one_real("epsilon", epsilon)))

    @classmethod
    def for_problem(cls, problem: Any, **parameters: Any) -> COLDQExpert:
        """For a problem's domain and horizon.

        >>> import coldq
        >>> coldq.COLDQExpert.for_problem(coldq.problems.OnlineLinear(horizon=10)).n_experts
        2
        """
        require_problem(problem)
        return cls(problem.domain, problem.horizon, **parameters)

    def guarantees(self, known: Known) -> tuple[Guarantee, ...]:
        """The corollary on expert tracking for these parameters and what is known of a run.

        >>> import coldq
        >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100)
        >>> known = coldq.bounds.Known(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
        >>> learner.guarantees(known)[0]
        Guarantee(measure='dynamic regret', source='Corollary 3', bound=np.float64(66.980...))
        """
        pool = self._pool_of(0)
        alphas = [Power(0.5, scale) for scale in pool.alpha.scale]  # type: ignore[attr-defined]
        return expert_guarantees(alphas, self.kappa, pool.gamma, known)

    @property
    def premises(self) -> DoublyBounded:
        """What the corollary asks of its runs: that of COLDQ, of every expert."""
        pool = self._pool_of(1)  # whose alpha has a row for each expert

        def queues(trace: Any) -> tuple[Array, str]:
            return trace.state.experts.queue, "of all experts, at the end"

        return DoublyBounded(pool.alpha, pool.eta, pool.gamma, queues)

    def promise(self, n_constraints: int, **assumed: Any) -> Promise:
        """The bounds before a run, for assumed constants; keywords as in :func:`coldq.promised`.

        >>> import coldq
        >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=1000)
        >>> learner.promise(1, gradient_bound=1.0, constraint_bound=1.0).useful_from
        16
        """

        def at(T: int) -> COLDQExpert:
            kappa = self.kappa * np.sqrt((self.horizon or T) / T)
            scaled = {"kappa": kappa, "gradient": self.gradient}
            return COLDQExpert(self.domain, T, float(self.epsilon), **scaled)

        return promised(self, at, n_constraints, **assumed)

    def _pool_of(self, axes: int) -> COLDQ:
        T = float(self.horizon or 0)
        alpha = Power(0.5, 1.0 / self._scales(axes))
        return COLDQ(self.domain, alpha=alpha, eta=T**-1.5, gamma=self.epsilon * T**1.5)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RECOOExpert(ExpertLearner):
    """RECOO with expert tracking: M copies, expert m with alpha_t[m] = sqrt(t) / 2^(m-1).

    The paper's expert variant is read here as the pool and hedge of its time, with the constants
    that reappear in COLDQ-Expert; that reading is uncertain.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    epsilon, reading
        As in :class:`~coldq.RECOO`.
    kappa, gradient
        As in :class:`~coldq.COLDQExpert`; by default one shared gradient.

    References
    ----------
    Guo, Liu, Wei and Ying, NeurIPS 2022.

    >>> import coldq
    >>> coldq.RECOOExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100).n_experts
    4
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT, CONSTRAINT, WHOLE_CONSTRAINT}),
        assumes=("known horizon", "fixed constraints"),
        claims=(Claim("convex", "fixed", Rate(0, log=1), Rate(0.5), Rate(0.5, vx=0.5)),),
        certainty="uncertain",
        bibtex=RECOO.card.bibtex,
    )

    domain: Any
    horizon: int | None
    epsilon: Array
    reading: str
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Any,
        horizon: int,
        epsilon: float = 0.01,
        *,
        reading: str = "drift",
        kappa: float | None = None,
        gradient: str = "shared",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        self._set(epsilon=positive("epsilon", one_real("epsilon", epsilon)), reading=reading)
        self._pool_of(0)  # checks the reading

    @classmethod
    def for_problem(cls, problem: Any, **parameters: Any) -> RECOOExpert:
        """For a problem's domain and horizon."""
        require_problem(problem)
        return cls(problem.domain, problem.horizon, **parameters)

    def _pool_of(self, axes: int) -> RECOO:
        alpha = Power(0.5, 1.0 / self._scales(axes))
        return RECOO(self.domain, float(self.epsilon), alpha=alpha, reading=self.reading)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Yi2021Expert(ExpertLearner):
    """Yi 2021 with expert tracking, its Algorithm 2: alpha_t[i] = 2^(i-1) alpha0 / t^c.

    Each expert is fed the surrogate ``<grad f_t(x_t), x - x_t>`` and has a queue of its own, with
    gamma_t[i] = gamma0 / sqrt(alpha_t[i]), which keeps alpha gamma^2 bounded.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    alpha0, gamma0, c
        As in :class:`~coldq.Yi2021`.
    kappa, gradient
        As in :class:`~coldq.COLDQExpert`; by default one shared gradient.

    References
    ----------
    Yi et al., ICML 2021, Algorithm 2; constants in part from knowledge of the field.

    >>> import coldq
    >>> X = coldq.Box(0.0, 1.0, dim=2)
    >>> coldq.Yi2021Expert(X, horizon=100, alpha0=1.0, gamma0=1.0).n_experts
    4
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT, CONSTRAINT, WHOLE_CONSTRAINT}),
        assumes=("known horizon", "fixed constraints"),
        claims=(Claim("convex", "fixed", Rate(0.5), Rate(0.5), Rate(0.5, vx=0.5)),),
        certainty="uncertain",
        bibtex=YI2021_BIBTEX,
    )

    domain: Any
    horizon: int | None
    alpha0: Array
    gamma0: Array
    c: float
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Any,
        horizon: int,
        *,
        alpha0: float,
        gamma0: float,
        c: float = 0.5,
        kappa: float | None = None,
        gradient: str = "shared",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        c = one_real("c", c)
        if not 0.0 < c < 1.0:
            raise InvalidInput(f"c must lie strictly between 0 and 1, but is {c}")
        self._set(alpha0=positive("alpha0", alpha0), gamma0=positive("gamma0", gamma0), c=c)

    @classmethod
    def for_problem(cls, problem: Any, **parameters: Any) -> Yi2021Expert:
        """alpha0 = R / D, and the gamma0 for which alpha gamma^2 L^2 = 1/2, unless given."""
        known = ConstantsOf(problem, parameters)
        if "alpha0" not in parameters:
            parameters["alpha0"] = known.diameter / known.gradient_bound
        if "gamma0" not in parameters:
            parameters["gamma0"] = np.sqrt(0.5) / known.constraint_lipschitz
        return cls(problem.domain, problem.horizon, **parameters)

    def _pool_of(self, axes: int) -> Yi2021:
        scale = self.alpha0 * self._scales(axes)
        gamma = Power(self.c / 2.0, self.gamma0 / np.sqrt(scale))
        return Yi2021(self.domain, alpha=Power(-self.c, scale), gamma=gamma)
