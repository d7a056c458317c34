// Affine rows in a ball, |x - c| <= radius.
//
// The ball's multiplier nu adds nu (|x - c|^2 - radius^2) to the objective, which is the same
// problem without a ball, around c and with the curvature a = alpha + nu: one for the dual Newton
// method, in all of space. Its answer x(s) is piecewise affine in s = 1 / a, and its distance from
// c never falls as s grows: a line through two points of x(s) gives the root of
// |x(s) - c| = radius once both lie on the root's own piece.
#pragma once

#include "batch.hpp"
#include "newton/dual_newton.hpp"
#include "root/root.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double MOST_SYSTEMS = 24.0;      // of one curvature: what needs more, others solve faster
constexpr double SPHERE_ROUNDING = 1e-15;  // of the ball's size: as near its sphere x is sought
constexpr double OUT_OF_REACH = 1e-9;      // of the same: hard rows that far away miss the ball
constexpr double CENTER_SHARE = 1e-3;      // of how far the center is, beside the radius

inline Size ball_size(Size n, Size p) { return iterate_size(n, p) + 6 * p + 3 * n; }

struct Ball {
    Instance<double> of;  // without the ball, around c
    Iterate<double> iterate;
    double radius;
    double *step, *floor, *weights;  // memory for the rows
    double *inner, *outer, *before;  // the last points inside and outside, and one before
    double size = radius, s_inner = 0.0, s_outer = 0.0, residual = INFINITE, reach = 0.0;
    int trials = 0;

    // A problem with rows around `middle`, whose bounds are not looked at.
    Ball(Scratch memory, Instance<double> given, const double* middle, double radius, double* x)
        : of(given), radius(radius) {
        const Size n = of.n, p = of.p;
        iterate = iterate_in(memory.take(iterate_size(n, p)), n, p);
        iterate.x = x;
        double** columns[] = {&inner, &outer, &before};
        for (double** line : columns) *line = memory.take(p);
        double** rows[] = {&step, &floor, &weights};
        for (double** line : rows) *line = memory.take(n);
        double *descent = memory.take(p), *lower = memory.take(p), *upper = memory.take(p);
        for (Size i = 0; i < p; ++i) {
            descent[i] = of.gradient[i] + 2.0 * of.alpha * (middle[i] - of.center[i]);
            lower[i] = -INFINITE, upper[i] = INFINITE;
            size = larger(size, radius + absolute(middle[i]));
        }
        of.center = middle, of.gradient = descent, of.lower = lower, of.upper = upper;
    }

    double distance(const double* x) const {
        return root(sum_over<double>(of.p, [&](auto read) __attribute__((always_inline)) {
            const auto away = read(x) - read(of.center);
            return away * away;
        }));
    }

    // The s at which the line through x(s) and x(t) meets the sphere; NaN if it does not.
    double to_sphere(const double* point, double s, const double* other, double t) const {
        const auto sum = sums_over<3, double>(of.p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(point));
            const V away = read(point) - V(read(of.center));
            const V speed = (read(other) - V(read(point))) / V(t - s);
            return Terms<V, 3>{{speed * speed, away * speed, away * away}};
        });
        const auto [vv, ev, ee] = sum.of;
        const double gap = radius * radius - ee, square = ev * ev + vv * gap;
        if (!(square > 0.0 && vv > 0.0)) return NOT_A_NUMBER;
        return s + (ev > 0.0 ? gap / (ev + root(square)) : (root(square) - ev) / vv);
    }

    // Set the answer of this curvature, and how far from c it is.
    void solve(double curvature) {
        of.alpha = curvature;
        residual = solve_one(of, iterate, {MOST_SYSTEMS, true}, step);
        reach = distance(iterate.x);
        if (residual < UNSETTLED && !(reach < INFINITE)) residual = NOT_A_NUMBER;
    }
    bool is_lost() const { return !(residual < UNSETTLED); }

    Trial at(double curvature) {
        solve(curvature);
        const double s = 1.0 / curvature;
        if (is_lost() || absolute(reach - radius) <= SPHERE_ROUNDING * size) return {0.0, 0.0};
        double*& last = reach > radius ? outer : inner;
        double& s_last = reach > radius ? s_outer : s_inner;
        double* x = before;
        for (Size i = 0; i < of.p; ++i) x[i] = iterate.x[i];
        before = last, last = x;
        // Two points of the same side are often on one piece already.
        double t = to_sphere(x, s, before, s_last);
        s_last = s;
        if (++trials % 3 == 0 || !(s_inner < t && t < s_outer))
            t = to_sphere(inner, s_inner, outer, s_outer);
        return {reach - radius, 1.0 / t};
    }

    // Set `inner` to where x goes as nu grows for ever: c, or the point nearest to it in which hard
    // rows hold, as nothing else counts then. The residual, infinite where that is no point of the
    // ball.
    double set_inner() {
        bool hard = false;
        for (Size k = 0; k < of.n; ++k) {
            const bool stiff = of.soft[k] == 0.0;
            floor[k] = stiff && of.floor[k] == -INFINITE ? -INFINITE : 0.0;
            weights[k] = stiff && of.weights[k] == INFINITE ? INFINITE : 0.0;
            hard = hard || floor[k] < weights[k];
        }
        for (Size i = 0; i < of.p; ++i) inner[i] = of.center[i], before[i] = 0.0;
        if (!hard) return 0.0;
        Instance<double> nearest = of;
        Iterate<double> its = iterate;
        nearest.gradient = before, nearest.alpha = 0.5;
        nearest.floor = floor, nearest.weights = weights;
        its.x = inner;
        const double found = solve_one(nearest, its, {MOST_SYSTEMS, true}, step);
        return distance(inner) > radius + OUT_OF_REACH * size ? INFINITE : found;
    }

    // The residual of the answer: that of the problem with the curvature found, or the ball's own,
    // relative to the radius, and to the digits of a center that is far away.
    double run() {
        const double alpha = of.alpha;
        solve(alpha);
        if (is_lost() || reach <= radius) return residual;
        for (Size i = 0; i < of.p; ++i) outer[i] = iterate.x[i];
        s_outer = 1.0 / alpha;
        const double far = reach, blocked = set_inner();
        if (!(blocked < INFINITE)) return blocked;
        find_root(*this, alpha, {far - radius, 1.0 / to_sphere(inner, 0.0, outer, s_outer)},
                  INFINITE);
        if (is_lost()) return residual;
        for (Size i = 0; i < of.p; ++i)  // beyond the bounding box not even by rounding
            iterate.x[i] = clip(iterate.x[i], of.center[i] - radius, of.center[i] + radius);
        const double off = absolute(reach - radius);
        return larger(off / (radius + CENTER_SHARE * (size - radius)), residual);
    }
};

}  // namespace coldq::COLDQ_LEVEL
