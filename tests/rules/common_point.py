"""Rules for constraints that share a point, and rules on a network, written down a second time.

As in transcriptions.py, whose helpers they use; ``python -m tests.rules.record`` records data and
results in golden-common-point.json. All constraints hold at one point, as nested sets need it. The
last axis of a slot's data before its own are three agents; the rules for one take the first's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from .transcriptions import (
    DIAMETER,
    LOWER,
    START,
    UPPER,
    Run,
    Slot,
    T,
    Vector,
    gradient,
    listed,
    project,
    prox,
    violation,
    worst_row,
)

SEED = 2026
AGENTS = 3
COMMON = np.array([-0.3, 0.4])  # feasible in every slot, for every agent
Rows = list[tuple[Vector, float]]

# A path of three agents with the weights 1/3, and in every second slot nobody talks.
TALK = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]) / 3.0


def mixing(t: int) -> np.ndarray:
    return TALK if t % 2 == 1 else np.eye(3)


def draw_slots() -> dict[int, Slot]:
    rng = np.random.default_rng(SEED)
    slots = {}
    for t in range(1, T + 1):
        A = rng.uniform(-1.0, 1.0, (AGENTS, 2, 2))
        slots[t] = Slot(
            H=rng.uniform(-1.0, 1.0, (AGENTS, 3, 2)),
            y=rng.uniform(-2.0, 2.0, (AGENTS, 3)),
            A=A,
            b=A @ COMMON + rng.uniform(0.02, 0.4, (AGENTS, 2)),
        )
    return slots


def agent(slots: dict[int, Slot], i: int = 0) -> dict[int, Slot]:
    return {t: Slot(s.H[i], s.y[i], s.A[i], s.b[i]) for t, s in slots.items()}


# -- Projection onto a polygon -------------------------------------------------------------------


def box_sides() -> Rows:
    sides: Rows = []
    for j in range(2):
        unit = np.eye(2)[j]
        sides += [(unit, float(UPPER[j])), (-unit, float(-LOWER[j]))]
    return sides


def nearest(y: Vector, rows: Rows) -> Vector:
    """The point of the polygon nearest to y: y, its foot on a side, or a corner. All are tried."""
    lines = rows + box_sides()
    points = [y]
    for a, b in lines:
        points.append(y - (a @ y - b) / (a @ a) * a)
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        matrix = np.array([a, c])
        if abs(np.linalg.det(matrix)) > 1e-12:
            points.append(np.linalg.solve(matrix, np.array([b, d])))
    inside = [x for x in points if all(a @ x - b <= 1e-12 for a, b in lines)]
    return min(inside, key=lambda x: float((x - y) @ (x - y)))


def rows_of(slot: Slot) -> Rows:
    return [(slot.A[n], float(slot.b[n])) for n in range(2)]


# -- COLDQ without a horizon ---------------------------------------------------------------------


def coldq_anytime(slots: dict[int, Slot], epsilon: float = 0.005) -> Run:
    s = agent(slots)
    x, Q, steps = {1: START}, {1: np.full(2, epsilon)}, []
    for t in range(2, T + 2):
        before = s[t - 1]
        step = prox(gradient(before, x[t - 1]), math.sqrt(t - 1), x[t - 1], Q[t - 1], before)
        x[t] = step.x
        steps.append(step)
        if t <= T:
            eta, gamma = 1.0 / t**2, epsilon * t**2
            Q[t] = np.maximum((1.0 - eta) * Q[t - 1] + violation(s[t], x[t]), gamma)
    return Run(listed(x), Q[T], queues=list(Q.values()), steps=steps)


def coldq_doubling(slots: dict[int, Slot], epsilon: float = 0.02, v: float = 0.5) -> Run:
    """Epoch after epoch, each a plain run of Algorithm 1 from the decision the last one left."""
    s = agent(slots)
    x, Q = {1: START}, {}
    for first in (1, 2, 4, 8):
        for t in range(first, min(2 * first, T + 1)):
            own = t - first + 1
            if own == 1:
                Q[t] = np.full(2, epsilon * first)
            else:
                grown = (1.0 - 1.0 / first) * Q[t - 1] + violation(s[t], x[t])
                Q[t] = np.maximum(grown, epsilon * first)
            d = gradient(s[t], x[t])
            x[t + 1] = prox(d, own ** ((1.0 - v) / 2.0), x[t], Q[t], s[t]).x
    return Run(listed(x), Q[T], queues=list(Q.values()))


# -- Projections ---------------------------------------------------------------------------------


def clasp(slots: dict[int, Slot], eta: Callable[[int], float]) -> Run:
    s = agent(slots)
    x = {1: START}
    for t in range(1, T + 1):
        x[t + 1] = nearest(x[t] - eta(t) * gradient(s[t], x[t]), rows_of(s[t]))
    return Run(listed(x))


def nested(slots: dict[int, Slot], G: float = 3.0) -> Run:
    s = agent(slots)
    x, S = {1: START}, {0: list[tuple[Vector, float]]()}
    for t in range(1, T + 1):
        eta = DIAMETER / (G * math.sqrt(t))
        y = nearest(x[t] - eta * gradient(s[t], x[t]), S[t - 1])
        S[t] = S[t - 1] + rows_of(s[t])
        x[t + 1] = nearest(y, S[t])
    return Run(listed(x))


def switch(slots: dict[int, Slot], G: float = 3.0, limit: float = 0.5) -> Run:
    """Play x_t by nested projections while CCV(t-1) is at most the limit."""
    s = agent(slots)
    x, S, CCV = {1: START}, list[tuple[Vector, float]](), {0: 0.0}
    Q, squares = 0.0, 0.0
    scale, rate = 1.0 / (2.0 * G * DIAMETER), 1.0 / (2.0 * math.sqrt(T))
    for t in range(1, T + 1):
        excess, subgradient = worst_row(s[t], x[t])
        CCV[t] = CCV[t - 1] + excess
        d = gradient(s[t], x[t])
        if CCV[t] <= limit:
            y = nearest(x[t] - DIAMETER / (G * math.sqrt(t)) * d, S)
            S = S + rows_of(s[t])
            x[t + 1] = nearest(y, S)
        else:
            Q += scale * excess
            nabla = scale * d + rate * math.exp(rate * Q) * scale * subgradient
            squares += float(nabla @ nabla)
            eta = math.sqrt(2.0) * DIAMETER / (2.0 * math.sqrt(squares))
            x[t + 1] = project(x[t] - eta * nabla)
    return Run(listed(x), np.array(Q), queues=[np.array(value) for value in CCV.values()])


def polyak(slots: dict[int, Slot], eta: float = 0.3, rho: float = 0.05) -> Run:
    s = agent(slots)
    x = {1: START}
    for t in range(1, T + 1):
        g = s[t].A @ x[t] - s[t].b
        n = 0 if g[0] >= g[1] else 1
        sub = s[t].A[n]
        y = x[t] - eta * gradient(s[t], x[t])
        excess = max(0.0, float(g[n] + sub @ (y - x[t]) + rho))
        x[t + 1] = project(y - excess * sub / (sub @ sub))
    return Run(listed(x))


def supantha_sinha2026(slots: dict[int, Slot], G: float = 1.5) -> Run:
    """Ader, with 4 G for its gradient bound, on f + [g]_+ + 2 G dist(x, X_t)."""
    s = agent(slots)
    N = math.ceil(0.5 * math.log2(1.0 + 4.0 * T / 7.0)) + 1
    experts, D = range(1, N + 1), 4.0 * G
    eta = {i: 2.0 ** (i - 1) * (DIAMETER / D) * math.sqrt(7.0 / (2.0 * T)) for i in experts}
    kappa = math.sqrt(2.0 / T) / (D * DIAMETER)
    w = {i: (N + 1.0) / (N * i * (i + 1)) for i in experts}
    x = dict.fromkeys(experts, START)
    played = {1: START}
    for t in range(1, T + 1):
        here = played[t]
        nabla = gradient(s[t], here) + worst_row(s[t], here)[1]
        apart = here - nearest(here, rows_of(s[t]))
        if math.hypot(*apart) > 0.0:
            nabla = nabla + 2.0 * G * apart / math.hypot(*apart)
        w = {i: w[i] * math.exp(-kappa * nabla @ (x[i] - here)) for i in experts}
        total = sum(w.values())
        x = {i: project(x[i] - eta[i] * nabla) for i in experts}
        played[t + 1] = sum((w[i] / total * x[i] for i in experts), np.zeros(2))
    return Run(listed(played))


# -- On a network --------------------------------------------------------------------------------

Network = dict[int, list[Vector]]


def mixed(x: list[Vector], t: int) -> list[Vector]:
    W = mixing(t)
    return [sum((W[i, j] * x[j] for j in range(AGENTS)), np.zeros(2)) for i in range(AGENTS)]


def decentralised_coldq(slots: dict[int, Slot], epsilon: float = 0.01) -> Run:
    s = [agent(slots, i) for i in range(AGENTS)]
    eta, gamma = 1.0 / T, epsilon * T
    x: Network = {1: [START] * AGENTS}
    Q: Network = {1: [np.full(2, gamma)] * AGENTS}
    for t in range(2, T + 2):
        z = mixed(x[t - 1], t - 1)
        x[t] = [
            prox(gradient(s[i][t - 1], x[t - 1][i]), math.sqrt(t - 1), z[i], Q[t - 1][i],
                 s[i][t - 1]).x
            for i in range(AGENTS)
        ]  # fmt: skip
        if t <= T:
            Q[t] = [
                np.maximum((1.0 - eta) * Q[t - 1][i] + violation(s[i][t], x[t][i]), gamma)
                for i in range(AGENTS)
            ]
    return Run([np.array(x[t]) for t in range(1, T + 2)], np.array(Q[T]))


def decentralised_recoo(slots: dict[int, Slot]) -> Run:
    s = [agent(slots, i) for i in range(AGENTS)]
    x: Network = {1: [START] * AGENTS}
    Q: Network = {1: [np.zeros(2)] * AGENTS}
    for t in range(2, T + 2):
        z = mixed(x[t - 1], t - 1)
        alpha, gamma = 0.5 * (t - 1) ** 0.5, (t - 1) ** 0.51
        x[t] = [
            prox(gradient(s[i][t - 1], x[t - 1][i]), alpha, z[i], gamma * Q[t - 1][i],
                 s[i][t - 1]).x
            for i in range(AGENTS)
        ]  # fmt: skip
        Q[t] = [
            np.maximum(Q[t - 1][i] + gamma * violation(s[i][t - 1], x[t][i]), t**0.5)
            for i in range(AGENTS)
        ]
    return Run([np.array(x[t]) for t in range(1, T + 2)], np.array(Q[T + 1]))


def decentralised_yi2023(slots: dict[int, Slot]) -> Run:
    s = [agent(slots, i) for i in range(AGENTS)]
    x: Network = {1: [START] * AGENTS}
    q: Network = {1: [np.zeros(2)] * AGENTS}
    for t in range(1, T + 1):
        alpha, beta, gamma = 1.0 / math.sqrt(t), 0.5 / math.sqrt(t), 2.0 / math.sqrt(t)
        z = mixed(x[t], t)
        x[t + 1], q[t + 1] = [], []
        for i in range(AGENTS):
            slot, own = s[i][t], x[t][i]
            g = slot.A @ own - slot.b
            J = np.array([slot.A[n] if g[n] > 0.0 else np.zeros(2) for n in range(2)])
            new = project(z[i] - alpha * (gradient(slot, own) + J.T @ q[t][i]))
            linear_model = np.maximum(g, 0.0) + J @ (new - own)
            x[t + 1].append(new)
            q[t + 1].append(np.maximum((1.0 - beta * gamma) * q[t][i] + gamma * linear_model, 0.0))
    return Run([np.array(x[t]) for t in range(1, T + 2)], np.array(q[T + 1]))


RULES: dict[str, Callable[[dict[int, Slot]], Run]] = {
    "coldq-anytime": coldq_anytime,
    "coldq-doubling": coldq_doubling,
    "clasp": lambda slots: clasp(slots, eta=lambda t: DIAMETER / (5.0 * math.sqrt(t))),
    # The usual modulus is 2 mu with mu = 0.5.
    "clasp-strongly-convex": lambda slots: clasp(slots, eta=lambda t: 1.0 / (1.0 * t)),
    "nested": nested,
    "switch": switch,
    "polyak": polyak,
    "supantha-sinha2026": supantha_sinha2026,
    "decentralised-coldq": decentralised_coldq,
    "decentralised-recoo": decentralised_recoo,
    "decentralised-yi2023": decentralised_yi2023,
}
