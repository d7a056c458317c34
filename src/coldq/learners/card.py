"""What a learner declares about itself: needs, assumptions, claims, certainty, citation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from coldq.errors import InvalidInput

# What a learner may ask of a feedback; it touches nothing that it does not declare.
GRADIENT = "gradient at x"
GRADIENT_ELSEWHERE = "gradient elsewhere"
CONSTRAINT = "constraint at x"
WHOLE_CONSTRAINT = "whole constraint"
NEEDS = (GRADIENT, GRADIENT_ELSEWHERE, CONSTRAINT, WHOLE_CONSTRAINT)

# How sure the reading of a rule is.
CERTAINTY = {
    "exact": "the paper's own text was read",
    "likely": "from the authors' later code or another paper's description",
    "uncertain": "in part from knowledge of the field, not checked against a text",
}


# Whether a learner's state keeps its size.
MEMORY = {
    "constant": "the state keeps its size",
    "grows": "the state grows with the number of slots, and so does the cost of one",
}


@dataclass(frozen=True)
class Rate:
    """A growth rate ``O(T^(power + vx V_x + vg V_g) (log T)^log)``.

    >>> from coldq.learners.card import Rate
    >>> print(Rate(0.5, vx=0.5)), print(Rate(0.5, log=1)), print(Rate(0)), print(Rate(vg=1))
    O(T^(1/2+Vx/2))
    O(T^(1/2) log T)
    O(1)
    O(T^Vg)
    (None, None, None, None)
    """

    power: float = 0.0
    vx: float = 0.0
    vg: float = 0.0
    log: float = 0.0

    def exponent(self, vx: float = 0.0, vg: float = 0.0) -> float:
        """The power of T for given V_x and V_g, logarithms left out."""
        return self.power + self.vx * vx + self.vg * vg

    def __str__(self) -> str:
        parts = [
            str(_fraction(self.power)) if self.power else "",
            *(_term(c, name) for c, name in ((self.vx, "Vx"), (self.vg, "Vg")) if c),
        ]
        power = "+".join(part for part in parts if part)
        if not power:
            grows = ""
        elif power == "1":
            grows = "T"
        else:
            grows = f"T^{power}" if power.isalpha() else f"T^({power})"
        logs = (
            "" if not self.log else "log T" if self.log == 1 else f"(log T)^{_fraction(self.log)}"
        )
        return f"O({' '.join(part for part in (grows, logs) if part) or '1'})"


def _fraction(value: float) -> Fraction:
    return Fraction(value).limit_denominator(100)


def _term(coefficient: float, name: str) -> str:
    c = _fraction(coefficient)
    return f"{c.numerator if c.numerator != 1 else ''}{name}" + (
        f"/{c.denominator}" if c.denominator != 1 else ""
    )


@dataclass(frozen=True)
class Claim:
    """What a paper proves for one setting; None where it proves nothing.

    `losses` is "convex" or "strongly convex", `constraints` "fixed" or "time-varying".
    """

    losses: str
    constraints: str
    violation: Rate | None
    static_regret: Rate | None = None
    dynamic_regret: Rate | None = None


@dataclass(frozen=True)
class Card:
    """What a learner declares about itself.

    >>> import coldq
    >>> coldq.COLDQ.card.certainty, sorted(coldq.COLDQ.card.needs)
    ('exact', ['constraint at x', 'gradient at x', 'whole constraint'])
    """

    needs: frozenset[str]
    assumes: tuple[str, ...]
    claims: tuple[Claim, ...]
    certainty: str
    bibtex: str
    memory: str = "constant"

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(NEEDS)
        if unknown:
            raise InvalidInput(f"needs may name {NEEDS}, but has {sorted(unknown)}")
        if self.certainty not in CERTAINTY:
            raise InvalidInput(f"certainty must be one of {list(CERTAINTY)}, not {self.certainty}")
        if self.memory not in MEMORY:
            raise InvalidInput(f"memory must be one of {list(MEMORY)}, not {self.memory}")


def citation(learner: Any) -> str:
    """The BibTeX entry of a learner's paper, for a learner or its class.

    >>> import coldq
    >>> print(coldq.citation(coldq.COLDQ).splitlines()[0])
    @inproceedings{wang2025coldq,
    """
    card = getattr(learner, "card", None)
    if not isinstance(card, Card):
        raise InvalidInput(f"a citation needs a learner with a card, but {learner!r} has none")
    return card.bibtex
