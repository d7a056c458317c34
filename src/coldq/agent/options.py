"""Options of an agent, as its file has them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from coldq.base.arrays import batch_shape, one_of, whole_number
from coldq.base.describe import build
from coldq.base.errors import NotSaveable

LATE_OPTIONS = ("played", "held")
ORDER_OPTIONS = ("round", "arrival")


class Options(NamedTuple):
    """Description, fingerprint and options of an agent."""

    description: dict[str, Any] | None
    fingerprint: str
    n_constraints: int
    batch: tuple[int, ...]
    keywords: dict[str, Any]
    start: str | None  # that of its first decision, see start_of; older files do not say
    version: str  # of coldq, which wrote the last snapshot, in words

    @classmethod
    def of(cls, found: dict[str, Any]) -> Options:
        """Options from the content of a file; what is odd or missing raises an error."""
        if found["fingerprint"]:
            json.loads(found["fingerprint"])["learner"]
        limit = found["limit"]
        keywords = {
            "late": one_of("late", found["late"], LATE_OPTIONS),
            "order": one_of("order", found["order"], ORDER_OPTIONS),
            "limit": None if limit is None else whole_number("limit", limit, 0),
            "remember": whole_number("remember", found["remember"], 1),
        }
        return cls(
            found["learner"],
            found["fingerprint"],
            whole_number("n_constraints", found["n_constraints"], 0),
            batch_shape(found["batch"]),
            keywords,
            found.get("start"),
            f"{found.get('version') or 'an older version'!s:.40}",
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """Keywords of an agent beside its learner and its file."""
        return {"n_constraints": self.n_constraints, "batch": self.batch, **self.keywords}

    def learner(self) -> Any:
        """The learner, from its description."""
        if self.description is None:
            raise NotSaveable(
                "the learner of this agent holds functions of your own, which no file can: pass "
                "the same learner again, coldq.Agent.open(path, learner)"
            )
        return build(self.description)
