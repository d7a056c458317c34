"""Pairs of floats as complex numbers, and matrices of them.

A number is the sum of two floats, and they are the two parts of a complex one: its real part is the
number but for what is below its last digit, and that is the imaginary part. Nothing here may be
compiled with fast mathematics, which would take the second for zero.
"""

import math

from coldq.compiled import exact
from coldq.solver.kernels.pairs import add as sum_of
from coldq.solver.kernels.pairs import divide as quotient_of
from coldq.solver.kernels.pairs import multiply as product_of
from coldq.solver.kernels.pairs import times as times_one

ZERO, ONE = 0j, 1.0 + 0j
NO_PIVOT, NO_DIGIT = 1e-30, 1e-15  # of a diagonal of ones, and in doubles


# Not put into what calls them, which would take long to compile.
@exact
def add(a, b):
    high, low = sum_of(a.real, a.imag, b.real, b.imag)
    return complex(high, low)


@exact
def times(a, b):
    """A pair times a float."""
    high, low = times_one(a.real, a.imag, b)
    return complex(high, low)


@exact
def multiply(a, b):
    high, low = product_of(a.real, a.imag, b.real, b.imag)
    return complex(high, low)


@exact
def divide(a, b):
    high, low = quotient_of(a.real, a.imag, b.real, b.imag)
    return complex(high, low)


@exact
def plus(s, a, b):
    """s + a b; a is what may have many zeros."""
    if a.real == 0.0:
        return s
    t, t_low = product_of(a.real, a.imag, b.real, b.imag)
    high, low = sum_of(s.real, s.imag, t, t_low)
    return complex(high, low)


@exact
def plus_float(s, a, b):
    """s + a b of a float b, which may be zero often."""
    if b == 0.0:
        return s
    t, t_low = times_one(a.real, a.imag, b)
    high, low = sum_of(s.real, s.imag, t, t_low)
    return complex(high, low)


@exact
def scaled(a, size):
    """A pair times a power of two."""
    return complex(a.real * size, a.imag * size)


@exact
def pair(a):
    return complex(a, 0.0)


@exact
def ratio(lines, over, under, i):
    return divide(lines[over, i], lines[under, i])


@exact
def factor(rough, L, sizes, line, p):
    """Cholesky's factor in place, of the matrix brought to a diagonal of ones; whether there is
    one. Powers of two do it, so that nothing is rounded. The diagonal gets the inverses."""
    for i in range(p):
        d = L[i, i].real
        if not (d > 0.0 and d < math.inf):
            return False
        sizes[line, i] = pair(2.0 ** -math.floor(0.5 * math.log2(d)))
    least = NO_DIGIT if rough else NO_PIVOT
    for j in range(p):
        for i in range(j, p):
            v = scaled(L[i, j], sizes[line, i].real * sizes[line, j].real)
            if rough:
                high = v.real
                for k in range(j):
                    high -= L[i, k].real * L[j, k].real
                v = complex(high, v.imag)
            else:
                for k in range(j):
                    v = plus(v, -L[i, k], L[j, k])
            if i > j:
                L[i, j] = multiply(v, L[j, j])
                continue
            if not v.real > least:
                v = pair(least)
            root = math.sqrt(v.real)
            more = plus(v, pair(-root), pair(root)).real / (2.0 * root)
            high = root + more
            L[j, j] = divide(ONE, complex(high, more - (high - root)))
    return True


@exact
def back(rough, L, sizes, at, z, line, p):
    """Solve with a factor in place."""
    for i in range(p):
        v = scaled(z[line, i], sizes[at, i].real)
        if rough:
            high = v.real
            for j in range(i):
                high -= L[i, j].real * z[line, j].real
            v = pair(high)
        else:
            for j in range(i):
                v = plus(v, -L[i, j], z[line, j])
        z[line, i] = multiply(v, L[i, i])
    for i in range(p - 1, -1, -1):
        v = z[line, i]
        if rough:
            high = v.real
            for j in range(i + 1, p):
                high -= L[j, i].real * z[line, j].real
            v = pair(high)
        else:
            for j in range(i + 1, p):
                v = plus(v, -L[j, i], z[line, j])
        z[line, i] = multiply(v, L[i, i])
    for i in range(p):
        z[line, i] = scaled(z[line, i], sizes[at, i].real)


@exact
def inner_product(rough, A, r, lines, line):
    """A row times a line."""
    v = ZERO
    high = 0.0
    for i in range(A.shape[1]):
        if rough:
            high += A[r, i].real * lines[line, i].real
        else:
            v = plus(v, A[r, i], lines[line, i])
    return pair(high) if rough else v


@exact
def add_row(rough, lines, line, A, r, s):
    """Add s times a row to a line."""
    for i in range(A.shape[1]):
        if rough:
            lines[line, i] += A[r, i].real * s.real
        else:
            lines[line, i] = plus(lines[line, i], A[r, i], s)


@exact
def add_square(rough, L, c, line, s, p):
    """Add ``s c c'`` to the matrix, in its lower half."""
    for i in range(p):
        if rough:
            high = s.real * c[line, i].real
            for j in range(i + 1):
                L[i, j] += high * c[line, j].real
        elif c[line, i].real != 0.0:
            v = multiply(c[line, i], s)
            for j in range(i + 1):
                L[i, j] = plus(L[i, j], v, c[line, j])
