// Where the method begins, in double, what it tells on its way, and the answer at its end.
#pragma once

#include "newton.hpp"

namespace coldq::COLDQ_LEVEL {

// The positive a with a - tau / a equal to this.
inline double halfway(double difference, double tau) {
    const double far = root(difference * difference + 4.0 * tau);
    return difference > 0.0 ? 0.5 * (difference + far)
                            : 2.0 * tau / larger(far - difference, 1e-300);
}

// Points of which every product of a multiplier and its room is tau.
class Starts {
  public:
    Starts(Size p, Size n, Size groups, Memory& memory)
        : slope_(memory.take<double>(p)),
          value_(memory.take<double>(n)),
          top_(memory.take<double>(groups)),
          sum_(memory.take<double>(groups)),
          count_(memory.take<double>(groups)) {}

    // A point near a guess.
    void near(InteriorPoint<double>& to, const double* x, const double* mu, const double* equal,
              double tau) {
        const Grouped& given = to.given;
        const auto v = to.point();
        const Size p = given.p;
        for (Size i = 0; i < p; ++i) v.x[i] = clipped(x[i], given.lower[i], given.upper[i]);
        for (Size i = 0; i < p; ++i) slope_[i] = v.x[i] - given.y<double>(i);
        for (Size r = 0; r < given.n; ++r) {
            add_multiple(slope_, mu[r] + given.lean[r], given.A + r * p, p);
            for (Size i = 0; i < p && r < given.curved; ++i)
                slope_[i] += (mu[r] + given.lean[r]) * dot(given.P_of(r) + i * p, v.x, p);
        }
        for (Size r = 0; r < given.equalities; ++r)
            add_multiple(slope_, equal[r], given.E + r * p, p);
        for (Size i = 0; i < p; ++i) {
            const double lower = given.lower[i], upper = given.upper[i], at = v.x[i];
            const auto side = [&](bool has, double away, double pull, double& price, double& room) {
                price = has ? halfway(larger(pull, 0.0) - away, tau) : 0.0;
                room = has ? smaller(tau / price, 0.4 * (upper - lower)) : 1.0;
            };
            const bool low = given.has_lower(i), up = given.has_upper(i);
            side(low, at - lower, slope_[i], v.low[i], v.down[i]);
            side(up, upper - at, -slope_[i], v.up[i], v.over[i]);
            if (low) v.x[i] = larger(v.x[i], lower + v.down[i]);
            if (up) v.x[i] = smaller(v.x[i], upper - v.over[i]);
            if (low) v.down[i] = larger(v.x[i] - lower, v.down[i]);
            if (up) v.over[i] = larger(upper - v.x[i], v.over[i]);
        }
        measure(given, v.x, mu);
        for (Size k = 0; k < given.groups; ++k) {
            v.s[k] = 0.0, v.nu[k] = 0.0;
            if (given.kind(k) == Kind::hinge) {
                const double rest = larger(given.cost[k] - sum_[k], 0.0);
                v.s[k] = halfway(larger(top_[k], 0.0) - rest, tau);
                v.nu[k] = tau / v.s[k];
            } else if (given.kind(k) == Kind::free) {
                v.s[k] = top_[k] + root(tau);
            }
        }
        for (Size r = 0; r < given.n; ++r) {
            const double room = larger(v.s[given.group_of(r)] - value_[r], 0.0);
            v.mu[r] = halfway(mu[r] - room, tau);
            v.t[r] = tau / v.mu[r];
        }
        copy(equal, given.equalities, v.equal);
        close(to);
    }

    // A point well inside the bounds. Rows may be broken: that is mended on the way, while unequal
    // products would be in it.
    void begin(InteriorPoint<double>& to, double tau) {
        const Grouped& given = to.given;
        const auto v = to.point();
        for (Size i = 0; i < given.p; ++i) {
            const double lower = given.lower[i], upper = given.upper[i];
            const bool low = given.has_lower(i), up = given.has_upper(i);
            const double room = 0.1 * (low && up ? smaller(upper - lower, 2.0) : 2.0);
            double x = clipped(given.y<double>(i), -2.0, 2.0);
            if (low) x = larger(x, lower + room);
            if (up) x = smaller(x, upper - room);
            v.x[i] = given.fixed(i) ? lower : x;
            v.down[i] = x - lower, v.over[i] = upper - x;
            v.low[i] = tau / v.down[i], v.up[i] = tau / v.over[i];
        }
        measure(given, v.x, nullptr);
        for (Size r = 0; r < given.n; ++r) {
            const Size k = given.group_of(r);
            const double share = given.cost[k] / count_[k];
            const bool hard = given.kind(k) == Kind::hard;
            double mu = smaller(0.5 * share, tau / (hard ? larger(absolute(value_[r]), 1.0) : 1.0));
            v.mu[r] = larger(given.kind(k) == Kind::free ? share : mu, 1e-100);
            v.t[r] = tau / v.mu[r];
            sum_[k] += v.mu[r];
        }
        for (Size k = 0; k < given.groups; ++k) {
            v.s[k] = 0.0, v.nu[k] = 0.0;
            if (given.kind(k) == Kind::hinge) {
                v.nu[k] = larger(given.cost[k] - sum_[k], 1e-100);
                v.s[k] = tau / v.nu[k];
            } else if (given.kind(k) == Kind::free) {
                v.s[k] = 1.0 + top_[k];
            }
        }
        fill(v.equal, given.equalities, 0.0);
        close(to);
    }

    // A point inside the bounds where no row is broken, with multipliers half-way to their costs.
    void inside(InteriorPoint<double>& to) {
        const Grouped& given = to.given;
        const auto v = to.point();
        for (Size i = 0; i < given.p; ++i) {
            const double lower = given.lower[i], upper = given.upper[i], y = given.y<double>(i);
            const bool both = given.has_lower(i) && given.has_upper(i);
            const double low = lower + 0.1 * (both ? upper - lower : 1.0 + absolute(lower));
            const double high = upper - 0.1 * (both ? upper - lower : 1.0 + absolute(upper));
            v.x[i] = given.fixed(i) ? lower : smaller(larger(y, low), high);
            v.down[i] = v.x[i] - lower, v.over[i] = upper - v.x[i];
        }
        measure(given, v.x, nullptr);
        double total = 0.0;
        for (Size k = 0; k < given.groups; ++k) {
            const Kind kind = given.kind(k);
            v.s[k] = v.nu[k] = 0.0;
            if (kind == Kind::hinge) v.s[k] = larger(1.0 + top_[k], 1.0);
            if (kind == Kind::free) v.s[k] = 1.0 + top_[k];
            if (kind == Kind::hinge) v.nu[k] = 0.5 * given.cost[k];
            total += v.s[k] * v.nu[k];
        }
        Size count = given.groups + given.n;
        for (Size r = 0; r < given.n; ++r) {
            const Size k = given.group_of(r);
            const Kind kind = given.kind(k);
            const double share = kind == Kind::hard ? 1.0 : given.cost[k] / count_[k];
            v.t[r] = larger(v.s[k] - value_[r], 1.0);
            v.mu[r] = kind == Kind::hinge ? 0.5 * share : share;
            total += v.t[r] * v.mu[r];
        }
        const double tau = total / double(count > 0 ? count : 1);
        for (Size i = 0; i < given.p; ++i) v.low[i] = tau / v.down[i], v.up[i] = tau / v.over[i];
        fill(v.equal, given.equalities, 0.0);
        close(to);
    }

    // The answer at a point: what is clearly at a bound is exactly so, multipliers of rows that
    // have room are 0, and those of a group that is not at 0 sum up to its cost.
    template <class Number>
    void settle(const InteriorPoint<Number>& from, double* x, double* mu, double* equal) {
        constexpr double CLEARLY =
            1e-6;  // of the terms of a row: x breaks it by more than rounding
        constexpr double CANCELLED = 1e-6;  // of y: x may be the rounding of a difference from it
        const Grouped& given = from.given;
        const auto v = from.best_point();
        const Size p = given.p, n = given.n;
        double largest = 0.0;
        for (Size i = 0; i < p; ++i) {
            const double known =
                smaller(CANCELLED * absolute(given.y<double>(i)), given.upper[i] - given.lower[i]);
            x[i] = rounded(v.x[i]);
            largest = larger(largest, larger(absolute(x[i]), known));
        }
        for (Size i = 0; i < p; ++i) slope_[i] = larger(absolute(x[i]), 1e-3 * largest);
        measure(given, x, nullptr);
        double* const most = count_;  // the sizes of the groups' terms
        fill(most, given.groups, 0.0);
        for (Size r = 0; r < n; ++r) {
            double terms = given.value(r, slope_, true) + absolute(given.b[r]);
            terms = terms > 0.0 ? terms : 1.0;
            const Size k = given.group_of(r);
            most[k] = larger(most[k], terms);
            mu[r] = rounded(v.t[r]) > 1e-11 * terms ? 0.0 : larger(rounded(v.mu[r]), 0.0);
            sum_[k] += mu[r];
        }
        for (Size r = 0; r < n; ++r) {
            const Size k = given.group_of(r);
            const Kind kind = given.kind(k);
            const bool full = kind == Kind::free || rounded(v.s[k]) > 1e-11 * most[k];
            if (kind != Kind::hard && full && sum_[k] > 0.0) mu[r] *= given.cost[k] / sum_[k];
        }
        // A group may weigh so little that no room of it is told by its product: its value decides.
        const auto light = [&](Size r) {
            const Size k = given.group_of(r);
            const Kind kind = given.kind(k);
            return kind != Kind::hard && sum_[k] == 0.0 && value_[r] >= top_[k] &&
                   (kind == Kind::free || top_[k] > CLEARLY * most[k]);
        };
        double* const held = value_;
        for (Size r = 0; r < n; ++r) held[r] = light(r) ? 1.0 : 0.0;
        fill(top_, given.groups, 0.0);
        for (Size r = 0; r < n; ++r) top_[given.group_of(r)] += held[r];
        for (Size r = 0; r < n; ++r)
            if (held[r] != 0.0) mu[r] = given.cost[given.group_of(r)] / top_[given.group_of(r)];
        for (Size i = 0; i < p; ++i) {
            const double lower = given.lower[i], upper = given.upper[i];
            const double close = 1e-13 * larger(slope_[i], 1e-300), at = x[i];
            if (at - lower <= close && rounded(v.low[i]) > 0.0) x[i] = lower;
            if (upper - at <= close && rounded(v.up[i]) > 0.0) x[i] = upper;
            x[i] = clipped(x[i], lower, upper);
        }
        for (Size r = 0; r < given.equalities; ++r) equal[r] = rounded(v.equal[r]);
    }

  private:
    // Set the rows' values, the largest of each group, its members and the sums of multipliers.
    void measure(const Grouped& given, const double* x, const double* mu) {
        fill(top_, given.groups, -INF);
        fill(sum_, given.groups, 0.0);
        fill(count_, given.groups, 0.0);
        for (Size r = 0; r < given.n; ++r) {
            const Size k = given.group_of(r);
            value_[r] = given.value(r, x) - given.b[r];
            top_[k] = larger(top_[k], value_[r]);
            count_[k] += 1.0;
            if (mu) sum_[k] += mu[r];
        }
    }

    // What is missing has no multiplier, and a room of one.
    static void close(InteriorPoint<double>& to) {
        const Grouped& given = to.given;
        const auto v = to.point();
        for (Size i = 0; i < given.p; ++i) {
            if (!given.has_lower(i)) v.low[i] = 0.0, v.down[i] = 1.0;
            if (!given.has_upper(i)) v.up[i] = 0.0, v.over[i] = 1.0;
        }
        for (Size r = 0; r < given.n; ++r)
            if (given.kind_of(r) == Kind::dead) v.mu[r] = 0.0, v.t[r] = 1.0;
        for (Size k = 0; k < given.groups; ++k)
            if (given.kind(k) != Kind::hinge) v.nu[k] = 0.0;
    }

    double *slope_, *value_, *top_, *sum_, *count_;
};

// What is small, a multiplier or the room that it has? Sizes of x and of rows are around 1, so
// that both are lengths; a multiplier is small beside those that pull and its cost.
struct Guess {
    Guess(Size p, Size n, Size groups, Size equalities, Memory& memory)
        : x(memory.take<double>(p)),
          mu(memory.take<double>(n)),
          equal(memory.take<double>(equalities)),
          above(memory.take<double>(groups)),
          largest(memory.take<double>(groups)) {}

    void of(const Grouped& problem, const InteriorPoint<double>::Point& v) {
        copy(v.equal, problem.equalities, equal);
        double pulled = 1.0;
        for (Size r = 0; r < problem.n; ++r) pulled = larger(pulled, v.mu[r]);
        for (Size i = 0; i < problem.p; ++i) {
            x[i] = v.x[i];
            if (problem.fixed(i) || (problem.has_lower(i) && v.low[i] > v.down[i]))
                x[i] = problem.lower[i];
            else if (problem.has_upper(i) && v.up[i] > v.over[i])
                x[i] = problem.upper[i];
        }
        for (Size k = 0; k < problem.groups; ++k) {
            const Kind kind = problem.kind(k);
            const double most = smaller(problem.cost[k], pulled);
            above[k] = kind == Kind::free || (kind == Kind::hinge && !(v.nu[k] > v.s[k] * most));
            largest[k] = 0.0;
        }
        for (Size r = 0; r < problem.n; ++r)
            largest[problem.group_of(r)] = larger(largest[problem.group_of(r)], v.mu[r]);
        for (Size r = 0; r < problem.n; ++r) {
            const Size k = problem.group_of(r);
            const double most = smaller(problem.cost[k], pulled);
            const bool base = above[k] != 0.0 && v.mu[r] == largest[k];
            mu[r] = base || v.mu[r] > v.t[r] * most ? v.mu[r] : 0.0;
        }
    }

    double *x, *mu, *equal;
    double *above, *largest;  // of a group: whether it is above zero, or linear; the largest mu
};

}  // namespace coldq::COLDQ_LEVEL
