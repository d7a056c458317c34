"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from coldq.learners.ader import Ader
from coldq.learners.cao_liu2019 import CaoLiu2019
from coldq.learners.cao_zhang_poor2021 import CaoZhangPoor2021
from coldq.learners.card import citation
from coldq.learners.clasp import CLASP
from coldq.learners.coldq import COLDQ
from coldq.learners.decentralised import Decentralised
from coldq.learners.doubling import COLDQDoubling
from coldq.learners.experts import COLDQExpert, RECOOExpert, Yi2021Expert
from coldq.learners.jenatton2016 import Jenatton2016
from coldq.learners.liu2022 import Liu2022
from coldq.learners.mahdavi2012 import Mahdavi2012
from coldq.learners.mosp import MOSP
from coldq.learners.nested_projections import NestedProjections
from coldq.learners.ogd import OGD
from coldq.learners.polyak import PolyakFeasibility
from coldq.learners.recoo import RECOO
from coldq.learners.sinha_vaze import SinhaVaze
from coldq.learners.switch import Switch
from coldq.learners.wang2023 import Wang2023
from coldq.learners.wei_yu_neely2020 import WeiYuNeely2020
from coldq.learners.yi2021 import Yi2021
from coldq.learners.yi2023 import Yi2023
from coldq.learners.yu_neely2020 import YuNeely2020
from coldq.learners.yu_neely_wei2017 import YuNeelyWei2017
from coldq.learners.yuan_lamperski2018 import YuanLamperski2018

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
    YuanLamperski2018,
    Mahdavi2012,
    Jenatton2016,
    YuNeely2020,
    YuNeelyWei2017,
    WeiYuNeely2020,
    MOSP,
    CaoLiu2019,
    CaoZhangPoor2021,
    Liu2022,
    Wang2023,
    Ader,
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
    "MOSP",
    "OGD",
    "RECOO",
    "Ader",
    "COLDQDoubling",
    "COLDQExpert",
    "CaoLiu2019",
    "CaoZhangPoor2021",
    "Decentralised",
    "Jenatton2016",
    "Liu2022",
    "Mahdavi2012",
    "NestedProjections",
    "PolyakFeasibility",
    "RECOOExpert",
    "SinhaVaze",
    "Switch",
    "Wang2023",
    "WeiYuNeely2020",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "YuNeely2020",
    "YuNeelyWei2017",
    "YuanLamperski2018",
    "citation",
]
