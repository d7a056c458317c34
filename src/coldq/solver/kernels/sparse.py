"""Compiled passes over sparse matrices by rows: data, indices and pointers.

SciPy would build new matrices for every choice of rows and columns, which costs more than the
passes themselves.
"""

from coldq.compiled import kernel


@kernel("VIIVV")
def times(data, indices, indptr, x, out):
    """Set `out` to A x."""
    for k in range(out.size):
        value = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            value += data[e] * x[indices[e]]
        out[k] = value


@kernel("VIIVV")
def add_back(data, indices, indptr, mu, out):
    """Add A'mu to `out`."""
    for k in range(mu.size):
        if mu[k] != 0.0:
            for e in range(indptr[k], indptr[k + 1]):
                out[indices[e]] += data[e] * mu[k]


@kernel("VIIIVII")
def copy_lines(data, indices, indptr, chosen, data_to, indices_to, indptr_to):
    """Fill the arrays of a matrix, of which the pointers are set, with the chosen lines."""
    for a in range(chosen.size):
        shift = indptr_to[a] - indptr[chosen[a]]
        for e in range(indptr[chosen[a]], indptr[chosen[a] + 1]):
            data_to[e + shift] = data[e]
            indices_to[e + shift] = indices[e]


@kernel("VIIVII")
def turn(data, indices, indptr, data_to, indices_to, indptr_to):
    """Fill the arrays of the transposed matrix; its pointers come as zeros."""
    for e in range(data.size):
        indptr_to[indices[e] + 1] += 1
    for i in range(indptr_to.size - 1):
        indptr_to[i + 1] += indptr_to[i]
    for k in range(indptr.size - 1):
        for e in range(indptr[k], indptr[k + 1]):
            to = indptr_to[indices[e]]
            data_to[to] = data[e]
            indices_to[to] = k
            indptr_to[indices[e]] = to + 1
    for i in range(indptr_to.size - 1, 0, -1):
        indptr_to[i] = indptr_to[i - 1]
    indptr_to[0] = 0


@kernel("VIIIVM")
def add_outer_products(data, indices, indptr, place, weight, H):
    """Add to H, which is zero, each line's outer product with itself, times the line's weight.

    `place` gives every entry's position in H, or -1, and rises along a line.
    """
    for i in range(weight.size):
        if weight[i] != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                a = place[indices[e]]
                if a >= 0:
                    entry = weight[i] * data[e]
                    for f in range(e, indptr[i + 1]):
                        c = place[indices[f]]
                        if c >= 0:
                            H[a, c] += entry * data[f]
    for a in range(H.shape[0]):
        for c in range(a):
            H[a, c] = H[c, a]


@kernel("IIIVI")
def join(indices, indptr, place, weight, first):
    """Set `first` to the first position that each is joined with, by lines that have a weight.

    `place` gives every entry's position, or -1.
    """
    for a in range(first.size):
        first[a] = a
    for i in range(weight.size):
        if weight[i] != 0.0:
            last = -1
            for e in range(indptr[i], indptr[i + 1]):
                a = place[indices[e]]
                if a >= 0:
                    while first[a] != a:
                        first[a] = first[first[a]]
                        a = first[a]
                    if last >= 0:
                        a, last = min(a, last), max(a, last)
                        first[last] = a
                    last = a
    for a in range(first.size):
        first[a] = first[first[a]]  # which is no later, and known
