// A decision of least sum_n w_n [A_n x - b_n]_+ on a box: proximal steps, each from the one before.
#pragma once

#include "active_set/in_double.hpp"
#include "learners/slot.hpp"

namespace coldq::COLDQ_LEVEL {

// The proximal term, relative to the rows' slopes over the width, falls from step to step. A light
// one leads farther where rows meet at a small angle, but leaves fewer digits of x.
constexpr double PROXIMAL = 1e-3, LEAST_PROXIMAL = 1e-8, PROXIMAL_FALL = 0.1;
constexpr double STILL = 1e-12;         // of the width: no step any more
constexpr double ACCURATE = 1e-9;       // the residual of a step that is taken
constexpr double LEAST_WIDTH = 1e-300;  // as what a point counts
constexpr int MOST_ROUNDS = 40;

struct Violation {
    Rows rows;
    double *lower, *upper;
    double width;   // of the box, or 1 where it has none
    bool by_slope;  // every row is divided by its slope, so that rows of unlike units count alike

    static Size scratch(Size n, Size p) {
        return 2 * p + 3 * n + 2 + affine_scratch(n, p, 1) + Descent::memory(n, p);
    }

    // Set `point` from x; whether every step was accurate.
    bool least(const double* x, double* point, double* memory) const {
        const Size n = rows.n, p = rows.p;
        Scratch scratch{memory};
        double *center = scratch.take(p), *gradient = scratch.take(p), *weights = scratch.take(n);
        double *zeros = scratch.take(n), *multipliers = scratch.take(n);
        double *systems = scratch.take(1), *residual = scratch.take(1);
        *systems = HUGE_VAL;
        double steepest = 0.0;
        for (Size k = 0; k < n; ++k) {
            const double slope = root(dot(rows.A + k * p, rows.A + k * p, p));
            weights[k] = by_slope ? 1.0 / (slope > 0.0 ? slope : 1.0) : 1.0;
            steepest = larger(steepest, slope * weights[k]);
            zeros[k] = 0.0;
        }
        const double unit = (steepest > 0.0 ? steepest : 1.0) / width;
        double weight = PROXIMAL, alpha = weight * unit;
        for (Size i = 0; i < p; ++i) point[i] = x[i], gradient[i] = 0.0;
        const Points from{center, gradient, &alpha, weights, 0, lower, upper, zeros, systems};
        AffineOperands step = from.operands(rows);
        step.x = numbers(point, p, 0);
        step.multipliers = numbers(multipliers, n, 0);
        step.residual = numbers(residual, 0, 0);
        AffineBox box = {.n = n,
                         .p = p,
                         .center = center,
                         .gradient = gradient,
                         .alpha = alpha,
                         .multiplier_lower = zeros,
                         .multiplier_upper = weights,
                         .A = rows.A,
                         .b = rows.b,
                         .lower = lower,
                         .upper = upper};
        double* descent = scratch.take(Descent::memory(n, p));
        bool moves = true;
        for (int round = 0; round < MOST_ROUNDS && moves; ++round) {
            for (Size i = 0; i < p; ++i) center[i] = point[i];
            affine_step({1, reinterpret_cast<const Operand*>(&step), scratch.at});
            if (!(*residual <= ACCURATE)) {  // rows so steep beside alpha may be out of its reach
                const Answer answer = Descent::solve(box, multipliers, point, multipliers, descent);
                if (!(answer.residual <= ACCURATE)) return false;
            }
            double way = 0.0;
            for (Size i = 0; i < p; ++i) way = larger(way, absolute(point[i] - center[i]));
            moves = way > STILL * width;
            weight = larger(PROXIMAL_FALL * weight, LEAST_PROXIMAL);
            alpha = box.alpha = weight * unit;
        }
        return true;
    }
};

}  // namespace coldq::COLDQ_LEVEL
