"""The contractions as plain Python loops, of numbers and lists of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Numbers = Sequence[float]
Rows = Sequence[Numbers]


def ordered(terms: Iterable[float]) -> float:
    """Term i goes to the partial sum i mod 8, and these are joined as a tree."""
    s = [0.0] * 8
    for i, term in enumerate(terms):
        s[i % 8] += term
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def dot(a: Numbers, b: Numbers) -> float:
    return ordered(x * y for x, y in zip(a, b, strict=True))


def matvec(A: Rows, x: Numbers) -> list[float]:
    return [dot(row, x) for row in A]


def vecmat(A: Rows, v: Numbers) -> list[float]:
    return [dot(column, v) for column in zip(*A, strict=True)]


def affine_value(A: Rows, x: Numbers, b: Numbers) -> list[float]:
    return [dot(row, x) - limit for row, limit in zip(A, b, strict=True)]


def least_squares_gradient(H: Rows, x: Numbers, y: Numbers) -> list[float]:
    return vecmat(H, affine_value(H, x, y))


def log_capacity(scale: Numbers, rate: Numbers, x: Numbers) -> float:
    return ordered(s * math.log1p(r * z) for s, r, z in zip(scale, rate, x, strict=True))


def bounded_queue(Q: Numbers, g: Numbers, gain: float, eta: float, floor: float) -> list[float]:
    moved = [(1.0 - eta) * q + gain * max(v, 0.0) for q, v in zip(Q, g, strict=True)]
    return [max(entry, floor) for entry in moved]


def hedge(
    logs: Numbers, points: Rows, played: Numbers, gradient: Numbers, kappa: float
) -> list[float]:
    moves = [[z - x for z, x in zip(point, played, strict=True)] for point in points]
    new = [log - kappa * dot(gradient, move) for log, move in zip(logs, moves, strict=True)]
    return [entry - max(new) for entry in new]


def weighted_mean(logs: Numbers, points: Rows) -> list[float]:
    weights = [math.exp(log) for log in logs]
    means = [dot(weights, column) / ordered(weights) for column in zip(*points, strict=True)]
    return [
        min(max(mean, min(column)), max(column))
        for mean, column in zip(means, zip(*points, strict=True), strict=True)
    ]


def into_ball(x: Numbers, center: Numbers, radius: float) -> list[float]:
    away = [z - c for z, c in zip(x, center, strict=True)]
    largest = max(map(abs, away))
    if largest == 0.0:
        return list(x)
    norm = math.sqrt(ordered((d / largest) ** 2 for d in away))
    if largest * norm <= radius:
        return list(x)
    return [c + d / largest / norm * radius for c, d in zip(center, away, strict=True)]
