"""The library's learners as a table: what each claims, needs and assumes, and how sure we are."""

from __future__ import annotations

import json

from coldq.cli.tables import console, table
from coldq.learners import CATALOGUE
from coldq.learners.card import CERTAINTY, Card, Claim

CAPTION = "violation is hard unless marked soft; - where nothing is claimed"
COLUMNS = (
    *("learner", "setting", "static_regret", "dynamic_regret", "violation"),
    *("needs", "assumes", "certainty"),
)


def rows() -> list[tuple[str, ...]]:
    """One row a claim: learner, setting, static regret, dynamic regret, violation, the rest.

    >>> from coldq.cli.catalogue import rows
    >>> rows()[0][:5]
    ('SelfTuning', 'convex, fixed', 'O(T^(1/2))', 'O(T^(1/2+Vx/2))', 'O(1)')
    """
    return [
        (
            learner.__name__,
            f"{claim.losses}, {claim.constraints}",
            *_bounds(claim),
            *_terms(learner.card),
        )
        for learner in CATALOGUE
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
    return ", ".join(sorted(card.needs)), "; ".join(words) or "-", card.certainty


def print_catalogue() -> None:
    """Print the table, each learner's needs and assumptions once."""
    from rich.text import Text

    claims = table(
        "What is proved",
        ("learner: losses, constraints", "static\nregret", "dynamic\nregret", "violation"),
    )
    claims.columns[0].no_wrap = True  # the narrowest terminal has room for it
    claims.padding = 0, 0, 0, 0  # in each column for its longest word, which is not to be cut
    for column in claims.columns[2:]:
        column.min_width = len("O(T^max(1/2+Vx/2,")
    previous = ""
    for name, setting, *bounds in (row[:5] for row in rows()):
        if name != previous:
            claims.add_row(Text(name, style="bold"))
        claims.add_row(setting, *bounds)
        previous = name
    terms = table("What it takes", ("learner", "needs", "assumes", "our reading"))
    for learner in CATALOGUE:
        terms.add_row(learner.__name__, *_terms(learner.card))
    shown = console()
    for part in (claims, CAPTION, "", terms, ""):
        shown.print(part)
    for word, meaning in CERTAINTY.items():
        shown.print(f"{word}: {meaning}")


def print_json() -> None:
    """Print the same for programs: a list with one object a claim."""
    print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows()], indent=1))
