"""What theorems ask of a run, and what a learner says of itself so that they can be checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.theory.bounds import queue_ceiling, steps_of
from coldq.theory.constants import Guarantee, RunConstants
from coldq.theory.guarantees import step_guarantees

ROUNDING = 1e-9  # relative; what a comparator or a sum may be off by

HOLDS, SPOT_CHECKED, FAILS, UNKNOWN = "holds", "spot-checked", "fails", "unknown"


@dataclass(frozen=True)
class Assumption:
    """One assumption of the theorems: its `verdict` on this run, and why in plain words.

    The verdict is "holds", "spot-checked" (at some points of some slots), "fails" or "unknown".

    >>> from coldq.theory.assumptions import Assumption
    >>> print(Assumption("0 < eta < 1", "holds", "eta = 0.01"))
    holds         0 < eta < 1: eta = 0.01
    """

    name: str
    verdict: str
    words: str

    def __str__(self) -> str:
        return f"{self.verdict:<13} {self.name}: {self.words}"


def in_words(values: Array) -> str:
    """The least and the greatest of several numbers."""
    finite = values[~np.isnan(values)]
    if not finite.size:
        return "undefined"
    low, high = f"{finite.min():.4g}", f"{finite.max():.4g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, eq=False)
class WeightedStep:
    """Assumptions of ``step_guarantees``, which hold for every step that weighs its rows.

    `alpha` is a schedule, and may have a row for each of several experts. `least` gives what the
    weights are at least in some slots, before a run; `of_run` gives the weights of a run's steps,
    slots before rows, (S, T - 1, N), or None where its trace does not tell them.

    >>> import numpy as np, coldq
    >>> learner = coldq.RECOO(coldq.Box(0.0, 1.0, dim=1), gamma=2.0, eta=3.0)
    >>> learner.assumptions.least(np.arange(1.0, 4.0))  # Q_1 = 0
    array([0., 6., 6.])
    """

    alpha: Any
    least: Callable[[Array], Array]
    of_run: Callable[[Any], Array | None]

    def of_parameters(self, horizon: int) -> tuple[Assumption, ...]:
        """alpha, as the theorems want it."""
        name = "alpha_t does not decrease"
        try:
            if horizon == 1:
                only = np.asarray(self.alpha(np.ones(())))
                return (Assumption(name, HOLDS, f"{in_words(only)} in the only slot"),)
            steps = steps_of(self.alpha, horizon)
            ends = f"{in_words(steps[..., 0])} at first, {in_words(steps[..., -1])} last"
            return (Assumption(name, HOLDS, ends),)
        except InvalidInput as error:
            return (Assumption(name, FAILS, str(error)),)

    def of_queue(self, trace: Any, G: Array) -> Assumption:
        """That no row had a negative weight, in the run or else by the learner's rule."""
        name, own = "no weight of a step is negative", self._of_run(trace)
        slots = np.arange(1.0, trace.horizon)
        weights, when = (self.least(slots), ", by its rule") if own is None else (own, "")
        if not weights.size or not trace.constraint.shape[-1]:
            return Assumption(name, HOLDS, "there is none")
        low, high = in_words(weights.min()[None]), in_words(weights.max()[None])
        words = f"at least {low}{when}" if own is None else f"from {low} to {high}"
        return Assumption(name, HOLDS if (weights >= 0.0).all() else FAILS, words)

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """What holds for every such step."""
        return step_guarantees(self.alpha, self.least, constants)

    def weights(self, trace: Any) -> Array | None:
        """``min_n w_t^n`` of the steps of a run, (S, T - 1); None where it does not tell them."""
        own = self._of_run(trace)
        return None if own is None else own.min(axis=-1, initial=np.inf)

    def _of_run(self, trace: Any) -> Array | None:
        return None if trace.delay else self.of_run(trace)


@dataclass(frozen=True, eq=False)
class DoublyBounded:
    """Assumptions of the theorems on a queue between two bounds, for a learner's parameters.

    `alpha` may have a row for each of several experts. `queues` gives the queues of a run, members
    before rows, and words for which these are; by default those of the states, which are the
    weights of its steps.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=1), horizon=100)
    >>> print(learner.assumptions.of_parameters(100)[1])
    holds         0 < eta < 1: eta = 0.01
    """

    alpha: Any
    eta: Any
    gamma: Any
    queues: Callable[[Any], tuple[Array, str]] | None = None

    def of_parameters(self, horizon: int) -> tuple[Assumption, ...]:
        """alpha and eta, as the theorems want them."""
        rate = Assumption("0 < eta < 1", HOLDS, f"eta = {float(self.eta):.4g}")
        return (*self._step().of_parameters(horizon), rate)

    def of_queue(self, trace: Any, G: Array) -> Assumption:
        """Lemma 1 on a run's queue: kept, or worked out again from the violations."""
        name, gamma = "gamma <= Q <= max(G, eta gamma) / eta", self.gamma
        ceiling = queue_ceiling(G, self.eta, gamma)
        queue, when = (self.queues or self._of_states)(trace)
        low, above = queue >= gamma * (1.0 - ROUNDING), queue > ceiling[:, None] * (1.0 + ROUNDING)
        kept = UNKNOWN if np.isnan(ceiling).any() else HOLDS
        verdict = FAILS if (~low | above).any() else kept
        words = f"Q = {in_words(queue)} {when}, in [{float(gamma):.4g}, {in_words(ceiling)}]"
        return Assumption(name, verdict, words if queue.size else "there is no constraint")

    def least(self, t: Array) -> Array:
        """What the weights are at least in slots t: gamma."""
        return np.full(np.shape(t), float(self.gamma))

    def weights(self, trace: Any) -> Array | None:
        """``min_n Q_t^n`` of the steps of a run, (S, T - 1); None if they are not the states'."""
        return None if self.queues else self._step().weights(trace)

    def _step(self) -> WeightedStep:
        def of_run(trace: Any) -> Array:
            return queues_of(trace, float(self.eta), float(self.gamma))

        return WeightedStep(self.alpha, self.least, of_run)

    def _of_states(self, trace: Any) -> tuple[Array, str]:
        if trace.queue is None and trace.delay == 0:
            again = queue_again(trace.violation, float(self.eta), float(self.gamma))
            return again, "in all slots"
        kept = () if trace.queue is None else tuple(np.moveaxis(trace.queue, 1, 0))
        return np.stack([*kept, trace.state.queue]), "as it was kept, and at the end"


def queues_of(trace: Any, eta: Any, gamma: Any) -> Array:
    """Q_1, ..., Q_{T-1} of a run of COLDQ, slots before rows: kept, or worked out again."""
    if trace.queue is not None:
        return trace.queue[:, 1:]  # a state holds the queue of the step that led to it
    return np.moveaxis(queue_again(trace.violation[:, :-1], eta, gamma), 0, 1)


def queue_again(violation: Array, eta: Any, gamma: Any) -> Array:
    """Q_1, ..., Q_T from the violations, slots first; eta and gamma may have one value a slot."""
    S, T, N = violation.shape
    eta, gamma = (np.broadcast_to(each, T) for each in (eta, gamma))
    queue = np.empty((T, S, N))
    queue[:1] = gamma[:1, None, None]
    for t in range(1, T):
        queue[t] = np.maximum((1.0 - eta[t]) * queue[t - 1] + violation[:, t], gamma[t])
    return queue
