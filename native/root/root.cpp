// Entries of rows, or of a set, whose step is the root of a function of one multiplier.
#include "each.hpp"
#include "root/ball.hpp"
#include "root/capacity.hpp"
#include "root/quadratic.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

void capacity_step(Scratch scratch, Vector center, Vector gradient, double alpha, double floor,
                   double weight, double demand, Vector scale, Vector rate, Vector lower,
                   Vector upper, OutVector x, double& multiplier, double& residual) {
    const Price price{alpha, floor, weight};
    const Size p = x.size;
    double* y = scratch.take(p);
    multiplier = residual = NOT_A_NUMBER;
    if (!set_target(price, center.at, gradient.at, lower.at, upper.at, y, p)) return;
    const Capacity row{p, demand, scale.at, rate.at, lower.at, upper.at, y, x.at};
    const double mu = row.solve(price.lo, price.hi);
    multiplier = price.multiplier(mu);
    residual = mu < INFINITE ? row.residual(price, mu) : INFINITE;
}

Size capacity_scratch(const Operand* operands) { return operands[0].length[0]; }

template <bool ROUND>
void solve_quadratic(Scratch scratch, QuadraticRow<ROUND> row, const Price& price, Vector center,
                     Vector gradient, OutVector x, double& multiplier, double& residual) {
    double** lines[] = {&row.y, &row.target, &row.least, &row.most};
    for (double** line : lines) *line = scratch.take(x.size);
    multiplier = residual = NOT_A_NUMBER;
    if (!set_target(price, center.at, gradient.at, row.lower, row.upper, row.y, row.p)) return;
    row.begin(center.at, gradient.at, 0.5 / price.alpha);
    double mu = row.solve(price.lo, price.hi);
    const bool clash = mu == INFINITE;
    mu = smaller(mu, FAR_AWAY);
    row.set_x(mu, x.at);
    const auto found = row.judge(mu, x.at);
    multiplier = price.multiplier(mu);
    residual = price.residual(found.worst, mu, found.g, found.size);
    if (clash && found.g > SURELY_ABOVE * found.size) residual = INFINITE;  // else rounding of x
}

void ball_row_step(Scratch scratch, Vector center, Vector gradient, double alpha, double floor,
                   double weight, double d, Vector c, double limit, Vector lower, Vector upper,
                   OutVector x, double& multiplier, double& residual) {
    QuadraticRow<true> row = {};
    row.p = x.size, row.d = &d, row.c = c.at, row.limit = limit;
    row.lower = lower.at, row.upper = upper.at;
    solve_quadratic(scratch, row, {alpha, floor, weight}, center, gradient, x, multiplier,
                    residual);
}

void diagonal_row_step(Scratch scratch, Vector center, Vector gradient, double alpha, double floor,
                       double weight, Vector d, Vector q, double limit, Vector lower, Vector upper,
                       OutVector x, double& multiplier, double& residual) {
    QuadraticRow<false> row = {};
    row.p = x.size, row.d = d.at, row.q = q.at, row.limit = limit;
    row.lower = lower.at, row.upper = upper.at;
    solve_quadratic(scratch, row, {alpha, floor, weight}, center, gradient, x, multiplier,
                    residual);
}

Size quadratic_scratch(const Operand* operands) { return 4 * operands[0].length[0]; }

void ball_step(Scratch scratch, Vector center, Vector gradient, double alpha, Vector floor,
               Vector weights, Vector soft, Matrix A, Vector b, Vector middle, double radius,
               OutVector x, OutVector multipliers, double& residual) {
    Ball ball(scratch,
              {b.size, x.size, center.at, gradient.at, alpha, floor.at, weights.at, soft.at, A.at,
               b.at, nullptr, nullptr},
              middle.at, radius, x.at);
    residual = ball.run();
    give_multipliers(ball.of, ball.iterate, multipliers.at);
}

Size ball_scratch(const Operand* operands) {
    const Size p = operands[0].length[0], n = operands[3].length[0];
    Size square;
    return __builtin_mul_overflow(n, 4 * n, &square) ? -1 : ball_size(n, p);
}

}  // namespace

extern const Entry roots[];
const Entry roots[] = {
    {"capacity_step", "(p),(p),(),(),(),(),(p),(p),(p),(p)->(p),(),()", each<capacity_step>,
     capacity_scratch},
    {"ball_row_step", "(p),(p),(),(),(),(),(p),(),(p),(p)->(p),(),()", each<ball_row_step>,
     quadratic_scratch},
    {"diagonal_row_step", "(p),(p),(),(),(),(p),(p),(),(p),(p)->(p),(),()", each<diagonal_row_step>,
     quadratic_scratch},
    {"ball_step", "(p),(p),(),(n),(n),(n),(n,p),(n),(p),()->(p),(n),()", each<ball_step>,
     ball_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
