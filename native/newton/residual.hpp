// How good an answer is: the relative KKT residual, twice.
//
// `stationarity` decides whether the iteration may end; it has floors under what it is relative to,
// lest it never ends where x = 0 and b = 0. `judge` is relative to the instance alone, at any
// scale: what the answer is worth, and what users see.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_SIZE = 1e-6;  // of the largest coordinate: as what every coordinate counts
constexpr double NOISE = 4e-16;      // of the terms that z is the sum of: its rounding
constexpr double DOUBT =
    1e-6;  // of y: x is known up to the rounding of what it is the difference of

// Form z = y - A'mu afresh, and the size of its terms.
template <class T>
COLDQ_INLINE void form_z(const Instance<T>& of, const Iterate<T>& at) {
    for (Size i = 0; i < of.p; ++i) {
        at.z[i] = at.y[i];
        at.terms[i] = absolute(at.y[i]);
    }
    for (Size k = 0; k < of.n; ++k)
        for (Size i = 0; i < of.p; ++i) {
            const T term = of.A[k * of.p + i] * at.mu[k];
            at.z[i] = at.z[i] - term;
            at.terms[i] = at.terms[i] + absolute(term);
        }
}

// Whether g has a sign that row k's multiplier does not allow.
template <class T>
COLDQ_INLINE Mask<T> is_wrong(const Iterate<T>& at, Size k) {
    const T zero(0.0);
    return ((at.mu[k] > at.lo[k]) & (at.g[k] < zero)) | ((at.mu[k] < at.hi[k]) & (at.g[k] > zero));
}

// The largest relative error of x = clip(z), of the rows and of the multipliers' bounds; NaN where
// anything is NaN or infinite.
template <class T>
COLDQ_INLINE T stationarity(const Instance<T>& of, const Iterate<T>& at) {
    const T zero(0.0), one(1.0), tiny(TINY);
    T worst = zero, sum = zero;
    for (Size i = 0; i < of.p; ++i) {
        const T off =
            absolute(at.x[i] - clip(at.z[i], of.lower[i], of.upper[i])) / (at.terms[i] + one);
        worst = larger(worst, off);
        sum = sum + off;
    }
    for (Size k = 0; k < of.n; ++k) {
        T off = select(is_wrong(at, k), absolute(at.g[k]) / larger(at.scale[k], tiny), zero);
        off = larger(off,
                     larger(at.lo[k] - at.mu[k], at.mu[k] - at.hi[k]) / (one + absolute(at.mu[k])));
        worst = larger(worst, off);
        sum = sum + (off + select(at.lo[k] <= at.hi[k], at.g[k], T(NOT_A_NUMBER)));
    }
    return select(absolute(sum) < T(INFINITE), worst, T(NOT_A_NUMBER));
}

// What |x - clip(z)| is relative to at a bound, so that a coordinate is off by the least of two:
// its slope x - z relative to the terms of that, or its way to clip(z) relative to its own size. In
// a box that is small beside the terms, no way is long beside them.
template <class T>
COLDQ_INLINE T size_at_bound(T x, T z, T y, T terms, T lower, T upper) {
    const T tiny(TINY);
    const T share = absolute(x - clip(z, lower, upper)) / larger(absolute(x - z), tiny);
    return larger(
        larger(share * terms, larger(absolute(x), smaller(T(DOUBT) * absolute(y), upper - lower))),
        tiny);
}

// The residual of an answer whose z and terms are fresh. Rows are relative to the largest
// coordinate that they have if they stand `apart`, as those of a product's parts do, else to the
// largest of all.
template <class T>
COLDQ_INLINE T judge(const Instance<T>& of, const Iterate<T>& at, bool apart) {
    const T zero(0.0), tiny(TINY), noise(NOISE), share(LEAST_SIZE);
    T worst = zero, largest = zero, reach = zero;
    for (Size i = 0; i < of.p; ++i) largest = larger(largest, absolute(at.x[i]));
    for (Size i = 0; i < of.p; ++i) {
        const T x = at.x[i], z = at.z[i], lower = of.lower[i], upper = of.upper[i];
        const T own = absolute(at.y[i]), far = absolute(of.center[i]);
        reach = larger(reach, smaller(larger(-lower, upper), larger(own, far)));
        T off = absolute(x - clip(z, lower, upper));
        const T size = larger((own + far) + absolute(x), share * largest);
        const auto inside = (lower < z) & (z < upper);
        T at_bound = size;
        if (any((off > zero) & Mask<T>(!inside)))
            at_bound = select(off > zero, size_at_bound(x, z, at.y[i], size, lower, upper), size);
        off = select(inside, off + noise * (at.terms[i] - own), off);
        worst = larger(worst, off / larger(select(inside, size, at_bound), tiny));
    }
    for (Size k = 0; k < of.n; ++k) {
        const T* row = of.A + k * of.p;
        const T size = absolute(of.b[k]) + absolute(at.soft[k] * at.mu[k]);
        T own = largest;
        if (apart) {
            own = zero;
            for (Size i = 0; i < of.p; ++i)
                own = larger(own, select(row[i] == zero, zero, absolute(at.x[i])));
        }
        const T least = share * select(size > zero, own, larger(own, reach));
        const T terms = sum_over<T>(of.p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(row));
            return absolute(read(row)) * larger(absolute(V(read(at.x))), V(least));
        });
        worst = larger(
            worst, select(is_wrong(at, k), absolute(at.g[k]) / larger(size + terms, tiny), zero));
    }
    return worst;
}

}  // namespace coldq::COLDQ_LEVEL
