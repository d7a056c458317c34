// The per-slot problem with convex rows on a box, of which quadratic ones are solved here.
//
//     min over lower <= x <= upper of  <gradient, x - center> + alpha |x - center|^2
//                                      + sum_k max{ m g_k(x) : m in [floor_k, weight_k] }
//
// Divided by 2 alpha, with y = center - gradient / (2 alpha), its dual is
//
//     max over mu in [lo, hi] of  min over x of L(x, mu) = |x - y|^2 / 2 + mu'g(x),
//
// concave, with the gradient g(x(mu)) at the minimiser x(mu) of the Lagrangian.
#pragma once

#include "newton/residual.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double ROW_SHARE = 1e-3;    // of its largest coordinate: as what each counts in a row
constexpr double LAST_DIGITS = 1e-7;  // of the terms of a slope: what the last digit of x moves
constexpr double EPSILON = 0x1p-52;

// What rows are at x.
struct RowValues {
    double *g, *size;  // of n rows: values, and the sizes of the terms that they are the sums of
    double* largest;   // of n rows: the largest coordinate that a row has
    double *slope, *terms;  // n times p: the jacobian, and the sizes of its terms that x moves
};

// An instance and where its solution stands.
struct CurvedIterate {
    Size n, p;
    const double *lower, *upper;
    double *y, *x, *off;   // of p coordinates; off is memory to work in
    double *mu, *lo, *hi;  // of n rows
    RowValues at;
};

// The size of a coordinate: its own, or if greater that of the rounding that it may have.
template <class T>
COLDQ_INLINE T known_size(T x, T y, T lower, T upper) {
    return larger(absolute(x), smaller(T(DOUBT) * absolute(y), upper - lower));
}

// The relative KKT residual of (x, mu); NaN where anything is NaN or infinite.
//
// A coordinate is off in the slope of the Lagrangian, relative to the terms of that, or in x, if
// that is less: where alpha is tiny no step in a small box is long beside y. Terms of enforced rows
// do not count, for their multipliers may be huge; only their rounding does, where x and mu are
// `rounded` from more digits.
inline double curved_residual(const CurvedIterate& of, bool rounded) {
    double largest = 0.0, worst = 0.0, sum = 0.0;
    for (Size i = 0; i < of.p; ++i) largest = larger(largest, absolute(of.x[i]));
    across(of.p, [&]<class T>(T, Size i) {
        const T zero(0.0), x = load<T>(of.x + i), y = load<T>(of.y + i);
        const T lower = load<T>(of.lower + i), upper = load<T>(of.upper + i);
        T z = y, size = absolute(x) + absolute(y);
        for (Size k = 0; k < of.n; ++k) {
            const bool enforced = of.hi[k] == INFINITE || of.lo[k] == -INFINITE;
            const T term = load<T>(of.at.slope + k * of.p + i) * T(of.mu[k]);
            const T moved = load<T>(of.at.terms + k * of.p + i) * T(absolute(of.mu[k]));
            const double share = !enforced ? 1.0 : rounded ? LAST_DIGITS : 0.0;
            z = z - term;
            size = size + (T(share) * absolute(term) + T(LAST_DIGITS) * moved);
        }
        T slope = x - z;
        slope = select(x <= lower, smaller(slope, zero), slope);
        slope = select(x >= upper, larger(slope, zero), slope);
        const T way = absolute(x - clip(z, lower, upper)) - T(EPSILON * largest);
        const T off = smaller(absolute(slope) / larger(size, T(TINY)),
                              larger(way, zero) / larger(known_size(x, y, lower, upper), T(TINY)));
        store(of.off + i, select(absolute(slope) < T(INFINITE), off, T(NOT_A_NUMBER)));
    });
    for (Size i = 0; i < of.p; ++i) {
        worst = larger(worst, of.off[i]);
        sum += of.off[i];
    }
    for (Size k = 0; k < of.n; ++k) {
        const double mu = of.mu[k], g = of.at.g[k];
        const bool wrong = (mu > of.lo[k] && g < 0.0) || (mu < of.hi[k] && g > 0.0);
        if (wrong) worst = larger(worst, absolute(g) / larger(of.at.size[k], TINY));
        sum += 0.0 * g;
    }
    return absolute(sum) < INFINITE ? worst : NOT_A_NUMBER;
}

}  // namespace coldq::COLDQ_LEVEL
