"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from typing import TYPE_CHECKING, Any

from coldq.base.lazy import homes_of, importer

if TYPE_CHECKING:
    from coldq.learners.ader import Ader as Ader
    from coldq.learners.best_response import BestResponse as BestResponse
    from coldq.learners.card import citation as citation
    from coldq.learners.clasp import CLASP as CLASP
    from coldq.learners.coldq import COLDQ as COLDQ
    from coldq.learners.coldq_expert import COLDQExpert as COLDQExpert
    from coldq.learners.contrib.cao_liu2019 import CaoLiu2019 as CaoLiu2019
    from coldq.learners.contrib.cao_zhang_poor2021 import CaoZhangPoor2021 as CaoZhangPoor2021
    from coldq.learners.contrib.lekeufack_jordan2024 import (
        LekeufackJordan2024 as LekeufackJordan2024,
    )
    from coldq.learners.contrib.liu2022 import Liu2022 as Liu2022
    from coldq.learners.contrib.mahdavi2012 import Mahdavi2012 as Mahdavi2012
    from coldq.learners.contrib.mosp import MOSP as MOSP
    from coldq.learners.contrib.recoo_expert import RECOOExpert as RECOOExpert
    from coldq.learners.contrib.sarkar_sinha2025 import SarkarSinha2025 as SarkarSinha2025
    from coldq.learners.contrib.supantha_sinha2026_projection_free import (
        SupanthaSinha2026ProjectionFree as SupanthaSinha2026ProjectionFree,
    )
    from coldq.learners.contrib.wang2023 import Wang2023 as Wang2023
    from coldq.learners.contrib.wei_yu_neely2020 import WeiYuNeely2020 as WeiYuNeely2020
    from coldq.learners.contrib.yi2021_expert import Yi2021Expert as Yi2021Expert
    from coldq.learners.contrib.yuan_lamperski2018 import YuanLamperski2018 as YuanLamperski2018
    from coldq.learners.decentralised import Decentralised as Decentralised
    from coldq.learners.doubling import COLDQDoubling as COLDQDoubling
    from coldq.learners.forecast_with_margin import ForecastWithMargin as ForecastWithMargin
    from coldq.learners.jenatton2016 import Jenatton2016 as Jenatton2016
    from coldq.learners.nested_projections import NestedProjections as NestedProjections
    from coldq.learners.ogd import OGD as OGD
    from coldq.learners.polyak import PolyakFeasibility as PolyakFeasibility
    from coldq.learners.recoo import RECOO as RECOO
    from coldq.learners.safety_margin import Forecasting as Forecasting
    from coldq.learners.safety_margin import SafetyMargin as SafetyMargin
    from coldq.learners.self_tuning import SelfTuning as SelfTuning
    from coldq.learners.sinha_vaze import SinhaVaze as SinhaVaze
    from coldq.learners.supantha_sinha2026 import SupanthaSinha2026 as SupanthaSinha2026
    from coldq.learners.switch import Switch as Switch
    from coldq.learners.values_only import OnePoint as OnePoint
    from coldq.learners.values_only import TwoPoint as TwoPoint
    from coldq.learners.yi2021 import Yi2021 as Yi2021
    from coldq.learners.yi2023 import Yi2023 as Yi2023
    from coldq.learners.yu_neely2020 import YuNeely2020 as YuNeely2020
    from coldq.learners.yu_neely_wei2017 import YuNeelyWei2017 as YuNeelyWei2017

# The learners of a comparison that names none, in the order in which `coldq list` prints them.
_CATALOGUE = homes_of(
    {
        "coldq.learners.self_tuning": "SelfTuning",
        "coldq.learners.coldq": "COLDQ",
        "coldq.learners.doubling": "COLDQDoubling",
        "coldq.learners.coldq_expert": "COLDQExpert",
        "coldq.learners.recoo": "RECOO",
        "coldq.learners.yi2021": "Yi2021",
        "coldq.learners.yi2023": "Yi2023",
        "coldq.learners.sinha_vaze": "SinhaVaze",
        "coldq.learners.supantha_sinha2026": "SupanthaSinha2026",
        "coldq.learners.jenatton2016": "Jenatton2016",
        "coldq.learners.yu_neely2020": "YuNeely2020",
        "coldq.learners.yu_neely_wei2017": "YuNeelyWei2017",
        "coldq.learners.ader": "Ader",
        "coldq.learners.nested_projections": "NestedProjections",
        "coldq.learners.switch": "Switch",
        "coldq.learners.polyak": "PolyakFeasibility",
        "coldq.learners.clasp": "CLASP",
        "coldq.learners.ogd": "OGD",
        "coldq.learners.best_response": "BestResponse",
        "coldq.learners.forecast_with_margin": "ForecastWithMargin",
    }
)
# Algorithms whose rule was not read in its paper; they play by name.
_CONTRIB = {
    name: f"coldq.learners.contrib.{home}"
    for home, name in {
        "recoo_expert": "RECOOExpert",
        "yi2021_expert": "Yi2021Expert",
        "sarkar_sinha2025": "SarkarSinha2025",
        "lekeufack_jordan2024": "LekeufackJordan2024",
        "supantha_sinha2026_projection_free": "SupanthaSinha2026ProjectionFree",
        "yuan_lamperski2018": "YuanLamperski2018",
        "mahdavi2012": "Mahdavi2012",
        "wei_yu_neely2020": "WeiYuNeely2020",
        "mosp": "MOSP",
        "cao_liu2019": "CaoLiu2019",
        "cao_zhang_poor2021": "CaoZhangPoor2021",
        "liu2022": "Liu2022",
        "wang2023": "Wang2023",
    }.items()
}
# What puts another learner on a network, lets one look ahead or see values only is not among them.
_BESIDES = homes_of(
    {
        "coldq.learners.card": "citation",
        "coldq.learners.decentralised": "Decentralised",
        "coldq.learners.safety_margin": "Forecasting SafetyMargin",
        "coldq.learners.values_only": "OnePoint TwoPoint",
    }
)
HOMES = _CATALOGUE | _CONTRIB | _BESIDES
CATALOGUE: "tuple[Any, ...]"
CONTRIB: "tuple[Any, ...]"
ALGORITHMS: "tuple[Any, ...]"
_TABLES = {"CATALOGUE": _CATALOGUE, "CONTRIB": _CONTRIB, "ALGORITHMS": _CATALOGUE | _CONTRIB}
__all__ = [*_TABLES, *HOMES]  # pyright: ignore[reportUnsupportedDunderAll]

# Each is imported when it is first asked for; so are the tables' learners, by each table.
_get = importer(__name__, HOMES)


def __getattr__(name: str) -> Any:
    return tuple(map(_get, _TABLES[name])) if name in _TABLES else _get(name)
