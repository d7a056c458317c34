// The Lagrangian of rows with matrices: the minimum of x'B x / 2 - c'x over a box, B positive
// definite.
//
// The projected Newton method (Bertsekas 1982): all coordinates that no bound holds back are solved
// for, and the step is shortened where the box cuts it until the value falls.
#pragma once

#include "dense.hpp"
#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_FACTOR_PIVOT = 1e-14;         // of the diagonal entry
constexpr double NO_SLOPE = 1e-15, NO_MOVE = 4e-16;  // of their terms, and of x
constexpr int STEPS = 40, HALVES = 30;

struct Lagrangian {
    Size p;
    const double *lower, *upper;
    double *B, *c, *U, *inverse;  // U over the coordinates that are factored
    double *size, *slope, *move, *trial;
    Size *listed, *factored, count, factored_count;

    static Size numbers(Size p) { return (2 * p + 8) * p; }

    static Lagrangian in(Scratch& scratch, Size p) {
        Lagrangian made;
        made.p = p;
        made.B = scratch.take(p * p);
        made.U = scratch.take(p * p);
        double** lines[] = {&made.c,     &made.inverse, &made.size,
                            &made.slope, &made.move,    &made.trial};
        for (double** line : lines) *line = scratch.take(p);
        made.listed = reinterpret_cast<Size*>(scratch.take(p));
        made.factored = reinterpret_cast<Size*>(scratch.take(p));
        made.factored_count = -1;
        return made;
    }

    // Factor B over the coordinates listed, unless that was the last that was factored.
    void factor_listed() {
        bool known = count == factored_count;
        for (Size a = 0; a < count && known; ++a) known = listed[a] == factored[a];
        if (known) return;
        for (Size a = 0; a < count; ++a) {
            const double* row = B + listed[a] * p;
            for (Size e = a; e < count; ++e) U[a * count + e] = row[listed[e]];
            factored[a] = listed[a];
        }
        factored_count = count;
        factor(U, count, count, inverse, LEAST_FACTOR_PIVOT);
    }

    // List the coordinates strictly between their bounds.
    void list_inner(const double* x) {
        count = 0;
        for (Size i = 0; i < p; ++i)
            if (lower[i] < x[i] && x[i] < upper[i]) listed[count++] = i;
    }

    // Set the slopes and list the coordinates that no bound holds back; whether x is the minimum.
    bool list(const double* x) {
        bool done = true;
        count = 0;
        for (Size i = 0; i < p; ++i) size[i] = absolute(x[i]);
        for (Size i = 0; i < p; ++i) {
            const double* row = B + i * p;
            const auto sum = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                using V = decltype(read(row));
                const V own = read(row);
                return Terms<V, 2>{{own * read(x), absolute(own) * read(size)}};
            });
            const double rise = sum.of[0] - c[i], terms = sum.of[1] + absolute(c[i]);
            slope[i] = rise;
            if ((x[i] <= lower[i] && rise >= 0.0) || (x[i] >= upper[i] && rise <= 0.0)) continue;
            listed[count++] = i;
            done = done && !(absolute(rise) > NO_SLOPE * terms);
        }
        return done;
    }

    // Go along the move until the value falls; whether x stays.
    bool go_projected(double* x) {
        for (Size i = 0; i < p; ++i) trial[i] = 0.0;
        double t = 1.0;
        bool inside = true, stays = true;
        for (int halved = 0; halved < HALVES; ++halved, t *= 0.5) {
            double first = 0.0, second = 0.0;
            inside = true;
            for (Size a = 0; a < count; ++a) {
                const Size i = listed[a];
                const double wish = x[i] + t * move[a], to = clip(wish, lower[i], upper[i]);
                inside = inside && wish == to;
                trial[i] = to - x[i];
                first += slope[i] * trial[i];
            }
            if (inside) break;
            for (Size a = 0; a < count; ++a)
                second += dot(B + listed[a] * p, trial, p) * trial[listed[a]];
            if (first + 0.5 * second <= 0.1 * first) break;
        }
        for (Size a = 0; a < count; ++a) {
            const Size i = listed[a];
            stays = stays && absolute(trial[i]) <= NO_MOVE * absolute(x[i]);
            x[i] = clip(x[i] + trial[i], lower[i], upper[i]);
        }
        return stays;
    }

    void minimise(double* x) {
        for (Size i = 0; i < p; ++i) x[i] = clip(x[i], lower[i], upper[i]);
        for (int step = 0; step < STEPS; ++step) {
            if (list(x)) return;
            factor_listed();
            for (Size a = 0; a < count; ++a) move[a] = -slope[listed[a]];
            solve(U, count, count, inverse, move);
            if (go_projected(x)) return;
        }
    }
};

}  // namespace coldq::COLDQ_LEVEL
