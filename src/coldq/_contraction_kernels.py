"""The compiled sums behind losses and constraints; imported by :mod:`coldq.contractions`."""

import math

from numba import float64, void

from coldq._compile import gufunc

_number, _vector, _matrix = float64[:], float64[::1], float64[:, ::1]


@gufunc([void(_vector, _vector, _number)], "(p),(p)->()")
def dot(a, b, out):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    out[0] = total


@gufunc([void(_matrix, _vector, _vector)], "(n,p),(p)->(n)")
def matvec(A, x, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total


@gufunc([void(_matrix, _vector, _vector, _vector)], "(n,p),(p),(n)->(n)")
def affine_value(A, x, b, out):
    for k in range(A.shape[0]):
        total = 0.0
        for i in range(A.shape[1]):
            total += A[k, i] * x[i]
        out[k] = total - b[k]


@gufunc([void(_matrix, _vector, _vector, _vector)], "(m,p),(p),(m)->(p)")
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


@gufunc([void(_matrix, _vector, _vector)], "(n,p),(n)->(p)")
def vecmat(A, v, out):
    for i in range(A.shape[1]):
        out[i] = 0.0
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            out[i] += A[k, i] * v[k]


@gufunc([void(_vector, _vector, _vector, _number)], "(p),(p),(p)->()")
def log_capacity(scale, rate, x, out):
    total = 0.0
    for i in range(x.size):
        total += scale[i] * math.log1p(rate[i] * x[i])
    out[0] = total
