// Quadratic rows on a box, with matrices or without: batches of steps, of values and of residuals.
#include "batch.hpp"
#include "curved/matrices.hpp"
#include "curved/multipliers.hpp"
#include "curved/thin.hpp"
#include "each.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

double* of(const Operand& operand, Size i) { return operand.at + i * operand.step; }

// The operands of rows with matrices, and of rows without, in the order of the layouts.
struct Matrices {
    Operand center, gradient, alpha, floor, weights, P, A, b, lower, upper;

    Size numbers(Size n, Size p) const {
        return P.length[0] <= n ? MatrixRows::numbers(n, p) : DO_NOT_FIT;
    }

    MatrixRows rows(Size i, const double* y, Scratch& scratch) const {
        MatrixRows made{};
        made.n = b.length[0], made.m = P.length[0], made.p = center.length[0];
        made.P = of(P, i), made.A = of(A, i), made.b = of(b, i), made.y = y;
        made.half = scratch.take(made.n * made.p);
        made.lagrangian = Lagrangian::in(scratch, made.p);
        made.lagrangian.lower = of(lower, i);
        made.lagrangian.upper = of(upper, i);
        return made;
    }
};

struct Thin {
    Operand center, gradient, alpha, floor, weights, d, middle, q, b, F, owner, lower, upper;

    Size numbers(Size n, Size p) const {
        Size square;
        if (n == 0 && F.length[0] > 0) return DO_NOT_FIT;
        if (__builtin_mul_overflow(F.length[0], 2 * F.length[0], &square)) return -1;
        return ThinRows::numbers(n, p, F.length[0]);
    }

    ThinRows rows(Size i, const double* y, Scratch& scratch) const {
        ThinRows made{};
        made.n = b.length[0], made.p = center.length[0], made.factors = F.length[0];
        made.d = of(d, i), made.middle = of(middle, i), made.q = of(q, i), made.b = of(b, i);
        made.F = of(F, i), made.owner = of(owner, i);
        made.lower = of(lower, i), made.upper = of(upper, i), made.y = y;
        made.take(scratch);
        return made;
    }
};

template <class Given>
struct StepOperands {
    Given given;
    Operand start, x, multipliers, residual;
};
template <class Given>
struct ValueOperands {
    Given given;
    Operand x, g, slope, size, terms;
};
struct ResidualOperands {
    Operand center, gradient, alpha, floor, weights, lower, upper;
    Operand g, slope, size, terms, x, multipliers, rounded, residual;
};

// Set y and the multipliers' bounds; whether y is finite.
template <class Given>
bool begin(CurvedIterate& at, const Given& given, Size i, Scratch& scratch) {
    const double half = 0.5 / *of(given.alpha, i);
    const double *center = of(given.center, i), *gradient = of(given.gradient, i);
    const double *floor = of(given.floor, i), *weights = of(given.weights, i);
    double finite = 0.0;
    at.n = given.floor.length[0];
    at.p = given.center.length[0];
    at.lower = of(given.lower, i);
    at.upper = of(given.upper, i);
    for (double** line : {&at.y, &at.off}) *line = scratch.take(at.p);
    for (double** line : {&at.mu, &at.lo, &at.hi, &at.at.largest}) *line = scratch.take(at.n);
    for (Size k = 0; k < at.p; ++k) {
        at.y[k] = center[k] - gradient[k] * half;
        finite += 0.0 * at.y[k];
    }
    for (Size k = 0; k < at.n; ++k) {
        at.lo[k] = floor[k] * half;
        at.hi[k] = weights[k] * half;
    }
    return finite == 0.0;
}

Size numbers(Size n, Size p) { return 2 * p + 4 * n; }

template <class Given>
void solve_one(const StepOperands<Given>& operands, Size i, double* memory) {
    const Given& given = operands.given;
    Scratch scratch{memory};
    CurvedIterate at;
    const bool finite = begin(at, given, i, scratch);
    const double twice = 2.0 * *of(given.alpha, i), *floor = of(given.floor, i),
                 *weights = of(given.weights, i);
    double *multipliers = of(operands.multipliers, i), &residual = *of(operands.residual, i);
    at.x = of(operands.x, i);
    for (Size k = 0; k < at.p; ++k) at.x[k] = clip(at.y[k], at.lower[k], at.upper[k]);
    for (Size k = 0; k < at.n; ++k) {
        const double start = operands.start.at ? of(operands.start, i)[k] / twice : 0.0;
        at.mu[k] = clip(start, at.lo[k], at.hi[k]);
        multipliers[k] = 0.0;
    }
    residual = NOT_A_NUMBER;
    if (!finite) return;
    for (double** line : {&at.at.g, &at.at.size}) *line = scratch.take(at.n);
    for (double** line : {&at.at.slope, &at.at.terms}) *line = scratch.take(at.n * at.p);
    const Multipliers by = Multipliers::in(scratch, at.n);
    auto rows = given.rows(i, at.y, scratch);
    residual = solve_curved(rows, at, by);
    for (Size k = 0; k < at.n; ++k)
        multipliers[k] = at.mu[k] >= at.hi[k]   ? weights[k]
                         : at.mu[k] <= at.lo[k] ? floor[k]
                                                : clip(at.mu[k] * twice, floor[k], weights[k]);
}

template <class Given>
Size step_scratch(const Operand* operands) {
    const auto& given = reinterpret_cast<const StepOperands<Given>*>(operands)->given;
    const Size n = given.floor.length[0], p = given.center.length[0], own = given.numbers(n, p);
    Size square;
    if (own < 0) return own;
    if (__builtin_mul_overflow(n, 4 * n, &square)) return -1;
    return numbers(n, p) + 2 * n * (p + 1) + Multipliers::size(n) + own;
}

template <class Given>
void step(const Run& run) {
    const auto& operands = *reinterpret_cast<const StepOperands<Given>*>(run.operands);
    for (Size i = 0; i < run.count; ++i) solve_one(operands, i, run.scratch);
}

template <class Given>
Size value_scratch(const Operand* operands) {
    const auto& given = reinterpret_cast<const ValueOperands<Given>*>(operands)->given;
    const Size n = given.floor.length[0], p = given.center.length[0], own = given.numbers(n, p);
    return own < 0 ? own : numbers(n, p) + own;
}

// What rows are at x.
template <class Given>
void values(const Run& run) {
    const auto& operands = *reinterpret_cast<const ValueOperands<Given>*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        Scratch scratch{run.scratch};
        CurvedIterate at;
        begin(at, operands.given, i, scratch);
        at.x = of(operands.x, i);
        at.at.g = of(operands.g, i), at.at.size = of(operands.size, i);
        at.at.slope = of(operands.slope, i), at.at.terms = of(operands.terms, i);
        operands.given.rows(i, at.y, scratch).evaluate(at);
    }
}

Size residual_scratch(const Operand* operands) {
    const auto& given = *reinterpret_cast<const ResidualOperands*>(operands);
    return numbers(given.floor.length[0], given.center.length[0]);
}

// The residual of x and multipliers from anywhere, with what rows are at x.
void residual(const Run& run) {
    const auto& given = *reinterpret_cast<const ResidualOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        Scratch scratch{run.scratch};
        CurvedIterate at;
        begin(at, given, i, scratch);
        at.x = of(given.x, i);
        at.at.g = of(given.g, i), at.at.size = of(given.size, i);
        at.at.slope = of(given.slope, i), at.at.terms = of(given.terms, i);
        const double half = 0.5 / *of(given.alpha, i);
        for (Size k = 0; k < at.n; ++k) at.mu[k] = of(given.multipliers, i)[k] * half;
        *of(given.residual, i) = curved_residual(at, *of(given.rounded, i) != 0.0);
    }
}

}  // namespace

#define COLDQ_MATRICES "(p),(p),(),(n),(n),(m,p,p),(n,p),(n),(p),(p)"
#define COLDQ_THIN "(p),(p),(),(n),(n),(n,p),(n,p),(n,p),(n),(k,p),(k),(p),(p)"

extern const Entry curved[];
const Entry curved[] = {
    {"quadratic_step", COLDQ_MATRICES ",(n)?->(p),(n),()", step<Matrices>, step_scratch<Matrices>},
    {"thin_step", COLDQ_THIN ",(n)?->(p),(n),()", step<Thin>, step_scratch<Thin>},
    {"quadratic_values", COLDQ_MATRICES ",(p)->(n),(n,p),(n),(n,p)", values<Matrices>,
     value_scratch<Matrices>},
    {"thin_values", COLDQ_THIN ",(p)->(n),(n,p),(n),(n,p)", values<Thin>, value_scratch<Thin>},
    {"curved_residual", "(p),(p),(),(n),(n),(p),(p),(n),(n,p),(n),(n,p),(p),(n),()->()", residual,
     residual_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
