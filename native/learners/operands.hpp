// The arrays of SelfTuning's state and forecasts, as its entries take them.
#pragma once

#include "learners/forecasts.hpp"
#include "learners/foresight.hpp"
#include "learners/pool.hpp"
#include "learners/slot.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr Size COUNTS = 4, COLUMNS = 3;  // of a hedge; of the table of forecasts

struct RememberedOperands {
    Operand tally, margin, ordinary, largest, record, entry, highest, moments, errors;

    Remembered<double> of(Size i) const {
        return {at(tally, i), at(margin, i),  at(ordinary, i), at(largest, i), at(record, i),
                at(entry, i), at(highest, i), at(moments, i),  at(errors, i)};
    }
    bool fit() const { return tally.length[0] == TALLY && entry.length[0] == 2; }
};

inline Remembered<const double> read_only(const Remembered<double>& of) {
    return {of.tally, of.margin,  of.ordinary, of.largest, of.record,
            of.entry, of.highest, of.moments,  of.errors};
}

struct KeptOperands {
    Operand past, levels, terms, coefficients, covariance;

    Kept<double> of(Size i) const {
        return {at(past, i), at(levels, i), at(terms, i), at(coefficients, i), at(covariance, i)};
    }
};

inline Kept<const double> read_only(const Kept<double>& of) {
    return {of.past, of.levels, of.terms, of.coefficients, of.covariance};
}

struct ForecastOperands {
    Operand lags, asked, table, period, season;

    Forecasts of(const KeptOperands& kept, Size i) const {
        return {table.length[0],     at(table, i),          period.length[0],
                at(period, i),       season.length[0],      at(season, i),
                kept.past.length[0], kept.levels.length[0], kept.terms.length[1]};
    }
    // Whether what is kept has a place for what each forecast keeps: a state may be anybody's.
    bool fit(const KeptOperands& kept) const {
        const Size rows = kept.past.length[0], terms = kept.terms.length[1];
        const Size periods = period.length[0], seasons = season.length[0];
        const Size robust = kept.levels.length[0] - 1 - (terms > 0 ? REGRESSION_LEVELS : 0);
        bool fits = table.length[1] == COLUMNS && lags.length[1] == 2 * periods + 1 && rows > 0 &&
                    robust >= 0 && (terms == 0 || terms == OWN_TERMS + 2 * seasons);
        for (Size j = 0; fits && j < table.length[0]; ++j) {
            const Forecast kind = Forecast(int(table.at[COLUMNS * j]));
            const Size place = Size(table.at[COLUMNS * j + 2]);
            if (kind == AVERAGE || kind == TREND) fits = place < rows;
            if (kind == ROBUST) fits = place < robust;
            if (kind == SEASONAL || kind == CHANGE) fits = place < periods;
            if (kind == OWN) fits = asked.at && place < asked.length[0];
            if (kind == REGRESSION) fits = terms > 0;
        }
        return fits;
    }
};

struct PoolOperands {
    Operand hedge, losses, weights;

    Pool<double> of(Size i) const { return {at(hedge, i), at(losses, i), at(weights, i)}; }
};

inline Pool<const double> read_only(const Pool<double>& of) {
    return {of.hedge, of.losses, of.weights};
}

}  // namespace coldq::COLDQ_LEVEL
