// Many affine rows on a box, of which few hold x back.
//
// The dual is maximised over a working set of multipliers, the others resting at their bounds:
// those between their bounds, and those of the rows that x violates most. Each round goes up, so
// that no set comes twice, and costs one pass over A beside a step with few rows. It starts where
// the last round ended, because it is asked for the change of the multipliers.
#pragma once

#include "newton/dual_newton.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr Size FIRST_ROWS = 4;  // of the first set; later ones add as many as are free, if more
constexpr Size ALL_ROWS = 12;   // violated rows: no more than these are all taken
constexpr Size MOST_ROWS = 64;  // of a set: with more, other methods are faster
constexpr Size MOST_ROUNDS = 40;
constexpr Size PATIENT_ROUNDS = 2;  // after which hardly any row is violated that can be met
constexpr double SYSTEMS_TIMES_ROWS = 3e6;  // systems that a round may solve, times its rows cubed

inline Size most_chosen(Size n, Size p) {
    Size most = p + 3 + (p + 3 > ALL_ROWS ? p + 3 : ALL_ROWS);
    if (most > MOST_ROWS) most = MOST_ROWS;
    return most < n ? most : n;
}

// The step with few rows that a round solves, and the memory that it takes.
struct Round {
    Iterate<double> at;
    double *y, *zeros;                               // p
    double *A, *b, *lo, *hi, *soft, *change, *step;  // of the rows chosen
    Size* chosen;
};

inline Size working_set_size(Size n, Size p) {
    const Size m = most_chosen(n, p);
    return iterate_size(n, p, 0) + iterate_size(m, p) + 2 * p + m * p + 6 * m + n;
}

inline Round round_in(double* memory, Size n, Size p) {
    const Size m = most_chosen(n, p);
    Round round;
    round.at = iterate_in(memory, m, p);
    memory += iterate_size(m, p);
    double** parts[] = {&round.y,  &round.zeros, &round.A,      &round.b,   &round.lo,
                        &round.hi, &round.soft,  &round.change, &round.step};
    const Size sizes[] = {p, p, m * p, m, m, m, m, m, m};
    for (int k = 0; k < 9; ++k) *parts[k] = memory, memory += sizes[k];
    round.chosen = reinterpret_cast<Size*>(memory);
    for (Size i = 0; i < p; ++i) round.zeros[i] = 0.0;
    return round;
}

inline bool is_between(const Iterate<double>& at, Size k) {
    return at.lo[k] < at.mu[k] && at.mu[k] < at.hi[k];
}

// Whether a multiplier has room to go where g pushes it.
inline bool is_violated(const Iterate<double>& at, Size k) {
    const double tolerance = ROW_TOLERANCE * at.scale[k];
    return at.norm[k] > 0.0 && ((at.g[k] > tolerance && at.mu[k] < at.hi[k]) ||
                                (at.g[k] < -tolerance && at.mu[k] > at.lo[k]));
}

// Choose the rows whose multipliers are between their bounds, and of the others that are violated
// those that are so most: all where they are few, else as many as there are between. at.moving is 1
// for the chosen rows. Returns how many, -1 if too many.
inline Size choose(const Iterate<double>& at, Size n, Size p, Size violated, Size* chosen) {
    Size m = 0;
    for (Size k = 0; k < n; ++k) {
        at.moving[k] = 0.0;
        at.rhs[k] = -1.0;
        if (is_between(at, k)) {
            if (m > MOST_ROWS - FIRST_ROWS || m > p + 2) return -1;
            chosen[m++] = k;
            at.moving[k] = 1.0;
        } else if (is_violated(at, k)) {
            at.rhs[k] = absolute(at.g[k]) / root(at.norm[k]);
        }
    }
    Size room = violated <= ALL_ROWS ? violated : FIRST_ROWS;
    if (room < m) room = m;
    if (room > MOST_ROWS - m) room = MOST_ROWS - m;
    for (; room > 0; --room) {
        Size deepest = -1;
        double depth = 0.0;
        for (Size k = 0; k < n; ++k)
            if (at.rhs[k] > depth) depth = at.rhs[k], deepest = k;
        if (deepest < 0) break;
        at.rhs[deepest] = -1.0;
        at.moving[deepest] = 1.0;
        chosen[m++] = deepest;
    }
    return m;
}

// Solve for the change of the chosen multipliers; the residual of that.
inline double solve_round(const Instance<double>& of, const Iterate<double>& at, const Round& round,
                          Size m) {
    form_z(of, at);
    for (Size i = 0; i < of.p; ++i) round.y[i] = at.z[i];
    for (Size a = 0; a < m; ++a) {
        const Size k = round.chosen[a];
        round.b[a] = of.b[k] + at.soft[k] * at.mu[k];
        round.lo[a] = at.lo[k] - at.mu[k];
        round.hi[a] = at.hi[k] - at.mu[k];
        round.soft[a] = at.soft[k];
        for (Size i = 0; i < of.p; ++i) round.A[a * of.p + i] = of.A[k * of.p + i];
    }
    const Instance<double> its{m,        of.p,       round.y, round.zeros, 0.5,      round.lo,
                               round.hi, round.soft, round.A, round.b,     of.lower, of.upper};
    const double systems = SYSTEMS_TIMES_ROWS / (double(m) * double(m) * double(m));
    const double residual = solve_one(its, round.at, {systems, false}, round.step);
    give_multipliers(its, round.at, round.change);
    for (Size a = 0; a < m && residual < UNSETTLED; ++a) {
        const Size k = round.chosen[a];
        const double moved = clip(at.mu[k] + round.change[a], at.lo[k], at.hi[k]);
        at.mu[k] = round.change[a] >= round.hi[a]   ? at.hi[k]
                   : round.change[a] <= round.lo[a] ? at.lo[k]
                                                    : moved;
    }
    for (Size i = 0; i < of.p; ++i) at.x[i] = round.at.x[i];
    return residual;
}

// The residual of an answer whose z and terms are fresh, NaN where anything is NaN.
inline double judged(const Instance<double>& of, const Iterate<double>& at, bool apart) {
    const double residual = stationarity(of, at);
    return residual < INFINITE ? judge(of, at, apart) : residual;
}

// One instance: its residual, NaN where the working set gets too large or most rows seem to matter.
inline double solve_by_working_set(const Instance<double>& of, const Iterate<double>& at,
                                   const Round& round, bool apart) {
    if (begin(of, at)) return INFINITE;
    if (!is_sound(of, at)) return NOT_A_NUMBER;
    for (Size k = 0; k < of.n; ++k) at.moving[k] = 0.0;
    int refreshed = 0;
    for (Size count = 0; count < MOST_ROUNDS; ++count) {
        Size violated = 0;
        for (Size k = 0; k < of.n; ++k) violated += at.moving[k] == 0.0 && is_violated(at, k);
        if (violated == 0 && count > 0) {
            form_z(of, at);
            const double residual = stationarity(of, at);
            if (residual <= REFRESH_ABOVE || refreshed++ == 2) return judged(of, at, apart);
        }
        const bool many = 4 * violated > of.p && 16 * violated > of.n && violated > ALL_ROWS;
        if (count >= PATIENT_ROUNDS && many) return NOT_A_NUMBER;
        const Size m = choose(at, of.n, of.p, violated, round.chosen);
        if (m < 0) return NOT_A_NUMBER;
        if (m == 0) {
            form_z(of, at);
            return judged(of, at, apart);
        }
        const double residual = solve_round(of, at, round, m);
        if (!(residual < UNSETTLED)) return residual;
        set_gradient(of, at);
    }
    return NOT_A_NUMBER;
}

}  // namespace coldq::COLDQ_LEVEL
