// The maximum of a concave quadratic over a box, whose matrix is in an envelope:
//
//     max  gain'd - d'H d / 2   over  down <= d <= up
//
// Block principal pivoting (Judice and Pires 1994) guesses which entries are at a bound, solves for
// the others and corrects all wrong guesses at once, for as long as these get fewer; then one at a
// time, which ends (Murty 1974). Where that takes too long, d is clipped, to be searched along.
#pragma once

#include "newton/envelope.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr int PATIENCE = 5;        // rounds in which wrong guesses may not get fewer
constexpr double MOST_WORK = 3e5;  // systems that correct one guess each, times their rows cubed

struct BoxQuadratic {
    Envelope hessian, factor;
    double *gain, *down, *up, *d;
    double *side, *solved;  // side is -1 or 1 where d is at its bound below or above, else 0
    Size *listed, *before;  // the free entries, and how many of them are before each entry

    static Size size(Size most, Size room) { return 13 * (most + 1) + 2 * room; }
};

inline BoxQuadratic box_quadratic_in(Scratch& scratch, Size most, Size room) {
    auto whole = [&]() { return reinterpret_cast<Size*>(scratch.take(most + 1)); };
    BoxQuadratic at;
    double** lines[] = {&at.gain, &at.down, &at.up, &at.d, &at.side, &at.solved, &at.factor.least};
    for (double** line : lines) *line = scratch.take(most + 1);
    at.listed = whole();
    at.before = whole();
    at.hessian = {0, room, whole(), whole(), scratch.take(room), nullptr};
    at.factor = {0, room, whole(), whole(), scratch.take(room), at.factor.least};
    return at;
}

// Factor the rows and columns of the free entries, which are m.
inline void factor_free(BoxQuadratic& at, Size m) {
    const Envelope& H = at.hessian;
    for (Size b = 0; b < m; ++b) at.factor.last[b] = at.before[H.last[at.listed[b]] + 1] - 1;
    at.factor.lay_out(m);
    for (Size b = 0; b < m; ++b) {
        const Size a = at.listed[b];
        const double* from = H.row(a);
        double* to = at.factor.row(b);
        for (Size c = b; c <= at.factor.last[b] && at.listed[c] <= H.last[a]; ++c)
            to[c] = from[at.listed[c]];
        at.factor.least[b] = LEAST_PIVOT_SHARE * H.diagonal(a);
    }
    factor(at.factor);
}

// Put the entries at a bound there, and solve for the others.
inline void solve_guess(BoxQuadratic& at) {
    const Size n = at.hessian.n;
    Size m = 0;
    for (Size a = 0; a < n; ++a) {
        at.before[a] = m;
        at.d[a] = at.side[a] < 0.0 ? at.down[a] : at.side[a] > 0.0 ? at.up[a] : 0.0;
        at.solved[a] = at.gain[a];
        if (at.side[a] == 0.0) at.listed[m++] = a;
    }
    at.before[n] = m;
    add_product(at.hessian, at.d, -1.0, at.solved);
    for (Size b = 0; b < m; ++b) at.solved[b] = at.solved[at.listed[b]];
    factor_free(at, m);
    solve_factored(at.factor, at.solved);
    for (Size b = 0; b < m; ++b) at.d[at.listed[b]] = at.solved[b];
}

// Correct all guesses, or the last wrong one alone; how many were wrong.
inline Size correct_guess(const BoxQuadratic& at, bool all) {
    const Size n = at.hessian.n;
    for (Size a = 0; a < n; ++a) at.solved[a] = at.gain[a];
    add_product(at.hessian, at.d, -1.0, at.solved);
    Size wrong = 0;
    for (Size a = n; a-- > 0;) {
        const double side = at.side[a];
        double next = at.d[a] < at.down[a] ? -1.0 : at.d[a] > at.up[a] ? 1.0 : 0.0;
        if (side != 0.0) next = side * at.solved[a] < 0.0 && at.down[a] < at.up[a] ? 0.0 : side;
        if (next == side) continue;
        if (all || wrong == 0) at.side[a] = next;
        ++wrong;
    }
    return wrong;
}

// Set d, from the sides that are guessed.
inline void maximise(BoxQuadratic& at) {
    const Size n = at.hessian.n;
    const double work = double(n) * double(n) * double(n);
    Size fewest = n + 1;
    double left = MOST_WORK;
    for (int patience = PATIENCE; patience > 0 || left > 0.0; --patience) {
        solve_guess(at);
        const Size wrong = correct_guess(at, patience > 0);
        if (wrong == 0) return;
        if (wrong < fewest) fewest = wrong, patience = PATIENCE + 1;
        if (patience <= 0) left -= work;
    }
    for (Size a = 0; a < n; ++a) at.d[a] = clip(at.d[a], at.down[a], at.up[a]);
}

}  // namespace coldq::COLDQ_LEVEL
