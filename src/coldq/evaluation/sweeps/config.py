"""What a sweep is to run: a few keys, written in TOML or given as arguments, all checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from coldq.base.arrays import arguments_of, flag, is_several, whole_number
from coldq.base.describe import describe
from coldq.base.errors import Error, InvalidInput, NotSaveable
from coldq.base.keys import nearest, read_toml, require_keys, require_number, require_text
from coldq.base.protocols import require_learner, require_problem
from coldq.evaluation.named import built_in, from_module, is_file, own_learner, problem_factory
from coldq.evaluation.sweeps.grid import combinations, flat
from coldq.evaluation.sweeps.identity import module_digest
from coldq.evaluation.sweeps.task import BEST, built
from coldq.learners import ALGORITHMS
from coldq.learners.constants import NAMES, keywords_of
from coldq.problems import from_table
from coldq.simulation.loop import seed_tuple

SWEEP_KEYS = ("title", "seeds", "seeds_a_task", "budget", "regret", "problems", "learners")
SEEDS_KEYS = ("from", "to")
# What may be tried of a table, beside what its file says: numbers, names, lists of these to try.
TABLE_KEYS = ("horizon", "table", "cost", "gain", "total", "copies", "gaps")
DEFAULT_SEED_COUNT = 20
NAMED_PARAMETERS = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, eq=False)
class Entry:
    """A problem or a learner of the sweep, with one combination of its parameters.

    `described` is what a worker makes it of, `problem` the problem itself.
    """

    title: str
    parameters: Mapping[str, Any]
    described: Mapping[str, Any]
    problem: Any = None

    @property
    def flat(self) -> dict[str, Any]:
        """Its parameters, a plain value each."""
        return flat(self.parameters)

    @property
    def adaptive(self) -> bool:
        """Whether a problem answers to decisions, so that every learner meets other functions."""
        return bool(getattr(self.problem, "adaptive", False))


@dataclass(frozen=True, eq=False)
class SweepConfig:
    """All that a sweep is asked to run."""

    title: str
    seeds: tuple[int, ...]
    seeds_a_task: int | None
    budget: float | None
    problems: tuple[Entry, ...]
    learners: tuple[Entry, ...]
    regret: bool = True

    @property
    def own(self) -> bool:
        """Whether any of it is of a module of the user's."""
        return any("module" in one.described for one in (*self.problems, *self.learners))


def read_config(
    config: str | PathLike[str] | Mapping[str, Any] | None, keys: Mapping[str, Any]
) -> SweepConfig:
    """What a TOML file, or its keys, and further keys ask for.

    >>> from coldq.evaluation.sweeps.config import read_config
    >>> whole = read_config(None, {"problems": ["linear"], "learners": [{"learner": "COLDQ",
    ...     "epsilon": [0.1, 0.5]}], "seeds": 3})
    >>> [one.parameters for one in whole.learners], whole.seeds
    ([{'epsilon': 0.1}, {'epsilon': 0.5}], (0, 1, 2))
    """
    where, folder, entries = "the sweep", Path(), dict(keys)
    if isinstance(config, str | PathLike):
        where, folder = str(config), Path(config).parent
        entries = read_toml(Path(config)) | entries
    elif isinstance(config, Mapping):
        entries = dict(config) | entries
    elif config is not None:
        raise InvalidInput(
            f"a sweep is a TOML file's path, or its keys, but this is a {type(config).__name__}"
        )
    require_keys(where, entries, SWEEP_KEYS)
    for key in ("problems", "learners"):
        if key not in entries:
            raise InvalidInput(f"{where}: {key} is missing; it names what is run, see [[{key}]]")
    title = entries.get("title", "" if where == "the sweep" else Path(where).stem)
    if not isinstance(title, str):
        raise InvalidInput(f"{where}: title must be some text, but is {title!r:.80}")
    per, budget = entries.get("seeds_a_task"), entries.get("budget")
    whole = SweepConfig(
        title,
        _seeds(where, entries.get("seeds", DEFAULT_SEED_COUNT)),
        None if per is None else whole_number(f"{where}: seeds_a_task", per, 1),
        None if budget is None else require_budget(where, budget),
        tuple(_entries(where, "problem", entries["problems"], lambda one: _problem(one, folder))),
        tuple(_entries(where, "learner", entries["learners"], _learner)),
        flag(f"{where}: regret", entries.get("regret", True)),
    )
    _require_different(where, "problems", [one.title for one in whole.problems])
    _require_different(where, "learners", [(e.title, *e.flat.items()) for e in whole.learners])
    _require_alike(where, whole.learners)
    for one in whole.learners:
        if one.title in BEST:
            raise InvalidInput(f"{where}: {one.title!r} is a comparator's name; give another one")
    return whole


def require_budget(where: str, given: Any) -> float:
    """The violation of a run that the user allows."""
    budget = require_number(where, "budget", given)
    if budget < 0.0:
        raise InvalidInput(f"{where}: budget must not be negative, but is {budget:g}")
    return budget


def _seeds(where: str, given: Any) -> tuple[int, ...]:
    several: Any = given
    if isinstance(given, int) and not isinstance(given, bool):
        several = range(whole_number(f"{where}: seeds", given, 1))
    elif isinstance(given, Mapping):
        require_keys(f"{where}, seeds", given, SEEDS_KEYS)
        first, last = (
            whole_number(f"{where}: seeds.{key}", given.get(key), 0) for key in SEEDS_KEYS
        )
        if last < first:
            raise InvalidInput(f"{where}: seeds from {first} to {last} are none")
        several = range(first, last + 1)
    try:
        seeds = seed_tuple(several)
    except InvalidInput as error:
        raise InvalidInput(
            f"{where}: seeds must be how many, a list of them, or {{from = 0, to = 99}}: {error}"
        ) from None
    if len(set(seeds)) < len(seeds):
        twice = next(seed for k, seed in enumerate(seeds) if seed in seeds[:k])
        raise InvalidInput(f"{where}: seeds has {twice} twice, but each is run once")
    return seeds


def _require_different(where: str, what: str, names: Iterable[Any]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            shown = name if isinstance(name, str) else name[0]
            raise InvalidInput(
                f"{where}: {what} has {shown!r} twice; a name of its own tells one from the other"
            )
        seen.add(name)


def _require_alike(where: str, learners: Iterable[Entry]) -> None:
    """Raise if learners of one title differ in which parameters they have."""
    names: dict[str, set[str]] = {}
    for one in learners:
        if names.setdefault(one.title, set(one.flat)) != set(one.flat):
            raise InvalidInput(
                f"{where}: {one.title} stands there twice with different parameters; name = "
                f"'another name' tells one from the other"
            )


class _Source(NamedTuple):
    """A problem or learner as it was named or given, before it has its parameters.

    `takes` are the names of these; None for any. `make` makes a title, what a worker is told, and
    the problem, of them.
    """

    takes: Iterable[str] | None
    make: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, Any], Any]]


def _entries(
    where: str, kind: str, given: Any, source_of: Callable[[Any], _Source]
) -> Iterator[Entry]:
    """Every problem, or learner, that is asked for, with every combination of its parameters."""
    if isinstance(given, str | Mapping | type) or not is_several(given):
        given = [given]
    several = list(given)
    if not several:
        raise InvalidInput(f"{where}: {kind}s is empty, which leaves nothing to run")
    for k, one in enumerate(several, 1):
        place = f"{where}, {kind}s {k}"
        said = dict(one) if isinstance(one, Mapping) else {kind: one}
        thing, name = said.pop(kind, None), said.pop("name", None)
        require_text(place, "name", name, optional=True)
        if thing is None:
            require_text(place, kind, thing)
        try:
            source = source_of(thing)
        except Error as error:
            raise InvalidInput(f"{place}: {error}") from None
        if source.takes is not None:
            require_keys(place, said, (kind, "name", *source.takes))
        # A domain is one value with lists in it, and of what is no grid there is one value.
        grids = [key for key, value in said.items() if isinstance(value, list) or _is_range(value)]
        for parameters in combinations(place, said):
            try:
                title, described, problem = source.make(parameters)
            except Error as error:
                raise InvalidInput(f"{place}: {error}") from None
            apart = ", ".join(f"{key}={parameters[key]}" for key in grids)
            apart = f" ({apart})" if apart and kind == "problem" else ""
            yield Entry(f"{name or title}{apart}", parameters, described, problem)


def _is_range(value: Any) -> bool:
    return isinstance(value, Mapping) and "type" not in value


def _named(thing: Any, what: str) -> str:
    """module:name of a class or a function of the user's."""
    name = f"{thing.__module__}:{thing.__qualname__}"
    if (
        thing.__module__ != "__main__"
        and getattr(sys.modules[thing.__module__], thing.__qualname__, None) is not thing
    ):
        raise _not_found(f"{name} is not where its name says", what)
    from_module(what, name)
    return name


def _described(value: Any, what: str) -> dict[str, Any]:
    try:
        return {"described": describe(value)}
    except NotSaveable as error:
        raise _not_found(str(error), what) from None


def _not_found(why: str, what: str) -> InvalidInput:
    return InvalidInput(
        f'{why}; a {what} of your own is named, as in "module:{what}", so that other processes '
        "find it"
    )


def _of_module(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    digest = module_digest(name.partition(":")[0])
    return {"module": name, "digest": digest, "parameters": parameters}


def _arguments(function: Callable[..., Any], skipped: int = 0) -> tuple[str, ...] | None:
    """The names of what a function takes after the first ones; None if it takes any."""
    takes = list(arguments_of(function).items())[skipped:]
    if any(one.kind is Parameter.VAR_KEYWORD for _, one in takes):
        return None
    return tuple(name for name, one in takes if one.kind in NAMED_PARAMETERS)


def _problem(thing: Any, folder: Path) -> _Source:
    """The source of a problem: a name, a class, a function or the problem itself."""
    if isinstance(thing, str):
        if is_file(thing):
            make = partial(from_table, folder / thing)
            return _Source(TABLE_KEYS, partial(_described_problem, None, make))
        if ":" not in thing:
            make = built_in(thing)
            return _Source(_arguments(make), partial(_described_problem, thing, make))
    elif (hasattr(thing, "start") and not isinstance(thing, type)) or not callable(thing):
        title = getattr(thing, "title", type(thing).__name__)
        return _Source((), partial(_described_problem, title, lambda: thing))
    elif thing.__module__.startswith("coldq."):
        return _Source(_arguments(thing), partial(_described_problem, thing.__name__, thing))
    name = thing if isinstance(thing, str) else _named(thing, "problem")
    make = problem_factory(name)

    def of_module(parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Any]:
        return name, _of_module(name, parameters), _checked_problem(make(**built(parameters)))

    return _Source(_arguments(make), of_module)


def _described_problem(
    title: str | None, make: Callable[..., Any], parameters: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], Any]:
    """A problem that can be described."""
    problem = _checked_problem(make(**built(parameters)))
    return title or problem.title, _described(problem, "problem"), problem


def _checked_problem(problem: Any) -> Any:
    require_problem(problem)
    if getattr(problem, "agents", None) is not None:
        raise InvalidInput(f"a sweep's problem must have no agents, but has {problem.agents}")
    return problem


def _learner(thing: Any) -> _Source:
    """The source of a learner: a name, a class, a function of the problem, or the learner."""
    if not isinstance(thing, str | type) and (hasattr(thing, "update") or not callable(thing)):
        require_learner(thing)
        title, said = type(thing).__name__, _described(thing, "learner")
        return _Source((), lambda parameters: (title, said, None))
    if isinstance(thing, str):
        name = thing
    else:  # whatever its name: one of a user's may bear the catalogue's
        name = thing.__name__ if thing in ALGORITHMS else _named(thing, "learner")
    if ":" in name:
        takes = _arguments(own_learner(name), skipped=1)  # the problem
        title = name.partition(":")[2]
        return _Source(takes, lambda given: (title, _of_module(name, given), None))
    known = {kind.__name__.lower(): kind for kind in ALGORITHMS}
    if name.lower() not in known:
        names = [kind.__name__ for kind in ALGORITHMS]
        raise InvalidInput(
            f"there is no learner {name!r}{nearest(name, names)}; there are {', '.join(names)}, "
            "and module:learner"
        )
    kind = known[name.lower()]
    taken = sorted({*keywords_of(kind, *kind._constructors), *NAMES})
    title = kind.__name__
    return _Source(taken, lambda given: (title, {"learner": title, "parameters": given}, None))
