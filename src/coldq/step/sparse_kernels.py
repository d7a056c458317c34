"""Compiled products with a sparse matrix, for :mod:`coldq.step.large`.

SciPy would build new matrices for every choice of rows and columns, which costs more than the
product itself.
"""

from numba import boolean, float64, int64, void

from coldq._compile import build_once, function

_vector, _whole = float64[::1], int64[::1]


@build_once
def chosen_gram():
    """Add ``A_CF A_CF'`` to H, column by column: of a sparse A few rows meet in one.

    A comes by columns; place gives each row's position in C, or -1, and H comes with zeros.
    """

    @function(void(_vector, _whole, _whole, _whole, boolean[::1], float64[:, ::1]))
    def kernel(data, indices, indptr, place, free, H):
        for i in range(free.size):
            if free[i]:
                for e in range(indptr[i], indptr[i + 1]):
                    a = place[indices[e]]
                    if a >= 0:
                        for f in range(indptr[i], indptr[i + 1]):
                            c = place[indices[f]]
                            if c >= 0:
                                H[a, c] += data[e] * data[f]

    return kernel


@build_once
def residual_terms():
    """``A'mu``, ``|A|'|mu|``, ``A x`` and ``|A| at`` in one pass, A by rows; all come as zeros."""

    @function(
        void(_vector, _whole, _whole, _vector, _vector, _vector, _vector, _vector, _vector,
             _vector)
    )  # fmt: skip
    def kernel(data, indices, indptr, mu, x, at, pull, size, value, scale):
        for k in range(mu.size):
            for e in range(indptr[k], indptr[k + 1]):
                i = indices[e]
                term = data[e] * mu[k]
                pull[i] += term
                size[i] += abs(term)
                value[k] += data[e] * x[i]
                scale[k] += abs(data[e]) * at[i]

    return kernel
