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


def implied(a, b, A, B, lower, upper, out):
    # For any factor l >= 0, on X and where A[k] x <= B[k]:
    #     a x - b <= max over X of (a - l A[k]) x - (b - l B[k]).
    # The right side, with what rounding may add to it, is convex and piecewise linear in l, so that
    # Newton's method from l = 0 finds where it stops being positive, if it does. It goes a little
    # too far on purpose: at the very place rounding would decide.
    p = a.size
    rounding = 4.0 * (p + 8) * 2.3e-16
    out[0] = 0.0
    for k in range(A.shape[0]):
        same = b >= B[k]
        for i in range(p):
            same = same and a[i] == A[k, i]
        factor = 0.0
        top = 1.0
        for _ in range(0 if same else p + 8):
            top = factor * B[k] - b + rounding * (abs(b) + factor * abs(B[k]))
            fall = -B[k] - rounding * abs(B[k])
            for i in range(p):
                size = abs(a[i]) + factor * abs(A[k, i])
                if size > 0.0 or A[k, i] != 0.0:
                    slope = a[i] - factor * A[k, i]
                    high = slope > 0.0 or (slope == 0.0 and A[k, i] < 0.0)
                    end = upper[i] if high else lower[i]
                    reach = rounding * max(abs(lower[i]), abs(upper[i]))
                    if reach == math.inf:
                        top = reach
                        break
                    top += reach * size + (slope * end if slope != 0.0 else 0.0)
                    fall += A[k, i] * end - reach * abs(A[k, i])
            if not (top > 0.0 and fall > 0.0 and top < math.inf):
                break
            factor += 1.000001 * top / fall
        if same or top <= 0.0:
            out[0] = 1.0
            return


def mix(W, x, out):
    # Absent neighbours are not touched: with the identity every bit of x stays what it is.
    for i in range(W.shape[0]):
        begun = False
        for j in range(W.shape[1]):
            weight = W[i, j]
            if weight != 0.0:
                for k in range(x.shape[1]):
                    term = weight * x[j, k]
                    out[i, k] = out[i, k] + term if begun else term
                begun = True


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
    "implied": (
        void(_vector, float64, _matrix, _vector, _vector, _vector, _number),
        "(p),(),(n,p),(n),(p),(p)->()",
    ),
    "mix": (void(_matrix, _matrix, _matrix), "(n,n),(n,p)->(n,p)"),
    "into_ball": (void(_vector, _vector, float64, _vector), "(p),(p),()->(p)"),
    # The experts are a leading axis of their arrays, so that these see them with any strides.
    "hedge": (
        void(_number, float64[:, :], _vector, _vector, float64, _number),
        "(m),(m,p),(p),(p),()->(m)",
    ),
    "weighted_mean": (void(_number, float64[:, :], _vector), "(m),(m,p)->(p)"),
}
