"""What a sweep is to run: a few keys, written in TOML or given as arguments, all checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from os import PathLike
from pathlib import Path
from typing import Any

from coldq._values import arguments_of, is_several, whole_number
from coldq.description import build, describe
from coldq.errors import Error, InvalidInput, NotSaveable
from coldq.experiments.named import built_in, is_file, own_learner, own_problem
from coldq.learners import CATALOGUE
from coldq.learners.constants import NAMES
from coldq.learners.learner import keywords_of
from coldq.problems import from_table
from coldq.problems.columns import nearest
from coldq.problems.layout import read_toml, require_keys, require_text
from coldq.protocols import require_learner, require_problem
from coldq.simulate import seed_tuple
from coldq.sweeps.grid import combinations, flat
from coldq.sweeps.identity import module_digest

KEYS = ("title", "seeds", "seeds_a_task", "problems", "learners")
SEEDS_KEYS = ("from", "to")
SEEDS = 20
TABLE_KEYS = ("horizon",)


@dataclass(frozen=True, eq=False)
class Played:
    """A problem of the sweep: its title, and what a worker makes it of."""

    title: str
    problem: Any
    described: Mapping[str, Any]

    @property
    def adaptive(self) -> bool:
        """Whether it answers to decisions, so that every learner meets other functions."""
        return bool(getattr(self.problem, "adaptive", False))


@dataclass(frozen=True, eq=False)
class Player:
    """A learner of the sweep with one combination of its parameters."""

    label: str
    parameters: Mapping[str, Any]
    described: Mapping[str, Any]

    @property
    def flat(self) -> dict[str, Any]:
        """Its parameters, a plain value each."""
        return flat(self.parameters)


@dataclass(frozen=True, eq=False)
class Asked:
    """All that a sweep is asked to run."""

    title: str
    seeds: tuple[int, ...]
    seeds_a_task: int | None
    problems: tuple[Played, ...]
    learners: tuple[Player, ...]


def asked(config: str | PathLike[str] | Mapping[str, Any] | None, keys: Mapping[str, Any]) -> Asked:
    """What a TOML file, or its keys, and further keys ask for.

    >>> from coldq.sweeps.config import asked
    >>> found = asked(None, {"problems": ["linear"], "learners": [{"learner": "COLDQ",
    ...     "epsilon": [0.1, 0.5]}], "seeds": 3})
    >>> [one.parameters for one in found.learners], found.seeds
    ([{'epsilon': 0.1}, {'epsilon': 0.5}], (0, 1, 2))
    """
    where, folder, said = "the sweep", Path(), dict(keys)
    if isinstance(config, str | PathLike):
        where, folder = str(config), Path(config).parent
        said = read_toml(Path(config)) | said
    elif isinstance(config, Mapping):
        said = dict(config) | said
    elif config is not None:
        raise InvalidInput(
            f"a sweep is a TOML file's path, or its keys, but this is a {type(config).__name__}"
        )
    require_keys(where, said, KEYS)
    for key in ("problems", "learners"):
        if key not in said:
            raise InvalidInput(f"{where}: {key} is missing; it names what is run, see [[{key}]]")
    title = said.get("title", "" if where == "the sweep" else Path(where).stem)
    if not isinstance(title, str):
        raise InvalidInput(f"{where}: title must be some text, but is {title!r:.80}")
    per = said.get("seeds_a_task")
    problems = [
        one
        for k, given in enumerate(_several(where, "problems", said["problems"]), 1)
        for one in _problems(f"{where}, problems {k}", given, folder)
    ]
    learners = [
        one
        for k, given in enumerate(_several(where, "learners", said["learners"]), 1)
        for one in _learners(f"{where}, learners {k}", given)
    ]
    _require_different(where, "problems", [one.title for one in problems])
    _require_different(where, "learners", [(one.label, *one.flat.items()) for one in learners])
    _require_alike(where, learners)
    return Asked(
        title,
        _seeds(where, said.get("seeds", SEEDS)),
        None if per is None else whole_number(f"{where}: seeds_a_task", per, 1),
        tuple(problems),
        tuple(learners),
    )


def _several(where: str, key: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping | type) or not is_several(given):
        given = [given]
    several = list(given)
    if not several:
        raise InvalidInput(f"{where}: {key} is empty, which leaves nothing to run")
    return several


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


def _require_alike(where: str, learners: list[Player]) -> None:
    """That players of one label differ in the values of parameters, not in which they have."""
    names: dict[str, set[str]] = {}
    for one in learners:
        if names.setdefault(one.label, set(one.flat)) != set(one.flat):
            raise InvalidInput(
                f"{where}: {one.label} stands there twice with different parameters; name = "
                f"'another name' tells one from the other"
            )


# Problems


def _problems(where: str, given: Any, folder: Path) -> Iterator[Played]:
    """Every problem that one entry asks for."""
    if not isinstance(given, str | Mapping):
        yield _made_problem(where, given, getattr(given, "title", type(given).__name__))
        return
    said = {"problem": given} if isinstance(given, str) else dict(given)
    name, title = said.pop("problem", None), said.pop("name", None)
    require_text(where, "name", title, optional=True)
    if not isinstance(name, str) and name is not None:  # an object, with a name
        require_keys(where, said, ("problem", "name"))
        yield _made_problem(where, name, title or type(name).__name__)
        return
    name = require_text(where, "problem", name)
    make, known = _problem_maker(where, name, folder)
    require_keys(where, said, known)
    # A domain is one value with lists in it, and of what is no grid there is one value.
    grids = [key for key, value in said.items() if isinstance(value, list) or _is_range(value)]
    for chosen in combinations(where, said):
        told = {key: build(v) if isinstance(v, Mapping) else v for key, v in chosen.items()}
        try:
            own, problem = make(**told)
        except Error as error:
            raise InvalidInput(f"{where}: {error}") from None
        apart = ", ".join(f"{key}={chosen[key]}" for key in grids)
        yield _made_problem(where, problem, f"{title or own}{f' ({apart})' if apart else ''}", name)


def _is_range(value: Any) -> bool:
    return isinstance(value, Mapping) and "type" not in value


def _problem_maker(
    where: str, name: str, folder: Path
) -> tuple[Callable[..., tuple[str, Any]], tuple[str, ...]]:
    """What makes a problem of its arguments, and their names."""
    if is_file(name):

        def from_file(**told: Any) -> tuple[str, Any]:
            problem = from_table(folder / name, **told)
            return problem.title, problem

        return from_file, ("problem", "name", *TABLE_KEYS)
    if ":" in name:
        return lambda: own_problem(name), ("problem", "name")
    try:
        kind = built_in(name)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
    return lambda **told: (name, kind(**told)), ("problem", "name", *_arguments(kind))


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return tuple(name for name, one in arguments_of(function).items() if one.kind in kinds)


def _made_problem(where: str, problem: Any, title: str, name: str = "") -> Played:
    require_problem(problem)
    if getattr(problem, "agents", None) is not None:
        raise InvalidInput(f"{where}: a sweep plays problems without agents")
    if ":" in name and not is_file(name):
        return Played(title, problem, _of_module(name))
    try:
        return Played(title, problem, {"described": describe(problem)})
    except NotSaveable as error:
        raise _not_found(where, str(error), "problem") from None


def _not_found(where: str, why: str, what: str) -> InvalidInput:
    return InvalidInput(
        f'{where}: {why}; a {what} of your own is named, as in "module:{what}", so that other '
        "processes find it"
    )


def _of_module(name: str) -> dict[str, Any]:
    return {"module": name, "digest": module_digest(name.partition(":")[0])}


# Learners


def _learners(where: str, given: Any) -> Iterator[Player]:
    """Every learner that one entry asks for."""
    said = dict(given) if isinstance(given, Mapping) else {"learner": given}
    name, label = said.pop("learner", None), said.pop("name", None)
    require_text(where, "name", label, optional=True)
    if isinstance(name, type):  # whatever its name: one of a user's may bear the catalogue's
        if name not in CATALOGUE:
            raise _not_found(where, f"{name.__name__} is no class of the catalogue's", "learner")
        name = name.__name__
    if name is not None and not isinstance(name, str):  # a learner
        require_keys(where, said, ("learner", "name"))
        require_learner(name)
        try:
            yield Player(label or type(name).__name__, {}, {"described": describe(name)})
        except NotSaveable as error:
            raise _not_found(where, str(error), "learner") from None
        return
    name = require_text(where, "learner", name)
    base, known = _learner_named(where, name)
    if known is not None:
        require_keys(where, said, ("learner", "name", *known))
    for parameters in combinations(where, said):
        yield Player(
            label or base.get("learner", name.partition(":")[2]),
            parameters,
            base | {"parameters": parameters},
        )


def _learner_named(where: str, name: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """A learner as workers are told it, and the parameters that it takes, if they are known."""
    if ":" in name:
        try:
            make = own_learner(name)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
        takes = arguments_of(make)
        whatever = any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())
        return _of_module(name), None if whatever else tuple(takes)[1:]  # the first is the problem
    for kind in CATALOGUE:
        if kind.__name__.lower() == name.lower():
            taken = {*keywords_of(kind, *kind._makers), *NAMES}
            return {"learner": kind.__name__}, tuple(sorted(taken))
    known_names = [kind.__name__ for kind in CATALOGUE]
    raise InvalidInput(
        f"{where}: there is no learner {name!r}{nearest(name, known_names)}; there are "
        f"{', '.join(known_names)}, and module:learner"
    )
