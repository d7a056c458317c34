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

    // The least <a, x> over it; where a lower bound of a sum's coordinate is infinite, at the
    // bounds.
    double least(const double* a, Size p) const {
        if (blocks == 0) return at_bounds(a, 0, p);
        double found = 0.0;
        for (Size j = 0; j < blocks; ++j) {
            const Size from = first(j, p), to = first(j + 1, p);
            found += kind[j] < HUGE_VAL ? filled(a, j, from, to) : at_bounds(a, from, to);
        }
        return found;
    }

    // The first coordinate of block j of p, which is the end of the one before.
    Size first(Size j, Size p) const {
        return j < blocks ? Size(smaller(larger(0.0, start[j]), double(p))) : p;
    }

  private:
    double at_bounds(const double* a, Size from, Size to) const {
        return sum<double>(larger(to - from, Size(0)), [&](Size k) {
            const Size i = from + k;
            return a[i] == 0.0 ? 0.0 : smaller(a[i] * lower[i], a[i] * upper[i]);
        });
    }

    // The sum is reached by the coordinates of least slope.
    double filled(const double* a, Size j, Size from, Size to) const {
        double value = 0.0, rest = total[j];
        for (Size i = from; i < to; ++i) {
            value += a[i] == 0.0 ? 0.0 : a[i] * lower[i];
            rest -= lower[i];
        }
        if (rest == HUGE_VAL) return at_bounds(a, from, to);
        for (Size last = -1; rest > 0.0;) {
            Size next = -1;
            for (Size i = from; i < to; ++i) {
                const bool is_left = last < 0 || a[i] > a[last] || (a[i] == a[last] && i > last);
                if (is_left && (next < 0 || a[i] < a[next])) next = i;
            }
            if (next < 0 || (kind[j] == 0.0 && !(a[next] < 0.0))) break;
            const double amount = smaller(rest, upper[next] - lower[next]);
            value += a[next] * amount;
            rest -= amount;
            last = next;
        }
        return value;
    }
};

}  // namespace coldq::COLDQ_LEVEL
