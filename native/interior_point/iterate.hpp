// The optimality conditions, and a step towards them: Mehrotra's predictor and corrector.
//
//     min over lower <= x <= upper of  |x - y|^2 / 2 + sum_k max{ m (a_k x - b_k) : lo_k <= m <=
//     hi_k }
//
// With a_k x - b_k = u_k - v_k, at the optimum
//
//     x - y + A'mu - low + high = 0,
//     u (hi - mu) = 0,  v (mu - lo) = 0,  low (x - lower) = 0,  high (upper - x) = 0,
//
// all factors >= 0, which treats hinges, equalities and hard rows alike. Each product is one of a
// room and its price; there is none where a bound is infinite, or where nothing can move: then u,
// v, low or high is 0. Rows have unit length, so that x, u, v and multipliers have the same units.
// A step aims at products tau and solves the conditions linearised for the direction, of which all
// but d, that of x, is eliminated (`System`).
#pragma once

#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double BETWEEN = 5.0;  // times the geometric mean of two scales of prices: the first ones
constexpr double SOFT = 1e-10;   // the least that a row gives way, relative to rooms and prices
constexpr double FIXED = 1e200;  // the stiffness of a coordinate that cannot move
constexpr double LEAST = 1e-3;   // the least scale of rooms and of prices
constexpr double TINY = 1e-300;  // guards a division

struct Iterate {
    Size m, p;                     // rows, sums of blocks among them, and coordinates
    double *lo, *hi, *length;      // of the rows
    double *mu, *u, *v;            // what is remembered between calls,
    double *x, *low, *high;        // with these of the coordinates
    double *d_mu, *d_u, *d_v, *g;  // a direction, and a_k x - b_k
    double *weight, *pull;         // of a row in the system, and on its right side
    double *lower, *upper, *y;
    double *d, *d_low, *d_high, *stiff, *right;
    double reach, unit;  // how large rooms are, and that beside prices

    static constexpr Size OF_ROWS = 12, OF_COLUMNS = 11;
    static Size size(Size m, Size p) { return OF_ROWS * m + OF_COLUMNS * p; }
    static Size remembered(Size m, Size p) { return 3 * m + 3 * p; }

    Iterate(double* memory, Size m_, Size p_) : m(m_), p(p_) {
        auto take = [&](Size count) { return (memory += count) - count; };
        for (double** array : {&mu, &u, &v}) *array = take(m);
        for (double** array : {&x, &low, &high}) *array = take(p);
        for (double** array : {&lo, &hi, &length, &d_mu, &d_u, &d_v, &g, &weight, &pull})
            *array = take(m);
        for (double** array : {&lower, &upper, &y, &d, &d_low, &d_high, &stiff, &right})
            *array = take(p);
    }

    // visit(room, its direction, price, its direction) for all products.
    template <class Visit>
    COLDQ_INLINE void products(Visit visit) const {
        for (Size k = 0; k < m; ++k) {
            if (u[k] > 0.0) visit(u[k], d_u[k], hi[k] - mu[k], -d_mu[k]);
            if (v[k] > 0.0) visit(v[k], d_v[k], mu[k] - lo[k], d_mu[k]);
        }
        for (Size i = 0; i < p; ++i) {
            if (low[i] > 0.0) visit(x[i] - lower[i], d[i], low[i], d_low[i]);
            if (high[i] > 0.0) visit(upper[i] - x[i], -d[i], high[i], d_high[i]);
        }
    }

    // Their mean, t along the direction.
    double gap(double t) const {
        double total = 0.0, count = 0.0;
        products([&](double room, double d_room, double price, double d_price) {
            total += (room + t * d_room) * (price + t * d_price);
            count += 1.0;
        });
        return total / larger(count, 1.0);
    }

    // How far the direction may go until a room or a price is 0.
    double longest() const {
        double t = HUGE_VAL;
        products([&](double room, double d_room, double price, double d_price) {
            if (d_room < 0.0) t = smaller(t, -room / d_room);
            if (d_price < 0.0) t = smaller(t, -price / d_price);
        });
        return t;
    }

    // Multipliers, rooms and prices for the x and the g given, all well inside. Prices start
    // between what x asks for and what rows that cannot be met have; where rows are `near` to
    // being met, at the former.
    void begin(bool near) {
        double force = 0.0, spans = 0.0, count = 0.0, moving = 0.0;
        reach = 0.0;
        for (Size k = 0; k < m; ++k) {
            if (lo[k] < hi[k]) reach += absolute(g[k]), moving += 1.0;
            const double span = hi[k] - lo[k];
            if (0.0 < span && span < HUGE_VAL) spans += std::log(span), count += 1.0;
        }
        for (Size i = 0; i < p; ++i) force += absolute(y[i] - x[i]) / double(p);
        reach = larger(reach / larger(moving, 1.0), LEAST);
        force = larger(force, reach);
        unit = reach / force;
        const bool between = !near && count > 0.0;
        const double high_price = between ? std::exp(spans / count) : 0.0;
        const double price = larger(force, between ? BETWEEN * root(force * high_price) : 0.0);
        for (Size k = 0; k < m; ++k) {
            const bool moves = lo[k] < hi[k];
            const double room = smaller(0.5 * (hi[k] - lo[k]), price);
            mu[k] = moves ? smaller(larger(0.0, lo[k] + room), hi[k] - room) : lo[k];
            u[k] = moves && hi[k] < HUGE_VAL ? larger(g[k], 0.0) + reach : 0.0;
            v[k] = moves && lo[k] > -HUGE_VAL ? larger(-g[k], 0.0) + reach : 0.0;
        }
        for (Size i = 0; i < p; ++i) {
            const bool moves = lower[i] < upper[i];
            low[i] = moves && lower[i] > -HUGE_VAL ? price : 0.0;
            high[i] = moves && upper[i] < HUGE_VAL ? price : 0.0;
        }
    }

    // How large rooms are in comparison with multipliers as they are, or with what x asks for.
    double unit_now() const {
        double total = 0.0, count = 0.0;
        for (Size k = 0; k < m; ++k)
            if (u[k] > 0.0 || v[k] > 0.0) total += absolute(mu[k]), count += 1.0;
        return count > 0.0 ? smaller(unit, reach * count / larger(total, TINY)) : unit;
    }

    // Set the weight of each row and the stiffness of each coordinate in a step's system. A little
    // that all rows give way, beside the multipliers of those with rooms, keeps the weight finite
    // of those without; later steps correct what that costs.
    void weigh() {
        const double soft = SOFT * unit_now();
        for (Size k = 0; k < m; ++k) {
            const double above = u[k] > 0.0 ? u[k] / (hi[k] - mu[k]) : 0.0;
            const double below = v[k] > 0.0 ? v[k] / (mu[k] - lo[k]) : 0.0;
            weight[k] = lo[k] < hi[k] ? 1.0 / (soft + above + below) : 0.0;
            d_mu[k] = d_u[k] = d_v[k] = 0.0;
        }
        for (Size i = 0; i < p; ++i) {
            const double below = low[i] > 0.0 ? low[i] / (x[i] - lower[i]) : 0.0;
            const double above = high[i] > 0.0 ? high[i] / (upper[i] - x[i]) : 0.0;
            stiff[i] = 1.0 + below + above + (lower[i] < upper[i] ? 0.0 : FIXED);
            d[i] = d_low[i] = d_high[i] = 0.0;
        }
    }

    struct Two {
        double first, second;
    };

    // What u and v are to be for products tau if mu stays; the last direction says how products
    // will bend.
    Two row_aims(Size k, double tau) const {
        const double above = larger(hi[k] - mu[k], TINY), below = larger(mu[k] - lo[k], TINY);
        return {u[k] > 0.0 ? (tau + d_u[k] * d_mu[k]) / above : 0.0,
                v[k] > 0.0 ? (tau - d_v[k] * d_mu[k]) / below : 0.0};
    }

    // The same of the two prices of a coordinate.
    Two column_aims(Size i, double tau) const {
        const double below = larger(x[i] - lower[i], TINY), above = larger(upper[i] - x[i], TINY);
        return {low[i] > 0.0 ? (tau - d_low[i] * d[i]) / below : 0.0,
                high[i] > 0.0 ? (tau + d_high[i] * d[i]) / above : 0.0};
    }

    // Set the right side of a step that aims at products tau: `right` less A' of `pull`.
    void aim(double tau) {
        for (Size k = 0; k < m; ++k) {
            const Two to = row_aims(k, tau);
            pull[k] = mu[k] + weight[k] * (g[k] - to.first + to.second);
        }
        for (Size i = 0; i < p; ++i) {
            const Two to = column_aims(i, tau);
            right[i] = y[i] - x[i] + to.first - to.second;
        }
    }

    // Complete the direction whose x part is `step`, and A times that `along`.
    void complete(double tau, const double* step, const double* along) {
        for (Size k = 0; k < m; ++k) {
            const Two to = row_aims(k, tau);
            const double its = weight[k] * (g[k] - to.first + to.second + along[k]);
            if (u[k] > 0.0) d_u[k] = to.first - u[k] + u[k] / (hi[k] - mu[k]) * its;
            if (v[k] > 0.0) d_v[k] = to.second - v[k] - v[k] / (mu[k] - lo[k]) * its;
            d_mu[k] = its;
        }
        for (Size i = 0; i < p; ++i) {
            const Two to = column_aims(i, tau);
            if (low[i] > 0.0) d_low[i] = to.first - low[i] - low[i] / (x[i] - lower[i]) * step[i];
            if (high[i] > 0.0)
                d_high[i] = to.second - high[i] + high[i] / (upper[i] - x[i]) * step[i];
            d[i] = step[i];
        }
    }

    void move(double t) {
        for (Size k = 0; k < m; ++k) mu[k] += t * d_mu[k], u[k] += t * d_u[k], v[k] += t * d_v[k];
        for (Size i = 0; i < p; ++i)
            x[i] += t * d[i], low[i] += t * d_low[i], high[i] += t * d_high[i];
    }
};

}  // namespace coldq::COLDQ_LEVEL
