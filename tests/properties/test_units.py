"""The same problem in other units: every learner makes the same decisions where its rule says so.

Decisions are multiplied by x, losses by f and rows by g. Parameters are given in these units, so
that all terms of a rule are multiplied alike. Where a parameter of the paper has no unit to be
given in, some of the factors follow from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners import ALGORITHMS
from coldq.slot.schedules import Power

T, P, N = 30, 3, 2
UNITS = [(1.0, 1e-6, 1e-3), (1e6, 1e-6, 1e5), (1e-6, 1e6, 1e-3)]  # of x, f and g
RNG = np.random.default_rng(1)
H, Y = RNG.standard_normal((T, 3, P)), 2.0 * RNG.standard_normal((T, 3))
A, SLACK = RNG.standard_normal((T, N, P)), RNG.uniform(0.0, 0.3, (T, N))
LOWER, UPPER, COMMON = np.array([-1.0, 0.0, -2.0]), np.array([1.0, 2.0, 0.5]), [0.1, 0.6, 0.3]
DOMAINS: dict[str, Callable[[float], Any]] = {
    "box": lambda x: coldq.Box(LOWER * x, UPPER * x),
    "ball": lambda x: coldq.Ball(np.array([0.5, 0.0, -0.5]) * x, x),
    "simplex": lambda x: coldq.Simplex(P, total=x),
}


def free(x: float, f: float, g: float) -> tuple[float, float, float]:
    return x, f, g


def alike(x: float, f: float, g: float) -> tuple[float, float, float]:
    """One Lipschitz constant for losses and rows."""
    return x, f, f


def queued(x: float, f: float, g: float) -> tuple[float, float, float]:
    """The price of a row is a sum of its values."""
    return x, g * g, g


def fixed_steps(x: float, f: float, g: float) -> tuple[float, float, float]:
    """The same, and alpha has no unit."""
    return x, x * x, x


def one_step(x: float, f: float, g: float) -> tuple[float, float, float]:
    """The same step for decisions and prices."""
    return x, f, f / x


RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "SelfTuning": (free, lambda X, x, f, g: coldq.SelfTuning(X, 0.1)),
    "COLDQ": (
        queued,
        lambda X, x, f, g: coldq.COLDQ(
            X, alpha=Power(0.5, f / x**2), eta=1.0 / T, gamma=2.0 * f / g
        ),
    ),
    "COLDQDoubling": (
        fixed_steps,
        lambda X, x, f, g: coldq.COLDQDoubling(X, epsilon=0.05 * f / g),
    ),
    "COLDQExpert": (
        fixed_steps,
        lambda X, x, f, g: coldq.COLDQExpert(X, T, 1e-3 * f / g, kappa=0.2 / f),
    ),
    "RECOO": (
        free,
        lambda X, x, f, g: coldq.RECOO(
            X, alpha=Power(0.5, f / x**2), gamma=Power(0.6, sqrt(f) / g), eta=Power(0.5, sqrt(f))
        ),
    ),
    "Yi2021": (free, lambda X, x, f, g: coldq.Yi2021(X, T, alpha0=x**2 / f, gamma0=sqrt(f) / g)),
    "Yi2021Expert": (
        free,
        lambda X, x, f, g: coldq.Yi2021Expert(X, T, alpha0=x**2 / f, gamma0=x / g, kappa=0.2 / f),
    ),
    "Yi2023": (
        free,
        lambda X, x, f, g: coldq.Yi2023.from_exponents(X, a=x**2 / f, b=g**2 / f, g=f / g**2),
    ),
    "SinhaVaze": (alike, lambda X, x, f, g: coldq.SinhaVaze(X, T, lipschitz=3.0 * f / x)),
    "SarkarSinha2025": (alike, lambda X, x, f, g: coldq.SarkarSinha2025(X, lipschitz=3.0 * f / x)),
    "LekeufackJordan2024": (
        alike,
        lambda X, x, f, g: coldq.LekeufackJordan2024(X, lipschitz=3.0 * f / x),
    ),
    "SupanthaSinha2026": (
        alike,
        lambda X, x, f, g: coldq.SupanthaSinha2026(X, T, lipschitz=3.0 * f / x),
    ),
    "SupanthaSinha2026ProjectionFree": (
        free,
        lambda X, x, f, g: coldq.SupanthaSinha2026ProjectionFree(X, T, V=2.0 * g**2 / f),
    ),
    "YuanLamperski2018": (
        free,
        lambda X, x, f, g: coldq.YuanLamperski2018(
            X, T, eta=0.1 * x**2 / f, sigma=2.0 * (g / x) ** 2
        ),
    ),
    "Mahdavi2012": (
        one_step,
        lambda X, x, f, g: coldq.Mahdavi2012(X, T, eta=0.1 * x**2 / f, delta=2.0 * (g / x) ** 2),
    ),
    "CaoLiu2019": (
        one_step,
        lambda X, x, f, g: coldq.CaoLiu2019(X, T, eta=0.1 * x**2 / f, delta=2.0 * (g / x) ** 2),
    ),
    "CaoZhangPoor2021": (
        one_step,
        lambda X, x, f, g: coldq.CaoZhangPoor2021(
            X, T, eta=0.1 * x**2 / f, delta=2.0 * (g / x) ** 2
        ),
    ),
    "Jenatton2016": (alike, lambda X, x, f, g: coldq.Jenatton2016(X, lipschitz=3.0 * f / x)),
    "YuNeely2020": (
        free,
        lambda X, x, f, g: coldq.YuNeely2020(X, T, alpha=5.0 * f / x**2, gamma=1.5 * sqrt(f) / g),
    ),
    "YuNeelyWei2017": (
        free,
        lambda X, x, f, g: coldq.YuNeelyWei2017(X, T, V=7.0 * g**2 / f, alpha=60.0 * (g / x) ** 2),
    ),
    "WeiYuNeely2020": (
        free,
        lambda X, x, f, g: coldq.WeiYuNeely2020(X, T, V=7.0 * g**2 / f, alpha=60.0 * (g / x) ** 2),
    ),
    "MOSP": (free, lambda X, x, f, g: coldq.MOSP(X, T, alpha=0.3 * x**2 / f, mu=0.3 * f / g**2)),
    "Liu2022": (
        free,
        lambda X, x, f, g: coldq.Liu2022(
            X, alpha=Power(0.5, 2.0 * f / x**2), gamma=Power(0.25, sqrt(f) / g)
        ),
    ),
    "Wang2023": (
        free,
        lambda X, x, f, g: coldq.Wang2023(
            X, T, delay=2, alpha=2.0 * f / x**2, eta=0.5 * f / x**2, gamma=0.8 * sqrt(f) / g
        ),
    ),
    "Ader": (free, lambda X, x, f, g: coldq.Ader(X, T, gradient_bound=5.0 * f / x)),
    "NestedProjections": (
        free,
        lambda X, x, f, g: coldq.NestedProjections(X, lipschitz=5.0 * f / x),
    ),
    "Switch": (
        alike,
        lambda X, x, f, g: coldq.Switch(X, T, lipschitz=5.0 * f / x, limit=0.5 * g),
    ),
    "PolyakFeasibility": (
        free,
        lambda X, x, f, g: coldq.PolyakFeasibility(X, eta=0.1 * x**2 / f, rho=0.05 * g),
    ),
    "CLASP": (free, lambda X, x, f, g: coldq.CLASP(X, gradient_bound=5.0 * f / x)),
    "OGD": (free, lambda X, x, f, g: coldq.OGD(X, gradient_bound=5.0 * f / x)),
    "BestResponse": (free, lambda X, x, f, g: coldq.BestResponse(X, safety_margin=0.1)),
    "ForecastWithMargin": (
        free,
        lambda X, x, f, g: coldq.ForecastWithMargin(
            X,
            coldq.limit_forecasts.AutoRegressive((1, 2)),
            coldq.margins.RollingQuantile(0.2, weight=0.1),
        ),
    ),
}
# RECOOExpert takes RECOO's parameters without their units.
HAS_NO_UNITS = {"RECOOExpert"}
# Rows enforced on a ball meet in next to a point: 1e-8 of a row there is 1e-4 of the ball's edge.
ROUGH = {("SelfTuning", "ball"): 2e-5}


def decisions(name: str, domain: str, x: float, f: float, g: float) -> np.ndarray:
    """All decisions of a run, in units of 1."""
    X = DOMAINS[domain]
    learner, common = RULES[name][1](X(x), x, f, g), X(1.0).project(COMMON)
    state = learner.init(N)
    made = [state.x]
    for t in range(T):
        loss = coldq.LeastSquares(sqrt(f) / x * H[t], sqrt(f) * Y[t])
        rows = coldq.Affine(g / x * A[t], g * (A[t] @ common + SLACK[t]))
        state = learner.update(state, coldq.Feedback(loss, rows))
        made.append(state.x)
    return np.array(made) / x


def test_every_learner_is_here() -> None:
    assert {kind.__name__ for kind in ALGORITHMS} == {*RULES, *HAS_NO_UNITS}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("name", RULES)
def test_decisions_are_the_same_in_other_units(name: str, domain: str) -> None:
    usual = decisions(name, domain, 1.0, 1.0, 1.0)
    assert np.abs(np.diff(usual, axis=0)).max() > 1e-3  # it moves
    for units in UNITS:
        found = decisions(name, domain, *RULES[name][0](*units))
        np.testing.assert_allclose(found, usual, rtol=1e-7, atol=ROUGH.get((name, domain), 1e-7))
