// One quadratic row without mixed terms on a box, diagonal or ball-shaped:
//
//     sum_i d_i x_i^2 / 2 + q_i x_i <= limit    or    d |x - c|^2 / 2 <= limit
//
// Divided by 2 alpha, x(mu) = clip((y - mu q) / (1 + mu d)). The row's value g there falls as mu
// grows, and above its least value on the box about like 1 / mu^2: Newton's method on the inverse
// root is nearly exact. A ball-shaped row is all relative to c, so that no digits are lost where c
// is far.
#pragma once

#include "root/root.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SURELY_ABOVE = 1e-10;  // of a row's terms, by which a hard row is missed
constexpr double ROW_ROUNDING = 1e-15;  // of a row's terms: a root is found no closer
constexpr double ROUNDED_TERMS = 64.0;  // the rounding of more grows with the root of their number

template <bool ROUND>
struct QuadraticRow {
    Size p;
    const double *d, *q, *c;  // one d of a ball-shaped row, which has no q; a diagonal one has no c
    double limit;
    const double *lower, *upper;
    double *y, *target, *least, *most;  // y; and relative to c, y and the bounds
    double bottom = 0.0;                // the least value on the box

    template <class Read>
    COLDQ_INLINE auto curvature(Read read) const {
        if constexpr (ROUND)
            return decltype(read(y))(*d);
        else
            return read(d);
    }
    template <class Read>
    COLDQ_INLINE auto line(Read read) const {
        if constexpr (ROUND)
            return decltype(read(y))(0.0);
        else
            return read(q);
    }
    template <class Read>
    COLDQ_INLINE auto middle(Read read) const {
        if constexpr (ROUND)
            return read(c);
        else
            return decltype(read(y))(0.0);
    }

    // Set what is relative to c, from y.
    void begin(const double* center, const double* gradient, double half) {
        across(p, [&]<class T>(T, Size i) {
            const auto read = [i](const double* array) { return load<T>(array + i); };
            const T from = middle(read);
            store(target + i, (read(center) - from) - read(gradient) * T(half));
            store(least + i, read(lower) - from);
            store(most + i, read(upper) - from);
        });
    }

    // The row at x(mu), how fast it falls as mu grows, and the size of its terms.
    Terms<double, 3> value(double mu) const {
        auto found = sums_over<3, double>(p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V bend = curvature(read), slant = line(read);
            const V share = V(1.0) / (V(1.0) + V(mu) * bend);
            const V z = (read(target) - V(mu) * slant) * share;
            const V u = clip(z, V(read(least)), V(read(most)));
            const V bent = V(0.5) * bend * u * u, flat = slant * u, slope = bend * u + slant;
            return Terms<V, 3>{{bent + flat, select(u == z, slope * slope * share, V(0.0)),
                                bent + absolute(flat)}};
        });
        return {{found.of[0] - limit, found.of[1], found.of[2] + absolute(limit)}};
    }

    Trial at(double mu) const { return ahead(mu, value(mu)); }

    Trial ahead(double mu, const Terms<double, 3>& there) const {
        const auto [g, fall, size] = there.of;
        const double rounded = ROW_ROUNDING * larger(1.0, root(double(p) / ROUNDED_TERMS));
        if (absolute(g) <= rounded * size) return {0.0, mu};
        // Where all that the row moves is at a bound: on to where the first leaves it.
        if (!(fall > 0.0)) return {g, next_breakpoint(mu)};
        const double height = g - bottom;
        double ratio = 1.0;
        if (bottom < 0.0 && bottom > -INFINITE && height > 0.0)
            ratio = 2.0 * (height / g) * (root(height / -bottom) - 1.0);
        return {g, mu + ratio * g / fall};
    }

    // Just beyond the least multiplier above mu at which a coordinate leaves its bound.
    double next_breakpoint(double mu) const {
        double first = INFINITE;
        for (Size i = 0; i < p; ++i) {
            const auto read = [i](const double* array) { return array[i]; };
            const double bend = curvature(read), slant = line(read);
            const double z = (target[i] - mu * slant) / (1.0 + mu * bend);
            if (least[i] <= z && z <= most[i]) continue;
            const double bound = z > most[i] ? most[i] : least[i];
            const double there = (target[i] - bound) / (bend * bound + slant);
            if (there > mu) first = smaller(first, there);
        }
        return first * (1.0 + 1e-12);
    }

    // Set the least value on the box, -infinite if it has no end; the size of its terms there.
    double set_bottom() {
        const auto found = sums_over<2, double>(p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V zero(0.0), bend = curvature(read), slant = line(read);
            const V flat = select(slant > zero, V(-INFINITE), V(INFINITE));
            const V turn = select(bend > zero, -slant / larger(bend, V(TINY)), flat);
            const V u = clip(turn, V(read(least)), V(read(most))), half = V(0.5) * bend;
            const auto bare = (bend == zero) & (slant == zero);
            return Terms<V, 2>{
                {select(bare, zero, (half * u + slant) * u),
                 select(bare, zero, (half * absolute(u) + absolute(slant)) * absolute(u))}};
        });
        bottom = found.of[0] - limit;
        return found.of[1] + absolute(limit);
    }

    // The multiplier at which g changes its sign, or the bound where it does not; infinite if the
    // row is hard and cannot be met.
    double solve(double lo, double hi) {
        const Terms<double, 3> first = value(lo);
        if (!(first.of[0] > 0.0 && lo < hi)) return lo;
        const double size = set_bottom();
        if (bottom >= 0.0 && hi < INFINITE) return hi;
        if (bottom > SURELY_ABOVE * size) return INFINITE;
        return find_root(*this, lo, ahead(lo, first), hi);
    }

    // x(mu): of a ball-shaped row a share of the way from y to c, or back from c.
    void set_x(double mu, double* x) const {
        across(p, [&]<class T>(T, Size i) {
            const auto read = [i](const double* array) { return load<T>(array + i); };
            const T bend = curvature(read), stiff = T(1.0) + T(mu) * bend;
            T z = (read(target) - T(mu) * line(read)) / stiff;
            if constexpr (ROUND) {
                const T share = T(mu) * bend / stiff;
                const T from_c = read(c) + read(target) / stiff;
                z = select(share < T(0.5), read(y) - share * read(target), from_c);
            }
            store(x + i, clip(z, read(lower), read(upper)));
        });
    }

    // g at x and the size of its terms, in which the rounding of x counts; how far the worst
    // coordinate is off, NaN if any is.
    struct Judged {
        double g, size, worst;
    };
    Judged judge(double mu, const double* x) const {
        const double largest = largest_over(p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V zero(0.0), u = read(x) - middle(read);
            const V known = known_size(u, V(read(target)), V(read(lower)), V(read(upper)));
            const V bend = curvature(read), slant = line(read);
            return select((bend == zero) & (slant == zero), zero, known);
        });
        const auto off = [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V at = read(x), from = middle(read), own = read(y), bend = curvature(read);
            const V pull = V(mu) * (bend * (at - from) + line(read));
            const V moved = bend * (absolute(at) + absolute(from)) + absolute(V(line(read)));
            const V terms =
                absolute(at) + absolute(own) + absolute(pull) + V(TERMS) * V(mu) * moved;
            return off_by(at, own - pull, own, terms, V(read(lower)), V(read(upper)));
        };
        const auto sum = sums_over<3, double>(p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(y));
            const V at = read(x), from = middle(read), u = at - from, bend = curvature(read);
            const V slant = line(read), half = V(0.5) * bend;
            const V far = larger(absolute(u), V(LEAST_SHARE * largest));
            const V rounding = V(TERMS) * bend * absolute(u) * (absolute(at) + absolute(from));
            return Terms<V, 3>{{(half * u + slant) * u,
                                (half * far + absolute(slant)) * far + rounding, off(read)}};
        });
        const double g = sum.of[0] - limit, worst = largest_over(p, off);
        return {g, sum.of[1] + absolute(limit), sum.of[2] < INFINITE ? worst : NOT_A_NUMBER};
    }
};

}  // namespace coldq::COLDQ_LEVEL
