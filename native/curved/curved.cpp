// Quadratic rows on a box, with matrices or without: batches of steps, values and residuals.
#include "batch.hpp"
#include "curved/matrices.hpp"
#include "curved/multipliers.hpp"
#include "curved/thin.hpp"
#include "each.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

// The operands of both kinds of rows by name, in the order of their layouts.
struct Given {
    Operand center, gradient, alpha, floor, weights;
};
struct MatrixOperands {
    Given of;
    Operand P, A, b, lower, upper, start;
    Operand x, multipliers, residual;
};
struct ThinOperands {
    Given of;
    Operand d, middle, q, b, F, owner, lower, upper, start;
    Operand x, multipliers, residual;
};

double* of(const Operand& operand, Size i) { return operand.at + i * operand.step; }

constexpr Size COLUMNS = 2, LINES = 6;

Size numbers(Size n, Size p) {
    Size square;
    if (__builtin_mul_overflow(n, 8 * n, &square)) return -1;
    return COLUMNS * p + LINES * n + 2 * n * p + Multipliers::size(n);
}

RowValues values_in(Scratch& scratch, Size n, Size p) {
    RowValues made;
    double** lines[] = {&made.g, &made.size, &made.largest};
    for (double** line : lines) *line = scratch.take(n);
    made.slope = scratch.take(n * p);
    made.terms = scratch.take(n * p);
    return made;
}

// Set y and multipliers; whether all is finite that should be.
bool begin(CurvedIterate& at, const Given& given, const double* start, Size i) {
    const double half = 0.5 / *of(given.alpha, i);
    const double *center = of(given.center, i), *gradient = of(given.gradient, i);
    const double *floor = of(given.floor, i), *weights = of(given.weights, i);
    double finite = 0.0;
    for (Size k = 0; k < at.p; ++k) {
        at.y[k] = center[k] - gradient[k] * half;
        at.x[k] = clip(at.y[k], at.lower[k], at.upper[k]);
        finite += 0.0 * at.y[k];
    }
    for (Size k = 0; k < at.n; ++k) {
        at.lo[k] = floor[k] * half;
        at.hi[k] = weights[k] * half;
        at.mu[k] = clip(start ? start[k] * half : 0.0, at.lo[k], at.hi[k]);
    }
    return finite == 0.0;
}

// The step of instance i with rows that `make(scratch, y)` gives.
template <class O, class Make>
void solve_one(const O& given, Size i, double* memory, Make make) {
    const Size n = given.b.length[0], p = given.of.center.length[0];
    Scratch scratch{memory};
    CurvedIterate at{n,
                     p,
                     of(given.lower, i),
                     of(given.upper, i),
                     scratch.take(p),
                     of(given.x, i),
                     scratch.take(p),
                     scratch.take(n),
                     scratch.take(n),
                     scratch.take(n),
                     {}};
    at.at = values_in(scratch, n, p);
    const Multipliers by = Multipliers::in(scratch, n);
    const double* start = given.start.at ? of(given.start, i) : nullptr;
    double *multipliers = of(given.multipliers, i), &residual = *of(given.residual, i);
    residual = NOT_A_NUMBER;
    for (Size k = 0; k < n; ++k) multipliers[k] = 0.0;
    if (!begin(at, given.of, start, i)) return;
    auto rows = make(scratch, at.y);
    residual = solve_curved(rows, at, by);
    const double *floor = of(given.of.floor, i), *weights = of(given.of.weights, i);
    const double twice = 2.0 * *of(given.of.alpha, i);
    for (Size k = 0; k < n; ++k)
        multipliers[k] = at.mu[k] >= at.hi[k]   ? weights[k]
                         : at.mu[k] <= at.lo[k] ? floor[k]
                                                : clip(at.mu[k] * twice, floor[k], weights[k]);
}

Size matrix_scratch(const Operand* operands) {
    const auto& given = *reinterpret_cast<const MatrixOperands*>(operands);
    const Size n = given.b.length[0], p = given.of.center.length[0], own = numbers(n, p);
    return own < 0 ? own : own + MatrixRows::numbers(n, p);
}

void quadratic_step(const Run& run) {
    const auto& given = *reinterpret_cast<const MatrixOperands*>(run.operands);
    const Size n = given.b.length[0], m = given.P.length[0], p = given.of.center.length[0];
    for (Size i = 0; i < run.count; ++i)
        solve_one(given, i, run.scratch, [&](Scratch& scratch, const double* y) {
            MatrixRows rows{n,
                            m,
                            p,
                            of(given.P, i),
                            of(given.A, i),
                            of(given.b, i),
                            y,
                            BoxQuadratic::in(scratch, p),
                            scratch.take(n * p),
                            false};
            rows.lagrangian.lower = of(given.lower, i);
            rows.lagrangian.upper = of(given.upper, i);
            return rows;
        });
}

Size thin_scratch(const Operand* operands) {
    const auto& given = *reinterpret_cast<const ThinOperands*>(operands);
    const Size n = given.b.length[0], p = given.of.center.length[0], k = given.F.length[0];
    const Size own = numbers(n, p);
    Size square;
    if (own < 0 || __builtin_mul_overflow(k, 2 * k, &square)) return -1;
    return own + ThinRows::numbers(n, p, k);
}

void thin_step(const Run& run) {
    const auto& given = *reinterpret_cast<const ThinOperands*>(run.operands);
    const Size n = given.b.length[0], p = given.of.center.length[0], k = given.F.length[0];
    for (Size i = 0; i < run.count; ++i)
        solve_one(given, i, run.scratch, [&](Scratch& scratch, const double* y) {
            ThinRows rows{};
            rows.n = n, rows.p = p, rows.factors = k, rows.y = y;
            rows.d = of(given.d, i), rows.middle = of(given.middle, i), rows.q = of(given.q, i);
            rows.b = of(given.b, i), rows.F = of(given.F, i), rows.owner = of(given.owner, i);
            rows.lower = of(given.lower, i), rows.upper = of(given.upper, i);
            rows.take(scratch);
            return rows;
        });
}

}  // namespace

extern const Entry curved[];
const Entry curved[] = {
    {"quadratic_step", "(p),(p),(),(n),(n),(m,p,p),(n,p),(n),(p),(p),(n)?->(p),(n),()",
     quadratic_step, matrix_scratch},
    {"thin_step", "(p),(p),(),(n),(n),(n,p),(n,p),(n,p),(n),(k,p),(k),(p),(p),(n)?->(p),(n),()",
     thin_step, thin_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
