// What a slot says of forecasts and margins.
//
// The surprise of row n is s^n = g_t^n(x_t) - forecast^n(x_t). Of every forecast the moment of a
// row is the moving average of |s^n|, in which a surprise counts up to four times the average,
// unless that is no violation; its error is the average of |s^n| in units of the last constraint's.
// The forecast of least error is taken, for a gain of 2% or more. The ordinary margin is lambda
// times the moment, with e = 1 - q if a row would have been violated with that margin, else
// -q max(1, q gap / 5), where gap counts the slots since one would have last:
//
//     V += e^2,  eta = max(0.1, 1 / sqrt(1 + V)),  lambda = max(0, lambda + eta e max(1, 0.4
//     lambda))
//
// In V e is without the gap. lambda stays where a row was violated though the decision was reduced.
#pragma once

#include "learners/error_budget.hpp"
#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SPREAD = 0.03;                 // the weight of a surprise in its moment
constexpr double CLIP = 4.0, CLIP_FROM = 10.0;  // surprises count so many moments, after these many
constexpr double LEAST_FORGETTING = 0.02;       // the least weight of a slot in an error
constexpr double GAIN = 0.98;          // another forecast is taken if its error is below this share
constexpr double LEAST_STEP = 0.1;     // of the factor
constexpr double RELATIVE_STEP = 0.4;  // of the factor, where it is above 1 / 0.4
constexpr double PATIENCE = 5.0;       // usual gaps, after which the factor falls faster
constexpr double UNSEEN = 1e-6;  // of R |J|: terms below that are lost among what a step rounds

// The entries of a tally, as foresight_state.py names them.
// clang-format off
enum Tally : Size {
    FACTOR, EFFORT, GAP, OVERDRAFT, STRETCH, IN_STRETCH, REDUCED_IN_STRETCH, SLOTS, VIOLATED,
    REDUCED, REDUCED_SLOTS, REDUCED_VIOLATED, INFEASIBLE, CHOSEN, KIND, SINCE, TALLY
};
// clang-format on

// What is remembered of margins: of n rows, and of j forecasts of n rows.
template <class Number>
struct Remembered {
    Number *tally, *margin, *ordinary, *largest, *record, *entry, *highest, *moments, *errors;

    BudgetRows<Number> budget(Size n) const { return {largest, record, entry, entry + n, highest}; }
};

// A slot's values where it was played, and at the decision that forecasts were made for.
struct Seen {
    Size n, j;
    double t;
    const double *predicted, *values, *own_values, *slack;
    bool infeasible;
    double kind;    // of the constraint's data
    double forced;  // a forecast that is taken whatever its error, or -1
};

// Above what row J counts as violated at x, where its value is g: a share of the size of its terms,
// sum_i |J_i x_i| + |J x - g|, counted as R |J| at most and as a millionth of that at least.
inline double slack_of(const double* x, double g, const double* J, Size p, double R,
                       double tolerance) {
    const auto of = sums_over<3, double>(p, [&](auto read) __attribute__((always_inline)) {
        const auto slope = read(J), at = read(x);
        using V = decltype(read(J));
        return Terms<V, 3>{{slope * slope, absolute(slope) * absolute(at), slope * at}};
    });
    const double widest = R * root(of.of[0]), terms = of.of[1] + absolute(of.of[2] - g);
    return tolerance * smaller(larger(terms, UNSEEN * widest), widest);
}

// The forecast that a tally has chosen; the last constraint's where that is none of j.
inline Size chosen_of(const double* tally, Size j) {
    return tally[CHOSEN] >= 0.0 && tally[CHOSEN] < double(j) ? Size(tally[CHOSEN]) : 0;
}

// What corrects the bias of a moving average of the surprises of slots 2 to t.
inline double unbiased(double t) {
    return t >= 2.0 ? 1.0 / (1.0 - std::exp((t - 1.0) * std::log(1.0 - SPREAD))) : 0.0;
}

// The factor's step after a slot in which a row `would` have been violated or not.
inline void adapt(double* tally, double q, bool would) {
    const double gap = would ? 0.0 : tally[GAP] + 1.0;
    const double e = would ? 1.0 - q : -q * larger(q * gap / PATIENCE, 1.0);
    const double effort = tally[EFFORT] + (would ? (1.0 - q) * (1.0 - q) : q * q);
    const double eta = larger(1.0 / root(1.0 + effort), LEAST_STEP);
    const double step = eta * e * larger(RELATIVE_STEP * tally[FACTOR], 1.0);
    tally[FACTOR] = larger(tally[FACTOR] + step, 0.0);
    tally[EFFORT] = effort;
    tally[GAP] = gap;
}

// The moments and errors of forecasts after a slot, and the one to be used from now on.
inline void compare(const Seen& slot, const Remembered<const double>& before,
                    const Remembered<double>& after) {
    const Size n = slot.n;
    if (!(slot.t > 1.0)) {
        for (Size e = 0; e < slot.j * n; ++e) after.moments[e] = before.moments[e];
        for (Size j = 0; j < slot.j; ++j) after.errors[j] = before.errors[j];
        return;
    }
    const double clip = CLIP * unbiased(slot.t - 1.0), usual_of = unbiased(slot.t);
    const bool clips = slot.t - 2.0 >= CLIP_FROM;
    const double forget = larger(LEAST_FORGETTING, 1.0 / larger(slot.t - 1.0, 1.0));
    Size best = 0;
    for (Size j = 0; j < slot.j; ++j) {
        double error = 0.0;
        for (Size k = 0; k < n; ++k) {
            const Size e = j * n + k;
            const double surprise = absolute(slot.own_values[k] - slot.predicted[e]);
            const double most = clip * before.moments[e];
            // What nobody would call a violation is no measure: a row may have stood still.
            const double counted =
                clips && most > slot.slack[k] ? smaller(surprise, most) : surprise;
            after.moments[e] = before.moments[e] + SPREAD * (counted - before.moments[e]);
            // Where the last constraint is never wrong, any surprise counts as a usual one.
            const double usual = usual_of * after.moments[k];
            error += usual > slot.slack[k] ? surprise / usual : surprise > 0.0 ? 1.0 : 0.0;
        }
        after.errors[j] = before.errors[j];
        if (n > 0) after.errors[j] += forget * (error / double(n) - before.errors[j]);
        if (after.errors[j] < after.errors[best]) best = j;
    }
    const double own = after.errors[chosen_of(after.tally, slot.j)];
    if (after.errors[best] < GAIN * own) after.tally[CHOSEN] = double(best);
}

// Judge a slot: what is remembered after it, the margin without regard to the room that rows leave.
// Without a rate there is no margin and no budget. `usual` are the usual sizes of the forecasts'
// surprises, 0 while there are too few; `work` has room for two numbers a row.
inline void judge(const Seen& slot, const Remembered<const double>& before, double rate,
                  const Remembered<double>& after, double* usual, double* work) {
    const Size n = slot.n;
    double *surprise = work, *violated = work + n, *tally = after.tally;
    for (Size e = 0; e < TALLY; ++e) tally[e] = before.tally[e];
    const double* expected = slot.predicted + chosen_of(tally, slot.j) * n;
    bool bad = false, short_of = false, cut = false, would = false;
    for (Size k = 0; k < n; ++k) {
        surprise[k] = slot.t > 1.0 ? slot.own_values[k] - expected[k] : 0.0;
        const bool over = slot.values[k] > slot.slack[k];
        violated[k] = over ? 1.0 : 0.0;
        bad = bad || over;
        // What the row was tightened by was less than it should have been.
        short_of = short_of || (over && before.margin[k] < before.largest[k]);
        cut = cut || before.margin[k] < before.ordinary[k];
        would = would || slot.values[k] + (before.margin[k] - before.ordinary[k]) > slot.slack[k];
    }
    const bool reduced = tally[REDUCED] > 0.0 || (short_of && tally[STRETCH] > 0.0);
    if (slot.infeasible) {
        tally[INFEASIBLE] += 1.0;
    } else {
        tally[SLOTS] += 1.0;
        if (bad) tally[VIOLATED] += 1.0;
        if (reduced) tally[REDUCED_SLOTS] += 1.0;
        if (bad && reduced) tally[REDUCED_VIOLATED] += 1.0;
    }
    const BudgetCounts counts = {tally[OVERDRAFT], tally[STRETCH], tally[IN_STRETCH],
                                 tally[REDUCED_IN_STRETCH]};
    BudgetCounts booked = counts;
    if (rate > 0.0) {
        const bool helpless = bad && (cut || slot.infeasible);
        if (slot.t > 1.0 && !helpless) adapt(tally, rate, would);
        booked =
            book(counts, before.budget(n), rate, slot.t,
                 {n, violated, surprise, slot.slack, slot.infeasible, reduced}, after.budget(n));
        tally[OVERDRAFT] = booked.overdraft;
        tally[STRETCH] = booked.stretch;
        tally[IN_STRETCH] = booked.violations;
        tally[REDUCED_IN_STRETCH] = booked.reduced;
    } else {
        for (Size k = 0; k < n; ++k) {
            after.largest[k] = before.largest[k];
            after.record[k] = before.record[k];
            after.highest[k] = before.highest[k];
        }
        for (Size e = 0; e < 2 * n; ++e) after.entry[e] = before.entry[e];
    }
    compare(slot, before, after);
    if (slot.forced >= 0.0) tally[CHOSEN] = slot.forced;
    const double factor = tally[FACTOR] * unbiased(slot.t);
    const double known = slot.t - 2.0 >= CLIP_FROM ? unbiased(slot.t) : 0.0;
    for (Size e = 0; e < slot.j * n; ++e) usual[e] = known * after.moments[e];
    const double* moment = after.moments + chosen_of(tally, slot.j) * n;
    for (Size k = 0; k < n; ++k) after.ordinary[k] = after.margin[k] = factor * moment[k];
    if (rate > 0.0) tighten(booked, after.largest, rate, slot.t, after.ordinary, n, after.margin);
    if (!(tally[KIND] == slot.kind && slot.t > 1.0)) tally[SINCE] = slot.t;
    tally[KIND] = slot.kind;
}

}  // namespace coldq::COLDQ_LEVEL
