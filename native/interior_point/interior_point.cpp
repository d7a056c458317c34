// The general problem as two entries: an answer, in double as far as that goes and then in
// double-double; and a guess, in double.
#include "each.hpp"
#include "ends.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr int STEPS = 120;

struct Solver {
    Solver(const Grouped& of, Memory& memory)
        : reduced(of.p, of.n, of.equalities, memory),
          starts(of.p, of.n, of.groups, memory),
          in_double(of.p, of.n, of.groups, of.groups, of.equalities, of.curved, memory),
          extended(of.p, of.n, of.groups, of.groups, of.equalities, of.curved, memory),
          mu(memory.take<double>(of.n)),
          equal(memory.take<double>(of.equalities)) {}

    Reduced reduced;
    Starts starts;
    InteriorPoint<double> in_double;
    InteriorPoint<DoubleDouble> extended;
    double *mu, *equal;
};

// From a guess of x, the multipliers of rows without their `lean`, and those of equalities: `known`
// says that it is near. `left` is what is left of the conditions in double-double.
void grouped_step(Scratch scratch, Vector center, Vector gradient, double alpha, Matrix P, Matrix A,
                  Vector b, Vector group, Vector lean, Vector cost, Vector is_free, Matrix E,
                  Vector e, Vector lower, Vector upper, Vector x_guess, Vector mu_guess,
                  Vector equal_guess, double known, double tau, double give, OutVector x,
                  OutVector mu, OutVector equal, double& left) {
    const Grouped given = {.p = center.size,
                           .n = b.size,
                           .groups = cost.size,
                           .equalities = e.size,
                           .curved = center.size > 0 ? P.rows / center.size : 0,
                           .center = center.at,
                           .gradient = gradient.at,
                           .alpha = alpha,
                           .P = P.at,
                           .A = A.at,
                           .b = b.at,
                           .lean = lean.at,
                           .group = group.at,
                           .cost = cost.at,
                           .is_free = is_free.at,
                           .E = E.at,
                           .e = e.at,
                           .lower = lower.at,
                           .upper = upper.at};
    Memory memory(scratch.at);
    Solver solver(given, memory);
    const Grouped problem = solver.reduced.of(given, x_guess.at, give);
    const auto row = [&](Size r) { return solver.reduced.row(r); };
    const auto equality = [&](Size r) { return solver.reduced.equality(r); };
    solver.in_double.take(problem);
    if (known != 0.0) {
        for (Size r = 0; r < problem.n; ++r) solver.mu[r] = mu_guess[row(r)];
        for (Size r = 0; r < problem.equalities; ++r) solver.equal[r] = equal_guess[equality(r)];
        solver.starts.near(solver.in_double, x_guess.at, solver.mu, solver.equal, tau);
    } else {
        solver.starts.begin(solver.in_double, tau);
    }
    int steps = STEPS;
    solver.in_double.walk({larger(1e-10, 1e-8 * solver.in_double.mean_product()), INF, true},
                          steps);
    solver.extended.go_on(solver.in_double);
    left = solver.extended.walk({1e-24, 1e-15, false}, steps);
    solver.starts.settle(solver.extended, x.at, solver.mu, solver.equal);
    fill(mu.at, mu.size, 0.0);
    fill(equal.at, equal.size, 0.0);
    for (Size r = 0; r < problem.n; ++r) mu[row(r)] = solver.mu[r];
    for (Size r = 0; r < problem.equalities; ++r) equal[equality(r)] = solver.equal[r];
}

Size grouped_memory(const Operand* operands) {
    const Size p = operands[0].length[0];
    Memory memory(nullptr);
    const Grouped of = {.p = p,
                        .n = operands[5].length[0],
                        .groups = operands[8].length[0],
                        .equalities = operands[11].length[0],
                        .curved = p > 0 ? operands[3].length[0] / p : 0};
    Solver(of, memory);
    return memory.numbers();
}

struct Guesser {
    Guesser(Size p, Size n, Size equalities, Memory& memory)
        : reduced(p, n, equalities, memory),
          starts(p, n, n, memory),
          method(p, n, n, 0, equalities, 0, memory),
          guess(p, n, n, equalities, memory),
          group(memory.take<double>(n)),
          is_free(memory.take<double>(n)) {}

    Reduced reduced;
    Starts starts;
    InteriorPoint<double> method;
    Guess guess;
    double *group, *is_free;
};

// Where rows, each a group of its own, are in conflict: which multipliers are at 0, which at their
// cost, and about where the others are. NaN if that is not found.
void grouped_guess(Scratch scratch, Vector center, Vector gradient, double alpha, Matrix A,
                   Vector b, Vector lean, Vector cost, Matrix E, Vector e, Vector lower,
                   Vector upper, OutVector mu, OutVector equal) {
    Memory memory(scratch.at);
    Guesser guesser(center.size, b.size, e.size, memory);
    for (Size r = 0; r < b.size; ++r) guesser.group[r] = double(r), guesser.is_free[r] = 0.0;
    const Grouped given = {.p = center.size,
                           .n = b.size,
                           .groups = b.size,
                           .equalities = e.size,
                           .curved = 0,
                           .center = center.at,
                           .gradient = gradient.at,
                           .alpha = alpha,
                           .A = A.at,
                           .b = b.at,
                           .lean = lean.at,
                           .group = guesser.group,
                           .cost = cost.at,
                           .is_free = guesser.is_free,
                           .E = E.at,
                           .e = e.at,
                           .lower = lower.at,
                           .upper = upper.at};
    const Grouped problem = guesser.reduced.of(given, center.at, 0.0);
    guesser.method.take(problem);
    guesser.starts.inside(guesser.method);
    const double gap = 1e-12 * guesser.method.mean_product();
    int steps = STEPS;
    guesser.method.walk({gap, INF, false}, steps);
    const bool reached = guesser.method.mean_product() <= gap;
    fill(mu.at, mu.size, reached ? 0.0 : __builtin_nan(""));
    fill(equal.at, equal.size, 0.0);
    guesser.guess.of(problem, guesser.method.point());
    for (Size r = 0; r < problem.n && reached; ++r) {
        const Size k = guesser.reduced.row(r);
        mu[k] = guesser.guess.above[k] != 0.0 ? cost[k] : guesser.guess.mu[r];
    }
    for (Size r = 0; r < problem.equalities; ++r)
        equal[guesser.reduced.equality(r)] = guesser.guess.equal[r];
}

Size guess_memory(const Operand* operands) {
    Memory memory(nullptr);
    Guesser(operands[0].length[0], operands[4].length[0], operands[8].length[0], memory);
    return memory.numbers();
}

}  // namespace

extern const Entry interior_point[];
const Entry interior_point[] = {
    {"grouped_step",
     "(p),(p),(),(q,p),(n,p),(n),(n),(n),(k),(k),(m,p),(m),(p),(p),(p),(n),(m),(),(),()->"
     "(p),(n),(m),()",
     each<grouped_step>, grouped_memory},
    {"grouped_guess", "(p),(p),(),(n,p),(n),(n),(n),(m,p),(m),(p),(p)->(n),(m)",
     each<grouped_guess>, guess_memory},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
