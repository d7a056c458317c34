"""The loops behind :mod:`coldq.contractions`: plain functions, compiled there."""

import math

from numba import float64, void

_number, _vector, _matrix = float64[:], float64[::1], float64[:, ::1]


def dot(a, b, out):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    out[0] = total


def matvec(A, x, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total


def vecmat(A, v, out):
    for i in range(A.shape[1]):
        out[i] = 0.0
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            out[i] += A[k, i] * v[k]


def affine_value(A, x, b, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total - b[k]


def least_squares_gradient(H, x, y, out):
    for i in range(H.shape[1]):
        out[i] = 0.0
    for k in range(H.shape[0]):
        error = 0.0
        for i in range(H.shape[1]):
            error += H[k, i] * x[i]
        error -= y[k]
        for i in range(H.shape[1]):
            out[i] += H[k, i] * error


def log_capacity(scale, rate, x, out):
    total = 0.0
    for i in range(x.size):
        total += scale[i] * math.log1p(rate[i] * x[i])
    out[0] = total


def bounded_queue(queue, g, gain, eta, floor, out):
    for k in range(queue.size):
        out[k] = max((1.0 - eta) * queue[k] + gain * max(g[k], 0.0), floor)


def hedge(log_weights, points, played, gradient, kappa, out):
    largest = -math.inf
    for m in range(log_weights.size):
        surrogate = 0.0
        for i in range(played.size):
            surrogate += gradient[i] * (points[m, i] - played[i])
        out[m] = log_weights[m] - kappa * surrogate
        largest = max(largest, out[m])
    for m in range(log_weights.size):
        out[m] -= largest


def weighted_mean(log_weights, points, out):
    total = 0.0
    for i in range(points.shape[1]):
        out[i] = 0.0
    for m in range(log_weights.size):
        weight = math.exp(log_weights[m])
        total += weight
        for i in range(points.shape[1]):
            out[i] += weight * points[m, i]
    # Rounding must not take the mean out of a box that holds all points.
    for i in range(points.shape[1]):
        least, largest = math.inf, -math.inf
        for m in range(log_weights.size):
            least = min(least, points[m, i])
            largest = max(largest, points[m, i])
        out[i] = min(max(out[i] / total, least), largest)


def into_ball(x, center, radius, out):
    largest = 0.0
    for i in range(x.size):
        largest = max(largest, abs(x[i] - center[i]))
        out[i] = x[i]
    # Divided by the largest first: squares of huge numbers would overflow.
    total = 0.0
    if largest > 0.0:
        for i in range(x.size):
            total += ((x[i] - center[i]) / largest) ** 2
    norm = math.sqrt(total)
    if not (largest * norm <= radius):
        for i in range(x.size):
            out[i] = center[i] + (x[i] - center[i]) / largest / norm * radius


SIGNATURES = {
    "dot": (void(_vector, _vector, _number), "(p),(p)->()"),
    "matvec": (void(_matrix, _vector, _vector), "(n,p),(p)->(n)"),
    "vecmat": (void(_matrix, _vector, _vector), "(n,p),(n)->(p)"),
    "affine_value": (void(_matrix, _vector, _vector, _vector), "(n,p),(p),(n)->(n)"),
    "least_squares_gradient": (void(_matrix, _vector, _vector, _vector), "(m,p),(p),(m)->(p)"),
    "log_capacity": (void(_vector, _vector, _vector, _number), "(p),(p),(p)->()"),
    "bounded_queue": (
        void(_vector, _vector, float64, float64, float64, _vector),
        "(n),(n),(),(),()->(n)",
    ),
    "into_ball": (void(_vector, _vector, float64, _vector), "(p),(p),()->(p)"),
    # The experts are a leading axis of their arrays, so that these see them with any strides.
    "hedge": (
        void(_number, float64[:, :], _vector, _vector, float64, _number),
        "(m),(m,p),(p),(p),()->(m)",
    ),
    "weighted_mean": (void(_number, float64[:, :], _vector), "(m),(m,p)->(p)"),
}
