"""The per-slot problem with one capacity row."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.slot.step.reference import reference_step


def draw(rng: np.random.Generator, k: int) -> tuple[tuple, coldq.LogCapacity, coldq.Box]:
    """A random or degenerate instance: (center, gradient, alpha, weight, floor) and the rest."""
    p = int(rng.integers(1, 60))
    scale, rate = rng.uniform(0.1, 5.0, p), rng.uniform(0.1, 5.0, p)
    lower, upper = np.zeros(p), np.full(p, 10.0 ** rng.uniform(-1.0, 3.0))
    center, gradient = rng.uniform(0.0, 1.0, p) * upper, rng.standard_normal(p) * 10.0
    alpha, weight, floor = 10.0 ** rng.uniform(-2.0, 2.0), 10.0 ** rng.uniform(-1.0, 4.0), 0.0
    most = (scale * np.log1p(rate * upper)).sum()
    demand = rng.uniform(0.0, 1.0) * most
    match k % 11:
        case 1:
            weight = 0.0
        case 2:
            alpha = 1e-8
        case 3:
            alpha = 1e8
        case 4:
            demand = 2.0 * most  # cannot be met
        case 5:
            upper[rng.random(p) < 0.5] = 0.0
        case 6:
            weight, demand = np.inf, 0.9 * (scale * np.log1p(rate * upper)).sum()
        case 7:
            floor = weight
        case 8:
            scale, rate = np.full(p, 4.0), np.full(p, 4.0)
            scale[rng.random(p) < 0.2] = 0.0
        case 9:
            upper, demand = np.full(p, np.inf), 10.0 * most
            rate[rng.random(p) < 0.3] = 0.0
            rate[0] = 1.0
            lower = np.full(p, -0.1)
        case 10:  # a small unit: capacities are the last digits of 1 + rate x
            unit = 10.0 ** rng.uniform(-13.0, -4.0)
            scale, rate, upper = scale / unit, rate * unit, np.full(p, 5.0)
            center, demand = np.minimum(center, 5.0), 0.6 * (scale * np.log1p(rate * upper)).sum()
    arguments = (np.clip(center, lower, upper), gradient, alpha, weight, floor)
    return arguments, coldq.LogCapacity(demand, scale, rate), coldq.Box(lower, upper)


def residual_of(arguments: tuple, g: coldq.LogCapacity, box: coldq.Box, step: coldq.Step) -> float:
    center, gradient, alpha, weight, floor = arguments
    x, lam = step.x, step.multipliers[0]
    y, mu = center - gradient / (2.0 * alpha), lam / (2.0 * alpha)
    pull = mu * g.scale * g.rate / (1.0 + g.rate * x)
    error = np.abs(x - np.clip(y + pull, box.lower, box.upper)) / (1.0 + np.abs(y) + np.abs(pull))
    gap = g.demand - (g.scale * np.log1p(g.rate * x)).sum()
    size = g.demand + (g.scale * np.log1p(g.rate * np.maximum(np.abs(x), 1e-3))).sum()
    wrong = (lam > floor and gap < 0.0) or (lam < weight and gap > 0.0)
    assert floor <= lam <= weight
    return max(error.max(), abs(gap) / size if wrong else 0.0)


def test_every_one_of_many_degenerate_steps_is_solved() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    for k in range(4000):
        (center, gradient, alpha, weight, floor), g, box = draw(rng, k)
        step = coldq.penalised_step(center, gradient, alpha, weight, g, box, multiplier_lower=floor)
        worst = max(worst, residual_of((center, gradient, alpha, weight, floor), g, box, step))
    assert worst <= 1e-9


def test_answers_agree_with_the_oracle() -> None:
    rng = np.random.default_rng(1)
    for k in (0, 1, 4, 5, 6, 7, 8) * 3:
        arguments, g, box = draw(rng, k)
        center, gradient, _, weight, floor = arguments
        step = coldq.penalised_step(center, gradient, 0.5, weight, g, box, multiplier_lower=floor)
        x, _ = reference_step(center, gradient, 0.5, weight, g, box, multiplier_lower=floor)
        np.testing.assert_allclose(step.x, x, atol=2e-3 * (1.0 + np.abs(x).max()))


def test_one_centre_by_hand() -> None:
    # demand 1 = log(1 + x) is met at x = e - 1, where 2 (x - 0) + 4 = lam / (1 + x)
    g, box = coldq.LogCapacity(1.0, [1.0], [1.0]), coldq.Box(0.0, 10.0, dim=1)
    step = coldq.penalised_step([0.0], [4.0], 1.0, 1e3, g, box)
    np.testing.assert_allclose(step.x, [np.e - 1.0], rtol=1e-12)
    np.testing.assert_allclose(step.multipliers, [(2.0 * (np.e - 1.0) + 4.0) * np.e], rtol=1e-11)


def test_a_batch_gives_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(2)
    p, count = 30, 400
    demand, price = rng.poisson(100.0, count), rng.uniform(1.0, 9.0, (count, p))
    center, alpha = rng.uniform(0.0, 5.0, (count, p)), rng.uniform(0.1, 9.0, count)
    scale, rate, box = np.full(p, 4.0), np.full(p, 4.0), coldq.Box(0.0, 100.0, dim=p)
    batch = coldq.LogCapacity(demand, scale, rate)
    together = coldq.penalised_step(center, price, alpha, 50.0, batch, box)
    for k in range(count):
        one = coldq.penalised_step(
            center[k], price[k], alpha[k], 50.0, coldq.LogCapacity(demand[k], scale, rate), box
        )
        assert one.x.tobytes() == together.x[k].tobytes()
        assert one.multipliers.tobytes() == together.multipliers[k].tobytes()


def test_a_hard_demand_that_cannot_be_met_is_infeasible() -> None:
    g, box = coldq.LogCapacity([1.0, 99.0], [1.0], [1.0]), coldq.Box(0.0, 10.0, dim=1)
    with pytest.raises(coldq.Infeasible, match="in instance 1 of the batch"):
        coldq.penalised_step([0.0], [4.0], 1.0, np.inf, g, box)


def test_what_a_capacity_cannot_do_is_refused() -> None:
    g = coldq.LogCapacity(1.0, [1.0], [1.0])
    with pytest.raises(coldq.InvalidInput, match="convex one way only"):
        coldq.penalised_step(
            [0.0], [4.0], 1.0, 1.0, g, coldq.Box(0.0, 1.0, dim=1), multiplier_lower=-1.0
        )
    with pytest.raises(coldq.InvalidInput, match="defined where rate x > -1"):
        coldq.penalised_step([0.0], [4.0], 1.0, 1.0, g, coldq.Box(-2.0, 1.0, dim=1))
    with pytest.raises(coldq.InvalidInput, match="defined where rate x > -1"):
        g.value([-2.0])
    with pytest.raises(coldq.InvalidInput, match="scale must not be negative"):
        coldq.LogCapacity(1.0, [-1.0], [1.0])
