"""Traces in files: arrays as NumPy keeps them, learner and problem as descriptions, no pickle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.describe import build, describe
from coldq.base.errors import Error, InvalidInput, KeptAsText, NotReadable, warn
from coldq.base.files import named_file, whole_file
from coldq.base.protocols import require_learner, require_problem

FORMAT = "coldq trace 1"
PREFIX = "state."  # of the names of the state's arrays
MAX_REPR_CHARACTERS = 10_000


@dataclass(frozen=True, repr=False)
class Text:
    """The name of a class, its repr when it was saved, and why there is no more.

    >>> from coldq.simulation.trace.saved import Text
    >>> Text("Mine", "Mine(rate=0.1)", "it is not one of coldq's own")
    <Mine(rate=0.1), as text>
    """

    name: str
    words: str
    reason: str

    def __repr__(self) -> str:
        return f"<{self.words}, as text>"


def kind_name(part: Any) -> str:
    """The name of the class of a learner or problem, also where there is its text alone."""
    return part.name if isinstance(part, Text) else type(part).__name__


def write(
    path: str | PathLike[str],
    learner: Any,
    problem: Any,
    seeds: tuple[int, ...],
    delay: int,
    arrays: Mapping[str, np.ndarray | None],
    state: Any,
) -> None:
    """Write a trace's parts to a file."""
    target = named_file(path)
    about = {
        "format": FORMAT,
        "delay": delay,
        "seeds": list(seeds),
        "learner": _described("learner", learner),
        "problem": _described("problem", problem),
    }
    text = json.dumps(about, allow_nan=False).encode()
    content = {"about": np.frombuffer(text, np.uint8)}
    content |= {name: array for name, array in arrays.items() if array is not None}
    own = state.to_arrays() if hasattr(state, "to_arrays") else state
    if isinstance(own, Mapping):
        content |= {f"{PREFIX}{name}": array for name, array in own.items()}
    with whole_file(target) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **content)  # type: ignore[arg-type]


def _described(role: str, part: Any) -> dict[str, Any]:
    """A learner or problem as a file has it: name, repr, and a description if there is one."""
    if isinstance(part, Text):
        return {"name": part.name, "words": part.words, "reason": part.reason}
    about: dict[str, Any] = {"name": kind_name(part), "words": repr(part)[:MAX_REPR_CHARACTERS]}
    try:
        about["description"] = describe(part)
    except Error as error:
        about["reason"] = str(error)
        warn(
            f"the {role} is kept as text only, because {error}; Trace.load(path, {role}=...) "
            "gives it back to the trace",
            KeptAsText,
        )
    return about


def read(
    path: str | PathLike[str], learner: Any, problem: Any, optional: Iterable[str]
) -> dict[str, Any]:
    """Arguments of a trace's constructor, from its file."""
    source = named_file(path)
    content = _content(source)
    about, loss, constraint = _checked(source, content)
    arrays = {name: content.get(name) for name in optional}
    seeds, slots, rows = constraint.shape
    for name, array in arrays.items():
        if array is not None and array.shape[:2] != (seeds, slots):
            raise _damaged(source, f"its {name} is of shape {array.shape}")
    learner = _known("learner", about["learner"], learner, source)
    problem = _known("problem", about["problem"], problem, source)
    if not isinstance(problem, Text) and (problem.horizon, problem.n_constraints) != (slots, rows):
        raise InvalidInput(
            f"the trace in {source} has {slots} slots and {rows} constraints, but the problem "
            f"{problem.horizon} and {problem.n_constraints}"
        )
    own = {n.removeprefix(PREFIX): a for n, a in content.items() if n.startswith(PREFIX)}
    restore = getattr(learner, "from_arrays", dict)
    return {
        "learner": learner,
        "problem": problem,
        "seeds": tuple(about["seeds"]),
        "delay": about["delay"],
        "loss": loss,
        "constraint": constraint,
        "state": restore(own) if own else None,
        **arrays,
    }


def _content(source: Path) -> dict[str, np.ndarray]:
    try:
        # NumPy does not close what it cannot read: the handle is ours.
        with source.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (FileNotFoundError, IsADirectoryError):
        raise NotReadable(f"there is no file {source}") from None
    except PermissionError as error:
        raise NotReadable(f"{source} cannot be read ({error.strerror})") from None
    except Exception as error:  # whatever damage makes zipfile and NumPy raise
        raise _damaged(source, f"it cannot be read ({error})") from error


def _checked(
    source: Path, content: dict[str, np.ndarray]
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Header, losses and constraints of a file; raise unless it is a trace's."""
    try:
        about = json.loads(content["about"].tobytes())
        loss, constraint = content["loss"], content["constraint"]
        form = about["format"]
        whole = {
            "seeds": all(type(seed) is int and seed >= 0 for seed in about["seeds"]),
            "delay": type(about["delay"]) is int and about["delay"] >= 0,
            "loss": loss.shape == (len(about["seeds"]), loss.shape[-1]),
            "constraint": constraint.shape[:-1] == loss.shape,
            "numbers": loss.dtype == constraint.dtype == np.float64,
            "learner": {"name", "words"} <= set(about["learner"]),
            "problem": {"name", "words"} <= set(about["problem"]),
        }
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _damaged(source, f"it lacks what a trace has ({error!r:.80})") from None
    if form != FORMAT:
        raise NotReadable(f"{source} is {form!r:.80}, but this version reads {FORMAT!r}")
    for name, fine in whole.items():
        if not fine:
            raise _damaged(source, f"its {name} do not fit a trace")
    return about, loss, constraint


def _known(role: str, about: Mapping[str, Any], given: Any, source: Path) -> Any:
    """The learner or problem: the one that is given, or built, or else its text."""
    built, reason = None, about.get("reason")
    if reason is None:
        try:
            built = build(about.get("description"))  # type: ignore[arg-type]
        except Error as error:
            reason = f"this version cannot build it ({error})"
    if given is not None:
        (require_learner if role == "learner" else require_problem)(given)
        if type(given).__name__ != about["name"]:
            raise InvalidInput(
                f"the {role} of the trace in {source} was a {about['name']}, but the one given is "
                f"a {type(given).__name__}"
            )
        if reason is None and given != built:
            raise InvalidInput(
                f"the {role} of the trace in {source} was {built!r:.300}, but the one given is "
                f"another: {given!r:.300}"
            )
        return given
    if reason is None:
        return built
    warn(
        f"of the {role} of the trace in {source} there is the text alone, because {reason}; "
        f"Trace.load(path, {role}=...) gives it back",
        KeptAsText,
    )
    return Text(str(about["name"]), str(about["words"]), str(reason))


def _damaged(source: Path, words: str) -> NotReadable:
    return NotReadable(f"{source} is damaged, or no trace of coldq's: {words}")
