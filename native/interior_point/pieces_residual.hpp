// Rows that are the largest of several affine pieces, and how good an answer of them is.
#pragma once

#include "active_set/problem.hpp"

namespace coldq::COLDQ_LEVEL {

// min |x - y|^2 / 2 + penalties over lower <= x <= upper, all divided by 2 alpha. Row k is the
// largest of the pieces <a_r, x> - b_r of its group; their multipliers sum up to a number in
// [low_k, high_k], where low is 0 (a hinge) or high (linear). Plain rows beside them have
// multipliers in [lo, hi].
struct Pieces {
    Size p, pieces, rows, plains;
    const double *y, *A, *b, *group, *low, *high;
    const double *plain, *limit, *lo, *hi, *lower, *upper;

    Size group_of(Size r) const { return Size(group[r]); }

    // The size of coordinate i, beside which it counts at zero: that of what it is the difference
    // of.
    double known(const double* x, Size i) const {
        constexpr double DOUBT = 1e-6;
        return larger(absolute(x[i]), smaller(DOUBT * absolute(y[i]), upper[i] - lower[i]));
    }

    // A sum of multipliers; one at its cap but for rounding is the cap.
    static double capped(double total, double cap) {
        constexpr double NEAR = 1e-11;
        return total >= cap || absolute(total - cap) <= NEAR * total ? cap : total;
    }
};

// The relative KKT residual: of stationarity, and of complementarity for pieces and groups. A piece
// with a multiplier must be its group's largest; a group whose multipliers do not reach its cap
// must not be positive, one whose multipliers do not vanish not negative.
class PiecesResidual {
  public:
    PiecesResidual(Size p, Size pieces, Size rows, Memory& memory)
        : pull_(memory.take<double>(p)),
          size_(memory.take<double>(p)),
          known_(memory.take<double>(p)),
          value_(memory.take<double>(pieces)),
          top_(memory.take<double>(rows)),
          widest_(memory.take<double>(rows)),
          sum_(memory.take<double>(rows)) {}

    double of(const Pieces& given, const double* x, const double* mu, const double* nu) {
        constexpr double TINY = 1e-300, LEAST_SIZE = 1e-6;
        double worst = 0.0, broken = 0.0, least = TINY;
        const auto off = [&](double amount, double size) {
            worst = larger(worst, amount / size);
            broken += 0.0 * amount;
        };
        for (Size i = 0; i < given.p; ++i) {
            known_[i] = given.known(x, i);
            pull_[i] = 0.0;
            size_[i] = larger(absolute(x[i]) + absolute(given.y[i]), TINY);
            least = larger(least, LEAST_SIZE * absolute(x[i]));
        }
        fill(top_, given.rows, -INF);
        fill(widest_, given.rows, 0.0);
        fill(sum_, given.rows, 0.0);
        for (Size r = 0; r < given.pieces; ++r) {
            const Size k = given.group_of(r);
            const Row row = add(given, given.A + r * given.p, given.b[r], x, mu[r]);
            value_[r] = row.value;
            top_[k] = larger(top_[k], row.value), widest_[k] = larger(widest_[k], row.size);
            sum_[k] += mu[r];
            broken += 0.0 * row.value + 0.0 * mu[r];
        }
        for (Size r = 0; r < given.plains; ++r) {
            const Row row = add(given, given.plain + r * given.p, given.limit[r], x, nu[r]);
            const bool wrong = (nu[r] < given.hi[r] && row.value > 0.0) ||
                               (nu[r] > given.lo[r] && row.value < 0.0);
            if (wrong) off(absolute(row.value), row.size);
            broken += 0.0 * row.value + 0.0 * nu[r];
        }
        for (Size i = 0; i < given.p; ++i) {
            // Off by the least of two: in its slope, relative to the terms of that, or in its way
            // to where the slope would lead, relative to its own size.
            const double z = given.y[i] - pull_[i];
            const double way = absolute(x[i] - clipped(z, given.lower[i], given.upper[i]));
            const double slope = absolute(x[i] - z) / size_[i];
            off(smaller(way / larger(known_[i], least), slope), 1.0);
            broken += 0.0 * z;
        }
        for (Size r = 0; r < given.pieces; ++r)
            if (mu[r] > 0.0) off(top_[given.group_of(r)] - value_[r], widest_[given.group_of(r)]);
        for (Size k = 0; k < given.rows; ++k) {
            const double low = given.low[k], high = given.high[k];
            const double total = Pieces::capped(sum_[k], high);
            if ((total < high && top_[k] > 0.0) || (total > low && top_[k] < 0.0))
                off(absolute(top_[k]), widest_[k]);
            off(larger(absolute(sum_[k] - total), low - total), larger(total, TINY));
        }
        return broken == 0.0 ? worst : __builtin_nan("");
    }

  private:
    struct Row {
        double value, size;
    };

    // <a, x> - b and the size of its terms, where coordinates count at least with a share of the
    // largest in the row; what its multiplier pulls is added.
    Row add(const Pieces& given, const double* a, double b, const double* x, double multiplier) {
        constexpr double X_FLOOR = 1e-3;
        double most = 0.0;
        for (Size i = 0; i < given.p; ++i)
            if (a[i] != 0.0) most = larger(most, known_[i]);
        const auto both = sums<2, double>(given.p, [&](Size i) {
            const double at = larger(absolute(x[i]), X_FLOOR * most);
            return Terms<double, 2>{{a[i] * x[i], absolute(a[i]) * at}};
        });
        for (Size i = 0; i < given.p && multiplier != 0.0; ++i) {
            pull_[i] += a[i] * multiplier;
            size_[i] += absolute(a[i] * multiplier);
        }
        const double size = both.of[1] + absolute(b);
        return {both.of[0] - b, size > 0.0 ? size : 1.0};
    }

    double *pull_, *size_, *known_, *value_, *top_, *widest_, *sum_;
};

}  // namespace coldq::COLDQ_LEVEL
