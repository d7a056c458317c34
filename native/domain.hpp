// A box, or blocks of coordinates with sums in one, as whole updates and contractions take it.
#pragma once

#include <cmath>

#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

struct Domain {
    double *lower, *upper;
    // Of blocks the first coordinates, the sums, and what these are: minus infinity where exactly
    // this, 0 where at most, infinity where anything. On a box there are none.
    double *start, *total, *kind;
    Size blocks;
    double* systems;  // how many Newton's method may solve

    // The least <a, x> times the sign over it; NaN where a lower bound of a sum's coordinate is
    // infinite.
    double least(const double* a, Size p, double sign = 1.0) const {
        if (blocks == 0) return at_bounds(a, sign, 0, p);
        double found = 0.0;
        for (Size j = 0; j < blocks; ++j) {
            const Size from = first(j, p), to = first(j + 1, p);
            found +=
                kind[j] < HUGE_VAL ? filled(a, sign, j, from, to) : at_bounds(a, sign, from, to);
        }
        return found;
    }

    // The first coordinate of block j of p, which is the end of the one before.
    Size first(Size j, Size p) const {
        return j < blocks ? Size(smaller(larger(0.0, start[j]), double(p))) : p;
    }

  private:
    double at_bounds(const double* a, double sign, Size from, Size to) const {
        return sum<double>(larger(to - from, Size(0)), [&](Size k) {
            const Size i = from + k;
            return a[i] == 0.0 ? 0.0 : smaller(sign * a[i] * lower[i], sign * a[i] * upper[i]);
        });
    }

    // The sum is reached by the coordinates of least slope, from the lower bounds on. The slope at
    // which it is reached is looked for by halving, as the domain is not sorted.
    double filled(const double* a, double sign, Size j, Size from, Size to) const {
        const double most = kind[j] == 0.0 ? 0.0 : HUGE_VAL;  // of a slope that is worth filling
        auto slope = [&](Size i) { return smaller(sign * a[i], most); };
        auto room = [&](double highest) {  // of the coordinates of no more slope
            return sum<double>(larger(to - from, Size(0)), [&](Size k) {
                return slope(from + k) <= highest ? upper[from + k] - lower[from + k] : 0.0;
            });
        };
        double value = 0.0, rest = total[j], low = HUGE_VAL, high = -HUGE_VAL;
        for (Size i = from; i < to; ++i) {
            value += a[i] == 0.0 ? 0.0 : sign * a[i] * lower[i];
            rest -= lower[i];
            low = smaller(low, slope(i)), high = larger(high, slope(i));
        }
        if (rest == HUGE_VAL) return __builtin_nan("");
        if (!(rest > 0.0)) return value;
        if (room(low) >= rest) high = low;
        for (bool between = low < high; between;) {
            const double middle = 0.5 * low + 0.5 * high;
            if (!(low < middle && middle < high)) break;
            (room(middle) < rest ? low : high) = middle;
            between = false;
            for (Size i = from; i < to; ++i)
                between = between || (low < slope(i) && slope(i) < high);
        }
        double top = -HUGE_VAL, left = 0.0;  // the slope at which it is reached, and its room
        for (Size i = from; i < to; ++i) {
            if (low < high && slope(i) <= low && a[i] != 0.0)
                value += slope(i) * (upper[i] - lower[i]);
            if (slope(i) <= high) top = larger(top, slope(i));
        }
        if (low < high) rest -= room(low);
        for (Size i = from; i < to; ++i) left += slope(i) == top ? upper[i] - lower[i] : 0.0;
        return top == 0.0 ? value : value + top * smaller(rest, left);
    }
};

}  // namespace coldq::COLDQ_LEVEL
