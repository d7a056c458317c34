"""Graphs of agents, and the doubly stochastic weights with which neighbours average.

A graph is a symmetric (n, n) array of booleans, true where two agents are neighbours;
:func:`metropolis` and :func:`uniform` make mixing weights of it for :class:`~coldq.Decentralised`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import (
    Array,
    Value,
    non_negative,
    one_exponent,
    one_real,
    positive,
    real_array,
    whole_number,
)
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput, installed
from coldq.slot.constraints import Affine, Kind
from coldq.slot.feedback import Feedback
from coldq.slot.losses import LeastSquares, Quadratic, Smooth

NO_NETWORKX = "from_networkx needs NetworkX: install it with pip install 'coldq[networks]'"
MAX_SUM_ERROR = 1e-12  # how far the sum of n weights may be from 1, for each of them


def path(n: int) -> np.ndarray:
    """Agents in a line, each a neighbour of the next.

    >>> from coldq import networks
    >>> networks.path(3).astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    i = np.arange(whole_number("n", n, 1))
    return np.abs(i[:, None] - i) == 1


def ring(n: int) -> np.ndarray:
    """A path whose ends are neighbours too.

    >>> from coldq import networks
    >>> networks.ring(4).sum(axis=0)
    array([2, 2, 2, 2])
    """
    graph = path(n)
    if n > 2:
        graph[0, -1] = graph[-1, 0] = True
    return graph


def complete(n: int) -> np.ndarray:
    """Everybody is everybody's neighbour.

    >>> from coldq import networks
    >>> networks.complete(4).sum()
    np.int64(12)
    """
    return ~np.eye(whole_number("n", n, 1), dtype=bool)


def random(n: int, probability: float, rng: np.random.Generator) -> np.ndarray:
    """A path, which keeps the graph connected, and every other edge with some probability.

    >>> import numpy as np
    >>> from coldq import networks
    >>> bool((networks.random(5, 0.0, np.random.default_rng(0)) == networks.path(5)).all())
    True
    """
    line = path(n)
    probability = one_exponent("probability", probability)
    if not isinstance(cast(object, rng), np.random.Generator):
        raise InvalidInput(f"rng must be a numpy.random.Generator, but is {rng!r}")
    above = np.triu(rng.random((n, n)) < probability, 1)
    return line | above | above.T


def from_networkx(graph: Any) -> np.ndarray:
    """An undirected graph of NetworkX, its nodes in their own order; loops are left out.

    >>> import networkx
    >>> from coldq import networks
    >>> bool((networks.from_networkx(networkx.cycle_graph(5)) == networks.ring(5)).all())
    True
    """
    networkx = installed("networkx", NO_NETWORKX)
    if not isinstance(graph, networkx.Graph) or graph.is_directed():
        raise InvalidInput(f"graph must be an undirected NetworkX graph, but is {graph!r}")
    adjacent = networkx.to_numpy_array(graph, weight=None) != 0.0
    np.fill_diagonal(adjacent, False)
    return _graph(adjacent)


def metropolis(graph: ArrayLike) -> Array:
    """``1 / (1 + max(d_i, d_j))`` for neighbours of degrees d_i and d_j, and the rest stays at i.

    Doubly stochastic for every graph, and 1/n everywhere on a complete one.

    >>> from coldq import networks
    >>> networks.metropolis(networks.complete(4))[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    edges = _graph(graph)
    own = 1.0 / (1.0 + edges.sum(axis=1))
    pairs = np.where(edges, np.minimum(own[:, None], own), 0.0)
    # What W_ii exceeds 1 / (1 + d_i) by: nothing where all neighbours have the same degree.
    spare = np.where(edges, own[:, None] - pairs, 0.0).sum(axis=1)
    return pairs + np.diag(own + spare)


def uniform(graph: ArrayLike) -> Array:
    """1/n for neighbours, and the rest stays at i: as in the released code of COLDQ's authors.

    >>> from coldq import networks
    >>> networks.uniform(networks.path(4))[1]
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    edges = _graph(graph)
    n = len(edges)
    return edges / n + np.diag((n - edges.sum(axis=1)) / n)


def _graph(given: ArrayLike) -> np.ndarray:
    graph = real_array("graph", given, 0)  # a NaN is neither an edge nor none
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1] or graph.shape[0] == 0:
        raise InvalidInput(f"graph must be an (n, n) array, but has shape {graph.shape}")
    graph = graph != 0
    if (graph != graph.T).any() or graph.diagonal().any():
        i, j = np.argwhere((graph != graph.T) | np.diag(graph.diagonal()))[0]
        raise InvalidInput(
            f"graph must be symmetric without an agent as its own neighbour, but ({i}, {j}) is not"
        )
    return graph


def mixing_matrix(given: ArrayLike, n: int | None = None) -> Array:
    """A doubly stochastic matrix, checked: its shape, its signs, the sums of its rows and columns.

    >>> from coldq.learners.networks import mixing_matrix
    >>> mixing_matrix([[0.5, 0.5], [0.6, 0.4]])
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: the columns of mixing must sum to 1, but column 0 sums to 1.1
    """
    W = real_array("mixing", given, 2)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] != (n or W.shape[0]) or not W.size:
        size = "n" if n is None else str(n)
        raise InvalidInput(f"mixing must have the shape ({size}, {size}), but has {W.shape}")
    if (W < 0.0).any():
        raise InvalidInput(f"mixing must not be negative, but has the entry {W.min()}")
    for name, sums in (("row", W.sum(axis=1)), ("column", W.sum(axis=0))):
        off = np.abs(sums - 1.0)
        if off.max() > MAX_SUM_ERROR * len(W):
            worst = int(off.argmax())
            raise InvalidInput(
                f"the {name}s of mixing must sum to 1, but {name} {worst} sums to {sums[worst]:.6g}"
            )
    return W


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Alternating(Value):
    """Mixing weights that take turns: the first matrix in slot 1, and around again.

    >>> import numpy as np
    >>> from coldq import networks
    >>> talk, rest = networks.metropolis(networks.ring(3)), np.eye(3)
    >>> networks.Alternating(talk, rest)(4)[0]
    array([1., 0., 0.])
    """

    matrices: Array

    def __init__(self, *matrices: ArrayLike) -> None:
        if not matrices:
            raise InvalidInput("matrices must be at least one matrix, but is empty")
        first = mixing_matrix(matrices[0])
        every = [mixing_matrix(matrix, len(first)) for matrix in matrices]
        self._set(matrices=real_array("matrices", np.stack(every), 2))

    def __call__(self, t: int) -> Array:
        return self.matrices[(t - 1) % len(self.matrices)]


@describable
@dataclass(frozen=True)
class Quantised:
    """Messages rounded to multiples of `step`; an agent knows its own decision as it is.

    >>> import numpy as np
    >>> from coldq import networks
    >>> networks.Quantised(0.5).sent(np.array([[0.3, 0.6]]), np.array([1]))
    array([[0.5, 0.5]])
    """

    step: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", float(positive("step", one_real("step", self.step))))

    def sent(self, x: Array, t: np.ndarray) -> Array:
        """What the agents send of decisions (..., n, p) in slot t, of shape (...)."""
        return self.step * np.round(x / self.step)

    def kept(self, W: Array, t: np.ndarray) -> Array:
        """The weights with which they are heard."""
        return W


@describable
@dataclass(frozen=True)
class Noisy:
    """Messages with normal noise of a standard deviation, drawn from seed and slot alone.

    So a run that is resumed hears what it would have heard, and all of a batch hear the same noise.

    >>> import numpy as np
    >>> from coldq import networks
    >>> link, x = networks.Noisy(0.1, seed=3), np.zeros((2, 4))
    >>> bool((link.sent(x, np.array(7)) == link.sent(x, np.array(7))).all())
    True
    """

    deviation: float
    seed: int = 0

    def __post_init__(self) -> None:
        size = one_real("deviation", self.deviation)
        object.__setattr__(self, "deviation", float(non_negative("deviation", size)))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0))

    def sent(self, x: Array, t: np.ndarray) -> Array:
        """What the agents send of decisions (..., n, p) in slot t, of shape (...)."""
        size = x.shape[-2:]

        def drawn(slot: int) -> Array:
            return _generator(self, slot).standard_normal(size)

        noise = _by_slot(t, drawn)
        return x + self.deviation * noise

    def kept(self, W: Array, t: np.ndarray) -> Array:
        """The weights with which they are heard."""
        return W


@describable
@dataclass(frozen=True)
class Dropped:
    """Every link fails in a slot with some probability, both ways, drawn from seed and slot alone.

    What an agent does not hear it replaces by its own decision, so that symmetric weights stay
    doubly stochastic. Others do not: a link that fails may count more one way than the other.

    >>> import numpy as np
    >>> from coldq import networks
    >>> W = networks.metropolis(networks.ring(3))
    >>> bool((networks.Dropped(1.0).kept(W, np.array(1)) == np.eye(3)).all())
    True
    """

    probability: float
    seed: int = 0

    def __post_init__(self) -> None:
        share = one_exponent("probability", self.probability)
        object.__setattr__(self, "probability", share)
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0))

    def sent(self, x: Array, t: np.ndarray) -> Array:
        """What the agents send: their decisions."""
        return x

    def kept(self, W: Array, t: np.ndarray) -> Array:
        """The weights with which they are heard in slot t, of shape (...)."""
        n = W.shape[-1]

        def works(slot: int) -> Array:
            above = np.triu(_generator(self, slot).random((n, n)) >= self.probability, 1)
            return (above | above.T).astype(float)

        links = _by_slot(t, works)
        heard = np.where(links > 0.0, W, 0.0)
        lost = np.where((links > 0.0) | np.eye(n, dtype=bool), 0.0, W)
        own = np.diagonal(W, axis1=-2, axis2=-1) + lost.sum(axis=-1)
        return np.ascontiguousarray(heard + own[..., None] * np.eye(n))


def _generator(link: Any, slot: int) -> np.random.Generator:
    """Random numbers of a slot, whatever was drawn before it."""
    return np.random.Generator(np.random.Philox(key=link.seed, counter=[0, 0, 0, slot]))


def _by_slot(t: np.ndarray, draw: Any) -> Array:
    """What is drawn for each slot of t, one draw a slot."""
    slots, where = np.unique(t, return_inverse=True)
    return np.stack([draw(int(slot)) for slot in slots])[where.reshape(np.shape(t))]


def network_feedback(revealed: Feedback, lead: tuple[int, ...]) -> Feedback:
    """The problem that a network as a whole has: the agents' mean loss, and all their constraints.

    Losses and constraints have the leading axes `lead` or broadcast to them; the last of these are
    the agents. This is what comparators are feasible for and measured by.

    >>> import coldq
    >>> from coldq.learners.networks import network_feedback
    >>> losses = coldq.LeastSquares([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> rows = coldq.Affine([[[1.0]], [[2.0]]], [[1.0], [4.0]])
    >>> whole = network_feedback(coldq.Feedback(losses, rows), (2,))
    >>> whole.loss.value([1.0]).round(6), whole.constraint.b
    (np.float64(0.5), array([1., 4.]))
    """
    g, n = revealed.constraint, lead[-1]
    loss: Any = revealed.loss
    if isinstance(loss, LeastSquares):
        mean: Any = LeastSquares(
            _together(loss.H, lead, 2) / np.sqrt(n), _together(loss.y, lead, 1) / np.sqrt(n)
        )
    elif hasattr(loss, "quadratic"):
        P, q, r = (
            mean_in_order(
                np.broadcast_to(part, lead + part.shape[part.ndim - core :]), len(lead) - 1
            )
            for part, core in zip(loss.quadratic(), (2, 1, 0), strict=True)  # type: ignore[attr-defined]
        )
        mean = Quadratic(P, q, r)
    elif isinstance(loss, Smooth):
        mean = _mean_of_functions(loss, n)
    else:
        raise InvalidInput(
            "the mean of a network's losses is known for quadratic and Smooth ones, not "
            f"{type(loss).__name__}"
        )
    dim = getattr(mean, "dim", getattr(g, "dim", 0))
    rows = g.as_affine(dim) if isinstance(g, Kind) else None
    if rows is None:
        raise InvalidInput(
            f"a network's constraints are put together if affine, but one is a {type(g).__name__}"
        )
    whole = Affine(_together(rows.A, lead, 2), _together(rows.b, lead, 1))
    return Feedback(mean, whole, revealed.slot)


def _mean_of_functions(loss: Smooth, n: int) -> Smooth:
    """The mean of agents' losses that are functions of decisions (..., n, p), at a common one."""

    def everywhere(x: Array) -> Array:
        spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], n, x.shape[-1]))
        return np.ascontiguousarray(spread)

    def value(x: Array) -> Array:
        return mean_in_order(loss.value(everywhere(x)), -1)

    def gradient(x: Array) -> Array:
        return mean_in_order(loss.gradient(everywhere(x)), -2)

    return Smooth(value, gradient, vectorised=True)


def mean_in_order(values: Array, axis: int) -> Array:
    """The mean along an axis, added in order, so that a seed's does not depend on the batch.

    >>> import numpy as np
    >>> from coldq.learners.networks import mean_in_order
    >>> mean_in_order(np.array([[1.0, 2.0], [3.0, 6.0]]), axis=0)
    array([2., 4.])
    """
    total = np.take(np.add.accumulate(values, axis=axis), -1, axis=axis)
    return total / values.shape[axis]


def _together(rows: Array, lead: tuple[int, ...], core: int) -> Array:
    """All agents' rows one below the other: the agents' axis joins the first core axis."""
    rows = np.broadcast_to(rows, lead + rows.shape[rows.ndim - core :])
    return rows.reshape(
        *lead[:-1], lead[-1] * rows.shape[-core], *rows.shape[rows.ndim - core + 1 :]
    )
