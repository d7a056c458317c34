"""Learning on a network: every agent steps from a mean of its neighbours' decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, batch_shape
from coldq.base.contractions import mix
from coldq.base.errors import InvalidInput, WrongState
from coldq.base.protocols import Domain
from coldq.learners.card import CONSTRAINT, GRADIENT, WHOLE_CONSTRAINT, Card
from coldq.learners.learner import Learner, Place, Shape, is_learner
from coldq.learners.networks import mixing_matrix
from coldq.learners.state import State
from coldq.learners.yi2023 import Yi2023
from coldq.slot.feedback import Feedback

ASSUMES = "doubly stochastic mixing, a network connected over time"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Decentralised(Learner):
    """n agents that run one algorithm, each on its own loss and constraint, and mix decisions.

    At the end of slot t agent i takes the learner's step from z_i in place of x_{i,t}:

        z_i = sum_j W_ij x_{j,t}

    Gradient, constraint and queue are its own: grad f_{i,t} at x_{i,t}, g_{i,t} and Q_i. The agents
    are the last axis before the coordinates, in states and in feedback: x has the shape
    (..., n, p). With W the identity they are n learners that know nothing of each other.

    ``Decentralised(Yi2023(...), W)`` is the distributed algorithm of that paper, whose claims it
    keeps. Of other learners nothing is claimed on a network.

    Parameters
    ----------
    learner
        A learner whose update takes a `center`: COLDQ, RECOO, Yi2023, Yi2021, SinhaVaze,
        SarkarSinha2025, YuanLamperski2018, or your own.
    mixing
        W, a doubly stochastic (n, n) matrix such as ``networks.metropolis(networks.ring(n))``, or a
        function that gives one for the slot t, such as ``networks.Alternating``. A learner with a
        plain function works everywhere, but cannot be pickled.
    messages
        How what an agent hears of another differs from its decision: ``networks.Quantised``,
        ``networks.Noisy`` or ``networks.Dropped``; None if it does not. Nothing is claimed then.

    References
    ----------
    Yi et al., IEEE Transactions on Automatic Control 2023; COLDQ and RECOO as in the later released
    code of the authors of COLDQ.

    >>> import coldq
    >>> from coldq import networks
    >>> X, W = coldq.Box(0.0, 4.0, dim=1), networks.metropolis(networks.complete(2))
    >>> learner = coldq.Decentralised(coldq.COLDQ(X, alpha=1.0, eta=0.5, gamma=9.0), W)
    >>> state = learner.init(0, start=[[1.0], [3.0]])
    >>> learner.update(state, coldq.Feedback(coldq.Linear([[0.0], [2.0]]), None)).x
    array([[2.],
           [1.]])
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT, CONSTRAINT, WHOLE_CONSTRAINT}),
        assumes=(ASSUMES,),
        claims=(),
        certainty="likely",
        bibtex=Yi2023.card.bibtex,
    )

    learner: Any
    mixing: Array | Callable[[int], ArrayLike]
    domain: Domain
    horizon: int | None
    messages: Any
    agents: int

    def __init__(self, learner: Any, mixing: Any, messages: Any = None) -> None:
        if not is_learner(learner) or "center" not in signature(learner.update).parameters:
            raise InvalidInput(
                "Decentralised needs a learner whose update takes a center, such as COLDQ, RECOO "
                f"or Yi2023, but got {learner!r}"
            )
        if messages is not None and not all(
            callable(getattr(messages, part, None)) for part in ("sent", "kept")
        ):
            raise InvalidInput(
                "messages must be None, or a networks.Quantised, Noisy or Dropped, but is "
                f"{messages!r:.200}"
            )
        first: Any = mixing(1) if callable(mixing) else mixing
        W = mixing_matrix(first)
        card = learner.card
        claims = card.claims if isinstance(learner, Yi2023) and messages is None else ()
        self._fingerprint.updated_by = type(learner).__name__
        self._set(
            learner=learner,
            mixing=mixing if callable(mixing) else W,
            messages=messages,
            domain=learner.domain,
            horizon=learner.horizon,
            agents=len(W),
            state_type=getattr(learner, "state_type", object),
            card=replace(card, claims=claims, assumes=(*card.assumes, ASSUMES)),
        )

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> Any:
        """The learner's state before slot 1, with the agents as its last leading axis."""
        shape = (*batch_shape(batch), self.agents)
        return self._own(self.learner.init(n_constraints, start, shape))

    def update(self, state: Any, feedback: Feedback, played: Place = None) -> Any:
        """The state of the next slot."""
        if isinstance(state, State) or issubclass(type(self.learner), Learner):
            self._require_own(state, feedback)
        if np.shape(state.x)[-2:-1] != (self.agents,):
            raise WrongState(
                f"this network has {self.agents} agents, the last axis before the coordinates, "
                f"but the state's decisions have shape {np.shape(state.x)}"
            )
        z = self._heard(state.t, np.ascontiguousarray(state.x))
        elsewhere = {} if played is None else {"played": played}
        return self._own(self.learner.update(state, feedback, center=z, **elsewhere))

    def _heard(self, t: np.ndarray, x: Array) -> Array:
        """z: every agent's own decision as it is, and what it hears of the others'."""
        W, links = self._weights(t), self.messages
        if links is None:
            return mix(W, x)
        kept = links.kept(W, t[..., 0])
        own = np.diagonal(kept, axis1=-2, axis2=-1)
        others = np.ascontiguousarray(kept - own[..., None] * np.eye(self.agents))
        return own[..., None] * x + mix(others, np.ascontiguousarray(links.sent(x, t[..., 0])))

    def _own(self, state: Any) -> Any:
        """The learner's fresh state as one of the network."""
        if isinstance(state, State):
            object.__setattr__(state, "fingerprint", self._fingerprint)
        return state

    def _batch(self) -> Shape:
        own = getattr(self.learner, "_batch", tuple)()
        return np.broadcast_shapes(own, (self.agents,))

    def _weights(self, t: np.ndarray) -> Array:
        """W_t, one matrix a network where their clocks differ."""
        if not callable(self.mixing):
            return self.mixing
        slots, where = np.unique(t[..., 0], return_inverse=True)
        every = [mixing_matrix(self.mixing(int(slot)), self.agents) for slot in slots]
        return np.stack(every)[where.reshape(t.shape[:-1])]

    def _restore(self, arrays: Mapping[str, Any]) -> Any:
        inside = self.learner
        restore = inside._restore if isinstance(inside, Learner) else inside.from_arrays
        state = self._own(restore(arrays))
        if state.batch[-1:] != (self.agents,):
            raise InvalidInput(
                f"the arrays must have {self.agents} agents as their last leading axis, but have "
                f"the leading axes {state.batch}"
            )
        if (state.t != state.t[..., :1]).any():
            raise InvalidInput(f"the agents of a network share a clock, but t is {state.t}")
        return state
