// SelfTuning's whole update in one call, for affine rows on a box or on blocks with sums.
//
// A slot is judged (foresight.hpp), what forecasts keep and expect follows (forecasts.hpp), and the
// expected rows are tightened by the margin, no more than leaves each row by itself a decision.
// The pool (pool.hpp) is weighed, and each of its members steps with rows at the price
// 100 / |A_n|. The weighted mean is the next decision, at which every forecast is evaluated.
//
// Where that breaks a row the pool steps again, with all rows enforced (enforced.hpp). Where a step
// misses its accuracy no answer is given, and the residual is infinite.
#include "learners/enforced.hpp"
#include "learners/operands.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr double PRICE = 100.0;  // of a row of slope 1, against a loss's step of slope 1 at most
constexpr double FLAT = 1e-6;    // of the steepest slope so far: as flat, a row counts as that
constexpr double AFFINE = 1.0;   // the kind of dense rows, as kind_of tells it

struct UpdateOperands {
    Operand t, x, predicted, slopes, points;
    RememberedOperands before;
    KeptOperands kept;
    PoolOperands pool;
    Operand played, linear, matrix, levels, A, b, measured, own_A, own_b;
    ForecastOperands forecasts;
    Operand sizes;
    DomainOperands domain;
    Operand rate, tolerance, R;
    Operand next, next_predicted, next_slopes, next_points;
    RememberedOperands after;
    KeptOperands next_kept;
    PoolOperands next_pool;
    Operand residual;
};

struct Update {
    const UpdateOperands& of;
    Size n, p, j, K, d;
    double *slope, *point, *levels, *values, *own_values, *slack, *counted, *work, *data, *usual,
        *ahead, *limits, *A, *b;
    double *tight, *margin, *worst, *weights, *zeros, *directions, *alphas, *multipliers,
        *residuals;
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
        counted = take(n);
        work = take(2 * n + K);
        data = take(d);
        usual = take(j * n);
        ahead = take(of.kept.past.length[0] * d);
        limits = take(j * n);
        A = take(n * p);
        b = take(n);
        tight = take(n);
        margin = take(n);
        worst = take(n);
        weights = take(n);
        zeros = take(n);
        directions = take(K * p);
        alphas = take(K);
        multipliers = take(K * n);
        residuals = take(K);
        rest = take(0);
    }

    bool fit() const {
        return K > 0 && j > 1 && has_gradient(of.linear, of.matrix, of.levels, p) &&
               of.before.fit() && of.forecasts.fit(of.kept) && of.domain.fit() &&
               d == n * (p + 1) && j == of.forecasts.table.length[0] + 1 &&
               of.pool.hedge.length[0] == COUNTS && !of.own_A.at == !of.own_b.at;
    }

    double value(const double* row, double limit, const double* x) const {
        return dot(row, x, p) - limit;
    }

    // Whether x keeps rows, up to their tolerance.
    bool kept(Size i, const double* row, const double* limit, const double* x) const {
        return keeps({n, p, row, limit, nullptr}, x, *at(of.R, i), *at(of.tolerance, i));
    }

    // Whether no decision keeps the slot's rows; `known` where that can be told.
    bool is_infeasible(Size i, bool& known) const {
        const Rows rows = {n, p, at(of.A, i), at(of.b, i), nullptr};
        const Violation violation = {rows, of.domain.of(i), width_of(*at(of.R, i)), true};
        known = violation.least(place(i), point, rest);
        return known && !kept(i, at(of.A, i), at(of.b, i), point);
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
            data[k * (p + 1) + p] = counted[k] = its[k];
            total += values[k] + own_values[k] + slack[k];
        }
        return absolute(total) < HUGE_VAL;
    }

    // A limit above all that its row can be, by more than all of that, counts as that far above; of
    // an infeasible slot, one below as the least.
    void bring_within_reach(Size i, bool infeasible) const {
        const Domain domain = of.domain.of(i);
        for (Size k = 0; k < n; ++k) {
            const double* row = at(of.A, i) + k * p;
            const double least = domain.least(row, p), most = -domain.least(row, p, -1.0);
            const double loosest = most + (most - least);
            double limit = counted[k];
            if (limit > loosest) limit = loosest;
            if (infeasible && limit < least) limit = least;
            if (limit == counted[k]) continue;
            counted[k] = data[k * (p + 1) + p] = limit;
            own_values[k] = value(row, limit, at(of.x, i));
        }
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

    // No decision makes room for more than there is, nor any for a row that none moves. Whether
    // that is known.
    bool make_room(Size i, const Remembered<double>& after) const {
        const Domain domain = of.domain.of(i);
        for (Size k = 0; k < n; ++k) {
            const double* row = A + k * p;
            bool moves = false;
            for (Size e = 0; e < p; ++e) moves = moves || row[e] != 0.0;
            const double least = domain.least(row, p);
            if (!(least == least)) return false;
            after.margin[k] = moves ? smaller(after.margin[k], b[k] - least) : 0.0;
            if (!moves) after.ordinary[k] = 0.0;
            tight[k] = b[k] - after.margin[k];
        }
        return true;
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
        const Points points{at(of.points, i), directions, alphas, weights, 1, 0, zeros};
        points.step(rows, of.domain.of(i), K, at(of.next_points, i), multipliers, residuals, rest);
        double worst = 0.0;
        for (Size k = 0; k < K; ++k)
            if (!(residuals[k] <= worst)) worst = residuals[k];
        return worst;
    }

    // The pool's steps with all rows enforced, as much of the margin as they have a common point.
    // The room for it, and the residual.
    Room enforce(Size i, const double* lowest, const Remembered<double>& after,
                 double& residual) const {
        double* points = at(of.next_points, i);
        for (Size k = 0; k < n; ++k) worst[k] = b[k] - lowest[k];
        const MarginSearch search = {{n, p, A, b, nullptr},
                                     of.domain.of(i),
                                     *at(of.R, i),
                                     *at(of.tolerance, i),
                                     at(of.next, i)};
        const Room room = search.largest(after.margin, worst, margin, point, rest);
        for (Size k = 0; k < n; ++k) {
            after.margin[k] = margin[k];
            tight[k] = b[k] - margin[k];
            weights[k] = HUGE_VAL;
        }
        if (room == Room::whole) residual = step(i);
        for (Size k = 0; k < K; ++k)  // else the rows have next to nothing but that point in common
            if (room != Room::whole || !kept(i, A, tight, points + k * p))
                for (Size e = 0; e < p; ++e) points[k * p + e] = point[e];
        return room;
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

    // Whether what numbers are too large for is finite.
    bool is_finite(Size i, const Remembered<double>& after) const {
        double broken = 0.0;
        auto look = [&](const double* at, Size count) {
            for (Size e = 0; e < count; ++e) broken += 0.0 * at[e];
        };
        look(at(of.next_predicted, i), j * n), look(after.moments, j * n), look(after.errors, j);
        look(at(of.next_slopes, i), n), look(at(of.next_pool.hedge, i), COUNTS);
        return broken == 0.0;
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
        bring_within_reach(i, infeasible);

        const Remembered<double> after = of.after.of(i);
        judge({n, j, t, at(of.predicted, i), values, own_values, slack, infeasible, AFFINE, -1.0},
              read_only(of.before.of(i)), rate, after, usual, work);
        const Forecasts all = of.forecasts.of(of.kept, i);
        remember(all,
                 {n, d, t, after.tally[SINCE], data, counted, usual, at(of.forecasts.lags, i),
                  at(of.forecasts.asked, i), true, infeasible},
                 read_only(of.kept.of(i)), of.next_kept.of(i), ahead, limits);
        expect(i, all, after.tally);
        if (!make_room(i, after)) return HUGE_VAL;

        weigh({K, p, gradient, x, at(of.points, i), at(of.sizes, i), R}, read_only(of.pool.of(i)),
              of.next_pool.of(i), directions, alphas, work);
        set_weights(i);
        double residual = step(i);
        if (!(residual <= ACCURATE)) return HUGE_VAL;
        const Vector share = {at(of.next_pool.weights, i), K};
        const Matrix points = {at(of.next_points, i), K, p, p};
        const OutVector next = {at(of.next, i), p};
        play(share, points, next);
        Room room = Room::whole;
        if (!kept(i, A, tight, next.at)) {
            const double* lowest = at(of.next_kept.levels, i) + all.lowest() * n;
            room = enforce(i, lowest, after, residual);
            if (room == Room::unknown || !(residual <= ACCURATE)) return HUGE_VAL;
            play(share, points, next);
        }
        predict(i, all);
        after.tally[REDUCED] = room == Room::none ? 1.0 : 0.0;
        return is_finite(i, after) ? residual : HUGE_VAL;
    }
};

Size update_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const UpdateOperands*>(operands);
    const Update update(of, nullptr);
    if (!update.fit()) return DO_NOT_FIT;
    const Size n = update.n, p = update.p, blocks = of.domain.start.length[0];
    const Size step = Points::scratch(n, p, update.K, blocks);
    const Size search = MarginSearch::scratch(n, p, blocks);
    return step < 0 || search < 0 ? -1 : update.used + step + search;
}

void self_tuning_step(const Run& run) {
    const auto& of = *reinterpret_cast<const UpdateOperands*>(run.operands);
    const Update update(of, run.scratch);
    for (Size k = 0; k < update.n; ++k) update.zeros[k] = 0.0;
    for (Size i = 0; i < run.count; ++i) *at(of.residual, i) = update.update(i);
}

}  // namespace

extern const Entry self_tuning[];
const Entry self_tuning[] = {
    {"self_tuning_step",
     "(),(p),(j,n),(n),(k,p),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(r,d),(l,n),(n,h),(n,h),"
     "(n,h,h),(q),(k),(k),(p)?,(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n,p)?,(n)?,(n,a),(o,n)?,(f,g),(u),("
     "v),"
     "(k),(p),(p),(z)?,(z)?,(z)?,(),(),(),()"
     "->(p),(j,n),(n),(k,p),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(r,d),(l,n),(n,h),(n,h),"
     "(n,h,h),(q),(k),(k),()",
     self_tuning_step, update_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
