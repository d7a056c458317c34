// The active-set methods as entries: affine rows on a box where the dual Newton method has not
// settled.
#include "each.hpp"
#include "extended.hpp"
#include "primal_descent.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

Size extended_memory(const Operand* operands) {
    return Extended::memory(operands[7].length[0], operands[0].length[0], operands[5].length[0]);
}

void active_set_extended(Scratch scratch, Vector center, Vector gradient, double alpha,
                         Vector multiplier_lower, Vector multiplier_upper, Vector compliance,
                         Matrix A, Vector b, Vector lower, Vector upper, Vector share,
                         Vector middle, Vector start, OutVector x, OutVector multipliers,
                         double& residual, double& status) {
    const AffineBox given{.n = b.size,
                          .p = center.size,
                          .center = center.at,
                          .gradient = gradient.at,
                          .alpha = alpha,
                          .multiplier_lower = multiplier_lower.at,
                          .multiplier_upper = multiplier_upper.at,
                          .compliance = compliance.at,
                          .compliant = compliance.size,
                          .A = A.at,
                          .b = b.at,
                          .lower = lower.at,
                          .upper = upper.at,
                          .share = share.at,
                          .middle = middle.at};
    Answer answer;
    if (compliance.size <= b.size)
        answer = Extended::solve(given, start.at, x.at, multipliers.at, scratch.at);
    residual = answer.residual;
    status = double(answer.status);
}

Size descent_memory(const Operand* operands) {
    Memory counted(nullptr);
    PrimalDescent<double> nothing;
    nothing.lay_out(counted, operands[6].length[0], operands[0].length[0]);
    return counted.numbers();
}

void active_set_double(Scratch scratch, Vector center, Vector gradient, double alpha,
                       Vector multiplier_lower, Vector multiplier_upper, Matrix A, Vector b,
                       Vector lower, Vector upper, Vector start, OutVector x, OutVector multipliers,
                       double& residual, double& status) {
    const AffineBox given{.n = b.size,
                          .p = center.size,
                          .center = center.at,
                          .gradient = gradient.at,
                          .alpha = alpha,
                          .multiplier_lower = multiplier_lower.at,
                          .multiplier_upper = multiplier_upper.at,
                          .A = A.at,
                          .b = b.at,
                          .lower = lower.at,
                          .upper = upper.at};
    Memory memory(scratch.at);
    PrimalDescent<double> method;
    method.lay_out(memory, given.n, given.p);
    residual = INF;
    bool known = true;  // where to start
    for (Size k = 0; k < given.n; ++k) known = known && __builtin_isfinite(start[k]);
    const bool sound = method.read(given);
    if (sound && known && method.descend(start.at)) residual = method.tell(x.at, multipliers.at);
    if (sound && !(residual <= PROMISED) && method.descend(nullptr))
        residual = method.tell(x.at, multipliers.at);
    status = double(status_of(residual));
    if (residual < INF) return;
    for (Size i = 0; i < given.p; ++i) x[i] = smaller(larger(center[i], lower[i]), upper[i]);
    for (Size k = 0; k < given.n; ++k)
        multipliers[k] = smaller(larger(0.0, multiplier_lower[k]), multiplier_upper[k]);
}

void affine_residual(Vector center, Vector gradient, double alpha, Vector multiplier_lower,
                     Vector multiplier_upper, Vector compliance, Matrix A, Vector b, Vector lower,
                     Vector upper, Vector share, Vector middle, Vector x, Vector multipliers,
                     double& residual) {
    const AffineBox given{.n = b.size,
                          .p = center.size,
                          .center = center.at,
                          .gradient = gradient.at,
                          .alpha = alpha,
                          .multiplier_lower = multiplier_lower.at,
                          .multiplier_upper = multiplier_upper.at,
                          .compliance = compliance.at,
                          .compliant = compliance.size,
                          .A = A.at,
                          .b = b.at,
                          .lower = lower.at,
                          .upper = upper.at,
                          .share = share.at,
                          .middle = middle.at};
    residual = compliance.size <= b.size ? relative_residual(given, x.at, multipliers.at) : INF;
}

}  // namespace

extern const Entry active_set[];
const Entry active_set[] = {
    {"active_set_extended", "(p),(p),(),(n),(n),(c),(n,p),(n),(p),(p),(p),(p),(n)->(p),(n),(),()",
     each<active_set_extended>,
     "Affine rows on a box in double-double arithmetic: x, multipliers, residual, status. Where "
     "the "
     "status is that enforced rows contradict, the multipliers are the combination that proves it.",
     extended_memory},
    {"active_set_double", "(p),(p),(),(n),(n),(n,p),(n),(p),(p),(n)->(p),(n),(),()",
     each<active_set_double>,
     "Affine rows on a box, down the penalised objective: x, multipliers, residual, status.",
     descent_memory},
    {"affine_residual", "(p),(p),(),(n),(n),(c),(n,p),(n),(p),(p),(p),(p),(p),(n)->()",
     each<affine_residual>, "The relative residual of the optimality conditions of an answer."},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
