// A primal-dual interior-point method over the number type (Mehrotra 1992).
//
// With multipliers mu of rows, nu of s >= 0, low and up of bounds, and rooms t, s, down and over,
// a step is Newton's on the conditions
//
//     x - y + J'(mu + lean) + E' lambda - low + up = 0       J = A + P x
//     g - s + t = 0,   E x = e,   cost - nu - (the group's sum of mu) = 0
//     mu t = nu s = low (x - lower) = up (upper - x) = tau
//
// towards ever smaller tau. No sign decides here which rows and bounds hold x: where numbers of
// many magnitudes meet, rounding would decide it.
#pragma once

#include "grouped.hpp"
#include "system.hpp"

namespace coldq::COLDQ_LEVEL {

// Where the method stops: at this mean product of a multiplier and its room, and this residual.
struct Goal {
    double gap, residual;
    bool early;           // also where it gets stuck, for another number type to go on
    bool priced = false;  // the mean product relative to what rows pull
};

template <class Number>
class InteriorPoint {
  public:
    // At most `joint` groups have more than one row, or are linear.
    InteriorPoint(Size p, Size n, Size groups, Size joint, Size equalities, Size curved,
                  Memory& memory)
        : value(memory.take<Number>(numbers(p, n, groups, equalities))),
          step(memory.take<Number>(numbers(p, n, groups, equalities))),
          best(memory.take<Number>(numbers(p, n, groups, equalities))),
          aimed(memory.take<Number>(2 * (2 * p + n + groups))),
          push(memory.take<Number>(2 * p + n + groups)),
          ratio(memory.take<Number>(2 * p + n + groups)),
          inverse(memory.take<Number>(2 * p + n + groups)),
          open(memory.take<double>(2 * p + n + groups)),
          y(memory.take<Number>(p)),
          J(memory.take<Number>(n, p)),
          E(memory.take<Number>(equalities, p)),
          left_x(memory.take<Number>(p)),
          left_t(memory.take<Number>(n)),
          left_s(memory.take<Number>(groups)),
          left_e(memory.take<Number>(equalities)),
          size(memory.take<double>(p)),
          stiff(memory.take<Number>(p)),
          right(memory.take<Number>(p)),
          pull(memory.take<Number>(n)),
          along(memory.take<Number>(n)),
          bend(memory.take<double>(n)),
          total(memory.take<Number>(groups)),
          give(memory.take<Number>(groups)),
          rise(memory.take<Number>(groups)),
          soft(memory.take<Number>(groups)),
          members(memory.take<double>(groups)),
          moving(memory.take<double>(groups)),
          place(memory.take<Size>(groups)),
          rows_first_(by_rows(p, n, equalities, curved)),
          first_(rows_first_ ? n + equalities : p, memory),
          second_(rows_first_ ? joint : equalities, memory),
          lines(memory.take<Number>(n + (rows_first_ ? equalities : joint), p)),
          beside(memory.take<Number>(rows_first_ ? joint : equalities,
                                     rows_first_ ? n + equalities : p)),
          z(memory.take<Number>(n + groups + equalities)),
          work(memory.take<Number>(rows_first_ ? weighted_rows_work(n + equalities)
                                               : weighted_columns_work(p))) {}

    // The parts of a point. Rooms and multipliers have the same order: those of the bounds, of the
    // rows and of the groups. One that is missing has the multiplier 0 and, but for s, the room 1.
    struct Point {
        Number *x, *equal, *price, *room;
        Number *low, *up, *mu, *nu, *down, *over, *t, *s;
    };
    Point at(Number* block) const {
        const Size p = given.p, n = given.n;
        Number *price = block + p + given.equalities, *room = price + pairs;
        return {block,         block + p,         price, room,     price + 0,    price + p,
                price + 2 * p, price + 2 * p + n, room,  room + p, room + 2 * p, room + 2 * p + n};
    }
    Point point() const { return at(value); }
    Point best_point() const { return at(best); }

    // Set which multipliers there are. The point is to be set next.
    void take(const Grouped& problem) {
        given = problem;
        const Size p = given.p, n = given.n, k = given.groups;
        pairs = 2 * p + n + k;
        fill(members, k, 0.0);
        fill(step, numbers(), Number(0.0));
        count = 0;
        for (Size i = 0; i < p; ++i) open[i] = given.has_lower(i), open[p + i] = given.has_upper(i);
        for (Size r = 0; r < n; ++r) {
            open[2 * p + r] = given.kind_of(r) != Kind::dead;
            members[given.group_of(r)] += open[2 * p + r];
            for (Size i = 0; i < p; ++i) J[r * p + i] = given.A[r * p + i];
        }
        shared = 0;
        for (Size a = 0; a < k; ++a) {
            open[2 * p + n + a] = given.kind(a) == Kind::hinge;
            moving[a] = given.kind(a) == Kind::hinge || given.kind(a) == Kind::free;
            const bool alone = given.kind(a) == Kind::hinge && !(members[a] > 1.0);
            place[a] = moving[a] != 0.0 && !alone ? shared++ : -1;
        }
        for (Size c = 0; c < pairs; ++c) count += open[c] != 0.0;
        for (Size c = 0; c < given.equalities * p; ++c) E[c] = given.E[c];
        for (Size i = 0; i < p; ++i) y[i] = given.y<Number>(i);
        if (!rows_first_) return;
        for (Size r = 0; r < n; ++r)
            for (Size i = 0; i < p; ++i) lines[r * p + i] = J[r * p + i] * open[2 * p + r];
        copy(E, given.equalities * p, lines + n * p);
    }

    // Go on from a point of another number type.
    template <class Other>
    void go_on(const InteriorPoint<Other>& other) {
        take(other.given);
        const auto from = other.best_point();
        const Point to = point();
        for (Size c = 0; c < numbers(); ++c) value[c] = from.x[c];
        for (Size i = 0; i < given.p; ++i) {
            const bool low = given.has_lower(i), up = given.has_upper(i);
            if (low && (!up || !(to.over[i] < to.down[i])))
                to.x[i] = to.down[i] + given.lower[i];
            else if (up)
                to.x[i] = -to.over[i] + given.upper[i];
        }
    }

    // Newton's method, until the goal is reached or nothing falls any more; the best point is kept.
    // Return the larger of the mean product and the residual that are left there.
    double walk(Goal goal, int& steps) {
        constexpr double SHORT = 0.995;  // of the way to the boundary
        constexpr double CARE = 1e-6;    // the least share of the gap that a step aims at
        constexpr double FIRST = 1e-10;  // of the gap: above it there is more patience
        double least = INF, care = CARE;
        int stuck = 0;
        copy(value, numbers(), best);
        for (; steps > 0; --steps) {
            if constexpr (sizeof(Number) > sizeof(double)) set_rooms();
            const double gap = products(0.0), off = set_state();
            const double merit = larger(gap, off);
            if (!(absolute(gap + off) < INF)) break;
            if (merit < 0.9 * least) {
                stuck = 0, least = merit;
                copy(value, numbers(), best);
            } else {
                ++stuck;
            }
            if ((gap <= goal.gap * (goal.priced ? pulled() : 1.0) && off <= goal.residual) ||
                stuck > (gap > FIRST ? 25 : 8))
                break;
            if (!set_system()) break;
            // First aim at zero, to see how far that leads; then at what it would leave.
            set_direction(0.0, false);
            const double share = larger(products(farthest(1.0)) / larger(gap, 1e-300), 0.0);
            const double tau = gap * smaller(larger(share * share * share, care), 1.0);
            const Point aim = at(step);
            copy(aim.price, 2 * pairs, aimed);
            set_direction(tau, true);
            const double length = curved(smaller(SHORT * farthest(1.0 / SHORT), 1.0));
            for (Size c = 0; c < numbers(); ++c) value[c] += step[c] * length;
            // Aim low where the last step could go far.
            care = larger(0.9 * (1.0 - length) * (1.0 - length), CARE);
            if (goal.early && length < 0.1) break;
        }
        return least;
    }

    double mean_product() const { return products(0.0); }

    Grouped given;

  private:
    static Size numbers(Size p, Size n, Size groups, Size equalities) {
        return p + equalities + 2 * (2 * p + n + groups);
    }
    Size numbers() const { return numbers(given.p, given.n, given.groups, given.equalities); }

    // Whether a system is one over multipliers, as they are fewer, and not over coordinates.
    static bool by_rows(Size p, Size n, Size equalities, Size curved) {
        return curved == 0 && n + equalities < p;
    }

    // The mean product of a multiplier and its room, so far along the step.
    double products(double length) const {
        const Point v = point(), d = at(step);
        const double all = sum<double>(pairs, [&](Size c) {
            return (rounded(v.price[c]) + length * rounded(d.price[c])) *
                   (rounded(v.room[c]) + length * rounded(d.room[c]));
        });
        return all / double(count > 0 ? count : 1);
    }

    // What rows pull, but for what their groups cost at most.
    double pulled() const {
        double most = 1.0, cost = 0.0;
        for (Size r = 0; r < given.n; ++r) most = larger(most, rounded(point().mu[r]));
        for (Size k = 0; k < given.groups; ++k) cost = larger(cost, given.cost[k]);
        return smaller(cost, most);
    }

    // How much of the step leaves everything positive, at most so much.
    double farthest(double most) const {
        const Point v = point(), d = at(step);
        double length = most;
        const auto within = [&](const Number& room, const Number& change) {
            if (-rounded(change) * length > rounded(room))
                length = -rounded(room) / rounded(change);
        };
        for (Size c = 0; c < pairs; ++c)
            if (open[c] != 0.0) within(v.price[c], d.price[c]), within(v.room[c], d.room[c]);
        return length;
    }

    // The rooms that x leaves at its bounds. In double they would lose their digits beside it; of
    // what is beyond those of a double-double there is none, and the bound just holds.
    void set_rooms() {
        const Point v = point();
        for (Size i = 0; i < given.p; ++i) {
            if (given.has_lower(i)) v.down[i] = v.x[i] - Number(given.lower[i]);
            if (given.has_upper(i)) v.over[i] = Number(given.upper[i]) - v.x[i];
        }
    }

    // Slopes, and what is left of each condition; return the largest, relative where it is of x.
    double set_state() {
        const Size p = given.p, n = given.n;
        const Point v = point();
        double off = 0.0, broken = 0.0;
        for (Size i = 0; i < p; ++i) {
            left_x[i] = (v.x[i] - y[i]) - v.low[i] + v.up[i];
            size[i] = 1.0 + absolute(rounded(v.x[i]));
        }
        for (Size k = 0; k < given.groups; ++k)
            left_s[k] = Number(moving[k] != 0.0 ? given.cost[k] : 0.0) - v.nu[k];
        for (Size r = 0; r < n; ++r) {
            const Size k = given.group_of(r);
            Number* const slope = J + r * p;
            Number g = -given.b[r];
            if (r < given.curved) {
                for (Size i = 0; i < p; ++i) {
                    const double* const row = given.P_of(r) + i * p;
                    const Number own = sum<Number>(p, [&](Size j) { return v.x[j] * row[j]; });
                    slope[i] = own + given.A[r * p + i];
                    g += v.x[i] * (own * 0.5 + given.A[r * p + i]);
                }
            } else {
                g += product(slope, v.x, p);
            }
            const Number price = v.mu[r] + given.lean[r];
            add_multiple(left_x, size, price, slope, p);
            left_t[r] = g - v.s[k] * moving[k] + v.t[r];
            left_s[k] -= v.mu[r];
            if (open[2 * p + r] == 0.0) continue;
            off = larger(off, absolute(rounded(left_t[r])));
            broken += 0.0 * rounded(left_t[r]);
        }
        for (Size r = 0; r < given.equalities; ++r) {
            left_e[r] = product(E + r * p, v.x, p) - given.e[r];
            add_multiple(left_x, v.equal[r], E + r * p, p);
            off = larger(off, absolute(rounded(left_e[r])));
        }
        for (Size i = 0; i < p; ++i) {
            if (given.fixed(i)) continue;
            off = larger(off, absolute(rounded(left_x[i])) / size[i]);
            broken += 0.0 * rounded(left_x[i]);
        }
        return off + broken;
    }

    // Newton's equations with all put in but x and the multipliers of equalities, or all but the
    // multipliers and s. Whether rounding leaves anything of them.
    bool set_system() {
        const Size p = given.p;
        const Point v = point();
        for (Size c = 0; c < pairs; ++c) {
            inverse[c] = open[c] != 0.0 ? Number(1.0) / v.room[c] : Number(0.0);
            ratio[c] = v.price[c] * inverse[c];
        }
        for (Size i = 0; i < p; ++i) stiff[i] = Number(1.0) + ratio[i] + ratio[p + i];
        const Number *weight = ratio + 2 * p, *held = weight + given.n;
        fill(total, given.groups, Number(0.0));
        for (Size r = 0; r < given.n; ++r) total[given.group_of(r)] += weight[r];
        for (Size k = 0; k < given.groups; ++k) {
            give[k] = total[k] + held[k];
            rise[k] = rounded(total[k]) > 0.0 ? held[k] / give[k] * total[k] : Number(0.0);
        }
        return rows_first_ ? set_rows(held) : set_columns(weight);
    }

    // Of a group's rows, s gives way to the mean alone, and is held by nu / s. So rows count as
    // what they are off their mean, and it as a row of its own: nothing is lost in a difference.
    bool set_columns(const Number* weight) {
        const Size p = given.p, n = given.n;
        const auto mean = [&](Size k) { return lines + (n + place[k]) * p; };
        fill(lines + n * p, shared * p, Number(0.0));
        for (Size k = 0; k < given.groups; ++k)
            if (place[k] >= 0) z[n + place[k]] = rise[k];
        for (Size r = 0; r < n; ++r) {
            const Size k = given.group_of(r);
            if (place[k] >= 0 && rounded(weight[r]) > 0.0)
                add_multiple(mean(k), weight[r] / total[k], J + r * p, p);
        }
        for (Size r = 0; r < n; ++r) {
            const Size k = given.group_of(r);
            copy(J + r * p, p, lines + r * p);
            if (place[k] >= 0) add_multiple(lines + r * p, -1.0, mean(k), p);
            z[r] = place[k] >= 0 || moving[k] == 0.0 ? weight[r] : rise[k];
        }
        for (Size i = 0; i < p; ++i)
            if (given.fixed(i))
                for (Size r = 0; r < n + shared; ++r) lines[r * p + i] = 0.0;
        Number* const N = first_.clear(p);
        add_weighted_columns(N, p, Lines<Number>{lines, p}, n + shared, p, z, work);
        const Number* const mu = point().mu;
        for (Size r = 0; r < given.curved; ++r) {
            const Number price = mu[r] + given.lean[r];
            for (Size i = 0; i < p; ++i)
                for (Size j = i; j < p && !given.fixed(i); ++j)
                    if (!given.fixed(j)) N[i * p + j] += price * given.P_of(r)[i * p + j];
        }
        for (Size i = 0; i < p; ++i)
            N[i * p + i] = given.fixed(i) ? Number(1.0) : N[i * p + i] + stiff[i];
        if (!first_.make()) return false;
        // What the multipliers of equalities do to x, and to the equalities.
        const Size m = given.equalities;
        second_.clear(m);
        for (Size a = 0; a < m; ++a) {
            Number* const way = beside + a * p;
            for (Size i = 0; i < p; ++i) way[i] = given.fixed(i) ? Number(0.0) : E[a * p + i];
            first_.solve(way);
            for (Size c = 0; c <= a; ++c) second_(c, a) = product(E + c * p, way, p);
        }
        return second_.make();
    }

    // (A H^-1 A' + 1 / weight) dmu + ds = ..., with equalities among the rows, and the sum of a
    // group's dmu - nu / s ds = ... . The ds of a hinge of one row is put in. A row that is missing
    // has a 1 on the diagonal, and 0 beside.
    bool set_rows(const Number* held) {
        const Size p = given.p, n = given.n, m = n + given.equalities;
        const Point v = point();
        for (Size i = 0; i < p; ++i)
            right[i] = given.fixed(i) ? Number(0.0) : Number(1.0) / stiff[i];
        Number* const M = first_.clear(m);
        add_weighted_rows(M, m, Lines<Number>{lines, p}, m, p, right, work);
        for (Size r = 0; r < n; ++r)
            M[r * m + r] +=
                open[2 * p + r] != 0.0 ? v.t[r] / v.mu[r] + own(given.group_of(r)) : Number(1.0);
        if (!first_.make()) return false;
        second_.clear(shared);
        for (Size k = 0; k < given.groups; ++k) {
            if (place[k] < 0) continue;
            Number* const way = beside + place[k] * m;
            for (Size r = 0; r < m; ++r) way[r] = r < n && given.group_of(r) == k ? 1.0 : 0.0;
            first_.solve(way);
            second_(place[k], place[k]) = held[k];
            for (Size r = 0; r < n; ++r) {
                const Size other = place[given.group_of(r)];
                if (0 <= other && other <= place[k]) second_(other, place[k]) += way[r];
            }
        }
        return second_.make();
    }

    // How much the s of a group gives way to the multiplier of its only row.
    Number own(Size k) const {
        const Point v = point();
        return moving[k] != 0.0 && place[k] < 0 ? v.s[k] / v.nu[k] : Number(0.0);
    }

    // Newton's step towards products of tau, with what the first step says of their bend.
    void set_direction(double tau, bool second) {
        const Size p = given.p, n = given.n;
        const Point v = point(), d = at(step);
        for (Size c = 0; c < pairs; ++c) {
            Number off = Number(tau) - v.price[c] * v.room[c];
            if (second) off -= aimed[c] * aimed[pairs + c];
            push[c] = off * inverse[c];
        }
        for (Size i = 0; i < p; ++i)
            right[i] = given.fixed(i) ? Number(0.0) : push[i] - push[p + i] - left_x[i];
        for (Size k = 0; k < given.groups; ++k)
            soft[k] = (push[2 * p + n + k] - left_s[k]) * moving[k];
        for (Size r = 0; r < n; ++r) pull[r] = push[2 * p + r] + ratio[2 * p + r] * left_t[r];
        if (rows_first_)
            solve_by_rows(v, d);
        else
            solve_by_columns(d);
        for (Size r = 0; r < n; ++r)
            d.t[r] = (d.s[given.group_of(r)] - left_t[r] - along[r]) * open[2 * p + r];
        for (Size i = 0; i < p; ++i)
            d.down[i] = d.x[i] * open[i], d.over[i] = -d.x[i] * open[p + i];
        for (Size c = 0; c < pairs; ++c) d.price[c] = push[c] - ratio[c] * d.room[c];
        if (rows_first_) copy(z, n, d.mu);
    }

    void solve_by_columns(const Point& d) {
        const Size p = given.p, n = given.n;
        for (Size r = 0; r < n; ++r) soft[given.group_of(r)] += pull[r] * moving[given.group_of(r)];
        for (Size k = 0; k < given.groups; ++k)
            soft[k] = moving[k] != 0.0 ? soft[k] / give[k] : Number(0.0);
        copy(right, p, d.x);
        for (Size r = 0; r < n; ++r)
            add_multiple(d.x, ratio[2 * p + r] * soft[given.group_of(r)] - pull[r], J + r * p, p);
        for (Size i = 0; i < p; ++i)
            if (given.fixed(i)) d.x[i] = 0.0;
        first_.solve(d.x);
        for (Size r = 0; r < given.equalities; ++r)
            d.equal[r] = product(E + r * p, d.x, p) + left_e[r];
        second_.solve(d.equal);
        for (Size r = 0; r < given.equalities; ++r)
            add_multiple(d.x, -d.equal[r], beside + r * p, p);
        copy(soft, given.groups, d.s);
        for (Size r = 0; r < n; ++r) {
            const Size k = given.group_of(r);
            along[r] = product(J + r * p, d.x, p);
            if (moving[k] != 0.0) d.s[k] += ratio[2 * p + r] * along[r] / give[k];
        }
    }

    void solve_by_rows(const Point& v, const Point& d) {
        const Size p = given.p, n = given.n, m = n + given.equalities;
        for (Size i = 0; i < p; ++i) d.x[i] = right[i] / stiff[i];
        for (Size r = 0; r < m; ++r) {
            z[r] = product(lines + r * p, d.x, p);
            if (r >= n)
                z[r] += left_e[r - n];
            else if (open[2 * p + r] != 0.0)
                z[r] +=
                    pull[r] * v.t[r] / v.mu[r] - soft[given.group_of(r)] * own(given.group_of(r));
        }
        first_.solve(z);
        Number* const common = z + m;  // the steps of s in the second system
        for (Size k = 0; k < given.groups; ++k)
            if (place[k] >= 0) common[place[k]] = soft[k];
        for (Size r = 0; r < n; ++r)
            if (place[given.group_of(r)] >= 0) common[place[given.group_of(r)]] += z[r];
        second_.solve(common);
        for (Size k = 0; k < shared; ++k) add_multiple(z, -common[k], beside + k * m, m);
        copy(soft, given.groups, d.s);
        for (Size r = 0; r < n; ++r) d.s[given.group_of(r)] += z[r] * moving[given.group_of(r)];
        for (Size k = 0; k < given.groups; ++k)
            d.s[k] = place[k] >= 0 ? common[place[k]] : d.s[k] * own(k);
        copy(right, p, d.x);
        for (Size r = 0; r < m; ++r) add_multiple(d.x, -z[r], lines + r * p, p);
        for (Size i = 0; i < p; ++i) d.x[i] = given.fixed(i) ? Number(0.0) : d.x[i] / stiff[i];
        for (Size r = 0; r < n; ++r) along[r] = product(J + r * p, d.x, p);
        copy(z + n, given.equalities, d.equal);
    }

    // Take from the step of a row's room what its curvature takes; return a length so short that
    // this is at most half of the room at its end. Doubles do: the next step mends their rounding.
    double curved(double length) {
        const Size p = given.p;
        const Point v = point(), d = at(step);
        for (Size r = 0; r < given.curved; ++r) {
            bend[r] = 0.0;
            for (Size i = 0; i < p; ++i) {
                const double* const row = given.P_of(r) + i * p;
                const double own = sum<double>(p, [&](Size j) { return row[j] * rounded(d.x[j]); });
                bend[r] += 0.5 * own * rounded(d.x[i]);
            }
            if (open[2 * p + r] == 0.0) continue;
            const double room = rounded(v.t[r]), change = rounded(d.t[r]);
            for (int times = 0; times < 60; ++times) {
                if (length * length * bend[r] <= 0.5 * (room + length * change)) break;
                length *= 0.7;
            }
        }
        for (Size r = 0; r < given.curved; ++r)
            if (open[2 * p + r] != 0.0) d.t[r] += Number(-length * bend[r]);
        return length;
    }

    // Blocks of all numbers of a point or of a step to one.
    Number *value, *step, *best;
    Number* aimed;  // the first step's multipliers and rooms
    // Of every multiplier: what is to be added to its product over its room, the multiplier over
    // its room, one over its room, and whether there is one.
    Number *push, *ratio, *inverse;
    double* open;
    Number *y, *J, *E;
    Number *left_x, *left_t, *left_s, *left_e;
    double* size;
    Number *stiff, *right, *pull, *along;
    double* bend;
    Number *total, *give, *rise, *soft;
    double *members, *moving;
    Size* place;  // of a group in the second system, where several rows or a free s are; else -1
    bool rows_first_;
    System<Number> first_, second_;
    Number *lines, *beside, *z, *work;
    Size pairs = 0, count = 0, shared = 0;
};

}  // namespace coldq::COLDQ_LEVEL
