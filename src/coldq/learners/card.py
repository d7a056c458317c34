"""What a learner declares about itself: needs, assumptions, claims, certainty, citation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from coldq.base.errors import InvalidInput

# What a learner may ask of a feedback; it touches nothing that it does not declare.
GRADIENT = "gradient at x"
GRADIENT_ELSEWHERE = "gradient elsewhere"
WHOLE_LOSS = "whole loss"
CONSTRAINT = "constraint at x"
WHOLE_CONSTRAINT = "whole constraint"
VALUES = "values at its points"  # no slopes; the points are in its state
NEEDS = (GRADIENT, GRADIENT_ELSEWHERE, WHOLE_LOSS, CONSTRAINT, WHOLE_CONSTRAINT, VALUES)
FIRST_ORDER = frozenset({GRADIENT, CONSTRAINT})  # what a gradient step needs
WHOLE_STEP = FIRST_ORDER | {WHOLE_CONSTRAINT}  # what a step on the constraint itself needs

# Learners that no paper has: this project's own, by their entry in references.bib.
OWN = {"SelfTuning": "coldq2026selftuning", "SafetyMargin": "coldq2026selftuning"}

# Which violation a claim bounds.
MEASURES = ("hard", "soft")

# How sure the reading of a rule is.
CERTAINTY = {
    "exact": "the paper's own text was read",
    "likely": "from released code or another paper's description",
    "uncertain": "in part from knowledge of the field, not checked against a text",
}


# Whether a learner's state keeps its size.
MEMORY = {
    "constant": "the state keeps its size",
    "grows": "the state grows with the number of slots, and so does the cost of one",
}


# Whether ``update(..., played=x)`` takes a feedback about another decision than the state's.
PLAYED = {
    "taken": "gradient and values are taken at the decision that was played",
    "remembered": "refused: the learner remembers what it played itself",
    "unknown": "refused: its update does not take it",
}


@dataclass(frozen=True)
class Rate:
    """A growth rate ``O(T^(power + vx V_x + vg V_g) (log T)^log)``.

    >>> from coldq.learners.card import Rate
    >>> print(Rate(0.5, vx=0.5), Rate(0.5, log=1), Rate(0), Rate(vg=1), Rate(1, vx=-1))
    O(T^(1/2+Vx/2)) O(T^(1/2) log T) O(1) O(T^Vg) O(T^(1-Vx))
    """

    power: float = 0.0
    vx: float = 0.0
    vg: float = 0.0
    log: float = 0.0

    def exponent(self, vx: float = 0.0, vg: float = 0.0) -> float:
        """The power of T for given V_x and V_g, logarithms left out."""
        return self.power + self.vx * vx + self.vg * vg

    @property
    def power_of_T(self) -> str:
        """The exponent in words, such as 1/2+Vx/2."""
        terms = "".join(
            _term(c, name) for c, name in ((self.power, ""), (self.vx, "Vx"), (self.vg, "Vg")) if c
        )
        return terms.removeprefix("+") or "0"

    def __str__(self) -> str:
        power = self.power_of_T
        if power == "0":
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
    """A signed term of a sum, such as +Vx/2 or -1/3."""
    c = _fraction(coefficient)
    size = f"{abs(c.numerator)}" if abs(c.numerator) != 1 or not name else ""
    over = f"/{c.denominator}" if c.denominator != 1 else ""
    return f"{'-' if c < 0 else '+'}{size}{name}{over}"


@dataclass(frozen=True, init=False)
class Largest:
    """The fastest growing of several powers of T; which it is depends on V_x and V_g.

    >>> from coldq.learners.card import Largest, Rate
    >>> rate = Largest(Rate(0.5, vx=0.5), Rate(vg=1))
    >>> print(rate), rate.exponent(vx=0.0, vg=0.8)
    O(T^max(1/2+Vx/2, Vg))
    (None, 0.8)
    """

    rates: tuple[Rate, ...]
    log: ClassVar[float] = 0.0

    def __init__(self, *rates: Rate) -> None:
        if any(rate.log for rate in rates):
            raise InvalidInput(f"Largest takes powers of T without logarithms, but got {rates}")
        object.__setattr__(self, "rates", rates)

    def exponent(self, vx: float = 0.0, vg: float = 0.0) -> float:
        """The power of T for given V_x and V_g."""
        return max(rate.exponent(vx, vg) for rate in self.rates)

    def __str__(self) -> str:
        return f"O(T^max({', '.join(rate.power_of_T for rate in self.rates)}))"


@dataclass(frozen=True)
class Claim:
    """What a paper proves for one setting; None where it proves nothing.

    `losses` is "convex" or "strongly convex", `constraints` "fixed" or "time-varying". `measure`
    says which violation is bounded: "hard", or "soft", where slack in one slot pays for violation
    in another.
    """

    losses: str
    constraints: str
    violation: Rate | Largest | None
    static_regret: Rate | Largest | None = None
    dynamic_regret: Rate | Largest | None = None
    measure: str = "hard"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InvalidInput(f"measure must be one of {MEASURES}, but is {self.measure!r}")


@dataclass(frozen=True)
class Card:
    """What a learner declares about itself.

    `unchecked` names what of an uncertain rule was not read in its paper; such learners are in
    :mod:`coldq.learners.contrib`.

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
    played: str = "taken"
    unchecked: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(NEEDS)
        if unknown:
            raise InvalidInput(f"needs may name {NEEDS}, but has {sorted(unknown)}")
        for name, known in (("certainty", CERTAINTY), ("memory", MEMORY), ("played", PLAYED)):
            word = getattr(self, name)
            if word not in known:
                raise InvalidInput(f"{name} must be one of {list(known)}, not {word}")


@cache
def references() -> dict[str, str]:
    """The entries of references.bib, by key."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    entries = [f"@{entry.rstrip()}" for entry in ("\n" + text).split("\n@")[1:]]
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}


def reference(*keys: str) -> str:
    """The BibTeX entries of papers, from references.bib beside this file.

    >>> from coldq.learners.card import reference
    >>> print(reference("wang2025coldq").splitlines()[0])
    @inproceedings{wang2025coldq,
    """
    return "\n".join(references()[key] for key in keys)


def citation(learner: Any) -> str:
    """The BibTeX entries of a learner, or of its class: of its paper, or of this project.

    What is this project's own comes first, then the papers that it stands on.

    >>> import coldq
    >>> print(coldq.citation(coldq.COLDQ).splitlines()[0])
    @inproceedings{wang2025coldq,
    >>> [line for line in coldq.citation(coldq.SelfTuning).splitlines() if line.startswith("@")][:2]
    ['@software{coldq2026selftuning,', '@inproceedings{wang2025coldq,']
    """
    card = getattr(learner, "card", None)
    if not isinstance(card, Card):
        raise InvalidInput(f"a citation needs a learner with a card, but {learner!r} has none")
    kind = learner if isinstance(learner, type) else type(learner)
    own = OWN.get(kind.__name__)
    return card.bibtex if own is None else f"{reference(own)}\n{card.bibtex}"
