"""Verdicts follow from the traces: made-up runs with known effects get the verdicts they should."""

from dataclasses import replace

import numpy as np
import pytest

from coldq.evaluation.intervals import bootstrap
from coldq.paper import claims
from coldq.paper.claims import FAILS, HOLDS, IN_PART, Quantity
from coldq.paper.figures import FIGURES, Entry, Figure, Setting
from coldq.paper.runs import TUNED_RECOO, FigureRuns, Run
from coldq.problems import TimeVarying
from coldq.simulation.loop import Trace

SEEDS = tuple(range(12))
NOISE = np.random.default_rng(3).uniform(-1.0, 1.0, len(SEEDS))


def made_up(setting: Setting, entry: Entry, loss: float, violation: float, spread: float) -> Run:
    """A run of two slots whose totals scatter about the given means."""
    wobble = 1.0 + spread * (NOISE - NOISE.mean())
    totals = np.stack([0.25 * loss * wobble, 0.75 * loss * wobble], axis=1)
    breaks = np.stack([0.5 * violation * wobble, 0.5 * violation * wobble], axis=1)[..., None]
    trace = Trace(None, setting.problem, SEEDS, 0, totals, breaks, None, None, None, None)
    return Run(setting, entry, trace, seconds=1.0)


def figure_one(loss: float, violation: float, *, spread: float = 0.01) -> FigureRuns:
    """Figure 1 with RECOO at loss 100 and violation 10, COLDQ as given, one setting."""
    figure = FIGURES[0]
    setting = Setting("only", "the only setting", TimeVarying(horizon=2))
    figure = replace(figure, settings=(setting,))
    ours, recoo, yi = figure.entries[:3]
    runs = (
        made_up(setting, ours, loss, violation, spread),
        made_up(setting, recoo, 100.0, 10.0, spread),
        made_up(setting, replace(recoo, label=TUNED_RECOO), loss, violation, spread),
        made_up(setting, yi, 100.0, 50.0, spread),
    )
    return FigureRuns(figure, runs, {"COLDQ": 1e-4, "RECOO": 3e-2})


@pytest.mark.parametrize(
    ("loss", "violation", "outcome"),
    [
        (100.5, 5.9, HOLDS),  # 41% below, half a percent above
        (101.5, 5.9, IN_PART),  # the loss is sacrificed
        (100.5, 6.1, IN_PART),  # not 40%
        (101.5, 6.1, FAILS),
        (90.0, 0.0, HOLDS),
    ],
)
def test_forty_percent_without_sacrificing_loss(loss, violation, outcome):
    (verdict,) = claims.violation_without_loss(figure_one(loss, violation))
    assert verdict.outcome == outcome
    below, above = verdict.quantities
    assert below.value == pytest.approx(1.0 - violation / 10.0)
    assert above.value == pytest.approx(loss / 100.0 - 1.0)


def test_compared_with_its_equal_nothing_is_gained():
    (verdict,) = claims.violation_at_equal_loss(figure_one(100.0, 5.0))
    assert verdict.outcome == FAILS
    assert verdict.quantities[0].value == 0.0


def test_learners_are_compared_on_the_same_seeds():
    # Every seed scatters by half, but for both learners alike: the ratio does not scatter at all.
    (verdict,) = claims.violation_without_loss(figure_one(100.0, 5.0, spread=0.5))
    low, high = verdict.quantities[0].interval
    assert low == pytest.approx(0.5) and high == pytest.approx(0.5)
    assert verdict.quantities[0].clear


def test_an_interval_across_the_limit_is_not_clear():
    quantity = Quantity("x", 0.41, (0.39, 0.43), "at least", 0.40)
    assert quantity.holds and not quantity.clear
    assert Quantity("x", 0.41, None, "at least", 0.40).clear is None
    assert Quantity("x", 0.45, (0.41, 0.49), "at least", 0.40).clear
    assert Quantity("x", 0.2, (0.1, 0.3), "at least", 0.40).clear  # clearly not
    assert not Quantity("x", -0.02, None, "within", 0.01).holds


def test_the_slowest_learner_decides_on_speed():
    (verdict,) = claims.fast_enough(figure_one(100.0, 5.0))
    assert verdict.outcome == FAILS
    assert verdict.quantities[0].value == pytest.approx(30.0)
    assert "RECOO" in verdict.quantities[0].what


def test_same_loss_looks_at_every_plotted_rival():
    (verdict,) = claims.nearly_the_same_loss(figure_one(102.0, 5.0))
    assert [q.what.split(" against")[0] for q in verdict.quantities] == ["RECOO", "Yi 2023"]
    assert verdict.outcome == FAILS


def test_nothing_of_nothing_is_no_reduction():
    runs = figure_one(100.0, 0.0)
    ours, rival = runs.runs[0].violation, np.zeros(len(SEEDS))
    assert claims.lower("v", ours, rival, 0.5).value == 0.0
    assert claims.lower("v", ours + 1.0, rival, 0.5).value == -np.inf


def test_bootstrap_matches_the_normal_interval_of_a_mean():
    sample = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    low, high = bootstrap(lambda mean: mean, sample)
    half = 1.96 * sample.std(ddof=1) / np.sqrt(sample.size)
    assert low == pytest.approx(sample.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(sample.mean() + half, abs=0.1 * half)


def test_one_seed_has_no_interval():
    assert bootstrap(lambda mean: mean, np.array([1.0])) is None


def test_verdicts_become_json_that_says_what_was_needed():
    (verdict,) = claims.violation_without_loss(figure_one(100.5, 5.9))
    document = verdict.to_dict()
    assert document["outcome"] == HOLDS
    assert document["quantities"][0]["needs"] == "at least 0.4"
    assert document["quantities"][1]["interval"] == pytest.approx((0.005, 0.005))


def test_every_figure_has_claims():
    assert set(claims.CLAIMS) == {figure.key for figure in FIGURES}
    assert all(isinstance(figure, Figure) for figure in FIGURES)
