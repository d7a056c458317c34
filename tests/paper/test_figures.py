"""The parameter tables of the paper's appendix, number by number."""

import numpy as np
import pytest

import coldq
from coldq.paper.figures import FIGURES, find

T = np.array(400)  # a slot at which the square root is 20


def entry(figure, label):
    found = [e for e in find(figure).entries if e.label == label]
    assert len(found) == 1
    return found[0].make(find(figure).settings[0].problem)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.key)
def test_coldq_has_the_same_parameters_everywhere(figure):
    for setting in figure.settings:
        learner = figure.entries[0].make(setting.problem)
        horizon = setting.problem.horizon
        assert learner.alpha(T) == pytest.approx(20.0)
        assert learner.gamma == pytest.approx(0.5 * horizon)
        assert learner.eta == pytest.approx(1.0 / horizon)


def test_recoo():
    scales = {"time-varying": (0.5, 1.0), "quadratic": (1.0, 7.0), "linear": (1.0, 1.0)}
    for figure, (alpha, gamma) in scales.items():
        learner = entry(figure, "RECOO")
        assert learner.alpha(T) == pytest.approx(alpha * 20.0)
        assert learner.gamma(T) == pytest.approx(gamma * 400.0**0.51)
        assert learner.eta(T) == pytest.approx(20.0)


def test_yi_2021_in_both_readings_of_gamma():
    # alpha = a / sqrt(5000); gamma = g 5000^(1/4), or as printed g / 5000^(1/4)
    for figure, (a, g) in {"quadratic": (100.0, 2.5), "linear": (2.0, 1.0)}.items():
        assert entry(figure, "Yi 2021").alpha(T) == pytest.approx(a / 5000**0.5)
        assert entry(figure, "Yi 2021").gamma(T) == pytest.approx(g * 5000**0.25)
        assert entry(figure, "Yi 2021, printed gamma").gamma(T) == pytest.approx(g / 5000**0.25)


def test_yi_2023():
    learner = entry("time-varying", "Yi 2023")
    scales = [schedule(T) for schedule in (learner.alpha, learner.gamma, learner.beta)]
    assert scales == pytest.approx([3.0 / 20.0, 0.1 / 20.0, 5.0 / 20.0])


def test_every_learner_of_a_figure_states_its_parameters():
    for figure in FIGURES:
        assert all(e.printed for e in figure.entries)


def test_an_unknown_figure_is_refused_with_the_known_ones():
    with pytest.raises(coldq.InvalidInput, match=r"no figure 'five'.*time-varying \(1\)"):
        find("five")
