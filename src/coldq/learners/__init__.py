"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from coldq.learners.card import citation
from coldq.learners.coldq import COLDQ
from coldq.learners.experts import COLDQExpert, RECOOExpert, Yi2021Expert
from coldq.learners.ogd import OGD
from coldq.learners.recoo import RECOO
from coldq.learners.sinha_vaze import SinhaVaze
from coldq.learners.yi2021 import Yi2021
from coldq.learners.yi2023 import Yi2023

# Every learner of the library, in the order in which `coldq list` prints them.
CATALOGUE = (
    COLDQ,
    COLDQExpert,
    RECOO,
    RECOOExpert,
    Yi2021,
    Yi2021Expert,
    Yi2023,
    SinhaVaze,
    OGD,
)

__all__ = [
    "CATALOGUE",
    "COLDQ",
    "OGD",
    "RECOO",
    "COLDQExpert",
    "RECOOExpert",
    "SinhaVaze",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "citation",
]
