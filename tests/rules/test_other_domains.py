"""Rules written down again for 200 slots of three rows, on a simplex and a ball in place of a box.

What the short runs in a plane cannot show: the entropy, weights of many experts over time, and
forecasts that come with some slots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coldq

T, P, N = 200, 5, 3
Vector = np.ndarray
RNG = np.random.default_rng(9)
H, Y, A = (RNG.uniform(-1.0, 1.0, shape) for shape in ((T, 3, P), (T, 3), (T, N, P)))
SLACK = RNG.uniform(0.0, 0.1, (T, N))


def onto_simplex(v: Vector) -> Vector:
    down = np.sort(v)[::-1]
    over = (np.cumsum(down) - 1.0) / np.arange(1, P + 1)
    return np.maximum(v - over[np.flatnonzero(down > over)[-1]], 0.0)


def onto_ball(v: Vector) -> Vector:
    return v / max(np.linalg.norm(v), 1.0)


# The domain, its projection, its diameter, where learners start, and a point that meets all rows.
Place = tuple[Any, Callable[[Vector], Vector], float, Vector, Vector]
SIMPLEX: Place = (
    coldq.Simplex(P), onto_simplex, math.sqrt(2.0), np.full(P, 0.2),
    np.array([0.3, 0.1, 0.1, 0.4, 0.1]),
)  # fmt: skip
BALL: Place = (
    coldq.Ball(np.zeros(P), 1.0), onto_ball, 2.0, np.zeros(P), np.array([0.3, -0.2, 0.1, 0.4, 0.0])
)  # fmt: skip
everywhere = pytest.mark.parametrize("place", [SIMPLEX, BALL], ids=["simplex", "ball"])


def gradient(t: int, x: Vector) -> Vector:
    return 2.0 * H[t].T @ (H[t] @ x - Y[t])


def limits(t: int, place: Place) -> Vector:
    return A[t] @ place[4] + SLACK[t]


def worst(rows: Vector, b: Vector, x: Vector) -> tuple[float, Vector]:
    """[max_n g^n]_+ and its slope."""
    g = rows @ x - b
    n = int(np.argmax(g))
    return (g[n], rows[n]) if g[n] > 0.0 else (0.0, np.zeros(P))


def compare(learner: Any, place: Place, expected: list[Vector], forecasts: Any = None) -> None:
    state = learner.init(N)
    np.testing.assert_allclose(state.x, expected[0], atol=1e-12)
    for t in range(T):
        revealed = coldq.Feedback(
            coldq.LeastSquares(math.sqrt(2.0) * H[t], math.sqrt(2.0) * Y[t]),
            coldq.Affine(A[t], limits(t, place)),
            forecast=None if forecasts is None else forecasts[t],
        )
        state = learner.update(state, revealed)
        np.testing.assert_allclose(state.x, expected[t + 1], atol=1e-10, err_msg=f"x_{t + 2}")


def test_the_entropic_step_of_wei_yu_and_neely() -> None:
    V, alpha, (domain, _, _, x, _) = 2.0, 1.5, SIMPLEX
    Q, made = np.zeros(N), [x]
    for t in range(T):
        d = V * gradient(t, x) + A[t].T @ Q
        mixed = (1.0 - 1.0 / T) * x + 1.0 / (T * P)
        new = mixed * np.exp(-d / alpha)
        new = new / new.sum()
        Q = np.maximum(Q + A[t] @ x - limits(t, SIMPLEX) + A[t] @ (new - x), 0.0)
        x = new
        made.append(x)
    compare(coldq.WeiYuNeely2020(domain, T, "entropy", V=V, alpha=alpha), SIMPLEX, made)


def hedge(losses: Vector, gap: float) -> Vector:
    """AdaHedge's weights."""
    over = losses - losses.min()
    raw = np.exp(-math.log(len(losses)) / gap * over) if gap > 0.0 else 1.0 * (over == 0.0)
    return raw / raw.sum()


@everywhere
def test_the_many_steps_of_supantha_and_sinha(place: Place) -> None:
    domain, project, R, x, _ = place
    V, M = 3.0, math.ceil(0.5 * math.log2(1 + T)) + 1
    points, losses, gap, S, Q, made = [x] * M, np.zeros(M), 0.0, 0.0, 0.0, [x]
    for t in range(T):
        level, slope = worst(A[t], limits(t, place), x)
        Q += level
        nabla = V * gradient(t, x) + 2.0 * Q * slope
        S += nabla @ nabla
        size = 1e-10 * R * np.linalg.norm(nabla)
        lost = np.array([nabla @ (point - x) for point in points])
        lost[np.abs(lost) <= size] = 0.0
        weights = hedge(losses, gap)
        if gap > 0.0:
            eta = math.log(M) / gap
            mixed = -math.log(weights @ np.exp(-eta * lost)) / eta
        else:
            mixed = (losses + lost).min() - losses.min()
        more = weights @ lost - mixed
        gap, losses = gap + (more if more > size else 0.0), losses + lost
        step = R / math.sqrt(2.0 * S)
        points = [project(points[i] - 2.0**i * step * nabla) for i in range(M)]
        x = hedge(losses, gap) @ np.array(points)
        made.append(x)
    compare(coldq.SupanthaSinha2026ProjectionFree(domain, T, V=V), place, made)


@everywhere
def test_the_optimistic_steps_of_lekeufack_and_jordan(place: Place) -> None:
    domain, project, R, x, _ = place
    G, z, Q, S, E, made = 2.0, x, 0.0, 0.0, 0.0, [x]
    f_next, v_next, forecasts = np.zeros(P), np.zeros(P), []

    def price(Q: float, E: float) -> float:
        rate = 1.0 / (2.0 * math.sqrt(max(1.0, E)))
        return rate * math.exp(rate * Q)

    for t in range(T):
        level, slope = worst(A[t], limits(t, place), x)
        foreseen = f_next + price(Q, E) * v_next
        Q += level / (2.0 * G * R)
        nabla = gradient(t, x) + price(Q, E) * slope
        z = project(z - R / math.sqrt(G * G + S) * nabla)
        S, E = S + np.sum((nabla - foreseen) ** 2), E + np.sum((slope - v_next) ** 2) / G**2
        f_next, v_next, given = gradient(t, x), slope, {}
        if t % 3 != 0:  # a loss is foreseen, and in some of these slots rows as well
            given["loss"] = coldq.Linear(0.5 * Y[t, :1] * np.ones(P))
            f_next = 0.5 * Y[t, 0] * np.ones(P)
        if t % 3 == 2:
            given["constraint"] = coldq.Affine(A[t] + 0.1, limits(t, place))
            v_next = worst(A[t] + 0.1, limits(t, place), z)[1]
        forecasts.append(coldq.Forecast(**given) if given else None)
        x = project(z - R / math.sqrt(G * G + S) * (f_next + price(Q, E) * v_next))
        made.append(x)
    compare(coldq.LekeufackJordan2024(domain, lipschitz=G), place, made, forecasts)
