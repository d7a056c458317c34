"""Colours and markers that every picture takes its own from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A colour and a marker, by its name in Matplotlib and in Plotly: either alone identifies."""

    colour: str
    marker: str
    symbol: str


# Colours of Okabe and Ito, which stay apart for the colour-blind; their yellow is too pale on
# white. Dashes are left to the published curves.
BLUE = Look("#0072B2", "o", "circle")
VERMILION = Look("#D55E00", "s", "square")
GREEN = Look("#009E73", "^", "triangle-up")
SKY = Look("#56B4E9", "D", "diamond")
PURPLE = Look("#CC79A7", "v", "triangle-down")
ORANGE = Look("#E69F00", "P", "cross")
BLACK = Look("#000000", "X", "x")
PALETTE = (BLUE, VERMILION, GREEN, SKY, PURPLE, ORANGE, BLACK)
