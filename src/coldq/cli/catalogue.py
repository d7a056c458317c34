"""The library's learners as a table: what each claims, needs and assumes, and how sure we are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from coldq.cli.tables import console, table
from coldq.learners import ALGORITHMS, CATALOGUE, CONTRIB
from coldq.learners.card import CERTAINTY, Card, Claim

if TYPE_CHECKING:
    from rich.table import Table

CAPTION = "violation is hard unless marked soft; - where nothing is claimed"
COLUMNS = (
    *("learner", "setting", "static_regret", "dynamic_regret", "violation"),
    *("needs", "assumes", "certainty", "compared"),
)
COMPARED = {  # learners by whether a comparison has them that names none
    "by default": CATALOGUE,
    "by name, their rules not read in their papers": CONTRIB,
}


def rows() -> list[tuple[str, ...]]:
    """One row a claim: learner, setting, static regret, dynamic regret, violation, the rest.

    >>> from coldq.cli.catalogue import rows
    >>> rows()[0][:5]
    ('SelfTuning', 'convex, fixed', 'O(T^(1/2))', 'O(T^(1/2+Vx/2))', 'O(1)')
    """
    return [
        (
            learner.__name__,
            _setting(claim),
            *_bounds(claim),
            *_terms(learner.card),
            when,
        )
        for when, learners in COMPARED.items()
        for learner in learners
        for claim in learner.card.claims
    ]


def _bounds(claim: Claim) -> tuple[str, str, str]:
    rates = (claim.static_regret, claim.dynamic_regret, claim.violation)
    static, dynamic, violation = ("-" if rate is None else str(rate) for rate in rates)
    return static, dynamic, f"{violation} soft" if claim.measure == "soft" else violation


def _terms(card: Card) -> tuple[str, str, str]:
    """What it needs, what it assumes and what it costs beyond time, and how sure our reading is."""
    more = {"memory grows": card.memory == "grows", "takes no played=": card.played != "taken"}
    words = [*card.assumes, *(words for words, true in more.items() if true)]
    certainty = f"{card.certainty}: {card.unchecked}" if card.unchecked else card.certainty
    return ", ".join(sorted(card.needs)), "; ".join(words) or "-", certainty


def print_catalogue() -> None:
    """Print the tables, each learner's needs and assumptions once."""
    shown = console()
    for when, learners in COMPARED.items():
        shown.print(_claims(f"What is proved, of learners compared {when}", learners))
        shown.print(CAPTION)
        shown.print("")
    terms = table("What it takes", ("learner", "needs", "assumes", "our reading"))
    for learner in ALGORITHMS:
        terms.add_row(learner.__name__, *_terms(learner.card))
    shown.print(terms)
    shown.print("")
    for word, meaning in CERTAINTY.items():
        shown.print(f"{word}: {meaning}")


def _claims(title: str, learners: tuple[Any, ...]) -> Table:
    """A table of what some learners' papers prove."""
    from rich.text import Text

    claims = table(
        title,
        ("learner: losses, constraints", "static\nregret", "dynamic\nregret", "violation"),
    )
    claims.columns[0].no_wrap = True  # the narrowest terminal has room for it
    claims.padding = 0, 0, 0, 0  # in each column for its longest word, which is not to be cut
    for column in claims.columns[2:]:
        column.min_width = len("O(T^max(1/2+Vx/2,")
    for learner in learners:
        if learner.card.claims:
            claims.add_row(Text(learner.__name__, style="bold"))
        for claim in learner.card.claims:
            claims.add_row(_setting(claim), *_bounds(claim))
    return claims


def _setting(claim: Claim) -> str:
    return f"{claim.losses}, {claim.constraints}"


def print_json() -> None:
    """Print the same for programs: a list with one object a claim."""
    print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows()], indent=1))
