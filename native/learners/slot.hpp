// What a learner's whole update reads of a slot, and the step that it takes.
#pragma once

#include "contractions.hpp"
#include "newton/affine.hpp"

namespace coldq::COLDQ_LEVEL {

struct Rows {
    Size n, p;
    const double *A, *b;
    const double* measured;  // g(x), where it is known; else null

    void value(const double* x, double* g) const {
        affine_value({A, n, p, p}, {x, p}, {b, n}, {g, n});
    }
};

struct Loss {
    Size p, m;
    const double *linear, *matrix, *levels;  // null where there is none

    // Where the gradient at x stands: in `out`, unless it is the same everywhere.
    const double* gradient(const double* x, double* out, double* scratch) const {
        if (levels) {
            least_squares_gradient({scratch}, {matrix, m, p, p}, {x, p}, {levels, m}, {out, p});
        } else if (matrix) {
            matvec({matrix, m, p, p}, {x, p}, {out, p});
            for (Size i = 0; i < p; ++i) out[i] += linear[i];
        } else {
            return linear;
        }
        return out;
    }
};

inline Operand numbers(double* at, Size length, Size step) { return {at, step, {length, 0, 0}, 1}; }

// The operands of the step from each of several points, all but its results.
struct Points {
    double *center, *gradient, *alpha, *weights;
    Size alpha_step;
    double *lower, *upper, *zeros, *systems;

    AffineOperands operands(const Rows& rows) const {
        const Size n = rows.n, p = rows.p;
        AffineOperands of = {};
        of.center = numbers(center, p, p);
        of.gradient = numbers(gradient, p, p);
        of.alpha = numbers(alpha, 0, alpha_step);
        of.floor = of.soft = numbers(zeros, n, 0);
        of.weights = numbers(weights, n, n);
        of.A = {const_cast<double*>(rows.A), 0, {n, p, 0}, p};
        of.b = numbers(const_cast<double*>(rows.b), n, 0);
        of.lower = numbers(lower, p, 0);
        of.upper = numbers(upper, p, 0);
        of.systems = numbers(systems, 0, 0);
        return of;
    }
};

// Whether a loss is a vector, a square matrix and a vector, or a matrix and levels.
inline bool has_gradient(const Operand& linear, const Operand& matrix, const Operand& levels,
                         Size p) {
    if (levels.at) return matrix.at;
    return linear.at && (!matrix.at || matrix.length[0] == p);
}

inline double* at(const Operand& operand, Size i) {
    return operand.at ? operand.at + i * operand.step : nullptr;
}

}  // namespace coldq::COLDQ_LEVEL
