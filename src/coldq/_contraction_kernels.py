"""Contractions inside other kernels, with the bits of :mod:`coldq.contractions`: term i of a sum
goes to the partial sum i mod 8, and these are joined as a tree."""

import math

from coldq.compiled import exact_inlined, vector


@exact_inlined
def join(s0, s1, s2, s3, s4, s5, s6, s7):
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@exact_inlined
def partial_dot(A, k, x, first):
    total = 0.0
    for i in range(first, A.shape[1], 8):
        total += A[k, i] * x[i]
    return total


@exact_inlined
def row_dot(A, k, x):
    return join(
        partial_dot(A, k, x, 0), partial_dot(A, k, x, 1), partial_dot(A, k, x, 2),
        partial_dot(A, k, x, 3), partial_dot(A, k, x, 4), partial_dot(A, k, x, 5),
        partial_dot(A, k, x, 6), partial_dot(A, k, x, 7),
    )  # fmt: skip


@exact_inlined
def set_matvec(A, x, out):
    for k in range(A.shape[0]):
        out[k] = row_dot(A, k, x)


@exact_inlined
def set_affine_value(A, x, b, out):
    for k in range(A.shape[0]):
        out[k] = row_dot(A, k, x) - b[k]


@exact_inlined
def partial_slope(H, x, y, i, first):
    total = 0.0
    for k in range(first, H.shape[0], 8):
        total += H[k, i] * (row_dot(H, k, x) - y[k])
    return total


@exact_inlined
def set_least_squares_gradient(H, x, y, out):
    for i in range(H.shape[1]):
        out[i] = join(
            partial_slope(H, x, y, i, 0), partial_slope(H, x, y, i, 1),
            partial_slope(H, x, y, i, 2), partial_slope(H, x, y, i, 3),
            partial_slope(H, x, y, i, 4), partial_slope(H, x, y, i, 5),
            partial_slope(H, x, y, i, 6), partial_slope(H, x, y, i, 7),
        )  # fmt: skip


@exact_inlined
def set_bounded_queue(queue, g, gain, eta, floor, out):
    for k in range(queue.size):
        out[k] = max((1.0 - eta) * queue[k] + gain * max(g[k], 0.0), floor)


# The experts are a leading axis of their arrays, so that these see them with any step.


@exact_inlined
def partial_surrogate(gradient, point, played, first):
    total = 0.0
    for i in range(first, gradient.size, 8):
        total += gradient[i] * (point[i] - played[i])
    return total


@exact_inlined
def set_hedge(m, p, logs, logs_step, points, points_step, played, gradient, kappa, out):
    largest = -math.inf
    for j in range(m):
        point = vector(points + 8 * j * points_step, p)
        surrogate = join(
            partial_surrogate(gradient, point, played, 0),
            partial_surrogate(gradient, point, played, 1),
            partial_surrogate(gradient, point, played, 2),
            partial_surrogate(gradient, point, played, 3),
            partial_surrogate(gradient, point, played, 4),
            partial_surrogate(gradient, point, played, 5),
            partial_surrogate(gradient, point, played, 6),
            partial_surrogate(gradient, point, played, 7),
        )
        out[j] = vector(logs + 8 * j * logs_step, 1)[0] - kappa * surrogate
        largest = max(largest, out[j])
    for j in range(m):
        out[j] -= largest


@exact_inlined
def partial_weight(m, weights, first):
    total = 0.0
    for j in range(first, m, 8):
        total += weights[j]
    return total


@exact_inlined
def partial_mean(m, weights, points, points_step, i, first):
    total = 0.0
    for j in range(first, m, 8):
        total += weights[j] * vector(points + 8 * (j * points_step + i), 1)[0]
    return total


@exact_inlined
def set_weighted_mean(m, p, logs, logs_step, points, points_step, weights, out):
    """`weights` is memory for m numbers."""
    for j in range(m):
        weights[j] = math.exp(vector(logs + 8 * j * logs_step, 1)[0])
    total = join(
        partial_weight(m, weights, 0), partial_weight(m, weights, 1), partial_weight(m, weights, 2),
        partial_weight(m, weights, 3), partial_weight(m, weights, 4), partial_weight(m, weights, 5),
        partial_weight(m, weights, 6), partial_weight(m, weights, 7),
    )  # fmt: skip
    for i in range(p):
        mean = join(
            partial_mean(m, weights, points, points_step, i, 0),
            partial_mean(m, weights, points, points_step, i, 1),
            partial_mean(m, weights, points, points_step, i, 2),
            partial_mean(m, weights, points, points_step, i, 3),
            partial_mean(m, weights, points, points_step, i, 4),
            partial_mean(m, weights, points, points_step, i, 5),
            partial_mean(m, weights, points, points_step, i, 6),
            partial_mean(m, weights, points, points_step, i, 7),
        )
        # Rounding must not take the mean out of a box that holds all points.
        least, largest = math.inf, -math.inf
        for j in range(m):
            value = vector(points + 8 * (j * points_step + i), 1)[0]
            least = min(least, value)
            largest = max(largest, value)
        out[i] = min(max(mean / total, least), largest)
