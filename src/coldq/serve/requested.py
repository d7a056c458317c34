"""What is built from a request: of the kinds that belong there, and no larger than it may be."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from coldq.base.describe import MAX_DEPTH, PLAIN_NUMBERS, build, constructors
from coldq.base.errors import InvalidInput
from coldq.base.protocols import require_learner

STATE = 2_000_000  # numbers: sizes that are small by themselves are multiplied in it
# A few bytes that ask for any amount of memory.
SIZES = dict.fromkeys(("dim", "period", "delay", "shape")).keys()


class Whole(NamedTuple):
    """What a description is of, where its parts come from, and their sizes together at most."""

    name: str
    kinds: tuple[str, ...]
    largest: int


LEARNER = Whole(
    "learner", ("coldq.learners", "coldq.slot.domains", "coldq.slot.schedules"), 100_000
)
FEEDBACK = Whole("feedback", ("coldq.slot.losses", "coldq.slot.constraints"), 1_000_000)


def learner_of(description: Mapping[str, Any], n_constraints: int) -> Any:
    """A learner, from its description, whose state for so many constraints is not too large.

    >>> from coldq.serve.requested import learner_of
    >>> box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": 100_000}
    >>> learner_of({"type": "OGD", "domain": box, "eta": [0.1] * 100}, n_constraints=0)
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: the state of an agent may have at most 2000000 numbers, but 100 ...
    """
    learner = _requested(description, LEARNER)
    require_learner(learner)
    members = prod(getattr(learner, "_batch", tuple)())
    inside = getattr(learner, "learner", learner)  # what a SafetyMargin is around
    past = 1 + getattr(inside, "delay", 0)  # decisions that are remembered
    numbers = members * (learner.domain.dim * past + n_constraints)
    if numbers > STATE:
        raise InvalidInput(
            f"the state of an agent may have at most {STATE} numbers, but {members} x ({past} x "
            f"dim + n_constraints) are {numbers}"
        )
    return learner


def part_of_feedback(description: Mapping[str, Any] | None) -> Any:
    """A loss or a constraint, from its description.

    >>> from coldq.serve.requested import part_of_feedback
    >>> part_of_feedback({"type": "Linear", "c": [1.0, 2.0]})
    Linear(c=[1.0, 2.0])
    >>> part_of_feedback({"type": "Simplex", "dim": 100_000_000})
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: a Simplex is no part of a feedback
    """
    return None if description is None else _requested(description, FEEDBACK)


def _requested(description: Any, whole: Whole) -> Any:
    """Look through a description before anything of it is built."""
    known, total = constructors(), 0

    def look(part: Any, depth: int) -> None:
        nonlocal total
        if depth > MAX_DEPTH:
            raise InvalidInput(f"a description has at most {MAX_DEPTH} levels")
        if isinstance(part, list):
            if not PLAIN_NUMBERS.issuperset(map(type, part)):
                for each in part:
                    look(each, depth + 1)
        elif isinstance(part, dict) and "base64" not in part:
            name = part.get("type")
            if isinstance(name, str) and name in known:
                if not known[name].__module__.startswith(whole.kinds):
                    raise InvalidInput(f"a {name} is no part of a {whole.name}")
                for word in part.keys() & SIZES:
                    total += _size(word, part[word])
            for each in part.values():
                if isinstance(each, list | dict):
                    look(each, depth + 1)

    look(description, 0)
    if total > whole.largest:
        raise InvalidInput(
            f"{', '.join(SIZES)} in a {whole.name} may be at most {whole.largest} together, but "
            f"are {total:.6g}"
        )
    return build(description)


def _size(word: str, value: Any) -> float:
    """What an argument asks for, as a number."""
    values = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping) or not all(isinstance(n, int | float | None) for n in values):
        raise InvalidInput(f"{word} must be made of whole numbers, but is {value!r:.200}")
    return sum(min(abs(n), 1e12) for n in values if n is not None)
