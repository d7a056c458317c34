"""Colours and markers that every picture takes its own from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A colour and one of Matplotlib's markers: either alone identifies."""

    colour: str
    marker: str


# Colours of Okabe and Ito, which stay apart for the colour-blind; their yellow is too pale on
# white. Dashes are left to the published curves.
BLUE = Look("#0072B2", "o")
VERMILION = Look("#D55E00", "s")
GREEN = Look("#009E73", "^")
SKY = Look("#56B4E9", "D")
PURPLE = Look("#CC79A7", "v")
ORANGE = Look("#E69F00", "P")
BLACK = Look("#000000", "X")
PALETTE = (BLUE, VERMILION, GREEN, SKY, PURPLE, ORANGE, BLACK)
