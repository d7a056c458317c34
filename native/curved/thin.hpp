// Rows sum_i d_ki (x_i - middle_ki)^2 / 2 + q_k x - b_k, and (f'x)^2 / 2 for every factor f that a
// row owns: nothing has p by p numbers.
//
// The Lagrangian's hessian is S + F'R^2 F, S diagonal and R the roots of the owners' multipliers.
// Its minimiser over the box is x(u) = clip(S^-1 (pull - F'R u)), and u = R F x maximises a concave
// function in as many variables as there are factors, with the slope R F x(u) - u and the hessian
// -(I + R F S^-1 F'R) over the free coordinates. A line of the model has S^-1/2 J_k and, to be
// subtracted (Woodbury), U^-T R F S^-1 J_k with U'U = I + R F S^-1 F'R.
#pragma once

#include "curved/bracket.hpp"
#include "curved/rows.hpp"
#include "dense.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_FACTOR_SHARE = 1e-14;    // of a diagonal entry, as a pivot
constexpr double FACTOR_SEARCH = 0.2;           // of the slope at the start
constexpr double LEAST_CURVATURE_LEFT = 1e-15;  // of an entry of the model, of what it is left of
constexpr double ROUNDED_SLOPE = 1e-15;         // of its terms, up to 64 coordinates
constexpr int FACTOR_STEPS = 80, FACTOR_PLACES = 30, FACTOR_PATIENCE = 4;

struct ThinRows {
    Size n, p, factors;
    const double *d, *middle, *q, *b, *F, *owner, *lower, *upper, *y;
    double *stiff, *pull, *weight;                             // of p coordinates
    double *roots, *u, *rise, *step, *before, *sum, *inverse;  // of factors; sum is F x
    double *U, *half, *turned;  // factors squared, n by p, n by factors

    static Size numbers(Size n, Size p, Size factors) {
        return (3 + n) * p + (7 + factors + n) * factors;
    }

    Size owner_of(Size j) const {
        return 0.0 <= owner[j] && owner[j] < double(n) ? Size(owner[j]) : 0;
    }

    void take(Scratch& scratch) {
        double** columns[] = {&stiff, &pull, &weight};
        for (double** line : columns) *line = scratch.take(p);
        double** lines[] = {&roots, &u, &rise, &step, &before, &sum, &inverse};
        for (double** line : lines) *line = scratch.take(factors);
        U = scratch.take(factors * factors);
        half = scratch.take(n * p);
        turned = scratch.take(n * factors);
        for (Size j = 0; j < factors; ++j) sum[j] = 0.0;
    }

    // Set x(u) and the slope there; the largest entry of the slope, relative to its terms.
    double place(double* x) {
        for (Size i = 0; i < p; ++i) x[i] = pull[i];
        for (Size j = 0; j < factors; ++j) {
            const double share = roots[j] * u[j];
            if (share == 0.0) continue;
            for (Size i = 0; i < p; ++i) x[i] -= share * F[j * p + i];
        }
        for (Size i = 0; i < p; ++i) x[i] = clip(x[i] / stiff[i], lower[i], upper[i]);
        double worst = 0.0;
        for (Size j = 0; j < factors; ++j) {
            const double* f = F + j * p;
            const auto own = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                const auto term = read(f) * read(x);
                return Terms<decltype(read(f)), 2>{{term, absolute(term)}};
            });
            sum[j] = own.of[0];
            rise[j] = roots[j] * own.of[0] - u[j];
            const double terms = roots[j] * own.of[1] + absolute(u[j]);
            worst = larger(worst, absolute(rise[j]) / larger(terms, TINY));
        }
        return worst;
    }

    // Factor I + R F S^-1 F'R over the coordinates strictly between their bounds.
    void factor_matrix(const double* x) {
        for (Size i = 0; i < p; ++i)
            weight[i] = lower[i] < x[i] && x[i] < upper[i] ? 1.0 / stiff[i] : 0.0;
        for (Size j = 0; j < factors; ++j)
            for (Size e = j; e < factors; ++e) {
                const double shares = roots[j] * roots[e];
                U[j * factors + e] = j == e ? 1.0 : 0.0;
                if (shares == 0.0) continue;
                const double *f = F + j * p, *other = F + e * p;
                U[j * factors + e] +=
                    shares * sum_over<double>(p, [&](auto read) __attribute__((always_inline)) {
                        return (read(weight) * read(f)) * read(other);
                    });
            }
        factor(U, factors, factors, inverse, LEAST_FACTOR_SHARE);
    }

    // Go along the step until the slope has nearly vanished; as `place`.
    double search(double* x, double rounded) {
        double first = 0.0, t = 1.0, worst = 0.0;
        for (Size j = 0; j < factors; ++j) first += rise[j] * step[j];
        Bracket bracket{0.0, first};
        for (int tried = 0; tried < FACTOR_PLACES; ++tried) {
            double slope = 0.0;
            for (Size j = 0; j < factors; ++j) u[j] = before[j] + t * step[j];
            worst = place(x);
            for (Size j = 0; j < factors; ++j) slope += rise[j] * step[j];
            if (slope >= -FACTOR_SEARCH * first || !(worst > rounded)) break;
            t = bracket.next(t, slope, INFINITE);
            if (!bracket.has_inside(t)) break;
        }
        return worst;
    }

    void minimise(const double* mu, double* x) {
        for (Size i = 0; i < p; ++i) stiff[i] = 1.0;
        for (Size i = 0; i < p; ++i) pull[i] = y[i];
        for (Size k = 0; k < n; ++k) {
            if (mu[k] == 0.0) continue;
            const double *own = d + k * p, *at = middle + k * p, *linear = q + k * p;
            for (Size i = 0; i < p; ++i) {
                stiff[i] += mu[k] * own[i];
                pull[i] -= mu[k] * (linear[i] - own[i] * at[i]);
            }
        }
        for (Size j = 0; j < factors; ++j) {
            roots[j] = root(larger(mu[owner_of(j)], 0.0));
            u[j] = roots[j] * sum[j];
        }
        double worst = place(x), best = INFINITE;
        const double rounded = ROUNDED_SLOPE * larger(1.0, root(p / 64.0));
        int stuck = 0;
        for (int count = 0; count < FACTOR_STEPS && factors > 0; ++count) {
            stuck = worst < 0.5 * best ? 0 : stuck + 1;
            best = smaller(best, worst);
            if (!(worst > rounded) || stuck > FACTOR_PATIENCE) return;
            factor_matrix(x);
            for (Size j = 0; j < factors; ++j) {
                step[j] = rise[j];
                before[j] = u[j];
            }
            solve(U, factors, factors, inverse, step);
            worst = search(x, rounded);
        }
    }

    void evaluate(const CurvedIterate& of) {
        const double* x = of.x;
        double* size = of.off;
        for (Size i = 0; i < p; ++i) size[i] = known_size(x[i], y[i], lower[i], upper[i]);
        for (Size k = 0; k < n; ++k) {
            const double *own = d + k * p, *at = middle + k * p, *linear = q + k * p;
            double most = 0.0;
            for (Size i = 0; i < p; ++i) {
                if (own[i] != 0.0)
                    most = larger(most, larger(absolute(x[i] - at[i]), size[i] - absolute(x[i])));
                if (linear[i] != 0.0) most = larger(most, size[i]);
            }
            of.at.largest[k] = most;
        }
        for (Size j = 0; j < factors; ++j) {
            double& most = of.at.largest[owner_of(j)];
            for (Size i = 0; i < p; ++i)
                if (F[j * p + i] != 0.0) most = larger(most, size[i]);
        }
        for (Size k = 0; k < n; ++k) {
            const double *own = d + k * p, *at = middle + k * p, *linear = q + k * p;
            const double least = ROW_SHARE * of.at.largest[k];
            double *slope = of.at.slope + k * p, *terms = of.at.terms + k * p;
            const auto sum = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                using V = decltype(read(x));
                const V bend = read(own), c = read(at), a = read(linear), here = read(x);
                const V away = here - c, far = larger(absolute(away), V(least));
                const V moved = bend * (absolute(here) + absolute(c));
                V rounding = V(LAST_DIGITS) * moved * absolute(away);
                rounding = select(c == V(0.0), V(0.0), rounding);
                return Terms<V, 2>{{V(0.5) * bend * away * away + a * here,
                                    V(0.5) * bend * far * far +
                                        absolute(a) * larger(absolute(here), V(least)) + rounding}};
            });
            for (Size i = 0; i < p; ++i) {
                slope[i] = own[i] * (x[i] - at[i]) + linear[i];
                terms[i] = own[i] * (absolute(x[i]) + absolute(at[i]));
            }
            of.at.g[k] = sum.of[0] - b[k];
            of.at.size[k] = sum.of[1] + absolute(b[k]);
        }
        for (Size j = 0; j < factors; ++j) {
            const Size k = owner_of(j);
            const double *f = F + j * p, least = ROW_SHARE * of.at.largest[k];
            double *slope = of.at.slope + k * p, *terms = of.at.terms + k * p;
            const auto own = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
                using V = decltype(read(f));
                const V entry = read(f), here = read(x);
                return Terms<V, 2>{
                    {entry * here, absolute(entry) * larger(absolute(here), V(least))}};
            });
            sum[j] = own.of[0];
            of.at.g[k] += 0.5 * own.of[0] * own.of[0];
            of.at.size[k] += 0.5 * own.of[1] * own.of[1];
            for (Size i = 0; i < p; ++i) {
                slope[i] += f[i] * own.of[0];
                terms[i] += absolute(f[i]) * own.of[1];
            }
        }
    }

    void begin_model(const CurvedIterate& of) { factor_matrix(of.x); }

    void add_to_model(const CurvedIterate& of, Size a, Size k) {
        const double* slope = of.at.slope + k * p;
        double *line = half + a * p, *less = turned + a * factors;
        for (Size j = 0; j < factors; ++j) {
            const double* f = F + j * p;
            less[j] = 0.0;
            if (roots[j] == 0.0) continue;
            less[j] = roots[j] * sum_over<double>(p, [&](auto read) __attribute__((always_inline)) {
                          return (read(weight) * read(f)) * read(slope);
                      });
        }
        solve_half(U, factors, factors, inverse, less);
        for (Size i = 0; i < p; ++i) line[i] = slope[i] * root(weight[i]);
    }

    double product(Size a, Size c) const {
        const double whole = dot(half + a * p, half + c * p, p);
        const double left = whole - dot(turned + a * factors, turned + c * factors, factors);
        return a == c ? larger(left, LEAST_CURVATURE_LEFT * whole) : left;
    }
};

}  // namespace coldq::COLDQ_LEVEL
