// Rows that a price cannot keep: the most of their margin that leaves them a common point.
//
// That is the whole margin m, if it can be. Else the lowest limits so far are kept, which a margin
// w asks for, with the same room beyond them for every row, in units of x: with the largest share
// that leaves a common point,
//
//     min(m^n, w^n + share |A_n| max_k (m^k - w^k) / |A_k|).
//
// Where these have none either the decision is reduced, and the margin the largest share of
// min(m, max(w, 0)); without a common point at no margin, the point is one of least violation.
#pragma once

#include "learners/foresight.hpp"
#include "learners/least_violation.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SHARE_PRECISION = 0x1p-20;
constexpr int MOST_TRIALS = 75;  // of shares; every third at least halves what is left

enum class Room { unknown, whole, part, none };  // for a margin; unknown where a step failed

// Whether x keeps rows, up to their tolerance. Of an unbounded domain, R is the size of x.
inline bool keeps(const Rows& rows, const double* x, double R, double tolerance) {
    const double size = R < HUGE_VAL ? R : root(dot(x, x, rows.p));
    for (Size k = 0; k < rows.n; ++k) {
        const double* row = rows.A + k * rows.p;
        const double g = dot(row, x, rows.p) - rows.b[k];
        if (g > slack_of(x, g, row, rows.p, size, tolerance)) return false;
    }
    return true;
}

inline double width_of(double R) { return R < HUGE_VAL ? larger(R, LEAST_WIDTH) : 1.0; }

struct MarginSearch {
    Rows rows;  // as expected, without a margin
    Domain domain;
    double R, tolerance;
    const double* near;  // where a point of least violation is looked for

    // How many numbers of memory it takes; negative if too many.
    static Size scratch(Size n, Size p, Size blocks) {
        const Size rest = Violation::scratch(n, p, blocks);
        return rest < 0 ? rest : 4 * n + p + rest;
    }

    // Set `kept` and `point`, of which a margin's rows are to have one in common.
    Room largest(const double* margin, const double* worst, double* kept, double* point,
                 double* memory) const {
        const Size n = rows.n, p = rows.p;
        Scratch scratch{memory};
        double *limits = scratch.take(n), *least = scratch.take(n), *slopes = scratch.take(n);
        double *asked = scratch.take(n), *other = scratch.take(p);
        auto tightened = [&](const double* by) {
            for (Size k = 0; k < n; ++k) limits[k] = rows.b[k] - by[k];
            return Rows{n, p, rows.A, limits, nullptr};
        };
        bool answered = true;
        double excess = 0.0;  // of the last rows that were tried, over their slopes
        for (Size k = 0; k < n; ++k) {
            const double slope = root(dot(rows.A + k * p, rows.A + k * p, p));
            slopes[k] = slope > 0.0 ? slope : 1.0;
        }
        auto has_point = [&](const double* by, double* at) {
            const Rows tight = tightened(by);
            const Violation violation = {tight, domain, width_of(R), true};
            answered = answered && violation.least(near, at, scratch.at);
            excess = sum<double>(n, [&](Size k) {
                return larger(dot(rows.A + k * p, at, p) - limits[k], 0.0) * (1.0 / slopes[k]);
            });
            return answered && keeps(tight, at, R, tolerance);
        };
        auto copy = [](const double* from, Size count, double* to) {
            for (Size e = 0; e < count; ++e) to[e] = from[e];
        };

        copy(margin, n, kept);
        if (has_point(margin, point)) return Room::whole;
        double widest = -HUGE_VAL;
        for (Size k = 0; k < n; ++k) {
            least[k] = smaller(margin[k], worst[k]);
            asked[k] = smaller(margin[k], larger(worst[k], 0.0));
            widest = larger(widest, (margin[k] - least[k]) / slopes[k]);
        }
        const bool keeps_all = has_point(least, point);
        for (Size k = 0; k < n; ++k) kept[k] = 0.0;
        const bool meet = keeps_all || has_point(kept, point);
        auto part = [&](double share) {
            for (Size k = 0; k < n; ++k)
                kept[k] = keeps_all ? smaller(margin[k], least[k] + share * (slopes[k] * widest))
                                    : share * asked[k];
        };
        // Of affine rows the least violation is convex in the share, but for those at their whole
        // margin: beyond the share that is looked for the secant through two others leads back.
        double low = 0.0, high = 1.0;
        part(high);
        has_point(kept, other);
        double beyond = high, high_excess = excess, beyond_excess = excess;
        bool probing = false;
        for (int trial = 0; trial < MOST_TRIALS && answered; ++trial) {
            if (!(meet && high - low > SHARE_PRECISION)) break;
            const double secant =
                high - high_excess * (beyond - high) / (beyond_excess - high_excess);
            const bool leads = low < secant && secant < high && trial % 3 > 0 && !probing;
            const double share = probing ? low + 0.5 * SHARE_PRECISION
                                 : leads ? secant
                                         : 0.5 * (low + high);
            part(share);
            const bool has = has_point(kept, other);
            if (has) {
                low = share;
                copy(other, p, point);
            } else {
                beyond = high, beyond_excess = high_excess;
                high = share, high_excess = excess;
            }
            probing = has && leads;
        }
        // Just beyond that the least violation has one place, which rounding moves little.
        part(high);
        has_point(kept, other);
        part(low);
        if (keeps(tightened(kept), other, R, tolerance)) copy(other, p, point);
        return !answered ? Room::unknown : keeps_all ? Room::part : Room::none;
    }
};

}  // namespace coldq::COLDQ_LEVEL
