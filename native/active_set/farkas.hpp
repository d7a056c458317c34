// Farkas' lemma: a combination of enforced rows that no point of the box satisfies.
#pragma once

#include "precision.hpp"
#include "problem.hpp"

namespace coldq::COLDQ_LEVEL {

// Where r_k > 0 only for rows A_k x <= b_k and r_k < 0 only for rows A_k x >= b_k, every point that
// satisfies them has <A'r, x> <= <r, b>. So there is none if the least of <A'r, x> over the box is
// larger. Returns by how much, relative to the terms that it is the sum of, as they are at x where
// they cancel; 0 where nothing is proven. It reads nothing but the instance and the combination.
//
// A coordinate without a bound must not count in A'r: what is left there by rounding of 1e-20 of
// its terms would meet the gap only where x is 1e20 times as large as all else.
inline double farkas_gap(const AffineBox& given, const DoubleDouble* r, const double* x) {
    constexpr double CANCELLED = 1e-20;
    DoubleDouble gap(0.0);
    double terms = 0.0;
    for (Size k = 0; k < given.n; ++k) {
        const double sign = r[k].high;
        if (sign == 0.0) continue;
        const double bound = sign > 0.0 ? given.multiplier_upper[k] : -given.multiplier_lower[k];
        if (bound != INF || given.row_compliance(k) > 0.0) return 0.0;
        const DoubleDouble limit = r[k] * given.b[k];
        gap -= limit;
        terms += absolute(limit.high);
    }
    for (Size i = 0; i < given.p; ++i) {
        DoubleDouble slope(0.0);
        double size = 0.0;
        for (Size k = 0; k < given.n; ++k) {
            const double entry = given.A[k * given.p + i];
            if (r[k].high == 0.0 || entry == 0.0) continue;
            const DoubleDouble term = r[k] * entry;
            slope += term;
            size += absolute(term.high);
        }
        const bool counts = absolute(slope.high) > CANCELLED * size;
        const double end = slope.high > 0.0 ? given.lower[i] : given.upper[i];
        if (counts && __builtin_isinf(end)) return 0.0;
        if (counts) gap += slope * end;
        terms += size * absolute(counts ? end : x[i]);
    }
    const double relative = gap.high / terms;
    return relative > 0.0 ? relative : 0.0;  // nor where anything is no number
}

}  // namespace coldq::COLDQ_LEVEL
