// How good an answer from anywhere is: the relative residual of its optimality conditions.
#pragma once

#include "problem.hpp"

namespace coldq::COLDQ_LEVEL {

// How far the rows' limits are, at most, in the coordinate that each depends on most.
inline double row_reach(const AffineBox& given) {
    double reach = 0.0;
    for (Size k = 0; k < given.n; ++k) {
        double steep = 0.0;
        for (Size i = 0; i < given.p; ++i)
            steep = larger(steep, absolute(given.A[k * given.p + i]));
        if (steep > 0.0) reach = larger(reach, absolute(given.b[k]) / steep);
    }
    return reach;
}

// The worse of the two, the second relative to its size; what is no number stays.
inline double worse(double worst, double off, double size) {
    off = size > 0.0 ? off / size : off;
    return off > worst || off != off ? off : worst;
}

// The largest of these, relative to the instance alone:
//   |x_i - clip(y_i - (A'mu)_i)|, of the terms that this is the sum of;
//   |A_k x - b_k - compliance_k lambda_k| where lambda_k has room to go, of the terms of the row.
inline double relative_residual(const AffineBox& given, const double* x, const double* lambda) {
    constexpr double LEAST_SHARE = 1e-6;     // of the largest coordinate: as what each counts
    constexpr double ENFORCED_SHARE = 1e-5;  // of an enforced row's price, however long: what
                                             // x may be relative to
    constexpr double LAST_DIGIT = 0x1p-52, NOISE = 1e-28;
    const Size n = given.n, p = given.p;
    const double half = 0.5 / given.alpha, reach = row_reach(given);
    double longest = 0.0, worst = 0.0;
    for (Size i = 0; i < p; ++i) longest = larger(longest, absolute(x[i]));
    for (Size i = 0; i < p; ++i) {
        const double gradient = given.gradient[i] * half;
        double z = given.center[i] - gradient;
        double size = absolute(given.center[i]) + absolute(gradient);
        for (Size k = 0; k < n; ++k) {
            const double pull = lambda[k] * half * given.A[k * p + i];
            z -= pull;
            size += given.enforced(k) ? ENFORCED_SHARE * absolute(pull) : absolute(pull);
        }
        if (given.share && given.share[i] != 1.0) {
            z = given.middle[i] + given.share[i] * (z - given.middle[i]);
            size = absolute(given.middle[i]) + given.share[i] * size;
        }
        size = larger(size, LEAST_SHARE * longest);
        const double inside = clipped(z, given.lower[i], given.upper[i]);
        worst = worse(worst, absolute(x[i] - inside), size);
        if (z != z) worst = z;  // the largest of numbers would drop it
    }
    for (Size k = 0; k < n; ++k) {
        const double* const row = given.A + k * p;
        const double own = given.row_compliance(k) == 0.0 ? 0.0 : given.compliance[k] * lambda[k];
        double g = -given.b[k] - own, size = absolute(given.b[k]) + absolute(own), least = 0.0;
        for (Size i = 0; i < p; ++i)
            if (row[i] != 0.0) least = larger(least, LEAST_SHARE * absolute(x[i]));
        for (Size i = 0; i < p; ++i) {
            g += row[i] * x[i];
            // Where all terms vanish, so that no rounding of them has a size, the box has one, or
            // what x is the difference of.
            double far = larger(absolute(given.lower[i]), absolute(given.upper[i]));
            if (__builtin_isinf(far))
                far =
                    smaller(absolute(given.center[i]) + absolute(given.gradient[i] * half), reach);
            const double some = (given.b[k] != 0.0 ? NOISE : LAST_DIGIT) * far;
            size += absolute(row[i]) * larger(absolute(x[i]), larger(least, some));
        }
        const bool wrong = (lambda[k] > given.multiplier_lower[k] && g < 0.0) ||
                           (lambda[k] < given.multiplier_upper[k] && g > 0.0) || g != g;
        if (wrong) worst = worse(worst, absolute(g), size);
    }
    return worst;
}

// The same where what pulls at x, gradient and multipliers' terms together, is known to more digits
// than its terms show: relative to x, y and the center alone, however heavy the weights.
//
// A coordinate that a bound stops is off by the least of two: its pull relative to the terms of
// that, or its way to the bound relative to its own size.
inline double residual_of_pull(const AffineBox& given, const double* x, const double* lambda,
                               const double* pull) {
    constexpr double LEAST_SHARE = 1e-6, DOUBT = 1e-6, TINY = 1e-300;
    const double half = 0.5 / given.alpha;
    double largest = 0.0, reach = 0.0, worst = 0.0, finite = 0.0;
    for (Size i = 0; i < given.p; ++i) largest = larger(largest, absolute(x[i]));
    for (Size i = 0; i < given.p; ++i) {
        const double lower = given.lower[i], upper = given.upper[i], at = absolute(x[i]);
        const double y = absolute(given.center[i] - given.gradient[i] * half);
        const double center = absolute(given.center[i]);
        reach = larger(reach, smaller(larger(-lower, upper), larger(y, center)));
        const double z = x[i] + pull[i] * half;
        const double way = absolute(x[i] - clipped(z, lower, upper));
        double size = larger(y + center + at, LEAST_SHARE * largest);
        if (way > 0.0 && (z <= lower || z >= upper)) {
            const double share = way / larger(absolute(x[i] - z), TINY);
            size = larger(share * size, larger(at, smaller(DOUBT * y, upper - lower)));
        }
        worst = larger(worst, way / larger(size, TINY));
        finite += 0.0 * z;
    }
    for (Size k = 0; k < given.n; ++k) {
        const double* const row = given.A + k * given.p;
        const double g = dot(row, x, given.p) - given.b[k];
        finite += 0.0 * g + 0.0 * lambda[k];
        const bool wrong = (lambda[k] > given.multiplier_lower[k] && g < 0.0) ||
                           (lambda[k] < given.multiplier_upper[k] && g > 0.0);
        if (!wrong) continue;
        double size = absolute(given.b[k]), own = 0.0;
        for (Size i = 0; i < given.p; ++i)
            if (row[i] != 0.0) own = larger(own, absolute(x[i]));
        const double least = LEAST_SHARE * (size > 0.0 ? own : larger(own, reach));
        for (Size i = 0; i < given.p; ++i) size += absolute(row[i]) * larger(absolute(x[i]), least);
        worst = larger(worst, absolute(g) / larger(size, TINY));
    }
    return finite == 0.0 ? worst : INF;
}

}  // namespace coldq::COLDQ_LEVEL
