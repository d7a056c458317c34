// An error budget: when more slots were violated than a rate q allows, rows are tightened.
//
// v_t is 1 if a row was violated in slot t, and the overdraft D_t = max(0, D_{t-1} + v_t - q). A
// stretch begins when D_t > slack_t = min(20, 5 + 2 sqrt(q t)), and ends when D_t <= slack_t. M is
// a row's largest surprise, forgotten slowly outside of stretches, P its record, P_0 the record
// when the stretch began. At the j-th violation of a stretch
//
//     M = max(M, min(P_0, exp(2^(j-1)) M)),
//
// and max(e max(M, P_0), 1.05 s) of a violated row whose surprise s was above P_0, or whose M was
// at it already. A slot that was infeasible is not booked; in one whose decision was reduced, a
// violation says nothing of M, nor does the first of a row without a surprise before the stretch:
// that row's entry is then.
#pragma once

#include <cmath>

#include "numbers.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double MOST_SLACK = 20.0, FIRST_SLACK = 5.0, SLACK_GROWTH = 2.0;  // violations
constexpr double FORGOTTEN = 0.25;  // of the rate: the share of M, in a slot outside of a stretch
constexpr double HEAD = 1.05;  // a record is kept with room to spare: equal spikes break it once
constexpr double GROWTH = 2.718281828459045;  // of M where a surprise beyond the record broke it
constexpr double LARGEST_EXPONENT = 700.0;    // of a lift: with those before it spans all doubles

// A budget's numbers, and those of its rows.
struct BudgetCounts {
    double overdraft, stretch, violations, reduced;
};
template <class Number>
struct BudgetRows {
    Number *largest, *record, *entry_largest, *entry_record, *highest;
};

// What a slot showed: its surprises, which rows were violated, and below what a surprise counts as
// that.
struct Booked {
    Size n;
    const double *violated, *surprise, *tolerance;
    bool infeasible, reduced;
};

inline double slack_after(double rate, double slots) {
    return smaller(FIRST_SLACK + SLACK_GROWTH * root(rate * slots), MOST_SLACK);
}

// The budget after slot t; `rows` are set to those that follow `before`.
inline BudgetCounts book(const BudgetCounts& counts, const BudgetRows<const double>& before,
                         double rate, double t, const Booked& slot,
                         const BudgetRows<double>& rows) {
    const bool on = counts.stretch > 0.0;
    auto is_new = [&](Size k) {  // nothing was known of the row
        return on && !slot.infeasible && slot.violated[k] != 0.0 && before.entry_record[k] <= 0.0;
    };
    bool bad = false, reduced = slot.reduced;
    for (Size k = 0; k < slot.n; ++k) {
        bad = bad || slot.violated[k] != 0.0;
        reduced = reduced || is_new(k);
    }
    BudgetCounts next;
    next.overdraft = slot.infeasible ? counts.overdraft
                                     : larger((counts.overdraft + (bad ? 1.0 : 0.0)) - rate, 0.0);
    next.stretch = slack_after(rate, t) < next.overdraft ? 1.0 : 0.0;
    const bool enters = next.stretch > 0.0 && !on, booked = on && bad && !slot.infeasible;
    const bool lifts = booked && !reduced;
    const double j = counts.violations + (lifts ? 1.0 : 0.0);
    next.violations = enters ? 0.0 : j;
    next.reduced = enters ? 0.0 : counts.reduced + (booked && reduced ? 1.0 : 0.0);

    const double lift =
        lifts ? std::exp(smaller(std::exp2(smaller(j - 1.0, 10.0)), LARGEST_EXPONENT)) : 1.0;
    for (Size k = 0; k < slot.n; ++k) {
        const double M = before.largest[k], P = before.record[k], P0 = before.entry_record[k];
        const double s = slot.surprise[k], least = slot.tolerance[k];
        double now = on ? M : (1.0 - FORGOTTEN * rate) * M;
        if (lifts) {
            const bool broken = slot.violated[k] != 0.0 && (s > P0 || M >= P0);
            now = larger(M,
                         broken ? larger(GROWTH * larger(M, P0), HEAD * s) : smaller(P0, lift * M));
        }
        now = larger(larger(now, s), least);
        const double record = larger(s > P ? HEAD * s : P, least);
        if (is_new(k)) now = larger(now, record);
        const bool begins = enters || is_new(k);
        const double highest = larger(before.highest[k], s);
        rows.largest[k] = now;
        rows.record[k] = record;
        rows.entry_largest[k] = begins ? now : before.entry_largest[k];
        rows.entry_record[k] = begins ? record : P0;
        rows.highest[k] = enters || !on ? 0.0 : highest;
    }
    return next;
}

// The margins of slot t + 1, at least the ordinary ones: from half of the slack on a share of M,
// all of it in a stretch.
inline void tighten(const BudgetCounts& counts, const double* largest, double rate, double t,
                    const double* ordinary, Size n, double* margin) {
    const double half = 0.5 * slack_after(rate, t);
    double share = smaller(larger((counts.overdraft - half) / half, 0.0), 1.0);
    if (counts.stretch > 0.0) share = 1.0;
    for (Size k = 0; k < n; ++k) margin[k] = larger(ordinary[k], share * largest[k]);
}

}  // namespace coldq::COLDQ_LEVEL
