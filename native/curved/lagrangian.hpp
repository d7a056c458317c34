// The Lagrangian of rows with matrices: the minimum of x'B x / 2 - c'x over a box, B positive
// definite.
//
// At first the projected Newton method (Bertsekas 1982): all coordinates that no bound holds back
// are solved for, and the step is shortened where the box cuts it until the value falls. That may
// creep; then a primal active-set method meets bounds and leaves them one by one.
#pragma once

#include "dense.hpp"
#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_FACTOR_PIVOT = 1e-14;                  // of the diagonal entry
constexpr double NO_SLOPE = 1e-15, NO_MOVE = 4e-16;           // of their terms, and of x
constexpr int PROJECTED_STEPS = 20, STEPS = 80, HALVES = 30;  // and 4 p more steps

struct Lagrangian {
    Size p;
    const double *lower, *upper;
    double *B, *c, *U, *inverse;                 // U over the coordinates that are factored
    double *size, *slope, *move, *trial, *open;  // open: 1 where a coordinate may move
    Size *listed, *factored, count, factored_count;

    static Size numbers(Size p) { return (2 * p + 9) * p; }

    static Lagrangian in(Scratch& scratch, Size p) {
        Lagrangian made;
        made.p = p;
        made.B = scratch.take(p * p);
        made.U = scratch.take(p * p);
        double** lines[] = {&made.c,    &made.inverse, &made.size, &made.slope,
                            &made.move, &made.trial,   &made.open};
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

    // Set the slopes and list the coordinates to be solved for, of those at a bound only one at a
    // time if that is wanted; whether x is the minimum.
    bool list(const double* x, bool one_by_one) {
        bool done = true;
        double worst = 0.0;
        Size leaves = -1;
        for (Size i = 0; i < p; ++i) size[i] = absolute(x[i]);
        for (Size i = 0; i < p; ++i) {
            const double* row = B + i * p;
            const auto sum = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                using V = decltype(read(row));
                const V own = read(row);
                return Terms<V, 2>{{own * read(x), absolute(own) * read(size)}};
            });
            const double rise = sum.of[0] - c[i], terms = sum.of[1] + absolute(c[i]);
            const bool at_lower = x[i] <= lower[i], at_upper = x[i] >= upper[i];
            const bool held = (at_lower && rise >= 0.0) || (at_upper && rise <= 0.0);
            const bool wrong = !held && absolute(rise) > NO_SLOPE * terms;
            slope[i] = rise;
            if (held)
                open[i] = 0.0;
            else if (!one_by_one || !(at_lower || at_upper))
                open[i] = 1.0;
            if (open[i] > 0.0) {
                done = done && !wrong;
            } else if (wrong && absolute(rise) > worst * terms) {
                worst = absolute(rise) / terms;
                leaves = i;
            }
        }
        if (done && leaves >= 0) {
            open[leaves] = 1.0;
            done = false;
        }
        count = 0;
        for (Size i = 0; i < p; ++i)
            if (open[i] > 0.0) listed[count++] = i;
        return done;
    }

    // Go along the move until the value falls; whether no bound is met, and whether x stays.
    void go_projected(double* x, bool& inside, bool& stays) {
        for (Size i = 0; i < p; ++i) trial[i] = 0.0;
        double t = 1.0;
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
        stays = true;
        for (Size a = 0; a < count; ++a) {
            const Size i = listed[a];
            stays = stays && absolute(trial[i]) <= NO_MOVE * absolute(x[i]);
            x[i] = clip(x[i] + trial[i], lower[i], upper[i]);
        }
    }

    // Go along the move to the first bound, where coordinates are held then.
    void go_to_bound(double* x) {
        double t = 1.0;
        for (Size a = 0; a < count; ++a) {
            const Size i = listed[a];
            const double room = absolute((move[a] > 0.0 ? upper[i] : lower[i]) - x[i]);
            if (absolute(move[a]) * t > room) t = room / larger(absolute(move[a]), TINY);
        }
        for (Size a = 0; a < count; ++a) {
            const Size i = listed[a];
            const double bound = move[a] > 0.0 ? upper[i] : lower[i];
            const bool meets =
                t < 1.0 && t * absolute(move[a]) >= absolute(bound - x[i]) * (1.0 - NO_SLOPE);
            x[i] = meets ? bound : clip(x[i] + t * move[a], lower[i], upper[i]);
            if (meets) open[i] = 0.0;
        }
    }

    void minimise(double* x) {
        bool one_by_one = false;
        for (Size i = 0; i < p; ++i) x[i] = clip(x[i], lower[i], upper[i]);
        for (Size step = 0; step < STEPS + 4 * p; ++step) {
            one_by_one = one_by_one || step == PROJECTED_STEPS;
            if (list(x, one_by_one)) return;
            factor_listed();
            for (Size a = 0; a < count; ++a) move[a] = -slope[listed[a]];
            solve(U, count, count, inverse, move);
            if (one_by_one) {
                go_to_bound(x);
                continue;
            }
            bool inside = true, stays = true;
            go_projected(x, inside, stays);
            if (stays && inside) return;
            one_by_one = stays;
        }
    }
};

}  // namespace coldq::COLDQ_LEVEL
