"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from typing import TYPE_CHECKING, Any

from coldq._lazy import homes_of, importer

if TYPE_CHECKING:
    from coldq.learners.ader import Ader
    from coldq.learners.best_response import BestResponse
    from coldq.learners.cao_liu2019 import CaoLiu2019
    from coldq.learners.cao_zhang_poor2021 import CaoZhangPoor2021
    from coldq.learners.card import citation
    from coldq.learners.clasp import CLASP
    from coldq.learners.coldq import COLDQ
    from coldq.learners.coldq_expert import COLDQExpert
    from coldq.learners.decentralised import Decentralised
    from coldq.learners.doubling import COLDQDoubling
    from coldq.learners.jenatton2016 import Jenatton2016
    from coldq.learners.liu2022 import Liu2022
    from coldq.learners.mahdavi2012 import Mahdavi2012
    from coldq.learners.mosp import MOSP
    from coldq.learners.nested_projections import NestedProjections
    from coldq.learners.ogd import OGD
    from coldq.learners.polyak import PolyakFeasibility
    from coldq.learners.recoo import RECOO
    from coldq.learners.recoo_expert import RECOOExpert
    from coldq.learners.safety_margin import Forecasting, SafetyMargin
    from coldq.learners.self_tuning import SelfTuning
    from coldq.learners.sinha_vaze import SinhaVaze
    from coldq.learners.switch import Switch
    from coldq.learners.wang2023 import Wang2023
    from coldq.learners.wei_yu_neely2020 import WeiYuNeely2020
    from coldq.learners.yi2021 import Yi2021
    from coldq.learners.yi2021_expert import Yi2021Expert
    from coldq.learners.yi2023 import Yi2023
    from coldq.learners.yu_neely2020 import YuNeely2020
    from coldq.learners.yu_neely_wei2017 import YuNeelyWei2017
    from coldq.learners.yuan_lamperski2018 import YuanLamperski2018

# Every learner of the library, in the order in which `coldq list` prints them. Decentralised,
# which puts another learner on a network, and Forecasting and SafetyMargin, which let one look
# ahead, are not among them.
_ORDER = (
    "SelfTuning",
    "COLDQ",
    "COLDQDoubling",
    "COLDQExpert",
    "RECOO",
    "RECOOExpert",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "SinhaVaze",
    "YuanLamperski2018",
    "Mahdavi2012",
    "Jenatton2016",
    "YuNeely2020",
    "YuNeelyWei2017",
    "WeiYuNeely2020",
    "MOSP",
    "CaoLiu2019",
    "CaoZhangPoor2021",
    "Liu2022",
    "Wang2023",
    "Ader",
    "NestedProjections",
    "Switch",
    "PolyakFeasibility",
    "CLASP",
    "OGD",
    "BestResponse",
)
CATALOGUE: "tuple[Any, ...]"

# Each is imported when it is first asked for, and CATALOGUE, which has them all, likewise.
_get = importer(
    __name__,
    homes_of(
        {
            "coldq.learners.ader": "Ader",
            "coldq.learners.best_response": "BestResponse",
            "coldq.learners.cao_liu2019": "CaoLiu2019",
            "coldq.learners.cao_zhang_poor2021": "CaoZhangPoor2021",
            "coldq.learners.card": "citation",
            "coldq.learners.clasp": "CLASP",
            "coldq.learners.coldq": "COLDQ",
            "coldq.learners.coldq_expert": "COLDQExpert",
            "coldq.learners.decentralised": "Decentralised",
            "coldq.learners.doubling": "COLDQDoubling",
            "coldq.learners.jenatton2016": "Jenatton2016",
            "coldq.learners.liu2022": "Liu2022",
            "coldq.learners.mahdavi2012": "Mahdavi2012",
            "coldq.learners.mosp": "MOSP",
            "coldq.learners.nested_projections": "NestedProjections",
            "coldq.learners.ogd": "OGD",
            "coldq.learners.polyak": "PolyakFeasibility",
            "coldq.learners.recoo": "RECOO",
            "coldq.learners.safety_margin": "Forecasting SafetyMargin",
            "coldq.learners.self_tuning": "SelfTuning",
            "coldq.learners.recoo_expert": "RECOOExpert",
            "coldq.learners.sinha_vaze": "SinhaVaze",
            "coldq.learners.switch": "Switch",
            "coldq.learners.wang2023": "Wang2023",
            "coldq.learners.wei_yu_neely2020": "WeiYuNeely2020",
            "coldq.learners.yi2021": "Yi2021",
            "coldq.learners.yi2021_expert": "Yi2021Expert",
            "coldq.learners.yi2023": "Yi2023",
            "coldq.learners.yu_neely2020": "YuNeely2020",
            "coldq.learners.yu_neely_wei2017": "YuNeelyWei2017",
            "coldq.learners.yuan_lamperski2018": "YuanLamperski2018",
        }
    ),
)


def __getattr__(name: str) -> Any:
    if name == "CATALOGUE":
        return tuple(_get(learner) for learner in _ORDER)
    return _get(name)


__all__ = [
    "CATALOGUE",
    "CLASP",
    "COLDQ",
    "MOSP",
    "OGD",
    "RECOO",
    "Ader",
    "BestResponse",
    "COLDQDoubling",
    "COLDQExpert",
    "CaoLiu2019",
    "CaoZhangPoor2021",
    "Decentralised",
    "Forecasting",
    "Jenatton2016",
    "Liu2022",
    "Mahdavi2012",
    "NestedProjections",
    "PolyakFeasibility",
    "RECOOExpert",
    "SafetyMargin",
    "SelfTuning",
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
