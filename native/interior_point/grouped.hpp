// The general problem, and what is done to it before it is solved.
//
//     min |x - y|^2 / 2 + <lean, g(x)> + <cost, s>   over
//         g_r(x) <= s_group(r),   E x = e,   lower <= x <= upper
//
// with g_r(x) = <x, P_r x> / 2 + <A_r, x> - b_r, where only the first rows have a P. The s of a
// group is at least 0 (a hinge), free (a linear row) or 0 (hard rows). So the multipliers of a
// group's rows sum up to at most its cost, to just that, or to anything.
#pragma once

#include "active_set/problem.hpp"
#include "double_double.hpp"

namespace coldq::COLDQ_LEVEL {

// A row is dead if its group costs nothing: then only its `lean` counts.
enum class Kind : int { hinge, free, hard, dead };

// y is center - gradient / (2 alpha).
struct Grouped {
    Size p = 0, n = 0, groups = 0, equalities = 0, curved = 0;
    const double *center = nullptr, *gradient = nullptr;
    double alpha = 0.5;
    const double *P = nullptr, *A = nullptr, *b = nullptr, *lean = nullptr;
    const double *group = nullptr, *cost = nullptr, *is_free = nullptr;
    const double *E = nullptr, *e = nullptr;
    const double *lower = nullptr, *upper = nullptr;

    Size group_of(Size r) const { return Size(group[r]); }
    Kind kind(Size k) const {
        if (__builtin_isinf(cost[k])) return Kind::hard;
        if (is_free[k] != 0.0) return Kind::free;
        return cost[k] == 0.0 ? Kind::dead : Kind::hinge;
    }
    Kind kind_of(Size r) const { return kind(group_of(r)); }
    bool fixed(Size i) const { return lower[i] >= upper[i]; }
    bool has_lower(Size i) const { return !fixed(i) && lower[i] > -INF; }
    bool has_upper(Size i) const { return !fixed(i) && upper[i] < INF; }

    template <class Number>
    Number y(Size i) const {
        return Number(center[i]) - Number(gradient[i]) / Number(2.0 * alpha);
    }

    const double* P_of(Size r) const { return P + r * p * p; }

    // <x, P_r x> / 2 + <A_r, x>; of sizes, an upper bound of the size of the terms.
    double value(Size r, const double* x, bool of_sizes = false) const {
        const auto term = [=](double a) { return of_sizes ? absolute(a) : a; };
        double g = sum<double>(p, [&](Size i) { return term(A[r * p + i]) * x[i]; });
        if (r < curved)
            for (Size i = 0; i < p; ++i) {
                const double* const row = P_of(r) + i * p;
                g += 0.5 * x[i] * sum<double>(p, [&](Size j) { return term(row[j]) * x[j]; });
            }
        return g;
    }
};

// The same problem with hard rows that give way by their rounding, as rows that meet without room
// may miss each other by that; without equalities that follow from others, with which the system
// of their multipliers would be singular; and without hard rows that are constant where the
// equalities hold, which have no room.
class Reduced {
  public:
    Reduced(Size p, Size n, Size equalities, Memory& memory)
        : A_(memory.take<double>(n, p)),
          b_(memory.take<double>(n)),
          lean_(memory.take<double>(n)),
          group_(memory.take<double>(n)),
          E_(memory.take<double>(equalities, p)),
          e_(memory.take<double>(equalities)),
          across_(memory.take<double>(equalities, p)),
          rest_(memory.take<double>(p)),
          size_(memory.take<double>(p)),
          row_(memory.take<Size>(n)),
          equality_(memory.take<Size>(equalities)) {}

    Grouped of(const Grouped& given, const double* x, double give) {
        Grouped out = given;
        const Size p = given.p;
        out.A = A_, out.b = b_, out.lean = lean_, out.group = group_, out.E = E_, out.e = e_;
        out.n = out.equalities = directions_ = 0;
        for (Size r = 0; r < given.equalities; ++r) {
            const double left = outside(given, given.E + r * p);
            if (!(left > DEPENDENT)) continue;
            for (Size i = 0; i < p; ++i) across_[directions_ * p + i] = rest_[i] / left;
            ++directions_;
            copy(given.E + r * p, p, E_ + out.equalities * p);
            e_[out.equalities] = given.e[r];
            equality_[out.equalities++] = r;
        }
        for (Size i = 0; i < p; ++i) size_[i] = absolute(x[i]);
        for (Size r = 0; r < given.n; ++r) {
            const bool hard = given.kind_of(r) == Kind::hard;
            if (hard && directions_ > 0 && r >= given.curved &&
                !(outside(given, given.A + r * p) > DEPENDENT))
                continue;
            const double terms = hard ? given.value(r, size_, true) + absolute(given.b[r]) : 0.0;
            copy(given.A + r * p, p, A_ + out.n * p);
            b_[out.n] = given.b[r] + (hard ? give * terms : 0.0);
            lean_[out.n] = given.lean[r], group_[out.n] = given.group[r];
            row_[out.n++] = r;
        }
        return out;
    }

    Size row(Size r) const { return row_[r]; }
    Size equality(Size r) const { return equality_[r]; }

  private:
    static constexpr double DEPENDENT = 1e-13;  // of a row: what is left beside the span of others

    // What of a row, as a share, is outside the span of the equalities; that is in rest_.
    double outside(const Grouped& given, const double* row) {
        const Size p = given.p;
        double largest = 0.0;
        for (Size i = 0; i < p; ++i)
            if (!given.fixed(i)) largest = larger(largest, absolute(row[i]));
        const double size = largest > 0.0 ? largest * root(double(p)) : 1.0;
        for (Size i = 0; i < p; ++i) rest_[i] = given.fixed(i) ? 0.0 : row[i] / size;
        for (int twice = 0; twice < 2; ++twice)
            for (Size k = 0; k < directions_; ++k) {
                const double along = dot(across_ + k * p, rest_, p);
                for (Size i = 0; i < p; ++i) rest_[i] -= along * across_[k * p + i];
            }
        return root(dot(rest_, rest_, p));
    }

    double *A_, *b_, *lean_, *group_, *E_, *e_;
    double *across_, *rest_, *size_;
    Size *row_, *equality_;
    Size directions_ = 0;
};

}  // namespace coldq::COLDQ_LEVEL
