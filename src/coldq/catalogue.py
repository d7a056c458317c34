"""The library's learners as a table: what each claims, needs and assumes, and how sure we are."""

from __future__ import annotations

from coldq.learners import CATALOGUE
from coldq.learners.card import CERTAINTY, Card, Claim

CAPTION = "violation is hard unless marked soft; - where nothing is claimed"


def rows() -> list[tuple[str, ...]]:
    """One row a claim: learner, setting, static regret, dynamic regret, violation, the rest.

    >>> from coldq.catalogue import rows
    >>> rows()[0][:5]
    ('COLDQ', 'convex, fixed', 'O(T^(1/2))', 'O(T^(1/2+Vx/2))', 'O(1)')
    """
    found = []
    for learner in CATALOGUE:
        card = learner.card
        for claim in card.claims:
            found.append(
                (
                    learner.__name__,
                    f"{claim.losses}, {claim.constraints}",
                    *_bounds(claim),
                    ", ".join(sorted(card.needs)),
                    _terms(card),
                    card.certainty,
                )
            )
    return found


def _bounds(claim: Claim) -> tuple[str, str, str]:
    rates = (claim.static_regret, claim.dynamic_regret, claim.violation)
    static, dynamic, violation = ("-" if rate is None else str(rate) for rate in rates)
    return static, dynamic, f"{violation} soft" if claim.measure == "soft" else violation


def _terms(card: Card) -> str:
    """What it assumes, and what it costs beyond time."""
    return "; ".join([*card.assumes, *(["memory grows"] if card.memory == "grows" else [])]) or "-"


def print_catalogue() -> None:
    """Print the table, each learner's needs and assumptions once."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    claims = Table(
        title="What is proved",
        caption=CAPTION,
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    claims.add_column("learner", no_wrap=True)
    claims.add_column("losses, constraints")
    for heading in ("static\nregret", "dynamic\nregret"):
        claims.add_column(heading, no_wrap=True)
    claims.add_column("violation")
    previous = ""
    for name, *columns in rows():
        claims.add_row(name if name != previous else "", *columns[:4])
        previous = name
    terms = Table(title="What it takes", box=box.SIMPLE, padding=(0, 1, 0, 0))
    terms.add_column("learner", no_wrap=True)
    for heading in ("needs", "assumes", "our reading"):
        terms.add_column(heading)
    for learner in CATALOGUE:
        card = learner.card
        terms.add_row(
            learner.__name__,
            ", ".join(sorted(card.needs)),
            _terms(card),
            card.certainty,
        )
    console = Console()
    console.print(claims)
    console.print(terms)
    for word, meaning in CERTAINTY.items():
        console.print(f"{word}: {meaning}")
