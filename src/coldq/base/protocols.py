"""What each part of a run must answer: a class of your own that does so needs no base of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, whole_number
from coldq.base.errors import InvalidInput


class Loss(Protocol):
    """What a learner may ask of a loss."""

    def value(self, x: ArrayLike) -> Array:
        """f(x), of the batch's shape."""
        ...

    def gradient(self, x: ArrayLike) -> Array:
        """The gradient of f at x, of x's shape."""
        ...


class Constraint(Protocol):
    """What a learner may ask of a constraint."""

    def value(self, x: ArrayLike) -> Array:
        """g(x), of shape ``(..., N)``."""
        ...

    def jacobian(self, x: ArrayLike) -> Array:
        """The derivative of g at x, of shape ``(..., N, p)``."""
        ...


class Domain(Protocol):
    """What everybody may ask of a feasible set."""

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        ...

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one set."""
        ...

    @property
    def diameter(self) -> Any:
        """R, the largest distance between two of its points."""
        ...

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the set."""
        ...

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the set."""
        ...

    def start(self) -> Array:
        """Where a learner starts unless told otherwise."""
        ...


class Region(Domain, Protocol):
    """What bounds may ask of a domain besides, in closed form; all of the library's answer."""

    @property
    def around(self) -> Any:
        """The smallest :class:`~coldq.Box` around it that is known; of a box, itself."""
        ...

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row, and whether both are reached."""
        ...


class Stream(Protocol):
    """One run of a problem, or several side by side.

    One whose problem does not look at the decisions may also have ``reveal_block(t, count)``, the
    feedbacks of as many slots from t on, as ``reveal`` would give them: simulate then asks for
    whole blocks, which may be drawn and checked at once.
    """

    def reveal(self, t: int, x: Array) -> Any:
        """The :class:`~coldq.Feedback` of slot t, after x (S, p) was played in it."""
        ...


class Problem(Protocol):
    """What is played: a domain, a horizon, and a stream that reveals one slot after another."""

    @property
    def domain(self) -> Domain:
        """The feasible set X."""
        ...

    @property
    def horizon(self) -> int:
        """The number of slots T."""
        ...

    @property
    def n_constraints(self) -> int:
        """The number of rows N of every constraint."""
        ...

    def start(self, seeds: Iterable[int]) -> Stream:
        """A stream for these seeds."""
        ...


class Learner(Protocol):
    """What plays: a value that makes states and moves them on."""

    @property
    def domain(self) -> Domain:
        """The feasible set X."""
        ...

    @property
    def horizon(self) -> int | None:
        """The number of slots T that it was made for, if for any."""
        ...

    def init(
        self, n_constraints: int, start: ArrayLike | None = None, batch: tuple[int, ...] = ()
    ) -> Any:
        """The state before slot 1."""
        ...

    def update(self, state: Any, feedback: Any) -> Any:
        """The state of the next slot."""
        ...


def require_parts(thing: Any, name: str, attributes: Iterable[str]) -> None:
    """Raise unless something has what it is asked for."""
    for attribute in attributes:
        if not hasattr(thing, attribute):
            raise InvalidInput(f"a {name} needs {attribute}, which this has not: {thing!r:.200}")


def require_learner(learner: Any) -> None:
    """Raise unless it has what makes a learner."""
    require_parts(learner, "learner", ("domain", "horizon", "init", "update"))


def require_problem(problem: Any) -> None:
    """Raise unless it has what makes a problem."""
    parts = ("domain", "horizon", "n_constraints", "start")
    given: Any = problem
    table = isinstance(problem, str | PathLike | Mapping) or hasattr(given, "columns")
    if table and not all(hasattr(given, part) for part in parts):
        raise InvalidInput(
            f"a problem is needed, but this is a {type(given).__name__}: "
            "coldq.problems.from_table makes one of a table or of its file"
        )
    require_parts(problem, "problem", parts)
    whole_number("a problem's horizon", problem.horizon, 1)  # type: ignore[union-attr]
