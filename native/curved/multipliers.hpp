// Newton's method in the multipliers of curved rows.
//
// Where the Lagrangian's hessian over the coordinates F strictly between their bounds is B_FF, the
// dual bends by J_F B_FF^-1 J_F' for the jacobian J of the rows. Each step maximises that quadratic
// model over the bounds of the multipliers, and a line search goes along it on the dual's slope.
// How the rows hold their curvature is up to R, which has
//
//     minimise(mu, x)          set x to the minimiser of L(x, mu) over the box, from x
//     evaluate(of)             set what the rows are at x
//     begin_model(of)          after these: make ready for
//     add_to_model(of, a, k)   half-solve B v = J_k as line a
//     product(a, c)            the product of two such lines: an entry of J B^-1 J'
#pragma once

#include "curved/bracket.hpp"
#include "curved/rows.hpp"
#include "newton/dual_newton.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SLOPE_LEFT = 0.2;  // of the slope at the start: a closer search costs more
constexpr double ENDLESS = 1e100;   // a step in which the dual still rises: it does so for ever
constexpr double EXACT = 1e-13, NEARLY = 1e-11;  // residuals
constexpr int PATIENCE = 8, PATIENCE_FAR_OFF = 12, MOST_SEARCHED = 150, PLACES = 60;

struct Multipliers {
    Iterate<double> model;  // of the rows chosen
    Size* chosen;
    double *start, *step;  // mu before a step; memory to work in

    static Size size(Size n) { return iterate_size(n, 0) + 3 * n; }
    static Multipliers in(Scratch& scratch, Size n) {
        Multipliers made;
        made.model = iterate_in(scratch.take(iterate_size(n, 0)), n, 0);
        made.chosen = reinterpret_cast<Size*>(scratch.take(n));
        made.start = scratch.take(n);
        made.step = scratch.take(n);
        return made;
    }
};

// List the rows whose multiplier should move; whether none need do so by much.
inline bool list_moving(const CurvedIterate& of, Size* chosen, Size& m) {
    bool settled = true;
    m = 0;
    for (Size k = 0; k < of.n; ++k) {
        const double g = of.at.g[k], tolerance = ROW_TOLERANCE * of.at.size[k];
        if ((of.mu[k] <= of.lo[k] && g <= tolerance) || (of.mu[k] >= of.hi[k] && g >= -tolerance))
            continue;
        chosen[m++] = k;
        settled = settled && absolute(g) <= tolerance;
    }
    return settled;
}

// Set the dual's quadratic model for the chosen rows; whether one of them is flat there, as nothing
// that it moves is free.
template <class R>
bool set_model(R& rows, const CurvedIterate& of, const Multipliers& by, Size m) {
    bool flat = false;
    const Iterate<double>& model = by.model;
    rows.begin_model(of);
    for (Size a = 0; a < m; ++a) {
        const Size k = by.chosen[a];
        rows.add_to_model(of, a, k);
        for (Size c = 0; c <= a; ++c)
            model.hessian[a * m + c] = model.hessian[c * m + a] = rows.product(a, c);
        const double* slope = of.at.slope + k * of.p;
        double norm = 0.0;
        for (Size i = 0; i < of.p; ++i)
            norm += of.lower[i] < of.upper[i] ? slope[i] * slope[i] : 0.0;
        const double largest = of.at.largest[k];
        const double steep = largest > 0.0 ? ROW_SHARE * of.at.size[k] / largest : 0.0;
        const double least = REGULARISATION * (norm + steep * steep) + TINY;
        double& own = model.hessian[a * m + a];
        flat = flat || own < least;
        own += least;
        model.g[a] = of.at.g[k];
        model.mu[a] = of.mu[k];
        model.lo[a] = of.lo[k];
        model.hi[a] = of.hi[k];
        model.moving[a] = 1.0;
    }
    return flat;
}

// Set mu to t d after the start; multipliers that meet a bound are at it exactly.
inline void move(const CurvedIterate& of, const Multipliers& by, Size m, double t) {
    for (Size a = 0; a < m; ++a) {
        const Size k = by.chosen[a];
        const double to = by.start[k] + t * by.model.d[a];
        of.mu[k] = to >= of.hi[k] ? of.hi[k] : to <= of.lo[k] ? of.lo[k] : to;
    }
}

// Go along d until the dual's slope has nearly vanished. How many places were tried: 0 if the dual
// does not rise, below 0 if it rises for ever.
template <class R>
int search(R& rows, const CurvedIterate& of, const Multipliers& by, Size m, bool flat) {
    const Iterate<double>& model = by.model;
    double first = 0.0, limit = INFINITE;
    for (Size a = 0; a < m; ++a) {
        const double d = model.d[a];
        first += d * model.g[a];
        if (d > 0.0) limit = smaller(limit, up(model, a) / larger(d, TINY));
        if (d < 0.0) limit = smaller(limit, down(model, a) / smaller(d, -TINY));
    }
    if (!(first > 0.0)) return 0;
    limit = larger(limit, 1.0);
    for (Size k = 0; k < of.n; ++k) by.start[k] = of.mu[k];
    Bracket bracket{0.0, first};
    double t = 1.0;
    for (int tried = 1; tried <= PLACES; ++tried) {
        move(of, by, m, t);
        rows.minimise(of.mu, of.x);
        rows.evaluate(of);
        double slope = 0.0;
        for (Size a = 0; a < m; ++a) slope += model.d[a] * of.at.g[by.chosen[a]];
        // A step of a flat row has no length that means anything: it may well be far too long, and
        // the slope about as small behind the maximum as it is in front.
        const bool beyond = flat && slope < 0.0 && bracket.left < 0.5 * t;
        if (!beyond && (absolute(slope) <= SLOPE_LEFT * first || (slope > 0.0 && t >= limit)))
            return tried;
        t = bracket.next(t, slope, limit);
        if (t > ENDLESS) return -1;
        if (!bracket.has_inside(t)) return tried;
    }
    return PLACES;
}

// The largest |g| that a multiplier does not explain. Around a point that a row hardly lets x leave
// the terms of g shrink along with it, so that the residual shows no progress until the end.
inline double most_wrong(const CurvedIterate& of) {
    double worst = 0.0;
    for (Size k = 0; k < of.n; ++k) {
        const double mu = of.mu[k], g = of.at.g[k];
        if ((mu > of.lo[k] && g < 0.0) || (mu < of.hi[k] && g > 0.0))
            worst = larger(worst, absolute(g));
    }
    return worst;
}

// The residual of x and mu, infinite where enforced rows seem to have no common point.
template <class R>
double solve_curved(R& rows, const CurvedIterate& of, const Multipliers& by) {
    rows.minimise(of.mu, of.x);
    rows.evaluate(of);
    double best = INFINITE, least = INFINITE, residual = curved_residual(of, false);
    int stuck = 0, searched = 0;
    for (Size step = 0; step < 60 + 10 * of.n; ++step) {
        Size m;
        if (list_moving(of, by.chosen, m)) break;
        const bool flat = set_model(rows, of, by, m);
        int rounds = 0;
        if (!pivot(by.model, m, true, rounds)) climb(by.model, m, INFINITE, by.step);
        const int tried = search(rows, of, by, m, flat);
        if (tried < 0) return INFINITE;
        if (tried == 0) break;
        searched += tried;
        residual = curved_residual(of, false);
        const double wrong = most_wrong(of);
        stuck = residual < 0.5 * best || wrong < 0.5 * least ? 0 : stuck + 1;
        if (residual < 0.5 * best) best = residual;
        if (wrong < 0.5 * least) least = wrong;
        // What it does not get on with is soon better off elsewhere.
        if (!(best > EXACT) || (stuck > PATIENCE && best <= NEARLY) || stuck > PATIENCE_FAR_OFF ||
            searched > MOST_SEARCHED)
            break;
    }
    return residual;
}

}  // namespace coldq::COLDQ_LEVEL
