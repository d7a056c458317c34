// SelfTuning's whole update in one call, for affine rows on a box, and its parts one by one.
//
// A slot is judged (foresight.hpp), what forecasts keep and expect follows (forecasts.hpp), and the
// expected rows are tightened by the margin, no more than leaves each row by itself a decision.
// The pool (pool.hpp) is weighed, and each of its members steps with rows at the price
// 100 / |A_n|. The weighted mean is the next decision, at which every forecast is evaluated.
//
// Out of the ordinary are steps that miss their accuracy, and decisions that break a row. For these
// no answer is given, and the residual is infinite.
#include "each.hpp"
#include "learners/forecasts.hpp"
#include "learners/foresight.hpp"
#include "learners/least_violation.hpp"
#include "learners/pool.hpp"
#include "learners/slot.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr double PRICE = 100.0;  // of a row of slope 1, against a loss's step of slope 1 at most
constexpr double FLAT = 1e-6;    // of the steepest slope so far: as flat, a row counts as that
constexpr double AFFINE = 1.0;   // the kind of dense rows, as kind_of tells it
constexpr Size COUNTS = 4, COLUMNS = 3;  // of a hedge; of the table of forecasts

struct RememberedOperands {
    Operand tally, margin, ordinary, largest, record, entry, highest, moments, errors;

    Remembered<double> of(Size i) const {
        return {at(tally, i), at(margin, i),  at(ordinary, i), at(largest, i), at(record, i),
                at(entry, i), at(highest, i), at(moments, i),  at(errors, i)};
    }
    bool fit() const { return tally.length[0] == TALLY && entry.length[0] == 2; }
};

Remembered<const double> read_only(const Remembered<double>& of) {
    return {of.tally, of.margin,  of.ordinary, of.largest, of.record,
            of.entry, of.highest, of.moments,  of.errors};
}

struct KeptOperands {
    Operand past, levels, terms, coefficients, covariance;

    Kept<double> of(Size i) const {
        return {at(past, i), at(levels, i), at(terms, i), at(coefficients, i), at(covariance, i)};
    }
};

Kept<const double> read_only(const Kept<double>& of) {
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

Pool<const double> read_only(const Pool<double>& of) { return {of.hedge, of.losses, of.weights}; }

// ---- The parts, which Python calls for other rows and domains --------------------------------

void row_slack(Vector x, Vector g, Matrix J, double R, double tolerance, OutVector out) {
    for (Size k = 0; k < g.size; ++k) out[k] = slack_of(x.at, g[k], J[k], x.size, R, tolerance);
}

// Without an answer the point is NaN.
void least_violation(Scratch scratch, Vector x, Matrix A, Vector b, Vector lower, Vector upper,
                     double width, double by_slope, OutVector point) {
    auto open = [](Vector of) { return const_cast<double*>(of.at); };
    const Violation of = {
        {b.size, x.size, A.at, b.at, nullptr}, open(lower), open(upper), width, by_slope != 0.0};
    if (!of.least(x.at, point.at, scratch.at))
        for (Size i = 0; i < x.size; ++i) point[i] = __builtin_nan("");
}

Size violation_scratch(const Operand* operands) {
    return Violation::scratch(operands[2].length[0], operands[0].length[0]);
}

struct BookOperands {
    Operand counts, largest, record, entry_largest, entry_record, highest;
    Operand rate, t, violated, surprise, tolerance, infeasible, reduced;
    Operand next, next_largest, next_record, next_entry_largest, next_entry_record, next_highest;
};

void book_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const BookOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        const double* counts = at(of.counts, i);
        const BudgetCounts next =
            book({counts[0], counts[1], counts[2], counts[3]},
                 {at(of.largest, i), at(of.record, i), at(of.entry_largest, i),
                  at(of.entry_record, i), at(of.highest, i)},
                 *at(of.rate, i), *at(of.t, i),
                 {of.largest.length[0], at(of.violated, i), at(of.surprise, i), at(of.tolerance, i),
                  *at(of.infeasible, i) != 0.0, *at(of.reduced, i) != 0.0},
                 {at(of.next_largest, i), at(of.next_record, i), at(of.next_entry_largest, i),
                  at(of.next_entry_record, i), at(of.next_highest, i)});
        double* out = at(of.next, i);
        out[0] = next.overdraft, out[1] = next.stretch;
        out[2] = next.violations, out[3] = next.reduced;
    }
}

Size book_scratch(const Operand* operands) { return operands[0].length[0] == 4 ? 0 : DO_NOT_FIT; }

void tightened_margin(double overdraft, double stretch, Vector largest, double rate, double t,
                      Vector ordinary, OutVector margin) {
    tighten({overdraft, stretch, 0.0, 0.0}, largest.at, rate, t, ordinary.at, ordinary.size,
            margin.at);
}

struct JudgeOperands {
    Operand t, predicted;
    RememberedOperands before;
    Operand values, own_values, slack, infeasible, kind, forced, rate;
    RememberedOperands after;
    Operand usual;
};

Size judge_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const JudgeOperands*>(operands);
    return of.before.fit() ? 2 * of.values.length[0] : DO_NOT_FIT;
}

void judge_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const JudgeOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i)
        judge({of.values.length[0], of.predicted.length[0], *at(of.t, i), at(of.predicted, i),
               at(of.values, i), at(of.own_values, i), at(of.slack, i),
               *at(of.infeasible, i) != 0.0, *at(of.kind, i), *at(of.forced, i)},
              read_only(of.before.of(i)), *at(of.rate, i), of.after.of(i), at(of.usual, i),
              run.scratch);
}

struct RememberOperands {
    Operand t, since;
    KeptOperands before;
    Operand data, limits, usual, affine;
    ForecastOperands forecasts;
    KeptOperands after;
    Operand ahead, expected;
};

Size remember_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const RememberOperands*>(operands);
    const bool sizes = of.usual.length[0] >= of.forecasts.table.length[0];
    return sizes && of.forecasts.fit(of.before) ? 0 : DO_NOT_FIT;
}

void remember_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const RememberOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        const Revealed slot = {
            of.limits.length[0],     of.data.length[0],        *at(of.t, i),
            *at(of.since, i),        at(of.data, i),           at(of.limits, i),
            at(of.usual, i),         at(of.forecasts.lags, i), at(of.forecasts.asked, i),
            *at(of.affine, i) != 0.0};
        remember(of.forecasts.of(of.before, i), slot, read_only(of.before.of(i)), of.after.of(i),
                 at(of.ahead, i), at(of.expected, i));
    }
}

struct WeighOperands {
    Operand gradient, x, points;
    PoolOperands before;
    Operand sizes, R;
    PoolOperands after;
    Operand directions, alphas;
};

Size weigh_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const WeighOperands*>(operands);
    return of.before.hedge.length[0] == COUNTS ? of.sizes.length[0] : DO_NOT_FIT;
}

void weigh_pool(const Run& run) {
    const auto& of = *reinterpret_cast<const WeighOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i)
        weigh({of.sizes.length[0], of.x.length[0], at(of.gradient, i), at(of.x, i),
               at(of.points, i), at(of.sizes, i), *at(of.R, i)},
              read_only(of.before.of(i)), of.after.of(i), at(of.directions, i), at(of.alphas, i),
              run.scratch);
}

void weighted_play(Vector weights, Matrix points, OutVector x) { play(weights, points, x); }

// ---- The whole update -----------------------------------------------------------------------

struct UpdateOperands {
    Operand t, x, predicted, slopes, points;
    RememberedOperands before;
    KeptOperands kept;
    PoolOperands pool;
    Operand played, linear, matrix, levels, A, b, measured, own_A, own_b;
    ForecastOperands forecasts;
    Operand sizes, lower, upper, rate, tolerance, R;
    Operand next, next_predicted, next_slopes, next_points;
    RememberedOperands after;
    KeptOperands next_kept;
    PoolOperands next_pool;
    Operand residual;
};

struct Update {
    const UpdateOperands& of;
    Size n, p, j, K, d;
    double *slope, *point, *levels, *values, *own_values, *slack, *work, *data, *usual, *ahead,
        *limits, *A, *b;
    double *tight, *weights, *zeros, *directions, *alphas, *multipliers, *residuals, *systems;
    double* rest;   // where the step works
    Size used = 0;  // numbers before that

    // In the memory from `memory` on; of none, to know how much is used.
    Update(const UpdateOperands& operands, double* memory)
        : of(operands),
          n(of.b.length[0]),
          p(of.x.length[0]),
          j(of.predicted.length[0]),
          K(of.sizes.length[0]),
          d(of.kept.past.length[1]) {
        auto take = [&](Size count) {
            double* taken = memory ? memory + used : nullptr;
            used += count;
            return taken;
        };
        slope = take(p);
        point = take(p);
        levels = take(of.levels.length[0]);
        values = take(n);
        own_values = take(n);
        slack = take(n);
        work = take(2 * n + K);
        data = take(d);
        usual = take(j * n);
        ahead = take(of.kept.past.length[0] * d);
        limits = take(j * n);
        A = take(n * p);
        b = take(n);
        tight = take(n);
        weights = take(n);
        zeros = take(n);
        directions = take(K * p);
        alphas = take(K);
        multipliers = take(K * n);
        residuals = take(K);
        systems = take(1);
        rest = take(0);
    }

    bool fit() const {
        return has_gradient(of.linear, of.matrix, of.levels, p) && of.before.fit() &&
               of.forecasts.fit(of.kept) && d == n * (p + 1) &&
               j == of.forecasts.table.length[0] + 1 && of.pool.hedge.length[0] == COUNTS &&
               !of.own_A.at == !of.own_b.at;
    }

    double value(const double* row, double limit, const double* x) const {
        return dot(row, x, p) - limit;
    }

    // Whether x keeps rows, up to their tolerance.
    bool keeps(Size i, const double* rows, const double* limits_of_rows, const double* x) const {
        for (Size k = 0; k < n; ++k) {
            const double g = value(rows + k * p, limits_of_rows[k], x);
            if (g > slack_of(x, g, rows + k * p, p, *at(of.R, i), *at(of.tolerance, i)))
                return false;
        }
        return true;
    }

    // Whether no decision keeps the slot's rows; `known` where that can be told.
    bool is_infeasible(Size i, bool& known) const {
        const double R = *at(of.R, i);
        const Violation violation = {{n, p, at(of.A, i), at(of.b, i), nullptr},
                                     at(of.lower, i),
                                     at(of.upper, i),
                                     larger(R, LEAST_WIDTH),
                                     true};
        known = violation.least(place(i), point, rest);
        return known && !keeps(i, at(of.A, i), at(of.b, i), point);
    }

    // Where the slot was played: where its gradient and values are taken.
    const double* place(Size i) const { return of.played.at ? at(of.played, i) : at(of.x, i); }

    // The slot's values, above what they are violated, and its data; whether all are finite.
    bool observe(Size i, const double* gradient) const {
        const double *x = place(i), *rows = at(of.A, i), *its = at(of.b, i);
        const double* measured = at(of.measured, i);
        double total = sum<double>(p, [&](Size e) { return gradient[e]; });
        for (Size k = 0; k < n; ++k) {
            const double* row = rows + k * p;
            values[k] = measured ? measured[k] : value(row, its[k], x);
            own_values[k] = of.played.at ? value(row, its[k], at(of.x, i)) : values[k];
            slack[k] = slack_of(x, values[k], row, p, *at(of.R, i), *at(of.tolerance, i));
            for (Size e = 0; e < p; ++e) data[k * (p + 1) + e] = row[e];
            data[k * (p + 1) + p] = its[k];
            total += values[k] + own_values[k] + slack[k];
        }
        return absolute(total) < HUGE_VAL;
    }

    // The rows that are expected next, by the forecast that the tally chose.
    void expect(Size i, const Forecasts& all, const double* tally) const {
        const double *own = at(of.own_A, i), *own_b = at(of.own_b, i);
        Size chosen = chosen_of(tally, j);
        if (chosen == all.count && own) {
            for (Size e = 0; e < n * p; ++e) A[e] = own[e];
            for (Size k = 0; k < n; ++k) b[k] = own_b[k];
            return;
        }
        if (chosen == all.count) chosen = 0;
        const double* rows = ahead + all.data_row(chosen) * d;
        for (Size k = 0; k < n; ++k) {
            const double* row = rows + k * (p + 1);
            for (Size e = 0; e < p; ++e) A[k * p + e] = row[e];
            b[k] = row[p] - (limits[k] - limits[chosen * n + k]);
        }
    }

    // No decision makes room for more than `room`, nor any for a row that none moves.
    void make_room(Size i, const Remembered<double>& after) const {
        const double *lower = at(of.lower, i), *upper = at(of.upper, i);
        for (Size k = 0; k < n; ++k) {
            const double* row = A + k * p;
            bool moves = false;
            for (Size e = 0; e < p; ++e) moves = moves || row[e] != 0.0;
            const double least = sum<double>(p, [&](Size e) {
                return row[e] == 0.0 ? 0.0 : smaller(row[e] * lower[e], row[e] * upper[e]);
            });
            after.margin[k] = moves ? smaller(after.margin[k], b[k] - least) : 0.0;
            if (!moves) after.ordinary[k] = 0.0;
            tight[k] = b[k] - after.margin[k];
        }
    }

    // What the rows weigh in the step, and the steepest that they have been.
    void set_weights(Size i) const {
        const double *x = at(of.x, i), *before = at(of.slopes, i);
        double* steepest = at(of.next_slopes, i);
        for (Size k = 0; k < n; ++k) {
            const double norm = root(dot(A + k * p, A + k * p, p));
            steepest[k] = larger(before[k], norm);
            double slope_of = larger(norm, FLAT * steepest[k]);
            if (!(slope_of > 0.0)) {
                const double height = absolute(value(A + k * p, b[k], x)) / *at(of.R, i);
                slope_of = height > 0.0 ? height : 1.0;
            }
            weights[k] = PRICE / slope_of;
        }
    }

    // Every member's step; the largest residual, NaN if there is any.
    double step(Size i) const {
        const Rows rows{n, p, A, tight, nullptr};
        const Points points{at(of.points, i), directions,      alphas, weights, 1,
                            at(of.lower, i),  at(of.upper, i), zeros,  systems};
        AffineOperands operands = points.operands(rows);
        operands.weights.step = 0;
        operands.x = numbers(at(of.next_points, i), p, p);
        operands.multipliers = numbers(multipliers, n, n);
        operands.residual = numbers(residuals, 0, 1);
        affine_step({K, reinterpret_cast<const Operand*>(&operands), rest});
        double worst = 0.0;
        for (Size k = 0; k < K; ++k)
            if (!(residuals[k] <= worst)) worst = residuals[k];
        return worst;
    }

    // What every forecast expects at the next decision.
    void predict(Size i, const Forecasts& all) const {
        const double *x = at(of.next, i), *own = at(of.own_A, i), *own_b = at(of.own_b, i);
        double* predicted = at(of.next_predicted, i);
        for (Size k = 0; k < n; ++k) {
            const Size row = k * (p + 1);
            const double last = value(ahead + row, ahead[row + p], x);
            for (Size f = 0; f < all.count; ++f) {
                const double* its = ahead + all.data_row(f) * d + row;
                const double found = all.data_row(f) == 0 ? last : value(its, its[p], x);
                predicted[f * n + k] = found + (limits[k] - limits[f * n + k]);
            }
            predicted[all.count * n + k] = own ? value(own + k * p, own_b[k], x) : last;
        }
    }

    // The residual of the step, infinite where there is no answer.
    double update(Size i) const {
        const Loss loss{p, of.matrix.length[0], at(of.linear, i), at(of.matrix, i),
                        at(of.levels, i)};
        const double *x = at(of.x, i), *gradient = loss.gradient(place(i), slope, levels);
        const double rate = *at(of.rate, i), t = *at(of.t, i), R = *at(of.R, i);
        if (!observe(i, gradient)) return HUGE_VAL;
        bool bad = false, known = true;
        for (Size k = 0; k < n; ++k) bad = bad || values[k] > slack[k];
        const bool infeasible = bad && is_infeasible(i, known);
        if (!known) return HUGE_VAL;

        const Remembered<double> after = of.after.of(i);
        judge({n, j, t, at(of.predicted, i), values, own_values, slack, infeasible, AFFINE, -1.0},
              read_only(of.before.of(i)), rate, after, usual, work);
        const Forecasts all = of.forecasts.of(of.kept, i);
        remember(all,
                 {n, d, t, after.tally[SINCE], data, at(of.b, i), usual, at(of.forecasts.lags, i),
                  at(of.forecasts.asked, i), true},
                 read_only(of.kept.of(i)), of.next_kept.of(i), ahead, limits);
        expect(i, all, after.tally);
        make_room(i, after);

        weigh({K, p, gradient, x, at(of.points, i), at(of.sizes, i), R}, read_only(of.pool.of(i)),
              of.next_pool.of(i), directions, alphas, work);
        set_weights(i);
        const double residual = step(i);
        if (!(residual <= ACCURATE)) return HUGE_VAL;
        double* next = at(of.next, i);
        play({at(of.next_pool.weights, i), K}, {at(of.next_points, i), K, p, p}, {next, p});
        if (!keeps(i, A, tight, next)) return HUGE_VAL;
        predict(i, all);
        after.tally[REDUCED] = 0.0;
        return residual;
    }
};

Size update_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const UpdateOperands*>(operands);
    const Update update(of, nullptr);
    if (!update.fit()) return DO_NOT_FIT;
    const Size n = update.n, p = update.p, step = affine_scratch(n, p, update.K);
    return step < 0 ? step : update.used + step + Violation::scratch(n, p);
}

void self_tuning_step(const Run& run) {
    const auto& of = *reinterpret_cast<const UpdateOperands*>(run.operands);
    const Update update(of, run.scratch);
    *update.systems = HUGE_VAL;
    for (Size k = 0; k < update.n; ++k) update.zeros[k] = 0.0;
    for (Size i = 0; i < run.count; ++i) *at(of.residual, i) = update.update(i);
}

}  // namespace

extern const Entry self_tuning[];
const Entry self_tuning[] = {
    {"row_slack", "(p),(n),(n,p),(),()->(n)", each<row_slack>},
    {"least_violation", "(p),(n,p),(n),(p),(p),(),()->(p)", each<least_violation>,
     violation_scratch},
    {"book", "(c),(n),(n),(n),(n),(n),(),(),(n),(n),(n),(),()->(c),(n),(n),(n),(n),(n)", book_slot,
     book_scratch},
    {"tighten", "(),(),(n),(),(),(n)->(n)", each<tightened_margin>},
    {"judge",
     "(),(j,n),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(n),(n),(n),(),(),(),()"
     "->(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(j,n)",
     judge_slot, judge_scratch},
    {"remember",
     "(),(),(r,d),(l,n),(n,h),(n,h),(n,h,h),(d),(n),(w,n),(),(n,a),(o,n)?,(f,g),(u),(v)"
     "->(r,d),(l,n),(n,h),(n,h),(n,h,h),(r,d),(f,n)",
     remember_slot, remember_scratch},
    {"weigh", "(p),(p),(k,p),(c),(k),(k),(k),()->(c),(k),(k),(k,p),(k)", weigh_pool, weigh_scratch},
    {"play", "(k),(k,p)->(p)", each<weighted_play>},
    {"self_tuning_step",
     "(),(p),(j,n),(n),(k,p),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(r,d),(l,n),(n,h),(n,h),"
     "(n,h,h),(q),(k),(k),(p)?,(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n,p)?,(n)?,(n,a),(o,n)?,(f,g),(u),("
     "v),"
     "(k),(p),(p),(),(),()"
     "->(p),(j,n),(n),(k,p),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(r,d),(l,n),(n,h),(n,h),"
     "(n,h,h),(q),(k),(k),()",
     self_tuning_step, update_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
