"""What a problem is: a domain, a horizon, and a stream that reveals one slot after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from coldq.base.arrays import Value, whole_number
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Stream
from coldq.slot.domains import Domain, diameter_of, require_single


@dataclass(frozen=True)
class Constants:
    """The constants of the paper's assumptions, and how far each can be trusted.

    `diameter` R, `gradient_bound` D and `constraint_bound` G hold for every seed;
    `constraint_lipschitz` bounds the norm of the jacobian's rows; `strong_convexity` is the paper's
    mu, without the 1/2. `note` says of every constant that is not exact what it is.

    >>> import coldq
    >>> coldq.problems.OnlineLinear().constants.constraint_bound
    1.0
    """

    diameter: float
    gradient_bound: float
    constraint_bound: float
    constraint_lipschitz: float
    strong_convexity: float = 0.0
    note: Mapping[str, str] = field(default_factory=dict)


class Problem(Value):
    """The base of the library's problems; a problem of your own need not inherit it.

    A problem whose functions depend on the decisions, an adversary, sets ``adaptive = True``, and
    one that shows every seed the same ``seeds_differ = False``. Its `periods` are the natural ones
    of its data, in slots, such as a day and a week: what is known before anything is tuned. One
    with `agents` reveals to each of them a loss and a constraint of its own, the agents being the
    axis after the seeds; it is played by a :class:`~coldq.Decentralised` learner.
    """

    domain: Domain
    horizon: int
    n_constraints: int
    agents: int | None = None
    adaptive = False
    seeds_differ = True
    periods: tuple[int, ...] = ()

    @property
    def constants(self) -> Constants:
        """R, D, G and the Lipschitz constants."""
        raise NotImplementedError

    def start(self, seeds: Iterable[int]) -> Stream:
        """A stream for these seeds. A seed's data is the same whatever seeds run beside it."""
        raise NotImplementedError


def generators(tag: int, seeds: Iterable[int], kinds: int) -> list[list[np.random.Generator]]:
    """For each kind of draw one generator a seed.

    A generator for each kind keeps a seed's numbers the same however many slots are drawn at once.
    """
    return [
        [np.random.default_rng(np.random.SeedSequence(s, spawn_key=(tag, k))) for s in seeds]
        for k in range(kinds)
    ]


def horizon_of(horizon: int | None, most: int, words: str) -> int:
    """T as it is given, or all `most` slots that, in `words`, the data has; raise if T is more."""
    T = most if horizon is None else whole_number("horizon", horizon, 2)
    if most < T:
        raise InvalidInput(f"horizon is {T}, but {words} only {most} slots")
    return T


def require_bounded(domain: Domain, dim: int | None = None) -> Domain:
    """A domain that a problem can use: bounded, one for all seeds."""
    require_single(domain, "a problem")
    if dim is not None and domain.dim != dim:
        raise InvalidInput(f"this problem has {dim} coordinates, but the domain has {domain.dim}")
    diameter_of(domain, "a problem needs")
    return domain


def row_range(domain: Domain, low: float, high: float) -> tuple[float, float]:
    """Bounds on ``<a, x>`` with every a_i in [low, high] and x in the box around the domain."""
    ends = np.stack([domain.box.lower, domain.box.upper])
    products = np.concatenate([low * ends, high * ends])
    return float(products.min(axis=0).sum()), float(products.max(axis=0).sum())
