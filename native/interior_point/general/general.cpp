// The general problem as an entry: the last resort, in double as far as that goes and then in
// double-double.
#include "each.hpp"
#include "ends.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr int STEPS = 120;

struct Solver {
    Solver(const Grouped& of, Memory& memory)
        : reduced(of.p, of.n, of.equalities, memory),
          starts(of.p, of.n, of.groups, memory),
          in_double(of.p, of.n, of.groups, of.equalities, of.curved, memory),
          extended(of.p, of.n, of.groups, of.equalities, of.curved, memory),
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

}  // namespace

extern const Entry general[];
const Entry general[] = {
    {"grouped_step",
     "(p),(p),(),(q,p),(n,p),(n),(n),(n),(k),(k),(m,p),(m),(p),(p),(p),(n),(m),(),(),()->"
     "(p),(n),(m),()",
     each<grouped_step>, grouped_memory},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
