"""OnePoint and TwoPoint: a learner of gradients works from values alone.

The learner inside, with decision y_t in X, sees estimates of slopes. About the centre c of a ball
of radius r inside X, and for a size delta_t < r, with u_t drawn uniformly from the unit sphere,

    z_t = c + (1 - delta_t / r) (y_t - c),

so that ``z_t + delta_t u_t`` lies in X. Of a function h of which the values there are known, the
slope at z_t is estimated by

    (d / delta_t) h(z_t + delta_t u_t) u_t                     from one value,
    (d / delta_t) (h(z_t + delta_t u_t) - h(z_t)) u_t          from two,

in d dimensions. Both have the mean ``grad E h(z_t + delta_t v)``, v uniform in the unit ball: the
slope of h itself if h is quadratic, and nearly so if delta_t is small. The learner inside gets it
times 1 - delta_t / r, the slope of ``y -> h(c + (1 - delta_t / r) (y - c))``.

Where X lies in a flat, such as a simplex, u_t is drawn within it, and d is the flat's dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array
from coldq.base.contractions import dot, matvec, vecmat
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import CONSTRAINT, FIRST_ORDER, VALUES, Card, Claim, Rate, reference
from coldq.learners.learner import Learner, Place, Shape, is_learner
from coldq.learners.ogd import OGD
from coldq.learners.revealed import require_slot
from coldq.learners.state import State, axes, inside
from coldq.learners.yi2023 import Yi2023
from coldq.slot.constraints import Affine
from coldq.slot.domains.interior import Inside, inside_of
from coldq.slot.feedback import Feedback
from coldq.slot.losses import GradientAt
from coldq.slot.schedules import Power, Schedule, as_schedule

LARGEST_SEED = 2**63


def _card(key: str) -> Card:
    """What an estimate needs, whatever learner it is made for."""
    return Card(
        needs=frozenset({VALUES}),
        assumes=(),
        claims=(),
        certainty="likely",
        bibtex=reference(key),
        played="remembered",
    )


@dataclass(frozen=True, eq=False, slots=True)
class ValuesState(State):
    """t and x_t, where values are needed, and the state of the learner inside.

    `points` has shape (K, ..., p): the functions of slot t are to be evaluated at each of the K.
    The first is x_t. The slot t is all that their randomness follows from, beside the seed.
    """

    points: Array = field(metadata=axes("p"))
    inner: Any = field(metadata=inside())

    axes_before: ClassVar[dict[str, int]] = {"points": 1}


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ValuesOnly(Learner):
    """What OnePoint and TwoPoint share: all but what is evaluated, and the estimate."""

    state_type = ValuesState
    learner: Any
    delta: Schedule
    seed: Array
    centre: Array
    radius: float
    domain: Domain
    horizon: int | None
    exponent: ClassVar[float]  # of t in delta_t, unless given
    n_points: ClassVar[int]
    bibtex: ClassVar[str]
    _leading = ("delta", "seed")
    _inside: ClassVar[Inside]  # set for each

    def __init__(
        self,
        learner: Any,
        delta: Any = None,
        *,
        seed: ArrayLike = 0,
        centre: ArrayLike | None = None,
        radius: float | None = None,
    ) -> None:
        self._require_inside(learner)
        inside = inside_of(learner.domain, centre, radius)
        default = Power(self.exponent, 0.5 * inside.radius)
        self._set(
            learner=learner,
            delta=default if delta is None else as_schedule("delta", delta),
            seed=_seeds(seed),
            centre=inside.centre,
            radius=inside.radius,
            domain=learner.domain,
            horizon=learner.horizon,
            _inside=inside,
        )
        card = learner.card
        certainty = "uncertain" if card.certainty == "uncertain" else "likely"
        self._set(
            card=replace(
                card,
                needs=frozenset({VALUES}),
                claims=self._published() if self.delta == default else (),
                certainty=certainty,
                bibtex=f"{card.bibtex}\n{self.bibtex}",
                played="remembered",
            )
        )
        self._batch()
        self._size(np.ones((), np.int64))

    def _require_inside(self, learner: Any) -> None:
        """That the learner inside needs no more than slopes and values at its decision."""
        name = type(self).__name__
        if not is_learner(learner):
            raise InvalidInput(f"{name} needs a learner, but got {learner!r:.200}")
        more = learner.card.needs - FIRST_ORDER
        if more:
            raise InvalidInput(
                f"{name} estimates slopes and values at the decision, but "
                f"{type(learner).__name__} needs the {' and the '.join(sorted(more))}: take one "
                "that needs no more, such as Yi2023, SinhaVaze or OGD"
            )
        own = isinstance(learner, Learner) and not isinstance(learner, ValuesOnly)
        if not own or learner.card.played != "taken":
            raise InvalidInput(
                f"{name} takes a learner that is a coldq.learners.learner.Learner and remembers "
                f"nothing of what it played, but got {learner!r:.200}"
            )

    def _published(self) -> tuple[Claim, ...]:
        """What is proved of the learner inside with these estimates."""
        raise NotImplementedError

    def _places(self, z: Array, reached: Array) -> list[Array]:
        """Where values are needed: z, z + delta u or both."""
        raise NotImplementedError

    def _change(self, values: Array) -> Array:
        """What of the values at the points is multiplied by ``d / delta u``."""
        raise NotImplementedError

    def _batch(self) -> Shape:
        return np.broadcast_shapes(self.learner._batch(), super()._batch())

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> ValuesState:
        """The state before slot 1. The learner inside starts at `start`, x_1 lies near it."""
        t, y = self.first_slot(start, batch)
        return self._around(self.learner.init(n_constraints, y, t.shape))

    def update(self, state: ValuesState, feedback: Feedback, played: Place = None) -> ValuesState:
        """The state of the next slot; loss and constraint are asked for at ``state.points``."""
        self._require_own(state, feedback)
        name = type(self).__name__
        if played is not None:
            raise InvalidInput(f"{name} remembers the points that it asked for: leave played out")
        if feedback.slot is not None:
            require_slot(feedback.slot, state.t)
        inner, lead = state.inner, state.points.shape[:-1]
        delta = self._size(state.t)
        u = self._directions(state.t)
        steep = (1.0 - delta / self.radius) * (self._inside.dim / delta)

        f = _finite("the loss's values", feedback.loss.value(state.points), lead)
        slope = (steep * self._change(f))[..., None] * u
        loss = GradientAt(inner.x, slope, np.array(f[0]))
        g = None
        if CONSTRAINT in self.learner.card.needs:
            values = feedback.constraint.value(state.points)
            rows = np.shape(values)[-1:]
            values = _finite("the constraint's values", values, (*lead, *rows))
            slopes = (steep[..., None] * self._change(values))[..., None] * u[..., None, :]
            g = Affine.from_measurement(inner.x, np.array(values[0]), slopes)
        return self._around(self.learner.update(inner, Feedback(loss, g, feedback.slot)))

    def _size(self, t: np.ndarray) -> Array:
        """delta_t, below the radius of the ball inside the domain."""
        delta = np.broadcast_to(self.delta(t), np.broadcast_shapes(t.shape, self._batch()))
        if not (delta < self.radius).all():
            raise InvalidInput(
                f"delta must stay below {self.radius}, the radius of the ball inside the domain, "
                f"but is {delta.max()}"
            )
        return delta

    def _directions(self, t: np.ndarray) -> Array:
        """u_t, which follows from seed and slot alone: one draw for all that share both."""
        p, fixed = self.domain.dim, self._inside.fixed
        seeds = np.broadcast_to(self.seed, t.shape)
        pairs = np.stack([seeds.ravel(), t.ravel()], axis=-1)
        which, where = np.unique(pairs, axis=0, return_inverse=True)
        drawn = np.empty((len(which), p))
        for k, (seed, slot) in enumerate(which.tolist()):
            bits = np.random.Philox(key=seed, counter=slot << 128)
            drawn[k] = np.random.Generator(bits).standard_normal(p)
        if len(fixed):
            drawn = drawn - vecmat(fixed, matvec(fixed, drawn))
        drawn = drawn / np.sqrt(dot(drawn, drawn))[..., None]
        return drawn[where.reshape(t.shape)]

    def _around(self, inner: Any) -> ValuesState:
        """The state whose learner inside is in this one."""
        t, c = np.array(inner.t), self.centre
        delta = self._size(t)[..., None]
        z = c + (1.0 - delta / self.radius) * (inner.x - c)
        points = self.domain.project(np.stack(self._places(z, z + delta * self._directions(t))))
        return self.new_state(t, np.array(points[0]), np.ascontiguousarray(points), inner)

    def _learner_inside(self, axes: int) -> Any:
        return self.learner

    def require_sound(self, state: ValuesState) -> None:
        following = self._around(state.inner)
        for name in ("t", "x", "points"):
            given, found = getattr(state, name), getattr(following, name)
            if given.shape != found.shape or not np.allclose(given, found, rtol=1e-9, atol=1e-9):
                raise InvalidInput(
                    f"{name} must be what follows from the learner inside and the seed, {found}, "
                    f"but is {given}"
                )


@dataclass(frozen=True, eq=False, repr=False, init=False)
class OnePoint(ValuesOnly):
    """A learner that sees one value of each function a slot, where it played.

    ``x_t = z_t + delta_t u_t`` is played, and slopes are estimated by ``(d / delta_t) h(x_t) u_t``,
    see :mod:`~coldq.learners.values_only`. An estimate is as large as ``d h / delta_t``: measure h
    from a typical value, and take steps of the learner inside to match.

    Published is Flaxman's O(T^(3/4)): ``OnePoint(OGD(X, eta=Power(-0.75, scale)))``, which alone
    keeps a claim, and only with the delta it comes with.

    Parameters
    ----------
    learner
        One that needs slopes and values at its decision and nothing else: OGD, Yi2023, SinhaVaze,
        Mahdavi2012 and others. One with a step on the constraint itself, such as COLDQ, is refused.
    delta
        How far from z_t values are taken: a positive number or a function of t, below the radius
        of the ball; ``r / (2 t^(1/4))`` unless given.
    seed
        Of the directions u_t: a whole number, or an array of them over leading axes. Members of a
        batch with the same seed get the same directions, as they would alone.
    centre, radius
        c and r: a ball inside the domain. Left out, a large one is found, see
        :func:`~coldq.slot.domains.interior.inside_of`.

    References
    ----------
    Flaxman, Kalai and McMahan, SODA 2005.

    >>> import coldq
    >>> from coldq.slot.schedules import Power
    >>> inside = coldq.OGD(coldq.Box(-1.0, 1.0, dim=2), eta=Power(-0.75, 0.1))
    >>> learner = coldq.OnePoint(inside)
    >>> state = learner.init(0)
    >>> values = [x @ x for x in state.points]  # of the loss |x|^2, where it is asked for
    >>> state = learner.update(state, coldq.Feedback(coldq.ValueAt(state.points, values), None))
    >>> state.points.shape, bool(learner.domain.contains(state.x))
    ((1, 2), True)
    """

    card: ClassVar[Card] = _card("flaxman2005online")
    exponent = -0.25
    n_points = 1
    bibtex = card.bibtex

    def _published(self) -> tuple[Claim, ...]:
        if type(self.learner) is OGD and _power(self.learner.eta) == -0.75:
            return (Claim("convex", "fixed", None, Rate(0.75)),)
        return ()

    def _places(self, z: Array, reached: Array) -> list[Array]:
        return [reached]

    def _change(self, values: Array) -> Array:
        return values[0]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TwoPoint(ValuesOnly):
    """A learner that sees two values of each function a slot, where it played and close by.

    ``x_t = z_t`` is played, and slopes are estimated by
    ``(d / delta_t) (h(z_t + delta_t u_t) - h(z_t)) u_t``, see :mod:`~coldq.learners.values_only`.
    An estimate is at most d times as steep as h, whatever delta_t: a learner inside that needs a
    bound on slopes needs it times d.

    Published are, for the steps of their theory, OGD (Agarwal, Dekel and Xiao: regret O(T^(1/2))),
    and Yi2023 (regret O(T^(1/2)), hard violation O(T^(3/4))), whose estimate is one of [g]_+ where
    ours is one of g, cut off where g(z_t) <= 0. They alone keep a claim, and only with the delta it
    comes with.

    Parameters
    ----------
    learner, seed, centre, radius
        As for :class:`~coldq.OnePoint`.
    delta
        How far from z_t the other value is taken; ``r / (2 t^(1/2))`` unless given.

    References
    ----------
    Agarwal, Dekel and Xiao, COLT 2010; Yi et al., IEEE Transactions on Automatic Control 2023.

    >>> import coldq
    >>> learner = coldq.TwoPoint(coldq.OGD(coldq.Simplex(3), eta=0.1))
    >>> state = learner.init(0)
    >>> values = [x @ [1.0, 2.0, 3.0] for x in state.points]
    >>> state = learner.update(state, coldq.Feedback(coldq.ValueAt(state.points, values), None))
    >>> state.points.shape, state.points.sum(axis=-1).round(12)
    ((2, 3), array([1., 1.]))
    """

    card: ClassVar[Card] = _card("agarwal2010optimal")
    exponent = -0.5
    n_points = 2
    bibtex = card.bibtex

    def _published(self) -> tuple[Claim, ...]:
        inside: Any = self.learner
        if type(inside) is OGD and _power(inside.eta) == -0.5:
            return (Claim("convex", "fixed", None, Rate(0.5)),)
        if type(inside) is Yi2023:
            steps = inside.alpha, inside.beta, inside.gamma
            if all(_power(step) == -0.5 for step in steps):
                return tuple(c for c in inside.card.claims if c.losses == "convex")
        return ()

    def _places(self, z: Array, reached: Array) -> list[Array]:
        return [z, reached]

    def _change(self, values: Array) -> Array:
        return values[1] - values[0]


def _power(schedule: Any) -> Any:
    """The exponent of a power of t, None of anything else."""
    single = isinstance(schedule, Power) and schedule.exponent.ndim == 0
    return float(schedule.exponent) if single else None


def _seeds(seed: ArrayLike) -> np.ndarray:
    """Whole numbers, not negative."""
    given = as_array("seed", seed)
    if given.dtype.kind not in "iu" or ((given < 0) | (given >= LARGEST_SEED)).any():
        raise InvalidInput(f"seed must be a whole number, not negative, but is {given}")
    return given.astype(np.int64)


def _finite(name: str, values: Any, shape: Shape) -> Array:
    """Values at all points, each a number."""
    found = as_array(name, values)
    if found.dtype.kind not in "fiu" or found.shape != shape:
        raise InvalidInput(
            f"{name} must have the shape {shape}, one for each of state.points, but have "
            f"{found.shape}"
        )
    if not np.isfinite(found).all():
        raise InvalidInput(f"{name} must be finite, but are {found}")
    return found.astype(np.float64)
