"""The decoded curves, and the distance of ours from them."""

import numpy as np
import pytest

from coldq.paper.figures import FIGURES
from coldq.paper.published import EndPoint, final, published_curve


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.key)
@pytest.mark.parametrize("measure", ["loss", "violation"])
def test_every_plotted_learner_has_a_curve_over_the_whole_horizon(figure, measure):
    plotted = [entry.published for entry in figure.entries if entry.published]
    assert len(plotted) == 3
    for label in plotted:
        t, values = published_curve(figure.curves, measure, label)
        assert t[0] == 1.0
        assert t[-1] == figure.settings[0].problem.horizon
        assert np.isfinite(values).all()


def test_the_curves_end_where_the_figures_do():
    # Read off the vector figures: time-varying and quadratic.
    assert final("tv", "violation", "RECOO") == pytest.approx(672.9, abs=0.05)
    assert final("qp", "violation", "Yi et al. 2021") == pytest.approx(19.11, abs=0.005)
    assert final("js", "loss", "COLDQ") == pytest.approx(432267, abs=0.5)


def test_distance_is_relative_to_the_published_end():
    end = EndPoint(FIGURES[0].settings[0], "COLDQ", "loss", 200.0, 210.0, 190.0, 220.0)
    assert end.distance == pytest.approx(0.05)
    assert end.within_seeds
    zero = EndPoint(FIGURES[1].settings[0], "COLDQ", "violation", 0.0, 1e-13, 0.0, 1e-12)
    assert zero.distance == 0.0 and zero.within_seeds
    assert EndPoint(zero.setting, "x", "violation", 0.0, 1.0, 0.5, 2.0).distance == np.inf
