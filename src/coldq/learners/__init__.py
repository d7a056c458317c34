"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from coldq.learners.card import citation
from coldq.learners.clasp import CLASP
from coldq.learners.coldq import COLDQ
from coldq.learners.decentralised import Decentralised
from coldq.learners.doubling import COLDQDoubling
from coldq.learners.experts import COLDQExpert, RECOOExpert, Yi2021Expert
from coldq.learners.nested_projections import NestedProjections
from coldq.learners.ogd import OGD
from coldq.learners.polyak import PolyakFeasibility
from coldq.learners.recoo import RECOO
from coldq.learners.sinha_vaze import SinhaVaze
from coldq.learners.switch import Switch
from coldq.learners.yi2021 import Yi2021
from coldq.learners.yi2023 import Yi2023

# Every learner of the library, in the order in which `coldq list` prints them. Decentralised is
# not one of them: it puts another learner on a network.
CATALOGUE = (
    COLDQ,
    COLDQDoubling,
    COLDQExpert,
    RECOO,
    RECOOExpert,
    Yi2021,
    Yi2021Expert,
    Yi2023,
    SinhaVaze,
    NestedProjections,
    Switch,
    PolyakFeasibility,
    CLASP,
    OGD,
)

__all__ = [
    "CATALOGUE",
    "CLASP",
    "COLDQ",
    "OGD",
    "RECOO",
    "COLDQDoubling",
    "COLDQExpert",
    "Decentralised",
    "NestedProjections",
    "PolyakFeasibility",
    "RECOOExpert",
    "SinhaVaze",
    "Switch",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "citation",
]
