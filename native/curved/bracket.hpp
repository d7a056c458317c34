// The root of a falling function of one number by false position, in which an end that stays counts
// half as much each time (the Illinois method, Dowell and Jarratt 1971).
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

struct Bracket {
    double left, left_value;  // where it is above zero
    double right = INFINITE, right_value = 0.0;

    // The next place after t, at most `limit`; where it is not inside, the search is at its end.
    double next(double t, double value, double limit) {
        if (value > 0.0) {
            // Where the value hardly falls, go ten times as far.
            const double fall = larger(left_value - value, 0.11 * value);
            const double ahead = t + (t - left) * value / fall;
            if (left > 0.0) right_value *= 0.5;
            left = t;
            left_value = value;
            if (right == INFINITE) return smaller(ahead, limit);
        } else {
            if (right < INFINITE) left_value *= 0.5;
            right = t;
            right_value = value;
        }
        const double share = left_value / (left_value - right_value);
        return left + (right - left) * clip(share, 0.05, 0.95);
    }

    bool has_inside(double t) const { return left < t && t < right; }
};

}  // namespace coldq::COLDQ_LEVEL
