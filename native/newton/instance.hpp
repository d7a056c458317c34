// The per-slot problem with affine rows on a box, and the memory that a dual method works in.
//
//     min over lower <= x <= upper of  <gradient, x - center> + alpha |x - center|^2
//                                      + sum_n max{ m (A_n x - b_n) : m in [floor_n, weight_n] }
//
// Divided by 2 alpha, with y = center - gradient / (2 alpha), its dual is
//
//     max over mu in [lo, hi] of  min over x of |x - y|^2 / 2 + mu'(A x - b) - mu' C mu / 2,
//
// concave and piecewise quadratic, with the minimiser x(mu) = clip(y - A'mu) and the gradient
// A x(mu) - b - C mu. The compliance C = 2 alpha * soft is diagonal and mostly zero; rows of a
// least-squares loss have it.
#pragma once

#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

// A number type T is double for one instance, Pack<W> for W of them in lanes.
template <class T>
struct Instance {
    Size n, p;
    const T *center, *gradient;
    T alpha;
    const T *floor, *weights, *soft;  // of n rows
    const T *A, *b;                   // n times p, n
    const T *lower, *upper;           // p
};

template <class T>
struct Iterate {
    // Of p coordinates: z = y - A'mu, carried along by increments; w = A'd, the direction; free is
    // 1 where x moves with z, else 0; terms is the size of the terms that z is the sum of.
    T *y, *z, *w, *free, *terms, *x;
    // Of n rows: multipliers and their bounds, the dual's gradient g and the size of its terms, the
    // row's squared length where coordinates can move, the compliance, and the direction d.
    T *mu, *lo, *hi, *g, *scale, *norm, *soft, *d;
    // Of the quadratic piece: moving is 1 for rows whose multiplier should move, side is -1 or 1
    // where d is at its bound below or above; the rest is the system of the free entries.
    T *moving, *side, *rhs, *solved, *column, *hessian, *factor;
    Size* order;
};

constexpr Size ITERATE_COLUMNS = 6, ITERATE_ROWS = 14;

// Where row a of a lower triangle starts.
inline Size triangle(Size a) { return a * (a + 1) / 2; }

// How many numbers of type T an iterate takes, whose systems have at most m rows.
inline Size iterate_size(Size n, Size p, Size m) {
    return ITERATE_COLUMNS * p + ITERATE_ROWS * n + m * m + triangle(m);
}
inline Size iterate_size(Size n, Size p) { return iterate_size(n, p, n); }

template <class T>
inline Iterate<T> iterate_in(T* memory, Size n, Size p) {
    Iterate<T> at;
    T** columns[] = {&at.y, &at.z, &at.w, &at.free, &at.terms, &at.x};
    for (T** line : columns) *line = memory, memory += p;
    T** rows[] = {&at.mu, &at.lo,     &at.hi,   &at.g,   &at.scale,  &at.norm,  &at.soft,
                  &at.d,  &at.moving, &at.side, &at.rhs, &at.solved, &at.column};
    for (T** line : rows) *line = memory, memory += n;
    at.order = reinterpret_cast<Size*>(memory);
    memory += n;
    at.hessian = memory;
    at.factor = memory + n * n;
    return at;
}

constexpr double INFINITE = __builtin_huge_val();
constexpr double NOT_A_NUMBER = __builtin_nan("");
constexpr double TINY = 1e-300;  // guards a division by zero

template <class T>
COLDQ_INLINE T clip(T z, T lower, T upper) {
    return smaller(larger(z, lower), upper);
}

}  // namespace coldq::COLDQ_LEVEL
