"""Small kernels, to try the cache and the calls with: each compiles in about a second."""

from __future__ import annotations

from coldq.compiled import batch_kernel, below, compiled, exact, kernel, matrix, vector

OFFSET = 0.5


@exact
def shifted(value):
    return value + OFFSET


@compiled
def total(values):
    s = 0.0
    for i in range(values.size):
        s += values[i]
    return s


@batch_kernel("(n,p),(p),()->(n)")
def scaled_product(sizes, at):
    """``factor A x``; returns its largest entry, if that is positive."""
    n, p = sizes[0], sizes[1]
    A, x, factor, out = (matrix(at[0], n, p), vector(at[1], p), vector(at[2], 1)[0],
                         vector(at[3], n))  # fmt: skip
    most = 0.0
    for k in range(n):
        s = 0.0
        for i in range(p):
            s += A[k, i] * x[i]
        out[k] = factor * s
        most = max(most, out[k])
    return most


@batch_kernel("(m*,p)->(p)?,()")
def column_sums(sizes, at):
    """The sums over lines that may lie apart, if wanted; and how many numbers on the stack work."""
    m, p, step = sizes[0], sizes[1], sizes[2]
    memory = vector(at[3], 1024)
    for i in range(memory.size):
        memory[i] = 1.0
    vector(at[2], 1)[0] = total(memory)
    if at[1] != 0:
        out = vector(at[1], p)
        for i in range(p):
            out[i] = 0.0
        for k in range(m):
            line = vector(at[0] + 8 * k * step, p)
            for i in range(p):
                out[i] += line[i]
    return 0.0


@kernel("VMIfi")
def everything(v, M, w, number, whole):
    """Something of every kind of argument."""
    return shifted(total(v)) + 10.0 * M[1, 0] + 100.0 * w[0] + number + whole


@kernel("VV")
def guarded_quotients(a, b):
    """Quotients where they are finite; the compiler may run all divisions ahead in its lanes."""
    largest = 0.0
    for i in range(a.size):
        quotient = a[i] / b[i] * 1e300
        largest = max(largest, quotient) if quotient < 1e308 else largest
    return largest


@kernel("V")
def three(v):
    """Several numbers at once."""
    return v[0], v[1], v[2]


@kernel("ff")
def long_product(a, b):
    """A product, and what rounding took from it."""
    return a * b, below(a, b, a * b)


@batch_kernel("()->()?")
def itself(sizes, at):
    return vector(at[0], 1)[0]


ALL = scaled_product, everything, guarded_quotients, three
