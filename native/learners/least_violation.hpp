// A decision of least sum_n w_n [A_n x - b_n]_+: proximal steps, each from the one before.
#pragma once

#include "active_set/in_double.hpp"
#include "learners/slot.hpp"

namespace coldq::COLDQ_LEVEL {

// The proximal term, relative to the rows' slopes over the width, falls from step to step. A light
// one leads farther where rows meet at a small angle, but leaves fewer digits of x.
constexpr double PROXIMAL = 1e-3, LEAST_PROXIMAL = 1e-8, PROXIMAL_FALL = 0.1;
constexpr double STILL = 1e-12;            // of the width: no step any more
constexpr double ACCURATE = 1e-9;          // the residual of a step that is taken
constexpr double LEAST_WIDTH = 1e-300;     // as what a point counts
constexpr double NEAR_SUM = 1e-9;          // of a sum: it is reached
constexpr double HELD = 1e-300;            // a multiplier, but next to none
constexpr double MOST_NUMBERS = 300000.0;  // of rows and sums as dense ones
constexpr int MOST_ROUNDS = 40;

// The step by the active set, which starts from its center: sums are enforced rows of a box.
struct FromCenter {
    Rows rows;
    Domain domain;
    const double *weights, *center, *gradient;

    // Of many sums the rows would be many, and nearly all zeros.
    static bool fits(Size n, Size p, Size blocks) {
        return double(n + blocks) * double(p) <= MOST_NUMBERS;
    }
    static Size memory(Size n, Size p, Size blocks) {
        const Size most = n + blocks;
        return fits(n, p, blocks) ? p + most * p + 5 * most + Descent::memory(most, p) : 0;
    }

    // Set `point`; the residual.
    double step(double alpha, double* point, double* memory) const {
        const Size p = rows.p, most = rows.n + domain.blocks;
        if (!fits(rows.n, p, domain.blocks)) return HUGE_VAL;
        Scratch scratch{memory};
        double *upper = scratch.take(p), *A = scratch.take(most * p), *b = scratch.take(most);
        double *floor = scratch.take(most), *price = scratch.take(most);
        double *start = scratch.take(most), *multipliers = scratch.take(most);
        Size n = 0;
        for (; n < rows.n; ++n) {
            for (Size i = 0; i < p; ++i) A[n * p + i] = rows.A[n * p + i];
            b[n] = rows.b[n], floor[n] = start[n] = 0.0, price[n] = weights[n];
        }
        for (Size i = 0; i < p; ++i) upper[i] = domain.upper[i];
        for (Size j = 0; j < domain.blocks; ++j) {
            if (!(domain.kind[j] < HUGE_VAL)) continue;
            const Size from = domain.first(j, p), to = domain.first(j + 1, p);
            double reached = 0.0;
            bool implied = true;
            for (Size i = from; i < to; ++i) {
                reached += center[i];
                implied = implied && domain.lower[i] == 0.0 && upper[i] >= domain.total[j];
            }
            for (Size i = 0; i < p; ++i) A[n * p + i] = from <= i && i < to ? 1.0 : 0.0;
            for (Size i = from; i < to && implied; ++i) upper[i] = HUGE_VAL;
            b[n] = domain.total[j], floor[n] = domain.kind[j], price[n] = HUGE_VAL;
            // A sum is in the working set from the start, unless there is room.
            const bool room = floor[n] == 0.0 && reached < b[n] - NEAR_SUM * absolute(b[n]);
            start[n] = floor[n] < 0.0 || room ? 0.0 : HELD;
            ++n;
        }
        const AffineBox box = {.n = n,
                               .p = p,
                               .center = center,
                               .gradient = gradient,
                               .alpha = alpha,
                               .multiplier_lower = floor,
                               .multiplier_upper = price,
                               .A = A,
                               .b = b,
                               .lower = domain.lower,
                               .upper = upper};
        const double residual = Descent::solve(box, start, point, multipliers, scratch.at).residual;
        for (Size i = 0; i < p; ++i) point[i] = smaller(point[i], domain.upper[i]);
        return residual;
    }
};

struct Violation {
    Rows rows;
    Domain domain;
    double width;   // of the domain, or 1 where it has none
    bool by_slope;  // every row is divided by its slope, so that rows of unlike units count alike

    // How many numbers of memory it takes; negative if too many.
    static Size scratch(Size n, Size p, Size blocks) {
        const Size step = Points::scratch(n, p, 1, blocks);
        return step < 0 ? step : 2 * p + 3 * n + 1 + step + FromCenter::memory(n, p, blocks);
    }

    // Set `point` from x; whether every step was accurate.
    bool least(const double* x, double* point, double* memory) const {
        const Size n = rows.n, p = rows.p;
        Scratch scratch{memory};
        double *center = scratch.take(p), *gradient = scratch.take(p), *weights = scratch.take(n);
        double *zeros = scratch.take(n), *multipliers = scratch.take(n);
        double* residual = scratch.take(1);
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
        const Points from{center, gradient, &alpha, weights, 0, 0, zeros};
        const FromCenter other = {rows, domain, weights, center, gradient};
        double* left = scratch.take(FromCenter::memory(n, p, domain.blocks));
        bool moves = true;
        for (int round = 0; round < MOST_ROUNDS && moves; ++round) {
            for (Size i = 0; i < p; ++i) center[i] = point[i];
            from.step(rows, domain, 1, point, multipliers, residual, scratch.at);
            // Rows that meet at a vertex, or so steep beside alpha, may be out of its reach.
            if (!(*residual <= ACCURATE) && !(other.step(alpha, point, left) <= ACCURATE))
                return false;
            double way = 0.0;
            for (Size i = 0; i < p; ++i) way = larger(way, absolute(point[i] - center[i]));
            moves = way > STILL * width;
            weight = larger(PROXIMAL_FALL * weight, LEAST_PROXIMAL);
            alpha = weight * unit;
        }
        return true;
    }
};

}  // namespace coldq::COLDQ_LEVEL
