"""Numbers as the sum of two floats, ``high + low``, of about 32 digits, compiled.

The processor needs no wider floats for it. Nothing that uses this may be compiled with fast
mathematics, which would take the low parts for zero.
"""

from coldq.compiled import below, exact_inlined


@exact_inlined
def add(a, a_low, b, b_low):
    s = a + b
    v = s - a
    e = (a - (s - v)) + (b - v) + (a_low + b_low)
    high = s + e
    return high, e - (high - s)


@exact_inlined
def product(a, b):
    p = a * b
    return p, below(a, b, p)


@exact_inlined
def times(a, a_low, b):
    p, e = product(a, b)
    e += a_low * b
    high = p + e
    return high, e - (high - p)


@exact_inlined
def multiply(a, a_low, b, b_low):
    p, e = product(a, b)
    e += a * b_low + a_low * b
    high = p + e
    return high, e - (high - p)


@exact_inlined
def divide(a, a_low, b, b_low):
    q = a / b
    r, r_low = times(b, b_low, q)
    r, r_low = add(a, a_low, -r, -r_low)
    rest = r / b
    high = q + rest
    return high, rest - (high - q)
