"""The loops behind :mod:`coldq.contractions`."""

import math

from coldq.compiled import batch_kernel, exact_inlined, matrix, vector

# Loops that :mod:`coldq.solver.kernels.queued` runs as well: one order of sums, one set of bits.


@exact_inlined
def set_matvec(A, x, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total


@exact_inlined
def set_affine_value(A, x, b, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total - b[k]


@exact_inlined
def set_least_squares_gradient(H, x, y, out):
    for i in range(H.shape[1]):
        out[i] = 0.0
    for k in range(H.shape[0]):
        error = 0.0
        for i in range(H.shape[1]):
            error += H[k, i] * x[i]
        error -= y[k]
        for i in range(H.shape[1]):
            out[i] += H[k, i] * error


@exact_inlined
def set_bounded_queue(queue, g, gain, eta, floor, out):
    for k in range(queue.size):
        out[k] = max((1.0 - eta) * queue[k] + gain * max(g[k], 0.0), floor)


@batch_kernel("(p),(p)->()")
def dot(sizes, at):
    a, b, out = vector(at[0], sizes[0]), vector(at[1], sizes[0]), vector(at[2], 1)
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    out[0] = total
    return 0.0


@batch_kernel("(n,p),(p)->(n)")
def matvec(sizes, at):
    n, p = sizes[0], sizes[1]
    set_matvec(matrix(at[0], n, p), vector(at[1], p), vector(at[2], n))
    return 0.0


@batch_kernel("(n,p),(n)->(p)")
def vecmat(sizes, at):
    n, p = sizes[0], sizes[1]
    A, v, out = matrix(at[0], n, p), vector(at[1], n), vector(at[2], p)
    for i in range(p):
        out[i] = 0.0
    for k in range(n):
        for i in range(p):
            out[i] += A[k, i] * v[k]
    return 0.0


@batch_kernel("(n,p),(p),(n)->(n)")
def affine_value(sizes, at):
    n, p = sizes[0], sizes[1]
    set_affine_value(matrix(at[0], n, p), vector(at[1], p), vector(at[2], n), vector(at[3], n))
    return 0.0


@batch_kernel("(m,p),(p),(m)->(p)")
def least_squares_gradient(sizes, at):
    m, p = sizes[0], sizes[1]
    H, x, y, out = matrix(at[0], m, p), vector(at[1], p), vector(at[2], m), vector(at[3], p)
    set_least_squares_gradient(H, x, y, out)
    return 0.0


@batch_kernel("(p),(p),(p)->()")
def log_capacity(sizes, at):
    p = sizes[0]
    scale, rate, x = vector(at[0], p), vector(at[1], p), vector(at[2], p)
    total = 0.0
    for i in range(p):
        total += scale[i] * math.log1p(rate[i] * x[i])
    vector(at[3], 1)[0] = total
    return 0.0


@batch_kernel("(n),(n),(),(),()->(n)")
def bounded_queue(sizes, at):
    n = sizes[0]
    queue, g, out = vector(at[0], n), vector(at[1], n), vector(at[5], n)
    gain, eta, floor = vector(at[2], 1)[0], vector(at[3], 1)[0], vector(at[4], 1)[0]
    set_bounded_queue(queue, g, gain, eta, floor, out)
    return 0.0


# The experts are a leading axis of their arrays, so that these see them with any step.


@exact_inlined
def set_hedge(m, p, logs, logs_step, points, points_step, played, gradient, kappa, out):
    largest = -math.inf
    for j in range(m):
        point = vector(points + 8 * j * points_step, p)
        surrogate = 0.0
        for i in range(p):
            surrogate += gradient[i] * (point[i] - played[i])
        out[j] = vector(logs + 8 * j * logs_step, 1)[0] - kappa * surrogate
        largest = max(largest, out[j])
    for j in range(m):
        out[j] -= largest


@exact_inlined
def set_weighted_mean(m, p, logs, logs_step, points, points_step, out):
    total = 0.0
    for i in range(p):
        out[i] = 0.0
    for j in range(m):
        point = vector(points + 8 * j * points_step, p)
        weight = math.exp(vector(logs + 8 * j * logs_step, 1)[0])
        total += weight
        for i in range(p):
            out[i] += weight * point[i]
    # Rounding must not take the mean out of a box that holds all points.
    for i in range(p):
        least, largest = math.inf, -math.inf
        for j in range(m):
            value = vector(points + 8 * (j * points_step + i), 1)[0]
            least = min(least, value)
            largest = max(largest, value)
        out[i] = min(max(out[i] / total, least), largest)


@batch_kernel("(m*),(m*,p),(p),(p),()->(m)")
def hedge(sizes, at):
    m, p = sizes[0], sizes[1]
    played, gradient, kappa = vector(at[2], p), vector(at[3], p), vector(at[4], 1)[0]
    out = vector(at[5], m)
    set_hedge(m, p, at[0], sizes[2], at[1], sizes[3], played, gradient, kappa, out)
    return 0.0


@batch_kernel("(m*),(m*,p)->(p)")
def weighted_mean(sizes, at):
    m, p = sizes[0], sizes[1]
    set_weighted_mean(m, p, at[0], sizes[2], at[1], sizes[3], vector(at[2], p))
    return 0.0


@batch_kernel("(n,n),(n,p)->(n,p)")
def mix(sizes, at):
    # Absent neighbours are not touched: with the identity every bit of x stays what it is.
    n, p = sizes[0], sizes[1]
    W, x, out = matrix(at[0], n, n), matrix(at[1], n, p), matrix(at[2], n, p)
    for i in range(n):
        begun = False
        for j in range(n):
            weight = W[i, j]
            if weight != 0.0:
                for k in range(p):
                    term = weight * x[j, k]
                    out[i, k] = out[i, k] + term if begun else term
                begun = True
        if not begun:
            for k in range(p):
                out[i, k] = 0.0
    return 0.0


@batch_kernel("(p),(p),()->(p)")
def into_ball(sizes, at):
    p = sizes[0]
    x, center, out = vector(at[0], p), vector(at[1], p), vector(at[3], p)
    radius = vector(at[2], 1)[0]
    largest = 0.0
    for i in range(p):
        largest = max(largest, abs(x[i] - center[i]))
        out[i] = x[i]
    # Divided by the largest first: squares of huge numbers would overflow.
    total = 0.0
    if largest > 0.0:
        for i in range(p):
            total += ((x[i] - center[i]) / largest) ** 2
    norm = math.sqrt(total)
    if not (largest * norm <= radius):
        for i in range(p):
            out[i] = center[i] + (x[i] - center[i]) / largest / norm * radius
    return 0.0


@batch_kernel("(p),(),(n,p),(n),(p),(p)->()")
def implied(sizes, at):
    # For any factor l >= 0, on X and where A[k] x <= B[k]:
    #     a x - b <= max over X of (a - l A[k]) x - (b - l B[k]).
    # The right side, with what rounding may add to it, is convex and piecewise linear in l, so that
    # Newton's method from l = 0 finds where it stops being positive, if it does. It goes a little
    # too far on purpose: at the very place rounding would decide.
    p, n = sizes[0], sizes[1]
    a, b, A, B = vector(at[0], p), vector(at[1], 1)[0], matrix(at[2], n, p), vector(at[3], n)
    lower, upper, out = vector(at[4], p), vector(at[5], p), vector(at[6], 1)
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
            return 0.0
    return 0.0
