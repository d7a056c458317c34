"""Rules of gradient steps alone, written down a second time as in :mod:`.transcriptions`.

All steps here are gradient steps: a linear penalty on an affine constraint is one as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .transcriptions import (
    DIAMETER,
    START,
    Run,
    Slot,
    T,
    Vector,
    as_array,
    gradient,
    listed,
    mean,
    project,
)


def value(slot: Slot, x: Vector) -> Vector:
    """g(x), with its sign"""
    return slot.A @ x - slot.b


def ader(slots: dict[int, Slot], D: float = 5.0) -> Run:
    N = math.ceil(0.5 * math.log2(1.0 + 4.0 * T / 7.0)) + 1
    experts = range(1, N + 1)
    eta = {i: 2.0 ** (i - 1) * (DIAMETER / D) * math.sqrt(7.0 / (2.0 * T)) for i in experts}
    kappa = math.sqrt(2.0 / (T * D**2 * DIAMETER**2))
    w = {1: {i: (1.0 + 1.0 / N) / (i * (i + 1)) for i in experts}}
    x = {1: dict.fromkeys(experts, START)}
    played = {1: mean(w[1], x[1])}
    for t in range(1, T + 1):
        common = gradient(slots[t], played[t])
        raw = {i: w[t][i] * math.exp(-kappa * common @ (x[t][i] - played[t])) for i in experts}
        w[t + 1] = {i: raw[i] / sum(raw.values()) for i in experts}
        x[t + 1] = {i: project(x[t][i] - eta[i] * common) for i in experts}
        played[t + 1] = mean(w[t + 1], x[t + 1])
    return Run(listed(played), weights=as_array(w[T + 1]))


def saddle_point(slots: dict[int, Slot], eta: float, delta: float) -> Run:
    x, dual = {1: START}, {1: np.zeros(2)}
    for t in range(1, T + 1):
        slope_x = gradient(slots[t], x[t]) + slots[t].A.T @ dual[t]
        slope_dual = value(slots[t], x[t]) - delta * eta * dual[t]
        x[t + 1] = project(x[t] - eta * slope_x)
        dual[t + 1] = np.maximum(dual[t] + eta * slope_dual, 0.0)
    return Run(listed(x), dual[T + 1], queues=list(dual.values()))


def jenatton2016(slots: dict[int, Slot], L: float = 0.4, b: float = 0.5) -> Run:
    x, dual = {1: START}, {1: 0.0}
    for t in range(1, T + 1):
        eta, theta = DIAMETER / (L * t**b), 6.0 * DIAMETER * L / t**b
        mu = 1.0 / (theta * (t + 1))
        rows = value(slots[t], x[t])
        n = 0 if rows[0] >= rows[1] else 1
        x[t + 1] = project(x[t] - eta * (gradient(slots[t], x[t]) + dual[t] * slots[t].A[n]))
        dual[t + 1] = max(dual[t] + mu * (rows[n] - theta * dual[t]), 0.0)
    return Run(listed(x), np.array(dual[T + 1]), queues=[np.array(d) for d in dual.values()])


def yuan_lamperski2018(slots: dict[int, Slot], eta: float = 0.2, sigma: float = 2.0) -> Run:
    x, dual = {1: START}, {0: np.zeros(2)}
    for t in range(1, T + 1):
        dual[t] = np.maximum(value(slots[t], x[t]), 0.0) / (sigma * eta)
        x[t + 1] = project(x[t] - eta * (gradient(slots[t], x[t]) + slots[t].A.T @ dual[t]))
    return Run(listed(x), dual[T], queues=list(dual.values()))


def yuan_proutiere_shi2022(slots: dict[int, Slot], beta: float = 0.3, eta: float = 0.7) -> Run:
    """One agent, whose only neighbour it is itself."""
    x, dual = {1: START}, {0: np.zeros(2)}
    for t in range(1, T + 1):
        dual[t] = np.maximum(value(slots[t], x[t]), 0.0) / eta
        slope = gradient(slots[t], x[t]) + dual[t][0] * slots[t].A[0] + dual[t][1] * slots[t].A[1]
        x[t + 1] = project(x[t] - beta * slope)
    return Run(listed(x), dual[T], queues=list(dual.values()))


def drift_plus_penalty(slots: dict[int, Slot], V: float, alpha: float) -> Run:
    x, Q = {1: START}, {1: np.zeros(2)}
    for t in range(1, T + 1):
        d = V * gradient(slots[t], x[t]) + slots[t].A.T @ Q[t]
        x[t + 1] = project(x[t] - d / (2.0 * alpha))
        linear_model = value(slots[t], x[t]) + slots[t].A @ (x[t + 1] - x[t])
        Q[t + 1] = np.maximum(Q[t] + linear_model, 0.0)
    return Run(listed(x), Q[T + 1], queues=list(Q.values()))


def mosp(slots: dict[int, Slot]) -> Run:
    alpha = mu = T ** (-1.0 / 3.0)
    x, dual = {1: START}, {1: np.zeros(2)}
    for t in range(2, T + 2):
        before = slots[t - 1]
        dual[t] = np.maximum(dual[t - 1] + mu * value(before, x[t - 1]), 0.0)
        x[t] = project(x[t - 1] - alpha * (gradient(before, x[t - 1]) + before.A.T @ dual[t]))
    return Run(listed(x), dual[T + 1], queues=list(dual.values()))


def yu_neely(
    slots: dict[int, Slot], alpha: Callable[[int], float], gamma: Callable[[int], float]
) -> Run:
    """Yu and Neely 2020, and Liu 2022 where alpha and gamma depend on t."""
    x, Q = {1: START}, {0: np.zeros(2)}
    for t in range(1, T + 1):
        g = gamma(t) * value(slots[t], x[t])
        Q[t] = np.maximum(-g, Q[t - 1] + g)
        d = gradient(slots[t], x[t]) + gamma(t) * slots[t].A.T @ (Q[t] + g)
        x[t + 1] = project(x[t] - d / (2.0 * alpha(t)))
    return Run(listed(x), Q[T], queues=list(Q.values()))


def yu_neely2020(slots: dict[int, Slot], L: float = 0.5) -> Run:
    alpha = (L**2 + 1.0) * math.sqrt(T) / 2.0
    return yu_neely(slots, lambda t: alpha, lambda t: T**0.25)


def liu2022(slots: dict[int, Slot], L: float = 0.5, v: float = 0.2) -> Run:
    return yu_neely(
        slots,
        lambda t: (L**2 + 1.0) * t ** ((1.0 - v) / 2.0) / 2.0,
        lambda t: t ** ((1.0 - v) / 4.0),
    )


def liu2022_parameter_free(slots: dict[int, Slot]) -> Run:
    slopes = {t: float((slots[t].A ** 2).sum()) for t in slots}
    return yu_neely(
        slots, lambda t: (slopes[t] + 1.0) * math.sqrt(t) / 2.0, lambda t: math.sqrt(math.sqrt(t))
    )


def wang2023(slots: dict[int, Slot], delay: int) -> Run:
    """x[t] is played in slot t, whose feedback arrives at the end of slot t + delay."""
    alpha, eta, gamma = 1.0, 0.5, 0.8
    x = dict.fromkeys(range(1, delay + 2), START)
    Q = {0: np.zeros(2)}
    for t in range(1, T + 1):
        now = t + delay
        g = gamma * value(slots[t], x[now])
        Q[t] = np.maximum(-g, Q[t - 1] + g)
        d = gradient(slots[t], x[t]) + gamma * slots[t].A.T @ (Q[t] + g)
        # Where d + 2 alpha (x - x_t) + 2 eta (x - x_now) is zero; coordinates are independent.
        x[now + 1] = project((2.0 * alpha * x[t] + 2.0 * eta * x[now] - d) / (2.0 * (alpha + eta)))
    played = [x[t + delay] for t in range(1, T + 2)]
    return Run(played, Q[T], queues=list(Q.values()))


def worst_part(slot: Slot, x: Vector) -> tuple[float, Vector]:
    """[max_n g^n(x)]_+ and one of its subgradients."""
    rows = value(slot, x)
    n = 0 if rows[0] >= rows[1] else 1
    return (float(rows[n]), slot.A[n]) if rows[n] > 0.0 else (0.0, np.zeros(2))


def sarkar_sinha2025(slots: dict[int, Slot], G: float = 3.0, c: float = 0.5) -> Run:
    scale, squares = 1.0 / (2.0 * G * DIAMETER), 0.0
    x, Q = {1: START}, {0: 0.0}
    for t in range(1, T + 1):
        excess, subgradient = worst_part(slots[t], x[t])
        Q[t] = Q[t - 1] + scale * excess
        rate = c / math.sqrt(t)
        nabla = scale * gradient(slots[t], x[t])
        nabla = nabla + rate * math.exp(rate * Q[t]) * scale * subgradient
        squares += float(nabla @ nabla)
        x[t + 1] = project(x[t] - math.sqrt(2.0) * DIAMETER / (2.0 * math.sqrt(squares)) * nabla)
    return Run(listed(x), np.array(Q[T]), queues=[np.array(q) for q in Q.values()])


def lekeufack_jordan2024(slots: dict[int, Slot], G: float = 0.6) -> Run:
    """Nothing is forecast, so that the latest gradients are foreseen."""

    def price(q: float, surprise: float) -> float:
        rate = 1.0 / (2.0 * math.sqrt(max(1.0, surprise)))
        return rate * math.exp(rate * q)

    x, z, Q, S, E = {1: START}, {1: START}, {0: 0.0}, {0: 0.0}, {0: 0.0}
    f_hat, g_hat = {1: np.zeros(2)}, {1: np.zeros(2)}
    for t in range(1, T + 1):
        excess, v = worst_part(slots[t], x[t])
        f = gradient(slots[t], x[t])
        Q[t] = Q[t - 1] + excess / (2.0 * G * DIAMETER)
        nabla = f + price(Q[t], E[t - 1]) * v
        wrong = nabla - (f_hat[t] + price(Q[t - 1], E[t - 1]) * g_hat[t])
        S[t] = S[t - 1] + float(wrong @ wrong)
        E[t] = E[t - 1] + float((v - g_hat[t]) @ (v - g_hat[t])) / G**2
        z[t + 1] = project(z[t] - DIAMETER / math.sqrt(G**2 + S[t - 1]) * nabla)
        f_hat[t + 1], g_hat[t + 1] = f, v
        ahead = f + price(Q[t], E[t]) * v
        x[t + 1] = project(z[t + 1] - DIAMETER / math.sqrt(G**2 + S[t]) * ahead)
    return Run(listed(x), np.array(Q[T]), queues=[np.array(q) for q in Q.values()])


def ada_hedge(losses: dict[int, float], gap: float) -> dict[int, float]:
    """Weights: equal ones for the leaders while nothing was lost to mixing."""
    least = min(losses.values())
    if gap == 0.0:
        raw = {i: 1.0 if loss == least else 0.0 for i, loss in losses.items()}
    else:
        eta = math.log(len(losses)) / gap
        raw = {i: math.exp(-eta * (loss - least)) for i, loss in losses.items()}
    total = sum(raw.values())
    return {i: share / total for i, share in raw.items()}


def supantha_sinha2026_projection_free(slots: dict[int, Slot], V: float = 2.0) -> Run:
    M = math.ceil(0.5 * math.log2(1.0 + T)) + 1
    experts = range(1, M + 1)
    Q, squares, gap = {0: 0.0}, 0.0, 0.0
    L = dict.fromkeys(experts, 0.0)
    x = {1: dict.fromkeys(experts, START)}
    w = {1: ada_hedge(L, gap)}
    played = {1: START}
    for t in range(1, T + 1):
        excess, subgradient = worst_part(slots[t], played[t])
        Q[t] = Q[t - 1] + excess
        nabla = V * gradient(slots[t], played[t]) + 2.0 * Q[t] * subgradient
        squares += float(nabla @ nabla)
        loss = {i: float(nabla @ (x[t][i] - played[t])) for i in experts}
        if gap > 0.0:
            eta = math.log(M) / gap
            mix = -math.log(sum(w[t][i] * math.exp(-eta * loss[i]) for i in experts)) / eta
        else:
            mix = min(L[i] + loss[i] for i in experts) - min(L.values())
        more = sum(w[t][i] * loss[i] for i in experts) - mix
        gap += more if more > 1e-12 * DIAMETER * math.sqrt(nabla @ nabla) else 0.0
        L = {i: L[i] + loss[i] for i in experts}
        w[t + 1] = ada_hedge(L, gap)
        step = {i: 2.0 ** (i - 1) * DIAMETER / math.sqrt(2.0 * squares) for i in experts}
        x[t + 1] = {i: project(x[t][i] - step[i] * nabla) for i in experts}
        played[t + 1] = mean(w[t + 1], x[t + 1])
    return Run(listed(played), np.array(Q[T]), queues=[np.array(q) for q in Q.values()])


RULES: dict[str, Callable[[dict[int, Slot]], Run]] = {
    "ader": ader,
    "mahdavi2012": lambda slots: saddle_point(slots, eta=0.4, delta=0.5),
    "cao-liu2019": lambda slots: saddle_point(slots, eta=0.3, delta=1.0),
    "cao-zhang-poor2021": lambda slots: saddle_point(slots, eta=0.5, delta=0.2),
    "jenatton2016": jenatton2016,
    "yuan-lamperski2018": yuan_lamperski2018,
    "yuan-proutiere-shi2022": yuan_proutiere_shi2022,
    "yu-neely-wei2017": lambda slots: drift_plus_penalty(slots, math.sqrt(T), T),
    "wei-yu-neely2020": lambda slots: drift_plus_penalty(slots, V=1.0, alpha=2.0),
    "mosp": mosp,
    "yu-neely2020": yu_neely2020,
    "liu2022": liu2022,
    "liu2022-parameter-free": liu2022_parameter_free,
    "wang2023": lambda slots: wang2023(slots, delay=0),
    "wang2023-late": lambda slots: wang2023(slots, delay=3),
    "sarkar-sinha2025": sarkar_sinha2025,
    "lekeufack-jordan2024": lekeufack_jordan2024,
    "supantha-sinha2026-projection-free": supantha_sinha2026_projection_free,
}
