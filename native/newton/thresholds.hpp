// Projection on blocks of coordinates with sums, by thresholds.
//
// Coordinates come in blocks, one after another. The sum of each is `total`, or at most that, or
// anything, as `kind`, the least multiplier of the sum, says: minus infinity, 0 or infinity. The
// projection of z is x = clip(z - theta), with the threshold theta at which a block's sum is right:
// Newton's method on a sum that falls piece by piece (Held, Wolfe and Crowder 1974; Condat 2016).
// Along z - t w the thresholds move with t, and with them the slope w'x of a dual.
#pragma once

#include "newton/rows.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double EXACT_SUM = 1e-15;   // of the terms of a block's sum: how well it is met
constexpr double EXACT_BEND = 1e-13;  // of its terms: less of a difference is rounding
constexpr double LARGE_SHIFT = 4.0;   // times the largest coordinate: z has lost digits
constexpr int MOST_SHIFTS = 200, MOST_SLOPES = 100;
constexpr double SLOPE_TOLERANCE = 0.02;  // of the slope at the start
constexpr double SUM_NOISE = 4e-16;       // of the terms that a row's value is the sum of

// One block of coordinates.
struct Block {
    Size size;
    const double *z, *w, *lower, *upper;
    double total;
};

struct Blocks {
    Size p, count;
    const double *lower, *upper, *total, *kind;
    const double* roof;  // the upper bounds but for those that a sum implies
    // z less the thresholds so far, w the direction; of blocks the first coordinate, the threshold
    // and its last shift in a line search.
    double *z, *w, *theta, *shift;
    double* plain;  // 1 for blocks whose lower bounds are 0 and whose sum implies the upper ones
    Size* first;

    bool has_sum(Size j) const { return kind[j] < INFINITE; }
    bool is_held(Size j) const { return kind[j] < 0.0 || (kind[j] == 0.0 && theta[j] > 0.0); }
    double least_shift(Size j) const { return kind[j] < 0.0 ? -INFINITE : -theta[j]; }
    Block block(Size j) const {
        const Size from = first[j];
        return {first[j + 1] - from, z + from, w + from, lower + from, roof + from, total[j]};
    }
};

// The sum at a shift s less the total, the size of its terms, and how many coordinates move with
// s upwards and downwards.
COLDQ_INLINE Terms<double, 4> sum_at(const Block& of, double t, double s) {
    return block_sums<4>(of.size, [&](auto read) __attribute__((always_inline)) {
        const auto z = read(of.z);
        using V = decltype(read(of.z));
        const V zero(0.0), one(1.0), lower = read(of.lower), upper = read(of.upper);
        const V v = (z - V(t) * read(of.w)) - V(s), x = clip(v, lower, upper);
        return Terms<V, 4>{{x, absolute(x), select((lower < v) & (v <= upper), one, zero),
                            select((lower <= v) & (v < upper), one, zero)}};
    });
}

// Where no coordinate moves at s: the interval in which the sum falls shrinks to the outermost
// breakpoints. Returns the way to the next breakpoint, infinite if there is none.
inline double shrink_to_breakpoints(const Block& of, double t, double s, bool above, double& left,
                                    double& right) {
    double gap = INFINITE, least = INFINITE, last = -INFINITE;
    for (Size i = 0; i < of.size; ++i) {
        const double v = (of.z[i] - t * of.w[i]) - s;
        const double beyond = above ? v - of.upper[i] : of.lower[i] - v;
        gap = smaller(gap, beyond > 0.0 ? beyond : INFINITE);
        least = smaller(least, v - of.upper[i]);
        last = larger(last, v - of.lower[i]);
    }
    if (gap < INFINITE) left = larger(left, s + least), right = smaller(right, s + last);
    return gap;
}

// The shift s, at least `least`, at which the sum of clip(z - t w - s) is the total: a safeguarded
// Newton iteration from the s given. At an end of a piece the one counts that s goes to; where no
// coordinate moves, s goes to the middle of what is left.
inline double shift_to_total(const Block& of, double t, double least, double s) {
    double left = -INFINITE, right = INFINITE;
    s = larger(s, least);
    for (int count = 0; count < MOST_SHIFTS; ++count) {
        const auto sum = sum_at(of, t, s);
        const double over = sum.of[0] - of.total, size = sum.of[1] + absolute(of.total);
        const double moving = over > 0.0 ? sum.of[2] : sum.of[3];
        double next = larger(s + over / larger(moving, 1.0), least);
        if (absolute(over) <= EXACT_SUM * (size + moving * absolute(s)) ||
            (over <= 0.0 && s <= least))
            return moving > 0.0 ? next : s;
        if (over > 0.0)
            left = s;
        else
            right = s;
        if (moving == 0.0) {
            const double gap = shrink_to_breakpoints(of, t, s, over > 0.0, left, right);
            if (gap == INFINITE) return s;
            if (right <= least) {
                s = least;
                continue;
            }
            next = 0.5 * (left + right);
            if (!(absolute(next) < INFINITE)) next = (s + over) + (over > 0.0 ? gap : -gap);
            next = larger(next, least);
        }
        if (!(left < next && next < right)) {
            next = 0.5 * (left + right);
            if (!(left < next && next < right)) return s;
        }
        s = next;
    }
    return s;
}

// The same of a plain block, whose sum bends one way: after one step Newton's method only goes up,
// and it is there once as many coordinates are positive as before.
inline double shift_of_plain(const Block& of, double t, double least, double s) {
    double before = -1.0;
    for (int count = 0; count < MOST_SHIFTS; ++count) {
        const auto sum = block_sums<2>(of.size, [&](auto read) __attribute__((always_inline)) {
            const auto z = read(of.z);
            using V = decltype(read(of.z));
            const V zero(0.0), v = (z - V(t) * read(of.w)) - V(s);
            return Terms<V, 2>{{larger(v, zero), select(v > zero, V(1.0), zero)}};
        });
        const double positive = sum.of[1];
        if (positive == 0.0) {
            if (before == 0.0) break;
            s = -INFINITE;
            for (Size i = 0; i < of.size; ++i) s = larger(s, of.z[i] - t * of.w[i]);
            s -= of.total;
        } else {
            s += (sum.of[0] - of.total) / positive;
            if (positive == before) break;
        }
        before = positive;
    }
    return larger(s, least);
}

inline double shift(const Blocks& at, Size j, double t) {
    if (at.plain[j] != 0.0) return shift_of_plain(at.block(j), t, at.least_shift(j), at.shift[j]);
    return shift_to_total(at.block(j), t, at.least_shift(j), at.shift[j]);
}

// Go to z - t w, from there to the thresholds at which the sums are right, and set x.
inline void place(const Blocks& at, double t, double* x) {
    for (Size j = 0; j < at.count; ++j) {
        const Block of = at.block(j);
        double *z = at.z + at.first[j], *w = at.w + at.first[j], *its = x + at.first[j];
        double s = 0.0;
        // What is left of a difference of large numbers has their rounding: again, without them.
        for (int count = 0; count < 2; ++count) {
            if (at.has_sum(j)) {
                s = shift(at, j, t);
                at.theta[j] += s;
                at.shift[j] = 0.0;
            }
            double largest = 0.0;
            for (Size i = 0; i < of.size; ++i) {
                z[i] = (z[i] - t * w[i]) - s;
                w[i] = 0.0;
                its[i] = clip(z[i], of.lower[i], at.upper[at.first[j] + i]);
                largest = larger(largest, absolute(its[i]));
            }
            if (!(absolute(s) > LARGE_SHIFT * largest)) break;
        }
    }
}

// w'x where z is z - t w, and how fast it falls there.
inline Terms<double, 2> slope_at(const Blocks& at, double t) {
    double slope = 0.0, bend = 0.0;
    for (Size j = 0; j < at.count; ++j) {
        const Block of = at.block(j);
        const double least = at.has_sum(j) ? at.least_shift(j) : 0.0;
        const double s = at.has_sum(j) ? shift(at, j, t) : 0.0;
        at.shift[j] = s;
        const auto sum = block_sums<4>(of.size, [&](auto read) __attribute__((always_inline)) {
            const auto w = read(of.w);
            using V = decltype(read(of.w));
            const V zero(0.0), lower = read(of.lower), upper = read(of.upper);
            const V v = (read(of.z) - V(t) * w) - V(s);
            const auto free = (lower < v) & (v < upper);
            const V own = select(free, w, zero);
            return Terms<V, 4>{
                {w * clip(v, lower, upper), own * own, own, select(free, V(1.0), zero)}};
        });
        slope += sum.of[0];
        double squares = sum.of[1];
        if (at.has_sum(j) && s > least && sum.of[3] > 0.0) {
            const double rest = squares - sum.of[2] * sum.of[2] / sum.of[3];
            squares = rest > EXACT_BEND * squares ? rest : 0.0;
        }
        bend += squares;
    }
    return {{slope, bend}};
}

// Where the dual stops rising along w; infinity where it rises for ever, as far as can be seen.
// The slope is `start` at 0; multipliers meet a bound at `limit`.
inline double search(const Blocks& at, double start, double offset, double noise, double limit,
                     int& slopes) {
    double left = 0.0, right = INFINITE, t = smaller(1.0, limit);
    for (int count = 0; count < MOST_SLOPES; ++count) {
        ++slopes;
        const auto sum = slope_at(at, t);
        const double slope = sum.of[0] - offset, bend = sum.of[1];
        if (!(absolute(slope) > SLOPE_TOLERANCE * start + noise)) return t;
        if (slope > 0.0) {
            if (t >= limit) return limit;
            left = t;
            const double far = right == INFINITE ? 4.0 * t : 0.5 * (left + right);
            t = bend * far > 0.01 * slope ? t + slope / bend : far;
            t = smaller(t < right ? t : far, limit);
        } else {
            right = t;
            t = t + slope / larger(bend, TINY);
            if (t <= left) t = 0.5 * (left + right);
        }
        if (!(left < t)) return t;
    }
    return right == INFINITE ? INFINITE : t;
}

}  // namespace coldq::COLDQ_LEVEL
