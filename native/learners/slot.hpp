// What a learner's whole update reads of a slot, and the steps that it takes.
#pragma once

#include "contractions.hpp"
#include "newton/affine.hpp"
#include "newton/blocks.hpp"

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

inline double* at(const Operand& operand, Size i) {
    return operand.at ? operand.at + i * operand.step : nullptr;
}

struct DomainOperands {
    Operand lower, upper, start, total, kind, systems;

    Domain of(Size i) const {
        return {at(lower, i), at(upper, i),    at(start, i),  at(total, i),
                at(kind, i),  start.length[0], at(systems, i)};
    }
    bool fit() const { return !start.at == !total.at && !start.at == !kind.at; }
};

// Steps from several points.
struct Points {
    double *center, *gradient, *alpha, *weights;
    Size alpha_step, weights_step;
    double* zeros;  // as many as there are rows

    // Take `count` of them.
    void step(const Rows& rows, const Domain& on, Size count, double* x, double* multipliers,
              double* residuals, double* scratch) const {
        const Size n = rows.n, p = rows.p;
        auto each = [](double* from, Size length) { return numbers(from, length, length); };
        auto same = [](const double* from, Size length) {
            return numbers(const_cast<double*>(from), length, 0);
        };
        const Operand their_alpha = numbers(alpha, 0, alpha_step),
                      price = numbers(weights, n, weights_step), zero = same(zeros, n),
                      limits = same(rows.b, n), lower = same(on.lower, p),
                      upper = same(on.upper, p), systems = same(on.systems, 0), to = each(x, p),
                      prices = each(multipliers, n), residual = numbers(residuals, 0, 1);
        if (on.blocks == 0) {
            const AffineOperands of = {each(center, p),
                                       each(gradient, p),
                                       their_alpha,
                                       zero,
                                       price,
                                       zero,
                                       {const_cast<double*>(rows.A), 0, {n, p, 0}, p},
                                       limits,
                                       lower,
                                       upper,
                                       systems,
                                       to,
                                       prices,
                                       residual};
            affine_step({count, reinterpret_cast<const Operand*>(&of), scratch});
        } else {
            const Operand none = numbers(nullptr, 0, 0);
            const BlockOperands of = {each(center, p),
                                      each(gradient, p),
                                      their_alpha,
                                      zero,
                                      price,
                                      zero,
                                      same(rows.A, n * p),
                                      none,
                                      none,
                                      limits,
                                      lower,
                                      upper,
                                      same(on.start, on.blocks),
                                      same(on.total, on.blocks),
                                      same(on.kind, on.blocks),
                                      systems,
                                      to,
                                      prices,
                                      residual};
            blocks_step({count, reinterpret_cast<const Operand*>(&of), scratch});
        }
    }

    // How many numbers of scratch memory they need; negative if too many.
    static Size scratch(Size n, Size p, Size count, Size blocks) {
        if (blocks == 0) return affine_scratch(n, p, count);
        BlockOperands of = {};
        of.center.length[0] = p, of.b.length[0] = n;
        of.start.length[0] = blocks, of.entries.length[0] = n * p;
        return blocks_scratch(of);
    }
};

// Whether a loss is a vector, a square matrix and a vector, or a matrix and levels.
inline bool has_gradient(const Operand& linear, const Operand& matrix, const Operand& levels,
                         Size p) {
    if (levels.at) return matrix.at;
    return linear.at && (!matrix.at || matrix.length[0] == p);
}

}  // namespace coldq::COLDQ_LEVEL
