"""Problems and learners by the names that commands and files give them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from coldq.base.errors import Error, InvalidInput
from coldq.base.keys import nearest
from coldq.base.protocols import require_learner, require_problem
from coldq.learners import ALGORITHMS
from coldq.problems import (
    Autoscale,
    Dispatch,
    Drifting,
    JobScheduling,
    OnlineLinear,
    OnlineQuadratic,
    TimeVarying,
    from_table,
)
from coldq.problems.files import SUFFIXES, suffix_of


def _drifting(
    path_exponent: float = 0.5, variation_exponent: float = 0.5, horizon: int = 4096
) -> Drifting:
    return Drifting(path_exponent, variation_exponent, horizon=horizon)


PROBLEMS: Mapping[str, Callable[..., Any]] = {
    "time-varying": TimeVarying,
    "quadratic": OnlineQuadratic,
    "linear": OnlineLinear,
    "jobs": JobScheduling,
    "autoscale": Autoscale,
    "dispatch": Dispatch,
    "drifting": _drifting,
}
# Parameters that no problem knows. Feedback comes at once here.
GIVEN: Mapping[str, Mapping[str, Any]] = {"Wang2023": {"delay": 0}}


def problem_of(key: str, horizon: int | None = None) -> Any:
    """The problem of this name, with its own horizon or another one.

    >>> from coldq.evaluation.named import problem_of
    >>> problem_of("linear", horizon=100).horizon
    100
    """
    kind = built_in(key)
    return kind() if horizon is None else kind(horizon=horizon)


def distinct_seeds(problem: Any, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds that are worth a run: one of them, if the problem shows all the same.

    >>> import coldq
    >>> from coldq.evaluation.named import distinct_seeds
    >>> distinct_seeds(coldq.problems.Autoscale(), (0, 1, 2)), distinct_seeds(object(), (0, 1, 2))
    ((0,), (0, 1, 2))
    """
    return seeds if getattr(problem, "seeds_differ", True) else seeds[:1]


def built_in(key: str) -> Callable[..., Any]:
    """What makes the problem of this name."""
    if key not in PROBLEMS:
        raise InvalidInput(
            f"there is no problem {key!r}{nearest(key, PROBLEMS)}; there are "
            f"{', '.join(PROBLEMS)}, a table's TOML file, and module:problem"
        )
    return PROBLEMS[key]


def named_problem(name: str, horizon: int | None = None) -> tuple[str, Any]:
    """A title and the problem of a name: a built-in one, a table's file, or module:problem.

    >>> from coldq.evaluation.named import named_problem
    >>> title, problem = named_problem("linear", horizon=100)
    >>> title, problem.horizon
    ('linear', 100)
    """
    return own_problem(name, horizon) if is_own(name) else (name, problem_of(name, horizon))


def is_file(name: str) -> bool:
    """Whether a problem's name is that of a table's file.

    >>> from coldq.evaluation.named import is_file
    >>> is_file("last-month.toml"), is_file("mine:problem"), is_file("autoscale")
    (True, False, False)
    """
    return suffix_of(Path(name)) in (".toml", *SUFFIXES)


def is_own(name: str) -> bool:
    """Whether a problem is a user's own: a table's file, or module:problem.

    >>> from coldq.evaluation.named import is_own
    >>> is_own("last-month.toml"), is_own("mine:problem"), is_own("autoscale")
    (True, True, False)
    """
    return is_file(name) or ":" in name


def own_problem(name: str, horizon: int | None = None) -> tuple[str, Any]:
    """A title and the problem: from a file with its TOML, or from a module in this folder."""
    if is_file(name):
        problem = from_table(name, horizon=horizon)
        return problem.title, problem
    if horizon is not None:
        raise InvalidInput(f"{name} has its own horizon, so that no other is for it")
    problem = problem_factory(name)()
    return name, problem  # all of it: other modules have a `problem` too


def problem_factory(name: str) -> Callable[..., Any]:
    """A function of parameters that makes a module:problem, be it a class, a function or itself."""
    thing = from_module("problem", name)
    is_one = hasattr(thing, "start") and not isinstance(thing, type)

    def make(**parameters: Any) -> Any:
        try:
            problem = thing if is_one else thing(**parameters)
        except Error:
            raise
        except Exception as error:
            raise _not_had(name, error) from error
        require_problem(problem)
        return problem

    return (lambda: make()) if is_one else update_wrapper(make, thing)


def from_module(what: str, name: str) -> Any:
    """What a module in this folder, or on the path, has under a name: module:name."""
    module, _, attribute = name.partition(":")
    if not re.fullmatch(r"\w+(\.\w+)*", module) or not attribute.isidentifier():
        raise InvalidInput(f"module:{what} is written as mine:{what}, but is {name!r}")
    if module == "__main__":
        raise InvalidInput(
            f"{name}: what a script or a notebook defines is found by no other process; put it "
            f"into a file of its own, mine.py, and name it mine:{attribute}"
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return getattr(import_module(module), attribute)
    except Error:
        raise
    except AttributeError as error:
        raise InvalidInput(f"{module} has no {attribute}: {error}") from error
    except Exception as error:
        raise _not_had(name, error) from error


def own_learner(name: str) -> Callable[..., Any]:
    """What makes a module:learner for a problem: a function, or a class's; a learner is one."""
    thing = from_module("learner", name)
    if hasattr(thing, "update") and not isinstance(thing, type):
        require_learner(thing)
        return lambda problem: thing
    make = getattr(thing, "for_problem", None) if isinstance(thing, type) else thing
    if not callable(make):
        raise InvalidInput(
            f"{name} must be a function of the problem, a class with for_problem, or a learner, "
            f"but is {thing!r:.200}"
        )
    return make


def _not_had(name: str, error: Exception) -> InvalidInput:
    return InvalidInput(f"{name} could not be had: {type(error).__name__}: {error}")


def learners_of(names: Iterable[str]) -> tuple[type, ...]:
    """The learners of these names, whatever their case.

    >>> from coldq.evaluation.named import learners_of
    >>> [learner.__name__ for learner in learners_of(["recoo", "COLDQ"])]
    ['RECOO', 'COLDQ']
    """
    known = {learner.__name__.lower(): learner for learner in ALGORITHMS}
    chosen = []
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(learner.__name__ for learner in ALGORITHMS)
            raise InvalidInput(f"there is no learner {name!r}; there are {listed}")
        chosen.append(known[name.lower()])
    return tuple(dict.fromkeys(chosen))


def make(learner: Any, problem: Any, *, named: bool, **given: Any) -> Any:
    """A learner of a class for a problem, or a sentence on why it does not play."""
    if not named and learner.card.memory == "grows":
        return "the state grows with time; name the learner to see it play"
    given = {**GIVEN.get(learner.__name__, {}), **given}
    try:
        signature(learner.for_problem).bind(problem, **given)
    except TypeError:
        return "the theory needs constants that the problem does not know"
    try:
        return learner.for_problem(problem, **given)
    except InvalidInput as error:
        return str(error)


def absences(left_out: Mapping[str, str]) -> list[str]:
    """Who did not play and why, a sentence for each reason.

    >>> from coldq.evaluation.named import absences
    >>> absences({"A": "it is late", "B": "it is ill", "C": "it is late"})
    ['A and C did not play: it is late.', 'B did not play: it is ill.']
    """
    groups: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        groups.setdefault(reason, []).append(name)
    return [f"{listed(names)} did not play: {reason}." for reason, names in groups.items()]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: A, B and C."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
