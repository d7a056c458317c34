// The active-set method down the penalised objective: rows that conflict in few coordinates.
//
// Divided by 2 alpha, with y = center - gradient / (2 alpha), the objective is
//
//     |x - y|^2 / 2 + sum_k penalty_k(A_k x - b_k),   of slope lo_k below zero and hi_k above,
//
// for x in the box. The *working set* S holds rows at their kinks, A_k x = b_k, and some
// coordinates are at bounds; in between all is one quadratic, whose minimiser x + d over the free
// coordinates is
//
//     d = r - A_S' v,   H v = A_S r,   r = y - x - sum_(k not in S) mu_k A_k,
//
// with mu_k the slope of row k's side and v the multipliers of S. The *line search* along d is
// exact: it goes beyond a *breakpoint*, where a row changes sides, for as long as the objective
// falls, and ends at a kink or a bound, which *blocks*: it joins the working set, or fixes its
// coordinate. At the minimiser the row or coordinate whose multiplier is farthest out of its bounds
// is released. The objective never rises. Where many rows conflict, few are in S, however many
// there are.
//
// x is where the rows of S have their kinks, and not the little that is left of large terms, so
// that heavy weights cost it no digits. In the end S's multipliers are refined in double-double.
//
// An enforced row has an infinite slope on one side or both: x must be on the other when it starts.
#pragma once

#include "residual.hpp"
#include "working_set.hpp"

namespace coldq::COLDQ_LEVEL {

template <class Number>
class PrimalDescent {
  public:
    void lay_out(Memory& memory, Size n, Size p) {
        n_ = n, p_ = p;
        const Size most = (n < p ? n : p) + 2;
        columns_ = memory.take<double>(n, p);
        for (double** row : {&length_, &square_, &compliance_}) *row = memory.take<double>(n);
        for (Number** row : {&mu_, &lo_, &hi_, &g_, &along_, &time_}) *row = memory.take<Number>(n);
        for (Size** row : {&state_, &listed_}) *row = memory.take<Size>(n);
        multiplier_ = memory.take<DoubleDouble>(n);
        for (Number** column : {&y_, &x_, &rest_, &step_, &pull_}) *column = memory.take<Number>(p);
        for (double** column : {&share_, &at_}) *column = memory.take<double>(p);
        free_ = memory.take<bool>(p), tied_ = memory.take<bool>(n);
        exact_pull_ = memory.take<DoubleDouble>(p);
        held_by_ = memory.take<Number>(most);
        set_.lay_out(memory, n, p, most);
    }

    // Reads the instance; false if y is not finite, or if rows have compliance.
    bool read(const AffineBox& given) {
        given_ = &given;
        double finite = 0.0;
        for (Size i = 0; i < p_; ++i) {
            y_[i] = target<Number>(given, i);
            share_[i] = 1.0;
            finite += 0.0 * rounded(y_[i]);
        }
        for (Size k = 0; k < n_; ++k) {
            const double* const row = given.A + k * p_;
            square_[k] = dot(row, row, p_);
            length_[k] = root(square_[k]);
            compliance_[k] = 0.0;
            lo_[k] = divided<Number>(given, given.multiplier_lower[k]);
            hi_[k] = divided<Number>(given, given.multiplier_upper[k]);
            for (Size i = 0; i < p_; ++i) columns_[i * n_ + k] = row[i];
            finite += 0.0 * length_[k] + 0.0 * given.b[k];
        }
        return finite == 0.0 && given.compliant == 0;
    }

    // Goes down from where these multipliers have x, or from the point of the box next to y;
    // whether it got to the minimiser soon enough.
    bool descend(const double* start) {
        if (!begin(start)) return false;
        const double few = double(n_ < p_ ? n_ : p_), many = double(n_ < p_ ? p_ : n_);
        double left = LEAST_WORK + STEPS * few * few * (many / 2.0 + few / 6.0);
        if (start) left /= NEAR;
        bool sure = false;
        for (; left > 0.0; left -= double(set_.size() * (set_.size() + p_) + n_)) {
            const Size held = set_.size();
            set_.refactor();
            if (set_.size() < held) return false;  // they depend, by rounding
            if (minimise() > LEVEL) {
                const Blocking blocking = search();
                left -= double(n_ * free_count_);
                move(blocking.length);
                if (blocking.row >= 0) {
                    hold(blocking.row);
                    continue;
                }
                if (blocking.column >= 0) {
                    fix(blocking.column);
                    continue;
                }
                if (blocking.length < Number(1.0)) continue;
            }
            if (release()) continue;
            if (sure) return true;
            // Going beyond kinks of heavy rows leaves their rounding behind. Once more without it.
            sure = true;
            restore();
        }
        return false;
    }

    // Refines what was found, tells it, and how good it is.
    double tell(double* x, double* multipliers) {
        const double two = 2.0 * given_->alpha;
        for (Size k = 0; k < n_; ++k)
            multiplier_[k] = DoubleDouble(state_[k] > 0   ? given_->multiplier_upper[k]
                                          : state_[k] < 0 ? given_->multiplier_lower[k]
                                                          : 0.0);
        for (Size a = 0; a < set_.size(); ++a)
            multiplier_[set_.row(a)] = DoubleDouble(held_by_[a]) * two;
        const bool exact = refine();
        bool within = true;
        for (Size i = 0; i < p_; ++i) {
            const double own = rounded(x_[i]);
            x[i] = clipped(own, given_->lower[i], given_->upper[i]);
            within = within && x[i] == own;
        }
        for (Size k = 0; k < n_; ++k) {
            const double own = multiplier_[k].high, least = given_->multiplier_lower[k];
            multipliers[k] = smaller(larger(own, least), given_->multiplier_upper[k]);
            if (multipliers[k] != own) multiplier_[k] = multipliers[k], within = false;
        }
        if (!(exact && within)) set_exact_pull(x);
        for (Size i = 0; i < p_; ++i) at_[i] = exact_pull_[i].high;
        return residual_of_pull(*given_, x, multipliers, at_);
    }

  private:
    static constexpr double LEAST_WORK = 20000.0, STEPS = 12.0;
    static constexpr double NEAR = 8.0;       // times less where a working set is known
    static constexpr double LEVEL = 1e-11;    // of what pulls at x: less than that is none
    static constexpr double BESIDE = 1e-12;   // of a row's length and the way: it stays beside
    static constexpr double ROW_SHARE = 0.4;  // of the pull of a row, beside a coordinate's
    static constexpr double EXACT = 1e-14;    // of x: with less left there is nothing
    static constexpr int REFINEMENTS = 3;
    static constexpr Size SHORT = 16;  // breakpoints, gone through one after another

    struct Blocking {
        Number length;
        Size row = -1, column = -1;
    };

    const double* row(Size k) const { return given_->A + k * p_; }

    static void add(const double* line, Number by, Size count, Number* out) {
        for (Size i = 0; i < count; ++i) out[i] += by * line[i];
    }

    bool begin(const double* start) {
        set_.begin({n_, p_, given_->A, share_, compliance_, square_, free_});
        copy(y_, p_, x_);
        for (Size k = 0; k < n_; ++k) {
            mu_[k] = Number(0.0);
            if (!start) continue;
            mu_[k] = smaller(larger(divided<Number>(*given_, start[k]), lo_[k]), hi_[k]);
            if (__builtin_isinf(rounded(mu_[k]))) return false;
            add(row(k), -mu_[k], p_, x_);
        }
        free_count_ = 0;
        for (Size i = 0; i < p_; ++i) {
            const Number lower = Number(given_->lower[i]), upper = Number(given_->upper[i]);
            free_[i] = lower < x_[i] && x_[i] < upper;
            free_count_ += free_[i];
            x_[i] = smaller(larger(x_[i], lower), upper);
        }
        for (Size k = 0; k < n_; ++k)
            if (start && lo_[k] < mu_[k] && mu_[k] < hi_[k]) set_.propose(k);
        set_.refactor();
        fill(state_, n_, Size(0));
        fill(tied_, n_, false);
        set_values();
        for (Size k = 0; k < n_; ++k) {
            if (set_.has(k)) continue;
            state_[k] = g_[k] > Number(0.0) ? 1 : -1;
            mu_[k] = state_[k] > 0 ? hi_[k] : lo_[k];
            if (__builtin_isinf(rounded(mu_[k]))) return false;
        }
        return restore();
    }

    void set_values() {
        for (Size k = 0; k < n_; ++k) g_[k] = Number(0.0);
        for (Size i = 0; i < p_; ++i) add(columns_ + i * n_, x_[i], n_, g_);
        for (Size k = 0; k < n_; ++k) g_[k] -= Number(given_->b[k]);
    }

    // Puts x back onto the kinks of the working set, and forms all that follows from x afresh;
    // whether x stayed in the box, and the other rows on their sides.
    bool restore() {
        set_values();
        for (Size a = 0; a < set_.size(); ++a) held_by_[a] = g_[set_.row(a)];
        set_.solve(held_by_);
        bool inside = true;
        for (Size i = 0; i < p_; ++i) step_[i] = Number(0.0);
        for (Size a = 0; a < set_.size(); ++a) add(row(set_.row(a)), -held_by_[a], p_, step_);
        for (Size i = 0; i < p_; ++i) {
            if (!free_[i]) continue;
            const Number lower = Number(given_->lower[i]), upper = Number(given_->upper[i]);
            x_[i] += step_[i];
            inside = inside && !(x_[i] < lower) && !(x_[i] > upper);
            x_[i] = smaller(larger(x_[i], lower), upper);
        }
        set_values();
        for (Size i = 0; i < p_; ++i) rest_[i] = y_[i] - x_[i];
        for (Size k = 0; k < n_; ++k) {
            if (set_.has(k)) g_[k] = Number(0.0);
            if (!set_.has(k) && rounded(mu_[k]) != 0.0) add(row(k), -mu_[k], p_, rest_);
        }
        return inside;
    }

    // Sets the step to the minimiser, and the working set's multipliers; how long it is at most,
    // beside what pulls.
    Number minimise() {
        for (Size i = 0; i < p_; ++i) step_[i] = free_[i] ? rest_[i] : Number(0.0);
        Number size = Number(1e-300), longest = Number(0.0);
        for (Size i = 0; i < p_; ++i) size = larger(size, absolute(step_[i]));
        for (Size a = 0; a < set_.size(); ++a) {
            const double* const line = row(set_.row(a));
            held_by_[a] = sum<Number>(p_, [=, this](Size i) { return step_[i] * line[i]; });
        }
        set_.solve(held_by_);
        for (Size a = 0; a < set_.size(); ++a) add(row(set_.row(a)), -held_by_[a], p_, step_);
        for (Size i = 0; i < p_; ++i) {
            step_[i] = free_[i] ? step_[i] : Number(0.0);
            longest = larger(longest, absolute(step_[i]));
        }
        return set_.size() < free_count_ ? longest / size : Number(0.0);
    }

    // The exact line search along the step: goes beyond breakpoints while the objective falls.
    Blocking search() {
        Blocking blocking = first_bound();
        const Number square = sum<Number>(p_, [this](Size i) { return step_[i] * step_[i]; });
        Size count = list_breakpoints(square, smaller(Number(1.0), blocking.length));
        Number slope = -square;
        while (count > SHORT) {
            // Half of them at a time: either all before the middle are crossed, or none after it.
            const Number middle = time_[listed_[count / 2]];
            Number there = slope;
            for (Size e = 0; e < count; ++e)
                if (time_[listed_[e]] < middle) there += jump(listed_[e]);
            const bool beyond = there + square * middle < Number(0.0);
            Size kept = 0;
            for (Size e = 0; e < count; ++e) {
                const Size k = listed_[e];
                const bool before = time_[k] < middle;
                if (before && beyond) cross(k);
                if (before != beyond) listed_[kept++] = k;
            }
            if (beyond) slope = there;
            if (kept == count) break;
            count = kept;
        }
        for (;;) {
            Size soonest = -1;
            for (Size e = 0; e < count; ++e)
                if (soonest < 0 || time_[listed_[e]] < time_[listed_[soonest]]) soonest = e;
            const Number lowest = smaller(-slope / square, blocking.length);
            if (soonest < 0 || !(time_[listed_[soonest]] < lowest)) {
                if (lowest < blocking.length) return {lowest};
                return blocking;
            }
            const Size k = listed_[soonest];
            if (!(slope + square * time_[k] + jump(k) < Number(0.0))) return {time_[k], k};
            slope += jump(k);
            cross(k);
            listed_[soonest] = listed_[--count];
        }
    }

    Blocking first_bound() const {
        Blocking blocking{Number(INF)};
        for (Size i = 0; i < p_; ++i) {
            const bool up = step_[i] > Number(0.0);
            const double bound = up ? given_->upper[i] : given_->lower[i];
            if (rounded(step_[i]) == 0.0 || __builtin_isinf(bound)) continue;
            const Number length = larger((Number(bound) - x_[i]) / step_[i], Number(0.0));
            if (length < blocking.length) blocking = {length, -1, i};
        }
        return blocking;
    }

    // Lists the rows that get to their kinks before the end, and when; how many.
    Size list_breakpoints(Number square, Number end) {
        for (Size k = 0; k < n_; ++k) along_[k] = Number(0.0);
        for (Size i = 0; i < p_; ++i)
            if (free_[i]) add(columns_ + i * n_, step_[i], n_, along_);
        const double beside = BESIDE * root(rounded(square));
        Size count = 0;
        for (Size k = 0; k < n_; ++k) {
            const double side = double(state_[k]);
            const Number near = larger(g_[k] * side, Number(0.0)), toward = -along_[k] * side;
            const bool comes = toward > Number(beside * length_[k]) && lo_[k] < hi_[k];
            if (!comes || tied_[k] || !(near < end * toward)) continue;
            time_[k] = near / toward;
            listed_[count++] = k;
        }
        return count;
    }

    // By how much the slope of the objective along the step rises at the kink of row k.
    Number jump(Size k) const { return (hi_[k] - lo_[k]) * absolute(along_[k]); }

    void cross(Size k) {
        const Number before = mu_[k];
        state_[k] = -state_[k];
        mu_[k] = state_[k] > 0 ? hi_[k] : lo_[k];
        add(row(k), before - mu_[k], p_, rest_);
    }

    void move(Number length) {
        for (Size i = 0; i < p_; ++i) {
            x_[i] += step_[i] * length;
            rest_[i] -= step_[i] * length;
        }
        for (Size k = 0; k < n_; ++k) g_[k] += along_[k] * length;
    }

    // Puts a row into the working set. One that depends on it stays at its kink with the others:
    // nothing but rounding takes it beyond, until one of them is released.
    void hold(Size k) {
        if (!set_.join(k)) {
            set_.leave(set_.size() - 1);
            tied_[k] = true;
            return;
        }
        add(row(k), mu_[k], p_, rest_);
        state_[k] = 0;
        g_[k] = Number(0.0);
    }

    void fix(Size i) {
        x_[i] = Number(step_[i] > Number(0.0) ? given_->upper[i] : given_->lower[i]);
        free_[i] = false;
        free_count_ -= 1;
        set_.turn(i, false);
    }

    // Releases what pulls x away from the working set most; false if nothing does.
    bool release() {
        Number size = Number(0.0), most = Number(0.0);
        for (Size i = 0; i < p_; ++i) {
            pull_[i] = rest_[i];
            size = larger(size, absolute(pull_[i]));
        }
        for (Size a = 0; a < set_.size(); ++a) add(row(set_.row(a)), -held_by_[a], p_, pull_);
        Size place = -1, column = -1;
        for (Size a = 0; a < set_.size(); ++a) {
            const Size k = set_.row(a);
            const Number over = larger(lo_[k] - held_by_[a], held_by_[a] - hi_[k]);
            const Number its = over * (ROW_SHARE * length_[k]);
            const bool counts = over > absolute(held_by_[a]) * LEVEL && its > size * LEVEL;
            if (counts && its > most) most = its, place = a;
        }
        most = larger(most, size * LEVEL);
        for (Size i = 0; i < p_; ++i) {
            const double lower = given_->lower[i], upper = given_->upper[i];
            if (free_[i] || !(lower < upper)) continue;
            const Number inward = x_[i] == Number(lower) ? pull_[i] : -pull_[i];
            if (inward > most) most = inward, column = i;
        }
        if (column >= 0) {
            free_[column] = true;
            free_count_ += 1;
            set_.turn(column, true);
        } else if (place >= 0) {
            const Size k = set_.row(place);
            state_[k] = held_by_[place] > hi_[k] ? 1 : -1;
            mu_[k] = state_[k] > 0 ? hi_[k] : lo_[k];
            add(row(k), -mu_[k], p_, rest_);
            set_.leave(place);
        }
        if (column >= 0 || place >= 0) fill(tied_, n_, false);
        return column >= 0 || place >= 0;
    }

    // Sets gradient and multipliers' pull at x, in double-double.
    template <class Point>
    void set_exact_pull(const Point* x) {
        const double two = 2.0 * given_->alpha;
        for (Size i = 0; i < p_; ++i)
            exact_pull_[i] = (DoubleDouble(given_->center[i]) - DoubleDouble(x[i])) * two -
                             DoubleDouble(given_->gradient[i]);
        for (Size k = 0; k < n_; ++k) {
            const double* const line = row(k);
            if (multiplier_[k].high == 0.0) continue;
            for (Size i = 0; i < p_; ++i) exact_pull_[i] -= multiplier_[k] * line[i];
        }
    }

    // Iterative refinement of x and of the working set's multipliers, by what pulls at x; whether
    // nothing does in the end.
    bool refine() {
        const double two = 2.0 * given_->alpha;
        Number largest = Number(0.0);
        for (Size i = 0; i < p_; ++i) largest = larger(largest, absolute(x_[i]));
        for (int count = 0; count < REFINEMENTS; ++count) {
            set_exact_pull(x_);
            Number most = Number(0.0);
            for (Size i = 0; i < p_; ++i) {
                if (!free_[i]) continue;
                rest_[i] = Number(exact_pull_[i].high / two);
                most = larger(most, absolute(rest_[i]));
            }
            if (!(most > largest * EXACT)) return true;
            minimise();
            for (Size a = 0; a < set_.size(); ++a)
                multiplier_[set_.row(a)] += DoubleDouble(held_by_[a]) * two;
            if (set_.size() < free_count_)
                for (Size i = 0; i < p_; ++i) x_[i] += step_[i];
        }
        return false;
    }

    const AffineBox* given_ = nullptr;
    Size n_ = 0, p_ = 0, free_count_ = 0;
    WorkingSet<Number> set_;
    // Of rows: entries column after column; slopes, values, and when a kink is met along the step.
    double *columns_ = nullptr, *length_ = nullptr, *square_ = nullptr, *compliance_ = nullptr;
    Number *mu_ = nullptr, *lo_ = nullptr, *hi_ = nullptr;
    Number *g_ = nullptr, *along_ = nullptr, *time_ = nullptr;
    Size *state_ = nullptr, *listed_ = nullptr;  // 1 above its kink, -1 below, 0 in the set
    bool* tied_ = nullptr;                       // depends on the set, and is where it is
    DoubleDouble* multiplier_ = nullptr;
    // Of coordinates.
    Number *y_ = nullptr, *x_ = nullptr, *rest_ = nullptr, *step_ = nullptr, *pull_ = nullptr;
    double *share_ = nullptr, *at_ = nullptr;
    bool* free_ = nullptr;
    DoubleDouble* exact_pull_ = nullptr;
    Number* held_by_ = nullptr;  // the multipliers of the working set, by place
};

}  // namespace coldq::COLDQ_LEVEL
