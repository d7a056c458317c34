// The active-set method up the dual: affine rows on a box, to the last digit of the number type.
//
// Divided by 2 alpha, with y = center - gradient / (2 alpha), the dual of the problem is
//
//     max over mu in [lo, hi] of  min over x in the box of
//         sum_i (x_i - y_i)^2 / (2 share_i) + <mu, A x - b> - sum_k compliance_k mu_k^2 / 2,
//
// whose inner minimum is x = clip(z), z = y - share A'mu. The *working set* S holds independent
// rows that are met with equality, and each coordinate is free or held at a bound. Each iteration
// solves H d = g over S (`WorkingSet`) and goes along d until the first *blocking* multiplier gets
// to its bound, which leaves S, or until a coordinate wants to leave its bound, which is freed.
// Where the rows of S are met, whatever is most violated is added: a row, or a bound. If an added
// row depends on S there is a direction along which no free coordinate moves and the dual rises at
// a constant rate; it is followed until something blocks. If nothing ever does, it is a Farkas
// combination: the enforced rows have no common point.
//
// This is Goldfarb and Idnani's dual method (1983) with bounds on all multipliers and coordinates.
// The dual goes up at every step, so that no working set comes twice; ties are broken by going to
// the first violated row after some steps of no length.
#pragma once

#include "farkas.hpp"
#include "working_set.hpp"

namespace coldq::COLDQ_LEVEL {

enum class Side : signed char { lower, free, upper, fixed };

template <class Number>
class DualAscent {
  public:
    using Digits = Precision<Number>;

    // Where the way ended. A ray is a direction along which nothing blocks.
    enum class End { none, optimal, ray, conflict, out_of_steps };

    // Rows are kept times a power of two, so that their largest entry is about 1 and no digit is
    // lost; so are their multipliers.
    void lay_out(Memory& memory, Size n, Size p, Size most) {
        n_ = n, p_ = p;
        A_ = memory.take<double>(n, p), columns_ = memory.take<double>(n, p);
        for (double** row : {&b_, &power_, &compliance_, &length_, &square_, &size_, &room_})
            *row = memory.take<double>(n);
        for (Number** row : {&mu_, &lo_, &hi_, &g_, &ray_}) *row = memory.take<Number>(n);
        for (double** column : {&share_, &least_, &at_}) *column = memory.take<double>(p);
        for (Number** column : {&y_, &z_, &x_, &slope_}) *column = memory.take<Number>(p);
        side_ = memory.take<Side>(p);
        free_ = memory.take<bool>(p);
        step_ = memory.take<Number>(most);
        set_.lay_out(memory, n, p, most);
    }

    // Reads the instance; false if y is not finite.
    bool read(const AffineBox& given) {
        given_ = &given;
        double finite = 0.0;
        for (Size i = 0; i < p_; ++i) {
            const double share = given.share ? given.share[i] : 1.0;
            share_[i] = given.lower[i] < given.upper[i] ? share : 0.0;
            y_[i] = target<Number>(given, i);
            finite += 0.0 * rounded(y_[i]);
        }
        for (Size k = 0; k < n_; ++k) read_row(k);
        set_least_sizes();
        return finite == 0.0;
    }

    // Goes up from these multipliers, or as near to them as the bounds allow, with rows met up to
    // `tolerance` of their terms.
    End climb(const double* start, double tolerance, Size steps) {
        tolerance_ = tolerance;
        begin_at(start);
        Size still = 0;  // steps of no length, one after the other
        int whole = 0;   // steps to the end of H d = g, one after the other
        int formed = 0;  // how often z was formed afresh
        for (Size count = 0; count < steps; ++count) {
            evaluate();
            set_.refactor();
            Violated worst;
            if (whole > MOST_CORRECTIONS || is_met()) {
                worst = most_violated(still > TIES);
                if (worst.kind == Violated::none) {
                    if (formed == MOST_FORMED || !form()) return End::optimal;
                    formed += 1, whole = 0;
                    continue;
                }
            }
            Size held = -1;
            bool ray = false;
            if (worst.kind == Violated::release) {
                turn(worst.at, Side::free);
                whole = 0;
                continue;
            }
            if (worst.kind == Violated::bound) {
                held = worst.at;
                ray = !leaves_freedom(held);
                if (!ray) {
                    turn(held, beyond(held));
                    whole = 0;
                    continue;
                }
                side_[held] = beyond(held);
            } else if (worst.kind == Violated::row) {
                if (length_[worst.at] <= CONSTANT_ROW) {
                    if (!settle_constant(worst.at)) return End::ray;
                    continue;
                }
                ray = !set_.join(worst.at);
                if (ray) set_ray(worst.at);
            }
            if (!ray) set_newton_step();
            const Outcome outcome = advance(ray, worst);
            if (outcome.end != End::none) return outcome.end;
            still = outcome.length == 0.0 ? still + 1 : 0;
            whole = outcome.blocked || worst.kind != Violated::none ? 0 : whole + 1;
            if (held >= 0) turn(held, side_[held]);
        }
        return End::out_of_steps;
    }

    // What was found, in the units of the instance; what is at a bound is there exactly.
    void tell(double* x, double* multipliers) const {
        tell_point(x);
        for (Size k = 0; k < n_; ++k) {
            const double least = given_->multiplier_lower[k], most = given_->multiplier_upper[k];
            const double value = rounded(mu_[k] * power_[k] * (2.0 * given_->alpha));
            multipliers[k] = mu_[k] == hi_[k]   ? most
                             : mu_[k] == lo_[k] ? least
                                                : clipped(value, least, most);
        }
    }

    void tell_point(double* x) const {
        for (Size i = 0; i < p_; ++i)
            x[i] = clipped(rounded(x_[i]), given_->lower[i], given_->upper[i]);
    }

    // The combination of rows that a ray is, in the units of the instance.
    const Number* ray() const { return ray_; }

  private:
    static constexpr int MOST_CORRECTIONS = 3, MOST_FORMED = 3, TIES = 20;
    static constexpr double BOUND_ROOM = 1e-15;  // of a bound: clipped away in the end

    struct Violated {
        enum Kind { none, row, bound, release } kind = none;
        Size at = -1;
    };
    struct Outcome {
        End end = End::none;
        bool blocked = false;
        double length = 0.0;
    };
    struct Block {
        Number length = Number(INF);
        Size place = -1;   // in the working set
        Size column = -1;  // a coordinate that wants to leave its bound
    };

    void read_row(Size k) {
        const AffineBox& given = *given_;
        const double* const row = given.A + k * p_;
        double largest = 0.0;
        for (Size i = 0; i < p_; ++i) largest = larger(largest, absolute(row[i]));
        const double power = largest > CONSTANT_ROW ? power_to_one(largest) : 1.0;
        power_[k] = power;
        b_[k] = given.b[k] * power;
        double free_square = 0.0, square = 0.0;
        for (Size i = 0; i < p_; ++i) {
            const double entry = row[i] * power;
            A_[k * p_ + i] = columns_[i * n_ + k] = entry;
            free_square += given.lower[i] < given.upper[i] ? entry * entry : 0.0;
            square += share_[i] * entry * entry;
        }
        square_[k] = square;
        compliance_[k] = given.row_compliance(k) * (2.0 * given.alpha) * power * power;
        length_[k] = root(free_square + compliance_[k]);
        lo_[k] = divided<Number>(given, given.multiplier_lower[k], power);
        hi_[k] = divided<Number>(given, given.multiplier_upper[k], power);
    }

    // Below what a coordinate is nothing: a share of what it can be, which rows' limits and y say
    // where bounds do not.
    void set_least_sizes() {
        double reach = 0.0;
        for (Size k = 0; k < n_; ++k)
            if (length_[k] > CONSTANT_ROW) reach = larger(reach, absolute(b_[k]));
        for (Size i = 0; i < p_; ++i) {
            double far = larger(absolute(given_->lower[i]), absolute(given_->upper[i]));
            if (__builtin_isinf(far)) {
                far = absolute(rounded(y_[i]));
                if (reach > 0.0) far = smaller(far, reach);
            }
            least_[i] = Digits::NOISE * far;
        }
    }

    void begin_at(const double* start) {
        set_.begin({n_, p_, A_, share_, compliance_, square_, free_});
        for (Size k = 0; k < n_; ++k) {
            const Number mu = divided<Number>(*given_, start[k], power_[k]);
            mu_[k] = !(mu > lo_[k]) ? lo_[k] : !(mu < hi_[k]) ? hi_[k] : mu;
            ray_[k] = Number(0.0);
            if (between(k) && length_[k] > CONSTANT_ROW) set_.propose(k);
        }
        for (Size i = 0; i < p_; ++i) z_[i] = y_[i];
        for (Size k = 0; k < n_; ++k) shift(k, mu_[k]);
        for (Size i = 0; i < p_; ++i) {
            const double z = rounded(z_[i]), lower = given_->lower[i], upper = given_->upper[i];
            side_[i] = !(lower < upper) ? Side::fixed
                       : z <= lower     ? Side::lower
                       : z >= upper     ? Side::upper
                                        : Side::free;
            free_[i] = side_[i] == Side::free;
        }
    }

    bool between(Size k) const { return lo_[k] < mu_[k] && mu_[k] < hi_[k]; }

    // Moves z by what `more` of row k's multiplier does to it.
    void shift(Size k, Number more) {
        if (rounded(more) == 0.0) return;
        const double* const row = A_ + k * p_;
        for (Size i = 0; i < p_; ++i) z_[i] -= more * row[i] * share_[i];
    }

    // Forms z afresh where multipliers that were far longer on the way left their rounding in it.
    // Whether there was any. Where y or what is taken from it is as long still, z knows better.
    bool form() {
        bool some = false;
        for (Size i = 0; i < p_; ++i) {
            Number sum(0.0);
            double size = 0.0;
            for (Size k = 0; k < n_; ++k) {
                const Number term = mu_[k] * columns_[i * n_ + k];
                sum += term;
                size += absolute(rounded(term));
            }
            const Number z = y_[i] - sum * share_[i];
            size = share_[i] * size + absolute(rounded(y_[i]));
            const double off = absolute(rounded(z - z_[i]));
            if (share_[i] > 0.0 && off > Digits::ROUNDING * size) {
                z_[i] = z;
                some = true;
            }
        }
        return some;
    }

    // Sets x and g, the sizes of the terms of each row, and how far it may be from met.
    void evaluate() {
        for (Size k = 0; k < n_; ++k) {
            const Number own = mu_[k] * compliance_[k];
            g_[k] = -own - Number(b_[k]);
            size_[k] = absolute(b_[k]) + absolute(rounded(own));
            room_[k] = 0.0;
        }
        for (Size i = 0; i < p_; ++i) {
            const bool nothing = absolute(rounded(z_[i])) <= least_[i];
            x_[i] = side_[i] == Side::free    ? (nothing ? Number(0.0) : z_[i])
                    : side_[i] == Side::upper ? Number(given_->upper[i])
                                              : Number(given_->lower[i]);
            const double* const column = columns_ + i * n_;
            const Number x = x_[i];
            if (rounded(x) != 0.0) {
                for (Size k = 0; k < n_; ++k) {
                    const Number term = x * column[k];
                    g_[k] += term;
                    size_[k] += absolute(rounded(term));
                }
            }
            if (free_[i])
                for (Size k = 0; k < n_; ++k) room_[k] += absolute(column[k]) * least_[i];
        }
        for (Size k = 0; k < n_; ++k) room_[k] += tolerance_ * size_[k];
    }

    bool is_met() const {
        for (Size a = 0; a < set_.size(); ++a) {
            const Size k = set_.row(a);
            if (!(absolute(rounded(g_[k])) <= 0.1 * room_[k])) return false;
        }
        return true;
    }

    // What is farthest from where it should be, or the first that is. A row outside the set whose
    // multiplier is between its bounds comes before all: it depended on others, with which it has a
    // way to go.
    Violated most_violated(bool first) const {
        Violated worst;
        double most = 0.0;
        for (Size k = 0; k < n_; ++k) {
            const double g = rounded(g_[k]);
            const bool wants =
                (g > room_[k] && mu_[k] < hi_[k]) || (g < -room_[k] && mu_[k] > lo_[k]);
            if (!wants || set_.has(k)) continue;
            const double depth = absolute(g) / larger(length_[k], CONSTANT_ROW);
            if (!(depth > most)) continue;
            most = depth, worst = {Violated::row, k};
            if (first || between(k)) return worst;
        }
        for (Size i = 0; i < p_; ++i) {
            if (side_[i] == Side::fixed) continue;
            const double lower = given_->lower[i], upper = given_->upper[i];
            const double z = rounded(side_[i] == Side::free ? x_[i] : z_[i]);
            double depth, bound;
            if (side_[i] == Side::free) {
                depth = larger(lower - z, z - upper), bound = z < lower ? lower : upper;
            } else {  // as only rounding leaves it
                const bool at_lower = side_[i] == Side::lower;
                depth = at_lower ? z - lower : upper - z, bound = at_lower ? lower : upper;
            }
            if (!(depth > most && depth > BOUND_ROOM * absolute(bound) + least_[i])) continue;
            most = depth;
            worst = {side_[i] == Side::free ? Violated::bound : Violated::release, i};
            if (first) return worst;
        }
        return worst;
    }

    Side beyond(Size i) const {
        return rounded(x_[i]) < given_->lower[i] ? Side::lower : Side::upper;
    }

    void turn(Size i, Side side) {
        side_[i] = side;
        free_[i] = side == Side::free;
        set_.turn(i, free_[i]);
    }

    // Whether the rows of the set leave coordinate i any freedom. If not, the step is the direction
    // along which only its bound's multiplier and theirs move.
    bool leaves_freedom(Size i) {
        for (Size a = 0; a < set_.size(); ++a)
            step_[a] = exact_product<Number>(A_[set_.row(a) * p_ + i], share_[i]);
        set_.solve(step_);
        Number own(1.0);
        for (Size a = 0; a < set_.size(); ++a) own -= step_[a] * A_[set_.row(a) * p_ + i];
        if (rounded(own) > Digits::DEPENDENT) return true;
        if (beyond(i) == Side::lower) return silence(), false;
        for (Size a = 0; a < set_.size(); ++a) step_[a] = -step_[a];
        return silence(), false;
    }

    // The same for a row that depends on the others: it against what sums up to it.
    void set_ray(Size k) {
        const Size last = set_.size() - 1;
        set_.explain(step_);
        const bool up = rounded(g_[k]) > 0.0;
        for (Size a = 0; a < last; ++a) step_[a] = up ? -step_[a] : step_[a];
        step_[last] = Number(up ? 1.0 : -1.0);
        silence();
    }

    // Without what of a ray is but rounding.
    void silence() {
        double longest = 0.0;
        for (Size a = 0; a < set_.size(); ++a)
            longest = larger(longest, absolute(rounded(step_[a])));
        for (Size a = 0; a < set_.size(); ++a)
            if (absolute(rounded(step_[a])) <= Digits::NOISE * longest) step_[a] = Number(0.0);
    }

    void set_newton_step() {
        for (Size a = 0; a < set_.size(); ++a) step_[a] = g_[set_.row(a)];
        set_.solve(step_);
    }

    // A row that is constant on the box gets its multiplier once and for all; false if none is high
    // enough.
    bool settle_constant(Size k) {
        const bool up = rounded(g_[k]) > 0.0;
        const Number bound = up ? hi_[k] : lo_[k];
        if (__builtin_isinf(rounded(bound))) {
            fill(ray_, n_, Number(0.0));
            ray_[k] = Number(up ? power_[k] : -power_[k]);
            return false;
        }
        mu_[k] = bound;
        return true;
    }

    // Goes along the step as far as nothing blocks, and takes out what does.
    Outcome advance(bool ray, Violated worst) {
        set_slope(ray);
        Block block = blocking(ray ? INF : 1.0);
        Outcome outcome;
        if (__builtin_isinf(rounded(block.length))) {
            tell_ray();
            block.place = least_sharp(worst);
            tell_point(at_);
            if (farkas_gap(*given_, ray_, at_) > tolerance_) return {.end = End::ray};
            if (block.place < 0) return {.end = End::conflict};
            block.length = Number(0.0);  // they contradict each other by rounding alone
        }
        outcome.length = rounded(block.length);
        outcome.blocked = block.place >= 0 || block.column >= 0;
        for (Size a = 0; a < set_.size(); ++a) mu_[set_.row(a)] += step_[a] * block.length;
        // By increments: where y is huge, x is found to the digits of x, not of y.
        for (Size i = 0; i < p_; ++i)
            if (rounded(slope_[i]) != 0.0) z_[i] -= slope_[i] * share_[i] * block.length;
        if (block.column >= 0) turn(block.column, Side::free);
        if (block.place >= 0) let_go(block.place);
        return outcome;
    }

    // Sets the slope to A'step, without what is but rounding; zero where a ray moves no coordinate.
    void set_slope(bool ray) {
        fill(slope_, p_, Number(0.0));
        for (Size i = 0; i < p_; ++i) {
            if (ray && side_[i] == Side::free) continue;
            Number sum(0.0);
            double size = 0.0;
            for (Size a = 0; a < set_.size(); ++a) {
                const Number term = step_[a] * A_[set_.row(a) * p_ + i];
                sum += term;
                size += absolute(rounded(term));
            }
            if (absolute(rounded(sum)) > Digits::DEPENDENT * size) slope_[i] = sum;
        }
    }

    // The first breakpoint along the step, up to `most`.
    Block blocking(double most) const {
        Block block{Number(most)};
        for (Size a = 0; a < set_.size(); ++a) {
            const Size k = set_.row(a);
            const double d = rounded(step_[a]);
            const Number bound = d > 0.0 ? hi_[k] : lo_[k];
            if (d == 0.0 || __builtin_isinf(rounded(bound))) continue;
            const Number length = nonnegative((bound - mu_[k]) / step_[a]);
            if (length < block.length) block = {length, a, -1};
        }
        for (Size i = 0; i < p_; ++i) {
            const double speed = -rounded(slope_[i]);
            const bool leaves = (side_[i] == Side::lower && speed > 0.0) ||
                                (side_[i] == Side::upper && speed < 0.0);
            if (!leaves || share_[i] == 0.0) continue;
            const double bound = side_[i] == Side::lower ? given_->lower[i] : given_->upper[i];
            const Number length = nonnegative((Number(bound) - z_[i]) / (slope_[i] * -share_[i]));
            if (length < block.length) block = {length, -1, i};
        }
        return block;
    }

    static Number nonnegative(Number length) {
        return rounded(length) > 0.0 ? length : Number(0.0);
    }

    // The place of the row of the ray that the others tell least sharply, but for what was added.
    Size least_sharp(Violated worst) const {
        const bool row = worst.kind == Violated::row;
        double size = row ? size_[worst.at] : absolute(rounded(x_[worst.at]));
        Size place = -1;
        for (Size a = 0; a < set_.size(); ++a) {
            const Size k = set_.row(a);
            const double its = absolute(rounded(step_[a])) * size_[k];
            if (its > size && !(row && k == worst.at)) size = its, place = a;
        }
        return place;
    }

    void tell_ray() {
        fill(ray_, n_, Number(0.0));
        for (Size a = 0; a < set_.size(); ++a) {
            const Size k = set_.row(a);
            ray_[k] = step_[a] * power_[k];
        }
    }

    // Takes a row out of the set, exactly at its bound if it has one.
    void let_go(Size place) {
        const Size k = set_.row(place);
        const Number bound = rounded(step_[place]) > 0.0 ? hi_[k] : lo_[k];
        if (!__builtin_isinf(rounded(bound))) {
            shift(k, bound - mu_[k]);
            mu_[k] = bound;
        }
        set_.leave(place);
    }

    const AffineBox* given_ = nullptr;
    Size n_ = 0, p_ = 0;
    double tolerance_ = 0.0;
    WorkingSet<Number> set_;
    // Of rows: entries and limits times a power of two, what they are the sum of, and how exact.
    double *A_ = nullptr, *columns_ = nullptr, *b_ = nullptr, *power_ = nullptr;
    double *compliance_ = nullptr, *length_ = nullptr, *square_ = nullptr;
    double *size_ = nullptr, *room_ = nullptr;
    Number *mu_ = nullptr, *lo_ = nullptr, *hi_ = nullptr, *g_ = nullptr, *ray_ = nullptr;
    // Of coordinates.
    double *share_ = nullptr, *least_ = nullptr, *at_ = nullptr;
    Number *y_ = nullptr, *z_ = nullptr, *x_ = nullptr, *slope_ = nullptr;
    Side* side_ = nullptr;
    bool* free_ = nullptr;
    Number* step_ = nullptr;  // of the multipliers of the set, by place
};

}  // namespace coldq::COLDQ_LEVEL
