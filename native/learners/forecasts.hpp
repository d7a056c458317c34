// What forecasts keep of the constraints so far, and what each expects of the next.
//
// Slot t's data are d_t, its limits b_t, one a row. With a weight w and a period P
//
//     average      m += w (d_t - m)
//     trend        d_t + r,  r += w (d_t - d_{t-1} - r)
//     robust       r += max(w, 1/n) clip(b_t - r, -2 s, 2 s), s its usual surprise
//     seasonal     b_{t+1-P}
//     change       b_t + b_{t+1-P} - b_{t-P}
//     regression   b_t + c <v, h>, where h are the changes that others expect, over their scale c
//
// and v is found by recursive least squares: with h and c of the slot before, y = (b_t -
// b_{t-1})/c,
//
//     k = C h,  v += k (y - <v, h>) / (f + <h, k>),  C = (C - k k' / (f + <h, k>)) / f.
//
// Where the forgetting f lets C grow without anything to learn from, its trace is held.
#pragma once

#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double ROBUST_CLIP = 2.0;          // usual surprises that a robust average moves by
constexpr double FAST = 0.5, SLOW = 0.12;    // the weights of a regression's own averages
constexpr double TREND_WEIGHT = 0.1;         // of its trend
constexpr double LEAST_SCALE_WEIGHT = 0.01;  // of a change in the regression's scale
constexpr double FIRST_COVARIANCE = 0.1;
constexpr double LEAST_SCALE = 1e-200;    // below it nothing has changed
constexpr double LARGEST_TERM = 1e6;      // in units of the scale, either way
constexpr double LARGEST_TRACE = 1e4;     // of a covariance, for each of its terms
constexpr double SLOPE_ROUNDING = 1e-14;  // of a row's largest slope
constexpr double UNBOUNDED = -1e300;      // the lowest limit where limits cannot be compared
constexpr double NONE_YET = 1e300;        // the lowest limit before there is any
constexpr Size REGRESSION_LEVELS = 4, OWN_TERMS = 3;

// A forecast is a line of a table: its kind, its weight or forgetting, and where it keeps what it
// has: a row of the data, a level, or a place among the periods or the functions.
enum Forecast : int { LAST, AVERAGE, TREND, ROBUST, SEASONAL, CHANGE, REGRESSION, OWN };

struct Forecasts {
    Size count;
    const double* table;  // count times 3
    Size periods;
    const double* period;
    Size seasons;
    const double* season;  // which of the periods the regression has
    Size rows, levels, terms;

    Forecast kind(Size j) const { return Forecast(int(table[3 * j])); }
    double weight(Size j) const { return table[3 * j + 1]; }
    Size place(Size j) const { return Size(table[3 * j + 2]); }
    // The row of data that a forecast of data expects; of the others the last slot's.
    Size data_row(Size j) const { return kind(j) == AVERAGE || kind(j) == TREND ? place(j) : 0; }
    // Which level is the lowest limit so far; those of the regression follow.
    Size lowest() const { return levels - 1 - (terms > 0 ? REGRESSION_LEVELS : 0); }
};

// What is kept: data (rows, d), levels (levels, n), and of the regression terms and coefficients
// (n, terms) and covariance (n, terms, terms).
template <class Number>
struct Kept {
    Number *past, *levels, *terms, *coefficients, *covariance;
};

// A slot's constraint, as forecasts see it.
struct Revealed {
    Size n, d;
    double t, since;  // slots; constraints of the same kind were seen since the latter
    const double *data, *limits;
    const double* usual;  // the usual surprises of forecasts, one a row, 0 where not known
    const double* lags;   // limits of slots t + 1 - P and t - P for all periods, and of slot t - 1
    const double* asked;  // what functions of a user's own expect, one after the other
    bool affine;          // the data are rows, each what tells its slopes and its limit
    bool infeasible;      // no decision keeps the rows

    bool fresh() const { return t == since; }
};

COLDQ_INLINE double between(double a, double least, double most) {
    return smaller(larger(a, least), most);
}

// What came next a period ago for row k, and the change to that; before there is any, the last.
struct Season {
    double level, change;
};
inline Season season_of(const Forecasts& all, const Revealed& slot, Size period, Size k) {
    const double* lags = slot.lags + k * (2 * all.periods + 1);
    const double P = all.period[period], after = lags[period];
    return {slot.t + 1.0 - P >= slot.since ? after : slot.limits[k],
            slot.t - P >= slot.since ? after - lags[all.periods + period] : 0.0};
}

// The last data, their averages and the averages of their increments; in `ahead` as expected.
inline void keep_data(const Forecasts& all, const Revealed& slot, const double* past, double* next,
                      double* ahead) {
    const Size d = slot.d;
    const bool fresh = slot.fresh();
    for (Size i = 0; i < d; ++i) next[i] = ahead[i] = slot.data[i];
    for (Size j = 0; j < all.count; ++j) {
        const Forecast kind = all.kind(j);
        if (kind != AVERAGE && kind != TREND) continue;
        const Size row = all.place(j) * d;
        const double w = all.weight(j);
        across(d, [&]<class T>(T, Size i) {
            const T now = load<T>(slot.data + i), old = load<T>(past + row + i);
            const T target = kind == AVERAGE ? now : now - load<T>(past + i);
            T moved = old + T(w) * (target - old);
            if (fresh) moved = kind == AVERAGE ? now : T(0.0);
            store(next + row + i, moved);
            store(ahead + row + i, kind == AVERAGE ? moved : moved + now);
        });
    }
}

// Whether row k is affine with the slopes of the slot before, up to rounding; in slot 1 whether it
// is affine.
inline bool has_fixed_slopes(const Revealed& slot, const double* last, Size k) {
    if (!slot.affine) return false;
    if (slot.t == 1.0) return true;
    const Size width = slot.d / slot.n, end = (k + 1) * width - 1;
    double largest = 0.0, change = 0.0;
    for (Size i = k * width; i < end; ++i) {
        largest = larger(largest, absolute(last[i]));
        change = larger(change, absolute(slot.data[i] - last[i]));
    }
    return !slot.fresh() && change <= SLOPE_ROUNDING * largest;
}

// Robust averages of row k's limits, the lowest, and what the regression takes.
inline void keep_levels(const Forecasts& all, const Revealed& slot, const double* last_data,
                        const double* levels, double* next, Size k) {
    const Size n = slot.n, lowest = all.lowest();
    const double b = slot.limits[k], weight = 1.0 / (slot.t - slot.since + 1.0);
    const bool fresh = slot.fresh();
    auto at = [&](Size level) { return level * n + k; };
    for (Size j = 0; j < all.count; ++j) {
        if (all.kind(j) != ROBUST) continue;
        const Size e = at(all.place(j));
        const double usual = ROBUST_CLIP * slot.usual[j * n + k];
        const double most = usual > 0.0 ? usual : HUGE_VAL;
        next[e] =
            fresh ? b
                  : levels[e] + larger(all.weight(j), weight) * between(b - levels[e], -most, most);
    }
    const double known = fresh ? NONE_YET : levels[at(lowest)];
    const double least = slot.infeasible ? known : smaller(known, b);
    next[at(lowest)] = has_fixed_slopes(slot, last_data, k) ? least : UNBOUNDED;
    if (all.terms == 0) return;
    const Size fast = at(lowest + 1), slow = at(lowest + 2), trend = at(lowest + 3),
               scale = at(lowest + 4);
    if (fresh) {
        next[fast] = next[slow] = b;
        next[trend] = next[scale] = 0.0;
        return;
    }
    const double change = b - slot.lags[k * (2 * all.periods + 1) + 2 * all.periods];
    next[fast] = levels[fast] + FAST * (b - levels[fast]);
    next[slow] = levels[slow] + SLOW * (b - levels[slow]);
    next[trend] = levels[trend] + TREND_WEIGHT * (change - levels[trend]);
    next[scale] =
        levels[scale] + larger(LEAST_SCALE_WEIGHT, weight) * (absolute(change) - levels[scale]);
}

// A row's coefficients and covariance after a slot in which its limit changed by so much.
inline void learn(Size m, const double* h, const double* v, const double* C, double change,
                  double scale, double forgetting, double* next_v, double* next_C) {
    if (!(scale > LEAST_SCALE)) {
        for (Size a = 0; a < m; ++a) next_v[a] = v[a];
        for (Size e = 0; e < m * m; ++e) next_C[e] = C[e];
        return;
    }
    const double y = between(change / scale, -LARGEST_TERM, LARGEST_TERM);
    double* k = next_v;  // until it is known
    for (Size a = 0; a < m; ++a) k[a] = dot(C + a * m, h, m);
    const double gain = dot(h, k, m), error = (y - dot(v, h, m)) / (forgetting + gain);
    const double share = 1.0 / (forgetting + gain);
    double trace = 0.0;
    for (Size a = 0; a < m; ++a) trace += (C[a * m + a] - k[a] * k[a] * share) / forgetting;
    const double most = LARGEST_TRACE * double(m);
    // Rounding may leave a covariance that is none; then it is learned anew.
    const bool sound =
        gain >= 0.0 && trace > 0.0 && absolute(trace) < HUGE_VAL && absolute(error) < HUGE_VAL;
    const double factor = (trace > most ? most / trace : 1.0) / forgetting;
    for (Size a = 0; a < m; ++a) {
        double* row = next_C + a * m;
        if (!sound) {
            for (Size c = 0; c < m; ++c) row[c] = a == c ? FIRST_COVARIANCE : 0.0;
            continue;
        }
        across(m, [&]<class T>(T, Size c) {
            const T product = T(k[a]) * load<T>(k + c) * T(share);
            store(row + c, (load<T>(C + a * m + c) - product) * T(factor));
        });
    }
    for (Size a = 0; a < m; ++a) next_v[a] = sound ? v[a] + k[a] * error : 0.0;
}

// h: what averages, trend and seasonal forecasts expect to change, over the scale.
inline void set_terms(const Forecasts& all, const Revealed& slot, const double* levels, Size k,
                      double* h) {
    const Size n = slot.n, first = all.lowest() + 1;
    const double b = slot.limits[k], scale = levels[(first + 3) * n + k];
    const bool seen = scale > LEAST_SCALE;
    auto put = [&](Size term, double change) {
        h[term] = seen ? between(change / scale, -LARGEST_TERM, LARGEST_TERM) : 0.0;
    };
    put(0, levels[first * n + k] - b);
    put(1, levels[(first + 1) * n + k] - b);
    put(2, levels[(first + 2) * n + k]);
    for (Size s = 0; s < all.seasons; ++s) {
        const Season season = season_of(all, slot, Size(all.season[s]), k);
        put(OWN_TERMS + s, season.level - b);
        put(OWN_TERMS + all.seasons + s, season.change);
    }
}

// Row k's limits that forecasts expect in the next slot; of those of data, the last.
inline void expect_limits(const Forecasts& all, const Revealed& slot, const Kept<double>& kept,
                          Size k, double* expected) {
    const Size n = slot.n;
    const double b = slot.limits[k];
    for (Size j = 0; j < all.count; ++j) {
        double limit = b;
        switch (all.kind(j)) {
            case ROBUST:
                limit = kept.levels[all.place(j) * n + k];
                break;
            case SEASONAL:
                limit = season_of(all, slot, all.place(j), k).level;
                break;
            case CHANGE:
                limit = b + season_of(all, slot, all.place(j), k).change;
                break;
            case OWN:
                limit = slot.asked[all.place(j) * n + k];
                break;
            case REGRESSION: {
                const Size m = all.terms;
                const double change = kept.levels[(all.lowest() + 4) * n + k] *
                                      dot(kept.coefficients + k * m, kept.terms + k * m, m);
                if (absolute(change) < HUGE_VAL) limit = b + change;
                break;
            }
            default:
                break;
        }
        expected[j * n + k] = limit;
    }
}

// What is kept after a slot, the data (rows, d) and the limits (count, n) that are expected next.
inline void remember(const Forecasts& all, const Revealed& slot, const Kept<const double>& before,
                     const Kept<double>& after, double* ahead, double* expected) {
    const Size n = slot.n, m = all.terms;
    double forgetting = 1.0;
    for (Size j = 0; j < all.count; ++j)
        if (all.kind(j) == REGRESSION) forgetting = all.weight(j);
    keep_data(all, slot, before.past, after.past, ahead);
    for (Size k = 0; k < n; ++k) {
        keep_levels(all, slot, before.past, before.levels, after.levels, k);
        if (m > 0) {
            const double last = slot.lags[k * (2 * all.periods + 1) + 2 * all.periods];
            const double scale = before.levels[(all.lowest() + 4) * n + k];
            learn(m, before.terms + k * m, before.coefficients + k * m,
                  before.covariance + k * m * m, slot.limits[k] - last, slot.fresh() ? 0.0 : scale,
                  forgetting, after.coefficients + k * m, after.covariance + k * m * m);
            set_terms(all, slot, after.levels, k, after.terms + k * m);
        }
        expect_limits(all, slot, after, k, expected);
    }
}

}  // namespace coldq::COLDQ_LEVEL
