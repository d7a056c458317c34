// Rows that are the largest of several affine pieces, as entries.
//
// An interior-point method finds which pieces decide and which bounds hold x; if just these do, the
// answer is that of one linear system, of which the residual is judged.
#include "each.hpp"
#include "ends.hpp"
#include "pieces_residual.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr int STEPS = 60;
constexpr double CLEAR = 1e-11;  // the residual at which the set of pieces was the right one

// The least power of two above a size, by its bits: clang 22 fails on frexp in a loop at -O3.
double power_above(double size) {
    if (!(size > 0.0 && size < INF)) return 1.0;
    constexpr double UP = 0x1p54;  // lifts a size whose exponent is not in its bits
    const bool tiny = size < 0x1p-1000;
    const auto bits = __builtin_bit_cast(unsigned long long, tiny ? size * UP : size);
    const double power = 2.0 * __builtin_bit_cast(double, bits & 0x7ff0000000000000ULL);
    return tiny ? power / UP : power;
}

// The problem in units in which x and slopes are of size 1: powers of two. Plain rows are hard
// groups of one piece each, or equalities.
class Scaled {
  public:
    Scaled(Size p, Size pieces, Size rows, Size plains, Memory& memory)
        : y(memory.take<double>(p)),
          A(memory.take<double>(pieces + plains, p)),
          b(memory.take<double>(pieces + plains)),
          group(memory.take<double>(pieces + plains)),
          lean(memory.take<double>(pieces + plains)),
          cost(memory.take<double>(rows + plains)),
          is_free(memory.take<double>(rows + plains)),
          E(memory.take<double>(plains, p)),
          e(memory.take<double>(plains)),
          lower(memory.take<double>(p)),
          upper(memory.take<double>(p)),
          zero(memory.take<double>(p)),
          steep(memory.take<double>(rows)),
          own(memory.take<double>(plains)) {}

    Grouped of(const Pieces& given, double size) {
        const Size p = given.p, m = given.pieces, n = given.rows;
        unit = power_above(size);
        Grouped out = {.p = p, .n = m, .groups = n, .equalities = 0};
        fill(steep, n, 0.0);
        for (Size r = 0; r < m; ++r)
            steep[given.group_of(r)] =
                larger(steep[given.group_of(r)], steepest(given.A + r * p, p));
        for (Size k = 0; k < n; ++k) {
            steep[k] = power_above(steep[k]);
            cost[k] = given.high[k] / unit * steep[k];
            is_free[k] = given.low[k] == given.high[k] && given.high[k] > 0.0;
        }
        for (Size r = 0; r < m; ++r) {
            put(given.A + r * p, given.b[r], steep[given.group_of(r)], p, A + r * p, b[r]);
            group[r] = given.group[r];
        }
        for (Size r = 0; r < given.plains; ++r) {
            const double* const row = given.plain + r * p;
            own[r] = power_above(steepest(row, p));
            if (given.lo[r] == -INF) {
                put(row, given.limit[r], own[r], p, E + out.equalities * p, e[out.equalities]);
                ++out.equalities;
            } else {
                put(row, given.limit[r], own[r], p, A + out.n * p, b[out.n]);
                cost[out.groups] = INF, is_free[out.groups] = 0.0;
                group[out.n++] = double(out.groups++);
            }
        }
        fill(lean, out.n, 0.0);
        for (Size i = 0; i < p; ++i) {
            y[i] = given.y[i] / unit, zero[i] = 0.0;
            lower[i] = given.lower[i] / unit, upper[i] = given.upper[i] / unit;
        }
        out.center = y, out.gradient = zero, out.A = A, out.b = b, out.lean = lean;
        out.group = group, out.cost = cost, out.is_free = is_free;
        out.E = E, out.e = e, out.lower = lower, out.upper = upper;
        return out;
    }

    double unit = 1.0;
    double *y, *A, *b, *group, *lean, *cost, *is_free, *E, *e, *lower, *upper, *zero, *steep, *own;

  private:
    static double steepest(const double* row, Size p) {
        double size = 0.0;
        for (Size i = 0; i < p; ++i) size = larger(size, absolute(row[i]));
        return size;
    }
    void put(const double* row, double limit, double size, Size p, double* to, double& b_to) {
        for (Size i = 0; i < p; ++i) to[i] = row[i] / size;
        b_to = limit / (size * unit);
    }
};

// The answer if exactly the pieces with multipliers decide, x is free where no bound holds it, and
// rows are above zero, or linear, where `above` says so.
//
// Of such a row the pieces are equal and their multipliers sum up to its cost: one of them, the
// `base`, has what the others leave, and these are relative to it. Of other rows the pieces are
// zero, as plain rows and equalities are. A line that depends on others keeps its multiplier.
class CrossOver {
  public:
    CrossOver(Size p, Size n, Size groups, Size equalities, Memory& memory)
        : most_(n + equalities < p ? n + equalities : p),
          line_(memory.take<double>(most_ + 1, p)),
          factor_(memory.take<double>(most_ + 1, most_ + 1)),
          limit_(memory.take<double>(most_ + 1)),
          which_(memory.take<Size>(most_ + 1)),
          base_(memory.take<Size>(groups)),
          left_(memory.take<double>(groups)),
          held_(memory.take<double>(p)),
          z_(memory.take<double>(most_ + 1)) {}

    // Whether it is the answer, which x and the multipliers become: they are a guess of it.
    bool find(const Grouped& given, const double* above, double* x, double* mu, double* equal) {
        const Size p = given.p;
        const auto moves = [&](Size i) { return given.lower[i] < x[i] && x[i] < given.upper[i]; };
        for (Size k = 0; k < given.groups; ++k) base_[k] = -1, left_[k] = given.cost[k];
        for (Size r = 0; r < given.n; ++r) {
            Size& base = base_[given.group_of(r)];
            if (above[given.group_of(r)] != 0.0 && mu[r] > 0.0 && (base < 0 || mu[r] > mu[base]))
                base = r;
        }
        for (Size i = 0; i < p; ++i) held_[i] = moves(i) ? given.center[i] : x[i];
        for (Size k = 0; k < given.groups; ++k) {
            if (above[k] == 0.0) continue;
            if (base_[k] < 0) return false;
            for (Size i = 0; i < p; ++i)
                if (moves(i)) held_[i] -= given.cost[k] * given.A[base_[k] * p + i];
        }
        Size count = 0;
        const auto put = [&](Size which, const double* row, double b, Size base, double price) {
            double *const line = line_ + count * p, fixed = 0.0;
            for (Size i = 0; i < p; ++i) {
                line[i] = row[i] - (base < 0 ? 0.0 : given.A[base * p + i]);
                if (moves(i)) continue;
                fixed += line[i] * x[i];
                line[i] = 0.0;
            }
            limit_[count] = b - (base < 0 ? 0.0 : given.b[base]) - fixed;
            which_[count] = which;
            if (independent(count, p)) return void(++count);
            add_multiple(held_, -price, line, p);
            if (which < given.n) left_[given.group_of(which)] -= price;
        };
        for (Size r = 0; r < given.equalities; ++r)
            put(given.n + r, given.E + r * p, given.e[r], -1, equal[r]);
        for (Size r = 0; r < given.n; ++r) {
            const Size base = base_[given.group_of(r)];
            if (mu[r] > 0.0 && base != r) put(r, given.A + r * p, given.b[r], base, mu[r]);
        }
        for (Size a = 0; a < count; ++a) z_[a] = dot(line_ + a * p, held_, p) - limit_[a];
        solve(count);
        for (Size a = 0; a < count; ++a) {
            if (which_[a] < given.n && !(z_[a] >= 0.0)) return false;
            if (which_[a] < given.n) left_[given.group_of(which_[a])] -= z_[a];
            add_multiple(held_, -z_[a], line_ + a * p, p);
        }
        for (Size k = 0; k < given.groups; ++k)
            if (!(left_[k] >= 0.0)) return false;
        for (Size i = 0; i < p; ++i) x[i] = clipped(held_[i], given.lower[i], given.upper[i]);
        for (Size a = 0; a < count; ++a)
            (which_[a] < given.n ? mu[which_[a]] : equal[which_[a] - given.n]) = z_[a];
        for (Size k = 0; k < given.groups; ++k)
            if (base_[k] >= 0) mu[base_[k]] = left_[k];
        return true;
    }

  private:
    double* factor_row(Size a) { return factor_ + a * (most_ + 1); }

    // Whether a line is not in the span of those before it; its row of Cholesky's factor of the
    // lines' products, with the inverse on the diagonal.
    bool independent(Size a, Size p) {
        constexpr double DEPENDENT = 1e-12;  // of a line's square: what others leave of it
        double *const line = line_ + a * p, *const row = factor_row(a);
        for (Size c = 0; c < a; ++c) {
            const double* const other = factor_row(c);
            row[c] = (dot(line, line_ + c * p, p) - dot(row, other, c)) * other[c];
        }
        const double square = dot(line, line, p), pivot = square - dot(row, row, a);
        if (!(pivot > DEPENDENT * square) || a == most_) return false;
        row[a] = 1.0 / root(pivot);
        return true;
    }

    // The multipliers with which the lines' limits hold.
    void solve(Size count) {
        for (Size a = 0; a < count; ++a)
            z_[a] = (z_[a] - dot(factor_row(a), z_, a)) * factor_row(a)[a];
        for (Size a = count - 1; a >= 0; --a) {
            z_[a] *= factor_row(a)[a];
            add_multiple(z_, -z_[a], factor_row(a), a);
        }
    }

    Size most_;
    double *line_, *factor_, *limit_;
    Size *which_, *base_;
    double *left_, *held_, *z_;
};

class Method {
  public:
    Method(Size p, Size pieces, Size rows, Size plains, Memory& memory)
        : y(memory.take<double>(p)),
          low(memory.take<double>(rows)),
          high(memory.take<double>(rows)),
          free_above(memory.take<double>(plains)),
          scaled(p, pieces, rows, plains, memory),
          reduced(p, pieces + plains, plains, memory),
          starts(p, pieces + plains, rows + plains, memory),
          inside(p, pieces + plains, rows + plains, rows, plains, 0, memory),
          cross_over(p, pieces + plains, rows + plains, plains, memory),
          residual(p, pieces, rows, memory),
          guess(p, pieces + plains, rows + plains, plains, memory) {
        fill(free_above, free_above ? plains : 0, INF);
    }

    // Set x and the multipliers of pieces and plain rows; return the residual.
    double solve(const Pieces& given, double* x, double* mu_out, double* nu_out) {
        for (Size i = 0; i < given.p; ++i)
            x[i] = clipped(given.y[i], given.lower[i], given.upper[i]);
        fill(mu_out, given.pieces, 0.0);
        fill(nu_out, given.plains, 0.0);
        if (met(given, x)) return residual.of(given, x, mu_out, nu_out);
        double size = size_of(given, x), worst = INF;
        for (int again = 0; again < 2; ++again) {
            worst = solve_in_unit(given, size, x, mu_out, nu_out);
            size = size_of(given, x);
            const double unit = scaled.unit;
            const bool same = unit / 64.0 <= size && size <= 64.0 * unit;
            if (worst <= CLEAR || same || !(0.0 < size && size < INF)) break;
        }
        return worst;
    }

    double *y, *low, *high, *free_above;

  private:
    // Whether x, which is nearest to y, is the answer, as no row is above zero.
    static bool met(const Pieces& given, const double* x) {
        for (Size k = 0; k < given.rows; ++k)
            if (given.low[k] != 0.0) return false;
        for (Size r = 0; r < given.pieces; ++r)
            if (!(dot(given.A + r * given.p, x, given.p) <= given.b[r])) return false;
        for (Size r = 0; r < given.plains; ++r) {
            if (given.lo[r] == -INF) return false;
            if (!(dot(given.plain + r * given.p, x, given.p) <= given.limit[r])) return false;
        }
        return true;
    }

    static double size_of(const Pieces& given, const double* x) {
        double size = 0.0;
        for (Size i = 0; i < given.p; ++i) size = larger(size, given.known(x, i));
        return size;
    }

    double solve_in_unit(const Pieces& given, double size, double* x, double* mu_out,
                         double* nu_out) {
        const Grouped whole = scaled.of(given, size);
        for (Size i = 0; i < given.p; ++i)
            guess.x[i] = clipped(whole.center[i], whole.lower[i], whole.upper[i]);
        const Grouped problem = given.plains > 0 ? reduced.of(whole, guess.x, 0.0) : whole;
        inside.take(problem);
        starts.inside(inside);
        int steps = STEPS;
        inside.walk({1e-12, 1e-9, false, true}, steps);
        for (const auto& point : {inside.point(), inside.best_point()}) {
            guess.of(problem, point);
            if (!cross_over.find(problem, guess.above, guess.x, guess.mu, guess.equal)) continue;
            put(given, problem, x, mu_out, nu_out);
            const double crossed = residual.of(given, x, mu_out, nu_out);
            if (crossed <= CLEAR) return crossed;
        }
        starts.settle(inside, guess.x, guess.mu, guess.equal);
        put(given, problem, x, mu_out, nu_out);
        return residual.of(given, x, mu_out, nu_out);
    }

    // The answer in the units that were given.
    void put(const Pieces& given, const Grouped& problem, double* x, double* mu_out,
             double* nu_out) {
        const bool all = given.plains == 0;
        for (Size i = 0; i < given.p; ++i)
            x[i] = clipped(guess.x[i] * scaled.unit, given.lower[i], given.upper[i]);
        fill(mu_out, given.pieces, 0.0);
        fill(nu_out, given.plains, 0.0);
        Size row = 0, equality = 0, hard = given.pieces, same = 0;
        for (Size r = 0; r < given.pieces; ++r) {
            if (!all && (row == problem.n || reduced.row(row) != r)) continue;
            mu_out[r] = guess.mu[row++] * scaled.unit / scaled.steep[given.group_of(r)];
        }
        for (Size r = 0; r < given.plains; ++r) {
            const double unit = scaled.unit / scaled.own[r];
            if (given.lo[r] == -INF) {
                if (equality < problem.equalities && reduced.equality(equality) == same)
                    nu_out[r] = guess.equal[equality++] * unit;
                ++same;
            } else {
                if (row < problem.n && reduced.row(row) == hard) nu_out[r] = guess.mu[row++] * unit;
                ++hard;
            }
        }
    }

    Scaled scaled;
    Reduced reduced;
    Starts starts;
    InteriorPoint<double> inside;
    CrossOver cross_over;
    PiecesResidual residual;
    Guess guess;
};

// Plain rows have multipliers from `least` on: 0, or an infinite one for an equality. Multipliers
// of pieces and of plain rows are over 2 alpha.
void pieces_step(Scratch scratch, Vector center, Vector gradient, double alpha, Vector floor,
                 Vector weights, Matrix A, Vector b, Vector group, Matrix plain, Vector limit,
                 Vector least, Vector lower, Vector upper, OutVector x, OutVector mu, OutVector nu,
                 OutVector multipliers, double& residual) {
    const Size p = center.size, n = weights.size;
    Memory memory(scratch.at);
    Method method(p, b.size, n, limit.size, memory);
    const double half = 0.5 / alpha;
    for (Size i = 0; i < p; ++i) method.y[i] = center[i] - gradient[i] * half;
    for (Size k = 0; k < n; ++k)
        method.low[k] = floor[k] * half, method.high[k] = weights[k] * half;
    const Pieces given = {p,        b.size,   n,        limit.size,        method.y,
                          A.at,     b.at,     group.at, method.low,        method.high,
                          plain.at, limit.at, least.at, method.free_above, lower.at,
                          upper.at};
    residual = method.solve(given, x.at, mu.at, nu.at);
    for (Size k = 0; k < n; ++k) multipliers[k] = 0.0;
    for (Size r = 0; r < b.size; ++r) multipliers[given.group_of(r)] += mu[r];
    for (Size k = 0; k < n; ++k) {
        const double total = Pieces::capped(multipliers[k], given.high[k]);
        multipliers[k] = total == given.high[k] ? weights[k] : total / half;
    }
}

Size pieces_memory(const Operand* operands) {
    Memory memory(nullptr);
    Method(operands[0].length[0], operands[6].length[0], operands[4].length[0],
           operands[9].length[0], memory);
    return memory.numbers();
}

void pieces_residual(Scratch scratch, Vector y, Matrix A, Vector b, Vector group, Vector low,
                     Vector high, Matrix plain, Vector limit, Vector lo, Vector hi, Vector lower,
                     Vector upper, Vector x, Vector mu, Vector nu, double& residual) {
    Memory memory(scratch.at);
    const Pieces given = {y.size, b.size,  high.size, limit.size, y.at,  A.at,  b.at,     group.at,
                          low.at, high.at, plain.at,  limit.at,   lo.at, hi.at, lower.at, upper.at};
    residual = PiecesResidual(y.size, b.size, high.size, memory).of(given, x.at, mu.at, nu.at);
}

Size residual_memory(const Operand* operands) {
    Memory memory(nullptr);
    PiecesResidual(operands[0].length[0], operands[2].length[0], operands[5].length[0], memory);
    return memory.numbers();
}

}  // namespace

extern const Entry pieces[];
const Entry pieces[] = {
    {"pieces_step", "(p),(p),(),(n),(n),(m,p),(m),(m),(r,p),(r),(r),(p),(p)->(p),(m),(r),(n),()",
     each<pieces_step>, pieces_memory},
    {"pieces_residual", "(p),(m,p),(m),(m),(n),(n),(r,p),(r),(r),(r),(p),(p),(p),(m),(r)->()",
     each<pieces_residual>, residual_memory},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
