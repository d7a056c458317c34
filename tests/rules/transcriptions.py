"""The update rules written down a second time: slowly, literally, and without the library.

Sequences are dictionaries that count slots from 1, so that the indices can be read against the
formulas: x[t] is the decision played in slot t, slots[t] what slot t reveals. :mod:`.record` keeps
what they give.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SEED = 2025
T = 15
LOWER = np.array([-1.0, -0.5])
UPPER = np.array([1.0, 2.0])
START = np.array([0.0, 0.0])  # the point of the box nearest to the origin
DIAMETER = math.sqrt(2.0**2 + 2.5**2)

# Every KKT condition holds up to this, relative to the numbers that go into it.
TOLERANCE = 1e-11

Vector = np.ndarray


class Slot(NamedTuple):
    """f(x) = 1/2 |H x - y|^2 and g(x) = A x - b."""

    H: np.ndarray
    y: np.ndarray
    A: np.ndarray
    b: np.ndarray


class Step(NamedTuple):
    """A minimiser with the multipliers of its rows, each between 0 and its cap."""

    x: Vector
    multipliers: Vector
    caps: Vector


class Run(NamedTuple):
    """Decisions x_1 .. x_{T+1}, the last queue formed, the last weights, and all steps taken."""

    decisions: list[Vector]
    queue: np.ndarray | None = None
    weights: np.ndarray | None = None
    queues: list[np.ndarray] | None = None
    steps: list[Step] | None = None


def draw_slots() -> dict[int, Slot]:
    """Targets are large and b is around 0, so that the losses pull against the constraints."""
    rng = np.random.default_rng(SEED)
    return {
        t: Slot(
            H=rng.uniform(-1.0, 1.0, (3, 2)),
            y=rng.uniform(-2.0, 2.0, 3),
            A=rng.uniform(-1.0, 1.0, (2, 2)),
            b=rng.uniform(-0.3, 0.3, 2),
        )
        for t in range(1, T + 1)
    }


def gradient(slot: Slot, x: Vector) -> Vector:
    return slot.H.T @ (slot.H @ x - slot.y)


def violation(slot: Slot, x: Vector) -> Vector:
    """[g(x)]_+"""
    return np.maximum(slot.A @ x - slot.b, 0.0)


def project(x: Vector) -> Vector:
    return np.minimum(np.maximum(x, LOWER), UPPER)


# -- The per-slot problem ----------------------------------------------------------------------


def objective(
    x: Vector, d: Vector, a: float, c: Vector, w: Vector, A: np.ndarray, b: Vector
) -> float:
    return float(d @ (x - c) + a * (x - c) @ (x - c) + w @ np.maximum(A @ x - b, 0.0))


def candidate(
    d: Vector,
    a: float,
    c: Vector,
    w: Vector,
    A: np.ndarray,
    b: Vector,
    rows: tuple[str, ...],
    coordinates: tuple[str, ...],
) -> tuple[Vector, Vector] | None:
    """x and the multipliers for one guess of which conditions hold with equality, if unique.

    Unknowns are x_0, x_1, l_0, l_1. There is one equation for each:
    a free coordinate has d_j + 2 a (x_j - c_j) + sum_n l_n A_nj = 0, another one is at its bound;
    a row on its kink has A_n x = b_n, another one has l_n = 0 or l_n = w_n.
    """
    matrix, right = np.zeros((4, 4)), np.zeros(4)
    for j in range(2):
        if coordinates[j] == "free":
            matrix[j, j] = 2.0 * a
            matrix[j, 2:] = A[:, j]
            right[j] = 2.0 * a * c[j] - d[j]
        else:
            matrix[j, j] = 1.0
            right[j] = LOWER[j] if coordinates[j] == "lower" else UPPER[j]
    for n in range(2):
        if rows[n] == "kink":
            matrix[2 + n, :2] = A[n]
            right[2 + n] = b[n]
        else:
            matrix[2 + n, 2 + n] = 1.0
            right[2 + n] = 0.0 if rows[n] == "zero" else w[n]
    try:
        solution = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        # The same point, if it is the minimiser, also shows up under another guess.
        return None
    return solution[:2], solution[2:]


def satisfies_kkt(
    x: Vector,
    multipliers: Vector,
    d: Vector,
    a: float,
    c: Vector,
    w: Vector,
    A: np.ndarray,
    b: Vector,
    rows: tuple[str, ...],
    coordinates: tuple[str, ...],
) -> bool:
    """The inequalities; the equations hold by the construction of the candidate."""
    slope = d + 2.0 * a * (x - c) + A.T @ multipliers
    slack = TOLERANCE * (1.0 + float(np.abs(d).max()) + 2.0 * a + float(w.max()))
    for j in range(2):
        if coordinates[j] == "lower" and slope[j] < -slack:
            return False
        if coordinates[j] == "upper" and slope[j] > slack:
            return False
        if not LOWER[j] - TOLERANCE <= x[j] <= UPPER[j] + TOLERANCE:
            return False
    for n in range(2):
        g = A[n] @ x - b[n]
        if rows[n] == "zero" and g > TOLERANCE:
            return False
        if rows[n] == "cap" and g < -TOLERANCE:
            return False
        if rows[n] == "kink" and not -slack <= multipliers[n] <= w[n] + slack:
            return False
    return True


def solve_step(d: Vector, a: float, c: Vector, w: Vector, A: np.ndarray, b: Vector) -> Step:
    """argmin over the box of <d, x - c> + a |x - c|^2 + sum_n w_n [A_n x - b_n]_+.

    All 3^4 guesses are tried; of those that satisfy the KKT conditions the best is taken.
    """
    found: list[tuple[float, Step]] = []
    for rows in itertools.product(("zero", "cap", "kink"), repeat=2):
        for coordinates in itertools.product(("lower", "upper", "free"), repeat=2):
            guess = candidate(d, a, c, w, A, b, rows, coordinates)
            if guess is None:
                continue
            x, multipliers = guess
            if satisfies_kkt(x, multipliers, d, a, c, w, A, b, rows, coordinates):
                found.append((objective(x, d, a, c, w, A, b), Step(x, multipliers, w)))
    if not found:
        raise ArithmeticError("no candidate satisfies the KKT conditions")
    return min(found, key=lambda pair: pair[0])[1]


def prox(d: Vector, a: float, center: Vector, w: Vector, slot: Slot) -> Step:
    return solve_step(d, a, center, w, slot.A, slot.b)


def listed(sequence: dict[int, Vector]) -> list[Vector]:
    return [sequence[t] for t in range(1, T + 2)]


# -- COLDQ -------------------------------------------------------------------------------------


def coldq(slots: dict[int, Slot], alpha: Callable[[int], float], eta: float, gamma: float) -> Run:
    x, Q, steps = {1: START}, {1: np.full(2, gamma)}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        step = prox(gradient(before, x[t - 1]), alpha(t - 1), x[t - 1], Q[t - 1], before)
        x[t] = step.x
        steps.append(step)
        if t <= T:
            Q[t] = np.maximum((1.0 - eta) * Q[t - 1] + violation(slots[t], x[t]), gamma)
    return Run(listed(x), Q[T], queues=list(Q.values()), steps=steps)


def coldq_convex(slots: dict[int, Slot], epsilon: float = 0.01) -> Run:
    return coldq(slots, alpha=lambda t: t**0.5, eta=1.0 / T, gamma=epsilon * T)


def coldq_strongly_convex(slots: dict[int, Slot], mu: float = 0.4, epsilon: float = 0.01) -> Run:
    return coldq(slots, alpha=lambda t: mu * t, eta=1.0 / T, gamma=epsilon * T)


# -- Expert tracking ---------------------------------------------------------------------------


def number_of_experts() -> int:
    return math.floor(0.5 * math.log2(1 + T)) + 1


def first_weights() -> dict[int, float]:
    M = number_of_experts()
    return {m: (M + 1) / (m * (m + 1) * M) for m in range(1, M + 1)}


def mean(weights: dict[int, float], points: dict[int, Vector]) -> Vector:
    total = np.zeros(2)
    for m, weight in weights.items():
        total = total + weight * points[m]
    return total


def next_weights(
    weights: dict[int, float], points: dict[int, Vector], played: Vector, slope: Vector
) -> dict[int, float]:
    """w_{t+1}[m] in proportion to w_t[m] exp(-kappa l_t(x_t[m])), where kappa = T^(-1/2)."""
    kappa = T**-0.5
    raw = {
        m: weight * math.exp(-kappa * float(slope @ (points[m] - played)))
        for m, weight in weights.items()
    }
    total = sum(raw.values())
    return {m: value / total for m, value in raw.items()}


def as_array(by_expert: dict[int, Any]) -> np.ndarray:
    return np.array([by_expert[m] for m in sorted(by_expert)])


def coldq_expert(slots: dict[int, Slot], shared_gradient: bool, epsilon: float = 0.01) -> Run:
    experts = range(1, number_of_experts() + 1)
    eta, gamma = T**-1.5, epsilon * T**1.5
    w = {1: first_weights()}
    x = {1: dict.fromkeys(experts, START)}
    Q = {1: {m: np.full(2, gamma) for m in experts}}
    played, steps = {1: mean(w[1], x[1])}, []
    for t in range(1, T + 1):
        common = gradient(slots[t], played[t])
        if t > 1:
            Q[t] = {
                m: np.maximum((1.0 - eta) * Q[t - 1][m] + violation(slots[t], x[t][m]), gamma)
                for m in experts
            }
        w[t + 1] = next_weights(w[t], x[t], played[t], common)
        x[t + 1] = {}
        for m in experts:
            d = common if shared_gradient else gradient(slots[t], x[t][m])
            step = prox(d, t**0.5 / 2.0 ** (m - 1), x[t][m], Q[t][m], slots[t])
            x[t + 1][m] = step.x
            steps.append(step)
        played[t + 1] = mean(w[t + 1], x[t + 1])
    queues = [as_array(queue) for queue in Q.values()]
    return Run(listed(played), as_array(Q[T]), as_array(w[T + 1]), queues, steps)


def recoo_expert(slots: dict[int, Slot]) -> Run:
    """Copies of RECOO in reading (B), the hedge of COLDQ-Expert, and the gradient at x_t."""
    experts = range(1, number_of_experts() + 1)
    w = {1: first_weights()}
    x = {1: dict.fromkeys(experts, START)}
    Q = {1: {m: np.zeros(2) for m in experts}}
    played, steps = {1: mean(w[1], x[1])}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        common = gradient(before, played[t - 1])
        w[t] = next_weights(w[t - 1], x[t - 1], played[t - 1], common)
        x[t], Q[t] = {}, {}
        for m in experts:
            alpha, gamma = (t - 1) ** 0.5 / 2.0 ** (m - 1), (t - 1) ** 0.51
            step = prox(common, alpha, x[t - 1][m], gamma * Q[t - 1][m], before)
            x[t][m] = step.x
            steps.append(step)
            Q[t][m] = np.maximum(Q[t - 1][m] + gamma * violation(before, x[t][m]), t**0.5)
        played[t] = mean(w[t], x[t])
    queues = [as_array(queue) for queue in Q.values()]
    return Run(listed(played), as_array(Q[T + 1]), as_array(w[T + 1]), queues, steps)


def yi2021_expert(slots: dict[int, Slot], alpha0: float = 1.0, gamma0: float = 1.0) -> Run:
    """Algorithm 2 of Yi 2021, c = 1/2; gamma has index t in the primal step as in Algorithm 1."""
    experts = range(1, number_of_experts() + 1)

    def alpha(i: int, t: int) -> float:
        return 2.0 ** (i - 1) * alpha0 / t**0.5

    def gamma(i: int, t: int) -> float:
        return gamma0 / math.sqrt(alpha(i, t))

    w = {1: first_weights()}
    x = {1: dict.fromkeys(experts, START)}
    q = {0: {i: np.zeros(2) for i in experts}}
    played, steps = {1: mean(w[1], x[1])}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        common = gradient(before, played[t - 1])
        w[t] = next_weights(w[t - 1], x[t - 1], played[t - 1], common)
        x[t], q[t - 1] = {}, {}
        for i in experts:
            increment = gamma(i, t - 1) * violation(before, x[t - 1][i])
            q[t - 1][i] = q[t - 2][i] + increment
            q_hat = q[t - 1][i] + increment
            step = prox(common, 1.0 / alpha(i, t - 1), x[t - 1][i], gamma(i, t) * q_hat, before)
            x[t][i] = step.x
            steps.append(step)
        played[t] = mean(w[t], x[t])
    queues = [as_array(queue) for queue in q.values()]
    return Run(listed(played), as_array(q[T]), as_array(w[T + 1]), queues, steps)


# -- RECOO -------------------------------------------------------------------------------------


def recoo_drift(slots: dict[int, Slot]) -> Run:
    """Reading (B): the queue adds what the step itself has left of the constraint it was given."""
    x, Q, steps = {1: START}, {1: np.zeros(2)}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        alpha, gamma = 0.5 * (t - 1) ** 0.5, (t - 1) ** 0.51
        step = prox(gradient(before, x[t - 1]), alpha, x[t - 1], gamma * Q[t - 1], before)
        x[t] = step.x
        steps.append(step)
        Q[t] = np.maximum(Q[t - 1] + gamma * violation(before, x[t]), t**0.5)
    return Run(listed(x), Q[T + 1], queues=list(Q.values()), steps=steps)


def recoo_comparison(slots: dict[int, Slot]) -> Run:
    """Reading (A): the queue adds the violation that slot t reveals."""
    x, Q, steps = {1: START}, {1: np.zeros(2)}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        alpha, gamma = 0.5 * (t - 1) ** 0.5, (t - 1) ** 0.51
        step = prox(gradient(before, x[t - 1]), alpha, x[t - 1], gamma * Q[t - 1], before)
        x[t] = step.x
        steps.append(step)
        if t <= T:
            Q[t] = np.maximum(Q[t - 1] + t**0.51 * violation(slots[t], x[t]), t**0.5)
    return Run(listed(x), Q[T], queues=list(Q.values()), steps=steps)


# -- Yi 2021, Algorithm 1 ----------------------------------------------------------------------


def yi2021(slots: dict[int, Slot], printed_gamma: bool) -> Run:
    alpha0, gamma0, c = 2.0, 1.0, 0.5
    alpha = alpha0 / T**c
    gamma = gamma0 / T ** (c / 2.0) if printed_gamma else gamma0 * T ** (c / 2.0)
    x, q, steps = {1: START}, {0: np.zeros(2)}, []
    for t in range(2, T + 2):
        before = slots[t - 1]
        increment = gamma * violation(before, x[t - 1])
        q[t - 1] = q[t - 2] + increment
        q_hat = q[t - 1] + increment
        # The whole objective divided by alpha.
        step = prox(gradient(before, x[t - 1]), 1.0 / alpha, x[t - 1], gamma * q_hat, before)
        x[t] = step.x
        steps.append(step)
    return Run(listed(x), q[T], queues=list(q.values()), steps=steps)


# -- Gradient steps ----------------------------------------------------------------------------


def yi2023(slots: dict[int, Slot], later: int = 0) -> Run:
    x, q = {1: START}, {1: np.zeros(2)}
    for t in range(1, T + 1):
        root = math.sqrt(t + later)
        alpha, beta, gamma = 1.0 / root, 0.5 / root, 2.0 / root
        g = slots[t].A @ x[t] - slots[t].b
        J = np.array([slots[t].A[n] if g[n] > 0.0 else np.zeros(2) for n in range(2)])
        x[t + 1] = project(x[t] - alpha * (gradient(slots[t], x[t]) + J.T @ q[t]))
        linear_model = np.maximum(g, 0.0) + J @ (x[t + 1] - x[t])
        q[t + 1] = np.maximum((1.0 - beta * gamma) * q[t] + gamma * linear_model, 0.0)
    return Run(listed(x), q[T + 1], queues=list(q.values()))


def worst_row(slot: Slot, x: Vector) -> tuple[float, Vector]:
    """[max_n g^n(x)]_+ and one of its subgradients."""
    g = slot.A @ x - slot.b
    n = 0 if g[0] >= g[1] else 1
    return (float(g[n]), slot.A[n]) if g[n] > 0.0 else (0.0, np.zeros(2))


def sinha_vaze_convex(slots: dict[int, Slot], G: float = 3.0) -> Run:
    scale, rate = 1.0 / (2.0 * G * DIAMETER), 1.0 / (2.0 * math.sqrt(T))
    x, Q, squares = {1: START}, {0: 0.0}, 0.0
    for t in range(1, T + 1):
        excess, subgradient = worst_row(slots[t], x[t])
        Q[t] = Q[t - 1] + scale * excess
        price = rate * math.exp(rate * Q[t])
        nabla = scale * gradient(slots[t], x[t]) + price * scale * subgradient
        squares += float(nabla @ nabla)
        eta = math.sqrt(2.0) * DIAMETER / (2.0 * math.sqrt(squares))
        x[t + 1] = project(x[t] - eta * nabla)
    return Run(listed(x), np.array(Q[T]), queues=[np.array(value) for value in Q.values()])


def sinha_vaze_strongly_convex(slots: dict[int, Slot], G: float = 3.0, a: float = 0.5) -> Run:
    V = 8.0 * G**2 * math.log(T * math.e) / a
    x, Q = {1: START}, {0: 0.0}
    for t in range(1, T + 1):
        excess, subgradient = worst_row(slots[t], x[t])
        Q[t] = Q[t - 1] + excess
        nabla = V * gradient(slots[t], x[t]) + 2.0 * Q[t] * subgradient
        x[t + 1] = project(x[t] - nabla / (V * a * t))
    return Run(listed(x), np.array(Q[T]), queues=[np.array(value) for value in Q.values()])


def ogd(slots: dict[int, Slot], eta: Callable[[int], float]) -> Run:
    x = {1: START}
    for t in range(1, T + 1):
        x[t + 1] = project(x[t] - eta(t) * gradient(slots[t], x[t]))
    return Run(listed(x))


# -- All of them -------------------------------------------------------------------------------

RULES: dict[str, Callable[[dict[int, Slot]], Run]] = {
    "coldq": coldq_convex,
    "coldq-strongly-convex": coldq_strongly_convex,
    "coldq-expert-own": lambda slots: coldq_expert(slots, shared_gradient=False),
    "coldq-expert-shared": lambda slots: coldq_expert(slots, shared_gradient=True),
    "recoo-drift": recoo_drift,
    "recoo-comparison": recoo_comparison,
    "recoo-expert": recoo_expert,
    "yi2021": lambda slots: yi2021(slots, printed_gamma=False),
    "yi2021-printed-gamma": lambda slots: yi2021(slots, printed_gamma=True),
    "yi2021-expert": yi2021_expert,
    "yi2023": yi2023,
    "yi2023-next-index": lambda slots: yi2023(slots, later=1),
    "sinha-vaze-convex": sinha_vaze_convex,
    "sinha-vaze-strongly-convex": sinha_vaze_strongly_convex,
    "ogd": lambda slots: ogd(slots, eta=lambda t: DIAMETER / (5.0 * math.sqrt(t))),
    # H = 2 mu with mu = 0.5.
    "ogd-strongly-convex": lambda slots: ogd(slots, eta=lambda t: 1.0 / (1.0 * t)),
}
