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

constexpr int HALVINGS = 30;  // of the share

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
    double *lower, *upper;
    double R, tolerance;
    const double* near;  // where a point of least violation is looked for

    static Size scratch(Size n, Size p) { return 4 * n + p + Violation::scratch(n, p); }

    // Set `kept` and `point`, of which a margin's rows are to have one in common.
    Room largest(const double* margin, const double* worst, double* kept, double* point,
                 double* memory) const {
        const Size n = rows.n, p = rows.p;
        Scratch scratch{memory};
        double *limits = scratch.take(n), *least = scratch.take(n), *room = scratch.take(n);
        double *asked = scratch.take(n), *other = scratch.take(p);
        auto tightened = [&](const double* by) {
            for (Size k = 0; k < n; ++k) limits[k] = rows.b[k] - by[k];
            return Rows{n, p, rows.A, limits, nullptr};
        };
        bool answered = true;
        auto has_point = [&](const double* by, double* at) {
            const Rows tight = tightened(by);
            const Violation violation = {tight, lower, upper, width_of(R), true};
            answered = answered && violation.least(near, at, scratch.at);
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
            const double slope = root(dot(rows.A + k * p, rows.A + k * p, p));
            room[k] = slope > 0.0 ? slope : 1.0;
            widest = larger(widest, (margin[k] - least[k]) / room[k]);
        }
        const bool whole_history = has_point(least, point);
        for (Size k = 0; k < n; ++k) kept[k] = 0.0;
        if (!whole_history) has_point(kept, point);
        auto part = [&](double share) {
            for (Size k = 0; k < n; ++k)
                kept[k] = whole_history ? smaller(margin[k], least[k] + share * (room[k] * widest))
                                        : share * asked[k];
        };
        double low = 0.0, high = 1.0;
        for (int halving = 0; halving < HALVINGS && answered; ++halving) {
            const double middle = 0.5 * (low + high);
            part(middle);
            if (has_point(kept, other)) {
                low = middle;
                copy(other, p, point);
            } else {
                high = middle;
            }
        }
        // Just beyond that the least violation has one place, which rounding moves little.
        part(high);
        has_point(kept, other);
        part(low);
        if (keeps(tightened(kept), other, R, tolerance)) copy(other, p, point);
        return !answered ? Room::unknown : whole_history ? Room::part : Room::none;
    }
};

}  // namespace coldq::COLDQ_LEVEL
