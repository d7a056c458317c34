// Rows x'P_k x / 2 + A_k x - b_k, of which the first m have a P_k.
//
// The Lagrangian is x'B x / 2 - c'x with B = I + sum_k mu_k P_k, and a half-solved line of the
// model is v = U^-T J_k over the free coordinates, with B_FF = U'U.
#pragma once

#include "curved/lagrangian.hpp"
#include "curved/rows.hpp"

namespace coldq::COLDQ_LEVEL {

struct MatrixRows {
    Size n, m, p;
    const double *P, *A, *b, *y;
    Lagrangian lagrangian;
    double* half;  // n times p: the lines of the model
    bool bent;     // whether B is not I

    static Size numbers(Size n, Size p) { return Lagrangian::numbers(p) + n * p; }

    void minimise(const double* mu, double* x) {
        Lagrangian& of = lagrangian;
        bent = false;
        for (Size i = 0; i < p; ++i) of.c[i] = y[i];
        for (Size k = 0; k < n; ++k) {
            if (mu[k] == 0.0) continue;
            bent = bent || k < m;
            for (Size i = 0; i < p; ++i) of.c[i] -= mu[k] * A[k * p + i];
        }
        if (!bent) {
            for (Size i = 0; i < p; ++i) x[i] = clip(of.c[i], of.lower[i], of.upper[i]);
            return;
        }
        of.factored_count = -1;
        for (Size i = 0; i < p * p; ++i) of.B[i] = 0.0;
        for (Size i = 0; i < p; ++i) of.B[i * p + i] = 1.0;
        for (Size k = 0; k < m; ++k) {
            if (mu[k] == 0.0) continue;
            const double *matrix = P + k * p * p, share = mu[k];
            for (Size i = 0; i < p * p; ++i) of.B[i] += share * matrix[i];
        }
        of.minimise(x);
    }

    void evaluate(const CurvedIterate& of) {
        double* size = of.off;
        for (Size k = 0; k < n; ++k) {
            const double *linear = A + k * p, *matrix = k < m ? P + k * p * p : nullptr;
            double largest = 0.0, value = 0.0, terms = 0.0;
            for (Size i = 0; i < p; ++i)
                if (linear[i] != 0.0 || (matrix && matrix[i * p + i] != 0.0))
                    largest = larger(largest, known_size(of.x[i], y[i], of.lower[i], of.upper[i]));
            for (Size i = 0; i < p; ++i) size[i] = larger(absolute(of.x[i]), ROW_SHARE * largest);
            for (Size i = 0; i < p; ++i) {
                Terms<double, 2> own{{0.0, 0.0}};
                if (matrix) {
                    const double *row = matrix + i * p, *x = of.x;
                    own = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                        using V = decltype(read(row));
                        const V entry = read(row);
                        return Terms<V, 2>{{entry * read(x), absolute(entry) * read(size)}};
                    });
                }
                value += (0.5 * own.of[0] + linear[i]) * of.x[i];
                terms += (0.5 * own.of[1] + absolute(linear[i])) * size[i];
                of.at.slope[k * p + i] = own.of[0] + linear[i];
                of.at.terms[k * p + i] = own.of[1];
            }
            of.at.g[k] = value - b[k];
            of.at.size[k] = terms + absolute(b[k]);
            of.at.largest[k] = largest;
        }
    }

    void begin_model(const CurvedIterate& of) {
        lagrangian.list_inner(of.x);
        if (bent) lagrangian.factor_listed();
    }

    void add_to_model(const CurvedIterate& of, Size a, Size k) {
        const Size count = lagrangian.count;
        double* line = half + a * p;
        for (Size e = 0; e < count; ++e) line[e] = of.at.slope[k * p + lagrangian.listed[e]];
        if (bent) solve_half(lagrangian.U, count, count, lagrangian.inverse, line);
    }

    double product(Size a, Size c) const {
        return dot(half + a * p, half + c * p, lagrangian.count);
    }
};

}  // namespace coldq::COLDQ_LEVEL
