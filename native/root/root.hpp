// The root of a function of one multiplier that falls as the multiplier grows.
//
// Each kind of row says where its own model of the function meets zero: Newton's method in the
// variable in which it is nearly straight, a line through two points, or the next breakpoint. A
// bracket keeps that safe: a place outside it, or one that comes late, gives way to the middle.
#pragma once

#include "newton/residual.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr int MOST_TRIALS = 200;
constexpr int EARLY_TRIALS = 12;      // after which every other place is the bracket's middle
constexpr double FAR_AWAY = 1e200;    // a multiplier to stop at
constexpr double WIDE = 4.0;          // a bracket's ratio above which its middle is geometric
constexpr double NEAR_ZERO = 1e-30;   // of a bracket's right end: as what its left one counts
constexpr double TERMS = 1e-7;        // of a slope's terms: a last digit of x moves them by as much
constexpr double LEAST_SHARE = 1e-3;  // of the largest coordinate: as what each counts in a row

// What the function is at a place, 0 where that is rounding, and where its model meets zero, which
// is nowhere in the bracket if it is not known.
struct Trial {
    double value, next;
};

inline double middle_of(double left, double right) {
    if (right == INFINITE) return larger(10.0 * left, 1.0);
    if (right <= WIDE * left) return left + 0.5 * (right - left);
    return root(larger(left, NEAR_ZERO * right)) * root(right);
}

// The root above `place`, of which a trial was made; `most` if the function is positive all the
// way. The last trial is that of the root.
template <class Row>
inline double find_root(Row&& row, double place, Trial there, double most) {
    double left = place, right = INFINITE;
    for (int k = 0; k < MOST_TRIALS && there.value != 0.0; ++k) {
        if (there.value > 0.0 && place >= most) break;
        (there.value > 0.0 ? left : right) = place;
        double next = smaller(there.next, most);
        const bool late = k > EARLY_TRIALS && k % 2 == 0;
        if (late || !(left < next && next < right)) next = smaller(middle_of(left, right), most);
        if (!(left < next && next < right && next < FAR_AWAY)) break;
        place = next;
        there = row.at(place);
    }
    return place;
}

// A row's price: its multiplier is in [floor, weight], and mu, divided by 2 alpha, in [lo, hi].
struct Price {
    double alpha, floor, weight;
    double lo = floor * (0.5 / alpha), hi = weight * (0.5 / alpha);

    double multiplier(double mu) const {
        if (mu >= hi) return weight;
        return mu <= lo ? floor : clip(mu * (2.0 * alpha), floor, weight);
    }
    // The worse of x's error and of the row's, where its value g has a sign that mu forbids.
    double residual(double worst, double mu, double g, double size) const {
        if (!(lo <= hi && absolute(g) < INFINITE)) return NOT_A_NUMBER;
        const bool wrong = (mu > lo && g < 0.0) || (mu < hi && g > 0.0);
        return wrong ? larger(worst, absolute(g) / larger(size, TINY)) : worst;
    }
};

// The largest of `term(read)` over the coordinates of arrays, at least 0; see sums_over.
template <class Term>
COLDQ_INLINE double largest_over(Size p, Term term) {
    using Wide = Pack<WIDEST>;
    Wide most(0.0);
    double largest = 0.0;
    const Size whole = p - p % WIDEST;
    for (Size i = 0; i < whole; i += WIDEST)
        most = larger(most, Wide(term([i](const double* array) __attribute__((always_inline)) {
                          return load<Wide>(array + i);
                      })));
    for (int lane = 0; lane < WIDEST; ++lane) largest = larger(largest, most[lane]);
    for (Size i = whole; i < p; ++i)
        largest = larger(largest, term([i](const double* array)
                                           __attribute__((always_inline)) { return array[i]; }));
    return largest;
}

// The size of a coordinate: of itself, or if more of the rounding that it may have.
template <class T>
COLDQ_INLINE T known_size(T x, T y, T lower, T upper) {
    return larger(absolute(x), smaller(T(DOUBT) * absolute(y), upper - lower));
}

// Set y = center - gradient / (2 alpha); whether it is finite and the box is one.
inline bool set_target(const Price& price, const double* center, const double* gradient,
                       const double* lower, const double* upper, double* y, Size p) {
    const double half = 0.5 / price.alpha;
    bool sound = price.alpha > 0.0;
    across(p, [&]<class T>(T at, Size i) {
        at = load<T>(center + i) - load<T>(gradient + i) * T(half);
        store(y + i, at);
        const T low = load<T>(lower + i), high = load<T>(upper + i);
        sound = sound && all((absolute(at) < T(INFINITE)) & (low <= high));
    });
    return sound;
}

// How far a coordinate is off: in its slope x - z, relative to the terms of that, or in its way to
// clip(z), relative to its own size, if less.
template <class T>
COLDQ_INLINE T off_by(T x, T z, T y, T terms, T lower, T upper) {
    return absolute(x - clip(z, lower, upper)) / size_at_bound(x, z, y, terms, lower, upper);
}

}  // namespace coldq::COLDQ_LEVEL
