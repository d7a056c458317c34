// Sums over core axes that both Python and whole updates of learners call.
#pragma once

#include <cmath>

#include "batch.hpp"
#include "domain.hpp"
#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

// A x
inline void matvec(Matrix A, Vector x, OutVector out) {
    for (Size k = 0; k < A.rows; ++k) out[k] = dot(A[k], x.at, A.columns);
}

// A' v
inline void vecmat(Matrix A, Vector v, OutVector out) {
    across(A.columns, [&]<class T>(T, Size i) {
        store(&out[i], sum<T>(A.rows, [&](Size k) { return load<T>(A[k] + i) * T(v[k]); }));
    });
}

// A x - b
inline void affine_value(Matrix A, Vector x, Vector b, OutVector out) {
    for (Size k = 0; k < A.rows; ++k) out[k] = dot(A[k], x.at, A.columns) - b[k];
}

// H'(H x - y)
inline void least_squares_gradient(Scratch scratch, Matrix H, Vector x, Vector y, OutVector out) {
    OutVector error = {scratch.take(H.rows), H.rows};
    affine_value(H, x, y, error);
    vecmat(H, {error.at, H.rows}, out);
}

// max{(1 - eta) Q + gain [g]_+, floor}
inline void bounded_queue(Vector Q, Vector g, double gain, double eta, double floor,
                          OutVector out) {
    for (Size k = 0; k < Q.size; ++k)
        out[k] = larger((1.0 - eta) * Q[k] + gain * larger(g[k], 0.0), floor);
}

// log w - kappa <gradient, points - played>, less its largest entry
inline void hedge(StridedVector logs, Matrix points, Vector played, Vector gradient, double kappa,
                  OutVector out) {
    double largest = -HUGE_VAL;
    for (Size j = 0; j < points.rows; ++j) {
        const double* point = points[j];
        const double surrogate =
            sum<double>(played.size, [=](Size i) { return gradient[i] * (point[i] - played[i]); });
        out[j] = logs[j] - kappa * surrogate;
        largest = larger(largest, out[j]);
    }
    for (Size j = 0; j < points.rows; ++j) out[j] -= largest;
}

// The mean of points under weights given by their logarithms.
inline void weighted_mean(Scratch scratch, StridedVector logs, Matrix points, OutVector out) {
    const Size m = points.rows;
    double* weight = scratch.take(m);
    for (Size j = 0; j < m; ++j) weight[j] = std::exp(logs[j]);
    const double total = sum<double>(m, [=](Size j) { return weight[j]; });
    across(points.columns, [&]<class T>(T, Size i) {
        T least = T(HUGE_VAL), largest = T(-HUGE_VAL);
        const T mean = sum<T>(m,
                              [&](Size j) {
                                  const T entry = load<T>(points[j] + i);
                                  least = smaller(least, entry);
                                  largest = larger(largest, entry);
                                  return T(weight[j]) * entry;
                              }) /
                       T(total);
        // Rounding must not take the mean out of a box that holds all points.
        store(&out[i], smaller(larger(mean, least), largest));
    });
}

}  // namespace coldq::COLDQ_LEVEL
