"""What a learner's theory needs to know of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from coldq.base.arrays import positive
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Problem, require_problem
from coldq.slot.domains import scale_of

NAMES = (
    "diameter",
    "gradient_bound",
    "constraint_bound",
    "constraint_lipschitz",
    "strong_convexity",
)
BOUNDS = NAMES[1:4]  # the last is a bound from below, and the diameter may be infinite
NAMED = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY  # kinds of parameters


class ConstantsOf:
    """The constants of a problem: those among the keywords of a ``for_problem``, else its own.

    Those given are taken out of `parameters`. Each is looked up when it is asked for, so that a
    problem need know no more than a learner needs.

    >>> import coldq
    >>> from coldq.learners.constants import ConstantsOf
    >>> parameters = {"gradient_bound": 2.0, "b": 0.75}
    >>> known = ConstantsOf(coldq.problems.OnlineLinear(), parameters)
    >>> float(known.gradient_bound), known.constraint_bound, parameters
    (2.0, 1.0, {'b': 0.75})
    """

    def __init__(self, problem: Problem, parameters: dict[str, Any]) -> None:
        require_problem(problem)
        self.problem: Any = problem
        self.parameters = parameters
        self.given = {n: positive(n, parameters.pop(n)) for n in NAMES if n in parameters}

    def fill(self, **needed: str) -> dict[str, Any]:
        """The keywords of the ``for_problem``, those left out as the constants that are named."""
        left_out = {name: needed[name] for name in needed if name not in self.parameters}
        return self.parameters | {name: getattr(self, of) for name, of in left_out.items()}

    def __getattr__(self, name: str) -> Any:
        # What zero bounds, one does too, and can be divided by.
        return scale_of(self._said(name)) if name in BOUNDS else self._said(name)

    def _said(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        try:
            return getattr(self.problem.constants, name)
        except (AttributeError, NotImplementedError) as error:
            if name == "diameter":
                return self.problem.domain.diameter
            raise InvalidInput(
                f"{type(self.problem).__name__} does not say its {name}, which this learner needs: "
                f"pass {name}= to for_problem, or give the problem constants with it"
            ) from error

    @property
    def diameter(self) -> Any:
        """R, as the scale of steps."""
        R = self._said("diameter")
        if not np.all(np.isfinite(R)):
            raise InvalidInput(
                f"{type(self.problem).__name__} has an unbounded domain, but this learner's "
                "parameters follow from its diameter: pass them, or diameter=, to for_problem"
            )
        return scale_of(R)

    @property
    def lipschitz(self) -> Any:
        """A Lipschitz constant of f and of every row of g."""
        both = self._said("gradient_bound"), self._said("constraint_lipschitz")
        return scale_of(np.maximum(*both))

    @property
    def vector_lipschitz(self) -> float:
        """A Lipschitz constant of all rows of g as one vector; without rows, as if of one."""
        rows = max(float(self.problem.n_constraints), 1.0)
        return float(np.sqrt(rows) * self.constraint_lipschitz)


def keywords_of(learner: Any, *constructors: str) -> list[str]:
    """What a class's ``for_problem`` takes beside the problem, if it hands the rest on to these.

    >>> import coldq
    >>> from coldq.learners.constants import keywords_of
    >>> keywords_of(coldq.Yi2023, "from_exponents")
    ['a', 'b', 'c', 'g', 'index', 'k']
    """
    found = {
        name
        for function in ("for_problem", *constructors)
        for name, one in signature(getattr(learner, function)).parameters.items()
        if one.kind in NAMED
    }
    return sorted(found - {"self", "cls", "problem", "domain", "horizon"})


def require_parameters(
    learner: Any, constructor: str, takes: Mapping[str, Parameter], given: Mapping[str, Any]
) -> None:
    """Raise unless a ``for_problem`` is given what its constructor takes beside the problem."""
    kinds = {one.kind for one in takes.values()}
    for name in given:
        if name not in takes and Parameter.VAR_KEYWORD not in kinds:
            raise InvalidInput(
                f"{learner.__name__}.for_problem does not take {name!r}; it takes "
                f"{', '.join(keywords_of(learner, constructor))}"
            )
    for name, one in takes.items():
        known = name in ("self", "domain", "horizon") or name in given
        if not known and one.default is one.empty and one.kind in NAMED:
            raise InvalidInput(
                f"{learner.__name__}.for_problem needs {name}=, which no problem tells"
            )
