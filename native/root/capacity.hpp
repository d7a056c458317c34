// One capacity row on a box: sum_i scale_i log(1 + rate_i x_i) >= demand.
//
// Divided by 2 alpha, x(mu) minimises |x - y|^2 / 2 - mu sum_i scale_i log(1 + rate_i x_i): where
// x_i is free, x_i - y_i = mu s r / (1 + r x_i), a quadratic whose larger root is meant. What is
// missing, demand less capacity, falls about like the logarithm of mu, in which Newton's method
// runs.
#pragma once

#include <cmath>

#include "root/root.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double CAPACITY_ROUNDING = 1e-14;  // of demand and capacity: as much missing is nothing
constexpr double LEAST_RISE = 0.02;          // of what is missing: lest mu grows by more than e^50
constexpr double LARGE_PRODUCT = 1e150;      // of levels: it gets its logarithm

struct Capacity {
    Size p;
    double demand;
    const double *scale, *rate, *lower, *upper, *y;
    double* x;

    void set_x(double mu) const {
        across(p, [&]<class T>(T, Size i) {
            const T one(1.0), two(2.0), tiny(TINY), from = load<T>(y + i), r = load<T>(rate + i);
            const T base = one + r * from, push = T(mu) * load<T>(scale + i) * r;
            const T far = root(base * base + T(4.0) * push * r);
            const T above = from + two * push / larger(base + far, tiny);
            const T below =
                (two * push * r / larger(far + absolute(base), tiny) - one) / larger(r, tiny);
            const T free = select(base > T(0.0), above, select(r > T(0.0), below, from));
            store(x + i, clip(free, load<T>(lower + i), load<T>(upper + i)));
        });
    }

    // The capacity at x. Equal neighbouring scales share one logarithm: a sum of logarithms is that
    // of a product, of which only what exceeds 1 is kept, for small rates live in its last digits.
    double value() const {
        double total = 0.0, excess = 0.0, weight = 0.0;
        for (Size i = 0; i < p; ++i) {
            const double gain = rate[i] * x[i];
            if (scale[i] != weight || !(excess < LARGE_PRODUCT && gain < LARGE_PRODUCT)) {
                total += weight * std::log1p(excess);
                excess = 0.0;
                weight = scale[i];
            }
            excess += gain * (1.0 + excess);
        }
        return total + weight * std::log1p(excess);
    }

    // How fast it rises with mu.
    double rise(double mu) const {
        return sum_over<double>(p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V at = read(x), r = read(rate), level = V(1.0) + r * at;
            const V slope = V(read(scale)) * r / level;
            const V free = slope * slope / (V(1.0) + V(mu) * slope * r / level);
            return select((V(read(lower)) < at) & (at < V(read(upper))), free, V(0.0));
        });
    }

    Trial at(double mu) const {
        set_x(mu);
        const double capacity = value(), missing = demand - capacity, rises = rise(mu);
        if (absolute(missing) <= CAPACITY_ROUNDING * (absolute(demand) + absolute(capacity)))
            return {0.0, mu};
        if (!(rises > 0.0)) return {missing, next_breakpoint(mu)};
        if (mu == 0.0) return {missing, missing / rises};
        const double way = missing / larger(rises * mu, LEAST_RISE * absolute(missing));
        return {missing, mu * std::exp(way)};
    }

    // Just beyond the least multiplier above mu at which a coordinate leaves its lower bound.
    double next_breakpoint(double mu) const {
        double first = INFINITE;
        for (Size i = 0; i < p; ++i) {
            const double level = 1.0 + rate[i] * lower[i];
            const double there = (lower[i] - y[i]) * level / (scale[i] * rate[i]);
            if (there > mu) first = smaller(first, there);
        }
        return first * (1.0 + 1e-12);
    }

    // The capacity where every coordinate is at its upper bound; `limit` becomes the multiplier
    // from which on those that count are there.
    double largest(double& limit) const {
        double total = 0.0;
        for (Size i = 0; i < p; ++i) {
            const double slope = scale[i] * rate[i], level = 1.0 + rate[i] * upper[i];
            if (!(slope > 0.0)) continue;
            total += scale[i] * std::log1p(rate[i] * upper[i]);
            limit = larger(limit, 2.0 * (upper[i] - y[i]) * level / slope);
        }
        return total;
    }

    // The multiplier at which nothing is missing, or the bound where it never comes to that;
    // infinite if the row is hard and cannot be met.
    double solve(double lo, double hi) const {
        const Trial first = at(lo);
        if (!(first.value > 0.0 && lo < hi)) return lo;
        double limit = hi;
        if (hi == INFINITE) {
            // Beyond the limit all are at their upper bounds, and what is left missing is rounding.
            limit = lo;
            if (largest(limit) < demand) return INFINITE;
        }
        return find_root(*this, lo, first, limit);
    }

    // The residual of x; NaN where anything is.
    double residual(const Price& price, double mu) const {
        double worst = 0.0, most = 0.0, capacity = 0.0, size = absolute(demand), sum = 0.0;
        for (Size i = 0; i < p; ++i)
            if (scale[i] * rate[i] > 0.0)
                most = larger(most, known_size(x[i], y[i], lower[i], upper[i]));
        for (Size i = 0; i < p; ++i) {
            const double pull = mu * scale[i] * rate[i] / (1.0 + rate[i] * x[i]);
            const double terms = absolute(x[i]) + absolute(y[i]) + absolute(pull);
            const double off = off_by(x[i], y[i] + pull, y[i], terms, lower[i], upper[i]);
            const double known = larger(absolute(x[i]), LEAST_SHARE * most);
            const double own = scale[i] * std::log1p(rate[i] * x[i]);
            capacity += own;
            size += x[i] == known ? own : scale[i] * std::log1p(rate[i] * known);
            worst = larger(worst, off);
            sum += off;
        }
        const double missing = demand - capacity;
        return price.residual(sum < INFINITE ? worst : NOT_A_NUMBER, mu, missing, size);
    }
};

}  // namespace coldq::COLDQ_LEVEL
